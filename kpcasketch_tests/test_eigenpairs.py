# SPDX-License-Identifier: BSD-3-Clause
"""Eigenpairs against LAPACK, on matrices known on paper, and where they are nasty."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse.linalg
from scipy import stats

import kpcasketch as kp
from kpcasketch_tests import inner, naive
from kpcasketch_tests.tables import SOLVERS

X = np.random.default_rng(0).standard_normal((400, 3))
K = naive.gaussian(X, X, 2.0)


def linear_operator(matmat, n):
    return scipy.sparse.linalg.LinearOperator((n, n), matmat, matmat=matmat, dtype=float)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("k", [1, 5])
def test_eigenpairs_are_those_of_lapack(solver, k):
    eigen = SOLVERS[solver](K, k, 0)
    values, vectors = naive.eigenpairs(K, k)
    assert np.abs(eigen.values - values).max() < 1e-10 * values[0]
    assert np.abs(eigen.vectors - vectors).max() < 1e-5
    assert np.abs(eigen.vectors.T @ eigen.vectors - np.eye(k)).max() < 1e-12
    assert (np.diff(eigen.values) <= 0).all()
    assert eigen.residual.shape == (k,) and eigen.residual.max() <= 1e-8
    true = np.linalg.norm(K @ eigen.vectors - eigen.vectors * eigen.values, axis=0) / values[0]
    assert np.abs(true - eigen.residual).max() < 1e-11


def test_ten_leading_eigenvalues_are_right_to_1e_8_each():
    eigen = kp.block_lanczos(K, 10, 0)
    assert np.abs(eigen.values / naive.eigenpairs(K, 10)[0] - 1).max() < 1e-8


def test_lanczos_restarts_keep_converging():
    # evenly spread eigenvalues: far more steps than the basis has room for
    n = 600
    A = scipy.linalg.toeplitz([2.0, -1.0] + [0.0] * (n - 2))
    by_products = linear_operator(lambda V: A @ V, n)
    eigen = kp.block_lanczos(by_products, 3, 0, tol=1e-6, max_iterations=3000)
    exact = 2 - 2 * np.cos(np.arange(n, n - 3, -1) * np.pi / (n + 1))
    assert eigen.residual.max() <= 1e-6 and eigen.iterations > 6
    assert np.abs(eigen.values - exact).max() < 1e-6


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_largest_eigenvalues_win_over_the_largest_in_size(solver, rng):
    Q = np.linalg.qr(rng.standard_normal((300, 300)))[0]
    A = (Q * np.concatenate([[-9.0, -8.0], [5.0, 3.0, 2.0], np.linspace(-1, 1, 295)])) @ Q.T
    A = (A + A.T) / 2
    assert np.abs(SOLVERS[solver](A, 3, 0).values - [5, 3, 2]).max() < 1e-7


@pytest.mark.parametrize("solver", SOLVERS)
def test_negative_definite_and_zero_matrices_are_solved(solver):
    for A in (-np.eye(200), np.zeros((200, 200)), -np.diag(np.arange(1.0, 201.0))):
        eigen = SOLVERS[solver](A, 2, 0)
        assert np.abs(eigen.values - naive.eigenpairs(A, 2)[0]).max() < 1e-6
        assert np.isfinite(eigen.vectors).all()


@pytest.mark.parametrize("solver", SOLVERS)
def test_rank_one_matrices_give_orthonormal_vectors(solver, rng):
    a = rng.standard_normal(300)
    eigen = SOLVERS[solver](np.outer(a, a), 4, 0)
    assert eigen.values[0] == pytest.approx(a @ a, rel=1e-12) and np.abs(
        eigen.values[1:]
    ).max() < 1e-10 * (a @ a)
    assert np.abs(eigen.vectors.T @ eigen.vectors - np.eye(4)).max() < 1e-10


@pytest.mark.parametrize("n", [1, 2, 5, 129, 130, 131, 160])
def test_every_small_size_and_every_k_is_solved(n):
    A = scipy.linalg.hilbert(n)
    for k in {1, (n + 1) // 2, n}:
        eigen = kp.block_lanczos(A, k, 0)
        assert np.abs(eigen.values - naive.eigenpairs(A, k)[0]).max() < 1e-9
    assert kp.orthogonal_iteration(A, n, 0).values[0] == pytest.approx(
        np.linalg.norm(A, 2), rel=1e-10
    )


def test_small_symmetric_matrices_are_solved_without_lapack_as_well_as_with_it(rng):
    blocks = [rng.standard_normal((n, n)) for n in (1, 2, 3, 16, 128, 512, 513)]
    matrices = [B + B.T for B in blocks] + [
        np.zeros((5, 5)),
        np.diag(np.r_[np.ones(30), -np.ones(30)]),
        np.outer(blocks[3][0], blocks[3][0]),
        1e-200 * (blocks[3] + blocks[3].T),
        1e200 * (blocks[3] + blocks[3].T),
    ]
    for A in matrices:
        values, vectors = inner(kp._small_eigen)(A)
        scale = max(np.abs(A).max(), 1e-300)
        assert (
            np.abs(values - np.linalg.eigvalsh(A / scale)[::-1] * scale).max()
            <= 1e-13 * len(A) * scale
        )
        assert np.abs(A / scale @ vectors - vectors * values / scale).max() <= 1e-13 * len(A)
        assert np.abs(vectors.T @ vectors - np.eye(len(A))).max() < 1e-13
        assert np.all(np.diff(np.abs(inner(kp._small_eigen)(A, True)[0])) <= 1e-12 * scale)


def test_bits_that_are_not_symmetric_were_taken_for_another_matrix():
    # block_lanczos gave eigenvalues of neither half
    X = np.random.default_rng(0).standard_normal((70, 2))
    A = kp.quantize_gram(X, kp.gaussian(1.0))
    assert abs(kp.block_lanczos(A, 2).values - np.linalg.eigvalsh(kp.dense(A))[:-3:-1]).max() < 1e-8
    wrong = A._replace(words=np.random.default_rng(1).integers(0, 2**32, A.words.shape, np.uint32))
    for B in (wrong, kp._Difference(wrong, A), kp.center(wrong)):
        for solve in (kp.block_lanczos, kp.orthogonal_iteration):
            with pytest.raises(ValueError, match="A must be symmetric"):
                solve(B, 2)
        with pytest.raises(ValueError, match="spectral_norm: A must be symmetric"):
            kp.spectral_norm(B)


def test_sparse_matrices_that_are_not_symmetric_are_refused():
    sketch = kp.sample_gram(np.linspace(0, 1, 300)[:, None], kp.gaussian(1.0), 3.0, 0)
    kp.block_lanczos(sketch, 1, 0)
    data = sketch.data.copy()
    data[
        np.flatnonzero(sketch.indices != np.repeat(np.arange(300), np.diff(sketch.indptr)))[0]
    ] *= 1.5
    for solver in SOLVERS.values():
        with pytest.raises(ValueError, match="A must be symmetric"):
            solver(scipy.sparse.csr_array((data, sketch.indices, sketch.indptr)), 1, 0)


def test_running_out_of_iterations_shows_in_the_residual():
    n = 1000
    A = scipy.linalg.toeplitz([2.0, -1.0] + [0.0] * (n - 2))
    for eigen in (
        kp.block_lanczos(linear_operator(lambda V: A @ V, n), 2, 0, tol=1e-12, max_iterations=3),
        kp.orthogonal_iteration(A, 2, 0, tol=1e-12, max_iterations=3),
    ):
        true = np.linalg.norm(A @ eigen.vectors - eigen.vectors * eigen.values, axis=0)
        assert eigen.iterations == 3 and eigen.residual.max() > 1e-6
        assert np.allclose(true, eigen.residual * np.abs(eigen.values).max(), rtol=0.2)


def test_repeated_eigenvalues_are_all_found():
    A = np.diag(np.repeat([3.0, 1.0, 0.5], [20, 100, 280]))
    eigen = kp.block_lanczos(A, 25, 0)  # more copies than the smallest block has vectors
    assert np.abs(eigen.values - np.repeat([3.0, 1.0], [20, 5])).max() < 1e-8


def test_orthogonal_iteration_converges_at_the_rate_of_the_spectral_gap():
    # AMS-C: the subspace error falls by lambda_{k+1} / lambda_k each step
    A = np.diag(np.concatenate([[1.0, 0.9], np.full(300, 0.6)]))
    truth, angles, steps = np.eye(302)[:, :2], [], np.arange(20, 45, 3)
    for count in steps:
        angles.append(
            scipy.linalg.subspace_angles(
                truth, kp.orthogonal_iteration(A, 2, 0, tol=0.0, max_iterations=count).vectors
            )[0]
        )
    slope = np.polyfit(steps, np.log(np.sin(angles)), 1)[0]
    assert slope == pytest.approx(np.log(0.6 / 0.9), rel=0.05)


def test_spectral_norm_is_the_eigenvalue_largest_in_size():
    A = K - np.eye(400) * 300
    # many eigenvalues near -300
    assert kp.spectral_norm(A, 0) == pytest.approx(np.linalg.norm(A, 2), rel=1e-2)
    assert kp.spectral_norm(A, 0, tol=1e-6) == pytest.approx(np.linalg.norm(A, 2), rel=1e-6)
    assert kp.spectral_norm(-K, 0, tol=1e-6) == pytest.approx(np.linalg.norm(K, 2), rel=1e-9)
    assert kp.spectral_norm(np.zeros((300, 300)), 0) == 0.0


def test_eigenpairs_have_the_same_bits_for_any_number_of_threads(same_bits):
    for solver in SOLVERS.values():
        same_bits(solver, K, 3, 2**63 + 1)


def test_float32_matrices_are_solved_to_their_precision():
    eigen = kp.block_lanczos(K.astype(np.float32), 5, 0)
    assert np.abs(eigen.values - naive.eigenpairs(K, 5)[0]).max() < 1e-5 * K.shape[0]
    assert eigen.residual.max() <= 16 * 1.2e-7


@pytest.mark.parametrize("k", [65, 95])
def test_restarts_of_larger_blocks_stay_inside_their_arrays(k):
    # the basis is then not full at its first restart, and rows past its end were read
    A = np.diag(np.linspace(1, 2, 900))
    eigen = kp.block_lanczos(A, k, 0, tol=1e-7, max_iterations=300)
    assert np.abs(eigen.values - np.linspace(2, 1, 900)[:k]).max() < 1e-6


def test_tiny_matrices_are_solved_as_well_as_others():
    eigen = kp.block_lanczos(K * 1e-200, 3, 0)  # squares of residuals underflowed
    assert np.allclose(eigen.values, naive.eigenpairs(K, 3)[0] * 1e-200, rtol=1e-9)


def test_orthogonal_iteration_leaves_a_mixture_of_opposite_eigenvalues():
    A = np.diag(np.concatenate([[3.0, -3.0], np.linspace(-1, 1, 100)]))
    assert kp.orthogonal_iteration(A, 1, 0).values[0] == pytest.approx(3.0, rel=1e-7)


@pytest.mark.parametrize("k", [1, 10, 17])
def test_lanczos_was_wrong_where_its_basis_fills_the_space(k):
    # n from 2 k + 8 b to 2 k + 9 b: orthogonal columns were asked for where there was no room, and orthogonality was
    # given up
    block = (k + 15) // 16 * 16
    for n in [
        *range(2 * k + 8 * block - 1, 2 * k + 9 * block + 3, 1 if k < 17 else 5),
        2 * k + 10 * block,
    ]:
        A = np.random.default_rng(n).standard_normal((n, n))
        A += A.T
        eigen, values = kp.block_lanczos(A, k, 0), np.linalg.eigvalsh(A)[::-1]
        assert np.abs(eigen.values - values[:k]).max() < 1e-8 * values[0]
        true = (
            np.linalg.norm(A @ eigen.vectors - eigen.vectors * eigen.values, axis=0)
            / np.abs(values).max()
        )
        assert np.abs(true - eigen.residual).max() < 1e-12 + 0.1 * true.max()


def test_residuals_are_those_of_the_vectors_returned_even_where_the_matrix_is_not_symmetric():
    A = np.diag(np.linspace(1, 2, 500))
    A[3, 490] = 1.0  # one entry, which a look at random places does not find
    eigen = kp.block_lanczos(A, 3, 0, tol=1e-8, max_iterations=20)
    true = (
        np.linalg.norm(A @ eigen.vectors - eigen.vectors * eigen.values, axis=0) / eigen.values[0]
    )
    assert np.abs(true / eigen.residual - 1).max() < 0.05


def test_a_direct_solution_was_nan_where_squares_of_entries_underflow():
    for size in (1e-155, 1e-170, 1e-300):
        A = np.full((5, 5), size)
        np.fill_diagonal(A, 1.0)
        eigen = kp.block_lanczos(A, 5, 0)
        assert np.abs(eigen.values - 1).max() < 1e-15 and eigen.residual.max() < 1e-15
    assert (
        kp.kpca(np.arange(40.0)[:, None], kp.gaussian(0.0375), 40, 0, centered=False).values > 0
    ).all()


@pytest.mark.parametrize("copies, k", [(10, 100), (65, 70), (200, 130), (64, 100)])
def test_eigenvalues_repeated_more_often_than_a_block_has_vectors_were_lost(copies, k):
    values = np.r_[np.full(copies, 3.0), np.full(100, 1.0 + 1e-9), np.linspace(0.5, 0, 1100)]
    eigen = kp.block_lanczos(np.diag(np.random.default_rng(0).permutation(values)), k, 0)
    assert np.abs(eigen.values - values[:k]).max() < 1e-8
    assert np.abs(eigen.vectors.T @ eigen.vectors - np.eye(k)).max() < 1e-12


def test_kernel_pca_of_repeated_distant_points_finds_every_one_of_them():
    points = np.repeat(np.arange(100.0) * 1e3, 10)[:, None]
    assert np.allclose(
        kp.kpca(points, kp.gaussian(1.0), 100, 0, centered=False).values, 10.0, rtol=1e-12
    )


@pytest.mark.parametrize(
    "spectrum, k, tol",
    [
        (np.r_[np.ones(70), np.linspace(0.999, 0, 730)], 80, 1e-8),
        (
            np.r_[
                np.full(66, 5.0), 5 - np.linspace(0, 1e-6, 30), 5 * np.exp(-np.linspace(0, 10, 700))
            ],
            100,
            1e-3,
        ),
        (np.r_[np.full(75, 3.0), np.full(60, 1 + 1e-9), np.linspace(0.5, 0, 700)], 80, 1e-10),
        (np.r_[np.full(66, 16.0), np.linspace(1, 0, 700)], 65, 1e-8),
        (np.r_[np.full(130, 3.0), np.full(60, 1 + 1e-9), np.linspace(0.5, 0, 700)], 129, 1e-8),
    ],
)
def test_a_copy_that_was_missed_does_not_count_as_converged(spectrum, k, tol):
    # the least residual of the past was compared with tol: 1000 iterations, or a result before them far above tol
    values = np.random.default_rng(0).permutation(spectrum)
    eigen = kp.block_lanczos(np.diag(values), k, 0, tol=tol, max_iterations=120)
    true = (
        np.linalg.norm(values[:, None] * eigen.vectors - eigen.vectors * eigen.values, axis=0)
        / values.max()
    )
    assert eigen.iterations < 120 and max(true.max(), eigen.residual.max()) <= tol
    assert np.abs(eigen.values - np.sort(values)[::-1][:k]).max() <= tol * values.max()


def test_a_tighter_tolerance_found_less_than_a_looser_one():
    n = 20_000
    values = np.full(n, 0.9)
    values[777] = 0.902  # a start block has a cosine of .03 with its vector
    A = scipy.sparse.csr_array((values, np.arange(n), np.arange(n + 1)), (n, n))
    for tol in (1.01e-4, 9.9e-5, 3e-5):
        assert kp.block_lanczos(A, 1, 0, tol=tol).values[0] == pytest.approx(0.902, abs=1e-9)


HIDDEN = np.random.default_rng(1).standard_normal(2000)
HIDDEN = 0.9 * np.eye(2000) + 0.1 * np.outer(HIDDEN, HIDDEN) / (HIDDEN @ HIDDEN)


def test_the_norm_stopped_at_a_wrong_eigenvalue_with_a_small_residual():
    # a start block has a cosine of .09 with the vector of the eigenvalue 1; all others are .9
    for seed in range(20):
        assert kp.spectral_norm(HIDDEN, seed, tol=0.03) == pytest.approx(1.0, rel=1e-12)
        assert kp.block_lanczos(HIDDEN, 1, seed, tol=1e-2).values[0] == pytest.approx(
            1.0, rel=1e-12
        )


@pytest.mark.parametrize(
    "spectrum",
    [
        np.r_[1.02, np.cos(np.linspace(0, np.pi, 899))],
        np.r_[1.0, -1.0 - 1e-3, np.linspace(-0.98, 0.98, 898)],
        np.r_[1.015, np.ones(899)],
        np.r_[-1.3, np.random.default_rng(0).uniform(-1, 1, 899)],
    ],
)
@pytest.mark.parametrize("tol", [0.1, 0.03, 0.01])
def test_the_norm_is_right_to_its_tolerance_without_any_gap(spectrum, tol):
    A = np.diag(np.random.default_rng(2).permutation(spectrum))
    for seed in range(5):
        assert (
            (1 - tol) * np.abs(spectrum).max()
            <= kp.spectral_norm(A, seed, tol=tol)
            <= np.abs(spectrum).max() * (1 + 1e-12)
        )


def test_the_cosine_that_a_start_block_is_trusted_to_have_is_a_quantile_of_its_law():
    for n, block, chance in ((300, 16, 1e-6), (5000, 16, 1e-6), (1000, 64, 1e-6), (400, 16, 0.1)):
        quantile = math.sqrt(stats.beta.ppf(chance, block / 2, (n - block) / 2))
        assert 0.5 * quantile < inner(kp._start_cosine)(n, block, chance) <= quantile * (1 + 1e-9)
    starts = [
        np.linalg.norm(
            np.linalg.qr(inner(kp._gaussian_matrix)(400, 16, np.uint64(kp._key(seed, 1))))[0][0]
        )
        for seed in range(400)
    ]
    assert stats.kstest(np.square(starts), stats.beta(8, 192).cdf).pvalue > 1e-8


def test_the_norm_of_a_difference_that_is_rounding_ran_through_all_iterations():
    points = np.random.default_rng(0).standard_normal((600, 3))
    kernel = kp.gaussian(1.0)
    assert (
        kp.spectral_error(
            kp.gram(points, points, kernel),
            kp.Implicit(points, kernel),
            0,
            tol=1e-6,
            max_iterations=10**9,
        )
        < 1e-12
    )


def test_orthogonal_iteration_of_a_difference_that_is_rounding_ran_through_all_iterations():
    points = np.random.default_rng(0).standard_normal((600, 3))
    kernel = kp.gaussian(1.0)
    D = kp._Difference(kp.gram(points, points, kernel), kp.Implicit(points, kernel))
    eigen = kp.orthogonal_iteration(D, 2, max_iterations=200)
    assert eigen.iterations < 10 and np.abs(eigen.values).max() < 1e-12
    assert (eigen.residual > 1).all()  # all of the values is rounding, and the residual says so


def test_eigenpairs_by_a_product_are_those_of_the_operator():
    A = np.random.default_rng(0).standard_normal((500, 500))
    A = A + A.T
    for seed in (0, 1, 2, 7, 2**63, 2**64 - 1):
        for n, k in ((500, 5), (100, 3), (5, 5), (1, 1)):
            B = kp.LowRank(A[:n, : n // 2 + 1].copy())
            ours, theirs = (
                kp.block_lanczos(linear_operator(lambda V: kp.matmat(B, V), n), k, seed),
                kp.block_lanczos(B, k, seed),
            )
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
    values = np.linalg.eigvalsh(A)[::-1]
    operator = scipy.sparse.linalg.aslinearoperator(A)
    assert np.allclose(kp.block_lanczos(operator, 3).values, values[:3])
    assert np.allclose(kp.orthogonal_iteration(operator, 3, tol=1e-6).values, values[:3])
    single = A.astype(np.float32)
    found = kp.block_lanczos(linear_operator(lambda V: single @ V.astype(np.float32), 500), 3)
    assert np.allclose(found.values, values[:3], rtol=1e-6) and found.residual.max() < 1e-5

    def careless(V):  # what is done to V does no harm
        W = A @ V
        V[:] = np.nan
        return W

    assert np.allclose(kp.block_lanczos(linear_operator(careless, 500), 3).values, values[:3])
    # without a function for blocks, SciPy multiplies vector by vector
    by_vectors = scipy.sparse.linalg.LinearOperator((500, 500), lambda v: A @ v, dtype=float)
    assert np.allclose(kp.block_lanczos(by_vectors, 3).values, values[:3])


@pytest.mark.parametrize(
    "product, n, k, words",
    [
        (lambda V: np.triu(np.ones((300, 300))) @ V, 300, 3, "A must be symmetric"),
        (lambda V: V[:-1], 300, 3, "A.matmat.V. must have V's shape"),
        (lambda V: V * np.nan, 300, 3, "A.matmat.V. must be finite"),
        (lambda V: "x", 300, 3, "A.matmat.V. must be a 2-D array"),
        (lambda V: V + 1j, 300, 3, "real numbers"),
        (lambda V: V, 0, 1, "A must be square, with at least one row, got shape .0, 0."),
        (lambda V: V, 9, 10, "k must be an int from 1 to 9, got 10"),
    ],
)
def test_products_that_are_none_of_a_symmetric_matrix_are_refused(product, n, k, words):
    with pytest.raises(ValueError, match=f"^block_lanczos: .*{words}"):
        kp.block_lanczos(linear_operator(product, n), k)


def test_what_is_no_operator_is_refused():
    tall = scipy.sparse.linalg.aslinearoperator(np.ones((4, 3)))
    with pytest.raises(ValueError, match="^block_lanczos: A must be square, .* got shape .4, 3."):
        kp.block_lanczos(tall, 1)
    with pytest.raises(ValueError, match="^block_lanczos: A must be square, .* got shape .4, 3."):
        kp.block_lanczos(scipy.sparse.csr_array((4, 3)), 1)
    for wrong in (5, lambda V: V):
        with pytest.raises(ValueError, match="must be a square array, a sparse array or LinearO"):
            kp.block_lanczos(wrong, 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "n, k",
    [(1, 1), (2, 1), (3, 2), (128, 3), (129, 16), (129, 17), (300, 5), (400, 50), (300, 300)],
)
def test_each_way_to_solve_an_array_finds_its_pairs(n, k, dtype):
    # sizes around 128 and k = n / 8, where the way changes
    points = np.random.default_rng(n).standard_normal((n, 4))
    A = naive.gaussian(points, points, 2.0).astype(dtype)
    eigen = kp.block_lanczos(A, k)
    precision = np.finfo(dtype).eps
    exact = np.linalg.eigvalsh(A.astype(float))[::-1][:k]
    assert np.abs(eigen.values - exact).max() <= 16 * max(precision, 1e-14) * exact[0]
    assert np.abs(eigen.vectors.T @ eigen.vectors - np.eye(k)).max() < 1e-11
    true = np.linalg.norm(A @ eigen.vectors - eigen.vectors * eigen.values, axis=0)
    assert true.max() <= 32 * max(precision, 1e-8) * exact[0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_copies_that_a_krylov_space_of_one_vector_misses_are_found(dtype):
    # one copy of each repeated eigenvalue is in the space; a second search must show the others
    decay = np.exp(-np.arange(600) / 4.0)
    for spectrum in (
        np.repeat(decay[:200], 3),
        np.r_[np.ones(2), decay[1:]],
        np.r_[np.full(5, 2.0), np.full(400, 1.0)],
        np.ones(300),
        np.r_[np.full(3, 1.0), np.zeros(300)],
    ):
        for k in (2, 5, 10):
            A = np.diag(np.random.default_rng(k).permutation(spectrum)).astype(dtype)
            eigen = kp.block_lanczos(A, k)
            assert np.abs(eigen.values - np.sort(spectrum)[::-1][:k]).max() < 1e-6
            assert np.abs(eigen.vectors.T @ eigen.vectors - np.eye(k)).max() < 1e-11


def test_bisection_did_not_find_eigenvalues_that_are_nearly_all_alike():
    # the centered matrix of points that are far apart: LAPACK's bisection gave up
    for n in (40, 96, 150):
        for k in (1, 2, 5):
            assert np.allclose(kp.block_lanczos(np.eye(n) - 1.0 / n, k).values, 1.0, atol=1e-13)
            far = kp.kpca(1e3 * np.arange(n)[:, None], kp.gaussian(1.0), k, centered=True)
            assert np.allclose(far.values, 1.0, atol=1e-13)


def test_rows_of_a_basis_were_not_orthogonal_where_products_are_rounding_errors():
    for rank in (1, 2, 16):
        F = np.random.default_rng(rank).standard_normal((400, rank))
        eigen = kp.block_lanczos(F @ F.T, 20)
        assert np.abs(eigen.vectors.T @ eigen.vectors - np.eye(20)).max() < 1e-12
        exact = np.r_[np.linalg.svd(F, compute_uv=False) ** 2, np.zeros(20)][:20]
        assert np.abs(eigen.values - exact).max() < 1e-12 * exact[0]


@pytest.mark.parametrize("n", [4, 100])
def test_matrices_graded_to_300_digits_were_never_solved(n):
    steps = 10.0 ** -np.linspace(0.0, 300.0, n)[:-1]
    A = np.diag(steps, 1) + np.diag(steps, -1)
    eigen = kp.block_lanczos(A, n)
    assert np.abs(eigen.values - np.linalg.eigvalsh(A)[::-1]).max() < 1e-15
    assert np.abs(eigen.vectors.T @ eigen.vectors - np.eye(n)).max() < 1e-14


@pytest.mark.parametrize("seed", range(12))
def test_matrices_near_the_identity_ended_in_a_linalg_error_of_older_scipy(seed):
    # stemr of SciPy 1.11 to 1.15 fails for seeds 6 and 10, among others
    X = 1e3 * np.random.default_rng(seed).standard_normal((60, 2))
    K = kp.gram(X, X, kp.laplacian(50.0))
    model = kp.kpca(X, kp.laplacian(50.0), 1, centered=False)
    np.testing.assert_allclose(model.values, np.linalg.eigvalsh(K)[-1:], rtol=1e-12)


def test_eigenpairs_where_stemr_fails_are_those_of_lapack(rng, monkeypatch):
    solve = scipy.linalg.eigh_tridiagonal

    def failing(*diagonals, lapack_driver="auto", **options):
        if lapack_driver == "auto":
            raise scipy.linalg.LinAlgError("stemr (eigh_tridiagonal) did not converge")
        return solve(*diagonals, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(scipy.linalg, "eigh_tridiagonal", failing)
    for n, k in ((40, 40), (300, 3)):
        A = rng.standard_normal((n, n))
        A = A + A.T
        found = kp.block_lanczos(A, k)
        np.testing.assert_allclose(found.values, np.linalg.eigvalsh(A)[::-1][:k], atol=1e-10)
        assert found.residual.max() < 1e-8  # the default of tol
