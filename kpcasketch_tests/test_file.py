# SPDX-License-Identifier: BSD-3-Clause
"""Mechanical promises of the file: documented signatures, one set of floating-point flags, nothing slow at import."""

import ast
import inspect
import linecache
import os
import pathlib
import re
import subprocess
import sys

import numba
import numpy as np
import pytest

import kpcasketch as kp

SOURCE = pathlib.Path(kp.__file__).read_text()
FUNCTIONS = [name for name in kp.__all__ if callable(getattr(kp, name)) and not inspect.isclass(getattr(kp, name))]


PYTHON_ONLY = {name for name in FUNCTIONS if not hasattr(getattr(kp, name), "py_func")}


def python_function(name):
    return getattr(getattr(kp, name), "py_func", getattr(kp, name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_names_every_argument_and_has_its_parts(name):
    function = python_function(name)
    text = inspect.getdoc(function)
    first = text.splitlines()[0]
    assert len(first) <= 120 and re.search(r"[.)]$", first), "one line, a sentence"
    more = () if name in PYTHON_ONLY else ("Notes\n-----", "Examples\n--------", ">>> ")
    for part in ("Returns\n-------", *more):
        assert part in text
    kinds = getattr(getattr(kp, name), "kinds", {})    # they write the section on errors
    assert not kinds or "Raises\n------\nValueError\n" in text
    assert all(f"\n    {argument}" in text.split("Raises")[1] for argument, kind in kinds.items()
               if "raise" in "".join(kind))
    parameters = list(inspect.signature(function).parameters)
    if parameters:
        block = text.split("Parameters\n----------\n")[1].split("\n\nReturns")[0]
        documented = [n.strip() for line in re.findall(r"^(\w[\w, ]*) :", block, re.M) for n in line.split(",")]
        assert documented == parameters
    assert re.search(r"AMS|RSKPCA|SKPCA|DSGD|RLS|[Tt]extbook", text)


def test_all_lists_every_public_name_in_order():
    tree = ast.parse(SOURCE)
    defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert {name for name in defined if not name.startswith("_")} == set(kp.__all__)
    assert kp.__all__ == sorted(kp.__all__)


def test_rooms_use_only_what_stands_above_them():
    lines, tree, room, rooms, home = SOURCE.splitlines(), ast.parse(SOURCE), 0, {}, {}
    for number, line in enumerate(lines, 1):
        banner = re.match(r"# (\d+)\. ", line)
        room = int(banner[1]) if banner and lines[number - 2].startswith("# ---") else room
        rooms[number] = room
    assert sorted(set(rooms.values())) == list(range(20))
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = [getattr(node, "name", None)] + [part.id for target in targets for part in ast.walk(target)
                                                 if isinstance(part, ast.Name)]
        for name in names:
            home.setdefault(name, rooms[node.lineno])
    own = {node: {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
           | {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)} for node in tree.body}
    assert not [(part.id, getattr(node, "name", node.lineno)) for node in tree.body for part in ast.walk(node)
                if isinstance(part, ast.Name) and part.id not in own[node]
                and 19 > home.get(part.id, 0) > rooms[node.lineno]]    # 19: how it is compiled


def called_from_python():
    """Names of the compiled functions that functions which run as Python call: plain ones, bodies that are glue,
    shells."""
    functions = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.FunctionDef)]
    compiled = {function.__name__: function for function in kp._declared}
    glue = {shell.__name__ for shell in kp._shells if not compiled[shell.__name__].python}
    sources = [ast.parse("".join(linecache.getlines(f"<arguments of {shell.__name__}>"))) for shell in kp._shells]
    sources += [node for node in functions if node.name not in compiled or node.name in glue]
    sources += [node for node in ast.parse(SOURCE).body if isinstance(node, ast.ClassDef)]
    names = {part.id for source in sources for part in ast.walk(source) if isinstance(part, ast.Name)}
    return {name for name in names if name in compiled and name.startswith("_")}


