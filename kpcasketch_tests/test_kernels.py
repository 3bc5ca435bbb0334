# SPDX-License-Identifier: BSD-3-Clause
"""Kernels and Gram matrices against naive.py, and where distances are numerically nasty."""

import math
import pathlib
import pickle
import subprocess
import sys
import threading
import tracemalloc

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import KERNELS, SCALE_FREE
from kpcasketch_tests.test_compilation import run

FILE = pathlib.Path(kp.__file__)


def made(name, sigma=1.7):
    row = KERNELS[name]
    return row.make(sigma), lambda X, Y: row.naive(X, Y, sigma)


def test_a_kernel_that_was_loaded_could_not_be_compared():
    # "truth value of an array", and nothing was found in a list; no kernel could be a key
    kernels = [
        kp.gaussian(1.0),
        kp.gaussian(2.0),
        kp.laplacian(1.0),
        kp.scaled(kp.gaussian(1.0), 2.0),
        kp.precomputed(np.eye(3)),
        kp.precomputed(2 * np.eye(3)),
        kp.precomputed(np.eye(4)),
    ]
    copies = [pickle.loads(pickle.dumps(kernel)) for kernel in kernels]
    for i, kernel in enumerate(kernels):
        assert [kernel == other for other in copies] == [i == j for j in range(7)]
        assert [kernel != other for other in copies] == [i != j for j in range(7)]
        assert hash(kernel) == hash(copies[i]) and copies.index(kernel) == i
    assert (
        len({*kernels, *copies}) == 7 and kernels[0] != tuple(kernels[0]) and not kernels[0] == 1.0
    )


