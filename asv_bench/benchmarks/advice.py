# SPDX-License-Identifier: BSD-3-Clause
"""Factors between what `advise` predicts for the method that it recommends and what then happens.

Data sets of KPCASKETCH_DATA, a directory of .npz files with an array X, stand in for the made ones where they are
there.
"""

import itertools
import os
import pathlib
import time

import numpy as np

import kpcasketch as kp

from .common import measured_once, normal, of, off_by, size, unit


def made(name):
    rng, n = np.random.default_rng(0), size(20_000)
    X = normal(n, 6)
    return {
        "normal": X,
        "clusters": X + 6.0 * rng.standard_normal((30, 6))[rng.integers(30, size=n)],
        "tails": X * rng.gamma(1.0, 1.0, (n, 1)),
        "uniform": rng.random((n, 3)),
        "wide": normal(n, 60) * 0.9 ** np.arange(60),
    }[name]


def real(path):
    with np.load(path) as arrays:
        X = arrays["X"][: size(20_000)].astype(float)
    return np.ascontiguousarray((X - X.mean(0))[:, X.std(0) > 0] / X.std(0)[X.std(0) > 0])


FOLDER = os.environ.get("KPCASKETCH_DATA")
NAMES = (
    sorted(path.name for path in pathlib.Path(FOLDER).glob("*.npz"))
    if FOLDER
    else ["normal", "clusters", "tails", "uniform", "wide"]
)


def recommended(best, X, kernel):
    """The matrix that is advised."""
    if best.method == "skpca":
        return kp.LowRank(
            kp.features(X, kp.fourier_features_map(kernel, X.shape[1], int(best.size)))
        )
    found = kp._METHODS[best.method].function(X, kernel, best.size, 0)
    return kp.LowRank(kp.nystrom(X, found, kernel)) if best.method in kp._SAMPLERS else found


class Advice:
    params = [NAMES, [1e-2, 1e-3]]
    param_names = ["data", "error"]

    def happened(self, data, error):
        """Seconds of the advice; of the method that it recommends, error and seconds, each over what was predicted."""
        X = real(pathlib.Path(FOLDER) / data) if FOLDER else made(data)
        kernel = kp.gaussian(kp.median_bandwidth(X))
        if (data, error) == (NAMES[0], self.params[1][0]):
            kp.advise(X, kernel, error)  # compiled
        start = time.perf_counter()
        best = kp.advise(X, kernel, error)[0]
        advised = time.perf_counter() - start
        start = time.perf_counter()
        A = recommended(best, X, kernel)
        kp.block_lanczos(A, 10)
        taken, K = time.perf_counter() - start, kp.Implicit(X, kernel)
        ratio = (
            kp.spectral_error(K, A, 0, tol=0.05) / kp.spectral_norm(K, 0, tol=0.01) / best.error
            if best.error
            else 1.0
        )
        return advised, ratio, taken / best.seconds

    def setup_cache(self):
        return measured_once(self.happened, itertools.product(*self.params))

    setup_cache.timeout = 1200

    @unit("s, once compiled")
    def track_seconds(self, found, data, error):
        return of(found, data, error)[0]

    @unit("factor between error and predicted error")
    def track_error_factor(self, found, data, error):
        return off_by(of(found, data, error)[1])

    @unit("factor between seconds and predicted seconds")
    def track_seconds_factor(self, found, data, error):
        return off_by(of(found, data, error)[2])
