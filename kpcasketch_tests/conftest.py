# SPDX-License-Identifier: BSD-3-Clause
import os
import signal
import zlib

# before numpy: its threads and numba's on the same cores slow each other down
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) < 2:
    # on one core, too: bits of one and of two threads are compared
    os.environ.setdefault("NUMBA_NUM_THREADS", "2")

import hypothesis
import numba
import numpy as np
import pytest

import kpcasketch

hypothesis.settings.register_profile("repeatable", derandomize=True)
hypothesis.settings.load_profile("repeatable")
# as of what a shell starts in the background: tests of Ctrl-C
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # failed there, as their children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


skipped = []  # tests, for want of a package or of threads


@pytest.fixture
def rng(request):
    """Random numbers of a test's own, by a checksum of its name: the same in any order, process and selection."""
    return np.random.default_rng(
        [zlib.crc32(request.node.name.encode()), request.config.getoption("--draw")]
    )


@pytest.fixture(autouse=True)
def doctest_names(doctest_namespace):
    """Names that the examples in the docstrings use."""
    doctest_namespace.update(
        np=np, numba=numba, **{name: getattr(kpcasketch, name) for name in kpcasketch.__all__}
    )


@pytest.fixture
def threads():
    """Run a function with a number of threads that share every parallel region, however short; 1 has none shared."""
    before, shared_from = numba.get_num_threads(), kpcasketch._SHARED_FROM

    def run(count, function, *arguments):
        if count > numba.config.NUMBA_NUM_THREADS:
            pytest.skip(f"needs {count} threads")
        numba.set_num_threads(count)
        kpcasketch._SHARED_FROM = -1.0 if count > 1 else np.inf
        try:
            return function(*arguments)
        finally:
            numba.set_num_threads(before)
            kpcasketch._SHARED_FROM = shared_from

    return run


@pytest.fixture
def same_bits(threads):
    """Assert that a function gives the same bits with 1 and 2 threads, and when it is called again."""

    def flatten(result):
        if hasattr(type(result), "tocsr"):
            result = result.data, result.indices, result.indptr
        return (
            [a for part in result for a in flatten(part)] if isinstance(result, tuple) else [result]
        )

    def check(function, *arguments):
        once, again, wide = (flatten(threads(count, function, *arguments)) for count in (1, 1, 2))
        for a, b, c in zip(once, again, wide, strict=True):
            assert np.array_equal(a, b) and np.array_equal(a, c)

    return check


def pytest_addoption(parser):
    parser.addoption(
        "--shared",
        action="store_true",
        help="all threads share every parallel region, however short",
    )
    parser.addoption(
        "--draw",
        type=int,
        default=0,
        help="other random data for all tests that draw them (default %(default)s)",
    )
    parser.addoption(
        "--attacks",
        type=int,
        default=12,
        help="random data sets for each test of test_attack.py (default %(default)s)",
    )
    parser.addoption(
        "--attack-seed", type=int, default=0, help="the first of their seeds (default %(default)s)"
    )
    parser.addoption(
        "--skipped-to", help="write the tests that were skipped to this file, a line each"
    )


def pytest_runtest_logreport(report):
    if report.skipped and not report.when == "teardown":
        skipped.append(report.nodeid)


def pytest_sessionfinish(session):
    path = session.config.getoption("--skipped-to")
    if path and not hasattr(session.config, "workerinput"):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{test}\n" for test in skipped)


def pytest_configure(config):
    if config.getoption("--shared"):
        kpcasketch._SHARED_FROM = -1.0


def pytest_collection_modifyitems(items):
    # at last: what others have compiled is on disk
    items.sort(key=lambda item: "warm_up_runs" in item.name)
