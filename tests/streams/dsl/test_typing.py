"""Types of keys and values, as strict type checkers see them in a user's project, `typed/orders.py`, and in
what is wrong with it, `typed/wrong.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.streams.dsl.typed import orders
from tests.support.depth import deep

ROOT = Path(__file__).parents[3]
PROJECT = Path(orders.__file__)
MISTAKES = PROJECT.with_name("wrong.py")


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, capture_output=True, encoding="utf-8", timeout=300
    )


def test_the_project_runs() -> None:
    assert orders.run_in_memory() == [("nut", orders.Order("nut", 200, "de"))]
    assert orders.topology().sink_topics[-1] == "strings"
    assert orders.without_defaults().external_topics == ["in"]


@deep
def test_mypy_is_content() -> None:
    """With the cache of `make check`, which has the modules that the project imports."""
    pytest.importorskip("mypy")
    options = ["--strict", "--python-version=3.11"]
    checked = run("mypy", *options, f"--config-file={ROOT / 'pyproject.toml'}", str(PROJECT), cwd=ROOT)
    assert checked.returncode == 0, checked.stdout


class Report(NamedTuple):
    """A diagnostic of pyright."""

    line: int
    rule: str
    message: str


@pytest.fixture(scope="module")
def pyrights_reports() -> dict[Path, list[Report]]:
    """Return pyright's diagnostics by file. One process looks at both, since both import the same modules."""
    pytest.importorskip("pyright", reason="pyright is not installed (the extra check)")
    command = ["pyright", "--outputjson", "--pythonversion=3.11", f"--pythonpath={sys.executable}"]
    checked = run(*command, str(PROJECT), str(MISTAKES), cwd=ROOT)
    # Before it there may be lines about pyright's own installation.
    output = json.loads(checked.stdout[checked.stdout.index("{") :])
    assert checked.returncode == bool(output["generalDiagnostics"])
    assert output["summary"]["filesAnalyzed"] == 2
    reports: dict[Path, list[Report]] = {PROJECT: [], MISTAKES: []}
    for each in output["generalDiagnostics"]:
        line = each["range"]["start"]["line"] + 1
        reports[Path(each["file"])].append(Report(line, each.get("rule", ""), each["message"]))
    return reports


@deep
def test_pyright_is_content(pyrights_reports: dict[Path, list[Report]]) -> None:
    assert pyrights_reports[PROJECT] == []


@deep
def test_pyright_finds_what_is_wrong(pyrights_reports: dict[Path, list[Report]]) -> None:
    """pyright reports each mistake in its line, with its rule, and nothing else."""
    lines = MISTAKES.read_text().splitlines()
    expected = {number: line.split("  # ")[1] for number, line in enumerate(lines, 1) if "  # report" in line}
    reported: dict[int, set[str]] = {}
    for report in pyrights_reports[MISTAKES]:
        reported.setdefault(report.line, set()).add(report.rule)
    assert reported.keys() == expected.keys()
    assert {line: rules for line, rules in reported.items() if expected[line] not in rules} == {}
