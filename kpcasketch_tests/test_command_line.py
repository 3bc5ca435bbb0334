# SPDX-License-Identifier: BSD-3-Clause
"""The command line: a table for good input, one line and status 2 for bad, and the file working alone."""

import contextlib
import errno
import importlib.util
import io
import math
import os
import pathlib
import platform
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
    apart = {*kp._REDUCED_METHODS}
    assert set(kp._METHODS) - apart <= set(rows) and not apart & set(rows)
    assert float(rows["quantize"][-6]) < 0.5 and rows["implicit"][-5:-1] == ["1", "of", "1", "100"]
    assert rows["round"][-3:-1] == ["-", "-"]
    assert all(float(rows[name][-6]) < 1e-6 for name in kp._LANDMARK_METHODS)             # all points are landmarks


@pytest.mark.slow
@pytest.mark.parametrize("method", list(kp._LANDMARK_METHODS))
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
    ("a.npy", np.full((3, 2), np.nan), [], "NaN"), ("a.npy", np.zeros(3), [], "2-D"),
    ("a.npy", b"junk", [], "cannot read"),
    ("a.npz", b"junk", [], "cannot read"), ("a.csv", b"1,2\n3\n", [], "cannot read"), ("a.txt", b"1", [], "not a .npy"),
    ("a.npy", np.zeros((0, 2)), [], "no numbers"), ("a.npy", np.array([["x"]]), [], "real numbers"),
    ("a.npy", X, ["-k", "0"], "-k: must be a whole number, at least 1"), ("a.npy", X, ["-k", "151"], "-k must be"),
    ("a.npy", X, ["--sigma", "-1"], "sigma must be positive"), ("a.npy", X, ["--sigma", "wide"], "--sigma: must be"),
    ("a.npy", X, ["--method", "magic"], "invalid choice"),
    ("a.npy", X, ["--method", "sample", "-s", "0.5"], "-s: must be a number, at least 1"),
    ("a.npy", X, ["--method", "rls", "-s", "5"], "-s must be at least 10"),
    ("a.npy", X, ["--method", "uniform", "-s", "20.5"], "-s must be a whole number"),
    ("a.npy", X, ["--method", "project", "--dimension", "0"], "--dimension: must be a whole number, at least 1"),
    ("a.npy", X, ["--method", "round", "--rounding", "0"], "--rounding: must be"),
    ("a.npy", X, ["--method", "round", "-k", "140"], "-k must be at most 135"),
    ("a.npy", X, ["--seed", "-1"], "--seed: must be a whole number, at least 0"),
    ("a.npy", X, ["--noisy", "5", "5"], "--noisy: not allowed with argument FILE"),
    ("a.npy", X, ["-o", "no/such/place.npz"], "no such directory"), ("a.npy", X, ["--unknown"], "unrecognized"),
    ("a.npy", X, ["-o", "."], "is a directory"), ("a.npy", X, ["-o", "/dev/null/x.npz"], "no such directory"),
    ("a.npy", X, ["--method", "uniform", "-s", "inf"], "-s: must be a number, at least 1"),
    ("a.npy", X, ["--key", "X"], "--key is for"),
    ("a.npy", b"just text", [], "it holds text or Python objects"), ("a.csv", b"", [], "holds no numbers"),
    ("a.npz", empty_archive(), [], "holds no arrays"),
    ("a.npy", X, ["--ell", "5"], "--ell is for --method shadow"),
    ("a.npy", X, ["-m", "5"], "-m is for --method kmeans or herd"),
    ("a.npy", X, ["--method", "shadow", "--ell", "0"], "--ell: must be a number, at least 1e-100"),
    ("a.npy", X, ["--method", "shadow", "--kernel", "linear"], "kernels of the distance"),
    ("a.npy", X, ["--method", "shadow", "--ell", "1e-3"], "1 centers for 10 components"),
    ("a.npy", X, ["--method", "herd", "-m", "5"], "-m must be at least 10"),
    ("a.npy", X, ["--method", "kmeans", "--ell", "5"], "--ell is for"),
    ("a.npy", X, ["--method", "skpca", "--ell", "2.5"], "--ell: must be a whole number"),
    ("a.npy", X, ["--state", "s.npz"], "unrecognized arguments: --state"),
    ("a.npy", X, ["--features", "9"], "unrecognized arguments: --features"),
    ("a.npy", X, ["--theta1", "0"], "unrecognized arguments: --theta1"),
    ("a.npy", X, ["--method", "dsgd", "--batch", "100000"], "--batch must be at most"),
    ("a.npy", X, ["--method", "dsgd", "--features", "0"], "--features: must be a whole number, at least 1"),
    ("a.npy", X, ["--method", "dsgd", "--steps", "0"], "--steps: must be a whole number, at least 1"),
    ("a.npy", X, ["--method", "dsgd", "--feature-batch", "0"], "--feature-batch: must be a whole number, at least 1"),
    ("a.npy", X, ["--method", "dsgd", "--theta1", "-1"], "--theta1: must be a number, at least 0"),
    ("a.npy", X, ["--method", "dsgd", "--theta0", "0"], "theta0 must be from 1e-150"),
    ("a.npy", X, ["--method", "dsgd", "--theta0", "1e9", "-k", "1", "--sigma", "1"], "diverged at step"),
    ("a.npy", X, ["--method", "dsgd", "--kernel", "linear"], "fourier_features_map: kernel must be"),
    ("a.npy", X, ["--method", "skpca", "-m", "20"], "--ell must be from 1 to 20"),
    ("a.npy", X, ["--method", "skpca", "--ell", "0"], "--ell: must be a whole number, at least 1"),
    ("a.npy", X, ["--method", "skpca", "-m", "0"], "-m: must be a whole number, at least 1"),
    ("a.npy", X, ["--method", "skpca", "--ell", "5"], "-k must be at most 5"),
    ("a.npy", X, ["--method", "skpca", "--kernel", "linear"], "fourier_features_map: kernel must be"),
    ("a.npy", np.full((3, 2), np.nan), ["--method", "skpca", "-k", "1", "--sigma", "1"], "row 0 of "),
    ("a.npy", np.zeros((0, 2)), ["--method", "skpca"], "a.npy"),
    ("a.npy", np.zeros(3), ["--method", "skpca"], "2-D"),
])
def test_bad_files_and_options_get_one_line_and_status_2(tmp_path, capsys, name, content, options, text):
    assert kp.main([write(tmp_path / name, content), *options]) == 2
    error = capsys.readouterr().err
    assert text in error and error.startswith("kpcasketch: error: ") and error.count("\n") == 1


@pytest.mark.parametrize("words, means", [
    ([], "embed"), (["-k", "2", "X.npy"], "embed"), (["X.npy", "--method", "rls"], "embed"),
    (["embed", "X.npy"], "embed"),
    (["X.npy", "--method", "skpca"], "stream"), (["--noisy", "9", "2", "--method=dsgd"], "stream"),
    (["--apply", "model.npz", "X.npy", "-o", "out.npy"], "apply"), (["X.npy", "--advise", ".1", "-k", "2"], "advise"),
    (["X.npy", "--workers", "2"], "cluster"), (["X.npy", "--scheduler=tcp://a:1"], "cluster"), ([os.curdir], "cluster"),
    (["--warm-up"], "warm-up"), (["--warm-up", "float32"], "warm-up"), (["demo", "-k", "2"], "demo")])
def test_what_was_asked_for_by_options_is_a_command(words, means):
    found = kp._with_command(words)
    assert found[0] == means and kp._parser().parse_args(found).run is {
        "embed": kp._embed, "demo": kp._embed, "stream": kp._stream, "apply": kp._apply, "advise": kp._advise,
        "cluster": kp._on_cluster, "warm-up": kp._warm_up}[means]


def test_each_command_has_help_and_its_own_options_alone(capsys):
    for command in kp._COMMANDS:
        with pytest.raises(SystemExit) as stop:
            kp.main([command, "--help"])
        assert stop.value.code == 0 and f"usage: kpcasketch {command}" in capsys.readouterr().out
    own = {name for table in (kp._METHODS, kp._STREAMS, kp._KERNELS) for entry in table.values()
           for name in entry.options}
    assert own == set(kp._OWN) - {"rows"}
    for name, entry in {**kp._METHODS, **kp._STREAMS}.items():
        command, table = ("embed", kp._METHODS) if name in kp._METHODS else ("stream", kp._STREAMS)
        foreign = {option for other in table.values() for option in other.options} - set(entry.options)
        for option in foreign:
            assert kp.main([command, "--method", name, kp._option_of(option), "7"]) == 2
            assert f"{kp._option_of(option)} is for --method " in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["demo"], ["embed"]])
