# SPDX-License-Identifier: BSD-3-Clause
"""Reduced sets: k-means, shadows, herding, thinning; kernel PCA, manifolds and distances of reduced sets (RSKPCA)."""

import decimal
import itertools
import math
import pickle

import numpy as np
import pytest
from numba import njit
from scipy import sparse, stats

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import RADIAL
from paper_checks.rskpca2013 import kde_pare

CENTERS = 20.0 * np.random.default_rng(0).standard_normal((6, 3))
X = np.repeat(CENTERS, 50, 0) + np.random.default_rng(1).standard_normal((300, 3))


def test_kmeans_finds_far_clusters_and_ends_in_a_fixed_point():
    found = kp.kmeans_select(X, 6, 0, restarts=5)
    labels = found.labels.reshape(6, 50)
    assert (labels == labels[:, :1]).all() and len(np.unique(labels)) == 6
    assert np.abs(found.centers - [X[found.labels == c].mean(0) for c in range(6)]).max() < 1e-12
    assert np.array_equal(found.labels, naive.squared_distances(X, found.centers).argmin(1))
    assert np.array_equal(found.weights, np.bincount(found.labels))


@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (130, 129, 2), (200, 33, 40), (5, 5, 1)])
def test_labels_are_the_nearest_centers_for_every_size(n, m, d, rng):
    points = rng.standard_normal((n, d))
    found = kp.kmeans_select(points, m, 3)
    assert found.centers.shape == (m, d) and found.weights.sum() == n
    distances = naive.squared_distances(points, found.centers)
    assert np.abs(distances[np.arange(n), found.labels] - distances.min(1)).max() < 1e-12


def test_more_centers_than_distinct_points_leave_some_without_weight():
    points = np.repeat(np.arange(3.0), 10)[:, None]
    with pytest.warns(UserWarning, match="^kmeans_select: only 3 of 5 clusters have points"):
        found = kp.kmeans_select(points, 5, 1)
    assert np.isfinite(found.centers).all() and np.count_nonzero(found.weights) == 3


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_centers_at_the_limit_of_iterations_were_means_of_the_labels_before(most, dtype, rng):
    points = (7.0 + rng.standard_normal((5000, 3))).astype(dtype)
    found = kp.kmeans_select(points, 40, max_iterations=most)
    means = [points[found.labels == c].mean(0, np.float64) for c in range(40)]
    assert np.abs(found.centers - means).max() < (1e-12 if dtype == np.float64 else 1e-5)


def test_more_restarts_and_iterations_do_not_raise_the_cost():
    def cost(restarts, most=100):
        found = kp.kmeans_select(X, 20, 0, restarts=restarts, max_iterations=most)
        return ((X - found.centers[found.labels]) ** 2).sum()

    assert cost(10) <= cost(1) <= cost(1, 2)


def test_starts_of_kmeans_follow_the_squared_distance():
    # three sites; the second center of k-means++ is the far one with probability 100 / 101, the near one with 1 / 101
    points = np.array([[0.0], [1.0], [10.0]])
    pairs = [
        tuple(
            np.sort(kp.kmeans_select(points, 2, seed, restarts=1, max_iterations=1).centers.ravel())
        )
        for seed in range(300)
    ]
    assert all(
        pair in {(0.0, 10.0), (0.5, 10.0), (0.0, 5.5), (1.0, 10.0), (0.0, 1.0)} for pair in pairs
    )
    assert sum(pair[1] == 10.0 for pair in pairs) > 240


def test_kmeans_has_the_same_bits_for_any_number_of_threads(same_bits, rng):
    same_bits(kp.kmeans_select, rng.standard_normal((1000, 5)), 40, 0)


# Shadows


def exact_labels(points, eps):
    centers, labels = naive.shadows(points, eps)
    found = kp.shadow_select(points, eps)
    assert np.array_equal(found.centers, points[centers]) and found.centers.dtype == points.dtype
    assert np.array_equal(found.labels, labels) and np.array_equal(
        found.weights, np.bincount(labels)
    )
    assert np.array_equal(kp.shadow_labels(points, found.centers, eps), labels)
    return found


BATCHES = [1, 2, 127, 128, 129, 255, 256, 257, 2047, 2048, 2049, 4500]


@pytest.mark.parametrize("n", BATCHES)
@pytest.mark.parametrize(
    "d, eps", [(1, 0.01), (1, 3.0), (2, 0.1), (3, 0.3), (5, 1.5), (17, 5.0), (40, 0.5)]
)
def test_shadows_are_those_of_the_naive_pass_bit_for_bit(n, d, eps):
    exact_labels(np.random.default_rng(n + d).standard_normal((n, d)), eps)


@pytest.mark.parametrize("eps", [0.1, 0.2, 0.5, 1.0, math.sqrt(0.02), math.sqrt(0.05)])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 20])
def test_distances_equal_to_eps_fall_as_in_the_naive_pass(d, eps):
    # on a lattice many distances are eps to rounding: the order of the sum decides
    points = np.round(
        np.random.default_rng(d).standard_normal((3000, d)) * (0.3 if d == 20 else 1.0), 1
    )
    exact_labels(points, eps)
    exact_labels(points.astype(np.float32), eps)


def test_a_point_that_joins_many_centers_leaves_them_alone(rng):
    points = rng.standard_normal((5000, 5)) * [0.0, 1.0, 1e-9, 2.0, 3.0]
    state = kp.update(kp.shadow_start(0.2, 5), points[:-1])
    again = kp.update(state, points[-1:])
    assert again.count == 5000
    assert np.array_equal(again.weights, kp.shadow_select(points, 0.2).weights)


def test_hundreds_and_thousands_of_centers_are_those_of_the_naive_pass(rng):
    many = exact_labels(rng.standard_normal((9000, 3)), 0.05)
    assert many.weights.size > 4000
    few = exact_labels(rng.standard_normal((6000, 12)), 2.5)
    assert 200 < few.weights.size < 4000


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_batches_and_runs_leave_no_trace(shift, dtype, rng):
    points = (np.round(rng.standard_normal((14_000, 6)), 2) + shift).astype(dtype)  # ties and all
    found = exact_labels(points, 0.9)
    assert found.weights.size > 2000
    state = kp.shadow_start(0.9, 6)
    for part in np.split(points, [5000, 5001, 9000]):
        state = kp.update(state, part)
    assert np.array_equal(state.centers, found.centers) and np.array_equal(
        state.weights, found.weights
    )


def test_labels_where_the_first_rows_are_unlike_the_rest(rng):
    centers, eps = rng.standard_normal((3000, 6)), 2.9
    far, near = 30.0 * rng.standard_normal((2100, 6)), 0.5 * rng.standard_normal((40_000, 6))
    points = np.concatenate([far, near, far])
    labels = kp.shadow_labels(points, centers, eps)
    chosen = np.r_[:300, 2000:2400, 30_000:30_100, 42_000:42_300]
    square = ((points[chosen, None] - centers) ** 2).sum(2)
    within = square < eps * eps
    clear = (np.abs(square - eps * eps) > 1e-9).all(1)
    expected = np.where(within.any(1), within.argmax(1), -1)
    assert clear.mean() > 0.99 and np.array_equal(labels[chosen][clear], expected[clear])


@pytest.mark.parametrize("n", [127, 129, 8191, 8193, 8321])
def test_batches_and_their_first_points_of_any_number(n, rng):
    exact_labels(rng.standard_normal((n, 12)), 2.8)


