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
import scipy.linalg
import scipy.sparse
import scipy.stats

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import MODELS, STREAMS, with_trait
from kpcasketch_tests.test_file import FUNCTIONS
from kpcasketch_tests.test_readme import snippets

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # distributed's own
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

FILE = pathlib.Path(kp.__file__)
X = np.random.default_rng(0).standard_normal((1200, 6))
KERNEL = kp.gaussian(2.0)
CHUNKS = {
    "one": (1200,),
    "even": (400, 400, 400),
    "uneven": (333, 0, 500, 3, 364),
    "many": (100,) * 12,
}


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
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as cluster:
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


# Maps.

MODELS_AND_MORE = {
    f"features of {name}": lambda row=row: [row.make(X[:100], KERNEL)]
    for name, row in MODELS.items()
} | {
    "gram_diagonal": lambda: [KERNEL],
    "residual of a Subspace": lambda: [kp.skpca(X, KERNEL, 2, 40, 9, centered=False)],
    "residual of an Expansion": lambda: [kp.kpca(X[:100], KERNEL, 3, centered=True)],
    "novelty_pvalues": lambda: [
        kp.kpca(X[:100], KERNEL, 3, centered=False),
        np.linspace(0.0, 1.0, 99),
    ],
    "shadow_labels": lambda: [X[:9].copy(), 2.0],
    "features of a ridge regression": lambda: [
        kp.nystrom_ridge(X[:200], X[:200, 0], X[:9], KERNEL, 0.1)
    ],
    "gram_matmat": lambda: [X[:70], X[:70, :2].copy(), KERNEL],
    "rademacher_projection": lambda: [3],
}


@pytest.mark.parametrize("name", MODELS_AND_MORE)
def test_maps_are_lazy_and_give_what_one_machine_gives(name):
    read, model, function = [], MODELS_AND_MORE[name](), getattr(kp, name.split()[0])

    def block(points, first):
        read.append(first)
        return points

    for dtype in (np.float64, np.float32):
        points = X.astype(dtype)
        D = da.concatenate(
            [
                da.from_delayed(dask.delayed(block)(points[i : i + 400], i), (400, 6), dtype)
                for i in range(0, 1200, 400)
            ]
        )
        made, expected = kp.dask_map(function, D, *model), function(points, *model)
        assert (
            not read
            and made.shape == expected.shape
            and made.dtype == expected.dtype == made._meta.dtype
        )
        assert made.chunks[0] == (400, 400, 400)
        if name == "gram_matmat" or name.endswith(("Expansion", "Manifold", "regression")):
            # sums over more than 512 points are cut by the number of rows
            far = 1e-11 if dtype == np.float64 else 1e-3
            far = 1e-7 if name.startswith("residual") else far * np.abs(expected).max()
            assert np.abs(made.compute() - expected).max() < far
        else:
            assert_same(made.compute(), expected)
        read.clear()
    assert kp.dask_map(function, spread(X), *model)[5:9].compute().shape == (4, *expected.shape[1:])


def test_a_function_of_ones_own_is_mapped():
    assert_same(kp.dask_map(own_function, spread(X), 2.0).compute(), X.sum(1) * 2.0)


def own_function(block, factor):
    return block.sum(1) * factor


def test_a_custom_kernel_is_compiled_in_each_process(client):
    # its address is another in each of them, and calling it ended a worker
    kernel = kp.scaled(custom_kernel(), 2.0)
    expansion = kp.kpca(X[:100], kernel, 3, centered=False)
    assert_same(kp.dask_map(kp.features, spread(X), expansion).compute(), kp.features(X, expansion))
    found = kp.dask_landmarks(spread(X), kernel, 30)
    assert kp.dask_nystrom_kpca(spread(X), found, kernel, 2, centered=False).kernel == kernel


def test_points_of_other_types_are_what_they_are_elsewhere(rng):
    whole = rng.integers(0, 9, (1200, 6))
    expansion = kp.kpca(whole[:100], KERNEL, 2, centered=False)
    for points in (
        whole,
        whole.astype(np.uint8),
        whole > 4,
        whole.astype(np.float16),
        np.asfortranarray(X),
    ):
        assert_same(
            kp.dask_map(kp.features, spread(points), expansion).compute(),
            kp.features(points, expansion),
        )


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, bool, np.float16])
def test_centered_whole_numbers_wrapped_around_under_a_linear_kernel(dtype, rng):
    whole = rng.integers(0, 256, (1200, 6))
    whole = whole > 100 if dtype is bool else whole.astype(dtype)
    for kernel in (kp.linear(), kp.polynomial(1, 0.5, 2.0)):
        found = kp.dask_nystrom_kpca(
            spread(whole), np.arange(0, 1200, 60), kernel, 3, centered=True
        )
        expected = kp.nystrom_kpca(whole, np.arange(0, 1200, 60), kernel, 3, centered=True)
        assert found.values == pytest.approx(expected.values, rel=1e-9)


