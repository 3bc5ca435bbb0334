# SPDX-License-Identifier: BSD-3-Clause
"""What a claim is, how it is registered, and the exact statistics that judge it.

A claim is a function that measures something and returns a Verdict. It must be able to fail: a bound is compared with
the trivial one (`vacuity`), and where measurements lie far below a bound a negative control shows that the check can
tell.
"""

import math
import pathlib
import textwrap
from dataclasses import dataclass, field
from typing import Callable

import numpy as np
from scipy import stats

HOLDS = "holds"
MENDED = "misprint, holds as mended"
REFUTED = "refuted as stated"
QUOTED = "quoted from earlier work, and refuted as quoted"
STEP = "true as stated; a step or a constant of its proof is not"
GAP = "not contradicted; its proof has a gap"
LESS = "not contradicted; what we can prove is less"
ASSUMING = "holds where its proof's assumption does"
UNSAID = "holds with a hypothesis that is not printed"
FAILS = "FAILS"
NOT_RUN = "not run: vacuous"
UNDECIDED = "undecided: raise the number of trials"
NO_TRIVIAL = "FAILS: neither a trivial bound nor a reason for none"
# What a paper's own experiment shows, in ours: that is never a failure of the paper.
SEEN = "seen"
NOT_SEEN = "not seen here"
NOT_COMPARABLE = "not comparable: our run lacks what it takes"
GOOD = (HOLDS, MENDED, REFUTED, QUOTED, STEP, GAP, LESS, ASSUMING, UNSAID, SEEN, NOT_SEEN)

VACUOUS_AT = 0.8                                       # a bound above this share of the trivial one says nothing

# Why a claim can have no trivial bound to compare with.
IDENTITY = "an equation, judged to rounding"
COUNT = "a number that is counted; nothing bounds it from outside"
CHANCE = "a score of chance, in standard errors or p-values"
QUOTIENT = "a quotient of two measurements; nothing bounds it from outside"
SHARP = "attained: the bound is the largest value there is"


@dataclass
class Verdict:
    """Outcome of a claim: measured against bound, and in words what was measured."""
    verdict: str
    measured: float
    bound: float
    text: str
    parameters: str = ""
    trivial: float = math.inf                          # the bound that holds without any theorem

    @property
    def slack(self):
        """measured / bound: at most 1 where the bound holds."""
        return self.measured / self.bound if self.bound else math.nan


@dataclass
class Claim:
    name: str
    paper: str
    statement: str
    check: Callable
    measures: str                                      # what the columns measured and bound are, and in which unit
    no_trivial: str = ""                               # why no trivial bound is given, where none is
    experiment: bool = False                           # whether it is about runs of the paper's, not about mathematics
    errata: list = field(default_factory=list)


@dataclass
class Erratum:
    """A place where the paper's text and the mathematics differ.

    kind: "false" (as typed; the claim says what is meant, and how much stands), "step" (of a proof, which does not
    follow; what is proved is not contradicted), "misprint" (a slip of the pen),
    "arguable" (right under the reading that is named) or "note" (right as meant; said for readers). The last two are no
    errata.
    """
    tag: str
    paper: str
    where: str
    kind: str
    stated: str
    right: str
    claim: str                                         # the claim whose text has the evidence


@dataclass
class Figure:
    name: str
    paper: str
    caption: str
    draw: Callable                                     # (matplotlib axes or an array of them, options)
    claims: tuple                                      # names of the claims that it illustrates
    rows: int = 1
    columns: Callable | None = None                    # options -> number of panels beside each other


CLAIMS, ERRATA, FIGURES = [], [], []


def claim(name, paper, statement, *, measures, no_trivial="", experiment=False, errata=()):
    """Register a check; its function takes the run's options and returns a Verdict."""
    if not statement or not measures or any(one.name == name for one in CLAIMS):
        raise ValueError(f"claim {name} must have a name of its own, a statement, and words on what is measured")

    def register(check):
        CLAIMS.append(Claim(name, paper, statement, check, measures, no_trivial, experiment, list(errata)))
        return check
    return register