@pytest.mark.parametrize("d", [1, 4, 40])
@pytest.mark.parametrize("where", [0, 700, -1])
def test_points_too_far_for_panels_are_told_apart(d, where, rng):
    # float32 panels end 1e4 radii from the median: everything beyond is compared in float64
    points = (
        rng.standard_normal((1500, d))
        * np.array([1.0, 1e7, 1e100])[rng.integers(3, size=(1500, 1))]
    )
    points[where] = 1e140
    exact_labels(points, 0.3)
    exact_labels(points + 1e6, 1.5)


@pytest.mark.parametrize("size", [1e-140, 1e-20, 1e140])
def test_shadows_do_not_mind_the_unit(size, rng):
    points = rng.standard_normal((500, 3))
    expected = kp.shadow_select(points, 0.5)
    unit = 2.0 ** round(math.log2(size))
    found = kp.shadow_select(points * unit, 0.5 * unit)
    assert np.array_equal(found.labels, expected.labels) and np.array_equal(
        found.centers, expected.centers * unit
    )


def test_extreme_radii(rng):
    points = np.repeat(rng.standard_normal((40, 2)), 3, 0)
    # duplicates fall together
    assert np.array_equal(kp.shadow_select(points, 1e-150).weights, np.full(40, 3.0))
    assert kp.shadow_select(points, 1e150).weights.tolist() == [120.0]
    assert kp.shadow_select(np.zeros((7, 3)), 1.0).weights.tolist() == [7.0]
    far = np.array([[-1e149], [1e149], [0.0], [1e-149]])
    assert kp.shadow_select(far, 1e-148).labels.tolist() == [0, 1, 2, 2]
    assert np.array_equal(naive.shadows(far, 1e-148)[1], [0, 1, 2, 2])


@pytest.mark.parametrize("d, eps", [(3, 0.1), (3, 1.0), (10, 2.0)])
def test_streams_of_shadows_do_not_depend_on_the_cut(d, eps, rng):
    points = rng.standard_normal((3000, d))
    whole = kp.shadow_select(points, eps)
    for parts in ([1, 2999], [2048, 2049], list(range(100, 3000, 100))):
        state = kp.shadow_start(eps, d)
        for part in np.split(points, parts):
            before = state
            state = kp.update(state, part)
            assert before.count + len(part) == state.count
        found = kp.finish(state)
        assert np.array_equal(found.centers, whole.centers) and np.array_equal(
            found.weights, whole.weights
        )
        assert found.labels is None
        assert np.array_equal(kp.shadow_labels(points, found.centers, eps), whole.labels)
    with pytest.raises(ValueError, match="^update: X must be finite"):
        kp.update(state, np.full((2, d), np.nan))
    assert np.array_equal(kp.finish(state).weights, whole.weights)


def test_points_in_no_shadow_have_no_label():
    assert kp.shadow_labels(
        np.array([[0.2], [5.0], [0.9]]), np.array([[0.0], [1.0]]), 0.5
    ).tolist() == [0, -1, 1]


def test_shadows_have_the_same_bits_for_any_number_of_threads(same_bits, rng):
    same_bits(kp.shadow_select, rng.standard_normal((5000, 3)), 0.2)
    same_bits(kp.shadow_select, rng.standard_normal((5000, 10)), 3.0)
    same_bits(kp.shadow_select, rng.standard_normal((9000, 6)), 1.0)


@pytest.mark.parametrize("name", RADIAL)
def test_bounds_of_shadows_hold_and_are_sharp(name, rng):
    kernel, eps = RADIAL[name].make(0.7), 0.2
    bounds = kp.shadow_bounds(kernel, eps)
    r = np.linspace(0, 5, 200_001)[:, None]
    values = kp.gram(r, np.zeros((1, 1)), kernel)[:, 0]
    steepest = np.abs(np.diff(values)).max() / (r[1, 0] - r[0, 0])
    assert bounds.eigenvalues == pytest.approx(math.sqrt(2) * steepest * eps, rel=1e-4)
    points = rng.standard_normal((400, 2))
    found = kp.shadow_select(points, eps)
    assert kp.mmd(points, found, kernel) <= bounds.mmd
    assert kp.operator_distance(points, found, kernel) <= bounds.operator
    # all of one at distance eps: the worst case
    moved = points[:1] + np.array([[0.0, 0.0], [eps, 0.0]])
    assert kp.mmd(moved[1:], moved[:1], kernel) == pytest.approx(bounds.mmd, rel=1e-9)
    assert kp.operator_distance(moved[1:], moved[:1], kernel) == pytest.approx(
        bounds.operator, rel=1e-9
    )


def test_bounds_of_shadows_are_for_kernels_of_the_distance():
    for kernel in (
        kp.linear(),
        kp.polynomial(2, 1.0, 1.0),
        kp.laplacian(1.0, norm=1),
        kp.precomputed(np.eye(2)),
    ):
        with pytest.raises(ValueError, match="shadow_bounds: kernel must"):
            kp.shadow_bounds(kernel, 0.1)


# Rivals


def test_herding_is_the_greedy_choice(rng):
    points = rng.standard_normal((260, 3))
    for kernel in (
        kp.gaussian(1.0),
        kp.laplacian(2.0),
        kp.scaled(kp.gaussian(1.0), 1e9),
        kp.custom(product),
    ):
        K = kp.gram(points, points, kernel)
        found = kp.herd(points, kernel, 30)
        chosen = naive.herd(K, 30)
        assert np.array_equal(found.centers, points[chosen]) and (found.weights == 260 / 30).all()
        gaps = np.diag(K)[chosen] - 2 * K[:, chosen]
        assert np.abs(gaps[np.arange(260), found.labels] - gaps.min(1)).max() < 1e-12 * K.max()
    herded, order = (
        kp.herd(points, kp.gaussian(1.0), 260),
        naive.herd(kp.gram(points, points, kp.gaussian(1.0)), 260),
    )
    assert np.array_equal(herded.centers[np.argsort(order)], points)


@njit
def product(x, y):
    return np.exp(-((x - y) ** 2).sum())


@pytest.mark.parametrize("m", [1, 3, 16, 150, 300])
def test_pared_points_are_a_random_subset(m):
    found = kde_pare(X, m, 5)
    rows = [int(np.flatnonzero((X == c).all(1))[0]) for c in found.centers]
    assert len(set(rows)) == m and np.allclose(found.weights, 300 / m) and found.labels is None


def test_every_point_is_pared_as_often():
    points = np.arange(20.0)[:, None]
    counts = np.bincount(
        np.concatenate([kde_pare(points, 5, seed).centers[:, 0] for seed in range(2000)]).astype(
            int
        ),
        minlength=20,
    )
    # of negatively correlated counts: the test is conservative
    assert stats.chisquare(counts).pvalue > 1e-6


def test_thinned_and_herded_points_stand_for_all_better_than_random_ones(rng):
    points, kernel, m = rng.standard_normal((1024, 2)), kp.gaussian(1.0), 32

    def distance(found):
        return kp.mmd(points, found, kernel)

    at_random = np.mean([distance(kde_pare(points, m, seed)) for seed in range(20)])
    thinned = [distance(kp.kernel_thin(points, kernel, m, seed)) for seed in range(5)]
    # over 345 draws the shares are log-normal, .22 +- .021 and .18 +- .018: six deviations of the logarithm above
    assert (
        distance(kp.herd(points, kernel, m)) < 0.4 * at_random and max(thinned) < 0.33 * at_random
    )


@pytest.mark.parametrize("n, m", [(1, 1), (2, 1), (7, 2), (130, 129), (257, 8), (300, 300)])
def test_thinning_keeps_different_points_of_any_number(n, m, rng):
    points = rng.standard_normal((n, 2))
    found = kp.kernel_thin(points, kp.gaussian(1.0), m, 3)
    assert len(np.unique(found.centers, axis=0)) == m and np.allclose(found.weights, n / m)
    assert found.labels.shape == (n,)


