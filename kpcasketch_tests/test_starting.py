# SPDX-License-Identifier: BSD-3-Clause
"""What a first call costs, what is said meanwhile, and where compiled code is kept."""

import inspect
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from numba.core import event

import kpcasketch as kp
from kpcasketch_tests.test_file import PYTHON_ONLY

FILE = pathlib.Path(kp.__file__)
X = np.random.default_rng(0).standard_normal((30, 3))
g = kp.gaussian(2.0)

COUNT = """
import numpy as np, kpcasketch as kp
from numba.core import event
X = np.random.default_rng(0).standard_normal((2000, 8))
with event.install_recorder("numba:compile") as recorder:
    {call}
print('units', sum(item.is_end for _, item in recorder.buffer))
"""


def run(code, folder=FILE.parent, **environment):
    settings = {**os.environ, "NUMBA_CACHE_DIR": "", "KPCASKETCH_QUIET": "1", **environment}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, timeout=1200,
                            env={name: value for name, value in settings.items() if value})
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


# What a caller waits for is the number of units, which is the same on every machine; counted on after each call.
@pytest.mark.slow
def test_a_first_call_compiles_few_units(tmp_path):
    calls = [("kp.gram(X, X, kp.gaussian(2.0))", 35), ("kp.kpca(X, kp.gaussian(3.0), 5, 0)", 100),
             ("assert kp.main(['demo', '-k', '2', '--method', 'lanczos']) == 0", 136),
             ("kp.recursive_rls_accelerated(X, kp.gaussian(3.0), 100, 0)", 177)]
    code = "".join(COUNT.format(call=call) for call, _ in calls)
    lines = run(code, NUMBA_CACHE_DIR=str(tmp_path))[0].splitlines()
    counts = np.cumsum([int(line.split()[1]) for line in lines if line.startswith("units ")])
    assert len(counts) == len(calls) and (counts <= [limit for _, limit in calls]).all(), counts


def test_arguments_in_other_forms_compile_nothing_new(tmp_path):
    whole = np.arange(90.0).reshape(30, 3) % 7
    read_only = whole.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "X.npy", whole)
    forms = [whole.astype(int), np.asfortranarray(whole), read_only, np.load(tmp_path / "X.npy", mmap_mode="r"),
             whole.tolist(),
             whole.astype(np.float16), whole.astype(">f8"), np.repeat(whole, 2, axis=0)[::2]]
    calls = [lambda X, k, s, seed: kp.gram(X, X, kp.gaussian(s)),
             lambda X, k, s, seed: kp.kpca(X, kp.gaussian(s), k, seed).values,
             lambda X, k, s, seed: kp.quantize_gram(X, kp.laplacian(s), seed).words,
             lambda X, k, s, seed: kp.sample_gram(X, kp.gaussian(s), s, seed).data,
             lambda X, k, s, seed: kp.recursive_rls_practical(X, kp.gaussian(s), k, seed).indices,
             lambda X, k, s, seed: kp.matmat(kp.LowRank(X), np.ones((30, 1))),
             lambda X, k, s, seed: kp.median_bandwidth(X, seed)]
    expected = [call(whole, 2, 2.0, 5) for call in calls]
    with event.install_recorder("numba:compile") as recorder:
        for form in forms:
            for call, result in zip(calls, expected):
                assert np.array_equal(call(form, np.int32(2), np.float32(2.0), np.int64(5)), result)
        for call in calls:
            call(whole, np.array(2), np.array(2.0), 2**63 + 5)
    assert not recorder.buffer
    assert not read_only.flags.writeable


def test_results_that_are_views_of_read_only_points_cannot_be_written_to():
    read_only = X.copy()
    read_only.flags.writeable = False
    points = kp.kpca(read_only, g, 2).points
    assert np.shares_memory(points, read_only) and not points.flags.writeable


def test_every_argument_has_a_kind():
    for name in kp.__all__:
        function = getattr(kp, name)
        if hasattr(function, "kinds"):
            body = getattr(function, "py_func", function)
            assert list(inspect.signature(function).parameters) == list(inspect.signature(body).parameters)
            assert set(function.kinds) == set(inspect.signature(function).parameters)
        else:
            assert inspect.isclass(function) or name in (*PYTHON_ONLY, "kernel_value", "features_of")


def test_seeds_are_0_unless_given():
    for name in kp.__all__:
        parameters = {} if inspect.isclass(getattr(kp, name)) else inspect.signature(getattr(kp, name)).parameters
        assert "seed" not in parameters or parameters["seed"].default == 0, name