def test_who_may_be_called_from_python_is_declared():
    declared = {function.__name__ for function in kp._declared if function.python and function.__name__.startswith("_")}
    assert called_from_python() - declared == set()
    # those of benchmarks and tests, and what overloads for compiled callers name
    assert declared - called_from_python() <= {"_phases_of", "_subkey"}, declared - called_from_python()


def test_a_name_that_was_defined_twice_changed_the_kind_of_a_map():
    names = [node.name for node in ast.parse(SOURCE).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    names += [part.id for node in ast.parse(SOURCE).body if isinstance(node, ast.Assign) for target in node.targets
              for part in ast.walk(target) if isinstance(part, ast.Name)]
    assert not {name for name in names if names.count(name) > 1} - {"_madvise"}


def test_the_head_names_every_function_and_every_result():
    head = kp.__doc__
    table = head.split("Functions by task")[1].split("Results, and")[0]
    assert {name for name in FUNCTIONS if name != "main"} <= set(re.findall(r"\w+", table))
    results = head.split("Results, and what they feed")[1]
    assert {name for name in kp.__all__ if inspect.isclass(getattr(kp, name))} <= set(re.findall(r"\w+", results))


def test_lines_have_at_most_120_columns():
    assert not [line for line in SOURCE.splitlines() if len(line) > 120]


def test_no_function_spells_its_own_floating_point_flags_or_touches_global_state():
    assert "nnan" not in SOURCE and "ninf" not in SOURCE
    assert not re.search(r"fastmath\s*=\s*(True|\{)", SOURCE)
    for word in ("THREADING_LAYER", "np.random.seed", "guvectorize"):
        assert word not in SOURCE
    # set for a Dask worker's task, and put back
    assert SOURCE.count("set_num_threads(") == 2


def test_prange_over_a_conditional_expression_ran_on_one_thread():
    # numba made no parallel loop of `prange(a if c else b)`, and said nothing
    calls = [node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.Call)
             and getattr(node.func, "id", "") == "prange"]
    assert calls and not [part for call in calls for part in ast.walk(call) if isinstance(part, ast.IfExp)]


@pytest.mark.slow
def test_functions_loaded_from_a_shared_cache_lost_those_they_call(tmp_path):
    # the third process died: code made on top of cached code was kept without word of what that code calls
    code = ("import sys, numpy as np, kpcasketch as kp\n"
            "X = np.random.default_rng(0).standard_normal((300, 2))\n"
            "for name in sys.argv[1:]:\n"
            "    Y = X.astype(name)\n"
            "    print(name, np.abs(kp.rademacher_projection(Y, 3, 0)).sum())\n")

    def start(*names):
        return subprocess.Popen([sys.executable, "-c", code, *names], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True,
                                cwd=pathlib.Path(kp.__file__).parent,
                                env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})

    rng, outputs = np.random.default_rng(0), set()
    # Processes at once, round by round; from the fourth round on with files of the cache missing or cut short.
    for number, processes in enumerate([[["float64"]], [["float32"], ["float32"]], [["float32"]],
                                        [["float32", "float64"], ["float64"]],
                                        [["float64", "float32"]]]):
        files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        for path in rng.choice(files, len(files) // 10, replace=False) if number >= 3 else []:
            if rng.random() < 0.5:
                path.unlink()
            else:
                path.write_bytes(path.read_bytes()[:int(rng.integers(path.stat().st_size))])
        for process in [start(*names) for names in processes]:
            out, error = process.communicate()
            assert process.returncode == 0, error
            outputs |= set(out.splitlines())
    for path in tmp_path.rglob("kpcasketch._project_rows-*"):          # by itself: what calls it is still there
        path.unlink()
    out, error = (process := start("float64")).communicate()
    assert process.returncode == 0 and out.strip() in outputs, error
    assert len(outputs) == 2, outputs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_threads_started_before_they_were_needed_and_a_forked_child_died(tmp_path):
    code = ("import os, sys, numpy as np, kpcasketch as kp\n"
            "kernel = kp.gaussian(2.0)\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    os._exit(0 if kp.gram(np.eye(5), np.eye(5), kernel).shape == (5, 5) else 1)\n"
            "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))")
    for _ in range(2):                                 # compiled, and loaded from disk
        subprocess.run([sys.executable, "-c", code], check=True, cwd=pathlib.Path(kp.__file__).parent,
                       env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, timeout=300)


def test_without_the_compiler_the_import_says_so():
    run = subprocess.run([sys.executable, "-c", "import kpcasketch"], capture_output=True, text=True,
                         cwd=pathlib.Path(kp.__file__).parent, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})
    assert run.returncode == 1 and "unset NUMBA_DISABLE_JIT" in run.stderr


