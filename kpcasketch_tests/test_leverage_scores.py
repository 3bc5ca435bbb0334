# SPDX-License-Identifier: BSD-3-Clause
"""Ridge leverage scores, the samplers built on them, pivoted Cholesky and the Nystrom factor, against dense linear
algebra."""

import functools
import math
import pathlib
import subprocess
import sys
import tracemalloc

import numba
import numpy as np
import pytest
import scipy.sparse.linalg
from numba import types
from numba.extending import intrinsic
from scipy import stats

import kpcasketch as kp
from kpcasketch_tests import inner, naive
from kpcasketch_tests.tables import SAMPLERS, with_trait

N = 700
X = np.random.default_rng(0).standard_normal((N, 2))
KERNEL = kp.laplacian(5.0)
K = naive.laplacian(X, X, 5.0)
LAM = np.linalg.norm(K, 2) / 30
CHANCE = 1e-8
MANY = np.random.default_rng(1).standard_normal((2500, 2))
# the theorems' constants need many points and a large ridge
SMOOTH, RIDGE = (kp.gaussian(3.0), 500.0)


@intrinsic
def pointer(typing, address):
    def codegen(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.int64)(address), codegen


def spectral_gap(indices):
    return np.linalg.norm(K - naive.nystrom(K, indices), 2)


@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
def test_exact_scores_are_the_definition_and_sum_to_the_effective_dimension(lam):
    scores = kp.ridge_leverage_scores(X, KERNEL, lam)
    assert scores == pytest.approx(naive.ridge_leverage_scores(K, lam), rel=1e-9)
    assert scores.sum() == pytest.approx(naive.effective_dimension(K, lam), rel=1e-10)


def test_exact_scores_are_the_minimum_of_their_variational_form():
    B, lam = np.linalg.cholesky(K[:40, :40] + 1e-12 * np.eye(40)), 0.3
    for i in (0, 17, 39):
        y = np.linalg.solve(B @ B.T + lam * np.eye(40), B @ B[i])
        assert kp.ridge_leverage_scores(X[:40], KERNEL, lam)[i] == pytest.approx(
            ((B[i] - y @ B) ** 2).sum() / lam + y @ y, rel=1e-9
        )


@pytest.mark.bounds
@pytest.mark.parametrize("n, m", [(1, 1), (130, 3), (300, 128), (129, 129), (700, 300)])
def test_approximate_scores_are_those_of_lemma_6(n, m, rng):
    indices, weights = rng.choice(n, m, replace=False), rng.uniform(0.5, 3, m)
    expected = np.clip(
        naive.approximate_ridge_leverage_scores(K[:n, :n], indices, weights, LAM), 0, 1
    )
    landmarks = kp.Landmarks(indices, weights, 0)
    found = kp.approximate_ridge_leverage_scores(X[:n], landmarks, KERNEL, LAM)
    assert np.abs(found - expected).max() < 1e-13
    of_points = landmarks._replace(points=X[indices])
    assert np.array_equal(
        found, kp.approximate_ridge_leverage_scores(X[:n], of_points, KERNEL, LAM)
    )


def test_scores_of_a_plain_subset_are_overestimates(rng):
    half = np.flatnonzero(rng.random(N) < 0.5)
    found = kp.approximate_ridge_leverage_scores(X, half, KERNEL, 0.1)
    assert (found >= naive.ridge_leverage_scores(K, 0.1) - 1e-12).all() and found.max() <= 1.0


@pytest.mark.parametrize("lam", [LAM, 1e-3, 1e-9])
def test_float32_scores_are_right_for_any_ridge(lam):
    # below a hundred roundings of float32 the work is done in float64
    points = X.astype(np.float32)
    indices = np.arange(0, N, 3)
    exact = kp.approximate_ridge_leverage_scores(points.astype(float), indices, KERNEL, lam)
    found = kp.approximate_ridge_leverage_scores(points, indices, KERNEL, lam)
    assert np.abs(found - exact).max() < 0.02 * max(exact.max(), 1e-3)


def test_scores_were_negative_or_nan_where_points_repeat():
    points = np.repeat(X[:5], 60, 0)
    for lam in (1e-20, 1e-5, 1.0):
        exact = kp.ridge_leverage_scores(points, KERNEL, lam)
        if lam > 1e-20:  # of five points with 60 copies, in closed form
            K = kp.gram(X[:5], X[:5], KERNEL)
            shares = np.diag(K @ np.linalg.inv(K + lam / 60 * np.eye(5))) / 60
            assert exact == pytest.approx(np.repeat(shares, 60), rel=1e-4)
        assert lam == 1.0 or (exact >= 1 / 62).all()
        near = kp.approximate_ridge_leverage_scores(points, np.arange(300), KERNEL, lam)
        assert (near >= 0).all() and (near <= 1).all() and (exact >= 0).all()
    assert near == pytest.approx(exact, rel=1e-8)


def test_uniform_landmarks_are_a_uniform_subset():
    draws = [kp.uniform_landmarks(12, 5, seed) for seed in range(3000)]
    assert all((np.diff(d.indices) > 0).all() and d.indices.size == 5 for d in draws)
    assert draws[0].weights == pytest.approx(np.sqrt(12 / 5)) and draws[0].evaluations == 0
    counts = np.bincount(np.concatenate([d.indices for d in draws]), minlength=12)
    # each count is binomial(3000, 5/12); pairs are drawn without replacement
    assert all(stats.binomtest(int(c), 3000, 5 / 12).pvalue > CHANCE for c in counts)
    together = sum(0 in d.indices and 1 in d.indices for d in draws)
    assert stats.binomtest(together, 3000, 5 * 4 / (12 * 11)).pvalue > CHANCE


