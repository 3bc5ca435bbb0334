# SPDX-License-Identifier: BSD-3-Clause
"""Kernel PCA of n = 8000 points, and features of new ones, against scikit-learn's KernelPCA."""

import numpy as np

import kpcasketch as kp

from .common import normal, ratio, size, unit


class TopTen:
    params = [["randomized", "arpack"]]
    param_names = ["eigen_solver"]
    timeout = 1200

    def setup(self, eigen_solver):
        from sklearn.decomposition import KernelPCA

        self.X = normal(size(8000), 8)
        sigma = kp.median_bandwidth(self.X, 0)
        self.kernel = kp.gaussian(sigma)
        self.model = KernelPCA(
            10, kernel="rbf", gamma=self.kernel.gamma, eigen_solver=eigen_solver, random_state=0
        )

    def ours(self):
        # eigenvalues: to 1e-10
        return kp.block_lanczos(kp.center(kp.gram(self.X, self.X, self.kernel)), 10, 0, tol=1e-6)

    @unit("time over KernelPCA's")
    def track_ratio(self, eigen_solver):
        return ratio(self.ours, lambda: self.model.fit(self.X), repeat=3)

    @unit("largest relative error of an eigenvalue, against a solution to 1e-13")
    def track_error(self, eigen_solver):
        exact = kp.block_lanczos(
            kp.center(kp.gram(self.X, self.X, self.kernel)), 10, 1, tol=1e-13
        ).values
        return float(np.abs(self.ours().values / exact - 1).max())

    @unit("largest relative error of an eigenvalue")
    def track_error_of_peer(self, eigen_solver):
        exact = kp.block_lanczos(
            kp.center(kp.gram(self.X, self.X, self.kernel)), 10, 1, tol=1e-13
        ).values
        return float(np.abs(self.model.fit(self.X).eigenvalues_ / exact - 1).max())


class ErrorNorm:
    """Spectral norm of what the one-bit sketch changes, to 1 %: a spectrum without a gap."""

    timeout = 1200

    def setup(self):
        from scipy.sparse.linalg import LinearOperator, eigsh

        X = normal(size(5000), 5)
        kernel = kp.gaussian(2.0)
        self.K, self.B = kp.gram(X, X, kernel), kp.quantize_gram(X, kernel, 0)
        gap = self.K - kp.dense(self.B)
        self.peer = lambda tol: abs(
            eigsh(LinearOperator(gap.shape, lambda v: gap @ v), 1, which="LM", tol=tol)[0][0]
        )
        self.exact = self.peer(1e-10)

    @unit("time over ARPACK's on the dense difference")
    def track_ratio(self):
        return ratio(
            lambda: kp.spectral_error(self.K, self.B, 0), lambda: self.peer(1e-2), repeat=3
        )

    @unit("largest relative error of ten seeds")
    def track_error(self):
        return max(1 - kp.spectral_error(self.K, self.B, seed) / self.exact for seed in range(10))

    @unit("relative error of the peer")
    def track_error_of_peer(self):
        return float(abs(1 - self.peer(1e-2) / self.exact))


class Features:
    """Ten features of 8000 new points."""

    timeout = 1200

    def setup(self):
        from sklearn.decomposition import KernelPCA

        self.X, self.new = normal(size(8000), 8), normal(size(8000), 8, 1)
        self.kernel = kp.gaussian(kp.median_bandwidth(self.X, 0))
        self.model = KernelPCA(
            10, kernel="rbf", gamma=self.kernel.gamma, eigen_solver="arpack", random_state=0
        ).fit(self.X)
        eigen = kp.block_lanczos(kp.center(kp.gram(self.X, self.X, self.kernel)), 10, 0)
        self.expansion = kp.kpca_from_eigen(self.X, self.kernel, eigen, centered=True)

    @unit("time over KernelPCA.transform's")
    def track_ratio(self):
        return ratio(
            lambda: kp.features(self.new, self.expansion), lambda: self.model.transform(self.new)
        )

    @unit("largest difference, up to signs")
    def track_error(self):
        ours, theirs = kp.features(self.new, self.expansion), self.model.transform(self.new)
        return float(np.abs(ours - theirs * np.sign((ours * theirs).sum(0))).max())
