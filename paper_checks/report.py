# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run: report.md with pictures beside it, and report.html with the pictures inside."""

import base64
import html
import importlib
import io
import math

from paper_checks import claims

COLUMNS = ("claim", "statement", "measured", "bound", "slack", "bound / trivial", "verdict", "with", "seed")
ERRATA_COLUMNS = ("tag", "where", "kind", "stated", "right", "evidence in")
TITLES = ("Errata", "Notes, no errata")
STYLE = """body { font: 15px/1.45 system-ui, sans-serif; max-width: 78em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .3em .6em;
border-bottom: 1px solid #ddd } th { background: #f4f4f4 } img { max-width: 48em; width: 100% } .bad { color: #b00 }"""


def number(value):
    return "" if math.isinf(value) or math.isnan(value) else f"{value:.4g}"


def claim_cells(claim, verdict, seed):
    share = verdict.bound / verdict.trivial
    return (claim.name, claim.statement, number(verdict.measured), number(verdict.bound), number(verdict.slack),
            number(share) if share else "", verdict.verdict, verdict.parameters, str(seed))


def draw(figure, options):
    """The picture as PNG bytes."""
    columns = figure.columns(options) if figure.columns else 1
    canvas = importlib.import_module("matplotlib.figure").Figure(figsize=(3 + 4 * columns, 4 * figure.rows), layout="constrained")
    figure.draw(canvas.subplots(figure.rows, columns, squeeze=figure.columns is None), options)
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()


def write(directory, results, options):
    """Write the report of (claim, verdict) pairs; returns the paths written."""
    directory.mkdir(parents=True, exist_ok=True)
    papers = {claim.paper for claim, _ in results}
    names = {claim.name for claim, _ in results}
    errata = [e for e in claims.ERRATA if e.paper in papers and e.claim in names]
    pictures = [(figure, draw(figure, options)) for figure in claims.FIGURES
                if figure.paper in papers and (figure.columns is None or figure.columns(options))]
    rows = [claim_cells(claim, verdict, options.seed) for claim, verdict in results]
    errata_rows = [[(e.tag, e.where, e.kind, e.stated, e.right, e.claim) for e in errata if (e.kind == "note") == noted]
                   for noted in (False, True)]
    paths = [directory / "report.md", directory / "report.html"]
    for figure, png in pictures:
        paths.append(directory / f"{figure.name}.png")
        paths[-1].write_bytes(png)
    paths[0].write_text(markdown(results, rows, errata_rows, pictures), encoding="utf-8")
    paths[1].write_text(page(results, rows, errata_rows, pictures), encoding="utf-8")
    return paths


def markdown_table(columns, rows):
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [columns, ["---"] * len(columns), *cells])


def markdown(results, rows, errata_rows, pictures):
    parts = ["# Paper checks", markdown_table(COLUMNS, rows), "## What was found"]
    parts += [f"**{claim.name}** ({verdict.verdict}). {verdict.text}" for claim, verdict in results]
    for title, group in zip(TITLES, errata_rows):
        parts += [f"## {title}", markdown_table(ERRATA_COLUMNS, group)] if group else []
    parts += ["## Figures"] if pictures else []
    parts += [f"![{figure.name}]({figure.name}.png)\n\n{figure.caption}" for figure, _ in pictures]
    return "\n\n".join(parts) + "\n"


def html_table(columns, rows):
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def page(results, rows, errata_rows, pictures):
    parts = ["<h1>Paper checks</h1>", html_table(COLUMNS, rows), "<h2>What was found</h2>"]
    for claim, verdict in results:
        kind = "" if verdict.verdict in claims.GOOD else " class=bad"
        parts.append(f"<p{kind}><b>{html.escape(claim.name)}</b> ({html.escape(verdict.verdict)}). {html.escape(verdict.text)}</p>")
    for title, group in zip(TITLES, errata_rows):
        parts += [f"<h2>{title}</h2>", html_table(ERRATA_COLUMNS, group)] if group else []
    parts += ["<h2>Figures</h2>"] if pictures else []
    for figure, png in pictures:
        data = base64.b64encode(png).decode()
        parts.append(f'<p><img alt="{html.escape(figure.name)}" src="data:image/png;base64,{data}"></p><p>{html.escape(figure.caption)}</p>')
    return (f"<!doctype html><html lang=en><meta charset=utf-8><title>Paper checks</title><style>{STYLE}</style><body>"
            + "\n".join(parts) + "</body></html>\n")
