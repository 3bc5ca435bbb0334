# SPDX-License-Identifier: BSD-3-Clause
"""Each public function refuses bad input with a ValueError that names function, argument and limit, and takes odd but
good input."""

import importlib.util
import inspect
import pathlib
import pickle
import re

import numba
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import STREAMS, with_trait

X = np.random.default_rng(0).standard_normal((9, 3))
g = kp.gaussian(1.0)
K = naive.gaussian(X, X, 1.0)

# Everything that takes points, with the other arguments filled in.
TAKES_POINTS = {
    "gram": lambda X: kp.gram(X, X, g),
    "gram_diagonal": lambda X: kp.gram_diagonal(X, g),
    "gram_matmat": lambda X: kp.gram_matmat(X, X, np.ones((9, 1)), g),
    "median_bandwidth": lambda X: kp.median_bandwidth(X, 0),
    "sample_gram": lambda X: kp.sample_gram(X, g, 2.0, 0),
    "sample_quantize_gram": lambda X: kp.sample_quantize_gram(X, g, 2.0, 0),
    "quantize_gram": lambda X: kp.quantize_gram(X, g, 0),
    "rademacher_projection": lambda X: kp.rademacher_projection(X, 3, 0),
}


BAD_VALUES = [
    (np.zeros((0, 3)), "at least one row"),
    (np.zeros((3, 0)), "at least one row"),
    (np.full((3, 3), np.nan), "must be finite"),
    (np.full((3, 3), np.inf), "must be finite"),
    (np.full((3, 3), 1e200), "below 1e"),
    (np.zeros((3, 3), "M8[s]"), "datetime64"),
    (np.zeros((3, 3), object), "object"),
    (
        np.zeros((3, 3), complex),
        "must be a 2-D array of real numbers, got a 2-D array of complex128",
    ),
    ({1.0, 2.0}, "2-D array of real numbers, got set"),
    ([[1.0], [2.0, 3.0]], "2-D array of real numbers, got list"),
    (np.ma.masked_array(np.zeros((3, 3))), "must be a plain array, got a masked array"),
]
BAD_TYPES = [
    (np.zeros(3), "must be a 2-D array"),
    (np.zeros((2, 2, 2)), "must be a 2-D array"),
    ("text", "2-D array"),
    (None, "2-D array"),
]
# Types are judged while compiling, seconds for each function: all of them on one function, one of them on each.
REFUSALS = [(name, *bad) for name in TAKES_POINTS for bad in BAD_VALUES + BAD_TYPES[:1]]
REFUSALS += [("gram_diagonal", *bad) for bad in BAD_TYPES[1:]]


@pytest.mark.parametrize("name, bad, text", REFUSALS)
def test_points_are_refused_by_name(name, bad, text):
    with pytest.raises(ValueError, match=text) as error:
        TAKES_POINTS[name](bad)
    assert str(error.value).startswith(f"{name}: X ")


def test_every_memory_layout_and_number_type_gives_the_result_of_the_plain_array():
    whole = np.arange(27.0).reshape(9, 3) % 5
    g = kp.polynomial(2, 0.5, 1.0)
    expected = kp.gram_diagonal(whole, g)
    read_only = whole.copy()
    read_only.flags.writeable = False
    for same in (
        np.asfortranarray(whole),
        np.repeat(whole, 2, axis=0)[::2],
        read_only,
        whole.astype(int),
        whole.astype(np.uint8),
        whole.astype(np.float16),
        whole.astype(">f8"),
        whole.tolist(),
    ):
        assert np.array_equal(kp.gram_diagonal(same, g), expected)
    assert np.array_equal(
        kp.gram_diagonal(whole > 2, g), kp.gram_diagonal((whole > 2).astype(float), g)
    )


