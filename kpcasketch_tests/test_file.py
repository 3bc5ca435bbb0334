# SPDX-License-Identifier: BSD-3-Clause
"""Mechanical promises of the file: documented signatures, one set of floating-point flags, nothing slow at import."""

import ast
import inspect
import pathlib
import re
import subprocess
import sys

import docstring_parser
import numba
import numpy as np
import pytest

import kpcasketch as kp

SOURCE = pathlib.Path(kp.__file__).read_text()
FUNCTIONS = [
    name
    for name in kp.__all__
    if callable(getattr(kp, name)) and not inspect.isclass(getattr(kp, name))
]


def parsed(name):
    function = getattr(getattr(kp, name), "py_func", getattr(kp, name))
    text = inspect.getdoc(function)
    docstring = docstring_parser.parse(text, docstring_parser.DocstringStyle.GOOGLE)
    told = {
        name.lstrip("*"): parameter.description
        for parameter in docstring.params
        for name in parameter.arg_name.split(", ")
    }
    return function, text, docstring, told


@pytest.mark.parametrize("name", FUNCTIONS)
def test_editors_parse_every_argument_and_the_result(name):
    function, text, docstring, told = parsed(name)
    first = text.splitlines()[0]
    assert len(first) <= 95 and first.endswith("."), "one line, a sentence"
    assert list(told) == list(inspect.signature(function).parameters)
    assert docstring.returns.type_name and docstring.returns.description
    assert all(description.endswith((".", ")")) for description in told.values())
    assert len(text.split("Example:")[0].splitlines()) <= 36, "help fits on a screen"
    assert re.search(r"AMS|RSKPCA|SKPCA|DSGD|RLS|[Tt]extbook", text), "its source"
    assert docstring.examples and ">>>" in text, "an example, which the doctests run"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_groups_of_options_are_described_elsewhere_and_one_hop_away(name):
    *_, docstring, told = parsed(name)
    for parameter in docstring.params:
        elsewhere = re.match(r"See `(\w+)`", parameter.description)
        names = parameter.arg_name.split(", ")
        assert elsewhere or len(names) == 1
        for each in names if elsewhere else ():
            assert not parsed(elsewhere[1])[3][each].startswith("See `")


def test_whoever_copied_the_file_left_its_licence_behind():
    assert SOURCE.splitlines()[1] == "# The licence stands at the end of this file."
    tail = " ".join(SOURCE[SOURCE.rindex("\n# Copyright (c) ") :].replace("#", " ").split())
    for words in (
        "Redistribution and use in source and binary forms, with or without modification, are permitted",
        "1. Redistributions of source code must retain the above copyright notice",
        "2. Redistributions in binary form must reproduce the above copyright notice",
        "3. Neither the name of the copyright holder nor the names of its contributors may be used",
        "EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.",
    ):
        assert words in tail


def test_all_lists_every_public_name_in_order():
    tree = ast.parse(SOURCE)
    defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert sorted(defined & {*kp.__all__}) == kp.__all__
    assert {name for name in defined if not name.startswith("_")} - {*kp.__all__} == {"main"}


def test_the_rooms_are_numbered():
    lines = SOURCE.splitlines()
    heads = [line for before, line in zip(lines, lines[1:]) if before.startswith("# ---")]
    numbers = [int(found[1]) for head in heads if (found := re.match(r"# (\d+)\. ", head))]
    assert numbers == list(range(1, 19))


LATER = {  # kernels whose derivative is of another kind, and a class that knows its makers
    "_matern": {"_NAMES"},
    "_power_derivative": {"_RATIONAL"},
    "Kernel": {"custom", "scaled"},
}


