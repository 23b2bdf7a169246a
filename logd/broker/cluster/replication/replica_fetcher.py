"""Copying partitions from one broker that leads them, by a fetch session of its own (KIP-227).

What a turn costs goes by the partitions that changed or came, not by how many are followed. What is to be
done with an answer `logd.replication.Follower` decides; how a log is cut is `truncation`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Protocol

from kafka_client.backoff import Backoff
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError, error_for
from kafka_client.fetcher.session import NO_SESSION, FetchSession
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message, decode_response_header, encode_request
from kafka_client.wire.fetched import FetchedResponse, PartitionRecords, decode_fetch_response
from kafka_client.wire.messages.fetch import FetchRequest, ReplicaState
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from logd.broker.cluster.peer_connections import version_of
from logd.broker.cluster.replication.followed_partition import FollowedPartition
from logd.broker.cluster.replication.replication_quota import ReplicationQuota
from logd.broker.partition.partition import Partition
from logd.broker.work.periodic import report
from logd.config.replication import ReplicationConfig
from logd.replication import Fetch, Standby, Truncate

if TYPE_CHECKING:
    from kafka_client.cluster.connection import Connection
    from logd.storage import Deletion

EARLIEST_LOCAL, LATEST = -4, -1
"""Timestamps that ask ListOffsets for where a log begins and ends."""
FIRST_BACKOFF_S = 0.05
"""Beyond it up to replica.fetch.backoff.ms."""
THROTTLED_S = 0.1
"""For how long what is throttled is not asked for, before it is looked again."""
_BASE_OFFSET_BYTES = 8
_NO_SUCH_SESSION = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)

log = logging.getLogger("logd.replication")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherSettings:
    """Kafka's, by their names."""

    replica_fetch_max_bytes: int = 1024 * 1024
    replica_fetch_response_max_bytes: int = 10 * 1024 * 1024
    replica_fetch_min_bytes: int = 1
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_backoff_ms: int = 1000
    replica_socket_timeout_ms: int = 30_000

    @classmethod
    def of(cls, config: ReplicationConfig) -> FetcherSettings:
        """Return the settings from a broker's configuration."""
        return cls(
            replica_fetch_max_bytes=config.replica_fetch_max_bytes,
            replica_fetch_response_max_bytes=config.replica_fetch_response_max_bytes,
            replica_fetch_min_bytes=config.replica_fetch_min_bytes,
            replica_fetch_wait_max_ms=config.replica_fetch_wait_max_ms,
            replica_fetch_backoff_ms=config.replica_fetch_backoff_ms,
            replica_socket_timeout_ms=config.replica_socket_timeout_ms,
        )


class Asking(Protocol):
    """Connections to brokers: `PeerConnections`."""

    async def request(self, broker: int, message: Message, *, lane: str = "") -> ListOffsetsResponse:
        """Ask a broker; MillstreamError."""

    async def connection(self, broker: int, lane: str = "") -> Connection:
        """Return a connection to the broker. Raises MillstreamError."""