def test_without_a_file_there_are_ten_clusters(words, capsys):
    assert kp.main([*words, "-k", "2", "--method", "rls", "-s", "20", "--no-errors"]) == 0
    assert capsys.readouterr().out.startswith("ten clusters: 6000 points, 16 coordinates, float64; gaussian kernel, "
                                              "sigma 6; k = 2, seed 0")


def test_a_state_goes_on_with_the_bandwidth_that_it_was_begun_with(many, capsys):
    _, path, state = many
    words = ["stream", path, "-m", "16", "--ell", "4", "-k", "2", "--state", state]
    assert kp.main(words) == 0 and kp.main([*words, "--sigma", "median"]) == 0
    assert kp.main([*words, "--sigma", "7"]) == 2 and "begun with other --sigma" in capsys.readouterr().err


def test_demo_takes_no_file_and_all_sizes_follow_their_method(capsys):
    assert kp.main(["demo", "X.npy"]) == 2 and "unrecognized arguments: X.npy" in capsys.readouterr().err
    options = kp._parser().parse_args(["demo", "--method", "all"])
    sizes = {name: kp._with_own(options, method) for name, method in kp._METHODS.items()}
    assert (sizes["sample"].s, sizes["rls"].s, sizes["herd"].m, sizes["shadow"].ell) == (4.0, 500, 200, 4.0)


def test_labels_were_overwritten_by_the_result(points, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    np.savez(tmp_path / "y.npz", y=np.arange(150))
    words = [points, "-k", "2", "--labels", str(tmp_path / "y.npz"), "--plot", str(tmp_path / "o.png")]
    assert kp.main([*words, "-o", str(tmp_path / "y.npz")]) == 2
    assert "is named twice" in capsys.readouterr().err and np.load(tmp_path / "y.npz")["y"].size == 150
    np.save(tmp_path / "names.npy", np.array([f"name {i}" for i in range(150)]))
    words[4] = str(tmp_path / "names.npy")
    assert kp.main([*words, "--no-errors"]) == 0 and "labels of 150 kinds are not shown" in capsys.readouterr().err


def test_steps_that_a_state_is_beyond_are_refused(many, capsys):
    _, path, state = many
    assert kp.main([path, *DESCENT, "--state", state]) == 0
    assert kp.main([path, *DESCENT, "--steps", "8", "--state", state]) == 2
    assert "--steps must be at least 9, the steps that" in capsys.readouterr().err and kp.load(state).step == 9
    X = np.load(path)
    kp.save(state, kp.dsgd_gha(X, kp.gaussian(2.0), 2, 300, 3, 9, 60, 64))
    assert kp.main([path, *DESCENT, "--state", state]) == 2
    assert "got DSGDState of another task" in capsys.readouterr().err


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
    ("bom.csv", b'\xef\xbb\xbf1,2\n3,4\n'), ("quoted.csv", b'"a","b"\n"1","2"\n"3","4"\n'),
    ("letters.csv", b"e,i\n1,2\n3,4\n"),
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
    run = subprocess.run([sys.executable, "-c", "import sys, kpcasketch; sys.exit(kpcasketch.main(sys.argv[1:]))",
                          points, "-k", "1", "--no-errors"], stdout=writer, stderr=subprocess.PIPE, text=True,
                         cwd=pathlib.Path(kp.__file__).parent)
    os.close(writer)
    assert run.returncode == 1 and run.stderr == ""


STREAM = ["--method", "skpca", "-m", "16", "--ell", "4", "-k", "2", "--sigma", "2", "--seed", "3"]


@pytest.fixture
def many(tmp_path):
    """A file of several blocks."""
    points = np.random.default_rng(1).standard_normal((20_000, 2))
    np.save(tmp_path / "many.npy", points)
    return points, str(tmp_path / "many.npy"), str(tmp_path / "state.npz")


def whole(points, k=2):
    return kp.skpca(points, kp.gaussian(2.0), 16, 4, k, 3)


def test_a_file_is_streamed_in_blocks_to_the_result_of_one_call(many, tmp_path, capsys):
    points, path, _ = many
    for out in ("out.npz", "out.npy"):
        assert kp.main([path, *STREAM, "-o", str(tmp_path / out)]) == 0
    expected = kp.skpca_transform(points, whole(points))
    with np.load(tmp_path / "out.npz") as written:
        assert np.array_equal(written["embedding"], expected)
        assert np.array_equal(written["values"], whole(points).values)
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    assert "20000 points" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("center", [False, True])
def test_skpca_of_few_points_is_compared_with_the_exact_answer(points, capsys, center):
    assert kp.main([points, "--method", "skpca", "-m", "4000", "--ell", "60", "-k", "2", "--sigma", "1.5"]
                   + ["--center"] * center) == 0
    row = next(line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("skpca "))
    assert float(row[-6]) < 0.06 and row[-5:-2] == ["2", "of", "2"] and float(row[-2]) > 97 and float(row[-1]) < 1e-6


def test_an_interrupted_stream_goes_on_where_it_was(many, monkeypatch, capsys):
    points, path, state = many
    update, calls = kp.skpca_update, []

    def interrupted(state, X):
        calls.append(len(X))
        if len(calls) == 4:                            # one for compiling, two blocks, and the third is not to be
            raise KeyboardInterrupt
        return update(state, X)
    monkeypatch.setattr(kp, "skpca_update", interrupted)
    assert kp.main([path, *STREAM, "--state", state]) == 130
    assert "interrupted after 16384 of 20000 points" in capsys.readouterr().err
    assert kp.main([path, *STREAM, "--state", state]) == 0
    assert "goes on at point 16384" in capsys.readouterr().out
    assert calls[1:4] == [8192, 8192, 3616] and calls[-1] == 3616
    assert all(np.array_equal(a, b) for a, b in zip(kp.skpca_finish(kp.load(state), 2)[1:], whole(points)[1:]))
    assert kp.main([path, *STREAM, "--state", state]) == 0                 # once more: nothing is left to do
    assert kp.load(state).sketch.count == 20_000


@pytest.mark.slow
# alarms in callbacks of Python's own
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stream_interrupted_at_odd_moments_ends_with_the_same_bits(many, capsys):
    points, path, state = many
    rng, codes, expected = np.random.default_rng(5), [], whole(points)
    assert kp.main([path, *STREAM]) == 0                               # all is compiled before the first alarm
    former = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        while not codes or codes[-1] != 0:
            try:
                signal.setitimer(signal.ITIMER_REAL, 10.0 ** rng.uniform(-2.5, -0.3))
                codes.append(kp.main([path, *STREAM, "--state", state]))
            except KeyboardInterrupt:                  # outside of the try statement of `main`
                codes.append(130)
            finally:
                with contextlib.suppress(KeyboardInterrupt):           # that comes just now
                    signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, former)
    assert set(codes) <= {0, 130}
    assert all(np.array_equal(a, b) for a, b in zip(kp.skpca_finish(kp.load(state), 2)[1:], expected[1:]))


def test_a_file_that_has_grown_and_another_one_join_the_stream(many, tmp_path, capsys):
    points, path, state = many
    np.save(path, points[:9000])
    assert kp.main([path, *STREAM, "--state", state]) == 0
    np.save(path, points[:15_000])
    assert kp.main([path, *STREAM, "--state", state]) == 0
    np.save(tmp_path / "other.npy", points[15_000:])
    assert kp.main([str(tmp_path / "other.npy"), *STREAM, "--state", state]) == 0
    assert all(np.array_equal(a, b) for a, b in zip(kp.skpca_finish(kp.load(state), 2)[1:], whole(points)[1:]))


def test_a_refused_file_changed_the_state(many, tmp_path, capsys):
    # the state forgot the file before it, whose points were then taken twice
    points, path, state = many
    broken = points.copy()
    broken[17_000, 1] = np.nan
    np.save(tmp_path / "broken.npy", broken)
    assert kp.main([str(tmp_path / "broken.npy"), *STREAM, "--state", state]) == 2
    error = capsys.readouterr().err
    assert "row 17000 of" in error and "NaN" in error and not os.path.exists(state)
    assert kp.main([path, *STREAM, "--state", state]) == 0
    before = pathlib.Path(state).read_bytes()
    assert kp.main([str(tmp_path / "broken.npy"), *STREAM, "--state", state]) == 2
    assert pathlib.Path(state).read_bytes() == before
    assert kp.main([path, *STREAM, "--state", state]) == 0
    assert kp.load(state).sketch.count == 20_000
    assert all(np.array_equal(a, b) for a, b in zip(kp.skpca_finish(kp.load(state), 2)[1:], whole(points)[1:]))


