# SPDX-License-Identifier: BSD-3-Clause
"""Many machines: the results of one, whatever the chunks, the workers and what befalls them."""

import doctest
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numba
import numpy as np
import pytest
import scipy.sparse

import kpcasketch as kp
from kpcasketch_tests.test_file import FUNCTIONS
from kpcasketch_tests.test_readme import snippets

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),    # distributed's own
              pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

FILE = pathlib.Path(kp.__file__)
X = np.random.default_rng(0).standard_normal((1200, 6))
KERNEL = kp.gaussian(2.0)
CHUNKS = {"one": (1200,), "even": (400, 400, 400), "uneven": (333, 0, 500, 3, 364), "many": (100,) * 12}


def spread(points, chunks="uneven"):
    sizes = CHUNKS.get(chunks, chunks)
    return da.from_array(points, chunks=(sizes, -1) if points.ndim == 2 else (sizes,))


@pytest.fixture(autouse=True)
def here(request):
    """Without a cluster, everything is computed by this thread."""
    if "client" in request.fixturenames:
        yield
    else:
        with dask.config.set(scheduler="sync"):
            yield


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0",
                                  silence_logs=50) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def assert_same(a, b):
    """The same bits and types, tuple by tuple."""
    if isinstance(a, tuple):
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype


def custom_kernel():
    return kp.custom(numba.njit(lambda x, y: np.exp(-np.abs(x - y).max())))


# Matrices, whose every entry is a function of seed and place.

@pytest.mark.bounds
@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sketched_matrices_have_the_bits_of_one_machine_whatever_the_chunks(chunks, dtype, rng):
    wide = rng.standard_normal((1200, 20)) + 3.0
    V = rng.standard_normal((1200, 3))
    for points, kernel in [(X, KERNEL), (wide, kp.gaussian(6.0)), (wide, kp.gaussian(0.5)), (wide, kp.laplacian(6.0)),
                           (X, kp.polynomial(2, 0.5, 1.0)), (X, kp.scaled(kp.gaussian(1e-8), 2.0)),
                           (X * 1e12, kp.cauchy(1e12))]:
        points = points.astype(dtype)
        D = spread(points, chunks)
        for made, expected in [(kp.dask_quantize_gram(D, kernel, 3), kp.quantize_gram(points, kernel, 3)),
                               (kp.dask_sample_gram(D, kernel, 9.5, 3), kp.sample_gram(points, kernel, 9.5, 3)),
                               (kp.dask_sample_quantize_gram(D, kernel, 9.5, 3),
                                kp.sample_quantize_gram(points, kernel, 9.5, 3))]:
            assert_same(kp.dask_collect(made), expected)
            assert_same(kp.dask_matmat(made, V), kp.matmat(expected, V))
            assert_same(kp.dask_matmat(made, V[:, 0].astype(np.float32)),
                        kp.matmat(expected, V[:, 0].astype(np.float32)))


def test_eigenpairs_of_a_spread_matrix_are_those_of_one_machine(client):
    A, B = kp.dask_quantize_gram(spread(X), KERNEL), kp.quantize_gram(X, KERNEL)
    assert_same(kp.block_lanczos_of(lambda V: kp.dask_matmat(A, V), A.n, 4, 1), kp.block_lanczos(B, 4, 1))


def test_a_custom_kernel_is_compiled_in_each_process(client):
    # its address is another in each of them, and calling it ended a worker
    kernel = kp.scaled(custom_kernel(), 2.0)
    assert_same(kp.dask_collect(kp.dask_quantize_gram(spread(X[:300], (100, 150, 50)), kernel, 1)),
                kp.quantize_gram(X[:300], kernel, 1))
    expansion = kp.kpca(X[:100], kernel, 3)
    assert_same(kp.dask_map(kp.expand, spread(X), expansion).compute(), kp.expand(X, expansion))
    found = kp.dask_landmarks(spread(X), kernel, 30)
    assert kp.dask_nystrom_kpca(spread(X), found, kernel, 2).kernel == kernel


# Maps.

def test_maps_are_lazy_and_give_what_one_machine_gives():
    read = []

    def block(points, first):
        read.append(first)
        return points

    calls = {function: arguments[1:] for function, arguments in kp._calls(X) if function in kp._BY_ROWS}
    assert set(calls) == set(kp._BY_ROWS)
    for dtype in (np.float64, np.float32):
        points = X.astype(dtype)
        parts = [da.from_delayed(dask.delayed(block)(points[i:i + 400], i), (400, 6), dtype)
                 for i in range(0, 1200, 400)]
        D = da.concatenate(parts)
        for function, arguments in calls.items() if dtype == np.float64 else [(kp.expand, calls[kp.expand])]:
            made, expected = kp.dask_map(function, D, *arguments), function(points, *arguments)
            assert not read and made.shape == expected.shape and made.dtype == expected.dtype == made._meta.dtype
            assert made.chunks[0] == (400, 400, 400)
            if function in (kp.gram_matmat, kp.expand, kp.expand_rounded, kp.manifold_features):
                # sums over more than 512 points are cut by the number of rows
                far = 1e-11 if dtype == np.float64 else 1e-3
                assert np.abs(made.compute() - expected).max() < far * np.abs(expected).max()
            else:
                assert_same(made.compute(), expected)
            read.clear()
    assert kp.dask_map(kp.gram_diagonal, spread(X), KERNEL)[5:9].compute().shape == (4,)


