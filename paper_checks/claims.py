# SPDX-License-Identifier: BSD-3-Clause
"""What a claim is, how it is registered, and the exact statistics that judge it.

To add a claim, write in the paper's file, where the paper has it, a function of the run's options under

    @claim("RLS-T3", "rls", "Theorem 3: what it states, in its letters.", measures="|K - K~|, and lam",
           control="what must break the bound, or the check could not have told", errata=[Erratum(...)])

that measures (mathematics in short functions above it) and ends in one of the constructors below, which judge:
`bounded` for a bound or an identity, `probability` for failures allowed with probability delta, `rate` for exponents,
`counterexample` for a statement that is wrong as printed. What a paper's own runs show is an `@experiment`, and ends in
`observation`. A claim that runs no code of kpcasketch is registered with `arithmetic=True`, and is counted apart. A
bound is given its trivial one (`trivial=`), or the decorator one of the reasons for none (`no_trivial=`). The text of a
verdict is one line; `details=` has the rest, and the numbers of both come from the run. `options` has seed, full, data
(the user's points) and data_dir; `--claim NAME` judges one. A new paper: one entry in PAPERS.

Level. Every accusation, of a paper or of a control, has the level 1e-6, whatever was judged before it. A run makes
fewer than 1000 of them, so that all together are wrong with probability at most .001.

Verdict. A claim that ends well ends in one of five labels: HOLDS, MENDED, REFUTED, STEP, GAP. Each but HOLDS has a note
(`note=`), a few words that say what is meant: the mended form, the place that is false, the gap.

Control. It is one wrong implementation: a wrong constant, sign or weight. It is not less of the paper's effort, since
the claim may hold there as well, and that is told by the critical effort.

Critical effort. The least s, m, l or oversampling at which the same judge still passes. The paper's number may be
generous, and the verdict then says by how much. A claim gives its constructor an `Effort`, a name, the stated number
and a function of it, and the search by halving does the rest:

    probability(failures, trials, delta, control, text, effort=Effort("m", 275, fails), ...)

where fails(m, trial) tells whether that trial fails with m features. The verdict has an interval: below it, failures
are more frequent than delta with confidence 95 %; above it, they are less frequent, with the same confidence. Each
search has 29 trials (delta = .1; as many as the judge needs), and stops as soon as it is decided. For `bounded` the
function of the effort returns the number that is compared with the bound, and the interval is the range over
independent draws. Where two numbers go together, search over one, and let the function scale the other. SKPCA-L3.1 and
AMS-T5 are examples.

Rate. An exponent that is measured by random runs is an `Estimate`, with its standard error, by `bootstrapped`. Its 95 %
interval has to lie inside the limits. Transients are left out by a rule, `tools.settled`.

Experiment. Its verdict at seed 0 is declared (`usual=`, and `with_sets=` where --data-dir has the papers' sets). One
that was seen, and is not any more, fails the run.

Counterexample. Its mended form is a verdict of its own, made by `bounded` or `probability`, with a control and a
trivial bound like any other.
"""

import collections
import importlib
import importlib.util
import math
import re
import textwrap
from dataclasses import dataclass, field
from typing import Callable, NamedTuple

import numpy as np
from scipy import stats

import kpcasketch as kp

PAPERS = {
    # file, short name, subject
    "ams": ("ams2001", "AMS", "sampling techniques for kernel methods"),
    "rskpca": ("rskpca2013", "RSKPCA", "reduced-set kernel PCA"),
    "skpca": ("skpca2015", "SKPCA", "streaming kernel PCA"),
    "dsgd": ("dsgd2015", "DSGD", "doubly stochastic gradients"),
    "rls": ("rls2017", "RLS", "recursive leverage scores"),
}

