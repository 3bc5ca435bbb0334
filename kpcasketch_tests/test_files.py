# SPDX-License-Identifier: BSD-3-Clause
"""Files of models; what is advised is tried by test_command_line.py."""

import io
import pickle

import numpy as np
import pytest
import scipy.sparse

import kpcasketch as kp

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
        if not (isinstance(value, tuple) or scipy.sparse.issparse(value))
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
        ValueError, match="^save: model must be a named tuple of kpcasketch, got ndarray"
    ):
        kp.save(tmp_path / "x.npz", X)


def test_a_damaged_file_was_another_model(rng):
    # lost entries became defaults, and an array with a damaged shape had fewer rows
    model = kp.kpca(rng.standard_normal((9, 2)), g, 2, centered=False)
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
            pairs = zip(found._replace(kernel=0), model._replace(kernel=0))
            assert all(np.array_equal(a, b) for a, b in pairs), (place, change)
            assert found.kernel == model.kernel
    assert refused > 1000


def test_a_kernel_or_model_without_its_parameters_was_another(tmp_path):
    arrays = kp._as_arrays(kp.kpca(X, g, 2, centered=False))
    for name in ("kernel.gamma", "mean", "kernel"):
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
            ValueError, match=f"^load: .*newer.npz .* this version, but has .*{further}"
        ):
            kp.load(tmp_path / "newer.npz")
    model = {f"model.{name}".replace("model.class", "model"): arrays[name] for name in arrays}
    np.savez(tmp_path / "newer.npz", embedding=X, values=X[0], **model)
    assert np.array_equal(kp.load(tmp_path / "newer.npz").points, X)
    np.savez(tmp_path / "newer.npz", embedding=X, values=X[0], **model, **{"model.power": X})
    with pytest.raises(ValueError, match="this version, but has .*model.power"):
        kp.load(tmp_path / "newer.npz")


@pytest.mark.parametrize("inside", ["", "model."])
def test_files_without_names_were_refused(inside, tmp_path):
    for made in (kp.kpca(X, g, 2, centered=False), kp.nystrom_map(X, np.arange(5), g)):
        arrays = kp._as_arrays(made, inside)
        del arrays[f"{inside}names"]
        np.savez(tmp_path / "older.npz", **arrays)
        assert np.array_equal(kp.features(X, kp.load(tmp_path / "older.npz")), kp.features(X, made))


def test_files_stored_the_numbers_of_feature_maps_and_tasks(tmp_path):
    makers = kp.fourier_features_map, kp.orthogonal_features_map, kp.quasi_features_map
    maps = [make(g, 3, 8) for make in (*makers, kp.fastfood_features_map)]
    states = [
        kp.dsgd_start(X, maps[0], 2, individual=individual, centered=False)
        for individual in (False, True)
    ] + [kp.dsgd_kcca(X, X[:, :2], g, g, 1, 16), kp.dsgd_ksvd(X, X[:, :2], g, g, 1, 16)]
    states.append(kp.dsgd_ksir(X, X[:, 0], g, 1, 16))
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
    assert len(seen) == 9
    for made, field in ((maps[0], "kind"), (states[0], "task")):
        with pytest.raises(ValueError, match=f"^save: model.{field} must have the type"):
            kp.save(tmp_path / "m.npz", made._replace(**{field: 7}))
