# SPDX-License-Identifier: BSD-3-Clause
"""Parallel regions: each tells its work in advance, short ones are left to one thread, and bits do not depend on it."""

import ast
import functools
import os
import pathlib
import subprocess
import sys
import time

import numba
import numpy as np
import pytest

import kpcasketch as kp

TREE = ast.parse(pathlib.Path(kp.__file__).read_text())
CORES = [node for node in TREE.body if isinstance(node, ast.FunctionDef)
         and any(isinstance(part, ast.Call) and getattr(part.func, "id", "") == "prange" for part in ast.walk(node))]
KERNEL = kp.gaussian(2.0)


@numba.njit
def slow(x, y):
    """x y, some milliseconds later."""
    total = 0.0
    for i in range(200_000):
        total += (x[0] * i) % 7.0
    return total * 0.0 + x[0] * y[0]


def counted(function, *arguments):
    """How many regions a call leaves to one thread, shares and gives up for."""
    before = kp._regions.copy()
    function(*arguments)
    return tuple(int(kp._regions[i] - before[i]) for i in (kp._ALONE, kp._SHARED, kp._HOLDS))


@pytest.fixture
def regions():
    """Regions as in a new process whose threads are awake, and afterwards as they were."""
    before = kp._regions.copy()
    kp._regions[[kp._BALANCE, kp._ALONE_UNTIL, kp._WAKING, kp._LEFT, kp._LEFT_UNTIL]] = 0
    kp._regions[kp._MET] = 2**62
    yield kp._regions
    kp._regions[:] = before


@pytest.mark.parametrize("core", CORES, ids=lambda core: core.name)
def test_every_parallel_loop_asks_first_and_has_a_twin_for_one_thread(core):
    branches = [node for node in ast.walk(core) if isinstance(node, ast.If) and ast.unparse(node.test) == "begun"]
    loops = [node for node in ast.walk(core) if isinstance(node, ast.For) and "prange" in ast.unparse(node.iter)]
    assert len(branches) == len(loops) > 0
    for branch in branches:
        (shared, paid), (alone,) = branch.body, branch.orelse
        task, count = shared.target.id, ast.unparse(shared.iter.args[0])
        assert ast.unparse(alone.iter) == f"range({count})" and alone.target.id == task
        assert len(alone.body) == 1
        assert ast.unparse(alone.body) == ast.unparse(shared.body).replace(f"np.int64({task})", task)
        assert ast.unparse(paid) in ("_threads_paid(begun, work)", "_threads_paid(begun, counting)",
                                     "_threads_paid(begun, writing)")
    assert ast.unparse(core).count("_threads_pay(") == len(branches)


def test_short_regions_are_left_to_one_thread_and_long_ones_shared(regions, rng):
    regions[[kp._SHORT, kp._LONG]] = 20_000, 10_000_000
    few, many = rng.standard_normal((10, 3)), rng.standard_normal((4000, 3))
    assert counted(kp.gram, few, few, KERNEL) == (1, 0, 0)
    assert counted(kp.gram, many, many, KERNEL) == (0, 1, 0)
    assert counted(kp.gram, many[:250], many[:250], KERNEL) == (1, 0, 0)           # four tiles: one task
    regions[kp._ALONE_UNTIL] = 2**62                   # as if threads had been late
    assert counted(kp.gram, many, many, KERNEL) == (0, 1, 0)
    assert counted(kp.gram, many[:500], many[:500], KERNEL) == (1, 0, 0)
    regions[kp._ALONE_UNTIL] = 0
    assert counted(kp.gram, many[:500], many[:500], KERNEL)[:2] == (0, 1)          # late or not: other programs decide


def test_a_stream_entered_a_region_for_each_shrink(regions, rng):
    # 1100 regions of some microseconds for 6000 points: with another process beside it, 690 points a second
    X = rng.standard_normal((6000, 100))
    state = kp.skpca_start(kp.fourier_features_map(kp.gaussian(14.0), 100, 200), 20)
    regions[[kp._SHORT, kp._LONG]] = 20_000, 10_000_000
    alone, shared, _ = counted(kp.skpca_update, state, X)
    assert alone > 1000 and shared <= 2                # features of 5120 points, and of the rest


def test_threads_that_come_late_are_left_out_for_a_while(regions):
    kernel, X, Y = kp.custom(slow), np.arange(1.0, 521.0)[:, None], np.full((1, 1), 2.0)         # two tasks
    K = kp.gram(X, Y, kernel)
    regions[[kp._SHORT, kp._LONG]] = 0, 2**62          # each value is taken to need .1 ms, and needs several
    regions[[kp._BALANCE, kp._ALONE_UNTIL]] = 0
    regions[kp._MET] = 2**62
    assert counted(kp.gram, X, Y, kernel) == (0, 1, 1)
    assert counted(kp.gram, X, Y, kernel) == (1, 0, 0)
    time.sleep(kp._HOLD / 1e9)
    regions[kp._BALANCE], regions[kp._MET] = 0, 2**62
    found = []
    assert counted(lambda: found.append(kp.gram(X, Y, kernel))) == (0, 1, 1)
    assert np.array_equal(found[0], K) and np.array_equal(K, X * Y)


