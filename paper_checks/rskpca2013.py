# SPDX-License-Identifier: BSD-3-Clause
"""Claims of Kingravi, Vela, Gray, Reduced-Set Kernel Principal Components Analysis (SDM 2013).

K_n = (1/n) sum_i k_{x_i} (x) k_{x_i} on the feature space, Kbar_n the same with each point moved to its shadow center,
|x_i - c_alpha(i)| < eps = sigma / l. The paper's Gaussian, by its (19), is exp(-|x - y|^2 / sigma^2): kp.gaussian(sigma
/ sqrt(2)).
"""

import functools
import importlib.util
import itertools
import math

import numpy as np
from scipy import spatial, stats

import kpcasketch as kp
from paper_checks import data
from paper_checks.claims import (
    CHANCE,
    EXACT,
    IDENTITY,
    MENDED,
    NOT_COMPARABLE,
    NOT_SEEN,
    QUOTIENT,
    SEEN,
    SHARP,
    SLOPE,
    Erratum,
    bootstrapped,
    bounded,
    claim,
    counterexample,
    experiment,
    figure,
    mean_limit,
    observation,
    rate,
    standard_errors,
)
from paper_checks.tools import (
    KERNELS,
    counted_kernel,
    draw_ranges,
    finish,
    hermite,
    interval,
    processor_seconds,
    seeds,
    settled,
    slope,
    timed,
    users_rows,
)

ELLS = (3.0, 4.0, 5.0, 8.0, 20.0)


def gaussian(sigma, kappa=1.0):
    """kappa exp(-r^2 / sigma^2), the form of (19)."""
    kernel = kp.gaussian(sigma / math.sqrt(2))
    return kernel if kappa == 1.0 else kp.scaled(kernel, kappa)


def phi(r, sigma=1.0):
    return math.exp(-((r / sigma) ** 2))


def kde_pare(X, m, seed):
    """Reduced set of m points drawn at random, each with weight n / m (KDE paring: Freedman, Kisilev 2010), a rival of
    section 6."""
    rows = np.random.default_rng(seed).choice(len(X), m, replace=False)
    return kp.ReducedSet(X[rows], np.full(m, len(X) / m))


def subsampled_kpca(X, m, kernel, k, seed):
    """Kernel PCA of m points drawn at random, each with weight n / m: a baseline of section 6."""
    return kp.rskpca(kde_pare(X, m, seed), kernel, k, seed, centered=False)


def shadow_projection_bound(kernel, eps, values, D):
    """The bound of theorem 5.4 with sqrt(kappa), infinite where its condition is not met.

    2 sqrt(2 kappa (kappa - phi)) / delta for delta = (lambda_D - lambda_{D+1}) / 2 and eigenvalues of K / n.
    """
    moved = 2 * math.sqrt(kernel.scale) * kp.shadow_bounds(kernel, eps).mmd
    delta = (values[D - 1] - (values[D] if D < len(values) else 0.0)) / 2
    return moved / delta if moved < delta / 2 else math.inf


def blob(options, n=600):
    """A cloud in 3 dimensions, or rows of the user's data, and a bandwidth."""
    X = users_rows(options, n)
    if X is None:
        return np.random.default_rng(options.seed).standard_normal((n, 3)), 2.0
    return X, kp.median_bandwidth(X, options.seed)


def one_sided(count, eps, at=1 - 1e-9):
    """The worst case: every point but the center itself just inside the shadow's edge, on one side."""
    return np.concatenate([[[0.0]], np.full((count, 1), eps * at)])


# kernels, and their values by NumPy
BY_HAND = {
    "gaussian": (
        kp.gaussian(1.5),
        lambda X, Y: np.exp(-spatial.distance.cdist(X, Y, "sqeuclidean") / 4.5),
    ),
    "laplacian": (kp.laplacian(2.0), lambda X, Y: np.exp(-spatial.distance.cdist(X, Y) / 2.0)),
    "polynomial": (kp.polynomial(2, 0.5, 1.0), lambda X, Y: (0.5 * X @ Y.T + 1.0) ** 2),
}


def uneven_points(n, *key):
    """Normal points with three different variances, so that leading eigenvalues are simple."""
    return np.random.default_rng(key).standard_normal((n, 3)) * [2.0, 1.3, 0.7]


def two_clusters(count, sigma, ell):
    """Two centers, and their points just inside the shadows' outer edges: distances move about the steepest one, sigma
    / sqrt(2)."""
    eps = sigma / ell * (1 - 1e-9)
    half = (sigma / math.sqrt(2) - eps) / 2
    return np.concatenate([[[-half], [half]], np.repeat([[-half - eps], [half + eps]], count, 0)])


def point_sets(options):
    """(name, points, sigma): data of all kinds, and the papers' sets where there is a data folder."""
    sets = [("blob", *blob(options))]
    for name, sigma in (("german", 30.0), ("pendigits", 120.0)):
        found = data.load(options.data_dir, name, 1500, raw=True)
        if found is not None:
            sets.append((name, found[0], sigma))
    return sets


def quotients(options, quotient, ells=ELLS):
    """(the largest of quotient(points, shadows, kernel, sigma / l) over the sets and l, all of them in words)."""
    found = {
        f"{name} l = {ell:g}": quotient(
            X, kp.shadow_select(X, sigma / ell), gaussian(sigma), sigma / ell
        )
        for name, X, sigma in point_sets(options)
        for ell in ells
    }
    return max(found.values()), "; ".join(f"{where}: {value:.2g}" for where, value in found.items())


def first_shadows(X, eps):
    """Algorithm 2 line by line: labels, and the number of distances that it has computed."""
    labels, left, distances, centers = np.zeros(len(X), int), np.arange(len(X)), 0, 0
    while left.size:
        distances += left.size
        inside = np.sqrt(((X[left] - X[left[0]]) ** 2).sum(1)) < eps
        labels[left[inside]], left, centers = centers, left[~inside], centers + 1
    return labels, distances


def first_points(found):
    """The row of each center among the points."""
    return np.unique(found.labels, return_index=True)[1]


def streamed_alike(X, eps, cuts, found):
    """Whether a stream of pieces of X has the shadows that were found at once."""
    state = kp.shadow_start(eps, X.shape[1])
    for piece in np.split(X, cuts):
        state = kp.update(state, piece)
    ended = kp.finish(state)
    return np.array_equal(ended.centers, found.centers) and np.array_equal(
        ended.weights, found.weights
    )


def labels_alike(X, eps, found):
    """Whether `shadow_labels` gives the points of X their labels again, and new points the first shadow that covers
    them, or -1."""
    new = 1.5 * X[:500]
    inside = spatial.distance.cdist(new, found.centers) < eps
    first = np.where(inside.any(1), inside.argmax(1), -1)
    return np.array_equal(kp.shadow_labels(X, found.centers, eps), found.labels) and np.array_equal(
        kp.shadow_labels(new, found.centers, eps), first
    )


@claim(
    "RSKPCA-A2",
    "rskpca",
    "Algorithm 2: a single pass gives centers whose shadows cover the data, each point "
    "nearer than eps to its center and centers apart by eps or more; weights sum to n.",
    measures="distance of a point to its center over eps",
    control="all points to the first center",
    no_trivial=SHARP,
)
def shadows_cover(options):
    worst, same, rows, most = 0.0, True, [], 0.0
    for name, X, sigma in point_sets(options):
        for ell in ELLS:
            eps = sigma / ell  # (17)
            found = kp.shadow_select(X, eps)
            apart = spatial.distance.pdist(found.centers).min(initial=math.inf)
            worst = max(
                worst,
                np.sqrt(((X - found.centers[found.labels]) ** 2).sum(1)).max() / eps,
                eps / apart,
            )
            labels, distances = first_shadows(X, eps)
            same &= np.array_equal(found.labels, labels) and found.weights.sum() == len(X)
            most = max(most, distances / (len(X) * len(found.weights)))
            rows.append(f"{name} l = {ell:g}: {len(found.weights) / len(X):.2g}")
    rng = np.random.default_rng(options.seed)
    many = rng.standard_normal((20000, 2))
    found = kp.shadow_select(many, 0.3)
    labels, _ = first_shadows(many, 0.3)
    same &= np.array_equal(found.labels, labels)
    same &= np.array_equal(found.weights, np.bincount(labels))
    cuts = np.sort(rng.integers(1, len(many), 3))
    lattice = np.arange(20.0)[:, None]
    X = np.repeat(rng.standard_normal((50, 2)), 4, 0)
    shuffled = kp.shadow_select(X[rng.permutation(len(X))], 1.0).centers
    of_X = kp.shadow_select(X, 1.0).centers
    return bounded(
        worst,
        1.0,
        np.sqrt(((X - of_X[0]) ** 2).sum(1)).max(),
        f"Points reach {worst:.4f} of their shadow's radius; labels, weights and centers are those of the listing.",
        f"l = {', '.join(f'{ell:g}' for ell in ELLS)}; also {len(many)} points with {len(found.weights)} centers",
        needs={
            "labels and weights of the listing": same,
            "centers are the first points of their shadows": np.array_equal(
                found.centers, many[first_points(found)]
            ),
            "a stream in pieces has the same set": streamed_alike(many, 0.3, cuts, found),
            "labels of old and new points": labels_alike(many, 0.3, found),
            "the centers depend on the order": not np.array_equal(
                np.sort(of_X, 0), np.sort(shuffled, 0)
            ),
            "points at eps itself are outside": len(kp.shadow_select(lattice, 1.0).centers) == 20,
            "m n distances": most <= 1,
            "duplicates together": len(kp.shadow_select(X, 1e-9).centers) == 50,
        },
        details=f"Measured are the largest distance of a point to its center over eps, and eps over the least distance "
        f"of two centers. Retained: {'; '.join(rows)}. The centers depend on the order of the points; a stream in "
        f"pieces gives the same ones. The listing, written out here, computes at most {most:.2f} m n distances.",
    )


@claim(
    "RSKPCA-P",
    "rskpca",
    "(9)-(13), algorithm 1: the m x m problem W K^C W, W = diag(w^1/2), has the spectrum of "
    "the quantized n x n matrix; eigenfunctions by reweighting.",
    measures="difference of eigenvalues over the largest",
    control="the printed W^-1/2 phi, residual",
    no_trivial=IDENTITY,
    errata=[
        Erratum("E34", "misprint", "(10)", "1/m", "1/n, as in (9)"),
        Erratum(
            "E35", "misprint", "Algorithm 1", "phi = W^-1/2 phi~ with W = diag(w^1/2)", "W^-1 phi~"
        ),
    ],
)
def reduced_problem_has_the_spectrum(options):
    X, sigma = blob(options)
    kernel, found = gaussian(sigma), kp.shadow_select(X, sigma / 3)
    C, w, n = found.centers, found.weights, len(X)
    m, K_C = len(C), kp.gram(C, C, kernel)
    K_bar = K_C[np.ix_(found.labels, found.labels)]
    expected = np.linalg.eigvalsh(K_bar)[::-1][:m]
    expansion = kp.rskpca(found, kernel, min(m, 8), options.seed, centered=False)
    gap = np.abs(expansion.values - expected[: len(expansion.values)]).max() / expected[0]
    values, tilde = (part[..., -1] for part in np.linalg.eigh(np.sqrt(np.outer(w, w)) * K_C))

    def residual(eigenfunction):
        u = eigenfunction[found.labels]
        return np.linalg.norm(K_bar @ u - values * u) / (values * np.linalg.norm(u))

    right, printed = residual(tilde / np.sqrt(w)), residual(tilde / w**0.25)
    quantized, k = C[found.labels], len(expansion.values)
    wanted = np.abs(kp.features(X, kp.kpca(quantized, kernel, k, centered=False)))
    same = max(
        np.abs(np.abs(kp.features(X, model)) - wanted).max()
        for model in (expansion, kp.weighted_nystrom(quantized, found, kernel, k, options.seed))
    )
    largest = np.linalg.eigvalsh(kp.gram(X, X, kernel))[-1] / n
    return bounded(
        gap,
        1e-12,
        printed,
        f"The m x m problem has the spectrum of the quantized matrix to {gap:.1e}, and W^-1 phi its eigenfunctions, "
        f"not W^-1/2 phi.",
        f"n = {n}, m = {m}, l = 3",
        good=MENDED,
        note="with W^-1 phi, and 1/n in (10)",
        needs={
            "W^-1 phi": right < 1e-10 and same < 1e-8,
            "W^-1/2 phi is none": printed > 1e-3,
            "1/n and not 1/m": abs(values / n / largest - 1) < 0.2 < abs(values / m / largest - 1),
        },
        details=f"Features of all points, by RSKPCA and by the weighted Nystrom method, are as by kernel PCA of the "
        f"quantized ones to {same:.1e}. Residual of the eigenfunctions W^-1 phi: {right:.1e}; of W^-1/2 phi, as "
        f"printed: {printed:.2g} (right if W were diag(w)). The density (10) has 1/n, as (9) has: largest eigenvalue "
        f"{largest:.4g} of K/n, {values / n:.4g} with 1/n, {values / m:.4g} with the 1/m printed.",
    )


