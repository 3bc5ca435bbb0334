# SPDX-License-Identifier: BSD-3-Clause
"""How cores are compiled, kept on disk and called: by threads, in forked children, between signals, and as Python."""

import ast
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import types

import numba
import numpy as np
import pytest
from numba.core import event
from scipy.sparse.linalg import LinearOperator

import kpcasketch as kp

FILE = pathlib.Path(kp.__file__)
TREE = ast.parse(FILE.read_text())
LOOPS = [
    (node.name, part)
    for node in TREE.body
    if isinstance(node, ast.FunctionDef)
    for part in ast.walk(node)
    if isinstance(part, ast.For) and getattr(getattr(part.iter, "func", None), "id", "") == "prange"
]
X = np.random.default_rng(0).standard_normal((30, 3))
g = kp.gaussian(2.0)
# compiled in a fifth of the time of a Gram matrix
BANDWIDTH = "import numpy as np, kpcasketch as kp; X = np.eye(300); print(kp.median_bandwidth(X))"


def run(code, folder=FILE.parent, **environment):
    settings = {**os.environ, "KPCASKETCH_QUIET": "1", **environment}
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
        env={name: value for name, value in settings.items() if value},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


@pytest.mark.parametrize("name, loop", LOOPS, ids=[name for name, _ in LOOPS])
def test_unsigned_indices_of_prange_became_floats(name, loop):
    # In the parallel twin alone: mixed with signed numbers they are taken for float64.
    assert loop.target.id == "index"
    uses = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and node.id == "index"]
    calls = [ast.unparse(node) for node in ast.walk(loop) if isinstance(node, ast.Call)]
    signed = [call for call in calls if re.fullmatch(r"np.int64\(index\)|_block\(index, .*", call)]
    assert len(uses) == 2 and len(signed) == 1  # where the loop sets it, and there


def test_only_documented_parts_of_numba_are_used():
    text = FILE.read_text()
    assert (
        set(re.findall(r"numba\.core[.\w]*", text)) == {"numba.core"}
        and "from numba.core import cgutils\n" in text
    )
    for word in ("exec(", "__class__ =", "register_pass", "_compile_for_args", "overload_glue"):
        assert word not in text, word
    assert re.findall(r"^(?:from|import) llvmlite.*", text, re.M) == [
        "from llvmlite import binding as llvm",
        "from llvmlite import ir",
    ]


@pytest.fixture
def core(monkeypatch):
    """A core, and which of its twins ran, none of them on disk; threads have not been late."""
    monkeypatch.setattr(kp, "_account", types.SimpleNamespace(**vars(kp._account)))
    for name in ("rented", "debt", "alone_until", "parallel_ended", "serial_ended"):
        setattr(kp._account, name, 0)
    kp._account.wake_up = 8e6
    kp._account.announced = False
    monkeypatch.setattr(kp, "_CACHED", False)

    def fill(out):
        for index in numba.prange(out.shape[0]):
            i = np.int64(index)
            out[i] = i

    made = kp._core(fill)
    return made, lambda work: (
        made(work, np.empty(5)),
        ["sp"[parallel] for _, parallel in made.twins],
    )[1]


def test_work_decides_which_twin_runs(core, threads):
    _, twins_after = core
    assert twins_after(0.0) == ["s"]
    assert twins_after(kp._SHARED_FROM + 1.0) == ["s"]  # the serial twin stands in
    assert twins_after(kp._WORTH_COMPILING) == ["s", "p"]


def test_the_parallel_twin_is_compiled_when_its_stand_in_has_worked_for_100_ms(core):
    _, twins_after = core
    assert [twins_after(0.4 * kp._WORTH_COMPILING) for _ in range(3)] == [["s"], ["s"], ["s", "p"]]


@pytest.fixture
def regions(core, monkeypatch):
    """Run regions whose twins take a given time, in ns, by a clock of the test's own: whether all threads ran."""
    made, _ = core
    clock = types.SimpleNamespace(now=10**12, took=0)
    ran = []
    monkeypatch.setattr(kp, "_WORTH_COMPILING", 0)
    monkeypatch.setattr(kp.time, "perf_counter_ns", lambda: clock.now)

    def twin(function, key, parallel, cached):
        def call(*_):
            ran.append(parallel)
            clock.now += clock.took[parallel]

        call.compile = lambda types: None
        return call

    monkeypatch.setattr(kp, "_twin", twin)

    def run(work, parallel, pause=1000):
        clock.now += pause
        clock.took = (work, parallel)
        made(work, np.empty(5))
        return ran[-1]

    run(100_000_000, 50_000_000)  # both twins are compiled
    return run


