# SPDX-License-Identifier: BSD-3-Clause
"""Signatures, files of results, and what a new kernel takes."""

import inspect
import pathlib
import pickle
import re

import numpy as np
import pytest

import kpcasketch as kp
from kpcasketch_tests.test_compilation import run

FILE = pathlib.Path(kp.__file__)
X = np.random.default_rng(0).standard_normal((30, 3))
g = kp.gaussian(2.0)


def test_seeds_are_0_unless_given():
    for name in kp.__all__:
        parameters = {} if inspect.isclass(getattr(kp, name)) else inspect.signature(getattr(kp, name)).parameters
        assert "seed" not in parameters or parameters["seed"].default == 0, name


def test_warm_up_calls_every_function():
    functions = {name for name in kp.__all__ if callable(getattr(kp, name)) and not inspect.isclass(getattr(kp, name))}
    others = {name for name in functions if name.startswith("dask_")} | {"advise", "load", "main", "save", "warm_up"}
    assert {function.__name__ for function, _ in kp._calls(X)} == functions - others


@pytest.mark.parametrize("make", [
    lambda: kp.scaled(kp.matern(1.5, 2.0), 3.0), lambda: kp.kpca(X, g, 2), lambda: kp.nystrom_map(X, np.arange(5), g),
    lambda: kp.quantize_gram(X, g), lambda: kp.sample_gram(X, g, 2.0), lambda: kp.uniform_landmarks(9, 3),
    lambda: kp.Implicit(X, g), lambda: kp.Difference(X @ X.T, kp.LowRank(X)), lambda: kp.block_lanczos(X @ X.T, 2),
    lambda: kp.kernel_kmeans(X, 2),
], ids="Kernel Expansion NystromMap Bits CSR Landmarks Implicit Difference Eigen Clustering".split())
def test_what_is_saved_is_loaded(make, tmp_path):
    model = make()

    def equal(a, b):
        return type(a) is type(b) and (all(map(equal, a, b)) if isinstance(a, tuple) else np.array_equal(a, b))

    kp.save(tmp_path / "model.npz", model)
    assert equal(kp.load(tmp_path / "model.npz"), model) and equal(pickle.loads(pickle.dumps(model)), model)
    plain = {name: value for name, value in model._asdict().items() if not isinstance(value, tuple)}
    np.savez(tmp_path / "fields.npz", **plain)
    with np.load(tmp_path / "fields.npz", allow_pickle=False) as fields:
        assert all(np.array_equal(fields[name], value) for name, value in plain.items())


def test_files_that_save_did_not_write_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", X=X)
    with pytest.raises(ValueError, match="^load: .* must be a file that save has written"):
        kp.load(tmp_path / "other.npz")
    with pytest.raises(ValueError, match="^save: model must be a tuple of this module, got ndarray"):
        kp.save(tmp_path / "x.npz", X)


KINDS = re.search(r"\n (_PRECOMPUTED.*)\) = range", FILE.read_text())[1].split(", ")
NEW_KERNEL = [                                         # the edits that a kernel takes: exp(-2 gamma r^2)
    (re.search(r"\n _PRECOMPUTED.*\) = range\(\d+\)\n", FILE.read_text())[0], "\n " + ", ".join(
        [*KINDS, f"_TWIN) = range({len(kp._KIND_NAMES) + 1})\n"])),
    (f'"{kp._KIND_NAMES[-1]}")', f'"{kp._KIND_NAMES[-1]}", "twin")'),
    ("def linear(", "def twin(sigma):\n    return Kernel(_TWIN, gamma=0.5 / (sigma * sigma))\n\n\ndef linear("),
    ("        elif kernel.kind == _POLYNOMIAL:\n            for j in range(_BLOCK):\n                bases[j]",
     "        elif kernel.kind == _TWIN:\n            for j in range(_BLOCK):\n"
     "                values[j] = _exp((one + one) * -gamma * values[j])\n"
     "        elif kernel.kind == _POLYNOMIAL:\n            for j in range(_BLOCK):\n                bases[j]")]
ITS_LAWS = [
    ("_KINDS_WITH_LAWS = (", "_KINDS_WITH_LAWS = (_TWIN, "),
    ("        return math.sqrt(2.0 * kernel.gamma)\n", "        return math.sqrt(2.0 * kernel.gamma)\n"
     "    if kernel.kind == _TWIN:\n        return math.sqrt(4.0 * kernel.gamma)\n"),
    ("        return -math.expm1(-a * r)\n", "        return -math.expm1(-a * r)\n"
     "    if kernel.kind == _TWIN:\n        return -math.expm1(-2.0 * a * r)\n"),
    ("    return {_GAUSSIAN: ", "    return {_TWIN: math.sqrt(4.0 * gamma / math.e), _GAUSSIAN: ")]
IN_COMMANDS = [('    "linear": (linear, {}),', '    "linear": (linear, {}),\n    "twin": (twin, {"sigma": "median"}),')]
TRIED = """
import numpy as np, kpcasketch as kp
X = np.random.default_rng(0).standard_normal((40, 3))
new, same = kp.twin(2.0), kp.gaussian(2.0 / np.sqrt(2.0))
assert np.abs(kp.gram(X, X, new) - kp.gram(X, X, same)).max() < 1e-15
def found(kernel):
    bounds = kp.shadow_bounds(kernel, 0.1)
    return [kp.fourier_features(X, kp.fourier_features_map(kernel, 3, 8)), np.array(bounds),
            np.array(kp.shadow_projection_bound(kernel, 1e-3, np.array([0.6, 0.2]), 1))]
try:
    print(max(np.abs(a - b).max() for a, b in zip(found(new), found(same))) < 1e-12)
except ValueError as error:
    print(error)
try:
    options = kp._parser().parse_args(["embed", "X.npy", "--kernel", "twin", "--sigma", "2"])
    print(kp._chosen_kernel(options, kp._Points(X))[:6] == new[:6])
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("edits, laws, command", [
    (NEW_KERNEL, "shadow_bounds: kernel must be shift-invariant", "--kernel: invalid choice: 'twin'"),
    (NEW_KERNEL + ITS_LAWS + IN_COMMANDS, "True", "True")], ids=["values alone", "in full"])
def test_a_new_kernel_got_the_laws_of_others_without_a_word(edits, laws, command, tmp_path):
    source = FILE.read_text()
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    (tmp_path / "kpcasketch.py").write_text(source)
    lines = run(TRIED, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0].splitlines()
    assert lines[0].startswith(laws) and lines[1].startswith(command)


WRITES = """
import os, sys
import numba, numpy, llvmlite.binding

seen = []

def watch(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        seen.append((event, arguments[0]))
    elif event in ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.utime", "shutil.rmtree", "tempfile.mkstemp"):
        seen.append((event, *arguments[:1]))

sys.dont_write_bytecode = True
sys.addaudithook(watch)
import kpcasketch as kp
print(seen)
"""


@pytest.mark.slow
def test_importing_made_458_directories_and_files(tmp_path):
    assert run(WRITES, NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0] == "[]\n"
