"""What a fetcher finds out about its positions: leaders, offsets, and whether what was read is still there.

One task looks up what has to be known before a partition can be fetched; `NodeFetch` reports what it hears.
What the user may do is `fetcher`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from kafka_client.cluster.cluster import Client
from kafka_client.cluster.lookup import look_up_forever
from kafka_client.cluster.metadata import NO_NODE
from kafka_client.errors import ErrorCode, KafkaError, LogTruncated, MillstreamError, OffsetOutOfRange
from kafka_client.fetcher.buffer import FetchBuffer
from kafka_client.fetcher.damage import next_readable
from kafka_client.fetcher.fetch_metrics import FetchMetrics
from kafka_client.fetcher.fetched import Fetched
from kafka_client.fetcher.node import FetchSettings, NodeFetch
from kafka_client.fetcher.offsets import EARLIEST, LATEST, list_offsets
from kafka_client.fetcher.position import FetchPosition
from kafka_client.fetcher.validation import validate_positions

log = logging.getLogger(__name__)

DAMAGE = "its broker answers CORRUPT_MESSAGE, see the broker's log"
CLOSE_SECONDS = 0.5
"""How long brokers are waited for that are to drop their fetch sessions; they do so by themselves later."""


class Director:
    """Finds leaders and offsets and runs a `NodeFetch` per broker.

    `ready` is set when there is something to hand out, or to raise.

    `reset_offset`: EARLIEST or LATEST, where to go on when a position is outside the log; None raises.
    """

    def __init__(
        self, client: Client, buffer: FetchBuffer, settings: FetchSettings, reset_offset: int | None
    ) -> None:
        self.ready = asyncio.Event()
        self.failure: BaseException | None = None
        self.nodes: dict[int, NodeFetch] = {}
        self.metrics = FetchMetrics()
        self._client = client
        self.lane = client.new_lane("fetch")
        self._buffer = buffer
        self._partitions = buffer.partitions
        self._settings = settings
        self._reset_offset = reset_offset
        self._lookup_wanted = asyncio.Event()
        self._lookup: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def fail(self, error: BaseException) -> None:
        """Have every `fetch` raise `error` from now on."""
        self.failure = error
        self.ready.set()

    async def close(self) -> None:
        """End every task, and drop the brokers' sessions where they answer soon."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.gather(*(node.close() for node in self.nodes.values()))
        except TimeoutError:
            pass
        await self._client.close_lane(self.lane)

    # --- what `NodeFetch` reports ---

    def made_ready(self) -> None:
        """Something can be handed out, or raised."""
        self.ready.set()

    def look_up(self) -> None:
        """A partition is new, or lost its leader, or has an offset that is to be found or validated."""
        if self._lookup is None:
            self._lookup = self._spawn(self._look_up_forever(), "fetch-director")
        self._lookup_wanted.set()

    def out_of_range(self, held: FetchPosition) -> None:
        """The broker has no such offset: look up where to go on, or what to say."""
        if self._reset_offset is not None:
            held.find_offset(self._reset_offset)
            self.look_up()
        else:
            held.park(None)
            held.validated()
            self._spawn(self._report_out_of_range(held), "fetch-range")

    def unreadable(self, held: FetchPosition) -> None:
        """The broker cannot read its log at this offset: find the next one it can read."""
        held.park(None)
        self._spawn(self._pass_over(held), "fetch-damage")

    def diverged(self, held: FetchPosition, epoch: int, end_offset: int) -> None:
        """The leader's log is not the one that was read up to `fetch_offset` (KIP-320).

        Of the epochs that were read it has `epoch`, which ends at `end_offset`, but none above; -1: none.

        What the user was given may still be in it, so what is buffered is fetched again first.
        """
        if held.buffered:
            self._buffer.drop(held)
            self.look_up()
            return
        diverging = held.diverges_at(epoch, end_offset)
        if self._reset_offset is None:
            held.park(None)
            held.validated()
            self._spawn(self._report_truncated(held, diverging, epoch), "fetch-truncation")
            return
        log.warning("%s", _truncated(held, diverging))
        if diverging < 0:
            self.out_of_range(held)
        else:
            self._buffer.seek(held.tp, diverging, epoch)
            self.look_up()

    def prefers(self, held: FetchPosition, replica: int) -> bool:
        """The leader would have the partition fetched from this replica (KIP-392); whether that can be done.

        It is asked for as long as metadata counts as fresh, and then the leader again.
        """
        if replica not in self._client.known.brokers:
            return False
        self._fetch_from(replica)
        now = asyncio.get_running_loop().time()
        held.read_from(replica, now + self._client.metadata_max_age_ms / 1000)
        return True

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a coroutine as a task whose failure `fetch` raises."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    # --- looking up ---

    async def _look_up_forever(self) -> None:
        await look_up_forever(
            self._client,
            self._lookup_wanted,
            self._look_all_up,
            remains=lambda: bool(self._buffer.lookups),
            give_up=self._park_unknown,
        )

    async def _look_all_up(self) -> None:
        await self._find_leaders()
        await self._find_offsets()
        unvalidated = [held for held in self._buffer.lookups.values() if held.needs_validation]
        await validate_positions(self._client, unvalidated, self._partitions, self)

    async def _find_leaders(self) -> None:
        homeless = [held for held in self._buffer.lookups.values() if held.homeless]
        if not homeless:
            return
        metadata = await self._client.metadata({held.tp.topic for held in homeless}, allow_missing=True)
        for held in homeless:
            topic = metadata.topics.get(held.tp.topic)
            partition = topic.partitions.get(held.tp.partition) if topic else None
            if topic is None or partition is None:
                self._note_missing(held)
                continue
            held.missing_since = None
            if partition.leader == NO_NODE or partition.leader not in metadata.brokers:
                self._client.invalidate_metadata()
                continue
            held.found_leader(partition.leader, partition.leader_epoch, topic.topic_id)
            self._fetch_from(partition.leader)

    def _fetch_from(self, number: int) -> None:
        if number not in self.nodes:
            node = self.nodes[number] = NodeFetch(
                self._client,
                number,
                lane=self.lane,
                settings=self._settings,
                buffer=self._buffer,
                director=self,
                metrics=self.metrics,
            )
            self._spawn(node.run(), f"fetch-node-{number}")

    def _note_missing(self, held: FetchPosition) -> None:
        """A topic just made may show up; one that stays away is the user's to hear of."""
        self._client.invalidate_metadata()
        now = asyncio.get_running_loop().time()
        if held.missing_since is None:
            held.missing_since = now
        elif now - held.missing_since > self._client.missing_topic_wait_ms / 1000:
            held.park(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{held.tp} does not exist"))
            self.ready.set()

    async def _find_offsets(self) -> None:
        unplaced = [held for held in self._buffer.lookups.values() if held.needs_offset and not held.homeless]
        if not unplaced:
            return
        wanted = {held.tp: held.fetch_offset for held in unplaced}
        versions = {held.tp: held.version for held in unplaced}
        found = await list_offsets(self._client, wanted, isolation_level=self._settings.isolation_level)
        for tp, listed in found.items():
            held = self._partitions.get(tp)
            if held is not None and held.version == versions[tp] and held.needs_offset:
                held.found_offset(listed.offset)

    def _park_unknown(self, error: MillstreamError) -> None:
        for held in list(self._buffer.lookups.values()):
            held.park(error)
        self.ready.set()

    # --- positions that cannot be read, or are no more ---

    async def _pass_over(self, held: FetchPosition) -> None:
        """Find out where the log can be read again, and hand out what names the offsets before."""
        version, first = held.version, held.fetch_offset
        try:
            after = await next_readable(self._client, held.tp, held.topic_id, first)
        except MillstreamError as error:
            if held.version == version:
                held.park(error)
        else:
            if held.version != version:
                return
            count = after - first
            empty = memoryview(b"")
            held.passed_over(Fetched(held.tp, first, after, empty, record_count=count, damage=DAMAGE))
        self.ready.set()

    async def _report_out_of_range(self, held: FetchPosition) -> None:
        """Find out how far the position is off, then let `fetch` raise it."""
        version = held.version
        start, end = await self._log_range(held)
        if held.version == version:
            held.park(
                OffsetOutOfRange(
                    message=f"{held.tp}: offset {held.fetch_offset}, the log has {start} to {end}",
                    topic=held.tp.topic,
                    partition=held.tp.partition,
                    offset=held.fetch_offset,
                    start=start,
                    end=end,
                )
            )
            self.ready.set()

    async def _report_truncated(
        self, held: FetchPosition, diverging_offset: int, diverging_epoch: int
    ) -> None:
        version = held.version
        start, end = await self._log_range(held)
        if held.version == version:
            held.park(
                LogTruncated(
                    message=_truncated(held, diverging_offset),
                    topic=held.tp.topic,
                    partition=held.tp.partition,
                    offset=held.fetch_offset,
                    start=start,
                    end=end,
                    leader_epoch=held.fetch_epoch,
                    diverging_offset=diverging_offset,
                    diverging_epoch=diverging_epoch,
                )
            )
            self.ready.set()

    async def _log_range(self, held: FetchPosition) -> tuple[int, int]:
        """The log's start and end now, -1 for what is not known."""
        start = end = -1
        try:
            start = (await list_offsets(self._client, {held.tp: EARLIEST}))[held.tp].offset
            end = (await list_offsets(self._client, {held.tp: LATEST}))[held.tp].offset
        except MillstreamError:
            pass
        return start, end


def _truncated(held: FetchPosition, diverging_offset: int) -> str:
    where = f"from offset {diverging_offset} on" if diverging_offset >= 0 else "nobody knows from where on"
    return (
        f"{held.tp}: the log was truncated, {where}; it was read up to {held.fetch_offset}, "
        f"in leader epoch {held.fetch_epoch}"
    )
