"""TxnOffsetCommit and what a transaction makes of its offsets, in every version, over a raw connection.

Also DescribeProducers, DescribeTransactions and ListTransactions. Each test has a transactional id of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.delete_groups import DeleteGroupsRequest
from kafka_client.wire.messages.describe_producers import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from kafka_client.wire.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from kafka_client.wire.messages.end_txn import EndTxnRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.list_transactions import ListTransactionsRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.raw_transaction import IMPLICIT_FROM, TIMEOUT_MS, Writer

UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
"""Error code of a coordinator that is still loading its partition, which has the markers of other tests."""


@pytest.fixture
def writer(client: RawClient, new_name: Callable[..., str]) -> Writer:
    return Writer.begin(client, new_name("tid"))


def commit(client: RawClient, group: str, topic: str, offset: int) -> None:
    """Commit an offset of partition 0 without a transaction."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    code = LOADING
    while code == LOADING:
        response = client.request(OffsetCommitRequest(group_id=group, topics=topics), 8)
        code = response.topics[0].partitions[0].error_code
    assert code == 0


def fetch(
    client: RawClient, group: str, topic: str, *, stable: bool, version: int = 8
) -> list[tuple[int, int]]:
    """Return offset and error code of the topic's partitions 0 to 2."""
    request = OffsetFetchRequest(require_stable=stable)
    if version < 8:
        request.group_id = group
        request.topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 1, 2])]
    else:
        topics = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0, 1, 2])]
        request.groups = [OffsetFetchRequestGroup(group_id=group, topics=topics)]
    code = LOADING
    while code == LOADING:
        response = client.request(request, version)
        if version >= 8:
            response = response.groups[0]
        code = response.error_code
    assert code == 0
    return [(row.committed_offset, row.error_code) for row in response.topics[0].partitions]


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_once_the_transaction_commits(
    client: RawClient, writer: Writer, group: str, topic: str, version: int
) -> None:
    implicit = version >= IMPLICIT_FROM
    commit(client, group, topic, 5)
    if not implicit:
        writer.add_group(group)
    assert writer.commit_offsets(group, topic, {0: 10, 1: 11}, version) == [0, 0]
    assert fetch(client, group, topic, stable=False) == [(5, 0), (-1, 0), (-1, 0)]
    assert fetch(client, group, topic, stable=True) == [(-1, UNSTABLE), (-1, UNSTABLE), (-1, 0)]
    after = writer.end(commit=True, version=version)
    assert fetch(client, group, topic, stable=True) == [(10, 0), (11, 0), (-1, 0)]
    if not implicit:
        after.add_group(group)
    assert after.commit_offsets(group, topic, {0: 20}, version) == [0]
    after.end(commit=False, version=version)
    assert fetch(client, group, topic, stable=True) == [(10, 0), (11, 0), (-1, 0)]


@pytest.mark.parametrize("version", [7, 8, 9])
def test_stable_offsets_are_asked_for_from_version_7_on(
    client: RawClient, writer: Writer, group: str, topic: str, version: int
) -> None:
    writer.add_group(group)
    writer.commit_offsets(group, topic, {0: 10})
    assert fetch(client, group, topic, stable=True, version=version)[0] == (-1, UNSTABLE)
    assert fetch(client, group, topic, stable=False, version=version)[0] == (-1, 0)
    writer.end(commit=True)
    assert fetch(client, group, topic, stable=True, version=version)[0] == (10, 0)


def test_the_later_commit_in_the_log_wins(client: RawClient, writer: Writer, group: str, topic: str) -> None:
    writer.add_group(group)
    writer.commit_offsets(group, topic, {0: 10, 1: 11})
    commit(client, group, topic, 15)
    writer.end(commit=True)
    assert fetch(client, group, topic, stable=True) == [(15, 0), (11, 0), (-1, 0)]


def test_what_is_not_in_the_transaction_is_refused(
    client: RawClient, writer: Writer, group: str, topic: str
) -> None:
    assert writer.commit_offsets(group, topic, {0: 10}, 3) == [ErrorCode.INVALID_TXN_STATE]
    assert writer.commit_offsets(group, topic, {0: 10}, 4) == [ErrorCode.TRANSACTION_ABORTABLE]
    writer.add_group(group)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert writer.commit_offsets(group, topic, {3: 1, 0: 10, -1: 1}) == [unknown, 0, unknown]
    assert writer.commit_offsets(group, "no-such-topic", {0: 1}) == [unknown]
    assert writer.commit_offsets(group, topic, {0: 10}, generation=1) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert writer.commit_offsets(group + "-other", topic, {0: 10}, generation=1)[0] in (
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.INVALID_TXN_STATE,
    )
    zombie, _ = writer, Writer.begin(client, writer.tid)
    assert zombie.commit_offsets(group, topic, {0: 10}) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert fetch(client, group, topic, stable=True)[0] == (-1, 0)


def test_a_deleted_group_takes_its_pending_offsets_with_it(
    client: RawClient, writer: Writer, group: str, topic: str
) -> None:
    writer.add_group(group)
    writer.commit_offsets(group, topic, {0: 10})
    assert client.request(DeleteGroupsRequest(groups_names=[group]), 2).results[0].error_code == 0
    writer.end(commit=True)
    assert fetch(client, group, topic, stable=True)[0] == (-1, 0)


# Over a restart


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path / "logd") as process:
        yield process


