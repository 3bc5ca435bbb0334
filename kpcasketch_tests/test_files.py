# SPDX-License-Identifier: BSD-3-Clause
"""Files of models; what is advised is tried by test_command_line.py.

`python -m kpcasketch_tests.test_files` writes the folder files_of_1_0, which every version 1.x must read. A class or
kind that comes later needs a file of its own. The files that are there never change: they are skipped.
"""

import io
import pathlib
import pickle

import numpy as np
import pytest
import scipy.sparse

import kpcasketch as kp
from kpcasketch_tests import tables

X = np.random.default_rng(0).standard_normal((30, 3))
g = kp.gaussian(2.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: kp.scaled(kp.matern(1.5, 2.0), 3.0),
        lambda: kp.kpca(X, g, 2, centered=False),
        lambda: kp.nystrom_map(X, np.arange(5), g),
        lambda: kp.quantize_gram(X, g),
        lambda: kp.center(kp.sample_gram(X, g, 2.0)),
        lambda: kp.uniform_landmarks(9, 3),
        lambda: kp.Implicit(X, g),
        lambda: kp.center(kp.LowRank(X)),
        lambda: kp.block_lanczos(X @ X.T, 2),
        lambda: kp.kernel_kmeans(X, 2),
    ],
    ids="Kernel Expansion NystromMap Bits sparse Landmarks Implicit Centered Eigen Clustering".split(),
)
def test_what_is_saved_is_loaded(make, tmp_path):
    model = make()

    def equal(a, b):
        if scipy.sparse.issparse(a):
            a, b = [(S.data, S.indices, S.indptr, S.shape) for S in (a, b)]
        return type(a) is type(b) and (
            all(map(equal, a, b)) if isinstance(a, tuple) else np.array_equal(a, b)
        )

    kp.save(tmp_path / "model.npz", model)
    assert equal(kp.load(tmp_path / "model.npz"), model) and equal(
        pickle.loads(pickle.dumps(model)), model
    )
    plain = {
        name: value
        for name, value in model._asdict().items()
        if not (value is None or isinstance(value, tuple) or scipy.sparse.issparse(value))
    }
    np.savez(tmp_path / "fields.npz", **plain)
    with np.load(tmp_path / "fields.npz", allow_pickle=False) as fields:
        assert all(np.array_equal(fields[name], value) for name, value in plain.items())


def test_a_stream_goes_on_from_its_file(tmp_path):
    start = kp.skpca_start(kp.fourier_features_map(g, 3, 8), 4, centered=False)
    state = kp.update(start, X[:20])
    kp.save(tmp_path / "state.npz", state)
    on, whole = kp.update(kp.load(tmp_path / "state.npz"), X[20:]), kp.update(start, X)
    assert (
        np.array_equal(kp.finish(on, 2).basis, kp.finish(whole, 2).basis) and on.sketch.count == 30
    )


def test_save_reads_the_annotations_of_the_class_as_an_instance_has_none_in_python_3_14(tmp_path):
    class OfTheClass:
        def __get__(self, instance, owner):
            if instance is not None:
                raise AttributeError("__annotations__")
            return kp.Expansion.__annotations__

    model = kp.kpca(X, g, 2, centered=False)
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
        ValueError, match="^save: model must be a named tuple of kpcasketch, got ndarray$"
    ):
        kp.save(tmp_path / "x.npz", X)
    pair = kp.kpca(X, g, 2), kp.kpca(X, g, 3)
    with pytest.raises(ValueError, match="^save: .* got tuple: save each of its parts by itself"):
        kp.save(tmp_path / "x.npz", pair)


def test_what_is_not_given_is_not_in_the_file_and_loaded_as_none(tmp_path):
    for centered in (True, False):
        model = kp.kpca(X, g, 2, centered=centered)
        kp.save(tmp_path / "m.npz", model)
        with np.load(tmp_path / "m.npz") as file:
            assert ("offset" in file, "mean" in file) == (centered, centered)
        found = kp.load(tmp_path / "m.npz")
        assert (found.offset is None, found.mean is None) == (not centered, not centered)
        assert np.array_equal(kp.features(X, found), kp.features(X, model))
        assert np.array_equal(kp.residual(X, found), kp.residual(X, model))
    with pytest.raises(ValueError, match="^save: model.coef must have the type that Expansion"):
        kp.save(tmp_path / "m.npz", model._replace(coef=None))
    with pytest.raises(ValueError, match="^save: model.targets must have the type that Expansion"):
        kp.save(tmp_path / "m.npz", model._replace(targets=None))


