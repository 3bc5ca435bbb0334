# SPDX-License-Identifier: BSD-3-Clause
"""Kernel PCA: training points and new points agree, with and without centring, with naive.py and with scikit-learn."""

import functools
import os
import pathlib
import subprocess
import sys

import numba
import numpy as np
import pytest
import scipy.linalg

import kpcasketch as kp
from kpcasketch_tests import naive
from kpcasketch_tests.tables import SMOOTH

X, NEW = (
    np.random.default_rng(0).standard_normal((300, 4)),
    np.random.default_rng(1).standard_normal((40, 4)),
)
KERNEL = kp.gaussian(2.0)
K, K_NEW = naive.gaussian(X, X, 2.0), naive.gaussian(NEW, X, 2.0)


def test_features_of_training_points_are_those_of_the_eigenvectors():
    eigen = kp.block_lanczos(K, 6, 0, tol=1e-13)
    features = kp.features(X, kp.kpca_from_eigen(X, KERNEL, eigen))
    assert np.abs(features - eigen.vectors * np.sqrt(eigen.values)).max() < 1e-10


@pytest.mark.parametrize(
    "make",
    [
        lambda A: kp.kpca(A, KERNEL, 3, centered=False),
        lambda A: kp.kpca(A, KERNEL, 3, centered=True),
        lambda A: kp.kpca_from_eigen(A, KERNEL, kp.block_lanczos(K, 3)),
        lambda A: kp.rskpca(A, KERNEL, 3, centered=False),
        lambda A: kp.weighted_nystrom(A, A, KERNEL, 3),
        lambda A: kp.kernel_ridge(A, A[:, 0], KERNEL, 1.0, intercept=False),
        lambda A: kp.diffusion_map(A, KERNEL, 3),
        lambda A: kp.laplacian_eigenmap(A, KERNEL, 3),
        lambda A: kp.kmeans_select(A, 300),
        lambda A: kp.normalized_cut(A, KERNEL, 3),
        lambda A: kp.nystrom_map(A, A, KERNEL),
        lambda A: kp.nystrom_kpca(A, np.arange(300), KERNEL, 3, centered=False),
        lambda A: kp.update(kp.shadow_start(1e-9, 4), A),
        lambda A: kp.shadow_select(A, 1e-9),
        lambda A: kp.update(kp.rls_start(KERNEL, 300, 4), A),
        lambda A: kp.update(kp.fd_start(4, 4), A),
    ],
)
def test_models_and_states_changed_with_the_array_that_they_were_made_from(make):
    A = X.copy()
    made = make(A)
    before = [np.copy(part) for part in made if isinstance(part, np.ndarray)]
    A -= 1.0
    assert all(map(np.array_equal, before, [part for part in made if isinstance(part, np.ndarray)]))


def test_features_of_new_points_are_the_naive_ones():
    expansion = kp.kpca(X, KERNEL, 6, 0, centered=False)
    assert np.abs(kp.features(NEW, expansion) - naive.features(K_NEW, K, 6)).max() < 1e-8
    assert np.allclose(expansion.values, naive.eigenpairs(K, 6)[0], rtol=1e-12)


def test_centered_features_are_the_naive_ones():
    expansion = kp.kpca(X, KERNEL, 6, 0, centered=True)
    assert np.abs(kp.features(NEW, expansion) - naive.centered_features(K_NEW, K, 6)).max() < 1e-8
    assert np.abs(kp.features(X, expansion).mean(0)).max() < 1e-12


def test_centering_the_operator_and_then_the_expansion_is_centered_kpca():
    eigen = kp.block_lanczos(kp.center(kp.gram(X, X, KERNEL)), 6, 0, tol=1e-13)
    by_parts = kp.kpca_from_eigen(X, KERNEL, eigen, centered=True)
    whole = kp.kpca(X, KERNEL, 6, 0, centered=True)
    assert np.abs(kp.features(NEW, by_parts) - kp.features(NEW, whole)).max() < 1e-9


@pytest.mark.parametrize("name", ["gaussian", "polynomial"])
def test_centered_kpca_agrees_with_scikit_learn(name):
    decomposition = pytest.importorskip("sklearn.decomposition")
    kernel, model = {
        "gaussian": (
            KERNEL,
            decomposition.KernelPCA(5, kernel="rbf", gamma=1 / 8, eigen_solver="dense"),
        ),
        "polynomial": (
            kp.polynomial(2, 0.5, 1.0),
            decomposition.KernelPCA(
                5, kernel="poly", degree=2, gamma=0.5, coef0=1.0, eigen_solver="dense"
            ),
        ),
    }[name]
    expansion = kp.kpca(X, kernel, 5, 0, centered=True)
    model.fit(X)
    assert np.allclose(expansion.values, model.eigenvalues_, rtol=1e-8)
    ours, theirs = kp.features(NEW, expansion), model.transform(NEW)
    assert np.abs(np.abs(ours) - np.abs(theirs)).max() < 1e-8 * np.abs(theirs).max()


def test_shifted_data_give_the_same_centered_features_for_the_linear_kernel():
    a = kp.features(NEW, kp.kpca(X, kp.linear(), 3, 0, centered=True))
    b = kp.features(NEW + 50, kp.kpca(X + 50, kp.linear(), 3, 0, centered=True))
    assert np.abs(np.abs(a) - np.abs(b)).max() < 1e-8


def test_components_below_rounding_are_cut_and_the_rest_are_finite(rng):
    line = np.outer(rng.standard_normal(50), [1.0, 2.0])
    expansion = kp.kpca(line, kp.linear(), 3, 0, centered=False)
    assert (expansion.values > 0).sum() == 1 and np.isfinite(expansion.coef).all()
    assert np.abs(kp.features(line, expansion)[:, 1:]).max() == 0.0


@pytest.mark.parametrize(
    "points",
    [
        np.ones((1, 1)),
        np.ones((7, 2)),
        np.zeros((3, 2)),
        np.repeat(np.arange(3.0)[:, None], 4, axis=0),
    ],
)
def test_one_point_copies_and_zeros_give_finite_features(points):
    for make in (functools.partial(kp.kpca, centered=False), kp.kpca):
        for kernel in (KERNEL, kp.linear()):
            assert np.isfinite(kp.features(points, make(points, kernel, 1, 0))).all()


