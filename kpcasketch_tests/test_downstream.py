# SPDX-License-Identifier: BSD-3-Clause
"""Ridge regression, k-means and canonical correlations on a factor, against the dense matrices they stand for."""

import functools
import math

import numpy as np
import pytest

import kpcasketch as kp
from kpcasketch_tests import naive

X = np.random.default_rng(0).standard_normal((300, 3))
KERNEL = kp.gaussian(2.0)
ROWS = np.arange(0, 300, 6)
F = np.linalg.solve(
    np.linalg.cholesky(naive.gaussian(X[ROWS], X[ROWS], 2.0)), naive.gaussian(X[ROWS], X, 2.0)
).T.copy()
LOW = F @ F.T
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])


@pytest.mark.parametrize("lam", [1e-3, 1.0, 50.0])
def test_ridge_regression_on_a_factor_is_that_on_its_matrix(lam):
    expected = naive.kernel_ridge(LOW, Y, lam)
    assert np.abs(F @ kp.factor_ridge(F, Y, lam) - expected).max() < 1e-9
    assert np.abs(F @ kp.factor_ridge(F, Y[:, 0], lam) - expected[:, 0]).max() < 1e-9
    expansion = kp.nystrom_ridge(X, Y, ROWS, KERNEL, lam, intercept=False)
    assert np.abs(kp.features(X, expansion) - expected).max() < 1e-9


def test_predictions_are_those_of_formula_35(rng):
    new, lam = rng.standard_normal((40, 3)), 0.3
    alpha = np.linalg.solve(LOW + lam * np.eye(300), Y)
    K = naive.gaussian(X, X, 2.0)
    expected = (
        naive.gaussian(new, X[ROWS], 2.0) @ np.linalg.pinv(K[np.ix_(ROWS, ROWS)]) @ K[ROWS] @ alpha
    )
    assert (
        np.abs(
            kp.features(new, kp.nystrom_ridge(X, Y, ROWS, KERNEL, lam, intercept=False)) - expected
        ).max()
        < 1e-7
    )
    features = kp.features(new, kp.nystrom_map(X, ROWS, KERNEL))
    assert (
        np.abs(features @ kp.factor_ridge(kp.nystrom(X, ROWS, KERNEL), Y, lam) - expected).max()
        < 1e-7
    )


def test_fewer_distinct_points_than_clusters_gave_fewer_labels_in_silence():
    with pytest.warns(UserWarning, match="^kernel_kmeans: only 3 of 6 clusters have points: "):
        found = kp.kernel_kmeans(np.repeat(np.eye(3), 5, 0), 6, restarts=10)
    assert np.unique(found.labels).size == 3 and found.cost == 0.0


def test_cost_of_clusters_at_the_limit_of_iterations_was_above_its_formula(rng):
    points = rng.standard_normal((3000, 5))
    found = kp.kernel_kmeans(points, 20, restarts=10, max_iterations=3)
    means = np.array([points[found.labels == c].mean(0) for c in range(20)])
    assert np.abs(found.centers - means).max() < 1e-12
    assert found.cost == pytest.approx(np.square(points - means[found.labels]).sum())


def test_kernel_kmeans_minimises_the_cost_of_its_matrix():
    found = kp.kernel_kmeans(F, 4, 0, restarts=10)
    indicators = np.eye(4)[found.labels]
    C = indicators / np.sqrt(indicators.sum(0))
    assert found.cost == pytest.approx(np.trace(LOW - C @ C.T @ LOW @ C @ C.T), rel=1e-10)
    assert found.cost == pytest.approx(kp.projection_cost(kp.LowRank(F), indicators), rel=1e-10)
    assert found.cost <= kp.kernel_kmeans(F, 4, 0, restarts=1).cost


def test_rings_are_clusters_under_a_kernel_of_radii_and_not_by_distances():
    rings = np.concatenate(
        [
            r * np.column_stack([np.cos(t), np.sin(t)])
            for r, t in ((1, np.linspace(0, 6, 80)), (4, np.linspace(0, 6, 120)))
        ]
    )
    radii, ring = np.linalg.norm(rings, axis=1)[:, None], np.repeat([0, 1], [80, 120])
    by_radius = kp.nystrom(
        np.arange(200.0)[:, None],
        np.arange(0, 200, 9),
        kp.precomputed(np.exp(-((radii - radii.T) ** 2))),
    )
    for features, alike in ((by_radius, True), (rings, False)):
        labels = kp.kernel_kmeans(features, 2, 0, restarts=10).labels
        assert (
            len(set(labels[ring == 0])) == len(set(labels[ring == 1])) == 1
            and labels[0] != labels[-1]
        ) == alike


@pytest.mark.parametrize("squared", [True, False])
def test_correlations_are_those_of_both_programs(squared, rng):
    G = kp.nystrom(Y + 0.1 * rng.standard_normal(Y.shape), np.arange(0, 300, 10), KERNEL)
    found = kp.kernel_cca(F, G, 0.5, 2.0, 3, squared=squared)
    expected = naive.correlations(F, G, 0.5, 2.0, squared)[:3]
    assert found.values == pytest.approx(expected, abs=1e-10)
    variates = F @ found.weights_x, G @ found.weights_y
    assert np.abs(variates[0].T @ variates[1] - np.diag(expected)).max() < 1e-9
    for factor, weights, lam in ((F, found.weights_x, 0.5), (G, found.weights_y, 2.0)):
        square = factor.T @ factor
        if squared:  # |(K + lam) alpha| = 1 with w = F^T alpha
            inner = np.linalg.pinv(factor.T) @ weights
            whitened = (factor @ factor.T + lam * np.eye(300)) @ inner
            assert np.abs(np.linalg.norm(whitened, axis=0) - 1).max() < 1e-6
        else:
            assert (
                np.abs(weights.T @ (square + lam * np.eye(len(square))) @ weights - np.eye(3)).max()
                < 1e-9
            )


def test_one_point_tells_the_two_programs_apart():
    one = np.ones((1, 1))
    assert kp.kernel_cca(one, one, 1.0, 1.0, 1).values == pytest.approx([0.25])
    assert kp.kernel_cca(one, one, 1.0, 1.0, 1, squared=False).values == pytest.approx([0.5])


@pytest.mark.parametrize("n, r, q", [(1, 1, 1), (3, 2, 5), (300, 130, 40), (2500, 33, 129)])
def test_moments_are_the_product_of_the_factors(n, r, q, rng, monkeypatch):
    A, B = rng.standard_normal((n, r)), rng.standard_normal((n, q))
    for beyond in (kp._BLAS_BELOW, 0):
        monkeypatch.setattr(kp, "_BLAS_BELOW", beyond)
        assert np.abs(kp._column_products(A, B) - A.T @ B).max() < 1e-11
        symmetric = kp._column_products(A, A)
        assert np.abs(symmetric - A.T @ A).max() < 1e-11 and np.array_equal(symmetric, symmetric.T)


def test_downstream_has_the_same_bits_for_any_number_of_threads(same_bits):
    same_bits(functools.partial(kp.kernel_kmeans, restarts=10), F, 3, 0)
    same_bits(kp._column_products, F, F)


@pytest.mark.parametrize("lam", [1e-12, 1e-14, 1e-300])
@pytest.mark.parametrize("squared", [True, False])
def test_correlations_of_views_without_full_rank_exceeded_1(lam, squared, rng):
    low = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 10))
    assert (
        np.abs(kp.kernel_cca(low, low, lam, lam, 4, squared=squared).values - [1, 1, 1, 0]).max()
        < 1e-9
    )
    assert (kp.kernel_cca(0 * low, low, lam, lam, 2, squared=squared).values == 0).all()