def test_points_of_other_types_are_what_they_are_elsewhere(rng):
    whole = rng.integers(0, 9, (1200, 6))
    expansion = kp.kpca(whole[:100], KERNEL, 2)
    for points in (whole, whole.astype(np.uint8), whole > 4, whole.astype(np.float16), np.asfortranarray(X)):
        assert_same(kp.dask_map(kp.expand, spread(points), expansion).compute(), kp.expand(points, expansion))
    # a block of another type than its array says
    mixed = da.concatenate([da.from_delayed(dask.delayed(lambda: X)(), X.shape, np.float32)] * 2)
    assert_same(kp.dask_map(kp.expand, mixed, expansion).compute()[:1200], kp.expand(X.astype(np.float32), expansion))


# Merges.

@pytest.mark.parametrize("chunks", CHUNKS)
def test_merged_frequent_directions_keep_the_bound_of_one_pass(chunks, rng):
    Z = rng.standard_normal((1200, 30)) * 0.9 ** np.arange(30)
    for half, share in ((True, 1.0), (False, 1.0), (True, 0.3)):
        found = kp.dask_frequent_directions(spread(Z, chunks), 12, half, share)
        off = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
        assert off[0] >= -1e-9 and off[-1] <= found.shrunk * (1 + 1e-12) and found.count == 1200
        divisor = share * (6 if half else 12)
        tail = np.sort(np.linalg.eigvalsh(Z.T @ Z))[::-1]
        assert all(found.shrunk <= tail[k:].sum() / (divisor - k) for k in range(int(np.ceil(divisor))) if k < divisor)
    wide = kp.dask_frequent_directions(spread(Z, chunks), 30)           # more rows than most partitions have
    assert wide.B.shape == (30, 30)


@pytest.mark.parametrize("centered", [False, True])
def test_merged_skpca_keeps_its_bound_and_finds_what_one_pass_finds(centered):
    Z = kp.fourier_features(X, kp.fourier_features_map(KERNEL, 6, 200, 1))
    Z = Z - Z.mean(0) if centered else Z
    for chunks in CHUNKS:
        found = kp.dask_skpca(spread(X, chunks), KERNEL, 200, 60, 4, 1, centered)
        one = kp.skpca(X, KERNEL, 200, 60, 4, 1, centered)
        lengths = ((Z @ found.basis) ** 2).sum(0)
        assert (lengths >= found.values - 1e-9).all() and (lengths <= found.values + found.shrunk + 1e-9).all()
        assert found.shrunk <= 2 * (Z**2).sum() / 60 and found.count == 1200
        assert np.allclose(found.means, one.means, atol=1e-13)
        assert np.rad2deg(kp.principal_angles(found.basis, one.basis)).max() < 15


@pytest.mark.parametrize("centered", [False, True])
def test_sums_of_features_give_the_components_of_one_machine(centered):
    drawn = kp.fourier_features_map(KERNEL, 6, 80, 1)
    one = kp.rnca(X, drawn, 4, 0, centered)
    for chunks in CHUNKS:
        found = kp.dask_rnca(spread(X, chunks), drawn, 4, 0, centered)
        assert np.abs(found.basis - one.basis).max() < 1e-10 and np.allclose(found.values, one.values)
        assert found.count == 1200


@pytest.mark.parametrize("chunks", CHUNKS)
def test_reservoirs_and_shadows_are_those_of_one_machine(chunks):
    D = spread(X, chunks)
    state = kp.reservoir_update(kp.reservoir_start(40, 6, 3), X)
    assert_same(kp.dask_reservoir(D, 40, 3), state)
    assert_same(kp.reservoir_update(kp.dask_reservoir(D, 40, 3), X), kp.reservoir_update(state, X))
    for points, eps in ((X, 2.0), (X, 0.4), (X, 50.0), (X.astype(np.float32), 1.5), (X[:, :1].copy(), 0.1),
                        (np.ones((1200, 2)), 1.0)):
        found, one = kp.dask_shadow_select(spread(points, chunks), eps), kp.shadow_select(points, eps)
        assert_same(found[:2], one[:2])
        assert_same(kp.dask_map(kp.shadow_labels, spread(points, chunks), found.centers, eps).compute(), one.labels)
    assert kp.dask_median_bandwidth(D, 5) == kp.median_bandwidth(X, 5)


# Landmarks.