@pytest.mark.parametrize("centered", [False, True])
def test_a_damaged_file_was_another_model(centered, rng):
    # lost entries became defaults, and an array with a damaged shape had fewer rows
    model = kp.kpca(rng.standard_normal((9, 2)), g, 2, centered=centered)
    file = io.BytesIO()
    kp.save(file, model)
    content = file.getvalue()
    refused = 0
    places = rng.choice(len(content), 2000, replace=False)
    for place, change in zip(places, rng.integers(1, 256, 2000)):
        damaged = bytearray(content)
        damaged[place] ^= change
        try:
            found = kp.load(io.BytesIO(damaged))
        except (ValueError, OSError):
            refused += 1
        else:
            assert (found.offset is None) == (found.mean is None) == (not centered)
            pairs = zip(found._replace(kernel=0), model._replace(kernel=0))
            assert all(np.array_equal(a, b) for a, b in pairs), (place, change)
            assert found.kernel == model.kernel
    assert refused > 1000


def test_a_kernel_or_model_without_its_parameters_was_another(tmp_path):
    arrays = kp._as_arrays(kp.kpca(X, g, 2))
    for name in ("kernel.gamma", "kernel.table", "coef", "targets", "kernel"):
        np.savez(tmp_path / "less.npz", **{key: arrays[key] for key in arrays if key != name})
        with pytest.raises(ValueError, match=f"less.npz .*{name} has the wrong type"):
            kp.load(tmp_path / "less.npz")


def test_files_stored_the_number_of_a_kernel_so_a_new_record_renamed_saved_kernels(tmp_path):
    for kernel in (
        g,
        kp.rational_quadratic(0.8, 2.0),
        kp.cauchy(2.0),
        kp.laplacian(2.0),
        kp.matern(1.5, 2.0),
        kp.matern(2.5, 2.0),
        kp.laplacian(2.0, norm=1),
        kp.polynomial(3, 0.5, 1.0),
        kp.precomputed(np.eye(3)),
    ):
        arrays = kp._as_arrays(kp.Implicit(X[:3, :1] * 0.0, kernel))
        assert str(arrays["kernel.kind"]) == kp._KINDS[kernel.kind].name
        kp.save(tmp_path / "new.npz", kernel)
        assert kp.load(tmp_path / "new.npz") == kernel
        assert kp._KINDS[kernel.kind].name.encode() in pickle.dumps(kernel)
        for wrong in (10, -1, 0, 0.5, "quartic", [0]):
            np.savez(tmp_path / "wrong.npz", **{**arrays, "kernel.kind": wrong})
            with pytest.raises(ValueError, match="wrong.npz .*kernel.kind has the wrong type"):
                kp.load(tmp_path / "wrong.npz")


def test_files_with_fields_of_a_newer_version_were_read_without_them(tmp_path):
    arrays = kp._as_arrays(kp.kpca(X, g, 2, centered=False))
    for further in ("power", "kernel.noise", "kernel.kind.x", "columns"):
        np.savez(tmp_path / "newer.npz", **arrays, **{further: np.array(0.5)})
        with pytest.raises(
            ValueError, match=f"^load: .*newer.npz was written by .* does not know .*{further}"
        ):
            kp.load(tmp_path / "newer.npz")
    model = {f"model.{name}".replace("model.class", "model"): arrays[name] for name in arrays}
    np.savez(tmp_path / "newer.npz", embedding=X, values=X[0], **model)
    assert np.array_equal(kp.load(tmp_path / "newer.npz").points, X)
    np.savez(tmp_path / "newer.npz", embedding=X, values=X[0], **model, **{"model.power": X})
    with pytest.raises(ValueError, match="does not know .*model.power"):
        kp.load(tmp_path / "newer.npz")


@pytest.mark.parametrize("inside", ["", "model."])
def test_files_without_names_were_refused(inside, tmp_path):
    for made in (kp.kpca(X, g, 2, centered=False), kp.nystrom_map(X, np.arange(5), g)):
        arrays = kp._as_arrays(made, inside)
        del arrays[f"{inside}names"]
        np.savez(tmp_path / "older.npz", **arrays)
        assert np.array_equal(kp.features(X, kp.load(tmp_path / "older.npz")), kp.features(X, made))