def test_two_samplers_of_landmarks_shared_a_key():
    # the correlation over seeds of "point i is chosen" was -.51
    n, seeds = 40, 400
    uniform, by_scores = np.zeros((2, seeds, n))
    for seed in range(seeds):
        uniform[seed, kp.uniform_landmarks(n, n // 2, seed).indices] = 1
        scores = np.full(n, 0.5 / math.log(n / 0.1))
        chosen = kp.sample_landmarks(scores, seed, delta=0.1, oversampling=1.0).indices
        by_scores[seed, chosen] = 1
    agree = np.count_nonzero(uniform == by_scores)
    assert abs(agree / (seeds * n) - 0.5) < 0.03  # 7 standard errors


@pytest.mark.parametrize("accelerated", [False, True])
def test_recursion_copied_half_of_the_points(accelerated):
    # 40 MB for a million points of 10 coordinates
    points = np.random.default_rng(0).standard_normal((100_000, 50))
    sampler = kp.recursive_rls_accelerated if accelerated else kp.recursive_rls_practical
    sampler(points, kp.gaussian(7.0), 20)
    tracemalloc.start()
    sampler(points, kp.gaussian(7.0), 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.9 * points.nbytes / 2


def test_points_are_kept_with_the_probability_of_algorithm_1():
    scores, delta = np.array([0.001, 0.002, 0.004, 0.9, 0.5]), 0.1
    p = np.minimum(1, 16 * scores * np.log(scores.sum() / delta))
    counts = np.zeros(5)
    for seed in range(3000):
        found = kp.sample_landmarks(scores, seed, delta=delta)
        counts[found.indices] += 1
        assert found.weights == pytest.approx(1 / np.sqrt(p[found.indices]))
    assert all(stats.binomtest(int(c), 3000, q).pvalue > CHANCE for c, q in zip(counts, p))


def test_algorithm_1_samples_by_its_exact_scores():
    found = kp.rls_nystrom(X, KERNEL, LAM, 5, delta=0.1)
    again = kp.sample_landmarks(kp.ridge_leverage_scores(X, KERNEL, LAM), 5, delta=0.1)
    assert np.array_equal(found.indices, again.indices)
    assert spectral_gap(found.indices) <= LAM


@pytest.mark.parametrize("name", SAMPLERS)
def test_landmarks_are_distinct_rows_with_weights_and_every_seed_gives_others(name):
    row = SAMPLERS[name]
    found, other = (row.draw(X, KERNEL, 60, seed) for seed in (0, 1))
    assert np.unique(found.indices).size == found.indices.size and 0 <= found.indices.min()
    assert found.indices.max() < N
    assert found.weights.shape == found.indices.shape and (found.weights >= 1.0).all()
    assert (found.evaluations > 0) == row.by_kernel
    assert np.array_equal(found.indices, other.indices) != row.random
    assert not row.naive or found.indices.tolist() == row.naive(K, 60)
    again = row.draw(X, KERNEL, 60, 0)
    assert np.array_equal(found.indices, again.indices) and np.array_equal(
        found.weights, again.weights
    )


@pytest.mark.parametrize("name", with_trait(SAMPLERS, "fixed"))
@pytest.mark.parametrize("s", [1, 2, 60, N - 1, N, N + 5])
def test_fixed_sizes_are_kept_to(name, s):
    found = SAMPLERS[name].draw(X, KERNEL, s, 0)
    assert found.indices.size == min(s, N)
    if s >= N:
        assert (
            np.array_equal(found.indices, np.arange(N))
            and (found.weights == 1).all()
            and found.evaluations == 0
        )


def weight_sums(X, kernel, s, delta, trials):
    out = np.zeros((trials, X.shape[0]))
    for t in range(trials):
        found = kp.recursive_rls_practical(X, kernel, s, t, delta=delta)
        out[t][found.indices] = found.weights**2
    return out


def test_squared_weights_of_an_exact_draw_are_unbiased(rng):
    # E S S^T = I: conditioned on the clock of the first point left out, each was included with the chance it is
    # weighted by
    points = np.concatenate([rng.standard_normal((40, 1)), [[9.0], [11.0]]])
    draws = weight_sums(points, kp.gaussian(1.0), 12, 0.1, 4000)
    error = np.abs(draws.mean(0) - 1) / (draws.std(0) / math.sqrt(len(draws)) + 1e-12)
    assert error[draws.std(0) > 0].max() < 5.5
    assert (np.count_nonzero(draws, 1) == 12).all()


def halvings_and_coins(seed, n):
    """How many halvings each of n points is left after, and the uniform numbers that decide at a level."""
    key = np.uint64(kp._key(seed, kp._LANDMARKS))
    bits = [
        int(inner(kp._random_word)(np.uint64(kp._subkey(key, kp._HALVING)), i)) for i in range(n)
    ]

    def uniform(level):
        level_key = np.uint64(kp._subkey(np.uint64(kp._subkey(key, kp._LEVELS)), level))
        coins = np.uint64(kp._subkey(level_key, kp._COINS))
        return np.array([kp._uniform(coins, i) for i in range(n)])

    return np.array([next(t for t in range(64) if not b >> t & 1) for b in bits]), uniform


@pytest.mark.bounds
def test_recursion_of_algorithm_2_is_its_naive_form():
    """The naive recursion, fed with the uniform numbers of the compiled one."""
    lam, delta, seed, matrix = RIDGE, 0.03, 4, naive.gaussian(MANY, MANY, 3.0)
    depth, uniform = halvings_and_coins(seed, 2500)

    def recursion(level, delta):
        rows = np.flatnonzero(depth >= level)
        if rows.size <= 192 * math.log(1 / delta):
            return rows, np.ones(rows.size)
        sample, weights = recursion(level + 1, delta / 3)
        place = np.searchsorted(rows, sample)
        scores = 1.5 * naive.approximate_ridge_leverage_scores(
            matrix[np.ix_(rows, rows)], place, weights, lam
        )
        scores = np.minimum(scores, 1)
        p = np.minimum(1, 16 * scores * math.log(max(scores.sum(), 1) / delta))
        kept = uniform(level)[rows] < p
        return rows[kept], 1 / np.sqrt(p[kept])

    rows, weights = recursion(0, delta)
    found = kp.recursive_rls(MANY, SMOOTH, lam, seed, delta=delta)
    assert 0 < rows.size < 1500 and np.array_equal(found.indices, rows)
    assert found.weights == pytest.approx(weights, rel=1e-9)


@pytest.mark.bounds
# k of 1, of 2
@pytest.mark.parametrize("n, s, c, levels", [(1200, 200, 40.0, 4), (2000, 600, 50.0, 3)])
def test_recursion_of_algorithm_3_had_constants_that_nothing_tested(n, s, c, levels, monkeypatch):
    """The naive recursion, fed with the uniform numbers of the compiled one, level by level."""
    depth, uniform = halvings_and_coins(4, n)
    scores, tail_ridge, points = kp._scores, kp._tail_ridge, MANY[:n]
    seen, ridges = [], []

    def watched(X, Z, weights, *more):
        rows = more[-1]
        seen.append((X if rows is None else X[rows], Z, weights))
        return scores(X, Z, weights, *more)

    def watched_ridge(*arguments):
        ridges.append(tail_ridge(*arguments))
        return ridges[-1]

    monkeypatch.setattr(kp, "_scores", watched)
    monkeypatch.setattr(kp, "_tail_ridge", watched_ridge)
    found = kp.recursive_rls_fixed(points, SMOOTH, s, 4, delta=0.03, constant=c)
    expected = naive.recursive_rls_fixed(
        naive.gaussian(points, points, 3.0), s, 0.03, depth, uniform, c
    )
    assert len(expected) == levels and len(seen) == levels - 1
    for (X, Z, weights), lam, (_, sample, p, _), (above, *_, ridge) in zip(
        seen, ridges, expected, expected[1:]
    ):
        assert np.array_equal(X, points[above]) and np.array_equal(Z, points[sample])
        assert weights == pytest.approx(1 / np.sqrt(p), rel=1e-6) and lam == pytest.approx(
            ridge, rel=1e-5
        )
    _, rows, p, _ = expected[-1]
    assert np.array_equal(found.indices, rows) and found.weights == pytest.approx(
        1 / np.sqrt(p), rel=1e-6
    )
    assert 0 < rows.size < 0.9 * n and np.mean(p < 1) > 0.5


def test_recursive_samples_meet_theorem_7_and_the_practical_one_beats_uniform(rng):
    matrix = naive.gaussian(MANY, MANY, 3.0)
    F = kp.nystrom(MANY, kp.recursive_rls(MANY, SMOOTH, RIDGE, 0, delta=0.03), SMOOTH)

    def norm(A):  # np.linalg.norm takes five times as long
        return np.abs(np.linalg.eigvalsh(A)[[0, -1]]).max()

    assert norm(matrix - F @ F.T) <= RIDGE < 0.6 * norm(matrix)
    cloud = np.concatenate([rng.standard_normal((680, 2)), 0.3 * rng.standard_normal((20, 2)) + 40])
    matrix = naive.gaussian(cloud, cloud, 1.0)
    kernel = kp.gaussian(1.0)

    def error(indices):
        return norm(matrix - naive.nystrom(matrix, indices))

    uniform = np.mean([error(kp.uniform_landmarks(N, 60, seed).indices) for seed in range(10)])
    for sampler in (kp.recursive_rls_practical, kp.recursive_rls_accelerated):
        assert (
            np.mean(
                [error(sampler(cloud, kernel, 60, seed, delta=0.1).indices) for seed in range(10)]
            )
            < 0.6 * uniform
        )


def test_evaluations_are_counted_as_a_kernel_that_counts_sees_them():
    calls = np.zeros(1, np.int64)
    address = calls.ctypes.data

    @numba.njit
    def counting(x, y):
        numba.carray(pointer(address), 1)[0] += 1
        return math.exp(-abs(x[0] - y[0]))

    before = numba.get_num_threads()
    numba.set_num_threads(1)  # so that no count is lost
    try:
        kernel = kp.custom(counting)
        for sample in (
            lambda: kp.recursive_rls_practical(X[:300], kernel, 40, 0, delta=0.1),
            lambda: kp.rpcholesky(X[:300], kernel, 40, 0, block=8),
            lambda: kp.rls_nystrom(X[:300], kernel, LAM, 0, delta=0.1),  # it told n (n + 1) / 2
        ):
            calls[0] = 0
            claimed = sample().evaluations
            # of the small symmetric matrix whose tail gives the ridge, a tile on the diagonal is computed whole
            assert claimed <= calls[0] <= claimed * 1.1
    finally:
        numba.set_num_threads(before)


@pytest.mark.parametrize("block", [1, 7, 128])
def test_pivots_of_randomly_pivoted_cholesky_follow_their_law(block):
    # three points: the exact law of the ordered pair of pivots, by enumeration
    points = np.array([[0.0], [0.7], [2.5]])
    matrix = naive.gaussian(points, points, 1.0)
    law = {}
    for i in range(3):
        rest = np.diag(matrix) - matrix[:, i] ** 2
        for j in range(3):
            if i != j:
                law[i, j] = rest[j] / rest.sum() / 3
    counts = dict.fromkeys(law, 0)
    for seed in range(2000):
        counts[tuple(kp.rpcholesky(points, kp.gaussian(1.0), 2, seed, block=block).indices)] += 1
    assert stats.chisquare([counts[p] for p in law], [2000 * law[p] for p in law]).pvalue > CHANCE


@pytest.mark.bounds
def test_greedy_pivots_are_the_naive_ones_whatever_the_block():
    expected = naive.pivoted_cholesky(K, 30)
    for block in (1, 16, 128):
        assert kp.rpcholesky(X, KERNEL, 30, block=block, greedy=True).indices.tolist() == expected


def test_pivots_end_where_everything_is_explained():
    points = np.repeat(X[:4], 50, 0)
    for greedy in (False, True):
        found = kp.rpcholesky(points, KERNEL, 20, greedy=greedy)
        assert found.indices.size == 4 and np.unique(points[found.indices], axis=0).shape[0] == 4


@pytest.mark.bounds
@pytest.mark.parametrize("n, m", [(1, 1), (5, 3), (130, 129), (300, 128), (700, 257)])
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-11), (np.float32, 1e-4)])
def test_factor_is_the_nystrom_approximation(n, m, dtype, tolerance, rng):
    indices = rng.choice(n, m, replace=False)
    F = kp.nystrom(X[:n].astype(dtype), indices, KERNEL)
    assert F.shape == (n, m) and F.dtype == dtype
    assert np.abs(F.astype(float) @ F.T - naive.nystrom(K[:n, :n], indices)).max() < tolerance


