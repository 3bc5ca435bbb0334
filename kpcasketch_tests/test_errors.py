# SPDX-License-Identifier: BSD-3-Clause
"""Error measures of matrices against dense linear algebra."""

import math
import re

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.stats

import kpcasketch as kp
from kpcasketch_tests import inner, naive
from kpcasketch_tests.tables import KERNEL, K, X, bits


def test_spectral_and_frobenius_error_are_the_dense_norms():
    E = kp.dense(bits()) - K
    assert kp.spectral_error(bits(), K, 0) == pytest.approx(np.linalg.norm(E, 2), rel=1e-2)
    assert kp.spectral_error(bits(), K, 0, tol=1e-6) == pytest.approx(
        np.linalg.norm(E, 2), rel=1e-8
    )
    assert kp.frobenius_error(bits(), K) == pytest.approx(np.linalg.norm(E), rel=1e-12)
    assert kp.frobenius_error(kp.Implicit(X, KERNEL), K) < 1e-12


def test_the_error_of_a_matrix_against_itself_is_zero():
    assert kp.spectral_error(K, K, 0) == 0.0 and kp.frobenius_error(K, K) == 0.0


def start(n, probes):
    """The orthonormal vectors that the seed 0 draws."""
    return kp._start_block(n, probes, kp._key(0, kp._PROBES))


def test_columns_that_depend_on_others_or_are_small_do_not_change_their_span(rng):
    U = rng.standard_normal((600, 3))
    twice = np.column_stack([U, U[:, :2] @ [1.0, -2.0], np.zeros(600), 1e-30 * U[:, 0]])
    small = U * [1.0, 1e-40, 1e80]
    for W in (twice, small):
        assert kp.projection_cost(K, W) == pytest.approx(kp.projection_cost(K, U), rel=1e-12)


def test_effective_dimension_is_exact_for_small_and_close_for_large_matrices():
    assert kp.effective_dimension(K[:100, :100], 0.3, 0) == pytest.approx(
        naive.effective_dimension(K[:100, :100], 0.3), rel=1e-10
    )
    for lam in (0.1, 1.0, 30.0):
        assert kp.effective_dimension(K, lam, 0) == pytest.approx(
            naive.effective_dimension(K, lam), rel=0.08
        )
    # Rank one: the invariant subspace ends the steps early, and 700 times the mean of (w . u)^2 is left.
    expected = (start(700, 4).sum(0) ** 2).mean() * 700 / 707
    assert kp.effective_dimension(
        kp.LowRank(np.ones((700, 1))), 7.0, 0, probes=4, max_iterations=5
    ) == pytest.approx(expected, rel=1e-9)
    assert kp.effective_dimension(np.eye(700), 2.0, 0, probes=1, max_iterations=5) == pytest.approx(
        700 / 3, rel=1e-12
    )


def decaying(n, probes):
    """A diagonal operator, and the estimate of its effective dimension at the ridge 1e-9 without an error of steps."""
    values = np.exp(-np.arange(n) / 8)
    A = scipy.sparse.csr_array((values, np.arange(n), np.arange(n + 1)), (n, n))
    return A, (values / (values + 1e-9)) @ (start(n, probes) ** 2).sum(1) * n / probes


def test_effective_dimension_at_a_small_ridge_was_the_number_of_rows():
    # 64 steps from each probe see 64 of 166 eigenvalues above the ridge
    for probes, steps in ((32, 64), (1, 400)):
        A, expected = decaying(2000, probes)
        found = kp.effective_dimension(A, 1e-9, 0, probes=probes, max_iterations=steps)
        assert found == pytest.approx(expected, rel=1e-3)
    A, exact = decaying(600, 600)  # 18 blocks of 8 do not suffice, and more exceed n / 4 columns
    assert exact == pytest.approx((A.data / (A.data + 1e-9)).sum(), rel=1e-12)
    assert kp.effective_dimension(A, 1e-9, 0, probes=8) == pytest.approx(exact, rel=1e-9)
    with pytest.raises(
        ValueError,
        match="^effective_dimension: max_iterations must be larger: after 64 iterations the result is",
    ):
        kp.effective_dimension(decaying(2000, 1)[0], 1e-9, 0, probes=1)


