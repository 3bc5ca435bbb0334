# SPDX-License-Identifier: BSD-3-Clause
"""Every snippet of the README runs, one after the other, and says what it is said to."""

import importlib.util
import pathlib
import re
import textwrap

import numpy as np
import pytest
import scipy.linalg

import kpcasketch as kp

README = pathlib.Path(kp.__file__).with_name("README.md").read_text(encoding="utf-8")


def snippets(heading):
    """The indented blocks below a heading: python, a blank line within them or not."""
    blocks, block = [], []
    for line in README.split(f"\n## {heading}\n")[1].split("\n## ")[0].splitlines() + ["end"]:
        if line.startswith("    ") or (not line and block):
            block.append(line)
        elif block:
            blocks.append(textwrap.dedent("\n".join(block)))
            block = []
    return blocks


def printed(snippet):
    """The comments behind calls of print: what they print."""
    return [
        line.split("# ")[1].strip() for line in snippet.splitlines() if line.startswith("print(")
    ]


@pytest.mark.slow
def test_the_snippets_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    for snippet in snippets("In a notebook") + snippets("Tasks"):
        if (
            "dask" in snippet
            or "sklearn" in snippet
            and importlib.util.find_spec("sklearn") is None
        ):
            continue  # a script has a test of its own
        if "chunk" in snippet:  # the reader's files; no plane separates their classes
            for i, rows in enumerate(np.split(names["X"], 10)):
                np.savez(f"chunk{i}.npz", X=rows, y=(rows**2).sum(1) > 150)
        exec(compile(snippet, "README", "exec"), names)
        assert capsys.readouterr().out.splitlines() == printed(snippet)
    assert kp.nbytes(names["K"]) == 4_512_000 and names["X"].shape[0] ** 2 * 8 == 288_000_000
    assert len(names["light"].points) == 138 and names["clusters"].shape == (6000,)
    assert kp.median_bandwidth(names["X"]) == pytest.approx(16.1, abs=0.05)
    values = names["eigen"].values
    assert kp.reliable_components(values, names["error"]).count == 0
    bound = names["certified"].error_bound * names["exact"].values[0]
    assert kp.reliable_components(names["exact"].values, bound).count == 10
    few, kernel = names["few"], names["kernel"]
    assert len(few.weights) == 144
    assert kp.mmd(names["X"], few, kernel) == pytest.approx(0.064, abs=5e-4)
    assert kp.shadow_bounds(kernel, 3.0).mmd == pytest.approx(0.48, abs=0.005)
    angles = scipy.linalg.subspace_angles(
        names["exact"].coef[:, :10], names["eigen"].vectors[:, :10]
    )
    assert np.degrees([angles[0], names["told"].angles[0]]) == pytest.approx([11.0, 11.1], abs=0.05)
    assert names["mapped"].shape == (200, 5) and np.abs(names["clean"] - names["X"][:5]).max() < 2.0
    assert names["novelty"].shape == (100,) and (names["novelty"] < 1).all()
    assert names["cosine"].values[0] > 100
    if "classifier" in names:
        features = kp.features(names["X"], names["to_features"])
        assert names["classifier"].score(features, (names["X"] ** 2).sum(1) > 150) > 0.85


def test_the_readme_is_short_and_its_links_lead_somewhere():
    assert len(README.splitlines()) <= 255 and len(README.split()) <= 4050
    titles = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in README.splitlines()
        if line.startswith("#")
    }
    for link in re.findall(r"\]\(([^)]+)\)", README):
        if link.startswith("#"):
            assert link[1:] in titles
        else:
            assert (
                pathlib.Path(kp.__file__).with_name("README.md").parent.joinpath(link).exists()
            ), link
    names = set(re.findall(r"`([a-z_]+)`", README.split("## What to choose")[1].split("\n## ")[0]))
    assert names <= {*kp.__all__, "eps"}  # what is recommended is there