def test_only_the_standard_library_numpy_scipy_and_numba_are_imported():
    modules = {(node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
               for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, (ast.Import, ast.ImportFrom))}
    assert modules <= set(sys.stdlib_module_names) | {"numpy", "scipy", "numba", "llvmlite"}


@pytest.mark.slow
def test_code_compiled_on_top_of_cached_parallel_code_survives_being_loaded(tmp_path):
    # numba 0.68: it is loaded without starting the threads that its callees need, and crashed the process
    head = "import numpy as np, kpcasketch as kp; A = np.eye(130); "
    first, second = head + "kp.matmat(A, np.ones((130, 16)))", head + "print(kp.dense(kp.center(A)).sum())"
    for code in (first, second, second):
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             cwd=pathlib.Path(kp.__file__).parent, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
        assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_cached_callers_are_compiled_anew_when_what_they_call_has_changed(tmp_path):
    # functions that stand apart are called through symbols; cached code with an unknown symbol would end the process
    source = pathlib.Path(kp.__file__).read_text(encoding="utf-8")
    (tmp_path / "user.py").write_text("import sys, numba, kpcasketch as kp\n\n\n@numba.njit(cache=True)\ndef kind():\n"
                                      "    return kp.linear().kind\n\n\nprint(kind(), "
                                      "sum(kind.stats.cache_hits.values()))\n")
    outputs = []
    for version in (source, source, source.replace("_SYMBOLS = ", "_SYMBOLS = 'other' + "),
                    source.replace("@_public(glue=True)\ndef linear():",
                                   "@_public(glue=True, none=_seed)\ndef linear(none=0):")):
        (tmp_path / "kpcasketch.py").write_text(version, encoding="utf-8")
        run = subprocess.run([sys.executable, "user.py"], capture_output=True, text=True, cwd=tmp_path,
                             env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")})
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout.split())
    assert [hits for _, hits in outputs] == ["0", "1", "0", "0"] and len({kind for kind, _ in outputs}) == 1


@pytest.mark.slow
def test_implicit_kernel_pca_keeps_to_its_memory_budget():
    # 20000 points: the Gram matrix would be 3.2 GB; the basis is 20000 x 98 x 8 = 16 MB
    code = ("import resource, numpy as np, kpcasketch as kp\n"
            "X = np.random.default_rng(0).standard_normal((20000, 3)); g = kp.gaussian(2.0)\n"
            "kp.block_lanczos(kp.Implicit(X[:200].copy(), g), 1, 0)\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "kp.block_lanczos(kp.Implicit(X, g), 1, 0)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)")
    if sys.platform != "linux":
        pytest.skip("reads Linux's peak memory in kB")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         cwd=pathlib.Path(kp.__file__).parent)
    assert int(run.stdout) < 300_000


def test_kernels_share_one_type():
    makers = [kp.gaussian(1), kp.gaussian(np.float32(1)), kp.polynomial(2, 1, 0), kp.matern(0.5, 2)]
    assert len({numba.typeof(kernel) for kernel in makers}) == 1


def test_underlines_of_docstrings_had_text_behind_them():
    assert not re.findall(r"(?m)^ *-----+ +[^-\s].*$", SOURCE)


def test_tests_that_share_a_generator_depended_on_what_ran_before_them():
    # one failed in one run of two, and could not be repeated by its name: the fixture `rng` belongs to a test
    for path in pathlib.Path(__file__).parent.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                assert getattr(node.value.func, "attr", "") != "default_rng", f"{path.name}:{node.lineno}"
