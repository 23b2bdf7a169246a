"""A process with many partitions: few file descriptors, and early flushes after many writes."""

from __future__ import annotations

import os
from pathlib import Path

from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from logd.storage.checkpoints import read_offsets
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

PARTITIONS = 150
OPEN_MAX = 20
OTHERS = 40
"""Number of the process's descriptors besides segment files: sockets, the loop's, standard streams, the
lock.
"""


def make(client: RawClient, partitions: int, name: str = "t") -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    assert client.request(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0


def descriptors(logd: LogdProcess) -> int:
    return len(os.listdir(f"/proc/{logd.pid}/fd"))


def segments_open(logd: LogdProcess) -> int:
    links = []
    for name in os.listdir(f"/proc/{logd.pid}/fd"):
        try:
            links.append(os.readlink(f"/proc/{logd.pid}/fd/{name}"))
        except FileNotFoundError:
            continue
    return sum(link.endswith("0.log") for link in links)


def test_partitions_in_use_share_few_descriptors_and_idle_ones_have_none(tmp_path: Path) -> None:
    overrides = {"millstream.open.files.max": OPEN_MAX, "millstream.open.files.idle.ms": 50}
    with LogdProcess(tmp_path, overrides) as logd, RawClient(logd.port) as client:
        make(client, PARTITIONS)
        for _ in range(2):
            for partition in range(PARTITIONS):
                assert client.produce("t", [(1, None, b"v", ())], partition=partition).error_code == 0
            assert segments_open(logd) <= OPEN_MAX + 4, "and those being flushed"
            assert descriptors(logd) <= OPEN_MAX + OTHERS
        wait_for(lambda: segments_open(logd) == 0)
        for partition in range(PARTITIONS):
            assert client.fetch("t", partition=partition).high_watermark == 2


@deep
def test_so_many_bytes_are_flushed_before_their_time(tmp_path: Path) -> None:
    overrides = {"millstream.flush.interval.ms": 3_600_000, "millstream.flush.interval.bytes": 100_000}
    with LogdProcess(tmp_path, overrides) as logd:
        with RawClient(logd.port) as client:
            make(client, 2)
            client.produce("t", [(1, None, b"x" * 60_000, ())], partition=0)
            client.produce("t", [(1, None, b"x" * 60_000, ())], partition=1)
            points = tmp_path / "data" / "recovery-point-offset-checkpoint"
            wait_for(lambda: read_offsets(points) == {("t", 0): 1, ("t", 1): 1})
            client.produce("t", [(1, None, b"v", ())])
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            assert client.fetch("t").high_watermark == 2
        assert "t-0: recovered from offset 1 on" in logd.log


def test_a_deleted_topic_can_be_made_again_at_once(tmp_path: Path) -> None:
    overrides = {"log.segment.delete.delay.ms": 3_600_000}  # all that was deleted is counted
    with LogdProcess(tmp_path, overrides) as logd, RawClient(logd.port) as client:
        for _ in range(5):
            make(client, 10)
            for partition in range(10):
                assert client.produce("t", [(1, None, b"v", ())], partition=partition).base_offset == 0
            deleted = client.request(DeleteTopicsRequest(topic_names=["t"]), 5).responses[0]
            assert deleted.error_code == 0
        # The last deletion's folders are renamed behind its answer.
        wait_for(lambda: not [name for name in folders(tmp_path) if not name.endswith("-delete")])
        assert len(folders(tmp_path)) == 50


def folders(path: Path) -> list[str]:
    return [entry.name for entry in (path / "data").iterdir() if entry.is_dir()]
