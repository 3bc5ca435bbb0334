# SPDX-License-Identifier: BSD-3-Clause
"""The papers' data sets, from the directory of --data-dir: which they are, and how they are loaded."""

import pathlib

import numpy as np

import kpcasketch as kp
from paper_checks.claims import PAPERS

FILES = {
    "Covertype": "covtype.npz",
    "Adult": "adult_a9a.npz",
    "cpu_act": "cpu_act.npz",
    "german": "german_numeric.npz",
    "pendigits": "pendigits.npz",
    "mnist": "mnist10k.npz",
    "yale": "yaleb32.npz",
    "sarcos": "sarcos_test.npz",
    "qm7": "qm7_coulomb.npz",
    "usps": "usps.npz",
}
EXACT, SUBSET, STAND_IN, MISSING = "exact", "subset", "stand-in", "missing"
SETS = (
    ("rskpca", "german, 1000 x 24", "german", EXACT),
    ("rskpca", "pendigits, 3500 x 16", "pendigits", f"{SUBSET}: the 3498 test rows"),
    ("rskpca", "usps, 9298 x 256", "usps", f"{EXACT}; the unit of the paper's pixels is not known"),
    ("rskpca", "yale, 5768 x 520", "yale", f"{STAND_IN}: 2414 faces of the extended set B"),
    ("skpca", "RandomNoisy, 20,000 x 1000", "", f"{EXACT}: drawn by the paper's rule"),
    ("skpca", "CPU, 7373 x 21", "cpu_act", f"{EXACT} (8192 rows with those for testing)"),
    (
        "skpca",
        "Adult, 33,561 x 123",
        "Adult",
        f"{EXACT}: 48,842 rows here, at most 21,000 of them used",
    ),
    ("skpca", "Forest, 523,910 x 54", "Covertype", f"{SUBSET}: 9664 uniform rows"),
    ("dsgd", "normal points, 10^6", "", f"{EXACT}: drawn; half of them by default"),
    (
        "dsgd",
        "two latent components, 10^6",
        "",
        f"{STAND_IN}: the paper does not give their parameters",
    ),
    (
        "dsgd",
        "MolecularSpace, 2.3 million x 5625",
        "qm7",
        f"{STAND_IN}: 7101 molecules of QM7, 529 entries",
    ),
    ("dsgd", "MNIST 8M, 8.1 million halves", "mnist", f"{STAND_IN}: 10,000 undeformed images"),
    (
        "dsgd",
        "KUKA arm, 2 million x 21",
        "sarcos",
        f"{STAND_IN}: 4449 rows of SARCOS, or a simulated arm",
    ),
    ("rls", "YearPredictionMSD, 515,345 x 90", "", f"{MISSING}: cpu_act is shown in its place"),
    ("rls", "Covertype, 581,012 x 54", "Covertype", f"{SUBSET}: 9664 uniform rows"),
    ("rls", "Cod-RNA, 331,152 x 8", "", MISSING),
    (
        "rls",
        "Adult, 48,842 x 110",
        "Adult",
        f"{EXACT} up to its coding (123 columns), 3000 rows are used",
    ),
)


class Users:
    """The points of --data, and what a claim or a figure has taken of them since `begin`."""

    def __init__(self, path):
        """Refuses, by ValueError, what the command line refuses, and fewer than 300 rows."""
        try:
            options = kp._parser().parse_args(["embed", str(path)])
            self.X = np.asarray(kp._load_points(options).rows(), float)
        except OSError as error:
            raise ValueError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        if len(self.X) < 300:
            raise ValueError(
                f"{path} has {len(self.X)} rows, and claims need 300 to measure anything"
            )
        distinct = len(np.unique(self.X, axis=0))
        if distinct < 300:
            raise ValueError(
                f"{path} has {distinct} rows that differ, and claims need 300 to measure anything"
            )
        self.name = pathlib.Path(path).name
        self.begin()

    def begin(self):
        self.used, self.missed = False, 0

    def rows(self, n, seed):
        """n rows in random order; None if there are fewer, as a claim says what n it was checked at."""
        if n > len(self.X):
            self.missed = max(self.missed, n)
            return None
        self.used = True
        return self.X[np.random.default_rng(seed).permutation(len(self.X))[:n]]

    def told(self):
        """Whose points were taken, in words."""
        short = (
            f"{self.missed} are wanted, and {self.name} has {len(self.X)}" if self.missed else ""
        )
        if self.used:
            return f"points of {self.name}" + (f", and its own where {short}" if short else "")
        return "points of its own" + (f": {short}" if short else ", which it constructs")


def table(papers):
    """Lines of a Markdown table: each set of each paper, and what is run in its place."""
    rows = [
        f"| {PAPERS[paper][1]} | {words} | {kind} |"
        for paper, words, _, kind in SETS
        if paper in papers
    ]
    return ["| paper | its set | here |", "| --- | --- | --- |", *rows]


def standardised(X):
    """Columns of mean 0 and variance 1, without those that do not vary."""
    spread = X.std(0)
    return (X - X.mean(0))[:, spread > 0] / spread[spread > 0]


def load(folder, name, rows=None, raw=False):
    """(points, targets or None) of a data set, standardised unless raw; None if it is not there. Of Covertype, a
    uniform sample."""
    path = folder / FILES[name] if folder is not None else None
    if path is None or not path.exists():
        return None
    with np.load(path) as arrays:
        chosen = (
            np.flatnonzero(arrays["part"] == 1)
            if "part" in arrays.files
            else np.arange(len(arrays["X"]))
        )
        X = arrays["X"][chosen[:rows]].astype(float)
        return X if raw else standardised(X), arrays["y"][
            chosen[:rows]
        ] if "y" in arrays.files else None