HOLDS = "holds"
MENDED = "misprint, holds as mended"
REFUTED = "refuted as stated"
STEP = "true, a step of its proof is false"
GAP = "not contradicted, its proof has a gap"
# What a paper's own experiment shows, in ours: that is never a failure of the paper.
SEEN = "seen"
NOT_SEEN = "not seen"
NOT_COMPARABLE = "not comparable"
GOOD = (HOLDS, MENDED, REFUTED, STEP, GAP, SEEN, NOT_SEEN, NOT_COMPARABLE)
# What does not count as judged well, each by its reason.
VIOLATED = "FAILS: violated"
UNDETECTED = "FAILS: its control was not detected"
NOT_REPRODUCED = "FAILS: the counterexample was not reproduced"
VACUOUS = "FAILS: vacuous on these data"
BROKEN = "FAILS: the check itself broke"
UNDECIDED = "undecided: raise the number of trials"
LOST = "FAILS: what the paper shows was seen at this seed, and is not any more"

# Kinds of what is registered. Only claims judge the toolkit.
CLAIM, ARITHMETIC, EXPERIMENT = "claim", "arithmetic", "experiment"

VACUOUS_AT = 0.8  # a bound above this share of the trivial one says nothing
SHARP_AT = 0.95  # the share of a sharp bound that the check itself must attain

# Why a claim can have no trivial bound to compare with.
IDENTITY = "an equation, judged to rounding"
COUNT = "a number that is counted; nothing bounds it from outside"
CHANCE = "a score of chance, in standard errors or p-values"
QUOTIENT = "a quotient of two measurements; nothing bounds it from outside"
SHARP = "attained: the check itself reaches .95 of the bound or more"
SLOPE = "an exponent; what does not converge has 0"
EXACT = "the counterexample is exact"
REASONS = (IDENTITY, COUNT, CHANCE, QUOTIENT, SHARP, SLOPE, EXACT)


@dataclass
class Verdict:
    """Outcome of a claim: measured against bound, in one line what was found, and its details."""

    verdict: str
    measured: float
    bound: float
    text: str
    parameters: str = ""
    trivial: float = math.inf  # the bound that holds without any theorem
    from_control: str = ""  # what the control gave
    compared: bool = True  # whether measured / bound says anything: exponents' does not
    data: str = ""  # whose points, if the user gave some
    table: tuple = ()  # (columns, rows) of words, where there are more numbers than a text should have
    note: str = ""  # what the label means here
    details: str = ""  # what the line of text leaves out
    effort: str = ""  # the critical effort
    arithmetic: bool = False  # of the paper: no code of kpcasketch was run
    no_trivial: str = ""  # why this one has no trivial bound; else the claim's words count
    mended: "Verdict | None" = None  # of a counterexample: the verdict on the mended form

    @property
    def slack(self):
        """measured / bound: at most 1 where the bound holds."""
        return self.measured / self.bound if self.bound and self.compared else math.nan

    @property
    def words(self):
        """The label, its note, and in brackets the critical effort and whether it is arithmetic of the paper."""
        label = f"{self.verdict}: {self.note}" if self.note else self.verdict
        more = "; ".join(
            filter(None, (self.effort, "arithmetic of the paper" if self.arithmetic else ""))
        )
        return f"{label} ({more})" if more else label


class Effort(NamedTuple):
    """What a critical effort is searched over.

    name: as the paper calls it. stated: the number that goes with the claim; an int is searched among ints. run: for
    `bounded`, a function of the effort that returns the measured number, and with several draws a function of the
    effort and of a draw, 0, 1, ...; for `probability`, a function of the effort and of a trial, 0, 1, ..., that tells
    whether the trial fails. source: whose number `stated` is. draws: how many independent draws `bounded` searches.
    """

    name: str
    stated: float
    run: Callable
    source: str = "the paper's"
    draws: int = 1


class Estimate(NamedTuple):
    """A number that was measured with chance: its standard error, and the degrees of freedom of that error."""

    value: float
    error: float = 0.0
    freedom: float = math.inf

    def limits(self, level):
        """The interval outside of which the true number lies with probability `level`, by Student's law."""
        half = self.error * stats.t.isf(level / 2, self.freedom)
        return self.value - half, self.value + half


