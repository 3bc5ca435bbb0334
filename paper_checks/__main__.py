# SPDX-License-Identifier: BSD-3-Clause
"""python -m paper_checks [--paper ams] [--claim AMS-T1] [--full] [--data X.npz] [--seed 0] [--report DIR]: a line for
each claim, live.

Exit status 0 if every claim ends well, 1 if one FAILS or is undecided, 2 for a wrong request.
"""

import argparse
import difflib
import importlib
import importlib.util
import math
import pathlib
import sys
import textwrap
import time

import kpcasketch as kp
from paper_checks import claims, data, report

SAMPLER = """How to compare a sampler of landmarks of your own, here called mine, with those of kpcasketch:
1. Write mine(X, kernel, s, seed) in kpcasketch.py. It returns Landmarks. Add a row to _METHODS (16.1):
       "mine": _Method(mine, 500, landmarks=True),
   It now is in kp.advise, in kp.LandmarkFeatures(sampler="mine"), in kp.LandmarkRidge, and in
   python -m kpcasketch embed X.npy --method mine.
2. Compare it. Figures 2 to 4 of RLS take all samplers of _METHODS:
       python -m paper_checks --claim RLS-Fig2 --data X.npy --report out
   prints their errors at 50 to 800 landmarks, and draws them against the number of landmarks and against seconds:
   out/rls-error.png and .pdf, with the numbers in out/rls-error.csv. X.npy has at least 3000 rows. Without --data,
   points are drawn; with --data-dir, they are the paper's sets. --kernel names the kernel.
3. Test it by the laws of samplers. Make it public, and add a row to SAMPLERS in kpcasketch_tests/tables.py:
       "mine": SamplerRow(kp.mine),
   In kpcasketch_tests, python -m pytest -k mine test_laws.py test_leverage_scores.py test_tables.py runs them.
"""


