"""Where a copy goes on: exact, whenever and however the last one ended.

A sync's pair (U, D) of what was not copied yet, and the target's end L, are enough. Only the mirror writes
to the remote topic, and it passes every record on, in order; so the target's records D … L−1 are the
source's next L−D records from U on, and the copy goes on behind them. The source's batches are walked from
U to count them (headers only), and the last of them is compared with the target's last, record by record:
that is the proof that no compaction, retention or foreign write came between. Syncs are written every
second or so, which bounds the walk.

A record acknowledged by the target is thus never copied again, and one that was not is copied: exactly
once, without transactions, after SIGKILL too.

L is the high watermark, and behind it there may be more: batches of a killed mirror that are not replicated
yet, or still on their way. So a copy goes on under the same producer id and epoch, with the sequence number
behind the last record's, which stands in the target's last batch (or in the sync, if there is none). What was
on its way has the very numbers that the same batches get again. Whichever comes second is no news to the
target (KIP-98): if it is ours, it is acknowledged with the offset the first one got. At most five batches of
a partition are on their way, and so many a broker remembers. If they are not the same (the source was
compacted in between, a second mirror is further on) ours are refused, and the place is found anew. Nothing
has to be waited for, and no epoch is raised: that would let both be written.

What this rests on is asserted while copying: every batch must get the offset after the one before
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
from mirror.forward_batch import end_alike, record_count
from mirror.offsets import NO_EPOCH, OffsetSync, ProducerPosition
from mirror.unreadable import UnreadableSkips

PROOF_BYTES = 1 << 20
FETCH_SECONDS = 30


class LogEnds(NamedTuple):
    """Log start and end of a partition; for a source the end is the last stable offset."""

    start: int
    end: int


class Position(NamedTuple):
    """The next offset to read of the source, and the one it will have in the target.

    `producer`: the id and epoch it is produced under; None if nothing was ever produced, or they are not
    known. `leader_epoch`: the source's, of the record before (-1: not known).
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
    """How many source records from the sync on the target holds already; an impossible state is raised.

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
    """The position after the `copied` records behind the sync (see `check_sync`), or PositionUnprovable."""
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
        is_alike = written is None or end_alike(last, written, sync.next_upstream)
    if not is_alike:
        raise PositionUnprovable(tp, f"the target's last record is not the source's at {position - 1}")
    producer = _behind(written) or (sync.producer and sync.producer.after(copied))
    leader_epoch = read_header(last).partition_leader_epoch
    return Position(position, target_ends.end, producer, leader_epoch)


async def producer_at_end(target: Client, remote: TopicPartition, ends: LogEnds) -> ProducerPosition | None:
    """The producer id and epoch of the target's last batch, and the sequence number behind it."""
    return _behind(await _last_batch(target, remote, ends))


def _behind(batch: memoryview | None) -> ProducerPosition | None:
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
    """Batches from the sync on until they hold `copied` records: how many, the offset behind, the last.

    Batches that are skipped, and batches without a header, were not copied.
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
    """Pass over a batch without a header that makes sense: no mirror passes such a batch on."""


async def _last_batch(target: Client, remote: TopicPartition, ends: LogEnds) -> memoryview | None:
    """The target's last batch; None if it was deleted there, or does not come in time."""
    if ends.start >= ends.end:
        return None
    async with BatchFetcher(target, max_partition_fetch_bytes=PROOF_BYTES, fetch_sessions=False) as fetcher:
        fetcher.add(remote, ends.end - 1)
        for fetched in await fetcher.fetch(timeout_ms=FETCH_SECONDS * 1000):
            for at, header in iter_batches(fetched.buffer):
                if header.next_offset == ends.end:
                    return fetched.buffer[at : at + header.size]
    return None
