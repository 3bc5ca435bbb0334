# SPDX-License-Identifier: BSD-3-Clause
"""Small data: kernel PCA of 60 to 3000 points and exact ridge regression of 100 to 4000 beside scikit-learn's exact
solvers. `python -m benchmarks.small` prints the table.

Points are standardized pendigits, repeated and perturbed where more than their 16 coordinates are asked; without
KPCASKETCH_DATA they are ten made clusters.
"""

import pathlib

import numpy as np
import scipy.linalg

import kpcasketch as kp

from .advice import FOLDER
from .common import SIZE, measured_once, normal, of, seconds, size, unit

SPECTRA = [  # n, d, k
    (60, 16, 2),
    (100, 4, 5),
    (200, 16, 2),
    (300, 16, 5),
    (300, 16, 30),
    (500, 64, 10),
    (700, 16, 50),
    (1000, 16, 3),
    (1000, 16, 100),
    (1500, 16, 10),
    (2000, 16, 200),
    (2000, 16, 500),
    (3000, 16, 10),
]


def points(n, d, dtype):
    path = pathlib.Path(FOLDER or "") / "pendigits.npz"
    if path.exists():
        with np.load(path) as arrays:
            X = arrays["X"][:n].astype(float)
    else:
        X = 2.0 * normal(10, 16, 1)[np.random.default_rng(2).integers(10, size=n)] + normal(n, 16)
    X = np.tile((X - X.mean(0)) / X.std(0), (1, -(-d // 16)))[:, :d] + 0.01 * normal(n, d, 3)
    return X.astype(dtype)


def embedding(n, d, k, dtype):
    """Calls, ours first, and their errors: the largest relative error of k eigenvalues against LAPACK's in float64."""
    from sklearn.decomposition import KernelPCA

    X, kernel, k = points(n, d, dtype), kp.gaussian(1.2 * d**0.5), min(k, n // 2)
    P = X.astype(float)
    K = kp.gram(P, P, kernel)
    K -= K.mean(0)
    K -= K.mean(1)[:, None]
    exact = scipy.linalg.eigvalsh(K, subset_by_index=[n - k, n - 1])[::-1]
    peers = [
        KernelPCA(k, kernel="rbf", gamma=kernel.gamma, eigen_solver=solver, random_state=0)
        for solver in ("dense", "arpack")
    ]

    def error(values):
        return float(np.abs(values / exact - 1.0).max())

    errors = [error(kp.kpca(X, kernel, k, centered=True).values)]
    errors += [error(peer.fit(X).eigenvalues_) for peer in peers]
    ours = [lambda: kp.features(X, kp.kpca(X, kernel, k, centered=True))]
    return ours + [lambda peer=peer: peer.fit_transform(X) for peer in peers], errors


def ridge(n, d, lam, dtype):
    """Calls, ours first, and their errors: of fitted values, over the largest one, against LAPACK's."""
    from sklearn.kernel_ridge import KernelRidge

    X, kernel = points(n, d, dtype), kp.gaussian(d**0.5)
    y = np.sin(X[:, 0]) + X[:, 1]
    K = kp.gram(X, X, kernel)
    exact = y - lam * scipy.linalg.solve(K + lam * np.eye(n), y, assume_a="pos")
    peer = KernelRidge(alpha=lam, kernel="rbf", gamma=kernel.gamma).fit(X, y)
    fitted = kp.features(X, kp.kernel_ridge(X, y, kernel, lam, intercept=False)), peer.predict(X)
    errors = [float(np.abs(values - exact).max() / np.abs(exact).max()) for values in fitted]
    return [
        lambda: kp.kernel_ridge(X, y, kernel, lam, intercept=False),
        lambda: peer.fit(X, y),
    ], errors


CELLS = {
    f"embedding, n = {n}, d = {d}, k = {k}, {dtype}": (embedding, n, d, k, dtype)
    for n, d, k in SPECTRA
    for dtype in ("float64", "float32")
} | {
    f"ridge, n = {n}, lam = {lam}": (ridge, n, 16, lam, "float64")
    for n in (100, 300, 1000, 2000, 4000)
    for lam in (1e-1, 1e-3)
}


def measured(cell):
    """Our time over that of the fastest peer, our time, our error, and the error of this peer."""
    task, n, *rest = CELLS[cell]
    calls, errors = task(min(n, size(n)), *rest)
    repeat = max(1, int(SIZE * (9 if n < 500 else 3)))
    ours, *theirs = seconds(*calls, repeat=repeat)
    best = int(np.argmin(theirs))
    return ours / theirs[best], ours, errors[0], errors[1 + best]


class Small:
    """Features of the training points, or a ridge model: time over that of the faster exact solver, and error."""

    params = [list(CELLS)]
    param_names = ["cell"]

    def setup_cache(self):
        return measured_once(measured, [(cell,) for cell in CELLS])

    setup_cache.timeout = 1200

    @unit("time over scikit-learn's")
    def track_ratio(self, found, cell):
        return of(found, cell)[0]

    @unit("s")
    def track_seconds(self, found, cell):
        return of(found, cell)[1]

    @unit("largest relative error of eigenvalues or fitted values")
    def track_error(self, found, cell):
        return of(found, cell)[2]

    @unit("the same of the peer")
    def track_error_of_peer(self, found, cell):
        return of(found, cell)[3]


def main():
    print("| cell | ms | time over scikit-learn's | error | scikit-learn's |")
    print("|---|---|---|---|---|")
    ratios = []
    for cell in CELLS:
        ratio, ours, error, error_of_peer = measured(cell)
        ratios.append(ratio)
        print(
            f"| {cell} | {1e3 * ours:.3g} | {ratio:.2f} | {error:.0e} | {error_of_peer:.0e} |",
            flush=True,
        )
    for task in ("embedding", "ridge"):
        found = [ratio for cell, ratio in zip(CELLS, ratios) if cell.startswith(task)]
        mean = np.exp(np.mean(np.log(found)))
        print(f"{task}: geometric mean {mean:.2f}, {sum(ratio > 1 for ratio in found)} above 1")


if __name__ == "__main__":
    main()