CHOSEN = kp.Landmarks(np.array([3, 50, 9]), np.ones(3), 0)
KINDS = {
    "Landmarks": CHOSEN,
    "Landmarks with points": CHOSEN._replace(points=X[CHOSEN.indices]),
    "ReducedSet": kp.ReducedSet(X[CHOSEN.indices], np.ones(3)),
    "CertifiedNystrom": kp.CertifiedNystrom(CHOSEN, np.empty((N, 3)), 0.1, 0.1),
    "rows": CHOSEN.indices,
    "a list of rows": CHOSEN.indices.tolist(),
    "points": X[CHOSEN.indices],
}
TAKE_LANDMARKS = {
    "nystrom_map": lambda landmarks: kp.nystrom_map(X, landmarks, KERNEL).factor,
    "nystrom": lambda landmarks: kp.nystrom(X, landmarks, KERNEL),
    "nystrom_kpca": lambda landmarks: kp.nystrom_kpca(X, landmarks, KERNEL, 2, centered=False).coef,
    "nystrom_ridge": lambda landmarks: (
        kp.nystrom_ridge(X, X[:, 0], landmarks, KERNEL, 0.1, intercept=False).coef
    ),
    "approximate_ridge_leverage_scores": lambda landmarks: kp.approximate_ridge_leverage_scores(
        X, landmarks, KERNEL, 0.1
    ),
}


@pytest.mark.parametrize("name", TAKE_LANDMARKS)
def test_every_kind_of_landmarks_is_taken_by_every_function(name):
    take = TAKE_LANDMARKS[name]
    expected = take(X[CHOSEN.indices])
    for kind, landmarks in KINDS.items():
        assert np.array_equal(take(landmarks), expected), kind
    for other, got in ((KERNEL, "Kernel"), (np.ones(3), "a 1-D array"), (3, "int")):
        with pytest.raises(
            ValueError, match=f"^{name}: landmarks must be a 2-D array .* got {got}"
        ):
            take(other)


def test_landmarks_may_be_any_points():
    centers = kp.kmeans_select(X, 9, 0).centers
    C = naive.laplacian(X, centers, 5.0)
    expected = C @ np.linalg.solve(naive.laplacian(centers, centers, 5.0), C.T)
    F = kp.nystrom(X, centers, KERNEL)
    assert np.abs(F @ F.T - expected).max() < 1e-12


def test_repeated_landmarks_were_a_division_by_zero():
    rows = np.array([3, 50, 3, 9, 50])
    found = kp.nystrom_map(X, rows, KERNEL)
    F = kp.nystrom(X, rows, KERNEL)
    assert found.rank == 3 and (F[:, 3:] == 0).all() and np.isfinite(F).all()
    assert np.abs(F @ F.T - naive.nystrom(K, rows[:2].tolist() + [9])).max() < 1e-12


def test_a_smooth_kernel_of_low_numerical_rank_keeps_the_factor_below_the_matrix():
    # 300 landmarks for a kernel of numerical rank 30: rounding must neither blow up nor push K~ above K
    line = np.linspace(0, 1, 600)[:, None]
    matrix = naive.gaussian(line, line, 1.0)
    found = kp.nystrom_map(line, np.arange(0, 600, 2), kp.gaussian(1.0))
    F = kp.nystrom(line, np.arange(0, 600, 2), kp.gaussian(1.0))
    values = np.linalg.eigvalsh(matrix - F @ F.T)
    assert found.rank < 60 and values[0] > -1e-10 and values[-1] < 1e-10


def test_features_of_new_points_extend_the_factor(rng):
    rows = np.arange(0, N, 9)
    found = kp.nystrom_map(X, rows, KERNEL)
    new = rng.standard_normal((150, 2))
    features, F = kp.features(new, found), kp.nystrom(X, rows, KERNEL)
    assert np.array_equal(kp.features(X, found), F)
    expected = naive.laplacian(new, X[rows], 5.0) @ np.linalg.solve(K[np.ix_(rows, rows)], K[rows])
    assert np.abs(features @ F.T - expected).max() < 1e-12


@pytest.mark.parametrize("dtype, near", [(np.float64, 1e-9), (np.float32, 1e-3)])
@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("n", [1, 4, 5, 130])
def test_features_of_one_point_cost_three_copies_of_the_factor(n, shift, dtype, near, rng):
    points = rng.standard_normal((200, 2)).astype(dtype) + dtype(shift)
    new = np.vstack([points[:1], rng.standard_normal((129, 2)).astype(dtype) + dtype(shift)])[:n]
    for rows in (np.r_[:60], np.r_[:60, :60], np.zeros(3, int)):  # some or all landmarks are equal
        found = kp.nystrom_map(points, rows, KERNEL)
        L = found.factor[: found.rank, : found.rank]
        C = naive.laplacian(new, found.points[: found.rank], 5.0)
        expected = np.zeros((n, len(rows)))
        expected[:, : found.rank] = np.linalg.solve(L, C.T).T
        features = kp.features(new, found)
        assert features.dtype == dtype and np.abs(features - expected).max() < near
        assert np.abs(features - kp.features(np.repeat(new, 5, 0), found)[::5]).max() < near
        mixed = kp.features(new.astype(float), found)
        assert mixed.dtype == np.float64 and np.abs(mixed - expected).max() < 1e-9
        off = np.sqrt((1.0 - np.square(expected).sum(1)).clip(0.0))
        assert np.abs(kp.residual(new, found) - off).max() < 1e-5
    for wrong in (
        found._replace(factor=found.factor * np.nan),
        found._replace(factor=np.zeros((3, 3)), rank=3),
        found._replace(points=found.points * dtype(np.nan)),
    ):
        with pytest.raises(ValueError, match="features: kernel values on X must be finite"):
            kp.features(new, wrong)
    for wrong in (found._replace(factor=found.factor[:2, :2]), found._replace(rank=4)):
        with pytest.raises(ValueError, match="features: model must be a NystromMap"):
            kp.features(new, wrong)


