# SPDX-License-Identifier: BSD-3-Clause
"""The Nystrom method for a stream (SKPCA section 1.2), a rival of SKPCA: points are sampled by reservoirs.

Each number that is drawn depends on the seed, the reservoir and its number of draws alone, so a stream may be cut
anywhere.
"""

from typing import NamedTuple

import numpy as np

import kpcasketch as kp

MOST = 9e18  # largest index of a point


class Reservoirs(NamedTuple):
    """s independent reservoirs of one point each. points: (s, d). upcoming: index of the point that each takes next.
    replaced: number of points each has taken. count: number of points so far. half_life: number of points after which
    a weight halves, or None."""

    points: np.ndarray
    upcoming: np.ndarray
    replaced: np.ndarray
    count: int
    seed: int
    half_life: float = None


def words(keys, counters):
    """64 random bits for each key and counter (SplitMix64)."""
    steps = np.atleast_1d(np.asarray(counters, np.uint64)) + np.uint64(1)
    z = np.asarray(keys, np.uint64) + steps * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniforms(keys, counters):
    """Random numbers in the open interval (0, 1)."""
    return ((words(keys, counters) >> np.uint64(12)) + 0.5) * 2.0**-52


def keys_of(seed, s):
    """A key for each of s reservoirs."""
    return words(words([seed], 0), np.arange(s))


def start(s, d, seed=0, half_life=None):
    """The state of s reservoirs before the first point of d coordinates."""
    zeros = np.zeros(s, np.int64)
    return Reservoirs(np.zeros((s, d)), zeros, zeros.copy(), 0, seed, half_life)


def update(state, X):
    """The state after more points X (n, d). Each reservoir holds one of the points so far, drawn with probability
    proportional to its weight. Costs O(n d + s d log(n)) time, or with a half-life h, O(n d + s d n / h + s d log(h)).
    """
    if state.count >= 2**62:
        raise ValueError(f"state must have seen fewer than 2**62 points, got {state.count}")
    points = state.points.copy()
    upcoming = state.upcoming.copy()
    replaced = state.replaced.copy()
    count = state.count + len(X)
    keys = keys_of(state.seed, len(points))
    while (taking := np.flatnonzero(upcoming < count)).size:
        points[taking] = X[upcoming[taking] - state.count]
        t = upcoming[taking] + 1
        u = uniforms(keys[taking], replaced[taking])
        if state.half_life is None:
            beyond = t / u  # exceeds x with probability t / x
        else:  # x solves 2^(-(x - t) / half_life) mass(t) / mass(x) = u
            gained = -np.expm1(-np.log(2.0) * t / state.half_life)
            beyond = t + state.half_life / np.log(2.0) * np.log1p(gained * (1.0 - u) / u)
        upcoming[taking] = np.minimum(beyond, MOST)
        replaced[taking] += 1
    return state._replace(points=points, upcoming=upcoming, replaced=replaced, count=count)


def merge(a, b):
    """The reservoirs of two streams, which must have different seeds. Each point is from a or b, with probabilities in
    the ratio of their counts."""
    if a.points.shape != b.points.shape or a.half_life is not None or b.half_life is not None:
        raise ValueError("a and b must have been started with the same sizes and no half_life")
    if a.seed == b.seed:
        raise ValueError("a and b must have been started with different seeds")
    seed = int(words(words([a.seed], 1), b.seed)[0])
    count = a.count + b.count
    keys = keys_of(seed, len(a.points))
    of_b = uniforms(keys, 0) * count < b.count
    points = np.where(of_b[:, None], b.points, a.points)
    upcoming = np.minimum(count / uniforms(keys, 1), MOST).astype(np.int64)
    return Reservoirs(points, upcoming, np.full_like(upcoming, 2), count, seed)


def finish(state, kernel, k):
    """Nystrom features F with F F^T = C W_k^+ C^T, an Expansion over the s points (SKPCA section 1.1).

    W is the Gram matrix of the s points, and W_k its best approximation of rank k. C has the kernel values of all
    points and these. Drineas and Mahoney (2005) draw with probability proportional to k(x, x)^2. Draws here are
    uniform, so k(x, x) must be constant. `values` are for the s points.
    """
    if not state.count:
        raise ValueError("state must have seen a point")
    own = kp.gram_diagonal(state.points, kernel)
    if (np.abs(own - own[0]) > 1e-6 * abs(own[0])).any():  # points may be normalized in float32
        raise ValueError("kernel must have the same k(x, x) for all points")
    return kp.kpca(state.points, kernel, k, centered=False)


def nystrom(X, kernel, k, s, seed=0):
    """Nystrom features of rank k from s points of X, which are drawn with replacement (SKPCA section 1)."""
    return finish(update(start(s, X.shape[1], seed), X), kernel, k)
