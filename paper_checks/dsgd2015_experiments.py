# SPDX-License-Identifier: BSD-3-Clause
"""Experiments and pictures of Xie, Liang, Song, Scale Up Nonlinear Component Analysis with Doubly Stochastic Gradients
(NIPS 2015), section 6."""

import functools
import importlib
import itertools
import math

import numpy as np
from scipy import linalg, stats

import kpcasketch as kp
from paper_checks import data
from paper_checks.claims import (
    NOT_COMPARABLE,
    NOT_SEEN,
    SEEN,
    bootstrapped,
    experiment,
    figure,
    observation,
)
from paper_checks.dsgd2015 import (
    NODES,
    SETTINGS,
    SMALL,
    SUFFICIENT,
    UNIT,
    WEIGHTS,
    held,
    hermite_potential,
    hermite_runs,
    hermite_sizes,
    mean_exponent,
    products,
    state_of,
    subspace_runs,
    worst_place,
)
from paper_checks.tools import draw_ranges, finish, hermite, interval, settled, sin2, timed


@functools.lru_cache
def synthetic(full, seed, run=0):
    """Figure 1: points seen, potential after them, the state; 1e6 points and 262144 features in full."""
    n, features = (1_000_000, 2**18) if full else (131_072, 2**13)
    X = np.random.default_rng([seed, 1, run]).standard_normal((n, 1))
    state = kp.dsgd_start(
        X[:60],
        kp.fourier_features_map(UNIT, 1, features, 100 * seed + run, stored=False, paired=False),
        3,
        steps=kp.DSGDSteps(theta0=0.8, theta1=0.06, initial=64),
        centered=False,
    )
    seen, potential, upcoming = [], [], 1
    for t in range(n // 512):
        state = kp.update(state, X[512 * t : 512 * (t + 1)])
        if t + 1 >= upcoming:
            seen.append(512 * (t + 1))
            potential.append(hermite_potential(kp.features(NODES[:, None], state), 3))
            upcoming = max(t + 2, 1.2 * (t + 1))
    return np.array(seen), np.array(potential), state


@experiment(
    "DSGD-Fig1",
    "dsgd",
    "Section 6: on normal data the potential of the top 3 subspace falls like 1/t, and "
    "the functions found are the eigenfunctions.",
    measures="exponent of sin^2 in the points, and the paper's",
    with_sets=SEEN,
)
def synthetic_converges(options):
    runs = [synthetic(options.full, options.seed, run) for run in range(2 if options.full else 6)]
    seen, late = runs[0][0], settled(runs[0][0])
    potentials = np.stack([potential[late] for _, potential, _ in runs], axis=1)
    fit = bootstrapped(functools.partial(mean_exponent, seen[late]), potentials, options.seed)
    least, most = fit.limits(0.05)
    values, _ = hermite(NODES, 3)
    overlap = []
    for *_, state in runs:
        H = kp.features(NODES[:, None], kp.finish(state))
        overlap.append(np.diag(products(H)) / np.sqrt((H**2 * WEIGHTS[:, None]).sum(0) / values))
    state = runs[0][2]
    return observation(
        {"1/t": -1.5 <= least and most <= -0.5, "the eigenfunctions": np.min(overlap) > 0.98},
        f"The potential falls like t^{fit.value:.2f}, and the functions found are the eigenfunctions to "
        f"{1 - np.min(overlap):.0e}.",
        f"{len(runs)} runs of {seen[-1]:,} points, {state.feature_map.m} features, 512 and 128 a step",
        measured=fit.value,
        bound=-1,
        details=f"95 % interval of the exponent, of the mean over runs in the upper half of the logarithmic range of "
        f"points: {least:.2f} to {most:.2f}. The mean falls from {potentials[0].mean():.2g} to "
        f"{potentials[-1].mean():.2g} there. Inner products of the functions with the true ones: "
        f"{', '.join(f'{o:.4f}' for o in np.min(overlap, axis=0))}, the least of the runs.",
    )


@functools.lru_cache
def molecules(folder, full, seed):
    """(points' attribute, {method: two components}, name): figure 2."""
    found = data.load(folder, "qm7", raw=True)
    name = "qm7" if found is not None else "digits"
    if found is None:
        digits = importlib.import_module("sklearn.datasets").load_digits()
        found = digits.data, digits.target
    X, y = np.ascontiguousarray(found[0], float), found[1]
    kernel, runs = kp.gaussian(kp.median_bandwidth(X, seed)), []
    count = 4000 if full else 200 if name == "qm7" else 100
    for run in range(5):
        model = kp.dsgd_kpca(
            X,
            kernel,
            2,
            16384 if full else 4096,
            5 * seed + run,
            steps=kp.DSGDSteps(count, min(1024, len(X)), 512),
            centered=True,
        )
        H = kp.features(X, model)
        runs.append(H - H.mean(0))
    linear = (X - X.mean(0)) @ linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :2]
    exact = kp.features(X, kp.kpca(X, kernel, 2, seed, centered=True))
    return y, {"kernel PCA by DSGD": runs[0], "PCA": linear, "kernel PCA": exact}, runs, name


