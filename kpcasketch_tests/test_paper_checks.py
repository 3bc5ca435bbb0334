# SPDX-License-Identifier: BSD-3-Clause
"""The machinery of the checks: exact statistics, verdicts that can fail, and a report that shows them."""

import argparse
import collections
import importlib
import json
import math
import pathlib
import re

import numpy as np
import pytest
from scipy import integrate, stats

import kpcasketch as kp
from paper_checks import __main__ as command
from paper_checks import (
    ams2001,
    claims,
    data,
    headlines,
    implicit_steps,
    published,
    report,
    rls2017,
    rls2017_experiments,
    rskpca2013,
    skpca2015,
    tools,
)


def test_failure_counts_are_judged_by_exact_tails():
    assert claims.judge_failures(0, 59, 0.05) == claims.HOLDS
    assert claims.judge_failures(0, 57, 0.05) == claims.UNDECIDED
    assert claims.judge_failures(40, 100, 0.05) == claims.VIOLATED
    lower, upper = claims.clopper_pearson(3, 50, 0.05)
    assert stats.binom.sf(2, 50, lower) == pytest.approx(0.05) and stats.binom.cdf(
        3, 50, upper
    ) == pytest.approx(0.05)


def test_a_verdict_depended_on_the_claims_that_were_judged_before():
    # the k-th accusation had the level .001 / (k (k + 1)), and controls were not detected late in a run
    tail = stats.binom.sf(7, 10, 0.1)
    assert claims.ACCUSING / 10 < tail < claims.ACCUSING
    verdicts = {claims.judge_failures(8, 10, 0.1) for _ in range(100)}
    assert verdicts == {claims.VIOLATED}
    assert claims.judge_failures(7, 10, 0.1) == claims.UNDECIDED


def test_constructors_judge_the_bound_its_control_and_what_else_is_needed():
    def verdict(made):
        return made.verdict

    assert verdict(claims.bounded(1.0, 1.0, 1.1, "")) == claims.HOLDS
    assert verdict(claims.bounded(1.1, 1.0, 1.2, "")) == claims.VIOLATED
    assert verdict(claims.bounded(0.9, 1.0, 1.0, "")) == claims.UNDETECTED
    assert verdict(claims.bounded(0.9, 1.0, [1.2, 0.9], "")) == claims.UNDETECTED
    lacking = claims.bounded(0.9, 1.0, 1.2, "found.", needs={"that": False, "this": True})
    assert lacking.verdict == claims.VIOLATED and lacking.text == "found. Not met: that."
    assert verdict(claims.probability(0, 59, 0.05, (30, 59), "")) == claims.HOLDS
    assert verdict(claims.probability(0, 59, 0.05, (0, 59), "")) == claims.UNDETECTED
    assert verdict(claims.probability(30, 59, 0.05, (30, 59), "")) == claims.VIOLATED
    assert verdict(claims.probability(2, 59, 0.05, (30, 59), "")) == claims.UNDECIDED
    assert (
        verdict(claims.observation({"a": True, "b": True}, "", measured=1, bound=1)) == claims.SEEN
    )
    seen = claims.observation({"a": True, "b": False}, "Why.", measured=1, bound=1)
    assert seen.verdict == claims.NOT_SEEN and seen.text == "Why. Not seen: b."
    assert seen.details == "a: seen; b: not seen."
    missing = claims.observation({}, "", measured=1, bound=1, lacking="No data.")
    assert missing.verdict == claims.NOT_COMPARABLE
    assert missing.words == "not comparable: No data"


def exact_rate(value, low, high, control):
    made = claims.rate([claims.Estimate(value)], low, high, claims.Estimate(control), "")
    return made.verdict


def test_rates_are_judged_with_their_control():
    assert exact_rate(-1.0, -1.2, -0.8, -0.5) == claims.HOLDS
    assert exact_rate(-1.0, -1.2, -0.8, -0.9) == claims.UNDETECTED
    assert exact_rate(-1.0, -1.2, -0.8, math.nan) == claims.UNDETECTED
    assert exact_rate(-0.5, -math.inf, -0.8, -0.1) == claims.VIOLATED
    assert exact_rate(math.nan, -1.2, -0.8, -0.5) == claims.VIOLATED
    loose, control = claims.Estimate(-1.0, 0.4, 9), claims.Estimate(9.0)
    undecided = claims.rate([loose], -1.2, -0.8, control, "")
    assert undecided.verdict == claims.UNDECIDED and np.isnan(undecided.slack)
    several = claims.rate([claims.Estimate(-1.0), claims.Estimate(-1.3)], -1.2, -0.8, control, "")
    assert (several.verdict, several.measured, several.bound) == (claims.VIOLATED, -1.3, -1.2)


def judged_rate(seed, exponent, sizes=(60, 120, 240, 480, 960), replicates=60):
    """The verdict on a rate of n^-1/2, of errors that fall like n^exponent, drawn as RSKPCA-N measures them."""
    rng = np.random.default_rng(seed)
    drawn = np.abs(rng.standard_normal((4, len(sizes), replicates))).mean(0)
    errors = drawn * np.array(sizes, float)[:, None] ** exponent

    def fitted(draws):
        return tools.slope(sizes, draws.mean(1))

    found = claims.bootstrapped(fitted, errors, seed, 100)
    return claims.rate([found], -0.65, -0.35, claims.Estimate(0.0), "").verdict


def test_a_rate_failed_for_29_of_400_seeds_with_right_code():
    verdicts = [judged_rate(seed, -0.5) for seed in range(300)]
    assert verdicts.count(claims.HOLDS) >= 297


@pytest.mark.parametrize("exponent", [0.0, -0.1, -0.36, -0.64, -0.9, -1.0])
def test_a_wrong_rate_passed_unless_it_was_surely_wrong(exponent):
    # the 95 % interval has to lie inside the limits
    verdicts = [judged_rate(seed, exponent) for seed in range(20)]
    assert sum(verdict in claims.GOOD for verdict in verdicts) <= (
        6 if -0.7 < exponent < -0.3 else 0
    )