needs_two_threads = pytest.mark.skipif(numba.get_num_threads() < 2, reason="needs two threads")


@needs_two_threads
def test_late_threads_are_left_out_of_short_regions_for_half_a_second(regions):
    # five times what one thread would have taken
    ran = [regions(1_000_000, 5_000_000) for _ in range(60)]
    assert True in ran and not ran[-1] and 0 < kp._account.debt <= kp._DEBT
    regions(100_000_000, 50_000_000, kp._HOLD)  # a long one wakes the threads
    assert regions(1_000_000, 500_000)


@needs_two_threads
def test_calls_after_a_pause_waited_for_threads(regions):
    pause = 10 * kp._PAUSE
    wake_up = 8_000_000
    for work in (200_000, 1_000_000, 5_000_000):
        assert not any(regions(work, wake_up + work // 2, pause) for _ in range(20))
    # In a loop without pauses, threads are woken when they have saved twice what that takes.
    ran = [regions(1_000_000, 500_000 + (i == 31) * wake_up, pause * (i == 0)) for i in range(40)]
    assert ran.index(True) == 31 and all(ran[31:])
    # A long region wakes them at once.
    assert regions(30_000_000, wake_up + 15_000_000, pause)


@needs_two_threads
def test_a_wake_up_that_costs_little_is_learned(regions):
    pause = 10 * kp._PAUSE
    for _ in range(12):
        for i in range(40):
            regions(250_000, 150_000, pause * (i == 0))
        for i in range(40):
            regions(1_000_000, 550_000, pause * (i == 0))
    assert kp._account.wake_up < 500_000
    assert regions(1_000_000, 550_000, pause)
    # And so is one that has become expensive.
    for _ in range(12):
        regions(5_000_000, 12_000_000, pause)
    assert kp._account.wake_up > 2_500_000
    assert not regions(1_000_000, 8_500_000, pause)


@pytest.fixture
def blas():
    """Numbers of threads of the libraries of BLAS, which are 2 outside of calls."""
    kp._scipy_linalg()
    before = [number() for number, _ in kp._blas.libraries]
    kp._set_blas_threads([2] * len(before))
    yield lambda: [number() for number, _ in kp._blas.libraries]
    kp._set_blas_threads(before)


def test_calls_waited_for_threads_of_blas(blas, monkeypatch):
    if len(blas()) < 2 or blas() != [2, 2]:
        pytest.skip("NumPy and SciPy without OpenBLAS, or one built for one thread")
    within = []
    checked = kp._checked_two
    monkeypatch.setattr(kp, "_checked_two", lambda *two: within.append(blas()) or checked(*two))
    kp.gram(X, X, g)
    assert within == [[1, 1]] and blas() == [2, 2]

    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(kp, "_checked_two", fail)
    with pytest.raises(KeyboardInterrupt):
        kp.gram(X, X, g)
    assert blas() == [2, 2]
    monkeypatch.undo()
    with pytest.raises(ValueError, match="k must be"):
        kp.kpca(X, g, 0, centered=False)
    assert blas() == [2, 2]


def test_a_users_function_has_the_threads_that_the_user_set(blas):
    A = X @ X.T
    before = blas()
    seen = []

    def product(V):
        seen.append(blas())
        kp.gram(X, X, g)  # a call within a call
        return A @ V

    kp.block_lanczos(LinearOperator((30, 30), product, matmat=product, dtype=float), 2)
    assert before in seen and blas() == before


def test_two_python_threads_left_blas_with_one_thread(blas, monkeypatch):
    before = blas()
    both = threading.Barrier(2, timeout=60)
    other_ended = threading.Event()
    seen = []

    checked = kp._checked_two

    def meet(P, *two):
        both.wait()
        if len(P) == 30:
            other_ended.wait(60)
        seen.append(blas())
        return checked(P, *two)

    monkeypatch.setattr(kp, "_checked_two", meet)
    first, second = [threading.Thread(target=kp.gram, args=(X[:n], X, g)) for n in (20, 30)]
    first.start()
    second.start()
    first.join()
    other_ended.set()
    second.join()
    assert seen == 2 * [[1] * len(before)] and blas() == before


def test_a_large_decomposition_has_all_threads_until_they_are_late(blas, monkeypatch):
    before = blas()
    now = [10**12]
    monkeypatch.setattr(kp.time, "perf_counter_ns", lambda: now[0])
    monkeypatch.setattr(kp._account, "blas_alone_until", 0)
    kp._begin_call("test")
    try:

        def threads_for(work, took):
            with kp._shared_blas(work):
                now[0] += took
                return blas()

        assert threads_for(1e6, 10**9) == [1] * len(before)  # small
        assert threads_for(1e9, 10**9) == before
        assert threads_for(1e9, 3 * 10**9) == before  # late by a second
        assert threads_for(1e9, 10**9) == [1] * len(before)
        now[0] += 10 * 10**9
        assert threads_for(1e9, 10**9) == before
    finally:
        kp._end_call("test")
    assert blas() == before


SAME_BITS = """
import hashlib
import numpy as np, kpcasketch as kp
rng = np.random.default_rng(0)
X = rng.standard_normal((1000, 6))
y = X[:, 0] + X[:, 1] ** 2
g = kp.gaussian(3.0)
F = kp.nystrom(X, np.arange(200), g)
landmarks = kp.rpcholesky(X, g, 300)
K = kp.gram(X, X, g)
def told(name, result):
    parts = [p for p in kp._arrays(result if isinstance(result, tuple) else (np.asarray(result),))]
    print(name, hashlib.md5(b"".join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest())
for n, k in ((100, 5), (300, 5), (300, 50), (700, 100), (1000, 10), (1000, 300)):
    told(f"kpca {n} {k}", kp.kpca(X[:n], g, k))
    told(f"kpca float32 {n} {k}", kp.kpca(X[:n].astype(np.float32), g, k, centered=True))
told("block_lanczos", kp.block_lanczos(K, 10))
told("kernel_ridge", kp.kernel_ridge(X, y, g, 0.1))
told("nystrom_kpca", kp.nystrom_kpca(X, landmarks, g, 20, centered=True))
told("nystrom_ridge", kp.nystrom_ridge(X, y, landmarks, g, 1e-3))
told("choose", kp.choose(X, y, landmarks, g))
told("rskpca", kp.rskpca(X[:700], g, 20))
told("recursive_rls_practical", kp.recursive_rls_practical(X, g, 100))
told("kernel_cca", kp.kernel_cca(F, F[:, ::-1].copy(), 1e-3, 1e-3, 5))
told("factor_ridge", kp.factor_ridge(F, y, 1e-3))
told("effective_dimension", kp.effective_dimension(K, 1e-2))
told("nuclear_error", kp.nuclear_error(K, F @ F.T))
told("ridge_leverage_scores", kp.ridge_leverage_scores(X, g, 1.0))
told("skpca", kp.skpca(X, g, 5, 600, 40))
told("rnca", kp.rnca(X, g, 5, 600))
told("learn_metric", kp.learn_metric(X, y, g, 1e-2)[0])
told("laplacian_eigenmap", kp.laplacian_eigenmap(X[:500], g, 5))
told("dsgd_ksvd", kp.dsgd_ksvd(X, X[:, ::-1].copy(), g, g, 3, 256))
"""


@pytest.mark.slow
def test_threads_of_blas_changed_the_bits():
    # kpca of 300 points took 1 or 320 ms, and its bits depended on OPENBLAS_NUM_THREADS
    one, two = [run(SAME_BITS, OPENBLAS_NUM_THREADS=number)[0] for number in ("1", "2")]
    assert one.count("\n") == 29 and one == two


def test_one_thread_runs_the_serial_twin(core, threads):
    _, twins_after = core
    assert threads(1, twins_after, 1e12) == ["s"]


def test_a_core_whose_memory_did_not_suffice_ran_three_times(core, monkeypatch, tmp_path):
    # what it had added to its slots was then added again
    monkeypatch.setattr(kp, "_CACHED", True)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def add(out, size):
        out[0] += 1.0
        scratch = np.empty(size)
        scratch[0] = 1.0
        out[0] += scratch[0]

    out = np.zeros(1)
    with pytest.raises((MemoryError, ValueError)):
        kp._core_alone(add)(out, 2**60)
    assert out[0] == 1.0


def test_an_interrupt_beside_the_region_left_everything_serial(core, threads):
    # between two lines of `core`, as Ctrl-C comes: at each of them in turn
    made, _ = core
    code, parallel, reached = made.__code__, [], set()
    assert code.co_name == "core"

    def call(stop=None):
        seen = []

        def trace(frame, event, _):
            if frame.f_code is code and event == "line":
                seen.append(frame.f_lineno)
                if len(seen) == stop:
                    raise KeyboardInterrupt
            return trace if frame.f_code is code else None

        former = sys.gettrace()
        sys.settrace(trace)
        try:
            made(1e12, np.empty(5))
        except KeyboardInterrupt:
            reached.add(seen[-1])
        finally:
            sys.settrace(former)
        return len(seen)

    def ran():
        parallel.clear()
        made(1e12, np.empty(5))
        return parallel == [True]

    def interrupt():
        call()
        twins = dict(made.twins)
        made.twins.update(
            {
                key: lambda out, twin=twin, key=key: (parallel.append(key[1]), twin(out))
                for key, twin in twins.items()
            }
        )
        made.twins.update({(key, False): lambda out: parallel.append(False) for key, _ in twins})
        for stop in range(1, call() + 1):
            call(stop)
            assert ran(), stop  # in this thread, which the interrupt came to, and in another
            thread = threading.Thread(target=lambda: found.append(ran()))
            thread.start()
            thread.join()
            assert found.pop(), stop

    found = []
    threads(2, interrupt)
    assert len(reached) > 8


def test_arguments_in_other_forms_compile_nothing_new(tmp_path):
    whole = np.arange(90.0).reshape(30, 3) % 7
    read_only = whole.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "X.npy", whole)
    forms = [
        whole.astype(int),
        np.asfortranarray(whole),
        read_only,
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        whole.tolist(),
        whole.astype(np.float16),
        whole.astype(">f8"),
        np.repeat(whole, 2, axis=0)[::2],
    ]
    calls = [
        lambda X, k, s, seed: kp.gram(X, X, kp.gaussian(s)),
        lambda X, k, s, seed: kp.kpca(X, kp.gaussian(s), k, seed, centered=False).values,
        lambda X, k, s, seed: kp.quantize_gram(X, kp.laplacian(s), seed).words,
        lambda X, k, s, seed: kp.sample_gram(X, kp.gaussian(s), s, seed).data,
        lambda X, k, s, seed: kp.recursive_rls_practical(X, kp.gaussian(s), k, seed).indices,
        lambda X, k, s, seed: kp.matmat(kp.LowRank(X), np.ones((30, 1))),
        lambda X, k, s, seed: kp.median_bandwidth(X, seed),
    ]
    expected = [call(whole, 2, 2.0, 5) for call in calls]
    with event.install_recorder("numba:compile") as recorder:
        for form in forms:
            for call, result in zip(calls, expected):
                assert np.array_equal(call(form, np.int32(2), np.float32(2.0), np.int64(5)), result)
        for call in calls:
            call(whole, np.array(2), np.array(2.0), 2**63 + 5)
    assert not recorder.buffer
    assert not read_only.flags.writeable


def test_fields_that_came_back_as_arrays_without_dimensions_compile_nothing():
    kernel = kp.Kernel(*[np.asarray(value) for value in g])
    eigen = kp.block_lanczos(X @ X.T, 2)
    expected = kp.features(X, kp.kpca_from_eigen(X, g, eigen))
    with event.install_recorder("numba:compile") as recorder:
        again = kp.kpca_from_eigen(
            X, kernel, eigen._replace(iterations=np.asarray(eigen.iterations))
        )
        assert np.array_equal(kp.features(X, again), expected) and not recorder.buffer


def test_public_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(kp.gram)) is kp.gram


