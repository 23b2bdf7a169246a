"""Computes where a copy resumes, exactly, whenever and however the last one ended.

A sync's pair (U, D) of the first record that was not copied, and the target's end L, are enough. Only the
mirror writes to the remote topic, and it sends every record in order. So the target's records D … L−1 are the
source's next L−D records from U on, and the copy resumes after them. The source's batches from U on are read
and counted by their headers. The last of them is compared with the target's last batch, record by record.
This proves that no compaction, retention or foreign write came between. A sync is written about every second,
which bounds the number of batches to count.

A record that the target acknowledged is never copied again, and any other record is copied: exactly once,
without transactions, even after SIGKILL.

L is the high watermark, so the target may have more: batches of a killed mirror that are not replicated yet,
or still in flight. The copy resumes with the same producer id and epoch. Its sequence number follows the last
record's in the target's last batch, or comes from the sync if there is no batch. So the same batches get the
sequence numbers they had before, and the target appends only one of the two (KIP-98). If the second is ours,
it is acknowledged with the first one's offset. A broker remembers five batches per producer, and no more than
five batches of a partition are in flight. If the batches differ (the source was compacted in between, a
second mirror is ahead), ours are refused, and the position is computed again. Nothing has to be waited for.
The epoch is not raised, because then the target would append both.

The copy asserts the assumption behind this: every batch must get the offset after the one before
(`ForeignWrite`).
"""

from __future__ import annotations

from typing import NamedTuple

from kafka_client import BatchFetcher, Client, Identity, TopicPartition
from kafka_client.errors import UnreadableBatch
from kafka_client.fetcher.parts import reading
from kafka_client.records import iter_batches, read_header
from mirror.errors import (
    PositionUnprovable,
    SourcePurged,
    SourceRecreated,
    TargetNotEmpty,
    TargetRecreated,
    TargetTruncated,
)
from mirror.forward_batch import have_equal_ends, record_count
from mirror.offsets import NO_EPOCH, OffsetSync, ProducerPosition
from mirror.unreadable import UnreadableSkips

PROOF_BYTES = 1 << 20
FETCH_SECONDS = 30


class LogEnds(NamedTuple):
    """Log start and end of a partition.

    The end is the source's last stable offset or the target's high watermark.
    """

    start: int
    end: int


class Position(NamedTuple):
    """The next offset to read from the source, and the offset that record will have in the target.

    `producer` has the producer id, epoch and sequence number to resume with; None if unknown, or if nothing
    was produced. `leader_epoch` is the source's leader epoch of the record before, -1 if unknown.
    """

    upstream: int
    downstream: int
    producer: ProducerPosition | None = None
    leader_epoch: int = NO_EPOCH


def check_sync(
    tp: TopicPartition,
    sync: OffsetSync | None,
    topic_id: bytes,
    remote_topic_id: bytes,
    source: LogEnds,
    target: LogEnds,
) -> int:
    """Return how many records after the sync the target has already.

    Raises TargetNotEmpty, TargetRecreated, TargetTruncated, SourcePurged, SourceRecreated.
    """
    if sync is None:
        if target.end > 0:
            raise TargetNotEmpty(tp, f"the target has {target.end} records and there is no offset sync")
        return 0
    if any(sync.topic_id) and any(topic_id) and sync.topic_id != topic_id:
        raise SourceRecreated(
            tp, f"topic id {topic_id.hex()}, it was {sync.topic_id.hex()} when it was copied"
        )
    if any(sync.remote_topic_id) and any(remote_topic_id) and sync.remote_topic_id != remote_topic_id:
        raise TargetRecreated(
            tp, "the remote topic was deleted and made again since; what was copied before is gone"
        )
    if target.end < sync.next_downstream:
        raise TargetTruncated(
            tp, f"the target ends at {target.end}, {sync.next_downstream} records were copied"
        )
    if source.end < sync.next_upstream:
        raise SourceRecreated(
            tp, f"the source ends at {source.end}, it was copied up to {sync.next_upstream}"
        )
    if target.end > sync.next_downstream and source.start > sync.next_upstream:
        raise SourcePurged(
            tp, f"the source starts at {source.start}, the last sync is at {sync.next_upstream}"
        )
    return target.end - sync.next_downstream


