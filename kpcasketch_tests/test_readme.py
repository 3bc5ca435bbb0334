# SPDX-License-Identifier: BSD-3-Clause
"""Every snippet of the README runs, one after the other, and says what it is said to."""

import pathlib
import textwrap

import numpy as np
import pytest

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


@pytest.mark.slow
def test_the_snippets_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    exec(compile("\n".join(snippets("In a notebook")), "README", "exec"), names)
    assert "(6000, 138) 0.0073" in capsys.readouterr().out
    for snippet in snippets("Walks"):
        if "sklearn" not in snippet and "dask" not in snippet:         # each has a test of its own
            exec(compile(snippet, "README", "exec"), names)
    assert capsys.readouterr().out.startswith("4512000 288000000\n")
    values = names["eigen"].values
    assert values[[0, 9, 10]] == pytest.approx([811, 403, 147], abs=1)
    assert names["expansion"].values[[0, 9]] == pytest.approx([805, 389], abs=1)
    assert names["error"] / names["expansion"].values[0] == pytest.approx(0.18, abs=0.005)
    assert kp.reliable_components(values, names["error"]).count == 0
    assert kp.reliable_components(names["expansion"].values, names["bound"]).count == 10
    few, kernel = names["few"], names["kernel"]
    assert len(few.weights) == 144
    assert kp.mmd(names["X"], few.centers, few.weights, kernel) == pytest.approx(0.064, abs=5e-4)
    assert kp.shadow_bounds(kernel, 3.0).mmd == pytest.approx(0.48, abs=0.005)
    angles = kp.principal_angles(names["expansion"].coef[:, :10].copy(),
                                 np.ascontiguousarray(names["eigen"].vectors[:, :10]))
    assert 10 < np.degrees(angles[0]) < 12
    assert names["mapped"].shape == (200, 5) and np.abs(names["clean"] - names["X"][:5]).max() < 2.0
    assert names["cosine"].values[0] > 100 and names["top"].values.size == 5


@pytest.mark.slow
def test_the_transformer_serves_a_pipeline_and_a_search():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    names = {"kp": kp, "np": np}
    exec(compile(next(s for s in snippets("Walks") if "sklearn" in s), "README", "exec"), names)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = (np.linalg.norm(X, axis=1) > 1.2).astype(int)          # a circle: no line tells them apart
    pipeline = make_pipeline(names["LandmarkKPCA"](landmarks=60), LogisticRegression(C=1e3))
    search = GridSearchCV(pipeline, {"landmarkkpca__n_components": [2, 8]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.93 and search.best_params_["landmarkkpca__n_components"] == 8
    assert pipeline.fit(X, y)[0].get_feature_names_out().shape == (10,)
    with pytest.raises(ValueError, match="features"):
        pipeline.predict(np.ones((3, 5)))
