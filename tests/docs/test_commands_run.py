"""Every command that README and the pages show is run, and does what it is there for."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.docs.pages import PAGES, Block
from tests.docs.stage import Stage, stage
from tests.docs.test_readme import commands
from tests.support.depth import deep

SECONDS = 100.0

ELSEWHERE = {
    "make demo": "tests/millstream/demo",
    "make test": "this is it",
    "pip install": "needs the network",
    ".venv/bin/millstream demo": "tests/millstream/demo",
}
"""Reasons why a command is not run here, by the beginnings of lines."""

PAGES_ELSEWHERE = {
    "backup.md": "tests/docs/test_backup_page.py, in their order",
    "cluster.md": "tests/docs/test_cluster_page.py, in their order",
    "connect-distributed.md": "tests/connect/integration/test_distributed.py, with ports that are free",
    "connect-errors.md": "tests/connect/integration/test_dead_letters.py, with dead letters to show",
    "tutorial.md": "tests/docs/test_tutorial.py, in their order",
}
"""Pages whose commands are run in another place; their files are not for the other pages' commands."""

GOES_ON = {
    "millstream logd": b"logd ready at",
    "millstream connect standalone": b"RUNNING",
    "millstream mirror run": b"flights-0 from ",
    "millstream streams run": b"RUNNING",
    "millstream consume orders --since": b"=1\n",
    "millstream consume orders -g": b'"id":7',
}
"""Output of commands that run until Ctrl-C, once they are at work, by the beginnings of lines."""

BEFORE = {"millstream mirror verify": "millstream mirror run mm2.properties --until-caught-up"}
"""Commands to run before others, by the beginnings of lines."""

ENDS_WITH = {
    "txn abort": (1, "offset 4711"),  # no transaction begins there
}
"""Status and output of commands that end with another status than 0, by a word in the line."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("pages")) as made:
        yield made


def to_run() -> list[tuple[Block, str]]:
    return [
        (block, line.partition("  #")[0].strip())
        for block, line in commands()
        if not line.startswith(tuple(ELSEWHERE)) and block.page.name not in PAGES_ELSEWHERE
    ]


@deep
@pytest.mark.parametrize(("block", "line"), to_run(), ids=lambda each: getattr(each, "place", each))
def test_it_runs(here: Stage, block: Block, line: str) -> None:
    if "flights-table" in line and (shutil.which("java") is None or find_spec("pyspark") is None):
        pytest.skip("the Spark sink needs Java and pyspark")
    here.lay_out([page for page in PAGES if page.name not in PAGES_ELSEWHERE], block.page)
    for beginning, first in BEFORE.items():
        if line.startswith(beginning):
            subprocess.run(first.split(), env=here.environment, cwd=here.folder, check=True, timeout=SECONDS)
    ready = next((text for beginning, text in GOES_ON.items() if line.startswith(beginning)), None)
    with subprocess.Popen(
        ["bash", "-c", f"exec {here.command(line)}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=here.environment,
        cwd=here.folder,
    ) as process:
        try:
            if ready is not None:
                read_until(process, ready)
                process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    status, text = next((end for word, end in ENDS_WITH.items() if f" {word} " in line), (0, ""))
    statuses = (status,) if ready is None else (0, 130)
    assert process.returncode in statuses, output.decode()
    assert text in output.decode()


def read_until(process: subprocess.Popen[bytes], text: bytes, behind: bytes = b"") -> bytes:
    """Return what a process prints up to `text`, and on to `behind`. Fail if the output ends before."""
    assert process.stdout is not None
    output = b""
    while behind not in output.partition(text)[2] or text not in output:
        more = os.read(process.stdout.fileno(), 65536)
        assert more, output.decode()
        output += more
    return output