def points(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.bounds
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype, rounding", [(np.float64, 2.3e-16), (np.float32, 1.2e-7)])
def test_gram_is_the_naive_one(name, dtype, rounding):
    kernel, reference = made(name)
    for n, m, d in ((1, 1, 1), (2, 3, 1), (127, 5, 2), (128, 129, 3), (130, 200, 20), (5, 300, 40)):
        X, Y = points(n, d).astype(dtype), points(m, d, 1).astype(dtype)
        K = kp.gram(X, Y, kernel)
        assert K.dtype == dtype
        # the direct sum of d squares and the exponential round about 2 d + 30 times at worst
        assert (
            np.abs(K - reference(X, Y)).max()
            <= (2 * d + 30) * rounding * np.abs(reference(X, Y)).max()
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", KERNELS)
def test_columns_of_a_part_of_a_tile_have_the_bits_of_a_whole_tile(name, dtype):
    X = np.random.default_rng(0).standard_normal((200, 3)).astype(dtype)
    kernel = KERNELS[name].make(1.3)
    whole = kp.gram(X, X[:128], kernel)
    for m in (1, 20, 64, 100):
        assert np.array_equal(kp.gram(X, X[:m], kernel), whole[:, :m])


@pytest.mark.parametrize("name", KERNELS)
def test_gram_of_points_with_themselves_is_symmetric_with_the_diagonal_of_gram_diagonal(name):
    kernel, reference = made(name)
    for d in (3, 30):
        X = points(261, d)
        K = kp.gram(X, X, kernel)
        assert np.array_equal(K, K.T)
        assert np.abs(K - kp.gram(X, X.copy(), kernel)).max() <= 1e-13 * np.abs(K).max()
        assert np.allclose(np.diag(K), kp.gram_diagonal(X, kernel), rtol=1e-14)
        assert np.allclose(kp.gram_diagonal(X, kernel), np.diag(reference(X, X)), rtol=1e-13)


def test_mixed_precision_is_computed_in_float64():
    X, Y = points(9, 3), points(7, 3, 1).astype(np.float32)
    K = kp.gram(X, Y, kp.gaussian(1.0))
    assert K.dtype == np.float64 and np.allclose(K, naive.gaussian(X, Y, 1.0), rtol=1e-13)


@pytest.mark.parametrize("dtype, rounding", [(np.float64, 2.3e-16), (np.float32, 1.2e-7)])
def test_distances_do_not_cancel_far_from_the_origin(dtype, rounding):
    # norms 1e5 times the distances: |x|^2 + |y|^2 - 2 x.y would lose ten digits
    X = (points(150, 20) + 1e5).astype(dtype)
    K = kp.gram(X, X, kp.gaussian(3.0))
    assert np.abs(K - naive.gaussian(X, X, 3.0)).max() <= 100 * rounding


@pytest.mark.parametrize("dtype, rounding", [(np.float64, 2.3e-16), (np.float32, 1.2e-7)])
@pytest.mark.parametrize("offset", [0.0, 0.3, 0.6, 1.0, 3.0, 1e3])
def test_distances_are_as_accurate_near_the_origin_as_far_from_it(offset, dtype, rounding):
    # points whose mean is near the origin are not centered
    X = (points(300, 64) + offset).astype(dtype)
    for Y in (X, X[:20].copy(), X[::-1].copy()):
        K = kp.gram(X, Y, kp.gaussian(12.0))
        assert np.abs(K - naive.gaussian(X, Y, 12.0)).max() <= 20 * rounding


def test_points_around_the_origin_are_not_copied_for_a_gram_matrix():
    X = points(4000, 256)
    kernel = kp.gaussian(24.0)
    Y = X[:20].copy()
    kp.gram(X, Y, kernel)
    tracemalloc.start()
    try:
        kp.gram(X, Y, kernel)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * X.nbytes


@pytest.mark.parametrize("dtype, rounding", [(np.float64, 2.3e-16), (np.float32, 1.2e-7)])
def test_two_far_clusters_of_near_duplicates_keep_their_distances(dtype, rounding):
    X = points(200, 20)
    X[100:] = X[:100] + 1e-3
    X[50:150] += 1e4
    X = X.astype(dtype)
    for kernel, reference in (
        (kp.gaussian(1.0), lambda: naive.gaussian(X, X, 1.0)),
        (kp.laplacian(1.0), lambda: naive.laplacian(X, X, 1.0)),
    ):
        assert np.abs(kp.gram(X, X, kernel) - reference()).max() <= 100 * rounding


def test_copies_of_a_point_have_kernel_value_one_for_kernels_with_a_kink():
    X = np.repeat(points(1, 33) * 1e3, 5, axis=0)
    for kernel in (kp.laplacian(1e-3), kp.matern(1.5, 1e-3), kp.gaussian(1e-3)):
        assert (kp.gram(X, X.copy(), kernel) == 1.0).all()


def test_extreme_bandwidths_are_refused_in_float32_which_cannot_hold_gamma():
    X = points(20, 3).astype(np.float32)
    for sigma in (1e-150, 1e-30, 1e30, 1e150):
        with pytest.raises(ValueError, match="gamma from 1e-30 to 1e30 .* float32 points"):
            kp.gram(X, X, kp.gaussian(sigma))
        assert np.isfinite(kp.gram(X.astype(float), X.astype(float), kp.gaussian(sigma))).all()


def test_large_powers_and_far_points_give_no_nan_and_keep_their_digits():
    X = (points(20, 3) * 1e10).astype(np.float32)
    for kernel in (kp.matern(1.5, 1e-20), kp.matern(2.5, 1e-20), kp.gaussian(1e-14)):
        assert np.array_equal(kp.gram(X, X, kernel), np.eye(20, dtype=np.float32))
    Y = points(50, 3).astype(np.float32)
    got = kp.gram(Y, Y, kp.rational_quadratic(1e5, 1.0))
    assert np.abs(got - naive.rational_quadratic(Y, Y, 1e5, 1.0)).max() < 1e-5


def test_zero_vectors_and_constant_data_give_finite_values():
    Z = np.zeros((5, 2))
    for name in KERNELS:
        assert np.isfinite(kp.gram(Z, Z, made(name)[0])).all()


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 140),
    st.integers(1, 140),
    st.integers(1, 20),
    st.integers(1, 18),
    st.integers(0, 99),
)
def test_gram_matmat_is_gram_times_vectors(n, m, d, p, seed):
    X, Y, V = points(n, d, seed), points(m, d, seed + 1), points(m, p, seed + 2)
    kernel = kp.gaussian(2.0)
    K = kp.gram(X, Y, kernel)
    assert (
        np.abs(kp.gram_matmat(X, Y, V, kernel) - K @ V).max()
        <= 1e-14 * (1 + np.abs(K) @ np.abs(V)).max()
    )


