# SPDX-License-Identifier: BSD-3-Clause
"""Bandwidth and ridge by leave-one-out: 200 pairs against scikit-learn's search over folds, error on new points beside
time."""

import os
import pathlib
import time

import numpy as np

import kpcasketch as kp

from .common import measured_once, normal, of, size, unit

FOLDER = os.environ.get("KPCASKETCH_DATA")


def waves(n):
    rng = np.random.default_rng(0)
    X = rng.random((n, 3))
    y = np.sin(6 * np.pi * X[:, 0]) * np.cos(4 * np.pi * X[:, 1])
    return X, y + 0.25 * normal(n, 1, 1)[:, 0]


def made(name):
    """Points and targets, standardized, in random order. Real ones are in KPCASKETCH_DATA."""
    if name == "waves":
        return waves(2 * size(20_000))
    with np.load(pathlib.Path(FOLDER) / name) as arrays:
        X, y = arrays["X"].astype(float), arrays["y"].astype(float)
    order = np.random.default_rng(0).permutation(len(X))
    X = X[order][:, X.std(0) > 0]
    return np.ascontiguousarray((X - X.mean(0)) / X.std(0)), y[order]


def share(model_values, y):
    return float(np.square(model_values - y).sum() / np.square(y - y.mean(0)).sum())


class Choose:
    """Half of the points; the other half tests."""

    params = [["waves", "cpu_act.npz", "qm7_coulomb.npz", "sarcos_test.npz"]]
    param_names = ["data"]
    timeout = 1200

    def measured(self, name):
        """Seconds; errors: estimated, on new points, and on new points with the median distance and its best ridge."""
        if name != "waves" and not (FOLDER and (pathlib.Path(FOLDER) / name).exists()):
            raise NotImplementedError
        X, y = made(name)
        n = len(X) // 2
        landmarks = kp.uniform_landmarks(n, min(500, n // 4))
        kernel = kp.gaussian(kp.median_bandwidth(X[:n]))
        kp.choose(X[:n], y[:n], landmarks, kernel)  # compiled
        start = time.perf_counter()
        found = kp.choose(X[:n], y[:n], landmarks, kernel)
        seconds = time.perf_counter() - start
        errors = [
            share(
                kp.features(
                    X[n:], kp.nystrom_ridge(X[:n], y[:n], landmarks, by, lam, intercept=True)
                ),
                y[n:],
            )
            for by, lam in (
                (found.kernel, found.lam),
                (kernel, found.lams[4, found.errors[4].argmin()]),
            )
        ]
        return seconds, found.error, *errors

    def setup_cache(self):
        return measured_once(self.measured, [(name,) for name in self.params[0]])

    setup_cache.timeout = 1200

    def setup(self, found, data):
        of(found, data)  # asv skips data that are not there

    @unit("s for 200 pairs")
    def track_seconds(self, found, data):
        return of(found, data)[0]

    @unit("share of the variance, estimated")
    def track_estimate(self, found, data):
        return of(found, data)[1]

    @unit("share of the variance, new points")
    def track_error(self, found, data):
        return of(found, data)[2]

    @unit("share of the variance, new points, median distance")
    def track_error_of_median(self, found, data):
        return of(found, data)[3]


class Search:
    """scikit-learn: RidgeCV (leave-one-out, 20 ridges) on Nystroem features with the same landmarks, ten bandwidths."""

    timeout = 1200

    def measured(self):
        """Our time, and our error on new points, over theirs."""
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline

        X, y = waves(2 * size(20_000))
        n, median = len(X) // 2, kp.median_bandwidth(X[: len(X) // 2])
        landmarks, kernel = kp.uniform_landmarks(n, min(500, n // 4)), kp.gaussian(median)
        kp.choose(X[:n], y[:n], landmarks, kernel)
        start = time.perf_counter()
        found = kp.choose(X[:n], y[:n], landmarks, kernel)
        ours = time.perf_counter() - start
        model = kp.nystrom_ridge(X[:n], y[:n], landmarks, found.kernel, found.lam, intercept=True)
        start = time.perf_counter()
        best = None
        for factor in found.factors:
            nystroem = Nystroem(
                gamma=0.5 / (factor * median) ** 2, n_components=landmarks.indices.size
            )
            alphas = n * 10.0 ** np.arange(-9.5, 0.1, 0.5)
            peer = make_pipeline(nystroem, RidgeCV(alphas)).fit(X[:n], y[:n])
            if best is None or peer[-1].best_score_ > best[-1].best_score_:
                best = peer
        theirs = time.perf_counter() - start
        errors = share(kp.features(X[n:], model), y[n:]), share(best.predict(X[n:]), y[n:])
        return ours / theirs, errors[0] / errors[1]

    def setup_cache(self):
        return measured_once(self.measured, [()])

    setup_cache.timeout = 1200

    @unit("time over scikit-learn's")
    def track_ratio(self, found):
        return of(found)[0]

    @unit("error over scikit-learn's")
    def track_error_ratio(self, found):
        return of(found)[1]
