# SPDX-License-Identifier: BSD-3-Clause
"""Every operator multiplies, densifies and weighs like the matrix it stands for."""

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse.linalg

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import OPERATORS

N = 150
X = np.random.default_rng(0).standard_normal((N, 4))
KERNEL = kp.gaussian(2.0)
K = naive.gaussian(X, X, 2.0)
QUANTIZED = kp.quantize_gram(X, KERNEL, 0)


@pytest.mark.bounds
@pytest.mark.parametrize("name", OPERATORS)
def test_operator_acts_as_its_matrix(name):
    row = OPERATORS[name]
    A = row.make(X, KERNEL, K)
    matrix = row.naive(A, K)
    assert np.abs(kp.dense(A) - matrix).max() < 1e-12
    for p in (1, 4, 16, 35):
        V = np.random.default_rng(p).standard_normal((N, p))
        assert np.abs(kp.matmat(A, V) - matrix @ V).max() < 1e-11
    if row.nbytes:
        assert kp.nbytes(A) == row.nbytes(A)


@pytest.mark.parametrize("name", OPERATORS)
def test_products_have_the_same_bits_for_any_number_of_threads(name, same_bits):
    A = OPERATORS[name].make(X, KERNEL, K)
    same_bits(kp.matmat, A, np.random.default_rng(3).standard_normal((N, 16)))


def test_float32_operators_multiply_in_float32(rng):
    V = rng.standard_normal((N, 16))
    single = kp.matmat(K.astype(np.float32), V)
    assert single.dtype == np.float32 and np.abs(single - K @ V).max() < 1e-4
    bits = kp.matmat(QUANTIZED, V.astype(np.float32))
    assert (
        bits.dtype == np.float32 and np.abs(bits - naive.bits_to_dense(*QUANTIZED) @ V).max() < 1e-3
    )


