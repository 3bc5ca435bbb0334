# SPDX-License-Identifier: BSD-3-Clause
"""Laws of random landmarks: the algorithms of RLS in NumPy, the kernel values that a call evaluates, and exact tests of
independent coins and of finite laws."""

import ctypes
import math

import numba
import numpy as np
from scipy import stats

import kpcasketch as kp
from paper_checks.tools import lag_score

# ----------------------------------------------------------------------------------------------------------------------
# Which kernel values are evaluated.

_watched = []


def numbered(X):
    """Points for a watched kernel: a column of numbers before their coordinates."""
    return np.column_stack([np.arange(len(X)), X])


def watched_kernel(n, sigma):
    """(Gaussian kernel of numbered points; evaluated(call): the pairs of numbers at which a call evaluates it, (n, n)
    flags)."""
    seen = np.zeros((n, n), np.uint8)
    _watched.append(seen)  # as long as the kernel, which lives as long as the process
    place = seen.ctypes.data
    mark = ctypes.CDLL(None).memset
    mark.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    mark.restype = ctypes.c_void_p

    @numba.njit
    def evaluate(x, y):
        i, j = int(x[0]), int(y[0])
        if 0 <= i < n and 0 <= j < n:
            mark(place + i * n + j, 1, 1)
        squares = 0.0
        for c in range(1, x.size):
            squares += (x[c] - y[c]) ** 2
        return math.exp(-0.5 * squares / sigma**2)

    def evaluated(call):
        seen[:] = 0
        call()
        return (seen + seen.T) > 0

    return kp.custom(evaluate), evaluated


# ----------------------------------------------------------------------------------------------------------------------
# The algorithms as the paper prints them.


def exact_scores(K, lam):
    """(K (K + lam)^-1)_ii."""
    return np.linalg.solve(K + lam * np.eye(len(K)), K).diagonal()


def scores_by_sample(K, rows, weights, lam):
    """(1/lam) (K - K S (S^T K S + lam)^-1 S^T K)_ii (lemma 6), at most 1."""
    inner = K[np.ix_(rows, rows)] + np.diag(lam / weights**2)
    rest = K.diagonal() - (K[rows] * np.linalg.solve(inner, K[rows])).sum(0)
    return np.minimum(1, rest / lam)


def largest_rank(s, constant, delta):
    """The largest k with c k log(2 k / delta) <= s, at least 1."""
    fits = (k for k in range(1, s + 1) if constant * k * math.log(2 * k / delta) <= s)
    return max(fits, default=1)


def tail_ridge(values, k):
    """(1/k) sum_{i>k} sigma_i, at least rounding: a sample of k points has no tail."""
    return max(np.sort(values)[:-k].sum() / k, 2.2e-16 * values.sum())


def drawn_by_size(rng, sizes, s):
    """s numbers drawn one by one, each with probability proportional to its size among those left."""
    return np.sort(np.argsort(rng.exponential(size=len(sizes)) / sizes)[:s])


def fair_half(rng, n):
    return rng.random(n) < 0.5


def alternate_half(rng, n):
    """Every second point: a wrong half."""
    return np.arange(n) % 2 == rng.integers(2)


def odd_half(rng, n):
    """The odd rows: a wrong half."""
    return np.arange(n) % 2 == 1


def exact_half(rng, n):
    """Half of the points to the point: a wrong half."""
    return rng.permutation(n) < n // 2


class Recursion:
    """Algorithms 2 and 3, and the practical methods of section 5, in NumPy.

    lam: the ridge of algorithm 2. s, c: size and constant of algorithm 3, whose ridge is (1/k) sum_{i>k} sigma_i of the
    sample. factor, oversampling: 3/2 and 16, 5 and 16, or 1 and 1. top: landmarks that a practical method draws at the
    top level, by the size `top_size`. A practical method has one delta.
    """

    def __init__(
        self, delta, factor, oversampling, *, lam=0.0, s=0, c=0.0, top=0, top_size=0, half=fair_half
    ):
        self.delta, self.factor, self.oversampling = delta, factor, oversampling
        self.lam, self.s, self.c = lam, s, c
        self.top, self.top_size, self.half = top, top_size, half

    def chances(self, rng, K, delta, size):
        """p_i of all points, from a sample of their half."""
        half = np.flatnonzero(self.half(rng, len(K)))
        below = self.sample(rng, K[np.ix_(half, half)], delta if self.top else delta / 3)
        rows, weights = half[below[0]], below[1]
        lam, k = self.lam, 0
        if not lam:
            k = largest_rank(size, self.c, delta)
            inner = K[np.ix_(rows, rows)] * np.outer(weights, weights)
            lam = tail_ridge(np.linalg.eigvalsh(inner), k)
        scores = np.minimum(1, self.factor * scores_by_sample(K, rows, weights, lam))
        many = 2 * k or scores.sum()
        return np.minimum(1, self.oversampling * math.log(many / delta) * scores)

    def sample(self, rng, K, delta, level=1):
        """(rows, weights). Below the top, s uniform points replace a sample of at most k points, which has no tail: the
        paper leaves that case open."""
        n = len(K)
        if n <= (self.s or 192 * math.log(1 / delta)):
            return np.arange(n), np.ones(n)
        p = self.chances(rng, K, delta, self.s)
        rows = np.flatnonzero(rng.random(n) < p)
        if self.s and level and rows.size <= largest_rank(self.s, self.c, delta):
            return np.sort(rng.permutation(n)[: self.s]), np.full(self.s, math.sqrt(n / self.s))
        return rows, p[rows] ** -0.5

    def landmarks(self, rng, K):
        if not self.top:
            return self.sample(rng, K, self.delta, 0)[0]
        return drawn_by_size(rng, self.chances(rng, K, self.delta, self.top_size), self.top)


