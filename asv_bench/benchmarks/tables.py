# SPDX-License-Identifier: BSD-3-Clause
"""`apply` of a model to a .csv file, beside a program that reads the file by pandas and is not strict."""

import pathlib
import tempfile

import numpy as np
import pandas

import kpcasketch as kp

from .common import normal, ratio, size, unit


class ApplyToTable:
    """20 columns, and features by 64 landmarks."""

    params = [[20_000, 200_000]]
    param_names = ["rows"]
    timeout = 600

    def setup(self, n):
        n = size(n)
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        X = normal(n, 20)
        columns = [f"c{j}" for j in range(20)]
        pandas.DataFrame(X, columns=columns).to_csv(folder / "X.csv", index=False)
        few = pandas.DataFrame(X[:64], columns=columns)
        model = kp.nystrom_kpca(few, np.arange(64), kp.gaussian(5.0), 10)
        kp.save(folder / "model.npz", model)
        self.words = [str(folder / name) for name in ("model.npz", "X.csv", "Z.npy")]

    def teardown(self, n):
        self.folder.cleanup()

    def apply(self):
        model, table, out = self.words
        assert kp.main(["apply", model, table, "-o", out]) == 0

    def by_hand(self):
        model, table, out = self.words
        np.save(out, kp.features(pandas.read_csv(table), kp.load(model)))

    @unit("our time over that of pandas.read_csv, features and np.save")
    def track_ratio(self, n):
        return ratio(self.apply, self.by_hand, 3)