def test_an_expansion_without_offset_is_the_plain_sum(rng):
    coef = rng.standard_normal((300, 2))
    plain = kp.features(NEW, kp.Expansion(X, coef, np.ones(2), KERNEL))
    shifted = kp.features(
        NEW, kp.Expansion(X, coef, np.ones(2), KERNEL, offset=np.array([1.0, -2.0]))
    )
    assert (
        np.abs(plain - K_NEW @ coef).max() < 1e-11
        and np.abs(shifted - plain - [1.0, -2.0]).max() < 1e-12
    )


def test_float32_points_give_float32_features():
    exact = kp.kpca(X, KERNEL, 3, 0, centered=False)
    expansion = kp.Expansion(
        X.astype(np.float32), exact.coef.astype(np.float32), exact.values, KERNEL
    )
    single = kp.features(NEW.astype(np.float32), expansion)
    assert single.dtype == np.float32
    assert np.abs(single - naive.features(K_NEW, K, 3)).max() < 1e-3


def test_kpca_has_the_same_bits_for_any_number_of_threads(same_bits):
    same_bits(kp.kpca, X, KERNEL, 3, 5)


@pytest.mark.parametrize("name", ["iris", "wine", "digits", "breast_cancer"])
def test_eigenvalues_of_well_known_data_are_those_of_scipy(name):
    # those of iris were wrong: 150 points were just beyond the size of a direct solution
    points = getattr(pytest.importorskip("sklearn.datasets"), "load_" + name)().data
    sigma = kp.median_bandwidth(points, 0)
    for kernel in (
        kp.gaussian(sigma),
        kp.laplacian(sigma),
        kp.matern(1.5, sigma),
        kp.cauchy(sigma),
        kp.polynomial(2, 1 / sigma**2, 1.0),
    ):
        K = kp.gram(points, points, kernel)
        exact = scipy.linalg.eigh(K, eigvals_only=True, subset_by_index=(len(K) - 10, len(K) - 1))[
            ::-1
        ]
        assert (
            np.abs(kp.kpca(points, kernel, 10, 0, centered=False).values - exact).max()
            <= 1e-10 * exact[0]
        )