# Folds.


@pytest.mark.parametrize("chunks", CHUNKS)
def test_folded_frequent_directions_keep_the_bound_of_one_pass(chunks, rng):
    Z = rng.standard_normal((1200, 30)) * 0.9 ** np.arange(30)
    for half, share in ((True, 1.0), (False, 1.0), (True, 0.3)):
        found = kp.finish(
            kp.dask_fold(spread(Z, chunks), kp.fd_start(12, 30, half=half, share=share))
        )
        off = np.linalg.eigvalsh(Z.T @ Z - found.B.T @ found.B)
        assert off[0] >= -1e-9 and off[-1] <= found.shrunk * (1 + 1e-12) and found.count == 1200
        divisor = share * (6 if half else 12)
        tail = np.sort(np.linalg.eigvalsh(Z.T @ Z))[::-1]
        assert all(
            found.shrunk <= tail[k:].sum() / (divisor - k)
            for k in range(int(np.ceil(divisor)))
            if k < divisor
        )


@pytest.mark.parametrize("centered", [False, True])
def test_folded_skpca_keeps_its_bound_and_finds_what_one_pass_finds(centered):
    drawn = kp.fourier_features_map(KERNEL, 6, 200, 1)
    Z = kp.features(X, drawn)
    Z = Z - Z.mean(0) if centered else Z
    one = kp.skpca(X, KERNEL, 4, 200, 60, 1, centered=centered)
    for chunks in CHUNKS:
        state = kp.dask_fold(spread(X, chunks), kp.skpca_start(drawn, 60, centered=centered))
        found = kp.finish(state, 4)
        lengths = ((Z @ found.basis) ** 2).sum(0)
        assert (lengths >= found.values - 1e-9).all() and (
            lengths <= found.values + found.shrunk + 1e-9
        ).all()
        assert found.shrunk <= 2 * (Z**2).sum() / 60 and found.count == 1200
        assert (found.means is None) == (one.means is None) == (not centered)
        assert not centered or np.allclose(found.means, one.means, atol=1e-13)
        assert np.rad2deg(scipy.linalg.subspace_angles(found.basis, one.basis)).max() < 15
        if chunks == "one":
            assert_same(found, one)


@pytest.mark.parametrize("centered", [False, True])
def test_sums_of_features_give_the_components_of_one_machine(centered):
    drawn = kp.fourier_features_map(KERNEL, 6, 80, 1)
    one = kp.rnca(X, KERNEL, 4, 80, 1, centered=centered)
    for chunks in CHUNKS:
        state = kp.dask_fold(spread(X, chunks), kp.rnca_start(drawn, centered=centered))
        found = kp.finish(state, 4)
        assert np.abs(found.basis - one.basis).max() < 1e-10 and np.allclose(
            found.values, one.values
        )
        assert found.count == 1200


def test_folded_landmarks_are_not_in_the_same_places_of_each_block():
    """Landmarks of blocks that drew by one seed would hold the same places of each block."""
    rows, far_apart = np.arange(1200.0).reshape(-1, 1), kp.gaussian(1e-3)
    places, distinct = [], []
    for seed in range(60):
        state = kp.dask_fold(spread(rows, "many"), kp.rls_start(far_apart, 40, 1, seed))
        assert state.count == 1200 and state.points.shape == (40, 1)
        places.append(state.points.ravel())
        distinct.append(np.unique(places[-1] % 100).size)
    held = np.concatenate(places)
    assert 30 < np.mean(distinct) < 36  # 33.1 of 100, and 25 if blocks held the same 40 places
    assert scipy.stats.chisquare(np.bincount((held % 100).astype(int), minlength=100)).pvalue > 1e-6
    again = kp.dask_fold(spread(rows, "many"), kp.rls_start(far_apart, 40, 1, 7))
    assert np.array_equal(again.points.ravel(), places[7])


@pytest.mark.parametrize("row", with_trait(STREAMS, "forgets").values(), ids=lambda row: row.kind)
def test_states_that_forget_were_refused_after_the_work_of_two_blocks(row):
    with pytest.raises(
        ValueError,
        match="^dask_fold: state must have no half_life to be merged, got 9.0",
    ):
        kp.dask_fold(spread(X), row.start(X, half_life=9.0))


