# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of the README: digits by the command line, and the error of six sketches against their memory."""

import io
import pathlib
import tempfile

import numpy as np

import kpcasketch as kp
from paper_checks import data

POINTS = 6000


def smaller(path, pixels):
    """The picture at this width: small enough for a repository."""
    from PIL import Image  # which matplotlib brings

    picture = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
    picture.resize((pixels, round(picture.height * pixels / picture.width)), Image.LANCZOS).save(
        path, optimize=True
    )


def digits(folder, X, y):
    """What `python -m kpcasketch embed pendigits.npz --plot digits.png` draws."""
    with tempfile.TemporaryDirectory() as place:
        points = str(pathlib.Path(place, "pendigits.npz"))
        np.savez(points, X=X, y=y)
        path = folder / "digits.png"
        asked = ["embed", points, "--plot", str(path)]
        if kp.main(asked) != 0:
            raise ValueError("the picture of digits could not be drawn")
    smaller(path, 1200)


SKETCHES = {
    "sampled entries": (
        (2.0, 4.0, 8.0, 16.0, 32.0),
        lambda X, kernel, s: kp.sample_gram(X, kernel, s),
    ),
    "one bit per entry": ((1,), lambda X, kernel, s: kp.quantize_gram(X, kernel)),
    "Fourier features": (
        (50, 100, 200, 400, 800, 1600),
        lambda X, kernel, m: kp.LowRank(
            kp.features(X, kp.fourier_features_map(kernel, X.shape[1], m))
        ),
    ),
    "uniform landmarks": (
        (50, 100, 200, 400, 800, 1600),
        lambda X, kernel, s: kp.LowRank(
            kp.nystrom(X, kp.uniform_landmarks(len(X), s).indices, kernel)
        ),
    ),
    "leverage scores": (
        (50, 100, 200, 400, 800, 1600),
        lambda X, kernel, s: kp.LowRank(
            kp.nystrom(X, kp.recursive_rls_practical(X, kernel, s).indices, kernel)
        ),
    ),
    "rpcholesky": (
        (50, 100, 200, 400, 800, 1600),
        lambda X, kernel, s: kp.LowRank(kp.nystrom(X, kp.rpcholesky(X, kernel, s).indices, kernel)),
    ),
}


def sketches(folder, X):
    """Error of six sketches of one Gram matrix against the bytes that they hold."""
    from matplotlib.figure import Figure

    kernel = kp.gaussian(kp.median_bandwidth(X))
    exact = kp.Implicit(X, kernel)
    norm = kp.spectral_norm(exact)
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for (name, (sizes, make)), marker in zip(SKETCHES.items(), "os^vDP"):
        made = [make(X, kernel, size) for size in sizes]
        errors = [kp.spectral_error(A, exact, tol=1e-2) / norm for A in made]
        axes.loglog(
            [kp.nbytes(A) / 1e6 for A in made], errors, marker + "-", label=name, markersize=5
        )
    axes.axvline(8e-6 * len(X) ** 2, color="0.5", linestyle=":", label="Gram matrix")
    axes.set(
        xlabel="memory of the sketch in megabytes",
        ylabel="spectral error / largest eigenvalue",
        title=f"{len(X):,} handwritten digits, Gaussian kernel with the median distance as bandwidth",
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.legend(loc="lower left", frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(folder / "sketches.png", dpi=200)
    smaller(folder / "sketches.png", 1200)


def draw(folder, data_dir):
    """Both pictures; returns their paths."""
    found = {name: data.load(data_dir, name, POINTS, raw=True) for name in ("pendigits", "mnist")}
    for name, arrays in found.items():
        if arrays is None:
            raise ValueError(f"the pictures need {data.FILES[name]} in --data-dir")
    folder.mkdir(parents=True, exist_ok=True)
    print("drawing digits.png", flush=True)
    digits(folder, *found["pendigits"])
    print("drawing sketches.png, which takes a minute or two", flush=True)
    sketches(folder, found["mnist"][0] / 255.0)
    return [folder / "digits.png", folder / "sketches.png"]