def test_landmarks_are_as_good_as_those_of_one_machine(rng):
    far = rng.random(3000) < 0.03
    points = np.where(far[:, None], 20 + 0.1 * rng.standard_normal((3000, 6)), rng.standard_normal((3000, 6)))
    K, errors, reached = kp.gram(points, points, KERNEL), [], 0
    for seed in range(8):
        found = kp.dask_landmarks(da.from_array(points, chunks=(400, -1)), KERNEL, 60, seed)
        assert np.array_equal(found.points, points[found.indices]) and (np.diff(found.indices) > 0).all()
        assert found.indices.size == 60
        other = kp.recursive_rls_accelerated(points, KERNEL, 60, seed)
        assert 0.6 < (found.weights**2).sum() / 3000 < 1.6
        reached += far[found.indices].any()
        errors.append([np.trace(K) - (kp.nystrom(points, rows, KERNEL) ** 2).sum()
                       for rows in (found.indices, other.indices)])
    ours, theirs = np.mean(errors, 0)
    assert ours < 1.1 * theirs and reached >= 4        # a draw may miss the far cluster: one of 32 did
    few = kp.dask_landmarks(spread(X), KERNEL, 5000)
    assert np.array_equal(few.indices, np.arange(1200)) and np.array_equal(few.points, X) and (few.weights == 1).all()
    assert kp.dask_landmarks(spread(X), KERNEL, 1).indices.size == 1


def test_kernel_pca_and_ridge_over_landmarks_are_those_of_one_machine():
    Y = np.column_stack((np.sin(X[:, 0]), 1e8 * X[:, 1], np.zeros(1200)))
    for dtype in (np.float64, np.float32):
        points, near = X.astype(dtype), 1e-9 if dtype == np.float64 else 3e-3
        found = kp.dask_landmarks(spread(points), KERNEL, 40)
        for landmarks in (found, found.indices, found.points, kp.Landmarks(*found[1:])):
            one = kp.nystrom_kpca(points, found.points, KERNEL, 3)
            many = kp.dask_nystrom_kpca(spread(points), landmarks, KERNEL, 3)
            assert many.coef.dtype == dtype
            assert np.allclose(many.values, one.values, rtol=1e-5 if dtype == np.float32 else 1e-11)
            assert np.abs(kp.expand(points, many) - kp.expand(points, one)).max() < near
        for targets in (Y, spread(Y, "even"), da.from_array(Y, chunks=(500, 2)), Y[:, 0], spread(Y[:, 0], "many"),
                        Y[:, 0] > 0):
            one = kp.nystrom_ridge(points, np.asarray(targets), found.points, KERNEL, 0.1)
            many = kp.dask_nystrom_ridge(spread(points), targets, found, KERNEL, 0.1)
            scale = np.abs(one.coef).max(0) + (np.abs(one.coef).max(0) == 0)
            assert (np.abs(many.coef - one.coef).max(0) <= (1e-8 if dtype == np.float64 else 1e-3) * scale).all()


def test_clusters_are_those_of_one_machine(rng):
    F = np.concatenate([c + 0.1 * rng.standard_normal((300, 3))
                        for c in 3 * rng.standard_normal((4, 3))])[rng.permutation(1200)]
    one = kp.kernel_kmeans(F, 4)
    for chunks in CHUNKS:
        found = kp.dask_kernel_kmeans(spread(F, chunks), 4)
        assert np.isclose(found.cost, one.cost) and found.labels.shape == (1200,)
        labels = found.labels.compute()
        assert np.unique(labels * 4 + one.labels).size == 4
        assert np.allclose(found.centers[labels[0]], F[labels == labels[0]].mean(0))
    for iterations in (1, 2):                          # before it has settled
        found = kp.dask_kernel_kmeans(spread(X), 7, 0, 1, iterations)
        distances = ((X[:, None] - found.centers) ** 2).sum(-1)
        assert np.isclose(found.cost, distances.min(1).sum())
        assert np.array_equal(found.labels.compute(), distances.argmin(1))


def test_rows_for_the_first_centers_are_not_drawn_by_the_numbers_of_the_centers(monkeypatch):
    """Both were the first numbers of one key: which rows were held decided which of them became centers."""
    purposes, key = [], kp._python_key
    monkeypatch.setattr(kp, "_python_key", lambda seed, purpose: (purposes.append(purpose), key(seed, purpose))[1])
    kp.dask_kernel_kmeans(spread(X), 3, 5)
    assert kp._FIRST_ROWS in purposes and kp._CENTERS not in purposes
    drawn = [key(5, purpose) for purpose in range(kp._START, kp._FIRST_ROWS + 1)]
    assert len(set(drawn)) == len(drawn)


# Workers.

