# SPDX-License-Identifier: BSD-3-Clause
"""How time and memory grow, beside what the docstrings say: sizes doubled three times, the exponent that fits the
seconds and the one that fits the stated operations, peak memory beyond the arguments and the stated bytes.

Operations are the docstrings' costs, with no constants but those that stand there. A difference of more than
.15 means that the docstring is wrong, or the code, or that something of lower order shows at these sizes; from 20 % too
little (what is done once weighs less in larger sizes) to exact. `python -m benchmarks.growth` prints the table.
"""

import ctypes
import pathlib
from typing import Callable, NamedTuple

import numpy as np

import kpcasketch as kp

from .common import SIZE, measured_once, normal, of, seconds, unit

KERNEL = kp.gaussian(10**0.5)


class Case(NamedTuple):
    """make(size) gives a call; operations(size) and numbers(size), of 8 bytes, are what its docstring says."""

    what: str
    sizes: tuple
    make: Callable
    operations: Callable
    numbers: Callable


def doubled(size):
    return tuple(max(32, int(SIZE * size)) << step for step in range(4))


def cloud(n):
    return (normal(n, 10),)


def same_cloud(size):
    return (normal(20_000, 10),)


def rows(m):
    return lambda n: (normal(n, m), normal(n, 1, 1)[:, 0])


def _case(what, size, data, call, operations, numbers):
    def make(n):
        arguments = data(n)
        return lambda: call(n, *arguments)

    return Case(what, doubled(size), make, operations, numbers)


MAP = kp.fourier_features_map(KERNEL, 10, 500)
LANDMARKS = np.arange(500)

CASES = {
    case.what: case
    for case in (
        _case(
            "gram in n",
            1000,
            cloud,
            lambda n, X: kp.gram(X, X, KERNEL),
            lambda n: n * n,
            lambda n: n * n + 30 * n,
        ),
        _case(
            "gram_matmat in n",
            2000,
            cloud,
            lambda n, X: kp.gram_matmat(X, X, X, KERNEL),
            lambda n: n * n,
            lambda n: 64 * 2 * n * 10,
        ),
        _case(
            "quantize_gram in n",
            2000,
            cloud,
            lambda n, X: kp.quantize_gram(X, KERNEL),
            lambda n: n * n,
            lambda n: n * n / 64,
        ),
        _case(
            "sample_gram (s = 10) in n",
            2000,
            cloud,
            lambda n, X: kp.sample_gram(X, KERNEL, 10.0),
            lambda n: n * n / 10,
            lambda n: n * n / 10 * 1.5 + 67 * n,
        ),
        _case(
            "block_lanczos of bits in n",
            2000,
            lambda n: (kp.quantize_gram(normal(n, 10), KERNEL),),
            lambda n, K: kp.block_lanczos(K, 10, 0, tol=0.0, max_iterations=3),
            lambda n: n * n,
            lambda n: 2 * n * (20 + 8 * 16),
        ),
        _case(
            "spectral_norm, implicit, in n",
            2000,
            cloud,
            lambda n, X: kp.spectral_norm(kp.Implicit(X, KERNEL), 0, tol=1e-2),
            lambda n: n * n,
            lambda n: 768 * n,
        ),
        _case(
            "kpca in n",
            1000,
            cloud,
            lambda n, X: kp.kpca(X, kp.gaussian(10.0), 10, centered=False),
            lambda n: n * n,
            lambda n: n * n,
        ),
        _case(
            "nystrom (s = 500) in n",
            10_000,
            cloud,
            lambda n, X: kp.nystrom(X, LANDMARKS[: len(X)], KERNEL),
            lambda n: n,
            lambda n: 500 * n + 500**2,
        ),
        _case(
            "nystrom (n = 20,000) in s",
            200,
            same_cloud,
            lambda s, X: kp.nystrom(X, np.arange(s), KERNEL),
            lambda s: s * (10 + s / 2),
            lambda s: 20_000 * s + s * s,
        ),
        _case(
            "nystrom_ridge (s = 500) in n",
            5000,
            cloud,
            lambda n, X: kp.nystrom_ridge(
                X, X[:, 0].copy(), LANDMARKS[: len(X)], KERNEL, 1e-3, intercept=False
            ),
            lambda n: n,
            lambda n: n + 500**2 + 500 * 8192,
        ),
        _case(
            "recursive_rls_practical (s = 200) in n",
            10_000,
            cloud,
            lambda n, X: kp.recursive_rls_practical(X, KERNEL, 200),
            lambda n: n,
            lambda n: 10 * n + 200**2 + 8192 * 400,
        ),
        _case(
            "recursive_rls_practical (n = 20,000) in s",
            100,
            same_cloud,
            lambda s, X: kp.recursive_rls_practical(X, KERNEL, s),
            lambda s: s * (s + 20),
            lambda s: 200_000 + s * s + 8192 * 2 * s,
        ),
        _case(
            "recursive_rls_accelerated (s = 400) in n",
            50_000,
            cloud,
            lambda n, X: kp.recursive_rls_accelerated(X, KERNEL, 400),
            lambda n: n,
            lambda n: 10 * n + 8192 * 40,
        ),
        _case(
            "rpcholesky (s = 200) in n",
            10_000,
            cloud,
            lambda n, X: kp.rpcholesky(X, KERNEL, 200),
            lambda n: n,
            lambda n: 200 * n,
        ),
        _case(
            "rpcholesky (n = 20,000) in s",
            100,
            same_cloud,
            lambda s, X: kp.rpcholesky(X, KERNEL, s),
            lambda s: s * (10 + s),
            lambda s: 20_000 * s,
        ),
        _case(
            "ridge_leverage_scores in n",
            250,
            cloud,
            lambda n, X: kp.ridge_leverage_scores(X, KERNEL, 1.0),
            lambda n: n**3,
            lambda n: 2 * n * n,
        ),
        _case(
            "shadow_select (d = 3, eps = .5) in n",
            50_000,
            lambda n: (normal(n, 3),),
            lambda n, X: kp.shadow_select(X, 0.5),
            lambda n: n,
            lambda n: 6 * n,
        ),
        _case(
            "kmeans_select (100 centers) in n",
            10_000,
            cloud,
            lambda n, X: kp.kmeans_select(X, 100, 0, restarts=1, max_iterations=10),
            lambda n: n,
            lambda n: 12 * n,
        ),
        _case(
            "herd (100 centers) in n",
            5000,
            cloud,
            lambda n, X: kp.herd(X, KERNEL, 100),
            lambda n: n * n / 2 + 100 * n,
            lambda n: 20 * n,
        ),
        _case(
            "kernel_thin in n",
            1000,
            cloud,
            lambda n, X: kp.kernel_thin(X, KERNEL, 3),
            lambda n: 2 * n * n,
            lambda n: 20 * n,
        ),
        _case(
            "rskpca in m",
            500,
            cloud,
            lambda m, X: kp.rskpca(X, kp.gaussian(10.0), 5, centered=False),
            lambda m: m * m,
            lambda m: m * m,
        ),
        _case(
            "Fourier features (m = 500) in n",
            10_000,
            cloud,
            lambda n, X: kp.features(X, MAP),
            lambda n: n,
            lambda n: 500 * n,
        ),
        _case(
            "skpca (m = 500, ell = 20) in n",
            10_000,
            cloud,
            lambda n, X: kp.skpca(X, KERNEL, 10, 500, 20, centered=False),
            lambda n: n,
            lambda n: 500 * 30 + 2**20,
        ),
        _case(
            "rnca (m = 500) in n",
            10_000,
            cloud,
            lambda n, X: kp.rnca(X, KERNEL, 10, 500, centered=False),
            lambda n: n,
            lambda n: 3 * 500**2 + 8192 * 500,
        ),
        _case(
            "frequent_directions (m = 200, ell = 20) in n",
            10_000,
            rows(200),
            lambda n, Z, y: kp.frequent_directions(Z, 20),
            lambda n: n,
            lambda n: 200 * 40,
        ),
        _case(
            "dsgd_kpca (20 steps of 2000 features) in the mini-batch",
            256,
            cloud,
            lambda b, X: kp.dsgd_kpca(
                X, KERNEL, 3, 2000, steps=kp.DSGDSteps(20, b), centered=False
            ),
            lambda b: b,
            lambda b: 2000 * 3 + 26 * b,
        ),
        _case(
            "kernel_ridge (r = 100) in n",
            20_000,
            rows(100),
            lambda n, F, y: kp.factor_ridge(F, y, 1e-3),
            lambda n: n,
            lambda n: 100**2 + 8192 * 100,
        ),
        _case(
            "kernel_kmeans (r = 100, 10 clusters) in n",
            10_000,
            rows(100),
            lambda n, F, y: kp.kernel_kmeans(F, 10, 0, restarts=1, max_iterations=10),
            lambda n: n,
            lambda n: 3 * n,
        ),
        _case(
            "mmd (100 centers) in n",
            2000,
            cloud,
            lambda n, X: kp.mmd(X, kp.ReducedSet(X[:100], np.full(100, n / 100)), KERNEL),
            lambda n: n * n / 2 + 100 * n,
            lambda n: 22 * n,
        ),
    )
}


