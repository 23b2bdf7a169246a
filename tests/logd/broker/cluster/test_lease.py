"""A broker whose session with ZooKeeper may be over accepts and acknowledges nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafka_client import Admin, Client, NewTopic
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import ApiKey, decode, decode_response_header
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafka_client.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.produce import ProduceResponse
from kafka_client.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka_client.wire.produce import encode_produce_request
from logd.metadata.controller.decision import Decision
from logd.metadata.zookeeper.registration import Registered
from logd.metadata.zookeeper.session.clock import boottime
from logd.transactions import ProducerIdentity
from tests.logd.broker.cluster.brokers import Brokers
from tests.support.depth import deep

VERSION = 9
TP = TopicPartition("t", 0)


class Clock:
    """A clock that leaps 60 s ahead at each look while `is_fast`, so that every measured time is over."""

    def __init__(self) -> None:
        self.is_fast = False
        self._ahead = 0.0

    def __call__(self) -> float:
        if self.is_fast:
            self._ahead += 60
        return boottime() + self._ahead


async def _produce(brokers: Brokers, broker: int, acks: int) -> int:
    """Produce a batch and return the error code."""
    batch = build_batch([(0, None, b"x", ())])
    connection = await brokers.member(broker).peers.connection(broker, lane="test")
    payload = await connection.call(
        lambda correlation_id: encode_produce_request(
            [(TP.topic, [(TP.partition, batch)])], VERSION, correlation_id, "test", acks=acks
        ),
        timeout=60,
    )
    _, pos = decode_response_header(ApiKey.PRODUCE, VERSION, payload)
    return int(decode(ProduceResponse, VERSION, payload, pos).responses[0].partition_responses[0].error_code)


async def _commit(brokers: Brokers, broker: int) -> int:
    """Commit an offset and return the error code."""
    committed = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name=TP.topic, partitions=[committed])
    answer = await brokers.member(broker).peers.request(
        broker, OffsetCommitRequest(group_id="g", topics=[topic]), timeout_ms=60_000
    )
    return int(answer.topics[0].partitions[0].error_code)


async def _producer(brokers: Brokers, broker: int) -> ProducerIdentity:
    """Initialize the producer of transactional id x and return its identity."""
    transactions = brokers.up[broker].broker.transactions
    await transactions.ensure_topic()
    await brokers.until(lambda: transactions.leads(0))
    return await transactions.init_producer("x", 60_000, None)


async def _mark(brokers: Brokers, broker: int, identity: ProducerIdentity) -> int:
    """Write a transaction marker and return the error code."""
    topic = WritableTxnMarkerTopic(name=TP.topic, partition_indexes=[TP.partition])
    marker = WritableTxnMarker(
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        transaction_result=True,
        topics=[topic],
    )
    answer = await brokers.member(broker).peers.request(
        broker, WriteTxnMarkersRequest(markers=[marker]), timeout_ms=60_000
    )
    return int(answer.markers[0].topics[0].partitions[0].error_code)


async def _delete_records(brokers: Brokers, broker: int) -> int:
    """Delete records and return the error code."""
    deleted = DeleteRecordsPartition(partition_index=TP.partition, offset=1)
    topic = DeleteRecordsTopic(name=TP.topic, partitions=[deleted])
    answer = await brokers.member(broker).peers.request(broker, DeleteRecordsRequest(topics=[topic]))
    return int(answer.topics[0].partitions[0].error_code)


async def _verify(brokers: Brokers, broker: int, identity: ProducerIdentity) -> int:
    """Ask whether the partition is in the transaction and return the error code."""
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="x",
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        verify_only=True,
        topics=[AddPartitionsToTxnTopic(name=TP.topic, partitions=[TP.partition])],
    )
    answer = await brokers.member(broker).peers.request(
        broker, AddPartitionsToTxnRequest(transactions=[transaction])
    )
    (result,) = answer.results_by_transaction
    return int(result.topic_results[0].results_by_partition[0].partition_error_code)


async def _create(brokers: Brokers, replicas: int) -> None:
    async with Client(brokers.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(TP.topic, 1, replicas)])
    await brokers.until(lambda: (state := brokers.state(TP)) is not None and len(state.isr) == replicas)


@deep
async def test_nothing_is_accepted_without_a_lease(zookeeper: str, tmp_path: Path) -> None:
    brokers = Brokers(zookeeper, tmp_path, count=1, offsets_topic_num_partitions="1")
    brokers.clock = clock = Clock()
    async with brokers:
        await _create(brokers, 1)
        assert await _produce(brokers, 1, 1) == 0
        async with Client(brokers.bootstrap) as client:
            await Admin(client).alter_group_offsets("g", {TP: 0})
        (partition,) = brokers.replicas(TP).values()
        offsets = brokers.replicas(TopicPartition("__consumer_offsets", 0))[1]
        ends = partition.log_end_offset, offsets.log_end_offset
        clock.is_fast = True
        assert await _produce(brokers, 1, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await _produce(brokers, 1, -1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await _commit(brokers, 1) == ErrorCode.NOT_COORDINATOR
        assert ends == (partition.log_end_offset, offsets.log_end_offset)
        clock.is_fast = False
        await brokers.until(lambda: brokers.member(1).is_leased)
        assert await _produce(brokers, 1, -1) == 0
        assert await _commit(brokers, 1) == 0


@deep
async def test_nothing_else_is_acknowledged_without_a_lease(zookeeper: str, tmp_path: Path) -> None:
    """Markers, deleted records, consent to a transaction's batch and unchanged metadata need a lease too."""
    brokers = Brokers(zookeeper, tmp_path, count=1, transaction_state_log_num_partitions="1")
    brokers.clock = clock = Clock()
    async with brokers:
        await _create(brokers, 1)
        assert await _produce(brokers, 1, 1) == 0
        identity = await _producer(brokers, 1)
        (partition,) = brokers.replicas(TP).values()
        ends = partition.log_start_offset, partition.log_end_offset
        clock.is_fast = True
        assert await _mark(brokers, 1, identity) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await _delete_records(brokers, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await _verify(brokers, 1, identity) == ErrorCode.NOT_COORDINATOR
        with pytest.raises(KafkaError, match="may be over") as refused:
            await brokers.member(1).controlling.do(lambda controller: Decision([], None))
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        assert ends == (partition.log_start_offset, partition.log_end_offset)
        clock.is_fast = False
        await brokers.until(lambda: brokers.member(1).is_leased)
        await brokers.member(1).controlling.do(lambda controller: Decision([], None))
        assert await _verify(brokers, 1, identity) == ErrorCode.TRANSACTION_ABORTABLE
        assert await _mark(brokers, 1, identity) == 0
        assert await _delete_records(brokers, 1) == 0


@pytest.mark.parametrize("what", ["records", "a marker"])
async def test_what_waited_is_not_acknowledged_without_a_lease(
    zookeeper: str, tmp_path: Path, what: str
) -> None:
    brokers = Brokers(zookeeper, tmp_path, count=2)
    brokers.clock = clock = Clock()
    async with brokers:
        await _create(brokers, 2)
        state = brokers.state(TP)
        assert state is not None
        (follower,) = set(state.isr) - {state.leader}
        leading, following = brokers.replicas(TP)[state.leader], brokers.replicas(TP)[follower]
        membership = brokers.up[follower].broker.membership
        assert membership is not None and membership._assignment is not None
        membership._assignment.unassign(following)  # what comes by a fetch of before is left aside
        request = (
            _produce(brokers, state.leader, -1)
            if what == "records"
            else _mark(brokers, state.leader, ProducerIdentity(7, 0))
        )
        asking = asyncio.create_task(request)
        await brokers.until(lambda: leading.log_end_offset == 1)
        clock.is_fast = True
        membership._assignment.assign(following, state)
        await brokers.until(lambda: leading.high_watermark == 1)
        assert await asking == ErrorCode.NOT_LEADER_OR_FOLLOWER
        clock.is_fast = False


async def test_a_new_registration_is_leased_when_it_has_been_told(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, count=1) as brokers:
        member = brokers.member(1)
        assert member.is_leased
        member._registered(Registered(1, member.epoch + 1, member.session.lease))
        assert not member.is_leased