def test_a_memory_map_is_taken_like_an_array(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.array_equal(kp.gram_diagonal(mapped, g), np.ones(9))


MAKERS = [
    (lambda v: kp.gaussian(v), "gaussian: sigma"),
    (lambda v: kp.laplacian(v), "laplacian: sigma"),
    (lambda v: kp.cauchy(v), "cauchy: sigma"),
    (lambda v: kp.matern(1.5, v), "matern: sigma"),
    (lambda v: kp.rational_quadratic(1.0, v), "rational_quadratic: sigma"),
    (lambda v: kp.rational_quadratic(v, 1.0), "rational_quadratic: alpha"),
    (lambda v: kp.polynomial(2, v, 0.0), "polynomial: gamma"),
    (lambda v: kp.scaled(g, v), "scaled: kappa"),
]


@pytest.mark.parametrize("make, name", MAKERS)
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_kernel_parameters_are_refused_by_name(make, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        make(value)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: kp.matern(1.0, 1.0), "matern: nu must be 0.5, 1.5 or 2.5"),
        (
            lambda: kp.polynomial(0, 1.0, 0.0),
            "polynomial: degree must be an int from 1 to 64",
        ),
        (
            lambda: kp.polynomial(2.5, 1.0, 0.0),
            "polynomial: degree must be an int from 1 to 64",
        ),
        (lambda: kp.polynomial(2, 1.0, -1.0), r"polynomial: coef0 must be at least 0\.0"),
        (lambda: kp.gaussian("wide"), "gaussian: sigma must be a real number"),
        (lambda: kp.precomputed(np.zeros((2, 3))), "precomputed: K must be square"),
        (
            lambda: kp.precomputed(np.array([[1.0, 2.0], [0.0, 1.0]])),
            "precomputed: K must be symmetric",
        ),
        (
            lambda: kp.custom(lambda x, y: 0.0),
            "custom: f must be a function compiled with numba.njit",
        ),
        (
            lambda: kp.custom(numba.njit(lambda x: 0.0)),
            "custom: f must map two float64 vectors",
        ),
        (lambda: kp.gram(X, X[:, :2], g), "gram: Y must have 3 columns, got 2"),
        (lambda: kp.gram(X, X, (1, 2.0)), "gram: kernel must be a Kernel"),
        (lambda: kp.gram(X, X, kp.precomputed(K)), "gram: X must have one column"),
        (
            lambda: kp.gram(np.array([[9]]), np.array([[0]]), kp.precomputed(K)),
            "gram: X must have one column of",
        ),
        (
            lambda: kp.gram(np.array([[0]]), np.array([[0.5]]), kp.precomputed(K)),
            "gram: Y must have one column of",
        ),
        (lambda: kp.gram_matmat(X, X, np.ones((8, 1)), g), "gram_matmat: V must have 9 rows"),
        (
            lambda: kp.median_bandwidth(X, -1),
            r"median_bandwidth: seed must be an int from 0 to 2\*\*64 - 1",
        ),
        (
            lambda: kp.median_bandwidth(X, 1.0),
            r"median_bandwidth: seed must be an int from 0 to 2\*\*64 - 1",
        ),
        (lambda: kp.sample_gram(X, g, 0.5, 0), r"sample_gram: s must be at least 1\.0"),
        (lambda: kp.sample_gram(X, g, np.nan, 0), "sample_gram: s must be finite"),
        (
            lambda: kp.sample_quantize_gram(X, g, 0.5, 0),
            r"sample_quantize_gram: s must be at least 1\.0",
        ),
        (
            lambda: kp.round_expansion(kp.kpca(X, g, 2), 0.0, 0),
            "round_expansion: s must be at least 1e-300",
        ),
        (
            lambda: kp.round_expansion(
                kp.Expansion(X, np.full((9, 1), np.nan), np.ones(1), g), 2.0, 0
            ),
            "round_expansion: expansion.coef must be finite",
        ),
        (
            lambda: kp.round_expansion(kp.Expansion(X, np.ones((8, 1)), np.ones(1), g), 2.0, 0),
            "round_expansion: expansion must be an Expansion whose coef has a row",
        ),
        (
            lambda: kp.round_expansion(kp.Expansion(X, np.ones(9), np.ones(1), g), 2.0, 0),
            "round_expansion: expansion.coef must be a 2-D array",
        ),
        (
            lambda: kp.round_expansion(K, 2.0),
            "round_expansion: expansion must be an Expansion .*, got ndarray",
        ),
        (
            lambda: kp.round_expansion(kp.kpca(X, g, 2), np.inf),
            "round_expansion: s must be finite",
        ),
        (
            lambda: kp.matmat(csr_array(1j * np.ones((1, 1))), np.ones((1, 1))),
            "matmat: A.data must be a 1-D array of real numbers, got a 1-D array of complex128",
        ),
        (
            lambda: kp.round_expansion(kp.kpca(X, g, 2), -1.0, 0),
            "round_expansion: s must be at least 1e-300",
        ),
        (
            lambda: kp.rademacher_projection(X, 0, 0),
            "rademacher_projection: s must be an int from 1 to 2147483647",
        ),
        (lambda: kp.matmat(np.zeros((2, 3)), np.ones((3, 1))), "matmat: A must be square"),
        (lambda: kp.matmat(K, np.ones((8, 1))), "matmat: V must have 9 rows"),
        (
            lambda: kp.matmat(np.full((9, 9), np.nan), np.ones((9, 1))),
            "matmat: A and A V must be finite",
        ),
        (lambda: kp.matmat(None, np.ones((9, 1))), "matmat: A must be a square array"),
        (
            lambda: kp.matmat(csr_array((np.ones(1), [5], [0, 1]), (1, 1)), np.ones((1, 1))),
            "matmat: A must be a valid sparse matrix; got one whose ind",
        ),
        (
            lambda: kp.matmat(
                csr_array((np.ones(3), [0, 0, 0], [0, 2, 1, 3]), (3, 3)), np.ones((3, 1))
            ),
            "matmat: A must be a valid sparse matrix; got one whose ind",
        ),
        (
            lambda: kp.matmat(kp.Bits(np.zeros((1, 3), np.uint32), 1.0, 4), np.ones((4, 1))),
            "matmat: A must be Bits with",
        ),
        (
            lambda: kp.matmat(kp.LowRank(np.ones(3)), np.ones((3, 1))),
            "matmat: A.F must be a 2-D array",
        ),
        (
            lambda: kp.frobenius_error(K, K[:3, :3]),
            "frobenius_error: A and B must be of the same size",
        ),
        (lambda: kp.block_lanczos(K, 0, 0), "block_lanczos: k must be an int from 1 to 9"),
        (lambda: kp.block_lanczos(K, 10, 0), "block_lanczos: k must be an int from 1 to 9"),
        (lambda: kp.block_lanczos(K, 1, 0, tol=-1.0), r"block_lanczos: tol must be at least 0\.0"),
        (
            lambda: kp.block_lanczos(np.triu(K), 1, 0, tol=1e-8),
            "block_lanczos: A must be symmetric",
        ),
        (
            lambda: kp.block_lanczos(np.full((9, 9), np.nan), 1, 0, tol=1e-8),
            "block_lanczos: the .* matrix must be finite",
        ),
        (
            lambda: kp.orthogonal_iteration(K, 0, 0),
            "orthogonal_iteration: k must be an int from 1 to 9",
        ),
        (
            lambda: kp.orthogonal_iteration(np.full((9, 9), np.inf), 1, 0),
            "orthogonal_iteration: the .* matrix must be finite",
        ),
        (lambda: kp.spectral_norm(np.triu(K), 0), "spectral_norm: A must be symmetric"),
        (lambda: kp.kpca(X, g, 10, 0, centered=False), "kpca: k must be an int from 1 to 9"),
        (lambda: kp.kpca(X, g, 1.5, 0, centered=False), "kpca: k must be an int from 1 to 9"),
        (
            lambda: kp.kpca_from_eigen(X[:3], g, kp.block_lanczos(K, 1, 0)),
            "kpca_from_eigen: eigen.vectors must have 3 rows, got 9",
        ),
        (lambda: kp.kpca_from_eigen(X, g, K), "kpca_from_eigen: eigen must be an Eigen"),
        (
            lambda: kp.features(X[:, :2], kp.kpca(X, g, 2, 0, centered=False)),
            "features: X and model.points must have the same number",
        ),
        (
            lambda: kp.features(X, kp.Expansion(X, np.ones((8, 1)), np.ones(1), g)),
            "features: model must be an Expansion whose coef has a row",
        ),
        (
            lambda: kp.frobenius_error(K, K[:3, :3]),
            "frobenius_error: A and B must be of the same size",
        ),
        (lambda: kp.projection_cost(K, X[:3]), "projection_cost: V must have 9 rows, got"),
        (
            lambda: kp.effective_dimension(K, 0.0, 0),
            "effective_dimension: lam must be at least 1e-300, got 0.0",
        ),
        (lambda: kp.kmeans_select(X, 10, 0), "kmeans_select: m must be an int from 1 to 9"),
        (lambda: kp.kmeans_select(X, 2, 0, restarts=0), "kmeans_select: restarts must be an int"),
        (
            lambda: kp.ridge_leverage_scores(X, g, 0.0),
            "ridge_leverage_scores: lam must be at least 1e-300",
        ),
        (
            lambda: kp.ridge_leverage_scores(X, g, np.inf),
            "ridge_leverage_scores: lam must be finite",
        ),
        (
            lambda: kp.approximate_ridge_leverage_scores(X, np.array([9]), g, 1.0),
            "approximate_ridge_leverage_scores: landmarks must be one or more row numbers",
        ),
        (
            lambda: kp.approximate_ridge_leverage_scores(X, np.array([-1]), g, 1.0),
            "approximate_ridge_leverage_scores: landmarks must be one or more row numbers",
        ),
        (
            lambda: kp.approximate_ridge_leverage_scores(
                X, kp.Landmarks(np.array([1]), np.zeros(1), 0), g, 1.0
            ),
            r"approximate_ridge_leverage_scores: landmarks\.weights must be positive",
        ),
        (
            lambda: kp.approximate_ridge_leverage_scores(
                X, kp.Landmarks(np.array([1]), np.ones(2), 0), g, 1.0
            ),
            r"approximate_ridge_leverage_scores: landmarks\.weights must be positive, one per",
        ),
        (
            lambda: kp.approximate_ridge_leverage_scores(X, np.array([1]), g, -1.0),
            "approximate_ridge_leverage_scores: lam must be at least 1e-300",
        ),
        (lambda: kp.uniform_landmarks(9, 0, 0), "uniform_landmarks: s must be an int"),
        (lambda: kp.uniform_landmarks(6, 2**63, 0), r"uniform_landmarks: s must be an int"),
        (
            lambda: kp.scaled(kp.scaled(g, 1e-300), 1e-300),
            "scaled: kappa times the kernel's scale must be from 1e-300",
        ),
        (
            lambda: kp.scaled(kp.scaled(g, 1e300), 1e300),
            "scaled: kappa times the kernel's scale must be",
        ),
        (
            lambda: kp.gram(X, X, g._replace(kind=99)),
            "gram: kernel must be a Kernel returned by",
        ),
        (
            lambda: kp.gram(X, X, g._replace(kind=8, address=4096)),
            "gram: kernel must be a Kernel returned by",
        ),
        (
            lambda: kp.gram(X, X, kp.precomputed(K)._replace(table=np.ones((2, 3)))),
            "gram: kernel must be a Kernel returned by",
        ),
        (
            lambda: kp.gram(X, X, kp.polynomial(2, 1.0, 0.0)._replace(shape=1e18)),
            "gram: kernel must be a Kernel returned by",
        ),
        (
            lambda: kp.gram(X.astype(np.float32), X.astype(np.float32), kp.scaled(g, 1e200)),
            "gram: kernel must have a gamma .* and a scale from 1e-37 to 1e37",
        ),
        (
            lambda: kp.gram(1e9 * X, 1e9 * X, kp.polynomial(60, 1.0, 0.0)),
            "gram: kernel values on X and Y must be finite",
        ),
        (
            lambda: kp.gram_diagonal(1e9 * X, kp.polynomial(60, 1.0, 0.0)),
            "gram_diagonal: kernel values on X must be finite",
        ),
        (
            lambda: kp.sample_gram(1e9 * X, kp.polynomial(60, 1.0, 0.0), 1.0, 0),
            "sample_gram: s times kernel values on X must be finite",
        ),
        (
            lambda: kp.dense(kp.Implicit(1e9 * X, kp.polynomial(60, 1.0, 0.0))),
            "dense: A must be finite",
        ),
        (
            lambda: kp.uniform_landmarks(0, 1, 0),
            "uniform_landmarks: n must be an int from 1 to 2",
        ),
        (
            lambda: kp.sample_landmarks(np.array([0.5, -0.1]), 0, delta=0.1),
            "sample_landmarks: scores must not be negative",
        ),
        (
            lambda: kp.sample_landmarks(np.array([0.5, np.nan]), 0, delta=0.1),
            "sample_landmarks: scores must have at least one",
        ),
        (
            lambda: kp.sample_landmarks(np.ones(2), 0, delta=0.125),
            "sample_landmarks: delta must be between 0 and 1/8",
        ),
        (
            lambda: kp.rls_nystrom(X, g, 1.0, 0, delta=0.5),
            "rls_nystrom: delta must be between 0 and 1/8",
        ),
        (
            lambda: kp.rls_nystrom(X, g, -1.0, 0, delta=0.1),
            "rls_nystrom: lam must be at least 1e-300",
        ),
        (
            lambda: kp.recursive_rls(X, g, 0.0, 0, delta=0.01),
            "recursive_rls: lam must be at least 1e-300",
        ),
        (
            lambda: kp.recursive_rls(X, g, 1.0, 0, delta=1 / 32),
            "recursive_rls: delta must be between 0 and 1/32",
        ),
        (
            lambda: kp.recursive_rls(X, g, 1.0, 0, delta=0.0),
            "recursive_rls: delta must be between 0 and 1/32",
        ),
        (
            lambda: kp.recursive_rls(X, g, 1.0, -1, delta=0.01),
            "recursive_rls: seed must be an int from 0",
        ),
        (
            lambda: kp.recursive_rls_fixed(X, g, 0, 0, delta=0.01),
            "recursive_rls_fixed: s must be an int",
        ),
        (
            lambda: kp.recursive_rls_fixed(X, g, 3, 0, delta=0.2),
            "recursive_rls_fixed: delta must be between 0 and 1/32",
        ),
        (
            lambda: kp.recursive_rls_fixed(X, g, 3, 0, delta=0.02, constant=0.0),
            "recursive_rls_fixed: constant must be at least 1e-300",
        ),
        (
            lambda: kp.recursive_rls_practical(X, g, 0, 0, delta=0.1),
            "recursive_rls_practical: s must be an int",
        ),
        (
            lambda: kp.recursive_rls_practical(X, g, 2, 0, delta=1.0),
            "recursive_rls_practical: delta must be between 0 and 1",
        ),
        (
            lambda: kp.recursive_rls_accelerated(X, g, 0, 0, delta=0.1),
            "recursive_rls_accelerated: s must be an int",
        ),
        (lambda: kp.rpcholesky(X, g, 0, 0), "rpcholesky: s must be an int"),
        (
            lambda: kp.rpcholesky(X, g, 3, 0, block=129),
            "rpcholesky: block must be an int from 1 to 128",
        ),
        (
            lambda: kp.rpcholesky(X, g, 3, block=0, greedy=True),
            "rpcholesky: block must be an int from 1 to 128",
        ),
        (
            lambda: kp.rpcholesky(X, g, 3, greedy=2),
            "rpcholesky: greedy must be",
        ),
        (
            lambda: kp.nystrom(X, np.array([9]), g),
            "nystrom: landmarks must be one or more row numbers",
        ),
        (
            lambda: kp.nystrom(X, np.empty(0, np.int64), g),
            "nystrom: landmarks must be one or more row numbers",
        ),
        (
            lambda: kp.nystrom(X, X[:, :1].copy(), g),
            "nystrom: landmarks must have 3 columns, got",
        ),
        (lambda: kp.nystrom(X, 3, g), "nystrom: landmarks must be a 2-D array"),
        (
            lambda: kp.features(X[:, :1].copy(), kp.nystrom_map(X, np.array([1]), g)),
            "features: X and model.points must have",
        ),
        (lambda: kp.features(X, K), "features: model must be one of Expansion, .*; got ndarray"),
        (
            lambda: kp.nystrom_kpca(X, np.array([1]), g, 2, 0, centered=False),
            "nystrom_kpca: k must be an int from 1 to 1, got 2",
        ),
        (
            lambda: kp.factor_ridge(X, np.ones(3), 1.0),
            "factor_ridge: Y must have 9 rows, got",
        ),
        (
            lambda: kp.factor_ridge(X, np.ones(9), 0.0),
            "factor_ridge: lam must be at least 1e-300, got 0.0",
        ),
        (
            lambda: kp.nystrom_ridge(X, np.ones(3), np.array([1]), g, 1.0, intercept=False),
            "nystrom_ridge: Y must have 9 rows, got",
        ),
        (
            lambda: kp.kernel_kmeans(X, 0, 0),
            "kernel_kmeans: k must be an int from 1 to 9, got 0",
        ),
        (
            lambda: kp.kernel_cca(X, X[:3].copy(), 1.0, 1.0, 1),
            "kernel_cca: G must have 9 rows, got",
        ),
        (
            lambda: kp.kernel_cca(X, X, 1.0, 0.0, 1),
            "kernel_cca: lam_y must be at least 1e-300, got 0.0",
        ),
        (
            lambda: kp.kernel_cca(X, X, 1.0, 1.0, 9),
            "kernel_cca: k must be an int from 1 to 3, got 9",
        ),
        (lambda: kp.nuclear_error(K, K[:3, :3]), "nuclear_error: A and B must be of the same size"),
        (lambda: kp.nuclear_error(np.full((9, 9), np.nan), K), "nuclear_error: A"),
        (
            lambda: kp.projection_cost(K, np.ones((3, 2))),
            "projection_cost: V must have 9 rows, got",
        ),
    ],
)
def test_wrong_arguments_are_refused_by_name(call, text):
    with pytest.raises(ValueError, match="^" + text):
        call()