def test_thinning_halves_evenly():
    # KT-SPLIT: both halves of a halving have nearly the same mean, where random halves differ by 1 / sqrt(n)
    own, kernel, gaps = np.random.default_rng(0), kp.gaussian(1.0), []
    for seed in range(8):
        points = own.standard_normal((512, 2))
        rows, ends = np.arange(512), np.array([0, 512])
        second = kp._halve(kernel, points, rows, ends, np.uint64(seed), math.log(4 * 512))
        assert (second[::2] != second[1::2]).all()  # one of each pair
        halves = rows[~second], rows[second]
        of_halves = [
            kp.mmd(points, kp.ReducedSet(points[half], np.full(256, 2.0)), kernel)
            for half in (*halves, own.permutation(512)[:256])
        ]
        assert of_halves[0] == pytest.approx(of_halves[1], rel=1e-6)
        gaps.append(of_halves[1:])
    assert np.mean(gaps, 0)[0] < 0.65 * np.mean(gaps, 0)[1]


HALVED = {
    "gaussian": kp.gaussian(2.0),
    "city block": kp.laplacian(3.0, norm=1),
    "polynomial": kp.polynomial(2, 0.1, 1.0),
    "custom": kp.custom(product),
}


@pytest.mark.parametrize("name", HALVED)
def test_sets_of_any_sizes_are_halved_side_by_side(name):
    kernel, key = HALVED[name], np.uint64(5)
    sizes = [128, 127, 0, 129, 1, 2, 256, 3, 257, 130]
    starts = np.cumsum([7, *sizes])  # seven rows stand before the first set
    points = np.random.default_rng(3).standard_normal((starts[-1], 3))
    points[200:230] = points[200]  # equal pairs balance nothing
    rows = np.random.default_rng(4).permutation(starts[-1])
    second = kp._halve(kernel, points, rows, starts, key, 3.0)
    K = kp.gram(points, points, kernel)
    coins = kp._uniforms(key, np.arange(starts[-1]))
    assert not second[:7].any()
    for first, last in itertools.pairwise(starts):
        own = rows[first:last]
        expected = naive.halved(K[np.ix_(own, own)], coins[first:last], 3.0)
        assert np.array_equal(second[first:last], expected)


def test_halves_in_float32_and_of_whole_numbers_are_exact(same_bits):
    points = np.random.default_rng(1).integers(-9, 10, (700, 20)).astype(np.float32)
    rows, starts, key = np.arange(700), np.array([0, 301, 700]), np.uint64(2)
    found = kp._halve(kp.linear(), points, rows, starts, key, 3.0)
    wide = kp._halve(kp.linear(), points.astype(float), rows, starts, key, 3.0)
    assert np.array_equal(found, wide) and found.sum() == 150 + 199
    same_bits(kp._halve, kp.gaussian(5.0), points, rows, starts, key, 3.0)


@pytest.mark.parametrize("n, m", [(1, 1), (128, 128), (129, 8), (300, 150)])
def test_points_are_exchanged_for_better_ones(n, m, rng):
    points, kernel = rng.standard_normal((n, 2)), kp.gaussian(1.0)
    K = kp.gram(points, points, kernel)
    rows = rng.permutation(n)[:m]
    taken = np.zeros(n)
    taken[rows] = np.inf
    found = rows.copy()
    pairs = kp._prepare(kernel, points, points, True)
    kp._choose(
        kernel, pairs, K.mean(0), np.diag(K).copy(), np.full(m, m), found, K[rows].sum(0), taken
    )
    assert found.tolist() == naive.swapped(K, rows) and np.isinf(taken).sum() == m


def test_the_last_point_is_herded_once():
    points = np.array([[-1.0], [1.0], [-2.0], [2.0], [0.0]])  # the last one comes first
    found = kp.herd(points, kp.gaussian(2.0), 5)
    assert found.centers[0] == 0.0 and np.unique(found.centers).size == 5


def test_far_labels_of_thinned_points_are_the_nearest(rng):
    # all kernel values underflow there, and the first center got all points
    points = np.concatenate([rng.standard_normal((60, 2)), rng.standard_normal((4, 2)) + 1e3])
    found = kp.kernel_thin(points, kp.gaussian(0.1), 8)
    square = naive.squared_distances(points, found.centers)
    assert np.array_equal(found.labels, square.argmin(1))


def test_first_rows_of_means_are_as_likely_as_their_squared_distances():
    points = np.array([[0.0], [1.0], [3.0], [0.0]])
    counts = np.zeros((4, 4))
    for key in range(6000):
        counts[tuple(kp._spread_rows(points, 2, np.uint64(key * 2**40 + 1)))] += 1
    assert stats.chisquare(counts.sum(1)).pvalue > 1e-6
    for row, found in enumerate(counts):
        square = (points[:, 0] - points[row, 0]) ** 2
        assert (found[square == 0] == 0).all()
        some = square > 0
        expected = found.sum() * square[some] / square.sum()
        assert stats.chisquare(found[some], expected).pvalue > 1e-6
    assert kp._spread_rows(np.ones((5, 2)), 3, np.uint64(1))[1:] == [0, 0]  # all are equal


# Kernel PCA of reduced sets


@pytest.mark.parametrize(
    "kernel",
    [kp.gaussian(2.0), kp.laplacian(2.0), kp.scaled(kp.gaussian(2.0), 5.0)],
    ids=["gaussian", "laplacian", "scaled"],
)
@pytest.mark.parametrize("centered", [False, True])
def test_reduced_set_kpca_is_kpca_of_the_quantized_points(kernel, centered, rng):
    C, w, new = (
        rng.standard_normal((60, 3)),
        rng.integers(0, 6, 60).astype(float),
        rng.standard_normal((50, 3)),
    )
    centers = kp.ReducedSet(C, w)
    found = kp.rskpca(centers, kernel, 6, 0, centered=centered)
    K, at = naive.quantized(kp.gram(C, C, kernel), w)
    H = np.eye(len(at)) - centered / len(at)
    values = np.linalg.eigvalsh(H @ K @ H)[::-1]
    assert np.abs(found.values - values[:6]).max() < 1e-12 * values[0]
    assert (
        np.abs(kp.rskpca(centers, kernel, 60, 0, centered=centered).values[:40] - values[:40]).max()
        < 1e-12 * values[0]
    )
    exact = kp.kpca(C[at], kernel, 6, centered=centered)
    assert np.abs(np.abs(kp.features(new, found)) - np.abs(kp.features(new, exact))).max() < 1e-9
    features = kp.features(C[at], found)
    assert np.abs(features.T @ features - np.diag(values[:6])).max() < 1e-10 * values[0]
    if centered:
        assert np.abs(features.mean(0)).max() < 1e-12
    u = features[:, 0] / values[0] ** 0.5
    assert np.abs(H @ K @ H @ u - values[0] * u).max() < 1e-10 * values[0]


def test_reduced_sets_in_single_precision(rng):
    C, w = rng.standard_normal((200, 4)).astype(np.float32), rng.integers(1, 6, 200).astype(float)
    single, double = (
        kp.rskpca(kp.ReducedSet(C, w), kp.gaussian(2.0), 3, centered=False),
        kp.rskpca(kp.ReducedSet(C.astype(float), w), kp.gaussian(2.0), 3, centered=False),
    )
    assert (
        single.coef.dtype == np.float32 and np.abs(single.values / double.values - 1).max() < 1e-5
    )
    assert np.abs(np.abs(kp.features(C, single)) - np.abs(kp.features(C, double))).max() < 1e-3


