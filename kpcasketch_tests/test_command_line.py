# SPDX-License-Identifier: BSD-3-Clause
"""The command line: a table for good input, one line and status 2 for bad, and files that are whole or the old ones."""

import errno
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import kpcasketch as kp
from kpcasketch_tests import naive


@pytest.fixture(autouse=True)
def no_notices(monkeypatch):
    """Errors are read from stderr, where a first call would say that it is being compiled."""
    monkeypatch.setattr(kp, "QUIET", True)


X = np.random.default_rng(0).standard_normal((150, 3))
KERNEL = kp.gaussian(2.0)


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    return str(path)


def refused(capsys, *words):
    """The line with which a command is refused."""
    capsys.readouterr()
    assert kp.main([str(word) for word in words]) == 2
    notes = r"kpcasketch: (\S+: \d+ (points|gaps|rows).*|shares of .*|column .*|\d+ points are held .*)\n"
    error = re.sub(notes, "", capsys.readouterr().err)
    assert error.startswith("kpcasketch: error: ") and error.count("\n") == 1, error
    return error


def done(capsys, *words):
    """The notes of a command on stderr."""
    capsys.readouterr()
    status = kp.main([str(word) for word in words])
    found = capsys.readouterr()
    assert status == 0, found.err
    return found.err


def of_prepared(model):
    """The model without its preparation, so that it takes points that a test has prepared by hand."""
    return model._replace(names=b"")


def row_of(out, method):
    """The fields of a method's row: seconds, bytes (two words), error, ..."""
    return next(line.split() for line in out.splitlines() if line.startswith(method + " "))


# CSV files


def csv_file(tmp_path, content, name="a.csv"):
    pytest.importorskip("pandas")
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(tmp_path, capsys, content, *words):
    """The points that the command line reads from a CSV file, and the names of their columns."""
    pytest.importorskip("pandas")
    path, out = csv_file(tmp_path, content), tmp_path / "model.npz"
    done(capsys, "embed", path, "-k", "1", "--sigma", "1", "--model", out, *words)
    model = kp.load(out)
    with np.load(out) as arrays:
        return model.points.tolist(), json.loads(arrays["model.names"].item())


def test_help_lists_what_counts_as_a_gap():
    listed = kp._TABLES_HELP.split("missing if it is empty, ")[1].split("or None. ")[0]
    assert {*listed.split(), "", "None"} == kp._MISSING


def with_holes(rng, n=90):
    """Points with NaN, their ids and labels."""
    points = rng.standard_normal((n, 3)) * [1, 20, 5] + [0, 100, 0]
    points[rng.random((n, 3)) < 0.1] = np.nan
    return points, [f"P, {i}" for i in range(n)], np.where(points[:, 2] > 0, "high", "low")


