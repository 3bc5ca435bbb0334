# SPDX-License-Identifier: BSD-3-Clause
"""Random attack: sizes around every internal limit, extreme but legal parameters, data that numerical code dislikes.

Each function is called on them, compared with `naive.py` or dense linear algebra, and held to its promises: right to
rounding or refused by name, sorted, orthonormal, residuals true, exact counts, inputs untouched, the same bits twice.

    python -m pytest kpcasketch_tests/test_attack.py --attacks 500 --attack-seed 1000
    python -m kpcasketch_tests.test_attack SECONDS FIRST_SEED      # until the time is over; prints the number of calls

What is not reached: more than 800 points (paths for large n are tested one by one elsewhere: implicit kernel PCA beyond
8192 points, slabs of 8192 rows, bases of 512 MB), custom kernels, calls from compiled code.
"""

import collections
import contextlib
import io
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
import traceback
import warnings

import numpy as np
import pytest
import scipy.sparse

import kpcasketch as kp
from kpcasketch_tests import naive, tables
from paper_checks import reservoirs

# Blocks of 128, vectors of 8 and 16, runs of 512, bases of Lanczos (2 k + 8 b, one block more), 512 rows without
# LAPACK, 512 for traces.
SIZES = [
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    15,
    16,
    17,
    31,
    33,
    63,
    65,
    127,
    128,
    129,
    130,
    144,
    145,
    146,
    147,
    148,
    149,
    150,
    160,
    161,
    162,
    163,
    164,
    165,
    166,
    170,
    255,
    256,
    257,
    258,
    300,
    383,
    385,
    511,
    512,
    513,
    514,
    640,
]
DIMENSIONS = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64]
CALLS = collections.Counter()


def call(function, *arguments, **settings):
    """The result of a call made twice, on arguments that it must leave alone."""
    CALLS[function.__name__] += 2
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    results = [function(*arguments, **settings) for _ in range(2)]
    assert all(
        np.array_equal(a, b) for a, b in zip(arguments, before) if isinstance(a, np.ndarray)
    ), "an argument was changed"
    assert same(*results), "two calls gave different results"
    return results[0]


def same(a, b):
    if isinstance(a, tuple):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    if a is None or isinstance(a, (bytes, str)):
        return a == b
    if scipy.sparse.issparse(a):
        return same((a.data, a.indices, a.indptr), (b.data, b.indices, b.indptr))
    return np.array_equal(a, b, equal_nan=True)