def test_a_file_between_made_another_count_its_beginning_twice(many, tmp_path, monkeypatch, capsys):
    points, path, state = many
    update, calls = kp.skpca_update, []

    def interrupted(state, X):
        calls.append(len(X))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return update(state, X)
    np.save(tmp_path / "other.npy", points[:3000] + 1)
    monkeypatch.setattr(kp, "skpca_update", interrupted)
    assert kp.main([path, *STREAM, "--state", state]) == 130
    monkeypatch.setattr(kp, "skpca_update", update)
    assert kp.load(state).sketch.count == 8192
    assert kp.main([str(tmp_path / "other.npy"), *STREAM, "--state", state]) == 0
    for _ in range(2):
        assert kp.main([path, *STREAM, "--state", state]) == 0
        assert kp.load(state).sketch.count == 23_000
    np.save(path, points[::-1].copy())
    assert kp.main([path, *STREAM, "--state", state]) == 2
    assert "was made from other points" in capsys.readouterr().err


def test_a_state_written_before_it_knew_all_its_files_goes_on(many, capsys):
    points, path, state = many
    first = kp.skpca_update(kp.skpca_start(kp.fourier_features_map(kp.gaussian(2.0), 2, 16, 3), 4), points[:9000])
    np.savez(state, **kp._as_arrays(first), source=str(pathlib.Path(path).resolve()), rows=9000, last=points[8999])
    assert kp.main([path, *STREAM, "--state", state]) == 0
    assert all(np.array_equal(a, b) for a, b in zip(kp.skpca_finish(kp.load(state), 2)[1:], whole(points)[1:]))


def test_two_processes_lost_each_others_updates_of_a_state(many, capsys):
    path, state = many[1:]
    with kp._own_state(state):
        assert kp.main([path, *STREAM, "--state", state]) == 2
        assert "is in use by another process" in capsys.readouterr().err and not os.path.exists(state)
    assert kp.main([path, *STREAM, "--state", state]) == 0 and not os.path.exists(state + ".lock")
    open(state + ".lock", "w").close()                 # of a process that was killed
    assert kp.main([path, *STREAM, "--state", state]) == 0


@pytest.mark.parametrize("options, text", [
    (["--seed", "4"], "--seed"), (["--sigma", "3"], "--sigma"), (["-m", "17"], "-m"), (["--ell", "5"], "--ell"),
    (["--center"], "--center"), (["--kernel", "laplacian"], "--kernel"), (["--kernel", "polynomial"], "--kernel"),
    (["-k", "5"], "-k must be at most 4")])
def test_a_state_begun_otherwise_is_refused(many, capsys, options, text):
    _, path, state = many
    assert kp.main([path, *STREAM, "--state", state]) == 0
    before = pathlib.Path(state).read_bytes()
    assert kp.main([path, *STREAM, *options, "--state", state]) == 2
    assert text in capsys.readouterr().err and pathlib.Path(state).read_bytes() == before


DESCENT = ["--method", "dsgd", "--features", "300", "--batch", "60", "--feature-batch", "64", "--steps", "9", "-k", "2",
           "--sigma", "2", "--seed", "3"]


def descended(points, steps=9):
    return kp.dsgd_kpca(points, kp.gaussian(2.0), 2, 300, 3, steps, 60, 64)


def test_gradients_on_a_file_are_those_of_one_call(many, tmp_path, capsys):
    points, path, state = many
    for out in ("out.npz", "out.npy"):
        assert kp.main([path, *DESCENT, "-o", str(tmp_path / out)]) == 0
    expected = kp.dsgd_evaluate(points, descended(points))
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    with np.load(tmp_path / "out.npz") as written:
        assert np.array_equal(written["embedding"], expected)
        assert np.allclose(written["values"], 20_000 * kp.dsgd_values(descended(points)))
    assert "9 steps" in capsys.readouterr().out


def test_gradients_are_drawn(many, tmp_path):
    pytest.importorskip("matplotlib")
    assert kp.main([many[1], *DESCENT, "--plot", str(tmp_path / "out.png")]) == 0
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_interrupted_gradients_go_on_where_they_were(many, tmp_path, monkeypatch, capsys):
    points, path, state = many
    update, calls = kp.dsgd_update, []

    def interrupted(state, X):
        calls.append(len(X))
        if len(calls) == 6:                            # one for compiling
            raise KeyboardInterrupt
        return update(state, X)
    monkeypatch.setattr(kp, "dsgd_update", interrupted)
    assert kp.main([path, *DESCENT, "--state", state]) == 130
    assert "interrupted after 4 of 9 steps" in capsys.readouterr().err and kp.load(state).step == 4
    assert kp.main([path, *DESCENT, "--state", state]) == 0
    assert "goes on at step 4" in capsys.readouterr().out
    found = kp.dsgd_finish(kp.load(state))
    assert np.array_equal(found.coef, descended(points).coef) and np.array_equal(found.moment, descended(points).moment)
    assert kp.main([path, *DESCENT[:-8], "-k", "2", "--sigma", "2", "--seed", "3", "--steps", "12", "--state",
                    state]) == 0
    assert np.array_equal(kp.dsgd_finish(kp.load(state)).coef, descended(points, 12).coef)
    for options, text in ((["--features", "301"], "--features"), (["-k", "1"], "-k"), (["--theta0", "0.5"], "--theta0"),
                          (["--center"], "--center")):
        before = pathlib.Path(state).read_bytes()
        assert kp.main([path, *DESCENT, *options, "--state", state]) == 2
        assert text in capsys.readouterr().err and pathlib.Path(state).read_bytes() == before
    assert kp.main([path, *STREAM, "--state", state]) == 2
    assert "must hold a state of skpca, got DSGDState" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("center", [False, True])
def test_gradients_of_few_points_are_compared_with_the_exact_answer(points, capsys, center):
    assert kp.main([points, "--method", "dsgd", "--features", "4000", "-k", "2", "--sigma", "1.5"] + ["--center"]
                   * center) == 0
    row = next(line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("dsgd "))
    assert float(row[-6]) < 0.8 and float(row[-2]) > 90


@pytest.mark.parametrize("options", [["-o", "many.npy"], ["--state", "./many.npy"],
                                     ["--state", "s.npz", "-o", "s.npz"]])
def test_points_that_would_be_overwritten_are_refused(many, monkeypatch, tmp_path, capsys, options):
    monkeypatch.chdir(tmp_path)
    assert kp.main(["many.npy", *STREAM, *options]) == 2
    assert "would be overwritten" in capsys.readouterr().err and np.array_equal(np.load("many.npy"), many[0])


def test_states_of_other_points_and_files_that_are_none_are_refused(many, tmp_path, capsys):
    points, path, state = many
    assert kp.main([path, *STREAM, "--state", state]) == 0
    np.save(path, points[::-1])
    assert kp.main([path, *STREAM, "--state", state]) == 2
    assert "was made from other points" in capsys.readouterr().err
    for content, text in ((b"junk", "cannot read"), (b"", "cannot read")):
        (tmp_path / "none.npz").write_bytes(content)
        assert kp.main([path, *STREAM, "--state", str(tmp_path / "none.npz")]) == 2
        assert text in capsys.readouterr().err
    kp.save(tmp_path / "model.npz", kp.gaussian(1.0))
    assert kp.main([path, *STREAM, "--state", str(tmp_path / "model.npz")]) == 2
    assert "must hold a state of skpca, got Kernel" in capsys.readouterr().err


def test_whole_numbers_on_disk_and_single_precision_are_streamed(tmp_path, capsys):
    for name, dtype in (("ints.npy", np.int16), ("single.npy", np.float32), ("columns.npy", np.float64)):
        points = np.random.default_rng(2).integers(-3, 4, (500, 2)).astype(dtype)
        np.save(tmp_path / name, np.asfortranarray(points) if name == "columns.npy" else points)
        assert kp.main([str(tmp_path / name), *STREAM, "--no-errors", "--sigma", "median", "-o",
                        str(tmp_path / "out.npy")]) == 0
        written = np.load(tmp_path / "out.npy")
        assert written.shape == (500, 2) and written.dtype == (np.float32 if dtype == np.float32 else np.float64)


@pytest.mark.parametrize("method, options", [("shadow", ["--ell", "4"]), ("kmeans", ["-m", "40"]),
                                             ("herd", ["-m", "40", "--center"])])
def test_reduced_sets_have_a_row_and_an_embedding(tmp_path, capsys, method, options):
    points = np.random.default_rng(0).standard_normal((200, 3))
    np.save(tmp_path / "X.npy", points)
    out = tmp_path / "out.npz"
    assert kp.main([str(tmp_path / "X.npy"), "--method", method, "-k", "3", "--sigma", "2", "-o", str(out),
                    *options]) == 0
    text = capsys.readouterr().out
    row = next(line.split() for line in text.splitlines() if line.startswith(method))
    kernel = kp.gaussian(2.0)
    found = (kp.shadow_select(points, 0.5) if method == "shadow" else kp.kmeans_select(points, 40, 0)
             if method == "kmeans"
             else kp.herd(points, 40, kernel))
    expected = kp.expand(points, kp.rskpca(found.centers, found.weights, kernel, 3, 0, method == "herd"))
    with np.load(out) as arrays:
        assert np.abs(arrays["embedding"] - expected).max() < 1e-12
    K = kp.gram(points, points, kernel)
    quantized = kp.gram(found.centers, found.centers, kernel)[np.ix_(found.labels, found.labels)]
    assert float(row[-6]) == pytest.approx(np.linalg.norm(quantized - K, 2) / np.linalg.norm(K, 2), rel=0.03)
    assert 50 < float(row[-2]) <= 100
    assert (f"shadow: {len(found.weights)} of 200 points are centers" in text) == (method == "shadow")


