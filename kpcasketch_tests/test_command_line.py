# SPDX-License-Identifier: BSD-3-Clause
"""The command line: a table for good input, one line and status 2 for bad, and the file working alone."""

import io
import os
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


def empty_archive():
    buffer = io.BytesIO()
    np.savez(buffer)
    return buffer.getvalue()


def write(path, content):
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content, allow_pickle=True)
    return str(path)


@pytest.mark.parametrize("name, content, options, text", [
    ("a.npy", np.array([{}], object), [], "it holds text or Python objects"),
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
    ("a.npy", X, ["-o", "."], "is a directory"), ("a.npy", X, ["-o", "/dev/null/x.npz"], "no such directory"),
    ("a.npy", X, ["--method", "uniform", "-s", "inf"], "-s must be at least 1, and finite"), ("a.npy", X, ["--key", "X"], "--key is for"),
    ("a.npy", b"just text", [], "it holds text or Python objects"), ("a.csv", b"", [], "holds no numbers"),
    ("a.npz", empty_archive(), [], "holds no arrays"),
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


@pytest.mark.parametrize("name, content", [
    ("bom.csv", b'\xef\xbb\xbf1,2\n3,4\n'), ("quoted.csv", b'"a","b"\n"1","2"\n"3","4"\n'), ("letters.csv", b"e,i\n1,2\n3,4\n"),
    ("named.csv", b'\xef\xbb\xbf"n,f",inf\n1,2\n3,4\n')])
def test_csv_files_as_spreadsheets_write_them_are_read(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert kp._load_points(str(tmp_path / name), None).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_an_array_under_the_name_of_an_archive_ended_in_a_traceback(tmp_path):
    with open(tmp_path / "a.npz", "wb") as file:
        np.save(file, X)
    assert np.array_equal(kp._load_points(str(tmp_path / "a.npz"), None), X)


def test_the_name_of_the_file_written_is_the_one_said(points, tmp_path, capsys):
    assert kp.main([points, "-k", "1", "--no-errors", "-o", str(tmp_path / "out")]) == 0
    assert f"wrote {tmp_path / 'out.npz'}" in capsys.readouterr().out and (tmp_path / "out.npz").exists()


def test_a_picture_of_an_unknown_kind_is_refused_before_the_work(points, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert kp.main([points, "-k", "1", "--plot", str(tmp_path / "p.xyz")]) == 2
    assert "--plot must name a file that ends in" in capsys.readouterr().err


def test_a_reader_who_leaves_early_gets_no_traceback(points):
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([sys.executable, "-c", "import sys, kpcasketch; sys.exit(kpcasketch.main(sys.argv[1:]))", points, "-k", "1",
                          "--no-errors"], stdout=writer, stderr=subprocess.PIPE, text=True, cwd=pathlib.Path(kp.__file__).parent)
    os.close(writer)
    assert run.returncode == 1 and run.stderr == ""
