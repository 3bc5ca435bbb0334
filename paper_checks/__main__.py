# SPDX-License-Identifier: BSD-3-Clause
"""python -m paper_checks [--paper ams] [--claim AMS-T1] [--full] [--data X.npz] [--seed 0] [--report DIR]: a line for
each claim, live. Other commands: python -m paper_checks list, errata, index, sets, headlines, pictures.

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

from paper_checks import claims, data, report, tools

SAMPLER = """How to compare a sampler of landmarks of your own, here called mine, with those of kpcasketch:
1. Write mine(X, kernel, s, seed) in kpcasketch.py, a public function. It returns Landmarks. Add a row to _SAMPLERS
   (16.1):
       "mine": mine,
   It now is in kp.advise, in kp.LandmarkFeatures(sampler="mine"), in kp.LandmarkRidge, and in
   python -m kpcasketch embed X.npy --method mine -o features.npy.
2. Compare it. Add "mine": kp.mine to SAMPLERS in paper_checks/rls2017_experiments.py:
       python -m paper_checks --claim RLS-Fig2 --data X.npy --report out
   prints their errors at 50 to 800 landmarks, and draws them against the number of landmarks and against seconds:
   out/rls-error.png and .pdf, with the numbers in out/rls-error.csv. X.npy has at least 3000 rows. Without --data,
   points are drawn; with --data-dir, they are the paper's sets. --kernel names the kernel.
3. Test it by the laws of samplers. Add a row to SAMPLERS in kpcasketch_tests/tables.py:
       "mine": SamplerRow(kp.mine),
   In kpcasketch_tests, python -m pytest -k mine test_laws.py test_leverage_scores.py test_tables.py runs them.
