# SPDX-License-Identifier: BSD-3-Clause
"""exp, log and cos in a loop, against the standard library's functions in the same loop."""

import math

import numba
import numpy as np

import kpcasketch as kp

from .common import ratio, unit


# inside compiled code: a call from Python costs as much as 500 numbers
REPEATS = 50


@numba.njit
def ours(name, x, out):
    kp._wide_vectors()
    for _ in range(REPEATS):
        if name == 0:
            for i in range(x.shape[0]):
                out[i] = kp._exp(x[i])
        elif name == 1:
            for i in range(x.shape[0]):
                out[i] = kp._cos(x[i])
        else:
            for i in range(x.shape[0]):
                out[i] = kp._log64(x[i])


@numba.njit
def standard(name, x, out):
    for _ in range(REPEATS):
        if name == 0:
            for i in range(x.shape[0]):
                out[i] = math.exp(x[i])
        elif name == 1:
            for i in range(x.shape[0]):
                out[i] = math.cos(x[i])
        else:
            for i in range(x.shape[0]):
                out[i] = math.log(x[i])


class VectorMath:
    params = [["exp", "cos", "log"], ["float64", "float32"]]
    param_names = ["function", "dtype"]

    def setup(self, function, dtype):
        self.x = np.random.default_rng(0).uniform(0.1, 10, 4096).astype(dtype)
        self.out = np.empty_like(self.x)
        self.name = ["exp", "cos", "log"].index(function)

    @unit("time over math's")
    def track_ratio(self, function, dtype):
        return ratio(
            lambda: ours(self.name, self.x, self.out),
            lambda: standard(self.name, self.x, self.out),
            repeat=15,
        )

    @unit("ulp")
    def track_error(self, function, dtype):
        ours(self.name, self.x, self.out)
        exact = getattr(np, function)(self.x.astype(np.longdouble))
        return float(
            np.max(np.abs(self.out - exact) / np.spacing(np.abs(exact.astype(self.x.dtype))))
        )
