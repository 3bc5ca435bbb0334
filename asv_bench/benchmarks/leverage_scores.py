# SPDX-License-Identifier: BSD-3-Clause
"""Landmarks and Nystrom features: time against a NumPy port of the same recursion and scikit-learn, error beside it."""

import itertools
import pathlib
import resource

import numpy as np

import kpcasketch as kp

from .advice import FOLDER, NAMES, made, real
from .common import measured_once, normal, of, ratio, seconds, size, unit


def gaussian(X, Y, sigma):
    squares = (X**2).sum(1)[:, None] + (Y**2).sum(1) - 2 * X @ Y.T
    return np.exp(-np.maximum(squares, 0) / (2 * sigma**2))


def numpy_recursion(X, s, sigma, seed):
    """The practical recursion in plain NumPy, bound by BLAS."""
    rng = np.random.default_rng(seed)
    n, log_s = len(X), np.log(s)
    k = int(np.ceil(s / (4 * log_s)))
    order = rng.permutation(n)
    sizes = [n]
    while sizes[-1] > s:
        sizes.append((sizes[-1] + 1) // 2)
    sample, weights = order[: sizes[-1]], np.ones(sizes[-1], X.dtype)
    for level in range(len(sizes) - 2, -1, -1):
        rows = order[: sizes[level]]
        KS = gaussian(X[rows], X[sample], sigma)
        SKS = gaussian(X[sample], X[sample], sigma)
        weighted = SKS * weights * weights[:, None]
        lam = max((np.trace(weighted) - np.linalg.eigvalsh(weighted)[-k:].sum()) / k, 1e-6)
        inverse = np.linalg.inv(SKS + np.diag(lam / weights**2))
        scores = np.clip((1 - ((KS @ inverse) * KS).sum(1)) / lam, 0, 1)
        chances = np.minimum(1, log_s * scores)
        if level == 0:
            return rng.choice(n, s, replace=False, p=chances / chances.sum())
        kept = rng.random(rows.size) < chances
        sample, weights = rows[kept], (1 / np.sqrt(chances[kept])).astype(X.dtype)


class Recursion:
    """100,000 points, 10 coordinates, 2000 landmarks."""

    params = [["float64", "float32"]]
    param_names = ["dtype"]
    timeout = 600

    def points(self, n, dtype):
        X = normal(size(100_000), 10, dtype=np.dtype(dtype))
        return X[:n], kp.gaussian(kp.median_bandwidth(X, 0)), min(2000, n // 4)

    def timed(self, dtype):
        """Seconds of NumPy's recursion, of the practical one here, and of the accelerated one."""
        X, kernel, s = self.points(size(100_000), dtype)
        return seconds(
            lambda: numpy_recursion(X, s, (0.5 / kernel.gamma) ** 0.5, 0),
            lambda: kp.recursive_rls_practical(X, kernel, s, 0),
            lambda: kp.recursive_rls_accelerated(X, kernel, s, 0),
            repeat=1,
        )

    def setup_cache(self):
        return measured_once(self.timed, [(dtype,) for dtype in self.params[0]])

    setup_cache.timeout = 1200

    @unit("time over NumPy's")
    def track_ratio(self, found, dtype):
        theirs, ours, _ = of(found, dtype)
        return ours / theirs

    @unit("time over that of NumPy's full recursion")
    def track_ratio_accelerated(self, found, dtype):
        theirs, _, ours = of(found, dtype)
        return ours / theirs

    @unit("error, accelerated over full")
    def track_error_accelerated(self, found, dtype):
        X, kernel, s = self.points(size(20_000), dtype)
        K = kp.Implicit(X, kernel)
        errors = [
            np.mean(
                [
                    kp.spectral_error(
                        K, kp.LowRank(kp.nystrom(X, pick(X, kernel, s, t), kernel)), 0, tol=0.02
                    )
                    for t in range(3)
                ]
            )
            for pick in (kp.recursive_rls_accelerated, kp.recursive_rls_practical)
        ]
        return errors[0] / errors[1]


class Features:
    """Uniform Nystrom features of 100,000 points against scikit-learn."""

    params = [[500, 2000]]
    param_names = ["s"]
    timeout = 3000

    def setup(self, s):
        from sklearn.kernel_approximation import Nystroem

        self.X, self.s = normal(size(100_000), 10), min(s, size(100_000) // 4)
        self.sigma = kp.median_bandwidth(self.X, 0)
        self.peer = Nystroem(gamma=1 / (2 * self.sigma**2), n_components=self.s, random_state=0)

    @unit("time over scikit-learn's")
    def track_ratio(self, s):
        kernel = kp.gaussian(self.sigma)
        return ratio(
            lambda: kp.nystrom(self.X, kp.uniform_landmarks(len(self.X), self.s, 0), kernel),
            lambda: self.peer.fit_transform(self.X),
            repeat=1,
        )


class Landmarks:
    """Error against seconds and kernel values for every sampler, on data with a small far cluster."""

    params = [["uniform", "rls", "rls-accelerated", "rpcholesky"], [50, 200, 800]]
    param_names = ["method", "s"]
    timeout = 1200

    def setup(self, method, s):
        n = size(20_000)
        few = max(4, n * 3 // 100)
        self.X = np.concatenate([normal(n - few, 2), 0.1 * normal(few, 2, 1) + 30.0])
        self.kernel, self.s = kp.gaussian(1.0), min(s, n // 4)

    def pick(self, method, seed=0):
        return kp._METHODS[method].function(self.X, self.kernel, self.s, seed)

    @unit("s")
    def track_seconds(self, method, s):
        return seconds(lambda: kp.nystrom(self.X, self.pick(method), self.kernel), repeat=3)[0]

    @unit("kernel values over n")
    def track_evaluations(self, method, s):
        return self.pick(method).evaluations / len(self.X)

    @unit("spectral error")
    def track_error(self, method, s):
        K = kp.Implicit(self.X, self.kernel)
        return float(
            np.mean(
                [
                    kp.spectral_error(
                        K,
                        kp.LowRank(kp.nystrom(self.X, self.pick(method, t), self.kernel)),
                        0,
                        tol=0.02,
                    )
                    for t in range(3)
                ]
            )
        )


class Samplers:
    """200 landmarks, or as many random features, of at most 8000 points of each data set, means of five seeds."""

    params = [NAMES, ["uniform", "rls-accelerated", "rls", "rpcholesky", "Nystroem", "RBFSampler"]]
    param_names = ["data", "method"]

    def factor(self, X, kernel, method, seed):
        s = min(200, len(X) // 4)
        if method in ("Nystroem", "RBFSampler"):
            from sklearn import kernel_approximation

            maker = getattr(kernel_approximation, method)
            return maker(gamma=kernel.gamma, n_components=s, random_state=seed).fit_transform(X)
        return kp.nystrom(X, kp._METHODS[method].function(X, kernel, s, seed), kernel)

    def measured(self, data, method):
        """Mean error of five seeds, and seconds."""
        X = (real(pathlib.Path(FOLDER) / data) if FOLDER else made(data))[: size(8000)]
        kernel = kp.gaussian(kp.median_bandwidth(X))
        K = kp.Implicit(X, kernel)
        errors = [
            kp.spectral_error(K, kp.LowRank(self.factor(X, kernel, method, seed)), 0, tol=0.02)
            for seed in range(5)
        ]
        (taken,) = seconds(lambda: self.factor(X, kernel, method, 0), repeat=3)
        return float(np.mean(errors)) / kp.spectral_norm(K, 0, tol=0.02), taken

    def setup_cache(self):
        return measured_once(self.measured, itertools.product(*self.params))

    setup_cache.timeout = 1200

    @unit("spectral error over the largest eigenvalue")
    def track_error(self, found, data, method):
        return of(found, data, method)[0]

    @unit("s")
    def track_seconds(self, found, data, method):
        return of(found, data, method)[1]


class Certified:
    """nystrom_to of at most 8000 points of each data set: columns over the best rank of that error, and seconds."""

    params = [NAMES, [1e-1, 1e-2, 1e-3]]
    param_names = ["data", "error"]

    def measured(self, data, error):
        """Columns, and landmarks, over the eigenvalues above the error; the bound over the error; seconds."""
        X = (real(pathlib.Path(FOLDER) / data) if FOLDER else made(data))[: size(8000)]
        kernel = kp.gaussian(kp.median_bandwidth(X))
        values = np.linalg.eigvalsh(kp.gram(X, X, kernel))
        best = np.count_nonzero(values > error * values[-1])
        found = kp.nystrom_to(X, kernel, error)
        (taken,) = seconds(lambda: kp.nystrom_to(X, kernel, error), repeat=3)
        return (
            found.factor.shape[1] / best,
            found.landmarks.indices.size / best,
            found.error_bound / error,
            taken,
        )

    def setup_cache(self):
        return measured_once(self.measured, itertools.product(*self.params))

    setup_cache.timeout = 1200

    @unit("columns over the best rank")
    def track_columns(self, found, data, error):
        return of(found, data, error)[0]

    @unit("landmarks over the best rank")
    def track_landmarks(self, found, data, error):
        return of(found, data, error)[1]

    @unit("bound over what was asked for")
    def track_error(self, found, data, error):
        return of(found, data, error)[2]

    @unit("s")
    def track_seconds(self, found, data, error):
        return of(found, data, error)[3]


class FullRidge:
    """Ridge regression on all of at most 8000 points, lam = 1e-6 n, and on 1000 landmarks, by 2000 points held back."""

    params = [NAMES]
    param_names = ["data"]

    def measured(self, data):
        """Seconds of scikit-learn's, and of ours; our error over that of predictions on landmarks; residual."""
        from sklearn.kernel_ridge import KernelRidge

        X = real(pathlib.Path(FOLDER) / data) if FOLDER else made(data)
        n = min(size(8000), len(X) * 4 // 5)
        y = (
            np.sin(X[:, 0])
            + np.cos(2 * X[:, 1])
            + 0.05 * np.random.default_rng(0).standard_normal(len(X))
        )
        X, y, new, kept = X[:n], y[:n], X[n : n + 2000], y[n : n + 2000]
        kernel, lam = kp.gaussian(kp.median_bandwidth(X)), 1e-6 * n
        taken = seconds(
            lambda: KernelRidge(alpha=lam, kernel="rbf", gamma=kernel.gamma).fit(X, y),
            lambda: kp.kernel_ridge(X, y, kernel, lam, intercept=False),
            repeat=3,
        )
        full = kp.kernel_ridge(X, y, kernel, lam, intercept=False)
        few = kp.nystrom_ridge(X, y, kp.rpcholesky(X, kernel, 1000), kernel, lam, intercept=False)
        errors = [np.square(kp.features(new, model) - kept).mean() for model in (few, full)]
        return *taken, errors[1] / errors[0], full.values[0]

    def setup_cache(self):
        return measured_once(self.measured, [(name,) for name in NAMES])

    setup_cache.timeout = 1200

    @unit("time over scikit-learn's")
    def track_ratio(self, found, data):
        return of(found, data)[1] / of(found, data)[0]

    @unit("squared error over that of landmarks")
    def track_error(self, found, data):
        return of(found, data)[2]

    @unit("residual")
    def track_residual(self, found, data):
        return of(found, data)[3]


class Arriving:
    """200 landmarks of 20,000 points whose eight far clusters arrive at the end, in blocks of 2000; five seeds."""

    params = [["stream", "accelerated"]]
    param_names = ["method"]

    def features(self, method, X, kernel, seed):
        if method == "accelerated":
            return kp.nystrom(X, kp.recursive_rls_accelerated(X, kernel, 200, seed), kernel)
        state = kp.rls_start(kernel, 200, X.shape[1], seed)
        for begin in range(0, len(X), 2000):
            state = kp.update(state, X[begin : begin + 2000])
        return kp.nystrom(X, kp.finish(state), kernel)

    def measured(self, method):
        """Mean spectral error over the largest eigenvalue, and seconds with the features."""
        rng, n = np.random.default_rng(0), size(20_000)
        few = n // 80
        X = np.concatenate(
            [
                normal(n - 8 * few, 4),
                np.repeat(40.0 * rng.standard_normal((8, 4)), few, 0) + 0.3 * normal(8 * few, 4, 1),
            ]
        )
        kernel = kp.gaussian(2.0)
        K = kp.Implicit(X, kernel)
        errors = [
            kp.spectral_error(K, kp.LowRank(self.features(method, X, kernel, seed)))
            for seed in range(5)
        ]
        (taken,) = seconds(lambda: self.features(method, X, kernel, 0), repeat=3)
        return float(np.mean(errors)) / kp.spectral_norm(K), taken

    def setup_cache(self):
        return measured_once(self.measured, [(method,) for method in self.params[0]])

    setup_cache.timeout = 1200

    @unit("spectral error over the largest eigenvalue")
    def track_error(self, found, method):
        return of(found, method)[0]

    @unit("s")
    def track_seconds(self, found, method):
        return of(found, method)[1]


class Uneven:
    """Landmarks and time until every one of 5 samples has a small error: a cloud, and a far cluster of 1 point in 200
    or 500."""

    params = [["uniform", "scikit-learn"], [200, 500]]
    param_names = ["peer", "one in"]

    def points(self, one_in):
        n = size(20_000)
        few = max(2, n // one_in)
        return np.concatenate([normal(n - few, 2), 0.1 * normal(few, 2, 1) + 30.0]), few / 20

    def features(self, X, sampler, s, seed):
        kernel = kp.gaussian(1.0)
        if sampler == "scikit-learn":
            from sklearn.kernel_approximation import Nystroem

            return Nystroem(gamma=kernel.gamma, n_components=s, random_state=seed).fit_transform(X)
        return kp.nystrom(X, kp._METHODS[sampler].function(X, kernel, s, seed), kernel)

    def enough(self, sampler, one_in):
        """The first of 20, 40, 80, ... landmarks with which 5 samples of 5 reach the error."""
        X, target = self.points(one_in)
        K, s = kp.Implicit(X, kp.gaussian(1.0)), 20
        while s < len(X) and any(
            kp.spectral_error(K, kp.LowRank(self.features(X, sampler, s, seed)), 0, tol=0.02)
            > target
            for seed in range(5)
        ):
            s *= 2
        return s

    def setup_cache(self):
        return measured_once(
            self.enough, itertools.product([*self.params[0], "rls"], self.params[1])
        )

    setup_cache.timeout = 1200

    @unit("landmarks over the peer's")
    def track_landmarks(self, found, peer, one_in):
        return of(found, "rls", one_in) / of(found, peer, one_in)

    @unit("time over the peer's")
    def track_ratio(self, found, peer, one_in):
        X, _ = self.points(one_in)
        theirs, ours = of(found, peer, one_in), of(found, "rls", one_in)
        return ratio(
            lambda: self.features(X, "rls", ours, 0), lambda: self.features(X, peer, theirs, 0)
        )


class Million:
    """Accelerated selection of 1000 landmarks among a million points: no factor, memory O(n + s^2)."""

    timeout = 1200

    def setup(self):
        self.X, self.s = normal(size(1_000_000), 10), min(1000, size(1_000_000) // 4)

    def select(self, X):
        return kp.recursive_rls_accelerated(X, kp.gaussian(4.0), self.s, 0)

    @unit("s")
    def track_seconds(self):
        return seconds(lambda: self.select(self.X), repeat=1)[0]

    @unit("MB beyond the points")
    def track_memory(self):
        self.select(self.X[: 2 * self.s])  # compiled
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.select(self.X)
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000
