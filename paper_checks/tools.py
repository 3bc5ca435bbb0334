# SPDX-License-Identifier: BSD-3-Clause
"""What the papers' checks share: seeds, points, norms, angles, exponents, seconds, evaluations, and how
means and ranges are drawn."""

import ctypes
import functools
import time

import numba
import numpy as np
from scipy import fft, linalg, special, stats

import kpcasketch as kp
from paper_checks.claims import mean_limit


# of --kernel, as functions of the bandwidth
KERNELS = {
    "gaussian": kp.gaussian,
    "laplacian": kp.laplacian,
    "matern": functools.partial(kp.matern, 1.5),
    "rational_quadratic": functools.partial(kp.rational_quadratic, 1.0),
    "cauchy": kp.cauchy,
}


def seeds(options, count, offset=0):
    """Seeds of a claim's draws, which differ from those of every other seed of the run."""
    return range(1000 * options.seed + offset, 1000 * options.seed + offset + count)


def users_rows(options, n):
    """n rows of the user's data in random order, or None."""
    return None if options.data is None else options.data.rows(n, options.seed)


def norm(A):
    """Spectral norm of a symmetric matrix."""
    values = np.linalg.eigvalsh(A)
    return float(max(abs(values[0]), abs(values[-1])))


def sin2(A, B):
    """sin^2 of the largest angle between the spans of two sets of columns."""
    return 1 - linalg.svdvals(linalg.orth(A, 1e-12).T @ linalg.orth(B, 1e-12))[-1] ** 2


def slope(x, y):
    """The exponent of y as a power of x."""
    return float(stats.linregress(np.log(x), np.log(y)).slope)


def settled(sizes):
    """Mask of the sizes from which an exponent is fitted: those in the upper half of their logarithmic range."""
    sizes = np.asarray(sizes, float)
    return sizes >= np.sqrt(sizes[0] * sizes[-1]) * (1 - 1e-12)


def _shifted(A):
    """The sums of a_ij a_(i+p)(j+q) over all places, for all shifts (p, q) but (0, 0) and the opposites."""
    rows, columns = (fft.next_fast_len(2 * size - 1, real=True) for size in A.shape)
    sums = fft.irfft2(np.abs(fft.rfft2(A, (rows, columns))) ** 2, (rows, columns))
    p, q = np.mgrid[: A.shape[0], 1 - A.shape[1] : A.shape[1]]
    chosen = (p > 0) | (q > 0)
    return sums[p[chosen], q[chosen]]


def _products(A):
    """The inner products of all pairs of rows."""
    return (A @ A.T)[np.triu_indices(len(A), 1)]


def lag_score(A):
    """Largest |sum of products|, in standard errors, of a matrix and itself shifted, of two rows, and of two columns.

    The entries of A are independent of mean 0, and 0 where there is none, as below the diagonal of a symmetric matrix.
    The square of the standard error is the sum of the squares of the products. Where the entries have symmetric laws,
    the probability of a score above t is at most 2 exp(-t^2 / 2) for each sum.
    """
    A = np.asarray(A, float)
    sums, variances = (
        np.concatenate([_shifted(B), _products(B), _products(B.T)]) for B in (A, A * A)
    )
    there = variances > 1e-9 * variances.max()
    return float(np.max(np.abs(sums[there]) / np.sqrt(variances[there])))


