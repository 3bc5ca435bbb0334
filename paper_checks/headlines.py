# SPDX-License-Identifier: BSD-3-Clause
"""python -m paper_checks headlines [NAME] --data-dir DIR --out DIR: the papers' headlines at the papers' sizes.

A headline is made of pieces. What a piece measures is kept in OUT/NAME.json as soon as it is there, and a long descent
its state once a minute, so that a run that was stopped goes on where it was. Each headline returns rows of (what, the
paper's figure, ours). To add one: a function of a Run under `@headline`, all of whose work is done in `run.piece` and
`run.descend`, with sizes through `run.size`.
"""

import datetime
import json
import math
import os
import platform
import resource
import sys
import time

import numba
import numpy as np
from scipy import linalg, stats

import kpcasketch as kp
from paper_checks import (
    data,
    dsgd2015,
    dsgd2015_experiments,
    implicit_steps,
    published,
    reservoirs,
    rskpca2013,
)
from paper_checks.tools import fourier, hermite, rnca, sin2, skpca, timed

HEADLINES = {}


def headline(name, paper):
    def register(function):
        HEADLINES[name] = paper, function
        return function

    return register


def write_whole(path, text):
    """A file that is the old one or the new one, whatever happens."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


class Run:
    """What a headline has measured so far, in a directory."""

    every = 60.0  # seconds between two states of a descent that are kept

    def __init__(self, name, options):
        self.name, self.out, self.data_dir, self.seed, self.scale = (
            name,
            options.out,
            options.data_dir,
            options.seed,
            options.scale,
        )
        self.place = self.out / f"{name}.json"
        asked = {"seed": self.seed, "scale": self.scale, "data": self.data_dir is not None}
        self.kept = (
            json.loads(self.place.read_text())
            if self.place.exists()
            else {"asked": asked, "pieces": {}}
        )
        if self.kept["asked"] != asked:
            raise ValueError(
                f"{self.place} was made with {self.kept['asked']}: give another --out, or the same words"
            )

    def size(self, n, least=1):
        """n, or so much less of it as the run is to be smaller."""
        return max(least, round(n * self.scale))

    def piece(self, key, function):
        """What `function` returns (a dictionary of numbers, or lists of them), with its seconds; from the file if it is
        there."""
        if key not in self.kept["pieces"]:
            self.tell(key)
            found, seconds = timed(function)
            self.kept["pieces"][key] = {
                **found,
                "seconds": seconds,
                "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
            self.keep()
        return self.kept["pieces"][key]

    def keep(self):
        write_whole(self.place, json.dumps(self.kept, indent=1))

    def tell(self, words):
        if sys.stderr.isatty():
            print(f"\r{self.name}: {words}\x1b[K", end="", file=sys.stderr, flush=True)

    def descend(self, key, start, batch, steps, measure=None, growth=1.3, by=kp):
        """(state after `steps` mini-batches batch(t), [(t, measure(state)), ...] at growing t); kept once a minute.
        by: what has update, save and load."""
        place = self.out / f"{self.name}-{key}.npz"
        found = self.kept.setdefault("descents", {}).setdefault(
            key, {"seconds": 0.0, "measured": []}
        )
        state = by.load(place) if place.exists() else start()
        found["measured"] = [one for one in found["measured"] if one[0] <= state.step]
        began = saved = time.perf_counter()
        # the state's own count: it is kept before the numbers are
        for t in range(state.step, steps):
            state = by.update(state, *batch(t))
            last = found["measured"][-1][0] if found["measured"] else 0
            if measure is not None and (t + 1 >= growth * last or t + 1 == steps):
                found["measured"].append([t + 1, measure(state)])
            if (now := time.perf_counter()) > saved + self.every or t + 1 == steps:
                by.save(place, state)
                found["seconds"] += now - began
                began = saved = time.perf_counter()
                self.keep()
                self.tell(f"{key}, {t + 1} of {steps} steps, {found['seconds']:.0f} s")
        return state, found

    def points(self, key, t, n, of):
        """Mini-batch t: a function of (seed, name, t) alone, so that any can be made again."""
        return of(np.random.default_rng([self.seed, *map(ord, key), t]), n)


def minutes(*pieces):
    return f"{sum(piece['seconds'] for piece in pieces) / 60:.2g} min"


@headline("dsgd-hermite", "dsgd")
def hermite_at_size(run):
    """Figure 1: one million points, 262,144 features, mini-batches of 512 and 128."""
    steps = run.size(1_000_000 // 512, 8)
    features = 64 + 128 * steps if run.scale < 1 else 2**18

    def batch(t):
        return (run.points("hermite", t, 512, lambda rng, n: rng.standard_normal((n, 1))),)

    def start():
        return kp.dsgd_start(
            batch(0)[0][:60],
            kp.fourier_features_map(
                dsgd2015.UNIT, 1, features, run.seed, stored=False, paired=False
            ),
            3,
            steps=kp.DSGDSteps(theta0=0.8, theta1=0.06, initial=64),
            centered=False,
        )

    state, found = run.descend(
        "steps",
        start,
        batch,
        steps,
        lambda state: dsgd2015.hermite_potential(kp.features(dsgd2015.NODES[:, None], state), 3),
    )

    def functions():
        H = kp.features(dsgd2015.NODES[:, None], kp.finish(state))
        values, _ = hermite(dsgd2015.NODES, 3)
        norms = np.sqrt((H**2 * dsgd2015.WEIGHTS[:, None]).sum(0) / values)
        return {"inner products": (np.diag(dsgd2015.products(H)) / norms).tolist()}

    t, potentials = np.array(found["measured"]).T
    late = 512 * t > min(3000, 256 * steps)
    fit = stats.linregress(np.log(t[late]), np.log(potentials[late]))
    single = run.piece("functions", functions)
    return [
        (
            "exponent of the potential in the points",
            "on par with -1",
            f"{fit.slope:.2f} +- {1.96 * fit.stderr:.2f}",
        ),
        ("potential at the end", "(the figure's axis ends at 1e-4)", f"{potentials[-1]:.2g}"),
        (
            "inner products with the true functions",
            "one coincides, two deviate slightly",
            ", ".join(f"{value:.5f}" for value in single["inner products"]),
        ),
        ("time", "", minutes(found)),
    ]


@headline("dsgd-latent", "dsgd")
def latent_at_size(run):
    """Figure 3: one million points, 8192 features, mini-batches of 512 and 256; rivals of equal memory, all five seeds,
    and of 2048 features, two. What is measured is the largest angle of the span of both functions of one view."""
    features, batch_size, places = 8192, 512, np.linspace(-4, 10, 300)[:, None]
    kernel, truth = kp.gaussian(0.5), dsgd2015_experiments.density_embeddings(places)
    steps = run.size(1_000_000 // 512, 8)
    errors, times = {}, []
    for r in range(5 if run.scale == 1 else 1):

        def batch(t, r=r):
            return run.points(f"latent {r}", t, batch_size, dsgd2015_experiments.latent)

        def start(r=r):
            maps = [
                kp.fourier_features_map(kernel, 1, features, 2 * r + view, paired=False)
                for view in (0, 1)
            ]
            return kp.dsgd_ksvd_start(*batch(0), *maps, 2, steps=kp.DSGDSteps(feature_batch=256))

        state, found = run.descend(f"gradients {r}", start, batch, steps)
        times.append(found)
        errors.setdefault("DSGD", []).append(
            run.piece(
                f"error {r}",
                lambda state=state: {"sin2": sin2(truth, kp.features(places, state))},
            )["sin2"]
        )
        for m in (181, 2048)[: 1 if r > 1 else 2] if run.scale == 1 else (16, 64):

            def fixed(kind, r=r, m=m):
                if kind == "Fourier":
                    of, maps = (
                        kp.features,
                        [
                            kp.fourier_features_map(kernel, 1, m, 2 * r + s, paired=False)
                            for s in (0, 1)
                        ],
                    )
                else:
                    first = [
                        np.concatenate(views)
                        for views in zip(*(batch(t, r) for t in range(-(-m // batch_size))))
                    ]
                    of = kp.features
                    maps = [
                        kp.nystrom_map(view, kp.uniform_landmarks(len(view), m, r), kernel)
                        for view in first
                    ]
                C = 0.0
                for t in range(0, steps, 16):
                    parts = [batch(i, r) for i in range(t, min(t + 16, steps))]
                    views = [np.concatenate(views) for views in zip(*parts)]
                    C = C + of(views[0], maps[0]).T @ of(views[1], maps[1])
                return {"sin2": sin2(truth, of(places, maps[0]) @ linalg.svd(C)[0][:, :2])}

            for kind in ("Fourier", "Nystrom"):
                found = run.piece(f"{m} {kind} {r}", lambda kind=kind: fixed(kind))
                errors.setdefault(f"{m} {kind}", []).append(found["sin2"])
    rows = [
        (
            f"sin^2 to the span of the components, {method}, {len(values)} seeds",
            {
                "DSGD": "almost perfect",
                "2048 Fourier": "confuses, or misjudges the spread",
                "2048 Nystrom": "confuses, or misjudges the spread",
            }.get(method, "not shown (equal memory)"),
            f"{np.mean(values):.2g} (largest {max(values):.2g})",
        )
        for method, values in errors.items()
    ]
    return [*rows, ("time of one descent", "", minutes(times[0]))]


@headline("dsgd-molecules", "dsgd")
def molecules_at_size(run):
    """Figure 2: 16,384 features, mini-batches of 1024 and 512, 4000 steps, eta = 1/(1 + .001 t); QM7 as stand-in."""
    found = data.load(run.data_dir, "qm7", raw=True)
    if found is None:
        return [
            ("not run", "2.3 million molecules", "qm7_coulomb.npz is not in the data directory")
        ]
    X, y = np.ascontiguousarray(found[0]), found[1]
    kernel, steps = kp.gaussian(kp.median_bandwidth(X, run.seed)), run.size(4000, 8)
    features, batch_size = (16384, 1024) if run.scale == 1 else (512, 128)

    def batch(t):
        return (
            X[run.points("molecules", t, batch_size, lambda rng, n: rng.integers(0, len(X), n))],
        )

    def start():
        return kp.dsgd_start(
            batch(0)[0],
            kp.fourier_features_map(kernel, X.shape[1], features, run.seed, paired=False),
            2,
            steps=kp.DSGDSteps(feature_batch=min(512, features // 2), theta0=1.0, theta1=0.001),
            centered=True,
        )

    state, descent = run.descend("steps", start, batch, steps)

    def compared():
        H = kp.features(X, state)
        H -= H.mean(0)
        linear = (X - X.mean(0)) @ linalg.eigh(np.cov(X.T))[1][:, ::-1][:, :2]
        exact = kp.features(X, kp.kpca(X, kernel, 2, run.seed, centered=True))
        return {
            "sin2": sin2(exact - exact.mean(0), H),
            "crowding": [dsgd2015_experiments.crowding(Z) for Z in (linear, H)],
            "rank correlation": float(
                stats.spearmanr(np.linalg.norm(H / H.std(0), axis=1), y).statistic
            ),
        }

    measured = run.piece("compared", compared)
    return [
        ("sin^2 from exact kernel PCA's plane", "", f"{measured['sin2']:.2g}"),
        (
            "largest over median distance from the middle: PCA, kernel PCA",
            "shrinks",
            ", ".join(f"{value:.3g}" for value in measured["crowding"]),
        ),
        (
            "rank correlation of the attribute with the distance from the mean",
            "higher values towards the center (figure)",
            f"{measured['rank correlation']:.2f} (energy for efficiency)",
        ),
        ("time", "", minutes(descent)),
    ]


@numba.njit
def mixed(state):
    """A 64-bit number from another (splitmix64), and that number moved on."""
    state += np.uint64(0x9E3779B97F4A7C15)
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31)), state


@numba.njit(parallel=True)
def deformed(images, seed, first, count):
    """Images `first` to `first + count` of an endless set, a function of (seed, number): one of `images` (values from 0
    to 1), turned by up to .2, shifted and bent by smooth waves of up to 1.5 pixels, and made thinner or thicker. Image
    1,000,003 of a seed has the deformation of image 0 of the next, so that disjoint sets want images of their own."""
    side = images.shape[1]
    out = np.empty((count, side, side))
    for i in numba.prange(count):
        state, u = np.uint64(seed) * np.uint64(1_000_003) + np.uint64(first + i), np.empty(16)
        for j in range(16):
            z, state = mixed(state)
            u[j] = 2.0 * ((z >> np.uint64(11)) * 2.0**-53) - 1.0
        image, middle = (
            images[int(0.5 * (u[0] + 1.0) * len(images)) % len(images)],
            0.5 * (side - 1),
        )
        cosine, sine, turn = math.cos(0.2 * u[1]), math.sin(0.2 * u[1]), 2.0 * math.pi / side
        bend = np.empty((2, side))  # waves of each axis, along the other
        for p in range(side):
            bend[0, p] = (
                1.5 * u[2]
                + u[3] * math.sin(turn * p + math.pi * u[4])
                + 0.5 * u[5] * math.sin(2 * turn * p + math.pi * u[6])
            )
            bend[1, p] = (
                1.5 * u[7]
                + u[8] * math.sin(turn * p + math.pi * u[9])
                + 0.5 * u[10] * math.sin(2 * turn * p + math.pi * u[11])
            )
        thick = 2.0 ** (0.6 * u[12])
        for r in range(side):
            for c in range(side):
                y = middle + cosine * (r - middle) - sine * (c - middle) + bend[0, c]
                x = middle + sine * (r - middle) + cosine * (c - middle) + bend[1, r]
                y0, x0 = math.floor(y), math.floor(x)
                value = 0.0
                for dy in range(2):
                    for dx in range(2):
                        if 0 <= y0 + dy < side and 0 <= x0 + dx < side:
                            value += (
                                image[y0 + dy, x0 + dx]
                                * (1 - abs(y - y0 - dy))
                                * (1 - abs(x - x0 - dx))
                            )
                out[i, r, c] = value**thick
    return out


def halves_of(images):
    side = images.shape[2]
    return [
        np.ascontiguousarray(part.reshape(len(images), -1))
        for part in (images[:, :, : side // 2], images[:, :, side // 2 :])
    ]


@headline("dsgd-mnist8m", "dsgd")
def correlations_at_size(run):
    """Table 1: the 50 leading correlations of image halves; 20,480 features, mini-batches of 1024 and 2048, 3000 steps,
    of 9000 digits deformed without end, tested on 10,000 deformed ones of the other 1000. One seed. DSGD sees 3.07
    million images, by implicit steps, which are not the paper's, without ridge; fixed features see
    50,000, and their ridges are validated on other deformations of the test digits, which favours them."""
    found = data.load(run.data_dir, "mnist", raw=True)
    if found is None:
        return [("not run", "DSGD 43.5", "mnist10k.npz is not in the data directory")]
    full = run.scale == 1
    images, k = (found[0] / 255).reshape(-1, 28, 28), 50 if full else 5
    features, batch_size, steps = (20480, 1024, 3000) if full else (256, 256, 8)
    test, checked = (
        halves_of(deformed(images[9000:], run.seed + shift, 0, count))
        for shift, count in ((1, run.size(10_000, 500)), (2, run.size(5000, 500)))
    )
    first = halves_of(deformed(images[:9000], run.seed, 0, run.size(50_000, 2000)))
    kernels = [kp.gaussian(kp.median_bandwidth(view[:20_000], run.seed)) for view in first]

    def batch(t):
        return halves_of(deformed(images[:9000], run.seed, t * batch_size, batch_size))

    def total(views, transform):
        return {"sum": dsgd2015_experiments.correlation_sum(*transform(views))}

    def linear(ridge):
        weights = dsgd2015_experiments.cca(*first, k, ridge)
        return lambda views: [view @ w for view, w in zip(views, weights)]

    def fixed(kind, m, ridge):
        of = dsgd2015_experiments.makers(kernels, len(first[0]))[kind](first, m, run.seed)
        weights = dsgd2015_experiments.cca(*of(first), k, ridge)
        return lambda views: [F @ w for F, w in zip(of(views), weights)]

    paper = {
        ("linear", 0): "27.4",
        **dict(
            zip([("Fourier", 2**i) for i in range(8, 13)], ("25.2", "30.7", "35.3", "38.8", "41.5"))
        ),
        **dict(
            zip([("Nystrom", 2**i) for i in range(8, 13)], ("30.4", "35.3", "38.0", "41.1", "42.7"))
        ),
    }
    rows = []
    for (kind, m), figure in paper.items():
        if m > 256 and not full:
            continue

        def measured(kind=kind, m=m):
            fits = {
                ridge: linear(ridge) if kind == "linear" else fixed(kind, m, ridge)
                for ridge in (1e-6, 1e-5, 1e-4)
            }
            best = max(fits, key=lambda ridge: total(checked, fits[ridge])["sum"])
            return {"ridge": best, **total(test, fits[best])}

        piece = run.piece(f"{kind} {m}", measured)
        what = f"{kind}, {m} features" if m else kind
        rows.append(
            (
                f"{what}, {len(first[0]):,} images: sum of {k} test correlations",
                figure,
                f"{piece['sum']:.2f} (ridge {piece['ridge']:.0e}; {minutes(piece)} for all ridges)",
            )
        )

    def start(stored=True):
        maps = [
            kp.fourier_features_map(
                kernel, 392, features, 2 * run.seed + view, stored=stored, paired=False
            )
            for view, kernel in enumerate(kernels)
        ]
        some = [view[:8192].copy() for view in first]
        by_tenths = kp.DSGDSteps(feature_batch=features // 10)
        state = kp.dsgd_kcca_start(*some, *maps, k, steps=by_tenths)
        return implicit_steps.start(state, *some)

    found, descent = run.descend("gradients", start, batch, steps, by=implicit_steps)
    state = kp.finish(found.mean)
    ours = run.piece(
        "gradients",
        lambda: total(
            test,
            lambda views: [
                kp.features(views[0], state.first),
                kp.features(views[1], state.second),
            ],
        ),
    )

    def one_step():
        """Seconds of a step in the end, frequencies stored and drawn anew, and of the images for it."""
        undrawn = start(False).mean
        drawn = implicit_steps.Implicit(
            *(
                state._replace(feature_map=undrawn.feature_map, other=undrawn.other)
                for state in found
            )
        )
        states, views, taken = [found, drawn], batch(0), []
        for one in (*states, *states, *states):  # the first of each may have to be compiled
            taken.append(timed(lambda one=one: implicit_steps.update(one, *views))[1])
        return {
            "stored": min(taken[2::2]),
            "drawn": min(taken[3::2]),
            "images": timed(lambda: batch(1))[1],
        }

    step = run.piece("one step", one_step)
    return [
        *rows,
        (
            f"DSGD, {features} features, implicit steps, {steps * batch_size:,} images: sum of {k} test "
            "correlations",
            "43.5 in 183 minutes",
            f"{ours['sum']:.2f} ({minutes(descent)})",
        ),
        (
            "seconds of a step, frequencies stored and drawn anew; of its images",
            "",
            ", ".join(f"{step[what]:.2g}" for what in ("stored", "drawn", "images")),
        ),
    ]


# A 7-joint arm of the size of a light-weight robot: places of its joints, turns of their frames (x, y, z), masses,
# centers of mass, and moments of inertia about them, which are those of slim cylinders.
JOINTS = np.array(
    [
        [0, 0, 0.15],
        [0, 0, 0.19],
        [0, 0.21, 0],
        [0, 0, 0.19],
        [0, 0.21, 0],
        [0, 0.061, 0.19],
        [0, 0.081, 0.061],
    ]
)
TURNS = (
    np.pi
    / 2
    * np.array([[0, 0, 0], [1, 0, 2], [1, 0, 2], [1, 0, 0], [-1, 2, 0], [1, 0, 0], [-1, 2, 0]])
)
MASSES = np.array([3.45, 3.48, 4.06, 3.48, 2.16, 2.35, 3.13])
CENTERS = np.array(
    [
        [0, -0.03, 0.12],
        [0, 0.059, 0.042],
        [0, 0.03, 0.13],
        [0, 0.067, 0.034],
        [0, 0.021, 0.076],
        [0, 0.001, 0],
        [0, 0, 0.02],
    ]
)
INERTIAS = MASSES[:, None] * np.array([0.011, 0.010, 0.003])


def turned(x, y, z):
    """Rotation matrix of turns about x, then y, then z."""
    (a, b, c), (d, e, f) = np.cos((x, y, z)), np.sin((x, y, z))
    return (
        np.array([[c, -f, 0], [f, c, 0], [0, 0, 1]])
        @ np.array([[b, 0, e], [0, 1, 0], [-e, 0, b]])
        @ np.array([[1, 0, 0], [0, a, -d], [0, d, a]])
    )


FRAMES = np.array([turned(*angles) for angles in TURNS])


def torques(q, v, a, gravity=9.81):
    """(torques (n, 7) of the arm, its energy (n,)) for angles, velocities and accelerations (n, 7), by the recursive
    Newton-Euler algorithm: outwards for the motion, inwards for the forces."""
    n, axis = len(q), np.array([0.0, 0.0, 1.0])
    turns, forces, moments = [], [], []
    w, dw, acc, speed = (
        np.zeros((n, 3)),
        np.zeros((n, 3)),
        np.full((n, 3), gravity) * axis,
        np.zeros((n, 3)),
    )
    up, height, energy = np.repeat(np.eye(3)[None], n, 0), 0.0, np.zeros(n)
    for i, place in enumerate(JOINTS):
        c, s, zero = np.cos(q[:, i]), np.sin(q[:, i]), np.zeros(n)
        turn = FRAMES[i] @ np.moveaxis(
            np.array([[c, -s, zero], [s, c, zero], [zero, zero, zero + 1]]), 2, 0
        )

        def into(z, turn=turn):  # coordinates in the next frame
            return np.einsum("nij,ni->nj", turn, z)

        acc = into(acc + np.cross(dw, place) + np.cross(w, np.cross(w, place)))
        speed, height = into(speed + np.cross(w, place)), height + up[:, 2] @ place
        up, spin = up @ turn, into(w)
        dw = into(dw) + np.cross(spin, v[:, i, None] * axis) + a[:, i, None] * axis
        w = spin + v[:, i, None] * axis
        forces.append(
            MASSES[i] * (acc + np.cross(dw, CENTERS[i]) + np.cross(w, np.cross(w, CENTERS[i])))
        )
        moments.append(INERTIAS[i] * dw + np.cross(w, INERTIAS[i] * w))
        moving = speed + np.cross(w, CENTERS[i])
        energy += (
            0.5 * MASSES[i] * (moving**2).sum(1)
            + 0.5 * (INERTIAS[i] * w**2).sum(1)
            + MASSES[i] * gravity * (height + up[:, 2] @ CENTERS[i])
        )
        turns.append(turn)
    f, m, out = np.zeros((n, 3)), np.zeros((n, 3)), np.empty((n, 7))
    for i in range(6, -1, -1):
        if i < 6:
            f = np.einsum("nij,nj->ni", turns[i + 1], f)
            m = np.einsum("nij,nj->ni", turns[i + 1], m) + np.cross(JOINTS[i + 1], f)
        m = m + moments[i] + np.cross(CENTERS[i], forces[i])
        f, out[:, i] = f + forces[i], m[:, 2]
    return out, energy


def motions(rng, n):
    """(inputs (n, 21), torques (n, 7)) at random moments of 64 rhythmic motions: q_j = a_j sin(w_j t + p_j), at four
    speeds."""
    rhythms = np.random.default_rng(64)
    a, w, p = (
        rhythms.uniform(0.3, 1.2, (64, 7)),
        rhythms.uniform(0.5, 3, (64, 7)),
        rhythms.uniform(0, 6.28, (64, 7)),
    )
    w *= np.array([0.5, 1.0, 1.5, 2.0])[np.arange(64) % 4][:, None]
    X, Y = np.empty((n, 21)), np.empty((n, 7))
    for rows in np.array_split(np.arange(n), -(-n // 20_000)):
        which, t = rng.integers(0, 64, len(rows)), rng.uniform(0, 60, (len(rows), 1))
        angle, size, speed = w[which] * t + p[which], a[which], w[which]
        parts = size * np.sin(angle), size * speed * np.cos(angle), -size * speed**2 * np.sin(angle)
        X[rows], Y[rows] = np.concatenate(parts, 1), torques(*parts)[0]
    return X, Y


RIDGES = (1e-7, 1e-6, 1e-5, 1e-4)


@headline("dsgd-kuka", "dsgd")
def dynamics_at_size(run):
    """Figure 4: sliced inverse regression to 7 directions on 2 million moments of 64 rhythmic motions of a 7-joint arm;
    10,240 features, mini-batches of 1024, 2000 implicit steps, which are not the paper's; 20 % for testing, 5000
    points for validation. SARCOS's test set as a real one."""
    rows = regressed(
        run, "arm", *motions(np.random.default_rng([run.seed, 5]), run.size(2_000_000, 4000))
    )
    real = data.load(run.data_dir, "sarcos", raw=True)
    if real is not None:
        order = np.random.default_rng([run.seed, 6]).permutation(len(real[0]))
        rows += regressed(run, "SARCOS", real[0][order], real[1][order])
    return rows