def test_shadows_that_save_nothing_say_so(tmp_path, capsys):
    np.save(tmp_path / "X.npy", np.random.default_rng(0).standard_normal((30, 3)))
    assert kp.main([str(tmp_path / "X.npy"), "--method", "shadow", "--ell", "1e6", "-k", "2"]) == 0
    assert "30 of 30 points are centers (100 %)" in (text := capsys.readouterr().out) and "nothing is saved" in text


def test_a_model_on_disk_maps_new_points(tmp_path, capsys):
    new = np.random.default_rng(1).standard_normal((40, 3)) * [1, 5, 1]
    np.savez(tmp_path / "X.npz", X=X * [1, 5, 1] + [0, 0, 7], y=np.arange(150) % 3)
    np.save(tmp_path / "new.npy", new)
    for method, options, where in [("lanczos", [], "features"), ("uniform", ["-s", "40"], "features"),
                                   ("project", ["--dimension", "2"], "any"),
                                   ("uniform", ["-s", "40", "--center"], "features"),
                                   ("lanczos", ["--center"], "features"),
                                   ("kmeans", ["-m", "20"], "features"),
                                   ("skpca", ["-m", "32", "--ell", "8"], "features"),
                                   ("dsgd", ["--features", "64", "--steps", "20"], "features"), ("round", [], "any"),
                                   ("quantize", [], "any")]:
        model, out = str(tmp_path / "model.npz"), str(tmp_path / "out.npy")
        assert kp.main([str(tmp_path / "X.npz"), "-k", "2", "--sigma", "2", "--standardize", "--method", method, "-o",
                        model, "--no-errors", *options]) == 0
        with np.load(model) as file:
            embedding = file["embedding"]
        np.save(tmp_path / "old.npy", np.load(tmp_path / "X.npz")["X"])
        assert kp.main(["--apply", model, str(tmp_path / "old.npy"), "-o", out]) == 0
        again = np.load(out)
        if where == "features":                            # others have features of training points of their own
            assert np.abs(again - embedding).max() < 1e-6, method
        assert kp.main(["--apply", model, str(tmp_path / "new.npy"), "-o", out]) == 0
        assert np.load(out).shape == (40, 2) and np.isfinite(np.load(out)).all()
    capsys.readouterr()
    assert kp.main(["--apply", model, str(tmp_path / "new.npy")]) == 2 and "apply needs -o" in capsys.readouterr().err
    np.save(tmp_path / "wide.npy", np.ones((4, 9)))
    assert kp.main(["--apply", model, str(tmp_path / "wide.npy"), "-o", out]) == 2
    assert "as many coordinates" in capsys.readouterr().err
    assert kp.main(["--apply", str(tmp_path / "X.npz"), str(tmp_path / "new.npy"), "-o", out]) == 2
    assert "must be a file that save has written" in capsys.readouterr().err
    assert kp.main(["--apply", model, str(tmp_path / "new.npy"), "-o", model]) == 2
    assert "named twice" in capsys.readouterr().err


def test_standardized_points_have_mean_0_and_variance_1():
    Y = X * [1e-3, 5e6, 0] + [1e9, 0, 4]
    rows, (mean, scale) = kp._standardized(Y)
    assert np.abs(rows[:].mean(0)).max() < 1e-3 and np.abs(rows[:][:, :2].std(0) - 1).max() < 1e-3 and scale[2] == 1
    assert rows[:].dtype == np.float64 and kp._standardized(X.astype(np.float32))[0][3:5].dtype == np.float32
    assert np.array_equal(kp._standardized(Y[:4], (mean, scale))[0][1:3], rows[1:3])


def test_a_state_keeps_how_points_were_standardized(many, capsys):
    _, path, state = many
    base = [path, *STREAM, "--state", state]
    assert kp.main([*base, "--standardize"]) == 0 and kp.main([*base, "--standardize"]) == 0
    capsys.readouterr()
    assert kp.main(base) == 2 and "was begun with --standardize" in capsys.readouterr().err


@pytest.mark.parametrize("labels, written", [(np.arange(150) % 3, "npy"),
                                             (np.array(["cat", "dog", "emu"])[np.arange(150) % 3], "npy"),
                                             (np.arange(150) / 7.0, "npy"), (np.arange(150) % 4, "csv")])
def test_labels_colour_the_picture(points, tmp_path, capsys, labels, written):
    pytest.importorskip("matplotlib")
    file, picture = tmp_path / f"y.{written}", tmp_path / "picture.svg"
    np.save(file, labels) if written == "npy" else np.savetxt(file, labels, fmt="%d")
    assert kp.main([points, "-k", "2", "--sigma", "2", "--no-errors", "--labels", str(file), "--plot",
                    str(picture)]) == 0
    assert "label" in picture.read_text() or picture.stat().st_size > 10_000
    capsys.readouterr()
    np.save(tmp_path / "few.npy", labels[:9])
    assert kp.main([points, "-k", "2", "--labels", str(tmp_path / "few.npy"), "--plot", str(picture)]) == 2
    assert "must hold 150 labels" in capsys.readouterr().err


def test_advice_ends_with_a_command(points, capsys):
    assert kp.main([points, "--advise", "0.05", "-k", "2"]) == 0
    out = capsys.readouterr().out
    assert "recommended, for about" in out and "quantize" in out and "NO: error too large" in out
    command = out.splitlines()[-1].split()
    assert command[:3] == ["python", "-m", "kpcasketch"] and kp.main([*command[3:], "--no-errors"]) == 0
    capsys.readouterr()
    assert kp.main([points, "--advise", "2", "-k", "2"]) == 2 and "advise: error must be" in capsys.readouterr().err
    assert kp.main([points, "--advise", "0.0001", "-k", "2", "--memory", "10"]) == 0
    assert "nothing reaches that in this memory" in capsys.readouterr().out


def test_advice_saw_no_cliff_between_the_sizes_of_its_ladder():
    # a linear kernel of rank 20 has an error of .9 at 19 landmarks and of 0 at 20: 19 were advised for 5 %
    Z = np.random.default_rng(0).standard_normal((1500, 20))
    for row in kp.advise(Z, kp.linear(), 0.05, k=5):
        if row.method in ("uniform", "rls", "rls-accelerated", "rpcholesky"):
            assert row.works and 20 <= row.size <= 26 and row.error < 1e-5             # products in float32


def test_sizes_are_drawn_often_only_where_the_first_draw_recommends_them():
    # four draws of each size that was looked at made advice on images take 22 s
    wanted, asked = 0.01, []

    class Pilot:
        seed, known = 2**64 - 1, ()

        def factor_errors(self, factors):
            return factors

    def made(error):
        asked.clear()
        return kp._Draws(Pilot(), lambda s, seed: asked.append(s) or error(s, seed))

    spread = [1.0, 1.3, 0.9, 1.1]                      # of seeds 2^64 - 1, 0, 1, 2
    for scale in (0.1, 0.5, 2.0, 4.0, 8.0):
        draws = made(lambda s, seed, scale=scale: scale * spread[(seed + 1) % 2**64] / s)
        s = kp._least_size(draws, kp._LADDER, wanted)
        assert draws.worst(s) <= wanted and abs(draws.spread(s) - 1.3 / 0.9) < 1e-12
        assert s == 16 or s <= 1.3 * 1.3 * scale / wanted
        assert len(asked) == len(set(asked)) + 3 * sum(asked.count(size) == 4 for size in set(asked)) <= 20
    draws = made(lambda s, seed: 50.0 * spread[(seed + 1) % 2**64] / s)
    assert 6490 < kp._least_size(draws, kp._LADDER, wanted) < 6510
    assert sorted(asked) == [16, 64] + 4 * [256] + 4 * [1024]
    # the first draw recommends what another does not, up to the end; a first draw may be exact
    assert kp._least_size(made(lambda s, seed: 0.0 if seed > 9 else 1.0), kp._LADDER, wanted) == math.inf
    assert kp._least_size(made(lambda s, seed: 1.0 if s < 100 else 0.0), kp._LADDER, wanted) in range(100, 131)
    assert kp._least_size(made(lambda s, seed: 0.001), [40], wanted) == 40


