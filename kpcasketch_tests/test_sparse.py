# SPDX-License-Identifier: BSD-3-Clause
"""Sparse points give what the same points give as an array, and never become one."""

import io
import pathlib
import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import KERNELS, RADIAL

EXACT = {np.float64: 1e-12, np.float32: 2e-5}  # errors of results relative to the largest entry
EUCLIDEAN = {name: row for name, row in KERNELS.items() if name != "city block"}
SAMPLERS = {
    "rpcholesky": kp.rpcholesky,
    "rpcholesky, greedy": lambda X, kernel, s, seed: kp.rpcholesky(X, kernel, s, greedy=True),
    "recursive_rls_practical": kp.recursive_rls_practical,
    "recursive_rls_accelerated": kp.recursive_rls_accelerated,
    "recursive_rls": lambda X, kernel, s, seed: kp.recursive_rls(
        X, kernel, 5.0, seed, delta=0.03, oversampling=1.0
    ),
    "recursive_rls_fixed": lambda X, kernel, s, seed: kp.recursive_rls_fixed(
        X, kernel, s, seed, delta=0.03, constant=1.0, oversampling=0.1
    ),
}


def counts(rng, n, d=60, dtype=np.float64):
    """Rows of a few positive entries: some equal, one empty."""
    X = np.where(rng.random((n, d)) < 0.15, rng.random((n, d)), 0.0)
    X[n // 2 :: 7] = X[0]
    X[n // 3] = 0.0
    return X.astype(dtype)


def same(found, wanted, tolerance=1e-12):
    wanted = np.asarray(wanted)
    assert np.shape(found) == wanted.shape and np.asarray(found).dtype == np.float64
    assert np.abs(found - wanted).max() <= tolerance * np.abs(wanted).max()


def sparse(X):
    return scipy.sparse.csr_array(X)


# Kernel values


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("name", EUCLIDEAN)
def test_gram_matrices_of_sparse_points(rng, name, dtype):
    X = counts(rng, 150, dtype=dtype)
    Y = counts(rng, 40, dtype=dtype)
    kernel = KERNELS[name].make(1.7)
    exact = KERNELS[name].naive(X.astype(float), Y.astype(float), 1.7)
    same(kp.gram(sparse(X), sparse(Y), kernel), exact.astype(dtype), EXACT[dtype])
    S = sparse(X)
    K = kp.gram(S, S, kernel)
    same(K, KERNELS[name].naive(*[X.astype(float)] * 2, 1.7).astype(dtype), EXACT[dtype])
    assert np.array_equal(K, K.T)
    same(kp.gram_diagonal(S, kernel), K.diagonal(), EXACT[dtype])
    V = rng.standard_normal((40, 3)).astype(dtype)
    same(kp.gram_matmat(S, sparse(Y), V, kernel), (exact @ V).astype(dtype), EXACT[dtype])


@pytest.mark.parametrize("n", [1, 2, 4, 5, 127, 128, 129, 257])
@pytest.mark.parametrize("m", [1, 16, 127, 128, 129])
def test_sizes_around_blocks(rng, n, m):
    X = counts(rng, n)
    Y = counts(rng, m)
    for kernel in (kp.gaussian(1.0), kp.polynomial(2, 1.0, 1.0)):
        same(kp.gram(sparse(X), sparse(Y), kernel), kp.gram(X, Y, kernel))
        V = np.ones((m, 2))
        same(kp.gram_matmat(sparse(X), sparse(Y), V, kernel), kp.gram_matmat(X, Y, V, kernel))
        found = kp.nystrom(sparse(X), sparse(Y), kernel)
        same(found @ found.T, (F := kp.nystrom(X, Y, kernel)) @ F.T, 1e-9)


def test_products_of_many_points_are_computed_block_by_block(rng, monkeypatch):
    X = counts(rng, 700)
    monkeypatch.setattr(kp, "_SLAB", 256)
    monkeypatch.setattr(kp, "_STORED_PRODUCTS", 700 * 150)
    kernel = kp.laplacian(2.0)
    V = rng.standard_normal((700, 3))
    same(kp.gram_matmat(sparse(X), sparse(X), V, kernel), kp.gram_matmat(X, X, V, kernel))
    S = sparse(X)
    K = kp.gram(S, S, kernel)
    assert np.array_equal(K, K.T) and (K.diagonal() == 1.0).all()
    assert np.array_equal(K[:150], kp.gram(S[:150], S, kernel))
    map_ = kp.nystrom_map(sparse(X), np.arange(0, 700, 9), kernel)
    same(
        kp.features(sparse(X), map_),
        kp.features(X, kp.nystrom_map(X, np.arange(0, 700, 9), kernel)),
        1e-9,
    )


def test_equal_points_had_a_distance_of_half_of_the_digits():
    # |x|^2 + |y|^2 - 2 x.y of equal points may be 1e-16 |x|^2, whose root in `laplacian` is 1e-8
    X = np.array([[1.1, 0.0, 1e6], [1.3, 1e-3, 1e6], [1.1, 0.0, 1e6], [0.0, 0.0, 1.0]])
    X = np.vstack([X, np.random.default_rng(0).random((300, 3))[np.arange(600) % 300]])
    K = kp.gram(sparse(X), sparse(X[:310]), kp.laplacian(1e-3))
    assert (K[0, [0, 2]] == 1.0).all() and (K[304:, 4:304].diagonal() == 1.0).all()


# Far from the origin. Whole multiples of 2^-10 have exact differences.


def far(rng, n, place):
    return place + rng.integers(0, 3000, (n, 3)) / 1024.0


@pytest.mark.parametrize("place", [1e4, 1e5, 1.7e9])
@pytest.mark.parametrize("name", [name for name in EUCLIDEAN if name in RADIAL])
def test_distances_of_sparse_points_far_from_the_origin_were_rounding_errors(rng, name, place):
    X = far(rng, 60, place)
    near = X - place
    kernel = KERNELS[name].make(1.0)
    same(kp.gram(sparse(X), sparse(X), kernel), kp.gram(near, near, kernel))
    same(kp.gram(sparse(X[:9]), sparse(X), kernel), kp.gram(near[:9], near, kernel))
    V = rng.standard_normal((60, 2))
    same(kp.gram_matmat(sparse(X), sparse(X), V, kernel), kp.gram_matmat(near, near, V, kernel))
    rows = np.arange(20)
    F = kp.nystrom(sparse(X), rows, kernel)
    G = kp.nystrom(near, rows, kernel)
    same(F @ F.T, G @ G.T, 1e-9)
    assert np.square(F).sum(1).max() <= kernel.scale * (1.0 + 1e-12)
    found = kp.nystrom_kpca(sparse(X), rows, kernel, 5, centered=True)
    same(found.values, kp.nystrom_kpca(near, rows, kernel, 5, centered=True).values, 1e-9)
    chosen = kp.rpcholesky(sparse(X), kernel, 10, 3)
    assert np.array_equal(chosen.indices, kp.rpcholesky(near, kernel, 10, 3).indices)
    assert kp.median_bandwidth(sparse(X)) == pytest.approx(kp.median_bandwidth(near), rel=1e-9)


def half_empty(rng):
    """Time stamps, in every other row, next to indicators."""
    X = np.eye(8)[rng.integers(0, 8, 300)]
    stamps = 1.7e9 + rng.integers(0, 3000, 300) / 1024.0
    return np.column_stack([X, np.where(np.arange(300) % 2, stamps, 0.0)])


def test_a_column_far_from_0_in_some_rows_hid_the_others(rng):
    X = half_empty(rng)
    for kernel in (kp.gaussian(1.0), kp.laplacian(1.0), kp.matern(2.5, 1.0)):
        K = kp.gram(sparse(X), sparse(X[:40]), kernel)
        near = X.copy()
        near[1::2, -1] -= 1.7e9
        near[::2, -1] = 1e9  # far from all others, as before
        same(K, kp.gram(near, near[:40], kernel))


def test_sparse_points_without_a_common_column_are_expanded(rng):
    X = sparse(np.repeat(np.eye(5), 3, 0) * 1e8)
    assert np.array_equal(kp.gram(X, X, kp.laplacian(1.0)), np.kron(np.eye(5), np.ones((3, 3))))


def test_equal_sparse_points_of_many_entries_differed(rng):
    X = rng.random((1, 3000)).repeat(2, 0)
    assert (kp.gram(sparse(X), sparse(X[:1]), kp.laplacian(1e-3)) == 1.0).all()


def test_means_that_are_subtracted_from_sparse_points_keep_them_sparse(rng):
    X = sparse(np.column_stack([counts(rng, 200), 1e5 + rng.random(200)]))
    moved = kp._minus_row(kp._as_points("X", X))
    assert len(moved.data) == X.nnz
    near = X.toarray()
    near[:, -1] -= near[:, -1].mean()
    same(moved.toarray(), near, 1e-10)  # rounding of 1e5
    assert moved.indices.dtype == X.indices.dtype
    other = kp._as_points("X", sparse(counts(rng, 200)))
    assert kp._minus_row(other) is other


def test_linear_models_of_sparse_points_lost_columns_far_from_0(rng):
    hot = np.eye(10)[rng.integers(0, 10, 300)]
    X = np.column_stack([hot, 1e7 + rng.integers(0, 1024, 300) / 1024.0])
    y = hot @ rng.random(10) + X[:, -1] - 1e7
    rows = np.arange(100)
    S = sparse(X)
    weights = rng.random(300)
    for own in ({}, {"weights": weights}):
        found = kp.nystrom_ridge(S, y, rows, kp.linear(), 1e-3, intercept=True, **own)
        wanted = kp.nystrom_ridge(X, y, rows, kp.linear(), 1e-3, intercept=True, **own)
        assert np.abs(kp.features(S, found) - kp.features(X, wanted)).max() < 1e-5
    for maker in (
        lambda X: kp.kpca(X, kp.linear(), 3, centered=True),
        lambda X: kp.nystrom_kpca(X, rows, kp.linear(), 3, centered=True),
    ):
        found = maker(S)
        wanted = maker(X)
        same(found.values, wanted.values, 1e-6)
        features = kp.features(S, found)
        signs = np.sign((features * kp.features(X, wanted)).sum(0))
        assert np.abs(features - signs * kp.features(X, wanted)).max() < 1e-5
        # the square root of a rounding error, relative to |x|
        assert np.abs(kp.residual(S, found) - kp.residual(X, wanted)).max() < 1e-7
        shares = kp.explained_variance_ratio(S, found)
        same(shares, kp.explained_variance_ratio(X, wanted), 1e-6)
    pytest.importorskip("sklearn")
    found = kp.LandmarkRidge(100, lam=1e-3).fit(S, y)
    assert found.score(S, y) == pytest.approx(kp.LandmarkRidge(100, lam=1e-3).fit(X, y).score(X, y))


def test_models_over_sparse_points_hold_an_array_of_scipy(rng):
    S = sparse(counts(rng, 30))
    for n in (1, 3, 4, 5):
        model = kp.nystrom_map(S, np.arange(n), kp.gaussian(2.0))
        assert type(model.points) is scipy.sparse.csr_array and model.points.shape == (n, 60)
        assert np.array_equal(
            kp.features(S, model), kp.features(S, model._replace(points=model.points.tocoo()))
        )
        with pytest.raises(ValueError, match="sparse and dense points must not be mixed"):
            kp.features(S.toarray()[:2], model)


@pytest.mark.parametrize("m", [2, 200])
def test_work_on_sparse_points_does_not_grow_with_the_number_of_landmarks(rng, m):
    X = kp._as_points("X", sparse(counts(rng, 300)))
    pairs = kp._prepare(kp.gaussian(1.0), X, X[:m], False)
    assert kp._tile_work(kp.gaussian(1.0), pairs, 3.0) == 300 * m * 4.0


FORMS = {
    "csr_matrix": scipy.sparse.csr_matrix,
    "csr_array": scipy.sparse.csr_array,
    "csc_matrix": scipy.sparse.csc_matrix,
    "coo_array": scipy.sparse.coo_array,
    "lil_matrix": scipy.sparse.lil_matrix,
    "int64": lambda X: scipy.sparse.csr_array(
        ((S := sparse(X)).data, S.indices.astype(np.int64), S.indptr.astype(np.int64)), S.shape
    ),
    "points of a model": lambda X: kp.kpca(sparse(X), kp.linear(), 1, centered=False).points,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_sparse_matrices(rng, form):
    X = counts(rng, 50)
    S = FORMS[form](X)
    same(kp.gram(S, S, kp.gaussian(2.0)), naive.gaussian(X, X, 2.0))
    model = kp.kpca(S, kp.gaussian(2.0), 3, centered=False)
    same(
        kp.features(S, model), kp.features(X, kp.kpca(X, kp.gaussian(2.0), 3, centered=False)), 1e-9
    )


def test_unsorted_columns_zeros_and_duplicate_entries_were_other_points():
    indptr = np.array([0, 4, 4, 6])
    S = scipy.sparse.csr_matrix(
        (np.array([1.0, 2.0, 0.0, 3.0, -1.0, 1.0]), np.array([2, 0, 1, 2, 1, 1]), indptr), (3, 4)
    )
    before = S.copy()
    X = np.array([[2.0, 0.0, 4.0, 0.0], [0.0] * 4, [0.0] * 4])
    same(kp.gram(S, S, kp.laplacian(1.0)), naive.laplacian(X, X, 1.0))
    for part in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(S, part), getattr(before, part)), (
            "the argument is not changed"
        )


def test_a_matrix_changed_in_place_was_believed_to_be_sorted():
    S = scipy.sparse.csr_array((np.array([1.0, 2.0]), np.array([0, 2]), np.array([0, 2])), (1, 4))
    assert S.has_canonical_format  # scipy remembers this
    for columns, square in ([[2, 0], 5.0], [[1, 1], 9.0]):
        S.indices[:] = columns
        assert kp.gram(S, S, kp.linear()) == square
        assert S.indices.tolist() == columns and S.data.tolist() == [1.0, 2.0]


def test_models_do_not_share_memory_with_sparse_points(rng):
    X = counts(rng, 20)
    S = sparse(X)
    models = [
        kp.kpca(S, kp.gaussian(2.0), 3, centered=False),
        kp.nystrom_map(S, S, kp.gaussian(2.0)),
    ]
    before = [kp.features(X=sparse(X), model=model) for model in models]
    S.data[:] = 7.0
    S.indices[:] = 0
    for model, expected in zip(models, before):
        assert np.array_equal(kp.features(sparse(X), model), expected)


def test_the_span_of_a_sparse_model_was_computed_in_every_call(rng):
    model = kp.kpca(sparse(counts(rng, 20)), kp.gaussian(2.0), 3, centered=False)
    assert kp._span_of(model)[0] is kp._span_of(model)[0]
    other = model._replace(points=2.0 * model.points)
    assert kp._span_of(other)[0] is not kp._span_of(model)[0]
    moved = model.points.copy()
    moved.indices[0] += 1 - 2 * (moved.indices[0] > 0)
    assert kp._span_of(model._replace(points=moved))[0] is not kp._span_of(model)[0]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.bool_, np.float32])
