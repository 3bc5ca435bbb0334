# SPDX-License-Identifier: BSD-3-Clause
"""Public calls of ordinary sizes, and a program that repeats one of them: what busy.py, pause.py and fresh.py measure.

    python -m benchmarks.calls "kpca 300, 5" [peer]

A call, or that of the peer, is made once to compile and once more. Then the program obeys lines on its input:
`rate SECONDS` prints calls a second, `pause CALLS` the median seconds of calls after .2 s of sleep each, and
`loop CALLS` the median seconds of calls without sleep.
"""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

import kpcasketch as kp

SIGMA = 6.0
GAUSSIAN = kp.gaussian(SIGMA)
GAMMA = 0.5 / SIGMA**2
PAUSE = 0.2


def clusters(n, d=16):
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.standard_normal((10, d))
    return centers[rng.integers(10, size=n)] + 0.5 * rng.standard_normal((n, d))


def target(X):
    return np.sin(X[:, 0]) + X[:, 1]


# A maker returns a call without arguments. scikit-learn is imported where a peer is made.


def gram(n):
    X = clusters(n)
    return lambda: kp.gram(X, X, GAUSSIAN)


def rbf_kernel(n):
    from sklearn.metrics.pairwise import rbf_kernel

    X = clusters(n)
    return lambda: rbf_kernel(X, gamma=GAMMA)


def kpca(n, k):
    X = clusters(n)
    return lambda: kp.kpca(X, GAUSSIAN, k, centered=True)


def sklearn_kpca(n, k, solver):
    from sklearn.decomposition import KernelPCA

    X = clusters(n)
    model = KernelPCA(k, kernel="rbf", gamma=GAMMA, eigen_solver=solver, random_state=0)
    return lambda: model.fit(X)


def of_model(function, n, rows):
    X = clusters(n)
    model = kp.kpca(X, GAUSSIAN, 10, centered=True)
    new = X[:rows].copy()
    return lambda: function(new, model)


def sklearn_transform(n, rows):
    from sklearn.decomposition import KernelPCA

    X = clusters(n)
    model = KernelPCA(10, kernel="rbf", gamma=GAMMA, eigen_solver="dense").fit(X)
    return lambda: model.transform(X[:rows])


def preimage(n):
    X = clusters(n)
    model = kp.kpca(X, GAUSSIAN, 5, centered=True)
    features = kp.features(X[:50], model)
    return lambda: kp.kernel_pca_preimage(features, model)


def ridge(n):
    X = clusters(n)
    y = target(X)
    return lambda: kp.kernel_ridge(X, y, GAUSSIAN, 0.1, intercept=False)


def sklearn_ridge(n):
    from sklearn.kernel_ridge import KernelRidge

    X = clusters(n)
    y = target(X)
    return lambda: KernelRidge(alpha=0.1, kernel="rbf", gamma=GAMMA).fit(X, y)


def of_points(function, n):
    X = clusters(n)
    return lambda: function(X)


def over_landmarks(function, n, s):
    X = clusters(n)
    landmarks = kp.rpcholesky(X, GAUSSIAN, s)
    return lambda: function(X, landmarks)


def nystroem(n, s, then=None):
    from sklearn.kernel_approximation import Nystroem

    X = clusters(n)
    features = Nystroem(gamma=GAMMA, n_components=s, random_state=0)
    return lambda: (then or (lambda Z, X: Z))(features.fit_transform(X), X)


def sklearn_pca(Z, X):
    from sklearn.decomposition import PCA

    return PCA(10).fit(Z)


def sklearn_linear(Z, X):
    from sklearn.linear_model import Ridge

    return Ridge(1e-3).fit(Z, target(X))


def features_of_landmarks(rows, s):
    X = clusters(3000)
    model = kp.nystrom_map(X, kp.rpcholesky(X, GAUSSIAN, s), GAUSSIAN)
    new = X[:rows].copy()
    return lambda: kp.features(new, model)


def nystroem_transform(rows, s):
    from sklearn.kernel_approximation import Nystroem

    X = clusters(3000)
    features = Nystroem(gamma=GAMMA, n_components=s, random_state=0).fit(X)
    return lambda: features.transform(X[:rows])


def of_factor(function, n, s):
    X = clusters(n)
    F = kp.nystrom(X, np.arange(s), GAUSSIAN)
    return lambda: function(F)


def kmeans(X, m, restarts):
    from sklearn.cluster import KMeans

    return lambda: KMeans(m, n_init=restarts, random_state=0).fit(X)


def of_matrix(function, n):
    X = clusters(n)
    K = kp.gram(X, X, GAUSSIAN)
    return lambda: function(K)


def eigsh(K, k):
    from scipy.sparse.linalg import eigsh

    return eigsh(K, k)


def fourier(n, m):
    X = clusters(n)
    feature_map = kp.fourier_features_map(GAUSSIAN, 16, m)
    return lambda: kp.features(X, feature_map)