def test_bounds_of_an_effective_dimension_ended_the_search_of_an_indefinite_matrix():
    # they bound nothing there, and 2.69 came for 1.77: negative eigenvalues count as 0
    values = 10.0 ** -np.linspace(0.0, 12.0, 1000) * np.tile([1.0, -1.0], 500)
    kept = values.clip(0.0)
    assert kp.effective_dimension(np.diag(values), 10.0) == pytest.approx(
        (kept / (kept + 10.0)).sum(), rel=0.01
    )
    with pytest.raises(ValueError, match="^effective_dimension: lam must be at least A's rounding"):
        kp.effective_dimension(np.diag(kept), 1e-300)


@pytest.mark.parametrize("n", [200, 900])  # exact, and by Lanczos
def test_an_effective_dimension_below_the_rounding_of_the_matrix_was_noise(n):
    # float32 of 900 points at lam = 1e-6: 215 for 118
    P = np.random.default_rng(0).standard_normal((n, 2))
    single = kp.gram(P.astype(np.float32), P.astype(np.float32), kp.gaussian(1.0))
    values = np.linalg.eigvalsh(naive.gaussian(P, P, 1.0)).clip(0.0)
    rounding = 2.0**-23 * values[-1]
    for A in (single, kp.Implicit(P.astype(np.float32), kp.gaussian(1.0))):
        with pytest.raises(
            ValueError, match="lam must be at least A's rounding error, [1-9.]*e-0[56];"
        ):
            kp.effective_dimension(A, 0.5 * rounding)
        for lam in (1.1 * rounding, 16.0 * rounding):
            assert kp.effective_dimension(A, lam, probes=n) == pytest.approx(
                (values / (values + lam)).sum(), rel=0.08
            )
    assert kp.effective_dimension(np.zeros((n, n)), 1e-300) == 0.0


def test_bounds_of_an_effective_dimension_hold_after_few_steps_and_after_many():
    A, expected = decaying(2000, 4)
    found = []
    for steps in (1, 10, 20, 30, 36, 38, 40):
        with pytest.raises(ValueError, match="max_iterations must be larger") as refusal:
            kp.effective_dimension(A, 1e-9, 0, probes=4, max_iterations=steps)
        words = re.findall(r"is (\S+), or up to (\S+) less", str(refusal.value))[0]
        found.append([float(word) for word in words])
    assert all(high - gap <= 1.01 * expected <= 1.02 * high for high, gap in found)
    assert found[0][0] > 9 * expected and found[-1][0] - found[-1][1] > 0.9 * expected


def test_effective_dimension_errors_fall_with_more_probes():
    exact = naive.effective_dimension(K, 1.0)
    few = [
        kp.effective_dimension(K, 1.0, seed, probes=2, max_iterations=40) - exact
        for seed in range(12)
    ]
    many = [
        kp.effective_dimension(K, 1.0, seed, probes=32, max_iterations=40) - exact
        for seed in range(12)
    ]
    assert np.std(many) < 0.6 * np.std(few)


def test_projection_cost_is_what_the_projection_loses(rng):
    V = rng.standard_normal((600, 3))
    assert kp.projection_cost(K, V) == pytest.approx(naive.projection_cost(K, V), rel=1e-12)
    assert kp.projection_cost(kp.Implicit(X, KERNEL), V) == pytest.approx(
        naive.projection_cost(K, V), rel=1e-12
    )
    vectors = naive.eigenpairs(K, 3)[1]
    assert kp.projection_cost(K, vectors) == pytest.approx(
        np.linalg.eigvalsh(K)[:-3].sum(), rel=1e-10
    )