@dataclass
class Erratum:
    """A place where the paper's text and the mathematics differ; declared with the claim that has the evidence.

    kind: "false" (as typed; the claim says what is meant, and how much stands), "step" (of a proof, which does not
    follow; what is proved is not contradicted), "misprint" (a slip of the pen), "arguable" (right under the reading
    that is named) or "note" (right as meant; said for readers). The last two are no errata.
    """

    tag: str
    kind: str
    where: str
    stated: str
    right: str
    paper: str = ""  # these two are the claim's
    claim: str = ""


@dataclass
class Claim:
    name: str
    paper: str
    statement: str
    check: Callable
    measures: str  # what the columns measured and bound are, and in which unit
    control: str = ""  # what must break the bound; of an experiment, nothing
    no_trivial: str = ""  # why no trivial bound is given, where none is
    errata: list = field(default_factory=list)  # tags
    points: int = 0  # how many of the user's it takes; 0 is any number
    kind: str = CLAIM
    usual: str | None = (
        None  # verdict of an experiment at seed 0 on the data that it draws; None is not judged
    )
    with_sets: str | None = None  # the same on the papers' sets


@dataclass
class Figure:
    name: str
    paper: str
    caption: str
    draw: Callable  # (matplotlib axes or an array of them, options)
    claims: tuple  # names of the claims that it illustrates
    rows: int = 1
    columns: Callable | None = None  # options -> number of panels beside each other


CLAIMS, ERRATA, FIGURES = [], [], []


def claim(name, paper, statement, *, measures, control, no_trivial="", errata=(), arithmetic=False):
    """Register a check; its function takes the run's options and returns a Verdict. Of errata, those of other claims by
    their tags. `arithmetic` says that it runs no code of kpcasketch."""
    if not all((statement, measures, control)) or any(one.name == name for one in CLAIMS):
        raise ValueError(
            f"claim {name} must have a name of its own, a statement, a control, and words on what is "
            f"measured"
        )
    if no_trivial and no_trivial not in REASONS:
        raise ValueError(f"claim {name}: no_trivial must be one of {REASONS}")
    return _registered(
        errata,
        name=name,
        paper=paper,
        statement=statement,
        measures=measures,
        control=control,
        no_trivial=no_trivial,
        kind=ARITHMETIC if arithmetic else CLAIM,
    )


def experiment(
    name, paper, statement, *, measures, errata=(), points=0, usual=SEEN, with_sets=None
):
    """Register what a paper's own runs show: it can be seen or not, and has neither control nor trivial bound.

    `usual` is its verdict at seed 0 on the data that it draws, and `with_sets` that on the papers' sets; None is not
    judged, as where seconds are compared.
    """
    return _registered(
        errata,
        name=name,
        paper=paper,
        statement=statement,
        measures=measures,
        no_trivial=QUOTIENT,
        points=points,
        kind=EXPERIMENT,
        usual=usual,
        with_sets=with_sets,
    )


def _registered(errata, **words):
    for one in errata:
        if isinstance(one, Erratum):
            if one.kind not in ("false", "step", "misprint", "arguable", "note"):
                raise ValueError(f"erratum {one.tag}: no kind {one.kind}")
            one.paper, one.claim = words["paper"], words["name"]
            ERRATA.append(one)

    def register(check):
        tags = [getattr(one, "tag", one) for one in errata]
        CLAIMS.append(Claim(check=check, errata=tags, **words))
        return check

    return register


def figure(name, paper, caption, *, claims, rows=1, columns=None):
    """Register a picture for the report; its function draws on the axes it is given, an array of them if `columns` (a
    number, or a function of the options) is."""

    def register(draw):
        panels = columns if callable(columns) or columns is None else lambda options: columns
        FIGURES.append(Figure(name, paper, caption, draw, tuple(claims), rows, panels))
        return draw

    return register


