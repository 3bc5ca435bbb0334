# SPDX-License-Identifier: BSD-3-Clause
"""Kernel PCA: training points and new points agree, with and without centring, with naive.py and with scikit-learn."""

import numpy as np
import pytest
import scipy.linalg

import kpcasketch as kp
from kpcasketch_tests import naive

X, NEW = np.random.default_rng(0).standard_normal((300, 4)), np.random.default_rng(1).standard_normal((40, 4))
KERNEL = kp.gaussian(2.0)
K, K_NEW = naive.gaussian(X, X, 2.0), naive.gaussian(NEW, X, 2.0)


def test_features_of_training_points_are_those_of_the_eigenvectors():
    eigen = kp.block_lanczos(K, 6, 0, 1e-13)
    features = kp.expand(X, kp.kpca_from_eigen(X, KERNEL, eigen))
    assert np.abs(features - eigen.vectors * np.sqrt(eigen.values)).max() < 1e-10


def test_features_of_new_points_are_the_naive_ones():
    expansion = kp.kpca(X, KERNEL, 6, 0)
    assert np.abs(kp.expand(NEW, expansion) - naive.features(K_NEW, K, 6)).max() < 1e-8
    assert np.allclose(expansion.values, naive.eigenpairs(K, 6)[0], rtol=1e-12)


def test_centered_features_are_the_naive_ones():
    expansion = kp.centered_kpca(X, KERNEL, 6, 0)
    assert np.abs(kp.expand(NEW, expansion) - naive.centered_features(K_NEW, K, 6)).max() < 1e-8
    assert np.abs(kp.expand(X, expansion).mean(0)).max() < 1e-12


def test_centering_the_operator_and_then_the_expansion_is_centered_kpca():
    eigen = kp.block_lanczos(kp.center(kp.gram(X, X, KERNEL)), 6, 0, 1e-13)
    by_parts = kp.center_expansion(kp.kpca_from_eigen(X, KERNEL, eigen))
    whole = kp.centered_kpca(X, KERNEL, 6, 0)
    assert np.abs(kp.expand(NEW, by_parts) - kp.expand(NEW, whole)).max() < 1e-9


@pytest.mark.parametrize("name", ["gaussian", "polynomial"])
def test_centered_kpca_agrees_with_scikit_learn(name):
    decomposition = pytest.importorskip("sklearn.decomposition")
    kernel, model = {
        "gaussian": (KERNEL, decomposition.KernelPCA(5, kernel="rbf", gamma=1 / 8, eigen_solver="dense")),
        "polynomial": (kp.polynomial(2, 0.5, 1.0),
                       decomposition.KernelPCA(5, kernel="poly", degree=2, gamma=0.5, coef0=1.0, eigen_solver="dense")),
    }[name]
    expansion = kp.centered_kpca(X, kernel, 5, 0)
    model.fit(X)
    assert np.allclose(expansion.values, model.eigenvalues_, rtol=1e-8)
    ours, theirs = kp.expand(NEW, expansion), model.transform(NEW)
    assert np.abs(np.abs(ours) - np.abs(theirs)).max() < 1e-8 * np.abs(theirs).max()


def test_shifted_data_give_the_same_centered_features_for_the_linear_kernel():
    a = kp.expand(NEW, kp.centered_kpca(X, kp.linear(), 3, 0))
    b = kp.expand(NEW + 50, kp.centered_kpca(X + 50, kp.linear(), 3, 0))
    assert np.abs(np.abs(a) - np.abs(b)).max() < 1e-8


def test_components_below_rounding_are_cut_and_the_rest_are_finite(rng):
    line = np.outer(rng.standard_normal(50), [1.0, 2.0])
    expansion = kp.kpca(line, kp.linear(), 3, 0)
    assert (expansion.values > 0).sum() == 1 and np.isfinite(expansion.coef).all()
    assert np.abs(kp.expand(line, expansion)[:, 1:]).max() == 0.0


@pytest.mark.parametrize("points", [np.ones((1, 1)), np.ones((7, 2)), np.zeros((3, 2)),
                                    np.repeat(np.arange(3.0)[:, None], 4, axis=0)])
def test_one_point_copies_and_zeros_give_finite_features(points):
    for make in (kp.kpca, kp.centered_kpca):
        for kernel in (KERNEL, kp.linear()):
            assert np.isfinite(kp.expand(points, make(points, kernel, 1, 0))).all()