@pytest.mark.bounds
@pytest.mark.parametrize("p", [1, 4, 5, 16, 33])
def test_symmetric_product_is_gram_times_vectors(p):
    X, V = points(700, 4), points(700, p, 1)
    K = naive.gaussian(X, X, 2.0)
    assert np.abs(kp.gram_matmat(X, X, V, kp.gaussian(2.0)) - K @ V).max() < 1e-12
    single = kp.gram_matmat(X.astype(np.float32), X.astype(np.float32), V, kp.gaussian(2.0))
    assert single.dtype == np.float32 and np.abs(single - K @ V).max() < 1e-5 * np.abs(K @ V).max()


def test_permuting_points_permutes_the_gram_matrix():
    X = points(300, 20)
    order = np.random.default_rng(1).permutation(300)
    K = kp.gram(X, X, kp.gaussian(3.0))
    assert np.abs(kp.gram(X[order], X[order], kp.gaussian(3.0)) - K[order][:, order]).max() < 1e-14


def test_gram_and_its_product_have_the_same_bits_for_any_number_of_threads(same_bits):
    X, V = points(700, 20), points(700, 3, 1)
    same_bits(kp.gram, X, X, kp.gaussian(2.0))
    same_bits(kp.gram_matmat, X, X, V, kp.gaussian(2.0))
    same_bits(kp.gram_matmat, X[:50], X, V, kp.gaussian(2.0))


@numba.njit
def intersection(x, y):
    total = 0.0
    for t in range(x.shape[0]):
        total += min(x[t], y[t])
    return total


def test_a_custom_kernel_equals_its_formula_in_both_precisions():
    X = np.abs(points(150, 6))
    kernel = kp.custom(intersection)
    expected = np.minimum(X[:, None], X[None]).sum(-1)
    assert np.abs(kp.gram(X, X, kernel) - expected).max() < 1e-13
    assert (
        np.abs(kp.gram(X.astype(np.float32), X.astype(np.float32), kernel) - expected).max() < 1e-5
    )
    assert (
        np.abs(kp.gram_matmat(X, X, np.ones((150, 1)), kernel)[:, 0] - expected.sum(1)).max()
        < 1e-11
    )
    assert np.allclose(kp.gram_diagonal(X, kp.scaled(kernel, 2.0)), 2 * X.sum(1))


def test_a_pickled_custom_kernel_is_compiled_where_it_is_unpickled():
    # an address is another in each process
    X, kernel = np.abs(points(20, 3)), kp.scaled(kp.custom(intersection), 2.0)
    code = (
        "import pickle, sys, numpy as np, kpcasketch as kp\n"
        "X, kernel = pickle.load(sys.stdin.buffer)\n"
        "sys.stdout.buffer.write(kp.gram(X, X, kernel).tobytes())"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((X, kernel)),
        capture_output=True,
        check=True,
        cwd=pathlib.Path(kp.__file__).parent,
    )
    assert run.stdout == kp.gram(X, X, kernel).tobytes()
    assert pickle.loads(pickle.dumps(kernel))[:6] == kernel[:6]
    again = pickle.loads(pickle.dumps(kp.gaussian(2.0)))
    assert again[:6] == kp.gaussian(2.0)[:6]


def test_a_precomputed_kernel_gives_back_its_matrix_and_parts_of_it():
    K = kp.gram(points(40, 2), points(40, 2), kp.gaussian(1.0))
    rows, some = np.arange(40)[:, None], np.array([[3], [3], [0]])
    assert np.array_equal(kp.gram(rows, rows, kp.precomputed(K)), K)
    assert np.array_equal(kp.gram(some, rows, kp.precomputed(K)), K[some[:, 0]])