def run(claims, options):
    """Yield (claim, Verdict); a check that raises is our bug."""
    given = getattr(options, "data", None)
    for one in claims:
        if given is not None:
            given.begin()
        try:
            verdict = one.check(options)
        # whatever went wrong, the table goes on and the exit status tells
        except Exception as error:
            verdict = Verdict(BROKEN, math.nan, math.nan, f"{type(error).__name__}: {error}")
        verdict.data = given.told() if given is not None else ""
        verdict.arithmetic = one.kind == ARITHMETIC
        if is_lost(one, verdict, options):
            verdict.verdict = LOST
        yield one, guard_vacuity(one, verdict)


def counted(claims):
    """How many claims, statements of arithmetic and experiments there are, in words."""
    count = collections.Counter(one.kind for one in claims)
    words = {
        CLAIM: "claims about this code",
        ARITHMETIC: "about arithmetic of the papers",
        EXPERIMENT: "experiments of the papers",
    }
    return ", ".join(f"{count[kind]} {told}" for kind, told in words.items() if count[kind])


def is_lost(claim, verdict, options):
    """Whether an experiment that is seen at seed 0 was not seen in this run, which has that seed and those data."""
    if claim.kind != EXPERIMENT or options.seed != 0 or options.full or options.data is not None:
        return False
    usual = claim.usual if options.data_dir is None else claim.with_sets
    return usual == SEEN and verdict.verdict in (NOT_SEEN, NOT_COMPARABLE)


def guard_vacuity(claim, verdict):
    """A bound near the trivial one does not count as checked, nor does one that nobody compared with anything, nor a
    sharp one that the check did not reach. The same goes for the mended form of a counterexample."""
    reason = _vacuity(verdict, verdict.no_trivial or claim.no_trivial)
    if not reason and verdict.mended is not None:
        reason = _vacuity(verdict.mended, verdict.mended.no_trivial)
        reason = f" Mended form:{reason}" if reason else ""
    if verdict.verdict in GOOD and reason:
        verdict.verdict = VACUOUS
        verdict.text += reason
    return verdict


def _vacuity(verdict, no_trivial):
    """Why a bound says nothing, or no word."""
    if math.isinf(verdict.trivial) and not no_trivial:
        return " No trivial bound was given (trivial=), nor a reason for none."
    if not verdict.bound < VACUOUS_AT * verdict.trivial:
        return f" The bound {verdict.bound:.3g} is near the trivial one, {verdict.trivial:.3g}."
    if no_trivial == SHARP and not verdict.slack >= SHARP_AT:
        return f" The bound is called sharp, and {verdict.slack:.3g} of it was reached."
    return ""


# ----------------------------------------------------------------------------------------------------------------------
# What judges.

HOLDING = 0.05  # level at which a claim holds
ACCUSING = 1e-6  # level of an accusation; a run makes fewer than 1000 of them


def clopper_pearson(failures, trials, level):
    """One-sided exact limits (lower, upper) of a probability, each at the given level."""
    lower = stats.beta.ppf(level, failures, trials - failures + 1) if failures else 0.0
    upper = stats.beta.isf(level, failures + 1, trials - failures) if failures < trials else 1.0
    return lower, upper


def judge_failures(failures, trials, delta):
    """HOLDS, VIOLATED or UNDECIDED for P(failure) <= delta: 95 % upper limit below it, or a lower limit, of the level
    of an accusation, above it."""
    lower, _ = clopper_pearson(failures, trials, ACCUSING)
    _, upper = clopper_pearson(failures, trials, HOLDING)
    return VIOLATED if lower > delta else HOLDS if upper <= delta else UNDECIDED


def too_often(failures, trials, delta):
    """Whether failures are certainly more frequent than delta."""
    return judge_failures(failures, trials, delta) == VIOLATED


def _told(verdict, controls, needs, otherwise, note):
    """The first reason why a verdict does not stand, or the verdict; and what was missing, in words."""
    if verdict in GOOD and verdict != HOLDS and not note:
        raise ValueError(f"a verdict '{verdict}' must have a note")
    missing = [what for what, met in (needs or {}).items() if not met]
    if missing and verdict in GOOD:
        return otherwise, f" Not met: {'; '.join(missing)}."
    if not all(controls) and verdict in GOOD:
        return UNDETECTED, ""
    return verdict, ""


