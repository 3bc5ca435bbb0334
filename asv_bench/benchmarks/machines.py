# SPDX-License-Identifier: BSD-3-Clause
"""More threads and machines than this one has: serial shares, and Dask clusters.

Each measurement is a process of its own (`python -m benchmarks.machines NAME`). Dask's workers import the main module
of the process that starts them, and asv's is not for that. Serial shares need one thread of BLAS from the start.
`python -m benchmarks.machines shares` prints the table of serial shares.
"""

import ast
import collections
import contextlib
import functools
import inspect
import json
import os
import pathlib
import subprocess
import sys
import textwrap
import time

import numba
import numpy as np

import kpcasketch as kp

from .common import normal, seconds, size, unit


def block(seed, rows, d):
    return np.random.default_rng(seed).standard_normal((rows, d))


def points(n, d, blocks=32):
    """A dask array whose blocks are made by the workers."""
    import dask
    import dask.array as da

    rows, make = n // blocks, dask.delayed(block, pure=False)
    return da.concatenate(
        [da.from_delayed(make(seed, rows, d), (rows, d), float) for seed in range(blocks)]
    )


@contextlib.contextmanager
def clients(*workers):
    """A client of a cluster of so many workers of one thread, for each number; all of them are there at once."""
    import distributed

    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                distributed.Client(
                    stack.enter_context(
                        distributed.LocalCluster(
                            n_workers=number,
                            threads_per_worker=1,
                            dashboard_address=":0",
                            silence_logs=50,
                        )
                    )
                )
            )
            for number in workers
        ]


def scaling(work):
    """The time of two workers over that of one."""
    with clients(1, 2) as (one, two):

        def on(client):
            with client.as_current():
                work()

        alone, both = seconds(lambda: on(one), lambda: on(two), repeat=3)
    return both / alone


def features():
    X, drawn = points(size(400_000), 50), kp.fourier_features_map(kp.gaussian(7.0), 50, 1000)
    subspace = kp.Subspace(drawn, np.eye(1000, 5), np.ones(5), np.zeros(1000), 0.0, 1)
    return scaling(lambda: kp.dask_map(kp.residual, X, subspace).sum().compute())


def moments():
    X, landmarks = points(size(400_000), 50), block(99, 500, 50)
    return scaling(lambda: kp.dask_nystrom_kpca(X, landmarks, kp.gaussian(7.0), 10, centered=False))


def moved(work):
    """Bytes that two workers send, to each other and to the caller, in the second call; and its result."""
    with clients(2) as (client,), client.as_current():

        def sent():
            return sum(
                client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values()
            )

        work()
        before = sent()
        return work(), sent() - before


def moved_by_skpca():
    X, start = (
        points(size(100_000), 20),
        kp.skpca_start(kp.fourier_features_map(kp.gaussian(4.0), 20, 1000), 50, centered=False),
    )
    return moved(lambda: kp.dask_fold(X, start))[1] / (32 * 8 * 1000 * 50)


def in_a_process(name, *arguments, **environment):
    """What `python -m benchmarks.machines name` prints last."""
    paths = [str(pathlib.Path(kp.__file__).parent), os.environ.get("PYTHONPATH", "")]
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.machines", name, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=pathlib.Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
    )
    return run.stdout.splitlines()[-1]