# Results, and how many functions were compiled: none where other processes have compiled all, in whatever order.
UNITS = """
import numpy as np, kpcasketch as kp
from numba.core import event
from scipy.sparse.linalg import LinearOperator
X = np.random.default_rng(0).standard_normal((300, 3))
bits = kp.Bits(np.ones((10, 300), np.uint32), 1.0, 300)
with event.install_recorder("numba:compile") as recorder:
    for name in {names}:
        print({{"gram": lambda: kp.gram(X, X, kp.gaussian(2.0)).sum(),
               "kpca": lambda: kp.kpca(X, kp.gaussian(2.0), 2).values.sum(),
               "single": lambda: kp.gram(X.astype("f4"), X.astype("f4"), kp.gaussian(2.0)).sum(),
               "large": lambda: kp.gram(np.tile(X, (20, 1)), X, kp.gaussian(2.0)).sum(),
               "bits": lambda: kp.matmat(bits, X).sum(),
               "bits, single": lambda: kp.matmat(bits, X.astype("f4")).sum()}}[name]())
print('units', sum(item.is_end for _, item in recorder.buffer))
"""


@pytest.mark.slow
def test_what_one_process_has_compiled_others_load_in_any_order(tmp_path):
    shutil.copy(FILE, tmp_path)

    def told(*names):
        *values, units = run(UNITS.format(names=names), tmp_path, NUMBA_CACHE_DIR="")[
            0
        ].splitlines()
        return dict(zip(names, values)), int(units.split()[1])

    first, units = told("gram", "kpca")
    assert units > 15
    others, _ = told("large", "single")
    for order in (("single", "gram", "large", "kpca"), ("kpca", "large", "gram", "single")):
        again, units = told(*order)
        assert units == 0 and again == {name: {**first, **others}[name] for name in order}


