# SPDX-License-Identifier: BSD-3-Clause
"""Both sides of every constant at which the code changes its way: one below, at it, one above, and inside the next
block."""

import functools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.linalg

import kpcasketch as kp
from kpcasketch_tests import inner, naive

KERNEL = kp.gaussian(1.5)


def around(limit, block=128):
    return [limit - 1, limit, limit + 1, limit + block // 2]


def exact_product(X, Y, V):
    return naive.gaussian(X, Y, 1.5) @ V


@pytest.mark.parametrize("n", [*around(128), *around(256)])
def test_tiles_of_128_rows_and_columns(n, rng):
    X, Y = rng.standard_normal((n, 3)), rng.standard_normal((133, 3))
    for rows, columns in ((X, Y), (Y, X), (X, X)):
        assert (
            np.abs(kp.gram(rows, columns, KERNEL) - naive.gaussian(rows, columns, 1.5)).max()
            < 1e-14
        )
        V = rng.standard_normal((len(columns), 5))
        assert (
            np.abs(kp.gram_matmat(rows, columns, V, KERNEL) - exact_product(rows, columns, V)).max()
            < 1e-12
        )


@pytest.mark.parametrize("n", [*around(512), *around(1024)])
def test_runs_of_512_columns_of_dense_matrices(n, rng):
    A = rng.standard_normal((n, n))
    A += A.T
    # up to 4 columns by long dot products, then panels of two registers
    for p in (1, 4, 5, 16, 17):
        V = rng.standard_normal((n, p))
        assert np.abs(kp.matmat(A, V) - A @ V).max() < 1e-11
        single = kp.matmat(A.astype(np.float32), V)
        assert np.abs(single - A @ V).max() < 1e-2


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33])
def test_numbers_of_vectors_in_every_product(p, rng):
    X = rng.standard_normal((140, 2))
    V = rng.standard_normal((140, p))
    F = rng.standard_normal((140, p))
    sketch, bits = kp.sample_gram(X, KERNEL, 2.0, 0), kp.quantize_gram(X, KERNEL, 0)
    for A in (
        kp.Implicit(X, KERNEL),
        sketch,
        bits,
        kp.LowRank(F),
        kp.center(kp.gram(X, X, KERNEL)),
    ):
        assert np.abs(kp.matmat(A, V) - kp.dense(A) @ V).max() < 1e-11


@pytest.mark.parametrize("d", [14, 15, 16, 17, 31, 33])
@pytest.mark.parametrize("steepness", [15.0, 15.9, 16.1, 40.0])
def test_distances_expanded_or_not(d, steepness, rng):
    X = rng.standard_normal((200, d))
    norms = 2 * ((X - X.mean(0)) ** 2).sum(1).max()
    sigma = float(np.sqrt(0.5 * norms / steepness))
    assert np.abs(kp.gram(X, X, kp.gaussian(sigma)) - naive.gaussian(X, X, sigma)).max() < 1e-13


@pytest.mark.parametrize("blocks", [63, 64, 65])
def test_64_segments_of_columns_and_64_partial_sums_of_rows(blocks, rng):
    for n in (blocks * 128 - 1, blocks * 128, blocks * 128 + 1):
        Y, V = rng.standard_normal((n, 1)), rng.standard_normal((n, 2))
        for few in (1, 128, 129):
            assert (
                np.abs(kp.gram_matmat(Y[:few], Y, V, KERNEL) - exact_product(Y[:few], Y, V)).max()
                < 1e-10
            )
        assert np.abs(kp.matmat(kp.LowRank(Y), V) - Y @ (Y.T @ V)).max() < 1e-9


@pytest.mark.bounds
@pytest.mark.parametrize("n", [1, 2, 62, 63, 64, 65, 127, 129])
def test_64_runs_of_rows_of_samples(n, rng):
    X = rng.standard_normal((n, 2))
    assert (
        np.abs(kp.dense(kp.sample_gram(X, KERNEL, 1.0, 0)) - naive.gaussian(X, X, 1.5)).max()
        < 1e-14
    )
    drawn = kp.dense(kp.sample_gram(X, KERNEL, 2.0, 0))
    assert np.array_equal(drawn, drawn.T)
    assert (
        np.abs(drawn[drawn != 0] - 2 * naive.gaussian(X, X, 1.5)[drawn != 0]).max(initial=0) < 1e-13
    )