def test_other_numbers_become_floats(rng, dtype):
    X = (5 * counts(rng, 20)).astype(dtype)
    S = scipy.sparse.csr_array(X.astype(float)).astype(dtype)
    same(kp.gram(S, S, kp.linear()), kp.gram(X, X, kp.linear()), 1e-6)


def test_small_integers_overflowed_in_sums_of_duplicate_entries():
    S = scipy.sparse.csr_array((np.array([200, 200], np.uint8), [0, 0], [0, 2]), (1, 2))
    assert kp.gram(S, S, kp.linear()) == 160_000.0


def test_sparse_and_dense_points_are_not_combined(rng):
    X = counts(rng, 50)
    S = sparse(X)
    kernel = kp.gaussian(2.0)
    for call in (
        lambda: kp.gram(X[:9], S, kernel),
        lambda: kp.gram(S, X, kernel),
        lambda: kp.features(X, kp.kpca(S, kernel, 2, centered=False)),
        lambda: kp.features(S, kp.kpca(X, kernel, 2, centered=False)),
        lambda: kp.features(X, kp.kpca(S, kp.linear(), 2, centered=False)),
        lambda: kp.features(S, kp.kpca(X, kp.linear(), 2, centered=False)),
        lambda: kp.nystrom(S, X[:5], kernel),
        lambda: kp.nystrom(X, S[:5], kernel),
        lambda: kp.nystrom_ridge(S, X[:, 0], X[:5], kp.linear(), 0.1, intercept=True),
        lambda: kp.nystrom_ridge(X, X[:, 0], S[:5], kp.linear(), 0.1, intercept=True),
    ):
        with pytest.raises(ValueError, match="sparse and dense points must not be mixed"):
            call()