@pytest.mark.slow
def test_two_processes_that_saved_at_once_exchanged_the_code_of_two_types(tmp_path):
    shutil.copy(FILE, tmp_path)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", UNITS.format(names=names)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "KPCASKETCH_QUIET": "1"},
        )
        for names in (("bits", "bits, single"), ("bits, single", "bits"))
    ]
    one, other = [process.communicate(timeout=600)[0].split() for process in both]
    assert one[:2] == other[1::-1]
    again = run(
        UNITS.format(names=("bits", "bits, single")),
        tmp_path,
        NUMBA_CACHE_DIR=str(tmp_path / "cache"),
    )[0].split()
    assert again[:2] == one[:2] and again[3] == "0"


@pytest.mark.slow
def test_files_that_were_cut_short_are_compiled_anew(tmp_path):
    shutil.copy(FILE, tmp_path)
    cache = tmp_path / "cache"
    first = run(BANDWIDTH, tmp_path, NUMBA_CACHE_DIR=str(cache))[0]
    for pattern in ("*.nbi", "*.nbc"):
        files = list(cache.rglob(pattern))
        assert files
        for file in files:
            file.write_bytes(file.read_bytes()[:100])
        assert run(BANDWIDTH, tmp_path, NUMBA_CACHE_DIR=str(cache))[0] == first
        assert all(file.stat().st_size > 100 for file in cache.rglob(pattern))


