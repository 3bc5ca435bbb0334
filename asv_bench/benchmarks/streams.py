# SPDX-License-Identifier: BSD-3-Clause
"""Random features, frequent directions and streaming kernel PCA, against scikit-learn, NumPy and rivals."""

import resource

import numpy as np

import kpcasketch as kp

from .common import normal, ratio, seconds, size, unit


class FourierFeatures:
    timeout = 600

    def setup(self):
        self.X = normal(size(100_000), 10)
        self.feature_map = kp.fourier_features_map(kp.gaussian(1.0), 10, 2000)

    @unit("time over RBFSampler.transform's")
    def track_ratio(self):
        from sklearn.kernel_approximation import RBFSampler

        peer = RBFSampler(gamma=0.5, n_components=2000, random_state=0).fit(self.X)
        return ratio(
            lambda: kp.features(self.X, self.feature_map), lambda: peer.transform(self.X), 3
        )

    @unit("time in float32 over that in float64")
    def track_ratio_float32(self):
        single = self.X.astype(np.float32)
        return ratio(
            lambda: kp.features(single, self.feature_map),
            lambda: kp.features(self.X, self.feature_map),
            3,
        )


class Fastfood:
    def setup(self):
        self.X, self.kernel = normal(size(4000), 784), kp.gaussian(20.0)
        self.plain, self.fast = (
            make(self.kernel, 784, 4096)
            for make in (kp.fourier_features_map, kp.fastfood_features_map)
        )

    @unit("time over that of stored frequencies")
    def track_ratio(self):
        return ratio(
            lambda: kp.features(self.X, self.fast),
            lambda: kp.features(self.X, self.plain),
        )

    @unit("largest error of a kernel value of 200 points, over that of stored frequencies")
    def track_error(self):
        K = kp.gram(self.X[:200], self.X[:200], self.kernel)
        errors = [
            np.abs(Z @ Z.T - K).max()
            for Z in (kp.features(self.X[:200], m) for m in (self.fast, self.plain))
        ]
        return errors[0] / errors[1]


class Maps:
    """What directions and pairs of features gain, for two points a bandwidth apart."""

    params = [[1, 3, 10, 30], ["fourier", "orthogonal", "quasi", "fastfood"], [False, True]]
    param_names = ["d", "map", "paired"]

    @unit("mean squared error of a kernel value, times 256 features")
    def track_error(self, d, map, paired):
        make, errors = getattr(kp, f"{map}_features_map"), []
        for seed, step in enumerate(normal(150, d)):
            points = np.stack([step, step + step / np.linalg.norm(step)])
            Z = kp.features(points, make(kp.gaussian(1.0), d, 256, seed, paired=paired))
            errors.append(Z[0] @ Z[1] - np.exp(-0.5))
        return 256 * np.mean(np.square(errors))


def rotations(Z, ell):
    """Algorithm 1 in NumPy: a singular value decomposition whenever no row is free."""
    B, used = np.zeros((ell, Z.shape[1])), 0
    for z in Z:
        B[used], used = z, used + 1
        if used == ell:
            _, lengths, V = np.linalg.svd(B, full_matrices=False)
            B = np.sqrt(np.maximum(lengths**2 - lengths[ell // 2 - 1] ** 2, 0))[:, None] * V
            used = ell // 2 - 1
    return B


class FrequentDirections:
    timeout = 600

    def setup(self):
        self.Z = normal(size(10_000), 2000)

    @unit("time over NumPy's with a decomposition for each rotation")
    def track_ratio_numpy(self):
        return ratio(lambda: kp.frequent_directions(self.Z, 50), lambda: rotations(self.Z, 50), 3)

    @unit("time over IncrementalPCA(50)'s")
    def track_ratio_incremental(self):
        from sklearn.decomposition import IncrementalPCA

        return ratio(
            lambda: kp.frequent_directions(self.Z, 50), lambda: IncrementalPCA(50).fit(self.Z), 3
        )

    @unit("spectral error over |Z|_F^2 / (ell / 2)")
    def track_error(self):
        B = kp.frequent_directions(self.Z, 50).B
        return np.abs(np.linalg.eigvalsh(self.Z.T @ self.Z - B.T @ B)).max() / (
            (self.Z**2).sum() / 25
        )


class Streaming:
    timeout = 1200

    def setup(self):
        self.X, self.kernel = normal(size(100_000), 10), kp.gaussian(2.0)

    @unit("time to train over rnca's")
    def track_ratio(self):
        return ratio(
            lambda: kp.skpca(self.X, self.kernel, 50, 2000, 50, centered=False),
            lambda: kp.rnca(self.X, self.kernel, 50, 2000, centered=False),
            1,
        )

    @unit("microseconds a new point")
    def track_test(self):
        found = kp.skpca(self.X[:5000], self.kernel, 50, 2000, 50, centered=False)
        return 1e6 * seconds(lambda: kp.features(self.X[:5000], found))[0] / len(self.X[:5000])

    @unit("microseconds a new point")
    def track_test_rnca(self):
        found = kp.rnca(self.X[:5000], self.kernel, 50, 2000, centered=False)
        return 1e6 * seconds(lambda: kp.features(self.X[:5000], found))[0] / len(self.X[:5000])


class Forgetting:
    """Streams of 20,000 points, the last 1000 in another place, that forget with a half-life of 500 or not at all."""

    params = [[None, 500.0]]
    param_names = ["half_life"]

    def points(self):
        X = normal(size(20_000), 10)
        X[-size(1000) :, :5] += 8.0
        return X

    def state(self, X, half_life):
        map = kp.fourier_features_map(kp.gaussian(4.0), 10, 500)
        return kp.update(kp.skpca_start(map, 50, half_life=half_life, centered=False), X)

    @unit("mean novelty of new points of the last place")
    def track_error(self, half_life):
        X = self.points()
        found = kp.finish(self.state(X[: -size(200)], half_life), 10)
        return float(kp.residual(X[-size(200) :], found).mean())

    @unit("time over that of a stream that does not forget")
    def track_ratio(self, half_life):
        X = self.points()
        plain, other = seconds(lambda: self.state(X, None), lambda: self.state(X, half_life))
        return other / plain


class TimeOfRow:
    """Time of a row and memory must not depend on how many came before."""

    params = [[10_000, 100_000, 1_000_000]]
    param_names = ["n"]
    timeout = 1200

    def stream(self, n):
        """(function that takes n rows in blocks of 10,000, how many these are)."""
        X, state = (
            normal(10_000, 10),
            kp.skpca_start(kp.fourier_features_map(kp.gaussian(2.0), 10, 200), 20, centered=False),
        )
        state = kp.update(state, X[:100])
        blocks = max(1, size(n) // len(X))

        def run():
            current = state
            for _ in range(blocks):
                current = kp.update(current, X)

        return run, blocks * len(X)

    @unit("microseconds a row, m = 200, ell = 20")
    def track_time(self, n):
        run, rows = self.stream(n)
        return 1e6 * seconds(run, repeat=1)[0] / rows

    @unit("MB that the process has grown by, the rows' own 0.8 MB among them")
    def track_memory(self, n):
        run, _ = self.stream(10_000)
        run()  # compiled, and as large as it gets
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.stream(n)[0]()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
