# SPDX-License-Identifier: BSD-3-Clause
"""The generator against SplitMix64 in Python integers and against the laws it claims. Each test fails by chance with p
< 1e-8."""

import numba
import numpy as np
import pytest
from scipy import stats

import kpcasketch as kp
from kpcasketch_tests import inner, naive

N = 200_000
CHANCE = 1e-8


def key(seed, purpose):
    # compiled code returns it to Python as an int
    return np.uint64(kp._key(np.uint64(seed), purpose))


@numba.njit
def draw(function, start, count):
    out = np.empty(count)
    for i in range(count):
        out[i] = function(start, np.uint64(i))
    return out


@numba.njit
def draw_gamma(start, count, shape):
    out = np.empty(count)
    for i in range(count):
        out[i] = kp._gamma(start, np.uint64(i), shape)
    return out


@numba.njit
def kept(start, n, log_miss):
    columns = np.empty(n, np.int64)
    return columns[: kp._kept(start, 0, log_miss, n, columns)]


def test_bits_are_splitmix64():
    for seed in (0, 1, 2**63 + 1, 2**64 - 1):
        got = [int(inner(kp._random_word)(np.uint64(seed), np.uint64(i))) for i in range(5)]
        assert got == naive.splitmix64(seed, 5)


@pytest.mark.parametrize(
    "function, law", [(kp._uniform, stats.uniform()), (kp._normal, stats.norm())]
)
@pytest.mark.parametrize("seed", [0, 2**63 + 7])
def test_draws_follow_their_law(function, law, seed):
    assert stats.kstest(draw(function, key(seed, 1), N), law.cdf).pvalue > CHANCE


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.5])
def test_gamma_draws_follow_their_law(shape):
    assert stats.kstest(draw_gamma(key(3, 1), N, shape), stats.gamma(shape).cdf).pvalue > CHANCE


def test_chi_square_is_twice_a_gamma():
    assert stats.kstest(2 * draw_gamma(key(4, 1), N, 3.5), stats.chi2(7).cdf).pvalue > CHANCE


def test_signs_are_fair():
    words = kp._words(key(5, 1), np.arange(N))
    assert stats.binomtest(int((words >> np.uint64(63)).sum()), N).pvalue > CHANCE
    assert words[:5].tolist() == [
        int(inner(kp._random_word)(key(5, 1), np.uint64(i))) for i in range(5)
    ]


@pytest.mark.parametrize("p", [0.5, 0.05])
def test_gaps_are_geometric(p):
    gaps = np.diff(kept(key(6, 1), int(1.5 * N / p), np.log1p(-p)), prepend=-1)[:N] - 1
    assert gaps.size == N
    cells = np.arange(0, int(8 / p))
    counts = np.append(
        np.bincount(np.minimum(gaps, cells[-1] + 1), minlength=cells[-1] + 2)[:-1],
        (gaps > cells[-1]).sum(),
    )
    expected = N * np.append(p * (1 - p) ** cells, (1 - p) ** (cells[-1] + 1))
    keep = expected > 20
    counts, expected = (
        np.append(counts[keep], counts[~keep].sum()),
        np.append(expected[keep], expected[~keep].sum()),
    )
    assert stats.chisquare(counts, expected).pvalue > CHANCE


def test_probability_one_leaves_no_gap():
    assert np.array_equal(kept(key(6, 1), 100, -np.inf), np.arange(100))


def test_uniform_bits_pass_a_serial_chi_square():
    u = draw(kp._uniform, key(7, 1), N)
    pairs = np.histogram2d(u[:-1], u[1:], bins=16, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(pairs.ravel()).pvalue > CHANCE


@pytest.mark.parametrize("other", [(8, 2), (9, 1), (2**63 + 8, 1)])
def test_purposes_and_seeds_are_uncorrelated(other):
    a, b = draw(kp._normal, key(8, 1), N), draw(kp._normal, key(*other), N)
    assert abs(np.corrcoef(a, b)[0, 1]) < 6 / np.sqrt(N)


def test_rows_of_a_matrix_are_uncorrelated_with_each_other_and_along_themselves():
    Z = inner(kp._gaussian_matrix)(400, 500, key(9, 1))
    assert np.abs(np.corrcoef(Z) - np.eye(400)).max() < 6.5 / np.sqrt(500)
    assert abs((Z[:, 1:] * Z[:, :-1]).mean()) < 6 / np.sqrt(Z.size)


def test_the_global_random_state_is_left_alone():
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    kp.sample_gram(np.zeros((5, 1)), kp.gaussian(1.0), 2.0, 0)
    assert np.array_equal(np.random.get_state()[1], before)


def test_same_seed_same_result_even_if_the_global_state_is_disturbed():
    X = np.arange(40.0)[:, None]
    np.random.seed(1)
    first = kp.dense(kp.sample_gram(X, kp.gaussian(9.0), 3.0, 12))
    np.random.seed(2)
    assert np.array_equal(first, kp.dense(kp.sample_gram(X, kp.gaussian(9.0), 3.0, 12)))
    assert not np.array_equal(first, kp.dense(kp.sample_gram(X, kp.gaussian(9.0), 3.0, 13)))
