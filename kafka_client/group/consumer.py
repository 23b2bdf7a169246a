"""The consumer: a group member and a batch fetcher, joined by the consumer protocol."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Self

from kafka_client.cluster.cluster import Client, is_retriable
from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.errors import (
    ConfigError,
    MillstreamError,
    OffsetOutOfRange,
    UnreadableBatch,
)
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
from kafka_client.fetcher.parts import OnUnreadable
from kafka_client.group.assignors import COOPERATIVE, Subscription
from kafka_client.group.auto_commit import AutoCommit
from kafka_client.group.consumer_protocol import ConsumerProtocol, decode_assignment
from kafka_client.group.consumer_record import ConsumerRecord
from kafka_client.group.coordinator import commit_offsets, fetch_offsets
from kafka_client.group.group import GroupMember
from kafka_client.group.record_buffer import Deserializer, RecordBuffer
from kafka_client.group.topic_watcher import TopicWatcher
from kafka_client.producer.group_metadata import GroupMetadata
from kafka_client.topic_partition import TopicPartition

PartitionsCallback = Callable[[set[TopicPartition]], Awaitable[None] | None]


class Consumer:
    """A consumer of topics: record by record, in lists of records, or in whole batches.

        async with Client("localhost:9092") as client, Consumer(client, "billing") as consumer:
            await consumer.subscribe(["orders"])
            async for record in consumer:
                print(record.key, record.value)
                await consumer.commit()

    The settings have Kafka's names, with `_` for `.`:

    `group_id`: members of a group share the partitions of the topics they `subscribe` to. With None there is
    no group: use `assign`, and nothing can be committed.
    `assignors`: names in order of preference of "range", "roundrobin", "cooperative-sticky". Partitions are
    kept during a rebalance only if all of them are cooperative.
    `auto_offset_reset`: where to read without a committed offset, or when the position is outside the log:
    "earliest", "latest", or "none" (raise OffsetOutOfRange).
    `isolation_level`: "read_committed" leaves out records of aborted and open transactions (KIP-98).
    `enable_auto_commit`: commit processed offsets every `auto_commit_interval_ms`; see below. Off by default.
    `key_deserializer`, `value_deserializer`: convert the bytes of a key or value, for example `bytes.decode`.
    They are not called for None.
    `on_unreadable`: called with the UnreadableBatch of a damaged batch, which is then skipped. Without it the
    error is raised, and raised again until a `seek` passes the batch.
    `session_timeout_ms`: the coordinator removes a member that sends no heartbeat for so long.
    `heartbeat_interval_ms`: time between heartbeats, which are sent in the background.
    `rebalance_timeout_ms`: time for members to join again.
    `group_instance_id`: name of a static member, whose restart causes no rebalance (KIP-345).
    `fetch_min_bytes`, `fetch_max_wait_ms`: a broker answers once it has so many bytes, or after so long.
    `fetch_max_bytes`, `max_partition_fetch_bytes`: bounds of one response.
    `buffer_max_bytes`: bound of the fetched bytes that are not handed out yet.
    `client_rack`: the consumer's rack; with it the consumer may read from a replica nearby (KIP-392).
    `topic_check_ms`: time between checks for new partitions, and for topics that match a pattern.

    Each partition has two offsets. The *consumed* offset is after the last record handed out. The
    *processed* offset is before the record, or list of `records`, handed out last: a record counts as
    processed when the next one is requested. `commit()` commits consumed offsets, so call it when the record
    is processed. Automatic commits, and `commit()` in a rebalance callback, commit processed offsets. A
    record that a crash interrupts is thus read again, never skipped.
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
        enable_auto_commit: bool = False,
        auto_commit_interval_ms: int = 5_000,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        on_unreadable: OnUnreadable | None = None,
    ) -> None:
        if enable_auto_commit and group_id is None:
            raise ConfigError(
                "enable_auto_commit", True, "needs a group_id: offsets are committed for a group"
            )
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
        self._watcher = TopicWatcher(
            client, self._protocols, check_s=topic_check_ms / 1000, failed=self._fetcher.fail
        )
        self._on_assigned: PartitionsCallback | None = None
        self._on_revoked: PartitionsCallback | None = None
        self._on_lost: PartitionsCallback | None = None
        self._member: GroupMember | None = None
        self._owned: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._closing = False
        self._records = RecordBuffer(key_deserializer, value_deserializer, on_unreadable)
        self._last: Sequence[ConsumerRecord] = ()
        """The records handed out last, which may still be in process."""
        self._in_callback = False
        self._auto_commit: AutoCommit | None = None
        if enable_auto_commit:
            self._auto_commit = AutoCommit(
                auto_commit_interval_ms, self._group(), processed=self.processed_offsets, commit=self.commit
            )

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

        Callbacks get the partitions that were assigned or revoked, and may `seek`, `pause` and `commit`. They
        run in the member's task, concurrently with your loop; no records of those partitions are handed out
        meanwhile. `on_lost` (default: `on_revoked`) gets partitions that may be another member's already. The
        call does not wait for the assignment: `wait_assigned` does. Calling it again changes the
        subscription.

        Raises ConfigError without a `group_id`. An error that ends the membership is raised by the next read.
        """
        if self._group_id is None:
            raise ConfigError("group_id", None, "subscribe needs one; use assign without a group")
        self._on_assigned, self._on_revoked, self._on_lost = on_assigned, on_revoked, on_lost or on_revoked
        await self._watcher.subscribe(topics)
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
        self._watcher.start(self._member)
        await self._member.start()

    async def assign(
        self, positions: Mapping[TopicPartition, int | OffsetAndMetadata] | Iterable[TopicPartition]
    ) -> None:
        """Read exactly these partitions, without sharing them with a group's other members.

        Reading starts at the given offsets (-2 earliest, -1 latest). Without offsets it starts at the group's
        committed ones. Raises ConfigError after `subscribe`.
        """
        if self._member is not None:
            raise ConfigError("assign", positions, "not together with subscribe")
        if not isinstance(positions, Mapping):
            positions = await self._starting_positions(set(positions))
        self._give_back(self._records.partitions())
        self._last = ()
        self._fetcher.assign(positions)
        self._owned = set(positions)

    @property
    def assignment(self) -> set[TopicPartition]:
        """The partitions that are assigned now."""
        return set(self._owned)

    @property
    def member(self) -> GroupMember | None:
        """The group membership; None before `subscribe`."""
        return self._member

    def group_metadata(self) -> GroupMetadata:
        """Return the member's id and generation, for a transaction's offsets (KIP-447).

        After `assign` the result has only the group's id. Raises RebalanceNeeded while the member has no
        generation.
        """
        return self._member.group_metadata() if self._member else GroupMetadata(group_id=self._group())

    async def wait_assigned(self) -> set[TopicPartition]:
        """Wait for the first assignment, which may be empty, and return it.

        Raises the error that ended the membership, if one did.
        """
        if self._member is not None:
            await self._member.wait_joined()
        return self.assignment

    # --- reading ---

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Return the consumer: `async for` yields record after record, without an end."""
        return self

    async def __anext__(self) -> ConsumerRecord:
        """Return the next record; wait until there is one. The record before counts as processed now.

        Raises errors as `records` does. The iteration may continue after an error.
        """
        await self._begin_read()
        while (record := self._next_record()) is None:
            await self._fetch_records(None)
        self._last = (record,)
        return record

    async def records(self, *, max_records: int = 500, timeout_ms: int | None = None) -> list[ConsumerRecord]:
        """Return up to `max_records` records, at least one; an empty list after `timeout_ms`.

        Records of a partition are in offset order. Those returned before count as processed now.

        Raises UnreadableBatch, which names topic, partition and offsets, if a batch is damaged and there is
        no `on_unreadable`. The position stays before the batch: `seek` past it to go on. The same holds for
        what a deserializer raises; a note on the error names the record. Raises OffsetOutOfRange or
        LogTruncated with `auto_offset_reset="none"`, KafkaError if retrying does not help, and what ended the
        group membership.
        """
        if max_records < 1:
            raise ValueError(f"max_records={max_records}: at least 1")
        deadline = None if timeout_ms is None else _now() + timeout_ms / 1000
        await self._begin_read()
        while not (records := self._next_records(max_records)):
            if not await self._fetch_records(deadline) and deadline is not None and _now() >= deadline:
                return []
        self._last = records
        return records

    async def fetch(
        self,
        *,
        timeout_ms: int | None = None,
        max_bytes: int = FETCH_BYTES,
        max_records: int = FETCH_RECORDS,
    ) -> list[Fetched]:
        """Return fetched batches, still compressed: at least one, and about `max_bytes` and `max_records` at
        most.

        Returns an empty list after `timeout_ms`. The batches count as processed at once, so call `commit`
        only after processing them. Raises errors as `BatchFetcher.fetch` does, and the error that ended the
        group membership.
        """
        self._give_back(self._records.partitions())
        self._last = ()
        return await self._fetcher.fetch(timeout_ms=timeout_ms, max_bytes=max_bytes, max_records=max_records)

    def position(self, tp: TopicPartition) -> int:
        """Return the next offset to be handed out; -2 (earliest) or -1 (latest) until the offset is known.

        Raises KeyError if the partition is not assigned.
        """
        position = self._records.position(tp)
        return self._fetcher.position(tp) if position is None else position

    def lag(self, tp: TopicPartition) -> int | None:
        """Return how many records are not handed out yet, or None if unknown; see `BatchFetcher.lag`."""
        lag = self._fetcher.lag(tp)
        return None if lag is None else lag + self._fetcher.position(tp) - self.position(tp)

    def seek(self, tp: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Continue reading at `offset` (-2 earliest, -1 latest).

        `leader_epoch` is the epoch of the record before `offset`, -1 if it is unknown. Raises KeyError if the
        partition is not assigned.
        """
        self._forget_records(tp)
        self._fetcher.seek(tp, offset, leader_epoch)

    async def seek_to_committed(self, tps: Iterable[TopicPartition] | None = None) -> None:
        """Seek to the committed offsets of these partitions (default: all assigned ones).

        Without a committed offset, reading continues as `auto_offset_reset` says. Use it after an aborted
        transaction. Raises OffsetOutOfRange if no offset is committed and there is no reset.
        """
        positions = await self._starting_positions(self.assignment if tps is None else set(tps))
        for tp, position in positions.items():
            if tp in self._owned:
                self.seek(tp, position.offset, position.leader_epoch)

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Hand out no records of these partitions until `resume`, or until they are revoked."""
        tps = set(tps)
        self._give_back(tps)
        self._fetcher.pause(tps)
        self._paused |= tps

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """End the pause of these partitions."""
        tps = set(tps)
        self._fetcher.resume(tps)
        self._paused -= tps

    # --- offsets ---

    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commit the given offsets (the next ones to read), by default those after the records handed out.

        The default is `consumed_offsets`. It includes the record handed out last, so call `commit` when that
        record is processed. In a rebalance callback the default is `processed_offsets`, since your loop may
        still process a record.

        Raises RebalanceNeeded if the partitions may be another member's already; that member reads the
        records again. Raises ConfigError without a `group_id`, and MillstreamError if the coordinator cannot
        be reached.
        """
        if offsets is None:
            offsets = self.processed_offsets() if self._in_callback else self.consumed_offsets()
        with_epochs = {tp: self._with_epoch(tp, position) for tp, position in offsets.items()}
        if self._member is not None:
            await self._member.commit(with_epochs)
        else:
            await commit_offsets(self._client, self._group(), with_epochs)

    def consumed_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offset after the last record handed out, for each assigned partition.

        Partitions whose starting offset is not known yet are left out.
        """
        positions = {tp: self.position(tp) for tp in self._owned}
        return {tp: self._with_epoch(tp, offset) for tp, offset in positions.items() if offset >= 0}

    def processed_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return `consumed_offsets` without the record, or list of records, that was handed out last."""
        offsets = self.consumed_offsets()
        for record in reversed(self._last):  # the first one of a partition is set last
            if record.topic_partition in offsets:
                offsets[record.topic_partition] = self._with_epoch(record.topic_partition, record.offset)
        return offsets

    def _with_epoch(self, tp: TopicPartition, position: int | OffsetAndMetadata) -> OffsetAndMetadata:
        """Return the position with the leader epoch of the record before it, for its validation (KIP-320)."""
        whole = OffsetAndMetadata.of(position)
        if whole.leader_epoch >= 0:
            return whole
        return whole._replace(leader_epoch=self._fetcher.leader_epoch(tp, whole.offset))

    async def confirm(self) -> None:
        """Make sure that the partitions are still this member's, before work that only their owner may do.

        A request is sent only if the coordinator has not answered for a session timeout, as after the process
        was suspended. Raises RebalanceNeeded if they are another member's; `on_lost` is called as well.
        """
        if self._member is not None:
            await self._member.confirm()

    async def committed(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without one are left out."""
        if self._member is not None:
            return await self._member.committed(tps)
        return await fetch_offsets(self._client, self._group(), tps)

    # --- close ---

    async def close(self) -> None:
        """Leave the group and stop fetching.

        It commits only with `enable_auto_commit`, and then the processed offsets.
        """
        if not self._closing and self._auto_commit is not None and not self._client.closed:
            await self._auto_commit.run(is_last=True)
        self._closing = True
        await self._watcher.stop()
        try:
            if self._member is not None:
                await self._member.close()
        finally:
            await self._fetcher.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # --- records ---

    async def _begin_read(self) -> None:
        """Count what was handed out before as processed, and commit if an automatic commit is due."""
        self._last = ()
        if self._auto_commit is not None:
            await self._auto_commit.run_if_due()

    def _next_record(self) -> ConsumerRecord | None:
        try:
            return self._records.next()
        except UnreadableBatch:
            # The batch is fetched again: the error is raised again, unless a seek passes the batch.
            self._give_back({tp for tp in (self._records.current,) if tp is not None})
            raise

    def _next_records(self, max_records: int) -> list[ConsumerRecord]:
        """Return the buffered records, `max_records` at most.

        An error after some records is raised by the next call.
        """
        records: list[ConsumerRecord] = []
        try:
            while len(records) < max_records and (record := self._next_record()) is not None:
                records.append(record)
        except Exception:
            if not records:
                raise
        return records

    async def _fetch_records(self, deadline: float | None) -> bool:
        """Fetch until `deadline` (loop time) or a commit is due. Return True if anything was fetched."""
        due = deadline
        if self._auto_commit is not None:
            due = self._auto_commit.due_at if due is None else min(due, self._auto_commit.due_at)
        timeout_ms = None if due is None else max(int((due - _now()) * 1000) + 1, 0)
        fetched = await self._fetcher.fetch(timeout_ms=timeout_ms)
        self._records.put(fetched)
        if not fetched and self._auto_commit is not None:
            await self._auto_commit.run_if_due()
        return bool(fetched)

    def _give_back(self, tps: Iterable[TopicPartition]) -> None:
        """Drop the buffered records of these partitions, and seek so that they are fetched again."""
        for tp in tps:
            position = self._records.position(tp)
            if position is not None:
                self._records.drop(tp)
                self._fetcher.seek(tp, position, self._fetcher.leader_epoch(tp, position))

    def _forget_records(self, tp: TopicPartition) -> None:
        """Drop the buffered records of the partition, and count its records as processed."""
        self._records.drop(tp)
        self._last = [record for record in self._last if record.topic_partition != tp]

    # --- the group's callbacks ---

    def _group(self) -> str:
        if self._group_id is None:
            raise ConfigError("group_id", None, "committed offsets belong to a group")
        return self._group_id

    def _subscription(self) -> Subscription:
        generation = self._member.generation if self._member else -1
        return Subscription(
            self._watcher.topics, sorted(self._owned) if self._cooperative else (), generation
        )

    async def _assigned(self, assignment: bytes, generation: int) -> None:
        """Start to read new partitions, and stop to read those that are revoked.

        An assignment revokes partitions only with cooperative assignors; the member then joins again.
        """
        new = set(decode_assignment(assignment))
        removed, added = self._owned - new, new - self._owned
        await self._remove_partitions(removed, self._on_revoked)
        positions = await self._persistent_starting_positions(added)
        # A partition in `assignment` can be sought: nothing is awaited before the fetcher has it, too.
        self._owned = new
        for tp, position in positions.items():
            self._fetcher.add(tp, position.offset, position.leader_epoch)
        # No record of the new partitions is handed out before the callback had its chance to seek.
        self._fetcher.pause(added)
        await _call(self._on_assigned, added)
        self._fetcher.resume(added - self._paused)
        if removed and self._member is not None:
            self._member.request_rejoin()

    async def _revoked(self, assignment: bytes, generation: int) -> None:
        await self._remove_partitions(self._owned, self._on_revoked)

    async def _lost(self, assignment: bytes, generation: int) -> None:
        await self._remove_partitions(self._owned, self._on_lost, are_lost=True)

    async def _remove_partitions(
        self, removed: set[TopicPartition], callback: PartitionsCallback | None, *, are_lost: bool = False
    ) -> None:
        """Stop reading partitions; call `callback` first, while they are still assigned.

        No records of the partitions are handed out while the callback runs.
        """
        removed = set(removed)
        if not removed:
            return
        self._give_back(removed)
        self._fetcher.pause(removed)
        if self._auto_commit is not None and not are_lost:
            await self._auto_commit.run(is_last=True)
        self._in_callback = True
        try:
            await _call(callback, removed)
        finally:
            self._in_callback = False
        self._owned -= removed
        self._paused -= removed
        for tp in removed:
            self._forget_records(tp)
            self._fetcher.remove(tp)

    async def _persistent_starting_positions(
        self, tps: set[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return `_starting_positions`; retry while brokers are away or a transaction is open (KIP-447)."""
        backoff = self._client.backoff()
        while True:
            try:
                return await self._starting_positions(tps)
            except MillstreamError as error:
                if not is_retriable(error) or self._closing or self._client.closed:
                    raise
            await asyncio.sleep(backoff.next())

    async def _starting_positions(self, tps: set[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets; without one, the offset that `auto_offset_reset` says.

        Raises OffsetOutOfRange if the reset is "none".
        """
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


async def _call(callback: PartitionsCallback | None, tps: set[TopicPartition]) -> None:
    if callback is not None and tps:
        result = callback(set(tps))
        if inspect.isawaitable(result):
            await result


def _now() -> float:
    return asyncio.get_running_loop().time()