@pytest.mark.parametrize("lam", [1e-16, 1e-300])
def test_ridge_regression_on_dependent_columns_was_singular(lam):
    assert (
        np.abs(np.ones((5, 2)) @ kp.factor_ridge(np.ones((5, 2)), np.arange(5.0), lam) - 2).max()
        < 1e-9
    )
    assert (kp.factor_ridge(np.zeros((5, 2)), np.arange(5.0), lam) == 0).all()


@pytest.mark.parametrize("scale", [1e40, 1e-50])
def test_targets_beyond_float32_were_lost_on_a_factor_in_float32(scale):
    single = F.astype(np.float32)
    small = kp.factor_ridge(single, Y, 1.0)
    assert np.allclose(
        kp.factor_ridge(single, scale * Y, 1.0), scale * small, rtol=1e-5, atol=1e-5 * scale
    )


def test_coefficients_overflowed_float32_without_a_word():
    with pytest.raises(ValueError, match="nystrom_ridge: Y must be smaller"):
        kp.nystrom_ridge(X.astype(np.float32), 1e40 * Y, ROWS[:9], KERNEL, 1.0, intercept=False)


def test_cost_of_clusters_stopped_early_was_that_of_centers_before():
    points = np.arange(6.0).reshape(-1, 1) ** 2
    found = kp.kernel_kmeans(points, 2, 0, restarts=1, max_iterations=1)
    assert found.cost == pytest.approx(((points - found.centers[found.labels]) ** 2).sum())


def test_a_small_ridge_was_lost_in_float32():
    u = np.random.default_rng(0).standard_normal(8192)
    F = np.c_[u, u + 1e-3 * np.random.default_rng(1).standard_normal(8192)].astype(np.float32)
    y = np.random.default_rng(2).standard_normal(8192)
    assert kp.factor_ridge(F, y, 1e-4) == pytest.approx(
        kp.factor_ridge(F.astype(float), y, 1e-4), rel=1e-9
    )


@pytest.mark.parametrize("squared", [True, False])
def test_a_direction_of_a_view_1e_8_times_smaller_than_another_was_lost(squared, rng):
    view = rng.standard_normal((300, 3)) * [1e4, 1.0, 1e-4]
    expected = naive.correlations(view, F, 1e-9, 1.0, squared)[:3]
    assert kp.kernel_cca(view, F, 1e-9, 1.0, 3, squared=squared).values == pytest.approx(
        expected, rel=1e-6
    )


def test_predictions_of_a_vector_of_targets_were_a_column():
    # (y - expand) was (n, n): .87 for a mean squared error of 1.5e-5
    y, K = Y[:, 0], naive.gaussian(X, X, 2.0)
    exact = K @ np.linalg.solve(K + 1e-3 * np.eye(300), y)
    error, low = (
        np.mean((y - exact) ** 2),
        np.mean((y - naive.kernel_ridge(LOW, Y, 1e-3)[:, 0]) ** 2),
    )
    assert np.mean((y - F @ kp.factor_ridge(F, y, 1e-3)) ** 2) == pytest.approx(low, rel=1e-4)
    for targets in (y, list(y), Y):
        for model, right in (
            (kp.nystrom_ridge(X, targets, ROWS, KERNEL, 1e-3, intercept=False), low),
            (kp.kernel_ridge(X, targets, KERNEL, 1e-3, intercept=False), error),
        ):
            found = kp.features(X, model)
            assert found.shape == np.shape(targets) and model.coef.ndim == 2
            assert np.mean((y - found.reshape(300, -1)[:, 0]) ** 2) == pytest.approx(
                right, rel=1e-4
            )
    assert kp.features(
        X, kp.nystrom_ridge(X, Y[:, :1], ROWS, KERNEL, 1e-3, intercept=False)
    ).shape == (300, 1)


def test_readers_of_models_take_predictions_of_a_vector(tmp_path):
    model, columns = [
        kp.nystrom_ridge(X, targets, ROWS, KERNEL, 1e-3, intercept=False)
        for targets in (Y[:, 0], Y[:, :1])
    ]
    expected = kp.features(X, columns)
    kp.save(tmp_path / "model.npz", model)
    assert np.array_equal(kp.features(X, kp.load(tmp_path / "model.npz")), expected[:, 0])
    np.save(tmp_path / "X.npy", X)
    for more, name in (
        ([], "out.npy"),
        (["--residual"], "off.npy"),
        ([], "out.npz"),
        (["--residual"], "off.npz"),
    ):
        words = ["apply", tmp_path / "model.npz", tmp_path / "X.npy", "-o", tmp_path / name, *more]
        assert kp.main([str(word) for word in words]) == 0
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    assert np.array_equal(np.load(tmp_path / "out.npz")["embedding"], expected)
    off = np.column_stack([expected, kp.residual(X, model)])
    assert np.array_equal(np.load(tmp_path / "off.npy"), off)
    assert np.array_equal(np.load(tmp_path / "off.npz")["embedding"], off)
    assert np.array_equal(kp.residual(X, model), kp.residual(X, columns))
    assert kp.explained_variance_ratio(X, model) == pytest.approx(
        kp.explained_variance_ratio(X, columns)
    )
    out = np.empty(1)
    kp.features_of(X[7], model, out)
    assert out == pytest.approx(expected[7], abs=1e-12)
    thin = kp.round_expansion(model, 1e6)
    assert kp.features(X, thin).shape == (300,)


def test_a_target_of_noise_left_nothing_of_one_that_is_smooth():
    # with the least largest residual all coefficients were those of the start, 0
    points = X[:, :1]
    smooth, noise = np.sin(points[:, 0]), np.random.default_rng(0).standard_normal(300)
    found = kp.kernel_ridge(points, np.c_[smooth, noise], kp.gaussian(0.2), 1e-20, intercept=False)
    assert found.values[0] < 1e-3 and found.values[1] <= 1
    K = naive.gaussian(points, points, 0.2)
    rest = np.linalg.norm(smooth - K @ found.coef[:, 0]) / np.linalg.norm(smooth)
    assert rest == pytest.approx(found.values[0], rel=0.1)


def test_coefficients_were_refused_for_not_being_points():
    # of expand: below 1e17 in float32, 1e150 in float64
    points, single, few = X[:60], X[:60].astype(np.float32), np.arange(0, 60, 3)
    K = naive.gaussian(points, points, 1.0)
    some = kp.gaussian(1.0)
    for Z, scale, near in ((single, 1e20, 1e-3), (points, 1e149, 1e-5)):
        y = scale * points[:, 0]
        all_of_them = kp.features(Z, kp.kernel_ridge(Z, y, some, 1e-4, intercept=False))
        assert (
            np.abs(
                all_of_them / scale - K @ np.linalg.solve(K + 1e-4 * np.eye(60), points[:, 0])
            ).max()
            < near
        )
        model = kp.nystrom_ridge(Z, y, few, kp.scaled(some, 1e-3), 1e-9, intercept=False)
        assert np.abs(model.coef).max() > (1e17 if scale == 1e20 else 1e150)
        assert np.isfinite(kp.features(Z, model)).all()
    values = np.linalg.eigvalsh(K)[::-1]
    for Z, scale in ((single, 1e-36), (points, 1e-300)):
        model = kp.kpca(Z, kp.scaled(some, scale), 30, centered=False)
        assert np.abs(model.coef).max() > (1e17 if scale == 1e-36 else 1e150)
        lengths = np.sum((kp.features(Z, model).astype(float) / np.sqrt(scale)) ** 2, axis=0)
        assert lengths == pytest.approx(values[:30], rel=1e-2 if scale == 1e-36 else 1e-8)


