"""Counts the committed records of the source that are not in the target, by the headers of batches.

Offsets say less: control records, aborted transactions and compaction leave gaps between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_client import BatchFetcher, Client, Fetched, TopicPartition
from kafka_client.errors import MillstreamError
from kafka_client.records import BatchHeader

OFFSETS_MAX = 1_000_000
"""Offsets that are read of all partitions together; of the others the number of offsets is the bound."""
SILENCE_MS = 5_000
_LOG_APPEND_TIME = 1


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of the source from `start` up to `end`. The first `copied` of their records are copied."""

    start: int
    end: int
    copied: int


@dataclass(slots=True)
class Uncopied:
    """The number of records that are not copied.

    `appended_ms` is when the source appended the first of them, ms since 1970. It is None without log append
    time: a record's own time may be any.
    """

    records: int = 0
    appended_ms: int | None = None


async def count_uncopied(
    client: Client, spans: Mapping[TopicPartition, Span]
) -> dict[TopicPartition, Uncopied]:
    """Return the records that are not copied of each span that could be read to its end."""
    chosen, budget = {}, OFFSETS_MAX
    for tp, span in sorted(spans.items(), key=lambda each: each[1].end - each[1].start):
        budget -= span.end - span.start
        if budget < 0:
            break
        chosen[tp] = span
    return await _count(client, chosen)


async def _count(client: Client, spans: Mapping[TopicPartition, Span]) -> dict[TopicPartition, Uncopied]:
    left, copied = dict(spans), {tp: span.copied for tp, span in spans.items()}
    counts = {tp: Uncopied() for tp in spans}
    async with BatchFetcher(client, isolation_level="read_committed") as fetcher:
        for tp, span in spans.items():
            fetcher.add(tp, span.start, end=span.end)
        while left:
            try:
                if not (answers := await fetcher.fetch(timeout_ms=SILENCE_MS)):
                    break
            except MillstreamError:
                break  # what is known of the other partitions stays
            for fetched in answers:
                if fetched.tp not in left:
                    continue
                copied[fetched.tp] -= _add(counts[fetched.tp], fetched, left[fetched.tp], copied[fetched.tp])
                if fetched.next_offset >= left[fetched.tp].end:
                    del left[fetched.tp]
                    fetcher.remove(fetched.tp)
    return {tp: count for tp, count in counts.items() if tp not in left}


def _add(count: Uncopied, fetched: Fetched, span: Span, copied: int) -> int:
    """Count what was fetched. Return how many of its records are copied."""
    met = 0
    for header, _ in fetched.batches(on_unreadable=lambda _: None):
        records = _records_in(header, span)
        lost = records - min(copied - met, records)
        met += records - lost
        if lost and not count.records and header.timestamp_type == _LOG_APPEND_TIME:
            count.appended_ms = header.max_timestamp
        count.records += lost
    return met


def _records_in(header: BatchHeader, span: Span) -> int:
    """Return how many records of the batch are in the span, at most."""
    outside = max(span.start - header.base_offset, 0) + max(header.next_offset - span.end, 0)
    return min(header.count, header.next_offset - header.base_offset - outside)
