# SPDX-License-Identifier: BSD-3-Clause
"""What holds of any model: errors of sketches, residuals, explained variance, features, and them from compiled code."""

import gc
import io

import numba
import numpy as np
import pytest
from scipy import linalg, sparse

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import KERNEL, KERNELS, MODELS, K, X, bits

# How wrong a sketch is, from a few rows of K


def sketches(points, kernel, centered):
    """Each kind of sketch that `sketch_error` takes, with its eigenvalues and directions."""
    made = {
        "bits": kp.quantize_gram(points, kernel),
        "sampled": kp.sample_gram(points, kernel, 2.0),
    }
    made = {name: kp.center(A) if centered else A for name, A in made.items()}
    made["eigen"] = kp.block_lanczos(made["sampled"], 12)
    rows = kp.uniform_landmarks(len(points), 30)
    made["expansion"] = kp.nystrom_kpca(points, rows, kernel, 12, centered=centered)
    drawn = kp.fourier_features_map(kernel, points.shape[1], 500, paired=False)
    state = kp.update(kp.skpca_start(drawn, 40, centered=centered), points)
    made["subspace"] = kp.finish(state, 12)
    F = kp.nystrom(points, rows, kernel)
    made["factor"] = kp.LowRank(F - F.mean(0) if centered else F)
    if not centered:
        made["map"] = kp.nystrom_map(points, rows, kernel)
    for name, A in made.items():
        if isinstance(A, kp.Eigen):
            yield name, A, A.values, A.vectors
        elif isinstance(A, (kp.Expansion, kp.Subspace)):
            yield (
                name,
                A,
                A.values,
                (kp.features if isinstance(A, kp.Expansion) else kp.features)(points, A),
            )
        else:
            found = kp.block_lanczos(kp.LowRank(F) if name == "map" else A, 12)
            yield name, A, found.values, found.vectors


@pytest.mark.parametrize("centered", [False, True])
def test_all_rows_tell_the_errors_of_a_sketch_to_a_tenth(centered):
    exact = naive.centered(K) if centered else K
    true_values, true_vectors = naive.eigenpairs(exact, 3)
    for name, sketch, values, V in sketches(X, KERNEL, centered):
        found = kp.sketch_error(sketch, X, KERNEL, 3, 0, rows=600, centered=centered)
        assert found.values == pytest.approx(values[:3] - true_values, rel=0.02, abs=1e-3), name
        assert found.angles == pytest.approx(
            linalg.subspace_angles(true_vectors, V[:, :3].copy()), rel=0.1
        ), name


def test_sketch_error_is_that_of_naive_on_all_rows():
    for centered in (False, True):
        A = naive.centered(K) if centered else K
        eigen = kp.block_lanczos(kp.center(bits()) if centered else bits(), 10)
        found = kp.sketch_error(eigen, X, KERNEL, 4, 0, rows=10**6, centered=centered)
        values, angles = naive.sketch_error(A, eigen.values, eigen.vectors, 4)
        assert found.values == pytest.approx(values, abs=1e-8) and found.angles == pytest.approx(
            angles, abs=1e-7
        )


def test_sketch_error_is_about_the_mean_if_the_model_is():
    plain = kp.kpca(X, KERNEL, 8, centered=False), kp.skpca(X, KERNEL, 8, 300, 30, centered=False)
    about = kp.kpca(X, KERNEL, 8), kp.skpca(X, KERNEL, 8, 300, 30)
    for models, centered in ((plain, False), (about, True)):
        for model in models:
            given = kp.sketch_error(model, X, KERNEL, 4, rows=600, centered=centered)
            found = kp.sketch_error(model, X, KERNEL, 4, rows=600)
            assert np.array_equal(found.values, given.values)
            assert np.array_equal(found.angles, given.angles)
            kind = type(model).__name__
            words = f"centered must be {centered} or None, as this {kind} is .*centered; got"
            with pytest.raises(ValueError, match=f"^sketch_error: {words} {not centered}"):
                kp.sketch_error(model, X, KERNEL, 4, centered=not centered)
    found = kp.sketch_error(about[0], X, KERNEL, 4, rows=600)  # it is exact
    assert np.abs(found.values).max() < 1e-9 * about[0].values[0] and found.angles.max() < 1e-6
    # what is not centered itself is judged as it is, or about the mean if asked for
    for sketch in (bits(), kp.nystrom_map(X, np.arange(30), KERNEL), kp.block_lanczos(bits(), 10)):
        found = kp.sketch_error(sketch, X, KERNEL, 3)
        given = kp.sketch_error(sketch, X, KERNEL, 3, centered=False)
        assert np.array_equal(found.values, given.values)
        assert np.array_equal(found.angles, given.angles)


def test_sketch_error_of_directions_of_any_size_is_that_of_their_span():
    eigen = kp.block_lanczos(bits(), 6)
    small = eigen._replace(vectors=eigen.vectors * [1.0, 1e-40, 1e80, 1.0, 1e-9, 1.0])
    a, b = (kp.sketch_error(one, X, KERNEL, 3, rows=600) for one in (eigen, small))
    assert np.allclose(a.values, b.values, rtol=1e-9) and np.allclose(a.angles, b.angles, rtol=1e-9)