def test_nuclear_error_is_the_sum_of_all_eigenvalues_in_size(rng):
    F = kp.nystrom(X, np.arange(0, 600, 20), KERNEL)
    exact = naive.nuclear_norm(K - F @ F.T)
    assert kp.nuclear_error(kp.Implicit(X, KERNEL), kp.LowRank(F)) == pytest.approx(exact, rel=1e-9)
    assert kp.gram_diagonal(X, KERNEL).sum() - (F**2).sum() == pytest.approx(exact, rel=1e-9)
    assert kp.nuclear_error(bits(), K) == pytest.approx(
        naive.nuclear_norm(kp.dense(bits()) - K), rel=1e-9
    )
    u = rng.standard_normal(600)
    for sign in (1.0, -1.0):  # of rank one: it was negative
        assert kp.nuclear_error(sign * np.outer(u, u), np.zeros((600, 600))) == pytest.approx(
            u @ u, rel=1e-9
        )


@pytest.mark.parametrize(
    "make",
    [bits, lambda: kp.sample_gram(X, KERNEL, 3.0, 0), lambda: kp.center(K)],
    ids=["Bits", "sparse", "Centered"],
)
def test_projections_know_the_trace_of_every_operator(make, rng):
    operator = make()
    V = rng.standard_normal((600, 2))
    assert kp.projection_cost(operator, V) == pytest.approx(
        naive.projection_cost(kp.dense(operator), V), rel=1e-9, abs=1e-8
    )


def test_reliable_components_are_right_to_their_angles():
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    spectrum = np.concatenate([[50.0, 30.0, 29.5, 12.0], 5.0 * rng.random(56)])
    K, seen = Q * spectrum @ Q.T, 0
    for trial in range(200):
        E = rng.standard_normal((60, 60)) * 10.0 ** rng.uniform(-3, 0)
        A = K + (E + E.T) / 2
        values, vectors = np.linalg.eigh(A)
        values, vectors = values[::-1].copy(), vectors[:, ::-1]
        found = kp.reliable_components(values[:6], np.linalg.norm(A - K, 2))
        assert found.count == max(
            [j + 1 for j in range(5) if found.angles[j] < np.pi / 2], default=0
        )
        assert found.angles[5] == np.pi / 2
        for j in range(5):
            exact = Q[:, np.argsort(-spectrum)[: j + 1]]
            angle = scipy.linalg.subspace_angles(exact, np.ascontiguousarray(vectors[:, : j + 1]))[
                0
            ]
            assert angle <= found.angles[j] + 1e-7
            seen += found.angles[j] < np.pi / 4
    assert seen > 300


def test_the_angle_of_reliable_components_is_sharp():
    """Two dimensions, a rotation by phi of diag(1, -1): |E| = 2 sin(phi), the gap is 2; sin 2 theta = |E| up to second
    order."""
    for phi in (1e-3, 1e-2, 0.1):
        R = np.array([[np.cos(phi), -np.sin(phi)], [np.sin(phi), np.cos(phi)]])
        K = np.diag([1.0, -1.0])
        error = np.linalg.norm(R @ K @ R.T - K, 2)
        assert (
            phi <= kp.reliable_components(np.array([1.0, -1.0]), error).angles[0] < 1.05 * phi + phi
        )


def test_values_that_rise_are_refused():
    with pytest.raises(ValueError, match="reliable_components: values must not increase"):
        kp.reliable_components(np.array([1.0, 2.0]), 0.1)
    assert kp.reliable_components(np.array([2.0]), 0.1).count == 0
    assert kp.reliable_components(np.array([2.0, 1.0, 1.0]), 0.0).angles.tolist() == [
        0.0,
        np.pi / 2,
        np.pi / 2,
    ]


