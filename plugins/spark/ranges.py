"""Resolves offset bounds to offset ranges: requests offsets, checks for lost data, splits large ranges.

This runs where Spark plans a read. The ranges have explicit offsets, so every task reads the same records
again if Spark runs it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kafka_client import Admin, Client, OffsetSpec, TopicPartition
from kafka_client.errors import ConfigError
from plugins.spark.errors import DataLost
from plugins.spark.options import OffsetBound, OffsetChoice, ReadOptions


class LogRange(NamedTuple):
    """Offsets of one partition from `start` up to, but not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int


async def resolve_ranges(options: ReadOptions) -> list[LogRange]:
    """Return the ranges to read, by topic and partition; a range may be empty.

    Raises DataLost if an offset is not in the log; without failOnDataLoss the range is cut to the log. Raises
    ConfigError if the options' offsets do not match the partitions, and KafkaError.
    """
    if options.assigned == {}:
        return []
    async with Client(options.bootstrap_servers, **options.client) as client:
        tps = await _partitions(client, options)
        admin = Admin(client)
        earliest = await _listed(admin, dict.fromkeys(tps, "earliest"), options)
        latest = await _listed(admin, dict.fromkeys(tps, "latest"), options)
        starts = await _offsets(admin, options, "starting", tps, earliest, latest)
        ends = await _offsets(admin, options, "ending", tps, earliest, latest)
    ranges = (LogRange(tp.topic, tp.partition, starts[tp], ends[tp]) for tp in tps)
    return [within_log(r, earliest[_tp(r)], latest[_tp(r)], options.fail_on_data_loss) for r in ranges]


def within_log(log_range: LogRange, earliest: int, latest: int, fail_on_data_loss: bool) -> LogRange:
    """Return the range if the log has all of it.

    Otherwise raises DataLost, or without `fail_on_data_loss` returns the part that the log has.
    """
    if fail_on_data_loss and log_range.start < log_range.end:
        if log_range.start < earliest:
            raise DataLost(log_range.topic, log_range.partition, log_range.start, earliest)
        if log_range.end > latest:
            raise DataLost(log_range.topic, log_range.partition, log_range.end, latest)
    start = min(max(log_range.start, earliest), latest)
    return log_range._replace(start=start, end=min(max(log_range.end, start), latest))


def split_ranges(
    ranges: Iterable[LogRange], min_partitions: int | None = None, max_records: int | None = None
) -> list[LogRange]:
    """Split ranges so that none has more than `max_records`, and there are about `min_partitions`.

    As in Spark's Kafka source, large ranges are split into tasks in proportion to their size.
    """
    nonempty = [r for r in ranges if r.start < r.end]
    pieces = [
        piece
        for r in nonempty
        for piece in _cut(r, -(-(r.end - r.start) // max_records) if max_records else 1)
    ]
    if not min_partitions or len(pieces) >= min_partitions:
        return pieces
    total = sum(r.end - r.start for r in pieces)
    return [piece for r in pieces for piece in _cut(r, round((r.end - r.start) / total * min_partitions))]


def _cut(whole: LogRange, count: int) -> list[LogRange]:
    count = max(1, min(count, whole.end - whole.start))
    size = whole.end - whole.start
    edges = [whole.start + size * i // count for i in range(count + 1)]
    return [whole._replace(start=a, end=b) for a, b in pairwise(edges)]


def _tp(r: LogRange) -> TopicPartition:
    return TopicPartition(r.topic, r.partition)


async def _partitions(client: Client, options: ReadOptions) -> list[TopicPartition]:
    if options.assigned is not None:
        chosen = [
            TopicPartition(topic, p) for topic, ps in sorted(options.assigned.items()) for p in sorted(ps)
        ]
        existing = set((await client.metadata(options.assigned)).partitions())
        missing = [str(tp) for tp in chosen if tp not in existing]
        if missing:
            raise ConfigError("assign", ", ".join(missing), "no such partition")
        return chosen
    if options.pattern is not None:
        pattern = re.compile(options.pattern)
        everything = await client.metadata()
        names = [
            name
            for name, topic in everything.topics.items()
            if not topic.is_internal and pattern.fullmatch(name)
        ]
        return everything.partitions(sorted(names))
    assert options.topics is not None
    return (await client.metadata(options.topics)).partitions(options.topics)


async def _offsets(
    admin: Admin,
    options: ReadOptions,
    which: str,
    tps: Sequence[TopicPartition],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    choice = options.starting if which == "starting" else options.ending
    extra = sorted((choice.each or {}).keys() - set(tps))
    if extra:
        named = ", ".join(str(tp) for tp in extra)
        raise ConfigError(f"{which}Offsets", named, "names partitions that are not read: name those that are")
    bounds = {tp: _bound_of(choice, tp, f"{which}Offsets") for tp in tps}
    moments: dict[TopicPartition, OffsetSpec] = {
        tp: bound.value for tp, bound in bounds.items() if bound.kind == "timestamp"
    }
    by_time = await _listed(admin, moments, options) if moments else {}
    offsets = {}
    for tp, bound in bounds.items():
        if bound.kind != "timestamp":
            offsets[tp] = {"earliest": earliest[tp], "latest": latest[tp]}.get(bound.kind, bound.value)
        elif by_time[tp] >= 0:
            offsets[tp] = by_time[tp]
        elif which == "ending" or options.no_match_is_latest:
            offsets[tp] = latest[tp]
        else:
            key = "startingTimestamp" if choice.everywhere else "startingOffsetsByTimestamp"
            allowed = "startingOffsetsByTimestampStrategy=latest reads nothing there then"
            raise ConfigError(key, bound.value, f"{tp} has no record at or after it; {allowed}")
    return offsets


def _bound_of(choice: OffsetChoice, tp: TopicPartition, key: str) -> OffsetBound:
    if choice.everywhere is not None:
        return choice.everywhere
    bound = (choice.each or {}).get(tp)
    if bound is None:
        raise ConfigError(
            key, "", f"names no offset for {tp}; name all partitions, -2 is earliest, -1 latest"
        )
    return bound


async def _listed(
    admin: Admin, specs: Mapping[TopicPartition, OffsetSpec], options: ReadOptions
) -> dict[TopicPartition, int]:
    listed = await admin.list_offsets(specs, isolation_level=options.isolation_level)
    return {tp: result.offset for tp, result in listed.items()}