def test_sketch_error_of_directions_turned_within_their_span_is_the_turn():
    # K is diagonal, and two of the sketch's directions are turned by .3: nothing is off the span, so this is exact
    table, turn = np.diag([4.0, 3.0, 0.5, 0.25, 0.1]), np.eye(5)
    turn[:2, :2] = [[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]
    sketch = kp.Eigen(np.array([5.0, 2.0, 0.5]), turn[:, :3], 1, np.zeros(3))
    found = kp.sketch_error(sketch, np.arange(5.0)[:, None], kp.precomputed(table), 1)
    assert found.values == pytest.approx([1.0], abs=1e-12) and found.angles == pytest.approx(
        [0.3], abs=1e-12
    )


def test_sketch_error_of_a_direction_turned_off_the_span_is_the_turn_to_second_order():
    table, turn, phi = np.diag([4.0, 3.0, 0.0, 0.0]), np.eye(4), 1e-3
    turn[[0, 0, 3, 3], [0, 3, 0, 3]] = np.cos(phi), -np.sin(phi), np.sin(phi), np.cos(phi)
    sketch = kp.Eigen(np.array([4.0, 3.0, 0.1]), turn[:, :3].copy(), 1, np.zeros(3))
    found = kp.sketch_error(sketch, np.arange(4.0)[:, None], kp.precomputed(table), 1)
    assert found.angles == pytest.approx([phi], rel=1e-5) and abs(found.values[0]) < 4 * phi**4


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_a_few_rows_tell_the_errors_of_a_sketch(dtype, shift, rng):
    points = (rng.standard_normal((3000, 4)) * [2.0, 1.4, 1.0, 0.7] + shift).astype(dtype)
    kernel, exact = (
        kp.gaussian(2.0),
        kp.block_lanczos(kp.gram(*2 * [points.astype(float)], kp.gaussian(2.0)), 3),
    )
    for sketch in (
        kp.block_lanczos(kp.quantize_gram(points, kernel), 14),
        kp.rnca(points, kernel, 14, 400, centered=False),
    ):
        V = (
            sketch.vectors
            if isinstance(sketch, kp.Eigen)
            else kp.features(points, sketch).astype(float)
        )
        found = kp.sketch_error(sketch, points, kernel, 3)
        largest = np.abs(sketch.values[:3] - exact.values).max()
        assert (
            0.8 < found.angles[0] / linalg.subspace_angles(V[:, :3].copy(), exact.vectors)[0] < 1.25
        )
        assert 0.7 < np.abs(found.values).max() / largest < 1.4


def test_without_the_next_components_an_angle_would_be_a_guess():
    # .4 to 1.7 times the truth on real data: it is refused
    model = kp.rnca(X, KERNEL, 12, 100, centered=False)
    few = model._replace(basis=model.basis[:, :4], values=model.values[:4])
    whole = kp.sketch_error(model, X, KERNEL, 4, 0, rows=600).angles[0]
    true = linalg.subspace_angles(naive.eigenpairs(K, 4)[1], kp.features(X, few))[0]
    alone = naive.sketch_error(K, few.values, np.linalg.qr(kp.features(X, few))[0], 4)[1][0]
    assert abs(whole / true - 1.0) < 0.1 and abs(alone / true - 1.0) > 0.5
    with pytest.raises(
        ValueError,
        match="^sketch_error: sketch must have 2 k comp.* k = 4; got 4 components, the first 4",
    ):
        kp.sketch_error(few, X, KERNEL, 4)
    assert kp.sketch_error(few, X, KERNEL).angles.size == 2


def test_sketch_error_of_an_exact_matrix_is_rounding():
    for sketch in (K, kp.Implicit(X, KERNEL), kp.kpca(X, KERNEL, 20, centered=False)):
        found = kp.sketch_error(sketch, X, KERNEL)
        assert (
            found.values.size == 10
            and np.abs(found.values).max() < 1e-5 * 600
            and found.angles.max() < 1e-3
        )
    # nothing is left off the span
    all_of = kp.sketch_error(kp.block_lanczos(K[:9, :9], 9), X[:9], KERNEL, 9)
    assert all_of.angles.max() < 1e-6 and np.abs(all_of.values).max() < 1e-12


def test_rows_that_miss_a_small_cluster_gave_an_error_of_ten_thousand(rng):
    # of twelve points in 8000 none was drawn, and the fit divided by nothing
    points = rng.standard_normal((2000, 6))
    for cluster in range(6):
        points[12 * cluster : 12 * cluster + 12] = (
            20.0 + 5.0 * cluster + 0.01 * rng.standard_normal((12, 6))
        )
    exact = kp.block_lanczos(kp.gram(points, points, kp.gaussian(0.45)), 20)
    with pytest.raises(
        ValueError, match="^sketch_error: rows must be larger to distinguish 20 directions, got 100"
    ):
        kp.sketch_error(exact, points, kp.gaussian(0.45), 5, 0, rows=100)
    assert (
        np.abs(kp.sketch_error(exact, points, kp.gaussian(0.45), 5, 0, rows=2000).values).max()
        < 1e-6
    )


def test_what_is_not_centred_was_judged_about_the_mean_as_if_it_were():
    # a matrix and a map are centred here; directions lose their mean
    plain, done = [
        kp.sketch_error(A, X, KERNEL, 4, 0, rows=600, centered=True)
        for A in (bits(), kp.center(bits()))
    ]
    assert np.allclose(plain.values, done.values, atol=1e-6) and np.allclose(
        plain.angles, done.angles, atol=1e-4
    )
    found = kp.nystrom_map(X, kp.uniform_landmarks(600, 30), KERNEL)
    F = kp.features(X, found)
    a, b = [
        kp.sketch_error(A, X, KERNEL, 4, 0, rows=600, centered=True)
        for A in (found, kp.LowRank(F - F.mean(0)))
    ]
    assert np.allclose(a.values, b.values, atol=1e-6) and np.allclose(a.angles, b.angles, atol=1e-4)
    eigen = kp.block_lanczos(kp.center(bits()), 10)
    a, b = [
        kp.sketch_error(eigen._replace(vectors=V), X, KERNEL, 4, 0, rows=600, centered=True)
        for V in (eigen.vectors, eigen.vectors + 0.02)
    ]
    assert np.allclose(a.values, b.values, atol=1e-9) and np.allclose(a.angles, b.angles, atol=1e-9)


def test_components_that_depend_on_others_are_none():
    model = kp.kpca(X, KERNEL, 12, centered=False)
    coef = model.coef.copy()
    coef[:, 5] = coef[:, 0] + coef[:, 1]
    twice = model._replace(coef=coef)
    assert kp.sketch_error(twice, X, KERNEL, 5, 0, rows=600).angles.max() < 1e-6
    # a direction of rounding errors stands for it
    assert kp.sketch_error(twice, X, KERNEL, 6, 0, rows=600).angles.max() > 1.0


def test_a_kernel_of_low_rank_has_nothing_beyond_its_rank():
    sketch = kp.nystrom_map(X, kp.uniform_landmarks(600, 30), kp.linear())
    for made in (sketch, kp.kpca(X, kp.linear(), 6, centered=False), kp.LowRank(X)):
        found = kp.sketch_error(made, X, kp.linear())
        assert (
            found.values.size == 3
            and np.abs(found.values).max() < 1e-9
            and found.angles.max() < 1e-7
        )


def test_more_components_than_points_were_an_error_of_numpy():
    found = kp.sketch_error(kp.kpca(X, KERNEL, 20, centered=False), X[:9], KERNEL, 2)
    assert np.isfinite(found.values).all()


def test_few_rows_are_right_on_average_whatever_the_order_of_points(rng):
    # 16 components and 60 rows: without degrees of freedom, errors would come out a seventh too small
    points = np.sort(rng.standard_normal((1500, 2)) * [2.0, 1.0], axis=0)
    kernel = kp.gaussian(1.5)
    eigen = kp.block_lanczos(kp.sample_gram(points, kernel, 3.0), 16)
    whole = kp.sketch_error(eigen, points, kernel, 4, 0, rows=1500).angles
    found = [kp.sketch_error(eigen, points, kernel, 4, seed, rows=60).angles for seed in range(80)]
    assert np.sqrt(np.square(found).mean(0)) == pytest.approx(whole, rel=0.1)


def test_sketch_error_in_another_order_of_points_is_the_same_on_all_rows(rng):
    order = rng.permutation(600)
    eigen = kp.block_lanczos(bits(), 10)
    turned = eigen._replace(vectors=eigen.vectors[order])
    a, b = (
        kp.sketch_error(eigen, X, KERNEL, 5, 0, rows=600),
        kp.sketch_error(turned, X[order], KERNEL, 5, 3, rows=600),
    )
    assert np.allclose(a.values, b.values, atol=1e-9) and np.allclose(a.angles, b.angles, atol=1e-9)
    scaled = kp.sketch_error(
        eigen._replace(values=eigen.values * 7.0), X, kp.scaled(KERNEL, 7.0), 5, 0, rows=600
    )
    assert np.allclose(scaled.values, 7.0 * a.values) and np.allclose(scaled.angles, a.angles)


@pytest.mark.parametrize(
    "change, told",
    [
        ({"sketch": kp.linear()}, "must be a square array"),
        ({"sketch": K[:9, :9]}, "sketch.vectors must have 600 rows, got 9"),
        ({"k": 0}, "k must be an int from 1"),
        ({"k": 700}, "k must be"),
        ({"rows": 20}, "rows must be larger"),
        ({"rows": 0.5}, "rows must be an int"),
        ({"centered": 1}, "centered must be True"),
        ({"sketch": kp.kpca(X, KERNEL, 20), "centered": 1}, "centered must be True or False"),
        ({"seed": -1}, "seed"),
        ({"kernel": None}, "kernel must be a Kernel"),
        ({"X": X[:, :0]}, "X must have"),
        ({"sketch": kp.kpca(X[:, :2], KERNEL, 20, centered=False)}, "same number of columns"),
        (
            {
                "sketch": kp.kpca(X, KERNEL, 20, centered=False)._replace(
                    kernel=kp.polynomial(64, 1e9, 0.0)
                )
            },
            "must be finite",
        ),
        (
            {"sketch": kp.kpca(X, KERNEL, 1, centered=False), "k": None},
            "to judge k = 1; got 1 components, the first .* nonzero: use a smaller k or",
        ),
        (
            {"sketch": kp.block_lanczos(K, 20)._replace(values=np.full(20, np.nan))},
            "values must .*be finite",
        ),
        (
            {"sketch": kp.block_lanczos(K, 20)._replace(vectors=K[:50, :20])},
            "vectors must have 600 rows",
        ),
        ({"kernel": kp.polynomial(64, 1e9, 0.0)}, "kernel values on X must be finite"),
        ({"sketch": np.zeros((600, 600))}, "k = 8; got 24 components, the first 0 nonzero"),
    ],
)
def test_what_sketch_error_refuses(change, told):
    given = {"sketch": K, "X": X, "kernel": KERNEL, "k": 8, **change}
    with pytest.raises(ValueError, match=f"^sketch_error: .*{told}"):
        kp.sketch_error(**given)


# How far points are off a model, and what its components explain


def explicit(Z):
    """Features of the kernel (x . y + 1)^2 of points in the plane, whose inner products it is."""
    x, y = Z.T
    return np.column_stack(
        [x * x, y * y, np.sqrt(2) * x * y, np.sqrt(2) * x, np.sqrt(2) * y, np.ones(len(Z))]
    )


def off_by_features(Z, F, mean, directions):
    """|f - P f| / |phi(x)| for f = phi(x) - mean and P on the span of some columns, by least squares."""
    f = explicit(Z) - mean
    off = f.T - directions @ np.linalg.lstsq(directions, f.T, rcond=1e-10)[0]
    return np.linalg.norm(off, axis=0) / np.linalg.norm(explicit(Z), axis=1)


SQUARE = kp.polynomial(2, 1.0, 1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shift", [0.0, 30.0])
@pytest.mark.parametrize(
    "make",
    [
        "kpca",
        "centered_kpca",
        "nystrom_kpca",
        "centred landmarks",
        "sketch",
        "centred sketch",
        "NystromMap",
        "thinned",
    ],
)
def test_residuals_are_those_of_explicit_features(make, shift, dtype, rng):
    X, new = (rng.standard_normal((n, 2)).astype(dtype) + dtype(shift) for n in (60, 9))
    F, rows = explicit(X.astype(float)), np.arange(5)
    mean = F.mean(0) if make.startswith("cent") else np.zeros(6)
    if make == "NystromMap":
        model = kp.nystrom_map(X, rows[:3], SQUARE)
        directions = explicit(model.points.astype(float)).T
    else:
        model = {
            "kpca": lambda: kp.kpca(X, SQUARE, 2, centered=False),
            "centered_kpca": lambda: kp.kpca(X, SQUARE, 2, centered=True),
            "nystrom_kpca": lambda: kp.nystrom_kpca(X, rows, SQUARE, 2, centered=False),
            "centred landmarks": lambda: kp.nystrom_kpca(X, rows, SQUARE, 2, 0, centered=True),
            "sketch": lambda: kp.kpca_from_eigen(
                X, SQUARE, kp.block_lanczos(kp.quantize_gram(X, SQUARE), 2)
            ),
            "centred sketch": lambda: kp.kpca_from_eigen(
                X,
                SQUARE,
                kp.block_lanczos(kp.center(kp.quantize_gram(X, SQUARE)), 2),
                centered=True,
            ),
            "thinned": lambda: kp.round_expansion(kp.kpca(X, SQUARE, 2, centered=False), 3.0),
        }[make]()
        directions = explicit(model.points.astype(float)).T @ model.coef
        # about the mean of the projections on the span of the landmarks
        if make == "centred landmarks":
            span = np.linalg.qr(explicit(X[rows].astype(float)).T)[0]
            mean = span @ (span.T @ mean)
    found = kp.residual(new, model)
    assert found.dtype == np.float64 and found.shape == (9,)
    # squares of lengths are differences of numbers of size 1
    far = (3e-7 if shift == 0.0 else 3e-6) if dtype == np.float64 else 3e-3
    assert np.abs(found - off_by_features(new.astype(float), F, mean, directions)).max() < far


def test_residuals_of_random_features_and_at_the_ends(rng):
    X = rng.standard_normal((80, 3))
    kernel = kp.scaled(kp.gaussian(2.0), 9.0)
    for centered in (False, True):
        model = kp.skpca(X, kernel, 3, 50, 12, 0, centered=centered)
        Z = kp.features(X, model.feature_map) - (model.means if centered else 0.0)
        expected = np.linalg.norm(Z - Z @ model.basis @ model.basis.T, axis=1) / 3.0
        assert np.allclose(kp.residual(X, model), expected, atol=1e-10)
    whole = kp.kpca(X, kernel, 80, centered=False)
    assert (
        kp.residual(X, whole).max() < 1e-5
        and np.abs(kp.residual(X + 99.0, whole) - 1.0).max() < 1e-12
    )
    assert kp.residual(X[:5], kp.nystrom_map(X, np.arange(5), kernel)).max() < 1e-7
    # Two points at a distance r: the mean explains none of their difference; half of it is sqrt((1 - k) / 2) long.
    two = np.array([[0.0], [1.0]])
    alone = kp.kpca(two, kp.gaussian(1.0), 1, centered=True)
    flat = alone._replace(coef=np.zeros((2, 1)))
    assert kp.residual(two, flat) == pytest.approx(np.sqrt((1.0 - np.exp(-0.5)) / 2.0))
    assert kp.residual(two, alone).max() < 1e-7
    assert np.array_equal(
        kp.residual(np.zeros((2, 3)), kp.kpca(X, kp.linear(), 1, centered=False)), [0.0, 0.0]
    )


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_explained_variance_is_that_of_explicit_features(shift, rng):
    X = rng.standard_normal((70, 2)) * [1.0, 0.4] + shift
    F = explicit(X) - explicit(X).mean(0)
    shares = np.linalg.svd(F, compute_uv=False) ** 2 / (F**2).sum()
    near = 1e-9 if shift == 0.0 else 1e-4  # 1e8 in size, of which 1e4 vary
    assert np.allclose(
        kp.explained_variance_ratio(X, kp.kpca(X, SQUARE, 4, centered=True)), shares[:4], atol=near
    )
    over_all = kp.nystrom_kpca(X, np.arange(70), SQUARE, 4, 0, centered=True)
    assert np.allclose(kp.explained_variance_ratio(X, over_all), shares[:4], atol=near)
    # of a sketch: what each adds to the span of those before it
    sketch = kp.kpca_from_eigen(X, SQUARE, kp.block_lanczos(kp.quantize_gram(X, SQUARE), 3))
    W = np.linalg.qr(explicit(X).T @ sketch.coef)[0]
    found = kp.explained_variance_ratio(X, sketch)
    assert np.allclose(
        found, ((F @ W) ** 2).sum(0) / (F**2).sum(), atol=1e-6 if shift == 0.0 else 1e-3
    )
    map = kp.nystrom_map(X, np.arange(6), SQUARE)  # six landmarks span all of the six features
    assert kp.explained_variance_ratio(X, map).sum() == pytest.approx(
        1.0, abs=1e-6 if shift == 0.0 else 1e-2
    )


def test_explained_variance_of_linear_components_is_scikit_learns(rng):
    decomposition = pytest.importorskip("sklearn.decomposition")
    X = rng.standard_normal((90, 5)) * [5.0, 3.0, 2.0, 1.0, 0.5] + 40.0
    expected = decomposition.PCA(3).fit(X).explained_variance_ratio_
    assert np.allclose(
        kp.explained_variance_ratio(X, kp.kpca(X, kp.linear(), 3, centered=True)),
        expected,
        atol=1e-9,
    )


@pytest.mark.parametrize("offset", [3e6, 1e7, 1e9])
def test_explained_variance_of_linear_components_lost_its_digits_far_from_the_origin(offset):
    # 1.0008 for 1 in all, then points that differ were refused as if they did not
    X = np.random.default_rng(0).standard_normal((300, 2)) * [1.0, 0.2] + offset
    squares = np.linalg.svd(X - X.mean(0), compute_uv=False) ** 2
    found = kp.explained_variance_ratio(X, kp.kpca(X, kp.linear(), 2, centered=True))
    assert np.allclose(found, squares / squares.sum(), rtol=0.0, atol=1e-6)
    with pytest.raises(
        ValueError, match="explained_variance_ratio: X must have points that differ"
    ):
        kp.explained_variance_ratio(
            np.full((9, 2), 0.1 * offset), kp.kpca(X, kp.linear(), 2, centered=True)
        )


def test_what_a_sketch_gets_wrong_was_rounding_for_linear_kernels_far_from_the_origin():
    X = np.random.default_rng(0).standard_normal((200, 6)) * [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    near = kp.sketch_error(
        kp.kpca(X, kp.linear(), 6, centered=True), X, kp.linear(), 3, 0, rows=50, centered=True
    )
    far = kp.sketch_error(
        kp.kpca(X + 1e9, kp.linear(), 6, centered=True),
        X + 1e9,
        kp.linear(),
        3,
        0,
        rows=50,
        centered=True,
    )
    assert (
        np.abs(near.values).max() < 1e-6
        and np.abs(far.values).max() < 1.0
        and far.angles.max() < 1e-2
    )


def test_explained_variance_of_random_features(rng):
    X = rng.standard_normal((60, 2))
    for paired in (False, True):
        drawn = kp.fourier_features_map(kp.gaussian(1.0), 2, 40, 0, stored=True, paired=paired)
        start, Z = kp.rnca_start(drawn), kp.features(X, drawn)
        model = kp.finish(kp.update(start, X))
        found = kp.explained_variance_ratio(X, model)
        total = ((Z - Z.mean(0)) ** 2).sum()  # of unpaired features |z(x)|^2 is not k(x, x)
        expected = (((Z - Z.mean(0)) @ model.basis) ** 2).sum(0) / total
        assert np.allclose(found, expected) and np.isclose(found.sum(), 1.0)
        # all but one point: shares were up to 3.7, or refused
        alike = kp.finish(kp.update(start, X * 0.01), 2)
        assert 0.9 < kp.explained_variance_ratio(X * 0.01, alike).sum() <= 1.0 + 1e-9


def test_the_size_of_a_component_changed_what_it_explains(rng):
    X, scale = rng.standard_normal((60, 2)), np.array([1.0, 1e-6, 1.0])
    exact = kp.kpca(X, SQUARE, 3, centered=True)
    scaled = exact._replace(coef=exact.coef * scale, offset=exact.offset * scale)
    assert np.allclose(
        kp.explained_variance_ratio(X, scaled), kp.explained_variance_ratio(X, exact), atol=1e-9
    )
    assert np.allclose(kp.residual(X, scaled), kp.residual(X, exact), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("centered", [False, True])
def test_what_is_kept_of_a_model_is_computed_anew_when_an_entry_changes(centered, dtype, rng):
    X, kernel = rng.standard_normal((40, 2)).astype(dtype), kp.gaussian(1.0)
    new = X[:7] + dtype(0.3)
    Z = np.ones((2, 3))

    def found(model):
        image = kp.kernel_pca_preimage(Z, model, lam=0.1)
        return np.r_[kp.residual(new, model), kp.explained_variance_ratio(X, model), image.ravel()]

    def fresh(model):
        return found(type(model)(*[np.copy(x) if hasattr(x, "size") else x for x in model]))

    model = kp.kpca(X, kernel, 3, centered=centered)
    known = found(model)
    assert np.array_equal(known, found(model)) and np.array_equal(known, fresh(model))
    assert np.array_equal(known, found(model._replace(values=np.zeros(3))))
    changes = [
        lambda model: model.points.__setitem__((3, 1), model.points[3, 1] + dtype(0.01)),
        lambda model: model.coef.__imul__(np.array([1.0, 2.0, 1.0], dtype)),
        lambda model: model.coef.__setitem__((39, 2), dtype(0.4)),
    ]
    if centered:
        changes += [
            lambda model: model.offset.__iadd__(1e-3),
            lambda model: model.mean.__imul__(0.9),
        ]
    for change in changes:
        before = found(model)
        change(model)
        assert np.array_equal(found(model), fresh(model))
        if centered:
            assert not np.array_equal(found(model), before)
    for other in (
        model._replace(kernel=kp.gaussian(2.0)),
        model._replace(kernel=kp.scaled(kernel, 3.0)),
        model._replace(coef=model.coef[:, ::-1].copy()),
        model._replace(mean=np.full(40, 0.02), offset=np.ones(3)),
    ):
        assert np.array_equal(found(other), fresh(other))
        assert not np.array_equal(found(other), found(model))


def test_tables_of_precomputed_kernels_are_told_apart(rng):
    F = rng.standard_normal((30, 5))
    rows = np.arange(30)[:, None]
    model = kp.kpca(rows, kp.precomputed(F @ F.T), 2, centered=False)
    other = model._replace(kernel=kp.precomputed(F[:, :4] @ F[:, :4].T))
    for made in (model, other, model):
        alike = made._replace(coef=made.coef.copy())
        assert np.array_equal(kp.residual(rows, made), kp.residual(rows, alike))
    assert not np.array_equal(kp.residual(rows, model), kp.residual(rows, other))


def test_what_is_kept_of_a_model_goes_with_the_model(rng):
    X = rng.standard_normal((20, 2))
    gc.collect()
    before = len(kp._spans)
    models = [kp.kpca(X, kp.gaussian(1.0), k, centered=False) for k in (1, 2, 3)]
    for model in models:
        for _ in range(3):
            kp.residual(X, model)
        loaded = io.BytesIO()
        kp.save(loaded, model)
        loaded.seek(0)
        assert np.array_equal(kp.residual(X, kp.load(loaded)), kp.residual(X, model))
    turned = model._replace(coef=np.asfortranarray(model.coef))  # each call makes C-ordered copies
    assert np.array_equal(kp.residual(X, turned), kp.residual(X, model))
    gc.collect()
    assert len(kp._spans) == before + 3
    del models, model, turned
    gc.collect()
    assert len(kp._spans) == before


@pytest.mark.parametrize("gap", [1.0, 1e-2, 1e-4, 0.0])
def test_what_alike_components_explain_was_wrong_by_a_hundredth(gap, rng):
    # a pseudoinverse for each number of components cut eigenvalues off
    X = rng.standard_normal((60, 16))  # the features of a linear kernel
    columns = rng.standard_normal((16, 1)) + gap * rng.standard_normal((16, 12))
    columns[:, 5] = 0.0
    columns[:, 7] = columns[:, :3].sum(1)
    coef = np.linalg.lstsq(X.T, columns * 10.0 ** rng.integers(-6, 7, 12), rcond=None)[0]
    directions = X.T.astype(np.longdouble) @ coef
    directions[:, [5, 7]] = 0.0  # of which there is only rounding beside columns before
    Q = naive.orthonormal_columns(directions)
    F = X - X.mean(0)
    shares = np.square(F @ Q).sum(0) / np.square(F).sum()
    model = kp.Expansion(X, coef, np.ones(12), kp.linear(), offset=np.zeros(12))
    found = kp.explained_variance_ratio(X, model)
    assert (found >= 0.0).all() and found.sum() < 1.0 + 1e-7 and found[5] == found[7] == 0.0
    if gap == 0.0:  # one direction: rounding errors are no others
        shares[1:] = 0.0
    assert np.abs(found - shares).max() < (1e-6 if 0.0 < gap < 1e-2 else 1e-9)
    off = X - X @ Q @ Q.T if gap else X - np.outer(X @ Q[:, 0], Q[:, 0])
    expected = np.sqrt(np.square(off).sum(1) / np.square(X).sum(1))
    assert np.abs(kp.residual(X, model) - expected).max() < 1e-5


def test_shares_of_many_components_cost_a_pseudoinverse_each(rng):
    X = rng.standard_normal((400, 4))
    F = np.linalg.cholesky(naive.gaussian(X, X, 1.0) + 1e-13 * np.eye(400))
    shares = np.linalg.svd(F - F.mean(0), compute_uv=False) ** 2 / ((F - F.mean(0)) ** 2).sum()
    found = kp.explained_variance_ratio(X, kp.kpca(X, kp.gaussian(1.0), 200, centered=True))
    assert np.abs(found - shares[:200]).max() < 1e-10


@pytest.mark.parametrize(
    "call, text",
    [
        (
            lambda X: kp.residual(
                X, kp.kpca(X, SQUARE, 2, centered=False)._replace(coef=np.full((9, 2), np.nan))
            ),
            "residual: features of the expansion's points must be finite",
        ),
        (
            lambda X: kp.residual(
                X, kp.kpca(X, SQUARE, 1, centered=False)._replace(offset=np.array([np.nan]))
            ),
            "residual: model.mean must be known",
        ),
        (
            lambda X: kp.residual(
                X, kp.kpca(X, SQUARE, 1, centered=False)._replace(mean=np.full(9, np.nan))
            ),
            "residual: kernel values on X must be finite",
        ),
        (
            lambda X: kp.residual(
                X, kp.kpca(X, SQUARE, 1, centered=False)._replace(mean=np.array([0.5]))
            ),
            "residual: model must be an Expansion whose coef has a row",
        ),
        (
            lambda X: kp.residual(
                X, kp.kpca(X, SQUARE, 1, centered=False)._replace(points=X * np.nan)
            ),
            "residual: features of the expansion's points must be finite",
        ),
        (
            lambda X: kp.residual(
                X, kp.kpca(X, SQUARE, 1, centered=False)._replace(coef=np.ones((8, 1)))
            ),
            "residual: model must be an Expansion whose coef has a row",
        ),
        (
            lambda X: kp.residual(X, kp.linear()),
            "residual: model must be one of Expansion, Subspace, NystromMap; got Kernel",
        ),
        (
            lambda X: kp.residual(X[0], kp.kpca(X, SQUARE, 1, centered=False)),
            "residual: X must be a 2-D array",
        ),
        (
            lambda X: kp.residual(X * np.nan, kp.kpca(X, SQUARE, 1, centered=False)),
            "residual: X must be finite .* row 0, column 0 is not",
        ),
        (
            lambda X: kp.residual(
                X, kp.kpca(X, SQUARE, 1, centered=False)._replace(offset=np.ones(1))
            ),
            "residual: model.mean must be known",
        ),
        (
            lambda X: kp.explained_variance_ratio(X, SQUARE),
            "explained_variance_ratio: model must be one of Expansion, Subspace, NystromMap; got Ker",
        ),
        (
            lambda X: kp.explained_variance_ratio(X[:1], kp.kpca(X, SQUARE, 1, centered=False)),
            "explained_variance_ratio: X must have points that",
        ),
    ],
)
def test_models_that_tell_nothing_are_refused(call, text, rng):
    with pytest.raises(ValueError, match=text):
        call(rng.standard_normal((9, 2)))


@pytest.mark.parametrize("rows", [1, 5, 300])
@pytest.mark.parametrize("make", ["kpca", "centered_kpca", "nystrom_map", "skpca", "drawn anew"])
def test_a_model_with_nan_is_refused_and_not_answered_with_nan(make, rows, rng):
    X, kernel = rng.standard_normal((300, 2)), kp.gaussian(1.0)
    model = {
        "kpca": lambda: kp.kpca(X, kernel, 3, centered=False),
        "centered_kpca": lambda: kp.kpca(X, kernel, 3, centered=True),
        "nystrom_map": lambda: kp.nystrom_map(X, X[:9], kernel),
        "skpca": lambda: kp.skpca(X, kernel, 3, 40, 9, centered=True),
        "drawn anew": lambda: kp.finish(
            kp.update(
                kp.rnca_start(
                    kp.fourier_features_map(kernel, 2, 40, 0, stored=False), centered=False
                ),
                X,
            ),
            3,
        ),
    }[make]()
    new = X[:rows]
    out = np.empty(kp.features(new, model).shape[1])
    arrays = {"points", "coef", "offset", "factor", "basis", "means"} & set(model._fields)
    for field in {field for field in arrays if getattr(model, field) is not None}:
        array = getattr(model, field).copy()
        array.flat[0] = np.nan
        wrong = model._replace(**{field: array})
        for function in (kp.features, kp.residual):
            with pytest.raises(ValueError, match=f"^{function.__name__}: .*must be (finite|known)"):
                function(new, wrong)
        with pytest.raises(ValueError, match="^features_of: .*must be finite"):
            kp.features_of(new[0], wrong, out)
    if make == "skpca":
        frequencies = model.feature_map.frequencies * np.nan
        wrong = model._replace(feature_map=model.feature_map._replace(frequencies=frequencies))
        with pytest.raises(ValueError, match="^residual: X must be smaller relative"):
            kp.residual(new, wrong)


# From compiled code of one's own


@numba.njit
def scored(points, model, out):
    for i in range(len(points)):
        kp.features_of(points[i], model, out[i])
    return out


@numba.njit
def values(kernel, P, Q):
    out = np.empty((len(P), len(Q)))
    for i in range(len(P)):
        for j in range(len(Q)):
            out[i, j] = kp.kernel_value(kernel, P[i], Q[j])
    return out


@pytest.mark.parametrize(
    "kernel",
    [
        *(row.make(1.5) for row in KERNELS.values()),
        kp.custom(numba.njit(lambda x, y: np.minimum(x, y).sum())),
    ],
    ids=str,
)
def test_kernel_values_of_pairs_are_those_of_the_gram_matrix(kernel, rng):
    P, Q = rng.standard_normal((30, 4)), rng.standard_normal((20, 4))
    expected = kp.gram(P, Q, kernel)
    assert np.allclose(values(kernel, P, Q), expected, rtol=1e-12, atol=1e-300)
    assert kp.kernel_value(kernel, P[0], Q[0]) == pytest.approx(expected[0, 0], rel=1e-12)
    assert np.allclose(
        values(kernel, P.astype(np.float32), Q),
        kp.gram(P.astype(np.float32).astype(float), Q, kernel),
    )


def test_a_precomputed_kernel_is_looked_up_by_pairs():
    table = kp.precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))
    assert values(table, np.array([[0.0], [1.0]]), np.array([[1.0]])).tolist() == [[1.0], [3.0]]


def test_the_value_of_vectors_of_two_lengths_read_foreign_memory():
    for kernel in (kp.linear(), kp.gaussian(1.0)):
        with pytest.raises(ValueError, match="^kernel_value: y must have 3 columns, got 1"):
            kp.kernel_value(kernel, np.ones(3), np.ones(1))
    with pytest.raises(ValueError, match="^kernel_value: x must have one column of row numbers"):
        kp.kernel_value(kp.precomputed(np.eye(2)), [7.0], [0.0])
    with pytest.raises(ValueError, match="^kernel_value: kernel must be a Kernel"):
        kp.kernel_value("gaussian", np.ones(3), np.ones(3))
    assert kp.kernel_value(kp.linear(), [1, 2], (3, 4)) == 11.0


def test_features_of_one_point_are_those_of_all(rng):
    X, new, kernel = rng.standard_normal((90, 3)), rng.standard_normal((40, 3)), kp.gaussian(1.5)
    for dtype, tolerance in ((np.float64, 1e-11), (np.float32, 2e-4)):
        P = X.astype(dtype)
        models = [
            (kp.kpca(P, kernel, 4, centered=True), kp.features),
            (kp.kpca(P, kernel, 4, centered=False), kp.features),
            (kp.nystrom_map(P, np.r_[:20, 3], kernel), kp.features),
        ]
        for model, features in models:
            expected = features(new, model)
            assert np.allclose(
                scored(new, model, np.full(expected.shape, np.nan)), expected, atol=tolerance
            ), model
    out = np.empty(4)
    assert kp.features_of(new[0], models[0][0], out) is None
    assert np.allclose(out, kp.features(new[:1], models[0][0])[0], atol=2e-4)


@numba.njit
def residuals(points, model, out):
    found = np.empty(len(points))
    for i in range(len(points)):
        found[i] = kp.residual_of(points[i], model, out[i])
    return found


@pytest.mark.parametrize("kernel", [kp.gaussian(1.5), kp.linear(), kp.laplacian(2.0)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_residuals_from_compiled_code_are_those_of_residual(kernel, dtype, rng):
    points, new = rng.standard_normal((60, 3)).astype(dtype), 3.0 * rng.standard_normal((40, 3))
    new[:3] = points[:3]
    new[3] = 0.0
    model = kp.nystrom_map(points, np.r_[:20, 3] if kernel != kp.linear() else [0, 1], kernel)
    expected, out = kp.residual(new, model), np.empty((40, len(model.points)))
    assert np.abs(residuals(new, model, out) ** 2 - expected**2).max() < 1e-13
    assert np.allclose(out, kp.features(new, model), atol=1e-11)
    alone = np.empty(len(model.points))
    assert kp.residual_of(new[5], model, alone) == kp.residual(new[5:6], model)[0]
    assert np.array_equal(alone, kp.features(new[5:6], model)[0])


def test_residual_of_other_models_is_refused(rng):
    points, out = rng.standard_normal((30, 3)), np.empty((30, 3))
    model = kp.kpca(points, kp.gaussian(1.0), 3, centered=False)
    with pytest.raises(
        ValueError, match="^residual_of: model must be one of .*NystromMap.*; got Expan"
    ):
        kp.residual_of(points[0], model, out[0])
    with pytest.raises(ValueError, match="^residual_of: out must be an array of 5 numbers"):
        kp.residual_of(points[0], kp.nystrom_map(points, points[:5], kp.gaussian(1.0)), out[0])
    with pytest.raises(numba.TypingError, match="residual_of"):
        residuals(points, model, out)


def test_features_of_one_point_want_a_model():
    with pytest.raises(ValueError, match="features_of: model must be one of"):
        kp.features_of(np.zeros(3), (1, 2), np.empty(8))


def test_one_point_from_python_was_interpreted_and_lengths_were_not_checked(rng):
    X, kernel = rng.standard_normal((30, 3)), kp.gaussian(1.0)
    for model in (kp.kpca(X, kernel, 4, centered=False), kp.nystrom_map(X, X[:4], kernel)):
        out = np.full(4, np.nan)
        kp.features_of(X[0], model, out)
        assert np.array_equal(out, kp.features(X[:1], model)[0])
        for x, short, text in (
            (X[0, :2], out, "X and .*columns"),
            (X[:1], out, "x must be a 1-D array"),
            (X[0], out[:3], "out must be an array of 4 numbers"),
            (X[0], np.empty((4, 1)), "out must be an array of 4 numbers"),
            (X[0], None, "out must be an array of 4 numbers"),
        ):
            with pytest.raises(ValueError, match=f"features_of: {text}"):
                kp.features_of(x, model, short)
    with pytest.raises(ValueError, match="out must be an array of 1 numbers"):
        kp.features_of(
            X[0], kp.kpca(X, kernel, 1, centered=False), out
        )  # one number would fill all of `out`


def test_models_of_other_columns_or_without_an_offset_broke_within(rng):
    X, kernel = rng.standard_normal((50, 2)), kp.gaussian(1.0)
    plain = kp.kpca(X, kernel, 3, centered=False)
    bare = plain._replace(offset=np.zeros(3))
    assert np.array_equal(kp.residual(X, bare), kp.residual(X, plain))
    assert np.array_equal(
        kp.explained_variance_ratio(X, bare), kp.explained_variance_ratio(X, plain)
    )
    for model in (
        plain,
        kp.nystrom_map(X, np.arange(5), kernel),
        kp.skpca(X, kernel, 2, 20, 5, centered=False),
    ):
        for function in (kp.residual, kp.explained_variance_ratio):
            with pytest.raises(ValueError, match=f"^{function.__name__}: X .*columns"):
                function(np.ones((3, 3)), model)
    with pytest.raises(ValueError, match="^residual: model.coef must be a 2-D array"):
        kp.residual(X, plain._replace(coef=None))


VERBS = {  # by the field of a model's record that they need
    "residual": lambda X, model: kp.residual(X, model),
    "moments": lambda X, model: kp.explained_variance_ratio(X, model),
    "sketch": lambda X, model: kp.sketch_error(model, X, kp.gaussian(2.0), 1),
    "residual_of_point": lambda X, model: kp.residual_of(
        X[0], model, np.empty(kp.features(X[:1], model).shape[1])
    ),
}


def test_models_and_their_records_are_the_same():
    assert {cls.__name__ for cls in kp._models} == {*MODELS}


@pytest.mark.parametrize("cls", list(kp._models), ids=lambda cls: cls.__name__)
def test_features_of_each_kind_of_model_needed_six_names(cls, rng):
    X = rng.standard_normal((60, 3))
    row = MODELS[cls.__name__]
    model = row.make(X, kp.gaussian(2.0))
    found = kp.features(X, model)
    assert type(model) is cls
    values = np.array(kp._models[cls].values(model))
    assert len(values) == row.values and np.isfinite(values).all()
    out = np.empty(found.shape[1])
    kp.features_of(X[3], model, out)
    assert np.array_equal(out, kp.features(X[3:4], model)[0])
    assert np.allclose(scored(X, model, np.empty(found.shape)), found)
    there = np.empty(found.shape)
    assert kp.features(X, model, out=there) is there and np.array_equal(there, found)


@pytest.mark.parametrize("field", VERBS)
@pytest.mark.parametrize("cls", list(kp._models), ids=lambda cls: cls.__name__)
def test_each_model_has_a_verb_or_is_refused_by_one_sentence(cls, field, rng):
    X = rng.standard_normal((60, 3))
    model = MODELS[cls.__name__].make(X, kp.gaussian(2.0))
    if getattr(kp._models[cls], field):
        assert np.isfinite(np.ravel(VERBS[field](X, model))).all()
    else:
        able = [one.__name__ for one in kp._models if getattr(kp._models[one], field)]
        text = f"must be one of {', '.join(able)}; got {cls.__name__}$"
        with pytest.raises(ValueError, match=text):
            VERBS[field](X, model)


def test_features_of_what_is_no_model_are_refused():
    with pytest.raises(
        ValueError, match="features: model must be one of Expansion, .*; got Kernel"
    ):
        kp.features(np.eye(2), kp.gaussian(1.0))
    with pytest.raises(ValueError, match="^features: X and .*same number of columns"):
        kp.features(np.eye(2), kp.kpca(np.eye(3), kp.gaussian(1.0), 1, centered=False))


def test_the_span_of_a_model_that_does_not_know_its_mean_was_computed_in_every_call(rng):
    X = rng.random((9, 3))
    model = kp.kpca(X, kp.gaussian(1.0), 2)._replace(mean=None)
    assert kp._span_of(model)[0] is kp._span_of(model)[0]
    before = kp._span_of(model)[0]
    model.coef[0] += 1.0
    assert kp._span_of(model)[0] is not before


@pytest.mark.parametrize("columns", [2, 5])
def test_shares_of_variance_read_panels_before_points_were_refused(rng, monkeypatch, columns):
    X = rng.random((30, 3))
    model = kp.skpca(X, kp.gaussian(1.0), 2, 32, 8, centered=False)

    def read(*arguments):
        raise AssertionError("features of points that do not fit")

    monkeypatch.setattr(kp, "_feature_slabs", read)
    with pytest.raises(ValueError, match="^explained_variance_ratio: .*columns"):
        kp.explained_variance_ratio(rng.random((30, columns)), model)


# No points, and sparse points


@pytest.mark.parametrize("cls", list(kp._models), ids=lambda cls: cls.__name__)
def test_models_refused_an_empty_batch(cls, rng):
    X = rng.standard_normal((60, 3))
    for points in (X, X.astype(np.float32)):
        model = MODELS[cls.__name__].make(points, kp.gaussian(2.0))
        whole = kp.features(points, model)
        for empty in (points[:0], np.asfortranarray(points)[:0]):
            found = kp.features(empty, model)
            assert found.shape == (0, *whole.shape[1:]) and found.dtype == whole.dtype
        out = whole[:0]
        assert kp.features(points[:0], model, out=out) is out
        with pytest.raises(ValueError, match="^features: X .*columns"):
            kp.features(points[:0, :2], model)
        with pytest.raises(ValueError, match="^features: X must have at least one row and one"):
            kp.features(points[:0, :0], model)
        if kp._models[cls].residual is None:
            continue
        found = kp.residual(points[:0], model)
        assert found.shape == (0,) and found.dtype == np.float64
        with pytest.raises(ValueError, match="^residual: X .*columns"):
            kp.residual(points[:0, :2], model)
        assert kp.novelty_pvalues(points[:0], model, [0.1, 0.2]).shape == (0,)
        with pytest.raises(ValueError, match="^explained_variance_ratio: X must have at least one"):
            kp.explained_variance_ratio(points[:0], model)


def test_an_empty_batch_of_a_frame_of_sparse_points_and_of_row_numbers(rng):
    X = rng.standard_normal((30, 3))
    kernel = kp.gaussian(2.0)
    vector = kp.nystrom_ridge(X, X[:, 0], np.arange(9), kernel, 0.1)
    assert kp.features(X[:0], vector).shape == (0,)
    S = sparse.csr_array(X)
    model = kp.nystrom_map(S, np.arange(9), kernel)
    assert kp.features(S[:0], model).shape == (0, 9) and kp.residual(S[:0], model).shape == (0,)
    K = kp.gram(X, X, kernel)
    table = kp.kpca(np.arange(30)[:, None], kp.precomputed(K), 2)
    assert kp.features(np.empty((0, 1)), table).shape == (0, 2)
    assert kp.features(np.empty((0, 30)), table).shape == (0, 2)
    assert kp.residual(np.empty((0, 1)), table).shape == (0,)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    model = kp.kpca(frame, kernel, 2)
    assert kp.features(frame[:0], model).shape == (0, 2)
    with pytest.raises(ValueError, match="^features: X and model must have the same columns"):
        kp.features(frame.iloc[:0, ::-1], model)


@pytest.mark.parametrize("cls", list(kp._models), ids=lambda cls: cls.__name__)
def test_a_model_that_takes_only_dense_points_refuses_sparse_ones(cls, rng):
    X = rng.standard_normal((60, 3))
    model = MODELS[cls.__name__].make(X, kp.gaussian(2.0))
    if cls is kp.FourierMap:  # the one that takes both
        assert np.allclose(kp.features(sparse.csr_array(X), model), kp.features(X, model))
        return
    for points in (sparse.csr_array(X), sparse.csr_array(X)[:0]):
        with pytest.raises(ValueError, match="^features: .*dense"):
            kp.features(points, model)
        if kp._models[cls].residual:
            with pytest.raises(ValueError, match="^residual: .*dense"):
                kp.residual(points, model)


# Arguments in each other's place


def test_a_path_for_a_model_and_a_model_for_a_path_had_no_remedy(rng, tmp_path):
    X = rng.standard_normal((30, 3))
    model = kp.kpca(X, kp.gaussian(2.0), 2)
    for path in ("model.npz", tmp_path / "model.npz"):
        for function in (kp.features, kp.residual, kp.explained_variance_ratio):
            with pytest.raises(
                ValueError, match=r"model must be one of .* got .*: call load\(path\)"
            ):
                function(X, path)
    with pytest.raises(ValueError, match=r"^update: state must be .*: call load\(path\)"):
        kp.update("state.npz", X)
    with pytest.raises(
        ValueError, match=r"^save: path must be .*Expansion: call save\(path, model\)"
    ):
        kp.save(model, tmp_path / "model.npz")
    with pytest.raises(ValueError, match="^load: path must be .*Expansion: load reads a file"):
        kp.load(model)
    assert not list(tmp_path.iterdir())
