# SPDX-License-Identifier: BSD-3-Clause
"""Reduced sets: k-means."""

import numpy as np
import pytest

import kpcasketch as kp
from kpcasketch_tests import naive

rng = np.random.default_rng(0)
CENTERS = 20.0 * rng.standard_normal((6, 3))
X = np.repeat(CENTERS, 50, 0) + rng.standard_normal((300, 3))


def test_kmeans_finds_far_clusters_and_ends_in_a_fixed_point():
    found = kp.kmeans_select(X, 6, 0, 5)
    labels = found.labels.reshape(6, 50)
    assert (labels == labels[:, :1]).all() and len(np.unique(labels)) == 6
    assert np.abs(found.centers - [X[found.labels == c].mean(0) for c in range(6)]).max() < 1e-12
    assert np.array_equal(found.labels, naive.squared_distances(X, found.centers).argmin(1))
    assert np.array_equal(found.weights, np.bincount(found.labels))


@pytest.mark.parametrize("n, m, d", [(1, 1, 1), (130, 129, 2), (200, 33, 40), (5, 5, 1)])
def test_labels_are_the_nearest_centers_for_every_size(n, m, d):
    points = rng.standard_normal((n, d))
    found = kp.kmeans_select(points, m, 3)
    assert found.centers.shape == (m, d) and found.weights.sum() == n
    distances = naive.squared_distances(points, found.centers)
    assert np.abs(distances[np.arange(n), found.labels] - distances.min(1)).max() < 1e-12


def test_more_centers_than_distinct_points_leave_some_without_weight():
    found = kp.kmeans_select(np.repeat(np.arange(3.0), 10)[:, None], 5, 1)
    assert np.isfinite(found.centers).all() and np.count_nonzero(found.weights) == 3


def test_more_restarts_and_iterations_do_not_raise_the_cost():
    def cost(*arguments):
        found = kp.kmeans_select(X, 20, 0, *arguments)
        return ((X - found.centers[found.labels]) ** 2).sum()
    assert cost(10) <= cost(1) <= cost(1, 2)


def test_starts_of_kmeans_follow_the_squared_distance():
    # three sites; the second center of k-means++ is the far one with probability 100 / 101, the near one with 1 / 101
    points = np.array([[0.0], [1.0], [10.0]])
    pairs = [tuple(np.sort(kp.kmeans_select(points, 2, seed, 1, 1).centers.ravel())) for seed in range(300)]
    assert all(pair in {(0.0, 10.0), (0.5, 10.0), (0.0, 5.5), (1.0, 10.0), (0.0, 1.0)} for pair in pairs)
    assert sum(pair[1] == 10.0 for pair in pairs) > 240


def test_kmeans_has_the_same_bits_for_any_number_of_threads(same_bits):
    same_bits(kp.kmeans_select, rng.standard_normal((1000, 5)), 40, 0)