def test_warm_up_calls_every_function():
    functions = {name for name in kp.__all__ if callable(getattr(kp, name)) and not inspect.isclass(getattr(kp, name))}
    plain = {name for name in PYTHON_ONLY if name.startswith("dask_")} | {"advise", "load", "main", "save", "warm_up"}
    assert {function.__name__ for function, _ in kp._calls(X)} == functions - plain


def test_public_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(kp.gram)) is kp.gram


GRAM = "import numpy as np, kpcasketch as kp; X = np.eye(5); print(kp.gram(X, X, kp.gaussian(1.0)).sum())"
FEW = GRAM.replace("gram(X, X,", "gram_diagonal(X,")    # 6 units


# An edit that doubles values of the linear kernel.
DOUBLED = "out[i] = kernel.scale * (kernel.gamma * square", "out[i] = 2.0 * kernel.scale * (kernel.gamma * square"


@pytest.mark.slow
def test_copies_share_compiled_code_and_an_edited_one_does_not(tmp_path):
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        shutil.copy(FILE, tmp_path / folder)
    home = {"XDG_CACHE_HOME": str(tmp_path / "home")}
    call = COUNT.format(call="print(kp.gram_diagonal(np.array([[3.0]]), kp.linear())[0])")
    first = run(call, tmp_path / "a", **home)[0].split()
    assert first[0] == "9.0" and int(first[2]) > 3
    (tmp_path / "b" / "kpcasketch.py").touch()
    assert run(call, tmp_path / "b", **home)[0].split() == [first[0], "units", "0"]
    edited = tmp_path / "c" / "kpcasketch.py"
    edited.write_text(edited.read_text().replace(*DOUBLED))
    assert run(call, tmp_path / "c", **home)[0].split()[0] == "18.0"
    for old in range(12):                              # more versions than are kept
        (tmp_path / "home" / "kpcasketch" / f"kpcasketch-{old:016}").mkdir()
    assert run(call, tmp_path / "a", **home)[0].split() == [first[0], "units", "0"]
    kept = list((tmp_path / "home" / "kpcasketch").iterdir())
    assert len(kept) <= kp._VERSIONS_KEPT


@pytest.mark.slow
def test_a_long_first_call_says_what_it_waits_for(tmp_path):
    # On a slow machine the check of a number took long enough to be announced, by a name that no caller knows.
    def words(patience):
        impatient = FEW.replace("X =", f"kp._PATIENCE = {patience}; X =")
        return run(impatient, KPCASKETCH_QUIET="", NUMBA_CACHE_DIR=str(tmp_path))[1].splitlines()

    begun = time.perf_counter()
    said = words(0.0)
    cold = time.perf_counter() - begun
    assert len(said) == 1 and "gram_diagonal is being compiled for this machine, once; it is kept in" in said[0]
    assert words(cold / 2) == []
    ours = ("import numba\n@numba.njit\ndef mine(X): return kp.gram_diagonal(X, kp.gaussian(1.0))\n"
            "print(mine(X).sum())")
    code = f"import numpy as np, kpcasketch as kp; X = np.eye(5); kp._PATIENCE = 0.0\n{ours}"
    said = run(code, KPCASKETCH_QUIET="", NUMBA_CACHE_DIR=str(tmp_path))[1].splitlines()
    assert "kpcasketch: gram_diagonal is being compiled into a function of yours" in said


@pytest.mark.slow
@pytest.mark.parametrize("code, environment", [(FEW, {"XDG_CACHE_HOME": "/dev/null/nowhere"}),
                                               (GRAM, {"KPCASKETCH_APART": "0"})], ids=["no home", "plain njit"])
def test_the_file_works_without_a_cache_of_its_own(code, environment, tmp_path):
    shutil.copy(FILE, tmp_path)
    assert float(run(code, tmp_path, **environment)[0]) == float(run(code)[0])


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


def test_fields_that_came_back_as_arrays_without_dimensions_compile_nothing(tmp_path):
    kernel = kp.Kernel(*[np.asarray(value) for value in g])
    eigen = kp.block_lanczos(X @ X.T, 2)
    expected = kp.expand(X, kp.kpca_from_eigen(X, g, eigen))
    with event.install_recorder("numba:compile") as recorder:
        again = kp.kpca_from_eigen(X, kernel, eigen._replace(iterations=np.asarray(eigen.iterations)))
        assert np.array_equal(kp.expand(X, again), expected) and not recorder.buffer