def test_an_expansion_without_offset_is_the_plain_sum(rng):
    coef = rng.standard_normal((300, 2))
    plain = kp.expand(NEW, kp.Expansion(X, coef, np.ones(2), np.empty(0), KERNEL))
    shifted = kp.expand(NEW, kp.Expansion(X, coef, np.ones(2), np.array([1.0, -2.0]), KERNEL))
    assert np.abs(plain - K_NEW @ coef).max() < 1e-11 and np.abs(shifted - plain - [1.0, -2.0]).max() < 1e-12


def test_float32_points_give_float32_features():
    exact = kp.kpca(X, KERNEL, 3, 0)
    expansion = kp.Expansion(X.astype(np.float32), exact.coef.astype(np.float32), exact.values, np.empty(0), KERNEL)
    single = kp.expand(NEW.astype(np.float32), expansion)
    assert single.dtype == np.float32
    assert np.abs(single - naive.features(K_NEW, K, 3)).max() < 1e-3


def test_kpca_has_the_same_bits_for_any_number_of_threads(same_bits):
    same_bits(kp.kpca, X, KERNEL, 3, 5)


@pytest.mark.parametrize("name", ["iris", "wine", "digits", "breast_cancer"])
def test_eigenvalues_of_well_known_data_are_those_of_scipy(name):
    # those of iris were wrong: 150 points were just beyond the size of a direct solution
    points = getattr(pytest.importorskip("sklearn.datasets"), "load_" + name)().data
    sigma = kp.median_bandwidth(points, 0)
    for kernel in (kp.gaussian(sigma), kp.laplacian(sigma), kp.matern(1.5, sigma), kp.cauchy(sigma),
                   kp.polynomial(2, 1 / sigma ** 2, 1.0)):
        K = kp.gram(points, points, kernel)
        exact = scipy.linalg.eigh(K, eigvals_only=True, subset_by_index=(len(K) - 10, len(K) - 1))[::-1]
        assert np.abs(kp.kpca(points, kernel, 10, 0).values - exact).max() <= 1e-10 * exact[0]


def test_an_outlier_spoilt_the_centred_features_of_later_components():
    # coefficients that sum to 1e-9, not 0, times kernel values of 1e9
    points = np.random.default_rng(0).standard_normal((40, 5))
    points[3] *= 1e4
    K = naive.linear(points, points)
    model = kp.centered_kpca(points, kp.linear(), 4, 0)
    assert np.abs(model.coef.sum(0)).max() < 1e-15
    features = kp.expand(points, model)
    assert np.allclose((features ** 2).sum(0), np.linalg.eigvalsh(naive.centered(K))[::-1][:4], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_of_the_mean_that_centring_takes_off_was_taken_for_components(dtype, rng):
    # 8 components of points in 3 dimensions, far from the origin, with a linear kernel; the largest .46 of the first
    points = (rng.standard_normal((100, 3)) + 100).astype(dtype)
    values = kp.centered_kpca(points, kp.linear(), 12).values
    assert (values > 0).sum() == 3
    assert np.allclose(values[:3], np.linalg.svd(points - points.mean(0, dtype=float), compute_uv=False) ** 2,
                       rtol=1e-2)


def test_small_components_of_spectra_with_a_large_mean_were_rounding_in_float32(rng):
    # 80 spectra of 2000 points near 2 with peaks of 2e-3; the answer by numpy's decomposition in float64
    place = np.linspace(0.0, 1.0, 2000)
    peaks = np.exp(-0.5 * ((place - np.array([[0.2], [0.5], [0.8]])) / 0.02) ** 2)
    spectra = (2.0 + 2e-3 * rng.standard_normal((80, 3)) @ peaks).astype(np.float32)
    U, sizes, _ = np.linalg.svd(spectra.astype(float) - spectra.astype(float).mean(0), full_matrices=False)
    found = kp.centered_kpca(spectra, kp.linear(), 4)
    assert found.values[:3] == pytest.approx(sizes[:3] ** 2, rel=1e-5) and found.values[3] < 1e-6 * found.values[0]
    features = kp.expand(spectra, found)
    assert features.dtype == np.float32
    assert np.abs(np.abs(features[:, :3]) - np.abs(U[:, :3] * sizes[:3])).max() < 1e-4 * sizes[0]