def test_kernel_pca_over_landmarks_is_that_of_the_approximation():
    rows, k = np.arange(0, N, 7), 4
    expansion = kp.nystrom_kpca(X, rows, KERNEL, k, 0, centered=False)
    values, vectors = naive.eigenpairs(naive.nystrom(K, rows), k)
    features = kp.features(X, expansion)
    assert expansion.points.shape == (rows.size, 2) and expansion.values == pytest.approx(
        values, rel=1e-11
    )
    assert np.abs(np.abs(features) - np.abs(vectors * np.sqrt(values))).max() < 1e-9
    inner = (
        expansion.coef.T @ naive.laplacian(expansion.points, expansion.points, 5.0) @ expansion.coef
    )
    assert np.abs(inner - np.eye(k)).max() < 1e-11  # directions orthonormal in feature space
    short = kp.nystrom_kpca(
        np.repeat(X[:3], 30, 0), np.array([0, 30, 60, 61]), KERNEL, 4, 0, centered=False
    )
    assert np.count_nonzero(short.values) == 3 and np.isfinite(short.coef).all()


def test_slabs_join_without_a_seam(rng):
    points = rng.standard_normal((kp._SLAB + 300, 1))
    rows = np.array([0, 5, kp._SLAB, kp._SLAB + 299])
    scores = kp.approximate_ridge_leverage_scores(points, rows, kp.gaussian(1.0), 0.5)
    C = naive.gaussian(points, points[rows], 1.0)
    inner = np.linalg.inv(C[rows] + 0.5 * np.eye(4))
    expected = (1 - np.einsum("ij,jk,ik->i", C, inner, C)) / 0.5
    assert np.abs(scores - np.minimum(expected, 1)).max() < 1e-13
    expansion = kp.nystrom_kpca(points, rows, kp.gaussian(1.0), 2, 0, centered=False)
    F = kp.nystrom(points, rows, kp.gaussian(1.0))
    assert expansion.values == pytest.approx(np.linalg.eigvalsh(F.T @ F)[::-1][:2], rel=1e-12)


def test_precomputed_and_custom_kernels_give_the_same_landmarks():
    rows = np.arange(N)[:, None]
    intersection = kp.custom(
        numba.njit(lambda x, y: math.exp(-math.sqrt(((x - y) ** 2).sum()) / 5.0))
    )
    expected = kp.recursive_rls_practical(X, KERNEL, 40, 0, delta=0.1).indices
    assert np.array_equal(
        kp.recursive_rls_practical(rows, kp.precomputed(K), 40, 0, delta=0.1).indices, expected
    )
    assert np.array_equal(
        kp.recursive_rls_practical(X, intersection, 40, 0, delta=0.1).indices, expected
    )


def test_a_kernel_that_is_not_positive_semidefinite_is_refused():
    indefinite = kp.custom(numba.njit(lambda x, y: -((x - y) ** 2).sum()))
    nowhere = kp.custom(numba.njit(lambda x, y: math.nan))
    rows = np.arange(0, N, 7)
    for kernel in (indefinite, nowhere):
        for name, call in {
            "ridge_leverage_scores": lambda: kp.ridge_leverage_scores(X, kernel, 1.0),
            "approximate_ridge_leverage_scores": lambda: kp.approximate_ridge_leverage_scores(
                X, rows, kernel, 1.0
            ),
            "rls_nystrom": lambda: kp.rls_nystrom(X, kernel, 1.0, 0, delta=0.1),
            "recursive_rls": lambda: kp.recursive_rls(
                np.repeat(X, 3, 0), kernel, 1.0, 0, delta=0.01
            ),
            "recursive_rls_fixed": lambda: kp.recursive_rls_fixed(X, kernel, 100, 0, delta=0.01),
            "recursive_rls_practical": lambda: kp.recursive_rls_practical(
                X, kernel, 100, 0, delta=0.01
            ),
            "recursive_rls_accelerated": lambda: kp.recursive_rls_accelerated(
                X, kernel, 100, 0, delta=0.01
            ),
            "rpcholesky": lambda: kp.rpcholesky(X, kernel, 100, 0),
            "rpcholesky, greedy": lambda: kp.rpcholesky(X, kernel, 9, greedy=True),
            "nystrom_map": lambda: kp.nystrom_map(X, rows, kernel),
            "nystrom": lambda: kp.nystrom(X, rows, kernel),
            "nystrom_kpca": lambda: kp.nystrom_kpca(X, rows, kernel, 2, 0, centered=False),
        }.items():
            with pytest.raises(
                ValueError,
                match=f"^{name.split(',')[0]}: kernel values on X must be finite and form a positive",
            ):
                call()


def test_landmarks_and_factor_have_the_same_bits_for_any_number_of_threads(same_bits, rng):
    points = rng.standard_normal((1500, 3))
    kernel = kp.gaussian(1.0)
    same_bits(kp.recursive_rls_practical, points, kernel, 150, 0)
    same_bits(functools.partial(kp.recursive_rls, delta=0.01), points, kernel, 1.0, 0)
    same_bits(kp.rpcholesky, points, kernel, 150, 0)
    same_bits(kp.nystrom, points, np.arange(0, 1500, 7), kernel)
    same_bits(kp.nystrom_kpca, points, np.arange(0, 1500, 7), kernel, 3, 0)


@pytest.mark.slow
def test_landmarks_keep_to_their_memory_budget():
    # n x s would be 200000 x 300 x 8 = 480 MB; allowed: a few numbers a point, s^2, slabs of 8192 rows
    code = (
        "import resource, numpy as np, kpcasketch as kp\n"
        "X = np.random.default_rng(0).standard_normal((200000, 3)); g = kp.gaussian(1.0)\n"
        "few = X[:2000].copy(); rows = np.arange(0, 300)\n"
        "def work(X):\n"
        "    kp.approximate_ridge_leverage_scores(X, rows, g, 1.0)\n"
        "    found = kp.recursive_rls_accelerated(X, g, 300, 0, delta=0.1)\n"
        "    kp.nystrom_kpca(X, found, g, 5, 0)\n"
        "work(few)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "work(X)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    if sys.platform != "linux":
        pytest.skip("reads Linux's peak memory in kB")
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=pathlib.Path(kp.__file__).parent,
    )
    assert int(run.stdout) < 150_000


@pytest.mark.parametrize("lam", [1e-16, 1e-300])
def test_a_ridge_below_rounding_made_landmarks_lose_their_scores(lam):
    apart, kernel = np.arange(900.0).reshape(-1, 1) * 100, kp.gaussian(1.0)
    assert (kp.approximate_ridge_leverage_scores(apart, np.arange(9), kernel, lam) == 1).all()
    assert kp.recursive_rls(apart, kernel, lam, 0, delta=0.03).indices.size == 900


def test_a_tiny_constant_made_the_rank_be_counted_without_end():
    assert kp.recursive_rls_fixed(X, KERNEL, 50, 0, delta=0.01, constant=1e-12).indices.size > 0


@pytest.mark.parametrize(
    "K",
    [
        [[1.0, 2, 0], [2, 1, 0], [0, 0, 1]],
        [[1.0, 1, 1], [1, 1, 2], [1, 2, 1]],
        [[1.0, 0, 0], [0, 0, 5], [0, 5, 0]],
    ],
)
def test_kernels_not_positive_semidefinite_passed_where_the_last_pivot_hid_them(K):
    rows, kernel = np.arange(3.0).reshape(-1, 1), kp.precomputed(np.array(K))
    for refused in (
        lambda: kp.nystrom_map(rows, np.arange(3), kernel),
        lambda: kp.rpcholesky(rows, kernel, 2, greedy=True),
        lambda: kp.rpcholesky(rows, kernel, 2, 0),
    ):
        with pytest.raises(ValueError, match="kernel|precomputed"):
            refused()


def test_points_explained_more_than_wholly_got_a_score_of_0():
    rows, kernel = np.arange(2.0).reshape(-1, 1), kp.precomputed(np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="approximate_ridge_leverage_scores: kernel values on X"):
        kp.approximate_ridge_leverage_scores(rows, np.arange(1), kernel, 0.1)


def test_tiny_weights_were_blamed_on_the_kernel():
    landmarks = kp.Landmarks(np.arange(2), np.array([1.0, 1e-200]), 0)
    words = r"landmarks\.weights must be positive, .* finite lam / weights"
    with pytest.raises(ValueError, match=words):
        kp.approximate_ridge_leverage_scores(X, landmarks, KERNEL, 0.3)


