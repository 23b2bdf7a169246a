"""MILLSTREAM_PASSED=file: what passed in a sample of the suite is left out of the whole suite after it.

`.ci/run` plays both. A run at a depth below 1 stores the ids of its passed tests in the file. A run at
depth 1 leaves out those that do the same at every depth. Tests with Hypothesis, and those that use a number
of `depth` (`depth_uses`), run again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import depth
from tests.support.depth_uses import uses_depth

VARIABLE = "MILLSTREAM_PASSED"

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
    if function is None or getattr(function, "is_hypothesis_test", False):
        return True
    return uses_depth(item.path, function.__qualname__.partition(".")[0])


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