async def resume(
    source: Client,
    target: Client,
    tp: TopicPartition,
    remote: TopicPartition,
    sync: OffsetSync,
    copied: int,
    ends: tuple[LogEnds, LogEnds],
    skips: UnreadableSkips,
) -> Position:
    """Return the position after the `copied` records that follow the sync (see `check_sync`).

    Raises PositionUnprovable if the source's records are not those of the target.
    """
    source_ends, target_ends = ends
    if not copied:
        producer = sync.producer or await producer_at_end(target, remote, target_ends)
        return Position(sync.next_upstream, target_ends.end, producer, sync.leader_epoch)
    counted, position, last = await _walk(source, sync, copied, source_ends.end, skips)
    if counted != copied:
        raise PositionUnprovable(
            tp, f"the target holds {copied} records since the last sync, the source's batches give {counted}"
        )
    written = await _last_batch(target, remote, target_ends)
    if written is None and target_ends.start < target_ends.end:
        raise PositionUnprovable(tp, f"the target's last record at {target_ends.end - 1} cannot be read")
    # A last batch that was deleted in the target cannot be compared, and is trusted.
    with reading(tp, read_header(last)):
        is_equal = written is None or have_equal_ends(last, written, sync.next_upstream)
    if not is_equal:
        raise PositionUnprovable(tp, f"the target's last record is not the source's at {position - 1}")
    producer = _producer_after(written) or (sync.producer and sync.producer.after(copied))
    leader_epoch = read_header(last).partition_leader_epoch
    return Position(position, target_ends.end, producer, leader_epoch)


async def producer_at_end(target: Client, remote: TopicPartition, ends: LogEnds) -> ProducerPosition | None:
    """Return the producer id and epoch of the target's last batch and the next sequence number, or None."""
    return _producer_after(await _last_batch(target, remote, ends))


def _producer_after(batch: memoryview | None) -> ProducerPosition | None:
    if batch is None:
        return None
    header = read_header(batch)
    if header.producer_id < 0 or header.base_sequence < 0:
        return None
    last = ProducerPosition(Identity(header.producer_id, header.producer_epoch), header.last_sequence)
    return last.after(1)


async def _walk(
    source: Client, sync: OffsetSync, copied: int, end: int, skips: UnreadableSkips
) -> tuple[int, int, memoryview]:
    """Read the source's batches from the sync on until they have `copied` records.

    Return the number of records, the offset after them and the last batch. Skipped batches and batches
    without a readable header do not count, as they were not copied.
    """
    counted, position = 0, sync.next_upstream
    async with BatchFetcher(source, isolation_level="read_committed") as fetcher:
        fetcher.add(sync.tp, position, sync.leader_epoch)
        while position < end:
            for fetched in await fetcher.fetch():
                for header, batch in fetched.batches(on_unreadable=_not_copied):
                    if skips.named_and_unreadable(sync.tp, header, batch):
                        continue
                    with reading(sync.tp, header):
                        counted += record_count(header, batch, sync.next_upstream)
                    if counted >= copied:
                        return counted, header.next_offset, batch
                position = fetched.next_offset
    return counted, position, memoryview(b"")


def _not_copied(unreadable: UnreadableBatch) -> None:
    """Ignore a batch whose header is invalid: no mirror copies such a batch."""


async def _last_batch(target: Client, remote: TopicPartition, ends: LogEnds) -> memoryview | None:
    """Return the target's last batch, or None if it was deleted or is not returned in time."""
    if ends.start >= ends.end:
        return None
    async with BatchFetcher(target, max_partition_fetch_bytes=PROOF_BYTES, fetch_sessions=False) as fetcher:
        fetcher.add(remote, ends.end - 1)
        for fetched in await fetcher.fetch(timeout_ms=FETCH_SECONDS * 1000):
            for at, header in iter_batches(fetched.buffer):
                if header.next_offset == ends.end:
                    return fetched.buffer[at : at + header.size]
    return None
