# SPDX-License-Identifier: BSD-3-Clause
"""Ridge regression, k-means and canonical correlations on a factor, against the dense matrices they stand for."""

import pathlib
import pickle
import subprocess
import sys

import numba
import numpy as np
import pytest

import kpcasketch as kp
from kpcasketch_tests import naive

X = np.random.default_rng(0).standard_normal((300, 3))
KERNEL = kp.gaussian(2.0)
ROWS = np.arange(0, 300, 6)
F = np.linalg.solve(np.linalg.cholesky(naive.gaussian(X[ROWS], X[ROWS], 2.0)), naive.gaussian(X[ROWS], X, 2.0)).T.copy()
LOW = F @ F.T
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])


@pytest.mark.parametrize("lam", [1e-3, 1.0, 50.0])
def test_ridge_regression_on_a_factor_is_that_on_its_matrix(lam):
    expected = naive.kernel_ridge(LOW, Y, lam)
    assert np.abs(F @ kp.kernel_ridge(F, Y, lam) - expected).max() < 1e-9
    assert np.abs(F @ kp.kernel_ridge(F, Y[:, 0], lam) - expected[:, 0]).max() < 1e-9
    expansion = kp.nystrom_ridge(X, Y, ROWS, KERNEL, lam)
    assert np.abs(kp.expand(X, expansion) - expected).max() < 1e-9


def test_predictions_are_those_of_formula_35(rng):
    new, lam = rng.standard_normal((40, 3)), 0.3
    alpha = np.linalg.solve(LOW + lam * np.eye(300), Y)
    K = naive.gaussian(X, X, 2.0)
    expected = naive.gaussian(new, X[ROWS], 2.0) @ np.linalg.pinv(K[np.ix_(ROWS, ROWS)]) @ K[ROWS] @ alpha
    assert np.abs(kp.expand(new, kp.nystrom_ridge(X, Y, ROWS, KERNEL, lam)) - expected).max() < 1e-7
    features = kp.nystrom_features(new, kp.nystrom_map(X, ROWS, KERNEL))
    assert np.abs(features @ kp.kernel_ridge(kp.nystrom(X, ROWS, KERNEL), Y, lam) - expected).max() < 1e-7


def test_kernel_kmeans_minimises_the_cost_of_its_matrix():
    found = kp.kernel_kmeans(F, 4, 0)
    indicators = np.eye(4)[found.labels]
    C = indicators / np.sqrt(indicators.sum(0))
    assert found.cost == pytest.approx(np.trace(LOW - C @ C.T @ LOW @ C @ C.T), rel=1e-10)
    assert found.cost == pytest.approx(kp.projection_cost(kp.LowRank(F), indicators), rel=1e-10)
    assert found.cost <= kp.kernel_kmeans(F, 4, 0, 1).cost


def test_rings_are_clusters_under_a_kernel_of_radii_and_not_by_distances():
    rings = np.concatenate([r * np.column_stack([np.cos(t), np.sin(t)])
                            for r, t in ((1, np.linspace(0, 6, 80)), (4, np.linspace(0, 6, 120)))])
    radii, ring = np.linalg.norm(rings, axis=1)[:, None], np.repeat([0, 1], [80, 120])
    by_radius = kp.nystrom(np.arange(200.0)[:, None], np.arange(0, 200, 9),
                           kp.precomputed(np.exp(-((radii - radii.T) ** 2))))
    for features, alike in ((by_radius, True), (rings, False)):
        labels = kp.kernel_kmeans(features, 2, 0).labels
        assert (len(set(labels[ring == 0])) == len(set(labels[ring == 1])) == 1 and labels[0] != labels[-1]) == alike