# Landmarks and models


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_choose_the_same_landmarks(rng, name, dtype):
    X = counts(rng, 400, dtype=dtype)
    for kernel in (kp.gaussian(2.0), kp.polynomial(2, 1.0, 1.0), kp.matern(1.5, 2.0)):
        found = SAMPLERS[name](sparse(X), kernel, 30, 1)
        wanted = SAMPLERS[name](X, kernel, 30, 1)
        assert np.array_equal(found.indices, wanted.indices)
        same(found.weights, wanted.weights, 1e-9 if dtype == np.float64 else 1e-3)
        assert found.evaluations == wanted.evaluations


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("name", EUCLIDEAN)
def test_models_of_sparse_points(rng, name, dtype):
    X = counts(rng, 300, dtype=dtype)
    new = counts(rng, 20, dtype=dtype)
    y = X.sum(1)
    kernel = KERNELS[name].make(2.0)
    rows = kp.uniform_landmarks(300, 40)
    weights = rng.random(300)
    tolerance = 1e-9 if dtype == np.float64 else 5e-3
    makers = [
        lambda X: kp.kpca(X, kernel, 4, centered=False),
        lambda X: kp.kpca(X, kernel, 4, centered=True),
        lambda X: kp.nystrom_kpca(X, rows, kernel, 4, centered=False),
        lambda X: kp.nystrom_ridge(X, y, rows, kernel, 0.1, intercept=False),
        lambda X: kp.nystrom_ridge(X, y, rows, kernel, 0.1, weights=weights, intercept=False),
    ]
    if not kp._is_linear(kernel):  # a mean is not subtracted from sparse points
        makers += [
            lambda X: kp.nystrom_kpca(X, rows, kernel, 4, centered=True),
            lambda X: kp.nystrom_ridge(X, y, rows, kernel, 0.1, intercept=True),
        ]
    for maker in makers:
        found = maker(sparse(X))
        wanted = maker(X)
        same(kp.features(sparse(new), found), kp.features(new, wanted), tolerance)
        same(found.values, wanted.values, tolerance)
        if not found.targets:
            # residuals near 0 are roots of rounding errors
            some = new[new.any(1)]
            gap = kp.residual(sparse(some), found) ** 2 - kp.residual(some, wanted) ** 2
            assert np.abs(gap).max() < tolerance
            shares = kp.explained_variance_ratio(sparse(X), found)
            same(shares, kp.explained_variance_ratio(X, wanted), tolerance)
    F = kp.nystrom(sparse(X), rows, kernel)
    same(F @ F.T, (G := kp.nystrom(X, rows, kernel)) @ G.T, tolerance)


