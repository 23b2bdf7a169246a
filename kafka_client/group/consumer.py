"""A consumer: group member and batch fetcher together, by the consumer protocol."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Self

from kafka_client.cluster.cluster import Client, is_retriable
from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.errors import ConfigError, MillstreamError, OffsetOutOfRange
from kafka_client.fetcher.epochs import NO_EPOCH
from kafka_client.fetcher.fetched import Fetched
from kafka_client.fetcher.fetcher import (
    FETCH_BYTES,
    FETCH_RECORDS,
    RESET_OFFSETS,
    BatchFetcher,
    OffsetReset,
)
from kafka_client.fetcher.offsets import IsolationLevel
from kafka_client.group.assignors import COOPERATIVE, Subscription
from kafka_client.group.consumer_protocol import ConsumerProtocol, decode_assignment, partition_counts
from kafka_client.group.coordinator import commit_offsets, fetch_offsets
from kafka_client.group.group import GroupMember
from kafka_client.producer.group_metadata import GroupMetadata
from kafka_client.topic_partition import TopicPartition

PartitionsCallback = Callable[[set[TopicPartition]], Awaitable[None] | None]

_MISSING_TOPIC_CHECK_SECONDS = 1.0


class Consumer:
    """Reads its share of the subscribed topics; positions start at the group's committed offsets.

    `assignors`: names in order of preference of "range", "roundrobin", "cooperative-sticky". Partitions are
    kept during a rebalance only if all of them are cooperative.
    `auto_offset_reset`: where to begin without a committed offset, and to go on when it is outside the log.
    `group_id` None: no group, partitions come by `assign`, and `commit` is not offered.
    `client_rack`: the reader's rack, by which a replica nearby may be read from (KIP-392).
    `topic_check_ms`: how often to look for new partitions, and for topics that match a pattern.

    Nothing is committed by itself. `commit()` commits what `fetch` has handed out of the partitions that are
    assigned at that time, so call it when that is processed.
    """

    def __init__(
        self,
        client: Client,
        group_id: str | None = None,
        *,
        assignors: Sequence[str] = ("range", "cooperative-sticky"),
        auto_offset_reset: OffsetReset = "latest",
        isolation_level: IsolationLevel = "read_uncommitted",
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        rebalance_timeout_ms: int = 300_000,
        group_instance_id: str | None = None,
        fetch_min_bytes: int = 1,
        fetch_max_wait_ms: int = 500,
        fetch_max_bytes: int = 52_428_800,
        max_partition_fetch_bytes: int = 1_048_576,
        buffer_max_bytes: int = 67_108_864,
        client_rack: str = "",
        topic_check_ms: int = 300_000,
    ) -> None:
        self._client = client
        self._group_id = group_id
        self._protocols = [ConsumerProtocol(name, client, self._subscription) for name in assignors]
        self._cooperative = COOPERATIVE.issuperset(assignors)
        self._auto_offset_reset: OffsetReset = auto_offset_reset
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._group_instance_id = group_instance_id
        self._fetcher = BatchFetcher(
            client,
            isolation_level=isolation_level,
            fetch_min_bytes=fetch_min_bytes,
            fetch_max_wait_ms=fetch_max_wait_ms,
            fetch_max_bytes=fetch_max_bytes,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
            buffer_max_bytes=buffer_max_bytes,
            auto_offset_reset=auto_offset_reset,
            client_rack=client_rack,
        )
        self._topic_check = topic_check_ms / 1000
        self._topics: list[str] = []
        self._pattern: re.Pattern[str] | None = None
        self._on_assigned: PartitionsCallback | None = None
        self._on_revoked: PartitionsCallback | None = None
        self._on_lost: PartitionsCallback | None = None
        self._member: GroupMember | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._owned: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._closing = False

    # --- what to read ---

    async def subscribe(
        self,
        topics: Sequence[str] | re.Pattern[str],
        *,
        on_assigned: PartitionsCallback | None = None,
        on_revoked: PartitionsCallback | None = None,
        on_lost: PartitionsCallback | None = None,
    ) -> None:
        """Join the group for these topics, or for every topic whose whole name matches the pattern.

        Callbacks get the partitions added or taken away and may `seek`, `pause`, `commit`; they run in the
        member's task, while nothing of those partitions is handed out. `on_lost` (default: `on_revoked`) gets
        partitions that may be somebody else's already. Returns at once; calling it again changes the
        subscription.
        """
        if self._group_id is None:
            raise ConfigError("group_id", None, "subscribe needs one; use assign without a group")
        self._on_assigned, self._on_revoked, self._on_lost = on_assigned, on_revoked, on_lost or on_revoked
        self._pattern = topics if isinstance(topics, re.Pattern) else None
        self._topics = [] if isinstance(topics, re.Pattern) else sorted(set(topics))
        await self._match_pattern()
        if self._member is not None:
            self._member.request_rejoin()
            return
        self._member = GroupMember(
            self._client,
            self._group_id,
            protocols=self._protocols,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_lost=self._lost,
            on_failed=self._fetcher.fail,
            eager=not self._cooperative,
            session_timeout_ms=self._session_timeout_ms,
            heartbeat_interval_ms=self._heartbeat_interval_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            group_instance_id=self._group_instance_id,
            assigned_partitions=lambda: len(self._owned),
        )
        self._watcher = asyncio.create_task(self._watch(), name=f"topics-{self._group_id}")
        self._watcher.add_done_callback(self._watching_ended)
        await self._member.start()

    async def assign(
        self, positions: Mapping[TopicPartition, int | OffsetAndMetadata] | Iterable[TopicPartition]
    ) -> None:
        """Read exactly these partitions, without sharing: at the given offsets, or else the
        committed ones.
        """
        if self._member is not None:
            raise ConfigError("assign", positions, "not together with subscribe")
        if not isinstance(positions, Mapping):
            positions = await self._starting_positions(set(positions))
        self._fetcher.assign(positions)
        self._owned = set(positions)

    @property
    def assignment(self) -> set[TopicPartition]:
        """The partitions read now."""
        return set(self._owned)

    @property
    def member(self) -> GroupMember | None:
        """The group membership, once subscribed."""
        return self._member

    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is in its group, for `TransactionalProducer` (KIP-447): the member and its
        generation, or, of one that was assigned its partitions, the group's id alone.

        RebalanceNeeded while the member has no generation.
        """
        return self._member.group_metadata() if self._member else GroupMetadata(group_id=self._group())

    async def wait_assigned(self) -> set[TopicPartition]:
        """Wait for the first assignment (which may be empty); raises what ended the membership."""
        if self._member is not None:
            await self._member.wait_joined()
        return self.assignment

    # --- reading ---

    async def fetch(
        self,
        *,
        timeout_ms: int | None = None,
        max_bytes: int = FETCH_BYTES,
        max_records: int = FETCH_RECORDS,
    ) -> list[Fetched]:
        """What is buffered, up to about `max_bytes` as they came and `max_records`, but at least one batch;
        an empty list once `timeout_ms` is over.

        Errors as `BatchFetcher.fetch`, and what ended the group membership.
        """
        return await self._fetcher.fetch(timeout_ms=timeout_ms, max_bytes=max_bytes, max_records=max_records)

    async def __aiter__(self) -> AsyncIterator[Fetched]:
        """What is fetched, partition by partition, for ever."""
        while True:
            for fetched in await self.fetch():
                yield fetched

    def position(self, tp: TopicPartition) -> int:
        """The next offset `fetch` hands out (-2/-1 while earliest/latest is still looked up)."""
        return self._fetcher.position(tp)

    def lag(self, tp: TopicPartition) -> int | None:
        """Records that `fetch` has not handed out yet; see `BatchFetcher.lag`."""
        return self._fetcher.lag(tp)

    def seek(self, tp: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Go on from `offset` (-2 earliest, -1 latest), before which there is a record of `leader_epoch`."""
        self._fetcher.seek(tp, offset, leader_epoch)

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Hand out nothing of these partitions until `resume`, or until they are taken away."""
        tps = set(tps)
        self._fetcher.pause(tps)
        self._paused |= tps

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """End a pause."""
        tps = set(tps)
        self._fetcher.resume(tps)
        self._paused -= tps

    # --- offsets ---

    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commit the given offsets, or the position of every partition assigned.

        RebalanceNeeded: these partitions may be somebody else's already; what was read is read again.
        """
        if offsets is None:
            held = {tp: self._fetcher.position(tp) for tp in self._owned}
            offsets = {tp: position for tp, position in held.items() if position >= 0}
        with_epochs = {tp: self._with_epoch(tp, position) for tp, position in offsets.items()}
        if self._member is not None:
            await self._member.commit(with_epochs)
        else:
            await commit_offsets(self._client, self._group(), with_epochs)

    def _with_epoch(self, tp: TopicPartition, position: int | OffsetAndMetadata) -> OffsetAndMetadata:
        """The position with the leader epoch of the record before it, so that it can be validated later."""
        whole = OffsetAndMetadata.of(position)
        if whole.leader_epoch >= 0:
            return whole
        return whole._replace(leader_epoch=self._fetcher.leader_epoch(tp, whole.offset))

    async def confirm(self) -> None:
        """Make sure that the partitions are still this member's, before work that only their owner may do.

        A request only if the coordinator has not been heard of for a session timeout, as after a process was
        stopped. RebalanceNeeded: they are somebody else's; `on_lost` is called as well.
        """
        if self._member is not None:
            await self._member.confirm()

    async def committed(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets; partitions without one are left out."""
        if self._member is not None:
            return await self._member.committed(tps)
        return await fetch_offsets(self._client, self._group(), tps)

    # --- life ---

    async def close(self) -> None:
        """Leave the group and stop fetching. Commits nothing by itself."""
        self._closing = True
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        try:
            if self._member is not None:
                await self._member.close()
        finally:
            await self._fetcher.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # --- the group's side ---

    def _group(self) -> str:
        if self._group_id is None:
            raise ConfigError("group_id", None, "committed offsets belong to a group")
        return self._group_id

    def _subscription(self) -> Subscription:
        generation = self._member.generation if self._member else -1
        return Subscription(self._topics, sorted(self._owned) if self._cooperative else (), generation)

    async def _assigned(self, assignment: bytes, generation: int) -> None:
        """Take up what is new; give up what is gone (cooperative only) and join again to say so."""
        new = set(decode_assignment(assignment))
        gone, added = self._owned - new, new - self._owned
        await self._let_go(gone, self._on_revoked)
        positions = await self._persistent_starting_positions(added)
        # What is told to be assigned can be sought: no turn of the loop lies between the two.
        self._owned = new
        for tp, position in positions.items():
            self._fetcher.add(tp, position.offset, position.leader_epoch)
        # Nothing of them is handed out before the callback has had its chance to seek.
        self._fetcher.pause(added)
        await _call(self._on_assigned, added)
        self._fetcher.resume(added - self._paused)
        if gone and self._member is not None:
            self._member.request_rejoin()

    async def _revoked(self, assignment: bytes, generation: int) -> None:
        await self._let_go(self._owned, self._on_revoked)

    async def _lost(self, assignment: bytes, generation: int) -> None:
        await self._let_go(self._owned, self._on_lost)

    async def _let_go(self, gone: set[TopicPartition], callback: PartitionsCallback | None) -> None:
        gone = set(gone)
        if not gone:
            return
        self._fetcher.pause(gone)
        await _call(callback, gone)
        self._owned -= gone
        self._paused -= gone
        for tp in gone:
            self._fetcher.remove(tp)

    async def _persistent_starting_positions(
        self, tps: set[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The same, however long a broker is away, or a transaction is about to commit them (KIP-447)."""
        backoff = self._client.backoff()
        while True:
            try:
                return await self._starting_positions(tps)
            except MillstreamError as error:
                if not is_retriable(error) or self._closing or self._client.closed:
                    raise
            await asyncio.sleep(backoff.next())

    async def _starting_positions(self, tps: set[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The committed offsets, else what `auto_offset_reset` says; OffsetOutOfRange if that is "none"."""
        if not tps:
            return {}
        committed = await self.committed(tps) if self._group_id is not None else {}
        reset = RESET_OFFSETS[self._auto_offset_reset]
        positions = {}
        for tp in sorted(tps):
            if tp in committed:
                positions[tp] = committed[tp]
                continue
            if reset is None:
                raise OffsetOutOfRange(
                    message=f"{tp}: group {self._group_id!r} has committed no offset",
                    topic=tp.topic,
                    partition=tp.partition,
                )
            positions[tp] = OffsetAndMetadata(reset)
        return positions

    # --- watching topics ---

    async def _match_pattern(self) -> bool:
        """Find the topics the pattern matches now; returns whether they have changed."""
        if self._pattern is None:
            return False
        known = (await self._client.metadata(refresh=True)).topics.values()
        matching = sorted(t.name for t in known if not t.is_internal and self._pattern.fullmatch(t.name))
        changed, self._topics = matching != self._topics, matching
        return changed

    def _watching_ended(self, watcher: asyncio.Task[None]) -> None:
        """Have `fetch` raise an unexpected error of the watching: it has ended, and new topics go unseen."""
        if not watcher.cancelled() and (error := watcher.exception()) is not None:
            self._fetcher.fail(error)

    async def _watch(self) -> None:
        """Join again when the subscribed topics change: new matches, new partitions, a topic that appears."""
        pause = min(self._topic_check, _MISSING_TOPIC_CHECK_SECONDS)
        while True:
            await asyncio.sleep(pause)
            try:
                changed = await self._match_pattern()
                counts = await partition_counts(self._client, self._topics)
            except MillstreamError:
                continue  # Tried again at the next check; `fetch` raises what lasts.
            member = self._member
            if member is not None and member.is_leader and member.is_stable:
                by = next(p.assigned_by_counts for p in self._protocols if p.name == member.protocol)
                changed = changed or any(by.get(topic, 0) != count for topic, count in counts.items())
            if changed and member is not None:
                member.request_rejoin()
            missing = not self._topics or not all(counts.values())
            pause = min(self._topic_check, _MISSING_TOPIC_CHECK_SECONDS) if missing else self._topic_check


async def _call(callback: PartitionsCallback | None, tps: set[TopicPartition]) -> None:
    if callback is not None and tps:
        result = callback(set(tps))
        if inspect.isawaitable(result):
            await result