def parser():
    out = argparse.ArgumentParser(
        prog="python -m paper_checks",
        description="Judge the bounds that the papers state.",
        epilog=SAMPLER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out.add_argument("--paper", choices=sorted(claims.PAPERS), help="claims of one paper only")
    out.add_argument("--claim", help="claims whose name starts with this only")
    out.add_argument(
        "--list", action="store_true", help="names and statements of the claims, judging none"
    )
    out.add_argument(
        "--full",
        action="store_true",
        help="the papers' sizes where their data are here (minutes; see --sets)",
    )
    out.add_argument(
        "--data",
        metavar="FILE",
        help=".npy, .npz or .csv file, a point a row: claims about any points are checked on these; each "
        "says whose points it took",
    )
    out.add_argument(
        "--data-dir",
        metavar="DIR",
        type=pathlib.Path,
        help="a directory with the papers' data sets, as covtype.npz, pendigits.npz, for their figures",
    )
    out.add_argument(
        "--kernel",
        choices=kp._KERNELS,
        help="kernel of the points of --data or --data-dir, with half the median distance as bandwidth, in figures 2 "
        "to 4 of RLS: choose them by --claim RLS-Fig2, RLS-Fig3 or RLS-Fig4",
    )
    out.add_argument("--seed", type=int, default=0, help="default %(default)s")
    out.add_argument(
        "--report",
        metavar="DIR",
        type=pathlib.Path,
        help="write report.md and report.html into this directory, with figures as PNG and PDF and their numbers as "
        "CSV (matplotlib)",
    )
    out.add_argument("--quiet", action="store_true", help="the table without the texts")
    out.add_argument(
        "--errata", action="store_true", help="where text and mathematics differ, in short"
    )
    out.add_argument(
        "--index", action="store_true", help="where a theorem is: functions that cite it, claim"
    )
    out.add_argument(
        "--pictures",
        metavar="DIR",
        type=pathlib.Path,
        help="draw the README's pictures there (needs --data-dir)",
    )
    out.add_argument(
        "--sets", action="store_true", help="the papers' data sets, and what stands for them here"
    )
    out.add_argument(
        "--headlines",
        nargs="?",
        const="all",
        metavar="NAME",
        help="the papers' headlines at the papers' sizes (hours), or the one of that name; resumable",
    )
    out.add_argument(
        "--out",
        metavar="DIR",
        type=pathlib.Path,
        default=pathlib.Path("headlines"),
        help="where headlines keep what they have measured, by default ./headlines",
    )
    out.add_argument(
        "--scale", type=float, default=1.0, help="of the headlines' sizes, for a trial"
    )
    return out


WITH_KERNEL = ("RLS-Fig2", "RLS-Fig3", "RLS-Fig4")


def refusal(text):
    print(f"paper_checks: error: {text}", file=sys.stderr)
    return 2


def aligned(columns, rows):
    """Lines of a table of words."""
    widths = [max(map(len, cells)) for cells in zip(columns, *rows)]
    for row in (columns, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()


def announce(place, chosen, start):
    """Says on stderr which claim is judged and how long the rest may take."""
    seconds = (time.perf_counter() - start) / place * (len(chosen) - place) if place else 0.0
    rest = f", about {seconds:,.0f} s left for all" if place else ""
    text = f"judging {chosen[place].name}, {place + 1} of {len(chosen)}{rest}"
    print(text, file=sys.stderr, flush=True)


def judge(chosen, options, written):
    """Print a line for each claim as it is judged, and add it to the report, if there is one; returns how many ended
    badly."""
    for one in chosen if options.data is not None else ():
        if one.points > len(options.data.X):
            print(
                f"{one.name} takes {one.points} points, and {options.data.name} has {len(options.data.X)}: "
                "it takes points of its own"
            )
    print(
        f"{'claim':24}{'measured':>11} {'bound':>10} {'slack':>9} {'bound/trivial':>13} {'seconds':>8}  verdict"
    )
    bad, on_users, start = 0, 0, time.perf_counter()
    begun = start
    verdicts = claims.run(chosen, options)
    for place, one in enumerate(chosen):
        announce(place, chosen, begun)
        _, verdict = next(verdicts)
        seconds, start = time.perf_counter() - start, time.perf_counter()
        share = verdict.bound / verdict.trivial
        print(
            f"{one.name:24}{verdict.measured:11.4g} {verdict.bound:10.4g} {verdict.slack:9.3g} {share:13.3g} "
            f"{seconds:8.1f}  {verdict.verdict}",
            flush=True,
        )
        if not options.quiet:
            why = one.no_trivial if math.isinf(verdict.trivial) and one.control else ""
            for label, text in (
                ("says", one.statement),
                ("found", verdict.text),
                (
                    "control",
                    f"{one.control}: {verdict.from_control}" if verdict.from_control else "",
                ),
                ("measures", one.measures),
                ("with", verdict.parameters),
                ("data", verdict.data),
                ("no trivial bound", why),
            ):
                for line in textwrap.wrap(f"{label}: {text}", 116) if text else []:
                    print("    " + line)
            for row in aligned(*verdict.table) if verdict.table else ():
                print("    " + row)
        bad += verdict.verdict not in claims.GOOD
        on_users += options.data is not None and options.data.used
        if written:
            written.add(one, verdict)
    print(f"{len(chosen)} claims, {len(chosen) - bad} judged well, {bad} not")
    if options.data is not None:
        rest = "; the others say why not" if on_users < len(chosen) and not options.quiet else ""
        print(f"{on_users} of {len(chosen)} on points of {options.data.name}{rest}")
    return bad


def at_size(options):
    headlines = importlib.import_module("paper_checks.headlines")
    if options.headlines not in ("all", *headlines.HEADLINES):
        return refusal(
            f"no headline {options.headlines}; there are {', '.join(headlines.HEADLINES)}"
        )
    if not 0 < options.scale <= 1:
        return refusal("--scale must be above 0 and at most 1")
    try:
        return headlines.main(options)
    except ValueError as error:
        return refusal(str(error))
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130


def main(argv=None):
    options = parser().parse_args(argv)
    if options.data is not None and (options.headlines or options.pictures):
        return refusal(
            "--data is for claims, and neither for headlines nor for pictures, which name their own"
        )
    try:
        options.data = data.Users(options.data) if options.data is not None else None
    except ValueError as error:
        return refusal(str(error))
    if options.data_dir is not None and not options.data_dir.is_dir():
        return refusal(f"{options.data_dir} is not a directory")
    if options.headlines:
        return at_size(options)
    if options.pictures:
        try:
            pictures = importlib.import_module("paper_checks.pictures")
            print(
                "drew "
                + ", ".join(str(path) for path in pictures.draw(options.pictures, options.data_dir))
            )
        except (ImportError, OSError, ValueError) as error:
            return refusal(str(error))
        return 0
    papers = [options.paper] if options.paper else list(claims.PAPERS)
    for paper in papers:
        claims.register(paper)
    if options.errata or options.sets or options.index:
        print(
            *(claims.in_short(paper) for paper in papers)
            if options.errata
            else data.table(papers)
            if options.sets
            else claims.index(papers),
            sep="\n",
        )
        return 0
    begins = (options.claim or "").lower()
    chosen = [c for c in claims.CLAIMS if c.name.lower().startswith(begins)]
    if not chosen:
        near = difflib.get_close_matches(begins.upper(), [c.name for c in claims.CLAIMS], 4, 0.4)
        return refusal(
            f"no claim starts with {options.claim}{'; there are ' + ', '.join(near) if near else ''}"
        )
    if options.kernel and not all(c.name in WITH_KERNEL for c in chosen):
        return refusal(f"--kernel is for --claim {', '.join(WITH_KERNEL)}")
    if options.kernel and options.data is None and options.data_dir is None:
        return refusal("--kernel needs --data or --data-dir")
    if options.kernel and options.data is not None:
        least = max(c.points for c in chosen)
        if len(options.data.X) < least:
            return refusal(
                f"--kernel needs {least} points, and {options.data.name} has {len(options.data.X)}"
            )
    if options.list:
        print(*(f"{c.name:26}{c.statement}" for c in chosen), sep="\n")
        return 0
    if options.report and importlib.util.find_spec("matplotlib") is None:
        return refusal("--report needs matplotlib: python -m pip install matplotlib")
    if options.report and options.report.exists() and not options.report.is_dir():
        return refusal(f"{options.report} is not a directory")
    try:
        written = report.Report(options.report, options, chosen) if options.report else None
        bad = judge(chosen, options, written)
        if written:
            text, page, *pictures = written.finish()
            drawn = len(pictures) // len(report.FORMS)
            print(f"wrote {text}, {page}, and figures beside them as PNG, PDF and CSV: {drawn}")
    except OSError as error:
        return refusal(f"cannot write the report: {error}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
