# SPDX-License-Identifier: BSD-3-Clause
"""Estimators for scikit-learn; the false alarms of its detector are in test_novelty.py."""

import doctest
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import kpcasketch as kp


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # many landmarks and few points
@pytest.mark.parametrize(
    "name, own",
    [
        ("LandmarkFeatures", {"landmarks": 8}),
        ("LandmarkFeatures", {"landmarks": 8, "n_components": 3}),
        ("LandmarkFeatures", {"landmarks": 8, "sampler": "rls-accelerated", "gamma": 0.5}),
        ("LandmarkFeatures", {"landmarks": 8, "sigma": "auto"}),
        ("LandmarkFeatures", {"landmarks": 8, "n_components": 0.9}),
        ("LandmarkClassifier", {}),
        ("LandmarkFeatures", {"landmarks": 8, "n_components": 3, "centered": False}),
        ("LandmarkFeatures", {"landmarks": 8, "sampler": "uniform", "kernel": kp.linear()}),
        ("LandmarkClassifier", {"landmarks": 20, "sigma": "auto", "lam": "auto"}),
        ("LandmarkClassifier", {"class_weight": "balanced"}),
        ("LandmarkClassifier", {"class_weight": "balanced", "lam": "auto"}),
        ("StreamingKernelPCA", {"n_components": 2, "m": 100, "ell": 10}),
        ("StreamingKernelPCA", {"n_components": 2, "m": 100, "ell": 10, "sigma": 1.0}),
        ("StreamingKernelPCA", {"m": 50, "ell": 10, "half_life": 20.0, "centered": False}),
        ("StreamingKernelPCA", {"m": 50, "ell": 10, "kernel": kp.laplacian(1.0, norm=1)}),
        ("LandmarkRidge", {}),
        ("LandmarkRidge", {"sampler": "rls", "sigma": 3.0, "random_state": None}),
        ("LandmarkRidge", {"landmarks": 20, "sigma": "auto"}),
        ("LandmarkRidge", {"landmarks": 20, "lam": "auto"}),
        ("LandmarkRidge", {"landmarks": 20, "sigma": "auto", "lam": "auto"}),
        ("NoveltyDetector", {}),
        ("NoveltyDetector", {"landmarks": 8, "false_alarms": 0.2, "random_state": None}),
        ("NoveltyDetector", {"landmarks": 8, "gamma": 0.5}),
        ("NoveltyDetector", {"landmarks": 8, "kernel": kp.laplacian(1.0, norm=1)}),
    ],
)
def test_estimators_pass_the_checks_of_scikit_learn(name, own):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    results = checks.check_estimator(getattr(kp, name)(**own), on_skip=None, on_fail=None)
    assert len(results) > 40
    assert not [
        (result["check_name"], result["exception"])
        for result in results
        if result["status"] == "failed"
    ]


