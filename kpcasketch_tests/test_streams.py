# SPDX-License-Identifier: BSD-3-Clause
"""Random Fourier features, frequent directions, streaming kernel PCA and its rivals (SKPCA)."""

import functools
import math
import operator

import numba
import numpy as np
import pytest
from scipy import integrate, linalg, sparse, stats

import kpcasketch as kp
from kpcasketch_tests import inner, naive
from kpcasketch_tests.tables import FEATURES, LAWS, RADIAL, STREAMS, same_bits, with_trait

X = np.random.default_rng(0).standard_normal((300, 5))
G = kp.gaussian(2.0)
MAKERS = [row.make for row in FEATURES.values()]
REDRAWN = with_trait(FEATURES, "redrawn")


def hadamard(n):
    return (
        np.ones((1, 1))
        if n == 1
        else np.block([[hadamard(n // 2), hadamard(n // 2)], [hadamard(n // 2), -hadamard(n // 2)]])
    )


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
@pytest.mark.parametrize("name", RADIAL)
def test_features_give_the_kernel_on_average(name, maker):
    # the deviation of one entry has standard error sqrt(3/2 / m) or so: six of them
    kernel, m = RADIAL[name].make(2.0), 6000
    Z = kp.features(X[:60], maker(kernel, 5, m, 3))
    assert (
        np.abs(Z @ Z.T - kp.gram(X[:60], X[:60], kernel)).max()
        < 6 * math.sqrt(1.5 / m) * kernel.scale
    )


def test_features_of_the_city_block_laplacian_have_a_law_of_their_own():
    kernel = kp.laplacian(3.0, norm=1)
    assert np.abs(kp.gram(X, X[:50], kernel) - naive.city_block(X, X[:50], 3.0)).max() < 1e-15
    assert (
        np.abs(
            kp.gram(X.astype(np.float32), X[:50].astype(np.float32), kernel)
            - naive.city_block(X, X[:50], 3.0)
        ).max()
        < 1e-6
    )
    assert (
        np.abs(kp.dense(kp.sample_gram(X, kernel, 1.0)) - naive.city_block(X, X, 3.0)).max() < 1e-14
    )
    Z = kp.features(X[:60], kp.fourier_features_map(kernel, 5, 6000))
    assert np.abs(Z @ Z.T - naive.city_block(X[:60], X[:60], 3.0)).max() < 0.1
    for row in FEATURES.values():
        if not row.any_law:
            with pytest.raises(ValueError, match="kernel must depend on the Euclidean distance"):
                row.make(kernel, 5, 10)


@pytest.mark.bounds
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 2e-6)])
@pytest.mark.parametrize(
    "n, d, m", [(1, 1, 1), (3, 2, 31), (127, 16, 32), (128, 17, 128), (129, 3, 129), (257, 40, 300)]
)
def test_features_are_cosines_of_the_frequencies(n, d, m, dtype, tolerance, rng):
    points = rng.standard_normal((n, d))
    found = kp.fourier_features_map(G, d, m, 7, paired=False)
    at_0 = kp.features(np.zeros((1, d)), found)[0]  # sqrt(2 / m) cos of the phases
    quarter = np.array(
        [
            kp._uniform(
                np.uint64(kp._subkey(np.uint64(kp._key(7, kp._FREQUENCIES)), kp._PHASES)), j
            )
            for j in range(m)
        ]
    )
    assert np.allclose(at_0, math.sqrt(2 / m) * np.cos(2 * np.pi * quarter), atol=1e-14)
    expected = math.sqrt(2 / m) * np.cos(points @ found.frequencies.T + 2 * np.pi * quarter)
    assert np.abs(kp.features(points.astype(dtype), found) - expected).max() < tolerance * 10


@pytest.mark.parametrize(
    "maker", [row.make for row in REDRAWN.values()], ids=lambda maker: maker.__name__
)
def test_maps_are_drawn_again_from_their_seed(maker):
    stored, drawn = maker(G, 5, 70, 11), maker(G, 5, 70, 11, stored=False)
    assert drawn.frequencies.shape == (0, 5)
    assert np.array_equal(kp.features(X, stored), kp.features(X, drawn))
    assert not np.array_equal(kp.features(X, stored), kp.features(X, maker(G, 5, 70, 12)))


def test_kinds_of_maps_are_different():
    # a constant of the recursive sampling had the name of a kind of map, and every map made from Python was of low
    # discrepancy
    frequencies = [
        maker(G, 5, 30, paired=False).frequencies
        for maker in (row.make for row in REDRAWN.values())
    ]
    assert not any(
        np.array_equal(frequencies[i], frequencies[j]) for i in range(3) for j in range(i)
    )
    W = frequencies[1]
    assert all(np.abs(np.triu(block @ block.T, 1)).max() < 1e-12 for block in W.reshape(-1, 5, 5))
    assert stats.kstest(frequencies[0].ravel() * 2.0, "norm").pvalue > 1e-6
    Q = kp.quasi_features_map(G, 5, 8000).frequencies[::2] * 2.0
    # random ones: .87
    assert all(stats.kstest(Q[:, t], "norm").statistic < 0.2 / math.sqrt(4000) for t in range(5))


@pytest.mark.bounds
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(
    "d, m",
    [
        (1, 1),
        (1, 5),
        (5, 8),
        (5, 15),
        (5, 16),
        (5, 17),
        (8, 20),
        (9, 40),
        (9, 63),
        (9, 64),
        (9, 65),
    ],
)
def test_fastfood_is_its_product_of_matrices(d, m, paired, rng):
    key, count = np.uint64(kp._key(np.uint64(4), kp._FREQUENCIES)), (m + 1) // 2 if paired else m
    signs, order, weights, lengths = inner(kp._fastfood_parts)(G, d, count, key)
    D = signs.shape[1]
    H = hadamard(D)
    V = np.concatenate(
        [
            np.diag(s) @ H @ np.diag(w) @ np.eye(D)[p] @ H @ np.diag(b)
            for b, p, w, s in zip(signs, order, weights, lengths)
        ]
    )
    phases = (
        2
        * np.pi
        * np.array([kp._uniform(np.uint64(kp._subkey(key, kp._PHASES)), j) for j in range(count)])
    )
    points = rng.standard_normal((33, d))
    angles = np.pad(points, ((0, 0), (0, D - d))) @ V[:count].T + phases
    expected = math.sqrt(2 / m) * (
        np.stack([np.cos(angles), np.sin(angles)], 2).reshape(33, -1)[:, :m]
        if paired
        else np.cos(angles)
    )
    assert (
        np.abs(
            kp.features(points, kp.fastfood_features_map(G, d, m, 4, paired=paired)) - expected
        ).max()
        < 1e-12
    )
    assert np.allclose(
        np.sort(np.linalg.norm(V, axis=1)),
        np.sort(lengths.ravel() * np.repeat(np.linalg.norm(weights, axis=1), D) * math.sqrt(D)),
    )


@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_features_have_the_same_bits_for_any_threads_and_any_cut(maker, same_bits):
    found = maker(G, 5, 150, 2)
    same_bits(kp.features, X, found)
    whole = kp.features(X, found)
    assert np.array_equal(
        np.concatenate([kp.features(part, found) for part in np.array_split(X, 7)]), whole
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [200, 3000, 20_000])
def test_fastfood_features_of_a_point_do_not_depend_on_others(d, dtype, rng, same_bits):
    points = rng.standard_normal((70, d)).astype(dtype)
    found = kp.fastfood_features_map(kp.gaussian(10.0), d, 600, 2)
    same_bits(kp.features, points, found)
    whole = kp.features(points, found)
    for rows in (slice(0, 1), slice(1, 3), slice(60, 67)):
        assert np.array_equal(kp.features(points[rows], found), whole[rows])


def test_large_angles_are_still_cosines():
    found = kp.fourier_features_map(kp.gaussian(1e-3), 1, 50)
    points = np.array([[1e6], [0.5]])
    for dtype in (np.float64, np.float32):
        Z = kp.features(points.astype(dtype), found)
        assert np.isfinite(Z).all() and np.abs(Z).max() <= math.sqrt(2 / 50) * (1 + 1e-6)
    with pytest.raises(
        ValueError, match="features: X must be smaller relative to the kernel's bandwidth"
    ):
        kp.features(
            np.ones((1, 1), np.float32), kp.fourier_features_map(kp.laplacian(1e-150), 1, 50)
        )


@pytest.mark.bounds
@pytest.mark.parametrize("share", [1.0, 0.4, 0.2])
@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize(
    "n, m, ell",
    [
        (100, 20, 6),
        (57, 30, 5),
        (10, 5, 1),
        (10, 5, 2),
        (10, 5, 3),
        (300, 8, 8),
        (3, 9, 4),
        (40, 7, 7),
    ],
)
def test_frequent_directions_are_the_naive_ones_and_keep_their_bounds(n, m, ell, half, share, rng):
    Z = rng.standard_normal((n, m)) * np.geomspace(1, 0.01, m)
    found = kp.frequent_directions(Z, ell, half=half, share=share)
    B, shrunk = naive.frequent_directions(Z, ell, half, share)
    assert found.B.shape == (ell, m) and np.abs(found.B.T @ found.B - B.T @ B).max() < 1e-10
    assert found.shrunk == pytest.approx(shrunk, abs=1e-10)
    error = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
    assert error[0] > -1e-10 and error[-1] <= found.shrunk + 1e-10
    robust = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B - found.ridge * np.eye(m))
    assert np.abs(robust).max() <= found.ridge + 1e-10
    j = (ell + 1) // 2 if half else ell
    tail = np.append(np.cumsum(np.linalg.svd(Z, compute_uv=False)[::-1] ** 2)[::-1], np.zeros(ell))
    assert all(
        found.shrunk * (math.ceil(share * j) - k) <= tail[k] * (1 + 1e-9) + 1e-12
        for k in range(math.ceil(share * j))
    )
    assert found.squares == pytest.approx((Z**2).sum()) and found.count == n