def test_of_what_takes_no_second_the_smallest_is_advised():
    # pendigits: an exact matrix of 967 MB came before 3 MB of landmarks, as both took less than a second
    Z = np.random.default_rng(3).standard_normal((400, 3))
    rows = [row for row in kp.advise(Z, kp.gaussian(2.0), 0.01, k=3) if row.works]
    sizes = [row.bytes for row in rows if row.seconds < 0.3]           # whatever their errors vary between seeds
    assert len(sizes) > 3 and sizes == sorted(sizes) and sizes[0] < 400**2 * 8 / 4


@pytest.mark.slow
@pytest.mark.parametrize("data", ["normal", "clusters", "tails"])
def test_what_is_advised_has_the_predicted_error(data, monkeypatch):
    monkeypatch.setattr(kp, "_PILOT_POINTS", 1200)
    n, rng = 2700, np.random.default_rng(5)
    Z = rng.standard_normal((n, 4))
    Z = {"normal": Z, "clusters": Z * 0.3 + 3 * rng.standard_normal((12, 4))[rng.integers(12, size=n)],
         "tails": Z * rng.gamma(1, 1, (n, 1))}[data]
    kernel = kp.gaussian(kp.median_bandwidth(Z))
    rows = kp.advise(Z, kernel, 0.003)
    best = next(row for row in rows if row.method in kp._LANDMARK_METHODS)
    assert rows[0].works and best.works and best.error <= 0.003
    assert [row.works for row in rows] == sorted((row.works for row in rows), reverse=True)
    K, bits = kp.Implicit(Z, kernel), next(row for row in rows if row.method == "quantize")
    norm, s = kp.spectral_norm(K, 0, 0.01), int(best.size)
    factor = kp.nystrom(Z, kp._LANDMARK_METHODS[best.method](Z, kernel, s, 0), kernel)
    # a bound of what most draws err: .39 of it was met
    assert 0.25 < kp.spectral_error(K, kp.LowRank(factor), 0, 0.05) / norm / best.error < 2.0
    assert 0.5 < kp.spectral_error(K, kp.quantize_gram(Z, kernel), 0, 0.05) / norm / bits.error < 2.0
    assert not bits.works and bits.bytes == 4 * n * math.ceil(n / 32)


@pytest.mark.parametrize("arguments, text", [
    ((X, kp.gaussian(1.0), 0.0), "advise: error must be between 0 and 1"),
    ((X, kp.gaussian(1.0), 0.1, -1.0), "advise: memory must be positive"),
    ((X, kp.gaussian(1.0), 0.1, None, -1), "advise: seed must not be negative"),
    ((X, kp.gaussian(1.0), 0.1, None, 0, 151), "advise: k must be"),
    ((X[0], kp.gaussian(1.0), 0.1), "advise: X must be a 2-D array"), ((X, "gaussian", 0.1), "advise: kernel must be"),
    ((np.arange(19.0).reshape(-1, 1), kp.precomputed(np.eye(19)), 0.1), "advise: kernel must not be precomputed"),
    ((np.zeros((19, 1)), kp.linear(), 0.1), "advise: kernel must not be 0"),
    ((X * np.nan, kp.gaussian(1.0), 0.1), "advise: X must be finite")])
def test_advice_refuses_by_name(arguments, text):
    with pytest.raises(ValueError, match=text):
        kp.advise(*arguments)


@pytest.mark.parametrize("options, text", [
    (["--memory", "1e9"], "unrecognized arguments: --memory"),
    (["--nu", "2.5"], "--nu is for --kernel matern"),
    (["--kernel", "linear", "--sigma", "3"], "--sigma is for --kernel gaussian or"),
    (["--gamma", "2"], "--gamma is for --kernel polynomial"), (["-s", "7"], "-s is for --method sample or"),
    (["--dimension", "7"], "--dimension is for --method project"),
    (["--rounding", "7"], "--rounding is for --method round"),
    (["-o", ""], "-o: must not be an empty name"), (["--plot", ""], "--plot: must not be an empty name"),
    (["--method", "skpca", "-m", "0"], "-m: must be a whole number, at least 1"),
    (["--advise", "0.1", "-o", "x.npz"], "unrecognized arguments: -o"),
    (["--advise", "0.1", "--no-errors"], "unrecognized arguments: --no-errors"),
    (["--advise", "0.1", "--method", "quantize"], "unrecognized arguments: --method"),
    (["--warm-up"], "unrecognized arguments")])
def test_options_that_would_be_ignored_are_refused(points, tmp_path, capsys, options, text):
    assert kp.main([points, *options]) == 2 and text in capsys.readouterr().err
    np.save(tmp_path / "y.npy", np.zeros(150))
    assert kp.main([points, "--labels", str(tmp_path / "y.npy")]) == 2
    assert "--labels is for --plot" in capsys.readouterr().err


@pytest.mark.parametrize("options, text", [
    (["X.npy"], "unrecognized arguments: X.npy"), (["-k", "3"], "unrecognized arguments: -k"),
    (["--feature-batch", "3"], "unrecognized arguments: --feature-batch"),
    (["--standardize"], "unrecognized arguments: --standardize"), (["--seed", "3"], "unrecognized arguments: --seed"),
    (["--center"], "unrecognized arguments: --center")])
def test_options_of_the_model_are_refused_when_it_is_applied(capsys, options, text):
    assert kp.main(["--apply", "a", "b", "-o", "c", *options]) == 2 and text in capsys.readouterr().err


def test_an_array_in_place_of_a_model_or_state_ended_in_a_traceback(points, tmp_path, capsys):
    for name in ("a.npy", "b.npz"):
        path = tmp_path / name
        if name == "a.npy":
            np.save(path, X)
        else:
            path.write_text("no archive")
        with pytest.raises(ValueError, match="load: .* must be a file that save has written"):
            kp.load(path)
        assert kp.main(["--apply", str(path), points, "-o", str(tmp_path / "o.npz")]) == 2
        for method in (["--method", "skpca", "-m", "60"], ["--method", "dsgd", "--features", "128"]):
            assert kp.main([points, "-k", "2", *method, "--state", str(path)]) == 2
        errors = capsys.readouterr().err.splitlines()
        assert len(errors) == 3 and all(error.startswith("kpcasketch: error: cannot read") for error in errors)
    with pytest.raises(FileNotFoundError):
        kp.load(tmp_path / "none.npz")
    kp.save(tmp_path / "scalar.npz", kp.Expansion(X, X[:, :1], 1.0, np.zeros(1), kp.linear()))
    kp.save(tmp_path / "none.npz", kp.Expansion(X, X[:, :0], np.empty(0), np.zeros(0), kp.linear()))
    assert kp.main(["--apply", str(tmp_path / "none.npz"), points, "-o", str(tmp_path / "o.npz")]) == 2
    assert "must hold a model with eigenvalues" in capsys.readouterr().err


def test_embeddings_have_the_type_of_the_points_and_of_rounding_their_rows(tmp_path, capsys):
    np.savez(tmp_path / "X.npz", X=X.astype(np.float32), y=np.arange(150) % 3)
    for method, rows in (("lanczos", 150), ("quantize", 150), ("round", 135)):
        options = ["--plot", str(tmp_path / "o.png")] if importlib.util.find_spec("matplotlib") else []
        assert kp.main([str(tmp_path / "X.npz"), "-k", "2", "--method", method, "-o", str(tmp_path / "o.npz"),
                        "--no-errors", *options]) == 0
        out = capsys.readouterr().out
        with np.load(tmp_path / "o.npz") as file:
            assert file["embedding"].dtype == np.float32 and file["embedding"].shape == (rows, 2)
            assert ("rows" in file) == (method == "round") == (rows < 150)
            if method == "round":
                assert np.array_equal(file["rows"], np.flatnonzero(np.arange(150) % 10))
        assert ("the embedding is the eigenvectors' own" in out) == (method != "lanczos")