def test_median_bandwidth_is_the_median_distance_and_never_zero():
    X = points(40, 3)
    assert kp.median_bandwidth(X, 0) == pytest.approx(naive.median_distance(X), rel=1e-14)
    assert kp.median_bandwidth(np.ones((9, 2)), 0) == 1.0
    assert kp.median_bandwidth(np.ones((1, 2)), 0) == 1.0
    almost_constant = np.zeros((30, 1))
    almost_constant[0] = 5.0
    assert kp.median_bandwidth(almost_constant, 0) == 5.0
    large = points(3000, 3)
    assert kp.median_bandwidth(large, 1) == pytest.approx(kp.median_bandwidth(large, 2), rel=0.05)
    assert kp.median_bandwidth(large, 1) != kp.median_bandwidth(large, 2)


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize(
    "dtype, rounding, exponents",
    [
        (np.float64, 2.3e-16, (-139, -30, -7, 7, 30, 139)),
        (np.float32, 1.2e-7, (-14, -12, -6, 6, 12, 14)),
    ],
)
def test_parameters_clamped_to_float32_made_tiny_points_all_alike(name, dtype, rounding, exponents):
    row = SCALE_FREE[name]
    for d in (3, 20):
        plain = points(40, d).astype(dtype)
        for exponent in exponents:
            unit = 2.0 ** round(exponent * 3.3219)  # a power of two: the points stay what they are
            expected = row.naive(plain, plain, 1.7)
            K = kp.gram(
                (plain * dtype(unit)).astype(dtype),
                (plain * dtype(unit)).astype(dtype),
                row.make(1.7 * unit),
            )
            assert np.abs(K - expected).max() <= (4 * d + 60) * rounding * np.abs(expected).max()


def test_a_huge_factor_times_a_kernel_value_of_zero_was_nan():
    for dtype, factors in ((np.float32, (1e22, 1e36)), (np.float64, (1e22, 1e300))):
        X = np.array([[0.0], [1.0], [1e9]], dtype)
        for kappa in factors:
            for kernel in (kp.matern(2.5, 1.0), kp.matern(1.5, 1.0), kp.gaussian(1.0)):
                K = kp.gram(X, X, kp.scaled(kernel, kappa))
                assert (
                    np.allclose(K / dtype(kappa), kp.gram(X, X, kernel), rtol=1e-6)
                    and (K[2, :2] == 0).all()
                )


@pytest.mark.parametrize("alpha, sigma", [(1e-3, 1e-140), (1e-3, 1e-15), (0.02, 1e-30)])
def test_a_rational_quadratic_was_0_where_the_square_of_a_ratio_overflows(alpha, sigma):
    # .48 at a distance of 2e149 and alpha = .001; .92 at 2e16 in float32
    kernel = kp.rational_quadratic(alpha, sigma)
    for dtype, far, near in ((np.float64, 2e149, 1e-13), (np.float64, 3, 1e-13)):
        exact = math.exp(
            -alpha * np.logaddexp(0, 2 * math.log(far) - 2 * math.log(sigma) - math.log(2 * alpha))
        )
        X = np.array([[-0.5 * far], [0.5 * far]], dtype)
        assert np.abs(kp.gram(X, X, kernel) - [[1, exact], [exact, 1]]).max() < near
        with np.errstate(over="ignore", invalid="ignore"):  # where it runs as Python
            assert abs(kp.kernel_value(kernel, *X.astype(np.float64)) - exact) < 1e-13
        assert kp.shadow_bounds(kernel, far).mmd == pytest.approx(
            math.sqrt(2 - 2 * exact), abs=1e-7
        )


