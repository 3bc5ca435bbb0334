# SPDX-License-Identifier: BSD-3-Clause
"""The kernels, samplers, reduced sets, streams, operators and models that the tests go through, a row each.

A new one is tested by one more row. test_tables.py fails if the file knows one that has no row.
"""

import functools
from typing import NamedTuple

import numpy as np
import scipy.sparse.linalg

import kpcasketch as kp
from kpcasketch_tests import naive


def with_trait(table, trait):
    """The rows in which a field is set."""
    return {name: row for name, row in table.items() if getattr(row, trait)}


# Points, and their Gram matrix, exact and of one bit an entry

X = np.random.default_rng(0).standard_normal((600, 3))
KERNEL = kp.gaussian(2.0)
K = naive.gaussian(X, X, 2.0)


@functools.cache
def bits():
    return kp.quantize_gram(X, KERNEL, 0)


# Kernels


class KernelRow(NamedTuple):
    make: (
        object  # (sigma): the kernel. For sigma = 1.7 and 40 coordinates, some values exceed 1e-30
    )
    naive: object  # (X, Y, sigma): its values
    # For a kernel of |x - y|: k(r) / k(0) by gamma and shape of the kernel, and r, all Decimals.
    radial: object = None
    # For a kernel of x - y: the law of a coordinate of its random frequencies. Two kernels may share it.
    law: str = ""
    smooth: bool = True  # whether `gradient` takes it
    scale_free: bool = True  # whether points and sigma may be multiplied by one factor


def exponential(gamma, shape, r):
    return (-gamma * r).exp()


def squared_exponential(gamma, shape, r):
    return (-gamma * r * r).exp()


def power(gamma, shape, r):
    return (-shape * (1 + gamma * r * r).ln()).exp()


def matern_3_2(gamma, shape, r):
    return (1 + gamma * r) * (-gamma * r).exp()


def matern_5_2(gamma, shape, r):
    a = gamma * r
    return (1 + a + a * a / 3) * (-a).exp()


def rational_quadratic(alpha, law):
    return KernelRow(
        lambda sigma: kp.rational_quadratic(alpha, sigma),
        lambda X, Y, sigma: naive.rational_quadratic(X, Y, alpha, sigma),
        power,
        law,
    )


def matern(nu, radial, law):
    return KernelRow(
        lambda sigma: kp.matern(nu, sigma),
        lambda X, Y, sigma: naive.matern(X, Y, nu, sigma),
        radial,
        law,
    )


KERNELS = {
    "gaussian": KernelRow(kp.gaussian, naive.gaussian, squared_exponential, "gaussian"),
    "laplacian": KernelRow(kp.laplacian, naive.laplacian, exponential, "laplacian"),
    "matern 0.5": matern(0.5, exponential, "laplacian"),
    "matern 1.5": matern(1.5, matern_3_2, "matern 3/2"),
    "matern 2.5": matern(2.5, matern_5_2, "matern 5/2"),
    "rational_quadratic": rational_quadratic(0.5, "power 1/2"),
    "rational_quadratic 1": rational_quadratic(1.0, "power 1"),
    "rational_quadratic 4": rational_quadratic(4.0, "power 4"),
    "cauchy": KernelRow(
        kp.cauchy,
        naive.cauchy,
        lambda gamma, shape, r: 1 / (1 + gamma * r * r),
        "cauchy",
    ),
    "city block": KernelRow(
        lambda sigma: kp.laplacian(sigma, norm=1), naive.city_block, law="laplacian", smooth=False
    ),
    "polynomial": KernelRow(
        lambda sigma: kp.polynomial(2, 1 / sigma**2, 0.5),
        lambda X, Y, sigma: naive.polynomial(X, Y, 2, 1 / sigma**2, 0.5),
    ),
    "cubic": KernelRow(
        lambda sigma: kp.polynomial(3, 0.5, 1.0),
        lambda X, Y, sigma: naive.polynomial(X, Y, 3, 0.5, 1.0),
        scale_free=False,
    ),
    "linear": KernelRow(
        lambda sigma: kp.linear(), lambda X, Y, sigma: naive.linear(X, Y), scale_free=False
    ),
    "scaled": KernelRow(
        lambda sigma: kp.scaled(kp.scaled(kp.gaussian(sigma), 2.0), 3.0),
        lambda X, Y, sigma: 6 * naive.gaussian(X, Y, sigma),
        squared_exponential,
        "gaussian",
    ),
    "scaled laplacian": KernelRow(
        lambda sigma: kp.scaled(kp.matern(0.5, sigma), 3.0),
        lambda X, Y, sigma: 3 * naive.laplacian(X, Y, sigma),
        exponential,
        "laplacian",
    ),
}
NOT_OF_SIGMA = {"custom", "precomputed"}  # kinds of kernels without a formula, which have no row
RADIAL = with_trait(KERNELS, "radial")
UNSCALED = {name: row for name, row in KERNELS.items() if row.make(1.0).scale == 1.0}
LAWS = with_trait(UNSCALED, "law")  # no factor changes the law
SMOOTH = with_trait(KERNELS, "smooth")
SCALE_FREE = with_trait(KERNELS, "scale_free")