def test_an_outlier_spoilt_the_centred_features_of_later_components():
    # coefficients that sum to 1e-9, not 0, times kernel values of 1e9
    points = np.random.default_rng(0).standard_normal((40, 5))
    points[3] *= 1e4
    K = naive.linear(points, points)
    model = kp.kpca(points, kp.linear(), 4, 0, centered=True)
    assert np.abs(model.coef.sum(0)).max() < 1e-15
    features = kp.features(points, model)
    assert np.allclose(
        (features**2).sum(0), np.linalg.eigvalsh(naive.centered(K))[::-1][:4], rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_of_the_mean_that_centring_takes_off_was_taken_for_components(dtype, rng):
    # 8 components of points in 3 dimensions, far from the origin, with a linear kernel; the largest .46 of the first
    points = (rng.standard_normal((100, 3)) + 100).astype(dtype)
    values = kp.kpca(points, kp.linear(), 12, centered=True).values
    assert (values > 0).sum() == 3
    assert np.allclose(
        values[:3],
        np.linalg.svd(points - points.mean(0, dtype=float), compute_uv=False) ** 2,
        rtol=1e-2,
    )


def test_small_components_of_spectra_with_a_large_mean_were_rounding_in_float32(rng):
    # 80 spectra of 2000 points near 2 with peaks of 2e-3; the answer by numpy's decomposition in float64
    place = np.linspace(0.0, 1.0, 2000)
    peaks = np.exp(-0.5 * ((place - np.array([[0.2], [0.5], [0.8]])) / 0.02) ** 2)
    spectra = (2.0 + 2e-3 * rng.standard_normal((80, 3)) @ peaks).astype(np.float32)
    U, sizes, _ = np.linalg.svd(
        spectra.astype(float) - spectra.astype(float).mean(0), full_matrices=False
    )
    found = kp.kpca(spectra, kp.linear(), 4, centered=True)
    assert (
        found.values[:3] == pytest.approx(sizes[:3] ** 2, rel=1e-5)
        and found.values[3] < 1e-6 * found.values[0]
    )
    features = kp.features(spectra, found)
    assert features.dtype == np.float32
    assert np.abs(np.abs(features[:, :3]) - np.abs(U[:, :3] * sizes[:3])).max() < 1e-4 * sizes[0]


def centered_in_long_double(K):
    """H K H of a matrix in long double, and its eigenvalues, largest first."""
    K = np.asarray(K, np.longdouble)
    K = K - K.mean(0) - K.mean(1)[:, None] + K.mean()
    return K, np.linalg.eigvalsh(K.astype(float))[::-1]


@pytest.fixture
def products(monkeypatch):
    """A list that grows by one with each product of the eigensolver."""
    counted, product = [], kp._finite_product
    monkeypatch.setattr(
        kp, "_finite_product", lambda A, V: (counted.append(type(A)), product(A, V))[1]
    )
    return counted


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_components_of_a_polynomial_far_from_the_origin_were_the_rounding_of_centring(dtype):
    # float32: components 2 to 6 at 3e-3 of the first, where they are 2e-11 and less
    points = (np.random.default_rng(0).standard_normal((170, 1)) + 300).astype(dtype)
    wide = points.astype(np.longdouble)
    _, values = centered_in_long_double((wide @ wide.T + 1) ** 2)
    kernel = kp.polynomial(2, 1.0, 1.0)
    model = kp.kpca(points, kernel, 6, centered=True)
    by_parts = kp.kpca_from_eigen(
        points, kernel, kp.block_lanczos(kp.center(kp.gram(points, points, kernel)), 6)
    )
    assert model.values[0] == pytest.approx(values[0], rel=1e-6) and not model.values[1:].any()
    assert by_parts.values[0] == pytest.approx(values[0], rel=1e-3)
    assert (by_parts.values[1:] <= 1e-10 * values[0]).all()
    features = kp.features(points, model)[:, 0].astype(float)
    assert (features**2).sum() == pytest.approx(values[0], rel=1e-3)


def test_float32_polynomials_far_from_the_origin_took_all_iterations_for_three_digits(products):
    # 1000 iterations, and an error of 2e-3 of the largest value
    points = (np.random.default_rng(0).standard_normal((400, 20)) + 100).astype(np.float32)
    kernel, wide = kp.polynomial(2, 1 / 20, 1.0), points.astype(np.longdouble)
    _, values = centered_in_long_double((wide @ wide.T / 20 + 1) ** 2)
    model = kp.kpca(points, kernel, 12, centered=True)
    assert np.abs(model.values - values[:12]).max() < 1e-6 * values[0] and len(products) <= 30


def test_centring_a_wide_gaussian_ran_through_all_iterations(products):
    # its 2 components are 1e-10 of what centring takes off
    points = np.random.default_rng(0).standard_normal((500, 2))
    D = np.square(points[:, None].astype(np.longdouble) - points).sum(2)
    exact, values = centered_in_long_double(np.expm1(-D / 2e10))
    model = kp.kpca(points, kp.gaussian(1e5), 5, centered=True)
    assert len(products) <= 20
    assert np.allclose(model.values[:2], values[:2], rtol=1e-6) and not model.values[2:].any()
    found = kp.block_lanczos(kp.center(kp.gram(points, points, kp.gaussian(1e5))), 5, 0, tol=1e-13)
    assert found.iterations <= 20  # an operator knows what cancels in it
    true = (
        np.linalg.norm(exact.astype(float) @ found.vectors - found.vectors * found.values, axis=0)
        / values[0]
    )
    # the larger one of what the search left and of the rounding
    assert (true <= 1.1 * found.residual).all()


def test_components_that_centring_leaves_of_many_float32_points_were_cut():
    # the search ended with its start block, where the rounding of 1^T K 1 / n exceeds what a random vector shows
    points = np.random.default_rng(0).standard_normal((9000, 5)).astype(np.float32)
    values = np.linalg.svd(points - points.mean(0, np.float64), compute_uv=False) ** 2 / 300.0**2
    assert np.allclose(
        kp.kpca(points, kp.gaussian(300.0), 3, centered=True).values, values[:3], rtol=1e-3
    )


def test_centring_an_expansion_left_sums_that_large_kernel_values_multiply():
    # by eigenvectors of H K H that do not sum to 0 to the last bit: features were off by 1e5 times their size
    points = np.random.default_rng(0).standard_normal((40, 3))
    kernel = kp.polynomial(2, 1.0, 1e5)
    exact, values = centered_in_long_double((points.astype(np.longdouble) @ points.T + 1e5) ** 2)
    values, vectors = values[:3], np.linalg.eigh(exact.astype(float))[1][:, :-4:-1]
    eigen = kp.Eigen(values, vectors + 1e-9, 1, np.zeros(3))
    model = kp.kpca_from_eigen(points, kernel, eigen, centered=True)
    assert np.abs(model.coef.sum(0)).max() < 1e-15 * np.abs(model.coef).max() * 40
    features = kp.features(points, model)
    assert np.abs(features - vectors * np.sqrt(values)).max() < 1e-5 * np.sqrt(values[0])


def test_weighted_components_of_a_linear_kernel_lost_all_digits_far_from_the_origin():
    C, w = np.random.default_rng(0).standard_normal((60, 3)) + 1e9, np.arange(1.0, 61.0)
    deviations = C - (w @ C) / w.sum()
    values = np.linalg.svd(np.sqrt(w)[:, None] * deviations, compute_uv=False) ** 2
    model = kp.rskpca(kp.ReducedSet(C, w), kp.linear(), 3, 0, centered=True)
    assert model.values == pytest.approx(values, rel=1e-6)
    assert kp.kpca(C, kp.linear(), 3, centered=True).values == pytest.approx(
        np.linalg.svd(C - C.mean(0), compute_uv=False) ** 2, rel=1e-6
    )


def test_components_of_landmarks_were_the_rounding_of_centring():
    # the third was 1.6e-14, half of what it is, and is below the rounding of the mean, 4e-14
    points = np.random.default_rng(0).standard_normal((200, 2))
    D = np.square(points[:, None].astype(np.longdouble) - points).sum(2)
    values = centered_in_long_double(np.expm1(-D / 2e8))[1]
    found = kp.nystrom_kpca(points, np.arange(50), kp.gaussian(1e4), 6, 0, centered=True)
    assert np.allclose(found.values[:2], values[:2], rtol=1e-6) and not found.values[2:].any()


# Pre-images


def denoised_circle():
    angles = np.linspace(0.0, 6.2, 150)
    clean = 3.0 * np.column_stack([np.cos(angles), np.sin(angles)])
    return clean, clean + 0.25 * np.random.default_rng(2).standard_normal(clean.shape)


@pytest.mark.parametrize("centered", [False, True])
def test_preimages_are_stationary_points_and_denoise(centered):
    clean, noisy = denoised_circle()
    expansion = kp.kpca(noisy, kp.gaussian(1.5), 8, centered=centered)
    features = kp.features(noisy, expansion)
    found = kp.kernel_pca_preimage(features, expansion)
    radii = np.linalg.norm(found, axis=1)
    assert np.abs(radii - 3.0).mean() < 0.75 * np.abs(np.linalg.norm(noisy, axis=1) - 3.0).mean()
    gammas = features @ expansion.coef.T + (1.0 / 150 if centered else 0.0)

    def height(z):  # <phi(z), sum gamma_i phi(x_i)>
        return (gammas * naive.gaussian(z, noisy, 1.5)).sum(1)

    for shift in np.concatenate([np.eye(2), -np.eye(2)]):
        assert (height(found + 1e-3 * shift) <= height(found) + 1e-9).all()
    assert (height(found) >= height(noisy) - 1e-9).mean() > 0.95


def test_preimages_by_oblique_components_are_those_of_the_same_span():
    _, noisy = denoised_circle()
    plain = kp.kpca(noisy, kp.gaussian(1.5), 8, centered=False)
    C = kp.kmeans_select(noisy, 30)
    nystrom = kp.weighted_nystrom(noisy, C, kp.gaussian(1.5), 8)
    thin = kp.round_expansion(plain, 3.0, 1)
    for E in (nystrom, thin, plain._replace(coef=plain.coef * np.arange(1.0, 9.0))):
        Y = kp.features(noisy, E)
        K = naive.gaussian(E.points, E.points, 1.5)
        # P lies in the span, and has the features Y: a Gram system. Its coefficients were coef y.
        gammas = Y @ np.linalg.solve(E.coef.T @ K @ E.coef, E.coef.T)
        found = kp.kernel_pca_preimage(Y, E)
        weights = gammas * naive.gaussian(found, E.points, 1.5)
        inside = weights.sum(1) > 1e-3
        assert inside.mean() > 0.9
        means = (weights @ E.points)[inside] / weights.sum(1)[inside, None]
        assert np.abs(found[inside] - means).max() < 1e-6
    expected = kp.kernel_pca_preimage(kp.features(noisy, plain), plain)
    assert np.abs(found - expected).max() < 1e-6  # the last model scales the components of `plain`


def test_learned_preimages_are_those_of_kernel_ridge_regression():
    _, noisy = denoised_circle()
    for kernel, of in [
        (kp.gaussian(1.5), lambda A, B: naive.gaussian(A, B, 1.5)),
        (kp.polynomial(3, 0.5, 1.0), lambda A, B: (0.5 * A @ B.T + 1) ** 3),
    ]:
        expansion = kp.kpca(noisy, kernel, 5, centered=False)
        F, new = kp.features(noisy, expansion), kp.features(noisy[:7] + 0.1, expansion)
        expected = of(new, F) @ np.linalg.solve(of(F, F) + 0.2 * np.eye(150), noisy)
        assert np.abs(kp.kernel_pca_preimage(new, expansion, lam=0.2) - expected).max() < 1e-6


def test_learned_preimages_are_scikit_learns_of_points_about_their_mean():
    decomposition = pytest.importorskip("sklearn.decomposition")
    _, noisy = denoised_circle()
    noisy = noisy + [2.0, 5.0]
    mean = noisy.mean(0)
    peer = decomposition.KernelPCA(
        6, kernel="rbf", gamma=0.3, fit_inverse_transform=True, alpha=0.5
    ).fit(noisy - mean)
    expansion = kp.kpca(noisy, kp.gaussian(np.sqrt(0.5 / 0.3)), 6, centered=True)
    ours = kp.kernel_pca_preimage(kp.features(noisy + 0.1, expansion), expansion, lam=0.5)
    assert (
        np.abs(ours - mean - peer.inverse_transform(peer.transform(noisy - mean + 0.1))).max()
        < 1e-6
    )


def test_learned_preimages_of_centred_linear_models_had_mean_0():
    # two components of points in the plane tell all of a point
    points = np.random.default_rng(0).standard_normal((80, 2)) + [0.93, 1.24]
    for model in (
        kp.kpca(points, kp.linear(), 2, centered=True),
        kp.nystrom_kpca(points, np.arange(9), kp.linear(), 2, 0, centered=True),
        kp.rskpca(kp.ReducedSet(points, np.arange(1.0, 81.0)), kp.linear(), 2, 0, centered=True),
        kp.kpca(points, kp.linear(), 2, centered=False),
    ):
        found = kp.kernel_pca_preimage(kp.features(points, model), model, lam=1e-9)
        assert np.abs(found - points).max() < 1e-6


def test_preimages_diagonals_and_ridges_failed_where_numpy_raises_what_underflows():
    points, tiny = np.array([[0.0], [1.0], [100.0]]), np.full((3, 2), 1e-20, np.float32)
    with np.errstate(all="raise"):
        model = kp.kpca(points, kp.gaussian(1.0), 3, centered=False)
        assert (
            np.abs(kp.kernel_pca_preimage(kp.features(points, model), model) - points).max() < 1e-6
        )
        # 4e-80, below float32
        assert kp.gram_diagonal(tiny, kp.polynomial(2, 1.0, 0.0)).max() < 1e-45
        found = kp.kernel_ridge(
            points, np.array([1.0, 1e-300, 0.0]), kp.gaussian(1.0), 1e200, intercept=False
        )
        assert found.coef[0, 0] == pytest.approx(1e-200)


def test_preimages_of_far_features_and_odd_kernels():
    _, noisy = denoised_circle()
    expansion = kp.kpca(noisy, kp.gaussian(1e-3), 4, centered=False)
    for features in (np.zeros((2, 4)), np.full((2, 4), 1e9), np.full((2, 4), -1e-9)):
        assert np.isfinite(kp.kernel_pca_preimage(features, expansion)).all()
    assert kp.kernel_pca_preimage(np.zeros((1, 4), np.float32), expansion).dtype == np.float64
    with pytest.raises(ValueError, match="features must have 4 columns, got 3"):
        kp.kernel_pca_preimage(np.zeros((2, 3)), expansion)
    with pytest.raises(ValueError, match="lam must be positive unless"):
        kp.kernel_pca_preimage(
            np.zeros((2, 4)), kp.kpca(noisy, kp.laplacian(1.0), 4, centered=False)
        )
    table = kp.kpca(np.arange(5.0).reshape(-1, 1), kp.precomputed(np.eye(5)), 2, centered=False)
    with pytest.raises(ValueError, match="precomputed or custom"):
        kp.kernel_pca_preimage(np.zeros((2, 2)), table, lam=1.0)


def test_preimages_guessed_from_an_offset_whether_a_model_was_centred():
    # of symmetric points the offset is 0; of weighted centers the mean is not that of equal weights
    two = kp.kpca(np.array([[-1.0], [1.0]]), kp.gaussian(1.0), 1, centered=True)
    assert abs(two.offset[0]) < 1e-15
    assert np.allclose(
        kp.kernel_pca_preimage(kp.features(two.points, two), two), two.points, atol=1e-8
    )
    three = kp.rskpca(
        kp.ReducedSet(np.array([[0.0], [1.0], [3.0]]), np.array([10.0, 1.0, 1.0])),
        kp.gaussian(1.0),
        2,
        0,
        centered=True,
    )
    assert np.allclose(
        kp.kernel_pca_preimage(kp.features(three.points, three), three), three.points, atol=1e-8
    )


def test_preimages_of_models_that_do_not_know_their_mean_are_refused(rng):
    X = rng.standard_normal((30, 2))
    model = kp.kpca(X, kp.gaussian(1.0), 2, centered=True)
    features = kp.features(X, model)
    thinned = kp.round_expansion(model, 2.0, 0)
    for unknown in (thinned, model._replace(mean=None)):
        with pytest.raises(
            ValueError,
            match="kernel_pca_preimage: lam must be positive if model.mean is unknown",
        ):
            kp.kernel_pca_preimage(features, unknown)
        assert np.isfinite(kp.kernel_pca_preimage(features, unknown, lam=0.1)).all()
    with pytest.raises(
        ValueError, match="kernel_pca_preimage: model must be an Expansion whose coef"
    ):
        kp.kernel_pca_preimage(features, model._replace(mean=np.ones(29)))


def test_preimages_went_to_infinity_where_every_point_is_worse_than_none():
    X = np.array([[-0.573], [0.019], [-0.112]])
    for k in (1, 2, 3):
        for make in (functools.partial(kp.kpca, centered=False), kp.kpca):
            model = make(X, kp.gaussian(1.0), k)
            for factor in (-1.0, -1e3, 1e3):
                found = kp.kernel_pca_preimage(factor * kp.features(X, model), model)
                assert np.isfinite(found).all() and np.abs(found).max() < 100


def ridge(rows, kernel, k):
    return kp.nystrom_ridge(rows, np.sin(rows[:, 0]), rows[::k], kernel, 0.1, intercept=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [functools.partial(kp.kpca, centered=False), kp.kpca, ridge])
def test_features_from_rows_of_kernel_values_are_those_from_row_numbers(make, dtype, rng):
    # 600 x 500 is beyond one product of BLAS
    K = naive.gaussian(points := rng.standard_normal((1100, 2)), points, 1.0)
    for kernel in (kp.precomputed(K), kp.scaled(kp.precomputed(K), 7.0)):
        model = make(np.arange(500.0)[:, None], kernel, 3)
        numbers = model.points[:, 0].astype(int)
        rows = K[500:][:, numbers].astype(dtype)
        expected = kp.features(np.arange(500.0, 1100.0)[:, None], model)
        found = kp.features(rows, model, out=np.empty(expected.shape))
        far = kernel.scale * np.abs(model.coef).sum(0).max()  # times the rounding of kernel values
        assert np.abs(found - expected).max() < far * (1e-13 if dtype == np.float64 else 1e-7)
        assert np.array_equal(kp.features(rows, model), found)
    if make is not ridge:
        test = naive.centered_features if make is kp.kpca else naive.features
        of_one = test(K[500:, :500], K[:500, :500], 3)
        found = kp.features(K[500:, :500].copy(), make(numbers[:, None], kp.precomputed(K), 3))
        assert np.abs(np.abs(found) - np.abs(of_one)).max() < 1e-8


@pytest.mark.parametrize("centered", [False, True])
def test_landmarks_under_a_precomputed_kernel_lost_the_order_in_which_they_were_given(
    centered, rng
):
    pytest.importorskip("sklearn")
    points = rng.standard_normal((80, 2))
    table = kp.precomputed(naive.gaussian(points, points, 1.0))
    rows, known = np.array([7, 3, 30, 12, 40, 3, 55]), np.arange(60.0)[:, None]
    new = np.arange(60.0, 80.0)[:, None]
    y = points[:60, 0]
    for model in (
        kp.nystrom_kpca(known, rows, table, 3, centered=centered),
        kp.nystrom_ridge(known, y, rows, table, 0.1, intercept=centered),
        kp.LandmarkRidge(rows, 0.1, kernel=table).fit(known, y).model_,
    ):
        assert np.array_equal(model.points[:, 0], rows)
        found = kp.features(table.table[60:, rows].copy(), model)
        assert np.abs(found - kp.features(new, model)).max() < 1e-9


def test_columns_of_kernel_values_must_be_those_of_the_points(rng):
    K = naive.gaussian(points := rng.standard_normal((60, 2)), points, 1.0)
    rows, kernel = np.arange(60.0)[:, None], kp.precomputed(K)
    model = kp.nystrom_kpca(rows, np.arange(9), kernel, 3, centered=False)
    with pytest.raises(ValueError, match=r"^features: X and model.points must have the same numb"):
        kp.features(K, model)
    alone = kp.kpca(
        rows[:1], kernel, 1, centered=False
    )  # one column has row numbers, whatever the model
    assert np.abs(kp.features(rows, alone)[:, 0] - K[0]).max() < 1e-12
    with pytest.raises(ValueError, match="^features: X must have one column of row numbers"):
        kp.features(K[:, :1].copy(), alone)
    with pytest.raises(ValueError, match="^features: X must be finite"):
        kp.features(np.full((2, 9), np.nan), model)
    for wrong in (model._replace(coef=model.coef[:4]), model._replace(kernel=3), kernel, None):
        with pytest.raises(ValueError, match="^features: model(.kernel)? must be"):
            kp.features(K[:, :9].copy(), wrong)
    with pytest.raises(ValueError, match="^features: X and model.points must have the same numb"):
        kp.features(K[:, :9].copy(), kp.nystrom_map(rows, np.arange(9), kernel))


@pytest.mark.parametrize("make", [functools.partial(kp.kpca, centered=False), kp.kpca])
def test_a_rectangular_matrix_of_a_precomputed_kernel_was_refused_without_the_remedy(make, rng):
    K = naive.gaussian(points := rng.standard_normal((110, 2)), points, 1.0)
    model, rows, K_test = (
        make(np.arange(100.0)[:, None], kp.precomputed(K), 3),
        np.arange(100.0, 110.0),
        K[100:, :100],
    )
    with pytest.raises(
        ValueError,
        match=r"got shapes \(10, 100\) and \(100, 1\): .* \(or to features, a column per point\)$",
    ):
        kp.residual(K_test.copy(), model)
    offset = 0.0 if model.offset is None else model.offset
    assert np.allclose(K_test @ model.coef + offset, kp.features(rows[:, None], model), 1e-9, 1e-9)
    with pytest.raises(
        ValueError,
        match=r"X must have one column .*: pass np.arange\(N\)\[:, None\] for all points",
    ):
        make(K, kp.precomputed(K), 3)


# Gradients and relevance


def weighted(kernel, points=X[:60], k=3):
    """An Expansion with random coefficients."""
    coef = np.random.default_rng(2).standard_normal((len(points), k)).astype(points.dtype)
    return kp.Expansion(points, coef, np.ones(k), kernel)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_differences_of_naive_features(name):
    row = SMOOTH[name]
    kernel = row.make(1.3)
    E = weighted(kernel)
    expected = naive.gradient(lambda A: row.naive(A, E.points, 1.3) @ E.coef, NEW)
    unit = np.abs(expected).max()
    found = kp.gradient(NEW, E)
    assert found.shape == (40, 3, 4) and found.dtype == np.float64
    # central differences err by h^2 = 1e-10 of the third derivative, and by eps / h = 2e-11 of the values
    assert np.abs(found - expected).max() < 1e-8 * unit
    single = kp.gradient(NEW.astype(np.float32), weighted(kernel, E.points.astype(np.float32)))
    assert single.dtype == np.float64 and np.abs(single - expected).max() < 2e-6 * unit
    # an offset does not change them, and distances do not see a shift, but for rounding of 1e6 itself
    assert np.array_equal(kp.gradient(NEW, E._replace(offset=np.ones(3))), found)
    if row.radial:
        far = kp.gradient(NEW + 1e6, weighted(kernel, E.points + 1e6))
        assert np.abs(far - found).max() < 1e-8 * unit


def test_the_square_of_a_large_gamma_raised_an_overflow_error():
    E = weighted(kp.laplacian(1e-150))
    assert not kp.gradient(NEW, E).any()
    with pytest.raises(ValueError, match="gradients at X must be finite"):
        kp.gradient(NEW, weighted(kp.matern(1.5, 1.0)._replace(gamma=1e200)))


def test_gradients_of_the_gaussian_kernel_are_those_of_the_formula():
    E = weighted(kp.gaussian(1.3))
    expected = naive.gaussian_gradient(NEW, E.points, E.coef, 1.3)
    assert np.abs(kp.gradient(NEW, E) - expected).max() < 1e-13 * np.abs(expected).max()


def test_gradients_of_a_linear_model_are_its_coefficient_vectors():
    directions = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :2]
    found = np.abs(kp.gradient(NEW, kp.kpca(X, kp.linear(), 2, centered=False)))
    assert np.abs(found - np.abs(directions.T)).max() < 1e-12
    shares = kp.relevance(NEW, kp.kpca(X, kp.linear(), 2, centered=True)).components
    centered = np.linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :2]
    assert np.abs(shares - centered.T**2).max() < 1e-12


