"""A partition's log with leader epochs, answered for as by a broker that knows KIP-320. It can be truncated.

log = EpochLog(broker)            # topic "t", partition 0
log.append(0, b"a", b"b")         # records of epoch 0
log.truncate(1)                   # an unclean start: the next append begins a new epoch
log.append(1, b"other")
"""

from __future__ import annotations

import asyncio
from typing import Any

from kafka_client.errors import ErrorCode
from kafka_client.records import assign_offset, build_batch
from kafka_client.wire import ApiKey, Message
from kafka_client.wire.messages.fetch import EpochEndOffset as Diverging
from kafka_client.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_client.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.kafka_client.fake_broker import TOPIC_ID, FakeBroker, ReceivedRequest


class EpochLog:
    """Single-record batches of ``t-0``; ``records`` are (epoch, value), their index is the offset.

    ``compares``: whether the broker looks at a fetch's last epoch, as it should from version 12 on.
    """

    def __init__(self, broker: FakeBroker, *, compares: bool = True) -> None:
        self.records: list[tuple[int, bytes]] = []
        self.epoch = 0
        self.compares = compares
        self.broker = broker
        broker.leader_epochs["t"] = {0: 0}
        broker.served[ApiKey.OFFSET_FOR_LEADER_EPOCH] = (2, 4)
        broker.on(ApiKey.FETCH, self._fetch)
        broker.on(ApiKey.LIST_OFFSETS, self._list_offsets)
        broker.on(ApiKey.OFFSET_FOR_LEADER_EPOCH, self._epoch_end)

    def append(self, *values: bytes) -> None:
        """Write records in the current epoch."""
        self.records += [(self.epoch, value) for value in values]

    def truncate(self, offset: int, epoch: int | None = None) -> None:
        """Lose what stands from ``offset`` on, and lead in a new epoch."""
        del self.records[offset:]
        self.epoch = self.epoch + 1 if epoch is None else epoch
        self.broker.leader_epochs["t"][0] = self.epoch

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch not above `epoch` and its end offset, or (-1, -1) if there is none."""
        epochs = [each for each, _ in self.records]
        if epoch > max([self.epoch, *epochs]):
            return -1, -1
        if epoch < min([*epochs, self.epoch]):
            return -1, -1
        end = next((at for at, each in enumerate(epochs) if each > epoch), len(epochs))
        return (epochs[end - 1] if epoch not in epochs and end else epoch), end

    def _error(self, current_epoch: int) -> int:
        if current_epoch < 0 or current_epoch == self.epoch:
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if current_epoch < self.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    async def _fetch(self, request: ReceivedRequest) -> Message:
        partition = request.message.topics[0].partitions[0]
        answer = PartitionData(partition_index=0, high_watermark=len(self.records), records=b"")
        answer.error_code = self._error(partition.current_leader_epoch)
        epoch, end = self.end_of(partition.last_fetched_epoch)
        if answer.error_code:
            pass
        elif self.compares and partition.last_fetched_epoch >= 0 and end < 0:
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif (
            self.compares
            and epoch >= 0
            and (epoch < partition.last_fetched_epoch or end < partition.fetch_offset)
        ):
            answer.diverging_epoch = Diverging(epoch=epoch, end_offset=end)
        elif partition.fetch_offset > len(self.records):
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif partition.fetch_offset == len(self.records):
            await asyncio.sleep(0.005)
        else:
            answer.records = self._batches(partition.fetch_offset)
        topic = FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[answer])
        return FetchResponse(responses=[topic])

    def _batches(self, first: int) -> bytes:
        batches = b""
        for offset, (epoch, value) in list(enumerate(self.records))[first:]:
            batch = bytearray(build_batch([(0, None, value, ())]))
            assign_offset(batch, offset, epoch)
            batches += batch
        return batches

    def _list_offsets(self, request: ReceivedRequest) -> Message:
        timestamp = request.message.topics[0].partitions[0].timestamp
        answer: dict[str, Any] = {
            "offset": 0 if timestamp == -2 else len(self.records),
            "leader_epoch": self.epoch,
        }
        partition = ListOffsetsPartitionResponse(partition_index=0, **answer)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])

    def _epoch_end(self, request: ReceivedRequest) -> Message:
        partition = request.message.topics[0].partitions[0]
        answer = EpochEndOffset(partition=0, error_code=self._error(partition.current_leader_epoch))
        if not answer.error_code:
            answer.leader_epoch, answer.end_offset = self.end_of(partition.leader_epoch)
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderTopicResult(topic="t", partitions=[answer])]
        )