def written(path, points, ids, labels, missing):
    """A CSV file with a row number, an id, the columns a, b, c and a label."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(points, columns=list("abc"))
    frame.insert(0, "patient", ids)
    frame.assign(group=labels).to_csv(path, na_rep=missing)
    return frame


@pytest.mark.parametrize("missing", ["", "NA", "#N/A", "nan"])
def test_missing_values_become_medians_also_of_new_points(tmp_path, capsys, rng, missing):
    points, ids, labels = with_holes(rng)
    path = tmp_path / "a.csv"
    frame = written(path, points, ids, labels, missing)
    words = ["--drop", "1,patient", "--labels", "group"]
    fit = ["-k", "2", "--sigma", "2", "--standardize", "--model", tmp_path / "m.npz"]
    error = refused(capsys, "embed", path, *words, *fit)
    assert re.search(r"X must be finite in row \d+, column [abc]: --missing median fills", error)
    out = tmp_path / "o.csv"
    done(capsys, "embed", path, *words, *fit, "--missing", "median", "-o", out)
    filled = np.where(np.isnan(points), np.nanmedian(points, 0), points)
    Z = (filled - filled.mean(0)) / filled.std(0)
    model = kp.load(tmp_path / "m.npz")
    assert np.abs(model.points - Z).max() < 1e-12
    expected = kp.features(Z, of_prepared(model))
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(out, index_col="row")
    assert table.columns.tolist() == [
        "component_1",
        "component_2",
    ] and table.index.tolist() == list(range(1, 91))
    assert np.abs(table.to_numpy() - expected).max() < 1e-6
    # new points: the medians are those of the model, not of the few new rows
    few = frame[["c", "a", "patient", "b"]].iloc[:7]
    few.to_csv(tmp_path / "new.csv", index=False)
    done(capsys, "apply", tmp_path / "m.npz", tmp_path / "new.csv", "-o", tmp_path / "f.npy")
    assert np.isnan(points[:7]).any()
    assert np.abs(np.load(tmp_path / "f.npy") - expected[:7]).max() < 1e-9
    for X in (few, few[["b", "c", "a"]], points[:7], np.float32(points[:7])):
        prepared = kp.prepared_points(tmp_path / "m.npz", X)
        assert np.abs(prepared - Z[:7]).max() < 1e-5
    assert prepared.dtype == np.float32
    for X, text in (
        (few.drop(columns="a"), r"each of the columns \['a'\] exactly once, and has \['c', "),
        (points[:7, :1], "3 columns, got 1"),
        (points[:7, :2], "3 columns, got 2"),
        (few.iloc[0][["a", "b", "c"]].astype(float), "be a 2-D array"),  # these two were TypeErrors
        ({"a": [1.0]}, "be a 2-D array"),
    ):
        with pytest.raises(ValueError, match=f"^prepared_points: X must (have )?{text}"):
            kp.prepared_points(tmp_path / "m.npz", X)


def test_a_row_without_any_value_became_a_typical_point_unless_it_was_in_a_csv_file(
    tmp_path, capsys, rng
):
    pandas = pytest.importorskip("pandas")
    points, _, _ = with_holes(rng)
    points[points[:, 0] > 2.0, 1:] = 1.0
    path = tmp_path / "a.csv"
    pandas.DataFrame(points, columns=list("abc")).to_csv(path, index=False)
    fit = ["-k", "2", "--sigma", "2", "--missing", "median", "--model", tmp_path / "m.npz"]
    done(capsys, "embed", path, *fit)
    new = np.array([[0.5, np.nan, np.nan], [np.nan, np.nan, np.nan], [1.0, 2.0, 3.0]])
    frame = pandas.DataFrame(new, columns=list("abc"))
    for X in (new, np.float32(new), frame):
        with pytest.raises(
            ValueError, match="^prepared_points: X must have values; row 1 has none"
        ):
            kp.prepared_points(tmp_path / "m.npz", X)
    median = np.nanmedian(points, 0)
    filled = kp.prepared_points(tmp_path / "m.npz", new[::2])
    assert np.array_equal(filled, [[0.5, median[1], median[2]], [1.0, 2.0, 3.0]])
    np.save(tmp_path / "new.npy", new)
    np.savez(tmp_path / "new.npz", X=new)
    for name in ("new.npy", "new.npz"):
        error = refused(
            capsys, "apply", tmp_path / "m.npz", tmp_path / name, "-o", tmp_path / "f.npy"
        )
        assert f"{name}: X must have values; row 2 has none" in error


def test_a_table_of_features_has_every_column_that_was_asked_for(points, tmp_path, capsys):
    model, known, out = tmp_path / "m.npz", tmp_path / "known.npy", tmp_path / "o.csv"
    np.save(known, np.random.default_rng(5).standard_normal((99, 3)))
    done(capsys, "embed", points, "-k", "2", "--sigma", "2", "--model", model, "-o", out)
    table = np.genfromtxt(out, delimiter=",", names=True)
    assert table.dtype.names == ("row", "component_1", "component_2")
    assert table["row"].tolist() == list(range(1, 151))
    words = ["apply", model, points, "--residual", "--novelty", "0.02", "--known", known]
    done(capsys, *words, "-o", out)
    done(capsys, *words, "-o", tmp_path / "o.npy")
    table = np.genfromtxt(out, delimiter=",", names=True)
    assert table.dtype.names[3:] == ("residual", "p", "novel")
    found = np.column_stack([table[name] for name in table.dtype.names[1:]])
    assert np.array_equal(found, np.load(tmp_path / "o.npy"))  # the same floats
    np.save(tmp_path / "single.npy", X.astype(np.float32))
    for command in (["stream", tmp_path / "single.npy", "-m", "30", "--ell", "8", "-k", "2"],):
        done(capsys, *command, "-o", out)
        done(capsys, *command, "-o", tmp_path / "o.npy")
        table = np.genfromtxt(out, delimiter=",", skip_header=1)[:, 1:]
        assert np.array_equal(table.astype(np.float32), np.load(tmp_path / "o.npy"))


@pytest.mark.parametrize(
    "module, words, told",
    [
        ("matplotlib", "kp._library('matplotlib.figure', 'matplotlib', '--plot')", "matplotlib"),
        ("sklearn", "kp.LandmarkFeatures", "scikit-learn>=1.6"),
        ("dask", "kp.dask_median_bandwidth(1)", "dask[array]"),
    ],
)
def test_a_library_that_is_missing_did_not_say_how_to_install_it(module, words, told):
    code = (
        f"import sys, kpcasketch as kp; sys.modules['{module}'] = None\n"
        f"try: {words}\nexcept ImportError as error: print(error, file=sys.stderr)"
    )
    folder = os.path.dirname(kp.__file__)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)
    assert f'needs {told}: python -m pip install "{told}"' in run.stderr


def of_model(tmp_path, capsys, content, *words):
    """Features that `apply` gives of a CSV file by the model m.npz."""
    done(
        capsys,
        "apply",
        tmp_path / "m.npz",
        csv_file(tmp_path, content, "new.csv"),
        "-o",
        tmp_path / "f.npy",
        *words,
    )
    return np.load(tmp_path / "f.npy")


def table(points, header):
    return header + "\n" + "\n".join(",".join(map(repr, row)) for row in points.tolist()) + "\n"


def test_options_of_csv_files_serve_a_command_that_also_reads_arrays(tmp_path, capsys):
    known, model = tmp_path / "known.npy", tmp_path / "m.npz"
    np.save(known, np.random.default_rng(5).standard_normal((99, 3)))
    path = csv_file(tmp_path, table(X, "a,b,c").replace(",", ";").replace(".", ","))
    words = [path, "--delimiter", ";", "-k", "2", "--sigma", "2", "--model", model]
    done(capsys, "embed", *words)
    out = ["-o", tmp_path / "o.csv"]
    words[0] = tmp_path / "link.csv"
    words[0].symlink_to(path.rename(tmp_path / "3f1c"))
    done(capsys, "apply", model, *words[:3], "--novelty", "0.1", "--known", known, *out)
    done(capsys, "stream", known, *words, "-m", "50", "--ell", "5")


def test_one_column_was_spread_over_all_that_a_model_is_standardized_by(tmp_path, capsys):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "one.npy", X[:, :1])
    words = ["-k", "2", "-m", "20", "--ell", "5", "--standardize"]
    done(
        capsys,
        "stream",
        tmp_path / "X.npy",
        *words,
        "--state",
        tmp_path / "s.npz",
        "--model",
        tmp_path / "m.npz",
    )
    for command in (
        ["apply", tmp_path / "m.npz", tmp_path / "one.npy", "-o", tmp_path / "f.npy"],
        ["stream", tmp_path / "one.npy", *words, "--state", tmp_path / "s.npz"],
    ):
        assert "one.npy: X must have 3 columns, got" in refused(capsys, *command)


@pytest.mark.parametrize("n", [1024, 1025, 1537])
def test_a_last_point_alone_ended_a_centred_stream_and_its_state(tmp_path, capsys, n):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).standard_normal((n, 2)))
    done(
        capsys,
        "stream",
        tmp_path / "X.npy",
        "--method",
        "dsgd",
        "-m",
        "50",
        "-k",
        "2",
        "--state",
        tmp_path / "s.npz",
    )
    assert kp.load(tmp_path / "s.npz").step == n // 512


def test_a_stream_of_more_components_than_it_keeps_was_read_to_its_end(many, capsys):
    _, path, state = many
    assert "-k must be an int from 1 to 4, got 5" in refused(
        capsys, "stream", path, *STREAM, "-k", "5", "--state", state
    )


def test_files_larger_than_the_disk_did_not_end_in_a_bus_error(
    points, tmp_path, monkeypatch, capsys
):
    header = np.lib.format.write_array_header_1_0

    def full(file, told):
        header(file, told)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np.lib.format, "write_array_header_1_0", full)
    assert "No space left" in refused(capsys, "embed", points, "-k", "1", "-o", tmp_path / "o.npy")
    assert os.listdir(tmp_path) == ["X.npy"]


@pytest.mark.parametrize("points", [np.ones((1, 3)), np.full((4, 2), 3.0), np.zeros((4, 2))])
@pytest.mark.parametrize(
    "words", [[], ["--method", "quantize"], ["--method", "uniform", "-s", "1"]]
)
def test_points_without_a_direction_about_their_mean_ended_in_principal_angles(
    tmp_path, capsys, points, words
):
    np.save(tmp_path / "X.npy", points)
    done(
        capsys,
        "embed",
        tmp_path / "X.npy",
        "-k",
        "1",
        "--sigma",
        "1",
        *words,
        "-o",
        tmp_path / "o.npy",
    )
    assert not np.load(tmp_path / "o.npy").any()


def test_a_gram_matrix_of_zeros_divided_by_its_norm(tmp_path, capsys):
    np.save(tmp_path / "X.npy", np.zeros((4, 2)))
    words = ["--kernel", "linear", "-o", tmp_path / "o.npy"]
    done(capsys, "embed", tmp_path / "X.npy", "-k", "1", *words)


def test_a_column_of_the_points_holds_their_labels(tmp_path, capsys):
    kinds, model, picture = (
        np.array(["cat", "dog"])[np.arange(150) % 2],
        tmp_path / "m.npz",
        tmp_path / "p.svg",
    )
    rows = "\n".join(",".join([kind, *map(repr, map(float, row))]) for kind, row in zip(kinds, X))
    path = csv_file(tmp_path, "species,a,b,c\n" + rows)
    error = refused(capsys, "embed", path, "-k", "1", "-o", tmp_path / "o.npy")
    assert "got species ('cat' in row 1): pass --drop species, or name columns by" in error
    fit = ["embed", path, "--columns", "a,b", "-o", tmp_path / "o.npy"]
    assert "columns ['kind'] are not in the file" in refused(capsys, *fit, "--labels", "kind")
    words = [
        "embed",
        path,
        "-k",
        "2",
        "--sigma",
        "2",
        "--labels",
        "species",
        "--model",
        model,
    ]
    done(capsys, *words)
    assert np.array_equal(kp.load(model).points, X)
    assert kp.load(model).names == b'["a", "b", "c"]'
    pytest.importorskip("matplotlib")
    done(capsys, *words, "--plot", picture)
    assert "cat" in picture.read_text()


# Other files


def test_an_output_in_a_directory_that_cannot_be_written_was_found_out_after_the_work(
    points, tmp_path, monkeypatch, capsys
):
    out, real = tmp_path / "o.npy", os.access
    out.write_bytes(b"former")
    monkeypatch.setattr(
        os, "access", lambda path, mode: pathlib.Path(path) != tmp_path and real(path, mode)
    )
    assert f"cannot write {out}" in refused(capsys, "embed", points, "-k", "2", "-o", out)
    assert out.read_bytes() == b"former"


def test_a_model_in_the_place_of_another_tells_what_serves_it():
    with pytest.raises(
        ValueError, match="must be an Expansion.* got Subspace: call features\\(X, model\\)"
    ):
        kp.gradient(X, kp.skpca(X, KERNEL, 2, 20, 5, centered=False))


def test_each_command_has_help_and_its_own_options_alone(capsys):
    for command in kp._COMMANDS:
        with pytest.raises(SystemExit) as stop:
            kp.main([command, "--help"])
        assert stop.value.code == 0 and f"usage: kpcasketch {command}" in capsys.readouterr().out
    for words, text in (
        (["X.npy"], "invalid choice"),
        (["demo", "X.npy"], "unrecognized arguments: X.npy"),
        (["apply", "m", "x", "-k", "3"], "unrecognized arguments: -k 3"),
        (["apply", "m", "x", "--method", "rls"], "unrecognized arguments: --method"),
        (["cluster", "X.npy"], "invalid choice"),
        (["embed"], "required: FILE"),
    ):
        assert text in refused(capsys, *words)


def test_help_has_the_defaults_of_streams():
    for method, cls in kp._STREAM_METHODS.items():
        for name, value in kp._streams[cls].options.items():
            told = kp._ARGUMENTS[f"-{name}" if len(name) == 1 else f"--{name}"]["help"]
            assert method in told and str(value) in told, told


def test_without_a_word_it_is_the_demo(monkeypatch):
    asked = []
    monkeypatch.setitem(kp._COMMANDS, "demo", (asked.append, *kp._COMMANDS["demo"][1:]))
    assert kp.main([]) == 0 and asked[0].points is None and asked[0].k == 10


# The table


@pytest.mark.parametrize(
    "words, matrix", [([], naive.centered), (["--no-center"], lambda K: K)], ids=["", "no-center"]
)
def test_one_method_on_a_file_writes_the_embedding(points, tmp_path, capsys, words, matrix):
    out = tmp_path / "out.npz"
    done(capsys, "embed", points, "-k", "2", "--sigma", "2", *words, "-o", out)
    with np.load(out) as written:
        values, vectors = naive.eigenpairs(matrix(naive.gaussian(X, X, 2.0)), 2)
        assert np.allclose(written["values"], values)
        assert np.abs(written["embedding"] - vectors * np.sqrt(values)).max() < 1e-6


@pytest.mark.parametrize("method", ["lanczos", "implicit"])
@pytest.mark.parametrize(
    "points, kernel, words",
    [
        (
            np.random.default_rng(0).uniform(0, 3600, (200, 3)) + [1.7e9, 0, 0],
            kp.linear(),
            ["--kernel", "linear"],
        ),
        (np.random.default_rng(2).standard_normal((200, 2)), kp.gaussian(1e4), ["--sigma", "1e4"]),
    ],
    ids=["linear", "gaussian"],
)
def test_centred_embeddings_lost_the_digits_that_centered_kpca_keeps(
    points, kernel, words, method, tmp_path, capsys
):
    # features of new points were off by 20 times their size, or components that are rounding were kept
    np.save(tmp_path / "T.npy", points)
    done(
        capsys,
        "embed",
        tmp_path / "T.npy",
        *words,
        "-k",
        "4",
        "--method",
        method,
        "-o",
        tmp_path / "o.npz",
        "--model",
        tmp_path / "m.npz",
    )
    done(capsys, "apply", tmp_path / "m.npz", tmp_path / "T.npy", "-o", tmp_path / "a.npy")
    wide = points.astype(np.longdouble)
    wide = wide - wide.mean(0)
    D = np.square(wide[:, None] - wide).sum(2)
    K = wide @ wide.T if "linear" in words else np.expm1(-D / 2e8)
    H = np.eye(200) - 1 / 200
    values, vectors = np.linalg.eigh((H @ K @ H).astype(float))
    features = (vectors * np.sqrt(values.clip(0.0)))[:, :-5:-1]
    expected = kp.kpca(points, kernel, 4, centered=True)
    kept = expected.values > 0.0
    with np.load(tmp_path / "o.npz") as arrays:
        embedding, found = arrays["embedding"], arrays["values"]
    assert np.array_equal(found > 0.0, kept) and kept.sum() >= 2
    assert np.allclose(found[kept], values[:-5:-1][kept], rtol=1e-5)
    for Z in (embedding, np.load(tmp_path / "a.npy")):
        assert not Z[:, ~kept].any()
        assert np.abs(np.abs(Z) - np.abs(features) * kept).max() < 5e-4 * np.abs(features).max()


# Pictures and labels


def test_models_that_apply_could_not_draw_ended_in_a_traceback(points, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    model, picture = tmp_path / "m.npz", tmp_path / "p.svg"
    few = kp.uniform_landmarks(150, 20)
    for Y in (X[:, 0], X[:, :1], X):
        kp.save(model, kp.nystrom_ridge(X, Y, few, KERNEL, 1e-3, intercept=False))
        done(capsys, "apply", model, points, "--plot", picture, "-o", tmp_path / "o.npy")
        expected = kp.features(X, kp.load(model)).reshape(150, -1)
        assert np.array_equal(np.load(tmp_path / "o.npy"), expected)
        assert ("<!-- component 2" in picture.read_text()) == (Y is X)
        picture.unlink()
    kp.save(model, KERNEL)
    error = refused(capsys, "apply", model, points, "--plot", picture)
    assert "model must be one of" in error and not picture.exists()


def test_prepared_points_of_polars_frames_ended_in_a_type_error(tmp_path, capsys):
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    rows = X[:, [2, 0, 1]]
    words = ["-k", "2", "--sigma", "2", "--model", tmp_path / "m.npz"]
    path = csv_file(tmp_path, table(X, "a,b,3"))
    done(capsys, "embed", path, *words, "--standardize", "--missing", "median", "--header")
    rows[4, 1] = np.nan
    filled = np.where(np.isnan(rows), np.median(X[:, 0]), rows)[:, [1, 2, 0]]
    for frame in (
        polars.DataFrame(rows, schema=["3", "a", "b"]).with_columns(note=polars.lit("x")),
        polars.DataFrame(
            {"3": rows[:, 0], "a": [None if x != x else x for x in rows[:, 1]], "b": rows[:, 2]}
        ),
        pandas.DataFrame(rows, columns=[3, "a", "b"]).assign(note="x"),  # a name that is a number
    ):
        found = kp.prepared_points(tmp_path / "m.npz", frame)
        assert np.abs(found - (filled - X.mean(0)) / X.std(0)).max() < 1e-12
    with pytest.raises(
        ValueError, match=r"^prepared_points: X must have each of the columns \['b'\]"
    ):
        kp.prepared_points(tmp_path / "m.npz", polars.DataFrame({"3": [1.0], "a": [2.0]}))


# Models, and features by them


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(
    "method, words",
    [
        ("lanczos", []),
        ("uniform", ["-s", "40"]),
        ("skpca", ["-m", "32", "--ell", "8"]),
        ("dsgd", ["-m", "64", "--block", "30"]),
        ("quantize", []),
    ],
)
def test_a_model_on_disk_maps_new_points(tmp_path, capsys, method, words, center):
    new, model, out = (
        np.random.default_rng(1).standard_normal((40, 3)),
        tmp_path / "m.npz",
        tmp_path / "o.npy",
    )
    np.save(tmp_path / "X.npy", X * [1, 5, 1] + [0, 0, 7])
    np.save(tmp_path / "new.npy", new * [1, 5, 1])
    embed = [
        "stream" if method in kp._STREAM_METHODS else "embed",
        tmp_path / "X.npy",
        "-k",
        "2",
        "--sigma",
        "2",
        "--standardize",
        "--method",
        method,
        *words,
        *([] if center else ["--no-center"]),
    ]
    done(capsys, *embed, "-o", tmp_path / "all.npz", "--model", model)
    done(capsys, *embed, "-o", tmp_path / "alone.npy")
    for path in (model, tmp_path / "all.npz"):
        done(capsys, "apply", path, tmp_path / "X.npy", "-o", out)
        with np.load(tmp_path / "all.npz") as held:
            assert np.array_equal(held["embedding"], np.load(tmp_path / "alone.npy")) and held[
                "values"
            ].shape == (2,)
            if method != "quantize":  # eigenvectors of a sketch are not the features that they give
                assert np.abs(np.load(out) - held["embedding"]).max() < 1e-6
    done(capsys, "apply", model, tmp_path / "new.npy", "-o", out)
    Z = (new * [1, 5, 1] - (X * [1, 5, 1] + [0, 0, 7]).mean(0)) / (X * [1, 5, 1]).std(0)
    loaded = kp.load(model)
    assert np.abs(np.load(out) - kp.features(Z, of_prepared(loaded))).max() < 1e-9


def test_what_apply_refuses(points, tmp_path, capsys):
    model, state, out = tmp_path / "m.npz", tmp_path / "s.npz", tmp_path / "o.npy"
    kp.save(model, kp.kpca(X, KERNEL, 2, centered=False))
    before = model.read_bytes()
    done(capsys, "stream", points, "-k", "2", "-m", "20", "--ell", "4", "--state", state)
    np.save(tmp_path / "wide.npy", np.ones((4, 9)))
    kp.save(tmp_path / "eigen.npz", kp.block_lanczos(np.eye(9), 2))
    kp.save(tmp_path / "manifold.npz", kp.laplacian_eigenmap(X, KERNEL, 2))
    for words, text in (
        ([model, tmp_path / "wide.npy"], "must have the same number of columns, got shapes (1, 9)"),
        ([points, points], "written by save"),
        ([state, points], "model must be one of"),
        ([model, model], "must have an array X"),
        ([tmp_path / "eigen.npz", points], "got Eigen"),
        ([tmp_path / "gone.npz", points], "No such file"),
        ([tmp_path / "manifold.npz", points, "--residual"], "model must be"),
    ):
        assert text in refused(capsys, "apply", *words, "-o", out)
    nested = {"model" + ".A" * depth: np.array("Difference") for depth in range(1500)}
    np.savez(tmp_path / "nested.npz", **nested)  # ended in a traceback
    assert "nested.npz must be a file written by" in refused(
        capsys, "apply", tmp_path / "nested.npz", points, "-o", out
    )
    assert "is given twice" in refused(capsys, "apply", model, points, "-o", model)
    assert model.read_bytes() == before and not out.exists()
    done(capsys, "apply", tmp_path / "manifold.npz", points, "-o", out)
    assert np.array_equal(np.load(out), kp.features(X, kp.load(tmp_path / "manifold.npz")))


def test_residuals_come_with_features(points, tmp_path, capsys):
    model, out, far = (
        tmp_path / "m.npz",
        tmp_path / "o.npz",
        np.vstack([X[:5], [[50.0, 50.0, 50.0]]]),
    )
    np.save(tmp_path / "far.npy", far)
    stream = ["stream", points, "-k", "2", "-m", "100", "--ell", "20", "--sigma", "2"]
    done(capsys, *stream, "--model", model)
    done(capsys, "apply", model, points, "--residual", "-o", out)
    with np.load(out) as written:
        assert written["embedding"].shape == (150, 3)
        assert np.allclose(written["embedding"][:, 2], kp.residual(X, kp.load(model)))
    for command in (
        stream,
        ["embed", points, "-k", "3", "--sigma", "2", "--no-center"],
        ["embed", points, "-k", "3", "--sigma", "2"],
        ["embed", points, "-k", "3", "--sigma", "2", "--method", "rls", "-s", "30"],
    ):
        done(capsys, *command, "--model", model)
        done(capsys, "apply", model, tmp_path / "far.npy", "--residual", "-o", tmp_path / "f.npy")
        found, held = np.load(tmp_path / "f.npy"), kp.load(model)
        assert np.array_equal(
            found, np.column_stack([kp.features(far, held), kp.residual(far, held)])
        )


def test_novelty_comes_with_pvalues_and_marks(points, tmp_path, capsys):
    model, out, known = tmp_path / "m.npz", tmp_path / "o.npz", tmp_path / "known.npy"
    rng = np.random.default_rng(5)
    new = np.vstack([rng.standard_normal((30, 3)), np.full((4, 3), 30.0)])
    np.save(known, kept := rng.standard_normal((99, 3)))
    np.save(tmp_path / "new.npy", new)
    done(capsys, "embed", points, "-k", "9", "--standardize", "--sigma", "2", "--model", model)
    held = kp.load(model)
    scale = [(A - X.mean(0)) / X.std(0) for A in (new, kept)]
    held = of_prepared(held)
    p = kp.novelty_pvalues(scale[0], held, kp.residual(scale[1], held))
    novelty = ["apply", model, tmp_path / "new.npy", "--novelty", "0.02", "--known", known]
    done(capsys, *novelty, "--residual", "-o", out)
    with np.load(out) as written:
        found = written["embedding"]
    assert found.shape == (34, 12) and np.array_equal(found[:, 10], p)
    assert np.array_equal(found[:, 11], p <= 0.02) and found[30:, 11].all()
    single = tmp_path / "single.npy"
    np.save(single, new.astype(np.float32))
    done(capsys, *novelty[:2], single, *novelty[3:], "-o", tmp_path / "o.npy")
    assert np.load(tmp_path / "o.npy").dtype == np.float32
    assert np.array_equal(np.load(tmp_path / "o.npy")[:, 9:], np.float32([p, p <= 0.02]).T)
    held = known.read_bytes()
    for words, text in (
        (
            ["--novelty", "0.02"],
            "--novelty needs --known FILE, or a model of embed --holdout",
        ),
        (
            [*novelty[3:6], points],
            "points that the model has not seen, or their residuals are too small",
        ),
        (
            [*novelty[3:4], "0.009", *novelty[5:]],
            "--novelty 0.009 needs 111 known points, got 99 of",
        ),
        ([*novelty[3:4], "0", *novelty[5:]], "--novelty must be between 0 and 1, got 0.0"),
        (["--novelty", "0.1", "--known", tmp_path / "gone.npy"], "gone.npy"),
        (["--novelty", "0.1", "--known", model], "must have an array X"),
    ):
        assert text in refused(capsys, *novelty[:3], *words, "-o", tmp_path / "no.npy")
    assert "would be overwritten" in refused(capsys, *novelty, "-o", known)
    assert known.read_bytes() == held and not (tmp_path / "no.npy").exists()
    np.save(known, kept[:49])
    done(capsys, *novelty, "-o", out)  # 1 / 50 is reached
    pytest.importorskip("matplotlib")
    # p-values were drawn as the second component of a model with one
    done(capsys, "embed", points, "-k", "1", "--sigma", "2", "--model", model)
    done(capsys, *novelty, "--plot", tmp_path / "p.svg")
    picture = (tmp_path / "p.svg").read_text()
    assert "<!-- component 1" in picture and "<!-- component 2" not in picture


@pytest.mark.parametrize("words", [["--standardize"], ["--method", "uniform", "-s", "40"]])
def test_known_points_that_the_model_has_seen_gave_false_alarms(tmp_path, capsys, rng, words):
    # 12 % for 5 %
    files = {"a": rng.standard_normal((400, 3)), "new": rng.standard_normal((400, 3))}
    files["some_more"] = np.vstack([files["a"][:201], files["new"][:200]])
    files["some"] = np.vstack([files["a"][:15], files["new"]])
    for name, rows in files.items():
        csv_file(tmp_path, table(rows, "a,b,c"), f"{name}.csv")
    model, out = tmp_path / "m.npz", tmp_path / "o.npy"
    fit = ["embed", tmp_path / "a.csv", "-k", "30", *words, "--model", model]
    done(capsys, *fit)
    novelty = ["apply", model, tmp_path / "new.csv", "--novelty", "0.05", "-o", out]
    error = refused(capsys, *novelty, "--known", tmp_path / "a.csv")
    assert "--known must have points that the model has not seen" in error
    assert "pass others, or fit the model by embed --holdout 0.2" in error
    if "--standardize" in words:
        assert "has not seen" in refused(capsys, *novelty, "--known", tmp_path / "some_more.csv")
    done(capsys, *novelty, "--known", tmp_path / "some.csv")
    done(capsys, *fit, "--holdout", "0.2", "-o", tmp_path / "all.csv")
    with np.load(model) as arrays:
        held = arrays["known"]
        assert arrays["model.points"].shape == ((320 if "--standardize" in words else 40), 3)
        if "--standardize" in words:
            kept = (
                arrays["model.points"] * arrays["standardized.scale"] + arrays["standardized.mean"]
            )
            assert (
                np.abs(
                    kept
                    - np.array(
                        [row for row in files["a"] if np.abs(kept - row).max(1).min() < 1e-9]
                    )
                ).max()
                < 1e-9
            )
            assert np.allclose(arrays["model.points"].mean(0), 0.0, atol=1e-12)
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 401  # features of all points
    done(capsys, *novelty)
    expected = kp.novelty_pvalues(kp.prepared_points(model, files["new"]), kp.load(model), held)
    assert np.array_equal(np.load(out)[:, 30], expected) and held.shape == (80,)
    assert np.count_nonzero(expected <= 0.05) < 50
    assert "m.npz: pass a larger one, or more by embed --holdout or --known" in refused(
        capsys, *novelty[:4], "0.001", *novelty[5:]
    )
    assert "--holdout must be between 0 and 1" in refused(capsys, *fit, "--holdout", "1")


def test_single_precision_stays_and_whole_numbers_become_double(tmp_path, capsys):
    for dtype in (np.int16, np.float32, np.float64, ">f4"):
        data = np.random.default_rng(2).integers(-3, 4, (500, 2)).astype(dtype)
        np.save(tmp_path / "X.npy", np.asfortranarray(data) if dtype == np.float64 else data)
        for command in (["embed"], ["stream", "-m", "30", "--ell", "8"]):
            done(
                capsys,
                command[0],
                tmp_path / "X.npy",
                *command[1:],
                "-k",
                "2",
                "-o",
                tmp_path / "o.npy",
            )
            written = np.load(tmp_path / "o.npy")
            assert written.shape == (500, 2) and written.dtype == (
                np.float32 if dtype in (np.float32, ">f4") else np.float64
            )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_standardized_points_have_mean_0_and_variance_1(dtype, tmp_path):
    # a sum of .1 is rounded
    Y = (X * [1e-3, 5e6, 0] + [1e9 if dtype == np.float64 else 1.0, 0, 0.1]).astype(dtype)
    np.save(tmp_path / "Y.npy", Y)
    path = str(tmp_path / "Y.npy")
    found = kp._load_points(path, kp._parser().parse_args(["embed", path, "--standardize"]))
    assert (
        np.abs(found.rows().mean(0)).max() < 1e-3
        and np.abs(found.rows()[:, :2].std(0) - 1).max() < 1e-3
    )
    assert found.prepared["standardized.scale"][2] == 1 and np.array_equal(
        found.rows(slice(3, 5)), found.rows()[3:5]
    )
    assert found.rows().dtype == dtype


def test_columns_were_standardized_by_some_of_the_rows(tmp_path):
    # of 250,000 rows 100,000 were read: one value of 1e6 had a scale of 1.0 and not of 2000
    Y = np.random.default_rng(0).standard_normal((250_000, 2)).astype(np.float32)
    Y[np.random.default_rng(1).integers(250_000, size=3), 0] = 1e6
    np.save(tmp_path / "Y.npy", Y)
    for more in ([], ["--missing", "median"]):
        words = ["embed", str(tmp_path / "Y.npy"), "--standardize", *more]
        found = kp._load_points(words[1], kp._parser().parse_args(words)).prepared
        assert found["standardized.mean"] == pytest.approx(Y.mean(0, np.float64), rel=1e-9)
        assert found["standardized.scale"] == pytest.approx(Y.std(0, dtype=np.float64), rel=1e-9)


# Streams

CENTERED = ["-m", "16", "--ell", "4", "-k", "2", "--sigma", "2", "--seed", "3"]
# A mean of features is rounded as the blocks are cut, so that only other streams have the same bits.
STREAM = [*CENTERED, "--no-center"]


@pytest.fixture
def many(tmp_path):
    """A file of several blocks."""
    points = np.random.default_rng(1).standard_normal((20_000, 2))
    np.save(tmp_path / "many.npy", points)
    return points, str(tmp_path / "many.npy"), tmp_path / "state.npz"


def assert_whole(state, points):
    """The state has seen these points: the bits of one call on all of them."""
    found, expected = (
        kp.finish(kp.load(state), 2),
        kp.skpca(points, KERNEL, 2, 16, 4, 3, centered=False),
    )
    assert all(np.array_equal(a, b) for a, b in zip(found[1:], expected[1:]))


def test_a_stream_of_gradients_is_that_of_its_steps(many, tmp_path, capsys):
    points, path, state = many
    words = [
        "--method",
        "dsgd",
        "-m",
        "600",
        "--block",
        "1000",
        "-k",
        "2",
        "--sigma",
        "2",
        "--seed",
        "3",
    ]
    done(capsys, "stream", path, *words, "--state", state, "-o", tmp_path / "o.npz")
    expected = kp.dsgd_start(
        points[:2048], kp.fourier_features_map(KERNEL, 2, 600, 3, stored=False, paired=False), 2
    )
    for block in np.split(points, 20):
        expected = kp.update(expected, block)
    assert np.array_equal(kp.load(state).coef, expected.coef)
    with np.load(tmp_path / "o.npz") as written:
        assert np.array_equal(written["embedding"], kp.features(points, kp.finish(expected)))
        assert np.allclose(written["values"], kp.dsgd_values(expected))
    assert "--state must go on with the options" in refused(
        capsys, "stream", path, *STREAM, "--state", state
    )
    steps = kp.DSGDSteps(9, 60, 64)
    kp.save(state, kp.dsgd_kpca(points, KERNEL, 2, 300, 3, steps=steps, individual=True))
    assert "--state must be a file that --state has written" in refused(
        capsys, "stream", path, "--method", "dsgd", "-k", "2", "--state", state
    )


@pytest.mark.slow
# files that np.load left open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stream_interrupted_at_odd_moments_ends_with_the_same_bits(many, capsys):
    points, path, state = many
    rng, codes = np.random.default_rng(5), []
    model = str(state.with_name("m.npz"))
    # all is compiled before the first alarm
    assert kp.main(["stream", path, *STREAM, "--model", model]) == 0
    former = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        while not codes or codes[-1] != 0:
            try:
                # Longer and longer: a block gets done, however slow the machine is.
                signal.setitimer(
                    signal.ITIMER_REAL, 1.1 ** len(codes) * 10.0 ** rng.uniform(-2.5, -0.3)
                )
                codes.append(kp.main(["stream", path, *STREAM, "--state", str(state)]))
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:  # outside of the try statement of `main`
                codes.append(130)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert set(codes) <= {0, 130}
    assert_whole(state, points)


def test_a_file_that_has_grown_and_another_one_join_the_stream(many, tmp_path, monkeypatch, capsys):
    points, path, state = many
    np.save(path, points[:9000])
    done(capsys, "stream", path, *STREAM, "--state", state)
    np.save(path, points[:15_000])
    done(capsys, "stream", path, *STREAM, "--state", state)
    np.save(tmp_path / "other.npy", points[15_000:])
    for _ in range(2):  # its points were read twice, after another file's
        done(capsys, "stream", tmp_path / "other.npy", *STREAM, "--state", state)
        assert kp.load(state).count == 20_000
        done(capsys, "stream", path, *STREAM, "--state", state)
    assert_whole(state, points)
    np.save(path, points[::-1])
    assert "has changed in the rows" in refused(capsys, "stream", path, *STREAM, "--state", state)
    np.save(path, points[:10])
    assert "has changed in the rows" in refused(capsys, "stream", path, *STREAM, "--state", state)


def test_a_file_under_two_names_was_read_twice(many, tmp_path, capsys):
    points, path, state = many
    done(capsys, "stream", path, *STREAM, "--state", state)
    (tmp_path / "soft.npy").symlink_to(path)
    done(capsys, "stream", tmp_path / "soft.npy", *STREAM, "--state", state)
    assert_whole(state, points)


def test_further_files_of_a_stream_are_prepared_like_the_first(tmp_path, capsys):
    pytest.importorskip("pandas")
    A = csv_file(tmp_path, table(X[:90], "a,b,c"), "A.csv")
    B = csv_file(tmp_path, table(X[90:, [2, 0, 1]], "c,a,b"), "B.csv")
    words = ["-k", "2", "-m", "40", "--ell", "9", "--sigma", "2", "--standardize"]
    done(capsys, "stream", A, B, *words, "--model", tmp_path / "m.npz")
    Z = (X - X[:90].mean(0)) / X[:90].std(0)
    expected = kp.skpca(Z, KERNEL, 2, 40, 9)
    with np.load(tmp_path / "m.npz") as model:
        assert np.abs(model["model.values"] - expected.values).max() < 1e-9
    done(capsys, "stream", A, *words, "--state", tmp_path / "s.npz")
    done(
        capsys, "stream", B, *words, "--state", tmp_path / "s.npz", "--model", tmp_path / "two.npz"
    )
    with np.load(tmp_path / "m.npz") as one, np.load(tmp_path / "two.npz") as two:
        assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    "words",
    [
        ["-o", "many.npy"],
        ["--state", "s.npz", "-o", "s.npz"],
        ["--model", "s.npz", "--state", "./s.npz"],
    ],
)
def test_what_would_be_overwritten_is_refused(many, monkeypatch, tmp_path, capsys, words):
    monkeypatch.chdir(tmp_path)
    assert "would be overwritten" in refused(capsys, "stream", "many.npy", *STREAM, *words)
    assert np.array_equal(np.load("many.npy"), many[0])


@pytest.mark.parametrize(
    "content, words, rows, names",
    [
        ("1.5,2\n3,4\n5,7\n", [], [[1.5, 2], [3, 4], [5, 7]], ["#1 of 2", "#2 of 2"]),
        ("\ufeff1,2\n3,4\n", [], [[1, 2], [3, 4]], ["#1 of 2", "#2 of 2"]),
        ("\ufeffa,b\r\n1,2\r\n3,4\r\n", [], [[1, 2], [3, 4]], ["a", "b"]),
        ("e,i\n1,2\n3,4\n", [], [[1, 2], [3, 4]], ["e", "i"]),
        ('"a","b"\n"1","2"\n"3","4"', [], [[1, 2], [3, 4]], ["a", "b"]),
        ('"n,f",inf\n1,2\n3,4\n\n\n', [], [[1, 2], [3, 4]], ["n,f", "inf"]),
        # was refused
        ('"height\n(cm)",b\n1,2\n3,4\n', [], [[1, 2], [3, 4]], ["height\n(cm)", "b"]),
        ('"weight; kg",b\n1,2\n3,4\n', [], [[1, 2], [3, 4]], ["weight; kg", "b"]),
        # years were a point
        ("1990,1991\n1,2\n3,4\n", ["--header"], [[1, 2], [3, 4]], ["1990", "1991"]),
        ("0,1\n1,2\n3,4\n", ["--header"], [[1, 2], [3, 4]], ["0", "1"]),
        ("0,1\n1,2\n3,4\n", ["--no-header"], [[0, 1], [1, 2], [3, 4]], ["#1 of 2", "#2 of 2"]),
        (
            "0,0,0\n1,2,3\n7,9,8\n",
            [],
            [[0, 0, 0], [1, 2, 3], [7, 9, 8]],
            ["#1 of 3", "#2 of 3", "#3 of 3"],
        ),
        (
            "5.1,3.5,1.4\n1,2,3\n",
            [],
            [[5.1, 3.5, 1.4], [1, 2, 3]],
            ["#1 of 3", "#2 of 3", "#3 of 3"],
        ),
        (",a,b\n0,1,2\n1,3,4\n2,9,9\n", ["--columns", "b,a"], [[2, 1], [4, 3], [9, 9]], ["b", "a"]),
        (",a,b\n0,1,2\n1,3,4\n", ["--columns", "2,3"], [[1, 2], [3, 4]], ["a", "b"]),
        ('"x,y",z,t\n1,2,u\n3,4,v\n', ["--columns", '"x,y",z'], [[1, 2], [3, 4]], ["x,y", "z"]),
        # " a" was no name
        ("a,b,c\n1,2,3\n4,5,6\n", ["--columns", "c, a"], [[3, 1], [6, 4]], ["c", "a"]),
        (
            "0,5,6\n1,7,8\n2,9,9\n",
            ["--columns", "3,2"],
            [[6, 5], [8, 7], [9, 9]],
            ["#3 of 3", "#2 of 3"],
        ),
        ("\n\n1,2\n3,4\n", [], [[1, 2], [3, 4]], ["#1 of 2", "#2 of 2"]),
        ("\n\na,b\n\n1,2\n3,4\n", [], [[1, 2], [3, 4]], ["a", "b"]),
        ("5\n\n7\n", [], [[5], [7]], ["#1 of 1"]),
        ("a;b\n1,5;2\n3;-4,5e1\n", ["--delimiter", ";"], [[1.5, 2], [3, -45]], ["a", "b"]),
        (
            "1,5;2,5\n3,5;4,5\n",
            ["--delimiter", ";"],
            [[1.5, 2.5], [3.5, 4.5]],
            ["#1 of 2", "#2 of 2"],
        ),
        ("a\tb\n1,5\t2,5\n", ["--delimiter", "tab"], [[1.5, 2.5]], ["a", "b"]),
        (
            "caf\u00e9,b\n1,2\n".encode("cp1252"),
            ["--encoding", "cp1252"],
            [[1, 2]],
            ["caf\u00e9", "b"],
        ),
        ("a,b\n1,2\n".encode("utf-16"), ["--encoding", "utf-16"], [[1, 2]], ["a", "b"]),
        ("a,b,\n1,2,\n3,4,\n", ["--drop", "3"], [[1, 2], [3, 4]], ["a", "b"]),
        ("1,2,\n3,4,\n", ["--drop", "3", "--no-header"], [[1, 2], [3, 4]], ["#1 of 3", "#2 of 3"]),
        ("id,2,3\n1,2,3\n4,5,6\n", ["--columns", "2,3", "--header"], [[2, 3], [5, 6]], ["2", "3"]),
        (",a,b\n0,1,2\n1,3,4\n", ["--drop", "1"], [[1, 2], [3, 4]], ["a", "b"]),  # pandas
        ("a,b,c\n1,2,x\n3,4,y\n", ["--labels", "3"], [[1, 2], [3, 4]], ["a", "b"]),
        ("a,b\n1,2\n3,#N/A\n5,6\n", ["--missing", "drop"], [[1, 2], [5, 6]], ["a", "b"]),
        ("a,b\n1,2\n3, \n5,4\n", ["--missing", "median"], [[1, 2], [3, 3], [5, 4]], ["a", "b"]),
    ],
)
def test_csv_files_are_read_as_help_says(tmp_path, capsys, content, words, rows, names):
    assert read(tmp_path, capsys, content, *words) == (rows, names)


@pytest.mark.parametrize(
    "content, words, text",
    [
        (
            "1,2\n#DIV/0!,4\n5,6\n",
            [],
            "#1 of 2 ('#DIV/0!' in row 2): pass --drop '#1 of 2'",
        ),  # was dropped
        (
            ",a,b\n0,1,2\n1,3,4\n",
            [],
            "got Unnamed: 0 (has no name, like an index): pass --drop 'Unnamed: 0'",
        ),
        ("Unnamed: 0,a,b\n0,1,2\n1,3,4\n", [], "pass --drop 'Unnamed: 0'"),
        ("...1,a,b\n1,1,2\n2,3,4\n", [], "pass --drop ...1"),
        ("a,b\n1,2,3\n2,4,5\n", [], "the same number of fields"),  # R's row.names
        ("0,1,2\n1.5,2,3\n", [], "may be a header: pass --header or --no-header"),
        ("2019,2020,2021\n1.5,2,3\n", [], "may be a header: pass --header or --no-header"),
        ("400.1,400.2,400.3\n1.5,2,3\n", [], "may be a header: pass --header or --no-header"),
        ("0,1\n1.5,2\n", [], "may be a header"),
        ("0\n1.5\n", [], "may be a header"),
        ("x\n1,5\n2,5\n", [], "the same number of fields"),  # decimal commas
        ("1,5;2,5\n3,5;4,5\n", [], "line 1 may be a header"),
        ("a;b\n1;2\n", [], "pass --delimiter"),
        (
            "a\tb\n1,5\t2.5\n",
            ["--delimiter", "tab"],
            "b ('2.5' in row 1): numbers must have decimal points or",
        ),
        ("a;b\n1.234,5;2\n", ["--delimiter", ";"], "a ('1.234,5' in row 1)"),
        ("a,b\n1,2\n", ["--delimiter", "ab"], "--delimiter: invalid choice: 'ab'"),
        ("a,b\n1,2\n", ["--encoding", "klingon"], "cannot read it as klingon"),
        ("# a note\na,b\n1,2\n", [], "the same number of fields"),
        ("a,b\n1,2\n# the end\n", [], "the same number of fields"),
        ("sep=;\na;b\n1;2\n", [], "line 1 is only for Excel: remove it"),
        ("sep=;\na;b\n1;2\n", ["--delimiter", ";"], "line 1 is only for Excel: remove it"),
        ('a\n1\n""\n', [], "X must have values; row 2 has none"),
        ("1,2\n" * 5000 + "1,oops\n", [], "#2 of 2 ('oops' in row 5001)"),
        ('a,b\n"1,5",2\n3,4\n', [], "a ('1,5' in row 1)"),
        ("1.0,2.O\n3,4\n", ["--no-header"], "#2 of 2 ('2.O' in row 1)"),
        ("a,a\n1,2\n", [], "columns must have different names, got ['a'] several times"),
        ("a,a\n1,2\n", ["--columns", "a"], "got ['a'] several times"),
        (
            "a,b\n1,2\n",
            ["--columns", "a,c"],
            "columns ['c'] are not in the file, which has ['a', 'b']",
        ),
        ("1,2\n3,5\n", ["--columns", "3"], "columns ['3'] are not in the file"),
        ("", [], "a.csv: FILE must have points"),
        ("\n\n", [], "a.csv: FILE must have points"),
        ("a,b\n", [], "a.csv: FILE must have points"),
        ("a,b\nnan,2\n3,4\n", [], "X must be finite in row 1, column a: --missing median"),
        ("a,b\n3,4\n7,inf\n", [], "X must be finite in row 2, column b"),
        ("a,b\n1,2\n", ["--drop", "c"], "columns ['c'] are not in the file"),
        ("a,b\n1,2\n3,x\n", ["--missing", "median"], "b ('x' in row 2)"),
        ("a,b\n1,\n3,NA\n", ["--missing", "median"], "got b (has no values): pass --drop b"),
        (
            "a,b\n1,\n3,NA\n",
            ["--missing", "median", "--columns", "a,b"],
            "X must have a value in each column",
        ),
        # Python's float takes both: they were 1000 and 4.
        ("a,b\n1,2\n3,1_000\n", [], "b ('1_000' in row 2)"),
        ("a,b\n1,2\n3,\u0664\n", [], "b ('\u0664' in row 2)"),
        ('1,2\n"3,4\n' + "5,6\n" * 40_000, [], "a.csv: "),  # a field without end
        ("caf\u00e9,b\n1,2\n".encode("latin-1"), [], "can't decode byte"),
    ],
)
def test_what_a_csv_file_may_not_hold_is_refused(tmp_path, capsys, content, words, text):
    words = ["-k", "1", "-o", tmp_path / "o.npy", *words]
    assert text in refused(capsys, "embed", csv_file(tmp_path, content), *words)


def test_pandas_frames_are_read_or_refused(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X[:20], columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "index.csv")
    words = ["-k", "1", "-o", tmp_path / "o.npy"]
    error = refused(capsys, "embed", tmp_path / "index.csv", *words)
    assert "pass --drop 'Unnamed: 0'" in error
    pandas.DataFrame(X[:20]).to_csv(tmp_path / "numbers.csv", index=False)
    assert "line 1 may be a header" in refused(capsys, "embed", tmp_path / "numbers.csv", *words)
    frame.to_csv(tmp_path / "good.csv", index=False)
    assert np.array_equal(read(tmp_path, capsys, (tmp_path / "good.csv").read_bytes())[0], X[:20])


# Tables of every kind


def patients(pandas, n=40):
    """A table as programs write it: an id with zeros in front, a category, gaps and a whole number."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.standard_normal((n, 2)) * [1.0, 9.0], columns=["a", "b"])
    frame["cells"] = rng.integers(1000, 9000, n)
    frame.loc[[3, 7], "b"] = np.nan
    frame["color"] = np.array(["red", "blue", "green"])[rng.integers(3, size=n)]
    frame.insert(0, "patient", [f"{i:04d}" for i in range(n)])
    return frame


