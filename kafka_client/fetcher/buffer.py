"""The partitions of a fetcher and their buffered batches, within a bound.

Positions report every change (`changed`), and are listed here by what they need. So nothing here, in
`director` or in `node` iterates over all partitions.

    lookups   must be looked up before more can be fetched
    ready     has buffered batches
    paused    has buffered batches that are not returned, because it is paused
    failed    has an error to raise, and no buffered batches before it
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Protocol

from kafka_client.cluster.metadata import NO_NODE
from kafka_client.errors import MillstreamError
from kafka_client.fetcher.fetched import Fetched
from kafka_client.fetcher.position import FetchPosition
from kafka_client.topic_partition import TopicPartition


class BrokerWatcher(Protocol):
    """A fetch loop of one broker."""

    def note(self, tp: TopicPartition) -> None:
        """Note that a partition which is or was fetched from this broker has changed."""


class FetchBuffer:
    """The buffer of a fetcher. `reserved_bytes` have been requested and have not arrived.

    `max_bytes` may be exceeded by one batch per broker, since a batch is never cut.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.reserved_bytes = 0
        self.buffered_bytes = 0
        """The bytes of buffered batches."""
        self.partitions: dict[TopicPartition, FetchPosition] = {}
        self.lookups: dict[TopicPartition, FetchPosition] = {}
        self.ready: dict[TopicPartition, FetchPosition] = {}
        """In the order in which they are returned."""
        self.paused: dict[TopicPartition, FetchPosition] = {}
        self.failed: dict[TopicPartition, FetchPosition] = {}
        self.watchers: dict[int, BrokerWatcher] = {}
        """Broker id → its fetch loop."""
        self.asking: set[int] = set()
        """The brokers with a current request; they share the free bytes."""
        self._wait_for_room: list[Callable[[], None]] = []
        self._versions = itertools.count(1)

    # --- partitions come, change and go ---

    def add(self, tp: TopicPartition, offset: int, epoch: int, end: int | None = None) -> None:
        """Add a partition, to fetch from `offset` to `end`; the record before `offset` is of `epoch`."""
        self.remove(tp)
        position = FetchPosition(tp, offset, epoch, next(self._versions), self, end)
        self.partitions[tp] = position
        self.changed(position)

    def remove(self, tp: TopicPartition) -> None:
        """Remove a partition."""
        position = self.partitions.pop(tp, None)
        if position is None:
            return
        self.lookups.pop(tp, None)
        if position.listed_in is not None:
            del position.listed_in[tp]
        self.buffered_bytes -= position.counted_bytes
        self._tell(position.listed_at, tp)
        if position.counted_bytes:
            self._wake_for_room()

    def clear(self) -> None:
        """Remove all partitions."""
        for tp in list(self.partitions):
            self.remove(tp)

    def seek(self, tp: TopicPartition, offset: int, epoch: int) -> None:
        """Continue a partition at `offset`, and drop its buffered batches.

        Leader epoch `epoch` ends or continues at `offset`.
        """
        self.partitions[tp].seek(offset, epoch, next(self._versions))

    def drop(self, position: FetchPosition) -> None:
        """Drop the partition's buffered batches, to be fetched again from its position on."""
        position.drop_buffered(next(self._versions))

    def changed(self, position: FetchPosition) -> None:
        """Update the position in the lists; see `PositionWatcher`."""
        tp = position.tp
        if self.partitions.get(tp) is not position:
            return  # It was removed; responses to its last requests are of no use.
        growth = position.buffered_bytes - position.counted_bytes
        if growth:
            self.buffered_bytes += growth
            position.counted_bytes = position.buffered_bytes
        self._list(position)
        if position.needs_lookup:
            self.lookups[tp] = position
        elif self.lookups:
            self.lookups.pop(tp, None)
        source = position.source
        if position.listed_at != source:
            self._tell(position.listed_at, tp)
            position.listed_at = source
        self._tell(source, tp)
        if growth < 0 and self._wait_for_room:
            self._wake_for_room()

    def _list(self, position: FetchPosition) -> None:
        """List the position as `ready`, `paused` or `failed`; it keeps its place in the list."""
        listed: dict[TopicPartition, FetchPosition] | None = None
        if position.buffered:
            listed = self.paused if position.paused else self.ready
        elif position.error is not None:
            listed = self.failed
        if listed is not position.listed_in:
            if position.listed_in is not None:
                del position.listed_in[position.tp]
            if listed is not None:
                listed[position.tp] = position
            position.listed_in = listed

    def _tell(self, node: int, tp: TopicPartition) -> None:
        if node != NO_NODE and (watcher := self.watchers.get(node)) is not None:
            watcher.note(tp)

    # --- room ---

    def share_bytes(self, least: int) -> int:
        """Return the buffered bytes above which a partition is not fetched: at least `least`."""
        return max(least, self.max_bytes // max(len(self.partitions), 1))

    def free_bytes(self) -> int:
        """Return the bytes that may still be requested.

        Paused partitions must not keep others from being fetched. If they alone fill the buffer, their
        batches are dropped, to be fetched again later.
        """
        free = self.max_bytes - self.reserved_bytes - self.buffered_bytes
        if free <= 0 and self.paused and not self.ready:
            for position in list(self.paused.values()):
                self.drop(position)
            free = self.max_bytes - self.reserved_bytes - self.buffered_bytes
        return free

    def reserve(self, size: int) -> None:
        """Reserve the bytes of a request; `release` them after its response."""
        self.reserved_bytes += size

    def release(self, size: int) -> None:
        """Release reserved bytes."""
        self.reserved_bytes -= size
        if self._wait_for_room:
            self._wake_for_room()

    def wait_for_room(self, wake: Callable[[], None]) -> None:
        """Call `wake` once, when there may be free bytes again."""
        if wake not in self._wait_for_room:
            self._wait_for_room.append(wake)

    def _wake_for_room(self) -> None:
        waiting, self._wait_for_room = self._wait_for_room, []
        for wake in waiting:
            wake()

    # --- returning batches ---

    def take(self, max_bytes: int, max_records: int) -> list[Fetched]:
        """Return buffered batches, up to about these limits.

        A partition with returned batches goes to the end of the list, so that a busy one cannot delay others.
        """
        batches: list[Fetched] = []
        size = records = 0
        full = False
        while self.ready and not full:
            position = next(iter(self.ready.values()))
            while position.buffered and not full:
                fetched, was_cut = position.take(max_bytes - size, max_records - records)
                batches.append(fetched)
                size += len(fetched.buffer)
                records += fetched.record_count
                full = was_cut or size >= max_bytes or records >= max_records
            if position.buffered:
                self.ready[position.tp] = self.ready.pop(position.tp)
        return batches

    def take_error(self) -> MillstreamError | None:
        """Return the error of a partition without buffered batches, once per error; None if there is none."""
        for position in self.failed.values():
            return position.raise_error()
        return None
