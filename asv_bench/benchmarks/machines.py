# SPDX-License-Identifier: BSD-3-Clause
"""Dask clusters on this machine: what a second worker of one thread brings, and what moves between machines.

Each measurement is a process of its own (`python -m benchmarks.machines NAME`): the workers import the main module of
the process that starts them, and asv's is not for that.
"""

import contextlib
import os
import pathlib
import subprocess
import sys

import numpy as np

import kpcasketch as kp

from .common import seconds, size, unit


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
    """How many times faster two workers are than one."""
    with clients(1, 2) as (one, two):

        def on(client):
            with client.as_current():
                work()

        alone, both = seconds(lambda: on(one), lambda: on(two), repeat=3)
    return alone / both


def features():
    X, drawn = points(size(400_000), 50), kp.fourier_features_map(kp.gaussian(7.0), 50, 1000)
    subspace = kp.Subspace(drawn, np.eye(1000, 5), np.ones(5), np.zeros(1000), 0.0, 1)
    return scaling(lambda: kp.dask_map(kp.skpca_residual, X, subspace).sum().compute())


def moments():
    X, landmarks = points(size(400_000), 50), block(99, 500, 50)
    return scaling(lambda: kp.dask_nystrom_kpca(X, landmarks, kp.gaussian(7.0), 10))


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
        kp.skpca_start(kp.fourier_features_map(kp.gaussian(4.0), 20, 1000), 50),
    )
    return moved(lambda: kp.dask_fold(X, start, kp.skpca_update, kp.skpca_merge))[1] / (
        32 * 8 * 1000 * 50
    )


def measured(function):
    """The result of one of the functions above, in a process of its own."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise NotImplementedError("dask is not installed") from None
    paths = [str(pathlib.Path(kp.__file__).parent), os.environ.get("PYTHONPATH", "")]
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.machines", function.__name__],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=pathlib.Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    return float(run.stdout.split()[-1])


class Scaling:
    timeout = 1200

    @unit("times as fast with two workers")
    def track_features(self):
        return measured(features)

    @unit("times as fast with two workers")
    def track_moments(self):
        return measured(moments)


class Communication:
    timeout = 1200

    @unit("over 32 blocks' states of m ell numbers, skpca on 2 workers")
    def track_skpca(self):
        return measured(moved_by_skpca)


if __name__ == "__main__":
    print(globals()[sys.argv[1]]())