def test_a_point_with_an_infinite_kernel_value_was_left_out_in_silence():
    points, kernel = np.array([[1e6], [1.0], [2.0], [3.0]]), kp.polynomial(64, 1.0, 0.0)
    for refused in (
        lambda: kp.nystrom_map(points, np.arange(2), kernel),
        lambda: kp.rpcholesky(points, kernel, 2, greedy=True),
        lambda: kp.rpcholesky(points, kernel, 2, 0),
    ):
        with pytest.raises(ValueError, match="kernel values on X must be finite"):
            refused()


@pytest.mark.parametrize(
    "sampler", [kp.recursive_rls_practical, kp.recursive_rls_accelerated], ids=lambda f: f.__name__
)
def test_all_points_came_back_where_a_half_was_empty(sampler):
    for n in (2, 3, 4, 5):
        for s in range(1, n):
            for seed in range(40):
                assert sampler(X[:n], KERNEL, s, seed, delta=0.1).indices.size == s


def test_a_ridge_below_the_rounding_of_the_matrix_left_points_out_that_matter():
    assert kp.rls_nystrom(
        np.diag([1e9, 1.0]), kp.linear(), 1e-3, 0, delta=0.1
    ).indices.tolist() == [0, 1]
    assert kp.ridge_leverage_scores(np.diag([1e9, 1.0]), kp.linear(), 1e-3).min() > 0.99


def test_an_empty_sample_did_not_look_at_the_diagonal():
    matrix = 1e-9 * np.eye(3000)
    matrix[7, 7] = -1.0
    for seed in range(6):
        with pytest.raises(
            ValueError, match="recursive_rls: kernel values on X must be finite and form"
        ):
            kp.recursive_rls(
                np.arange(3000)[:, None], kp.precomputed(matrix), 1e-3, seed, delta=0.01
            )


@pytest.mark.parametrize(
    "d, dtype", [(16, np.float32), (784, np.float32), (784, np.float64), (3000, np.float64)]
)
@pytest.mark.parametrize("steepness", [2.0, 15.9])
def test_copies_of_points_left_residuals_where_distances_are_expanded(d, dtype, steepness):
    sites = np.random.default_rng(d).standard_normal((40, d))
    points = np.repeat(sites, 6, 0).astype(dtype)
    norms = 2 * ((sites - sites.mean(0)) ** 2).sum(1).max()
    kernel = kp.gaussian(float(np.sqrt(0.5 * norms / steepness)))
    for greedy in (False, True):
        found = kp.rpcholesky(points, kernel, 100, greedy=greedy)
        assert (
            np.array_equal(np.unique(found.indices // 6), np.arange(40))
            and found.indices.size == 40
        )
    assert kp.nystrom_map(points, np.arange(0, 240, 2), kernel).rank == 40


def test_low_rank_kernels_in_float32_were_refused_as_not_positive():
    points = (1e7 * np.random.default_rng(0).standard_normal((128, 16))).astype(np.float32)
    for seed in range(10):
        assert kp.rpcholesky(points, kp.linear(), 60, seed).indices.size >= 16
        assert (
            kp.rpcholesky(points[:, :2].copy(), kp.polynomial(2, 1e-14, 0.5), 60, seed).indices.size
            >= 6
        )


def test_a_plain_sample_instead_of_a_small_one_is_unbiased():
    # it was drawn with the random numbers that had found the small one too small
    key = np.uint64(kp._key(0, kp._LANDMARKS))
    assert (
        len(
            {
                int(inner(kp._random_word)(key, 3 * level + place))
                for level in range(1, 20)
                for place in (1, 2, 3)
            }
        )
        == 57
    )


def test_only_the_landmarks_of_a_map_are_read():
    large = np.full((1000, 2), np.nan)
    large[[3, 500]] = X[:2]
    assert kp.nystrom_map(large, np.array([3, 500]), KERNEL).rank == 2
    counted = np.arange(60).reshape(30, 2)
    assert kp.nystrom_map(counted, np.array([3, 5]), KERNEL).points.dtype == np.float64


def test_tiny_kernel_values_were_refused_as_not_positive():
    # 1e-186: the product of two of them is 0
    points = 1e-93 * np.random.default_rng(0).standard_normal((165, 1))
    for found in (
        kp.rpcholesky(points, kp.linear(), 9, 0),
        kp.recursive_rls_practical(points, kp.linear(), 9, 0, delta=0.1),
    ):
        assert found.indices.size in (1, 9)


def test_a_ridge_whose_inverse_is_infinite_gave_nan():
    assert (kp.ridge_leverage_scores(np.zeros((9, 2)), kp.linear(), 1e-300) == 0).all()
    with pytest.raises(ValueError, match="^ridge_leverage_scores: lam must be at least 1e-300"):
        kp.ridge_leverage_scores(np.zeros((9, 2)), kp.linear(), 1e-317)


def test_powers_of_very_different_size_were_taken_for_an_indefinite_kernel():
    points = np.sort(np.random.default_rng(50068).standard_normal((161, 3)), axis=0).astype(
        np.float32
    )
    kernel = kp.polynomial(3, 283775.9, 0.75)  # values from 1e11 to 1e21
    for s in (10, 63, 160):
        assert kp.rpcholesky(points, kernel, s, greedy=True).indices.size <= s
        assert kp.rpcholesky(points, kernel, s, 0).indices.size <= s
    assert np.isfinite(kp.nystrom(points, np.arange(100), kernel)).all()


def test_a_ridge_whose_root_has_no_inverse_in_float32_was_taken_for_an_indefinite_kernel():
    points = np.zeros((7, 5), np.float32)
    assert (
        kp.approximate_ridge_leverage_scores(points, np.arange(4), kp.linear(), 1e-290) == 0
    ).all()


def with_far_cluster(n):
    points = np.random.default_rng(n).standard_normal((n, 3))
    points[:3] += 50.0
    return points


@functools.cache
def far_cluster(n):
    """Their Gram matrix and its eigenvalues, falling."""
    K = naive.gaussian(with_far_cluster(n), with_far_cluster(n), 2.0)
    return K, np.linalg.eigvalsh(K)[::-1]


@pytest.mark.parametrize("error", [0.3, 1e-2, 1e-5, 1e-11])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 300, 2500])
def test_nystrom_to_reaches_the_error_and_certifies_it(n, error):
    points = with_far_cluster(n)
    found = kp.nystrom_to(points, kp.gaussian(2.0), error, 4)
    K, values = far_cluster(n)
    rest, F = K - found.factor @ found.factor.T, found.factor
    largest = (
        np.linalg.norm(rest, 2)
        if n < 1000
        else abs(scipy.sparse.linalg.eigsh(rest, 1, tol=1e-6)[0][0])
    )
    assert largest / values[0] <= found.error_bound + 1e-14 and found.error_bound <= error
    assert np.trace(rest) / np.trace(K) == pytest.approx(found.trace_left, rel=1e-6, abs=1e-13)
    rank, rows = F.shape[1], found.landmarks.indices
    assert (
        len(F) == n
        and rank <= rows.size == len(set(rows.tolist()))
        and (np.diff(np.square(F).sum(0)) <= 1e-9).all()
    )
    if error > 1e-6:  # below, a pseudo-inverse has lost the digits
        # its components, and no other
        leading = np.linalg.eigvalsh(naive.nystrom(K, rows))[::-1][:rank]
        assert np.abs(F.T @ F - np.diag(leading)).max() < 1e-7 * max(values[0], 1.0)
    best = (values > error * values[0]).sum()
    if 1e-11 < error < 0.3 and n == 2500:  # not many more than the best of that error
        assert rank <= 1.3 * best


def test_columns_of_a_certified_factor_were_three_times_the_best_rank(rng):
    # they were the landmarks; where the trace is the certificate, too
    X = rng.standard_normal((1200, 3))
    for kernel, error, by_trace in (
        (kp.gaussian(0.7), 1e-2, False),
        (kp.laplacian(1.4), 1e-1, False),
        (kp.gaussian(6.0), 1e-3, True),
    ):
        found = kp.nystrom_to(X, kernel, error)
        K = kp.gram(X, X, kernel)
        values = np.linalg.eigvalsh(K)[::-1]
        true = np.linalg.norm(K - found.factor @ found.factor.T, 2) / values[0]
        assert true <= found.error_bound <= error and (found.chance is None) == by_trace
        assert found.factor.shape[1] <= 1.3 * (values > error * values[0]).sum()