def test_kernel_pca_of_sparse_points_equals_numpy(rng):
    X = counts(rng, 200)
    K = naive.gaussian(X, X, 1.5)
    for centered, A in [(False, K), (True, naive.centered(K))]:
        model = kp.kpca(sparse(X), kp.gaussian(1.5), 5, centered=centered)
        same(model.values, np.linalg.eigvalsh(A)[:-6:-1])
        features = kp.features(sparse(X), model)
        same(features.T @ features, np.diag(model.values), 1e-11)


def test_centered_linear_regression_of_sparse_points_equals_ridge_regression(rng):
    X = counts(rng, 100)
    y = rng.standard_normal(100)
    found = kp.nystrom_ridge(sparse(X), y, np.arange(100), kp.linear(), 0.1, intercept=True)
    H = X - X.mean(0)
    w = np.linalg.solve(H.T @ H + 0.1 * np.eye(60), H.T @ y)
    same(kp.features(sparse(X), found), y.mean() + H @ w, 1e-9)


def test_kernel_pca_of_many_sparse_points_formed_their_gram_matrix_in_every_step():
    S = scipy.sparse.csr_array((8193, 40))
    with pytest.raises(
        ValueError, match="^kpca: the number of sparse points .nystrom_kpca .* to 8192, got 8193$"
    ):
        kp.kpca(S, kp.gaussian(2.0), 3, centered=False)


