"""A run says how many histories it has played, in whichever workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.depth import deep

ROOT = Path(__file__).parent.parent.parent
CODE = """\
import pytest
from tests.support.histories import played

@pytest.mark.parametrize("count", range(1_000, 1_010))
def test_some(count, record_property):
    played(record_property, "a kind", {"histories": count, "faults": 2})

def test_others(record_property):
    played(record_property, "another", {"histories": 7, "void": 0})
    assert False
"""


@deep
@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_all_workers_have_played_is_added_up(workers: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(CODE)
    options = ["-p", "tests.support.histories", "-p", "no:cacheprovider", "-n", workers]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    assert "\n10,045 histories of a kind: 20 faults\n7 histories of another: 0 void\n" in done.stdout, (
        done.stdout
    )
