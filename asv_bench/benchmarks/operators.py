# SPDX-License-Identifier: BSD-3-Clause
"""Products of operators with blocks of vectors, against BLAS on the dense matrix and SciPy on the sparse one."""

import numpy as np

import kpcasketch as kp

from .common import normal, ratio, seconds, size, unit


class BitsProduct:
    params = [["float32", "float64"]]
    param_names = ["blas"]

    def setup(self, blas):
        n = size(16384) // 32 * 32
        words = np.random.default_rng(0).integers(0, 2**32, (n // 32, n), dtype=np.uint32)
        self.A, self.V = kp.Bits(words, 1.0, n), normal(n, 16, 1, np.float32)
        bits = np.unpackbits(words.view(np.uint8).reshape(n // 32, n, 4), axis=2, bitorder="little")
        self.dense = np.where(bits.transpose(0, 2, 1).reshape(n, n), 1, -1).T.astype(
            blas, order="C"
        )
        self.dense_V = self.V.astype(blas)

    @unit("time over BLAS's")
    def track_ratio(self, blas):
        return ratio(lambda: kp.matmat(self.A, self.V), lambda: self.dense @ self.dense_V)

    @unit("share of the dense bytes")
    def track_memory(self, blas):
        return kp.nbytes(self.A) / self.dense.nbytes

    @unit("largest relative difference")
    def track_error(self, blas):
        # the words need not be symmetric for this: columns of the words are rows of the operator
        exact = self.dense @ self.dense_V
        return float(np.abs(kp.matmat(self.A, self.V) - exact).max() / np.abs(exact).max())


class DenseProduct:
    def setup(self):
        A = normal(size(8000), size(8000))
        self.A, self.V = A + A.T, normal(size(8000), 16, 1)

    @unit("time over BLAS's")
    def track_ratio(self):
        return ratio(lambda: kp.matmat(self.A, self.V), lambda: self.A @ self.V)


class SampledProduct:
    """A sampled matrix, against SciPy's product of the same entries, which is one thread's."""

    params = [[5, 200], [1, 4, 16, 64]]
    param_names = ["s", "vectors"]

    def setup(self, s, vectors):
        n = size(16000)
        self.A = kp.sample_gram(normal(n, 10), kp.gaussian(3.0), s)
        self.V = normal(n, vectors, 1)

    @unit("time over SciPy's")
    def track_ratio(self, s, vectors):
        return ratio(lambda: kp.matmat(self.A, self.V), lambda: self.A @ self.V)

    @unit("nanoseconds an entry")
    def track_entry(self, s, vectors):
        return 1e9 * seconds(lambda: kp.matmat(self.A, self.V))[0] / self.A.data.size

    @unit("largest relative difference")
    def track_error(self, s, vectors):
        exact = self.A @ self.V
        return float(np.abs(kp.matmat(self.A, self.V) - exact).max() / np.abs(exact).max())