def test_labels_of_another_length_are_said_to_be_left_out(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    np.savez(tmp_path / "X.npz", X=X, y=np.arange(149))
    assert kp.main([str(tmp_path / "X.npz"), "-k", "2", "--no-errors", "--plot", str(tmp_path / "o.png")]) == 0
    assert "y of" in (err := capsys.readouterr().err) and "holds 149 values for 150 points, and is not used" in err


def test_arrays_beside_the_points_that_are_no_labels_are_left_alone(tmp_path, capsys):
    np.savez(tmp_path / "X.npz", X=X, y=np.array([{}, None], object))
    assert kp.main([str(tmp_path / "X.npz"), "-k", "2", "--no-errors"]) == 0


@pytest.mark.parametrize("content, text", [
    (b"1.0,2.O\n3,4\n", "line 1, column 2 holds '2.O'"), (b"NA,2\n3,4\n", "line 1, column 1 holds 'NA'"),
    (b"1,\n2,3\n", "line 1, column 2 holds ''"), (b"a,b\n1,2\n3,x\n", "line 3, column 2 holds 'x'"),
    (b"a,b\n1,2\n\n3,4,5\n", "line 4 holds 3 numbers, and the lines before it 2"),
    (b"1,2\n3\n", "line 2 holds 1 numbers")])
def test_a_first_line_with_one_cell_that_is_no_number_was_dropped_as_a_header(tmp_path, capsys, content, text):
    assert kp.main([write(tmp_path / "a.csv", content), "-k", "1", "--no-errors"]) == 2
    assert text in capsys.readouterr().err


def command(*arguments, cwd=None, **more):
    """The command in a process of its own."""
    line = [sys.executable, "-m", "kpcasketch", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(kp.__file__), "KPCASKETCH_QUIET": "1",
                   **more.pop("env", {})}
    return subprocess.Popen(line, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **more)


def ended(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@pytest.mark.skipif(os.name != "posix", reason="closes descriptors")
@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_closed_streams_ended_in_a_traceback_or_lost_results(points, tmp_path, closed):
    process = command(points, "-k", "2", "--no-errors", "-o", tmp_path / "out.npz",
                      preexec_fn=lambda: [os.close(number) for number in closed])
    code, _, err = ended(process)
    assert code == 0 and "Traceback" not in err
    with np.load(tmp_path / "out.npz") as written:
        assert written["embedding"].shape == (150, 2)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_results_were_lost_with_the_reader_of_the_terminal(points, tmp_path):
    with open("/dev/full", "w") as full:
        process = subprocess.Popen([sys.executable, "-m", "kpcasketch", points, "-k", "2", "--no-errors", "-o",
                                    str(tmp_path / "out.npz")],
                                   env={**os.environ, "PYTHONPATH": os.path.dirname(kp.__file__)}, stdout=full,
                                   stderr=subprocess.PIPE)
        process.communicate(timeout=300)
    assert process.returncode == 1 and np.load(tmp_path / "out.npz")["embedding"].shape == (150, 2)


def test_a_file_name_beyond_ascii_refused_all_work(tmp_path):
    np.save(tmp_path / "\u00e9.npy", X)
    code, out, err = ended(command(tmp_path / "\u00e9.npy", "-k", "2", "--no-errors",
                                   env={"PYTHONIOENCODING": "ascii"}))
    assert code == 0 and "\\xe9.npy" in out and not err


def test_names_of_results_that_cannot_be_are_refused(points, tmp_path, capsys):
    assert kp.main([points, "-k", "2", "-o", str(tmp_path / "out.csv")]) == 2
    assert "-o must name a .npz or .npy file" in capsys.readouterr().err and len(os.listdir(tmp_path)) == 1
    (tmp_path / "empty").mkdir()
    pytest.importorskip("distributed")
    assert kp.main([str(tmp_path / "empty"), "-k", "2"]) == 2
    assert "holds no .npy file, and is no Zarr store" in capsys.readouterr().err


def test_files_that_are_damaged_or_too_large_to_unpack_are_refused_by_name(tmp_path, monkeypatch, capsys):
    good = tmp_path / "good.npz"
    kp.save(good, kp.kpca(X, kp.gaussian(1.0), 2))
    content, path = good.read_bytes(), tmp_path / "bad.npz"
    central = content.index(b"PK\x01\x02")
    damaged = {"encrypted": (central + 8, b"\x01"), "method": (central + 10, b"\x63")}
    for name, (place, value) in damaged.items():
        broken = bytearray(content)
        for begin in range(len(broken)):
            if broken[begin:begin + 4] == b"PK\x01\x02":
                broken[begin + place - central:begin + place - central + len(value)] = value
        path.write_bytes(bytes(broken))
        with pytest.raises(ValueError, match="load: .*bad.npz must"):
            kp.load(path)
        assert kp.main([str(path), "-k", "1", "--key", "coef"]) == 2, name
        assert "bad.npz" in capsys.readouterr().err
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(huge, {"descr": "<f8", "fortran_order": False, "shape": (2 ** 40, 1)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", huge.getvalue() + b"0" * 800)
    assert kp.main([str(path), "-k", "1"]) == 2 and "cannot read" in capsys.readouterr().err
    with monkeypatch.context() as patch:
        patch.setattr(kp, "_PHYSICAL_MEMORY", 500)
        with pytest.raises(ValueError, match="load: .*good.npz must"):
            kp.load(good)
        assert kp.main([str(good), "-k", "1", "--key", "coef"]) == 2
        assert ".npy would take" in capsys.readouterr().err
    for field in ("count", "address"):
        model = kp.kpca(X, kp.gaussian(1.0), 2) if field == "address" else kp.reservoir_start(2, 2)
        kp.save(good, model)
        with np.load(good) as arrays:
            arrays = dict(arrays)
        name = "kernel.address" if field == "address" else field
        np.savez(path, **{**arrays, name: 1e300})
        with pytest.raises(ValueError, match=f"load: .*{name}"):
            kp.load(path)


def test_whatever_is_a_tuple_of_this_module_is_saved_or_refused_by_the_field(tmp_path):
    points = kp.LandmarkPoints(X[:3], np.arange(3), np.ones(3), 7)
    advice = kp.Advice("rls", 3.0, 5, 0.1, 0.2, True, "a reason")
    for model in (points, advice, kp.Difference(np.eye(2), kp.LowRank(X)), kp.center(np.eye(3))):
        kp.save(tmp_path / "model.npz", model)
        again = kp.load(tmp_path / "model.npz")
        assert type(again) is type(model)
        assert all(np.array_equal(a, b) for a, b in zip(again, model) if not isinstance(a, tuple))
    for model, field in ((points._replace(weights=None), "weights"),
                         (kp.kpca(X, kp.gaussian(1.0), 1)._replace(kernel=None), "kernel"),
                         (kp.reservoir_start(2, 2)._replace(count="many"), "count")):
        with pytest.raises(ValueError, match=f"save: model.{field} must be numbers"):
            kp.save(tmp_path / "none.npz", model)
    assert not (tmp_path / "none.npz").exists()


def test_what_a_killed_process_has_begun_to_write_is_cleared_away(tmp_path):
    model, place = kp.gaussian(1.0), tmp_path / "model.npz"
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True,
                          text=True).stdout.strip()
    left = tmp_path / f"model.npz.{platform.node()}-{dead}-0.part"
    ours = tmp_path / f"model.npz.{platform.node()}-{os.getpid()}-77.part"
    for part in (left, ours):
        part.write_bytes(b"begun")
    kp.save(place, model)
    assert sorted(os.listdir(tmp_path)) == sorted([place.name, ours.name]) and kp.load(place).gamma == 0.5


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    place = tmp_path / "model.npz"
    kp.save(place, kp.gaussian(1.0))
    place.chmod(0o640)
    os.symlink(place, tmp_path / "link.npz")
    kp.save(tmp_path / "link.npz", kp.gaussian(2.0))
    assert kp.load(place).gamma == 0.125 and os.path.islink(tmp_path / "link.npz")
    assert place.stat().st_mode & 0o777 == 0o640

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    for name in ("fsync", "posix_fallocate", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(OSError,
                               match="No space left on device, the file that was there is as it was.*model.npz"):
                kp.save(place, kp.gaussian(3.0))
            with pytest.raises(OSError, match="nothing is left of it.*new.npz"):
                kp.save(tmp_path / "new.npz", kp.gaussian(3.0))
        assert kp.load(place).gamma == 0.125 and sorted(os.listdir(tmp_path)) == ["link.npz", "model.npz"]


def test_a_pilot_took_a_tenth_off_the_norm_of_flat_noise(rng):
    # five steps of orthogonal iteration found 89 to 91 % of it
    pilot = kp._Pilot(rng.standard_normal((1500, 3)), kp.gaussian(1.0), 5, 0, 1e-2)
    A = rng.standard_normal((1500, 1500))
    A = A + A.T
    assert 0.96 * np.linalg.norm(A, 2) < pilot.sizes(lambda V: A @ V)[0] <= np.linalg.norm(A, 2) * (1 + 1e-9)
    few = kp._Pilot(rng.standard_normal((40, 3)), kp.gaussian(1.0), 5, 0, 1e-2)
    assert few.norm == pytest.approx(np.linalg.norm(few.K, 2))


def test_advice_judged_one_method_by_another_limit():
    # bits were allowed the whole error, all others .8 of it
    points = np.random.default_rng(0).standard_normal((1200, 2))
    bits = next(row for row in kp.advise(points, kp.gaussian(3.0), 0.9) if row.method == "quantize")
    assert bits.works
    for share, works in ((0.75, True), (0.85, False)):
        row = next(row for row in kp.advise(points, kp.gaussian(3.0), bits.error / share) if row.method == "quantize")
        assert row.works == works, row


def test_more_points_than_memory_holds_the_matrix_of_are_refused_before_the_work(points, monkeypatch, capsys):
    monkeypatch.setattr(kp, "_PHYSICAL_MEMORY", 100_000)
    for method in ("lanczos", "orthogonal", "sample"):
        assert kp.main([points, "-k", "2", "--method", method] + ["-s", "1.5"] * (method == "sample")) == 2
        assert f"--method {method} would take 1" in capsys.readouterr().err


def test_a_model_was_overwritten_by_what_it_was_applied_to(points, tmp_path, capsys):
    model = tmp_path / "model.npz"
    kp.save(model, kp.kpca(X, kp.gaussian(1.0), 2))
    before = model.read_bytes()
    assert kp.main(["--apply", str(model), points, "-o", str(tmp_path / "model")]) == 2
    assert "is named twice" in capsys.readouterr().err and model.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="pipes and protection")
def test_pipes_and_protected_files(tmp_path):
    code = "import sys, kpcasketch as kp; kp._write_arrays('/dev/stdout', {'a': [1.0, 2.0]})"
    run = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE,
                         env={**os.environ, "PYTHONPATH": os.path.dirname(kp.__file__)})
    assert run.returncode == 0 and np.load(io.BytesIO(run.stdout))["a"].tolist() == [1.0, 2.0]
    if os.getuid() > 0:                                # nothing is protected from root
        kp.save(tmp_path / "m.npz", kp.gaussian(1.0))
        (tmp_path / "m.npz").chmod(0o444)
        with pytest.raises(PermissionError, match="as it was"):
            kp.save(tmp_path / "m.npz", kp.gaussian(2.0))


@pytest.mark.parametrize("content, text", [(b"nan,nan\n1,2\n3,4\n", "NaN or infinity, first in row 0 (of 0 to 2)"),
                                           (b"1;2\n3;4\n", "parted by commas, and not by ';'"),
                                           (b"inf,-inf\n1,2\n3,4\n", "NaN or infinity"),
                                           (b'1,2\n"3,4\n' + b"5,6\n" * 40_000, "cannot read")])
def test_rows_of_no_finite_number_and_fields_without_end_are_refused(tmp_path, capsys, content, text):
    assert kp.main([write(tmp_path / "a.csv", content), "-k", "1", "--no-errors"]) == 2
    error = capsys.readouterr().err
    assert text in error and error.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="terminals")
def test_a_lost_terminal_lost_the_steps_since_the_last_state(tmp_path):
    import pty
    np.save(tmp_path / "X.npy", np.random.default_rng(0).standard_normal((5000, 3)))
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "kpcasketch", str(tmp_path / "X.npy"), "-k", "2", "--method",
                                "dsgd", "--steps", "1000000",
                                "--features", "300", "--sigma", "2", "--state",
                                str(tmp_path / "st.npz")], stdin=theirs, stdout=theirs, stderr=theirs,
                               start_new_session=True, env={**os.environ, "PYTHONPATH": os.path.dirname(kp.__file__)},
                               # under nohup it is ignored
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    os.close(theirs)
    try:
        seen = b""
        while b" s left" not in seen:
            seen += os.read(ours, 4096)
        os.close(ours)                                 # errors of writing, whether a signal comes or not
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=60) == 129 and kp.load(tmp_path / "st.npz").step > 0
    finally:
        process.kill()