def test_files_that_save_did_not_write_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", X=X)
    with pytest.raises(ValueError, match="^load: .* must be a file that save has written"):
        kp.load(tmp_path / "other.npz")
    with pytest.raises(ValueError, match="^save: model must be a tuple of this module, got ndarray"):
        kp.save(tmp_path / "x.npz", X)


def test_a_kernel_given_to_a_model_that_carries_its_own_is_refused():
    with pytest.raises(TypeError, match="carries its kernel"):
        kp.expand(X, kp.kpca(X, g, 2), g)


NEW_KERNEL = [                                         # the edits that a kernel takes: exp(-2 gamma r^2)
    ("\n _PRECOMPUTED) = range(10)\n_LAST_KIND = _PRECOMPUTED\n",
     "\n _PRECOMPUTED, _TWIN) = range(11)\n_LAST_KIND = _TWIN\n"),
    ("@_public(glue=True)\ndef linear(", "@_public(glue=True, sigma=_bandwidth)\ndef twin(sigma):\n"
     "    return Kernel(_TWIN, 1.0, 0.5 / (sigma * sigma), 0.0, 0.0, 0, np.empty((0, 0)))\n\n\n"
     "@_public(glue=True)\ndef linear("),
    ("    elif kernel.kind == _POLYNOMIAL:\n        bases = np",
     "    elif kernel.kind == _TWIN:\n        for i in range(rows):\n            values = tile[i]\n"
     "            for j in range(_BLOCK):\n                values[j] = _exp(-(one + one) * gamma * values[j])\n"
     "    elif kernel.kind == _POLYNOMIAL:\n        bases = np")]
ITS_LAWS = [
    ("_KINDS_WITH_LAWS = (", "_KINDS_WITH_LAWS = (_TWIN, "),
    ("        return math.sqrt(2.0 * kernel.gamma)\n", "        return math.sqrt(2.0 * kernel.gamma)\n"
     "    if kernel.kind == _TWIN:\n        return math.sqrt(4.0 * kernel.gamma)\n"),
    ("        return -math.expm1(-u)\n", "        return -math.expm1(-u)\n"
     "    if kernel.kind == _TWIN:\n        return -math.expm1(-2.0 * u)\n"),
    ("        slope = math.sqrt(2.0 * gamma / math.e)\n", "        slope = math.sqrt(2.0 * gamma / math.e)\n"
     "    elif kernel.kind == _TWIN:\n        slope = math.sqrt(4.0 * gamma / math.e)\n")]
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


INTERRUPTED = """
import os, signal
import numpy as np, kpcasketch as kp

class Alarm(Exception):
    pass

def ring(*_):
    raise Alarm

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

rng = np.random.default_rng(0)
X, g = rng.standard_normal((1500, 3)), kp.gaussian(2.0)
state = kp.skpca_start(kp.fourier_features_map(g, 3, 50), 10)
calls = [lambda: kp.gram(X, X, g), lambda: kp.kpca(X, g, 3), lambda: kp.skpca_update(state, X),
         lambda: kp.fourier_features_map(g, 3, 50),
         lambda: kp.recursive_rls_practical(X, g, 30), lambda: kp.nystrom_kpca(X, kp.uniform_landmarks(1500, 30), g, 3)]
for call in calls:
    call()
signal.signal(signal.SIGALRM, ring)
for call in calls:
    before = resident()
    for _ in range(40):
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, 10.0 ** rng.uniform(-5, -2))
                while True:
                    call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Alarm:
            pass
    assert resident() < before + 200                   # a Gram matrix has 18 MB
signal.signal(signal.SIGALRM, signal.default_int_handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    while True:
        calls[1]()
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.slow
def test_ctrl_c_ended_the_process_or_kept_the_result_in_memory():
    for _ in range(2):                                 # loaded from disk the second time, if not the first
        out, _ = run(INTERRUPTED, NUMBA_CACHE_DIR=os.environ.get("NUMBA_CACHE_DIR", ""))
        assert out == "stopped\n"


@pytest.mark.slow
def test_warm_up_runs_every_function_in_both_precisions():
    quiet, numbers = kp.QUIET, (np.float64, np.float32)
    assert kp.warm_up() > 0 and kp.QUIET == quiet
    with event.install_recorder("numba:compile") as recorder:
        for dtype in numbers:
            points = X[:20].astype(dtype)
            kp.kpca(points, g, 2), kp.rpcholesky(points, g, 5), kp.skpca(points, g, 8, 2, 2)
    assert not recorder.buffer


def test_what_python_could_not_call_ended_the_process():
    # A function without a wrapper for Python's calls has no code at the address that numba would jump to.
    inner = [function for function in kp._declared if not function.python]
    assert len(inner) > 100 and len(kp._declared) - len(inner) > 50
    for function in inner:
        with pytest.raises(TypeError, match=f"^{function.__name__} is called from compiled code only"):
            function()


WRITES = """
import os, sys
import numba, numpy, llvmlite.binding
import argparse, csv, ctypes, glob, inspect, linecache, tokenize, uuid, zipfile, tempfile, signal, struct, shlex, fcntl

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
X = numpy.eye(3)
kp.gram_diagonal(X, kp.gaussian(1.0))
print(sum(event == "os.mkdir" for event, *_ in seen))
"""


@pytest.mark.slow
def test_importing_made_458_directories_and_files(tmp_path):
    out, _ = run(WRITES, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    at_import, directories = out.splitlines()
    assert at_import == "[]" and int(directories) <= 3


PASSED_ON = """
import os, signal, threading, time
import numpy as np, kpcasketch as kp