def crowding(Z):
    """Largest distance from the middle over the median one: clusters and points far away make it large."""
    away = np.linalg.norm((Z - np.median(Z, 0)) / Z.std(0), axis=1)
    return away.max() / np.median(away)


@experiment(
    "DSGD-Fig2",
    "dsgd",
    "Section 6: compared with linear PCA, kernel PCA of the molecules shrinks the "
    "distances between the clusters; higher values lie towards the center of the ring.",
    measures="sin^2 from the plane of exact kernel PCA, the worst of five seeds",
    usual=NOT_COMPARABLE,
    with_sets=SEEN,
)
def molecular_space(options):
    y, planes, runs, name = molecules(options.data_dir, options.full, options.seed)
    exact = planes["kernel PCA"] - planes["kernel PCA"].mean(0)
    angle = max(sin2(exact, run) for run in runs)
    spread = {method: crowding(planes[method]) for method in ("PCA", "kernel PCA by DSGD")}
    Z = planes["kernel PCA by DSGD"]
    rank = stats.spearmanr(np.linalg.norm(Z / Z.std(0), axis=1), y).statistic
    return observation(
        {"distances shrink": spread["kernel PCA by DSGD"] < spread["PCA"]},
        f"{name}: largest distance from the middle over the median one "
        f"{', '.join(f'{value:.3g} ({method})' for method, value in spread.items())}.",
        f"{name}, {len(y)} points",
        measured=angle,
        bound=0.05,
        details=f"The plane of DSGD is within sin^2 = {angle:.2g} of exact kernel PCA's, five seeds. The rank "
        f"correlation with the distance from the middle, which is not judged, is {rank:.2f} of "
        f"{'the energy (efficiency of conversion is not known)' if name == 'qm7' else 'the digit'}.",
        lacking="" if name == "qm7" else "Digits are no molecules.",
    )


def latent(rng, n):
    """Two views of a latent component: normal (mean -1, s.d. 1), or Gamma(1.2) times 2 from 1 on; equally likely."""
    z = rng.random(n) < 0.5
    return [
        np.where(z, rng.normal(-1.0, 1.0, n), 1.0 + 2.0 * rng.gamma(1.2, 1.0, n))[:, None]
        for _ in range(2)
    ]


def density_embeddings(places):
    """Mean of the kernel of bandwidth .5 under each component, by quadrature."""
    kernel, u = kp.gaussian(0.5), (np.arange(4000) + 0.5) / 4000
    quantiles = [stats.norm.ppf(u, -1.0, 1.0), 1.0 + 2.0 * stats.gamma.ppf(u, 1.2)]
    return np.stack([kp.gram(places, q[:, None], kernel).mean(1) for q in quantiles], 1)