@pytest.mark.parametrize(
    "scale, dtype", [(1e-170, np.float64), (1e-300, np.float64), (1e-25, np.float32)]
)
def test_clusters_of_tiny_rows_were_one(scale, dtype):
    # squares of distances of 1e-170 are 0
    rows = np.random.default_rng(0).standard_normal((40, 2)) + np.repeat([[0.0], [20.0]], 20, 0)
    near = kp.kernel_kmeans(rows, 2, restarts=10)
    tiny = kp.kernel_kmeans((scale * rows).astype(dtype), 2, restarts=10)
    assert sorted(np.bincount(tiny.labels)) == [20, 20]
    means = rows.reshape(2, 20, 2).mean(1)
    assert tiny.centers[tiny.labels[[0, -1]]] / dtype(scale) == pytest.approx(means, rel=1e-5)
    assert tiny.cost == pytest.approx(near.cost * scale**2, rel=1e-5)


def test_two_clusters_of_four_tiny_numbers_were_one():
    found = kp.kernel_kmeans(1e-170 * np.array([[0.0], [1.0], [10.0], [11.0]]), 2, restarts=10)
    assert found.labels[0] == found.labels[1] != found.labels[2] == found.labels[3]


# A learned metric


def held_out(n, seed=0):
    return kp._draw_uniformly(n, n, kp._key(seed, kp._HELD_OUT))[: -(-n // 10)]


def test_a_learned_metric_is_the_naive_one(rng):
    A = rng.standard_normal((150, 4))
    B = np.column_stack([A[:, 0] ** 2, 100 * A[:, 1]])
    errors, metrics = naive.learned_metric(A, B, 2.0, 1e-3, 3, held_out(150))
    M, model, found = kp.learn_metric(A, B, kp.gaussian(2.0), 1e-3, 200, max_iterations=3)
    assert found == pytest.approx(errors, rel=1e-5)
    assert np.abs(M - metrics[int(errors.argmin())]).max() < 1e-5
    rows, kernel = np.arange(150), kp.gaussian(2.0)
    again = kp.nystrom_ridge(kp.scale_points(A, M), B, rows, kernel, 1e-3, intercept=True)
    predicted = kp.features(kp.scale_points(A[:9], M), model)
    assert predicted == pytest.approx(
        kp.features(kp.scale_points(A[:9], M), again), rel=1e-4, abs=1e-4
    )


def test_a_model_of_a_metric_took_a_frame_that_was_not_scaled(rng, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.standard_normal((60, 2)), columns=["a", "b"])
    M, model, errors = kp.learn_metric(frame, frame["a"] ** 2, kp.gaussian(2.0), 1e-3, 30)
    assert model.names == b'["scaled a", "scaled b"]'
    kp.save(tmp_path / "model.npz", model)
    points = kp.scale_points(frame, M)
    for one in (model, kp.load(tmp_path / "model.npz")):
        assert np.isfinite(kp.features(points, one)).all()
        for wrong in (frame, frame[["b", "a"]]):
            with pytest.raises(ValueError, match='^features: X and model must .* got .*"scaled a"'):
                kp.features(wrong, one)
    _, plain, same = kp.learn_metric(frame.to_numpy(), frame["a"] ** 2, kp.gaussian(2.0), 1e-3, 30)
    assert plain.names == b"" and np.array_equal(same, errors)


def test_a_metric_learned_by_linear_ridge_is_its_coefficient_vector_squared(rng):
    A, beta = rng.standard_normal((200, 5)), np.array([3.0, 0.0, -1.0, 0.0, 0.0])
    kept = np.setdiff1d(np.arange(200), held_out(200))
    P = A[kept] - A[kept].mean(0)  # the intercept
    b = np.linalg.solve(P.T @ P + 50 * np.eye(5), P.T @ (P @ beta))
    M, _, errors = kp.learn_metric(A, A @ beta, kp.linear(), 50.0, 50, max_iterations=1)
    assert errors[1] < 0.2 * errors[0]  # the metric is larger along b, where the ridge counts less
    assert np.abs(M - 5 * np.outer(b, b) / (b @ b)).max() < 1e-9


def test_a_learned_metric_forgets_columns_without_influence(rng):
    A = rng.standard_normal((1200, 20))
    y = np.sin(2 * A[:, 0]) * A[:, 1]
    train, new = slice(0, 900), slice(900, None)
    M, model, errors = kp.learn_metric(A[train], y[train], kp.gaussian(4.0), 1e-3)
    gaps = kp.features(kp.scale_points(A[new], M), model) - y[new]
    # an error of 1 is that of the mean
    assert errors[0] > 0.6 and np.var(gaps) < 0.05 * np.var(y[new])
    assert M.diagonal()[:2].sum() > 0.95 * M.trace() and M.trace() == pytest.approx(20.0)


def test_a_metric_that_does_not_help_is_the_identity(rng):
    A = rng.standard_normal((300, 3))
    M, _, errors = kp.learn_metric(
        A, rng.standard_normal(300), kp.gaussian(1.0), 1e3, max_iterations=3
    )
    best = int(errors.argmin())
    assert errors.size == 4 and np.array_equal(M, np.eye(3)) == (best == 0)
    assert np.array_equal(
        kp.learn_metric(A, A[:, 0], kp.gaussian(1.0), 1.0, max_iterations=0)[0], np.eye(3)
    )


@pytest.mark.parametrize(
    "A, y",
    [
        (np.ones((30, 2)), np.arange(30.0)),
        (np.arange(60.0).reshape(30, 2), np.zeros(30)),
        (np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([1.0, 2.0])),
        (np.column_stack([np.arange(30.0), np.ones(30)]), np.sin(np.arange(30.0))),
    ],
)
def test_metrics_of_points_without_information_are_finite(A, y):
    M, model, errors = kp.learn_metric(A, y, kp.gaussian(3.0), 1e-3)
    assert np.isfinite(M).all() and np.isfinite(errors).all()
    assert np.isfinite(kp.features(kp.scale_points(A, M), model)).all()


def test_a_learned_metric_of_single_precision_far_away_and_of_large_targets(rng):
    A = rng.standard_normal((400, 3))
    y = A[:, 1] ** 2
    M = kp.learn_metric(A, y, kp.gaussian(2.0), 1e-2)[0]
    single, model, _ = kp.learn_metric(A.astype(np.float32), y, kp.gaussian(2.0), 1e-2)
    assert model.coef.dtype == np.float32 and np.abs(single - M).max() < 1e-2
    far = kp.learn_metric(A + 1e5, y, kp.gaussian(2.0), 1e-2)[0]
    large = kp.learn_metric(A, 1e140 * y, kp.gaussian(2.0), 1e-2)[0]
    assert np.abs(far - M).max() < 1e-4 and np.abs(large - M).max() < 1e-9


def test_each_metric_of_a_round_was_decomposed_three_times(monkeypatch, rng):
    A = rng.standard_normal((300, 13))
    decomposed = []
    solve = kp._small_eigen
    monkeypatch.setattr(kp, "_small_eigen", lambda M: decomposed.append(len(M)) or solve(M))
    M, model, errors = kp.learn_metric(
        A, A[:, 0] ** 2, kp.gaussian(4.0), 1e-2, 50, max_iterations=3
    )
    assert len(errors) == 4 and decomposed.count(13) == 3
    monkeypatch.undo()
    landmarks = kp.rpcholesky(kp.scale_points(A, M), kp.gaussian(4.0), 50)
    P = kp.scale_points(A, M)
    again = kp.nystrom_ridge(P, A[:, 0] ** 2, landmarks, kp.gaussian(4.0), 1e-2, intercept=True)
    assert np.abs(kp.features(P, again) - kp.features(P, model)).max() < 1e-9


def test_memory_of_a_metric_was_checked_after_its_first_fit(monkeypatch):
    monkeypatch.setattr(kp, "_PHYSICAL_MEMORY", 8 * 9 * 1999**2)
    monkeypatch.setattr(kp, "rpcholesky", lambda *arguments: pytest.fail("fitted"))
    with pytest.raises(ValueError, match="learn_metric: X must be smaller: .* 288 MB"):
        kp.learn_metric(np.eye(3, 2000), np.eye(3), kp.gaussian(4.0), 1e-2)


def test_a_learned_metric_does_not_depend_on_threads(threads, rng):
    A = rng.standard_normal((700, 12))
    B = A[:, :2] ** 2

    def call():
        return kp.learn_metric(A, B, kp.laplacian(3.0), 1e-2, 300, 5, max_iterations=2)

    one, two = threads(1, call), threads(2, call)
    assert all(map(np.array_equal, (one[0], one[1].coef, one[2]), (two[0], two[1].coef, two[2])))


@pytest.mark.parametrize(
    "changed, text",
    [
        ({"X": X[:1]}, "X must have at least 2 rows, got 1"),
        ({"Y": np.ones(3)}, "Y must have 300 rows, got 3"),
        (
            {"kernel": kp.laplacian(1.0, norm=1)},
            "kernel must be polynomial or of the Euclidean distance",
        ),
        ({"lam": 0.0}, "lam must be at least"),
        ({"max_iterations": -1}, "max_iterations must be an int from 0"),
        ({"s": 0}, "s must be an int from 1"),
        ({"seed": -1}, "seed must be an int from 0"),
    ],
)
def test_learn_metric_refuses_by_name(changed, text):
    sound = {"X": X, "Y": Y, "kernel": KERNEL, "lam": 1.0}
    with pytest.raises(ValueError, match="learn_metric: " + text):
        kp.learn_metric(**{**sound, **changed})


# Bandwidth and ridge by leave-one-out


def test_leave_one_out_errors_are_those_of_n_models():
    points, targets, rows = X[:60], Y[:60], np.arange(0, 60, 9)
    found = kp.choose(points, targets, rows, KERNEL)
    total = ((targets - targets.mean(0)) ** 2).sum()
    sound = found.lams / found.lams[:, -1:] > 1e-6  # below, rounding errors grow like 1 / lam
    for i, j in np.argwhere(sound & (found.factors < 2.0)[:, None]):
        K_ZX = naive.gaussian(points[rows], points, 2.0 * found.factors[i])
        expected = naive.left_out(K_ZX, K_ZX[:, rows], targets, found.lams[i, j]) / total
        assert found.errors[i, j] == pytest.approx(expected, rel=1e-8 if expected > 2.0 else 1e-12)
    # wide kernels: the normal equations above lose their digits, n models of the module do not
    for i, j in ((5, 9), (7, 13), (9, 19)):
        kernel, total_here = kp.gaussian(2.0 * found.factors[i]), 0.0
        for p in range(60):
            kept = np.arange(60) != p
            model = kp.nystrom_ridge(
                points[kept], targets[kept], points[rows], kernel, found.lams[i, j], intercept=True
            )
            total_here += ((kp.features(points[p : p + 1], model) - targets[p]) ** 2).sum()
        assert found.errors[i, j] == pytest.approx(total_here / total, rel=1e-7)
    i, j = divmod(np.flatnonzero(found.errors == found.error)[0], 20)
    assert found.kernel == kp.gaussian(2.0 * found.factors[i])
    assert found.lam == found.lams[i, j] and found.error <= 1.000001 * found.errors.min()


def test_the_choice_predicts_the_error_of_the_model_on_new_points():
    rng = np.random.default_rng(1)
    points, new = rng.random((3000, 2)), rng.random((3000, 2))
    target = lambda P: np.sin(20.0 * P[:, 0]) * np.cos(15.0 * P[:, 1])  # noqa: E731
    y = target(points) + 0.3 * rng.standard_normal(3000)
    rows, median = np.arange(0, 3000, 30), kp.gaussian(kp.median_bandwidth(points))
    found = kp.choose(points, y, rows, median)
    model = kp.nystrom_ridge(points, y, rows, found.kernel, found.lam, intercept=False)
    error = np.mean((kp.features(new, model) - target(new)) ** 2) + 0.09  # the noise of new targets
    # 2.5 deviations of a mean of 3000 squared errors
    assert error / y.var() == pytest.approx(found.error, rel=0.08)
    median_rule = found.errors[4].min()
    assert found.error < 0.5 * median_rule


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
@pytest.mark.parametrize(
    "name", ["gaussian", "laplacian", "matern", "cauchy", "rational_quadratic"]
)
def test_every_bandwidth_is_a_multiple_of_the_given_one(name, monkeypatch):
    seen, left_out = [], kp._left_out
    monkeypatch.setattr(kp, "_left_out", lambda *given: seen.append(given[3]) or left_out(*given))
    kp.choose(X, Y, ROWS, kp._KERNELS[name](3.0))
    sigmas = [kp._sigma_of(found.kernel) for found in seen]
    assert sigmas == pytest.approx(3.0 * 2.0 ** np.arange(-4.0, 6.0), rel=1e-15)
    kp.choose(X, Y, ROWS, kp.laplacian(3.0, norm=1))
    assert kp._sigma_of(seen[-1].kernel) == pytest.approx(96.0, rel=1e-15)


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
def test_units_of_targets_and_places_of_points_do_not_matter():
    found = kp.choose(X, Y, ROWS, KERNEL)
    for a, b in ((1e100, 1.0), (1e-100, 1.0), (1.0, 1e3)):
        same = kp.choose(b * X, a * Y, ROWS, kp.gaussian(2.0 * b))
        assert same.errors == pytest.approx(found.errors, rel=1e-4)
        assert same.lam == pytest.approx(found.lam)
    blind = kp.choose(X, None, ROWS, KERNEL, 2)
    for moved in (X + 1e5, (X + 1e3).astype(np.float32)):
        same = kp.choose(moved, None, ROWS, KERNEL, 2)
        assert same.errors.min(1) == pytest.approx(blind.errors.min(1), rel=0.01)
    noisy = Y + 0.1 * np.random.default_rng(4).standard_normal(Y.shape)
    found = kp.choose(X, noisy, ROWS, KERNEL)
    single = kp.choose(X.astype(np.float32), noisy, ROWS, KERNEL)
    assert single.errors.dtype == np.float64
    # the rank of 50 landmarks in float32 is lower
    assert single.error == pytest.approx(found.error, rel=0.2)


def smooth_targets(n, rng):
    points = rng.standard_normal((n, 3)).astype(np.float32)
    return points, np.sin(2.0 * points[:, 0].astype(np.float64)) + points[:, 2]


def test_float32_landmarks_lost_pivots_and_with_them_predictions_at_small_ridges(rng):
    pytest.importorskip("sklearn")
    # Errors were .01 to .1. Rounded coefficients of 1e5 cause errors of 1e-7 times that.
    points, y = smooth_targets(5000, rng)
    new = rng.standard_normal((1000, 3)).astype(np.float32)
    y = y + 0.3 * rng.standard_normal(5000)
    kernel = kp.gaussian(2.0)
    for lam in (1e-4, 1e-2):
        given = kp.LandmarkRidge(300, lam, kernel=kernel).fit(points, y)
        rows = given.landmarks_
        exact = kp.nystrom_ridge(np.float64(points), y, rows, kernel, lam, intercept=True)
        expected = kp.features(np.float64(new), exact)
        single = kp.nystrom_ridge(points, y, rows, kernel, lam, intercept=True)
        assert single.coef.dtype == single.points.dtype == np.float32
        for found in (kp.features(new, single), given.predict(new)):
            assert np.abs(found - expected).max() < 1e-6 * np.abs(single.coef).sum() / 30


@pytest.mark.parametrize("sigma, most", [(2.0, 0.018), (8.0, 0.5)])
def test_a_ridge_chosen_in_float32_was_too_large_for_smooth_targets(sigma, most):
    pytest.importorskip("sklearn")
    # At sigma = 2, the error was .0245. At sigma = 8, a smaller ridge has coefficients of 1e7.
    rng = np.random.default_rng(0)
    points, y = smooth_targets(5000, rng)
    new, truth = smooth_targets(1000, rng)
    found = kp.LandmarkRidge(300, "auto", kernel=kp.gaussian(sigma)).fit(points, y).predict(new)
    assert np.std(found - truth) < most


def test_slabs_threads_and_files_do_not_change_a_choice(threads, monkeypatch, tmp_path):
    found = kp.choose(X, Y, ROWS, KERNEL)
    monkeypatch.setattr(kp, "_SLAB", 128)
    parts = kp.choose(X, Y, ROWS, KERNEL)
    assert parts.errors == pytest.approx(found.errors, rel=1e-6)
    assert all(
        np.array_equal(threads(count, kp.choose, X, Y, ROWS, KERNEL).errors, parts.errors)
        for count in (1, 2)
    )
    kp.save(tmp_path / "c.npz", found)
    again = kp.load(tmp_path / "c.npz")
    assert again[:3] == found[:3] and np.array_equal(again.lams, found.lams)


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
@pytest.mark.parametrize(
    "points, targets",
    [
        (np.ones((9, 2)), np.arange(9.0)),
        (np.ones((1, 2)), np.ones(1)),
        (X[:30], np.full(30, 5.0)),
        (X[:30], np.zeros(30)),
        (np.repeat(X[:3], 9, axis=0), np.arange(27.0)),
        (X[:30] * 1e150 / 9.0, X[:30, 0] * 1e149),
        (np.ones((9, 2)), None),
        (np.ones((1, 2)), None),
        (X[:30, :1], None),
    ],
)
def test_degenerate_points_and_targets_still_give_a_choice(points, targets):
    kernel = kp.gaussian(kp.median_bandwidth(points))
    found = kp.choose(points, targets, np.arange(len(points)), kernel)
    assert np.isfinite(found[1:3]).all() and found.lam > 0.0
    linear = kp.choose(0.0 * points, targets, np.arange(len(points)), kp.linear())
    assert np.isfinite(linear.errors).all()


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
def test_equal_points_left_out_one_by_one_hid_overfitting():
    # nine copies of far points: without all nine, the mean of the other two, for a tiny ridge
    rng = np.random.default_rng(2)
    y = rng.standard_normal(27) + 290.0
    copies = np.repeat(100.0 * np.eye(3), 9, axis=0)
    found = kp.choose(copies, y, np.array([0, 9, 18]), kp.gaussian(1.0))
    groups = y.reshape(3, 9)
    means = groups.mean(1)
    expected = ((groups - (means.sum() - means)[:, None] / 2) ** 2).sum()
    assert found.errors[4, 0] == pytest.approx(expected / (27 * y.var()), rel=1e-6)
    # every point four times, with noise: a tiny ridge learned the copies
    P = np.repeat(rng.random((60, 2)), 4, axis=0)
    y = P[:, 0] + np.repeat(0.5 * rng.standard_normal(60), 4)
    first = slice(None, None, 4)
    found = kp.choose(P, y, P[first], kp.gaussian(0.5))
    once = kp.choose(P[first], y[first], P[first], kp.gaussian(0.5))
    assert found.errors == pytest.approx(once.errors, rel=1e-6)


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
@pytest.mark.parametrize("intercept", [True, False])
def test_leave_one_out_with_weights_and_equal_points_is_that_of_refitted_models(intercept, rng):
    P = rng.standard_normal((40, 3))[rng.integers(40, size=60)]
    y = np.column_stack([np.sin(P[:, 0]), P[:, 1] ** 2]) + rng.standard_normal((60, 1)) + 290.0
    weights = rng.integers(0, 4, 60).astype(float)
    Z = P[::9]
    found = kp.choose(P, y, Z, kp.gaussian(2.0), intercept=intercept, weights=weights)
    total = weights @ ((y - np.average(y, 0, weights)) ** 2).sum(1)
    for i, j in ((4, 12), (5, 9), (2, 19)):
        kernel, squares = kp.gaussian(2.0 * found.factors[i]), 0.0
        for p in np.flatnonzero(weights):
            kept = (P != P[p]).any(1)
            model = kp.nystrom_ridge(
                P[kept],
                y[kept],
                Z,
                kernel,
                found.lams[i, j],
                intercept=intercept,
                weights=weights[kept],
            )
            squares += weights[p] * ((kp.features(P[p : p + 1], model) - y[p]) ** 2).sum()
        assert found.errors[i, j] == pytest.approx(squares / total, rel=1e-10)
    counts = weights.astype(int)
    again = kp.choose(
        np.repeat(P, counts, 0), np.repeat(y, counts, 0), Z, kp.gaussian(2.0), intercept=intercept
    )
    assert again.errors == pytest.approx(found.errors, rel=1e-6)


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
@pytest.mark.parametrize("sizes", [(3, 1, 9, 40, 7), (60, 2, 30, 28)], ids=["small", "large"])
@pytest.mark.parametrize("intercept", [True, False])
def test_errors_without_a_group_are_those_of_refitted_models(intercept, sizes, rng):
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    n = len(groups)
    P = rng.standard_normal((n, 3))[rng.integers(n, size=n)]  # some are in several groups
    effects = rng.standard_normal((len(sizes), 2))[groups]
    y = np.column_stack([np.sin(P[:, 0]), P[:, 1] ** 2]) + effects + 9.0
    weights = rng.integers(0, 4, n).astype(float)
    Z = np.unique(P[::7], axis=0)
    given = dict(intercept=intercept, weights=weights)
    labels = np.array(list("zbqac"))[groups]
    found = kp.choose(P, y, Z, KERNEL, groups=labels, **given)
    total = weights @ np.square(y - np.average(y, 0, weights)).sum(1)
    K_Z = naive.gaussian(Z, Z, 2.0)
    for i, j in ((4, 12), (5, 9), (2, 19), (7, 15)):
        kernel = kp.gaussian(2.0 * found.factors[i])
        squares = 0.0
        for group in range(len(sizes)):
            kept = groups != group
            model = kp.nystrom_ridge(
                P[kept],
                y[kept],
                Z,
                kernel,
                found.lams[i, j],
                intercept=intercept,
                weights=weights[kept],
            )
            gaps = kp.features(P[~kept], model) - y[~kept]
            squares += weights[~kept] @ np.square(gaps).sum(1)
        assert found.errors[i, j] == pytest.approx(squares / total, rel=1e-7)
    # textbook: least squares on features from Cholesky's method, without a ridge for the intercept
    F = np.linalg.solve(np.linalg.cholesky(K_Z), naive.gaussian(Z, P, 2.0)).T
    F = np.column_stack([F, np.ones(n)]) if intercept else F
    ridge = np.sqrt(found.lams[4, 14]) * np.eye(len(Z), F.shape[1])
    squares = 0.0
    for group in range(len(sizes)):
        root = np.sqrt(weights * (groups != group))[:, None]
        A = np.vstack([root * F, ridge])
        B = np.vstack([root * y, np.zeros((len(Z), 2))])
        gaps = (F @ np.linalg.lstsq(A, B, rcond=None)[0] - y)[groups == group]
        squares += weights[groups == group] @ np.square(gaps).sum(1)
    assert found.errors[4, 14] == pytest.approx(squares / total, rel=1e-9)
    again = kp.choose(P, y, Z, KERNEL, groups=groups, **given)
    assert again.errors == pytest.approx(found.errors, rel=1e-5)  # in another order


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
def test_groups_of_equal_points_are_what_is_left_out_without_groups(rng):
    P = rng.standard_normal((40, 3))[rng.integers(40, size=60)]
    y = P[:, 0] + rng.standard_normal(60)
    same = np.unique(P, axis=0, return_inverse=True)[1].ravel()
    for targets in (y, None):
        for intercept in (True, False):
            given = P, targets, P[::9], KERNEL, 2
            found = kp.choose(*given, intercept=intercept, groups=same)
            expected = kp.choose(*given, intercept=intercept)
            assert found.errors == pytest.approx(expected.errors, rel=1e-5)
            assert found.kernel == expected.kernel


def test_the_error_at_new_patients_was_that_at_known_ones(rng):
    def patients(count):
        places = np.repeat(rng.standard_normal((count, 4)), 10, 0)
        points = places + 0.05 * rng.standard_normal(places.shape)
        effects = np.repeat(rng.standard_normal(count), 10)
        return points, np.sin(points[:, 0]) + effects, np.repeat(np.arange(count), 10)

    P, y, groups = patients(60)
    Z = P[::6]
    new, wanted, _ = patients(300)
    median = kp.gaussian(kp.median_bandwidth(P))

    def error(found):
        model = kp.nystrom_ridge(P, y, Z, found.kernel, found.lam, intercept=True)
        return np.square(kp.features(new, model) - wanted).mean() / y.var()

    alone = kp.choose(P, y, Z, median)
    whole = kp.choose(P, y, Z, median, groups=groups)
    assert error(alone) > 3.0 * alone.error
    assert error(whole) == pytest.approx(whole.error, rel=0.3)
    assert error(whole) < error(alone)


def test_an_offset_of_the_targets_changed_bandwidth_ridge_and_metric(rng):
    P, new = rng.standard_normal((2, 800, 2))
    target = lambda P: np.sin(2.0 * P[:, 0]) + P[:, 1]  # noqa: E731
    y = target(P) + 0.3 * rng.standard_normal(800)
    Z, median = P[:100], kp.gaussian(kp.median_bandwidth(P))
    near = kp.choose(P, y, Z, median)
    for offset in (290.0, 1e5):
        far = kp.choose(P, y + offset, Z, median)
        assert far.kernel == near.kernel and far.lam == near.lam
        assert far.errors == pytest.approx(near.errors, rel=1e-6)
        model = kp.nystrom_ridge(P, y + offset, Z, far.kernel, far.lam, intercept=True)
        assert np.square(kp.features(new, model) - offset - target(new)).mean() < 0.02
        metrics = [kp.learn_metric(P, y + b, median, 1e-1, max_iterations=2) for b in (0.0, offset)]
        assert np.abs(metrics[0][0] - metrics[1][0]).max() < 1e-6
        held = [kp.features(kp.scale_points(new, M), model) for M, model, _ in metrics]
        assert np.abs(held[0] + offset - held[1]).max() < 1e-5


def test_a_given_ridge_or_kernel_without_bandwidth_leaves_less_to_choose(rng):
    P = rng.standard_normal((300, 3))
    y = P[:, 0] + 0.3 * rng.standard_normal(300)
    both = kp.choose(P, y, ROWS, KERNEL)
    ridge = kp.choose(P, y, ROWS, kp.gaussian(4.0), factors=[1.0])
    assert ridge.kernel == kp.gaussian(4.0) and ridge.errors.shape == (1, 20)
    assert ridge.errors[0] == pytest.approx(both.errors[both.factors == 2.0][0], rel=1e-9)
    lam = both.lams[6, 12]
    given = kp.choose(P, y, ROWS, KERNEL, lam=lam)
    assert given.errors.shape == (10, 1) and given.lam == lam
    assert given.errors[6, 0] == pytest.approx(both.errors[6, 12], rel=1e-9)
    tiny = [kp.choose(P, y, ROWS, KERNEL, lam=lam, factors=[4.0]) for lam in (1e-300, 1e-14)]
    assert tiny[0].error == tiny[1].error and tiny[0].lam == 1e-300  # as `nystrom_ridge` raises it
    for kernel in (kp.linear(), kp.polynomial(2, 1.0, 1.0), kp.precomputed(P @ P.T)):
        points = np.arange(300)[:, None] if kernel.table.size else P
        found = kp.choose(points, y, ROWS, kernel)
        assert found.kernel == kernel and found.errors.shape == (1, 20)  # it was "gamma = 256"
    for wrong in ({"lam": 0.0}, {"factors": [1.0, -1.0]}, {"factors": []}, {"intercept": 1}):
        with pytest.raises(ValueError, match=f"^choose: {[*wrong][0]} must"):
            kp.choose(P, y, ROWS, KERNEL, **wrong)


def test_choose_said_nothing_when_nothing_was_learned(rng):
    P = rng.standard_normal((300, 8))
    noise = rng.standard_normal(300)
    for y in (noise, np.full(300, 1.0 / 3.0), np.ones(300)):
        with pytest.warns(UserWarning, match="^choose: a constant predicts Y as well"):
            found = kp.choose(P, y, ROWS, KERNEL)
        assert found.error == 0.0 or found.error > 0.98
        assert y.std() > 0.1 or found.kernel == KERNEL
    for sigma in (1e3, 4e-3):
        with pytest.warns(UserWarning, match="^choose: the bandwidth is at an end of the grid"):
            kp.choose(P[:, :1], np.sin(3.0 * P[:, 0]) + 0.1 * noise, ROWS, kp.gaussian(sigma))
    metric, _, errors = kp.learn_metric(P, np.full(300, 1.0 / 3.0), KERNEL, 1e-2)
    assert np.array_equal(metric, np.eye(8)) and errors.size == 1


def test_choose_without_targets_spoke_of_y(rng):
    P = rng.standard_normal((300, 32))
    with pytest.warns(UserWarning, match="^choose: components predict X no better than a constant"):
        kp.choose(P, None, np.arange(20), kp.gaussian(0.1), 1, factors=[1.0])


def test_too_few_landmarks_were_no_reason_for_an_end_of_the_grid(rng):
    P = rng.standard_normal((300, 1))
    with pytest.warns(UserWarning, match="may be beyond it, or there may be too few landmarks"):
        kp.choose(P, np.sin(3.0 * P[:, 0]), np.arange(150), kp.gaussian(20.0))


def test_a_ridge_for_all_points_is_chosen_with_all_points_as_landmarks(rng):
    P = rng.standard_normal((200, 2))
    y = np.sin(P[:, 0]) + 0.1 * rng.standard_normal(200)
    found = kp.choose(P, y, np.arange(200), kp.gaussian(2.0))
    assert found.error == pytest.approx(found.errors.min(), rel=1e-5) and found.error < 0.1
    new = rng.standard_normal((500, 2))
    gaps = kp.features(new, kp.kernel_ridge(P, y, found.kernel, found.lam)) - np.sin(new[:, 0])
    assert np.square(gaps).mean() < 0.01


def test_points_of_weight_zero_moved_the_origin_of_a_linear_kernel(rng):
    # with fewer landmarks than coordinates, the mean of the points is part of the model
    P, y = rng.standard_normal((60, 5)), rng.standard_normal(60)
    weights = rng.integers(0, 3, 60)
    one = kp.nystrom_ridge(P, y, P[:2], kp.linear(), 0.1, intercept=True, weights=weights)
    repeated = np.repeat(P, weights, 0), np.repeat(y, weights)
    two = kp.nystrom_ridge(*repeated, P[:2], kp.linear(), 0.1, intercept=True)
    assert np.abs(kp.features(P, one) - kp.features(P, two)).max() < 1e-10


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_linear_kernel_far_from_the_origin_lost_everything(dtype, rng):
    far = 1e8 if dtype == np.float64 else 1e3
    P = rng.standard_normal((400, 3)).astype(np.float32).astype(np.float64)
    moved = (P + far).astype(dtype)
    P = moved.astype(np.float64) - far  # the same numbers after rounding
    y = P @ [1.0, -2.0, 0.5] + 7.0
    rows = np.arange(0, 400, 40)
    for kernel in (kp.linear(), kp.polynomial(1, 2.0, 3.0)):
        near = kp.nystrom_ridge(P, y, rows, kernel, 1e-3, intercept=True)
        model = kp.nystrom_ridge(moved, y, rows, kernel, 1e-3, intercept=True)
        close = 1e-6 if dtype == np.float64 else 1e-2
        assert np.abs(kp.features(moved, model) - kp.features(P, near)).max() < close
        assert np.abs(kp.features(P, near) - y).max() < 1e-2
        # textbook: ridge about the means
        A = (P - P.mean(0)) * np.sqrt(kernel.gamma)
        w = np.linalg.solve(A.T @ A + 1e-3 * np.eye(3), A.T @ (y - y.mean()))
        assert np.abs(A @ w + y.mean() - kp.features(P, near)).max() < 1e-8
        kpca = kp.nystrom_kpca(moved, rows, kernel, 3, 0, centered=True)
        expected = np.linalg.svd(A)[1] ** 2
        assert kpca.values == pytest.approx(expected, rel=1e-6 if dtype == np.float64 else 1e-3)
        assert np.abs(kp.features(moved, kpca).mean(0)).max() < close


def test_the_rule_without_targets_unrolls_what_the_median_folds():
    # two components of an S, in closed form a rectangle of width 2 pi: a bandwidth below the median separates its arms
    rng = np.random.default_rng(3)
    t, height = 3 * np.pi * (rng.random(1500) - 0.5), 2.0 * rng.random(1500)
    S = np.column_stack([np.sin(t), height, np.sign(t) * (np.cos(t) - 1.0)])
    median, rows = kp.median_bandwidth(S), np.arange(0, 1500, 10)
    found = kp.choose(S, None, rows, kp.gaussian(median), 2)
    assert found.kernel == kp.gaussian(median * found.factors[found.errors.min(1).argmin()])
    assert kp._sigma_of(found.kernel) < 0.6 * median
    assert found.error < 0.7 * found.errors[4].min()
    wide = kp.choose(np.hstack([S, np.zeros((1500, 40))]), None, rows, kp.gaussian(median), 2)
    assert wide.kernel == found.kernel  # 32 random projections stand for 43 coordinates


@pytest.mark.parametrize("factor", [0.9, 1.1, 1e4])
@pytest.mark.parametrize("intercept, dtype", [(False, float), (True, float), (True, np.float32)])
def test_ridge_regression_computed_features_where_kernel_values_suffice(
    factor, intercept, dtype, monkeypatch
):
    points = X.astype(dtype)
    weights = np.arange(300.0) % 3
    kernel = kp.gaussian(0.7)
    found = kp.nystrom_map(points, ROWS, kernel)
    lam = factor * 1e-8 * weights.sum() / found.factor.diagonal().min() ** 2
    with monkeypatch.context() as change:
        if factor > 1.0:
            change.setattr(kp, "_map_features", None)
        model = kp.nystrom_ridge(points, Y, ROWS, kernel, lam, intercept=intercept, weights=weights)
    # least squares by QR, with sqrt(lam) w = 0 as further equations, and b without a ridge
    G = kp.nystrom(points.astype(float), points[ROWS].astype(float), kernel)
    G = np.column_stack([G, np.ones(300)]) if intercept else G
    ridge = math.sqrt(lam) * np.eye(50, G.shape[1])
    A = np.vstack([np.sqrt(weights)[:, None] * G, ridge])
    B = np.vstack([np.sqrt(weights)[:, None] * Y, np.zeros((50, 2))])
    expected = G @ np.linalg.lstsq(A, B, rcond=None)[0]
    rounding = 1e-6 if dtype is float else 1e-3  # coefficients are in the precision of the points
    assert np.abs(kp.features(points.astype(float), model) - expected).max() < rounding


def test_choose_took_a_minute_next_to_other_work_as_threads_of_lapack_waited(rng, monkeypatch):
    points = rng.standard_normal((520, 3))
    y = np.sin(points[:, 0])
    rows = np.arange(500)
    lams = [1e-3, 1e-1]

    def errors():
        return [kp.choose(points, y, rows, KERNEL, lam=lam, factors=[1.0]).error for lam in lams]

    with monkeypatch.context() as change:
        change.setattr(np.linalg, "eigh", None)
        own = errors()
    K = naive.gaussian(points, points, 2.0)
    F = np.linalg.solve(np.linalg.cholesky(K[:500, :500] + 1e-12 * np.eye(500)), K[:500]).T
    G = np.column_stack([F, np.ones(520)])
    for lam, error in zip(lams, own):
        H = G @ np.linalg.solve(G.T @ G + np.diag(np.r_[np.full(500, lam), 0.0]), G.T)
        left_out = (y - H @ y) / (1.0 - H.diagonal())
        assert error == pytest.approx(
            np.square(left_out).sum() / np.square(y - y.mean()).sum(), rel=1e-6
        )


def test_choose_refuses_before_it_works():
    for call, text in (
        (lambda: kp.choose(X, Y[:9], ROWS, KERNEL), "Y must have 300 rows"),
        (lambda: kp.choose(X, np.full(300, np.nan), ROWS, KERNEL), "Y must be finite"),
        (lambda: kp.choose(X, Y, [400], KERNEL), "landmarks must be"),
        (lambda: kp.choose(X, Y, ROWS, 2.0), "kernel must be a Kernel"),
        (lambda: kp.choose(X, None, ROWS, KERNEL, 0), "k must be an int from 1"),
        (lambda: kp.choose(X, None, ROWS, KERNEL, "2"), "k must be an int"),
    ):
        with pytest.raises(ValueError, match=f"^choose: {text}"):
            call()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_with_weights_and_intercept_is_least_squares_on_the_features(
    dtype, weighted, intercept, rng
):
    points = (rng.standard_normal((400, 3)) + 5.0).astype(dtype)
    targets = np.column_stack([np.sin(points[:, 0]) + 100.0, points[:, 1]])
    weights = rng.integers(0, 4, 400) if weighted else None
    kernel, few = kp.gaussian(0.7), points[:40]
    model = kp.nystrom_ridge(
        points, targets, few, kernel, 0.1, intercept=intercept, weights=weights
    )
    # textbook: rows sqrt(w) [F, 1] and sqrt(lam) [I, 0]; the column of ones has no ridge
    F = naive.gaussian(points.astype(float), few.astype(float), 0.7)
    values, V = np.linalg.eigh(naive.gaussian(few.astype(float), few.astype(float), 0.7))
    F = F @ V / np.sqrt(values)
    root = np.sqrt(np.ones(400) if weights is None else weights)[:, None]
    ones = np.ones((400, 1 if intercept else 0))
    A = np.vstack([root * np.hstack([F, ones]), np.sqrt(0.1) * np.eye(40, 40 + ones.shape[1])])
    b = np.vstack([root * targets, np.zeros((40, 2))])
    expected = np.hstack([F, ones]) @ np.linalg.lstsq(A, b, rcond=None)[0]
    assert np.abs(kp.features(points, model) - expected).max() < (
        1e-9 if dtype == np.float64 else 1e-2
    )
    if weighted:  # weights are numbers of equal points
        repeated = np.repeat(points, weights, 0), np.repeat(targets, weights, 0)
        other = kp.nystrom_ridge(*repeated, few, kernel, 0.1, intercept=intercept)
        assert np.allclose(kp.features(points, model), kp.features(points, other), atol=1e-3)
    assert (model.offset is not None) == intercept


def test_an_intercept_alone_is_the_weighted_mean():
    points, y = np.zeros((4, 1)), np.array([1.0, 2.0, 3.0, 10.0])  # features are constant
    model = kp.nystrom_ridge(
        points, y, [0], kp.gaussian(1.0), 1.0, intercept=True, weights=[1, 1, 0, 2]
    )
    assert kp.features(points, model) == pytest.approx(23.0 / 4.0, rel=1e-14)
    for weights, text in (
        ([1.0, 1.0], r"weights must have one weight per point \(4\), got 2"),
        ([1.0, 1.0, 1.0, -1.0], "weights must be finite and at least zero"),
        (np.zeros(4), "weights must be finite and at least zero"),
        ([1.0, 1.0, 1.0, np.nan], "weights must be finite and at least zero"),
        ("1111", "weights must be a 1-D array"),
    ):
        with pytest.raises(ValueError, match="^nystrom_ridge: " + text):
            kp.nystrom_ridge(
                points, y, [0], kp.gaussian(1.0), 1.0, intercept=False, weights=weights
            )
    with pytest.raises(ValueError, match="^nystrom_ridge: intercept must be True or False"):
        kp.nystrom_ridge(points, y, [0], kp.gaussian(1.0), 1.0, intercept=1)


# Exact ridge regression with an intercept


def bordered(K, T, lam):
    """Coefficients and intercept that minimise |T - K a - b|^2 + lam a^T K a, for an invertible K."""
    n = len(K)
    ones = np.ones((n, 1))
    A = np.block([[K + lam * np.eye(n), ones], [ones.T, np.zeros((1, 1))]])
    found = np.linalg.solve(A, np.vstack([T, np.zeros((1, T.shape[1]))]))
    return found[:n], found[n]


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-7), (np.float32, 2e-3)])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("name", ["gaussian", "linear", "polynomial"])
def test_exact_ridge_regression_had_no_intercept(name, offset, dtype, tolerance, rng):
    kernel = {
        "gaussian": kp.gaussian(1.5),
        "linear": kp.linear(),
        "polynomial": kp.polynomial(2, 0.5, 1.0),
    }[name]
    points = rng.standard_normal((150, 3)).astype(dtype)
    new = rng.standard_normal((20, 3)).astype(dtype)
    T = np.column_stack([np.sin(points[:, 0]), points[:, 1] ** 2]) + offset
    model = kp.kernel_ridge(points, T, kernel, 0.3)
    wide = points.astype(float)
    a, b = bordered(kp.gram(wide, wide, kernel), T, 0.3)
    expected = kp.gram(new.astype(float), wide, kernel) @ a + b
    scale = np.abs(expected - b).max() + 1e-4 * offset
    assert np.abs(kp.features(new, model) - expected).max() < tolerance * scale
    over = kp.nystrom_ridge(points, T, points, kernel, 0.3)
    assert np.abs(kp.features(new, over) - expected).max() < 10 * tolerance * scale
    assert (model.values < (1e-7 if dtype == np.float64 else 1e-4)).all()
    one = kp.kernel_ridge(points, T[:, 0], kernel, 0.3)
    assert np.allclose(kp.features(new, one), kp.features(new, model)[:, 0], rtol=1e-5)


