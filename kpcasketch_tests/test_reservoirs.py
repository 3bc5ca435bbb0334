# SPDX-License-Identifier: BSD-3-Clause
"""Reservoirs, the rival of streaming kernel PCA that paper_checks runs (SKPCA section 1.2)."""

import math

import numpy as np
import pytest
from scipy import stats

import kpcasketch as kp
from kpcasketch_tests import naive
from paper_checks import reservoirs

X = np.random.default_rng(0).standard_normal((300, 5))
G = kp.gaussian(2.0)


def weights_of(n, forget):
    return 0.5 ** (np.arange(n)[::-1] / forget)


def in_blocks(update, state, X, block):
    for begin in range(0, len(X), block):
        state = update(state, X[begin : begin + block])
    return state


@pytest.mark.bounds
def test_reservoirs_hold_each_point_with_equal_chances():
    c, n = 4000, 10
    state = reservoirs.start(c, 1, 3)
    for part in np.split(np.arange(float(n)).reshape(-1, 1), [1, 4]):
        state = reservoirs.update(state, part)
    whole = reservoirs.update(reservoirs.start(c, 1, 3), np.arange(float(n)).reshape(-1, 1))
    assert all(np.array_equal(a, b) for a, b in zip(state, whole))
    counts = np.bincount(state.points[:, 0].astype(int), minlength=n)
    assert stats.chisquare(counts).pvalue > 1e-6
    harmonic, variance = (
        sum(1 / i for i in range(1, n + 1)),
        sum(1 / i - 1 / i**2 for i in range(1, n + 1)),
    )
    assert abs(state.replaced.sum() - c * harmonic) < 5 * math.sqrt(c * variance)


def test_reservoirs_of_more_points_than_there_are_numbers_never_ended():
    # numbers of points that come in next end at 9e18; a chosen state came beyond
    state = reservoirs.start(3, 2)
    for count in (2**62, 9 * 10**18, 2**63 - 1):
        wrong = state._replace(count=count, upcoming=np.full(3, count))
        with pytest.raises(ValueError, match="^state must have seen fewer than 2\\*\\*62 points"):
            reservoirs.update(wrong, X[:2, :2])
    last = reservoirs.update(
        state._replace(count=2**62 - 1, upcoming=np.full(3, 2**62 - 1)), X[:1, :2]
    )
    assert last.count == 2**62 and np.array_equal(last.points, X[[0, 0, 0], :2])


def test_reservoir_nystrom_is_c_w_c():
    found = reservoirs.nystrom(X, G, 40, 40, 2)
    points, F = found.points, kp.features(X, found)
    C, W = naive.gaussian(X, points, 2.0), naive.gaussian(points, points, 2.0)
    assert (
        np.abs(F @ F.T - C @ np.linalg.pinv(W, rcond=40 * 8.9e-16, hermitian=True) @ C.T).max()
        < 1e-6
    )
    values, V = np.linalg.eigh(W)
    few = kp.features(X, reservoirs.nystrom(X, G, 7, 40, 2))
    assert np.abs(few @ few.T - C @ (V[:, -7:] / values[-7:]) @ V[:, -7:].T @ C.T).max() < 1e-10


def test_merged_reservoirs_hold_each_point_with_equal_chances():
    # 30 points of one stream, 10 of another, 20 after that: chi-square over the 60 of 20,000 reservoirs
    points = np.arange(60.0)[:, None]
    a = reservoirs.update(reservoirs.start(20_000, 1, 1), points[:30])
    b = reservoirs.update(reservoirs.start(20_000, 1, 2), points[30:40])
    merged = reservoirs.merge(a, b)
    assert merged.count == 40 and (merged.upcoming >= 40).all()
    for state, n in ((merged, 40), (reservoirs.update(merged, points[40:]), 60)):
        counts = np.bincount(state.points[:, 0].astype(int), minlength=n)
        assert len(counts) == n and stats.chisquare(counts).pvalue > 1e-8
        halves = (
            np.unique(state.points.reshape(-1, 2) >= n / 2, axis=0, return_counts=True)[1] / 10_000
        )
        # neighbours are independent
        assert np.abs(halves - 0.25).max() < 6 * math.sqrt(0.1875 / 10_000)
    empty = reservoirs.start(20_000, 1, 2)
    for one, other in ((a, empty), (empty, a)):
        merged = reservoirs.merge(one, other)
        assert (
            merged.count == 30
            and np.array_equal(merged.points, a.points)
            and (merged.upcoming >= 30).all()
        )
    with pytest.raises(ValueError, match="^a and b must have been started with different seeds"):
        reservoirs.merge(a, a)
    with pytest.raises(ValueError, match="^a and b must have been started with the same sizes"):
        reservoirs.merge(a, reservoirs.start(3, 1, 2))