def lag_limit(A):
    """What lag_score exceeds with probability about 1e-6."""
    (rows, columns), entries = np.shape(A), np.size(A)
    return mean_limit(2 * entries + (rows**2 + columns**2) // 2)


def interval(values):
    """Mean of independent replicates, and half of its 95 % interval."""
    return float(np.mean(values)), float(stats.t.isf(0.025, len(values) - 1) * stats.sem(values))


def p_value(count, trials, probability):
    """Exact two-sided p-value of a binomial count."""
    return float(stats.binomtest(int(count), int(trials), probability).pvalue)


_semaphores = []


def counted_kernel(sigma):
    """(a Gaussian kernel that counts its evaluations, from whatever thread; count(call): how many a call makes)."""
    libc, semaphore, value = ctypes.CDLL(None), ctypes.create_string_buffer(64), ctypes.c_int()
    place = ctypes.addressof(semaphore)  # of a semaphore, which the system counts up atomically
    libc.sem_init.argtypes, libc.sem_getvalue.argtypes = (
        (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint),
        (ctypes.c_void_p, ctypes.c_void_p),
    )
    post = libc.sem_post
    post.argtypes, post.restype = (ctypes.c_void_p,), ctypes.c_int

    @numba.njit
    def evaluate(x, y):
        post(place)
        return np.exp(-0.5 * ((x - y) ** 2).sum() / sigma**2)

    kernel = kp.custom(evaluate)
    _semaphores.append(semaphore)  # as long as the kernel, which lives as long as the process

    def count(call):
        libc.sem_init(place, 0, 0)
        call()
        libc.sem_getvalue(place, ctypes.byref(value))
        return value.value

    return kernel, count


def timed(function):
    """(result, seconds)."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def shorter(function):
    """(result, seconds) of the shorter of two calls, when LAPACK's threads have gone to sleep."""
    time.sleep(0.05)
    return min((timed(function) for _ in range(2)), key=lambda one: one[1])


def processor_seconds(call, times=5):
    """The least processor time of several calls after a first one, which compiles. Other processes of the machine do
    not count."""
    call()
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def nystrom_error(K, X, landmarks, kernel, precision=0.01):
    """|K - K~| to that relative precision, from below."""
    return kp.spectral_error(K, kp.LowRank(kp.nystrom(X, landmarks, kernel)), 0, tol=precision)


def fourier_map(X, kernel, m, seed):
    """The paper's map to m random Fourier features: each has frequencies and a phase of its own."""
    return kp.fourier_features_map(kernel, X.shape[1], m, seed, paired=False)


def fourier(X, kernel, m, seed):
    """m random Fourier features of points."""
    return kp.features(X, fourier_map(X, kernel, m, seed))


def skpca(X, kernel, k, m, ell, seed=0):
    """The paper's streaming kernel PCA: features of its own map, which are not centered."""
    state = kp.skpca_start(fourier_map(X, kernel, m, seed), ell, centered=False)
    return kp.finish(kp.update(state, X), k)


def rnca(X, kernel, k, m, seed=0):
    """The paper's rival of it, by the covariance of the same features."""
    state = kp.rnca_start(fourier_map(X, kernel, m, seed), centered=False)
    return kp.finish(kp.update(state, X), k)


def orthogonal_covariance(d, k):
    """Covariance of cos(r.x) and cos(s.x) for two orthogonal Gaussian frequencies of a block of d, k = E cos(r.x).

    The lengths of r and s have chi's law with d degrees of freedom and are independent, and the direction of r + s is
    uniform. So E cos(r.x) cos(s.x) = E cos((r + s).x) = 1F1(d; d / 2; ln k), where independent ones have k^2.
    """
    return special.hyp1f1(d, d / 2, np.log(k)) - k**2


def random_noisy(n, d, seed, signal=50, zeta=10.0, decay=0):
    """Points S D U + F / zeta of SKPCA section 4: S and F standard normal, D_ii = 1 - (i - 1) / decay (0 is d), U with
    orthonormal rows."""
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((n, signal)) * (1 - np.arange(signal) / (decay or d))
    U = np.linalg.qr(rng.standard_normal((d, signal)))[0].T
    return S @ U + rng.standard_normal((n, d)) / zeta


def hermite(x, count, s=1.0, ell=1.0):
    """Eigenvalues and eigenfunctions (orthonormal in L2 of N(0, s^2)) of exp(-(x - y)^2 / (2 ell^2)), closed forms."""
    a, b = 1 / (4 * s * s), 1 / (2 * ell * ell)
    c = np.sqrt(a * a + 2 * a * b)
    A, t = a + b + c, np.sqrt(2 * c) * np.asarray(x)
    H = [np.ones_like(t), 2 * t]
    for j in range(2, count):
        H.append(2 * t * H[-1] - 2 * (j - 1) * H[-2])
    factors = np.cumprod(np.append(1.0, 1 / np.sqrt(2 * np.arange(1, count))))
    fall = (c / a) ** 0.25 * np.exp(-(c - a) * np.asarray(x) ** 2)
    return np.sqrt(2 * a / A) * (b / A) ** np.arange(count), np.stack(
        [factors[j] * fall * H[j] for j in range(count)], -1
    )


def draw_ranges(axis, x, drawn, label, style="o-", **more):
    """Means of replicates (last axis), and bars to the least and the largest."""
    drawn = np.asarray(drawn)
    mean = drawn.mean(-1)
    axis.errorbar(
        x,
        mean,
        (mean - drawn.min(-1), drawn.max(-1) - mean),
        fmt=style,
        ms=4,
        capsize=2,
        label=label,
        **more,
    )


def finish(axes, logarithmic="", ticks=None, **words):
    """Legends, words, scales ("x", "y", "xy" logarithmic) and, where they are few, ticks of x."""
    for axis in np.ravel(axes):
        axis.set(**{f"{which}scale": "log" for which in logarithmic}, **words)
        if ticks is not None:
            axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axis.set_xticks([], minor=True)
        if axis.get_legend_handles_labels()[1]:
            axis.legend(fontsize=7)