def test_the_median_of_tiny_distances_was_one():
    # squares of gaps of 1e-170 are 0
    assert kp.median_bandwidth(points(50, 2) * 1e-170, 0) == pytest.approx(
        1e-170 * kp.median_bandwidth(points(50, 2), 0), rel=1e-12
    )


def test_a_gaussian_by_gamma_is_that_by_sigma():
    X = np.random.default_rng(5).standard_normal((30, 3))
    assert np.allclose(
        kp.gram(X, X, kp.gaussian(gamma=0.3)), naive.gaussian(X, X, (2 * 0.3) ** -0.5), rtol=1e-13
    )
    assert kp.gaussian(gamma=0.125)[:-1] == kp.gaussian(2.0)[:-1] == kp.gaussian(sigma=2)[:-1]
    for both in ({}, {"sigma": 1.0, "gamma": 1.0}):
        with pytest.raises(ValueError, match="gaussian: either sigma or gamma must be given"):
            kp.gaussian(**both)
    for gamma in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="gaussian: gamma must be (from 1e-301|finite)"):
            kp.gaussian(gamma=gamma)


def test_results_print_shapes_and_kernels_their_name():
    # an Expansion printed pages of numbers
    X = np.random.default_rng(6).standard_normal((50, 3))
    model = kp.kpca(X, kp.gaussian(6.0), 2, centered=False)
    assert "points=(50, 3) float64, coef=(50, 2) float64" in repr(model) and len(repr(model)) < 400
    assert repr(kp.gaussian(6.0)) == "Kernel(gaussian, sigma=6, gamma=0.0138889)"
    assert repr(kp.scaled(kp.polynomial(2, 0.5, 1.0), 3.0)).endswith(
        "scale=3, gamma=0.5, shape=2, offset=1)"
    )
    assert repr(kp.precomputed(np.eye(4))) == "Kernel(precomputed, table (4, 4))"


def test_vectors_that_are_not_contiguous_could_not_be_compared():
    Z = np.arange(12.0).reshape(4, 3)
    for kernel in (kp.gaussian(3.0), kp.polynomial(2, 1.0, 1.0), kp.laplacian(2.0, norm=1)):
        matrix = kp.gram(Z[:, :1].T, Z[:, 1:2].T, kernel)
        assert kp.kernel_value(kernel, Z[:, 0], Z[:, 1]) == pytest.approx(matrix[0, 0])