@pytest.mark.parametrize("squared", [True, False])
def test_correlations_are_those_of_both_programs(squared, rng):
    G = kp.nystrom(Y + 0.1 * rng.standard_normal(Y.shape), np.arange(0, 300, 10), KERNEL)
    found = kp.kernel_cca(F, G, 0.5, 2.0, 3, squared)
    expected = naive.correlations(F, G, 0.5, 2.0, squared)[:3]
    assert found.values == pytest.approx(expected, abs=1e-10)
    variates = F @ found.w, G @ found.v
    assert np.abs(variates[0].T @ variates[1] - np.diag(expected)).max() < 1e-9
    for factor, weights, lam in ((F, found.w, 0.5), (G, found.v, 2.0)):
        square = factor.T @ factor
        if squared:                                    # |(K + lam) alpha| = 1 with w = F^T alpha
            inner = np.linalg.pinv(factor.T) @ weights
            whitened = (factor @ factor.T + lam * np.eye(300)) @ inner
            assert np.abs(np.linalg.norm(whitened, axis=0) - 1).max() < 1e-6
        else:
            assert np.abs(weights.T @ (square + lam * np.eye(len(square))) @ weights - np.eye(3)).max() < 1e-9


def test_one_point_tells_the_two_programs_apart():
    one = np.ones((1, 1))
    assert kp.kernel_cca(one, one, 1.0, 1.0, 1).values == pytest.approx([0.25])
    assert kp.kernel_cca(one, one, 1.0, 1.0, 1, False).values == pytest.approx([0.5])


@pytest.mark.parametrize("n, r, q", [(1, 1, 1), (3, 2, 5), (300, 130, 40), (2500, 33, 129)])
def test_moments_are_the_product_of_the_factors(n, r, q, rng, monkeypatch):
    A, B = rng.standard_normal((n, r)), rng.standard_normal((n, q))
    for beyond in (kp._BLAS_BELOW, 0):
        monkeypatch.setattr(kp, "_BLAS_BELOW", beyond)
        assert np.abs(kp._column_products(A, B) - A.T @ B).max() < 1e-11
        symmetric = kp._column_products(A, A)
        assert np.abs(symmetric - A.T @ A).max() < 1e-11 and np.array_equal(symmetric, symmetric.T)


def test_downstream_has_the_same_bits_for_any_number_of_threads(same_bits):
    same_bits(kp.kernel_kmeans, F, 3, 0)
    same_bits(kp._column_products, F, F)


@pytest.mark.parametrize("lam", [1e-12, 1e-14, 1e-300])
@pytest.mark.parametrize("squared", [True, False])
def test_correlations_of_views_without_full_rank_exceeded_1(lam, squared, rng):
    low = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 10))
    assert np.abs(kp.kernel_cca(low, low, lam, lam, 4, squared).values - [1, 1, 1, 0]).max() < 1e-9
    assert (kp.kernel_cca(0 * low, low, lam, lam, 2, squared).values == 0).all()


@pytest.mark.parametrize("lam", [1e-16, 1e-300])
def test_ridge_regression_on_dependent_columns_was_singular(lam):
    assert np.abs(np.ones((5, 2)) @ kp.kernel_ridge(np.ones((5, 2)), np.arange(5.0), lam) - 2).max() < 1e-9
    assert (kp.kernel_ridge(np.zeros((5, 2)), np.arange(5.0), lam) == 0).all()


@pytest.mark.parametrize("scale", [1e40, 1e-50])
def test_targets_beyond_float32_were_lost_on_a_factor_in_float32(scale):
    single = F.astype(np.float32)
    small = kp.kernel_ridge(single, Y, 1.0)
    assert np.allclose(kp.kernel_ridge(single, scale * Y, 1.0), scale * small, rtol=1e-5, atol=1e-5 * scale)


def test_coefficients_overflowed_float32_without_a_word():
    with pytest.raises(ValueError, match="nystrom_ridge: Y must not be so large"):
        kp.nystrom_ridge(X.astype(np.float32), 1e40 * Y, ROWS[:9], KERNEL, 1.0)


def test_cost_of_clusters_stopped_early_was_that_of_centers_before():
    points = np.arange(6.0).reshape(-1, 1) ** 2
    found = kp.kernel_kmeans(points, 2, 0, 1, 1)
    assert found.cost == pytest.approx(((points - found.centers[found.labels]) ** 2).sum())


