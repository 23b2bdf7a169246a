"""The partitions a fetcher has, and what is buffered of them, within a bound.

Positions tell of every change (`changed`), and are listed here by what is to be done about them: nothing here
or in `director` and `node` looks through all partitions.

    lookups   something has to be found out before more can be fetched
    ready     has something to hand out
    kept      has something that is not handed out, because it is paused
    failed    has an error to raise, and nothing to hand out before
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
    """Fetches from one broker."""

    def note(self, tp: TopicPartition) -> None:
        """A partition that is or was fetched there has changed."""


class FetchBuffer:
    """`reserved_bytes` are asked for and not there yet.

    `max_bytes` may be passed by one batch per broker, since a batch is never cut.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.reserved_bytes = 0
        self.buffered_bytes = 0
        """Bytes waiting to be handed out."""
        self.partitions: dict[TopicPartition, FetchPosition] = {}
        self.lookups: dict[TopicPartition, FetchPosition] = {}
        self.ready: dict[TopicPartition, FetchPosition] = {}
        """In the order of handing out."""
        self.kept: dict[TopicPartition, FetchPosition] = {}
        self.failed: dict[TopicPartition, FetchPosition] = {}
        self.watchers: dict[int, BrokerWatcher] = {}
        """Broker → who fetches from it."""
        self.asking: set[int] = set()
        """The brokers that are asked for something; they share the room."""
        self._wait_for_room: list[Callable[[], None]] = []
        self._versions = itertools.count(1)

    # --- partitions come, change and go ---

    def add(self, tp: TopicPartition, offset: int, epoch: int) -> None:
        """Have this partition too, from `offset` on; the record before it was of leader epoch `epoch`."""
        self.remove(tp)
        held = self.partitions[tp] = FetchPosition(tp, offset, epoch, next(self._versions), self)
        self.changed(held)

    def remove(self, tp: TopicPartition) -> None:
        """Have this partition no more."""
        held = self.partitions.pop(tp, None)
        if held is None:
            return
        self.lookups.pop(tp, None)
        if held.listed_in is not None:
            del held.listed_in[tp]
        self.buffered_bytes -= held.counted_bytes
        self._tell(held.listed_at, tp)
        if held.counted_bytes:
            self._wake_for_room()

    def clear(self) -> None:
        """Have no partitions any more."""
        for tp in list(self.partitions):
            self.remove(tp)

    def seek(self, tp: TopicPartition, offset: int, epoch: int) -> None:
        """Go on from `offset`, before which leader epoch `epoch` ended or goes on; what is buffered of the
        partition is dropped.
        """
        self.partitions[tp].seek(offset, epoch, next(self._versions))

    def drop(self, held: FetchPosition) -> None:
        """Drop what is buffered of the partition, to be fetched again from its position on."""
        held.drop_buffered(next(self._versions))

    def changed(self, held: FetchPosition) -> None:
        """List the position by what it is now; see `PositionWatcher`."""
        tp = held.tp
        if self.partitions.get(tp) is not held:
            return  # It was removed; what came of its last requests is of no use.
        growth = held.buffered_bytes - held.counted_bytes
        if growth:
            self.buffered_bytes += growth
            held.counted_bytes = held.buffered_bytes
        self._list(held)
        if held.needs_lookup:
            self.lookups[tp] = held
        elif self.lookups:
            self.lookups.pop(tp, None)
        source = held.source
        if held.listed_at != source:
            self._tell(held.listed_at, tp)
            held.listed_at = source
        self._tell(source, tp)
        if growth < 0 and self._wait_for_room:
            self._wake_for_room()

    def _list(self, held: FetchPosition) -> None:
        """Among what is `ready`, `kept` or `failed`; it keeps its place there."""
        listed: dict[TopicPartition, FetchPosition] | None = None
        if held.buffered:
            listed = self.kept if held.paused else self.ready
        elif held.error is not None:
            listed = self.failed
        if listed is not held.listed_in:
            if held.listed_in is not None:
                del held.listed_in[held.tp]
            if listed is not None:
                listed[held.tp] = held
            held.listed_in = listed

    def _tell(self, node: int, tp: TopicPartition) -> None:
        if node != NO_NODE and (watcher := self.watchers.get(node)) is not None:
            watcher.note(tp)

    # --- room ---

    def share_bytes(self, least: int) -> int:
        """Bytes a partition may have buffered before it is not asked for any more, `least` or above."""
        return max(least, self.max_bytes // max(len(self.partitions), 1))

    def free_bytes(self) -> int:
        """Bytes that may still be asked for. Paused partitions must not keep the others from being fetched:
        where nothing else fills the buffer, theirs is given up, to be fetched again later.
        """
        free = self.max_bytes - self.reserved_bytes - self.buffered_bytes
        if free <= 0 and self.kept and not self.ready:
            for held in list(self.kept.values()):
                self.drop(held)
            free = self.max_bytes - self.reserved_bytes - self.buffered_bytes
        return free

    def reserve(self, size: int) -> None:
        """So much is asked for; `release` it when the answer is there."""
        self.reserved_bytes += size

    def release(self, size: int) -> None:
        """So much is not asked for any more."""
        self.reserved_bytes -= size
        if self._wait_for_room:
            self._wake_for_room()

    def wait_for_room(self, wake: Callable[[], None]) -> None:
        """Call `wake` once, when there may be room again."""
        if wake not in self._wait_for_room:
            self._wait_for_room.append(wake)

    def _wake_for_room(self) -> None:
        waiting, self._wait_for_room = self._wait_for_room, []
        for wake in waiting:
            wake()

    # --- handing out ---

    def take(self, max_bytes: int, max_records: int) -> list[Fetched]:
        """Hand out what is buffered, up to about so much.

        A partition that was served goes to the end, so that a busy one cannot keep others waiting.
        """
        taken: list[Fetched] = []
        size = records = 0
        full = False
        while self.ready and not full:
            held = next(iter(self.ready.values()))
            while held.buffered and not full:
                fetched, was_cut = held.take(max_bytes - size, max_records - records)
                taken.append(fetched)
                size += len(fetched.buffer)
                records += fetched.record_count
                full = was_cut or size >= max_bytes or records >= max_records
            if held.buffered:
                self.ready[held.tp] = self.ready.pop(held.tp)
        return taken

    def take_error(self) -> MillstreamError | None:
        """The error of a partition that has nothing else to hand out; each is given once."""
        for held in self.failed.values():
            return held.raise_error()
        return None