@deep
@pytest.mark.parametrize("kill", [True, False], ids=["killed", "stopped"])
@pytest.mark.parametrize("version", [3, 5])
def test_pending_offsets_outlive_the_broker(own: LogdProcess, kill: bool, version: int) -> None:
    with RawClient(own.port) as client:
        client.request(FindCoordinatorRequest(coordinator_keys=["any"]), 6)
        creation = CreatableTopic(name="t", num_partitions=3, replication_factor=1)
        client.request(CreateTopicsRequest(topics=[creation]), 7)
        commit(client, "g", "t", 5)
        writers = [Writer.begin(client, tid) for tid in ("commits", "aborts")]
        for index, writer in enumerate(writers):
            if version < IMPLICIT_FROM:
                writer.add_group("g")
            assert writer.commit_offsets("g", "t", {index: 10 + index}, version) == [0]
    if kill:
        own.kill()
    else:
        own.stop()
    own.start()
    with RawClient(own.port) as client:
        while (offsets := fetch_once_loaded(client)) is None:
            pass
        assert offsets == [(-1, UNSTABLE), (-1, UNSTABLE), (-1, 0)]
        for writer in writers:
            writer = writer._replace(client=client)
            while not ends(writer, commit=writer.tid == "commits", version=version):
                pass
        assert fetch(client, "g", "t", stable=True) == [(10, 0), (-1, 0), (-1, 0)]


def fetch_once_loaded(client: RawClient) -> list[tuple[int, int]] | None:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1, 2])]
    request = OffsetFetchRequest(
        require_stable=True, groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]
    )
    group = client.request(request, 8).groups[0]
    if group.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return None
    assert group.error_code == 0
    return [(row.committed_offset, row.error_code) for row in group.topics[0].partitions]


def ends(writer: Writer, *, commit: bool, version: int) -> bool:
    request = EndTxnRequest(
        transactional_id=writer.tid,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        committed=commit,
    )
    error = writer.client.request(request, version).error_code
    assert error in (0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return error == 0


# Describing transactions


def producers(client: RawClient, topic: str, index: int) -> list[ProducerState]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[index])])
    partition = client.request(request, 0).topics[0].partitions[0]
    assert (partition.partition_index, partition.error_code) == (index, 0)
    states: list[ProducerState] = partition.active_producers
    return states


def described(client: RawClient, tid: str) -> TransactionState:
    request = DescribeTransactionsRequest(transactional_ids=[tid])
    state: TransactionState = client.request(request, 0).transaction_states[0]
    return state


def test_describe_producers(client: RawClient, writer: Writer, topic: str) -> None:
    assert producers(client, topic, 1) == []
    writer.add_partition(topic, 1)
    assert writer.produce(topic, 1) == 0
    (state,) = producers(client, topic, 1)
    assert (state.producer_id, state.producer_epoch) == (writer.producer_id, writer.epoch)
    assert (state.last_sequence, state.coordinator_epoch, state.current_txn_start_offset) == (0, -1, 0)
    assert state.last_timestamp > 1_000
    writer.end(commit=True)
    (state,) = producers(client, topic, 1)
    assert (state.coordinator_epoch, state.current_txn_start_offset) == (0, -1)
    request = DescribeProducersRequest(
        topics=[
            TopicRequest(name=topic, partition_indexes=[3]),
            TopicRequest(name="none", partition_indexes=[0]),
        ]
    )
    for row in client.request(request, 0).topics:
        assert row.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_describe_transactions(client: RawClient, writer: Writer, group: str, topic: str) -> None:
    fresh = described(client, writer.tid)
    assert (fresh.error_code, fresh.transaction_state, fresh.topics) == (0, "Empty", [])
    assert (fresh.producer_id, fresh.producer_epoch) == (writer.producer_id, writer.epoch)
    assert (fresh.transaction_timeout_ms, fresh.transaction_start_time_ms) == (TIMEOUT_MS, -1)
    writer.add_partition(topic, 2)
    writer.add_partition(topic, 0)
    writer.add_group(group)
    ongoing = described(client, writer.tid)
    assert ongoing.transaction_state == "Ongoing"
    assert ongoing.transaction_start_time_ms > 0
    names = {row.topic: row.partitions for row in ongoing.topics}
    assert names.keys() == {topic, "__consumer_offsets"}
    assert names[topic] == [0, 2]
    writer.end(commit=False)
    assert described(client, writer.tid).transaction_state == "CompleteAbort"
    assert described(client, "nobody").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert described(client, "").error_code == ErrorCode.INVALID_REQUEST


def listed(client: RawClient, version: int = 2, **filters: object) -> dict[str, str]:
    response = client.request(ListTransactionsRequest(**filters), version)  # type: ignore[arg-type]
    assert response.error_code == 0
    return {row.transactional_id: row.transaction_state for row in response.transaction_states}


def test_list_transactions(client: RawClient, writer: Writer, topic: str) -> None:
    other = Writer.begin(client, writer.tid + "-other")
    writer.add_partition(topic, 0)
    mine = {writer.tid: "Ongoing", other.tid: "Empty"}
    for version in range(3):
        assert listed(client, version).items() >= mine.items()
    assert listed(client, state_filters=["Ongoing"]).items() >= {(writer.tid, "Ongoing")}
    assert other.tid not in listed(client, state_filters=["Ongoing", "Nonsense"])
    assert listed(client, producer_id_filters=[other.producer_id]) == {other.tid: "Empty"}
    assert listed(client, transactional_id_pattern=f"{writer.tid}-o.*") == {other.tid: "Empty"}
    assert listed(client, transactional_id_pattern=f"{writer.tid}(-other)?") == mine
    assert writer.tid in listed(client, state_filters=["Ongoing"], duration_filter=-1)
    assert writer.tid not in listed(client, duration_filter=3_600_000)
    assert writer.tid in listed(client, 0, duration_filter=-1)
    unknown = client.request(ListTransactionsRequest(state_filters=["Nonsense"]), 0)
    assert (unknown.unknown_state_filters, unknown.transaction_states) == (["Nonsense"], [])
    bad = client.request(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    writer.end(commit=False)