def test_gradients_in_many_blocks_are_those_of_one_block(rng):
    # 40,000 points: a block has 128 rows
    E = weighted(KERNEL, rng.standard_normal((40_000, 2)))
    new = rng.standard_normal((300, 2))
    apart = np.concatenate([kp.gradient(part, E) for part in (new[:90], new[90:])])
    assert np.abs(kp.gradient(new, E) - apart).max() < 1e-12 * np.abs(apart).max()


def test_the_gradient_of_the_laplacian_at_its_kink_is_the_mean_of_both_sides():
    for shift in (0.0, 1e6):
        one = kp.Expansion(np.full((1, 1), shift), np.ones((1, 1)), np.ones(1), kp.laplacian(2.0))
        at = shift + np.array([[-0.5], [0.0], [0.5]])
        slopes = 0.5 * np.exp(-0.25) * np.array([1.0, 0.0, -1.0])
        assert np.abs(kp.gradient(at, one)[:, 0, 0] - slopes).max() < 1e-12


def test_relevance_is_the_share_of_squared_gradients():
    E = weighted(kp.gaussian(1.3))
    G = naive.gaussian_gradient(NEW, E.points, E.coef, 1.3)
    M = np.einsum("qjs,qjt->jst", G, G) / 40
    parts = np.diagonal(M, 0, 1, 2)
    assert np.allclose(kp.gradient_outer_product(NEW, E), M.sum(0), rtol=1e-11)
    shares = kp.relevance(NEW, E)
    assert np.allclose(shares.components, parts / parts.sum(1)[:, None], rtol=1e-11)
    assert np.allclose(shares.columns, parts.sum(0) / parts.sum(), rtol=1e-11)
    assert shares.columns.sum() == pytest.approx(1.0, abs=1e-14)