def test_centered_linear_models_equal_dense_ones_if_the_landmarks_span_the_points(rng):
    X = counts(rng, 300, d=30)
    X[:, 0] = 5.0  # a mean far from 0
    y = rng.standard_normal(300)
    weights = rng.random(300)
    for kernel in (kp.linear(), kp.polynomial(1, 2.0, 3.0)):
        for landmarks in (np.arange(300), np.arange(60)):
            found = kp.nystrom_kpca(sparse(X), landmarks, kernel, 3, centered=True)
            wanted = kp.nystrom_kpca(X, landmarks, kernel, 3, centered=True)
            same(found.values, wanted.values, 1e-9)
            features = kp.features(sparse(X), found)
            same(features @ features.T, (F := kp.features(X, wanted)) @ F.T, 1e-9)
            options = {"intercept": True, "weights": weights}
            found = kp.nystrom_ridge(sparse(X), y, landmarks, kernel, 0.1, **options)
            wanted = kp.nystrom_ridge(X, y, landmarks, kernel, 0.1, **options)
            same(kp.features(sparse(X), found), kp.features(X, wanted), 1e-9)


# Bandwidths and random features


@pytest.mark.parametrize("unit", [1.0, 1e-60, 1e80])
def test_median_bandwidth(rng, unit):
    X = unit * counts(rng, 1500)
    found = kp.median_bandwidth(sparse(X), 1)
    assert found == pytest.approx(kp.median_bandwidth(X, 1), rel=1e-12)


def test_median_bandwidth_of_equal_points():
    X = np.zeros((6, 4))
    assert kp.median_bandwidth(sparse(X)) == 1.0
    X += [1.1, 0.0, 1e6, 1.0]  # roundings of |x|^2 + |y|^2 - 2 x.y were distances
    assert kp.median_bandwidth(sparse(X)) == 1.0
    X[0] = [1.1, 3.0, 1e6, 5.0]
    assert kp.median_bandwidth(sparse(X)) == pytest.approx(5.0, rel=1e-3)
    assert kp.median_bandwidth(sparse(X[:1])) == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("make", ["fourier", "orthogonal", "quasi"])
def test_random_features(rng, make, dtype):
    X = (4 * counts(rng, 150)).astype(dtype)
    for kernel in (kp.gaussian(4.0), kp.scaled(kp.laplacian(4.0), 3.0)):
        map_ = getattr(kp, f"{make}_features_map")(kernel, 60, 130, 1, paired=True)
        found = kp.features(sparse(X), map_)
        same(found, kp.features(X.astype(float), map_))
        assert np.array_equal(found, kp.features(sparse(X), map_))
        assert np.array_equal(found[:3], kp.features(sparse(X[:3]), map_))
    city = kp.fourier_features_map(kp.laplacian(4.0, norm=1), 60, 40, stored=False)
    # angles of Cauchy's law reach 10^4
    same(kp.features(sparse(X), city), kp.features(X.astype(float), city), 1e-11)


def test_maps_without_frequencies_want_dense_points(rng):
    S = sparse(counts(rng, 20))
    for points, map_ in (
        (S, kp.fastfood_features_map(kp.gaussian(1.0), 60, 8)),
        (S, kp.orthogonal_features_map(kp.gaussian(1.0), 60, 8, stored=False)),
    ):
        for function in (kp.features, kp.features):
            with pytest.raises(ValueError, match="model must come from fourier_features_map"):
                function(points, map_)


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
@pytest.mark.parametrize("options", [{}, {"intercept": False}, {"lam": 0.1}])
def test_choose(rng, options):
    X = counts(rng, 300)
    y = X @ rng.random(60) + 0.1 * rng.standard_normal(300)
    weights = rng.random(300)
    arguments = y, np.arange(40), kp.gaussian(2.0)
    found = kp.choose(sparse(X), *arguments, weights=weights, factors=[0.5, 1, 2, 4], **options)
    wanted = kp.choose(X, *arguments, weights=weights, factors=[0.5, 1, 2, 4], **options)
    assert found.kernel == wanted.kernel and found.lam == pytest.approx(wanted.lam)
    same(found.errors, wanted.errors, 1e-6)  # the smallest ridges are 1e-9.5


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
def test_choose_without_targets(rng):
    X = counts(rng, 300)
    arguments = None, np.arange(40), kp.gaussian(2.0), 3
    found = kp.choose(sparse(X), *arguments, factors=[0.5, 1, 2])
    assert found.kernel == kp.choose(X, *arguments, factors=[0.5, 1, 2]).kernel
    kp.choose(sparse(X[:, :9]), *arguments, factors=[1])


# Estimators


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
@pytest.mark.parametrize("form", ["csr_matrix", "csr_array", "csc_matrix", "coo_array"])
@pytest.mark.parametrize(
    "own",
    [
        {},
        {"n_components": 5},
        {"n_components": 5, "centered": True},
        {"n_components": 0.5, "sampler": "uniform"},
        {"sampler": "rls", "sigma": "auto"},
    ],
)
def test_landmark_features(rng, own, form):
    pytest.importorskip("sklearn")
    X = counts(rng, 300)
    y = X @ rng.random(60) + 0.1 * rng.standard_normal(300)
    S = FORMS[form](X)
    found = kp.LandmarkFeatures(40, **own).fit(S, y)
    wanted = kp.LandmarkFeatures(40, **own).fit(X, y)
    assert np.array_equal(found.landmarks_, wanted.landmarks_)
    assert found.kernel_.gamma == pytest.approx(wanted.kernel_.gamma, rel=1e-12)
    same(found.transform(S), wanted.transform(X), 1e-9)
    same(kp.LandmarkFeatures(40, **own).fit_transform(S, y), wanted.transform(X), 1e-9)
    gap = kp.residual(S, found) ** 2 - kp.residual(X, wanted) ** 2
    assert np.abs(gap).max() < 1e-9


