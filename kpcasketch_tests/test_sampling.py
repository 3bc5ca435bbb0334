# SPDX-License-Identifier: BSD-3-Clause
"""Sampling techniques: sketches, rounded expansions, projections, random kernels: unbiased, of the stated law, and only
work that is kept."""

import numba
import numpy as np
import pytest
from scipy import linalg, sparse, stats
from scipy.spatial.distance import pdist

import kpcasketch as kp
from kpcasketch_tests import naive
from paper_checks import ams2001

X = np.random.default_rng(0).standard_normal((40, 3))
KERNEL = kp.gaussian(2.0)
K = naive.gaussian(X, X, 2.0)
SEEDS = 600
CHANCE = 1e-8
SKETCHES = {
    "sample": (lambda seed: kp.sample_gram(X, KERNEL, 4.0, seed), 3 * K**2),
    "quantize": (lambda seed: kp.quantize_gram(X, KERNEL, seed), 1 - K**2),
    "sample-quantize": (lambda seed: kp.sample_quantize_gram(X, KERNEL, 4.0, seed), 4 - K**2),
}


@pytest.mark.parametrize("name", SKETCHES)
def test_sketch_is_symmetric_unbiased_and_of_the_stated_variance(name):
    sketch, variance = SKETCHES[name]
    draws = np.array([kp.dense(sketch(seed)) for seed in range(SEEDS)])
    assert np.array_equal(draws, draws.transpose(0, 2, 1))
    upper = np.triu_indices(40)
    errors = (draws - K)[(slice(None), *upper)]
    bound = stats.norm.isf(CHANCE / len(upper[0])) * 1.3  # 1.3: tails of few-valued sums
    assert (np.abs(errors.mean(0)) <= bound * np.sqrt(variance[upper] / SEEDS) + 1e-12).all()
    ratio = (errors**2).sum() / (SEEDS * variance[upper].sum())
    assert ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("s", [1.0, 2.5, 20.0])
def test_kept_entries_are_the_scaled_kernel_values_and_binomially_many(s, rng):
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


def test_kept_places_are_spread_evenly_over_rows_and_columns(rng):
    points = rng.standard_normal((600, 1))
    kept = np.triu(kp.dense(kp.sample_gram(points, KERNEL, 3.0, 7)) != 0)
    blocks = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    counts = [kept[100 * i : 100 * i + 100, 100 * j : 100 * j + 100].sum() for i, j in blocks]
    assert stats.chisquare(counts).pvalue > CHANCE


def test_only_kept_pairs_are_looked_up():
    # a table with a wrong entry at each place that was not kept: the sample must not change
    rows = np.arange(40)[:, None]
    A = kp.sample_gram(rows, kp.precomputed(K), 4.0, 3)
    poisoned = np.where(kp.dense(A) != 0, K, 1e100)
    assert np.array_equal(
        kp.dense(kp.sample_gram(rows, kp.precomputed(poisoned), 4.0, 3)), kp.dense(A)
    )


def test_points_and_their_precomputed_matrix_give_the_same_sketches():
    rows = np.arange(40)[:, None]
    exact = kp.gram(X, X, KERNEL)
    assert np.array_equal(
        kp.dense(kp.quantize_gram(rows, kp.precomputed(exact), 5)),
        kp.dense(kp.quantize_gram(X, KERNEL, 5)),
    )
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
    assert kp.quantize_gram(X, kp.polynomial(2, 1.0, 1.0), 0).scale == pytest.approx(
        ((X**2).sum(1) + 1).max() ** 2
    )


def test_a_gram_matrix_of_zeros_is_quantized_to_zero():
    A = kp.quantize_gram(np.zeros((5, 2)), kp.linear(), 0)
    assert A.scale == 0.0 and (kp.dense(A) == 0).all()
    assert (kp.dense(kp.sample_quantize_gram(np.zeros((5, 2)), kp.linear(), 2.0, 0)) == 0).all()


@pytest.mark.bounds
@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 300])
def test_every_size_up_to_several_tiles_is_symmetric(n, rng):
    points = rng.standard_normal((n, 2))
    for A in (kp.quantize_gram(points, KERNEL, 1), kp.sample_gram(points, KERNEL, 1.5, 1)):
        matrix = kp.dense(A)
        assert matrix.shape == (n, n) and np.array_equal(matrix, matrix.T)