@pytest.mark.bounds
@pytest.mark.parametrize("n", [31, 32, 33, 2047, 2048, 2049, 4130])
def test_words_of_32_rows_and_blocks_of_2048_of_one_bit_matrices(n, rng):
    words = rng.integers(0, 2**32, ((n + 31) // 32, n), dtype=np.uint32)
    signs = (
        np.unpackbits(words.T.copy().view(np.uint8), axis=1, bitorder="little")[:, :n].T.astype(
            float
        )
        * 2
        - 1
    )
    for p in (1, 8, 9):
        V = rng.standard_normal((n, p))
        got = kp.matmat(kp.Bits(words, 0.5, n), V)
        # column j of the product takes words[c, i] as rows of column i; the matrix given need not be symmetric
        assert np.abs(got - 0.5 * signs.T @ V).max() < 1e-10


@pytest.mark.bounds
@pytest.mark.parametrize("n", [1, 128, 129, 1920, 1921, 2048, 2049])
def test_symmetric_products_of_up_to_15_runs_of_rows(n, rng):
    X = rng.standard_normal((n, 2))
    K = naive.gaussian(X, X, 1.5)
    for p in (1, 5):
        V = rng.standard_normal((n, p))
        assert np.abs(kp.gram_matmat(X, X, V, KERNEL) - K @ V).max() < 1e-10
        for dtype, error in ((np.float64, 1e-10), (np.float32, 1e-2)):
            Y = X.astype(dtype)
            product = kp.gram_matmat(Y[:5], Y, V.astype(dtype), KERNEL)
            assert np.abs(product - K[:5] @ V).max() < error


@pytest.mark.bounds
@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 129, 136, 255, 256, 257])
def test_gram_matrices_copy_whole_tiles_in_squares_of_8(n, rng):
    X = rng.standard_normal((n, 3)) + 100.0
    K = kp.gram(X, X, KERNEL)
    assert np.array_equal(K, K.T)
    assert np.abs(K - naive.gaussian(X, X, 1.5)).max() < 1e-12