@claim(
    "RSKPCA-12",
    "rskpca",
    "(3), (11), (12): k~(x, y) = p^1/2(x) k(x, y) p^1/2(y) has the eigenvalues of k with density p, and "
    "eigenfunctions p^1/2 phi.",
    measures="difference of eigenvalues and features from the closed form of (3)",
    control="p in the place of p^1/2",
    no_trivial=IDENTITY,
)
def weighted_kernel_has_the_eigenvalues(options):
    # The integral of (12) by the trapezoid rule, whose error is below rounding: `rskpca` is the problem (12) on nodes.
    nodes, count = np.linspace(-9.0, 9.0, 181), 4
    p = stats.norm.pdf(nodes) * (nodes[1] - nodes[0])
    new = np.linspace(-2.0, 2.0, 9)
    values, phi = hermite(new, count)

    def distance(weights):
        model = kp.rskpca(
            kp.ReducedSet(nodes[:, None], weights),
            kp.gaussian(1.0),
            count,
            options.seed,
            centered=False,
        )
        features = np.abs(kp.features(new[:, None], model)) - np.abs(phi * np.sqrt(values))
        return max(np.abs(model.values - values).max(), np.abs(features).max())

    at_nodes = hermite(nodes, count)[1]
    K = kp.gram(new[:, None], nodes[:, None], kp.gaussian(1.0))
    residual = np.abs(K @ (p[:, None] * at_nodes) - values * phi).max()
    return bounded(
        distance(p),
        1e-12,
        distance(p**2 / (p**2).sum()),
        f"The first {count} eigenvalues of (12) by quadrature, and its features at new points, are those of the closed "
        f"form of (3).",
        f"{len(nodes)} nodes, exp(-(x - y)^2 / 2), p = N(0, 1)",
        needs={"the closed form satisfies (3)": residual < 1e-12},
        details=f"Features are lambda^1/2 phi. The closed form is that of normal points and a Gaussian kernel; it "
        f"satisfies (3) to {residual:.1e}.",
    )


@claim(
    "RSKPCA-8",
    "rskpca",
    "(7)-(9): the kernel density estimate has the mean K p, p smoothed by the kernel; that of a reduced set is near.",
    measures="standard errors of the estimate at the worst of 9 places",
    control="p in the place of K p",
    no_trivial=CHANCE,
    errata=[
        Erratum(
            "E81",
            "arguable",
            "Section 3, after (8)",
            "the kernel density estimate converges to p under some mild assumptions",
            "to K p; to p only if the kernel is normalized and its bandwidth goes to 0, and the paper's bandwidth is "
            "fixed",
        )
    ],
)
def density_estimate_is_smoothed(options):
    n, h, new = 20000, 0.5, np.linspace(-2.0, 2.0, 9)[:, None]
    X, kernel = np.random.default_rng(options.seed).standard_normal((n, 1)), kp.gaussian(h)

    def smoothed(h):
        """K p for p = N(0, 1) and a Gaussian kernel of bandwidth h."""
        return h * math.sqrt(2 * math.pi) * stats.norm.pdf(new[:, 0], scale=math.sqrt(1 + h * h))

    # the square of the kernel has the bandwidth h / sqrt(2)
    variance = smoothed(h / math.sqrt(2)) - smoothed(h) ** 2
    values, eps = kp.gram(X, new, kernel), h / 8
    unsmoothed = h * math.sqrt(2 * math.pi) * stats.norm.pdf(new[:, 0])
    found = kp.shadow_select(X, eps)
    reduced = kp.gram(new, found.centers, kernel) @ found.weights / n
    gap, allowed = np.abs(reduced - values.mean(0)).max(), kp.shadow_bounds(kernel, eps).mmd
    score, from_p = (standard_errors(values, mean, variance) for mean in (smoothed(h), unsmoothed))
    return bounded(
        score,
        mean_limit(len(new)),
        from_p,
        f"The estimate is {score:.2g} standard errors from K p, and {from_p:.3g} from p; that of shadows is within "
        f"{gap:.2g} of it.",
        f"n = {n}, p = N(0, 1), exp(-(x - y)^2 / (2 h^2)), h = {h}; shadows of h / 8",
        note="to K p, and to p if the bandwidth goes to 0",
        needs={"shadows": gap <= allowed},
        details=f"(9) of {len(found.weights)} shadows: theorem 5.1 allows a difference of {allowed:.2g}. The paper's "
        f"sentence that the estimate converges to p is right if the bandwidth goes to 0.",
    )


@claim(
    "RSKPCA-N",
    "rskpca",
    "(3)-(6): as n grows the eigenvalues of K / n converge to those of the operator.",
    measures="exponent of the error in n, that of a mean of independent terms being -1/2",
    control="eigenvalues of points of another variance",
    no_trivial=SLOPE,
)
def eigenvalues_converge(options):
    exact, replicates = hermite(0.0, 4)[0], 400  # of normal points and a Gaussian kernel
    sizes = np.array((8, 16, 32, 64, 128) + ((256, 512, 1024) if options.full else ()))
    late = settled(sizes)

    def error(spread, n, replicate):
        draws = np.random.default_rng([options.seed, n, replicate]).standard_normal((n, 1))
        return np.abs(
            kp.kpca(spread * draws, kp.gaussian(1.0), 4, centered=False).values / n - exact
        ).mean()

    def exponent(errors):
        return slope(sizes[late], errors[late].mean(1))

    found, others = (
        np.array([[error(spread, n, r) for r in range(count)] for n in sizes])
        for spread, count in ((1.0, replicates), (2.0, 200))
    )
    estimate = bootstrapped(exponent, found, options.seed)
    return rate(
        [estimate],
        -0.7,
        -0.3,
        bootstrapped(exponent, others, options.seed),
        f"The mean error of the first 4 eigenvalues falls as n^{estimate.value:.2f}.",
        f"n = {', '.join(map(str, sizes))}, {replicates} replicates; exponents from n = {sizes[late][0]}",
        details=f"Errors: {', '.join(f'{e:.2g}' for e in found.mean(1))}. The closed form is that of normal points and "
        f"a Gaussian kernel.",
    )


SHAPES = {
    "exp(-r^2/(2 s^2))": (kp.gaussian(1.0), 0.5),
    "exp(-r^2/s^2)": (gaussian(1.0), 0.5),
    "exp(-r/s)": (kp.laplacian(1.0), 1.0),
}


def steepest(kernel):
    """The largest slope of the kernel along the distance, by its bound for a small eps."""
    return kp.shadow_bounds(kernel, 1e-6).eigenvalues / 1e-6 / math.sqrt(2)


def at_the_edge(distance, which):
    """A distance of points at the edge of one shadow over its bound, for kernels of all kinds."""
    X, found = one_sided(500, 0.25), []
    for make in KERNELS.values():
        bound = getattr(kp.shadow_bounds(make(1.0), 0.25), which)
        found.append(distance(X, kp.shadow_select(X, 0.25), make(1.0)) / bound)
    return found


def at_distances(kernel, r):
    return kp.gram(np.reshape(r, (-1, 1)), np.zeros((1, 1)), kernel)[:, 0]


@claim(
    "RSKPCA-18",
    "rskpca",
    "(18): (k(a, b) - k(c, d))^2 <= C (|a - c|^2 + |b - d|^2), C = 1/(2 s^2) for the "
    "Gaussian, 1/s^2 for the Laplacian kernel.",
    measures="largest quotient of both sides, over the quoted C",
    control="the quoted constants",
    no_trivial=EXACT,
    errata=[
        Erratum("E30", "misprint", "(18)", "|a - b|^2 + |b - d|^2", "|a - c|^2 + |b - d|^2"),
        Erratum(
            "E31",
            "false",
            "(18), constants quoted from earlier work",
            "C = 1/(2 s^2) for the Gaussian, 1/s^2 for the Laplacian",
            "C = 2 L^2: .7358/s^2 for exp(-r^2/(2 s^2)), 1.4715/s^2 for exp(-r^2/s^2), 2/s^2 for "
            "exp(-r/s)",
        ),
    ],
)
def smoothness(options):
    rng, highest, found, sums = np.random.default_rng(options.seed), 0.0, {}, {}
    r, t = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 3, 601), np.geomspace(1e-4, 1, 60)))
    for name, (kernel, quoted) in SHAPES.items():
        limit = 2 * steepest(kernel) ** 2
        # opposite moves along the line, of all lengths r and steps t
        largest = (
            (at_distances(kernel, r) - at_distances(kernel, r + 2 * t)) ** 2 / (2 * t**2)
        ).max()
        for_sum = largest / 2  # |a - c| = |b - d| = t, and the square of their sum is 4 t^2
        for d in (1, 2, 5):
            (a, b), moves = rng.standard_normal((2, 4000, d)), 10 ** rng.uniform(-3, 0.5, 2)
            c, e = (z + move * rng.standard_normal((4000, d)) for z, move in zip((a, b), moves))
            k_ab, k_ce = (
                at_distances(kernel, np.linalg.norm(u - v, axis=1)) for u, v in ((a, b), (c, e))
            )
            steps = np.linalg.norm([a - c, b - e], axis=2)
            highest = max(highest, ((k_ab - k_ce) ** 2 / (steps**2).sum(0)).max() / limit)
            for_sum = max(for_sum, ((k_ab - k_ce) ** 2 / steps.sum(0) ** 2).max())
        found[name] = largest, quoted, limit
        if name != "exp(-r^2/s^2)":
            sums[name] = for_sum / quoted
    attained = [largest / limit for largest, _, limit in found.values()]
    printed = (1 - phi(0.5)) ** 2  # a = b = d, c elsewhere: the right side as printed is 0
    return counterexample(
        max(largest / quoted for largest, quoted, _ in found.values()),
        1.0,
        f"The quoted constants are exceeded by factors of "
        f"{', '.join(f'{a / b:.3g}' for a, b, _ in found.values())}; C = 2 L^2, with L the largest slope, is sharp.",
        "moves from 1e-4 to 1; R^1, R^2, R^5",
        note="the constants, which are quoted from earlier work",
        mended=bounded(
            max(highest, max(attained) / (1 + 1e-6)),
            1.0,
            min(largest / quoted for largest, quoted, _ in found.values()),
            "with C = 2 L^2; its control is the quoted constants.",
            no_trivial=SHARP,
        ),
        needs={
            "all three exceed by 30 %": min(a / b for a, b, _ in found.values()) > 1.3,
            "2 L^2 is attained": min(attained) > 0.98,
            "the misprint": printed > 0,
            "what the quoted constants do bound": max(sums.values()) <= 1 + 1e-9,
        },
        details="The constants times s^2: largest quotients found, quoted, and 2 L^2: "
        + "; ".join(f"{name} {a:.4g}, {b:g}, {c:.4g}" for name, (a, b, c) in found.items())
        + f". Random quadruples reach {highest:.3g} of 2 L^2, opposite moves on a line {min(attained):.4g}. The quoted "
        f"values do bound (k - k')^2 / (|a - c| + |b - d|)^2 for {' and '.join(sums)}, of which "
        f"{', '.join(f'{value:.3g}' for value in sums.values())} is reached. The right side is printed with |a - b| in "
        f"the place of |a - c|, a misprint: for a = b = d it is 0, the left {printed:.3g}.",
    )


