# SPDX-License-Identifier: BSD-3-Clause
"""The papers' data sets, from the directory of --data-dir."""

import numpy as np

FILES = {"Covertype": "covtype.npz", "Adult": "adult_a9a.npz", "cpu_act": "cpu_act.npz", "german": "german_numeric.npz",
         "pendigits": "pendigits.npz", "mnist": "mnist10k.npz", "yale": "yaleb32.npz", "sarcos": "sarcos_test.npz",
         "qm7": "qm7_coulomb.npz"}


def standardised(X):
    """Columns of mean 0 and variance 1, without those that do not vary."""
    spread = X.std(0)
    return (X - X.mean(0))[:, spread > 0] / spread[spread > 0]


def load(folder, name, rows=None, raw=False):
    """(points, targets or None) of a data set, standardised unless raw; None if it is not there. Of Covertype, a
    uniform sample."""
    path = folder / FILES[name] if folder is not None else None
    if path is None or not path.exists():
        return None
    with np.load(path) as arrays:
        chosen = np.flatnonzero(arrays["part"] == 1) if "part" in arrays.files else np.arange(len(arrays["X"]))
        X = arrays["X"][chosen[:rows]].astype(float)
        return X if raw else standardised(X), arrays["y"][chosen[:rows]] if "y" in arrays.files else None
