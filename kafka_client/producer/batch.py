"""A batch of a partition: its records, the bytes to send, and the `send` calls it belongs to."""

from __future__ import annotations

from kafka_client.errors import MillstreamError, RecordsRefused
from kafka_client.producer.delivery import Delivery
from kafka_client.producer.gate import NO_TRANSACTION
from kafka_client.producer.identity import Identity
from kafka_client.records import BatchHeader, Codec, NewRecord, build_batch, read_header, restamp

SEQUENCE_MASK = 0x7FFF_FFFF


class PendingBatch:
    """Records that will be one batch, or a batch to pass on, with the `send` calls that wait for it.

    `deliveries`: (delivery, position of its first record here). `order`: place among the partition's batches.
    """

    __slots__ = (
        "created_at",
        "data",
        "deliveries",
        "done",
        "error",
        "identity",
        "order",
        "raw",
        "records",
        "sealed",
        "sequence",
        "size",
        "transaction",
    )

    def __init__(self, order: int, now: float, transaction: int = NO_TRANSACTION) -> None:
        self.order = order
        self.transaction = transaction
        self.created_at = now
        self.records: list[NewRecord] = []
        self.raw: tuple[BatchHeader, memoryview] | None = None
        self.size = 0
        self.sealed = False
        self.deliveries: list[tuple[Delivery, int]] = []
        self.data: bytes | None = None
        self.identity = Identity()
        self.sequence = -1
        self.error: MillstreamError | None = None
        self.done = False

    @property
    def count(self) -> int:
        """Number of records."""
        return self.raw[0].count if self.raw is not None else len(self.records)

    def stamp(self, identity: Identity, sequence: int, codec: Codec, level: int | None) -> None:
        """Build the bytes to send, under this identity and sequence."""
        transactional = self.transaction != NO_TRANSACTION
        if self.data is None and self.raw is None:
            self.data = build_batch(
                self.records,
                codec=codec,
                level=level,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                base_sequence=sequence,
                transactional=transactional,
            )
        else:
            header, data = self.raw or (read_header(self.data or b""), self.data or b"")
            self.data = restamp(
                data,
                header,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                base_sequence=sequence,
                transactional=transactional,
            )
        self.identity, self.sequence = identity, sequence

    def acked(self, base_offset: int | None) -> None:
        """Report that the batch is in the log, its first record at `base_offset` (None if unknown)."""
        self.done = True
        for delivery, first in self.deliveries:
            delivery.acked(None if base_offset is None else base_offset + first)

    def failed(self, error: MillstreamError) -> None:
        """Report that the batch is given up; each `send` gets the refused records (KIP-467) of its own."""
        self.done, self.error = True, error
        for delivery, first in self.deliveries:
            if isinstance(error, RecordsRefused):
                delivery.failed(error.of(first, self._end_of(first)))
            else:
                delivery.failed(error)

    def halves(self) -> list[PendingBatch]:
        """Return two batches in place of this too large one, with the same sequence numbers together."""
        middle = len(self.records) // 2
        parts = []
        for start, records in ((0, self.records[:middle]), (middle, self.records[middle:])):
            part = PendingBatch(self.order, self.created_at, self.transaction)
            part.records, part.sealed = records, True
            part.size = self.size // 2 if start else self.size - self.size // 2
            if self.sequence >= 0:
                part.identity, part.sequence = self.identity, (self.sequence + start) & SEQUENCE_MASK
            for delivery, first in self.deliveries:
                mine = start <= first < start + len(records)
                if mine or (start and first < start < self._end_of(first)):
                    part.deliveries.append((delivery, max(first - start, 0)))
                    if not mine:
                        delivery.hold()
            parts.append(part)
        return parts

    def _end_of(self, first: int) -> int:
        """Return the position after the last record of the delivery that begins at `first`."""
        return min((f for _, f in self.deliveries if f > first), default=len(self.records))