def test_all_points_as_their_own_reduced_set_are_kernel_pca():
    kernel = kp.gaussian(8.0)
    exact = kp.kpca(X, kernel, 5, centered=False)
    for found in (
        kp.rskpca(X, kernel, 5, centered=False),
        kp.weighted_nystrom(X, kp.ReducedSet(X, np.ones(300)), kernel, 5),
    ):
        assert np.abs(found.values / exact.values - 1).max() < 1e-11
        assert np.abs(np.abs(kp.features(X, found)) - np.abs(kp.features(X, exact))).max() < 1e-9


def test_weighted_nystrom_extends_eigenvectors_to_all_points():
    kernel, reduced = kp.gaussian(8.0), kp.kmeans_select(X, 40, 0)
    C, w = reduced.centers, reduced.weights
    values, phi = np.linalg.eigh(np.sqrt(np.outer(w, w)) * kp.gram(C, C, kernel))
    values, phi = values[::-1][:4], phi[:, ::-1][:, :4]
    u = kp.gram(X, C, kernel) @ (np.sqrt(w)[:, None] * phi) / values
    found = kp.weighted_nystrom(X, reduced, kernel, 4)
    assert np.abs(np.abs(found.coef) - np.abs(u / np.sqrt(values))).max() < 1e-10
    assert np.abs(found.values - values).max() < 1e-11 * values[0] and np.array_equal(
        found.points, X
    )
    with pytest.raises(
        ValueError,
        match="^weighted_nystrom: centers.weights must sum to the number of rows of X .*: pass Red",
    ):
        kp.weighted_nystrom(X, reduced._replace(weights=w * 1.1), kernel, 4)


# Manifolds


@pytest.mark.parametrize("alpha, time", [(0.0, 1.0), (0.5, 2.0), (1.0, 0.0), (1.0, 1.0)])
def test_manifolds_of_reduced_sets_are_those_of_the_quantized_points(alpha, time, rng):
    C, w, kernel = (
        rng.standard_normal((50, 2)),
        rng.integers(0, 5, 50).astype(float),
        kp.gaussian(0.8),
    )
    K, at = naive.quantized(kp.gram(C, C, kernel), w)
    values, psi, _ = naive.diffusion(K, alpha)
    found = kp.diffusion_map(kp.ReducedSet(C, w), kernel, 4, 0, alpha=alpha, time=time)
    assert np.abs(found.values - values[1:5]).max() < 1e-12
    expected = psi[:, 1:5] * values[1:5] ** time
    assert np.abs(np.abs(kp.features(C[at], found)) - np.abs(expected)).max() < 1e-8
    if alpha == 0:
        values, psi, D = naive.diffusion(K, 0)
        maps = kp.laplacian_eigenmap(kp.ReducedSet(C, w), kernel, 4)
        f = kp.features(C[at], maps)
        assert np.abs(maps.values - (1 - values[1:5])).max() < 1e-12
        assert np.abs(f.T @ np.diag(D) @ f - np.eye(4)).max() < 1e-9 and np.abs(D @ f).max() < 1e-9
        assert np.abs((np.diag(D) - K) @ f - D[:, None] * f * maps.values).max() < 1e-9
        cut = kp.normalized_cut(kp.ReducedSet(C, w), kernel, 4)
        v = kp.features(C[at], cut)
        S = K / np.sqrt(np.outer(D, D))
        assert (
            np.abs(v.T @ v - np.eye(4)).max() < 1e-9
            and np.abs(S @ v - v * (1 - cut.values)).max() < 1e-9
        )
        assert np.abs(np.abs(v[:, 0]) - np.sqrt(D / D.sum())).max() < 1e-9


def test_new_points_between_two_equal_ones_get_their_coordinates(rng):
    # the extension is the eigenproblem itself: a new point equal to a center gets what the center has, to rounding
    C = rng.standard_normal((80, 3))
    found = kp.diffusion_map(C, kp.gaussian(1.5), 3)
    assert np.abs(kp.features(C[:5].copy(), found) - kp.features(C, found)[:5]).max() < 1e-13
    single = kp.features(
        C.astype(np.float32),
        kp.diffusion_map(
            kp.ReducedSet(C.astype(np.float32), np.full(80, 1e6)), kp.gaussian(1.5), 3
        ),
    )
    assert (
        single.dtype == np.float32
        and np.abs(np.abs(single) - np.abs(kp.features(C, found))).max() < 1e-3
    )


def test_components_of_a_graph_that_falls_apart_do_not_mix_with_the_constant(rng):
    C = np.concatenate([rng.standard_normal((20, 2)), 1e3 + rng.standard_normal((20, 2))])
    found = kp.laplacian_eigenmap(C, kp.gaussian(1.0), 1)
    f = kp.features(C, found)[:, 0]
    assert (
        abs(found.values[0]) < 1e-12
        and np.ptp(f[:20]) < 1e-9
        and np.ptp(f[20:]) < 1e-9
        and f[0] * f[20] < 0
    )


def test_manifolds_refuse_what_has_no_degrees(rng):
    C = rng.standard_normal((10, 2))
    far = kp.laplacian_eigenmap(C, kp.gaussian(1.0), 2)
    with pytest.raises(ValueError, match="^features: X must be closer to model.points"):
        kp.features(np.full((1, 2), 1e4), far)
    for function in (kp.laplacian_eigenmap, kp.diffusion_map, kp.normalized_cut):
        with pytest.raises(
            ValueError,
            match=f"{function.__name__}: kernel values on centers must be finite, with positive sums",
        ):
            function(C - C.mean(0), kp.linear(), 2)


@njit
def coordinates_in_a_loop(points, model, out):
    for i in range(len(points)):
        kp.features_of(points[i], model, out[i])


@pytest.mark.parametrize("make", [kp.laplacian_eigenmap, kp.diffusion_map, kp.normalized_cut])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_coordinates_of_a_point_in_compiled_code_are_those_of_a_batch(make, dtype, rng):
    C, new = rng.standard_normal((40, 3)), rng.standard_normal((25, 3)).astype(dtype)
    for kernel in (kp.gaussian(1.5), kp.laplacian(1.0, norm=1), kp.scaled(kp.cauchy(2.0), 7.0)):
        model = make(kp.ReducedSet(C.astype(dtype), 1.0 + rng.random(40)), kernel, 3)
        wanted = kp.features(new, model)
        allowed = (1e-12 if dtype == np.float64 else 1e-4) * np.abs(wanted).max()
        out = np.full((25, 3), np.nan, dtype)
        coordinates_in_a_loop(new, model, out)
        assert wanted.dtype == dtype and np.abs(out - wanted).max() <= allowed
        kp.features_of(new[3], model, out[4])
        assert np.array_equal(out[4], kp.features(new[3:4], model)[0])
        into = np.empty((25, 3), dtype)
        assert kp.features(new, model, out=into) is into and np.array_equal(into, wanted)
    near = make(C.astype(dtype), kp.gaussian(1.5), 3)
    with pytest.raises(ValueError, match="^features_of: x must be closer to model.points"):
        coordinates_in_a_loop(np.full((1, 3), 1e4, dtype), near, out)