def test_an_exponent_is_fitted_from_the_upper_half_of_the_sizes():
    assert tools.settled((10, 30, 100, 300, 1000)).tolist() == [False, False, True, True, True]
    assert tools.settled((100, 200, 400, 800)).tolist() == [False, False, True, True]


def refuted(printed, stated, mended, **more):
    return claims.counterexample(printed, stated, "", mended=mended, note="so", **more)


def test_the_mended_form_of_a_counterexample_is_judged_like_any_claim():
    mended = claims.bounded(0.5, 1.0, 2.0, "", trivial=4.0)
    assert refuted(2.0, 1.0, mended).verdict == claims.REFUTED
    assert refuted(1.0, 1.0, mended).verdict == claims.NOT_REPRODUCED
    assert refuted(math.nan, 1.0, mended).verdict == claims.NOT_REPRODUCED
    assert refuted(2.0, 1.0, mended, needs={"it": False}).verdict == claims.NOT_REPRODUCED
    shown = refuted(2.0, 1.0, mended, good=claims.MENDED)
    assert (shown.verdict, shown.measured, shown.trivial) == (claims.MENDED, 0.5, 4.0)
    for bad in (
        claims.bounded(1.1, 1.0, 2.0, "", trivial=4.0),
        claims.bounded(0.5, 1.0, 0.9, "", trivial=4.0),
        claims.bounded(math.nan, 1.0, 2.0, "", trivial=4.0),
        claims.bounded(0.5, 1.0, math.nan, "", trivial=4.0),
    ):
        assert refuted(2.0, 1.0, bad).verdict not in claims.GOOD
    exact = claims.Claim("one", "x", "", None, "", no_trivial=claims.EXACT)
    for trivial in (1.1, math.nan, math.inf):
        vacuous = refuted(2.0, 1.0, claims.bounded(0.5, 1.0, 2.0, "", trivial=trivial))
        assert claims.guard_vacuity(exact, vacuous).verdict == claims.VACUOUS
    assert claims.guard_vacuity(exact, refuted(2.0, 1.0, mended)).verdict == claims.REFUTED


def test_nan_was_no_trivial_bound_and_a_sharp_bound_was_not_reached():
    plain = claims.Claim("one", "x", "", None, "")
    found = claims.bounded(0.5, 1.0, 2.0, "", trivial=math.nan)
    assert claims.guard_vacuity(plain, found).verdict == claims.VACUOUS
    sharp = claims.Claim("one", "x", "", None, "", no_trivial=claims.SHARP)
    for measured, verdict in ((0.94, claims.VACUOUS), (0.96, claims.HOLDS)):
        found = claims.bounded(measured, 1.0, 2.0, "")
        assert claims.guard_vacuity(sharp, found).verdict == verdict


def test_a_verdict_other_than_holds_says_what_it_means():
    with pytest.raises(ValueError, match="must have a note"):
        claims.bounded(0.5, 1.0, 2.0, "", trivial=4.0, good=claims.STEP)
    found = claims.bounded(0.5, 1.0, 2.0, "", trivial=4.0, good=claims.STEP, note="line 3")
    assert found.words == "true, a step of its proof is false: line 3"


@pytest.mark.parametrize(
    "stated, least, words",
    [
        (275, 17, "m = 17; the paper's m is 275"),
        (275, 1, "m = 1; the paper's m is 275"),
        (275, 275, "m = 275; the paper's m is 275"),
        (2000, 1200, "m = 1250; the paper's m is 2000"),
        (16.0, 1.9, "m = 2; the paper's m is 16"),
    ],
)
def test_the_critical_effort_is_the_least_that_passes(stated, least, words):
    effort = claims.Effort("m", stated, None)
    assert claims.critical_effort(effort, lambda m: m >= least) == f"critical effort {words}"


def test_a_critical_effort_had_no_interval_and_was_not_always_the_papers():
    effort = claims.Effort("m", 64, lambda m, draw: 8.0 * (draw + 1) / m, "the sharp form's", 3)
    found = claims.bounded(0.5, 1.0, 2.0, "", trivial=4.0, effort=effort)
    assert found.effort == "critical effort m = 8 to 24; the sharp form's m is 64"
    above = claims.critical_effort(effort, lambda m: m >= 8, lambda m: False)
    assert above == "critical effort m = 8 to above 64; the sharp form's m is 64"
    rng = np.random.default_rng(0)
    needed = rng.integers(1, 1000, 29)  # what each trial needs: P(fails with m) = 1 - m / 1000
    effort = claims.Effort("m", 1000, lambda m, trial: m < needed[trial])
    found = claims.probability(0, 29, 0.1, (29, 29), "", effort=effort)
    least, most = (int(number) for number in re.findall(r"= (\d+) to (\d+)", found.effort)[0])
    assert least < 900 < most == pytest.approx(needed.max(), rel=0.07)
    # with 6 of 29 failures the chance may be .1, and with 7 it is larger at the level .05
    assert stats.binom.sf(6, 29, 0.1) < 0.05 < stats.binom.sf(5, 29, 0.1)
    assert least == pytest.approx(np.sort(needed)[-7], rel=0.07)


def test_a_verdict_tells_the_critical_effort_by_its_own_judge():
    effort = claims.Effort("m", 16, lambda m: 8.0 / m)
    found = claims.bounded(0.5, 1.0, 2.0, "", trivial=4.0, effort=effort)
    assert found.words == "holds (critical effort m = 8; the paper's m is 16)"
    assert claims.bounded(1.5, 1.0, 2.0, "", trivial=4.0, effort=effort).effort == ""
    trials = []

    def fails(m, trial):
        trials.append(trial)
        return m < 5 and trial == 3

    effort = claims.Effort("m", 16, fails)
    found = claims.probability(0, 59, 0.05, (30, 59), "", effort=effort)
    assert found.words == "holds (critical effort m = 1 to 5; the paper's m is 16)"
    # as many trials as the judge needs
    assert max(trials) == 58
    assert claims.judge_failures(0, 59, 0.05) == claims.HOLDS
    assert claims.judge_failures(0, 58, 0.05) == claims.UNDECIDED
    never = claims.Effort("m", 16, lambda m, trial: True)
    found = claims.probability(0, 59, 0.05, (30, 59), "", effort=never)
    assert found.effort == "critical effort m above 16; the paper's m is 16"