def test_seeds_beyond_64_bits_are_refused():
    for number in range(2):  # also where a smaller seed has been used before
        with pytest.raises(
            ValueError,
            match=r"^median_bandwidth: seed must be an int from 0 to 2\*\*64 - 1",
        ):
            kp.median_bandwidth(X, 2**64)
        kp.median_bandwidth(X, 2**64 - 1)


def test_seeds_beyond_the_signed_range_work():
    a, b = kp.sample_gram(X, g, 2.0, 2**63 + 5), kp.sample_gram(X, g, 2.0, 2**63 + 5)
    assert np.array_equal(a.indices, b.indices)
    assert not np.array_equal(kp.dense(a), kp.dense(kp.sample_gram(X, g, 2.0, 5)))


def test_lists_of_numbers_are_taken_like_asarray_takes_them():
    assert np.array_equal(
        kp.gram([[1, 2], [3, 4]], [[1.0, 2.0]], g),
        kp.gram(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0]]), g),
    )


def test_arguments_may_be_given_by_name():
    assert np.array_equal(kp.gram(X=X, Y=X, kernel=g), kp.gram(X, X, g))
    assert kp.median_bandwidth(X, seed=0) == kp.median_bandwidth(X, 0)


def test_read_only_arrays_were_copied_in_every_call():
    read_only = X.copy()
    read_only.flags.writeable = False
    assert np.array_equal(kp.gram(read_only, read_only, g), kp.gram(X, X, g))
    for operator in (kp.LowRank(read_only), kp.Implicit(read_only, g)):
        assert np.array_equal(
            kp.matmat(operator, np.eye(9)), kp.matmat(type(operator)(X, *operator[1:]), np.eye(9))
        )