def test_points_have_weights_of_1_and_sets_of_frames_remember_their_columns(rng, tmp_path):
    pandas = pytest.importorskip("pandas")
    points, kernel = rng.standard_normal((12, 3)), kp.gaussian(1.5)
    frame = pandas.DataFrame(points, columns=["a", "b", "c"])
    other = frame[["c", "b", "a"]]
    for function in (kp.rskpca, kp.laplacian_eigenmap, kp.diffusion_map, kp.normalized_cut):
        plain = function(kp.ReducedSet(points, np.ones(12)), kernel, 2)
        for centers in (points, frame, kp.ReducedSet(frame, np.ones(12))):
            found = function(centers, kernel, 2)
            assert np.array_equal(found.coef, plain.coef)
            assert found.names == (b"" if centers is points else b'["a", "b", "c"]')
    sets = [
        kp.shadow_select(frame, 0.5),
        kp.kmeans_select(frame, 5),
        kp.herd(frame, kernel, 5),
        kp.kernel_thin(frame, kernel, 5),
        kp.compress_thin(frame, kernel, 5),
        kp.finish(kp.update(kp.shadow_start(0.5, 3), frame)),
        kp.ReducedSet(frame, np.ones(12)),
    ]
    for found in sets[:-1]:
        assert found.names == b'["a", "b", "c"]'
        kp.save(tmp_path / "set.npz", found)
        assert kp.load(tmp_path / "set.npz").names == found.names
    assert kp.shadow_select(points, 0.5).names == b""
    words = "must have the same columns in the same order"
    for found in sets:
        assert kp.rskpca(found, kernel, 2).names == b'["a", "b", "c"]'
        assert kp.mmd(points, found, kernel) == kp.mmd(frame, found, kernel)
        for function in (kp.mmd, kp.operator_distance, kp.nystrom):
            with pytest.raises(ValueError, match=f"^{function.__name__}: X and .* {words}"):
                function(other, found, kernel)
        with pytest.raises(ValueError, match=f"^weighted_nystrom: X and centers {words}"):
            kp.weighted_nystrom(other, found, kernel, 2)


# Distances


@pytest.mark.parametrize("n, m", [(1, 1), (5, 3), (127, 129), (300, 128), (700, 513)])
def test_distances_of_means_and_operators_are_the_textbook_ones(n, m, rng):
    points, C, w = rng.standard_normal((n, 3)), rng.standard_normal((m, 3)), rng.random(m)
    w *= n / w.sum()
    centers = kp.ReducedSet(C, w)
    for kernel in (kp.gaussian(1.0), kp.laplacian(1.0), kp.scaled(kp.matern(1.5, 2.0), 10.0)):
        parts = kp.gram(points, points, kernel), kp.gram(points, C, kernel), kp.gram(C, C, kernel)
        assert kp.mmd(points, centers, kernel) == pytest.approx(naive.mmd(*parts, w), rel=1e-9)
        assert kp.operator_distance(points, centers, kernel) == pytest.approx(
            naive.mmd(*[part**2 for part in parts], w), rel=1e-9
        )


def test_distance_of_projections_is_that_in_feature_space(rng):
    # with the linear kernel feature space is R^d
    A, B = rng.standard_normal((30, 6)), rng.standard_normal((40, 6))

    def projection(points):
        V = np.linalg.svd(points)[2][:2]
        return V.T @ V

    exact, centered = [
        [kp.kpca(points, kp.linear(), 2, centered=centered) for points in (A, B + 1.0)]
        for centered in (False, True)
    ]
    for a, P in zip((exact[0], centered[0]), (A, A - A.mean(0))):
        for b, Q in zip((exact[1], centered[1]), (B + 1.0, B - B.mean(0))):
            expected = np.linalg.norm(projection(P) - projection(Q))
            assert kp.projection_distance(a, b) == pytest.approx(expected, rel=1e-9)
    same = kp.kpca(A, kp.gaussian(2.0), 3, centered=False)
    assert kp.projection_distance(same, same) < 1e-6
    assert kp.projection_distance(same, kp.rskpca(A, kp.gaussian(2.0), 3, centered=False)) < 1e-6
    with pytest.raises(ValueError, match="must have the same kernel"):
        kp.projection_distance(same, kp.kpca(A, kp.gaussian(2.1), 3, centered=False))


def test_distance_of_projections_on_oblique_components_is_that_of_their_spans(rng):
    A, B = rng.standard_normal((60, 2)), rng.standard_normal((50, 2))
    kernel = kp.gaussian(1.5)
    C = kp.kmeans_select(A, 12)
    oblique = kp.weighted_nystrom(A, C, kernel, 4)  # was .99 from itself
    plain = kp.kpca(A, kernel, 4, centered=False)
    thin = kp.round_expansion(plain, 8.0, 1)
    twice = plain._replace(coef=plain.coef @ rng.standard_normal((4, 4)))
    repeated = plain._replace(coef=plain.coef[:, [0, 1, 2, 3, 1]])
    other = kp.kpca(B, kernel, 3, centered=False)
    # the span of directions does not depend on the offset
    centered = kp.kpca(B, kernel, 3)
    weighted = kp.rskpca(C, kernel, 3)
    landmarks = kp.nystrom_kpca(A, kp.rpcholesky(A, kernel, 9), kernel, 3)
    shifted = plain._replace(offset=np.arange(4.0))
    models = [oblique, thin, twice, repeated, other, centered, weighted, landmarks, shifted]
    points = np.concatenate([E.points for E in models])
    values, vectors = np.linalg.eigh(naive.gaussian(points, points, 1.5))
    phi = vectors * np.sqrt(values.clip(0.0))  # rows are feature vectors of the points
    projections, begin = [], 0
    for E in models:
        W = phi[begin : begin + len(E.points)].T @ E.coef
        projections.append(W @ np.linalg.pinv(W, 1e-7))
        begin += len(E.points)
    for E, P in zip(models, projections):
        for F, Q in zip(models, projections):
            assert abs(kp.projection_distance(E, F) - np.linalg.norm(P - Q)) < 1e-6
    assert kp.projection_distance(plain, twice) < 1e-6


@pytest.mark.parametrize(
    "function, arguments",
    [
        (kp.herd, (X, kp.gaussian(8.0), 20)),
        (kp.kernel_thin, (X, kp.gaussian(8.0), 20)),
        (kp.mmd, (X, kp.ReducedSet(X[:30], np.full(30, 10.0)), kp.gaussian(8.0))),
        (kp.rskpca, (X, kp.gaussian(8.0), 4)),
        (kp.weighted_nystrom, (X, kp.ReducedSet(X[:30], np.full(30, 10.0)), kp.gaussian(8.0), 4)),
    ],
    ids=["herd", "kernel_thin", "mmd", "rskpca", "weighted_nystrom"],
)
def test_reduced_sets_have_the_same_bits_for_any_number_of_threads(function, arguments, same_bits):
    same_bits(function, *arguments)