@claim(
    "RSKPCA-T5.1",
    "rskpca",
    "Theorem 5.1: MMD(X, Cbar) <= sqrt(2 (kappa - phi(l^-p))).",
    measures="MMD over its bound",
    control="points 1.2 eps from their center",
    errata=[
        Erratum(
            "E80",
            "arguable",
            "Theorems 5.1, 5.3 and 5.4",
            "k satisfies (19)",
            "and phi does not increase, as for the paper's kernels; cos |x - y| satisfies (19), and for eps = 2 pi the "
            "bound is 0, where the MMD of 0 and pi in one shadow is 1",
        )
    ],
)
def distance_of_means(options):
    def bound(eps):
        return math.sqrt(2 * (1 - phi(eps)))

    def edge(ell, at=1 - 1e-9):
        X = one_sided(500, 1 / ell, at)
        return kp.mmd(X, kp.ReducedSet(X[:1], np.array([501.0])), gaussian(1.0)) / bound(1 / ell)

    worst, rows = quotients(
        options,
        lambda X, s, kernel, eps: (
            kp.mmd(X, s, kernel)
            / math.sqrt(2 * (1 - kp.gram(np.zeros((1, 1)), np.full((1, 1), eps), kernel)[0, 0]))
        ),
    )
    tight = [edge(ell) for ell in ELLS]
    edges = at_the_edge(kp.mmd, "mmd")
    # cos |x - y| is positive definite on the line, with the features (cos x, sin x)
    two = np.array([[0.0], [math.pi]])
    shadows = kp.shadow_select(two, 2 * math.pi)
    circle = np.exp(1j * two[:, 0]).mean() - np.exp(1j * shadows.centers[shadows.labels, 0]).mean()
    not_decreasing = abs(circle)
    return bounded(
        max(worst, *tight),
        1.0,
        edge(4.0, 1.2),
        f"The MMD reaches {max(tight):.4g} of its bound where all points lie at the edge of one shadow, and "
        f"{worst:.2g} on data.",
        f"l = {', '.join(f'{ell:g}' for ell in ELLS)}",
        trivial=math.sqrt(2) / bound(1 / ELLS[0]),
        note="for kernels that decrease with the distance",
        needs={
            "tight": min(tight) > 0.99,
            "tight for other kernels": 0.99 < min(edges) and max(edges) <= 1 + 1e-9,
            "a kernel that does not decrease exceeds the bound": not_decreasing > 0.9,
        },
        details=f"On data: {rows}. Exact kernel sums; {min(edges):.4g} is reached or more with {', '.join(KERNELS)}. "
        f"The bound takes that phi decreases, which (19) does not say: for cos |x - y| and eps = 2 pi it is 0, and the "
        f"points 0 and pi, in one shadow, have the MMD {not_decreasing:.3g}.",
    )


def eigenvalue_distance(X, found, kernel):
    """Root of the sum of squared differences of the eigenvalues of K / n and Kbar / n."""
    n, roots = len(X), np.sqrt(found.weights)
    exact, reduced = np.linalg.eigvalsh(kp.gram(X, X, kernel))[::-1] / n, np.zeros(n)
    reduced[: len(roots)] = (
        np.linalg.eigvalsh(np.outer(roots, roots) * kp.gram(found.centers, found.centers, kernel))[
            ::-1
        ]
        / n
    )
    return np.linalg.norm(exact - np.sort(reduced)[::-1])


@claim(
    "RSKPCA-T5.2",
    "rskpca",
    "Theorem 5.2: sum_i (lambda_i - lambdabar_i)^2 <= 2 C (sigma/l)^2 for eigenvalues of K/n and Kbar/n.",
    measures="distance of the spectra over its bound",
    control="the C that the paper quotes, in its place",
    errata=[
        Erratum(
            "E32",
            "note",
            "Theorem 5.2 with the numbers of E31",
            "2 C (s/l)^2",
            "the theorem is right for every C that satisfies (18); sharp: 2 L^2 (s/l)^2; the quoted C is "
            "too small for exp(-r^2/s^2)",
        )
    ],
)
def eigenvalues_are_close(options):
    def bound(kernel, eps):
        return kp.shadow_bounds(kernel, eps).eigenvalues

    worst, rows = quotients(
        options,
        lambda X, s, kernel, eps: eigenvalue_distance(X, s, kernel) / bound(kernel, eps),
        ELLS[:4],
    )
    found = {}
    for ell in (3, 5, 10, 30):
        X = two_clusters(600, 1.0, ell)
        found[ell] = eigenvalue_distance(X, kp.shadow_select(X, 1 / ell), gaussian(1.0))
    corrected = [value / bound(gaussian(1.0), 1 / ell) for ell, value in found.items()]
    grid = np.linspace(0.0, 3.0, 30001)
    slopes = [
        np.abs(np.diff(at_distances(make(1.0), grid))).max() / 1e-4 / steepest(make(1.0))
        for make in KERNELS.values()
    ]
    others = {
        name: steepest(kernel) ** 2 / quoted
        for name, (kernel, quoted) in SHAPES.items()
        if name != "exp(-r^2/s^2)"
    }
    # 2 C eps^2 with C = 1 / (2 sigma^2)
    printed = [(value * ell) ** 2 for ell, value in found.items()]
    return bounded(
        max(worst, *corrected),
        1.0,
        printed,
        f"Two clusters reach {max(corrected):.3g} of the sharp form, 2 L^2 eps^2 (half of what (18) gives), and data "
        f"{worst:.2g}.",
        "l = 3, 4, 5, 8; two clusters of 600",
        trivial=math.sqrt(2) / bound(gaussian(1.0), 1 / 3),
        needs={
            "tight": max(corrected) > 0.9,
            "slopes of other kernels": 0.999 < min(slopes) and max(slopes) <= 1 + 1e-6,
            "the quoted C for the others": max(others.values()) <= 1 + 1e-9,
        },
        details=f"The theorem holds for every C that satisfies (18). Distance over the sharp bound on data {rows}; on "
        f"two clusters {', '.join(f'{v:.3g}' for v in corrected)}. With the C = 1/(2 sigma^2) that the paper quotes, "
        f"and its exp(-r^2/sigma^2), the bound is exceeded by factors of {', '.join(f'{v:.3g}' for v in printed)} for "
        f"l = 3, 5, 10, 30 (a consequence of E31). The quoted C are enough, by the sharp form, for "
        f"{' and '.join(others)}: L^2 is {', '.join(f'{v:.3g}' for v in others.values())} times these.",
    )


@claim(
    "RSKPCA-T5.3",
    "rskpca",
    "Theorem 5.3: |K_n - Kbar_n|_HS <= 2 kappa sqrt(2 (kappa - phi(l^-p))).",
    measures="Hilbert-Schmidt distance over its bound",
    control="the bound as printed, at kappa = .01",
    errata=[
        Erratum(
            "E33",
            "misprint",
            "Theorem 5.3",
            "2 kappa sqrt(2 (kappa - phi))",
            "2 sqrt(kappa) sqrt(2 (kappa - phi)), as in theorem 5.4; sharp: sqrt(2 (kappa^2 - phi^2))",
        )
    ],
)
def operators_are_close(options):
    mended, printed, sharpest, means = {}, {}, 0.0, []
    for kappa in (0.01, 0.1, 1.0, 10.0):
        for ell in ELLS:
            kernel, X = gaussian(1.0, kappa), one_sided(500, 1 / ell)
            found = kp.shadow_select(X, 1 / ell)
            gap = kp.operator_distance(X, found, kernel)
            mended[kappa, ell] = gap / (
                2 * math.sqrt(kappa) * math.sqrt(2 * kappa * (1 - phi(1 / ell)))
            )
            printed[kappa, ell] = mended[kappa, ell] / math.sqrt(kappa)
            bounds = kp.shadow_bounds(kernel, 1 / ell)
            sharpest = max(sharpest, gap / bounds.operator)
            means.append(kp.mmd(X, found, kernel) / bounds.mmd)
    edges = at_the_edge(kp.operator_distance, "operator")
    on_data, _ = quotients(
        options,
        lambda X, s, kernel, eps: (
            kp.operator_distance(X, s, kernel) / kp.shadow_bounds(kernel, eps).operator
        ),
    )
    return counterexample(
        max(printed.values()),
        1.0,
        f"With 2 kappa the bound is exceeded {max(printed.values()):.3g} times at kappa = .01; with 2 sqrt(kappa) "
        f"{max(mended.values()):.3g} of it is reached.",
        "kappa = .01, .1, 1, 10; all points at the edge of a shadow, and data",
        good=MENDED,
        note="with sqrt(kappa) for kappa",
        mended=bounded(
            max(mended.values()),
            1.0,
            max(printed.values()),
            "with 2 sqrt(kappa); its control is the printed kappa.",
            trivial=1 / math.sqrt(2 * (1 - phi(1 / 3))),
        ),
        needs={
            "the sharp form, attained": 0.99 < sharpest <= 1 + 1e-9 and on_data <= 1,
            "the sharp form of other kernels": 0.99 < min(edges) and max(edges) <= 1 + 1e-9,
            "theorem 5.1 at each kappa": 0.99 < min(means) and max(means) <= 1 + 1e-9,
        },
        details=f"2 sqrt(kappa) sqrt(2 (kappa - phi)) is the form that theorem 5.4 uses; {sharpest:.4g} of the sharp "
        f"sqrt(2 (kappa^2 - phi^2)) is reached, on data {on_data:.2g}. With 2 kappa, as printed, at l = 4: "
        + "; ".join(
            f"kappa = {kappa:g}: {value:.3g}" for (kappa, ell), value in printed.items() if ell == 4
        )
        + " (above 1: exceeded). No effect at kappa = 1, the paper's kernels.",
    )


@claim(
    "RSKPCA-T5.4",
    "rskpca",
    "Theorem 5.4: if 2 sqrt(kappa) |eps'| < delta_D / 2, the projections on D leading "
    "eigenspaces differ by at most 2 sqrt(2 kappa (kappa - phi)) / delta_D in Hilbert-Schmidt norm.",
    measures="distance of the projections over its bound",
    control="points 3 eps from their center",
)
def eigenspaces_are_close(options):
    def quotient(X, found, kernel, eps, D):
        """(distance over bound, bound), the assumption met, or infinity."""
        values = kp.kpca(X, kernel, D + 1, centered=False).values / len(X)
        bound, delta = (
            shadow_projection_bound(kernel, eps, values, D),
            (values[D - 1] - values[D]) / 2,
        )
        gap = kp.projection_distance(
            kp.kpca(X, kernel, D, centered=False),
            kp.rskpca(found, kernel, D, centered=False),
        )
        kappa_phi = kp.gram(np.zeros((1, 1)), np.full((1, 1), eps), kernel)[0, 0]
        return gap / bound if 2 * math.sqrt(2 * (1 - kappa_phi)) < delta / 2 else math.inf, bound

    # All points at one edge: the operators' difference is all between the two eigenspaces. To first order in eps no set
    # comes nearer than sqrt(2) / 4 to the bound: |E|_HS >= sqrt(2) |E off the blocks|_HS.
    kernel, ell, rng = gaussian(1.0), 12.0, np.random.default_rng(options.seed)
    tight, bound = {}, 0.0
    for at in (1 - 1e-9, 3.0):
        X = one_sided(4000, 1 / ell, at)
        center = (
            kp.ReducedSet(X[:1], np.array([4001.0])) if at > 1 else kp.shadow_select(X, 1 / ell)
        )
        tight[at], bound = quotient(X, center, kernel, 1 / ell, 1)
    X = rng.standard_normal((1200, 1))
    rows = {
        D: quotient(X, kp.shadow_select(X, 1.5 / 90), gaussian(1.5), 1.5 / 90, D) for D in (1, 2)
    }
    usual = []
    for name, Y, sigma in point_sets(options):
        top = kp.kpca(Y, gaussian(sigma), 2, centered=False).values / len(Y)
        usual.append(f"{name} {8 * math.sqrt(2) / (top[0] - top[1]):.3g}")
    largest, control = tight.values()
    return bounded(
        max(largest, *(value for value, _ in rows.values())),
        1.0,
        control,
        f"The distance reaches {largest:.3g} of its bound where all points lie at one edge, l = {ell:g}, and "
        f"{max(value for value, _ in rows.values()):.2g} on normal points, l = 90.",
        "4001 points at an edge; 1-D normal points, D = 1, 2",
        trivial=math.sqrt(2) / bound,
        needs={"as tight as can be": largest > 0.34},
        details=f"To first order in eps no set exceeds sqrt(2)/4 = .354 of the bound (by theory). On 1200 normal "
        f"points: {'; '.join(f'D = {D}: {value:.2g}' for D, (value, _) in rows.items())}. The assumption takes l above "
        f"about 8 sqrt(2) / (lambda_D - lambda_D+1), for D = 1: {'; '.join(usual)}; l from 3 to 5, as in the "
        f"experiments, does not meet it, unless points lie much nearer to their centers than eps.",
    )


