# SPDX-License-Identifier: BSD-3-Clause
"""Two published figures about landmarks, redone with this library's functions, for `headlines`.

Chen, Epperly, Tropp, Webber, *Randomly pivoted Cholesky*, arXiv 2207.06503, figure 1: errors of landmark samplers.
Diaz, Epperly, Frangella, Tropp, Webber, *Robust, randomized preconditioning for kernel ridge regression*, arXiv
2304.12465, figures 1 and 2: iterations of preconditioned conjugate gradients.
"""

import numpy as np
from scipy import linalg

import kpcasketch as kp
from paper_checks import data

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