def test_short_directions_of_a_stream_were_not_orthogonal(rng):
    feature_map = kp.fourier_features_map(kp.gaussian(4.0), 2, 256)
    state = kp.update(
        kp.skpca_start(feature_map, 40, centered=False), rng.standard_normal((3000, 2))
    )
    basis = kp.finish(state, 40).basis
    squares = basis.T @ basis
    lengths = np.diagonal(squares)
    assert np.abs(squares - np.diag(np.round(lengths))).max() < 1e-13


@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-9, 1e-14])
def test_rows_that_the_gram_matrix_cannot_tell_are_sketched_up_to_rounding(scale, rng):
    Z = rng.standard_normal((200, 30)) * np.append(np.ones(2), np.full(28, scale))
    assert kp.frequent_directions(Z, 12).shrunk == pytest.approx(
        naive.frequent_directions(Z, 12)[1], rel=1e-8
    )


@pytest.mark.parametrize(
    "name, sigma", [("line", None), ("circle", None), ("plane", 5.0), ("plane", 50.0)]
)
def test_streams_of_wide_kernels_waited_for_the_threads_of_lapack(
    name, sigma, same_bits, monkeypatch, rng
):
    angle, plane = rng.uniform(0, 2 * np.pi, 600), rng.standard_normal((600, 2))
    points = {
        "line": plane[:, :1],
        "circle": np.column_stack([np.cos(angle), np.sin(angle)]),
        "plane": plane,
    }[name]
    drawn = kp.fourier_features_map(
        kp.gaussian(sigma or kp.median_bandwidth(points)), points.shape[1], 150
    )
    Z = kp.features(points, drawn)
    tail = np.cumsum(np.linalg.svd(Z, compute_uv=False)[::-1] ** 2)[::-1]
    monkeypatch.setattr(np.linalg, "svd", None)  # 5 to 127 times as slow, beside other processes
    monkeypatch.setattr(np.linalg, "qr", None)
    for ell in (12, 24):
        start = kp.skpca_start(drawn, ell, centered=False)
        same_bits(kp.update, start, points)
        found = kp.finish(kp.update(start, points).sketch)
        error = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
        assert (
            error[0] > -1e-13 * found.squares and error[-1] <= found.shrunk + 1e-13 * found.squares
        )
        assert all(
            found.shrunk * (ell // 2 - k) <= tail[k] + 1e-13 * found.squares
            for k in range(ell // 2)
        )
        assert np.abs(found.B @ found.B.T - np.diag(found.values)).max() < 1e-14 * found.squares


@pytest.mark.parametrize("share", [0.999999999, 1.0, 1.000000001])
@pytest.mark.parametrize("half", [True, False])
def test_equal_lengths_on_both_sides_of_what_the_gram_matrix_tells(share, half, rng):
    # one long direction and 39 of a billionth of its squared length, turned
    turn = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    Z = np.tile(np.sqrt(np.append(1.0, np.full(39, 1e-9 * share)))[:, None] * turn, (2, 1))
    found = kp.frequent_directions(Z, 12, half=half)
    error = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
    assert error[0] > -1e-14 and error[-1] <= found.shrunk + 1e-14
    assert (
        1e-9 < found.shrunk <= 1.001 * 2e-9 * 39 / (5 if half else 11)
        and (np.diff(found.values) <= 0).all()
    )


@pytest.mark.parametrize("unit", [1e-150, 1e-140, 1e100, 1e140])
def test_tiny_and_huge_rows_are_sketched_like_others(unit, rng):
    Z = rng.standard_normal((200, 30))
    ours, other = kp.frequent_directions(Z * unit, 12), kp.frequent_directions(Z, 12)
    B = ours.B / unit  # rows up to their signs
    assert np.allclose(B.T @ B, other.B.T @ other.B, atol=1e-11)
    assert ours.shrunk == pytest.approx(other.shrunk * unit * unit, rel=1e-9)


@pytest.mark.parametrize(
    "Z",
    [np.zeros((30, 5)), np.ones((30, 5)), np.eye(5), np.repeat(np.eye(5), 9, 0)],
    ids=["zeros", "ones", "unit", "copies"],
)
@pytest.mark.parametrize("ell", [1, 2, 3, 4, 5])
def test_degenerate_rows(Z, ell):
    found = kp.frequent_directions(Z, ell)
    error = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
    assert np.isfinite(found.B).all() and error[0] > -1e-9 and error[-1] <= found.shrunk + 1e-9


def test_the_last_rows_were_lost_without_a_last_decomposition():
    # E15: 16 points far apart, then 8 copies of another
    Z = np.concatenate([np.eye(25)[:16], np.repeat(np.eye(25)[24:], 8, 0)])
    found = kp.frequent_directions(Z, 16)
    W = found.B.T @ np.diag(1 / np.maximum(found.values, 1e-300) ** 0.5)
    assert np.linalg.norm(Z @ Z.T - Z @ W @ W.T @ Z.T, 2) < 1.0 + 1e-9


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize(
    "n, m, ell, rank",
    [
        (6, 2, 2, 2),
        (5, 5, 5, 5),
        (1, 1, 1, 1),
        (300, 40, 12, 12),
        (300, 40, 12, 3),
        (2000, 12, 12, 12),
        (17, 40, 17, 17),
        (300, 40, 1, 1),
    ],
)
def test_what_fits_exactly_was_shrunk_to_zeros(n, m, ell, rank, half, rng):
    Z = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m))
    parts = [
        kp.update(kp.fd_start(ell, m, half=half), part) for part in np.array_split(Z, min(n, 3))
    ]
    merged = parts[0]
    for part in parts[1:]:
        merged = kp.merge(merged, part)
    for found in (kp.frequent_directions(Z, ell, half=half), kp.finish(merged)):
        assert np.abs(found.B.T @ found.B - Z.T @ Z).max() <= 1e-12 * np.linalg.norm(Z) ** 2
        assert found.shrunk <= 1e-12 * found.squares and found.B.shape == (ell, m)


