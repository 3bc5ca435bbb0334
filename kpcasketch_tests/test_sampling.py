# SPDX-License-Identifier: BSD-3-Clause
"""Sampled and quantized Gram matrices: symmetric, unbiased, of the stated variance and size, and evaluated only where kept."""

import numba
import numpy as np
import pytest
from scipy import stats

import kpcasketch as kp
from kpcasketch_tests import naive

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3))
KERNEL = kp.gaussian(2.0)
K = naive.gaussian(X, X, 2.0)
SEEDS = 600
CHANCE = 1e-8
SKETCHES = {
    "sample": (lambda seed: kp.sample_gram(X, KERNEL, 4.0, seed), 3 * K ** 2),
    "quantize": (lambda seed: kp.quantize_gram(X, KERNEL, seed), 1 - K ** 2),
    "sample-quantize": (lambda seed: kp.sample_quantize_gram(X, KERNEL, 4.0, seed), 4 - K ** 2),
}


@pytest.mark.parametrize("name", SKETCHES)
def test_sketch_is_symmetric_unbiased_and_of_the_stated_variance(name):
    sketch, variance = SKETCHES[name]
    draws = np.array([kp.dense(sketch(seed)) for seed in range(SEEDS)])
    assert np.array_equal(draws, draws.transpose(0, 2, 1))
    upper = np.triu_indices(40)
    errors = (draws - K)[:, *upper]
    bound = stats.norm.isf(CHANCE / len(upper[0])) * 1.3               # 1.3: tails of few-valued sums
    assert (np.abs(errors.mean(0)) <= bound * np.sqrt(variance[upper] / SEEDS) + 1e-12).all()
    ratio = (errors ** 2).sum() / (SEEDS * variance[upper].sum())
    assert ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("s", [1.0, 2.5, 20.0])
def test_kept_entries_are_the_scaled_kernel_values_and_binomially_many(s):
    points = rng.standard_normal((700, 3))
    exact = naive.gaussian(points, points, 2.0)
    A = kp.sample_gram(points, KERNEL, s, 1)
    matrix = kp.dense(A)
    kept = matrix != 0
    assert np.abs(matrix[kept] - s * exact[kept]).max() < 1e-12 * s
    pairs, count = 700 * 701 // 2, int(np.triu(kept).sum())
    assert stats.binomtest(count, pairs, 1 / s).pvalue > CHANCE
    assert A.indices.dtype == np.int32 and (A.indptr[-1] == A.data.size == kept.sum())
    assert all((np.diff(A.indices[a:b]) > 0).all() for a, b in zip(A.indptr[:-1], A.indptr[1:]))


def test_kept_places_are_spread_evenly_over_rows_and_columns():
    points = rng.standard_normal((600, 1))
    kept = np.triu(kp.dense(kp.sample_gram(points, KERNEL, 3.0, 7)) != 0)
    blocks = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    counts = [kept[100 * i:100 * i + 100, 100 * j:100 * j + 100].sum() for i, j in blocks]
    assert stats.chisquare(counts).pvalue > CHANCE


def test_only_kept_pairs_are_looked_up():
    # a table with a wrong entry at each place that was not kept: the sample must not change
    rows = np.arange(40)[:, None]
    A = kp.sample_gram(rows, kp.precomputed(K), 4.0, 3)
    poisoned = np.where(kp.dense(A) != 0, K, 1e100)
    assert np.array_equal(kp.dense(kp.sample_gram(rows, kp.precomputed(poisoned), 4.0, 3)), kp.dense(A))


def test_points_and_their_precomputed_matrix_give_the_same_sketches():
    rows = np.arange(40)[:, None]
    exact = kp.gram(X, X, KERNEL)
    assert np.array_equal(kp.dense(kp.quantize_gram(rows, kp.precomputed(exact), 5)), kp.dense(kp.quantize_gram(X, KERNEL, 5)))
    a, b = kp.sample_gram(rows, kp.precomputed(exact), 3.0, 5), kp.sample_gram(X, KERNEL, 3.0, 5)
    assert np.array_equal(a.indices, b.indices) and np.allclose(a.data, b.data, rtol=1e-13)


def test_both_samplers_keep_the_same_places():
    a, b = kp.sample_gram(X, KERNEL, 3.0, 5), kp.sample_quantize_gram(X, KERNEL, 3.0, 5)
    assert np.array_equal(a.indices, b.indices) and set(np.abs(b.data)) == {3.0}


def test_the_bound_of_quantization_is_the_largest_entry():
    negative = -np.eye(30) * 2.0
    negative[0, 1] = negative[1, 0] = 5.0
    rows = np.arange(30)[:, None]
    assert kp.quantize_gram(rows, kp.precomputed(negative), 0).scale == 5.0
    assert kp.quantize_gram(X, kp.polynomial(2, 1.0, 1.0), 0).scale == pytest.approx(((X ** 2).sum(1) + 1).max() ** 2)


def test_a_gram_matrix_of_zeros_is_quantized_to_zero():
    A = kp.quantize_gram(np.zeros((5, 2)), kp.linear(), 0)
    assert A.scale == 0.0 and (kp.dense(A) == 0).all()
    assert (kp.dense(kp.sample_quantize_gram(np.zeros((5, 2)), kp.linear(), 2.0, 0)) == 0).all()


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300])
def test_every_size_up_to_several_tiles_is_symmetric(n):
    points = rng.standard_normal((n, 2))
    for A in (kp.quantize_gram(points, KERNEL, 1), kp.sample_gram(points, KERNEL, 1.5, 1)):
        matrix = kp.dense(A)
        assert matrix.shape == (n, n) and np.array_equal(matrix, matrix.T)


def test_sketches_have_the_same_bits_for_any_number_of_threads(same_bits):
    points = rng.standard_normal((500, 3))
    same_bits(kp.sample_gram, points, KERNEL, 3.0, 2**64 - 1)
    same_bits(kp.sample_quantize_gram, points, KERNEL, 3.0, 1)
    same_bits(kp.quantize_gram, points, KERNEL, 1)


def test_float32_points_give_a_float32_sample():
    A = kp.sample_gram(X.astype(np.float32), KERNEL, 2.0, 0)
    assert A.data.dtype == np.float32
    matrix = kp.dense(A)
    assert np.abs(matrix[matrix != 0] - 2 * K[matrix != 0]).max() < 1e-5


def test_sketched_kernel_pca_finds_the_leading_direction():
    points = rng.standard_normal((1500, 2))
    exact = kp.block_lanczos(kp.gram(points, points, kp.gaussian(3.0)), 1, 0)
    for A in (kp.sample_gram(points, kp.gaussian(3.0), 2.0, 0), kp.quantize_gram(points, kp.gaussian(3.0), 0)):
        assert kp.principal_angles(exact.vectors, kp.block_lanczos(A, 1, 0).vectors)[0] < 0.06


def test_a_kernel_with_nan_is_refused_instead_of_rounded():
    broken = kp.custom(numba.njit(lambda x, y: np.nan))
    for sketch in (lambda: kp.quantize_gram(X, broken, 0), lambda: kp.sample_quantize_gram(X, broken, 2.0, 0)):
        with pytest.raises(ValueError, match="gram: kernel must have finite values on X"):
            sketch()
