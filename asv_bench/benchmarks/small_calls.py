# SPDX-License-Identifier: BSD-3-Clause
"""One point at a time, as services ask: features and novelty of one new point, on one thread.

The peer, scikit-learn's KernelPCA.transform of the same point, runs in turn with each call.
"""

import time

import numba
import numpy as np

import kpcasketch as kp

from .common import measured_once, normal, of, size, unit

K = 10
CALLS = [
    "features exact",
    "features centered",
    "features skpca",
    "features nystrom_map 500",
    "features nystrom_map 2000",
    "residual exact",
    "residual centered",
    "residual nystrom_kpca",
    "residual nystrom_map 500",
    "residual skpca",
    "kernel_pca_preimage",
    "features_of in Python",
    "features_of compiled",
]


@numba.njit
def one_compiled(x, model, out):
    kp.features_of(x, model, out)


def squares_off(kernel, x, points, directions, weights):
    """|f - P f|^2 for f = phi(x) - sum_i weights_i phi(points_i) and P on the span of columns, by dense algebra."""
    within, across = kp.gram(points, points, kernel), kp.gram(points, x, kernel)
    inner = directions.T @ (across - within @ weights)
    f = kernel.scale - 2.0 * weights.T @ across + weights.T @ within @ weights
    return f - inner.T @ np.linalg.solve(directions.T @ within @ directions, inner)


def made(name):
    """The call to time, and its relative error against dense linear algebra."""
    n = size(2000)
    X, Y, x, kernel = normal(n, 8), normal(2 * n, 8, 1), normal(1, 8, 2), kp.gaussian(4.0)
    none, mean = np.zeros((n, 1)), np.full((n, 1), 1.0 / n)
    if "skpca" in name:
        model = kp.skpca(X, kernel, K, n, 40, centered=False)
        z = kp.features(x, model.feature_map)
        if name.startswith("residual"):
            expected = np.linalg.norm(z - z @ model.basis @ model.basis.T, axis=1)
            return lambda: kp.residual(x, model), expected
        return lambda: kp.features(x, model), z @ model.basis
    if "nystrom_map" in name:
        model = kp.nystrom_map(Y, np.arange(size(int(name.split()[-1]))), kernel)
        row = kp.gram(model.points[: model.rank], x, kernel)
        z = np.linalg.solve(model.factor[: model.rank, : model.rank], row).T
        if name.startswith("residual"):
            return lambda: kp.residual(x, model), np.sqrt(1.0 - np.square(z).sum(1))
        return lambda: kp.features(x, model), z
    centered = "centered" in name
    model = kp.kpca(X, kernel, K, centered=centered)
    if "nystrom_kpca" in name:
        model = kp.nystrom_kpca(Y, np.arange(n), kernel, K, centered=False)
    z = kp.gram(x, model.points, kernel) @ model.coef
    if centered:
        z += model.offset
    out = np.empty(K)

    def written(function):
        function(x[0], model, out)
        return out[None]

    if name.startswith("residual"):
        off = squares_off(kernel, x, model.points, model.coef, mean if centered else none)
        return lambda: kp.residual(x, model), np.sqrt(off[0])
    if name == "kernel_pca_preimage":  # one step from X[0], the point with these features
        y = kp.features(X[:1], model)
        w = (model.coef @ y.T) * kp.gram(X, X[:1], kernel)
        return lambda: kp.kernel_pca_preimage(y, model, max_iterations=1), w.T @ X / w.sum()
    if name == "features_of in Python":
        return lambda: written(kp.features_of), z
    if name == "features_of compiled":
        return lambda: written(one_compiled), z
    return lambda: kp.features(x, model), z


def medians(*functions, calls=3000):
    """Median microseconds of each function, called in turn without the pauses of `common.seconds`."""
    times = np.empty((calls, len(functions)))
    for taken in times:
        for j, function in enumerate(functions):
            start = time.perf_counter()
            function()
            taken[j] = time.perf_counter() - start
    return (1e6 * np.median(times, axis=0)).tolist()


def measured(name):
    """Microseconds of a call, the same over the peer's, and the error."""
    from sklearn.decomposition import KernelPCA

    kernel = kp.gaussian(4.0)
    peer = KernelPCA(K, kernel="rbf", gamma=kernel.gamma, eigen_solver="arpack", random_state=0)
    peer.fit(normal(size(2000), 8))
    x = normal(1, 8, 2)
    call, expected = made(name)
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        found = call().copy()
        ours, theirs = medians(call, lambda: peer.transform(x))
    finally:
        numba.set_num_threads(threads)
    rank = expected.shape[-1]
    error = np.abs(found[..., :rank] - expected).max() / np.abs(expected).max()
    return {"us": ours, "ratio": ours / theirs, "error": float(error)}


class SmallCalls:
    """One point against 2000 points, centers or features (d = 8, k = 10, float64), on one thread.

    Asked: 200 us a call. A Nystrom map of s landmarks reads 4 s^2 bytes for a point: 16 MB for 2000.
    """

    params = [CALLS]
    param_names = ["call"]
    timeout = 1200

    def setup_cache(self):
        return measured_once(measured, [(name,) for name in CALLS])

    @unit("us")
    def track_time(self, found, call):
        return of(found, call)["us"]

    @unit("time over KernelPCA.transform's of one point")
    def track_ratio(self, found, call):
        return of(found, call)["ratio"]

    @unit("relative error, against dense linear algebra")
    def track_error(self, found, call):
        return of(found, call)["error"]
