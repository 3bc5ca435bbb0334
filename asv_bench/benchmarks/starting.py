# SPDX-License-Identifier: BSD-3-Clause
"""Import, first result with a warm cache, and first result of all, each in new processes."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

import kpcasketch as kp

from .common import unit

FIRST = "import numpy as np, kpcasketch as kp; X = np.eye(3); kp.gram(X, X, kp.gaussian(1.0))"


def run(code, **environment):
    start = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=pathlib.Path(kp.__file__).parent,
        env={**os.environ, **environment},
    )
    return time.perf_counter() - start, result.stdout


class Starting:
    timeout = 600

    @unit("s beyond numba's own import")
    def track_import(self):
        code = "import time, numba, numpy; s = time.perf_counter(); import kpcasketch; print(time.perf_counter() - s)"
        return min(float(run(code)[1]) for _ in range(3))

    @unit("s, process to first Gram matrix, compiled code on disk")
    def track_first_result_warm(self):
        run(FIRST)
        return min(run(FIRST)[0] for _ in range(3))

    @unit("s, process to first Gram matrix, nothing on disk")
    def track_first_result_cold(self):
        with tempfile.TemporaryDirectory() as empty:
            return run(FIRST, NUMBA_CACHE_DIR=empty)[0]


CPU = """
import time, numpy as np, kpcasketch as kp
X, begun = np.random.default_rng(0).standard_normal((2000, 8)), time.process_time()
{call}
print(time.process_time() - begun)
"""


class FirstCalls:
    """CPU seconds of a first call, nothing on disk, and with what an earlier process has compiled."""

    timeout = 1200
    params = [
        [
            "kp.gram(X, X, kp.gaussian(2.0))",
            "kp.kpca(X, kp.gaussian(3.0), 5)",
            "kp.recursive_rls_accelerated(X, kp.gaussian(3.0), 100)",
            "kp.dsgd_kpca(X, kp.gaussian(3.0), 2, 512)",
            "kp.skpca(X, kp.gaussian(3.0), 5, 200, 20)",
            "kp.shadow_select(X, 1.0)",
            "kp.main(['demo', '-k', '2'])",
        ]
    ]
    param_names = ["call"]

    @unit("CPU seconds, nothing on disk")
    def track_cold(self, call):
        with tempfile.TemporaryDirectory() as empty:
            return float(run(CPU.format(call=call), NUMBA_CACHE_DIR=empty)[1].split()[-1])

    @unit("CPU seconds, compiled code on disk")
    def track_warm(self, call):
        run(CPU.format(call=call))
        return min(float(run(CPU.format(call=call))[1].split()[-1]) for _ in range(3))
