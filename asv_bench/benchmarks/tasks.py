# SPDX-License-Identifier: BSD-3-Clause
"""How often as fast as one thread the loops of a call can be, for more threads than this machine has.

Computed, not timed: of each loop that a call shares, the work that its caller states and the number of its tasks, which
numba deals out in runs of equal length; the longest run is waited for. What Python, NumPy and BLAS do between loops is
not in it, nor is memory's bandwidth. `python -m benchmarks.tasks` prints the table.
"""

import contextlib
import functools
import inspect

import numpy as np

import kpcasketch as kp

from .common import normal, size

THREADS = (2, 8, 16, 64)
KERNEL = kp.gaussian(10**0.5)
BLOCKS = {
    "_pack_columns": lambda panels, **_: panels.shape[1],
    "_turn_rows": lambda columns, **_: len(columns),
    "_forward_substitute": lambda pairs, **_: len(pairs.X),
}
LENGTHS = {  # of the loops over `prange`, as the first line of each core has it; of the cores that the works call
    **{name: lambda of=of, **given: -(-of(**given) // 128) for name, of in BLOCKS.items()},
    **{name: lambda tasks, **_: tasks for name in ("_add_tiles", "_add_rows", "_multiply_bits")},
    **{name: lambda slots, **_: len(slots) for name in ("_add_columns", "_multiply_columns")},
    "_fourier": lambda infinite, **_: len(infinite),
    "_add_panel_products": lambda places, **_: len(places),
    "_fill_gram": lambda places, **_: -(-len(places) // 4),
}


@contextlib.contextmanager
def noted():
    """(work, tasks) of each shared loop that runs within."""
    found, before = [], {name: getattr(kp, name) for name in LENGTHS}

    def noting(name, core):
        signature = inspect.signature(core)

        def noted(work, *arguments):
            found.append(
                (
                    work,
                    LENGTHS[name](**signature.bind(*arguments).arguments)
                    if work > kp._SHARED_FROM
                    else 1,
                )
            )
            return core(work, *arguments)

        return noted

    try:
        for name, core in before.items():
            setattr(kp, name, noting(name, core))
        yield found
    finally:
        for name, core in before.items():
            setattr(kp, name, core)


def times_one_thread(found, threads):
    """Work of all loops over that of the longest run of tasks in each."""
    longest = sum(work * -(-tasks // threads) / tasks for work, tasks in found)
    return sum(work for work, _ in found) / longest


@functools.cache
def cloud(n):
    return normal(n, 10)


@functools.cache
def sketch(n):
    return kp.quantize_gram(cloud(n), KERNEL)


@functools.cache
def matrix(n):
    return kp.gram(cloud(n), cloud(n), KERNEL)


MAP = kp.fourier_features_map(KERNEL, 10, 2000)
EIGHT, SIXTEEN, MANY = size(8000), size(16_000), size(100_000)
WORKS = {
    "gram, 8000 points": lambda: kp.gram(cloud(EIGHT), cloud(EIGHT), KERNEL),
    "ten eigenpairs of 8000 points": lambda: kp.block_lanczos(matrix(EIGHT), 10),
    "gram_matmat, 16,000 points, one vector": lambda: kp.gram_matmat(
        cloud(SIXTEEN), cloud(SIXTEEN), normal(SIXTEEN, 1), KERNEL
    ),
    "1-bit matrix times 16 vectors, 16,000 rows": lambda: kp.matmat(
        sketch(SIXTEEN), normal(SIXTEEN, 16)
    ),
    "fourier_features, 25,000 x 10 to 2000": lambda: kp.fourier_features(
        cloud(MANY)[: MANY // 4], MAP
    ),
    "skpca, m = 2000, ell = 50": lambda: kp.skpca_update(kp.skpca_start(MAP, 50), cloud(EIGHT)),
    "nystrom_ridge, 100,000 x 10, s = 1500": lambda: kp.nystrom_ridge(
        cloud(MANY), cloud(MANY)[:, 0].copy(), np.arange(size(1500)), KERNEL, 1.0
    ),
    "recursive_rls_accelerated, 100,000 x 10, s = 2000": lambda: kp.recursive_rls_accelerated(
        cloud(MANY), KERNEL, size(2000)
    ),
    "rpcholesky, 100,000 x 10, s = 500": lambda: kp.rpcholesky(cloud(MANY), KERNEL, size(500)),
}


def loops_of(work):
    """The loops that a call shares; what it needs is made before."""
    WORKS[work]()
    with noted() as found:
        WORKS[work]()
    return found


class Tasks:
    params = list(WORKS), list(THREADS)
    param_names, unit, timeout = ["work", "threads"], "times one thread", 600

    def track_times_one_thread(self, work, threads):
        return times_one_thread(loops_of(work), threads)


def main():
    print("| work |", *(f"{threads} threads |" for threads in THREADS))
    print("|---" * (1 + len(THREADS)) + "|")
    for work in WORKS:
        found = loops_of(work)
        print(f"| {work} |", *(f"{times_one_thread(found, threads):.3g} |" for threads in THREADS))


if __name__ == "__main__":
    main()