@pytest.mark.parametrize(
    "groups, error",
    [
        ([960] + 100 * [9], 1e-2),  # 16 columns, where the smallest number of this error is 1
        ([960] + 100 * [8], 1e-2),
        ([500] + 60 * [10] + 60 * [4], 1e-2),
        ([5] * 30 + [300], 0.03),
        ([40, 39, 38] + 30 * [2], 0.05),
        (list(range(1, 46)), 0.2),
    ],
)
def test_columns_of_a_certified_factor_are_few_where_eigenvalues_are_equal(groups, error):
    X = 100.0 * np.repeat(np.arange(len(groups)), groups)[:, None]
    X = X[np.random.default_rng(0).permutation(len(X))]  # eigenvalues are the sizes of the groups
    values = np.array(groups)
    for seed in range(3):
        found = kp.nystrom_to(X, kp.gaussian(1.0), error, seed)
        rest = naive.gaussian(X, X, 1.0) - found.factor @ found.factor.T
        assert np.linalg.norm(rest, 2) / max(groups) <= found.error_bound + 1e-14
        assert found.error_bound <= error
        above = np.count_nonzero(values > 0.9 * (1.0 - error) * error * max(groups))
        assert found.factor.shape[1] <= 1.3 * max(1, above)


def test_columns_are_counted_by_the_norm_of_the_last_approximation():
    # by that of half as many landmarks, they were 498, and the best rank is 267
    X = np.random.default_rng(0).standard_normal((900, 3))
    found = kp.nystrom_to(X, kp.gaussian(0.15), 0.3)
    K = naive.gaussian(X, X, 0.15)
    values = np.linalg.eigvalsh(K)[::-1]
    true = np.linalg.norm(K - found.factor @ found.factor.T, 2) / values[0]
    assert true <= found.error_bound + 1e-14 and found.error_bound <= 0.3
    assert found.factor.shape[1] <= 1.3 * np.count_nonzero(values > 0.3 * values[0])


@pytest.mark.parametrize("n, d, seed", [(600, 2, 1), (600, 3, 2), (1200, 2, 3)])
def test_float32_factors_kept_more_columns_than_promised(n, d, seed):
    rng = np.random.default_rng(seed)
    centers = 10.0 * np.stack(np.unravel_index(np.arange(12), (4,) * d), 1)
    X = np.repeat(centers, n // 12, 0) + 0.01 * rng.standard_normal((n, d))
    X = X.astype(np.float32)
    kernel, error = kp.cauchy(1.5), 1e-4
    K = kp.gram(X.astype(float), X.astype(float), kernel)
    values = np.linalg.eigvalsh(K)
    found = kp.nystrom_to(X, kernel, error)
    r = np.count_nonzero(values > 0.9 * (1.0 - error) * error * values[-1])
    F = found.factor.astype(float)
    left = np.linalg.norm(K - F @ F.T, 2) / values[-1]
    assert F.shape[1] <= 1.3 * r and left <= found.error_bound * 1.001 <= error * 1.001


def test_nystrom_to_stops_at_its_limit_and_says_so():
    points, kernel = np.random.default_rng(0).standard_normal((400, 5)), kp.gaussian(1.0)
    found = kp.nystrom_to(points, kernel, 1e-4, 0, limit=60)
    K = naive.gaussian(points, points, 1.0)
    true = np.linalg.norm(K - found.factor @ found.factor.T, 2) / np.linalg.norm(K, 2)
    assert found.landmarks.indices.size == 60 and 1e-4 < true <= found.error_bound < 1.6 * true
    single = kp.nystrom_to(points.astype(np.float32), kp.gaussian(8.0), 1e-9)
    assert single.factor.dtype == np.float32 and single.error_bound > 1e-10
    for nothing in (np.zeros((9, 2)), np.full((9, 2), 1e-30, np.float32)):
        with pytest.raises(ValueError, match="nystrom_to: kernel must not be almost 0 on X"):
            kp.nystrom_to(nothing, kp.linear(), 0.1)
    with pytest.raises(ValueError, match="nystrom_to: kernel values on X must be finite and form"):
        kp.nystrom_to(
            np.arange(4.0).reshape(-1, 1), kp.precomputed(np.diag([1.0, -1.0, 2.0, 3.0])), 0.1
        )


@pytest.mark.parametrize("scale", [1e-280, 1e-200, 1e-160, 1e160, 1e200, 1e280])
def test_certificates_far_from_1_were_0(scale):
    # squares of kernel values of 1e160 overflowed, those of 1e-160 underflowed, and the bound was 0 after 16 landmarks
    points = np.random.default_rng(0).standard_normal((200, 3))
    plain, far = (
        kp.nystrom_to(points, kernel, 0.1)
        for kernel in (kp.gaussian(1.0), kp.scaled(kp.gaussian(1.0), scale))
    )
    assert np.array_equal(plain.landmarks.indices, far.landmarks.indices)
    assert far.error_bound == pytest.approx(plain.error_bound, rel=0.02)


def test_what_only_looks_positive_semidefinite_is_measured():
    # a table of rank 3 less 1e-9: no pivot shows it, and the trace bound of what a formula guarantees was 1e-14
    B = np.random.default_rng(0).standard_normal((40, 3))
    K = B @ B.T - 1e-9 * np.eye(40)
    found = kp.nystrom_to(np.arange(40.0)[:, None], kp.precomputed(K), 1e-3)
    true = np.linalg.norm(K - found.factor @ found.factor.T, 2) / np.linalg.norm(K, 2)
    assert true <= found.error_bound < 1e-8


def test_no_certificate_is_below_rounding():
    assert (
        kp.nystrom_to(np.repeat(np.eye(5), 40, 0), kp.gaussian(1.0), 1e-14).error_bound
        >= 4 * 2.0**-52
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_landmarks_of_points_on_a_line_never_ended(dtype):
    # a residual above 0 and below its rounding was proposed as a pivot, and refused, for ever
    for seed in range(10, 20):
        X = np.random.default_rng(seed).standard_normal((147, 1)).astype(dtype)
        for s in (2, 9, 30):
            found = kp.recursive_rls_accelerated(X, kp.linear(), s, seed)
            assert found.indices.size == s and np.isfinite(found.weights).all()
            F = kp.nystrom(X, found, kp.linear())
            assert np.abs(F @ F.T - X @ X.T).max() < (1e-10 if dtype == np.float64 else 1e-3)


def test_certificates_say_their_chance(rng):
    X = rng.standard_normal((700, 3))
    by_trace, by_norm = (
        kp.nystrom_to(X, kp.gaussian(6.0), 1e-2),
        kp.nystrom_to(X, kp.laplacian(1.0), 0.3, 0, limit=40),
    )
    assert by_trace.chance is None and by_trace.error_bound <= 1e-2
    assert 0 < by_norm.chance < 1e-5
    K = kp.gram(X, X, kp.laplacian(1.0))
    true = np.linalg.norm(K - by_norm.factor @ by_norm.factor.T, 2) / np.linalg.norm(K, 2)
    assert true <= by_norm.error_bound < 1.6 * true


@pytest.mark.parametrize("rank", [5, 100])
def test_the_ridge_of_a_level_is_the_tail_of_its_eigenvalues(rank, rng):
    # its random matrix and the columns that replace lost ones had the same numbers
    Z = rng.standard_normal((rank, 2))[rng.integers(rank, size=100)]
    weights, key = rng.uniform(1, 2, 100), np.uint64(kp._key(np.uint64(3), kp._LANDMARKS))
    values = np.linalg.eigvalsh(weights[:, None] * naive.gaussian(Z, Z, 0.5) * weights)[::-1]
    for k in (1, 5, 20, 60):
        exact, floor = max(values[k:].sum() / k, 0.0), 2.2e-16 * values.sum()
        assert (
            exact * (1 - 1e-9) - floor
            <= kp._tail_ridge(kp.gaussian(0.5), Z, weights, k, key)
            <= 1.15 * exact + 100 * floor
        )


# Kernel PCA over landmarks, about the mean


def assert_same_up_to_signs(A, B, far):
    signs = np.sign((A * B).sum(0))
    assert np.abs(A * signs - B).max() < far * np.abs(B).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "kernel", [kp.gaussian(2.0), kp.laplacian(3.0), kp.linear(), kp.polynomial(2, 0.5, 1.0)]
)
def test_centred_components_over_all_points_are_those_of_centered_kpca(kernel, dtype, rng):
    X, new = (rng.standard_normal((n, 4)).astype(dtype) + dtype(1.0) for n in (90, 20))
    found, exact = (
        kp.nystrom_kpca(X, np.arange(90), kernel, 3, 0, centered=True),
        kp.kpca(X, kernel, 3, centered=True),
    )
    far = 1e-6 if dtype == np.float64 else 2e-2
    assert np.allclose(found.values, exact.values, rtol=1e-7 if dtype == np.float64 else 1e-3)
    for points in (X, new):
        assert_same_up_to_signs(kp.features(points, found), kp.features(points, exact), far)
    assert np.abs(kp.features(X, found).mean(0)).max() < (1e-9 if dtype == np.float64 else 1e-3)
    # for a linear kernel, the mean of the points is one more point
    assert found.coef.dtype == dtype and found.mean.shape == (90 + kp._is_linear(kernel),)
    assert np.allclose(kp.residual(X, found), kp.residual(X, exact), atol=far)


def test_centred_components_over_few_landmarks_are_those_of_their_matrix(rng):
    X, kernel = rng.standard_normal((70, 2)), kp.gaussian(1.0)
    rows = np.append(rng.choice(70, 12, replace=False), 3)  # one of them may come twice
    C, W = naive.gaussian(X, X[rows], 1.0), naive.gaussian(X[rows], X[rows], 1.0)
    K, H = C @ np.linalg.pinv(W, 1e-10) @ C.T, np.eye(70) - 1 / 70
    values, vectors = np.linalg.eigh(H @ K @ H)
    found = kp.nystrom_kpca(X, rows, kernel, 4, 0, centered=True)
    assert np.allclose(found.values, values[::-1][:4])
    assert_same_up_to_signs(
        kp.features(X, found), (vectors * np.sqrt(np.abs(values)))[:, ::-1][:, :4], 1e-6
    )
    uncentred = kp.nystrom_kpca(X, rows, kernel, 4, centered=False)
    assert uncentred.mean is None and uncentred.offset is None
    point = kp.nystrom_kpca(X[:1], np.array([0]), kernel, 1, 0, centered=True)  # nothing varies
    assert point.values[0] == 0.0 and not kp.features(X, point).any()


@pytest.mark.parametrize(
    "move, kernel", [(lambda X: X * 3e-3, kp.gaussian(1.0)), (lambda X: X + 300.0, kp.linear())]
)
def test_centred_values_in_single_precision_were_rounding(move, kernel, rng):
    # of 20,000 points near each other, or far from the origin, what the mean took was rounded in float32
    X = move(rng.standard_normal((20_000, 4))).astype(np.float32)
    found = kp.nystrom_kpca(X, np.arange(50), kernel, 4, 0, centered=True)
    features = kp.features(
        X, kp.nystrom_kpca(X.astype(float), np.arange(50), kernel, 4, 0, centered=True)
    )
    assert np.allclose(found.values, (features**2).sum(0), rtol=2e-3)


def test_centred_components_over_landmarks_have_preimages(rng):
    X = rng.standard_normal((200, 2)) * [3.0, 0.1]
    model = kp.nystrom_kpca(
        X, kp.rpcholesky(X, kp.gaussian(2.0), 40), kp.gaussian(2.0), 8, 0, centered=True
    )
    assert np.abs(kp.kernel_pca_preimage(kp.features(X[:9], model), model) - X[:9]).max() < 0.3


@pytest.mark.parametrize("k", [1, 9, 20])
def test_a_tail_was_a_quarter_too_large_where_a_start_was_unlucky(k):
    values = 0.6 ** np.arange(200)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((200, 200)))[0]
    kernel = kp.precomputed((turn * values) @ turn.T)
    # a geometric series
    rows, exact = (np.arange(200.0)[:, None], 0.6**k * (1 - 0.6 ** (200 - k)) / 0.4 / k)
    found = [
        kp._tail_ridge(kernel, rows, np.ones(200), k, np.uint64(seed)) / exact
        for seed in range(100)
    ]
    assert 1 - 1e-9 < min(found) <= max(found) < 1.001