def measured(function):
    """The result of one of the functions above, in a process of its own."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise NotImplementedError("dask is not installed") from None
    return float(in_a_process(function.__name__))


class Scaling:
    timeout = 1200

    @unit("time of two workers over that of one")
    def track_features(self):
        return measured(features)

    @unit("time of two workers over that of one")
    def track_moments(self):
        return measured(moments)


class Communication:
    timeout = 1200

    @unit("over 32 blocks' states of m ell numbers, skpca on 2 workers")
    def track_skpca(self):
        return measured(moved_by_skpca)


# Serial shares: the time of a call between its shared loops, at one thread of Numba and of BLAS.


@functools.cache
def cloud(n, d):
    return normal(n, d, seed=d)


@functools.cache
def one_bit(n):
    return kp.quantize_gram(cloud(n, 10), kernel(10))


def kernel(d):
    return kp.gaussian(d**0.5)


def square(n, d):
    return kp.gram(cloud(n, d), cloud(n, d), kernel(d))


def product(n, d):
    return kp.gram_matmat(cloud(n, d), cloud(n, d), cloud(n, 1), kernel(d))


def factor(s):
    n = size(100_000)
    return kp.nystrom(cloud(n, 50), np.arange(min(s, n)), kernel(50))


def ridge():
    n = size(100_000)
    landmarks = np.arange(min(1500, n))
    return kp.nystrom_ridge(
        cloud(n, 10), cloud(n, 1)[:, 0].copy(), landmarks, kernel(10), 1.0, intercept=False
    )


def ridge_by_gradients():
    n = size(10_000)
    return kp.kernel_ridge(
        cloud(n, 10), cloud(n, 1)[:, 0].copy(), kernel(10), 0.01, intercept=False
    )


WORKS = {
    "gram, 16,000 x 8": lambda: square(size(16_000), 8),
    "gram, 16,000 x 128": lambda: square(size(16_000), 128),
    "gram_matmat, 32,000 x 3": lambda: product(size(32_000), 3),
    "gram_matmat, 32,000 x 54": lambda: product(size(32_000), 54),
    "nystrom, 100,000 x 50, s = 500": lambda: factor(size(500)),
    "nystrom, 100,000 x 50, s = 2000": lambda: factor(size(2000)),
    "nystrom_ridge, 100,000 x 10, s = 1500": ridge,
    "kmeans_select, 100,000 x 10, 100 centers": lambda: kp.kmeans_select(
        cloud(size(100_000), 10), 100 if size(1000) > 100 else 20
    ),
    "kpca, 8000 x 10": lambda: kp.kpca(cloud(size(8000), 10), kernel(10), 10, centered=False),
    "kpca, 16,000 x 10": lambda: kp.kpca(cloud(size(16_000), 10), kernel(10), 10, centered=False),
    "1-bit matrix, 32,768 rows, times 16 vectors": lambda: kp.matmat(
        one_bit(size(32_768)), cloud(size(32_768), 16)
    ),
    "kernel_ridge, 10,000 x 10": ridge_by_gradients,
    "rpcholesky, 100,000 x 10, s = 500": lambda: kp.rpcholesky(
        cloud(size(100_000), 10), kernel(10), size(500)
    ),
    "nystrom_to, 20,000 x 10, error .01": lambda: kp.nystrom_to(
        cloud(size(20_000), 10), kernel(10), 0.01
    ),
    "shadow_select, 100,000 x 16, eps = 5": lambda: kp.shadow_select(cloud(size(100_000), 16), 5.0),
    "dsgd_kpca, 20,000 x 10, 4096 features": lambda: kp.dsgd_kpca(
        cloud(size(20_000), 10), kernel(10), 5, size(4096), centered=False
    ),
    "frequent_directions, 20,000 x 2000, ell = 50": lambda: kp.frequent_directions(
        cloud(size(20_000), size(2000)), 50
    ),
    "skpca, 50,000 x 50, m = 2000, ell = 50": lambda: kp.skpca(
        cloud(size(50_000), 50), kernel(50), 5, size(2000), 50, centered=False
    ),
    "recursive_rls_accelerated, 100,000 x 10, s = 500": lambda: kp.recursive_rls_accelerated(
        cloud(size(100_000), 10), kernel(10), size(500)
    ),
    "compress_thin, 100,000 x 4, 316 points": lambda: kp.compress_thin(
        cloud(size(100_000), 4), kernel(4), size(316)
    ),
}


def length_of(core):
    """A function of a core's arguments: how many tasks its loop over `prange` has."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(core.__wrapped__)))
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    loop = next(node for node in loops if getattr(node.func, "id", "") == "prange")
    code = compile(ast.Expression(loop.args[0]), "length", "eval")
    names = {name: getattr(value, "py_func", value) for name, value in vars(kp).items()}
    signature = inspect.signature(core.__wrapped__)
    return lambda arguments: int(eval(code, names, signature.bind(*arguments).arguments))