def test_reservoirs_took_kernels_whose_chances_they_do_not_have():
    state = reservoirs.update(reservoirs.start(5, 5), X)
    with pytest.raises(ValueError, match=r"^kernel must have the same k\(x, x\) for all points"):
        reservoirs.finish(state, kp.linear(), 2)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    assert reservoirs.nystrom(unit, kp.linear(), 5, 5).values.size == 5


def test_points_of_reservoirs_that_forget_have_chances_as_their_weights():
    X, c = np.arange(120.0)[:, None], 40_000
    state = in_blocks(reservoirs.update, reservoirs.start(c, 1, 3, half_life=15.0), X, 29)
    counts, w = np.bincount(state.points[:, 0].astype(int), minlength=120), weights_of(120, 15.0)
    recent = slice(40, 120)  # expected numbers of five and more
    expected = c * w[recent] / w.sum()
    assert (
        stats.chisquare(counts[recent], expected * counts[recent].sum() / expected.sum()).pvalue
        > 1e-6
    )
    assert counts[:40].sum() < 5 * c * w[:40].sum() / w.sum()
    assert np.array_equal(
        state.points, reservoirs.update(reservoirs.start(c, 1, 3, half_life=15.0), X).points
    )


def test_fields_of_a_new_reservoir_were_one_array():
    state = reservoirs.start(3, 2)
    assert not np.shares_memory(state.upcoming, state.replaced)


@pytest.mark.parametrize("s", [1, 7])
def test_reservoirs_go_on_and_merge_with_nothing(s):
    begun = reservoirs.start(s, 5, 3)
    whole = reservoirs.update(begun, X)
    assert whole.count == 300 and not begun.points.any() and begun.count == 0
    for one, other in ((whole, reservoirs.start(s, 5, 9)), (reservoirs.start(s, 5, 9), whole)):
        merged = reservoirs.merge(one, other)
        assert np.array_equal(merged.points, whole.points) and merged.count == 300
    found = reservoirs.finish(whole, G, s)
    assert not np.shares_memory(found.points, whole.points)
    assert not np.array_equal(whole.points, reservoirs.update(reservoirs.start(s, 5, 4), X).points)


def test_reservoirs_that_are_empty_or_that_forget_are_refused():
    with pytest.raises(ValueError, match="^state must have seen a point"):
        reservoirs.finish(reservoirs.start(3, 2), G, 1)
    with pytest.raises(ValueError, match="k must be an int from 1 to 3, got 4"):
        reservoirs.finish(reservoirs.update(reservoirs.start(3, 5), X), G, 4)
    with pytest.raises(ValueError, match="^a and b must have been started .* no half_life"):
        reservoirs.merge(reservoirs.start(3, 2, 1, 9.0), reservoirs.start(3, 2, 2, 9.0))
    slow = reservoirs.update(reservoirs.start(7, 5, 3, half_life=1e300), X)
    plain = reservoirs.update(reservoirs.start(7, 5, 3), X)
    assert np.array_equal(slow.points, plain.points)


def test_random_numbers_of_reservoirs_are_splitmix64():
    for seed in (0, 1, 2**63 + 1):
        assert reservoirs.words([seed], np.arange(5)).tolist() == naive.splitmix64(seed, 5)
    u = reservoirs.uniforms(reservoirs.keys_of(5, 1), np.arange(100_000))
    assert stats.kstest(u, "uniform").pvalue > 1e-8 and 0.0 < u.min() <= u.max() < 1.0
