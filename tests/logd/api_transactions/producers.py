"""A transactional producer made of raw requests."""

from __future__ import annotations

import time
from typing import Any

from kafka_client.records import build_batch, decode_records, iter_batches, parse_control
from kafka_client.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.end_txn import EndTxnRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_client.wire.produce import encode_produce_request
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

CONCURRENT_TRANSACTIONS = 51
LOADING = 14

PRODUCE_IMPLICITLY = 12
PRODUCE_BEFORE = 11
END_BUMPING = 5
END_BEFORE = 4


class RawProducer:
    """A transactional producer of transaction version `version` (0 or 2), with the identity of its last
    response.
    """

    def __init__(self, client: RawClient, transactional_id: str, *, version: int = 2) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.version = version
        self.producer_id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def init(self, timeout_ms: int = 60_000, *, go_on: bool = False, version: int = 5) -> int:
        """Send InitProducerId until no transaction is being completed or loaded; return the error code."""
        coordinators = self.client.request(
            FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id]), 6
        )
        assert coordinators.coordinators[0].error_code == 0
        codes = []

        def is_done() -> bool:
            codes.append(self.init_once(timeout_ms, go_on=go_on, version=version))
            return codes[-1] not in (CONCURRENT_TRANSACTIONS, LOADING)

        wait_for(is_done)
        return codes[-1]

    def init_once(self, timeout_ms: int = 60_000, *, go_on: bool = False, version: int = 5) -> int:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms
        )
        if go_on:
            request.producer_id, request.producer_epoch = self.producer_id, self.epoch
        answer = self.client.request(request, version)
        if answer.error_code == 0:
            self.identity(answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)

    def identity(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self.sequences.clear()

    def add(self, *partitions: tuple[str, int], version: int = 3) -> dict[tuple[str, int], int]:
        """Send AddPartitionsToTxn, up to version 3, and return the error codes."""
        answer = self.client.request(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=topics(partitions),
            ),
            version,
        )
        return codes_of(answer.results_by_topic_v3_and_below)

    def produce(
        self, topic: str, value: str, *, partition: int = 0, version: int | None = None, named: bool = True
    ) -> int:
        """Produce one record and return the error code. Adds the partition to the transaction first where
        the version needs that.
        """
        if version is None:
            version = PRODUCE_IMPLICITLY if self.version >= 2 else PRODUCE_BEFORE
            if self.version < 2:
                assert self.add((topic, partition)) == {(topic, partition): 0}
        sequence = self.sequences.get((topic, partition), 0)
        batch = build_batch(
            [(time.time_ns() // 1_000_000, None, value.encode(), ())],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        chunks = encode_produce_request(
            [(topic, [(partition, batch)])],
            version,
            7,
            "raw",
            acks=-1,
            transactional_id=self.transactional_id if named else None,
        )
        self.client.send(b"".join(map(bytes, chunks)))
        answer = self.client.receive(0, version).responses[0].partition_responses[0]
        if answer.error_code == 0:
            self.sequences[topic, partition] = sequence + 1
        return int(answer.error_code)

    def commit_offset(self, group: str, topic: str, offset: int) -> int:
        """Commit an offset of partition 0 as part of the transaction; return the error code."""
        if self.version < 2:
            addition = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            )
            assert self.client.request(addition, 4).error_code == 0
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        code = LOADING
        while code == LOADING:  # a coordinator nobody has asked yet
            answer = self.client.request(request, 5 if self.version >= 2 else 3)
            code = int(answer.topics[0].partitions[0].error_code)
        return code

    def end(self, commit: bool, *, version: int | None = None, lost: bool = False) -> Any:
        """Send EndTxn and return the response. With `lost` the producer does not learn its next identity."""
        if version is None:
            version = END_BUMPING if self.version >= 2 else END_BEFORE
        answer = self.client.request(
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                committed=commit,
            ),
            version,
        )
        if answer.error_code == 0 and version >= END_BUMPING and not lost:
            self.identity(answer.producer_id, answer.producer_epoch)
        return answer


def topics(partitions: tuple[tuple[str, int], ...]) -> list[AddPartitionsToTxnTopic]:
    return [AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in partitions]


def codes_of(results: list[Any]) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_error_code
        for topic in results
        for partition in topic.results_by_partition
    }


def committed_values(client: RawClient, topic: str, partition: int = 0) -> list[str]:
    """Return the values that a consumer with `read_committed` gets."""
    answer = client.fetch(topic, partition=partition, isolation_level=1)
    assert answer.error_code == 0
    aborted = sorted(
        ((entry.first_offset, entry.producer_id) for entry in answer.aborted_transactions or ()), reverse=True
    )
    open_aborted: set[int] = set()
    values = []
    data = bytes(answer.records or b"")
    for position, header in iter_batches(data):
        while aborted and aborted[-1][0] <= header.last_offset:
            open_aborted.add(aborted.pop()[1])
        records = decode_records(data, position)
        if header.is_control:
            if parse_control(records[0][2])[1] == 0:
                open_aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in open_aborted):
            values += [(value or b"").decode() for _, _, _, value, _ in records]
    return values


def markers(client: RawClient, topic: str, partition: int = 0) -> list[tuple[str, int]]:
    """Return outcome and producer epoch of each transaction marker in a partition."""
    data = bytes(client.fetch(topic, partition=partition).records or b"")
    return [
        (
            "commit" if parse_control(decode_records(data, position)[0][2])[1] else "abort",
            header.producer_epoch,
        )
        for position, header in iter_batches(data)
        if header.is_control
    ]


def make_topic(client: RawClient, name: str, partitions: int = 1) -> str:
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)]
    )
    assert client.request(request, 7).topics[0].error_code == 0
    return name
