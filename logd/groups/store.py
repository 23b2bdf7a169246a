"""The state of one coordinator partition, and the one way it changes: append records, then replay them.

Live traffic and recovery run through `replay`; what only lives in memory (who waits, who is late) is not
here. Offsets written in a transaction are pending until its marker comes: then the log position decides, so
that a plain commit made after them stays, as in Apache Kafka.
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
    """The transactional producer a batch is written for; `implicit` where the write itself brings the
    partition into the transaction (KIP-890, transaction version 2).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    implicit: bool


class RecordLog(Protocol):
    """The partition of `__consumer_offsets` a coordinator appends to."""

    def append(self, records: Sequence[CoordinatorRecord]) -> int:
        """Append all of them, or none and raise KafkaError; the position of the first."""

    def append_in_transaction(self, records: Sequence[CoordinatorRecord], producing: Producing) -> int:
        """The same, as part of the producer's transaction."""


class Stored(NamedTuple):
    """A record as it stands in the log; `producer_id` when it was written in a transaction."""

    position: int
    record: CoordinatorRecord
    producer_id: int = NO_PRODUCER_ID


class TransactionEnd(NamedTuple):
    """The marker that ends a producer's transaction."""

    producer_id: int
    committed: bool


LogEntry = Stored | TransactionEnd
"""What recovery reads."""

Offsets = dict[TopicIndex, StoredOffset]
"""The committed offsets of one group."""


class GroupStore:
    """Groups and committed offsets of one coordinator partition.

    Invariant: there is a group for every offset, committed or pending. Committing without members makes a
    simple group: Empty, with no protocol type.
    """

    def __init__(self, log: RecordLog) -> None:
        self.groups: dict[str, Group] = {}
        self._offsets: dict[str, Offsets] = {}
        self._pending = PendingOffsets()
        self._log = log
        self._generations: dict[str, GroupRecord] = {}

    def write(self, records: Sequence[CoordinatorRecord], now_ms: int) -> None:
        """Append and replay; KafkaError, and nothing changed, when the log does not take them."""
        if records:
            first = self._log.append(records)
            for position, record in enumerate(records, first):
                self.replay(Stored(position, record), now_ms)

    def write_in_transaction(
        self, records: Sequence[CoordinatorRecord], producing: Producing, now_ms: int
    ) -> None:
        """The same, as part of a transaction: what comes of it, `end_transaction` says."""
        if records:
            first = self._log.append_in_transaction(records, producing)
            for position, record in enumerate(records, first):
                self.replay(Stored(position, record, producing.producer_id), now_ms)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        """The marker is in the log: pending offsets of the producer become committed, or go."""
        for (group_id, where), offset in self._pending.take(producer_id).items():
            offsets = self._offsets.get(group_id, {})
            if committed and (where not in offsets or offset.position > offsets[where].position):
                self._offsets.setdefault(group_id, {})[where] = offset

    def load(self, entry: LogEntry) -> None:
        """One entry of the log being recovered. Call `loaded` at its end.

        Of a group's generations only the last counts, so members are made from that one alone.
        """
        if isinstance(entry, TransactionEnd):
            self.end_transaction(entry.producer_id, entry.committed)
        elif isinstance(entry.record, GroupRecord):
            self._generations[entry.record.key.group] = entry.record
        else:
            self._replay_offset(entry, entry.record)

    def loaded(self, now_ms: int) -> None:
        """The log has been read to its end; transactions that are open there stay pending."""
        for record in self._generations.values():
            self._replay_group(record, now_ms)
        self._generations = {}
        for group_id in self._with_offsets():
            if group_id not in self.groups:
                self.groups[group_id] = Group(group_id, now_ms)

    def replay(self, stored: Stored, now_ms: int) -> None:
        """What a stored record says becomes true."""
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
        # Otherwise the record only tells what the group in memory already is.

    def offsets(self, group_id: str) -> Offsets:
        """The committed offsets of a group; empty if there are none."""
        return self._offsets.get(group_id, {})

    def pending(self, group_id: str) -> KeysView[TopicIndex]:
        """The partitions for which an open transaction has written an offset of the group."""
        return self._pending.of_group(group_id)

    def known_offsets(self, group_id: str) -> list[TopicIndex]:
        """The partitions with an offset of the group, committed or pending."""
        offsets = self.offsets(group_id)
        return [*offsets, *(where for where in self.pending(group_id) if where not in offsets)]

    def offsets_of_topics(self, topics: frozenset[str]) -> Iterator[tuple[str, TopicIndex]]:
        """Group and partition of every offset for the topics, committed or pending."""
        for group_id in self._with_offsets():
            for where in self.known_offsets(group_id):
                if where.topic in topics:
                    yield group_id, where

    def _with_offsets(self) -> dict[str, None]:
        """The groups with offsets, committed or pending, in an order that does not change from run to run."""
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
    """The record that forgets an offset."""
    return OffsetRecord(OffsetCommitKey(group=group_id, topic=where.topic, partition=where.partition), None)