def test_a_counterexample_lost_the_critical_effort_of_its_mended_form():
    effort = claims.Effort("m", 16, lambda m: 8.0 / m)
    mended = claims.bounded(0.5, 1.0, 2.0, "", trivial=4.0, effort=effort)
    assert refuted(2.0, 1.0, mended).effort == "critical effort m = 8; the paper's m is 16"
    assert refuted(0.5, 1.0, mended).effort == ""


def run_of(**options):
    return argparse.Namespace(
        **{"seed": 0, "full": False, "data": None, "data_dir": None, **options}
    )


def test_an_experiment_that_was_not_seen_any_more_ended_well():
    def outcome(seen, lacking="", **options):
        def check(_):
            return claims.observation({"it": seen}, "", measured=1, bound=1, lacking=lacking)

        known = {"kind": claims.EXPERIMENT, "usual": claims.SEEN, "with_sets": claims.NOT_SEEN}
        one = claims.Claim("one", "x", "", check, "", no_trivial=claims.QUOTIENT, **known)
        return next(claims.run([one], run_of(**options)))[1].verdict

    assert outcome(True) == claims.SEEN
    assert outcome(False) == outcome(True, "no data") == claims.LOST
    assert outcome(False, seed=1) == outcome(False, full=True) == claims.NOT_SEEN
    assert outcome(False, data_dir=pathlib.Path()) == claims.NOT_SEEN
    assert claims.LOST not in claims.GOOD


def test_claims_without_code_of_the_toolkit_were_counted_with_the_others():
    kinds = (claims.CLAIM, claims.CLAIM, claims.ARITHMETIC, claims.EXPERIMENT)
    known = [claims.Claim("one", "x", "", None, "", kind=kind) for kind in kinds]
    told = "2 claims about this code, 1 about arithmetic of the papers, 1 experiments of the papers"
    assert claims.counted(known) == told
    plain = claims.Claim(
        "one", "x", "", lambda _: claims.bounded(0.5, 1.0, 2.0, "", trivial=4.0), ""
    )
    plain.kind = claims.ARITHMETIC
    verdict = next(claims.run([plain], run_of()))[1]
    assert verdict.words == "holds (arithmetic of the paper)"


def test_the_readme_counted_arithmetic_and_experiments_as_claims():
    pytest.importorskip("sklearn")  # two claims need it
    for paper in claims.PAPERS:
        claims.register(paper)
    count = collections.Counter(one.kind for one in claims.CLAIMS)
    needs_sets = sum(one.usual == claims.NOT_COMPARABLE for one in claims.CLAIMS)
    readme = pathlib.Path(kp.__file__).with_name("README.md").read_text(encoding="utf-8")
    told = f"{count[claims.CLAIM]} claims about this code and {count[claims.ARITHMETIC]} about"
    experiments = f"{count[claims.EXPERIMENT]} experiments, {needs_sets} need `--data-dir`"
    assert told in readme and experiments in readme


def test_rows_columns_and_blocks_that_are_alike_are_found(rng):
    signs = np.sign(rng.standard_normal((200, 150)))
    assert tools.lag_score(signs) < tools.lag_limit(signs)
    upper = np.triu(rng.standard_normal((200, 200)), 1)
    assert tools.lag_score(upper) < tools.lag_limit(upper)
    repeated = np.tile(signs[:, :64], (1, 3))[:, :150]
    rows, columns, halves = signs.copy(), signs.copy(), signs.copy()
    rows[7], columns[:, 3], halves[100:] = rows[100], -columns[:, 77], halves[:100]
    for wrong in (repeated, rows, columns, halves):
        assert tools.lag_score(wrong) > tools.lag_limit(wrong)


def test_the_checks_use_nothing_private_of_the_toolkit():
    for path in pathlib.Path(claims.__file__).parent.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"\bkp\._[a-zA-Z]\w*|\bmock\b", text), path.name


def test_a_claim_without_a_control_or_with_prose_for_a_trivial_bound_is_not_registered():
    for words in (
        {"control": ""},
        {"control": "c", "no_trivial": "there is none"},
        {"control": "c", "measures": ""},
    ):
        with pytest.raises(ValueError):
            claims.claim("new", "ams", "statement", **{"measures": "x", **words})
    with pytest.raises(ValueError):
        claims.claim(
            "new",
            "ams",
            "words",
            measures="x",
            control="c",
            errata=[claims.Erratum("E0", "wrong", *"abc")],
        )


def test_a_check_that_raises_fails_and_a_vacuous_one_does_not_count():
    def broken(options):
        raise ZeroDivisionError("no")

    def vacuous(options):
        return claims.Verdict(claims.HOLDS, 0.1, 0.9, "", trivial=1.0)

    def compared_with_nothing(options):
        return claims.Verdict(claims.HOLDS, 0.1, 0.9, "")

    checks = [
        claims.Claim(check.__name__, "x", "", check, "")
        for check in (broken, vacuous, compared_with_nothing)
    ]
    results = [verdict for _, verdict in claims.run(checks, None)]
    assert [r.verdict for r in results] == [claims.BROKEN, claims.VACUOUS, claims.VACUOUS]
    assert not {claims.BROKEN, claims.VACUOUS, claims.VIOLATED, claims.UNDETECTED} & set(
        claims.GOOD
    )
    assert "ZeroDivisionError" in results[0].text


