"""A broker with several log directories, and their clients' view."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka_client.records import decode_records, iter_batches
from kafka_client.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafka_client.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

QUICK = {"log.segment.delete.delay.ms": "10", "log.flush.offset.checkpoint.interval.ms": "50"}


def logd_in(
    tmp_path: Path, *names: str, settings: Mapping[str, object] | None = None, python: tuple[str, ...] = ()
) -> LogdProcess:
    """Return a broker, not started yet, with a log directory of each name."""
    folders = ",".join(str(tmp_path / name) for name in names)
    return LogdProcess(tmp_path, {"log.dirs": folders, **QUICK, **(settings or {})}, python=python)


def home(tmp_path: Path, partition: str) -> str:
    """Return the name of the log directory that has a partition, once the folder exists."""
    wait_for(lambda: any(tmp_path.glob(f"*/{partition}")))
    (folder,) = tmp_path.glob(f"*/{partition}")
    return folder.parent.name


def state(client: RawClient, topic: str) -> list[tuple[int, int]]:
    """Return (error code, leader) of each partition, from Metadata."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    (topic_row,) = client.request(request, 12).topics
    return [(partition.error_code, partition.leader_id) for partition in topic_row.partitions]


def fill(client: RawClient, topic: str, values: range, *, partition: int = 0, size: int = 0) -> None:
    for number in values:
        record = (int(time.time() * 1000), b"k%d" % number, b"%d:" % number + b"x" * size, ())
        produced = client.produce(topic, [record], partition=partition)
        assert (produced.error_code, produced.base_offset) == (0, number)


def read(client: RawClient, topic: str, *, partition: int = 0, start: int = 0) -> list[int]:
    """Return the numbers that `fill` wrote, from `start` to the end; each number is its record's offset."""
    numbers: list[int] = []
    while True:
        fetched = client.fetch(topic, start, partition=partition, max_wait_ms=1, partition_max_bytes=1 << 22)
        assert fetched.error_code == 0
        if not fetched.records:
            return numbers
        for position, header in iter_batches(fetched.records):
            for record in decode_records(fetched.records, position):
                number = int((record[3] or b"").partition(b":")[0])
                assert record[0] == number
                if number >= start:
                    numbers.append(number)
            next_start = header.next_offset
        start = next_start


def alter(client: RawClient, path: Path | str, topic: str, *partitions: int, version: int = 2) -> list[int]:
    """Move partitions to a log directory and return the error code of each."""
    moved = AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(path), topics=[moved])])
    (result,) = client.request(request, version).results
    assert result.topic_name == topic
    assert [row.partition_index for row in result.partitions] == list(partitions)
    return [row.error_code for row in result.partitions]


def described(client: RawClient, topics: Any = None, *, version: int = 4) -> dict[str, Any]:
    """Return the results of DescribeLogDirs by the folder's name."""
    answer = client.request(DescribeLogDirsRequest(topics=topics), version)
    return {Path(result.log_dir).name: result for result in answer.results}


def places(client: RawClient, topic: str, partition: int = 0) -> dict[str, bool]:
    """Return the log directories with a copy of a partition, and whether that is a future replica."""
    return {
        name: row.is_future_key
        for name, result in described(client).items()
        for row_topic in result.topics
        for row in row_topic.partitions
        if (row_topic.name, row.partition_index) == (topic, partition)
    }


def wait_until_in(client: RawClient, folder: str, topic: str, partition: int = 0) -> None:
    """Wait until a partition's move to a log directory has ended."""
    wait_for(lambda: places(client, topic, partition) == {folder: False})