def test_files_stored_the_numbers_of_feature_maps_and_tasks(tmp_path):
    maps = [row.make(g, 3, 8) for row in tables.FEATURES.values()]
    states = [
        kp.dsgd_start(X, maps[0], 2, individual=individual, centered=False)
        for individual in (False, True)
    ]
    other = kp.fourier_features_map(g, 2, 8)
    states.append(kp.dsgd_kcca_start(X, X[:, :2], maps[0], other, 1))
    states.append(kp.dsgd_ksvd_start(X, X[:, :2], maps[0], other, 1))
    states.append(kp.dsgd_ksir_start(X, X[:, 0], maps[0], 1))
    seen = set()
    for made, field in [(made, "kind") for made in maps] + [(made, "task") for made in states]:
        kp.save(tmp_path / "m.npz", made)
        with np.load(tmp_path / "m.npz") as file:
            assert all(file[name].dtype.kind == "U" for name in file if name.endswith(field))
            seen.add(str(file[field]))
            arrays = dict(file)
        assert getattr(kp.load(tmp_path / "m.npz"), field) == getattr(made, field)
        for wrong in (2, "quartic", [0]):
            np.savez(tmp_path / "wrong.npz", **{**arrays, field: wrong})
            with pytest.raises(ValueError, match=f"wrong.npz .*{field} has the wrong type"):
                kp.load(tmp_path / "wrong.npz")
    assert seen == {*kp._MAP_NAMES, *kp._TASKS}
    for made, field in ((maps[0], "kind"), (states[0], "task")):
        with pytest.raises(ValueError, match=f"^save: model.{field} must have the type"):
            kp.save(tmp_path / "m.npz", made._replace(**{field: 7}))


# Files of version 1.0

FOLDER = pathlib.Path(__file__).parent / "files_of_1_0"
POINTS = np.random.default_rng(1).standard_normal((12, 2))
TARGETS = np.sin(POINTS[:, :1])
SEEN = 4  # rows of POINTS whose results are stored


def made_by_1_0():
    """{name: result} of each class of models and states, kind of kernel, of feature map and of DSGD."""
    kernels = [row.make(1.5) for row in tables.KERNELS.values()]
    kernels.append(kp.precomputed(POINTS[:SEEN] @ POINTS[:SEEN].T))
    numbers_of_kinds = [kernel.kind for kernel in kernels]
    made = {}
    for number in sorted({*numbers_of_kinds}):
        called = kp._KINDS[number].name.replace("/", " over ")
        made[f"kernel {called}"] = kernels[numbers_of_kinds.index(number)]
    made["kernel scaled"] = kp.scaled(g, 3.0)
    for name, row in tables.FEATURES.items():
        made[f"map {name}"] = row.make(g, 2, 16, 3)
    made["map redrawn"] = kp.fourier_features_map(g, 2, 16, 3, stored=False)
    for name, row in tables.MODELS.items():
        if getattr(kp, name) not in kp._streams:  # see below
            made[f"model {name}"] = row.make(POINTS, g)
    made["model centered"] = kp.kpca(POINTS, g, 2, centered=True)
    made["model of a frame"] = made["model centered"]._replace(names=b'["a", "b"]')
    made["model float32"] = kp.kpca(POINTS.astype(np.float32), g, 2)
    made["model ridge"] = kp.nystrom_ridge(POINTS, TARGETS[:, 0], np.arange(5), g, 0.1)
    for name, row in tables.STREAMS.items():
        made[f"state {name}"] = row.update(row.start(POINTS), POINTS)
    map_x, map_y = (kp.fourier_features_map(g, columns, 16) for columns in (2, 1))
    made["state individual"] = kp.dsgd_start(POINTS, map_x, 2, individual=True)
    made["state singular"] = kp.dsgd_ksvd_start(POINTS, TARGETS, map_x, map_y, 1)
    made["state canonical"] = kp.dsgd_kcca_start(POINTS, TARGETS, map_x, map_y, 1)
    made["state sliced"] = kp.dsgd_ksir_start(POINTS, TARGETS, map_x, 1)
    made["two views"] = kp.dsgd_kcca(POINTS, TARGETS, g, g, 1, 16)
    made["landmarks of rows"] = kp.uniform_landmarks(12, 4)
    made["reduced set"] = kp.shadow_select(POINTS, 0.9)
    made["eigenpairs"] = kp.block_lanczos(POINTS @ POINTS.T, 2)
    made["bits"] = kp.quantize_gram(POINTS, g)
    return made


