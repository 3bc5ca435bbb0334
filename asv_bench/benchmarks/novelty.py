# SPDX-License-Identifier: BSD-3-Clause
"""Which points belong to no known class: one class of each data set is known, all points of others are novel.

The area above the curve of true against false alarms, the mean over the classes as the known one; and microseconds to
test a point. The kernel's bandwidth is the median distance of the known points; nothing else is chosen by data set.
Verdicts: false alarms and missed novel points where 5 % false alarms are asked.
"""

import itertools
import pathlib
import time

import numpy as np

import kpcasketch as kp

from .advice import FOLDER
from .common import measured_once, of, size, unit

METHODS = ["exact", "nystrom", "stream", "OneClassSVM", "IsolationForest", "KernelPCA"]
NAMES = [
    name
    for name in ("pendigits.npz", "usps.npz", "mnist10k.npz", "yaleb32.npz")
    if FOLDER and (pathlib.Path(FOLDER) / name).exists()
]


def labelled(name):
    if name == "digits":
        from sklearn.datasets import load_digits

        return load_digits(return_X_y=True)
    with np.load(pathlib.Path(FOLDER) / name) as arrays:
        return arrays["X"].astype(float), arrays["y"].ravel()


def fitted(method, known, seed):
    """A function that scores points, larger where they are novel."""
    kernel, n = kp.gaussian(kp.median_bandwidth(known)), len(known)
    k = min(40, n // 3)
    if method == "exact":
        model = kp.kpca(known, kernel, k, centered=False)
    elif method == "nystrom":
        model = kp.nystrom_kpca(
            known, kp.rpcholesky(known, kernel, min(150, n // 2), seed), kernel, k, centered=False
        )
    elif method == "stream":
        model = kp.skpca(known, kernel, k, 2000, min(2 * k, n), seed, centered=False)
    if method in ("exact", "nystrom", "stream"):
        return lambda X: kp.residual(X, model)
    if method == "IsolationForest":
        from sklearn.ensemble import IsolationForest

        return lambda X, forest=IsolationForest(random_state=seed).fit(known): (
            -forest.score_samples(X)
        )
    if method == "OneClassSVM":
        from sklearn.svm import OneClassSVM

        return lambda X, machine=OneClassSVM(gamma=kernel.gamma, nu=0.1).fit(known): (
            -machine.score_samples(X)
        )
    from sklearn.decomposition import KernelPCA

    peer = KernelPCA(
        k,
        kernel="rbf",
        gamma=kernel.gamma,
        fit_inverse_transform=True,
        alpha=1e-3,
        random_state=seed,
        eigen_solver="arpack",
    ).fit(known)
    return lambda X: np.square(X - peer.inverse_transform(peer.transform(X))).sum(1)


def area(novel, known):
    """P(score of a novel point > score of a known one), ties by half."""
    order = np.sort(known)
    return float(
        (np.searchsorted(order, novel) + np.searchsorted(order, novel, "right")).mean()
        / (2 * known.size)
    )


class Novelty:
    params = [NAMES or ["digits"], METHODS]
    param_names = ["data", "method"]

    def measured(self, name, method):
        """Mean area above the curve over known classes, and seconds to test a point."""
        X, y = labelled(name)
        areas, tested, taken, rng = [], 0, 0.0, np.random.default_rng(0)
        for known in np.unique(y)[:10]:
            own, others = rng.permutation(np.flatnonzero(y == known)), np.flatnonzero(y != known)
            train = own[: size(len(own) * 7 // 10)]
            new = np.concatenate([own[len(own) * 7 // 10 :], rng.permutation(others)[: size(2000)]])
            score = fitted(method, np.ascontiguousarray(X[train]), 0)
            score(X[new[:9]])  # compiled
            begun = time.perf_counter()
            scores = score(X[new])
            taken, tested = taken + time.perf_counter() - begun, tested + len(new)
            areas.append(area(scores[y[new] != known], scores[y[new] == known]))
        return 1.0 - float(np.mean(areas)), taken / tested

    def setup_cache(self):
        return measured_once(self.measured, itertools.product(*self.params))

    setup_cache.timeout = 1200

    @unit("area above the curve")
    def track_area_above(self, found, data, method):
        return of(found, data, method)[0]

    @unit("microseconds a point")
    def track_time(self, found, data, method):
        return 1e6 * of(found, data, method)[1]


ALPHA = 0.05


def alarmed(method, known, seed):
    """A function that marks points as novel, about ALPHA of the known ones."""
    kernel, n = kp.gaussian(kp.median_bandwidth(known)), len(known)
    if method == "novelty_pvalues":  # the last 3 of 7 points are not in the model
        model = kp.kpca(known[: n * 4 // 7], kernel, 40, centered=False)
        others = kp.residual(known[n * 4 // 7 :], model)
        return lambda X: kp.novelty_pvalues(X, model, others) <= ALPHA
    if method == "quantile of training":
        model = kp.kpca(known, kernel, 40, centered=False)
        threshold = np.quantile(kp.residual(known, model), 1 - ALPHA)
        return lambda X: kp.residual(X, model) > threshold
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor
    from sklearn.svm import OneClassSVM

    peer = {
        "IsolationForest": lambda: IsolationForest(contamination=ALPHA, random_state=seed),
        "OneClassSVM": lambda: OneClassSVM(gamma=kernel.gamma, nu=ALPHA),
        "LocalOutlierFactor": lambda: LocalOutlierFactor(novelty=True, contamination=ALPHA),
    }[method]().fit(known)
    return lambda X: peer.predict(X) < 0


class Verdicts:
    """Each class of a set is known once: 7 of 10 of its points; 3 of 10, and points of other classes, are tested."""

    params = [
        [name for name in NAMES if name != "yaleb32.npz"] or ["digits"],  # 60 points a person
        [
            "novelty_pvalues",
            "quantile of training",
            "IsolationForest",
            "OneClassSVM",
            "LocalOutlierFactor",
        ],
    ]
    param_names = ["data", "method"]

    def measured(self, name, method):
        """Shares of false alarms and of missed points, means over the known classes."""
        X, y = labelled(name)
        found, rng = [], np.random.default_rng(0)
        for known in np.unique(y)[:10]:
            own = rng.permutation(np.flatnonzero(y == known))
            others = rng.permutation(np.flatnonzero(y != known))[: size(2000)]
            novel = alarmed(method, np.ascontiguousarray(X[own[: len(own) * 7 // 10]]), 0)
            missed = ~novel(X[others])
            found.append([novel(X[own[len(own) * 7 // 10 :]]).mean(), missed.mean()])
        return np.mean(found, 0).tolist()

    def setup_cache(self):
        return measured_once(self.measured, itertools.product(*self.params))

    setup_cache.timeout = 1200

    @unit("share of known points, 0.05 asked")
    def track_false_alarms(self, found, data, method):
        return of(found, data, method)[0]

    @unit("share of novel points that are missed")
    def track_missed(self, found, data, method):
        return of(found, data, method)[1]
