"""Scripts of the controller's decisions, to read aloud; see conftest.py for how they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=[path.stem for path in SCRIPTS])
def test_script(path: Path, script_checker: Callable[[Path], None]) -> None:
    script_checker(path)
