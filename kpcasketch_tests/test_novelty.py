# SPDX-License-Identifier: BSD-3-Clause
"""P-values: of novel points, of the detector's false alarms, and of two samples."""

import itertools

import numpy as np
import pytest
from scipy import signal, stats

import kpcasketch as kp
from kpcasketch_tests import naive

KERNEL = kp.gaussian(2.0)
RESIDUAL_MODELS = {
    "kpca": lambda X: kp.kpca(X, kp.gaussian(3.0), min(5, len(X)), centered=False),
    "all components": lambda X: kp.kpca(X, kp.gaussian(3.0), len(X), centered=False),
    "centered": lambda X: kp.kpca(X, kp.gaussian(3.0), 3, centered=True),
    "linear": lambda X: kp.kpca(X, kp.linear(), 2, centered=False),
    "map": lambda X: kp.nystrom_map(X, np.arange(len(X) // 2), kp.gaussian(3.0)),
    "skpca": lambda X: kp.skpca(X, kp.gaussian(3.0), 3, 40, 8, centered=False),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", RESIDUAL_MODELS.values(), ids=RESIDUAL_MODELS)
def test_pvalues_count_the_known_residuals(make, dtype, rng):
    for X in (rng.standard_normal((300, 17)), rng.standard_normal((300, 2)) + 100.0):
        X = X.astype(dtype)
        model = make(X[:40])
        known = kp.residual(X[40:200], model)
        found = kp.novelty_pvalues(X[200:], model, known)
        expected = naive.novelty_pvalues(kp.residual(X[200:], model), known)
        assert found.dtype == np.float64 and np.array_equal(found, expected)
        assert np.array_equal(found, kp.novelty_pvalues(X[200:], model, known[::-1]))
        # a known point is as far as itself, however many points stand beside it in a call
        order = np.argsort(np.argsort(-known)) + 2.0
        again = [kp.novelty_pvalues(X[i : i + w], model, known) for w in (1, 3) for i in (40, 77)]
        assert (np.concatenate(again) >= (order / 161)[[0, 37, 0, 1, 2, 37, 38, 39]]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", RESIDUAL_MODELS.values(), ids=RESIDUAL_MODELS)
def test_equal_points_are_no_novelty(make, dtype):
    X = np.full((12, 3), 0.7, dtype)
    for model in (make(X), make(np.random.default_rng(0).standard_normal((12, 3)).astype(dtype))):
        known = kp.residual(X, model)
        for some in (X, X[:1], X[:3], np.tile(X, (30, 1))):
            assert (kp.novelty_pvalues(some, model, known) == 1.0).all()
        far = kp.novelty_pvalues(X + dtype(50.0), model, known)
        assert make is RESIDUAL_MODELS["linear"] or (far == 1.0 / 13.0).all()


def test_pvalues_of_fresh_points_have_the_law_of_ranks(rng):
    X = rng.standard_normal((12_000, 3))
    model = kp.kpca(X[:60], kp.gaussian(2.0), 12, centered=False)
    ranks, shares = [], []
    for fresh in X[100:].reshape(-1, 34, 3)[:340]:
        p = kp.novelty_pvalues(fresh[19:], model, kp.residual(fresh[:19], model))
        ranks.append(round(20 * p[0]))
        shares.append(np.count_nonzero(p <= 0.1))
    # 1 / 20 each; the alarms among 15 points are beta-binomial with a = 2 = .1 (19 + 1)
    assert stats.chisquare(np.bincount(ranks, minlength=21)[1:]).pvalue > 1e-3
    law = stats.betabinom(15, 2, 18).pmf(np.arange(4))
    seen = np.bincount(np.minimum(shares, 4), minlength=5)
    expected = len(shares) * np.append(law, 1 - law.sum())
    assert stats.chisquare(seen, expected).pvalue > 1e-3
    # points of the model break it
    inside = kp.residual(X[:59], model)
    assert np.mean(kp.novelty_pvalues(X[100:2000], model, inside) <= 0.1) > 0.15


def test_false_discoveries_among_many_points_are_a_share(rng):
    X = rng.standard_normal((60, 3))
    model, false, found = kp.kpca(X, kp.gaussian(2.0), 12, centered=False), [], []
    for _ in range(200):
        known = kp.residual(rng.standard_normal((199, 3)), model)
        points = rng.standard_normal((50, 3))
        points[40:] += 5.0
        marked = stats.false_discovery_control(kp.novelty_pvalues(points, model, known)) <= 0.2
        false.append(marked[:40].sum() / max(1, marked.sum()))
        found.append(marked[40:].mean())
    # .8 of the points are known ones: at most .8 of .2, in truth
    assert 0.12 < np.mean(false) < 0.2 and np.mean(found) > 0.95


def test_a_window_of_known_residuals_follows_a_drift(rng):
    model = kp.kpca(rng.standard_normal((200, 3)), kp.gaussian(2.0), 12, centered=False)
    known = kp.residual(rng.standard_normal((400, 3)), model)
    alarms = []
    for _ in range(6):
        X = 1.3 * rng.standard_normal((400, 3))
        alarms.append(np.mean(kp.novelty_pvalues(X, model, known) <= 0.1))
        known = np.append(known, kp.residual(X, model))[-400:]
    assert alarms[0] > 0.17 and max(alarms[1:]) < 0.15


def test_infinite_residuals_and_what_novelty_refuses(rng):
    X = rng.standard_normal((9, 2)) + 3.0
    model = kp.kpca(X, kp.linear(), 1, centered=True)
    origin = np.zeros((1, 2))
    assert np.isinf(kp.residual(origin, model)).all()
    assert kp.novelty_pvalues(origin, model, [0.1, np.inf, 0.2]) == 0.5
    assert kp.novelty_pvalues(origin, model, [0.1, 0.2]) == 1 / 3
    model = kp.kpca(X, kp.polynomial(2, 1.0, 1.0), 2, centered=False)
    for known, text in (
        (X, "known must be a 1-D array of real numbers"),
        ([], "known must hold one or more residuals"),
        ([0.1, np.nan], "known must hold one or more residuals"),
        ([0.1, -0.1], "known must hold one or more residuals"),
        (None, "known must be a 1-D array of real numbers"),
    ):
        with pytest.raises(ValueError, match=f"^novelty_pvalues: {text}"):
            kp.novelty_pvalues(X, model, known)
    for points, model, text in (
        (X[:, :1], model, "X and model.points must have the same number of columns"),
        (X, model._replace(offset=np.ones(2)), "model.mean must be known"),
        (X, kp.linear(), "model must be one of Expansion"),
        (X * np.nan, model, "X must be finite"),
    ):
        with pytest.raises(ValueError, match=f"^novelty_pvalues: {text}"):
            kp.novelty_pvalues(points.copy(), model, np.ones(3))


# The detector


def test_the_detector_has_the_false_alarms_that_were_asked_for(rng):
    pytest.importorskip("sklearn")
    points, new = rng.standard_normal((3000, 4)), rng.standard_normal((4000, 4))
    for share in (0.2, 0.05, 0.01):
        own = kp.NoveltyDetector(100, share).fit(points)
        known = own.residuals_
        m = known.size
        assert m == 600
        above = int(share * (m + 1))  # exactly: the above-th largest of m is no alarm
        assert (known > -own.offset_).sum() == above - 1
        assert np.array_equal(
            own.predict(new) == -1, kp.novelty_pvalues(new, own.map_, known) <= share
        )
        # by the law of novelty_pvalues, Beta(above, m + 1 - above), and binomial draws
        alarms = stats.betabinom(4000, above, m + 1 - above)
        assert alarms.ppf(1e-4) <= (own.predict(new) == -1).sum() <= alarms.ppf(1.0 - 1e-4)
        assert (own.predict(new + 9.0) == -1).all()
        assert np.allclose(own.decision_function(new), own.score_samples(new) - own.offset_)
    with pytest.warns(UserWarning, match="^NoveltyDetector: 10 residuals cannot give false_alarms"):
        few = kp.NoveltyDetector(9, 0.01).fit(points[:50])
    assert few.offset_**2 == pytest.approx(few.residuals_.max() ** 2 + 1e-9, abs=1e-13)
    with pytest.raises(ValueError, match="^NoveltyDetector: landmarks must be an int from 1"):
        kp.NoveltyDetector(0).fit(points)
    with pytest.raises(ValueError, match="^NoveltyDetector: false_alarms must be between 0 and 1"):
        few.set_params(false_alarms=1.0).partial_fit(points)
    assert len(few.residuals_) < 20  # a refused update changes nothing
    one, two = (kp.NoveltyDetector(30).fit(points[:500]) for _ in range(2))
    with pytest.raises(ValueError):
        two.partial_fit(np.full((40, 4), 1e200))  # it advanced the generator of the held-out points
    for own in (one, two):
        own.partial_fit(points[500:900])
    assert np.array_equal(one.residuals_, two.residuals_) and one.offset_ == two.offset_
    equal = kp.NoveltyDetector(9, 0.2).fit(np.ones((50, 2)))
    assert (equal.predict(np.ones((9, 2))) == 1).all() and equal.predict([[1.0, 2.0]]) == [-1]


def _patients(rng, count, d=2):
    """Points of patients about a place of their own, with 1 to 29 points each, and their labels."""
    sizes = rng.integers(1, 30, count)
    places = rng.standard_normal((count, d))
    points = np.repeat(places, sizes, 0) + 0.2 * rng.standard_normal((sizes.sum(), d))
    return points, np.repeat(np.arange(count), sizes)


def test_points_of_new_patients_were_novel_too_often():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(5)
    alarms = {True: 0, False: 0}
    for trial in range(200):
        points, patients = _patients(rng, 46, 3)
        new = points[patients == 45]
        one = rng.integers(len(new), size=1)  # a random point of a new patient
        points, patients = points[patients < 45], patients[patients < 45]
        for known in alarms:
            own = kp.NoveltyDetector(60, 0.1, sigma=2.0, random_state=trial)
            own.fit(points, groups=patients if known else None)
            alarms[known] += int(own.predict(new[one])[0] == -1)
    assert stats.binomtest(alarms[True], 200, 0.1, "greater").pvalue > 1e-6
    assert stats.binomtest(alarms[False], 200, 0.1, "greater").pvalue < 1e-6


def test_whole_groups_are_held_out_and_have_equal_weights(rng):
    pytest.importorskip("sklearn")
    points, patients = _patients(rng, 101)
    labels = np.array([f"patient {number}" for number in patients])
    own = kp.NoveltyDetector(80, 0.2, sigma=1.0).fit(points, groups=labels)
    found = kp.residual(points, own.map_)
    held = np.isin(found, own.residuals_)
    unseen = np.unique(patients[held])
    assert len(unseen) == 21 and np.array_equal(held, np.isin(patients, unseen))
    assert held.sum() == len(own.residuals_)
    # the least residual with at most .2 of the mass above it, of which a new group has 1 / 22
    threshold = np.sqrt(own.offset_**2 - 1e-9)

    def mass(least):
        return sum((found[patients == one] > least).mean() for one in unseen) / 22 + 1 / 22

    assert mass(threshold + 1e-9) <= 0.2
    below = found[held & (found < threshold - 1e-9)].max()
    assert mass(below) > 0.2
    # 19 groups of 3 points give 5 %, although three times a third is not 1, and 18 do not
    for count in (95, 90):
        groups = np.repeat(np.arange(count), 3)
        X = rng.standard_normal((3 * count, 2))
        own = kp.NoveltyDetector(30, 0.05)
        if count == 95:
            own.fit(X, groups=groups)
        else:
            with pytest.warns(UserWarning, match="54 residuals of 18 groups cannot give"):
                own.fit(X, groups=groups)
        assert own.offset_ == pytest.approx(-own.residuals_.max(), abs=1e-6)
    # groups of single points are points, and a stream goes on with points
    single = [kp.NoveltyDetector(30).fit(X, groups=groups) for groups in (None, np.arange(270))]
    assert single[0].offset_ == single[1].offset_
    own = kp.NoveltyDetector(30, 0.2, sigma=1.0).fit(points, groups=labels)
    many = len(own.residuals_)
    assert len(own.partial_fit(points[:40]).residuals_) == many + 40


def test_groups_of_many_points_are_not_cut(rng):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((12_000, 2))
    own = kp.NoveltyDetector(20, 0.2, sigma=1.0).fit(points, groups=np.arange(12_000) // 600)
    assert len(own.residuals_) == 2400  # of 4 groups; the latest 2000 are cut within one
    assert len(own.partial_fit(points[:9]).residuals_) == 2000


@pytest.mark.slow
def test_false_alarms_of_a_stream_that_depends_on_time(rng):
    pytest.importorskip("sklearn")
    noise = rng.standard_normal((9000, 2)) * np.sqrt(1.0 - 0.99**2)
    points = signal.lfilter([1.0], [1.0, -0.99], noise, axis=0)
    own = kp.NoveltyDetector(100)
    alarms = []
    for block in np.split(points, 15):
        if alarms or hasattr(own, "map_"):
            alarms.append((own.predict(block) == -1).mean())
        own.partial_fit(block)
    # residuals of points beside learned ones gave .1 to the end
    assert 0.02 < np.mean(alarms[3:]) < 0.09


# Two samples.


def test_pvalues_of_two_samples_approach_those_of_all_divisions(rng):
    for shift in (0.0, 1.5):
        X = rng.standard_normal((9, 2))
        X[:4] += shift
        expected = naive.mmd_pvalue(naive.gaussian(X, X, 1.5), 4)
        for permutations in (125, 9999):  # all 126 divisions
            found = kp.mmd_test(X[:4], X[4:], kp.gaussian(1.5), permutations=permutations)
            assert found == expected
        found = kp.mmd_test(X[:4], X[4:], kp.gaussian(1.5), permutations=124)
        assert abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / 124) + 0.01


def test_one_seed_has_the_level_for_few_divisions(rng):
    X = rng.standard_normal((6, 2))  # one seed drew 19 of them: p <= .05 for .142 of all orders
    for permutations in (19, 999):
        p = []
        for first in itertools.combinations(range(6), 3):
            rest = np.setdiff1d(range(6), first)
            p.append(kp.mmd_test(X[list(first)], X[rest], KERNEL, 4, permutations=permutations))
        for alpha in np.arange(1, 20) / 20:
            assert np.mean(np.array(p) <= alpha + 1e-9) <= alpha + 1e-9


def test_two_samples_of_zeros_and_ones_have_hypergeometric_counts():
    # 30 points, 13 ones, 7 of them among the first 10: means differ by as much where 2 - 2 / 3 or fewer are among them
    ones = np.r_[np.ones(7), np.zeros(3), np.ones(6), np.zeros(14)][:, None]
    counts = np.arange(11)
    far = np.abs(counts - 13 / 3) >= 7 - 13 / 3 - 1e-9
    expected = stats.hypergeom(30, 13, 10).pmf(counts)[far].sum()
    for shift in (0.0, 1e5):  # most divisions tie with another one
        for dtype in (np.float64, np.float32):
            X = (ones + shift).astype(dtype)
            for kernel in (kp.linear(), kp.gaussian(1.0)):
                found = kp.mmd_test(X[:10], X[10:], kernel, permutations=9999)
                assert abs(found - expected) < 5 * np.sqrt(expected / 9999)


def test_pvalues_of_equal_laws_are_uniform_and_differences_are_seen(rng):
    p = [
        kp.mmd_test(
            rng.standard_normal((20, 2)),
            rng.standard_normal((30, 2)),
            KERNEL,
            10,
            t,
            permutations=19,
        )
        for t in range(400)
    ]
    assert stats.chisquare(np.bincount(np.round(20 * np.array(p)).astype(int))[1:]).pvalue > (1e-3)
    # the spread of points differs; only their means are told apart by a linear kernel
    wide = [(rng.standard_normal((60, 2)), 2.0 * rng.standard_normal((60, 2))) for _ in range(20)]
    assert np.mean([kp.mmd_test(*two, KERNEL, 50, permutations=99) <= 0.05 for two in wide]) > 0.8
    assert (
        np.mean([kp.mmd_test(*two, kp.linear(), 50, permutations=99) <= 0.05 for two in wide]) < 0.3
    )


def test_one_seed_for_all_data_had_another_level(rng):
    # Divisions of sorted points were nearly the same for all data on a line: the level of this seed was .08.
    p = [
        kp.mmd_test(
            rng.integers(3, size=(15, 1)), rng.integers(3, size=(60, 1)), KERNEL, 9, permutations=99
        )
        for _ in range(1000)
    ]
    assert 0.03 < np.mean(np.array(p) <= 0.05) < 0.07


@pytest.mark.parametrize(
    "kernel",
    [KERNEL, kp.linear(), kp.polynomial(2, 1.0, 0.0)],
    ids="gaussian linear square".split(),
)
def test_equal_points_do_not_differ(kernel, rng):
    for value in (0.0, 1.3):
        X = np.full((20, 3), value)
        assert (
            kp.mmd_test(X, X[:7], kernel)
            == kp.mmd_test(X[:1], X[:1], kernel, 5, permutations=3)
            == 1.0
        )
    X = rng.standard_normal((90, 3))
    assert kp.mmd_test(X, X, kernel) == kp.mmd_test(X, X.copy(), kernel) == 1.0
    mixed = rng.permutation(40), rng.permutation(50)
    p = kp.mmd_test(X[:40], X[40:], kernel, 20)
    assert abs(kp.mmd_test(X[:40][mixed[0]], X[40:][mixed[1]], kernel, 20) - p) < 0.08
    single = X.astype(np.float32)
    assert abs(kp.mmd_test(single[:40], single[40:], kernel, 20) - p) < 0.02


def test_a_test_of_two_samples_has_the_same_bits_on_any_number_of_threads(threads, rng):
    X = rng.standard_normal((3000, 4))
    found = [threads(count, kp.mmd_test, X[:2000], X[2000:], KERNEL, 40, 0) for count in (1, 2)]
    assert found[0] == found[1] and type(found[0]) is float


def test_what_a_test_of_two_samples_refuses(rng):
    X = rng.standard_normal((9, 2))
    for call, text in (
        (lambda: kp.mmd_test(X, X[:, :1].copy(), KERNEL), "Y must have 2 columns, got 1"),
        (lambda: kp.mmd_test(X, X * np.nan, KERNEL), "Y must be finite"),
        (lambda: kp.mmd_test(X, X, KERNEL, 0), "s must be an int from 1"),
        (
            lambda: kp.mmd_test(X, X, KERNEL, 3, permutations=0),
            "permutations must be an int from 1",
        ),
        (lambda: kp.mmd_test(X, X, KERNEL, 3, -1, permutations=9), "seed must be an int from 0"),
        (lambda: kp.mmd_test(X, X, 3), "kernel must be a Kernel"),
        (
            lambda: kp.mmd_test(X, X, kp.precomputed(np.eye(9))),
            "X must have one column of row numb",
        ),
        (lambda: kp.mmd_test(1e90 * X, X, kp.polynomial(4, 1.0, 0.0)), "kernel values on X"),
    ):
        with pytest.raises(ValueError, match=f"^mmd_test: {text}"):
            call()
    rows = np.arange(9.0)[:, None]
    assert kp.mmd_test(rows[:4], rows[4:], kp.precomputed(X @ X.T), seed=3) == kp.mmd_test(
        rows[:4], rows[4:], kp.precomputed(X @ X.T), 9, seed=3
    )


def test_two_samples_far_from_the_origin_have_the_p_value_of_near_ones(rng):
    P, Q = rng.standard_normal((2, 60, 3))
    far = np.array([1.7e9, 1e8, 0.0])
    P, Q = (P + far) - far, (Q + 0.5 + far) - far  # after rounding
    near = kp.mmd_test(P, Q, kp.linear())
    assert near < 0.05 and near == kp.mmd_test(P + far, Q + far, kp.linear())


def _autoregression(rng, n):
    noise = rng.standard_normal((n + 500, 1)) * np.sqrt(1.0 - 0.9**2)
    return signal.lfilter([1.0], [1.0, -0.9], noise, axis=0)[500:]


def test_two_series_of_one_law_differed(rng):
    runs = np.arange(2000) // 100  # correlations fall to 1/e after 9.5 points
    p = {True: [], False: []}
    for trial in range(200):
        two = _autoregression(rng, 1000), _autoregression(rng, 1000)
        for whole, found in p.items():
            groups = runs if whole else None
            found.append(kp.mmd_test(*two, KERNEL, 10, trial, permutations=99, groups=groups))
    small = np.count_nonzero(np.array(p[True]) <= 0.05)
    assert stats.binomtest(small, 200, 0.055, "greater").pvalue > 1e-5
    assert np.mean(np.array(p[False]) <= 0.05) > 0.6
    two = _autoregression(rng, 1000), _autoregression(rng, 1000) + 2.0
    assert kp.mmd_test(*two, KERNEL, 10, permutations=99, groups=runs) <= 0.05


def test_pvalues_of_patients_are_uniform(rng):
    p = []
    for trial in range(400):
        (X, own), (Y, others) = _patients(rng, 9), _patients(rng, 14)
        groups = np.r_[own, 100 + others]
        p.append(kp.mmd_test(X, Y, KERNEL, 10, trial, permutations=19, groups=groups))
    counts = np.bincount(np.round(20 * np.array(p)).astype(int), minlength=21)[1:]
    assert stats.chisquare(counts).pvalue > 1e-4


def test_pvalues_of_groups_are_those_of_all_divisions_of_groups(rng):
    groups = np.repeat(list("qaczbdyx"), [3, 1, 4, 2, 5, 1, 2, 6])
    n = 8  # q, a and c
    for shift, kernel in ((0.0, kp.gaussian(1.5)), (1.5, kp.gaussian(1.5)), (0.3, kp.linear())):
        X = rng.standard_normal((24, 2))
        X[:n] += shift
        K = kp.gram(X, X, kernel)
        expected = naive.mmd_pvalue(K, n, groups)
        mixed = np.r_[rng.permutation(n), n + rng.permutation(16)]
        for rows in (np.arange(24), mixed):
            for labels in (groups[rows], [*groups[rows]]):
                first, second = X[rows[:n]], X[rows[n:]]
                found = kp.mmd_test(first, second, kernel, permutations=55, groups=labels)
                assert found == expected
        alone = kp.mmd_test(X[:n], X[n:], kernel, 24, 3, groups=np.arange(24))
        assert alone == kp.mmd_test(X[:n], X[n:], kernel, 24, 3)
    equal = np.ones((24, 2))
    assert kp.mmd_test(equal[:n], equal[n:], KERNEL, groups=groups) == 1.0


def test_each_division_was_a_sum_of_its_own(rng, monkeypatch):
    X = rng.standard_normal((120, 2))
    found = kp.mmd_test(X[:50], X[50:], KERNEL, 20, permutations=99)
    seen = []
    product = kp._transposed_product

    def counted(U, V):
        seen.append(V.shape)
        return product(U, V)

    monkeypatch.setattr(kp, "_transposed_product", counted)
    assert kp.mmd_test(X[:50], X[50:], KERNEL, 20, permutations=99) == found
    assert seen.count((120, 32)) == 3 and seen.count((120, 4)) == 1


def test_wrong_groups_are_refused(rng):
    X = rng.standard_normal((10, 2))
    labels = np.repeat(["a", "b", "c", "d", "e"], 2)
    model = np.arange(3)
    wrong = (
        labels[:9],
        labels[:, None],
        np.r_[np.nan, np.arange(9.0)],
        [None, *labels[1:]],
        [1, *labels[1:]][:9] + [[1, 2]],
        np.ma.masked_array(np.arange(10), np.arange(10) == 3),
        "a",
        3,
    )
    calls = {
        "choose": lambda groups: kp.choose(X, X[:, 0], model, KERNEL, groups=groups),
        "mmd_test": lambda groups: kp.mmd_test(X[:4], X[4:], KERNEL, groups=groups),
    }
    pytest.importorskip("sklearn")
    calls["NoveltyDetector"] = lambda groups: kp.NoveltyDetector(3).fit(X, groups=groups)
    for name, call in calls.items():
        for groups in wrong:
            with pytest.raises(ValueError, match=f"^{name}: groups must be a 1-D array of 10 labe"):
                call(groups)
    with pytest.raises(ValueError, match="^mmd_test: groups must not contain points of both X an"):
        kp.mmd_test(X[:5], X[5:], KERNEL, groups=labels)
    weights = np.r_[np.ones(2), np.zeros(8)]
    for call in (
        lambda: kp.choose(X, X[:, 0], model, KERNEL, groups=np.ones(10)),
        lambda: kp.choose(X, X[:, 0], model, KERNEL, groups=labels, weights=weights),
        lambda: kp.NoveltyDetector(3).fit(X, groups=["a"] * 10),
    ):
        with pytest.raises(ValueError, match="groups must have at least two groups.*, got one"):
            call()