def test_only_empty_states_that_can_be_merged_are_folded():
    for state in (kp.shadow_start(1.0, 6), (np.zeros(6),), None):
        with pytest.raises(ValueError, match="^dask_fold: state must be one of FDState, .*; got"):
            kp.dask_fold(spread(X), state)
    state = kp.update(kp.fd_start(2, 6), X)
    with pytest.raises(ValueError, match="dask_fold: state must be empty, got a count of 1200"):
        kp.dask_fold(spread(X), state)
    skpca = kp.update(kp.skpca_start(kp.fourier_features_map(KERNEL, 6, 20), 4, centered=False), X)
    with pytest.raises(ValueError, match="got a count of 1200"):
        kp.dask_fold(spread(X), skpca)


@pytest.mark.parametrize("chunks", CHUNKS)
def test_the_bandwidth_is_that_of_one_machine(chunks):
    assert kp.dask_median_bandwidth(spread(X, chunks), 5) == kp.median_bandwidth(X, 5)


# Landmarks.


def test_landmarks_are_as_good_as_those_of_one_machine(rng):
    far = rng.random(3000) < 0.03
    points = np.where(
        far[:, None], 20 + 0.1 * rng.standard_normal((3000, 6)), rng.standard_normal((3000, 6))
    )
    K, errors, reached = kp.gram(points, points, KERNEL), [], 0
    for seed in range(8):
        found = kp.dask_landmarks(da.from_array(points, chunks=(400, -1)), KERNEL, 60, seed)
        assert (
            np.array_equal(found.points, points[found.indices])
            and (np.diff(found.indices) > 0).all()
        )
        assert found.indices.size == 60
        other = kp.recursive_rls_accelerated(points, KERNEL, 60, seed)
        assert 0.6 < (found.weights**2).sum() / 3000 < 1.6
        reached += far[found.indices].any()
        errors.append(
            [
                np.trace(K) - (kp.nystrom(points, rows, KERNEL) ** 2).sum()
                for rows in (found.indices, other.indices)
            ]
        )
    ours, theirs = np.mean(errors, 0)
    assert ours < 1.1 * theirs and reached >= 4  # a draw may miss the far cluster: one of 32 did
    few = kp.dask_landmarks(spread(X), KERNEL, 5000)
    assert (
        np.array_equal(few.indices, np.arange(1200))
        and np.array_equal(few.points, X)
        and (few.weights == 1).all()
    )
    assert kp.dask_landmarks(spread(X), KERNEL, 1).indices.size == 1


def test_kernel_pca_and_ridge_over_landmarks_are_those_of_one_machine():
    Y = np.column_stack((np.sin(X[:, 0]), 1e8 * X[:, 1], np.zeros(1200)))
    for dtype in (np.float64, np.float32):
        points, near = X.astype(dtype), 1e-9 if dtype == np.float64 else 3e-3
        found = kp.dask_landmarks(spread(points), KERNEL, 40)
        for landmarks in (found, found.indices, found.points):
            for centered in (False, True):
                one = kp.nystrom_kpca(points, found.points, KERNEL, 3, 0, centered=centered)
                many = kp.dask_nystrom_kpca(spread(points), landmarks, KERNEL, 3, centered=centered)
                assert many.coef.dtype == dtype and np.size(many.mean) == (40 if centered else 1)
                assert np.allclose(
                    many.values, one.values, rtol=1e-5 if dtype == np.float32 else 1e-11
                )
                assert np.abs(kp.features(points, many) - kp.features(points, one)).max() < near
        for targets in (
            Y,
            spread(Y, "even"),
            da.from_array(Y, chunks=(500, 2)),
            Y[:, 0],
            spread(Y[:, 0], "many"),
            Y[:, 0] > 0,
        ):
            for intercept in (False, True):
                one = kp.nystrom_ridge(
                    points, np.asarray(targets), found.points, KERNEL, 0.1, intercept=intercept
                )
                many = kp.dask_nystrom_ridge(
                    spread(points), targets, found, KERNEL, 0.1, intercept=intercept
                )
                scale = np.abs(one.coef).max(0) + (np.abs(one.coef).max(0) == 0)
                near = 1e-8 if dtype == np.float64 else 1e-3
                assert (np.abs(many.coef - one.coef).max(0) <= near * scale).all()
                assert many.coef.dtype == dtype and (many.offset is None) == (not intercept)
                if intercept:
                    assert many.offset.shape == one.offset.shape
                    assert (np.abs(many.offset - one.offset) <= 10 * near * scale).all()


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_intercept_is_found_whatever_the_chunks(chunks, dtype):
    """Each block has targets of another height: their common mean is the one that counts."""
    height = np.repeat([0.0, 3e6, -5.0, 1e3], 300)
    points = X.astype(dtype)
    for targets in (height + X[:, 0], np.column_stack([height, X[:, 1], np.full(1200, 7e5)])):
        for kernel in (KERNEL, kp.linear()):
            one = kp.nystrom_ridge(points, targets, FOUND, kernel, 0.1)
            many = kp.dask_nystrom_ridge(spread(points, chunks), targets, FOUND, kernel, 0.1)
            expected = kp.features(points, one)
            assert many.targets == one.targets and many.coef.dtype == one.coef.dtype
            gap = np.abs(kp.features(points, many) - expected).max(0)
            assert (gap <= (1e-9 if dtype == np.float64 else 1e-4) * np.abs(expected).max(0)).all()
    # the constant column is its own prediction, and the first is not flattened by a ridge
    assert np.allclose(expected[:, 2], 7e5, rtol=1e-6)