def results(D):
    """What each kind of function makes of points."""
    drawn = kp.fourier_features_map(KERNEL, 6, 40)
    found = kp.dask_landmarks(D, KERNEL, 30, 2)
    return (kp.dask_skpca(D, KERNEL, 60, 20, 3, 2), kp.dask_rnca(D, drawn, 3), kp.dask_frequent_directions(D, 4), found,
            kp.dask_nystrom_kpca(D, found, KERNEL, 3), kp.dask_shadow_select(D, 1.0),
            kp.dask_collect(kp.dask_quantize_gram(D, KERNEL, 2)),
            kp.dask_collect(kp.dask_sample_gram(D, KERNEL, 5.0, 2)))


def test_results_do_not_depend_on_the_workers(client):
    D = spread(X)
    many = results(D)
    with dask.config.set(scheduler="sync"):
        assert_same(many, results(D))
    before = numba.get_num_threads()
    with dask.config.set(scheduler="threads", num_workers=4):           # numba's threads would meet
        assert_same(many, results(D))
    assert numba.get_num_threads() == before
    with distributed.Client(n_workers=1, threads_per_worker=2, dashboard_address=":0", silence_logs=50, processes=True):
        assert_same(many, results(D))


def slow_block(first, rows):
    time.sleep(0.3)
    return X[first:first + rows]


def test_a_killed_worker_changes_nothing(client, rng):
    parts = [da.from_delayed(dask.delayed(slow_block, pure=False)(i, 100), (100, 6), float)
             for i in range(0, 1200, 100)]
    D, expected = da.concatenate(parts), kp.dask_skpca(spread(X, "many"), KERNEL, 60, 20, 3)

    def kill():
        workers = client.run(os.getpid)
        time.sleep(0.8)
        os.kill(next(iter(workers.values())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        assert_same(kp.dask_skpca(D, KERNEL, 60, 20, 3), expected)
    finally:
        killer.join()
    client.wait_for_workers(2)
    # and one that holds a part of a matrix
    A, V = kp.dask_quantize_gram(spread(X, "many"), KERNEL), rng.standard_normal((1200, 2))
    product = kp.dask_matmat(A, V)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    assert_same(kp.dask_matmat(A, V), product)
    client.wait_for_workers(2)


def tasks(client):
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def no_tasks(client):
    """Whether the scheduler has forgotten everything, within seconds."""
    for _ in range(100):
        if tasks(client) == 0:
            return True
        time.sleep(0.1)
    return False


def test_what_is_cancelled_or_dropped_leaves_nothing_behind(client):
    parts = [da.from_delayed(dask.delayed(slow_block, pure=False)(i, 100), (100, 6), float)
             for i in range(0, 1200, 100)]
    future = client.compute(kp.dask_map(kp.gram_diagonal, da.concatenate(parts), KERNEL))
    time.sleep(0.5)
    assert tasks(client) > 0
    future.cancel()
    del future
    assert no_tasks(client)
    A = kp.dask_quantize_gram(spread(X), KERNEL)
    assert tasks(client) > 0
    del A
    assert no_tasks(client)
    kp.dask_skpca(spread(X), KERNEL, 60, 20, 3)
    assert no_tasks(client)
    bad = X.copy()
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="in rows 0 to 332"):
        kp.dask_quantize_gram(spread(bad), KERNEL)
    assert no_tasks(client)


@pytest.mark.slow
def test_two_workers_that_start_cold_do_each_other_no_harm(tmp_path):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "KPCASKETCH_QUIET": "1"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50,
                                  env=environment) as cold:
        with distributed.Client(cold):
            assert_same(kp.dask_map(kp.gram_diagonal, spread(X, "many"), KERNEL).compute(), kp.gram_diagonal(X, KERNEL))
            assert_same(kp.dask_map(kp.rademacher_projection, spread(X, "many"), 3, 0).compute(),
                        kp.rademacher_projection(X, 3, 0))


# What is refused.

BAD = X.copy()
BAD[700, 2] = np.nan
LABELS = np.arange(1200.0)
FOUND = X[::60].copy()


@pytest.mark.parametrize("call", [
    lambda D: kp.dask_map(kp.fourier_features, D, kp.fourier_features_map(KERNEL, 6, 9)).compute(),
    lambda D: kp.dask_skpca(D, KERNEL, 60, 20, 3), lambda D: kp.dask_rnca(D, kp.fourier_features_map(KERNEL, 6, 9), 3),
    lambda D: kp.dask_frequent_directions(D, 3), lambda D: kp.dask_shadow_select(D, 1.0),
    lambda D: kp.dask_landmarks(D, KERNEL, 9),
    lambda D: kp.dask_nystrom_kpca(D, FOUND, KERNEL, 3), lambda D: kp.dask_nystrom_ridge(D, LABELS, FOUND, KERNEL, 1.0),
    lambda D: kp.dask_nystrom_ridge(spread(X), D[:, 2], FOUND, KERNEL, 1.0),
    lambda D: kp.dask_kernel_kmeans(D, 3), lambda D: kp.dask_quantize_gram(D, KERNEL),
    lambda D: kp.dask_sample_gram(D, KERNEL, 2.0),
    lambda D: kp.dask_sample_quantize_gram(D, KERNEL, 2.0),
])
def test_a_block_that_is_not_finite_is_named_by_its_rows(call):
    with pytest.raises(ValueError, match="finite.*; in rows 333 to 832$"):
        call(spread(BAD))