def rbf_sampler(n, m):
    from sklearn.kernel_approximation import RBFSampler

    X = clusters(n)
    sampler = RBFSampler(gamma=GAMMA, n_components=m, random_state=0).fit(X)
    return lambda: sampler.transform(X)


def stream(start, update, n):
    X = clusters(n)
    state = update(start(), X)
    return lambda: update(state, X)


def incremental(n, m, k):
    from sklearn.decomposition import IncrementalPCA

    Z = np.cos(clusters(n) @ np.random.default_rng(0).standard_normal((16, m)))
    model = IncrementalPCA(k).fit(Z)
    return lambda: model.partial_fit(Z)


def directions(n, m, ell):
    Z = np.random.default_rng(0).standard_normal((n, m))
    return lambda: kp.frequent_directions(Z, ell)


def two_samples(function, n):
    X = clusters(2 * n)
    return lambda: function(X[:n].copy(), X[n:].copy())


def fitted(function, n):
    X = clusters(n)
    y = target(X)
    return lambda: function(X, y)


def landmark_features(rows):
    X = clusters(3000)
    model = kp.LandmarkFeatures(300, sigma=SIGMA).fit(X)
    new = X[:rows].copy()
    return lambda: model.transform(new)


def skpca_start():
    return kp.skpca_start(kp.fourier_features_map(GAUSSIAN, 16, 500), 40, centered=False)


def dsgd_start():
    feature_map = kp.fourier_features_map(GAUSSIAN, 16, 1024, stored=False)
    return kp.dsgd_start(clusters(512), feature_map, 3, centered=False)


CALLS = {  # name: (maker of our call, maker of the peer's, or None)
    "gram 450": (lambda: gram(450), lambda: rbf_kernel(450)),
    "gram 1000": (lambda: gram(1000), lambda: rbf_kernel(1000)),
    "gram 3000": (lambda: gram(3000), lambda: rbf_kernel(3000)),
    "kpca 100, 5": (lambda: kpca(100, 5), lambda: sklearn_kpca(100, 5, "arpack")),
    "kpca 300, 5": (lambda: kpca(300, 5), lambda: sklearn_kpca(300, 5, "arpack")),
    "kpca 300, 50": (lambda: kpca(300, 50), lambda: sklearn_kpca(300, 50, "arpack")),
    "kpca 1000, 10": (lambda: kpca(1000, 10), lambda: sklearn_kpca(1000, 10, "arpack")),
    "kpca 1000, 150": (lambda: kpca(1000, 150), lambda: sklearn_kpca(1000, 150, "dense")),
    "kpca 3000, 10": (lambda: kpca(3000, 10), lambda: sklearn_kpca(3000, 10, "randomized")),
    "features 450": (lambda: of_model(kp.features, 450, 450), lambda: sklearn_transform(450, 450)),
    "features 1": (lambda: of_model(kp.features, 450, 1), lambda: sklearn_transform(450, 1)),
    "residual 450": (lambda: of_model(kp.residual, 450, 450), None),
    "kernel_pca_preimage 50": (lambda: preimage(300), None),
    "kernel_ridge 300": (lambda: ridge(300), lambda: sklearn_ridge(300)),
    "kernel_ridge 1000": (lambda: ridge(1000), lambda: sklearn_ridge(1000)),
    "nystrom_kpca 3000, 300": (
        lambda: over_landmarks(
            lambda X, s: kp.nystrom_kpca(X, s, GAUSSIAN, 10, centered=False), 3000, 300
        ),
        lambda: nystroem(3000, 300, sklearn_pca),
    ),
    "nystrom_ridge 3000, 300": (
        lambda: over_landmarks(
            lambda X, s: kp.nystrom_ridge(X, target(X), s, GAUSSIAN, 1e-3, intercept=False),
            3000,
            300,
        ),
        lambda: nystroem(3000, 300, sklearn_linear),
    ),
    "nystrom 6000, 100": (
        lambda: of_points(lambda X: kp.nystrom(X, np.arange(100), GAUSSIAN), 6000),
        lambda: nystroem(6000, 100),
    ),
    "features of landmarks 1000, 300": (
        lambda: features_of_landmarks(1000, 300),
        lambda: nystroem_transform(1000, 300),
    ),
    "LandmarkFeatures 1000, 300": (
        lambda: landmark_features(1000),
        lambda: nystroem_transform(1000, 300),
    ),
    "LandmarkFeatures 1, 300": (lambda: landmark_features(1), lambda: nystroem_transform(1, 300)),
    "LandmarkRidge 3000, 300": (
        lambda: fitted(lambda X, y: kp.LandmarkRidge(300, sigma=SIGMA).fit(X, y), 3000),
        lambda: nystroem(3000, 300, sklearn_linear),
    ),
    "rpcholesky 3000, 300": (
        lambda: of_points(lambda X: kp.rpcholesky(X, GAUSSIAN, 300), 3000),
        None,
    ),
    "recursive_rls_accelerated 6000, 300": (
        lambda: of_points(lambda X: kp.recursive_rls_accelerated(X, GAUSSIAN, 300), 6000),
        None,
    ),
    "recursive_rls_practical 6000, 100": (
        lambda: of_points(lambda X: kp.recursive_rls_practical(X, GAUSSIAN, 100), 6000),
        None,
    ),
    "ridge_leverage_scores 1000": (
        lambda: of_points(lambda X: kp.ridge_leverage_scores(X, GAUSSIAN, 1.0), 1000),
        None,
    ),
    "kmeans_select 6000, 50": (
        lambda: of_points(lambda X: kp.kmeans_select(X, 50), 6000),
        lambda: kmeans(clusters(6000), 50, 1),
    ),
    "shadow_select 6000": (lambda: of_points(lambda X: kp.shadow_select(X, 3.0), 6000), None),
    "rskpca 500": (
        lambda: of_points(lambda X: kp.rskpca(X, GAUSSIAN, 10, centered=False), 500),
        None,
    ),
    "herd 1000, 50": (lambda: of_points(lambda X: kp.herd(X, GAUSSIAN, 50), 1000), None),
    "laplacian_eigenmap 500": (
        lambda: of_points(lambda X: kp.laplacian_eigenmap(X, GAUSSIAN, 5), 500),
        None,
    ),
    "mmd_test 500": (
        lambda: two_samples(lambda X, Y: kp.mmd_test(X, Y, GAUSSIAN, 100), 500),
        None,
    ),
    "kernel_kmeans 3000, 100": (
        lambda: of_factor(lambda F: kp.kernel_kmeans(F, 10, restarts=10), 3000, 100),
        lambda: kmeans(kp.nystrom(clusters(3000), np.arange(100), GAUSSIAN), 10, 10),
    ),
    "kernel_cca 3000, 100": (
        lambda: of_factor(lambda F: kp.kernel_cca(F, F[::-1].copy(), 1e-2, 1e-2, 5), 3000, 100),
        None,
    ),
    "block_lanczos 1000, 10": (
        lambda: of_matrix(lambda K: kp.block_lanczos(K, 10), 1000),
        lambda: of_matrix(lambda K: eigsh(K, 10), 1000),
    ),
    "spectral_norm 1000": (
        lambda: of_matrix(kp.spectral_norm, 1000),
        lambda: of_matrix(lambda K: eigsh(K, 1), 1000),
    ),
    "features at random 3000, 500": (lambda: fourier(3000, 500), lambda: rbf_sampler(3000, 500)),
    "update skpca 2000, 500": (
        lambda: stream(skpca_start, kp.update, 2000),
        lambda: incremental(2000, 500, 20),
    ),
    "frequent_directions 1000, 200": (
        lambda: directions(1000, 200, 20),
        lambda: incremental(1000, 200, 20),
    ),
    "update dsgd 512, 1024": (lambda: stream(dsgd_start, kp.update, 512), None),
    "update rls 500": (
        lambda: stream(lambda: kp.rls_start(GAUSSIAN, 100, 16), kp.update, 500),
        None,
    ),
    "quantize_gram 3000": (lambda: of_points(lambda X: kp.quantize_gram(X, GAUSSIAN), 3000), None),
    "sample_gram 3000, 10": (
        lambda: of_points(lambda X: kp.sample_gram(X, GAUSSIAN, 10.0), 3000),
        None,
    ),
    "choose 2000, 200": (
        lambda: over_landmarks(lambda X, s: kp.choose(X, target(X), s, GAUSSIAN), 2000, 200),
        None,
    ),
    "median_bandwidth 6000": (lambda: of_points(kp.median_bandwidth, 6000), None),
}
PEERS = [name for name, (_, peer) in CALLS.items() if peer]