def test_relevance_finds_the_columns_of_a_regression_and_of_components(rng):
    A = rng.standard_normal((400, 6))
    model = kp.nystrom_ridge(
        A, np.sin(A[:, 4]), np.arange(200), kp.gaussian(3.0), 1e-2, intercept=False
    )
    shares = kp.relevance(A, model).columns
    assert shares.argmax() == 4 and shares[4] > 0.9
    B = A * np.array([0.01, 0.01, 3.0, 0.01, 0.01, 1.0])
    shares = kp.relevance(B, kp.kpca(B, kp.gaussian(60.0), 2, centered=True)).components
    assert shares.argmax(1).tolist() == [2, 5] and shares.max(1).min() > 0.9


def test_relevance_did_not_tell_the_direction_of_a_column(rng):
    E = weighted(kp.gaussian(1.3))
    found = kp.relevance(NEW, E)
    assert np.allclose(found.mean_gradient, kp.gradient(NEW, E).mean(0), rtol=1e-12)
    A = rng.standard_normal((300, 3))
    y = A[:, 0] - 3.0 * A[:, 1] + A[:, 2] ** 2
    model = kp.nystrom_ridge(A, y, np.arange(200), kp.gaussian(3.0), 1e-3)
    found = kp.relevance(A, model)
    assert found.mean_gradient.shape == found.components.shape == (1, 3)
    assert found.mean_gradient[0, :2] == pytest.approx([1.0, -3.0], abs=0.2)
    # column 2 has an influence, and no direction
    assert found.components[0, 2] > 0.2 and abs(found.mean_gradient[0, 2]) < 0.5