# Ridge regression on all points


@pytest.fixture(params=["cholesky", "pivots"])
def preconditioner(request, monkeypatch):
    """Both ways to precondition, whatever the number of points."""
    monkeypatch.setattr(kp, "_CHOLESKY_POINTS", 4096 if request.param == "cholesky" else 0)


@pytest.mark.usefixtures("preconditioner")
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-7), (np.float32, 1e-4)])
@pytest.mark.parametrize("n, s", [(1, 1), (2, 1), (40, 300), (300, 1), (300, 60)])
def test_ridge_regression_on_all_points_solves_its_system(n, s, dtype, tolerance, rng):
    X = rng.standard_normal((n, 3)).astype(dtype)
    Y = np.column_stack([np.sin(X[:, 0]), 1e8 * X[:, 1], np.zeros(n)])
    K = naive.gaussian(X.astype(float), X.astype(float), 1.5)
    expected = np.linalg.solve(K + 0.1 * np.eye(n), Y)
    found = kp.kernel_ridge(X, Y, kp.gaussian(1.5), 0.1, s, tol=1e-12, intercept=False)
    sizes = np.abs(expected).max(0) + 1e-300
    assert (np.abs(found.coef - expected) / sizes).max() < tolerance and found.coef.dtype == dtype
    assert found.values.max() < tolerance and found.values[2] == 0 and not found.coef[:, 2].any()
    alone = kp.kernel_ridge(X, Y[:, 0], kp.gaussian(1.5), 0.1, s, tol=1e-12, intercept=False)
    assert np.abs(kp.features(X, alone) - K @ expected[:, 0]).max() < 10 * tolerance


@pytest.mark.usefixtures("preconditioner")
def test_ridge_regression_on_points_far_apart_divides_by_the_diagonal():
    X, Y = 100.0 * np.arange(30.0)[:, None], np.arange(30.0) - 7
    found = kp.kernel_ridge(X, Y, kp.scaled(kp.gaussian(1.0), 3.0), 0.5, 4, intercept=False)
    assert np.allclose(found.coef[:, 0], Y / 3.5, atol=1e-12) and found.values[0] < 1e-12


def test_ridge_regression_on_all_points_stops_early_and_says_so(monkeypatch, rng):
    X, kernel = rng.standard_normal((500, 2)), kp.gaussian(0.5)
    Y = rng.standard_normal(500)
    direct = kp.kernel_ridge(X, Y, kernel, 1e-3, intercept=False)
    monkeypatch.setattr(kp, "_CHOLESKY_POINTS", 499)
    early = kp.kernel_ridge(X, Y, kernel, 1e-3, 50, max_iterations=3, intercept=False)
    K = naive.gaussian(X, X, 0.5)
    rest = np.linalg.norm(Y - K @ early.coef[:, 0] - 1e-3 * early.coef[:, 0]) / np.linalg.norm(Y)
    assert early.values[0] == pytest.approx(rest, rel=1e-9) and rest > 1e-8
    stored = kp.kernel_ridge(X, Y, kernel, 1e-3, 100, intercept=False)
    monkeypatch.setattr(kp, "_DENSE_POINTS", 499)  # the Gram matrix is never formed
    implicit = kp.kernel_ridge(X, Y, kernel, 1e-3, 100, intercept=False)
    for found in (stored, implicit):
        assert np.abs(found.coef - direct.coef).max() < 1e-5 * np.abs(direct.coef).max()
    with pytest.raises(
        ValueError, match="^kernel_ridge: kernel values on X must be finite and form"
    ):
        kp.kernel_ridge(
            np.arange(4.0)[:, None],
            np.ones(4),
            kp.precomputed(np.diag([1.0, -1.0, 2.0, 3.0])),
            0.1,
            intercept=False,
        )
    with pytest.raises(ValueError, match="^kernel_ridge: Y must have 500 rows"):
        kp.kernel_ridge(X, Y[:-1], kernel, 0.1, intercept=False)