def regressed(run, name, X, Y, k=7, slices=20):
    """Rows of errors of linear regression on k functions; of points in random order the first fifth is for testing, the
    next points are for validation of ridges (of gradients by a tenth of the steps), and those after them for fixed
    features."""
    full, n = run.scale == 1, len(X)
    features, batch_size, steps = (10240, 1024, 2000) if full else (256, 256, 20)
    X, Y = ((A - A.mean(0)) / A.std(0) for A in (X, Y))
    held, checked = n // 5, min(5000, n // 10)
    test, check = slice(held), slice(held, held + checked)
    near = slice(check.stop, min(n, check.stop + (50_000 if full else 2000)))
    kernel = kp.gaussian(kp.median_bandwidth(X[check.stop :][:20_000], run.seed))

    def error(f, rows=test):
        """Mean squared error on some points, in units of the variance, of linear regression on the functions."""
        design, new = (
            np.c_[np.ones(part.stop - (part.start or 0)), f(X[part])] for part in (near, rows)
        )
        return float(
            ((new @ np.linalg.lstsq(design, Y[near], rcond=None)[0] - Y[rows]) ** 2).mean()
        )

    def validated(fits):
        best = min(fits, key=lambda ridge: error(fits[ridge], check))
        return {"ridge": best, "error": error(fits[best])}

    linear = run.piece(f"{name}, linear", lambda: {"error": error(lambda new: new)})
    rows = [(f"{name}, linear regression: error", "", f"{linear['error']:.3g}")]
    one = np.stack(
        [np.searchsorted(np.quantile(y, np.arange(1, slices) / slices), y) for y in Y[near].T], 1
    )
    one = (one[:, :, None] == np.arange(1, slices)).reshape(len(one), -1).astype(float)
    for kind in ("Fourier", "Nystrom"):
        for m in (
            m
            for m in ((512, 1024, 2048, 4096) if full else (64, 128))
            if m <= near.stop - near.start
        ):

            def fixed(kind=kind, m=m):
                of = dsgd2015_experiments.makers([kernel], near.stop - near.start)[kind](
                    [X[near]], m, run.seed
                )
                F = of([X[near]])[0]

                def fit(ridge):
                    w = dsgd2015_experiments.cca(F, one, k, ridge)[0]
                    return lambda new: np.concatenate(
                        [of([new[i : i + 20_000]])[0] @ w for i in range(0, len(new), 20_000)]
                    )

                return validated({ridge: fit(ridge) for ridge in RIDGES})

            piece = run.piece(f"{name}, {kind} {m}", fixed)
            rows.append(
                (
                    f"{name}, {kind}, {m} features, {near.stop - near.start:,} points: error",
                    "falls with features" if kind == "Fourier" else "worst",
                    f"{piece['error']:.3g} (ridge {piece['ridge']:.0e}; {minutes(piece)} for all ridges)",
                )
            )

    def start(ridge):
        found, some = (
            kp.fourier_features_map(kernel, 21, features, run.seed, paired=False),
            slice(near.start, near.start + 2000),
        )
        state = kp.dsgd_ksir_start(
            X[some],
            Y[some],
            found,
            k,
            steps=kp.DSGDSteps(feature_batch=min(1024, features // 2)),
            slices=slices,
            lam=ridge,
        )
        return implicit_steps.start(state, X[some])

    def descent(batch_size, steps, mark):
        """The row of gradients; pieces carry the mark."""

        def batch(t):
            chosen = run.points(
                name, t, batch_size, lambda rng, count: rng.integers(check.stop, n, count)
            )
            return X[chosen], Y[chosen]

        def chosen():
            fits = {}
            for ridge in RIDGES:
                state = start(ridge)
                for t in range(steps // 10):
                    state = implicit_steps.update(state, *batch(t))
                fits[ridge] = lambda new, state=state: kp.features(new, state.mean)
            return validated(fits)

        trial = run.piece(f"{name}, ridge of gradients{mark}", chosen)
        state, steps_taken = run.descend(
            f"gradients, {name}{mark}",
            lambda: start(trial["ridge"]),
            batch,
            steps,
            by=implicit_steps,
        )
        ours = run.piece(
            f"{name}, gradients{mark}",
            lambda: {"error": error(lambda new: kp.features(new, state.mean))},
        )
        return (
            f"{name}, DSGD, {features} features, {steps} implicit steps of {batch_size} points: error",
            "" if mark else "lowest",
            f"{ours['error']:.3g} (ridge {trial['ridge']:.0e}; {minutes(steps_taken, trial)} for all ridges)",
        )

    rows.append(descent(batch_size, steps, ""))
    # as many points, four times as many at a time: not the paper's
    if n - check.stop > 4 * batch_size:
        rows.append(descent(4 * batch_size, steps // 4, ", larger batches"))
    return rows


def clouds(rng, n, d):
    """A mixture with leverage like Covertype's: clusters whose sizes and widths fall geometrically, few points far
    off."""
    which = np.minimum(rng.geometric(0.3, n) - 1, 15)
    centers = np.random.default_rng(90).standard_normal((16, d))
    return 3 * centers[which] + rng.standard_normal((n, d)) * 0.85 ** which[
        :, None
    ] * 0.97 ** np.arange(d)


@headline("rls-large", "rls")
def landmarks_at_size(run):
    """Sections 5.2 and 5.3: 2000 landmarks of 463,716 points in 90 dimensions, ridge regression after it."""
    n, s, d = run.size(463_716, 2000), run.size(2000, 50), 90
    X = clouds(np.random.default_rng([run.seed, 1]), n, d)
    y, kernel = (
        np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 9,
        kp.gaussian(kp.median_bandwidth(X[:20_000], run.seed)),
    )
    some = np.random.default_rng([run.seed, 2]).choice(n, min(n, 20_000), replace=False)
    near = X[some]
    pickers = {
        "uniform": lambda: kp.uniform_landmarks(n, s, run.seed),
        "recursive": lambda: kp.recursive_rls_practical(X, kernel, s, run.seed),
        "accelerated": lambda: kp.recursive_rls_accelerated(X, kernel, s, run.seed),
        "rpcholesky": lambda: kp.rpcholesky(X, kernel, s, run.seed),
    }
    rows, whole = [], None
    for name, pick in pickers.items():
        found = run.piece(f"landmarks, {name}", lambda pick=pick: {"rows": pick().indices.tolist()})
        indices = np.array(found["rows"])
        factor = run.piece(
            f"factor, {name}", lambda i=indices: {"sum": float(kp.nystrom(X, i, kernel).sum())}
        )
        whole = whole or run.piece(
            "norm", lambda: {"norm": kp.spectral_norm(kp.Implicit(near, kernel), 0, tol=0.05)}
        )
        error = run.piece(
            f"error, {name}",
            lambda i=indices: {
                "error": kp.spectral_error(
                    kp.Implicit(near, kernel),
                    kp.LowRank(kp.features(near, kp.nystrom_map(X, i, kernel))),
                    0,
                    tol=0.05,
                )
            },
        )
        rows.append(
            (
                f"{name}: seconds for landmarks, for the factor",
                "307 in all" if name == "recursive" else "",
                f"{found['seconds']:.3g}, {factor['seconds']:.3g}",
            )
        )
        rows.append(
            (
                f"{name}: |K - K~| / |K| on {len(near):,} points",
                "",
                f"{error['error'] / whole['norm']:.2g}",
            )
        )
    ridge = run.piece(
        "ridge regression",
        lambda: {
            "sum": float(
                kp.nystrom_ridge(
                    X,
                    y,
                    np.array(run.kept["pieces"]["landmarks, accelerated"]["rows"]),
                    kernel,
                    1.0,
                    intercept=False,
                ).coef.sum()
            )
        },
    )
    features = run.piece(
        "Fourier features", lambda: {"sum": float(fourier(X, kernel, s, run.seed).sum())}
    )
    peak = max(piece["megabytes"] for piece in run.kept["pieces"].values())
    return [
        *rows,
        ("Fourier features: seconds", "43", f"{features['seconds']:.3g}"),
        ("ridge regression: seconds", "208", f"{ridge['seconds']:.3g}"),
        ("peak memory", "16 GB machine", f"{peak / 1024:.2g} GB"),
    ]


@headline("skpca-large", "skpca")
def streams_at_size(run):
    """Section 4 with a million points: space, seconds and error of SKPCA, RNCA and Nystrom with 1000 features."""
    n, m, d, near = run.size(1_000_000, 3000), run.size(1000, 60), 20, 2000
    X = clouds(np.random.default_rng([run.seed, 3]), n, d)
    kernel = kp.gaussian(kp.median_bandwidth(X[:20_000], run.seed))
    some = X[:near].copy()
    K, rows = kp.gram(some, some, kernel), []
    methods = {
        "SKPCA, l = 50": (
            lambda: skpca(X, kernel, 50, m, 50, run.seed),
            kp.features,
            d * m + 50 * m,
        ),
        "SKPCA, l = 20": (
            lambda: skpca(X, kernel, 20, m, 20, run.seed),
            kp.features,
            d * m + 20 * m,
        ),
        "RNCA, 50": (lambda: rnca(X, kernel, 50, m, run.seed), kp.features, m * m + m * d),
        "Nystrom, 50": (
            lambda: reservoirs.nystrom(X, kernel, 50, m, run.seed),
            kp.features,
            m * m + m * d,
        ),
    }
    for name, (train, transform, numbers) in methods.items():

        def measured(train=train, transform=transform):
            model, seconds = timed(train)
            F, testing = timed(lambda: transform(some, model))
            return {
                "train": seconds,
                "test": testing / near,
                "error": kp.spectral_error(K, kp.LowRank(F), 0, tol=0.01) / near,
            }

        found = run.piece(name, measured)
        rows.append(
            (
                f"{name}: numbers held, seconds to train, microseconds to test, |G - G'|/n",
                "",
                f"{numbers:,}, {found['train']:.3g}, {1e6 * found['test']:.3g}, {found['error']:.3g}",
            )
        )
    return rows


@headline("ams-large", "ams")
def matrices_at_size(run):
    """Kernel PCA by sampled and 1-bit Gram matrices of 100,000 points: seconds, bytes, and errors over 4 sigma sqrt(n),
    theorem 1's rule, whose hypothesis the entries do not meet at this n. Eigenpairs of all by block Lanczos: between
    eigenvalues this much alike the paper's orthogonal iteration takes some hundred products."""
    n, k = run.size(100_000, 1500), 5
    X, kernel, rows = (
        np.random.default_rng([run.seed, 4]).standard_normal((n, 10)),
        kp.gaussian(6.0),
        [],
    )

    def exact():
        found = kp.block_lanczos(kp.Implicit(X, kernel), k, run.seed, tol=1e-6)
        np.save(run.out / "ams-large-vectors.npy", found.vectors)
        return {"values": found.values.tolist()}

    values = np.array(run.piece("exact", exact)["values"])
    rows.append(("exact, implicit: seconds", "", f"{run.kept['pieces']['exact']['seconds']:.3g}"))
    makers = {"1 bit": (lambda: kp.quantize_gram(X, kernel, run.seed), 1.0)}
    for s in (8, 16, 64):
        makers[f"sampled, s = {s}"] = (
            lambda s=s: kp.sample_gram(X, kernel, float(s), run.seed),
            math.sqrt(s - 1),
        )
    for name, (make, sigma) in makers.items():

        def measured(make=make):
            A, making = timed(make)
            found, seconds = timed(lambda: kp.block_lanczos(A, k, run.seed, tol=1e-6))
            angle = linalg.subspace_angles(
                np.load(run.out / "ams-large-vectors.npy")[:, :1], found.vectors[:, :1]
            )[0]
            return {
                "making": making,
                "pairs": seconds,
                "bytes": kp.nbytes(A),
                "values": found.values.tolist(),
                "angle": float(angle),
            }

        found = run.piece(name, measured)
        rule = 4 * sigma * math.sqrt(n)  # theorem 1's rule; theorem 3 turns it into an angle
        rows.append(
            (
                f"{name}: seconds to make, for pairs, GB; error of eigenvalues, and angle of the first vector, "
                "over the rule's",
                "",
                f"{found['making']:.3g}, {found['pairs']:.3g}, {found['bytes'] / 1e9:.2g}; "
                f"{np.abs(np.array(found['values']) - values).max() / rule:.2g}, "
                f"{found['angle'] * (values[0] - values[1]) / (2 * rule):.2g}",
            )
        )
    return rows


@headline("rskpca-all", "rskpca")
def every_panel(run):
    """Figures 2 to 8: every panel for every set, 50 splits where the paper has 50."""
    rows, small = [], run.scale < 1
    for name in ("german", "pendigits"):
        if rskpca2013.the_set(name, run.data_dir) is None:
            continue

        def panels(name=name):
            ells, found = rskpca2013.measured_embeddings(name, run.data_dir, not small, run.seed)
            return {
                "l": ells.tolist(),
                "means": {method: values.mean(1).tolist() for method, values in found.items()},
            }

        found = run.piece(name, panels)
        at = {method: np.array(values)[-1] for method, values in found["means"].items()}
        rows.append(
            (
                f"{name}, l = 5: eigenvalue deviation, embedding error, training and test speed-up",
                "figures",
                "; ".join(
                    f"{method} {', '.join(f'{value:.2g}' for value in values)}"
                    for method, values in at.items()
                ),
            )
        )
    for name in ("usps", "yale"):
        if rskpca2013.the_set(name, run.data_dir) is None or small and name == "usps":
            continue

        def classes(name=name):
            found = rskpca2013.measured_accuracies(name, run.data_dir, not small, run.seed)
            return {
                method: np.concatenate(
                    [values[..., :1].mean(1), np.median(values[..., 1:], 1)], 1
                ).tolist()
                for method, values in found.items()
            }

        found = run.piece(name, classes)
        of = {
            method: np.array(values)[2]
            for method, values in found.items()
            if isinstance(values, list)
        }
        rows.append(
            (
                f"{name}, l = 4: accuracy; training, evaluation, all, times as fast as kernel PCA; retained",
                "competitive; up to an order of magnitude; below .1",
                "; ".join(
                    f"{method} {values[0]:.3f}, {', '.join(f'{q:.2g}' for q in gains)}, {values[4]:.2g}"
                    for method, values in of.items()
                    for gains in [of["kpca"][1:4] / values[1:4]]
                ),
            )
        )
    return rows or [("not run", "", "the sets are not in the data directory")]


headline("rpcholesky-samplers", "rls")(published.samplers_of_landmarks)
headline("rpcholesky-ridge", "rls")(published.preconditioned_ridge_regression)
headline("orthogonal-features", "skpca")(published.orthogonal_random_features)


def table(kept):
    """Lines of Markdown: what was measured beside the papers' figures."""
    lines = ["| headline | what | the paper | here |", "| --- | --- | --- | --- |"]
    for name, found in kept.items():
        lines += [
            "| " + " | ".join(cell.replace("|", "\\|") for cell in (name, *row)) + " |"
            for row in found["rows"]
        ]
    return lines


def main(options):
    """Run the headlines asked for, and write their table; a stop costs what was not kept."""
    options.out.mkdir(parents=True, exist_ok=True)
    place = options.out / "headlines.json"
    kept = json.loads(place.read_text()) if place.exists() else {}
    for name in [options.headlines] if options.headlines != "all" else HEADLINES:
        rows = HEADLINES[name][1](Run(name, options))
        kept[name] = {
            "rows": rows,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "date": str(datetime.date.today()),
            "scale": options.scale,
        }
        print(*table({name: kept[name]}), sep="\n", flush=True)
        write_whole(place, json.dumps(kept, indent=1) + "\n")
    return 0