NOTE = "kpcasketch: compiling for this machine, once; the code is kept"


@pytest.fixture
def locked(tmp_path):
    """A copy of the file where there can be no __pycache__."""
    folder = tmp_path / "locked"
    folder.mkdir()
    shutil.copy(FILE, folder)
    (folder / "__pycache__").touch()
    return folder


@pytest.mark.slow
def test_the_file_works_where_nothing_can_be_written(locked, tmp_path):
    nowhere = {
        "NUMBA_CACHE_DIR": "/dev/null/nowhere",
        "XDG_CACHE_HOME": "/dev/null",
        "HOME": "/dev/null",
        "KPCASKETCH_QUIET": "",
    }
    found, said = run(BANDWIDTH, locked, **nowhere)
    assert found == run(BANDWIDTH)[0] and said == f"{NOTE} for this process\n"
    pasted = (
        f"exec(compile(open({str(FILE)!r}).read(), '<cell>', 'exec'))\nX = np.eye(300)\n"
        "print(median_bandwidth(X))"
    )
    assert run(pasted, tmp_path)[0] == run(BANDWIDTH)[0]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="caches of users stand elsewhere")
def test_a_read_only_place_keeps_its_code_in_the_cache_of_the_user(locked, tmp_path):
    home = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path / "home"), "KPCASKETCH_QUIET": ""}
    assert run(BANDWIDTH, locked, **home)[1] == f"{NOTE} on disk\n"
    assert list((tmp_path / "home" / "numba").glob("locked_*/kpcasketch.*.nbc"))
    assert run(BANDWIDTH, locked, **home)[1] == ""  # loaded


LOGGED = """
import io, logging
text = io.StringIO()
{before}
import kpcasketch as kp
kp._announce(True)
kp._announce(True)
print(text.getvalue(), end="")
"""


@pytest.mark.parametrize(
    "before, out, error",
    [
        ("", "", f"{NOTE} on disk\n"),
        ("logging.basicConfig(stream=text, level=logging.INFO)", f"INFO:{NOTE} on disk\n", ""),
        ("logging.basicConfig(stream=text)", "", ""),  # level WARNING
        ("logging.getLogger('kpcasketch').addHandler(logging.NullHandler())", "", ""),
        ("logging.getLogger('kpcasketch').setLevel(logging.WARNING)", "", ""),
    ],
    ids="default info warning handler level".split(),
)
def test_a_service_could_not_route_the_note_on_compilation(before, out, error):
    found = run(LOGGED.format(before=before), KPCASKETCH_QUIET="")
    assert (found[0].replace("kpcasketch:compiling", "kpcasketch: compiling"), found[1]) == (
        out,
        error,
    )