def test_functions_use_only_what_stands_above_them():
    tree, home = ast.parse(SOURCE), {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = [getattr(node, "name", None)] + [
            part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
        ]
        for name in names:
            home.setdefault(name, node.lineno)
    for node in tree.body:
        own = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        own |= {part.id for part in names if isinstance(part.ctx, ast.Store)} | {"__all__"}
        used = {part.id for part in names if home.get(part.id, 0) > node.lineno} - own
        assert used <= LATER.get(getattr(node, "name", None), set())


def test_a_name_that_was_defined_twice_changed_the_kind_of_a_map():
    names = [
        node.name
        for node in ast.parse(SOURCE).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    ]
    names += [
        part.id
        for node in ast.parse(SOURCE).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for part in ast.walk(target)
        if isinstance(part, ast.Name)
    ]
    assert not {name for name in names if names.count(name) > 1}


def listed(text):
    """The names in a table of the head: cells alternate between names and words about them."""
    rows = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    cells = [re.split(r"  +", row)[::2] for row in rows]
    return [name for row in cells for cell in row for name in cell.split(", ")]


def test_the_head_names_every_function_once_and_every_result():
    head = kp.__doc__
    tables = "For most tasks" + head.split("For most tasks")[1].split("\nFunctions take")[0]
    names = listed(tables)
    assert len(names) == len({*names}) and {*names} - {*kp._ESTIMATORS} == {*FUNCTIONS}
    assert head[: head.index("From the papers")].count("\n") <= 42, "most tasks fit one screen"
    results = head.split("Results and their uses")[1]
    assert {name for name in kp.__all__ if inspect.isclass(getattr(kp, name))} <= set(
        re.findall(r"\w+", results)
    )


FAMILIES = (  # functions of one signature and result that do different jobs, by their formulas or theorems
    {"laplacian", "cauchy"},
    {"gram", "kernel_value"},
    {"orthogonal_features_map", "quasi_features_map", "fourier_features_map"},
    {"recursive_rls_practical", "recursive_rls_accelerated"},
    {"recursive_rls", "rls_nystrom"},
    {"kernel_thin", "compress_thin"},
    {"mmd", "operator_distance"},
    {"laplacian_eigenmap", "normalized_cut"},
    {"frobenius_error", "nuclear_error"},
    {"block_lanczos", "orthogonal_iteration"},
    {"sample_gram", "sample_quantize_gram"},
    {"residual", "explained_variance_ratio", "gradient", "gradient_outer_product"},
    {"median_bandwidth", "dask_median_bandwidth"},
    {"nystrom_kpca", "dask_nystrom_kpca"},
)


def signature_and_result(name):
    function, _, docstring, _ = parsed(name)
    parameters = inspect.signature(function).parameters.values()
    return tuple((one.name, one.kind) for one in parameters), docstring.returns.type_name


def test_no_two_public_functions_do_one_job():
    # 40 of 156 names were synonyms: a class has one record, and its functions are not public beside the verbs
    records = [*kp._models.values(), *kp._streams.values()]
    helpers = {field for record in records for field in record if callable(field)}
    public = {getattr(kp, name) for name in FUNCTIONS}
    assert not [one.__name__ for one in helpers & public]
    alike = {}
    for name in FUNCTIONS:
        alike.setdefault(signature_and_result(name), set()).add(name)
    groups = [names for names in alike.values() if len(names) > 1]
    assert not [names for names in groups if not any(names <= family for family in FAMILIES)]


DEFAULTS = {  # one default for one argument, wherever it stands
    "centered": True,
    "intercept": True,
    "paired": True,
    "restarts": 1,
    "half": True,
    "share": 1.0,
    "half_life": None,
    "seed": 0,
    "delta": None,
    "out": None,
    "weights": None,
    "groups": None,
}
OTHER_DEFAULTS = {  # by what stands in their docstrings
    (
        "kpca_from_eigen",
        "centered",
    ): False,  # eigenpairs of K or of center(K): as they were computed
    ("dsgd_ksvd", "centered"): False,  # singular functions, no kernel PCA
    ("dsgd_ksvd_start", "centered"): False,
    ("sketch_error", "centered"): None,  # as the model is
}


def test_one_argument_has_one_default():
    for name in FUNCTIONS:
        for argument, one in inspect.signature(getattr(kp, name)).parameters.items():
            if argument in DEFAULTS and one.default is not one.empty:
                wanted = OTHER_DEFAULTS.get((name, argument), DEFAULTS[argument])
                assert one.default is wanted or one.default == wanted, (name, argument)


def test_what_computes_kernel_pca_centers_and_what_fits_targets_has_an_intercept():
    # the first component of a Gaussian kernel was the mean: each new user met it
    def takes(argument):
        return {
            name
            for name in FUNCTIONS
            if argument in inspect.signature(getattr(kp, name)).parameters
        }

    assert takes("centered") >= set(
        "kpca nystrom_kpca rskpca skpca skpca_start rnca rnca_start dsgd_kpca dsgd_start "
        "dask_nystrom_kpca".split()
    )
    assert takes("intercept") == set(
        "nystrom_ridge kernel_ridge learn_metric dask_nystrom_ridge choose".split()
    )


def test_lines_have_at_most_120_columns():
    assert not [line for line in SOURCE.splitlines() if len(line) > 120]


def test_the_file_keeps_to_its_budget():
    # What whoever opens it has to carry, counted as no layout can change it: syntax nodes. Docstrings and comments
    # weigh nothing. Two statements in one tuple assignment are two.
    tree = ast.parse(SOURCE)
    assert sum(1 for _ in ast.walk(tree)) <= 96_500
    assert sum(map(packed, ast.walk(tree))) <= 60
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert not [node.name for node in functions if statements(node) > 45]


def packed(node):
    """How many statements a tuple assignment hides behind its first one."""
    if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)):
        return 0
    return len(node.value.elts) - 1 if isinstance(node.targets[0], ast.Tuple) else 0