class Case:
    """A data set and a kernel, with its Gram matrix in extended precision."""

    def __init__(self, seed):
        self.seed, self.rng = seed, np.random.default_rng(seed)
        rng = self.rng
        self.n, d = int(rng.choice(SIZES)), int(rng.choice(DIMENSIONS))
        self.single = rng.random() < 0.3
        kinds = [
            "normal",
            "normal",
            "constant",
            "zero",
            "repeated",
            "collinear",
            "clusters",
            "outlier",
            "grid",
            "mixed",
            "sorted",
        ]
        self.data = str(rng.choice(kinds))
        X = self.points(self.data, self.n, d)
        size = (
            10.0 ** rng.uniform(*((-12, 12) if self.single else (-100, 100)))
            if rng.random() < 0.2
            else 1.0
        )
        self.X = np.ascontiguousarray(X * size, dtype=np.float32 if self.single else np.float64)
        self.eps = 1.2e-7 if self.single else 2.2e-16
        self.choose_kernel(size)

    def points(self, kind, n, d):
        rng = self.rng
        X = rng.standard_normal((n, d))
        if kind == "constant":
            X[:] = X[0]
        elif kind == "zero":
            X[:] = 0.0
        elif kind == "repeated":
            X = X[rng.integers(0, max(1, n // 5), n)]
        elif kind == "collinear":
            X = np.outer(rng.standard_normal(n), rng.standard_normal(d))
        elif kind == "clusters":
            X[rng.random(n) < 0.3] += 10.0 ** rng.uniform(1, 4)
        elif kind == "outlier":
            X[rng.integers(n)] *= 1e4
        elif kind == "grid":
            X = rng.integers(0, 3, (n, d)).astype(float)
        elif kind == "mixed":
            X = X * 10.0 ** rng.uniform(-4, 4, d)
        elif kind == "sorted":
            X = np.sort(X, axis=0)
        return X

    def choose_kernel(self, size):
        rng = self.rng
        typical = size * math.sqrt(self.X.shape[1])
        sigma = float(
            typical * 10.0 ** (rng.uniform(-6, 6) if rng.random() < 0.3 else rng.uniform(-1, 1))
        )
        self.kind = str(
            rng.choice(
                [
                    "gaussian",
                    "gaussian",
                    "laplacian",
                    "matern",
                    "rational_quadratic",
                    "cauchy",
                    "polynomial",
                    "linear",
                ]
            )
        )
        wide = self.X.astype(np.longdouble)
        if self.kind in ("gaussian", "laplacian", "cauchy"):
            self.kernel, exact = (
                getattr(kp, self.kind)(sigma),
                getattr(naive, self.kind)(wide, wide, np.longdouble(sigma)),
            )
        elif self.kind == "matern":
            nu = float(rng.choice([0.5, 1.5, 2.5]))
            self.kernel, exact = (
                kp.matern(nu, sigma),
                naive.matern(wide, wide, nu, np.longdouble(sigma)),
            )
        elif self.kind == "rational_quadratic":
            alpha = float(10.0 ** rng.uniform(-2, 3))
            self.kernel = kp.rational_quadratic(alpha, sigma)
            exact = naive.rational_quadratic(wide, wide, alpha, np.longdouble(sigma))
        else:
            degree, gamma, coef0 = (
                (1, 1.0, 0.0)
                if self.kind == "linear"
                else (int(rng.integers(1, 5)), 1 / sigma**2, float(rng.random()))
            )
            self.kernel = (
                kp.linear() if self.kind == "linear" else kp.polynomial(degree, gamma, coef0)
            )
            exact = naive.polynomial(wide, wide, degree, np.longdouble(gamma), coef0)
        if rng.random() < 0.2:
            kappa = float(10.0 ** rng.uniform(-20, 20))
            self.kernel, exact = kp.scaled(self.kernel, kappa), exact * np.longdouble(kappa)
        self.representable = abs(exact).max() < (1e37 if self.single else 1e300)
        self.exact = exact
        self.K = exact.astype(float)
        # Values differ by roundings of d terms each, more where distances are expanded, and by that of points times
        # gamma.
        terms = (
            2 * self.X.shape[1]
            + 60
            + (16 * math.sqrt(self.X.shape[1]) if self.X.shape[1] >= 16 else 0)
        )
        power = self.kernel.shape if self.kind == "polynomial" else 1.0
        self.tolerance = (
            float(terms * power * self.eps * abs(exact).max()) if self.representable else math.inf
        )

    def __str__(self):
        return f"seed {self.seed}: {self.data} {self.X.shape} {self.X.dtype}, {self.kernel[:5]}"


def attack_gram(case):
    X, kernel = case.X, case.kernel
    K = call(kp.gram, X, X, kernel)
    assert np.array_equal(K, K.T) and np.abs(K - case.exact).max() <= case.tolerance
    assert np.abs(call(kp.gram, X, X.copy(), kernel) - case.exact).max() <= case.tolerance
    assert np.abs(call(kp.gram_diagonal, X, kernel) - np.diag(case.exact)).max() <= case.tolerance
    V = case.rng.standard_normal((case.n, int(case.rng.choice([1, 2, 4, 5, 8, 16, 17, 33]))))
    for other in (X, X.copy()):
        product = call(kp.gram_matmat, X, other, V, kernel)
        assert np.abs(product - case.K @ V).max() <= (
            case.tolerance + case.eps * abs(case.K).max()
        ) * (2 + np.abs(V).sum(0).max())
    few = X[: case.rng.integers(1, case.n + 1)]
    assert np.abs(call(kp.gram, few, X, kernel) - case.exact[: len(few)]).max() <= case.tolerance


def attack_bandwidth(case):
    found = call(kp.median_bandwidth, case.X, case.seed)
    distances = np.sqrt(
        naive.squared_distances(*[case.X.astype(np.longdouble)] * 2)[np.triu_indices(case.n, 1)]
    )
    if distances.size == 0 or distances.max() == 0:
        assert found == 1.0
    elif case.n <= 1000:
        if not (np.median(distances) > 0 and np.sort(distances)[distances.size // 2] > 0):
            distances = distances[distances > 0]
        assert abs(found - float(np.median(distances))) <= 1e-10 * found


def attack_sampling(case):
    X, kernel, n = case.X, case.kernel, case.n
    s = float(case.rng.choice([1.0, 1.5, 4.0, 30.0, 1e3, 1e17, 1e19]))
    if not abs(case.exact).max() * s < (1e36 if case.single else 1e300):
        return
    A = call(kp.sample_gram, X, kernel, s, case.seed)
    entries = call(kp.dense, A)
    kept = entries != 0
    assert np.array_equal(entries, entries.T) and A.indptr[-1] == A.data.size == A.indices.size
    assert all((np.diff(A.indices[a:b]) > 0).all() for a, b in zip(A.indptr[:-1], A.indptr[1:]))
    assert np.abs(entries[kept] - s * case.K[kept]).max(initial=0) <= 2 * s * case.tolerance
    assert A.data.size == n * n if s == 1.0 else A.data.size <= n * n
    B = call(kp.quantize_gram, X, kernel, case.seed)
    bits = call(kp.dense, B)
    assert np.array_equal(bits, bits.T) and (np.abs(bits) == B.scale).all()
    assert abs(B.scale - np.diag(case.K).max()) <= case.tolerance
    C = call(kp.sample_quantize_gram, X, kernel, s, case.seed)
    assert np.array_equal(C.indices, A.indices) and np.allclose(
        np.abs(C.data), s * B.scale, rtol=4 * case.eps
    )
    V = case.rng.standard_normal((n, 3))
    for operator, matrix in ((A, entries), (B, bits), (C, kp.dense(C))):
        error = np.abs(call(kp.matmat, operator, V) - matrix @ V).max()
        assert error <= 100 * case.eps * (np.abs(matrix) @ np.abs(V)).max() + 1e-300


def symmetric_matrix(case):
    """A symmetric matrix with a spectrum that eigensolvers dislike, and its eigenvalues."""
    rng, n = case.rng, max(case.n, 2)
    kind = str(
        rng.choice(
            [
                "normal",
                "clusters",
                "low rank",
                "geometric",
                "opposite",
                "identity",
                "hidden",
                "gram",
                "tiny off-diagonal",
            ]
        )
    )
    if kind == "gram":
        return (case.K + case.K.T) / 2 if np.abs(case.K).max() > 1e-250 else np.eye(case.n)
    if kind == "normal":
        A = rng.standard_normal((n, n))
        return A + A.T
    if kind == "tiny off-diagonal":
        return np.diag(rng.integers(1, 4, n).astype(float)) + np.full(
            (n, n), 10.0 ** rng.uniform(-200, -100)
        )
    values = {
        "clusters": rng.choice([3.0, 1.0, 0.5], n),
        "low rank": np.r_[rng.standard_normal(min(n, 5)), np.zeros(max(0, n - 5))],
        "geometric": 10.0 ** -np.linspace(0, 20, n),
        "opposite": np.where(np.arange(n) % 2, 1.0, -1.0) * (1 + np.arange(n) // 4),
        "identity": np.ones(n),
        "hidden": np.r_[1.0, np.full(n - 1, 0.9)],
    }[kind]
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (Q * values) @ Q.T * 10.0 ** (rng.uniform(-100, 100) if rng.random() < 0.2 else 0.0)
    return (A + A.T) / 2


def check_eigen(A, eigen, k, tol):
    values = np.linalg.eigvalsh(A)[::-1]
    scale = max(np.abs(values).max(), 1e-300)
    assert eigen.vectors.shape == (len(A), k) and (np.diff(eigen.values) <= 1e-12 * scale).all()
    assert np.abs(eigen.vectors.T @ eigen.vectors - np.eye(k)).max() < 1e-11
    true = np.linalg.norm(
        A / scale @ eigen.vectors - eigen.vectors * (eigen.values / scale), axis=0
    )
    assert (true <= 1.1 * eigen.residual + 1e-12).all() and eigen.residual.max() <= max(
        1.1 * tol, 1e-9
    )
    assert np.abs(eigen.values - values[:k]).max() <= max(tol, 1e-10) * scale
    largest = np.abs(eigen.vectors).argmax(0)
    assert (eigen.vectors[largest, np.arange(k)] > 0).all()


def attack_eigenpairs(case):
    A = symmetric_matrix(case)
    n = len(A)
    k = int(
        case.rng.choice(
            [1, min(n, 2), min(n, 5), min(n, 10), min(n, 17), n, int(case.rng.integers(1, n + 1))]
        )
    )
    tol = float(case.rng.choice([1e-8, 1e-12]))
    check_eigen(A, call(kp.block_lanczos, A, k, case.seed, tol=tol), k, tol)
    norm = np.linalg.norm(A, 2)
    for tol in (0.1, 0.03, 1e-2, 1e-6):
        found = call(kp.spectral_norm, A, case.seed, tol=tol)
        assert (1 - tol) * norm <= found * (1 + 1e-12) and found <= norm * (1 + 1e-12)
    if n <= 160:
        eigen = call(kp.orthogonal_iteration, A, min(k, 5), case.seed, tol=1e-6, max_iterations=300)
        scale = max(norm, 1e-300)
        true = np.linalg.norm(
            A / scale @ eigen.vectors - eigen.vectors * (eigen.values / scale), axis=0
        )
        assert (true <= 1.2 * eigen.residual + 1e-12).all()
        assert np.abs(eigen.vectors.T @ eigen.vectors - np.eye(min(k, 5))).max() < 1e-11


def attack_kernel_pca(case):
    X, kernel, n = case.X, case.kernel, case.n
    k = int(case.rng.integers(1, min(n, 20) + 1))
    scale = np.abs(case.K).max() * n + 1e-300
    for centered, matrix in ((False, case.K), (True, naive.centered(case.K))):
        model = call(kp.kpca, X, kernel, k, case.seed, centered=centered)
        values = np.linalg.eigvalsh(matrix)[::-1][:k]
        allowed = n * case.tolerance + (n + 100) * case.eps * scale
        cut = model.values == 0
        assert (
            np.abs(model.values - values)[~cut].max(initial=0) <= allowed
            and (values[cut] <= 2 * allowed).all()
        )
        features = call(kp.features, X, model)
        assert features.shape == (n, k) and np.isfinite(features).all()
        # Features have inner products that sum to the eigenvalues, as far as rounding leaves the small ones alone.
        strong = model.values > 1e4 * allowed
        assert np.allclose(
            (features.astype(float) ** 2).sum(0)[strong], model.values[strong], rtol=1e-3
        )


def attack_leverage(case):
    if case.kind in ("polynomial", "linear") and case.K.max() > 1e100:
        return
    X, kernel, n = case.X, case.kernel, case.n
    top = max(np.linalg.norm(case.K, 2), 1e-300)
    lam = (
        float(top * 10.0 ** case.rng.uniform(-9, 1))
        if case.rng.random() < 0.9
        else float(top * 1e-17)
    )
    lam = max(lam, 1e-300)  # less is refused
    values, vectors = np.linalg.eigh(case.K)
    exact = vectors**2 @ (np.maximum(values, 0) / (np.maximum(values, 0) + lam))
    blur = 10 * (n * case.tolerance + n * 2.2e-16 * top) / lam
    scores = call(kp.ridge_leverage_scores, X, kernel, lam)
    assert (scores >= 0).all() and (scores <= 1).all() and (scores >= exact - 1e-9 - 4 * blur).all()
    assert (np.abs(scores - exact) <= 1e-9 + 4 * blur).all()
    m = int(case.rng.integers(1, n + 1))
    rows, weights = case.rng.choice(n, m, replace=False), case.rng.uniform(0.5, 3, m)
    landmarks = kp.Landmarks(rows, weights, 0)
    near = call(kp.approximate_ridge_leverage_scores, X, landmarks, kernel, lam)
    assert (near >= 0).all() and (near <= 1).all()
    if blur < 1e-3 and n <= 300:
        expected = np.clip(naive.unexplained(case.exact, rows, lam / weights**2) / lam, 0, 1)
        assert np.abs(near - expected.astype(float)).max() <= 1e-6 + blur
    s = int(case.rng.integers(1, n + 3))
    for sampler in (kp.recursive_rls_practical, kp.recursive_rls_accelerated):
        check_landmarks(call(sampler, X, kernel, s, case.seed, delta=0.1), n, min(s, n))
    check_landmarks(call(kp.recursive_rls, X, kernel, lam, case.seed, delta=0.03), n, None)
    check_landmarks(call(kp.recursive_rls_fixed, X, kernel, s, case.seed, delta=0.03), n, None)
    check_landmarks(call(kp.rls_nystrom, X, kernel, lam, case.seed, delta=0.1), n, None)
    check_landmarks(call(kp.uniform_landmarks, n, s, case.seed), n, min(s, n))


def check_landmarks(found, n, count):
    indices = found.indices
    assert np.unique(indices).size == indices.size and (indices >= 0).all() and (indices < n).all()
    assert count is None or indices.size == count
    assert found.weights.shape == indices.shape and (found.weights >= 1 - 1e-12).all()
    assert np.isfinite(found.weights).all()
    assert found.evaluations >= 0


def attack_nystrom(case):
    X, kernel, n = case.X, case.kernel, case.n
    top = max(np.abs(case.K).max(), 1e-300)
    s = int(case.rng.integers(1, n + 1))
    found = call(kp.rpcholesky, X, kernel, s, case.seed)
    assert (
        0 <= found.indices.size <= min(s, n) and np.unique(found.indices).size == found.indices.size
    )
    if found.indices.size < min(s, n):  # nothing but rounding may be left
        left = naive.unexplained(case.exact, found.indices)
        assert left.max() <= (1e-2 if case.single else 1e-6) * top
    distinct = np.unique(X, axis=0).shape[0]
    assert s >= n or found.indices.size <= distinct
    rows = case.rng.choice(n, s, replace=False)
    F = call(kp.nystrom, X, rows, kernel).astype(float)
    assert F.shape == (n, s) and np.isfinite(F).all()
    left = case.K / top - (F / math.sqrt(top)) @ (F / math.sqrt(top)).T
    rounding = math.sqrt(case.eps) if case.single else 1e-8
    assert np.abs(left[rows][:, rows]).max() <= 30 * rounding
    assert np.linalg.eigvalsh(left)[0] >= -30 * rounding * n
    mapped = call(kp.nystrom_map, X, rows, kernel)
    assert 0 <= mapped.rank <= min(s, distinct)
    assert np.array_equal(call(kp.features, X, mapped), F.astype(X.dtype))
    k = int(case.rng.integers(1, s + 1))
    model = call(kp.nystrom_kpca, X, rows, kernel, k, case.seed, centered=False)
    values = np.linalg.eigvalsh((F / math.sqrt(top)).T @ (F / math.sqrt(top)))[::-1][:k]
    assert np.abs(model.values / top - values).max() <= (1e-4 if case.single else 1e-10) * n
    assert (np.diff(model.values) <= 0).all()


def attack_errors(case):
    A, B = symmetric_matrix(case), symmetric_matrix(case)
    B = np.ascontiguousarray(np.resize(B, A.shape)) if A.shape != B.shape else B
    B = (B + B.T) / 2
    norm, n = np.linalg.norm(A - B, 2), len(A)
    rounding = 1e-13 * (np.linalg.norm(A, 2) + np.linalg.norm(B, 2)) * math.sqrt(n)
    found = call(kp.spectral_error, A, B, case.seed)
    assert (1 - 0.01) * norm - rounding <= found <= norm + rounding
    if 1e-140 < np.abs(A - B).max() < 1e140:
        assert (
            abs(call(kp.frobenius_error, A, B) - np.linalg.norm(A - B))
            <= 1e-12 * np.linalg.norm(A - B) + rounding
        )
    exact, trace = naive.nuclear_norm(A - B), abs(np.trace(A - B))
    found = call(kp.nuclear_error, A, B)
    assert trace - n * rounding <= found * (1 + 1e-12)
    assert abs(found - exact) <= 1e-10 * exact + n * rounding
    k = int(case.rng.integers(1, n + 1))
    V = case.rng.standard_normal((n, k))
    cost = call(kp.projection_cost, A, V)
    assert abs(cost - naive.projection_cost(A, V)) <= 1e-9 * n * np.linalg.norm(A, 2)
    P = A @ (A / max(np.linalg.norm(A, 2), 1e-300)) if np.abs(A).max() > 1e-100 else np.eye(n)
    P = (P + P.T) / 2
    lam = float(np.linalg.norm(P, 2) * 10.0 ** case.rng.uniform(-5, 1)) or 1.0
    values = np.maximum(np.linalg.eigvalsh(P), 0)
    expected = (values / (values + lam)).sum()
    assert abs(call(kp.effective_dimension, P, lam, case.seed) - expected) <= (
        0.6 * expected if n > 512 else 1e-6 * n
    )


def attack_expansions(case):
    X, kernel, n = case.X, case.kernel, case.n
    coef = case.rng.standard_normal((n, int(case.rng.integers(1, 4)))) * 10.0 ** (
        case.rng.uniform(-100, 100) if case.rng.random() < 0.2 else 0
    )
    coef[case.rng.random(n) < 0.2] = 0.0
    s = float(10.0 ** case.rng.uniform(-1, 3))
    # its points are row numbers, so that the points that are left say which rows were kept
    numbered = kp.Expansion(np.arange(n)[:, None] * 1.0, coef, np.ones(coef.shape[1]), kp.linear())
    rounded = call(kp.round_expansion, numbered, s, case.seed)
    norms = np.linalg.norm(coef / max(np.abs(coef).max(), 1e-300), axis=0) * max(
        np.abs(coef).max(), 1e-300
    )
    rows = rounded.points[:, 0].astype(int)
    assert (np.diff(rows) > 0).all()
    drawn = np.zeros(coef.shape)
    drawn[rows] = rounded.coef
    for q in range(coef.shape[1]):
        kept = np.flatnonzero(drawn[:, q])
        data = drawn[kept, q]
        assert (data * np.sign(coef[kept, q]) > 0).all()
        assert np.allclose(
            np.abs(data), np.maximum(np.abs(coef[kept, q]), norms[q] / s), rtol=1e-12
        )
        large = np.flatnonzero(np.abs(coef[:, q]) >= norms[q] / s * (1 + 1e-9))
        assert np.isin(large[coef[large, q] != 0], kept).all()
    if np.abs(coef).max() < 1e10 and not case.single:
        model = kp.Expansion(X, coef, np.ones(coef.shape[1]), kernel)
        expected = case.K @ coef
        size = (
            (np.abs(case.K) @ np.abs(coef)).max() * 1e-12
            + case.tolerance * np.abs(coef).sum()
            + 1e-300
        )
        assert np.abs(call(kp.features, X, model) - expected).max() <= size
        thin = call(kp.round_expansion, model, s, case.seed)
        size *= 1 + np.abs(drawn).sum() / max(np.abs(coef).sum(), 1e-300)
        assert np.abs(call(kp.features, X, thin) - case.K @ drawn).max() <= size


def attack_learning(case):
    rng, n, r = case.rng, case.n, int(case.rng.integers(1, 9))
    F = rng.standard_normal((n, r)) * 10.0 ** rng.uniform(-3, 3, r)
    if rng.random() < 0.3:
        F[:, -1] = F[:, 0] + 1e-3 * rng.standard_normal(n) * F[:, 0].std()
    F = F.astype(case.X.dtype)
    y = rng.standard_normal(n)
    wide = F.astype(float)
    lam = float((wide**2).sum() * 10.0 ** rng.uniform(-9, 2)) or 1.0
    found = call(kp.factor_ridge, F, y, lam)
    expected = np.linalg.solve(wide.T @ wide + lam * np.eye(r), wide.T @ y)
    condition = ((wide**2).sum() + lam) / lam
    assert np.abs(wide @ (found - expected)).max() <= 1e-13 * condition * np.linalg.norm(y) + 1e-12
    k = int(rng.integers(1, min(n, 6) + 1))
    clusters = call(kp.kernel_kmeans, F, k, case.seed, restarts=2)
    cost = ((wide - clusters.centers[clusters.labels]) ** 2).sum()
    assert clusters.labels.min() >= 0 and clusters.labels.max() < k
    assert abs(cost - clusters.cost) <= 1e-5 * cost + 1e-300
    assert clusters.cost <= ((wide - wide.mean(0)) ** 2).sum() * (1 + 1e-4) + 1e-300
    reduced = call(kp.kmeans_select, case.X, k, case.seed)
    assert (
        reduced.weights.sum() == n
        and (np.bincount(reduced.labels, minlength=k) == reduced.weights).all()
    )
    G = rng.standard_normal((n, r))
    for squared in (True, False):
        found = call(kp.kernel_cca, wide, G, lam, 1.0, min(n, r, 3), squared=squared)
        expected = naive.correlations(wide, G, lam, 1.0, squared)[: min(n, r, 3)]
        assert (
            np.abs(found.values[: len(expected)] - expected).max()
            <= 1e-10 * math.sqrt((wide**2).sum() / lam) + 1e-10
        )


def attack_projection(case):
    s = int(case.rng.integers(1, 40))
    Z = call(kp.rademacher_projection, case.X, s, case.seed)
    signs = np.sqrt(s) * kp.rademacher_projection(np.eye(case.X.shape[1]), s, case.seed)
    expected = case.X.astype(float) @ signs / np.sqrt(s)
    allowed = 50 * case.eps * np.abs(case.X.astype(float)).sum(1, keepdims=True) + 1e-300
    assert (np.abs(np.abs(signs) - 1) < 1e-12).all() and (np.abs(Z - expected) <= allowed).all()


class Interrupt(Exception):
    """What an alarm raises, wherever the main thread is."""


def after_interrupts(state, X, rng):
    """The state after X in blocks, stopped by alarms at odd moments and taken up where it was."""

    def stop(*_):
        raise Interrupt

    at, block, former = (state, 0), max(1, len(X) // 8), signal.signal(signal.SIGALRM, stop)
    most = 0.1
    try:
        while True:
            try:
                while at[1] < len(X):
                    signal.setitimer(signal.ITIMER_REAL, most * 10.0 ** rng.uniform(-4, 0))
                    new = kp.update(at[0], X[at[1] : at[1] + block])
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    at = (new, at[1] + block)
                return at[0]
            except Interrupt:
                CALLS["interrupts"] += 1
                most *= 1.1  # a block gets done, however slow the machine is
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def attack_streams(case):
    rng, n, d = case.rng, case.n, case.X.shape[1]
    Z = rng.standard_normal((n, int(rng.choice([1, 2, 3, 8, 31, 64])))) * 10.0 ** rng.uniform(-6, 6)
    if rng.random() < 0.5:
        Z *= np.geomspace(1, 10.0 ** rng.uniform(-12, 0), Z.shape[1])
    if case.data in ("constant", "zero", "repeated"):
        Z = case.points(case.data, n, Z.shape[1])
    ell, half, share = (
        int(rng.integers(1, Z.shape[1] + 1)),
        bool(rng.random() < 0.5),
        float(rng.choice([1.0, 0.5, 0.2])),
    )
    found = call(kp.frequent_directions, Z, ell, half=half, share=share)
    whole = (Z**2).sum()
    error = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
    assert error[0] >= -1e-12 * whole and error[-1] <= found.shrunk * (1 + 1e-5) + 1e-12 * whole
    j = math.ceil(share * ((ell + 1) // 2 if half else ell) - 1e-9)
    assert found.shrunk * j <= whole * (1 + 1e-9)
    state = kp.fd_start(ell, Z.shape[1], half=half, share=share)
    for part in np.array_split(Z, min(n, int(rng.integers(1, 5)))):
        state = call(kp.update, state, part)
    assert same(kp.finish(state), found)
    if case.kind in ("polynomial", "linear"):
        with pytest.raises(ValueError, match="kernel must be shift-invariant"):
            kp.fourier_features_map(case.kernel, d, 8)
        return
    m = int(rng.choice([1, 7, 8, 31, 33, 128, 129, 300]))
    makers = [row.make for row in tables.FEATURES.values() if row.least_d <= d]
    drawn = call(makers[rng.integers(len(makers))], case.kernel, d, m, case.seed)
    Z = call(kp.features, case.X, drawn)
    assert (
        Z.dtype == case.X.dtype
        and (np.abs(Z) <= math.sqrt(2 / m * case.kernel.scale) * (1 + 1e-5)).all()
    )
    ell, centered = int(rng.integers(1, m + 1)), bool(rng.random() < 0.5)
    state = call(kp.update, kp.skpca_start(drawn, ell, centered=centered), case.X)
    assert same(after_interrupts(kp.skpca_start(drawn, ell, centered=centered), case.X, rng), state)
    found = call(kp.finish, state, int(rng.integers(1, ell + 1)))
    Z = Z.astype(float) - (Z.astype(float).mean(0) if centered else 0)
    lengths, whole = ((Z @ found.basis) ** 2).sum(0), (Z**2).sum() + n * case.kernel.scale * 1e-6
    assert (
        np.abs(lengths - found.values - found.shrunk / 2)
        <= found.shrunk / 2 * (1 + 1e-5) + 1e-6 * whole
    )[found.values > 0].all()
    assert (
        np.abs(call(kp.features, case.X, found) - Z @ found.basis).max()
        <= 1e-5 * math.sqrt(m * case.kernel.scale) + 1e-300
    )
    rest = np.linalg.norm(Z - Z @ found.basis @ found.basis.T, axis=1)
    rest /= math.sqrt(case.kernel.scale)
    assert np.abs(call(kp.residual, case.X, found) - rest).max() <= 1e-3


def attack_merges_and_rivals(case):
    rng, n, X, d = case.rng, case.n, case.X, case.X.shape[1]
    parts = np.array_split(X, min(n, int(rng.integers(1, 4))))
    # reservoirs: rows of X, however it is cut, and a Nystrom factor below the Gram matrix
    c = int(rng.choice([1, 2, 8, 31, 65]))
    state = reservoirs.start(c, d, case.seed)
    for part in parts:
        state = call(reservoirs.update, state, part)
    assert same(call(reservoirs.update, reservoirs.start(c, d, case.seed), X), state)
    assert (state.points[:, None, :] == X.astype(float)[None]).all(-1).any(1).all()
    K, k = case.exact.astype(float), int(rng.integers(1, c + 1))
    own = kp.gram_diagonal(state.points, case.kernel)
    if np.abs(own - own[0]).max() > 1e-6 * abs(own[0]):
        with pytest.raises(ValueError, match="must have the same k"):
            reservoirs.finish(state, case.kernel, k)
        return
    found = call(reservoirs.finish, state, case.kernel, k)
    F = call(kp.features, X.astype(float), found)
    assert np.isfinite(F).all()
    if case.kind not in ("polynomial", "linear") and not case.single:
        assert np.linalg.eigvalsh(K - F @ F.T)[0] >= -1e-5 * np.trace(K)
    if case.kind in ("polynomial", "linear"):
        return
    # merged sketches keep the bound of one pass, random features' own covariance is decomposed
    m, centered = int(rng.choice([1, 7, 31, 64, 129])), bool(rng.random() < 0.5)
    drawn = kp.fourier_features_map(case.kernel, d, m, case.seed)
    ell = int(rng.integers(1, m + 1))
    states = [kp.update(kp.skpca_start(drawn, ell, centered=centered), part) for part in parts]
    sketches = [kp.update(kp.fd_start(ell, m), kp.features(part, drawn)) for part in parts]
    while len(states) > 1:
        states = [call(kp.merge, *states[:2]), *states[2:]]
        sketches = [call(kp.merge, *sketches[:2]), *sketches[2:]]
    Z = kp.features(X, drawn).astype(float)
    whole = (Z**2).sum() + n * case.kernel.scale * 1e-6
    for Z, sketch in ((Z, sketches[0]), (Z - (Z.mean(0) if centered else 0), states[0].sketch)):
        found = kp.finish(sketch)
        error = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
        assert (
            sketch.count == n
            and error[0] >= -1e-6 * whole
            and error[-1] <= found.shrunk * (1 + 1e-5) + 1e-6 * whole
        )
        assert found.shrunk * ((ell + 1) // 2) <= whole * (1 + 1e-5)
    k = int(rng.integers(1, m + 1))
    found, exact = (
        call(kp.rnca, X, case.kernel, k, m, case.seed, centered=centered),
        np.linalg.eigvalsh(Z.T @ Z)[::-1][:k],
    )
    assert np.abs(found.values - exact).max() <= 1e-5 * whole
    streamed = [kp.update(kp.rnca_start(drawn, centered=centered), part) for part in parts]
    while len(streamed) > 1:
        streamed = [call(kp.merge, *streamed[:2]), *streamed[2:]]
    assert np.abs(call(kp.finish, streamed[0], k).values - exact).max() <= 1e-5 * whole
    basis = found.basis[:, found.values > 0]
    assert np.abs(basis.T @ basis - np.eye(basis.shape[1])).max(initial=0.0) < 1e-9


def attack_shadows(case):
    rng, n, d, X = case.rng, case.n, case.X.shape[1], case.X
    wide = X.astype(float)
    i, j = rng.integers(0, n, 2)
    gap = math.sqrt(((wide[i] - wide[j]) ** 2).sum()) or float(np.abs(wide).max()) or 1.0
    # eps at a distance of two points to the last bit, or anywhere
    eps = float(
        np.clip(gap * (1.0 if rng.random() < 0.4 else 10.0 ** rng.uniform(-3, 1)), 1e-150, 1e150)
    )
    centers, labels = naive.shadows(X, eps)
    found = call(kp.shadow_select, X, eps)
    assert np.array_equal(found.centers, X[centers]) and np.array_equal(found.labels, labels)
    assert np.array_equal(found.weights, np.bincount(labels)) and found.centers.dtype == X.dtype
    assert np.array_equal(call(kp.shadow_labels, X, found.centers, eps), labels)
    state = kp.shadow_start(eps, d)
    for part in np.array_split(X, min(n, int(rng.integers(1, 5)))):
        state = call(kp.update, state, part)
    assert same(kp.finish(state)[:2], (found.centers.astype(float), found.weights))


def attack_reduced_sets(case):
    rng, n, X, kernel = case.rng, case.n, case.X, case.kernel
    m = int(rng.integers(1, min(n, 40) + 1))
    top = abs(case.K).max()
    sets = [
        call(kp.kmeans_select, X, m, case.seed),
        call(kp.herd, X, kernel, m),
    ]
    if case.kind not in ("polynomial", "linear"):
        sets.append(call(kp.kernel_thin, X, kernel, m, case.seed))
    for found in sets:
        assert found.centers.shape == (m, X.shape[1]) and found.weights.sum() == pytest.approx(n)
        assert found.labels.min(initial=0) >= 0 and found.labels.max(initial=0) < m
    for found in sets[1:]:  # centers are points
        assert (found.centers[:, None] == X[None]).all(-1).any(1).all()
    found = sets[rng.integers(len(sets))]
    C, w, k = found.centers, found.weights, int(rng.integers(1, m + 1))
    K_C = kp.gram(C.astype(float), C.astype(float), kernel)
    exact = np.linalg.eigvalsh(K_C * np.sqrt(np.outer(w, w)))[::-1]
    allowed = max(1e-11, 40 * case.eps) * n * top + case.tolerance * n + 1e-300
    reduced = call(kp.rskpca, found, kernel, k, case.seed, centered=False)
    assert (
        np.abs(reduced.values - np.where(reduced.values > 0, exact[:k], reduced.values)).max()
        <= allowed
    )
    assert np.isfinite(call(kp.features, X, reduced)).all()
    assert np.isfinite(call(kp.rskpca, found, kernel, k, case.seed).coef).all()
    extended = call(kp.weighted_nystrom, X, found, kernel, k, case.seed)
    assert np.isfinite(extended.coef).all() and same(extended.values, reduced.values)
    K, cross = case.K, kp.gram(X.astype(float), C.astype(float), kernel)
    if top < 1e150:
        size = math.sqrt(1e-13 * top + 4 * case.tolerance)
        assert call(kp.mmd, X, found, kernel) == pytest.approx(
            naive.mmd(K, cross, K_C, w), rel=1e-6, abs=size
        )
    if top < 1e70:
        expected, size = (
            naive.mmd(K**2, cross**2, K_C**2, w),
            math.sqrt(1e-13 * top**2 + 8 * case.tolerance * top),
        )
        assert call(kp.operator_distance, X, found, kernel) == pytest.approx(
            expected, rel=1e-6, abs=size
        )
    distance = call(
        kp.projection_distance,
        reduced,
        call(kp.rskpca, found, kernel, k, case.seed + 1, centered=False),
    )
    assert 0 <= distance <= math.sqrt(2 * k) * (1 + 1e-6)
    if case.kind in ("polynomial", "linear"):
        return
    bounds = call(
        kp.shadow_bounds,
        kernel,
        0.1 / math.sqrt(max(kernel.gamma, 1e-290)) if kernel.gamma < 1e290 else 1e-149,
    )
    assert all(math.isfinite(value) and value >= 0 for value in bounds)
    if top < 1e30 and (not case.single or 1e-20 < top):
        manifolds, less, alpha = (
            [call(kp.normalized_cut, found, kernel, min(k, np.count_nonzero(w)))],
            min(k, np.count_nonzero(w) - 1),
            float(rng.random()),
        )
        if less > 0:
            manifolds += [
                call(kp.laplacian_eigenmap, found, kernel, less),
                call(kp.diffusion_map, found, kernel, less, 0, alpha=alpha, time=2.0),
            ]
        for manifold in manifolds:
            assert (
                np.isfinite(manifold.coef).all()
                and np.isfinite(call(kp.features, C, manifold)).all()
            )


def attack_gradients(case):
    """A start that may be refused for its data, then steps against those of stored features, until they are refused or
    done."""
    rng, X, kernel = case.rng, case.X, case.kernel
    n, d, top = case.n, X.shape[1], kernel.scale
    m, k = int(rng.choice([1, 7, 40, 127, 128, 129, 300])), int(rng.choice([1, 1, 2, 4, 5, 17]))
    drawn = (
        None
        if case.kind in ("polynomial", "linear")
        else kp.fourier_features_map(kernel, d, m, case.seed, stored=False, paired=False)
    )
    task = str(rng.choice(["kpca", "gha", "ksvd", "kcca", "ksir"]))
    initial, b, centered = (
        int(rng.choice([1, 5, 40, 300])),
        int(rng.choice([1, 16, 127, 128, 500])),
        bool(rng.random() < 0.5),
    )
    theta0 = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-3, 1) / max(top, 1e-140)
    ridge = float(rng.choice([0.0, 0.1 * min(top, 1e140)])) if task in ("kcca", "ksir") else 0.0
    Y, other = (
        None,
        None
        if drawn is None
        else kp.fourier_features_map(
            kp.scaled(kp.laplacian(2.0), top), 2, m, case.seed + 1, stored=False, paired=False
        ),
    )
    if task in ("ksvd", "kcca"):
        Y = np.column_stack([np.sin(X[:, 0].astype(float)), rng.standard_normal(n)])
    elif task == "ksir":
        Y = (
            rng.standard_normal((n, 1))
            if rng.random() < 0.5
            else rng.integers(0, 3, (n, 1)).astype(float)
        )
    if drawn is None:
        with pytest.raises(ValueError, match="kernel must be shift-invariant"):
            kp.dsgd_kpca(X, kernel, k, m, centered=False)
        return
    steps = kp.DSGDSteps(feature_batch=b, theta0=theta0, initial=initial)
    settings = {"steps": steps, "centered": centered}
    try:
        if task in ("kpca", "gha"):
            state = call(kp.dsgd_start, X, drawn, k, **settings, individual=task == "gha")
        elif task == "ksvd":
            state = call(kp.dsgd_ksvd_start, X, Y, drawn, other, k, **settings)
        elif task == "kcca":
            state = call(kp.dsgd_kcca_start, X, Y, drawn, other, k, **settings, lam=ridge)
        else:
            state = call(kp.dsgd_ksir_start, X, Y, drawn, k, **settings, slices=4, lam=ridge)
    except ValueError as refused:
        assert any(
            words in str(refused)
            for words in ("k must be", "Y must not be constant", "must be scaled by")
        )
        assert str(refused).startswith("dsgd_")
        return
    phi = math.sqrt(m) * kp.features(X, drawn).astype(float)
    if task == "ksir":
        edges = state.slices.edges[0]
        psi = (
            np.searchsorted(edges, Y[:, 0], side="right")[:, None] == np.arange(len(edges) + 1)
        ) @ state.slices.weights
    else:
        psi = (
            np.zeros((n, 0))
            if Y is None
            else math.sqrt(m) * kp.features(Y.astype(X.dtype), other).astype(float)
        )
    for t in range(4):
        fresh = 2 * (m - state.used) >= min(b, m)
        first = state.used if fresh else None
        try:
            after = call(kp.update, state, X, Y)
        except ValueError as refused:
            assert any(
                words in str(refused)
                for words in (
                    "diverged at step",
                    "a mini-batch must have at least",
                    "angles .* overflow",
                )
            )
            break
        assert (
            all(np.isfinite(a).all() for a in (after.coef, after.moment))
            and (after.other_coef is None or np.isfinite(after.other_coef).all())
            and after.step == t + 1
        )
        if fresh:
            count, eta = after.used - first, kp._step_size(state, n)
            a, c, W = naive.dsgd_step(
                task,
                state.coef,
                np.zeros((0, k)) if state.other_coef is None else state.other_coef,
                phi,
                psi,
                slice(first, first + count),
                eta,
                ridge,
                centered,
            )
            size = (
                1e3
                * case.eps
                * (
                    np.abs(a).max()
                    + np.abs(state.coef).max()
                    + eta * np.abs(phi).max() ** 2 * np.abs(state.coef).sum()
                )
            )
            assert np.abs(after.coef - a).max() <= size * max(1.0, eta * np.abs(W).max())
            assert (
                np.abs(W - W.T).max() <= 1e-9 * np.abs(W).max() + 1e-300
                and min(b, m) <= 2 * count <= 2 * b
            )
        state = after
    model = call(kp.finish, state)
    model = model.first if task in ("ksvd", "kcca") else model
    values = call(kp.features, X, model)
    expected = phi[:, : len(model.coef)] @ model.coef
    assert values.dtype == X.dtype
    assert np.abs(values - expected).max() <= 100 * case.eps * m * (
        np.abs(phi).max() * np.abs(state.coef).sum() + 1e-300
    )
    found = call(kp.dsgd_values, state)
    assert (np.diff(found) <= 0).all() or task == "gha"


ATTACKS = {
    name[7:]: function for name, function in sorted(globals().items()) if name.startswith("attack_")
}


def run(name, seed):
    """One attack; a case whose kernel values no number holds must be refused by name."""
    case = Case(seed)
    try:
        if case.representable:
            ATTACKS[name](case)
        elif name not in ("eigenpairs", "errors", "learning"):
            with pytest.raises(ValueError, match="must"):
                kp.gram(case.X, case.X, case.kernel)
    except Exception as error:
        place = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == __file__
        ][-1]
        raise AssertionError(
            f"{name}, {case}, line {place.lineno}, {place.line}: {error}"
        ) from error


@pytest.mark.slow
# alarms in callbacks of Python's own
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:.* clusters have points:UserWarning")  # equal points
@pytest.mark.parametrize("name", ATTACKS)
def test_random_attack(name, pytestconfig):
    first, before = pytestconfig.getoption("--attack-seed"), CALLS.total()
    for seed in range(first, first + pytestconfig.getoption("--attacks")):
        run(name, seed)
    assert CALLS.total() > before


# Files: damaged ones, and those that a process was writing when it was killed or when the disk was full.


def damaged(rng, content):
    """The bytes cut short, or with some of them changed."""
    content = bytearray(content)
    if rng.random() < 0.3:
        return bytes(content[: int(rng.integers(len(content)))])
    for _ in range(int(rng.choice([1, 1, 2, 10]))):
        place = (
            int(rng.integers(len(content)))
            if rng.random() < 0.5
            else int(rng.integers(min(200, len(content))))
        )
        content[place] = (
            int(rng.integers(256))
            if rng.random() < 0.5
            else content[place] ^ (1 << int(rng.integers(8)))
        )
    return bytes(content)


def quietly(*arguments):
    """Exit status and errors of a command."""
    errors = io.StringIO()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(errors),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # of values that a changed bit makes huge
        return kp.main([str(argument) for argument in arguments]), errors.getvalue()


STREAMED = ["-m", "16", "--ell", "4", "-k", "2", "--sigma", "2", "--no-center"]


@pytest.mark.slow
def test_damaged_files_are_refused_in_one_line(tmp_path, pytestconfig):
    X = np.random.default_rng(0).standard_normal((30, 3))
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "X.npz", X=X)
    np.savez_compressed(tmp_path / "Z.npz", X=X)
    np.savetxt(tmp_path / "X.csv", X, "%.3f", ",")
    assert (
        quietly(
            "stream",
            tmp_path / "X.npy",
            *STREAMED,
            "--state",
            tmp_path / "state.npz",
            "-o",
            tmp_path / "model.npz",
        )[0]
        == 0
    )
    originals = {
        name: (tmp_path / name).read_bytes()
        for name in ("X.npy", "X.npz", "Z.npz", "X.csv", "state.npz", "model.npz")
    }
    first, tried = pytestconfig.getoption("--attack-seed"), collections.Counter()
    for seed in range(first, first + 8 * pytestconfig.getoption("--attacks")):
        rng = np.random.default_rng([seed, 5])
        name = list(originals)[seed % len(originals)]
        path = tmp_path / ("bad." + name.split(".")[1])
        path.write_bytes(damaged(rng, originals[name]))
        if name == "state.npz":
            code, errors = quietly("stream", tmp_path / "X.npy", *STREAMED, "--state", path)
        elif name == "model.npz":
            code, errors = quietly("apply", path, tmp_path / "X.npy", "-o", tmp_path / "out.npz")
        else:
            code, errors = quietly("stream", path, *STREAMED)
        refusals = [line for line in errors.splitlines() if " error: " in line]
        assert code in (0, 2) and len(refusals) == (code == 2), (seed, name, code, errors)
        if name in ("state.npz", "model.npz"):
            try:
                kp.load(path)
            except ValueError as error:
                assert "bad.npz" in str(error), (seed, name, error)
        tried[code] += 1
    assert tried[2] > tried.total() / 4 and not list(tmp_path.glob("*.part"))


def contents(path):
    """What a file holds, in full; None for none."""
    if not path.exists():
        return None
    if path.suffix == ".png":
        return path.read_bytes()[-12:]  # how a whole picture ends
    with (
        contextlib.closing(np.load(path))
        if path.suffix == ".npz"
        else contextlib.nullcontext(np.load(path)) as held
    ):
        return (
            {name: held[name].tobytes() for name in held.files}
            if path.suffix == ".npz"
            else held.tobytes()
        )


def interrupt(folder, seed, count):
    """In a process of one thread: commands in children that are killed, or run out of space, at random moments."""
    import resource

    folder, rng = pathlib.Path(folder), np.random.default_rng(seed)
    places = [folder / name for name in ("out.npz", "out.npy", "saved.npz")]
    state = folder / "state.npz"

    def work(version):
        """Write all files for one of two versions of the points."""
        codes = [
            quietly("stream", folder / f"X{version}.npy", *STREAMED, "-o", place)[0]
            for place in places[:2]
        ]
        kp.save(places[2], kp.gaussian(1.0 + version))
        codes.append(quietly("stream", folder / "X0.npy", *STREAMED, "--state", state)[0])
        return max(codes)

    for version in (0, 1):
        np.save(
            folder / f"X{version}.npy", np.random.default_rng(version).standard_normal((20_000, 3))
        )
    versions, whole = [], None
    start = time.perf_counter()
    for version in (0, 1):
        assert work(version) == 0
        versions.append([contents(place) for place in places])
    taken, whole = (
        (time.perf_counter() - start) / 2,
        contents(state)["sketch.run.columns"],
    )
    found = collections.Counter()
    for number in range(count):
        if rng.random() < 0.3 and state.exists():
            state.unlink()
        limited, version = rng.random() < 0.3, int(rng.integers(2))
        child = os.fork()
        if child == 0:
            if limited:  # bytes of a file: what is beyond is refused, as by a full disk
                resource.setrlimit(resource.RLIMIT_FSIZE, (int(10 ** rng.uniform(1, 6.5)),) * 2)
            try:
                code = work(version)
            except OSError:  # of kp.save
                code = 2
            os._exit(code)
        if limited:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert code in (0, 2), code
        else:
            time.sleep(taken * rng.uniform(0, 1.2))
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL if rng.random() < 0.7 else signal.SIGTERM)
            os.waitpid(child, 0)
        for j, place in enumerate(places):
            which = [contents(place) == versions[version][j] for version in (0, 1)]
            assert any(which), (
                f"{place.name} is neither the old file nor the new one, after {number} kills"
            )
            found[place.name, which.index(True)] += 1
        if state.exists():
            held = kp.load(state).count
            assert held in (8192, 16384, 20_000), held
            found["state", held] += 1
    assert quietly("stream", folder / "X0.npy", *STREAMED, "--state", state)[0] == 0
    assert contents(state)["sketch.run.columns"] == whole, "the stream has ended with other bits"
    assert work(0) == 0
    assert {name.split(".npz")[0] for name in os.listdir(folder) if not name.endswith(".part")} <= {
        "X0.npy",
        "X1.npy",
        "out",
        "out.npy",
        "saved",
        "state",
    }
    print(count, dict(found))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_files_are_the_old_or_the_new_ones_after_kills_and_full_disks(tmp_path, pytestconfig):
    seed, count = (pytestconfig.getoption(name) for name in ("--attack-seed", "--attacks"))
    command = f"from kpcasketch_tests.test_attack import interrupt; interrupt({str(tmp_path)!r}, {seed}, {count})"
    root = str(pathlib.Path(kp.__file__).parent)
    run = subprocess.run(
        [sys.executable, "-c", command],
        cwd=root,
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_NUM_THREADS": "1", "PYTHONPATH": root, "KPCASKETCH_QUIET": "1"},
    )
    assert run.returncode == 0, run.stderr[-2000:]


def main(seconds, first):
    """Attack until the time is over, and go on after a failure."""
    end, seed, failures = time.perf_counter() + seconds, first, 0
    while time.perf_counter() < end:
        for name in ATTACKS:
            try:
                run(name, seed)
            except AssertionError as error:
                failures += 1
                print(error, flush=True)
        seed += 1
    print(*(f"{count:8} {name}" for name, count in CALLS.most_common()), sep="\n")
    print(
        f"{CALLS.total()} calls of {len(CALLS)} functions, seeds {first} to {seed - 1}: {failures} failures"
    )
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2])))
