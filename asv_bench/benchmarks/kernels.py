# SPDX-License-Identifier: BSD-3-Clause
"""Gram matrices against scikit-learn, products with Gram matrices against KeOps."""

import concurrent.futures

import numba
import numpy as np

import kpcasketch as kp

from .common import normal, ratio, seconds, size, unit


class Gram:
    """gram of n = m = 8000 points; d = 784 is where the peer's BLAS is at its best."""

    params = [[8, 54, 128, 784]]
    param_names = ["d"]

    def setup(self, d):
        from sklearn.metrics.pairwise import rbf_kernel

        self.X, self.kernel = normal(size(8000), d), kp.gaussian(d**0.5)
        self.other, self.single = self.X.copy(), self.X.astype(np.float32)
        self.peer = lambda: rbf_kernel(self.X, gamma=self.kernel.gamma)
        kp.gram(self.X, self.X, self.kernel)

    def time_symmetric(self, d):
        kp.gram(self.X, self.X, self.kernel)

    @unit("time over rbf_kernel's")
    def track_ratio_symmetric(self, d):
        return ratio(lambda: kp.gram(self.X, self.X, self.kernel), self.peer)

    @unit("time over rbf_kernel's")
    def track_ratio_rectangular(self, d):
        return ratio(lambda: kp.gram(self.X, self.other, self.kernel), self.peer)

    @unit("time in float32 over that in float64")
    def track_ratio_float32(self, d):
        return ratio(
            lambda: kp.gram(self.single, self.single, self.kernel),
            lambda: kp.gram(self.X, self.X, self.kernel),
        )

    @unit("time over the limit")
    def track_into_memory(self, d):
        """Time into memory that is there, over the sum of filling it and of gram_matmat's time."""
        out = np.empty((len(self.X), len(self.X)))
        V = normal(len(self.X), 1, 1)
        halves = np.array_split(out, numba.get_num_threads())

        def fill():
            with concurrent.futures.ThreadPoolExecutor(len(halves)) as pool:
                list(pool.map(lambda rows: rows.fill(1.0), halves))

        def limit():
            fill()
            kp.gram_matmat(self.X, self.X, V, self.kernel)

        fill()
        return ratio(lambda: kp.gram(self.X, self.X, self.kernel, out=out), limit)

    @unit("largest difference to rbf_kernel")
    def track_difference(self, d):
        return float(np.abs(self.peer() - kp.gram(self.X, self.X, self.kernel)).max())


class GramMatmat:
    """One vector, n = 16000, never forming the matrix, against pykeops in the same precision."""

    params = [[3, 8, 54], ["float64", "float32"]]
    param_names = ["d", "dtype"]

    def setup(self, d, dtype):
        self.X, self.V = normal(size(16000), d, dtype=dtype), normal(size(16000), 1, 1, dtype)
        self.kernel = kp.gaussian(d**0.5)

    def keops(self):
        try:
            from pykeops.numpy import LazyTensor
        except Exception as error:  # no compiler, or a build that fails
            raise NotImplementedError(str(error)) from error
        gamma = self.X.dtype.type(self.kernel.gamma)
        x, y = LazyTensor(self.X[:, None, :]), LazyTensor(self.X[None, :, :])
        return (-gamma * ((x - y) ** 2).sum(-1)).exp() @ self.V

    @unit("time over KeOps's")
    def track_ratio(self, d, dtype):
        try:
            return ratio(lambda: kp.gram_matmat(self.X, self.X, self.V, self.kernel), self.keops)
        except NotImplementedError:
            return float("nan")

    @unit("ns a pair")
    def track_time(self, d, dtype):
        return (
            seconds(lambda: kp.gram_matmat(self.X, self.X, self.V, self.kernel))[0]
            / len(self.X) ** 2
            * 1e9
        )

    @unit("largest relative difference to the dense product")
    def track_error(self, d, dtype):
        X, V = self.X[:2000].astype(float), self.V[:2000].astype(float)
        exact = kp.gram(X, X, self.kernel) @ V
        got = kp.gram_matmat(
            self.X[:2000].copy(), self.X[:2000].copy(), self.V[:2000].copy(), self.kernel
        )
        return float(np.abs(got - exact).max() / np.abs(exact).max())