@contextlib.contextmanager
def noted():
    """Loops (name, seconds, tasks) that are shared, and seconds of other cores and of LAPACK."""
    loops = []
    others = collections.Counter()
    shared = []
    before = {name: core for name, core in vars(kp).items() if hasattr(core, "twins")}
    run = kp._run
    solvers = {name: getattr(np.linalg, name) for name in ("eigh", "svd", "qr", "pinv", "lstsq")}

    def with_tasks(name, core):
        length = length_of(core)

        def call(work, *arguments):
            if work <= kp._SHARED_FROM:
                return core(work, *arguments)
            tasks = length(arguments)
            shared.append(name)
            begun = time.process_time()
            try:
                return core(work, *arguments)
            finally:
                loops.append((name, time.process_time() - begun, tasks))
                shared.pop()

        return call

    def timed(name, function):
        def call(*arguments, **by_name):
            begun = time.process_time()
            try:
                return function(*arguments, **by_name)
            finally:
                others[name] += time.process_time() - begun

        return call

    def alone(function, *arguments):
        core = functools.partial(run, function)
        return (core if shared else timed(function.__name__, core))(*arguments)

    try:
        for name, core in before.items():
            setattr(kp, name, with_tasks(name, core))
        kp._run = alone
        for name, solver in solvers.items():
            setattr(np.linalg, name, timed(f"LAPACK's {name}", solver))
        yield loops, others
    finally:
        for name, core in before.items():
            setattr(kp, name, core)
        kp._run = run
        for name, solver in solvers.items():
            setattr(np.linalg, name, solver)


def shares_of(work):
    """Of the fastest of three calls: seconds, shared loops, and seconds of what else is known."""
    numba.set_num_threads(1)
    WORKS[work]()
    calls = []
    for _ in range(3):
        with noted() as (loops, others):
            begun = time.process_time()
            WORKS[work]()
            taken = time.process_time() - begun
        single = collections.Counter()
        for name, spent, tasks in loops:
            if tasks == 1:
                single[f"{name}, one task"] += spent
        calls.append((taken, [loop[1:] for loop in loops if loop[2] > 1], others + single))
    return min(calls, key=lambda call: call[0])


def share(taken, loops, others):
    """The part of the time that is not spent in shared loops."""
    return 1.0 - sum(spent for spent, _ in loops) / taken


def times_one_thread(taken, loops, others, threads):
    """Amdahl's law: serial time stays, and the longest run of equal tasks in each loop is waited for."""
    rest = share(taken, loops, others) * taken
    longest = sum(spent * -(-tasks // threads) / tasks for spent, tasks in loops)
    return taken / (rest + longest)


def shares():
    """Print the table of MEASURED.md."""
    print("| call | seconds, one thread | serial | most of it | 16 threads | 64 threads |")
    print("|---" * 6 + "|")
    for work in WORKS:
        found = shares_of(work)
        taken, loops, others = found
        rest = share(*found) * taken
        parts = {**others, "Python and NumPy": rest - sum(others.values())}
        largest = sorted(parts.items(), key=lambda part: -part[1])[:2]
        what = ", ".join(f"{name} {spent / taken:.1%}" for name, spent in largest)
        laws = [f"{times_one_thread(*found, threads):.1f}" for threads in (16, 64)]
        print(f"| {work} | {taken:.3g} | {rest / taken:.1%} | {what} |", *(f"{x} |" for x in laws))


def serial_shares():
    print(json.dumps({work: shares_of(work) for work in WORKS}))


class SerialShare:
    params, param_names, timeout = list(WORKS), ["work"], 1200

    def setup_cache(self):
        return json.loads(in_a_process("serial_shares", OPENBLAS_NUM_THREADS="1"))

    @unit("part of a call's time")
    def track_share(self, found, work):
        return share(*found[work])

    @unit("time of 16 threads over that of one, by Amdahl's law")
    def track_sixteen_threads(self, found, work):
        return 1.0 / times_one_thread(*found[work], 16)

    @unit("time of 64 threads over that of one, by Amdahl's law")
    def track_many_threads(self, found, work):
        return 1.0 / times_one_thread(*found[work], 64)


if __name__ == "__main__":
    found = globals()[sys.argv[1]]()
    if found is not None:
        print(found)
