"""Fetching whole record batches from several partitions, ahead of the one who processes them.

One task (the director) finds leaders and looks up offsets; one `NodeFetch` per broker long-polls and fills
the `FetchBuffer`.
State is plain and changed between awaits only, so the user's calls take effect at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from typing import Any, Literal, Self

from logd.client.cluster.cluster import Client
from logd.client.cluster.metadata import NO_NODE, TopicPartition
from logd.client.cluster.settling import settle_forever
from logd.client.fetcher.buffer import FetchBuffer
from logd.client.fetcher.fetched import Fetched
from logd.client.fetcher.node import FetchSettings, NodeFetch
from logd.client.fetcher.offsets import EARLIEST, LATEST, IsolationLevel, list_offsets
from logd.client.fetcher.position import FetchPosition
from logd.errors import ErrorCode, KafkaError, MillstreamError, OffsetOutOfRange

OffsetReset = Literal["none", "earliest", "latest"]

RESET_OFFSETS: Mapping[str, int | None] = {"none": None, "earliest": EARLIEST, "latest": LATEST}


class BatchFetcher:
    """Long-polls the leaders of the assigned partitions and buffers what comes, within `buffer_max_bytes`.

    Methods that change the assignment are plain calls, made in the client's event loop, and take effect at
    once: a response to a request sent before a `seek` or `remove` is never handed out for the partition
    concerned. The buffer may pass its bound by one batch per broker (a batch is never cut).

    `fetch_min_bytes`, `fetch_max_wait_ms`: the broker answers once so much is there, or after so long.
    `fetch_max_bytes`, `max_partition_fetch_bytes`: bounds of one answer.
    `auto_offset_reset`: where to go on when a position is outside the log; "none" raises OffsetOutOfRange.
    """

    def __init__(
        self,
        client: Client,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        fetch_min_bytes: int = 1,
        fetch_max_wait_ms: int = 500,
        fetch_max_bytes: int = 52_428_800,
        max_partition_fetch_bytes: int = 1_048_576,
        buffer_max_bytes: int = 67_108_864,
        auto_offset_reset: OffsetReset = "none",
    ) -> None:
        self.client = client
        self._settings = FetchSettings(
            isolation_level=isolation_level,
            fetch_min_bytes=fetch_min_bytes,
            fetch_max_wait_ms=fetch_max_wait_ms,
            fetch_max_bytes=fetch_max_bytes,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
        )
        self._buffer = FetchBuffer(buffer_max_bytes)
        self._partitions = self._buffer.partitions
        self._lane = client.new_lane("fetch")
        self._reset_offset = RESET_OFFSETS[auto_offset_reset]
        self._nodes: dict[int, NodeFetch] = {}
        self._ready = asyncio.Event()
        self._unsettled = asyncio.Event()
        self._director: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._closed = False

    # --- assignment ---

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Fetch exactly these partitions; those kept at their present position lose nothing buffered."""
        for tp in [tp for tp in self._partitions if tp not in positions]:
            self.remove(tp)
        for tp, offset in positions.items():
            if tp not in self._partitions or self._partitions[tp].position != offset:
                self.add(tp, offset)

    def add(self, tp: TopicPartition, offset: int) -> None:
        """Fetch this partition too, from `offset` (-2 earliest, -1 latest)."""
        assert not self._closed, "add to a closed fetcher"
        self._buffer.add(tp, offset)
        if self._director is None:
            self._director = self._spawn(self._direct(), "fetch-director")
        self._unsettled.set()

    def remove(self, tp: TopicPartition) -> None:
        """Stop fetching the partition and drop what is buffered of it."""
        self._partitions.pop(tp, None)
        self._wake_all()

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Go on from `offset` (-2 earliest, -1 latest); what is buffered of the partition is dropped."""
        self._buffer.seek(tp, offset)
        self._unsettled.set()
        self._wake_all()

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Hand out nothing of these partitions until `resume`; what is buffered is kept while there is
        room.
        """
        for tp in tps:
            self._partitions[tp].paused = True

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """End a pause."""
        for tp in tps:
            self._partitions[tp].paused = False
        self._ready.set()
        self._wake_all()

    def paused(self) -> set[TopicPartition]:
        """The partitions paused now."""
        return {tp for tp, held in self._partitions.items() if held.paused}

    def position(self, tp: TopicPartition) -> int:
        """The next offset `fetch` will hand out (-2/-1 while it is still looked up)."""
        return self._partitions[tp].position

    @property
    def assignment(self) -> set[TopicPartition]:
        """The partitions fetched now, paused ones included."""
        return set(self._partitions)

    # --- fetching ---

    async def fetch(self, *, timeout_ms: int | None = None, max_bytes: int | None = None) -> list[Fetched]:
        """What is buffered (up to about `max_bytes`), at least one batch; an empty list once `timeout_ms`
        is over.

        Raises, once for each time it happens: OffsetOutOfRange with `auto_offset_reset` none, and KafkaError
        for what retrying does not mend, a topic that stays unknown among it. The partition then waits for a
        `seek`; others go on.
        """
        self._raise_error()
        if taken := self._take(max_bytes):
            return taken
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                while True:
                    self._ready.clear()
                    await self._ready.wait()
                    self._raise_error()
                    if taken := self._take(max_bytes):
                        return taken
        except TimeoutError:
            return []

    def fail(self, error: BaseException) -> None:
        """Let every `fetch` from now on raise `error`."""
        self._failure = error
        self._ready.set()

    async def close(self) -> None:
        """Stop fetching and drop the buffer."""
        self._closed = True
        self._partitions.clear()
        tasks = [node.task for node in self._nodes.values() if node.task is not None]
        if self._director is not None:
            tasks.append(self._director)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.close_lane(self._lane)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def statistics(self) -> dict[str, int]:
        """buffered_bytes, reserved_bytes (asked for and not yet there), partitions, requests_sent."""
        return {
            "buffered_bytes": self._buffer.buffered_bytes,
            "reserved_bytes": self._buffer.reserved_bytes,
            "partitions": len(self._partitions),
            "requests_sent": sum(node.requests_sent for node in self._nodes.values()),
        }

    def _take(self, max_bytes: int | None) -> list[Fetched]:
        taken, drained = self._buffer.take(max_bytes)
        for number in drained & self._nodes.keys():
            self._nodes[number].wake()
        return taken

    def _raise_error(self) -> None:
        if (error := self._failure or self._buffer.take_error()) is not None:
            raise error

    # --- what `NodeFetch` reports ---

    def settled(self) -> None:
        """Something can be handed out, or raised."""
        self._ready.set()

    def look_up(self) -> None:
        """A partition lost its leader."""
        self._unsettled.set()

    def out_of_range(self, held: FetchPosition) -> None:
        """The broker has no such offset: look up where to go on, or what to say."""
        if self._reset_offset is not None:
            held.fetch_offset = self._reset_offset
            if not held.buffered:
                held.position = self._reset_offset
            self._unsettled.set()
        else:
            held.park(None)
            self._spawn(self._report_out_of_range(held, held.epoch), "fetch-range")

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a coroutine as a task whose failure `fetch` raises."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    def _wake_all(self) -> None:
        for node in self._nodes.values():
            node.wake()

    # --- the director ---

    async def _direct(self) -> None:
        await settle_forever(
            self.client,
            self._unsettled,
            self._settle,
            remains=lambda: any(held.homeless or held.needs_offset for held in self._partitions.values()),
            give_up=self._park_unsettled,
        )

    async def _settle(self) -> None:
        await self._find_leaders()
        await self._find_offsets()

    async def _find_leaders(self) -> None:
        homeless = [held for held in self._partitions.values() if held.homeless]
        if not homeless:
            return
        metadata = await self.client.metadata({held.tp.topic for held in homeless}, allow_missing=True)
        for held in homeless:
            topic = metadata.topics.get(held.tp.topic)
            partition = topic.partitions.get(held.tp.partition) if topic else None
            if topic is None or partition is None:
                self._note_missing(held)
                continue
            held.missing_since = None
            if partition.leader == NO_NODE or partition.leader not in metadata.brokers:
                self.client.invalidate_metadata()
                continue
            held.node, held.leader_epoch = partition.leader, partition.leader_epoch
            held.topic_id = topic.topic_id
        for number in {held.node for held in self._partitions.values() if held.node != NO_NODE}:
            if number not in self._nodes:
                node = self._nodes[number] = NodeFetch(
                    self.client,
                    number,
                    lane=self._lane,
                    settings=self._settings,
                    buffer=self._buffer,
                    director=self,
                )
                node.task = self._spawn(node.run(), f"fetch-node-{number}")
            self._nodes[number].wake()

    def _note_missing(self, held: FetchPosition) -> None:
        """A topic just made may show up; one that stays away is the user's to hear of."""
        self.client.invalidate_metadata()
        now = asyncio.get_running_loop().time()
        if held.missing_since is None:
            held.missing_since = now
        elif now - held.missing_since > self.client.missing_topic_wait_ms / 1000:
            held.park(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{held.tp} does not exist"))
            self._ready.set()

    async def _find_offsets(self) -> None:
        wanted = {h.tp: h.fetch_offset for h in self._unplaced()}
        epochs = {h.tp: h.epoch for h in self._unplaced()}
        if not wanted:
            return
        found = await list_offsets(self.client, wanted, isolation_level=self._settings.isolation_level)
        for tp, listed in found.items():
            held = self._partitions.get(tp)
            if held is not None and held.epoch == epochs[tp] and held.needs_offset:
                held.found_offset(listed.offset)
        self._wake_all()

    def _unplaced(self) -> Iterator[FetchPosition]:
        return (h for h in self._partitions.values() if h.needs_offset and not h.homeless)

    def _park_unsettled(self, error: MillstreamError) -> None:
        for held in self._partitions.values():
            if held.homeless or held.needs_offset:
                held.park(error)
        self._ready.set()

    async def _report_out_of_range(self, held: FetchPosition, epoch: int) -> None:
        """Find out how far the position is off, then let `fetch` raise it."""
        start = end = -1
        try:
            start = (await list_offsets(self.client, {held.tp: EARLIEST}))[held.tp].offset
            end = (await list_offsets(self.client, {held.tp: LATEST}))[held.tp].offset
        except MillstreamError:
            pass
        if held.epoch == epoch:
            held.park(_out_of_range_error(held, start, end))
            self._ready.set()


def _out_of_range_error(held: FetchPosition, start: int, end: int) -> OffsetOutOfRange:
    topic, partition = held.tp
    return OffsetOutOfRange(
        message=f"{held.tp}: offset {held.fetch_offset}, the log has {start} to {end}",
        topic=topic,
        partition=partition,
        offset=held.fetch_offset,
        start=start,
        end=end,
    )
