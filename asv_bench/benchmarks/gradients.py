# SPDX-License-Identifier: BSD-3-Clause
"""Doubly stochastic gradients against the same algorithm in NumPy with stored features, and against fixed features."""

import time

import numpy as np

import kpcasketch as kp

from .common import normal, ratio, seconds, size, unit

FEATURES, BATCH, FEATURE_BATCH, START = 8192, 512, 128, 256


def map_of(X, features, stored=False):
    return kp.fourier_features_map(
        kp.gaussian(3.0), X.shape[1], features, 0, stored=stored, paired=False
    )


class Numpy:
    """Algorithm 1 with all frequencies stored: the features of a mini-batch by BLAS and np.cos."""

    def __init__(self, map, phases, state):
        self.W, self.b, self.coef, self.used = (
            map.frequencies,
            phases,
            state.coef.copy(),
            state.used,
        )
        self.theta0, self.theta1, self.step = state.theta0, state.theta1, 0

    def features(self, X, first, last):
        return np.sqrt(2.0) * np.cos(X @ self.W[first:last].T + self.b[first:last])

    def update(self, X):
        eta, n = self.theta0 / (1 + self.theta1 * self.step), len(X)
        H = self.features(X, 0, self.used) @ self.coef[: self.used]
        self.coef[: self.used] -= eta * self.coef[: self.used] @ (H.T @ H / n)
        last = min(self.used + FEATURE_BATCH, len(self.W))
        self.coef[self.used : last] = (
            eta / (n * (last - self.used)) * self.features(X, self.used, last).T @ H
        )
        self.used, self.step = last, self.step + 1