@claim(
    "RSKPCA-K",
    "rskpca",
    "(14), (15): Laplacian eigenmaps, diffusion maps and normalised cuts take the same reweighting.",
    measures="difference of coordinates over the largest",
    control="centers without their weights",
    no_trivial=IDENTITY,
)
def manifold_methods(options):
    X, sigma = blob(options, 400)
    found, kernel = kp.shadow_select(X, sigma / 3), gaussian(sigma)
    C = found.centers
    K = kp.gram(C, C, kernel)[np.ix_(found.labels, found.labels)]
    to_X = kp.gram(X, C, kernel)[:, found.labels]

    def relative(model, expected):
        """Largest difference of the coordinates of all points, up to signs, over the largest of them."""
        expected = np.abs(expected)
        return np.abs(np.abs(kp.features(X, model)) - expected).max() / expected.max()

    worst, control, q = 0.0, math.inf, K.sum(1)
    for alpha, time in ((0.0, 1.0), (0.5, 2.0), (1.0, 0.5)):
        K_a = K / np.outer(q, q) ** alpha
        D = K_a.sum(1)
        values, U = np.linalg.eigh(K_a / np.sqrt(np.outer(D, D)))
        values, psi = values[::-1][1:4], (U / np.sqrt(D)[:, None])[:, ::-1][:, 1:4]
        steps = to_X / q**alpha
        psi_X = steps @ psi / steps.sum(1)[:, None] / values  # P psi = mu psi, at any point
        expected = psi_X * values**time * math.sqrt(D.sum())
        gap, unweighted = (
            relative(kp.diffusion_map(centers, kernel, 3, alpha=alpha, time=time), expected)
            for centers in (found, C)
        )
        worst, control = max(worst, gap), min(control, unweighted)
        if alpha == 0:
            maps, cut = kp.laplacian_eigenmap(found, kernel, 3), kp.normalized_cut(found, kernel, 4)
            with_first = np.column_stack([np.full(len(X), 1 / math.sqrt(D.sum())), psi_X])
            worst = max(
                worst,
                np.abs(maps.values - (1 - values)).max(),
                np.abs(cut.values - (1 - np.append(1.0, values))).max(),
                relative(maps, psi_X),
                relative(cut, with_first * np.sqrt(to_X.sum(1))[:, None]),
            )
    return bounded(
        worst,
        1e-8,
        control,
        f"Coordinates of the weighted m x m problem are those of the n x n problem of quantized points to {worst:.1e}.",
        f"n = {len(X)}, m = {len(C)}; alpha = 0, 1/2, 1 and 1, 2, 1/2 steps",
        details="Diffusion maps, Laplacian eigenmaps and normalized cuts, at all points, by the Nystrom extension, and "
        "their eigenvalues.",
    )


