"""MILLSTREAM_PASSED=file: what passed in a sample of the suite is left out of the whole suite after it.

`.ci/run` plays both. A run at a depth below 1 stores the ids of its passed tests in the file. A run at
depth 1 leaves out those that do the same at every depth. Tests with Hypothesis, and those whose files import
`depth`, near or far, run again.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support import depth

VARIABLE = "MILLSTREAM_PASSED"
TESTS = Path(__file__).parents[1]
DEPTH = Path(depth.__file__)

_left_out = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that passed before and do the same at every depth."""
    # A test may run pytest itself, which is to leave out nothing. Workers of pytest-xdist are started by now.
    path = os.environ.pop(VARIABLE, None)
    if not path or depth.DEPTH != 1 or not Path(path).exists():
        return
    passed = set(Path(path).read_text(encoding="utf-8").splitlines())
    left_out = {item for item in items if item.nodeid in passed and not depends_on_depth(item)}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
    config.stash[_left_out] = len(left_out)
    if hasattr(config, "workeroutput"):  # in a worker of pytest-xdist
        config.workeroutput["passed_before"] = len(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Store how many tests were left out when a worker of pytest-xdist ends: all leave out the same."""
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("passed_before", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write how many tests were not run again."""
    if count := config.stash.get(_left_out, 0):
        terminalreporter.write_line(f"{count} tests passed in the run before and were not run again.")


def depends_on_depth(item: Any) -> bool:
    """Return True if a test may do something else at another depth."""
    function = getattr(item, "function", None)
    return function is None or getattr(function, "is_hypothesis_test", False) or asks_for_depth(item.path)


@cache
def asks_for_depth(file: Path) -> bool:
    """Return True if a test file, or a conftest.py for it, imports `depth`, near or far."""
    conftests = (folder / "conftest.py" for folder in file.parents if TESTS in folder.parents)
    return DEPTH in _reached([file, *conftests])


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
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    root = TESTS.parent
    modules = (root.joinpath(*name.split(".")) for name in names if name.startswith(f"{TESTS.name}."))
    return [path for module in modules if (path := module.with_suffix(".py")).exists()]


class _Passed:
    """The ids of the tests that passed in this run."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._passed: set[str] = set()
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self._passed.add(report.nodeid)
        elif report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        ids = sorted(self._passed - self._failed)
        self._file.write_text("".join(f"{nodeid}\n" for nodeid in ids), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Store what passes, in the process that hears of all tests."""
    path = os.environ.get(VARIABLE)
    if path and depth.DEPTH < 1 and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Passed(Path(path)), "passed_before.stored")