def test_the_note_on_compilation_is_a_record_of_a_logger(core, monkeypatch, caplog, capsys):
    _, twins_after = core
    caplog.set_level("INFO", "kpcasketch")
    monkeypatch.setattr(kp, "QUIET", True)
    twins_after(0.0)
    assert not caplog.records
    monkeypatch.setattr(kp, "QUIET", False)
    kp._account.announced = False
    kp._announce(False)
    kp._announce(False)
    text = NOTE.removeprefix("kpcasketch: ") + " for this process"
    assert caplog.record_tuples == [("kpcasketch", 20, text)]
    assert capsys.readouterr().err == ""


def test_warnings_are_user_warnings_that_name_their_function():
    calls = [
        node
        for node in ast.walk(TREE)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"
    ]
    assert len(calls) > 4
    for call in calls:
        assert len(call.args) == 1 and {one.arg for one in call.keywords} <= {"stacklevel"}
        text = ast.unparse(call.args[0]).lstrip("f").strip("'\"")
        name = re.match(r"(\w+|\{name\}): ", text)
        assert name and name[1] in {"{name}", *kp.__all__, *kp._ESTIMATORS}, text


@pytest.mark.slow
def test_a_first_call_says_once_that_it_compiles_but_not_that_it_loads(tmp_path):
    # a timer said so of every call of two seconds, whatever it did
    for expected in ([f"{NOTE} on disk"], []):  # compiled, then loaded
        code = f"from scipy.sparse import csr_array; {BANDWIDTH}; kp.matmat(csr_array(X), X)"
        said = run(code, KPCASKETCH_QUIET="", NUMBA_CACHE_DIR=str(tmp_path))[1]
        assert said.splitlines() == expected


def test_warm_up_changed_what_other_threads_read(core, monkeypatch):
    _, twins_after = core
    before, seen = (kp.QUIET, kp._SHARED_FROM, kp._BLAS_BELOW), []

    def stop(*_, **__):
        def other():
            seen.append((kp.QUIET, kp._SHARED_FROM, kp._BLAS_BELOW))
            seen.append(twins_after(2 * kp._WORTH_COMPILING))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(kp, "_run_typical", stop)  # while all cores run serially
    with pytest.raises(KeyboardInterrupt):
        kp.warm_up()
    assert seen == [before, ["p" if numba.get_num_threads() > 1 else "s"]]


@pytest.mark.slow
def test_warm_up_compiles_the_functions_that_are_named(tmp_path):
    code = "import kpcasketch as kp; kp.warm_up({}); X = kp.np.eye(300); print(kp.rpcholesky(X, kp.gaussian(1.0), 5))"
    said = run(code.format("'rpcholesky', kp.features"), KPCASKETCH_QUIET="")[1]
    assert said.splitlines() == [
        "kpcasketch: compiling rpcholesky (1 of 2)",
        "kpcasketch: compiling features (2 of 2)",
    ]
    assert run(code.format("'rpcholesky'"))[1] == ""


def test_warm_up_refuses_names_that_it_does_not_know():
    for wrong, shown in (("kcpa", "'kcpa'"), (kp.load, "'load'"), (3, "3"), ([], "list")):
        match = f"^warm_up: names must not have {shown}, but be among .*, kpca, .*, NoveltyDetector"
        with pytest.raises(ValueError, match=match):
            kp.warm_up("kpca", wrong)


NOT_COMPILED = {
    "cauchy custom gaussian laplacian linear matern polynomial precomputed rational_quadratic scaled": "no points",
    "features_of residual_of kernel_value": "compiled as a part of users' functions",
    "load prepared_points save": "files",
    "warm_up": "itself",
}


def test_warm_up_knew_29_names(monkeypatch):
    # a new function whose arguments have new names needs an entry in `_typical_arguments`, or here
    ran = []
    monkeypatch.setattr(kp, "_run_typical", lambda name, dtype: ran.append(name))
    kp.warm_up()
    functions = {name for name in kp.__all__ if isinstance(getattr(kp, name), types.FunctionType)}
    not_compiled = {name for name in kp.__all__ if name.startswith("dask_")}
    not_compiled.update(*map(str.split, NOT_COMPILED))
    assert {*ran} == functions - not_compiled
    assert {name for name in kp.__all__ if name[0].islower()} == functions
    ran.clear()
    kp.warm_up(kp.spectral_norm, "LandmarkRidge")
    assert [*dict.fromkeys(ran)] == ["spectral_norm", "LandmarkRidge"]