def in_feature_space(K):
    """Points with these inner products, a row each."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-15 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def projection(A):
    """Onto the span of the columns of A."""
    Q = np.linalg.qr(A)[0]
    return Q @ Q.T


def leading(A, D):
    """The projection onto the D leading eigenvectors of A."""
    return projection(np.linalg.eigh(A)[1][:, -D:])


def mixed(model, seed):
    """The model with a rotation of its components, and a change of their lengths and signs."""
    rng, k = np.random.default_rng(seed), model.coef.shape[1]
    Q = np.linalg.qr(rng.standard_normal((k, k)))[0] * rng.uniform(0.5, 2.0, k)
    offset = None if model.offset is None else model.offset @ Q
    return model._replace(coef=model.coef @ Q, offset=offset)


def models_and_projections(X, found, kernel, K):
    """Models of X and of its reduced set, and the projections onto their spans, computed densely in feature space."""
    n, w = len(X), found.weights
    Phi = in_feature_space(K)
    of_X, of_C = Phi[:n], Phi[n:]
    shifted_X, shifted_C = of_X - of_X.mean(0), of_C - w @ of_C / n
    A, B = of_X.T @ of_X, of_C.T @ (w[:, None] * of_C)
    vectors = np.linalg.eigh(B)[1][:, -3:]
    return (
        (kp.kpca(X, kernel, 1, centered=False), leading(A, 1)),
        (kp.kpca(X, kernel, 3, centered=False), leading(A, 3)),
        (kp.kpca(X, kernel, 2), leading(shifted_X.T @ shifted_X, 2)),
        (kp.rskpca(found, kernel, 3, centered=False), projection(vectors)),
        (kp.rskpca(found, kernel, 2), leading(shifted_C.T @ (w[:, None] * shifted_C), 2)),
        (kp.weighted_nystrom(X, found, kernel, 3), projection(A @ vectors)),
    ), (of_X, of_C)


@claim(
    "RSKPCA-20",
    "rskpca",
    "(20), (22), theorem 5.4: the MMD, the distance of operators and that of projections are those of the points in "
    "feature space; so models of one span are at distance 0.",
    measures="difference of squared distances, in units of k(x, x), its square, and 1",
    control="the overlaps of equal components alone, in the distance of projections",
    no_trivial=IDENTITY,
)
def distances_are_those_of_the_feature_space(options):
    n, worst, control, farthest = 400, 0.0, math.inf, 0.0
    X = uneven_points(n, options.seed)
    found = kp.shadow_select(X, 1.0)
    w, P = found.weights, np.concatenate([X, found.centers])
    for kernel, by_hand in BY_HAND.values():
        K = by_hand(P, P)
        pairs, (of_X, of_C) = models_and_projections(X, found, kernel, K)
        unit = K.diagonal().max()
        means = of_X.mean(0) - w @ of_C / n
        operators = (of_X.T @ of_X - of_C.T @ (w[:, None] * of_C)) / n
        worst = max(
            worst,
            abs(kp.mmd(X, found, kernel) ** 2 - means @ means) / unit,
            abs(kp.operator_distance(X, found, kernel) ** 2 - (operators**2).sum()) / unit**2,
        )
        pairs += tuple((mixed(model, options.seed), P) for model, P in pairs)
        for (one, P_one), (other, P_other) in itertools.product(pairs, repeat=2):
            square = ((P_one - P_other) ** 2).sum()
            worst = max(worst, abs(kp.projection_distance(one, other) ** 2 - square))
            farthest = max(farthest, square)
        Q = np.linalg.qr(np.random.default_rng(options.seed).standard_normal((3, 3)))[0]
        control = min(control, 2 * 3 - 2 * (Q.diagonal() ** 2).sum())
    return bounded(
        worst,
        1e-9,
        control,
        f"MMD, distances of operators, and of projections between {len(pairs)} models are the dense ones to "
        f"{worst:.1e}.",
        f"n = {n}, m = {len(w)}; {', '.join(BY_HAND)} kernels; exact and reduced kernel PCA, weighted Nystrom",
        details=f"Of the models of each kernel, half are mixed within their spans. All pairs, in both orders, are at "
        f"the distance of the dense projections, up to {math.sqrt(farthest):.3g}; so the distance is symmetric, "
        f"satisfies the triangle inequality, and is 0 between models of one span.",
    )


def coordinates(new, X, centers, kernel):
    """{what: numbers} of every function that takes weighted centers, up to the signs of components."""
    models = {
        "rskpca": kp.rskpca(centers, kernel, 3, centered=False),
        "centered rskpca": kp.rskpca(centers, kernel, 3),
        "weighted_nystrom": kp.weighted_nystrom(X, centers, kernel, 3),
        "diffusion_map": kp.diffusion_map(centers, kernel, 3),
        "laplacian_eigenmap": kp.laplacian_eigenmap(centers, kernel, 3),
        "normalized_cut": kp.normalized_cut(centers, kernel, 3),
    }
    numbers = {name: np.abs(kp.features(new, model)) for name, model in models.items()}
    numbers |= {f"values of {name}": model.values for name, model in models.items()}
    # their squares have rounding errors of 1e-15
    numbers["mmd"] = np.square(kp.mmd(X, centers, kernel))
    numbers["operator_distance"] = np.square(kp.operator_distance(X, centers, kernel))
    return numbers


def farthest_apart(found, others):
    """(the largest difference of two such dictionaries over the largest number of its kind, its name)."""
    gaps = {
        name: np.abs(values - others[name]).max() / np.abs(values).max()
        for name, values in found.items()
    }
    name = max(gaps, key=gaps.get)
    return gaps[name], name


@claim(
    "RSKPCA-13",
    "rskpca",
    "(9), (10), (13): a center of weight w stands for w points, in models, maps and distances.",
    measures="largest difference over the largest number of its kind",
    control="weights n / m",
    no_trivial=IDENTITY,
)
def weights_are_repetitions(options):
    kernel, new = kp.gaussian(1.5), uneven_points(50, options.seed, 1)
    X = uneven_points(400, options.seed)
    found = kp.shadow_select(X, 1.0)
    C, w = found.centers, found.weights
    n, m = len(X), len(w)
    expected = coordinates(new, X, found, kernel)
    points = np.repeat(C, w.astype(int), 0)
    halves = np.concatenate([[w[0] / 2], w[1:], [w[0] / 2, 0.0]])
    same = {
        "points": points,
        "halves": kp.ReducedSet(np.concatenate([C, C[:1], new[:1]]), halves),
    }
    gaps = {
        what: farthest_apart(coordinates(new, X, centers, kernel), expected)
        for what, centers in same.items()
    }
    for name, centered in (("rskpca", False), ("centered rskpca", True)):
        model = kp.kpca(points, kernel, 3, centered=centered)
        exact = {name: np.abs(kp.features(new, model)), f"values of {name}": model.values}
        gaps[f"kpca {name}"] = farthest_apart(exact, expected)
    equal = coordinates(new, X, kp.ReducedSet(C, np.full(m, n / m)), kernel)
    apart = min(
        np.abs(values - expected[name]).max() / np.abs(expected[name]).max()
        for name, values in equal.items()
    )
    what = max(gaps, key=gaps.get)
    return bounded(
        gaps[what][0],
        1e-8,
        apart,
        f"{len(expected)} kinds of numbers of weighted centers are those of repeated points to {gaps[what][0]:.1e}.",
        f"n = {n}, m = {m}; {', '.join(name for name in expected if 'values' not in name)}",
        details=f"The same numbers come from weighted centers, from their copies, from centers cut in two halves with "
        f"one of weight 0 added, and from kernel PCA of the copies; they differ most in {gaps[what][1]} ({what}).",
    )


@claim(
    "RSKPCA-19",
    "rskpca",
    "(19): a radial kernel sees distances over sigma alone, and the sums over points have no order; so reduced sets, "
    "models and distances do not depend on the order, a rotation, a translation or the unit.",
    measures="largest difference over the largest number of its kind",
    control="a kernel of the city-block distance under the rotation",
    no_trivial=IDENTITY,
)
def nothing_depends_on_axes_order_and_unit(options):
    rng = np.random.default_rng(options.seed)
    X, new = uneven_points(400, options.seed), uneven_points(50, options.seed, 1)
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    found = kp.shadow_select(X, 1.0)
    C, w = found.centers, found.weights
    order, of_centers = rng.permutation(len(X)), rng.permutation(len(C))

    def moved(points):
        return points @ Q + [1.0, -2.0, 3.0]

    def rotated(kernel):
        return coordinates(moved(new), moved(X), kp.ReducedSet(moved(C), w), kernel)

    gaps = {}
    for kernel, tripled in (
        (kp.gaussian(1.5), kp.gaussian(4.5)),
        (kp.laplacian(2.0), kp.laplacian(6.0)),
    ):
        expected = coordinates(new, X, found, kernel)
        permuted = kp.ReducedSet(C[of_centers], w[of_centers])
        for what, numbers in (
            ("rotation", rotated(kernel)),
            ("order", coordinates(new, X[order], permuted, kernel)),
            ("unit", coordinates(3 * new, 3 * X, kp.ReducedSet(3 * C, w), tripled)),
        ):
            gaps[what] = max(gaps.get(what, (0.0, "")), farthest_apart(numbers, expected))
    selections = {
        "shadows": lambda X: kp.shadow_select(X, 1.0),
        "k-means": lambda X: kp.kmeans_select(X, 20, options.seed),
        "herding": lambda X: kp.herd(X, kp.gaussian(1.5), 20),
        "kernel thinning": lambda X: kp.kernel_thin(X, kp.gaussian(1.5), 20, options.seed),
    }
    for name, select in selections.items():
        here, there = select(X), select(moved(X))
        gap = np.abs(moved(here.centers) - there.centers).max()
        gaps[name] = max(gap, np.abs(here.weights - there.weights).max()), "centers"
    herded = [kp.herd(points, kp.gaussian(1.5), 20).centers for points in (X, X[order])]
    gaps["herding's order"] = np.abs(herded[0] - herded[1]).max(), "centers"
    city_block = kp.laplacian(2.0, norm=1)
    control = farthest_apart(rotated(city_block), coordinates(new, X, found, city_block))[0]
    what = max(gaps, key=gaps.get)
    return bounded(
        gaps[what][0],
        1e-8,
        control,
        f"Reduced sets, models, maps and distances are the same when points are moved, permuted or scaled, to "
        f"{gaps[what][0]:.1e}.",
        f"n = {len(X)}, m = {len(C)}; gaussian and laplacian kernels",
        details=f"Points are rotated and translated, or taken in another order or unit; {', '.join(selections)} take "
        f"the moved points. The largest difference is in {gaps[what][1]} ({what}).",
    )


@claim(
    "RSKPCA-C",
    "rskpca",
    "Table 2: RSKPCA and the Nystrom methods take O(m n + m^3) to train; RSKPCA holds O(m r) numbers and takes m "
    "kernel values a new point, the Nystrom methods O(n r) and n.",
    measures="counted kernel values over m (m + 1), n m + m (m + 1) and, at new points, m",
    control="n points kept for new points, as the Nystrom methods do",
)
def costs(options):
    kernel, count = counted_kernel(2.0)
    rng, r, new = np.random.default_rng(options.seed), 5, 300
    found, trivial, exact, herding, control = {}, math.inf, True, [], math.inf
    for n, m in ((1000, 100), (2000, 100), (2000, 200)):
        X, square = rng.standard_normal((n, 3)), m * (m + 1)
        drawn = kde_pare(X, m, options.seed)
        ours = kp.rskpca(drawn, kernel, r, centered=False)
        theirs = kp.weighted_nystrom(X, drawn, kernel, r)
        at = X[:new].copy()
        evaluation, kept = (count(lambda f=f: kp.features(at, f)) / new for f in (ours, theirs))
        found[n, m] = (
            count(lambda: kp.rskpca(drawn, kernel, r, centered=False)) / square,
            count(lambda: kp.weighted_nystrom(X, drawn, kernel, r)) / (n * m + square),
            evaluation / m,
        )
        trivial = min(
            trivial, n * n / 2 / (n * m + square)
        )  # kernel PCA of all points, and no better at new points
        herding.append(count(lambda: kp.herd(X, kernel, 20)) / n**2)
        held = [model.points.size + model.coef.size for model in (ours, theirs)]
        exact &= held == [m * (3 + r), n * (3 + r)] and kept == n
        control = min(control, kept / m)
    return bounded(
        max(max(shares) for shares in found.values()),
        1.0,
        control,
        "Counted kernel values are at most m (m + 1) for RSKPCA, n m + m (m + 1) for weighted Nystrom, and m at a new "
        "point.",
        "d = 3, r = 5; trivial: kernel PCA, n^2/2",
        trivial=trivial,
        needs={"m (d + r), n (d + r), n": exact, "herding": max(herding) < 1},
        details="Shares of these numbers, in that order: "
        + "; ".join(
            f"n = {n}, m = {m}: {', '.join(f'{share:.3f}' for share in shares)}"
            for (n, m), shares in found.items()
        )
        + f". Held are m (d + r) and n (d + r) numbers. Herding of 20 points takes "
        f"{', '.join(f'{share:.2f}' for share in herding)} n^2 kernel values, with the means computed once, and not "
        f"n^2 m. By reading, and not judged: the eigenproblem is O(m^3), and Lanczos's method here takes O(m^2 r); a "
        f"pass of k-means is O(m n), and KDE paring O(m).",
    )


@experiment(
    "RSKPCA-C-time",
    "rskpca",
    "Section 4: the selection of shadows takes O(m n).",
    measures="largest exponent of the processor seconds",
    usual=None,
)
def shadows_take_m_n(options):
    rng, d = np.random.default_rng(options.seed), 30

    def seconds(n, m):
        centers = 10.0 * rng.standard_normal((m, d))
        X = centers[rng.integers(0, m, n)] + 0.01 * rng.standard_normal((n, d))
        return processor_seconds(lambda: kp.shadow_select(X, 1.0))

    sizes, clusters = (8000, 16000, 32000), (100, 200, 400)
    found = {
        "n": slope(sizes, [seconds(n, 200) for n in sizes]),
        "m": slope(clusters, [seconds(16000, m) for m in clusters]),
    }
    return observation(
        {f"in {what}": exponent <= 1.25 for what, exponent in found.items()},
        f"Exponents of the seconds: {', '.join(f'{exponent:.2f} in {what}' for what, exponent in found.items())}.",
        "n = 8000, 16000, 32000; m = 100, 200, 400 clusters in 30 dimensions",
        measured=max(found.values()),
        bound=1.25,
        details="The number of distances is counted in RSKPCA-A2, by the listing.",
    )


# ----------------------------------------------------------------------------------------------------------------------
# The other reduced sets of section 6, by their definitions and quality.


def rows_of(centers, X):
    """The row of X that is equal to each center, and whether all centers are different rows."""
    distances = spatial.distance.cdist(centers, X)
    rows = distances.argmin(1)
    return rows, not distances.min(1).any() and len(np.unique(rows)) == len(rows)


def herding_loss(K, rows):
    """The most by which a point of `rows` misses the herding objective's maximum over the points that are left.

    The objective of point t + 1 is mean_i k(x_i, x) - sum_{s <= t} k(x_s, x) / (t + 1) (Chen, Welling, Smola 2010).
    """
    means, sums, taken, worst = K.mean(1), np.zeros(len(K)), np.zeros(len(K)), 0.0
    for t, row in enumerate(rows):
        objective = means - sums / (t + 1) - taken
        worst = max(worst, objective.max() - objective[row])
        sums += K[row]
        taken[row] = math.inf
    return worst


def misplaced(K, rows, labels):
    """The most by which the squared distance of a point to its center exceeds that to its nearest, in feature space."""
    squares = K[rows, rows] - 2 * K[:, rows]  # up to k(x, x)
    return (squares[np.arange(len(K)), labels] - squares.min(1)).max()


@claim(
    "RSKPCA-H",
    "rskpca",
    "Section 6, quoted: kernel herding takes the points by the rule of Chen, Welling, Smola (2010), each of weight "
    "n / m.",
    measures="loss of the rule's objective against its best point, over the largest k(x, x)",
    control="the points of the largest density, without repulsion",
    no_trivial=IDENTITY,
)
def herding_follows_its_rule(options):
    n, m, loss, control, alike, distinct = 700, 60, 0.0, math.inf, True, True
    X = uneven_points(n, options.seed)
    for kernel, by_hand in BY_HAND.values():
        K, found = by_hand(X, X), kp.herd(X, kernel, m)
        rows, all_distinct = rows_of(found.centers, X)
        unit = K.diagonal().max()
        loss = max(loss, herding_loss(K, rows) / unit, misplaced(K, rows, found.labels) / unit)
        control = min(control, herding_loss(K, np.argsort(-K.mean(1))[:m]) / unit)
        alike &= (found.weights == n / m).all()
        alike &= np.array_equal(kp.herd(X, kernel, 9).centers, found.centers[:9])
        distinct &= all_distinct
    return bounded(
        loss,
        1e-12,
        control,
        f"Each of {m} points attains the maximum of the rule's objective by NumPy, to {loss:.1e} of k(x, x).",
        f"n = {n}, m = {m}; {', '.join(BY_HAND)} kernels",
        needs={"m different points": distinct, "weights n / m, the first j for m = j": alike},
        details="Labels give the nearest center in feature space. The first 9 points are those of a set of 9.",
    )


def mmd_of_rows(K, rows):
    """MMD of all points and of these with equal weights, from the Gram matrix."""
    return math.sqrt(max(0.0, K.mean() - 2 * K[rows].mean() + K[np.ix_(rows, rows)].mean()))


def mmd_of_random_rows(K, m):
    """Root mean square of the MMD of all points and of m random ones: the variance of a finite population's mean."""
    n = len(K)
    return math.sqrt((n - m) / (n - 1) / m * (K.diagonal().mean() - K.mean()))


@claim(
    "RSKPCA-H-rate",
    "rskpca",
    "Section 6, quoted: points of kernel herding are good representatives: their MMD falls faster in m than that of "
    "random points, m^-1/2 (Chen, Welling, Smola 2010, have m^-1 in finite dimension).",
    measures="exponent of the MMD in m",
    control="the points of the largest density, without repulsion",
    no_trivial=SLOPE,
)
def herding_represents_all_points(options):
    n, replicates, sizes = 1000, 20, np.array((4, 8, 16, 32, 64))
    kernel, by_hand = BY_HAND["gaussian"]
    herded, densest, at_random = np.zeros((3, len(sizes), replicates))
    for r in range(replicates):
        X = uneven_points(n, options.seed, r)
        K, centers = by_hand(X, X), kp.herd(X, kernel, sizes[-1]).centers
        orders = rows_of(centers, X)[0], np.argsort(-K.mean(1))
        for s, m in enumerate(sizes):
            herded[s, r], densest[s, r] = (mmd_of_rows(K, rows[:m]) for rows in orders)
            at_random[s, r] = mmd_of_random_rows(K, m)
    late = settled(sizes)

    def exponent(distances):
        return slope(sizes[late], distances[late].mean(1))

    share = (herded / at_random)[-1]
    estimate = bootstrapped(exponent, herded, options.seed)
    return rate(
        [estimate],
        -1.2,
        -0.65,
        bootstrapped(exponent, densest, options.seed),
        f"The MMD falls as m^{estimate.value:.2f}; at m = {sizes[-1]} it is {share.mean():.2g} of the root mean square "
        f"of random points.",
        f"n = {n}, m = {', '.join(map(str, sizes))}, {replicates} sets",
        needs={"below half of random points": share.max() < 0.5},
    )


def kmeans_defect(X, found, nearest):
    """The largest defect of a k-means set: a weight that is no count, a center that is not the mean of its points, and,
    if `nearest`, a point with a nearer center."""
    m = len(found.centers)
    counts = np.bincount(found.labels, minlength=m)
    means = np.array([X[found.labels == j].mean(0) for j in range(m)])
    squares = spatial.distance.cdist(X, found.centers, "sqeuclidean")
    farther = (squares[np.arange(len(X)), found.labels] - squares.min(1)).max() if nearest else 0.0
    return max(np.abs(found.weights - counts).max(), np.abs(found.centers - means).max(), farther)


