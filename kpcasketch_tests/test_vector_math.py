# SPDX-License-Identifier: BSD-3-Clause
"""exp, log and cos against 80-bit reference values, over their whole ranges, in units in the last place."""

import numba
import numpy as np
import pytest

import kpcasketch as kp


def apply(function, x):
    @numba.njit(fastmath=kp._STRICT)
    def loop(x, out):
        for i in range(x.shape[0]):
            out[i] = function(x[i])

    out = np.empty_like(x)
    loop(x, out)
    return out


def ulps(x, result, reference):
    exact = reference(x.astype(np.longdouble))
    return np.max(
        np.abs(result.astype(np.longdouble) - exact) / np.spacing(np.abs(exact.astype(x.dtype)))
    )


def near_zeros_of_cos(limit):
    return (np.arange(-int(limit / np.pi) + 1, int(limit / np.pi)) + 0.5) * np.pi


uniform = np.random.default_rng(0).uniform
RANGES = {
    "_exp64": (
        kp._exp64,
        np.exp,
        [uniform(-745, 709.78, 300000), uniform(-1, 1, 100000), uniform(-1e-6, 1e-6, 10000)],
        1.1,
    ),
    "_exp32": (kp._exp32, np.exp, [uniform(-103, 88.7, 300000), uniform(-1, 1, 100000)], 1.1),
    "_log64": (
        kp._log64,
        np.log,
        [
            np.exp(uniform(-740, 709, 300000)),
            uniform(0.5, 2, 300000),
            1 + uniform(-1e-6, 1e-6, 10000),
        ],
        1.3,
    ),
    "_cos64": (
        kp._cos64,
        np.cos,
        [uniform(-(2**20), 2**20, 300000), uniform(-9, 9, 300000), near_zeros_of_cos(2**20)],
        2.4,
    ),
    "_cos32": (
        kp._cos32,
        np.cos,
        [uniform(-(2**13), 2**13, 300000), uniform(-9, 9, 300000), near_zeros_of_cos(2**13)],
        2.5,
    ),
}


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="needs an 80-bit long double as reference"
)
@pytest.mark.parametrize("name", RANGES)
def test_errors_stay_below_the_stated_ulps(name):
    function, reference, parts, limit = RANGES[name]
    x = np.concatenate(parts).astype(np.float64 if name.endswith("64") else np.float32)
    assert ulps(x, apply(function, x), reference) < limit


@pytest.mark.parametrize("precision", ["64", "32"])
def test_nan_infinities_and_zeros_are_handled_as_numpy_does(precision):
    x = np.array(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-40],
        np.float64 if precision == "64" else np.float32,
    )
    with np.errstate(all="ignore"):
        for name, reference in (("_exp", np.exp), ("_log", np.log)):
            got, expected = (
                apply(getattr(kp, "_log64" if name == "_log" else name + precision), x),
                reference(x),
            )
            assert np.allclose(got, expected, rtol=1e-6, equal_nan=True), name
    got = apply(getattr(kp, "_cos" + precision), x[:7])
    assert np.allclose(got[:4], np.cos(x[:4])) and np.isnan(got[4:]).all()
    assert apply(getattr(kp, "_exp" + precision), x)[0] == 1.0 and apply(kp._log64, x)[2] == 0.0
