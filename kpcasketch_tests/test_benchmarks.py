# SPDX-License-Identifier: BSD-3-Clause
"""asv takes less for better, so that every figure that the benchmarks track must be better when it is less."""

import ast
import inspect
import pathlib
import re

import pytest

import kpcasketch as kp
from asv_bench.benchmarks import common

FOLDER = pathlib.Path(common.__file__).parent


def tracked():
    """Name and units of each figure."""
    for path in sorted(FOLDER.glob("*.py")):
        for kind in ast.parse(path.read_text()).body:
            for node in kind.body if isinstance(kind, ast.ClassDef) else ():
                if getattr(node, "name", "").startswith("track_"):
                    units = [mark.args[0].value for mark in node.decorator_list]
                    yield f"{path.stem}.{kind.name}.{node.name}", units


def test_asv_took_what_became_faster_for_a_regression(monkeypatch):
    monkeypatch.setattr(common, "seconds", lambda *calls, repeat: [call() for call in calls])
    assert common.ratio(ours=lambda: 1.0, peer=lambda: 4.0) == 0.25
    assert common.off_by(0.5) == common.off_by(2.0) == 2.0


def test_no_figure_is_better_when_it_is_larger():
    for name, units in tracked():
        assert len(units) == 1, f"{name} says what it counts"
        assert not re.search(r"as fast|faster|fewer|a second", units[0]), name
        assert "ratio" not in name or " over " in units[0], name


def test_a_benchmark_called_a_function_that_was_no_longer_there():
    pytest.importorskip("sklearn")  # estimators are defined with it
    for path in FOLDER.glob("*.py"):
        names = re.findall(r"\bkp\.(\w+)", path.read_text())
        assert not [name for name in names if not hasattr(kp, name)], path.name


def calls_of(text):
    """(function of kp, arguments, names of arguments) of each call, also in programs that are strings."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and "kp." in str(node.value):
            try:
                yield from calls_of(node.value.replace("{call}", "call"))
            except SyntaxError:
                continue  # words
        if isinstance(node, ast.Call):
            called = re.fullmatch(r"kp\.([a-z]\w*)", ast.unparse(node.func))
            if called and not any(isinstance(argument, ast.Starred) for argument in node.args):
                yield called[1], node.args, [given.arg for given in node.keywords if given.arg]


def test_a_program_gave_an_option_by_place_that_is_given_by_name():
    for path in FOLDER.glob("*.py"):
        for name, arguments, names in calls_of(path.read_text()):
            inspect.signature(getattr(kp, name)).bind(*arguments, **dict.fromkeys(names))


def test_asv_looks_for_regressions_of_every_figure():
    assert "regressions_first_commits" not in (FOLDER.parent / "asv.conf.json").read_text()


def test_asv_run_asked_questions_about_the_machine():
    text = (FOLDER.parent / "MEASURED.md").read_text(encoding="utf-8")
    for block in re.findall(r"```sh\n(.*?)```", text, re.S):
        if re.search("asv (run|continuous)", block):
            assert "asv machine --yes" in block.split("asv run")[0].split("asv continuous")[0]