@pytest.mark.bounds
@pytest.mark.slow
@pytest.mark.parametrize("n", [21845, 21846])
def test_symmetric_products_up_to_the_limit_of_their_partial_sums(n, rng):
    # 33 vectors take panels of 48 columns (float64, AVX-512; others switch elsewhere): 2^20 / 48 = 21845.3
    X, V = rng.standard_normal((n, 1)), rng.standard_normal((n, 33))
    product = kp.gram_matmat(X, X, V, KERNEL)
    rows = np.r_[0, 1, n // 2, n - 1]
    assert np.abs(product[rows] - exact_product(X[rows], X, V)).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("n", [8191, 8192, 8193, 8250])
def test_kernel_pca_with_and_without_the_gram_matrix(n, rng):
    # copies of 60 points: the spectrum is that of a 60 x 60 matrix weighted by the numbers of copies
    places, sites = rng.integers(0, 60, n), rng.standard_normal((60, 2))
    weights = np.sqrt(np.bincount(places, minlength=60))
    exact = np.linalg.eigvalsh(weights[:, None] * naive.gaussian(sites, sites, 1.5) * weights)[
        ::-1
    ][:3]
    assert np.allclose(
        kp.kpca(sites[places], KERNEL, 3, 0, centered=False).values, exact, rtol=1e-11
    )


@pytest.mark.parametrize("n", [255, 256, 257, 300, 511, 512, 513])
def test_eigenproblems_with_and_without_lapack_and_norms_solved_directly_or_not(n, rng):
    A = rng.standard_normal((n, n))
    A += A.T
    values = np.linalg.eigvalsh(A)[::-1]
    assert np.abs(inner(kp._small_eigen)(A)[0] - values).max() < 1e-11
    assert np.abs(kp.block_lanczos(A, n, 0).values - values).max() < 1e-10
    assert kp.spectral_norm(A, 0, tol=1e-9) == pytest.approx(np.abs(values).max(), rel=1e-9)


@pytest.mark.parametrize("n", [272, 273, 400, 769, 784, 785])
def test_norms_whose_basis_fills_the_space_or_its_768_columns(n):
    # the evenly spread values of a chain: no gap, and a tolerance that no basis of 768 columns reaches
    A = scipy.linalg.toeplitz([2.0, -1.0] + [0.0] * (n - 2))
    exact = 2 - 2 * np.cos(n * np.pi / (n + 1))
    for tol in (1e-2, 1e-4):
        assert exact * (1 - tol) <= kp.spectral_norm(A, 0, tol=tol) <= exact * (1 + 1e-13)


@pytest.mark.parametrize("n", [511, 512, 513, 540])
def test_traces_from_all_eigenvalues_or_by_probes(n, rng):
    X = rng.standard_normal((n, 2))
    K = naive.gaussian(X, X, 1.5)
    values = np.linalg.eigvalsh(K)
    for found, weights, steps in (
        (kp.effective_dimension(K, 0.5, 0), values / (values + 0.5), 1e-3),
    ):
        # 32 probes w, uniform on the sphere: the variance of n w^T M w is below twice the squares about the mean
        # eigenvalue; six deviations, and what 64 steps leave
        deviation = np.sqrt(2 * ((weights - weights.mean()) ** 2).sum() / 32)
        assert abs(found - weights.sum()) <= (
            1e-9 * weights.sum() if n <= 512 else 6 * deviation + steps * weights.sum()
        )


@pytest.mark.parametrize("n", [8191, 8192, 8193, 8256])
def test_slabs_of_8192_rows(n, rng):
    X, rows = rng.standard_normal((n, 1)), np.arange(0, 40)
    C, A = naive.gaussian(X, X[rows], 1.5), naive.gaussian(X[rows], X[rows], 1.5) + 0.1 * np.eye(40)
    expected = np.clip((1 - np.einsum("ij,ij->i", C, np.linalg.solve(A, C.T).T)) / 0.1, 0, 1)
    assert (
        np.abs(kp.approximate_ridge_leverage_scores(X, rows, KERNEL, 0.1) - expected).max() < 1e-11
    )
    F, y = rng.standard_normal((n, 3)), rng.standard_normal(n)
    assert kp.factor_ridge(F, y, 0.5) == pytest.approx(
        np.linalg.solve(F.T @ F + 0.5 * np.eye(3), F.T @ y), rel=1e-9
    )


@pytest.mark.parametrize("s", [63, 64, 65, 127, 128, 129, 200, 255, 256, 257])
def test_pivots_in_blocks_and_factors_deeper_than_256(s, rng):
    X = rng.standard_normal((400, 3))
    kernel, K = kp.laplacian(1.0), naive.laplacian(X, X, 1.0)
    found = kp.rpcholesky(X, kernel, s, 0)
    assert np.unique(found.indices).size == s
    F = kp.nystrom(X, found, kernel)
    assert np.abs(F @ F.T - naive.nystrom(K, found.indices)).max() < 1e-11
    assert np.abs(np.diag(K - F @ F.T) - naive.unexplained(K, found.indices)).max() < 1e-11


@pytest.mark.parametrize("n", [2047, 2048, 2049, 2304])
@pytest.mark.parametrize("r", [127, 128, 129])
def test_moments_in_runs_of_2048_rows_and_tiles_of_128_columns(n, r, rng):
    F = rng.standard_normal((n, r))
    for other in (F, F[:, :5].copy()):
        assert np.abs(kp._column_products(F, other) - F.T @ other).max() < 1e-10


MANY = np.broadcast_to(np.ones((1, 1)), (400_000, 1))


@pytest.mark.parametrize(
    "function, arguments, name",
    [
        (kp.fourier_features_map, (KERNEL, 2**31 - 1, 2**31 - 1), "m"),
        (kp.orthogonal_features_map, (KERNEL, 2**20, 2**31 - 1), "m"),
        (kp.quasi_features_map, (KERNEL, 2**20, 2**31 - 1), "m"),
        (kp.fastfood_features_map, (KERNEL, 2, 2**31 - 1), "m"),
        (kp.fd_start, (2**31 - 1, 2**31 - 1), "ell"),
        (kp.rademacher_projection, (np.ones((100, 2)), 2**31 - 1), "s"),
        (kp.uniform_landmarks, (10**13, 5), "n"),
        (kp.gram, (MANY, MANY, KERNEL), "Y"),
        (
            kp.features,
            (np.ones((1000, 2)), kp.fourier_features_map(KERNEL, 2, 2**31 - 1, 0, stored=False)),
            "X",
        ),
        (
            kp.skpca_start,
            (kp.fourier_features_map(KERNEL, 2, 2**31 - 1, 0, stored=False), 2**20),
            "ell",
        ),
        (
            kp.rnca_start,
            (kp.fourier_features_map(KERNEL, 2, 2**31 - 1, 0, stored=False),),
            "feature_map.m",
        ),
        (kp.dense, (kp.Implicit(MANY, KERNEL),), "A"),
        (kp.block_lanczos, (kp.Implicit(MANY, KERNEL), 200_000), "k"),
        (kp.orthogonal_iteration, (kp.Implicit(MANY, KERNEL), 10_000), "k"),
        (kp.kpca, (MANY, KERNEL, 10_000), "k"),
        (kp.sample_gram, (MANY, KERNEL, 2.0), "s"),
        (kp.sample_quantize_gram, (MANY, KERNEL, 2.0), "s"),
        (kp.ridge_leverage_scores, (MANY, KERNEL, 1.0), "X"),
        (
            functools.update_wrapper(functools.partial(kp.rls_nystrom, delta=0.1), kp.rls_nystrom),
            (MANY, KERNEL, 1.0),
            "X",
        ),
        (kp.rpcholesky, (MANY, KERNEL, 10_000), "s"),
        (
            functools.update_wrapper(functools.partial(kp.rpcholesky, greedy=True), kp.rpcholesky),
            (MANY, KERNEL, 10_000),
            "s",
        ),
        (kp.nystrom_map, (MANY, MANY, KERNEL), "landmarks"),
        (kp.nystrom, (MANY, np.arange(10_000), KERNEL), "landmarks"),
        (
            kp.features,
            (MANY, kp.NystromMap(np.ones((10_000, 1)), np.ones((10_000, 10_000)), 10_000, KERNEL)),
            "X",
        ),
        (
            kp.features,
            (
                MANY,
                kp.Expansion(MANY[:2], np.ones((2, 10_000)), np.ones(10_000), KERNEL),
            ),
            "X",
        ),
        (kp.rskpca, (MANY, KERNEL, 2), "centers"),
        (kp.laplacian_eigenmap, (MANY, KERNEL, 2), "centers"),
        (kp.diffusion_map, (MANY, KERNEL, 2), "centers"),
        (kp.normalized_cut, (MANY, KERNEL, 2), "centers"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_no_memory_holds_was_refused_late_or_without_a_name(
    function, arguments, name, monkeypatch
):
    # "array is too big", or frequencies that were drawn for 37 s first
    monkeypatch.setattr(kp, "_PHYSICAL_MEMORY", 24 * 2**30)
    with pytest.raises(
        ValueError,
        match=rf"{function.__name__}: {name} must be smaller: .* would need .* of memory, and "
        rf"this machine has 25.8 GB",
    ):
        function(*arguments)


def test_signs_of_a_wide_projection_took_512_times_the_memory_of_the_result():
    # one point of 512 coordinates and 10^7 dimensions: a MemoryError
    rows = np.random.default_rng(0).standard_normal((3, 70))
    narrow = kp.rademacher_projection(rows, 64)
    tracemalloc.start()
    wide = kp.rademacher_projection(rows, 300_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * wide.nbytes  # 168 MB were taken
    assert np.allclose(wide[:, :64] * math.sqrt(300_000), narrow * 8.0)
    assert np.allclose(wide @ wide.T, rows @ rows.T, atol=0.5)  # 6 standard errors


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", [0, 2**21, 2**22 - 1])
def test_one_bad_entry_of_a_large_array_is_found(dtype, place):
    X = np.zeros((2**11, 2**11), dtype)
    assert kp._all_below(X) and kp._all_below(X, 1e17)
    for bad, finite in ((np.nan, False), (np.inf, False), (-np.inf, False), (-1e18, True)):
        X.ravel()[place] = bad
        assert not kp._all_below(X, 1e17) and kp._all_below(X) == finite
    with pytest.raises(ValueError, match=f"Z must be finite .* row {place // 2**11}, column"):
        kp.frequent_directions(np.where(X == 0, X, np.nan), 2)