@pytest.mark.slow
def test_the_transformer_serves_a_pipeline_and_a_search():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    points = rng.standard_normal((400, 2))
    y = (np.linalg.norm(points, axis=1) > 1.2).astype(int)  # a circle: no line tells them apart
    pipeline = make_pipeline(kp.LandmarkFeatures(60), LogisticRegression(C=1e3))
    search = GridSearchCV(pipeline, {"landmarkfeatures__n_components": [1, None]}, cv=3).fit(
        points, y
    )
    assert search.best_score_ > 0.93
    fitted = pipeline.fit(points, y)[0]
    assert (
        fitted.get_feature_names_out().shape == (60,)
        and repr(fitted) == "LandmarkFeatures(landmarks=60)"
    )
    features = fitted.transform(points)
    assert np.array_equal(
        features, kp.features(points, fitted.map_)
    ) and fitted.landmarks_.shape == (60,)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(points), features)
    with pytest.raises(ValueError, match="features"):
        pipeline.predict(np.ones((3, 5)))
    # what was fitted counts
    assert fitted.set_params(n_components=2).transform(points).shape == (400, 60)
    centers = kp.kmeans_select(points, 60).centers  # which are no rows
    near = kp.LandmarkFeatures(centers).fit(points)
    assert near.landmarks_.shape == (60, 2)
    K = kp.gram(points, points, near.kernel_)

    def error(by):
        return np.linalg.norm(K - by.transform(points) @ by.transform(points).T, 2)

    assert error(near) < error(kp.LandmarkFeatures(60, sampler="uniform").fit(points))
    # its defaults serve a linear model: ridge regression on features is kernel ridge regression with K~
    target = np.sin(3.0 * points[:, 0]) + points[:, 1] ** 2
    assert (
        make_pipeline(kp.LandmarkFeatures(), Ridge(1e-3)).fit(points, target).score(points, target)
        > 0.98
    )
    centred = kp.LandmarkFeatures(60, n_components=5).fit(points)
    expected = kp.nystrom_kpca(points, centred.landmarks_, centred.kernel_, 5, 0, centered=True)
    assert np.array_equal(centred.transform(points), kp.features(points, expected))
    assert np.abs(centred.transform(points).mean(0)).max() < 1e-12
    for wrong, match in (
        ({"centered": 1}, "centered must be True or False, got 1"),
        ({"centered": None, "n_components": 2}, "centered must be True or False, got NoneType"),
        ({"sigma": 1.0, "gamma": 1.0}, "either sigma or gamma must be given, got both"),
        ({"sampler": "best"}, "sampler"),
        ({"landmarks": 0}, "landmarks must be"),
        ({"landmarks": None}, "landmarks must be"),
        ({"n_components": "2"}, "n_components must be"),
        ({"sampler": ["auto"]}, "sampler"),
        ({"n_components": 301}, "n_components must be an int from 1 to 300, got 301"),
        (
            {"kernel": kp.gaussian(2.0), "gamma": 1.0},
            "sigma and gamma must be None if kernel is given",
        ),
        ({"kernel": "rbf"}, "^LandmarkFeatures: kernel must be"),
        ({"random_state": -1}, "^LandmarkFeatures: random_state"),
    ):
        with pytest.raises(ValueError, match=match):
            kp.LandmarkFeatures(**wrong).fit(points)
    assert kp.LandmarkFeatures(500).fit(points).transform(points).shape == (400, 400)
    with pytest.raises(TypeError, match="^LandmarkFeatures.__init__"):
        kp.LandmarkFeatures(n_landmarks=3)


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
def test_the_transformer_chooses_its_bandwidth_by_targets_classes_or_the_rule():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    points = rng.standard_normal((400, 2))
    median, few = kp.gaussian(kp.median_bandwidth(points)), kp.uniform_landmarks(400, 60)

    def chosen(y, **own):
        return kp.LandmarkFeatures(60, sigma="auto", **own).fit(points, y).kernel_

    target = np.sin(9.0 * points[:, 0])
    assert chosen(target) == kp.choose(points, target, few, median).kernel
    assert chosen(list(target)) == chosen(target) != median
    assert chosen(np.column_stack([target, target])) == chosen(target)
    classes = (np.linalg.norm(points, axis=1) // 0.8).astype(int)
    indicators = (classes[:, None] == np.unique(classes)).astype(float)
    expected = kp.choose(points, indicators, few, median).kernel
    names = np.array(["one", "two", "three", "four", "five", "six"])[classes]
    assert chosen(classes) == chosen(names) == chosen(names.astype(object)) == expected
    # Percentages were taken as classes.
    for numbers in (classes.astype(float), np.arange(400) % 57):
        assert chosen(numbers) == kp.choose(points, numbers, few, median).kernel
    assert chosen(None) == kp.choose(points, None, few, median, 10).kernel
    assert chosen(None, n_components=1) == kp.choose(points, None, few, median, 1).kernel
    with pytest.raises(ValueError, match="^LandmarkFeatures: either sigma or gamma must be given"):
        chosen(target, gamma=1.0)
    with pytest.raises(
        ValueError, match="^LandmarkFeatures: sigma must be a real number, got 'Auto'"
    ):
        kp.LandmarkFeatures(60, sigma="Auto").fit(points)
    with pytest.raises(ValueError, match="^LandmarkFeatures: Y must have 400 rows"):
        chosen(target[:9])


def test_features_of_components_have_shares_of_variance_and_preimages(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((500, 2))
    own = kp.LandmarkFeatures(200, 40, sigma=2.0, centered=True).fit(points)
    shares = own.explained_variance_ratio_
    assert np.array_equal(np.sort(shares), np.sort(kp.explained_variance_ratio(points, own.map_)))
    assert np.abs(own.inverse_transform(own.transform(points[:9])) - points[:9]).max() < 0.1
    linear = kp.LandmarkFeatures(9, 2, kernel=kp.linear()).fit(points)
    back = linear.inverse_transform(linear.transform(points[:9]), lam=1e-9)
    assert np.abs(back - points[:9]).max() < 1e-4
    with pytest.raises(ValueError, match="^LandmarkFeatures: lam must be positive unless"):
        linear.inverse_transform(linear.transform(points))
    with pytest.raises(ValueError, match="^LandmarkFeatures: n_components must be .* got None"):
        kp.LandmarkFeatures(9).fit(points).inverse_transform(np.ones((1, 9)))
    many = kp.LandmarkFeatures(20, 5).fit(rng.standard_normal((5000, 2)))
    exact = kp.explained_variance_ratio(rng.standard_normal((4000, 2)), many.map_)
    assert np.abs(many.explained_variance_ratio_ / exact - 1.0).max() < 0.2


@pytest.mark.parametrize("dtype, rounding", [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_features_of_fitted_points_were_computed_twice(dtype, rounding, rng, monkeypatch):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((700, 5)).astype(dtype)
    for kernel in (kp.gaussian(2.0), kp.linear()):  # the linear kernel has rank 5
        own = kp.LandmarkFeatures(60, kernel=kernel)
        with monkeypatch.context() as change:
            change.setattr(kp, "_map_features", None)
            made = own.fit_transform(points)
        assert made.dtype == dtype and made.shape == (700, len(own.landmarks_))
        assert np.abs(made - own.transform(points)).max() < rounding
        assert own.landmarks_.tolist() == kp.rpcholesky(points, kernel, 60).indices.tolist()
        # K~ = F F^T is exact in the rows of landmarks
        exact = kp.gram(points[own.landmarks_].astype(float), points.astype(float), kernel)
        assert np.abs(made[own.landmarks_].astype(float) @ made.T - exact).max() < 10 * rounding
        assert len(pickle.dumps(own.fit(points))) < 10 * 60**2  # 60^2 doubles, and not 700 * 60
    others = [{"sampler": "uniform"}, {"n_components": 3}, {"landmarks": 700}]
    cases = [(points, case) for case in others] + [(np.repeat(points, 2, 0), {})]  # equal points
    for some, case in cases:
        own = kp.LandmarkFeatures(**{"landmarks": 60} | case)
        made = own.fit_transform(some)
        assert np.array_equal(made, own.transform(some)) and made.shape[0] == len(some)


@pytest.mark.parametrize("lam", [10.0, 1e-3, 1e-8])
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_ridge_on_the_factor_of_the_sampler_is_ridge_over_its_landmarks(lam, dtype, tolerance, rng):
    pytest.importorskip("sklearn")
    X = rng.standard_normal((3000, 5)).astype(dtype)
    y = np.sin(X[:, 0]) + X[:, 1] ** 2
    kernel = kp.matern(0.5, 3.0)  # its pivots are not small
    for weights in (None, rng.uniform(0.5, 2.0, 3000)):
        own = kp.LandmarkRidge(60, lam, kernel=kernel).fit(X, y, weights)
        model = kp.nystrom_ridge(X, y, own.landmarks_, kernel, lam, intercept=True, weights=weights)
        assert np.abs(own.predict(X) - kp.features(X, model)).max() < tolerance


def test_the_regressor_is_ridge_regression_with_an_intercept_on_landmark_features(rng):
    linear_model = pytest.importorskip("sklearn.linear_model")
    points = rng.standard_normal((2000, 3)).astype(np.float32)
    y = np.column_stack([np.sin(2.0 * points[:, 0]) + 50.0, points[:, 1] ** 2])
    weights = rng.integers(0, 3, 2000)
    kept = weights > 0
    own = kp.LandmarkRidge(80, 0.1, sigma=2.0, random_state=3).fit(points, y, weights)
    landmarks = kp.rpcholesky(points[kept], kp.gaussian(2.0), 80, 3)
    F = kp.nystrom(points.astype(float), points[kept][landmarks.indices], kp.gaussian(2.0))
    other = linear_model.Ridge(0.1).fit(F, y, weights)
    assert np.abs(own.predict(points) - other.predict(F)).max() < 1e-3
    assert own.score(points, y) > 0.95
    one = pickle.loads(pickle.dumps(kp.LandmarkRidge(80, 0.1).fit(points, y[:, 0])))
    assert (
        one.predict(points).shape == (2000,) and repr(one) == "LandmarkRidge(lam=0.1, landmarks=80)"
    )
    best = kp.LandmarkRidge(80, 0.1, sigma="auto").fit(points, y)
    few = kp.uniform_landmarks(2000, 80)
    median = kp.gaussian(kp.median_bandwidth(points))
    assert best.kernel_ == kp.choose(points, y, few, median, lam=0.1).kernel and best.lam_ == 0.1
    ridge = kp.LandmarkRidge(80, "auto", sigma=2.0).fit(points, y)
    found = kp.choose(points, y, few, kp.gaussian(2.0), factors=[1.0])
    assert ridge.kernel_ == kp.gaussian(2.0) and ridge.lam_ == found.lam
    both = kp.LandmarkRidge(80, "auto", sigma="auto").fit(points, y)
    assert (both.kernel_, both.lam_) == kp.choose(points, y, few, median)[:2]
    for wrong, text in (
        (dict(lam=0.0), "lam must be at least"),
        (dict(lam="Auto"), "lam must be a real number"),
        (dict(landmarks=0), "landmarks must be an int"),
        (dict(sampler="best"), "sampler must be one of"),
    ):
        with pytest.raises(ValueError, match="^LandmarkRidge: " + text):
            kp.LandmarkRidge(**wrong).fit(points, y)
    with pytest.raises(ValueError, match="^LandmarkRidge: sample_weight must be finite and at"):
        kp.LandmarkRidge(9).fit(points, y, np.full(2000, -1.0))


def test_the_detector_learns_a_stream_and_goes_on_from_a_pickle(rng):
    pytest.importorskip("sklearn")
    blocks = [rng.standard_normal((300, 2)) for _ in range(10)]
    other = [block + [20.0, 0.0] for block in blocks]
    own = kp.NoveltyDetector(60, sigma=1.0)
    for block in blocks:
        own.partial_fit(block)
    assert (own.predict(other[0]) == -1).all() and (own.predict(blocks[0]) == 1).mean() > 0.9
    again = pickle.loads(pickle.dumps(own))
    for detector in (own, again):
        with pytest.warns(UserWarning, match="^NoveltyDetector: no point can be novel"):
            for pair in zip(blocks, other):  # more alarms than were allowed
                detector.partial_fit(np.concatenate(pair))
    assert (own.predict(other[0]) == 1).mean() > 0.85  # a place that has become known
    assert (own.predict(rng.uniform(40.0, 90.0, (99, 2))) == -1).all()
    assert own.offset_ == again.offset_ and len(own.residuals_) == 2000
    before = own.offset_, own.map_
    for row in blocks[0][:9]:
        own.partial_fit(row[None])
    with pytest.raises(ValueError, match="NoveltyDetector is expecting 2 features"):
        own.partial_fit(np.ones((3, 5)))
    assert own.map_ is not before[1] and own.fit(blocks[0]).residuals_.shape == (60,)


def test_verdicts_of_repeated_points_depended_on_the_number_of_rows(rng):
    pytest.importorskip("sklearn")
    base = rng.standard_normal((60, 3))
    own = kp.NoveltyDetector(10, 0.2).fit(base[rng.integers(60, size=1000)])
    together = own.predict(base)
    assert 0 < (together == -1).sum() < 30
    for size in (1, 3, 4, 5, 7):
        parts = [own.predict(base[i : i + size]) for i in range(0, 60, size)]
        assert np.array_equal(np.concatenate(parts), together)


def test_a_point_and_its_block_had_other_verdicts_on_both_sides_of_the_threshold():
    pytest.importorskip("sklearn")
    for seed in range(10):
        points = np.random.default_rng(seed).standard_normal((600, 2))
        own = kp.NoveltyDetector(50).fit(points)
        single = [own.predict(points[i : i + 1])[0] for i in range(600)]
        assert np.array_equal(single, own.predict(points))


def test_a_first_block_of_near_points_made_every_point_known_in_silence(rng):
    pytest.importorskip("sklearn")
    own = kp.NoveltyDetector(50, 0.2)
    with pytest.warns(UserWarning, match="^NoveltyDetector: 1 residuals cannot give"):
        own.partial_fit(1e-3 * rng.standard_normal((5, 2)))
    with pytest.warns(UserWarning, match="^NoveltyDetector: no point can be novel: sigma is too"):
        own.partial_fit(rng.standard_normal((300, 2)))


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
def test_integer_targets_of_the_regressor_were_classes(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((500, 3))
    y = np.round(3.0 * points[:, 0] + rng.standard_normal(500)).astype(np.int64)
    own = kp.LandmarkRidge(60, "auto", sigma="auto").fit(points, y)
    floats = kp.LandmarkRidge(60, "auto", sigma="auto").fit(points, y.astype(float))
    assert len(np.unique(y)) <= 32 and own.kernel_ == floats.kernel_ and own.lam_ == floats.lam_


@pytest.mark.parametrize("own", [{}, {"sigma": "auto"}, {"lam": "auto", "sigma": "auto"}])
def test_weights_of_the_regressor_are_numbers_of_equal_points(own, rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((1500, 2))  # above 1000, the median distance is one of some points
    y = np.sin(2.0 * points[:, 0]) + 0.5 * rng.standard_normal(1500)
    weights = rng.integers(0, 4, 1500)
    one = kp.LandmarkRidge(40, **own).fit(points, y, weights)
    two = kp.LandmarkRidge(40, **own).fit(np.repeat(points, weights, 0), np.repeat(y, weights))
    assert one.kernel_ == two.kernel_ and one.lam_ == pytest.approx(two.lam_)
    assert np.abs(one.predict(points) - two.predict(points)).max() < 1e-8
    kept = points[weights > 0]  # row numbers of the points given
    assert (kept[:, None] == points[one.landmarks_]).all(2).any(0).all()
    plain = kp.LandmarkRidge(40, **own).fit(points, y)
    ones = kp.LandmarkRidge(40, **own).fit(points, y, np.ones(1500))
    assert np.array_equal(plain.predict(points), ones.predict(points))


def test_a_refused_fit_changes_nothing_and_a_new_one_forgets_the_old(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((60, 3))
    y = points[:, 0]
    for own, wrong, options in (
        (kp.LandmarkFeatures(9, 2), (points[:, :1] * np.nan, None), {"sampler": "best"}),
        (kp.LandmarkRidge(9), (points[:, :1], y), {"lam": -1.0}),
        (kp.NoveltyDetector(9, 0.2), (points[:, :1], None), {"false_alarms": 2.0}),
    ):
        own.fit(points, y)
        sound = own.get_params()
        before = dict(vars(own))
        with pytest.raises(ValueError):
            own.set_params(**options).fit(points[:, :1], y)
        own.set_params(**sound)
        assert vars(own).keys() == before.keys() and own.n_features_in_ == 3
        assert all(vars(own)[name] is before[name] for name in before if name.endswith("_"))
    features = kp.LandmarkFeatures(9, 2).fit(points)
    assert hasattr(features, "explained_variance_ratio_")
    features.set_params(n_components=None).fit(points)
    assert not hasattr(features, "explained_variance_ratio_")


def test_fitted_estimators_serve_as_their_models(rng, tmp_path):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((90, 3))
    for own, model in (
        (kp.LandmarkFeatures(9).fit(points), "map_"),
        (kp.LandmarkFeatures(9, 2).fit(points), "map_"),
        (kp.LandmarkRidge(9).fit(points, points[:, 0]), "model_"),
        (kp.NoveltyDetector(9, 0.2).fit(points), "map_"),
    ):
        model = getattr(own, model)
        assert own.kernel_ == model.kernel
        kp.save(tmp_path / "m.npz", model)
        assert np.array_equal(
            kp.features(points, kp.load(tmp_path / "m.npz")), kp.features(points, own)
        )
        expanded = isinstance(model, kp.Expansion)
        assert np.array_equal(kp.features(points, own), kp.features(points, model))
        if expanded:
            own_share, share = kp.relevance(points, own), kp.relevance(points, model)
            assert np.array_equal(own_share.columns, share.columns)
            assert np.array_equal(own_share.components, share.components)
        if getattr(own, "model_", None) is None:
            assert np.array_equal(kp.residual(points, own), kp.residual(points, model))
    with pytest.raises(ValueError, match="^features: model must be one of .* got LandmarkRidge"):
        kp.features(points, kp.LandmarkRidge(9))  # not fitted


def test_an_unfitted_estimator_was_answered_by_a_list_of_models(rng):
    pytest.importorskip("sklearn")
    with pytest.raises(
        ValueError, match="^features: model .* got LandmarkFeatures, which is not fitted"
    ):
        kp.features(rng.standard_normal((5, 3)), kp.LandmarkFeatures(9))


def test_a_fitted_estimator_was_said_to_be_not_fitted(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((90, 3))
    own = kp.LandmarkFeatures(20, 4, sigma=2.0).fit(points)
    model = own.map_
    for function in (kp.explained_variance_ratio, kp.gradient, kp.gradient_outer_product):
        assert np.array_equal(function(points, own), function(points, model))
    found = kp.kernel_pca_preimage(kp.features(points[:3], own), own)
    assert np.array_equal(found, kp.kernel_pca_preimage(kp.features(points[:3], own), model))
    assert kp.projection_distance(own, model) == kp.projection_distance(model, model)
    judged = kp.sketch_error(own, points, own.kernel_, 2)
    assert np.array_equal(judged.values, kp.sketch_error(model, points, own.kernel_, 2).values)
    assert np.array_equal(
        kp.novelty_pvalues(points, own, [0.5]), kp.novelty_pvalues(points, model, [0.5])
    )
    features = kp.LandmarkFeatures(20, sigma=2.0).fit(points)
    out = np.empty(20)
    assert kp.residual_of(points[0], features, out) == kp.residual_of(points[0], features.map_, out)
    for function in (kp.explained_variance_ratio, kp.features, kp.residual):
        with pytest.raises(ValueError, match="got LandmarkFeatures, which is not fitted$"):
            function(points, kp.LandmarkFeatures(9))
    with pytest.raises(ValueError, match="^update: state must be .* got LandmarkFeatures$"):
        kp.update(own, points)
    from sklearn.decomposition import PCA  # another library's, and fitted

    with pytest.raises(ValueError, match="^features: model must be .* got PCA$"):
        kp.features(points, PCA(2).fit(points))


def test_an_estimator_without_targets_was_told_of_y(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((300, 32))
    own = kp.LandmarkFeatures(20, 1, sigma="auto")
    with pytest.warns(UserWarning, match="^LandmarkFeatures|components predict X no better"):
        own.fit(points)


def test_an_estimator_refuses_an_empty_batch_as_scikit_learn_does(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((40, 3))
    for own in (kp.LandmarkFeatures(9, sigma=2.0), kp.StreamingKernelPCA(2, 40, 8, sigma=2.0)):
        with pytest.raises(ValueError, match="Found array with 0 sample"):
            own.fit(points).transform(points[:0])


def test_products_of_float32_features_lost_a_small_ridge(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((20_000, 3))
    targets = np.sin(points[:, 0]) + points[:, 1] * points[:, 2]
    model = kp.LandmarkRidge(60, lam=3e-3, sigma=3.0)  # just above the limit for float32 products
    single = model.fit(points.astype(np.float32), targets.astype(np.float32))
    landmarks = single.landmarks_
    exact = kp.nystrom_ridge(points, targets, landmarks, kp.gaussian(3.0), 3e-3, intercept=True)
    told = single.predict(points[:500].astype(np.float32))
    assert np.abs(told - kp.features(points[:500], exact)).max() < 0.02 * targets.std()


def test_features_by_a_fitted_estimator_took_frames_of_another_order(rng, tmp_path):
    pytest.importorskip("sklearn")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.standard_normal((90, 3)), columns=list("abc"))
    for own in (
        kp.LandmarkFeatures(9, 2).fit(frame),
        kp.LandmarkRidge(9).fit(frame, frame["a"]),
        kp.NoveltyDetector(9, 0.2).fit(frame),
    ):
        if not isinstance(own, kp.NoveltyDetector):  # which a file cannot hold
            kp.save(tmp_path / "m.npz", own)
        for model in (own, kp.load(tmp_path / "m.npz")):
            assert np.array_equal(kp.features(frame, model), kp.features(frame.to_numpy(), model))
            with pytest.raises(
                ValueError, match="^features: X and model must have the same columns"
            ):
                kp.features(frame[list("cba")], model)


def test_given_landmarks_of_a_frame_with_other_columns_were_taken_by_position(rng):
    pytest.importorskip("sklearn")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.standard_normal((90, 3)), columns=list("abc"))
    for other in (frame[list("cba")], frame.rename(columns={"c": "d"})):
        for own in (kp.LandmarkFeatures(other[:9]), kp.LandmarkRidge(other[:9])):
            with pytest.raises(ValueError, match="X and landmarks must have the same columns"):
                own.fit(frame, frame["a"])
    same = kp.LandmarkFeatures(frame[:9], sigma=1.0).fit_transform(frame)
    points = frame.to_numpy()
    for first, second in ((frame[:9], points), (points[:9], frame)):
        found = kp.LandmarkFeatures(first, sigma=1.0).fit_transform(second)
        assert np.array_equal(found, same)


def test_a_fitted_estimator_could_not_be_fitted_to_other_columns(rng):
    pytest.importorskip("sklearn")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.standard_normal((90, 3)), columns=list("abc"))
    classes = np.where(frame["a"] > 0.0, "high", "low")
    for own, y in (
        (kp.LandmarkFeatures(9, 2), None),
        (kp.LandmarkRidge(9), frame["a"]),
        (kp.LandmarkClassifier(9), classes),
        (kp.StreamingKernelPCA(2, m=20, ell=4), None),
        (kp.NoveltyDetector(9, 0.2), None),
    ):
        own.fit(frame[["a", "b"]], y).fit(frame[["a", "c"]], y)
        assert own.feature_names_in_.tolist() == ["a", "c"]
        apply = getattr(own, "transform", None) or own.predict
        with pytest.raises(ValueError, match="feature names"):
            apply(frame[["a", "b"]])


@pytest.mark.parametrize("kernel", [kp.gaussian(2.0), kp.linear()])
def test_components_are_centered_and_features_of_a_map_are_not(kernel, rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((200, 3)) + 5.0
    plain = kp.LandmarkFeatures(20, kernel=kernel).fit(points)
    other = kp.LandmarkFeatures(20, kernel=kernel, centered=False).fit(points)
    assert plain.centered and np.array_equal(plain.landmarks_, other.landmarks_)
    assert np.array_equal(plain.transform(points), other.transform(points))
    assert np.abs(plain.transform(points).mean(0)).max() > 0.1
    components = kp.LandmarkFeatures(20, 2, kernel=kernel).fit_transform(points)
    assert np.abs(components.mean(0)).max() < 1e-12
    about_zero = kp.LandmarkFeatures(20, 2, kernel=kernel, centered=False).fit_transform(points)
    assert np.abs(about_zero.mean(0)).max() > 0.1


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("kernel", [kp.gaussian(2.0), kp.matern(2.5, 4.0)])
def test_features_with_a_ridge_are_inverted_with_and_without_a_mean(kernel, centered, rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((300, 2))
    own = kp.LandmarkFeatures(60, 5, kernel=kernel, centered=centered).fit(points)
    found = own.inverse_transform(own.transform(points), lam=1e-6)
    assert np.abs(found - points).max() < 0.3


def test_class_weight_could_be_given_by_place():
    pytest.importorskip("sklearn")
    with pytest.raises(TypeError, match="positional"):
        kp.LandmarkClassifier(9, 1.0, "balanced")
    assert kp.LandmarkClassifier(9, 1.0, class_weight="balanced").class_weight == "balanced"


@pytest.mark.parametrize("name", list(kp._ESTIMATORS))
def test_examples_of_estimators(name):
    pytest.importorskip("sklearn")
    text = getattr(kp, name).__doc__.replace("# doctest: +SKIP", "")
    names = {**vars(kp), "np": np}
    example = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0


def test_inverse_transform_refused_its_own_features_as_a_frame(rng):
    pytest.importorskip("sklearn")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.standard_normal((90, 3)), columns=list("abc"))
    own = kp.LandmarkFeatures(50, 3, sigma=3.0).set_output(transform="pandas")
    found = own.fit_transform(frame)
    points = own.inverse_transform(found)
    assert np.array_equal(points, own.inverse_transform(found.to_numpy()))


def test_components_of_equal_points_were_refused():
    pytest.importorskip("sklearn")
    for centered in (False, True):
        for k in (1, 0.5):
            own = kp.LandmarkFeatures(5, k, sigma=1.0, centered=centered).fit(np.ones((5, 3)))
            assert own.explained_variance_ratio_.tolist() == [0.0]
            assert own.transform(np.ones((5, 3))).tolist() == [[0.0 if centered else 1.0]] * 5


def test_two_threads_that_touched_the_estimators_first_made_two_classes():
    pytest.importorskip("sklearn")
    code = (
        "import sys, threading, sklearn.base, kpcasketch as kp\n"
        "sys.setswitchinterval(1e-6)\n"
        "def touch(): ready.wait(); found.append(kp.LandmarkRidge)\n"
        "for _ in range(20):\n"
        "    for name in ('LandmarkFeatures', 'LandmarkRidge', 'NoveltyDetector'): vars(kp).pop(name, None)\n"
        "    ready = threading.Barrier(8); found = []\n"
        "    threads = [threading.Thread(target=touch) for _ in range(8)]\n"
        "    [t.start() for t in threads]; [t.join() for t in threads]\n"
        "    assert len({*map(id, found)}) == 1 and found[0] is kp.LandmarkRidge"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_estimators_of_equal_points_predict_the_mean_and_have_one_landmark():
    pytest.importorskip("sklearn")
    equal, y = np.zeros((30, 3)), np.arange(30.0)
    for kernel in (kp.linear(), kp.gaussian(1.0)):
        assert kp.LandmarkRidge(5, kernel=kernel).fit(equal, y).predict(equal[:2]).tolist() == [
            14.5,
            14.5,
        ]
        features = kp.LandmarkFeatures(5, kernel=kernel).fit_transform(equal)
        assert np.array_equal(features, np.full((30, 1), float(kernel == kp.gaussian(1.0))))


@pytest.mark.parametrize("kernel", [kp.linear(), kp.polynomial(1, 0.5, 1.0)])
def test_the_regressor_with_a_linear_kernel_is_the_same_far_away(kernel, rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((300, 3))
    moved = points + [1.7e9, 0.0, -1e8]  # time stamps
    y = moved - [1.7e9, 0.0, -1e8]  # after rounding
    for lam in (1e-3, "auto"):
        own = kp.LandmarkRidge(20, lam, kernel=kernel).fit(moved, y)
        assert own.score(moved, y) > 1.0 - 1e-6
    centred = kp.LandmarkFeatures(20, 3, kernel=kernel, centered=True).fit(moved)
    assert centred.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=1e-6)


def test_the_estimators_are_imported_when_one_is_asked_for():
    code = (
        "import sys, kpcasketch as kp\n"
        "for name in 'LandmarkFeatures LandmarkRidge NoveltyDetector gram'.split(): assert name in dir(kp)\n"
        "assert 'sklearn' not in sys.modules; sys.modules['sklearn'] = None\n"
        "try: kp.LandmarkFeatures\nexcept ImportError as error: print(error)\n"
        "try: kp.Nothing\nexcept AttributeError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=pathlib.Path(kp.__file__).parent,
    )
    assert (
        "LandmarkFeatures needs scikit-learn" in run.stdout
        and "no attribute 'Nothing'" in run.stdout
    ), run.stderr


def test_landmarks_may_be_given_as_row_numbers_or_points(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((200, 3))
    targets = np.sin(points[:, 0])
    rows = np.array([7, 90, 3, 41])
    drawn = kp.Landmarks(rows, np.ones(4), 0)
    for given in (rows, points[rows], rows.tolist(), drawn):
        features = kp.LandmarkFeatures(given, sigma=2.0).fit(points)
        expected = kp.nystrom_map(points[rows], points[rows], kp.gaussian(2.0))
        assert np.array_equal(features.transform(points), kp.features(points, expected))
        assert features.landmarks_ is given
        assert kp.LandmarkFeatures(given, 2, sigma=2.0).fit_transform(points).shape == (200, 2)
        ridge = kp.LandmarkRidge(given, 0.1, sigma=2.0).fit(points, targets)
        kernel = kp.gaussian(2.0)
        exact = kp.nystrom_ridge(points, targets, rows, kernel, 0.1, intercept=True)
        assert np.array_equal(ridge.predict(points), kp.features(points, exact))
        chosen = kp.LandmarkRidge(given, "auto", sigma=2.0).fit(points, targets)
        found = kp.choose(points, targets, rows, kernel, factors=np.ones(1))
        assert chosen.lam_ == found.lam
    number = kp.LandmarkRidge(np.array(4), sigma=2.0).fit(points, targets)
    assert number.landmarks_.size == 4
    with pytest.raises(ValueError, match="n_components must be an int from 1 to 4, got 5"):
        kp.LandmarkFeatures(rows, 5).fit(points)
    for wrong in ([0, 200], np.ones((2, 4)), [0.5], "four", [[1, 2], [3]]):
        with pytest.raises(ValueError, match="^LandmarkFeatures: landmarks must"):
            kp.LandmarkFeatures(wrong).fit(points)


def test_components_explain_the_share_that_was_asked_for(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((300, 4)) * [4.0, 2.0, 1.0, 0.5]
    for centered in (False, True):
        own = kp.LandmarkFeatures(60, 0.8, sigma=4.0, centered=centered).fit(points)
        shares = own.explained_variance_ratio_
        assert 1 < shares.size < 60 and shares[:-1].sum() < 0.8 <= shares.sum()
        same = kp.LandmarkFeatures(60, shares.size, sigma=4.0, centered=centered).fit(points)
        first, second = own.transform(points), same.transform(points)
        assert np.abs(first - second).max() < 1e-9
        assert own.get_feature_names_out().size == shares.size
    short = kp.LandmarkFeatures(60, np.float32(0.8), sigma=4.0, centered=True).fit(points)
    assert short.explained_variance_ratio_.size == shares.size  # np.float32 was no share
    few = kp.LandmarkFeatures(3, 0.999, sigma=1.0).fit(points)  # three landmarks explain less
    assert few.transform(points).shape == (300, 3)
    for wrong in (0.0, 1.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match="n_components must be"):
            kp.LandmarkFeatures(60, wrong).fit(points)


def test_the_classifier_is_ridge_regression_on_signs_of_classes(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((400, 2))
    kernel = kp.gaussian(1.0)
    names = np.array(["inner", "ring", "outer"])
    classes = names[np.digitize(np.linalg.norm(points, axis=1), [0.8, 1.5])]
    own = kp.LandmarkClassifier(80, 0.01, sigma=1.0).fit(points, classes)
    assert own.classes_.tolist() == ["inner", "outer", "ring"] and own.score(points, classes) > 0.95
    signs = np.where(classes[:, None] == own.classes_, 1.0, -1.0)
    exact = kp.nystrom_ridge(points, signs, own.landmarks_, kernel, 0.01, intercept=True)
    assert np.abs(own.decision_function(points) - kp.features(points, exact)).max() < 1e-6
    two = classes == "ring"
    own = kp.LandmarkClassifier(80, "auto", sigma=1.0).fit(points, two)
    scores = own.decision_function(points)
    assert scores.shape == (400,) and np.array_equal(own.predict(points), scores > 0.0)
    landmarks = kp.uniform_landmarks(400, 80)
    found = kp.choose(points, np.where(two, 1.0, -1.0), landmarks, kernel, factors=np.ones(1))
    assert own.lam_ == found.lam
    with pytest.raises(ValueError, match="y must have at least two classes"):
        own.fit(points, np.ones(400, int))
    assert np.array_equal(own.decision_function(points), scores), "a refused fit changes nothing"


def test_balanced_classes_weigh_the_same(rng):
    pytest.importorskip("sklearn")
    points = np.vstack([rng.standard_normal((300, 2)), rng.standard_normal((20, 2)) + 2.0])
    rare = np.arange(320) >= 300
    landmarks = points[::8]

    def recall(**own):
        fitted = kp.LandmarkClassifier(landmarks, 0.1, sigma=2.0, **own).fit(points, rare)
        return fitted.predict(points)[rare].mean(), fitted.decision_function(points)

    share, scores = recall(class_weight="balanced")
    assert share > 0.9 > 0.7 > recall()[0]
    weights = np.where(rare, 320 / 40, 320 / 600)
    for same in (
        kp.LandmarkClassifier(landmarks, 0.1, sigma=2.0).fit(points, rare, weights),
        kp.LandmarkClassifier(
            landmarks, 0.1, sigma=2.0, class_weight={False: 320 / 600, True: 8.0}
        ).fit(points, rare),
    ):
        assert np.abs(same.decision_function(points) - scores).max() < 1e-9
    with pytest.raises(ValueError, match="class_weight"):
        recall(class_weight="fair")


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("half_life", [None, 300.0])
def test_components_of_a_stream_are_those_of_skpca(centered, half_life, rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((1000, 4)) * [4.0, 2.0, 1.0, 0.5] + 100.0
    blocks = np.split(points, [300, 301, 600])
    own = kp.StreamingKernelPCA(
        3, 200, 20, sigma=5.0, centered=centered, half_life=half_life, random_state=7
    )
    state = kp.skpca_start(
        kp.orthogonal_features_map(kp.gaussian(5.0), 4, 200, 7),
        20,
        centered=centered,
        half_life=half_life,
    )
    for block in blocks:
        own.partial_fit(block)
        state = kp.update(state, block)
    expected = kp.finish(state, 3)
    features = own.transform(points)
    # signs are those of the first block
    assert np.array_equal(np.abs(features), np.abs(kp.features(points, expected)))
    shares = own.explained_variance_ratio_
    if half_life is None:  # of the features of all points, without a sketch
        Z = kp.features(points, own.map_.feature_map)
        Z = Z - Z.mean(0) * centered
        total = np.square(Z).sum()
        lost = np.linalg.eigvalsh(Z.T @ Z)[:-4:-1] / total - shares
        assert lost.min() > -1e-9 and lost.max() < 1.001 * own.map_.shrunk / total < 0.05
    names = [f"streamingkernelpca{j}" for j in range(3)]
    assert own.get_feature_names_out().tolist() == names
    assert np.array_equal(pickle.loads(pickle.dumps(own)).transform(points), features)
    with pytest.raises(ValueError, match="X has 3 features"):
        own.partial_fit(points[:, :3])
    assert np.array_equal(own.transform(points), features), "a refused block changes nothing"
    again = own.fit(points)  # forgets the blocks
    assert again.map_.count == (1000 if half_life is None else round(expected.count))


def test_settings_of_the_stream_are_named_as_they_were_given():
    pytest.importorskip("sklearn")
    points = np.random.default_rng(0).standard_normal((50, 2))
    for wrong, match in (
        ({"n_components": 60}, "n_components must be an int from 1 to 50, got 60"),
        ({"m": 0}, "m must be"),
        ({"ell": 3000}, "ell must be an int from 1 to 2000, got 3000"),
        ({"half_life": -1.0}, "half_life must be"),
        ({"kernel": kp.linear()}, "kernel must be"),
    ):
        with pytest.raises(ValueError, match=f"^StreamingKernelPCA: .*{match}"):
            kp.StreamingKernelPCA(**wrong).fit(points)


def test_the_classifier_failed_in_a_process_that_had_not_imported_parts_of_scikit_learn():
    pytest.importorskip("sklearn")
    code = (
        "import numpy as np, kpcasketch as kp; X = np.random.default_rng(0).standard_normal((60, 3)); "
        "print(kp.LandmarkClassifier(20).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=pathlib.Path(kp.__file__).parent,
    )
    assert float(made.stdout or "nan") > 0.9, made.stderr


def test_shares_of_a_short_half_life_summed_to_more_than_one(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((60, 3))
    own = kp.StreamingKernelPCA(16, 16, 16, sigma=2.0, half_life=2.0).fit(points)  # was 1.138
    assert own.explained_variance_ratio_.sum() < 1.0 + 1e-9


MAKES = {
    "features": lambda: kp.LandmarkFeatures(5),
    "ridge": lambda: kp.LandmarkRidge(5),
    "classifier": lambda: kp.LandmarkClassifier(5),
    "stream": lambda: kp.StreamingKernelPCA(2, 20, 4),
    "detector": lambda: kp.NoveltyDetector(5, 0.2),
}


@pytest.mark.parametrize("make", MAKES.values(), ids=MAKES)
def test_estimators_took_masked_arrays_dates_and_categories_for_numbers(make, rng):
    pytest.importorskip("sklearn")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    X = rng.standard_normal((60, 2))
    y = (X[:, 0] > 0.0) * 1
    masked = np.ma.masked_array(X, X > 1.0)
    days = np.datetime64("2026-01-01", "us") + np.arange(60) * np.timedelta64(1, "D")
    dates = np.column_stack([days, days])
    objects = np.empty((60, 2), object)
    objects[:] = [[day, day] for day in days]
    tables = [
        pandas.DataFrame({"first": X[:, 0], "second": column})
        for column in (days, days - days[0], pandas.Categorical(y), list("ab") * 30)
    ]
    tables.append(pandas.DataFrame(dates, columns=["first", "second"]))
    tables += [polars.DataFrame({"first": X[:, 0], "second": days - days[0]})]
    tables += [polars.DataFrame({"first": X[:, 0], "second": list("ab") * 30})]
    own = make().fit(X, y)
    apply = getattr(own, "transform", None) or own.predict
    for wrong, text in (
        (masked, "X must be a plain array, got a masked array"),
        ([*masked], "X must be a plain array, got a masked array"),
        (dates, "got dates or durations"),
        (dates - dates[0], "got dates or durations"),
        ([[*row] for row in dates], "got dates or durations"),
        (objects, "got dates or durations"),
        *((table, "got non-numeric columns .*'second'") for table in tables),
    ):
        for call in (lambda wrong: make().fit(wrong, y), apply):
            with pytest.raises(ValueError, match=f"^{type(own).__name__}: .*{text}"):
                call(wrong)
    numbers = pandas.DataFrame({0: X[:, 0], 1: pandas.array(y, "Int64"), 2: y > 0})
    plain = np.column_stack([X[:, 0], y, y])
    one, two = (make().fit(table, y) for table in (numbers, plain))
    apply = "transform" if hasattr(one, "transform") else "predict"
    assert np.array_equal(getattr(one, apply)(plain), getattr(two, apply)(plain))
    three = make().fit(plain.astype(object), y)
    assert np.array_equal(getattr(three, apply)(plain), getattr(two, apply)(plain))


def test_targets_and_weights_lost_their_masks(rng):
    pytest.importorskip("sklearn")
    X = rng.standard_normal((60, 2))
    y, mask = (X[:, 0] > 0.0) * 1, X[:, 1] > 0.0
    masked = np.ma.masked_array(y, mask)
    weights = np.ma.masked_array(np.ones(60), mask)
    for call, text in (
        (lambda: kp.LandmarkRidge(5).fit(X, masked), "y"),
        (lambda: kp.LandmarkClassifier(5).fit(X, masked), "y"),
        (lambda: kp.LandmarkFeatures(5, sigma="auto").fit(X, masked), "y"),
        (lambda: kp.LandmarkRidge(5).fit(X, y, weights), "sample_weight"),
        (lambda: kp.LandmarkClassifier(5).fit(X, y, weights), "sample_weight"),
        (
            lambda: kp.nystrom_ridge(
                X, y, X[:5], kp.gaussian(1.0), 1.0, weights=weights, intercept=False
            ),
            "weights",
        ),
        (lambda: kp.nystrom_map(X, masked[mask], kp.gaussian(1.0)), "landmarks"),
    ):
        with pytest.raises(ValueError, match=f": {text} must be a plain array, got a masked array"):
            call()


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
def test_numbers_in_an_array_of_objects_were_classes(rng):
    pytest.importorskip("sklearn")
    pandas = pytest.importorskip("pandas")
    X = rng.standard_normal((300, 2))
    y = np.sin(X[:, 0] / 2.0)
    exact = kp.LandmarkFeatures(20, sigma="auto").fit(X, y).kernel_
    for same in (y.astype(object), pandas.Series(y, dtype=object), [*y]):
        assert kp.LandmarkFeatures(20, sigma="auto").fit(X, same).kernel_ == exact
    whole = np.round(9.0 * y).astype(int)
    ridge, classes = (
        [make.fit(X, target).predict(X) for target in (whole, whole.astype(object))]
        for make in (kp.LandmarkRidge(20), kp.LandmarkClassifier(20))
    )
    assert np.array_equal(*ridge) and np.array_equal(*classes)
    categories = pandas.Series(pandas.Categorical(whole))  # more than 32 could be numbers
    indicators = (whole[:, None] == np.unique(whole)).astype(float)
    assert (
        kp.LandmarkFeatures(20, sigma="auto").fit(X, categories).kernel_
        == kp.LandmarkFeatures(20, sigma="auto").fit(X, indicators).kernel_
    )


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_missing_targets_were_type_errors_and_names_of_points_were_classes(rng):
    pytest.importorskip("sklearn")
    pandas = pytest.importorskip("pandas")
    X = rng.standard_normal((300, 2))
    letters = np.array(["a", "b", "c"] * 100, dtype=object)
    missing = [
        np.array([value, *letters[1:]], dtype=object) for value in (None, np.nan, pandas.NA, 1)
    ]
    missing += [np.array([None, *X[1:, 0]], dtype=object)]
    missing += [pandas.Series([pandas.NA, *letters[1:]], dtype="string")]
    features = kp.LandmarkFeatures(9, sigma="auto")
    for make in (features, kp.LandmarkClassifier(9), kp.LandmarkRidge(9)):
        for y in missing:
            with pytest.raises(
                ValueError, match=": y must hold numbers.* without None and NA; got"
            ):
                make.fit(X, y)
    for y in (letters, letters.astype(str), pandas.Series(pandas.Categorical(letters))):
        with pytest.raises(ValueError, match="^LandmarkRidge: [yY] must"):
            kp.LandmarkRidge(9).fit(X, y)
        kp.LandmarkClassifier(9).fit(X, y)
    with pytest.raises(ValueError, match="y must have no missing categories"):
        features.fit(X, pandas.Series(pandas.Categorical([None, 1, 2] * 100)))
    with pytest.raises(ValueError, match="y must hold numbers or text, got datetime64"):
        features.fit(X, np.datetime64("2026") + np.arange(300))
    names = np.arange(300).astype(str)
    for make in (features, kp.LandmarkClassifier(9)):
        with pytest.raises(ValueError, match="y must have 1 to 150 classes .* got 300"):
            make.fit(X, names)
    kp.LandmarkFeatures(9).fit(X, names)  # which does not use them


def test_files_lost_the_classes_of_a_classifier_and_the_threshold_of_a_detector(rng, tmp_path):
    pytest.importorskip("sklearn")
    X = rng.standard_normal((90, 3))
    for own in (kp.LandmarkClassifier(9).fit(X, X[:, 0] > 0.0), kp.NoveltyDetector(9, 0.2).fit(X)):
        with pytest.raises(ValueError, match="^save: model must not be a .* call joblib.dump"):
            kp.save(tmp_path / "model.npz", own)
    assert not [*tmp_path.iterdir()]


def test_a_detector_judged_the_points_that_it_had_learned(rng):
    pytest.importorskip("sklearn")
    own = kp.NoveltyDetector(9, 0.2)
    assert not hasattr(own, "fit_predict")
    with pytest.raises(AttributeError, match="NoveltyDetector has no fit_predict: points that it"):
        own.fit_predict(rng.standard_normal((90, 3)))


def test_streams_took_the_median_for_a_chosen_bandwidth(rng):
    pytest.importorskip("sklearn")
    X = rng.standard_normal((90, 3))
    for own in (kp.NoveltyDetector(9, sigma="auto"), kp.StreamingKernelPCA(2, sigma="auto")):
        for fit in (own.fit, own.partial_fit):
            with pytest.raises(ValueError, match="sigma must be a real number, got 'auto'"):
                fit(X)


def test_the_stream_refused_kernels_of_skpca(rng):
    pytest.importorskip("sklearn")
    X = rng.standard_normal((90, 3))
    kernel = kp.laplacian(1.0, norm=1)
    own = kp.StreamingKernelPCA(2, 40, 8, kernel=kernel, random_state=3).fit(X)
    expected = kp.skpca(X, kernel, 2, 40, 8, 3, centered=True)
    assert np.array_equal(own.transform(X), kp.features(X, expected))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "kernel", [kp.linear(), kp.polynomial(1, 1.0, 1.0), kp.polynomial(2, 1.0, 1.0)]
)
def test_a_detector_to_which_no_point_can_be_novel_said_nothing(kernel, dtype, rng):
    pytest.importorskip("sklearn")
    X = rng.standard_normal((300, 3)).astype(dtype)
    with pytest.warns(UserWarning, match="^NoveltyDetector: no point can be novel: the landmarks"):
        own = kp.NoveltyDetector(50, kernel=kernel).fit(X)
    assert (own.predict(X + dtype(9.0)) == 1).all()
    plane = X * np.array([1, 1, 0], dtype)
    own = kp.NoveltyDetector(50, kernel=kernel).fit(plane)
    assert (own.predict(plane + dtype(9.0)) == -1).all()


@pytest.mark.parametrize("given", [{"sigma": 1.0}, {"gamma": 0.5}, {"kernel": kp.gaussian(1.0)}])
def test_a_stream_could_not_begin_with_one_point(given, rng):
    pytest.importorskip("sklearn")
    X = rng.standard_normal((40, 2))
    own = kp.NoveltyDetector(30, 0.2, **given)
    with pytest.warns(UserWarning, match="^NoveltyDetector: 0 residuals cannot give false_alarms"):
        own.partial_fit(X[:1])
    assert own.offset_ == -np.inf and own.predict(X).tolist() == [1] * 40
    with pytest.warns(UserWarning, match="^NoveltyDetector: [1-3] residuals|no point can be novel"):
        for row in X[1:]:
            own.partial_fit(row[None])
    assert own.residuals_.size == 39 and own.predict([[9.0, 9.0]]) == [-1]
    stream = kp.StreamingKernelPCA(2, 40, 8, **given)
    for row in X:
        stream.partial_fit(row[None])
        assert 0.0 <= stream.explained_variance_ratio_.sum() < 1.0 + 1e-9
    state = kp.skpca_start(kp.orthogonal_features_map(kp.gaussian(1.0), 2, 40, 0), 8, centered=True)
    for row in X:
        state = kp.update(state, row[None])
    expected = kp.finish(state, 2)
    assert np.array_equal(np.abs(stream.map_.basis), np.abs(expected.basis))
    for own in (kp.NoveltyDetector(30), kp.StreamingKernelPCA(2, 40, 8)):
        with pytest.raises(ValueError, match="minimum of 2 is required"):
            own.partial_fit(X[:1])


def test_components_of_a_stream_changed_their_signs():
    pytest.importorskip("sklearn")
    for seed in range(3):
        points = np.random.default_rng(seed).standard_normal((1500, 4)) * [4.0, 2.0, 1.0, 0.5]
        own = kp.StreamingKernelPCA(5, 100, 20, sigma=5.0, random_state=seed)
        before = own.partial_fit(points[:50]).map_.basis
        for block in np.split(points[50:], 29):
            basis = own.partial_fit(block).map_.basis
            assert ((before * basis).sum(0) >= 0.0).all()
            before = basis
    fewer = own.set_params(n_components=3).partial_fit(points[:50]).map_.basis
    assert fewer.shape == (100, 3) and ((before[:, :3] * fewer).sum(0) >= 0.0).all()


@pytest.mark.parametrize("own", [{}, {"class_weight": "balanced"}])
def test_weights_of_a_balanced_classifier_were_not_numbers_of_equal_points(own, rng):
    pytest.importorskip("sklearn")
    X = rng.standard_normal((200, 3))
    y = np.array(["few", "many", "most"])[np.digitize(X[:, 0], [-1.0, 0.0])]
    weights = rng.integers(0, 4, 200)
    weights[X[:, 0] > 1.5] = 0
    y[X[:, 0] > 1.5] = "none"  # without any weight
    one = kp.LandmarkClassifier(X[:30], 0.1, sigma=2.0, **own).fit(X, y, weights)
    two = kp.LandmarkClassifier(X[:30], 0.1, sigma=2.0, **own)
    two.fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    assert one.classes_.tolist() == two.classes_.tolist() == ["few", "many", "most"]
    assert np.abs(one.decision_function(X) - two.decision_function(X)).max() < 1e-7


def test_sparse_landmarks_could_not_be_displayed(rng):
    pytest.importorskip("sklearn")
    sparse = pytest.importorskip("scipy.sparse")
    from sklearn.pipeline import make_pipeline

    X = sparse.csr_array(rng.standard_normal((40, 3)))
    own = kp.LandmarkFeatures(X[:9], sigma=1.0)
    for shown in (own, kp.LandmarkRidge(X[:9]), make_pipeline(own), own.fit(X)):
        assert "Sparse" in shown._repr_html_()
    assert own.landmarks.shape == (9, 3)


def test_estimators_of_dense_points_refused_sparse_ones(rng):
    pytest.importorskip("sklearn")
    sparse = pytest.importorskip("scipy.sparse")
    X = rng.standard_normal((90, 3)) * (rng.random((90, 3)) < 0.5)
    X[7] = 1.0
    S = sparse.csr_array(X)
    for own, y in (
        (kp.LandmarkFeatures(9, sigma=1.0), None),
        (kp.LandmarkFeatures(9, 2, sigma=1.0), None),
        (kp.LandmarkRidge(9, sigma=1.0), X[:, 0]),
        (kp.LandmarkClassifier(9, sigma=1.0), X[:, 0] > 0.0),
    ):
        own.fit(X, y)
        apply = getattr(own, "transform", None) or own.predict
        assert np.array_equal(apply(S), apply(X))
    S.data[S.indptr[7]] = np.nan
    for call in (apply, lambda S: own.fit(S, y)):
        with pytest.raises(ValueError, match="X must be finite .*; row 7, column 0 is not"):
            call(S)
