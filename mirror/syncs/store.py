"""Translates offsets of the source into offsets of the target, as Kafka's OffsetSyncStore does.

A record at or after the group's offset may not be skipped, so an offset between two syncs is translated to a
lower bound. Syncs of this mirror also have a run (see `OffsetSync.translate`), which makes it exact.
"""

from __future__ import annotations

from kafka_client import TopicPartition
from mirror.offsets import OffsetSync
from mirror.syncs.slots import SyncSlots


class OffsetSyncStore:
    """The offset syncs of one flow. Call `add` in the order of the topic, and `finish_loading` at its end.

    With `latest_only`, only the latest sync of each partition is used of those that were loaded. Without it,
    the caller has to prevent that a translation goes back: an earlier store may have had other syncs.
    """

    def __init__(self, *, latest_only: bool = False) -> None:
        self._latest_only = latest_only
        self._is_loaded = False
        self._slots: dict[TopicPartition, SyncSlots] = {}

    def add(self, sync: OffsetSync) -> None:
        """Add the next sync of the topic."""
        slots = self._slots.get(sync.tp)
        if slots is None:
            self._slots[sync.tp] = SyncSlots(sync)
        elif self._latest_only and not self._is_loaded:
            slots.replace_all(sync)
        else:
            slots.add(sync)

    def finish_loading(self) -> None:
        """Begin to translate: all syncs that the topic had at the start were added."""
        self._is_loaded = True

    def translate(self, tp: TopicPartition, upstream: int) -> int | None:
        """Return the downstream offset at which a group goes on that goes on at `upstream` in the source.

        Return -1 if the offset is older than the partition's syncs. Return None if the partition has no syncs
        or loading is not finished.
        """
        slots = self._slots.get(tp)
        return slots.translate(upstream) if slots is not None and self._is_loaded else None

    def upper_bound(self, tp: TopicPartition, upstream: int) -> int | None:
        """Return the highest downstream offset that a group at `upstream` can be at, or None if unknown."""
        slots = self._slots.get(tp)
        return None if slots is None else slots.upper_bound(upstream)

    def translate_back(self, tp: TopicPartition, downstream: int) -> int | None:
        """Return where in the source's `tp` a group goes on that is at `downstream` in the copy.

        The offset may be too low, and never too high. Return None if it is older than the partition's syncs.
        """
        slots = self._slots.get(tp)
        return None if slots is None else slots.translate_back(downstream)