@pytest.mark.bounds
def test_sketches_have_the_same_bits_for_any_number_of_threads(same_bits, rng):
    points = rng.standard_normal((500, 3))
    same_bits(kp.sample_gram, points, KERNEL, 3.0, 2**64 - 1)
    same_bits(kp.sample_quantize_gram, points, KERNEL, 3.0, 1)
    same_bits(kp.quantize_gram, points, KERNEL, 1)


def test_float32_points_give_a_float32_sample():
    A = kp.sample_gram(X.astype(np.float32), KERNEL, 2.0, 0)
    assert A.data.dtype == np.float32
    matrix = kp.dense(A)
    assert np.abs(matrix[matrix != 0] - 2 * K[matrix != 0]).max() < 1e-5


def test_sketched_kernel_pca_finds_the_leading_direction(rng):
    points = rng.standard_normal((1500, 2))
    exact = kp.block_lanczos(kp.gram(points, points, kp.gaussian(3.0)), 1, 0)
    for A in (
        kp.sample_gram(points, kp.gaussian(3.0), 2.0, 0),
        kp.quantize_gram(points, kp.gaussian(3.0), 0),
    ):
        assert linalg.subspace_angles(exact.vectors, kp.block_lanczos(A, 1, 0).vectors)[0] < 0.06


def test_a_kernel_with_nan_is_refused_instead_of_rounded():
    broken = kp.custom(numba.njit(lambda x, y: np.nan))
    for sketch in (
        lambda: kp.quantize_gram(X, broken, 0),
        lambda: kp.sample_quantize_gram(X, broken, 2.0, 0),
    ):
        with pytest.raises(ValueError, match="gram: kernel values on X must be finite"):
            sketch()


def rounded_rows(coef, s, seed, kernel=KERNEL):
    """The rows of rounded coefficients that remain, and their numbers: points are numbers."""
    points = np.arange(len(coef), dtype=coef.dtype)[:, None]
    model = kp.Expansion(points, coef, np.ones(coef.shape[1]), kernel)
    found = kp.round_expansion(model, s, seed)
    return found.coef, found.points[:, 0].astype(int)


def rounded(coef, s, seed):
    """All coefficients after rounding, also zeros."""
    out = np.zeros(coef.shape)
    rows, places = rounded_rows(coef, s, seed)
    out[places] = rows
    return out


@pytest.mark.parametrize(
    "m, k, s", [(1, 1, 0.5), (2, 1, 1.0), (700, 1, 6.0), (700, 3, 20.0), (50, 2, 1e9)]
)
def test_rounding_is_the_naive_one_for_each_column(m, k, s, rng):
    coef = rng.standard_normal((m, k)) * [1e-3, 1.0, 50.0][:k]
    key = np.uint64(kp._key(np.uint64(5), kp._ROUND_COEFFICIENTS))
    uniform = np.array([kp._uniform(key, i) for i in range(m)])
    assert np.allclose(rounded(coef, s, 5), naive.rounded(coef, s, uniform), rtol=1e-12)
    rows, places = rounded_rows(coef, s, 5)
    assert (np.diff(places) > 0).all() and (rows.any(1).all() or len(rows) == 1)


def test_rounding_takes_zeros_and_scales(rng):
    coef = rng.standard_normal((300, 1))
    one, places = rounded_rows(coef, 4.0, 1)
    scaled, same_places = rounded_rows(1e-3 * coef, 4.0, 1)
    single, _ = rounded_rows(coef.astype(np.float32), 4.0, 1)
    assert np.array_equal(places, same_places) and np.allclose(scaled, 1e-3 * one)
    assert single.dtype == np.float32 and abs(len(single) - len(one)) <= 2
    nothing, places = rounded_rows(np.zeros((4, 2)), 2.0, 0)
    assert nothing.tolist() == [[0.0, 0.0]] and places.tolist() == [0]
    tiny = 1e16 * coef.astype(np.float32)
    assert all(np.isfinite(rounded_rows(tiny, 1e-300, seed)[0]).all() for seed in range(50))
    for size in (1e-200, 1e149):  # squares underflowed, and nothing was rounded
        assert np.array_equal(rounded_rows(size * coef, 4.0, 1)[1], rounded_rows(coef, 4.0, 1)[1])


