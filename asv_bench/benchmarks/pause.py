# SPDX-License-Identifier: BSD-3-Clause
"""After a pause, as in a service or a notebook: to wake a thread may cost a tick of the scheduler."""

from .calls import CALLS, PEERS, programs
from .common import SIZE, measured_once, of, unit

LINE = f"pause {max(3, int(11 * SIZE))}"
ONE = {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def after_a_pause(name, peer):
    """Time of a call after .2 s, over the same in a process with one thread, in turn; and the latter in ms."""
    with programs(name, peer=peer) as (many,), programs(name, peer=peer, **ONE) as (one,):
        many.obey("loop 30")  # threads are known
        ratios, times = [], []
        for _ in range(3):
            alone = one.obey(LINE)
            ratios.append(many.obey(LINE) / alone)
            times.append(1e3 * alone)
        return sorted(ratios)[1], sorted(times)[1]


class Pause:
    """Calls after .2 s of sleep. Asked: at most 1.3 times the time of one thread."""

    params = [list(CALLS)]
    param_names = ["call"]
    peer = False

    def setup_cache(self):
        return measured_once(after_a_pause, [(call, self.peer) for call in self.params[0]])

    setup_cache.timeout = 3600

    @unit("time over the time with one thread")
    def track_ratio(self, found, call):
        return of(found, call, self.peer)[0]

    @unit("ms with one thread")
    def track_time_of_one_thread(self, found, call):
        return of(found, call, self.peer)[1]


class PausePeer(Pause):
    """The same of the calls of scikit-learn and SciPy that do this work."""

    params = [PEERS]
    peer = True