def test_relevance_of_constant_features_is_zero():
    equal = np.ones((30, 2))
    E = kp.kpca(
        equal, KERNEL, 3, centered=False
    )  # components 2 and 3 are 0, and all gradients at the point, too
    assert not kp.relevance(equal, E).columns.any() and not kp.relevance(equal, E).components.any()
    assert not kp.gradient(equal, E).any()
    one = kp.kpca(equal[:1], KERNEL, 1, centered=False)
    assert kp.relevance(np.array([[1.0, 3.0]]), one).columns.tolist() == [0.0, 1.0]


def test_gradients_do_not_depend_on_threads(threads, rng):
    A = rng.standard_normal((900, 40))
    E = weighted(kp.matern(1.5, 9.0), A, 2)
    for call in (
        lambda: kp.gradient(A, E),
        lambda: kp.relevance(A, E).columns,
        lambda: kp.gradient_outer_product(A, E),
        lambda: kp.scale_points(A, A.T @ A),
    ):
        assert np.array_equal(threads(1, call), threads(2, call))


def test_scaled_points_have_the_distances_of_the_metric(rng):
    B = rng.standard_normal((4, 4))
    M = B.T @ B
    P = kp.scale_points(X, M)
    gaps = X[:50, None] - X[None, :50]
    expected = np.einsum("ijs,st,ijt->ij", gaps, M, gaps)
    assert np.allclose(naive.squared_distances(P[:50], P[:50]), expected, rtol=1e-10, atol=1e-12)
    assert np.array_equal(kp.scale_points(X, np.eye(4)), X)
    single = kp.scale_points(X.astype(np.float32), M.astype(np.float32))
    assert single.dtype == np.float32 and np.abs(single - P).max() < 2e-6 * np.abs(P).max()
    flat = kp.scale_points(X, np.outer(B[0], B[0]))  # one direction is left
    assert np.linalg.svd(flat)[1][1] < 1e-7 * np.linalg.svd(flat)[1][0]


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: kp.gradient(X[:, :3], weighted(KERNEL)), "X and model.points must have the same"),
        (lambda: kp.gradient(X, kp.nystrom_map(X, X, KERNEL)), "model must be an Expansion"),
        (
            lambda: kp.gradient(X, weighted(kp.laplacian(1.0, norm=1))),
            "model.kernel must be polynomial or of the Euclidean distance, got laplacian of the city",
        ),
        (
            lambda: kp.gradient_outer_product(X, kp.nystrom_map(X, X, KERNEL)),
            "model must be an Expansion",
        ),
        (
            lambda: kp.relevance(
                np.zeros((2, 1)),
                kp.kpca(X[:2, :1] * 0, kp.precomputed(np.eye(2)), 1, centered=False),
            ),
            "model.kernel must be polynomial or of the Euclidean distance, got precomputed",
        ),
        (
            lambda: kp.gradient(1e140 * X, weighted(kp.polynomial(3, 1.0, 0.0))),
            "gradients at X must",
        ),
        (lambda: kp.scale_points(X, np.eye(3)), "M must have 4 columns, got 3"),
        (lambda: kp.scale_points(X, -np.eye(4)), "M must be symmetric and positive semidefinite"),
        (lambda: kp.scale_points(X, np.diag([1.0, 1, 1, -1])), "M must be symmetric and positive"),
        (lambda: kp.scale_points(X, np.triu(np.ones((4, 4)))), "M must be symmetric and positive"),
        (lambda: kp.scale_points(X, np.full((4, 4), np.nan)), "M must be finite"),
    ],
)
def test_gradients_and_metrics_refuse_by_name(call, text):
    with pytest.raises(
        ValueError, match=r"^(gradient|gradient_outer_product|relevance|scale_points): " + text
    ):
        call()