def test_the_error_of_a_block_reaches_the_caller_from_a_worker(client):
    for call in (lambda: kp.dask_map(kp.gram_diagonal, spread(BAD), KERNEL).compute(),
                 lambda: kp.dask_landmarks(spread(BAD), KERNEL, 9)):
        with pytest.raises(ValueError, match="in rows 333 to 832"):
            call()


CALLS = {
    "dask_map": lambda D, kernel: kp.dask_map(kp.gram_diagonal, D, kernel),
    "dask_skpca": lambda D, kernel: kp.dask_skpca(D, kernel, 60, 20, 3),
    "dask_landmarks": lambda D, kernel: kp.dask_landmarks(D, kernel, 9),
    "dask_nystrom_kpca": lambda D, kernel: kp.dask_nystrom_kpca(D, FOUND, kernel, 3),
    "dask_nystrom_ridge": lambda D, kernel: kp.dask_nystrom_ridge(D, LABELS, FOUND, kernel, 1.0),
    "dask_quantize_gram": lambda D, kernel: kp.dask_quantize_gram(D, kernel),
    "dask_sample_gram": lambda D, kernel: kp.dask_sample_gram(D, kernel, 2.0),
    "dask_sample_quantize_gram": lambda D, kernel: kp.dask_sample_quantize_gram(D, kernel, 2.0),
    "dask_median_bandwidth": lambda D, kernel: kp.dask_median_bandwidth(D),
    "dask_frequent_directions": lambda D, kernel: kp.dask_frequent_directions(D, 3),
    "dask_rnca": lambda D, kernel: kp.dask_rnca(D, kp.fourier_features_map(KERNEL, 6, 9), 3),
    "dask_reservoir": lambda D, kernel: kp.dask_reservoir(D, 9),
    "dask_shadow_select": lambda D, kernel: kp.dask_shadow_select(D, 1.0),
    "dask_kernel_kmeans": lambda D, kernel: kp.dask_kernel_kmeans(D, 3),
}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_are_no_runs_of_rows_are_refused_by_name(name):
    call, D = CALLS[name], spread(X)
    for value, words in [(X, "must be a dask array"), (X.tolist(), "must be a dask array"),
                         (D.rechunk((-1, 3)), r"rechunk\(\{1: -1\}\)"),
                         (D[D[:, 0] > 0], "compute_chunk_sizes"), (D[:, 0], "2-D"), (D.astype(complex), "real numbers"),
                         (D[:0], "at least one row"), (D[:, :0], "at least one row and one column"),
                         (D.astype(object), "real numbers"), (dask.delayed(X), "must be a dask array")]:
        with pytest.raises(ValueError, match=f"^{name}: .*{words}"):
            call(value, KERNEL)


@pytest.mark.parametrize("name", [name for name in CALLS if name in (
    "dask_map", "dask_skpca", "dask_landmarks", "dask_nystrom_kpca", "dask_nystrom_ridge", "dask_quantize_gram",
    "dask_sample_gram")])
def test_kernels_that_cannot_be_sent_are_refused_with_the_reason(name):
    rows = spread(np.arange(1200.0)[:, None])
    for kernel, words in [(kp.precomputed(np.eye(1200)), "precomputed: its matrix is in one memory"),
                          ("gaussian", "Kernel"),
                          (KERNEL._replace(gamma=np.nan), "Kernel")]:
        with pytest.raises(ValueError, match=f"{words}"):
            CALLS[name](rows, kernel)
    if name not in ("dask_skpca", "dask_map"):
        with pytest.raises(ValueError, match="1e-37"):
            CALLS[name](spread(X.astype(np.float32)), kp.scaled(KERNEL, 1e-60))