def test_linear_regression_far_from_the_origin_keeps_its_digits_in_dask():
    far = X + 1e7
    y = X @ np.arange(1.0, 7.0) - 4.0
    model = kp.dask_nystrom_ridge(spread(far), y, far[:6].copy(), kp.linear(), 1e-6)
    slopes, *_ = np.linalg.lstsq(X - X.mean(0), y - y.mean(), rcond=None)
    assert np.allclose(slopes, np.arange(1.0, 7.0))
    assert np.abs(kp.features(far, model) - y).max() < 1e-6
    one = kp.nystrom_ridge(far, y, far[:6].copy(), kp.linear(), 1e-6)
    assert np.abs(kp.features(far, model) - kp.features(far, one)).max() < 1e-6


def test_means_of_points_that_are_not_finite_named_the_first_block():
    for call in (
        lambda D: kp.dask_nystrom_kpca(D, FOUND, kp.linear(), 3),
        lambda D: kp.dask_nystrom_ridge(D, LABELS, FOUND, kp.linear(), 1.0),
    ):
        with pytest.raises(ValueError, match="^dask_nystrom_.*: X must be finite") as error:
            call(spread(BAD))
        assert "rows 0" not in str(error.value)


def test_every_kind_of_landmarks_is_taken_by_every_function_of_dask():
    rows = np.array([700, 3, 50, 3])
    chosen, points = kp.Landmarks(rows, np.ones(4), 0), X[rows]
    kinds = (
        chosen,
        chosen._replace(points=points),
        kp.ReducedSet(points, np.ones(4)),
        kp.CertifiedNystrom(chosen, np.empty((1200, 3)), 0.1, 0.1, 0.0),
        rows,
        rows.tolist(),
    )
    D = spread(X)
    for take in (
        lambda landmarks: kp.dask_nystrom_kpca(D, landmarks, KERNEL, 2, centered=False),
        lambda landmarks: kp.dask_nystrom_ridge(D, LABELS, landmarks, KERNEL, 0.1, intercept=False),
        lambda landmarks: kp.dask_nystrom_ridge(D, LABELS, landmarks, KERNEL, 0.1),
    ):
        for landmarks in kinds:
            assert_same(take(landmarks), take(points))


def test_predictions_of_a_vector_in_dask_were_a_column():
    y, K = np.sin(X[:, 0]), naive.gaussian(X, X[:300], 3.0)
    squares = np.linalg.solve(np.linalg.cholesky(K[:300] + 1e-9 * np.eye(300)), K.T)
    low = squares.T @ np.linalg.solve(squares @ squares.T + 0.1 * np.eye(300), squares @ y)
    for targets in (y, list(y), spread(y, "many"), y[:, None], np.c_[y, y]):
        model = kp.dask_nystrom_ridge(
            spread(X), targets, X[:300], kp.gaussian(3.0), 0.1, intercept=False
        )
        found = kp.features(X, model)
        assert (
            found.shape == np.shape(targets)
            and kp.dask_map(kp.features, spread(X), model).shape == found.shape
        )
        assert np.mean((y - found.reshape(1200, -1)[:, 0]) ** 2) == pytest.approx(
            np.mean((y - low) ** 2), rel=1e-3
        )


# Workers.


def results(D):
    """What each kind of function makes of points."""
    drawn, found = kp.fourier_features_map(KERNEL, 6, 60), kp.dask_landmarks(D, KERNEL, 30, 2)
    return (
        kp.dask_fold(D, kp.skpca_start(drawn, 20, centered=False)),
        kp.dask_fold(D, kp.rnca_start(drawn, centered=False)),
        kp.dask_fold(D, kp.fd_start(4, 6)),
        kp.dask_fold(D, kp.rls_start(KERNEL, 9, 6, 3)),
        found,
        kp.dask_nystrom_kpca(D, found, KERNEL, 3, centered=True),
        kp.dask_nystrom_ridge(D, LABELS, found, KERNEL, 1.0, intercept=False),
        kp.dask_nystrom_ridge(D, LABELS, found, KERNEL, 1.0),
    )


