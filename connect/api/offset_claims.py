"""OffsetClaims: a sink's offsets beside its data, and one writer per partition, fenced.

For targets with transactions. A sink that commits its rows and their next offsets in one transaction has
each record once. A partition's claim has an epoch, which each new owner raises in `open`:

    open:  claim(transaction, partitions) -> context.offset(...)
    put:   check(transaction, partitions) -> rows of unwritten(records, stored) -> store(transaction, ends)

An earlier owner that wakes up late finds another epoch in its next transaction, and writes nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from connect.api.records import SinkRecord
from connect.errors import PartitionsFenced
from kafka_client import TopicPartition

Transaction = TypeVar("Transaction")
"""The target's own kind of transaction, such as a database connection."""


class StoredClaim(NamedTuple):
    """A partition's row in the target."""

    offset: int | None
    """The next offset to be written, None before the first."""
    epoch: int
    """The number of claims so far."""


class OffsetClaims(ABC, Generic[Transaction]):
    """The claims of one task. Subclass it with the three methods that read and write the target."""

    def __init__(self, place: str = "the target") -> None:
        """Begin without claims. `place` is the target's name in the message of PartitionsFenced."""
        self._place = place
        self._epochs: dict[TopicPartition, int] = {}

    @abstractmethod
    def locked(self, transaction: Transaction, tp: TopicPartition) -> StoredClaim | None:
        """Return a partition's claim, and lock it until the transaction ends; None if there is none yet."""

    @abstractmethod
    def write_epoch(self, transaction: Transaction, tp: TopicPartition, epoch: int) -> None:
        """Write a partition's epoch. For epoch 1 the claim is new: fail if there is one by now."""

    @abstractmethod
    def write_offset(self, transaction: Transaction, tp: TopicPartition, offset: int) -> None:
        """Write a partition's next offset."""

    def claim(
        self, transaction: Transaction, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Take partitions over. Return the next offsets that are stored, for `context.offset`.

        The claims count once the transaction is committed. Raises what `write_epoch` raises if another task
        claims a partition for the first time at the same moment: then begin again.
        """
        stored: dict[TopicPartition, int] = {}
        for tp in sorted(partitions):  # in one order in all tasks, so that none waits for another's lock
            before = self.locked(transaction, tp)
            epoch = 1 if before is None else before.epoch + 1
            self.write_epoch(transaction, tp, epoch)
            if before is not None and before.offset is not None:
                stored[tp] = before.offset
            self._epochs[tp] = epoch
        return stored

    def check(
        self, transaction: Transaction, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Lock the partitions' claims until the transaction ends. Return the next offsets that are stored.

        Raises PartitionsFenced if another task has claimed one of them.
        """
        stored: dict[TopicPartition, int] = {}
        for tp in sorted(partitions):
            claim = self.locked(transaction, tp)
            if claim is None or claim.epoch != self._epochs.get(tp):
                raise PartitionsFenced(f"{tp} has been claimed by another task in {self._place}")
            if claim.offset is not None:
                stored[tp] = claim.offset
        return stored

    def store(self, transaction: Transaction, offsets: Mapping[TopicPartition, int]) -> None:
        """Store next offsets in the transaction of the rows before them. Call `check` before."""
        for tp, offset in offsets.items():
            self.write_offset(transaction, tp, offset)

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the claims of partitions that the task owns no more."""
        for tp in partitions:
            self._epochs.pop(tp, None)


def ends_of(records: Sequence[SinkRecord]) -> dict[TopicPartition, int]:
    """Return the offset after the last record of each partition, as it was read (KIP-793)."""
    last: dict[tuple[str, int], int] = {}
    for record in records:
        place = record.origin or record
        last[place.topic, place.partition] = place.offset
    return {TopicPartition(*tp): offset + 1 for tp, offset in last.items()}


def unwritten(records: Sequence[SinkRecord], stored: Mapping[TopicPartition, int]) -> list[SinkRecord]:
    """Return the records that the target does not have yet, by the offsets that `check` returned."""
    return list(filter(is_unwritten(stored), records))


def is_unwritten(stored: Mapping[TopicPartition, int]) -> Callable[[SinkRecord], bool]:
    """Return a function that returns True for a record which the target does not have yet."""
    starts = {(tp.topic, tp.partition): offset for tp, offset in stored.items()}

    def is_new(record: SinkRecord) -> bool:
        place = record.origin or record
        return place.offset >= starts.get((place.topic, place.partition), 0)

    return is_new
