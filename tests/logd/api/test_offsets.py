"""ListOffsets, DeleteRecords, OffsetForLeaderEpoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_client.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_client.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from logd.api.handlers.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from tests.support.raw_client import RawClient

Make = Callable[..., str]
EVERYTHING = {"retention.ms": "-1"}


def list_offset(
    client: RawClient, name: str, timestamp: int, *, version: int = 11, epoch: int = -1, partition: int = 0
) -> Any:
    row = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=[row])])
    return client.request(request, version).topics[0].partitions[0]


def delete_before(client: RawClient, name: str, offset: int) -> Any:
    row = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[row])])
    return client.request(request, 2).topics[0].partitions[0]


@pytest.fixture
def filled(client: RawClient, make_topic: Make) -> str:
    """Return a topic with six records in three batches, of times 100, 200; 500, 400; 300, 600."""
    name = make_topic(EVERYTHING)
    for first, second in ((100, 200), (500, 400), (300, 600)):
        client.produce(name, [(first, None, b"a", ()), (second, None, b"b", ())])
    return name


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (LATEST, (-1, 6, 0)),
        (EARLIEST, (-1, 0, 0)),
        (EARLIEST_LOCAL, (-1, 0, 0)),
        (MAX_TIMESTAMP, (600, 5, 0)),
        (LATEST_TIERED, (-1, -1, -1)),
        (EARLIEST_PENDING, (-1, -1, -1)),
        (0, (100, 0, 0)),
        (150, (200, 1, 0)),
        (201, (500, 2, 0)),
        (501, (600, 5, 0)),
        (601, (-1, -1, -1)),
    ],
)
def test_offsets_of_timestamps(
    client: RawClient, filled: str, timestamp: int, expected: tuple[int, int, int]
) -> None:
    answer = list_offset(client, filled, timestamp)
    assert answer.error_code == 0
    assert (answer.timestamp, answer.offset, answer.leader_epoch) == expected


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version(client: RawClient, filled: str, version: int) -> None:
    assert list_offset(client, filled, LATEST, version=version).offset == 6


def test_special_timestamps_have_a_first_version(client: RawClient, filled: str) -> None:
    for timestamp, first in (
        (MAX_TIMESTAMP, 7),
        (EARLIEST_LOCAL, 8),
        (LATEST_TIERED, 9),
        (EARLIEST_PENDING, 11),
    ):
        assert list_offset(client, filled, timestamp, version=first).error_code == 0
        before = list_offset(client, filled, timestamp, version=first - 1)
        assert before.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert list_offset(client, filled, -99).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_leader_epochs_are_fenced(client: RawClient, filled: str) -> None:
    assert list_offset(client, filled, LATEST, epoch=0).error_code == 0
    assert list_offset(client, filled, LATEST, epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_what_does_not_exist(client: RawClient, filled: str) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(client, "missing", LATEST).error_code == unknown
    assert list_offset(client, filled, LATEST, partition=1).error_code == unknown
    twice = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=filled, partitions=[twice, twice])])
    answers = client.request(request, 5).topics[0].partitions
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2


def test_deleted_records_are_not_read_any_more(client: RawClient, filled: str) -> None:
    assert delete_before(client, filled, 3).low_watermark == 3
    assert list_offset(client, filled, EARLIEST).offset == 3
    assert client.fetch(filled, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch(filled, 3).log_start_offset == 3
    assert delete_before(client, filled, 1).low_watermark == 3, "the log start never goes back"
    assert delete_before(client, filled, -1).low_watermark == 6
    assert client.produce(filled, [(100, None, b"a", ())]).base_offset == 6


def test_records_that_cannot_be_deleted(client: RawClient, filled: str, make_topic: Make) -> None:
    assert delete_before(client, filled, 7).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert delete_before(client, "missing", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    compacted = make_topic({"cleanup.policy": "compact"})
    assert delete_before(client, compacted, 0).error_code == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize("version", [2, 3, 4])
def test_where_a_leader_epoch_ends(client: RawClient, filled: str, version: int) -> None:
    def ask(epoch: int, current: int = -1) -> Any:
        row = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
        topic = OffsetForLeaderTopic(topic=filled, partitions=[row])
        request = OffsetForLeaderEpochRequest(topics=[topic])
        return client.request(request, version).topics[0].partitions[0]

    assert (ask(0).leader_epoch, ask(0).end_offset) == (0, 6)
    assert (ask(9).leader_epoch, ask(9).end_offset) == (-1, -1)
    assert ask(0, current=5).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
