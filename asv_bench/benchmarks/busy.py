# SPDX-License-Identifier: BSD-3-Clause
"""Side by side: how much longer a call takes when other programs want the same cores, with BLAS as it comes."""

import contextlib
import subprocess
import sys
import time

from .calls import CALLS, PEERS, programs
from .common import SIZE, measured_once, of, unit

LINE = f"rate {max(0.1, min(SIZE, 1.0))}"
SPIN = [sys.executable, "-c", "while True: pass"]


@contextlib.contextmanager
def busy(count):
    """Processes that keep processors busy."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            other = subprocess.Popen(SPIN)
            stack.callback(other.wait)
            stack.callback(other.kill)
        time.sleep(0.5)
        yield


def slowdowns(name, peer):
    """Times over the time alone: of the slower of two at once, beside four busy processes, and with 16 threads."""
    with contextlib.ExitStack() as stack:
        first, second = stack.enter_context(programs(name, name, peer=peer))
        (many,) = stack.enter_context(programs(name, peer=peer, NUMBA_NUM_THREADS="16"))
        alone = sorted(first.obey(LINE) for _ in range(3))[1]
        with_many = sorted(many.obey(LINE) for _ in range(3))[1]
        together = []
        for _ in range(3):
            first.begin(LINE)
            second.begin(LINE)
            together.append(min(first.end(), second.end()))
        with busy(4):
            beside = [second.obey(LINE) for _ in range(3)]
        return alone / sorted(together)[1], alone / sorted(beside)[1], alone / with_many


class Busy:
    """Times over the time alone. Asked of two at once: at most 2.5 for each call, and a median of 1.25.

    Where both threads of a machine of two cores share the work, 2 is fair; beside four busy processes, 5 is.
    """

    params = [list(CALLS)]
    param_names = ["call"]
    peer = False

    def setup_cache(self):
        return measured_once(slowdowns, [(call, self.peer) for call in self.params[0]])

    setup_cache.timeout = 3600

    @unit("time in the slower of two at once over the time alone")
    def track_twice(self, found, call):
        return of(found, call, self.peer)[0]

    @unit("time beside four busy processes over the time alone")
    def track_beside_four(self, found, call):
        return of(found, call, self.peer)[1]

    @unit("time with 16 threads over the time with those of the machine")
    def track_sixteen_threads(self, found, call):
        return of(found, call, self.peer)[2]


class BusyPeer(Busy):
    """The same of the calls of scikit-learn and SciPy that do this work."""

    params = [PEERS]
    peer = True


class BusySearch:
    """A grid search by two processes (joblib), over the same search by one: 1 is fair where a fit uses both cores."""

    params = [["LandmarkRidge", "Nystroem and Ridge"]]
    param_names = ["regression"]
    timeout = 1200

    @unit("time with n_jobs=2 over the time with n_jobs=1")
    def track_two_jobs(self, name):
        from sklearn.kernel_approximation import Nystroem
        from sklearn.linear_model import Ridge
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline

        import kpcasketch as kp

        from .calls import GAMMA, SIGMA, clusters, target
        from .common import size

        X = clusters(size(6000))
        s = min(200, len(X) // 4)
        if name == "LandmarkRidge":
            model, grid = kp.LandmarkRidge(s, sigma=SIGMA), {"lam": [1e-3, 1e-2, 1e-1]}
        else:
            model = make_pipeline(Nystroem(gamma=GAMMA, n_components=s, random_state=0), Ridge())
            grid = {"ridge__alpha": [1e-3, 1e-2, 1e-1]}
        times = []
        for jobs in (1, 2, 1, 2):
            begun = time.perf_counter()
            GridSearchCV(model, grid, n_jobs=jobs).fit(X, target(X))
            times.append(time.perf_counter() - begun)
        return times[3] / times[2]
