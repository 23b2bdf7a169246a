"""Tests of open files: there is a limit to them, and files that are not used are closed before long."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logd.config.topic import TopicConfig
from logd.storage import LogDirectory
from logd.storage.open_files import OPEN_FILES, OpenFiles
from tests.support.descriptors import open_below


class Holder:
    def __init__(self, name: str) -> None:
        self.name = name
        self.used = True
        self.resting = 0

    def was_used(self) -> bool:
        used, self.used = self.used, False
        return used

    def rest(self) -> None:
        self.resting += 1


def test_the_one_unused_for_longest_makes_room() -> None:
    files = OpenFiles(limit=3)
    first, second, third, fourth, fifth = (Holder(name) for name in "abcde")
    for holder in (first, second, third):
        files.opened(holder)
    files.opened(fourth)
    assert [holder.resting for holder in (first, second, third, fourth)] == [1, 0, 0, 0]
    second.used = True
    files.opened(fifth)
    assert [holder.resting for holder in (second, third, fourth, fifth)] == [0, 1, 0, 0]
    assert len(files) == 3


def test_a_sweep_leaves_what_was_used_since_the_last_one() -> None:
    files = OpenFiles()
    busy, idle = Holder("busy"), Holder("idle")
    for holder in (busy, idle):
        files.opened(holder)
    assert files.sweep() == 0
    busy.used = True
    assert files.sweep() == 1
    assert (busy.resting, idle.resting) == (0, 1)
    assert len(files) == 1


def test_many_logs_in_use_need_few_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: Callable[..., bytes]
) -> None:
    monkeypatch.setattr(OPEN_FILES, "limit", 20)
    config = TopicConfig()
    folder = LogDirectory.open(tmp_path, node_id=1, cluster_id=None, config_for=lambda _: config, now_ms=0)
    before = len(open_below(tmp_path))
    logs = [folder.create_log("t", index, topic_id=None, config=config, now_ms=0) for index in range(100)]
    for value in ("a", "b"):
        for log in logs:
            log.writer.append(batch(value), 0, 0)
    assert len(open_below(tmp_path)) <= before + 20
    for log in logs:
        log.flusher.flush()
        assert log.reader.read(0, 10_000) is not None
    assert len(open_below(tmp_path)) <= before + 20
    OPEN_FILES.sweep()
    OPEN_FILES.sweep()
    assert len(open_below(tmp_path)) <= before
    assert [log.writer.append(batch("c"), 0, 0).base_offset for log in logs] == [2] * 100
    folder.close()
    assert len(open_below(tmp_path)) <= before


def test_unless_set_it_is_half_of_what_the_process_may_open() -> None:
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))\n"
        "from logd.storage.open_files import half_of_descriptors; assert half_of_descriptors() == 300\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
