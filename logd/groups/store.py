"""The state of one coordinator partition, and the one way it changes: append records, then replay them.

Live traffic and recovery run through `replay`; what only lives in memory (who waits, who is late) is not
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from logd.groups.group import Group
from logd.groups.records import (
    CoordinatorRecord,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetRecord,
)
from logd.groups.states import GroupState


class RecordLog(Protocol):
    """The partition of `__consumer_offsets` a coordinator appends to."""

    def append(self, records: Sequence[CoordinatorRecord]) -> None:
        """Append all of them, or none and raise KafkaError."""


class TopicIndex(NamedTuple):
    """A topic's partition."""

    topic: str
    partition: int


Offsets = dict[TopicIndex, OffsetCommitValue]
"""The committed offsets of one group."""


class GroupStore:
    """Groups and committed offsets of one coordinator partition.

    Invariant: whoever has offsets is a group. Committing without members makes a simple group: Empty, with no
    protocol type.
    """

    def __init__(self, log: RecordLog) -> None:
        self.groups: dict[str, Group] = {}
        self._offsets: dict[str, Offsets] = {}
        self._log = log
        self._generations: dict[str, GroupRecord] = {}

    def write(self, records: Sequence[CoordinatorRecord], now_ms: int) -> None:
        """Append and replay; KafkaError, and nothing changed, when the log does not take them."""
        if records:
            self._log.append(records)
            for record in records:
                self.replay(record, now_ms)

    def load(self, record: CoordinatorRecord, now_ms: int) -> None:
        """One record of the log being recovered. Call `loaded` at its end.

        Of a group's generations only the last counts, so members are made from that one alone.
        """
        if isinstance(record, GroupRecord):
            self._generations[record.key.group] = record
        else:
            self._replay_offset(record.key, record.value)

    def loaded(self, now_ms: int) -> None:
        """The log has been read to its end."""
        for record in self._generations.values():
            self.replay(record, now_ms)
        self._generations = {}
        for group_id in self._offsets.keys() - self.groups.keys():
            self.groups[group_id] = Group(group_id, now_ms)

    def replay(self, record: CoordinatorRecord, now_ms: int) -> None:
        """What a stored record says becomes true."""
        if isinstance(record, OffsetRecord):
            self._replay_offset(record.key, record.value)
            if record.value is not None and record.key.group not in self.groups:
                self.groups[record.key.group] = Group(record.key.group, now_ms)
            return
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

    def offsets_of_topics(self, topics: frozenset[str]) -> Iterator[tuple[str, TopicIndex]]:
        """Group and partition of every offset committed for the topics."""
        for group_id, offsets in self._offsets.items():
            for where in offsets:
                if where.topic in topics:
                    yield group_id, where

    @property
    def offset_count(self) -> int:
        """Committed offsets in all groups."""
        return sum(map(len, self._offsets.values()))

    def _replay_offset(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        where = TopicIndex(key.topic, key.partition)
        if value is not None:
            self._offsets.setdefault(key.group, {})[where] = value
            return
        offsets = self._offsets.get(key.group)
        if offsets is not None:
            offsets.pop(where, None)
            if not offsets:
                del self._offsets[key.group]


def tombstone(group_id: str, where: TopicIndex) -> OffsetRecord:
    """The record that forgets an offset."""
    return OffsetRecord(OffsetCommitKey(group=group_id, topic=where.topic, partition=where.partition), None)
