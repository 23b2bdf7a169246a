"""Offsets that transactions have written but not committed yet (KIP-98, KIP-447)."""

from __future__ import annotations

from collections.abc import KeysView
from typing import NamedTuple

from logd.groups.records import OffsetCommitValue


class TopicIndex(NamedTuple):
    """A topic's name and a partition number."""

    topic: str
    partition: int


class StoredOffset(NamedTuple):
    """A committed offset and its position in the log: of two, the one with the later position counts."""

    position: int
    value: OffsetCommitValue


class PendingOffsets:
    """The offsets of open transactions, by producer id.

    Invariant: `_writers` names a producer for an offset exactly when `_written` holds that offset for the
    producer; neither has empty entries.
    """

    def __init__(self) -> None:
        self._written: dict[int, dict[tuple[str, TopicIndex], StoredOffset]] = {}
        self._writers: dict[str, dict[TopicIndex, set[int]]] = {}

    def add(self, producer_id: int, group_id: str, where: TopicIndex, offset: StoredOffset) -> None:
        """Add an offset that the producer's transaction will commit, replacing an earlier one."""
        self._written.setdefault(producer_id, {})[group_id, where] = offset
        self._writers.setdefault(group_id, {}).setdefault(where, set()).add(producer_id)

    def take(self, producer_id: int) -> dict[tuple[str, TopicIndex], StoredOffset]:
        """Remove and return the offsets of a producer whose transaction has ended."""
        written = self._written.pop(producer_id, {})
        for group_id, where in written:
            self._forget_writer(producer_id, group_id, where)
        return written

    def discard(self, group_id: str, where: TopicIndex) -> None:
        """Remove the pending offsets of all producers for a deleted offset."""
        for producer_id in tuple(self._writers.get(group_id, {}).get(where, ())):
            self._forget_writer(producer_id, group_id, where)
            written = self._written[producer_id]
            del written[group_id, where]
            if not written:
                del self._written[producer_id]

    def of_group(self, group_id: str) -> KeysView[TopicIndex]:
        """Return the partitions for which an open transaction is about to commit an offset of the group."""
        return self._writers.get(group_id, {}).keys()

    def groups(self) -> KeysView[str]:
        """Return the groups for which an open transaction is about to commit an offset."""
        return self._writers.keys()

    def _forget_writer(self, producer_id: int, group_id: str, where: TopicIndex) -> None:
        partitions = self._writers[group_id]
        partitions[where].remove(producer_id)
        if not partitions[where]:
            del partitions[where]
            if not partitions:
                del self._writers[group_id]