def test_results_do_not_depend_on_the_workers(client):
    D = spread(X)
    many = results(D)
    with dask.config.set(scheduler="sync"):
        assert_same(many, results(D))
    before = numba.get_num_threads()
    with dask.config.set(scheduler="threads", num_workers=4):  # numba's threads would meet
        assert_same(many, results(D))
    assert numba.get_num_threads() == before
    with distributed.Client(
        n_workers=1, threads_per_worker=2, dashboard_address=":0", silence_logs=50, processes=True
    ):
        assert_same(many, results(D))


def slow_block(first, rows):
    time.sleep(0.3)
    return X[first : first + rows]


def test_a_killed_worker_changes_nothing(client, rng):
    parts = [
        da.from_delayed(dask.delayed(slow_block, pure=False)(i, 100), (100, 6), float)
        for i in range(0, 1200, 100)
    ]
    D, start = (
        da.concatenate(parts),
        kp.skpca_start(kp.fourier_features_map(KERNEL, 6, 60), 20, centered=False),
    )
    expected = kp.dask_fold(spread(X, "many"), start)

    def kill():
        workers = client.run(os.getpid)
        time.sleep(0.8)
        os.kill(next(iter(workers.values())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        assert_same(kp.dask_fold(D, start), expected)
    finally:
        killer.join()
    client.wait_for_workers(2)


def tasks(client):
    return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def no_tasks(client):
    """Whether the scheduler has forgotten everything, within a minute."""
    for _ in range(600):
        if tasks(client) == 0:
            return True
        time.sleep(0.1)
    return False


def test_what_is_cancelled_or_dropped_leaves_nothing_behind(client):
    parts = [
        da.from_delayed(dask.delayed(slow_block, pure=False)(i, 100), (100, 6), float)
        for i in range(0, 1200, 100)
    ]
    future = client.compute(kp.dask_map(kp.gram_diagonal, da.concatenate(parts), KERNEL))
    while tasks(client) == 0:
        time.sleep(0.05)
    future.cancel()
    del future
    assert no_tasks(client)
    kp.dask_landmarks(spread(X), KERNEL, 20)
    assert no_tasks(client)
    bad = X.copy()
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="in rows 0 to 332"):
        kp.dask_landmarks(spread(bad), KERNEL, 20)
    assert no_tasks(client)


@pytest.mark.slow
def test_two_workers_that_start_cold_do_each_other_no_harm(tmp_path):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "KPCASKETCH_QUIET": "1"}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50, env=environment
    ) as cold:
        with distributed.Client(cold):
            assert_same(
                kp.dask_map(kp.gram_diagonal, spread(X, "many"), KERNEL).compute(),
                kp.gram_diagonal(X, KERNEL),
            )
            assert_same(
                kp.dask_map(kp.rademacher_projection, spread(X, "many"), 3, 0).compute(),
                kp.rademacher_projection(X, 3, 0),
            )


# What is refused.

BAD = X.copy()
BAD[700, 2] = np.nan
LABELS = np.arange(1200.0)
FOUND = X[::60].copy()


@pytest.mark.parametrize(
    "call",
    [
        lambda D: kp.dask_map(kp.features, D, kp.fourier_features_map(KERNEL, 6, 9)).compute(),
        lambda D: kp.dask_fold(
            D, kp.skpca_start(kp.fourier_features_map(KERNEL, 6, 60), 20, centered=False)
        ),
        lambda D: kp.dask_fold(
            D, kp.rnca_start(kp.fourier_features_map(KERNEL, 6, 9), centered=False)
        ),
        lambda D: kp.dask_fold(D, kp.fd_start(3, 6)),
        lambda D: kp.dask_fold(D, kp.rls_start(KERNEL, 3, 6)),
        lambda D: kp.dask_landmarks(D, KERNEL, 9),
        lambda D: kp.dask_nystrom_kpca(D, FOUND, KERNEL, 3, centered=False),
        lambda D: kp.dask_nystrom_ridge(D, LABELS, FOUND, KERNEL, 1.0, intercept=False),
        lambda D: kp.dask_nystrom_ridge(spread(X), D[:, 2], FOUND, KERNEL, 1.0, intercept=False),
        lambda D: kp.dask_nystrom_ridge(spread(X), D[:, 2], FOUND, KERNEL, 1.0),
    ],
)
def test_a_block_that_is_not_finite_is_named_by_its_rows(call):
    with pytest.raises(ValueError, match="finite.*; in rows 333 to 832$"):
        call(spread(BAD))