@claim(
    "RSKPCA-M",
    "rskpca",
    "Section 6, quoted: the reduced set of k-means has the means of the points nearest to each center, weighted by "
    "their counts (Zhang, Kwok 2010).",
    measures="largest defect of a weight, a mean, or a squared distance",
    control="weights n / m",
    no_trivial=IDENTITY,
)
def kmeans_sets_are_means_and_counts(options):
    n, m, worst, control = 1500, 40, 0.0, math.inf
    X = uneven_points(n, options.seed)
    for most in (1, 2, 300):
        found = kp.kmeans_select(X, m, options.seed, max_iterations=most)
        worst = max(worst, kmeans_defect(X, found, most == 300))
        equal = found._replace(weights=np.full(m, n / m))
        control = min(control, kmeans_defect(X, equal, most == 300))
    # k-means++ never takes a place twice while another one has points
    places, counts = X[:m], np.random.default_rng(options.seed).integers(1, 30, m)
    copies = np.repeat(places, counts, 0)
    for seed in range(5):
        found = kp.kmeans_select(copies, m, seed)
        order = rows_of(found.centers, places)[0]
        worst = max(
            worst,
            np.abs(found.centers - places[order]).max(),
            np.abs(found.weights - counts[order]).max(),
        )
    return bounded(
        worst,
        1e-9,
        control,
        f"The {m} centers are the means of their points, and the weights are the counts.",
        f"n = {n}, m = {m}",
        details=f"So are they where the passes are limited to 1 and 2; at convergence no point has a nearer center. "
        f"From copies of {m} places all starts get these places and their counts.",
    )


@claim(
    "RSKPCA-M-start",
    "rskpca",
    "k-means++ (Arthur, Vassilvitskii 2007): the next center is a point, with probability proportional to its squared "
    "distance from those before, and the best of several starts is returned.",
    measures="standard errors of the number of starts that end in the worse partition",
    control="distances in the place of their squares",
    no_trivial=CHANCE,
)
def kmeans_starts_by_squared_distances(options):
    # On a line at 0, 10, 16. Only a start at the last two ends in the partition {0, 10}, {16}, which is the worse one.
    places, counts, trials = np.array([0.0, 10.0, 16.0]), np.array([1, 6, 3]), 1000
    X = np.repeat(places, counts)[:, None]

    def chance(power):
        """That a start has the second and third place, where the powers of distances count."""
        moves = counts * np.abs(places[:, None] - places) ** power
        moves /= moves.sum(1, keepdims=True)
        shares = counts / counts.sum()
        return shares[1] * moves[1, 2] + shares[2] * moves[2, 1]

    def score(count, probability):
        return abs(count / trials - probability) / math.sqrt(
            probability * (1 - probability) / trials
        )

    def worse(restarts):
        draws = range(trials * options.seed, trials * (options.seed + 1))
        sets = (kp.kmeans_select(X, 2, seed, restarts=restarts) for seed in draws)
        return sum(7 in found.weights for found in sets)

    found = {restarts: worse(restarts) for restarts in (1, 3)}
    return bounded(
        max(score(found[restarts], chance(2) ** restarts) for restarts in found),
        mean_limit(2),
        score(trials * chance(1), chance(2)),
        f"{found[1]} of {trials} starts end in the worse partition, expected {trials * chance(2):.0f}, and {found[3]} "
        f"of the best of three, expected {trials * chance(2) ** 3:.0f}.",
        "1, 6 and 3 points at 0, 10, 16; two centers",
    )


@claim(
    "RSKPCA-Thin",
    "rskpca",
    "Kernel thinning and Compress++ (Dwivedi, Mackey 2021; Shetty, Dwivedi, Mackey 2022): m points of weight n / m "
    "that are nearer to all points than random ones, of which Compress++ keeps 8 n^1/2 on its way.",
    measures="MMD over the root mean square of m random points', of Compress++ and twice that of kernel thinning",
    control="random points in the place of the balanced halves",
    no_trivial=QUOTIENT,
)
def thinned_points_represent_all(options):
    n, m, draws, sigma = 4096, 128, 6, 3.0
    kernel, kept = kp.gaussian(sigma), int(8 * math.sqrt(n))
    X = uneven_points(n, options.seed)
    K = np.exp(-spatial.distance.cdist(X, X, "sqeuclidean") / (2 * sigma**2))
    thinned, compressed, larger, right = [], [], [], True
    for seed in seeds(options, draws):
        for found, shares in (
            (kp.kernel_thin(X, kernel, m, seed), thinned),
            (kp.compress_thin(X, kernel, m, seed, g=2), compressed),
            (kp.compress_thin(X, kernel, m, seed, g=4), larger),
        ):
            rows, distinct = rows_of(found.centers, X)
            right &= distinct and (found.weights == n / m).all()
            right &= misplaced(K, rows, found.labels) < 1e-12
            shares.append(mmd_of_rows(K, rows) / mmd_of_random_rows(K, m))
    thinned, compressed, larger = (
        np.linalg.norm(shares) / math.sqrt(draws) for shares in (thinned, compressed, larger)
    )
    return bounded(
        max(2 * thinned, compressed),
        0.38,
        mmd_of_random_rows(K, kept) / mmd_of_random_rows(K, m),
        f"Root mean square of the MMD over that of random points: {thinned:.2g} for kernel thinning, {compressed:.2g} "
        f"for Compress++.",
        f"{m} of {n} points, g = 2; {kept} kept; {draws} draws",
        needs={
            "m different points, weights n / m, nearest labels": right,
            "a larger g comes nearer": larger < 0.8 * compressed,
        },
        details=f"Of Compress++ with g = 4: {larger:.2g}.",
    )


# ----------------------------------------------------------------------------------------------------------------------
# The experiments of section 6.

EMBEDDED = "digits"
SIGMAS = {"german": (30.0, 5), "pendigits": (120.0, 5), "usps": (18.0, 15)}  # table 1: sigma, k


def images(X, side, pooled):
    """Square grey images in [0, 1], pixels averaged in squares."""
    size = side // pooled
    return X.reshape(-1, size, pooled, size, pooled).mean((2, 4)).reshape(len(X), -1)


@functools.lru_cache(maxsize=8)
def the_set(name, folder):
    """(points, labels, sigma, components) of a set, or None. Sigma of images: the paper's, times the root of the
    pixels' number over its."""
    if name == EMBEDDED:
        if importlib.util.find_spec("sklearn") is None:
            return None
        digits = importlib.import_module("sklearn.datasets").load_digits()
        return digits.data / 16, digits.target, 18 * math.sqrt(64 / 256), 15
    found = data.load(folder, name, raw=True)
    if found is None:
        return None
    X, y = found
    if name == "yale":
        return images(X / 255, 32, 2), y, 17 * math.sqrt(256 / 520), 10
    X, y = (
        (X[7494:], y[7494:])
        if name == "pendigits"
        else (X / 2 + 0.5, y)
        if name == "usps"
        else (X, y)
    )
    return X, y, *SIGMAS[name]


def available(options, names):
    """The sets that are in the data folder, or the embedded one where none is."""
    found = [name for name in names if the_set(name, options.data_dir) is not None]
    return found or [name for name in (EMBEDDED,) if the_set(name, None) is not None]


def misfit(O, O_tilde):
    """min_A |O - O~ A|_F."""
    return np.linalg.norm(O - O_tilde @ np.linalg.lstsq(O_tilde, O, rcond=None)[0])


EMBEDDERS = ("shadow", "Nystrom", "weighted Nystrom", "subsampled")
DEVIATION, MISFIT, TRAINING, TESTING = range(4)


def weighted(train, m, kernel, k, seed):
    reduced = kp.kmeans_select(train, m, seed, restarts=1, max_iterations=20)
    return kp.weighted_nystrom(train, reduced, kernel, min(k, m), seed)


def embeddings(options, name):
    return measured_embeddings(name, options.data_dir, options.full, options.seed)


