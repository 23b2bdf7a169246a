"""Which tests may do something else at another depth: by the names of `depth` that their files use.

Marks such as `deep` and `first` choose among tests and change none of them, so a file may use them freely.
The other names are numbers that differ between depths. A number in a test function is of that test alone.
Anywhere else it is of all tests whose files import that file, near or far.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.support import depth

TESTS = Path(__file__).parents[1]
DEPTH = Path(depth.__file__)
PACKAGE, MODULE = f"{TESTS.name}.{DEPTH.parent.name}", DEPTH.stem
SAME_AT_EVERY_DEPTH = {"deep", "sample", "seeds", "first", "ONE_IN"}
"""The names of `depth` that change no test; `ONE_IN` is the same at every depth up to 1."""


def uses_depth(file: Path, name: str) -> bool:
    """Return True if a test of a file may do something else at another depth, except by Hypothesis.

    `name` is that of its function or its class at the top of the file.
    """
    conftests = (folder / "conftest.py" for folder in file.parents if TESTS in folder.parents)
    files = _reached([file, *conftests])
    return name in _uses(file) or any(None in _uses(each) for each in files)


@cache
def _uses(file: Path) -> frozenset[str | None]:
    """Return the tests of a file that use a number of `depth`, and None if another statement does."""
    if file == DEPTH:
        return frozenset()
    tree = _parsed(file)
    numbers, modules = set(_numbers_imported(tree)), set(_modules_imported(tree))
    return frozenset(
        _test_of(statement) for statement in tree.body if _has_number(statement, numbers, modules)
    )


def _test_of(statement: ast.stmt) -> str | None:
    """Return the name of the test function or class that a statement defines, if it does."""
    match statement:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return name if name.lower().startswith("test") else None
    return None


def _has_number(statement: ast.stmt, numbers: set[str], modules: set[str]) -> bool:
    """Return True if a statement uses a number of `depth`, or passes on the module itself."""
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    same = {
        id(node.value)
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and node.attr in SAME_AT_EVERY_DEPTH
    }
    return any(each.id in numbers or (each.id in modules and id(each) not in same) for each in names)


def _numbers_imported(tree: ast.Module) -> Iterator[str]:
    """Yield the names in a file of the numbers that it imports from `depth`."""
    for alias in _imported_from(tree, f"{PACKAGE}.{MODULE}"):
        if alias.name not in SAME_AT_EVERY_DEPTH:
            yield alias.asname or alias.name


def _modules_imported(tree: ast.Module) -> Iterator[str]:
    """Yield the names in a file of the module `depth`; by `import tests.support.depth` that is `tests`."""
    for alias in _imported_from(tree, PACKAGE):
        if alias.name == MODULE:
            yield alias.asname or alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == f"{PACKAGE}.{MODULE}":
                    yield alias.asname or TESTS.name


def _imported_from(tree: ast.Module, module: str) -> Iterator[ast.alias]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == module:
            yield from node.names


def _reached(files: Iterable[Path]) -> set[Path]:
    """Return the files of tests, with those of `tests` that they import, near or far."""
    pending, reached = [file for file in files if file.exists()], set[Path]()
    while pending:
        file = pending.pop()
        if file not in reached:
            reached.add(file)
            pending += _imports(file)
    return reached


@cache
def _imports(file: Path) -> list[Path]:
    """Return the files below `tests` that a file imports, or imports something from."""
    names: list[str] = []
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    root = TESTS.parent
    modules = (root.joinpath(*name.split(".")) for name in names if name.startswith(f"{TESTS.name}."))
    return [path for module in modules if (path := module.with_suffix(".py")).exists()]


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())