rng = np.random.default_rng(0)
X, g = rng.standard_normal((1500, 3)), kp.gaussian(2.0)
calls = [lambda: kp.gram(X, X, g), lambda: kp.kpca(X, g, 3), lambda: kp.median_bandwidth(X)]
for call in calls:
    call()
came = []

def note(number, frame):
    came.append(number)
    if number == signal.SIGUSR1:
        raise ZeroDivisionError("one of them raises")

handled = [signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM]
for number in handled:
    signal.signal(number, note)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
sent, raised = 0, 0
for _ in range(60):                                    # several in one call
    delay = 10.0 ** rng.uniform(-4, -1.7)
    def send():
        time.sleep(delay)
        for number in handled + [signal.SIGHUP]:
            os.kill(os.getpid(), number)
    sender = threading.Thread(target=send)
    while len(came) < 4 * (sent + 1):
        try:
            if sender.ident is None:
                sender.start()
            calls[rng.integers(3)]()
        except ZeroDivisionError:
            raised += 1
    sender.join()
    sent += 1
assert [came.count(number) for number in handled] == [60] * 4, (came, raised)
assert 0 < raised <= 60                                # one each, but for those that came between calls
assert all(signal.getsignal(number) is note for number in handled) and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
assert not kp._held_back and not kp._came

def nested(number, frame):                             # a handler that calls in turn
    came.append(kp.gram(X[:3], X[:3], g).shape)

signal.signal(signal.SIGALRM, nested)
signal.setitimer(signal.ITIMER_REAL, 0.005)
while came[-1] != (3, 3):
    calls[1]()
signal.signal(signal.SIGALRM, signal.SIG_DFL)
threads = [threading.Thread(target=call) for call in calls]
[thread.start() for thread in threads]
while any(thread.is_alive() for thread in threads):
    kp.gram(X[:3], X[:3], g)
assert not kp._held_back and signal.getsignal(signal.SIGINT) is note

class Late(ValueError):                                # was taken for word of another interpreter
    pass

def late(*_):
    raise Late

signal.signal(signal.SIGALRM, late)
signal.siginterrupt(signal.SIGALRM, False)             # flags of the system's, which signal.signal resets
small = X[:4]
for _ in range(3000):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 2e-4))
            for _ in range(8):
                kp.gram(small, small, g)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Late:
        pass
try:
    kp.gram(small, small, g)
except Late:
    pass
assert signal.getsignal(signal.SIGINT) is note and signal.getsignal(signal.SIGALRM) is late and not kp._held_back

signal.signal(signal.SIGINT, signal.default_int_handler)
done = []

def fork():                                            # in the middle of a call of the main thread
    time.sleep(0.02)
    child = os.fork()
    if child == 0:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
            os._exit(1)
        except KeyboardInterrupt:
            os._exit(0)
    done.append(os.waitpid(child, 0)[1])

forking = threading.Thread(target=fork)
forking.start()
while not done:
    kp.gram(X, X, g)
assert done == [0]
print("passed on")
"""


NOTEBOOK = """
import os, time
from jupyter_client.manager import start_new_kernel