def test_the_error_of_a_block_reaches_the_caller_from_a_worker(client):
    for call in (
        lambda: kp.dask_map(kp.gram_diagonal, spread(BAD), KERNEL).compute(),
        lambda: kp.dask_landmarks(spread(BAD), KERNEL, 9),
    ):
        with pytest.raises(ValueError, match="in rows 333 to 832"):
            call()


CALLS = {
    "dask_map": lambda D, kernel: kp.dask_map(kp.gram_diagonal, D, kernel),
    "dask_fold": lambda D, kernel: kp.dask_fold(D, kp.fd_start(3, 6)),
    "dask_landmarks": lambda D, kernel: kp.dask_landmarks(D, kernel, 9),
    "dask_nystrom_kpca": lambda D, kernel: kp.dask_nystrom_kpca(
        D, FOUND, kernel, 3, centered=False
    ),
    "dask_nystrom_ridge": lambda D, kernel: kp.dask_nystrom_ridge(
        D, LABELS, FOUND, kernel, 1.0, intercept=False
    ),
    "dask_median_bandwidth": lambda D, kernel: kp.dask_median_bandwidth(D),
}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_are_no_runs_of_rows_are_refused_by_name(name):
    call, D = CALLS[name], spread(X)
    for value, words in [
        (X, "must be a 2-D dask array"),
        (X.tolist(), "must be a 2-D dask array"),
        (D[D[:, 0] > 0], "compute_chunk_sizes"),
        (D[:, 0], "2-D"),
        (D.astype(complex), "real numbers"),
        (D[:0], "2-D dask array .*shape=.0, 6."),
        (D[:, :0], "2-D dask array .*shape=.1200, 0."),
        (D.astype(object), "real numbers"),
        (dask.delayed(X), "must be a 2-D dask array"),
    ]:
        with pytest.raises(ValueError, match=f"^{name}: .*{words}"):
            call(value, KERNEL)


def test_chunks_of_columns_are_joined():
    D, split = spread(X), spread(X).rechunk({1: 4})
    assert_same(kp.dask_landmarks(split, KERNEL, 9), kp.dask_landmarks(D, KERNEL, 9))
    assert_same(kp.dask_map(kp.gram_diagonal, split, KERNEL).compute(), kp.gram_diagonal(X, KERNEL))