def test_a_small_ridge_was_lost_in_float32():
    u = np.random.default_rng(0).standard_normal(8192)
    F = np.c_[u, u + 1e-3 * np.random.default_rng(1).standard_normal(8192)].astype(np.float32)
    y = np.random.default_rng(2).standard_normal(8192)
    assert kp.kernel_ridge(F, y, 1e-4) == pytest.approx(kp.kernel_ridge(F.astype(float), y, 1e-4), rel=1e-9)


@pytest.mark.parametrize("squared", [True, False])
def test_a_direction_of_a_view_1e_8_times_smaller_than_another_was_lost(squared, rng):
    view = rng.standard_normal((300, 3)) * [1e4, 1.0, 1e-4]
    expected = naive.correlations(view, F, 1e-9, 1.0, squared)[:3]
    assert kp.kernel_cca(view, F, 1e-9, 1.0, 3, squared).values == pytest.approx(expected, rel=1e-6)


def denoised_circle():
    angles = np.linspace(0.0, 6.2, 150)
    clean = 3.0 * np.column_stack([np.cos(angles), np.sin(angles)])
    return clean, clean + 0.25 * np.random.default_rng(2).standard_normal(clean.shape)


@pytest.mark.parametrize("centered", [False, True])
def test_preimages_are_stationary_points_and_denoise(centered):
    clean, noisy = denoised_circle()
    expansion = (kp.centered_kpca if centered else kp.kpca)(noisy, kp.gaussian(1.5), 8)
    features = kp.expand(noisy, expansion)
    found = kp.kernel_pca_preimage(features, expansion)
    radii = np.linalg.norm(found, axis=1)
    assert np.abs(radii - 3.0).mean() < 0.75 * np.abs(np.linalg.norm(noisy, axis=1) - 3.0).mean()
    gammas = features @ expansion.coef.T + (1.0 / 150 if centered else 0.0)

    def height(z):                                         # <phi(z), sum gamma_i phi(x_i)>
        return (gammas * naive.gaussian(z, noisy, 1.5)).sum(1)
    for shift in np.concatenate([np.eye(2), -np.eye(2)]):
        assert (height(found + 1e-3 * shift) <= height(found) + 1e-9).all()
    assert (height(found) >= height(noisy) - 1e-9).mean() > 0.95


def test_learned_preimages_are_those_of_kernel_ridge_regression():
    _, noisy = denoised_circle()
    for kernel, of in [(kp.gaussian(1.5), lambda A, B: naive.gaussian(A, B, 1.5)),
                       (kp.polynomial(3, 0.5, 1.0), lambda A, B: (0.5 * A @ B.T + 1) ** 3)]:
        expansion = kp.kpca(noisy, kernel, 5)
        F, new = kp.expand(noisy, expansion), kp.expand(noisy[:7] + 0.1, expansion)
        expected = of(new, F) @ np.linalg.solve(of(F, F) + 0.2 * np.eye(150), noisy)
        assert np.abs(kp.kernel_pca_preimage(new, expansion, 0.2) - expected).max() < 1e-6


def test_learned_preimages_are_scikit_learns():
    decomposition = pytest.importorskip("sklearn.decomposition")
    _, noisy = denoised_circle()
    peer = decomposition.KernelPCA(6, kernel="rbf", gamma=0.3, fit_inverse_transform=True, alpha=0.5).fit(noisy)
    expansion = kp.centered_kpca(noisy, kp.gaussian(np.sqrt(0.5 / 0.3)), 6)
    ours = kp.kernel_pca_preimage(kp.expand(noisy + 0.1, expansion), expansion, 0.5)
    assert np.abs(ours - peer.inverse_transform(peer.transform(noisy + 0.1))).max() < 1e-6


