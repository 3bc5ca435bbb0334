# SPDX-License-Identifier: BSD-3-Clause
"""Reduced sets and their kernel PCA, against NumPy and scikit-learn."""

import numpy as np

import kpcasketch as kp

from .common import normal, ratio, seconds, size, unit


def numpy_shadows(X, eps):
    """Algorithm 2 of RSKPCA in vectorised NumPy: a center, its distances to what is left, what is left."""
    left, centers = X, []
    while len(left):
        centers.append(left[0])
        left = left[((left - left[0]) ** 2).sum(1) >= eps**2]
    return np.array(centers)


def neighbour_shadows(X, eps):
    """The same by radius queries to a tree of scikit-learn, for points that no shadow holds yet."""
    from sklearn.neighbors import BallTree

    tree, free, centers = BallTree(X), np.ones(len(X), bool), []
    for i in range(len(X)):
        if free[i]:
            centers.append(i)
            free[tree.query_radius(X[i : i + 1], eps * (1 - 1e-15))[0]] = False
    return X[centers]


class Shadows:
    timeout = 900

    def setup(self):
        self.X, self.eps = normal(size(200_000), 10), 2.87  # about 2000 centers of 200,000 points

    @unit("time over that of a vectorised NumPy loop")
    def track_ratio_numpy(self):
        return ratio(
            lambda: kp.shadow_select(self.X, self.eps), lambda: numpy_shadows(self.X, self.eps), 3
        )

    @unit("time over that of radius queries to scikit-learn's BallTree")
    def track_ratio_tree(self):
        return ratio(
            lambda: kp.shadow_select(self.X, self.eps),
            lambda: neighbour_shadows(self.X, self.eps),
            1,
        )

    @unit("centers")
    def track_centers(self):
        return len(kp.shadow_select(self.X, self.eps).weights)

    @unit("centers that differ from NumPy's")
    def track_error(self):
        ours, theirs = kp.shadow_select(self.X, self.eps).centers, numpy_shadows(self.X, self.eps)
        return float(len(ours) != len(theirs) or (ours != theirs).any(1).sum())


class ManyShadows:
    timeout = 600
    params, param_names = [[0.5, 0.2, 0.1]], ["eps"]

    def setup(self, eps):
        self.X = normal(size(1_000_000), 3)

    @unit("seconds for a million points of three coordinates")
    def track_seconds(self, eps):
        return seconds(lambda: kp.shadow_select(self.X, eps), repeat=3)[0]


class ThirdCenters:
    """Points of ten coordinates, a third of them centers or more."""

    timeout = 900
    params, param_names = [[100_000, 200_000, 400_000]], ["n"]

    def setup(self, n):
        self.X = normal(size(n), 10)

    @unit("s")
    def track_seconds(self, n):
        return seconds(lambda: kp.shadow_select(self.X, 1.3), repeat=1)[0]

    @unit("share of the points")
    def track_centers(self, n):
        return len(kp.shadow_select(self.X, 1.3).weights) / len(self.X)


class UnlikeFirst:
    """Far points first, then many near ones, against any other order."""

    params, param_names = [[2, 6, 10]], ["d"]

    def setup(self, d):
        far, near = 30.0 * normal(size(20_000), d), 0.3 * normal(size(180_000), d, 1)
        self.first = np.concatenate([far, near])
        self.mixed = self.first[np.random.default_rng(2).permutation(len(self.first))]

    @unit("time with the far points first over that in another order")
    def track_ratio(self, d):
        return ratio(
            lambda: kp.shadow_select(self.first, 1.0),
            lambda: kp.shadow_select(self.mixed, 1.0),
            repeat=3,
        )


class Digits:
    """Shadows and reduced-set kernel PCA against exact kernel PCA, on as many points as pendigits has and of its kind:
    strokes.

    A smooth closed curve of random low harmonics, sampled at 8 places, is a point of 16 coordinates; 10 classes.
    """

    timeout = 600

    def setup(self):
        rng = np.random.default_rng(0)
        n = size(10_992)
        t = np.linspace(0, 1, 8, endpoint=False)
        waves = np.concatenate(
            [f(2 * np.pi * h * t) for h in (1, 2, 3) for f in (np.cos, np.sin)]
        ).reshape(6, 8)
        shapes = rng.standard_normal((10, 2, 6)) * [1, 1, 0.6, 0.6, 0.3, 0.3]
        noise = 0.4 * rng.standard_normal((n, 2, 6))
        X = ((shapes[rng.integers(0, 10, n)] + noise) @ waves).reshape(n, 16)
        self.X = 100 * (X - X.min(0)) / np.ptp(X, axis=0)
        self.sigma = 120.0
        self.kernel = kp.gaussian(self.sigma / np.sqrt(2))

    def ours(self):
        found = kp.shadow_select(self.X, self.sigma / 4)
        return kp.rskpca(found, self.kernel, 5, centered=False)

    def peer(self):
        from sklearn.decomposition import KernelPCA

        return KernelPCA(
            5, kernel="rbf", gamma=1 / self.sigma**2, eigen_solver="randomized", random_state=0
        ).fit(self.X)

    @unit("time to train over that of KernelPCA(eigen_solver='randomized')")
    def track_ratio_train(self):
        return ratio(self.ours, self.peer, 1)

    @unit("time over KernelPCA.transform's")
    def track_ratio_transform(self):
        peer, ours = self.peer(), self.ours()
        return ratio(lambda: kp.features(self.X, ours), lambda: peer.transform(self.X), 3)

    @unit("embedding error min_A |O - O' A|_F / |O|_F against exact kernel PCA")
    def track_error(self):
        O, ours = (
            kp.features(self.X, kp.kpca(self.X, self.kernel, 5, centered=False)),
            kp.features(self.X, self.ours()),
        )
        return np.linalg.norm(O - ours @ np.linalg.lstsq(ours, O, rcond=None)[0]) / np.linalg.norm(
            O
        )

    @unit("share retained")
    def track_share(self):
        return len(kp.shadow_select(self.X, self.sigma / 4).weights) / len(self.X)