def repeated(call, seconds):
    """Calls a second."""
    begun = time.perf_counter()
    calls = 0
    while time.perf_counter() - begun < seconds or calls < 2:
        call()
        calls += 1
    return calls / (time.perf_counter() - begun)


def median_seconds(call, calls, pause=0.0):
    times = []
    for _ in range(calls):
        time.sleep(pause)
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


class Program:
    """A process that makes one call again and again, with BLAS as it comes."""

    def __init__(self, name, peer=False, **environment):
        folder = pathlib.Path(__file__).parent.parent
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.calls", name] + ["peer"] * peer,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={
                **os.environ,
                "KPCASKETCH_QUIET": "1",
                "PYTHONPATH": str(pathlib.Path(kp.__file__).parent),
                **environment,
            },
        )
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{name} ended")

    def begin(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self):
        return float(self.process.stdout.readline())

    def obey(self, line):
        self.begin(line)
        return self.end()

    def close(self):
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def programs(*names, peer=False, **environment):
    with contextlib.ExitStack() as stack:
        started = []
        for name in names:
            started.append(Program(name, peer, **environment))
            stack.callback(started[-1].close)
        yield started


def main(name, peer=""):
    call = CALLS[name][bool(peer)]()
    call()
    call()
    print("ready", flush=True)
    for line in sys.stdin:
        verb, number = line.split()
        if verb == "rate":
            told = repeated(call, float(number))
        else:
            told = median_seconds(call, int(number), PAUSE * (verb == "pause"))
        print(told, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