def test_report_shows_claims_errata_and_figures(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(
        claims, "ERRATA", [claims.Erratum("E0", "false", "lemma 1", "a | b", "c < d", "x", "one")]
    )
    monkeypatch.setattr(
        claims,
        "FIGURES",
        [
            claims.Figure(
                "line", "ams", "A line.", lambda axes, options: axes.plot([0, 1]), ("one",)
            )
        ],
    )
    first = claims.Claim(
        "one", "ams", "norms |A| <= 1", None, "|A|, a length", "twice A", "there is none"
    )
    second = claims.Claim("two", "ams", "", None, "")
    written = report.Report(tmp_path / "new", argparse.Namespace(seed=0), [first, second])
    written.add(first, claims.Verdict(claims.REFUTED, 2.0, 1.0, "because <of this>"))
    early = (tmp_path / "new" / "report.md").read_text()
    assert "1 claims about this code; 1 still to come" in early and "line.png" not in early
    written.add(
        second, claims.Verdict(claims.HOLDS, 0.5, 1.0, "", trivial=4.0, from_control="above")
    )
    paths = written.finish()
    text, page = paths[0].read_text(), paths[1].read_text()
    assert (
        "norms \\|A\\| <= 1" in text
        and "**refuted as stated**: 1; **holds**: 1" in text
        and "](line.png)" in text
    )
    assert (
        "| [two](#two) | holds |  | 0.5 | 1 | 0.5 | 0.25 |  |  |" in text
        and "**Control**: : above." in text
    )
    assert "there is none | [E0](#E0) | [figure-line" not in text
    assert "there is none | [E0](#E0) | [line](#figure-line)" in text
    assert (
        "because &lt;of this&gt;" in page and "data:image/png;base64" in page and "c &lt; d" in page
    )
    for target in ("one", "two", "E0", "figure-line"):
        assert f'href="#{target}"' in page and f'id="{target}"' in page
    assert (tmp_path / "new" / "line.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "new" / "line.pdf").read_bytes().startswith(b"%PDF")
    rows = (tmp_path / "new" / "line.csv").read_text().splitlines()
    assert rows[0].startswith("panel,title,") and rows[2] == "1,,,,,1.0,1"


def test_numbers_of_a_figure_are_those_that_it_shows():
    pytest.importorskip("matplotlib")
    canvas = importlib.import_module("matplotlib.figure").Figure()
    left, right = canvas.subplots(1, 2)
    tools.draw_ranges(left, [3.0, 4.0], [[1.0, 2.0, 6.0], [7.0, 8.0, 9.0]], "ranges")
    left.axhline(5.0)  # across the panel: no number of a series
    left.set(title="a", xlabel="b", ylabel="c")
    right.scatter([1.0, 2.0], [3.0, 4.0], label="points")
    right.hist([0.0, 0.0, 1.0], bins=2)
    assert list(report.numbers(canvas)) == [
        (1, "a", "b", "c", "ranges", 3.0, 3.0, 1.0, 6.0),
        (1, "a", "b", "c", "ranges", 4.0, 8.0, 7.0, 9.0),
        (2, "", "", "", "points", 1.0, 3.0),
        (2, "", "", "", "points", 2.0, 4.0),
        (2, "", "", "", "histogram", 0.25, 2.0),
        (2, "", "", "", "histogram", 0.75, 1.0),
    ]


def test_figure_2_of_rls_has_a_row_for_each_sampler_of_the_file(monkeypatch):
    names = [*kp._SAMPLERS, "Fourier features"]
    curves = {name: (np.full((5, 4), 2.0), None) for name in names}
    X = np.eye(3)
    assert [*rls2017_experiments.SAMPLERS] == [*kp._SAMPLERS]
    monkeypatch.setattr(rls2017_experiments, "data_sets", lambda options: [("a", X, kp.linear())])
    monkeypatch.setattr(rls2017_experiments, "error_curves", lambda options, number: curves)
    columns, rows = rls2017_experiments.table_of_errors(None)
    assert rows == [("a", name, *["2"] * 5) for name in names] and len(columns) == 7
    shown = claims.observation({}, "", measured=1.0, bound=1.0, table=(columns, rows))
    one = claims.Claim("one", "rls", "it is", None, "it")
    finding = "\n".join(report.Report.finding(report.Text, one, shown))
    assert "| a | rpcholesky | 2 | 2 | 2 | 2 | 2 |" in finding
    lines = list(command.aligned(*shown.table))
    assert lines[1].split() == ["a", "uniform", *"22222"]


def test_every_claim_and_figure_can_be_followed():
    for paper in claims.PAPERS:
        claims.register(paper)
    names = {claim.name for claim in claims.CLAIMS}
    assert len(names) == len(claims.CLAIMS) and all(claim.measures for claim in claims.CLAIMS)
    assert {name for figure in claims.FIGURES for name in figure.claims} <= names
    assert {erratum.claim for erratum in claims.ERRATA} <= names
    assert {tag for claim in claims.CLAIMS for tag in claim.errata} <= {
        erratum.tag for erratum in claims.ERRATA
    }
    tags = [erratum.tag for erratum in claims.ERRATA]
    assert len(set(tags)) == len(tags)
    assert all(claim.control or claim.no_trivial == claims.QUOTIENT for claim in claims.CLAIMS)
    assert {paper for paper, *_ in data.SETS} <= set(claims.PAPERS) and {
        name for *_, name, _ in data.SETS
    } <= {"", *data.FILES}
    assert all(claims.in_short(paper) for paper in claims.PAPERS)
    kept = json.loads(pathlib.Path(report.__file__).with_name("headlines.json").read_text())
    assert set(kept) <= set(headlines.HEADLINES) and all(
        found["scale"] == 1 for found in kept.values()
    )


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--claim", "AMS-unknown"], "no claim starts with"),
        (["--data", "no-such-file.npy"], "cannot read"),
        (["--data-dir", "no-such-folder"], "is not a directory"),
        (["--data", "points.txt"], "is not a .npy, .npz or .csv"),
        (["headlines", "--data", __file__], "unrecognized arguments: --data"),
        (["--paper", "rls", "errata"], "unrecognized arguments: errata"),
        (["headlines", "--data-dir", "no-such-folder"], "is not a directory"),
        (["headlines", "--scale", "2"], "--scale must be above 0"),
        (["list", "--claim", "AMS-unknown"], "no claim starts with"),
    ],
)
def test_wrong_requests_get_status_2(arguments, text, capsys):
    try:
        status = command.main(arguments)
    except SystemExit as stop:
        status = stop.code
    assert status == 2 and text in capsys.readouterr().err