def test_preimages_of_far_features_and_odd_kernels():
    _, noisy = denoised_circle()
    expansion = kp.kpca(noisy, kp.gaussian(1e-3), 4)
    for features in (np.zeros((2, 4)), np.full((2, 4), 1e9), np.full((2, 4), -1e-9)):
        assert np.isfinite(kp.kernel_pca_preimage(features, expansion)).all()
    assert kp.kernel_pca_preimage(np.zeros((1, 4), np.float32), expansion).dtype == np.float64
    with pytest.raises(ValueError, match="features must have as many columns"):
        kp.kernel_pca_preimage(np.zeros((2, 3)), expansion)
    with pytest.raises(ValueError, match="ridge must be positive unless"):
        kp.kernel_pca_preimage(np.zeros((2, 4)), kp.kpca(noisy, kp.laplacian(1.0), 4))
    table = kp.kpca(np.arange(5.0).reshape(-1, 1), kp.precomputed(np.eye(5)), 2)
    with pytest.raises(ValueError, match="precomputed or custom"):
        kp.kernel_pca_preimage(np.zeros((2, 2)), table, 1.0)


def test_preimages_guessed_from_an_offset_whether_a_model_was_centred():
    # of symmetric points the offset is 0; of weighted centers the mean is not that of equal weights
    two = kp.centered_kpca(np.array([[-1.0], [1.0]]), kp.gaussian(1.0), 1)
    assert two.offset[0] == 0.0
    assert np.allclose(kp.kernel_pca_preimage(kp.expand(two.points, two), two), two.points, atol=1e-8)
    three = kp.rskpca(np.array([[0.0], [1.0], [3.0]]), np.array([10.0, 1.0, 1.0]), kp.gaussian(1.0), 2, 0, True)
    assert np.allclose(kp.kernel_pca_preimage(kp.expand(three.points, three), three), three.points, atol=1e-8)


def test_preimages_of_models_that_do_not_know_their_mean_are_refused(rng):
    X = rng.standard_normal((30, 2))
    model = kp.centered_kpca(X, kp.gaussian(1.0), 2)
    features = kp.expand(X, model)
    thinned = kp.thin_expansion(model, kp.round_expansion(model.coef, 2.0, 0))
    for unknown in (thinned, model._replace(mean=np.empty(0)), model._replace(mean=np.array([np.nan]))):
        with pytest.raises(ValueError,
                           match="kernel_pca_preimage: ridge must be positive where expansion has an offset"):
            kp.kernel_pca_preimage(features, unknown)
        assert np.isfinite(kp.kernel_pca_preimage(features, unknown, 0.1)).all()
    with pytest.raises(ValueError, match="kernel_pca_preimage: expansion.mean must be empty, hold one number"):
        kp.kernel_pca_preimage(features, model._replace(mean=np.ones(29)))
    for mean in (np.full(30, np.inf), np.append(np.nan, np.ones(29))):
        with pytest.raises(ValueError, match="kernel_pca_preimage: expansion.mean must be empty"):
            kp.kernel_pca_preimage(features, model._replace(mean=mean))


def test_preimages_went_to_infinity_where_every_point_is_worse_than_none():
    X = np.array([[-0.573], [0.019], [-0.112]])
    for k in (1, 2, 3):
        for make in (kp.kpca, kp.centered_kpca):
            model = make(X, kp.gaussian(1.0), k)
            for factor in (-1.0, -1e3, 1e3):
                found = kp.kernel_pca_preimage(factor * kp.expand(X, model), model)
                assert np.isfinite(found).all() and np.abs(found).max() < 100


def test_models_saved_before_they_knew_their_mean_are_read(tmp_path, rng):
    model = kp.kpca(rng.standard_normal((9, 2)), kp.gaussian(1.0), 2)
    kp.save(tmp_path / "new.npz", model)
    with np.load(tmp_path / "new.npz") as file:
        np.savez(tmp_path / "old.npz", **{name: value for name, value in dict(file).items() if name != "mean"})
    old = kp.load(tmp_path / "old.npz")
    assert old.mean.size == 0 and np.array_equal(kp.expand(model.points, old), kp.expand(model.points, model))


# A transformer for scikit-learn

@pytest.mark.slow
@pytest.mark.parametrize("own", [{}, {"n_components": 3}, {"sampler": "rls-accelerated", "gamma": 0.5},
                                 {"sampler": "kmeans"}])