WRITERS = {
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
    ".CSV": lambda frame, path: frame.to_csv(path, index=False),
    ".csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    ".parquet": lambda frame, path: frame.to_parquet(path, row_group_size=7),
    ".feather": lambda frame, path: frame.to_feather(path),
    ".xlsx": lambda frame, path: frame.to_excel(path, index=False),
}
NEEDS = {".parquet": "pyarrow", ".feather": "pyarrow", ".xlsx": "openpyxl"}
PATIENTS = ["--id", "patient", "--categorical", "color", "--missing", "median", "--standardize"]


def write_table(tmp_path, frame, ending, name="table"):
    pytest.importorskip(NEEDS.get(ending, "pandas"))
    path = tmp_path / f"{name}{ending}"
    WRITERS[ending](frame, path)
    return path


@pytest.mark.parametrize("ending", WRITERS)
def test_every_kind_of_table_is_read_as_its_frame(ending, tmp_path, capsys, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = patients(pandas)
    path = write_table(tmp_path, frame, ending)
    model, out = tmp_path / "m.npz", tmp_path / "o.csv"
    notes = done(capsys, "embed", path, *PATIENTS, "-k", "2", "--model", model, "-o", out)
    assert "40 points, columns ['a', 'b', 'cells', 'color']; Kernel" in notes
    assert "2 gaps, filled by medians" in notes and "shares of variance" in notes
    table = pandas.read_csv(out, dtype={"patient": str})
    assert table.columns.tolist() == ["row", "patient", "component_1", "component_2"]
    assert table["patient"].tolist() == frame["patient"].tolist()
    loaded = kp.load(model)
    found = kp.features(kp.prepared_points(model, frame), loaded)
    rounded = 1e-13  # of openpyxl, and of pandas as this test reads the result
    assert np.abs(table[["component_1", "component_2"]] - found).to_numpy().max() <= rounded
    # the same figures from columns in another order, beside others
    mixed = frame[frame.columns[::-1]].assign(note="x", zero=0.0)
    other = write_table(tmp_path, mixed, ending, "other")
    done(capsys, "apply", model, other, "--id", "patient", "-o", tmp_path / "o.npz")
    with np.load(tmp_path / "o.npz") as arrays:
        assert np.abs(arrays["embedding"] - found).max() <= rounded
        assert arrays["id"].tolist() == frame["patient"].tolist()
    monkeypatch.setattr(kp, "_CHUNK", 6)
    words = ["-k", "2", "--sigma", "3", "-m", "30", "--ell", "8", "--drop", "color"]
    words = [*words, "--missing", "median", "--id", "patient", "-o", out]
    done(capsys, "stream", path, *words)
    whole = pandas.read_csv(out)
    gaps = frame[["a", "b", "cells"]].to_numpy(float)
    points = np.where(np.isnan(gaps), np.nanmedian(gaps, 0), gaps)
    np.save(tmp_path / "X.npy", points)
    done(capsys, "stream", tmp_path / "X.npy", *words[:8], "-o", out)
    expected = pandas.read_csv(out)
    for name in ("component_1", "component_2"):
        assert np.abs(whole[name] - expected[name]).max() <= rounded


def test_indicators_of_a_column_count_as_one_standardized_column(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    frame = patients(pandas, 200)
    path = write_table(tmp_path, frame, ".csv")
    done(capsys, "embed", path, *PATIENTS, "-k", "2", "--model", tmp_path / "m.npz")
    Z = np.asarray(kp.prepared_points(tmp_path / "m.npz", frame))
    assert Z.shape == (200, 6) and np.abs(Z.mean(0)).max() < 1e-12
    assert np.allclose(Z[:, :3].var(0), 1.0) and np.allclose(Z[:, 3:].var(0).sum(), 1.0)
    known = sorted(frame["color"].unique())
    assert np.array_equal(Z[:, 3:].argmax(1), [known.index(color) for color in frame["color"]])
    with pytest.raises(ValueError, match="color must be one of .*, got 'purple' in row 0"):
        kp.prepared_points(tmp_path / "m.npz", frame.assign(color="purple"))
    with pytest.raises(ValueError, match="X must be a DataFrame, as the model has categories"):
        kp.prepared_points(tmp_path / "m.npz", Z)
    new = write_table(tmp_path, frame.assign(color="purple"), ".csv", "new")
    error = refused(capsys, "apply", tmp_path / "m.npz", new, "-o", tmp_path / "o.npy")
    assert (
        "color must be one of the categories ['blue', 'green', 'red'], got 'purple' in row 1"
        in error
    )


@pytest.mark.parametrize("ending", WRITERS)
def test_a_gap_among_categories_was_a_category(ending, tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    frame = patients(pandas).assign(grade=np.arange(40) % 3)
    gaps = frame.assign(b=frame["b"].fillna(0.0))
    gaps.loc[[4, 9], "color"] = [None, "NA"]
    path = write_table(tmp_path, gaps, ending)
    words = ["--id", "patient", "--categorical", "color,grade", "-k", "1", "-o", tmp_path / "o.csv"]
    error = refused(capsys, "embed", path, *words)
    assert "X must be finite in row 5, column color_blue: --missing median" in error
    notes = done(capsys, "embed", path, *words, "--missing", "drop")
    assert "2 rows with gaps, left out" in notes and "38 points" in notes
    model = tmp_path / "m.npz"
    done(capsys, "embed", path, *words, "--missing", "median", "--model", model)
    # what pandas reads from the file, and numbers that it has made floats, are the same points
    Z = kp.prepared_points(model, gaps)
    assert Z.shape == (40, 9) and (Z[:, 3:6].sum(1) == 1.0).sum() == 38
    gaps["color"] = gaps["color"].replace("NA", np.nan)
    assert np.array_equal(kp.prepared_points(model, gaps.assign(grade=gaps["grade"] * 1.0)), Z)
    polars = pytest.importorskip("polars")
    columns = {name: [None if v != v else v for v in gaps[name].tolist()] for name in gaps}
    assert np.array_equal(kp.prepared_points(model, polars.DataFrame(columns)), Z)


def test_ids_beside_a_gap_were_cut_to_a_letter(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"i": ["aa", None, "c,c"], "a": [1.0, 2.0, 4.0]})
    frame["whole"] = pandas.array([1, None, 9007199254740993], "Int64")
    for ending in (".parquet", ".feather", ".csv"):
        path = write_table(tmp_path, frame, ending)
        words = [
            "embed",
            path,
            "--columns",
            "a",
            "-k",
            "1",
            "--sigma",
            "1",
            "-o",
            tmp_path / "o.npz",
        ]
        done(capsys, *words, "--id", "i")
        with np.load(tmp_path / "o.npz") as arrays:
            assert arrays["id"].tolist() == ["aa", "", "c,c"]
    done(capsys, *words, "--id", "whole")
    with np.load(tmp_path / "o.npz") as arrays:
        assert arrays["id"].tolist() == ["1", "", "9007199254740993"]


def test_categories_were_equal_beyond_the_digits_of_a_float():
    values = ["9007199254740993", "9007199254740992", "007", "7.0", "1.50", "1.5", "1e999", " x "]
    assert kp._category_texts(values).tolist() == [
        "9007199254740993",
        "9007199254740992",
        "7",
        "7",
        "1.5",
        "1.5",
        "1e999",
        "x",
    ]


def test_rows_without_values_were_points_if_a_column_had_categories(tmp_path, capsys):
    path = csv_file(tmp_path, "a,color\n1,red\n,\n3, red \n5,blue\n")
    words = ["--categorical", "color", "--missing", "median", "-k", "1", "-o", tmp_path / "o.npy"]
    assert "X must have values; row 2 has none" in refused(capsys, "embed", path, *words)


def test_a_number_was_a_category_in_each_row(tmp_path, capsys):
    path = csv_file(tmp_path, "a,b\n" + "".join(f"{i * i},{i * 0.3}\n" for i in range(60)))
    words = ["--categorical", "b", "-k", "1", "-o", tmp_path / "o.npy"]
    assert "b must have 1 to 32 classes for 60 points, got 60" in refused(
        capsys, "embed", path, *words
    )
    words = ["--categorical", "b", "--drop", "b", "-k", "1", "-o", tmp_path / "o.npy"]
    assert "--categorical is for columns that are not left out" in refused(
        capsys, "embed", path, *words
    )


def test_an_index_of_pandas_was_a_coordinate(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = patients(pandas).drop(columns="color").fillna(0.0).set_index("patient")
    frame.to_parquet(tmp_path / "index.parquet")
    words = ["-k", "1", "-o", tmp_path / "o.csv"]
    notes = done(capsys, "embed", tmp_path / "index.parquet", "--id", "patient", *words)
    assert "columns ['a', 'b', 'cells']" in notes
    assert (tmp_path / "o.csv").read_text().splitlines()[1].startswith("1,0000,")
    frame.iloc[::-1].reset_index(drop=True).iloc[::-1].to_csv(tmp_path / "shuffled.csv")
    error = refused(capsys, "embed", tmp_path / "shuffled.csv", *words)
    assert "got Unnamed: 0 (has no name, like an index): pass --drop 'Unnamed: 0'" in error
    shuffled = frame.reset_index(drop=True).sample(frac=1.0, random_state=0).reset_index()
    shuffled.to_csv(tmp_path / "shuffled.csv", index=False)
    error = refused(capsys, "embed", tmp_path / "shuffled.csv", *words)
    assert "got index (an index): pass --drop index" in error
    # columns 0, 1, 2: `--drop 1` drops the column of this name, and the remedy is by name
    plain = pandas.DataFrame(frame.to_numpy())
    plain.to_csv(tmp_path / "plain.csv")
    error = refused(capsys, "embed", tmp_path / "plain.csv", *words, "--drop", "1")
    assert "pass --drop '1,Unnamed: 0'" in error
    notes = done(capsys, "embed", tmp_path / "plain.csv", *words, "--drop", "Unnamed: 0")
    assert "columns ['0', '1', '2']" in notes


def test_all_columns_that_are_no_coordinates_are_told_at_once(tmp_path, capsys):
    content = "sample,patient,time,age,sex,low\n" + "".join(
        f"{i + 7},P{i},2024-01-0{i + 1},{30 + i * i},{'fm'[i % 2]},{'<0.5' if i == 2 else i * 0.7}\n"
        for i in range(4)
    )
    path = csv_file(tmp_path, content)
    error = refused(capsys, "embed", path, "--drop", "patient", "-k", "1", "-o", tmp_path / "o.npy")
    assert (
        "got time ('2024-01-01' in row 1), sex ('f' in row 1), low ('<0.5' in row 3), sample (counts "
        "the rows): pass --drop patient,time,sex,low,sample, or name columns by" in error
    )
    words = ["--drop", "patient,time,sex,low,sample", "-k", "1", "--sigma", "2"]
    done(capsys, "embed", path, *words, "-o", tmp_path / "o.npy")
    # a time that counts rows can be chosen
    words = ["--columns", "sample,age", "-k", "1", "-o", tmp_path / "o.npy"]
    assert "columns ['sample', 'age']" in done(capsys, "embed", path, *words)


@pytest.mark.parametrize(
    "ending, content, words, text",
    [
        (".csv", b"a,b\n1,2\n3\n5,6\n", [], "line 3 must have the same number of fields as line 1"),
        (".csv", b"a,b\n1,2,\n3,4,\n", [], "line 2 must have the same number of fields"),
        (
            ".csv",
            b"a,b\n1,2\n3,4,5\n",
            [],
            "line 3 must have the same number of fields as line 1, 2, ",
        ),
        (".csv", b"a,b,\n1,2,\n3,4,\n", [], "got Unnamed: 2 (has no name, like an index)"),
        (
            ".csv",
            b"a,b,a\n1,2,3\n",
            [],
            "columns must have different names, got ['a'] several times",
        ),
        (".csv", b"id7,2,3\n1,2,3\n", [], "line 1 may be a header: pass --header or --no-header"),
        (".csv", b"1.5,NA,3\n1,2,5\n", [], "line 1 may be a header: pass --header or --no-header"),
        (".csv", b"1.0,2.O\n3,4\n", [], "line 1 may be a header: pass --header or --no-header"),
        (".csv", b"1,5;x\n2,5;y\n", ["--delimiter", ";"], "line 1 may be a header"),
        (".csv", b"day,x\n5,1\n6,4\n7,9\n", [], "day (counts the rows): pass --drop day"),
        (".csv", b"5,1\n6,4\n7,9\n", [], "#1 of 2 (counts the rows): pass --drop '#1 of 2'"),
        (
            ".csv",
            b"x,ok\n5,True\n6,False\n",
            ["--drop", "x,ok"],
            "must have a column of coordinates",
        ),
        (
            ".csv",
            b"x,y\n5,1\n6,2\n",
            ["--labels", "x,y"],
            "one column can have labels, and one ids",
        ),
        (".csv", b"x,y\n5,1\n6,2\n", ["--id", "x"], "--id needs -o FILE.csv or FILE.npz"),
        (".csv", b"a,b\n1,\n3,\n", [], "got b (has no values): pass --drop b"),
        (".csv", b"a\n1\n  \n3\n7\n", ["--missing", "drop"], "lines of blanks must be removed"),
        (".csv", b'"x""y,",a\nq,2\nr,5\n', [], """pass --drop '"x""y,"', or"""),
        (
            ".csv",
            b"Clinic,,\nid,a,b\n1,2,3\n",
            ["--labels", "id"],
            "line 1 may be a title to remove",
        ),
        (".csv", b"a;b\n1;2\n", [], "fields must be separated by commas: pass --delimiter ';'"),
        (".tsv", b"a\tb\n1\t2\n", ["--id", "a"], "FILE must end in one of .npy, "),
        (".csv.gz", b"a,b\n1,2\n", [], "Not a gzipped file"),
        (".parquet", b"junk", [], "table.parquet"),
        (".feather", b"junk", [], "table.feather"),
        (".xlsx", b"junk", [], "table.xlsx"),
    ],
)
def test_where_pandas_is_lenient_a_table_is_refused(ending, content, words, text, tmp_path, capsys):
    pytest.importorskip("pandas")
    pytest.importorskip(NEEDS.get(ending, "pandas"))
    path = tmp_path / f"table{ending}"
    path.write_bytes(content)
    words = ["-k", "1", "-o", tmp_path / "o.npy", *words]
    assert text in refused(capsys, "embed", path, *words)


def test_numbers_of_a_table_were_not_rounded_correctly(tmp_path, capsys):
    # pandas before 3.1 may be off by the last bit
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((2000, 3)) * 10.0 ** rng.integers(-30, 30, (2000, 3))
    path = csv_file(tmp_path, table(numbers, "a,b,c"))
    read = kp._load_points(str(path), kp._parser().parse_args(["embed", str(path)]))
    assert np.array_equal(read.X, numbers)


@pytest.mark.parametrize(
    "module, ending", [("pandas", ".csv"), *((b, a) for a, b in NEEDS.items())]
)
def test_a_table_says_which_library_to_install(module, ending, tmp_path, capsys, monkeypatch):
    pytest.importorskip("pandas")
    path = tmp_path / f"table{ending}"
    path.write_bytes(b"x,y\n1,2\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    error = refused(capsys, "embed", path, "-k", "1", "-o", tmp_path / "o.npy")
    assert f'needs {module}: python -m pip install "{module}"' in error
    np.save(tmp_path / "X.npy", X)
    done(capsys, "embed", tmp_path / "X.npy", "-k", "1", "-o", tmp_path / "o.npy")


def test_a_column_in_another_unit_is_told(tmp_path, capsys):
    np.save(tmp_path / "X.npy", X * [1.0, 3000.0, 1.0])
    words = ["embed", tmp_path / "X.npy", "-k", "1", "-o", tmp_path / "o.npy"]
    assert "column 2 has 100 % of the squared distances: --standardize" in done(capsys, *words)
    assert "squared distances" not in done(capsys, *words, "--standardize")


def test_shares_of_variance_are_those_of_the_function(points, tmp_path, capsys):
    words = ["embed", points, "-k", "3", "--sigma", "2", "-o", tmp_path / "o.npy"]
    shares = re.search("shares of variance of the components: (.*)", done(capsys, *words))[1]
    expected = kp.explained_variance_ratio(X, kp.kpca(X, KERNEL, 3))
    assert np.abs(np.array(shares.split(), float) - expected).max() < 0.01


def test_files_carry_the_version_that_wrote_them(tmp_path):
    kp.save(tmp_path / "k.npz", KERNEL)
    with np.load(tmp_path / "k.npz") as arrays:
        held = dict(arrays)
    assert str(held["version"]) == kp.__version__
    np.savez(tmp_path / "k.npz", **held | {"version": np.array("2.0.0")})
    with pytest.raises(ValueError, match=r"written by kpcasketch 2.0.0, .* which reads 1.x"):
        kp.load(tmp_path / "k.npz")
    (tmp_path / "k.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="k.csv: it is not a .npy or .npz file"):
        kp.load(tmp_path / "k.csv")
    np.savez(tmp_path / "k.npz", **held | {"version": np.array("1.7.0"), "further": np.zeros(2)})
    with pytest.raises(
        ValueError, match=r"was written by kpcasketch 1.7.0, and this is .*'further'"
    ):
        kp.load(tmp_path / "k.npz")


def test_columns_are_named_on_stderr(tmp_path, capsys):
    path = csv_file(tmp_path, "a,target\n1,2\n3,5\n")
    told = done(capsys, "embed", path, "-k", "1", "-o", tmp_path / "o.npy")
    assert "2 points, columns ['a', 'target']; Kernel" in told


def test_apply_took_columns_in_another_order_than_the_model(tmp_path, capsys):
    model, out = tmp_path / "m.npz", tmp_path / "f.npy"
    fit = ["-k", "2", "--sigma", "2", "--model", model]
    done(capsys, "embed", csv_file(tmp_path, table(X, "a,b,c")), *fit)
    expected = kp.features(X, kp.load(model))
    turned = "\n".join(f"{c!r},text,{a!r},{b!r}" for a, b, c in X.tolist())
    done(capsys, "apply", model, csv_file(tmp_path, "c,note,a,b\n" + turned, "t.csv"), "-o", out)
    assert np.array_equal(np.load(out), expected)
    plain = csv_file(tmp_path, table(X, "")[1:], "plain.csv")
    assert "must have the model's columns ['a', 'b', 'c'], and has ['#1 of 3'" in refused(
        capsys, "apply", model, plain, "-o", out
    )
    done(capsys, "apply", model, plain, "--columns", "1,2,3", "-o", out)
    assert np.array_equal(np.load(out), expected)
    turned = csv_file(tmp_path, "c,note,a,b\n" + turned, "t.csv")
    words = ["apply", model, turned, "--columns", "c,b,a"]  # were taken in silence
    assert "--columns must be the model's" in refused(capsys, *words, "-o", out)
    lacking = csv_file(tmp_path, "a,c\n1,2\n", "lacking.csv")
    error = refused(capsys, "apply", model, lacking, "-o", out)
    assert "must have the model's columns ['b'], and has ['a', 'c']" in error
    state = tmp_path / "s.npz"
    stream = ["-k", "2", "-m", "40", "--ell", "9", "--sigma", "2", "--no-center", "--state", state]
    done(capsys, "stream", csv_file(tmp_path, table(X, "a,b,c")), *stream)
    done(capsys, "stream", tmp_path / "t.csv", *stream)
    both = kp.skpca(np.vstack([X, X]), KERNEL, 2, 40, 9, centered=False)
    assert np.array_equal(kp.finish(kp.load(state), 2).basis, both.basis)
    other = csv_file(tmp_path, table(X, "a,b,c"), "other.csv")
    error = refused(capsys, "stream", other, *stream, "--columns", "c,b,a")
    assert "--columns must be the model's" in error


def test_apply_ended_in_a_traceback_for_a_csv_file_if_the_model_had_no_columns(
    points, tmp_path, capsys
):
    pytest.importorskip("pandas")
    model, path, out = tmp_path / "m.npz", tmp_path / "X.csv", tmp_path / "o.npy"
    np.savetxt(path, X, "%.17g", ",", header="a,b,c", comments="")
    done(capsys, "embed", points, "-k", "2", "--model", model)
    done(capsys, "apply", model, path, "-o", out)
    assert np.array_equal(np.load(out), kp.features(X, kp.load(model)))


def test_columns_of_a_model_were_guessed(tmp_path, capsys):
    model = tmp_path / "m.npz"
    words = ["-k", "2", "--sigma", "2", "--model", model]
    # names that are digits were taken for places where a file lacks them
    path = csv_file(tmp_path, table(X, "id,1,2"))
    done(capsys, "embed", path, "--header", "--columns", "1,2", *words)
    expected = kp.features(X[:, 1:], kp.load(model))
    turned = table(X[:, [1, 0, 2]], "1,id,2")
    assert np.array_equal(of_model(tmp_path, capsys, turned, "--header"), expected)
    for content, more in ((table(X, "id,2,3"), ["--header"]), (table(X, "")[1:], [])):
        path = csv_file(tmp_path, content)
        error = refused(capsys, "apply", model, path, "-o", tmp_path / "f.npy", *more)
        assert "must have the model's columns ['1'" in error
    # of two columns of one name the first was taken twice
    done(capsys, "embed", csv_file(tmp_path, table(X, "a,x,b")), "--columns", "1,3", *words)
    path = csv_file(tmp_path, table(X, "a,a,b"))
    error = refused(capsys, "apply", model, path, "-o", tmp_path / "f.npy")
    assert "columns must have different names, got ['a'] several times" in error
    # numbers that choose columns of a file without names were forgotten
    done(capsys, "embed", csv_file(tmp_path, table(X, "")[1:]), "--columns", "3,1", *words)
    expected = kp.features(X[:, [2, 0]].copy(), kp.load(model))
    assert np.array_equal(of_model(tmp_path, capsys, table(X, "")[1:]), expected)
    named = csv_file(tmp_path, table(X, "a,b,c"))
    assert "the model's columns ['#3 of 3', '#1 of 3']" in refused(
        capsys, "apply", model, named, "-o", tmp_path / "f.npy"
    )


def test_rows_with_missing_values_are_left_out_with_their_labels_and_numbers(tmp_path, capsys, rng):
    points, ids, labels = with_holes(rng)
    path, out = tmp_path / "a.csv", tmp_path / "o.csv"
    written(path, points, ids, labels, "NA")
    whole = ~np.isnan(points).any(1)
    words = ["embed", path, "--columns", "a,b,c", "-k", "2", "--sigma", "9", "--missing", "drop"]
    done(capsys, *words, "-o", out, "--model", tmp_path / "m.npz")
    table = np.genfromtxt(out, delimiter=",", names=True)
    assert table["row"].tolist() == (np.flatnonzero(whole) + 1).tolist()
    assert np.array_equal(kp.load(tmp_path / "m.npz").points, points[whole])
    read = kp._load_points(
        str(path), kp._parser().parse_args([*map(str, words), "--labels", "group"])
    )
    assert np.array_equal(read.labels, labels[whole])


@pytest.mark.parametrize(
    "name, content, words, text",
    [
        ("a.npy", np.array([{}], object), [], "Python objects in dtype"),
        ("a.npy", np.zeros(3), [], "2-D"),
        ("a.npy", np.array(3.0), [], "a.npy: "),
        ("a.npy", b"junk", [], "cannot read"),
        ("a.npz", b"junk", [], "cannot read"),
        ("a.npy", b"", [], "cannot read"),
        ("a.txt", b"1", [], "FILE must end in one of .npy, .npz, .csv, .csv.gz, "),
        ("a.npy", np.array([["x"]]), [], "real numbers"),
        ("a.npy", np.full((3, 2), np.nan), [], "has none"),
        (
            "a.npy",
            X,
            ["--columns", "1"],
            "only .csv, .csv.gz, .parquet, .feather, .xlsx files take --columns",
        ),
        # these were ignored
        ("a.npy", X, ["--no-header"], "only .csv, .csv.gz, .xlsx files take --header"),
        ("a.npy", X, ["--delimiter", ";"], "only .csv, .csv.gz files take --delimiter"),
        (
            "a.npy",
            X,
            ["--id", "b", "--drop", "1"],
            "only .csv, .csv.gz, .parquet, .feather, .xlsx files take --drop and --id",
        ),
        ("a.csv", b"a,b\n1,2\n", ["--columns", ""], "--columns: invalid _column_names value: ''"),
        ("a.npy", X, ["-k", "0"], "-k must be an int from 1 to 150, got 0"),
        ("a.npy", X, ["-k", "151"], "-k must be"),
        ("a.npy", X, ["-k", "two"], "-k: invalid int value"),
        ("a.npy", X, ["--sigma", "wide"], "--sigma: invalid "),
        # a traceback
        ("a.npy", X, ["--method", "uniform", "-s", "abc"], "-s: invalid int value: 'abc'"),
        ("a.npy", X, ["--method", "magic"], "invalid choice"),
        ("a.npy", X, ["--unknown"], "unrecognized arguments"),
        # functions were named
        ("a.npy", X, ["--method", "sample", "-s", "0"], "error: -s must be at least 1"),
        (
            "a.npy",
            X,
            ["--method", "uniform", "-s", "5"],
            "error: -k must be an int from 1 to 5, got 10",
        ),
        ("a.npy", X, ["--sigma", "0"], "error: --sigma must be from"),
        ("a.npy", X, ["--seed", "-1"], "error: --seed must be an int from 0"),
        ("a.npy", X, ["-o", "no/such/place.npz"], "cannot write no/such/place.npz"),
        ("a.npy", X, ["-o", "a.npy/place.npz"], "cannot write a.npy/place.npz"),
        ("a.npy", X, ["-o", "a.txt"], "-o must end in .npy or .npz or .csv"),
    ],
)
def test_bad_files_and_options_get_one_line_and_status_2(
    tmp_path, monkeypatch, capsys, name, content, words, text
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content, allow_pickle=True)
    assert text in refused(capsys, "embed", path, "-o", "o.npy", *words)
    assert os.listdir(tmp_path) == [name]


def test_points_of_an_archive_are_its_X(tmp_path, capsys):
    np.savez(tmp_path / "X.npz", X=X, y=np.zeros(150))
    np.savez(tmp_path / "two.npz", A=X, B=X)
    for name, text in (("X.npz", None), ("two.npz", "must have an array X, got ['A', 'B']")):
        words = ["embed", tmp_path / name, "-k", "1", "-o", tmp_path / "o.npy"]
        if text:
            assert text in refused(capsys, *words)
        else:
            assert "150 points; Kernel" in done(capsys, *words)
    words = ["embed", tmp_path / "missing.npy", "-o", tmp_path / "o.npy"]
    assert "No such file" in refused(capsys, *words)


@pytest.mark.filterwarnings("ignore:choose:UserWarning")
def test_kernels_take_their_bandwidth(points, tmp_path, capsys):
    median = kp.gaussian(kp.median_bandwidth(X))
    for words, kernel in (
        (["--kernel", "matern", "--sigma", "3"], kp.matern(1.5, 3.0)),
        (["--kernel", "rational_quadratic", "--sigma", "3"], kp.rational_quadratic(1.0, 3.0)),
        (["--kernel", "cauchy", "--sigma", "3"], kp.cauchy(3.0)),
        (["--kernel", "linear"], kp.linear()),
        (["--kernel", "laplacian", "--sigma", "3"], kp.laplacian(3.0)),
        ([], median),
    ):
        out = done(capsys, "embed", points, "-k", "1", "--model", tmp_path / "m.npz", *words)
        assert kp.load(tmp_path / "m.npz").kernel[:5] == pytest.approx(kernel[:5])
        assert repr(kp.load(tmp_path / "m.npz").kernel) in out


def test_the_demo_has_a_row_for_each_method(capsys):
    assert kp.main(["demo", "-k", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == [*kp._METHODS]
    errors = {row[0]: float(row[-1]) for row in rows}
    assert errors["lanczos"] < 1e-12 and errors["implicit"] < 1e-9
    assert 0.05 < errors["sample"] < errors["sample-quantize"] < 1.0
    assert all(errors[name] < 0.01 for name in kp._SAMPLERS)


@pytest.mark.parametrize(
    "labels, shown",
    [
        (np.arange(150) % 3, "2"),
        (np.array(["cat", "dog"])[np.arange(150) % 2].reshape(-1, 1), "dog"),
        (np.array(["$a$", "$b_^"])[np.arange(150) % 2], "b"),  # mathematics, or a crash
        (np.arange(150) / 7.0, "20.0"),
        (None, "140"),
    ],
)
def test_labels_colour_the_picture(tmp_path, capsys, labels, shown):
    pytest.importorskip("matplotlib")
    np.savez(tmp_path / "X.npz", X=X, **({} if labels is None else {"y": labels}))
    picture = tmp_path / "picture.svg"
    words = ["embed", tmp_path / "X.npz", "-k", "2", "--sigma", "2", "--plot", picture]
    done(capsys, *words)
    assert shown in re.findall("<!-- (.*?) -->", picture.read_text()) or "b" in shown
    assert "files take --labels" in refused(capsys, *words, "--labels", "y")
    done(capsys, *words, "-k", "1")
    assert "<!-- row -->" in picture.read_text()  # component 1 was drawn against itself


def test_labels_beside_the_points_are_found_or_told_why_not(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    words = ["embed", tmp_path / "X.npz", "-k", "2", "-o", tmp_path / "o.npy"]
    for labels, text in (
        (np.arange(149), "y must have a label for each point"),
        (np.array([{}] * 150, object), "Object arrays cannot be loaded"),
    ):
        np.savez(tmp_path / "X.npz", X=X, y=labels)
        done(capsys, *words)  # nobody asks for them
        assert text in refused(capsys, *words, "--plot", tmp_path / "p.svg")


def test_interleaved_classes_gave_another_sigma(tmp_path, capsys):
    # every third row was read: of 30,000 rows in three classes in turn, those of one class
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 2)) * np.tile([0.2, 10.0, 10.0], 10_000)[:, None]
    X += np.tile([0.0, 30.0, 60.0], 10_000)[:, None]
    np.save(tmp_path / "a.npy", X)
    words = ["embed", tmp_path / "a.npy", "-k", "2", "--method", "uniform", "-s", "20"]
    words += ["--model", tmp_path / "m.npz"]
    sigma = float(done(capsys, *words).split("sigma=")[1].split(",")[0])
    assert sigma == pytest.approx(kp.median_bandwidth(X), rel=0.05)  # it was .216


# More of streams


def test_a_file_is_streamed_in_blocks_to_the_result_of_one_call(many, tmp_path, capsys):
    points, path, state = many
    done(capsys, "stream", path, *STREAM, "-o", tmp_path / "out.npy", "--state", state)
    expected = kp.skpca(points, KERNEL, 2, 16, 4, 3, centered=False)
    assert np.array_equal(np.load(tmp_path / "out.npy"), kp.features(points, expected))
    assert_whole(state, points)


def interrupt_at(monkeypatch, number):
    """Interrupt the update of this number, and count the points of all."""
    stream, calls = kp._streams[kp.SKPCAState], []

    def interrupted(state, rows):
        calls.append(len(rows))
        if len(calls) == number:
            raise KeyboardInterrupt
        return stream.update(state, rows)

    monkeypatch.setitem(kp._streams, kp.SKPCAState, stream._replace(update=interrupted))
    return calls


@pytest.mark.parametrize("pause, calls", [(31, [3616]), (10, [8192, 8192, 3616])])
def test_an_interrupted_stream_goes_on_from_its_last_state(many, monkeypatch, capsys, pause, calls):
    points, path, state = many
    ticks = iter(range(0, 10**6, pause))
    monkeypatch.setattr(kp.time, "perf_counter", lambda: next(ticks))
    made = interrupt_at(monkeypatch, 3)
    assert kp.main(["stream", path, *STREAM, "--state", str(state)]) == 130
    assert capsys.readouterr().err.endswith("kpcasketch: interrupted\n")
    if pause > 30:
        assert_whole(state, points[:16_384])
    done(capsys, "stream", path, *STREAM, "--state", state)
    assert made == [8192, 8192, 3616, *calls]
    assert_whole(state, points)


def test_a_block_that_is_refused_leaves_the_state_of_those_before_it(
    many, tmp_path, monkeypatch, capsys
):
    points, path, state = many
    ticks = iter(range(0, 10**6, 31))
    monkeypatch.setattr(kp.time, "perf_counter", lambda: next(ticks))
    broken = points.copy()
    broken[17_000, 1] = np.nan
    np.save(tmp_path / "broken.npy", broken)
    words = ["stream", tmp_path / "broken.npy", *STREAM, "--state", state]
    for _ in range(2):
        # rows count from 1, as in -o FILE.csv
        error = refused(capsys, *words)
        assert "broken.npy: X must be finite in row 17001, column 2" in error
        assert_whole(state, points[:16_384])
    np.save(tmp_path / "broken.npy", points)  # when it is filled in, the stream goes on
    done(capsys, *words)
    assert_whole(state, points)


def test_several_files_are_one_stream(many, tmp_path, capsys):
    points, path, state = many
    np.save(tmp_path / "a.npy", points[:9000])
    np.save(tmp_path / "b.npy", points[9000:])
    files = [tmp_path / "a.npy", tmp_path / "b.npy"]
    done(capsys, "stream", *files, *STREAM, "--model", tmp_path / "m.npz")
    expected = kp.skpca(points, KERNEL, 2, 16, 4, 3, centered=False)
    assert np.array_equal(kp.load(tmp_path / "m.npz").basis, expected.basis)
    error = refused(capsys, "stream", *files, *STREAM, "-o", tmp_path / "o.npy")
    assert "-o and --plot take one FILE" in error
    for _ in range(2):  # files that were read are not read again
        done(capsys, "stream", *files, *STREAM, "--state", state)
        assert_whole(state, points)


@pytest.mark.parametrize(
    "words",
    [
        ["--seed", "4"],
        ["--sigma", "3"],
        ["-m", "17"],
        ["--ell", "3"],
        ["--no-center"],
        ["--kernel", "laplacian"],
        ["--standardize"],
        ["-k", "3"],
    ],
)
def test_a_state_begun_otherwise_is_refused(many, capsys, words):
    _, path, state = many
    done(capsys, "stream", path, *CENTERED, "--state", state)
    before = state.read_bytes()
    error = refused(capsys, "stream", path, *CENTERED, *words, "--state", state)
    name = words[0].strip("-").removeprefix("no-")
    assert error.split("the options")[1].startswith(f" {{'{name}': ") and error.count(":") == 3
    assert state.read_bytes() == before


def test_files_that_are_no_states_are_refused(many, tmp_path, capsys):
    _, path, state = many
    for content in (b"junk", b""):
        state.write_bytes(content)
        assert "cannot read" in refused(capsys, "stream", path, *STREAM, "--state", state)
    kp.save(state, KERNEL)
    error = refused(capsys, "stream", path, *STREAM, "--state", state)
    assert "--state must be a file that --state has written" in error


# Advice


def test_advice_saw_no_cliff_between_the_sizes_of_its_ladder():
    # a linear kernel of rank 20 has an error of .9 at 19 landmarks and of 0 at 20: 19 were advised for 5 %
    Z = np.random.default_rng(0).standard_normal((1500, 20))
    for row in kp.advise(Z, kp.linear(), 0.05, k=5):
        if row.method in kp._SAMPLERS:
            assert row.works and 20 <= row.size <= 26 and row.error < 1e-5


def test_the_least_size_is_one_at_which_six_draws_suffice():
    wanted, ladder = 0.01, kp._LADDER
    for scale in (0.1, 0.5, 2.0, 4.0, 8.0):  # errors of draws differ
        errors = {
            (size, draw): scale * (1.0, 1.3, 0.9)[draw % 3] / size
            for size in ladder
            for draw in range(6)
        }
        size, error = kp._least_size(lambda size, draw: errors[size, draw], wanted, ladder)
        assert size in ladder and (error <= wanted or size == 1024)
        assert size == 16 or size <= 1.3 * 1.42 * scale / wanted
    assert kp._least_size(lambda size, draw: 1.0, wanted, ladder) == (1024, 1.0)
    assert kp._least_size(lambda size, draw: float(draw > 4), wanted, ladder) == (1024, 1.0)
    assert kp._least_size(lambda size, draw: 0.001, wanted, [40]) == (40, 0.001)
    assert kp._least_size(lambda size, draw: 1.0, wanted, [40]) == (40, 1.0)


def test_advice_was_sorted_by_a_clock(same_bits):
    # seconds were measured, so that no two calls returned the same
    Z = np.random.default_rng(4).standard_normal((300, 3))
    same_bits(lambda: tuple((row.method, repr(row)) for row in kp.advise(Z, KERNEL, 0.05, k=3)))


def test_predicted_seconds_grow_with_the_work():
    def seconds(method, n=10_000, size=100, evaluations=0, products=10):
        return kp._predicted_seconds(method, KERNEL, n, 5, 10, size, evaluations, products)

    for method in ("lanczos", "implicit", "quantize"):
        assert 3.9 < seconds(method, 80_000) / seconds(method, 40_000) < 4.1
    for method in ("uniform", "skpca"):
        assert seconds(method, 40_000) == pytest.approx(2 * seconds(method, 20_000))
        assert seconds(method, size=1000) > 3 * seconds(method)
    assert seconds("rpcholesky", evaluations=10_000 * 100) > seconds("uniform")
    assert seconds("implicit") > seconds("lanczos") > seconds("uniform")


def test_of_what_takes_no_second_the_smallest_is_advised():
    # pendigits: an exact matrix of 967 MB came before 3 MB of landmarks, as both took less than a second
    Z = np.random.default_rng(3).standard_normal((400, 3))
    rows = [row for row in kp.advise(Z, KERNEL, 0.01, k=3) if row.works]
    sizes = [row.bytes for row in rows if row.seconds < 0.9]
    assert len(sizes) > 3 and sizes == sorted(sizes) and sizes[0] < 400**2 * 8 / 4


@pytest.mark.slow
@pytest.mark.parametrize("data", ["normal", "clusters", "tails"])
def test_what_is_advised_has_the_predicted_error(data, monkeypatch):
    monkeypatch.setattr(kp, "_PILOT_POINTS", 1200)
    n, rng = 2700, np.random.default_rng(5)
    Z = rng.standard_normal((n, 4))
    Z = {
        "normal": Z,
        "clusters": Z * 0.3 + 3 * rng.standard_normal((12, 4))[rng.integers(12, size=n)],
        "tails": Z * rng.gamma(1, 1, (n, 1)),
    }[data]
    kernel = kp.gaussian(kp.median_bandwidth(Z))
    rows = kp.advise(Z, kernel, 0.003)
    best = next(row for row in rows if row.method in kp._SAMPLERS)
    assert rows[0].works and best.works and best.error <= 0.003
    assert [row.works for row in rows] == sorted((row.works for row in rows), reverse=True)
    K, norm = kp.Implicit(Z, kernel), kp.spectral_norm(kp.Implicit(Z, kernel), 0, tol=0.01)
    factor = kp.nystrom(Z, kp._METHODS[best.method].function(Z, kernel, int(best.size), 0), kernel)
    # of the worst draw
    assert 0.15 < kp.spectral_error(K, kp.LowRank(factor), 0, tol=0.05) / norm / best.error < 2.0
    row = next(row for row in rows if row.method == "quantize")
    error = kp.spectral_error(K, kp.quantize_gram(Z, kernel), 0, tol=0.05) / norm
    assert 0.5 < error / row.error < 2.0


def test_advice_for_kernels_of_huge_values(rng):
    assert kp.advise(1e40 * (1 + rng.random((300, 3))), kp.polynomial(3, 1.0, 1.0), 0.05)[0].works


@pytest.mark.parametrize(
    "arguments, text",
    [
        ((X, KERNEL, 0.0), "advise: error must be from"),
        ((X, KERNEL, 1.5), "advise: error must be from .* to 1.0, got 1.5"),
        ((X, KERNEL, 0.1, 10.0), "advise: k must be"),
        ((X, KERNEL, 0.1, 10, -1), "advise: seed must be an int from 0"),
        ((X, KERNEL, 0.1, 151), "advise: k must be an int from 1 to 150, got 151"),
        ((X[0], KERNEL, 0.1), "advise: X must be a 2-D array"),
        ((X, "gaussian", 0.1), "advise: kernel must be"),
        ((np.zeros((19, 1)), kp.linear(), 0.1), "advise: kernel must not be 0"),
        ((X * np.nan, KERNEL, 0.1), "advise: X must be finite .* row 0, column 0 is not"),
    ],
)
def test_advice_refuses_by_name(arguments, text):
    with pytest.raises(ValueError, match=text):
        kp.advise(*arguments)


# Models as files


@pytest.mark.parametrize(
    "make",
    [
        lambda: kp.Landmarks(np.arange(3), np.ones(3), 7, X[:3]),
        lambda: kp.Advice("rls", 3.0, 5, 0.1, 0.2, True, "a reason"),
        lambda: kp.center(kp.center(kp.LowRank(X))),
        lambda: kp.center(np.eye(3)),
        lambda: kp.fd_start(2, 2),
        lambda: kp.skpca_start(kp.fourier_features_map(KERNEL, 3, 8), 4, centered=True),
    ],
)
def test_whatever_is_a_tuple_of_this_module_is_saved(make, tmp_path):
    def equal(a, b):
        return (
            all(map(equal, a, b)) and type(a) is type(b)
            if isinstance(a, tuple)
            else np.array_equal(a, b)
        )

    kp.save(tmp_path / "model", make())
    assert equal(kp.load(tmp_path / "model.npz"), make())


@pytest.mark.parametrize(
    "model, field",
    [
        (kp.Landmarks(np.arange(3), None, 7, X[:3]), "weights"),
        (kp.Implicit(X, None), "kernel"),
        (kp.Implicit(X, X), "kernel"),
        (kp.LowRank(np.array(["a"])), "F"),
        (kp.RLSState(X[:2], np.arange(2), np.ones(2), 0, KERNEL, 2, "many", 0), "count"),
    ],
)
def test_fields_that_are_no_numbers_are_refused_by_name(tmp_path, model, field):
    with pytest.raises(ValueError, match=f"save: model.{field} must have the type"):
        kp.save(tmp_path / "none.npz", model)
    assert not (tmp_path / "none.npz").exists()


def test_seeds_of_64_bits_were_saved_and_not_read(tmp_path):
    for seed in (0, 2**63, 2**64 - 1):
        kp.save(tmp_path / "s.npz", kp.rls_start(KERNEL, 2, 2, seed))
        assert int(kp.load(tmp_path / "s.npz").seed) == seed


def test_members_of_a_model_file_that_are_no_arrays(tmp_path, monkeypatch):
    kp.save(tmp_path / "a.npz", kp.LowRank(np.eye(2)))
    with (
        zipfile.ZipFile(tmp_path / "a.npz") as good,
        zipfile.ZipFile(tmp_path / "b.npz", "w") as bad,
    ):
        for name in good.namelist():
            bad.writestr(name, b"hello" if name == "F.npy" else good.read(name))
    with pytest.raises(ValueError, match="^load: .*F has the wrong type"):
        kp.load(tmp_path / "b.npz")
    np.savez_compressed(tmp_path / "c.npz", **{f"x{i}": np.zeros(1000) for i in range(9)})
    monkeypatch.setattr(kp, "_PHYSICAL_MEMORY", 50_000)  # each of them alone would fit
    with pytest.raises(ValueError, match="cannot read .*c.npz: it must be smaller: .* of memory"):
        kp.load(tmp_path / "c.npz")


def test_files_that_are_damaged_or_foreign_are_refused_by_name(tmp_path, monkeypatch):
    good, path = tmp_path / "good.npz", tmp_path / "bad.npz"
    kp.save(good, kp.kpca(X, KERNEL, 2, centered=False))
    content = good.read_bytes()
    for broken in (
        content[:100],
        content[:-30],
        b"junk",
        b"",
        content.replace(b"PK\x01\x02", b"PK\x01\x03"),
    ):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="^load: .*bad.npz"):
            kp.load(path)
    for change, text in (
        ({"class": "Nothing"}, "written by save"),
        ({"values": np.array("a")}, "values has the wrong type"),
        ({"kernel": np.array("Landmarks")}, "kernel"),
        ({"kernel.kind": 1e300}, "kernel.kind has the wrong type"),
        ({"kernel": X}, "kernel has the wrong type"),
        ({"kernel.gamma": X}, "gamma has the wrong type"),
    ):
        with np.load(good) as arrays:
            np.savez(path, **{**arrays, **change})
        with pytest.raises(ValueError, match=f"^load: .*{text}"):
            kp.load(path)
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="of memory"):
        patch.setattr(kp, "_PHYSICAL_MEMORY", 500)
        kp.load(good)
    with pytest.raises(FileNotFoundError):
        kp.load(tmp_path / "none.npz")
    np.save(tmp_path / "array.npz", X)
    (tmp_path / "array.npz.npy").rename(tmp_path / "array.npz")
    with pytest.raises(ValueError, match="must be a file written by save"):
        kp.load(tmp_path / "array.npz")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    place = tmp_path / "model.npz"
    kp.save(place, kp.gaussian(1.0))
    place.chmod(0o640)
    os.symlink(place, tmp_path / "link.npz")
    kp.save(tmp_path / "link.npz", KERNEL)
    assert kp.load(place).gamma == 0.125 and os.path.islink(tmp_path / "link.npz")
    assert place.stat().st_mode & 0o777 == 0o640

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(OSError, match="No space left on device.*model.npz"):
                kp.save(place, kp.gaussian(3.0))
            with pytest.raises(OSError, match="No space left on device.*new.npz"):
                kp.save(tmp_path / "new.npz", kp.gaussian(3.0))
        assert kp.load(place).gamma == 0.125 and sorted(os.listdir(tmp_path)) == [
            "link.npz",
            "model.npz",
        ]


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="nothing is protected from root")
def test_a_protected_file_is_not_replaced(tmp_path):
    kp.save(tmp_path / "m.npz", KERNEL)
    (tmp_path / "m.npz").chmod(0o444)
    with pytest.raises(PermissionError, match="m.npz"):
        kp.save(tmp_path / "m.npz", kp.gaussian(3.0))


# Processes and terminals


def command(*arguments, **more):
    """The command in a process of its own."""
    own = {
        "PYTHONPATH": os.path.dirname(kp.__file__),
        "KPCASKETCH_QUIET": "1",
        **more.pop("env", {}),
    }
    return subprocess.Popen(
        [sys.executable, "-m", "kpcasketch", *map(str, arguments)],
        env={**os.environ, **own},
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def test_a_reader_who_leaves_early_gets_no_traceback(points):
    reader, writer = os.pipe()
    os.close(reader)
    process = command("embed", points, "-k", "1", "-o", f"{points}.csv", stdout=writer)
    os.close(writer)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 0 and "rror" not in error


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_files_were_not_written_if_nobody_reads_what_is_printed(points, tmp_path, unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    words = ["--model", tmp_path / "m.npz", "-o", tmp_path / "o.csv"]
    own = {"PYTHONUNBUFFERED": unbuffered}
    process = command("embed", points, "-k", "1", *words, stdout=writer, env=own)
    os.close(writer)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 0 and "rror" not in error
    assert kp.load(tmp_path / "m.npz").points.shape == X.shape
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 151


SNIPPET = """
import numpy as np
namespace = {"__name__": NAME}
exec(open("kpcasketch.py").read(), namespace)
assert namespace["gram_diagonal"](np.zeros((3, 1)), namespace["gaussian"](1.0)).sum() == 3.0
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["'pasted'", "'__main__'"])
def test_the_source_works_when_pasted_or_executed(tmp_path, name):
    shutil.copy(kp.__file__, tmp_path / "kpcasketch.py")
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", SNIPPET.replace("NAME", name)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert not list(pathlib.Path(tmp_path).glob("__pycache__/*.nbc"))


def test_a_model_of_standardized_points_took_frames_that_were_not_prepared(tmp_path, capsys):
    pytest.importorskip("pandas")
    points = np.random.default_rng(0).standard_normal((60, 3)) * [1.0, 1e5, 1.0] + [0.0, 1e6, 0.0]
    np.savetxt(tmp_path / "points.csv", points, "%.17g", ",", header="a,b,c", comments="")
    words = ["embed", str(tmp_path / "points.csv"), "-k", "2", "--model", str(tmp_path / "m.npz")]
    kp.main([*words, "--standardize"])
    model = kp.load(tmp_path / "m.npz")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(points, columns=list("abc"))
    known = kp.residual((points - points.mean(0)) / points.std(0), of_prepared(model))
    for function in (
        kp.features,
        kp.residual,
        kp.relevance,
        kp.gradient,
        kp.explained_variance_ratio,
        lambda X, model: kp.novelty_pvalues(X, model, known),
    ):
        with pytest.raises(ValueError, match=r"got .* and those of prepared_points\(path, X\)"):
            function(frame, model)
        for raw in (points, points.tolist(), np.float32(points)):  # were taken for standardized
            with pytest.raises(ValueError, match=r"X must be made by prepared_points\(path, X\)"):
                function(raw, model)
        own = kp.prepared_points(tmp_path / "m.npz", frame)
        again = kp.prepared_points(tmp_path / "m.npz", points)
        for prepared in (own, own[:30], own[[3, 1]], own[own[:, 0] > 0.0], again):
            assert len(function(prepared, model)) in (len(prepared), 2, 3)
        # values or columns may be others: these kept the mark
        for other in (own.copy(), own * 2.0, own[:, ::-1], own[:3].T, np.empty_like(own)):
            with pytest.raises(ValueError, match="or be rows of its result"):
                function(other, model)
    with pytest.raises(ValueError, match="read-only"):
        own[0] = points[0]
    with pytest.raises(ValueError, match="^prepared_points: X must not be prepared already"):
        kp.prepared_points(tmp_path / "m.npz", own)
    for empty in (frame[:0], points[:0], pandas.DataFrame(columns=list("cba"))):
        none = kp.prepared_points(tmp_path / "m.npz", empty)
        assert kp.features(none, model).shape == (0, 2)
    kp.save(tmp_path / "kernel.npz", KERNEL)
    assert np.array_equal(kp.prepared_points(tmp_path / "kernel.npz", points), points)
    out = np.empty(2)
    kp.features_of(own[3], model, out)
    expected = kp.features((points - points.mean(0)) / points.std(0), of_prepared(model))
    assert np.abs(out - expected[3]).max() < 1e-12
    # applied by a copy of the model, it was not standardized
    kp.save(tmp_path / "again.npz", model)
    assert kp.load(tmp_path / "again.npz").names == model.names
    for path in (tmp_path / "m.npz", tmp_path / "again.npz"):
        done(capsys, "apply", path, tmp_path / "points.csv", "-o", tmp_path / "out.npy")
        assert np.abs(expected - np.load(tmp_path / "out.npy")).max() < 1e-6
        assert np.array_equal(kp.prepared_points(path, frame[list("cba")]), own)
    kp.main(words)
    assert kp.load(tmp_path / "m.npz").names == b'["a", "b", "c"]'


def test_a_model_of_a_frame_and_one_of_a_table_did_not_know_each_others_columns(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    path, out = csv_file(tmp_path, table(X, "a,b,c")), tmp_path / "o.npy"
    done(capsys, "embed", path, "-k", "2", "--sigma", "2", "--model", tmp_path / "table.npz")
    fit = ["-k", "2", "-m", "40", "--ell", "9", "--sigma", "2", "--model", tmp_path / "stream.npz"]
    done(capsys, "stream", path, *fit, "-o", tmp_path / "all.npz", "--state", tmp_path / "s.npz")
    kp.save(tmp_path / "frame.npz", kp.kpca(frame, KERNEL, 2, centered=False))
    kp.save(
        tmp_path / "landmarks.npz", kp.nystrom_kpca(frame, np.arange(40), KERNEL, 2, centered=False)
    )
    assert kp.load(tmp_path / "s.npz").names == b'["a", "b", "c"]'
    for name in ("table", "stream", "all", "frame", "landmarks"):
        model = tmp_path / f"{name}.npz"
        held = kp.load(model)
        assert held.names == b'["a", "b", "c"]'
        expected = kp.features(X, held)
        for rows, header in ((X[:, ::-1], "c,b,a"), (np.column_stack([X, X]), "a,b,c,d,e,f")):
            path = csv_file(tmp_path, table(rows, header), "t.csv")
            done(capsys, "apply", model, path, "-o", out)
            assert np.array_equal(np.load(out), expected)
        path = csv_file(tmp_path, table(X, "x,b,c"), "t.csv")
        assert "must have the model's columns ['a'], and has ['x', " in refused(
            capsys, "apply", model, path, "-o", out
        )
        with pytest.raises(ValueError, match="^features: X and model must have the same columns"):
            kp.features(frame[list("cba")], held)
        assert np.array_equal(kp.prepared_points(model, frame[list("cba")]), X)
        twice = pandas.DataFrame(np.column_stack([X, X]), columns=list("abcabd"))
        with pytest.raises(
            ValueError, match=r"^prepared_points: X must have each of .*\['a', 'b'\]"
        ):
            kp.prepared_points(model, twice)


def test_a_model_of_a_table_without_header_took_the_first_columns_of_a_wider_one(tmp_path, capsys):
    model, out = tmp_path / "m.npz", tmp_path / "f.npy"
    three = csv_file(tmp_path, table(X, "")[1:], "three.csv")
    four = csv_file(tmp_path, table(X[:, [0, 0, 1, 2]], "")[1:], "four.csv")
    done(capsys, "embed", three, "-k", "2", "--sigma", "2", "--model", model)
    assert "the model's columns ['#1 of 3', " in refused(capsys, "apply", model, four, "-o", out)
    expected = kp.features(X, kp.load(model))
    for path, words in ((three, []), (four, ["--columns", "1,3,4"])):
        done(capsys, "apply", model, path, "-o", out, *words)
        assert np.array_equal(np.load(out), expected)
    # a model of some columns of the wider table
    done(capsys, "embed", four, "--drop", "2", "-k", "2", "--sigma", "2", "--model", model)
    done(capsys, "apply", model, four, "-o", out)
    assert np.array_equal(np.load(out), expected)
    assert "the model's columns ['#1 of 4', " in refused(capsys, "apply", model, three, "-o", out)


def test_of_two_streams_with_one_state_the_slower_deleted_what_the_other_had_read(
    many, tmp_path, monkeypatch, capsys
):
    points, path, state = many
    np.save(tmp_path / "other.npy", points[:9000])
    stream = kp._streams[kp.SKPCAState]
    # a new state, and one that both have read: points after the other stream, and after both
    for after_other, after_all in ((9000, 29_000), (40_000, 60_000)):

        def update(held, rows):
            """The other stream reads its file while the first block is read."""
            monkeypatch.setitem(kp._streams, kp.SKPCAState, stream)
            other = tmp_path / "other.npy"
            assert kp.main(["stream", str(other), *STREAM, "--state", str(state)]) == 0
            return stream.update(held, rows)

        monkeypatch.setitem(kp._streams, kp.SKPCAState, stream._replace(update=update))
        error = refused(capsys, "stream", path, *STREAM, "--state", state)
        assert f"{state} was written by another process, and is kept: repeat the command" in error
        assert kp.load(state).count == after_other
        assert not [*tmp_path.glob("*.part")]
        done(capsys, "stream", path, *STREAM, "--state", state)
        assert kp.load(state).count == after_all
        np.save(path, np.vstack([points, points]))
        np.save(tmp_path / "other.npy", points)


@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f8", "f4"), ("f4", "f8")])
@pytest.mark.parametrize("words", [["--standardize"], []])
def test_known_points_of_which_a_model_has_seen_half_gave_false_alarms(
    tmp_path, capsys, rng, words, dtypes
):
    # 11.5 % for 5 %: the model had seen 450 of 1000 known points, fewer than half of its own
    points = rng.standard_normal((2000, 4)) * [1.0, 10.0, 1e-3, 1.0] + [0.0, 300.0, 0.0, 5.0]
    files = {"all": points[:1000], "new": points[1900:]}
    files["known"] = points[550:1550]
    files["few"] = points[960:1960]
    for name, rows in files.items():
        np.save(tmp_path / f"{name}.npy", rows.astype(dtypes[name != "all"]))
    model, out = tmp_path / "m.npz", tmp_path / "o.npy"
    done(capsys, "embed", tmp_path / "all.npy", "-k", "3", *words, "--model", model)
    novelty = ["apply", model, tmp_path / "new.npy", "--novelty", "0.05", "-o", out]
    error = refused(capsys, *novelty, "--known", tmp_path / "known.npy")
    assert "points that the model has not seen" in error
    done(capsys, *novelty, "--known", tmp_path / "few.npy")


def test_embed_without_an_output_did_all_the_work(points, capsys, monkeypatch):
    monkeypatch.setattr(kp, "_fitted", None)
    assert "pass -o, --model or --plot" in refused(capsys, "embed", points)
    error = refused(capsys, "stream", points, "-m", "20", "--ell", "4", "-k", "2")
    assert "pass -o, --model, --plot or --state" in error


def test_a_picture_of_an_unknown_ending_was_refused_after_the_work(points, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    for name in ("p.jpg", "p", "p.png.txt"):
        error = refused(capsys, "embed", points, "--plot", tmp_path / name, "--sigma", "-1")
        assert "--plot must end in .png or .svg or .pdf" in error
    done(capsys, "embed", points, "-k", "2", "--plot", tmp_path / "P.SVG")
    assert (tmp_path / "P.SVG").read_text().startswith("<?xml")


def test_endings_in_capitals_were_refused(tmp_path, capsys):
    path = csv_file(tmp_path, table(X, "a,b,c"), "A.CSV")
    np.save(tmp_path / "B.npy", X)
    np.savez(tmp_path / "C.npz", X=X)
    (tmp_path / "B.npy").rename(tmp_path / "B.NPY")
    (tmp_path / "C.npz").rename(tmp_path / "C.Npz")
    fit = ["-k", "2", "--sigma", "2"]
    done(capsys, "embed", path, "--columns", "a,b,c", *fit, "-o", tmp_path / "O.CSV")
    expected = np.loadtxt(tmp_path / "O.CSV", delimiter=",", skiprows=1)[:, 1:]
    for path, out in (("B.NPY", "O.NPY"), ("C.Npz", "O.NPZ")):
        done(capsys, "embed", tmp_path / path, *fit, "-o", tmp_path / out)
        found = np.load(tmp_path / out)
        found = found if out == "O.NPY" else found["embedding"]
        assert np.array_equal(found, expected)


def test_a_sparse_file_lacked_an_array_X(tmp_path, capsys):
    sparse = pytest.importorskip("scipy.sparse")
    points = X * (np.abs(X) > 0.5)
    np.save(tmp_path / "X.npy", points)
    fit = ["-k", "2", "--sigma", "2", "--method", "uniform", "-s", "40", "--holdout", "0.2"]
    done(capsys, "embed", tmp_path / "X.npy", *fit, "-o", tmp_path / "o.npy")
    expected = np.load(tmp_path / "o.npy")
    for kind in (sparse.csr_array, sparse.coo_array, sparse.csc_matrix):
        sparse.save_npz(tmp_path / "X.npz", kind(points))
        model = ["--model", tmp_path / "m.npz"]
        done(capsys, "embed", tmp_path / "X.npz", *fit, "-o", tmp_path / "o.csv", *model)
        found = np.loadtxt(tmp_path / "o.csv", delimiter=",", skiprows=1)[:, 1:]
        assert np.abs(np.abs(found) - np.abs(expected)).max() < 1e-7
    novelty = ["apply", tmp_path / "m.npz", tmp_path / "X.npz", "--novelty", "0.1"]
    done(capsys, *novelty, "-o", tmp_path / "p.npy")
    assert np.abs(np.load(tmp_path / "p.npy")[:, :2] - found).max() < 1e-9
    for words, text in (
        (["--standardize"], "--standardize is not for sparse points"),
        (["--missing", "drop"], "--missing is not for sparse points"),
    ):
        assert text in refused(capsys, "embed", tmp_path / "X.npz", *fit, *words, *model)
    error = refused(capsys, *novelty, "--known", tmp_path / "X.npz", "-o", tmp_path / "p.npy")
    assert "--known is for dense points" in error
    error = refused(capsys, "stream", tmp_path / "X.npz", "-k", "2", *model)
    assert "must be dense: streams take no sparse points" in error
    np.savez(tmp_path / "X.npz", X=X, format=3)
    done(capsys, "embed", tmp_path / "X.npz", "-k", "1", "-o", tmp_path / "o.npy")


def test_names_with_points_or_commas_were_taken_for_decimals(tmp_path, capsys):
    for text, words in (
        ('"Sepal.Length";"b"\n1,5;2,5\n3,5;4\n', ["--delimiter", ";"]),
        ('"GDP, USD",b\n1.5,2.5\n3.5,4\n', []),
    ):
        path = csv_file(tmp_path, text)
        done(
            capsys, "embed", path, *words, "-k", "1", "--sigma", "2", "--model", tmp_path / "m.npz"
        )
        assert kp.load(tmp_path / "m.npz").points.tolist() == [[1.5, 2.5], [3.5, 4.0]]


def test_a_header_with_an_unnamed_index_was_a_point_where_values_may_be_missing(tmp_path, capsys):
    path = csv_file(tmp_path, ",10,20,30\n0,1,5,2\n1,3,1,4\n2,4,4,4\n")
    words = ["embed", path, "--drop", "1", "--missing", "median", "-k", "1", "--sigma", "2"]
    words += ["--model", tmp_path / "m.npz"]
    assert "--header or --no-header" in refused(capsys, *words)
    done(capsys, *words, "--header")
    assert kp.load(tmp_path / "m.npz").points.tolist() == [[1, 5, 2], [3, 1, 4], [4, 4, 4]]


def test_errors_within_a_stream_name_the_file(tmp_path, capsys):
    path = tmp_path / "last.npy"
    np.save(path, X)
    words = ["stream", path, *STREAM, "--state", tmp_path / "s.npz"]
    done(capsys, *words)
    np.save(path, X + 1.0)
    assert "last.npy: FILE has changed in the rows that were read" in refused(capsys, *words)
    np.save(path, np.vstack([X, X[:1], 1e200 * X[:3]]))
    assert "last.npy: X must be finite" in refused(capsys, *words)


def test_a_negative_block_was_one_block(points, capsys):
    for block in ("0", "-5"):
        words = ["stream", points, *STREAM, "--block", block]
        assert "--block must be an int from 1" in refused(capsys, *words)