@functools.lru_cache
def latent_errors(full, seed):
    """({method: errors of the replicates}, places, embeddings, {method: functions}): sin^2 between the top 2 singular
    functions and the components' embeddings, of DSGD and of fixed features, as many as fit its memory, and the
    paper's 2048 (512 by default), after as many points."""
    features, batch, fixed, replicates = 8192, 512, 2048 if full else 512, 5
    n = 1_000_000 if full else 32_768
    steps = n // batch  # all points are new; the rivals see as many
    small = math.isqrt(2 * features * 2)  # a cross-moment of that many numbers: DSGD's coefficients
    places, kernel, errors, functions = np.linspace(-4, 10, 300)[:, None], kp.gaussian(0.5), {}, {}
    truth = density_embeddings(places)
    for r in range(replicates):
        X, Y = latent(np.random.default_rng([seed, r, 7]), n)
        pair = kp.dsgd_ksvd(
            X, Y, kernel, kernel, 2, features, r, steps=kp.DSGDSteps(steps, batch, 256)
        )
        functions["DSGD"] = kp.features(places, pair.first)
        for m in (small, fixed):
            maps = [
                kp.fourier_features_map(kernel, 1, m, s, paired=False) for s in (2 * r, 2 * r + 1)
            ]
            nystrom = [
                kp.nystrom_map(view, kp.uniform_landmarks(n, m, r), kernel) for view in (X, Y)
            ]
            for name, of, (a, b) in (
                ("Fourier", kp.features, maps),
                ("Nystrom", kp.features, nystrom),
            ):
                C = sum(
                    of(X[i : i + 20_000], a).T @ of(Y[i : i + 20_000], b)
                    for i in range(0, steps * batch, 20_000)
                )
                functions[f"{m} {name}"] = of(places, a) @ linalg.svd(C)[0][:, :2]
        for method, f in functions.items():
            errors.setdefault(method, []).append(sin2(truth, f))
    return {method: np.array(found) for method, found in errors.items()}, places, truth, functions


@experiment(
    "DSGD-Fig3",
    "dsgd",
    "Section 6: KSVD by DSGD recovers the two latent components almost perfectly, better "
    "than fixed Fourier or Nystrom features.",
    measures="mean sin^2 to the latent components",
    usual=NOT_SEEN,
    with_sets=NOT_SEEN,
)
def latent_components(options):
    errors, *_ = latent_errors(options.full, options.seed)
    ours = errors["DSGD"]
    better = {
        method: stats.ttest_rel(ours, found, alternative="less").pvalue < 0.05
        for method, found in errors.items()
        if method != "DSGD"
    }
    rivals = [found.mean() for method, found in errors.items() if method != "DSGD"]
    X = latent(np.random.default_rng(options.seed), 2000)[0]
    values = kp.kpca(X, kp.gaussian(0.5), 100, centered=False).values
    rank = int((values > 1e-10 * values[0]).sum())
    return observation(
        {
            "almost perfect": ours.mean() < 0.05,
            **{f"better than {method} features": yes for method, yes in better.items()},
        },
        f"Mean sin^2: DSGD {ours.mean():.2g}, fixed features {min(rivals):.2g} to {max(rivals):.2g}.",
        f"{len(ours)} replicates",
        measured=ours.mean(),
        bound=0.05,
        details=f"It is between the top two singular functions and the embeddings of the two components, after as many "
        f"points: {', '.join(f'{m} {found.mean():.2g}' for m, found in errors.items())}. The fewer features take the "
        f"memory of DSGD's coefficients. In one dimension the kernel of bandwidth .5 has {rank} eigenvalues above "
        f"1e-10 of the first on 2000 of these points, so that a few hundred landmarks are nearly the exact kernel. The "
        f"paper gives neither the components' parameters nor a number.",
    )