def test_the_intercept_of_constant_targets_is_their_value():
    for n in (1, 2, 60):
        points = np.arange(float(n))[:, None]
        model = kp.kernel_ridge(points, np.full(n, 0.1), kp.gaussian(1.0), 1.0)
        assert (kp.features(points, model) == 0.1).all() and not model.values.any()


def test_exact_ridge_regression_knows_no_origin_of_targets_and_of_points(rng):
    points, y = rng.standard_normal((200, 3)), rng.standard_normal(200)
    near = kp.features(points, kp.kernel_ridge(points, y, kp.linear(), 0.5))
    far = kp.features(points + 1e8, kp.kernel_ridge(points + 1e8, y + 1e6, kp.linear(), 0.5)) - 1e6
    assert np.abs(far - near).max() < 2e-5  # points have rounding errors of 1e-8


@pytest.mark.slow
def test_the_intercept_of_many_points_is_that_of_few_landmarks(rng):
    # beyond 4096 points the preconditioner is a factor, and beyond 8192 K is not stored
    for n in (4200, 8300):
        points = rng.standard_normal((n, 2))
        y = np.sin(points[:, 0]) + 50.0
        kernel = kp.gaussian(3.0)
        model = kp.kernel_ridge(points, y, kernel, 1e-2, 200)
        over = kp.nystrom_ridge(points, y, kp.rpcholesky(points, kernel, 200), kernel, 1e-2)
        assert model.values.max() <= 1e-8
        assert np.abs(kp.features(points[:50], model) - kp.features(points[:50], over)).max() < 1e-4


def test_a_metric_of_targets_without_an_intercept(rng):
    A = rng.standard_normal((300, 3))
    y = A[:, 0] + 100.0
    by_default, without = (
        kp.learn_metric(A, y, kp.linear(), 1e-2, 50, intercept=intercept)
        for intercept in (True, False)
    )
    assert by_default.model.offset is not None and without.model.offset is None
    assert by_default.errors.min() < 1e-4 < without.errors.min()
