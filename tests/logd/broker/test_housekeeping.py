"""Periodic tasks of a running broker, with short intervals."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop

from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from logd.broker.background import housekeeping
from logd.broker.background.housekeeping import Housekeeping
from logd.config.broker import BrokerConfig
from logd.storage import Deletion
from logd.storage.checkpoints import read_offsets
from logd.storage.disk import PosixDisk
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import make
from tests.support.waiting import SECONDS, until, wait_for

QUICK = {
    "log.retention.check.interval.ms": "50",
    "log.flush.offset.checkpoint.interval.ms": "50",
    "log.segment.delete.delay.ms": "50",
    "log.segment.bytes": "5000",
}


def fill(client: RawClient, timestamp: int, name: str = "t") -> None:
    for _ in range(20):
        assert client.produce(name, [(timestamp, b"k", b"x" * 1000, ())]).error_code == 0


def test_segments_beyond_retention_bytes_go_and_their_files_later(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, QUICK) as logd, RawClient(logd.port) as client:
        make(client, retention_bytes="8000")
        fill(client, int(time.time() * 1000))
        folder = tmp_path / "data" / "t-0"
        wait_for(lambda: client.fetch("t", 19).log_start_offset > 8)
        wait_for(lambda: len(list(folder.glob("*.log*"))) <= 3)
        wait_for(lambda: not list(folder.glob("*.deleted")))


def test_old_records_go_by_time_and_what_is_kept_forever_stays(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, QUICK) as logd, RawClient(logd.port) as client:
        make(client, "kept", retention_ms="-1")
        make(client, "old", retention_ms="1000")
        fill(client, 1, "kept")
        fill(client, 1, "old")
        wait_for(lambda: client.fetch("old", 20).log_start_offset == 20)
        assert client.fetch("kept", 20).log_start_offset == 0


def test_a_deleted_topics_folder_goes(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, QUICK) as logd, RawClient(logd.port) as client:
        make(client)
        client.produce("t", [(1, b"k", b"v", ())])
        client.request(DeleteTopicsRequest(topic_names=["t"]), 5)
        wait_for(lambda: not list((tmp_path / "data").glob("t-0*")))


@deep
def test_the_log_start_survives_a_kill_once_it_is_in_a_checkpoint(tmp_path: Path) -> None:
    logd = LogdProcess(tmp_path, QUICK)
    with logd:
        with RawClient(logd.port) as client:
            make(client)
            fill(client, int(time.time() * 1000))
            row = DeleteRecordsPartition(partition_index=0, offset=7)
            request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[row])])
            assert client.request(request, 2).topics[0].partitions[0].low_watermark == 7
            checkpoint = tmp_path / "data" / "log-start-offset-checkpoint"
            wait_for(lambda: checkpoint.exists() and "t 0 7" in checkpoint.read_text())
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            assert client.fetch("t", 7).log_start_offset == 7


def checkpointed(folder: Path, topic: str) -> int:
    """Return the recovery point in the checkpoint file, or 0 without one."""
    return read_offsets(folder / "data" / "recovery-point-offset-checkpoint").get((topic, 0), 0)


@deep
def test_after_a_kill_only_what_came_after_the_last_flush_is_read_again(tmp_path: Path) -> None:
    """Recovery after a kill reads only records after the last flush, which the background made.

    Recovery does not notice a byte changed before that flush.
    """
    settings = {"millstream.flush.interval.ms": "50"}
    logd = LogdProcess(tmp_path, settings)
    with logd:
        with RawClient(logd.port) as client:
            make(client)
            fill(client, int(time.time() * 1000))
            wait_for(lambda: checkpointed(tmp_path, "t") == 20)
            assert logd.stop() == 0
        (tmp_path / "data" / ".kafka_cleanshutdown").unlink()
        logd.overrides["millstream.flush.interval.ms"] = 3_600_000
        logd.start()
        with RawClient(logd.port) as client:
            fill(client, int(time.time() * 1000))
        logd.kill()
        assert checkpointed(tmp_path, "t") == 20
        segment = tmp_path / "data" / "t-0" / f"{0:020}.log"
        half = segment.stat().st_size // 2
        with segment.open("r+b") as file:
            file.seek(500)
            file.write(b"?")
        logd.start()
        assert f"t-0: recovered from offset 20 on, {half} bytes checked" in logd.log
        with RawClient(logd.port) as client:
            assert client.fetch("t").high_watermark == 40


@deep
def test_a_flush_goes_on_behind_every_append_without_a_stop(tmp_path: Path) -> None:
    settings = {"millstream.flush.interval.ms": "10", "log.segment.bytes": "20000"}
    logd = LogdProcess(tmp_path, settings)
    with logd:
        with RawClient(logd.port) as client:
            make(client)
            for number in range(1, 4):
                fill(client, int(time.time() * 1000))
                wait_for(lambda end=20 * number: checkpointed(tmp_path, "t") == end)
        logd.kill()
        logd.start()
        assert "bytes checked" not in logd.log
        with RawClient(logd.port) as client:
            assert client.fetch("t", 59).high_watermark == 60
    assert "ERROR" not in logd.log


async def test_stopping_waits_for_what_runs_in_the_thread_pool() -> None:
    """Stops wait for jobs in the thread pool.

    The story: a checkpoint and the closing folder wrote the same file, and the folder went offline.
    """
    has_begun, go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def job() -> None:
        has_begun.set()
        assert go_on.wait(SECONDS)
        done.append("written")

    folder: Any = SimpleNamespace(failure=None, start_checkpoint=lambda watermarks: job)
    config = BrokerConfig.of({"log.flush.offset.checkpoint.interval.ms": "1"})
    with ThreadPoolExecutor(2) as pool:
        housekeeping = Housekeeping(config, {}, [folder], pool, lambda: 0)
        housekeeping.start()
        assert await asyncio.to_thread(has_begun.wait, SECONDS)
        stopping = asyncio.create_task(housekeeping.stop())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not stopping.done()
        go_on.set()
        await stopping
        assert done == ["written"]


def test_files_are_deleted_after_their_delay_or_by_the_next_start(tmp_path: Path) -> None:
    """Files are deleted after their delay, or at the next start.

    The story: uvloop's handle of a call that is due at once has no time, and the next deletion failed.
    """
    paths = [tmp_path / name for name in ("now", "now too", "much later")]
    for path in paths:
        path.touch()

    async def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            broker = Housekeeping(BrokerConfig.of({}), {}, [], pool, lambda: 0)
            for path, delay_ms in zip(paths, (0, 0, 3_600_000), strict=True):
                broker.discard([Deletion(PosixDisk(), [path], delay_ms)])
            await until(lambda: not (paths[0].exists() or paths[1].exists()))
            await broker.stop()
            assert paths[2].exists()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def test_deletions_that_wait_are_told_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletions above the bound are carried out at once, the oldest first."""
    monkeypatch.setattr(housekeeping, "DELETIONS_MAX", 2)
    paths = [tmp_path / str(number) for number in range(5)]
    for path in paths:
        path.touch()

    async def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            broker = Housekeeping(BrokerConfig.of({}), {}, [], pool, lambda: 0)
            assert broker.deletions() == {"deletions": 0, "deletions_max": 2, "files": 0}
            broker.discard([Deletion(PosixDisk(), paths[:2], 3_600_000)])
            assert broker.deletions() == {"deletions": 1, "deletions_max": 2, "files": 2}
            broker.discard([Deletion(PosixDisk(), [path], 3_600_000) for path in paths[2:]])
            assert broker.deletions() == {"deletions": 2, "deletions_max": 2, "files": 2}
            await until(lambda: not any(path.exists() for path in paths[:3]))
            await broker.stop()
            assert all(path.exists() for path in paths[3:])
            assert broker.deletions()["deletions"] == 0

    asyncio.run(run())
