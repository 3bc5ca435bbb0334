# SPDX-License-Identifier: BSD-3-Clause
"""Published figures about landmarks and random features, redone with this library's functions, for `headlines`.

Chen, Epperly, Tropp, Webber, *Randomly pivoted Cholesky*, arXiv 2207.06503, figure 1: errors of landmark samplers.
Diaz, Epperly, Frangella, Tropp, Webber, *Robust, randomized preconditioning for kernel ridge regression*, arXiv
2304.12465, figures 1 and 2: iterations of preconditioned conjugate gradients.
Yu, Suresh, Choromanski, Holtmann-Rice, Kumar, *Orthogonal random features*, NIPS 2016, figure 2: variance of the kernel
that orthogonal frequencies give, over that of independent ones.
"""

import numpy as np
from scipy import linalg

import kpcasketch as kp
from paper_checks import data
from paper_checks.tools import orthogonal_covariance

SAMPLERS = {
    "rpcholesky": kp.rpcholesky,
    "accelerated scores": kp.recursive_rls_accelerated,
    "uniform": lambda X, kernel, s, seed: kp.uniform_landmarks(len(X), s, seed),
    "greedy": lambda X, kernel, s, seed: kp.rpcholesky(X, kernel, s, greedy=True),
}


MOST = 250  # iterations


def smile(n, rng):
    """Two eyes of sqrt(n) points, a mouth of n / 10 points, and the rest on a circle of radius 10 around them."""
    few = int(np.ceil(np.sqrt(n)))
    mouth = int(np.ceil(n / 10))
    eyes = []
    for center in (-4.0, 4.0):
        radius = np.sqrt(rng.random(few))
        angle = 2.0 * np.pi * rng.random(few)
        eyes.append(
            np.column_stack([center + radius * np.cos(angle), 4.0 + radius * np.sin(angle)])
        )
    x = np.linspace(-5.0, 5.0, mouth)
    angle = np.linspace(0.0, 2.0 * np.pi, n - mouth - 2 * few)
    face = 10.0 * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.vstack([*eyes, np.column_stack([x, x * x / 16.0 - 5.0]), face])


def spiral(n, rng):
    """A logarithmic spiral (e^(t / 5) cos t, e^(t / 5) sin t) with t from 64 to 0, most points near its center."""
    t = np.linspace(2.0, 0.0, n) ** 6
    return np.exp(0.2 * t)[:, None] * np.column_stack([np.cos(t), np.sin(t)])


def trace_errors(points, kernel, s, pick, draws, seed):
    """tr(K - K~) / tr K for some draws of landmarks."""
    left = []
    for draw in range(draws):
        F = kp.nystrom(points, pick(points, kernel, s, seed + draw), kernel)
        left.append(1.0 - np.square(F).sum() / kp.gram_diagonal(points, kernel).sum())
    return {"errors": left}


def samplers_of_landmarks(run):
    """arXiv 2207.06503, figure 1: medians of relative trace errors at 50 and 100 landmarks of 10,000 points."""
    n, draws = run.size(10_000, 300), run.size(20, 1)
    rng = np.random.default_rng([run.seed, 1])
    rows = []
    for shape, kernel in ((smile, kp.gaussian(2.0)), (spiral, kp.gaussian(1000.0))):
        points = shape(n, rng)
        for s in (50, 100):
            told = []
            for name, pick in SAMPLERS.items():
                found = run.piece(
                    f"{shape.__name__}, {s}, {name}",
                    lambda pick=pick: trace_errors(points, kernel, s, pick, draws, run.seed),
                )
                told.append(f"{name} {np.median(found['errors']):.2g}")
            rows.append(
                (f"{shape.__name__}, s = {s}: tr(K - K~) / tr K", "fig. 1", ", ".join(told))
            )
    return rows


def iterations(K, ridge, y, F, most):
    """Steps of conjugate gradients for (K + ridge I) x = y to a relative residual of 1e-3, preconditioned with
    F F^T + ridge I, or with nothing if F is None. At most `most`."""

    def solve(r):
        if F is None:
            return r
        return r - F @ linalg.cho_solve(small, F.T @ r)

    if F is not None:
        small = linalg.cho_factor(F.T @ F + ridge * np.eye(F.shape[1]))
    r = y - y.mean()
    goal = 1e-3 * np.linalg.norm(r)
    z = solve(r)
    direction = z
    for step in range(1, most + 1):
        product = K @ direction + ridge * direction
        length = (r @ z) / (direction @ product)
        before = r @ z
        r = r - length * product
        if np.linalg.norm(r) <= goal:
            return step
        z = solve(r)
        direction = z + (r @ z) / before * direction
    return most