def test_a_former_process_of_the_same_number_stopped_all_writing(tmp_path, monkeypatch):
    tokens = iter(["00", "01", "02"])
    monkeypatch.setattr(kp.secrets, "token_hex", lambda size: next(tokens))
    (tmp_path / f"m.npz.{platform.node()}-{os.getpid()}-0.part").write_bytes(b"of a container before")
    kp.save(tmp_path / "m.npz", kp.gaussian(1.0))
    assert kp.load(tmp_path / "m.npz").gamma == 0.5


def test_an_embedding_alone_left_no_model_behind(points, tmp_path, capsys):
    # of -o embedding.npy no model was to be had
    out, model, features = (str(tmp_path / name) for name in ("embedding.npy", "model.npz", "features.npy"))
    for command in (["embed", points, "-k", "2"], ["embed", points, "-k", "2", "--method", "project", "--standardize"],
                    ["stream", points, "-k", "2", "-m", "100", "--ell", "20", "--standardize"]):
        assert kp.main([*command, "-o", out, "--model", model]) == 0
        assert f"wrote {model} (the model of " in capsys.readouterr().out
        assert kp.main(["apply", model, points, "-o", features]) == 0
        assert np.abs(np.load(features) - np.load(out)).max() < 1e-8
    assert kp.main(["embed", points, "--model", str(tmp_path / "alone.npz"), "-k", "2"]) == 0
    assert kp.load(tmp_path / "alone.npz").values.size == 2
    capsys.readouterr()
    for wrong, word in (([points, "--model", str(tmp_path / "m.npy")], "--model must name a .npz file"),
                        ([points, "--model", model, "-o", model], "is named twice")):
        assert kp.main(["embed", *wrong]) == 2 and word in capsys.readouterr().err


@pytest.mark.parametrize("kernel, more", [("gaussian", []), ("laplacian", []), ("matern", ["--nu", "2.5"]),
                                          ("rational_quadratic", ["--alpha", "3"]), ("cauchy", [])])
def test_a_stream_that_goes_on_did_not_say_its_bandwidth(points, tmp_path, capsys, kernel, more):
    command = ["stream", points, "-k", "2", "-m", "20", "--ell", "4", "--kernel", kernel, *more, "--no-errors",
               "--state", str(tmp_path / "state.npz")]
    assert kp.main([*command, "--sigma", "1.75"]) == 0 and kp.main(command) == 0
    first, second = [line for line in capsys.readouterr().out.splitlines() if line.startswith(points)]
    assert ", sigma 1.75;" in first and ", sigma 1.75;" in second


def test_columns_that_are_not_judged_say_why(points, tmp_path, monkeypatch, capsys):
    command = ["stream", points, "-k", "2", "-m", "20", "--ell", "4", "--sigma", "2"]
    assert kp.main(command) == 0 and "not compared" not in capsys.readouterr().out
    assert kp.main([*command, "--no-errors"]) == 0 and "as --no-errors says" in capsys.readouterr().out
    monkeypatch.setattr(kp, "_DENSE_POINTS", 100)
    assert kp.main(command) == 0 and "found for up to 100 points" in capsys.readouterr().out


def test_an_interrupt_while_results_were_written_did_not_say_what_goes_on(points, tmp_path, monkeypatch, capsys):
    def interrupted(rows, model):
        raise KeyboardInterrupt
    state, out = str(tmp_path / "state.npz"), tmp_path / "out.npz"
    command = ["stream", points, "-k", "2", "-m", "20", "--ell", "4", "--sigma", "2", "--no-errors", "-o", str(out)]
    for more, text in ((["--state", state], f"{state} holds all points: the same command writes them"),
                       ([], "--state would keep what was learned")):
        with monkeypatch.context() as patch:
            patch.setattr(kp, "skpca_transform", interrupted)
            patch.setattr(kp._FileSketch, "compile", lambda stream: None)
            assert kp.main([*command, *more]) == 130 and text in capsys.readouterr().err
        assert not out.exists()
    assert kp.main([*command, "--state", state]) == 0 and out.exists()


def test_components_below_what_was_lost_did_not_say_so(tmp_path, capsys):
    # outliers at the end of a stream passed for known: the last components were fitted to them alone
    rng = np.random.default_rng(0)
    np.save(tmp_path / "X.npy", np.concatenate([0.1 * rng.standard_normal((3000, 4)), 9 * rng.standard_normal((4, 4))]))
    command = ["stream", str(tmp_path / "X.npy"), "-m", "300", "--ell", "12", "--sigma", "1", "--no-errors", "-k"]
    assert kp.main([*command, "8"]) == 0
    told = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("components "))
    clear = int(told.split("-k ")[1].split(",")[0])
    assert 1 <= clear < 8 and told.startswith(f"components {clear + 1} to 8 are below")
    assert kp.main([*command, str(clear)]) == 0 and "\ncomponents " not in capsys.readouterr().out


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_stored_rows_are_read_whatever_the_header_and_not_beyond_the_end(tmp_path, version):
    path, held = tmp_path / "X.npy", np.arange(60, dtype=np.float32).reshape(20, 3)
    with open(path, "wb") as file:
        np.lib.format.write_array(file, held, version)
    stored = kp._load_points(str(path), None, mapped=True)
    assert np.array_equal(stored[:], held) and np.array_equal(stored[3:17:5], held[3:17:5])
    assert isinstance(stored, kp._Stored) == (version != (3, 0))       # which is for names of fields
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 1)
    with pytest.raises(kp._Refused, match="cannot read"):
        kp._load_points(str(path), None, mapped=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of addresses, and files with holes")
def test_a_file_larger_than_what_a_process_may_map_goes_through(tmp_path):
    # "cannot read huge.npy: Cannot allocate memory", as all of it was mapped to read its header
    with open(tmp_path / "X.npy", "wb") as file:                       # 8 GB of nothing, most of it a hole
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (2**27, 16)})
        file.truncate(file.tell() + 2**33)
    code = ("import resource; resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32)); import kpcasketch as kp\n"
            f"X = kp._load_points({str(tmp_path / 'X.npy')!r}, None, mapped=True); print(X.shape, X[2**27 - 5:].sum())")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                         cwd=pathlib.Path(kp.__file__).parent)
    assert run.stdout.strip() == "(134217728, 16) 0.0", run.stderr