def test_a_custom_kernel_of_another_process_ended_this_one():
    mine = kp.custom(numba.njit(lambda x, y: 1.0))
    assert (kp.gram(X, X, mine) == 1.0).all()
    for foreign in (mine._replace(address=0), mine._replace(address=mine.address + 16)):
        with pytest.raises(ValueError, match="in this process"):
            kp.gram(X, X, foreign)


def test_numbers_of_columns_were_not_told():
    X = np.random.default_rng(0).standard_normal((30, 4))
    model = kp.skpca(X, kp.gaussian(1.0), 2, 20, 5, centered=False)
    for call, sizes in (
        (lambda: kp.features(X[:3, :3], model), "X must have 4 columns, got 3"),
        (lambda: kp.gram(X, X[:5, :2], kp.linear()), "Y must have 4 columns, got 2"),
        (
            lambda: kp.nystrom(X, landmarks=X[:5, :2], kernel=kp.linear()),
            "landmarks must have 4 columns, got 2",
        ),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value).endswith(sizes)


class Frame:
    """What pandas gives: a table with a method `to_numpy`, here with a missing number."""

    def __init__(self, values):
        self.values = values
        self.dtypes = [
            np.dtype(object if any(isinstance(entry, str) for entry in column) else float)
            for column in zip(*values)
        ]

    def astype(self, kind):
        return Frame(
            [[np.nan if entry is None else kind(entry) for entry in row] for row in self.values]
        )

    def to_numpy(self):
        return np.array(self.values)