@pytest.mark.parametrize("lam", [0.1, "auto"])
def test_ridge_and_classifier(rng, lam):
    pytest.importorskip("sklearn")
    X = counts(rng, 300)
    S = sparse(X)
    y = X @ rng.random(60) + 0.1 * rng.standard_normal(300)
    weights = rng.integers(0, 3, 300)
    for make, targets in ((kp.LandmarkRidge, y), (kp.LandmarkClassifier, y > np.median(y))):
        found = make(40, lam=lam).fit(S, targets, weights)
        wanted = make(40, lam=lam).fit(X, targets, weights)
        assert np.array_equal(found.landmarks_, wanted.landmarks_)
        same(kp.features(S, found), kp.features(X, wanted), 1e-9)
        assert found.score(S, targets) == pytest.approx(wanted.score(X, targets), rel=1e-9)


def test_equal_sparse_points_count_once(rng):
    pytest.importorskip("sklearn")
    X = counts(rng, 20)
    X = X[np.unique(X, axis=0, return_index=True)[1]]
    X = np.repeat(X[X.any(1)], 9, 0)
    S = sparse(X)
    S.data[S.indptr[0]] = 0.0  # two equal points that store zeros of both signs
    S.data[S.indptr[1]] = -0.0
    few = kp.LandmarkFeatures(300, kernel=kp.gaussian(2.0)).fit(S)
    assert len(few.landmarks_) == len(np.unique(S.toarray(), axis=0))
    swapped = np.eye(64)[:40] + np.eye(64)[24:]  # their sums over signs are often equal
    assert len(kp._distinct(kp._as_points("X", sparse(swapped)))[0]) == 40


def test_given_landmarks_may_be_sparse(rng):
    pytest.importorskip("sklearn")
    X = counts(rng, 100)
    S = sparse(X)
    for landmarks in (S[:9], scipy.sparse.csr_matrix(S[:9]), np.arange(9)):
        for own in ({}, {"n_components": 2}):
            found = kp.LandmarkFeatures(landmarks, kernel=kp.gaussian(2.0), **own).fit(S)
            wanted = kp.LandmarkFeatures(X[:9], kernel=kp.gaussian(2.0), **own).fit(X)
            same(found.transform(S), wanted.transform(X), 1e-9)
            assert np.array_equal(
                pickle.loads(pickle.dumps(found)).transform(S), found.transform(S)
            )
    with pytest.raises(ValueError, match="n_components must be an int from 1 to 9"):
        kp.LandmarkFeatures(S[:9], n_components=10).fit(S)


