# SPDX-License-Identifier: BSD-3-Clause
"""Laws of random landmarks: the recursive algorithms of RLS in NumPy, the kernel values that a call evaluates, and
exact tests of independent coins and of finite laws."""

import ctypes
import itertools
import math

import numba
import numpy as np
from scipy import stats

import kpcasketch as kp

# ----------------------------------------------------------------------------------------------------------------------
# Which kernel values are evaluated.

_watched = []


def watched_kernel(n, sigma):
    """(Gaussian kernel of points after their first coordinate, a number from 0 to n - 1; evaluated(call): (n, n) flags
    of the pairs of numbers at which a call evaluates it)."""
    seen = np.zeros((n, n), np.uint8)
    _watched.append(seen)  # kept as long as the kernel, which is valid until the process ends
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


def numbered(X):
    """Points for a watched kernel: a column of numbers before their coordinates."""
    return np.column_stack([np.arange(len(X)), X])


# ----------------------------------------------------------------------------------------------------------------------
# The algorithms as the paper prints them.


def scores_by_sample(K, rows, weights, lam):
    """(1/lam) (K - K S (S^T K S + lam)^-1 S^T K)_ii, lemma 6, at most 1."""
    inner = K[np.ix_(rows, rows)] + np.diag(lam / weights**2)
    rest = K.diagonal() - (K[rows] * np.linalg.solve(inner, K[rows])).sum(0)
    return np.minimum(1, rest / lam)


def largest_rank(s, constant, delta):
    """The largest k with c k log(2 k / delta) <= s, at least 1."""
    return max(k for k in range(1, s + 1) if k == 1 or constant * k * math.log(2 * k / delta) <= s)


def tail_ridge(K, rows, weights, k):
    """(1/k) sum_{i>k} sigma_i(S^T K S)."""
    values = np.linalg.eigvalsh(K[np.ix_(rows, rows)] * np.outer(weights, weights))
    return values[:-k].sum() / k


def drawn_by_size(rng, sizes, s):
    """s numbers drawn one by one, each with probability proportional to its size among those left."""
    return np.sort(np.argsort(rng.exponential(size=len(sizes)) / sizes)[:s])


def recursion(rng, K, delta, *, lam=None, s=0, constant=0.0, factor, oversampling, top=None):
    """(rows, weights) of algorithm 2 (lam) or 3 (s, constant c); with `top`, (number, size for k), the practical method,
    which has one delta, and draws that number of landmarks at the top level."""
    n = len(K)
    if n <= (s or 192 * math.log(1 / delta)):
        return np.arange(n), np.ones(n)
    half = np.flatnonzero(rng.random(n) < 0.5)
    below, weights = recursion(
        rng,
        K[np.ix_(half, half)],
        delta if top else delta / 3,
        lam=lam,
        s=s,
        constant=constant,
        factor=factor,
        oversampling=oversampling,
        top=top and (0, s),
    )
    rows = half[below]
    number, size = top or (0, s)
    k = 0 if s == 0 else largest_rank(size, constant, delta)
    ridge = lam or tail_ridge(K, rows, weights, k)
    scores = np.minimum(1, factor * scores_by_sample(K, rows, weights, ridge))
    many = scores.sum() if s == 0 else 2 * k
    p = np.minimum(1, oversampling * math.log(many / delta) * scores)
    if number:
        return drawn_by_size(rng, p, number), np.ones(number)
    kept = np.flatnonzero(rng.random(n) < p)
    return kept, p[kept] ** -0.5


# ----------------------------------------------------------------------------------------------------------------------
# Exact tests.


def p_of_coins(kept, p):
    """p-values of independent coins: kept (trials, n), 1 with probability p (a number, or one for each column).

    Counts of each coin, numbers of each draw, and pairs at every distance (in the draw, and between draws)."""
    trials, n = kept.shape
    p = np.broadcast_to(p, n)
    free = (p > 0) & (p < 1)
    standard = np.where(free, (kept - p) / np.sqrt(np.where(free, p * (1 - p), 1)), 0)
    each = [
        stats.binomtest(int(count), trials, chance).pvalue
        for count, chance in zip(kept.sum(0), p)
        if 0 < chance < 1
    ]
    certain = (kept[:, p == 0] == 0).all() and (kept[:, p == 1] == 1).all()
    spread = (standard.sum(1) ** 2).sum() / free.sum()
    tails = stats.chi2.cdf(spread, trials), stats.chi2.sf(spread, trials)
    return {
        "certain": float(certain),
        "each": min(1.0, min(each) * len(each)),
        "numbers": min(1.0, 2 * min(tails)),
    }


def p_of_subsets(kept, columns):
    """p-value of all subsets of a few coins being equally likely: columns (sets, few) of kept (trials, n)."""
    few = columns.shape[1]
    patterns = kept[:, columns].astype(int) @ (1 << np.arange(few))
    counts = np.bincount(patterns.ravel(), minlength=2**few)
    return float(stats.chisquare(counts).pvalue)


def p_of_law(counts, chances):
    """p-value of counts of outcomes of a finite law; outcomes that are expected less than five times go together."""
    counts, chances = np.asarray(counts), np.asarray(chances)
    trials = counts.sum()
    rare = trials * chances < 5
    seen, expected = counts[~rare], trials * chances[~rare]
    if rare.any():
        seen = np.append(seen, counts[rare].sum())
        expected = np.append(expected, trials * chances[rare].sum())
    if expected[-1] < 5 and len(expected) > 1:  # those together are still too few
        return p_of_law(seen[:-1], expected[:-1] / expected[:-1].sum()) if seen[-1] == 0 else float(
            min(1.0, stats.poisson.sf(seen[-1] - 1, max(expected[-1], 1e-300)))
        )
    return float(stats.chisquare(seen, expected).pvalue)


def p_of_two(first, second):
    """p-value of two samples of whole numbers having one law: their histograms, rare values merged with neighbours."""
    both = np.sort(np.concatenate([first, second]))
    # edges at least 20 numbers apart
    edges, place = [both[0] - 0.5], 0
    while place + 20 < len(both) and both[place + 20] + 0.5 < both[-1]:
        edges.append(both[place + 20] + 0.5)
        place = np.searchsorted(both, edges[-1])
    edges.append(both[-1] + 0.5)
    if len(edges) > 2 and (both > edges[-2]).sum() < 20:
        edges.pop(-2)
    if len(edges) == 2:
        return 1.0
    table = np.array([np.histogram(one, edges)[0] for one in (first, second)])
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def pivot_law(K, s):
    """{ordered pivots: probability} of s steps of randomly pivoted Cholesky on a small matrix."""
    law = {(): (1.0, K)}
    for _ in range(s):
        after = {}
        for chosen, (chance, rest) in law.items():
            diagonal = rest.diagonal().clip(0)
            for i in np.flatnonzero(diagonal > 1e-12):
                after[(*chosen, int(i))] = (
                    chance * diagonal[i] / diagonal.sum(),
                    rest - np.outer(rest[i], rest[i]) / rest[i, i],
                )
        law = after
    return {chosen: chance for chosen, (chance, _) in law.items()}


def subset_law(chances):
    """Probability of each subset, as a number in binary, of independent coins."""
    return np.array(
        [
            np.prod(np.where(bits, chances, 1 - chances))
            for bits in map(np.array, itertools.product((False, True), repeat=len(chances)))
        ]
    )
