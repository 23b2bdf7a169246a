"""A transactional producer by hand: one request at a time over a raw connection."""

from __future__ import annotations

from typing import NamedTuple

from kafka_client.errors import ErrorCode
from kafka_client.records import build_batch
from kafka_client.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
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

IMPLICIT_FROM = 5
"""Version of TxnOffsetCommit and EndTxn from which on clients speak transaction version 2."""
TIMEOUT_MS = 60_000


class Writer(NamedTuple):
    """Who it is; `begin` makes one."""

    client: RawClient
    tid: str
    producer_id: int
    epoch: int

    @classmethod
    def begin(cls, client: RawClient, tid: str) -> Writer:
        """Send InitProducerId, which fences an earlier producer of the transactional id."""
        coordinator = client.request(
            FindCoordinatorRequest(key_type=1, coordinator_keys=[tid]), 6
        ).coordinators[0]
        assert coordinator.error_code == 0
        request = InitProducerIdRequest(transactional_id=tid, transaction_timeout_ms=TIMEOUT_MS)
        response = client.request(request, 4)
        # The one before is being aborted, or the broker has just started.
        later = (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        while response.error_code in later:
            response = client.request(request, 4)
        assert response.error_code == 0
        return cls(client, tid, response.producer_id, response.producer_epoch)

    def add_group(self, group: str) -> None:
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.tid,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        assert self.client.request(request, 3).error_code == 0

    def add_partition(self, topic: str, index: int) -> None:
        """AddPartitionsToTxn."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.tid,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index])],
        )
        response = self.client.request(request, 3)
        codes = [
            partition.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for partition in topic.results_by_partition
        ]
        assert codes == [0]

    def commit_offsets(
        self, group: str, topic: str, offsets: dict[int, int], version: int = 3, generation: int = -1
    ) -> list[int]:
        """TxnOffsetCommit; error codes by partition."""
        partitions = [
            TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata="meta"
            )
            for index, offset in offsets.items()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=self.tid,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            generation_id=generation,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=partitions)],
        )
        while True:
            response = self.client.request(request, version)
            assert [topic_response.name for topic_response in response.topics] == [topic]
            codes = [partition.error_code for partition in response.topics[0].partitions]
            # A coordinator nobody has asked yet reads what markers others left in its partition.
            if ErrorCode.COORDINATOR_LOAD_IN_PROGRESS not in codes:
                return codes

    def end(self, *, commit: bool, version: int = 3) -> Writer:
        """End the transaction; who writes the next one."""
        request = EndTxnRequest(
            transactional_id=self.tid,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        response = self.client.request(request, version)
        assert response.error_code == 0
        if version < IMPLICIT_FROM:
            return self
        return self._replace(producer_id=response.producer_id, epoch=response.producer_epoch)

    def produce(self, topic: str, index: int, sequence: int = 0) -> int:
        """Write one record as part of the transaction; the error code."""
        batch = build_batch(
            [(1_000, None, b"value", ())],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        chunks = encode_produce_request([(topic, [(index, batch)])], 9, 7, "raw", transactional_id=self.tid)
        self.client.send(b"".join(bytes(chunk) for chunk in chunks))
        error: int = self.client.receive(0, 9).responses[0].partition_responses[0].error_code
        return error
