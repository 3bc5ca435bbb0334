# SPDX-License-Identifier: BSD-3-Clause
"""What `advise` predicts for the method that it recommends, over what then happens.

Data sets of KPCASKETCH_DATA, a directory of .npz files with an array X, stand in for the made ones where they are
there.
"""

import os
import pathlib
import time

import numpy as np

import kpcasketch as kp

from .common import normal, size, unit


def made(name):
    rng, n = np.random.default_rng(0), size(20_000)
    X = normal(n, 6)
    return {"normal": X, "clusters": X + 6.0 * rng.standard_normal((30, 6))[rng.integers(30, size=n)],
            "tails": X * rng.gamma(1.0, 1.0, (n, 1)), "uniform": rng.random((n, 3)),
            "wide": normal(n, 60) * 0.9 ** np.arange(60)}[name]


def real(path):
    with np.load(path) as arrays:
        X = arrays["X"][:size(20_000)].astype(float)
    return np.ascontiguousarray((X - X.mean(0))[:, X.std(0) > 0] / X.std(0)[X.std(0) > 0])


FOLDER = os.environ.get("KPCASKETCH_DATA")
NAMES = sorted(path.name
               for path in pathlib.Path(FOLDER).glob("*.npz")) if FOLDER else ["normal", "clusters", "tails", "uniform",
                                                                               "wide"]


class Advice:
    params = [NAMES, [1e-2, 1e-3]]
    param_names = ["data", "error"]
    timeout = 900

    def setup(self, data, error):
        self.X = real(pathlib.Path(FOLDER) / data) if FOLDER else made(data)
        self.kernel = kp.gaussian(kp.median_bandwidth(self.X))

    def happened(self, error):
        """(advice, seconds, error) of the method that is recommended."""
        best = kp.advise(self.X, self.kernel, error)[0]
        if best.method in kp._LANDMARK_METHODS:
            def make():
                found = kp._LANDMARK_METHODS[best.method](self.X, self.kernel, best.size, 0)
                return kp.LowRank(kp.nystrom(self.X, found, self.kernel))
        else:
            size, X = best.size, self.X
            make = {"lanczos": lambda: kp.gram(X, X, self.kernel), "implicit": lambda: kp.Implicit(X, self.kernel),
                    "quantize": lambda: kp.quantize_gram(X, self.kernel),
                    "sample": lambda: kp.sample_gram(X, self.kernel, size),
                    "sample-quantize": lambda: kp.sample_quantize_gram(X, self.kernel, size),
                    "skpca": lambda: kp.LowRank(kp.fourier_features(
                        X, kp.fourier_features_map(self.kernel, X.shape[1], int(size))))}[best.method]
        start = time.perf_counter()
        A = make()
        kp.block_lanczos(A, 10)
        taken, K = time.perf_counter() - start, kp.Implicit(self.X, self.kernel)
        return best, taken, kp.spectral_error(K, A, 0, 0.05) / kp.spectral_norm(K, 0, 0.01)

    @unit("error / predicted error")
    def track_error_ratio(self, data, error):
        best, _, found = self.happened(error)
        return found / best.error if best.error else 1.0

    @unit("seconds / predicted seconds")
    def track_seconds_ratio(self, data, error):
        best, taken, _ = self.happened(error)
        return taken / best.seconds
