# SPDX-License-Identifier: BSD-3-Clause
"""The command line: a table for good input, one line and status 2 for bad, and the file working alone."""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import kpcasketch as kp
from kpcasketch_tests import naive

X = np.random.default_rng(0).standard_normal((150, 3))


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)
    return str(path)


def test_one_method_on_a_file_writes_the_embedding(points, tmp_path, capsys):
    out = tmp_path / "out.npz"
    assert kp.main([points, "-k", "2", "--sigma", "2", "-o", str(out)]) == 0
    assert "lanczos" in capsys.readouterr().out
    with np.load(out) as written:
        values, vectors = naive.eigenpairs(naive.gaussian(X, X, 2.0), 2)
        assert np.allclose(written["values"], values)
        assert np.abs(written["embedding"] - vectors * np.sqrt(values)).max() < 1e-6


@pytest.mark.slow
def test_all_methods_make_a_table_with_small_errors(points, capsys):
    assert kp.main([points, "-k", "1", "--method", "all"]) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert set(kp._METHODS) <= set(rows)
    assert float(rows["quantize"][-3]) < 0.5 and float(rows["implicit"][-2]) < 1e-4
    assert all(float(rows[name][-3]) < 1e-6 for name in kp._LANDMARK_METHODS)             # all points are landmarks


@pytest.mark.slow
@pytest.mark.parametrize("method", kp._LANDMARK_METHODS)
def test_landmark_methods_take_their_number_from_s(points, tmp_path, capsys, method):
    out = tmp_path / "out.npz"
    assert kp.main([points, "-k", "2", "--sigma", "2", "--method", method, "-s", "30", "-o", str(out)]) == 0
    row = next(line.split() for line in capsys.readouterr().out.splitlines() if line.startswith(method + " "))
    assert row[2:4] == ["36", "kB"] and 0 < float(row[5]) < 0.05 and float(row[4]) >= 150 * 30


def test_csv_with_and_without_header_and_npz_are_read(tmp_path):
    np.savetxt(tmp_path / "plain.csv", X, delimiter=",")
    np.savetxt(tmp_path / "named.csv", X, delimiter=",", header="a,b,c", comments="")
    np.savez(tmp_path / "many.npz", X=X, y=np.zeros(3))
    np.savez(tmp_path / "other.npz", A=X, B=X)
    for name, key in (("plain.csv", None), ("named.csv", None), ("many.npz", None), ("other.npz", "A")):
        assert np.allclose(kp._load_points(str(tmp_path / name), key), X)


def write(path, content):
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content, allow_pickle=True)
    return str(path)


@pytest.mark.parametrize("name, content, options, text", [
    ("a.npy", np.array([{}], object), [], "Object arrays cannot be loaded"),
    ("a.npy", np.full((3, 2), np.nan), [], "NaN"), ("a.npy", np.zeros(3), [], "2-D"), ("a.npy", b"junk", [], "cannot read"),
    ("a.npz", b"junk", [], "cannot read"), ("a.csv", b"1,2\n3\n", [], "cannot read"), ("a.txt", b"1", [], "not a .npy"),
    ("a.npy", np.zeros((0, 2)), [], "no numbers"), ("a.npy", np.array([["x"]]), [], "real numbers"),
    ("a.npy", X, ["-k", "0"], "-k must be from 1 to 150"), ("a.npy", X, ["-k", "151"], "-k must be"),
    ("a.npy", X, ["--sigma", "-1"], "sigma must be positive"), ("a.npy", X, ["--sigma", "wide"], "--sigma must be"),
    ("a.npy", X, ["--method", "magic"], "invalid choice"), ("a.npy", X, ["-s", "0.5"], "-s must be at least 1"),
    ("a.npy", X, ["--method", "rls", "-s", "5"], "-s must be at least 10"),
    ("a.npy", X, ["--method", "uniform", "-s", "20.5"], "-s must be a whole number"),
    ("a.npy", X, ["--dimension", "0"], "--dimension must be at least 1"), ("a.npy", X, ["--rounding", "0"], "--rounding must be"),
    ("a.npy", X, ["--method", "round", "-k", "140"], "-k must be at most 135"),
    ("a.npy", X, ["--seed", "-1"], "--seed must be"), ("a.npy", X, ["--noisy", "5", "5"], "not both"),
    ("a.npy", X, ["-o", "no/such/place.npz"], "no such directory"), ("a.npy", X, ["--unknown"], "unrecognized"),
])
def test_bad_files_and_options_get_one_line_and_status_2(tmp_path, capsys, name, content, options, text):
    assert kp.main([write(tmp_path / name, content), *options]) == 2
    error = capsys.readouterr().err
    assert text in error and error.startswith("kpcasketch: error: ") and error.count("\n") == 1


def test_a_missing_file_gets_one_line_and_status_2(capsys):
    assert kp.main(["no-such-file.npy"]) == 2
    assert "no-such-file.npy" in capsys.readouterr().err


@pytest.mark.slow
def test_plot_draws_a_picture(points, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert kp.main([points, "-k", "3", "--no-errors", "--plot", str(tmp_path / "p.png")]) == 0
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_random_noisy_has_the_spectrum_of_its_description():
    A = kp.random_noisy(4000, 60, 3, 20, 10.0, 20)
    variances = np.linalg.eigvalsh(A.T @ A / 4000)[::-1]
    expected = np.append((1 - np.arange(20) / 20) ** 2, np.zeros(40)) + 0.01
    assert np.allclose(variances, expected, rtol=0.12, atol=0.02)
    assert np.array_equal(A[:9], kp.random_noisy(4000, 60, 3, 20, 10.0, 20)[:9])


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
    result = subprocess.run([sys.executable, "-W", "error", "-c", SNIPPET.replace("NAME", name)], cwd=tmp_path,
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert not list(pathlib.Path(tmp_path).glob("__pycache__/*.nbc"))