def least_effort(stated, passes):
    """The least effort at which passes(effort) is true, found by halving; infinite if it is above `stated`.

    An int is found exactly up to 16, and to a sixteenth beyond; another number to a sixteenth.
    """
    whole, low, high = isinstance(stated, int), 0, stated
    if not passes(high):
        return math.inf
    while high > stated / 4096 and high - low > max(low / 16, 1 if whole else high / 16):
        middle = (low + high) // 2 if whole else (low + high) / 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def critical_effort(effort, *passes):
    """The range of the least efforts at which each of several judges passes, in words."""
    found = [least_effort(effort.stated, one) for one in passes]
    told = [f"{s:.3g}" if isinstance(s, float) else str(s) for s in sorted(found)]
    told = [one if one != "inf" else f"above {effort.stated:.6g}" for one in told]
    between = told[0] if told[0] == told[-1] else f"{told[0]} to {told[-1]}"
    words = f"critical effort {effort.name} = {between}; {effort.source} {effort.name} is"
    return f"{words} {effort.stated:.6g}".replace("= above", "above")


def _fails_at_most(allowed, trials, run):
    """The judge of an effort that passes where at most so many of the trials fail; it stops at the next failure."""

    def passes(s):
        failures = 0
        for trial in range(trials):
            failures += run(s, trial)
            if failures > allowed:
                return False
        return True

    return passes


def bounded(
    measured,
    bound,
    control,
    text,
    parameters="",
    *,
    trivial=math.inf,
    no_trivial="",
    needs=None,
    good=HOLDS,
    note="",
    rounding=1e-9,
    effort=None,
    details="",
):
    """measured <= bound (up to rounding), by a check that could tell: `control`, measured where the bound is broken, is
    above.

    `control` may be several numbers, all of which must be above; `needs` has further conditions, {what: whether}.
    """
    controls = np.atleast_1d(control)
    limit = bound * (1 + rounding)
    verdict, missing = _told(
        good if measured <= limit else VIOLATED, controls > limit, needs, VIOLATED, note
    )
    shown = ", ".join(f"{value:.3g}" for value in controls)
    searched = ""
    if effort is not None and verdict in GOOD:
        draws = [()] if effort.draws == 1 else [(draw,) for draw in range(effort.draws)]
        searched = critical_effort(
            effort, *(lambda s, draw=draw: effort.run(s, *draw) <= limit for draw in draws)
        )
    return Verdict(
        verdict,
        float(measured),
        float(bound),
        text + missing,
        parameters,
        float(trivial),
        f"{shown}, above {bound:.3g}"
        if verdict != UNDETECTED
        else f"{shown}, NOT above {bound:.3g}",
        note=note,
        no_trivial=no_trivial,
        effort=searched,
        details=details,
    )


def probability(
    failures,
    trials,
    delta,
    control,
    text,
    parameters="",
    *,
    measured=None,
    bound=None,
    trivial=math.inf,
    needs=None,
    good=HOLDS,
    note="",
    effort=None,
    details="",
):
    """P(failure) <= delta by exact tails; `control`, (failures, trials) of what breaks the bound, fails too often.

    measured and bound, for the table, are the rate of failures and delta unless given.
    """
    verdict = judge_failures(failures, trials, delta)
    detected = too_often(*control, delta)
    verdict, missing = _told(
        good if verdict == HOLDS else verdict, [detected], needs, VIOLATED, note
    )
    searched = ""
    if effort is not None and verdict in GOOD:
        # without a failure the judge holds; with more than `doubtful`, delta is exceeded, at the same level
        enough = math.ceil(math.log(HOLDING) / math.log1p(-delta))
        doubtful = int(stats.binom.ppf(1 - HOLDING, enough, delta))
        judges = (_fails_at_most(allowed, enough, effort.run) for allowed in (0, doubtful))
        searched = critical_effort(effort, *judges)
    return Verdict(
        verdict,
        failures / trials if measured is None else float(measured),
        delta if bound is None else float(bound),
        f"{failures} failures in {trials} trials, allowed with probability {delta:.3g}. {text}{missing}",
        parameters,
        1.0 if bound is None and math.isinf(trivial) else float(trivial),
        f"{control[0]} of {control[1]} fail{'' if detected else ', NOT too many'}",
        note=note,
        effort=searched,
        details=details,
    )