@functools.lru_cache(maxsize=8)
def measured_embeddings(name, folder, full, seed):
    """(ells, {method: (ells, splits, 4)}): eigenvalue deviation, embedding error, training and test speed-up over
    KPCA."""
    X, _, sigma, k = the_set(name, folder)
    kernel, rng = gaussian(sigma), np.random.default_rng(seed)
    ells = np.arange(3.0, 5.01, 0.1 if full else 0.25)
    splits = [rng.permutation(len(X)) for _ in range(50 if full else 24 if len(X) <= 1000 else 6)]
    whole = kp.kpca(X, kernel, k, seed, centered=False)
    found = {method: np.full((len(ells), len(splits), 4), np.nan) for method in EMBEDDERS}
    for s, order in enumerate(splits):
        train, test = (np.ascontiguousarray(X[part]) for part in np.split(order, [4 * len(X) // 5]))
        n, O = len(train), kp.features(test, whole)
        kpca, taken = timed(lambda: kp.kpca(train, kernel, k, seed, centered=False))
        _, tested = timed(lambda: kp.features(test, kpca))
        for e, ell in enumerate(ells):
            reduced, selecting = timed(lambda: kp.shadow_select(train, sigma / ell))
            m = len(reduced.weights)
            at_random = kde_pare(train, m, s)
            trainers = {
                "shadow": lambda: kp.rskpca(reduced, kernel, min(k, m), seed, centered=False),
                "Nystrom": lambda: kp.weighted_nystrom(train, at_random, kernel, min(k, m), seed),
                "weighted Nystrom": lambda: weighted(train, m, kernel, k, s),
                "subsampled": lambda: subsampled_kpca(train, m, kernel, min(k, m), s),
            }
            for method in EMBEDDERS:
                model, seconds = timed(trainers[method])
                features, testing = timed(lambda: kp.features(test, model))
                values = np.zeros(k)
                values[: len(model.values)] = model.values / n
                found[method][e, s] = (
                    np.linalg.norm(values - whole.values / len(X)),
                    misfit(O, features),
                    taken / (seconds + (selecting if method == "shadow" else 0)),
                    tested / testing,
                )
    return ells, found


def worse_or_better(found, rival):
    """(p-values, whether the shadows' mean embedding error is the larger one), an l a value: analysis of variance of
    the four methods, Tukey's test for the shadows and the rival."""
    errors = [found[method][:, :, MISFIT] for method in EMBEDDERS]
    return (
        np.array([stats.tukey_hsd(*of).pvalue[0, EMBEDDERS.index(rival)] for of in zip(*errors)]),
        errors[0].mean(1) > errors[EMBEDDERS.index(rival)].mean(1),
    )


def leads(found, method, rival):
    """(mean, half of its 95 % interval) of the relative difference of the embedding errors, for each l."""
    a, b = found[method][:, :, MISFIT], found[rival][:, :, MISFIT]
    return np.array([interval(row) for row in (a - b) / b.mean(1, keepdims=True)])


THRESHOLDS = {"pendigits": (3.2, 4.0), "german": (3.3, 4.8), EMBEDDED: (3.3, 4.8)}
EMBEDDING_SETS, IMAGE_SETS = ("german", "pendigits"), ("usps", "yale")


def of_sets(options, names):
    return f"sets: {', '.join(available(options, names))}"


def without_sets(options, names, runs=False):
    """Why nothing can be compared: where only the embedded set is there, or where fewer runs tell less than the
    paper's."""
    if available(options, names) == [EMBEDDED]:
        return "None of the paper's sets is here."
    return (
        "The paper has 50 splits, which tell more apart (--full)."
        if runs and not options.full
        else ""
    )


@experiment(
    "RSKPCA-Fig-nystrom",
    "rskpca",
    "Section 6: in embedding error RSKPCA with shadows is better than the "
    "Nystrom embeddings after l = 3.2 (pendigits), 3.3 (german).",
    measures="largest p-value of a smaller error, and the level",
    usual=NOT_COMPARABLE,
    with_sets=NOT_COMPARABLE,
)
def better_than_nystrom(options):
    worst, rows, seen = 0.0, [], {}
    for name in available(options, EMBEDDING_SETS):
        ells, found = embeddings(options, name)
        late = ells >= THRESHOLDS[name][0] - 1e-9
        p, larger = worse_or_better(found, "Nystrom")
        lead = leads(found, "shadow", "Nystrom")
        worst, seen[f"better on {name}"] = (
            max(worst, p[late].max()),
            (p < 0.05)[late].all() and not larger[late].any(),
        )
        rows.append(
            f"{name}: error {lead[late, 0].min():+.0%} to {lead[late, 0].max():+.0%} of the Nystrom method's "
            f"(95 % intervals of the paired difference +- {lead[late, 1].max():.0%} at most), at l = 3 "
            f"{lead[0, 0]:+.0%}"
        )
    return observation(
        seen,
        f"Largest p-value of a smaller error than the Nystrom method's, for l beyond the paper's: {worst:.2g}.",
        f"l = 3 to 5; splits of 80 to 20, 6, or 24 of up to 1000 points; "
        f"{of_sets(options, EMBEDDING_SETS)}",
        measured=worst,
        bound=0.05,
        lacking=without_sets(options, EMBEDDING_SETS, not all(seen.values())),
        details=f"Analysis of variance of the four methods over the splits at level .05, Tukey's test, for each l "
        f"beyond the paper's; uniform landmarks of the same number, |O - O~ A|_F with the best A. {'; '.join(rows)}.",
    )


@experiment(
    "RSKPCA-Fig-weighted",
    "rskpca",
    "Section 6: RSKPCA is no worse than the density-weighted Nystrom "
    "embeddings after l = 4.0 (pendigits), 4.8 (german), by analysis of variance at .05.",
    measures="least p-value of a larger error; to stay above the level",
    usual=NOT_COMPARABLE,
    with_sets=NOT_COMPARABLE,
)
def no_worse_than_weighted_nystrom(options):
    least, rows, seen = 1.0, [], {}
    for name in available(options, EMBEDDING_SETS):
        ells, found = embeddings(options, name)
        late = ells >= THRESHOLDS[name][1] - 1e-9
        p, larger = worse_or_better(found, "weighted Nystrom")
        p = np.where(larger, p, 1.0)[late].min()
        lead = leads(found, "shadow", "weighted Nystrom")[late]
        least, seen[f"no worse on {name}"] = min(least, p), p >= 0.05
        rows.append(
            f"{name}, l = {', '.join(f'{ell:g}' for ell in ells[late])}: its error lies "
            f"{', '.join(f'{a:+.0%} +- {b:.0%}' for a, b in lead)} from that of the weighted method, split by "
            f"split, so that {lead[:, 1].max():.0%} would be seen by a paired test"
        )
    return observation(
        seen,
        f"Least p-value of a larger error than the weighted Nystrom method's, for l beyond the paper's: {least:.2g}.",
        of_sets(options, EMBEDDING_SETS),
        measured=least,
        bound=0.05,
        lacking=without_sets(options, EMBEDDING_SETS, True),
        details=f"Tukey's test of the four methods over the splits; centers of k-means (20 passes). With 95 % "
        f"intervals of the paired difference: {'; '.join(rows)}. No worse means that a test did not reject.",
    )


@experiment(
    "RSKPCA-Fig-subsampled",
    "rskpca",
    "Section 6: subsampled KPCA performs worse than any other method: an appropriate weighting is necessary.",
    measures="error of the worst other method over that of subsampled KPCA",
    usual=NOT_COMPARABLE,
    with_sets=SEEN,
)
def subsampled_is_worst(options):
    least, rows, seen = math.inf, [], {}
    for name in available(options, EMBEDDING_SETS):
        _, found = embeddings(options, name)
        means = {method: found[method][:, :, MISFIT].mean() for method in EMBEDDERS}
        quotient = means["subsampled"] / max(
            value for method, value in means.items() if method != "subsampled"
        )
        least, seen[f"worst on {name}"] = min(least, quotient), quotient >= 1
        rows.append(
            f"{name}: " + ", ".join(f"{method} {value:.3g}" for method, value in means.items())
        )
    return observation(
        seen,
        f"The mean error of subsampled KPCA is {least:.3g} times that of the worst other method, or more.",
        of_sets(options, EMBEDDING_SETS),
        measured=1 / least,
        bound=1.0,
        lacking=without_sets(options, EMBEDDING_SETS),
        details=f"Mean embedding error over l: {'; '.join(rows)}.",
    )


@experiment(
    "RSKPCA-Fig-approach",
    "rskpca",
    "Section 6: as l grows, RSKPCA approaches the KPCA baseline in eigenvalues and embedding.",
    measures="error at l = 5 over that at l = 3",
    usual=NOT_COMPARABLE,
    with_sets=SEEN,
)
def approaches_kpca(options):
    worst, rows, seen = 0.0, [], {}
    for name in available(options, EMBEDDING_SETS):
        _, found = embeddings(options, name)
        means = found["shadow"].mean(1)
        quotient = (means[-1] / means[0])[[DEVIATION, MISFIT]]
        worst, seen[f"on {name}"] = max(worst, *quotient), quotient.max() < 1
        rows.append(
            f"{name}: deviation {means[0, DEVIATION]:.2g} to {means[-1, DEVIATION]:.2g}, error "
            f"{means[0, MISFIT]:.2g} to {means[-1, MISFIT]:.2g}"
        )
    return observation(
        seen,
        f"Deviations of eigenvalues and errors at l = 5 are {worst:.2g} times those at l = 3, or less.",
        of_sets(options, EMBEDDING_SETS),
        measured=worst,
        bound=1.0,
        lacking=without_sets(options, EMBEDDING_SETS),
        details=f"{'; '.join(rows)}. An error of the splits stays: the baseline is trained on all points.",
    )


def retained(X, eps):
    return len(kp.shadow_select(X, eps).weights) / len(X)


@experiment(
    "RSKPCA-Fig-retained",
    "rskpca",
    "Section 6: on digit and face images less than 10 % of the data are retained for l in [3, 5].",
    measures="share of the data retained at l = 5",
    usual=NOT_COMPARABLE,
    with_sets=NOT_SEEN,
)
def few_are_retained(options):
    largest, rows, seen = 0.0, [], {}
    for name in available(options, IMAGE_SETS):
        X, _, sigma, _ = the_set(name, options.data_dir)
        shares = [retained(X, sigma / ell) for ell in (3, 4, 5)]
        low, high = 0.0, 1.0  # the largest range of grey values of which it would be true
        for _ in range(7):
            low, high = (
                ((low + high) / 2, high)
                if retained((low + high) / 2 * X, sigma / 5) < 0.1
                else (low, (low + high) / 2)
            )
        largest, seen[f"on {name}"] = max(largest, shares[-1]), shares[-1] < 0.1
        rows.append(
            f"{name} {', '.join(f'{share:.2g}' for share in shares)} (below .1 at l = 5 for values from 0 to "
            f"{low:.2g})"
        )
    return observation(
        seen,
        f"The largest share retained at l = 5 is {largest:.2g}.",
        f"sigma 18 at 256 pixels, 17 at 520; {of_sets(options, IMAGE_SETS)}",
        measured=largest,
        bound=0.1,
        lacking=without_sets(options, IMAGE_SETS),
        details=f"Share retained at l = 3, 4, 5: {'; '.join(rows)}. The paper does not give the unit of its pixels. "
        f"Grey values are here from 0 to 1: of the usual ranges (0 to 1, -1 to 1, 0 to 255) this retains the fewest. "
        f"Sigma is the paper's, for another number of pixels times the root of the quotient.",
    )


CLASSIFIERS = ("kpca", "shadow", "Nystrom", "weighted Nystrom", "k-means", "KDE paring", "herding")
REDUCED = ("shadow", "k-means", "KDE paring", "herding")
CLASS_ELLS = (3.0, 3.5, 4.0, 4.5, 5.0)
ACCURACY, TRAINED, TESTED, TOTAL, SHARE = range(5)


def accuracies(options, name):
    return measured_accuracies(name, options.data_dir, options.full, options.seed)


@functools.lru_cache(maxsize=8)
def measured_accuracies(name, folder, full, seed):
    """{method: (ells, folds, 5)}: accuracy of 3 neighbours in the embedding; seconds to train, with the embedding of
    the training points; to embed the test points; of all with the neighbours; share of the points retained."""
    neighbors = importlib.import_module("sklearn.neighbors")
    X, y, sigma, k = the_set(name, folder)
    order = np.random.default_rng(seed).permutation(len(X))[: None if full else 2000]
    X, y, kernel = X[order], y[order], gaussian(sigma)
    found = {method: np.zeros((len(CLASS_ELLS), 10, 5)) for method in CLASSIFIERS}
    for f, fold in enumerate(np.array_split(np.arange(len(X)), 10)):
        rest = np.setdiff1d(np.arange(len(X)), fold)
        train, test, labels, truth = X[rest], X[fold], y[rest], y[fold]
        exact = timed(lambda: kp.kpca(train, kernel, k, seed, centered=False))
        for e, ell in enumerate(CLASS_ELLS):
            reduced, selecting = timed(lambda: kp.shadow_select(train, sigma / ell))
            m = len(reduced.weights)
            size = min(k, m)

            def of_set(select):
                chosen = select()
                return kp.rskpca(chosen, kernel, size, seed, centered=False)

            trainers = {
                "kpca": None,
                "shadow": lambda: kp.rskpca(reduced, kernel, size, seed, centered=False),
                "Nystrom": lambda: kp.weighted_nystrom(
                    train,
                    kde_pare(train, m, f),
                    kernel,
                    size,
                    seed,
                ),
                "weighted Nystrom": lambda: weighted(train, m, kernel, size, f),
                "k-means": lambda: of_set(
                    lambda: kp.kmeans_select(train, m, f, restarts=1, max_iterations=20)
                ),
                "KDE paring": lambda: of_set(lambda: kde_pare(train, m, f)),
                "herding": lambda: of_set(lambda: kp.herd(train, kernel, m)),
            }
            for method in CLASSIFIERS:
                model, seconds = exact if method == "kpca" else timed(trainers[method])
                seconds += selecting if method == "shadow" else 0
                embedded, embedding = timed(lambda: kp.features(train, model))
                features, testing = timed(lambda: kp.features(test, model))
                score, classifying = timed(
                    lambda: (
                        neighbors.KNeighborsClassifier(3)
                        .fit(embedded, labels)
                        .score(features, truth)
                    )
                )
                found[method][e, f] = (
                    score,
                    seconds + embedding,
                    testing,
                    seconds + embedding + testing + classifying,
                    1 if method == "kpca" else m / len(train),
                )
    return found


@experiment(
    "RSKPCA-Fig-classes",
    "rskpca",
    "Section 6: in 3-nearest-neighbour classification RSKPCA has competitive "
    "accuracy with the Nystrom methods.",
    measures="lead in accuracy, a share of the points",
    usual=NOT_COMPARABLE,
    with_sets=SEEN,
)
def accuracy_is_competitive(options):
    worst, rows, seen = -math.inf, [], {}
    for name in available(options, IMAGE_SETS):
        found = {
            method: values[2:, :, ACCURACY] for method, values in accuracies(options, name).items()
        }
        best = max(("Nystrom", "weighted Nystrom"), key=lambda method: found[method].mean())
        lead, half = interval((found[best] - found["shadow"]).mean(0))
        if found["kpca"].mean() > 0.5:  # else the set, or its sigma, says nothing
            worst, seen[f"on {name}"] = max(worst, lead), lead + half <= 0.02
        rows.append(
            f"{name}: lead of {best} {lead:.2g} +- {half:.1g}; means "
            + ", ".join(f"{method} {values.mean():.3f}" for method, values in found.items())
        )
    return observation(
        seen,
        f"The better Nystrom method leads by {worst:.2g} of the points at most, where kernel PCA serves the "
        f"neighbours.",
        of_sets(options, IMAGE_SETS),
        measured=worst,
        bound=0.02,
        lacking=without_sets(options, IMAGE_SETS)
        or ("" if seen else "On no set does exact kernel PCA serve the neighbours."),
        details=f"Lead of the better Nystrom method in accuracy over 10 folds, l = 4 to 5, with its 95 % interval; at "
        f"most two points of a hundred are called competitive; sets where exact kernel PCA itself is wrong in most "
        f"cases are not judged. {'; '.join(rows)}.",
    )


@experiment(
    "RSKPCA-Fig-sets",
    "rskpca",
    "Section 6: the quality of the reduced set influences the accuracy for small l, less so for larger l.",
    measures="spread of the accuracy at l = 5 over that at l = 3",
    usual=NOT_COMPARABLE,
    with_sets=SEEN,
)
def reduced_sets_differ_when_small(options):
    worst, rows, seen = 0.0, [], {}
    for name in available(options, IMAGE_SETS):
        spread = np.ptp(
            [accuracies(options, name)[method][:, :, ACCURACY].mean(1) for method in REDUCED], 0
        )
        quotient = spread[-1] / max(spread[0], 1e-12)
        worst, seen[f"on {name}"] = max(worst, quotient), quotient < 1
        rows.append(f"{name}: {', '.join(f'{value:.3f}' for value in spread)}")
    return observation(
        seen,
        f"The accuracies of four kinds of reduced sets spread at l = 5 {worst:.2g} times as much as at l = 3, or less.",
        of_sets(options, IMAGE_SETS),
        measured=worst,
        bound=1.0,
        lacking=without_sets(options, IMAGE_SETS),
        details=f"Spread of the accuracy over shadows, k-means, KDE paring and herding, l = 3 to 5: {'; '.join(rows)}.",
    )


@experiment(
    "RSKPCA-Compress",
    "rskpca",
    "Shetty, Dwivedi, Mackey 2022: Compress++ loses a factor of four at most "
    "against the thinning inside it (mean distances of means), and is far from random points.",
    measures="largest quotient of the two, and four",
    with_sets=SEEN,
)
def compressed_points(options):
    quotients, shares, rng = [], [], np.random.default_rng(options.seed)
    X = rng.standard_normal((4096, 3)) + 3 * rng.integers(2, size=(4096, 1))
    for kernel in (kp.gaussian(1.5), kp.matern(2.5, 2.0)):
        compressed, thinned, drawn = np.mean(
            [
                [
                    kp.mmd(X, found, kernel)
                    for found in (
                        kp.compress_thin(X, kernel, 64, seed),
                        kp.kernel_thin(X, kernel, 64, seed),
                        kde_pare(X, 64, seed),
                    )
                ]
                for seed in range(10 * options.seed, 10 * options.seed + 10)
            ],
            0,
        )
        quotients.append(compressed / thinned)
        shares.append(compressed / drawn)
    return observation(
        {
            "a factor of four at most": max(quotients) < 4,
            "half of random points'": max(shares) < 0.5,
        },
        f"Distances are {quotients[0]:.3g} (gaussian) and {quotients[1]:.3g} (matern) times those of kernel thinning, "
        f"and {shares[0]:.2g} and {shares[1]:.2g} times random points'.",
        "64 of 4096 points in two clusters, g = 4; means of ten seeds",
        measured=max(quotients),
        bound=4.0,
    )


@experiment(
    "RSKPCA-Fig-speed",
    "rskpca",
    "Sections 1 and 6: training and evaluation become faster by up to an order "
    "of magnitude; evaluation is as fast for all reduced sets.",
    measures="kernel values of an evaluation, over; to reach the paper's order of magnitude",
    usual=NOT_COMPARABLE,
)
def speed_up(options):
    rows, alike, counted, slowest = [], 0.0, 0.0, math.inf
    for name in available(options, IMAGE_SETS):
        seconds = {
            method: np.median(values[2], 0) for method, values in accuracies(options, name).items()
        }
        train, test, total = (seconds["kpca"] / seconds["shadow"])[[TRAINED, TESTED, TOTAL]]
        each = [seconds[method][TESTED] for method in REDUCED]
        slowest, alike = min(slowest, train, test), max(alike, max(each) / min(each))
        counted = max(counted, 1 / seconds["shadow"][SHARE])
        rows.append(
            f"{name}: {1 / seconds['shadow'][SHARE]:.3g} times fewer kernel values a point; seconds: training "
            f"{train:.3g}, evaluation {test:.3g}, all with the neighbours {total:.3g} times as fast; slowest "
            f"over fastest evaluation of the reduced sets {max(each) / min(each):.2g}"
        )
    return observation(
        {
            "an order of magnitude fewer kernel values": counted >= 10,
            "training and evaluation faster": slowest > 1,
            "evaluation alike": alike < 1.5,
        },
        f"An evaluation takes up to {counted:.3g} times fewer kernel values; training and evaluation are {slowest:.2g} "
        f"times as fast, or more.",
        of_sets(options, IMAGE_SETS),
        measured=counted,
        bound=10.0,
        lacking=without_sets(options, IMAGE_SETS),
        details=f"At l = 4, medians of 10 folds: {'; '.join(rows)}. Our kernel PCA finds k components by Lanczos's "
        f"method, and not all by O(n^3), so training gains less.",
    )


def panels(names, name, count):
    return lambda options: count if name in available(options, names) else 0


def draw_embeddings(axes, options, name):
    ells, found = embeddings(options, name)
    for axis, column, title in zip(
        np.ravel(axes),
        (DEVIATION, MISFIT, TRAINING, TESTING),
        ("eigenvalue deviation", "embedding error", "training speed-up", "test speed-up"),
    ):
        for method, style in zip(EMBEDDERS, ("o-", "s--", "^-.", "x:")):
            low, middle, high = np.percentile(found[method][:, :, column], [25, 50, 75], axis=1)
            axis.errorbar(
                ells,
                middle,
                [middle - low, high - middle],
                fmt=style,
                ms=4,
                capsize=2,
                label=method,
            )
        finish(axis, "y", title=title, xlabel="l")


def draw_classes(axes, options, name, methods):
    found = accuracies(options, name)
    titles = {
        ACCURACY: "accuracy of 3-nn",
        TRAINED: "training, times as fast as KPCA",
        TESTED: "evaluation, times as fast as KPCA",
        TOTAL: "in all, with the neighbours",
    }
    for axis, (column, title) in zip(np.ravel(axes), titles.items()):
        for method in methods:
            values = found[method][:, :, column]
            axis.plot(
                CLASS_ELLS,
                values.mean(1)
                if column == ACCURACY
                else np.median(found["kpca"][:, :, column], 1) / np.median(values, 1),
                "o-",
                ms=4,
                label=method,
            )
        finish(axis, "" if column == ACCURACY else "y", title=title, xlabel="l")


for each, number in (
    ("german", "Figure 2: german"),
    ("pendigits", "Figure 3: pendigits"),
    (EMBEDDED, "As figures 2 and 3, on scikit-learn's digits"),
):
    figure(
        f"rskpca-embedding-{each}",
        "rskpca",
        f"{number}. Deviation of eigenvalues, embedding error, speed-up over "
        f"kernel PCA, against l; medians and quartiles of the splits.",
        claims=[
            "RSKPCA-Fig-nystrom",
            "RSKPCA-Fig-weighted",
            "RSKPCA-Fig-subsampled",
            "RSKPCA-Fig-approach",
        ],
        columns=panels(EMBEDDING_SETS, each, 4),
    )(functools.partial(draw_embeddings, name=each))
for each, number in (
    ("usps", "Figures 4 and 7: usps"),
    ("yale", "Figures 5 and 8: a stand-in for the paper's faces"),
    (EMBEDDED, "As figures 4 and 7, on scikit-learn's digits"),
):
    for part, words, which, shown in (
        ("nystrom", "against the Nystrom methods", "classes", CLASSIFIERS[:4]),
        ("sets", "reduced sets of other kinds", "sets", REDUCED),
    ):
        figure(
            f"rskpca-{part}-{each}",
            "rskpca",
            f"{number}, {words}.",
            claims=[f"RSKPCA-Fig-{which}", "RSKPCA-Fig-speed"],
            columns=panels(IMAGE_SETS, each, 4),
        )(functools.partial(draw_classes, name=each, methods=shown))


@figure(
    "rskpca-retained",
    "rskpca",
    "Figure 6: share of the data retained by shadows, against l.",
    claims=["RSKPCA-Fig-retained"],
)
def draw_retained(axes, options):
    for name in dict.fromkeys(
        [*available(options, EMBEDDING_SETS), *available(options, IMAGE_SETS)]
    ):
        X, _, sigma, _ = the_set(name, options.data_dir)
        ells = np.arange(3, 5.01, 0.25)
        axes.plot(
            ells,
            [retained(X, sigma / ell) for ell in ells],
            "o-",
            ms=4,
            label=f"{name}, n = {len(X)}",
        )
    axes.axhline(0.1, color="0.6", lw=0.8)
    finish(axes, "y", xlabel="l", ylabel="m / n")


@figure(
    "rskpca-bounds",
    "rskpca",
    "Theorems 5.1 to 5.3: distances of shadows from all points against l, for 600 "
    "normal points in 3 dimensions taken in 6 orders (means and ranges), and the worst places there are; dashed: "
    "the sharp bounds.",
    claims=["RSKPCA-T5.1", "RSKPCA-T5.2", "RSKPCA-T5.3"],
    columns=3,
)
def draw_bounds(axes, options):
    X, sigma = blob(options)
    kernel, ells = gaussian(sigma), np.array([2, 3, 4, 5, 8, 12, 20])
    orders = [X[np.random.default_rng(order).permutation(len(X))] for order in range(6)]
    distances = {
        "mmd": ("mean embeddings (5.1)", lambda X, s: kp.mmd(X, s, kernel)),
        "eigenvalues": (
            "eigenvalues of K / n (5.2)",
            lambda X, s: eigenvalue_distance(X, s, kernel),
        ),
        "operator": (
            "operators (5.3)",
            lambda X, s: kp.operator_distance(X, s, kernel),
        ),
    }
    for axis, (bound, (title, distance)) in zip(np.ravel(axes), distances.items()):
        draw_ranges(
            axis,
            ells,
            [
                [distance(points, kp.shadow_select(points, sigma / ell)) for points in orders]
                for ell in ells
            ],
            "normal points",
        )
        if bound != "eigenvalues":
            edge = [one_sided(300, sigma / ell) for ell in ells]
            axis.plot(
                ells,
                [distance(at, kp.shadow_select(at, sigma / ell)) for at, ell in zip(edge, ells)],
                "kx",
                ms=5,
                label="all points at one edge",
            )
        axis.plot(
            ells,
            [getattr(kp.shadow_bounds(kernel, sigma / ell), bound) for ell in ells],
            "k--",
            lw=1,
            label="bound",
        )
        finish(axis, "xy", ells, title=title, xlabel="l = sigma / eps", ylabel="distance")


@figure(
    "rskpca-manifolds",
    "rskpca",
    "(14), (15): coordinates of a noisy spiral by a diffusion map of all 800 points, "
    "and of its shadow centers by their weights; color: place along the spiral.",
    claims=["RSKPCA-K"],
    columns=3,
)
def draw_manifolds(axes, options):
    rng = np.random.default_rng(options.seed)
    t = 4 * math.pi * np.sqrt(rng.uniform(0.05, 1, 800))
    X = np.column_stack([t * np.cos(t), t * np.sin(t)]) + 0.1 * rng.standard_normal((800, 2))
    kernel, found = gaussian(2.0), kp.shadow_select(X, 0.5)
    places, left, right = np.ravel(axes)
    places.scatter(*X.T, c=t, s=4)
    places.set(
        title="points", aspect="equal", xlabel="first coordinate", ylabel="second coordinate"
    )
    for axis, centers, title in (
        (left, X, "all points"),
        (right, found, f"{len(found.weights)} centers"),
    ):
        coordinates = kp.features(X, kp.diffusion_map(centers, kernel, 2))
        axis.scatter(*(coordinates * np.sign(coordinates[np.argmax(t)])).T, c=t, s=4)
        axis.set(
            title=f"diffusion map of {title}", xlabel="first component", ylabel="second component"
        )


@figure(
    "rskpca-shadow",
    "rskpca",
    "Figure 1: points, their shadow centers (area: weight), and both density estimates along the first axis.",
    claims=["RSKPCA-A2"],
    columns=2,
)
def draw_shadow(axes, options):
    rng = np.random.default_rng(options.seed)
    X = np.concatenate(
        [rng.standard_normal((300, 2)), [4, 1] + 0.5 * rng.standard_normal((200, 2))]
    )
    found = kp.shadow_select(X, 0.6)
    left, right = np.ravel(axes)
    left.scatter(*X.T, s=4, c=found.labels % 20, cmap="tab20")
    left.scatter(*found.centers.T, s=3 * found.weights, facecolors="none", edgecolors="k", lw=0.7)
    left.set(title="shadow sets", aspect="equal")
    line, kernel = np.column_stack([np.linspace(-3, 6, 300), np.full(300, 0.5)]), gaussian(2.4)
    right.plot(line[:, 0], kp.gram(line, X, kernel).mean(1), "k-", lw=0.8, label=f"{len(X)} points")
    right.plot(
        line[:, 0],
        kp.gram(line, found.centers, kernel) @ found.weights / len(X),
        "r--",
        lw=0.8,
        label=f"{len(found.weights)} centers",
    )
    finish(right, title="density estimate at height 0.5, l = 4", xlabel="first coordinate")