def test_other_estimators_refuse_sparse_points(rng):
    pytest.importorskip("sklearn")
    X = counts(rng, 60)
    S = sparse(X)
    fitted = kp.LandmarkFeatures(9, n_components=2).fit(S)
    words = "must be dense, such as rademacher_projection.* Only gram, kpca"
    for call in (
        lambda: kp.StreamingKernelPCA().fit(S),
        lambda: kp.StreamingKernelPCA(m=60).fit(X).transform(S),
        lambda: kp.NoveltyDetector().partial_fit(S),
        lambda: kp.NoveltyDetector().fit(S),
        lambda: fitted.inverse_transform(np.ones((1, 2))),
        lambda: kp.gradient(X, fitted),  # an estimator of sparse points passed for a dense one
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_estimators_of_sparse_points_take_dense_ones_too(rng):
    pytest.importorskip("sklearn")
    X = counts(rng, 60)
    S = sparse(X)
    for own in (kp.LandmarkFeatures(9), kp.LandmarkFeatures(9, n_components=2)):
        assert np.array_equal(own.fit(S).transform(X), own.transform(S))
    assert np.array_equal(
        kp.LandmarkRidge(9).fit(S, X[:, 0]).predict(X),
        kp.LandmarkRidge(9).fit(S, X[:, 0]).predict(S),
    )
    assert kp.LandmarkFeatures(9).fit(S).fit(X).transform(X).shape == (60, 9)


def test_files_and_pickles(rng):
    X = counts(rng, 60)
    S = sparse(X)
    for model in (
        kp.nystrom_kpca(S, np.arange(20), kp.gaussian(2.0), 3, centered=False),
        kp.nystrom_map(S, np.arange(20), kp.gaussian(2.0)),
    ):
        file = io.BytesIO()
        kp.save(file, model)
        file.seek(0)
        for read in (kp.load(file), pickle.loads(pickle.dumps(model))):
            assert np.array_equal(kp.features(S, read), kp.features(S, model))
            assert type(read.points) is scipy.sparse.csr_array
            assert "points=sparse (20, 60) float64," in repr(read)


def test_files_of_sparse_points_that_were_changed_are_refused(rng):
    file = io.BytesIO()
    S = sparse(counts(rng, 60))
    kp.save(file, kp.nystrom_map(S, np.arange(20), kp.gaussian(2.0)))
    file.seek(0)
    with np.load(file) as opened:
        arrays = dict(opened)
    assert arrays["points"] == "csr_array"
    for field, wrong in [
        ("points.data", arrays["points.data"][1:]),
        ("points.data", arrays["points.data"].astype(str)),
        ("points.indices", arrays["points.indices"] + 60),
        ("points.indices", arrays["points.indices"] * 1.0),
        ("points.indptr", arrays["points.indptr"][::-1]),
        ("points.indptr", arrays["points.indptr"][1:]),
        ("points.shape", np.array([20, 60, 2])),
        ("points.shape", np.array(20)),
        ("points.shape", np.array([-20, 60])),
        ("points.shape", None),
    ]:
        changed = arrays | {field: wrong}
        if wrong is None:
            del changed[field]
        file = io.BytesIO()
        np.savez(file, **changed)
        file.seek(0)
        with pytest.raises(ValueError, match="^load: .* but points has the wrong type"):
            kp.load(file)


# The tests of a peer


class KernelPCA:
    """scikit-learn's KernelPCA by `kpca`, as far as its own tests of sparse input call it."""

    def __init__(self, n_components, kernel, gamma=None, **ignored):
        self.k = n_components
        self.kernel = kernel
        self.gamma = gamma

    def fit(self, X):
        gamma = self.gamma or 1.0 / X.shape[1]
        made = {"linear": kp.linear(), "poly": kp.polynomial(3, gamma, 1.0)}
        kernel = made.get(self.kernel) or kp.gaussian(gamma=gamma)
        self.model = kp.kpca(X, kernel, self.k, centered=True)
        return self

    def transform(self, X):
        return kp.features(X, self.model)

    def fit_transform(self, X):
        return self.fit(X).transform(X)

    def inverse_transform(self, features):
        return kp.kernel_pca_preimage(features, self.model, 1.0)


@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_the_test_of_sparse_points_of_the_peer_kernel_pca(container):
    # after scikit-learn's test_kernel_pca_sparse
    decomposition = pytest.importorskip("sklearn.decomposition")
    rng = np.random.RandomState(0)
    X_fit = container(rng.random_sample((5, 4)))
    X_pred = container(rng.random_sample((2, 4)))
    for kernel in ("linear", "rbf", "poly"):
        kpca = KernelPCA(4, kernel=kernel, fit_inverse_transform=False, random_state=0)
        X_fit_transformed = kpca.fit_transform(X_fit)
        X_fit_transformed2 = kpca.fit(X_fit).transform(X_fit)
        np.testing.assert_array_almost_equal(np.abs(X_fit_transformed), np.abs(X_fit_transformed2))
        X_pred_transformed = kpca.transform(X_pred)
        assert X_pred_transformed.shape[1] == X_fit_transformed.shape[1]
        peer = decomposition.KernelPCA(4, kernel=kernel).fit(X_fit)
        np.testing.assert_array_almost_equal(
            np.abs(X_pred_transformed), np.abs(peer.transform(X_pred))
        )
        with pytest.raises(ValueError, match="model must be dense"):
            kpca.inverse_transform(X_pred_transformed)


class Nystroem:
    """scikit-learn's Nystroem over uniform landmarks."""

    def __init__(self, n_components, gamma):
        self.s = n_components
        self.kernel = kp.gaussian(gamma=gamma)

    def fit(self, X):
        self.map = kp.nystrom_map(X, kp.uniform_landmarks(X.shape[0], self.s), self.kernel)
        return self

    def transform(self, X):
        return kp.features(X, self.map)

    def fit_transform(self, X):
        return self.fit(X).transform(X)


class EstimatedNystroem(Nystroem):
    """scikit-learn's Nystroem by LandmarkFeatures."""

    def fit(self, X):
        self.map = kp.LandmarkFeatures(self.s, kernel=self.kernel, sampler="uniform").fit(X)
        return self

    def transform(self, X):
        return self.map.transform(X)


@pytest.mark.parametrize("Nystroem", [Nystroem, EstimatedNystroem])
@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_the_test_of_approximation_of_the_peer_nystroem(container, Nystroem):
    # after scikit-learn's test_nystroem_approximation, with sparse points
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    X = container(np.random.RandomState(0).uniform(size=(10, 4)))
    trans = Nystroem(10, 0.25)
    K = pairwise.rbf_kernel(X, gamma=0.25)
    np.testing.assert_array_almost_equal((F := trans.fit_transform(X)) @ F.T, K)
    trans = Nystroem(2, 0.25)
    assert trans.fit(X).transform(X).shape == (10, 2)


@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_the_test_of_input_of_the_peer_random_features(container):
    # after scikit-learn's test_input_validation of RBFSampler: lists, and small sparse integers
    X = [[1, 2], [3, 4], [5, 6]]
    map_ = kp.fourier_features_map(kp.gaussian(2.0), 2, 100)
    same(kp.features(container(X), map_), kp.features(X, map_))


def test_one_hot_columns_of_real_data():
    path = pathlib.Path(kp.__file__).parents[1] / "shared" / "data" / "adult_a9a.npz"
    if not path.exists():
        pytest.skip("the data set is not here")
    X = np.load(path)["X"][:3000].astype(float)
    kernel = kp.gaussian(3.0)
    found = kp.rpcholesky(sparse(X), kernel, 100)
    assert np.array_equal(found.indices, kp.rpcholesky(X, kernel, 100).indices)
    F, G = kp.nystrom(sparse(X), found, kernel), kp.nystrom(X, found, kernel)
    same(F @ F[:50].T, G @ G[:50].T, 1e-11)
    model = kp.nystrom_kpca(sparse(X), found, kernel, 10, centered=True)
    same(model.values, kp.nystrom_kpca(X, found, kernel, 10, centered=True).values, 1e-11)


# Refusals


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e160])
def test_numbers_are_refused_as_in_arrays(rng, bad):
    X = counts(rng, 20)
    X[7, 3] = bad
    for points in (X, sparse(X)):  # the row of sparse points was not named
        with pytest.raises(
            ValueError, match="^rpcholesky: X must be finite .*; row 7, column 3 is not"
        ):
            kp.rpcholesky(points, kp.gaussian(1.0), 3)


