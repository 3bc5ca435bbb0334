# SPDX-License-Identifier: BSD-3-Clause
"""Fresh processes: whether a call takes the same time in each of them."""

from .calls import PEERS, programs
from .common import SIZE, measured_once, of, unit

CALLS = [
    "kpca 100, 5",
    "kpca 300, 5",
    "kpca 300, 50",
    "kpca 1000, 10",
    "kernel_ridge 300",
    "kernel_ridge 1000",
    "nystrom_kpca 3000, 300",
    "nystrom_ridge 3000, 300",
]


def medians(name, peer):
    """Median times of a call in ten processes, ascending."""
    times = []
    for _ in range(max(2, int(10 * min(SIZE, 1.0)))):
        with programs(name, peer=peer) as (program,):
            times.append(program.obey("loop 21"))
    return sorted(times)


class Fresh:
    """Ten processes, one after the other. Asked: the slowest median is at most 1.5 times the fastest."""

    params = [CALLS]
    param_names = ["call"]
    peer = False

    def setup_cache(self):
        return measured_once(medians, [(call, self.peer) for call in self.params[0]])

    setup_cache.timeout = 3600

    @unit("median time in the slowest process over that in the fastest")
    def track_slowest_process(self, found, call):
        times = of(found, call, self.peer)
        return times[-1] / times[0]


class FreshPeer(Fresh):
    """The same of the calls of scikit-learn that do this work."""

    params = [[call for call in CALLS if call in PEERS]]
    peer = True