def of_own_points(options):
    return claims.bounded(0.5, 1.0, 2.0, "", trivial=4.0)


def of_any_points(options):
    return claims.bounded(abs(tools.users_rows(options, 300).max()), 1.0, 2.0, "", trivial=4.0)


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
def test_claims_and_figures_did_not_say_whose_points_they_took(
    tmp_path, monkeypatch, capsys, suffix
):
    pytest.importorskip("matplotlib")
    importlib.import_module("paper_checks.ams2001")
    X, path = np.random.default_rng(0).random((300, 2)), tmp_path / f"points{suffix}"
    if suffix == ".csv":
        np.savetxt(path, X, delimiter=",")
    else:
        np.save(path, X) if suffix == ".npy" else np.savez(path, X=X, y=X[:, 0])
    both = [
        claims.Claim(name, "ams", "it is", check, "it", "more")
        for name, check in (("mine", of_any_points), ("its", of_own_points))
    ]
    figures = []

    def drawing(axes, options):
        tools.users_rows(options, 10)
        assert tools.users_rows(options, 301) is None  # a claim's n is what it says
        figures.append(axes.figure)

    monkeypatch.setattr(claims, "CLAIMS", both)
    monkeypatch.setattr(
        claims, "FIGURES", [claims.Figure("line", "ams", "A line.", drawing, ("mine", "elsewhere"))]
    )
    assert (
        command.main(["--paper", "ams", "--data", str(path), "--report", str(tmp_path / "out")])
        == 0
    )
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0] == "judging mine, 1 of 2"
    assert printed.err.splitlines()[1].startswith("judging its, 2 of 2, about 0 s left")
    told, text = printed.out, (tmp_path / "out" / "report.md").read_text()
    assert f"data: points of points{suffix}" in told and "data: points of its own" in told
    assert f"1 of 2 on points of points{suffix}; the others say why not" in told
    assert f"**With**: points of points{suffix}." in text
    assert [figure.get_suptitle() for figure in figures] == [
        f"points of points{suffix}, and its own where 301 are wanted, and points{suffix} has 300"
    ]
    assert "Shows [mine](#mine), elsewhere." in text  # what is not in the report was a dead link


@pytest.mark.parametrize(
    "X, text",
    [
        (np.zeros((299, 2)), "299 rows"),
        (np.ones((300, 2)), "1 rows that differ"),
        (np.full((300, 2), np.nan), "NaN or infinity"),
        (np.ones(300), "2-D array"),
    ],
)
def test_points_on_which_no_claim_can_be_checked_are_refused(tmp_path, capsys, X, text):
    np.save(tmp_path / "points.npy", X)
    assert (
        command.main(["--data", str(tmp_path / "points.npy")]) == 2
        and text in capsys.readouterr().err
    )


def test_points_of_a_table_may_have_names(tmp_path):
    rows = [f"{i},{i * i}" for i in range(300)]
    for first in ("", '"x","y"\n', "a b,2nd\n"):
        (tmp_path / "points.csv").write_text(first + "\n".join(rows))
        assert data.Users(tmp_path / "points.csv").X.shape == (300, 2)
    (tmp_path / "points.csv").write_text("nan,1\n" + "\n".join(rows))
    with pytest.raises(ValueError, match="NaN or infinity"):
        data.Users(tmp_path / "points.csv")


def test_weights_tell_the_levels_of_algorithm_2(rng):
    n, lam = 3500, 600.0

    def sample(rows, delta):
        """Algorithm 2 where K = I: rows, weights, and the least weight squared of each level."""
        if len(rows) <= 192 * math.log(1 / delta):
            return rows, np.ones(len(rows)), []
        kept, weights, levels = sample(rows[rng.random(len(rows)) < 0.5], delta / 3)
        squares = np.zeros(n)
        squares[kept] = weights**2
        scores = 1.5 / (squares[rows] + lam)
        p = np.minimum(1, 16 * scores * math.log(scores.sum() / delta))
        drawn = rng.random(len(rows)) < p
        return rows[drawn], p[drawn] ** -0.5, [1 / p.max(), *levels]

    _, weights, levels = sample(np.arange(n), 0.03)
    found, base = rls2017.levels_by_weights(weights, lam)
    np.testing.assert_allclose([*found, base], [*levels, 1.0], rtol=1e-9)


def test_experiments_could_only_end_well(monkeypatch, tmp_path):
    # with a set of the paper they can say that something is not seen
    options = argparse.Namespace(data_dir=tmp_path, data=None, seed=0, kernel=None)
    assert rls2017_experiments.without_sets(options, {"a": False}).startswith("None of the paper")
    assert rls2017_experiments.without_sets(options, {"a": True}) == ""
    np.savez(tmp_path / "cpu_act.npz", X=np.random.default_rng(0).random((50, 3)))
    assert rls2017_experiments.without_sets(options, {"a": False}) == ""
    of_images = argparse.Namespace(data_dir=tmp_path, data=None, seed=0, full=False)
    found = rskpca2013.few_are_retained(of_images)
    assert found.verdict == claims.NOT_COMPARABLE
    nothing = claims.observation({}, "", measured=0.0, bound=1.0)
    assert nothing.verdict == claims.NOT_COMPARABLE
    pytest.importorskip("sklearn")
    monkeypatch.setattr(rskpca2013, "available", lambda options, names: ["digits", "digits"])
    assert rskpca2013.few_are_retained(of_images).verdict == claims.NOT_SEEN


def test_points_of_an_archive_are_its_X(tmp_path):
    X = np.random.default_rng(0).random((300, 2))
    np.savez(tmp_path / "points.npz", other=X[:3], X=X)
    assert np.array_equal(data.Users(tmp_path / "points.npz").X, X)
    np.savez(tmp_path / "points.npz", points=X)
    with pytest.raises(ValueError, match="must have an array X, got points"):
        data.Users(tmp_path / "points.npz")


