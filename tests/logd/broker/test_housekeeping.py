"""What a running broker does by the clock, with the clock's intervals made short."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from logd.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from logd.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from logd.wire.messages.delete_topics import DeleteTopicsRequest
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

QUICK = {
    "log.retention.check.interval.ms": "50",
    "log.flush.offset.checkpoint.interval.ms": "50",
    "log.segment.delete.delay.ms": "50",
    "log.segment.bytes": "5000",
}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def make(client: RawClient, name: str = "t", **configs: str) -> None:
    topic = CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )
    assert client.request(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0


def fill(client: RawClient, timestamp: int, name: str = "t") -> None:
    for _ in range(20):
        assert client.produce(name, [(timestamp, b"k", b"x" * 1000, ())]).error_code == 0


def test_segments_beyond_retention_bytes_go_and_their_files_later(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, QUICK) as logd, RawClient(logd.port) as client:
        make(client, retention_bytes="8000")
        fill(client, int(time.time() * 1000))
        folder = tmp_path / "data" / "t-0"
        wait_until(lambda: client.fetch("t", 19).log_start_offset > 8)
        wait_until(lambda: len(list(folder.glob("*.log*"))) <= 3)
        assert not list(folder.glob("*.deleted"))


def test_old_records_go_by_time_and_what_is_kept_forever_stays(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, QUICK) as logd, RawClient(logd.port) as client:
        make(client, "kept", retention_ms="-1")
        make(client, "old", retention_ms="1000")
        fill(client, 1, "kept")
        fill(client, 1, "old")
        wait_until(lambda: client.fetch("old", 20).log_start_offset == 20)
        assert client.fetch("kept", 20).log_start_offset == 0


def test_a_deleted_topics_folder_goes(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, QUICK) as logd, RawClient(logd.port) as client:
        make(client)
        client.produce("t", [(1, b"k", b"v", ())])
        client.request(DeleteTopicsRequest(topic_names=["t"]), 5)
        wait_until(lambda: not list((tmp_path / "data").glob("t-0*")))


def test_the_log_start_survives_a_kill_once_it_is_in_a_checkpoint(tmp_path: Path) -> None:
    logd = LogdProcess(tmp_path, QUICK)
    with logd:
        with RawClient(logd.port) as client:
            make(client)
            fill(client, int(time.time() * 1000))
            asked = DeleteRecordsPartition(partition_index=0, offset=7)
            request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[asked])])
            assert client.request(request, 2).topics[0].partitions[0].low_watermark == 7
            checkpoint = tmp_path / "data" / "log-start-offset-checkpoint"
            wait_until(lambda: checkpoint.exists() and "t 0 7" in checkpoint.read_text())
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            assert client.fetch("t", 7).log_start_offset == 7


def test_flush_messages_1_forces_every_write(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, QUICK) as logd, RawClient(logd.port) as client:
        make(client, flush_messages="1", segment_bytes="1000000")
        for _ in range(3):
            client.produce("t", [(1, b"k", b"v", ())])
        checkpoint = tmp_path / "data" / "recovery-point-offset-checkpoint"
        wait_until(lambda: checkpoint.exists() and "t 0 3" in checkpoint.read_text())