class Truncating(Protocol):
    """Cuts logs: `truncation.Truncations`. KafkaError."""

    async def truncate(self, partition: Partition, offset: int) -> None: ...

    async def begin_afresh(self, partition: Partition, offset: int) -> None: ...

    async def note_removals(self, partition: Partition, offset: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchingBroker:
    """The broker that follows: its id and epoch (KIP-903), and its means to change its logs."""

    node_id: int
    broker_epoch: Callable[[], int]
    truncations: Truncating
    discard: Callable[[Sequence[Deletion]], None]
    """Deletes files of segments."""
    now_ms: Callable[[], int]


class ReplicaFetcher:
    """The fetcher of the partitions that broker `leader` leads; `follower` is this broker.

    `peers` are the connections to other brokers. `quota` limits the copying of throttled partitions.
    """

    def __init__(
        self,
        leader: int,
        *,
        follower: FetchingBroker,
        peers: Asking,
        settings: FetcherSettings,
        quota: ReplicationQuota | None = None,
    ) -> None:
        self.leader = leader
        self._quota = quota
        self.following: dict[TopicPartition, FollowedPartition] = {}
        self._follower = follower
        self._peers = peers
        self._settings = settings
        self._lane = f"fetch-{leader}"
        self._session: FetchSession[FollowedPartition] = FetchSession(
            is_wanted=True, partition_max_bytes=settings.replica_fetch_max_bytes
        )
        self._asked_as = -1
        """The broker epoch that the session began with."""
        self._assigned: dict[TopicPartition, FollowedPartition] = {}
        self._touched: dict[TopicPartition, None] = {}
        self._due: list[tuple[float, TopicPartition]] = []
        self._busy: dict[TopicPartition, asyncio.Task[None]] = {}
        """Partitions that are being truncated, or whose leader is asked for its offsets."""
        self._asking: set[TopicPartition] = set()
        """The latter: an answer that nobody needs any more is not waited for."""
        self._news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    # From outside

    def follow(self, following: FollowedPartition) -> None:
        """Copy this one, in place of another of the same partition."""
        self.following[following.tp] = following
        if self._task is None:
            self._task = self._loop.create_task(self._run(), name=f"fetcher from broker {self.leader}")
        self._look_at(following.tp)

    def unfollow(self, tp: TopicPartition) -> None:
        """Copy it no more; what is being cut of it is cut to the end."""
        self.following.pop(tp, None)
        if tp in self._asking:
            self._busy[tp].cancel()
        self._look_at(tp)

    async def rest(self, tp: TopicPartition) -> None:
        """Wait until nothing is being cut of the partition."""
        task = self._busy.get(tp)
        if task is not None:
            await asyncio.wait([task])

    async def stop(self) -> None:
        """Copy nothing any more; returns when nothing is under way."""
        self.following.clear()
        if self._task is not None:
            self._task.cancel()
            for tp in self._asking:
                self._busy[tp].cancel()
            await asyncio.gather(self._task, *self._busy.values(), return_exceptions=True)

    def statistics(self) -> dict[str, int]:
        """Return the counts of partitions that are followed, and of those in the requests."""
        return {"partitions": len(self.following), "fetched": len(self._assigned)}

    # Turns

    async def _run(self) -> None:
        backoff = Backoff(FIRST_BACKOFF_S, self._settings.replica_fetch_backoff_ms / 1000)
        last_error = ""
        while True:
            try:
                await self._turn()
                backoff.reset()
                last_error = ""
            except MillstreamError as error:
                if str(error) != last_error:  # a broker may be away for days
                    last_error = str(error)
                    log.info("fetching from broker %d: %s", self.leader, last_error)
                self._session.restart()
                await asyncio.sleep(backoff.next())
            except Exception as error:
                report(f"fetching from broker {self.leader}", error)
                self._session.restart()
                await asyncio.sleep(backoff.next())

    async def _turn(self) -> None:
        self._news.clear()
        now = self._loop.time()
        while self._due and self._due[0][0] <= now:
            self._look_at(heappop(self._due)[1])
        if self._quota is not None and self._quota.is_exceeded:
            self._hold_back(self._quota)
        if self._assigned:
            await self._fetch()
            return
        try:
            wait_s = self._due[0][0] - now if self._due else None
            async with asyncio.timeout(wait_s):
                await self._news.wait()
        except TimeoutError:
            pass

    def _hold_back(self, quota: ReplicationQuota) -> None:
        """Ask for nothing of what is throttled, unless it is in sync."""
        again = self._loop.time() + THROTTLED_S
        for tp, following in tuple(self._assigned.items()):
            throttled = following.partition.config.follower_replication_throttled_replicas
            if following.is_behind and quota.covers(throttled, tp.partition):
                following.not_before = again
                self._look_at(tp)

    def _look_at(self, tp: TopicPartition) -> None:
        """Schedule the partition's next step: a fetch, or what has to happen first."""
        following = self.following.get(tp)
        self._touched[tp] = None
        self._news.set()
        if following is None or tp in self._busy:
            self._assigned.pop(tp, None)
            return
        if following.not_before > self._loop.time():
            self._assigned.pop(tp, None)
            heappush(self._due, (following.not_before, tp))
            return
        match following.next:
            case Fetch():
                self._assigned[tp] = following
                return
            case Truncate() as truncate:
                self._begin(following, partial(self._cut, following, truncate))
            case Standby.LEADER_OFFSETS:
                self._asking.add(tp)
                self._begin(following, partial(self._ask_offsets, following))
            case Standby.IMAGE:
                pass  # a new one is followed when it comes
        self._assigned.pop(tp, None)

    def _begin(self, following: FollowedPartition, work: Callable[[], Awaitable[None]]) -> None:
        """Have something done for one partition, and look what comes next."""
        self._assigned.pop(following.tp, None)
        self._touched[following.tp] = None
        task = self._busy[following.tp] = self._loop.create_task(self._do(following, work))
        task.add_done_callback(lambda _: self._done(following))

    async def _do(self, following: FollowedPartition, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except MillstreamError as error:
            log.info("%s: %s", following.tp, error)
            self._back_off(following)
        except Exception as error:
            report(f"following {following.tp}", error)
            self._back_off(following)

    def _done(self, following: FollowedPartition) -> None:
        following.version += 1
        del self._busy[following.tp]
        self._asking.discard(following.tp)
        self._look_at(following.tp)

    def _back_off(self, following: FollowedPartition) -> None:
        """Leave it alone for a moment, longer each time: a leader often hears later of its election than
        those who are to follow it, and then records wait for them.
        """
        pause = Backoff(FIRST_BACKOFF_S, self._settings.replica_fetch_backoff_ms / 1000)
        pause.failures = following.failures
        following.failures += 1
        following.not_before = self._loop.time() + pause.next()

    async def _cut(self, following: FollowedPartition, truncate: Truncate) -> None:
        if truncate.fully:
            await self._follower.truncations.begin_afresh(following.partition, truncate.offset)
        else:
            await self._follower.truncations.truncate(following.partition, truncate.offset)
        if truncate.misses_removals:
            log.warning(
                "%s begins anew at %d: broker %d had compacted away deletions or transaction markers before "
                "%d, which this replica had not copied",
                following.tp,
                truncate.offset,
                self.leader,
                following.partition.log.removal_offset,
            )
        if following.core.truncated() and not truncate.misses_removals:
            log.error(
                "%s was truncated to %d, below what was committed: broker %d was elected uncleanly",
                following.tp,
                following.partition.log_end_offset,
                self.leader,
            )
        following.partition.advance_high_watermark()

    async def _ask_offsets(self, following: FollowedPartition) -> None:
        start = await self._offset(following, EARLIEST_LOCAL)
        end = await self._offset(following, LATEST)
        following.core.leader_offsets(start, end)

    async def _offset(self, following: FollowedPartition, timestamp: int) -> int:
        question = ListOffsetsPartition(
            partition_index=following.tp.partition,
            current_leader_epoch=following.leader_epoch,
            timestamp=timestamp,
        )
        request = ListOffsetsRequest(
            replica_id=self._follower.node_id,
            topics=[ListOffsetsTopic(name=following.tp.topic, partitions=[question])],
        )
        response = await self._peers.request(self.leader, request)
        (answer,) = (partition for topic in response.topics for partition in topic.partitions)
        if answer.error_code:
            raise error_for(answer.error_code, f"offsets of {following.tp} from broker {self.leader}")
        return answer.offset

    # Fetching

    async def _fetch(self) -> None:
        connection = await self._peers.connection(self.leader, self._lane)
        version = version_of(FetchRequest, connection)
        request = self._request()
        settings = self._settings
        payload = await connection.call(
            lambda correlation_id: encode_request(
                request, version, correlation_id, f"broker-{self._follower.node_id}-fetcher"
            ),
            timeout=(settings.replica_fetch_wait_max_ms + settings.replica_socket_timeout_ms) / 1000,
        )
        _, pos = decode_response_header(FetchRequest.API_KEY, version, payload)
        self._take(decode_fetch_response(payload, version, pos))
        connection.give_back(payload)  # all of it is in the logs

    def _request(self) -> FetchRequest:
        settings, session = self._settings, self._session
        broker_epoch = self._follower.broker_epoch()
        if broker_epoch != self._asked_as:
            # The leader counts only what this registration says, also of partitions that do not change.
            session.restart()
            self._asked_as = broker_epoch
        touched, self._touched = self._touched, {}
        changes = session.changes(self._assigned, touched, by_topic_ids=True)
        return FetchRequest(
            replica_state=ReplicaState(replica_id=self._follower.node_id, replica_epoch=broker_epoch),
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=session.id,
            session_epoch=session.epoch,
            topics=changes.topics,
            forgotten_topics_data=changes.forgotten,
        )

    def _take(self, response: FetchedResponse) -> None:
        session = self._session
        was_full = session.is_full
        session.answered(response.session_id, response.error_code)
        if response.error_code:
            if response.error_code in _NO_SUCH_SESSION and not was_full:
                return  # everything is said again at once
            raise error_for(response.error_code, f"Fetch from broker {self.leader}")
        count, fits = 0, True
        for topic, partitions in response.topics:
            for partition_response in partitions:
                requested = session.find(topic, partition_response.partition)
                if requested is None:
                    fits = False
                    continue
                count += 1
                following = requested.position
                if self.following.get(following.tp) is following and following.version == requested.version:
                    fetch = Fetch(requested.fetch_offset, requested.fetch_epoch, requested.leader_epoch)
                    self._take_partition(following, fetch, partition_response)
        if not fits or (was_full and count != len(session.requested)):
            session.restart()  # the leader's session is not the one that was asked for
        if response.session_id == NO_SESSION and not was_full:
            session.restart()

    def _take_partition(
        self, following: FollowedPartition, requested: Fetch, response: PartitionRecords
    ) -> None:
        diverging = None
        if response.diverging_end_offset >= 0:
            diverging = response.diverging_epoch, response.diverging_end_offset
        if response.removal_offset > following.partition.log.removal_offset:
            # Before anything is copied: who fetches from this replica one day is told the same.
            self._session.repeat(following.tp)
            work = partial(
                self._follower.truncations.note_removals, following.partition, response.removal_offset
            )
            return self._begin(following, work)
        if response.error_code or diverging is not None:
            # A leader counts what is said: it has not counted this, and would hear no more of it in silence.
            self._session.repeat(following.tp)
        try:
            if following.core.answered(requested, response.error_code, diverging):
                self._copy(following, response)
            elif following.next == requested:
                self._back_off(following)
        except KafkaError as error:
            log.warning("%s: %s", following.tp, error)
            self._back_off(following)
        if following.next != requested or following.not_before:
            self._look_at(following.tp)

    def _copy(self, following: FollowedPartition, response: PartitionRecords) -> None:
        partition, core, records = following.partition, following.core, response.records
        if len(records) > _BASE_OFFSET_BYTES:
            base_offset = int.from_bytes(records[:_BASE_OFFSET_BYTES], "big")
            first = core.check_base_offset(base_offset, response.log_start_offset)
            if first is not None:
                self._begin(
                    following, partial(self._follower.truncations.begin_afresh, partition, first.offset)
                )
                return
            copied = partition.copy(records, self._follower.now_ms())
            if not copied.batches:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"broker {self.leader} sent {len(records)} bytes that hold no whole batch",
                )
        following.not_before = 0.0
        following.failures = 0
        following.lag = max(0, response.high_watermark - partition.log_end_offset)
        following.is_behind = following.lag > 0
        if self._quota is not None and self._quota.is_set:
            throttled = partition.config.follower_replication_throttled_replicas
            if self._quota.covers(throttled, partition.index):
                self._quota.record(len(records))
        if core.appended(response.high_watermark):
            partition.advance_high_watermark()
        start = min(response.log_start_offset, partition.high_watermark)
        if start > partition.log_start_offset:
            self._follower.discard(partition.delete_records_before(start))
            self._touched[following.tp] = None  # the leader is to hear of it