# Maps to random features


class FeaturesRow(NamedTuple):
    make: object  # (kernel, d, m, seed, ...): the map. There is one for each record of a kind.
    any_law: bool = False  # whether it takes a law that is not one of |x - y|
    redrawn: bool = True  # whether it may leave its frequencies to be drawn again from the seed
    least_d: int = 1  # the least number of coordinates of its points


FEATURES = {
    "fourier_features_map": FeaturesRow(kp.fourier_features_map, any_law=True),
    "orthogonal_features_map": FeaturesRow(kp.orthogonal_features_map),
    "quasi_features_map": FeaturesRow(kp.quasi_features_map),
    "fastfood_features_map": FeaturesRow(kp.fastfood_features_map, redrawn=False),
}


# Samplers of landmarks


class SamplerRow(NamedTuple):
    draw: object  # (X, kernel, s, seed): Landmarks
    s: int = 9  # a number that it is good for on a thousand points
    fixed: bool = True  # whether exactly s points are drawn
    by_kernel: bool = True  # whether it evaluates the kernel, which `Landmarks.evaluations` counts
    random: bool = True
    naive: object = None  # (K, s): row numbers


SAMPLERS = {
    "recursive_rls": SamplerRow(
        lambda X, kernel, s, seed: kp.recursive_rls(
            X, kernel, 50.0, seed, delta=0.03, oversampling=2.0
        ),
        fixed=False,
    ),
    "recursive_rls_fixed": SamplerRow(
        lambda X, kernel, s, seed: kp.recursive_rls_fixed(
            X, kernel, s, seed, delta=0.03, constant=1.0, oversampling=0.1
        ),
        s=60,
        fixed=False,
    ),
    "recursive_rls_practical": SamplerRow(kp.recursive_rls_practical),
    "recursive_rls_accelerated": SamplerRow(kp.recursive_rls_accelerated),
    "rls_nystrom": SamplerRow(
        lambda X, kernel, s, seed: kp.rls_nystrom(
            X, kernel, 50.0, seed, delta=0.03, oversampling=2.0
        ),
        fixed=False,
    ),
    "rpcholesky": SamplerRow(kp.rpcholesky),
    "rpcholesky, greedy": SamplerRow(
        lambda X, kernel, s, seed: kp.rpcholesky(X, kernel, s, seed, greedy=True),
        random=False,
        naive=naive.pivoted_cholesky,
    ),
    "uniform_landmarks": SamplerRow(
        lambda X, kernel, s, seed: kp.uniform_landmarks(len(X), s, seed), by_kernel=False
    ),
}


# Reduced sets


class ReducedRow(NamedTuple):
    select: object  # (X, kernel, unit, seed): a ReducedSet; unit is that of the points
    of_rows: bool = True  # whether its centers are points
    naive: object = None  # (X, K, unit): row numbers of the centers


REDUCED = {
    "shadow_select": ReducedRow(
        lambda X, kernel, unit, seed: kp.shadow_select(X, 2.5 * unit),
        naive=lambda X, K, unit: naive.shadows(X, 2.5 * unit)[0],
    ),
    "kmeans_select": ReducedRow(
        lambda X, kernel, unit, seed: kp.kmeans_select(X, 3, seed), of_rows=False
    ),
    "herd": ReducedRow(
        lambda X, kernel, unit, seed: kp.herd(X, kernel, 3),
        naive=lambda X, K, unit: naive.herd(K, 3),
    ),
    "kernel_thin": ReducedRow(lambda X, kernel, unit, seed: kp.kernel_thin(X, kernel, 3, seed)),
    "compress_thin": ReducedRow(lambda X, kernel, unit, seed: kp.compress_thin(X, kernel, 3, seed)),
}


# Streams


def same_bits(a, b):
    """Whether two states have the same numbers."""
    if isinstance(a, tuple):
        return all(map(same_bits, a, b))
    return np.array_equal(a, b)


def same_squares(a, b):
    """Whether two states of `rnca` differ by rounding, as sums of blocks are added."""
    return a.count == b.count and np.abs(a.squares - b.squares).max() < 1e-12 * a.count


def same_means(a, b):
    gap = np.abs(a.sketch.run.means - b.sketch.run.means).max()
    return gap < 1e-12 and a.sketch.count == b.sketch.count


