"""Long-polling one broker for the partitions it leads."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from logd.client.cluster.cluster import Client, is_retriable
from logd.client.cluster.metadata import NO_NODE
from logd.client.cluster.versions import highest_common
from logd.client.fetcher.buffer import FetchBuffer
from logd.client.fetcher.fetched import Fetched, owned, whole_batches
from logd.client.fetcher.offsets import ISOLATION, IsolationLevel
from logd.client.fetcher.position import FetchPosition
from logd.errors import ErrorCode, MillstreamError, OffsetOutOfRange, StaleMetadata, error_for
from logd.topic_partition import TopicPartition
from logd.wire import decode_response_header, encode_request
from logd.wire.fetched import PartitionRecords, decode_fetch_response
from logd.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

HELD_BACK_WAIT_MS = 50
"""How long a broker may wait for data while partitions of it are left out because their buffer is full:
once that is processed they shall not wait for a quiet partition's long poll."""

_OTHER_TOPIC = (ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
"""The topic was made again under another id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """What is asked of every broker; see `BatchFetcher`."""

    isolation_level: IsolationLevel
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int


class FetchDirector(Protocol):
    """Takes what a broker's answers mean for a partition."""

    def made_ready(self) -> None:
        """Something can be handed out, or raised."""

    def look_up(self) -> None:
        """A partition lost its leader."""

    def out_of_range(self, held: FetchPosition) -> None:
        """The broker has no such offset: look up where to go on, or what to say."""

    def diverged(self, held: FetchPosition, epoch: int, end_offset: int) -> None:
        """The leader's log is not the one that was read: `epoch`, the last of ours it has, ends there."""


class NodeFetch:
    """Asks one broker again and again, one request at a time, while there is room in the buffer.

    Partitions stand in a row, and one that got data goes to its end, since a broker fills an answer in the
    order it was asked.
    """

    def __init__(
        self,
        client: Client,
        node: int,
        *,
        lane: str,
        settings: FetchSettings,
        buffer: FetchBuffer,
        director: FetchDirector,
    ) -> None:
        self.requests_sent = 0
        self._client = client
        self._node = node
        self._lane = lane
        self._settings = settings
        self._buffer = buffer
        self._director = director
        self._woken = asyncio.Event()
        self._backoff = client.backoff()
        self._served: dict[TopicPartition, int] = {}
        self._turn = 0
        self._held_back = False
        self._retry_at = 0.0

    def wake(self) -> None:
        """Something changed: look again for partitions to ask for."""
        self._woken.set()

    async def run(self) -> None:
        """Fetch for ever."""
        while True:
            self._woken.clear()
            wanted = self._choose()
            room = self._room(len(wanted))
            if room <= 0:
                await self._wait()
                continue
            self._buffer.reserved_bytes += room
            try:
                await self._fetch(wanted, room)
            except MillstreamError as error:
                self._failed(wanted, error)
            finally:
                self._buffer.reserved_bytes -= room

    def _room(self, partition_count: int) -> int:
        """Bytes to ask for now."""
        if not partition_count:
            return 0
        settings = self._settings
        most = min(settings.fetch_max_bytes, partition_count * settings.max_partition_fetch_bytes)
        return min(self._buffer.free_bytes(), most)

    def _choose(self) -> list[FetchPosition]:
        partitions = self._buffer.partitions
        now = asyncio.get_running_loop().time()
        share = max(
            self._settings.max_partition_fetch_bytes, self._buffer.max_bytes // max(len(partitions), 1)
        )
        chosen = []
        self._held_back, self._retry_at = False, 0.0
        for held in partitions.values():
            if (
                held.node != self._node
                or held.paused
                or held.parked
                or held.unvalidated
                or held.fetch_offset < 0
            ):
                continue
            if held.not_before > now:
                self._retry_at = min(self._retry_at or held.not_before, held.not_before)
            elif held.buffered_bytes >= share:
                self._held_back = True
            else:
                chosen.append(held)
        chosen.sort(key=lambda held: self._served.get(held.tp, 0))
        return chosen

    async def _wait(self) -> None:
        pause = self._retry_at - asyncio.get_running_loop().time() if self._retry_at else None
        try:
            await asyncio.wait_for(self._woken.wait(), pause)
        except TimeoutError:
            pass

    async def _fetch(self, wanted: list[FetchPosition], room: int) -> None:
        connection = await self._client.connection(self._node, lane=self._lane)
        version = highest_common(
            FetchRequest.API_KEY, FetchRequest.VERSIONS, connection.versions, connection.name
        )
        asked = {held.tp: held.version for held in wanted}
        request = self._request(wanted, room)
        by_id = {held.topic_id: held.tp.topic for held in wanted}
        timeout_ms = self._settings.fetch_max_wait_ms + self._client.request_timeout_ms
        self.requests_sent += 1
        payload = await connection.call(
            lambda correlation_id: encode_request(request, version, correlation_id, self._client.client_id),
            timeout=timeout_ms / 1000,
        )
        _, pos = decode_response_header(FetchRequest.API_KEY, version, payload)
        response = decode_fetch_response(payload, version, pos)
        if response.throttle_time_ms:
            connection.throttle(response.throttle_time_ms)
        if response.error_code:
            raise error_for(response.error_code, f"Fetch from {connection.name}")
        failed = False
        for topic, partitions in response.topics:
            name = topic if isinstance(topic, str) else by_id.get(topic, "")
            for came in partitions:
                tp = TopicPartition(name, came.partition)
                held = self._buffer.partitions.get(tp)
                if held is None or held.version != asked.get(tp):
                    continue  # Sought or taken away since: what came is of no use any more.
                if came.error_code:
                    failed = True
                    self._refused(held, came.error_code)
                elif came.diverging_end_offset >= 0:
                    self._director.diverged(held, came.diverging_epoch, came.diverging_end_offset)
                else:
                    self._store(held, came)
        if not failed:
            self._backoff.reset()

    def _request(self, wanted: list[FetchPosition], room: int) -> FetchRequest:
        settings = self._settings
        topics: dict[str, FetchTopic] = {}
        for held in wanted:
            name = held.tp.topic
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchTopic(topic=name, topic_id=held.topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=held.tp.partition,
                    current_leader_epoch=held.leader_epoch,
                    fetch_offset=held.fetch_offset,
                    last_fetched_epoch=held.fetch_epoch,
                    partition_max_bytes=settings.max_partition_fetch_bytes,
                )
            )
        wait_ms = settings.fetch_max_wait_ms
        return FetchRequest(
            max_wait_ms=min(wait_ms, HELD_BACK_WAIT_MS) if self._held_back else wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=room,
            isolation_level=ISOLATION[settings.isolation_level],
            topics=list(topics.values()),
        )

    def _store(self, held: FetchPosition, came: PartitionRecords) -> None:
        found = whole_batches(came.records)
        if not found.size:
            if len(came.records):
                error = f"{held.tp}: {len(came.records)} bytes at {held.fetch_offset} hold no whole batch"
                held.park(error_for(ErrorCode.MESSAGE_TOO_LARGE, error))
                self._director.made_ready()
            return
        self._turn += 1
        self._served[held.tp] = self._turn
        held.put(
            Fetched(
                held.tp,
                held.fetch_offset,
                found.next_offset,
                owned(came.records[: found.size]),
                record_count=found.record_count,
                leader_epoch=found.leader_epoch,
                high_watermark=came.high_watermark,
                last_stable_offset=came.last_stable_offset,
                log_start_offset=came.log_start_offset,
                aborted=tuple(came.aborted),
                topic_id=held.topic_id,
                committed_only=self._settings.isolation_level == "read_committed",
            )
        )
        if not held.paused:
            self._director.made_ready()

    def _refused(self, held: FetchPosition, code: int) -> None:
        """One partition's error."""
        error = error_for(code, f"fetching {held.tp} at {held.fetch_offset}")
        if isinstance(error, OffsetOutOfRange):
            self._director.out_of_range(held)
            return
        if not is_retriable(error):
            held.park(error)
            self._director.made_ready()
            return
        held.not_before = asyncio.get_running_loop().time() + self._backoff.next()
        if isinstance(error, StaleMetadata) or error.code in _OTHER_TOPIC:
            self._lose(held)

    def _failed(self, wanted: list[FetchPosition], error: MillstreamError) -> None:
        """The whole request failed."""
        retry_at = asyncio.get_running_loop().time() + self._backoff.next()
        for held in wanted:
            if self._buffer.partitions.get(held.tp) is not held:
                continue
            if is_retriable(error):
                held.not_before = retry_at
                self._lose(held)
            else:
                held.park(error)
                self._director.made_ready()

    def _lose(self, held: FetchPosition) -> None:
        held.node = NO_NODE
        self._client.invalidate_metadata()
        self._director.look_up()