@pytest.mark.bounds
@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 65])
def test_bits_of_any_size_ignore_what_fills_their_last_words(n):
    upper = np.triu(np.random.default_rng(n).integers(0, 2, (n, n)))
    bits = np.zeros(((n + 31) // 32 * 32, n), np.uint8)
    bits[:n] = upper | upper.T
    bits[n:] = 1
    words = (
        np.packbits(bits.reshape(-1, 32, n), axis=1, bitorder="little")
        .transpose(0, 2, 1)
        .copy()
        .view(np.uint32)[..., 0]
    )
    A = kp.Bits(np.ascontiguousarray(words), 0.5, n)
    assert np.array_equal(kp.dense(A), naive.bits_to_dense(*A))
    assert np.abs(kp.matmat(A, np.eye(n)) - kp.dense(A)).max() < 1e-13


def test_a_column_ordered_array_is_an_operator_too(rng):
    V = rng.standard_normal((N, 3))
    assert np.abs(kp.matmat(np.asfortranarray(K), V) - K @ V).max() < 1e-12
    assert np.abs(kp.matmat(np.eye(N, dtype=int), V) - V).max() == 0.0


@pytest.mark.parametrize("form", ["array", "matrix"])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_scipy_sparse_matrices_of_all_formats_are_operators(rng, kind, form):
    matrix = np.triu(np.tril(K, 20), -20)
    S = getattr(scipy.sparse, f"{kind}_{form}")(matrix)
    V = rng.standard_normal((N, 4))
    assert np.abs(kp.matmat(S, V) - matrix @ V).max() < 1e-12
    assert np.array_equal(kp.dense(S), matrix)
    assert np.abs(kp.dense(kp.center(S)) - naive.centered(matrix)).max() < 1e-12
    assert kp.block_lanczos(S, 2).values == pytest.approx(np.linalg.eigvalsh(matrix)[:-3:-1])
    assert kp.spectral_error(S, matrix) < 1e-12
    assert kp.frobenius_error(S, K) == pytest.approx(np.linalg.norm(matrix - K))


def test_sparse_operators_add_duplicate_entries_and_are_not_changed(rng):
    parts = np.array([1, 2, 4], np.int16), np.array([1, 0, 1]), np.array([0, 3, 3])
    S = scipy.sparse.csr_array(parts, (2, 2))
    assert kp.dense(S).tolist() == [[2.0, 5.0], [0.0, 0.0]]
    assert kp.matmat(S, [1.0, 2.0]).tolist() == [12.0, 0.0]
    assert S.data is parts[0] or S.data.tolist() == [1, 2, 4] and S.dtype == np.int16
    assert S.indices.tolist() == [1, 0, 1]


def test_sketches_are_operators_of_scipy(rng):
    points = rng.standard_normal((400, 3))
    for sketch in (kp.sample_gram, kp.sample_quantize_gram):
        A = sketch(points, KERNEL, 4.0, 1)
        assert type(A) is scipy.sparse.csr_array and A.shape == (400, 400)
        assert A.indices.dtype == A.indptr.dtype == np.int32 and A.has_canonical_format
        theirs = scipy.sparse.linalg.eigsh(A, 3, which="LA")[0][::-1]
        assert kp.block_lanczos(A, 3).values == pytest.approx(theirs, rel=1e-8)


def test_places_of_two_billion_entries_take_eight_bytes(monkeypatch):
    A = kp.sample_gram(X, KERNEL, 3.0, 1)
    monkeypatch.setattr(kp, "_MOST", N**2 // 3)
    B = kp.sample_gram(X, KERNEL, 3.0, 1)
    assert B.indices.dtype == B.indptr.dtype == np.int64 and (A != B).nnz == 0


def linear_operator(matmat, n):
    return scipy.sparse.linalg.LinearOperator((n, n), matmat, matmat=matmat, dtype=float)


def test_a_linear_operator_serves_all_functions_of_operators(rng):
    A = linear_operator(lambda V: K @ V, N)
    V = rng.standard_normal((N, 3))
    assert np.abs(kp.dense(A) - K).max() < 1e-13
    assert np.abs(kp.dense(kp.center(A)) - naive.centered(K)).max() < 1e-12
    assert np.abs(kp.matmat(kp.center(A), V) - naive.centered(K) @ V).max() < 1e-11
    assert kp.spectral_norm(A) == pytest.approx(kp.spectral_norm(K), rel=1e-12)
    for error in (kp.spectral_error, kp.frobenius_error, kp.nuclear_error):
        assert error(A, QUANTIZED) == pytest.approx(error(K, QUANTIZED), rel=1e-9)
        assert error(QUANTIZED, kp.center(A)) == pytest.approx(
            error(QUANTIZED, kp.center(K)), rel=1e-9
        )
    assert kp.projection_cost(A, V) == pytest.approx(kp.projection_cost(K, V), rel=1e-12)
    assert kp.effective_dimension(A, 1.0) == pytest.approx(kp.effective_dimension(K, 1.0))
    assert kp.sketch_error(A, X, KERNEL, 3).values == pytest.approx(0.0, abs=1e-9)
    for B in (A, kp.center(A)):
        with pytest.raises(ValueError, match="^nbytes: A must have arrays; got a LinearOperator"):
            kp.nbytes(B)


def test_rows_of_a_linear_operator_are_products_with_unit_vectors(rng):
    widths = []

    def matmat(V):
        widths.append(V.shape[1])
        return 2.0 * V

    n = 300
    zero = scipy.sparse.csr_array((n, n))
    assert kp.frobenius_error(linear_operator(matmat, n), zero) == pytest.approx(2 * n**0.5)
    assert widths == [128, 128, 44]
    assert kp.projection_cost(linear_operator(matmat, n), np.ones(n)[:, None]) == pytest.approx(
        2.0 * (n - 1)
    )


def test_the_precision_of_a_linear_operator_counts_inside_others():
    single = K.astype(np.float32)
    A = linear_operator(lambda V: single @ V.astype(np.float32), N)
    for B in (A, kp.center(A)):
        assert kp.block_lanczos(B, 2).residual.min() > 1e-7  # 1e-12 would be of float64
    assert kp.spectral_error(A, K) < 1e-4


def test_centered_products_of_a_matrix_that_is_not_symmetric_are_refused():
    wrong = linear_operator(lambda V: np.triu(K) @ V, N)
    for B in (wrong, kp.center(wrong)):
        with pytest.raises(ValueError, match="^block_lanczos: A must be symmetric"):
            kp.block_lanczos(B, 2)
    with pytest.raises(ValueError, match="^spectral_error: B must be symmetric"):
        kp.spectral_error(K, wrong)


def test_centering_a_shifted_matrix_changes_nothing():
    assert np.abs(kp.dense(kp.center(K + 7.0)) - naive.centered(K)).max() < 1e-12


def test_denormal_numbers_cost_a_hundred_operations_each():
    # those of far clusters: values below 1e-300 (float32: 1e-37) are 0
    X = np.concatenate(
        [
            np.random.default_rng(0).standard_normal((300, 2)),
            np.random.default_rng(1).standard_normal((20, 2)) + 26.0,
        ]
    )
    kernel = kp.gaussian(1.0)
    K = kp.gram(X, X, kernel)
    exact = naive.gaussian(X, X, 1.0)
    assert ((0 < exact) & (exact < 1e-300)).any() and K[K != 0].min() > 1e-300
    single = kp.gram(X.astype(np.float32), X.astype(np.float32), kernel)
    assert single[single != 0].min() > 1e-37 and np.abs(single - exact).max() < 1e-5
    F = kp.nystrom(X, np.arange(0, 320, 2), kernel)
    for product in (kp.gram_matmat(X, X, F, kernel), kp.matmat(K, F)):
        np.testing.assert_allclose(product, K @ F, atol=1e-12)
    kp.matmat(kp.LowRank(F), F)
    kp.rpcholesky(X, kernel, 50, greedy=True)


@kp._validated("a Diagonal", values=1)
class Diagonal(NamedTuple):
    """A form of operator that the file does not know."""

    values: np.ndarray


def test_a_new_operator_is_a_tuple_and_an_entry_of_functions(monkeypatch):
    monkeypatch.setitem(
        kp._OPERATORS,
        Diagonal,
        kp._Form(
            lambda A: A.values.size,
            lambda A, V: A.values.reshape(-1, 1) * V,
            lambda A, first, last: np.diag(A.values)[first:last],
            lambda A: A.values.sum(),
        ),
    )
    values = np.arange(1.0, 301.0)
    A = Diagonal(values)
    assert np.array_equal(kp.matmat(A, np.eye(300)), np.diag(values)) and np.array_equal(
        kp.dense(A), np.diag(values)
    )
    assert kp.block_lanczos(A, 3).values == pytest.approx([300, 299, 298]) and kp.nbytes(A) == 2400
    assert kp.spectral_error(A, np.diag(values) + np.eye(300)) == pytest.approx(1.0, rel=0.01)


def every_operator():
    points, kernel = np.random.default_rng(3).standard_normal((50, 3)), kp.gaussian(1.0)
    K = kp.gram(points, points, kernel)
    return [row.make(points, kernel, K) for row in OPERATORS.values()]


@pytest.mark.parametrize("A", every_operator(), ids=lambda A: type(A).__name__)
def test_a_vector_gives_a_vector(A):
    v = np.random.default_rng(0).standard_normal(50)
    product = kp.matmat(A, v)
    assert product.shape == (50,) and np.array_equal(product, kp.matmat(A, v[:, None])[:, 0])
    assert np.array_equal(kp.matmat(A, v.tolist()), product)
    for wrong, text in [
        (v[1:], "V must have 50 rows, got"),
        (np.ones((50, 2, 2)), "2-D"),
        (3.0, "2-D"),
        (v * np.nan, "V must be finite"),
        ([[1.0], 2.0], "array"),
    ]:
        with pytest.raises(ValueError, match=text):
            kp.matmat(A, wrong)


def sparse(K, kind=np.int64):
    rows, columns = np.nonzero(K)
    starts = np.searchsorted(rows, np.arange(len(K) + 1)).astype(kind)
    return scipy.sparse.csr_array((K[rows, columns], columns.astype(kind), starts), K.shape)


@pytest.mark.bounds
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("p", [1, 2, 7, 8, 9, 16, 17, 33])
def test_sparse_products_of_columns_in_panels(rng, dtype, p):
    # rows of no entry to some ten, four of which are added at a time, and columns around a panel's 8 and 16
    n = 300
    K = rng.standard_normal((n, n)) * (rng.random((n, n)) < (np.arange(n) % 10 / n)[:, None])
    K[:, 0] = K[0] = 0
    K, V = (K + K.T).astype(dtype), rng.standard_normal((n, p)).astype(dtype)
    limit, order = 300 * np.finfo(dtype).eps, rng.permutation(n)
    for kind in (np.int32, np.int64):
        product = kp.matmat(sparse(K, kind), V)
        assert product.dtype == dtype and product.shape == (n, p)
        assert np.abs(product - K.astype(float) @ V).max() < limit and not product[0].any()
    # another way: a permutation of the points permutes the product
    assert (
        np.abs(kp.matmat(sparse(K[np.ix_(order, order)]), V[order]) - product[order]).max() < limit
    )


@pytest.mark.parametrize("p", [1, 2, 5, 20])
def test_float32_sums_of_a_million_equal_terms_lost_three_digits(p):
    n = 1_000_000
    third = np.float32(1 / 3)
    V = np.full((n, p), third)
    parts = V[:, 0], np.arange(n), np.append(0, np.full(n, n))
    long_row = scipy.sparse.csr_array(parts, (n, n))
    # Errors were 1.5e-4 to 2e-4 (LowRank), 2e-4 to 2.4e-3 (sparse). Sums of 2048 equal terms err by 2e-5.
    for A, exact in (
        (kp.LowRank(V[:, :1]), n * float(third) ** 3),
        (long_row, n * float(third) ** 2),
    ):
        assert np.abs(kp.matmat(A, V)[0] / exact - 1.0).max() < 4e-5