def bootstrapped(statistic, draws, seed, resamples=400):
    """Estimate of statistic(draws) by a bootstrap of independent replicates, the last axis of draws."""
    draws, rng = np.asarray(draws), np.random.default_rng(seed)
    count = draws.shape[-1]
    found = [statistic(draws[..., rng.integers(0, count, count)]) for _ in range(resamples)]
    error = np.std(found) * math.sqrt(count / (count - 1))
    return Estimate(float(statistic(draws)), float(error), count - 1)


def rate(
    estimates,
    low,
    high,
    control,
    text,
    parameters="",
    *,
    needs=None,
    good=HOLDS,
    note="",
    details="",
):
    """low <= exponent <= high for each of a list of Estimates, where the control's, an Estimate, is outside.

    An exponent holds where its 95 % interval lies inside the limits. It is violated where its interval, of the level of
    an accusation, lies outside; so must the control's. Else it is undecided. The table shows the exponent that comes
    nearest to a limit, or is farthest beyond it, and that limit.
    """

    def outside(estimate):
        least, most = estimate.limits(ACCUSING)
        return not (least <= high and most >= low)

    def beyond(estimate):
        return max(low - estimate.value, estimate.value - high)

    intervals = [one.limits(HOLDING) for one in estimates]
    inside = all(low <= least and most <= high for least, most in intervals)
    verdict = VIOLATED if any(map(outside, estimates)) else good if inside else UNDECIDED
    detected = math.isfinite(control.value) and outside(control)
    verdict, missing = _told(verdict, [detected], needs, VIOLATED, note)
    worst = max(estimates, key=beyond)
    least, most = worst.limits(HOLDING)
    between = f"95 % interval of {worst.value:.3g}: {least:.3g} to {most:.3g}. "
    return Verdict(
        verdict,
        worst.value,
        high if worst.value - high >= low - worst.value else low,
        text + missing,
        parameters,
        from_control=f"{control.value:.3g}",
        compared=False,
        note=note,
        details=(between if worst.error else "") + details,
    )


def counterexample(
    printed,
    stated,
    text,
    parameters="",
    *,
    mended,
    note,
    needs=None,
    good=REFUTED,
    trivial=math.inf,
    details="",
):
    """What the paper prints is exceeded, printed > stated; its mended form, a Verdict of another constructor, holds.

    The control of the printed form is the counterexample; `needs` has what else must be reproduced. The mended form has
    a control of its own, and the table shows it where the verdict is MENDED.
    """
    verdict = good if printed > stated else NOT_REPRODUCED
    verdict, missing = _told(verdict, [], needs, NOT_REPRODUCED, note)
    if verdict in GOOD and mended.verdict != HOLDS:
        verdict, missing = mended.verdict, " This is the verdict on the mended form."
    shown = mended if good == MENDED else None
    return Verdict(
        verdict,
        shown.measured if shown else float(printed),
        shown.bound if shown else float(stated),
        text + missing,
        parameters,
        shown.trivial if shown else float(trivial),
        f"as printed {printed:.4g}, stated {stated:.4g}; mended {mended.measured:.4g}, bound {mended.bound:.4g}, "
        f"its control {mended.from_control}",
        note=note,
        effort=mended.effort if verdict in GOOD else "",
        no_trivial=shown.no_trivial if shown else "",
        mended=mended,
        details=" ".join(filter(None, (details, "Mended form:", mended.text, mended.details))),
    )