@pytest.mark.parametrize("call, words", [
    (lambda D: kp.dask_map(kp.kpca, D, KERNEL, 2), "function must be one of expand"),
    (lambda D: kp.dask_map(len, D), "function must be one of"),
    (lambda D: kp.dask_map(kp.expand, D[:, :3], kp.kpca(X[:50], KERNEL, 2)), "^expand: .*columns"),
    (lambda D: kp.dask_skpca(D, KERNEL, 60, 20, 21), "^dask_skpca: k"),
    (lambda D: kp.dask_skpca(D, KERNEL, 60, 61, 2), "^dask_skpca: ell"),
    (lambda D: kp.dask_skpca(D, kp.linear(), 60, 20, 2), "shift-invariant"),
    (lambda D: kp.dask_skpca(D, KERNEL, 60, 20, 2, -1), "^dask_skpca: seed"),
    (lambda D: kp.dask_frequent_directions(D, 7), "^dask_frequent_directions: ell"),
    (lambda D: kp.dask_frequent_directions(D, 3, True, 0.0), "share"),
    (lambda D: kp.dask_rnca(D, kp.fourier_features_map(KERNEL, 6, 9), 10), "k must"),
    (lambda D: kp.dask_rnca(D, KERNEL, 3), "map must be a FourierMap"),
    (lambda D: kp.dask_rnca(D, kp.fourier_features_map(KERNEL, 5, 9), 3), "map must be a FourierMap"),
    (lambda D: kp.dask_reservoir(D, 0), "^dask_reservoir: c"), (lambda D: kp.dask_shadow_select(D, 0.0), "eps"),
    (lambda D: kp.dask_shadow_select(D, "1"), "eps"),
    (lambda D: kp.dask_landmarks(D, KERNEL, 0), "s must be at least 1"),
    (lambda D: kp.dask_landmarks(D, KERNEL, 2.5), "s must be an integer"),
    (lambda D: kp.dask_landmarks(D, KERNEL, 5, -1), "seed"),
    (lambda D: kp.dask_nystrom_kpca(D, np.array([1200]), KERNEL, 1), "row numbers"),
    (lambda D: kp.dask_nystrom_kpca(D, X[:5, :3], KERNEL, 1), "columns"),
    (lambda D: kp.dask_nystrom_kpca(D, X[:5], KERNEL, 6), "k must"),
    (lambda D: kp.dask_nystrom_kpca(D, np.full((3, 6), np.nan), KERNEL, 1), "finite"),
    (lambda D: kp.dask_nystrom_kpca(D, "all", KERNEL, 1), "landmarks must be"),
    (lambda D: kp.dask_nystrom_kpca(D, KERNEL, KERNEL, 1), "landmarks must be"),
    (lambda D: kp.dask_nystrom_kpca(D, D, KERNEL, 1), "landmarks must be"),
    (lambda D: kp.dask_map(X, D), "function must be one of"),
    (lambda D: kp.dask_collect(kp.dask_quantize_gram(D, KERNEL)._replace(n=7)), "A must be a Spread"),
    (lambda D: kp.dask_nystrom_ridge(D, LABELS[1:], FOUND, KERNEL, 1.0), "same number of rows"),
    (lambda D: kp.dask_nystrom_ridge(D, LABELS, FOUND, KERNEL, 0.0), "lam must be positive"),
    (lambda D: kp.dask_nystrom_ridge(D, LABELS.astype(str), FOUND, KERNEL, 1.0), "real numbers"),
    (lambda D: kp.dask_kernel_kmeans(D, 0), "k must"), (lambda D: kp.dask_kernel_kmeans(D, 1201), "k must"),
    (lambda D: kp.dask_kernel_kmeans(D, 2, 0, 0), "restarts"),
    (lambda D: kp.dask_kernel_kmeans(D, 2, 0, 1, 0), "max_iterations"),
    (lambda D: kp.dask_sample_gram(D, KERNEL, 0.5), "s must be at least 1"),
    (lambda D: kp.dask_sample_gram(D, KERNEL, np.inf), "s must be finite"),
    (lambda D: kp.dask_quantize_gram(D, KERNEL, 1.5), "seed"),
    (lambda D: kp.dask_quantize_gram(D * 1e60, kp.polynomial(6, 1.0, 0.0)), "finite values"),
    (lambda D: kp.dask_sample_quantize_gram(D, kp.scaled(KERNEL, 1e200), 1e200), "overflows"),
    (lambda D: kp.dask_matmat(kp.quantize_gram(X, KERNEL), X), "A must be a Spread"),
    (lambda D: kp.dask_collect(D), "A must be a Spread"),
    (lambda D: kp.dask_matmat(kp.dask_quantize_gram(D, KERNEL), X[:5]), "as many rows"),
    (lambda D: kp.dask_matmat(kp.dask_quantize_gram(D, KERNEL), BAD), "finite"),
])
def test_arguments_out_of_their_range_are_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call(spread(X))


def test_a_block_that_is_not_what_its_chunk_says_is_refused():
    for block, words in [(X[:7], r"shape \(7, 6\), not \(9, 6\)"), (X[:9].T, "shape"),
                         (np.ma.masked_less(X[:9], 0), "MaskedArray"),
                         (X[:9] + 1j, "complex"), (X[:9].astype(str), "real numbers"), (X[:9].tolist(), "got list"),
                         (scipy.sparse.csr_matrix(X[:9]), "csr_matrix")]:
        lying = da.from_delayed(dask.delayed(lambda block: block, traverse=False)(dask.delayed(block, traverse=False)),
                                (9, 6), float)
        for call in (lambda: kp.dask_frequent_directions(lying, 2), lambda: kp.dask_quantize_gram(lying, KERNEL)):
            with pytest.raises(ValueError, match=f"dask_\\w+: [XZ] must have .*{words}.*in rows 0 to 8"):
                call()