def arrays_in(value):
    if isinstance(value, tuple):
        return [array for field in value for array in arrays_in(field)]
    if isinstance(value, (np.ndarray, int, float)):
        return [np.asarray(value, float)]
    return []


def numbers(made, points=POINTS):
    """Numbers that a result must give in every version. They do not depend on signs of components."""
    cls = type(made)
    if cls is kp.Kernel:
        X = np.arange(SEEN)[:, None] if made.table.size else POINTS[:SEEN]
        return kp.gram(X, X, made)
    if cls in kp._models:
        F = kp.features(points[:SEEN], made)
        return F @ F.T if F.ndim == 2 else F
    if cls in kp._streams:
        return numbers(kp.finish(made))
    if cls.__name__ == "TwoViews":
        return np.hstack([numbers(made.first), numbers(made.second, TARGETS)])
    if cls is kp.Sketch:
        return made.B.T @ made.B
    if cls is kp.Eigen:
        return (made.vectors * made.values) @ made.vectors[:SEEN].T
    return np.concatenate([array.ravel() for array in arrays_in(made)])


NAMES_OF_1_0 = sorted(path.stem for path in FOLDER.glob("*.npz") if path.stem != "expected")


@pytest.mark.parametrize("name", NAMES_OF_1_0)
def test_a_file_of_version_1_0_gives_the_same_results(name):
    made = kp.load(FOLDER / f"{name}.npz")
    found = numbers(made)
    with np.load(FOLDER / "expected.npz") as expected:
        wanted = expected[name]
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    tolerance = 1e-5 if wanted.dtype == np.float32 else 1e-9
    assert np.abs(found - wanted).max() <= tolerance * max(np.abs(wanted).max(), 1.0)
    if type(made) in kp._streams:  # it goes on
        two = name in ("state singular", "state canonical", "state sliced")
        kp.finish(kp.update(made, POINTS, TARGETS if two else None))


def test_every_class_of_models_and_states_and_every_kind_has_a_file_of_version_1_0():
    classes, named = set(), {field: set() for field in kp._NAMED}
    for name in NAMES_OF_1_0:
        with np.load(FOLDER / f"{name}.npz") as file:
            texts = {place: str(file[place]) for place in file if file[place].dtype.kind == "U"}
        classes |= {text for text in texts.values() if text in kp._TUPLES}
        for place, text in texts.items():
            for cls, field in named:
                if place.endswith(field) and text in kp._NAMED[cls, field]:
                    named[cls, field].add(text)
    assert {cls.__name__ for cls in (*kp._models, *kp._streams)} <= classes
    for field, found in named.items():
        assert found >= {*kp._NAMED[field]} - {"custom"}, field
    assert kp.load(FOLDER / "model of a frame.npz").names == b'["a", "b"]'
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 200_000


def write_files(folder):
    """Write the files that are not there, and the numbers that they must give."""
    path = folder / "expected.npz"
    expected = dict(np.load(path)) if path.exists() else {}
    for name, result in made_by_1_0().items():
        if (folder / f"{name}.npz").exists():
            print(f"skipped, because it is there: {name}.npz")
            continue
        file = io.BytesIO()
        kp.save(file, result)
        file.seek(0)
        np.savez_compressed(folder / f"{name}.npz", **np.load(file))
        expected[name] = numbers(result)
    np.savez_compressed(path, **expected)


def test_files_of_version_1_0_were_written_again(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(globals(), "made_by_1_0", lambda: {"map": kp.fourier_features_map(g, 2, 8)})
    write_files(tmp_path)
    before = (tmp_path / "map.npz").read_bytes()
    other = {"map": kp.fourier_features_map(g, 2, 16), "bits": kp.quantize_gram(X, g)}
    monkeypatch.setitem(globals(), "made_by_1_0", lambda: other)
    write_files(tmp_path)
    assert (tmp_path / "map.npz").read_bytes() == before
    assert capsys.readouterr().out == "skipped, because it is there: map.npz\n"
    with np.load(tmp_path / "expected.npz") as expected:
        assert expected["map"].shape == (4, 4) and "bits" in expected


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write_files(FOLDER)