def halves(options):
    """(train, test) pairs of left and right halves of images: the mnist set of the data folder, or scikit-learn's
    digits."""
    X = data.load(options.data_dir, "mnist", raw=True)
    X, side = (
        (X[0] / 255, 28)
        if X is not None
        else (importlib.import_module("sklearn.datasets").load_digits().data / 16, 8)
    )
    X = X[np.random.default_rng(options.seed).permutation(len(X))].reshape(len(X), side, side)
    left, right = (
        np.ascontiguousarray(part.reshape(len(X), -1))
        for part in (X[:, :, : side // 2], X[:, :, side // 2 :])
    )
    count = len(X) * 3 // 4
    return (
        (left[:count], right[:count]),
        (left[count:], right[count:]),
        "mnist" if side == 28 else "digits",
    )


def cca(F, G, k, ridge):
    """Weights of linear canonical correlations, with a ridge in the units of the features' second moments."""
    F, G = F - F.mean(0), G - G.mean(0)
    roots = [
        linalg.inv(
            linalg.cholesky(A.T @ A / len(A) + ridge * np.eye(A.shape[1])), check_finite=False
        )
        for A in (F, G)
    ]
    u, _, v = linalg.svd(roots[0].T @ (F.T @ G / len(F)) @ roots[1], full_matrices=False)
    return roots[0] @ u[:, :k], roots[1] @ v[:k].T


def correlation_sum(U, V):
    return sum(np.corrcoef(u, v)[0, 1] for u, v in zip(U.T, V.T))


RIDGES = (1e-6, 1e-5, 1e-4, 1e-3)


def tuned(settings, fit, score):
    """The setting of the best validation score, alike for all methods; a step that diverges has none."""

    def tried(setting):
        try:
            return score(fit(*setting))
        except ValueError:
            return -math.inf

    return max(settings, key=tried)


def makers(kernels, count):
    """Fixed features: {kind: (views, m, seed) -> a function of views to features}."""

    def fourier_maps(views, m, seed):
        maps = [
            kp.fourier_features_map(kernel, view.shape[1], m, 2 * seed + s, paired=False)
            for s, (kernel, view) in enumerate(zip(kernels, views))
        ]
        return lambda new: [kp.features(view, map) for view, map in zip(new, maps)]

    def nystrom_maps(views, m, seed):
        maps = [
            kp.nystrom_map(view, kp.uniform_landmarks(count, m, seed), kernel)
            for kernel, view in zip(kernels, views)
        ]
        return lambda new: [kp.features(view, map) for view, map in zip(new, maps)]

    return {"Fourier": fourier_maps, "Nystrom": nystrom_maps}


def correlations(options):
    return _correlations(options.data_dir, options.full, options.seed)


@functools.lru_cache
def _correlations(folder, full, seed):
    """({(method, features): sums of test correlations of five seeds}, seconds of each, name, k); for each method ridge
    and, of DSGD, step by a fifth of the training points."""
    train, test, name = halves(type("Options", (), {"data_dir": folder, "seed": seed}))
    k, count = 50 if name == "mnist" else 10, len(train[0])
    fitted, checked = (
        [view[part] for view in train] for part in (slice(count // 5, None), slice(count // 5))
    )
    kernels = [kp.gaussian(kp.median_bandwidth(view, seed)) for view in train]
    counts = (
        ((256, 512, 1024, 2048, 4096) if full else (256, 512))
        if name == "mnist"
        else (64, 128, 256)
    )
    features, steps, batch = (
        (20480, 3000, 1024) if full else (2048, 200, 512) if name == "mnist" else (1024, 150, 512)
    )
    found, seconds = {}, {}

    def linear(views, ridge, run=0):
        weights = cca(*views, k, ridge)
        return lambda new: [view @ w for view, w in zip(new, weights)]

    def gradients(views, ridge, step, run=0):
        block = features // 10
        maps = [
            kp.fourier_features_map(
                kernel,
                view.shape[1],
                features,
                2 * (5 * seed + run) + s,
                stored=False,
                paired=False,
            )
            for s, (view, kernel) in enumerate(zip(views, kernels))
        ]
        first = kp.dsgd_kcca_start(
            *[view[:2048] for view in views],
            *maps,
            k,
            steps=kp.DSGDSteps(feature_batch=block),
            lam=ridge,
        )
        size = min(batch, len(views[0]))
        chosen = kp.DSGDSteps(steps, size, block, step * first.theta0, step * first.theta1)
        models = kp.dsgd_kcca(
            *views, *kernels, k, features, 5 * seed + run, steps=chosen, lam=ridge
        )
        return lambda new: [kp.features(view, model) for view, model in zip(new, models)]

    def judged(key, settings, fit):
        best = tuned(
            settings, lambda *setting: fit(fitted, *setting), lambda f: correlation_sum(*f(checked))
        )
        runs = [timed(lambda: correlation_sum(*fit(train, *best, run)(test))) for run in range(5)]
        found[key], seconds[key] = (
            np.array([value for value, _ in runs]),
            np.median([taken for _, taken in runs]),
        )

    judged(("linear", 0), [(ridge,) for ridge in RIDGES], linear)
    for (kind, make), m in itertools.product(makers(kernels, count).items(), counts):

        def fixed(views, ridge, run=0):
            features_of = (
                make if len(views[0]) == count else makers(kernels, len(views[0]))[kind]
            )(views, m, run)
            weights = cca(*features_of(views), k, ridge)
            return lambda new: [view @ w for view, w in zip(features_of(new), weights)]

        judged((kind, m), [(ridge,) for ridge in RIDGES], fixed)
    judged(("DSGD", features), list(itertools.product(RIDGES, (1.0, 3.0))), gradients)
    return found, seconds, name, k


def of_kind(found, kind):
    return [values for (of, _), values in found.items() if of == kind]


def in_words(found):
    return "; ".join(
        f"{kind}{f' {m}' if m else ''} {values.mean():.3g} +- {interval(values)[1]:.1g}"
        for (kind, m), values in found.items()
    )


@experiment(
    "DSGD-Table1",
    "dsgd",
    "Table 1: of left and right image halves DSGD finds the largest sum of test "
    "correlations, Nystrom more than Fourier features, more features more, and linear CCA less than most.",
    measures="best sum of fixed features over that of DSGD",
    usual=NOT_COMPARABLE,
    with_sets=NOT_SEEN,
)
def table_1(options):
    found, seconds, name, k = correlations(options)
    (dsgd,), nystrom, fixed = (of_kind(found, kind) for kind in ("DSGD", "Nystrom", "Fourier"))
    means = [[values.mean() for values in of] for of in (fixed, nystrom)]
    best, taken = (
        max(*fixed, *nystrom, key=np.mean),
        {of: each for (of, _), each in seconds.items()},
    )
    return observation(
        {
            "more features more": all(of == sorted(of) for of in means),
            "Nystrom above Fourier": all(a > b for a, b in zip(means[1], means[0])),
            "DSGD above all": dsgd.mean() - interval(dsgd)[1] > best.mean(),
            "linear below the most features": found["linear", 0].mean() < max(means[0]),
        },
        f"Sum of the top {k} test correlations, {name}: DSGD {dsgd.mean():.3g}, fixed features at most "
        f"{best.mean():.3g}, linear {found['linear', 0].mean():.3g}.",
        name,
        measured=best.mean() / dsgd.mean(),
        bound=1.0,
        details=f"Means of five seeds: {in_words(found)}. Ridges, and the step of DSGD, are validated over the same "
        f"values. Seconds a run: DSGD {taken['DSGD']:.2g}, with the most features Fourier {taken['Fourier']:.2g}, "
        f"Nystrom {taken['Nystrom']:.2g}. The paper has 8.1 million images, takes 3000 steps and finds: Fourier 25.2 "
        f"to 41.5, Nystrom 30.4 to 42.7, DSGD 43.5, linear 27.4.",
        lacking="" if name == "mnist" else "None of the paper's images is here.",
    )


def arm(rng, n):
    """Torques of a two-joint arm (masses and lengths 1, gravity 9.8) from angles, velocities and accelerations."""
    q, v, a = rng.uniform(-np.pi, np.pi, (n, 2)), rng.normal(0, 2, (n, 2)), rng.normal(0, 4, (n, 2))
    c, s = np.cos(q[:, 1]), np.sin(q[:, 1])
    weight = 9.8 * np.cos(q[:, 0] + q[:, 1])
    first = (
        (3 + 2 * c) * a[:, 0]
        + (1 + c) * a[:, 1]
        - s * (2 * v[:, 0] * v[:, 1] + v[:, 1] ** 2)
        + 2 * 9.8 * np.cos(q[:, 0])
        + weight
    )
    second = (1 + c) * a[:, 0] + a[:, 1] + s * v[:, 0] ** 2 + weight
    return np.concatenate([q, v, a], 1), np.stack([first, second], 1)


def dynamics(options):
    return _dynamics(options.data_dir, options.full, options.seed)


@functools.lru_cache
def _dynamics(folder, full, seed):
    """({(method, features): test errors of five seeds}, name), in units of the targets' variance; ridge and, of DSGD,
    step by a fifth of the training points."""
    rng = np.random.default_rng(seed)
    found = data.load(folder, "sarcos", raw=True)
    X, Y = found if found is not None else arm(rng, 60_000 if full else 6000)
    order, (X, Y) = (
        rng.permutation(len(X)),
        ((A - A.mean(0)) / A.std(0) for A in (X, np.asarray(Y, float))),
    )
    X, Y = np.ascontiguousarray(X[order]), np.ascontiguousarray(Y[order])
    k, slices, held_out = Y.shape[1], 20, len(X) // 5
    kernel = kp.gaussian(kp.median_bandwidth(X[held_out:], seed))
    counts = (512, 1024, 2048, 4096) if full else (256, 512)
    steps = 2000 if full else 150 if found is None else 300
    features, batch = (10240, 1024) if full else (2048, 512)
    parts = {
        "test": (slice(held_out, None), slice(held_out)),
        "checked": (slice(2 * held_out, None), slice(held_out, 2 * held_out)),
    }

    def indicators(y):
        shares = np.arange(1, slices) / slices
        which = np.stack(
            [np.searchsorted(np.quantile(column, shares), column) for column in y.T], 1
        )
        return (which[:, :, None] == np.arange(1, slices)).reshape(len(y), -1).astype(float)

    def error(f, part):
        (train, new), design = parts[part], np.c_[np.ones(len(X)), f(X)]
        w = np.linalg.lstsq(design[train], Y[train], rcond=None)[0]
        return ((design[new] @ w - Y[new]) ** 2).mean()

    def gradients(part, ridge, step, run=0):
        train = parts[part][0]

        drawn = kp.fourier_features_map(
            kernel, X.shape[1], features, 5 * seed + run, stored=False, paired=False
        )
        first = kp.dsgd_ksir_start(
            X[train][:2048],
            Y[train][:2048],
            drawn,
            k,
            steps=kp.DSGDSteps(feature_batch=batch),
            slices=slices,
            lam=ridge,
        )
        chosen = kp.DSGDSteps(steps, batch, batch, step * first.theta0, step * first.theta1)
        model = kp.dsgd_ksir(
            X[train],
            Y[train],
            kernel,
            k,
            features,
            5 * seed + run,
            steps=chosen,
            slices=slices,
            lam=ridge,
        )
        return lambda new: kp.features(new, model)

    rows = {}

    def judged(key, settings, fit):
        best = tuned(
            settings, lambda *setting: fit("checked", *setting), lambda f: -error(f, "checked")
        )
        rows[key] = np.array([error(fit("test", *best, run), "test") for run in range(5)])

    rows["linear", 0] = np.full(5, error(lambda new: new, "test"))
    for kind, m in itertools.product(("Fourier", "Nystrom"), counts):

        def fixed(part, ridge, run=0):
            points = X[parts[part][0]]
            of = makers([kernel], len(points))[kind]([points], m, run)
            F = of([points])[0]
            w = cca(F, indicators(Y[parts[part][0]]), k, ridge)[0]
            return lambda new: of([new])[0] @ w

        judged((kind, m), [(ridge,) for ridge in RIDGES], fixed)
    judged(("DSGD", features), list(itertools.product(RIDGES, (1.0, 3.0))), gradients)
    return rows, "sarcos" if found is not None else "simulated two-joint arm"


@experiment(
    "DSGD-Fig4",
    "dsgd",
    "Section 6: KSIR on inverse dynamics: the error falls with the number of features, "
    "DSGD has the lowest, Nystrom features do not perform as well.",
    measures="test error of DSGD over the least of fixed features",
    usual=NOT_COMPARABLE,
    with_sets=NOT_COMPARABLE,
)
def inverse_dynamics(options):
    found, name = dynamics(options)
    (dsgd,), nystrom, fixed = (of_kind(found, kind) for kind in ("DSGD", "Nystrom", "Fourier"))
    means = [[values.mean() for values in of] for of in (fixed, nystrom)]
    best = min(*fixed, *nystrom, key=np.mean)
    return observation(
        {
            "falls with features": all(of == sorted(of, reverse=True) for of in means),
            "DSGD lowest": dsgd.mean() + interval(dsgd)[1] < best.mean(),
            "Nystrom above Fourier": means[1][-1] > means[0][-1],
        },
        f"Test error over the targets' variance, {name}: DSGD {dsgd.mean():.3g}, fixed features at least "
        f"{best.mean():.3g}.",
        name,
        measured=dsgd.mean() / best.mean(),
        bound=1.0,
        details=f"Means of five seeds (the mean has 1): {in_words(found)}. Ridges, and the step of DSGD, are validated "
        f"over the same values.",
        lacking=""
        if name == "sarcos" and options.full
        else "Thousands of motions are not millions.",
    )


@figure(
    "dsgd-convergence",
    "dsgd",
    "Figure 1: potential against the number of points (dashed: 1/t), and the three functions over the true ones.",
    claims=["DSGD-Fig1", "DSGD-H"],
    columns=2,
)
def draw_convergence(axes, options):
    seen, potential, state = synthetic(options.full, options.seed)
    left, right = np.ravel(axes)
    left.loglog(seen, potential, "o-", ms=3)
    left.loglog(seen, potential[-1] * seen[-1] / seen, "k--", lw=0.8)
    left.set(xlabel="points", ylabel="sin$^2$ of the largest angle")
    x = np.linspace(-2.5, 2.5, 200)
    values, functions = hermite(x, 3)
    H = kp.features(x[:, None], kp.finish(state))
    for q, true in enumerate((np.sqrt(values) * functions).T):
        right.plot(x, true, "b--", label="true" if q == 0 else None)
        right.plot(
            x, H[:, q] * np.sign(H[:, q] @ true), "r-", lw=0.9, label="found" if q == 0 else None
        )
    finish(right, xlabel="x", title="eigenfunctions")


@figure(
    "dsgd-rates",
    "dsgd",
    "Theorems 1 and 4: potential of update (2) in 16 dimensions for two step sizes; quantiles of "
    "level .9 over the runs, on normal data, of the potential of the companion, of |v - H w|$^2$ and of the "
    "distance of both, the largest at six places.",
    claims=["DSGD-T1", "DSGD-L2", "DSGD-T4", "DSGD-L5", "DSGD-L6"],
    columns=2,
)
def draw_rates(axes, options):
    left, right = np.ravel(axes)
    for explicit, words in ((False, "G"), (True, "F")):
        for key in (SUFFICIENT[0], SMALL):
            t, found, _ = subspace_runs(*key, explicit, options.full, options.seed)
            left.plot(t, found.mean(1), "o-", ms=3, label=f"{words}, 2 c gap = {key[1]:g}")
    t, measured, _ = hermite_runs(*SETTINGS[0], *hermite_sizes(options), options.seed)
    for which, name in (
        ("companion", "companion"),
        ("error", "|v - H w|$^2$"),
        ("noise", "|companion - H|$^2$"),
    ):
        right.plot(
            t, np.quantile(worst_place(measured[which]), 0.9, axis=1), "o-", ms=3, label=name
        )
    right.plot(t, np.log(t / 0.1) / t, "k--", lw=0.8, label="ln(t / .1) / t")
    finish([left, right], "xy", xlabel="t + t$_0$", ylabel="potential, or squared error")


@figure(
    "dsgd-costs",
    "dsgd",
    "Sections 3 and 4: what is kept grows with the features and not with the coordinates; "
    "with the triangle of the Hebbian rule the functions turn into the single eigenfunctions, without it into a "
    "basis of their span (normal points, 3 functions, 5 runs: means and ranges).",
    claims=["DSGD-C", "DSGD-GHA"],
    columns=2,
)
def draw_costs(axes, options):
    left, right = np.ravel(axes)
    dimensions = np.array([1, 10, 100, 1000, 10_000])
    points = [np.random.default_rng(options.seed).standard_normal((64, d)) for d in dimensions]
    for stored, style, name in (
        (True, "o-", "frequencies stored"),
        (False, "s-", "regenerated from their seeds"),
    ):
        left.plot(
            dimensions,
            [held(state_of(X, X.shape[1], 512, 3, stored)) for X in points],
            style,
            ms=4,
            label=name,
        )
    finish(
        left, "xy", xlabel="coordinates d", ylabel="bytes of 512 features, k = 3", title="a state"
    )
    for individual, style, name in ((True, "o-", "with the triangle"), (False, "s-", "without")):
        rows = np.zeros((7, 5))
        for run in range(5):
            X = np.random.default_rng([options.seed, run]).standard_normal((30_000, 1))
            state = kp.dsgd_start(
                X[:2000],
                kp.fourier_features_map(UNIT, 1, 4096, 1000 * options.seed + run, paired=False),
                3,
                individual=individual,
                centered=False,
            )
            state = state._replace(
                coef=state.coef @ linalg.qr(np.random.default_rng(run).standard_normal((3, 3)))[0]
            )
            for t in range(241):
                if t % 40 == 0:
                    rows[t // 40, run] = np.abs(
                        products(kp.features(NODES[:, None], state)) - np.eye(3)
                    ).max()
                state = kp.update(state, X[(256 * t) % 29_000 :][:256])
        draw_ranges(right, 40 * np.arange(7), rows, name, style)
    finish(
        right,
        xlabel="steps of 256 points",
        ylabel="largest entry of |inner products - I|",
        title="single eigenfunctions",
    )


@figure(
    "dsgd-molecules",
    "dsgd",
    "Figure 2: stand-in for the paper's molecules (qm7 of the data folder, or the "
    "digits): first two components of kernel PCA and of PCA; color: energy, or digit.",
    claims=["DSGD-Fig2"],
    columns=2,
)
def draw_molecules(axes, options):
    y, planes, *_ = molecules(options.data_dir, options.full, options.seed)
    for axis, title in zip(np.ravel(axes), planes):
        axis.scatter(*planes[title].T, s=2, c=y, cmap="coolwarm_r")
        axis.set(title=title, xlabel="first component", ylabel="second component")


@figure(
    "dsgd-latent",
    "dsgd",
    "Figure 3: the two components' densities (smoothed by the kernel; dashed), and what the "
    "singular functions make of them.",
    claims=["DSGD-Fig3"],
    columns=5,
)
def draw_latent(axes, options):
    _, places, truth, functions = latent_errors(options.full, options.seed)
    for axis, (title, f) in zip(np.ravel(axes), functions.items()):
        axis.plot(places[:, 0], truth, "k--", lw=0.8)
        axis.plot(places[:, 0], f @ np.linalg.lstsq(f, truth, rcond=None)[0], lw=1)
        axis.set(title=title, xlabel="x")


def draw_features(axes, found, **words):
    for kind, style in (("Fourier", "o-"), ("Nystrom", "s-"), ("DSGD", "*")):
        points = {m: values for (of, m), values in found.items() if of == kind}
        draw_ranges(axes, list(points), list(points.values()), kind, style)
    axes.axhline(found["linear", 0].mean(), color="0.6", lw=0.8, label="linear")
    finish(axes, "x", xlabel="features", **words)


@figure(
    "dsgd-dynamics",
    "dsgd",
    "Figure 4: test error of sliced inverse regression against the number of features, in "
    "units of the targets' variance; means and ranges of five seeds.",
    claims=["DSGD-Fig4"],
)
def draw_dynamics(axes, options):
    found, name = dynamics(options)
    draw_features(axes, found, ylabel="error", title=name)
    axes.set(yscale="log")


@figure(
    "dsgd-correlations",
    "dsgd",
    "Table 1 as a picture: sum of test correlations of image halves against the "
    "number of features; means and ranges of five seeds.",
    claims=["DSGD-Table1"],
)
def draw_correlations(axes, options):
    found, _, name, k = correlations(options)
    draw_features(axes, found, ylabel=f"sum of {k} correlations", title=name)