@pytest.mark.parametrize("name", ["dask_landmarks", "dask_nystrom_kpca", "dask_nystrom_ridge"])
def test_kernels_that_cannot_be_sent_are_refused_with_the_reason(name):
    for kernel, words in [
        (kp.precomputed(np.eye(1200)), "one column of row numbers"),
        ("gaussian", "Kernel"),
        (KERNEL._replace(gamma=np.nan), "kernel.gamma must be finite"),
    ]:
        with pytest.raises(ValueError, match=f"^{name}: .*{words}"):
            CALLS[name](spread(X), kernel)
    with pytest.raises(ValueError, match="1e-37"):
        CALLS[name](spread(X.astype(np.float32)), kp.scaled(KERNEL, 1e-60))


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda D: kp.dask_map(kp.kpca, D, KERNEL, 1),
            "dask_map: function must return one row for each row of X, got Expansion",
        ),
        (
            lambda D: kp.dask_map(len, D),
            "dask_map: function must return one row for each row of X, got int",
        ),
        (
            lambda D: kp.dask_map(
                kp.features, D[:, :3], kp.kpca(X[:50], KERNEL, 2, centered=False)
            ),
            "^dask_map: .*columns",
        ),
        (
            lambda D: kp.dask_fold(
                D, kp.skpca_start(kp.fourier_features_map(KERNEL, 5, 9), 3, centered=False)
            ),
            "X must have 5 columns",
        ),
        (
            lambda D: kp.dask_fold(D, kp.fd_start(3, 5)),
            "^dask_fold: (update: )?X must have 5 columns",
        ),
        (
            lambda D: kp.dask_landmarks(D, KERNEL, 0),
            "^dask_landmarks: s must be an int from 1 to 2.*, got 0",
        ),
        (lambda D: kp.dask_landmarks(D, KERNEL, 2.5), "s must be an int"),
        (lambda D: kp.dask_landmarks(D, KERNEL, 5, -1), "seed"),
        (
            lambda D: kp.dask_nystrom_kpca(D, np.array([1200]), KERNEL, 1, centered=False),
            "row numbers",
        ),
        (lambda D: kp.dask_nystrom_kpca(D, X[:5, :3], KERNEL, 1, centered=False), "columns"),
        (
            lambda D: kp.dask_nystrom_kpca(D, X[:5], KERNEL, 6, centered=False),
            "k must be an int from 1 to 5, got 6",
        ),
        (
            lambda D: kp.dask_nystrom_kpca(D, np.full((3, 6), np.nan), KERNEL, 1, centered=False),
            "finite",
        ),
        (lambda D: kp.dask_nystrom_kpca(D, "all", KERNEL, 1, centered=False), "landmarks must be"),
        (lambda D: kp.dask_nystrom_kpca(D, KERNEL, KERNEL, 1, centered=False), "landmarks must be"),
        (lambda D: kp.dask_nystrom_kpca(D, D, KERNEL, 1, centered=False), "landmarks must be"),
        (
            lambda D: kp.dask_nystrom_kpca(D, FOUND, KERNEL, 1, 0, centered=1),
            "centered must be True or False",
        ),
        (
            lambda D: kp.dask_nystrom_ridge(D, LABELS[1:], FOUND, KERNEL, 1.0, intercept=False),
            r"Y must have 1200 rows, got shape \(1199, 1\)",
        ),
        (
            lambda D: kp.dask_nystrom_ridge(D, LABELS, FOUND, KERNEL, 0.0, intercept=False),
            "lam must be at least",
        ),
        (
            lambda D: kp.dask_nystrom_ridge(D, LABELS, FOUND, KERNEL, 1.0, intercept=1),
            "^dask_nystrom_ridge: intercept must be True or False",
        ),
        (lambda D: kp.dask_nystrom_ridge(D, LABELS, FOUND, "gaussian", 1.0), "Kernel"),
        (lambda D: kp.dask_nystrom_kpca(D, FOUND, "gaussian", 2), "Kernel"),
        (
            lambda D: kp.dask_nystrom_ridge(
                D, LABELS.astype(str), FOUND, KERNEL, 1.0, intercept=False
            ),
            "real numbers",
        ),
        (lambda D: kp.dask_median_bandwidth(D, -1), "^dask_median_bandwidth: seed"),
    ],
)
def test_arguments_out_of_their_range_are_refused_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call(spread(X))


def test_a_block_of_another_kind_than_its_array_tells_is_refused():
    for block, words in [
        (np.ma.masked_less(X[:9], 0), "masked"),
        (X[:9] + 1j, "real numbers"),
        (X[:9].astype(str), "real"),
        (scipy.sparse.csr_matrix(X[:9]), "must be dense"),
    ]:
        lying = da.from_delayed(
            dask.delayed(lambda block: block, traverse=False)(dask.delayed(block, traverse=False)),
            (9, 6),
            float,
        )
        with pytest.raises(ValueError, match=f"{words}.*in rows 0 to 8"):
            kp.dask_landmarks(lying, KERNEL, 4)


def test_large_seeds_came_after_small_ones_and_did_not_fit():
    for seed in (3, 2**63, 2**64 - 1, np.array(3)):
        assert kp.dask_landmarks(spread(X), KERNEL, 9, seed).indices.size == 9
        assert kp.dask_median_bandwidth(spread(X), seed) == kp.median_bandwidth(X, seed)


def test_without_dask_the_error_names_it():
    code = (
        "import sys; sys.modules['dask'] = None\nimport kpcasketch as kp\n"
        "try: kp.dask_landmarks(None, kp.gaussian(1.0), 3)\nexcept ImportError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=FILE.parent
    )
    assert "dask" in run.stdout and run.returncode == 0


