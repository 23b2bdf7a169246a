"""Types of keys and values, as strict type checkers see them in a user's project, `typed/orders.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.streams.typed import orders
from tests.support.depth import deep

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests" / "streams" / "typed" / "orders.py"


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, capture_output=True, encoding="utf-8", timeout=300
    )


def test_the_project_runs() -> None:
    assert orders.run_in_memory() == [("nut", orders.Order("nut", 200, "de"))]
    assert orders.topology().sink_topics[-1] == "strings"
    assert orders.without_defaults().external_topics == ["in"]


@deep
def test_mypy_is_content(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    options = ["--strict", "--python-version=3.11", f"--cache-dir={tmp_path}"]
    checked = run("mypy", *options, f"--config-file={ROOT / 'pyproject.toml'}", str(PROJECT), cwd=ROOT)
    assert checked.returncode == 0, checked.stdout


@deep
def test_pyright_is_content() -> None:
    pytest.importorskip("pyright", reason="pyright is not installed (the extra check)")
    command = ["pyright", "--outputjson", "--pythonversion=3.11", f"--pythonpath={sys.executable}"]
    checked = run(*command, str(PROJECT), cwd=ROOT)
    found = json.loads(checked.stdout)["generalDiagnostics"]
    told = [f"{each['range']['start']['line'] + 1}: {each['message']}" for each in found]
    assert (checked.returncode, told) == (0, [])