def test_the_transformer_is_an_estimator_as_scikit_learn_checks_it(own):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    results = checks.check_estimator(kp.LandmarkFeatures(landmarks=8, **own), on_skip=None, on_fail=None)
    assert len(results) > 40
    assert not [(result["check_name"], result["exception"]) for result in results if result["status"] == "failed"]


@pytest.mark.slow
def test_the_transformer_serves_a_pipeline_and_a_search():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    rng = np.random.default_rng(0)
    points = rng.standard_normal((400, 2))
    y = (np.linalg.norm(points, axis=1) > 1.2).astype(int)         # a circle: no line tells them apart
    pipeline = make_pipeline(kp.LandmarkFeatures(60), LogisticRegression(C=1e3))
    search = GridSearchCV(pipeline, {"landmarkfeatures__n_components": [1, None]}, cv=3).fit(points, y)
    assert search.best_score_ > 0.93
    fitted = pipeline.fit(points, y)[0]
    assert fitted.get_feature_names_out().shape == (60,) and repr(fitted) == "LandmarkFeatures(landmarks=60)"
    features = fitted.transform(points)
    assert np.array_equal(features, kp.nystrom_features(points, fitted.map_)) and fitted.landmarks_.shape == (60,)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(points), features)
    with pytest.raises(ValueError, match="features"):
        pipeline.predict(np.ones((3, 5)))
    assert fitted.set_params(n_components=2).transform(points).shape == (400, 60)      # what was fitted counts
    near = kp.LandmarkFeatures(60, sampler="kmeans").fit(points)       # centers, which are no rows
    assert near.landmarks_.shape == (60, 2)
    K = kp.gram(points, points, near.kernel_)

    def error(by):
        return np.linalg.norm(K - by.transform(points) @ by.transform(points).T, 2)
    assert error(near) < error(kp.LandmarkFeatures(60, sampler="uniform").fit(points))
    # its defaults serve a linear model: ridge regression on features is kernel ridge regression with K~
    target = np.sin(3.0 * points[:, 0]) + points[:, 1] ** 2
    assert make_pipeline(kp.LandmarkFeatures(), Ridge(1e-3)).fit(points, target).score(points, target) > 0.98
    centred = kp.LandmarkFeatures(60, n_components=5, centered=True).fit(points)
    expected = kp.nystrom_kpca(points, centred.landmarks_, centred.kernel_, 5, 0, True)
    assert np.array_equal(centred.transform(points), kp.expand(points, expected))
    assert np.abs(centred.transform(points).mean(0)).max() < 1e-12
    for wrong, match in (({"centered": True}, "centered is for components"),
                         ({"sigma": 1.0, "gamma": 1.0}, "only one of sigma and gamma"),
                         ({"sampler": "best"}, "sampler"), ({"landmarks": 0}, "landmarks must be"),
                         ({"landmarks": None}, "landmarks must be"), ({"n_components": "2"}, "n_components must be"),
                         ({"sampler": ["auto"]}, "sampler"), ({"n_components": 301}, "n_components must be at most"),
                         ({"kernel": "rbf"}, "^LandmarkFeatures: kernel must be"),
                         ({"random_state": -1}, "^LandmarkFeatures: random_state")):
        with pytest.raises(ValueError, match=match):
            kp.LandmarkFeatures(**wrong).fit(points)
    with pytest.warns(UserWarning, match="500 landmarks of 400 points are all of them"):
        assert kp.LandmarkFeatures(500).fit(points).transform(points).shape == (400, 400)
    with pytest.raises(TypeError, match="^LandmarkFeatures.__init__"):
        kp.LandmarkFeatures(n_landmarks=3)


def test_the_transformer_is_imported_when_it_is_asked_for():
    code = ("import sys, kpcasketch as kp; assert 'sklearn' not in sys.modules; sys.modules['sklearn'] = None\n"
            "try: kp.LandmarkFeatures\nexcept ImportError as error: print(error)\n"
            "try: kp.Nothing\nexcept AttributeError as error: print(error)")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                         cwd=pathlib.Path(kp.__file__).parent)
    assert "No module named 'sklearn" in run.stdout and "no attribute 'Nothing'" in run.stdout, run.stderr


