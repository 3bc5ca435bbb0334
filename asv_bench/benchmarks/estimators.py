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
