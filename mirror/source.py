"""Copies batches from the source to the target, each partition to the partition of the same number.

No work is done per record. One task calls `copy`, and acknowledgements are handled in order as they arrive. A
partition that cannot be copied is removed, and `link` quarantines it. No partition may use more than its
share of the memory for batches in flight. A partition whose batches stay unacknowledged for too long, while
others are acknowledged, is removed too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from kafka_client import NO_TIMEOUT_MS, BatchFetcher, BatchProducer, Client, Fetched, Identity, TopicPartition
from kafka_client.errors import KafkaError, LogTruncated, MillstreamError, OffsetOutOfRange, UnreadableBatch
from kafka_client.fetcher.parts import reading
from mirror.claims import Claims
from mirror.errors import (
    MirrorError,
    NotAcked,
    NotFetched,
    OutOfSequence,
    RecordsLost,
    SourceRecreated,
    SourceTruncated,
)
from mirror.forward_batch import Passed, pass_on
from mirror.offsets import OffsetSyncs, ProducerPosition
from mirror.partition import InFlight, PartitionCopy, refused
from mirror.position import Position
from mirror.unreadable import UnreadableSkips, explain_unreadable

BUFFER_MEMORY = 64 << 20
SHARE_MIN = 1 << 20
"""Bytes a partition may always have in flight; a fetch returns up to this much of a partition."""
REQUEST_SIZE_MAX = 16 << 20
"""Bytes of one request. The target itself limits the size of a batch (`max.message.bytes`)."""
FETCH_WAIT_MS = 500
CLOSE_MS = 5_000
ACK_SECONDS = 30.0
"""How long a batch may wait for its acknowledgement while other partitions get theirs."""


class _Passing(NamedTuple):
    """A batch to send, and the size, timestamp and leader epoch of the source batch."""

    passed: Passed
    size: int
    max_timestamp: int
    leader_epoch: int


class _Prepared(NamedTuple):
    """The fetched batches of one partition, ready to be sent; `position` is the offset after them."""

    copy: PartitionCopy
    passing: list[_Passing]
    position: int


class MirrorSource:
    """The copying part of a flow. Call `open`, then `copy` repeatedly, then `close`.

    The error of one partition goes to `on_failure` after the partition was removed. An error raised by `copy`
    concerns all partitions.
    """

    def __init__(
        self,
        source: Client,
        target: Client,
        syncs: OffsetSyncs,
        *,
        sync_interval: float,
        clock: Callable[[], float],
        on_failure: Callable[[MirrorError], None],
        skips: UnreadableSkips | None = None,
        claims: Callable[[Identity], Claims] | None = None,
    ) -> None:
        self._syncs = syncs
        self._sync_interval = sync_interval
        self._clock = clock
        self._on_failure = on_failure
        self._skips = skips or UnreadableSkips()
        self._new_claims = claims
        self._claims: Claims | None = None
        self._synced_at = self._acked_at = clock()
        self._fetcher = BatchFetcher(
            source, isolation_level="read_committed", fetch_max_wait_ms=FETCH_WAIT_MS
        )
        self._source = source
        self._producer = BatchProducer(
            target,
            linger_ms=0,
            max_request_size=REQUEST_SIZE_MAX,
            buffer_memory=BUFFER_MEMORY,
            delivery_timeout_ms=NO_TIMEOUT_MS,
            halt_on_failure=True,
        )
        self.copies: dict[TopicPartition, PartitionCopy] = {}
        self._unacked: set[TopicPartition] = set()
        self._changed: set[TopicPartition] = set()
        """Partitions with a batch sent or acknowledged since the last `take_acks`."""
        self._unsynced: set[TopicPartition] = set()
        """Partitions with an acknowledgement since their last sync; the others need no new sync."""
        self._full: set[TopicPartition] = set()
        """Partitions that are paused because they have used up their share of the memory."""
        self._sending: TopicPartition | None = None
        """The partition whose batch is being handed to the producer, which may have to wait for memory."""

    async def open(self) -> None:
        """Start the producer."""
        await self._producer.start()
        if self._new_claims is not None:
            self._claims = self._new_claims(self._producer.identity)

    async def follow_claims(self) -> None:
        """Read which partitions other mirrors have begun. Call this at times."""
        if self._claims is not None:
            await self._claims.follow()

    def can_add(self, remote: TopicPartition) -> bool:
        """Return True if no batch sent before `remote` was removed is still in flight."""
        return self._producer.is_idle(remote)

    def add(
        self,
        tp: TopicPartition,
        remote: TopicPartition,
        topic_id: bytes,
        remote_topic_id: bytes,
        position: Position,
        end: int,
    ) -> None:
        """Copy this partition too, from `position` on. `end` is the source's last stable offset.

        See `can_add`.
        """
        producer = position.producer or ProducerPosition(self._producer.identity, 0)
        self._producer.continue_at(remote, producer.identity, producer.sequence)
        self.copies[tp] = PartitionCopy(
            tp=tp,
            remote=remote,
            position=position.upstream,
            downstream=position.downstream,
            identity=producer.identity,
            sequence=producer.sequence,
            topic_id=topic_id,
            remote_topic_id=remote_topic_id,
            end=end,
            copied=position.upstream,
            leader_epoch=position.leader_epoch,
        )
        self.copies[tp].source.answered(end, self._clock())
        self._fetcher.add(tp, position.upstream, position.leader_epoch)

    def remove(self, tp: TopicPartition) -> None:
        """Stop copying this partition. Its position is computed from the target when it is added again."""
        copy = self.copies.pop(tp)
        self._unacked.discard(tp)
        self._changed.discard(tp)
        self._unsynced.discard(tp)
        self._full.discard(tp)
        self._fetcher.remove(tp)
        copy.forget()
        self._producer.abandon(copy.remote)

    def fail(self, error: MirrorError) -> None:
        """Remove a partition, and report the error."""
        self.remove(error.tp)
        self._on_failure(error)

    def check_topic(self, tp: TopicPartition, topic_id: bytes) -> None:
        """Raise SourceRecreated if the topic was deleted and created again, since the position is the old
        one's.
        """
        copied = self.copies[tp].topic_id
        if any(topic_id) and any(copied) and topic_id != copied:
            raise SourceRecreated(tp, f"topic id {topic_id.hex()}, it was {copied.hex()} when copying began")

    async def copy(self, *, timeout_ms: int = FETCH_WAIT_MS) -> None:
        """Fetch once and send the batches. Return after `timeout_ms` if there is nothing to fetch."""
        fetched = await self._fetch(timeout_ms)
        todo = list(filter(None, map(self._prepare, fetched)))
        await self._write_first_syncs(each.copy for each in todo if each.passing)
        for each in todo:
            await self._send(each)
        self.take_acks()
        if self._clock() - self._synced_at >= self._sync_interval:
            await self._write_syncs()

    def take_acks(self) -> None:
        """Handle the acknowledgements that have arrived, and pause or resume partitions by their share.

        Only partitions with a batch sent or acknowledged since the last call are checked.
        """
        share, now = self._share(), self._clock()
        changed, self._changed = self._changed, set()
        for tp in changed:
            copy = self.copies.get(tp)
            if copy is None:
                continue  # acknowledged after it was removed
            try:
                if copy.take_acks(now):
                    self._acked_at = now
                    self._unsynced.add(tp)
            except MirrorError as e:
                self.fail(e)
                continue
            if not copy.in_flight:
                self._unacked.discard(tp)
            if copy.in_flight_bytes >= share and tp not in self._full:
                self._full.add(tp)
                self._fetcher.pause([tp])
            elif copy.in_flight_bytes <= share // 2 and tp in self._full:
                self._full.discard(tp)
                self._fetcher.resume([tp])

    def _share(self) -> int:
        return max(BUFFER_MEMORY // max(len(self.copies), 1), SHARE_MIN)

    def statistics(self) -> dict[str, int]:
        """Return the counts of partitions, of paused partitions and of skipped batches and records.

        The in_flight_bytes are those of all batches sent and not acknowledged. Their bounds, for all
        partitions and for one, follow.
        """
        return {
            "partitions": len(self.copies),
            "unreadable_batches_skipped": self._skips.batches,
            "unreadable_records_skipped": self._skips.records,
            "partitions_held_back": len(self._full),
            "in_flight_bytes": sum(self.copies[tp].in_flight_bytes for tp in self._unacked),
            "in_flight_bytes_max": BUFFER_MEMORY,
            "partition_in_flight_bytes_max": self._share(),
        }

    def fail_unacked(self) -> None:
        """Fail partitions without an acknowledgement for `ACK_SECONDS` while others got theirs.

        Call this regularly, from another task than `copy`, which may be waiting for the memory of these
        partitions. A target that acknowledges nothing at all is unreachable, and no partition fails.
        """
        self.take_acks()
        now = self._clock()
        for copy in [self.copies[tp] for tp in self._unacked]:
            oldest = copy.in_flight[0].sent_at
            if now - oldest >= ACK_SECONDS and self._acked_at > oldest:
                waited = f"the batch at {copy.in_flight[0].passed.first_offset} for {now - oldest:.0f} s"
                self.fail(NotAcked(copy.tp, f"{copy.remote} has not acknowledged {waited}"))

    def stall_reason(self, tp: TopicPartition) -> str:
        """Return why a partition with records to copy is not copied any further."""
        copy, sending = self.copies[tp], self._sending
        if copy.source.silence is not None:
            return f"the source does not answer: {copy.source.silence}"
        if copy.in_flight or sending == tp:
            trouble = self._producer.trouble(copy.remote)
            return f"the target does not acknowledge: {trouble or 'no answer to a batch'}"
        if reason := self._syncs.trouble():
            return reason
        if sending is not None:
            trouble = self._producer.trouble(self.copies[sending].remote) if sending in self.copies else None
            return f"waiting for memory of batches that the target does not acknowledge: {trouble or sending}"
        return f"the source has returned no record from offset {copy.position} on"

    def is_at(self, tp: TopicPartition, end: int) -> bool:
        """Return True if everything before this upstream offset was read and acknowledged."""
        copy = self.copies[tp]
        return not copy.in_flight and copy.position >= end

    async def drain(self) -> None:
        """Wait until everything sent is acknowledged, and write a sync of it."""
        await self._producer.flush()
        self._changed |= self._unacked
        self.take_acks()
        await self._write_syncs()
        await self._syncs.flush()

    async def close(self) -> None:
        """Stop. The next start computes which unacknowledged batches were appended."""
        await self._fetcher.close()
        await self._producer.close(timeout_ms=CLOSE_MS)
        for copy in self.copies.values():
            copy.forget()

    async def _fetch(self, timeout_ms: int) -> list[Fetched]:
        try:
            return await self._fetcher.fetch(timeout_ms=timeout_ms)
        except OffsetOutOfRange as e:
            await self._fail_out_of_range(e)
        except MillstreamError as e:
            failed = [
                tp for tp, error in self._fetcher.failures().items() if error is e and tp in self.copies
            ]
            if not failed:
                raise
            for tp in failed:
                self.fail(NotFetched(tp, str(e)))
        return []

    async def _fail_out_of_range(self, error: OffsetOutOfRange) -> None:
        tp = TopicPartition(error.topic, error.partition)
        if tp not in self.copies:
            return
        if isinstance(error, LogTruncated):
            self.fail(SourceTruncated(tp, str(error)))
            return
        lost = f"offset {error.offset} is wanted, the source has {error.start} to {error.end}"
        try:
            self.check_topic(tp, (await self._source.topic(tp.topic)).topic_id)
            self.fail(RecordsLost(tp, lost))
        except MirrorError as e:
            self.fail(e)
        except MillstreamError:
            self.fail(RecordsLost(tp, lost))

    def _prepare(self, fetched: Fetched) -> _Prepared | None:
        """Return the batches to send of a fetched partition, or None if the partition was removed."""
        copy = self.copies.get(fetched.tp)
        if copy is None:
            return None
        copy.end = max(copy.end, fetched.last_stable_offset, fetched.next_offset)
        try:
            self.check_topic(copy.tp, fetched.topic_id)
            return _Prepared(copy, list(_passing(fetched, self._skips)), fetched.next_offset)
        except UnreadableBatch as e:
            self.fail(NotFetched(copy.tp, explain_unreadable(e)))
        except MirrorError as e:
            self.fail(e)
        return None

    async def _send(self, prepared: _Prepared) -> None:
        copy = prepared.copy
        for passed, size, max_timestamp, leader_epoch in prepared.passing:
            if not self._is_copied(copy):
                return  # removed while this waited for memory
            try:
                self._sending = copy.tp
                future = await self._producer.send_batch(*copy.remote, passed.batch)
            except MillstreamError as e:
                if not self._is_copied(copy):
                    return
                if not isinstance(e, KafkaError):
                    raise
                self.fail(refused(copy, passed, e))
                return
            finally:
                self._sending = None
            copy.add(InFlight(passed, size, max_timestamp, leader_epoch, self._clock(), future))
            self._unacked.add(copy.tp)  # each time: acks are taken while this waits for memory
            self._changed.add(copy.tp)
            future.add_done_callback(partial(self._acked, copy.tp))
        copy.read_up_to(prepared.position)

    def _acked(self, tp: TopicPartition, _: asyncio.Future[int | None]) -> None:
        self._changed.add(tp)

    def _is_copied(self, copy: PartitionCopy) -> bool:
        return self.copies.get(copy.tp) is copy

    async def _write_first_syncs(self, copies: Iterable[PartitionCopy]) -> None:
        """Write a sync for each copy whose producer identity is in none yet; call this before producing."""
        now = int(self._clock() * 1000)
        unsynced = {
            copy.tp: copy for copy in copies if not copy.is_identity_synced(self._syncs.latest(copy.tp))
        }
        written = [await self._syncs.write(copy.first_sync(), now) for copy in unsynced.values()]
        offsets = await asyncio.gather(*written)
        if self._claims is None or not unsynced:
            return
        for tp in await self._claims.lost(dict(zip(unsynced, offsets, strict=True))):
            if tp in self.copies:
                self.fail(OutOfSequence(tp, "another mirror of the flow began to copy it just before"))

    async def _write_syncs(self) -> None:
        self._synced_at = self._clock()
        for tp in list(self._unsynced):
            copy = self.copies.get(tp)
            if copy is None:
                continue  # removed while another's sync was written
            self._unsynced.discard(tp)  # later acknowledgements add it again
            sync = copy.sync()
            if sync is not None and sync != self._syncs.latest(copy.tp):
                await self._syncs.write(sync, int(self._synced_at * 1000))


def _passing(fetched: Fetched, skips: UnreadableSkips) -> Iterator[_Passing]:
    """Yield what to send, without the unreadable batches that `skips` names. Raises UnreadableBatch."""
    for header, batch in fetched.batches(on_unreadable=skips.skip):
        if unreadable := skips.named_and_unreadable(fetched.tp, header, batch):
            skips.skip(unreadable)
            continue
        with reading(fetched.tp, header):
            passed = pass_on(header, batch, fetched.position)
        if passed is not None:
            yield _Passing(passed, header.size, header.max_timestamp, header.partition_leader_epoch)