# From compiled code of one's own

@numba.njit
def scored(points, model, out):
    for i in range(len(points)):
        kp.features_of(points[i], model, out[i])
    return out


@numba.njit
def values(kernel, P, Q):
    out = np.empty((len(P), len(Q)))
    for i in range(len(P)):
        for j in range(len(Q)):
            out[i, j] = kp.kernel_value(kernel, P[i], Q[j])
    return out


@pytest.mark.parametrize("kernel", [
    kp.gaussian(1.5), kp.laplacian(1.5), kp.laplacian(1.5, 1), kp.matern(1.5, 2.0), kp.matern(2.5, 2.0),
    kp.rational_quadratic(1.5, 2.0), kp.cauchy(2.0), kp.polynomial(3, 0.5, 1.0), kp.linear(),
    kp.scaled(kp.gaussian(1.0), 7.0), kp.custom(numba.njit(lambda x, y: np.minimum(x, y).sum()))], ids=str)
def test_kernel_values_of_pairs_are_those_of_the_gram_matrix(kernel, rng):
    P, Q = rng.standard_normal((30, 4)), rng.standard_normal((20, 4))
    expected = kp.gram(P, Q, kernel)
    assert np.allclose(values(kernel, P, Q), expected, rtol=1e-12, atol=1e-300)
    assert kp.kernel_value(kernel, P[0], Q[0]) == pytest.approx(expected[0, 0], rel=1e-12)
    assert np.allclose(values(kernel, P.astype(np.float32), Q), kp.gram(P.astype(np.float32).astype(float), Q, kernel))


def test_a_precomputed_kernel_is_looked_up_by_pairs():
    table = kp.precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))
    assert values(table, np.array([[0.0], [1.0]]), np.array([[1.0]])).tolist() == [[1.0], [3.0]]


def test_features_of_one_point_are_those_of_all(rng):
    X, new, kernel = rng.standard_normal((90, 3)), rng.standard_normal((40, 3)), kp.gaussian(1.5)
    for dtype, tolerance in ((np.float64, 1e-11), (np.float32, 2e-4)):
        P = X.astype(dtype)
        maps = [kp.fourier_features_map(k, 3, 33, 5, stored, paired)
                for k in (kernel, kp.laplacian(1.0, 1), kp.cauchy(1.0)) for stored in (True, False)
                for paired in (True, False)]
        maps += [kp.orthogonal_features_map(kernel, 3, 32), kp.quasi_features_map(kernel, 3, 9)]
        models = [(kp.centered_kpca(P, kernel, 4), kp.expand),
                  (kp.kpca(P, kernel, 4)._replace(offset=np.empty(0)), kp.expand),
                  (kp.nystrom_map(P, np.r_[:20, 3], kernel), kp.nystrom_features),
                  (kp.skpca(P, kernel, 40, 20, 4, centered=True), kp.skpca_transform),
                  *((map, kp.fourier_features) for map in maps)]
        for model, features in models:
            expected = features(new, model)
            assert np.allclose(scored(new, model, np.full(expected.shape, np.nan)), expected, atol=tolerance), model
    out = np.empty(4)
    assert kp.features_of(new[0], models[0][0], out) is None
    assert np.allclose(out, kp.expand(new[:1], models[0][0])[0], atol=2e-4)


def test_maps_whose_frequencies_are_not_at_hand_are_refused_for_one_point():
    kernel = kp.gaussian(1.0)
    for model in (kp.fastfood_features_map(kernel, 3, 8), kp.quasi_features_map(kernel, 3, 8, 0, False)):
        with pytest.raises(ValueError, match="features_of: model must be a plain map, or have stored frequencies"):
            kp.features_of(np.zeros(3), model, np.empty(8))
    with pytest.raises(Exception, match="features_of|_features_into|No implementation"):
        kp.features_of(np.zeros(3), (1, 2), np.empty(8))