def peak(call):
    """Bytes of the process at most during a call beyond what it had before (Linux; else 0)."""
    status = pathlib.Path("/proc/self/status")
    try:
        # what calls before have left behind goes back to the system
        ctypes.CDLL(None).malloc_trim(0)
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return 0.0

    def of(name):
        return 1024.0 * int(
            next(line for line in status.read_text().splitlines() if line.startswith(name)).split()[
                1
            ]
        )

    before = of("VmRSS")
    result = call()
    used = of("VmHWM") - before
    del result
    return used


def exponent(sizes, values):
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def measured(case):
    taken = []
    for size in case.sizes:
        call = case.make(size)
        repeat = 3 if not taken or taken[-1] < 1.0 else 1
        taken.append(seconds(call, repeat=repeat)[0])
    return taken, peak(call)


class Growth:
    params, param_names = [sorted(CASES)], ["function"]

    def setup_cache(self):
        return measured_once(lambda what: measured(CASES[what]), [(what,) for what in CASES])

    setup_cache.timeout = 1200

    @unit("exponent of seconds less that of the stated operations")
    def track_exponent(self, found, what):
        case = CASES[what]
        return exponent(case.sizes, of(found, what)[0]) - exponent(
            case.sizes, [case.operations(n) for n in case.sizes]
        )

    @unit("peak bytes over stated bytes")
    def track_peak(self, found, what):
        case = CASES[what]
        return of(found, what)[1] / (8 * case.numbers(case.sizes[-1]))


def main():
    print("| function | largest size, seconds | exponent | stated | peak, MB | stated |")
    print("|---|---|---|---|---|---|")
    for case in CASES.values():
        taken, used = measured(case)
        print(
            f"| {case.what} | {case.sizes[-1]:,}, {taken[-1]:.3g} | {exponent(case.sizes, taken):.2f} | "
            f"{exponent(case.sizes, [case.operations(n) for n in case.sizes]):.2f} | {used / 1e6:.3g} | "
            f"{8e-6 * case.numbers(case.sizes[-1]):.3g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
