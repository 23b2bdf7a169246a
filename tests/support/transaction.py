"""A transaction step by step over a raw connection, for tests that look in between the steps."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_client.errors import ErrorCode
from kafka_client.records import NewRecord, build_batch
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafka_client.wire.messages.end_txn import EndTxnRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.produce import encode_produce_request
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

TRANSACTION = 1
PRODUCE_VERSION = 11
"""The last one before partitions are added to a transaction by producing to them (KIP-890)."""


class TransactionalProducer:
    """A producer with a transactional id; ``send`` begins a transaction, ``end`` ends it."""

    def __init__(self, client: RawClient, transactional_id: str) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self._sequences: dict[tuple[str, int], int] = {}
        self._added: set[tuple[str, int]] = set()
        find = FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION)
        wait_for(lambda: client.request(find, 2).error_code == 0)
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        while (answer := client.request(request, 4)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert answer.error_code == 0, answer
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch

    def send(self, topic: str, records: Sequence[NewRecord], *, partition: int = 0) -> int:
        """Produce a batch; its base offset."""
        key = topic, partition
        if key not in self._added:
            self._add(topic, partition)
        sequence = self._sequences.get(key, 0)
        self._sequences[key] = sequence + len(records)
        batch = build_batch(
            records,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        chunks = encode_produce_request(
            [(topic, [(partition, batch)])],
            PRODUCE_VERSION,
            7,
            "raw",
            transactional_id=self.transactional_id,
        )
        self.client.send(b"".join(bytes(chunk) for chunk in chunks))
        produced = self.client.receive(0, PRODUCE_VERSION).responses[0].partition_responses[0]
        assert produced.error_code == 0, produced
        offset: int = produced.base_offset
        return offset

    def end(self, *, commit: bool) -> None:
        """Commit or abort."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=commit,
        )
        assert self.client.request(request, 3).error_code == 0
        self._added.clear()

    def _add(self, topic: str, partition: int) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[partition])],
        )
        busy = ErrorCode.CONCURRENT_TRANSACTIONS
        while (code := self._added_code(request)) == busy:
            pass  # the markers of the last transaction are being written
        assert code == 0, code
        self._added.add((topic, partition))

    def _added_code(self, request: AddPartitionsToTxnRequest) -> int:
        answer = self.client.request(request, 3)
        code: int = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return code
