# SPDX-License-Identifier: BSD-3-Clause
"""How near `sketch_error` comes to the errors that sketches have: medians over 500 seeds of estimate over truth, of
which asv tracks the factor to 1.

Truth is the exact decomposition: the largest error of the five leading eigenvalues, and the largest principal angle
between the spans of five directions. Data are standardized where their columns have units; the bandwidth is the
median distance. Models have 20 components.
"""

import functools
import itertools
import pathlib
import time

import numpy as np
from scipy import linalg

import kpcasketch as kp

from .advice import FOLDER
from .common import SIZE, measured_once, normal, of, off_by, size, unit

JUDGED, COMPONENTS, POINTS, SEEDS = 5, 20, size(4000), max(3, int(500 * SIZE**2))
SKETCHES = ["quantize_gram", "skpca", "rnca", "nystrom_kpca"]
NAMES = [
    name
    for name in ("pendigits.npz", "cpu_act.npz", "usps.npz", "covtype.npz")
    if FOLDER and (pathlib.Path(FOLDER) / name).exists()
]


@functools.cache
def problem(name):
    """Points, kernel, exact eigenpairs, and seconds that these take."""
    if name == "normal":
        X = normal(POINTS, 5)
    else:
        with np.load(pathlib.Path(FOLDER) / name) as arrays:
            X = arrays["X"].astype(float)
        X = X[:, X.std(0) > 0.0]
        if name in ("cpu_act.npz", "covtype.npz"):
            X = (X - X.mean(0)) / X.std(0)
        X = np.ascontiguousarray(np.random.default_rng(0).permutation(X)[:POINTS])
    kernel = kp.gaussian(kp.median_bandwidth(X))
    kp.block_lanczos(kp.gram(X[:500], X[:500], kernel), JUDGED)  # compiled
    begun = time.perf_counter()
    exact = kp.block_lanczos(kp.gram(X, X, kernel), JUDGED)
    return X, kernel, exact, time.perf_counter() - begun


def sketched(method, X, kernel, seed):
    """The sketch, its leading eigenvalues, and its directions."""
    n = len(X)
    if method == "quantize_gram":
        bits = kp.quantize_gram(X, kernel, seed)
        # The others may be in the noise.
        eigen = kp.block_lanczos(bits, 2 * JUDGED + 8, 0, tol=1e-4)
        return eigen, eigen.values, eigen.vectors
    if method == "nystrom_kpca":
        model = kp.nystrom_kpca(
            X, kp.uniform_landmarks(n, min(n, 150), seed), kernel, COMPONENTS, centered=False
        )
        return model, model.values, kp.features(X, model)
    if method == "skpca":
        model = kp.skpca(X, kernel, COMPONENTS, 1000, 3 * COMPONENTS, seed, centered=False)
    else:
        model = kp.rnca(X, kernel, COMPONENTS, 1000, seed, centered=False)
    return model, model.values, kp.features(X, model)


class Estimated:
    params = [NAMES or ["normal"], SKETCHES]
    param_names = ["data", "sketch"]

    def measured(self, name, method):
        """Medians and the 5 and 95 % points of the ratios of angles and of values, the median angle, and of seconds."""
        X, kernel, exact, whole = problem(name)
        found = []
        for seed in range(SEEDS):
            sketch, values, V = sketched(method, X, kernel, seed)
            begun = time.perf_counter()
            estimate = kp.sketch_error(sketch, X, kernel, JUDGED, seed)
            taken = time.perf_counter() - begun
            angle = linalg.subspace_angles(exact.vectors, V[:, :JUDGED])[0]
            error = np.abs(values[:JUDGED] - exact.values).max()
            found.append(
                (
                    estimate.angles[0] / angle,
                    np.abs(estimate.values).max() / error,
                    np.degrees(angle),
                    taken / whole,
                )
            )
            if seed % 25 == 0:
                print(name, method, seed, flush=True)
        return np.quantile(found, [0.05, 0.5, 0.95], axis=0)

    def setup_cache(self):
        return measured_once(self.measured, itertools.product(*self.params))

    setup_cache.timeout = 7200

    @unit("factor between estimated and true angle, of the median")
    def track_angle(self, found, data, sketch):
        return float(off_by(of(found, data, sketch)[1, 0]))

    @unit("factor between estimated and true error of values, of the median")
    def track_values(self, found, data, sketch):
        return float(off_by(of(found, data, sketch)[1, 1]))

    @unit("time over that of exact eigenpairs")
    def track_seconds(self, found, data, sketch):
        return float(of(found, data, sketch)[1, 3])