def preconditioned_ridge_regression(run):
    """arXiv 2304.12465, figures 1 and 2: the kernel gaussian(3) on 15,000 standardized points, and the ridge 1e-7 n."""
    rows = []
    for name, rank in (("Covertype", 1000), ("mnist", 1000)):
        path = run.data_dir / data.FILES[name] if run.data_dir is not None else None
        if path is None or not path.exists():
            continue
        with np.load(path) as arrays:
            X, y = arrays["X"], arrays["y"]
        some = np.random.default_rng([run.seed, 2]).permutation(len(X))[: run.size(15_000, 300)]
        X = data.standardised(X[some].astype(float))
        y = np.where(y[some] == 2, 1.0, -1.0)
        n = len(X)
        s = min(run.size(rank, 20), n // 2)
        kernel = kp.gaussian(3.0)
        K = kp.gram(X, X, kernel)
        told = []
        for sampler, pick in {**SAMPLERS, "none": None}.items():

            def counted(pick=pick):
                F = kp.nystrom(X, pick(X, kernel, s, run.seed), kernel) if pick else None
                return {"steps": iterations(K, 1e-7 * n, y, F, MOST)}

            found = run.piece(f"{name}, {sampler}", counted)
            told.append(f"{sampler} {found['steps']}" + "+" * (found["steps"] == MOST))
        what = f"{name}, n = {n}, rank {s}: iterations, at most {MOST}"
        rows.append((what, "figs 1, 2", ", ".join(told)))
    return rows or [("not run", "", "the sets are not in the data directory")]


def limit_of_variances(d, z):
    """The paper's formula, in the limit of large d, for d frequencies: Var(orthogonal) / Var(independent)."""
    decay = np.exp(-z * z)
    return 1 - (d - 1) / d * decay * z**4 / (1 - decay) ** 2


def ratio_of_variances(d, z):
    """The same ratio exactly, for points at the distance z bandwidths: Var cos(r.x) is (1 - exp(-z^2))^2 / 2."""
    covariance = orthogonal_covariance(d, np.exp(-z * z / 2))
    return 1 + (d - 1) * covariance / ((1 - np.exp(-z * z)) ** 2 / 2)


def kernel_values(make, d, z, draws, seed):
    """What d frequencies of each of many maps give as the kernel of two points at the distance z."""
    points = np.zeros((2, d))
    points[1, 0] = z
    found = np.empty(draws)
    for draw in range(draws):
        first, second = kp.features(points, make(kp.gaussian(1.0), d, 2 * d, seed + draw))
        found[draw] = first @ second
    return found


def variances(d, z, draws, seed):
    """Var(orthogonal) / Var(independent) of that many draws, and its standard error by the delta method."""
    values = {
        name: kernel_values(make, d, z, draws, seed)
        for name, make in (
            ("orthogonal", kp.orthogonal_features_map),
            ("independent", kp.fourier_features_map),
        )
    }
    squares = {name: np.square(found - np.exp(-z * z / 2)) for name, found in values.items()}
    means = {name: found.mean() for name, found in squares.items()}
    relative = sum(found.var() / found.mean() ** 2 for found in squares.values()) / draws
    ratio = means["orthogonal"] / means["independent"]
    return {"ratio": float(ratio), "error": float(ratio * np.sqrt(relative))}


def orthogonal_random_features(run):
    """NIPS 2016, figure 2: d frequencies in d dimensions; variances about the exact kernel value."""
    draws, rows = run.size(20_000, 100), []
    for d in (4, 16, 64):
        for z in (0.5, 1.0, 2.0):
            first = draws * (len(rows) + 9 * run.seed)  # no two rows have a draw in common
            found = run.piece(f"{d}, {z}", lambda d=d, z=z, s=first: variances(d, z, draws, s))
            rows.append(
                (
                    f"d = {d}, |x - y| = {z} bandwidths: variance of orthogonal over independent frequencies",
                    f"{limit_of_variances(d, z):.3f} (formula for large d)",
                    f"{found['ratio']:.3f} +- {2 * found['error']:.3f}; exact law {ratio_of_variances(d, z):.3f}",
                )
            )
    return rows