def test_bad_reduced_sets_are_refused():
    kernel = kp.gaussian(1.0)
    for eps in (0.0, -1.0, math.inf, math.nan, 1e-200):
        with pytest.raises(ValueError, match="shadow_select: eps must be"):
            kp.shadow_select(X, eps)
    with pytest.raises(ValueError, match="shadow_select: X must be finite"):
        kp.shadow_select(np.array([[np.inf]]), 1.0)
    with pytest.raises(
        ValueError, match="^rskpca: centers.weights must be finite and at least zero"
    ):
        kp.rskpca(kp.ReducedSet(X[:3], np.array([1.0, -1.0, 1.0])), kernel, 1)
    with pytest.raises(
        ValueError,
        match="^rskpca: centers.weights must be finite and at least zero, with a sum from 1e-15 to 1e18",
    ):
        kp.rskpca(kp.ReducedSet(X[:3], np.zeros(3)), kernel, 1)
    for wrong in (
        kp.ReducedSet(X[:3], np.ones(4)),
        kp.ReducedSet(X[:3], np.ones((3, 1))),
        kp.ReducedSet(X[:3], None),
        kp.ReducedSet(None, np.ones(3)),
        kp.ReducedSet(X[:0], np.ones(0)),
        kp.ReducedSet(np.array([[np.nan]]), np.ones(1)),
        kp.ReducedSet(sparse.eye(3).tocsr(), np.ones(3)),
        kp.ReducedSet(X[:3], np.ones(3), np.zeros((3, 2), int)),
        kp.ReducedSet(X[:3], np.ones(3), np.full(3, 0.5)),
    ):
        for function in (
            lambda centers: kp.rskpca(centers, kernel, 1),
            lambda centers: kp.weighted_nystrom(X[:3], centers, kernel, 1),
            lambda centers: kp.laplacian_eigenmap(centers, kernel, 1),
            lambda centers: kp.mmd(X[:3], centers, kernel),
        ):
            with pytest.raises(ValueError, match=r"^\w+: centers(\.\w+)? must "):
                function(wrong)
    for pair in ((X[:3], np.ones(3)), kp.Landmarks(np.arange(3), np.ones(3), 0)):
        words = f"got {type(pair).__name__}: pass ReducedSet\\(points, weights\\)"
        with pytest.raises(ValueError, match=f"^rskpca: centers must be a ReducedSet .* {words}"):
            kp.rskpca(pair, kernel, 1)
    for centers in (X[:3], kp.ReducedSet(X[:3], np.ones(3))):
        with pytest.raises(
            ValueError, match="^mmd: centers.weights must sum to the number of rows of X"
        ):
            kp.mmd(X, centers, kernel)
    for centers in (X[:3, :2], kp.ReducedSet(X[:3, :2], np.full(3, 100.0))):
        for function in (kp.mmd, kp.operator_distance):
            with pytest.raises(ValueError, match="centers must have 3 columns, got 2"):
                function(X, centers, kernel)
    with pytest.raises(ValueError, match="^finish: state must have seen a point"):
        kp.finish(kp.shadow_start(1.0, 2))
    with pytest.raises(ValueError, match="^update: X must have 2 columns"):
        kp.update(kp.shadow_start(1.0, 2), X)


