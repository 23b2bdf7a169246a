"""README and docs/records-in-a-terminal.md: sessions are run, line by line, and print what the page says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.topics import create_topic

PAGE = ROOT / "docs" / "records-in-a-terminal.md"
SECONDS = 100.0


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        for name in ("orders", "copies", "numbers"):
            create_topic(process, name)
        yield process


def sessions(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each command of a page and what it prints, in order."""
    for block in blocks(page, "console"):
        for step in ("\n" + block.text).split("\n$ ")[1:]:
            line, _, printed = step.partition("\n")
            yield line, printed if not printed or printed.endswith("\n") else printed + "\n"


@deep
@pytest.mark.parametrize(("page", "lines"), [(ROOT / "README.md", 3), pytest.param(PAGE, 10, marks=deep)])
def test_the_sessions_are_as_they_are_printed(
    logd: LogdProcess, tmp_path: Path, page: Path, lines: int
) -> None:
    command = tmp_path / "millstream"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m millstream "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "KAFKA_BOOTSTRAP_SERVERS": logd.bootstrap,
        "XDG_CONFIG_HOME": str(tmp_path / "settings"),
    }
    ran = 0
    for line, printed in sessions(page):
        ended = subprocess.run(
            [shutil.which("bash") or "sh", "-c", line],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            env=environment,
            cwd=tmp_path,
        )
        shown = ended.stdout.replace("python -m millstream", "millstream").replace(
            "__main__.py", "millstream"
        )
        assert shown == printed, line
        ran += 1
    assert ran >= lines