"""


def parser_of(command="", description="Judge the bounds that the papers state.", **more):
    return argparse.ArgumentParser(
        prog=f"python -m paper_checks {command}".rstrip(),
        description=description,
        allow_abbrev=False,  # else --data would be --data-dir where there is no --data
        **more,
    )


def with_paper(out):
    out.add_argument("--paper", choices=sorted(claims.PAPERS), help="one paper only")


def with_claim(out):
    out.add_argument("--claim", help="claims whose name starts with this only")


def with_folder(out, help):
    out.add_argument("--data-dir", metavar="DIR", type=pathlib.Path, help=help)


def with_seed(out):
    out.add_argument("--seed", type=int, default=0, help="default %(default)s")


def parser():
    commands = "".join(f"  {name:10} {what}\n" for name, (_, what) in COMMANDS.items())
    out = parser_of(
        epilog=f"other commands, as in python -m paper_checks errata:\n{commands}\n{SAMPLER}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    with_paper(out)
    with_claim(out)
    out.add_argument(
        "--full",
        action="store_true",
        help="the papers' sizes where their data are here (minutes; see the command sets)",
    )
    out.add_argument(
        "--data",
        metavar="FILE",
        help=".npy, .npz or .csv file, a point a row: claims about any points are checked on these; each "
        "says whose points it took",
    )
    with_folder(
        out,
        "a directory with the papers' data sets, as covtype.npz, pendigits.npz, for their figures",
    )
    out.add_argument(
        "--kernel",
        choices=tools.KERNELS,
        help="kernel of the points of --data or --data-dir, with half the median distance as bandwidth, in figures 2 "
        "to 4 of RLS: choose them by --claim RLS-Fig2, RLS-Fig3 or RLS-Fig4",
    )
    with_seed(out)
    out.add_argument(
        "--report",
        metavar="DIR",
        type=pathlib.Path,
        help="write report.md and report.html into this directory, with figures as PNG and PDF and their numbers as "
        "CSV (matplotlib)",
    )
    out.add_argument("--quiet", action="store_true", help="the table without the texts")
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
            f"{seconds:8.1f}  {verdict.words}",
            flush=True,
        )
        if not options.quiet:
            why = (
                verdict.no_trivial or one.no_trivial
                if math.isinf(verdict.trivial) and one.control
                else ""
            )
            for label, text in (
                ("says", one.statement),
                ("found", verdict.text),
                ("details", verdict.details),
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
    print(f"{claims.counted(chosen)}: {len(chosen) - bad} end well, {bad} do not")
    if options.data is not None:
        rest = "; the others say why not" if on_users < len(chosen) and not options.quiet else ""
        print(f"{on_users} of {len(chosen)} on points of {options.data.name}{rest}")
    return bad


def registered(options):
    """The papers that are asked for, their claims registered."""
    papers = [options.paper] if options.paper else list(claims.PAPERS)
    for paper in papers:
        claims.register(paper)
    return papers


def chosen_claims(options):
    """Claims whose names begin as asked, of the papers that are asked for."""
    papers, begins = registered(options), (options.claim or "").lower()
    known = [one for one in claims.CLAIMS if one.paper in papers]
    chosen = [one for one in known if one.name.lower().startswith(begins)]
    if not chosen:
        near = difflib.get_close_matches(begins.upper(), [one.name for one in known], 4, 0.4)
        there = f"; there are {', '.join(near)}" if near else ""
        raise ValueError(f"no claim starts with {options.claim}{there}")
    return chosen


def in_folder(path):
    if path is not None and not path.is_dir():
        raise ValueError(f"{path} is not a directory")


def list_claims(argv):
    out = parser_of("list", COMMANDS["list"][1])
    with_paper(out)
    with_claim(out)
    print(
        *(
            f"{one.name:26}{one.kind:12}{one.statement}"
            for one in chosen_claims(out.parse_args(argv))
        ),
        sep="\n",
    )


def table_command(command, lines):
    """A command that prints the lines of a table of the papers."""

    def run(argv):
        out = parser_of(command, COMMANDS[command][1])
        with_paper(out)
        print(*lines(registered(out.parse_args(argv))), sep="\n")

    return run


def errata(papers):
    return [claims.in_short(paper) for paper in papers]


def run_headlines(argv):
    out = parser_of("headlines", COMMANDS["headlines"][1])
    out.add_argument("headlines", nargs="?", default="all", metavar="NAME", help="one only")
    with_folder(out, "a directory with the papers' data sets")
    out.add_argument(
        "--out",
        metavar="DIR",
        type=pathlib.Path,
        default=pathlib.Path("headlines"),
        help="where they keep what they have measured, by default ./headlines",
    )
    out.add_argument("--scale", type=float, default=1.0, help="of the sizes, for a trial")
    with_seed(out)
    options = out.parse_args(argv)
    in_folder(options.data_dir)
    headlines = importlib.import_module("paper_checks.headlines")
    if options.headlines not in ("all", *headlines.HEADLINES):
        known = ", ".join(headlines.HEADLINES)
        raise ValueError(f"no headline {options.headlines}; there are {known}")
    if not 0 < options.scale <= 1:
        raise ValueError("--scale must be above 0 and at most 1")
    try:
        return headlines.main(options)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130


def draw_pictures(argv):
    out = parser_of("pictures", COMMANDS["pictures"][1])
    out.add_argument("folder", metavar="DIR", type=pathlib.Path, help="where they are drawn")
    with_folder(out, "a directory with the papers' data sets")
    options = out.parse_args(argv)
    in_folder(options.data_dir)
    pictures = importlib.import_module("paper_checks.pictures")
    drawn = pictures.draw(options.folder, options.data_dir)
    print("drew " + ", ".join(str(path) for path in drawn))


COMMANDS = {
    "list": (list_claims, "names, kinds and statements of the claims"),
    "errata": (table_command("errata", errata), "where text and mathematics differ, in short"),
    "index": (
        table_command("index", claims.index),
        "where a theorem is: functions that cite it, claim",
    ),
    "sets": (
        table_command("sets", data.table),
        "the papers' data sets, and what stands for them here",
    ),
    "headlines": (run_headlines, "the papers' headlines at the papers' sizes (hours); resumable"),
    "pictures": (draw_pictures, "the README's pictures (needs --data-dir)"),
}


def request(argv):
    """The options of a run and the claims that it judges; refused by ValueError."""
    options = parser().parse_args(argv)
    options.data = data.Users(options.data) if options.data is not None else None
    in_folder(options.data_dir)
    chosen = chosen_claims(options)
    if options.kernel and not all(one.name in WITH_KERNEL for one in chosen):
        raise ValueError(f"--kernel is for --claim {', '.join(WITH_KERNEL)}")
    if options.kernel and options.data is None and options.data_dir is None:
        raise ValueError("--kernel needs --data or --data-dir")
    if options.kernel and options.data is not None:
        least, count = max(one.points for one in chosen), len(options.data.X)
        if count < least:
            raise ValueError(f"--kernel needs {least} points, and {options.data.name} has {count}")
    if options.report and importlib.util.find_spec("matplotlib") is None:
        raise ValueError("--report needs matplotlib: python -m pip install matplotlib")
    if options.report and options.report.exists() and not options.report.is_dir():
        raise ValueError(f"{options.report} is not a directory")
    return options, chosen


def judge_all(options, chosen):
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


def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    try:
        if argv and argv[0] in COMMANDS:
            return COMMANDS[argv[0]][0](argv[1:]) or 0
        options, chosen = request(argv)
    except (ImportError, OSError, ValueError) as error:
        return refusal(str(error))
    return judge_all(options, chosen)


if __name__ == "__main__":
    sys.exit(main())