def hostile(rng, n):
    """A symmetric matrix whose largest eigenvalue is hard to be sure of, and its norm."""
    kind = rng.integers(6)
    flat = rng.uniform(-1, 1, n)
    values = [
        flat,
        np.append(flat[1:] * 0.97, 1.0),
        np.append(1e-3 * flat[1:], -1.0),
        np.repeat([1.0, 0.999], [1, n - 1]),
        np.append(flat[2:] * 0.9, [1.0, -0.9999]),
        10.0 ** rng.uniform(-12, 0, n),
    ][kind] * 10.0 ** rng.uniform(-5, 5)
    # the vector is a coordinate: what averages over all does not see it
    if rng.random() < 0.3:
        return np.diag(values[rng.permutation(n)]), np.abs(values).max()
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (Q * values) @ Q.T
    return 0.5 * (A + A.T), np.abs(values).max()


def test_norms_are_certified_on_hostile_spectra(rng, pytestconfig):
    loose = 0
    for seed in range(6 * pytestconfig.getoption("--attacks")):  # in both precisions
        n = int(rng.choice([257, 300, 500]))
        A, norm = hostile(rng, n)
        tol, most = float(rng.choice([0.01, 0.1, 1e-3])), int(rng.choice([1, 3, 1000]))
        for dtype in (np.float64, np.float32):
            found, certified = kp._norm(A.astype(dtype), kp._key(seed, kp._NORMS), tol, most)
            rounding = 16 * np.finfo(dtype).eps * np.linalg.norm(A)
            assert found <= norm * (1 + 1e-12) + rounding and certified >= norm - rounding
            loose += certified > (1 + tol) * found + rounding
            assert most < 1000 or certified < 1.5 * norm + 2 * rounding
    assert loose > 0  # the control: stopped early, bounds are wide and still bounds


def test_small_matrices_need_no_probes_however_many_are_asked_for():
    # their signs were drawn, and not used: 1.7 GB for 300 rows
    assert kp.effective_dimension(np.eye(300), 1.0, probes=10**10) == pytest.approx(150)


def test_a_test_at_one_level_missed_what_is_larger():
    H = np.array([[0.0, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1]])
    values, Y = np.linalg.eigh(H)
    R = 1e-12 * np.random.default_rng(0).standard_normal((400, 2))
    assert inner(kp._nothing_missed)(values, Y, R, 2.5)
    assert not inner(kp._nothing_missed)(values, Y, 1e12 * R, 2.5)


def test_errors_and_eigenpairs_of_one_seed_shared_their_start(rng):
    # what one missed, the other missed: here an eigenvector off the start block that they had in common
    n, key = 400, np.uint64(kp._key(np.uint64(3), kp._START))
    W = inner(kp._orthonormalize)(
        inner(kp._gaussian_matrix)(n, 16, np.uint64(kp._subkey(key, 0))), key
    )
    v = rng.standard_normal(n)
    for _ in range(3):
        v -= W @ (W.T @ v)
        v /= np.linalg.norm(v)
    P, A = np.eye(n) - np.outer(v, v), rng.standard_normal((n, n)) / math.sqrt(n)
    A = P @ (A + A.T) @ P + 5.0 * np.outer(v, v)
    A = 0.5 * (A + A.T)
    assert kp.spectral_norm(A, 3) == pytest.approx(5.0, rel=1e-2)
    assert kp.spectral_error(A, np.zeros((n, n)), 3) == pytest.approx(5.0, rel=1e-2)


def test_reliable_components_of_an_error_from_below():
    # the estimate is up to tol too small: times 1 + tol it is a bound, and so are the angles
    eigen, sketch = kp.block_lanczos(K, 7, 0, tol=1e-12), kp.block_lanczos(bits(), 7, 0, tol=1e-12)
    exact, tol = np.linalg.norm(kp.dense(bits()) - K, 2), 0.1
    error = (1 + tol) * kp.spectral_error(bits(), K, 0, tol=tol)
    assert exact <= error <= (1 + tol) * exact * (1 + 1e-9)
    found = kp.reliable_components(sketch.values, error)
    for j in range(1, found.count + 1):
        if found.angles[j - 1] < np.pi / 2:
            angles = scipy.linalg.subspace_angles(
                eigen.vectors[:, :j].copy(), sketch.vectors[:, :j].copy()
            )
            assert angles.max() <= found.angles[j - 1] + 1e-9
    assert found.count >= 1