def test_gradients_that_no_machine_holds_are_refused_before_any_work(monkeypatch, rng):
    monkeypatch.setattr(kp, "_PHYSICAL_MEMORY", 3000)
    with pytest.raises(ValueError, match="gradient: X must be smaller"):
        kp.gradient(NEW, weighted(KERNEL))
    with pytest.raises(ValueError, match="relevance: X must be smaller"):
        kp.relevance(X, weighted(KERNEL, k=200))
    with pytest.raises(ValueError, match="gradient_outer_product: X must be smaller"):
        kp.gradient_outer_product(
            rng.standard_normal((9, 30)), weighted(KERNEL, rng.standard_normal((9, 30)))
        )


# Arrays that are larger than memory


def large(points, folder):
    file = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, points.shape)
    file[:] = points
    return {
        "whole": np.ascontiguousarray(points),
        "mapped": np.load(folder / "X.npy", mmap_mode="r"),
        "fortran": np.asfortranarray(points),
        "integers": points.astype(np.int16),
        "strided": np.repeat(points, 2, axis=0)[::2],
    }


@pytest.mark.parametrize("kind", ["whole", "mapped", "fortran", "integers", "strided"])
def test_large_arrays_are_converted_block_by_block(kind, rng, tmp_path, monkeypatch):
    points = rng.integers(-3, 4, (900, 3)).astype(float)
    few = points[:40]
    given = large(points, tmp_path)[kind]
    sizes = []
    models = [
        kp.kpca(few, kp.gaussian(2.0), 4, centered=False),
        kp.kpca(few, kp.linear(), 2, centered=True),
        kp.nystrom_ridge(points, points[:, 0], few, kp.gaussian(2.0), 0.1, intercept=False),
        kp.nystrom_map(points, few, kp.gaussian(2.0)),
        kp.skpca(points, kp.gaussian(2.0), 4, 60, 9, centered=False),
    ]
    expected = [
        [f(points, m) for m in ms] for f, ms in ((kp.features, models[:3]), (kp.residual, models))
    ]
    require = np.require
    monkeypatch.setattr(np, "require", lambda a, *more: sizes.append(len(a)) or require(a, *more))
    monkeypatch.setattr(kp, "_SLAB", 256)
    for function, values, chosen in zip((kp.features, kp.residual), expected, (models[:3], models)):
        for value, model in zip(values, chosen):
            found = function(given, model)
            assert found.dtype == value.dtype and np.allclose(found, value, atol=1e-6)
    assert max(sizes, default=0) <= 256
    out = np.empty((900, 4))
    assert kp.features(given, models[0], out=out) is out and np.allclose(out, expected[0][0])