def test_every_typical_argument_belongs_to_a_public_function():
    required = set().union(*(kp._required(getattr(kp, name)) for name in kp.__all__))
    assert kp._typical_arguments(np.float64).keys() <= required


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_warm_up_runs_every_function_of_points(dtype, monkeypatch):
    known = []
    with monkeypatch.context() as patched:
        patched.setattr(kp, "_run_typical", lambda name, dtype: known.append(name))
        kp.warm_up()
    with np.errstate(all="raise"):  # as a user may have it
        for name in dict.fromkeys(known):  # in the twins that they take
            kp._run_typical(name, dtype)


STREAM = """
import numpy as np, kpcasketch as kp
from numba.core import event
kp.warm_up("rls_start")
X = np.random.default_rng(0).standard_normal((2000, 4))
with event.install_recorder("numba:compile") as recorder:
    kp.finish(kp.update(kp.rls_start(kp.laplacian(1.0), 20, 4), X))
print(len(recorder.buffer))
"""


@pytest.mark.slow
def test_warm_up_of_a_start_function_left_its_update_to_be_compiled(tmp_path):
    assert run(STREAM, NUMBA_CACHE_DIR=str(tmp_path))[0] == "0\n"


@pytest.mark.slow
def test_warm_up_runs_typical_tasks_in_both_precisions_and_both_twins():
    assert kp.warm_up(kp.kpca, kp.skpca, kp.nystrom_ridge, kp.rpcholesky) > 0
    with event.install_recorder("numba:compile") as recorder:
        for dtype in (np.float64, np.float32):
            for points in (X[:20].astype(dtype), np.tile(X, (100, 1)).astype(dtype)):
                kp.kpca(points, g, 2, centered=False), kp.skpca(points, g, 2, 8, 2, centered=False)
                kp.nystrom_ridge(
                    points,
                    points[:, 0],
                    kp.rpcholesky(points, kp.laplacian(2.0), 5),
                    g,
                    1.0,
                    intercept=False,
                )
    assert not recorder.buffer


RELOADED = """
import importlib, pickle, sys
import numpy as np, numba, kpcasketch as kp
X = np.random.default_rng(0).standard_normal((30, 3))
g, own = kp.gaussian(2.0), kp.custom(numba.njit(lambda x, y: x[0] * y[0]))
made = [kp.kpca(X, g, 2), kp.update(kp.fd_start(2, 3), X), kp.uniform_landmarks(30, 5), kp.LowRank(X)]
def results():
    model, state, landmarks, operator = made
    return [kp.features(X, model), kp.update(state, X).run.columns, kp.gram(X, X, own),
            kp.nystrom_map(X, landmarks, g).factor, kp.matmat(operator, X), kp.residual(X, model)]
before = results()
AGAIN
print(all(map(np.array_equal, before, results())), kp.gaussian(2.0) == g,
      all(type(pickle.loads(pickle.dumps(one))) is type(one) for one in [*made, kp.kernel_kmeans(X, 2)]))
"""


# Spyder
@pytest.mark.parametrize(
    "again",
    [
        "importlib.reload(kp)",
        "names = {n: v for n, v in vars(kp).items() if n[:2] == '__'}; vars(kp).clear(); vars(kp).update(names); "
        "importlib.reload(kp)",  # IPython's autoreload
        "del sys.modules['kpcasketch']; import kpcasketch as kp",
    ],
)
def test_after_a_reload_every_kernel_model_and_state_was_refused(again):
    assert run(RELOADED.replace("AGAIN", again))[0] == "True True True\n"


# Threads, forks and signals

FORKS = """
import multiprocessing, concurrent.futures, sys
import numpy as np, kpcasketch as kp
kp._WORTH_COMPILING = 0                                # threads from the first call on
X = np.random.default_rng(0).standard_normal((20000, 3))
model = kp.Expansion(X[:500], np.ones((500, 1)), np.ones(1), kp.gaussian(2.0))
def work(i):
    return kp.features(X, model).sum()
if __name__ == "__main__":
    expected = work(0)
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        assert pool.map(work, range(2)) == [expected] * 2
    with concurrent.futures.ProcessPoolExecutor(2, context) as pool:
        assert list(pool.map(work, range(2))) == [expected] * 2
    try:
        import joblib
    except ImportError:
        pass
    else:
        with joblib.parallel_config("multiprocessing", n_jobs=2):
            assert joblib.Parallel()(joblib.delayed(work)(i) for i in range(2)) == [expected] * 2
    assert work(0) == expected
    print("forked")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_children_of_a_process_with_threads_waited_for_ever():
    assert run(FORKS, PYTHONWARNINGS="ignore")[0] == "forked\n"


@pytest.mark.slow
def test_two_threads_of_a_process_ended_it_where_numba_has_but_its_own_threads():
    code = FORKS[: FORKS.index("if __name__")] + (
        "import threading\nexpected, found = work(0), []\n"
        "threads = [threading.Thread(target=lambda: found.append(work(0))) for _ in range(4)]\n"
        "[thread.start() for thread in threads], [thread.join() for thread in threads]\n"
        "print(found == [expected] * 4)"
    )
    assert run(code, NUMBA_THREADING_LAYER="workqueue")[0] == "True\n"


INTERRUPTED = """
import faulthandler, os, signal
import numpy as np, kpcasketch as kp

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

