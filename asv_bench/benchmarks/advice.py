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


def recommended(best, X, kernel):
    """The matrix that is advised."""
    if best.method in kp._LANDMARK_METHODS:
        return kp.LowRank(kp.nystrom(X, kp._LANDMARK_METHODS[best.method](X, kernel, best.size, 0), kernel))
    return {"lanczos": lambda: kp.gram(X, X, kernel), "implicit": lambda: kp.Implicit(X, kernel),
            "quantize": lambda: kp.quantize_gram(X, kernel), "sample": lambda: kp.sample_gram(X, kernel, best.size),
            "sample-quantize": lambda: kp.sample_quantize_gram(X, kernel, best.size),
            "skpca": lambda: kp.LowRank(kp.fourier_features(
                X, kp.fourier_features_map(kernel, X.shape[1], int(best.size))))}[best.method]()


class Advice:
    params = [NAMES, [1e-2, 1e-3]]
    param_names = ["data", "error"]
    timeout = 900

    def setup_cache(self):
        """{(data, error): (seconds of the advice, error and seconds of the method that it recommends over predicted)}.

        Measured once for all that is tracked.
        """
        found = {}
        for data in NAMES:
            X = real(pathlib.Path(FOLDER) / data) if FOLDER else made(data)
            kernel = kp.gaussian(kp.median_bandwidth(X))
            K = kp.Implicit(X, kernel)
            norm = kp.spectral_norm(K, 0, 0.01)
            kp.advise(X, kernel, 0.1)                  # compiled
            for error in self.params[1]:
                start = time.perf_counter()
                best = kp.advise(X, kernel, error)[0]
                advised = time.perf_counter() - start
                start = time.perf_counter()
                A = recommended(best, X, kernel)
                kp.block_lanczos(A, 10)
                taken = time.perf_counter() - start
                ratio = kp.spectral_error(K, A, 0, 0.05) / norm / best.error if best.error else 1.0
                found[data, error] = advised, ratio, taken / best.seconds
        return found

    setup_cache.timeout = 1200

    @unit("s, once compiled")
    def track_seconds(self, found, data, error):
        return found[data, error][0]

    @unit("error / predicted error")
    def track_error_ratio(self, found, data, error):
        return found[data, error][1]

    @unit("seconds / predicted seconds")
    def track_seconds_ratio(self, found, data, error):
        return found[data, error][2]
