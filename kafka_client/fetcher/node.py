"""The fetch loop of one broker: long polls for the partitions that are fetched from it."""

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
from kafka_client.fetcher.requested_partitions import RequestedPartitions
from kafka_client.fetcher.session import CLOSING_EPOCH, NO_SESSION, FetchSession
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import decode_response_header, encode_request
from kafka_client.wire.fetch import TOPIC_IDS
from kafka_client.wire.fetched import FetchedResponse, PartitionRecords, decode_fetch_response
from kafka_client.wire.messages.fetch import FetchRequest

HELD_BACK_WAIT_MS = 50
"""The longest wait of a broker for data while some of its partitions are left out because their buffer is
full.

Once that buffer is processed, they must not wait for the long poll of other partitions.
"""

_OTHER_TOPIC = (ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
"""The topic was created again with another id."""
_NO_SUCH_SESSION = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """The settings of fetch requests; see `BatchFetcher`."""

    isolation_level: IsolationLevel
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    client_rack: str
    fetch_sessions: bool


class FetchDirector(Protocol):
    """The receiver of what a broker's responses mean for a partition."""

    def made_ready(self) -> None:
        """Wake `fetch`: batches can be returned, or an error raised."""

    def look_up(self) -> None:
        """Start a lookup: a partition lost its leader."""

    def out_of_range(self, position: FetchPosition) -> None:
        """Look up where to continue, or the error to raise: the broker does not have the offset."""

    def unreadable(self, position: FetchPosition) -> None:
        """Look up the next readable offset: the broker cannot read its log at this one."""

    def diverged(self, position: FetchPosition, epoch: int, end_offset: int) -> None:
        """Handle a leader's log that diverges: it has `epoch`, the last common one, up to `end_offset`."""

    def prefers(self, position: FetchPosition, replica: int) -> bool:
        """Fetch a partition from the replica that its leader prefers; return False if that is not
        possible.
        """


class NodeFetch:
    """Sends fetch requests to one broker, one at a time, while there is room in the buffer.

    The cost of a request depends on the partitions that changed or have records, not on their total number,
    unless the broker has no sessions.
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
        self._pending = RequestedPartitions(node, buffer, settings.max_partition_fetch_bytes)
        self._session: FetchSession[FetchPosition] = FetchSession(
            is_wanted=settings.fetch_sessions, partition_max_bytes=settings.max_partition_fetch_bytes
        )
        buffer.watchers[node] = self

    def wake(self) -> None:
        """Check again which partitions to request: something has changed."""
        self._woken.set()

    def note(self, tp: TopicPartition) -> None:
        """Note that a partition which is or was fetched here has changed."""
        self._pending.changed[tp] = None
        self._woken.set()

    async def run(self) -> None:
        """Fetch for ever."""
        while True:
            self._woken.clear()
            self._pending.update(_now())
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
        """Have the broker drop the session, if it answers; call it after `run` has ended."""
        if self._session.id == NO_SESSION or self._session.is_full:
            return
        request = FetchRequest(session_id=self._session.id, session_epoch=CLOSING_EPOCH)
        try:
            # Not on the lane's connection, where a request may wait for data.
            await self._client.request(request, node=self._node)
        except MillstreamError:
            pass  # The broker drops unused sessions.

    # --- requests ---

    def _room(self) -> int:
        """Return the bytes to request now: no broker may take so many that others get none."""
        settings, buffer = self._settings, self._buffer
        count = len(self._pending.partitions)
        if not count:
            buffer.asking.discard(self._node)
            return 0
        buffer.asking.add(self._node)
        most = min(settings.fetch_max_bytes, count * settings.max_partition_fetch_bytes)
        room = min(most, buffer.free_bytes(), max(buffer.max_bytes // len(buffer.asking), 1))
        if room <= 0:
            buffer.wait_for_room(self.wake)
        return room

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout_at(self._pending.due_at()):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _fetch(self, room: int) -> None:
        connection = await self._client.connection(self._node, lane=self._lane)
        if self._pending.changed:  # Connecting took time.
            self._pending.update(_now())
        if not self._pending.partitions:
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
        return min(version, TOPIC_IDS - 1) if self._pending.without_id else version

    def _request(self, version: int, room: int) -> FetchRequest:
        settings, session, pending = self._settings, self._session, self._pending
        changes = session.changes(pending.partitions, pending.touched, by_topic_ids=version >= TOPIC_IDS)
        pending.touched.clear()
        wait_ms = settings.fetch_max_wait_ms
        return FetchRequest(
            max_wait_ms=min(wait_ms, HELD_BACK_WAIT_MS) if pending.held_back else wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=room,
            isolation_level=ISOLATION[settings.isolation_level],
            session_id=session.id,
            session_epoch=session.epoch,
            topics=changes.topics,
            forgotten_topics_data=changes.forgotten,
            rack_id=settings.client_rack,
        )

    # --- responses ---

    def _take(self, response: FetchedResponse, broker: str) -> None:
        session = self._session
        was_full = session.is_full
        session.answered(response.session_id, response.error_code)
        if response.error_code:
            if response.error_code in _NO_SUCH_SESSION and not was_full:
                return  # The next request names everything; nothing was lost.
            raise error_for(response.error_code, f"Fetch from {broker}")
        failed, count, fits = False, 0, True
        for topic, partitions in response.topics:
            for answer in partitions:
                requested = session.find(topic, answer.partition)
                if requested is None:
                    fits = False
                    continue
                count += 1
                position = requested.position
                if not answer.error_code and answer.diverging_end_offset < 0:
                    # Also if it was removed: they are sent only once, and its successor needs them.
                    position.heard_ends(
                        answer.high_watermark, answer.last_stable_offset, answer.log_start_offset
                    )
                if self._buffer.partitions.get(position.tp) is not position:
                    continue  # Removed meanwhile.
                if position.version == requested.version:  # Else there was a seek meanwhile.
                    failed |= self._take_partition(position, answer)
        if not fits or (was_full and count != len(session.requested)):
            session.restart()  # The broker's session differs from the requested one.
        if not failed:
            self._backoff.reset()

    def _take_partition(self, position: FetchPosition, answer: PartitionRecords) -> bool:
        """Handle one partition's response. Return True if it is an error."""
        if answer.error_code:
            self._refused(position, answer.error_code)
            return True
        if answer.diverging_end_offset >= 0:
            self._director.diverged(position, answer.diverging_epoch, answer.diverging_end_offset)
            return False
        self._store(position, answer)
        replica = answer.preferred_read_replica
        if replica not in (NO_NODE, self._node) and not self._director.prefers(position, replica):
            position.back_off(_now() + self._backoff.next())
            self._lose(position)
            return True
        return False

    def _store(self, position: FetchPosition, answer: PartitionRecords) -> None:
        measured = whole_batches(answer.records)
        if not measured.size:
            if len(answer.records):
                size, offset = len(answer.records), position.fetch_offset
                error = f"{position.tp}: {size} bytes at {offset} hold no whole batch"
                position.park(error_for(ErrorCode.MESSAGE_TOO_LARGE, error))
                self._director.made_ready()
            return
        self._pending.served(position.tp)
        position.put(
            Fetched(
                position.tp,
                position.fetch_offset,
                measured.next_offset,
                owned(answer.records[: measured.size]),
                record_count=measured.record_count,
                leader_epoch=measured.leader_epoch,
                high_watermark=answer.high_watermark,
                last_stable_offset=answer.last_stable_offset,
                log_start_offset=answer.log_start_offset,
                aborted=tuple(answer.aborted),
                topic_id=position.topic_id,
                committed_only=self._settings.isolation_level == "read_committed",
            )
        )
        if not position.paused:
            self._director.made_ready()

    def _refused(self, position: FetchPosition, code: int) -> None:
        """Handle one partition's error."""
        error = error_for(code, f"fetching {position.tp} at {position.fetch_offset}")
        if isinstance(error, OffsetOutOfRange):
            if position.replica == self._node:
                position.read_from_leader()  # A replica may be behind, or ahead of the high watermark here.
            else:
                self._director.out_of_range(position)
            return
        if code == ErrorCode.CORRUPT_MESSAGE:
            self._director.unreadable(position)
            return
        if not is_retriable(error):
            position.park(error)
            self._director.made_ready()
            return
        position.back_off(_now() + self._backoff.next())
        if isinstance(error, StaleMetadata) or error.code in _OTHER_TOPIC or position.replica == self._node:
            self._lose(position)

    def _failed(self, error: MillstreamError) -> None:
        """Handle the failure of a whole request."""
        self._session.restart()
        retry_at = _now() + self._backoff.next()
        for position in list(self._pending.partitions.values()):
            if self._buffer.partitions.get(position.tp) is not position:
                continue
            if is_retriable(error):
                position.back_off(retry_at)
                self._lose(position)
            else:
                position.park(error)
                self._director.made_ready()

    def _lose(self, position: FetchPosition) -> None:
        position.lose_leader()
        self._client.invalidate_metadata()
        self._director.look_up()


def _now() -> float:
    return asyncio.get_running_loop().time()