def test_sets_states_and_manifolds_are_saved_and_pickled(tmp_path):
    # save knew its classes by a list, in which new ones were missing
    state = kp.update(kp.shadow_start(2.0, 3), X)
    for model in (
        state,
        kp.finish(state),
        kp.shadow_bounds(kp.gaussian(1.0), 0.1),
        kp.shadow_select(X, 2.0),
        kp.ReducedSet(X.astype(np.float32), np.ones(300)),
        kp.diffusion_map(X[:50], kp.gaussian(9.0), 2),
    ):
        kp.save(tmp_path / "model.npz", model)
        for found in (kp.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
            assert type(found) is type(model)
            assert all(
                np.array_equal(a, b) for a, b in zip(found, model) if not isinstance(a, kp.Kernel)
            )
    kp.save(tmp_path / "state.npz", state)
    cut, whole = (
        kp.update(kp.load(tmp_path / "state.npz"), X[:40] + 1.0),
        kp.update(state, X[:40] + 1.0),
    )
    assert all(np.array_equal(a, b) for a, b in zip(cut, whole))


# What an attack found


def test_manifold_coordinates_of_small_eigenvalues_were_lost_in_the_constant():
    # of order eps / mu^2: eigenvectors had a part of the constant, and the extension divided it by mu
    C = np.random.default_rng(0).standard_normal((12, 2))
    values, psi, _ = naive.diffusion(
        kp.gram(C, C, kp.gaussian(6.0)).astype(np.longdouble).astype(float), 0
    )
    maps = kp.diffusion_map(C, kp.gaussian(6.0), 11, 0, alpha=0.0, time=0.0)
    found = kp.features(C, maps)
    good = values[1:] > 1e-9
    assert good.sum() > 5
    assert (
        np.abs(np.abs(found) - np.abs(psi[:, 1:])).max(0)[good] < 1e-14 / values[1:][good] * 10
    ).all()
    assert (found[:, values[1:] < 1e-15] == 0).all() and np.abs(found).max() < 10
    single = kp.features(
        C.astype(np.float32),
        kp.laplacian_eigenmap(C.astype(np.float32), kp.gaussian(6.0), 11),
    )
    assert np.abs(single).max() < 1  # coordinates of rounding were 3.7


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_and_scales_of_any_size_serve_manifolds(dtype, rng):
    # sums of weights were squared and kernel values taken as they were: garbage, NaN, or refused with a wrong reason
    C, w, kernel = rng.standard_normal((12, 2)).astype(dtype), rng.random(12), kp.gaussian(1.0)
    makers = [
        (kp.laplacian_eigenmap, -1.0, -0.5),
        (kp.diffusion_map, 0.0, 0.0),
        (kp.normalized_cut, -0.5, 0.0),
    ]
    for maker, by_weight, by_scale in makers:
        plain = kp.features(C, maker(kp.ReducedSet(C, w), kernel, 3)).astype(float)
        for size in (1e-14, 1e16):
            found = kp.features(C, maker(kp.ReducedSet(C, w * size), kernel, 3)) / size**by_weight
            assert np.abs(found - plain).max() < 1e-3 * np.abs(plain).max()
        for kappa in (1e-37, 1e-20, 1e36):
            found = (
                kp.features(C, maker(kp.ReducedSet(C, w), kp.scaled(kernel, kappa), 3))
                / kappa**by_scale
            )
            assert np.abs(found - plain).max() < 1e-3 * np.abs(plain).max()
    for size in (1e-14, 1e16):
        assert (
            np.abs(
                kp.rskpca(kp.ReducedSet(C, w * size), kernel, 3, centered=False).values
                / size
                / kp.rskpca(kp.ReducedSet(C, w), kernel, 3, centered=False).values
                - 1
            ).max()
            < 1e-5
        )


@pytest.mark.parametrize("name", RADIAL)
def test_bounds_of_small_shadows_were_zero(name):
    # kappa - phi cancelled
    kernel = RADIAL[name].make(0.7)
    kappa, *shape = map(decimal.Decimal, (kernel.scale, kernel.gamma, kernel.shape))
    with decimal.localcontext() as context:
        context.prec = 250
        for eps in (1e-100, 1e-9, 1e-6, 1e-3, 0.3, 0.69, 0.71, 5.0, 1e100):
            exact = RADIAL[name].radial(*shape, decimal.Decimal(eps))
            bounds = kp.shadow_bounds(kernel, eps)
            assert bounds.mmd == pytest.approx(float((2 * kappa * (1 - exact)).sqrt()), rel=1e-13)
            assert bounds.operator == pytest.approx(
                float(kappa * (2 * (1 - exact**2)).sqrt()), rel=1e-13
            )
    huge = kp.shadow_bounds(kp.scaled(kp.gaussian(1e-150), 1e100), 1e150)
    assert all(math.isfinite(bound) for bound in huge)
    assert kp.shadow_bounds(kp.scaled(kernel, 1e200), 1.0).operator == pytest.approx(
        1e200 * kp.shadow_bounds(kernel, 1.0).operator
    )


def test_distances_do_not_mind_the_unit_of_the_kernel():
    # squares of kernel values were 0 or infinite
    points, C, w = X[:60], X[:12].copy(), np.full(12, 5.0)
    centers = kp.ReducedSet(C, w)
    plain, linear = (
        kp.operator_distance(points, centers, kp.gaussian(9.0)),
        kp.operator_distance(points, centers, kp.linear()),
    )
    for kappa in (1e-170, 1e170):
        assert kp.operator_distance(
            points, centers, kp.scaled(kp.gaussian(9.0), kappa)
        ) == pytest.approx(kappa * plain)
        assert kp.mmd(points, centers, kp.scaled(kp.gaussian(9.0), kappa)) == pytest.approx(
            math.sqrt(kappa) * kp.mmd(points, centers, kp.gaussian(9.0))
        )
    for unit in (1e-100, 1e100):
        assert kp.operator_distance(
            points * unit, kp.ReducedSet(C * unit, w), kp.linear()
        ) == pytest.approx(linear * unit**2)
    assert kp.operator_distance(points * 0, kp.ReducedSet(C * 0, w), kp.linear()) == 0


@pytest.mark.parametrize(
    "dtype, unit",
    [
        (np.float32, 2.0**-80),
        (np.float32, 2.0**50),
        (np.float64, 2.0**-600),
        (np.float64, 2.0**490),
    ],
)
def test_centers_of_points_in_small_units_lost_their_points(dtype, unit):
    # squared distances in the type of the points were 0, or infinite, and all points went to the first center
    small = (X * unit).astype(dtype)
    found = kp.kmeans_select(small, 6, 0)
    assert np.array_equal(found.weights, kp.kmeans_select(X.astype(dtype), 6, 0).weights)


@pytest.mark.parametrize("power", [-990, -600, 600, 990])
def test_choices_do_not_depend_on_the_scale_of_the_kernel(power):
    for choose in (
        lambda kernel: kp.kernel_thin(X[:90], kernel, 10),
        lambda kernel: kp.herd(X[:90], kernel, 10),
    ):
        assert np.array_equal(
            choose(kp.scaled(kp.gaussian(9.0), 2.0**power)).centers,
            choose(kp.gaussian(9.0)).centers,
        )


def test_new_points_whose_kernel_values_vanish_are_refused():
    P = np.array([[0.0, 0.0], [0.3, 0.0]], np.float32)
    with pytest.raises(ValueError, match="^features: X must be closer to model.points"):
        kp.features(
            np.array([[-13.0, 0.0]], np.float32),
            kp.diffusion_map(P, kp.gaussian(1.0), 1),
        )


def test_states_and_models_that_no_function_made_are_refused():
    state = kp.update(kp.shadow_start(1.0, 3), X)
    for change in (
        {"count": None},
        {"count": "a"},
        {"count": 2**70},
        {"count": 1.5},
        {"eps": None},
    ):
        for function in (lambda s: kp.update(s, X), kp.finish):
            with pytest.raises(ValueError, match="^(update|finish): state"):
                function(state._replace(**change))
    with pytest.raises(ValueError, match="^update: state must be a ShadowState"):
        kp.update(state._replace(weights=state.weights[1:]), X)
    manifold = kp.diffusion_map(X[:30], kp.gaussian(9.0), 2)
    with pytest.raises(ValueError, match="^features: model must be a Manifold"):
        kp.features(X, manifold._replace(degrees=manifold.degrees[1:]))
    with pytest.raises(ValueError, match="^features: model must be a Manifold"):
        kp.features(X, manifold._replace(values=manifold.values[1:]))
    with pytest.raises(ValueError, match="^features: features of X must be finite"):
        kp.features(X[:30], manifold._replace(factor=1e300, coef=1e300 * manifold.coef))
    with pytest.raises(ValueError, match="^weighted_nystrom: centers.centers must be finite"):
        kp.weighted_nystrom(
            X.astype(np.float32),
            kp.ReducedSet(np.array([[1e60] * 3, [0.0] * 3]), np.array([150.0, 150.0])),
            kp.gaussian(9.0),
            2,
        )


def test_points_in_a_column_far_from_the_others_have_exact_labels():
    Q = np.random.default_rng(3).random((6000, 6)) * [1.0, 1, 1, 20, 20, 20]
    exact_labels(np.c_[Q[:, :2], np.full(len(Q), 1.7e12)], 0.004)


def test_centred_features_of_a_reduced_set_lacked_the_mean_of_the_excess():
    # the offset was made of coefficients whose sum was taken off afterwards: 2.6e-3 and 596 standard deviations
    C = np.linspace(0.0, 1.0, 200)[:, None]
    model = kp.rskpca(C, kp.gaussian(3.0), 6, 0, centered=True)
    means, kept = kp.features(C, model).mean(0), model.values > 0
    assert kept.sum() == 5 and (np.abs(means[:4]) < 1e-5 * np.sqrt(model.values[:4] / 200)).all()
    # a law beside the oracle: weights of whole numbers are copies of points
    w = 1.0 + np.arange(200) % 3
    copies = kp.kpca(np.repeat(C, w.astype(int), axis=0), kp.gaussian(3.0), 4, centered=True)
    model = kp.rskpca(kp.ReducedSet(C, w), kp.gaussian(3.0), 4, 0, centered=True)
    assert np.allclose(model.values, copies.values, rtol=1e-6)
    a, b = kp.features(C, model), kp.features(C, copies)
    assert (np.abs(np.abs(a) - np.abs(b)).max(0) < 1e-4 * np.sqrt(model.values / w.sum())).all()


def test_a_reduced_set_in_float32_had_eigenvalues_of_rounding():
    # 1.9e-7 where 2e-8 is true, and features off by 350 %
    C = np.linspace(0.0, 1.0, 200, dtype=np.float32)[:, None]
    for centered in (False, True):
        exact = kp.rskpca(C.astype(float), kp.gaussian(3.0), 6, 0, centered=centered)
        model = kp.rskpca(C, kp.gaussian(3.0), 6, 0, centered=centered)
        kept = model.values > 0
        assert (
            np.allclose(model.values[kept], exact.values[kept], rtol=1e-6)
            and not model.coef[:, ~kept].any()
        )
        assert (
            (exact.values[~kept] < 2e-7 * 200).all()
            and kept.sum() >= 2
            and model.coef.dtype == np.float32
        )
        gaps = np.abs(kp.features(C, model) - kp.features(C.astype(float), exact))[:, kept].max(0)
        assert (gaps < 0.1 * np.sqrt(exact.values[kept] / 200)).all()


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_thinned_points_in_float32_mixed_two_scales(size, rng):
    # the diagonal was of scaled points with the unscaled gamma: a mean distance of .877 for .256
    X, kernel = rng.standard_normal((512, 3)) * size, kp.polynomial(2, 1 / size**2, 1.0)
    wide, single = [
        kp.kernel_thin(X.astype(dtype), kernel, 16, 3) for dtype in (np.float64, np.float32)
    ]
    errors = [
        kp.mmd(X, found._replace(centers=found.centers.astype(float)), kernel)
        for found in (wide, single)
    ]
    assert errors[1] < 1.2 * errors[0]


def test_bounds_of_eigenvalues_were_above_what_can_be():
    # 1.414 where the matrices, with the same diagonal and entries from 0 to 1, cannot differ by more than 1
    for kernel in (kp.gaussian(1.0), kp.laplacian(1.0), kp.matern(2.5, 1.0), kp.cauchy(1.0)):
        assert kp.shadow_bounds(kp.scaled(kernel, 3.0), 50.0).eigenvalues == 3.0
    n = 400  # nearly reached: one place against n far from each other
    near, far = kp.gram(np.zeros((n, 1)), np.zeros((n, 1)), kp.gaussian(1.0)), np.eye(n)
    gap = np.linalg.norm(np.linalg.eigvalsh(near) - np.linalg.eigvalsh(far)) / n
    assert 0.99 < gap <= kp.shadow_bounds(kp.gaussian(1.0), 50.0).eigenvalues
    assert kp.shadow_bounds(kp.gaussian(1.0), 0.25).eigenvalues == pytest.approx(
        2**0.5 * 0.25 * math.exp(-0.5)
    )


def test_the_constant_coordinate_came_back_as_a_value_of_1(rng):
    C = rng.standard_normal((6, 2))
    for make in (kp.laplacian_eigenmap, kp.diffusion_map):
        with pytest.raises(ValueError, match=f"{make.__name__}: k must be an int from 1 to"):
            make(C, kp.gaussian(1.0), 6)
        assert (make(C, kp.gaussian(1.0), 5).coef != 0).any(0).all()
    assert kp.normalized_cut(C, kp.gaussian(1.0), 6).values.shape == (6,)


@pytest.mark.parametrize("make", [kp.laplacian_eigenmap, kp.diffusion_map, kp.normalized_cut])
def test_an_isolated_center_that_stands_for_no_point_was_refused(make, rng):
    C, kernel = rng.standard_normal((8, 2)), kp.gaussian(1.0)
    without = make(C, kernel, 3)
    found = make(
        kp.ReducedSet(np.concatenate([C, [[1e3, 0.0]]]), np.append(np.ones(8), 0.0)), kernel, 3
    )
    assert np.array_equal(found.values, without.values) and np.array_equal(found.points, C)
    assert np.abs(np.abs(kp.features(C, found)) - np.abs(kp.features(C, without))).max() < 1e-9
    with pytest.raises(ValueError, match="positive sums"):
        make(np.zeros((2, 1)), kp.linear(), 1)


@pytest.mark.parametrize("n", [300, 3000])
def test_distances_of_the_same_points_in_another_order_are_the_rounding_that_is_told(n, rng):
    # "below 1e-8 is rounding" was said, and 1.4e-8 came out
    X = rng.standard_normal((n, 3))
    for kernel in (kp.gaussian(3.0), kp.laplacian(1.0), kp.linear()):
        largest = kp.gram_diagonal(X, kernel).max()
        told = (2e-16 * (10 + n / 200)) ** 0.5
        assert kp.mmd(X, X[rng.permutation(n)], kernel) <= told * largest**0.5
        assert kp.operator_distance(X, X[rng.permutation(n)], kernel) <= told * largest


def test_a_kernel_of_a_new_kind_took_the_laws_of_another():
    with pytest.raises(ValueError, match="kernel must have a law"):
        kp._scales(kp.linear(), np.uint64(0), 0, 1)
    for number, kind in enumerate(kp._KINDS):
        known = kp.rational_quadratic(2.0, 1.0)._replace(kind=number)
        if kind.law and kind.base == kp._DISTANCES:
            assert kp._scales(known, np.uint64(0), 0, 1) > 0
            assert kind.drop(known, 1.0) > 0 and kind.slope(known) > 0


# Reduced sets of very many points


def test_compressed_points_are_nearly_as_good_as_thinned_ones(rng):
    X, kernel = (
        rng.standard_normal((4096, 2)) + 3 * rng.integers(2, size=(4096, 1)),
        kp.gaussian(1.5),
    )

    def distance(found):
        return kp.mmd(X, found, kernel)

    compressed, thinned, drawn = np.mean(
        [
            [
                distance(choose(seed))
                for choose in (
                    lambda seed: kp.compress_thin(X, kernel, 64, seed),
                    lambda seed: kp.kernel_thin(X, kernel, 64, seed),
                    lambda seed: kde_pare(X, 64, seed),
                )
            ]
            for seed in range(4)
        ],
        0,
    )
    assert thinned / 2 < compressed < 4 * thinned < drawn


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "n, m", [(1, 1), (2, 1), (5, 2), (100, 1), (1023, 31), (1024, 32), (1025, 32), (700, 700)]
)
def test_compressed_points_are_different_points_of_all(n, m, dtype, rng):
    X = rng.standard_normal((n, 3)).astype(dtype)
    for g in (2, 3):
        found = kp.compress_thin(X, kp.laplacian(1.0), m, 5, g=g)
        rows = [int(np.flatnonzero((X == center).all(1))[0]) for center in found.centers]
        assert (
            len(set(rows)) == m
            and found.weights.sum() == pytest.approx(n)
            and found.centers.dtype == dtype
        )
        nearest = naive.laplacian(X.astype(float), found.centers.astype(float), 1.0).argmax(1)
        assert (found.labels == nearest).mean() > 0.99
    for g in (1, 17, 2.5):
        with pytest.raises(ValueError, match="compress_thin: g must be an int from 2 to 16"):
            kp.compress_thin(X, kp.gaussian(1.0), m, 0, g=g)