@pytest.mark.slow
def test_the_walk_of_the_readme(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(str(tmp_path / "points.zarr"), shape=X.shape, chunks=(300, 4), dtype=X.dtype)[
        :
    ] = X
    walk = next(snippet for snippet in snippets("Tasks") if "dask" in snippet)
    walk = walk.replace(
        "Client()",
        "Client(n_workers=2, threads_per_worker=1, dashboard_address=':0', silence_logs=50)",
    )
    code = walk + "\n    print(state.count, found.indices.size)"
    (tmp_path / "walk.py").write_text(code)
    run = subprocess.run(
        [sys.executable, "walk.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(FILE.parent), "KPCASKETCH_QUIET": "1"},
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["1200", "300"]
    assert zarr.open(str(tmp_path / "embedding.zarr")).shape == (1200, 10)


def test_examples_of_functions_that_need_dask():
    for name in FUNCTIONS:
        text = getattr(kp, name).__doc__.replace("# doctest: +SKIP", "")
        if name.startswith("dask_") and ">>> " in text:
            example = doctest.DocTestParser().get_doctest(
                text, {**vars(kp), "np": np}, name, None, None
            )
            assert example.examples and doctest.DocTestRunner().run(example).failed == 0, name


def test_a_function_that_gives_other_rows_than_it_was_tried_with_is_refused():
    for wrong, text in (
        (lambda block: block[:-1] if len(block) > 1 else block, r"got shape \(\d+, 6\); in rows"),
        (lambda block: block.astype(np.float32) if len(block) > 1 else block, "float64"),
        (lambda block: block[:, :2] if len(block) > 1 else block, r"got shape \(\d+, 2\)"),
    ):
        with pytest.raises(ValueError, match=f"dask_map: function must return a row .*{text}"):
            kp.dask_map(wrong, spread(X)).compute()


def test_errors_of_a_function_of_ones_own_lost_their_class():
    def singular(block):
        raise np.linalg.LinAlgError("singular")

    with pytest.raises(np.linalg.LinAlgError, match="^singular$"):
        kp.dask_map(singular, da.ones((6, 2), chunks=(3, 2)))


def test_a_row_that_is_gathered_is_named_by_its_number_among_all():
    with pytest.raises(ValueError, match="row 700, column"):
        kp.dask_nystrom_kpca(spread(BAD), np.array([7, 700, 9]), KERNEL, 2, centered=False)


def test_a_call_before_distributed_is_imported_left_dask_without_its_settings():
    code = (
        "import numpy as np, dask.array as da, kpcasketch as kp\n"
        "D = da.from_array(np.ones((200, 3)) * np.arange(200.0)[:, None], chunks=(50, 3))\n"
        "for _ in range(2): kp.dask_median_bandwidth(D)\n"
        "import dask.distributed; print(dask.config.get('distributed.comm') is not None, float(D.sum().compute()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=FILE.parent
    )
    assert run.stdout.split() == ["True", "59700.0"], run.stderr


def test_maps_were_tried_on_a_row_of_ones_far_from_the_model(rng):
    C = rng.standard_normal((9, 4)) * 0.1 + 1e4
    far = kp.laplacian_eigenmap(C, kp.gaussian(0.2), 2)
    found = kp.dask_map(kp.features, spread(C, 4), far).compute()
    assert np.array_equal(found, kp.features(C, far))


class Series:
    """What dask.dataframe gives for a column: blocks, but no array's methods, and unknown sizes."""

    ndim, shape, dtype = 1, (np.nan,), np.dtype(float)

    def __array__(self, dtype=None, copy=None):
        return LABELS.astype(dtype or float)

    def to_delayed(self):
        return [dask.delayed(LABELS)]

    def __len__(self):
        return len(LABELS)


def test_targets_of_a_series_of_unknown_sizes_or_of_three_dimensions_ended_in_errors_of_python():
    D, expected = (
        spread(X),
        kp.dask_nystrom_ridge(spread(X), LABELS, FOUND, KERNEL, 1.0, intercept=False),
    )
    assert_same(kp.dask_nystrom_ridge(D, Series(), FOUND, KERNEL, 1.0, intercept=False), expected)
    unknown = D[:, 0][D[:, 0] < np.inf]
    for Y, text in (
        (
            unknown,
            r"Y must have 1200 rows, got shape \(nan, 1\)",
        ),
        (da.ones((1200, 2, 2)), r"Y must be a 2-D dask array of real numbers .*shape=\(1200, 2, 2"),
        (np.ones((1200, 2, 2)), "Y must be a 2-D dask array"),
        (3.0, "Y must have 1200 rows"),
        (None, "Y must have 1200 rows"),
    ):
        with pytest.raises(ValueError, match=f"^dask_nystrom_ridge: .*{text}"):
            kp.dask_nystrom_ridge(D, Y, FOUND, KERNEL, 1.0, intercept=False)
    wide = kp.dask_nystrom_ridge(
        D, da.from_array(X[:, :4], chunks=(100, 2)), FOUND, KERNEL, 1.0, intercept=False
    )
    assert np.allclose(
        wide.coef, kp.nystrom_ridge(X, X[:, :4].copy(), FOUND, KERNEL, 1.0, intercept=False).coef
    )


def test_errors_of_a_mapped_function_lost_their_arguments(rng):
    def fails(block):
        if len(block) > 1:
            raise ValueError("mine", 3)
        return block

    mapped = kp.dask_map(fails, da.from_array(rng.standard_normal((8, 2)), chunks=(4, 2)))
    with pytest.raises(ValueError) as error:
        mapped.compute()
    assert error.value.args == ("mine", 3)
