"""A partition of `__consumer_offsets`, as the coordinator core writes and reads it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import ABORT, COMMIT, Codec, Record, parse_control
from kafka_client.records.header import NO_PRODUCER_ID
from logd.broker.coordinators.coordinator_log import CoordinatorLog
from logd.broker.partition.admission import NotYetAdmitted
from logd.broker.partition.partition import Partition
from logd.groups import (
    CoordinatorRecord,
    LogEntry,
    Producing,
    Stored,
    TransactionEnd,
    decode_record,
    encode_record,
)

if TYPE_CHECKING:
    from logd.storage import Appended


class GroupLog:
    """`logd.groups.RecordLog` over a partition."""

    def __init__(self, partition: Partition, codec: Codec, now_ms: Callable[[], int]) -> None:
        self._partition = partition
        self._codec = codec
        self._log = CoordinatorLog(partition, now_ms)

    def append(self, records: Sequence[CoordinatorRecord]) -> int:
        """Append all of them as one batch; the offset of the first.

        KafkaError: RECORD_LIST_TOO_LARGE, or what the log says.
        """
        return self._log.append(_encoded(records), codec=self._codec)

    def append_in_transaction(self, records: Sequence[CoordinatorRecord], producing: Producing) -> int:
        """Append the records as a batch of the producer's transaction.

        Raises KafkaError as `append`, and if the transaction's coordinator does not admit the producer or the
        log has a newer epoch of the producer. Raises NotYetAdmitted while the coordinator has to be asked.
        """
        # Coordinators write for producers without a sequence, as Kafka's do: theirs counts their own batches.
        return self._log.append(
            _encoded(records),
            admit=lambda: self._admit(producing),
            codec=self._codec,
            producer_id=producing.producer_id,
            producer_epoch=producing.producer_epoch,
            transactional=True,
        )

    def flushed(self) -> Awaitable[None] | None:
        """Return an awaitable that ends when the last append is committed, or None; see
        `CoordinatorLog.flushed`.

        Nothing appended may be acknowledged or shown before.
        """
        return self._log.flushed()

    @property
    def last(self) -> Appended | None:
        """Where the last records went."""
        return self._log.last

    def marked(self, marker: Appended) -> None:
        """See `CoordinatorLog.marked`."""
        self._log.marked(marker)

    def check_lease(self) -> None:
        """See `CoordinatorLog.check_lease`."""
        self._log.check_lease()

    def on_deposed(self, deposed: Callable[[], None]) -> None:
        """Set what is called when another broker turns out to lead the partition."""
        self._log.on_deposed = deposed

    def close(self) -> None:
        """Append nothing any more; requests that await `flushed` are answered with NOT_COORDINATOR."""
        self._log.close()

    def _admit(self, producing: Producing) -> None:
        partition = self._partition
        if partition.guard is None or partition.has_open_transaction(
            producing.producer_id, producing.producer_epoch
        ):
            return
        consent = partition.guard.admit(
            producing.transactional_id,
            producing.producer_id,
            producing.producer_epoch,
            partition.topic,
            partition.index,
            implicit=producing.implicit,
        )
        if consent is not None:
            raise NotYetAdmitted(consent)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to recover."""
        return self._log.is_empty

    def read(self) -> Iterator[LogEntry]:
        """Yield the log's records and the ends of transactions, in order; open transactions' records, too.

        A record that cannot be read is reported and left out, so that the other groups stay available.
        """
        for header, records in self._log.batches():
            if header.is_control:
                yield from _ends(header.producer_id, records)
                continue
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
            stored: Iterator[tuple[int, CoordinatorRecord]] = self._log.decoded(records, decode_record)
            for offset, record in stored:
                yield Stored(offset, record, producer_id)


def _encoded(records: Sequence[CoordinatorRecord]) -> list[tuple[bytes, bytes | None]]:
    try:
        return [encode_record(record) for record in records]
    except ValueError as error:
        raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, str(error)) from None


def _ends(producer_id: int, records: Sequence[Record]) -> Iterator[TransactionEnd]:
    """Yield the markers of a control batch, which holds one, or none after compaction."""
    for _, _, key, _, _ in records:
        kind = parse_control(key)[1]
        if kind in (ABORT, COMMIT):
            yield TransactionEnd(producer_id, kind == COMMIT)