def test_frames_are_converted_and_what_they_miss_is_refused_by_its_row():
    assert np.array_equal(
        kp.gram(Frame([[1, 2.5], [3, 4.0]]), [[1.0, 2.0]], g),
        kp.gram(np.array([[1, 2.5], [3, 4.0]]), np.array([[1.0, 2.0]]), g),
    )
    with pytest.raises(ValueError, match="^gram: X must be finite .* row 1, column 0 is not"):
        kp.gram(Frame([[1, 2.5], [None, 4.0]]), [[1.0, 2.0]], g)
    with pytest.raises(
        ValueError, match="^gram: X must be a 2-D array of real numbers, got non-numeric columns"
    ):
        kp.gram(Frame([[1, "two"]]), [[1.0, 2.0]], g)


def test_dates_and_times_in_frames_were_taken_for_numbers_of_1e15():
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2026-01-01", periods=4)
    for column in (days, days - days[0], days.tz_localize("UTC")):
        for frame in (
            pandas.DataFrame({"a": column}),
            pandas.DataFrame({"a": column, "b": range(4)}),
        ):
            with pytest.raises(
                ValueError,
                match="^gram_diagonal: X must be a 2-D array of real numbers, got non-numeric columns ",
            ):
                kp.gram_diagonal(frame, g)
        with pytest.raises(
            ValueError,
            match="^factor_ridge: Y must be a 1-D array of real numbers, got non-numeric columns ",
        ):
            kp.factor_ridge(X[:4], pandas.Series(column), 0.1)
    polars = pytest.importorskip("polars")  # whose dates became numbers
    for column in (days.values, (days - days[0]).values):
        for frame in (
            polars.DataFrame({"a": column}),
            polars.DataFrame({"a": column, "b": np.arange(4.0)}),
        ):
            with pytest.raises(
                ValueError, match="^gram_diagonal: X .* got non-numeric columns 'a'"
            ):
                kp.gram_diagonal(frame, g)
    mixed = pandas.DataFrame({"a": [1.0, 2.0], "city": ["x", "y"]})  # the column was not named
    with pytest.raises(ValueError, match=r"got non-numeric columns 'city' \(convert"):
        kp.gram_diagonal(mixed, g)
    numbers = pandas.DataFrame(
        {"a": [1, 2], "b": pandas.array([1, 2], "Int64"), "c": [1.0, 2.0], "d": [True, False]}
    )
    assert np.array_equal(kp.gram_diagonal(numbers, kp.linear()), [4.0, 12.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: kp.kpca(x, g, 1, centered=False),
        lambda x: kp.features(x, kp.kpca(X, g, 2, centered=False)),
        lambda x: kp.gram(X, x.tolist(), g),
        lambda x: kp.residual(x, kp.kpca(X, g, 2, centered=False)),
        lambda x: kp.frequent_directions(x, 2),
    ],
)
def test_a_single_point_of_one_dimension_was_refused_without_the_remedy(call):
    with pytest.raises(
        ValueError,
        match=r"got a 1-D array of float64: pass X\[None\] for one point, X\[:, None\] for one column",
    ):
        call(X[0].copy())


@pytest.mark.parametrize(
    "value, text",
    [
        (np.ma.masked_array(X), "masked array: call .filled"),
        ([*np.ma.masked_array(X)], "masked array: call .filled"),
        (X.astype(object), "got a 2-D array of object"),
        (np.array([["1"]]), "got a 2-D array of <U1"),
        (X[0], "got a 1-D array"),
    ],
)
def test_other_tables_are_refused_with_what_would_do(value, text):
    with pytest.raises(ValueError, match=f"^gram_diagonal: X must .*{text}"):
        kp.gram_diagonal(value, g)


# The entry of public functions


