# SPDX-License-Identifier: BSD-3-Clause
"""What must hold for any data: the order of points, their origin and unit, and how a stream is cut do not matter.

The coordinates are small whole numbers, shifted by whole numbers and scaled by powers of two, so that what is to be
equal is equal to the bit; many points are equal, too.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import REDUCED, SAMPLERS, STREAMS, UNSCALED, same_bits, with_trait

KERNELS = [row.make for row in with_trait(UNSCALED, "radial").values()]
few = settings(max_examples=12, deadline=None)


@st.composite
def points(draw, least=2, most=40):
    n, d, seed = (
        draw(st.integers(least, most)),
        draw(st.integers(1, 4)),
        draw(st.integers(0, 2**32)),
    )
    return np.random.default_rng(seed).integers(-6, 7, (n, d)).astype(float)


@pytest.mark.parametrize("name", SAMPLERS)
@few
@given(
    X=points(900, 1000),
    make=st.sampled_from(KERNELS),
    seed=st.integers(0, 2**64 - 1),
    power=st.integers(-40, 40),
)
def test_landmarks_know_neither_origin_nor_unit(name, X, make, seed, power):
    row, unit = SAMPLERS[name], 2.0**power
    found = row.draw(X, make(3.0), row.s, seed)
    assert found.indices.size < len(X)  # all points would be a sample of any unit
    for other in (
        row.draw(X + 64.0, make(3.0), row.s, seed),
        row.draw(unit * X, make(unit * 3.0), row.s, seed),
    ):
        assert np.array_equal(found.indices, other.indices) and np.array_equal(
            found.weights, other.weights
        )
    assert len(set(found.indices.tolist())) == found.indices.size and (found.weights > 0).all()


@pytest.mark.parametrize("name", REDUCED)
@few
@given(X=points(4), seed=st.integers(0, 2**64 - 1), power=st.integers(-40, 40))
def test_reduced_sets_move_and_grow_with_the_points(name, X, seed, power):
    row, unit = REDUCED[name], 2.0**power
    found, grown = (
        row.select(X, kp.gaussian(3.0), 1.0, seed),
        row.select(unit * X, kp.gaussian(unit * 3.0), unit, seed),
    )
    assert np.array_equal(unit * found.centers, grown.centers) and np.array_equal(
        found.weights, grown.weights
    )
    assert found.weights.sum() == pytest.approx(len(X), rel=1e-12)
    if row.of_rows:  # means round elsewhere
        moved = row.select(X + 64.0, kp.gaussian(3.0), 1.0, seed)
        assert np.array_equal(found.centers + 64.0, moved.centers) and np.array_equal(
            found.weights, moved.weights
        )


@pytest.mark.parametrize("name", with_trait(REDUCED, "naive"))
def test_centers_are_the_naive_ones(name, rng):
    row, X = REDUCED[name], rng.standard_normal((300, 3))
    found = row.select(X, kp.gaussian(3.0), 1.0, 0)
    assert np.array_equal(found.centers, X[row.naive(X, naive.gaussian(X, X, 3.0), 1.0)])


@few
@given(X=points(), make=st.sampled_from(KERNELS), seed=st.integers(0, 2**32))
def test_the_order_of_points_is_nothing_but_an_order(X, make, seed):
    order, kernel = np.random.default_rng(seed).permutation(len(X)), make(3.0)
    K = kp.gram(X, X, kernel)
    assert np.abs(kp.gram(X[order], X[order], kernel) - K[np.ix_(order, order)]).max() < 1e-15
    assert (
        kp.median_bandwidth(X) == kp.median_bandwidth(X[order])
        if len(np.unique(X, axis=0)) > 1
        else True
    )
    scores = kp.ridge_leverage_scores(X, kernel, 0.3)
    assert np.abs(kp.ridge_leverage_scores(X[order], kernel, 0.3) - scores[order]).max() < 1e-9
    a, b = kp.kpca(X, kernel, 1, centered=False), kp.kpca(X[order], kernel, 1, centered=False)
    assert a.values == pytest.approx(b.values, rel=1e-9)
    other = kp.effective_dimension(K[np.ix_(order, order)], 0.3)
    assert kp.effective_dimension(K, 0.3) == pytest.approx(other, rel=1e-6)


def cuts(n, seed):
    rng = np.random.default_rng(seed)
    return np.split(np.arange(n), np.sort(rng.integers(0, n + 1, rng.integers(1, 5))))


@pytest.mark.parametrize("name", with_trait(STREAMS, "equal"))
@few
@given(X=points(), seed=st.integers(0, 2**32))
def test_a_stream_does_not_know_where_it_is_cut(name, X, seed):
    row = STREAMS[name]
    state = row.start(X)
    whole = row.update(state, X)
    for rows in cuts(len(X), seed):
        if rows.size:
            state = row.update(state, X[rows])
    assert row.equal(state, whole)


def numbers(result):
    """All arrays and numbers of a tuple of such, or of tuples; names and None are left out."""
    if isinstance(result, tuple):
        return [a for part in result for a in numbers(part)]
    return [result] if np.asarray(result).dtype.kind in "biuf" else []


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_goes_on_from_its_file_and_merges_with_nothing(name, tmp_path):
    row, X = STREAMS[name], np.random.default_rng(0).standard_normal((200, 3))
    start = row.start(X)
    state = row.update(start, X[:120])
    kp.save(tmp_path / "state.npz", state)
    again = kp.load(tmp_path / "state.npz")
    assert type(again) is type(state) and same_bits(again, state)
    assert same_bits(row.update(again, X[120:]), row.update(state, X[120:]))
    assert same_bits(again, state) and same_bits(start, row.start(X))  # they are not modified
    found = numbers(row.finish(state))
    assert all(np.isfinite(part).all() for part in found)
    nothing = start._replace(seed=9) if hasattr(start, "seed") else start  # random ones ask for it
    for one in (row.merge(state, nothing), row.merge(nothing, state)) if row.merges else ():
        assert all(map(np.allclose, numbers(row.finish(one)), found))


def own_arrays(made):
    """Arrays of a tuple, except for those of a map that the user has."""
    if isinstance(made, kp.FourierMap):
        return []
    if isinstance(made, tuple):
        return [array for part in made for array in own_arrays(part)]
    return [made] if isinstance(made, np.ndarray) else []


@pytest.mark.parametrize("name", STREAMS)
def test_a_result_of_a_stream_was_memory_of_its_state(name):
    # finish(state).points[:] = 0 changed the state of `rls_start`
    row, X = STREAMS[name], np.random.default_rng(0).standard_normal((200, 3))
    state = row.update(row.start(X), X)
    for array in own_arrays(row.finish(state)):
        assert not any(np.shares_memory(array, held) for held in own_arrays(state))


@few
@given(X=points(4), seed=st.integers(0, 2**32), ell=st.integers(1, 6))
def test_merged_sketches_keep_the_bound_of_one_pass(X, seed, ell):
    ell = min(ell, X.shape[1])
    state, total = kp.fd_start(ell, X.shape[1]), X.T @ X
    for rows in cuts(len(X), seed):
        if rows.size:
            state = kp.merge(state, kp.update(kp.fd_start(ell, X.shape[1]), X[rows]))
    found = kp.finish(state)
    lost = np.linalg.eigvalsh(total - found.B.T @ found.B)
    size = np.trace(total)
    assert (
        found.count == len(X)
        and lost.min() > -1e-12 * size
        and lost.max() <= found.shrunk + 1e-12 * size
    )


@few
@given(X=points(4), seed=st.integers(0, 2**32), centred=st.booleans())
def test_merged_streams_of_features_are_one_stream(X, seed, centred):
    map = kp.fourier_features_map(kp.gaussian(3.0), X.shape[1], 12, 5)
    Z = kp.features(X, map)
    Z -= Z.mean(0) if centred else 0.0
    state, sums = kp.skpca_start(map, 12, centered=centred), kp.rnca_start(map, centered=centred)
    for rows in cuts(len(X), seed):
        if rows.size:
            state = kp.merge(state, kp.update(kp.skpca_start(map, 12, centered=centred), X[rows]))
            sums = kp.merge(sums, kp.update(kp.rnca_start(map, centered=centred), X[rows]))
    values = np.linalg.eigvalsh(Z.T @ Z)[::-1]
    found, exact = kp.finish(state, 1), kp.finish(sums, 1)
    assert found.count == exact.count == len(X)
    assert exact.values == pytest.approx(values[:1], rel=1e-9, abs=1e-10)
    assert values[0] - found.shrunk - 1e-9 <= found.values[0] <= values[0] + 1e-9


@few
@given(X=points(), power=st.integers(-40, 40))
def test_features_know_differences_alone(X, power):
    for make in KERNELS:
        map = kp.fourier_features_map(make(3.0), X.shape[1], 16, 7, stored=True, paired=True)
        Z, W = kp.features(X, map), kp.features(X + 8.0, map)
        assert np.abs(Z @ Z.T - W @ W.T).max() < 1e-12
        scaled = kp.fourier_features_map(
            make(3.0 * 2.0**power), X.shape[1], 16, 7, stored=True, paired=True
        )
        assert np.array_equal(kp.features(X * 2.0**power, scaled), Z)
    assert np.abs(naive.gaussian(X, X, 3.0) - kp.gram(X, X, kp.gaussian(3.0))).max() < 1e-15