def statements(function):
    """Statements of a function and of functions inside it, without docstrings; methods count alone."""
    inside = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    classes = [node for node in inside if isinstance(node, ast.ClassDef)]
    of_classes = {part for one in classes for part in ast.walk(one)}
    inside = [node for node in inside if node not in of_classes]
    prose = [
        node
        for node in inside
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return len(inside) - 1 - len(prose) + sum(map(packed, inside))


def test_no_function_spells_its_own_floating_point_flags_or_touches_global_state():
    assert "nnan" not in SOURCE and "ninf" not in SOURCE
    assert not re.search(r"fastmath\s*=\s*(True|\{)", SOURCE)
    for word in ("THREADING_LAYER", "np.random.seed", "guvectorize"):
        assert word not in SOURCE
    # for a Dask worker's task, and put back
    assert SOURCE.count("set_num_threads(") == 2


def test_prange_over_a_conditional_expression_ran_on_one_thread():
    # numba made no parallel loop of `prange(a if c else b)`, and said nothing
    calls = [
        node
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "prange"
    ]
    assert calls and not [
        part for call in calls for part in ast.walk(call) if isinstance(part, ast.IfExp)
    ]


def test_only_the_standard_library_numpy_scipy_and_numba_are_imported():
    modules = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert modules <= set(sys.stdlib_module_names) | {"numpy", "scipy", "numba", "llvmlite"}


@pytest.mark.slow
def test_implicit_kernel_pca_keeps_to_its_memory_budget():
    # 20000 points: the Gram matrix would be 3.2 GB; the basis is 20000 x 98 x 8 = 16 MB
    code = (
        "import resource, numpy as np, kpcasketch as kp\n"
        "X = np.random.default_rng(0).standard_normal((20000, 3)); g = kp.gaussian(2.0)\n"
        "kp.block_lanczos(kp.Implicit(X[:200].copy(), g), 1, 0)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "kp.block_lanczos(kp.Implicit(X, g), 1, 0)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    if sys.platform != "linux":
        pytest.skip("reads Linux's peak memory in kB")
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=pathlib.Path(kp.__file__).parent,
    )
    assert int(run.stdout) < 300_000


def test_kernels_share_one_type():
    makers = [kp.gaussian(1), kp.gaussian(np.float32(1)), kp.polynomial(2, 1, 0), kp.matern(0.5, 2)]
    assert len({numba.typeof(kernel) for kernel in makers}) == 1


def test_tests_that_share_a_generator_depended_on_what_ran_before_them():
    # one failed in one run of two, and could not be repeated by its name: the fixture `rng` belongs to a test
    for path in pathlib.Path(__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                assert getattr(node.value.func, "attr", "") != "default_rng", (
                    f"{path.name}:{node.lineno}"
                )


def test_seeds_are_0_unless_given():
    for name in kp.__all__:
        parameters = (
            {}
            if inspect.isclass(getattr(kp, name))
            else inspect.signature(getattr(kp, name)).parameters
        )
        assert "seed" not in parameters or parameters["seed"].default == 0, name


ORDER = (  # of positional parameters; names in one group are not ordered
    "path f function product n sketch state X Y Z A B F G K V x y a b M scores values known features expansion",
    "landmarks centers model other feature_map map_x map_y eigen out",
    "kernel kernel_x kernel_y",
    "lam lam_x lam_y error eps",
    "k",
    "m",
    "ell",
    "s",
    "seed",
)
OF_THEIR_OWN = {
    "gaussian laplacian matern rational_quadratic cauchy polynomial linear scaled shadow_bounds": "make kernels",
    "fourier_features_map orthogonal_features_map quasi_features_map fastfood_features_map": "kernel, d, m",
    "fd_start rls_start shadow_start": "the dimension of the data is last",
    "kernel_value kpca_from_eigen sketch_error novelty_pvalues kernel_pca_preimage": "as the formula is read",
    "warm_up dask_map": "any number of arguments",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_stand_in_one_order_and_options_are_given_by_keyword(name):
    parameters = inspect.signature(getattr(kp, name)).parameters.values()
    positional = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    names = [one.name for one in positional]
    assert "seed" not in names or names[-1] == "seed"
    optional = {one.name for one in positional if one.default is not one.empty}
    assert optional <= {"k", "s", "seed", "Y", "sigma"}
    if name not in " ".join(OF_THEIR_OWN).split():
        place = {one: rank for rank, group in enumerate(ORDER) for one in group.split()}
        unknown = sorted({*names} - place.keys())
        assert not unknown, f"add {unknown} to a group of ORDER, or {name} to OF_THEIR_OWN"
        ranks = [place[one] for one in names if one != "X"]
        assert ranks == sorted(ranks)
