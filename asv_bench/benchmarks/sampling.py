# SPDX-License-Identifier: BSD-3-Clause
"""Sampled and quantized Gram matrices: time and memory follow what is kept, and what error that buys."""

import kpcasketch as kp

from .common import normal, ratio, seconds, size, unit


class SampleGram:
    params = [[2.0, 5.0, 20.0, 100.0]]
    param_names = ["s"]

    def setup(self, s):
        self.X, self.kernel = normal(size(8000), 8), kp.gaussian(8 ** 0.5)
        self.norm = kp.spectral_norm(kp.Implicit(self.X, self.kernel), 0, 1e-3)

    @unit("s")
    def track_seconds(self, s):
        return seconds(lambda: kp.sample_gram(self.X, self.kernel, s, 0))[0]

    @unit("times the work of s = 2")
    def track_share_of_s_2(self, s):
        return 1 / ratio(lambda: kp.sample_gram(self.X, self.kernel, 2.0, 0), lambda: kp.sample_gram(self.X, self.kernel, s, 0))

    @unit("bytes")
    def track_bytes(self, s):
        return kp.nbytes(kp.sample_gram(self.X, self.kernel, s, 0))

    @unit("spectral error over |K|")
    def track_error(self, s):
        A = kp.sample_gram(self.X, self.kernel, s, 0)
        return kp.spectral_error(A, kp.Implicit(self.X, self.kernel), 0, 1e-3) / self.norm


class QuantizeGram:
    def setup(self):
        self.X, self.kernel = normal(size(8000), 8), kp.gaussian(8 ** 0.5)

    @unit("times the time of gram")
    def track_cost(self):
        return 1 / ratio(lambda: kp.gram(self.X, self.X, self.kernel), lambda: kp.quantize_gram(self.X, self.kernel, 0))

    @unit("spectral error over |K|")
    def track_error(self):
        K = kp.Implicit(self.X, self.kernel)
        return kp.spectral_error(kp.quantize_gram(self.X, self.kernel, 0), K, 0, 1e-3) / kp.spectral_norm(K, 0, 1e-3)
