# SPDX-License-Identifier: BSD-3-Clause
# The licence stands at the end of this file.
"""kpcasketch: randomized kernel PCA in one file, compiled by Numba.

    import kpcasketch as kp

    kernel = kp.gaussian(kp.median_bandwidth(X))
    model = kp.kpca(X, kernel, 10)                         # exact, for up to 8000 points
    landmarks = kp.rpcholesky(X, kernel, 500)              # for more points
    model = kp.nystrom_kpca(X, landmarks, kernel, 10)
    Z = kp.features(new_points, model)

For most tasks
--------------
kernels (r is the distance between x and y)
    gaussian               exp(-r^2 / (2 sigma^2))  laplacian              exp(-r / sigma)
    matern                 smoother than laplacian  linear                 x.y, for plain PCA
    polynomial             (gamma x.y + c)^degree   precomputed            your own matrix
    custom                 your own function        median_bandwidth       a value for sigma
kernel PCA
    kpca                   exact                    nystrom_kpca           over landmarks
    skpca                  of a stream              dsgd_kpca              by stochastic gradients
landmarks
    rpcholesky             the most accurate        recursive_rls_accelerated  in little memory
    kmeans_select          centers                  nystrom_to             for a requested error
any model
    features               of any points            residual               novelty of points
    novelty_pvalues        against known points     explained_variance_ratio  of components
    kernel_pca_preimage    points from features     relevance              of the columns of X
    save                   to a file                load                   from a file
any stream
    skpca_start            begins one               update                 more points
    merge                  two streams              finish                 its model
regression
    choose                 bandwidth and ridge      nystrom_ridge          over landmarks
    kernel_ridge           on all points            learn_metric           distances for targets
estimators for scikit-learn
    LandmarkFeatures, LandmarkRidge, LandmarkClassifier, NoveltyDetector, StreamingKernelPCA

From the papers
---------------
AMS
    sample_gram            one entry in s           quantize_gram          one bit per entry
    sample_quantize_gram   both together            block_lanczos          leading eigenpairs
    orthogonal_iteration   the paper's eigensolver  kpca_from_eigen        features from eigenpairs
    round_expansion        made sparse, randomly    reliable_components    how many to trust
    rademacher_projection  random signs times points
RSKPCA
    shadow_select          centers within eps       shadow_labels          the center of each point
    shadow_bounds          error bounds for an eps  shadow_start           centers of a stream
    herd                   greedy centers           kernel_thin            centers by halving
    compress_thin          faster halving           weighted_nystrom       density-weighted Nystrom
    rskpca                 kernel PCA of centers    projection_distance    between subspaces
    laplacian_eigenmap     embeds a graph           diffusion_map          embeds a random walk
    normalized_cut         for spectral clustering  mmd_test               p-value of an MMD
    mmd                    distance between means   operator_distance      between covariances
SKPCA
    fourier_features_map   independent frequencies  orthogonal_features_map  orthogonal frequencies
    quasi_features_map     low discrepancy          fastfood_features_map  in O(m log d) time
    frequent_directions    sketch of ell rows       fd_start               the same, of a stream
    rnca                   PCA of random features   rnca_start             the same, of a stream
DSGD
    dsgd_ksvd              singular functions       dsgd_kcca              correlated functions
    dsgd_ksir              directions for targets   dsgd_values            eigenvalues so far
    dsgd_start             before the first step    dsgd_ksvd_start        of dsgd_ksvd
    dsgd_kcca_start        of dsgd_kcca             dsgd_ksir_start        of dsgd_ksir
RLS
    ridge_leverage_scores  exact scores             sample_landmarks       landmarks from scores
    rls_nystrom            landmarks, algorithm 1   recursive_rls          landmarks, algorithm 2
    recursive_rls_fixed    landmarks, algorithm 3   recursive_rls_practical  exactly s of them
    uniform_landmarks      landmarks at random      rls_start              landmarks of a stream
    nystrom                a factor of K~           nystrom_map            a map to such factors
    factor_ridge           regression on a factor   kernel_kmeans          clusters from a factor
    kernel_cca             correlations of factors  effective_dimension    sum of the scores
    approximate_ridge_leverage_scores  scores from landmarks

Building blocks
---------------
kernels
    rational_quadratic     mixture of Gaussians     cauchy                 heavy tails
    scaled                 kappa times a kernel     kernel_value           of two points
    gram                   the Gram matrix          gram_diagonal          its diagonal
    gram_matmat            its product with V       scale_points           applies a metric
derivatives, and one point in your own compiled code
    gradient               of features              gradient_outer_product  mean over points
    features_of            features of a point      residual_of            residual of a point
operators
    matmat                 A times V                dense                  A as an array
    nbytes                 bytes of memory for A    center                 H A H, centered
errors
    spectral_norm          |A|_2                    spectral_error         |A - B|_2
    frobenius_error        |A - B|_F                nuclear_error          |A - B|_*
    projection_cost        trace outside a subspace  sketch_error          errors of eigenpairs
Dask
    dask_map               maps blocks of rows      dask_fold              runs a stream
    dask_median_bandwidth  a value for sigma        dask_landmarks         s landmarks
    dask_nystrom_kpca      kernel PCA over them     dask_nystrom_ridge     regression over them
programs
    advise                 proposes method and size  warm_up               compiles functions
    prepared_points        prepares X for a model

Functions take arrays, and return arrays or named tuples. They keep no state: a seed (default 0)
gives the same bits for any number of threads. A function is compiled at its first call. A log
record, on stderr by default, says so, unless QUIET is True or KPCASKETCH_QUIET is set. Numba keeps
the code next to this file, or in the user's cache if that is not writable.

In signatures, n is the number of points, d of coordinates, k of components, m of random features or
centers, s of landmarks, and ell of rows in a sketch. In functions that sample the entries of a
matrix, each entry is kept with probability 1/s. lam is a ridge, delta a probability of failure, and
eps a radius or an error. None means "not given", in arguments and in results.

Results and their uses
----------------------
Functions of points take a Kernel. Eigensolvers return an Eigen for `kpca_from_eigen`. `matmat`,
eigensolvers and error functions take a square array, a sparse array or a LinearOperator of scipy,
Bits, Implicit, LowRank or Centered. Kernel PCA and ridge regression return an Expansion, and
`nystrom_map` a NystromMap. These and the other models, a Subspace of `skpca` or `rnca`, a
Manifold, a FourierMap and a FourierExpansion of DSGD (or TwoViews of two), are for `features`,
`save` and other verbs. `relevance` returns a Relevance.

Samplers return Landmarks. Functions of landmarks take them, a ReducedSet, or an array of row
numbers or points. `nystrom_to` returns a CertifiedNystrom: landmarks, their factor and a bound on
its error. Points may be sparse arrays of scipy in `gram`, `kpca`, `features`, `residual`,
`median_bandwidth`, functions of landmarks, and estimators that use landmarks, except for
NoveltyDetector. `learn_metric` returns a Metric, whose M is for `scale_points`.

Functions that choose centers return a ReducedSet of centers and weights, for `rskpca`, `mmd` and
other functions of centers. Streams and DSGD take a FourierMap from a `..._features_map` function.
The state of a stream is an FDState, SKPCAState, RNCAState, RLSState, ShadowState or DSGDState. DSGD
functions take a DSGDSteps. Sketch, Clustering, Correlations, Reliable, SketchError, Advice, Choice
and ShadowBounds only report results.

Which method, s and delta
-------------------------
For at most 8000 points, `kpca` is exact and takes seconds. `block_lanczos` of an Implicit handles
100,000 points in little memory. If n^2 bits fit into memory but n^2 floats do not, the sketch by
`quantize_gram` preserves the eigenvalues well above 2 sqrt(n) max |K_ij|. `sample_gram` evaluates
only 1/s of the kernel values, with sqrt(s) times the error, which pays off for expensive kernels.

For more points, or for fast features of new points, use landmarks. If n s floats fit into memory,
take `rpcholesky`: its error was the smallest on nearly every data set tried, except for a hundred
centers of `kmeans_select`. Otherwise take `recursive_rls_practical` or the cheaper
`recursive_rls_accelerated`. For clusters of similar size, `uniform_landmarks` suffices. `advise`
predicts the number of landmarks, and `nystrom_to` adds landmarks until the error is small enough.

For any sketch, `sketch_error` estimates the errors of eigenvalues and directions, and
`reliable_components` bounds the errors of directions. Where delta may be None, leave it so. For a
theorem's guarantee, call `recursive_rls` with the allowed error as lam and a delta below 1/32.

Papers and their short names
----------------------------
AMS     Achlioptas, McSherry, Schoelkopf, Sampling Techniques for Kernel Methods, NIPS 2001
RSKPCA  Kingravi, Vela, Gray, Reduced-Set Kernel PCA, SDM 2013
SKPCA   Ghashami, Perry, Phillips, Streaming Kernel PCA, AISTATS 2016
DSGD    Xie, Liang, Song, Scale Up Nonlinear Component Analysis with Doubly Stochastic Gradients, NIPS 2015
RLS     Musco, Musco, Recursive Sampling for the Nystrom Method, NIPS 2017
"""

import argparse
import collections
import contextlib
import contextvars
import csv
import ctypes
import dataclasses
import functools
import gzip
import importlib
import inspect
import io
import itertools
import json
import logging
import math
import operator
import os
import pathlib
import re
import secrets
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
import weakref
import zlib
from types import SimpleNamespace
from typing import NamedTuple

import numba
import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import carray, cfunc, njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

__version__ = "1.0.0"


# --------------------------------------------------------------------------------------------------
# How this file is built
#
# The sections ("rooms") follow each other as in a paper: a function uses only names defined above.
# A public function is plain Python. It checks its arguments (room 2), prepares them with NumPy,
# calls cores and LAPACK, and returns a tuple. A core is compiled. It does work that is slow in
# NumPy, such as kernel values, samples and bits. Loops over `prange` run on all threads or
# serially. Each task writes to its own slot of an array, and slots are added in order, so the
# results do not depend on the number of threads. BLAS does only small products (6.2).
#
# To develop, run `pip install -e ".[test]"` and `pytest` in a checkout. Numba keeps compiled code for
# each place of this file, so a checkout compiles again what an installed copy has compiled.
#
# To add a part, write:
# - public function: `@_public` above it, and an entry in a table of the module docstring. Results
#   are named in its last part. Test: test_file.py, for docstrings, order of arguments (ORDER, or
#   OF_THEIR_OWN), synonyms (FAMILIES) and the budget of syntax nodes. `warm_up` takes the function
#   if its arguments are among `_typical_arguments` (16.4)
# - kernel, which must be positive semidefinite (see `custom` for others): a record (5.1), a public
#   function (5.2), a branch in `_apply_kernel` that replaces the record's base, for example
#   |x - y|^2 for _DISTANCES (5.3), and a row in `_KERNELS` for the command line (18.1). `gradient`
#   needs derivative in the record. A kernel with a law of frequencies needs drop and slope, and a
#   law of its own a branch in `_scales` (11.1). Test: a row in KERNELS of tables.py, naive.py, and
#   "make kernels" in OF_THEIR_OWN of test_file.py, because parameters of kernels are not in ORDER
# - operator: a tuple under `@_validated`, its functions, and an entry in `_OPERATORS` (6.4). Test:
#   a row in OPERATORS of tables.py
# - sampler of landmarks: a function of (X, kernel, s, seed) that draws by `_checked_key` with a
#   purpose of its own (4) and returns `Landmarks` (`uniform_landmarks(n, n)` if s >= n), and a row
#   in `_SAMPLERS` (16.1). Test: a row in SAMPLERS of tables.py, with by_kernel=False if it evaluates
#   no kernel (`Landmarks.evaluations` is 0). To compare: python -m paper_checks
# - map to random features: a record by `_add_map_kind` below the others, because a test compares
#   their order with tables.py (files contain its name), and a public function that returns
#   `_new_map` (11.1). Test: a row in FEATURES of tables.py in the same order, FAMILIES and
#   OF_THEIR_OWN of test_file.py
# - model: a tuple under `@_validated` and `@_model`, whose arguments are the fields of `_Model`
#   (2.3). Its functions stand above the class and do not name it. "Results and their uses" in the
#   module docstring names it. Test: a row in MODELS of tables.py, for test_models.py
# - stream: a public start function, and a tuple for its states under `@_validated` and `@_stream`,
#   whose arguments are the fields of `_Stream` (2.3). Test: a row in STREAMS of tables.py, for
#   test_laws.py
# - class of tuples: it stands above `_TUPLES` (16.2). `_validated` checks a field of np.ndarray as
#   2-D float64. Another field needs a form of `_FORMS` (2.3). A field `names: bytes = b""` of a model
#   or state is filled with the columns by `_public`. A field that is added later needs a default, so
#   that earlier files can be read. `python -m kpcasketch_tests.test_files` adds a file of each new
#   class or kind, which later versions must read
# - command: a function, a row in `_COMMANDS`, and its options in `_ARGUMENTS` (18)
# - claim about a paper: see the head of paper_checks/claims.py

# --------------------------------------------------------------------------------------------------
# 1. Compilation
#
# A core is a compiled function that Python calls. A helper is inlined into cores. Arguments are
# numbers, arrays in C order, and tuples of both. A core writes to its arguments, returns nothing or
# a number, and never raises. Python handles signals such as Ctrl-C between two calls of cores.

# 1.1 Cores and helpers

# If True, nothing announces compilation. The environment variable sets the default.
QUIET = bool(os.environ.get("KPCASKETCH_QUIET"))

# The state of threads (1.1 and 1.2), in ns: the cost of a wake-up, the serial work since a pause,
# the debt of late threads, times until which they are left out, and the ends of regions.
_account = SimpleNamespace(
    wake_up=8e6,
    rented=0.0,
    debt=0.0,
    alone_until=0,
    blas_alone_until=0,
    parallel_ended=0,
    serial_ended=0,
    announced=False,
)
_lock = threading.RLock()  # for compilation, and for classes that are created at their first use
_SIGNALS = signal.valid_signals()


@contextlib.contextmanager
def _while_compiling():
    """Defer signals: an exception raised while numba compiles leaves its compiler unusable. Ignore
    NUMBA_DISABLE_JIT: without the compiler, cores would take hours."""
    came = []
    held = {}
    with _lock:
        disabled = numba.config.DISABLE_JIT
        try:
            numba.config.DISABLE_JIT = 0
            if threading.current_thread() is threading.main_thread():
                for number in _SIGNALS:
                    if callable(signal.getsignal(number)):
                        held[number] = signal.signal(number, lambda *one: came.append(one))
            yield
        finally:
            numba.config.DISABLE_JIT = disabled
            _account.parallel_ended = 0
            for number, handler in held.items():
                signal.signal(number, handler)
            with contextlib.ExitStack() as handlers:  # calls each, even if another one raises
                for number, frame in reversed(came):
                    handlers.callback(held[number], number, frame)


# The compiler may reorder sums and fuse multiply-adds; NaN and infinity keep their meaning. Strict
# helpers keep the order of operations: range reductions and hashes depend on it.
_SUMS = {"contract", "reassoc", "nsz", "arcp"}
_STRICT = {"contract"}
_OPTIONS = dict(nogil=True, error_model="numpy", no_cfunc_wrapper=True)
# LLVM inlines helpers. If they were also compiled separately, each would have two orders of
# summation, and earlier compilations would decide which one a core uses. First calls are 15 %
# faster without a wrapper for Python, but then a call from Python ends the process.
_helper = _while_compiling()(
    njit(fastmath=_SUMS, forceinline=True, no_cpython_wrapper=True, **_OPTIONS)
)
_strict_helper = _while_compiling()(njit(fastmath=_STRICT, forceinline=True, **_OPTIONS))

# Numba keeps compiled code on disk if another process can import this module by the same name.
_CACHED = (
    vars(sys.modules.get(__name__, math)) is globals()
    and __name__ not in ("__main__", "__mp_main__")
    and os.path.isfile(globals().get("__file__", ""))
)

# Single-thread work, in nanoseconds, above which a core runs on all threads.
_SHARED_FROM = 100_000
# On a busy processor, a parallel region waits until the system has run all its threads: measured, 8
# ms for .1 or 1 ms of work. If a short region takes more than twice its estimated work, the excess
# is added to a debt. At 8 ms of debt, short regions run serially for half a second, and half of the
# debt remains. Regions after a pause or a compilation do not count.
_SHORT_REGION = 10_000_000
_DEBT = 8_000_000
_HOLD = 500_000_000
# Threads that have no work for this long sleep. To wake them takes .05 ms on a processor of its own,
# and a tick of the scheduler, 8 ms, on many virtual machines.
_PAUSE = 20_000_000
# A core is compiled into two versions (twins), serial and parallel. The parallel twin takes 1 to
# 4 s to compile. The serial twin does this much work (in ns) first.
_WORTH_COMPILING = 100_000_000
_PLAIN_TYPES = {np.int64: int, np.float64: float, np.bool_: bool}  # equal types for numba

_warm_up_threshold = contextvars.ContextVar("_warm_up_threshold")  # replaces _SHARED_FROM
_process = os.getpid()  # a forked child lacks the threads of its parent
# "holder" is the thread in a parallel region. Numba's workqueue layer aborts if two threads are in
# one. The holder may enter again: an interrupt outside the `try` of `core` leaves "holder" set.
_region = {}


def _writable(array):
    """A writable array of the same memory. Numba would compile again for a read-only array."""
    shown = array.__array_interface__
    shown["data"] = (shown["data"][0], False)
    return np.asarray(SimpleNamespace(array=array, __array_interface__=shown))


def _with_types(arguments):
    """Key of the types, and writable values. numba.typeof would be slower than a small core."""
    key = []
    values = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            key.append((value.dtype.num, value.ndim))
            plain = type(value) is np.ndarray and value.flags.writeable  # not a memory map
            value = value if plain else _writable(value)
        elif isinstance(value, tuple):
            part, inside = _with_types(value)
            key.append(part)
            value = value._make(inside) if hasattr(value, "_make") else tuple(inside)
        else:
            key.append(_PLAIN_TYPES.get(type(value), type(value)))
        values.append(value)
    return tuple(key), values


@_while_compiling()
def _twin(function, key, parallel, cached):
    """A twin to compile. Its name, which its files on disk share, is unique to the key. If twins
    shared a name, two processes might save two signatures under one number (numba issue 9348)."""
    name = f"{function.__name__}_{zlib.crc32(repr(key).encode()):08x}{'sp'[parallel]}"
    named = type(function)(function.__code__, function.__globals__, name)
    named.__qualname__ = name
    return njit(parallel=parallel, cache=cached, fastmath=_SUMS, **_OPTIONS)(named)


def _files(twin):
    return list(pathlib.Path(twin.stats.cache_path).glob(f"*{twin.__name__}-*"))


def _to_stderr(text):
    print("kpcasketch:", *text.splitlines(), file=sys.stderr, flush=True)


def _note(text):
    """Log at level INFO, or print on stderr if the program has not configured logging."""
    if QUIET:
        return
    logger = logging.getLogger("kpcasketch")
    if logger.hasHandlers() or logger.level > logging.INFO or logger.disabled:
        logger.info(text)
    else:
        _to_stderr(text)


def _announce(kept):
    """Say once that a first call compiles. `warm_up` reports its own progress."""
    if not _account.announced and _warm_up_threshold.get(None) is None:
        _account.announced = True
        place = "on disk" if kept else "for this process"
        _note(f"compiling for this machine, once; the code is kept {place}")


def _run(function, twins, key, arguments, parallel):
    """Call a twin of the function. The first call compiles it for these types or loads it from
    disk. If that fails, its files are removed; the last attempt does not use the disk."""
    if (key, parallel) not in twins:
        with _while_compiling():
            for cached in [True, True, False] if _CACHED else [False]:
                twin = None
                try:
                    twin = _twin(function, key, parallel, cached)
                    if not (cached and _files(twin)):
                        _announce(cached)
                    twin.compile(tuple(map(numba.typeof, arguments)))
                    break
                except Exception as error:
                    if not cached or isinstance(error, numba.NumbaError):
                        raise
                    for file in _files(twin) if twin else []:
                        with contextlib.suppress(OSError):
                            file.unlink()
            twins[key, parallel] = twin
    return twins[key, parallel](*arguments)


def _threads_pay(work):
    """Whether all threads do this work sooner than one. Sleeping threads have to be woken, so short
    work is done serially until it exceeds four wake-ups: then waking adds a quarter at most. A
    single region wakes them if it exceeds two, as two threads would save half of its work."""
    now = time.perf_counter_ns()
    if now < _account.alone_until and work < _SHORT_REGION:
        return False
    if now - _account.parallel_ended < _PAUSE:
        return True
    if now - _account.serial_ended > _PAUSE:
        _account.rented = 0.0
    if _account.rented + 2.0 * work > 4.0 * _account.wake_up:
        return True
    _account.rented += work
    return False


def _learn_from_region(work, begun, ended):
    """Estimate the cost of a wake-up from a region after a pause, and add late threads to the debt
    from other regions."""
    late = ended - begun - work
    if begun - _account.parallel_ended < _PAUSE:
        if work < _SHORT_REGION:
            _account.debt = max(0.0, _account.debt + late - work)
        if _account.debt > _DEBT:
            _account.debt = 0.5 * _DEBT
            _account.alone_until = ended + _HOLD
    elif _account.parallel_ended and (work < _account.wake_up or late > _account.wake_up):
        cost = min(max(late, 0.0), _SHORT_REGION)
        _account.wake_up = 0.5 * (_account.wake_up + cost)
    _account.rented = 0.0
    _account.parallel_ended = ended


def _core(function):
    """Declare a core. core(work, ...) runs the function on all threads. It runs serially if work
    (in ns) is small, in a forked child, or during another thread's parallel region. Functions need
    np.int64(index): numba promotes int64 combined with the unsigned prange index to float."""
    # twins: by (types, parallel). stood_in: work that serial twins did in place of parallel twins.
    twins = {}
    stood_in = {}

    def worth_compiling(key, work):
        """Whether the parallel twin is in memory or on disk, or the serial twin did enough work."""
        if key not in stood_in:
            stood_in[key] = 0
            with contextlib.suppress(OSError, RuntimeError):  # directory not writable
                if _CACHED and _files(_twin(function, key, True, True)):
                    stood_in[key] = math.inf
        stood_in[key] += work
        return (key, True) in twins or stood_in[key] > _WORTH_COMPILING

    @functools.wraps(function)
    def core(work, *arguments):
        key, arguments = _with_types(arguments)
        least = _warm_up_threshold.get(_SHARED_FROM)
        shared = work > least and os.getpid() == _process
        parallel = shared and (least < 0 or worth_compiling(key, work) and _threads_pay(work))
        # get_num_threads is called only if `parallel`: interrupting it leaves a numba lock locked.
        if not (
            parallel
            and numba.get_num_threads() > 1
            and _region.setdefault("holder", threading.get_ident()) == threading.get_ident()
        ):
            result = _run(function, twins, key, arguments, False)
            if shared:
                _account.serial_ended = time.perf_counter_ns()
            return result
        begun = time.perf_counter_ns()
        try:
            return _run(function, twins, key, arguments, True)
        finally:
            _learn_from_region(work, begun, time.perf_counter_ns())
            _region.pop("holder", None)

    core.twins = twins
    return core


def _core_alone(function):
    """Declare a core without `prange`. Its callers pass no work."""
    twins = {}
    return functools.wraps(function)(
        lambda *arguments: _run(function, twins, *_with_types(arguments), False)
    )


# 1.2 Threads of BLAS
# NumPy and SciPy each bring an OpenBLAS whose threads wait for each other at each step. Measured on
# two cores next to another program: 110 ms instead of 31 for 20 products of SciPy's symv (n = 3000),
# 16 s instead of .4 for np.linalg.qr (2000 x 1000), 8 ms instead of .005 for symv in some processes
# (n = 300). They also spin for .1 s after a call, and slow the next core by 1.6. So a public function
# limits BLAS to one thread while it runs. On a quiet machine, threads save 42 % of sytrd, 39 % of
# eigh and 15 % of Cholesky's method for n = 1000, and 48, 37 and 34 % for n = 3000. So these have all
# threads if they are large (`_shared_blas`).

# `calls` are the public calls that run now. `libraries` are pairs of functions that return and set
# the number of threads of a library, and `before` are the numbers to restore.
_blas = SimpleNamespace(libraries=[], before=[], calls=set(), lock=threading.RLock())
# Single-thread work, in nanoseconds, above which a decomposition has all threads of BLAS. None with
# up to 1000 rows or columns has: its bits do not depend on the number of threads.
_SHARED_BLAS_FROM = 200_000_000


def _set_blas_threads(numbers):
    for (_, set_number), number in zip(_blas.libraries, numbers):
        set_number(number)


def _limit_blas():
    for _, set_number in _blas.libraries:
        set_number(1)


def _add_blas(module):
    """Add the OpenBLAS that a compiled module uses. Other libraries keep their threads."""
    try:
        library = ctypes.PyDLL(importlib.import_module(module).__file__)
    except (ImportError, OSError):  # of another release, or not a library of its own
        return
    for prefix, suffix in itertools.product(("", "scipy_"), ("", "64_", "_64")):
        names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
        if all(hasattr(library, name) for name in names):
            pair = [getattr(library, name) for name in names]
            with _blas.lock:
                _blas.libraries.append(pair)
                _blas.before.append(pair[0]())
                if _blas.calls:
                    pair[1](1)


_add_blas("numpy.linalg.lapack_lite")


@functools.cache
def _scipy_linalg():
    """scipy.linalg. Its import takes .1 s, so it waits for the first use."""
    _add_blas("scipy.linalg.cython_blas")
    return importlib.import_module("scipy.linalg")


def _begin_call(call):
    with _blas.lock:
        if not _blas.calls:
            _blas.before = [number() for number, _ in _blas.libraries]
        _blas.calls.add(call)
        _limit_blas()


def _end_call(call):
    with _blas.lock:
        _blas.calls.discard(call)
        if not _blas.calls:
            _set_blas_threads(_blas.before)


@contextlib.contextmanager
def _users_blas():
    """Give BLAS the threads that the user set, for a user's function or a large decomposition."""
    if not _blas.calls:
        yield
        return
    try:
        _set_blas_threads(_blas.before)
        yield
    finally:
        _limit_blas()


@contextlib.contextmanager
def _shared_blas(work):
    """Give BLAS all threads for a decomposition if its work (in ns on one thread) is large. If it
    takes twice this work, threads are late. They are left out until the loss is a tenth at most."""
    begun = time.perf_counter_ns()
    if work < _SHARED_BLAS_FROM or begun < _account.blas_alone_until:
        yield
        return
    with _users_blas():
        yield
    ended = time.perf_counter_ns()
    late = ended - begun - 2.0 * work
    if late > 0.0:
        _account.blas_alone_until = ended + 10.0 * late


# 1.3 Registers and memory
# A vector register has 64 bytes with AVX-512, and 32 without. A tile has 4 rows of 4 (or 2)
# vectors: half of the registers. Products with few columns use 2 vectors and 8 (or 4) rows.
try:
    _AVX512 = bool(llvm.get_host_cpu_features().get("avx512f", False))
except RuntimeError:
    _AVX512 = False
_VECTOR_BYTES = 64 if _AVX512 else 32
_TILE_VECTORS = 4 if _AVX512 else 2
_PRODUCT_ROWS = 8 if _AVX512 else 4
_WIDE_PANEL = _TILE_VECTORS * _VECTOR_BYTES  # bytes in a row of a panel
_NARROW_PANEL = 2 * _VECTOR_BYTES
# Single-thread nanoseconds per multiply-add in the micro-kernel and in other code.
_MULTIPLY_ADD, _SCALAR = (0.05, 0.25) if _AVX512 else (0.1, 0.3)
_CUSTOM_VALUE = 1e5  # nanoseconds per value of a custom kernel, which may be expensive


@intrinsic
def _wide_vectors(typing):
    """Let LLVM use 64-byte registers in the caller. Exp is 1.5 times as fast as with 32 bytes."""

    def codegen(context, builder, signature, args):
        if _AVX512:
            set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), codegen


@_helper
def _aligned(shape, like):
    """Uninitialized array that starts at a cache line. A load across two lines costs two loads."""
    size = 1
    for length in shape:
        size *= length
    raw = np.empty(size + 16, like.dtype)
    skip = (-raw.ctypes.data % 64) // raw.itemsize
    return raw[skip : skip + size].reshape(shape)


def _new_array(shape, dtype):
    """Uninitialized array aligned to 64 bytes. np.empty aligns to 16: rpcholesky is 25 % slower."""
    return _aligned.py_func(shape, np.empty(0, dtype))


# 1.4 The micro-kernel


def _addend(builder, term, x, y):
    if term == "product":
        return builder.fmul(x, y, flags=("contract",))
    gap = builder.fsub(x, y)
    if term == "square":
        return builder.fmul(gap, gap, flags=("contract",))
    name = f"llvm.fabs.v{gap.type.count}{gap.type.element.intrinsic_name}"
    absolute = builder.module.declare_intrinsic(name, (), ir.FunctionType(gap.type, [gap.type]))
    return builder.call(absolute, [gap])


def _array_arguments(context, builder, signature, args, places):
    return [context.make_array(signature.args[k])(context, builder, args[k]) for k in places]


def _broadcast(builder, number, vector):
    empty = vector(ir.Undefined)
    first = builder.insert_element(empty, number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, empty, ir.VectorType(ir.IntType(32), vector.count)(None))


def _register_tile(term, rows, vectors, accumulate=True, transposed=False):
    """Make a micro-kernel for `rows` rows of X and a panel of `vectors` vector registers.

    out[r:r+rows, c:c+width] (+)= sum_t X[i:i+rows, t] panel[t, :] for the term "product". The terms
    "square" and "size" sum squares and magnitudes of X[i:i+rows, t] - panel[t, :]. If transposed,
    X^T replaces X. Row `last` replaces later rows. Sums stay in registers: twice as fast."""

    @intrinsic
    def register_tile(typing, X, i, last, start, stop, panel, out, r, c):
        if any(array.layout != "C" for array in (X, panel, out)):
            raise numba.TypingError("points, panels and sums must be in C order")

        def codegen(context, builder, signature, args):
            _, i, last, start, stop, _, _, r, c = args
            X, panel, out = _array_arguments(context, builder, signature, args, (0, 5, 6))
            element = context.get_value_type(signature.args[0].dtype)
            itemsize = signature.args[0].dtype.bitwidth // 8
            lanes = _VECTOR_BYTES // itemsize
            vector = ir.VectorType(element, lanes)
            index = ir.IntType(64)
            load = functools.partial(builder.load, align=itemsize)

            def at(array, row, column, what=vector):  # pointer to an entry, of type `what`
                place = builder.add(builder.mul(row, builder.extract_value(array.shape, 1)), column)
                return builder.bitcast(builder.gep(array.data, [place]), what.as_pointer())

            numbers = [builder.add(i, index(k)) for k in range(rows)]
            numbers = [builder.select(builder.icmp_signed("<", k, last), k, last) for k in numbers]
            sums = {}
            targets = {}
            for k, v in itertools.product(range(rows), range(vectors)):
                target = at(out, builder.add(r, index(k)), builder.add(c, index(v * lanes)))
                begin = load(target) if accumulate else vector(None)
                sums[k, v] = cgutils.alloca_once_value(builder, begin)
                targets[k, v] = target
            with cgutils.for_range_slice(builder, start, stop, index(1)) as (t, _):
                row = builder.sub(t, start)
                ys = [load(at(panel, row, index(v * lanes))) for v in range(vectors)]
                for k in range(rows):
                    place = (t, numbers[k]) if transposed else (numbers[k], t)
                    x = _broadcast(builder, builder.load(at(X, *place, element)), vector)
                    for v in range(vectors):
                        total = builder.load(sums[k, v])
                        addend = _addend(builder, term, x, ys[v])
                        total = builder.fadd(total, addend, flags=("contract",))
                        builder.store(total, sums[k, v])
            for place, target in targets.items():
                builder.store(builder.load(sums[place]), target, align=itemsize)
            return context.get_dummy_value()

        return types.void(X, *[types.int64] * 4, panel, out, types.int64, types.int64), codegen

    return register_tile


_inner_products = _register_tile("product", 4, _TILE_VECTORS, accumulate=False)
_squared_distances = _register_tile("square", 4, _TILE_VECTORS, accumulate=False)
_l1_distances = _register_tile("size", 4, _TILE_VECTORS, accumulate=False)
_add_panel = _register_tile("product", 4, _TILE_VECTORS)
_add_transposed_panel = _register_tile("product", 4, _TILE_VECTORS, transposed=True)
_add_product = _register_tile("product", _PRODUCT_ROWS, 2)
_add_transposed_product = _register_tile("product", _PRODUCT_ROWS, 2, transposed=True)


# --------------------------------------------------------------------------------------------------
# 2. Arguments
#
# A check takes the name of an argument and its value. It returns a C-ordered array of float64 or
# float32, a Python number, or a tuple of them. If the value is wrong, it raises a ValueError.

# 2.1 Arrays

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_DOUBLE = (np.dtype(np.float64),)


def _require(sound, message):
    """Raise ValueError(message) if `sound` is false. It begins with the argument's name."""
    if not sound:
        raise ValueError(message)


_USERS_LINE = 3  # stack level of warnings: `_public` adds a frame


def _model_in(value):
    """The model of a fitted estimator, with the names of its columns, or the value itself."""
    model = getattr(value, "model_", getattr(value, "map_", None))
    if not isinstance(model, tuple):
        return value
    names = getattr(value, "feature_names_in_", None)
    return model if names is None else model._replace(names=json.dumps([*names]).encode())


class _PreparedPoints(np.ndarray):
    """Points of `prepared_points`. names: the field of the model for which they were prepared. Only
    chosen rows keep it: other results may have other columns or units."""

    names = b""

    def __getitem__(self, rows):
        found = super().__getitem__(rows)
        if isinstance(found, _PreparedPoints) and not isinstance(rows, tuple):
            found.names = self.names
        return found


def _names(value):
    """The columns of a frame, or the field `names` of a model, in JSON. "" if they are unknown."""
    if isinstance(value, _PreparedPoints):
        return value.names.decode()
    value = _model_in(value)
    if isinstance(value, tuple):
        # Landmarks without points are row numbers, whatever the columns.
        if hasattr(value, "points") and value.points is None:
            return ""
        if hasattr(type(getattr(value, "centers", None)), "columns"):  # a ReducedSet of a frame
            return _names(value.centers)
        return getattr(value, "names", b"").decode()
    if not hasattr(type(value), "columns"):  # Delayed has any name
        return ""
    names = list(value.columns)
    known = len(names) > 0 and all(type(name) is str for name in names)
    return json.dumps(names) if known else ""


def _require_same_columns(argument, names, other, theirs):
    if names == theirs or not (names and theirs):  # equal or unknown
        return
    shown = [
        f"those of prepared_points(path, X), {told[:100]}" if told[:1] == "{" else told[:200]
        for told in (names, theirs)
    ]
    raise ValueError(
        f"{argument} and {other} must have the same columns in the same order, got {shown[0]} and "
        f"{shown[1]}"
    )


# Arguments with the columns of the points. (Y may be a target: functions of two samples check it.)
_WITH_COLUMNS = frozenset("X Z M state a b model other expansion sketch landmarks centers".split())
_OPERATOR_ARGUMENTS = frozenset(("A", "B", "sketch"))  # may be sparse matrices


def _is_sparse(value):
    """Whether a value is a sparse matrix of scipy, or a model over sparse points."""
    return hasattr(type(getattr(value, "points", value)), "tocsr")


def _names_of_arguments(given, sparse):
    """The columns of all arguments whose columns are known, which must be the same. Sparse points
    are refused unless `sparse` is True."""
    names = first = ""
    for argument, value in given.items():
        _require(
            sparse or argument in _OPERATOR_ARGUMENTS or not _is_sparse(_model_in(value)),
            f"{argument} must be dense, such as rademacher_projection(X, s). Only gram, kpca, "
            "features, residual and most functions of landmarks take sparse points",
        )
        theirs = _names(value) if argument in _WITH_COLUMNS else ""
        if theirs:
            _require_same_columns(first, names, argument, theirs)
            first = first or argument
            names = theirs
    if names[:1] == "{" and given.get("X") is not None:
        _require(
            _names(given["X"]),
            "X must be made by prepared_points(path, X), or be rows of its result: the model was trained "
            "on columns that were standardized, filled or categorical",
        )
    return names


def _name_function(error, called):
    """Begin the message of a ValueError with the name of the function that was called. Errors that
    a user's function raised, and subclasses, which have other arguments, are not changed."""
    here = inspect.trace(0)[-1].frame.f_globals is globals()
    if here and type(error) is ValueError:
        error.refused = getattr(error, "refused", str(error))
        error.args = (f"{called}: {error.refused}",)


def _public(function=None, *, sparse=False):
    """The entry of a public function. Its errors name the function, or for a method, the class. If
    public functions call each other, they name the outermost. The result remembers the columns of
    the arguments. Sparse points are refused unless `sparse` is True. Overflow is ignored, because
    checks refuse its results. BLAS has one thread (1.2)."""
    if function is None:
        return functools.partial(_public, sparse=sparse)
    called = function.__qualname__.split(".")[-2:][0]
    accepted = inspect.signature(function).parameters

    @functools.wraps(function)
    def entry(*arguments, **by_name):
        call = object()
        try:
            _begin_call(call)
            names = _names_of_arguments(dict(zip(accepted, arguments), **by_name), sparse)
            with np.errstate(all="ignore"):
                result = function(*arguments, **by_name)  # editors find the arguments here
            if getattr(result, "names", None) == b"":
                result = result._replace(names=names.encode())
            return result
        except ValueError as error:
            _name_function(error, called)
            raise
        finally:
            _end_call(call)

    return entry


def _require_unmasked(name, value):
    kinds = {*map(type, value)} if type(value) in (list, tuple) else {type(value)}
    masked = any(issubclass(kind, np.ma.MaskedArray) for kind in kinds)
    _require(not masked, f"{name} must be a plain array, got a masked array: call .filled(value)")


def _is_numeric(dtype):
    if hasattr(dtype, "is_numeric"):  # polars
        return dtype.is_numeric() or str(dtype) == "Boolean"
    return dtype.kind in "biuf"


def _require_numeric(name, value, wanted="an array of real numbers"):
    """Refuse masked arrays, and text, dates, durations, categories and complex numbers in frames and
    series of pandas and polars. Conversion to floats would lose the mask and the meaning."""
    _require_unmasked(name, value)
    if not hasattr(type(value), "to_numpy"):  # Delayed has any name
        return
    frame = hasattr(value, "dtypes") and getattr(value, "ndim", 2) == 2
    if frame and getattr(value, "shape", (1,))[0] == 0:  # its types are unknown
        return
    dtypes = value.dtypes if frame else [value.dtype] if hasattr(value, "dtype") else []
    columns = zip(getattr(value, "columns", range(len(dtypes))), dtypes)
    wrong = ", ".join(repr(column) for column, dtype in columns if not _is_numeric(dtype))
    _require(
        not wrong,
        f"{name} must be {wanted}, got non-numeric columns {wrong:.200} (convert or drop them)",
    )


def _as_array(name, value, ndim, dtypes=_FLOATS):
    """value as a C-ordered array of float64, or of its own type if that is in `dtypes`."""
    if (
        type(value) is np.ndarray
        and value.ndim == ndim
        and value.flags.carray
        and value.dtype in dtypes
    ):
        return value
    wanted = f"a {ndim}-D array of real numbers"
    _require_numeric(name, value, wanted)
    one = "X[None]"
    column = "X[:, None]"
    if hasattr(value, "to_numpy"):
        one = "X.to_numpy()[None]"
        column = "X.to_frame()"
        if hasattr(value, "astype"):  # pandas: NA becomes NaN
            one = "X.to_frame().T"  # with names of columns
            kinds = {str(dtype).lower() for dtype in np.ravel(getattr(value, "dtypes", None))}
            value = value.astype(np.float32 if kinds == {"float32"} else float)
        value = value.to_numpy()
        if len(value) == 0:  # its types are unknown
            value = value.astype(float)
    if type(value) in (list, tuple):
        with contextlib.suppress(ValueError):  # rows of unequal lengths remain a list
            value = np.asarray(value)
    _require(isinstance(value, np.ndarray), f"{name} must be {wanted}, got {type(value).__name__}")
    hint = ""
    if value.ndim == 1 and ndim == 2:
        hint = f": pass {one} for one point, {column} for one column"
    _require(
        value.ndim == ndim and value.dtype.kind in "biuf",
        f"{name} must be {wanted}, got a {value.ndim}-D array of {value.dtype}{hint}",
    )
    own = value.dtype.newbyteorder("=")
    return np.require(value, own if own in dtypes else np.float64, "CAE")


def _as_columns(name, value, dtypes=_DOUBLE):
    """value as a 2-D array of float64. A vector becomes one column."""
    flat = False
    with contextlib.suppress(ValueError):  # rows of unequal lengths
        flat = np.ndim(value) == 1
    A = _as_array(name, value, 1 if flat else 2, dtypes)
    return A[:, None] if flat else A


def _all_below(X, limit=math.inf):
    """Whether abs(x) < limit for every entry; False for NaN. The sum of squares usually decides."""
    x = X.reshape(-1)
    return bool(np.einsum("i,i", x, x) < limit * limit or np.abs(x).max(initial=0.0) < limit)


def _as_csr(name, value, dtypes=_DOUBLE):
    """A sparse matrix of scipy as a csr_array, checked but for finite data. It is a new object with
    the same arrays, if the matrix has compressed rows, and data of a type in `dtypes`."""
    from scipy.sparse import csr_array  # the import takes 0.1 s

    rows = csr_array(value.tocsr())  # forgets that the columns were ascending
    rows.data = _as_array(f"{name}.data", rows.data, 1, dtypes)
    try:
        rows.check_format()  # wrong indices would end the process
    except ValueError as error:
        raise ValueError(f"{name} must be a valid sparse matrix; got one whose {error}") from None
    return rows


def _as_points(name, value):
    """value as a C-ordered 2-D array of floats or, if it is sparse, as a csr_array with ascending
    columns, in which duplicate entries are added. A canonical matrix is not copied."""
    if not hasattr(type(value), "tocsr"):
        return _as_array(name, value, 2)
    rows = _as_csr(name, value)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    wanted = f"{name} must be finite (no NaN or infinity), below 1e150 in magnitude, and a matrix"
    _require(rows.ndim == 2, wanted)
    if not _all_below(rows.data, 1e150):
        entry = np.argmin(np.abs(rows.data) < 1e150)
        row = np.searchsorted(rows.indptr, entry, "right") - 1
        raise ValueError(f"{wanted}; row {row}, column {rows.indices[entry]} is not")
    return rows


def _place(X, P, sound, numbers):
    """The first number of P, the array of X, that is not sound: its row, and its column's name."""
    row, column = divmod(int(np.argmin(sound)), P.shape[1])
    names = [*getattr(X, "columns", range(P.shape[1]))]
    return f"row {row if numbers is None else numbers[row]}, column {names[column]!r}"


def _checked_points(name, X, columns=None, numbers=None, rows=None, least=1):
    """X as at least `least` finite points. `numbers`: row numbers for messages, 0, 1, ... by
    default."""
    P = _as_points(name, X)
    _require(
        P.shape[0] >= least and P.shape[1] > 0,
        f"{name} must have at least one row and one column, got shape {P.shape}",
    )
    _require(columns in (None, P.shape[1]), f"{name} must have {columns} columns, got {P.shape[1]}")
    _require(rows in (None, P.shape[0]), f"{name} must have {rows} rows, got {P.shape[0]}")
    # Squares of distances, at most 4 d limit^2, must not overflow.
    limit = min(1e17, 8e18 / math.sqrt(P.shape[1])) if P.dtype.itemsize == 4 else 1e150
    if not (_is_sparse(P) or _all_below(P, limit)):
        raise ValueError(
            f"{name} must be finite (no NaN or infinity) and below 1e150 in magnitude (float32: "
            "1e17, and 8e18 / sqrt(d) for d columns); "
            f"{_place(X, P, np.abs(P) < limit, numbers)} is not"
        )
    return P


def _checked_vector(name, value):
    value = np.array(_as_array(name, value, 1, _DOUBLE))
    if value.size == 0 or not _all_below(value):
        raise ValueError(f"{name} must have at least one entry and be finite (no NaN or infinity)")
    return value


def _as_groups(groups, rows):
    """The group of each row as a number. Groups are numbered in the order of their first rows."""
    whole = False
    with contextlib.suppress(TypeError, ValueError):  # labels of several types, or missing ones
        labels = np.asarray(groups)
        first, numbers = np.unique(labels, return_index=True, return_inverse=True)[1:]
        whole = labels.shape == (rows,) and bool((labels == labels).all())
    _require(
        whole and not np.ma.is_masked(groups),
        f"groups must be a 1-D array of {rows} labels of one type, none of them missing; got "
        f"{type(groups).__name__}",
    )
    return np.argsort(np.argsort(first))[numbers]


def _checked_two(X, argument, Y):
    """Two sets of points with the same number of columns. If Y is X, they are one array."""
    P = _checked_points("X", X)
    _require_same_columns("X", _names(X), argument, _names(Y))
    return P, P if Y is X else _checked_points(argument, Y, P.shape[1])


def _in_double(X):
    return X.astype(np.float64, copy=False)


def _in_common_precision(*arrays):
    dtype = np.result_type(*[array.dtype for array in arrays])
    return [array.astype(dtype, copy=False) for array in arrays]


def _slabs(n, step):
    """Slices that cut n rows into runs of `step` rows."""
    return [slice(begin, begin + step) for begin in range(0, n, step)]


# 2.2 Numbers


def _scalar(value):
    """Convert a NumPy number or a 0-D array to a Python number. Return other values unchanged."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _shown(value):
    return repr(value) if isinstance(value, (int, float, complex, str)) else type(value).__name__


_MOST = 2**31 - 1  # limit for the length of an axis, and for counts


def _checked_count(name, value, high=2**63 - 1, low=1):
    number = _scalar(value)
    if type(number) is not int or not low <= number <= high:
        top = f"2**{high.bit_length()} - 1" if high > _MOST else high
        raise ValueError(f"{name} must be an int from {low} to {top}, got {_shown(number)}")
    return number


def _as_seed(name, value):
    return np.uint64(_checked_count(name, value, 2**64 - 1, 0))


def _checked_real(name, value, low=-math.inf, high=math.inf):
    number = _scalar(value)
    if type(number) not in (int, float):
        raise ValueError(f"{name} must be a real number, got {_shown(number)}")
    _require(abs(number) <= sys.float_info.max, f"{name} must be finite, got {number}")
    if not low <= number <= high:
        wanted = f"at least {low}" if high == math.inf else f"from {low} to {high}"
        raise ValueError(f"{name} must be {wanted}, got {float(number)}")
    return float(number)


def _checked_share(name, value, parts=1):
    value = _checked_real(name, value)
    top = "1" if parts == 1 else f"1/{parts}"
    _require(0.0 < value < 1.0 / parts, f"{name} must be between 0 and {top}, got {value}")
    return value


def _as_ridge(lam):
    return _checked_real("lam", lam, 1e-300)


def _as_delta(delta, default):
    return default if delta is None else _checked_share("delta", delta)


def _as_half_life(half_life):
    return None if half_life is None else _checked_real("half_life", half_life, 1.0)


def _as_flag(name, value):
    value = _scalar(value)
    _require(isinstance(value, bool), f"{name} must be True or False, got {_shown(value)}")
    return value


_PHYSICAL_MEMORY = (
    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2**34
)
# The limit of a Linux container, if there is one: else the file has "max", or does not exist.
for _limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
    with contextlib.suppress(OSError, ValueError):
        _PHYSICAL_MEMORY = min(_PHYSICAL_MEMORY, int(pathlib.Path(_limit).read_text()))


def _human(size):
    unit = min(math.floor(math.log10(max(size, 1)) / 3), 4)
    return f"{size / 1000**unit:.3g} {('B', 'kB', 'MB', 'GB', 'TB')[unit]}"


def _fits(name, size):
    """Raise if an array of `size` bytes would exceed the memory of this machine or container."""
    if not size <= _PHYSICAL_MEMORY:
        raise ValueError(
            f"{name} must be smaller: the call would need {_human(float(size))} of memory, and "
            f"this machine has {_human(_PHYSICAL_MEMORY)}"
        )


# 2.3 Results and tuples


def _arrays(A):
    if isinstance(A, tuple):
        return [array for field in A for array in _arrays(field)]
    if _is_sparse(A):
        return [A.data, A.indices, A.indptr]
    return [A] if isinstance(A, np.ndarray) else []


def _require_finite(what, result):
    _require(
        _all_below(np.asarray(result)), f"{what} must be finite (no NaN, infinity or overflow)"
    )


def _checked_out(name, out, shape, dtype, read):
    """The array for a result computed from the tuple `read`: the caller's `out`, or a new one."""
    if out is None:
        _fits(name, math.prod(shape) * dtype.itemsize)
        return _new_array(shape, dtype)
    plain = type(out) in (np.ndarray, np.memmap)
    sound = plain and (out.shape, out.dtype) == (shape, dtype) and out.flags.carray
    came = f"{out.dtype} of shape {out.shape}" if plain else type(out).__name__
    _require(sound, f"out must be a writable C-ordered {dtype} array of shape {shape}; got {came}")
    apart = not any(np.may_share_memory(out, array) for array in _arrays(read))
    _require(apart, "out must be separate from the arguments; got memory of one of them")
    return out


def _as_integers(name, value, dtype=None):
    value = np.asarray(value)
    dtype = dtype or (np.int32 if value.dtype == np.int32 else np.int64)
    return value.astype(dtype, "C", "same_kind", copy=False)


# Checks of fields, by the form in `_validated`, the name "seed", or the field's annotation.
_FORMS = {
    int: functools.partial(_checked_count, low=0),
    float: _checked_real,
    bool: _as_flag,
    bytes: lambda name, value: bytes(value),
    str: lambda name, value: str(value),
    "seed": _as_seed,
    1: functools.partial(_as_array, ndim=1, dtypes=_DOUBLE),
    np.ndarray: functools.partial(_as_array, ndim=2, dtypes=_DOUBLE),
    "entries": functools.partial(_as_array, ndim=1),
    "points": _as_points,
    "finite": _checked_points,
    "whole": functools.partial(_as_integers, dtype=np.int64),
    "bits": functools.partial(_as_integers, dtype=np.uint32),
    "indices": _as_integers,
    "count": _checked_count,
    "step size": functools.partial(_checked_real, low=1e-150),
    "decay": functools.partial(_checked_real, low=0.0),
}
_TUPLE_CHECKS = {}  # class: arguments of `_validated`
_models = {}  # class of models: its record
_streams = {}  # class of states of streams: its record
# This dict survives when IPython's autoreload empties the module or Spyder imports it again.
_outliving = vars(sys).setdefault(f"_outliving_{__name__}", {})


def _validated(what, sound=lambda made: True, **arrays):
    """Declare the checks of a class of tuples. `what` describes a tuple in messages. sound(made)
    must be true. `arrays` maps fields to keys of _FORMS; other fields are checked by annotation. If
    this file runs again, the old class is kept: its tuples are accepted and can be pickled."""

    def declared(cls):
        cls = _outliving.setdefault((cls.__name__, cls._fields), cls)
        _TUPLE_CHECKS[cls] = what, sound, arrays
        return cls

    return declared


def _of_record(records, name, value, field):
    """A field of the record of the value's class. If it has none, say which classes have it."""
    found = getattr(records.get(type(value)), field, None)
    if found is None:  # the message is built only if it is needed: 3 us of a small call
        able = [cls.__name__ for cls, record in records.items() if getattr(record, field)]
        got = type(value).__name__
        if isinstance(value, (str, os.PathLike)):
            got += ": call load(path)"
        elif hasattr(type(value), "_require_fit") and _model_in(value) is value:
            got += ", which is not fitted"
        raise ValueError(f"{name} must be one of {', '.join(able)}; got {got}")
    return found


class _Model(NamedTuple):
    """What the models of a class can do. Points X and model have been checked. `_of_model` refuses
    what is None."""

    # (X, model): refuse points that do not fit the model, and sparse points if it takes only dense
    # ones. X may have no rows.
    fit: object
    shape: object  # (model): shape of the features of one point
    features: object  # (X, model, out): write the features of points
    of_point: object  # (x, model, out): write the features of one point. It is compiled.
    values: object = lambda model: ()  # (model): eigenvalues
    residual: object = None  # (X, model): relative distances of points from the span
    residual_of_point: object = None  # (x, model, out): features, and the residual. It is compiled.
    moments: object = None  # (X, model): orthonormal features, sum |phi(x)|^2 and |sum phi(x)|^2
    sketch: object = None  # (X, model): its eigenpairs, or its Gram matrix as an operator
    # Whether `features` takes any number of points in little memory. Otherwise it gets slabs of
    # points, as `residual` always does.
    whole: bool = False


class _Stream(NamedTuple):
    """What the states of a class of streams can do. They are checked, and never modified."""

    columns: object  # (state): number of columns of its points
    # (state, X), or (state, X, Y) if `second`: the state after more points. X has rows, except if
    # `second`.
    update: object
    finish: object  # (state), or (state, k) if `most` is given: the result of a state with points
    # (state): whether it has seen points. If not, `finish` refuses it.
    has_points: object = lambda state: state.count > 0
    most: object = None  # (state): the largest k of `finish`
    merge: object = None  # (a, b): the state of both streams
    arguments: object = None  # (state): what must be equal in two states to be merged
    second: bool = False  # whether `update` takes a second view or targets
    options: dict = {}  # defaults of the command `stream`, if it offers the stream


def _model(**functions):
    """Declare the record of a class of models."""

    def declared(cls):
        _models[cls] = _Model(**functions)
        return cls

    return declared


def _stream(**functions):
    """Declare the record of a class of states."""

    def declared(cls):
        _streams[cls] = _Stream(**functions)
        return cls

    return declared


_of_model = functools.partial(_of_record, _models)
_of_stream = functools.partial(_of_record, _streams)


def _checked_as(cls, name, value):
    what, sound, arrays = _TUPLE_CHECKS[cls]
    if not isinstance(value, cls):
        hint = ": call features(X, model) for any model" if type(value) in _models else ""
        raise ValueError(f"{name} must be {what}, got {type(value).__name__}{hint}")
    try:
        fields = []
        for field, kind in cls.__annotations__.items():
            form = arrays.get(field, "seed" if field == "seed" else kind)
            check = _FORMS.get(form) or functools.partial(_checked_as, kind)
            given = getattr(value, field)
            if given is not cls._field_defaults.get(field, check):  # a default may be None
                given = check(f"{name}.{field}", given)
            fields.append(given)
        made = cls(*fields)
    except (AttributeError, OverflowError, TypeError, ValueError) as error:  # hand-built tuples
        if str(error).startswith(name):
            raise
        raise ValueError(f"{name} must be {what}; one of its fields is wrong ({error})") from None
    _require(sound(made), f"{name} must be {what}")
    return made


# --------------------------------------------------------------------------------------------------
# 3. Vector math
#
# exp, log and cos contain no branches or calls, so LLVM vectorizes loops around them, unlike loops
# around math.exp. NaN and infinity give NumPy's results. Polynomials minimize the relative error.
# The low bits of x + 1.5 * 2^52 (float32: 1.5 * 2^23) are x rounded to an integer (Dekker).

_DOUBLE_FORMAT = np.float64, np.int64, 52  # with the number of bits of a mantissa
_SINGLE_FORMAT = np.float32, np.int32, 23


def _polynomial(coefficients):
    """Make a helper: the polynomial with these coefficients, the leading one first (Horner)."""

    @intrinsic
    def horner(typing, x):

        def codegen(context, builder, signature, args):
            total, *others = map(args[0].type, coefficients)
            for coefficient in others:
                product = builder.fmul(total, args[0], flags=("contract",))
                total = builder.fadd(product, coefficient, flags=("contract",))
            return total

        return x(x), codegen

    return horner


def _exp_of(number, integer, digits, constants, coefficients):
    """Make a helper: e^x in the precision `number`, with an error below 1.1 ulp."""
    bias = np.finfo(number).maxexp - 1
    shift = number(1.5 * 2.0**digits)
    low, high, inverse, ln2, ln2_rest = np.array(constants, number)  # ln 2 is split
    horner = _polynomial(coefficients)

    @_strict_helper
    def exp(x):
        x = low if x < low else x  # e^x is 0 below `low` and infinity above `high`; NaN stays NaN
        x = high if x > high else x
        rounded = x * inverse + shift
        k = rounded - shift  # e^x = 2^k e^r
        r = (x - k * ln2) - k * ln2_rest
        q = horner(r)
        k = number(rounded).view(integer)
        half = k >> 1  # 2^k is two factors, so that a subnormal result is rounded once
        return (
            (number(1) + (r + r * r * q))
            * integer((half + bias) << digits).view(number)
            * integer((k - half + bias) << digits).view(number)
        )

    return exp


_exp64 = _exp_of(
    *_DOUBLE_FORMAT,
    [-746.0, 710.0, 1.4426950408889634, 0.6931471804855391, 7.440617110012397e-11],
    [
        2.5000005801868804e-08,
        2.763037842182758e-07,
        2.755758721521554e-06,
        2.4801492763392768e-05,
        0.00019841269504905712,
        0.0013888888943922068,
        0.008333333333495561,
        0.04166666666652919,
        0.1666666666666641,
        0.5000000000000011,
    ],
)
_exp32 = _exp_of(
    *_SINGLE_FORMAT,
    [-104.0, 89.0, 1.44269504, 0.693115234375, 3.1946184945309415e-05],
    [0.0013814463, 0.00836878, 0.041668393, 0.1666652, 0.49999994],
)
_log_polynomial = _polynomial(
    [
        0.1479625762932135,
        0.15314021458854346,
        0.18183565394586662,
        0.22222198554014694,
        0.2857142874256008,
        0.3999999999941397,
        0.6666666666666734,
    ]
)


@_strict_helper
def _log64(x):
    """Natural logarithm in float64, with an error below 1.3 ulp."""
    subnormal = x < 2.2250738585072014e-308
    bits = np.float64(x * 18014398509481984.0 if subnormal else x).view(np.int64)  # 2^54
    k = (bits - 0x3FE6A09E667F3BCD) >> 52  # x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2)
    e = np.int64(k + 0x4338000000000000).view(np.float64) - 6755399441055744.0  # 1.5 * 2^52
    e -= 54.0 if subnormal else 0.0
    f = np.int64(bits - (k << 52)).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    q = _log_polynomial(z)
    half = 0.5 * f * f
    log_m = f - (half - s * (half + z * q))  # log(1 + f) = 2 s + s z q. This order keeps f exact
    result = e * 0.6931471804855391 + (log_m + e * 7.440617110012397e-11)
    result = result if x < np.inf else x  # infinity and NaN
    result = result if x != 0.0 else -np.inf
    return result if not x < 0.0 else np.nan


# If x = (k + 1/2) pi + r with abs(r) <= pi/2, then cos x = -(-1)^k sin r. At a zero of cos, r is 0,
# so the relative error stays small. The products of k + 1/2 and the parts of pi are exact.


def _cos_of(number, integer, digits, parts_of_pi, coefficients):
    """Make a helper: cos x in the precision `number`."""
    sign = 8 * np.dtype(number).itemsize - 1
    inverse, half, shift = np.array([1.0 / math.pi, 0.5, 1.5 * 2.0**digits], number)
    first, second, third, fourth = np.array(parts_of_pi, number)
    horner = _polynomial(coefficients)

    @_strict_helper
    def cos(x):
        rounded = (x * inverse - half) + shift
        k = (rounded - shift) + half
        r = (((x - k * first) - k * second) - k * third) - k * fourth
        z = r * r
        q = horner(z)
        even = (number(rounded).view(integer) ^ 1) << sign
        return integer(number(r + r * z * q).view(integer) ^ even).view(number)

    return cos


_cos64 = _cos_of(  # the error is below 2.4 ulp for abs(x) <= 2^20
    *_DOUBLE_FORMAT,
    [3.1415926534682512, 1.2154201012607932e-10, 4.044532497591901e-21, 2.0171708071745067e-37],
    [
        2.7211569774915805e-15,
        -7.642989817549199e-13,
        1.6058939643121507e-10,
        -2.505210687158409e-08,
        2.7557319211124324e-06,
        -0.00019841269841209145,
        0.008333333333333194,
        -0.16666666666666666,
    ],
)
_cos32 = _cos_of(  # the error is below 2.5 ulp for abs(x) <= 2^13
    *_SINGLE_FORMAT,
    [3.140625, 0.0009675025939941406, 1.5099067240953445e-07, 5.126688303189038e-12],
    [2.605750751172309e-06, -0.0001980959059437737, 0.00833306647837162, -0.16666659712791443],
)


# Compiled code replaces these functions by the ones above, in the precision of x.
def _exp(x):
    """e^x."""


def _cos(x):
    """The cosine of x."""


overload(_exp)(lambda x: (lambda x: _exp32(x)) if x == types.float32 else lambda x: _exp64(x))
overload(_cos)(lambda x: (lambda x: _cos32(x)) if x == types.float32 else lambda x: _cos64(x))


@_strict_helper
def _log_one_plus(gamma, v):
    """log(1 + t) for t = gamma v >= 0, which may overflow. The rounding of 1 + t is corrected."""
    t = gamma * v
    u = 1.0 + t
    lost = (t - (u - 1.0)) / u
    far = t >= 1e300  # log(1 + t) = log t, and the factor 2^-940 prevents overflow
    return _log64(gamma * 2.0**-940 * v if far else u) + (651.5583497263485 if far else lost)


# --------------------------------------------------------------------------------------------------
# 4. Randomness
#
# A random number is a pure function of (seed, purpose, counter): an element of SplitMix64 (Steele,
# Lea, Flood 2014). There is no state, so any thread can draw any number in any order. Each purpose
# has its own sequence, so draws for different purposes are independent under one seed.

_START, _KEEP, _ROUND_UP, _ROUND_KEPT, _PAIRS, _PROBES = range(1, 7)
_ROUND_COEFFICIENTS, _SIGNS = range(8, 10)
_CENTERS, _LANDMARKS, _FREQUENCIES = range(11, 14)
_PARED, _THINNED, _BATCHES, _REVISITS, _NORMS, _HELD_OUT, _UNIFORM = range(15, 22)


@_strict_helper
def _mix(z):
    """Bijection of 64 bits (SplitMix64's finalizer). Each input bit affects every output bit."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


_mixed = _mix.py_func  # for NumPy arrays, because NumPy scalars warn of overflow


@_strict_helper
def _random_word(key, counter):
    """64 random bits: element `counter` of the sequence that starts at `key`."""
    return _mix(
        np.uint64(key) + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    )


_subkey = _random_word  # _subkey(key, number) is the key of one part of a purpose


def _words(keys, counters):
    """`_random_word` for NumPy arrays."""
    counters = np.atleast_1d(counters).astype(np.uint64) + 1
    return _mixed(np.asarray(keys, np.uint64) + counters * 0x9E3779B97F4A7C15)


def _python_subkey(key, number):
    return _words(key, number)[0]


def _key(seed, purpose):
    return _python_subkey(_mixed(np.array([seed], np.uint64))[0], purpose)


def _checked_key(seed, purpose):
    return _key(_as_seed("seed", seed), purpose)


def _uniforms(keys, counters):
    """`_uniform` for NumPy arrays."""
    return ((_words(keys, counters) >> 12) + 0.5) * 2.220446049250313e-16


@_strict_helper
def _uniform(key, counter):
    """Uniform random number in the open interval (0, 1): an odd multiple of 2^-53."""
    return (np.float64(_random_word(key, counter) >> np.uint64(12)) + 0.5) * 2.220446049250313e-16


@_strict_helper
def _normal(key, counter):
    """Standard normal random number (Box-Muller). It uses elements 2 counter and 2 counter + 1."""
    first = 2 * np.int64(counter)
    radius = math.sqrt(-2.0 * _log64(_uniform(key, first)))
    return radius * _cos64(6.283185307179586 * _uniform(key, first + 1))


@_strict_helper
def _gamma(key, counter, shape):
    """Gamma(shape) random number (Marsaglia, Tsang 2000). 2 Gamma(df / 2) is chi-square."""
    key = _subkey(key, counter)  # its own sequence, because the number of attempts is random
    d = (shape if shape >= 1.0 else shape + 1.0) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = 0
    while True:
        z = _normal(key, 2 * attempt)  # uses elements 4a and 4a + 1, where a is `attempt`
        v = (1.0 + c * z) ** 3
        if v > 0.0 and math.log(
            _uniform(key, 4 * attempt + 2)
        ) < 0.5 * z * z + d - d * v + d * math.log(v):
            break
        attempt += 1
    if shape < 1.0:  # G(shape) = G(shape + 1) U^(1 / shape)
        return d * v * _uniform(key, 4 * attempt + 3) ** (1.0 / shape)
    return d * v


@_core_alone
def _shuffle(numbers, size, key):
    """Do the first `size` steps of a Fisher-Yates shuffle in place."""
    n = len(numbers)
    for i in range(size):
        j = i + np.int64(_uniform(key, i) * (n - i))  # below n, even if the product is rounded
        numbers[i], numbers[j] = numbers[j], numbers[i]


def _draw_uniformly(n, size, key):
    """Draw `size` of the numbers 0 ... n - 1 without replacement."""
    numbers = np.arange(n)
    _shuffle(numbers, size, key)
    return numbers[:size].copy()


def _gaussian_matrix(n, p, key):
    return np.random.default_rng(int(key)).standard_normal((n, p))


def _distinct(X):
    """Row numbers of the distinct points, and the position of each point among them. Points are
    compared by 64-bit hashes: among 10^6 points, two share a hash with probability 3e-8. Two random
    projections stand for sparse points, so that differences below a rounding error are lost."""
    if _is_sparse(X):
        X = X @ _gaussian_matrix(X.shape[1], 2, 0)
    hashes = np.zeros(len(X), np.uint64)
    for column in X.T:
        numbers = column.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        hashes = _mixed(hashes + numbers.view(np.uint64))
    return np.unique(hashes, return_index=True, return_inverse=True)[1:]


# --------------------------------------------------------------------------------------------------
# 5. Kernels

# 5.1 One record per kind

# The base is the argument of a kernel's formula. _EXPANDED tiles compute |x - y|^2 from x.y.
_PRODUCTS, _DISTANCES, _L1, _EXPANDED, _EVERY_PAIR = range(5)


_NORMAL, _MIXTURE, _STUDENT, _CAUCHY_ENTRIES = range(1, 5)  # laws (see `_scales`)


class _Kind(NamedTuple):
    """A kind of kernel. Function fields take a Kernel; `drop` takes a distance, too."""

    name: str  # the repr, files and pickles contain it
    # k(x, y) depends on x.y (_PRODUCTS), |x - y|^2 (_DISTANCES), |x - y|_1 (_L1) or the pair
    # (_EVERY_PAIR). For _DISTANCES and _L1, k(x, x) = scale.
    base: int
    # If k depends only on x - y, k / scale is the Fourier transform of a law of frequencies
    # (Bochner). `parameter`: alpha or nu of the law, or 0 if it is the kernel's shape.
    law: int = 0
    parameter: float = 0.0
    # gamma = unit / sigma^sigma_power, over the shape if it is not 0. unit is 0 without a sigma.
    unit: float = 0.0
    sigma_power: int = 2
    # Largest |dk / d(|x - y|^2)| divided by the largest value of k. The relative errors of
    # _EXPANDED tiles are proportional to this number. If it is infinite, tiles are not _EXPANDED.
    steepness: object = lambda kernel: math.inf
    drop: object = None  # 1 - k(r) / k(0) for r > 0, without cancellation
    slope: object = None  # the largest abs(d k / d r) / k(0)
    derivative: object = None  # see `_derivative` (8)


_KINDS = []


def _add_kind(*facts, **by_name):
    """Add a kind and return its number, which only this process uses."""
    _KINDS.append(_Kind(*facts, **by_name))
    return len(_KINDS) - 1


def _parameter_of(kernel):
    return _KINDS[kernel.kind].parameter or kernel.shape


def _times(kernel, factor, **changes):
    return kernel._replace(scale=kernel.scale * factor, **changes)


def _power_drop(kernel, r):
    log_square = math.log(kernel.gamma) + 2.0 * math.log(r)
    return -math.expm1(-_parameter_of(kernel) * np.logaddexp(0.0, log_square))


def _power_slope(kernel):
    alpha = _parameter_of(kernel)
    u = 1.0 / (2.0 * alpha + 1.0)  # the slope is largest at gamma r^2 = u
    return 2.0 * alpha * math.sqrt(kernel.gamma * u) * (1.0 + u) ** (-alpha - 1.0)


def _power_derivative(kernel):
    alpha = _parameter_of(kernel)
    return _times(kernel, 2.0 * kernel.gamma * alpha, kind=_RATIONAL, shape=alpha + 1.0)


def _matern_drop(kernel, r):
    from scipy.special import gammainc  # here it is exp(-a) sum_{n >= nu + 1/2} a^n / n!

    nu = _parameter_of(kernel)
    a = kernel.gamma * r
    more = a * math.exp(-a) * a / 6.0 if nu == 2.5 else 0.0  # in this order, a^2 cannot overflow
    return float(gammainc(nu + 0.5, a)) + more


_POWER = dict(  # (1 + gamma r^2)^-alpha
    base=_DISTANCES,
    law=_MIXTURE,
    steepness=lambda kernel: kernel.gamma * _parameter_of(kernel),
    drop=_power_drop,
    slope=_power_slope,
    derivative=_power_derivative,
)


def _matern(name, nu, slope, derived, divisor):
    """Add a Matern kind. slope: the largest for gamma = 1. derived: kind of the derivative."""
    return _add_kind(
        name,
        _DISTANCES,
        law=_STUDENT,
        parameter=nu,
        unit=math.sqrt(2.0 * nu),
        sigma_power=1,
        drop=_matern_drop,
        slope=lambda kernel: kernel.gamma * slope,
        derivative=lambda kernel: _times(
            kernel, kernel.gamma * kernel.gamma / divisor, kind=_NAMES.index(derived)
        ),
    )


_GAUSSIAN = _add_kind(
    "gaussian",
    _DISTANCES,
    unit=0.5,
    law=_NORMAL,
    steepness=lambda kernel: kernel.gamma,
    drop=lambda kernel, r: -math.expm1(-kernel.gamma * r * r),
    slope=lambda kernel: math.sqrt(2.0 * kernel.gamma / math.e),
    derivative=lambda kernel: _times(kernel, 2.0 * kernel.gamma),
)
_RATIONAL = _add_kind("rational_quadratic", **_POWER, unit=0.5)
_CAUCHY = _add_kind("cauchy", **_POWER, unit=1.0, parameter=1.0)
_EXPONENTIAL = _matern("laplacian", 0.5, 1.0, "laplacian", 1.0)
# The slope a exp(-a) is largest at a = 1, and (a + a^2) exp(-a) / 3 at the golden ratio.
_MATERN_3_2 = _matern("matern 3/2", 1.5, 1.0 / math.e, "laplacian", 1.0)
_MATERN_5_2 = _matern("matern 5/2", 2.5, 0.279987364885725, "matern 3/2", 3.0)
_CITY_BLOCK = _add_kind(
    "laplacian of the city block", _L1, unit=1.0, sigma_power=1, law=_CAUCHY_ENTRIES
)
_POLYNOMIAL = _add_kind(
    "polynomial",
    _PRODUCTS,
    derivative=lambda kernel: _times(kernel, kernel.gamma * kernel.shape, shape=kernel.shape - 1.0),
)
_CUSTOM = _add_kind("custom", _EVERY_PAIR)
_PRECOMPUTED = _add_kind("precomputed", _EVERY_PAIR)

# Compiled code cannot read _KINDS, but it can read these columns.
_NAMES, _BASES = list(zip(*_KINDS))[:2]


def _sigma_of(kernel):
    kind = _KINDS[kernel.kind]
    if not (kind.unit and kernel.gamma):
        return None
    return (kind.unit / (kernel.shape or 1.0) / kernel.gamma) ** (1.0 / kind.sigma_power)


def _is_linear(kernel):
    return kernel.kind == _POLYNOMIAL and kernel.shape == 1.0


def _has_formula(kernel):
    """Whether the kernel has a formula, which also makes it positive semidefinite."""
    return _KINDS[kernel.kind].base != _EVERY_PAIR


_custom_kernels = _outliving.setdefault("custom kernels", {})  # keeps functions at their addresses
_functions = _outliving.setdefault("functions of custom kernels", {})  # by address


def _is_sound(kernel):
    """Whether compiled code can use the kernel. An address of another process would crash."""
    rows, columns = kernel.table.shape
    return (
        rows == columns
        and 0 <= kernel.kind < len(_KINDS)
        and (kernel.kind != _CUSTOM or kernel.address in _functions)
        and (kernel.kind != _POLYNOMIAL or 1.0 <= kernel.shape <= 64.0)
        and kernel.scale > 0.0
        and min(kernel.gamma, kernel.shape, kernel.offset) >= 0.0
    )


# 5.2 Functions that return a Kernel


@_validated(
    "a Kernel returned by a function such as gaussian(sigma), or by custom(f) in this process",
    _is_sound,
)
class Kernel(NamedTuple):
    """A kernel: `scale` times the formula of its kind with parameters gamma, shape and offset.
    `address` is the machine address of f in `custom(f)`. `table` is K in `precomputed(K)`."""

    kind: int
    scale: float = 1.0
    gamma: float = 0.0
    shape: float = 0.0
    offset: float = 0.0
    address: int = 0
    table: np.ndarray = np.empty((0, 0))

    def __reduce__(self):
        return Kernel._named, (_functions.get(self.address), _NAMES[self.kind], *self[1:])

    @classmethod
    def _named(cls, f, name, *parameters):
        kernel = cls(_NAMES.index(name), *parameters)
        # Addresses differ between processes, so the receiving process compiles f again.
        return kernel._replace(address=custom(f).address) if f else kernel

    def __eq__(self, other):  # tuple.__eq__ fails, because an array has no truth value
        return (
            isinstance(other, Kernel)
            and self[:-1] == other[:-1]
            and np.array_equal(self.table, other.table)
        )

    def __add__(self, other):  # tuples would be joined
        raise TypeError("kernels have no + and *: call scaled, or custom for a sum or a product")

    __radd__ = __mul__ = __rmul__ = __add__
    __ne__ = object.__ne__  # the negation of __eq__
    __hash__ = lambda self: hash(self[:-1])  # noqa: E731

    def __repr__(self):
        shown = {"sigma": _sigma_of(self), **dict(zip(self._fields[1:5], self[1:5]))}
        words = [
            f"{field}={number:.6g}"
            for field, number in shown.items()
            if number != self._field_defaults.get(field)
        ]
        if self.table.size:
            words.append(f"table {self.table.shape}")
        return f"Kernel({', '.join([_KINDS[self.kind].name, *words])})"


def _as_sigma(sigma):
    return _checked_real("sigma", sigma, 1e-150, 1e150)


@_public
def gaussian(sigma=None, *, gamma=None):
    """Gaussian kernel k(x, y) = exp(-|x - y|^2 / (2 sigma^2)) = exp(-gamma |x - y|^2).
    RSKPCA, SKPCA, DSGD and RLS use it. In RSKPCA, sigma means sqrt(2) times this sigma.

    Args:
        sigma: float from 1e-150 to 1e150. Bandwidth in the units of X: try median_bandwidth(X).
        gamma: float from 1e-301 to 1e300. 1 / (2 sigma^2), as in scikit-learn. Pass sigma or gamma.
    Returns:
        Kernel: Its field `gamma` is 1 / (2 sigma^2).
    Example:
        >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
        >>> np.allclose(gram(X, X, gaussian(1.0)), gram(X, X, gaussian(gamma=0.5)))
        True
    """
    given = "neither" if sigma is None else "both"
    _require(
        (sigma is None) != (gamma is None), f"either sigma or gamma must be given, got {given}"
    )
    if gamma is None:
        return Kernel(_GAUSSIAN, gamma=0.5 / _as_sigma(sigma) ** 2)
    return Kernel(_GAUSSIAN, gamma=_checked_real("gamma", gamma, 1e-301, 1e300))


@_public
def laplacian(sigma, *, norm=2):
    """Laplacian kernel k(x, y) = exp(-|x - y| / sigma) (textbook; RSKPCA (18)).

    Args:
        sigma: float from 1e-150 to 1e150. Bandwidth in the units of the points.
        norm: int. 2 for the Euclidean norm, as in `matern(0.5, sigma)`, or 1 for city-block.
    Returns:
        Kernel: Its field `gamma` is 1 / sigma.
    Example:
        >>> kernel = laplacian(2.0)
        >>> round(kernel_value(kernel, np.array([0.0, 0.0]), np.array([3.0, 4.0])), 6)  # exp(-5 / 2)
        0.082085
    """
    kind = _EXPONENTIAL if _checked_count("norm", norm, 2) == 2 else _CITY_BLOCK
    return Kernel(kind, gamma=1.0 / _as_sigma(sigma))


@_public
def matern(nu, sigma):
    """Matern kernel of smoothness nu, a function of a = sqrt(2 nu) |x - y| / sigma (textbook).

    Args:
        nu: float. 0.5 for exp(-a), 1.5 for (1 + a) exp(-a), or 2.5 for (1 + a + a^2 / 3) exp(-a).
        sigma: float from 1e-150 to 1e150. Bandwidth in the units of the points.
    Returns:
        Kernel: Its field `gamma` is sqrt(2 nu) / sigma.
    Example:
        >>> kernel = matern(1.5, 2.0)
        >>> round(kernel_value(kernel, np.zeros(1), np.array([2.0])), 6)  # (1 + 3^.5) exp(-3^.5)
        0.483358
    """
    kinds = {0.5: _EXPONENTIAL, 1.5: _MATERN_3_2, 2.5: _MATERN_5_2}
    nu = _checked_real("nu", nu)
    _require(nu in kinds, f"nu must be 0.5, 1.5 or 2.5, got {nu}")
    return Kernel(kinds[nu], gamma=math.sqrt(2.0 * nu) / _as_sigma(sigma))


@_public
def rational_quadratic(alpha, sigma):
    """Rational quadratic kernel k(x, y) = (1 + |x - y|^2 / (2 alpha sigma^2))^-alpha (textbook).

    Args:
        alpha: float from 1e-3 to 1e6. Exponent.
        sigma: float from 1e-140 to 1e140. Bandwidth in the units of the points.
    Returns:
        Kernel: Its fields are gamma = 1 / (2 alpha sigma^2) and shape = alpha.
    Example:
        >>> round(kernel_value(rational_quadratic(1.0, 2.0), np.zeros(1), np.array([2.0])), 6)
        0.666667
    """
    alpha = _checked_real("alpha", alpha, 1e-3, 1e6)
    sigma = _checked_real("sigma", sigma, 1e-140, 1e140)
    return Kernel(_RATIONAL, gamma=0.5 / (alpha * sigma * sigma), shape=alpha)


@_public
def cauchy(sigma):
    """Cauchy kernel k(x, y) = 1 / (1 + |x - y|^2 / sigma^2) (textbook).

    Args:
        sigma: float from 1e-150 to 1e150. Bandwidth in the units of the points.
    Returns:
        Kernel: Its field `gamma` is 1 / sigma^2.
    Example:
        >>> round(kernel_value(cauchy(2.0), np.zeros(1), np.array([4.0])), 6)
        0.2
    """
    return Kernel(_CAUCHY, gamma=1.0 / _as_sigma(sigma) ** 2)


@_public
def polynomial(degree, gamma, coef0):
    """Polynomial kernel k(x, y) = (gamma x.y + coef0)^degree (AMS section 5).

    Args:
        degree: int from 1 to 64. Exponent.
        gamma: float, positive. Factor of the inner product.
        coef0: float, at least 0. Constant term. A negative constant could make k indefinite.
    Returns:
        Kernel: Its fields are gamma, shape = degree and offset = coef0.
    Example:
        >>> round(kernel_value(polynomial(2, 1.0, 1.0), np.array([1.0, 2.0]), np.array([3.0, 0.0])), 6)
        16.0
    """
    degree = _checked_count("degree", degree, 64)
    gamma = _checked_real("gamma", gamma, 5e-324)
    offset = _checked_real("coef0", coef0, 0.0)
    return Kernel(_POLYNOMIAL, gamma=gamma, shape=float(degree), offset=offset)


@_public
def linear():
    """Linear kernel k(x, y) = x.y, with which `kpca` is PCA without centering (textbook).

    Returns:
        Kernel: The polynomial kernel of degree 1 with gamma = 1 and coef0 = 0.
    Example:
        >>> kernel_value(linear(), np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        11.0
    """
    return Kernel(_POLYNOMIAL, gamma=1.0, shape=1.0)


@_public
def precomputed(K):
    """A symmetric matrix as a kernel: k(x, y) = K[x, y] for row numbers x and y (AMS section 3).

    Args:
        K: (N, N) array. Finite, and symmetric up to 1e-6 times its largest entry. A C-ordered
            float64 array is not copied: do not change it while a kernel or a model uses it.
    Returns:
        Kernel: Its points are row numbers in an (n, 1) array. For points outside K, see `features`.
    Example:
        >>> K = np.array([[2.0, 1.0], [1.0, 3.0]])
        >>> gram(np.array([[1], [0]]), np.array([[0]]), precomputed(K)).tolist()
        [[1.0], [2.0]]
    """
    K = _in_double(_checked_points("K", K))
    _require(len(K) == K.shape[1], f"K must be square, got shape {K.shape}")
    largest = max(K.max(), -K.min())
    for rows in _slabs(len(K), 128):  # saves memory
        _require(np.abs(K[rows] - K[:, rows].T).max() <= 1e-6 * largest, "K must be symmetric")
    return Kernel(_PRECOMPUTED, table=K)


@_public
def custom(f):
    """Your own symmetric function f(x, y) of two float64 vectors as a kernel (AMS section 6).

    Args:
        f: function compiled with numba.njit. It must be pure, because several threads call it. One
            kernel value costs 7 ns more than f. If f raises, the error is printed and k is 0.
    Returns:
        Kernel: Valid until the process ends. A pickle contains f, and loading compiles f again.
    Example:
        >>> intersection = custom(numba.njit(lambda x, y: np.minimum(x, y).sum()))
        >>> gram(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]), intersection).tolist()
        [[2.0]]
    """
    _require(
        hasattr(f, "py_func") and not f.targetoptions.get("parallel"),
        "f must be a function compiled with numba.njit, without parallel=True: call numba.njit(f)",
    )
    if f not in _custom_kernels:
        vector = types.CPointer(types.float64)
        try:
            by_address = _while_compiling()(cfunc(types.float64(vector, vector, types.intp)))(
                lambda x, y, d: f(carray(x, (d,)), carray(y, (d,)))
            )
        except numba.NumbaError as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(f"f must map two float64 vectors to a number ({reason})") from None
        _custom_kernels.setdefault(f, by_address)  # another thread may have compiled f first
    address = _custom_kernels[f].address
    _functions[address] = f
    return Kernel(_CUSTOM, address=address)


def _require_fitting_points(name, kernel, **points):
    moderate = 1e-37 <= kernel.scale <= 1e37 and (
        kernel.gamma == 0.0 or 1e-30 <= kernel.gamma <= 1e30
    )
    for argument, P in points.items():
        _require(
            not _is_sparse(P) or _KINDS[kernel.kind].base <= _DISTANCES,
            f"{name} must depend on x.y or |x - y| for sparse points: pass dense points",
        )
        _require(
            moderate or P.dtype.itemsize == 8,
            f"{name} must have a gamma from 1e-30 to 1e30 and a scale from 1e-37 to 1e37 for "
            "float32 points: pass points.astype(np.float64)",
        )
        if kernel.kind == _PRECOMPUTED:
            _require(
                P.shape[1] == 1
                and (P == np.floor(P)).all()
                and 0 <= P.min(initial=0) <= P.max(initial=0) < len(kernel.table),
                f"{argument} must have one column of row numbers from 0 to N - 1 for a precomputed "
                "(N, N) kernel: pass np.arange(N)[:, None] for all points",
            )


def _checked_kernel(name, kernel, **points):
    kernel = _checked_as(Kernel, name, kernel)
    _require_fitting_points(name, kernel, **points)
    return kernel


def _points_and_kernel(X, kernel):
    X = _checked_points("X", X)
    return X, _checked_kernel("kernel", kernel, X=X)


@_public
def scaled(kernel, kappa):
    """The kernel times a positive constant: kappa k(x, y) (textbook).

    Args:
        kernel: Kernel.
        kappa: float, positive. Constant factor. Repeated scalings multiply.
    Returns:
        Kernel: The scaled kernel.
    Example:
        >>> kernel_value(scaled(linear(), 0.5), np.array([4.0]), np.array([3.0]))
        6.0
    """
    kernel = _checked_kernel("kernel", kernel)
    scale = kernel.scale * _checked_real("kappa", kappa, 5e-324)
    _require(
        1e-300 <= scale <= 1e300,
        f"kappa times the kernel's scale must be from 1e-300 to 1e300, got {scale}",
    )
    return kernel._replace(scale=scale)


@intrinsic
def _call_kernel(typing, address, x, y):

    def codegen(context, builder, signature, args):
        x, y = _array_arguments(context, builder, signature, args, (1, 2))
        pointer = ir.DoubleType().as_pointer()
        function = ir.FunctionType(ir.DoubleType(), [pointer, pointer, ir.IntType(64)]).as_pointer()
        return builder.call(
            builder.inttoptr(args[0], function), [x.data, y.data, builder.extract_value(x.shape, 0)]
        )

    return types.float64(address, x, y), codegen


# 5.3 Formulas


@_strict_helper
def _apply_kernel(kernel, tile, rows, columns):
    """Replace bases by kernel values in the first rows and columns of a tile. The row after them is
    scratch. In another order of factors, the serial twin overflowed where the parallel did not."""
    _wide_vectors()
    kind = kernel.kind
    number = tile.dtype.type
    one = number(1)
    # Values below exp(-far) become 0, because products of subnormal numbers take 100 times as long.
    far = number(85.0 if tile.itemsize == 4 else 690.0)
    scale = number(kernel.scale)
    gamma = number(kernel.gamma)
    factors = tile[rows]  # an array of its own would cost .2 us per call
    for i in range(rows):
        values = tile[i]
        # A branch replaces bases by v for k(x, y) = scale exp(-rate v) f^degree, and writes the
        # factors f if the degree is not 0. If the rate is 0, k(x, y) = v f^degree.
        rate = number(np.nan)  # checks refuse the NaN of a kind without a branch
        degree = 0
        if kind == _GAUSSIAN or kind == _CITY_BLOCK:
            rate = gamma
        elif kind == _RATIONAL:
            rate = number(kernel.shape)
            for j in range(columns):
                values[j] = _log_one_plus(kernel.gamma, np.float64(values[j]))
        elif kind == _EXPONENTIAL or kind == _MATERN_3_2 or kind == _MATERN_5_2:
            rate = one
            degree = 0 if kind == _EXPONENTIAL else 1
            for j in range(columns):
                a = min(gamma * np.sqrt(values[j]), far)
                values[j] = a
                factors[j] = one + a + number(1 / 3 if kind == _MATERN_5_2 else 0) * (a * a)
        elif kind == _CAUCHY:
            rate = number(0)
            for j in range(columns):
                values[j] = scale * (one / (one + gamma * values[j]))
        elif kind == _POLYNOMIAL:
            rate = number(0)
            degree = np.int64(kernel.shape)
            for j in range(columns):
                factors[j] = gamma * values[j] + number(kernel.offset)
                values[j] = scale
        if rate != 0:
            for j in range(columns):
                a = rate * values[j]
                values[j] = number(0) if a >= far else _exp(-a)
        for _ in range(degree):
            for j in range(columns):
                values[j] *= factors[j]
        # The scale comes last: scale times a^2 may overflow before it is multiplied by exp(-a).
        if rate != 0 and kernel.scale != 1.0:
            for j in range(columns):
                values[j] *= scale


def _checked_stationary(name, kernel, radial=False, **points):
    """Check that a kernel depends only on x - y or, if `radial`, only on the Euclidean distance."""
    kernel = _checked_kernel(name, kernel, **points)
    kind = _KINDS[kernel.kind]
    _require(kind.law, f"{name} must be shift-invariant: use gaussian or matern, for example")
    _require(kind.base == _DISTANCES or not radial, f"{name} must depend on the Euclidean distance")
    return kernel


@_helper
def _pair_value(kernel, x, y):
    if kernel.kind == _CUSTOM:
        value = _call_kernel(kernel.address, x.astype(np.float64), y.astype(np.float64))
        return kernel.scale * value
    return kernel.scale * kernel.table[np.int64(x[0]), np.int64(y[0])]


@_helper
def _pair_sum(base, x, y, zero):
    """The base of x and y (x.y, |x - y|_1 or |x - y|^2) in the precision of the argument `zero`."""
    total = zero
    for t in range(len(x)):
        a = zero + x[t]
        b = zero + y[t]
        if base == _PRODUCTS:
            total += a * b
        else:
            total += abs(a - b) if base == _L1 else (a - b) * (a - b)
    return total


@intrinsic
def _two_numbers(typing):
    return types.CPointer(
        types.float64
    )(), lambda context, builder, signature, args: cgutils.alloca_once(builder, ir.DoubleType(), 2)


@_helper
def _value_of(kernel, x, y):
    """`kernel_value` for compiled code."""
    base = _BASES[kernel.kind]
    if base == _EVERY_PAIR:
        return _pair_value(kernel, x, y)
    tile = carray(_two_numbers(), (2, 1))
    tile[0, 0] = _pair_sum(base, x, y, 0.0)
    _apply_kernel(kernel, tile, 1, 1)
    return tile[0, 0]


_kernel_value = _core_alone(_value_of.py_func)


@_public
def kernel_value(kernel, x, y):
    """k(x, y) for two vectors, also callable from your own `@njit` code (AMS section 2).

    Args:
        kernel: Kernel.
        x: (d,) array. First vector.
        y: (d,) array. Second vector. Compiled code does not check that it is as long as x.
    Returns:
        float: The value, always in float64. As in `gram`, tiny values are 0.
    Example:
        >>> compiled = numba.njit(lambda x, y: kernel_value(kernel, x, y))
        >>> kernel = gaussian(1.0)
        >>> round(compiled(np.zeros(2), np.array([1.0, 1.0])), 6)
        0.367879
    """
    x = _checked_points("x", _as_array("x", x, 1, _DOUBLE)[None])
    y = _checked_points("y", _as_array("y", y, 1, _DOUBLE)[None], x.shape[1])
    return _kernel_value(_checked_kernel("kernel", kernel, x=x, y=y), x[0], y[0])


overload(kernel_value)(lambda kernel, x, y: lambda kernel, x, y: _value_of(kernel, x, y))


# 5.4 Prepared points

_BLOCK = 128  # rows and columns of a tile; a float64 tile takes 128 KB, half of an L2 cache
_WIDE_BLOCK = 4 * _BLOCK  # columns per step: memory reads are 1.8 times faster than with 128
_EXPANDED_BELOW = 16.0
_CENTER_ROWS = 256  # rows whose mean is the center. The mean of all took .04 of a square product.
_SLAB = 64 * _BLOCK  # number of points processed at a time: 64 tasks


_STORED_PRODUCTS = 2**24  # of sparse points at a time: 128 MB. 2^21 to 2^23 are slower (measured).


class _Pairs(NamedTuple):
    """Two point sets, prepared by `_prepare` for the computation of tiles."""

    mode: int  # base of the kernel, or _EXPANDED
    computed: bool  # whether X holds the products or squared distances of sparse points
    X: np.ndarray
    Y: np.ndarray
    x_squares: np.ndarray
    y_squares: np.ndarray
    panels: np.ndarray
    symmetric: bool


@register_jitable
def _ceil_div(a, b):
    return -(-a // b)


@_helper
def _blocks(n):
    return _ceil_div(n, _BLOCK)


@_helper
def _block(index, n):
    first = np.int64(index) * _BLOCK
    return first, min(n, first + _BLOCK)


def _whole_blocks(n):
    return _ceil_div(n, _BLOCK) * _BLOCK


def _pack(Y):
    """Panels in which each point of Y is a column. Zeros pad the last tile."""
    width = _WIDE_PANEL // Y.itemsize
    full, rest = divmod(len(Y), width)
    panels = _new_array((_whole_blocks(len(Y)) // width, Y.shape[1], width), Y.dtype)
    panels[full:] = 0
    points = panels.transpose(0, 2, 1)
    points[:full] = Y[: full * width].reshape(full, width, Y.shape[1])
    if rest:
        points[full, :rest] = Y[full * width :]
    return panels


def _far_means(*sets):
    """Means of the columns of sparse points where they exceed the standard deviation, and else 0.
    Such a column is at least half full, so subtraction at most doubles the entries. If more than
    1/16 of the sum of squares would be left, all are 0: few digits cancel without subtraction."""
    n = sum(X.shape[0] for X in sets)
    d = sets[0].shape[1]
    columns = np.concatenate([X.indices for X in sets])
    values = np.concatenate([X.data for X in sets])
    means = np.bincount(columns, values, d) / n
    squares = np.bincount(columns, values * values, d) / n
    means[2.0 * means * means <= squares] = 0.0
    left = squares.sum() - (means * means).sum()
    return means if _EXPANDED_BELOW * left <= squares.sum() else np.zeros(d)


def _repeated(row, n, like):
    """n equal sparse points with the entries of an array. `like` has the types of the indices."""
    columns = np.flatnonzero(row).astype(like.indices.dtype)
    starts = columns.size * np.arange(n + 1, dtype=like.indptr.dtype)
    return type(like)((np.tile(row[columns], n), np.tile(columns, n), starts), (n, row.size))


def _minus_row(X, row=None):
    """Subtract `row` from each row of X. The default is the mean of all rows or, if X is sparse,
    `_far_means`."""
    if _is_sparse(X):
        row = _far_means(X) if row is None else row
        if not row.any():
            return X
        return X - _repeated(row, X.shape[0], X)
    row = X.mean(0, np.float64) if row is None else row
    return np.subtract(X, row, out=np.empty_like(X), casting="same_kind")


def _squared_norms(X):
    if _is_sparse(X):
        squares = np.square(X.data)  # X.power(2) takes four times as long
        return type(X)((squares, X.indices, X.indptr), X.shape).sum(1)
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def _squares(X):
    """Squared norms of the rows of X. Zeros pad the last tile (np.pad would take 8 us)."""
    squares = np.zeros(_whole_blocks(X.shape[0]), X.dtype)
    squares[: X.shape[0]] = _squared_norms(X)
    return squares


@_helper
def _sparse_distance(x, x_columns, y, y_columns):
    """|x - y|^2 of sparse points, without cancellation: their columns are ascending."""
    p = 0
    q = 0
    total = 0.0
    while p < len(x) or q < len(y):
        if q == len(y) or p < len(x) and x_columns[p] < y_columns[q]:
            gap = x[p]
            p += 1
        elif p == len(x) or y_columns[q] < x_columns[p]:
            gap = y[q]
            q += 1
        else:
            gap = x[p] - y[q]
            p += 1
            q += 1
        total += gap * gap
    return total


def _sizes(X, Y):
    """Squared norms of the points of X and of Y, and the sum of the largest of each."""
    x_squares = _squares(X)
    y_squares = x_squares if Y is X else _squares(Y)
    return x_squares, y_squares, float(x_squares.max()) + float(y_squares.max())


@_core
def _multiply_sparse(data, indices, starts, values, rows, places, x_squares, y_squares, close, out):
    """out[i, j] = x_i.y_j for sparse points: X in compressed rows, Y in compressed columns. If
    `close` is not empty, out[i, j] = |x_i|^2 + |y_j|^2 - 2 x_i.y_j. Then close[i] counts those
    below 1/16 of |x_i|^2 + |y_j|^2, which lose digits."""
    for index in prange(_blocks(len(out))):
        first, last = _block(index, len(out))
        for i in range(first, last):
            row = out[i]
            row[:] = 0
            for p in range(starts[i], starts[i + 1]):
                column = indices[p]
                value = data[p]
                for q in range(places[column], places[column + 1]):
                    row[rows[q]] += value * values[q]
            if len(close):
                count = 0
                for j in range(len(row)):
                    squares = x_squares[i] + y_squares[j]
                    row[j] = squares - 2.0 * row[j]
                    count += _EXPANDED_BELOW * row[j] <= squares
                close[i] = count


@_core
def _square_close(x, x_columns, x_starts, y, y_columns, y_starts, x_squares, y_squares, close, out):
    """Compute the distances that lose digits again, from X and Y in compressed rows."""
    for index in prange(_blocks(len(out))):
        first, last = _block(index, len(out))
        for i in range(first, last):
            for j in range(out.shape[1] if close[i] else 0):
                if _EXPANDED_BELOW * out[i, j] <= x_squares[i] + y_squares[j]:
                    p = slice(x_starts[i], x_starts[i + 1])
                    q = slice(y_starts[j], y_starts[j + 1])
                    out[i, j] = _sparse_distance(x[p], x_columns[p], y[q], y_columns[q])


def _compressed(rows):
    return rows.data, rows.indices, rows.indptr


def _sparse_products(X, Y, distances):
    """Products or squared distances of sparse points. A close pair takes 20 times as long. If most
    pairs are close, the points are far from 0, so the means of such columns are subtracted."""
    out = _new_array((X.shape[0], Y.shape[0]), X.dtype)
    close = np.zeros(X.shape[0] if distances else 0, np.int64)

    def multiply(P, Q):
        squares = _squares(P), _squares(Q)
        columns = _compressed(Q.tocsc())
        work = out.size + 13.0 * len(P.data)  # nanoseconds, measured for 500 rare columns
        _multiply_sparse(work, *_compressed(P), *columns, *squares, close, out)
        return squares

    squares = multiply(X, Y)
    if 2 * close.sum() > out.size:
        means = _far_means(X, Y)
        squares = multiply(_minus_row(X, means), _minus_row(Y, means))
    if close.any():
        work = 200.0 * close.sum()
        _square_close(work, *_compressed(X), *_compressed(Y), *squares, close, out)
    return out


def _require_symmetric(kernel, X):
    """Refuse a custom kernel that is not symmetric at some points."""
    for x in X[:: _ceil_div(len(X), 4)]:
        value = _kernel_value(kernel, x, X[-1])
        gap = abs(value - _kernel_value(kernel, X[-1], x))
        _require(not gap > 1e-6 * abs(value), "kernel must be symmetric: k(x, y) = k(y, x)")


def _expanded(steepness, X, Y, symmetric):
    """Point sets for mode _EXPANDED, or None if its error would be too large. It computes |x - y|^2
    as |x|^2 + |y|^2 - 2 x.y in half the time. The relative error of k is a few ulp times
    c = steepness (|x|^2 + |y|^2). This mode requires c <= 16, d >= 16 and n > 8. Points are centered
    on the mean m of some rows of Y, unless |m| is at most half of the largest |y|. Then centering
    would at most halve the largest norms, and a copy of X may take as long as 100 products a row."""
    if steepness == math.inf or X.shape[1] < 16 or len(X) <= 8 or len(Y) == 0:
        return None
    center = Y[:: _ceil_div(len(Y), _CENTER_ROWS)].mean(0, np.float64)
    x_squares, y_squares, largest = _sizes(X, Y)
    if 4.0 * (center @ center) > y_squares.max() or steepness * largest > _EXPANDED_BELOW:
        Y = _minus_row(Y, center)
        X = Y if symmetric else _minus_row(X, center)
        x_squares, y_squares, largest = _sizes(X, Y)
    if steepness * largest > _EXPANDED_BELOW:
        return None
    return _Pairs(_EXPANDED, False, X, Y, x_squares, y_squares, _pack(Y), symmetric)


def _prepare(kernel, X, Y, symmetric):
    """Choose the mode of the tiles, and prepare both point sets. For sparse points, products or
    squared distances stand in place of X. Distances are expanded if |x|^2 + |y|^2 < 16 |x - y|^2,
    which has a relative error of a few times 16 ulp."""
    kind = _KINDS[kernel.kind]
    _require(_is_sparse(X) == _is_sparse(Y), "sparse and dense points must not be mixed")
    if _is_sparse(X):
        products = _sparse_products(X, Y, kind.base == _DISTANCES)
        nothing = np.empty((Y.shape[0], 0))
        none = np.empty(0)
        return _Pairs(kind.base, True, products, nothing, none, none, _pack(nothing), symmetric)
    if kind.base == _EVERY_PAIR and symmetric:
        _require_symmetric(kernel, X)
    pairs = _expanded(kind.steepness(kernel), X, Y, symmetric)
    if pairs is None:
        none = np.empty(0, X.dtype)
        pairs = _Pairs(kind.base, False, X, Y, none, none, _pack(Y), symmetric)
    return pairs


def _slabs_of(X, m):
    """All rows of X or, if it is sparse, slabs of rows whose products with m points can be stored."""
    most = _STORED_PRODUCTS // max(m, 1) if _is_sparse(X) else X.shape[0]
    return _slabs(X.shape[0], max(most, _BLOCK))


# 5.5 Tiles


@_helper
def _new_tile(like):
    """Buffer for a tile and a row of scratch. Padding spreads columns over cache sets."""
    return _aligned((_BLOCK + 1, _BLOCK + 64 // like.itemsize), like)


@_helper
def _fill_pairs(kernel, pairs, first, last, begin, end, tile):
    for i in range(first, last):
        for j in range(begin, end):
            tile[i - first, j - begin] = _pair_value(kernel, pairs.X[i], pairs.Y[j])


@_helper
def _copy_computed(pairs, first, last, begin, end, tile):
    for i in range(first, last):
        for c in range(end - begin):
            tile[i - first, c] = pairs.X[i, begin + c]


@_helper
def _fill_bases(pairs, first, last, begin, columns, tile):
    """Write x.y, |x - y|^2 or |x - y|_1, by the mode. In mode _EXPANDED, x.y."""
    X = pairs.X
    n, d = X.shape
    width = pairs.panels.shape[2]
    for c in range(0, columns, width):
        panel = pairs.panels[(begin + c) // width]
        for r in range(0, last - first, 4):
            if pairs.mode == _DISTANCES:
                _squared_distances(X, first + r, n - 1, 0, d, panel, tile, r, c)
            elif pairs.mode == _L1:
                _l1_distances(X, first + r, n - 1, 0, d, panel, tile, r, c)
            else:
                _inner_products(X, first + r, n - 1, 0, d, panel, tile, r, c)


@_helper
def _expand_squares(pairs, first, last, begin, end, columns, tile):
    """Replace x.y by |x - y|^2 = |x|^2 + |y|^2 - 2 x.y."""
    zero = tile.dtype.type(0)
    two = tile.dtype.type(2)
    y_squares = pairs.y_squares[begin : begin + _BLOCK]
    for i in range(first, last):
        values = tile[i - first]
        x_square = pairs.x_squares[i]
        for c in range(columns):
            square = x_square + y_squares[c] - two * values[c]
            values[c] = square if square > zero else zero
        if pairs.symmetric and begin <= i < end:
            values[i - begin] = zero


@_helper
def _fill_tile(kernel, pairs, first, last, begin, end, tile):
    """tile[r, c] = k(x_{first + r}, y_{begin + c}) for first + r < last and begin + c < end."""
    if pairs.mode == _EVERY_PAIR:
        _fill_pairs(kernel, pairs, first, last, begin, end, tile)
        return
    width = pairs.panels.shape[2]
    columns = _ceil_div(end - begin, width) * width  # 20 landmarks: .3 of the time of 128
    if pairs.computed:
        _copy_computed(pairs, first, last, begin, end, tile)
    else:
        _fill_bases(pairs, first, last, begin, columns, tile)
    if pairs.mode == _EXPANDED:
        _expand_squares(pairs, first, last, begin, end, columns, tile)
    _apply_kernel(kernel, tile, last - first, columns)


def _tile_work(kernel, pairs, more):
    """Nanoseconds to compute all tiles and use their values, at `more` nanoseconds per value."""
    d = pairs.Y.shape[1]  # 0 for sparse points, whose products are computed
    each = _CUSTOM_VALUE if kernel.kind == _CUSTOM else 1.0 + _MULTIPLY_ADD * d
    return (0.5 if pairs.symmetric else 1.0) * len(pairs.X) * len(pairs.Y) * (each + more)


def _tile_places(P, Q, symmetric, tall=_BLOCK, wide=_BLOCK):
    """(tiles, 2) array: block row and block column of each tile (upper half if symmetric)."""
    tiles = np.ones((_ceil_div(P.shape[0], tall), _ceil_div(Q.shape[0], wide)))
    return np.stack(np.nonzero(np.triu(tiles) if symmetric else tiles), axis=1)


@_helper
def _tile_place(places, t, X, Y):
    first, last = _block(places[t, 0], len(X))
    begin, end = _block(places[t, 1], len(Y))
    return first, last, begin, end


# 5.6 Gram matrices


@_core
def _fill_gram(kernel, pairs, places, out):
    """Write the Gram matrix, four tiles per task. If symmetric, only the upper half is computed."""
    for index in prange(_ceil_div(len(places), 4)):
        _wide_vectors()
        group = np.int64(index)
        tile = _new_tile(out)
        for t in range(4 * group, min(len(places), 4 * group + 4)):
            first, last, begin, end = _tile_place(places, t, pairs.X, pairs.Y)
            _fill_tile(kernel, pairs, first, last, begin, end, tile)
            for i in range(first, last):
                row = out[i, begin:end]
                values = tile[i - first]
                for j in range(end - begin):
                    row[j] = values[j]
            # Mirror images. Halves of diagonal tiles differ by rounding errors.
            for c in range(begin, end if pairs.symmetric else begin, 8):
                stop = min(end, c + 8)  # eight rows at once take half the time
                for i in range(first, min(last, stop)):
                    for j in range(max(c, i + 1), stop):
                        out[j, i] = tile[i - first, j - begin]


def _gram(kernel, X, Y=None, out=None):
    """Gram matrix of X and Y or, in half the time, of X and X."""
    symmetric = Y is None
    Y = X if symmetric else Y
    out = _new_array((X.shape[0], Y.shape[0]), X.dtype) if out is None else out
    slabs = _slabs_of(X, Y.shape[0])
    if len(slabs) > 1:
        for rows in slabs:
            _gram(kernel, X[rows], Y, out[rows])
        return out
    pairs = _prepare(kernel, X, Y, symmetric)
    places = _tile_places(X, Y, symmetric)
    _fill_gram(_tile_work(kernel, pairs, 3.0), kernel, pairs, places, out)  # 3 ns per write
    return out


@_core_alone
def _call_diagonal(X, kernel, out):
    for i in range(len(X)):
        out[i] = _value_of(kernel, X[i], X[i])


def _diagonal(X, kernel):
    out = np.full(X.shape[0], kernel.scale)
    if kernel.kind == _POLYNOMIAL:
        squares = _squared_norms(X)
        for _ in range(int(kernel.shape)):  # `_apply_kernel` has the same order of factors
            out *= kernel.gamma * squares + kernel.offset
    elif not _has_formula(kernel):
        _call_diagonal(X, kernel, out)
    return out.astype(X.dtype, copy=False)


def _value_limit(kernel, *sets):
    """Upper bound on abs(k(x, y)) in these sets (Cauchy-Schwarz), or infinity if none is known."""
    if _has_formula(kernel):
        return max(float(_diagonal(X, kernel).max()) for X in sets)
    return math.inf


@_public(sparse=True)
def gram(X, Y, kernel, *, out=None):
    """Gram matrix K_ij = k(x_i, y_j) (AMS section 2).

    Args:
        X: (n, d) array, or scipy sparse matrix as in `kpca`. Points.
        Y: (m, d) array, sparse if X is. Passing X itself halves the work and makes K symmetric.
        kernel: Kernel.
        out: (n, m) array, or None. Array of the result's dtype to write the result to. It must not
            overlap X, Y or the table of a precomputed kernel. If values overflow, it is undefined.
    Returns:
        array: (n, m), float32 if X and Y are float32 and dense, else float64. Exact up to rounding.
            Values below 1e-300 (float32: 1e-37) times the largest possible value are 0.
    Example:
        >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
        >>> gram(X, X, gaussian(1.0)).round(4).tolist()
        [[1.0, 0.3679], [0.3679, 1.0]]
    """
    P, Q = _in_common_precision(*_checked_two(X, "Y", Y))
    kernel = _checked_kernel("kernel", kernel, X=P, Y=Q)
    out = _checked_out("Y", out, (P.shape[0], Q.shape[0]), P.dtype, (X, P, Y, Q, kernel))
    _gram(kernel, P, None if X is Y else Q, out)
    finite = _value_limit(kernel, P, Q) < (1e38 if P.dtype.itemsize == 4 else 1e308) or _all_below(
        out
    )
    _require(finite, "kernel values on X and Y must be finite in the precision of X and Y")
    return out


@_public(sparse=True)
def gram_diagonal(X, kernel):
    """Diagonal of the Gram matrix, k(x_i, x_i) (AMS section 2).

    Args:
        X, kernel: See `gram`.
    Returns:
        array: (n,), in the precision of X.
    Example:
        >>> gram_diagonal(np.array([[1.0, 2.0], [0.0, 3.0]]), linear()).tolist()
        [5.0, 9.0]
    """
    diagonal = _diagonal(*_points_and_kernel(X, kernel))
    _require_finite("kernel values on X", diagonal)
    return diagonal


# 5.7 Products
# Products with up to 4 vectors are plain loops along rows. Others use the micro-kernel on panels of
# vectors. Sums of a few thousand terms have the precision of the data. Slots add them in float64.


@_core
def _pack_columns(F, panels):
    """Copy F to zero-padded panels of columns. Tiles of F itself are half as fast."""
    for index in prange(_blocks(panels.shape[1])):
        count, rows, width = panels.shape
        first, last = _block(index, rows)
        for t in range(first, last):
            for q in range(count):
                row = panels[q, t]
                source = F[t, q * width :]
                inside = min(width, F.shape[1] - q * width)
                for c in range(inside):
                    row[c] = source[c]
                for c in range(inside, width):
                    row[c] = 0


def _column_panels(V, width):
    """V in panels of `width` columns, padded with zeros. All threads copy a large V."""
    panels = _new_array((_ceil_div(V.shape[1], width), len(V), width), V.dtype)
    _pack_columns(1.0 * panels.size, V, panels)
    return panels


def _packed_vectors(V):
    """Pack V (m, p) for `_multiply_add`: V^T if p <= 4, else panels."""
    if V.shape[1] <= 4:
        return np.ascontiguousarray(V.T)[None]
    return _column_panels(V, _NARROW_PANEL // V.itemsize)


def _padded_width(p, like):
    """Number of columns of a buffer for the output of `_multiply_add`."""
    width = _NARROW_PANEL // like.itemsize
    return p if p <= 4 else _ceil_div(p, width) * width


@_helper
def _multiply_add(A, first, last, start, stop, panels, row, out):
    """out[:last - first] += A[first:last, start:stop] V[row:row + stop - start] for packed V."""
    p = out.shape[1]
    if p <= 4:
        for i in range(first, last):
            for q in range(p):
                a = A[i, start:stop]
                v = panels[0, q, row : row + stop - start]
                total = v.dtype.type(0)
                for j in range(len(a)):
                    total += a[j] * v[j]
                out[i - first, q] += total
        return
    end = len(A) - 1
    for r in range(0, last - first, _PRODUCT_ROWS):
        for c in range(len(panels)):
            panel = panels[c, row : row + stop - start]
            _add_product(A, first + r, end, start, stop, panel, out, r, c * panels.shape[2])


@_helper
def _multiply_add_transposed(A, first, last, m, panels, row, out):
    """out[:m] += A[first:last, :m]^T V[row:row + last - first]."""
    p = out.shape[1]
    if p <= 4:
        for i in range(first, last):
            a = A[i, :m]
            for q in range(p):
                v = panels[0, q, row + i - first]
                for j in range(len(a)):
                    out[j, q] += a[j] * v
        return
    end = A.shape[1] - 1
    for c in range(len(panels)):
        panel = panels[c, row : row + last - first]
        column = c * panels.shape[2]
        for r in range(0, m, _PRODUCT_ROWS):
            _add_transposed_product(A, r, end, first, last, panel, out, r, column)


def _sum_of_slots(slots, n, V):
    """Sum of the slots in order and in float64, cut to n rows and the columns of V, in its type."""
    total = slots[0] if len(slots) == 1 else slots.sum(0, np.float64)
    return np.ascontiguousarray(total[:n, : V.shape[1]], V.dtype)


@_helper
def _add_block(product, rows, out, first):
    for r in range(rows):
        for q in range(out.shape[1]):
            out[first + r, q] += product[r, q]


@_core
def _add_tiles(kernel, pairs, tasks, tall, wide, panels, slots):
    """Task (a, b) has the tiles in run a of `tall` rows and run b of `wide` columns. It adds their
    products to the rows of a in slot b and, if symmetric, to the rows of b in slot a."""
    for index in prange(len(tasks)):
        _wide_vectors()
        task = np.int64(index)
        a = tasks[task, 0]
        b = tasks[task, 1]
        tile = _new_tile(panels)
        product = _aligned((_BLOCK, slots.shape[2]), panels)
        for first in range(a * tall, min(len(pairs.X), a * tall + tall), _BLOCK):
            n = min(len(pairs.X) - first, _BLOCK)
            for begin in range(b * wide, min(len(pairs.Y), b * wide + wide), _BLOCK):
                if pairs.symmetric and begin < first:
                    continue
                m = min(len(pairs.Y) - begin, _BLOCK)
                _fill_tile(kernel, pairs, first, first + n, begin, begin + m, tile)
                product[:] = 0
                _multiply_add(tile, 0, n, 0, m, panels, begin, product)
                _add_block(product, n, slots[b], first)
                if pairs.symmetric and begin > first:
                    product[:] = 0
                    _multiply_add_transposed(tile, 0, n, m, panels, first, product)
                    _add_block(product, m, slots[a], begin)


def _gram_product(kernel, X, Y, V, symmetric=False):
    """Gram matrix times V, never formed. If `symmetric` (Y is X), most tiles are used twice."""
    n = X.shape[0]
    slabs = _slabs_of(X, Y.shape[0])
    if len(slabs) > 1:
        return np.vstack([_gram_product(kernel, X[rows], Y, V) for rows in slabs])
    V = V.astype(X.dtype, copy=False)
    padded = _padded_width(V.shape[1], V)
    symmetric = symmetric and n * padded <= 2**20
    segments = max(1, 64 // _ceil_div(n, _BLOCK))  # about 64 tasks for few rows
    tall = _BLOCK
    wide = _whole_blocks(max(1, _ceil_div(Y.shape[0], segments)))
    if symmetric:  # at most 15 runs of rows: 120 tasks
        tall = wide = _whole_blocks(_ceil_div(n, 15))
    pairs = _prepare(kernel, X, Y, symmetric)
    tasks = _tile_places(X, Y, symmetric, tall, wide)
    slots = np.zeros((_ceil_div(Y.shape[0], wide), _whole_blocks(n), padded))
    work = _tile_work(kernel, pairs, (1 + symmetric) * _MULTIPLY_ADD * padded)
    _add_tiles(work, kernel, pairs, tasks, tall, wide, _packed_vectors(V), slots)
    return _sum_of_slots(slots, n, V)


@_public(sparse=True)
def gram_matmat(X, Y, V, kernel, *, out=None):
    """Gram matrix times vectors, (K V)_iq = sum_j k(x_i, y_j) V_jq, without forming K.
    This is step 2a of AMS section 2. It costs O(n m (d + p)) time.

    Args:
        X: (n, d) array or scipy sparse matrix. Points.
        Y: (m, d) array. Points. Passing X itself needs half as many kernel values if n p <= 2^20.
        V: (m, p) array. Vectors, converted to the precision of the points.
        kernel, out: See `gram`. The shape of out is (n, p).
    Returns:
        array: (n, p), float32 if X and Y are float32, else float64.
    Example:
        >>> X = np.array([[1.0], [2.0]])
        >>> gram_matmat(X, X, np.array([[1.0], [1.0]]), linear()).tolist()
        [[3.0], [6.0]]
    """
    P, Q = _in_common_precision(*_checked_two(X, "Y", Y))
    V = _checked_points("V", V, rows=Q.shape[0])
    kernel = _checked_kernel("kernel", kernel, X=P, Y=Q)
    out = _checked_out("V", out, (P.shape[0], V.shape[1]), P.dtype, (X, Y, V, kernel))
    product = _gram_product(kernel, P, Q, V, P is Q)
    _require(_all_below(product), "kernel values on X and Y must be finite, and so must K V")
    out[:] = product
    return out


# --------------------------------------------------------------------------------------------------
# 6. Operators
#
# An operator is a symmetric n x n matrix in its cheapest form: a dense array, a csr_array, a tuple of
# 6.1, or a function for products. `_OPERATORS` lists the functions of each form. Eigensolvers and
# error functions use only these.

# 6.1 Forms

_OPERATORS = {}  # class, or "csr": its functions (6.4)


def _form_of(A):
    return _OPERATORS.get(type(A), _OPERATORS["csr"])


def _size(A):
    return _form_of(A).size(A)


def _product(A, V):
    return _form_of(A).product(A, V)


def _rows(A, first, last):
    return _form_of(A).rows(A, first, last)


def _trace(A):
    return float(_form_of(A).trace(A))


@_validated(
    "Bits with n at least 1 and uint32 words of shape (ceil(n / 32), n)",
    lambda made: made.n > 0 and made.words.shape == (_ceil_div(made.n, 32), made.n),
    words="bits",
)
class Bits(NamedTuple):
    """n x n matrix: entry (32 c + r, j) is +scale if bit r of words[c, j] is set, else -scale."""

    words: np.ndarray
    scale: float
    n: int


@_validated("an Implicit", X="finite")
class Implicit(NamedTuple):
    """The Gram matrix of X (n, d), evaluated in each product and never stored."""

    X: np.ndarray
    kernel: Kernel


@_validated("a LowRank of an array", lambda made: not _is_sparse(made.F), F="finite")
class LowRank(NamedTuple):
    """F F^T for a factor F (n, r)."""

    F: np.ndarray


@_validated("a difference of same-size operators", lambda made: _size(made.A) == _size(made.B))
class _Difference(NamedTuple):
    """A - B for two operators, never formed."""

    A: tuple
    B: tuple


@_validated("a Centered", lambda made: made.means.size == _size(made.A), means=1)
class Centered(NamedTuple):
    """H A H with H = I - 1 1^T / n, and the row means (n,) of A. Returned by `center`."""

    A: tuple
    means: np.ndarray


# 6.2 Products with arrays
# Products of fewer than 2^18 multiply-adds use BLAS on one thread. In larger ones, the number of
# BLAS threads would change the bits. The threads would also spin for 25 ms and slow the next core.
_BLAS_BELOW = 2**18
_DEPTH = 2 * _BLOCK  # rows that a tile adds between two loads of its sums
_PARTIAL_SUM_ROWS = 8 * _DEPTH  # longer sums are added in float64


@_core
def _add_rows(A, m, panels, tasks, slots):
    """slots[s] += A[rows, columns] V[columns] for each block of rows and segment s of columns."""
    for index in prange(tasks):
        _wide_vectors()
        task = np.int64(index)
        segments = len(slots)
        columns = _ceil_div(m, _WIDE_BLOCK)
        first = task // segments * _BLOCK
        slot = task % segments
        last = min(len(A), first + _BLOCK)
        product = _aligned((_BLOCK, slots.shape[2]), panels)
        for b in range(slot * columns // segments, (slot + 1) * columns // segments):
            product[:] = 0
            begin = b * _WIDE_BLOCK
            end = min(m, begin + _WIDE_BLOCK)
            _multiply_add(A, first, last, begin, end, panels, begin, product)
            _add_block(product, last - first, slots[slot], first)


def _dense_product(A, V):
    """A[:, :m] V for V with m rows."""
    n = len(A)
    m, p = V.shape
    V = np.ascontiguousarray(V, A.dtype)
    if n * V.size < _BLAS_BELOW:
        return A[:, :m] @ V
    rows = _ceil_div(n, _BLOCK)
    wide = _padded_width(p, V)
    segments = max(1, min(_ceil_div(m, _WIDE_BLOCK), 64 // rows))  # about 64 tasks for few rows
    slots = np.zeros((segments, _whole_blocks(n), wide))
    panels = _packed_vectors(V)
    _add_rows(_MULTIPLY_ADD * n * m * max(wide, 6), A, m, panels, rows * segments, slots)
    return _sum_of_slots(slots, n, V)


@_core
def _add_columns(U, m, panels, slots):
    """slots[part] += U[rows, :m]^T V[rows] for each run of rows."""
    for index in prange(len(slots)):
        _wide_vectors()
        part = np.int64(index)
        parts = len(slots)
        blocks = _blocks(len(U))
        for b in range(part * blocks // parts, (part + 1) * blocks // parts):
            first, last = _block(b, len(U))
            _multiply_add_transposed(U, first, last, m, panels, first, slots[part])


def _transposed_product(U, V, m=None):
    """U[:, :m]^T V, or U^T V: products of runs of rows are computed, and added in order."""
    m = m or U.shape[1]
    if m * V.size < _BLAS_BELOW:
        return U[:, :m].T @ V
    rows = _ceil_div(m, _PRODUCT_ROWS) * _PRODUCT_ROWS
    wide = _padded_width(V.shape[1], V)
    needed = len(U) // _PARTIAL_SUM_ROWS * (V.itemsize == 4)  # longer float32 sums lose digits
    runs = max(needed, min(64, _ceil_div(len(U), _BLOCK)))
    slots = np.zeros((runs, rows, wide), V.dtype)
    work = len(U) * (_MULTIPLY_ADD * m * max(wide, 4) + 5.0)
    _add_columns(work, U, m, _packed_vectors(V), slots)
    return _sum_of_slots(slots, m, V)


@_core
def _add_panel_products(left, right, places, out):
    """Add left^T right to the tiles of `out` listed in `places`. Factors are panels of columns."""
    for index in prange(len(places)):
        _wide_vectors()
        t = np.int64(index)
        rows = left.shape[1]
        width = left.shape[2]
        tile = _new_tile(left)
        first, last, begin, end = _tile_place(places, t, out, out.T)
        tile[:] = 0
        for deep in range(0, rows, _DEPTH):
            stop = min(rows, deep + _DEPTH)
            for q in range(begin // width, _ceil_div(end, width)):
                panel = right[q, deep:stop]
                c = q * width - begin
                for row in range(first, last, 4):
                    A = left[row // width]
                    _add_transposed_panel(
                        A, row % width, width - 1, deep, stop, panel, tile, row - first, c
                    )
        for i in range(first, last):
            for j in range(begin, end):
                out[i, j] += tile[i - first, j - begin]


def _column_products(F, G):
    """F^T G in float64. A large product sums up to 2048 rows in the precision of the factors."""
    if F.size * G.shape[1] < _BLAS_BELOW:
        return np.matmul(F.T, G, dtype=np.float64)
    out = np.zeros((F.shape[1], G.shape[1]))
    width = _WIDE_PANEL // F.itemsize
    symmetric = F is G
    places = _tile_places(out, out.T, symmetric)
    for rows in _slabs(len(F), _PARTIAL_SUM_ROWS):
        left = _column_panels(F[rows], width)
        right = left if symmetric else _column_panels(G[rows], width)
        work = _MULTIPLY_ADD * len(out) * right.size * (0.6 if symmetric else 1.0)
        _add_panel_products(work, left, right, places, out)
    return np.triu(out) + np.triu(out, 1).T if symmetric else out


# 6.3 Products with sparse matrices and with bits, and helpers for columns


def _row64(context, builder, dtype, array, row, store=None):
    """Load or store a row of 64 bytes. LLVM would compile a loop to scalar code, 3 times slower."""
    itemsize = dtype.bitwidth // 8
    lanes = 64 // itemsize
    vector = ir.VectorType(context.get_value_type(dtype), lanes)
    place = builder.gep(array.data, [builder.mul(row, ir.IntType(64)(lanes))])
    place = builder.bitcast(place, vector.as_pointer())
    if store is None:
        return builder.load(place, align=itemsize)
    return builder.store(store, place, align=itemsize)


@intrinsic
def _combine_rows(typing, out, row, i, factor, b, j):
    """out[row] = out[i] + factor b[j], for rows of 64 bytes."""

    def codegen(context, builder, signature, args):
        out, b = _array_arguments(context, builder, signature, args, (0, 4))
        dtype = signature.args[0].dtype
        first = _row64(context, builder, dtype, out, args[2])
        second = _row64(context, builder, dtype, b, args[5])
        factor = _broadcast(builder, args[3], second.type)
        product = builder.fmul(factor, second, flags=("contract",))
        total = builder.fadd(first, product, flags=("contract",))
        _row64(context, builder, dtype, out, args[1], store=total)
        return context.get_dummy_value()

    return types.void(out, types.int64, types.int64, out.dtype, b, types.int64), codegen


@_core
def _multiply_rows(data, indices, indptr, panels, out):
    """Multiply compressed rows by one column, or by panels with rows of 64 bytes. Four sums take turns,
    because an addition to a sum waits 3.5 ns for the previous addition to that sum."""
    for index in prange(_blocks(len(out))):
        _wide_vectors()
        first_row, last_row = _block(index, len(out))
        lanes = panels.shape[2]
        total = _aligned((4, lanes), panels)
        only = panels.reshape(panels.size)
        for i in range(first_row, last_row):
            begin = indptr[i]
            end = indptr[i + 1]
            if lanes == 1:
                values = data[begin:end]
                columns = indices[begin:end]
                sum_of_row = out.dtype.type(0)
                for q in range(len(values)):
                    sum_of_row += values[q] * only[np.uint64(columns[q])]  # unsigned: no sign check
                out[i, 0] = sum_of_row
            for group in range(len(panels) if lanes > 1 else 0):
                V = panels[group]
                whole = begin + (end - begin) // 4 * 4
                total[:] = 0
                for q in range(begin, whole, 4):
                    for t in range(4):
                        _combine_rows(total, t, t, data[q + t], V, indices[q + t])
                for q in range(whole, end):
                    _combine_rows(total, 0, 0, data[q], V, indices[q])
                for c in range(min(lanes, out.shape[1] - group * lanes)):
                    first = total[0, c] + total[1, c]
                    out[i, group * lanes + c] = first + (total[2, c] + total[3, c])


def _csr_product(A, V):
    V = V.astype(A.data.dtype, copy=False)
    alone = V.shape[1] == 1
    panels = np.ascontiguousarray(V)[None] if alone else _column_panels(V, 64 // V.itemsize)
    out = _new_array(V.shape, V.dtype)
    _multiply_rows(1.5 * len(panels) * A.data.size, *_compressed(A), panels, out)
    return out


# A word has five parts of 7, 7, 6, 6 and 6 bits: (shift, mask). Their tables take 28 KB, which fits
# into an L1 cache. (Four tables for bytes are slower.) Table q begins at row 128 q.
_PARTS = ((0, 127), (7, 127), (14, 63), (20, 63), (26, 63))


@intrinsic
def _add_table_rows(typing, total, row, table, word):

    def codegen(context, builder, signature, args):
        total, table = _array_arguments(context, builder, signature, args, (0, 2))
        dtype = signature.args[0].dtype
        number = ir.IntType(64)
        found = []
        for q, (shift, mask) in enumerate(_PARTS):
            part = builder.and_(builder.lshr(args[3], number(shift)), number(mask))
            at = builder.add(part, number(128 * q))
            found.append(_row64(context, builder, dtype, table, at))
        v, w, x, y, z = found
        addend = builder.fadd(builder.fadd(v, w), builder.fadd(builder.fadd(x, y), z))
        old = _row64(context, builder, dtype, total, args[1])
        _row64(context, builder, dtype, total, args[1], store=builder.fadd(old, addend))
        return context.get_dummy_value()

    return types.void(total, types.uint64, table, types.uint64), codegen


@_helper
def _fill_tables(V, start, table):
    """table[128 q + e] = sum over part q's bits of +-V[start + bit]: + if the bit is set in e."""
    for q in range(5):
        base = 128 * q
        begin = start + 6 * q + min(q, 2)
        stop = begin + (7 if q < 2 else 6)
        table[base] = 0
        for row in range(begin, stop):
            _combine_rows(table, base, base, V.dtype.type(-1), V, row)
        size = 1
        for row in range(begin, stop):  # setting one more bit turns one -v into +v
            for e in range(base, base + size):
                _combine_rows(table, e + size, e, V.dtype.type(2), V, row)
            size *= 2


@_core
def _multiply_bits(words, scale, panels, tasks, out):
    """Multiply Bits by V (AMS section 3). Five table look-ups replace 32 multiply-adds. A task has
    one panel of V and 2048 rows, which amortizes the cost of filling the tables."""
    for index in prange(tasks):
        _wide_vectors()
        rows = 2048
        task = np.int64(index)
        groups, _, lanes = panels.shape
        first = task // groups * rows
        group = task % groups
        last = min(len(out), first + rows)
        table = _aligned((640, lanes), panels)
        total = _aligned((rows, lanes), panels)
        total[:] = 0
        for chunk in range(len(words)):
            _fill_tables(panels[group], 32 * chunk, table)
            row = words[chunk, first:last]  # i starts at 0: no sign check, 1.5 times as fast
            for i in range(len(row)):
                _add_table_rows(total, np.uint64(i), table, np.uint64(row[i]))
        for i in range(first, last):
            for q in range(min(lanes, out.shape[1] - group * lanes)):
                out[i, group * lanes + q] = scale * total[i - first, q]


def _bits_product(A, V):
    out = _new_array(V.shape, V.dtype)
    V = np.pad(V, ((0, -A.n % 32), (0, 0)))
    panels = _column_panels(V, 64 // V.itemsize)
    tasks = _ceil_div(A.n, 2048) * len(panels)
    _multiply_bits(2.0 * A.words.size * len(panels), A.words, A.scale, panels, tasks, out)
    return out


def _unit_of(values, axis=None):
    """The largest magnitude (along an axis, if given), or 1 if all are 0: a safe divisor."""
    largest = np.abs(values).max(axis, initial=0.0)
    return largest + (largest == 0.0)


def _largest_column(W):
    unit = _unit_of(W)
    V = W / unit
    # Measured: np.square(V).sum(0) takes six times as long.
    return unit * math.sqrt(np.einsum("ij,ij->j", V, V).max())


def _fix_signs(vectors, by=None):
    """Columns with signs that make the entry of largest magnitude (of `by`, if given) positive."""
    by = vectors if by is None else by
    largest = by[np.abs(by).argmax(0), np.arange(by.shape[1])]
    return vectors * np.where(largest < 0.0, -1.0, 1.0)


def _over_roots(vectors, values, floor):
    kept = values > floor
    return np.where(kept, vectors / np.sqrt(np.where(kept, values, 1.0)), 0.0)


# 6.4 Functions of each form


def _bits_at(A, i, j):
    return np.where(A.words[i // 32, j] >> i % 32 & 1, A.scale, -A.scale)


def _csr_rows(A, first, last):
    """Dense rows first to last - 1. Entries at the same place are added."""
    n = A.shape[1]
    entries = slice(A.indptr[first], A.indptr[last])
    rows = np.repeat(np.arange(last - first), np.diff(A.indptr[first : last + 1]))
    places = rows * n + A.indices[entries]
    return np.bincount(places, A.data[entries], (last - first) * n).reshape(-1, n)


def _csr_trace(A):
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    return A.data[rows == A.indices].sum(dtype=np.float64)


@dataclasses.dataclass
class _ByProducts:
    """A symmetric operator with n rows, given by the caller's function `matmat` for V -> A V."""

    name: str
    matmat: object
    n: int
    precision: float = None
    symmetric: bool = None

    def product(self, V):
        with _users_blas():
            R = self.matmat(V.copy())
        product = f"{self.name}.matmat(V)"
        R = _as_array(product, R, 2)
        _require(R.shape == V.shape, f"{product} must have V's shape {V.shape}, got {R.shape}")
        _require_finite(product, R)
        W = np.array(R, np.float64)
        self.precision = np.finfo(R.dtype).eps.item()
        if self.symmetric is None and V.shape[1] > 1:  # the test admits half precision
            G = _transposed_product(V, W)
            gap = np.abs(G - G.T).max()
            self.symmetric = bool(gap <= 1e-3 * _largest_column(V) * _largest_column(W))
        _require(self.symmetric in (None, True), f"{self.name} must be symmetric")
        return W

    def rows(self, first, last):
        """Products with unit vectors are columns, which are rows."""
        return self.product(np.eye(self.n, last - first, -first)).T

    def trace(self):
        ends = [*range(0, self.n, _BLOCK), self.n]
        return sum(self.rows(first, last).trace(first) for first, last in itertools.pairwise(ends))


class _Form(NamedTuple):
    size: object  # (A): number of rows
    product: object  # (A, V): A V in the operator's precision (Bits: in V's)
    rows: object = None  # (A, first, last): rows first to last - 1, in float64
    trace: object = None  # (A): sum of the diagonal
    at: object = None  # (A, i, j): entries, to test the symmetry of A


_OPERATORS |= {
    np.ndarray: _Form(
        len,
        _dense_product,
        lambda A, first, last: A[first:last].astype(np.float64),
        lambda A: A.trace(dtype=np.float64),
        lambda A, i, j: A[i, j],
    ),
    "csr": _Form(lambda A: A.shape[0], _csr_product, _csr_rows, _csr_trace),
    Bits: _Form(
        lambda A: A.n,
        _bits_product,
        lambda A, first, last: _bits_at(A, np.arange(first, last)[:, None], np.arange(A.n)),
        lambda A: _bits_at(A, np.arange(A.n), np.arange(A.n)).sum(),
        _bits_at,
    ),
    Implicit: _Form(
        lambda A: A.X.shape[0],
        lambda A, V: _gram_product(A.kernel, A.X, A.X, V, True),
        lambda A, first, last: _in_double(
            # All rows together are bit-identical to `gram`.
            _gram(A.kernel, A.X[first:last], None if last - first == A.X.shape[0] else A.X)
        ),
        lambda A: _diagonal(A.X, A.kernel).sum(dtype=np.float64),
    ),
    LowRank: _Form(
        lambda A: len(A.F),
        lambda A, V: _dense_product(A.F, _transposed_product(A.F, V.astype(A.F.dtype))),
        lambda A, first, last: _dense_product(_in_double(A.F[first:last]), A.F.T),
        lambda A: np.square(A.F, dtype=np.float64).sum(),
    ),
    _Difference: _Form(
        lambda A: _size(A.A),
        lambda A, V: _product(A.A, V) - _product(A.B, V),
        lambda A, first, last: _rows(A.A, first, last) - _rows(A.B, first, last),
        lambda A: _trace(A.A) - _trace(A.B),
    ),
    Centered: _Form(
        lambda A: _size(A.A),
        lambda A, V: _minus_row(_product(A.A, _minus_row(V))),
        lambda A, first, last: (
            _rows(A.A, first, last) + (A.means.mean() - A.means[first:last, None] - A.means)
        ),
        lambda A: _trace(A.A) - A.means.sum(),
    ),
    _ByProducts: _Form(lambda A: A.n, _ByProducts.product, _ByProducts.rows, _ByProducts.trace),
}


def _precision(A):
    """The relative rounding error of a product: the epsilon of the least precise array. That of a
    LinearOperator is known after its first product."""
    if isinstance(A, _ByProducts):
        return A.precision
    if isinstance(A, tuple):
        return max(map(_precision, A))
    found = [np.finfo(array.dtype).eps.item() for array in _arrays(A) if array.dtype.kind == "f"]
    return max(found, default=2.220446049250313e-16)


def _looks_symmetric(A):
    """Whether 4096 random entries equal their mirror images (for a sparse array, whether x.Ay
    = y.Ax). A LinearOperator is tested by its first products."""
    if isinstance(A, _Difference):
        return _looks_symmetric(A.A) and _looks_symmetric(A.B)
    if isinstance(A, Centered):
        return _looks_symmetric(A.A)
    rng = np.random.default_rng(0)
    if _is_sparse(A):
        V = rng.standard_normal((_size(A), 2))
        terms = V[:, ::-1] * _csr_product(A, V)
        return not np.ptp(terms.sum(0)) > 100.0 * _precision(A) * np.abs(terms).sum()
    at = _form_of(A).at
    if at is None:
        return True
    i, j = rng.integers(_size(A), size=(2, 4096))
    entries = at(A, i, j)
    return not np.abs(entries - at(A, j, i)).max() > 1e-5 * np.abs(entries).max()


def _finite_product(A, V):
    """A V in float64, checked, and `summands`: the largest column norm among the terms of A V."""
    if isinstance(A, _Difference):
        left, left_size = _finite_product(A.A, V)
        right, right_size = _finite_product(A.B, V)
        return left - right, max(left_size, right_size)
    # Centering cancels the mean m. The rounding errors have norm 2 sqrt(n) |m| eps, doubled here.
    if isinstance(A, Centered):
        W, size = _finite_product(A.A, _minus_row(V))
        return _minus_row(W), max(size, 4.0 * abs(A.means.mean()) * math.sqrt(len(W)))
    W = _in_double(_product(A, V))
    _require_finite("the operator or Gram matrix", W)
    return W, _largest_column(W)


_OPERATOR = (
    "a square array, a sparse array or LinearOperator of scipy, Bits, Implicit, LowRank or Centered"
)


def _square(name, A):
    sound = len(A.shape) == 2 and A.shape[0] == A.shape[1] > 0
    _require(sound, f"{name} must be square, with at least one row, got shape {A.shape}")
    return A


def _as_operator(name, value, symmetric=False):
    """The operator `value`, checked (also for symmetry, if `symmetric`), with arrays in C order."""
    kind = type(value)
    if isinstance(value, (list, np.ndarray)) or kind is tuple or hasattr(value, "to_numpy"):
        A = _square(name, _as_array(name, value, 2))
    elif hasattr(kind, "tocsr"):
        A = _square(name, _as_csr(name, value, _FLOATS))
        if np.diff(A.indptr).max() > 8 * _PARTIAL_SUM_ROWS:  # float32 sums would lose digits
            A.data = _in_double(A.data)
    elif hasattr(kind, "matmat"):  # LinearOperator, whose import takes 0.1 s
        A = _ByProducts(name, value.matmat, _square(name, value).shape[0])
    elif kind is _ByProducts:
        A = value
    else:
        _require(kind in _OPERATORS, f"{name} must be {_OPERATOR}, got {kind.__name__}")
        A = _checked_as(kind, name, value)
    if isinstance(A, Implicit):
        _require_fitting_points(f"{name}.kernel", A.kernel, **{f"{name}.X": A.X})
    _require(not symmetric or _looks_symmetric(A), f"{name} must be symmetric")
    return A


_FORMS.update({tuple: _as_operator})  # for operators in operators


def _checked_pair(A, B, symmetric=False):
    A = _as_operator("A", A, symmetric)
    B = _as_operator("B", B, symmetric)
    _require(_size(A) == _size(B), "A and B must be of the same size")
    return A, B


@_public
def matmat(A, V):
    """Product A V of an operator and one or more vectors (AMS section 2, step 2a).

    Costs O(n^2 p) time for an array, O(n^2 (d + p)) for Implicit, O(n r p) for LowRank, and O(p)
    time per stored entry of a sparse array. Bits take n^2 p / 51 table look-ups, or half as many
    for V in float32.

    Args:
        A: (n, n) symmetric array or operator: a sparse array or LinearOperator of scipy, Bits,
            Implicit, LowRank or Centered.
        V: (n, p) or (n,) array. Vectors, one per column.
    Returns:
        array: A V, in V's shape and A's precision. The precision is V's for Bits, and float64 for a
            LinearOperator and for a sparse array with long rows.
    Example:
        >>> X = np.array([[1.0], [2.0]])
        >>> matmat(Implicit(X, linear()), [1.0, 1.0]).tolist()
        [3.0, 6.0]
    """
    A = _as_operator("A", A)
    product = _product(A, _checked_points("V", _as_columns("V", V, _FLOATS), rows=_size(A)))
    _require_finite("A and A V", product)
    return product.reshape(np.shape(V))


@_public
def dense(A):
    """Dense array with the entries of an operator, for small n and for tests (textbook).

    Args:
        A: (n, n) array or operator. See `matmat`.
    Returns:
        array: (n, n) array in float64.
    Example:
        >>> dense(LowRank(np.array([[1.0], [2.0]]))).tolist()
        [[1.0, 2.0], [2.0, 4.0]]
    """
    A = _as_operator("A", A)
    _fits("A", 8.0 * _size(A) ** 2)
    entries = _rows(A, 0, _size(A))
    _require_finite("A", entries)
    return entries


def _has_arrays(A):
    """Whether all parts of an operator are arrays. Those of a LinearOperator are unknown."""
    return all(map(_has_arrays, A)) if isinstance(A, tuple) else not isinstance(A, _ByProducts)


@_public
def nbytes(A):
    """Number of bytes in the arrays of an operator, which sketches reduce (AMS section 3).

    Args:
        A: (n, n) array or operator. See `matmat`. The arrays of a LinearOperator are unknown.
    Returns:
        int: number of bytes. If `matmat` would convert an array, its converted size counts.
    Example:
        >>> X = np.zeros((64, 3))
        >>> nbytes(gram(X, X, linear())), nbytes(quantize_gram(X, linear()))
        (32768, 512)
    """
    A = _as_operator("A", A)
    _require(_has_arrays(A), "A must have arrays; got a LinearOperator, whose arrays are unknown")
    return sum(array.nbytes for array in _arrays(A))


@_public
def center(A):
    """Operator H A H with H = I - 1 1^T / n, never formed, for PCA about the mean (textbook).

    Args:
        A: (n, n) symmetric array or operator. See `matmat`.
    Returns:
        Centered: operator. Its product with p vectors costs O(n p) time more than for A.
    Example:
        >>> dense(center(np.array([[3.0, 1.0], [1.0, 1.0]]))).tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
    """
    A = _as_operator("A", A)
    sums = _product(A, np.ones((_size(A), 1)))
    _require_finite("A", sums)
    return Centered(A, _in_double(sums[:, 0]) / len(sums))


# --------------------------------------------------------------------------------------------------
# 7. Eigenpairs

# 7.1 Small matrices
# Eigenproblems inside other computations use LAPACK for more than 512 rows only: below, our own
# solver gives the same bits with any LAPACK.

# Single-thread nanoseconds of LAPACK over n^3: eigenpairs, eigenvalues, and Cholesky's method.
_EIGEN = 0.16
_EIGENVALUES = 0.1
_CHOLESKY = 0.011


@_validated(
    "an Eigen, with a value and a residual for each vector",
    lambda made: made.values.size == made.residual.size == made.vectors.shape[1] > 0,
    values=1,
    residual=1,
)
class Eigen(NamedTuple):
    """Eigenpairs of the k largest eigenvalues of a symmetric A. `values` (k,) are descending.
    `vectors` (n, k) are orthonormal, and the entry of largest magnitude in each vector is positive.
    `iterations` is the number of products with A. `residual` (k,) is |A v_i - values_i v_i| / max
    |values|, or a product's rounding error, if larger. For float32, it may be three times as large."""

    values: np.ndarray
    vectors: np.ndarray
    iterations: int
    residual: np.ndarray


@_helper
def _dot(u, v):
    total = 0.0
    for i in range(len(u)):
        total += u[i] * v[i]
    return total


@_helper
def _tridiagonalize(A, d, e):
    """Reduce a symmetric A with largest magnitude 1 to diagonals d and e (Householder). Row j of A
    then stores the reflection I - beta v v^T: beta on the diagonal, and v to the right."""
    w = np.empty(len(A))
    for j in range(len(A)):
        v = A[j, j + 1 :]
        m = len(v)
        square = _dot(v, v)
        d[j], A[j, j] = A[j, j], 0.0
        e[j] = 0.0
        if square < 1e-280:  # far below the rounding error of A
            continue
        e[j] = -math.sqrt(square) if v[0] > 0.0 else math.sqrt(square)
        v[0] -= e[j]  # the reflection maps the row to (e_j, 0, ..., 0)
        beta = -1.0 / (e[j] * v[0])
        for i in range(m):
            w[i] = beta * _dot(A[j + 1 + i, j + 1 :], v)
        half = 0.5 * beta * _dot(w[:m], v)
        for i in range(m):
            w[i] -= half * v[i]
        for i in range(m):
            row = A[j + 1 + i, j + 1 :]
            for t in range(m):
                row[t] -= v[i] * w[t] + w[i] * v[t]
        A[j, j] = beta


@_helper
def _diagonalize(d, e, Z):
    """Replace d by eigenvalues and rotate rows of Z, by implicit QR (Golub, Van Loan, 8.3.3)."""
    n = len(d)
    high = n - 1
    while high > 0:
        low = high
        while (
            low > 0
            and abs(e[low - 1]) > 2.220446049250313e-16 * (abs(d[low - 1]) + abs(d[low])) + 1e-120
        ):
            low -= 1
        if low == high:
            high -= 1
            continue
        gap = 0.5 * (d[high - 1] - d[high])
        b = e[high - 1]
        root = math.sqrt(gap * gap + b * b)
        x = d[low] - d[high] + b * (b / (gap + (root if gap >= 0.0 else -root)))
        z = e[low]
        for i in range(low, high):
            r = math.sqrt(x * x + z * z)
            c, s = (x / r, z / r) if r > 1e-125 else (1.0, 0.0)  # smaller: squares underflow
            if i > low:
                e[i - 1] = r
            first = d[i]
            b = e[i]
            second = d[i + 1]
            d[i] = c * c * first + 2.0 * c * s * b + s * s * second
            d[i + 1] = s * s * first - 2.0 * c * s * b + c * c * second
            e[i] = c * s * (second - first) + (c * c - s * s) * b
            x = e[i]
            z = s * e[i + 1]
            e[i + 1] *= c
            p = Z[i]
            q = Z[i + 1]
            for t in range(n):
                p_t = p[t]
                p[t] = c * p_t + s * q[t]
                q[t] = c * q[t] - s * p_t


@_helper
def _reflect(A, rows):
    """Apply the reflections stored in A to each row, the last one first."""
    for j in range(len(A) - 2, -1, -1):
        v = A[j, j + 1 :]
        for q in range(len(rows)):
            z = rows[q, j + 1 :]
            factor = A[j, j] * _dot(v, z)
            for t in range(len(v)):
                z[t] -= factor * v[t]


@_core_alone
def _solve(A, values, beside, rows):
    """Write eigenvalues of A to `values`, and eigenvectors to `rows` (I on entry). Overwrites A."""
    _tridiagonalize(A, values, beside)
    _diagonalize(values, beside, rows)
    _reflect(A, rows)


def _small_eigen(A, by_size=False):
    """Eigenpairs of a symmetric A, sorted by value, or by magnitude (`by_size`)."""
    size = len(A)
    scale = _unit_of(A)
    A = 0.5 * (A / scale + A.T / scale)  # scaling avoids underflow of squares
    if size > 512:
        with _shared_blas(_EIGEN * size**3):
            found, columns = np.linalg.eigh(A)
        rows = columns.T
    else:
        found = np.zeros(size)
        rows = np.eye(size)
        _solve(np.ascontiguousarray(A), found, np.zeros(size), rows)
    order = np.argsort(-np.abs(found) if by_size else -found, kind="stable")
    return scale * found[order], np.ascontiguousarray(rows[order].T)


def _orthonormalize(W, key):
    """Orthonormal columns with the span of W. Random columns replace dependent ones. Two passes
    (Stathopoulos, Wu 2002) usually suffice for V^T V = I. Ten are the limit: in very long sums,
    rounding errors alone exceed the threshold."""
    n, p = W.shape
    rng = np.random.default_rng(int(key))
    V = W / _unit_of(W, 0)
    for _ in range(10):
        G = _transposed_product(V, V)
        if np.abs(G - np.eye(p)).max() <= 1e-13:
            break
        V = _dense_product(V, _small_eigen(G)[1])
        lengths = np.sqrt(np.einsum("ij,ij->j", V, V))
        lost = lengths <= 1e-13 * lengths.max()
        V /= np.where(lost, 1.0, lengths)
        V[:, lost] = rng.standard_normal((n, lost.sum()))
    return V


def _least_ridge(squares, single=False):
    """The least ridge for F^T F: with a smaller one, Cholesky's method may fail. If coefficients
    are in float32 (single), they would be so large that predictions are their rounding errors."""
    relative = 2e-8 if single else 2.2e-16 * max(100.0, len(squares))
    return relative * squares.trace()


def _ridged(squares, lam):
    """F^T F + lam I. A tiny lam is raised to `_least_ridge`."""
    return squares + max(lam, _least_ridge(squares)) * np.eye(len(squares))


def _solve_ridge(squares, products, lam):
    """(F^T F + lam I)^-1 F^T Y."""
    linalg = _scipy_linalg()
    with _shared_blas(_CHOLESKY * len(squares) ** 3):
        factor = linalg.cho_factor(_ridged(squares, lam), True, True, False)
    return linalg.cho_solve(factor, products, check_finite=False)


# 7.2 Arrays
# Arrays are solved by LAPACK, or up to 32 MB by Lanczos iteration with single vectors. Measured for
# n = 1000 and k = 10: 6 ms with single vectors, 24 ms with blocks, and 52 ms by LAPACK. LAPACK
# takes less time if k >= n / 8 or n <= 128, or if n / 2 rows of a basis do not suffice. Beyond 32
# MB, products with single vectors wait for memory. A second search with residuals of 1e-3 instead
# of 1e-4 of value k overlooked copies of repeated eigenvalues.
_SINGLE_VECTOR_BYTES = 2**25


def _tridiagonal_pairs(diagonal, beside, check_finite=True):
    """Eigenpairs of a tridiagonal matrix. SciPy's default, stemr, fails for some matrices near I
    before SciPy 1.16, depending on its LAPACK. Implicit QR, stev, does not, but takes longer."""
    linalg = _scipy_linalg()
    solve = functools.partial(linalg.eigh_tridiagonal, diagonal, beside, check_finite=check_finite)
    try:
        return solve()
    except linalg.LinAlgError:
        return solve(lapack_driver="stev")


def _lapack_pairs(A, k):
    """The k largest eigenvalues, ascending, and their vectors, by reduction to a tridiagonal
    matrix. SciPy's eigh with subset_by_index takes longer."""
    linalg = _scipy_linalg()
    reduce, reflect = linalg.get_lapack_funcs(("sytrd", "ormqr"), (A,))
    with _shared_blas(_EIGENVALUES * len(A) ** 3):
        reflections, diagonal, beside, factors, _ = reduce(A.T, lower=1, lwork=64 * len(A))
        # Bisection for k of the values may fail, and is slow.
        values, Y = _tridiagonal_pairs(diagonal, beside)
    V = np.asfortranarray(Y[:, -k:])
    if beside.size:
        V[1:] = reflect("L", "N", reflections[1:, :-1], factors, V[1:], 64 * k)[0]
    return values[-k:], V


def _without(gemv, rows, w):
    """w, which is overwritten, minus its projection onto the span of orthonormal rows, and the
    squared length of this projection. `gemv` is SciPy's, because symv waits for NumPy's threads."""
    if not len(rows):
        return w, 0.0
    shares = gemv(1.0, rows.T, w, trans=1)
    return gemv(-1.0, rows.T, shares, 1.0, w, overwrite_y=1), shares @ shares


def _krylov_pairs(product, Q, first, check, k, tol, margin, rng):
    """The k largest eigenvalues, ascending, of a matrix on the space orthogonal to the first rows
    of Q, by Lanczos iteration. Returns them, their vectors as combinations of the next rows, and
    the number of rows. Values are NaN if residuals exceed max(tol max |values|, margin)."""
    gemv = _scipy_linalg().get_blas_funcs("gemv", (Q,))
    diagonal = []
    beside = []
    tiny = 1e-3 * np.finfo(Q.dtype).eps
    w = rng.standard_normal(Q.shape[1]).astype(Q.dtype)
    for size in range(first, len(Q)):
        w, removed = _without(gemv, Q[:size], w)  # rounding errors, except in the first step
        if removed > 0.01 * (w @ w):
            # Once more, because rounding errors would grow from row to row.
            w, _ = _without(gemv, Q[:size], w)
        length = math.sqrt(w @ w)
        if size == check:
            values, Y = _tridiagonal_pairs(diagonal, beside[1:], check_finite=False)
            values = values[-k:]
            Y = Y[:, -k:]
            if length * np.abs(Y[-1]).max() <= max(tol * np.abs(values).max(), margin):
                return values, Y, size
            check += 4 + size // 16
        if length < tiny:  # the rows of Q span an invariant space
            w, _ = _without(gemv, Q[:size], rng.standard_normal(len(w)).astype(Q.dtype))
        w /= math.sqrt(w @ w)
        Q[size] = w
        w = product(w)
        if diagonal:
            w -= length * Q[size - 1]
        beside.append(length)
        diagonal.append(Q[size] @ w)
        w -= diagonal[-1] * Q[size]
    return np.full(k, math.nan), Q, len(Q)


def _single_vector_pairs(A, unit, k, key, tol):
    """The same result as `_lapack_pairs`, by Lanczos iteration, or NaN if it fails. A Krylov space
    of one vector has one eigenvector of a repeated eigenvalue. So a second search is orthogonal to
    the k vectors found. It found each missed eigenvalue beyond value k by 1e-6 of the largest."""
    symv, gemm = _scipy_linalg().get_blas_funcs(("symv", "gemm"), (A,))  # symv reads half of A
    rng = np.random.default_rng(int(key))
    Q = np.empty((len(A) // 2, len(A)), A.dtype)

    def product(v):
        return symv(1.0 / unit, A.T, v)

    values, Y, size = _krylov_pairs(product, Q, 0, 3 * k // 2 + 14, k, tol, 0.0, rng)
    if size == len(Q):
        return values, Q.T
    rounding = max(1e-8, 16.0 * _precision(A)) * np.abs(values).max()
    margin = max(1e-4 * values[0], rounding)
    V = gemm(1.0, Q[:size].T, Y)
    Q[:k] = V.T
    missed = _krylov_pairs(product, Q, k, k + 10, 1, 1e-4, margin, rng)[0]
    return np.where(missed <= values[0] + rounding, unit * values, math.nan), V


def _eigen_of_array(A, k, key, tol):
    """Eigenpairs of a symmetric array. `residual` is tol if single vectors are used, but at least
    the rounding error of LAPACK: measured, up to 4 times the precision for n = 2000."""
    n = len(A)
    extremes = np.array([A.min(), A.max()], np.float64)
    _require_finite("the operator or Gram matrix", extremes)
    values = math.nan
    if n > 128 and 8 * k < n:
        values, V = _single_vector_pairs(A, float(_unit_of(extremes)), k, key, tol)
    if np.isnan(values).any():
        values, V = _lapack_pairs(A, k)
        tol = 0.0
    V = np.ascontiguousarray(V[:, ::-1], np.float64)
    if A.itemsize == 4:  # a step of Newton's method makes V orthonormal to 1e-12
        V = _dense_product(V, 1.5 * np.eye(k) - 0.5 * _transposed_product(V, V))
    residual = np.full(k, max(tol, 8.0 * _precision(A)))
    return Eigen(values[::-1].astype(np.float64), _fix_signs(V), 1, residual)


# 7.3 Searches with blocks in Krylov spaces


def _start_block(n, block, key):
    return _orthonormalize(_gaussian_matrix(n, block, _python_subkey(key, 0)), key)


def _combined(Q, Y, count):
    return _dense_product(Q, Y[:, :count])


class _Basis:
    """Orthonormal basis Q[:, :size] of a block Krylov space of A, and H = Q^T A Q."""

    def __init__(self, n, columns, key):
        self.Q = np.zeros((n, columns))
        self.H = np.zeros((columns, columns))
        self.key = key
        self.size = 0
        self.iterations = 0

    def add(self, W, R):
        """Append the block W. Then make R = A W orthogonal to the basis, in place."""
        size = self.size
        new = size + W.shape[1]
        self.Q[:, size:new] = W
        self.H[:new, size:new] = 0.0
        for _ in range(2):  # the second pass removes rounding errors of the first
            C = _transposed_product(self.Q, R, new)
            R -= _dense_product(self.Q, C)
            self.H[:new, size:new] += C
        self.H[size:new, :size] = self.H[:size, size:new].T
        self.size = new
        self.iterations += 1

    def ritz_pairs(self, by_size=False):
        return _small_eigen(self.H[: self.size, : self.size], by_size)

    def next_block(self, R):
        """Orthonormal columns for the part of R orthogonal to the basis. Both have n or fewer."""
        key = _python_subkey(self.key, self.iterations)
        W = _orthonormalize(R, _python_subkey(key, 0))
        for _ in range(5):  # a tiny R and random columns are not orthogonal yet
            C = _transposed_product(self.Q, W, self.size)
            if np.abs(C).max() <= 1e-14:
                break
            W = _orthonormalize(W - _dense_product(self.Q, C), _python_subkey(key, 1))
        return W

    def keep(self, values, Y, kept):
        self.Q[:, :kept] = _combined(self.Q, Y, kept)
        self.H[:kept, :kept] = np.diag(values[:kept])
        self.size = kept


@dataclasses.dataclass
class _Stall:
    """Counts the iterations since the residual last fell."""

    best: float = math.inf
    idle: int = 0

    def after(self, residual):
        self.idle += 1
        # A large rise means that the basis has found a missed copy of a repeated eigenvalue.
        if residual < 0.9 * self.best or residual > max(1e-9, 100.0 * self.best):
            self.best = residual
            self.idle = 0
        return self.idle


def _squares_of(R, scale):
    S = R / scale
    return _transposed_product(S, S)


def _residual_norms(R, Y, k, scale):
    Y = Y[-R.shape[1] :, :k]
    squares = (Y * _dense_product(_squares_of(R, scale), Y)).sum(0)
    return np.sqrt(np.maximum(squares, 0.0))


def _relative_margin(A, tol, summands, scale):
    """Largest relative residual of a converged pair: tol or 16 rounding errors, if larger."""
    return max(tol, 16.0 * _precision(A) * max(1.0, summands / scale))


# A Krylov space misses an eigenvector v that is orthogonal to its start block. A proof that needs
# no spectral gap excludes this (Kuczynski, Wozniakowski 1992). Let A v = lambda v and |v| = 1. The
# basis Q has blocks W_1, ..., W_j, and A Q = Q H + R E_j^T, with block column E_j of I. So Q^T v
# solves (lambda - H) Q^T v = E_j R^T v. Hence, W_1^T v = M v with M(lambda) = E_1^T (lambda - H)^-1
# E_j R^T. For a random W_1, |W_1^T v| exceeds a bound with high probability. If |M(lambda)| is
# below this bound, v does not exist. The proof takes steps from the smallest lambda of interest to
# larger ones. A step h changes |M| by less than h |E_1^T (lambda - H)^-1| |(lambda - H)^-1 E_j
# R^T|. In the last step, |R| / (lambda - largest Ritz value), which exceeds |M|, is below it.
_MISSED = 1e-6  # probability that |W_1^T v| is below the bound


def _start_cosine(n, block, chance):
    """A lower bound, false with probability `chance`, for the cosine of a vector and `block` random
    ones. Its square has law Beta(a, b): P(square < x) <= x^a / (a B(a, b))."""
    a = 0.5 * block
    b = 0.5 * (n - block)
    log_share = math.lgamma(a + 1.0) + math.lgamma(b) - math.lgamma(a + b)  # log(a B(a, b))
    return math.exp(0.5 / a * (math.log(chance) + log_share))


def _root_norm(G):
    """|B|_2 for a small matrix G = B B^T."""
    return math.sqrt(max(_small_eigen(G)[0][0], 0.0))


def _nothing_missed(values, Y, R, level, skipped=0, start_at=0):
    """Whether the proof shows that no eigenvalue of A is beyond `level`, except for the first
    `skipped` Ritz values. The other Ritz values all lie on one side of `level`, and "beyond" means
    the other side. The random start block begins at column `start_at` of the basis."""
    scale = _unit_of(values)
    at = level / scale
    others = values[skipped:] / scale
    if (others > at).any():
        at = -at
        others = -others
    S = _squares_of(R, scale)
    n, block = R.shape
    cosine = _start_cosine(n, block, _MISSED)
    size = _root_norm(S)
    far = others.max(initial=-math.inf) + 1.001 * size / cosine
    of_start = Y[start_at : start_at + block, skipped:]
    of_last = Y[-block:, skipped:]
    for _ in range(200):  # if the proof needs more steps, the search continues
        share = 1.0 / (at - others)
        reach = _dense_product(of_start * share, of_last.T)
        norm = _root_norm(_dense_product(_dense_product(reach, S), reach.T))
        if not norm < cosine:
            return False
        left, right = [_root_norm(_dense_product(P * share**2, P.T)) for P in (of_start, of_last)]
        moves = left * right * size  # bounds |change of M| / h
        at += (cosine - norm) / moves if moves > 0.0 else math.inf
        if at >= far:
            return True
    return False


def _eigen_of(A, values, vectors, products, iterations, summands):
    values = values[: vectors.shape[1]].copy()
    scale = _unit_of(values)
    residual = np.sqrt(np.square((products - values * vectors) / scale).sum(0))
    rounding = _precision(A) * max(1.0, summands / scale)
    return Eigen(values, _fix_signs(vectors), iterations, np.maximum(residual, rounding))


def _converge(A, basis, AQ, W, k, tol, max_iterations):
    """Append blocks to the basis, beginning with the random W, until the first k Ritz pairs
    converge. Returns all Ritz pairs and the `summands` of the last product."""
    block = W.shape[1]
    n, limit = AQ.shape
    settled = basis.size  # pairs that had converged before W was drawn: W begins at this column
    restarted = False
    stall = _Stall()
    while True:
        R, summands = _finite_product(A, W)
        AQ[:, basis.size : basis.size + block] = R
        basis.add(W, R)
        values, Y = basis.ritz_pairs()
        full = basis.size + block > limit
        if basis.size >= k:
            scale = _unit_of(values)
            residual = _residual_norms(R, Y, k, scale).max()
            margin = _relative_margin(A, tol, summands, scale) * scale
            # A residual that stalls for 20 iterations (two restart cycles) is a rounding error.
            stalled = stall.after(residual) >= 20 and residual < 1e-9
            # If all Ritz values are below the rounding error, two products are too few.
            converged = residual * scale <= margin and (margin < scale or basis.iterations > 2)
            # The random block may be nearly orthogonal to an eigenvector. The error of a Ritz value
            # is then up to tol sqrt(n / block). If that exceeds 1e-4, or if pairs had converged
            # before, the proof is required until the basis is full.
            doubtful = not (restarted or full) and (settled or tol * math.sqrt(n / block) > 1e-4)
            if converged and doubtful and not stalled:
                reach = margin if settled else max(margin, 1e-4 * scale)
                level = values[k - 1] + reach
                above = np.count_nonzero(values > values[k - 1] + 0.5 * reach)
                converged = _nothing_missed(values, Y, R, level, above, settled)
            if stalled or converged or basis.iterations >= max_iterations:
                return values, Y, summands
        if full:
            AQ[:, : k + block] = _combined(AQ, Y, k + block)
            basis.keep(values, Y, k + block)
            restarted = True
        W = basis.next_block(R)


def _lanczos(A, k, key, tol, max_iterations):
    """`block_lanczos` with full orthogonalization and thick restarts. The number of vectors in a
    block is a multiple of 16, because a product with 16 vectors takes one pass over A."""
    n = _size(A)
    if isinstance(A, np.ndarray) and (8 * k >= n or A.nbytes <= _SINGLE_VECTOR_BYTES):
        return _eigen_of_array(A, k, key, max(tol, _precision(A)))
    block = min(_ceil_div(k, 16), 4) * 16
    limit = 2 * k + 8 * block
    if n <= limit + block:
        R, summands = _finite_product(A, np.eye(n))
        values, Y = _small_eigen(R)
        return _eigen_of(A, values, Y[:, :k], _combined(R, Y, k), 1, summands)
    basis = _Basis(n, limit, key)
    AQ = np.zeros((n, limit))
    W = _start_block(n, block, key)
    before = -math.inf
    while True:
        values, Y, summands = _converge(A, basis, AQ, W, k, tol, max_iterations)
        found = values[:k].sum()
        # `block` values that agree to 1 % may have further copies. A new random block finds them.
        first = values[: max(k - block, 0)]
        alike = first - values[block - 1 : k - 1] <= 0.01 * np.abs(first)
        grown = found > before + max(tol, 16.0 * _precision(A)) * _unit_of(values)
        if basis.iterations >= max_iterations or not (alike.any() and grown):
            vectors = _combined(basis.Q, Y, k)
            return _eigen_of(A, values, vectors, _combined(AQ, Y, k), basis.iterations, summands)
        AQ[:, :k] = _combined(AQ, Y, k)
        basis.keep(values, Y, k)
        before = found
        key_of_block = _python_subkey(_python_subkey(key, basis.iterations), 2)
        W = basis.next_block(_gaussian_matrix(n, block, key_of_block))


def _norm(A, key, tol, max_iterations):
    """A lower bound of |A|_2, and an upper bound that fails with probability `_MISSED`. Their ratio
    is 1 + tol, or larger if the proof fails. A full basis restarts from Ritz vectors. The search
    then stops when the residual of the first Ritz vector is at most tol."""
    n = _size(A)
    if n <= 256:
        R, summands = _finite_product(A, np.eye(n))
        norm = float(np.abs(_small_eigen(R)[0]).max())
        return norm, norm + 16.0 * _precision(A) * summands
    block = 16
    # 768 columns reach tol = 1 % without a spectral gap, and take 512 MB at n = 87,000.
    limit = min(768, max(10 * block, 2**26 // n), n - block) // block * block
    basis = _Basis(n, 10 * block, key)
    W = _start_block(n, block, key)
    restarted = False
    rounding = 0.0
    while True:
        R, summands = _finite_product(A, W)
        rounding = max(rounding, 16.0 * _precision(A) * summands)
        if basis.iterations == 0:  # |A v| |W^T v| <= |A W| for every eigenvector v
            size_of_product = math.sqrt(block) * _largest_column(R)
            certified = rounding + size_of_product / _start_cosine(n, block, _MISSED)
        if basis.size + block > len(basis.H):
            more = limit - len(basis.H)
            basis.Q = np.pad(basis.Q, ((0, 0), (0, more)))
            basis.H = np.pad(basis.H, (0, more))
        basis.add(W, R)
        full = basis.size + block > limit
        last = basis.iterations >= max_iterations
        if full or last or restarted or basis.iterations <= 8 or basis.iterations % 4 == 0:
            values, Y = basis.ritz_pairs(True)
            norm = float(abs(values[0]))
            beyond = max((1.0 + tol) * norm, norm + rounding)
            sure = (
                not restarted
                and norm > rounding
                and _nothing_missed(values, Y, R, beyond)
                and _nothing_missed(values, Y, R, -beyond)
            )
            residual = norm * _residual_norms(R, Y, 1, norm)[0] if restarted else math.inf
            if sure or residual <= max(tol * norm, rounding) or norm <= rounding or last:
                return norm, beyond if sure else max(norm, certified)
            if full:
                basis.keep(values, Y, 2 * block)
                restarted = True
        W = basis.next_block(R)


def _checked_pairs(k, n, seed):
    """The number of eigenpairs to compute, at most n, and the key of a search for them."""
    k = _checked_count("k", k, n)
    _fits("k", 8.0 * n * min(2 * k, n))  # a search stores at least 2 k vectors
    return k, _checked_key(seed, _START)


def _checked_search(A, k, seed, tol, max_iterations):
    A = _as_operator("A", A, True)
    k, key = _checked_pairs(k, _size(A), seed)
    tol = _checked_real("tol", tol, 0.0)
    return A, k, key, tol, _checked_count("max_iterations", max_iterations)


@_public
def block_lanczos(A, k, seed=0, *, tol=1e-8, max_iterations=1000):
    """Eigenpairs of the k largest eigenvalues of a symmetric operator, by block Lanczos iteration.

    "Largest" is meant with sign, because sketched matrices may have negative eigenvalues (AMS
    section 2, footnote 1). Let S be the largest magnitude of a Ritz value. The search stops when
    every residual |A v - value v| is at most tol S or 16 rounding errors of a product, or when
    residuals below 1e-9 S have not fallen for 20 iterations. Blocks have b vectors, where b is k
    rounded up to a multiple of 16, at most 64. An eigenvalue may be missed if it exceeds value k by
    at most a few times S max(tol, min(1e-4, tol sqrt(n / b))), or by more if the basis of 2 k + 8 b
    vectors is full. If b values agree to 1 %, the search repeats with new random blocks until the
    sum of the values no longer grows. An iteration costs a product with b vectors and O(n (k + b)
    b) time. Memory is 2 n (2 k + 8 b) floats. For n <= 2 k + 9 b, A is formed.

    An array of at most 32 MB, or with k >= n / 8, is solved by LAPACK or by Lanczos iteration with
    single vectors. Then max_iterations has no effect, and an eigenvalue may be missed if it exceeds
    value k by at most 1e-6 S (measured).

    Args:
        A: (n, n) symmetric array or operator. See `matmat`. A LinearOperator may call a cluster or
            a GPU: it multiplies (n, b) float64 arrays. float32 residuals stay above 2e-6.
        k: int from 1 to n. Number of eigenpairs.
        seed: int from 0 to 2**64 - 1. Seed of the random blocks.
        tol: float, at least 0. Residual, relative to S, at which the search stops.
        max_iterations: int, at least 1. Largest number of block products. At least k / b are made.
    Returns:
        Eigen: k pairs. An early stop raises no error, so check `residual`.
    Example:
        >>> block_lanczos(np.diag([5.0, -9.0, 2.0]), 2).values.round(6).tolist()
        [5.0, 2.0]
    """
    A, *search = _checked_search(A, k, seed, tol, max_iterations)
    found = _lanczos(A, *search)
    if found.iterations > 1 or not isinstance(A, np.ndarray):
        return found
    # An array was solved without blocks. Its residuals would be wrong if it were not symmetric.
    W, summands = _finite_product(A, found.vectors)
    return _eigen_of(A, found.values, found.vectors, W, found.iterations, summands)


@_public
def orthogonal_iteration(A, k, seed=0, *, tol=1e-8, max_iterations=10000):
    """Eigenpairs of the k largest eigenvalues of a symmetric operator, by orthogonal iteration.

    The iteration Q <- orthonormalize(A Q) starts from a random (n, k) matrix Q (AMS section 2). It
    favors large magnitudes. So the magnitude of a negative Ritz value is added to the diagonal of A
    as a shift. An iteration multiplies the error by (lambda_{k+1} + shift) / (lambda_k + shift)
    (claim AMS-C). It costs a product with k vectors and O(n k^2) time. Memory is O(n k).

    Args:
        A, k: See `block_lanczos`.
        seed: int from 0 to 2**64 - 1. Seed of the random Q.
        tol: float, at least 0. Residual of the subspace, relative to the largest Ritz value.
        max_iterations: int, at least 1. Largest number of products with k vectors.
    Returns:
        Eigen: k pairs. An early stop raises no error, so check `residual`.
    Example:
        >>> orthogonal_iteration(np.diag([5.0, -9.0, 2.0]), 1).values.round(6).tolist()
        [5.0]
    """
    A, k, key, tol, max_iterations = _checked_search(A, k, seed, tol, max_iterations)
    Q = _start_block(_size(A), k, key)
    shift = 0.0
    stall = _Stall()
    for iterations in itertools.count(1):
        Z, summands = _finite_product(A, Q)
        T = _transposed_product(Q, Z)
        values, Y = _small_eigen(T)
        scale = _unit_of(values)
        worst = _residual_norms(Z - _dense_product(Q, T), Y, k, scale).max()
        margin = _relative_margin(A, tol, summands, scale)
        settled = -values[k - 1] <= shift * (1.0 + 1e-6) and (margin < 1.0 or iterations > 2)
        if settled and worst <= margin or iterations >= max_iterations:
            vectors = _dense_product(Q, Y)
            return _eigen_of(A, values, vectors, _dense_product(Z, Y), iterations, summands)
        shift = max(shift, -values[k - 1])
        if stall.after(worst) >= 100:  # Q mixes eigenvectors of lambda and -lambda
            shift = max(shift, scale)
        Q = _orthonormalize(Z + shift * Q, _python_subkey(key, iterations + 1))


@_public
def spectral_norm(A, seed=0, *, tol=1e-2, max_iterations=1000):
    """Spectral norm |A|_2 of a symmetric operator, the largest magnitude of an eigenvalue.

    This is Lanczos iteration (textbook) with a stopping rule that needs no spectral gap (Kuczynski,
    Wozniakowski 1992). Up to rounding, the result is at most |A|_2. With probability 1 - 1e-6 over
    seeds, |A|_2 is at most (1 + tol) times the result. This does not hold if the basis (at most 768
    n floats) becomes full. The result then approximates some |eigenvalue| with relative error tol.

    Args:
        A: (n, n) symmetric array or operator. See `matmat`.
        seed: int from 0 to 2**64 - 1. Seed of the random block.
        tol: float, at least 0. Relative error.
        max_iterations: int, at least 1. Largest number of products. If reached, tol may be missed.
    Returns:
        float: |A|_2, or slightly less.
    Example:
        >>> round(spectral_norm(np.diag([5.0, -9.0, 2.0])), 6)
        9.0
    """
    A, _, _, tol, max_iterations = _checked_search(A, 1, seed, tol, max_iterations)
    return _norm(A, _checked_key(seed, _NORMS), tol, max_iterations)[0]


# --------------------------------------------------------------------------------------------------
# 8. Kernel PCA

# 8.1 One verb for models and streams of every class. Their records stand at the classes.


def _in_slabs(function, X, model, out=None, writes=False):
    """function(X, model) of a large X, slab by slab, or None. It saves memory. writes: whether the
    function has an argument `out`. Then nothing is copied."""
    if _is_sparse(X):
        X = _as_points("X", X)
    elif not isinstance(X, np.ndarray) or X.ndim != 2:
        return None
    n = X.shape[0]
    in_memory = type(X) is np.ndarray and X.flags.carray and X.dtype in _FLOATS
    whole = writes and in_memory and getattr(_models.get(type(model)), "whole", False)
    if n <= _SLAB or whole:
        return None
    slabs = _slabs(n, _SLAB)
    for rows in slabs:
        _checked_points("X", X[rows], numbers=range(rows.start, rows.stop))
    like = function(X[:1], model)
    out = _checked_out("X", out, (n, *like.shape[1:]), like.dtype, (X, model))
    for rows in slabs:
        if writes:
            function(X[rows], model, out=out[rows])
        else:
            out[rows] = function(X[rows], model)
    return out


def _function_and_model(field, X, model):
    """The function `field` of the model's record, and the model, if the points X fit it."""
    model = _model_in(model)
    function = _of_model("model", model, field)
    model = _checked_as(type(model), "model", model)
    _models[type(model)].fit(X, model)
    return function, model


@_public(sparse=True)
def features(X, model, *, out=None):
    """Features of points, one verb for every model (AMS section 4; DSGD algorithm 2; RLS (35)).

    Models are results of kernel PCA and ridge regression, maps, and DSGD states. Their classes say
    which features they have. An array X, for example a memory map, is read and converted 8192 rows
    at a time.

    Args:
        X: (n, d) array, or scipy sparse matrix if the model takes one. Points, one per row. For an
            Expansion of c > 1 points with a kernel `precomputed(K)`, also an (n, c) array: kernel
            values of new point i and the points of the expansion in row i.
        model: named tuple. A model, a state of `dsgd_start` or another DSGD start, or a
            fitted estimator.
        out: See `gram`. It has the shape of the result.
    Returns:
        array: (n, k) features, or (n,) for a regression on a vector. float32 if X and the points of
            the model are float32, else float64. The features of a point do not depend on other points.
    Example:
        >>> X = np.array([[1.0], [2.0], [6.0]])
        >>> features(np.array([[4.0]]), kpca(X, linear(), 1)).round(12).tolist()
        [[1.0]]
    """
    model = _model_in(model)
    if (found := _in_slabs(features, X, model, out, writes=True)) is not None:
        return found
    X = _checked_points("X", X, least=0)
    write, model = _function_and_model("features", X, model)
    shape = (X.shape[0], *_models[type(model)].shape(model))
    dtype = np.result_type(X.dtype, getattr(model, "points", X).dtype)
    out = _checked_out("X", out, shape, dtype, (X, model))
    if X.shape[0] > 0:
        write(X, model, out)
    return out


@_public
def features_of(x, model, out):
    """Write the features of one point to `out`, for use in your own `@njit` loops (RLS 2.1).

    Args:
        x: (d,) array. Point. Compiled code does not check the lengths of `x` and `out`.
        model: See `features`.
        out: (k,) array. Receives the model's k features.
    Returns:
        None: Afterwards, `out` equals a row of `features`, up to rounding.
            A map with random frequencies must store them, or draw them one by one.
    Example:
        >>> out = np.empty(1)
        >>> features_of(np.array([3.0]), nystrom_map(np.eye(1), np.array([0]), linear()), out)
        >>> out.tolist()
        [3.0]
    """
    _as_array("x", x, 1)
    row = features(np.asanyarray(x)[None], model).reshape(-1)  # x may be prepared
    _require(np.shape(out) == row.shape, f"out must be an array of {row.size} numbers")
    out[:] = row


@_public(sparse=True)
def residual(X, model):
    """Relative distance of each point from the span of a model (RLS section 2.1, SKPCA section 1).

    The distance is |f - P f| / sqrt(k(x, x)), where f = phi(x) - mean and P projects onto the span
    of components or landmarks. Centering or unpaired features can raise it above 1. The first call
    for an Expansion of c points costs c^2 kernel values, and its result is kept. Choose k so that
    all eigenvalues of a Subspace exceed its `shrunk`: other directions may fit only the last points.

    Args:
        X: (n, d) array or scipy sparse matrix. Points. As in `features`, read 8192 rows at a time.
        model: Expansion (its mean must be known), NystromMap, Subspace or fitted estimator.
    Returns:
        array: (n,), about 1 far from the training points. Values below 1e-7 are rounding errors.
    Example:
        >>> X = np.array([[0.0], [1.0], [2.0]])
        >>> residual(np.array([[1.0], [50.0]]), kpca(X, gaussian(1.0), 3, centered=False)).round(6).tolist()
        [0.0, 1.0]
    """
    if (found := _in_slabs(residual, X, model)) is not None:
        return found
    X = _in_double(_checked_points("X", X, least=0))
    distances, model = _function_and_model("residual", X, model)
    return distances(X, model) if X.shape[0] > 0 else np.empty(0)


@_public
def residual_of(x, model, out):
    """Residual of one point, for use in your own `@njit` loops (RLS section 2.1).

    Args:
        x: (d,) array. Point. Compiled code does not check the lengths of `x` and `out`.
        model: NystromMap or Subspace. For an Expansion, `residual` must prepare a basis.
        out: (k,) array. Receives the features, as in `features_of`.
    Returns:
        float: The entry of `residual`, up to rounding errors of 1e-7.
    Example:
        >>> to_features = nystrom_map(np.eye(2), np.array([0]), linear())
        >>> residual_of(np.array([3.0, 4.0]), to_features, np.empty(1))
        0.8
    """
    _of_model("model", _model_in(model), "residual_of_point")
    features_of(x, model, out)
    return float(residual(np.asanyarray(x)[None], model)[0])


def _compiled_of_point(function, field):
    def compiled(x, model, out):
        record = _models.get(getattr(model, "instance_class", None))
        return getattr(record, field, None)

    overload(function, jit_options={"fastmath": _SUMS})(compiled)


_compiled_of_point(features_of, "of_point")
_compiled_of_point(residual_of, "residual_of_point")


@_public(sparse=True)
def explained_variance_ratio(X, model):
    """Share of the points' variance in feature space that each component explains (textbook).

    For orthonormal components, it is sum_i (f_j(x_i) - mean_j)^2 / tr(H K H) with means over X. In
    other models, component j counts for the variance that earlier components do not explain.

    Args:
        X: (n, d) array or scipy sparse matrix. Points, for example training points. Costs n^2 kernel
            values.
        model: Expansion, NystromMap or Subspace. For a Subspace, K is Z Z^T of its features Z.
    Returns:
        array: (k,), at least 0. The sum is at most 1, up to rounding.
    Example:
        >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0], [4.0, 2.0]])
        >>> explained_variance_ratio(X, kpca(X, linear(), 2)).round(12).tolist()
        [0.8, 0.2]
    """
    X = _in_double(_checked_points("X", X))
    moments, model = _function_and_model("moments", X, model)
    F, size, square = moments(X, model)
    total = size - square / X.shape[0]
    _require(total > 1e-14 * size, "X must have points that differ")
    return np.square(F - F.mean(0)).sum(0) / total


@_public
def update(state, X, Y=None):
    """The state of a stream after more points, one verb for every stream (SKPCA algorithm 1).

    Args:
        state: named tuple. Returned by a start function, such as `skpca_start`. It is not modified.
        X: (n, d) array. Further points, or rows of a sketch. Classes of states say what a call costs.
            If n = 0, the state is returned.
        Y: (n, e) array, or None. Second view or targets, only for DSGD starts that take Y.
    Returns:
        tuple: The new state, of the same type.
    Example:
        >>> state = update(shadow_start(1.0, 1), np.array([[0.0], [0.5], [3.0]]))
        >>> finish(update(state, np.array([[3.5]]))).weights.tolist()
        [2.0, 2.0]
    """
    take = _of_stream("state", state, "update")
    state = _checked_as(type(state), "state", state)
    record = _streams[type(state)]
    X = _checked_points("X", X, columns=record.columns(state), least=0)
    if record.second:
        return take(state, X, Y)
    _require(Y is None, f"Y must be None for {type(state).__name__}")
    return take(state, X) if len(X) > 0 else state


@_public
def merge(a, b):
    """The state of two streams together, one verb for every stream that can (SKPCA section 2).

    Args:
        a: named tuple. State of the first stream. It is not modified.
        b: named tuple. State of the second stream, started with the same arguments.
    Returns:
        tuple: The state for the points of both, of the same type. Bounds of one pass hold.
    Example:
        >>> a = update(fd_start(1, 2), np.array([[3.0, 0.0]]))
        >>> b = update(fd_start(1, 2), np.array([[4.0, 0.0]]))
        >>> np.abs(finish(merge(a, b)).B).round(12).tolist()
        [[5.0, 0.0]]
    """
    join = _of_stream("a", a, "merge")
    a = _checked_as(type(a), "a", a)
    b = _checked_as(type(a), "b", b)
    _require(
        getattr(a, "half_life", None) is None,
        "a and b must have no half_life: age is defined only within one stream",
    )
    arguments = _streams[type(a)].arguments
    _require(arguments(a) == arguments(b), "a and b must have been started with the same arguments")
    return join(a, b)


@_public
def finish(state, k=None):
    """The result of a stream so far, as from its batch function (SKPCA algorithm 1).

    Args:
        state: named tuple. State of a stream. It is not modified, and the stream may continue.
        k: int, or None. Number of components, for `skpca_start` (at most ell) and `rnca_start` (at
            most m). None means as many as possible. Other streams take None.
    Returns:
        tuple: The result: Subspace, Sketch, ReducedSet, Landmarks, or one or two models of DSGD.
    Example:
        >>> to_features = fourier_features_map(gaussian(1.0), 1, 8)
        >>> state = update(skpca_start(to_features, 4), np.array([[0.0], [0.5], [3.0]]))
        >>> finish(state, 2).basis.shape
        (8, 2)
    """
    result = _of_stream("state", state, "finish")
    state = _checked_as(type(state), "state", state)
    record = _streams[type(state)]
    _require(record.has_points(state), "state must have seen a point: call update(state, X)")
    most = record.most
    if most is None:
        _require(k is None, f"k must be None for {type(state).__name__}, got {_shown(k)}")
        return result(state)
    return result(state, most(state) if k is None else _checked_count("k", k, most(state)))


# 8.2 Expansions


def _require_fitting_model(X, model, argument="model"):
    """Check that the points X and those of a model can be compared by its kernel."""
    points = model.points
    X = points if X is None else X
    _require(_is_sparse(X) == _is_sparse(points), "sparse and dense points must not be mixed")
    hint = ": with a precomputed kernel, pass row numbers (or to features, a column per point)"
    _require(
        X.shape[1] == points.shape[1],
        f"X and {argument}.points must have the same number of columns, got shapes {X.shape} "
        f"and {points.shape}{hint * (model.kernel.kind == _PRECOMPUTED)}",
    )
    sets = {f"{argument}.points": points, "X": X}
    _require_fitting_points(f"{argument}.kernel", model.kernel, **sets)


def _are_kernel_values(X, E):
    """Whether X holds kernel values of points outside a precomputed K, not row numbers."""
    return E.kernel.kind == _PRECOMPUTED and X.shape[1] == np.size(E.points) > 1


def _fit_expansion(X, E):
    _require_fitting_model(None if _are_kernel_values(X, E) else X, E)


def _about_mean(kernel, X, centered=True):
    """If `centered`, points with the centered Gram matrix of X. A linear kernel loses digits far
    from 0, so the mean is subtracted for it. Before, X[0] is subtracted: equal points become 0."""
    if not (centered and _is_linear(kernel)):
        return X
    return _minus_row(X if _is_sparse(X) else _minus_row(X, X[:1]))


def _features(X, E):
    """Features of X. Inner products are in float64, because centering cancels float32 digits."""
    P, Q = _in_common_precision(X, E.points)
    added = 0.0 if E.offset is None else E.offset
    if E.kernel.kind == _POLYNOMIAL:
        P = _in_double(P)
        Q = _in_double(Q)
        if _is_linear(E.kernel) and _is_sparse(P) == _is_sparse(Q):
            sums = E.kernel.scale * E.kernel.gamma * E.coef.sum(0, np.float64)
            row = _far_means(Q) if _is_sparse(Q) else Q[0]
            products = P @ row if _is_sparse(P) else (P * row).sum(1)
            added = added + np.outer(products, sums)
            Q = _minus_row(Q, row)
    return _gram_product(E.kernel, P, Q, E.coef) + added


def _write_features(X, E, out):
    if _are_kernel_values(X, E):
        F = E.kernel.scale * _dense_product(_in_double(X), _in_double(E.coef))
        F += 0.0 if E.offset is None else E.offset
    else:
        F = _features(X, E)
    out[:] = F.reshape(out.shape)
    _require_finite("features of X", out)


# In compiled code, None and an array have different types.
def _offset_or_zero(offset):
    """The offset, or 0 if there is none."""


@overload(_offset_or_zero)
def _compiled_offset_or_zero(offset):
    if isinstance(offset, types.NoneType):
        return lambda offset: 0.0
    return lambda offset: offset


def _of_expansion(x, model, out):
    out[:] = _offset_or_zero(model.offset)
    for i in range(len(model.points)):
        value = _value_of(model.kernel, x, model.points[i])
        for q in range(len(out)):
            out[q] += model.coef[i, q] * value


def _mean_is_unknown(E):
    return E.mean is None and E.offset is not None and bool(E.offset.any())


_spans = {}  # results of `_span_of`, and copies of the arrays that they were computed from


def _span_of(E):
    """In float64: features F of an Expansion's points, without the offset, an Expansion of k
    orthonormal components and of |mean|^2 - 2 mean.phi(x), and W (k, k), which makes features F W
    orthonormal. All are kept while E.coef exists, and computed again if an entry has changed. A
    component at an angle below 1e-5 to the span of earlier components becomes 0."""
    given = E.points, E.coef, E.offset, E.mean
    arrays = [np.empty(0) if array is None else array for array in given]
    key = (id(E.coef), id(E.kernel.table), *E.kernel[:-1])
    if key not in _spans:
        weakref.finalize(E.coef, _spans.pop, key, None)
    else:
        if all(map(np.array_equal, _arrays(_spans[key][0]), _arrays(tuple(arrays)))):
            return _spans[key][1:]
    copies = tuple(array.astype(np.float64) for array in arrays)
    points, coef, offset, mean = copies
    (c, k) = coef.shape
    weights = np.broadcast_to(mean if mean.size else 0.0, c)
    E = E._replace(points=points, coef=np.column_stack([coef, weights]), offset=None)
    F = _features(points, E)
    G = _transposed_product(E.coef, F)
    M = G[:k, :k]
    _require_finite("features of the expansion's points", M)
    W = np.zeros((k, k))
    for j in range(k):
        w = np.eye(k)[j]
        for _ in range(2):  # the second time removes rounding errors of the first
            w -= W @ (W.T @ (M @ w))
        square = w @ M @ w
        if square > 1e-10 * M[j, j]:
            W[:, j] = w / math.sqrt(square)
    basis = np.column_stack([_dense_product(coef, W), -2.0 * weights])
    E = E._replace(
        coef=basis, offset=np.append((offset if offset.size else np.zeros(k)) @ W, G[k, k])
    )
    _spans[key] = copies, F[:, :k], E, W
    return _spans[key][1:]


def _distances(X, kernel, features, from_mean=0.0):
    """Relative distances from a span of orthonormal features. from_mean: |m|^2 - 2 m.phi(x)."""
    sizes = _diagonal(X, kernel)
    squares = sizes + from_mean - np.square(features).sum(1)
    _require_finite("kernel values on X", squares)
    return np.sqrt(np.where(squares > 0.0, squares / sizes.clip(0.0), 0.0))


def _distances_from_expansion(X, E):
    _require_fitting_model(X, E)  # kernel values do not tell k(x, x)
    _require(not _mean_is_unknown(E), "model.mean must be known (it is None)")
    features = _features(X, _span_of(E)[1])
    return _distances(X, E.kernel, features[:, :-1], features[:, -1])


def _moments(X, model, features):
    _require_fitting_model(X, model)
    A = Implicit(_about_mean(model.kernel, X), model.kernel)  # moves features of a linear model
    return features(A.X, model), _trace(A), _finite_product(A, np.ones((X.shape[0], 1)))[0].sum()


def _own_pairs(X, model):
    _require(not getattr(model, "targets", 0), "sketch must not predict targets")
    return Eigen(model.values, features(X, model), 0, model.values)


_own_values = operator.attrgetter("values")


@_model(
    fit=_fit_expansion,
    shape=lambda E: E.coef.shape[1:] if E.targets != 1 else (),
    features=_write_features,
    of_point=_of_expansion,
    values=_own_values,
    residual=_distances_from_expansion,
    moments=functools.partial(_moments, features=lambda X, E: _features(X, _span_of(E)[1])[:, :-1]),
    sketch=_own_pairs,
)
@_validated(
    "an Expansion whose coef has a row for each point, and whose offset and mean fit or are None",
    lambda made: (
        len(made.coef) == made.points.shape[0]
        and made.coef.size > 0
        and (made.offset is None or made.offset.size == made.coef.shape[1])
        and (made.mean is None or made.mean.size == made.points.shape[0])
    ),
    points="points",
    coef="points",
    values=1,
    offset=1,
    mean=1,
)
class Expansion(NamedTuple):
    """Features f_j(x) = sum_i coef_ij k(points_i, x) + offset_j, with points (c, d), coef (c, k)
    and eigenvalues `values` (k,). `offset` (k,) centers the features at sum_i mean_i phi(points_i),
    where `mean` is (c,). Without an offset, features are not centered. With an offset, a `mean` of
    None is unknown. `targets` is the number of axes of a regression's targets, else 0. If it is 1,
    `features` returns a vector. `names`: the columns of the frame or table, if there is one, in
    JSON; for a model of prepared points, also the numbers that prepare them (see
    `prepared_points`)."""

    points: np.ndarray
    coef: np.ndarray
    values: np.ndarray
    kernel: Kernel
    offset: np.ndarray = None
    mean: np.ndarray = None
    targets: int = 0
    names: bytes = b""


_DENSE_POINTS = 8192  # `kpca` stores K for up to this many points: 512 MB in float64


def _checked_expansion(name, expansion, X=None):
    E = _checked_as(Expansion, name, _model_in(expansion))
    _require_fitting_model(X, E, name)
    return E


def _expansion_of(X, kernel, eigen, taken):
    """coef_j = lambda_j^-1/2 a^j (AMS section 2), or 0 if lambda_j is a rounding error of lambda_1
    or of `taken`: the trace that centering took, or a negative eigenvalue. float32 adds errors of
    1e-7 lambda_1 / lambda_j^1/2."""
    share = max(X.shape[0] * 2.220446049250313e-16, _precision(X))
    values = eigen.values
    floor = np.maximum(share * (max(values[0], 0.0) + abs(taken)), eigen.residual * values[0])
    coef = _over_roots(eigen.vectors, values, floor).astype(X.dtype)
    values = np.where(values > floor, values, 0.0)
    return Expansion(X.astype(X.dtype), coef, values, kernel)


def _about_its_mean(E, means=None):
    """E centered at the mean of its points, whose Gram matrix has these row means, if given."""
    coef = (E.coef - E.coef.mean(0, np.float64)).astype(E.coef.dtype)  # exact means are 0
    if means is None:
        offset = _features(E.points, E._replace(coef=coef, offset=None)).mean(0)
    else:
        offset = means @ coef
    return E._replace(coef=coef, offset=-offset, mean=np.full(len(coef), 1.0 / len(coef)))


@_public(sparse=True)
def kpca_from_eigen(X, kernel, eigen, *, centered=False):
    """Kernel PCA features from eigenpairs of a Gram matrix, exact or sketched, as an Expansion.

    f_j(x) = lambda_j^-1/2 sum_i a_i^j k(x_i, x) for the eigenpair (lambda_j, a^j) (AMS section 2).
    For the exact Gram matrix K, f_j(x_i) = lambda_j^1/2 a_i^j. For a sketch A, f_j(x_i) differs by
    lambda_j^-1/2 ((K - A) a^j)_i (AMS theorem 4). f_j is 0 if lambda_j is a rounding error.

    Args:
        X: (n, d) array or scipy sparse matrix. Points of the Gram matrix.
        kernel: Kernel. The kernel of the Gram matrix.
        eigen: Eigen. Eigenpairs of the Gram matrix or of its sketch.
        centered: bool. True for eigenpairs of `center(K)`: features then have mean 0 over X.
    Returns:
        Expansion: k components over the n points.
    Example:
        >>> X = np.array([[1.0], [2.0], [6.0]])
        >>> eigen = block_lanczos(center(gram(X, X, linear())), 1)
        >>> features(X, kpca_from_eigen(X, linear(), eigen, centered=True)).round(12).tolist()
        [[-2.0], [-1.0], [3.0]]
    """
    X, kernel = _points_and_kernel(X, kernel)
    eigen = _checked_as(Eigen, "eigen", eigen)
    _checked_points("eigen.vectors", eigen.vectors, rows=X.shape[0])
    E = _expansion_of(X, kernel, eigen, 0.0)
    return _about_its_mean(E) if _as_flag("centered", centered) else E


_CANCELS_FROM = 100.0  # removed part of the trace / the rest; below, under two digits cancel


def _warn_of_negative_eigenvalues(A, values, key):
    """The smallest eigenvalue of A. Warn if it is below 0 by more than 1e-4 of the largest magnitude:
    kernel PCA has no component for it. Lanczos iteration never overestimates the magnitude."""
    n = _size(A)
    top = max(values[0], 0.0)
    top_of_all = _ByProducts("A", lambda V: top * V, n)
    lowest = top - _lanczos(_Difference(top_of_all, A), 1, key, 1e-3, 100).values[0]
    if lowest < -1e-4 * max(top, -lowest):
        warnings.warn(
            f"kpca: the Gram matrix has an eigenvalue of {lowest:.3g} or less, the largest is "
            f"{values[0]:.3g}: there are no components for negative eigenvalues. Instead of distances "
            "D, pass -0.5 * D**2 with centered=True, or exp(-D / D.mean()). For similarities, set "
            "negative eigenvalues to 0, or add their magnitude to the diagonal",
            stacklevel=_USERS_LINE + 2,
        )
    return lowest


def _kpca(X, kernel, k, seed, centered, tol=1e-13, A=None):
    """An Expansion from the Gram matrix (or from A), and the matrix. If centering cancels nearly
    all of a stored matrix, the matrix is recomputed in float64, and tol rises."""
    X, kernel = _points_and_kernel(X, kernel)
    n = X.shape[0]
    k, key = _checked_pairs(k, n, seed)
    if _is_sparse(X):
        _checked_count("the number of sparse points (nystrom_kpca takes more)", n, _DENSE_POINTS)
    G = _about_mean(kernel, X, centered)
    exact = A is None and G is X
    taken = 0.0
    if A is None:
        A = _gram(kernel, G) if n <= _DENSE_POINTS else Implicit(G, kernel)
    if centered:
        means = _in_double(_product(A, np.ones((n, 1)))[:, 0]) / n
        taken = means.sum()
        over = taken / max(_trace(A) - taken, 1e-300)
        stored = isinstance(A, np.ndarray)
        if stored and over > _CANCELS_FROM:
            del A  # up to 512 MB
            G = _in_double(G)
            A = _gram(kernel, G)
            means = A.mean(0)
            tol = np.clip(2.2e-16 * over, tol, 1e-4)
        if stored and (over > _CANCELS_FROM or A.nbytes <= _SINGLE_VECTOR_BYTES):
            A -= means.astype(A.dtype)
            A -= (means - means.mean()).astype(A.dtype)[:, None]
            A = A.astype(X.dtype, copy=False)
        else:
            A = Centered(A, np.full(n, taken / n))
    eigen = _lanczos(A, k, key, tol, 1000)
    if not _has_formula(kernel):
        lowest = _warn_of_negative_eigenvalues(A, eigen.values, _checked_key(seed, _PROBES))
        taken = max(abs(taken), -lowest)
    model = _expansion_of(X, kernel, eigen, taken)
    return _about_its_mean(model, means if exact else None) if centered else model, A


@_public(sparse=True)
def kpca(X, kernel, k, seed=0, *, centered=True):
    """Exact kernel PCA: the k leading components as an Expansion.

    Feature j of x is sum_i coef_ij k(x_i, x), where coef_j is eigenvector j of the Gram matrix K
    divided by the square root of its eigenvalue (AMS section 2). The entry of largest magnitude in
    each eigenvector is positive. If an eigenvalue is a rounding error, its component is 0. The
    features of X itself are model.coef * model.values. If `centered`, H K H replaces K, where H = I
    - 1 1^T / n (Schoelkopf, Smola, Mueller 1998). Then features equal scikit-learn's `KernelPCA`,
    up to signs and rounding. The papers compute components of K itself: without centering, the
    first component of a Gaussian kernel is close to the mean. If a precomputed or custom kernel
    has negative eigenvalues, `kpca` warns: they have no components.

    Sparse points are computed in float64. A product of K with b vectors costs O(n^2 (d + b)) time,
    where b is k rounded up to a multiple of 16, at most 64. K is stored up to n = 8192. For larger
    n, memory is O(n (d + 4 k + 16 b)), and sparse points are refused: call `nystrom_kpca`.

    Args:
        X: (n, d) array or scipy sparse matrix. Points, one per row.
        kernel: Kernel, such as `gaussian(sigma)`. Of x.y or Euclidean distance if X is sparse.
        k: int from 1 to n. Number of components.
        seed: int from 0 to 2**64 - 1. Seed of the first block of vectors.
        centered: bool. If True, subtract the mean of X in feature space. AMS does not: pass False.
    Returns:
        Expansion: k components over the n points, for `features`.
    Example:
        >>> X = np.array([[1.0], [2.0], [6.0]])
        >>> features(X, kpca(X, linear(), 1)).round(12).tolist()
        [[-2.0], [-1.0], [3.0]]
        >>> features(X, kpca(X, linear(), 1, centered=False)).round(12).tolist()
        [[1.0], [2.0], [6.0]]
    """
    return _kpca(X, kernel, k, seed, _as_flag("centered", centered))[0]


# 8.3 Derivatives and pre-images


def _derivative(name, kernel):
    """Kernel with values -2 dk / d(|x - y|^2), or dk / d(x.y). For exp(-a), it is a times that."""
    kind = _KINDS[kernel.kind]
    wanted = f"{name} must be polynomial or of the Euclidean distance, got {kind.name}"
    _require(kind.derivative, wanted)
    return kind.derivative(kernel)


def _gradients(X, E):
    """Yield (rows, j, gradients of feature j) for blocks of rows of X. With D from `_derivative`,
    they are sum_i coef_ij D_i (points_i - x). For kernels of x.y, the term with x is absent."""
    kernel = _derivative("model.kernel", E.kernel)
    P, Q, coef = _in_common_precision(X, E.points, _in_double(E.coef))
    center = Q.mean(0)  # far from the origin, points_i - x would lose digits
    terms = np.column_stack([Q - center, np.ones(len(Q))])
    for rows in _slabs(len(P), max(_BLOCK, 2**22 // len(Q))):  # 32 MB of kernel values
        D = _gram(kernel, P[rows], Q)
        if E.kernel.kind == _EXPONENTIAL:  # at a kink, take the mean of both sides
            a = np.log(kernel.scale / D)
            D /= np.where(a > 1e-8, a, math.inf)
        x = P[rows] * (E.kernel.kind != _POLYNOMIAL) - center
        for j, weights in enumerate(coef.T):
            G = _dense_product(D, weights[:, None] * terms)
            G = G[:, :-1] - G[:, -1:] * x
            _require(_all_below(G, 1e150), "gradients at X must be finite and below 1e150")
            yield rows, j, G


@_public
def gradient(X, model):
    """Gradients d f_j / d x_t of a model's features, in O(n c k d) time (textbook).

    Args:
        X: (n, d) array. Points.
        model: Expansion. Its kernel is polynomial or depends on the Euclidean distance.
    Returns:
        array: (n, k, d) in float64. At a kink of `laplacian`, it is the mean of both sides.
    Example:
        >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 0.0]])
        >>> gradient(X[:1], kpca(X, linear(), 1)).round(12).tolist()
        [[[1.0, 0.0]]]
    """
    X = _checked_points("X", X)
    E = _checked_expansion("model", model, X)
    out = _checked_out("X", None, (len(X), E.coef.shape[1], X.shape[1]), _DOUBLE[0], ())
    for rows, j, G in _gradients(X, E):
        out[rows, j] = G
    return out


@_validated("a Relevance")
class Relevance(NamedTuple):
    """columns: (d,), share of each column of X. components: (k, d), the same for each feature.
    mean_gradient: (k, d), mean over X of the gradient of each feature."""

    columns: np.ndarray
    components: np.ndarray
    mean_gradient: np.ndarray


def _shares(squares):
    total = squares.sum(-1, keepdims=True)
    return squares / (total + (total == 0.0))


@_public
def relevance(X, model):
    """Share of each column of X in the mean squared gradient of a model's features (textbook).

    The share of column t in feature j, in row j of `components`, is proportional to sum_i g_ijt^2,
    where g_ij is gradient(X, model)[i, j] (Radhakrishnan, Beaglehole, Pandit, Belkin 2024). This row
    tells which columns drive component j. Row j of `mean_gradient` tells their direction: a feature
    rises with a column if the mean is positive, and falls if it is negative. If the mean is small
    and the share is large, it rises at some points and falls at others. `columns` has shares in all
    features together. Standardize X first: otherwise gradients have the units of the columns.

    Args:
        X: (n, d) array. Points. A few thousand training points suffice.
        model: Expansion or fitted estimator. Its kernel is as in `gradient`.
    Returns:
        Relevance: Shares of the columns, and mean gradients. Shares are 0 if features are constant.
    Example:
        >>> X = np.array([[0.0, 6.0], [2.0, 4.0], [4.0, 5.0]])
        >>> found = relevance(X, nystrom_ridge(X, X[:, 0] - 3.0 * X[:, 1], X, linear(), 1e-9))
        >>> found.components.round(6).tolist()
        [[0.1, 0.9]]
        >>> found.mean_gradient.round(6).tolist()  # the prediction falls if column 1 rises
        [[1.0, -3.0]]
    """
    X = _checked_points("X", X)
    E = _checked_expansion("model", model, X)
    shape = E.coef.shape[1], X.shape[1]
    _fits("X", 16.0 * math.prod(shape))
    squares = np.zeros(shape)
    sums = np.zeros(shape)
    for _, j, G in _gradients(X, E):
        squares[j] += np.square(G).sum(0)
        sums[j] += G.sum(0)
    return Relevance(_shares(squares.sum(0)), _shares(squares), sums / len(X))


@_public
def gradient_outer_product(X, model):
    """Mean outer product M = (1/n) sum_ij g_ij g_ij^T of gradients of a model's features (textbook).

    g_ij is gradient(X, model)[i, j]. The shares of `relevance` are the diagonal of M, divided by its
    trace. For `scale_points`, M makes directions without influence short (see `learn_metric`).

    Args:
        X, model: See `relevance`.
    Returns:
        array: (d, d) in float64. Costs O(n k d (c + d)) time for c points of the model.
    Example:
        >>> X = np.array([[0.0, 0.0], [2.0, 2.0]])
        >>> gradient_outer_product(X, kpca(X, linear(), 1)).round(12).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    X = _checked_points("X", X)
    E = _checked_expansion("model", model, X)
    d = X.shape[1]
    _fits("X", 8.0 * d * d)
    sums = np.zeros((d, d))
    for _, _, G in _gradients(X, E):
        sums += _column_products(G, G)
    return sums / len(X)


def _root_of(M):
    """The symmetric square root of M."""
    values, V = _small_eigen(M)
    _require(
        np.abs(M - M.T).max() <= 1e-6 * values[0] >= -values[-1],
        "M must be symmetric and positive semidefinite",
    )
    return _dense_product(V * np.sqrt(values.clip(0.0)), V.T)


@_public
def scale_points(X, M):
    """Points X M^(1/2), with squared distances (x - y)^T M (x - y) (textbook).

    Args:
        X: (n, d) array. Points.
        M: (d, d) array. Symmetric and positive semidefinite.
    Returns:
        array: (n, d), in the precision of X.
    Example:
        >>> scale_points(np.array([[1.0, 1.0]]), np.diag([4.0, 0.0])).tolist()
        [[2.0, 0.0]]
    """
    X = _checked_points("X", X)
    d = X.shape[1]
    return _dense_product(X, _root_of(_in_double(_checked_points("M", M, d, rows=d))))


def _climb(gammas, Q, squares, gamma, start, iterations):
    """Iterate z <- sum_i w_i q_i / sum_i w_i, w_i = gammas_i k(z, q_i) (Mika et al. 1999, (10)).
    Steps that lower sum_i w_i = P . phi(z) are halved. Returns the start if it is not positive."""

    def weights(z):
        return gammas * np.exp(-gamma * np.maximum(squares - 2.0 * (Q @ z) + z @ z, 0.0))

    z = start
    w = weights(z)
    share = 1.0
    for _ in range(iterations):
        total = w.sum()
        step = share * (w @ Q - total * z) / max(total, 0.1 * np.abs(w).sum())
        if gamma * (step @ step) < 1e-20:
            break
        others = weights(z + step)
        share *= 0.5
        if others.sum() > total:
            z = z + step
            w = others
            share = 1.0
    return z if w.sum() > 0.0 else start


@_public
def kernel_pca_preimage(features, model, *, lam=0.0, max_iterations=1000):
    """Points with features close to given ones, to denoise or to invert `features` (textbook).

    Let x_i be the c points of the model. If lam = 0 (only for a Gaussian kernel), each point
    z solves z = sum_i w_i x_i / sum_i w_i with w_i = gamma_i k(z, x_i) (Mika et al. 1999). Here, P
    = sum_i gamma_i phi(x_i) has the given features. If P . phi(z) <= 0, z is the x_i with the
    closest features. If lam > 0, kernel ridge regression maps features to points (Bakir, Weston,
    Schoelkopf 2004). Unlike scikit-learn's inverse_transform, it centers features and points if the
    model is centered. A fixed-point step costs O(c d), and a regression O(c^3 + c^2 d) time.

    Args:
        features: (m, k) array. Features like the ones returned by `features`.
        model: Expansion. If lam = 0, a centered one must not come from `round_expansion`.
        lam: float, at least 0. Added to the diagonal of the features' Gram matrix.
        max_iterations: int, at least 1. Largest number of steps per point, for lam = 0.
    Returns:
        array: (m, d) points in float64.
    Example:
        >>> X = np.array([[0.0], [1.0], [2.0]])
        >>> model = kpca(X, gaussian(1.0), 2)
        >>> kernel_pca_preimage(features(X, model), model).round(6).tolist()
        [[0.0], [1.0], [2.0]]
    """
    E = _checked_expansion("model", model)
    kernel = E.kernel
    Y = _in_double(_checked_points("features", features, E.coef.shape[1]))
    lam = _checked_real("lam", lam, 0.0)
    max_iterations = _checked_count("max_iterations", max_iterations)
    _require(
        lam > 0.0 or kernel.kind == _GAUSSIAN,
        "lam must be positive unless the kernel is gaussian",
    )
    _require(_has_formula(kernel), "model.kernel must not be precomputed or custom")
    F, basis, W = _span_of(E)
    F = F + (0.0 if E.offset is None else E.offset)
    center = E.points.mean(0, np.float64)
    if lam == 0.0:
        _require(not _mean_is_unknown(E), "lam must be positive if model.mean is unknown")
        points = []
        Q = E.points - center
        mean = 0.0 if E.mean is None else E.mean
        squares = _squared_norms(Q)
        for y in Y:  # start at the point with the closest features
            start = Q[_squared_norms(F - y).argmin()]
            gammas = basis.coef[:, :-1] @ (y @ W) + mean  # P has the features y
            points.append(center + _climb(gammas, Q, squares, kernel.gamma, start, max_iterations))
        return np.array(points)
    if E.mean is not None or E.offset is not None:  # centers features and points
        Y = Y - F.mean(0)
        F = F - F.mean(0)
    else:
        center = 0.0
    K = _gram(kernel, F)
    _require(_all_below(K, 1e300), "model.kernel must have finite values on the features")
    weights = _solve_ridge(K, E.points - center, lam)
    out = center + _gram_product(kernel, Y, F, weights)
    _require_finite("values of model.kernel on the features", out)
    return out


# --------------------------------------------------------------------------------------------------
# 9. Sampling techniques (AMS)
#
# Functions follow the paper's sections 3 to 6. Entries (i, j) and (j, i) share a random number.

_BANDS = 64  # runs of rows with equal numbers of pairs, one run per task


@_helper
def _band_start(band, n):
    """The first row of a band. Bands cut the triangle above the diagonal into equal areas."""
    return np.int64(n * (1.0 - math.sqrt(1.0 - band / _BANDS)))


@_strict_helper
def _kept(key, i, log_miss, n, columns):
    """Write the kept columns j >= i of row i, and return their number. log_miss = log(1 - 1/s)."""
    row = _subkey(key, i)
    j = i
    count = 0
    while j < n:
        end = min(n, count + 16)  # gaps are drawn together, in a loop that vectorizes
        for c in range(count, end):  # min avoids overflow of a gap
            columns[c] = np.int64(min(_log64(_uniform(row, c)) / log_miss, 4.0e18))
        for c in range(count, end):
            j += columns[c]
            if j >= n:
                return c
            columns[c] = j
            j += 1
        count = end
    return count


@_core
def _count_kept(keep, log_miss, n, upper, lower):
    """Count kept entries per row, and their mirror images per row and band of columns."""
    for index in prange(_BANDS):
        band = np.int64(index)
        columns = np.empty(n, np.int64)
        for i in range(_band_start(band, n), _band_start(band + 1, n)):
            upper[i] = _kept(keep, i, log_miss, n, columns)
            for c in range(upper[i]):
                if columns[c] > i:
                    lower[band + 1, columns[c]] += 1


@_core
def _write_kept(kernel, X, s, keep, coin, bound, log_miss, upper, lower, sketch):
    data, indices, indptr = sketch  # numba may lose stores to arrays unpacked inside the loop
    for index in prange(_BANDS):
        _wide_vectors()
        band = np.int64(index)
        n = len(X)
        columns = np.empty(n, np.int64)
        values = np.empty((_blocks(n) + 1) * _BLOCK, X.dtype)
        place = lower[band]
        base = _BASES[kernel.kind]
        for i in range(_band_start(band, n), _band_start(band + 1, n)):
            count = min(_kept(keep, i, log_miss, n, columns), upper[i])
            if base == _EVERY_PAIR:
                for c in range(count):
                    values[c] = _pair_value(kernel, X[i], X[columns[c]])
            else:
                for c in range(count):
                    values[c] = _pair_sum(base, X[i], X[columns[c]], X.dtype.type(0))
                _apply_kernel(kernel, values.reshape(-1, _BLOCK), _blocks(count), _BLOCK)
            row = _subkey(coin, i)
            at = indptr[i + 1] - count
            for c in range(count):
                j = columns[c]
                value = s * values[c]
                if bound >= 0.0:  # a random sign, so that data has mean values[c]
                    heads = _uniform(row, j) * 2.0 * bound < bound + values[c]
                    value = s * (bound if heads else -bound)
                data[at + c] = value
                indices[at + c] = j
                if j > i:  # mirror image; columns rise in each row, because bands are in order
                    mirror = indptr[j] + place[j]
                    data[mirror] = value
                    indices[mirror] = i
                    place[j] += 1


def _entry_bound(kernel, X):
    """max |K_ij|. The maximum is on the diagonal unless the kernel is custom or precomputed."""
    bound = _value_limit(kernel, X)
    if not _has_formula(kernel):
        slabs = _slabs(len(X), _BLOCK)
        bound = np.max([np.abs(_gram(kernel, X[rows], X)).max() for rows in slabs])
    _require_finite("kernel values on X", bound)
    return float(bound)


def _sampled_gram(X, kernel, s, seed, quantized):
    from scipy.sparse import csr_array  # the import takes 0.1 s

    X, kernel = _points_and_kernel(X, kernel)
    n = len(X)
    s = _checked_real("s", s, 1.0)
    keep = _checked_key(seed, _KEEP)
    coin = _checked_key(seed, _ROUND_KEPT)
    place = np.int32 if n**2 / s <= 0.99 * _MOST else np.int64  # csr_array has one type for both
    _fits("s", (np.dtype(place).itemsize + X.itemsize) * n**2 / s)
    bound = _entry_bound(kernel, X) if quantized else -1.0
    log_miss = np.log1p(-1.0 / s)  # -inf for s = 1: no gaps
    upper = np.zeros(n, np.int64)
    lower = np.zeros((_BANDS + 1, n), np.int64)
    entries = 0.5 * n * (n + 1.0) / s
    _count_kept(5.0 * entries, keep, log_miss, n, upper, lower)
    np.cumsum(lower, 0, out=lower)
    indptr = np.append(0, np.cumsum(lower[_BANDS] + upper))
    sketch = _new_array((indptr[n],), X.dtype), _new_array((indptr[n],), place), indptr
    each = 18.0 + (_CUSTOM_VALUE if kernel.kind == _CUSTOM else _SCALAR * X.shape[1])
    _write_kept(each * entries, kernel, X, s, keep, coin, bound, log_miss, upper, lower, sketch)
    _require_finite("s times kernel values on X", sketch[0])
    return csr_array((*sketch[:2], indptr.astype(place, copy=False)), (n, n))


@_public
def sample_gram(X, kernel, s, seed=0):
    """Entry-sampled Gram matrix: s K_ij with probability 1 / s, else 0, as csr_array (AMS 3).

    The sketch has mean K and variances (s - 1) K_ij^2. Entries with i <= j are independent. The
    spectral norm of the error is about 2 sqrt((s - 1) n) max |K_ij|, and with high probability at
    most twice as large (AMS theorem 1). Costs O(n d + n^2 d / s) time. A kept entry takes 12 bytes.

    Args:
        X: (n, d) array. Points. For `precomputed(K)`, pass (n, 1) row numbers.
        kernel: Kernel.
        s: float, at least 1. Inverse of the probability of keeping an entry.
        seed: int from 0 to 2**64 - 1. Seed of the random numbers.
    Returns:
        csr_array: (n, n), symmetric, with data in the precision of X and rising int32 indices.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((400, 2))
        >>> A = sample_gram(X, gaussian(2.0), 4.0)
        >>> K = gram(X, X, gaussian(2.0))
        >>> bool(np.allclose(A.data, 4.0 * K[dense(A) > 0.0]))
        True
        >>> round(A.data.size / K.size, 2)
        0.25
    """
    return _sampled_gram(X, kernel, s, seed, False)


@_public
def sample_quantize_gram(X, kernel, s, seed=0):
    """Sampled Gram matrix with entries rounded to +s b or -s b, in a sparse array (AMS section 3).

    An entry is kept with probability 1 / s. It is then +s b with probability 1/2 + K_ij / (2 b),
    else -s b. For custom and precomputed kernels, all of K is evaluated to find b = max |K_ij|. The
    mean is K, and variances are s b^2 - K_ij^2. `sample_gram` has a smaller error.

    Args:
        X, kernel, s: See `sample_gram`.
        seed: int from 0 to 2**64 - 1. `sample_gram` keeps the same pairs for the same seed.
    Returns:
        csr_array: (n, n), symmetric, with data in the precision of X and rising int32 indices.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((400, 2))
        >>> np.unique(sample_quantize_gram(X, gaussian(2.0), 4.0).data).tolist()
        [-4.0, 4.0]
    """
    return _sampled_gram(X, kernel, s, seed, True)


@_core
def _round_words(kernel, pairs, slope, coin, places, words):
    for index in prange(len(places)):
        _wide_vectors()
        tile = _new_tile(pairs.X)
        up = np.zeros(_BLOCK, np.uint32)
        first, last, begin, end = _tile_place(places, np.int64(index), pairs.X, pairs.Y)
        _fill_tile(kernel, pairs, first, last, begin, end, tile)
        for i in range(first, last):
            key = _subkey(coin, i)
            for c in range(end - begin):
                up[c] = _uniform(key, begin + c) < 0.5 + slope * tile[i - first, c]
            up[: max(0, i - begin)] = 0  # mirror images fill the lower half
            for c in range(end - begin):
                words[i // 32, begin + c] |= up[c] << np.uint32(i % 32)
            for c in range(0, end - begin, 32):  # the row as a column, 32 rows per word
                word = np.uint32(0)
                for r in range(32):
                    word |= up[c + r] << np.uint32(r)
                words[(begin + c) // 32, i] |= word


@_public
def quantize_gram(X, kernel, seed=0):
    """Gram matrix rounded to one bit per entry, as Bits of n^2 / 8 bytes (AMS section 3).

    K^_ij is +b with probability 1/2 + K_ij / (2 b), else -b, where b = max |K_ij|. Entries with i
    <= j are independent, with mean K_ij and variance b^2 - K_ij^2. The spectral norm of the error
    is about 2 b sqrt(n) or less, and with high probability at most 4 b sqrt(n) (AMS theorem 1).
    Evaluates n (n + 1) / 2 kernel values. A custom or precomputed kernel needs n^2 more to find b.

    Args:
        X, kernel, seed: See `sample_gram`.
    Returns:
        Bits: the rounded matrix, which is symmetric.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((400, 2))
        >>> A = quantize_gram(X, gaussian(2.0))
        >>> np.unique(dense(A)).tolist()
        [-1.0, 1.0]
        >>> nbytes(gram(X, X, gaussian(2.0))) // nbytes(A)  # 64 for a multiple of 32 points
        61
    """
    X, kernel = _points_and_kernel(X, kernel)
    key = _checked_key(seed, _ROUND_UP)
    _fits("X", 0.125 * len(X) ** 2)
    bound = _entry_bound(kernel, X)
    words = np.zeros((_ceil_div(len(X), 32), len(X)), np.uint32)
    pairs = _prepare(kernel, X, X, True)
    places = _tile_places(X, X, True)
    slope = 0.5 / (bound or 1.0)
    _round_words(_tile_work(kernel, pairs, 4.0), kernel, pairs, slope, key, places, words)
    return Bits(words, bound, len(X))


def _column_lengths(A):
    """Euclidean lengths of the columns, without overflow or underflow."""
    unit = _unit_of(A, 0)
    return unit * np.linalg.norm(A / unit, axis=0)


@_public
def round_expansion(expansion, s, seed=0):
    """Expansion whose coefficients are rounded at random, most of them to 0 (AMS section 4).

    Let a be a unit vector. If |a_i| >= 1 / s, a_i is not changed. Otherwise, it becomes sign(a_i) /
    s with probability s |a_i|, else 0. If |k| <= c, this changes the feature sum_i a_i k(x_i, x) by
    t or more with probability at most 2 exp(-2 s^2 t^2 / (m c^2)). Other columns of coefficients
    are scaled to unit length, rounded and scaled back. All columns use the same random numbers, so
    they keep many points in common. Points without a coefficient are dropped.

    Args:
        expansion: Expansion. Its m coefficients of a component are one vector a.
        s: float, positive. On average, at most s |a|_1 / |a|_2 <= s sqrt(m) terms remain.
        seed: int from 0 to 2**64 - 1. Seed of the random numbers.
    Returns:
        Expansion: has at least one point, and the same offset. If it is centered, its mean is not
            known, because the mean used points that were dropped.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((400, 2))
        >>> model = kpca(X, gaussian(2.0), 1)
        >>> rounded = round_expansion(model, 4.0)
        >>> len(rounded.points) < 100
        True
        >>> bool(np.corrcoef(features(X, rounded)[:, 0], features(X, model)[:, 0])[0, 1] > 0.95)
        True
    """
    E = _checked_expansion("expansion", expansion)
    s = _checked_real("s", s, 1e-300)
    key = _checked_key(seed, _ROUND_COEFFICIENTS)
    coef = _in_double(_checked_points("expansion.coef", E.coef))
    sizes = np.abs(coef)
    steps = _column_lengths(coef) / s
    kept = _uniforms(key, np.arange(len(coef)))[:, None] * steps < sizes  # true where steps <= |a|
    rounded = np.where(kept, np.copysign(np.maximum(sizes, steps), coef), 0.0)
    rounded = rounded.astype(E.coef.dtype)  # finite: a step above 1e16 |a| is never kept
    remains = rounded.any(1)
    remains[0] |= not remains.any()  # keeps one point if all are dropped
    return E._replace(points=E.points[remains], coef=rounded[remains], mean=None)


@_public(sparse=True)
def rademacher_projection(X, s, seed=0):
    """Random projection X P / sqrt(s) by a matrix P (d, s) of independent signs +1 and -1.

    Let s >= (4 + 2 beta) ln n / (eps^2 / 2 - eps^3 / 3). With probability 1 - n^-beta, all squared
    distances of n points then change by at most a factor 1 +- eps, and inner products by at most
    eps (|x|^2 + |y|^2) / 2 (AMS theorem 6). The paper misprints the scale as 1 / sqrt(d). P depends
    only on the seed, so new points can be projected later. Costs O(n d s) time.

    Args:
        X: (n, d) array or scipy sparse matrix. Points.
        s: int, at least 1. Number of dimensions after projection.
        seed: int from 0 to 2**64 - 1. Seed of the random numbers.
    Returns:
        array: (n, s) projected points, in the precision of X, or in float64 if X is sparse.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((2, 5000))
        >>> P = rademacher_projection(X, 1000)
        >>> bool(abs(np.linalg.norm(P[0] - P[1]) / np.linalg.norm(X[0] - X[1]) - 1.0) < 0.1)
        True
    """
    X = _checked_points("X", X)
    n, d = X.shape
    s = _checked_count("s", s, _MOST)
    key = _checked_key(seed, _SIGNS)
    _fits("s", 8.0 * n * s)
    signs = np.array([1.0, -1.0] / np.sqrt(s), X.dtype)
    keys = _words(key, np.arange(d)[:, None])
    sums = np.zeros((n, s))
    for columns in _slabs(d, max(_WIDE_BLOCK, 2**20 // s)):
        part = X[:, columns]
        if not _is_sparse(X):
            part = np.ascontiguousarray(part)
        for across in _slabs(s, 2**11):  # 8 MB of signs
            # The sign (t, j) is bit j of the words of coordinate t.
            words = np.arange(across.start, min(s, across.stop), 64) // 64
            bits = _words(keys[columns], words).view(np.uint8)
            wide = sums[:, across]
            P = signs[np.unpackbits(bits, axis=1, count=wide.shape[1], bitorder="little")]
            wide += part @ P if _is_sparse(X) else _dense_product(part, P)
    return _checked_points("X and its projection", sums.astype(X.dtype, copy=False))


# --------------------------------------------------------------------------------------------------
# 10. Reduced sets (RSKPCA)
#
# A reduced set represents n points by m centers c_j. Center c_j has weight w_j, and the weights sum
# to n. Kernel methods give the same results for a reduced set as for w_j copies of each c_j.


@_validated(
    "a ReducedSet of dense centers with a weight for each center, and labels in one dimension",
    lambda made: (
        not _is_sparse(made.centers)
        and len(made.centers) == made.weights.size
        and (made.labels is None or made.labels.ndim == 1)
    ),
    centers="finite",
    weights=1,
    labels="whole",
)
class ReducedSet(NamedTuple):
    """Weighted centers. centers: (m, d). weights: (m,), nonnegative. labels: (n,), the index of each
    point's center, or None. names: the columns of the frame, if there is one, in JSON.
    `ReducedSet(X, weights)` makes centers of weighted points."""

    centers: np.ndarray
    weights: np.ndarray
    labels: np.ndarray = None
    names: bytes = b""


# 10.1 Shadows (RSKPCA section 4)


# Numba 0.68 uses FMA with fastmath=False.
@_while_compiling()(njit(fastmath=set(), forceinline=True, **_OPTIONS))
def _is_within(X, i, C, j, limit):
    """Whether |x_i - c_j|^2 < limit, in float64, in the order of coordinates and without FMA."""
    total = 0.0
    for t in range(X.shape[1]):
        gap = X[i, t] - C[j, t]
        total += gap * gap
    return total < limit


@_core
def _find_shadows(X, P, rows, centers, panels, first, count, limit, labels):
    """Label rows of X with the first of the centers first to count - 1 within the limit. P and
    `panels`: points and packed centers in float32, which takes half the time of float64."""
    for index in prange(_blocks(len(rows))):
        _wide_vectors()
        d = X.shape[1]
        width = panels.shape[2]
        begin, end = _block(index, len(rows))
        numbers = rows[begin:end].copy()
        left = len(numbers)
        values = _aligned((4 * width,), panels)
        tile = values.reshape(4, width)
        active = _aligned((left, d), panels)
        for r in range(left):
            for t in range(d):
                active[r, t] = P[numbers[r], t]
        perhaps = np.float32(1.0 + 0.003 * math.sqrt(d))
        for q in range(first // width, _ceil_div(count, width)):
            for r in range((left - 1) // 4 * 4, -1, -4):
                _squared_distances(active, r, left - 1, 0, d, panels[q], tile, 0, 0)
                near = np.float32(0.0)  # a count. An int64 would halve the speed.
                for value in values:
                    near += np.float32(value < perhaps)
                for row in range(min(left, r + 4) - 1 if near else -1, r - 1, -1):
                    for c in range(width):
                        j = q * width + c
                        if (
                            tile[row - r, c] < perhaps
                            and j < count
                            and _is_within(X, numbers[row], centers, j, limit)
                        ):
                            labels[numbers[row]] = j
                            left -= 1  # the last point moves here, already compared
                            numbers[row] = numbers[left]
                            for t in range(d):
                                active[row, t] = active[left, t]
                            break


@_core_alone
def _enter(X, P, rows, centers, panels, first, count, limit, labels):
    """RSKPCA algorithm 2 on rows in no shadow of centers before `first`. Returns the new count."""
    width = panels.shape[2]
    for i in rows:
        for j in range(first, count):
            if _is_within(X, i, centers, j, limit):
                labels[i] = j
                break
        if labels[i] < 0:
            labels[i] = count
            for t in range(X.shape[1]):
                centers[count, t] = X[i, t]
                panels[count // width, t, count % width] = P[i, t]
            count += 1
    return count


def _shadows(X, known, eps, grow):
    """Centers and labels by RSKPCA algorithm 2. It starts with `known` centers and adds more if
    `grow`. Batches do not affect the results, since `_is_within` decides near eps."""
    X = _in_double(X)
    n, d = X.shape
    limit = eps * eps
    origin = np.median(X[:: n // 1000 + 1], axis=0)
    count = len(known)
    capacity = count + n if grow else count
    width = _WIDE_PANEL // 4
    centers = np.empty((capacity, d))
    panels = np.zeros((_ceil_div(capacity, width), d, width), np.float32)

    # Float32 distances between points in units of eps, relative to an origin, exclude most centers.
    # At 1e4 units or less, rounding changes squared distances of 1 by at most .003 sqrt(d).
    def in_units(points):
        return np.clip((points - origin) / eps, -1e4, 1e4).astype(np.float32)

    _enter(
        known, in_units(known), np.arange(count), centers, panels, count, 0, 0.0, np.full(count, -1)
    )
    labels = np.full(n, -1)
    for batch in _slabs(n, _SLAB):
        points = X[batch]
        P = in_units(points)
        found = labels[batch]
        rows = np.arange(len(points))
        first = 0
        while rows.size:
            work = rows.size * (0.2 + 0.025 * d) * (count - first)
            _find_shadows(work, points, P, rows, centers, panels, first, count, limit, found)
            if not grow:
                break
            # New centers are found on one thread. All threads compare later rows with them.
            rows = rows[found[rows] < 0]
            first = count
            now, rows = np.split(rows, [_BLOCK])
            count = _enter(points, P, now, centers, panels, first, count, limit, found)
    return centers[:count].copy(), labels


@_public
def shadow_select(X, eps):
    """Reduced set with a new center at each point that has no earlier center closer than eps.
    This is RSKPCA algorithm 2. It takes at most n m distances. `shadow_bounds` bounds the errors.

    Args:
        X: (n, d) array. Points. The result depends on their order.
        eps: float from 1e-150 to 1e150. Radius of a shadow in the units of the points.
    Returns:
        ReducedSet: Centers are rows of X in the order of X, at least eps apart. Weights sum to n.
    Example:
        >>> found = shadow_select(np.array([[0.0], [0.4], [3.0], [0.6]]), 0.5)
        >>> found.centers.tolist(), found.weights.tolist(), found.labels.tolist()
        ([[0.0], [3.0], [0.6]], [2.0, 1.0, 1.0], [0, 0, 1, 2])
    """
    X = _checked_points("X", X)
    eps = _checked_real("eps", eps, 1e-150, 1e150)
    centers, labels = _shadows(X, np.empty((0, X.shape[1])), eps, True)
    return ReducedSet(centers.astype(X.dtype), _in_double(np.bincount(labels)), labels)


@_public
def shadow_labels(X, centers, eps):
    """Index of the first center closer than eps to each point, or -1 (RSKPCA (16)).

    Args:
        X: (n, d) array. Points. Points given to `shadow_select` get the same labels again.
        centers: (m, d) array. Centers in the order in which they were selected.
        eps: float from 1e-150 to 1e150. Radius of a shadow in the units of the points.
    Returns:
        array: (n,) in int64. Indices of centers, or -1.
    Example:
        >>> shadow_labels(np.array([[0.9], [9.0]]), np.array([[0.0], [1.0]]), 0.5).tolist()
        [1, -1]
    """
    X, centers = _checked_two(X, "centers", centers)
    return _shadows(X, _in_double(centers), _checked_real("eps", eps, 1e-150, 1e150), False)[1]


def _shadow_update(state, X):
    centers, labels = _shadows(X, state.centers, state.eps, True)
    weights = _in_double(np.bincount(labels, minlength=len(centers)))
    weights[: state.weights.size] += state.weights
    return state._replace(centers=centers, weights=weights, count=state.count + len(X))


def _shadow_finish(state):
    return ReducedSet(state.centers.copy(), state.weights.copy())


@_stream(columns=lambda state: state.centers.shape[1], update=_shadow_update, finish=_shadow_finish)
@_validated(
    "a ShadowState returned by shadow_start or update",
    lambda state: len(state.centers) == state.weights.size,
    weights=1,
)
class ShadowState(NamedTuple):
    """Shadows of a stream. centers: (m, d). weights: (m,). eps: radius. count: points so far. The
    split of the stream into calls does not change the state. In addition to the distances, a call
    of `update` costs O(m d) time."""

    centers: np.ndarray
    weights: np.ndarray
    eps: float
    count: int
    names: bytes = b""


@_public
def shadow_start(eps, d):
    """Start the selection of shadows from a stream (RSKPCA algorithm 2).

    `update` adds points, and `finish` returns a ReducedSet in float64 and without labels. To get
    labels, call `shadow_labels`.

    Args:
        eps: float from 1e-150 to 1e150. Radius of a shadow in the units of the points.
        d: int, at least 1. Number of coordinates of a point.
    Returns:
        ShadowState: The state before the first point.
    Example:
        >>> state = shadow_start(0.5, 1)
        >>> for part in (np.array([[0.0], [0.4]]), np.array([[3.0], [0.1]])):
        ...     state = update(state, part)
        >>> finish(state).weights.tolist()
        [3.0, 1.0]
    """
    d = _checked_count("d", d, _MOST)
    return ShadowState(np.empty((0, d)), np.empty(0), _checked_real("eps", eps, 1e-150, 1e150), 0)


@_validated("ShadowBounds")
class ShadowBounds(NamedTuple):
    """Three bounds on errors, each a float. They are explained in `shadow_bounds`."""

    mmd: float
    eigenvalues: float
    operator: float


@_public
def shadow_bounds(kernel, eps):
    """Sharp bounds on errors if points move by less than eps (RSKPCA theorems 5.1 to 5.3).

    Let kappa = k(x, x), let phi be k at distance eps, and let L be the steepest slope of k. Then
    `mmd` is at most sqrt(2 (kappa - phi)). `operator_distance` is at most sqrt(2 (kappa^2 -
    phi^2)). The eigenvalues of K / n change by at most min(sqrt(2) L eps, kappa) in Euclidean norm.
    Theorem 5.2 as printed fails for exp(-|x - y|^2 / sigma^2). 5.3 misprints sqrt(kappa) as kappa.

    Args:
        kernel: Kernel. gaussian, laplacian (norm 2), matern, rational_quadratic or cauchy.
        eps: float from 1e-150 to 1e150. Radius of a shadow in the units of the points.
    Returns:
        ShadowBounds: The bounds mmd, eigenvalues and operator.
    Example:
        >>> X = np.array([[0.0], [0.4], [3.0], [0.6]])
        >>> kernel = gaussian(1.0)
        >>> round(mmd(X, shadow_select(X, 0.5), kernel), 4)
        0.098
        >>> round(shadow_bounds(kernel, 0.5).mmd, 4)
        0.4848
    """
    kernel = _checked_stationary("kernel", kernel, True)
    eps = _checked_real("eps", eps, 1e-150, 1e150)
    kappa = kernel.scale
    kind = _KINDS[kernel.kind]
    drop = kind.drop(kernel, eps)
    spread = min(math.sqrt(2.0) * kind.slope(kernel) * eps, 1.0)  # no change exceeds kappa
    operator = kappa * math.sqrt(2.0 * drop * (2.0 - drop))
    return ShadowBounds(math.sqrt(kappa) * math.sqrt(2.0 * drop), kappa * spread, operator)


# 10.2 Other reduced sets (RSKPCA section 6)


@_core
def _find_nearest(X, panels, count, labels, distances):
    """Update labels and squared distances with `count` centers. Ties go to the first center."""
    for index in prange(_blocks(len(X))):
        _wide_vectors()
        width = panels.shape[2]
        tile = _new_tile(X)
        first, last = _block(index, len(X))
        for q in range(_ceil_div(count, width)):
            for r in range(0, last - first, 4):
                _squared_distances(X, first + r, last - 1, 0, X.shape[1], panels[q], tile, r, 0)
            for i in range(first, last):
                for c in range(min(width, count - q * width)):
                    if tile[i - first, c] < distances[i]:
                        labels[i] = q * width + c
                        distances[i] = tile[i - first, c]


def _nearest(X, centers):
    labels = np.zeros(len(X), np.int64)
    distances = np.full(len(X), math.inf, X.dtype)
    work = (1.0 + _MULTIPLY_ADD * X.shape[1]) * len(X) * len(centers)
    _find_nearest(work, X, _pack(centers), len(centers), labels, distances)
    return labels, distances


@_core
def _come_closer(X, center, distances):
    """distances[i] <- min(distances[i], |x_i - center|^2)."""
    for index in prange(_blocks(len(X))):
        _wide_vectors()
        first, last = _block(index, len(X))
        for i in range(first, last):
            square = _pair_sum(_DISTANCES, X[i], center, 0.0)
            distances[i] = min(distances[i], square)


def _spread_rows(X, k, key):
    """Rows by k-means++: probabilities are proportional to squared distances from earlier rows."""
    n, d = X.shape
    draws = _uniforms(key, np.arange(k))
    rows = [int(draws[0] * n)]
    distances = np.full(n, np.inf)
    for draw in draws[1:]:
        _come_closer((1.0 + _SCALAR * d) * n, X, X[rows[-1]], distances)
        sums = np.cumsum(distances)
        rows.append(int(np.searchsorted(sums, draw * sums[-1])))
    return rows


def _weighted_sums(kernel, X, Y, weight, symmetric=False):
    """weight times sum_j k(x_i, y_j) for every i, in float64, without forming a matrix."""
    weights = np.full((len(Y), 1), weight, Y.dtype)
    return _in_double(_gram_product(kernel, X, Y, weights, symmetric)[:, 0])


def _means_of(kernel, X):
    """Prepared pairs of points of X, and (1/n) sum_j k(x_i, x_j) for every i."""
    means = _weighted_sums(kernel, X, X, 1.0 / len(X), True)
    _require_finite("kernel values on X", means)
    return _prepare(kernel, X, X, True), means


def _move_to_means(centers, X, labels):
    """Replace each center by the mean of its points. A center without points does not move."""
    from scipy.sparse import csc_array  # the import takes 0.1 s

    members = csc_array((np.ones(len(X)), labels, np.arange(len(X) + 1)), (len(centers), len(X)))
    sums = members @ X
    counts = np.bincount(labels, minlength=len(centers))
    filled = counts > 0
    centers[filled] = sums[filled] / counts[filled, None]


def _lloyd(name, X, k, seed, restarts, max_iterations):
    """Centers, labels and sum of squared distances from the best of several k-means runs."""
    key = _checked_key(seed, _CENTERS)
    restarts = _checked_count("restarts", restarts)
    max_iterations = _checked_count("max_iterations", max_iterations)
    unit = 2.0 ** math.frexp(_unit_of(X))[1]  # no rounding errors
    X = X / unit
    least = math.inf
    for restart in range(restarts):
        centers = X[_spread_rows(X, k, _python_subkey(key, restart))]
        labels, distances = _nearest(X, centers)
        for _ in range(max_iterations):
            _move_to_means(centers, X, labels)
            before = labels
            labels, distances = _nearest(X, centers)
            if np.array_equal(labels, before):
                break
        else:  # the limit: centers are the means of the labels before
            _move_to_means(centers, X, labels)
            distances = np.square(X - centers[labels])
        cost = distances.sum(dtype=np.float64)
        if cost < least:
            least = cost
            best = centers * unit, labels, cost * unit**2
    used = np.unique(best[1]).size
    if used < k:
        warnings.warn(
            f"{name}: only {used} of {k} clusters have points: fewer than {k} points may be distinct",
            stacklevel=_USERS_LINE + 1,
        )
    return best


@_public
def kmeans_select(X, m, seed=0, *, restarts=1, max_iterations=300):
    """Reduced set, or landmarks, by k-means (Zhang, Tsang, Kwok 2008; RLS section 3.1).

    Args:
        X: (n, d) array. Points.
        m: int from 1 to n. Number of centers.
        seed: int from 0 to 2**64 - 1. Seed of the k-means++ starts (Arthur, Vassilvitskii 2007).
        restarts: int, at least 1. Number of runs. The best one is returned.
        max_iterations: int, at least 1. Limit on Lloyd iterations. Each costs O(n m d) time.
    Returns:
        ReducedSet: Cluster means. A center that loses all its points is kept with weight 0, and a
            warning says so. At the limit, points may be closer to another center than to theirs.
    Example:
        >>> found = kmeans_select(np.array([[0.0], [2.0], [9.0], [10.0], [11.0]]), 2)
        >>> sorted(zip(found.centers[:, 0].tolist(), found.weights.tolist()))
        [(1.0, 2.0), (10.0, 3.0)]
    """
    X = _checked_points("X", X)
    m = _checked_count("m", m, len(X))
    centers, labels, _ = _lloyd("kmeans_select", X, m, seed, restarts, max_iterations)
    return ReducedSet(centers, _in_double(np.bincount(labels, minlength=m)), labels)


def _checked_choice(X, m, kernel):
    X, kernel = _points_and_kernel(X, kernel)
    return X, _checked_count("m", m, len(X)), kernel._replace(scale=1.0)


@_core_alone
def _choose(kernel, pairs, means, diagonal, sizes, rows, sums, taken):
    """Replace each row, or -1, by the best point that is not in `rows`. With s = the sum of k(x, .)
    over the other rows, the best point minimizes (2 s + diagonal) / size - 2 mean."""
    n = len(means)
    tile = _new_tile(pairs.X)
    for t in range(len(rows)):
        for sign in (-1.0, 1.0):
            if sign > 0.0:
                rows[t] = (taken + (2.0 * sums + diagonal) / sizes[t] - 2.0 * means).argmin()
            row = rows[t]
            if row < 0:
                continue
            for begin in range(0, n, _BLOCK):
                end = min(n, begin + _BLOCK)
                _fill_tile(kernel, pairs, row, row + 1, begin, end, tile)
                for j in range(begin, end):
                    sums[j] += sign * tile[0, j - begin]
            taken[row] = np.inf if sign > 0.0 else 0.0


def _herd_of(X, kernel, rows):
    """Reduced set of the given rows with equal weights. Labels minimize k(c, c) - 2 k(x, c)."""
    C = X[rows]
    if _KINDS[kernel.kind].drop:  # k decreases with the distance
        labels = _nearest(X, C)[0]
    else:
        squares = _in_double(_diagonal(C, kernel))
        labels = np.concatenate(
            [(squares - 2.0 * _gram(kernel, X[rows], C)).argmin(1) for rows in _slabs(len(X), 2048)]
        )
    return ReducedSet(C, np.full(len(C), len(X) / len(C)), labels)


@_public
def herd(X, kernel, m):
    """Reduced set by kernel herding (Chen, Welling, Smola 2010; RSKPCA section 6).

    Center t + 1 maximizes (1/n) sum_i k(x_i, x) - (1/(t+1)) sum_{s <= t} k(c_s, x) over the points
    not chosen before. Costs n^2 / 2 + 2 n m kernel values.

    Args:
        X: (n, d) array. Points.
        kernel: Kernel.
        m: int from 1 to n. Number of centers. The first j centers are the result for m = j.
    Returns:
        ReducedSet: Centers have weight n / m. Labels give the nearest center in feature space.
    Example:
        >>> found = herd(np.array([[0.0], [0.1], [-0.1], [5.0]]), gaussian(1.0), 2)
        >>> found.centers.tolist(), found.labels.tolist()
        ([[0.0], [5.0]], [0, 0, 0, 1])
    """
    X, m, kernel = _checked_choice(X, m, kernel)
    pairs, means = _means_of(kernel, X)
    none, sums, taken = np.zeros((3, len(X)))
    chosen = np.full(m, -1)
    _choose(kernel, pairs, means, none, np.arange(1, m + 1), chosen, sums, taken)
    return _herd_of(X, kernel, chosen)


@_core_alone
def _choose_sides(K, sums, log_inverse, key, first, spread, sides):
    """KT-SPLIT of a run of pairs of rows with Gram matrix K: draws sides, and returns the spread of
    the set after the run. sums: for each row, sums of k times the side over earlier runs."""
    for i in range(0, len(K) - 1, 2):
        square = max(0.0, K[i, i] - K[i, i + 1] - K[i + 1, i] + K[i + 1, i + 1])
        limit = math.sqrt(2.0 * square * log_inverse) * math.sqrt(spread)
        limit = max(limit, square) or 1.0
        spread += max(0.0, square * (1.0 + (square / limit - 2.0) * (spread / limit)))
        lead = sums[i] - sums[i + 1]
        for j in range(i):
            lead += sides[j] * (K[i, j] - K[i + 1, j])
        sides[i] = 1.0 if _uniform(key, first + i) < 0.5 - 0.5 * lead / limit else -1.0
        sides[i + 1] = -sides[i]
    return spread


def _halve(kernel, X, rows, starts, key, log_inverse):
    """A round of KT-SPLIT in the sets X[rows[starts[k]:starts[k + 1]]]. One random swap per pair of
    rows balances sums of k over both halves. Returns whether each row is in the second half."""
    sides = np.zeros(rows.size)  # 1 in the second half, -1 in the first
    for start, stop in zip(starts, starts[1:]):
        P = X[rows[start:stop]]
        of_set = sides[start:stop]
        spread = 0.0
        for run in _slabs(len(P), 2 * _BLOCK):
            sums = np.zeros(len(P[run]))
            if run.start:
                earlier = of_set[: run.start, None]
                sums = _in_double(_gram_product(kernel, P[run], P[: run.start], earlier)[:, 0])
            K = _in_double(_gram(kernel, P[run]))
            first = start + run.start
            spread = _choose_sides(K, sums, log_inverse, key, first, spread, of_set[run])
    return sides > 0.0


def _thinned(X, m, kernel, key, delta):
    n = len(X)
    rounds = int(math.log2(n // m))
    pairs, means = _means_of(kernel, X)
    rows = _draw_uniformly(n, m * 2**rounds, _python_subkey(key, 0))
    at_random = rows[:m]  # standard thinning, the baseline
    for level in range(rounds):
        log_inverse = math.log(rounds * m * 2.0 ** (rounds - level + 1)) - math.log(delta)
        starts = np.arange(2**level + 1) * (rows.size >> level)
        second = _halve(kernel, X, rows, starts, _python_subkey(key, level + 1), log_inverse)
        rows = rows[np.argsort(second, kind="stable")]

    def error(rows):  # MMD^2 between X and these rows with equal weights, up to a constant
        own = _weighted_sums(kernel, X[rows], X[rows], 1.0).sum()
        return own / (m * m) - 2.0 * means[rows].sum() / m

    best = min([at_random, *rows.reshape(-1, m)], key=error)
    sums = _weighted_sums(kernel, X, X[best], 1.0)
    diagonal = _in_double(_diagonal(X, kernel))
    taken = np.zeros(n)
    taken[best] = math.inf
    _choose(kernel, pairs, means, diagonal, np.full(m, m), best, sums, taken)  # KT-SWAP
    return best


@_public
def kernel_thin(X, kernel, m, seed=0, *, delta=None):
    """Reduced set for RSKPCA by kernel thinning (Dwivedi, Mackey 2021, 2022); MMD about 1 / m.

    KT-SPLIT halves m 2^g points g times, for the largest g with m 2^g <= n. This gives 2^g sets of
    m points. KT-SWAP compares these sets and one random set, and starts with the best. It replaces
    each point by the point of X that minimizes the MMD. Costs up to 2 n^2 + 4 n m kernel values.

    Args:
        X, kernel, m: See `herd`.
        seed: int from 0 to 2**64 - 1. Seed of the random halves.
        delta: float between 0 and 1. Chance that the halves are not balanced. None means 1/2.
    Returns:
        ReducedSet: Centers have weight n / m. Labels give the nearest center in feature space.
    Example:
        >>> X = np.linspace(0.0, 1.0, 64)[:, None]
        >>> few = kernel_thin(X, gaussian(0.5), 8)
        >>> mmd(X, few, gaussian(0.5)) < 0.2 * mmd(X, ReducedSet(X[:8], few.weights), gaussian(0.5))
        True
    """
    X, m, kernel = _checked_choice(X, m, kernel)
    key = _checked_key(seed, _THINNED)
    return _herd_of(X, kernel, _thinned(X, m, kernel, key, _as_delta(delta, 0.5)))


@_public
def compress_thin(X, kernel, m, seed=0, *, g=4, delta=None):
    """Reduced set of very many points for RSKPCA by Compress++ (Shetty, Dwivedi, Mackey 2022).

    Four random quarters of the points are compressed recursively. The union of the quarters is
    halved. At most 1.25 max(2^g m, 8 n^(1/2)) points remain, and `kernel_thin` chooses m of them.
    Costs O(max(n, 4^g m^2) log n) kernel values, and n m kernel values for the labels.

    Args:
        X, kernel, m: See `herd`.
        seed: int from 0 to 2**64 - 1. Seed of the random quarters and halves.
        g: int from 2 to 16. Increasing g by 1 halves the compression error at two to four times the
            cost if 2^g m > 8 n^(1/2). Below this bound, g has no effect.
        delta: See `kernel_thin`.
    Returns:
        ReducedSet: Centers have weight n / m. Labels give the nearest center in feature space.
    Example:
        >>> X = np.linspace(0.0, 1.0, 256)[:, None]
        >>> few = compress_thin(X, gaussian(0.5), 8, g=2)
        >>> mmd(X, few, gaussian(0.5)) < 0.2 * mmd(X, ReducedSet(X[:8], few.weights), gaussian(0.5))
        True
    """
    X, m, kernel = _checked_choice(X, m, kernel)
    key = _checked_key(seed, _THINNED)
    g = _checked_count("g", g, 16, 2)
    delta = _as_delta(delta, 0.5)
    n = len(X)
    rows = _draw_uniformly(n, n, _python_subkey(key, 1))
    log_inverse = math.log(4.0 * n) - math.log(delta)
    # Four sets of at most max(64, (2^g m)^2 / n) rows are joined and halved, until one set is left.
    depth = max(0, math.ceil(math.log2(n / max(64.0, 4.0**g * m * m / n)) / 2.0))
    starts = np.arange(4**depth + 1) * n // 4**depth
    for level in range(depth):
        starts = starts[::4]
        of_level = _python_subkey(_python_subkey(key, 2), level)
        rows = rows[~_halve(kernel, X, rows, starts, of_level, log_inverse)]
        starts = np.append(0, np.cumsum((np.diff(starts) + 1) // 2))
    return _herd_of(X, kernel, rows[_thinned(X[rows], m, kernel, _python_subkey(key, 3), delta)])


# 10.3 Kernel PCA and manifold methods of reduced sets (RSKPCA section 3, (14), (15))


def _checked_weights(name, w, C, n=None):
    """Nonnegative weights, one per row of C. If n is given, the weights must sum to n."""
    w = _as_array(name, w, 1, _DOUBLE)
    total = w.sum()
    _require(
        w.size == C.shape[0], f"{name} must have one weight per point ({C.shape[0]}), got {w.size}"
    )
    _require(
        (w >= 0.0).all() and 1e-15 <= total <= 1e18,
        f"{name} must be finite and at least zero, with a sum from 1e-15 to 1e18",
    )
    if n is not None and abs(total - n) > 1e-6 * n:
        raise ValueError(
            f"{name} must sum to the number of rows of X ({n}), got {total}: pass "
            "ReducedSet(points, len(X) * weights / weights.sum())"
        )
    return w


def _as_weights(weights, X, name="weights"):
    _require_numeric(name, weights)
    weights = np.ones(X.shape[0]) if weights is None else np.asarray(weights)
    return _checked_weights(name, weights, X)


def _checked_centers(centers, n=None, columns=None):
    """Points and weights of a ReducedSet, or of an array of points, which have weights of 1. If n is
    given, the weights must sum to n."""
    if isinstance(centers, ReducedSet):
        C, w, *_ = _checked_as(ReducedSet, "centers", centers)
    else:
        _require(
            not isinstance(centers, tuple),
            "centers must be a ReducedSet or an array of points, got "
            f"{type(centers).__name__}: pass ReducedSet(points, weights)",
        )
        C = _checked_points("centers", centers)
        w = np.ones(len(C))
    d = C.shape[1]
    _require(columns in (None, d), f"centers must have {columns} columns, got {d}")
    return C, _checked_weights("centers.weights", w, C, n)


@_public
def rskpca(centers, kernel, k, seed=0, *, centered=True):
    """Kernel PCA of n points represented by weighted centers (RSKPCA algorithm 1).

    Let W = diag(w), and let K be the Gram matrix of C. An eigenpair W^1/2 K W^1/2 phi = lambda phi
    gives the component f(x) = lambda^-1/2 sum_j w_j^1/2 phi_j k(c_j, x). At the centers, f is
    lambda^1/2 W^-1/2 phi. Algorithm 1 has the misprint W^-1/4 for W^-1/2.

    Args:
        centers: ReducedSet of m centers, or (m, d) array of points with weights of 1. Weights are
            nonnegative. They sum to n, or to any number from 1e-15 to 1e18.
        kernel: Kernel.
        k: int from 1 to m. Number of components.
        seed: int from 0 to 2**64 - 1. Seed of the eigensolver's starting vectors.
        centered: bool. If True, subtract the weighted mean in feature space.
    Returns:
        Expansion: k components. Values estimate eigenvalues for n points. Negligible values are 0.
    Example:
        >>> twice = ReducedSet(np.array([[0.0], [3.0]]), np.array([2.0, 1.0]))
        >>> rskpca(twice, linear(), 1).values.round(12).tolist()
        [6.0]
        >>> kpca(np.array([[0.0], [0.0], [3.0]]), linear(), 1).values.round(12).tolist()
        [6.0]
    """
    C, w = _checked_centers(centers)
    kernel = _checked_kernel("kernel", kernel, centers=C)
    k, key = _checked_pairs(k, len(C), seed)
    centered = _as_flag("centered", centered)
    _fits("centers", 8.0 * len(C) ** 2)
    points = _about_mean(kernel, _in_double(C), centered)
    K = _gram(kernel, points)
    _require_finite("kernel values on centers", K)
    shares = w / w.sum()
    roots = np.sqrt(shares)
    mean = 0.0
    if centered:  # K_ij - r_i - r_j + r, with weighted means
        means = K @ shares
        mean = shares @ means
        K -= means[:, None]
        K += mean - means
    K *= roots[:, None]
    K *= roots
    found = _expansion_of(C, kernel, _lanczos(K, k, key, 1e-13, 1000), mean)
    coef = found.coef * roots[:, None]
    # The sum of coef must be 0. For small lambda, its rounding error would exceed the features.
    if centered:
        coef -= np.outer(shares, coef.sum(0))
    found = found._replace(values=found.values * w.sum(), coef=coef.astype(C.dtype))
    if not centered:
        return found
    return found._replace(offset=-(shares @ _features(C, found)), mean=shares)


@_public
def weighted_nystrom(X, centers, kernel, k, seed=0):
    """Kernel PCA by the density-weighted Nystrom method (Zhang, Kwok 2010; RSKPCA section 6).

    An eigenpair of `rskpca` gives u_i = lambda^-1 sum_j w_j^1/2 phi_j k(x_i, c_j). This u estimates
    an eigenvector of the Gram matrix of X. The component is f(x) = lambda^-1/2 sum_i u_i k(x_i, x).

    Args:
        X: (n, d) array. Points.
        centers: ReducedSet of m centers whose weights sum to n. Random rows of X with weights n / m
            give the method of Williams, Seeger (2001).
        kernel: Kernel.
        k: int from 1 to m. Number of components.
        seed: int from 0 to 2**64 - 1. Seed of the eigensolver's starting vectors.
    Returns:
        Expansion: k components over X. A new point costs n kernel values, but with `rskpca` only m.
            They are not centered.
    Example:
        >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
        >>> weighted_nystrom(X, kmeans_select(X, 4), linear(), 1).values.round(12).tolist()
        [14.0]
    """
    X = _checked_points("X", X)
    C, w = _checked_centers(centers, len(X), X.shape[1])
    kernel = _checked_kernel("kernel", kernel, X=X, centers=C)
    of_type = ReducedSet(C.astype(X.dtype, copy=False), w)
    found = rskpca(of_type, kernel, k, seed, centered=False)
    values = _features(X, found)
    _require_finite("kernel values on X", values)
    coef = values / np.where(found.values > 0.0, found.values, math.inf)
    return found._replace(points=X.copy(), coef=coef.astype(X.dtype, copy=False))


@_helper
def _least_sum(itemsize):
    """The least sum of kernel values by which coordinates are divided."""
    return 1e-30 if itemsize == 4 else 1e-290


def _write_coordinates(X, model, out):
    X, points = _in_common_precision(X, model.points)
    products = _gram_product(model.kernel, X, points, np.column_stack([model.coef, model.degrees]))
    sums = _in_double(products[:, -1:])
    _require(
        ((_least_sum.py_func(X.itemsize) < sums) & (sums < np.inf)).all(),
        "X must be closer to model.points: sums of kernel values must be positive and finite",
    )
    out[:] = model.factor * (products[:, :-1] / sums**model.power)
    _require_finite("features of X", out)


def _of_manifold(x, model, out):
    out[:] = 0.0
    total = 0.0
    for i in range(len(model.points)):
        value = _value_of(model.kernel, x, model.points[i])
        total += model.degrees[i] * value
        for q in range(len(out)):
            out[q] += model.coef[i, q] * value
    if not total > _least_sum(max(x.itemsize, model.points.itemsize)):
        raise ValueError("features_of: x must be closer to model.points")
    factor = model.factor / total**model.power
    for q in range(len(out)):
        out[q] *= factor


@_model(
    fit=_require_fitting_model,
    shape=lambda model: model.values.shape,
    features=_write_coordinates,
    of_point=_of_manifold,
    values=_own_values,
)
@_validated(
    "a Manifold returned by laplacian_eigenmap, diffusion_map or normalized_cut",
    lambda made: (
        len(made.coef) == len(made.points) == made.degrees.size
        and made.coef.shape[1] == made.values.size
    ),
    points="points",
    coef="points",
    values=1,
    degrees=1,
)
class Manifold(NamedTuple):
    """Coordinates f_q(x) = factor sum_j coef[j, q] k(points[j], x) / s(x)^power, with s(x) = sum_j
    degrees[j] k(points[j], x). points: (m, d). coef: (m, k). values: (k,). degrees: (m,). The formula
    extends the eigenvectors to any point (Nystrom extension, textbook). Kernel values must not all
    vanish between a point and `points`."""

    points: np.ndarray
    coef: np.ndarray
    values: np.ndarray
    degrees: np.ndarray
    power: float
    factor: float
    kernel: Kernel
    names: bytes = b""


def _manifold_of(centers, kernel, k, seed, alpha=0.0, time=0.0, cut=False):
    """A Manifold, the sum of p D, and the sum of w, where p = w / (sum of w). Let q and D be the
    p-weighted sums of k and of K_a = k / (q q')^alpha. Eigenpairs mu, u of p^1/2 D^-1/2 K_a D^-1/2
    p^1/2 give coordinates f = mu^time u / first at the centers, where first = (p D / total)^1/2 is
    the eigenvector with eigenvalue 1. If `cut` is False, it is omitted, and u is made orthogonal to
    it, as extension divides rounding errors by mu. If mu itself is a rounding error, f is 0."""
    C, w = _checked_centers(centers)
    _fits("centers", 8.0 * len(C) ** 2)
    kernel = _checked_kernel("kernel", kernel, centers=C)._replace(scale=1.0)
    used = w > 0.0
    C = C[used]
    _require(cut or len(C) > 1, "centers must have at least two points of positive weight")
    most = len(C) if cut else len(C) - 1
    k, key = _checked_pairs(k, most, seed)
    K = _in_double(_gram(kernel, C))
    shares = w[used] / w.sum()
    sums = K @ shares
    powers = sums**alpha
    degrees = shares / powers
    D = K @ degrees / powers
    total = (shares * D).sum()
    factors = np.sqrt(shares / D) / powers
    first = np.sqrt(shares * D / total)
    K *= factors[:, None]
    K *= factors
    _require(
        min(sums.min(), D.min()) > 0.0 and _all_below(K),
        "kernel values on centers must be finite, with positive sums",
    )
    constant = np.zeros(len(C)) if cut else first
    K -= np.outer(constant, constant)
    values, vectors, *_ = _lanczos(K, k, key, 1e-13, 1000)
    vectors = vectors - np.outer(constant, constant @ vectors)
    kept = values > max(len(C), 100) * _precision(C)
    rates = np.where(kept, np.abs(values) ** (time - 1.0), 0.0)
    coef = (rates * (degrees / first)[:, None] * vectors).astype(C.dtype)
    found = Manifold(C, coef, values, degrees, 0.5 if cut else 1.0, 1.0, kernel)
    return found, total, float(w.sum())


@_public
def laplacian_eigenmap(centers, kernel, k, seed=0):
    """Laplacian eigenmap of a reduced set (Belkin, Niyogi 2003; RSKPCA (15)).

    The coordinates f solve (D - K) f = lambda D f for the k smallest lambda. The constant f is
    omitted. The diagonal of D has the sums of k over the n points, and f^T D f = 1. Coordinates
    without a correct digit are 0. Costs O(m^2 (d + k)) time and O(m^2) memory.

    Args:
        centers: ReducedSet of m centers, or (m, d) array of points with weights of 1. Centers of
            weight 0 are omitted.
        kernel: Kernel. Its sums over the points must be positive.
        k: int from 1 to m - 1. Number of coordinates, excluding the constant coordinate.
        seed: int from 0 to 2**64 - 1. Seed of the eigensolver's starting vectors.
    Returns:
        Manifold: A model for `features`. Its values are lambda in ascending order.
    Example:
        >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
        >>> coordinates = features(X, laplacian_eigenmap(X, gaussian(1.5), 1))[:, 0]
        >>> (coordinates * np.sign(coordinates[0])).round(4).tolist()
        [0.3726, 0.3726, -0.3726, -0.3726]
    """
    found, total, n = _manifold_of(centers, kernel, k, seed)
    factor = 1.0 / (math.sqrt(total) * math.sqrt(kernel.scale) * n)
    return found._replace(values=1.0 - found.values, factor=factor)


@_public
def diffusion_map(centers, kernel, k, seed=0, *, alpha=1.0, time=1.0):
    """Diffusion map of a reduced set (Coifman, Lafon 2006; RSKPCA (15)).

    Coordinates are mu^time psi for eigenpairs P psi = mu psi of P = D^-1 K_a. Here K_a = k / (q
    q')^alpha, and q and D sum k and K_a over the n points. Under P's stationary law, E psi^2 = 1.

    Args:
        centers: ReducedSet of m centers, or (m, d) array of points with weights of 1. Centers of
            weight 0 are omitted.
        kernel: Kernel. Its sums over the points must be positive.
        k: int from 1 to m - 1. Number of coordinates, excluding the constant coordinate.
        seed: int from 0 to 2**64 - 1. Seed of the eigensolver's starting vectors.
        alpha: float from 0 to 1. 1 removes the effect of density. 0 gives a plain random walk.
        time: float from 0 to 1e9. Number of diffusion steps.
    Returns:
        Manifold: A model for `features`. Its values are mu in descending order.
    Example:
        >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
        >>> coordinates = features(X, diffusion_map(X, gaussian(1.0), 1))[:, 0]
        >>> (coordinates * np.sign(coordinates[0])).round(4).tolist()
        [0.9345, 0.3942, -0.3942, -0.9345]
    """
    alpha = _checked_real("alpha", alpha, 0.0, 1.0)
    time = _checked_real("time", time, 0.0, 1e9)
    return _manifold_of(centers, kernel, k, seed, alpha, time)[0]


@_public
def normalized_cut(centers, kernel, k, seed=0):
    """Spectral embedding for normalized cuts (Shi, Malik 2000; Ng, Jordan, Weiss 2002; RSKPCA).

    Coordinates are the leading eigenvectors of D^-1/2 K D^-1/2, where D has the sums of k over the
    n points. The first is proportional to D^1/2. To cluster, use `kmeans_select` on rows of norm 1.

    Args:
        centers: ReducedSet of m centers, or (m, d) array of points with weights of 1. Centers of
            weight 0 are omitted.
        kernel: Kernel. Its sums over the points must be positive.
        k: int from 1 to m. Number of coordinates. Each has norm 1 over the n points.
        seed: int from 0 to 2**64 - 1. Seed of the eigensolver's starting vectors.
    Returns:
        Manifold: A model for `features`. Its values, in ascending order, are the eigenvalues of I -
            D^-1/2 K D^-1/2.
    Example:
        >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
        >>> F = features(X, normalized_cut(X, gaussian(1.5), 2))
        >>> kmeans_select(F / np.linalg.norm(F, axis=1)[:, None], 2).weights.tolist()
        [2.0, 2.0]
    """
    found, total, n = _manifold_of(centers, kernel, k, seed, cut=True)
    return found._replace(values=1.0 - found.values, factor=1.0 / math.sqrt(total * n))


# 10.4 Distances between a reduced set and all points (RSKPCA section 5)


def _distance_of_means(X, centers, kernel, square):
    """sqrt(sum k - 2 sum w_j k + sum w_i w_j k) / n over all i, j. If `square`, k is squared."""
    X = _checked_points("X", X)
    n = len(X)
    C, w = _checked_centers(centers, n, X.shape[1])
    kernel = _checked_kernel("kernel", kernel, X=X, centers=C)
    P = _in_double(np.concatenate([X, C]))
    # No value of a positive semidefinite kernel exceeds the largest k(x, x).
    unit = float(_unit_of(_diagonal(P, kernel)))
    kernel = kernel._replace(scale=kernel.scale / unit)
    shares = np.append(np.ones(n), -w)[:, None] / n
    total = 0.0
    if square:
        for rows in _slabs(len(P), 2 * _BLOCK):
            K = _gram(kernel, P[rows], P[rows.start :])
            np.square(K, out=K)
            later = 2.0 * shares[rows.start :]  # for (i, j) and (j, i)
            later[: len(K)] = shares[rows]
            total += (shares[rows] * _dense_product(K, later)).sum()
    else:
        total = (shares * _gram_product(kernel, P, P, shares, True)).sum()
    _require_finite("kernel values on X and centers", total)
    return math.sqrt(max(total, 0.0)) * (unit if square else math.sqrt(unit))


@_public
def mmd(X, centers, kernel):
    """Maximum mean discrepancy |sum_i k(x_i, .) - sum_j w_j k(c_j, .)| / n (RSKPCA (20)).

    Args:
        X: (n, d) array. Points.
        centers: ReducedSet whose weights sum to n.
        kernel: Kernel. It must be positive semidefinite.
    Returns:
        float: The biased MMD. Values below sqrt(2e-16 (10 + n / 200) max k) are rounding errors.
    Example:
        >>> center = ReducedSet(np.array([[1.0]]), np.array([2.0]))
        >>> mmd(np.array([[1.0], [4.0]]), center, linear())
        1.5
    """
    return _distance_of_means(X, centers, kernel, False)


@_public
def operator_distance(X, centers, kernel):
    """Hilbert-Schmidt distance of the covariance operators of X and centers (RSKPCA theorem 5.3).

    Args:
        X: (n, d) array. Points.
        centers: ReducedSet whose weights sum to n.
        kernel: Kernel. It must be positive semidefinite.
    Returns:
        float: |sum_i k_{x_i} (x) k_{x_i} - sum_j w_j k_{c_j} (x) k_{c_j}| / n. It is `mmd` for k^2.
    Example:
        >>> center = ReducedSet(np.array([[1.0]]), np.array([2.0]))
        >>> operator_distance(np.array([[1.0], [4.0]]), center, linear())
        7.5
    """
    return _distance_of_means(X, centers, kernel, True)


@_public
def projection_distance(model, other):
    """Hilbert-Schmidt distance between the projections of two expansions (RSKPCA theorem 5.4).
    Costs c^2 kernel values for c points. As for `residual`, orthonormal components are kept.

    A projection is onto the span of a model's components. The components of a centered model are
    directions of deviations from its mean, and their span does not depend on the mean itself.

    Args:
        model: Expansion, for example from `kpca`, `rskpca` or `nystrom_kpca`.
        other: Expansion with the same kernel.
    Returns:
        float: (D + D' - 2 sum_ab <u_a, u'_b>^2)^1/2 for orthonormal bases u and u' of the spans, of
            dimensions D and D'. The rounding error is 1e-7, or more if eigenvalues are tiny.
    Example:
        >>> right = kpca(np.array([[0.0, 1.0], [2.0, 1.0]]), linear(), 1)
        >>> up = kpca(np.array([[5.0, 1.0], [5.0, 3.0]]), linear(), 1)
        >>> round(projection_distance(right, up), 6)
        1.414214
    """
    a = _checked_expansion("model", model)
    b = _checked_expansion("other", other)
    _require(
        a.kernel == b.kernel and a.points.shape[1] == b.points.shape[1],
        "model and other must have the same kernel and the same number of columns",
    )
    _require(not (a.targets or b.targets), "model and other must not predict targets")
    _, a, V = _span_of(a)
    _, b, W = _span_of(b)
    a = a._replace(offset=None)
    squares = np.square(_features(b.points, a)[:, :-1].T @ b.coef[:, :-1]).sum()
    _require_finite("features of other.points by model", squares)
    return math.sqrt(max(0.0, V.any(0).sum() + W.any(0).sum() - 2.0 * squares))


# --------------------------------------------------------------------------------------------------
# 11. Random features and streams (SKPCA)
#
# Random features approximate a kernel, and a sketch summarizes a stream of feature rows. The
# functions of a stream stand above the class of its states. None of them modifies its arguments.

# 11.1 Fourier features


_DIRECTIONS, _LENGTHS, _PHASES, _MIXTURES, _FLIPS, _SHUFFLES = range(6)  # subkeys of a map's key
_UNIT_GAUSSIAN = Kernel(_GAUSSIAN, gamma=0.5)  # its frequencies are standard normal vectors


def _require_precise(X, feature_map, points):
    precise = X.dtype.itemsize == 8 or 1e-37 <= feature_map.kernel.scale <= 1e37
    _require(precise, f"{points} must be float64 for kernel scales below 1e-37 or above 1e37")


def _require_finite_angles(finite, points):
    _require(
        finite,
        f"{points} must be smaller relative to the kernel's bandwidth: the angles r_j.x overflow",
    )


@_helper
def _phase(key, j, copies):
    """Phase of feature j. In a pair, subtracting a quarter turn makes the second one a sine."""
    return 2.0 * math.pi * (_uniform(key, j // copies) - 0.25 * (j % copies))


@_core_alone
def _draw_phases(key, first, copies, phases):
    for i in range(len(phases)):
        phases[i] = _phase(key, first + i, copies)


@_core_alone
def _draw_gammas(key, first, copies, shape, out):
    for i in range(len(out)):
        out[i] = _gamma(key, (first + i) // copies, shape)


def _scales(kernel, key, part, count, first=0, copies=1):
    """Factors that turn standard normal vectors into frequencies of the kernel, from `first` on. The
    kernel (1 + g r^2)^-alpha is the mean of Gaussian kernels exp(-g G r^2) over G ~ Gamma(alpha). The
    frequencies of a Matern kernel have Student's t law with 2 nu degrees of freedom."""
    law = _KINDS[kernel.kind].law
    if law == _NORMAL:
        return np.full(count, math.sqrt(2.0 * kernel.gamma))
    if law == _CAUCHY_ENTRIES:
        return np.full(count, kernel.gamma)
    gammas = np.empty(count)
    _draw_gammas(_python_subkey(key, part), first, copies, _parameter_of(kernel), gammas)
    if law == _MIXTURE:
        return np.sqrt(2.0 * kernel.gamma * gammas)
    _require(law == _STUDENT, "kernel must have a law with a branch in _scales")
    return kernel.gamma / np.sqrt(2.0 * gammas)


@_core
def _draw_frequencies(cauchy, key, first, copies, scales, W):
    """Frequencies of `fourier_features_map`, from `first` on. They are scaled normal, or Cauchy."""
    for index in prange(len(W)):
        i = np.int64(index)
        row = _subkey(_subkey(key, _DIRECTIONS), (first + i) // copies)
        for t in range(W.shape[1]):
            entry = math.tan(math.pi * (_uniform(row, t) - 0.5)) if cauchy else _normal(row, t)
            W[i, t] = scales[i] * entry


def _plain_frequencies(kernel, key, shape, first=0, copies=1):
    W = np.empty(shape)
    cauchy = _KINDS[kernel.kind].law == _CAUCHY_ENTRIES
    scales = _scales(kernel, key, _MIXTURES, len(W), first, copies)
    # Unlike NumPy's, these numbers never change.
    _draw_frequencies(20.0 * W.size, cauchy, key, first, copies, scales, W)
    return W


def _lengths_of_normal(key, size, count):
    return _scales(Kernel(_RATIONAL, gamma=1.0, shape=0.5 * size), key, _LENGTHS, count)


def _orthogonal_directions(key, count, d):
    """Vectors with the lengths of standard normal vectors, orthogonal within blocks of d."""
    size = min(count, d)
    normal = _plain_frequencies(_UNIT_GAUSSIAN, key, (_ceil_div(count, size) * size, d))
    normal = normal.reshape(-1, size, d)
    Q, R = np.linalg.qr(normal.transpose(0, 2, 1))
    Q *= np.copysign(1.0, np.diagonal(R, 0, 1, 2))[:, None]  # Q is now uniformly distributed
    return Q.transpose(0, 2, 1).reshape(-1, d)[:count] * _lengths_of_normal(key, d, count)[:, None]


def _quasi_directions(key, count, d):
    from scipy.special import ndtri
    from scipy.stats import qmc  # the import takes half a second

    generator = np.random.default_rng(int(_python_subkey(key, _DIRECTIONS)))
    return ndtri(np.clip(qmc.Halton(d, seed=generator).random(count), 1e-16, 1.0 - 1.1e-16))


def _fastfood_parts(kernel, d, m, key):
    """B, P, G and S of V = S H G P H B (see `fastfood_features_map`), each a (blocks, D) array."""
    size = 1 << (d - 1).bit_length()
    blocks = _ceil_div(m, size)
    keys = _words(_python_subkey(key, _FLIPS), np.arange(blocks))[:, None]
    flips = 1.0 - 2.0 * (_words(keys, np.arange(size)) >> 63)
    keys = _words(_python_subkey(key, _SHUFFLES), np.arange(blocks))
    order = np.array([_draw_uniformly(size, size, subkey) for subkey in keys])
    weights = _plain_frequencies(_UNIT_GAUSSIAN, key, (blocks, size))
    lengths = _scales(kernel, key, _MIXTURES, order.size)
    lengths *= _lengths_of_normal(key, size, order.size)
    norms = np.sqrt(size * np.square(weights).sum(1, keepdims=True))
    return flips, order, weights, lengths.reshape(blocks, size) / norms


def _times_hadamard(V):
    """H times the rows of V (n, blocks, D). The Walsh-Hadamard matrix H is the Kronecker product of
    corners of itself. Each step multiplies one axis and moves it to the end. BLAS gets a small
    product for each row, so the bits of a row depend neither on the other rows nor on threads."""
    size = V.shape[2]
    H = _scipy_linalg().hadamard(max(2, min(32, _BLAS_BELOW // (2 * size))), V.dtype)
    left = size
    moved = V
    while left > 1:
        side = min(len(H), left)
        left //= side
        moved = moved.reshape(-1, side, size // side).swapaxes(1, 2) @ H[:side, :side]
    return moved.reshape(V.shape)


def _fastfood_angles(X, flips, order, weights, lengths):
    """S H G P H B x for each point x, (n, blocks D), from the results of `_fastfood_parts`."""
    flips, weights, lengths = [part.astype(X.dtype) for part in (flips, weights, lengths)]
    X = np.pad(X, ((0, 0), (0, flips.shape[1] - X.shape[1])))
    mixed = _times_hadamard(X[:, None] * flips)
    mixed = mixed[:, np.arange(len(order))[:, None], order] * weights
    return (_times_hadamard(mixed) * lengths).reshape(len(X), -1)


class _MapKind(NamedTuple):
    """A kind of maps. `key` is the key of all draws of a map."""

    name: str  # files contain it
    # (kernel, key, shape, first, copies): frequencies from number `first` on, each repeated for
    # `copies` features. They are drawn one by one. DSGD and sparse points take only these kinds if
    # the map does not store its frequencies.
    frequencies: object = None
    # (key, count, d): random vectors with the lengths of standard normal vectors. All must be drawn
    # at once. The kernel must depend on the Euclidean distance.
    directions: object = None
    # (kernel, d, count, key): arrays for a transform in place of `count` frequencies, and
    # (X, *arrays): angles r_j.x of points. The kernel must depend on the Euclidean distance.
    parts: object = None
    angles: object = None


_MAP_KINDS = []


def _add_map_kind(*facts, **by_name):
    """Add a kind and return its number, which only this process uses."""
    _MAP_KINDS.append(_MapKind(*facts, **by_name))
    return len(_MAP_KINDS) - 1


_PLAIN = _add_map_kind("plain", frequencies=_plain_frequencies)
_ORTHOGONAL = _add_map_kind("orthogonal", directions=_orthogonal_directions)
_QUASI = _add_map_kind("quasi", directions=_quasi_directions)
_FASTFOOD = _add_map_kind("fastfood", parts=_fastfood_parts, angles=_fastfood_angles)
_MAP_NAMES = tuple(kind.name for kind in _MAP_KINDS)


def _kind_of(feature_map):
    return _MAP_KINDS[feature_map.kind]


def _frequencies(feature_map, first, count):
    """Frequencies (count, d) from `first`, which is 0 if all must be drawn at once."""
    if len(feature_map.frequencies):
        return feature_map.frequencies[first : first + count]
    kind = _kind_of(feature_map)
    kernel = feature_map.kernel
    d = feature_map.d
    key = _key(feature_map.seed, _FREQUENCIES)
    copies = 1 + feature_map.paired
    if kind.frequencies:
        return kind.frequencies(kernel, key, (count, d), first, copies)
    different = _ceil_div(feature_map.m, copies)
    W = kind.directions(key, different, d)
    W *= _scales(kernel, key, _MIXTURES, different)[:, None]
    return np.repeat(W, copies, axis=0)[:count]


@_helper
def _write_cosines(angles, rows, phases, factor, out, row, column):
    """Write factor cos(angles + phases) to out[row:, column:]. Changes the angles."""
    columns = len(phases)
    one = angles.dtype.type(factor)
    near = angles.dtype.type(8192.0 if angles.itemsize == 4 else 1048576.0)  # `_cos` is accurate
    far = 0
    for r in range(rows):
        for c in range(columns):  # LLVM vectorizes a count, but not a maximum that propagates NaN
            angles[r, c] += phases[c]
            far += not abs(angles[r, c]) <= near
    for r in range(rows):
        values = angles[r, :columns]
        cosines = out[row + r, column : column + columns]
        for c in range(columns):
            cosines[c] = one * _cos(values[c])
        for c in range(columns if far else 0):
            if not abs(values[c]) <= near:
                cosines[c] = one * math.cos(np.float64(values[c]))


@_helper
def _fourier_tile(X, first, panels, phases, begin, factor, angles, out, column):
    """Write up to 128 features of 128 points, from `first` on, to out[first:, column:]."""
    rows = min(_BLOCK, len(X) - first)
    width = panels.shape[2]
    columns = min(_BLOCK, len(phases) - begin)
    for c in range(0, columns, width):
        panel = panels[(begin + c) // width]
        for r in range(0, rows, 4):
            _inner_products(X, first + r, len(X) - 1, 0, X.shape[1], panel, angles, r, c)
    _write_cosines(angles, rows, phases[begin : begin + columns], factor, out, first, column)


@_core
def _fourier(X, panels, phases, factor, out):
    for index in prange(_blocks(len(X))):
        _wide_vectors()
        first = np.int64(index) * _BLOCK
        angles = _new_tile(X)
        for begin in range(0, out.shape[1], _BLOCK):
            _fourier_tile(X, first, panels, phases, begin, factor, angles, out, begin)


@_core
def _cosines(angles, phases, factor, out):
    for index in prange(len(out)):
        _wide_vectors()
        i = np.int64(index)
        _write_cosines(angles[i : i + 1], 1, phases, factor, out, i, 0)


def _drawn(X, feature_map, first, count, divisor, points="X"):
    """Frequencies, in panels or as parts of a transform (if first = 0), phases, and a factor."""
    _require_precise(X, feature_map, points)
    key = _key(feature_map.seed, _FREQUENCIES)
    copies = 1 + feature_map.paired
    phases = np.empty(count, X.dtype)
    _draw_phases(_python_subkey(key, _PHASES), first, copies, phases)
    factor = math.sqrt(2.0 * feature_map.kernel.scale / divisor)
    kind = _kind_of(feature_map)
    if kind.parts:
        parts = kind.parts(feature_map.kernel, feature_map.d, _ceil_div(count, copies), key)
        return parts, phases, factor
    W = _frequencies(feature_map, first, count).astype(X.dtype, copy=False)
    if _is_sparse(X):
        return W.T.copy(), phases, factor
    largest = feature_map.d * math.prod(float(max(A.max(), -A.min())) for A in (X, W))
    _require_finite_angles(largest <= np.finfo(X.dtype).max, points)  # false if it is NaN
    return _pack(W), phases, factor


def _features_from(X, feature_map, first, count, divisor, points="X", out=None):
    """sqrt(2 k(x, x) / divisor) cos(r_j.x + gamma_j) for `count` j from `first`, in `out` if given."""
    drawn, phases, factor = _drawn(X, feature_map, first, count, divisor, points)
    if out is None:
        out = _new_array((X.shape[0], count), X.dtype)
    angles_of = _kind_of(feature_map).angles
    sparse = _is_sparse(X)
    if sparse or angles_of:
        for rows in _slabs(X.shape[0], 64):
            if sparse:
                angles = X[rows] @ drawn
            else:
                angles = np.repeat(angles_of(X[rows], *drawn), 1 + feature_map.paired, 1)
            _require_finite_angles(_all_below(angles), points)
            _cosines(1.5 * angles.size, angles, phases, factor, out[rows])
    else:
        work = out.size * (1.5 + _MULTIPLY_ADD * feature_map.d)
        _fourier(work, X, drawn, phases, factor, out)
    return out


def _feature_slabs(X, feature_map, rows=32 * _BLOCK):
    """Slices of the rows of X, and their features."""
    for slab in _slabs(X.shape[0], rows):
        yield slab, _features_from(X[slab], feature_map, 0, feature_map.m, feature_map.m)


def _require_drawable(name, feature_map):
    _require(
        _kind_of(feature_map).frequencies or len(feature_map.frequencies),
        f"{name} must come from fourier_features_map or be created with stored=True",
    )


def _require_columns(X, d):
    _require(X.shape[1] == d, f"X must have {d} columns, got {X.shape[1]}")


def _fit_map(X, feature_map):
    if _is_sparse(X):
        _require_drawable("model", feature_map)
    _require_columns(X, feature_map.d)


def _write_fourier_features(X, feature_map, out):
    _features_from(X, feature_map, 0, feature_map.m, feature_map.m, out=out)


# Compiled code cannot read records, but it can read these columns.
_LAWS = tuple(kind.law for kind in _KINDS)
_LAW_PARAMETERS = tuple(kind.parameter for kind in _KINDS)
_ONE_BY_ONE = tuple(kind.frequencies is not None for kind in _MAP_KINDS)


@_helper
def _frequency_scale(kernel, key, number):
    """One entry of `_scales`."""
    law = _LAWS[kernel.kind]
    if law == _NORMAL:
        return math.sqrt(2.0 * kernel.gamma)
    if law == _CAUCHY_ENTRIES:
        return kernel.gamma
    fixed = _LAW_PARAMETERS[kernel.kind]
    shape = fixed if fixed > 0.0 else kernel.shape
    drawn = _gamma(_subkey(key, _MIXTURES), number, shape)
    return (
        math.sqrt(2.0 * kernel.gamma * drawn)
        if law == _MIXTURE
        else kernel.gamma / math.sqrt(2.0 * drawn)
    )


@_helper
def _feature_of_point(x, feature_map, j, divisor):
    """sqrt(2 k(x, x) / divisor) cos(r_j.x + gamma_j), with the numbers of `_drawn`."""
    key = _subkey(_mix(np.uint64(feature_map.seed)), _FREQUENCIES)
    copies = 1 + feature_map.paired
    number = j // copies
    angle = 0.0
    if len(feature_map.frequencies) > 0:
        for t in range(len(x)):
            angle += feature_map.frequencies[j, t] * x[t]
    elif _ONE_BY_ONE[feature_map.kind]:
        cauchy = _LAWS[feature_map.kernel.kind] == _CAUCHY_ENTRIES
        row = _subkey(_subkey(key, _DIRECTIONS), number)
        for t in range(len(x)):
            entry = math.tan(math.pi * (_uniform(row, t) - 0.5)) if cauchy else _normal(row, t)
            angle += entry * x[t]
        angle *= _frequency_scale(feature_map.kernel, key, number)
    else:
        raise ValueError("model must store its frequencies, or draw them one by one")
    phase = _phase(_subkey(key, _PHASES), j, copies)
    return math.sqrt(2.0 * feature_map.kernel.scale / divisor) * math.cos(angle + phase)


def _of_map(x, model, out):
    for j in range(model.m):
        out[j] = _feature_of_point(x, model, j, model.m)


@_model(
    fit=_fit_map,
    shape=lambda feature_map: (feature_map.m,),
    features=_write_fourier_features,
    of_point=_of_map,
    whole=True,
)
@_validated(
    "a FourierMap returned by one of the *_features_map functions",
    lambda made: (
        made.m
        and made.kind < len(_MAP_KINDS)
        and made.frequencies.shape in ((0, made.d), (made.m, made.d))
    ),
)
class FourierMap(NamedTuple):
    """A map to m Fourier features z_j(x) = sqrt(2 k(x, x) / m) cos(r_j.x + gamma_j) (SKPCA 2).
    Z Z^T approximates K for features Z. n points cost n m cosines and n d m multiply-adds, or n m
    log d additions for Fastfood. frequencies: (m, d) array of r_j, or (0, d) if they are not
    stored. Then `features` draws them again. Sparse points and compiled code need frequencies that
    are stored, or drawn one by one, as in `fourier_features_map`. paired: if True, features 2 j and
    2 j + 1 are the cosine and the sine of one angle."""

    kernel: Kernel
    d: int
    m: int
    seed: int
    kind: int
    frequencies: np.ndarray
    paired: bool = True


def _checked_map(name, feature_map, drawable=False):
    feature_map = _checked_as(FourierMap, name, feature_map)
    if drawable:
        _require_drawable(name, feature_map)
    return feature_map


def _new_map(kernel, d, m, seed, kind, stored, paired):
    one_by_one = _MAP_KINDS[kind].frequencies
    kernel = _checked_stationary("kernel", kernel, radial=not one_by_one)
    d = _checked_count("d", d, _MOST)
    m = _checked_count("m", m, _MOST)
    stored = _as_flag("stored", stored)
    paired = _as_flag("paired", paired)
    feature_map = FourierMap(kernel, d, m, _as_seed("seed", seed), kind, np.empty((0, d)), paired)
    if _MAP_KINDS[kind].parts:
        held = 40.0 * m
    elif one_by_one:
        held = 8.0 * d * m * stored
    else:  # stored or not, all are drawn at once, with copies (measured)
        held = 20.0 * d * m
    _fits("m", held)
    if stored:
        return feature_map._replace(frequencies=_frequencies(feature_map, 0, m))
    return feature_map


@_public
def fourier_features_map(kernel, d, m, seed=0, *, stored=True, paired=True):
    """A map to random Fourier features of a shift-invariant kernel (Rahimi, Recht 2007; SKPCA 2).

    z_j(x) = sqrt(2 k(x, x) / m) cos(r_j.x + gamma_j), with r_j drawn from the kernel's spectral
    density and gamma_j uniform on [0, 2 pi). The mean squared error of z(x).z(y) is c / m, where c
    depends on x - y. For the Gaussian kernel at |x - y| = sigma, c is .40, or .70 if unpaired. For
    d = 1, 3, 10 and 30, and multiples m of 2 d, `orthogonal_features_map` has c = .40, .203, .083
    and .048. The error of `quasi_features_map` falls faster than 1 / m: c is at most .004, .004,
    .04 and .23 for m = 1000.

    Args:
        kernel: Kernel. gaussian, laplacian, matern, rational_quadratic or cauchy, scaled or not.
        d: int, at least 1. Number of coordinates of a point.
        m: int, at least 1. Number of features.
        seed: int from 0 to 2**64 - 1. Seed of r_j and gamma_j.
        stored: bool. If False, the vectors r_j are not stored. Each call of `features` draws them
            again, and compiled code refuses the map.
        paired: bool. If True, m / 2 vectors r_j give two features each, a cosine and a sine. If
            False, each feature has its own r_j, as in the paper.
    Returns:
        FourierMap: The map, for `features`. If stored, it contains d m floats. Drawing each float
            takes 20 ns.
    Example:
        >>> feature_map = fourier_features_map(gaussian(1.0), 2, 4000)
        >>> Z = features(np.array([[0.0, 0.0], [1.0, 0.0]]), feature_map)
        >>> (Z @ Z.T).round(1).tolist()
        [[1.0, 0.6], [0.6, 1.0]]
    """
    return _new_map(kernel, d, m, seed, _PLAIN, stored, paired)


@_public
def orthogonal_features_map(kernel, d, m, seed=0, *, stored=True, paired=True):
    """A map to features with directions that are orthogonal within blocks of d (Yu et al. 2016).

    Args:
        kernel: Kernel. gaussian, laplacian (norm 2), matern, rational_quadratic or cauchy.
        d, m, seed, stored, paired: See `fourier_features_map`. If unpaired, c is .5 to .7.
    Returns:
        FourierMap: An unbiased alternative to the map of SKPCA section 2. Costs O(d m min(d, m))
            time and O(d m) memory, also for each call of a map that is not stored.
    Example:
        >>> W = orthogonal_features_map(gaussian(1.0), 3, 6).frequencies[::2]
        >>> np.allclose(W @ W.T, np.diag(np.square(W).sum(1)))
        True
    """
    return _new_map(kernel, d, m, seed, _ORTHOGONAL, stored, paired)


@_public
def quasi_features_map(kernel, d, m, seed=0, *, stored=True, paired=True):
    """A map to Fourier features from a Halton sequence with permuted digits (Avron et al. 2016).

    Args:
        kernel: Kernel. gaussian, laplacian (norm 2), matern, rational_quadratic or cauchy.
        d, m, seed, stored, paired: See `fourier_features_map`. If unpaired, c is .5 to .7.
    Returns:
        FourierMap: An unbiased alternative to the map of SKPCA section 2. Costs O(d m log m) time.
    Example:
        >>> X = np.array([[0.0, 0.0], [1.0, 0.0]])
        >>> Z = features(X, quasi_features_map(gaussian(1.0), 2, 1000))
        >>> (Z @ Z.T).round(2).tolist()
        [[1.0, 0.61], [0.61, 1.0]]
    """
    return _new_map(kernel, d, m, seed, _QUASI, stored, paired)


@_public
def fastfood_features_map(kernel, d, m, seed=0, *, paired=True):
    """A map to Fourier features by Walsh-Hadamard transforms (Le, Sarlos, Smola 2013; SKPCA 1.2).

    The vectors r_j of `fourier_features_map` are the rows of S H G P H B. H is the Walsh-Hadamard
    matrix of order D, the power of two in [d, 2 d), and P is a random permutation. B, G and S are
    diagonal: random signs, normal numbers and row lengths. A point costs O(m log d) time. Other
    maps are faster below about d = 256. From D = 16 on, squared errors are 1.4 to 2 times those of
    `fourier_features_map` with pairs. Compiled code refuses these maps.

    Args:
        kernel: Kernel. gaussian, laplacian (norm 2), matern, rational_quadratic or cauchy.
        d, m, seed, paired: See `fourier_features_map`.
    Returns:
        FourierMap: The map. It stores no r_j. Each call draws about 4 m numbers for B, P, G and S.
    Example:
        >>> X = np.stack([np.zeros(300), np.eye(300)[7]])
        >>> Z = features(X, fastfood_features_map(gaussian(1.0), 300, 4096))
        >>> (Z @ Z.T).round(1).tolist()
        [[1.0, 0.6], [0.6, 1.0]]
    """
    return _new_map(kernel, d, m, seed, _FASTFOOD, False, paired)


# 11.2 Frequent directions


@_validated(
    "a sketch of runs in an FDState",
    lambda runs: (
        runs.used <= runs.columns.shape[1]
        and (runs.means is None or runs.means.size == len(runs.columns))
    ),
    means=1,
)
class _Runs(NamedTuple):
    """A sketch of runs of rows z. columns: (m, size) array. Its first `used` columns are the rows
    of the sketch. shrunk: squared lengths subtracted. squares: sum of |z|^2. count: number of rows.
    means: (m,), mean of the rows if they are centered, else None."""

    columns: np.ndarray
    used: int
    shrunk: float
    squares: float
    count: int
    means: np.ndarray = None


_NO_RUNS = _Runs(np.empty((0, 0)), 0, 0.0, 0.0, 0)


@_validated("a Sketch")
class Sketch(NamedTuple):
    """B: (ell, m) orthogonal rows, the longest first, with 0 <= Z^T Z - B^T B <= shrunk I. values:
    squared lengths of the rows of B. ridge: shrunk / 2, a bound on the error of B^T B + ridge I in
    spectral norm. squares: |Z|_F^2. count: number of rows of Z. For k < share h, shrunk is at most
    |Z - Z_k|_F^2 / (share h - k), where h is ell / 2, or ell if `half` is False, and Z_k is the best
    approximation of Z of rank k. Squared lengths have rounding errors of about 1e-15 |Z|_2^2, which
    shrunk includes. Rows of B of lengths a and b have a cosine of about 1e-16 |Z|_2^2 / (a b)
    instead of 0."""

    B: np.ndarray
    values: np.ndarray
    shrunk: float
    ridge: float
    squares: float
    count: int


def _weight_at(half_life, age):
    return np.exp2(-age / (math.inf if half_life is None else half_life))


def _total_weight(half_life, count):
    if half_life is None:
        return float(count)
    rate = -math.log(2.0) / half_life
    return math.expm1(count * rate) / math.expm1(rate)


def _is_half_life(half_life):
    return half_life is None or half_life >= 1.0


@_helper
def _gram_of_columns(columns, panels, G):
    """Write the upper half of columns^T columns to G, which has whole panels."""
    m, size = columns.shape
    width = panels.shape[2]
    G[:] = 0.0
    for first in range(0, m, _BLOCK):
        last = min(m, first + _BLOCK)
        for c in range(len(panels)):
            panel = panels[c]
            begin = c * width
            for t in range(first, last):
                for q in range(width):  # the padding of the last panel is never read
                    panel[t - first, q] = columns[t, min(begin + q, size - 1)]
            for r in range(0, begin + width, _PRODUCT_ROWS):
                _add_transposed_product(columns, r, size - 1, first, last, panel, G, r, begin)


@_helper
def _turn(columns, V, p, panels, product):
    """Replace A = `columns` by A V[:p]^T, followed by zeros."""
    m, size = columns.shape
    width = panels.shape[2]
    for j in range(p):  # the padding of the last panel is never read
        for t in range(size):
            panels[j // width, t, j % width] = V[j, t]
    for first in range(0, m, len(product)):
        n = min(len(product), m - first)
        product[:] = 0.0
        for r in range(0, n, _PRODUCT_ROWS):
            for c in range(0, p, width):
                panel = panels[c // width]
                _add_product(columns, first + r, m - 1, 0, size, panel, product, r, c)
        for r in range(n):
            row = columns[first + r]
            for q in range(size):
                row[q] = product[r, q] if q < p else 0.0


@_helper
def _decompose(G, values, V):
    """Eigenpairs of G, given its upper half: descending values, and vectors as rows of V."""
    size = len(values)
    A = np.empty((size, size))
    rows = np.identity(size)
    found = np.empty(size)
    beside = np.empty(size)
    scale = 1e-300
    for i in range(size):
        scale = max(scale, G[i, i])
    for i in range(size):  # loops, because assignments of slices compile for seconds
        for j in range(i, size):
            A[i, j] = A[j, i] = G[i, j] / scale
    _tridiagonalize(A, found, beside)
    _diagonalize(found, beside, rows)
    _reflect(A, rows)
    for i in range(size):
        place = 0
        for j in range(size):
            place += found[j] > found[i] or found[j] == found[i] and j < i
        values[place] = scale * found[i]
        for t in range(size):
            V[place, t] = rows[i, t]


@_helper
def _shorten(values, V, rules, last):
    """Shorten squared lengths and rows of V by `fd_start`. Returns count and reduction."""
    ell, half, share = rules
    rows = (ell + 1) // 2 if half else ell
    place = ell if last else rows - half
    spared = min(np.int64((1.0 - share) * rows), rows - 1)
    lowest = 4.5e-16 * len(V) * values[0]  # rounding error
    kept = 0
    for value in values:
        kept += value > lowest
    if kept <= ell:
        place = kept
        spared = kept
    taken = max(values[place], 0.0)
    used = 0
    while used < place and values[used] > taken:
        weight = 1.0 if used < spared else math.sqrt(1.0 - taken / values[used])
        values[used] *= weight**2
        for t in range(len(V)):
            V[used, t] *= weight
        used += 1
    values[used:] = 0.0
    return used, taken


@_helper
def _fill(X, features, fade, used, run, mean, mass):
    """Write the rows z of X, or their features, to columns `used` and later of `run`, with weights
    by age. If there is a mean, sqrt(n / (n + 1)) (z - mean) replaces z, where n is the weight and
    `mean` the mean of earlier rows. Then the sum of z z^T is the scatter matrix. Returns |z|^2."""
    panels, phases, factor = features
    n = len(X)
    angles = _new_tile(X)
    rows = _new_tile(run)
    squares = np.zeros(n)
    left = fade ** (0.5 * n)
    for begin in range(0, len(run), _BLOCK):
        count = min(_BLOCK, len(run) - begin)
        for t in range(count if fade < 1.0 else 0):
            for q in range(used):
                run[begin + t, q] *= left
        if len(phases) > 0:
            _fourier_tile(X, 0, panels, phases, begin, factor, angles, rows, 0)
        n_before = mass
        for i in range(n):
            row = rows[i]
            source = X[i, begin:]
            for t in range(0 if len(phases) > 0 else count):
                row[t] = source[t]
            n_before *= fade
            step = 1.0 / (n_before + 1.0)
            root = math.sqrt(n_before * step)
            n_before += 1.0
            for t in range(count if len(mean) > 0 else 0):
                gap = row[t] - mean[begin + t]
                mean[begin + t] += step * gap
                row[t] = root * gap
            squares[i] += _dot(row[:count], row[:count])
        for i in range(n):  # writing in the loop above takes 1.07 times as long
            weight = fade ** (0.5 * (n - 1 - i))
            for t in range(count):
                run[begin + t, used + i] = weight * rows[i, t]
    return squares


@_core
def _sketch_runs(X, features, begins, rules, fade, last, mass, runs, lengths):
    """Sketch runs of rows of X, begins[t] to begins[t + 1] - 1, or of their features, by
    `fd_start`. If `last`, the squared length of column ell + 1 is subtracted. runs: an array for
    each field of _Runs. The first run has rows of weight `mass` already. Lengths come from
    eigenvalues of A^T A, where A is the columns: LAPACK's SVD takes 4 to 8 times as long."""
    # Inside the loop, numba removes some stores to arrays of a tuple, as if nobody read them.
    columns, filled, shrunk, sums, counts, means = runs
    for index in prange(len(lengths)):
        _wide_vectors()
        task = np.int64(index)
        run = columns[task]
        size = run.shape[1]
        width = _NARROW_PANEL // run.itemsize
        whole = _ceil_div(size, width) * width
        G = _aligned((whole, whole), run)
        panels = _aligned((whole // width, max(_BLOCK, size), width), run)
        V = np.empty((size, size))
        weight = 0.0 if task else mass
        used = filled[task]
        begin = begins[task]
        end = begins[task + 1]
        while True:
            n = min(size - used, _BLOCK, end - begin)
            squares = _fill(X[begin : begin + n], features, fade, used, run, means[task], weight)
            shrunk[task] *= fade**n
            counts[task] += n
            for i in range(n):  # sequential sums have the same bits for every split into calls
                weight = weight * fade + 1.0
                sums[task] = sums[task] * fade + squares[i]
            used += n
            begin += n
            if used == size or last:
                _gram_of_columns(run, panels, G)
                _decompose(G, lengths[task], V)
                used, taken = _shorten(lengths[task], V, rules, last)
                _turn(run, V, used, panels, G)
                shrunk[task] += taken
            if begin == end:
                break
        filled[task] = used


_NOT_DRAWN = np.empty((0, 0, 0)), np.empty(0), 1.0  # for cores: rows of X are not replaced


def _sketches(state, X, drawn, begins, last=False):
    """Sketches (_Runs) of runs of rows of X or, if features are `drawn`, of features of X. Run t has
    rows begins[t] to begins[t + 1] - 1. If it begins with row 0, it continues state.run. If `last`,
    the sketches have ell rows. Also returns the squared lengths of rows of the first sketch."""
    m, size = state.run.columns.shape
    centered = state.run.means is not None
    tasks = len(begins) - 1
    columns = np.zeros((tasks, m, size))
    used = np.zeros(tasks, np.int64)
    shrunk = np.zeros(tasks)
    squares = np.zeros(tasks)
    counts = np.zeros(tasks, np.int64)
    means = np.zeros((tasks, m if centered else 0))
    if begins[0] == 0:
        columns[0] = state.run.columns
        used[0] = state.run.used
        shrunk[0] = state.run.shrunk
        squares[0] = state.run.squares
        counts[0] = state.run.count
        if centered:
            means[0] = state.run.means
    lengths = np.zeros((tasks, size))
    rules = state.ell, state.half, state.share
    fade = _weight_at(state.half_life, 1)
    mass = _total_weight(state.half_life, counts[0])
    panels, phases, factor = _NOT_DRAWN if drawn is None else drawn
    # Measured nanoseconds: 2 to store an entry, 1.5 for a cosine, .6 size^3 for an eigenproblem.
    each = 2.0 * m + 1.5 * len(phases) + _MULTIPLY_ADD * panels.size
    turn = 2.0 * _MULTIPLY_ADD * m * size + 0.6 * size * size  # for each freed column
    work = (each + 1.6 * turn) * len(X)
    arrays = columns, used, shrunk, squares, counts, means
    features = panels, phases, factor
    _sketch_runs(work, X, features, np.array(begins), rules, fade, last, mass, arrays, lengths)
    sketches = [
        _Runs(
            columns[t],
            int(used[t]),
            float(shrunk[t]),
            float(squares[t]),
            int(counts[t]),
            means[t] if centered else None,
        )
        for t in range(tasks)
    ]
    return sketches, lengths[0]


def _merged(older, run, state):
    """A sketch of the rows of older runs and of the newer rows of `run`."""
    if not older.count:
        return run
    if not run.count:
        return older
    left = float(_weight_at(state.half_life, run.count))
    squares = left * older.squares + run.squares
    rows = run.columns.T[: run.used]
    means = older.means
    if means is not None:
        mass = left * _total_weight(state.half_life, older.count)
        share = 1.0 / (1.0 + mass / _total_weight(state.half_life, run.count))
        gap = run.means - means
        between = math.sqrt(mass * share) * gap
        rows = np.vstack([rows, between])
        squares += float(np.square(between).sum())
        means = means + share * gap
    start = older._replace(
        columns=math.sqrt(left) * older.columns,
        shrunk=left * older.shrunk + run.shrunk,
        means=None,
    )
    plain = state._replace(run=start, half_life=None)
    (found,), _ = _sketches(plain, rows.copy(), None, [0, len(rows)])
    return found._replace(squares=squares, count=older.count + run.count, means=means)


def _whole(state):
    """The state with all of its runs merged into one."""
    return state._replace(run=_merged(state.older, state.run, state), older=_NO_RUNS)


def _absorb(state, X, drawn=None):
    """The state after the rows of X or, if features are `drawn`, after features of X. Runs are
    sketched in parallel. Complete runs are merged in order, and the last one stays apart."""
    older = state.older
    latest = _NO_RUNS
    length = max(1000, 20 * state.ell)  # merging a run is 3 % of its work
    begins = [0, *range(max(0, length - state.run.count), len(X), length), len(X)]
    together = max(16, min(64, 2**23 // state.run.columns.size))  # at most 64 MB, or 16 sketches
    for first in range(0, len(begins) - 1, together):
        sketches, _ = _sketches(state, X, drawn, begins[first : first + together + 1])
        for found in sketches:
            older = _merged(older, latest, state)
            latest = found
    latest = latest._replace(columns=latest.columns.copy())  # frees the other sketches
    return state._replace(run=latest, older=older)


def _fd_update(state, Z):
    return _absorb(state, _in_double(Z))


def _fd_merge(a, b):
    return _whole(_whole(b)._replace(older=_whole(a).run))


def _fd_finish(state):
    state = _whole(state)
    nothing = np.empty((0, len(state.run.columns)))
    (found,), lengths = _sketches(state, nothing, None, [0, 0], last=True)
    B = found.columns.T[: state.ell].copy()
    ridge = 0.5 * found.shrunk
    return Sketch(B, lengths[: state.ell], found.shrunk, ridge, found.squares, found.count)


def _shapes(runs):
    return runs.columns.shape, runs.means is None


def _fd_arguments(state):
    return _shapes(state.run), state.ell, state.half, state.share, state.half_life


@_stream(
    columns=lambda state: len(state.run.columns),
    update=_fd_update,
    merge=_fd_merge,
    finish=_fd_finish,
    arguments=_fd_arguments,
)
@_validated(
    "an FDState returned by fd_start or update",
    lambda state: (
        state.run.used < state.run.columns.shape[1] > state.ell >= 1
        and _is_half_life(state.half_life)
        and (not state.older.count or _shapes(state.older) == _shapes(state.run))
    ),
)
class FDState(NamedTuple):
    """A sketch in progress, of the current run and of older runs. Other fields: see `fd_start`.
    `update` with n rows costs O(n m ell) time. If half_life is None, the split into calls changes
    none of its bits. A merged state satisfies the error bound of a single pass over all rows."""

    run: _Runs
    older: _Runs
    ell: int
    half: bool
    share: float
    half_life: float = None
    names: bytes = b""

    @property
    def count(self):
        return self.run.count + self.older.count


@_public
def fd_start(ell, m, *, half=True, share=1.0, half_life=None):
    """Start a frequent directions sketch of rows of length m (Liberty 2013; SKPCA algorithm 1).

    When the buffer is full, its rows are made orthogonal and sorted by length. If the rank exceeds
    ell, the squared length of row ell / 2, or of row ell + 1 if `half` is False, is subtracted from
    all squared lengths. Sketches of max(1000, 20 ell) rows are computed on all threads and merged
    in order. Needs O(m ell) memory, and a call up to 64 MB, or 16 sketches if that is more.

    Args:
        ell: int from 1 to m. Number of rows of the result.
        m: int, at least 1. Length of a row.
        half: bool. If True, the buffer has 5 ell / 4 rows. If False, 2 ell rows and half the bound.
        share: float from 0 to 1. Fraction of rows, counted from the shortest, that is shortened. A
            share of 0.2 (Desai et al. 2016) lowers the error on most data, but weakens the bound.
        half_life: float, at least 1, or None. Number of rows after which a weight halves: bounds
            hold for rows 2^(-(n - i) / (2 half_life)) z_i. If not None, states cannot be merged.
    Returns:
        FDState: The state before the first row, for `update`, `merge` and `finish`.
    Example:
        >>> state = update(fd_start(1, 2), np.array([[3.0, 0.0], [4.0, 0.0]]))
        >>> np.abs(finish(state).B).round(12).tolist()
        [[5.0, 0.0]]
    """
    m = _checked_count("m", m, _MOST)
    ell = _checked_count("ell", ell, m)
    half = _as_flag("half", half)
    share = _checked_real("share", share, 0.0, 1.0)
    _fits("ell", 16.0 * ell * m)
    size = ell + max(1, ell // 4) if half else 2 * ell  # more than ell, so that rank ell fits
    run = _NO_RUNS._replace(columns=np.zeros((m, size)))
    return FDState(run, _NO_RUNS, ell, half, share, _as_half_life(half_life))


@_public
def frequent_directions(Z, ell, *, half=True, share=1.0, half_life=None):
    """Few rows B with 0 <= Z^T Z - B^T B <= shrunk I (Liberty 2013; SKPCA section 2).

    Args:
        Z: (n, m) array. Rows.
        ell, half, share, half_life: See `fd_start`.
    Returns:
        Sketch: B and its error bounds. Costs O(n m ell) time and O(m ell) memory.
    Example:
        >>> sketch = frequent_directions(np.diag([5.0, 4.0, 3.0]), 2, half=False)
        >>> sketch.values.round(12).tolist(), round(sketch.shrunk, 12)
        ([16.0, 7.0], 9.0)
    """
    Z = _checked_points("Z", Z)
    state = fd_start(ell, Z.shape[1], half=half, share=share, half_life=half_life)
    return _fd_finish(_fd_update(state, Z))


# 11.3 Streaming kernel PCA


def _fit_subspace(X, subspace):
    _require(not _is_sparse(X), "X must be dense, such as rademacher_projection(X, s)")
    _require_columns(X, subspace.feature_map.d)


def _centered_slabs(X, subspace):
    """Slices of the rows of X, and their features z(x) - means."""
    for rows, Z in _feature_slabs(X, subspace.feature_map):
        if subspace.means is not None:
            Z -= subspace.means
        yield rows, Z
        del Z  # Measured for 20,000 x 1000 features: 54 ms without this line, 30 ms with it.


def _write_components(X, subspace, out):
    basis = subspace.basis.astype(X.dtype)
    for rows, Z in _centered_slabs(X, subspace):
        out[rows] = _dense_product(Z, basis)
        del Z
    _require_finite("features of X", out)


def _distances_from_subspace(X, subspace):
    """|(I - W W^T) (z(x) - means)| / sqrt(k(x, x)), where W is the basis."""
    distances = np.empty(len(X))
    for rows, Z in _centered_slabs(X, subspace):
        Z -= _dense_product(_dense_product(Z, subspace.basis), subspace.basis.T)
        distances[rows] = np.sqrt(_squared_norms(Z))
        del Z
    _require_finite("features of X", distances)
    return distances / math.sqrt(subspace.feature_map.kernel.scale)


def _moments_of_subspace(X, subspace):
    features = np.empty((len(X), subspace.values.size))
    _write_components(X, subspace, features)
    size = sums = 0.0
    # Features without pairs have different lengths.
    for _, Z in _feature_slabs(X, subspace.feature_map):
        size += (Z**2).sum()
        sums += Z.sum(0)
    return features, size, (sums**2).sum()


# In compiled code, None and an array have different types.
def _mean_or_zero(means, j):
    """means[j], or 0 if features are not centered."""


@overload(_mean_or_zero)
def _compiled_mean_or_zero(means, j):
    if isinstance(means, types.NoneType):
        return lambda means, j: 0.0
    return lambda means, j: means[j]


@_helper
def _add_components(x, model, out):
    """Add the features of one point to `out`. Returns |z(x) - means|^2."""
    square = 0.0
    for j in range(model.feature_map.m):
        z = _feature_of_point(x, model.feature_map, j, model.feature_map.m) - _mean_or_zero(
            model.means, j
        )
        square += z * z
        for q in range(len(out)):
            out[q] += z * model.basis[j, q]
    return square


def _of_subspace(x, model, out):
    out[:] = 0.0
    _add_components(x, model, out)


def _residual_of_subspace(x, model, out):
    out[:] = 0.0
    square = _add_components(x, model, out)
    for value in out:
        square -= value * value
    return math.sqrt(max(square, 0.0) / model.feature_map.kernel.scale)


@_model(
    fit=_fit_subspace,
    shape=lambda subspace: (subspace.values.size,),
    features=_write_components,
    of_point=_of_subspace,
    values=_own_values,
    residual=_distances_from_subspace,
    residual_of_point=_residual_of_subspace,
    moments=_moments_of_subspace,
    sketch=_own_pairs,
    whole=True,
)
@_validated(
    "a Subspace returned by skpca, rnca or finish",
    lambda made: (
        made.basis.shape == (made.feature_map.m, made.values.size)
        and (made.means is None or made.means.size == made.feature_map.m)
    ),
    values=1,
    means=1,
)
class Subspace(NamedTuple):
    """Leading directions in the space of random features: f(x) = basis^T (z(x) - means). basis: (m,
    k), orthonormal columns. values: (k,), approximate eigenvalues of the Gram matrix Z Z^T, at most
    `shrunk` too small. count: total weight of points. means: (m,), or None if not centered. Features
    of n points cost O(n m (d + k)) time. The random features of 4096 points are in memory at a time.
    The residual of a point is its novelty: compare it with quantiles of the residuals of known
    points."""

    feature_map: FourierMap
    basis: np.ndarray
    values: np.ndarray
    shrunk: float
    count: int
    means: np.ndarray = None
    names: bytes = b""


def _subspace_of(feature_map, stream, means, columns, values, shrunk):
    """A Subspace of orthonormalized columns. Columns that are only rounding error become 0."""
    values = np.where(values > 4.5e-16 * feature_map.m * values[0], values, 0.0)
    rank = np.count_nonzero(values)
    basis = np.zeros(columns.shape)
    # Short columns of a sketch are not orthogonal to long ones, because of rounding errors.
    basis[:, :rank] = np.linalg.qr(columns[:, :rank] / _unit_of(columns[:, :rank], 0))[0]
    basis = _fix_signs(basis)
    means = None if means is None else means.copy()
    count = round(_total_weight(stream.half_life, stream.count))
    return Subspace(feature_map, basis, values, shrunk, count, means)


def _skpca_update(state, X):
    sketch = state.sketch
    feature_map = state.feature_map
    if _kind_of(feature_map).parts:
        for _, Z in _feature_slabs(X, feature_map, max(4 * _BLOCK, 2**20 // feature_map.m)):
            sketch = _absorb(sketch, _in_double(Z))
    else:
        sketch = _absorb(sketch, X, _drawn(X, feature_map, 0, feature_map.m, feature_map.m))
    return state._replace(sketch=sketch)


def _skpca_merge(a, b):
    return a._replace(sketch=_fd_merge(a.sketch, b.sketch))


def _skpca_finish(state, k):
    sketch = _whole(state.sketch)
    found = _fd_finish(sketch)
    columns = found.B.T[:, :k]
    values = found.values[:k]
    return _subspace_of(state.feature_map, sketch, sketch.run.means, columns, values, found.shrunk)


def _without_frequencies(feature_map):
    """Other fields determine the frequencies. An array compares to no single truth value."""
    return feature_map._replace(frequencies=None)


@_stream(
    columns=lambda state: state.feature_map.d,
    update=_skpca_update,
    merge=_skpca_merge,
    finish=_skpca_finish,
    most=lambda state: state.sketch.ell,
    arguments=lambda state: (
        _without_frequencies(state.feature_map),
        _fd_arguments(state.sketch),
    ),
    options={"m": 2000, "ell": 50, "block": 8192},
)
@_validated(
    "an SKPCAState returned by skpca_start or update",
    lambda state: len(state.sketch.run.columns) == state.feature_map.m,
)
class SKPCAState(NamedTuple):
    """Streaming kernel PCA in progress, with a sketch of features. Centered runs have means.
    `update` with n points costs O(n m (d + ell)) time, and max(1000, 20 ell) points or more keep a
    thread busy. If half_life is None, the split into calls changes no bits. A merged state that is
    centered has the exact mean of all points."""

    feature_map: FourierMap
    sketch: FDState
    names: bytes = b""

    @property
    def count(self):
        return self.sketch.count

    @property
    def half_life(self):
        return self.sketch.half_life


@_public
def skpca_start(feature_map, ell, *, centered=True, half=True, share=1.0, half_life=None):
    """Start streaming kernel PCA with random features (SKPCA algorithm 1).

    Args:
        feature_map: FourierMap. It contains the kernel.
        ell: int from 1 to feature_map.m. Number of rows of the sketch.
        centered: bool. If True, subtract the mean of the features, which is updated exactly. The
            paper does not: pass False.
        half, share, half_life: See `fd_start`.
    Returns:
        SKPCAState: The state before the first point, for `update`, `merge` and `finish`.
    Example:
        >>> feature_map = fourier_features_map(gaussian(1.0), 1, 8)
        >>> state = update(skpca_start(feature_map, 4), np.array([[0.0], [0.5], [3.0]]))
        >>> features(np.array([[1.0], [2.0]]), finish(state, 2)).shape
        (2, 2)
    """
    feature_map = _checked_map("feature_map", feature_map)
    sketch = fd_start(ell, feature_map.m, half=half, share=share, half_life=half_life)
    if _as_flag("centered", centered):
        sketch = sketch._replace(run=sketch.run._replace(means=np.zeros(feature_map.m)))
    return SKPCAState(feature_map, sketch)


@_public
def skpca(X, kernel, k, m, ell, seed=0, *, centered=True, half=True, share=1.0, half_life=None):
    """Streaming kernel PCA of an array in one call (SKPCA algorithm 1).

    Z W W^T Z^T approximates the Gram matrix for features Z and directions W. For k(x, x) = 1, m =
    O(log(n) / eps^2) and ell = k = 8 / eps, the spectral error is with high probability at most eps
    n (SKPCA lemma 3.1, theorem 3.2). Costs O(n m (d + ell)) time and O(m (d + ell)) memory.

    Args:
        X: (n, d) array. Points.
        kernel: Kernel. gaussian, laplacian, matern, rational_quadratic or cauchy.
        k: int from 1 to ell. Number of directions. Those beyond the sketch's rank are 0.
        m: int, at least 1. Number of random features, from `fourier_features_map`.
        ell: int from 1 to m. Number of rows of the sketch.
        seed: int from 0 to 2**64 - 1. Seed of the features.
        centered: See `skpca_start`.
        half, share, half_life: See `fd_start`.
    Returns:
        Subspace: The directions, for `features` and `residual`.
    Example:
        >>> X = np.linspace(0.0, 1.0, 50)[:, None]
        >>> model = skpca(X, gaussian(1.0), 2, 400, 20)
        >>> residual(np.array([[0.5], [50.0]]), model).round().tolist()
        [0.0, 1.0]
    """
    X = _checked_points("X", X)
    state = skpca_start(
        fourier_features_map(kernel, X.shape[1], m, seed),
        ell,
        centered=centered,
        half=half,
        share=share,
        half_life=half_life,
    )
    k = _checked_count("k", k, state.sketch.ell)
    return _skpca_finish(_skpca_update(state, X), k)


# 11.4 An alternative: PCA with the covariance of the features


def _add_moments(a, squares, means, mass, n):
    """The state after n more points of total weight `mass` (Chan, Golub, LeVeque 1983)."""
    left = _weight_at(a.half_life, n)
    before = left * _total_weight(a.half_life, a.count)
    share = mass / max(1.0, before + mass)
    gap = means - a.means
    total = left * a.squares + squares
    if a.centered:
        total += before * share * np.outer(gap, gap)
    return a._replace(squares=total, means=a.means + share * gap, count=a.count + n)


def _rnca_update(state, X):
    for _, Z in _feature_slabs(X, state.feature_map, 64 * _BLOCK):
        weights = _weight_at(state.half_life, np.arange(len(Z))[::-1])
        forgets = state.half_life is not None
        means = np.average(Z, 0, weights) if forgets else Z.mean(0, np.float64)
        if state.centered:  # subtracting the slab's means loses no digits in float32
            Z -= means
        if forgets:
            Z *= np.sqrt(weights)[:, None]
        state = _add_moments(state, _column_products(Z, Z), means, weights.sum(), len(Z))
        del Z
    return state


def _rnca_merge(a, b):
    return _add_moments(a, b.squares, b.means, b.count, b.count)


def _rnca_finish(state, k):
    key = _key(state.feature_map.seed, _START)
    eigen = _lanczos(state.squares, k, key, 1e-12, 1000)
    values = eigen.values * (eigen.values > eigen.residual * eigen.values[0])
    means = state.means if state.centered else None
    return _subspace_of(state.feature_map, state, means, eigen.vectors, values, 0.0)


@_stream(
    columns=lambda state: state.feature_map.d,
    update=_rnca_update,
    merge=_rnca_merge,
    finish=_rnca_finish,
    most=lambda state: state.feature_map.m,
    arguments=lambda state: (
        _without_frequencies(state.feature_map),
        state.centered,
        state.half_life,
    ),
)
@_validated(
    "an RNCAState returned by rnca_start or update",
    lambda state: (
        state.squares.shape == (state.feature_map.m, state.feature_map.m)
        and state.means.size == state.feature_map.m
        and _is_half_life(state.half_life)
    ),
    means=1,
)
class RNCAState(NamedTuple):
    """Randomized nonlinear components. squares: (m, m), sum of z z^T, centered if `centered`.
    means: (m,), mean of z. `update` with n points costs O(n m (d + m)) time. Its result does not
    depend on the split into calls, up to rounding. The features of 8192 points are in memory at a
    time. The map's seed is also the seed of the eigensolver of `finish`."""

    feature_map: FourierMap
    squares: np.ndarray
    means: np.ndarray
    count: int
    centered: bool
    half_life: float = None
    names: bytes = b""


@_public
def rnca_start(feature_map, *, centered=True, half_life=None):
    """Start randomized nonlinear component analysis (Lopez-Paz et al. 2014; SKPCA section 1.2).

    Args:
        feature_map, centered: See `skpca_start`.
        half_life: float, at least 1, or None. Points after which a weight halves. None means never.
    Returns:
        RNCAState: The state before the first point. Needs O(m^2) memory.
    Example:
        >>> feature_map = fourier_features_map(gaussian(1.0), 1, 8)
        >>> a = update(rnca_start(feature_map), np.array([[0.0], [0.5]]))
        >>> b = update(rnca_start(feature_map), np.array([[3.0]]))
        >>> merge(a, b).count, finish(merge(a, b), 2).basis.shape
        (3, (8, 2))
    """
    feature_map = _checked_map("feature_map", feature_map)
    m = feature_map.m
    _fits("feature_map.m", 8.0 * m * m)
    centered = _as_flag("centered", centered)
    half_life = _as_half_life(half_life)
    return RNCAState(feature_map, np.zeros((m, m)), np.zeros(m), 0, centered, half_life)


@_public
def rnca(X, kernel, k, m, seed=0, *, centered=True, half_life=None):
    """PCA of random features with their covariance matrix (Lopez-Paz et al. 2014; SKPCA 1.2).

    Args:
        X: (n, d) array. Points.
        kernel: Kernel. gaussian, laplacian, matern, rational_quadratic or cauchy.
        k: int from 1 to m. Number of directions.
        m: int, at least 1. Number of random features, from `fourier_features_map`.
        seed: int from 0 to 2**64 - 1. Seed of the features and of the eigensolver's first vectors.
        centered: See `skpca_start`.
        half_life: See `rnca_start`.
    Returns:
        Subspace: Directions with shrunk = 0. Costs O(n m (d + m)) time and O(m^2) memory.
    Example:
        >>> X = np.array([[0.0], [1.5]])
        >>> rnca(X, gaussian(1.0), 2, 4000, centered=False).values.round(1).tolist()
        [1.3, 0.7]
    """
    X = _checked_points("X", X)
    feature_map = fourier_features_map(kernel, X.shape[1], m, seed)
    k = _checked_count("k", k, feature_map.m)
    state = rnca_start(feature_map, centered=centered, half_life=half_life)
    return _rnca_finish(_rnca_update(state, X), k)


# --------------------------------------------------------------------------------------------------
# 12. Doubly stochastic gradients (DSGD)
#
# Each function is a sum over m random features: h(x) = sum_j coef_j phi_j(x), where phi_j(x) =
# sqrt(2 k(x, x)) cos(r_j.x + gamma_j). The paper adds features in each step. Here m is fixed. A
# step generates feature j from the seed and j, so a state stores k numbers per feature for any d.
#
# `_values` is the paper's algorithm 2. Comments in `_step` cite lines of algorithms 1, 3 and 4. Row
# j of coef is the paper's alpha_j, row j of other_coef its beta_j, and W a mean of its h h^T.

# 12.1 Steps and tasks


@_validated(
    "a DSGDSteps, for example DSGDSteps(theta0=0.1)",
    count="count",
    batch="count",
    feature_batch="count",
    theta0="step size",
    theta1="decay",
    initial="count",
)
class DSGDSteps(NamedTuple):
    """Steps of stochastic gradients. Step t has size theta0 / (1 + theta1 t), t = 0, 1, ...

    count: number of steps, None for max(200, 4 ceil(m / feature_batch)); batch: points per step,
    drawn with replacement, None for min(512, n); feature_batch: largest number of features per
    step; theta0 > 0: first step size; theta1, at least 0: its decay (None: see `dsgd_start` and
    `dsgd_kcca_start`); initial: number of features used by the start. Values above m mean m."""

    count: int = None
    batch: int = None
    feature_batch: int = 128
    theta0: float = None
    theta1: float = None
    initial: int = 256


class _Task(NamedTuple):
    """A problem that the steps solve. States and files contain its name."""

    name: str
    individual: bool = False  # whether functions are eigenfunctions (Hebbian rule), or a basis
    two_views: bool = False  # whether there are functions of a second view, with its own map
    sliced: bool = False  # whether there are functions of slices of targets
    correlated: bool = False  # whether functions get unit variance, and not unit norm

    @property
    def takes_y(self):
        return self.two_views or self.sliced


_TASKS = {
    task.name: task
    for task in (
        _Task("components"),
        _Task("single components", individual=True),
        _Task("singular", two_views=True),
        _Task("canonical", two_views=True, correlated=True),
        _Task("sliced", sliced=True, correlated=True),
    )
}


@_validated("slices of a DSGDState")
class _Slices(NamedTuple):
    """S slices for each of t targets: edges (t, S - 1), ascending; weights (t S, q): q features."""

    edges: np.ndarray
    weights: np.ndarray


# 12.2 Values of functions (DSGD algorithm 2)

_FEW_ROWS = 64  # so that a mini-batch of 512 points has eight tasks


@_core
def _add_features(X, panels, phases, factor, coef, out):
    """Add sum_j coef_j phi_j(x) over drawn features to `out`."""
    for index in prange(_ceil_div(len(X), _FEW_ROWS)):
        _wide_vectors()
        angles = _new_tile(X)
        cosines = _new_tile(X)
        product = _aligned((_FEW_ROWS, out.shape[1]), X)
        first = np.int64(index) * _FEW_ROWS
        P = X[first : first + _FEW_ROWS]
        for begin in range(0, len(phases), _BLOCK):
            _fourier_tile(P, 0, panels, phases, begin, factor, angles, cosines, 0)
            product[:] = 0
            count = min(_BLOCK, len(phases) - begin)
            _multiply_add(cosines, 0, len(P), 0, count, coef, begin, product)
            _add_block(product, len(P), out, first)


def _sum_of_features(X, feature_map, coef):
    """h(x) = sum_j coef_j phi_j(x) over the first features, (n, k) float64 (DSGD algorithm 2)."""
    n, d = X.shape
    k = coef.shape[1]
    wide = _padded_width(k, X)
    values = np.zeros((n, wide))
    for features in _slabs(len(coef), _BLOCK * max(1, 2**13 // d)):  # 8 MB of frequencies
        some = coef[features].astype(X.dtype)
        drawn = _drawn(X, feature_map, features.start, len(some), 1.0, "X (or Y)")
        work = n * len(some) * (1.0 + _MULTIPLY_ADD * (d + wide))
        _add_features(work, X, *drawn, _packed_vectors(some), values)
    return np.ascontiguousarray(values[:, :k])


def _some_features(X, feature_map, first, count, divisor=1.0):
    return _in_double(_features_from(X, feature_map, first, count, divisor, "X (or Y)"))


def _indicators(targets, edges):
    one_hot = np.eye(edges.shape[1] + 1)
    return np.hstack(
        [one_hot[np.searchsorted(row, column, "right")] for row, column in zip(edges, targets.T)]
    )


def _slice_features(state, targets):
    return _indicators(targets, state.slices.edges) @ state.slices.weights


def _values(state, P, second):
    """Functions of the first view, of the second view or of targets at P, (n, k) float64."""
    if not second:
        return _sum_of_features(P, state.feature_map, state.coef[: state.used])
    if state.slices is not None:
        return _slice_features(state, P) @ state.other_coef
    return _sum_of_features(P, state.other, state.other_coef[: state.used])


@register_jitable
def _pair_size(state):
    """Factor of results: in a state, the two functions of a pair have norm 1 together."""
    return 1.0 if state.other_coef is None else math.sqrt(2.0)


@_helper
def _add_of_point(x, feature_map, coef, used, size, out):
    """out = size sum_j coef_j phi_j(x) over the first `used` features of one point."""
    out[:] = 0.0
    for j in range(used):
        value = size * _feature_of_point(x, feature_map, j, 1.0)
        for q in range(len(out)):
            out[q] += coef[j, q] * value


# 12.3 Steps (DSGD algorithms 1, 3 and 4)


def _kernel_scale(state):
    """k(x, x) that limits step sizes: the larger of two views, or their geometric mean for SVD."""
    scale = state.feature_map.kernel.scale
    if state.other is None:
        return scale
    other = state.other.kernel.scale
    return (
        max(scale, other) if _TASKS[state.task].correlated else math.sqrt(scale) * math.sqrt(other)
    )


def _centered(state, U):
    return U - U.mean(0) if state.centered else U


def _step_size(state, n):
    """theta0 / (1 + theta1 t). Default steps are limited, because a point adds eta k(x, x) h / n to
    h. Measured limits in units of n / k(x, x): .6, and .005 to .035 for canonical correlations."""
    eta = state.theta0 / (1.0 + state.theta1 * state.step)
    share = 0.005 if _TASKS[state.task].correlated else 0.6
    return min(eta, share * n / _kernel_scale(state)) if state.chosen else eta


def _feature_block(state):
    """Range of a step's features (line 3): new ones first, then blocks of all m in random order.
    Block sizes are nearly equal: a last block of one feature ruined functions of 1280 features."""
    m = state.feature_map.m
    b = min(state.feature_batch, m)
    new = m - state.used
    if 2 * new >= b:
        return state.used, state.used + _ceil_div(new, _ceil_div(new, b))
    blocks = _ceil_div(m, b)
    turn, place = divmod(state.step, blocks)
    key = _python_subkey(_key(state.feature_map.seed, _REVISITS), turn)
    place = int(_draw_uniformly(blocks, blocks, key)[place])
    return place * m // blocks, (place + 1) * m // blocks


class _Move(NamedTuple):
    """A step that both views take: coef (I - decay) plus the mean of eta phi(x) g^T (DSGD (3))."""

    eta: float
    decay: np.ndarray
    first: int  # range of the features phi
    stop: int


def _moved(state, feature_map, coef, P, g, move):
    """coef of a view with a map after a step."""
    count = move.stop - move.first
    moved = coef.copy()
    kept = np.eye(len(move.decay)) - move.decay
    moved[: state.used] = _dense_product(coef[: state.used], kept)
    products = _transposed_product(_some_features(P, feature_map, move.first, count), g)
    moved[move.first : move.stop] += move.eta / (count * (len(P) - state.centered)) * products
    return moved


def _moved_second(state, P, g, move):
    """other_coef after a step. Slices have neither a ridge, and thus no decay, nor new features."""
    if state.slices is None:
        return _moved(state, state.other, state.other_coef, P, g, move)
    scaled = move.eta / (len(P) - state.centered) * _slice_features(state, P).T
    return state.other_coef + scaled @ g


def _constraint(state, u, v):
    """E u u^T + E v v^T + lam (Gram matrix of functions). It is I for canonical variates."""
    C = (_column_products(u, u) + _column_products(v, v)) / (len(u) - state.centered)
    for coef in (state.coef,) if state.slices is not None else (state.coef, state.other_coef):
        weights = coef[: state.used]
        C += state.lam * state.used * _column_products(weights, weights)
    return C


def _step(state, X, Y=None):
    """One step on a checked mini-batch of each view. For SIR, Y has the targets."""
    task = _TASKS[state.task]
    n = len(X)
    least = 4 if task.correlated else 1 + state.centered
    remedy = ": collect more, or start with centered=False" if least == 2 else ""
    _require(n >= least, f"a mini-batch must have at least {least} points, got {n}{remedy}")
    # Correlations compute W and the gradient from different halves. The same half would bias both.
    half = n // 2 if task.correlated else 0
    early = slice(half) if task.correlated else slice(n)
    late = slice(half, n)

    U = _values(state, X, False)  # line 4 (5)
    V = _values(state, Y, True) if task.takes_y else U
    u = _centered(state, U[early])
    v = _centered(state, V[early]) if task.takes_y else u
    W = _column_products(u, v) / (len(u) - state.centered)
    if task.takes_y:  # line 6 of algorithms 3 and 4
        W = W + W.T

    eta = _step_size(state, n)
    share = 2.0 / (state.step + 2.0)
    constraint = None
    late_u = _centered(state, U[late])
    late_v = _centered(state, V[late]) if task.takes_y else late_u
    gradient_x = late_v
    gradient_y = late_u
    if task.correlated:
        decay = eta * state.lam * W
        gradient_x = late_v - _dense_product(late_u, W)
        gradient_y = late_u - _dense_product(late_v, W)
        new = _constraint(state, u, v)
        constraint = state.constraint + share * (new - state.constraint)
    else:
        decay = eta * (np.triu(W) if task.individual else W)  # Hebbian rule (4.3)

    # Lines 5 and 6 of algorithm 1, and from line 7 on of algorithms 3 and 4
    move = _Move(eta, decay, *_feature_block(state))
    coef = _moved(state, state.feature_map, state.coef, X[late], gradient_x, move)
    other_coef = _moved_second(state, Y[late], gradient_y, move) if task.takes_y else None
    _require(
        _all_below(coef) and (other_coef is None or _all_below(other_coef)),
        f"steps.theta0 must be below {state.theta0:.2e}: the steps diverged at step {state.step}",
    )
    return state._replace(
        coef=coef,
        other_coef=other_coef,
        moment=state.moment + share * (W - state.moment),
        constraint=constraint,
        used=max(state.used, move.stop),
        step=state.step + 1,
    )


def _checked_targets(Y, rows):
    return _checked_points("Y", _as_columns("Y", Y), rows=rows)


def _checked_views(task, X, Y, d=None, columns=None, least=1):
    """X and, except for kernel PCA, Y: points in the precision of X, or targets in float64."""
    X = _checked_points("X", X, d, least=least)
    if not task.takes_y:
        return [X]
    Y = _as_columns("Y", Y)
    if task.two_views:
        Y = Y.astype(X.dtype, copy=False)
    return [X, _checked_points("Y", Y, columns, rows=len(X), least=least)]


def _take_batch(state, X, Y):
    task = _TASKS[state.task]
    _require(Y is None or task.takes_y, "Y must be None for kernel PCA")
    names = state.other_names
    columns = None
    if task.two_views:
        columns = state.other.d
        _require_same_columns("Y", _names(Y), "state", names.decode())
        names = _names(Y).encode() or names
    elif task.sliced:
        columns = len(state.slices.edges)
    views = _checked_views(task, X, Y, state.feature_map.d, columns, least=0)
    if len(X) > 0:
        state = _step(state, *views)
    return state._replace(other_names=names)


# 12.4 Results


def _fit_random_features(X, feature_map):
    _checked_map("model.feature_map", feature_map, True)
    _require(not _is_sparse(X), "X must be dense for functions of DSGD: call X.toarray()")
    _require_columns(X, feature_map.d)


def _write_fourier_expansion(X, model, out):
    out[:] = _sum_of_features(X, model.feature_map, model.coef)
    _require_finite("features of X", out)


def _of_fourier_expansion(x, model, out):
    _add_of_point(x, model.feature_map, model.coef, len(model.coef), 1.0, out)


@_model(
    fit=lambda X, model: _fit_random_features(X, model.feature_map),
    shape=lambda model: model.coef.shape[1:],
    features=_write_fourier_expansion,
    of_point=_of_fourier_expansion,
    values=_own_values,
)
@_validated(
    "a FourierExpansion whose coef has a row for each of the first features of its map",
    lambda made: (
        1 <= len(made.coef) <= made.feature_map.m and made.coef.shape[1] == made.values.size > 0
    ),
    values=1,
)
class FourierExpansion(NamedTuple):
    """Functions f_j(x) = sum_i coef_ij sqrt(2 k(x, x)) cos(r_i.x + gamma_i) of one view, with r_i and
    gamma_i of `feature_map`, coef (r, k) for its first r features, and `values` (k,): estimated
    eigenvalues, singular values or correlations, as in `dsgd_values`. `names`: see `Expansion`.

    For kernel PCA and SVD, functions have norm 1 in the kernel's space in the limit. For PCA, the
    mean of f_j(x)^2 is eigenvalue j. For SVD, the mean of u_j(x) v_j(y) is singular value j. For CCA
    and SIR, variance plus lam times squared norm is 1. Centered functions are known up to an
    additive constant. The features of n points cost n r (d + k) multiply-adds and n r cosines.
    Unstored frequencies cost r d random numbers, in compiled code for each point."""

    feature_map: FourierMap
    coef: np.ndarray
    values: np.ndarray
    names: bytes = b""


@_validated("a TwoViews from finish, dsgd_ksvd or dsgd_kcca")
class TwoViews(NamedTuple):
    """Models of two views, for points of the first and of the second view. Function j of one belongs
    to function j of the other, and `values` of both are the same."""

    first: FourierExpansion
    second: FourierExpansion


def _principal(state):
    """If individual, the moment's diagonal. Else, its eigenpairs relative to the constraint."""
    M = state.moment
    B = np.eye(len(M))
    task = _TASKS[state.task]
    if task.individual or not state.step:
        return M.diagonal().copy(), B
    if task.correlated:
        held, vectors = np.linalg.eigh(state.constraint)
        B = _over_roots(vectors, held, 1e-12 * held[-1])
    values, turn = np.linalg.eigh(B.T @ M @ B)
    return values[::-1].copy(), (B @ turn)[:, ::-1]


def _models_of(state):
    """The functions, rotated to descending order of their values by Rayleigh-Ritz (textbook).
    Individual functions are not rotated. The largest coefficients are positive."""
    task = _TASKS[state.task]
    sound = not task.correlated or state.constraint.shape == state.moment.shape
    _require(sound, "state.constraint must be (k, k)")
    values, turn = _principal(state)
    turn = _fix_signs(turn, state.coef @ turn)
    size = _pair_size(state)
    coef = size * (state.coef @ turn)[: state.used]
    first = FourierExpansion(state.feature_map, coef, values, state.names)
    if not task.two_views:
        return first
    other_coef = size * (state.other_coef @ turn)[: state.used]
    second = FourierExpansion(state.other, other_coef, values.copy(), state.other_names)
    return TwoViews(first, second)


# 12.5 States


def _write_of_state(X, state, out):
    out[:] = _pair_size(state) * _values(state, X, False)
    _require_finite("features of X", out)


def _of_state(x, model, out):
    size = _pair_size(model)
    _add_of_point(x, model.feature_map, model.coef, model.used, size, out)


def _is_whole(state):
    """Whether the fields of the task are there, and no core reads past the end of an array."""
    if state.task not in _TASKS:
        return False
    task = _TASKS[state.task]
    used = state.used
    return (
        1 <= used <= min(state.feature_map.m, len(state.coef))
        and (state.other is not None) == task.two_views
        and (state.other_coef is not None) == task.takes_y
        and (state.slices is not None) == task.sliced
        and (state.constraint is not None) == task.correlated
        and (not task.two_views or used <= min(state.other.m, len(state.other_coef)))
    )


@_stream(
    columns=lambda state: state.feature_map.d,
    update=_take_batch,
    finish=_models_of,
    has_points=lambda state: True,  # at its start
    second=True,
    options={"m": 8192, "block": 512},
)
@_model(
    fit=lambda X, state: _fit_random_features(X, state.feature_map),
    shape=lambda state: state.coef.shape[1:],
    features=_write_of_state,
    of_point=_of_state,
    values=lambda state: _principal(state)[0],
)
@_validated("a DSGDState from dsgd_start or another start", _is_whole)
class DSGDState(NamedTuple):
    """Doubly stochastic gradients in progress (DSGD algorithms 1, 3 and 4).

    `update(state, X, Y=None)` takes one step on a mini-batch of independent points: at least 2 if
    centered, 4 for kernel CCA and SIR. Y has their second view or targets; it is None for kernel
    PCA. Kernel PCA multiplies coef by I - eta W. W is the mean of h h^T, or its upper triangle for
    individual functions. Then the mean of eta phi(x) h(x)^T is added for a block of features. The
    features are new until less than half a block is left. Later steps visit blocks of all m in
    random order. CCA and SIR compute W from half of the points, and the gradient from the other
    half. A step costs the time of `features`, and memory for n feature_batch + m k numbers. If
    steps diverge, a ValueError says at which step.

    `finish(state)` returns a FourierExpansion or, of two views, TwoViews. `features(X, state)`
    evaluates the functions of the first view before they are rotated.

    Fields not listed are as in the start or DSGDSteps. task: name of the problem; feature_map, coef
    (m, k), other and other_coef: features and coefficients of both views; slices: see
    `dsgd_ksir_start`; moment (k, k): mean of W, with weight t + 1 at step t; constraint (k, k): the
    same mean of E u u^T + E v v^T + lam (Gram matrix of functions), for CCA and SIR; used and step:
    numbers of features and steps so far; chosen: True if theta0 was None; names and other_names:
    columns of both views. None: the task has no such field."""

    task: str
    feature_map: FourierMap
    coef: np.ndarray
    moment: np.ndarray
    used: int
    step: int
    feature_batch: int
    theta0: float
    theta1: float
    lam: float
    centered: bool
    chosen: bool
    other: FourierMap = None
    other_coef: np.ndarray = None
    slices: _Slices = None
    constraint: np.ndarray = None
    names: bytes = b""
    other_names: bytes = b""


@_public
def dsgd_values(state):
    """Estimated eigenvalues, singular values or correlations: Rayleigh quotients (textbook).

    Args:
        state: DSGDState. Later steps have larger weights.
    Returns:
        array: (k,), descending, or in the order of individual functions. It is 0 before any step.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((500, 1))
        >>> to_features = fourier_features_map(gaussian(1.0), 1, 256)
        >>> state = dsgd_start(X, to_features, 1)
        >>> dsgd_values(state).tolist()
        [0.0]
        >>> bool(0.0 < dsgd_values(update(state, X))[0] < 1.0)
        True
    """
    return _principal(_checked_as(DSGDState, "state", state))[0]


# 12.6 Initial problems

_ROOT_HALF = math.sqrt(0.5)  # norm of each function of a pair (u, v) of norm 1
_RANK = "k must be at most the rank of the initial features on X: pass more points or a smaller k"


def _checked_maps(map_x, map_y):
    map_x = _checked_map("map_x", map_x, True)
    map_y = _checked_map("map_y", map_y, True)
    _require(map_x.m == map_y.m, "map_x and map_y must have the same number of features")
    return map_x, map_y


def _begin(task, feature_map, k, steps, centered, lam=0.0, other=None):
    """A state without functions and step sizes. Maps have been checked."""
    steps = _checked_as(DSGDSteps, "steps", steps)
    used = min(steps.initial, feature_map.m)
    k = _checked_count("k", k, used)
    return DSGDState(
        task,
        feature_map=feature_map,
        coef=np.zeros((0, k)),
        moment=np.zeros((k, k)),
        used=used,
        step=0,
        feature_batch=steps.feature_batch,
        theta0=steps.theta0,
        theta1=steps.theta1,
        lam=_checked_real("lam", lam, 0.0),
        centered=_as_flag("centered", centered),
        chosen=steps.theta0 is None,
        other=other,
        constraint=np.zeros((k, k)) if _TASKS[task].correlated else None,
    )


def _first_features(state, feature_map, P):
    """The first features of one view, centered if the state is."""
    Z = _centered(state, _some_features(P, feature_map, 0, state.used, state.used))
    # Rounding errors give constant features a variance of about 1e-14 k(x, x).
    _require((Z**2).sum() > 1e-14 * feature_map.kernel.scale * len(Z), _RANK)
    return Z


def _singular_pairs(C, k):
    U, values, V = np.linalg.svd(C, full_matrices=False)
    _require(k <= values.size and values[k - 1] > 1e-6 * values[0], _RANK)
    return values, U[:, :k], V[:k].T


def _whitener(Z, lam, share):
    """E (D + r)^-1/2 and max D, where Z^T Z / n = E D E^T and r = max(lam, share max D)."""
    values, vectors = _small_eigen(_column_products(Z, Z) / len(Z))
    rank = np.count_nonzero(values > 1e-10 * values[0])
    return vectors[:, :rank] / np.sqrt(values[:rank] + max(lam, share * values[0])), values[0]


def _first_variates(state, Z, B, lam, share):
    """U / sqrt(2) and V / sqrt(2) of the SVD U S V^T of Z^T B / n between whiteners of Z and B, the
    former times Z's whitener; B's whitener, whose lam may differ; the largest values of both."""
    left, largest_x = _whitener(Z, state.lam, 0.001)
    right, largest_y = _whitener(B, lam, share)
    cross = _dense_product(_column_products(Z, B) / len(Z), right)
    _, U, V = _singular_pairs(_column_products(left, cross), len(state.moment))
    return _ROOT_HALF * _dense_product(left, U), _ROOT_HALF * V, right, (largest_x, largest_y)


def _padded(state, weights):
    """Coefficients of all m features, from weights of the first ones divided by sqrt(used)."""
    unused = (0, state.feature_map.m - state.used), (0, 0)
    return np.pad(weights / math.sqrt(state.used), unused)


def _with_steps(state, values):
    """The state with step sizes. values: eigenvalues or singular values of the initial problem."""
    bound = math.sqrt(0.05 * state.feature_batch) / _kernel_scale(state)
    theta0 = state.theta0
    theta1 = state.theta1
    if theta0 is None:
        theta0 = float(min(0.5 / (values[0] + state.lam), bound))
    if theta1 is None and _TASKS[state.task].correlated:
        theta1 = 0.001  # the paper's value for SIR; the paper gives none for canonical correlations
    elif theta1 is None:  # at least last / 10: if two values agree, either will do
        last, beyond = np.append(values, 0.0)[len(state.moment) - 1 :][:2]
        theta1 = float(theta0 * max(last - beyond, 0.1 * last))
    return state._replace(theta0=theta0, theta1=theta1)


@_public
def dsgd_start(X, feature_map, k, *, steps=DSGDSteps(), centered=True, individual=False):
    """Start doubly stochastic kernel PCA: the state before the first step (DSGD algorithm 1).

    The start is kernel PCA of X with steps.initial features. Its functions have eigenvalues l_i and
    are orthonormal, as equation (4) requires. (Algorithm 1 starts from an empty sum, which no step
    can change.) A step of the default theta0 cannot overshoot. Default steps on n points are at
    most .6 n / k(x, x). Errors fall like 1 / t if 2 (l_k - l_(k+1)) theta0 / theta1 > 1. (This
    condition is ours: theorem 1 says that suitable steps exist.) The defaults satisfy it if l_k -
    l_(k+1) > l_k / 20. Costs O(n initial (d + initial) + initial^3) time.

    Args:
        X: (n, d) array. Points; a few hundred or thousand suffice.
        feature_map: FourierMap. Contains the kernel, the seed and the number m of features.
        k: int from 1 to the rank of the first features on X. Number of functions.
        steps: DSGDSteps, whose count and batch are ignored. Default: theta0 = min(.5 / l_1,
            sqrt(feature_batch / 20) / k(x, x)), theta1 = theta0 max(l_k - l_(k+1), l_k / 10).
        centered: bool. True subtracts the functions' means over each mini-batch.
        individual: bool. True finds each eigenfunction (Hebbian rule, DSGD 4.3), False their span.
    Returns:
        DSGDState: State for `update` and `finish`.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((600, 2))
        >>> state = dsgd_start(X[:200], fourier_features_map(gaussian(1.0), 2, 64), 2)
        >>> for begin in range(0, 600, 100):
        ...     state = update(state, X[begin : begin + 100])
        >>> features(X, finish(state)).shape
        (600, 2)
    """
    task = "single components" if _as_flag("individual", individual) else "components"
    feature_map = _checked_map("feature_map", feature_map, True)
    X = _checked_points("X", X, feature_map.d)
    state = _begin(task, feature_map, k, steps, centered)
    Z = _first_features(state, feature_map, X)
    values, vectors = _small_eigen(_column_products(Z, Z) / len(Z))
    k = len(state.moment)
    _require(values[k - 1] > 1e-12 * values[0], _RANK)
    return _with_steps(state, values)._replace(coef=_padded(state, vectors[:, :k]))


@_public
def dsgd_ksvd_start(X, Y, map_x, map_y, k, *, steps=DSGDSteps(), centered=False):
    """Start doubly stochastic kernel SVD: the state before the first step (DSGD algorithm 3).

    Args:
        X: (n, d) array. Points in the first view; a few hundred or thousand suffice.
        Y: (n, e) array. The same points in the second view.
        map_x: FourierMap. Contains m features of the first view.
        map_y: FourierMap. Contains m features of the second view, from a different seed.
        k: int from 1 to the rank of the first features. Number of pairs of functions.
        steps, centered: See `dsgd_start`, with singular values l_i, and sqrt(k(x, x) l(y, y)).
    Returns:
        DSGDState: Functions that approximate singular functions of E k(x, .) l(y, .).
    Example:
        >>> X = np.random.default_rng(0).standard_normal((300, 1))
        >>> maps = [fourier_features_map(gaussian(1.0), 1, 64, seed) for seed in (0, 1)]
        >>> state = update(dsgd_ksvd_start(X, -X, *maps, 1), X, -X)
        >>> first, second = finish(state)
        >>> features(X, first).shape, features(-X, second).shape
        ((300, 1), (300, 1))
    """
    map_x, map_y = _checked_maps(map_x, map_y)
    names = _names(Y).encode()
    X, Y = _checked_views(_TASKS["singular"], X, Y, map_x.d, map_y.d)
    state = _begin("singular", map_x, k, steps, centered, other=map_y)
    Z = _first_features(state, map_x, X)
    B = _first_features(state, map_y, Y)
    values, U, V = _singular_pairs(_column_products(Z, B) / len(Z), len(state.moment))
    return _with_steps(state, values)._replace(
        coef=_padded(state, _ROOT_HALF * U),
        other_coef=_padded(state, _ROOT_HALF * V),
        other_names=names,
    )


@_public
def dsgd_kcca_start(X, Y, map_x, map_y, k, *, steps=DSGDSteps(), lam=0.0, centered=True):
    """Start doubly stochastic kernel CCA: the state before the first step (DSGD algorithm 4).

    Args:
        X, Y, map_x, map_y, k: See `dsgd_ksvd_start`.
        steps: DSGDSteps. As in `dsgd_start`, but l_1 is the largest eigenvalue plus lam. The
            default theta1 is .001. A step of the default theta0 is at most .005 n / k(x, x).
        lam: float, at least 0. Ridge added to both covariance operators. Early stops also regularize.
        centered: bool. True subtracts the functions' means over each half of a mini-batch.
    Returns:
        DSGDState: State for `update` and `finish`. Convergence is slow where eigenvalues are small.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((300, 1))
        >>> maps = [fourier_features_map(gaussian(1.0), 1, 64, seed) for seed in (0, 1)]
        >>> state = update(dsgd_kcca_start(X, -X, *maps, 1), X, -X)
        >>> bool(finish(state).first.values[0] > 0.9)
        True
    """
    map_x, map_y = _checked_maps(map_x, map_y)
    names = _names(Y).encode()
    X, Y = _checked_views(_TASKS["canonical"], X, Y, map_x.d, map_y.d)
    state = _begin("canonical", map_x, k, steps, centered, lam, map_y)
    Z = _first_features(state, map_x, X)
    B = _first_features(state, map_y, Y)
    weights, V, right, largest = _first_variates(state, Z, B, state.lam, 0.001)
    return _with_steps(state, [max(largest)])._replace(
        coef=_padded(state, weights),
        other_coef=_padded(state, _dense_product(right, V)),
        other_names=names,
    )


def _quantile_edges(targets, slices):
    """Edges of slices, (t, slices - 1): in each row, a target's distinct quantiles and infinity."""
    edges = np.full((targets.shape[1], slices - 1), np.inf)
    for row, column in zip(edges, np.sort(targets, axis=0).T):
        above = column[column > column[0]]  # an edge at the minimum leaves a slice empty
        found = np.intersect1d(column[np.arange(1, slices) * len(column) // slices], above)
        if not found.size:  # most targets equal the minimum: all larger ones form one slice
            found = above[:1]
        row[: found.size] = found
    return edges[:, (edges < math.inf).any(0)]


@_public
def dsgd_ksir_start(X, Y, feature_map, k, *, steps=DSGDSteps(), slices=10, lam=0.0, centered=True):
    """Start kernel sliced inverse regression: the state before the first step (DSGD section 4.3).

    Args:
        X: (n, d) array. Points; a few hundred or thousand suffice.
        Y: (n,) or (n, t) array. One or several targets per point.
        feature_map: FourierMap. Contains the kernel, the seed and the number m of features.
        k: int from 1 to t (slices - 1), or less if quantiles coincide. Number of functions.
        steps: DSGDSteps. As in `dsgd_kcca_start`.
        slices: int from 2 to 10000. Number of slices per target, cut at its distinct quantiles.
        lam: float, at least 0. Ridge added to the features' covariance operator.
        centered: bool. True subtracts the functions' means over each half of a mini-batch.
    Returns:
        DSGDState: Its functions f solve C_xy C_yy^-1 C_yx f = rho^2 (C_xx + lam I) f, where y are
            indicators of slices and rho is estimated by `dsgd_values`.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((300, 2))
        >>> state = dsgd_ksir_start(X, X[:, 0], fourier_features_map(gaussian(1.0), 2, 64), 1)
        >>> features(X, finish(update(state, X, X[:, 0]))).shape
        (300, 1)
    """
    X, Y = _checked_views(_TASKS["sliced"], X, Y)
    edges = _quantile_edges(Y, _checked_count("slices", slices, 10000, 2))
    _require(edges.size, "Y must not be constant")
    k = _checked_count("k", k, np.count_nonzero(edges < math.inf))
    feature_map = _checked_map("feature_map", feature_map, True)
    X = _checked_points("X", X, feature_map.d)
    state = _begin("sliced", feature_map, k, steps, centered, lam)
    Z = _first_features(state, feature_map, X)
    B = _centered(state, _indicators(Y, edges))
    weights, V, right, largest = _first_variates(state, Z, B, 0.0, 0.0)
    size = math.sqrt(largest[0])  # both views share a step size, so they need the same scale
    return _with_steps(state, largest)._replace(
        coef=_padded(state, weights),
        other_coef=V / size,
        slices=_Slices(edges, right * size),
    )


# 12.7 All steps in one call

_START_POINTS = 2048  # largest number of points in the initial problem


def _checked_steps(steps, n):
    """Steps on n points, with the size of mini-batches. An int is the number of steps."""
    if not isinstance(steps, tuple):
        steps = DSGDSteps(count=steps)
    steps = _checked_as(DSGDSteps, "steps", steps)
    batch = min(512, n) if steps.batch is None else steps.batch
    return steps._replace(batch=_checked_count("steps.batch", batch, n))


def _undrawn_map(name, kernel, X, m, seed):
    """A map to plain features of the kernel, whose frequencies are drawn again by each step."""
    kernel = _checked_stationary(name, kernel, X=X)
    return fourier_features_map(kernel, X.shape[1], m, seed, stored=False, paired=False)


def _two_maps(kernel_x, kernel_y, views, m, seed):
    X, Y = views
    map_x = _undrawn_map("kernel_x", kernel_x, X, m, seed)
    second_seed = _python_subkey(_key(map_x.seed, _FREQUENCIES), 2**62)
    return {"map_x": map_x, "map_y": _undrawn_map("kernel_y", kernel_y, Y, m, second_seed)}


def _descend(start, views, seed, steps):
    """The state after all steps. start(*views) makes the first state of some points."""
    key = _checked_key(seed, _BATCHES)
    n = len(views[0])
    rows = _draw_uniformly(n, min(n, _START_POINTS), _python_subkey(key, 2**62))
    state = start(*[points[rows] for points in views], steps=steps)
    count = steps.count
    if count is None:
        count = max(200, 4 * _ceil_div(state.feature_map.m, steps.feature_batch))
    for _ in range(count):
        draws = _uniforms(_python_subkey(key, state.step), np.arange(steps.batch))
        rows = (draws * n).astype(np.int64)
        state = _step(state, *[points[rows] for points in views])
    return state


def _named_models(state, X, Y):
    """The models of a state, with the columns of both views."""
    return _models_of(state._replace(names=_names(X).encode(), other_names=_names(Y).encode()))


@_public
def dsgd_kpca(X, kernel, k, m, seed=0, *, steps=DSGDSteps(), centered=True, individual=False):
    """Doubly stochastic kernel PCA in one call: start, steps and finish (DSGD algorithm 1).

    Let step t have size c / t. The squared sine of the largest angle to the span of the k leading
    eigenfunctions falls like 1 / t (DSGD theorem 1). With probability 1 - delta, the squared error
    of values falls like ln(t / delta) / t (theorem 4). Both theorems require the start of equation
    (4) and mini-batches that approximate the operator to an eighth of the eigengap. Costs about
    count m batch (d + k) multiply-adds, count m batch cosines, and 64 k batch floats of memory.
    To go on with more points later, call `dsgd_start`, `update` and `finish` instead.

    Args:
        X: (n, d) array. Points.
        kernel: Kernel. gaussian, laplacian, matern, rational_quadratic or cauchy.
        k: int from 1 to steps.initial. Number of functions.
        m: int, at least k. Number of random features.
        seed: int from 0 to 2**64 - 1. Seed of features and mini-batches.
        steps: DSGDSteps, or int. An int is the number of steps. See `dsgd_start` for step sizes.
        centered, individual: See `dsgd_start`. The paper does not center: pass False.
    Returns:
        FourierExpansion: Functions for `features`, and their eigenvalues.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((2000, 1))
        >>> model = dsgd_kpca(X, gaussian(1.0), 2, 1000, steps=50, centered=False)
        >>> model.values.round(1).tolist()
        [0.6, 0.2]
        >>> features(X, model).shape
        (2000, 2)
    """
    points = _checked_points("X", X)
    steps = _checked_steps(steps, len(points))
    start = functools.partial(
        dsgd_start,
        feature_map=_undrawn_map("kernel", kernel, points, m, seed),
        k=k,
        centered=centered,
        individual=individual,
    )
    return _named_models(_descend(start, [points], seed, steps), X, None)


@_public
def dsgd_ksvd(X, Y, kernel_x, kernel_y, k, m, seed=0, *, steps=DSGDSteps(), centered=False):
    """Doubly stochastic kernel SVD of E k(x, .) l(y, .) in one call (DSGD algorithm 3).

    To go on with more points later, call `dsgd_ksvd_start`, `update` and `finish` instead.

    Args:
        X: (n, d) array. Points in the first view.
        Y: (n, e) array. The same points in the second view.
        kernel_x: Kernel. Kernel of the first view, shift-invariant, as for `dsgd_kpca`.
        kernel_y: Kernel. Kernel of the second view, shift-invariant.
        k: int from 1 to steps.initial. Number of pairs of functions.
        m: int, at least k. Number of random features per view.
        seed, steps: See `dsgd_kpca`. Step sizes are as in `dsgd_ksvd_start`.
        centered: See `dsgd_start`.
    Returns:
        TwoViews: Models of the first and of the second view, with the singular values.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((1000, 1))
        >>> Y = np.hstack([X, X**2])
        >>> first, second = dsgd_ksvd(X, Y, gaussian(1.0), gaussian(2.0), 2, 500, steps=50)
        >>> features(X, first).shape, features(Y, second).shape
        ((1000, 2), (1000, 2))
    """
    views = _checked_views(_TASKS["singular"], X, Y)
    steps = _checked_steps(steps, len(views[0]))
    maps = _two_maps(kernel_x, kernel_y, views, m, seed)
    start = functools.partial(dsgd_ksvd_start, **maps, k=k, centered=centered)
    return _named_models(_descend(start, views, seed, steps), X, Y)


@_public
def dsgd_kcca(X, Y, kernel_x, kernel_y, k, m, seed=0, *, steps=DSGDSteps(), lam=0.0, centered=True):
    """Doubly stochastic kernel canonical correlations, in one call (DSGD algorithm 4).

    To go on with more points later, call `dsgd_kcca_start`, `update` and `finish` instead.

    Args:
        X, Y, kernel_x, kernel_y, k, m: See `dsgd_ksvd`.
        seed, steps: See `dsgd_kpca`. Step sizes are as in `dsgd_kcca_start`.
        lam, centered: See `dsgd_kcca_start`.
    Returns:
        TwoViews: Models of the first and of the second view, with the correlations.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((1000, 1))
        >>> pair = dsgd_kcca(X, X**2, gaussian(1.0), gaussian(1.0), 1, 200, steps=50)
        >>> u, v = features(X, pair.first), features(X**2, pair.second)
        >>> bool(np.corrcoef(u[:, 0], v[:, 0])[0, 1] > 0.9)
        True
    """
    views = _checked_views(_TASKS["canonical"], X, Y)
    steps = _checked_steps(steps, len(views[0]))
    maps = _two_maps(kernel_x, kernel_y, views, m, seed)
    start = functools.partial(dsgd_kcca_start, **maps, k=k, lam=lam, centered=centered)
    return _named_models(_descend(start, views, seed, steps), X, Y)


@_public
def dsgd_ksir(X, Y, kernel, k, m, seed=0, *, steps=DSGDSteps(), slices=10, lam=0.0, centered=True):
    """Doubly stochastic kernel sliced inverse regression, in one call (DSGD section 4.3).

    To go on with more points later, call `dsgd_ksir_start`, `update` and `finish` instead.

    Args:
        X: (n, d) array. Points.
        Y: (n,) or (n, t) array. One or several targets per point.
        kernel: Kernel. Shift-invariant, as for `dsgd_kpca`.
        k: int from 1 to t (slices - 1), or less if quantiles coincide. Number of functions.
        m, seed, steps: See `dsgd_kpca`. Step sizes are as in `dsgd_kcca_start`.
        slices, lam, centered: See `dsgd_ksir_start`.
    Returns:
        FourierExpansion: Functions of X, and their correlations with functions of the slices.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((1000, 2))
        >>> model = dsgd_ksir(X, X[:, 0] ** 2, gaussian(1.0), 1, 200, steps=50)
        >>> bool(abs(np.corrcoef(features(X, model)[:, 0], X[:, 0] ** 2)[0, 1]) > 0.7)
        True
    """
    views = _checked_views(_TASKS["sliced"], X, Y)
    steps = _checked_steps(steps, len(views[0]))
    start = functools.partial(
        dsgd_ksir_start,
        feature_map=_undrawn_map("kernel", kernel, views[0], m, seed),
        k=k,
        slices=slices,
        lam=lam,
        centered=centered,
    )
    return _named_models(_descend(start, views, seed, steps), X, None)


# --------------------------------------------------------------------------------------------------
# 13. Ridge leverage scores (RLS)
#
# All methods use y(x) = L^-1 k(landmarks, x), where L L^T is the Gram matrix of the landmarks (for
# scores, plus a diagonal matrix). The residual of x is k(x, x) - |y(x)|^2. The rows y(x)^T form the
# Nystrom factor F of K~ = F F^T. Substitution is as stable as a Cholesky factorization.


# 13.1 The substitution


@_validated("Landmarks")
class Landmarks(NamedTuple):
    """Selected points: indices (s,); weights (s,), 1 / sqrt(probability); kernel evaluations; points
    (s, d) after a stream, else None. s is len(landmarks.indices), because len of the tuple is 5."""

    indices: np.ndarray
    weights: np.ndarray
    evaluations: int
    points: np.ndarray = None
    names: bytes = b""


# Keys of random numbers: three for the whole recursion, and three for each of its levels.
_HALVING, _TOP, _LEVELS = 0, 2, 3
_TAIL, _COINS, _AT_RANDOM = range(3)


@_helper
def _solve_corner(tile, first, lower, begin, end, start, columns):
    """columns[:, r] = L[begin:end, begin:end]^-1 tile[first + r] for as many rows as fit into
    `columns`. If landmarks are nearly dependent, an inverse of L would lose half of K~'s digits."""
    count = end - begin
    width = columns.shape[1]
    for c in range(count):
        for r in range(width):
            columns[c, r] = tile[first + r, c]
    # The micro-kernel subtracts the terms of all earlier columns. The loop solves four columns.
    place = start + begin
    for c in range(0, count, 4):
        _add_panel(lower, begin + c, end - 1, place, place + c, columns, columns, c, 0)
        for a in range(c, min(c + 4, count)):
            y = columns[a]
            for b in range(c, a):
                for r in range(width):
                    y[r] += lower[begin + a, place + b] * columns[b, r]
            for r in range(width):
                y[r] *= lower[begin + a, place + a]


@_core
def _forward_substitute(kernel, pairs, lower, below, start, rows, squares, growth, errors):
    """Forward substitution for all points x: y_c = (k(x, z_c) - sum_{b < c} L_cb y_b) / L_cc. Adds
    y_c^2 to `squares` and growth_c y_c^2 to `errors`. `pairs` holds points x and landmarks z. The
    first z has column `start`. `lower` is -L, but with 1 / L_cc on the diagonal, and `below` is -L
    in panels. `rows` receives y, unless it is empty. Its columns before `start` are given."""
    for index in prange(_blocks(len(pairs.X))):
        _wide_vectors()
        m = len(pairs.Y)
        width = pairs.panels.shape[2]
        narrow = below.shape[2]
        first, last = _block(index, len(pairs.X))
        tile = _new_tile(pairs.X)
        columns = _aligned((_BLOCK, width), pairs.X)
        Y = rows[first:last] if len(rows) > 0 else _aligned((_BLOCK, m), pairs.X)
        for begin in range(0, m, _BLOCK):
            end = min(m, begin + _BLOCK)
            _fill_tile(kernel, pairs, first, last, begin, end, tile)
            for deep in range(0, start + begin, _DEPTH):  # subtract earlier columns
                stop = min(start + begin, deep + _DEPTH)
                for q in range(begin // narrow, _ceil_div(end, narrow)):
                    panel = below[q, deep:stop]
                    column = q * narrow - begin
                    for r in range(0, last - first, _PRODUCT_ROWS):  # the panel stays in the cache
                        _add_product(Y, r, last - first - 1, deep, stop, panel, tile, r, column)
            for r in range(first, last, width):
                _solve_corner(tile, r - first, lower, begin, end, start, columns)
                solved = Y[r - first :, start + begin : start + end]
                square = squares[r : r + width]
                for row in range(len(square)):
                    for c in range(end - begin):
                        solved[row, c] = columns[c, row]
                for c in range(end - begin):  # all rows at once: ten times as fast as row by row
                    y = columns[c]
                    for row in range(len(square)):
                        square[row] += y[row] * y[row]
                for c in range(begin, min(end, len(growth))):
                    y = columns[c - begin]
                    error = errors[r : r + width]
                    for row in range(len(square)):
                        error[row] += growth[c] * y[row] * y[row]


def _substitute(kernel, X, Z, L, start, rows, growth=np.zeros(0), errors=np.zeros(0)):
    """Sum of y_c^2 for each point of X. L holds the rows of the Cholesky factor for Z."""
    m = Z.shape[0]
    squares = np.zeros(X.shape[0])
    if m == 0:
        return squares
    lower = np.ascontiguousarray(-L, Z.dtype)
    below = _column_panels(np.ascontiguousarray(lower.T), _NARROW_PANEL // lower.itemsize)
    np.fill_diagonal(lower[:, start:], 1.0 / L.diagonal(start))
    slabs = _slabs_of(X, m)
    for slab in slabs:
        P = X[slab] if len(slabs) > 1 else X  # rows of sparse points are copies
        pairs = _prepare(kernel, P, Z, False)
        work = _tile_work(kernel, pairs, _MULTIPLY_ADD * (start + 0.5 * m + 32.0))
        parts = rows[slab], squares[slab], growth, errors[slab]
        _forward_substitute(work, kernel, pairs, lower, below, start, *parts)
    return squares


def _of_landmarks(x, model, out):
    for c in range(model.rank):
        total = _value_of(model.kernel, x, model.points[c])
        for b in range(c):
            total -= model.factor[c, b] * out[b]
        out[c] = total / model.factor[c, c]
    out[model.rank :] = 0.0


_one_of_landmarks = _core_alone(_of_landmarks)


def _write_map_features(X, found, F):
    """Write y(x) for the points X, which are in the precision of F or in double, to F (n, s)."""
    X = X.astype(F.dtype, copy=False)
    Z = found.points.astype(F.dtype, copy=False)
    rank = found.rank
    # For few points, copying the factor in panels, as `_substitute` does, would take longer.
    if X.shape[0] <= 4 and not _is_sparse(X):
        for x, row in zip(X, F):
            _one_of_landmarks(x, found._replace(points=Z), row)
        squares = np.square(F)
    else:
        F[:, rank:] = 0.0
        squares = _substitute(found.kernel, X, Z[:rank], found.factor[:rank, :rank], 0, F)
    _require_finite("kernel values on X", squares.sum())


def _map_features(X, found):
    """Rows y(x)^T with y(x) = L^-1 k(landmarks, x) (RLS (35)): K~(x, x') = y(x).y(x')."""
    F = _new_array((X.shape[0], found.points.shape[0]), np.result_type(X.dtype, found.points.dtype))
    _write_map_features(X, found, F)
    return F


def _residual_of_landmarks(x, model, out):
    features_of(x, model, out)
    size = _value_of(model.kernel, x, x)
    square = size
    for value in out:
        square -= value * value
    return math.sqrt(square / size) if square > 0.0 else 0.0


@_model(
    fit=_require_fitting_model,
    shape=lambda found: (found.points.shape[0],),
    features=_write_map_features,
    of_point=_of_landmarks,
    residual=lambda X, found: _distances(X, found.kernel, _map_features(X, found)),
    residual_of_point=_residual_of_landmarks,
    moments=functools.partial(_moments, features=_map_features),
    sketch=lambda X, found: LowRank(_map_features(X, found)),
    whole=True,
)
@_validated(
    "a NystromMap returned by nystrom_map",
    lambda made: (
        made.factor.shape == (made.points.shape[0], made.points.shape[0])
        and 0 <= made.rank <= made.points.shape[0]
    ),
    points="points",
)
class NystromMap(NamedTuple):
    """Map from points to Nystrom features. points: (s, d) landmarks. factor: (s, s), lower
    triangular L. L L^T is the Gram matrix of the first `rank` landmarks. Other entries are 0."""

    points: np.ndarray
    factor: np.ndarray
    rank: int
    kernel: Kernel
    names: bytes = b""


def _residual_gram(kernel, P, shift, Y, rows):
    """K(Z, Z) + diag(shift) - Y Y^T for Z = P[rows] with features Y, at most 128 points."""
    Z = P[rows]
    return _gram(kernel, Z) - _dense_product(Y, Y.T) + np.diag(shift[rows])


# 13.2 Pivots


def _require_definite(sound):
    _require(sound, "kernel values on X must be finite and form a positive semidefinite matrix")


def _rounding(kernel, X):
    """Rounding error of residuals after m pivots, as a function of m, relative to the kernel value:
    about sqrt(m) machine epsilons. A polynomial of degree p adds p sqrt(d). Expanded distances add
    at most .36 sqrt(d) steepness (|x|^2 + |y|^2). (Measured for d from 16 to 3000.) For sparse
    points, they add at most .36 sqrt(d) _EXPANDED_BELOW, whatever the kernel's steepness."""
    factor = 0.0
    steepness = _KINDS[kernel.kind].steepness(kernel)
    if kernel.kind == _POLYNOMIAL:
        factor = kernel.shape
    elif _is_sparse(X):
        factor = _EXPANDED_BELOW
    elif steepness < math.inf and X.shape[1] >= 16:
        # If a subset's mean or nothing is subtracted instead, squared norms are at most 4 or 16 times
        # as large. Both terms at 16 times add 11.5 sqrt(d), below `more`, which is 16 sqrt(d).
        factor = min(_EXPANDED_BELOW, 8.0 * steepness * float(_squares(_minus_row(X)).max()))
    more = 2.0 * math.sqrt(X.shape[1]) * factor
    return lambda m: (4.0 * math.sqrt(m) + more) * (1.2e-7 if X.dtype.itemsize == 4 else 2.2e-16)


def _draw_by_size(sizes, s, key):
    """Draw s indices without replacement, with probability proportional to `sizes`. The s smallest
    -log(u_i) / size_i are drawn (Efraimidis, Spirakis 2006). Returns the indices and inclusion
    probabilities p_i. Sums weighted by 1 / p_i are unbiased (Cohen, Kaplan 2007)."""
    if s >= sizes.size:
        return np.arange(sizes.size), np.ones(sizes.size)
    sizes = np.maximum(sizes, 1e-290)
    clocks = -np.log(_uniforms(key, np.arange(sizes.size))) / sizes
    order = np.argpartition(clocks, s)
    indices = np.sort(order[:s])
    return indices, -np.expm1(-sizes[indices] * clocks[order[s]])


@_core_alone
def _choose_pivots(H, least, bar, greedy, chosen, columns):
    """Choose pivots among candidates with residual Gram matrix H, and return their number. If
    greedy, choose the largest residual. `chosen` receives the pivots, `columns` the factor of H."""
    count = len(H)
    found = 0
    for step in range(count):
        i = step
        if greedy:
            i = 0
            for a in range(1, count):
                if H[a, a] > H[i, i]:
                    i = a
        size = H[i, i]
        if size <= least[i] or size < bar and found > 0:
            continue
        column = columns[found]
        pivot = H[i]
        root = math.sqrt(size)
        for b in range(count):  # a loop, because assigning an array to a slice compiles for 2 s
            column[b] = pivot[b] / root
        for a in range(count):
            row = H[a]
            factor = column[a]
            for b in range(count):
                row[b] -= factor * column[b]
            row[i] = 0.0  # removes rounding errors
        pivot[:] = 0.0
        chosen[found] = i
        found += 1
    return found


def _candidates(rest, count, share, key):
    """Rows that may become pivots, and the least residual to accept. If share = 1, rows have the
    largest residuals. Otherwise, they are drawn with probability proportional to residuals: if
    share = 0, independently, else without replacement, with share * largest as the least."""
    if share == 0.0:
        sums = np.cumsum(rest)
        return np.searchsorted(sums, _uniforms(key, np.arange(count)) * sums[-1]), 0.0
    left = np.flatnonzero(rest)
    if count >= left.size:
        return left, 0.0
    if share == 1.0:
        bar = np.partition(rest, -1 - count)[-1 - count]
        rows = np.flatnonzero(rest >= bar)
        return rows[np.argsort(-rest[rows], kind="stable")[:count]], bar
    rows = _draw_by_size(rest, count, key)[0]
    largest = rest.argmax()
    if largest not in rows:
        rows[0] = largest
    return rows, share * rest[largest]


def _new_pivots(P, kernel, shift, F, found, rest, floor, count, share, key):
    """At most `count` new pivots, the pivots' rows of the factor, and the number of kernel values.
    Sets `rest` to 0 for candidates without a residual, so that they are not proposed again."""
    rows, bar = _candidates(rest, count, share, _python_subkey(key, 0))
    Y = F[rows, :found]
    H = _residual_gram(kernel, P, shift, Y, rows)
    left = H.diagonal().copy()
    least = floor[rows]
    rest[rows] = np.where(left <= least, 0.0, left)
    if share == 0.0:
        # A candidate is accepted with probability (current residual) / left. The pivots then have
        # the same distribution as without blocks (Epperly, Tropp, Webber 2025).
        least = np.maximum(least, left * _uniforms(_python_subkey(key, 1), np.arange(rows.size)))
    chosen = np.empty(rows.size, np.int64)
    columns = np.zeros(H.shape)
    new = _choose_pivots(H, least, bar, share > 0.0, chosen, columns)
    chosen = chosen[:new]
    return rows[chosen], np.hstack([Y[chosen], columns[:new, chosen].T]), rows.size**2


class _Pivots(NamedTuple):
    """A partial Cholesky factorization of K + diag(shift)."""

    landmarks: Landmarks  # the pivots in the order of choice
    factor: np.ndarray  # F, (n, number of pivots)
    diagonal: np.ndarray  # of K
    rest: np.ndarray  # residuals: the diagonal of K + diag(shift) - F F^T
    floor: np.ndarray  # rounding errors of the residuals


def _pivoted(counts, P, kernel, *, block, share, key, like=None, shift=0.0):
    """Yield _Pivots with s pivots for each s in counts, or with fewer if no residual is left. For
    `share`, see `_candidates`. `like`: points whose precision limits the residuals, P by default."""
    n = P.shape[0]
    definite = _has_formula(kernel)
    rounding_after = _rounding(kernel, P if like is None else like)
    value_rounding = rounding_after(1)
    diagonal = _in_double(_diagonal(P, kernel))
    shift = np.broadcast_to(shift, n)
    rest = diagonal + shift
    errors = np.zeros(n)  # squared rounding errors of `rest`, divided by `diagonal`
    indices = np.empty(0, np.int64)
    F = np.empty((n, 0), P.dtype)
    evaluations = n
    turn = 0
    for s in counts:
        rounding = rounding_after(s)
        room = _new_array((n, s), P.dtype)
        room[:, : F.shape[1]] = F
        F = room
        while True:
            found = indices.size
            rest[indices] = 0.0
            floor = rounding * diagonal + np.sqrt(errors) * np.sqrt(diagonal)
            # Negative residuals of a definite kernel are rounding errors (measured: -.4 times the
            # diagonal in float32). For others, a pivot near the error e causes errors of sqrt(e).
            lowest = -math.inf if definite else -10.0 * np.sqrt(floor) * np.sqrt(diagonal)
            _require_definite(_all_below(rest) and (rest >= lowest).all())
            rest[rest <= floor] = 0.0
            if found == s or not rest.any():
                break
            count = min(block, s - found)
            pivots, L, computed = _new_pivots(
                P, kernel, shift, F, found, rest, floor, count, share, _python_subkey(key, turn)
            )
            turn += 1
            # A pivot p_j that is small relative to k_jj is inaccurate. It changes the residual of
            # point i by up to 2 y_ij sqrt(k_ii k_jj / p_j) times the error of a kernel value.
            growth = diagonal[pivots] * (2.0 * value_rounding / L[:, found:].diagonal()) ** 2
            rest -= _substitute(kernel, P, P[pivots], L, found, F, growth, errors)
            F[pivots, : L.shape[1]] = L
            indices = np.append(indices, pivots)
            evaluations += computed + n * pivots.size
        F = np.ascontiguousarray(F[:, :found])
        if found < s and not definite:  # a definite K - F F^T with diagonal 0 is 0
            rows = np.linspace(0, n - 1, min(n, _BLOCK)).astype(int)
            left = _residual_gram(kernel, P, shift, F[rows], rows)
            _require_definite(np.abs(left).max() <= 10.0 * math.sqrt(rounding) * diagonal.max())
        landmarks = Landmarks(indices, np.ones(found), evaluations)
        yield _Pivots(landmarks, F, diagonal, rest, floor)


def _factor(Z, kernel, shift=0.0):
    """NystromMap for K(Z, Z) + diag(shift), and the number of kernel values. Each pivot is at least
    .1 times the largest residual. Without pivoting, sorted landmarks cause errors up to |K|."""
    s = Z.shape[0]
    if s == 0:
        return NystromMap(Z, np.empty((0, 0)), 0, kernel), 0
    double = _in_double(Z)
    key = np.uint64(0)
    pivots = next(
        _pivoted([s], double, kernel, block=_BLOCK, share=0.1, key=key, like=Z, shift=shift)
    )
    found = pivots.landmarks
    rank = found.indices.size
    L = np.pad(np.tril(pivots.factor[found.indices]), (0, s - rank))
    order = np.append(found.indices, np.delete(np.arange(s), found.indices))
    return NystromMap(Z[order], L, rank, kernel), found.evaluations


# 13.3 Scores (RLS definition 1, RLS lemma 6)


def _tail_ridge(kernel, Z, weights, k, key):
    """(1 / k) sum_{i > k} sigma_i(S^T K S) (RLS algorithm 3, step 8), at least 2^-52 times the
    trace. Measured: with k instead of k + 8 vectors, the relative error was up to 25 %."""
    n = Z.shape[0]
    Z = _in_double(Z)
    A = _gram(kernel, Z) * np.outer(weights, weights)
    trace = A.trace()
    _require_definite(0.0 <= trace < math.inf)
    W = _gaussian_matrix(n, min(n, k + 8), _python_subkey(key, 0))
    for _ in range(4):
        Q = np.linalg.qr(W)[0]
        W = _dense_product(A, Q)
    tail = trace - np.linalg.eigvalsh(_transposed_product(Q, W))[-k:].sum()
    return max(tail / k, 2.2e-16 * trace) or 1.0


@_validated("a CertifiedNystrom")
class CertifiedNystrom(NamedTuple):
    """K~ = F F^T with an error bound. landmarks: in the order of choice. factor: F (n, r), with
    orthogonal columns by descending norm. trace_left: tr(K - K~) / tr K. error_bound: an upper
    bound of |K - K~|_2 / |K|_2. chance: the probability that the bound is too small, or None if
    the bound is from the trace, which cannot fail."""

    landmarks: Landmarks
    factor: np.ndarray
    trace_left: float
    error_bound: float
    chance: float = None


def _checked_landmarks(X, landmarks, rows_of=operator.getitem):
    """Landmarks as points in X's precision. rows_of(X, numbers) reads rows of X."""
    _require_unmasked("landmarks", landmarks)
    if isinstance(landmarks, CertifiedNystrom):
        landmarks = landmarks.landmarks
    if isinstance(landmarks, Landmarks):
        landmarks = landmarks.indices if landmarks.points is None else landmarks.points
    if isinstance(landmarks, ReducedSet):
        landmarks = landmarks.centers
    Z = landmarks
    if type(Z) in (list, tuple):
        with contextlib.suppress(ValueError):  # rows of unequal lengths
            Z = np.asarray(Z)
    if isinstance(Z, np.ndarray) and Z.ndim == 1 and Z.dtype.kind in "iu":
        inside = Z.size > 0 and 0 <= Z.min() <= Z.max() < X.shape[0]
        _require(inside, "landmarks must be one or more row numbers from 0 to n - 1")
        Z = rows_of(X, Z)
    precision = np.float32 if X.dtype == np.float32 else np.float64
    Z = _as_points("landmarks", Z).astype(precision, copy=False)
    return _checked_points("landmarks", Z, X.shape[1])


def _scores(P, Z, weights, kernel, lam, k=0, key=None, rows=None):
    """Scores of P or P[rows] from weighted landmarks Z (RLS lemma 6), and the number of kernel values.
    Score i is (k_ii - |y_i|^2) / lam, where L L^T = K(Z, Z) + lam diag(weights)^-2. If lam is None,
    `_tail_ridge` computes lam. If lam is near float32's rounding error, scores are in float64."""
    evaluations = 0
    if lam is None:
        lam = _tail_ridge(kernel, Z, weights, k, _python_subkey(key, _TAIL))
        evaluations = Z.shape[0] * (Z.shape[0] + 1) // 2
    found, computed = _factor(_in_double(Z), kernel, lam / weights**2)
    rank = found.rank
    points = found.points[:rank]
    L = found.factor[:rank, :rank]
    if rank and lam > max(
        100.0 * _rounding(kernel, Z)(Z.shape[0]) * _diagonal(Z, kernel).max(), 1e-30
    ):
        points = points.astype(Z.dtype)  # lam > 1e-30: 1 / sqrt(lam) fits into float32
    # A residual below -`bound` shows that a kernel is indefinite, as in `_pivoted`.
    bound = 1e300 if _has_formula(kernel) else 10.0 * math.sqrt(_rounding(kernel, points)(rank))
    count = P.shape[0] if rows is None else rows.size
    scores = np.empty(count)
    for part in _slabs(count, _SLAB):
        slab = P[part if rows is None else rows[part]].astype(points.dtype, copy=False)
        diagonal = _in_double(_diagonal(slab, kernel))
        rest = diagonal - _substitute(kernel, slab, points, L, 0, np.empty((0, 0), slab.dtype))
        _require_definite(_all_below(rest) and (rest >= -bound * diagonal).all())
        scores[part] = np.minimum(1.0, np.maximum(rest, 2.2e-16 * diagonal) / lam)
    return scores, evaluations + computed + count * (rank + 1)


def _exact_scores(X, kernel, lam):
    """Exact ridge leverage scores, and the number of kernel values."""
    X, kernel = _points_and_kernel(X, kernel)
    lam = _as_ridge(lam)
    n = len(X)
    _fits("X", 8.0 * n**2)
    X = _in_double(X)
    return _scores(X, X, np.ones(n), kernel, lam)


@_public
def ridge_leverage_scores(X, kernel, lam):
    """Exact ridge leverage scores l_i = (K (K + lam I)^-1)_ii (RLS definition 1).

    The sum of scores is the effective dimension d_eff(lam). Costs O(n^3) time and O(n^2) memory.

    Args:
        X: (n, d) array. Points.
        kernel: Kernel. Positive semidefinite.
        lam: float. Positive ridge, in the units of the eigenvalues of K.
    Returns:
        array: (n,) scores, from 2^-52 k(x, x) / lam (their rounding error) to 1.
    Example:
        >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> ridge_leverage_scores(X, linear(), 1.0).round(4).tolist()  # equal points share a score
        [0.3333, 0.3333, 0.5]
    """
    return _exact_scores(X, kernel, lam)[0]


@_public
def approximate_ridge_leverage_scores(X, landmarks, kernel, lam):
    """Ridge leverage scores of all points from weighted landmarks (RLS lemma 6), capped at 1.

    l_i = (1 / lam) (K - K S (S^T K S + lam I)^-1 S^T K)_ii, where S has a column weights_j e_j for
    each landmark j. If S S^T <= I, no l_i is below the exact score (RLS lemma 5). The second
    part of lemma 5 requires the cap. Costs about n s kernel values and O(n s (d + s)) time.

    Args:
        X: See `nystrom`.
        landmarks: Landmarks, whose weights are 1 / sqrt(p) for a landmark kept with probability p.
            Row numbers, points, ReducedSet and CertifiedNystrom have weights of 1.
        kernel, lam: See `ridge_leverage_scores`.
    Returns:
        array: (n,) scores, from 2^-52 k(x, x) / lam (their rounding error) to 1.
    Example:
        >>> X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> approximate_ridge_leverage_scores(X, np.array([0, 2]), linear(), 1.0).round(4).tolist()
        [0.5, 0.5, 0.5]
    """
    X = _checked_points("X", X)
    Z = _checked_landmarks(X, landmarks)
    weights = np.ones(Z.shape[0])
    if isinstance(landmarks, Landmarks):
        weights = _checked_vector("landmarks.weights", landmarks.weights)
    kernel = _checked_kernel("kernel", kernel, X=X, landmarks=Z)
    lam = _as_ridge(lam)
    _require(
        weights.size == Z.shape[0] and weights.min() > 0.0 and _all_below(lam / weights**2),
        "landmarks.weights must be positive, one per landmark, with finite lam / weights**2",
    )
    return _scores(X, Z, weights, kernel, lam)[0]


# 13.4 Landmarks (RLS algorithms 1 to 3, section 5)


def _checked_sampling(delta, parts, seed, oversampling):
    return (
        _checked_share("delta", delta, parts),
        _checked_key(seed, _LANDMARKS),
        _checked_real("oversampling", oversampling, 1e-300),
    )


@_public
def uniform_landmarks(n, s, seed=0):
    """Landmarks drawn uniformly without replacement, the classic Nystrom method (RLS section 1.1).

    Args:
        n: int, at least 1. Number of points. The draw takes 8 n bytes of memory.
        s: int, at least 1. Number of landmarks. If s >= n, all points are returned.
        seed: int from 0 to 2**64 - 1.
    Returns:
        Landmarks: Ascending indices, with weights sqrt(n / s).
    Example:
        >>> found = uniform_landmarks(100, 4)
        >>> len(found.indices), found.weights.tolist()
        (4, [5.0, 5.0, 5.0, 5.0])
    """
    n = _checked_count("n", n)
    s = min(n, _checked_count("s", s))
    key = _checked_key(seed, _UNIFORM)
    _fits("n", 8.0 * (n + 2 * s))
    rows = np.sort(_draw_uniformly(n, s, key))
    return Landmarks(rows, np.full(s, math.sqrt(n / s)), 0)


@_public
def sample_landmarks(scores, seed=0, *, delta, oversampling=16.0):
    """Landmarks drawn with ridge leverage scores or overestimates of the scores (RLS algorithm 1).

    Keeps point i independently with probability p_i = min(1, 16 l_i log(sum l / delta)). The proof
    of RLS lemma 11 assumes sum l >= 1, so a smaller sum is replaced by 1. If no l_i is below the
    exact score at lam, the approximation K~ from `nystrom` satisfies K~ <= K <= K~ + lam I with
    probability 1 - delta (RLS theorem 3, or RLS corollary 13 if weights are ignored).

    Args:
        scores: (n,) array. Nonnegative scores l_i.
        seed: int from 0 to 2**64 - 1.
        delta: float between 0 and 1/8. Probability of failure.
        oversampling: float. The factor 16 in p_i. Lower values often suffice, but have no theorem.
    Returns:
        Landmarks: Ascending indices, weights 1 / sqrt(p_i). If scores are low, it may be empty.
    Example:
        >>> scores = np.array([0.9, 0.0, 0.9])
        >>> sample_landmarks(scores, delta=0.1).indices.tolist()
        [0, 2]
    """
    scores = _checked_vector("scores", scores)
    delta, key, oversampling = _checked_sampling(delta, 8, seed, oversampling)
    _require(scores.min() >= 0.0, "scores must not be negative")
    p = np.minimum(1.0, oversampling * math.log(max(scores.sum(), 1.0) / delta) * scores)
    kept = np.flatnonzero(_uniforms(key, np.arange(p.size)) < p)
    return Landmarks(kept, 1.0 / np.sqrt(p[kept]), 0)


@_public
def rls_nystrom(X, kernel, lam, seed=0, *, delta, oversampling=16.0):
    """Landmarks drawn with exact ridge leverage scores (RLS algorithm 1).

    With probability 1 - delta, K~ <= K <= K~ + lam I. Costs O(n^3) time and O(n^2) memory.

    Args:
        X: (n, d) array. Points.
        kernel: Kernel. Positive semidefinite.
        lam: float. Positive ridge, the allowed |K - K~|_2, in the units of the eigenvalues of K.
        seed, delta, oversampling: See `sample_landmarks`.
    Returns:
        Landmarks: About 16 d_eff(lam) log(d_eff(lam) / delta) points, with weights 1 / sqrt(p_i).
    Example:
        >>> X = np.array([[0.0], [0.0], [9.0]])
        >>> rls_nystrom(X, gaussian(1.0), 0.1, delta=0.1).indices.tolist()
        [0, 1, 2]
    """
    _checked_sampling(delta, 8, seed, oversampling)  # raises before the O(n^3) work
    scores, evaluations = _exact_scores(X, kernel, lam)
    found = sample_landmarks(scores, seed, delta=delta, oversampling=oversampling)
    return found._replace(evaluations=evaluations)


_PRACTICAL_C = 4.0  # c of RLS algorithm 3 in practice, where the proof requires about 640


def _largest_rank(size, constant, delta):
    """The largest k from 1 to size for which `constant` * k log(2 k / delta) <= size, or 1."""
    k = np.arange(2.0, size + 1)
    return 1 + np.count_nonzero(constant * k * np.log(2.0 * k / delta) <= size)


def _practical_delta(s):
    """The delta that makes log(2 k / delta) about log(s), as in the authors' program."""
    return 0.5 / math.log(max(s, 8))


def _recursive(X, kernel, key, delta, lam, size, top, constant=1.0, factor=1.0, oversampling=1.0):
    """RLS algorithm 2 (lam given), RLS algorithm 3 (lam None), and practical variants, which draw
    exactly `top` landmarks at the top level. Comments number steps as in algorithm 3 (algorithm 2).
    `factor` multiplies scores. The variants do not divide delta by 3."""
    # depth: number of successive halvings that a point survives, each with probability 1/2.
    words = _words(_python_subkey(key, _HALVING), np.arange(X.shape[0]))
    depth = np.frexp(_in_double(~words & (words + np.uint64(1))))[1] - 1

    def sample(level, delta):
        """Landmarks among the points that are left after `level` halvings."""
        rows = np.flatnonzero(depth >= level)
        if rows.size <= (size or 192.0 * math.log(1.0 / delta)):  # steps 1 to 3
            return Landmarks(rows, np.ones(rows.size), 0)
        half = sample(level + 1, delta if top else delta / 3.0)  # steps 4 and 5
        level_key = _python_subkey(_python_subkey(key, _LEVELS), level)
        drawn = top if level == 0 else 0
        # Step 7. The top of accelerated sampling uses 4 * size. Errors are up to 20 % smaller.
        k = _largest_rank(min(drawn, 4 * size) or size, constant, delta)
        Z = X[half.indices]
        left = rows if level else None
        scores, computed = _scores(X, Z, half.weights, kernel, lam, k, level_key, left)
        scores = np.minimum(1.0, factor * scores)  # steps 6, 8 and 9 (7)
        many = 2.0 * k if lam is None else max(scores.sum(), 1.0)
        chances = np.minimum(1.0, oversampling * math.log(many / delta) * scores)  # step 10 (8)
        if drawn:
            kept, chances = _draw_by_size(chances, drawn, _python_subkey(key, _TOP))
        else:  # step 11 (9)
            kept = np.flatnonzero(_uniforms(_python_subkey(level_key, _COINS), rows) < chances)
            chances = chances[kept]
            if lam is None and kept.size <= k and level > 0:
                # A sample of at most k points has no tail (step 8). An independent one replaces it.
                plain_key = _python_subkey(level_key, _AT_RANDOM)
                kept = _draw_by_size(np.ones(rows.size), size, plain_key)[0]
                chances = np.full(size, size / rows.size)
        return Landmarks(rows[kept], 1.0 / np.sqrt(chances), half.evaluations + computed)

    return sample(0, delta)


@_public(sparse=True)
def recursive_rls(X, kernel, lam, seed=0, *, delta, oversampling=16.0):
    """Landmarks from recursive ridge leverage score sampling at a given ridge (RLS algorithm 2).

    First draws landmarks of a random half of the points in the same way, unless at most 192 log(1 /
    delta) points are left. These landmarks give scores of all points (RLS lemma 6).
    `sample_landmarks` uses 3/2 times the scores. With probability 1 - 3 delta, K~ <= K <= K~ + lam
    I (RLS theorems 7 and 8). With s landmarks per level, it costs about 2 n s kernel values, O(n s
    (d + s)) time and O(n + s^2) memory.

    Args:
        X, kernel, lam: See `rls_nystrom`.
        seed: int from 0 to 2**64 - 1.
        delta: float between 0 and 1/32. A third of the probability of failure.
        oversampling: See `sample_landmarks`.
    Returns:
        Landmarks: O(d_eff(lam) log(d_eff(lam) / delta)) points, with weights 1 / sqrt(p_i).
    Example:
        >>> X = np.arange(50.0)[:, None]
        >>> len(recursive_rls(X, gaussian(5.0), 0.1, delta=0.03).indices)  # few points: all are needed
        50
    """
    X, kernel = _points_and_kernel(X, kernel)
    lam = _as_ridge(lam)
    delta, key, oversampling = _checked_sampling(delta, 32, seed, oversampling)
    return _recursive(X, kernel, key, delta, lam, 0, 0, factor=1.5, oversampling=oversampling)


@_public(sparse=True)
def recursive_rls_fixed(X, kernel, s, seed=0, *, delta, constant=640.0, oversampling=16.0):
    """Landmarks from recursive leverage score sampling at a given sample size (RLS algorithm 3).

    Let k be the largest integer with c k log(2 k / delta) <= s. Unlike in `recursive_rls`, the
    ridge is (1 / k) sum_{i > k} sigma_i(S^T K S) for the landmarks of the half, scores are
    multiplied by 5, and p_i = min(1, 16 l_i log(2 k / delta)). With probability 1 - 3 delta, there
    are at most 2 s landmarks, and K~ <= K <= K~ + lam I for lam = (1 / k) sum_{i > k} sigma_i(K)
    (RLS theorem 10, RLS fact 9). Unlike in the paper, scores are capped at 1, the ridge is slightly
    too large, and s uniform points replace a sample of at most k points.

    Args:
        X, kernel: See `rls_nystrom`.
        s: int, at least 1. Sample size. If s >= n, all points are returned.
        seed: int from 0 to 2**64 - 1.
        delta: float between 0 and 1/32. A third of the probability of failure.
        constant: float. Positive c. The proof requires about 640, thus s >= 2700 for delta = .03.
        oversampling: float. The factor 16 in p_i of `sample_landmarks`.
    Returns:
        Landmarks: Ascending indices (their number is random), with weights 1 / sqrt(p_i).
    Example:
        >>> X = np.arange(50.0)[:, None]
        >>> len(recursive_rls_fixed(X, gaussian(5.0), 60, delta=0.03).indices)
        50
    """
    X, kernel = _points_and_kernel(X, kernel)
    s = _checked_count("s", s)
    constant = _checked_real("constant", constant, 1e-300)
    delta, key, oversampling = _checked_sampling(delta, 32, seed, oversampling)
    return _recursive(X, kernel, key, delta, None, s, 0, constant, 5.0, oversampling)


def _practical(X, kernel, s, seed, delta, accelerated):
    X, kernel = _points_and_kernel(X, kernel)
    s = _checked_count("s", s)
    delta = _as_delta(delta, _practical_delta(s))
    size = min(s, math.ceil(math.sqrt(s + s**3 / X.shape[0]))) if accelerated else s
    return _recursive(X, kernel, _checked_key(seed, _LANDMARKS), delta, None, size, s, _PRACTICAL_C)


@_public(sparse=True)
def recursive_rls_practical(X, kernel, s, seed=0, *, delta=None):
    """Exactly s landmarks from recursive ridge leverage score sampling as in RLS section 5.

    This is `recursive_rls_fixed` with c = 4, one delta for all levels, and no factors 5 and 16. The
    top level draws s points without replacement, with probability proportional to p_i. No theorem
    applies. Costs about 2 n s kernel values, n s (s + 2 d) multiplications, and O(s (s + d)) + 80 n
    bytes of memory.

    Args:
        X, kernel, s, seed: See `rpcholesky`.
        delta: float between 0 and 1. None means 1 / (2 log s). Lower values spread the landmarks.
    Returns:
        Landmarks: Ascending indices. Sums weighted by weights^2 are unbiased for sums over X.
    Example:
        >>> X = np.arange(50.0)[:, None]
        >>> len(recursive_rls_practical(X, gaussian(5.0), 8).indices)
        8
    """
    return _practical(X, kernel, s, seed, delta, False)


@_public(sparse=True)
def recursive_rls_accelerated(X, kernel, s, seed=0, *, delta=None):
    """Exactly s landmarks from the accelerated recursive method (RLS section 5.2.1).

    This is `recursive_rls_practical` with samples of r = sqrt(s + s^3 / n) points below the top.
    Costs about 2 n r kernel values, n r (r + 2 d) multiplications, and O(s (s + d)) + 80 n bytes of
    memory. Small groups may be missed.

    Args:
        X, kernel, s, seed: See `rpcholesky`.
        delta: See `recursive_rls_practical`.
    Returns:
        Landmarks: Ascending indices. Sums weighted by weights^2 are unbiased for sums over X.
    Example:
        >>> X = np.arange(50.0)[:, None]
        >>> len(recursive_rls_accelerated(X, gaussian(5.0), 8).indices)
        8
    """
    return _practical(X, kernel, s, seed, delta, True)


def _landmarks_by_pivots(X, kernel, s, block, share, seed):
    """Landmarks, and their factor F (n, r) or, if all points are landmarks, None."""
    X, kernel = _points_and_kernel(X, kernel)
    s = _checked_count("s", s)
    n = X.shape[0]
    block = _checked_count("block", block, 128)
    key = _checked_key(seed, _LANDMARKS)
    _fits("s", 8.0 * n * min(s, n))
    if s >= n:
        return uniform_landmarks(n, n), None
    pivots = next(_pivoted([s], X, kernel, block=block, share=share, key=key))
    _require(pivots.landmarks.indices.size, "kernel must not be 0 for all points of X")
    return pivots.landmarks, pivots.factor


@_public(sparse=True)
def rpcholesky(X, kernel, s, seed=0, *, block=64, greedy=False):
    """Landmarks from randomly pivoted Cholesky, an alternative to RLS (Chen and others 2025).

    Draws each pivot with probability proportional to the diagonal of K - F F^T, where F is the
    factor of earlier pivots. To save time, pivots are proposed in blocks (Epperly and others 2025).
    Costs about n (s + 1) kernel values, O(n s (d + s)) time and n s floats of memory. If `greedy`,
    each pivot is the largest diagonal entry instead (textbook). Outliers are then chosen first,
    which rarely helps kernel PCA and takes several times as long.

    Args:
        X: (n, d) array or scipy sparse matrix. Points.
        kernel: Kernel. Positive semidefinite.
        s: int, at least 1. Number of landmarks. If s >= n, all points are returned.
        seed: int from 0 to 2**64 - 1.
        block: int from 1 to 128. Number of proposals per block. 1 means no blocks.
        greedy: bool. Whether to choose the largest entry. Then seed has no effect, and block affects
            only choices among ties.
    Returns:
        Landmarks: In the order of choice, with weights 1. If no residual is left, fewer than s. If
            s >= n, in the order of rows.
    Example:
        >>> X = np.concatenate([np.zeros((99, 1)), [[9.0]]])
        >>> sorted(X[rpcholesky(X, gaussian(1.0), 2).indices, 0].tolist())  # one of 99 equal points
        [0.0, 9.0]
    """
    share = 1.0 if _as_flag("greedy", greedy) else 0.0
    return _landmarks_by_pivots(X, kernel, s, block, share, seed)[0]


def _with_landmarks(state, more, count, key):
    """Add `more`, the landmarks of `count` further points, to a state. Of more than s landmarks, s
    are drawn with probability proportional to q / p. Scores in the union give q, and p = 1 /
    weight^2 is the probability that a landmark was kept so far. `key` becomes the seed."""
    s = state.s
    points = np.concatenate([state.points, more.points])
    indices = np.concatenate([state.indices, state.count + more.indices])
    weights = np.concatenate([state.weights, more.weights])
    evaluations = state.evaluations + more.evaluations
    if len(points) > s:
        delta = _practical_delta(s)
        k = _largest_rank(s, _PRACTICAL_C, delta)
        scores, computed = _scores(points, points, weights, state.kernel, None, k, key)
        wanted = np.minimum(1.0, scores * math.log(2.0 * k / delta))
        kept, chances = _draw_by_size(wanted * weights**2, s, _python_subkey(key, _COINS))
        points = points[kept]
        indices = indices[kept]
        weights = weights[kept] / np.sqrt(chances)
        evaluations += computed
    return state._replace(
        points=points,
        indices=indices,
        weights=weights,
        evaluations=evaluations,
        count=state.count + count,
        seed=int(key),
    )


def _rls_update(state, X):
    # Streams that are merged may share a seed. Their draws are independent, because the points
    # enter the key.
    key = _python_subkey(_key(state.seed, _LANDMARKS), zlib.crc32(X))
    found = recursive_rls_accelerated(X, state.kernel, state.s, key)
    more = found._replace(points=X[found.indices])
    return _with_landmarks(state, more, len(X), _python_subkey(key, _AT_RANDOM))


def _rls_merge(a, b):
    return _with_landmarks(a, b, b.count, _python_subkey(_key(a.seed, _LANDMARKS), b.seed))


def _rls_finish(state):
    indices = state.indices.copy()
    return Landmarks(indices, state.weights.copy(), state.evaluations, state.points.copy())


@_stream(
    columns=lambda state: state.points.shape[1],
    update=_rls_update,
    finish=_rls_finish,
    merge=_rls_merge,
    arguments=lambda state: (state.kernel, state.s, state.points.shape[1]),
)
@_validated("an RLSState from rls_start or update", points="points", indices="whole", weights=1)
class RLSState(NamedTuple):
    """Landmarks of a stream after `count` points. points: (m, d), m <= s. indices: (m,), in the
    stream. The fields weights and evaluations are as in Landmarks.

    For `update`, `recursive_rls_accelerated` chooses s of the new points. From the weighted union
    with the old landmarks, s points are drawn by scores (RLS lemma 6, RLS algorithm 3), in O(s^3 +
    s^2 d) time. Calls with at least 2 s points are best. No theorem covers it. For a given ridge,
    see Calandriello, Lazaric, Valko (2017). `finish` gives Landmarks in the order of the stream."""

    points: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    evaluations: int
    kernel: Kernel
    s: int
    count: int
    seed: int
    names: bytes = b""


@_public
def rls_start(kernel, s, d, seed=0):
    """Start a stream that keeps s landmarks by ridge leverage scores (RLS).

    Args:
        kernel: Kernel. Positive semidefinite.
        s: int, at least 1. Number of landmarks.
        d: int, at least 1. Number of coordinates of a point.
        seed: int from 0 to 2**64 - 1.
    Returns:
        RLSState: The state before the first point.
    Example:
        >>> state = update(rls_start(gaussian(5.0), 8, 1), np.arange(50.0)[:, None])
        >>> finish(state).points.shape
        (8, 1)
    """
    kernel = _checked_kernel("kernel", kernel)
    s = _checked_count("s", s)
    d = _checked_count("d", d, _MOST)
    none = np.zeros((0, d), np.float32)  # float64 points will change the type
    return RLSState(none, np.zeros(0, int), np.zeros(0), 0, kernel, s, 0, _as_seed("seed", seed))


# 13.5 Nystrom approximation (RLS section 2.1, appendix C)


@_public(sparse=True)
def nystrom_map(X, landmarks, kernel):
    """Map from points to Nystrom features: landmarks and their Cholesky factor (RLS section 2.1).

    Costs about 2 s^2 kernel values, O(s^2 (d + s)) time and O(s (d + s)) memory.

    Args:
        X: (n, d) array or scipy sparse matrix. Points. Only rows of landmarks are read.
        landmarks, kernel: See `nystrom`.
    Returns:
        NystromMap: Landmarks in pivot order. Linearly dependent ones come last, with features 0.
    Example:
        >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 2.0]])
        >>> features(X, nystrom_map(X, np.array([0, 1]), linear())).round(12).tolist()
        [[0.0, 1.0], [2.0, 0.0], [2.0, 3.0]]
    """
    Z = _checked_landmarks(_as_points("X", X), landmarks)
    kernel = _checked_kernel("kernel", kernel, landmarks=Z)
    _fits("landmarks", 8.0 * Z.shape[0] ** 2)
    return _factor(Z, kernel)[0]


@_public(sparse=True)
def nystrom(X, landmarks, kernel):
    """Nystrom factor F with F F^T = K~ = K S (S^T K S)^+ S^T K (RLS (1)).

    `LowRank(F)` is K~ as an operator. The nuclear norm of K - K~ is its trace: gram_diagonal(X,
    kernel).sum() - (F**2).sum(). Costs n s kernel values and O(n s (d + s)) time.

    Args:
        X: (n, d) array or, as in `kpca`, scipy sparse matrix. Points.
        landmarks: Landmarks, ReducedSet, CertifiedNystrom, row numbers or points.
        kernel: Kernel. Positive semidefinite.
    Returns:
        array: (n, s) factor in X's precision, in pivot order. Columns past the rank of K~ are 0.
    Example:
        >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 2.0]])
        >>> F = nystrom(X, np.array([0, 1]), linear())
        >>> np.allclose(F @ F.T, gram(X, X, linear()))
        True
    """
    X, kernel = _points_and_kernel(X, kernel)
    Z = _checked_landmarks(X, landmarks)
    _fits("landmarks", X.shape[0] * Z.shape[0] * X.dtype.itemsize)
    return _map_features(X, nystrom_map(Z, Z, kernel))


def _about_landmarks(X, Z, kernel, centered, weights=None):
    """X, the map of the landmarks Z, and twice None. If `centered`, the last item is the mean of
    the landmarks' features: if it is subtracted first, few digits are lost. A linear kernel takes X
    and Z minus the mean of X, or minus `_far_means` if X is sparse, which is returned as `origin`."""
    origin = None
    if centered and _is_linear(kernel) and _is_sparse(X) == _is_sparse(Z):
        if _is_sparse(X):
            means = _far_means(X)
            origin = means if means.any() else None
            X = _minus_row(X, means)
            Z = _minus_row(Z, means)
        else:
            mean = X.mean(0, np.float64) if weights is None else np.average(X, 0, weights)
            origin = np.asarray(mean)  # X may be a Dask array, which has not been checked
            _require_finite("X", origin)
            X = (X - origin).astype(np.float32 if X.dtype == np.float32 else np.float64)
            Z = (Z - origin).astype(Z.dtype)
        if origin is not None:
            kernel = kernel._replace(offset=0.0)  # centering removes constants
    found = nystrom_map(Z, Z, kernel)
    return X, found, origin, found.factor.sum(0) / max(found.rank, 1) if centered else None


def _stacked(X, Y):
    if not _is_sparse(X):
        return np.vstack([X, Y])
    from scipy.sparse import vstack  # the import takes 0.1 s

    return vstack([X, Y], "csr")


def _translated(E, origin):
    """The linear Expansion with features f(x - origin), if E has the features f. None means 0."""
    if origin is None:
        return E
    origin = _repeated(origin, 1, E.points) if _is_sparse(E) else origin[None]
    before = 0.0 if E.offset is None else E.offset
    E = E._replace(offset=2.0 * before - _features(origin, E)[0])
    if E.mean is None:
        return E
    return E._replace(
        points=_stacked(E.points, origin).astype(E.points.dtype),
        coef=np.pad(E.coef, ((0, 1), (0, 0))),
        mean=np.append(E.mean, 1.0),
    )


def _in_order(E, Z):
    """The Expansion with its points in the order of the landmarks Z, if the kernel is precomputed:
    kernel values that are passed to `features` have the order that the caller knows."""
    if E.kernel.kind != _PRECOMPUTED:
        return E
    places = np.empty(len(Z), np.int64)
    places[np.argsort(Z[:, 0], kind="stable")] = np.argsort(E.points[:, 0], kind="stable")
    mean = None if E.mean is None else E.mean[places]
    return E._replace(points=E.points[places], coef=E.coef[places], mean=mean)


def _normal_equations(P, found, T, middle=None, factors=None, values=False):
    """F^T F and F^T T, where F holds the features of P, or P if found is None, minus `middle`, with
    rows multiplied by `factors` (n, 1). The precision is that of T: float32 loses a small ridge. If
    `values`, F holds kernel values of the landmarks. If found is None, P may be overwritten."""
    squares = products = 0.0
    for rows in _slabs(P.shape[0], _SLAB):
        F = P[rows].astype(T.dtype, copy=False)
        if values:
            F = _gram(found.kernel, F, _in_double(found.points))
        elif found is not None:
            F = _map_features(F, found)
        if middle is not None:
            F -= middle
        if factors is not None:
            F *= factors[rows]
        squares += _column_products(F, F)
        products += _transposed_product(F, T[rows])
        del F
    return squares, products


def _coefficients(found, V):
    """Coefficients C with L^T C = V. Rows of landmarks beyond the rank are 0."""
    rank = found.rank
    C = np.zeros(V.shape)
    if rank:
        L = found.factor[:rank, :rank]
        C[:rank] = _scipy_linalg().solve_triangular(L, V[:rank], 1, True, check_finite=False)
    return C


def _expansion_by_map(found, V, values):
    """The features V^T y(x) as an expansion over the landmarks."""
    coef = _coefficients(found, V).astype(found.points.dtype)
    return Expansion(found.points, coef, values, found.kernel)


def _components_by_map(found, squares, sums, n, middle, k, key):
    """Kernel PCA from F^T F and F^T 1, where F holds features of n points, minus `middle`."""
    floor = 0.0
    if middle is not None:
        squares = squares - np.outer(sums, sums / n)  # F^T H F
        mean = middle + sums[:, 0] / n
        # Centering removes the eigenvalue n |mean|^2. This is its rounding error.
        floor = _precision(found.points) * n * (mean**2).sum()
    eigen = _lanczos(squares, k, key, 1e-12, 1000)
    kept = eigen.values > max(len(squares) * 2.2e-16 * eigen.values[0], floor)
    V = np.where(kept, eigen.vectors, 0.0)
    expansion = _expansion_by_map(found, V, np.where(kept, eigen.values, 0.0))
    if middle is None:
        return expansion
    return expansion._replace(offset=0.0 - mean @ V, mean=_coefficients(found, mean))


@_public(sparse=True)
def nystrom_kpca(X, landmarks, kernel, k, seed=0, *, centered=True):
    """Kernel PCA of all points, with components in the span of the landmarks (RLS theorem 17).

    The components are Phi^T S C, orthonormal in feature space. Row i of Phi is the feature vector
    of point i, C = (S^T K S)^+ S^T K~^(1/2) W~, and W~ holds the leading eigenvectors of K~. If K
    <= K~ + lam I for lam = (eps / k) sum_{i > k} sigma_i(K), their squared error is at most (1 + 2
    eps) times the minimum. Costs n s kernel values, O(n s (d + s)) time and O(n + s^2) memory.

    Args:
        X, landmarks, kernel: See `nystrom`.
        k: int from 1 to the number of landmarks. Number of components.
        seed: int from 0 to 2**64 - 1.
        centered: bool. If True, use H K~ H with H = I - 1 1^T / n instead of K~. A linear kernel
            takes X and landmarks minus the mean of X, because a large mean loses digits. From
            sparse points, only means of columns that are nearly constant are subtracted.
    Returns:
        Expansion: Over the landmarks. `values` has eigenvalues of K~ or H K~ H, 0 past the rank.
    Example:
        >>> X = np.array([[1.0], [2.0], [6.0]])
        >>> features(X, nystrom_kpca(X, np.array([2]), linear(), 1)).round(12).tolist()
        [[-2.0], [-1.0], [3.0]]
    """
    X, kernel = _points_and_kernel(X, kernel)
    key = _checked_key(seed, _START)
    centered = _as_flag("centered", centered)
    Z = _checked_landmarks(X, landmarks)
    k = _checked_count("k", k, Z.shape[0])
    X, found, origin, middle = _about_landmarks(X, Z, kernel, centered)
    squares, sums = _normal_equations(X, found, np.ones((X.shape[0], 1), X.dtype), middle)
    E = _components_by_map(found, squares, sums, X.shape[0], middle, k, key)
    return _in_order(_translated(E, origin), Z)


def _landmark_counts(most):
    """Increasing numbers of landmarks up to `most`. Each step adds a fifth, but at least 16."""
    s = 0
    while s < most:
        s = min(most, s + max(16, s // 5))
        yield s


@_public
def nystrom_to(X, kernel, error, seed=0, *, limit=None):
    """Nystrom approximation with a requested spectral error and a bound of the error (RLS (1)).

    Adds `rpcholesky` pivots, a fifth more at a time, until K~ is close enough on 2048 points. Let r
    eigenvalues of K exceed .9 (1 - error) error |K|_2. Then at most 1.3 max(1, r) columns are kept,
    unless `limit` is reached. If the trace does not prove the bound, 3 to 8 products of K with 16
    vectors do, with n^2 kernel values each. Costs O(n s (d + s)) time and 2 n s floats of memory,
    and for these products up to 768 n more.

    Args:
        X: (n, d) array. Points.
        kernel: Kernel. Positive semidefinite. Its values on X must be finite and not almost 0.
        error: float. The allowed |K - K~|_2 / |K|_2, positive.
        seed: int from 0 to 2**64 - 1.
        limit: int, at least 1, or None. Maximum number of landmarks. None means n.
    Returns:
        CertifiedNystrom: error_bound is from the trace, or about 1.01 times the true error. It may
            exceed `error` at `limit`, or if `error` is below 9e-16 (float32: 5e-7 to 2e-5).
    Example:
        >>> X = np.arange(200.0)[:, None]
        >>> found = nystrom_to(X, gaussian(50.0), 0.01)
        >>> found.error_bound <= 0.01, found.factor.shape[1] < 20
        (True, True)
    """
    X, kernel = _points_and_kernel(X, kernel)
    n = len(X)
    error = _checked_real("error", error, 1e-300)
    most = n if limit is None else min(n, _checked_count("limit", limit))
    key = _checked_key(seed, _LANDMARKS)
    start = _checked_key(seed, _START)
    some = _draw_by_size(np.ones(n), min(n, 2048), start)[0]
    norm = 0.0
    measured = 0
    chance = 0.0
    stages = _pivoted(_landmark_counts(most), X, kernel, block=64, share=0.0, key=key)
    for landmarks, F, diagonal, rest, floor in stages:
        found = F.shape[1]
        last = found == most or not rest.any()  # or all residuals are rounding errors
        if found >= 2 * measured:
            # Because |K~|_2 <= |K|_2, the largest norm so far is the closest to |K|_2.
            norm = max(norm, _norm(LowRank(F), start, 0.01, 3)[0])
            measured = found
        _require(norm > (1e-36 if X.itemsize == 4 else 1e-300), "kernel must not be almost 0 on X")
        bound = (rest.sum() + floor.sum()) / norm if _has_formula(kernel) else math.inf
        by_trace = bound <= error
        if not (last or by_trace):
            rest_of_some = _Difference(Implicit(X[some], kernel), LowRank(F[some]))
            if _norm(rest_of_some, start, 0.1, 1000)[0] > error * norm * some.size / n:
                continue
        values, V = _small_eigen(_column_products(F, F))
        norm = values[0]  # now |K~|_2, which is below |K|_2
        fitting = int(1.3 * max(1, np.count_nonzero(values > error * norm)))
        rank = max(1, np.count_nonzero(values > (error - bound) * norm))
        # If all residuals are rounding errors, the trace may overestimate their norm.
        by_trace = by_trace and (rank <= fitting or rest.any())
        if not by_trace:
            rank = min(found, max(fitting, np.count_nonzero(values > 0.9 * error * norm)))
        C = _combined(F, V, rank)
        if by_trace:  # |K - C C^T| <= |K - K~| + the next eigenvalue of K~
            bound += values[rank:].max(initial=0.0) / norm
            done = rank <= fitting
        else:
            left = _Difference(Implicit(X, kernel), LowRank(C))
            bound = _norm(left, _python_subkey(start, found), 0.01, 1000)[1] / norm
            chance += _MISSED  # the probabilities of failure add up
            done = bound <= error
        if done or last:
            trace_left = (rest.sum() + values[rank:].sum()) / diagonal.sum()
            bound = max(bound, 4.0 * _precision(X))
            return CertifiedNystrom(
                landmarks, C, float(trace_left), float(bound), None if by_trace else chance
            )


# 13.6 Ridge regression (RLS appendix C.1)


def _weighted_equations(P, T, weights, found, at, lam=0.0, F=None):
    """F^T W F, F^T W T and `at`, where F holds features of P minus `at`, and W = diag(weights). If
    `at` is given, there is an intercept, and the weighted mean of the features replaces it. Errors
    of F^T W F up to 2e-6 lam are allowed. If F is given, it is overwritten, and products have its
    precision."""
    T = np.column_stack([T, np.ones(P.shape[0])])
    factors = None
    if (weights != 1.0).any():
        factors = np.sqrt(weights)[:, None]
        T = factors * T
    total = weights.sum()
    limit = _value_limit(found.kernel, P, found.points)
    # With kernel values K, F = K C. Then C^T (K^T W K) C takes two thirds of the time, but a small
    # pivot increases rounding errors (measured: up to 1.3e-6 lam).
    least = found.factor.diagonal().min()
    values = F is None and limit * limit * 1e-8 * total < lam * least**2
    middle = None if values else at
    made = found
    if F is not None:
        T = T.astype(F.dtype)
        P, made = F, None
    squares, products = _normal_equations(P, made, T, middle, factors, values)
    if values:
        C = _coefficients(found, np.eye(len(squares)))
        squares = _transposed_product(C, _dense_product(squares, C))
        products = _transposed_product(C, products)
    if at is not None:
        mean = products[:, -1] / total
        squares -= np.outer(products[:, -1], mean)
        at = mean if values else at + mean
    return squares, products[:, :-1], at


def _deviations(T, weights):
    """Targets minus their weighted means. Those of a constant column are exactly 0."""
    gaps = T - T[0]
    return gaps - np.average(gaps, 0, weights)


def _ridge_by_map(found, squares, products, lam, targets, mean=0.0, at=None):
    """Ridge regression on Nystrom features, as an expansion. `targets` is the dimension of Y. If
    `at` is given, an offset makes the prediction for these features equal to `mean`."""
    lam = max(lam, _least_ridge(squares, found.points.dtype.itemsize == 4))
    weights = _solve_ridge(squares, products, lam)
    expansion = _expansion_by_map(found, weights, np.zeros(products.shape[1]))
    _require_finite("Y must be smaller: coefficients", expansion.coef)
    offset = None if at is None else mean - at @ weights
    return expansion._replace(targets=targets, offset=offset)


@_public
def factor_ridge(F, Y, lam):
    """Weights w = (F^T F + lam I)^-1 F^T Y of kernel ridge regression on a factor (RLS (32)-(35)).

    F w = K~ (K~ + lam I)^-1 Y. At new points, features(new, nystrom_map) @ w predicts Y.
    Costs O(n r^2 + r^3) time in float64. `nystrom_ridge` does the same without storing F.

    Args:
        F: (n, r) array. Factor of K~ = F F^T.
        Y: (n,) or (n, t) array. Targets.
        lam: float. Positive ridge. If it is below max(100, r) 2^-52 tr K~, this value replaces it.
    Returns:
        array: Weights in float64, with shape (r, t), or (r,) if Y is a vector.
    Example:
        >>> F = np.array([[1.0], [2.0]])
        >>> factor_ridge(F, np.array([3.0, 6.0]), 1.0).round(6).tolist()  # 15 / (5 + 1)
        [2.5]
    """
    F = _checked_points("F", F)
    lam = _as_ridge(lam)
    weights = _solve_ridge(*_normal_equations(F, None, _checked_targets(Y, len(F))), lam)
    return weights[:, 0] if np.ndim(Y) == 1 else weights


def _map_of_factor(F, rows, Z, kernel):
    """The NystromMap of landmarks Z, if the sampler of these rows computed the factor F."""
    return NystromMap(Z, np.tril(_in_double(F[rows])), Z.shape[0], kernel)


def _ridge_over(X, Y, landmarks, kernel, lam, intercept, weights, F=None):
    """`nystrom_ridge`. F: the sampler's factor of X, overwritten, for a nonlinear kernel."""
    X, kernel = _points_and_kernel(X, kernel)
    lam = _as_ridge(lam)
    T = _checked_targets(Y, X.shape[0])
    weights = _as_weights(weights, X)
    mean = np.average(T, 0, weights) * _as_flag("intercept", intercept)
    Z = _checked_landmarks(X, landmarks)
    # Float32 landmarks lose small pivots, and float32 features ridges below about a hundred of
    # their rounding errors.
    if F is None or F.itemsize == 4 and lam < 1e-5 * _value_limit(kernel, X) * weights.sum():
        X, found, origin, at = _about_landmarks(X, _in_double(Z), kernel, intercept, weights)
        F = None
    else:
        found = _map_of_factor(F, landmarks, Z, kernel)
        origin, at = None, found.factor.mean(0).astype(F.dtype)
    squares, products, at = _weighted_equations(X, T - mean, weights, found, at, lam, F)
    found = found._replace(points=found.points.astype(X.dtype))
    E = _ridge_by_map(found, squares, products, lam, np.ndim(Y), mean, at)
    return _in_order(_translated(E, origin), Z)


@_public(sparse=True)
def nystrom_ridge(X, Y, landmarks, kernel, lam, *, intercept=True, weights=None):
    """Kernel ridge regression over a few landmarks (RLS theorem 15, (32)-(35)).

    f(x) = k(x, landmarks) (S^T K S)^+ S^T K (K~ + lam I)^-1 Y, in O(n s (d + s)) float64 time and
    O(n + s^2) memory. In general, f and b minimize sum_i weights_i |y_i - f(x_i) - b|^2 + lam |f|^2
    for f in the span of the landmarks, where b is 0 or an intercept. With an intercept, a linear
    kernel takes X and landmarks minus the mean of X. From sparse points, only means of columns that
    are nearly constant are subtracted: the results are equal if the landmarks span all points.

    Args:
        X: (n, d) array or scipy sparse matrix. Points.
        Y: (n,) or (n, t) array. Targets.
        landmarks: Landmarks, ReducedSet, CertifiedNystrom, row numbers or points.
        kernel: Kernel. Positive semidefinite.
        lam: float. Positive ridge, in the units of the eigenvalues of K. If it is below 2e-8 tr K~ in
            float32, or max(100, s) 2^-52 tr K~ in float64, this value replaces it.
        intercept: bool. Whether to add b, which has no ridge. It is the offset of the result.
        weights: (n,) array, or None. Weights of the points, at least 0. None means 1.
    Returns:
        Expansion: Over landmarks. At q points, `features` gives (q, t), or (q,) if Y is a vector.
    Example:
        >>> X = np.array([[0.0], [1.0], [2.0]])
        >>> model = nystrom_ridge(X, np.array([5.0, 7.0, 9.0]), np.array([0, 2]), linear(), 1e-9)
        >>> features(np.array([[3.0]]), model).round(6).tolist()
        [11.0]
    """
    return _ridge_over(X, Y, landmarks, kernel, lam, intercept, weights)


_CHOLESKY_POINTS = 4096  # measured: with more points, n^3 / 3 operations take longer than steps


def _preconditioner(A, lam, P, kernel, s, key, centered):
    """A function R -> M^-1 R, with M = A + lam I for few points, and else lam^-1 F F^T + I. If A is
    `centered`, so is F."""
    if len(P) <= _CHOLESKY_POINTS:
        linalg = _scipy_linalg()
        ridged = A.copy()
        np.fill_diagonal(ridged, A.diagonal() + lam)
        with contextlib.suppress(linalg.LinAlgError):  # A + lam I is indefinite, or up to rounding
            with _shared_blas(_CHOLESKY * len(A) ** 3):
                factor = linalg.cho_factor(ridged.T, True, True, False)
            return lambda R: linalg.cho_solve(factor, R, check_finite=False)
    F = next(_pivoted([s], P, kernel, block=64, share=0.0, key=key)).factor
    F = _minus_row(F) if centered else F
    # (F F^T + lam I)^-1 = (I - C C^T) / lam. A tiny lam would make I - C C^T cancel.
    L = np.linalg.cholesky(_ridged(_column_products(F, F), lam))
    C = LowRank(_dense_product(F, np.linalg.inv(L).T))
    return lambda R: R - _product(C, R)


def _conjugate_gradients(A, lam, T, solve, tol, max_iterations):
    """Solutions of (A + lam I) a = T with a preconditioner R -> M^-1 R, `solve`. The steps end when
    the residual of each column of T, which has norm 1 or 0, is at most tol."""
    a = best = np.zeros(T.shape)
    R = T
    direction = 0.0
    before = math.inf
    least = np.linalg.norm(T, axis=0)  # |R| / |Y|
    for _ in range(max_iterations):
        if (least <= tol).all():
            break
        Z = solve(R)
        length = (R * Z).sum(0)
        direction = Z + length / before * direction
        before = np.where(length > 0.0, length, math.inf)
        Q = _product(A, direction) + lam * direction
        curvature = (direction * Q).sum(0)
        _require_finite("kernel values on X", curvature)
        step = np.where(curvature > 0.0, length / curvature, 0.0)
        a = a + step * direction
        R = R - step * Q
        # Keep the best coefficients for each target: if lam is below rounding, steps may diverge.
        rest = np.linalg.norm(R, axis=0)
        best = np.where(rest < least, a, best)
        least = np.fmin(rest, least)
    return best


@_public
def kernel_ridge(
    X, Y, kernel, lam, s=1000, seed=0, *, intercept=True, tol=1e-8, max_iterations=1000
):
    """Kernel ridge regression on all points, (K + lam I) a = Y - b, by conjugate gradients.

    f(x) = sum_i a_i k(x_i, x) + b minimizes sum_i |y_i - f(x_i)|^2 + lam a^T K a (RLS (32) for K).
    With an intercept b, H K H and H Y replace K and Y, where H = I - 1 1^T / n, and a linear kernel
    takes X minus its mean. Without it, b is 0. The preconditioner is F F^T + lam I, where F has s
    pivots of `rpcholesky`. It reduces the condition number to at most 1 + |K - F F^T|_2 / lam
    (Diaz, Epperly, Frangella, Tropp, Webber 2023). F costs O(n s (d + s)) time and 2 n s floats.
    Each step costs n^2 kernel values. If n <= 8192, they are computed once and stored. If n <=
    4096, the preconditioner is the Cholesky factorization of K + lam I, in n^3 / 3 operations.

    Args:
        X, Y, kernel, lam: See `nystrom_ridge`.
        s: int, at least 1. Number of pivots if n > 4096. If s > n, n pivots are used.
        seed: int from 0 to 2**64 - 1.
        intercept: bool. Whether to add b, which has no ridge. It is the offset of the result.
        tol: float, not negative. Stops when |Y - b - (K + lam I) a| <= tol |Y| for every target. With
            an intercept, |Y| is the norm of the deviations of Y from its mean.
        max_iterations: int, at least 1. Maximum number of products of K with t vectors.
    Returns:
        Expansion: f over X. `values` has |Y - b - (K + lam I) a| / |Y|, which may exceed tol.
    Example:
        >>> X = np.array([[0.0], [1.0], [2.0]])
        >>> model = kernel_ridge(X, np.array([5.0, 7.0, 9.0]), linear(), 1e-9)
        >>> features(np.array([[3.0]]), model).round(6).tolist()
        [11.0]
    """
    X, kernel = _points_and_kernel(X, kernel)
    n = len(X)
    lam = _as_ridge(lam)
    T = _checked_targets(Y, n)
    s = min(n, _checked_count("s", s))
    tol = _checked_real("tol", tol, 0.0)
    max_iterations = _checked_count("max_iterations", max_iterations)
    key = _checked_key(seed, _LANDMARKS)
    _fits("s", 16.0 * n * s)
    points = X.copy()
    origin = None
    if _as_flag("intercept", intercept):
        first = T[0]
        mean = first + (T - first).mean(0)  # exact for constant targets
        T = _deviations(T, None)
        if _is_linear(kernel):
            origin = X.mean(0, np.float64)
            points = (X - origin).astype(X.dtype)
            kernel = kernel._replace(offset=0.0)  # centering removes constants
    sizes = _column_lengths(T)
    sizes += sizes == 0.0
    T = T / sizes
    P = _in_double(points)
    A = _gram(kernel, P) if n <= _DENSE_POINTS else Implicit(P, kernel)
    if intercept:
        means = center(A).means
        if isinstance(A, Implicit):
            A = Centered(A, means)
        else:
            A -= means
            A -= (means - means.mean())[:, None]
    solve = _preconditioner(A, lam, P, kernel, s, key, intercept)
    best = _conjugate_gradients(A, lam, T, solve, tol, max_iterations)
    if intercept:
        best = best - best.mean(0)  # 1^T a = 0 up to rounding
    coef = np.ascontiguousarray(best * sizes, X.dtype)
    _require_finite("Y must be smaller: coefficients", coef)
    a = coef / sizes
    rest = np.linalg.norm(T - _product(A, a) - lam * a, axis=0)
    offset = mean - means @ coef if intercept else None
    E = Expansion(points, coef, rest, kernel, offset, targets=np.ndim(Y))
    return _translated(E, origin)


@_validated("a Metric", errors=1)
class Metric(NamedTuple):
    """M (d, d), for `scale_points`. model: Expansion over scaled points. Its columns are named
    "scaled NAME", so it refuses a frame whose points are not scaled. errors (r,): for each round, the
    mean squared error on the held-out tenth of the points, relative to the variance of Y."""

    M: np.ndarray
    model: Expansion
    errors: np.ndarray


@_public
def learn_metric(X, Y, kernel, lam, s=1000, seed=0, *, intercept=True, max_iterations=4):
    """Metric M in which directions without influence on the targets are short.

    Round r fits `nystrom_ridge` (RLS (32)) over `rpcholesky` landmarks to X M^(1/2). In round 0, M
    = I. Then M is the `gradient_outer_product` in X, scaled to trace d. The best M on a held-out
    tenth is fitted to all points.

    A round costs O(n s (s + t d) + t n d^2 + d^3) time. The last term is for one eigendecomposition.
    A call needs about 8 (t + 6) d^2 bytes of memory, in addition to that of `rpcholesky`.

    Args:
        X: (n, d) array. Points. Standardize columns of different units.
        Y: (n,) or (n, t) array. Targets. M and errors are for Y / standard deviation.
        kernel: Kernel. Positive semidefinite, and accepted by `gradient`.
        lam: float. Positive ridge, in the units of the eigenvalues of K.
        s: int, at least 1. Number of landmarks.
        seed: int from 0 to 2**64 - 1.
        intercept: bool. See `nystrom_ridge`.
        max_iterations: int, at least 0. Last round. Constant targets end the rounds.
    Returns:
        Metric: M, a model for scale_points(X, M), and the errors of the rounds: an error of 0.1 means
            R^2 = 0.9 on the held-out tenth of the points. M is from the round with the smallest one.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((200, 3))
        >>> found = learn_metric(X, X[:, 1], gaussian(2.0), 1e-3, 50)
        >>> found.M.diagonal().argmax().item()  # only column 1 has an influence
        1
    """
    columns = json.loads(_names(X)) if _names(X)[:1] == "[" else []
    X, kernel = _points_and_kernel(X, kernel)
    lam = _as_ridge(lam)
    intercept = _as_flag("intercept", intercept)
    max_iterations = _checked_count("max_iterations", max_iterations, low=0)
    _require(len(X) > 1, "X must have at least 2 rows, got 1")
    _derivative("kernel", kernel)
    T = _checked_targets(Y, len(X))
    T = _deviations(T, None) if intercept else T
    _fits("X", 8.0 * (T.shape[1] + 6) * X.shape[1] ** 2)
    T = T / _unit_of(T.std(0)[None], 0)
    order = _draw_uniformly(len(X), len(X), _checked_key(seed, _HELD_OUT))
    held, kept = np.split(order, [_ceil_div(len(X), 10)])

    def fitted(P, Y):
        return nystrom_ridge(P, Y, rpcholesky(P, kernel, s, seed), kernel, lam, intercept=intercept)

    M = best = best_root = np.eye(X.shape[1])
    errors = []
    while M.trace() > 0.0:
        M *= len(M) / M.trace()
        root = _root_of(M) if errors else M  # in round 0, both are I
        P = _dense_product(X, root)
        model = fitted(P[kept], T[kept])
        errors.append(np.square(features(P[held], model) - T[held]).mean())
        if errors[-1] == min(errors):
            best, best_root = M, root
        if len(errors) > max_iterations:
            break
        slopes = gradient_outer_product(P[kept], model)
        M = _dense_product(np.ascontiguousarray(_dense_product(slopes, root).T), root)
    model = fitted(_dense_product(X, best_root), Y)
    if columns:
        scaled_names = [f"scaled {name}" for name in columns]
        model = model._replace(names=json.dumps(scaled_names).encode())
    return Metric(best, model, np.array(errors))


# --------------------------------------------------------------------------------------------------
# 14. Downstream


@_validated("a Clustering")
class Clustering(NamedTuple):
    """labels (n,); centers (k, r): the mean row of each cluster; cost: sum of squared distances."""

    labels: np.ndarray
    centers: np.ndarray
    cost: float


@_public
def kernel_kmeans(F, k, seed=0, *, restarts=1, max_iterations=300):
    """Kernel k-means: k-means of the rows of a factor, with k-means++ starts (RLS theorem 16).

    Args:
        F: (n, r) array. Factor of K~ = F F^T.
        k: int from 1 to n. Number of clusters.
        seed, restarts, max_iterations: See `kmeans_select`. A pass costs O(n k r) time. Ten restarts
            are worth it if the clusters differ between seeds: the result with the least cost is kept.
    Returns:
        Clustering: Its cost is tr(K~ - C C^T K~ C C^T) for normalized indicators C (RLS (42)).
    Example:
        >>> F = np.array([[0.0], [0.2], [5.0], [5.2]])
        >>> found = kernel_kmeans(F, 2)
        >>> sorted(found.centers.ravel().round(6).tolist()), round(found.cost, 6)
        ([0.1, 5.1], 0.04)
    """
    F = _checked_points("F", F)
    k = _checked_count("k", k, len(F))
    centers, labels, cost = _lloyd("kernel_kmeans", F, k, seed, restarts, max_iterations)
    return Clustering(labels, centers, float(cost))


@_validated("Correlations")
class Correlations(NamedTuple):
    """values (k,): correlations, descending. weights_x (r, k), weights_y (q, k): F weights_x and G
    weights_y are the variates."""

    values: np.ndarray
    weights_x: np.ndarray
    weights_y: np.ndarray


def _ridge_basis(F, lam, squared):
    """B with F B = U D, where F = U diag(s) V^T and D is s^2 / (s^2 + lam) or its square root. R of
    F = Q R gives s, because F^T F would lose singular values below 1e-8 times the largest."""
    with _shared_blas(0.1 * F.size * F.shape[1]):  # measured: 1.9 s for 20,000 x 1000
        _, s, rows = np.linalg.svd(np.linalg.qr(F, "r"), full_matrices=False)
    shares = s / (s * s + lam) if squared else 1.0 / np.sqrt(s * s + lam)
    return rows.T * np.where(s > max(F.shape) * 2.2e-16 * s[0], shares, 0.0)


@_public
def kernel_cca(F, G, lam_x, lam_y, k, *, squared=True):
    """Regularized kernel canonical correlations of K_x = F F^T and K_y = G G^T (RLS theorem 18).

    Maximizes (F w).(G v). If `squared` is True, the constraint is |(K_x + lam_x I) alpha| = 1 for w
    = F^T alpha. The optimum is |P_x P_y|_2 with P_x = K_x (K_x + lam_x I)^-1, as in theorem 18. If
    `squared` is False, the constraint is |F w|^2 + lam_x |w|^2 = 1, as printed in the paper. The
    optimum is |P_x^(1/2) P_y^(1/2)|_2. P_y and the constraint on v are the same for K_y.

    Args:
        F: (n, r) array. Factor of the first view. To center the view, center the columns.
        G: (n, q) array. Factor of the second view.
        lam_x: float, positive. Ridge, in the units of the eigenvalues of F F^T.
        lam_y: float, positive. Ridge, in the units of the eigenvalues of G G^T.
        k: int from 1 to min(n, r, q). Number of correlations.
        squared: bool. Selects the constraint, as above.
    Returns:
        Correlations: values_i = (F w_i).(G v_i). Values beyond the rank of F or G are 0.
    Example:
        >>> F = np.array([[1.0], [-1.0], [2.0], [-2.0]])
        >>> kernel_cca(F, -3.0 * F, 1e-9, 1e-9, 1).values.round(6).tolist()
        [1.0]
    """
    F = _in_double(_checked_points("F", F))
    G = _in_double(_checked_points("G", G, rows=len(F)))
    lam_x = _checked_real("lam_x", lam_x, 1e-300)
    lam_y = _checked_real("lam_y", lam_y, 1e-300)
    k = _checked_count("k", k, min(*F.shape, G.shape[1]))
    squared = _as_flag("squared", squared)
    left = _ridge_basis(F, lam_x, squared)
    right = _ridge_basis(G, lam_y, squared)
    with _shared_blas(0.04 * F.size * G.shape[1]):  # measured: .8 s for 20,000 x 1000
        products = F.T @ G
    a, values, b = np.linalg.svd(left.T @ products @ right, full_matrices=False)
    return Correlations(values[:k], left @ a[:, :k], right @ b[:k].T)


_DIVISIONS = 32  # in a product. Measured: 16 to 128 at a time take about the same time.


@_public
def mmd_test(X, Y, kernel, s=100, seed=0, *, permutations=999, groups=None):
    """P-value of the maximum mean discrepancy of two samples (Gretton and others 2012; textbook).

    The statistic is |mean f(x_i) - mean f(y_j)| for Nystrom features f over s landmarks. It is
    compared with its values for other divisions of all points into n and m. They are drawn, unless
    there are at most 1 + permutations of them. If all points are exchangeable, such as independent
    points of one law, P(p <= alpha) <= alpha for any s, over seeds if divisions are drawn. Costs
    O((n + m) s (d + s + permutations)) time.

    Points of one patient or of a time series depend on each other. Without `groups`, p is then far
    too small. With `groups`, divisions keep groups whole, and exchangeable groups suffice, such as
    independent groups whose points and sizes have one law. Cut a time series into runs. Measured
    for autoregressions: if runs are 2 and 10 times as long as the lag with correlation 1/e, p is at
    most .05 with probability .13 and .055. If X has g of G groups, p is at least 1 / C(G, g).

    Args:
        X: (n, d) array. First sample.
        Y: (m, d) array. Second sample.
        kernel: Kernel. Positive semidefinite. Do not choose it by the difference of X and Y.
        s: int, at least 1. Number of landmarks, chosen by `rpcholesky` from both samples.
        seed: int from 0 to 2**64 - 1. Seed of landmarks and divisions.
        permutations: int, at least 1. Largest number of other divisions.
        groups: (n + m,) array, or None. Labels of the groups of X's and then of Y's points: numbers
            or strings. No group may have points in both. None means that each point is a group.
    Returns:
        float: Share of divisions with at least the value observed. The one observed is among them.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((60, 2))
        >>> mmd_test(X[:30], X[30:] + 3.0, gaussian(1.0))  # one of 1000 divisions
        0.001
    """
    Z = _in_double(np.concatenate(_checked_two(X, "Y", Y)))
    permutations = _checked_count("permutations", permutations, _MOST)
    key = _checked_key(seed, _PROBES)
    n = len(X)
    numbers = np.arange(len(Z)) if groups is None else _as_groups(groups, len(Z))
    g = int(numbers[:n].max()) + 1
    _require(g <= numbers[n:].min(), "groups must not contain points of both X and Y")
    order = np.lexsort(Z.T)  # landmarks must not depend on which sample a point is from
    P = _about_mean(_checked_kernel("kernel", kernel), Z[order])
    F = nystrom(P, rpcholesky(P, kernel, s, seed), kernel)[np.argsort(order)]
    rounding = 1e-13 * math.sqrt(len(Z) * np.square(F).sum())
    # The sum over one sample now determines the other sum. The last column counts points.
    F = np.column_stack([_minus_row(F), np.ones(len(Z))])
    if groups is not None:
        order = np.argsort(numbers, kind="stable")
        F = np.add.reduceat(F[order], np.flatnonzero(np.diff(numbers[order], prepend=-1)))
    if len(F) <= 1 + permutations and math.comb(len(F), g) <= 1 + permutations:
        divisions = itertools.combinations(range(len(F)), g)  # the first is the one observed
    else:
        drawn = (_draw_uniformly(len(F), g, _python_subkey(key, t)) for t in range(permutations))
        divisions = itertools.chain([range(g)], drawn)
    sizes = np.empty(0)
    counts = np.empty(0)
    while some := list(itertools.islice(divisions, _DIVISIONS)):
        chosen = np.zeros((len(F), len(some)))
        for j, rows in enumerate(some):
            chosen[rows, j] = 1.0
        sums = _transposed_product(F, chosen)
        sizes = np.append(sizes, np.linalg.norm(sums[:-1], axis=0))
        counts = np.append(counts, sums[-1])
    # The difference of means is |sum| (n + m) / (count (n + m - count)).
    observed = sizes[0] * counts * (len(Z) - counts) / (n * (len(Z) - n))
    return float(np.mean(sizes >= observed - rounding))


# --------------------------------------------------------------------------------------------------
# 15. Errors

# 15.1 Errors of matrices


@_public
def spectral_error(A, B, seed=0, *, tol=1e-2, max_iterations=1000):
    """Spectral norm |A - B|_2 without forming A - B (AMS theorem 1 bounds it for sketches).

    Args:
        A: (n, n) symmetric array or operator. For a relative error, divide by spectral_norm(A).
        B: (n, n) symmetric array or operator.
        seed: int from 0 to 2**64 - 1. Seed of the first block of vectors.
        tol, max_iterations: See `spectral_norm`.
    Returns:
        float: |A - B|_2, or slightly less, but at least the rounding error of the products.
    Example:
        >>> round(spectral_error(np.diag([3.0, 2.0, 1.0]), np.diag([3.0, 1.0, 3.0])), 10)
        2.0
    """
    return spectral_norm(
        _Difference(*_checked_pair(A, B, True)), seed, tol=tol, max_iterations=max_iterations
    )


@_public
def frobenius_error(A, B):
    """Frobenius norm |A - B|_F of a difference of operators, in blocks of rows (textbook).

    Args:
        A, B: See `spectral_error`.
    Returns:
        float: The norm, exact up to rounding.
    Example:
        >>> round(frobenius_error(np.diag([3.0, 2.0, 1.0]), np.diag([3.0, 1.0, 3.0])) ** 2, 10)
        5.0
    """
    D = _Difference(*_checked_pair(A, B))
    n = _size(D)
    ends = [*range(0, n, _BLOCK), n]
    total = sum(np.square(_rows(D, *pair)).sum() for pair in itertools.pairwise(ends))
    _require_finite("A and B", total)
    return math.sqrt(total)


def _scaled_columns(name, V, rows=None):
    """V in float64, each column divided by its largest magnitude: small columns are not noise."""
    V = _in_double(_checked_points(name, V, rows=rows))
    return V / _unit_of(V, 0)


def _dense_eigenvalues(A):
    A = dense(A)
    with _shared_blas(_EIGENVALUES * len(A) ** 3):
        return np.linalg.eigvalsh(A)


@_public
def effective_dimension(A, lam, seed=0, *, probes=32, max_iterations=64):
    """Estimate of tr A (A + lam I)^-1 for a positive semidefinite operator A (RLS definition 1).

    The estimate is n times the mean of w^T A (A + lam I)^-1 w over random orthonormal vectors w,
    from block Lanczos quadrature (Ubaru, Chen, Saad 2017). Each term is at most |w - (A + lam I)
    y|^2 too large, where y is the Krylov solution. The iteration ends when this bound is .1 % of the
    result. It takes q = `max_iterations` products or less, O(n (probes q)^2) time and O(n probes q)
    memory. If n <= 512 or the basis would exceed n / 4 columns, the value is exact, in O(n^3) time.

    Args:
        A: (n, n) symmetric positive semidefinite array or operator.
        lam: float, at least A's rounding error, about |A|_2 times 2^-52 (in float32, 2^-23).
        seed: int from 0 to 2**64 - 1. Seed of the probes.
        probes: int, at least 1. Number of vectors; the error falls like 1 / sqrt(probes).
        max_iterations: int, at least 1. Limit on products. If it is too small, a ValueError gives
            bounds.
    Returns:
        float: The estimate, from 0 to n.
    Example:
        >>> effective_dimension(np.diag([3.0, 1.0, 0.0]), 1.0)
        1.25
    """
    A = _as_operator("A", A, True)
    lam = _as_ridge(lam)
    probes = _checked_count("probes", probes)
    max_iterations = _checked_count("max_iterations", max_iterations)
    key = _checked_key(seed, _PROBES)
    # Measured for Gram matrices in float32: if lam equals this bound, the result is 5 % too large.
    least = _norm(A, key, 0.5, 1000)[0] * _precision(A)
    _require(lam >= least, f"lam must be at least A's rounding error, {least:.2g}; got {lam:.2g}")
    n = _size(A)
    most = min(max_iterations, n // 4 // probes) if n > 512 else 0  # 0: exact, as below
    if most:
        _fits("A", 8.0 * n * most * probes)
        basis = _Basis(n, most * probes, key)
        W = _start_block(n, probes, key)
    for step in range(1, most + 1):
        R = _finite_product(A, W)[0]
        basis.add(W, R)
        if step % (step // 8 or 1) == 0 or step == most:
            ritz, Y = basis.ritz_pairs()
            values = ritz.clip(0.0)
            of_start = Y[:probes] * math.sqrt(n / probes)
            total = float((of_start**2 @ (values / (values + lam))).sum())
            excess = np.square(_dense_product(R, Y[-probes:] / (values + lam) @ of_start.T)).sum()
            if excess <= 1e-3 * total and ritz[-1] > -0.01 * lam:  # an indefinite A has no bound
                return total
            _require(
                step < max_iterations,
                f"max_iterations must be larger: after {max_iterations} iterations the result is "
                f"{total:.6g}, or up to {excess:.6g} less",
            )
        W = basis.next_block(R)
    values = _dense_eigenvalues(A).clip(0.0)
    return float((values / (values + lam)).sum())


@_public
def nuclear_error(A, B):
    """Nuclear norm |A - B|_* = sum_i abs(eigenvalue_i) of a difference of operators (textbook).

    Args:
        A, B: See `spectral_error`.
    Returns:
        float: The norm. Costs O(n^3) time and 8 n^2 bytes. For Nystrom factors, see `nystrom`.
    Example:
        >>> round(nuclear_error(np.diag([3.0, 2.0, 1.0]), np.diag([3.0, 1.0, 3.0])), 10)
        3.0
    """
    D = _Difference(*_checked_pair(A, B, True))
    return float(np.abs(_dense_eigenvalues(D)).sum())


@_public
def projection_cost(A, V):
    """Cost tr(A - P A P) of the orthogonal projection P onto the columns of V (RLS (10)).

    Args:
        A: (n, n) symmetric array or operator.
        V: (n, k) array. Columns, such as eigenvectors or indicators of clusters.
    Returns:
        float: The cost. RLS theorem 14 compares costs of K~ and K for landmarks drawn by scores.
    Example:
        >>> round(projection_cost(np.diag([3.0, 2.0, 1.0]), np.eye(3)[:, :1]), 10)
        3.0
    """
    A = _as_operator("A", A)
    Q = _scipy_linalg().orth(_scaled_columns("V", V, _size(A)))
    kept = float((Q * _product(A, Q)).sum())
    _require_finite("A", kept)
    return _trace(A) - kept


@_validated("a Reliable")
class Reliable(NamedTuple):
    """count: number of reliable components; angles (k,): bounds in radians, or pi / 2."""

    count: int
    angles: np.ndarray


@_public
def reliable_components(values, error):
    """Number of leading components that are reliable despite a spectral error (AMS theorem 3).

    Let g_j = values_j - values_(j+1). If g_j > 2 |A - K|_2, the angles between the spans of the
    first j eigenvectors of A and K are at most arcsin(2 |A - K|_2 / g_j) / 2 (Davis, Kahan 1970).

    Args:
        values: (k,) array. Leading eigenvalues of the sketch A, descending.
        error: float, at least 0. |A - K|_2, or a bound such as (1 + tol) times `spectral_error`.
    Returns:
        Reliable: Its count is the largest j with g_j > 2 error. Angles without a bound are pi / 2.
    Example:
        >>> found = reliable_components(np.array([9.0, 5.0, 4.5]), 1.0)
        >>> found.count, np.rad2deg(found.angles).round(9).tolist()
        (1, [15.0, 90.0, 90.0])
    """
    values = _checked_vector("values", values)
    error = _checked_real("error", error, 0.0)
    gaps = -np.diff(values, append=values[-1])
    _require((gaps >= 0.0).all(), "values must not increase")
    clear = gaps > 2.0 * error
    angles = np.where(clear, 0.5 * np.arcsin(2.0 * error / gaps), math.pi / 2.0)
    return Reliable(int(np.flatnonzero(clear).max(initial=-1)) + 1, angles)


# 15.2 Errors of models


_ROUNDING = 1e-9  # of a squared residual. Measured: 1e-10 between one point and a batch.


@_public(sparse=True)
def novelty_pvalues(X, model, known):
    """P-values of novelty: p = (1 + number of known residuals at least as large) / (n + 1).

    If a point is exchangeable with the n known points (such as independent points of one law) and
    the model has seen neither, P(p <= alpha) <= alpha (split conformal prediction, Vovk and others
    2005; textbook). For given known points, this probability varies like Beta(a, n + 1 - a) with a
    = floor(alpha (n + 1)). If `scipy.stats.false_discovery_control(p) <= alpha` marks the points,
    the expected share of known ones among them is at most alpha (Bates and others 2023).

    Several points of a known patient or session are not exchangeable with a point of a new one.
    Then choose one point of each known patient at random, none of whose points the model has seen.

    Args:
        X: (q, d) array. New points, each with its own p-value.
        model: Expansion, NystromMap or Subspace. See `residual`.
        known: (n,) array. residual(K, model) for known points K that were not used for the model,
            because these have smaller residuals. For a drifting stream: its last n, even alarms.
    Returns:
        array: (q,), at least 1 / (n + 1). Squared residuals that differ by up to 1e-9 count as equal.
    Example:
        >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
        >>> model = kpca(X[:2], gaussian(1.0), 2, centered=False)
        >>> novelty_pvalues(np.array([[0.5], [99.0]]), model, residual(X[2:], model)).round(6).tolist()
        [1.0, 0.333333]
    """
    known = _as_array("known", known, 1, _DOUBLE)
    n = known.size
    _require(n > 0 and (known >= 0.0).all(), "known must hold one or more residuals, at least 0")
    squares = np.square(residual(X, model)) - _ROUNDING
    return (1.0 + n - np.searchsorted(np.sort(np.square(known)), squares)) / (n + 1.0)


@_validated("a SketchError")
class SketchError(NamedTuple):
    """values (k,): errors of eigenvalues; angles (k,): angles to the exact span, in radians."""

    values: np.ndarray
    angles: np.ndarray


def _checked_centering(name, value, model):
    """`value`, or if it is not given, whether the model is centered. Other sketches are not."""
    if isinstance(model, Expansion):
        wanted = model.offset is not None
    elif isinstance(model, Subspace):
        wanted = model.means is not None and bool(np.any(model.means))
    else:
        return value is not None and _as_flag(name, value)
    _require(
        value is None or _as_flag(name, value) == wanted,
        f"{name} must be {wanted} or None, as this {type(model).__name__} is "
        f"{'centered' if wanted else 'not centered'}; got {value}",
    )
    return wanted


@_public
def sketch_error(sketch, X, kernel, k=None, seed=0, *, rows=512, centered=None):
    """Estimated errors of leading eigenpairs of a sketch, from a few rows of K (textbook theory).

    U contains orthonormal directions of the sketch, 2 k or more. Least squares at random rows S
    gives (K U)_S = U_S T + E. T has eigenvalues mu_i and eigenvectors y_i, and nu is half the last
    mu. Exact eigenvalues are about mu_i + (n / |S|) |E y_i|^2 / (mu_i - nu). Eigenvectors are about
    U y_i + E y_i / (mu_i - nu) (Stewart, Sun 1990). If values k and k + 1 nearly agree, angles are
    too large. Eigenvectors orthogonal to U are missed. `reliable_components` gives bounds.

    Args:
        sketch: Array or operator (approximating K), NystromMap, Eigen, Expansion or Subspace. The
            last three must have 2 k components: the first k mix most with the next k.
        X: (n, d) array. Points of the sketch.
        kernel: Kernel. Kernel of the exact matrix K.
        k: int or None. Components to judge. None means half of them, at most 10.
        seed: int from 0 to 2**64 - 1. Seed of the rows, and of a matrix's directions.
        rows: int, at least 1. Number of rows of K to evaluate. Each costs n kernel values.
        centered: bool or None. True if the exact matrix is H K H, as in `center`. An Eigen must then
            be centered; other operators and a NystromMap are centered here. None means True for a
            centered Expansion or Subspace, else False.
    Returns:
        SketchError: Eigenvalues minus exact eigenvalues, and angles to the exact span, descending.
    Example:
        >>> X = np.random.default_rng(0).standard_normal((400, 2))
        >>> K = gram(X, X, gaussian(2.0))
        >>> exact = block_lanczos(K, 2)
        >>> sketch = block_lanczos(quantize_gram(X, gaussian(2.0)), 8)
        >>> found = sketch_error(sketch, X, gaussian(2.0), 2, rows=400)
        >>> bool(np.allclose(sketch.values[:2] - exact.values, found.values, rtol=0.1))
        True
    """
    X, kernel = _points_and_kernel(X, kernel)
    n = len(X)
    rows = min(n, _checked_count("rows", rows))
    key = _checked_key(seed, _PROBES)
    if k is not None:
        k = _checked_count("k", k, n)
    sketch = _model_in(sketch)
    centered = _checked_centering("centered", centered, sketch)
    if type(sketch) in _models:
        sketch = _of_model("sketch", sketch, "sketch")(X, sketch)
    if not isinstance(sketch, Eigen):
        A = _as_operator("sketch", sketch, True)
        A = center(A) if centered else A
        pairs = min(_size(A), 2 * (k or 10) + 8)
        sketch = _lanczos(A, pairs, _checked_key(seed, _START), 1e-4, 1000)
    values = _checked_vector("sketch.values", sketch.values)
    V = _scaled_columns("sketch.vectors", sketch.vectors, n)
    m = min(values.size, V.shape[1], n - centered)
    count = np.count_nonzero(values[:m] > 1e-13 * values.max())
    k = k or min(count, m // 2, 10)
    _require(
        1 <= k <= count and (2 * k <= m or m == n - centered),
        f"sketch must have 2 k components, the first k of them nonzero, to judge k = {k or 1}; "
        f"got {m} components, the first {count} nonzero: use a smaller k or a larger sketch",
    )
    V = V[:, :count]
    U = np.linalg.qr(V - V.mean(0) * centered)[0]
    P = _about_mean(kernel, _in_double(X), centered)
    drawn = _draw_uniformly(n, rows, key)
    terms = np.column_stack([U[drawn], np.full((rows, int(centered)), n**-0.5)])  # fits the mean
    B = _gram_product(kernel, P[drawn], P, U)
    _require_finite("kernel values on X", B)
    # All singular values of `terms` are typically near sqrt(rows / n).
    T, _, rank, _ = np.linalg.lstsq(terms, B, rcond=0.2)
    columns = count + centered
    _require(rank == columns, f"rows must be larger to distinguish {count} directions, got {rows}")
    mu, Y = _small_eigen(T[:count])
    gaps = np.maximum(mu - 0.5 * max(mu[-1], 0.0), 1e-12 * _unit_of(mu))
    E = (B - terms @ T) @ Y / gaps
    E *= math.sqrt(n / (rows - columns * (1.0 - rows / n)))  # estimate for all rows
    exact_values = (mu + np.square(E).sum(0) * gaps)[:k]
    exact = np.vstack([Y, E])[:, :k]  # coordinates along U, and orthogonal to U
    angles = _scipy_linalg().subspace_angles(np.eye(len(exact), k), exact / _unit_of(exact, 0))
    return SketchError(values[:k] - exact_values, angles)


# --------------------------------------------------------------------------------------------------
# 16. Files and advice

# 16.1 Methods by name

_SAMPLERS = {  # (X, kernel, s, seed): Landmarks
    "uniform": lambda X, kernel, s, seed: uniform_landmarks(X.shape[0], s, seed),
    "rls": recursive_rls_practical,
    "rls-accelerated": recursive_rls_accelerated,
    "rpcholesky": rpcholesky,
}


class _Method(NamedTuple):
    function: object  # (X, kernel, s, seed): Landmarks, or K or a sketch of K
    size: float = None  # default of s, or None if the method does not use s


_METHODS = {
    "lanczos": _Method(lambda X, kernel, s, seed: gram(X, X, kernel)),
    "implicit": _Method(lambda X, kernel, s, seed: Implicit(X, kernel)),
    "sample": _Method(sample_gram, 4.0),
    "quantize": _Method(lambda X, kernel, s, seed: quantize_gram(X, kernel, seed)),
    "sample-quantize": _Method(sample_quantize_gram, 4.0),
    **{name: _Method(sampler, 500) for name, sampler in _SAMPLERS.items()},
}


# 16.2 Files


# Arrays that the command line writes next to a model.
_PREPARED = ("missing.median", "standardized.mean", "standardized.scale")


@_validated("an Advice")
class Advice(NamedTuple):  # must be defined before _TUPLES
    """Prediction for one method. size: s, number of landmarks or features, or 0. error: |K - A|_2 /
    |K|_2. works: False, with seconds NaN, if a limit is exceeded. reason: the limit."""

    method: str
    size: float
    bytes: int
    seconds: float
    error: float
    works: bool
    reason: str


@_validated("a Choice", factors=1)
class Choice(NamedTuple):
    """kernel and lam have the smallest error, 1 - R^2 by leave-one-out, up to 1e-6. errors: (f, l)
    relative sums of squared errors for `factors` (f,) times the bandwidth and `lams` (f, l)."""

    kernel: Kernel
    lam: float
    error: float
    errors: np.ndarray
    factors: np.ndarray
    lams: np.ndarray


_TUPLES = {cls.__name__: cls for cls in _TUPLE_CHECKS}


def _summary(made):
    """The repr of a result. An array of more than eight numbers prints as its shape and type."""
    shown = []
    for value in made:
        sparse = hasattr(type(value), "tocsr")
        large = sparse or getattr(value, "size", 0) > 8
        shown.append(
            "sparse " * sparse + (f"{value.shape} {value.dtype}" if large else repr(value))
        )
    return f"{type(made).__name__}({', '.join(map('{}={}'.format, made._fields, shown))})"


for _made in _TUPLE_CHECKS.keys() - {Kernel}:  # Kernel has its own repr
    _made.__repr__ = _summary


def _version(path):
    """Identity of the file at this path, which is unlike that of a file that replaces it."""
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(path)
        return found.st_ino, found.st_size, found.st_mtime_ns


def _write_whole(path, write, *versions):
    """Call write(file) on a new file NAME.*.part, and rename it to NAME when it is fully on disk.
    After an error, the old file is unchanged. If the process is killed, the .part file remains. If
    versions are given, the old file must have one of them. Returns the version of the new file."""
    place = pathlib.Path(path).resolve()
    part = place.with_name(f"{place.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            if place.exists():
                open(place, "r+b").close()  # fails if the file is write-protected
                shutil.copymode(place, part)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        written = _version(part)
        _require(
            not versions or _version(place) in versions,
            f"{path} was written by another process, and is kept: repeat the command",
        )
        os.replace(part, place)
        return written
    except OSError as error:
        if error.errno:
            error.filename = str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def _write_arrays(path, arrays, *versions):
    return _write_whole(path, lambda file: np.savez(file, **arrays), *versions)


def _arrays_in(path, mapped=None, kept=None):
    """{name: array} of a .npz file, or of a .npy file with the name "". Pickles are refused.
    mapped: mmap_mode of numpy.load. kept: names to read; all other arrays become None."""
    try:
        with (
            contextlib.nullcontext(path)
            if mapped or hasattr(path, "read")
            else open(path, "rb") as file
        ):
            held = np.load(file, mapped)
            if isinstance(held, np.ndarray):
                return {"": held}
            kept = kept or held.files
            _fits("it", sum(member.file_size for member in held.zip.infolist()))
            # If the shape of an array is damaged, numpy stops before the checksum.
            _require(held.zip.testzip() is None, "it is damaged")
            return {name: np.asarray(held[name]) if name in kept else None for name in held}
    except OSError:
        raise
    except Exception as error:  # damaged files cause many types of exceptions
        text = str(error) or type(error).__name__
        if "pickled" in text:  # NumPy says so of any other file
            text = "it is not a .npy or .npz file"
        raise ValueError(f"cannot read {path}: {text}") from None


# Kinds of dtypes in a file, by the annotation of the field.
_STORED = {
    np.ndarray: "biuf",
    tuple: "biuf",
    float: "biuf",
    int: "biu",
    bool: "b",
    str: "U",
    bytes: "S",
}


# In a file, these fields are names. In memory, those that are declared as int are numbers.
_NAMED = {
    ("Kernel", "kind"): _NAMES,
    ("FourierMap", "kind"): _MAP_NAMES,
    ("DSGDState", "task"): _TASKS,
}


def _is_stored(array, kind):
    return array.dtype.kind in _STORED.get(kind, "") and (
        array.ndim == 0 or kind in (np.ndarray, tuple)
    )


def _may_be_missing(cls, field):
    """Whether a file may lack this field: None is not written, and files may come without names."""
    return field == "names" or cls._field_defaults.get(field, "required") is None


_ROWS = ("data", "indices", "indptr", "shape")  # arrays of a csr_array in a file


def _as_arrays(model, inside=""):
    """{field: array} of a tuple. Its type is "class", or "kernel" if `inside` is "kernel."."""
    called = type(model).__name__
    if hasattr(type(model), "tocsr"):
        rows = _as_csr("model", model, _FLOATS)
        parts = {inside + part: np.asarray(getattr(rows, part)) for part in _ROWS}
        return {inside[:-1] or "class": "csr_array"} | parts
    hint = ": save each of its parts by itself" if type(model) is tuple else ""
    _require(called in _TUPLES, f"model must be a named tuple of kpcasketch, got {called}{hint}")
    _require(
        not getattr(model, "address", 0),
        "model must not have a kernel of custom(f): a file cannot store its code",
    )
    arrays = {inside[:-1] or "class": called}
    for field, kind in type(model).__annotations__.items():
        value = getattr(model, field)
        place = inside + field
        if value is None and _may_be_missing(type(model), field):
            continue
        if type(value).__name__ in _TUPLES or hasattr(type(value), "tocsr"):
            arrays |= _as_arrays(value, f"{place}.")
            continue
        named = _NAMED.get((called, field))
        if named and kind is int:
            kind = str
            value = named[value] if value in range(len(named)) else value
        arrays[place] = np.asarray(value)
        _require(
            _is_stored(arrays[place], kind),
            f"model.{place} must have the type that {called} declares",
        )
    return arrays


def _csr_of(parts, wrong):
    from scipy.sparse import csr_array  # the import takes 0.1 s

    kinds = [getattr(part, "dtype", np.dtype(str)).kind for part in parts]
    _require(kinds[0] == "f" and all(kind in "iu" for kind in kinds[1:]), wrong)
    *rows, shape = parts
    try:
        made = csr_array(tuple(rows), tuple(shape.tolist()))
        made.check_format()
    except (TypeError, ValueError):
        raise ValueError(wrong) from None
    return made


def _from_arrays(arrays, path, inside):
    """The tuple of a file. Its arrays are removed from `arrays`."""
    place = inside[:-1] or "class"
    wrong = f"{path} must be a file written by save, but {{}} has the wrong type"
    called = str(arrays.get(place))
    if called == "csr_array":
        parts = [arrays.pop(inside + part, None) for part in _ROWS]
        del arrays[place]
        return _csr_of(parts, wrong.format(place))
    cls = _TUPLES.get(called)
    _require(cls and place.count(".") < 99, wrong.format(place))
    fields = {}
    for field, kind in cls.__annotations__.items():
        place = inside + field
        if place not in arrays and _may_be_missing(cls, field):
            fields[field] = cls._field_defaults[field]
            continue
        value = arrays.get(place, np.array("none"))
        named = _NAMED.get((cls.__name__, field))
        if named:
            _require(str(value) in named, wrong.format(place))
            fields[field] = named.index(str(value)) if kind is int else str(value)
        elif value.dtype.kind == "U" and kind is not str:
            fields[field] = _from_arrays(arrays, path, f"{place}.")
        else:
            _require(_is_stored(value, kind), wrong.format(place))
            fields[field] = value.item() if value.ndim == 0 else value
        arrays.pop(place, None)
    del arrays[inside[:-1] or "class"]
    return cls(**fields)


def _preparation(names):
    """The columns, and the numbers that prepare points, by the field `names` of a model."""
    held = json.loads(names or "{}")
    return held if isinstance(held, dict) else {"columns": held}


def _names_of(prepared):
    """The field `names` of a model: its columns or, if its points are prepared, all of `prepared`."""
    simple = prepared.keys() <= {"columns"}
    return json.dumps(prepared.get("columns") if simple else prepared).encode() if prepared else b""


def _stored(model, inside=""):
    """Arrays of a file. Medians, means and scales are arrays of their own."""
    prepared = _preparation(getattr(model, "names", b""))
    further = {name: np.array(prepared.pop(name)) for name in _PREPARED if name in prepared}
    if further:
        model = model._replace(names=_names_of(prepared))
    return _as_arrays(model, inside) | further | {"version": np.array(__version__)}


# A file may also have these arrays, and "read FILE" for files of a stream.
_FURTHER = {*_PREPARED, "version", "embedding", "values", "known", "options", "id"}


def _made_from(arrays, path):
    """The tuple of a file, whose `names` tell how its points are prepared."""
    rest = arrays.copy()
    made = _from_arrays(rest, path, "" if "class" in arrays else "model.")
    version = str(arrays.get("version", __version__))
    major = __version__.partition(".")[0]
    _require(
        version.partition(".")[0] == major,
        f"{path} was written by kpcasketch {version}, and this is {__version__}, which reads {major}.x",
    )
    unknown = [name for name in rest if name not in _FURTHER and not name.startswith("read ")]
    _require(
        not unknown,
        f"{path} was written by kpcasketch {version}, and this is "
        f"{__version__}, which does not know {unknown}",
    )
    prepared = {name: arrays[name].tolist() for name in _PREPARED if name in arrays}
    if prepared and hasattr(made, "names"):
        made = made._replace(names=_names_of(_preparation(made.names) | prepared))
    return made


def _require_path(path, method, remedy):
    _require(
        isinstance(path, (str, bytes, os.PathLike)) or hasattr(path, method),
        f"path must be a str, a path or an open file; got {type(path).__name__}: {remedy}",
    )


@_public(sparse=True)
def save(path, model):
    """Write a result of this module to a .npz file, without pickles (textbook).

    Each field becomes an array, except for None. Fields of inner tuples have names like
    "kernel.scale". The array "class" is the name of the type, and "kernel.kind" the name of the kind
    of kernel. `names` has the columns of the points, if they are known. Every version 1.x can read a
    file of version 1.0.

    Args:
        path: str, path, or file open for writing. ".npz" is appended to a name without this suffix.
        model: named tuple, or fitted estimator, whose map_ or model_ is written. A classifier or a
            detector is more than its model: use joblib. The kernel must not be `custom`, which is code.
    Returns:
        None: The new file replaces an earlier file only when the new file is complete.
    Example:
        >>> import io
        >>> file = io.BytesIO()  # or a path, such as "model.npz"
        >>> save(file, kpca(np.array([[0.0], [2.0]]), linear(), 1))
        >>> np.load(io.BytesIO(file.getvalue()))["points"].tolist()
        [[0.0], [2.0]]
    """
    _require_path(path, "write", "call save(path, model)")
    _require(
        not (hasattr(model, "classes_") or hasattr(model, "residuals_")),
        f"model must not be a {type(model).__name__}, as a file would lose its classes or its "
        "threshold: call joblib.dump(model, path)",
    )
    arrays = _stored(_model_in(model))
    if hasattr(path, "write"):
        return np.savez(path, **arrays)
    _write_arrays(os.fsdecode(path).removesuffix(".npz") + ".npz", arrays)


@_public
def load(path):
    """Read a result from a file written by `save` or the command line, without pickles (textbook).

    A model from `embed` with --standardize, --missing median or --categorical takes only points from
    `prepared_points`. A file with arrays that this version does not know is refused.

    Args:
        path: str, path, or file open for reading. A .npz file.
    Returns:
        tuple: The result.
    Example:
        >>> import io
        >>> file = io.BytesIO()  # or a path, such as "model.npz"
        >>> save(file, gaussian(2.0))
        >>> load(io.BytesIO(file.getvalue()))
        Kernel(gaussian, sigma=2, gamma=0.125)
    """
    _require_path(path, "read", "load reads a file, save(path, model) writes one")
    return _made_from(_arrays_in(path), path)


# 16.3 A bandwidth, a sketch and its size


@_public(sparse=True)
def median_bandwidth(X, seed=0):
    """Median distance between points, the textbook choice of sigma for `gaussian`.

    Args:
        X: (n, d) array or scipy sparse matrix. Points, of which at most 1000 random ones are used.
        seed: int from 0 to 2**64 - 1. Seed of the draw.
    Returns:
        float: The median, or the median of positive distances if it is 0, or 1.0 if all are 0.
            Sparse points at distances below 1e-62 count as equal. Above 1e84, their distances are
            infinite.
    Example:
        >>> median_bandwidth(np.array([[0.0], [1.0], [5.0]]))  # of the distances 1, 4 and 5
        4.0
    """
    from scipy.spatial.distance import pdist  # the import takes 0.1 s

    X = _as_points("X", X)
    rows = _draw_uniformly(X.shape[0], min(X.shape[0], 1000), _checked_key(seed, _PAIRS))
    P = _in_double(_checked_points("X", X[rows], numbers=rows))
    if _is_sparse(P):
        unit = 1e-70
        K = _gram(cauchy(unit), P)  # K = 1 / (1 + |x - y|^2 / unit^2)
        distances = np.sqrt(1.0 / K[np.triu_indices(P.shape[0], 1)] - 1.0)
    else:
        unit = 2.0 ** np.frexp(np.abs(P).max())[1]  # avoids underflow
        distances = pdist(P / unit)
    if not distances.any():
        return 1.0
    return float(unit * (np.median(distances) or np.median(distances[distances > 0.0])))


def _grouped(P, T, weights, groups):
    """Distinct points of each group, in the order of the groups, with mean targets and weights; the
    group of each; and the sum of squares about these means."""
    rows, same = _distinct(P)
    if groups is not None:
        rows, same = np.unique(groups * P.shape[0] + same, return_index=True, return_inverse=True)[
            1:
        ]
        groups = groups[rows]
    sums = np.bincount(same, weights)
    means = np.column_stack([np.bincount(same, weights * t) for t in T.T])
    means /= np.maximum(sums, 1e-300)[:, None]
    return P[rows], means, sums, groups, (weights @ np.square(T - means[same])).sum()


def _without_group(Y, T, own, factors, fits, share):
    """Sums of a group's weighted squared errors, for each ridge, of models without the group. If
    rows are multiplied by sqrt(w_i), errors are (I - B D B^T)^-1 (T - B D fits), where B holds Y and
    ones for the intercept, and D = diag(factors, share). `share` is 0 if there is no intercept."""
    roots = np.sqrt(own)
    B = roots * np.column_stack([Y, np.ones(len(Y))])
    T = roots * T
    if len(B) > B.shape[1] + T.shape[1]:  # a rotation of the rows does not change the sums
        B, T = np.split(np.linalg.qr(np.hstack([B, T]), "r"), [B.shape[1]], 1)
    D = np.vstack([factors, np.full(factors.shape[1], share)])
    fits = np.vstack([fits, np.zeros(T.shape[1])])  # the mean of the targets is 0
    scaled = (B * D.T[:, None]).reshape(-1, B.shape[1])
    errors = T - _dense_product(scaled, fits).reshape(-1, *T.shape)
    H = _dense_product(scaled, B.T).reshape(-1, len(B), len(B))
    left = np.eye(len(B)) * (1.0 + 1e-15) - H  # not singular if a group has all the weight
    return np.square(np.linalg.solve(left, errors)).sum((1, 2))


def _left_out(P, T, weights, found, lams, at, groups, single):
    """Weighted sums of squared leave-one-out errors of `nystrom_ridge`, whose points are in float32
    if `single`, and ridges: `lams`, or if None, shares of the trace. For F^T W F = V D V^T, Y = F V
    and weight w_i, h_i = w_i (1 / sum_j w_j + sum_j y_ij^2 / (d_j + lam)), without the first term
    if there is no intercept."""
    squares, products, at = _weighted_equations(P, T, weights, found, at)
    intercept = at is not None
    if lams is None:
        least = -7.0 if single else -9.5
        lams = squares.trace() * 10.0 ** np.arange(least, 0.1, 0.5) + 1e-300
    values, V = _small_eigen(squares)
    factors = 1.0 / (values[:, None] + np.maximum(lams, _least_ridge(squares, single)))
    fits = _transposed_product(V, products)
    share = 1.0 / weights.sum() if intercept else 0.0
    errors = np.zeros(lams.size)
    slabs = _slabs(P.shape[0], _SLAB)
    if groups is not None:
        ends = np.cumsum(np.bincount(groups)).tolist()  # groups stand in order
        slabs = [slice(*pair) for pair in itertools.pairwise([0, *ends])]
    for rows in slabs:
        F = _map_features(P[rows], found)
        if intercept:
            F -= at
        Y = _dense_product(F, V)
        own = weights[rows, None]
        if groups is not None:
            errors += _without_group(Y, T[rows], own, factors, fits, share)
            continue
        left = 1.0 - own * (_dense_product(np.square(Y), factors) + share)
        left = np.maximum(left, 1e-16)  # a single distinct point has h = 1
        for t, fit in zip(T[rows].T, fits.T):
            residuals = t[:, None] - _dense_product(Y, factors * fit[:, None])
            errors += (own * np.square(residuals / left)).sum(0)
    return errors, lams


def _with_bandwidths(kernel, factors, constant):
    """The multiples of the bandwidth to try, and kernels with these bandwidths."""
    if factors is None:
        none = _sigma_of(kernel) is None or constant
        factors = np.ones(1) if none else 2.0 ** np.arange(-4, 6)
    factors = _checked_vector("factors", factors)
    _checked_real("factors", factors.min(), 1e-3, 1e3)
    gammas = kernel.gamma / factors ** _KINDS[kernel.kind].sigma_power
    return factors, [kernel._replace(gamma=gamma) for gamma in gammas.tolist()]


@_public(sparse=True)
def choose(
    X,
    Y,
    landmarks,
    kernel,
    k=10,
    *,
    lam=None,
    factors=None,
    intercept=True,
    weights=None,
    groups=None,
):
    """Bandwidth and ridge of `nystrom_ridge` with the smallest leave-one-out error (textbook).

    The error at point i of a model of all other points is e_i / (1 - h_i), where e_i is the
    residual of the model of all points, and h_i = dy^_i / dy_i is the leverage. Equal points are
    left out together. Costs O(n s (d + s)) time per bandwidth. For given landmarks, this is exact,
    except for a linear kernel with an intercept, dense points and fewer landmarks than columns: the
    mean of X is subtracted, and moves if a point is left out. (Measured for 4 landmarks and 8
    columns: the median change is 2 % for n = 40, .08 % for n = 200.)

    This estimates the error at new points if points are independent. `error` is the least of all
    pairs that were tried, so it is slightly optimistic. If several points belong to one patient,
    session or run of a time series, they help to predict each other. Then `groups` leaves out one
    group at a time, with errors (I - H)^-1 e for H_ij = dy^_i / dy_j. A group of m points costs
    O(min(m, s)^2 (m + s)) more time per ridge.

    If Y is None, a rule chooses the bandwidth with which ridge regression best predicts the points
    from k components of kernel PCA (Alam, Fukumizu 2014). If k >= d, it says little. Sparse points,
    and those of more than 32 coordinates, are replaced by 32 random projections as targets.

    Args:
        X: (n, d) array or scipy sparse matrix. Points.
        Y: (n,) or (n, t) array, or None. Targets. Squared errors of all targets are added.
        landmarks: Landmarks, ReducedSet, CertifiedNystrom, row numbers or points. For `kernel_ridge`,
            pass np.arange(n), if n is at most about 1000.
        kernel: Kernel. Positive semidefinite: gaussian(median_bandwidth(X)), or one chosen before.
        k: int, at least 1. Number of components. Ignored unless Y is None.
        lam: float, or None. The only ridge to try. None tries 10^-9.5 (float32: 10^-7), ..., 1 times
            tr K~, in steps of 10^.5.
        factors: (f,) array, or None. Multiples of the bandwidth. None: 1/16, ..., 32 (no sigma: 1).
        intercept, weights: See `nystrom_ridge`.
        groups: (n,) array, or None. Label of each point's group, a number or string. At least two
            groups need points of positive weight. None means that each distinct point is a group.
    Returns:
        Choice: kernel and lam for ridge regression, and error = 1 - R^2. Without Y, only the kernel.
    Example:
        >>> X = np.linspace(0.0, 9.0, 200).reshape(-1, 1)
        >>> choose(X, np.sin(3.0 * X), np.arange(0, 200, 4), gaussian(4.0)).kernel
        Kernel(gaussian, sigma=0.5, gamma=2)
    """
    X, kernel = _points_and_kernel(X, kernel)
    Z = _checked_landmarks(X, landmarks)
    k = min(_checked_count("k", k), Z.shape[0])
    intercept = _as_flag("intercept", intercept)
    weights = _as_weights(weights, X)
    if groups is not None:
        groups = _as_groups(groups, X.shape[0])
        several = np.ptp(groups[weights > 0.0]) > 0
        _require(several, "groups must have at least two groups of positive weight, got one")
    lams = None if lam is None else np.array([_as_ridge(lam)])
    P = _in_double(X)
    T = P if Y is None else _checked_targets(Y, P.shape[0])
    if Y is None and (_is_sparse(P) or P.shape[1] > 32):
        T = rademacher_projection(P, 32)  # random signs preserve distances (AMS section 5)
    gaps = _deviations(T, weights)
    unit = _unit_of(gaps)
    size = math.sqrt((weights @ np.square(gaps / unit)).sum())
    T = (gaps if intercept or Y is None else T) / unit / (size or 1.0)
    factors, kernels = _with_bandwidths(kernel, factors, size == 0.0)
    P, T, weights, groups, within = _grouped(P, T, weights, groups)
    found = []
    for by in kernels:
        points = P
        centers = Z
        if Y is None:
            model = nystrom_kpca(X, Z, by, k, centered=False)
            points = features(P, model)
            centers = features(Z, model)
            by = gaussian(median_bandwidth(points))
        centers = _in_double(centers)  # as in `nystrom_ridge`
        points, model, _, at = _about_landmarks(points, centers, by, intercept, weights)
        single = X.dtype.itemsize == 4
        found.append(_left_out(points, T, weights, model, lams, at, groups, single))
    errors, lams = np.stack(found, 1)
    errors += within
    # If errors differ by rounding, take the largest ridge.
    best = np.argwhere(errors <= 1.000001 * errors.min())
    i, j = best[best[:, 1].argmax()]
    error = float(errors[i, j])
    if not 0.0 < error < 0.98:
        told = (
            "components predict X no better than a constant"
            if Y is None
            else "a constant predicts Y as well"
        )
        warnings.warn(
            f"choose: {told} (relative error {error:.3g})",
            stacklevel=_USERS_LINE,
        )
    elif len(factors) > 1 and i in (0, len(factors) - 1):
        warnings.warn(
            "choose: the bandwidth is at an end of the grid: a better one may be beyond it, or there "
            "may be too few landmarks for a smaller one",
            stacklevel=_USERS_LINE,
        )
    return Choice(kernels[i], float(lams[i, j]), error, errors, factors, lams)


_PILOT_POINTS = 4096
# Nanoseconds of a thread per entry of a one-bit matrix and vector. Measured: 34 ms on two threads for
# 16384 rows and 16 vectors.
_BIT = 0.02
_LADDER = [16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724, 1024]  # sizes to try


def _least_size(errors, wanted, ladder):
    """(size, worst error) of the first size for which six draws meet `wanted`, or the last size."""
    for size in ladder:  # three draws often met `wanted` by luck
        worst = 0.0
        for draw in range(6):
            worst = max(worst, errors(size, draw))
            if worst > wanted:
                break
        else:
            break
    return size, worst


def _predicted_seconds(method, kernel, n, d, k, size, evaluations, products):
    """Seconds of one thread for a sketch and its k eigenpairs, from counts of operations: measured
    seconds would change the order of methods from run to run. `evaluations`: kernel values of a
    sampler. products: with A, of a search."""
    block = 16 * min(_ceil_div(k, 16), 4)
    value = _CUSTOM_VALUE if kernel.kind == _CUSTOM else 1.0 + _MULTIPLY_ADD * d
    vector = 2.0 * size * _MULTIPLY_ADD  # per row of A and vector in a product
    if method in ("lanczos", "implicit"):
        work = n * n * value * (products if method == "implicit" else 0.5)
        vector = n * _MULTIPLY_ADD
    elif method == "quantize":
        work = 0.5 * n * n * value
        vector = n * _BIT
    elif method == "skpca":
        work = n * size * (1.5 + _MULTIPLY_ADD * d)
    else:  # each value passes through a triangular matrix, once to choose and once for the factor
        work = (evaluations + n * size) * (value + _MULTIPLY_ADD * (0.5 * size + 32.0))
    basis = 4.0 * (2 * k + 8 * block) * _MULTIPLY_ADD
    return 1e-9 * (work + n * block * products * (vector + basis))


def _pilot_sketch(method, P, kernel, size, draw):
    """A sketch of the Gram matrix of P, and the number of kernel values that a sampler computed."""
    if method == "skpca":
        feature_map = fourier_features_map(kernel, P.shape[1], size, draw)
        return LowRank(features(P, feature_map)), 0
    made = _METHODS[method].function(P, kernel, size, draw)
    if not isinstance(made, Landmarks):
        return made, 0
    return LowRank(nystrom(P, made, kernel)), made.evaluations


@_public
def advise(X, kernel, error, k=10, seed=0, *, memory=None):
    """Predicted size, cost and error of sketches of the Gram matrix, best first.

    A pilot on at most 4096 points is scaled to n: |K|_2 grows like n, and independent noise like
    sqrt(n) (AMS theorem 1). Up to 1024 landmarks (skpca: features) are tried. Their error is
    assumed constant. Errors above 80 % of `error` are rejected. Small clusters may be missed.

    Args:
        X, kernel: See `rpcholesky`.
        error: float above 0 and at most 1. Largest |K - A|_2 / |K|_2 of a sketch A.
        k: int from 1 to n. Number of eigenpairs. Their time is part of `seconds`.
        seed: int from 0 to 2**64 - 1. Seed of the pilot.
        memory: float. Largest size of a sketch in bytes. None means half of the machine's memory.
    Returns:
        list: One Advice per method. Methods that work come first, by the time of one thread that
            counts of operations predict (below 1 s: by bytes).
    Example:
        >>> X = np.linspace(0.0, 1.0, 300)[:, None]
        >>> found = {row.method: row for row in advise(X, gaussian(1.0), 0.1, 2)}
        >>> found["rpcholesky"].works, found["rpcholesky"].size, found["rpcholesky"].bytes
        (True, 16, 38400)
    """
    X, kernel = _points_and_kernel(X, kernel)
    k = _checked_count("k", k, len(X))
    wanted = 0.8 * _checked_real("error", error, 1e-300, 1.0)  # a margin for errors of the pilot
    memory = _checked_real("memory", _PHYSICAL_MEMORY / 2 if memory is None else memory, 1.0)
    n = len(X)
    few = min(n, _PILOT_POINTS)
    P = X[_draw_uniformly(n, few, _checked_key(seed, _PROBES))]
    K = gram(P, P, kernel)
    norm = spectral_norm(K, seed)
    _require(norm > 0.0, "kernel must not be 0 for all points of X")
    growth = n / few

    def error_of(method, size, draw):
        A, _ = _pilot_sketch(method, P, kernel, size, draw)
        return spectral_error(K, A, seed, tol=0.05) / norm

    matrices = {
        "lanczos": n * n * X.itemsize,
        "implicit": X.nbytes,
        "quantize": 4 * n * math.ceil(n / 32),
    }
    ladder = [size for size in _LADDER if k <= size <= few // 4] or [few]
    rows = []
    methods = [*matrices, *_SAMPLERS]
    if _KINDS[kernel.kind].law:
        methods.append("skpca")
    for method in methods:
        # Errors of matrices fall like 1 / sqrt(n).
        fall = math.sqrt(growth) if method in matrices else 1.0
        size, error = _least_size(
            functools.partial(error_of, method),
            wanted * fall,
            [0] if method in matrices else ladder,
        )
        error /= fall
        held = matrices.get(method, n * size * X.itemsize)
        reason = "largest error of six draws in the pilot, scaled to n"
        seconds = math.nan
        if error > wanted:
            reason = f"error above 80 % of the requested error; {reason}"
        elif held > memory:
            reason = f"larger than the allowed memory of {_human(memory)}; {reason}"
        else:
            # A small array would be searched without blocks.
            blocked = "implicit" if method == "lanczos" else method
            A, computed = _pilot_sketch(blocked, P, kernel, size, 0)
            products = block_lanczos(A, min(k, few), seed).iterations
            computed *= growth
            seconds = _predicted_seconds(method, kernel, n, P.shape[1], k, size, computed, products)
        rows.append(Advice(method, size, held, seconds, error, seconds > 0.0, reason))

    return sorted(rows, key=lambda row: (not row.works, np.fmax(row.seconds, 1.0), row.bytes))


# 16.4 Estimators for scikit-learn


def _library(module, package, user):
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(f'{user} needs {package}: python -m pip install "{package}"') from error


def _kernel_of_estimator(own, X, seed):
    if own.kernel is not None:
        _require(
            own.sigma is None and own.gamma is None,
            "sigma and gamma must be None if kernel is given",
        )
        return _checked_kernel("kernel", own.kernel)
    chosen_later = own.sigma == "auto" and hasattr(own, "sampler")  # by `choose`
    if own.gamma is not None or not (own.sigma is None or chosen_later):
        return gaussian(own.sigma, gamma=own.gamma)
    return gaussian(median_bandwidth(X, seed))


def _require_no_dates(name, value):
    """Refuse dates and durations, which scikit-learn converts to numbers, in any array or list."""
    _require_numeric(name, value)
    array = np.asarray(value) if type(value) in (list, tuple) else value
    if isinstance(array, np.ndarray):
        kinds = {*map(type, array.flat)} if array.dtype == object else {array.dtype.type}
        dated = kinds & {np.datetime64, np.timedelta64}
        _require(not dated, f"{name} must be an array of real numbers, got dates or durations")


def _without_objects(y, text):
    """Targets y, with objects replaced by numbers or, if `text` is True, unchanged text."""
    _require_unmasked("y", y)
    labels = np.asarray(y)
    if labels.dtype.kind != "O" or labels.ndim == 0:
        return y
    kinds = {*map(type, labels.flat)}
    if all(issubclass(kind, (int, float, np.number, np.bool_)) for kind in kinds):
        return np.array(labels.tolist())
    found = ", ".join(sorted(kind.__name__ for kind in kinds))
    wanted = "numbers or text" if text else "numbers"
    _require(
        text and all(issubclass(kind, str) for kind in kinds),
        f"y must hold {wanted}, without None and NA; got {found}",
    )
    return y


def _require_few_classes(name, classes, n):
    """Refuse labels that are hardly ever equal, such as names of points, and too many indicators."""
    most = max(32, n // 2)
    _require(
        0 < classes <= most, f"{name} must have 1 to {most} classes for {n} points, got {classes}"
    )
    _fits(name, 16.0 * n * classes)  # indicators and a copy


def _as_targets(y):
    """Targets for `choose`. Text, categories and integers of at most 32 values become indicators."""
    y = _without_objects(y, True)
    labels = np.asarray(y)
    if labels.ndim != 1:
        return y
    kind = labels.dtype.kind
    _require(kind in "biufUS" or kind == "O", f"y must hold numbers or text, got {labels.dtype}")
    kinds, which = np.unique(labels, return_inverse=True)
    categories = str(getattr(y, "dtype", "")) == "category"
    if not categories and (kind == "f" or kind in "iu" and len(kinds) > 32):
        return labels
    _require(kind != "f" or _all_below(labels), "y must have no missing categories")
    _require_few_classes("y", len(kinds), len(labels))
    return np.eye(len(kinds))[which]


def _given_landmarks(own, X):
    """The landmarks of an estimator as points, or None if they must be chosen, and their number."""
    if not hasattr(_scalar(own.landmarks), "__len__"):
        return None, _checked_count("landmarks", own.landmarks)
    if hasattr(own, "feature_names_in_"):
        names = json.dumps([*own.feature_names_in_])
        _require_same_columns("X", names, "landmarks", _names(own.landmarks))
    Z = _checked_landmarks(X, own.landmarks)
    return Z, Z.shape[0]


def _fit_landmarks(own, X, y, seed, centered, weights=None):
    """Set kernel_ and landmarks_ of an estimator. Returns the landmarks as points, lam, and the
    factor of X if the sampler computed it. Equal points count once, as weights do. If `centered` is
    True, landmarks for a linear kernel do not depend on the mean of X."""
    Z, many = _given_landmarks(own, X)
    lam = own.lam
    if lam not in (None, "auto"):
        lam = _as_ridge(lam)
    known = ("auto", *_SAMPLERS)
    sampler = own.sampler
    _require(sampler in known, f"sampler must be one of {', '.join(known)}, got {sampler!r}")
    rows = np.flatnonzero(_as_weights(weights, X, "sample_weight"))
    rows = rows[np.sort(_distinct(X[rows])[0])]
    P = X[rows]
    F = None
    if sampler == "auto":
        sampler = "rpcholesky" if P.shape[0] * many < 10**8 else "rls-accelerated"
    kernel = _kernel_of_estimator(own, P, seed)
    if "auto" in (own.sigma, lam):
        some = P[uniform_landmarks(P.shape[0], many, seed).indices] if Z is None else Z
        kernel, lam, *_ = choose(
            X,
            y,
            some,
            kernel,
            own.n_components if isinstance(own.n_components, (int, np.integer)) else 10,
            lam=None if lam == "auto" else lam,
            factors=None if own.sigma == "auto" else [1.0],
            weights=weights,
        )
    if Z is not None:
        own.landmarks_ = own.landmarks
    else:
        P = _about_mean(kernel, P, centered)
        if sampler == "rpcholesky":
            chosen, F = _landmarks_by_pivots(P, kernel, many, 64, 0.0, seed)
        else:
            chosen = _SAMPLERS[sampler](P, kernel, many, seed)
        own.landmarks_ = rows[chosen.indices]
        Z = X[own.landmarks_]
    own.kernel_ = kernel
    return Z, lam, F if P.shape[0] == X.shape[0] else None


_declared = functools.partial(dataclasses.dataclass, eq=False, repr=False)


def _estimator(user):
    """scikit-learn's base classes, the base of our estimators, and that of ridge regression."""
    base = _library("sklearn.base", "scikit-learn>=1.6", user)
    validation = importlib.import_module("sklearn.utils.validation")
    from scipy.sparse import csr_array  # scikit-learn has imported it

    @_declared
    class Estimator(base.BaseEstimator):
        _: dataclasses.KW_ONLY
        kernel: Kernel = None
        sigma: float = None
        gamma: float = None
        random_state: int = 0
        n_components = None  # not options of all estimators
        lam = None
        _require_fit = validation.check_is_fitted

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.input_tags.sparse = hasattr(self, "sampler")
            return tags

        @contextlib.contextmanager
        def _refit(self):
            """Forget an earlier fit. If an error ends the new one, the earlier one remains."""
            before = vars(self)
            self.__dict__ = {name: before[name] for name in before if not name.endswith("_")}
            try:
                yield
            except BaseException:
                self.__dict__ = before
                raise

        def _seed(self):
            seed = self.random_state
            if not isinstance(seed, (int, np.integer)):
                seed = validation.check_random_state(seed).randint(_MOST)
            return _as_seed("random_state", seed)

        def _points(self, *data, reset=False, **checks):
            if not reset:
                self._require_fit()
            _require_no_dates("X", data[0])
            checks = {"ensure_min_samples": 2 if reset else 1} | checks
            found = validation.validate_data(
                self,
                *data,
                reset=reset,
                accept_sparse=hasattr(self, "sampler"),
                dtype=_FLOATS,
                order="C",
                ensure_all_finite=not _is_sparse(data[0]),  # `_as_points` names the row
                **checks,
            )
            if reset:
                return found
            if _is_sparse(_model_in(self)):
                return csr_array(found)
            if _is_sparse(found):
                _fits("X", 8.0 * math.prod(found.shape))
                return found.toarray()
            return found

        def _first_block(self, X):
            """The first points of a stream. One point is enough if it does not set sigma."""
            given = not (self.kernel is None and self.sigma is None and self.gamma is None)
            return self._points(X, reset=True, ensure_min_samples=1 if given else 2)

        def _get_params_html(self, *arguments, **by_name):
            """Show sparse landmarks as text: scikit-learn asks whether they equal the default."""
            landmarks = getattr(self, "landmarks", None)
            if _is_sparse(landmarks):
                shown = base.clone(self).set_params(landmarks=repr(landmarks))
                return shown._get_params_html(*arguments, **by_name)
            return super()._get_params_html(*arguments, **by_name)

    @_declared
    class Ridge(Estimator):
        landmarks: int = 300
        lam: float = 1.0
        _: dataclasses.KW_ONLY
        sampler: str = "auto"

        def _learn(self, X, T, weights):
            """Set lam_ and model_ by `nystrom_ridge` of the targets T with an intercept."""
            X = _as_points("X", X)
            # The intercept removes the mean.
            _, self.lam_, F = _fit_landmarks(self, X, T, self._seed(), True, weights)
            F = None if _is_linear(self.kernel_) else F
            self.model_ = _ridge_over(
                X, T, self.landmarks_, self.kernel_, self.lam_, True, weights, F
            )
            return self

        def _predictions(self, X):
            return features(self._points(X), self.model_)

    return base, Estimator, Ridge


def _learn_features(own, X, y):
    """Fit LandmarkFeatures. Returns the features of X, or None if no sampler computed them."""
    with own._refit():
        X = _as_points("X", own._points(X, reset=True))
        k = own.n_components
        centered = _as_flag("centered", own.centered) and k is not None
        share = isinstance(_scalar(k), float)
        if share:
            _checked_share("n_components", k)
        elif k is not None:
            _checked_count("n_components", k, _given_landmarks(own, X)[1])
        seed = own._seed()
        targets = _as_targets(y) if own.sigma == "auto" else None
        Z, _, F = _fit_landmarks(own, X, targets, seed, centered)
        own._n_features_out = Z.shape[0]
        if k is None:
            if F is None:
                own.map_ = nystrom_map(Z, Z, own.kernel_)
            else:
                own.map_ = _map_of_factor(F, own.landmarks_, Z, own.kernel_)
            return F
        del F  # its memory
        most = Z.shape[0] if share else min(k, Z.shape[0])
        model = nystrom_kpca(X, Z, own.kernel_, most, seed, centered=centered)
        some = X[uniform_landmarks(X.shape[0], 2000, seed).indices]
        varied = len(_distinct(some)[0]) > 1
        shares = explained_variance_ratio(some, model) if varied else np.zeros(most)
        if share:
            k = np.searchsorted(np.cumsum(shares), k) + 1
            coef = np.ascontiguousarray(model.coef[:, :k])
            offset = None if model.offset is None else model.offset[:k]
            model = model._replace(coef=coef, values=model.values[:k], offset=offset)
        own.map_ = model
        own.explained_variance_ratio_ = shares[:k]
        own._n_features_out = len(model.values)


def _define_features(base, Estimator, _):
    global LandmarkFeatures  # for error messages and pickle

    @_declared
    class LandmarkFeatures(base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin, Estimator):
        """Nystrom features for a linear model, or kernel principal components (RLS section 2.1).

        `fit` sets kernel_, landmarks_ (row numbers, or what was given), n_features_in_ and map_
        (NystromMap or Expansion), and with n_components, explained_variance_ratio_ (of at most 2000
        random points). At most one of kernel, sigma and gamma may be given. Points may be sparse.

        Args:
            landmarks: int or array. Number of landmarks (n_components of Nystroem). Equal points
                count once, and fewer points are all used. An array holds row numbers or points.
            n_components: int or float. Components of `nystrom_kpca`. If below 1, the share of the
                variance to explain, or all if they explain less. None means features of `nystrom_map`.
            kernel: Kernel. None means a Gaussian kernel.
            sigma: float. Bandwidth of the Gaussian. Default: `median_bandwidth`. "auto" is by
                `choose` with y: text, categories and integers of at most 32 values are classes.
            gamma: float. 1 / (2 sigma^2), an alternative to sigma.
            sampler: str. "rpcholesky", "rls", "rls-accelerated" or "uniform". "auto" is
                "rpcholesky" if n * landmarks < 10^8, and "rls-accelerated" otherwise.
            random_state: int, RandomState or None. Seed, as in scikit-learn.
            centered: bool. Whether components are of points minus their mean in feature space, as in
                KernelPCA. Features of `nystrom_map`, without n_components, are not centered.
        Example:
            >>> X = np.linspace(0.0, 9.0, 200)[:, None]  # doctest: +SKIP
            >>> LandmarkFeatures(50, 3, sigma=1.0).fit_transform(X).shape  # doctest: +SKIP
            (200, 3)
        """

        landmarks: int = 300
        n_components: int = None
        _: dataclasses.KW_ONLY
        sampler: str = "auto"
        centered: bool = True

        @_public(sparse=True)
        def fit(self, X, y=None):
            """Choose the kernel and landmarks for X, (n, d). Only sigma="auto" uses targets y."""
            _learn_features(self, X, y)
            return self

        @_public(sparse=True)
        def fit_transform(self, X, y=None):
            """Fit, and return features of X. "rpcholesky" has them at hand."""
            F = _learn_features(self, X, y)
            return self.transform(X) if F is None else F

        @_public(sparse=True)
        def transform(self, X):
            """Features of X, (n, d), as an array with a row for each point."""
            return features(self._points(X), self.map_)

        @_public(sparse=True)
        def inverse_transform(self, X, lam=0.0):
            """Points with features X, (n, k), by `kernel_pca_preimage`. Needs n_components. lam is
            its ridge."""
            self._require_fit()
            _require(
                isinstance(self.map_, Expansion),
                "n_components must be a number for inverse_transform, got None",
            )
            _require_no_dates("X", X)
            return kernel_pca_preimage(np.asarray(X), self.map_, lam=lam)


def _define_ridge(base, _, Ridge):
    global LandmarkRidge

    @_declared
    class LandmarkRidge(base.MultiOutputMixin, base.RegressorMixin, Ridge):
        """Kernel ridge regression over landmarks, with an intercept, by `nystrom_ridge` (RLS C.1).

        `fit` sets kernel_, landmarks_, lam_, n_features_in_ and model_ (Expansion). It does not
        store features of X. sigma="auto" and lam="auto" are chosen by `choose`. Points may be sparse.

        Args:
            landmarks: int or array. Number of landmarks, or landmarks. See `LandmarkFeatures`.
            lam: float or "auto". Positive ridge, in the units of the eigenvalues of K.
            kernel, sigma, gamma, sampler, random_state: See `LandmarkFeatures`.
        Example:
            >>> X = np.linspace(0.0, 9.0, 200)[:, None]  # doctest: +SKIP
            >>> model = LandmarkRidge(50, 1e-6, sigma=1.0).fit(X, np.sin(X[:, 0]))  # doctest: +SKIP
            >>> model.predict([[np.pi / 2.0]]).round(3).tolist()  # doctest: +SKIP
            [1.0]
        """

        @_public(sparse=True)
        def fit(self, X, y, sample_weight=None):
            """Fit X, (n, d), and targets y, (n,) or (n, t). A weight acts like a number of equal
            points: landmarks and, if it is chosen, sigma depend only on the distinct points."""
            with self._refit():
                y = _without_objects(y, False)
                _require_numeric("y", y)
                X, y = self._points(X, y, reset=True, multi_output=True, y_numeric=True)
                return self._learn(X, y, sample_weight)

        @_public(sparse=True)
        def predict(self, X):
            """Predictions for X, (n, d), with the shape of y."""
            return self._predictions(X)


def _define_classifier(base, _, Ridge):
    global LandmarkClassifier

    @_declared
    class LandmarkClassifier(base.ClassifierMixin, Ridge):
        """Classifier by kernel ridge regression over landmarks, on targets 1 and -1 (RLS C.1).

        `fit` sets classes_, kernel_, landmarks_, lam_, n_features_in_ and model_ (Expansion).
        sigma="auto" and lam="auto" minimize the squared leave-one-out error of the targets, by
        `choose`, which says for which landmarks it is exact. Unlike the accuracy, it is not
        constant between nearby ridges. Points may be sparse.

        Args:
            landmarks: int or array. Number of landmarks, or landmarks. See `LandmarkFeatures`.
            lam: float or "auto". Positive ridge, in the units of the eigenvalues of K.
            kernel, sigma, gamma, sampler, random_state: See `LandmarkFeatures`.
            class_weight: dict, "balanced" or None. Weights of the classes, as in scikit-learn. With
                "balanced", the sums of the weights of all classes are equal.
        Example:
            >>> X = np.linspace(0.0, 9.0, 200)[:, None]  # doctest: +SKIP
            >>> y = np.where(np.sin(X[:, 0]) > 0.0, "above", "below")  # doctest: +SKIP
            >>> LandmarkClassifier(50, 1e-3, sigma=1.0).fit(X, y).predict([[2.0], [5.0]]).tolist()  # doctest: +SKIP
            ['above', 'below']
        """

        _: dataclasses.KW_ONLY
        class_weight: object = None

        @_public(sparse=True)
        def fit(self, X, y, sample_weight=None):
            """Fit X, (n, d), and classes y, (n,). A weight acts like a number of equal points."""
            with self._refit():
                X, y = self._points(X, _without_objects(y, True), reset=True)
                importlib.import_module("sklearn.utils.multiclass").check_classification_targets(y)
                weights = _as_weights(sample_weight, y, "sample_weight")
                self.classes_ = np.unique(y[weights > 0.0])
                many = len(self.classes_)
                _require(many > 1, "y must have at least two classes, got one class")
                _require_few_classes("y", many, len(y))
                # A row without weight may have another class. It does not matter which.
                which = np.searchsorted(self.classes_, y).clip(max=many - 1)
                T = 2.0 * np.eye(many)[which] - 1.0
                if self.class_weight == "balanced":  # scikit-learn would not count weights
                    sums = np.bincount(which, weights)
                    weights = weights * (weights.sum() / (many * sums))[which]
                else:
                    by_class = importlib.import_module("sklearn.utils.class_weight")
                    weights = weights * by_class.compute_sample_weight(self.class_weight, y)
                return self._learn(X, T[:, 1] if many == 2 else T, weights)

        @_public(sparse=True)
        def decision_function(self, X):
            """Predicted targets for X, (n, d): (n, classes), or (n,) of the second of two."""
            return self._predictions(X)

        @_public(sparse=True)
        def predict(self, X):
            """Classes of X, (n, d): those with the largest predicted target."""
            scores = self._predictions(X)
            which = scores.argmax(1) if scores.ndim == 2 else (scores > 0.0).astype(int)
            return self.classes_[which]


def _with_signs_of(earlier, basis):
    """Columns of which none points away from the earlier column in its place."""
    k = min(earlier.shape[1], basis.shape[1])
    signs = np.ones(basis.shape[1])
    signs[:k] = np.where((earlier[:, :k] * basis[:, :k]).sum(0) < 0.0, -1.0, 1.0)
    return basis * signs


def _define_streaming(base, Estimator, _):
    global StreamingKernelPCA

    @_declared
    class StreamingKernelPCA(
        base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin, Estimator
    ):
        """Kernel PCA of a stream, by random features and frequent directions (SKPCA algorithm 1).

        `fit` and `partial_fit` set kernel_, n_features_in_, map_ (Subspace) and
        explained_variance_ratio_: the eigenvalues of the sketch, divided by the variance of the
        random features. The sketch makes eigenvalues smaller, by at most map_.shrunk.

        Args:
            n_components: int. Number of components, at most `ell`.
            m: int. Number of random features. If it is odd, shares of variance err by about 1 / m.
            ell: int. Number of rows of the sketch.
            kernel: Kernel, as for `skpca`. None means a Gaussian kernel.
            sigma, gamma, random_state: See `LandmarkFeatures`, but sigma is a number. If kernel,
                sigma and gamma are None, the first block sets sigma, and needs two points.
            centered: bool. Whether to subtract the mean in feature space, as in KernelPCA.
            half_life: float or None. Number of points after which a point has half of its weight.
        Example:
            >>> X = np.linspace(0.0, 9.0, 200)[:, None]  # doctest: +SKIP
            >>> model = StreamingKernelPCA(3, 100, 20, sigma=1.0)  # doctest: +SKIP
            >>> model.partial_fit(X[:100]).partial_fit(X[100:]).transform(X[:5]).shape  # doctest: +SKIP
            (5, 3)
        """

        n_components: int = 10
        m: int = 2000
        ell: int = 50
        _: dataclasses.KW_ONLY
        centered: bool = True
        half_life: float = None

        @_public
        def fit(self, X, y=None):
            """Fit components of X, (n, d), and forget earlier points. Ignores y."""
            with self._refit():
                return self._learn(self._points(X, reset=True), None)

        @_public
        def partial_fit(self, X, y=None):
            """Add the points X, (n, d), to the stream. No component changes its sign: its
            product with the earlier one is not negative. Ignores y."""
            if not hasattr(self, "map_"):
                with self._refit():
                    return self._learn(self._first_block(X), None)
            return self._learn(self._points(X), self._stream)

        def _learn(self, X, state):
            if state is None:
                seed = self._seed()
                self.kernel_ = _kernel_of_estimator(self, X, seed)
                radial = _KINDS[self.kernel_.kind].base == _DISTANCES
                make = orthogonal_features_map if radial else fourier_features_map
                made = make(self.kernel_, X.shape[1], self.m, seed)
                state = skpca_start(
                    made, self.ell, centered=self.centered, half_life=self.half_life
                )
            k = _checked_count("n_components", self.n_components, self.ell)
            state = update(state, X)
            found = finish(state, k)
            weight = _total_weight(state.half_life, state.count)
            square = 0.0 if found.means is None else found.means @ found.means
            variance = weight * (self.kernel_.scale - square)
            self.explained_variance_ratio_ = found.values / max(variance, 1e-300)
            if hasattr(self, "map_"):
                found = found._replace(basis=_with_signs_of(self.map_.basis, found.basis))
            self.map_ = found
            self._stream = state
            self._n_features_out = k
            return self

        @_public
        def transform(self, X):
            """Components of X, (n, d), as an array with a row for each point."""
            return features(self._points(X), self.map_)


def _spans_all_features(model):
    """Whether landmarks span all monomials of a polynomial kernel: then all residuals are 0."""
    kernel = model.kernel
    if kernel.kind != _POLYNOMIAL:
        return False
    degree = int(kernel.shape)
    variables = model.points.shape[1]
    if kernel.offset > 0.0:
        variables += 1
    return model.rank >= math.comb(variables + degree - 1, degree)


def _define_detector(base, Estimator, _):
    global NoveltyDetector

    @_declared
    class NoveltyDetector(base.OutlierMixin, Estimator):
        """Novelty by `residual` over landmarks of a stream, with a calibrated threshold (RLS 2.1).

        A stream (`rls_start`) chooses landmarks. Residuals of points that it has not seen give the
        threshold:
        the a-th largest of the latest m <= 2000, a = floor(false_alarms (m + 1)), at least 1. If a
        new point is exchangeable with the points of `fit` (such as independent points of one law),
        it exceeds the threshold with probability at most false_alarms. After `partial_fit`, whose
        residuals are from earlier models, it is about false_alarms. `fit` does not learn a random
        fifth of the points, and `partial_fit` the last fifth of its first block. `partial_fit`
        computes residuals of a block before it learns it.

        If several points belong to one patient, session or run of a time series, a point of a new
        one is not exchangeable with them, and false alarms are more frequent. With `groups`, `fit`
        does not learn a random fifth of the groups. These m groups have equal weights, however many
        points they have. If groups are exchangeable, a random point of a new group exceeds the
        threshold with probability at most false_alarms, which must be at least 1 / (m + 1).

        `fit` sets kernel_, residuals_, map_, n_features_in_ and offset_, minus the threshold.

        Args:
            false_alarms: float between 0 and 1. Probability of -1 for a point that is not novel.
            landmarks: int. Number of landmarks.
            kernel, sigma, gamma, random_state: See `LandmarkFeatures`, but sigma is a number. If
                kernel, sigma and gamma are None, the first block sets sigma, and needs two points. A
                warning is given if later points show that it is too small.
        Example:
            >>> X = np.linspace(0.0, 9.0, 200)[:, None]  # doctest: +SKIP
            >>> NoveltyDetector(50, sigma=1.0).fit(X).predict([[4.5], [20.0]]).tolist()  # doctest: +SKIP
            [1, -1]
        """

        landmarks: int = 300
        false_alarms: float = 0.05

        @_public
        def fit(self, X, y=None, *, groups=None):
            """Learn the points X, (n, d), most of which should not be novel. Ignores y. `groups`,
            (n,), has the label of each point's group. None means that each point is a group."""
            with self._refit():
                return self._learn(*self._begin(X, False, groups))

        @_public
        def partial_fit(self, X, y=None):
            """Learn further points. Blocks of at least 2 * landmarks points are best. Ignores y."""
            if not hasattr(self, "map_"):
                with self._refit():
                    return self._learn(*self._begin(X, True))
            X = self._points(X)
            return self._learn(X, self._stream, X, np.ones(len(X)))

        def _begin(self, X, in_order, groups=None):
            """Points to learn, an empty state, and the points that are not learned, with weights:
            1 / the size of their group."""
            X = self._first_block(X) if in_order else self._points(X, reset=True)
            n, d = X.shape
            seed = self._seed()
            many = _checked_count("landmarks", self.landmarks)
            numbers = np.arange(n) if groups is None else _as_groups(groups, n)
            sizes = np.bincount(numbers)
            m = len(sizes)
            _require(groups is None or m > 1, "groups must have at least two groups, got one")
            order = np.arange(m) if in_order else _draw_uniformly(m, m, _key(seed, _HELD_OUT))
            rows = np.argsort(np.argsort(order)[numbers], kind="stable")
            learned = sizes[order[: max(1, m - _ceil_div(m, 5))]].sum()
            first, last = np.split(X[rows], [learned])
            self.kernel_ = _kernel_of_estimator(self, first, seed)
            self.residuals_ = np.empty(0)
            self._weights = np.empty(0)
            weights = 1.0 / sizes[numbers[rows[learned:]]]
            return first, rls_start(self.kernel_, many, d, seed), last, weights

        def _learn(self, X, state, unseen, weights):
            """Learn X. Residuals of `unseen` are from the earlier model, or from the first one."""
            share = _checked_share("false_alarms", self.false_alarms)
            state = update(state, X)
            model = nystrom_map(state.points, state.points, state.kernel)
            others = residual(unseen, getattr(self, "map_", model)) if len(unseen) else ()
            grouped = (weights < 1.0).any()  # then the residuals of all groups count
            latest = slice(None) if grouped else slice(-2000, None)
            residuals = np.append(self.residuals_, others)[latest]
            weights = np.append(self._weights, weights)[latest]
            descending = np.argsort(-residuals)
            larger = np.cumsum(weights[descending]) - weights[descending]
            # A new group, with weight 1, may have the largest residuals. The weights are rounded.
            above = np.count_nonzero(larger <= share * (weights.sum() + 1.0) - 1.0 + 1e-9)
            threshold = residuals[descending[max(above, 1) - 1]] if len(residuals) else math.inf
            warning = None
            if _spans_all_features(model):
                warning = "no point can be novel: the landmarks span all features of the kernel"
            elif above == 0:
                known = f"residuals of {weights.sum():.0f} groups" if grouped else "residuals"
                warning = f"{len(residuals)} {known} cannot give false_alarms of {share}"
            elif threshold > 0.999:
                warning = (
                    "no point can be novel: sigma is too small, or the points have just changed"
                )
            if warning:
                warnings.warn(f"NoveltyDetector: {warning}", stacklevel=_USERS_LINE + 1)
            # The residual of a point has another rounding error in another batch.
            self.offset_ = -math.sqrt(threshold**2 + _ROUNDING)
            self.map_ = model
            self.residuals_ = residuals
            self._weights = weights
            self._stream = state
            return self

        @property
        def fit_predict(self):
            """Missing, because points that the model has learned are rarely novel to it."""
            raise AttributeError(
                "NoveltyDetector has no fit_predict: points that it has learned are rarely novel to "
                "it. Fit other points, or predict each fold by a detector of the other folds"
            )

        @_public
        def score_samples(self, X):
            """Minus the residuals of X, (n, d): low for novel points."""
            return -residual(self._points(X), self.map_)

        @_public
        def decision_function(self, X):
            """score_samples(X) - offset_: negative for novel points."""
            return self.score_samples(X) - self.offset_

        @_public
        def predict(self, X):
            """-1 for novel points, and 1 for others."""
            return np.where(self.decision_function(X) < 0.0, -1, 1)


_ESTIMATORS = {
    "LandmarkFeatures": _define_features,
    "LandmarkRidge": _define_ridge,
    "LandmarkClassifier": _define_classifier,
    "StreamingKernelPCA": _define_streaming,
    "NoveltyDetector": _define_detector,
}


def __getattr__(name):
    """Create the estimators at their first use, because no other function needs scikit-learn."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _lock:
        if name not in globals():
            _ESTIMATORS[name](*_estimator(name))
    return globals()[name]


def __dir__():
    return {*globals(), *_ESTIMATORS}


def _typical_arguments(dtype):
    """Arguments by their names, with enough points to compile the products of 6.2. A function among
    them stands for its result."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3), dtype)
    F = rng.standard_normal((2000, 32), dtype)
    some = X[:50]
    kernel = gaussian(2.0)
    model = Expansion(some, some, np.ones(3), kernel)
    return {
        "X": X,
        "Y": np.sin(X),
        "Z": F,
        "F": F,
        "G": F,
        "A": Implicit(X, kernel),
        "B": LowRank(X),
        "V": np.eye(2000, 8, dtype=dtype),
        "M": np.eye(3),
        "centers": X,
        "landmarks": some,
        "features": some,
        "scores": np.full(2000, 0.1),
        "known": np.linspace(0.0, 1.0, 99),
        "values": np.ones(8),
        "kernel": kernel,
        "kernel_x": kernel,
        "kernel_y": kernel,
        "feature_map": fourier_features_map,
        "map_x": fourier_features_map,
        "map_y": fourier_features_map,
        "eigen": block_lanczos,
        "model": model,
        "other": model,
        "expansion": model,
        "sketch": model,
        "state": dsgd_start,
        "a": fd_start,
        "b": fd_start,
        "n": 2000,
        "d": 3,
        "k": 8,
        "s": 50,
        "m": 512,
        "ell": 16,
        "eps": 0.5,
        "error": 0.5,
        "lam": 1.0,
        "lam_x": 1.0,
        "lam_y": 1.0,
        "delta": 0.03,
    }


def _required(function):
    """Names of the arguments without a default."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name for one in parameters if one.default is one.empty}


def _called_typically(function, given):
    arguments = {name: given[name] for name in _required(function)}
    for name, value in arguments.items():
        if callable(value):
            arguments[name] = _called_typically(value, given)
    return function(**arguments)


def _run_typical(name, dtype):
    given = _typical_arguments(dtype)
    X = given["X"]
    if name in _ESTIMATORS:
        made = _model_in(__getattr__(name)(50).fit(X, X[:, 0] > 0.0))
    else:
        function = globals()[name]
        made = _called_typically(function, given)
    if name.endswith("_start"):
        points = np.resize(X, (len(X), _streams[type(made)].columns(made)))
        Y = given["Y"] if "Y" in _required(function) else None
        made = finish(update(made, points, Y))
    if type(made) in _models:
        features(X[:1], made)
        features(X, made)
    if isinstance(made, Bits) or _is_sparse(made):
        block_lanczos(made, 8)


@_public
def warm_up(*names):
    """Compile functions of points in both precisions before their first calls (textbook).

    The code serves all kernels except `custom`. A start function stands for its whole stream.

    Args:
        *names: str or function. Functions that your program calls, such as "rpcholesky". Others are
            refused with a list. None means all in the list except for the estimators, which takes
            minutes.
    Returns:
        float: Elapsed time in seconds.
    Example:
        >>> seconds = warm_up("rpcholesky", "nystrom_kpca")  # doctest: +SKIP
    """
    start = time.perf_counter()
    given = _typical_arguments(np.float64).keys()
    functions = [
        name
        for name in __all__
        if name.islower() and name[:5] != "dask_" and set() < _required(globals()[name]) <= given
    ]
    known = [*functions, *_ESTIMATORS]
    names = [getattr(name, "__name__", name) for name in names or functions]
    for name in names:
        _require(
            name in known, f"names must not have {_shown(name)}, but be among {', '.join(known)}"
        )
    for number, name in enumerate(names, 1):
        _note(f"compiling {name} ({number} of {len(names)})")
        for dtype, limit in itertools.product(_FLOATS, (math.inf, -1.0)):  # one thread, then all
            context = contextvars.copy_context()
            context.run(_warm_up_threshold.set, limit)
            context.run(_run_typical, name, dtype)
    return time.perf_counter() - start


# --------------------------------------------------------------------------------------------------
# 17. Many machines
#
# The points are a Dask array, chunked by rows. Functions of earlier sections process each block.
# The results are merged in pairs, in an order that depends only on the chunks.


def _dask(module="dask"):
    if not _CACHED:
        raise ImportError("kpcasketch must be imported as a module, so that workers can import it")
    return _library(module, "dask[array]", "dask_*")


def _row_blocks(name, X):
    _require(
        isinstance(X, _dask("dask.array").Array)
        and X.ndim == 2
        and X.dtype.kind in "fiub"
        and 0.0 < math.prod(X.shape) < math.inf,
        f"{name} must be a 2-D dask array of real numbers (dask.array.from_array) with known chunks "
        f"(.compute_chunk_sizes()), got {X!r:.90}",
    )
    sizes = np.array(X.chunks[0])
    return X.rechunk({1: -1}).to_delayed()[sizes > 0, 0], sizes[sizes > 0].tolist()


_at_work = threading.Lock()  # a process runs one task at a time, on all its threads


def _together(function, *values, rows=""):
    """Call function(*values) on all threads of this worker. Only one call runs at a time, because
    numba's workqueue allows one parallel loop. rows: text that error messages append."""
    before = threads = numba.get_num_threads()
    with contextlib.suppress(AttributeError, ValueError):  # raised outside a worker
        worker = sys.modules.get("distributed").get_worker()
        threads = min(numba.config.NUMBA_NUM_THREADS, worker.state.nthreads)
    with _at_work:
        numba.set_num_threads(threads)
        try:
            return function(*values)
        except ValueError as error:
            if rows and len(error.args) == 1:  # else a user's function raised it
                error = ValueError(f"{error}{rows}")
            raise error from None
        finally:
            numba.set_num_threads(before)


def _each_block(function, X, beside, *held):
    """Delayed function(block, own, *held) for each block of X. own is the item of `beside` for the
    block. If `beside` is None, own is its first row number. Each worker fetches `held` once."""
    delayed = _dask().delayed
    task = delayed(_together, pure=False)
    parts, sizes = _row_blocks("X", X)
    held = [delayed(value, traverse=False) for value in held]
    starts = [0, *itertools.accumulate(sizes)]
    return [
        task(function, part, own, *held, rows=f"; in rows {first} to {last - 1}")
        for part, own, first, last in zip(
            parts, starts if beside is None else beside, starts, starts[1:]
        )
    ]


def _joined(function, parts):
    """Merge the results of neighboring blocks by function(a, b) until one is left."""
    task = _dask().delayed(_together, pure=False)
    while len(parts) > 1:
        pairs = [task(function, a, b) for a, b in zip(parts[::2], parts[1::2])]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0].compute()


def _point_like(X, model):
    """A point as wide as X: one of the model's points, if it has any. A row of ones may be far from
    these."""
    points = getattr(model[0], "points", None) if model else None
    if points is None:
        return np.ones((1, X.shape[1]), X.dtype)
    return np.resize(points, (1, X.shape[1])).astype(X.dtype)


@_public
def dask_map(function, X, *model):
    """Apply a function to the blocks of a Dask array, lazily (textbook).
    A first call with one point finds the type of the result, and rejects a model that does not fit.

    Args:
        function: callable. Maps each row, independently of other rows, to a row or a number.
        X: (n, d) dask array. Points, chunked by rows.
        *model: any. Further arguments of the function. Each worker fetches them once.
    Returns:
        Array: (n, k) or (n,) dask array of the results, with the row chunks of X.
    Example:
        >>> import dask.array as da  # doctest: +SKIP
        >>> X = da.from_array(np.arange(4.0)[:, None], chunks=(2, 1))  # doctest: +SKIP
        >>> model = kpca(np.array([[1.0], [4.0]]), linear(), 1, centered=False)  # doctest: +SKIP
        >>> dask_map(features, X, model).compute().round(12).tolist()  # doctest: +SKIP
        [[0.0], [1.0], [2.0], [3.0]]
    """
    _, sizes = _row_blocks("X", X)
    like = _together(function, _point_like(X, model), *model)
    _require(
        isinstance(like, np.ndarray) and like.shape[:1] == (1,),
        f"function must return one row for each row of X, got {type(like).__name__}",
    )

    def checked(block, first, *model):
        made = np.asarray(function(block, *model))
        _require(
            made.dtype == like.dtype and made.shape == (len(block), *like.shape[1:]),
            f"dask_map: function must return a row of {like.dtype} for each row, got shape {made.shape}",
        )
        return made

    da = _dask("dask.array")
    return da.concatenate(
        [
            da.from_delayed(made, (m, *like.shape[1:]), like.dtype)
            for made, m in zip(_each_block(checked, X, None, *model), sizes)
        ]
    )


@_public
def dask_fold(X, state):
    """State of a stream after all rows of a Dask array: one state per block, merged in pairs.

    For `fd_start`, `skpca_start` and `rnca_start`, the merged state satisfies the error bound of one
    pass (SKPCA section 2). Equal chunks give identical bits. A worker stores one block and up to
    three states.

    Args:
        X: (n, d) dask array. Points, chunked by rows.
        state: named tuple. Returned by the stream's start function. Merge older states afterwards.
    Returns:
        tuple: The state, for `finish`.
    Example:
        >>> import dask.array as da  # doctest: +SKIP
        >>> X = da.from_array(np.arange(50.0)[:, None], chunks=(20, 1))  # doctest: +SKIP
        >>> drawn = fourier_features_map(gaussian(5.0), 1, 40)  # doctest: +SKIP
        >>> state = dask_fold(X, skpca_start(drawn, 8))  # doctest: +SKIP
        >>> finish(state, 2).basis.shape  # doctest: +SKIP
        (40, 2)
    """
    _of_stream("state", state, "merge")
    _require(state.count == 0, f"state must be empty, got a count of {state.count}")
    half_life = getattr(state, "half_life", None)
    _require(half_life is None, f"state must have no half_life to be merged, got {half_life}")

    def folded(block, first, state):
        if hasattr(state, "seed"):  # blocks must draw independently
            state = state._replace(seed=int(_python_subkey(state.seed, first)))
        return update(state, block)

    return _joined(merge, _each_block(folded, X, None, state))


def _rows_of(X, rows):
    numbers, places = np.unique(rows, return_inverse=True)  # Dask reads sorted rows in one step
    return _checked_points("X", X[numbers].compute(), None, numbers)[places]


@_public
def dask_median_bandwidth(X, seed=0):
    """Median distance between points of a Dask array, bit-identical to `median_bandwidth`.

    Args:
        X: (n, d) dask array. Points, chunked by rows.
        seed: int from 0 to 2**64 - 1. Seed of the draw.
    Returns:
        float: The median over all pairs of at most 1000 random points, a textbook choice.
    Example:
        >>> import dask.array as da  # doctest: +SKIP
        >>> X = da.from_array(np.array([[0.0], [1.0], [4.0]]), chunks=(2, 1))  # doctest: +SKIP
        >>> dask_median_bandwidth(X)  # doctest: +SKIP
        3.0
    """
    key = _checked_key(seed, _PAIRS)
    _row_blocks("X", X)
    return median_bandwidth(_rows_of(X, _draw_uniformly(len(X), min(len(X), 1000), key)))


@_public
def dask_landmarks(X, kernel, s, seed=0):
    """Landmarks from a Dask array by ridge leverage scores (RLS 5; Calandriello et al. 2017).

    Args:
        X: (n, d) dask array. Points, chunked by rows.
        kernel, s, seed: See `rls_start`.
    Returns:
        Landmarks: In the order of the rows, with points. Equal chunks give equal landmarks.
    Example:
        >>> import dask.array as da  # doctest: +SKIP
        >>> X = da.from_array(np.arange(50.0)[:, None], chunks=(20, 1))  # doctest: +SKIP
        >>> found = dask_landmarks(X, gaussian(5.0), 20)  # doctest: +SKIP
        >>> found.points.shape, bool(found.weights.min() >= 1.0)  # doctest: +SKIP
        ((20, 1), True)
    """
    _row_blocks("X", X)
    return finish(dask_fold(X, rls_start(kernel, s, X.shape[1], seed)))


def _sums_of_features(block, first, found, middle):
    """F^T F and F^T 1 of a block, with Nystrom features F minus `middle`, if it is given."""
    P = _checked_points("X", block)
    return _normal_equations(P, found, np.ones((len(P), 1), P.dtype), middle)


def _added(a, b):
    return tuple(map(operator.add, a, b))


@_public
def dask_nystrom_kpca(X, landmarks, kernel, k, seed=0, *, centered=True):
    """Kernel PCA of a Dask array over landmarks, with 8 s^2 bytes sent per block (RLS theorem 17).

    Args:
        X: (n, d) dask array. Points, chunked by rows.
        landmarks: Landmarks with points, row numbers, or (s, d) array of points.
        kernel: Kernel. Positive semidefinite.
        k, seed, centered: See `nystrom_kpca`.
    Returns:
        Expansion: The k components over the landmarks, equal to `nystrom_kpca` up to rounding.
    Example:
        >>> import dask.array as da  # doctest: +SKIP
        >>> P = np.arange(12.0).reshape(6, 2) ** 2  # doctest: +SKIP
        >>> X = da.from_array(P, chunks=(4, 2))  # doctest: +SKIP
        >>> many = dask_nystrom_kpca(X, [0, 2, 5], gaussian(50.0), 2)  # doctest: +SKIP
        >>> one = nystrom_kpca(P, [0, 2, 5], gaussian(50.0), 2)  # doctest: +SKIP
        >>> np.allclose(features(P, many), features(P, one))  # doctest: +SKIP
        True
    """
    key = _checked_key(seed, _START)
    centered = _as_flag("centered", centered)
    _row_blocks("X", X)
    Z = _checked_landmarks(X, landmarks, _rows_of)
    kernel = _checked_kernel("kernel", kernel, landmarks=Z)
    k = _checked_count("k", k, len(Z))
    X, found, origin, middle = _about_landmarks(X, Z, kernel, centered)
    squares, sums = _joined(_added, _each_block(_sums_of_features, X, None, found, middle))
    model = _together(_components_by_map, found, squares, sums, len(X), middle, k, key)
    return _in_order(_translated(model, origin), Z)


def _sums_for_ridge(block, Y, found, middle):
    """Number of rows, mean of the targets, F^T F and F^T [T, 1] of a block. F holds Nystrom features
    minus `middle`, and T holds targets minus their mean. If `middle` is None, nothing is subtracted."""
    P = _checked_points("X", block)
    T = _checked_targets(Y, len(P))
    mean = np.zeros(T.shape[1]) if middle is None else T.mean(0, np.float64)
    T = np.column_stack([T - mean, np.ones(len(P))])
    return len(P), mean, *_normal_equations(P, found, T, middle)


def _sums_together(a, b):
    """`_sums_for_ridge` of the rows of both blocks. The mean of their targets replaces those of
    each, because sums of targets with a large mean would lose digits (Chan, Golub, LeVeque 1983)."""
    rows = a[0] + b[0]
    mean = a[1] + (b[1] - a[1]) * (b[0] / rows)
    products = 0.0
    for _, before, _, each in (a, b):
        sums = each[:, -1]
        moved = each[:, :-1] - np.outer(sums, mean - before)
        products = products + np.column_stack([moved, sums])
    return rows, mean, a[2] + b[2], products


@_public
def dask_nystrom_ridge(X, Y, landmarks, kernel, lam, *, intercept=True):
    """Kernel ridge regression of a Dask array over landmarks (RLS theorem 15, (32)-(35)).

    Args:
        X: (n, d) dask array. Points, chunked by rows.
        Y: (n,) or (n, t) array or dask array. Targets.
        landmarks, kernel: See `dask_nystrom_kpca`.
        lam: float above 0. The ridge, in the units of the eigenvalues of K.
        intercept: bool. Whether to add a constant, which has no ridge. It is the offset of the result.
    Returns:
        Expansion: The result of `nystrom_ridge` up to rounding. `features` returns t columns.
    Example:
        >>> import dask.array as da  # doctest: +SKIP
        >>> P = np.arange(6.0)[:, None]  # doctest: +SKIP
        >>> X = da.from_array(P, chunks=(4, 1))  # doctest: +SKIP
        >>> model = dask_nystrom_ridge(X, 2.0 * P + 7.0, [1, 4], linear(), 1e-9)  # doctest: +SKIP
        >>> features(np.array([[10.0]]), model).round(6).tolist()  # doctest: +SKIP
        [[27.0]]
    """
    _row_blocks("X", X)
    lam = _as_ridge(lam)
    intercept = _as_flag("intercept", intercept)
    Y = Y if hasattr(Y, "rechunk") else _dask("dask.array").from_array(np.atleast_1d(Y), chunks=-1)
    T = Y[:, None] if Y.ndim == 1 else Y
    _require(T.shape[:1] == X.shape[:1], f"Y must have {len(X)} rows, got shape {T.shape}")
    targets, _ = _row_blocks("Y", T.rechunk({0: X.chunks[0]}))
    Z = _checked_landmarks(X, landmarks, _rows_of)
    kernel = _checked_kernel("kernel", kernel, landmarks=Z)  # before they are in double
    X, found, origin, middle = _about_landmarks(X, _in_double(Z), kernel, intercept)
    parts = _each_block(_sums_for_ridge, X, targets, found, middle)
    rows, mean, squares, products = _joined(_sums_together, parts)
    at = None
    if intercept:
        sums = products[:, -1] / rows
        squares = squares - np.outer(products[:, -1], sums)
        at = middle + sums
    found = found._replace(points=found.points.astype(Z.dtype))
    model = _together(_ridge_by_map, found, squares, products[:, :-1], lam, Y.ndim, mean, at)
    return _in_order(_translated(model, origin), Z)


# --------------------------------------------------------------------------------------------------
# 18. Command line
#
# Only `demo` prints to stdout. The other commands write files, and notes to stderr.

# 18.1 Kernels, streams and points by name

_KERNELS = {
    "gaussian": gaussian,
    "laplacian": laplacian,
    "matern": functools.partial(matern, 1.5),
    "rational_quadratic": functools.partial(rational_quadratic, 1.0),
    "cauchy": cauchy,
    "linear": lambda sigma: linear(),
}

_STREAM_METHODS = {"skpca": SKPCAState, "dsgd": DSGDState}  # classes of states by method


def _chosen_kernel(options, points):
    sigma = options.sigma
    _require(options.kernel != "linear" or sigma is None, "sigma is not for --kernel linear")
    if sigma is None:
        sigma = median_bandwidth(points.rows(np.sort(points.some(1000, options.seed))))
    return _KERNELS[options.kernel](sigma)


@contextlib.contextmanager
def _about_file(path):
    """Let errors tell `main` which file they are about."""
    try:
        yield
    except ValueError as error:
        error.path = getattr(error, "path", path)
        raise


def _coordinate(prepared, column):
    """The name of a column of an array of points, or its number from 1."""
    categories = prepared.get("categories", {})
    names = [name for name in prepared.get("columns", []) if name not in categories]
    for name, kinds in categories.items():
        names += [f"{name}_{kind}" for kind in kinds]  # as in pandas.get_dummies
    return names[column] if names else column + 1


def _prepared_rows(X, prepared, numbers):
    """Points with medians in gaps, and standardized. numbers: of the rows, for messages."""
    if _is_sparse(X):
        return _checked_points("X", X, numbers=numbers)
    rows = _as_array("X", X, 2)
    d = rows.shape[1]
    wanted = next((len(prepared[name]) for name in _PREPARED if name in prepared), d)
    _require(d == wanted, f"X must have {wanted} columns, got {d}")
    median, mean, scale = map(prepared.get, _PREPARED, (math.nan, 0.0, 1.0))
    gaps = np.isnan(rows)
    empty = np.flatnonzero(gaps.all(1))  # a row of medians would look like a typical point
    if empty.size:
        raise ValueError(f"X must have values; row {numbers[empty[0]]} has none")
    filled = np.where(gaps, median, rows)
    wrong = np.argwhere(~np.isfinite(filled))
    if wrong.size:
        row, column = wrong[0]
        remedy = ""
        if gaps[row, column]:
            remedy = ": --missing median fills gaps when a model is trained, and --missing drop omits rows"
        raise ValueError(
            f"X must be finite in row {numbers[row]}, column {_coordinate(prepared, column)}{remedy}"
        )
    filled = ((filled - mean) / scale).astype(rows.dtype)
    points = _checked_points("X", filled, None, numbers, least=0)
    if prepared:
        points = points.view(_PreparedPoints)
        points.names = _names_of(prepared)
        points.flags.writeable = False  # other values would not be prepared
    return points


class _Points(NamedTuple):
    """Points of a file, possibly on disk. numbers, labels: of the rows. ids: {name of the column:
    ids of the rows}. prepared: see `_preparation`."""

    path: str
    X: np.ndarray
    numbers: np.ndarray = None
    labels: np.ndarray = None
    ids: dict = {}
    prepared: dict = {}

    def numbered(self, chosen):
        """Numbers of the chosen rows in their file, from 1."""
        if isinstance(chosen, slice):
            chosen = np.arange(*chosen.indices(self.X.shape[0]))
        return chosen + 1 if self.numbers is None else self.numbers[chosen]

    def only(self, chosen):
        return self._replace(
            X=self.X[chosen],
            numbers=self.numbered(chosen),
            labels=None if self.labels is None else self.labels[chosen],
            ids={name: ids[chosen] for name, ids in self.ids.items()},
        )

    def some(self, most, seed=0):
        """At most this many row numbers, at random: every tenth row may be from one class."""
        n = self.X.shape[0]
        return np.random.default_rng(_as_seed("seed", seed)).choice(n, min(n, most), replace=False)

    def rows(self, chosen=slice(None)):
        """The chosen rows, filled and standardized by `prepared`."""
        with _about_file(self.path):
            return _prepared_rows(self.X[chosen], self.prepared, self.numbered(chosen))


_MISSING = {"", *". ? NA na #N/A N/A n/a <NA> NaN nan -NaN -nan NULL null #NULL! None".split()}
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", re.ASCII | re.IGNORECASE)


def _category_texts(values):
    """Categories as text, and "" for a gap. Numbers are equal however they are written."""
    texts = []
    for value in np.asarray(values).tolist():
        text = str(value).strip()
        if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
            whole = text.removesuffix(".0").lstrip("+-").isdigit()
            text = str(int(text.removesuffix(".0"))) if whole else repr(float(text))
        texts.append("" if text in _MISSING else text)
    return np.array(texts, str)


def _once(names):
    """{name: position} of the names that occur once."""
    counts = collections.Counter(names)
    return {name: j for j, name in enumerate(names) if counts[name] == 1}


def _of_columns(X, prepared, numbers):
    """The coordinates of a model from a frame, which may have other columns and another order.
    Columns with categories become an indicator for each category, after the other columns."""
    names = [str(name) for name in X.columns]
    places = _once(names)
    wrong = [column for column in prepared["columns"] if column not in places]
    _require(not wrong, f"X must have each of the columns {wrong} exactly once, and has {names}")
    own = {column: X.columns[places[column]] for column in prepared["columns"]}
    categories = {column: own.pop(column) for column in prepared.get("categories", {})}
    blocks = [_as_array("X", X[[*own.values()]], 2)] if own else []
    dtype = blocks[0].dtype if blocks else np.float64
    for column, name in categories.items():
        kinds = prepared["categories"][column]
        texts = _category_texts(X[name])
        indicators = (texts[:, None] == np.array(kinds, str)).astype(dtype)
        indicators[texts == ""] = math.nan
        unknown = np.flatnonzero(~indicators.any(1))  # NaN counts as true
        if unknown.size:
            raise ValueError(
                f"{column} must be one of the categories {kinds}, got {str(texts[unknown[0]])!r} in "
                f"row {numbers[unknown[0]]}"
            )
        blocks.append(indicators)
    return np.hstack(blocks)


@_public
def prepared_points(path, X):
    """Points prepared for a model of the command line, for `features` and `residual` (textbook).

    If the model was trained with --missing median, NaN becomes the median of its column. If it was
    trained with --standardize, the result is (X - mean) / scale. Columns of --categorical become
    indicators. Medians, means, scales and categories are taken from the model.

    Args:
        path: str, path, or file open for reading. The .npz file of a model, also one of `save`.
        X: (n, d) array with the model's columns, or DataFrame, which may have others.
    Returns:
        array: (n, d) points, read-only. The model refuses arrays that were not prepared. Chosen rows
            are prepared, such as P[:10] or P[rows]. Copies, pickles and results of arithmetic are not.
    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/X.npy", np.array([[1.0], [3.0]]))
        ...     words = ["embed", f"{folder}/X.npy", "-k", "1", "--standardize"]
        ...     status = main([*words, "--model", f"{folder}/model.npz"])
        ...     prepared_points(f"{folder}/model.npz", np.array([[4.0]])).tolist()
        [[2.0]]
    """
    prepared = _preparation(getattr(load(path), "names", b""))
    _require(not isinstance(X, _PreparedPoints) or not X.names, "X must not be prepared already")
    if hasattr(X, "columns") and "columns" in prepared:
        X = _of_columns(X, prepared, range(len(X)))
    else:
        _require("categories" not in prepared, "X must be a DataFrame, as the model has categories")
        X = _as_array("X", X, 2)
    return _prepared_rows(X, prepared, range(len(X)))


def _split(options, points):
    if options.holdout is None:
        return slice(None), None
    share = _checked_share("holdout", options.holdout)
    order = points.some(points.X.shape[0], options.seed)
    few = math.ceil(len(order) * share)
    return np.sort(order[few:]), order[:few]


def _learn_scales(options, points):
    """Add medians, means and scales of columns to `prepared`. A scale of 0 becomes 1. Indicators of
    categories share a scale, with which their variances add up to 1."""
    prepared = points.prepared
    if options.missing == "median":
        empty = np.isnan(points.X).all(0).any()
        _require(not empty, "X must have a value in each column: pass --drop for the others")
        prepared["missing.median"] = np.nanmedian(points.X, 0).tolist()
    if options.standardize:
        n = points.X.shape[0]
        slabs = _slabs(n, 100_000)
        first = _in_double(points.rows(slice(1)))[0]  # subtracting it saves digits
        mean = first + sum((points.rows(slab) - first).sum(0) for slab in slabs) / n
        squares = sum(np.square(points.rows(slab) - mean).sum(0) for slab in slabs)
        scale = np.sqrt(squares / n)
        begin = len(prepared.get("columns", [])) - len(prepared.get("categories", []))
        for kinds in prepared.get("categories", {}).values():
            own = slice(begin, begin + len(kinds))
            scale[own] = np.sqrt(np.square(scale[own]).sum())
            begin += len(kinds)
        prepared["standardized.mean"] = mean.tolist()
        prepared["standardized.scale"] = (scale + (scale == 0.0)).tolist()


# 18.2 Tables and arrays

_TABLES_HELP = """Tables are .csv, .csv.gz, .parquet, .feather and .xlsx files (of which the first sheet is read). A CSV
file is UTF-8 text, or has another --encoding. Commas separate columns, and numbers have decimal points. With another
--delimiter, they may have decimal commas. Blank lines are skipped. Line 1 is a header if no field in it is a number;
--header or --no-header overrides this. Columns must be numbers, except for those of --drop, --labels, --id and
--categorical. They have names, or numbers from 1. A field is missing if it is empty, . ? NA na #N/A N/A n/a <NA> NaN
nan -NaN -nan NULL null #NULL! or None. -o FILE.csv has a header, and row numbers in column 1. Tables need pandas, and
some need pyarrow or openpyxl."""
_DELIMITERS = {",": ",", ";": ";", "tab": "\t"}
_CHUNK = 65_536  # rows of a table in memory: 10 MB for 20 columns


class _Table(NamedTuple):
    """A table in a file. names: of columns. frames: (numeric, text): frames with these columns, one
    after the other. index: name of the index that pandas wrote, which has no coordinates."""

    names: list
    frames: object
    index: list = []


def _ending(path):
    lower = path.lower()
    return ".csv.gz" if lower.endswith(".csv.gz") else os.path.splitext(lower)[1]


def _is_header(options, first):
    """Whether the first row has the names of the columns. Years or wavelengths may be names."""
    if options.header is not None:
        return options.header
    points = [field.replace(",", ".") for field in first]
    numbers = [float(field) for field in points if _NUMBER.fullmatch(field)]
    # pandas writes its index before the columns 0, 1, ...
    if not numbers or first == ["", *map(str, range(len(first) - 1))]:
        return True
    steps = np.diff(numbers).round(6)
    even = len(steps) > 1 and steps.min() == steps.max() != 0.0
    _require(
        len(numbers) == len(first) and not even and first not in (["0"], ["0", "1"]),
        "line 1 may be a header: pass --header or --no-header",
    )
    return False


def _header_names(options, first):
    """Names of the columns, and whether the first row has them."""
    fields = [str(field).strip() for field in first]
    if not _is_header(options, fields):
        return [f"#{j + 1} of {len(fields)}" for j in range(len(fields))], False
    return [field or f"Unnamed: {j}" for j, field in enumerate(fields)], True  # as in pandas


def _text(path, options):
    opened = gzip.open if _ending(path) == ".csv.gz" else open
    return opened(path, "rt", encoding=options.encoding or "utf-8-sig", newline="")


def _survey(path, options, delimiter):
    """The first row of a .csv file, its decimal mark, and the number of rows. pandas would fill short
    rows, and take the first columns of long ones for an index."""
    decimal = "."
    count = 0
    with _text(path, options) as file:
        rows = csv.reader(file, delimiter=delimiter, strict=True, skipinitialspace=True)
        first = next(filter(None, rows), [])
        _require(first, "FILE must have points")
        _require(not first[0].startswith("sep="), "line 1 is only for Excel: remove it")
        for row in itertools.chain([first], filter(None, rows)):
            count += 1
            if len(row) == 1 and re.search("[;\t]", row[0]):
                raise ValueError("fields must be separated by commas: pass --delimiter ';' or tab")
            if len(row) != len(first):
                raise ValueError(
                    f"line {rows.line_num} must have the same number of fields as line 1, "
                    f"{len(first)}, got {len(row)}: pass --delimiter ';' or tab, or remove comments, "
                    "titles, row names, commas within numbers and delimiters at ends of lines"
                )
            if delimiter != "," and decimal == ".":
                commas = [field.replace(",", ".") for field in row if "," in field]
                decimal = "," if any(map(_NUMBER.fullmatch, commas)) else "."
    return first, decimal, count


def _csv_table(path, options):
    pandas = _library("pandas", "pandas", "a .csv file")
    delimiter = _DELIMITERS[options.delimiter or ","]
    try:
        first, decimal, count = _survey(path, options, delimiter)
    except (UnicodeError, LookupError) as error:
        raise ValueError(
            f"cannot read it as {options.encoding or 'utf-8-sig'}: {error}: pass --encoding, for "
            "example cp1252"
        ) from None
    names, named = _header_names(options, first)
    # Before 3.1, pandas rounds numbers correctly only if asked, and later versions warn if asked.
    old = tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1)
    exact = {"float_precision": "round_trip"} if old else {}

    def frames(numeric, text):
        left = count - named
        with _text(path, options) as file:
            if named:
                next(filter(None, csv.reader(file, delimiter=delimiter, skipinitialspace=True)))
            for frame in pandas.read_csv(
                file,
                sep=delimiter,
                decimal=decimal,
                header=None,
                names=names,
                index_col=False,
                usecols=[*numeric, *text],
                dtype=dict.fromkeys(text, str),
                keep_default_na=False,
                na_values=dict.fromkeys(numeric, [*_MISSING]),
                **exact,
                skipinitialspace=True,
                low_memory=False,  # else a column may have several types
                chunksize=_CHUNK,
            ):
                left -= len(frame)
                yield frame
        _require(left == 0, f"lines of blanks must be removed: pandas omits {left}")

    return _Table(names, frames)


def _excel_table(path, options):
    pandas = _library("pandas", "pandas", "an .xlsx file")
    _library("openpyxl", "openpyxl", "an .xlsx file")
    cells = pandas.read_excel(path, header=None, dtype=object, na_filter=False)
    _require(len(cells), "FILE must have points")
    names, named = _header_names(options, cells.iloc[0])
    rows = cells.iloc[int(named) :].set_axis(names, axis=1)

    def frames(numeric, text):
        gaps = rows[numeric].isin(_MISSING)
        yield rows.assign(**rows[numeric].mask(gaps).infer_objects())

    return _Table(names, frames)


def _arrow_table(path, options):
    _library("pandas", "pandas", "this table")
    arrow = _library("pyarrow.dataset", "pyarrow", "this table")
    data = arrow.dataset(path, format=_ending(path)[1:])
    index = (data.schema.pandas_metadata or {}).get("index_columns", [])

    def frames(numeric, text):
        for batch in data.to_batches(columns=[*numeric, *text], batch_size=_CHUNK):
            yield batch.to_pandas(ignore_metadata=True)

    names = [name for name in data.schema.names if name not in index]
    return _Table(names, frames, [name for name in data.schema.names if name in index])


_TABLES = {
    ".csv": _csv_table,
    ".csv.gz": _csv_table,
    ".parquet": _arrow_table,
    ".feather": _arrow_table,
    ".xlsx": _excel_table,
}
_ARRAYS = (".npy", ".npz")
_PICTURES = (".png", ".svg", ".pdf")


def _find(names, columns):
    """Names of columns that are given by name or, counted from 1, by number."""
    places = {str(j + 1): name for j, name in enumerate(names)} | {name: name for name in names}
    wrong = [column for column in columns or [] if column not in places]
    title = ": line 1 may be a title to remove" if "Unnamed: 1" in names else ""
    _require(not wrong, f"columns {wrong} are not in the file, which has {names}{title}")
    return [places[column] for column in columns or []]


def _point_columns(options, table, own, others):
    """Columns with coordinates: of --columns, the model's `own`, or all but the `others`."""
    if options.columns:
        _require(not options.drop, "drop is not for --columns")
        columns = _find(table.names, options.columns)
        without_header = table.names[0] == f"#1 of {len(table.names)}"
        _require(own is None or own == columns or without_header, "columns must be the model's")
        return columns
    if own:
        lacking = [name for name in own if name not in table.names]
        _require(
            not lacking, f"FILE must have the model's columns {lacking}, and has {table.names}"
        )
        return own
    left_out = {*others, *_find(table.names, options.drop)}
    columns = [name for name in table.names if name not in left_out]
    _require(columns, "FILE must have a column of coordinates")
    return columns


def _only_counts(values):
    numbers = np.asarray(values)
    if len(numbers) < 3 or numbers.dtype.kind not in "iuf":
        return False
    return np.array_equal(numbers, numbers[0] + np.arange(len(numbers)))


def _is_number(value):
    return isinstance(value, (int, float)) or bool(_NUMBER.fullmatch(str(value)))


def _require_coordinates(options, frame, begin, own):
    """Refuse columns that are not numbers and, unless they are the model's `own` or were chosen, an
    index. begin: number of rows before those of the frame."""
    chosen = own or options.columns
    wrong = {}
    for column, dtype in zip(frame.columns, frame.dtypes):
        if not _is_numeric(dtype):
            values = frame[column].tolist()
            row = next((i for i, value in enumerate(values) if not _is_number(value)), 0)
            wrong[column] = f"{values[row]!r} in row {begin + row + 1}"
        elif not chosen and column.startswith("Unnamed: "):  # by pandas
            wrong[column] = "has no name, like an index"
        elif not (chosen or begin) and len(frame) < _CHUNK and frame[column].isna().all():
            wrong[column] = "has no values"
    first = frame.columns[0]
    if not (chosen or begin or first in wrong):
        if first in ("index", "level_0", "...1"):  # by pandas or R
            wrong[first] = "an index"
        elif _only_counts(frame[first]):
            wrong[first] = "counts the rows"
    told = ", ".join(f"{column} ({why})" for column, why in wrong.items())
    if re.search(r"'\d+[.,]\d+' in row", told):
        told += ": numbers must have decimal points or (with another --delimiter) commas, not both"
    drop = [*(options.drop or []), *wrong]
    for j, name in enumerate(drop):
        if re.search('[,"]', name):
            doubled = name.replace('"', '""')
            drop[j] = f'"{doubled}"'
    remedy = f": pass --drop {shlex.quote(','.join(drop))}, or name columns by --labels, --id or --categorical"
    _require(not wrong, f"columns must be numbers, got {told}{'' if chosen else remedy}")


def _load_table(path, options, prepared):
    table = _TABLES[_ending(path)](path, options)
    twice = sorted({*table.names} - _once(table.names).keys())
    _require(
        not twice, f"columns must have different names, got {twice} several times: rename them"
    )
    labels = _find(table.names, options.labels)
    ids = _find([*table.names, *table.index], options.id)
    _require(len(labels) < 2 and len(ids) < 2, "one column can have labels, and one ids")
    own = prepared.get("columns")
    columns = _point_columns(options, table, own, [*labels, *ids])
    prepared = {"columns": columns} | prepared
    categorical = [*prepared.get("categories", [])] or _find(table.names, options.categorical)
    _require({*categorical} <= {*columns}, "categorical is for columns that are not left out")
    numeric = [name for name in columns if name not in categorical]
    texts = {name: [] for name in [*labels, *ids]}
    further = [name for name in dict.fromkeys([*categorical, *texts]) if name not in numeric]
    n = 0
    with tempfile.TemporaryFile() as held:  # the table may exceed memory
        for frame in table.frames(numeric, further):
            if frame.empty:
                continue
            if numeric:
                _require_coordinates(options, frame[numeric], n, own)
            if categorical and "categories" not in prepared:
                kinds = {
                    name: sorted({*_category_texts(frame[name]).tolist()} - {""})
                    for name in categorical
                }
                for name in categorical:
                    _require_few_classes(name, len(kinds[name]), len(frame))
                prepared["categories"] = kinds
            # With --columns, a table without a header may have the model's columns.
            frame_of_model = frame[columns].set_axis(prepared["columns"], axis=1)
            rows = _of_columns(frame_of_model, prepared, range(n + 1, n + len(frame) + 1))
            held.write(rows.tobytes())
            for name, parts in texts.items():
                # pandas 3.1 cuts text beside a gap to a letter: .astype(str).to_numpy(str)
                values = frame[name].astype(object)
                parts.append(np.array([*map(str, values.where(values.notna(), ""))]))
            n += len(frame)
        _require(n, "FILE must have points")
        held.flush()
        X = np.memmap(held, rows.dtype, "r", shape=(n, rows.shape[1]))
    texts = {name: np.concatenate(parts) for name, parts in texts.items()}
    colors = texts[labels[0]] if labels else None
    return _Points(path, X, None, colors, {name: texts[name] for name in ids}, prepared)


def _load_array(path, options, prepared):
    kept = ["X", "y"] if options.plot else ["X"]
    arrays = _arrays_in(path, "r" if _ending(path) == ".npy" else None, kept)
    X = arrays.get("X", arrays.get(""))
    if X is None and "format" in arrays:
        from scipy.sparse import csr_array, load_npz  # the import takes 0.1 s

        X = csr_array(load_npz(path))
    _require(X is not None, f"FILE must have an array X, got {[*arrays]}")
    if not _is_sparse(X):
        _as_array("X", np.atleast_1d(X)[:1], 2)
    labels = arrays.get("y")
    _require(labels is None or labels.size == X.shape[0], "y must have a label for each point")
    return _Points(path, X, None, None if labels is None else labels.ravel(), {}, prepared)


def _load_points(path, options, model=None):
    """Points of a file, prepared like those of the model or state, if there is one."""
    with _about_file(path):
        prepared = _preparation(getattr(model, "names", b""))
        read = _load_table if _ending(path) in _TABLES else _load_array
        points = read(path, options, prepared)
        X = points.X
        for name in ("missing", "standardize"):
            _require(
                not (_is_sparse(X) and vars(options)[name]), f"{name} is not for sparse points"
            )
        if options.missing == "drop":
            kept = np.flatnonzero(~np.isnan(X).any(1))
            points = points.only(kept)
            _to_stderr(f"{path}: {X.shape[0] - len(kept)} rows with gaps, left out")
        if model is None:
            _learn_scales(options, points.only(_split(options, points)[0]))
        if "missing.median" in points.prepared:
            _to_stderr(f"{path}: {np.isnan(points.X).sum()} gaps, filled by medians")
        return points


# 18.3 Results


def _check_files(options):
    for name, path, endings in [
        ("o", options.o, (*_ARRAYS, ".csv")),
        ("model", options.model, (".npz",)),
        ("plot", options.plot, _PICTURES),
    ]:
        wanted = f"{name} must end in {' or '.join(endings)}"
        _require(path is None or _ending(path) in endings, wanted)
    files = [options.points, options.known, *(options.files or [])]
    endings = {_ending(path) for path in files if path}
    known = [*_ARRAYS, *_TABLES]
    _require(endings <= {*known}, f"FILE must end in one of {', '.join(known)}")
    texts = [".csv", ".csv.gz"]
    for names, takers in [
        ("delimiter encoding", texts),
        ("header", [*texts, ".xlsx"]),
        ("columns drop labels id categorical", [*_TABLES]),
    ]:
        given = [f"--{name}" for name in names.split() if vars(options)[name] not in (None, [])]
        wanted = f"only {', '.join(takers)} files take {' and '.join(given)}"
        _require(not given or endings.intersection(takers), wanted)
    with_ids = _ending(options.o or ".csv") != ".npy" or not options.id
    _require(with_ids, "id needs -o FILE.csv or FILE.npz: a .npy file holds only numbers")
    places = [os.path.realpath(path) for path in [options.by, *files] if path]
    for path in filter(None, [options.o, options.model, options.state, options.plot]):
        place = os.path.realpath(path)
        _require(place not in places, f"{path} is given twice and would be overwritten")
        _require(os.access(f"{os.path.dirname(place)}/", os.W_OK), f"cannot write {path}")
        places.append(place)
    if options.plot:
        _library("matplotlib.figure", "matplotlib", "--plot")


def _plot(path, points, model, values):
    rows = points.some(10_000)  # in random order, so that no class hides the others
    Z = np.column_stack([features(points.rows(rows), model), rows])  # there may be one component
    labels = rows + 1 if points.labels is None else points.labels[rows]
    names, colors = np.unique(labels.astype(str), return_inverse=True)
    few = len(names) <= 10
    if not few:
        with contextlib.suppress(ValueError):  # the order of many names colors them
            colors = labels.astype(float)
    figure = importlib.import_module("matplotlib.figure").Figure((10, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    drawn = left.scatter(Z[:, 0], Z[:, 1], 3, colors, cmap="tab10" if few else None)
    if few:
        shown = np.char.replace(names, "$", r"\$")
        left.legend(drawn.legend_elements(num=None)[0], shown, loc=(1.02, 0.3))
    else:
        figure.colorbar(drawn, ax=left)
    left.set(xlabel="component 1", ylabel="component 2" if Z.shape[1] > 2 else "row")
    right.semilogy(range(1, len(values) + 1), np.maximum(values, 1e-300))
    right.set(xlabel="component", ylabel="eigenvalue")
    _write_whole(path, lambda file: figure.savefig(file, dpi=200, format=_ending(path)[1:]))


def _write_results(options, points, model, names=(), further=None, stored={}):
    """Write the requested files. further: function for the columns `names`. stored: more arrays."""
    values = _of_model("model", model, "values")(model)
    arrays = _stored(model, "model.") | stored

    def table(rows):
        X = points.rows(rows)
        Z = features(X, model)
        return np.column_stack([Z, *(further(X) if names else [])]).astype(X.dtype)

    def write_csv(file, slabs, components):
        text = io.TextIOWrapper(file, "utf-8", newline="")
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(["row", *points.ids, *components, *names])
        for rows in slabs:
            own = [ids[rows] for ids in points.ids.values()]
            for *first, values in zip(points.numbered(rows), *own, table(rows).tolist()):
                lines.writerow([*first, *(f"{value:.17g}" for value in values)])
        text.flush()
        text.detach()

    def write(file):  # in blocks: the table may exceed memory
        n = points.X.shape[0]
        first = table(slice(1))
        if _ending(options.o) == ".npz":
            ids = {"id": ids for ids in points.ids.values()}
            np.savez(file, embedding=table(slice(None)), values=values, **ids, **arrays)
        elif _ending(options.o) == ".npy":
            head = np.lib.format.header_data_from_array_1_0(first)
            np.lib.format.write_array_header_1_0(file, head | {"shape": (n, first.shape[1])})
            file.writelines(map(table, _slabs(n, _SLAB)))
        else:
            components = [f"component_{j + 1}" for j in range(first.shape[1] - len(names))]
            write_csv(file, _slabs(n, _SLAB), components)

    if options.model:
        _write_arrays(options.model, arrays)
    if options.o:
        _write_whole(options.o, write)
    if options.plot:
        _plot(options.plot, points, model, values)


# 18.4 demo and embed


def _fitted(method, X, kernel, options):
    s = method.size if options.s is None else options.s
    A = method.function(_about_mean(kernel, X, options.center), kernel, s, options.seed)
    if isinstance(A, Landmarks):
        model = nystrom_kpca(X, A, kernel, options.k, options.seed, centered=options.center)
        return model, A
    return _kpca(X, kernel, options.k, options.seed, options.center, 1e-8, A)


def _demo(options):
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.standard_normal((10, 16))
    X = centers[rng.integers(10, size=3000)] + 0.5 * rng.standard_normal((3000, 16))
    options.center = False
    kernel = gaussian(6.0)
    K = gram(X, X, kernel)
    norm = spectral_norm(K)
    print("ten clusters: 3000 points, 16 coordinates; error: |K - A|_2 / |K|_2 of a sketch A of K")
    print("method            seconds  bytes held      error")
    for name, method in _METHODS.items():
        _fitted(method, X[: 600 + options.k], kernel, options)  # compiles before time is measured
        start = time.perf_counter()
        model, A = _fitted(method, X, kernel, options)
        seconds = time.perf_counter() - start
        A = LowRank(nystrom(X, A, kernel)) if name in _SAMPLERS else A
        error = spectral_error(A, K) / norm
        print(f"{name:16}{seconds:9.3f}{_human(nbytes(A)):>12}{error:11.3g}", flush=True)


def _shown_columns(points):
    """The columns of a table, one of which may be a target."""
    columns = points.prepared.get("columns")
    return f", columns {columns}" if columns else ""


def _warn_of_one_column(points):
    """Say if one column nearly determines the distances, as its unit is smaller than others."""
    if _is_sparse(points.X):
        return
    variances = points.rows(points.some(1000)).var(0, dtype=np.float64)
    share = variances.max() / max(variances.sum(), 1e-300)
    if len(variances) > 1 and share > 0.8:  # the others are less than half of it in distance
        column = _coordinate(points.prepared, variances.argmax())
        _to_stderr(
            f"column {column} has {100.0 * share:.0f} % of the squared distances: --standardize scales "
            "columns to equal variances"
        )


def _embed(options):
    method = _METHODS[options.method]
    _require(options.s is None or method.size, f"s is not for --method {options.method}")
    _require(options.o or options.model or options.plot, "pass -o, --model or --plot")
    points = _load_points(options.points, options)
    fitted, others = _split(options, points)
    kernel = _chosen_kernel(options, points.only(fitted))
    _to_stderr(f"{points.path}: {points.X.shape[0]} points{_shown_columns(points)}; {kernel}")
    _warn_of_one_column(points)
    model, _ = _fitted(method, points.rows(fitted), kernel, options)
    model = model._replace(names=_names_of(points.prepared))
    some = points.rows(points.some(2000, options.seed))  # 4 million kernel values
    with contextlib.suppress(ValueError):  # if points do not differ, there is no variance
        shares = " ".join(f"{share:.2g}" for share in explained_variance_ratio(some, model))
        _to_stderr(f"shares of variance of the components: {shares}")
    stored = {}
    if others is not None:
        stored["known"] = residual(points.rows(others), model)
        _to_stderr(f"{len(others)} points are held out, for apply --novelty")
    _write_results(options, points, model, stored=stored)


# 18.5 stream and apply. _REMEMBERED: options of a stream that must not change

_REMEMBERED = (
    "method kernel sigma m ell k seed center standardize missing columns drop categorical".split()
)


def _started(options, points):
    kernel = _chosen_kernel(options, points)
    d = points.X.shape[1]
    if options.method == "skpca":
        feature_map = fourier_features_map(kernel, d, options.m, options.seed)
        return skpca_start(feature_map, options.ell, centered=options.center)
    feature_map = fourier_features_map(
        kernel, d, options.m, options.seed, stored=False, paired=False
    )
    first = points.rows(slice(_START_POINTS))
    return dsgd_start(first, feature_map, options.k, centered=options.center)


def _take_blocks(options, state, points, begun):
    """The state after all blocks of a file. It is saved every 30 s and at the end, with the arrays
    `begun`: for each file, the last row that was read, and the number of rows."""
    name = f"read {os.path.realpath(points.path)}"
    *last, taken = begun.get(name, [0])
    taken = int(taken)
    n = len(points.X)
    _require(
        np.array_equal(points.X[taken - 1 : taken].ravel(), last, equal_nan=True),
        "FILE has changed in the rows that were read",
    )
    saved = time.perf_counter()
    # A single point cannot be centered. If only one is left, the block before includes it.
    ends = [*range(taken + options.block, n - 1, options.block), n] if taken < n else []
    for end in ends:
        state = update(state, points.rows(slice(taken, end)))
        taken = end
        if end == n or time.perf_counter() - saved > 30.0:
            begun[name] = np.append(points.X[end - 1], end)
            if options.state:
                # A file that was removed is written again.
                versions = options.version, None
                arrays = begun | _stored(state)
                options.version = _write_arrays(options.state, arrays, *versions)
            saved = time.perf_counter()
    held = sum(int(read[-1]) for key, read in begun.items() if key.startswith("read "))
    _to_stderr(f"{points.path}: {n} points{_shown_columns(points)}; the state holds {held}")
    return state


def _follow(options):
    record = _streams[_STREAM_METHODS[options.method]]
    sketched = "ell" in record.options
    _require(options.ell is None or sketched, "ell is not for --method dsgd")
    for name, value in record.options.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    _checked_count("block", options.block)
    _checked_count("k", options.k, options.ell if sketched else options.m)
    written = options.o or options.plot
    _require(len(options.files) == 1 or not written, "-o and --plot take one FILE: call apply")
    written = written or options.model or options.state
    _require(written, "pass -o, --model, --plot or --state")
    begun = {}
    state = None
    options.version = _version(options.state) if options.state else None
    if options.version:
        begun = _arrays_in(options.state)
        state = _made_from(begun, options.state)
        _require("options" in begun, "state must be a file that --state has written")
    for path in options.files:
        with _about_file(path):
            points = _load_points(path, options, state)
            _require(not _is_sparse(points.X), "FILE must be dense: streams take no sparse points")
            now = {name: vars(options)[name] for name in _REMEMBERED}
            if not begun:
                state = _started(options, points)._replace(names=_names_of(points.prepared))
                begun = {"options": json.dumps(now)}
            before = json.loads(str(begun["options"]))
            other = {name: before.get(name) for name in now if now[name] != before.get(name)}
            _require(not other, f"state must go on with the options {other}")
            state = _take_blocks(options, state, points, begun)
    model = finish(state) if record.most is None else finish(state, options.k)
    _write_results(options, points, model)


def _are_new(points, known, prepared):
    """Whether a model with these points has hardly seen the known ones: at most 5 % of them, and
    half of its own points. Points are equal if float32 cannot tell their coordinates apart."""
    from scipy.spatial import KDTree  # the import takes 0.1 s

    C = _in_double(points)
    mean, scale = map(prepared.get, _PREPARED[1:], (0.0, 1.0))
    rounding = np.finfo(np.float32).eps * (np.abs(C).max(0) + np.abs(np.divide(mean, scale)))
    rounding += rounding == 0.0
    tree = KDTree(C / rounding)
    gaps, nearest = tree.query(known / rounding, p=math.inf, distance_upper_bound=1.0)
    seen = np.isfinite(gaps)
    return seen.mean() <= 0.05 and 2 * len(np.unique(nearest[seen])) <= len(C)


def _known_residuals(options, model, arrays):
    if options.known is None:
        _require("known" in arrays, "--novelty needs --known FILE, or a model of embed --holdout")
        return arrays["known"]
    without = argparse.Namespace(**vars(options) | {"labels": [], "id": []})
    points = _load_points(options.known, without, model)
    _require(not _is_sparse(points.X), "known is for dense points: pass --holdout to embed")
    known = points.rows()
    with _about_file(options.known):
        found = residual(known, model)  # refuses points that do not fit the model
    _require(
        not hasattr(model, "points") or _are_new(model.points, known, points.prepared),
        "known must have points that the model has not seen, or their residuals are too small: "
        "pass others, or fit the model by embed --holdout 0.2",
    )
    return found


def _apply(options):
    alpha = options.novelty
    _require(options.o or options.plot, "pass -o or --plot")
    _require(alpha is not None or options.known is None, "known is only for --novelty ALPHA")
    with _about_file(options.by):
        arrays = _arrays_in(options.by)
        model = _made_from(arrays, options.by)
    points = _load_points(options.points, options, model)
    _to_stderr(f"{points.path}: {points.X.shape[0]} points")
    names = ["residual"] if options.residual else []
    if alpha is not None:
        _checked_share("novelty", alpha)
        known = _known_residuals(options, model, arrays)
        least = math.ceil(1.0 / alpha) - 1
        _require(
            known.size >= least,
            f"novelty {alpha} needs {least} known points, got {known.size} of "
            f"{options.known or options.by}: pass a larger one, or more by embed --holdout or --known",
        )
        names += ["p", "novel"]

    def further(X):
        columns = []
        if options.residual:
            columns.append(residual(X, model))
        if alpha is not None:
            p = novelty_pvalues(X, model, known)
            columns += [p, p <= alpha]
        return columns

    _write_results(options, points, model, names, further)


# 18.6 Options and help


def _column_names(text):
    names = next(csv.reader([text], skipinitialspace=True))
    _require(names, "a column must be named")
    return names


_ARGUMENTS = {  # for argparse
    "by": {"metavar": "MODEL.npz", "help": "model written by -o, --model or kpcasketch.save"},
    "points": {
        "metavar": "FILE",
        "help": ".npy, .npz (array X, or sparse matrix of scipy) or table, such as .csv; one point per row",
    },
    "files": {"metavar": "FILE", "nargs": "+", "help": "as in embed; scales are from the first"},
    "--header": {"action": argparse.BooleanOptionalAction, "help": "line 1 of a table is one"},
    "--columns": {"type": _column_names, "help": "columns of a table: a,b or 1,2"},
    "--drop": {"type": _column_names, "default": [], "help": "columns of a table to leave out"},
    "--labels": {
        "type": _column_names,
        "default": [],
        "help": "column that colors the picture (.npz: array y)",
    },
    "--id": {"type": _column_names, "help": "column to write beside the features, such as a name"},
    "--categorical": {
        "type": _column_names,
        "help": "columns that become an indicator per category (stream: those of the first 65,536 rows)",
    },
    "--missing": {"choices": ["median", "drop"], "help": "fill missing values, or drop rows"},
    "--encoding": {"help": "of a .csv file, for example cp1252"},
    "--delimiter": {"choices": _DELIMITERS, "help": "of a .csv file"},
    "--standardize": {"action": "store_true", "help": "scale columns to mean 0 and variance 1"},
    "-k": {"type": int, "default": 10, "help": "number of components (default 10)"},
    "--seed": {"type": int, "default": 0, "help": "seed of random choices (default 0)"},
    "--kernel": {"choices": _KERNELS, "default": "gaussian"},
    "--sigma": {"type": float, "help": "bandwidth (default: median distance)"},
    "--no-center": {
        "dest": "center",
        "action": "store_false",
        "default": True,
        "help": "keep the mean in feature space (component 1 is mostly this mean)",
    },
    "-s": {"type": int, "help": "landmarks (500), or sample one in s entries (4)"},
    "-m": {"type": int, "help": "number of random features (default: skpca 2000, dsgd 8192)"},
    "--ell": {"type": int, "help": "rows of the sketch of skpca (default 50)"},
    "--block": {"type": int, "help": "points per step (default: skpca 8192, dsgd 512)"},
    "--state": {"help": "resume from this file, save every 30 s"},
    "--holdout": {"type": float, "help": "share of points not fitted, for apply --novelty"},
    "--residual": {"action": "store_true", "help": "append a column of residuals (novelty)"},
    "--novelty": {"type": float, "help": "append p, and 1 if p is at most this"},
    "--known": {"metavar": "FILE", "help": "for --novelty: known points, not of the model"},
    "-o": {"help": "write features to a .csv, .npy or .npz file (.npz: and model)"},
    "--model": {"help": "write the model to a .npz file (privacy: it holds points)"},
    "--plot": {"help": "draw components and spectrum to a .png, .svg or .pdf file"},
}
_FILE = "--header --columns --labels --id --missing --encoding --delimiter"
_FIT = f"{_FILE} --drop --categorical --standardize -k --seed --kernel --sigma --no-center -o --model --plot"
_COMMANDS = {  # function, help, options, and methods (the first is the default)
    "demo": (_demo, "compare nine methods on built-in points", "-k --seed"),
    "embed": (
        _embed,
        "kernel PCA of a file: exact (lanczos, implicit), with a sampled or 1-bit matrix, or with landmarks",
        f"points {_FIT} -s --holdout",
        *_METHODS,
    ),
    "stream": (
        _follow,
        "kernel PCA of files of any size, with random features (skpca) or stochastic gradients (dsgd)",
        f"files {_FIT} -m --ell --block --state",
        *_STREAM_METHODS,
    ),
    "apply": (
        _apply,
        "features of new points, computed by a saved model",
        f"by points {_FILE} --residual --novelty --known -o --plot",
    ),
}


class _OneLine(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message.removeprefix("argument "))


def _parser():
    parser = _OneLine(prog="kpcasketch", description="Kernel PCA, exact or by sketches.")
    names = [given.get("dest", name.lstrip("-")) for name, given in _ARGUMENTS.items()]
    parser.set_defaults(**dict.fromkeys(names))
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (run, words, options, *methods) in _COMMANDS.items():
        command = commands.add_parser(name, help=words, description=words, epilog=_TABLES_HELP)
        command.set_defaults(run=run)
        for option in options.split():
            command.add_argument(option, **_ARGUMENTS[option])
        if methods:
            command.add_argument("--method", choices=methods, default=methods[0])
    return parser


def main(argv=None):
    """Run a command of the command line: demo, embed, stream or apply (textbook).

    Args:
        argv: list of str. Command and options. An empty list means demo. None means sys.argv[1:].
    Returns:
        int: Exit status. 0 on success, 2 on an error, 130 on an interrupt.
    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/X.npy", np.arange(12.0).reshape(6, 2))
        ...     main(["embed", f"{folder}/X.npy", "-k", "1", "-o", f"{folder}/features.npy"])
        ...     np.load(f"{folder}/features.npy").shape
        0
        (6, 1)
    """
    global _WORTH_COMPILING
    options = argparse.Namespace()
    try:
        if argv is None:  # in a short process, compile parallel code only for long computations
            _WORTH_COMPILING = 1_000_000_000
        _parser().parse_args((sys.argv[1:] if argv is None else argv) or ["demo"], options)
        _check_files(options)
        options.run(options)
    except KeyboardInterrupt:
        _to_stderr("interrupted")
        return 130
    except (ValueError, OSError, MemoryError, ImportError, csv.Error) as error:
        text = getattr(error, "refused", str(error)) or type(error).__name__
        name, _, rest = text.partition(" ")
        told = vars(options)
        path = getattr(error, "path", told.get("points"))
        if told.get(name) is not None:  # name the option as typed
            text = f"{'-' if len(name) == 1 else '--'}{name} {rest}"
        elif path:
            text = f"{path}: {text}"
        _to_stderr(f"error: {text}")
        return 2
    return 0


__all__ = sorted(
    name
    for name, value in globals().items()
    if getattr(value, "__module__", "") == __name__ and name[0] != "_" and name != "main"
)

if __name__ == "__main__" and pathlib.Path(globals().get("__file__", "")).name == "kpcasketch.py":
    # The imported module runs, so that Numba caches its code on disk. A pasted file runs nothing.
    sys.exit(importlib.import_module("kpcasketch").main())

# Copyright (c) 2026, the kpcasketch developers
#
# Redistribution and use in source and binary forms, with or without modification, are permitted
# provided that the following conditions are met:
#
# 1. Redistributions of source code must retain the above copyright notice, this list of conditions
#    and the following disclaimer.
#
# 2. Redistributions in binary form must reproduce the above copyright notice, this list of
#    conditions and the following disclaimer in the documentation and/or other materials provided
#    with the distribution.
#
# 3. Neither the name of the copyright holder nor the names of its contributors may be used to
#    endorse or promote products derived from this software without specific prior written
#    permission.
#
# THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR
# IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND
# FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR
# CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
# DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE,
# DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER
# IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT
# OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