def observation(seen, text, parameters="", *, measured, bound, lacking="", table=(), details=""):
    """What a paper's runs show, {sentence: whether it is so in ours}; `lacking` says why ours cannot be compared.

    `lacking` must depend on the data that are here: an experiment that can only end well is not judged.
    """
    if not seen:  # all of nothing would be seen
        lacking = lacking or "no set that the paper names, or that stands in for one, is here"
    absent = "; ".join(what for what, yes in seen.items() if not yes)
    words = "; ".join(f"{what}: {'seen' if yes else 'not seen'}" for what, yes in seen.items())
    return Verdict(
        NOT_COMPARABLE if lacking else NOT_SEEN if absent else SEEN,
        float(measured),
        float(bound),
        f"{text} Not seen: {absent}." if absent else text,
        parameters,
        table=table,
        note=lacking.rstrip("."),
        details=f"{words}. {details}".strip() if words else details,
    )


def standard_errors(draws, target, variance):
    """Largest distance of the mean of draws (first axis) from the target, in standard errors of a known variance.

    Where the variance is 0 the draws must equal the target to rounding, else the distance is infinite.
    """
    gap = np.abs(draws.mean(0) - target)
    scale = np.sqrt(variance / len(draws))
    exact = gap <= 1e-12 * (1 + np.abs(target))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(exact, 0.0, gap / scale)))


def mean_limit(tests):
    """Standard errors that the largest of `tests` means exceeds with probability about 1e-6, and never below 5."""
    return max(5.0, float(stats.norm.isf(0.5e-6 / tests)))


def register(paper):
    """Import the claims of a paper, and its experiments where these have a file of their own."""
    name = f"paper_checks.{PAPERS[paper][0]}"
    importlib.import_module(name)
    if importlib.util.find_spec(f"{name}_experiments"):
        importlib.import_module(f"{name}_experiments")


def in_short(paper):
    """Where a paper's text and the mathematics differ, by kind; steps of proofs by themselves, as they
    say nothing against what is proved."""
    words = {
        "false": "False as typed",
        "step": "Steps of proofs that do not follow (the results are not contradicted)",
        "misprint": "Misprints",
        "arguable": "Arguable",
    }
    of_paper = sorted((e for e in ERRATA if e.paper == paper), key=lambda e: int(e.tag[1:]))
    places = {
        kind: [e.where[0].lower() + e.where[1:] for e in of_paper if e.kind == kind]
        for kind in words
    }
    text = " ".join(
        f"{words[kind]}: {'; '.join(found)}." for kind, found in places.items() if found
    )
    return textwrap.fill(f"- {PAPERS[paper][1]}. {text}", 120, subsequent_indent="  ")


def index(papers):
    """Lines of a Markdown table: each statement with a number, the functions whose docstrings cite it, its claim."""
    rows = []
    for one in (c for c in CLAIMS if c.paper in papers):
        title = re.match(
            r"(Theorem|Lemma|Corollary|Fact|Algorithm)s? ([\d.]*\d(?:(?:,| and) [\d.]*\d)*)",
            one.statement,
        )
        if title is None:
            continue
        paper, kind = PAPERS[one.paper][1].split()[0], title[1].lower()
        numbers = re.findall(r"[\d.]*\d", title[2])
        cited = "|".join(re.escape(number) for number in numbers)
        pattern = re.compile(rf"\b{paper} {kind}s? (?:[\d.]+(?:,| and) )?(?:{cited})(?![\d.]*\d)")
        texts = {name: " ".join((getattr(kp, name).__doc__ or "").split()) for name in kp.__all__}
        names = ", ".join(f"`{name}`" for name, text in texts.items() if pattern.search(text))
        rows.append(f"| {paper} {kind} {title[2]} | {names or '(the check alone)'} | {one.name} |")
    return ["| statement | functions that cite it | claim |", "| --- | --- | --- |", *rows]