# the control, by Liberty's bound for the best k
def test_rows_beyond_the_rank_that_fits_are_paid_for(
    rng,
):
    Z = rng.standard_normal((300, 13)) @ rng.standard_normal((13, 40))
    tail = np.linalg.svd(Z, compute_uv=False)[:12] ** 2
    for half, rows in ((True, 6), (False, 12)):
        found = kp.frequent_directions(Z, 12, half=half)
        error = np.linalg.norm(Z.T @ Z - found.B.T @ found.B, 2)
        assert 1e-6 * found.squares < error <= found.shrunk * (1 + 1e-12)
        assert error <= min((found.squares - tail[:k].sum()) / (rows - k) for k in range(rows))


@pytest.mark.parametrize("half", [True, False])
def test_a_stream_has_the_same_bits_however_it_is_cut(half, rng):
    Z = rng.standard_normal((301, 40))
    whole = kp.update(kp.fd_start(10, 40, half=half), Z)
    state, before = kp.fd_start(10, 40, half=half), []
    for part in np.split(Z, [1, 2, 9, 10, 11, 29, 30, 150]):
        before.append((state, state.run.columns.copy()))
        state = kp.update(state, part)
    assert bits_of(state) == bits_of(whole)
    assert all(np.array_equal(old.run.columns, columns) for old, columns in before)


def altered(state, **fields):
    """A frequent directions state in which fields of the current run are wrong."""
    return state._replace(run=state.run._replace(**fields))


def run_of_one_row(ell, m):
    return kp.update(kp.fd_start(ell, m), np.ones((1, m))).run


def bits_of(state):
    """The bytes of a state's numbers and arrays."""
    return [
        bits_of(part) if hasattr(part, "_fields") else np.asarray(part).tobytes() for part in state
    ]


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("maker", [kp.fourier_features_map, kp.fastfood_features_map])
def test_runs_of_a_long_stream_begin_at_the_same_rows_however_it_is_cut(centered, maker, tmp_path):
    points = np.random.default_rng(2).standard_normal((3700, 3))
    start = kp.skpca_start(maker(G, 3, 130, 1), 8, centered=centered)
    whole, cut = kp.update(start, points), start
    for part in np.split(points, [1, 999, 1000, 1001, 2500, 3000]):
        kp.save(tmp_path / "state.npz", cut)
        cut = kp.update(kp.load(tmp_path / "state.npz"), part)
    assert bits_of(cut) == bits_of(whole) and whole.sketch.older.count == 3000
    Z = kp.features(points, start.feature_map)
    mean = Z.mean(0) if centered else 0.0
    for state in (whole, kp.merge(whole, cut)):
        found = kp.finish(kp.merge(state, start).sketch)
        share = 1 + (state.sketch.count == 7400)
        error = np.linalg.eigvalsh(share * (Z - mean).T @ (Z - mean) - found.B.T @ found.B)
        assert error[0] > -1e-9 * error[-1] and error[-1] <= found.shrunk * (1 + 1e-9)
        assert found.squares == pytest.approx(share * ((Z - mean) ** 2).sum())
        if centered:
            assert np.allclose(kp.finish(state, 3).means, mean, rtol=0, atol=1e-14)


@pytest.mark.parametrize("n", [999, 1000, 1001, 17_000, 17_001])
def test_sketches_of_runs_have_the_bits_of_one_thread_and_the_bound_of_a_single_pass(n, rng):
    Z = rng.standard_normal((n, 30)) * np.geomspace(1, 0.01, 30)
    found = kp.frequent_directions(Z, 10)
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = kp.frequent_directions(Z, 10)
    finally:
        numba.set_num_threads(threads)
    assert all(np.array_equal(a, b) for a, b in zip(found, alone))
    error = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
    tail = np.cumsum(np.linalg.svd(Z, compute_uv=False)[::-1] ** 2)[::-1]
    assert error[0] > -1e-9 * tail[0] and error[-1] <= found.shrunk * (1 + 1e-9)
    assert all(found.shrunk * (5 - k) <= tail[k] for k in range(5)) and found.count == n


@pytest.mark.parametrize("centered", [False, True])
def test_rows_of_many_runs_are_weighted_by_their_age(centered, rng):
    # ell = m = 12 keeps all directions, so the sketch has the weighted scatter matrix exactly
    n, half_life = 4321, 700.0
    points = rng.standard_normal((n, 2)) + np.linspace(0, 1, n)[:, None]
    start = kp.skpca_start(
        kp.fourier_features_map(G, 2, 12), 12, centered=centered, half_life=half_life
    )
    state = start
    for part in np.split(points, [5, 1000, 3333]):
        state = kp.update(state, part)
    Z = kp.features(points, start.feature_map)
    weights = 2.0 ** (-np.arange(n)[::-1] / half_life)
    mean = np.average(Z, 0, weights) if centered else 0.0
    found = kp.finish(state, 12)
    scatter = (found.basis * found.values) @ found.basis.T
    expected = ((Z - mean) * weights[:, None]).T @ (Z - mean)
    assert np.abs(scatter - expected).max() <= 1e-12 * np.trace(expected)
    assert not centered or np.allclose(found.means, mean, rtol=0, atol=1e-13)


def test_saved_states_with_earlier_fields_are_refused(tmp_path):
    # their sketches had no field for the current run, but its fields
    points = np.random.default_rng(3).standard_normal((1900, 3))
    state = kp.update(kp.skpca_start(kp.fourier_features_map(G, 3, 40), 6, centered=True), points)
    kp.save(tmp_path / "new.npz", state)
    with np.load(tmp_path / "new.npz") as held:
        old = {name.replace(".run.", "."): held[name] for name in held if name != "sketch.run"}
    np.savez(tmp_path / "old.npz", **old, means=np.zeros(40), centered=True)
    with pytest.raises(ValueError, match="^load: .* written by save, but sketch.run has the wrong"):
        kp.load(tmp_path / "old.npz")


def test_merged_sketches_keep_the_bound(rng):
    Z = rng.standard_normal((300, 40)) * np.geomspace(1, 0.1, 40)
    parts = [kp.update(kp.fd_start(10, 40), part) for part in np.array_split(Z, 3)]
    found = kp.finish(kp.merge(kp.merge(*parts[:2]), parts[2]))
    error = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
    tail = np.cumsum(np.linalg.svd(Z, compute_uv=False)[::-1] ** 2)[::-1]
    assert error[0] > -1e-10 and error[-1] <= found.shrunk + 1e-10
    assert all(found.shrunk * (5 - k) <= tail[k] for k in range(5))
    assert found.count == 300 and found.squares == pytest.approx((Z**2).sum())


@pytest.mark.parametrize("centered", [False, True])
def test_streaming_kernel_pca_is_near_the_exact_one(centered):
    points = np.random.default_rng(1).standard_normal((700, 3))
    K = kp.gram(points, points, G)
    K = K - K.mean(0) - K.mean(1)[:, None] + K.mean() if centered else K
    streamed, rival = (
        kp.skpca(points, G, 10, 1500, 60, 0, centered=centered),
        kp.rnca(points, G, 10, 1500, 0, centered=centered),
    )
    best = np.linalg.eigvalsh(K)[-11]
    for found in (streamed, rival):
        F = kp.features(points, found)
        assert np.linalg.norm(K - F @ F.T, 2) < best + 0.06 * 700
        lengths = (F**2).sum(0)
        assert (lengths >= found.values * (1 - 1e-9)).all() and (
            lengths <= found.values + found.shrunk + 1e-9
        ).all()
        assert not centered or np.abs(F.mean(0)).max() < 1e-12
    assert np.allclose(streamed.values, rival.values, atol=1.01 * streamed.shrunk)
    assert (streamed.values <= rival.values * (1 + 1e-9)).all()


