"""A run with MILLSTREAM_NO_SKIPS=1 fails by every kind of skip but those allowed; one without does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.depth import sample
from tests.support.no_skips import ALLOWED, VARIABLE

ROOT = Path(__file__).parent.parent.parent
SKIPS = {
    "called": "def test(): pytest.skip('kcat is not installed')",
    "in_a_fixture": "@pytest.fixture\ndef f(): pytest.skip('no go')\ndef test(f): pass",
    "marked": "@pytest.mark.skip(reason='later')\ndef test(): pass",
    "marked_if": "@pytest.mark.skipif(True, reason='no java')\ndef test(): pass",
    "no_module": "def test(): pytest.importorskip('there_is_no_such_module')",
    "at_collection": "pytest.skip('not here', allow_module_level=True)\ndef test(): pass",
    "no_module_at_collection": "pytest.importorskip('there_is_no_such_module')\ndef test(): pass",
}
OTHERS = {
    "allowed": f"def test(): pytest.skip({next(iter(ALLOWED))!r} + ': a container')",
    "allowed_at_collection": f"pytest.skip({next(iter(ALLOWED))!r}, allow_module_level=True)",
    "expected_to_fail": "@pytest.mark.xfail(reason='known')\ndef test(): assert False",
    "passes": "def test(): pass",
}


@sample(1)
@pytest.mark.parametrize(("setting", "failing"), [("1", set(SKIPS)), ("", set()), ("0", set())])
def test_skips_fail_where_they_shall(setting: str, failing: set[str], tmp_path: Path) -> None:
    for name, code in (SKIPS | OTHERS).items():
        (tmp_path / f"test_{name}.py").write_text(f"import pytest\n{code}\n")
    options = ["-p", "tests.support.no_skips", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-q", "."],
        cwd=tmp_path,
        env={**os.environ, VARIABLE: setting, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    failures = re.findall(r"^(?:FAILED|ERROR) test_(\w+)\.py", done.stdout, re.MULTILINE)
    assert set(failures) == failing, done.stdout
    assert done.stdout.count(f"which {VARIABLE} does not allow") >= len(failing)
    assert done.returncode == (pytest.ExitCode.TESTS_FAILED if failing else pytest.ExitCode.OK)


def test_every_test_here_is_under_it(request: pytest.FixtureRequest) -> None:
    assert request.config.pluginmanager.has_plugin("tests.support.no_skips")