def test_compressed_points_follow_order_and_duplicates(same_bits, rng):
    X = np.repeat(rng.standard_normal((40, 2)), 30, 0)
    same_bits(kp.compress_thin, X, kp.gaussian(1.0), 20, 3)
    assert np.isfinite(kp.mmd(X, kp.compress_thin(X, kp.gaussian(1.0), 20, 3), kp.gaussian(1.0)))


@pytest.mark.parametrize("unit", [1e-100, 1e140])
def test_thinning_far_from_1_overflowed(unit, rng):
    X = rng.standard_normal((150, 2))
    near, far = [kp.kernel_thin(factor * X, kp.linear(), 4, 1).labels for factor in (1.0, unit)]
    assert np.array_equal(near, far)


def test_distances_of_predictions_were_0_without_a_word(rng):
    points, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    kernel = kp.gaussian(1.0)
    components, few = (
        kp.kpca(points, kernel, 2, centered=False),
        kp.nystrom_ridge(points, y, np.arange(9), kernel, 1e-3, intercept=False),
    )
    words = "^projection_distance: model and other must not predict targets"
    for predicts in (few, kp.kernel_ridge(points, y, kernel, 1e-3, intercept=False)):
        for pair in ((predicts, predicts), (components, predicts), (predicts, components)):
            with pytest.raises(ValueError, match=words):
                kp.projection_distance(*pair)
    with pytest.raises(ValueError, match="sketch_error: sketch must not predict targets"):
        kp.sketch_error(
            kp.kernel_ridge(points, np.c_[y, y**2], kernel, 1e-3, intercept=False), points, kernel
        )


@pytest.mark.parametrize("choose", [kp.kernel_thin, kp.compress_thin])
def test_a_delta_below_1e_300_left_coins_unthrown(choose, monkeypatch):
    # the limit of the coins, log(1 / delta), overflowed, and no pair changed places; the law is a fair coin
    points, pairs, halve = np.random.default_rng(0).standard_normal((512, 2)), [], kp._halve

    def watched(kernel, X, rows, *others):
        second = halve(kernel, X, rows, *others)
        pairs.extend(second[: rows.size // 2 * 2 : 2])
        return second

    monkeypatch.setattr(kp, "_halve", watched)
    choose(points, kp.gaussian(1.0), 16, delta=1e-310)
    assert len(pairs) > 500 and stats.binomtest(sum(pairs), len(pairs), 0.5).pvalue > 1e-6


def test_compressing_left_a_third_where_odd_points_were_dropped(monkeypatch):
    left, thinned = [], kp._thinned

    def watched(X, *others):
        left.append(len(X))
        return thinned(X, *others)

    monkeypatch.setattr(kp, "_thinned", watched)
    for n, m, g in (
        (201, 3, 3),
        (212, 3, 3),
        (776, 3, 4),
        (300, 4, 2),
        (700, 5, 3),
        (64, 8, 3),
        (683, 1, 2),
    ):
        kp.compress_thin(np.random.default_rng(0).standard_normal((n, 1)), kp.gaussian(1.0), m, g=g)
        assert 0.5 <= left[-1] / min(n, max(2**g * m, 8 * n**0.5)) <= 1.25


def test_the_limit_of_a_count_was_an_int_from_1_to_0():
    for C, w in ((np.ones((1, 2)), np.ones(1)), (np.eye(2), np.array([1.0, 0.0]))):
        for function in (kp.laplacian_eigenmap, kp.diffusion_map):
            with pytest.raises(
                ValueError, match="centers must have at least two points of positive weight"
            ):
                function(kp.ReducedSet(C, w), kp.gaussian(1.0), 1)
        assert kp.normalized_cut(kp.ReducedSet(C, w), kp.gaussian(1.0), 1).values == pytest.approx(
            0.0
        )
