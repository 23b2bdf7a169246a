"""The state of one coordinator partition. It only changes by records that are appended, then replayed.

Live requests and recovery both use `replay`. State that is only in memory (waiting requests, deadlines) is
not here. Offsets written in a transaction are pending until its marker. Then the position in the log decides,
so that a plain commit after them wins, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Sequence
from typing import NamedTuple, Protocol

from kafka_client.records.header import NO_PRODUCER_ID
from logd.groups.group import Group
from logd.groups.pending import PendingOffsets, StoredOffset, TopicIndex
from logd.groups.records import (
    CoordinatorRecord,
    GroupRecord,
    OffsetCommitKey,
    OffsetRecord,
)
from logd.groups.states import GroupState


class Producing(NamedTuple):
    """The transactional producer of a batch.

    `implicit`: the write itself adds the partition to the transaction (KIP-890, transaction version 2).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    implicit: bool


class RecordLog(Protocol):
    """The partition of `__consumer_offsets` a coordinator appends to."""

    def append(self, records: Sequence[CoordinatorRecord]) -> int:
        """Append all records, or none and raise KafkaError; return the position of the first."""

    def append_in_transaction(self, records: Sequence[CoordinatorRecord], producing: Producing) -> int:
        """Append records as `append` does, as part of the producer's transaction."""


class Stored(NamedTuple):
    """A record in the log, with its position; `producer_id` is set if it was written in a transaction."""

    position: int
    record: CoordinatorRecord
    producer_id: int = NO_PRODUCER_ID


class TransactionEnd(NamedTuple):
    """The marker that ends a producer's transaction."""

    producer_id: int
    committed: bool


LogEntry = Stored | TransactionEnd
"""An entry of the log as recovery reads it."""

Offsets = dict[TopicIndex, StoredOffset]
"""The committed offsets of one group."""


class GroupStore:
    """The groups and committed offsets of one coordinator partition.

    Invariant: there is a group for every offset, committed or pending. A commit without members creates a
    simple group: Empty, without protocol type.
    """

    def __init__(self, log: RecordLog) -> None:
        self.groups: dict[str, Group] = {}
        self._offsets: dict[str, Offsets] = {}
        self._pending = PendingOffsets()
        self._log = log
        self._generations: dict[str, GroupRecord] = {}

    def write(self, records: Sequence[CoordinatorRecord], now_ms: int) -> None:
        """Append and replay records. Raises KafkaError, and changes nothing, if the log refuses them."""
        if records:
            first = self._log.append(records)
            for position, record in enumerate(records, first):
                self.replay(Stored(position, record), now_ms)

    def write_in_transaction(
        self, records: Sequence[CoordinatorRecord], producing: Producing, now_ms: int
    ) -> None:
        """Append records as part of a transaction; `end_transaction` commits or drops them."""
        if records:
            first = self._log.append_in_transaction(records, producing)
            for position, record in enumerate(records, first):
                self.replay(Stored(position, record, producing.producer_id), now_ms)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """Commit or drop the producer's pending offsets: the marker of its transaction is in the log."""
        for (group_id, where), offset in self._pending.take(producer_id).items():
            offsets = self._offsets.get(group_id, {})
            if committed and (where not in offsets or offset.position > offsets[where].position):
                self._offsets.setdefault(group_id, {})[where] = offset

    def load(self, entry: LogEntry) -> None:
        """Replay one entry of the log during recovery; call `loaded` after the last.

        Only the last generation of a group counts, so members are only created for that one.
        """
        if isinstance(entry, TransactionEnd):
            self.end_transaction(entry.producer_id, entry.committed)
        elif isinstance(entry.record, GroupRecord):
            self._generations[entry.record.key.group] = entry.record
        else:
            self._replay_offset(entry, entry.record)

    def loaded(self, now_ms: int) -> None:
        """End the recovery; transactions that are still open stay pending."""
        for record in self._generations.values():
            self._replay_group(record, now_ms)
        self._generations = {}
        for group_id in self._with_offsets():
            if group_id not in self.groups:
                self.groups[group_id] = Group(group_id, now_ms)

    def replay(self, stored: Stored, now_ms: int) -> None:
        """Apply a stored record."""
        record = stored.record
        if isinstance(record, GroupRecord):
            return self._replay_group(record, now_ms)
        self._replay_offset(stored, record)
        if record.value is not None and record.key.group not in self.groups:
            self.groups[record.key.group] = Group(record.key.group, now_ms)

    def _replay_group(self, record: GroupRecord, now_ms: int) -> None:
        group_id, value = record.key.group, record.value
        group = self.groups.get(group_id)
        if value is None:
            if group is not None:
                group.become(GroupState.DEAD, now_ms)
                del self.groups[group_id]
        elif group is None:
            self.groups[group_id] = Group.restored(group_id, value)
        elif group.state is GroupState.COMPLETING_REBALANCE and group.generation == value.generation:
            group.take_assignments(value)
            group.become(GroupState.STABLE, now_ms)
        # Otherwise the group in memory already is in the record's state.

    def offsets(self, group_id: str) -> Offsets:
        """Return the committed offsets of a group; empty if there are none."""
        return self._offsets.get(group_id, {})

    def pending(self, group_id: str) -> KeysView[TopicIndex]:
        """Return the partitions for which an open transaction has written an offset of the group."""
        return self._pending.of_group(group_id)

    def known_offsets(self, group_id: str) -> list[TopicIndex]:
        """Return the partitions with an offset of the group, committed or pending."""
        offsets = self.offsets(group_id)
        return [*offsets, *(where for where in self.pending(group_id) if where not in offsets)]

    def offsets_of_topics(self, topics: frozenset[str]) -> Iterator[tuple[str, TopicIndex]]:
        """Yield group and partition of every offset of the topics, committed or pending."""
        for group_id in self._with_offsets():
            for where in self.known_offsets(group_id):
                if where.topic in topics:
                    yield group_id, where

    def _with_offsets(self) -> dict[str, None]:
        """Return the groups with offsets, committed or pending, as keys in a reproducible order."""
        return dict.fromkeys((*self._offsets, *self._pending.groups()))

    def _replay_offset(self, stored: Stored, record: OffsetRecord) -> None:
        group_id, where = record.key.group, TopicIndex(record.key.topic, record.key.partition)
        if record.value is None:
            self._pending.discard(group_id, where)
            offsets = self._offsets.get(group_id)
            if offsets is not None:
                offsets.pop(where, None)
                if not offsets:
                    del self._offsets[group_id]
            return
        offset = StoredOffset(stored.position, record.value)
        if stored.producer_id == NO_PRODUCER_ID:
            self._offsets.setdefault(group_id, {})[where] = offset
        else:
            self._pending.add(stored.producer_id, group_id, where, offset)


def tombstone(group_id: str, where: TopicIndex) -> OffsetRecord:
    """Return the record that removes an offset."""
    return OffsetRecord(OffsetCommitKey(group=group_id, topic=where.topic, partition=where.partition), None)
