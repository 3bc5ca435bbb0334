# SPDX-License-Identifier: BSD-3-Clause
"""Doubly stochastic gradients (DSGD): steps against the naive ones, streams, states, limits."""

import functools
import inspect
import math
import pickle

import numba
import numpy as np
import pytest
import scipy.sparse

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import same_bits
from paper_checks.tools import hermite

X = np.random.default_rng(0).standard_normal((700, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * np.random.default_rng(
    1
).standard_normal((700, 2))
G, L = kp.gaussian(2.0), kp.laplacian(2.0)
TASKS = ["kpca", "gha", "ksvd", "kcca", "ksir"]


def start(task, m=300, k=2, stored=False, feature_batch=70, initial=40, centered=False, **more):
    """A state of each task, and what goes with the points."""
    maps = [
        kp.fourier_features_map(kernel, d, m, seed, stored=stored, paired=False)
        for kernel, d, seed in ((G, 3, 5), (L, 2, 6))
    ]
    given = {name: more.pop(name) for name in ("theta0", "theta1") if name in more}
    steps = kp.DSGDSteps(feature_batch=feature_batch, initial=initial, **given)
    more |= {"steps": steps, "centered": centered}
    if task in ("kpca", "gha"):
        return kp.dsgd_start(X, maps[0], k, individual=task == "gha", **more), None
    if task == "ksir":
        return kp.dsgd_ksir_start(X, Y, maps[0], k, slices=5, **more), Y
    return getattr(kp, f"dsgd_{task}_start")(X, Y, *maps, k, **more), Y


def features(map, points):
    """sqrt(2 k(x, x)) cos of every feature of a map."""
    whole = kp.fourier_features_map(map.kernel, map.d, map.m, map.seed, paired=False)
    return np.sqrt(map.m) * kp.features(points, whole).astype(np.float64)


def second(state, points):
    """Features of the second view."""
    if state.task == "sliced":
        edges = state.slices.edges
        slices = np.stack(
            [np.searchsorted(edges[t], points[:, t], side="right") for t in range(len(edges))], 1
        )
        indicators = (slices[:, :, None] == np.arange(edges.shape[1] + 1)).reshape(len(points), -1)
        return indicators @ state.slices.weights
    return np.zeros((len(points), 0)) if state.other is None else features(state.other, points)


def steps_of(state, points, other, count=1):
    for _ in range(count):
        state = kp.update(state, points, other)
    return state


def model_of(result, view=0):
    """The model of one view of a result."""
    return result[view] if isinstance(result, kp.TwoViews) else result


@pytest.fixture
def with_states(monkeypatch):
    """Functions that run all steps return the state, not its models."""
    monkeypatch.setattr(kp, "_models_of", lambda state: state)


@pytest.mark.bounds
@pytest.mark.parametrize("n", [4, 127, 128, 129, 513])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_steps_are_those_of_stored_features(task, centered, n):
    # 40 features at the start, four blocks of 65 to 300, then five blocks of 60 in random order
    more = {"lam": 0.3} if task in ("kcca", "ksir") else {}
    state, other = start(task, centered=centered, theta0=0.2, theta1=0.1, **more)
    phi, revisited = features(state.feature_map, X[:n]), []
    psi = second(state, X[:n] if other is None else other[:n])
    for step in range(8):
        eta, used = 0.2 / (1 + 0.1 * step), state.used
        if used < 300:
            block = naive.feature_blocks(40, 300, 70)[step]
        else:
            blocks = kp._draw_uniformly(
                5, 5, np.uint64(kp._subkey(np.uint64(kp._key(5, kp._REVISITS)), step // 5))
            )
            block = naive.feature_blocks(0, 300, 70)[int(blocks[step % 5])]
            revisited.append(block.start)
        a, b, W = naive.dsgd_step(
            task,
            state.coef,
            np.zeros((0, 2)) if state.other_coef is None else state.other_coef,
            phi,
            psi,
            block,
            eta,
            more.get("lam", 0.0),
            centered,
        )
        weight = 2 / (step + 2)
        moment = (1 - weight) * state.moment + weight * W
        state = kp.update(state, X[:n], None if other is None else other[:n])
        assert np.abs(state.coef - a).max() < 1e-12 and np.abs(state.moment - moment).max() < 1e-12
        assert b.size == 0 or np.abs(state.other_coef - b).max() < 1e-12
        assert state.step == step + 1 and state.used == min(300, used + 65)
    assert len(set(revisited[1:])) == len(revisited[1:])


@pytest.mark.parametrize("m", [281, 360, 401, 521])
def test_a_last_block_of_one_feature_stood_for_the_whole_kernel(m):
    # 280 features at the start, in blocks of 120 then, of which 1 to 120 are left for the last
    (state, _), K = (
        start("kpca", m, feature_batch=120, initial=280, theta0=0.5, theta1=0.0),
        naive.gaussian(X, X, 2.0),
    )
    errors = []
    for _ in range(9):
        U, after = kp.features(X, state), kp.update(state, X)
        added = kp.features(X, after) - U + 0.5 * U @ (U.T @ U) / 700  # update (4): .5 K U / n
        errors.append(np.linalg.norm(added - 0.5 * K @ U / 700) / np.linalg.norm(0.5 * K @ U / 700))
        state = after
    assert state.used == m and max(errors) < 0.25  # with one feature .91 to 1, then .65


@pytest.mark.bounds
@pytest.mark.parametrize("k", [1, 4, 5, 16, 17])
@pytest.mark.parametrize("m", [1, 127, 128, 129, 2200])
def test_evaluation_sums_the_features(m, k, rng):
    state = start("kpca", m, 1)[0]
    state = state._replace(coef=rng.standard_normal((m, k)), moment=np.eye(k), used=m)
    for n in (1, 129, 700):
        expected = features(state.feature_map, X[:n]) @ state.coef
        assert np.abs(kp.features(X[:n], state) - expected).max() < 1e-13 * m
        single = kp.features(X[:n].astype(np.float32), state)
        assert single.dtype == np.float32 and np.abs(single - expected).max() < 1e-5 * m


@pytest.mark.parametrize("task", TASKS)
def test_stored_frequencies_give_the_same_bits(task):
    states = []
    for stored in (False, True):
        state, other = start(task, stored=stored)
        for begin in range(0, 700, 100):
            state = kp.update(
                state, X[begin : begin + 100], None if other is None else other[begin : begin + 100]
            )
        states.append(state)
    assert np.array_equal(states[0].coef, states[1].coef)
    assert np.array_equal(states[0].other_coef, states[1].other_coef)
    drawn, kept = (model_of(kp.finish(state)) for state in states)
    assert np.array_equal(drawn.coef, kept.coef)
    assert np.array_equal(kp.features(X, drawn), kp.features(X, kept))
    assert drawn.feature_map.frequencies.size == 0


@pytest.mark.parametrize("task", TASKS)
def test_states_go_on_where_they_were_saved(task, tmp_path):
    state, other = start(task)
    whole = resumed = state
    for begin in range(0, 700, 100):
        points, with_them = (
            X[begin : begin + 100],
            None if other is None else other[begin : begin + 100],
        )
        before = pickle.dumps(resumed)
        whole = kp.update(whole, points, with_them)
        after = kp.update(resumed, points, with_them)
        assert pickle.dumps(resumed) == before
        kp.save(tmp_path / "state.npz", after)
        resumed = pickle.loads(pickle.dumps(kp.load(tmp_path / "state.npz")))
    assert np.array_equal(whole.coef, resumed.coef) and np.array_equal(
        whole.other_coef, resumed.other_coef
    )
    assert whole.step == resumed.step == 7


def test_one_line_functions_are_start_steps_and_finish():
    model = kp.dsgd_kpca(X, G, 2, 300, 5, steps=kp.DSGDSteps(9, 50, 70), centered=False)
    key = kp._key(5, kp._BATCHES)
    rows = [
        (kp._uniforms(kp._python_subkey(key, t), np.arange(50)) * 700).astype(int) for t in range(9)
    ]
    first = kp._draw_uniformly(700, 700, kp._python_subkey(key, 2**62))
    drawn = kp.fourier_features_map(G, 3, 300, 5, stored=False, paired=False)
    by_hand = kp.dsgd_start(
        X[first], drawn, 2, steps=kp.DSGDSteps(feature_batch=70), centered=False
    )
    for t in range(9):
        by_hand = kp.update(by_hand, X[rows[t]])
    by_hand = kp.finish(by_hand)
    assert np.array_equal(model.coef, by_hand.coef)
    assert np.array_equal(model.values, by_hand.values)
    assert len(np.unique(np.concatenate(rows))) > 300 and not np.array_equal(rows[0], rows[1])


@pytest.mark.parametrize("name", [name for name in kp.__all__ if name.startswith("dsgd_")])
def test_steps_were_six_arguments_of_nine_functions_in_four_orders(name):
    parameters = inspect.signature(getattr(kp, name)).parameters
    assert not {"batch", "feature_batch", "theta0", "theta1", "initial", "targets"} & set(
        parameters
    )
    if "steps" in parameters:
        assert parameters["steps"].default == kp.DSGDSteps()
        settings = list(parameters)[list(parameters).index("steps") :]
        assert {"centered", *settings} == {*settings}
        assert {parameters[each].kind.name for each in settings} == {"KEYWORD_ONLY"}


def test_a_state_with_a_constraint_of_another_size_ended_in_an_error_of_numpy(rng):
    feature_map = kp.fourier_features_map(kp.gaussian(1.0), 3, 64, paired=False)
    state = kp.dsgd_start(rng.standard_normal((75, 3)), feature_map, 3, centered=False)
    with pytest.raises(ValueError, match="^finish: state must be a DSGDState"):
        kp.finish(state._replace(constraint=np.empty((0, 0))))  # components have none
    with pytest.raises(ValueError, match="^finish: state.constraint must be"):
        kp.finish(known("kcca")._replace(constraint=np.empty((0, 0))))


def test_a_number_of_steps_is_the_count_of_dsgd_steps():
    expected = kp.dsgd_kpca(X, G, 2, 300, steps=kp.DSGDSteps(3), centered=False)
    for steps in (3, np.int64(3), kp.DSGDSteps(count=np.int32(3), theta0=None)):
        assert np.array_equal(
            kp.dsgd_kpca(X, G, 2, 300, steps=steps, centered=False).coef, expected.coef
        )
    with pytest.raises(TypeError, match="positional"):
        kp.dsgd_kpca(X, G, 2, 300, 0, 3, centered=False)


def test_the_hebbian_rule_is_kernel_pca_of_individual_functions():
    single = kp.dsgd_kpca(X, G, 2, 300, steps=9, individual=True, centered=False)
    together = kp.dsgd_kpca(X, G, 2, 300, steps=9, centered=False)
    assert single.coef.shape == together.coef.shape
    assert not np.array_equal(single.coef, together.coef)


def test_settings_of_steps_that_a_start_does_not_use_are_ignored():
    steps = kp.DSGDSteps(count=5, batch=7)
    assert np.array_equal(kp.dsgd_start(X, MAP, 2, steps=steps, centered=False).coef, begun().coef)


def test_steps_that_diverge_are_reported_with_their_number():
    with pytest.raises(
        ValueError,
        match="dsgd_kpca: steps.theta0 must be below 1.00e\\+06: the steps diverged at step [1-9]",
    ):
        kp.dsgd_kpca(X, G, 1, 200, steps=kp.DSGDSteps(50, 100, 64, 1e6), centered=False)
    for task in TASKS:
        state, other = start(task, theta0=1e6)
        before = pickle.dumps(state)
        with pytest.raises(
            ValueError,
            match="update: steps.theta0 must be below 1.00e\\+06: the steps diverged at step [0-9]",
        ):
            for _ in range(9):
                state = kp.update(state, X, other)
        assert state.step == 0 or np.isfinite(state.coef).all()
        assert pickle.dumps(start(task, theta0=1e6)[0]) == before


def test_steps_chosen_from_the_data_are_those_of_the_docstring():
    state = kp.dsgd_start(
        X,
        kp.fourier_features_map(kp.scaled(G, 4.0), 3, 300, 5, paired=False),
        2,
        steps=kp.DSGDSteps(feature_batch=2, initial=60),
        centered=False,
    )
    Z = features(state.feature_map, X)[:, :60] / np.sqrt(60)
    l = np.linalg.eigvalsh(Z.T @ Z / 700)[::-1]
    assert (
        state.theta0
        == pytest.approx(min(0.5 / l[0], np.sqrt(2 / 20) / 4))
        == pytest.approx(np.sqrt(2 / 20) / 4)
    )
    assert state.theta1 == pytest.approx(state.theta0 * max(l[1] - l[2], l[1] / 10))
    drawn = kp.fourier_features_map(G, 3, 300, 5, paired=False)
    plain = kp.dsgd_start(X, drawn, 2, steps=kp.DSGDSteps(initial=60), centered=False)
    assert plain.theta0 == pytest.approx(0.5 * 4 / l[0])
    given = kp.dsgd_start(X, drawn, 2, steps=kp.DSGDSteps(theta0=0.7, theta1=0.0), centered=False)
    assert (given.theta0, given.theta1) == (0.7, 0.0)


@pytest.mark.parametrize(
    "kernel",
    [
        G,
        L,
        kp.laplacian(3.0, norm=1),
        kp.matern(2.5, 2.0),
        kp.rational_quadratic(1.5, 2.0),
        kp.cauchy(3.0),
        kp.scaled(G, 1e-20),
        kp.scaled(G, 1e20),
    ],
    ids=str,
)
def test_chosen_steps_come_near_the_exact_components(kernel):
    # users do not know theta0: with None, the squares of every kernel's features have the eigenvalues as means
    exact = kp.kpca(X, kernel, 3, centered=False)
    state = kp.dsgd_kpca(X, kernel, 2, 4000, 1, steps=kp.DSGDSteps(batch=200), centered=False)
    H = kp.features(X, state)
    assert np.abs((H**2).mean(0) * 700 / exact.values[:2] - 1).max() < 0.15
    assert np.abs(state.values * 700 / exact.values[:2] - 1).max() < 0.15
    assert np.abs(np.corrcoef(H[:, 0], kp.features(X, exact)[:, 0])[0, 1]) > 0.99


def test_hebbian_functions_are_single_and_svd_functions_have_norm_one(rng):
    points = rng.standard_normal((20000, 1))
    values, functions = hermite(points[:, 0], 3)
    for individual in (True, False):
        model = kp.dsgd_kpca(
            points,
            kp.gaussian(1.0),
            3,
            4000,
            2,
            steps=400,
            centered=False,
            individual=individual,
        )
        H = kp.features(points, model)
        overlaps = np.abs(H.T @ functions / 20000) / np.sqrt(values)
        assert np.abs(overlaps - np.eye(3)).max() < 0.1
    pair = kp.dsgd_ksvd(points, points, kp.gaussian(1.0), kp.gaussian(1.0), 2, 4000, 2, steps=400)
    for model in pair:
        assert np.abs((kp.features(points, model) ** 2).mean(0) / values[:2] - 1).max() < 0.1
        assert np.abs(model.values / values[:2] - 1).max() < 0.1


def test_canonical_variates_have_unit_variance_and_find_what_views_share(rng):
    points = rng.standard_normal((20000, 3))
    other = np.sin(2 * points[:, :1]) + 0.3 * points[:, 2:]
    pair = kp.dsgd_kcca(points[:, :2].copy(), other, kp.gaussian(1.0), kp.gaussian(1.0), 1, 2000, 0)
    u = kp.features(points[:, :2].copy(), pair.first)[:, 0]
    v = kp.features(other, pair.second)[:, 0]
    assert abs(u.std() - 1) < 0.1 and abs(v.std() - 1) < 0.1
    best = np.corrcoef(np.sin(2 * points[:, 0]), other[:, 0])[0, 1]
    assert best - 0.02 < np.corrcoef(u, v)[0, 1] < 1 and abs(pair.first.values[0] - best) < 0.05
    sliced = kp.dsgd_ksir(points[:, :2].copy(), other, kp.gaussian(1.0), 1, 2000, 0, slices=20)
    u = kp.features(points[:, :2].copy(), sliced)[:, 0]
    assert abs(np.corrcoef(u, other[:, 0])[0, 1]) > best - 0.04


def test_slices_are_cut_at_quantiles_of_distinct_values():
    labels = np.repeat([3.0, 1.0, 2.0], [100, 500, 100])
    state = kp.dsgd_ksir_start(X, labels, kp.fourier_features_map(G, 3, 300, paired=False), 2)
    assert state.slices.edges.tolist() == [[2.0, 3.0]]
    assert state.slices.weights.shape == (3, 2)
    assert np.isfinite(kp.update(state, X, labels).coef).all()
    rare = (np.arange(700) < 20) * 1.0  # less than a slice, and above all others
    assert (
        kp.dsgd_ksir_start(
            X, rare, kp.fourier_features_map(G, 3, 300, paired=False), 1
        ).slices.edges[0, 0]
        == 1.0
    )
    assert (
        kp.dsgd_ksir_start(
            X, -rare, kp.fourier_features_map(G, 3, 300, paired=False), 1
        ).slices.edges[0, 0]
        == 0.0
    )
    with pytest.raises(ValueError, match="dsgd_ksir_start: Y must not be constant"):
        kp.dsgd_ksir_start(X, np.ones(700), kp.fourier_features_map(G, 3, 300, paired=False), 1)


def test_slices_beyond_the_distinct_targets_cost_cubically():
    # 3000 slices of three distinct targets took 50 s; of two targets, the longer row counts
    labels = np.random.default_rng(0).integers(0, 3, (700, 2)) * [1.0, 0.5]
    labels[:, 1] = np.minimum(labels[:, 1], 0.5)
    many = kp.dsgd_ksir_start(
        X, labels, kp.fourier_features_map(G, 3, 300, paired=False), 3, slices=3000
    )
    few = kp.dsgd_ksir_start(
        X, labels, kp.fourier_features_map(G, 3, 300, paired=False), 3, slices=20
    )
    assert many.slices.edges.tolist() == few.slices.edges.tolist() == [[1.0, 2.0], [0.5, np.inf]]
    assert np.array_equal(many.coef, few.coef)
    # two slices have one function, and no number of points gives two
    with pytest.raises(ValueError, match="^dsgd_ksir: k must be an int from 1 to 1, got 2$"):
        kp.dsgd_ksir(X, X[:, 0], G, 2, 300, slices=2, steps=1)


def test_constant_targets_passed_where_features_are_not_centred():
    with pytest.raises(ValueError, match="dsgd_ksir_start: Y must not be constant"):
        kp.dsgd_ksir_start(
            X,
            np.ones((700, 2)),
            kp.fourier_features_map(G, 3, 300, paired=False),
            1,
            centered=False,
        )


HUGE = kp.fourier_features_map(kp.scaled(G, 1e80), 3, 300, 0, stored=False, paired=False)
MAP = kp.fourier_features_map(G, 3, 300, 0, stored=False, paired=False)
OTHER = kp.fourier_features_map(L, 2, 300, 1, stored=False, paired=False)
FAR = (1e15 * X).astype(np.float32)


def begun(k=2, **steps):
    return kp.dsgd_start(X, MAP, k, steps=kp.DSGDSteps(**steps), centered=False)


@functools.cache
def known(task):
    return start(task)[0]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: begun(theta1=-0.1), r"steps.theta1 must be at least 0\.0, got"),
        (lambda: begun(theta0=0.0), "steps.theta0 must be at least 1e-150, got"),
        (lambda: begun(theta0=-1.0), "steps.theta0 must be at least 1e-150, got"),
        (lambda: begun(theta1=np.nan), "steps.theta1 must be finite"),
        (lambda: begun(feature_batch=0), "steps.feature_batch must be an int from 1 to"),
        (lambda: begun(feature_batch=None), "steps.feature_batch must be an int from 1 to"),
        (lambda: begun(initial=0), "steps.initial must be an int from 1 to"),
        (lambda: begun(batch=0), "steps.batch must be an int from 1 to"),
        (
            lambda: kp.dsgd_start(X, MAP, 2, steps=9, centered=False),
            "steps must be a DSGDSteps, .* got int",
        ),
        (
            lambda: kp.dsgd_kpca(X, G, 2, 300, steps=0.1),
            "steps.count must be an int from 1 to .* got 0.1",
        ),
        (
            lambda: kp.dsgd_kpca(X, G, 2, 300, steps=(9, 50)),
            "steps must be a DSGDSteps, .* got tuple",
        ),
        (lambda: kp.dsgd_start(X, MAP, 0, centered=False), "k must be"),
        (lambda: begun(41, initial=40), "k must be an int from 1 to 40"),
        (lambda: kp.dsgd_start(X[:3], MAP, 4, centered=False), "k must be at most"),
        (
            lambda: kp.dsgd_start(np.ones((9, 3)), MAP, 2, centered=False),
            "k must be at most the rank",
        ),
        (lambda: kp.dsgd_start(X[:, :2], MAP, 2, centered=False), "X must have 3 columns"),
        (
            lambda: kp.dsgd_start(
                X, kp.orthogonal_features_map(G, 3, 300, 0, stored=False), 2, centered=False
            ),
            "feature_map must come from fourier_features_map or",
        ),
        (
            lambda: kp.dsgd_start(X, kp.fastfood_features_map(G, 3, 300), 2, centered=False),
            "feature_map must come from fourier_features_map or",
        ),
        (lambda: kp.dsgd_start(X * np.inf, MAP, 2, centered=False), "X must be finite"),
        (
            lambda: kp.dsgd_kpca(X, kp.linear(), 2, 300, centered=False),
            "kernel must be shift-invariant",
        ),
        (
            lambda: kp.dsgd_kpca(X, G, 2, 300, steps=kp.DSGDSteps(batch=701), centered=False),
            "steps.batch must be an int from 1 to 700",
        ),
        (
            lambda: kp.dsgd_kpca(X, G, 2, 300, steps=0, centered=False),
            "steps.count must be an int from 1",
        ),
        (lambda: kp.dsgd_kcca(X, Y[:-1], G, L, 2, 300), r"must have \d+ rows"),
        (
            lambda: kp.dsgd_kcca_start(
                X, Y, MAP, kp.fourier_features_map(L, 2, 299, paired=False), 2
            ),
            "must have the same number of features",
        ),
        (
            lambda: kp.dsgd_ksvd_start(X, np.ones((700, 2)), MAP, OTHER, 2, centered=True),
            "k must be at most the rank",
        ),
        (lambda: kp.dsgd_ksir(X, np.zeros(700), G, 1, 300), "Y must not be constant"),
        (
            lambda: kp.dsgd_ksir(X, np.sign(X[:, 0]), G, 2, 300),
            "k must be an int from 1 to 1, got 2",
        ),
        (
            lambda: kp.update(known("kpca"), X, Y),
            "Y must be None for kernel PCA",
        ),
        (lambda: kp.update(known("kcca"), X), "Y must be a 2-D array .* got NoneType"),
        (lambda: kp.update(known("ksir"), X), "Y must be a 2-D array .* got NoneType"),
        (lambda: kp.update(known("kcca"), X, Y[:9]), r"must have \d+ rows"),
        (lambda: kp.update(known("kcca"), X, Y[:, :1]), "Y must have 2 columns"),
        (lambda: kp.update(known("kcca"), X, Y * np.nan), "Y must be finite"),
        (lambda: kp.update(known("kcca"), X[:3], Y[:3]), "must have at least 4 points"),
        (lambda: kp.update(known("kcca"), X[:0], Y), "Y must have 0 rows"),
        (lambda: kp.update(known("kpca"), X[:, :2]), "X must have 3 columns"),
        (lambda: kp.update(known("kpca")._replace(used=0), X), "state must be a DSGDState"),
        (
            lambda: kp.update(known("kpca")._replace(step=-1), X),
            "state.step must be an int",
        ),
        (
            lambda: kp.update(known("kpca")._replace(coef=np.full((300, 2), np.nan)), X),
            "diverged at step 0",
        ),
        (
            lambda: kp.update(known("kcca")._replace(other_coef=np.ones((5, 2))), X, Y),
            "state must be a DSGDState",
        ),
        (lambda: kp.features(X, kp.finish(known("kcca"))), "model must be one of .*; got TwoViews"),
        (lambda: kp.features(X, kp.finish(known("kcca")).second), "X must have 2 columns"),
        (lambda: kp.features(X[:, :2], known("kpca")), "X must have 3 columns"),
        (lambda: kp.finish(known("kpca"), 1), "k must be None for DSGDState, got 1"),
        (
            lambda: kp.features(
                FAR, known("kpca")._replace(feature_map=MAP._replace(kernel=kp.gaussian(1e-30)))
            ),
            "angles .* overflow",
        ),
        (
            lambda: kp.update(
                known("kpca")._replace(feature_map=MAP._replace(kernel=kp.gaussian(1e-30))), FAR
            ),
            "angles .* overflow",
        ),
        (
            lambda: kp.dsgd_start(FAR, MAP._replace(kernel=kp.gaussian(1e-30)), 2, centered=False),
            "angles .* overflow",
        ),
        (
            lambda: kp.features(
                X.astype(np.float32), known("kpca")._replace(coef=np.full((300, 2), 1e60))
            ),
            "features of X must be finite",
        ),
        (
            lambda: kp.dsgd_kcca_start(np.ones((99, 3)), Y[:99], MAP, OTHER, 1),
            "k must be at most the rank",
        ),
        (
            lambda: kp.dsgd_ksir_start(np.ones((99, 3)), Y[:99], MAP, 1),
            "k must be at most the rank",
        ),
        (
            lambda: kp.dsgd_start(np.ones((99, 3)), MAP, 1, centered=True),
            "k must be at most the rank",
        ),
        (
            lambda: kp.dsgd_kcca(X, Y, G, L, 1, 300, steps=kp.DSGDSteps(batch=3)),
            "a mini-batch must have at least 4 points",
        ),
        (
            lambda: kp.dsgd_kcca(X[:3], Y[:3], G, L, 1, 300),
            "a mini-batch must have at least 4 points",
        ),
        (
            lambda: kp.dsgd_kpca(X, G, 1, 300, steps=kp.DSGDSteps(batch=1), centered=True),
            "a mini-batch must have at least 2 points",
        ),
        (
            lambda: kp.dsgd_kpca(X.astype(np.float32), kp.scaled(G, 1e80), 1, 300, centered=False),
            "kernel must have a gamma .* and a scale from 1e-37",
        ),
        (
            lambda: kp.dsgd_ksvd(X.astype(np.float32), Y, G, kp.scaled(L, 1e80), 1, 300),
            "kernel_y must have a gamma .* and a scale from 1e-37",
        ),
        (
            lambda: kp.dsgd_start(X.astype(np.float32), HUGE, 1, centered=False),
            "X .or Y. must be float64",
        ),
        (
            lambda: kp.update(kp.dsgd_start(X, HUGE, 1, centered=False), X.astype(np.float32)),
            "X .or Y. must be float64",
        ),
        (
            lambda: kp.features(X.astype(np.float32), kp.dsgd_start(X, HUGE, 1, centered=False)),
            "X .or Y. must be float64",
        ),
        (
            lambda: kp.update(known("kpca")._replace(used=1.5), X),
            "state.used must be an int",
        ),
        (
            lambda: kp.update(known("kpca")._replace(step=2**63), X),
            "state.step must be an int",
        ),
        (
            lambda: kp.update(known("ksir")._replace(slices=None), X),
            "state must be a DSGDState",
        ),
        (
            lambda: kp.update(known("ksir")._replace(slices=(1, 2)), X),
            "state.slices must be slices of a DSGDState, got tuple",
        ),
        (
            lambda: kp.update(known("kpca")._replace(task="x"), X),
            "state must be a DSGDState from dsgd_start or another start",
        ),
        (
            lambda: kp.update(known("kpca")._replace(task=1), X),
            "state must be a DSGDState from dsgd_start or another start",
        ),
        (
            lambda: kp.update(known("kpca")._replace(task="canonical"), X, Y),
            "state must be a DSGDState",
        ),
        (
            lambda: kp.update(known("kpca")._replace(centered="False"), X),
            "state.centered must be True or False",
        ),
        (
            lambda: kp.update(known("kpca")._replace(feature_map=MAP._replace(seed=-1)), X),
            "state.feature_map.seed must be",
        ),
        (lambda: kp.features(X, (1, 2)), "model must be one of .*DSGDState, .*; got tuple"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words) as raised:
        call()
    assert str(raised.value).startswith(("dsgd_", "update: ", "features: ", "finish: "))


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e200])
def test_kernels_of_any_scale_take_the_same_steps(scale):
    # the first step was in units of the kernel's square root, and nothing was learned with small kernels
    steps = kp.DSGDSteps(50, 200)
    plain = kp.dsgd_kpca(X, G, 2, 600, steps=steps, centered=False)
    found = kp.dsgd_kpca(X, kp.scaled(G, scale), 2, 600, steps=steps, centered=False)
    assert np.abs(found.values / scale / plain.values - 1).max() < 1e-9
    pair = kp.dsgd_ksvd(X, Y, G, kp.scaled(L, scale), 1, 600, steps=steps)
    unscaled = kp.dsgd_ksvd(X, Y, G, L, 1, 600, steps=steps)
    assert pair.first.values[0] / np.sqrt(scale) == pytest.approx(unscaled.first.values[0])


def test_every_seed_makes_two_views():
    # a key below 2**63 compiled a function that refused those above
    for seed in (1, 5, 0, 2**64 - 1):
        assert len(kp.dsgd_kcca(X, Y, G, L, 1, 300, seed, steps=1)) == 2


def test_float32_features_of_kernels_beyond_its_range_are_refused():
    with pytest.raises(ValueError, match="^features: X must be float64 for"):
        kp.features(X.astype(np.float32), HUGE)
    with pytest.raises(ValueError, match="^update: X must be float64"):
        kp.update(kp.skpca_start(HUGE, 5, centered=False), X.astype(np.float32))


def test_views_of_another_precision_and_vectors_are_taken():
    steps = kp.DSGDSteps(20, 300)
    single = kp.dsgd_kcca(X.astype(np.float32), Y, G, L, 1, 200, steps=steps)
    double = kp.dsgd_kcca(X, Y, G, L, 1, 200, steps=steps)
    for a, b in zip(single, double):
        assert np.abs(a.coef - b.coef).max() < 1e-3 * np.abs(b.coef).max()
    column = kp.dsgd_start(
        X[:, :1].copy(), kp.fourier_features_map(G, 1, 99, paired=False), 1, centered=False
    )
    assert column.coef.shape == (99, 1)
    pair = kp.dsgd_ksvd_start(
        X, Y[:, 0], MAP, kp.fourier_features_map(L, 1, 300, 4, paired=False), 1
    )
    assert np.array_equal(kp.update(pair, X, Y[:, 0]).coef, kp.update(pair, X, Y[:, :1]).coef)


def test_memory_does_not_grow_with_the_coordinates(rng):
    wide = rng.standard_normal((200, 5625))
    model = kp.dsgd_kpca(
        wide, kp.gaussian(100.0), 2, 512, steps=kp.DSGDSteps(4, 100), centered=False
    )
    assert sum(a.nbytes for a in (model.coef, model.feature_map.frequencies)) < 10_000
    assert kp.features(wide, model).shape == (200, 2)


def test_centred_steps_refused_variates_for_their_mean():
    # the limit of 100 was tested before the mean went, which grows with the bandwidth
    points = np.random.default_rng(0).standard_normal((3000, 1))
    pair = kp.dsgd_kcca(points, points + 0.1, kp.gaussian(6.0), kp.gaussian(6.0), 1, 300)
    assert pair.first.values[0] > 0.95
    wide = np.random.default_rng(1).standard_normal((3000, 10))
    assert kp.dsgd_ksir(wide, wide[:, 0] ** 2, kp.gaussian(7.0), 2, 300).values[0] > 0.8


@pytest.mark.parametrize("batch", [2, 3, 5])
def test_means_of_small_mini_batches_took_a_share_of_the_variance(batch):
    # each mini-batch about its own mean, divided by its size: (1 - 1 / batch) of the eigenvalue
    points = np.random.default_rng(0).standard_normal((4000, 1))
    K = kp.gram(points[:2000], points[:2000], kp.gaussian(1.0))
    exact = np.linalg.eigvalsh(naive.centered(K))[-1] / 2000
    state = kp.dsgd_kpca(
        points,
        kp.gaussian(1.0),
        1,
        300,
        steps=kp.DSGDSteps(4000 // batch, batch),
        centered=True,
    )
    assert abs(state.values[0] / exact - 1) < 0.15


@pytest.mark.parametrize("batch", [4, 6, 10, 512])
@pytest.mark.parametrize("task", ["kcca", "ksir"])
def test_canonical_correlations_were_above_1(task, batch, with_states):
    # 1.21 and 1.31 with variates of variance 2.23 and 1.5, as nothing divided by the constraint
    points = np.random.default_rng(0).standard_normal((4000, 2))
    steps = kp.DSGDSteps(800, batch)
    for lam in (0.0, 0.01):
        if task == "kcca":
            state = kp.dsgd_kcca(points, points[:, :1] ** 2, G, G, 2, 300, steps=steps, lam=lam)
        else:
            state = kp.dsgd_ksir(points, points[:, 0] ** 2, G, 2, 300, steps=steps, lam=lam)
        values, turn = kp._principal(state)
        assert (0 < values).all() and (values <= 1 + 1e-12).all()
        assert np.allclose(turn.T @ state.constraint @ turn, np.eye(2), atol=1e-9)
        assert np.allclose(turn.T @ state.moment @ turn, np.diag(values), atol=1e-9)
        model = model_of(kp.finish(state))
        assert np.array_equal(model.values, values)
        norms = state.used * (model.coef**2).sum(0)
        held = kp.features(points, model).var(0) + lam * norms
        assert batch < 512 or (np.abs(held - 1) < 0.5).all()


@pytest.mark.parametrize("n", [4, 5, 12, 20, 30])
def test_steps_that_were_chosen_diverged_on_few_points(n, rng, with_states):
    for k in (1, 3):
        for sigma in (0.5, 1.0, 20.0):
            points = rng.standard_normal((n, 3))
            second = points[:, :1] ** 2 + 0.1 * rng.standard_normal((n, 1))
            for state in (
                kp.dsgd_kcca(points, second, kp.gaussian(sigma), G, k, 300),
                kp.dsgd_ksir(points, second, kp.gaussian(sigma), k, 300),
            ):
                assert np.isfinite(state.coef).all() and state.chosen


def test_the_error_of_a_step_says_the_value_of_theta0():
    with pytest.raises(
        ValueError, match=r"steps\.theta0 must be below 9\.00e\+02: the steps diverged at step"
    ):
        kp.dsgd_kcca(X, Y, G, L, 2, 300, steps=kp.DSGDSteps(theta0=900.0))


def test_steps_with_all_features_are_those_with_stored_points(rng):
    # update (2) of the paper, whose kernel values become those of the features when each step takes all of them
    state = kp.dsgd_start(
        X,
        kp.fourier_features_map(G, 3, 200, 5, paired=False),
        2,
        steps=kp.DSGDSteps(feature_batch=200, theta0=0.5, theta1=0.01, initial=200),
        centered=False,
    )
    Z = kp.features(X, state.feature_map)
    K, alpha = Z @ Z.T, np.linalg.lstsq(Z.T, math.sqrt(200) * state.coef, rcond=None)[0]
    assert np.allclose(K @ alpha, kp.features(X, state))
    for t in range(30):
        rows = rng.integers(700, size=20)
        alpha = naive.stored_step(alpha, K, rows, 0.5 / (1 + 0.01 * t))
        state = kp.update(state, X[rows])
        assert np.abs(K @ alpha - kp.features(X, state)).max() < 1e-9
    exact = np.linalg.eigvalsh(K)[-2:] / 700
    assert np.allclose(np.sort((kp.features(X, kp.finish(state)) ** 2).mean(0)), exact, rtol=0.2)


@pytest.mark.bounds
def test_features_that_are_all_alike_were_written_out_of_bounds():
    # Of no variance a whitener has no columns, and the last diagonal entry of a matrix without rows stood before its
    # memory: an hour of attacks ended in a crash, far from there.
    drawn = kp.fourier_features_map(kp.gaussian(2.0), 2, 300, 0, stored=False, paired=False)
    X, targets = np.ones((5, 2)), np.arange(5.0).reshape(5, 1)
    steps = kp.DSGDSteps(feature_batch=16, initial=5)
    for points, views in ((X, targets), (np.ones((5, 2), np.float32), targets)):
        with pytest.raises(ValueError, match="^dsgd_ksir_start: k must be at most the rank"):
            kp.dsgd_ksir_start(points, views, drawn, 1, steps=steps, slices=4)
        with pytest.raises(ValueError, match="^dsgd_kcca_start: k must be at most the rank"):
            kp.dsgd_kcca_start(points, X, drawn, drawn, 1, steps=steps)
    assert [part.shape for part in kp._small_eigen(np.zeros((0, 0)))] == [(0,), (0, 0)]


def test_wrong_targets_were_refused_only_after_the_features(monkeypatch):
    def compute(*_):
        raise AssertionError("features were computed first")

    monkeypatch.setattr(kp, "_some_features", compute)
    feature_map = kp.fourier_features_map(kp.gaussian(1.0), 2, 40, paired=False)
    with pytest.raises(ValueError, match="^dsgd_ksir_start: Y must have 9 rows"):
        kp.dsgd_ksir_start(np.zeros((9, 2)), np.zeros(8), feature_map, 1)
    with pytest.raises(ValueError, match="^dsgd_ksir_start: slices must"):
        kp.dsgd_ksir_start(np.zeros((9, 2)), np.arange(9.0), feature_map, 1, slices=1)


# Models


@numba.njit
def scored(points, model, out):
    for i in range(len(points)):
        kp.features_of(points[i], model, out[i])
    return out


@pytest.mark.parametrize("kernel", [G, L, kp.laplacian(2.0, norm=1), kp.cauchy(2.0)], ids=str)
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_compiled_features_of_one_point_are_those_of_all(kernel, paired, stored):
    maps = [
        kp.fourier_features_map(kernel, d, 65, seed, stored=stored, paired=paired)
        for d, seed in ((3, 2**64 - 1), (2, 6))
    ]
    states = [
        steps_of(kp.dsgd_kcca_start(X, Y, *maps, 2, steps=kp.DSGDSteps(initial=40)), X, Y),
        steps_of(kp.dsgd_ksir_start(X, Y, maps[0], 2), X, Y),
        steps_of(kp.dsgd_start(X, maps[0], 2), X, None),
    ]
    for state in states:
        models = [state, model_of(kp.finish(state))]
        for model in models:
            expected = kp.features(X[:30], model)
            found = scored(X[:30], model, np.full(expected.shape, np.nan))
            assert np.allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    second_model = kp.finish(states[0]).second
    expected = kp.features(Y[:30], second_model)
    assert np.allclose(scored(Y[:30], second_model, np.empty((30, 2))), expected, atol=1e-10)


@pytest.mark.parametrize("task", TASKS)
def test_functions_are_those_of_the_rotated_state(task):
    state, other = start(task, centered=True)
    state = steps_of(state, X, other, 3)
    before = pickle.dumps(state)
    result = kp.finish(state)
    assert pickle.dumps(state) == before
    values, turn = kp._principal(state)
    assert np.array_equal(model_of(result).values, values)
    assert np.array_equal(kp.dsgd_values(state), values)
    rotated = kp.features(X, state) @ turn
    found = kp.features(X, model_of(result))
    signs = np.sign((rotated * found).sum(0))
    assert np.allclose(rotated * signs, found, atol=1e-12)
    if task == "gha":
        assert np.array_equal(np.abs(model_of(result).coef), np.abs(state.coef[: state.used]))
    if task in ("ksvd", "kcca"):
        size = math.sqrt(2.0) * features(state.other, Y)
        expected = size @ state.other_coef @ turn * signs
        assert np.allclose(kp.features(Y, result.second), expected, atol=1e-12)
        assert np.array_equal(result.first.values, result.second.values)
    else:
        assert type(result) is kp.FourierExpansion


def test_a_model_has_the_features_that_were_used():
    state = start("kpca", 300, initial=40)[0]
    assert kp.finish(state).coef.shape == (40, 2)
    assert kp.finish(kp.update(state, X)).coef.shape == (105, 2)


@pytest.mark.parametrize("task", ["kpca", "ksir", "kcca"])
def test_models_are_read_from_their_files(task, tmp_path):
    state, other = start(task)
    result = kp.finish(steps_of(state, X, other))
    kp.save(tmp_path / "model.npz", result)
    again = kp.load(tmp_path / "model.npz")
    assert type(again) is type(result)
    assert np.array_equal(kp.features(X, model_of(again)), kp.features(X, model_of(result)))
    if task == "kcca":
        kp.save(tmp_path / "second.npz", result.second)
        again = kp.load(tmp_path / "second.npz")
        assert np.array_equal(kp.features(Y, again), kp.features(Y, result.second))


def test_each_view_remembers_its_columns():
    pandas = pytest.importorskip("pandas")
    first = pandas.DataFrame(X, columns=["a", "b", "c"])
    second_view = pandas.DataFrame(Y, columns=["d", "e"])
    swapped = second_view[["e", "d"]]
    state = kp.dsgd_kcca_start(first, second_view, MAP, OTHER, 2)
    late = kp.update(kp.dsgd_kcca_start(X, Y, MAP, OTHER, 2), first, second_view)
    for pair in (
        kp.finish(state),
        kp.finish(late),
        kp.finish(kp.update(state, X, Y)),
        kp.dsgd_kcca(first, second_view, G, L, 2, 300, steps=2),
        kp.dsgd_ksvd(first, second_view, G, L, 2, 300, steps=2),
    ):
        assert (pair.first.names, pair.second.names) == (b'["a", "b", "c"]', b'["d", "e"]')
        assert kp.features(second_view, pair.second).shape == (700, 2)
        with pytest.raises(ValueError, match="^features: X and model must have the same columns"):
            kp.features(swapped, pair.second)
    with pytest.raises(ValueError, match="^update: Y and state must have the same columns"):
        kp.update(state, first, swapped)
    # targets have no columns to remember
    sliced = kp.dsgd_ksir_start(first, second_view, MAP, 2)
    assert kp.update(sliced, first, swapped).other_names == b""


def test_sparse_points_are_refused_by_functions_of_gradients():
    points = scipy.sparse.csr_array(X)
    for model in (known("kpca"), kp.finish(known("kpca"))):
        with pytest.raises(ValueError, match="^features: X must be dense"):
            kp.features(points, model)


def test_a_map_that_cannot_be_drawn_in_parts_is_refused_in_models_made_by_hand():
    undrawable = kp.orthogonal_features_map(G, 3, 300, stored=False)
    model = kp.finish(known("kpca"))._replace(feature_map=undrawable)
    with pytest.raises(ValueError, match="^features: model.feature_map must come from"):
        kp.features(X, model)


@pytest.mark.parametrize("task", TASKS)
def test_an_empty_batch_of_both_views_was_refused(task):
    state, other = start(task)
    no_targets = None if other is None else other[:0]
    for one in (state, kp.update(state, X[:60], None if other is None else other[:60])):
        after = kp.update(one, X[:0], no_targets)
        assert same_bits(after, one)
    with pytest.raises(ValueError, match="^update: X must have 3 columns, got 2"):
        kp.update(state, X[:0, :2], no_targets)
    if other is not None:
        with pytest.raises(ValueError, match="^update: Y must have 0 rows"):
            kp.update(state, X[:0], other[:5])
        with pytest.raises(ValueError, match="^update: Y must have 2 columns"):
            kp.update(state, X[:0], other[:0, :1])