def erratum(tag, paper, where, kind, stated, right, claim):
    if kind not in ("false", "step", "misprint", "arguable", "note"):
        raise ValueError(f"erratum {tag}: no kind {kind}")
    ERRATA.append(Erratum(tag, paper, where, kind, stated, right, claim))


def figure(name, paper, caption, *, claims, rows=1, columns=None):
    """Register a picture for the report; its function draws on the axes it is given, an array of them if `columns`
    is."""
    def register(draw):
        FIGURES.append(Figure(name, paper, caption, draw, tuple(claims), rows, columns))
        return draw
    return register


def run(claims, options):
    """Yield (claim, Verdict); a check that raises is our bug, and FAILS."""
    for one in claims:
        try:
            verdict = one.check(options)
        # whatever went wrong, the table goes on and the exit status tells
        except Exception as error:
            verdict = Verdict(FAILS, math.nan, math.nan, f"{type(error).__name__}: {error}")
        else:
            if one.experiment:
                verdict.verdict = {HOLDS: SEEN, FAILS: NOT_COMPARABLE}.get(verdict.verdict, verdict.verdict)
        yield one, guard_vacuity(one, verdict)


def guard_vacuity(claim, verdict):
    """A bound near the trivial one does not count as checked, nor does one that nobody compared with anything."""
    if verdict.verdict in GOOD and math.isinf(verdict.trivial) and not claim.no_trivial:
        verdict.verdict = NO_TRIVIAL
    if verdict.verdict in GOOD and verdict.bound >= VACUOUS_AT * verdict.trivial:
        verdict.verdict = NOT_RUN
    return verdict


def detection(control):
    """What a text says of its control, so that no text can claim more than was seen."""
    return "detected" if control else "NOT detected"


def judgements(file):
    """How often the source of a file of claims calls for a judgement of failure counts: the accusations it could
    make."""
    return pathlib.Path(file).read_text(encoding="utf-8").count("judge_failures(")


def clopper_pearson(failures, trials, level):
    """One-sided exact limits (lower, upper) of a probability, each at the given level."""
    lower = stats.beta.ppf(level, failures, trials - failures + 1) if failures else 0.0
    upper = stats.beta.isf(level, failures + 1, trials - failures) if failures < trials else 1.0
    return lower, upper


def judge_failures(failures, trials, delta, tests=1):
    """HOLDS, FAILS or UNDECIDED for P(failure) <= delta: 95 % upper limit below it, 99.9 % lower limit above it.

    `tests` is the number of such judgements in one report; the level of the accusation is divided by it.
    """
    lower, _ = clopper_pearson(failures, trials, 0.001 / tests)
    _, upper = clopper_pearson(failures, trials, 0.05)
    return FAILS if lower > delta else HOLDS if upper <= delta else UNDECIDED


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


def binomial_p_value(count, trials, probability):
    """Exact two-sided p-value of a count."""
    return float(stats.binomtest(int(count), int(trials), probability).pvalue)


PAPERS = {"ams": "AMS", "rskpca": "RSKPCA", "skpca": "SKPCA", "dsgd": "DSGD", "rls": "RLS"}


def in_short(paper):
    """Where a paper's text and the mathematics differ, by kind, for the README; steps of proofs by themselves, as they
    say nothing against what is proved."""
    words = {"false": "False as typed",
             "step": "Steps of proofs that do not follow (the results are not contradicted)",
             "misprint": "Misprints", "arguable": "Arguable"}
    places = {kind: [e.where[0].lower() + e.where[1:] for e in ERRATA if (e.paper, e.kind) == (paper, kind)]
              for kind in words}
    text = " ".join(f"{words[kind]}: {'; '.join(found)}." for kind, found in places.items() if found)
    return textwrap.fill(f"- {PAPERS[paper]}. {text}", 120, subsequent_indent="  ")