def test_a_panel_of_the_users_points_was_titled_rough(tmp_path):
    np.save(tmp_path / "mine.npy", np.random.default_rng(0).standard_normal((3000, 2)))
    options = argparse.Namespace(
        data_dir=None, data=data.Users(tmp_path / "mine.npy"), seed=0, kernel=None
    )
    experiments = importlib.import_module("paper_checks.rls2017_experiments")
    assert [name for name, *_ in experiments.data_sets(options)] == ["uneven", "mine.npy"]
    options.data = None
    assert [name for name, *_ in experiments.data_sets(options)] == ["uneven", "rough"]


def test_figure_2_of_rls_takes_a_kernel_and_says_how_many_points_it_needs(
    tmp_path, capsys, monkeypatch
):
    X = np.random.default_rng(0).standard_normal((3000, 2))
    np.save(tmp_path / "mine.npy", X)
    kernels = []

    def judged(options):
        kernels.extend(kernel for _, _, kernel in rls2017_experiments.data_sets(options))
        return claims.observation({"drawn": True}, "", "", measured=0.5, bound=1.0)

    chosen = next(one for one in claims.CLAIMS if one.name == "RLS-Fig2")
    monkeypatch.setattr(chosen, "check", judged)
    asked = ["--claim", "RLS-Fig2", "--kernel", "cauchy"]
    assert command.main([*asked, "--data", str(tmp_path / "mine.npy")]) == 0
    assert kernels[0] == kp.gaussian(1.5) and kernels[1].kind == kp.cauchy(1.0).kind
    half = kp.cauchy(kp.median_bandwidth(X) / 2)
    assert kernels[1].gamma == pytest.approx(half.gamma, rel=0.1)
    assert "takes 3000" not in capsys.readouterr().out
    np.save(tmp_path / "few.npy", X[:2999])
    assert command.main([*asked[:2], "--data", str(tmp_path / "few.npy")]) == 0
    assert capsys.readouterr().out.startswith("RLS-Fig2 takes 3000 points, and few.npy has 2999")
    assert command.main([*asked, "--data", str(tmp_path / "few.npy")]) == 2
    assert "--kernel needs 3000 points, and few.npy has 2999" in capsys.readouterr().err
    assert command.main(asked) == 2 and "--kernel needs --data" in capsys.readouterr().err
    asked[1] = "RLS-T3"
    assert command.main([*asked, "--data", str(tmp_path / "mine.npy")]) == 2
    assert "--kernel is for --claim RLS-Fig2" in capsys.readouterr().err