@pytest.mark.bounds
@pytest.mark.parametrize("centered", [False, True])
def test_streaming_kernel_pca_in_any_cut_merged_and_resumed(centered, tmp_path):
    drawn = kp.fourier_features_map(G, 5, 90, 5)
    start = kp.skpca_start(drawn, 12, centered=centered)
    whole, cut = kp.update(start, X), start
    for part in np.split(X, [1, 7, 100, 101]):
        kp.save(tmp_path / "state.npz", cut)
        cut = kp.update(kp.load(tmp_path / "state.npz"), part)
    assert bits_of(whole) == bits_of(cut)
    moved = X[100:] + 0.5
    merged = kp.merge(kp.update(start, X[:100]), kp.update(start, moved))
    Z = kp.features(np.concatenate([X[:100], moved]), drawn)
    Z = Z - Z.mean(0) if centered else Z
    found = kp.finish(merged.sketch)
    error = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
    assert error[0] > -1e-9 and error[-1] <= found.shrunk + 1e-9 and found.count == 300
    assert (
        not centered
        or np.abs(
            merged.sketch.run.means - kp.features(np.concatenate([X[:100], moved]), drawn).mean(0)
        ).max()
        < 1e-14
    )


def test_novel_points_stand_out():
    found = kp.skpca(X, G, 30, 800, 60, centered=False)
    near, far = kp.residual(X, found), kp.residual(X + 30.0, found)
    Z = kp.features(X, found.feature_map)
    assert np.allclose(
        near, np.linalg.norm(Z - Z @ found.basis @ found.basis.T, axis=1), atol=1e-12
    )
    assert near.max() < far.min()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_streams_take_both_precisions(dtype):
    found = kp.skpca(X.astype(dtype), G, 4, 100, 10, centered=False)
    assert kp.features(X.astype(dtype), found).dtype == dtype
    assert (
        np.abs(
            np.abs(kp.features(X.astype(dtype), found))
            - np.abs(kp.features(X, kp.skpca(X, G, 4, 100, 10, centered=False)))
        ).max()
        < 2e-3
    )


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda: kp.fourier_features_map(kp.polynomial(2, 1.0, 1.0), 3, 5),
            "fourier_features_map: kernel must be shift-invariant",
        ),
        (
            lambda: kp.fourier_features_map(G, 0, 5),
            "fourier_features_map: d must be an int from 1 to 2147483647",
        ),
        (
            lambda: kp.fourier_features_map(G, 3, 0),
            "fourier_features_map: m must be an int from 1 to 2147483647",
        ),
        (
            lambda: kp.features(X[:, :2], kp.fourier_features_map(G, 5, 3)),
            "features: X must have 5 columns",
        ),
        (lambda: kp.features(X, G), "features: model must be one of Expansion, .*; got Kernel"),
        (
            lambda: kp.features(X, kp.fourier_features_map(G, 5, 3)._replace(m=4)),
            "features: model must be a FourierMap",
        ),
        (lambda: kp.fd_start(5, 4), "fd_start: ell must be an int from 1 to 4, got 5"),
        (
            lambda: kp.fd_start(2, 4, half=True, share=-0.1),
            "fd_start: share must be from 0.0 to 1.0, got -0.1",
        ),
        (
            lambda: kp.frequent_directions(X, 6),
            "frequent_directions: ell must be an int from 1 to 5, got 6",
        ),
        (lambda: kp.update(kp.fd_start(2, 4), X), "update: X must have 4 columns"),
        (
            lambda: kp.update(kp.fd_start(2, 5), np.full((1, 5), np.nan)),
            "update: X must be finite",
        ),
        (lambda: kp.update(kp.fd_start(2, 5), X[:0, :4]), "update: X must have 5 columns, got 4"),
        (lambda: kp.update(X, X), "update: state must be one of .*FDState, .*; got ndarray"),
        (
            lambda: kp.update(altered(kp.fd_start(2, 5), used=3), X),
            "update: state must be an FDState",
        ),
        (
            lambda: kp.update(altered(kp.fd_start(2, 5), means=np.zeros(4)), X),
            "update: state.run must be a sketch of runs in an FDState",
        ),
        (
            lambda: kp.finish(kp.fd_start(2, 5)._replace(older=run_of_one_row(3, 5))),
            "finish: state must be an FDState",
        ),
        (
            lambda: kp.merge(kp.fd_start(2, 5), altered(kp.fd_start(2, 5), means=np.zeros(5))),
            "merge: a and b must have been started with the same arguments",
        ),
        (
            lambda: kp.merge(kp.fd_start(2, 5), kp.fd_start(3, 5)),
            "merge: a and b must have been started with the same arguments",
        ),
        (
            lambda: kp.skpca_start(kp.fourier_features_map(G, 5, 3), 4, centered=False),
            "skpca_start: ell must be an int from 1 to 3, got 4",
        ),
        (
            lambda: kp.update(
                kp.skpca_start(kp.fourier_features_map(G, 5, 3), 2, centered=False), X[:, :2]
            ),
            "update: X must have 5 columns",
        ),
        (
            lambda: kp.merge(
                kp.skpca_start(kp.fourier_features_map(G, 5, 3), 2, centered=False),
                kp.skpca_start(kp.fourier_features_map(G, 5, 3, 1), 2, centered=False),
            ),
            "merge: a and b must have been started with the same arguments",
        ),
        (
            lambda: kp.merge(
                kp.skpca_start(kp.fourier_features_map(G, 5, 3), 2, centered=False),
                kp.skpca_start(kp.fourier_features_map(G, 5, 3), 2, centered=True),
            ),
            "merge: a and b must have been started with the same arguments",
        ),
        (
            lambda: kp.finish(
                kp.update(kp.skpca_start(kp.fourier_features_map(G, 5, 3), 2, centered=False), X), 3
            ),
            "finish: k must be an int from 1 to 2, got 3",
        ),
        (
            lambda: kp.features(X[:, :2], kp.skpca(X, G, 2, 20, 5, centered=False)),
            "features: X must have 5 columns",
        ),
        (
            lambda: kp.features(
                X, kp.skpca(X, G, 2, 20, 5, centered=False)._replace(values=np.ones(9))
            ),
            "features: model must be a Subspace",
        ),
        (
            lambda: kp.fourier_features_map(G, 2**32, 2**32),
            "fourier_features_map: d must be an int from 1",
        ),
        (
            lambda: kp.fastfood_features_map(G, 2, 2**62),
            "fastfood_features_map: m must be an int from 1",
        ),
        (
            lambda: kp.rademacher_projection(X, 2**62),
            "rademacher_projection: s must be an int",
        ),
        (lambda: kp.fd_start(0, 4), "fd_start: ell must be an int from 1 to 4, got 0"),
        (
            lambda: kp.rnca(X, G, 4, 3, centered=False),
            "rnca: k must be an int from 1 to 3, got 4",
        ),
        (lambda: kp.laplacian(1.0, norm=3), "laplacian: norm must be an int from 1 to 2"),
    ],
)
def test_wrong_arguments_are_refused_by_name(call, text):
    with pytest.raises(ValueError, match="^" + text):
        call()