SOUND = {
    "X": np.eye(4),
    "Y": np.eye(4),
    "A": np.eye(4),
    "B": np.eye(4),
    "V": np.eye(4),
    "C": np.eye(4),
    "w": np.ones(4),
    "kernel": kp.gaussian(1.0),
    "landmarks": np.arange(2),
    **{"k": 2, "m": 3, "s": 2, "d": 4, "ell": 3, "seed": 0},
    **{"lam": 1.0, "delta": 0.1, "eps": 0.1},
}
ENTRIES = [
    getattr(kp, name)
    for name in kp.__all__
    if inspect.isfunction(getattr(kp, name)) and name not in ("main", "load", "prepared_points")
]


@pytest.mark.parametrize("function", ENTRIES, ids=lambda function: function.__name__)
def test_functions_refused_under_the_names_of_others(function):
    # `residual` refused as gram_diagonal, and a function named an argument that it did not have
    if function.__name__.startswith("dask"):
        pytest.importorskip("dask")
    parameters = inspect.signature(function).parameters
    needed = [name for name, own in parameters.items() if own.default is own.empty]
    for wrong in needed:
        given = {name: SOUND.get(name, ...) if name != wrong else ... for name in needed}
        by_name = {
            name: given.pop(name)
            for name in needed
            if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        }
        with pytest.raises(ValueError) as refused:
            function(*given.values(), **by_name)
        said = re.match(r"(\w+): (\w+)", str(refused.value))
        assert said[1] == function.__name__ and said[2] in parameters


def test_a_public_function_shows_its_signature_pickles_and_lets_the_users_line_be_seen():
    assert list(inspect.signature(kp.kpca).parameters) == ["X", "kernel", "k", "seed", "centered"]
    assert pickle.loads(pickle.dumps(kp.kpca)) is kp.kpca and kp.kpca.__doc__
    with pytest.raises(ValueError) as refused:
        kp.kpca(np.eye(3), kp.gaussian(1.0), 0, centered=False)
    assert refused.traceback[0].path == pathlib.Path(__file__)
    assert refused.traceback[-1].name == "_checked_count"


def test_numpys_own_subclasses_of_value_error_are_left_as_they_are():
    def fails(V):
        raise np.linalg.LinAlgError("singular")

    with pytest.raises(np.linalg.LinAlgError, match="^singular"):
        kp.block_lanczos(LinearOperator((5, 5), fails, matmat=fails, dtype=float), 1)


def test_overflow_raised_where_the_user_asked_numpy_to_raise(rng):
    X = rng.standard_normal((300, 3)).astype(np.float32)
    with np.errstate(all="raise"):
        found = kp.recursive_rls_practical(X, kp.gaussian(1.0), 20)
        kp.nystrom_kpca(X, found, kp.gaussian(1.0), 3, centered=False)
        kp.nystrom_ridge(X, X[:, 0], found, kp.polynomial(3, 1e-15, 0.0), 1e-30, intercept=False)


def test_complex_numbers_and_text_in_frames_became_numbers():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    for column in ([1.0 + 2.0j, 3.0], ["1", "2"], pandas.Categorical([1, 2])):
        for made in (pandas.DataFrame({"a": [1, 2], "b": column}), pandas.Series(column)):
            name, call = (
                ("gram_diagonal: X", lambda made: kp.gram_diagonal(made, g))
                if made.ndim == 2
                else ("factor_ridge: Y", lambda made: kp.factor_ridge(X[:2], made, 0.1))
            )
            with pytest.raises(ValueError, match=f"^{name} must be .* got non-numeric columns"):
                call(made)
    with pytest.raises(ValueError, match="^gram_diagonal: X must be a 2-D array of real numbers"):
        kp.gram_diagonal(polars.DataFrame({"a": ["1", "2"]}), g)
    for made in (
        pandas.DataFrame({"a": pandas.array([2, 3], "Int64"), "b": [True, False]}),
        pandas.DataFrame({"a": pandas.arrays.SparseArray([2.0, 3.0]), "b": [1, 0]}),
        polars.DataFrame({"a": [2, 3], "b": [True, False]}),
    ):
        assert kp.gram_diagonal(made, kp.linear()).tolist() == [5.0, 9.0]
    with pytest.raises(
        ValueError, match="^gram_diagonal: X must be finite .* row 1, column .a. is not"
    ):
        kp.gram_diagonal(pandas.DataFrame({"a": pandas.array([2, None], "Int64")}), g)
    for targets in (
        pandas.Series([1, 2]),
        pandas.Series([1, 2], dtype="Int64"),
        pandas.Index([1, 2]),
    ):
        found = kp.factor_ridge(X[:2], targets, 0.1)
        assert np.array_equal(found, kp.factor_ridge(X[:2], np.array([1.0, 2.0]), 0.1))


def frames(library):
    library = pytest.importorskip(library)
    made = library.DataFrame({name: X[:, i] for i, name in enumerate("abc")})
    return made, made[["c", "b", "a"]]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_two_frames_with_the_same_columns_in_another_order_were_compared(library):
    frame, other = frames(library)
    for name, call in (
        ("gram: X and Y", lambda: kp.gram(frame, other, g)),
        ("gram_matmat: X and Y", lambda: kp.gram_matmat(frame, other, np.ones((9, 1)), g)),
        ("mmd_test: X and Y", lambda: kp.mmd_test(frame, other, g)),
        ("nystrom: X and landmarks", lambda: kp.nystrom(frame, other, g)),
        ("shadow_labels: X and centers", lambda: kp.shadow_labels(frame, other)),
    ):
        wanted = re.escape('["a", "b", "c"] and ["c", "b", "a"]')
        with pytest.raises(ValueError, match=f"^{name} must have the same columns .* got {wanted}"):
            call()
    assert np.array_equal(kp.gram(frame, frame[:3], g), kp.gram(X, X[:3], g))
    assert np.array_equal(kp.gram(frame, X, g), kp.gram(X, X, g))
    # targets and vectors are not points
    fitted = kp.nystrom_ridge(frame, other, np.arange(5), g, 0.1, intercept=False)
    assert fitted.coef.shape == (5, 3)
    assert kp.gram_matmat(frame, frame, other, g).shape == (9, 3)