class StreamRow(NamedTuple):
    kind: str  # the beginning of the names of its functions
    arguments: object  # (X): the arguments of the start function, for points such as X
    finish_arguments: tuple = ()  # those of `finish` after the state
    settings: dict = {}  # of the start function, by keyword
    # Whether states of one stream that was cut in two ways are equal; None if the cut matters.
    equal: object = same_bits
    merges: bool = True
    forgets: str = (
        ""  # if it takes a half-life: the array of its state that a long one does not change
    )

    def start(self, X, **more):
        """The state before the first of some points such as X."""
        return getattr(kp, f"{self.kind}_start")(*self.arguments(X), **self.settings, **more)

    def update(self, state, X):
        return kp.update(state, X)

    def merge(self, a, b):
        return kp.merge(a, b)

    def finish(self, state):
        return kp.finish(state, *self.finish_arguments)


def features_of_24(X):
    return kp.fourier_features_map(kp.gaussian(3.0), X.shape[1], 24, 5)


STREAMS = {
    "fd": StreamRow("fd", lambda X: (min(4, X.shape[1]), X.shape[1]), forgets="run.columns"),
    "skpca": StreamRow(
        "skpca", lambda X: (features_of_24(X), 5), (2,), forgets="sketch.run.columns"
    ),
    "skpca, centred": StreamRow(
        "skpca", lambda X: (features_of_24(X), 5), (2,), {"centered": True}, equal=same_means
    ),
    "rnca": StreamRow(
        "rnca", lambda X: (features_of_24(X),), (2,), equal=same_squares, forgets="squares"
    ),
    "shadow": StreamRow("shadow", lambda X: (2.5, X.shape[1]), merges=False),
    "rls": StreamRow("rls", lambda X: (kp.gaussian(3.0), 7, X.shape[1]), equal=None),
    "dsgd": StreamRow("dsgd", lambda X: (X, features_of_24(X), 2), equal=None, merges=False),
}


# Operators


class OperatorRow(NamedTuple):
    make: object  # (X, kernel, K): the operator, where K is the Gram matrix of X
    naive: object  # (A, K): its matrix
    nbytes: object  # (A): the memory that it takes, or None if that is unknown


OPERATORS = {
    "dense": OperatorRow(lambda X, kernel, K: K, lambda A, K: K, lambda A: A.nbytes),
    "csr": OperatorRow(
        lambda X, kernel, K: kp.sample_gram(X, kernel, 3.0, 0),
        lambda A, K: naive.csr_to_dense(A.data, A.indices, A.indptr),
        lambda A: A.data.nbytes + A.indices.nbytes + A.indptr.nbytes,
    ),
    "bits": OperatorRow(
        lambda X, kernel, K: kp.quantize_gram(X, kernel, 0),
        lambda A, K: naive.bits_to_dense(*A),
        lambda A: A.words.nbytes,
    ),
    "implicit": OperatorRow(
        lambda X, kernel, K: kp.Implicit(X, kernel), lambda A, K: K, lambda A: A.X.nbytes
    ),
    "low rank": OperatorRow(
        lambda X, kernel, K: kp.LowRank(X), lambda A, K: A.F @ A.F.T, lambda A: A.F.nbytes
    ),
    "difference": OperatorRow(
        lambda X, kernel, K: kp._Difference(kp.quantize_gram(X, kernel, 0), K),
        lambda A, K: naive.bits_to_dense(*A[0]) - K,
        lambda A: A[0].words.nbytes + A[1].nbytes,
    ),
    "products": OperatorRow(
        lambda X, kernel, K: scipy.sparse.linalg.aslinearoperator(K), lambda A, K: K, None
    ),
    "centered": OperatorRow(
        lambda X, kernel, K: kp.center(K),
        lambda A, K: naive.centered(K),
        lambda A: A[0].nbytes + 8 * len(A[0]),
    ),
}


# Eigensolvers of operators

SOLVERS = {"block_lanczos": kp.block_lanczos, "orthogonal_iteration": kp.orthogonal_iteration}


# Models


def map_of(X, kernel):
    return kp.fourier_features_map(kernel, X.shape[1], 16)


class ModelRow(NamedTuple):
    make: object  # (X, kernel): a model
    features: object  # its own function (X, model)
    values: int = 2  # the number of its eigenvalues


MODELS = {  # by the name of the class
    "Expansion": ModelRow(lambda X, kernel: kp.kpca(X, kernel, 2, centered=False), kp.features),
    "NystromMap": ModelRow(
        lambda X, kernel: kp.nystrom_map(X, np.arange(5), kernel), kp.features, 0
    ),
    "Subspace": ModelRow(lambda X, kernel: kp.rnca(X, kernel, 2, 16, centered=False), kp.features),
    "FourierMap": ModelRow(map_of, kp.features, 0),
    "DSGDState": ModelRow(
        lambda X, kernel: kp.update(kp.dsgd_start(X, map_of(X, kernel), 2, centered=False), X),
        kp.features,
    ),
    "FourierExpansion": ModelRow(
        lambda X, kernel: kp.dsgd_kpca(X, kernel, 2, 16, steps=2, centered=False), kp.features
    ),
    "Manifold": ModelRow(
        lambda X, kernel: kp.laplacian_eigenmap(X, kernel, 2),
        kp.features,
    ),
}
