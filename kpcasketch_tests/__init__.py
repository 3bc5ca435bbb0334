# SPDX-License-Identifier: BSD-3-Clause
import functools
import inspect

import numba


@functools.cache
def inner(function):
    """A helper of the file, which only compiled code calls, for Python to call."""
    if not hasattr(function, "py_func"):
        return function
    names = ", ".join(inspect.signature(function.py_func).parameters)
    return numba.njit(eval(f"lambda {names}: function({names})", {"function": function}))
