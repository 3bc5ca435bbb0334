# SPDX-License-Identifier: BSD-3-Clause
"""Files of models, and the transformer for scikit-learn; what is advised is tried by test_command_line.py."""

import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import kpcasketch as kp

X = np.random.default_rng(0).standard_normal((30, 3))
g = kp.gaussian(2.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: kp.scaled(kp.matern(1.5, 2.0), 3.0),
        lambda: kp.kpca(X, g, 2),
        lambda: kp.nystrom_map(X, np.arange(5), g),
        lambda: kp.quantize_gram(X, g),
        lambda: kp.sample_gram(X, g, 2.0),
        lambda: kp.uniform_landmarks(9, 3),
        lambda: kp.Implicit(X, g),
        lambda: kp.Difference(X @ X.T, kp.LowRank(X)),
        lambda: kp.block_lanczos(X @ X.T, 2),
        lambda: kp.kernel_kmeans(X, 2),
    ],
    ids="Kernel Expansion NystromMap Bits CSR Landmarks Implicit Difference Eigen Clustering".split(),
)
def test_what_is_saved_is_loaded(make, tmp_path):
    model = make()

    def equal(a, b):
        return type(a) is type(b) and (
            all(map(equal, a, b)) if isinstance(a, tuple) else np.array_equal(a, b)
        )

    kp.save(tmp_path / "model.npz", model)
    assert equal(kp.load(tmp_path / "model.npz"), model) and equal(
        pickle.loads(pickle.dumps(model)), model
    )
    plain = {name: value for name, value in model._asdict().items() if not isinstance(value, tuple)}
    np.savez(tmp_path / "fields.npz", **plain)
    with np.load(tmp_path / "fields.npz", allow_pickle=False) as fields:
        assert all(np.array_equal(fields[name], value) for name, value in plain.items())


def test_a_stream_goes_on_from_its_file(tmp_path):
    start = kp.skpca_start(kp.fourier_features_map(g, 3, 8), 4)
    state = kp.skpca_update(start, X[:20])
    kp.save(tmp_path / "state.npz", state)
    on, whole = kp.skpca_update(kp.load(tmp_path / "state.npz"), X[20:]), kp.skpca_update(start, X)
    assert (
        np.array_equal(kp.skpca_finish(on, 2).basis, kp.skpca_finish(whole, 2).basis)
        and on.sketch.count == 30
    )


def test_save_reads_the_annotations_of_the_class_as_an_instance_has_none_in_python_3_14(tmp_path):
    class OfTheClass:
        def __get__(self, instance, owner):
            if instance is not None:
                raise AttributeError("__annotations__")
            return kp.Expansion.__annotations__

    model = kp.kpca(X, g, 2)
    kp.save(
        tmp_path / "m.npz",
        type("Expansion", (kp.Expansion,), {"__annotations__": OfTheClass()})(*model),
    )
    assert np.array_equal(kp.load(tmp_path / "m.npz").coef, model.coef)


def test_files_that_save_did_not_write_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", X=X)
    with pytest.raises(ValueError, match="^load: .* must be a file written by save"):
        kp.load(tmp_path / "other.npz")
    with pytest.raises(
        ValueError, match="^save: model must be a named tuple of kpcasketch, got ndarray"
    ):
        kp.save(tmp_path / "x.npz", X)


def test_models_saved_before_they_knew_their_mean_are_read(tmp_path, rng):
    model = kp.kpca(rng.standard_normal((9, 2)), kp.gaussian(1.0), 2)
    kp.save(tmp_path / "new.npz", model)
    with np.load(tmp_path / "new.npz") as file:
        np.savez(
            tmp_path / "old.npz",
            **{name: value for name, value in dict(file).items() if name != "mean"},
        )
    old = kp.load(tmp_path / "old.npz")
    assert old.mean.size == 0 and np.array_equal(
        kp.expand(model.points, old), kp.expand(model.points, model)
    )


# A transformer for scikit-learn


@pytest.mark.slow
@pytest.mark.parametrize(
    "own",
    [
        {},
        {"n_components": 3},
        {"sampler": "rls-accelerated", "gamma": 0.5},
        {"sampler": "kmeans"},
        {"sigma": "auto"},
    ],
)
def test_the_transformer_is_an_estimator_as_scikit_learn_checks_it(own):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    results = checks.check_estimator(
        kp.LandmarkFeatures(landmarks=8, **own), on_skip=None, on_fail=None
    )
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
        features, kp.nystrom_features(points, fitted.map_)
    ) and fitted.landmarks_.shape == (60,)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).transform(points), features)
    with pytest.raises(ValueError, match="features"):
        pipeline.predict(np.ones((3, 5)))
    # what was fitted counts
    assert fitted.set_params(n_components=2).transform(points).shape == (400, 60)
    near = kp.LandmarkFeatures(60, sampler="kmeans").fit(points)  # centers, which are no rows
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
    centred = kp.LandmarkFeatures(60, n_components=5, centered=True).fit(points)
    expected = kp.nystrom_kpca(points, centred.landmarks_, centred.kernel_, 5, 0, True)
    assert np.array_equal(centred.transform(points), kp.expand(points, expected))
    assert np.abs(centred.transform(points).mean(0)).max() < 1e-12
    for wrong, match in (
        ({"centered": True}, "n_components must be an int from 1 to 300, got NoneType"),
        ({"sigma": 1.0, "gamma": 1.0}, "either sigma or gamma must be given, not both"),
        ({"sampler": "best"}, "sampler"),
        ({"landmarks": 0}, "landmarks must be"),
        ({"landmarks": None}, "landmarks must be"),
        ({"n_components": "2"}, "n_components must be"),
        ({"sampler": ["auto"]}, "sampler"),
        ({"n_components": 301}, "n_components must be an int from 1 to 300, got 301"),
        ({"kernel": g, "gamma": 1.0}, "sigma and gamma must be None if kernel is given"),
        ({"kernel": "rbf"}, "^LandmarkFeatures: kernel must be"),
        ({"random_state": -1}, "^LandmarkFeatures: random_state"),
    ):
        with pytest.raises(ValueError, match=match):
            kp.LandmarkFeatures(**wrong).fit(points)
    with pytest.warns(UserWarning, match="landmarks is 500, but X has 400 points: all are used"):
        assert kp.LandmarkFeatures(500).fit(points).transform(points).shape == (400, 400)
    with pytest.raises(TypeError, match="^LandmarkFeatures.__init__"):
        kp.LandmarkFeatures(n_landmarks=3)


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
    for numbers in (
        classes.astype(float),
        np.arange(400) % 57,
    ):  # percentages were taken as classes
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


def test_the_transformer_is_imported_when_it_is_asked_for():
    code = (
        "import sys, kpcasketch as kp; assert 'LandmarkFeatures' in dir(kp) and 'gram' in dir(kp)\n"
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


def test_states_of_the_first_version_load_with_forget_as_half_life(tmp_path):
    state = kp.skpca_start(kp.fourier_features_map(g, 3, 8), 4, half_life=9.0)
    kp.save(tmp_path / "new.npz", state)
    with np.load(tmp_path / "new.npz") as held:
        old = {name.replace("half_life", "forget"): held[name] for name in held}
    assert "sketch.forget" in old
    np.savez(tmp_path / "old.npz", **old)
    assert kp.load(tmp_path / "old.npz").sketch.half_life == 9.0