# ----------------------------------------------------------------------------------------------------------------------
# Exact tests: p-values of what was drawn, if its law is the right one.


def fair(kept, p, rng):
    """Signs of fair coins, independent where kept (trials, n) are independent with the probabilities p."""
    uniform = np.where(kept, 1 - p * rng.random(kept.shape), (1 - p) * rng.random(kept.shape))
    return np.where(uniform > 0.5, 1.0, -1.0)


def p_of_coins(kept, p, rng):
    """{test: p-value} of independent coins, kept (trials, n), with probabilities p, a number or (n,): how often each is
    kept, how many a trial keeps, which of six are kept together, and any two in all places and at all distances."""
    trials, n = kept.shape
    p = np.broadcast_to(p, n)
    signs = fair(kept, p, rng)
    counts = kept.sum(0)
    tails = stats.binom.cdf(counts, trials, p), stats.binom.sf(counts - 1, trials, p)
    each = 2 * np.min(tails) * n
    spread = (signs.sum(1) ** 2).sum() / n
    numbers = 2 * min(stats.chi2.cdf(spread, trials), stats.chi2.sf(spread, trials))
    near = np.arange(n - n % 6).reshape(-1, 6)
    together = min(p_of_subsets(signs > 0, columns) for columns in (near, near.reshape(6, -1).T))
    pairs = 4 * signs.size + trials**2 + n**2
    return {
        "each": each,
        "numbers": numbers,
        "subsets of six": 2 * together,
        "pairs": pairs * math.exp(-(lag_score(signs) ** 2) / 2),
    }


def p_of_subsets(kept, columns):
    """All subsets of a few coins are equally likely: columns (sets, few) of kept (trials, n)."""
    few = columns.shape[1]
    patterns = kept[:, columns] @ (1 << np.arange(few))
    return stats.chisquare(np.bincount(patterns.ravel(), minlength=2**few)).pvalue


def p_of_law(drawn, law):
    """Outcomes have a finite law, {outcome: probability}; what is expected less than ten times goes together."""
    counts = {outcome: 0 for outcome in law}
    for one in drawn:
        if one not in law:
            return 0.0
        counts[one] += 1
    seen, expected = np.array(list(counts.values())), len(drawn) * np.array(list(law.values()))
    order = np.argsort(expected)
    seen, expected = seen[order], expected[order]
    # the least ones together
    merged = max(1, int(np.searchsorted(np.cumsum(expected), 10)) + 1, (expected < 10).sum())
    starts = np.append(0, np.arange(merged, len(seen)))
    seen, expected = np.add.reduceat(seen, starts), np.add.reduceat(expected, starts)
    return stats.chisquare(seen, expected).pvalue


def p_of_repeats(drawn, law):
    """A draw equals the one before as often as independent ones of that law do."""
    equal = sum(one == other for one, other in zip(drawn, drawn[1:]))
    return stats.binomtest(equal, len(drawn) - 1, sum(p * p for p in law.values())).pvalue


def p_of_two(first, second):
    """Two samples of numbers have one law: their histograms, with at least 20 numbers in a bin."""
    both = np.sort(np.concatenate([first, second]))
    edges = [-math.inf]
    while (left := both[both > edges[-1]]).size >= 40 and left[-1] > left[19]:
        edges.append(left[19])
    if (both > edges[-1]).sum() < 20:
        edges.pop()
    table = [
        np.bincount(np.searchsorted(edges[1:], one), minlength=len(edges))
        for one in (first, second)
    ]
    return stats.chi2_contingency(table, correction=False).pvalue if len(edges) > 1 else 1.0


def law_of_pivots(K, s, steps=()):
    """{ordered pivots: probability} of s steps of randomly pivoted Cholesky on a small matrix."""
    if s == 0:
        return {steps: 1.0}
    found, diagonal = {}, K.diagonal().clip(0)
    for i in np.flatnonzero(diagonal > 1e-12):
        rest = K - np.outer(K[i], K[i]) / K[i, i]
        for pivots, chance in law_of_pivots(rest, s - 1, (*steps, int(i))).items():
            found[pivots] = chance * diagonal[i] / diagonal.sum()
    return found