manager, client = start_new_kernel(kernel_name="python3", cwd=os.getcwd())

def cell(code, after=None):
    sent = client.execute(code, stop_on_error=False)   # after an error, cells that came meanwhile would be refused
    if after is not None:
        while client.get_iopub_msg(timeout=300)["content"].get("text") != "begun\\n":
            pass                                       # an idle kernel drops interrupts
        time.sleep(after)
        manager.interrupt_kernel()
    while True:
        reply = client.get_shell_msg(timeout=300)
        if reply["parent_header"].get("msg_id") == sent:
            return reply["content"]

try:
    assert cell("import numpy as np, kpcasketch as kp; X = np.random.default_rng(0).standard_normal((1500, 3)); "
                "g = kp.gaussian(2.0); whole = kp.kpca(X, g, 3)")["status"] == "ok"
    for delay in (0.05, 0.2, 0.5):
        reply = cell("print('begun', flush=True)\\nwhile True: kp.kpca(X, g, 3)", delay)
        assert reply["status"] == "error" and reply["ename"] == "KeyboardInterrupt", reply
        reply = cell("assert np.array_equal(kp.kpca(X, g, 3).coef, whole.coef) and not kp._held_back")
        assert reply["status"] == "ok", reply
    print("interrupted")
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""


@pytest.mark.slow
def test_a_cell_of_a_notebook_is_interrupted_and_the_next_one_runs():
    pytest.importorskip("ipykernel")
    pytest.importorskip("jupyter_client")
    assert run(NOTEBOOK, NUMBA_CACHE_DIR=os.environ.get("NUMBA_CACHE_DIR", ""))[0] == "interrupted\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of Unix")
def test_signals_reach_the_handlers_that_there_were():
    assert run(PASSED_ON, NUMBA_CACHE_DIR=os.environ.get("NUMBA_CACHE_DIR", ""))[0] == "passed on\n"


@pytest.mark.slow
@pytest.mark.parametrize("words, verdict", [
    (FEW.split("; ", 1)[1], True), ("kp._TRIAL = 'import os; os.abort()'", False),
    ("kp._TRIAL = 'print(sum(range(10**12)))'; kp._TRIAL_SECONDS = 1", False),
    ("kp._TRIAL = 'import os; print(os.getpid())'", False)], ids=["works", "crashes", "hangs", "differs"])
def test_an_unknown_system_is_tried_once_in_a_child(words, verdict, tmp_path):
    unknown = {"KPCASKETCH_APART": "try", "NUMBA_CACHE_DIR": str(tmp_path)}
    code = "import numpy as np, kpcasketch as kp; {words}; print(kp._stands_apart())"
    assert run(code.format(words=words), **unknown)[0].split()[-1] == str(verdict)
    kept, = tmp_path.glob("kpcasketch-*/apart-*")
    assert kept.read_text() == ("yes" if verdict else "no")
    assert len(list(kept.parent.iterdir())) > 3 or "gram" not in words             # what is compiled then is kept
    kept.write_text("no")
    assert run(code.format(words="kp._TRIAL = 'a syntax error'"), **unknown)[0] == "False\n"
    assert run(code.format(words="0"), **{**unknown, "KPCASKETCH_APART": "1"})[0] == "True\n"


@pytest.mark.slow
def test_code_of_a_file_that_was_edited_after_its_import_was_kept_as_that_of_the_new_one(tmp_path):
    source = FILE.read_text()
    assert source.count(DOUBLED[0]) == 1
    (tmp_path / "kpcasketch.py").write_text(source)
    call = "print(kp.gram_diagonal(np.array([[3.0]]), kp.linear())[0])"
    edit = f"p = pathlib.Path('kpcasketch.py'); p.write_text(p.read_text().replace(*{DOUBLED}))"
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    found = run(f"import pathlib, numpy as np, kpcasketch as kp; {edit}; {call}", tmp_path, **cache)[0]
    assert (found, run(f"import numpy as np, kpcasketch as kp; {call}", tmp_path, **cache)[0]) == ("9.0\n", "18.0\n")
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_points_that_were_read_only_were_given_back_in_the_middle_of_a_call():
    read_only = X.copy()
    read_only.flags.writeable = False
    view = kp._as_points("outer call", read_only)
    kp.gram_diagonal(read_only, g)                     # as a handler of a signal may, or a custom kernel's maker
    assert view.flags.writeable
    kp._return_views()
    assert not view.flags.writeable