def test_threads_that_come_in_time_make_up_for_a_late_one(regions):
    kernel, X = kp.custom(numba.njit(lambda x, y: x[0] * y[0])), np.ones((520, 1))
    kp.gram(X, X[:1], kernel)
    regions[[kp._SHORT, kp._LONG]] = 0, 2**62          # each value is taken to need .1 ms, and needs nanoseconds
    regions[kp._BALANCE], regions[kp._MET] = -kp._PATIENCE_WITH_THREADS // 2, 2**62
    assert counted(kp.gram, X, X[:1], kernel) == (0, 1, 0) and regions[kp._BALANCE] == 0


def test_threads_asleep_are_woken_for_what_is_worth_it(regions):
    # 30 microseconds of work took 4 ms after a pause of 20: the system woke threads at the next tick
    kernel, X = kp.custom(numba.njit(lambda x, y: x[0] * y[0])), np.ones((520, 1))
    kp.gram(X, X[:1], kernel)
    regions[[kp._SHORT, kp._LONG]] = 0, 2**62          # each value is taken to need .1 ms: 57 ms in all
    again = functools.partial(counted, kp.gram, X, X[:1], kernel)
    regions[[kp._MET, kp._WAKING]] = 0, 10**11
    assert again() == (1, 0, 0) and regions[kp._WAKING] == 10**11 - 10**11 // 32 and regions[kp._MET] == 0
    work = int(regions[kp._LEFT])
    assert 10**7 < work < 10**8
    regions[kp._LEFT_UNTIL] = 2**62                    # the same pause, however long the test is kept waiting
    assert again() == (1, 0, 0) and regions[kp._LEFT] == 2 * work
    assert regions[kp._WAKING] == 10**11 - 10**11 // 32
    regions[kp._WAKING], regions[kp._LEFT_UNTIL] = int(1.5 * work), 2**62
    assert again() == (0, 1, 0)                        # three of them: twice what waking takes
    assert 0 < regions[kp._WAKING] < 1.5 * work and regions[kp._MET] > 0           # they came in time
    regions[kp._MET] = 2**62
    assert again()[:2] == (0, 1)                       # awake
    regions[[kp._MET, kp._LEFT_UNTIL, kp._ALONE_UNTIL]] = 0
    assert again() == (1, 0, 0) and regions[kp._LEFT] == work                      # another pause
    regions[kp._LONG] = 0
    assert again() == (0, 1, 0)                        # long ones are shared in any case


def test_what_waking_takes_is_learned_and_not_blamed_on_other_programs(regions):
    kernel, X, Y = kp.custom(slow), np.arange(1.0, 521.0)[:, None], np.full((1, 1), 2.0)
    K = kp.gram(X, Y, kernel)
    regions[[kp._SHORT, kp._LONG]] = 0, 2**62          # each value is taken to need .1 ms, and needs several
    regions[kp._MET] = 0
    assert counted(kp.gram, X, Y, kernel) == (0, 1, 0) and regions[kp._BALANCE] == 0
    # at most: a process that was stopped in a region for a minute had its threads left asleep for some more
    assert regions[kp._WAKING] == kp._PATIENCE_WITH_THREADS // 4
    regions[kp._WAKING] = 10**9
    regions[kp._MET] = 0
    found = []
    assert counted(lambda: found.append(kp.gram(X, Y, kernel))) == (1, 0, 0)
    assert np.array_equal(found[0], K) and np.array_equal(K, X * Y)


def test_more_threads_than_cores_share_only_what_is_worth_waking_them():
    code = "import kpcasketch as kp; print(kp._regions[kp._SHORT], kp._cores())"
    for threads, short in (("1", 2**62), ("64", 1_000_000)):
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                             cwd=pathlib.Path(kp.__file__).parent,
                             env={**os.environ, "NUMBA_NUM_THREADS": threads}).stdout
        found, cores = map(int, out.split())
        assert found == (short if cores < 64 or threads == "1" else 20_000)


def test_compiled_code_outlived_what_it_knows_of_regions():
    # a copy of the file that is executed, used and dropped: its compiled code still writes to that memory
    code = ("import gc, numpy as np, pathlib, kpcasketch\n"
            "source, X = pathlib.Path(kpcasketch.__file__).read_text(), np.eye(300)\n"
            "def run():\n"
            "    names = {'__name__': 'pasted'}\n"
            "    exec(source, names)\n"
            "    gram, g = names['gram'], names['gaussian'](1.0)\n"
            "    K = gram(X, X, g)\n"
            "    names.pop('_regions')\n"
            "    gc.collect()\n"
            "    fill = [np.full(9, -1) for _ in range(10000)]\n"
            "    return np.array_equal(gram(X, X, g), K) and all((row == -1).all() for row in fill)\n"
            "print(run())")
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                         cwd=pathlib.Path(kp.__file__).parent, env={**os.environ, "KPCASKETCH_QUIET": "1"}).stdout
    assert out == "True\n"