def made_of(points):
    """A model of each class that remembers its columns."""
    return [
        kp.kpca(points, g, 2, centered=False),
        kp.nystrom_map(points, np.arange(4), g),
        kp.nystrom_kpca(points, np.arange(4), g, 2, centered=False),
        kp.nystrom_ridge(points, np.arange(9.0), np.arange(4), g, 0.1, intercept=False),
        kp.rnca(points, g, 2, 16, centered=False),
        kp.dsgd_kpca(points, g, 1, 16, centered=False),
        kp.rskpca(points, g, 2, centered=False),
        kp.laplacian_eigenmap(kp.ReducedSet(points, np.ones(9)), g, 2),
    ]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_model_of_a_frame_took_a_frame_with_other_columns(library, tmp_path):
    frame, other = frames(library)
    for model, plain in zip(made_of(frame), made_of(X)):
        assert plain.names == b"" and model.names == b'["a", "b", "c"]'
        kp.save(tmp_path / "model.npz", model)
        copies = (model, kp.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model)))
        for copy in copies:
            with pytest.raises(ValueError, match="^features: X and model must have the same col"):
                kp.features(other, copy)
            assert np.array_equal(kp.features(frame, copy), kp.features(X, plain))
            assert np.array_equal(kp.features(X, copy), kp.features(X, plain))
        assert np.array_equal(kp.features(other, plain), kp.features(X[:, ::-1], plain))
    for call in (kp.features, kp.residual, kp.gradient, kp.explained_variance_ratio):
        with pytest.raises(ValueError, match=f"^{call.__name__}: X and .* must have the same col"):
            call(other, kp.kpca(frame, g, 2, centered=False))


def test_the_second_view_of_a_state_has_columns_of_its_own():
    frame, other = frames("pandas")
    pair = kp.dsgd_kcca(frame, other, g, g, 1, 16)
    assert kp.features(other, pair.second).shape == (9, 1)
    with pytest.raises(ValueError, match="^features: X and model must have the same columns"):
        kp.features(other, pair.first)
    with pytest.raises(ValueError, match="^features: X and model must have the same columns"):
        kp.features(frame, pair.second)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("stream", STREAMS)
def test_the_state_of_a_stream_forgot_its_columns(stream, library, tmp_path):
    frame, other = frames(library)
    state = STREAMS[stream].start(X)
    assert state.names == b""
    known = kp.update(kp.update(state, X), frame)  # an array has any columns
    assert known.names == b'["a", "b", "c"]' == kp.update(known, X).names
    kp.save(tmp_path / "state.npz", known)
    for copy in (known, kp.load(tmp_path / "state.npz"), pickle.loads(pickle.dumps(known))):
        words = "^update: state and X must have the same columns in the same order"
        with pytest.raises(ValueError, match=words):
            kp.update(copy, other)
        with pytest.raises(ValueError, match=words):
            kp.update(copy, frame[["a", "b"]])


@pytest.mark.parametrize("stream", with_trait(STREAMS, "merges"))
def test_states_of_other_columns_were_merged(stream):
    frame, other = frames("pandas")
    state = STREAMS[stream].start(X)
    second = state._replace(seed=1) if hasattr(state, "seed") else state
    with pytest.raises(ValueError, match="^merge: a and b must have the same columns"):
        kp.merge(kp.update(state, frame), kp.update(second, other))
    for a, b in ((frame, X), (X, frame), (frame, frame)):
        merged = kp.merge(kp.update(state, a), kp.update(second, b))
        assert merged.names == b'["a", "b", "c"]'


def test_the_model_of_a_stream_forgot_the_columns_of_its_points():
    frame, other = frames("pandas")
    states = {name: kp.update(row.start(X), frame) for name, row in STREAMS.items()}
    found = kp.finish(states["rls"])
    for model in (
        kp.finish(states["skpca"], 2),
        kp.finish(states["rnca"], 2),
        kp.finish(states["dsgd"]),
        kp.nystrom_map(found.points, found, g),
        kp.nystrom_kpca(X, found, g, 2, centered=False),
        kp.skpca(frame, g, 2, 16, 4, centered=False),
    ):
        assert model.names == b'["a", "b", "c"]'
        with pytest.raises(ValueError, match="^features: X and model must have the same columns"):
            kp.features(other, model)
        assert kp.features(frame, model).shape[0] == 9
    with pytest.raises(ValueError, match="^nystrom: X and landmarks must have the same columns"):
        kp.nystrom(other, found, g)
    # row numbers have no columns
    rows = kp.rpcholesky(frame[["a", "b"]], g, 4)
    assert kp.nystrom(other, rows, g).shape[0] == 9


def test_models_of_other_columns_were_compared():
    frame, other = frames("pandas")
    a, b = (kp.kpca(points, g, 2, centered=False) for points in (frame, other))
    with pytest.raises(
        ValueError, match="^projection_distance: model and other must have the same"
    ):
        kp.projection_distance(a, b)
    # features and targets have columns of their own
    features = frame[["a", "b"]].set_axis(["component_1", "component_2"], axis=1)
    assert kp.kernel_pca_preimage(features, a).shape == (9, 3)


def test_frames_without_names_fit_every_model():
    pandas = pytest.importorskip("pandas")
    frame, other = frames("pandas")
    assert kp.kpca(pandas.DataFrame(X), g, 2, centered=False).names == b""
    kp.features(pandas.DataFrame(X), kp.kpca(frame, g, 2, centered=False))


def test_tuples_were_refused_where_lists_are_taken():
    pairs = ((1.0, 2.0), (3.0, 5.0))
    array = np.array(pairs)
    assert np.array_equal(kp.gram(pairs, pairs[:1], g), kp.gram(array, array[:1], g))
    assert np.array_equal(kp.nystrom(pairs, (0, 1), g), kp.nystrom(array, np.arange(2), g))
    assert np.array_equal(kp.matmat(((2.0, 1.0), (1.0, 3.0)), (1.0, 1.0)), [3.0, 4.0])
    with pytest.raises(ValueError, match="got LowRank$"):
        kp.gram(kp.LowRank(array), array, g)


