"""Offsets that transactions have written and not yet committed (KIP-98, KIP-447)."""

from __future__ import annotations

from collections.abc import KeysView
from typing import NamedTuple

from logd.groups.records import OffsetCommitValue


class TopicIndex(NamedTuple):
    """A topic's partition."""

    topic: str
    partition: int


class StoredOffset(NamedTuple):
    """An offset somebody committed, and where in the log it stands: of two, the later one counts."""

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
        """The producer's transaction will commit this offset, instead of one it wrote before."""
        self._written.setdefault(producer_id, {})[group_id, where] = offset
        self._writers.setdefault(group_id, {}).setdefault(where, set()).add(producer_id)

    def take(self, producer_id: int) -> dict[tuple[str, TopicIndex], StoredOffset]:
        """The producer's transaction has ended: what it wrote is pending no more, and is handed out."""
        written = self._written.pop(producer_id, {})
        for group_id, where in written:
            self._forget_writer(producer_id, group_id, where)
        return written

    def discard(self, group_id: str, where: TopicIndex) -> None:
        """The offset was deleted, whoever was about to commit it."""
        for producer_id in tuple(self._writers.get(group_id, {}).get(where, ())):
            self._forget_writer(producer_id, group_id, where)
            written = self._written[producer_id]
            del written[group_id, where]
            if not written:
                del self._written[producer_id]

    def of_group(self, group_id: str) -> KeysView[TopicIndex]:
        """The partitions for which some transaction is about to commit an offset of the group."""
        return self._writers.get(group_id, {}).keys()

    def groups(self) -> KeysView[str]:
        """The groups some transaction is about to commit an offset of."""
        return self._writers.keys()

    def _forget_writer(self, producer_id: int, group_id: str, where: TopicIndex) -> None:
        partitions = self._writers[group_id]
        partitions[where].remove(producer_id)
        if not partitions[where]:
            del partitions[where]
            if not partitions:
                del self._writers[group_id]
