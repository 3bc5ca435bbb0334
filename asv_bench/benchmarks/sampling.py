# SPDX-License-Identifier: BSD-3-Clause
"""Sampling techniques: time and memory follow what is kept, and what error that buys; projections against scikit-learn
and BLAS."""

import numpy as np

import kpcasketch as kp

from .common import normal, ratio, seconds, size, unit


class SampleGram:
    params = [[2.0, 5.0, 20.0, 100.0]]
    param_names = ["s"]

    def setup(self, s):
        self.X, self.kernel = normal(size(8000), 8), kp.gaussian(8**0.5)
        self.norm = kp.spectral_norm(kp.Implicit(self.X, self.kernel), 0, tol=1e-3)

    @unit("s")
    def track_seconds(self, s):
        return seconds(lambda: kp.sample_gram(self.X, self.kernel, s, 0))[0]

    @unit("time over that with s = 2")
    def track_share_of_s_2(self, s):
        return ratio(
            lambda: kp.sample_gram(self.X, self.kernel, s, 0),
            lambda: kp.sample_gram(self.X, self.kernel, 2.0, 0),
        )

    @unit("bytes")
    def track_bytes(self, s):
        return kp.nbytes(kp.sample_gram(self.X, self.kernel, s, 0))

    @unit("spectral error over |K|")
    def track_error(self, s):
        A = kp.sample_gram(self.X, self.kernel, s, 0)
        return kp.spectral_error(A, kp.Implicit(self.X, self.kernel), 0, tol=1e-3) / self.norm


class QuantizeGram:
    def setup(self):
        self.X, self.kernel = normal(size(8000), 8), kp.gaussian(8**0.5)

    @unit("time over gram's")
    def track_cost(self):
        return ratio(
            lambda: kp.quantize_gram(self.X, self.kernel, 0),
            lambda: kp.gram(self.X, self.X, self.kernel),
        )

    @unit("spectral error over |K|")
    def track_error(self):
        K = kp.Implicit(self.X, self.kernel)
        return kp.spectral_error(
            kp.quantize_gram(self.X, self.kernel, 0), K, 0, tol=1e-3
        ) / kp.spectral_norm(K, 0, tol=1e-3)


class RoundedFeatures:
    """One feature of 1000 new points from 100,000, coefficients 1 / sqrt(m): f(x) is far above T sqrt(ln m)."""

    params = [[2.0, 4.0, 8.0, 16.0]]
    param_names = ["s"]
    timeout = 1200

    def setup(self, s):
        m = size(100_000)
        self.X, self.new, self.kernel = normal(m, 8), normal(1000, 8, 1), kp.gaussian(8.0)
        self.f = kp.Expansion(self.X, np.full((m, 1), m**-0.5), np.ones(1), self.kernel)

    def rounded(self, s):
        return kp.features(self.new, kp.round_expansion(self.f, s, 0))

    @unit("time over that of all terms")
    def track_ratio(self, s):
        return ratio(
            lambda: self.rounded(s),
            lambda: kp.features(self.new, self.f),
            repeat=3,
        )

    @unit("surviving terms")
    def track_terms(self, s):
        return len(kp.round_expansion(self.f, s, 0).points)

    @unit("largest relative error")
    def track_error(self, s):
        exact = kp.features(self.new, self.f)
        return float(np.abs(self.rounded(s) / exact - 1).max())


class Projection:
    """100,000 points of 784 float32 coordinates to 64."""

    params = [["scikit-learn", "stored matrix, BLAS"]]
    param_names = ["peer"]
    timeout = 1200

    def setup(self, peer):
        self.X = normal(size(100_000), 784, 0, np.float32)
        if peer == "scikit-learn":
            from sklearn.random_projection import SparseRandomProjection

            self.peer = (
                SparseRandomProjection(64, density=1, dense_output=True, random_state=0)
                .fit(self.X[:10])
                .transform
            )
        else:
            signs = np.sign(normal(784, 64, 1, np.float32)) / np.float32(8)
            self.peer = lambda X: X @ signs

    @unit("time over the peer's")
    def track_ratio(self, peer):
        return ratio(lambda: kp.rademacher_projection(self.X, 64, 0), lambda: self.peer(self.X))

    @unit("largest relative change of a squared distance between 300 points")
    def track_error(self, peer):
        few = self.X[:300].astype(float)
        before, after = (
            ((P[:, None] - P[None]) ** 2).sum(-1)[np.triu_indices(300, 1)]
            for P in (few, kp.rademacher_projection(few, 64, 0))
        )
        return float(np.abs(after / before - 1).max())


class SparseProjection:
    """20,000 documents of 50,000 terms by a Zipf law to 300 dimensions, beside scikit-learn."""

    timeout = 600

    def setup(self):
        from scipy import sparse
        from sklearn.random_projection import SparseRandomProjection

        n, terms = size(20_000), 50_000
        rng = np.random.default_rng(0)
        chances = 1.0 / np.arange(1, terms + 1)
        columns = rng.choice(terms, size=(n, 100), p=chances / chances.sum())
        rows = np.repeat(np.arange(n), 100)
        counts = sparse.csr_matrix((np.ones(rows.size), (rows, columns.ravel())), (n, terms))
        lengths = np.sqrt(np.asarray(counts.multiply(counts).sum(1)).ravel())
        self.X = (sparse.diags(1.0 / lengths) @ counts).tocsr()
        peer = SparseRandomProjection(300, dense_output=True, random_state=0)
        self.peer = peer.fit(self.X).transform

    @unit("time over the peer's")
    def track_ratio(self):
        return ratio(lambda: kp.rademacher_projection(self.X, 300), lambda: self.peer(self.X))

    @unit("root mean square error of inner products")
    def track_error(self):
        P, Q = kp.rademacher_projection(self.X[:200], 300), self.X[:200]
        return float(np.sqrt(np.mean((P @ P.T - (Q @ Q.T).toarray()) ** 2)))


class WholePipeline:
    """The points projected to 64 coordinates, the Gram matrix sampled and quantized, ten leading eigenpairs."""

    timeout = 1200

    def setup(self):
        rng = np.random.default_rng(0)
        # ten shapes, strokes of random weight, noise
        digits = np.where(rng.random((10, 784)) < 0.2, 180.0, 0.0)
        n = size(100_000)
        self.X = (
            digits[rng.integers(0, 10, n)] * rng.uniform(0.5, 1.4, (n, 1))
            + rng.normal(0, 20, (n, 784))
        ).astype(np.float32)
        self.kernel = kp.gaussian(kp.median_bandwidth(self.X, 0))

    def sketch(self):
        return kp.sample_quantize_gram(
            kp.rademacher_projection(self.X, 64, 0), self.kernel, 100.0, 0
        )

    @unit("s")
    def track_seconds(self):
        return seconds(lambda: kp.block_lanczos(self.sketch(), 10, 0, tol=1e-3), repeat=1)[0]

    @unit("bytes")
    def track_bytes(self):
        return kp.nbytes(self.sketch())