def test_shapes_and_indices_are_refused(rng):
    S = sparse(counts(rng, 20))
    model = kp.nystrom_map(S, np.arange(4), kp.gaussian(1.0))
    with pytest.raises(ValueError, match="^gram: Y must have 60 columns, got 9"):
        kp.gram(S, S[:, :9], kp.gaussian(1.0))
    with pytest.raises(ValueError, match="^features: X and model.points must have"):
        kp.features(S[:, :9], model)
    with pytest.raises(ValueError, match="^gram_diagonal: X must have at least one row"):
        kp.gram_diagonal(S[:0], kp.linear())
    with pytest.raises(ValueError, match="^gram_diagonal: X.data must be a 1-D array of real"):
        kp.gram_diagonal(S + 1j * S, kp.linear())
    with pytest.raises(ValueError, match="^gram_diagonal: X must be finite .* and a matrix"):
        kp.gram_diagonal(scipy.sparse.coo_array(np.ones(3)), kp.linear())
    with pytest.raises(ValueError, match="^features: .*ind"):  # made by hand
        points = scipy.sparse.csr_array((np.ones(1), [70], [0, 1]), (1, 60))
        kp.features(S, kp.Expansion(points, np.ones((1, 1)), np.ones(1), kp.linear()))


def test_kernels_of_other_functions_want_dense_points(rng):
    S = sparse(counts(rng, 20))
    for kernel in (kp.laplacian(1.0, norm=1), kp.precomputed(np.eye(60))):
        with pytest.raises(ValueError, match="^kpca: kernel must depend on x.y or .* sparse"):
            kp.kpca(S, kernel, 2, centered=False)


def test_other_functions_refuse_sparse_points_and_models_of_them(rng):
    S = sparse(counts(rng, 20))
    g = kp.gaussian(2.0)
    model = kp.kpca(S, g, 2, centered=False)
    words = "must be dense, such as rademacher_projection.* Only gram, kpca"
    for call in (
        lambda: kp.sample_gram(S, g, 2.0),
        lambda: kp.kmeans_select(S, 2),
        lambda: kp.shadow_select(S, 1.0),
        lambda: kp.gradient(S, model),
        lambda: kp.gradient(S.toarray(), model),
        lambda: kp.kernel_pca_preimage(np.ones((1, 2)), model),
        lambda: kp.frequent_directions(S, 2),
        lambda: kp.skpca(S, kp.fourier_features_map(g, 60, 8), 4, 2, centered=False),
        lambda: kp.factor_ridge(S, np.ones(20), 1.0),
        lambda: kp.kernel_value(g, S[:1], S[:1]),
        lambda: kp.update(kp.rls_start(g, 4, 60), S),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(ValueError, match="Y must be a 2-D array of real numbers, got csr"):
        kp.nystrom_ridge(S, S, np.arange(4), g, 1.0, intercept=False)


# Memory


def test_products_of_sparse_points_formed_their_gram_matrix(rng, monkeypatch):
    monkeypatch.setattr(kp, "_STORED_PRODUCTS", 2**18)
    n = 6000  # 288 MB as a Gram matrix
    S = sparse(counts(rng, n))
    kernel = kp.gaussian(10.0)
    model = kp.nystrom_kpca(S, np.arange(30), kernel, 3, centered=False)

    def work():
        kp.gram_matmat(S, S, np.ones((n, 1)), kernel)
        kp.explained_variance_ratio(S, model)
        kp.matmat(kp.Implicit(S, kernel), np.ones((n, 20)))
        landmarks = np.arange(1000)  # each result takes 48 MB
        kp.gram(S, S[:1000], kernel)
        kp.nystrom(S, landmarks, kernel)
        kp.features(S, kp.nystrom_map(S, landmarks, kernel))

    work()  # compiles, which takes memory, too
    tracemalloc.start()
    try:
        work()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 90e6


def test_a_sparse_factor_ended_in_an_attribute_error(rng):
    factor = kp.LowRank(sparse(counts(rng, 20)))
    for function in (kp.spectral_norm, kp.dense):
        with pytest.raises(ValueError, match="must be a LowRank of an array"):
            function(factor)


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
def test_sparse_points_are_never_stored_densely(rng):
    n, d = 2000, 1_000_000  # 16 GB as an array
    columns = rng.integers(d, size=(n, 50))
    S = scipy.sparse.csr_array(
        (np.ones(columns.size), columns.ravel(), np.arange(n + 1) * 50), (n, d)
    )
    S.sum_duplicates()
    kernel = kp.gaussian(10.0)
    tracemalloc.start()
    try:
        landmarks = kp.rpcholesky(S, kernel, 100)
        kp.recursive_rls_accelerated(S, kernel, 100)
        model = kp.nystrom_kpca(S, landmarks, kernel, 5, centered=True)
        kp.features(S, model)
        kp.residual(S, model)
        kp.nystrom_ridge(S, np.ones(n), landmarks, kernel, 1.0, intercept=True)
        kp.features(S, kp.kpca(S, kernel, 3, centered=True))
        kp.median_bandwidth(S)
        kp.choose(S, np.arange(n) * 1.0, landmarks, kernel, factors=[1.0])
        kp.features(S, kp.fourier_features_map(kernel, d, 4))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 300e6