@pytest.mark.parametrize("count", [1, 2])
def test_powers_of_a_kernel_scaled_down_overflowed_on_the_diagonal_or_in_one_twin(count, threads):
    kernel, y = kp.scaled(kp.polynomial(64, 1.0, 0.0), 1e-300), np.array([[3000.0]])
    exact = 10.0 ** (128 * np.log10(3000.0) - 300)
    for value in (
        threads(count, kp.gram, y, y, kernel),
        kp.gram_diagonal(y, kernel),
        kp.kernel_value(kernel, y[0], y[0]),
    ):
        assert value == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("kernel", [made(name)[0] for name in KERNELS], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_both_twins_give_the_same_bits_for_every_kernel(kernel, dtype, same_bits, rng):
    X, V = rng.standard_normal((300, 20)).astype(dtype), rng.standard_normal((300, 5)).astype(dtype)
    same_bits(kp.gram, X, X, kernel)
    same_bits(kp.gram_matmat, X, X, V, kernel)
    same_bits(kp.kpca, X, kernel, 3)


def test_an_asymmetric_custom_kernel_had_other_eigenvalues_by_kpca_than_by_products():
    kernel = kp.custom(numba.njit(lambda x, y: x[0] - y[0]))
    X = points(30, 2)
    for call in (
        lambda: kp.kpca(X, kernel, 2, centered=False),
        lambda: kp.gram(X, X, kernel),
        lambda: kp.matmat(kp.Implicit(X, kernel), X),
        lambda: kp.nystrom(X, np.arange(9), kernel),
    ):
        with pytest.raises(ValueError, match="kernel must be symmetric"):
            call()
    nothing = kp.custom(numba.njit(lambda x, y: 0.0 * x[0] * y[0]))
    assert not kp.gram(X, X, nothing).any() and kp.gram(X[:1], X[:1], nothing).shape == (1, 1)


def test_a_custom_kernel_with_threads_of_its_own_ended_the_process():
    with pytest.raises(ValueError, match="^custom: f must be .* without parallel=True"):
        kp.custom(numba.njit(lambda x, y: np.sum(x * y), parallel=True))


def test_two_threads_made_kernels_of_one_function_that_were_refused():
    f, made = numba.njit(lambda x, y: x[0] * y[0]), []
    barrier = threading.Barrier(2)
    threads = [
        threading.Thread(target=lambda: (barrier.wait(), made.append(kp.custom(f))))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [kp.gram(np.eye(2), np.eye(2), kernel)[0, 0] for kernel in made] == [1.0, 1.0]


# What a new kernel takes

NEW_KERNEL = [  # the edits that a kernel takes, exp(-2 gamma r^2): its record, its maker and its formula
    (
        "_GAUSSIAN = _add_kind(\n",
        '_TWIN = _add_kind("twin", _DISTANCES, unit=0.5)\n_GAUSSIAN = _add_kind(\n',
    ),
    (
        "@_public\ndef linear(",
        "def twin(sigma):\n    return Kernel(_TWIN, gamma=0.5 / (sigma * sigma))\n\n\n@_public\ndef linear(",
    ),
    (
        "            rate = gamma\n",
        "            rate = gamma\n        elif kind == _TWIN:\n            rate = gamma + gamma\n",
    ),
]
ITS_LAWS = [  # in its record, and how its frequencies are drawn
    (
        '"twin", _DISTANCES',
        """"twin", _DISTANCES, law=99,
        drop=lambda kernel, r: -math.expm1(-2.0 * kernel.gamma * r * r),
        slope=lambda kernel: math.sqrt(4.0 * kernel.gamma / math.e)""",
    ),
    (
        "        return np.full(count, math.sqrt(2.0 * kernel.gamma))\n",
        "        return np.full(count, math.sqrt(2.0 * kernel.gamma))\n"
        "    if law == 99:\n        return np.full(count, math.sqrt(4.0 * kernel.gamma))\n",
    ),
]
IN_COMMANDS = [
    (
        '    "gaussian": gaussian,',
        '    "gaussian": gaussian,\n    "twin": twin,',
    )
]
TRIED = """
import numpy as np, kpcasketch as kp
X = np.random.default_rng(0).standard_normal((40, 3))
new, same = kp.twin(2.0), kp.gaussian(2.0 / np.sqrt(2.0))
assert kp._TWIN == 0 and repr(new) == "Kernel(twin, sigma=2, gamma=0.125)"
assert np.abs(kp.gram(X, X, new) - kp.gram(X, X, same)).max() < 1e-15
assert abs(kp.kernel_value(new, X[0], X[1]) - kp.kernel_value(same, X[0], X[1])) < 1e-15
kp.save("new.npz", new)
assert kp.load("new.npz") == new and kp.load("saved.npz") == kp.gaussian(2.0)
def found(kernel):
    bounds = kp.shadow_bounds(kernel, 0.1)
    return [kp.features(X, kp.fourier_features_map(kernel, 3, 8)), np.array(bounds)]
try:
    print(max(np.abs(a - b).max() for a, b in zip(found(new), found(same))) < 1e-12)
except ValueError as error:
    print(error)
try:
    options = kp._parser().parse_args(["embed", "X.npy", "--kernel", "twin", "--sigma", "2"])
    print(kp._chosen_kernel(options, kp._Points('X.npy', X))[:6] == new[:6])
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "edits, laws, command",
    [
        (
            NEW_KERNEL,
            "shadow_bounds: kernel must be shift-invariant",
            "--kernel: invalid choice: 'twin'",
        ),
        (NEW_KERNEL + ITS_LAWS + IN_COMMANDS, "True", "True"),
    ],
    ids=["values alone", "in full"],
)
def test_a_new_kernel_got_the_laws_of_others_without_a_word(edits, laws, command, tmp_path):
    source = FILE.read_text()
    for old, new in edits:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    (tmp_path / "kpcasketch.py").write_text(source)
    kp.save(tmp_path / "saved.npz", kp.gaussian(2.0))
    lines = run(TRIED, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))[0].splitlines()
    assert lines[0].startswith(laws) and lines[1].startswith(command)


N_OUT, M_OUT = 137, 21
RESULTS = {  # of points X, points Y and vectors V: a call that takes `out`, and the arrays that it reads
    "gram": (lambda X, Y, V, **out: kp.gram(X, Y, kp.matern(1.5, 2.0), **out), (0, 1)),
    "gram of X": (lambda X, Y, V, **out: kp.gram(X, X, kp.matern(1.5, 2.0), **out), (0,)),
    "gram_matmat": (
        lambda X, Y, V, **out: kp.gram_matmat(X, Y, V, kp.cauchy(2.0), **out),
        (0, 1, 2),
    ),
    "expand": (
        lambda X, Y, V, **out: kp.features(
            X, kp.Expansion(Y, V, np.ones(V.shape[1]), kp.gaussian(2.0)), **out
        ),
        (0, 1, 2),
    ),
    "expand to a vector": (
        lambda X, Y, V, **out: kp.features(
            X,
            kp.Expansion(Y, V[:, :1].copy(), np.ones(1), kp.gaussian(2.0), targets=1),
            **out,
        ),
        (0, 1),
    ),
}


def inputs(dtype=np.float64):
    rng = np.random.default_rng(5)
    shapes = (N_OUT, 3), (M_OUT, 3), (M_OUT, 6)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_in_memory_that_is_there_has_the_same_bits(name, dtype):
    call, _ = RESULTS[name]
    given = inputs(dtype)
    new = call(*given)
    assert call(*given, out=None).tobytes() == new.tobytes()
    out = np.full_like(new, np.nan)
    assert call(*given, out=out) is out
    assert out.tobytes() == new.tobytes()
    room = np.full(new.size + 1, np.nan, dtype)  # memory that begins at no cache line
    shifted = room[1:].reshape(new.shape)
    assert call(*given, out=shifted) is shifted
    assert shifted.tobytes() == new.tobytes() and np.isnan(room[0])


@pytest.mark.parametrize("name", RESULTS)
def test_memory_that_cannot_hold_the_result_is_refused_and_left_as_it_was(name):
    call, _ = RESULTS[name]
    given = inputs()
    shape = call(*given).shape
    read_only = np.full(shape, 7.0)
    read_only.flags.writeable = False
    unaligned = np.frombuffer(bytearray(8 * math.prod(shape) + 1), np.uint8)[1:].view(np.float64)
    refused = [
        np.full((shape[0] + 1, *shape[1:]), 7.0),
        np.full((*shape, 1), 7.0),
        np.full(shape, 7.0, np.float32),
        np.full(shape, 7.0).astype(">f8"),
        np.full((2 * shape[0], *shape[1:]), 7.0)[::2],
        np.ma.array(np.full(shape, 7.0)),
        read_only,
        unaligned.reshape(shape),
    ]
    if len(shape) == 2:
        refused.append(np.full(shape[::-1], 7.0).T)
    for out in refused:
        before = out.tobytes()
        with pytest.raises(ValueError, match=r"^\w+: out must be a writable C-ordered .*; got "):
            call(*given, out=out)
        assert out.tobytes() == before
    for out in ("text", [[0.0]], 3):
        with pytest.raises(ValueError, match=f"; got {type(out).__name__}$"):
            call(*given, out=out)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_over_an_argument_is_refused(name):
    call, read = RESULTS[name]
    given = inputs()
    new = call(*given)
    for place in read:
        size = new.size + given[place].size
        room = np.zeros(size)
        own = room[: given[place].size].reshape(given[place].shape)
        own[:] = given[place]
        before = own.copy()
        for begin in (0, given[place].size - 1):  # all of it, and its last number alone
            out = room[begin : begin + new.size].reshape(new.shape)
            with pytest.raises(ValueError, match="out must be separate from the arguments; got"):
                call(*given[:place], own, *given[place + 1 :], out=out)
            assert np.array_equal(own, before)
        beside = room[given[place].size :].reshape(new.shape)
        got = call(*given[:place], own, *given[place + 1 :], out=beside)
        assert got is beside and got.tobytes() == new.tobytes()


def test_a_gram_matrix_over_the_table_or_over_converted_points_is_refused():
    table = np.eye(4)
    rows = np.array([[3.0], [2.0], [1.0], [0.0]])
    with pytest.raises(ValueError, match="out must be separate"):
        kp.gram(rows, rows, kp.precomputed(table), out=table)
    assert np.array_equal(table, np.eye(4))
    X = np.asfortranarray(np.arange(9.0).reshape(3, 3))  # copied, because it is not in C order
    with pytest.raises(ValueError, match="out must be separate"):
        kp.gram(X, X, kp.linear(), out=X.T)
    assert np.array_equal(X, np.arange(9.0).reshape(3, 3))


def test_values_refused_after_the_work_leave_products_as_they_were():
    X = np.full((3, 1), 1e150 / 4)
    kernel = kp.polynomial(3, 1.0, 0.0)
    out = np.full((3, 2), 7.0)
    with pytest.raises(ValueError, match="must be finite"):
        kp.gram_matmat(X, X, np.ones((3, 2)), kernel, out=out)
    assert (out == 7.0).all()
    with pytest.raises(ValueError, match="must be finite"):
        kp.gram(X, X, kernel, out=np.empty((3, 3)))


def test_squares_that_overflow_in_float32_made_kernel_values_infinite():
    # x.y = 4e38 overflowed, and 1e-30 x.y = 4e8 does not
    kernel = kp.polynomial(1, 1e-30, 0.0)
    P = np.full((2, 50_000), 9e16)
    assert kp.gram(P, P, kernel) == pytest.approx(np.full((2, 2), 50_000 * 81e32 * 1e-30))
    with pytest.raises(ValueError, match=r"^gram: X must be .* below .*8e18 / sqrt\(d\)"):
        kp.gram(P.astype(np.float32), P.astype(np.float32), kernel)
    P = P.astype(np.float32) * np.float32(0.1)
    squares = 50_000 * np.float64(P[0, 0]) ** 2 * 1e-30
    assert kp.gram(P, P, kernel) == pytest.approx(np.full((2, 2), squares), rel=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_are_written_to_memory_maps(dtype, tmp_path):
    P = np.random.default_rng(0).standard_normal((9000, 3)).astype(dtype)
    kernel = kp.gaussian(1.0)
    model = kp.kpca(P[:20], kernel, 2, centered=False)
    for call, arguments in (
        (kp.gram, (P[:90], P[:70], kernel)),
        (kp.gram_matmat, (P[:90], P[:70], P[:70], kernel)),
        (kp.features, (P[:90], model)),
        (kp.features, (P, model)),  # slab by slab
    ):
        expected = call(*arguments)
        path = tmp_path / f"{len(expected)}.npy"
        out = np.lib.format.open_memmap(path, "w+", dtype, expected.shape)
        assert call(*arguments, out=out) is out
        assert np.array_equal(np.load(path), expected)
    with pytest.raises(ValueError, match="^gram: out must be .* got MaskedArray"):
        kp.gram(P[:2], P[:2], kernel, out=np.ma.zeros((2, 2), dtype))


def test_a_sum_of_kernels_was_a_tuple_of_fourteen_numbers():
    g = kp.gaussian(1.0)
    for wrong in (lambda: g + kp.linear(), lambda: 2 * g, lambda: g * 2.0, lambda: (1,) + g):
        with pytest.raises(TypeError, match="kernels have no .* call scaled, or custom"):
            wrong()
