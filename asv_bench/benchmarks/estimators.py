# SPDX-License-Identifier: BSD-3-Clause
"""Estimators for scikit-learn beside its own: a single row, regression over landmarks, false alarms."""

import numpy as np
from scipy import signal

import kpcasketch as kp

from .common import normal, ratio, size, unit


class SingleRow:
    """`transform` of one row by 300 landmarks, d = 16, beside `Nystroem`."""

    params = [None, 10]
    param_names = ["n_components"]

    def setup(self, components):
        from sklearn.kernel_approximation import Nystroem

        X = normal(size(5000), 16)
        self.row = X[:1].copy()
        self.ours = kp.LandmarkFeatures(300, components, sigma=4.0).fit(X)
        self.peer = Nystroem(gamma=1.0 / 32.0, n_components=300, random_state=0).fit(X)

    @unit("time over Nystroem.transform's")
    def track_ratio(self, components):
        def often(transform):
            return lambda: [transform(self.row) for _ in range(100)]

        return ratio(often(self.ours.transform), often(self.peer.transform))


class Regression:
    """`LandmarkRidge` beside a pipeline of `Nystroem` and `Ridge` with the same number of uniform landmarks."""

    timeout = 600

    def setup(self):
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline

        self.X = normal(size(200_000), 16)
        noise = 0.1 * np.random.default_rng(1).standard_normal(len(self.X))
        self.y = np.sin(self.X[:, 0]) + 0.3 * self.X[:, 1] ** 2 + noise
        self.ours = kp.LandmarkRidge(300, 1.0, sigma=4.0, sampler="uniform")
        self.peer = make_pipeline(
            Nystroem(gamma=1.0 / 32.0, n_components=300, random_state=0), Ridge(1.0)
        )

    @unit("time over the pipeline's")
    def track_ratio(self):
        return ratio(
            lambda: self.ours.fit(self.X, self.y), lambda: self.peer.fit(self.X, self.y), repeat=3
        )

    def peakmem_ours(self):
        self.ours.fit(self.X, self.y)

    def peakmem_peer(self):
        self.peer.fit(self.X, self.y)

    def error(self, model):
        fitted = model.fit(self.X, self.y)
        new = normal(5000, 16, 2)
        clean = np.sin(new[:, 0]) + 0.3 * new[:, 1] ** 2
        return float(np.sqrt(np.mean((fitted.predict(new) - clean) ** 2)))

    @unit("root mean squared error")
    def track_error_ours(self):
        return self.error(self.ours)

    @unit("root mean squared error")
    def track_error_peer(self):
        return self.error(self.peer)


class FalseAlarms:
    """False alarms of `NoveltyDetector`, 5 % asked; the same in blocks of 600 points of a first-order autoregression,
    each tested before it is learned; and the share missed of points 3 away in each coordinate."""

    def setup(self):
        self.detector = kp.NoveltyDetector(100).fit(normal(size(5000), 8))

    @unit("share")
    def track_false_alarms(self):
        return float((self.detector.predict(normal(20_000, 8, 1)) < 0).mean())

    @unit("share")
    def track_false_alarms_in_time(self):
        blocks = size(12_000) // 600 + 5
        noise = normal(600 * blocks, 4, 3) * np.sqrt(1.0 - 0.99**2)
        points = signal.lfilter([1.0], [1.0, -0.99], noise, axis=0)
        detector, alarms = kp.NoveltyDetector(100), []
        for number, block in enumerate(np.split(points, blocks)):
            if number >= 3:
                alarms.append((detector.predict(block) < 0).mean())
            detector.partial_fit(block)
        return float(np.mean(alarms))

    @unit("share")
    def track_missed(self):
        return float((self.detector.predict(normal(20_000, 8, 2) + 3.0) >= 0).mean())


class Classes:
    """`LandmarkClassifier` with a chosen ridge beside a pipeline of `Nystroem` and `RidgeClassifierCV`: 300 landmarks,
    10,000 points around ten curves in 32 dimensions, one for each class."""

    timeout = 600

    def setup(self):
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import RidgeClassifierCV
        from sklearn.pipeline import make_pipeline

        n = size(10_000)
        self.y = np.arange(n) % 10
        place = np.random.default_rng(1).uniform(0.0, 3.0, (n, 1))
        curves = normal(40, 32, 2).reshape(4, 10, 32)
        waves = [np.ones_like(place), place, np.sin(2.0 * place), np.cos(3.0 * place)]
        self.X = sum(wave * curve[self.y] for wave, curve in zip(waves, curves))
        self.X += 2.5 * normal(n, 32, 3)
        self.ours = kp.LandmarkClassifier(300, "auto", sigma=16.0)
        gamma = 1.0 / 512.0
        peer = Nystroem(gamma=gamma, n_components=300, random_state=0)
        self.peer = make_pipeline(peer, RidgeClassifierCV(np.logspace(-3.0, 3.0, 13)))

    def error(self, model):
        half = len(self.X) // 2
        fitted = model.fit(self.X[:half], self.y[:half])
        return float((fitted.predict(self.X[half:]) != self.y[half:]).mean())

    @unit("time over the pipeline's")
    def track_ratio(self):
        return ratio(
            lambda: self.ours.fit(self.X, self.y), lambda: self.peer.fit(self.X, self.y), repeat=3
        )

    @unit("share of new points")
    def track_error_ours(self):
        return self.error(self.ours)

    @unit("share of new points")
    def track_error_peer(self):
        return self.error(self.peer)


class StreamedComponents:
    """`StreamingKernelPCA` beside `IncrementalPCA` on features of `RBFSampler`: ten components of 20,000 points in 16
    dimensions, 1000 random features, blocks of 2000."""

    timeout = 600

    def setup(self):
        from sklearn.decomposition import IncrementalPCA
        from sklearn.kernel_approximation import RBFSampler

        scales = 0.8 ** np.arange(16)
        self.blocks = np.split(normal(size(20_000) // 10 * 10, 16) * scales, 10)
        self.new = normal(1000, 16, 1) * scales
        self.sampler = RBFSampler(gamma=1.0 / 8.0, n_components=1000, random_state=0)
        self.sampler.fit(self.new)
        self.pca = IncrementalPCA

    def ours(self):
        model = kp.StreamingKernelPCA(10, 1000, 40, sigma=2.0)
        for block in self.blocks:
            model.partial_fit(block)
        return model.transform(self.new)

    def peer(self):
        pca = self.pca(10)
        for block in self.blocks:
            pca.partial_fit(self.sampler.transform(block))
        return pca.transform(self.sampler.transform(self.new))

    @unit("time over IncrementalPCA's")
    def track_ratio(self):
        return ratio(self.ours, self.peer, repeat=3)

    def error(self, Z):
        """|H K H - Z Z^T| / |H K H| of new points, whose mean is subtracted."""
        K = kp.gram(self.new, self.new, kp.gaussian(2.0))
        K = kp.dense(kp.center(K))
        Z = Z - Z.mean(0)
        return float(np.linalg.norm(K - Z @ Z.T, 2) / np.linalg.norm(K, 2))

    @unit("|K - Z Z^T| / |K|")
    def track_error_ours(self):
        return self.error(self.ours())

    @unit("|K - Z Z^T| / |K|")
    def track_error_peer(self):
        return self.error(self.peer())
