# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks share. Data depend on fixed seeds; add to this file, do not change it, or history is lost.

The peer of a function runs in the same process, in turn with it, and `track_` benchmarks report our median time over
the peer's: the machine's noise falls on both. Less is better in every `track_` benchmark, as asv assumes when it looks
for regressions. MEASURED.md says how to run benchmarks, also at smaller sizes.
"""

import os
import time
import traceback

import numpy as np

SIZE = float(os.environ.get("KPCASKETCH_BENCH_SIZE", "1"))


def size(n):
    return max(64, int(n * SIZE))


def normal(n, d, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


def seconds(*functions, repeat=5):
    """Median seconds of each function, called in turn `repeat` times after one call to compile and warm up.

    The pause lets the threads of the function before go to sleep: OpenBLAS's spin on for 25 ms and slow down whoever is
    next.
    """
    times = [[] for _ in functions]
    for turn in range(repeat + 1):
        for function, taken in zip(functions, times):
            time.sleep(0.1)
            start = time.perf_counter()
            function()
            if turn:
                taken.append(time.perf_counter() - start)
    return [float(np.median(taken)) for taken in times]


def ratio(ours, peer, repeat=5):
    """Our time over the peer's: below 1 we are faster."""
    theirs, mine = seconds(peer, ours, repeat=repeat)
    return mine / theirs


def off_by(ratio):
    """The factor between two numbers whose ratio should be 1, whichever is the larger."""
    return max(ratio, 1.0 / ratio)


def measured_once(function, entries):
    """{entry: function(*entry)} for several figures, None where it fails: what a class's setup_cache returns.

    asv ends what prints nothing for as long as the timeout.
    """
    found = {}
    for entry in entries:
        print(*entry, flush=True)
        try:
            found[entry] = function(*entry)
        except Exception:
            traceback.print_exc()
            found[entry] = None
    return found


def of(found, *entry):
    """The figure that was measured. Where there is none, asv skips (in `setup`) or fails."""
    if found[entry] is None:
        raise NotImplementedError
    return found[entry]


def unit(text):
    def mark(function):
        function.unit = text
        return function

    return mark
