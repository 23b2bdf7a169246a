"""Apache Kafka's own tool decodes our `__consumer_offsets`; KAFKA_LIBS is the folder of its jars."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.delete_groups import DeleteGroupsRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from logd.broker.coordinators.coordinator import partition_for
from tests.support.java import dump_log_segments, needs_kafka
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

pytestmark = needs_kafka


@pytest.mark.parametrize("codec", [0, 3])
def test_kafka_reads_our_offsets(tmp_path: Path, codec: int) -> None:
    with LogdProcess(tmp_path / "logd", {"offsets.topic.compression.codec": codec}) as logd:
        with RawClient(logd.port) as client:
            topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
            client.request(CreateTopicsRequest(topics=[topic]), 7)
            client.request(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
            partition = OffsetCommitRequestPartition(committed_offset=7, committed_metadata="größe")
            topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
            client.request(OffsetCommitRequest(group_id="g", topics=topics), 9)
            client.request(DeleteGroupsRequest(groups_names=["g"]), 2)
        logd.stop()
        folder = tmp_path / "logd" / "data" / f"__consumer_offsets-{partition_for('g', 5)}"
        dumped = dump(folder / f"{0:020}.log")
    assert '{"offset":7,"leaderEpoch":-1,"metadata":"größe"' in dumped
    kinds = re.findall(r'key: \{"type":"(\d)","data":\{"group":"g"', dumped)
    assert kinds == ["1", "1", "2"]  # the offset, its tombstone, the group's


def dump(path: Path) -> str:
    done = dump_log_segments("--offsets-decoder", "--print-data-log", "--files", str(path))
    done.check_returncode()
    return done.stdout
