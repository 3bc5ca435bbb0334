# SPDX-License-Identifier: BSD-3-Clause
"""Side by side: how much longer a call takes when other programs want the same cores."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

import kpcasketch as kp

from .common import SIZE, measured_once, of, unit

PROGRAM = """
import sys, time
import numpy as np, kpcasketch as kp
rng = np.random.default_rng(0)
g = kp.gaussian(6.0)
def clusters(n):
    return (3.0 * rng.standard_normal((10, 16)))[rng.integers(10, size=n)] + 0.5 * rng.standard_normal((n, 16))
def stream(n, m):
    X, state = rng.standard_normal((n, 100)), kp.skpca_start(kp.fourier_features_map(kp.gaussian(14.0), 100, m), 20)
    return lambda: kp.skpca_update(state, X)
def steps(n, m):
    X = rng.standard_normal((n, 10))
    state = kp.dsgd_start(X, kp.fourier_features_map(kp.gaussian(4.0), 10, m, stored=False), 3)
    for _ in range(2 * m // 128):
        state = kp.dsgd_update(state, X)
    return lambda: kp.dsgd_update(state, X)
def of_points(function):
    return lambda n, *rest: (lambda X: lambda: function(X, *rest))(clusters(n))
pca = of_points(lambda X: kp.kpca(X, g, 10))
accelerated = of_points(lambda X: kp.recursive_rls_accelerated(X, g, 300))
gram = of_points(lambda X: kp.gram(X, X, g))
features = of_points(lambda X: kp.fourier_features(X, kp.fourier_features_map(g, 16, 300)))
means = of_points(lambda X: kp.kmeans_select(X, 50))
shadows = of_points(lambda X: kp.shadow_select(X, 3.0))
factor = of_points(lambda X: kp.nystrom(X, np.arange(100), g))
go = {call}
go()
go()
print("ready", flush=True)
for line in sys.stdin:
    begun, calls = time.perf_counter(), 0
    while time.perf_counter() - begun < float(line) or calls < 2:
        go()
        calls += 1
    print(calls / (time.perf_counter() - begun), flush=True)
"""


class Program:
    """A process that repeats one call for as long as it is told, and prints its rate."""

    def __init__(self, call, **environment):
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.replace("{call}", call)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=pathlib.Path(kp.__file__).parent,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "KPCASKETCH_QUIET": "1", **environment},
        )
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{call} ended")

    def begin(self):
        self.process.stdin.write(f"{max(0.1, min(SIZE, 1.0))}\n")
        self.process.stdin.flush()

    def end(self):
        """Calls a second."""
        return float(self.process.stdout.readline())

    def run(self):
        self.begin()
        return self.end()

    def close(self):
        self.process.kill()
        self.process.communicate()


CALLS = [
    "stream(6000, 200)",
    "stream(6000, 2000)",
    "pca(300)",
    "pca(3000)",
    "steps(512, 1024)",
    "accelerated(6000)",
    "gram(3000)",
    "means(20000)",
    "shadows(20000)",
    "factor(20000)",
]


def slowdowns(call):
    """Times of a call over its time in one program alone: in the slower of two at once, beside two busy processes, and
    with 16 threads.
    """
    with contextlib.ExitStack() as stack:

        def program(**environment):
            started = Program(call, **environment)
            stack.callback(started.close)
            return started

        first, second, many = program(), program(), program(NUMBA_NUM_THREADS="16")
        alone = max(first.run() for _ in range(2))
        with_many = max(many.run() for _ in range(2))
        together = []
        for _ in range(3):
            first.begin()
            second.begin()
            together.append(min(first.end(), second.end()))
        for _ in range(2):
            other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(other.wait)
            stack.callback(other.kill)
        time.sleep(0.5)
        beside = [second.run() for _ in range(3)]
        return alone / sorted(together)[1], alone / sorted(beside)[1], alone / with_many


class Busy:
    """Times over the time alone, with all threads; of two at once 2 is fair where threads share the work."""

    params = [CALLS]
    param_names = ["call"]

    def setup_cache(self):
        return measured_once(slowdowns, [(call,) for call in CALLS])

    setup_cache.timeout = 1200

    @unit("time in the slower of two at once over the time alone")
    def track_twice(self, found, call):
        return of(found, call)[0]

    @unit("time beside two busy processes over the time alone")
    def track_beside_two(self, found, call):
        return of(found, call)[1]

    @unit("time with 16 threads over the time with those of the machine")
    def track_sixteen_threads(self, found, call):
        return of(found, call)[2]