def test_rounding_keeps_everything_but_points_coefficients_and_the_mean():
    centered = kp.kpca(X, KERNEL, 3)._replace(names=b'["a", "b", "c"]')
    plain = kp.kpca(X, KERNEL, 3, centered=False)
    for model in (centered, plain):
        found = kp.round_expansion(model, 1.0)
        assert type(found) is kp.Expansion and len(found.points) < 40 and found.mean is None
        assert (found.offset is None) == (model.offset is None)
        assert model.offset is None or np.array_equal(found.offset, model.offset)
        assert np.array_equal(found.values, model.values) and found.names == model.names
        assert found.kernel == model.kernel and found.targets == 0
    ridge = kp.nystrom_ridge(X, X[:, 0], np.arange(20), KERNEL, 1e-3)
    found = kp.round_expansion(ridge, 2.0)
    assert found.targets == 1 and kp.features(X, found).shape == (40,)


def test_rounded_expansions_are_unbiased_and_of_the_stated_variance(rng):
    a = rng.standard_normal(200)
    a /= np.linalg.norm(a)
    s = 9.0
    draws = np.array([rounded(a[:, None], s, seed)[:, 0] for seed in range(4000)])
    variance = np.where(np.abs(a) >= 1 / s, 0.0, np.abs(a) / s - a**2)
    assert (np.abs(draws.mean(0) - a) <= 6 * np.sqrt(variance / 4000) + 1e-12).all()
    assert (draws.var(0).sum() / variance.sum()) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-13), (np.float32, 2e-5)])
def test_rounded_features_are_those_of_the_rounded_coefficients(dtype, tolerance, rng):
    points, new = (
        rng.standard_normal((500, 3)).astype(dtype),
        rng.standard_normal((130, 3)).astype(dtype),
    )
    f = kp.Expansion(
        points,
        rng.standard_normal((500, 4)).astype(dtype),
        np.ones(4),
        KERNEL,
        offset=np.arange(4.0),
    )
    all_rows = rounded(f.coef, 5.0, 8)
    expected = naive.gaussian(new, points, 2.0) @ all_rows + f.offset
    thin = kp.round_expansion(f, 5.0, 8)
    features = kp.features(new, thin)
    assert (
        features.dtype == dtype
        and np.abs(features - expected).max() < tolerance * np.abs(expected).max() * 10
    )
    assert np.array_equal(thin.points, points[all_rows.any(1)]) and len(thin.points) < 250


def test_rounded_expansions_that_lose_every_term_are_their_offset():
    f = kp.Expansion(np.zeros((3, 1)), np.zeros((3, 1)), np.ones(1), KERNEL, offset=np.array([7.0]))
    assert kp.features(np.ones((2, 1)), kp.round_expansion(f, 1.0)).tolist() == [[7.0], [7.0]]


def test_rounding_serves_kernel_machines_as_well(rng):
    # any coefficients, any points, an offset: the decision values of a trained machine
    points, alpha = rng.standard_normal((4000, 2)), np.sign(rng.standard_normal(4000)) * 0.1
    machine = kp.Expansion(points, alpha[:, None], np.ones(1), KERNEL, offset=np.array([-0.5]))
    exact = kp.features(points[:50], machine)
    found = [
        kp.features(points[:50], kp.round_expansion(machine, 20.0, seed)) for seed in range(60)
    ]
    spread = np.linalg.norm(alpha) * np.sqrt(np.sqrt(4000) * 0.9 / 20)
    assert np.abs(np.mean(found, 0) - exact).max() < 6 * spread / np.sqrt(60)


def test_scale_and_triviality_are_those_of_theorem_5():
    assert ams2001.rounding_scale(1000, 0.5, 0.6, 5.0) == pytest.approx(
        2 * 0.5 * np.sqrt(1000) / (0.6 * 5.0)
    )
    f = np.array([[-100.0, 1.0], [10.0, 30.0]])
    assert ams2001.is_trivial(f, 1000, 5.0).tolist() == (f <= 5 * np.sqrt(np.log(1000))).tolist()