def test_a_bad_row_of_a_large_array_is_named_before_any_work(rng, monkeypatch):
    points = rng.standard_normal((900, 3))
    model = kp.kpca(points[:40], kp.gaussian(2.0), 4, centered=False)
    monkeypatch.setattr(kp, "_SLAB", 256)
    points[700, 1] = np.nan
    out = np.full((900, 4), 7.0)
    with pytest.raises(ValueError, match="^features: X must be finite .* row 700, column 1 is not"):
        kp.features(points, model, out=out)
    assert (out == 7.0).all()
    with pytest.raises(ValueError, match="^residual: X must be finite .* row 700, column 1 is not"):
        kp.residual(points, model)
    points[700, 1] = 0.0
    with pytest.raises(
        ValueError, match="^features: out must be a writable C-ordered float64 array"
    ):
        kp.features(points, model, out=out[:800])
    with pytest.raises(ValueError, match="^features: model must be one of Expansion"):
        kp.features(points, None)
    with pytest.raises(ValueError, match="^residual: model must be one of Expansion"):
        kp.residual(points, None)
    with pytest.raises(ValueError, match="^features: X and model.points must have the same numb"):
        kp.features(points[:, :2], model)


@pytest.mark.slow
def test_features_of_a_memory_map_need_little_memory(tmp_path):
    code = (
        "import resource, sys, numpy as np, kpcasketch as kp\n"
        "X = np.lib.format.open_memmap('X.npy', 'w+', np.float32, (1_000_000, 30))\n"  # 120 MB
        "X[:] = np.random.default_rng(0).standard_normal(X.shape); X.flush(); del X\n"
        "X = np.load('X.npy', mmap_mode='r'); few = X[:20].astype(float)\n"
        "model = kp.nystrom_kpca(few, few, kp.gaussian(6.0), 2)\n"
        "kp.features(X, model), kp.residual(X, model)\n"  # compiles both twins of each core
        "peak = lambda: int(open('/proc/self/status').read().split('RssAnon:')[1].split()[0])\n"
        "import threading, time; highest = [0]; done = []\n"
        "def watch():\n"
        "    while not done: highest[0] = max(highest[0], peak()); time.sleep(.002)\n"
        "before = peak(); watcher = threading.Thread(target=watch); watcher.start()\n"
        "kp.features(X, model); kp.residual(X, model); done.append(1); watcher.join()\n"
        "print(highest[0] - before)"
    )
    if sys.platform != "linux":
        pytest.skip("reads Linux's memory in kB")
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(kp.__file__).parent)},
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 60_000  # 16 MB of features and 8 MB of residuals; it was 240 MB


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-10), (np.float32, 2e-3)])
@pytest.mark.parametrize("n, k", [(60, 5), (200, 2), (300, 40), (500, 10)])
def test_features_of_the_points_themselves_are_coefficients_times_values(n, k, dtype, tolerance):
    points = np.random.default_rng(n).standard_normal((n, 6)).astype(dtype)
    for make in (functools.partial(kp.kpca, centered=False), kp.kpca):
        for kernel in (kp.gaussian(2.0), kp.linear(), kp.matern(1.5, 3.0)):
            model = make(points, kernel, k)
            Z = kp.features(points, model)
            assert np.abs(model.coef * model.values - Z).max() < tolerance * np.abs(Z).max()
            assert make is not kp.kpca or np.abs(Z.mean(0)).max() < tolerance * np.abs(Z).max()


@pytest.mark.parametrize("n", [50, 600])
@pytest.mark.parametrize("centered", [False, True])
def test_negative_eigenvalues_of_a_precomputed_kernel_were_left_out_in_silence(rng, n, centered):
    X = rng.random((n, 3))
    D = np.sqrt(np.square(X[:, None] - X).sum(-1))
    values, V = np.linalg.eigh(np.exp(-D))
    values[0] = -0.08 * values[-1]
    similarities = (V * values) @ V.T
    rows = np.arange(float(n))[:, None]
    for K in (D, 0.5 * (similarities + similarities.T)):
        lowest = np.linalg.eigvalsh(naive.centered(K) if centered else K)[0]
        with pytest.warns(UserWarning, match="^kpca: .* eigenvalue of (-.*) or less") as caught:
            kp.kpca(rows, kp.precomputed(K), 3, centered=centered)
        told = float(str(caught[0].message).split("eigenvalue of ")[1].split(" or")[0])
        assert told == pytest.approx(lowest, rel=0.02)
        assert caught[0].filename == __file__
    for K in (np.exp(-D), X @ X.T, np.exp(-D).astype(np.float32)):
        kp.kpca(rows, kp.precomputed(K), 3, centered=centered)
    if centered:  # the remedies that the warning names
        kp.kpca(rows, kp.precomputed(-0.5 * D**2), 3, centered=True)
        kp.kpca(rows, kp.precomputed(np.exp(-D / D.mean())), 3, centered=True)


@pytest.mark.parametrize("centered", [False, True])
def test_rounding_errors_were_components_of_an_indefinite_custom_kernel(rng, centered):
    X = rng.standard_normal((50, 3))
    negative = kp.custom(numba.njit(lambda x, y: -(x @ y)))
    with pytest.warns(
        UserWarning, match="^kpca: the Gram matrix has an eigenvalue of -[56]"
    ) as caught:
        model = kp.kpca(X, negative, 3, centered=centered)
    assert caught[0].filename == __file__
    assert not model.values.any() and not kp.features(X, model).any()  # they were 1e-8
    table = kp.precomputed(-X @ X.T)
    with pytest.warns(UserWarning, match="^kpca: the Gram matrix has an eigenvalue of -[56]"):
        assert not kp.kpca(np.arange(50)[:, None], table, 3, centered=centered).values.any()
