"""A partition with a replica on this broker: its log, its leader epoch and the fetches that wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, ItemsView, Iterator, MutableSet
from typing import TYPE_CHECKING, Protocol

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records.control import MARKER_SIZE, SealedMarker, seal_marker
from kafka_client.records.header import TRANSACTIONAL_BIT, Buffer, read_header
from kafka_client.records.slice import FileSlice
from kafka_client.records.validate import check_produced
from logd.broker.partition.admission import Admission, NotYetAdmitted, TransactionGuard
from logd.broker.partition.batch_rules import BatchRules, Validated
from logd.broker.partition.uncommitted import Uncommitted
from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.storage.disk import CACHED_ONLY
from logd.storage.producers.producer import NO_NUMBER

if TYPE_CHECKING:
    from logd.broker.partition.replication_role import ReplicationRole
    from logd.storage import AbortedTransaction, Appended, Deletion, Log, LogDirectory, Producer
    from logd.storage.log.copier import CopiedRun


class AppendWaiter(Protocol):
    """Something that waits for news of a partition, such as a long-polling fetch."""

    def on_append(self) -> None:
        """Note that the partition has changed: more records are readable, the log begins later, or the
        partition is gone.

        Called once, in the middle of the change, so the waiter must only note it for later.
        """


class FollowerWaiter(AppendWaiter, Protocol):
    """A fetch of a follower that waits, or its session."""

    def on_commit(self) -> None:
        """Note that the high watermark has risen; the next response reports it and is not hurried."""


class Durability(Protocol):
    """The part of the broker that syncs logs to the disk (`logd.broker.background.flusher`)."""

    def appended(self, partition: Partition, size: int) -> None:
        """Note that ``size`` bytes were appended to the log, which has to be flushed some time."""

    def touched(self, partition: Partition) -> None:
        """Note that the log has something to flush besides records."""

    def sync(self, partition: Partition) -> asyncio.Future[None]:
        """Return a future that ends once all current appends are synced; shield it from cancellation."""

    def synced(self, partition: Partition, offset: int) -> asyncio.Future[None]:
        """Return the future of the `sync` that covers ``offset``; shield it from cancellation."""


class Partition:
    """A partition's replica on this broker, which owns a storage log.

    ``high_watermark`` is the end of the committed records, which may be read. With one replica that is the
    log end offset, but an append that waits for a flush keeps it before that append. So nobody acts on a
    record that a power loss removes. With several replicas the ``role`` decides, and the smaller of the two
    counts. Only a truncation lowers it.

        records that may be read │ appended, owed a flush by flush.messages or flush.ms, and what follows;
                                 │ or not yet known to be with all in-sync replicas
                  high watermark ┘                                                        log end offset ┘

    ``waiters`` are called once at the next news below the high watermark, and have to be added again for
    more: so the second of two appends in a row costs nothing. ``followers`` are called in the same way at
    every append. ``holds_back`` is true if appends may not be readable at once. ``replica_count`` and
    ``in_sync_replicas`` are kept current by the caller that sets a leader's role.
    ``checkpointed_high_watermark`` is the high watermark on the disk at the start, within the log: a role
    begins there. ``is_leader`` is true if this broker leads the partition and serves its clients.
    """

    __slots__ = (
        "_admission",
        "_flusher",
        "_owed",
        "_rules",
        "_uncommitted",
        "checkpointed_high_watermark",
        "config",
        "directory",
        "followers",
        "guard",
        "high_watermark",
        "holds_back",
        "in_sync_replicas",
        "index",
        "is_leader",
        "leader_epoch",
        "log",
        "max_message_bytes",
        "min_insync_replicas",
        "replica_count",
        "role",
        "topic",
        "topic_id",
        "tp",
        "waiters",
    )

    def __init__(
        self,
        log: Log,
        directory: LogDirectory,
        topic_id: bytes,
        config: TopicConfig,
        flusher: Durability,
        *,
        role: ReplicationRole | None = None,
        checkpointed_high_watermark: int = -1,
    ) -> None:
        """Make a partition over a log. ``role`` is None if this broker has its only replica.

        A replica among several begins with a role, so that nothing is readable that only this log has.
        """
        self.log = log
        self.directory = directory
        self.topic = log.topic
        self.topic_id = topic_id
        self.index = log.partition
        self.tp = log.tp
        self.is_leader = True
        self.leader_epoch = max(log.latest_epoch, 0)
        self.waiters: set[AppendWaiter] = set()
        self.guard: TransactionGuard | None = None
        self._admission = Admission(self.tp)
        start, end = log.log_start_offset, log.log_end_offset
        self.checkpointed_high_watermark = min(max(checkpointed_high_watermark, start), end)
        self.role = role
        self.replica_count = self.in_sync_replicas = 1
        self.followers: MutableSet[FollowerWaiter] | None = None
        self._uncommitted: Uncommitted | None = None
        self.high_watermark = end if role is None else max(start, min(role.high_watermark, end))
        log.replicated_to(self.high_watermark)
        self._flusher = flusher
        # Where appends begin that are owed a flush: of those that the same one will cover, the first.
        self._owed: tuple[int, ...] = ()
        if not log.flusher.is_flushed:  # recovered
            flusher.touched(self)
        self.configure(config)

    def configure(self, config: TopicConfig) -> None:
        """Apply new settings of the topic, from the next append on."""
        self.config = config
        self.log.config = config
        self.max_message_bytes = config.max_message_bytes
        self.min_insync_replicas = config.min_insync_replicas
        self._rules = BatchRules(str(self), config)
        self._update_holds_back()

    def _update_holds_back(self) -> None:
        """Set `holds_back` from the settings, the flushes that are due, and the role."""
        config = self.config
        is_to_be_flushed = config.flush_messages != LONG_MAX or config.flush_ms != LONG_MAX
        self.holds_back = is_to_be_flushed or bool(self._owed) or self.role is not None

    @property
    def is_offline(self) -> bool:
        """True if the partition's log directory has failed."""
        return self.directory.failure is not None

    def epoch_of(self, offset: int) -> int:
        """Return the leader epoch of the record at ``offset``, or of the next record; -1 if it is unknown."""
        return self.log.epoch_of(offset) if self.log.latest_epoch >= 0 else self.leader_epoch

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """Where the next record goes. The broker's own coordinators read up to here, clients do not."""
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which every transaction has ended, at most the high watermark."""
        unstable, end = self.log.first_unstable_offset, self.high_watermark
        return end if unstable is None or unstable > end else unstable

    @property
    def required_in_sync(self) -> int:
        """How many in-sync replicas acks=all needs; see `logd.replication.Leader.required_in_sync`."""
        return min(self.min_insync_replicas, self.replica_count)

    def produce(
        self,
        records: memoryview,
        now_ms: int,
        acks: int,
        *,
        transactional_id: str | None = None,
        implicit: bool = False,
        validated: Validated | None = None,
    ) -> Appended:
        """Check and append what a client sent: exactly one batch (KIP-98).

        A batch that begins a transaction here needs the ``guard``'s consent; ``implicit``: see there.
        ``validated`` is the batch as a thread has validated it, of use unless the rules have changed since.
        Raises KafkaError with the code the client is to be answered with, or NotYetValidated, or
        NotYetAdmitted unless ``acks`` is 0; nothing was written then.
        """
        if acks == -1 and self.min_insync_replicas > self.in_sync_replicas:
            self._check_enough_replicas()
        batch: Buffer
        if validated is not None and validated.rules is self._rules:
            _, header, batch = validated
        else:
            header, batch = self._rules.admit(check_produced(records), records, now_ms)
        log, guard = self.log, self.guard
        if header.attributes & TRANSACTIONAL_BIT and guard is not None:
            consent = self._admission.admit(guard, log.producers, header, transactional_id, implicit)
            if consent is not None and acks:
                raise NotYetAdmitted(consent)
        appended = log.writer.append(batch, self.leader_epoch, now_ms, headers=(header,))
        # `_note_append`, where every request comes by.
        self._flusher.appended(self, len(batch))
        if self.holds_back:
            self._hold_back(appended.base_offset, now_ms, is_new=not appended.duplicate)
        else:
            self.high_watermark = log.log_end_offset
            if self.waiters:
                self.wake_waiters()
        return appended

    def _check_enough_replicas(self) -> None:
        if self.required_in_sync > self.in_sync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self}: {self.in_sync_replicas} of {self.replica_count} replicas in sync, "
                f"min.insync.replicas is {self.min_insync_replicas}",
            )

    def append(self, batch: Buffer, now_ms: int) -> Appended:
        """Append one batch the broker built itself (coordinators); KafkaError when the log cannot take it.

        Of a transactional one only the epoch is checked: who may write it, the coordinator has asked.
        """
        header = read_header(batch)
        appended = self.log.writer.append(
            batch, self.leader_epoch, now_ms, headers=(header,), from_client=False
        )
        self._note_append(appended, header.size, now_ms)
        return appended

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        *,
        transaction_version: int = 0,
    ) -> Appended:
        """End a producer's transaction here, which readers of committed records may have waited for.

        Raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        marker = seal_marker(
            commit,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=now_ms,
        )
        return self.append_sealed(marker, now_ms, transaction_version)

    def append_sealed(
        self,
        marker: SealedMarker,
        now_ms: int,
        transaction_version: int,
        transaction_number: int = NO_NUMBER,
    ) -> Appended:
        """Append a marker that is built already, as `append_marker` does; many partitions get the same one.

        A marker that this log has is not written again: the result is a duplicate, with its offset.
        """
        appended = self.log.writer.append_sealed(
            marker, self.leader_epoch, now_ms, transaction_version, transaction_number
        )
        if not appended.duplicate:
            self._note_append(appended, MARKER_SIZE, now_ms)
        return appended

    @property
    def is_leased(self) -> bool:
        """Return False if another broker may lead the partition by now; see `ReplicationRole.is_leased`."""
        return self.role is None or self.role.is_leased

    def check_leased(self) -> None:
        """Raise KafkaError(NOT_LEADER_OR_FOLLOWER) where another broker may lead the partition by now, and
        nothing may be accepted or acknowledged.
        """
        if not self.is_leased:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"another broker may lead {self}")

    def delete_records_before(self, offset: int) -> list[Deletion]:
        """See `LogShortening.delete_records_before`; readers in front of it are told."""
        return self._shorten(lambda: self.log.shortening.delete_records_before(offset))

    def apply_retention(self, now_ms: int) -> list[Deletion]:
        """See `LogShortening.apply_retention`; readers of what went are told."""
        return self._shorten(
            lambda: self.log.shortening.apply_retention(now_ms, upper_bound=self.high_watermark)
        )

    def _shorten(self, shorten: Callable[[], list[Deletion]]) -> list[Deletion]:
        start = self.log_start_offset
        deletions = shorten()
        if self.log_start_offset > start:
            self.wake_followers()
            self.wake_waiters()
        return deletions

    # What may be read

    def _note_append(self, appended: Appended, size: int, now_ms: int) -> None:
        """Note an append of ``size`` bytes: have it flushed, and readable once it may be."""
        self._flusher.appended(self, size)
        if self.holds_back:
            self._hold_back(appended.base_offset, now_ms, is_new=not appended.duplicate)
        else:
            self._advance(self.log.log_end_offset)

    def _hold_back(self, base_offset: int, now_ms: int, *, is_new: bool = True) -> None:
        """Keep an append from readers until it is flushed, if settings ask for that, and until other replicas
        have it.

        Later appends wait as well. Apache Kafka flushes in the middle of such an append, with the same effect
        for readers.
        """
        log = self.log
        if log.flusher.needs_flush(now_ms):
            owed = self._owed
            if is_new and (not owed or owed[-1] < log.flusher.sync_started_to):
                self._owed = (*owed, base_offset)
            self._flusher.sync(self)
        if self.role is not None:
            self.role.appended(log.log_end_offset)
            self.wake_followers()
        self.advance_high_watermark()

    def flush_ended(self) -> None:
        """Make flushed appends readable; to be called when a flush of the log has ended."""
        log = self.log
        self._owed = tuple(base for base in self._owed if base >= log.flusher.synced_offset)
        self.advance_high_watermark()
        if not self._owed:
            self._update_holds_back()

    def advance_high_watermark(self) -> None:
        """Move the high watermark as far as flushes and ``role`` allow; to be called when the role's has
        moved.
        """
        end = self._owed[0] if self._owed else self.log.log_end_offset
        role = self.role
        if role is not None and role.high_watermark < end:
            end = role.high_watermark
        if end > self.high_watermark:
            self._advance(end)

    def _advance(self, end: int) -> None:
        self.high_watermark = end
        self.log.replicated_to(end)
        if self._uncommitted is not None:
            self._uncommitted.committed_to(end)
        if self.followers:
            for follower in self.followers:
                follower.on_commit()
        if self.waiters:
            self.wake_waiters()

    def flushed(self, appended: Appended, acks: int = -1) -> Awaitable[None] | None:
        """Return what to await before an append is acknowledged, or None.

        With ``acks`` -1 the append must be readable, so that all in-sync replicas have it. Otherwise it must
        be on this disk, if flush.messages or flush.ms ask for that. Awaiting raises KafkaError:
        KAFKA_STORAGE_ERROR if the disk fails, since its contents are then unknown; NOT_LEADER_OR_FOLLOWER if
        the role changes meanwhile.
        """
        last_offset = appended.last_offset
        if last_offset < self.high_watermark:
            return None
        on_disk = None
        if self._owed and last_offset >= self._owed[0]:
            on_disk = asyncio.shield(self._flusher.synced(self, last_offset))
        if acks != -1 or self.role is None:
            return on_disk
        if self._uncommitted is None:
            self._uncommitted = Uncommitted()
        committed = self._uncommitted.wait_for(last_offset)
        return committed if on_disk is None else _both(on_disk, committed)

    # Replication

    def take_role(self, role: ReplicationRole | None) -> None:
        """Set the role, which decides what is committed; None if this is the only replica.

        The high watermark begins at its current value, so that no readable record becomes unreadable.
        Requests that wait for the former role are released. The caller sets the leader epoch.
        """
        self.role = role
        self._update_holds_back()
        self.release_waiters()
        self.advance_high_watermark()

    def release_waiters(self) -> None:
        """Wake all requests that wait for this partition, since it is offline, removed or in another role.

        Produce requests that wait for the high watermark fail with NOT_LEADER_OR_FOLLOWER.
        """
        if self._uncommitted is not None:
            self._uncommitted.fail_all(f"{self} is not led here any more")
            self._uncommitted = None
        self.wake_followers()
        self.wake_waiters()

    def copy(self, batches: Buffer, now_ms: int) -> CopiedRun:
        """Append what the leader of this leader epoch sent. Raises KafkaError; see `LogCopier.append`."""
        copied = self.log.copier.append(batches, self.leader_epoch, now_ms)
        if copied.batches:
            self._flusher.appended(self, copied.size)
            self._hold_back(copied.base_offset, now_ms)
        return copied

    def truncated(self, high_watermark: int) -> None:
        """Adapt to a truncation of the log, which is on the disk: no read may go past its end.

        ``high_watermark`` is its value from before the truncation.
        """
        log = self.log
        self._owed = ()
        self._update_holds_back()
        self.high_watermark = max(min(high_watermark, log.log_end_offset), log.log_start_offset)
        log.replicated_to(self.high_watermark)
        self.wake_followers()
        self.wake_waiters()
        self.advance_high_watermark()

    def wait_for_append(self, waiter: FollowerWaiter, *, follower: bool) -> None:
        """Add a fetch that waits; a ``follower`` also reads records that are not committed."""
        if not follower or self.role is None:
            self.waiters.add(waiter)
            return
        if self.followers is None:
            self.followers = set()
        self.followers.add(waiter)

    def forget_waiter(self, waiter: FollowerWaiter) -> None:
        """Remove a fetch that no longer waits."""
        self.waiters.discard(waiter)
        if self.followers is not None:
            self.followers.discard(waiter)

    def wake_followers(self) -> None:
        """Wake the fetches of followers: there is more to fetch, or other news."""
        followers, self.followers = self.followers, None
        for waiter in followers or ():
            waiter.on_append()

    def readable_to(self, *, committed: bool, follower: bool = False) -> int:
        """Return the offset at which reading ends.

        It is the log end offset for a ``follower``, the last stable offset for a reader of ``committed``
        records, else the high watermark.
        """
        if follower and self.role is not None:
            return self.log.log_end_offset
        return self.last_stable_offset if committed else self.high_watermark

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        committed: bool = False,
        follower: bool = False,
        min_one_batch: bool = True,
        wants_records: bool = True,
    ) -> FileSlice | None:
        """Return whole batches from the one with ``offset`` up to `readable_to`; None if there are none.

        Leading batches without records are skipped unless ``wants_records`` is false, as for a follower.
        Raises NotResident if finding the batches would wait for the disk; the batches themselves need not be
        in memory. Raises OffsetOutOfRange and KafkaError(KAFKA_STORAGE_ERROR).
        """
        bound = self.readable_to(committed=committed, follower=follower)
        if self.log.reader.is_recent(offset):
            return self.log.reader.read(offset, max_bytes, upper_bound=bound, min_one_batch=min_one_batch)
        with CACHED_ONLY:
            return self.log.reader.read(
                offset,
                max_bytes,
                upper_bound=bound,
                min_one_batch=min_one_batch,
                wants_records=wants_records,
            )

    def aborted(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions with records in [start, end), by first offset.

        Readers of committed records skip those. Raises KafkaError(KAFKA_STORAGE_ERROR) and NotResident.
        """
        with CACHED_ONLY:
            return self.log.reader.aborted(start, end)

    @property
    def producers(self) -> ItemsView[int, Producer]:
        """The idempotent producers known here, by producer id."""
        return self.log.producers.producers.items()

    def has_open_transaction(self, producer_id: int, producer_epoch: int | None = None) -> bool:
        """Return True if the producer has an open transaction here, at `producer_epoch` if that is given."""
        return self.log.producers.has_open_transaction(producer_id, producer_epoch)

    def read_all(self) -> Iterator[memoryview]:
        """Yield the whole log in chunks of whole batches, for the replay of a coordinator.

        That includes records that wait for a flush: the coordinator's decisions hold for itself already.
        """
        return self.log.reader.batches(self.log.log_start_offset, self.log.log_end_offset)

    def wake_waiters(self) -> None:
        """Wake the requests that wait for news of this partition."""
        waiters, self.waiters = self.waiters, set()
        for waiter in waiters:
            waiter.on_append()

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


async def _both(on_disk: Awaitable[None], committed: Awaitable[None]) -> None:
    await on_disk
    await committed