class Rivals:
    timeout = 900

    def setup(self):
        self.X, self.m = normal(size(100_000), 10), min(500, size(500 * 20) // 20)
        self.kernel = kp.gaussian(3.0)

    @unit("time over that of scikit-learn's KMeans")
    def track_ratio_kmeans(self):
        from sklearn.cluster import KMeans
        import warnings

        def peer():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                KMeans(
                    self.m,
                    init="k-means++",
                    n_init=1,
                    max_iter=10,
                    tol=0,
                    algorithm="lloyd",
                    random_state=0,
                ).fit(self.X)

        return ratio(
            lambda: kp.kmeans_select(self.X, self.m, 0, restarts=1, max_iterations=10), peer, 3
        )

    @unit("seconds for herding")
    def track_herd_seconds(self):
        return seconds(lambda: kp.herd(self.X, self.kernel, self.m), repeat=1)[0]


class Compressed:
    """sqrt(n) points of n in four clusters of the plane, by Compress++ and by the method inside it; means of ten."""

    params = [[10_000, 16_384, 100_000, 1_000_000]]
    param_names = ["n"]
    timeout = 600

    def points(self, n):
        n, rng = size(n), np.random.default_rng(1)
        X = 3.0 * np.array([[-1, 0], [0, 1], [1, 0], [0, -1]])[
            rng.integers(4, size=n)
        ] + rng.standard_normal((n, 2))
        return X, int(n**0.5), kp.gaussian(2.0)

    @unit("s")
    def track_seconds(self, n):
        X, m, kernel = self.points(n)
        return seconds(lambda: kp.compress_thin(X, kernel, m), repeat=1)[0]

    @unit("distance of the means over that of the inner method")
    def track_error(self, n):
        if n > 20_000:
            raise NotImplementedError  # which looks at all pairs
        X, m, kernel = self.points(n)
        distances = [
            [
                kp.mmd(X, found, kernel)
                for found in (
                    kp.compress_thin(X, kernel, m, seed),
                    kp.kernel_thin(X, kernel, m, seed),
                )
            ]
            for seed in range(10)
        ]
        compressed, thinned = np.mean(distances, 0)
        return compressed / thinned


class TwoSamples:
    """Samples of 10 coordinates, whose means differ by .12 in one: permutation tests by features and by all pairs."""

    params = [["mmd_test", "all pairs"], [2000, 20_000]]
    param_names = ["method", "points"]
    timeout = 600

    def test(self, method, n, shift, seed):
        """p of 199 permutations."""
        rng = np.random.default_rng(seed)
        X, kernel = rng.standard_normal((n, 10)), kp.gaussian(4.5)
        X[: n // 2, 0] += shift
        if method == "mmd_test":
            return kp.mmd_test(X[: n // 2], X[n // 2 :], kernel, 100, seed, permutations=199)
        K = kp.gram(X, X, kernel)
        W = np.zeros((n, 200))
        W[: n // 2, 0] = 1.0
        for j in range(1, 200):
            W[rng.permutation(n)[: n // 2], j] = 1.0
        W -= 0.5
        distances = np.einsum("ij,ij->j", W, K @ W)
        return np.mean(distances >= distances[0] * (1 - 1e-12))

    def setup(self, method, n):
        if method == "all pairs" and n > 2000:
            raise NotImplementedError  # 3.2 GB

    @unit("s")
    def track_seconds(self, method, n):
        return seconds(lambda: self.test(method, size(n), 0.12, 0), repeat=3)[0]

    @unit("share of 100 pairs of samples that are not found to differ, at a level of .05")
    def track_missed(self, method, n):
        n = size(min(n, 2000))
        return float(np.mean([self.test(method, n, 0.12, seed) > 0.05 for seed in range(100)]))

    @unit("share of 100 pairs of samples of one law that are found to differ, at a level of .05")
    def track_level(self, method, n):
        n = size(min(n, 2000))
        return float(np.mean([self.test(method, n, 0.0, seed) <= 0.05 for seed in range(100)]))