def test_an_index_says_where_theorems_are(capsys):
    assert command.main(["index"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 40 and "| RLS theorem 7 | `recursive_rls` | RLS-T7 |" in lines
    assert "| RLS theorem 10 and 20 | `recursive_rls_fixed` | RLS-T10 |" in lines


@pytest.mark.slow
def test_pictures_of_the_readme_are_drawn(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pictures = pytest.importorskip("paper_checks.pictures")
    monkeypatch.setattr(pictures, "POINTS", 300)
    monkeypatch.setattr(
        pictures,
        "SKETCHES",
        {name: (sizes[:1], make) for name, (sizes, make) in pictures.SKETCHES.items()},
    )
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (400, 30), dtype=np.uint8), rng.integers(0, 10, 400)
    np.savez(tmp_path / "mnist10k.npz", X=X, y=y)
    assert command.main(["pictures", str(tmp_path / "out"), "--data-dir", str(tmp_path)]) == 2
    np.savez(tmp_path / "pendigits.npz", X=X, y=y)
    assert command.main(["pictures", str(tmp_path / "out"), "--data-dir", str(tmp_path)]) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"digits.png", "sketches.png"}
    assert command.main(["pictures", str(tmp_path / "out")]) == 2


def test_claims_are_listed_and_suggested(capsys):
    assert command.main(["list", "--claim", "rls-T1"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == [
        "RLS-T12",
        "RLS-T10",
        "RLS-T14",
        "RLS-T17",
        "RLS-T15",
        "RLS-T16",
        "RLS-T18",
    ]
    assert (
        command.main(["--claim", "RLS-T33"]) == 2 and "there are RLS-T3" in capsys.readouterr().err
    )


def test_data_sets_are_those_of_the_folder_standardised(tmp_path):
    X = np.random.default_rng(0).integers(0, 9, (50, 3))
    X[:, 1] = 4
    np.savez(tmp_path / "covtype.npz", X=X, part=np.arange(50) % 2)
    np.savez(tmp_path / "cpu_act.npz", X=X)
    options = argparse.Namespace(data_dir=tmp_path, data=None, seed=0, kernel=None)
    (first, points, _), (second, everything, _) = rls2017_experiments.data_sets(options)
    assert (
        (first, second) == ("Covertype", "cpu_act")
        and points.shape == (25, 2)
        and everything.shape == (50, 2)
    )
    assert np.allclose(everything.mean(0), 0) and np.allclose(points.std(0), 1)
    options.data_dir = None
    assert [name for name, _, _ in rls2017_experiments.data_sets(options)] == ["uneven", "rough"]


def test_sets_of_images_and_of_the_folder_are_found(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "yaleb32.npz",
        X=rng.integers(0, 256, (30, 1024)).astype(np.uint8),
        y=np.arange(30) % 3,
    )
    np.savez(tmp_path / "usps.npz", X=rng.uniform(-1, 1, (20, 256)), y=np.arange(20) % 3)
    np.savez(tmp_path / "german_numeric.npz", X=rng.integers(0, 9, (40, 24)), y=np.arange(40) % 2)
    points, labels, sigma, components = rskpca2013.the_set("yale", tmp_path)
    assert points.shape == (30, 256) and 0 <= points.min() < points.max() <= 1 and labels.size == 30
    assert sigma == 17 * (256 / 520) ** 0.5 and components == 10
    points, _, sigma, _ = rskpca2013.the_set("usps", tmp_path)
    assert 0 <= points.min() < points.max() <= 1 and sigma == 18
    assert rskpca2013.the_set("german", tmp_path)[0].shape == (40, 24)
    assert rskpca2013.the_set("pendigits", tmp_path) is None
    image = np.arange(16.0).reshape(1, 16)
    assert np.array_equal(rskpca2013.images(image, 4, 2), [[2.5, 4.5, 10.5, 12.5]])


def test_misfit_is_what_the_best_map_leaves():
    O = np.random.default_rng(0).standard_normal((20, 3))
    assert rskpca2013.misfit(O, O @ np.diag([1.0, 2.0, -3.0])) < 1e-12
    assert rskpca2013.misfit(O, np.zeros((20, 3))) == pytest.approx(np.linalg.norm(O))


def test_busy_machines_do_not_fail_a_claim_about_time():
    # two claims failed on a machine where another process took one of two cores
    slow = claims.observation(
        {"by multiply-adds": True, "by seconds here": False}, "", measured=2.0, bound=1.0
    )
    assert slow.verdict == claims.NOT_SEEN in claims.GOOD


def test_listings_are_counted_as_they_compute():
    X = np.random.default_rng(0).standard_normal((50, 2))
    found = skpca2015.counted_training(X, 8, 4, 0)
    assert found["RNCA"] == 50 * (2 * 8 + 8 * 8) + 8**3
    # from 4 rows a decomposition keeps one: every third point has one more
    assert found["SKPCA"] == 50 * 2 * 8 + (1 + (50 - 4) // 3) * 8 * 4**2


def test_kernel_values_are_counted_as_they_are_evaluated():
    kernel, count = tools.counted_kernel(1.0)
    X = np.random.default_rng(0).standard_normal((30, 2))
    assert count(lambda: kp.gram(X, X[:7].copy(), kernel)) == 210 and count(lambda: None) == 0
    assert np.allclose(kp.gram(X, X, kernel), kp.gram(X, X, kp.gaussian(1.0)))


@pytest.mark.skipif(
    not (ams2001.PROCESS / "clear_refs").exists(), reason="the system does not tell peaks of memory"
)
def test_the_memory_of_a_projection_was_an_allowance():
    # the claim compared the allowance with itself
    array, taken = ams2001.peak_bytes(lambda: np.ones(10_000_000))
    assert 8e7 <= taken < 1.2e8
    del array
    assert ams2001.peak_bytes(lambda: None)[1] < 1e7


@pytest.mark.slow
def test_headlines_run_to_their_end_and_are_found_there_again(
    tmp_path, tmp_path_factory, capsys, rng
):
    folder = tmp_path_factory.mktemp("data")
    for name, n, d in (
        ("mnist10k", 10_000, 784),
        ("qm7_coulomb", 150, 529),
        ("german_numeric", 120, 24),
        ("pendigits", 7600, 16),
    ):
        np.savez(
            folder / f"{name}.npz",
            X=rng.integers(0, 256, (n, d)).astype(np.uint8),
            y=np.arange(n) % 3,
        )
    words = ["headlines", "--scale", "0.001", "--out", str(tmp_path), "--data-dir", str(folder)]
    assert command.main(words) == 0
    first = capsys.readouterr().out
    assert all(f"| {name} |" in first for name in headlines.HEADLINES) and "not run" not in first
    places = {
        path: path.stat().st_mtime_ns
        for path in tmp_path.iterdir()
        if path.name != "headlines.json"
    }
    assert command.main(words) == 0 and capsys.readouterr().out == first
    assert {path: path.stat().st_mtime_ns for path in places} == places  # nothing was run again
    assert command.main([*words, "--seed", "1"]) == 2 and "was made with" in capsys.readouterr().err
    assert (
        command.main(["headlines", "none"]) == 2
        and "there are dsgd-hermite" in capsys.readouterr().err
    )


@pytest.mark.slow
def test_a_descent_that_was_stopped_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    def run(folder):
        folder.mkdir(exist_ok=True)
        options = argparse.Namespace(out=folder, data_dir=None, seed=0, scale=0.004)
        headlines.HEADLINES["dsgd-hermite"][1](headlines.Run("dsgd-hermite", options))
        return (folder / "dsgd-hermite-steps.npz").read_bytes()

    whole, update, calls = run(tmp_path / "whole"), kp.update, []

    def stopped(*arguments):
        calls.append(1)
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return update(*arguments)

    monkeypatch.setattr(headlines.Run, "every", 0.0)
    monkeypatch.setattr(headlines.kp, "update", stopped)
    stops = 0
    while True:
        try:
            parts = run(tmp_path / "parts")
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops >= 3 and parts == whole


@pytest.mark.parametrize("task", ["kcca", "ksir"])
def test_implicit_steps_come_to_the_exact_correlations(task, tmp_path):
    # Each half holds all points, one block all features, so that nothing is random: ridge regression's own solution.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * rng.standard_normal((700, 2))
    map_x = kp.fourier_features_map(kp.gaussian(2.0), 3, 60, 1)
    settings = {"steps": kp.DSGDSteps(feature_batch=60, initial=60), "lam": 0.01}
    if task == "kcca":
        map_y = kp.fourier_features_map(kp.laplacian(2.0), 2, 60, 2)
        state = kp.dsgd_kcca_start(X, Y, map_x, map_y, 3, **settings)
        B, ridge = kp.features(Y, map_y), 0.01 * np.eye(60)
    else:
        state = kp.dsgd_ksir_start(X, Y, map_x, 3, **settings, slices=5)
        B = implicit_steps.second_features(state, Y)
        ridge = np.zeros((B.shape[1], B.shape[1]))
    found = implicit_steps.start(state, X, Y if task == "kcca" else None)
    found = found._make(state._replace(theta0=100.0, theta1=0.0) for state in found)
    A = kp.features(X, map_x)
    A, B = A - A.mean(0), B - B.mean(0)
    roots = [
        np.linalg.cholesky(np.linalg.inv(F.T @ F / 699 + held))
        for F, held in ((A, 0.01 * np.eye(60)), (B, ridge))
    ]
    left, exact, _ = np.linalg.svd(roots[0].T @ (A.T @ B / 699) @ roots[1])
    for _ in range(300):
        found = implicit_steps.update(found, np.concatenate([X, X]), np.concatenate([Y, Y]))
    assert np.abs(kp.dsgd_values(found.mean) / exact[:3] - 1).max() < 1e-3
    result = kp.finish(found.mean)
    functions = kp.features(X, result.first if task == "kcca" else result)
    angle = tools.sin2(functions - functions.mean(0), A @ roots[0] @ left[:, :3])
    assert angle < 1e-4
    implicit_steps.save(tmp_path / "kept.npz", found)
    kept = implicit_steps.load(tmp_path / "kept.npz")
    assert np.array_equal(kept.moving.coef, found.moving.coef) and kept.step == 300


def test_an_arm_takes_as_much_power_as_its_energy_grows(rng):
    a, w, p = rng.uniform(0.3, 1, (20, 7)), rng.uniform(0.5, 3, (20, 7)), rng.uniform(0, 6, (20, 7))

    def at(t):
        return a * np.sin(w * t + p), a * w * np.cos(w * t + p), -a * w * w * np.sin(w * t + p)

    tau, _ = headlines.torques(*at(1.0))
    lower, upper = (headlines.torques(*at(1.0 + step))[1] for step in (-1e-5, 1e-5))
    assert np.allclose((upper - lower) / 2e-5, (tau * at(1.0)[1]).sum(1), rtol=1e-5, atol=1e-4)
    # at rest a torque is the slope of the energy along its joint
    still = np.zeros((7, 7))
    q = np.repeat(rng.uniform(-2, 2, (1, 7)), 7, 0)
    tau = headlines.torques(q, still, still)[0][0]
    lower, upper = (
        headlines.torques(q + step * np.eye(7), still, still)[1] for step in (-1e-5, 1e-5)
    )
    assert np.allclose((upper - lower) / 2e-5, tau, atol=1e-6) and np.abs(tau).max() > 1
    assert not headlines.torques(q, still, still, 0.0)[0].any()


def test_deformed_images_are_functions_of_their_numbers(rng):
    images = rng.random((5, 28, 28))
    many = headlines.deformed(images, 3, 0, 300)
    assert np.array_equal(headlines.deformed(images, 3, 120, 60), many[120:180])
    assert (
        0 <= many.min() and many.max() <= 1 and len(np.unique(many.reshape(300, -1), axis=0)) == 300
    )
    assert not np.array_equal(headlines.deformed(images, 4, 0, 300), many)


def test_the_dimension_of_projections_is_that_of_theorem_6():
    for n, eps, beta, s in ((2, 1.4, 0.0, 43), (200, 0.5, 1.0, 382), (10**6, 0.1, 2.0, 23684)):
        assert ams2001.projection_dimension(n, eps, beta) == s


def test_the_bound_of_projections_is_that_of_theorem_5_4(rng):
    X, kernel = rng.standard_normal((800, 1)), kp.gaussian(1.0)
    found = kp.shadow_select(X, 0.01)
    values = kp.kpca(X, kernel, 3, centered=False).values / 800
    for k in (1, 2):
        bound = rskpca2013.shadow_projection_bound(kernel, 0.01, values, k)
        phi, delta = math.exp(-0.5e-4), (values[k - 1] - values[k]) / 2
        assert bound == pytest.approx(2 * math.sqrt(2 * (1 - phi)) / delta)
        assert (
            kp.projection_distance(
                kp.kpca(X, kernel, k, centered=False),
                kp.rskpca(found, kernel, k, centered=False),
            )
            <= bound
        )
    assert rskpca2013.shadow_projection_bound(kernel, 0.5, values, 1) == math.inf
    scaled = rskpca2013.shadow_projection_bound(kp.scaled(kernel, 7.0), 0.01, 7 * values, 1)
    assert scaled == pytest.approx(rskpca2013.shadow_projection_bound(kernel, 0.01, values, 1))


def test_subsampled_points_are_pared_ones_of_equal_weight(rng):
    X, kernel = rng.standard_normal((50, 2)), kp.gaussian(1.0)
    model = rskpca2013.subsampled_kpca(X, 50, kernel, 3, 1)
    assert np.array_equal(model.points, rskpca2013.kde_pare(X, 50, 1).centers)
    assert np.allclose(model.values, kp.kpca(X, kernel, 3, centered=False).values, rtol=1e-11)


def test_random_noisy_has_the_spectrum_of_its_description():
    A = tools.random_noisy(4000, 60, 3, 20, 10.0, 20)
    variances = np.linalg.eigvalsh(A.T @ A / 4000)[::-1]
    expected = np.append((1 - np.arange(20) / 20) ** 2, np.zeros(40)) + 0.01
    assert np.allclose(variances, expected, rtol=0.12, atol=0.02)


def test_variances_of_orthogonal_frequencies_are_those_of_a_quadrature():
    # in two dimensions the frequencies are r1 (cos t, sin t) and r2 (-sin t, cos t), with Rayleigh's lengths
    def mean_cosine(x):
        return integrate.quad(lambda r: r * np.exp(-r * r / 2) * np.cos(r * x), 0, 12)[0]

    for z in (0.5, 2.0):
        turned = integrate.quad(
            lambda t: mean_cosine(z * np.cos(t)) * mean_cosine(z * np.sin(t)), 0, np.pi / 2
        )[0]
        covariance = turned / (np.pi / 2) - np.exp(-z * z)
        variance = (1 - np.exp(-z * z)) ** 2 / 2
        exact = published.ratio_of_variances(2, z)
        assert exact == pytest.approx(1 + covariance / variance, rel=1e-6)
    assert published.ratio_of_variances(1, 0.7) == 1.0
    # the formula of the paper is the limit
    assert published.ratio_of_variances(10_000, 1.0) == pytest.approx(
        published.limit_of_variances(10_000, 1.0), rel=2e-3
    )
