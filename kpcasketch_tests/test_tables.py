# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel, operator, sampler and stream that the file knows has a row in tables.py, by which it is tested."""

import numpy as np
import pytest

import kpcasketch as kp
from kpcasketch_tests import tables

# The file's own records, by the names that it has for them: the one place to edit when they change.
KINDS = {record.name: number for number, record in enumerate(kp._KINDS)}
LAWS = {record.name for record in kp._KINDS if record.law}
RADIAL = {record.name for record in kp._KINDS if record.slope is not None}
OPERATORS = {form for form in kp._OPERATORS if form.__name__ in (*kp.__all__, "ndarray")}
SAMPLERS = {name: kp._METHODS[name].function for name in kp._SAMPLERS}
STREAMS = kp._streams

X = np.random.default_rng(0).standard_normal((300, 3))
KERNEL = kp.gaussian(1.0)


def kinds_of(table):
    numbers = {row.make(1.0).kind for row in table.values()}
    return {name for name, number in KINDS.items() if number in numbers}


def test_every_kind_of_kernel_has_a_row_with_its_traits():
    assert kinds_of(tables.KERNELS) == set(KINDS) - tables.NOT_OF_SIGMA
    assert kinds_of(tables.LAWS) == LAWS and kinds_of(tables.RADIAL) == RADIAL


def test_every_operator_has_a_row():
    K = kp.gram(X, X, KERNEL)
    assert {type(row.make(X, KERNEL, K)) for row in tables.OPERATORS.values()} == OPERATORS


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_has_a_row(name):
    points = np.random.default_rng(0).standard_normal((2000, 3))
    found = SAMPLERS[name](points, KERNEL, 60, 3)
    fixed = tables.with_trait(tables.SAMPLERS, "fixed").values()
    drawn = [row.draw(points, KERNEL, 60, 3).indices for row in fixed]
    assert sum(np.array_equal(found.indices, indices) for indices in drawn) == 1


def test_every_stream_has_a_row():
    rows = {type(row.start(X)): row for row in tables.STREAMS.values()}
    assert rows.keys() == STREAMS.keys()
    for cls, row in rows.items():
        assert bool(STREAMS[cls].merge) == row.merges


def test_every_maker_of_random_features_has_a_row():
    public = {name for name in kp.__all__ if name.endswith("_features_map")}
    assert public == tables.FEATURES.keys()
    kinds = {row.make(KERNEL, 3, 8).kind for row in tables.FEATURES.values()}
    assert kinds == set(range(len(kp._MAP_KINDS)))
    others = {name for name, kind in zip(tables.FEATURES, kp._MAP_KINDS) if not kind.frequencies}
    assert others == {name for name, row in tables.FEATURES.items() if not row.any_law}