rng = np.random.default_rng(0)
X, g = rng.standard_normal((1500, 3)), kp.gaussian(2.0)
state = kp.skpca_start(kp.fourier_features_map(g, 3, 50), 10)
calls = [lambda: kp.kpca(X, g, 3), lambda: kp.update(state, X), lambda: kp.shadow_select(X, 0.3)]
kp._WORTH_COMPILING = 0
for threshold in (np.inf, kp._SHARED_FROM):            # both twins: compiling one of them takes memory
    kp._SHARED_FROM = threshold
    for call in calls:
        call()
faulthandler.dump_traceback_later(300, exit=True)
signal.signal(signal.SIGALRM, signal.default_int_handler)
before = resident()
for i in range(500):
    try:
        try:
            # And again after a second: Python drops what comes while it frees an object.
            signal.setitimer(signal.ITIMER_REAL, 10.0 ** rng.uniform(-5, -2), 1.0)
            while True:
                calls[i % 3]()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
# A Gram matrix has 18 MB, and malloc keeps a few. One for each interrupt would be 3000 MB.
assert resident() < before + 300
print(kp.kpca(X, g, 3).values.sum() > 0.0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no such signals here")
def test_ctrl_c_ended_the_process_or_kept_the_result_in_memory():
    assert run(INTERRUPTED)[0] == "True\n"


def test_of_two_signals_while_compiling_the_second_was_dropped():
    seen, number = [], signal.SIGTERM
    former = (
        signal.signal(number, lambda *_: seen.append("second")),
        signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        with pytest.raises(KeyboardInterrupt), kp._while_compiling():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(number)
            seen.append("compiled")
        assert seen == ["compiled", "second"]
    finally:
        signal.signal(number, former[0])
        signal.signal(signal.SIGINT, former[1])


COMPILING = """
import signal
import numpy as np, kpcasketch as kp
from numba.core import event
from scipy.sparse.linalg import LinearOperator
X = np.random.default_rng(0).standard_normal((50, 3))

class Interrupt(event.Listener):                       # Ctrl-C while the third function is compiled
    count = 0
    def on_start(self, event):
        self.count += 1
        if self.count == 3:
            signal.raise_signal(signal.SIGINT)
    def on_end(self, event):
        pass

event.register("numba:compile", Interrupt())
try:
    kp.kpca(X, kp.gaussian(2.0), 3)
except KeyboardInterrupt:
    print("stopped")
print(kp.kpca(X, kp.gaussian(2.0), 3).values.sum() > 0.0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no such signals here")
def test_after_ctrl_c_while_it_compiled_numba_could_not_compile_any_more(tmp_path):
    assert run(COMPILING, NUMBA_CACHE_DIR=str(tmp_path))[0] == "stopped\nTrue\n"


SWITCHED = """
import hashlib
import numba, numpy as np, kpcasketch as kp

X = np.random.default_rng(0).standard_normal((150, 3))
own = numba.njit(lambda x, y: (x * y).sum())
kernel = kp.gaussian(2.0)
for A in (kp.gram(X, X, kernel), *kp.kpca(X, kernel, 3)[:3]):
    print(hashlib.sha256(A).hexdigest())
print(hasattr(own, "py_func"), numba.config.DISABLE_JIT)
try:
    kp.custom(own)
except ValueError as error:
    print(error)
"""


def test_coverage_of_a_whole_project_without_numbas_compiler_ended_at_the_import(tmp_path):
    plain = run(SWITCHED)[0].splitlines()
    for folder in (None, str(tmp_path)):  # with compiled files, and without any
        switched = {"NUMBA_DISABLE_JIT": "1"} | ({"NUMBA_CACHE_DIR": folder} if folder else {})
        found = run(SWITCHED, **switched)[0].splitlines()
        assert found[:4] == plain[:4]
        assert found[4] == "False 1" and plain[4:] == ["True 0"]  # only its users' functions
        assert found[5].startswith("custom: f must be a function compiled with numba.njit")


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