def test_errors_of_a_users_function_lost_their_arguments():
    def fails(V):
        raise ValueError("mine", 3)

    with pytest.raises(ValueError) as error:
        kp.block_lanczos(LinearOperator((9, 9), fails, matmat=fails, dtype=float), 2)
    assert error.value.args == ("mine", 3)

    def fails_in_words(V):
        raise ValueError("mine")

    with pytest.raises(ValueError) as error:
        kp.block_lanczos(
            LinearOperator((9, 9), fails_in_words, matmat=fails_in_words, dtype=float), 2
        )
    assert error.value.args == ("mine",)
    short = LinearOperator((9, 9), lambda v: v, matmat=lambda V: V[:1], dtype=float)
    with pytest.raises(ValueError, match="^block_lanczos: A.matmat"):
        kp.block_lanczos(short, 2)


@pytest.mark.parametrize("version", ["memory.max", "memory/memory.limit_in_bytes"])
def test_the_memory_of_a_container_is_its_limit(version, monkeypatch):
    limits = {version: "1000000\n"}

    def read_text(path):
        name = path.as_posix().removeprefix("/sys/fs/cgroup/")
        if name not in limits:
            raise FileNotFoundError(name)
        return limits[name]

    monkeypatch.setattr(pathlib.Path, "read_text", read_text)

    def memory():
        spec = importlib.util.spec_from_file_location("kpcasketch_in_a_container", kp.__file__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module._PHYSICAL_MEMORY

    assert memory() == 1_000_000
    limits[version] = "max\n"
    unlimited = memory()
    limits[version] = "9223372036854771712\n"  # how version 1 says that there is none
    assert memory() == unlimited > 1_000_000


# Frames in float32, and single rows of them


def test_a_float32_frame_became_float64():
    pandas = pytest.importorskip("pandas")
    single = pandas.DataFrame(X.astype(np.float32), columns=list("abc"))
    for frame in (single, single.astype("Float32"), single.astype({"a": "Float32"})):
        assert kp.gram(frame, frame, g).dtype == np.float32
        assert np.array_equal(kp.gram(frame, frame, g), kp.gram(*2 * [X.astype(np.float32)], g))
        assert kp.kpca(frame, g, 2).points.dtype == np.float32
    for frame in (
        single.astype({"a": float}),
        single.astype({"a": "Float64"}),
        single.assign(d=range(9)),
        single.assign(d=True),
        single.astype("float16"),
    ):
        assert kp.gram(frame, frame, g).dtype == np.float64
    missing = single.astype("Float32")
    missing.iloc[2, 1] = pandas.NA
    with pytest.raises(
        ValueError, match="^gram_diagonal: X must be finite .* row 2, column 'b' is"
    ):
        kp.gram_diagonal(missing, g)
    targets = pandas.Series(X[:, 0].astype(np.float32))  # targets are in float64
    assert kp.factor_ridge(X, targets, 0.1).dtype == np.float64


def test_a_float32_frame_of_polars_stays_float32():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: X[:, i].astype(np.float32) for i, name in enumerate("abc")})
    assert kp.gram(frame, frame, g).dtype == np.float32
    mixed = frame.with_columns(frame["a"].cast(polars.Float64))
    assert kp.gram(mixed, mixed, g).dtype == np.float64


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_series_for_a_point_was_answered_by_the_remedy_for_an_array(library):
    series = pytest.importorskip(library).Series([1.0, 2.0, 3.0])
    one = {"pandas": r"X.to_frame\(\).T", "polars": r"X.to_numpy\(\)\[None\]"}[library]
    with pytest.raises(ValueError, match=f"got a 1-D array .*: pass {one} for one point"):
        kp.features(series, kp.kpca(X, g, 2))
    with pytest.raises(ValueError, match=r"got a 1-D array .*: pass X\[None\] for one point"):
        kp.features(np.ones(3), kp.kpca(X, g, 2))
    assert kp.features(series.to_numpy()[None], kp.kpca(X, g, 2)).shape == (1, 2)
    if library == "pandas":  # values in another order were taken for a row
        model = kp.kpca(pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"]), g, 2)
        series.index = ["b", "a", "c"]
        with pytest.raises(ValueError, match="must have the same columns in the same order"):
            kp.features(series.to_frame().T, model)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_an_empty_frame_of_unknown_types_was_not_numeric(library):
    frames = pytest.importorskip(library)
    name = "columns" if library == "pandas" else "schema"
    empty = frames.DataFrame(**{name: ["a", "b", "c"]})
    assert kp.features(empty, kp.kpca(X, g, 2)).shape == (0, 2)
    state = kp.rls_start(g, 5, 3)
    assert kp.update(state, empty).count == 0


def test_the_column_of_a_number_that_is_not_finite_was_not_named():
    bad = X.copy()
    bad[3, 2] = np.nan
    bad[5, 0] = np.inf
    with pytest.raises(
        ValueError, match="^gram_diagonal: X must be finite .*; row 3, column 2 is not$"
    ):
        kp.gram_diagonal(bad, g)
    with pytest.raises(ValueError, match="; row 3, column 2 is not$"):
        kp.gram_diagonal(bad.tolist(), g)
    for library in ("pandas", "polars"):
        frame = pytest.importorskip(library).DataFrame(
            {name: bad[:, i] for i, name in enumerate(["a", "b", "an age"])}
        )
        with pytest.raises(ValueError, match="; row 3, column 'an age' is not$"):
            kp.gram_diagonal(frame, g)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="; row 3, column 30 is not$"):
        kp.gram_diagonal(pandas.DataFrame(bad, columns=[10, 20, 30]), g)