class Pass:
    """Algorithm 1 until all 8192 features are there: 62 steps of 512 points in 10 dimensions, k = 3."""

    timeout = 900

    def setup(self):
        self.X = normal(64 * BATCH, 10)
        self.features = max(4, size(FEATURES) // FEATURE_BATCH) * FEATURE_BATCH
        self.stored, self.drawn = map_of(self.X, self.features, True), map_of(self.X, self.features)
        self.start = kp.dsgd_start(self.X[:2000], self.drawn, 3, centered=False)
        self.phases = kp._drawn(self.X, self.stored, 0, self.features, 1.0)[1]

    def ours(self, state):
        for t in range((self.features - START) // FEATURE_BATCH):
            state = kp.update(state, self.X[BATCH * t : BATCH * (t + 1)])
        return state.coef

    def numpy(self):
        run = Numpy(self.stored, self.phases, self.start)
        for t in range((self.features - START) // FEATURE_BATCH):
            run.update(self.X[BATCH * t : BATCH * (t + 1)])
        return run.coef

    @unit("time over NumPy's with stored features")
    def track_ratio_numpy(self):
        return ratio(lambda: self.ours(self.start), self.numpy, 3)

    @unit("time over NumPy's, frequencies stored here, too")
    def track_ratio_stored(self):
        return ratio(lambda: self.ours(self.start._replace(feature_map=self.stored)), self.numpy, 3)

    @unit("largest difference of coefficients from NumPy's, over the largest coefficient")
    def track_error(self):
        theirs = self.numpy()
        return float(np.abs(self.ours(self.start) - theirs).max() / np.abs(theirs).max())


class Evaluation:
    """10,000 points, or 512 where there are many coordinates; 16,384 features, k = 3."""

    timeout = 900
    params, param_names = [[10, 5625]], ["d"]

    def setup(self, d):
        self.X = normal(size(10_000), d) if d < 100 else normal(size(512), d)
        self.features = size(16_384)
        self.stored, drawn = map_of(self.X, self.features, True), map_of(self.X, self.features)
        self.state = kp.dsgd_start(self.X[:500], drawn, 3, centered=False)._replace(
            used=self.features
        )

    def numpy(self):
        for i in range(0, len(self.X), 512):
            np.sqrt(2.0) * np.cos(
                self.X[i : i + 512] @ self.stored.frequencies.T + 0.5
            ) @ self.state.coef

    @unit("time over NumPy's with stored frequencies")
    def track_ratio_numpy(self, d):
        return ratio(lambda: kp.features(self.X, self.state), self.numpy, 3)

    @unit("bytes of the state")
    def track_bytes(self, d):
        return (
            self.state.coef.nbytes
            + self.state.moment.nbytes
            + self.state.feature_map.frequencies.nbytes
        )


class Step:
    """A step against the features so far: it must not grow faster than they do."""

    timeout = 600
    params, param_names = [[1024, 4096, 16_384, 65_536]], ["features"]

    def setup(self, features):
        X = normal(2000, 10)
        self.batch = X[:BATCH]
        self.state = kp.dsgd_start(X, map_of(X, features), 3, centered=False)._replace(
            used=features
        )

    @unit("microseconds a feature")
    def track_time(self, features):
        return 1e6 * seconds(lambda: kp.update(self.state, self.batch), repeat=5)[0] / features


class Correlations:
    """A step of canonical correlations: 1024 points of 392 coordinates in each view, 20,480 features, k = 50."""

    timeout = 900
    k, block = 50, 2048

    def setup(self):
        self.views, self.features = (normal(1024, 392), normal(1024, 392, 1)), size(20_480)
        self.stored, self.drawn = (self.state(stored) for stored in (True, False))

    def state(self, stored):
        maps = [
            kp.fourier_features_map(
                kp.gaussian(28.0), 392, self.features, seed, stored=stored, paired=False
            )
            for seed in (0, 1)
        ]
        steps = kp.DSGDSteps(feature_batch=min(self.block, self.features // 2))
        start = kp.dsgd_kcca_start(*self.views, *maps, self.k, steps=steps, lam=1e-4)
        return start._replace(used=self.features, step=10)

    def step(self, state):
        return kp.update(state, *self.views)

    @unit("time over dgemm's for the products of both views with frequencies and coefficients")
    def track_ratio_dgemm(self):
        products = 2 * (1 + self.k / 392)
        points, frequencies = self.views[0], self.stored.feature_map.frequencies
        dgemm, ours = seconds(lambda: points @ frequencies.T, lambda: self.step(self.stored))
        return ours / (products * dgemm)

    @unit("time with frequencies drawn anew over that with stored ones")
    def track_ratio_drawn(self):
        return ratio(lambda: self.step(self.drawn), lambda: self.step(self.stored))


class TimeToPotential:
    """Seconds until sin^2 of the largest angle to the top three eigenfunctions of the normal law is below .001.

    Fixed features take the smallest of 256, 512, ... that reach it on 50,000 points. IncrementalPCA centres, which the
    functions do not: it sees each row of features and its negative.
    """

    timeout = 900
    target, k = 1e-3, 3

    def setup(self):
        self.X = np.random.default_rng(0).standard_normal((size(50_000), 1))
        x, w = np.polynomial.hermite_e.hermegauss(60)
        self.nodes, self.root = x[:, None], np.sqrt(w / w.sum())[:, None]
        # The operator at the nodes of a quadrature that is exact up to degree 119.
        K = np.exp(-0.5 * (self.nodes - self.nodes.T) ** 2)
        self.truth = np.linalg.eigh(self.root * K * self.root.T)[1][:, -self.k :]

    def potential(self, values):
        Q = np.linalg.qr(self.root * values)[0]
        return 1 - np.linalg.svd(Q.T @ self.truth, compute_uv=False)[-1] ** 2

    def gradients(self):
        kernel = kp.gaussian(1.0)
        state = kp.dsgd_start(
            self.X[:2000],
            kp.fourier_features_map(kernel, 1, 16_384, 0, stored=False, paired=False),
            self.k,
            centered=False,
        )
        for t in range(len(self.X) // BATCH):
            state = kp.update(state, self.X[BATCH * t : BATCH * (t + 1)])
            if t % 4 == 3 and self.potential(kp.features(self.nodes, state)) < self.target:
                return True
        return False

    def fixed(self, fit):
        for m in (256, 512, 1024, 2048):
            if (
                self.potential(
                    fit(kp.fourier_features_map(kp.gaussian(1.0), 1, m, 0, paired=False))
                )
                < self.target
            ):
                return True
        return False

    def streamed(self, map):
        state = kp.skpca_start(map, 20, centered=False)
        return kp.features(self.nodes, kp.finish(kp.update(state, self.X), self.k))

    def incremental(self, map):
        from sklearn.decomposition import IncrementalPCA

        peer, rows = IncrementalPCA(self.k), max(1000, map.m)
        for begin in range(0, len(self.X), rows):
            Z = kp.features(self.X[begin : begin + rows], map)
            peer.partial_fit(np.concatenate([Z, -Z]))
        return kp.features(self.nodes, map) @ peer.components_.T

    def time(self, run):
        run()
        start = time.perf_counter()
        return time.perf_counter() - start if run() else float("nan")

    @unit("seconds")
    def track_gradients(self):
        return self.time(self.gradients)

    @unit("seconds")
    def track_skpca(self):
        return self.time(lambda: self.fixed(self.streamed))

    @unit("seconds")
    def track_incremental(self):
        return self.time(lambda: self.fixed(self.incremental))