def test_a_refused_block_leaves_the_state_as_it_was():
    state = kp.update(kp.skpca_start(kp.fourier_features_map(G, 5, 30), 6, centered=True), X[:50])
    before = bits_of(state)
    with pytest.raises(ValueError, match="^update: X must be finite"):
        kp.update(state, np.where(np.arange(5) == 2, np.nan, X))
    assert bits_of(state) == before
    whole = kp.update(kp.skpca_start(kp.fourier_features_map(G, 5, 30), 6, centered=True), X)
    assert bits_of(kp.update(state, X[50:])) == bits_of(whole)


@pytest.mark.parametrize("maker", [kp.fourier_features_map, kp.fastfood_features_map])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_of_a_point_depended_on_outliers_beside_it(maker, dtype):
    X = np.random.default_rng(0).standard_normal((100, 4)).astype(dtype)
    drawn = maker(kp.gaussian(1.0), 4, 50, 3)
    alone = kp.features(X, drawn)
    X[70] *= 1e7  # angles beyond what `_cos` is made for
    beside = kp.features(X, drawn)
    others = np.arange(100) != 70
    assert np.array_equal(alone[others], beside[others])
    assert np.array_equal(beside[70], kp.features(X[70:71], drawn)[0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sigma", [1.0, 100.0, 1e4])
def test_means_were_taken_off_squares_at_the_end(sigma, dtype):
    # features that are nearly the same: third value 3.9e-4 for 1.07e-4 in float32, 4.5e-12 for 1.07e-12 in float64
    points = np.random.default_rng(3).standard_normal((9000, 2)).astype(dtype)
    drawn = kp.fourier_features_map(kp.gaussian(sigma), 2, 40)
    # in the precision of the points: what is summed is judged
    Z = kp.features(points, drawn).astype(float)
    exact = np.linalg.svd(Z - Z.mean(0), compute_uv=False)[:3] ** 2
    found = kp.rnca(points, kp.gaussian(sigma), 3, 40, 0, centered=True)
    assert np.allclose(
        found.values,
        exact,
        rtol=1e-9 if dtype == np.float64 else 1e-3,
        atol=9000 * 1e-31 if dtype == np.float64 else 1e-6 * exact[0],
    )
    assert np.abs(found.means - Z.mean(0)).max() < (1e-14 if dtype == np.float64 else 1e-7)


@pytest.mark.bounds
@pytest.mark.parametrize("centered", [False, True])
def test_random_components_in_a_stream_are_those_of_all_points(centered, tmp_path, rng):
    drawn = kp.fourier_features_map(G, 5, 60, 5)
    start, points = kp.rnca_start(drawn, centered=centered), X + 0.3 * rng.standard_normal(X.shape)
    states, whole = [], start
    for part in np.split(points, [1, 7, 100, 101]):
        kp.save(tmp_path / "state.npz", whole)
        whole = kp.update(kp.load(tmp_path / "state.npz"), part)
        states.append(kp.update(start, part))
    Z = kp.features(points, drawn)
    Z = Z - Z.mean(0) if centered else Z
    for state in (
        whole,
        functools.reduce(kp.merge, states),
        functools.reduce(kp.merge, states[::-1]),
    ):
        assert state.count == len(points) and np.abs(state.squares - Z.T @ Z).max() < 1e-11
        found, once = kp.finish(state, 4), kp.rnca(points, G, 4, 60, 5, centered=centered)
        assert np.allclose(found.values, once.values, rtol=1e-11)
        if centered:
            assert np.allclose(found.means, once.means, atol=1e-14)
        else:
            assert found.means is once.means is None
        assert np.allclose(np.abs(np.diag(found.basis.T @ once.basis)), 1.0, atol=1e-9)
    for a, b in ((start, whole), (whole, start)):
        assert all(np.array_equal(u, v) for u, v in zip(kp.merge(a, b)[1:], whole[1:], strict=True))
    assert not start.squares.any() and start.count == 0


def test_merged_centred_streams_lost_the_squares_between_their_means():
    # 7 copies of 0 and 5 of (3, 3): 0.0 for 5.54
    drawn = kp.fourier_features_map(kp.gaussian(2.0), 2, 50)
    start, points = (
        kp.skpca_start(drawn, 4, centered=True),
        np.repeat([[0.0, 0.0], [3.0, 3.0]], [7, 5], axis=0),
    )
    merged = kp.merge(kp.update(start, points[:7]), kp.update(start, points[7:]))
    Z = kp.features(points, drawn)
    assert merged.sketch.run.squares == pytest.approx(((Z - Z.mean(0)) ** 2).sum())


@pytest.mark.parametrize("centered", [False, True])
def test_merging_with_an_empty_state_changed_the_other(centered, rng):
    drawn = kp.fourier_features_map(G, 5, 50)
    for n in (1, 5, 6, 7, 11, 12, 40):
        start = kp.skpca_start(drawn, 6, centered=centered)
        state = kp.update(start, rng.standard_normal((n, 5)))
        for a, b in ((state, start), (start, state)):
            merged = kp.merge(a, b)
            assert bits_of(merged) == bits_of(state)
            assert bits_of(kp.merge(a.sketch, b.sketch)) == bits_of(state.sketch)
    empty = kp.merge(start, start)
    assert empty.sketch.count == 0 and not empty.sketch.run.columns.any()


@pytest.mark.bounds
@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
@pytest.mark.parametrize("m", [1, 2, 7, 127, 128, 129, 256])
def test_paired_features_are_cosine_and_sine_of_one_angle(maker, m, rng):
    points = rng.standard_normal((40, 5))
    drawn = maker(G, 5, m, 3, paired=True)
    Z = kp.features(points, drawn) / math.sqrt(2 / m)
    whole = Z[:, : m // 2 * 2]
    assert np.abs(whole[:, ::2] ** 2 + whole[:, 1::2] ** 2 - 1).max(initial=0.0) < 1e-14
    assert np.abs(kp.features(points.astype(np.float32), drawn) / math.sqrt(2 / m) - Z).max() < 1e-5
    if drawn.frequencies.size:
        angles = points @ drawn.frequencies.T
        for j in range(0, m - 1, 2):  # the products know the difference of two points alone
            products = whole[:, j : j + 2] @ whole[:, j : j + 2].T
            assert np.abs(products - np.cos(angles[:, j][:, None] - angles[:, j])).max() < 1e-13


@pytest.mark.parametrize("dimension, most", [(1, 0.001), (3, 0.1), (10, 0.25)])
def test_phases_of_their_own_threw_away_what_low_discrepancy_gains(dimension, most):
    # .50, .505 and .58 where pairs have 1e-4, .072 and .19; means of 200 maps, errors of a mean square some 10 %
    steps = np.random.default_rng(5).standard_normal((200, dimension))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)

    def error(maker, paired):
        draws = []
        for seed, step in enumerate(steps):
            Z = kp.features(
                np.stack([step, 2 * step]),
                maker(kp.gaussian(1.0), dimension, 256, seed, paired=paired),
            )
            draws.append(Z[0] @ Z[1] - math.exp(-0.5))
        return 256 * np.mean(np.square(draws))

    assert error(kp.quasi_features_map, True) < most < 0.3 < error(kp.quasi_features_map, False)
    assert 0.25 < error(kp.fourier_features_map, True) < 0.5 < error(kp.fourier_features_map, False)
    assert dimension == 1 or error(kp.orthogonal_features_map, True) < 0.27


def test_errors_of_low_discrepancy_fall_faster_than_one_over_m():
    # they were stated as .015 / m for any m
    steps = np.random.default_rng(6).standard_normal((200, 3))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    for m, stated in ((64, 0.04), (256, 0.014), (1000, 0.004)):
        errors = []
        for seed, step in enumerate(steps):
            drawn = kp.quasi_features_map(kp.gaussian(1.0), 3, m, seed)
            Z = kp.features(np.stack([step, 2 * step]), drawn)
            errors.append(Z[0] @ Z[1] - math.exp(-0.5))
        assert 0.6 < m * np.mean(np.square(errors)) / stated < 1.6  # 12 % is a standard error


def test_streams_and_gradients_take_paired_features(rng):
    points, drawn = (
        rng.standard_normal((600, 3)),
        kp.fourier_features_map(kp.gaussian(2.0), 3, 300, 1, stored=False, paired=True),
    )
    stored = kp.fourier_features_map(kp.gaussian(2.0), 3, 300, 1, stored=True, paired=True)
    assert drawn.frequencies.size == 0
    assert np.array_equal(kp.features(points, drawn), kp.features(points, stored))
    exact = kp.kpca(points, kp.gaussian(2.0), 3, centered=False).values
    assert np.allclose(
        kp.finish(kp.update(kp.skpca_start(drawn, 40, centered=False), points), 3).values,
        exact,
        rtol=0.2,
    )
    states = [
        kp.dsgd_start(
            points, map, 2, steps=kp.DSGDSteps(feature_batch=33, initial=41), centered=False
        )
        for map in (drawn, stored)
    ]
    for _ in range(12):
        states = [kp.update(state, points[:200]) for state in states]
    assert np.array_equal(states[0].coef, states[1].coef)
    Z = math.sqrt(300) * kp.features(points, stored)
    assert np.abs(kp.features(points, states[0]) - Z @ states[0].coef).max() < 1e-12
    with pytest.raises(ValueError, match="a and b must have been started with the same arguments"):
        kp.merge(
            kp.skpca_start(drawn, 4, centered=False),
            kp.skpca_start(
                kp.fourier_features_map(kp.gaussian(2.0), 3, 300, 1, paired=False),
                4,
                centered=False,
            ),
        )


@functools.cache
def distribution(law):
    """P(w < x) for a coordinate w of the frequencies, by inverting its characteristic function: the kernel along an
    axis."""
    steps = np.concatenate([np.geomspace(1e-6, 1e-2, 400)[:-1], np.arange(1e-2, 400.0, 2.5e-3)])
    kernel = next(row for row in LAWS.values() if row.law == law).make(1.0)
    values = kp.gram(np.zeros((1, 1)), steps[:, None], kernel)[0] / steps
    return np.array(
        [
            0.5 + integrate.trapezoid(np.sin(steps * x) * values, steps) / np.pi + x * 1e-6 / np.pi
            for x in AT
        ]
    )


def frequencies_of(maker, kernel, d, count):
    """Independent frequencies of a map: one of each block of those that depend on each other."""
    if maker is kp.fastfood_features_map:
        size = 1 << (d - 1).bit_length()
        signs, order, weights, lengths = inner(kp._fastfood_parts)(
            kernel, d, count * size, np.uint64(kp._key(np.uint64(9), kp._FREQUENCIES))
        )
        hadamards = hadamard(size)
        # the first row of S H G P H B of each block
        return (
            lengths[:, :1]
            * np.einsum("bi,bij->bj", weights, hadamards[order])[:, :d]
            * signs[:, :d]
        )
    step = d if maker is kp.orthogonal_features_map else 1
    map = maker(kernel, d, count * step, 9, stored=False, paired=False)
    return kp._frequencies(map, 0, count * step)[::step]


AT = np.concatenate([-np.geomspace(0.05, 8.0, 60)[::-1], np.geomspace(0.05, 8.0, 60)])


@pytest.mark.parametrize("name", LAWS)
def test_frequencies_have_the_law_of_their_kernel(name):
    # a tolerance of .095 on kernel values took Matern 3/2 for 5/2. Kolmogorov and Smirnov, 1e-9 for each of some 100
    # tests
    row, count = LAWS[name], 40_000
    kernel = row.make(1.0)
    law, limit = distribution(row.law), math.sqrt(0.5 * math.log(2e9) / count)
    for made in FEATURES.values() if row.radial else with_trait(FEATURES, "any_law").values():
        maker = made.make
        for d in {max(d, made.least_d) for d in (1, 3, 10)}:
            W = frequencies_of(maker, kernel, d, count)
            assert W.shape == (count, d)
            axes = (
                np.concatenate([np.eye(d)[:2], np.ones((1, d)) / math.sqrt(d)])
                if row.radial
                else np.eye(d)[:1]
            )
            for axis in axes:
                found = np.searchsorted(np.sort(W @ axis), AT) / count
                assert np.abs(found - law).max() < limit, (maker.__name__, d)
                # the control: no other kernel's law passes
                if d == 1 and maker is kp.fourier_features_map:
                    others = {other.law for other in LAWS.values()} - {row.law}
                    assert all(
                        np.abs(found - distribution(other)).max() > limit for other in others
                    )


@pytest.mark.parametrize(
    "maker, settings, expected",
    [
        (
            kp.fourier_features_map,
            {"paired": False},
            [-0.16027180003767233, 0.2125194684902951, 0.1658641836055895],
        ),
        (
            kp.orthogonal_features_map,
            {},
            [-0.1042118345293307, -0.20783153658212086, 0.13190619955945032],
        ),
        (
            kp.fastfood_features_map,
            {},
            [-0.21349436495692117, 0.09205547341519141, 0.04027608017954631],
        ),
    ],
)
def test_maps_on_disk_have_a_seed_alone_and_would_have_drawn_other_features(
    maker, settings, expected
):
    found = kp.features(np.arange(5.0)[None] / 5, maker(kp.gaussian(2.0), 5, 37, 3, **settings))
    assert found[0, :3] == pytest.approx(expected, rel=1e-12)


# Streams that forget


def weights_of(n, forget):
    return 0.5 ** (np.arange(n)[::-1] / forget)


def in_blocks(update, state, X, block):
    for begin in range(0, len(X), block):
        state = update(state, X[begin : begin + block])
    return state


@pytest.mark.parametrize("half, share", [(True, 1.0), (False, 1.0), (True, 0.3)])
@pytest.mark.parametrize("block", [1, 7, 400])
def test_rows_of_a_sketch_that_forgets_halve_in_weight(half, share, block, rng):
    Z = rng.standard_normal((400, 12)) * 0.8 ** np.arange(12) + np.linspace(0, 2, 400)[:, None]
    state = in_blocks(
        kp.update, kp.fd_start(6, 12, half=half, share=share, half_life=50.0), Z, block
    )
    found = kp.finish(state)
    weighted = np.sqrt(weights_of(400, 50.0))[:, None] * Z
    values = np.linalg.eigvalsh(weighted.T @ weighted - found.B.T @ found.B)
    assert (
        found.squares == pytest.approx(np.square(weighted).sum(), rel=1e-12) and found.count == 400
    )
    assert (
        -1e-9 * found.squares < values[0]
        and values[-1] <= found.shrunk * (1 + 1e-9) < found.squares
    )
    whole = kp.finish(kp.update(kp.fd_start(6, 12, half=half, share=share, half_life=50.0), Z))
    assert np.abs(found.B.T @ found.B - whole.B.T @ whole.B).max() < 1e-9 * found.squares
    exact = kp.finish(
        kp.update(kp.fd_start(12, 12, half=half, share=share, half_life=50.0), Z)
    ).B  # of full rank
    assert np.abs(exact.T @ exact - weighted.T @ weighted).max() < 1e-10 * found.squares


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("block", [1, 150, 600])
def test_moments_of_features_that_are_forgotten_are_weighted_ones(centered, block, rng):
    X = rng.standard_normal((600, 3)) + np.linspace(0, 3, 600)[:, None]
    map, w = kp.fourier_features_map(kp.gaussian(2.0), 3, 24), weights_of(600, 80.0)
    Z = kp.features(X, map)
    means = w @ Z / w.sum()
    centred = Z - means * centered
    C = (w[:, None] * centred).T @ centred
    moments = in_blocks(kp.update, kp.rnca_start(map, centered=centered, half_life=80.0), X, block)
    sketch = in_blocks(
        kp.update, kp.skpca_start(map, 24, centered=centered, half_life=80.0), X, block
    )
    assert np.abs(moments.squares - C).max() < 1e-10 and np.abs(moments.means - means).max() < 1e-12
    B = kp.finish(sketch.sketch).B
    assert np.abs(B.T @ B - C).max() < 1e-10 and (
        not centered or np.abs(sketch.sketch.run.means - means).max() < 1e-12
    )
    for found in (kp.finish(moments, 3), kp.finish(sketch, 3)):
        assert np.allclose(found.values, np.linalg.eigvalsh(C)[::-1][:3], rtol=1e-10)
        assert found.count == round(w.sum())


def test_a_stream_that_forgets_follows_its_subspace_within_two_half_lives(rng):
    first, second = [
        rng.standard_normal((4000, 6)) * scales + 0.05 * rng.standard_normal((4000, 6))
        for scales in ([3, 2, 1, 0, 0, 0], [0, 0, 0, 3, 2, 1])
    ]
    angles = {}
    for forget in (None, 500.0):
        state = kp.update(
            kp.update(kp.fd_start(6, 6, half=False, share=1.0, half_life=forget), first),
            second[:1000],
        )
        angles[forget] = np.degrees(
            linalg.subspace_angles(kp.finish(state).B[:2].T, np.eye(6)[:, 3:5])[0]
        )
    assert angles[500.0] < 20 and angles[None] > 80


def test_states_that_forget_are_not_merged_and_none_forget_by_default(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 2))
    for row in with_trait(STREAMS, "forgets").values():
        with pytest.raises(ValueError, match="^merge: a and b must have no half_life"):
            row.merge(row.start(X, half_life=9.0), row.start(X, half_life=9.0))
        for wrong in (0.5, -1.0, np.nan, "5"):
            with pytest.raises(ValueError, match="half_life must be"):
                row.start(X, half_life=wrong)
        plain, slow = row.update(row.start(X), X), row.update(row.start(X, half_life=1e300), X)
        kp.save(tmp_path / "state.npz", slow)
        again = kp.load(tmp_path / "state.npz")
        assert bits_of(again) == bits_of(slow) and type(again) is type(slow)
        held = operator.attrgetter(row.forgets)
        assert np.allclose(held(plain), held(slow), rtol=1e-9, atol=1e-9)


def test_more_components_than_rows_were_refused_after_the_pass(monkeypatch):
    def read(*_):
        raise AssertionError("points were read first")

    monkeypatch.setattr(kp, "_skpca_update", read)
    monkeypatch.setattr(kp, "_rnca_update", read)
    with pytest.raises(ValueError, match="^skpca: k must be an int from 1 to 4, got 5"):
        kp.skpca(X, kp.gaussian(2.0), 5, 16, 4, centered=False)
    with pytest.raises(ValueError, match="^rnca: k must be an int from 1 to 16, got 17"):
        kp.rnca(X, kp.gaussian(2.0), 17, 16)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_without_points_was_finished_by_zeros(name):
    state = STREAMS[name].start(X)
    if name == "dsgd":  # its start has seen points
        assert np.isfinite(kp.features(X, STREAMS[name].finish(state))).all()
        return
    empty = [state, kp.merge(state, state)] if STREAMS[name].merges else [state]
    for nothing in empty:
        with pytest.raises(ValueError, match="^finish: state must have seen a point: call update"):
            STREAMS[name].finish(nothing)


@pytest.mark.parametrize("name", STREAMS)
def test_an_empty_batch_was_refused(name):
    row = STREAMS[name]
    state = row.update(row.start(X), X)
    for empty in (X[:0], np.float32(X[:0]), np.asfortranarray(X)[:0]):
        assert same_bits(kp.update(state, empty), state)
    start = row.start(X)
    assert same_bits(kp.update(start, X[:0]), start)
    with pytest.raises(ValueError, match=f"^update: X must have {X.shape[1]} columns, got 2"):
        kp.update(state, X[:0, :2])
    with pytest.raises(ValueError, match="^update: X must have at least one row and one column"):
        kp.update(state, X[:0, :0])
    with pytest.raises(ValueError, match="^update: Y must be None"):
        kp.update(state, X[:0], X[:0])


def test_an_empty_batch_of_a_frame_has_names_too():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    state = kp.update(kp.fd_start(3, 5), frame)
    assert same_bits(kp.update(state, frame[:0]), state)
    with pytest.raises(ValueError, match="^update: state and X must have the same columns"):
        kp.update(state, frame.iloc[:0, ::-1])


def test_update_merge_and_finish_find_the_functions_of_a_state():
    drawn = kp.fourier_features_map(G, 2, 20)
    rows = np.random.default_rng(0).standard_normal((60, 2))
    for start, name, largest in (
        (kp.fd_start(2, 2), "fd", None),
        (kp.skpca_start(drawn, 6), "skpca", 6),
        (kp.rnca_start(drawn), "rnca", 20),
    ):
        own = {verb: getattr(kp, f"_{name}_{verb}") for verb in ("update", "merge", "finish")}
        state, other = kp.update(start, rows[:30]), kp.update(start, rows[30:])
        assert equal(state, own["update"](start, rows[:30]))
        assert equal(kp.merge(state, other), own["merge"](state, other))
        if largest is None:
            assert equal(kp.finish(state), own["finish"](state))
        else:
            assert equal(kp.finish(state, 3), own["finish"](state, 3))
            assert equal(kp.finish(state), own["finish"](state, largest))  # all components
        for verb in ("update", "merge", "finish"):
            assert not hasattr(kp, f"{name}_{verb}")
    state = kp.update(kp.shadow_start(0.5, 2), rows)
    with pytest.raises(ValueError, match="^merge: a must be one of FDState, .*; got ShadowState"):
        kp.merge(state, state)
    views = [rows, kp.fourier_features_map(G, 2, 300, stored=False)]
    state = kp.dsgd_start(*views, 2, centered=False)
    assert equal(kp.update(state, rows), kp.update(state, rows))
    state = kp.dsgd_ksir_start(rows, rows[:, 0], views[1], 2)
    assert equal(kp.update(state, rows, rows[:, 0]), kp.update(state, rows, rows[:, 0]))
    assert equal(kp.finish(state), kp.finish(state))
    with pytest.raises(ValueError, match="^update: state must be one of .* got tuple"):
        kp.update((), rows)


def test_states_of_streams_show_their_counts_and_half_lives(rng):
    drawn = kp.fourier_features_map(G, 5, 20)
    for half_life in (None, 100.0):
        for start in (
            kp.fd_start(4, 5, half_life=half_life),
            kp.skpca_start(drawn, 6, half_life=half_life),
            kp.rnca_start(drawn, half_life=half_life),
        ):
            state = kp.update(start, X)
            assert (start.count, state.count) == (0, 300)
            assert start.half_life == state.half_life == half_life


def test_settings_of_batch_functions_are_those_of_streams():
    drawn = kp.fourier_features_map(G, 5, 40, 3)
    settings = {"half": False, "share": 0.5, "half_life": 80.0}
    state = kp.update(kp.skpca_start(drawn, 8, **settings), X)
    assert equal(kp.skpca(X, G, 4, 40, 8, 3, **settings), kp.finish(state, 4))
    state = kp.update(kp.rnca_start(drawn, half_life=80.0), X)
    assert equal(kp.rnca(X, G, 4, 40, 3, half_life=80.0), kp.finish(state, 4))
    state = kp.update(kp.fd_start(3, 5, **settings), X)
    assert equal(kp.frequent_directions(X, 3, **settings), kp.finish(state))


@numba.njit
def features_and_residuals(points, model, out):
    distances = np.empty(len(points))
    for i in range(len(points)):
        distances[i] = kp.residual_of(points[i], model, out[i])
    alone = np.empty_like(out)
    for i in range(len(points)):
        kp.features_of(points[i], model, alone[i])
    return distances, alone


@numba.njit
def features_one_by_one(points, model, out):
    for i in range(len(points)):
        kp.features_of(points[i], model, out[i])
    return out


@pytest.mark.parametrize(
    "maker", [row.make for row in REDRAWN.values()], ids=lambda maker: maker.__name__
)
@pytest.mark.parametrize("paired", [False, True])
def test_compiled_code_has_the_features_of_maps(maker, paired, rng):
    for kernel in (G, kp.scaled(kp.cauchy(1.0), 3.0)):
        found = maker(kernel, 5, 33, 2**63 + 5, paired=paired)
        points = rng.standard_normal((40, 5))
        out = features_one_by_one(points, found, np.full((40, 33), np.nan))
        assert np.abs(out - kp.features(points, found)).max() < 1e-13


@pytest.mark.parametrize("scale", [1.0, 9.0])
@pytest.mark.parametrize("centered", [False, True])
def test_compiled_code_has_the_features_and_residuals_of_streams(centered, scale, rng):
    kernel = kp.scaled(G, scale)
    points = np.concatenate([X[:20], 3.0 * rng.standard_normal((20, 5))])
    for model in (
        kp.skpca(X, kernel, 4, 101, 20, 3, centered=centered),
        kp.rnca(X, kernel, 4, 101, 3, centered=centered),
        kp.finish(kp.update(kp.skpca_start(kp.orthogonal_features_map(kernel, 5, 40), 9), X), 4),
        kp.finish(
            kp.update(kp.skpca_start(kp.fourier_features_map(kernel, 5, 40, stored=False), 9), X),
            4,
        ),
    ):
        out = np.full((40, 4), np.nan)
        distances, alone = features_and_residuals(points, model, out)
        assert np.abs(out - kp.features(points, model)).max() < 1e-12 * scale
        assert np.array_equal(out, alone)
        assert np.abs(distances**2 - kp.residual(points, model) ** 2).max() < 1e-13
        one = np.empty(4)
        assert kp.residual_of(points[3], model, one) == kp.residual(points[3:4], model)[0]
        assert np.array_equal(one, kp.features(points[3:4], model)[0])


@pytest.mark.parametrize(
    "model",
    [
        kp.fastfood_features_map(G, 3, 8),
        kp.quasi_features_map(G, 3, 8, stored=False),
        kp.finish(kp.update(kp.skpca_start(kp.fastfood_features_map(G, 3, 9), 8), np.eye(3))),
    ],
    ids=["fastfood", "quasi", "subspace"],
)
def test_compiled_code_refuses_maps_that_draw_all_their_frequencies_at_once(model):
    with pytest.raises(ValueError, match="model must store its frequencies"):
        features_one_by_one(np.zeros((1, 3)), model, np.empty((1, 8)))
    out = np.empty(8)  # from Python, features are those of `features`
    kp.features_of(np.ones(3), model, out)
    assert np.array_equal(out, kp.features(np.ones((1, 3)), model)[0])


@pytest.mark.parametrize("n", [40, 20_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_are_written_to_the_array_that_is_given(n, dtype, tmp_path, rng):
    points = rng.standard_normal((n, 3)).astype(dtype)
    drawn = kp.fourier_features_map(G, 3, 16)
    for model, width in (
        (drawn, 16),
        (kp.fastfood_features_map(G, 3, 9), 9),
        (kp.rnca(points, G, 4, 16), 4),
    ):
        expected = kp.features(points, model)
        for out in (
            np.empty((n, width), dtype),
            np.lib.format.open_memmap(tmp_path / "out.npy", "w+", dtype, (n, width)),
        ):
            assert kp.features(points, model, out=out) is out
            assert np.array_equal(out, expected) and expected.dtype == dtype


def test_residuals_of_a_subspace_are_relative_to_the_kernel():
    for scale in (1.0, 4.0):
        model = kp.skpca(X, kp.scaled(G, scale), 10, 200, 30, 1)
        Z = kp.features(X, model.feature_map) - model.means
        lengths = np.linalg.norm(Z - Z @ model.basis @ model.basis.T, axis=1)
        assert np.allclose(kp.residual(X, model), lengths / math.sqrt(scale), rtol=0, atol=1e-12)


def test_kinds_of_maps_have_a_record_each_and_files_have_their_names(tmp_path):
    makers = [row.make for row in FEATURES.values()]
    kinds = [kp._MAP_KINDS[maker(G, 3, 8).kind] for maker in makers]
    assert kinds == kp._MAP_KINDS
    for maker, kind in zip(makers, kinds):
        ways = [kind.frequencies, kind.directions, kind.parts]
        assert sum(way is not None for way in ways) == 1
        assert (kind.parts is None) == (kind.angles is None)
        kp.save(tmp_path / "map.npz", maker(G, 3, 8))
        with np.load(tmp_path / "map.npz") as held:
            assert str(held["kind"]) == kind.name
    with pytest.raises(ValueError, match="features: model must be a FourierMap"):
        kp.features(X, kp.fourier_features_map(G, 5, 8)._replace(kind=len(kp._MAP_KINDS)))


def test_sparse_points_are_for_maps_whose_frequencies_are_at_hand():
    drawn = kp.fastfood_features_map(G, 5, 8)
    points = sparse.csr_array(X)
    with pytest.raises(ValueError, match="^features: model must come from fourier_features_map or"):
        kp.features(points, drawn)
    with pytest.raises(ValueError, match="^features: X must be dense"):
        kp.features(points, kp.skpca(X, G, 2, 20, 5))
    with pytest.raises(ValueError, match="^residual: X must be dense"):
        kp.residual(points, kp.skpca(X, G, 2, 20, 5))
    stored = kp.orthogonal_features_map(G, 5, 8)
    assert np.allclose(kp.features(points, stored), kp.features(X, stored), atol=1e-13)


def equal(a, b):
    if isinstance(a, tuple):
        return type(a) is type(b) and all(map(equal, a, b))
    return np.array_equal(a, b)


@pytest.mark.parametrize("count, d", [(1, 1), (3, 40), (39, 40), (40, 40), (41, 40), (7, 2)])
def test_few_orthogonal_directions_took_whole_blocks(count, d, monkeypatch):
    # for 10 of 4000 coordinates, a matrix of order 4000 was factorized, in 21 s and 528 MB
    shapes = []
    qr = np.linalg.qr
    monkeypatch.setattr(np.linalg, "qr", lambda A: shapes.append(A.shape) or qr(A))
    W = kp._orthogonal_directions(kp._key(3, kp._FREQUENCIES), count, d)
    assert shapes[0][1:] == (d, min(count, d)) and math.prod(shapes[0]) < 2 * max(count, d) * d
    assert W.shape == (count, d)
    for block in np.split(W, range(d, count, d)):
        lengths = np.linalg.norm(block, axis=1)
        U = block / lengths[:, None]
        assert np.abs(U @ U.T - np.eye(len(U))).max() < 1e-12
    # the first directions are those of a whole block, up to rounding
    whole = kp._orthogonal_directions(kp._key(3, kp._FREQUENCIES), max(count, d), d)
    assert np.abs(W - whole[:count]).max() < 1e-12 * np.abs(whole).max()


def test_few_orthogonal_directions_are_uniform():
    W = [kp._orthogonal_directions(kp._key(s, kp._FREQUENCIES), 2, 6) for s in range(2000)]
    for part in np.moveaxis(W, 0, -1).reshape(12, -1):  # normal: a uniform direction times chi
        assert stats.kstest(part, "norm").pvalue > 1e-8
