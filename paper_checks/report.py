# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run, written anew after each claim: report.md with pictures beside it (PNG and PDF, their numbers as
CSV), and report.html with the pictures inside."""

import base64
import collections
import csv
import datetime
import html
import importlib
import json
import math
import pathlib
import platform

from paper_checks import claims, data

COLUMNS = (
    "claim",
    "verdict",
    "what is measured",
    "measured",
    "bound",
    "slack",
    "bound / trivial",
    "errata",
    "figures",
)
ERRATA_COLUMNS = ("tag", "where", "kind", "stated", "right", "evidence in")
LEGEND = (
    '"Holds" means: not contradicted on these instances, by a check that would have told; it is no proof. '
    "Slack is measured over bound: at most 1 where a bound holds; exponents have none. Each claim has a control, "
    "which must break the bound, or the check could not have told. A bound near the trivial one, which holds "
    "without any theorem, would say nothing, and such a claim is not counted as checked. Where no trivial bound "
    "is given, the column says why. The critical effort is the least number of features, samples or rows at which "
    "the same judge still passes on these data. It is an interval: below it the claim fails with confidence 95 %, and "
    "above it the claim holds with the same confidence; where a bound is compared with a measured number, it is the "
    "range of several draws. The number beside it is what the paper asks for, or the source that is named. "
    '"Arithmetic of the paper" runs no code of kpcasketch: it tells whether the paper is right, and nothing about the '
    "code."
)
STYLE = """body { font: 15px/1.45 system-ui, sans-serif; max-width: 84em; margin: 2em auto; padding: 0 1em;
color: #222 }
table { border-collapse: collapse; width: 100%; font-size: 13.5px } td, th { text-align: left; vertical-align: top;
padding: .3em .6em; border-bottom: 1px solid #ddd; overflow-wrap: break-word } th { background: #f4f4f4 }
td:first-child { white-space: nowrap }
img { max-width: 100%; max-height: 46em } .bad { color: #b00 } .other { color: #850 } code { font-size: 90% }
h3 { margin: 1.6em 0 .2em } p { margin: .4em 0 }"""


def number(value):
    return "" if math.isinf(value) or math.isnan(value) else f"{value:.4g}"


class Text:
    """Markdown: how a heading, a link, a table and a picture are written."""

    @staticmethod
    def plain(text):
        return text.replace("|", "\\|")

    @staticmethod
    def heading(level, text, name=""):
        return f"{'#' * level} {text}" + (f' <a id="{name}"></a>' if name else "")

    @staticmethod
    def link(name, text):
        return f"[{text}](#{name})"

    @staticmethod
    def paragraph(text, kind=""):
        return text

    @staticmethod
    def strong(text):
        return f"**{text}**"

    @staticmethod
    def table(columns, rows):
        return "\n".join(
            "| " + " | ".join(row) + " |" for row in [columns, ["---"] * len(columns), *rows]
        )

    @staticmethod
    def picture(name, png):
        return f"![{name}]({name}.png)"

    @staticmethod
    def document(parts):
        return "\n\n".join(parts) + "\n"


class Page(Text):
    """The same in HTML, pictures inside."""

    @staticmethod
    def plain(text):
        return html.escape(text)

    @staticmethod
    def heading(level, text, name=""):
        return (
            f'<h{level} id="{name}">{text}</h{level}>' if name else f"<h{level}>{text}</h{level}>"
        )

    @staticmethod
    def link(name, text):
        return f'<a href="#{name}">{text}</a>'

    @staticmethod
    def paragraph(text, kind=""):
        return f"<p class={kind}>{text}</p>" if kind else f"<p>{text}</p>"

    @staticmethod
    def strong(text):
        return f"<b>{text}</b>"

    @staticmethod
    def table(columns, rows):
        head = "".join(f"<th>{column}</th>" for column in columns)
        body = "\n".join(
            "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"

    @staticmethod
    def picture(name, png):
        return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'

    @staticmethod
    def document(parts):
        return (
            f"<!doctype html><html lang=en><meta charset=utf-8><title>Paper "
            f"checks</title><style>{STYLE}</style><body>\n"
            + "\n".join(parts)
            + "\n</body></html>\n"
        )


def draw(figure, options):
    """The picture, as a figure of matplotlib's."""
    columns, given = (
        figure.columns(options) if figure.columns else 1,
        getattr(options, "data", None),
    )
    if given is not None:
        given.begin()
    canvas = importlib.import_module("matplotlib.figure").Figure(
        figsize=(3 + 4 * columns, 4 * figure.rows), layout="constrained"
    )
    figure.draw(canvas.subplots(figure.rows, columns, squeeze=figure.columns is None), options)
    if given is not None:
        canvas.suptitle(
            given.told()
            + (", where a panel names no others" if given.used and columns > 1 else ""),
            fontsize="small",
        )
    return canvas


FORMS = ("png", "pdf", "csv")
NUMBERS = ("panel", "title", "of x", "of y", "series", "x", "y", "least y", "largest y")


def numbers(canvas):
    """Rows with the columns NUMBERS: every point that a figure of matplotlib's shows, but for lines across a panel."""
    for place, axis in enumerate(canvas.axes):
        panel = (place + 1, axis.get_title(), axis.get_xlabel(), axis.get_ylabel())
        lines = {line: (line.get_label(), ()) for line in axis.get_lines()}
        for bars in axis.containers:  # of errors; their ends are lines without a label of their own
            if hasattr(bars, "has_yerr"):
                mean, ends, _ = bars.lines
                lines[mean] = bars.get_label(), [end.get_ydata() for end in ends]
                lines = {line: told for line, told in lines.items() if line not in ends}
        series = [
            (label, line.get_xdata(), line.get_ydata(), *ends)
            for line, (label, ends) in lines.items()
            if line.get_transform() == axis.transData
        ]
        for points in axis.collections:
            if hasattr(points, "get_sizes"):  # of a scatter plot
                series.append((points.get_label(), *points.get_offsets().T))
        bars = [patch for patch in axis.patches if hasattr(patch, "get_x")]
        if bars:  # of a histogram
            bins = [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in bars]
            series.append(("histogram", *zip(*bins)))
        for patch in axis.patches:  # of a histogram's outline, its corners
            if hasattr(patch, "get_xy") and patch not in bars:
                series.append((patch.get_label(), *patch.get_xy().T))
        for label, *columns in series:
            name = "" if label.startswith("_") else label
            yield from ((*panel, name, *row) for row in zip(*columns))


class Report:
    """What is known so far, in a directory; `add` a claim and its verdict, and the files are up to date."""

    def __init__(self, directory, options, expected):
        """expected: the claims that will come, so that the summary can say how many are missing."""
        self.directory, self.options, self.expected = directory, options, expected
        self.results, self.pictures = [], []
        directory.mkdir(parents=True, exist_ok=True)

    def add(self, claim, verdict):
        self.results.append((claim, verdict))
        self.write()

    def finish(self):
        """Draw the figures of the claims seen, each written as soon as it is there; returns the paths of all files."""
        seen = {claim.name for claim, _ in self.results}
        for figure in claims.FIGURES:
            if seen & set(figure.claims) and (
                figure.columns is None or figure.columns(self.options)
            ):
                print(f"drawing {figure.name}", flush=True)
                self.pictures.append((figure, self.drawn(figure)))
                self.write()
        return [self.directory / "report.md", self.directory / "report.html"] + [
            self.directory / f"{figure.name}.{form}"
            for figure, _ in self.pictures
            for form in FORMS
        ]

    def drawn(self, figure):
        """Write a picture as PNG and PDF, and its numbers as CSV; returns the PNG's bytes."""
        canvas = draw(figure, self.options)
        png, pdf, table = (self.directory / f"{figure.name}.{form}" for form in FORMS)
        canvas.savefig(png, dpi=120)
        canvas.savefig(pdf)
        with open(table, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([NUMBERS, *numbers(canvas)])
        return png.read_bytes()

    def write(self):
        for name, form in (("report.md", Text), ("report.html", Page)):
            (self.directory / name).write_text(form.document(self.parts(form)), encoding="utf-8")

    def parts(self, form):
        papers = [
            paper
            for paper in claims.PAPERS
            if any(claim.paper == paper for claim, _ in self.results)
        ]
        parts = [form.heading(1, "Paper checks"), *self.summary(form)]
        for paper in papers:
            of_paper = [(claim, verdict) for claim, verdict in self.results if claim.paper == paper]
            parts += [
                form.heading(2, ": ".join(claims.PAPERS[paper][1:]), paper),
                form.table(COLUMNS, [self.row(form, *result) for result in of_paper]),
            ]
        shown = {claim.name for claim, _ in self.results}
        errata = sorted(
            (e for e in claims.ERRATA if e.claim in shown), key=lambda e: int(e.tag[1:])
        )
        for title, kinds in (
            ("Errata", ("false", "step", "misprint")),
            ("Arguable places, no errata", ("arguable",)),
            ("Notes, no errata", ("note",)),
        ):
            rows = [self.erratum(form, e) for e in errata if e.kind in kinds]
            parts += [form.heading(2, title), form.table(ERRATA_COLUMNS, rows)] if rows else []
        sets = [
            (claims.PAPERS[paper][1], form.plain(words), form.plain(kind))
            for paper, words, _, kind in data.SETS
            if paper in papers
        ]
        parts.append(form.heading(2, "What was found"))
        for claim, verdict in self.results:
            parts += self.finding(form, claim, verdict)
        if self.pictures:
            beside = "Beside this file, each figure is also NAME.pdf, and its numbers are NAME.csv."
            parts += [form.heading(2, "Figures"), form.paragraph(beside)]
        for figure, png in self.pictures:
            shows = ", ".join(
                form.link(name, name) if name in shown else name for name in figure.claims
            )
            parts += [
                form.heading(3, figure.name, "figure-" + figure.name),
                form.picture(figure.name, png),
                form.paragraph(form.plain(figure.caption) + (f" Shows {shows}." if shows else "")),
            ]
        parts += (
            [form.heading(2, "Data"), form.table(("paper", "its set", "here"), sets)]
            if sets
            else []
        )
        return parts + self.headlines(form, papers)

    @staticmethod
    def headlines(form, papers):
        """What runs at these papers' sizes have measured, kept beside this file (the command headlines)."""
        place = pathlib.Path(__file__).with_name("headlines.json")
        kept = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
        rows = [
            tuple(map(form.plain, (name, *row, f"{found['machine']}, {found['date']}")))
            for name, found in kept.items()
            if name.split("-")[0] in papers
            for row in found["rows"]
        ]
        return (
            [
                form.heading(2, "Headlines at the papers' sizes"),
                form.table(("headline", "what", "the paper", "here", "on"), rows),
            ]
            if rows
            else []
        )

    def summary(self, form):
        """How many claims ended how, and which are not simply right."""
        verdicts = collections.defaultdict(list)
        for claim, verdict in self.results:
            verdicts[verdict.verdict].append(form.link(claim.name, claim.name))
        counts = "; ".join(
            f"{form.strong(form.plain(verdict))}: {len(names)}"
            for verdict, names in verdicts.items()
        )
        missing = len(self.expected) - len(self.results)
        parts = [
            form.paragraph(
                claims.counted(claim for claim, _ in self.results)
                + (f"; {missing} still to come" if missing > 0 else "")
                + (f". {counts}." if counts else ".")
            )
        ]
        for verdict, names in verdicts.items():
            if verdict not in (claims.HOLDS, claims.SEEN):
                parts.append(
                    form.paragraph(
                        f"{form.strong(form.plain(verdict))}: {', '.join(names)}.", kind_of(verdict)
                    )
                )
        numpy, numba = (importlib.import_module(name).__version__ for name in ("numpy", "numba"))
        size = (
            "the papers' sizes, where their data are here"
            if getattr(self.options, "full", False)
            else "quick sizes"
        )
        given = getattr(self.options, "data", None)
        if given is not None:
            told = (
                f"Claims about any points were checked on those of {given.name}, as each says below; the others "
                "speak of points that they construct."
            )
            parts.append(form.paragraph(form.plain(told)))
        parts.append(
            form.paragraph(
                f"Seed {self.options.seed}, {size}; {datetime.date.today()}, {platform.machine()}, "
                f"numpy {numpy}, numba {numba}. {LEGEND}"
            )
        )
        return parts

    def row(self, form, claim, verdict):
        share = verdict.bound / verdict.trivial
        tags = sorted(
            {e.tag for e in claims.ERRATA if e.claim == claim.name} | set(claim.errata),
            key=lambda tag: int(tag[1:]),
        )
        shown = {c.name for c, _ in self.results}
        here = {e.tag for e in claims.ERRATA if e.claim in shown}
        drawn = [figure.name for figure, _ in self.pictures if claim.name in figure.claims]
        return (
            form.link(claim.name, claim.name),
            form.plain(verdict.words),
            form.plain(claim.measures),
            number(verdict.measured),
            number(verdict.bound),
            number(verdict.slack),
            number(share) if share else form.plain(verdict.no_trivial or claim.no_trivial),
            ", ".join(form.link(tag, tag) if tag in here else tag for tag in tags),
            ", ".join(form.link("figure-" + name, name) for name in drawn),
        )

    @staticmethod
    def erratum(form, e):
        tag = f'<a id="{e.tag}"></a>{e.tag}'
        return (
            tag,
            form.plain(e.where),
            e.kind,
            form.plain(e.stated),
            form.plain(e.right),
            form.link(e.claim, e.claim),
        )

    @staticmethod
    def finding(form, claim, verdict):
        told = "; ".join(filter(None, (verdict.parameters, verdict.data)))
        return [
            form.heading(3, f"{claim.name}: {form.plain(verdict.words)}", claim.name),
            form.paragraph(f"{form.strong('Says')}: {form.plain(claim.statement)}"),
            form.paragraph(
                f"{form.strong('Found')}: {form.plain(verdict.text)}", kind_of(verdict.verdict)
            ),
            *(
                [
                    form.paragraph(
                        f"{form.strong('Control')}: "
                        f"{form.plain(f'{claim.control}: {verdict.from_control}')}."
                    )
                ]
                if verdict.from_control
                else []
            ),
            *(
                [form.paragraph(f"{form.strong('Details')}: {form.plain(verdict.details)}")]
                if verdict.details
                else []
            ),
            *([form.paragraph(f"{form.strong('With')}: {form.plain(told)}.")] if told else []),
            *([form.table(*plain_table(form, verdict.table))] if verdict.table else []),
        ]


def plain_table(form, table):
    """The columns and the rows of a verdict's table, as the form writes words."""
    columns, *rows = [[form.plain(cell) for cell in row] for row in (table[0], *table[1])]
    return columns, rows


def kind_of(verdict):
    return (
        "bad"
        if verdict not in claims.GOOD
        else ""
        if verdict in (claims.HOLDS, claims.SEEN)
        else "other"
    )
