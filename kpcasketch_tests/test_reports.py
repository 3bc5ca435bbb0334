# SPDX-License-Identifier: BSD-3-Clause
"""Situations that users of other programs have reported, each with an answer in closed form or by NumPy in float64."""

import fractions

import numba
import numpy as np
import pytest

import kpcasketch as kp


def squares(X, Y):
    return ((X[:, None] - Y[None]) ** 2).sum(2)


def test_ridge_regression_of_fewer_points_than_targets(rng):
    X, Y, new, lam = (
        rng.standard_normal((5, 3)),
        rng.standard_normal((5, 9)),
        rng.standard_normal((7, 3)),
        0.3,
    )
    K = np.exp(-squares(X, X) / 2)
    expected = np.exp(-squares(new, X) / 2) @ np.linalg.solve(K + lam * np.eye(5), Y)
    found = kp.features(
        new, kp.nystrom_ridge(X, Y, np.arange(5), kp.gaussian(1.0), lam, intercept=False)
    )
    assert np.abs(found - expected).max() < 1e-10


def test_more_components_than_distinct_rows(rng):
    X = np.repeat(rng.standard_normal((3, 4)), 10, axis=0)
    # of the three, ten times each
    values = 10 * np.linalg.eigvalsh(np.exp(-squares(X[::10], X[::10]) / 2))[::-1]
    model = kp.kpca(X, kp.gaussian(1.0), 12, centered=False)
    assert model.values[:3] == pytest.approx(values, rel=1e-12) and not model.values[3:].any()
    features = kp.features(X, model)
    assert not features[:, 3:].any() and np.abs((features**2).sum(0)[:3] - values).max() < 1e-10


def test_eigenvalues_of_one_hot_rows_are_the_counts():
    labels = np.repeat([0, 1, 2, 3], [7, 5, 4, 2])
    X = np.eye(4)[labels]
    assert kp.kpca(X, kp.linear(), 4, centered=False).values == pytest.approx(
        [7, 5, 4, 2], rel=1e-13
    )
    assert kp.gram(X, X, kp.gaussian(1.0)) == pytest.approx(
        np.where(labels[:, None] == labels, 1.0, np.exp(-1.0))
    )


@pytest.mark.parametrize("sampler", [kp.rpcholesky, kp.recursive_rls_practical])
def test_more_landmarks_than_distinct_rows(sampler, rng):
    X = rng.standard_normal((4, 3))[rng.integers(4, size=60)]
    F = kp.nystrom(X, sampler(X, kp.gaussian(1.0), 10), kp.gaussian(1.0))
    assert np.abs(F @ F.T - np.exp(-squares(X, X) / 2)).max() < 1e-12


def test_a_median_distance_of_0_is_that_of_the_positive_ones():
    X = np.concatenate([np.zeros((90, 1)), np.arange(1.0, 11.0)[:, None]])
    distances = np.abs(X - X.T)[np.triu_indices(100, 1)]
    assert np.median(distances) == 0 and kp.median_bandwidth(X) == np.median(
        distances[distances > 0]
    )


def test_a_row_without_length_in_the_cosine_recipe_is_named(rng):
    X = rng.standard_normal((9, 3))
    X[4] = 0
    with np.errstate(invalid="ignore"):
        U = X / np.linalg.norm(X, axis=1, keepdims=True)
    with pytest.raises(ValueError, match="row 4, column 0 is not"):
        kp.kpca(U, kp.linear(), 2, centered=False)


def test_powers_of_large_numbers_are_those_of_exact_fractions(rng):
    X = rng.integers(-20_000, 20_000, (6, 5))
    exact = [[float((fractions.Fraction(1, 2) * int(x @ y) + 3) ** 3) for y in X] for x in X]
    assert kp.gram(X, X, kp.polynomial(3, 0.5, 3.0)) == pytest.approx(np.array(exact), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_map_that_is_read_only_is_shared_by_workers(backend, tmp_path, rng):
    joblib = pytest.importorskip("joblib")
    np.save(tmp_path / "X.npy", rng.standard_normal((300, 5)))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    found = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(kp.gram)(X, X[a : a + 100], kp.gaussian(2.0)) for a in (0, 100, 200)
    )
    assert np.abs(np.hstack(found) - np.exp(-squares(X, X) / 8)).max() < 1e-14


@numba.njit
def common(x, y):
    return np.minimum(x, y).sum()


@pytest.mark.slow
def test_a_search_over_parameters_takes_a_compiled_kernel_to_its_workers(rng):
    selection, pipeline, linear = [
        pytest.importorskip(f"sklearn.{name}")
        for name in ("model_selection", "pipeline", "linear_model")
    ]
    X = rng.random((90, 4))
    model = pipeline.make_pipeline(
        kp.LandmarkFeatures(20, kernel=kp.custom(common)), linear.Ridge(1e-6)
    )
    search = selection.GridSearchCV(model, {"ridge__alpha": [1e-6, 1e6]}, cv=3, n_jobs=2)
    search.fit(X, np.minimum(X, X[0]).sum(1))  # a function in the space of the kernel
    assert search.best_params_ == {"ridge__alpha": 1e-6} and search.best_score_ > 0.9


@pytest.mark.parametrize("n", [6, 40])  # as many points as columns, and more
@pytest.mark.parametrize("squared", [True, False])
def test_correlations_of_identical_views_are_known_from_singular_values(n, squared, rng):
    F, lam = rng.standard_normal((n, 6)), 0.7
    s = np.linalg.svd(F, compute_uv=False)
    shares = s**2 / (s**2 + lam)
    found = kp.kernel_cca(F, F, lam, lam, 6, squared=squared)
    assert found.values == pytest.approx(shares**2 if squared else shares, rel=1e-10)


def test_a_graph_with_a_negative_degree_is_refused():
    signs = kp.custom(numba.njit(lambda x, y: 1.0 if x[0] == y[0] else -1.0))
    with pytest.raises(ValueError, match="^laplacian_eigenmap: "):
        kp.laplacian_eigenmap(np.arange(4.0)[:, None], signs, 2)
