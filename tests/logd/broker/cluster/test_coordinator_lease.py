"""A coordinator whose session with ZooKeeper may be over answers nobody, also where nothing would be written:
another broker may have acknowledged what it does not know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafka_client.wire.messages.delete_groups import DeleteGroupsRequest
from kafka_client.wire.messages.describe_groups import DescribeGroupsRequest
from kafka_client.wire.messages.describe_transactions import DescribeTransactionsRequest
from kafka_client.wire.messages.end_txn import EndTxnRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.heartbeat import HeartbeatRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_client.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_client.wire.messages.list_groups import ListGroupsRequest
from kafka_client.wire.messages.list_transactions import ListTransactionsRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafka_client.wire.messages.sync_group import SyncGroupRequest
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.broker.cluster.test_lease import TP, Clock, _create

GROUP, TRANSACTION = 0, 1
PROTOCOLS = [JoinGroupRequestProtocol(name="range", metadata=b"")]
STATIC = "static"
"""A JoinGroup version with which one request is enough to become a member."""


def _join(member_id: str = "", instance: str | None = STATIC) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=PROTOCOLS,
    )


def _commit(offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=TP.partition, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name=TP.topic, partitions=[partition])
    return OffsetCommitRequest(group_id="offsets", topics=[topic])


def _fetch() -> OffsetFetchRequest:
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="offsets", topics=None)])


def _find(kind: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])


class Asking:
    """The only broker of a cluster, a member of its group g and the producer of its transactional id x."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers
        self.member_id = ""
        self.producer_id = self.epoch = self.generation = -1

    async def request(self, message: Any, lane: str = "") -> Any:
        return await self.brokers.member(1).peers.request(1, message, lane=lane, timeout_ms=60_000)

    async def begin(self) -> None:
        """Create a group with a member and a committed offset, and a transactional id."""
        await _create(self.brokers, 1)
        for kind in (GROUP, TRANSACTION):
            await self.answered(_find(kind), lambda answer: answer.coordinators[0].error_code)
        await self.answered(_commit(1), lambda answer: answer.topics[0].partitions[0].error_code)
        joined = await self.request(_join())
        self.member_id, self.generation = joined.member_id, joined.generation_id
        producer = await self.answered(
            InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000),
            lambda answer: answer.error_code,
        )
        self.producer_id, self.epoch = producer.producer_id, producer.producer_epoch

    async def answered(self, message: Any, code: Callable[[Any], int]) -> Any:
        """Send a request until it has no error, while topics and coordinators are being created."""
        async with asyncio.timeout(60):
            while code(answer := await self.request(message)):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return answer

    def questions(self) -> list[tuple[Any, Callable[[Any], int]]]:
        """Return a request of each kind that a coordinator serves, with a function for its response's error
        code.
        """
        member: dict[str, Any] = {
            "group_id": "g",
            "generation_id": self.generation,
            "member_id": self.member_id,
        }
        producer = {"producer_id": self.producer_id, "producer_epoch": self.epoch}
        added = AddPartitionsToTxnTransaction(
            transactional_id="x",
            topics=[AddPartitionsToTxnTopic(name=TP.topic, partitions=[TP.partition])],
            **producer,
        )
        staged = TxnOffsetCommitRequestTopic(
            name=TP.topic,
            partitions=[TxnOffsetCommitRequestPartition(partition_index=TP.partition, committed_offset=2)],
        )
        forgotten = OffsetDeleteRequestTopic(
            name=TP.topic, partitions=[OffsetDeleteRequestPartition(partition_index=TP.partition)]
        )

        def whole(answer: Any) -> int:
            return int(answer.error_code)

        def first_partition(answer: Any) -> int:
            return int(answer.topics[0].partitions[0].error_code)

        return [
            (_fetch(), lambda answer: answer.groups[0].error_code),
            (_commit(2), first_partition),
            (HeartbeatRequest(**member), whole),
            (HeartbeatRequest(group_id="g", member_id="a stranger", generation_id=1), whole),
            (_join(self.member_id), whole),
            (_join("", None), whole),
            (SyncGroupRequest(protocol_type="consumer", protocol_name="range", **member), whole),
            (LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="a stranger")]), whole),
            (DescribeGroupsRequest(groups=["g"]), lambda answer: answer.groups[0].error_code),
            (ListGroupsRequest(), whole),
            (DeleteGroupsRequest(groups_names=["g"]), lambda answer: answer.results[0].error_code),
            (OffsetDeleteRequest(group_id="offsets", topics=[forgotten]), whole),
            (
                TxnOffsetCommitRequest(transactional_id="x", group_id="g", topics=[staged], **producer),
                first_partition,
            ),
            (_find(GROUP), lambda answer: answer.coordinators[0].error_code),
            (_find(TRANSACTION), lambda answer: answer.coordinators[0].error_code),
            (InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), whole),
            (
                AddPartitionsToTxnRequest(transactions=[added]),
                lambda answer: (
                    answer.results_by_transaction[0]
                    .topic_results[0]
                    .results_by_partition[0]
                    .partition_error_code
                ),
            ),
            (AddOffsetsToTxnRequest(transactional_id="x", group_id="g", **producer), whole),
            (EndTxnRequest(transactional_id="x", committed=True, **producer), whole),
            (
                DescribeTransactionsRequest(transactional_ids=["x"]),
                lambda answer: answer.transaction_states[0].error_code,
            ),
            (ListTransactionsRequest(), whole),
        ]


SEARCHES = (FindCoordinatorRequest, ListGroupsRequest, ListTransactionsRequest)
"""Requests that any broker answers: clients that get no coordinator just look again."""


async def test_a_coordinator_answers_nobody_without_a_lease(zookeeper: str, tmp_path: Path) -> None:
    brokers = Brokers(
        zookeeper,
        tmp_path,
        count=1,
        offsets_topic_num_partitions="1",
        transaction_state_log_num_partitions="1",
        group_initial_rebalance_delay_ms="0",
    )
    brokers.clock = clock = Clock()
    async with brokers:
        asking = Asking(brokers)
        await asking.begin()
        questions = asking.questions()
        clock.is_fast = True
        for message, code in questions:
            answer = await asking.request(message)
            expected = ErrorCode.NOT_COORDINATOR
            if isinstance(message, SEARCHES):
                expected = ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert code(answer) == expected, f"{message}: {answer}"
        clock.is_fast = False
        await brokers.until(lambda: brokers.member(1).is_leased)
        answer = await asking.request(_fetch())
        assert answer.groups[0].topics[0].partitions[0].committed_offset == 1


async def test_a_member_that_waited_is_not_answered_without_a_lease(zookeeper: str, tmp_path: Path) -> None:
    """Members that wait for the group's initial rebalance get NOT_COORDINATOR once the lease is over."""
    brokers = Brokers(zookeeper, tmp_path, count=1, group_initial_rebalance_delay_ms="500")
    brokers.clock = clock = Clock()
    async with brokers:
        asking = Asking(brokers)
        groups = brokers.up[1].broker.groups
        await asking.answered(_find(GROUP), lambda answer: answer.coordinators[0].error_code)
        await asking.answered(_fetch(), lambda answer: answer.groups[0].error_code)
        joining = asyncio.create_task(asking.request(_join()))
        await brokers.until(lambda: "g" in groups.partition("g").shard.store.groups)
        clock.is_fast = True
        assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
        clock.is_fast = False
