# SPDX-License-Identifier: BSD-3-Clause
"""Regression in a learned metric, beside the same regression without one and scikit-learn's gradient boosting.

Points are standardized, four fifths are for training, and the bandwidth is their median distance. `sin` is y =
sin(2 x_0) x_1 in 20 coordinates. The sets of KPCASKETCH_DATA are there if the folder is.
"""

import itertools
import pathlib

import numpy as np

import kpcasketch as kp

from .advice import FOLDER
from .common import measured_once, normal, of, seconds, size, unit

DATA = [
    "sin",
    *(
        name
        for name in ("cpu_act.npz", "sarcos_test.npz")
        if FOLDER and (pathlib.Path(FOLDER) / name).exists()
    ),
]
METHODS = ["learn_metric", "nystrom_ridge", "HistGradientBoosting"]
LAM = 1e-2


def split(name):
    """Training points, targets, new points, targets: standardized by those for training."""
    if name == "sin":
        X = normal(size(3750), 20)
        Y = (np.sin(2 * X[:, 0]) * X[:, 1])[:, None]
    else:
        with np.load(pathlib.Path(FOLDER) / name) as arrays:
            X, Y = arrays["X"].astype(float), arrays["y"].astype(float)
        rows = np.random.default_rng(0).permutation(len(X))[: size(8192)]
        X, Y = X[rows], Y.reshape(len(Y), -1)[rows]
    n = len(X) * 4 // 5
    X, Y = ((A - A[:n].mean(0)) / A[:n].std(0) for A in (X, Y))
    return X[:n].copy(), Y[:n].copy(), X[n:].copy(), Y[n:].copy()


def plain(X, Y, kernel):
    return kp.nystrom_ridge(
        X, Y, kp.rpcholesky(X, kernel, size(1000)), kernel, LAM, intercept=False
    )


def predicted(method, X, Y, new):
    kernel = kp.gaussian(kp.median_bandwidth(X))
    if method == "learn_metric":
        M, model, _ = kp.learn_metric(X, Y, kernel, LAM, s=size(1000))
        return kp.features(kp.scale_points(new, M), model)
    if method == "nystrom_ridge":
        return kp.features(new, plain(X, Y, kernel))
    from sklearn.ensemble import HistGradientBoostingRegressor

    return np.column_stack(
        [HistGradientBoostingRegressor(random_state=0).fit(X, y).predict(new) for y in Y.T]
    )


class LearnedMetric:
    params = [DATA, METHODS]
    param_names = ["data", "method"]
    timeout = 600

    def measured(self, name, method):
        """1 - R^2 on new points, and seconds to fit and predict."""
        X, Y, new, wanted = split(name)
        F = predicted(method, X, Y, new)
        gaps = np.square(F - wanted).sum() / np.square(wanted - wanted.mean(0)).sum()
        (taken,) = seconds(lambda: predicted(method, X, Y, new), repeat=1)
        return float(gaps), taken

    def setup_cache(self):
        return measured_once(self.measured, itertools.product(*self.params))

    setup_cache.timeout = 1200

    @unit("1 - R^2 on new points")
    def track_error(self, found, data, method):
        return of(found, data, method)[0]

    @unit("seconds")
    def track_seconds(self, found, data, method):
        return of(found, data, method)[1]


class Round:
    """Time of a round of `learn_metric` over that of `nystrom_ridge` on given landmarks: below 2 was asked."""

    params = [DATA]
    param_names = ["data"]
    timeout = 600

    def measured(self, name):
        X, Y, *_ = split(name)
        kernel, s = kp.gaussian(kp.median_bandwidth(X)), size(1000)
        landmarks = kp.rpcholesky(X, kernel, s)
        ridge, one, four = seconds(
            lambda: kp.nystrom_ridge(X, Y, landmarks, kernel, LAM, intercept=False),
            lambda: kp.learn_metric(X, Y, kernel, LAM, s, max_iterations=1),
            lambda: kp.learn_metric(X, Y, kernel, LAM, s, max_iterations=4),
            repeat=3,
        )
        return (four - one) / 3 / ridge

    def setup_cache(self):
        return measured_once(self.measured, itertools.product(*self.params))

    setup_cache.timeout = 1200

    @unit("time over nystrom_ridge's")
    def track_round(self, found, data):
        return of(found, data)


class Gradient:
    """Gradients of ten components at 5000 points over 2000 landmarks: error against differences, and time."""

    params = [["gaussian", "laplacian"]]
    param_names = ["kernel"]

    def setup(self, kernel):
        self.X = normal(size(5000), 20)
        made = getattr(kp, kernel)(6.0)
        coef = normal(size(2000), 10, 1)
        self.model = kp.Expansion(normal(size(2000), 20, 2), coef, np.ones(10), made)
        kp.gradient(self.X, self.model)
        kp.relevance(self.X, self.model)

    def time_gradient(self, kernel):
        kp.gradient(self.X, self.model)

    def time_relevance(self, kernel):
        kp.relevance(self.X, self.model)

    @unit("largest error / largest derivative")
    def track_error(self, kernel):
        few, step = self.X[:50], 1e-5 * np.eye(20)
        rise = [kp.features(few + e, self.model) - kp.features(few - e, self.model) for e in step]
        exact = np.stack(rise, -1) / 2e-5
        return float(np.abs(kp.gradient(few, self.model) - exact).max() / np.abs(exact).max())
