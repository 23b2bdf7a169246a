"""Long-polling one broker for the partitions it leads."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from kafka_client.cluster.cluster import Client, is_retriable
from kafka_client.cluster.connection import Connection
from kafka_client.cluster.metadata import NO_NODE
from kafka_client.cluster.versions import highest_common
from kafka_client.errors import ErrorCode, MillstreamError, OffsetOutOfRange, StaleMetadata, error_for
from kafka_client.fetcher.buffer import FetchBuffer
from kafka_client.fetcher.fetch_metrics import FetchMetrics
from kafka_client.fetcher.fetched import Fetched, owned, whole_batches
from kafka_client.fetcher.offsets import ISOLATION, IsolationLevel
from kafka_client.fetcher.position import FetchPosition
from kafka_client.fetcher.requested_partitions import WantedPartitions
from kafka_client.fetcher.session import CLOSING_EPOCH, NO_SESSION, FetchSession
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import decode_response_header, encode_request
from kafka_client.wire.fetch import TOPIC_IDS
from kafka_client.wire.fetched import FetchedResponse, PartitionRecords, decode_fetch_response
from kafka_client.wire.messages.fetch import FetchRequest

HELD_BACK_WAIT_MS = 50
"""How long a broker may wait for data while partitions of it are left out because their buffer is full:
once that is processed they shall not wait for a quiet partition's long poll."""