@pytest.mark.parametrize(
    "n, d, s", [(1, 1, 1), (3, 2, 5), (513, 70, 33), (40, 1100, 64), (5, 3, 129)]
)
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_projection_is_the_product_with_its_signs(n, d, s, dtype, tolerance, rng):
    points = rng.standard_normal((n, d)).astype(dtype)
    signs = kp.rademacher_projection(np.eye(d), s, 3) * np.sqrt(s)
    assert (
        np.array_equal(np.abs(signs.round()), np.ones((d, s)))
        and np.abs(signs - signs.round()).max() < 1e-12
    )
    projected = kp.rademacher_projection(points, s, 3)
    assert projected.dtype == dtype
    assert (
        np.abs(projected - points.astype(float) @ signs.round() / np.sqrt(s)).max()
        < tolerance * np.sqrt(d) * 5
    )
    assert np.array_equal(kp.rademacher_projection(points[n // 2 :], s, 3), projected[n // 2 :])


def test_signs_of_the_projection_are_fair_and_independent():
    signs = kp.rademacher_projection(np.eye(400), 256, 1) * 16
    assert stats.binomtest(int((signs > 0).sum()), signs.size, 0.5).pvalue > CHANCE
    for products in (
        signs[:-1] * signs[1:],
        signs[:, :-1] * signs[:, 1:],
        signs[:, :128] * signs[:, 128:],
        signs * kp.rademacher_projection(np.eye(400), 256, 2) * 16,
    ):
        assert stats.binomtest(int((products > 0).sum()), products.size, 0.5).pvalue > CHANCE
    # columns do not depend on how many there are
    assert np.array_equal(kp.rademacher_projection(np.eye(400), 64, 1) * 8, signs[:, :64])


def test_kernels_of_projected_points_are_near_those_of_the_points(rng):
    points = rng.standard_normal((60, 3000)) / np.sqrt(3000)
    projected = kp.rademacher_projection(points, 2000, 0)
    for kernel in (kp.gaussian(1.0), kp.polynomial(3, 1.0, 1.0), kp.laplacian(1.0)):
        exact = kp.gram(points, points, kernel)
        assert np.abs(kp.gram(projected, projected, kernel) - exact).max() < 0.25 * exact.max()


def test_projection_and_rounding_have_the_same_bits_for_any_number_of_threads(same_bits, rng):
    points = rng.standard_normal((1500, 600))
    same_bits(kp.rademacher_projection, points, 40, 2**63 + 1)
    same_bits(kp.round_expansion, kp.Expansion(points, points, np.ones(600), KERNEL), 3.0, 1)


def documents(n, terms, rng):
    """Counts of terms by a Zipf law, in rows of length 1."""
    chances = 1.0 / np.arange(1, terms + 1)
    columns = rng.choice(terms, size=(n, 60), p=chances / chances.sum())
    rows = np.repeat(np.arange(n), 60)
    counts = sparse.csr_matrix((np.ones(rows.size), (rows, columns.ravel())), (n, terms))
    return sparse.diags(1.0 / np.sqrt(counts.multiply(counts).sum(1).A1)) @ counts


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_points_are_projected_like_dense_ones(dtype, rng):
    text = documents(200, 3000, rng).tocsr().astype(dtype)
    for s in (1, 3, 100, 700):  # 700: two steps of coordinates
        found = kp.rademacher_projection(text, s, 3)
        expected = kp.rademacher_projection(text.toarray(), s, 3)
        assert found.dtype == np.float64
        assert np.abs(found - expected).max() < 40 * np.finfo(dtype).eps
        for other in (text.tocsc(), text.tocoo(), sparse.csr_array(text)):
            same = kp.rademacher_projection(other, s, 3)
            assert np.abs(same - found).max() < 40 * np.finfo(dtype).eps
    distances = pdist(kp.rademacher_projection(text, 4000))
    assert np.abs(distances / pdist(text.toarray()) - 1.0).max() < 0.1


def test_what_a_projection_of_sparse_points_refuses():
    wrong = sparse.csr_matrix(np.array([[1.0, np.nan], [0.0, 2.0]]))
    with pytest.raises(ValueError, match="^rademacher_projection: X must be finite"):
        kp.rademacher_projection(wrong, 3)
    with pytest.raises(ValueError, match="^rademacher_projection: X.data must .* real numbers"):
        kp.rademacher_projection(1j * sparse.eye(3).tocsr(), 3)
    with pytest.raises(ValueError, match="^shadow_select: X must .* rademacher_projection"):
        kp.shadow_select(sparse.eye(9).tocsr(), 1.0)


def test_sparse_points_without_entries_were_refused():
    for dtype in (np.float64, np.float32):
        found = kp.rademacher_projection(sparse.csr_matrix((3, 2), dtype=dtype), 5)
        assert found.dtype == np.float64 and np.array_equal(found, np.zeros((3, 5)))


def test_long_sparse_rows_of_float32_lost_a_digit_against_dense_ones():
    dense = np.full((2, 200_000), 0.1, np.float32)
    dense[1, 1:] = 0.0
    exact = kp.rademacher_projection(dense.astype(np.float64), 8)
    found = kp.rademacher_projection(sparse.csr_matrix(dense), 8)  # its error was 3e-6
    assert np.abs(found - exact).max() < 1e-12 * np.abs(exact).max()


def test_sparse_points_without_rows_are_refused_by_name():
    empty = sparse.csr_matrix((0, 5))
    with pytest.raises(ValueError, match="^rademacher_projection: X must have at least one row"):
        kp.rademacher_projection(empty, 3)


def random_kernel_matrices(X, kernel, s, bound, coef, seed):
    n = len(X)
    sampled, quantized, rounded = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    for i in range(n):
        rounded[i] = coef[i] * ams2001.randomized_kernel_round(
            X[0], X[i], kernel, coef[i], s, seed, i
        )
        for j in range(i, n):
            draw = i * n + j
            sampled[i, j] = sampled[j, i] = ams2001.randomized_kernel_sample(
                X[i], X[j], kernel, s, seed, draw
            )
            quantized[i, j] = quantized[j, i] = ams2001.randomized_kernel_quantize(
                X[i], X[j], kernel, bound, seed, draw
            )
    return sampled, quantized, rounded


def test_random_kernels_have_the_law_of_the_matrix_forms(rng):
    points, coef, s = X[:8], rng.standard_normal(8), 3.0
    coef /= np.linalg.norm(coef)
    f = kp.Expansion(points, coef[:, None], np.ones(1), KERNEL)
    count = 1500
    ours = [random_kernel_matrices(points, KERNEL, s, 1.0, coef, seed) for seed in range(count)]
    forms = [
        (
            kp.dense(kp.sample_gram(points, KERNEL, s, seed)),
            kp.dense(kp.quantize_gram(points, KERNEL, seed)),
            kp.features(points[:1], kp.round_expansion(f, s, seed))[0, 0],
        )
        for seed in range(count)
    ]
    for which in range(2):
        mine, theirs = (np.array([one[which] for one in draws]) for draws in (ours, forms))
        assert {*np.unique(mine.round(9))} == {*np.unique(theirs.round(9))}  # the same values ...
        same = [
            stats.fisher_exact(
                [[(m > 0).sum(), (m <= 0).sum()], [(t > 0).sum(), (t <= 0).sum()]]
            ).pvalue
            for m, t in zip(mine.reshape(count, -1).T, theirs.reshape(count, -1).T)
        ]
        assert min(same) > CHANCE  # ... with the same frequencies
        together = [((m[:, 0, 1] > 0) & (m[:, 0, 2] > 0)).sum() for m in (mine, theirs)]
        assert (
            stats.fisher_exact(
                [[together[0], count - together[0]], [together[1], count - together[1]]]
            ).pvalue
            > CHANCE
        )
    # so that atoms meet
    sums, features = (np.round([np.sum(one[2]) for one in draws], 9) for draws in (ours, forms))
    assert stats.ks_2samp(sums, features, method="asymp").pvalue > CHANCE
    exact = naive.gaussian(points, points, 2.0)[0] @ coef
    assert np.mean([one[2].sum() for one in ours]) == pytest.approx(
        exact, abs=6 / np.sqrt(s * count)
    )


@pytest.mark.parametrize("s", [1e17, 1e18, 1e19, 1e20, 1e300])
def test_gaps_that_overflow_ended_the_process_or_left_the_matrix(s):
    points = np.random.default_rng(0).standard_normal((50, 2))
    for sketch in (kp.sample_gram, kp.sample_quantize_gram):
        A = sketch(points, KERNEL, s, 0)
        assert A.indices.size == A.data.size == A.indptr[-1] and A.indices.max(initial=0) < 50
