# SPDX-License-Identifier: BSD-3-Clause
"""Nystrom features of sparse points beside `Nystroem`: 50,000 columns, 100 entries a row, the same 500 landmarks."""

import numpy as np
from scipy import sparse

import kpcasketch as kp

from .common import ratio, size, unit

GAMMA = 0.01


class SparseNystrom:
    def setup(self):
        from sklearn.kernel_approximation import Nystroem

        n = size(20_000)
        rng = np.random.default_rng(0)
        columns = rng.integers(50_000, size=100 * n)
        entries = rng.random(100 * n), columns, np.arange(n + 1) * 100
        self.X = sparse.csr_array(entries, (n, 50_000))
        self.X.sum_duplicates()
        self.peer = Nystroem(gamma=GAMMA, n_components=min(500, n), random_state=0).fit(self.X)
        self.landmarks = self.peer.component_indices_

    def ours(self):
        return kp.nystrom(self.X, self.landmarks, kp.gaussian(gamma=GAMMA))

    @unit("time over Nystroem.fit_transform's")
    def track_ratio(self):
        return ratio(self.ours, lambda: self.peer.fit_transform(self.X))

    @unit("share of the trace")
    def track_error_ours(self):
        return 1.0 - float(np.square(self.ours()).sum()) / self.X.shape[0]

    @unit("share of the trace")
    def track_error_peer(self):
        return 1.0 - float(np.square(self.peer.fit_transform(self.X)).sum()) / self.X.shape[0]
