"""Resolves offset bounds to offset ranges: requests offsets, and checks for lost data.

This runs where Spark plans a read. The ranges have explicit offsets, so every task reads the same records
again if Spark runs it again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from kafka_client import Admin, Client, OffsetSpec, TopicPartition
from kafka_client.errors import ConfigError
from plugins.spark.data_loss import LogEndsEarly, RecordsPurged, report
from plugins.spark.log_range import LogRange
from plugins.spark.offset_choice import OffsetBound, Which
from plugins.spark.options import ReadOptions


async def resolve_ranges(options: ReadOptions) -> list[LogRange]:
    """Return `find_ranges` by a client of its own."""
    if options.assigned == {}:
        return []
    async with Client(options.bootstrap_servers, **options.client) as client:
        return await find_ranges(client, options)


async def find_ranges(client: Client, options: ReadOptions) -> list[LogRange]:
    """Return the ranges to read, by topic and partition; a range may be empty.

    Raises DataLost if an offset is not in the log; without failOnDataLoss the range is cut to the log. Raises
    ConfigError if the options' offsets do not match the partitions or end before they start, and KafkaError.
    """
    ids = await find_partitions(client, options)
    tps = list(ids)
    earliest = await list_offsets(client, options, dict.fromkeys(tps, "earliest"))
    latest = await list_offsets(client, options, dict.fromkeys(tps, "latest"))
    starts = await find_offsets(client, options, "starting", tps, earliest, latest)
    ends = await find_offsets(client, options, "ending", tps, earliest, latest)
    ranges = []
    for tp in tps:
        planned = LogRange(tp.topic, tp.partition, starts[tp], ends[tp], ids[tp])
        _check_order(planned, latest[tp])
        ranges.append(within_log(planned, earliest[tp], latest[tp], options.fail_on_data_loss))
    return ranges


def within_log(log_range: LogRange, earliest: int, latest: int, fail_on_data_loss: bool) -> LogRange:
    """Return the range if the log has all of it.

    Otherwise raises RecordsPurged or LogEndsEarly, or without `fail_on_data_loss` logs it and returns the
    part that the log has.
    """
    tp, needed = log_range.tp, log_range.start < log_range.end
    if needed and log_range.start < earliest:
        report(RecordsPurged(*tp, log_range.start, earliest), fail_on_data_loss)
    if log_range.start > latest or (needed and log_range.end > latest):
        report(LogEndsEarly(*tp, max(log_range.start, log_range.end), latest), fail_on_data_loss)
    start = min(max(log_range.start, earliest), latest)
    return log_range._replace(start=start, end=min(max(log_range.end, start), latest))


def _check_order(r: LogRange, latest: int) -> None:
    """Raise ConfigError if the range ends before its start; a start after the log's end is lost data."""
    if r.end < r.start <= latest:
        raise ConfigError(
            "startingOffsets", r.start, f"is greater than the end {r.end} for {r.tp}: start before the end"
        )


async def find_partitions(
    client: Client, options: ReadOptions, *, allow_missing: bool = False
) -> dict[TopicPartition, bytes]:
    """Return the partitions to read in order, each with its topic's id, as the cluster has them now.

    The client's cache does not count: its connection is pooled, and the topic may be another by now.
    Raises ConfigError for an assigned partition that does not exist, KafkaError for a topic that does not.
    """
    metadata = await client.metadata(_topics(options), refresh=True, allow_missing=allow_missing)
    if options.assigned is not None:
        chosen = [TopicPartition(t, p) for t, ps in sorted(options.assigned.items()) for p in sorted(ps)]
        existing = set(metadata.partitions())
        missing = [str(tp) for tp in chosen if tp not in existing]
        if missing and not allow_missing:
            raise ConfigError("assign", ", ".join(missing), "no such partition")
        chosen = [tp for tp in chosen if tp in existing]
    elif options.pattern is not None:
        pattern = re.compile(options.pattern)
        topics = metadata.topics.items()
        names = sorted(name for name, t in topics if not t.is_internal and pattern.fullmatch(name))
        chosen = metadata.partitions(names)
    else:
        chosen = metadata.partitions(options.topics)
    return {tp: metadata.topics[tp.topic].topic_id for tp in chosen}


def _topics(options: ReadOptions) -> Collection[str] | None:
    return list(options.assigned) if options.assigned is not None else options.topics


async def find_offsets(
    client: Client,
    options: ReadOptions,
    which: Which,
    tps: Collection[TopicPartition],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Return the offsets that the options' starting or ending bounds mean now. Raises ConfigError."""
    choice = options.starting if which == "starting" else options.ending
    bounds = choice.bounds(tps, f"{which}Offsets")
    moments: dict[TopicPartition, OffsetSpec] = {
        tp: bound.value for tp, bound in bounds.items() if bound.kind == "timestamp"
    }
    by_time = await list_offsets(client, options, moments) if moments else {}
    committed = await _committed(client, options, bounds)
    offsets = {}
    for tp, bound in bounds.items():
        if bound.kind == "group":
            offsets[tp] = committed.get(tp, earliest[tp])
        elif bound.kind != "timestamp":
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


async def _committed(
    client: Client, options: ReadOptions, bounds: Mapping[TopicPartition, OffsetBound]
) -> dict[TopicPartition, int]:
    """Return the group's committed offsets of the partitions that start there and have one."""
    tps = [tp for tp, bound in bounds.items() if bound.kind == "group"]
    if not tps:
        return {}
    assert options.group_id is not None
    listed = await Admin(client).list_group_offsets(options.group_id, tps)
    return {tp: position.offset for tp, position in listed.items()}


async def list_offsets(
    client: Client, options: ReadOptions, specs: Mapping[TopicPartition, OffsetSpec]
) -> dict[TopicPartition, int]:
    """Return each partition's offset by its spec; with read_committed the end is the last stable offset."""
    listed = await Admin(client).list_offsets(specs, isolation_level=options.isolation_level)
    return {tp: result.offset for tp, result in listed.items()}