_OTHER_TOPIC = (ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
"""The topic was made again under another id."""
_NO_SUCH_SESSION = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """What is asked of every broker; see `BatchFetcher`."""

    isolation_level: IsolationLevel
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    client_rack: str
    fetch_sessions: bool


class FetchDirector(Protocol):
    """Takes what a broker's answers mean for a partition."""

    def made_ready(self) -> None:
        """Something can be handed out, or raised."""

    def look_up(self) -> None:
        """A partition lost its leader."""

    def out_of_range(self, held: FetchPosition) -> None:
        """The broker has no such offset: look up where to go on, or what to say."""

    def unreadable(self, held: FetchPosition) -> None:
        """The broker cannot read its log at this offset: find the next one it can read."""

    def diverged(self, held: FetchPosition, epoch: int, end_offset: int) -> None:
        """The leader's log is not the one that was read: `epoch`, the last of ours it has, ends there."""

    def prefers(self, held: FetchPosition, replica: int) -> bool:
        """The leader would have the partition fetched from this replica; whether that can be done."""


class NodeFetch:
    """Asks one broker again and again, one request at a time, while there is room in the buffer.

    What a turn costs goes by the partitions that changed or are answered for, not by how many there are,
    unless the broker keeps no sessions.
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
        metrics: FetchMetrics,
    ) -> None:
        self._client = client
        self._node = node
        self._lane = lane
        self._settings = settings
        self._buffer = buffer
        self._director = director
        self._metrics = metrics
        self._woken = asyncio.Event()
        self._backoff = client.backoff()
        self._wanted = WantedPartitions(node, buffer, settings.max_partition_fetch_bytes)
        self._session: FetchSession[FetchPosition] = FetchSession(
            is_wanted=settings.fetch_sessions, partition_max_bytes=settings.max_partition_fetch_bytes
        )
        buffer.watchers[node] = self

    def wake(self) -> None:
        """Something changed: look again for partitions to ask for."""
        self._woken.set()

    def note(self, tp: TopicPartition) -> None:
        """The partition changed, and is or was fetched here."""
        self._wanted.changed[tp] = None
        self._woken.set()

    async def run(self) -> None:
        """Fetch for ever."""
        while True:
            self._woken.clear()
            self._wanted.update(_now())
            room = self._room()
            if room <= 0:
                await self._wait()
                continue
            self._buffer.reserve(room)
            try:
                await self._fetch(room)
            except MillstreamError as error:
                self._failed(error)
            finally:
                self._buffer.release(room)

    async def close(self) -> None:
        """Have the broker drop the session, if it answers; call it when `run` has ended."""
        if self._session.id == NO_SESSION or self._session.is_full:
            return
        request = FetchRequest(session_id=self._session.id, session_epoch=CLOSING_EPOCH)
        try:
            # Not on the lane's connection, where a request may wait for data.
            await self._client.request(request, node=self._node)
        except MillstreamError:
            pass  # A broker drops what is not used.

    # --- asking ---

    def _room(self) -> int:
        """Bytes to ask for now. No broker may ask for so much that others find no room."""
        settings, buffer = self._settings, self._buffer
        wanted = len(self._wanted.partitions)
        if not wanted:
            buffer.asking.discard(self._node)
            return 0
        buffer.asking.add(self._node)
        most = min(settings.fetch_max_bytes, wanted * settings.max_partition_fetch_bytes)
        room = min(most, buffer.free_bytes(), max(buffer.max_bytes // len(buffer.asking), 1))
        if room <= 0:
            buffer.wait_for_room(self.wake)
        return room

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout_at(self._wanted.due_at()):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _fetch(self, room: int) -> None:
        connection = await self._client.connection(self._node, lane=self._lane)
        if self._wanted.changed:  # Connecting took time.
            self._wanted.update(_now())
        if not self._wanted.partitions:
            return
        version = self._version(connection)
        request = self._request(version, room)
        timeout_ms = self._settings.fetch_max_wait_ms + self._client.request_timeout_ms
        self._metrics.requests_sent += 1
        sent_at = _now()
        payload = await connection.call(
            lambda correlation_id: encode_request(request, version, correlation_id, self._client.client_id),
            timeout=timeout_ms / 1000,
        )
        self._metrics.latency.record(_now() - sent_at)
        _, pos = decode_response_header(FetchRequest.API_KEY, version, payload)
        response = decode_fetch_response(payload, version, pos)
        if response.throttle_time_ms:
            connection.throttle(response.throttle_time_ms)
        self._take(response, connection.name)

    def _version(self, connection: Connection) -> int:
        version = highest_common(
            FetchRequest.API_KEY, FetchRequest.VERSIONS, connection.versions, connection.name
        )
        return min(version, TOPIC_IDS - 1) if self._wanted.without_id else version

    def _request(self, version: int, room: int) -> FetchRequest:
        settings, session, wanted = self._settings, self._session, self._wanted
        changes = session.changes(wanted.partitions, wanted.touched, by_topic_ids=version >= TOPIC_IDS)
        wanted.touched.clear()
        wait_ms = settings.fetch_max_wait_ms
        return FetchRequest(
            max_wait_ms=min(wait_ms, HELD_BACK_WAIT_MS) if wanted.held_back else wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=room,
            isolation_level=ISOLATION[settings.isolation_level],
            session_id=session.id,
            session_epoch=session.epoch,
            topics=changes.topics,
            forgotten_topics_data=changes.forgotten,
            rack_id=settings.client_rack,
        )

    # --- hearing ---

    def _take(self, response: FetchedResponse, broker: str) -> None:
        session = self._session
        was_full = session.is_full
        session.answered(response.session_id, response.error_code)
        if response.error_code:
            if response.error_code in _NO_SUCH_SESSION and not was_full:
                return  # Everything is said again at once; nothing was lost.
            raise error_for(response.error_code, f"Fetch from {broker}")
        failed, count, fits = False, 0, True
        for topic, partitions in response.topics:
            for came in partitions:
                asked = session.find(topic, came.partition)
                if asked is None:
                    fits = False
                    continue
                count += 1
                held = asked.held
                if not came.error_code and came.diverging_end_offset < 0:
                    # Also if it was taken away: told only once, they are its successor's.
                    held.heard_ends(came.high_watermark, came.last_stable_offset, came.log_start_offset)
                if self._buffer.partitions.get(held.tp) is not held:
                    continue  # Taken away since.
                if held.version == asked.version:  # Else it was sought since.
                    failed |= self._take_partition(held, came)
        if not fits or (was_full and count != len(session.asked)):
            session.restart()  # The broker's session is not the one that was asked for.
        if not failed:
            self._backoff.reset()

    def _take_partition(self, held: FetchPosition, came: PartitionRecords) -> bool:
        """Take what came of one partition; whether it is an error."""
        if came.error_code:
            self._refused(held, came.error_code)
            return True
        if came.diverging_end_offset >= 0:
            self._director.diverged(held, came.diverging_epoch, came.diverging_end_offset)
            return False
        self._store(held, came)
        replica = came.preferred_read_replica
        if replica not in (NO_NODE, self._node) and not self._director.prefers(held, replica):
            held.back_off(_now() + self._backoff.next())
            self._lose(held)
            return True
        return False

    def _store(self, held: FetchPosition, came: PartitionRecords) -> None:
        found = whole_batches(came.records)
        if not found.size:
            if len(came.records):
                error = f"{held.tp}: {len(came.records)} bytes at {held.fetch_offset} hold no whole batch"
                held.park(error_for(ErrorCode.MESSAGE_TOO_LARGE, error))
                self._director.made_ready()
            return
        self._wanted.served(held.tp)
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
            if held.replica == self._node:
                held.read_from_leader()  # A replica may be behind, or ahead of what is known here.
            else:
                self._director.out_of_range(held)
            return
        if code == ErrorCode.CORRUPT_MESSAGE:
            self._director.unreadable(held)
            return
        if not is_retriable(error):
            held.park(error)
            self._director.made_ready()
            return
        held.back_off(_now() + self._backoff.next())
        if isinstance(error, StaleMetadata) or error.code in _OTHER_TOPIC or held.replica == self._node:
            self._lose(held)

    def _failed(self, error: MillstreamError) -> None:
        """The whole request failed."""
        self._session.restart()
        retry_at = _now() + self._backoff.next()
        for held in list(self._wanted.partitions.values()):
            if self._buffer.partitions.get(held.tp) is not held:
                continue
            if is_retriable(error):
                held.back_off(retry_at)
                self._lose(held)
            else:
                held.park(error)
                self._director.made_ready()

    def _lose(self, held: FetchPosition) -> None:
        held.lose_leader()
        self._client.invalidate_metadata()
        self._director.look_up()


def _now() -> float:
    return asyncio.get_running_loop().time()
