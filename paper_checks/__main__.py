# SPDX-License-Identifier: BSD-3-Clause
"""python -m paper_checks [--paper ams] [--claim AMS-T1] [--full] [--data X.npy] [--seed 0] [--report DIR]: a line for each claim, live.

Exit status 0 if every claim ends well, 1 if one FAILS, is undecided or vacuous, 2 for a wrong request.
"""

import argparse
import importlib
import importlib.util
import pathlib
import sys
import textwrap
import time

import numpy as np

from paper_checks import claims, report

PAPERS = {"ams": "ams2001", "rskpca": "rskpca2013", "skpca": "skpca2015", "dsgd": "dsgd2015", "rls": "rls2017"}


def parser():
    out = argparse.ArgumentParser(prog="python -m paper_checks", description="Judge the bounds that the papers state.")
    out.add_argument("--paper", choices=sorted(PAPERS), help="claims of one paper only")
    out.add_argument("--claim", help="claims whose name starts with this only")
    out.add_argument("--full", action="store_true", help="the papers' sizes (minutes) instead of quick ones")
    out.add_argument("--data", metavar="FILE.npy", help="an (n, d) array on which the data-dependent claims are checked")
    out.add_argument("--data-dir", metavar="DIR", type=pathlib.Path,
                     help="a directory with the papers' data sets, as covtype.npz, pendigits.npz, for their figures")
    out.add_argument("--seed", type=int, default=0, help="default %(default)s")
    out.add_argument("--report", metavar="DIR", type=pathlib.Path,
                     help="write report.md and report.html with figures into this directory (matplotlib)")
    out.add_argument("--quiet", action="store_true", help="the table without the texts")
    return out


def load(path):
    if path is None:
        return None
    try:
        X = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        sys.exit(refusal(f"cannot read {path}: {error}"))
    if not isinstance(X, np.ndarray) or X.ndim != 2 or len(X) < 300 or not np.issubdtype(X.dtype, np.number):
        sys.exit(refusal(f"{path} must hold a 2-D array of numbers with at least 300 rows"))
    X = X.astype(float)
    if not np.isfinite(X).all():
        sys.exit(refusal(f"{path} holds NaN or infinity"))
    return X


def refusal(text):
    print(f"paper_checks: error: {text}", file=sys.stderr)
    return 2


def main(argv=None):
    options = parser().parse_args(argv)
    options.data = load(options.data)
    if options.data_dir is not None and not options.data_dir.is_dir():
        return refusal(f"{options.data_dir} is not a directory")
    for paper in [options.paper] if options.paper else PAPERS:
        importlib.import_module(f"paper_checks.{PAPERS[paper]}")
    chosen = [c for c in claims.CLAIMS if options.claim is None or c.name.startswith(options.claim)]
    if not chosen:
        return refusal(f"no claim starts with {options.claim}")
    if options.report and importlib.util.find_spec("matplotlib") is None:
        return refusal("--report needs matplotlib: python -m pip install matplotlib")
    if options.report and options.report.exists() and not options.report.is_dir():
        return refusal(f"{options.report} is not a directory")
    print(f"{'claim':14}{'measured':>12}{'bound':>12}{'slack':>9}{'bound/trivial':>15}{'seconds':>9}  verdict")
    bad, results, start = 0, [], time.perf_counter()
    for one, verdict in claims.run(chosen, options):
        seconds, start = time.perf_counter() - start, time.perf_counter()
        share = verdict.bound / verdict.trivial
        print(f"{one.name:14}{verdict.measured:12.4g}{verdict.bound:12.4g}{verdict.slack:9.3g}{share:15.3g}{seconds:9.1f}  "
              f"{verdict.verdict}", flush=True)
        if not options.quiet:
            for label, text in (("says", one.statement), ("found", verdict.text), ("with", verdict.parameters)):
                for line in textwrap.wrap(f"{label}: {text}", 116) if text else []:
                    print("    " + line)
        bad += verdict.verdict not in claims.GOOD
        results.append((one, verdict))
    print(f"{len(chosen)} claims, {len(chosen) - bad} judged well, {bad} not")
    if options.report:
        try:
            paths = report.write(options.report, results, options)
        except OSError as error:
            return refusal(f"cannot write the report: {error}")
        print("wrote " + ", ".join(str(path) for path in paths))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