# Landmarks of a stream


def arriving_clusters(n):
    """Points of a broad cluster, and then of eight small ones far off, one after the other."""
    rng = np.random.default_rng(0)
    few = n // 40
    centers = 40.0 * rng.standard_normal((8, 4))
    return np.concatenate(
        [
            rng.standard_normal((n - 8 * few, 4)),
            np.repeat(centers, few, 0) + 0.3 * rng.standard_normal((8 * few, 4)),
        ]
    )


def stream_of_landmarks(X, kernel, s, seed, block):
    state = kp.rls_start(kernel, s, X.shape[1], seed)
    for begin in range(0, len(X), block):
        state = kp.update(state, X[begin : begin + block])
    return state


def test_landmarks_of_a_stream_keep_clusters_that_arrive_one_after_the_other():
    X, kernel = arriving_clusters(4000), kp.gaussian(2.0)
    K = kp.gram(X, X, kernel)

    def error(landmarks):
        F = kp.nystrom(X, landmarks, kernel)
        return kp.spectral_error(K, kp.LowRank(F))

    errors = np.mean(
        [
            [
                error(kp.finish(stream_of_landmarks(X, kernel, 150, seed, 400))),
                error(kp.recursive_rls_accelerated(X, kernel, 150, seed)),
                error(kp.uniform_landmarks(len(X), 150, seed)),
            ]
            for seed in range(5)
        ],
        0,
    )
    assert errors[0] < 1.5 * errors[1] and errors[0] < 0.8 * errors[2]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_landmarks_of_a_stream_are_points_of_it_with_unbiased_weights(dtype):
    X, kernel = arriving_clusters(2000).astype(dtype), kp.laplacian(3.0)
    found = [kp.finish(stream_of_landmarks(X, kernel, 60, seed, 301)) for seed in range(30)]
    for one in found:
        assert (
            np.array_equal(one.points, X[one.indices])
            and one.points.dtype == dtype
            and one.indices.size == 60
        )
        assert (np.diff(one.indices) > 0).all() and one.weights.min() >= 1 - 1e-12
    # each an estimate of the number of points
    sums = [np.square(one.weights).sum() for one in found]
    assert abs(np.mean(sums) - 2000) < 5 * np.std(sums) / np.sqrt(30)
    halves = [
        stream_of_landmarks(part, kernel, 60, seed, 301)
        for seed, part in enumerate((X[:900], X[900:]))
    ]
    merged = kp.merge(*halves)
    points, rows = merged.points, merged.indices
    assert (
        merged.count == 2000
        and np.array_equal(points, X[rows])
        and (rows >= 900).any()
        and (rows < 900).any()
    )


def test_merged_streams_with_one_seed_tossed_the_same_coins(rng):
    X, kernel = rng.standard_normal((1200, 2)), kp.gaussian(1.0)
    sums = []
    for seed in range(100):
        parts = [stream_of_landmarks(X[rows::4], kernel, 20, seed, 300) for rows in range(4)]
        pairs = [kp.merge(*parts[:2]), kp.merge(*parts[2:])]
        sums.append([np.square(state.weights).sum() for state in (*parts, *pairs)])
    correlations = np.corrcoef(np.array(sums).T)
    assert np.abs(np.triu(correlations[:4, :4], 1)).max() < 0.4  # 4 standard errors
    assert abs(correlations[4, 5]) < 0.4


def test_streams_of_few_points_keep_all_and_refuse_what_does_not_fit(tmp_path):
    X, kernel = np.random.default_rng(0).standard_normal((20, 3)), kp.gaussian(1.0)
    state = stream_of_landmarks(X, kernel, 25, 0, 7)
    found = kp.finish(state)
    assert (
        np.array_equal(found.points, X)
        and (found.weights == 1).all()
        and found.indices.tolist() == list(range(20))
    )
    assert np.array_equal(kp.nystrom(X, found, kernel), kp.nystrom(X, X, kernel))
    kp.save(tmp_path / "state.npz", state)
    assert np.array_equal(
        kp.update(kp.load(tmp_path / "state.npz"), X).points, kp.update(state, X).points
    )
    assert np.array_equal(kp.merge(kp.rls_start(kernel, 25, 3), state).points, X)
    for call, words in (
        (
            lambda: kp.finish(kp.rls_start(kernel, 5, 3)),
            "finish: state must have seen a point",
        ),
        (
            lambda: kp.update(state, X[:, :2]),
            "update: X must have 3 columns, got",
        ),
        (
            lambda: kp.merge(state, kp.rls_start(kp.gaussian(2.0), 25, 3)),
            "merge: a and b must",
        ),
        (lambda: kp.rls_start(kernel, 0, 3), "rls_start: s must be an int from 1 to 2"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.usefixtures("preconditioner")
def test_a_ridge_below_rounding_left_nothing_of_the_preconditioner(rng):
    # I - C C^T cancelled: .08 of the targets was left where the matrix has condition 3; and steps went astray to 1e24
    X, y = rng.standard_normal((300, 5)), rng.standard_normal(300)
    for lam in (1e-13, 1e-15, 1e-300):
        assert kp.kernel_ridge(X, y, kp.laplacian(0.3), lam, intercept=False).values[0] < 1e-8
    for kernel in (kp.linear(), kp.gaussian(1e6)):
        assert kp.kernel_ridge(X, y, kernel, 1e-15, intercept=False).values[0] <= 1 + 1e-9
    nothing = kp.kernel_ridge(np.zeros((9, 2)), y[:9], kp.linear(), 0.5, intercept=False)
    assert np.allclose(nothing.coef[:, 0], y[:9] / 0.5) and nothing.values[0] < 1e-12


def test_coefficients_of_all_points_overflowed_without_a_word(rng):
    X = rng.standard_normal((10, 3))
    for points, kernel, lam in (
        (X.astype(np.float32), kp.gaussian(1.0), 1e-12),
        (X, kp.scaled(kp.gaussian(1.0), 1e-200), 1e-250),
    ):
        with pytest.raises(ValueError, match="^kernel_ridge: Y must be smaller"):
            kp.kernel_ridge(points, np.full(10, 1e149), kernel, lam, intercept=False)


def test_certificates_of_values_without_digits_were_below_the_error(rng):
    Z = (rng.standard_normal((5, 1)) * 1e-3).astype(np.float32)
    with pytest.raises(ValueError, match="nystrom_to: kernel must not be almost 0 on X"):
        kp.nystrom_to(Z, kp.scaled(kp.polynomial(4, 1.0, 0.0), 1e-30), 1e-7)
    far = (rng.standard_normal((500, 1)) + 1e6).astype(np.float32)
    with pytest.raises(ValueError, match="nystrom_to: the .* matrix must be finite"):
        kp.nystrom_to(far, kp.polynomial(3, 2.95, 1.0), 1e-3)


def test_tables_of_tiny_numbers_were_refused_as_indefinite(rng):
    X = rng.standard_normal((200, 2))
    table = kp.precomputed(1e-200 * kp.gram(X, X, kp.gaussian(1.0)))
    assert kp.rpcholesky(np.arange(200.0)[:, None], table, 150).indices.size <= 150


def test_landmarks_beyond_float32_were_taken_with_points_in_float32():
    points = np.ones((5, 2), np.float32)
    with pytest.raises(
        ValueError, match="^nystrom: landmarks must be finite .* row 1, column 0 is not"
    ):
        kp.nystrom(points, np.array([[1.0, 1.0], [1e40, 1.0]]), kp.gaussian(1.0))


@pytest.mark.parametrize(
    "call",
    [
        lambda Z, kernel: kp.rpcholesky(Z, kernel, 3),
        lambda Z, kernel: kp.rpcholesky(Z, kernel, 3, greedy=True),
        lambda Z, kernel: kp.nystrom_to(Z, kernel, 0.1),
    ],
)
def test_points_without_kernel_values_gave_no_landmarks(call):
    # "landmarks must be one or more row numbers" was said of landmarks that nobody had given
    with pytest.raises(ValueError, match="kernel must not be (almost )?0 (for all points|on) "):
        call(np.zeros((30, 3)), kp.linear())
