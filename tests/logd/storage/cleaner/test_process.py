"""The end of the cleaner's process when its broker is killed: at once, and without a word."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from logd.storage.cleaner.messages import Task, frame

SECONDS = 100.0


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "logd.storage.cleaner"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        yield started
        started.kill()


def task(folder: Path) -> Task:
    return Task(
        directory=str(folder),
        sources=[],
        first_dirty=0,
        last_stable_offset=0,
        now_ms=0,
        delete_retention_ms=0,
        segment_bytes=1,
        segment_index_bytes=1,
        index_interval_bytes=1,
        aborted=[],
        producers=[],
    )


def end(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Wait for a process that ends by itself. Return its exit status and standard error."""
    assert process.stderr is not None
    status = process.wait(SECONDS)
    return status, process.stderr.read()


def test_nobody_reads_its_report(process: subprocess.Popen[bytes], tmp_path: Path) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(frame(task(tmp_path)))
    process.stdin.flush()
    assert end(process) == (0, b"")


@pytest.mark.parametrize("cut", [1, 4, 20])
def test_an_order_that_is_cut_off(process: subprocess.Popen[bytes], tmp_path: Path, cut: int) -> None:
    assert process.stdin is not None
    process.stdin.write(frame(task(tmp_path))[:cut])
    process.stdin.close()
    assert end(process) == (0, b"")