def test_a_model_in_the_place_of_points_is_told(points, tmp_path, capsys):
    model, state = str(tmp_path / "model.npz"), str(tmp_path / "state.npz")
    assert kp.main(["stream", points, "-k", "2", "-m", "20", "--ell", "4", "--sigma", "2", "--no-errors", "--model",
                    model, "--state", state]) == 0
    for path in (model, state):
        assert kp.main(["apply", model, path, "-o", "x.npy"]) == 2
        assert f"{path} holds a model or a state, and no points" in capsys.readouterr().err
    with pytest.raises(ValueError, match="must be an Expansion, got Subspace, whose features skpca_transform gives"):
        kp.expand(X, kp.load(model))


def test_arrays_of_any_name_are_points(tmp_path, capsys):
    np.savez(tmp_path / "m.npz", model=X)
    np.savez(tmp_path / "c.npz", data=X, **{"class": X[:, 0]})
    assert np.array_equal(kp._load_points(str(tmp_path / "m.npz"), None), X)
    with pytest.raises(kp._Refused, match="holds the arrays data, class"):
        kp._load_points(str(tmp_path / "c.npz"), None)


@pytest.mark.parametrize("shape", [(-3, 4), (-3, -4)])
def test_a_header_of_negative_sizes_was_taken(tmp_path, shape):
    with open(tmp_path / "X.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        file.write(bytes(96))
    with pytest.raises(kp._Refused):
        kp._load_points(str(tmp_path / "X.npy"), None, mapped=True)


def test_points_of_few_kinds_have_no_components_that_follow_the_last(tmp_path, capsys):
    np.save(tmp_path / "X.npy", X[np.arange(400) % 5])
    command = ["stream", str(tmp_path / "X.npy"), "-m", "200", "--ell", "20", "-k", "10", "--sigma", "1", "--no-errors"]
    assert kp.main(command) == 0 and "\ncomponents " not in capsys.readouterr().out


def test_advice_for_kernels_of_huge_values(rng):
    # values looked up were refused by `precomputed`, which nobody had called
    assert kp.advise(1e40 * (1 + rng.random((300, 3))), kp.polynomial(3, 1.0, 1.0), 0.05)[0].works


def test_residuals_come_with_features(points, tmp_path, capsys):
    model, state, out = (str(tmp_path / name) for name in ("model.npz", "state.npz", "out.npz"))
    far = np.vstack([X[:5], [[50.0, 50.0, 50.0]]])
    np.save(tmp_path / "far.npy", far)
    arguments = ["stream", points, "-k", "2", "-m", "100", "--ell", "20", "--sigma", "2"]
    assert kp.main([*arguments, "--state", state, "--model", model, "--residual", "-o", out]) == 0
    subspace = kp.load(model)
    with np.load(out) as written:
        assert np.allclose(written["off"], kp.skpca_residual(X, subspace)) and written["embedding"].shape == (150, 2)
        limit = f"of 99 % up to {np.sort(written['off'])[148]:.3g}, "  # two of 150 are further off
    assert limit in capsys.readouterr().out
    assert kp.main(["apply", model, str(tmp_path / "far.npy"), "--residual", "-o", str(tmp_path / "f.npy")]) == 0
    found = np.load(tmp_path / "f.npy")
    assert np.allclose(found, np.column_stack([kp.skpca_transform(far, subspace), kp.skpca_residual(far, subspace)]))
    # of exact components, by the distance in feature space: 1 off all points, 0 where every direction is there
    assert kp.main(["embed", points, "-k", "150", "--sigma", "2", "--model", model]) == 0
    assert kp.main(["apply", model, str(tmp_path / "far.npy"), "--residual", "-o", out]) == 0
    with np.load(out) as written:
        assert (written["off"][:5] < 1e-3).all() and abs(written["off"][5] - 1.0) < 1e-12
    # components of a sketch are not orthonormal: their squares alone were 0.2 off
    command = ["embed", points, "-k", "3", "--sigma", "2", "--method", "quantize", "--no-errors"]
    assert kp.main([*command, "--model", model]) == 0
    assert kp.main(["apply", model, points, "--residual", "-o", out]) == 0
    sketch, K = kp.load(model), naive.gaussian(X, X, 2.0)
    e = K @ sketch.coef
    assert np.allclose(np.load(out)["off"] ** 2, 1 - (e * np.linalg.solve(sketch.coef.T @ e, e.T).T).sum(1), atol=1e-8)
    capsys.readouterr()
    assert kp.main(["apply", model, points, "--residual", "--plot", str(tmp_path / "p.png")]) == 2
    assert "--residual needs -o" in capsys.readouterr().err
    assert kp.main(["embed", points, "-k", "2", "--center", "--model", model]) == 0
    for wrong, word in ((["apply", model, points, "--residual", "-o", out], "without --center"),
                        (["stream", points, "--method", "dsgd", "--residual"], "--residual is for the method skpca"),
                        (["apply", state, points, "-o", out], f"stream FILE --state {state} --model model.npz")):
        assert kp.main(wrong) == 2 and word in capsys.readouterr().err


def test_columns_in_different_units_get_a_word(tmp_path, capsys):
    np.save(tmp_path / "units.npy", X * [1.0, 1000.0, 1.0])
    command = ["embed", str(tmp_path / "units.npy"), "-k", "2", "--no-errors"]
    assert kp.main(command) == 0
    error = capsys.readouterr().err
    assert "follows column 1" in error and "--standardize" in error
    assert kp.main([*command, "--standardize"]) == 0 and "follows" not in capsys.readouterr().err


@pytest.mark.slow
def test_titles_were_cut_at_their_left_end(points, tmp_path, monkeypatch):
    figures = pytest.importorskip("matplotlib.figure")
    drawn, save = [], figures.Figure.savefig
    monkeypatch.setattr(figures.Figure, "savefig", lambda self, *a, **b: drawn.append(self) or save(self, *a, **b))
    longer = tmp_path / ("california_housing_of_all_districts_" + "x" * 10 + ".npy")
    shutil.copy(points, longer)
    assert kp.main(["embed", str(longer), "-k", "2", "--center", "--plot", str(tmp_path / "p.png"), "--no-errors"]) == 0
    figure = drawn[0]
    box = figure._suptitle.get_window_extent(figure._get_renderer())
    assert longer.name in figure._suptitle.get_text() and box.x0 >= 0 and box.x1 <= figure.bbox.width


def test_rows_of_a_stored_file_are_those_of_the_array(tmp_path):
    for kind in (np.float64, np.float32, np.int16, ">f4"):
        np.save(tmp_path / "X.npy", (100 * X).astype(kind))
        whole, stored = np.load(tmp_path / "X.npy"), kp._load_points(str(tmp_path / "X.npy"), None, True)
        for rows in (slice(None), slice(3, 9), slice(140, 999), slice(9, 3), slice(None, None, 7), 0, -1, np.int64(5),
                     np.array([5, 2, 2, 149])):
            assert np.array_equal(stored[rows], whole[rows]) and stored[rows].dtype == whole.dtype
        assert stored.shape == whole.shape and stored.dtype == whole.dtype
    with open(tmp_path / "X.npy", "r+b") as file:      # a mapped file that is cut ended the process
        file.truncate(300)
    with pytest.raises(OSError, match="X.npy has become shorter"):
        stored[100:120]


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_a_file_counted_as_memory_of_the_process(tmp_path):
    # a file of 4 GB showed as 4.3 GB
    np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (100_000, 1000)).flush()       # 800 MB of holes
    words = ["stream", str(tmp_path / "X.npy"), "-m", "20", "--ell", "5", "-k", "2", "--sigma", "1", "--no-errors",
             "-o", str(tmp_path / "out.npy")]
    code = (f"import kpcasketch as kp\nstatus = kp.main({words!r})\n"
            "print(status, next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                         cwd=pathlib.Path(kp.__file__).parent, env={**os.environ, "KPCASKETCH_QUIET": "1"})
    status, peak = run.stdout.split()[-2:]
    assert status == "0" and int(peak) < 700_000, run.stderr
