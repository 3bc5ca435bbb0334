# SPDX-License-Identifier: BSD-3-Clause
"""Dask clusters on this machine: what a second worker of one thread brings, and what moves between machines."""

import contextlib

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
    return da.concatenate([da.from_delayed(make(seed, rows, d), (rows, d), float) for seed in range(blocks)])


class Scaling:
    """One worker against two, in turn: both clusters are there all the time."""
    timeout = 1200

    def setup(self):
        try:
            import distributed
        except ImportError:
            raise NotImplementedError("dask is not installed") from None
        self.stack = contextlib.ExitStack()
        self.clients = []
        for workers in (1, 2):
            cluster = distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
            self.clients.append(self.stack.enter_context(distributed.Client(self.stack.enter_context(cluster))))

    def teardown(self):
        self.stack.close()

    def ratio(self, work):
        def on(client):
            with client.as_current():
                work()
        one, two = seconds(lambda: on(self.clients[0]), lambda: on(self.clients[1]), repeat=3)
        return one / two

    @unit("times as fast with two workers")
    def track_features(self):
        X, drawn = points(size(400_000), 50), kp.fourier_features_map(kp.gaussian(7.0), 50, 1000)
        return self.ratio(lambda: kp.dask_map(kp.skpca_residual, X, kp.Subspace(drawn, np.eye(1000, 5), np.ones(5), np.zeros(1000), 0.0, 1))
                          .sum().compute())

    @unit("times as fast with two workers")
    def track_moments(self):
        X, kernel = points(size(400_000), 50), kp.gaussian(7.0)
        landmarks = block(99, 500, 50)
        return self.ratio(lambda: kp.dask_nystrom_kpca(X, landmarks, kernel, 10))

    @unit("times as fast with two workers")
    def track_one_bit(self):
        X, kernel = points(size(64_000), 50, 8), kp.gaussian(7.0)
        return self.ratio(lambda: kp.dask_quantize_gram(X, kernel))


class Communication:
    """Bytes that workers send, to each other and to the caller, over what the docstring says."""
    timeout = 1200
    setup, teardown = Scaling.setup, Scaling.teardown

    @staticmethod
    def moved(client, work):
        def sent():
            return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())
        with client.as_current():
            work()
            before = sent()
            found = work()
            return sent() - before, found

    @unit("over 32 blocks' states of m ell numbers, skpca on 2 workers")
    def track_skpca(self):
        X = points(size(100_000), 20)
        moved, _ = self.moved(self.clients[1], lambda: kp.dask_skpca(X, kp.gaussian(4.0), 1000, 50, 5))
        return moved / (32 * 8 * 1000 * 50)

    @unit("over n^2 / 8, one-bit matrix on 2 workers")
    def track_one_bit(self):
        X = points(size(32_000), 20, 8)
        moved, found = self.moved(self.clients[1], lambda: kp.dask_quantize_gram(X, kp.gaussian(4.0)))
        return moved / (found.n**2 / 8)

    @unit("over 8 n p, a product on 2 workers")
    def track_product(self):
        A = []
        with self.clients[1].as_current():
            A.append(kp.dask_quantize_gram(points(size(32_000), 20, 8), kp.gaussian(4.0)))
        V = block(0, A[0].n, 16)
        moved, _ = self.moved(self.clients[1], lambda: kp.dask_matmat(A[0], V))
        A.clear()
        return moved / V.nbytes
