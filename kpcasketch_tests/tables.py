# SPDX-License-Identifier: BSD-3-Clause
"""Tables of things of one kind, which tests walk."""

import numpy as np

import kpcasketch as kp


def map_of(X, kernel):
    return kp.fourier_features_map(kernel, X.shape[1], 16)


MODELS = {  # class: a model of this class, made from points and a kernel
    "Expansion": lambda X, kernel: kp.kpca(X, kernel, 2),
    "NystromMap": lambda X, kernel: kp.nystrom_map(X, np.arange(5), kernel),
    "Subspace": lambda X, kernel: kp.rnca(X, map_of(X, kernel), 2),
    "FourierMap": map_of,
    "DSGDState": lambda X, kernel: kp.dsgd_kpca(X, kernel, 2, 16, steps=2),
    "Manifold": lambda X, kernel: kp.laplacian_eigenmap(X, np.ones(len(X)), kernel, 2),
}
