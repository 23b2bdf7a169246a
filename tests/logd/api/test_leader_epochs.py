"""A broker's answers after a power loss that destroyed acknowledged records (KIP-320).

The tests simulate the loss by a SIGKILL and by cutting a log file afterwards. Consumers that read lost
records must be able to notice: by Metadata, by fencing, by OffsetForLeaderEpoch, by Fetch's diverging epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import iter_batches
from kafka_client.wire import encode_request
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_client.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_client.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.depth import deep, sample
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

NOTHING = (-1, -1)


def put(client: RawClient, count: int) -> None:
    for _ in range(count):
        assert client.produce("t", [(1, None, b"v", ())]).error_code == 0


def lose(logd: LogdProcess, count: int) -> None:
    """Kill the broker, cut its log to the first `count` batches as a power loss would, and start the broker
    again.
    """
    logd.kill()
    (path,) = (logd.folder / "data" / "t-0").glob("*.log")
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(sum(header.size for _, header in list(iter_batches(data))[:count]))
    logd.start()


@pytest.fixture(scope="module")
def bereft(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Start a broker that lost records 7, 8 and 9 and got 7 and 8 again; for tests that only read."""
    settings = {"log.flush.offset.checkpoint.interval.ms": "3600000"}
    with LogdProcess(tmp_path_factory.mktemp("bereft"), settings) as logd:
        create_topic(logd, "t", {"retention.ms": "-1"})
        with RawClient(logd.port) as before:
            put(before, 10)
        lose(logd, 7)
        with RawClient(logd.port) as after:
            put(after, 2)
        yield logd


@pytest.fixture
def client(bereft: LogdProcess) -> Iterator[RawClient]:
    with RawClient(bereft.port) as client:
        yield client


def end_of(client: RawClient, epoch: int, current: int = -1) -> Any:
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="t", partitions=[partition])])
    return client.request(request, 4).topics[0].partitions[0]


def fetch(client: RawClient, offset: int, *, last: int = -1, current: int = -1, version: int = 12) -> Any:
    partition = FetchPartition(
        partition=0,
        fetch_offset=offset,
        last_fetched_epoch=last,
        current_leader_epoch=current,
        partition_max_bytes=1 << 20,
    )
    topic = FetchTopic(topic="t", partitions=[partition])
    request = FetchRequest(min_bytes=1, max_bytes=1 << 20, max_wait_ms=20_000, topics=[topic])
    client.send(encode_request(request, version, 7, "raw"))
    return client.receive(1, version).responses[0].partitions[0]


def test_metadata_names_the_new_epoch(client: RawClient) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    assert client.request(request, 9).topics[0].partitions[0].leader_epoch == 1


def test_the_old_epoch_is_fenced(client: RawClient) -> None:
    assert fetch(client, 0, current=1).error_code == 0
    assert fetch(client, 0, current=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert fetch(client, 0, current=2).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert end_of(client, 0, current=0).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_where_epochs_end(client: RawClient) -> None:
    ends = [end_of(client, epoch, current=1) for epoch in range(3)]
    assert [(end.leader_epoch, end.end_offset) for end in ends] == [(0, 7), (1, 9), NOTHING]


@sample(1)
@pytest.mark.parametrize(("timestamp", "epoch"), [(-1, 1), (-2, 0), (1, 0)])
def test_list_offsets_names_the_epoch_of_what_it_finds(client: RawClient, timestamp: int, epoch: int) -> None:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[partition])])
    assert client.request(request, 7).topics[0].partitions[0].leader_epoch == epoch


@pytest.mark.parametrize("offset", [8, 9, 10], ids=["written again", "at the end", "beyond the end"])
def test_a_reader_of_what_is_gone_is_told_where_it_diverged(client: RawClient, offset: int) -> None:
    answer = fetch(client, offset, last=0, current=1)
    assert (answer.error_code, answer.records or b"") == (0, b"")
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 7)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (9, 9, 0)


@sample(1)
@pytest.mark.parametrize(("offset", "last"), [(3, 0), (7, 0), (8, 1)])
def test_a_reader_of_what_is_there_is_not(client: RawClient, offset: int, last: int) -> None:
    answer = fetch(client, offset, last=last, current=1)
    assert (answer.error_code, answer.diverging_epoch.end_offset) == (0, -1)
    assert [header.base_offset for _, header in iter_batches(answer.records)] == list(range(offset, 9))


def test_an_epoch_that_never_was(client: RawClient) -> None:
    assert fetch(client, 3, last=5).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_versions_that_do_not_know_of_it(client: RawClient) -> None:
    assert fetch(client, 10, version=11).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch(client, 8, version=11).records


@deep
def test_a_second_loss_of_all_that_the_new_epoch_had(tmp_path: Path) -> None:
    """Epoch 1 must not be used again, though no record of it is left."""
    with LogdProcess(tmp_path) as logd:
        create_topic(logd, "t", {"retention.ms": "-1"})
        with RawClient(logd.port) as client:
            put(client, 10)
        for count, epoch in ((7, 1), (6, 2)):
            lose(logd, count)
            with RawClient(logd.port) as client:
                put(client, 2)
                assert (end_of(client, epoch).leader_epoch, end_of(client, epoch).end_offset) == (
                    epoch,
                    count + 2,
                )
        with RawClient(logd.port) as client:
            for lost_epoch in (0, 1):
                assert (end_of(client, lost_epoch).leader_epoch, end_of(client, lost_epoch).end_offset) == (
                    0,
                    6,
                )


@deep
def test_a_topic_whose_folder_was_lost(tmp_path: Path) -> None:
    """Topics whose folder was lost before any sync are created again, and their offsets used again."""
    with LogdProcess(tmp_path) as logd:
        create_topic(logd, "t", {"retention.ms": "-1"})
        for epoch in (0, 1, 2):
            with RawClient(logd.port) as client:
                put(client, 3)
                assert (end_of(client, epoch).leader_epoch, end_of(client, epoch).end_offset) == (epoch, 3)
            logd.kill()
            folder = logd.folder / "data" / "t-0"
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
            logd.start()