def test_large_seeds_came_after_small_ones_and_did_not_fit():
    D = spread(X)
    for seed in (3, 2**63, 2**64 - 1, np.array(3)):
        assert_same(kp.dask_reservoir(D, 3, seed), kp.reservoir_update(kp.reservoir_start(3, 6, seed), X))
        assert_same(kp.dask_collect(kp.dask_sample_gram(D, KERNEL, 9.0, seed)), kp.sample_gram(X, KERNEL, 9.0, seed))
        assert_same(kp.dask_collect(kp.dask_quantize_gram(D, KERNEL, seed)), kp.quantize_gram(X, KERNEL, seed))
        kp.dask_landmarks(D, KERNEL, 9, seed)


def test_without_dask_the_error_says_how_to_get_it():
    code = ("import sys; sys.modules['dask'] = None\nimport kpcasketch as kp\n"
            "try: kp.dask_landmarks(None, kp.gaussian(1.0), 3)\nexcept ImportError as error: print(error)\n"
            "sys.exit(kp.main(['x', '--workers', '2']))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=FILE.parent)
    assert "pip install" in run.stdout and run.returncode == 2 and "pip install" in run.stderr


@pytest.mark.slow
def test_the_walk_of_the_readme(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(str(tmp_path / "points.zarr"), shape=X.shape, chunks=(300, 4), dtype=X.dtype)[:] = X
    walk = next(snippet for snippet in snippets("Walks") if "dask" in snippet)
    walk = walk.replace("Client()",
                        "Client(n_workers=2, threads_per_worker=1, dashboard_address=':0', silence_logs=50)")
    code = walk + "\n    print(eigen.values[0], found.indices.size)"
    (tmp_path / "walk.py").write_text(code)
    run = subprocess.run([sys.executable, "walk.py"], capture_output=True, text=True, cwd=tmp_path, timeout=300,
                         env={**os.environ, "PYTHONPATH": str(FILE.parent), "KPCASKETCH_QUIET": "1"})
    assert run.returncode == 0, run.stderr
    value, size = run.stdout.split()
    kernel = kp.gaussian(kp.median_bandwidth(X))
    assert float(value) == kp.block_lanczos(kp.quantize_gram(X, kernel), 10).values[0] and size == "300"
    assert zarr.open(str(tmp_path / "embedding.zarr")).shape == (1200, 10)


def test_examples_of_functions_that_need_dask():
    for name in FUNCTIONS:
        if name.startswith("dask_"):
            text = getattr(kp, name).__doc__.replace("# doctest: +SKIP", "")
            example = doctest.DocTestParser().get_doctest(text, {**vars(kp), "np": np}, name, None, None)
            assert example.examples and doctest.DocTestRunner().run(example).failed == 0, name


# The command line.

def command(*arguments, code=0):
    run = subprocess.run([sys.executable, "-m", "kpcasketch", *map(str, arguments)], capture_output=True, text=True,
                         timeout=600,
                         env={**os.environ, "PYTHONPATH": str(FILE.parent), "KPCASKETCH_QUIET": "1"})
    assert run.returncode == code, run.stderr
    return run.stdout if code == 0 else run.stderr


def test_the_command_line_reads_directories_on_a_cluster_of_its_own(tmp_path):
    folder = tmp_path / "points"
    folder.mkdir()
    for i in range(3):
        np.save(folder / f"part{i}.npy", X[400 * i:400 * i + 400])
    constant = X.copy()
    constant[:, 2] = 0.1
    np.save(tmp_path / "constant.npy", constant)
    command(tmp_path / "constant.npy", "--workers", 1, "-k", 2, "-s", 40, "-o", tmp_path / "c.npz", "--standardize")
    with np.load(tmp_path / "c.npz") as file:
        assert file["standardized.scale"][2] == 1.0    # the rounding of its variance was taken for one
    out = command("cluster", folder, "--workers", 1, "-k", 3, "-s", 40, "-o", tmp_path / "a.npz", "--standardize")
    assert "1200 points, 6 coordinates" in out and "1 worker" in out
    with np.load(tmp_path / "a.npz") as file:
        assert file["embedding"].shape == (1200, 3)
        again = command("apply", tmp_path / "a.npz", folder / "part1.npy", "-o", tmp_path / "b.npy")
        assert "wrote" in again and np.allclose(np.load(tmp_path / "b.npy"), file["embedding"][400:800], atol=1e-10)
    assert "unrecognized arguments: --state" in command(folder, "--state", "x.npz", code=2)
    assert "invalid choice: 'lanczos'" in command(folder, "--method", "lanczos", code=2)
    np.save(folder / "part9.npy", X[:5, :3])
    assert "same number of columns" in command(folder, "--workers", 1, code=2)
    (folder / "part9.npy").unlink()
    kept = (folder / "part1.npy").read_bytes()
    for place in (folder / "part1.npy", folder / "new.npy"):           # the points were overwritten
        assert "among the points" in command(folder, "--workers", 1, "-k", 6, "-o", place, code=2)
    assert (folder / "part1.npy").read_bytes() == kept
    assert "--ell must be" in command(folder, "--method", "skpca", "-m", 30, "--ell", 40, code=2)
    np.save(folder / "part9.npy", BAD[690:710])
    error = command(folder, "--workers", 1, "--sigma", 2, "-s", 40, "-k", 2, code=2)
    assert error.strip().splitlines()[-1].endswith("in rows 1200 to 1219") and "Traceback" not in error


def test_the_command_line_joins_a_cluster_and_reads_a_zarr_store(tmp_path, cluster):
    zarr = pytest.importorskip("zarr")
    store = zarr.create_array(str(tmp_path / "points.zarr"), shape=X.shape, chunks=(100, 4), dtype=X.dtype)
    store[:] = X
    address = cluster.scheduler_address
    out = command(tmp_path / "points.zarr", "--scheduler", address, "-k", 3, "--method", "skpca", "-m", 60, "--ell", 20,
                  "--sigma", 2,
                  "-o", tmp_path / "a.zarr")
    assert "2 workers" in out
    found = kp.dask_skpca(da.from_zarr(str(tmp_path / "points.zarr")).rechunk((100, -1)), KERNEL, 60, 20, 3)
    assert zarr.open(str(tmp_path / "a.zarr")).shape == (1200, 3) and found.values[0] > 0
    out = command(tmp_path / "points.zarr", "--scheduler", address, "-k", 2, "--method", "quantize", "--sigma", 2, "-o",
                  tmp_path / "q.npz")
    with np.load(tmp_path / "q.npz") as file:
        assert_same(file["vectors"], kp.block_lanczos(kp.quantize_gram(X, KERNEL), 2).vectors)


def test_maps_were_tried_on_a_row_of_ones_far_from_the_model(rng):
    C = rng.standard_normal((9, 4)) * 0.1 + 1e4
    far = kp.laplacian_eigenmap(C, np.ones(9), kp.gaussian(0.2), 2)
    found = kp.dask_map(kp.manifold_features, spread(C, 4), far).compute()
    assert np.array_equal(found, kp.manifold_features(C, far))


def test_every_pair_of_blocks_was_given_all_entries_of_its_row():
    starts, s, keep = [0, 5, 40, 41, 100], 3.0, np.uint64(kp._key(np.uint64(3), kp._KEEP))
    for a in range(4):
        whole, indptr = kp._kept_in(starts[a], starts[a + 1], 100, s, keep)
        parts = kp._kept_by_blocks(a, starts, s, keep)
        assert len(parts) == 4 - a and sum(len(indices) for indices, _ in parts) == len(whole)
        for b, (indices, ends) in enumerate(parts, a):
            rows = [[j for j in whole[indptr[i]:indptr[i + 1]] if starts[b] <= j < starts[b + 1]]
                    for i in range(starts[a + 1] - starts[a])]
            assert indices.tolist() == [j for row in rows for j in row]
            assert np.diff(ends).tolist() == [len(row) for row in rows]


def test_points_of_a_matrix_are_computed_once_and_in_few_blocks(monkeypatch):
    calls = []

    def count(block):
        calls.append(len(block))
        return block
    D = da.from_array(X, chunks=(4, -1)).map_blocks(count, dtype=X.dtype, meta=np.empty((0, X.shape[1])))
    monkeypatch.setattr(kp, "_MOST_BLOCKS", 7)
    for make, one in ((lambda: kp.dask_quantize_gram(D, KERNEL, 2), kp.quantize_gram(X, KERNEL, 2)),
                      (lambda: kp.dask_sample_gram(D, KERNEL, 5.0, 2), kp.sample_gram(X, KERNEL, 5.0, 2))):
        calls.clear()
        A = make()
        assert len(A.parts) <= 7 and len(calls) == -(-len(X) // 4)
        assert_same(kp.dask_collect(A), one)


def test_a_matrix_whose_workers_are_gone_is_refused_by_name():
    class Gone:
        def __dask_graph__(self):
            raise KeyError("lost")
    lost = kp.Spread((Gone(),), np.array([0, 3]), 3)
    with pytest.raises(ValueError, match="dask_matmat: A must lie on workers that are still there"):
        kp.dask_matmat(lost, np.ones(3))


def test_a_store_was_quantized_whole_whatever_it_took():
    # 4.8 million rows would take 2,880 GB: no word of it
    da = pytest.importorskip("dask.array")
    store = da.zeros((48_000_000, 4), chunks=(1_000_000, 4))
    for make in (lambda: kp.dask_quantize_gram(store, kp.gaussian(1.0)),
                 lambda: kp.dask_sample_gram(store, kp.gaussian(1.0), 100.0),
                 lambda: kp.dask_sample_quantize_gram(store, kp.gaussian(1.0), 100.0)):
        with pytest.raises(ValueError, match="X must have fewer rows: the matrix of 48,000,000 takes .* TB, and the"):
            make()
