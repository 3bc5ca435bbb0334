# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel, operator, sampler and stream that the file knows has a row in tables.py, by which it is tested, and
lists in docstrings name all of them."""

import re

import numpy as np
import pytest
import scipy.sparse

import kpcasketch as kp
from kpcasketch_tests import tables

# The file's own records, by the names that it has for them: the one place to edit when they change.
KINDS = {record.name: number for number, record in enumerate(kp._KINDS)}
LAWS = {record.name for record in kp._KINDS if record.law}
RADIAL = {record.name for record in kp._KINDS if record.slope is not None}
PUBLIC = {getattr(kp, name, None) for name in kp.__all__}
OPERATORS = {form for form in kp._OPERATORS if form in PUBLIC | {np.ndarray}}
SAMPLERS = {name: kp._METHODS[name].function for name in kp._SAMPLERS}
STREAMS = kp._streams

X = np.random.default_rng(0).standard_normal((300, 3))
KERNEL = kp.gaussian(1.0)


def kinds_of(table):
    numbers = {row.make(1.0).kind for row in table.values()}
    return {name for name, number in KINDS.items() if number in numbers}


def assert_rows(table, found, wanted, rule):
    """Assert that a table of tables.py has a row for each name."""
    missing, unknown = sorted({*wanted} - {*found}), sorted({*found} - {*wanted})
    assert not missing, f"tables.{table} lacks a row for {', '.join(missing)}: {rule}"
    assert not unknown, f"tables.{table} has a row too many, for {', '.join(unknown)}: {rule}"


def test_every_kind_of_kernel_has_a_row_with_its_traits():
    wanted = set(KINDS) - tables.NOT_OF_SIGMA
    assert_rows("KERNELS", kinds_of(tables.KERNELS), wanted, "it has a record in _KINDS")
    law = "give the row a law where the record has one, and only there"
    assert_rows("KERNELS", kinds_of(tables.LAWS), LAWS, law)
    slope = "give the row radial= where the record has a slope, and only there"
    assert_rows("KERNELS", kinds_of(tables.RADIAL), RADIAL, slope)


def test_a_table_explains_its_own_failure():
    assert_rows("KERNELS", {"gaussian"}, ["gaussian"], "")
    with pytest.raises(AssertionError, match="^tables.KERNELS lacks a row for a, c: it has"):
        assert_rows("KERNELS", {"b"}, ["a", "b", "c"], "it has a record in _KINDS")
    with pytest.raises(AssertionError, match="^tables.KERNELS has a row too many, for d"):
        assert_rows("KERNELS", {"b", "d"}, ["b"], "")


def test_every_operator_has_a_row():
    K = kp.gram(X, X, KERNEL)
    made = {type(row.make(X, KERNEL, K)).__name__ for row in tables.OPERATORS.values()}
    wanted = {form.__name__ for form in OPERATORS | {scipy.sparse.csr_array}}
    assert_rows("OPERATORS", made & wanted, wanted, "it is in _OPERATORS")


def test_every_model_has_a_row():
    wanted = [cls.__name__ for cls in kp._models]
    assert_rows("MODELS", tables.MODELS, wanted, "it has a record by @_model")


# Lists in docstrings, against the records


def lists_in_docstrings(first, known):
    """(where, names) of each list of at least three `known` names in a docstring that begins with `first`."""
    word = f"(?:{'|'.join(sorted(known, key=len, reverse=True))})"
    item = rf"{word}(?: \((?!{word})[^)]*\))?"
    pattern = rf"\b{item}(?:(?:, | or |, and | and ){item})+"
    for name in [*kp.__all__, *kp._TUPLES]:
        text = " ".join((getattr(kp, name).__doc__ or "").split())
        for found in re.finditer(pattern, text):
            names = re.findall(word, re.sub(r"\([^)]*\)", "", found[0]))
            if len(names) > 2 and first in names:
                yield name, names


def test_lists_of_kernels_with_a_law_name_all_of_them():
    wanted = {name.split()[0] for name in LAWS}  # matern 3/2, laplacian of the city block
    found = list(lists_in_docstrings("gaussian", wanted))
    assert len(found) >= 5
    for where, names in found:
        assert {*names} == wanted and len(names) == len(wanted), where


CAN = {  # functions of models, by the field of the record that they call
    "features": "features",
    "features_of": "of_point",
    "residual": "residual",
    "residual_of": "residual_of_point",
    "explained_variance_ratio": "moments",
    "novelty_pvalues": "residual",
    "sketch_error": "sketch",
}


@pytest.mark.parametrize("name", CAN)
def test_lists_of_models_in_docstrings_name_those_whose_record_has_the_function(name):
    able = {cls.__name__ for cls, record in kp._models.items() if getattr(record, CAN[name])}
    text = getattr(kp, name).__doc__
    line = re.search(r"^ +(?:model|sketch): (.*?)(?=\n +\w+: |\n +Returns:)", text, re.M | re.S)[1]
    named = {cls.__name__ for cls in kp._models if re.search(rf"\b{cls.__name__}\b", line)}
    if not named:
        assert re.search("A model|See `", line)  # any model
    elif "For an Expansion, `residual`" in line:  # which the function refuses
        assert named - {"Expansion"} == able
    else:
        assert named == able


def test_lists_of_samplers_in_docstrings_name_all_of_them():
    pytest.importorskip("sklearn")
    text = " ".join(kp.LandmarkFeatures.__doc__.split())
    listed = re.search('sampler: str. ((?:"[a-z-]+"(?:, | or )?)+)', text)[1]
    assert {*re.findall('"([a-z-]+)"', listed)} == {*kp._SAMPLERS}
    for name in ("LandmarkRidge", "LandmarkClassifier"):
        assert re.search("sampler, random_state: See `LandmarkFeatures`", getattr(kp, name).__doc__)


# Rows of tables.py


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_has_a_row(name):
    points = np.random.default_rng(0).standard_normal((2000, 3))
    found = SAMPLERS[name](points, KERNEL, 60, 3)
    fixed = tables.with_trait(tables.SAMPLERS, "fixed").values()
    drawn = [row.draw(points, KERNEL, 60, 3).indices for row in fixed]
    equal = sum(np.array_equal(found.indices, indices) for indices in drawn)
    assert equal == 1, (
        f"tables.SAMPLERS needs one row that draws as {name} of _SAMPLERS, not {equal}"
    )


def test_every_stream_has_a_row():
    rows = {type(row.start(X)): row for row in tables.STREAMS.values()}
    found, wanted = ([cls.__name__ for cls in table] for table in (rows, STREAMS))
    assert_rows("STREAMS", found, wanted, "it has a record by @_stream")
    for cls, row in rows.items():
        assert bool(STREAMS[cls].merge) == row.merges, f"merges of the row of {cls.__name__}"


def test_every_maker_of_random_features_has_a_row():
    public = {name for name in kp.__all__ if name.endswith("_features_map")}
    assert_rows("FEATURES", tables.FEATURES, public, "its name ends in _features_map")
    kinds = [row.make(KERNEL, 3, 8).kind for row in tables.FEATURES.values()]
    numbers = [*range(len(kp._MAP_KINDS))]
    assert kinds == numbers, f"rows of tables.FEATURES stand in the order of {kp._MAP_NAMES}"
    for (name, row), kind in zip(tables.FEATURES.items(), kp._MAP_KINDS):
        assert bool(kind.frequencies) == row.any_law, f"any_law of {name} in tables.FEATURES"
