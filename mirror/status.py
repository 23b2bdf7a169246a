"""The progress of a flow's partitions, as it is reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_client import TopicPartition
from mirror.partition import PartitionCopy
from mirror.stalls import Stall


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """Progress of one partition.

    `position` is an offset of the source; this process copied `records`, `bytes`. `lag_records` and
    `lag_seconds` are None while the source does not answer. `lag_seconds` is how long ago the target had
    everything, and None if that is unknown. `rpo_seconds` bounds what a failover loses now. `stalled` is why
    the partition stands still, `stalled_since` since when, None if it does not. `silence` is why the source
    did not answer for it last, None if it did.
    """

    remote: TopicPartition
    position: int
    records: int
    bytes: int
    lag_records: int | None
    lag_seconds: float | None
    rpo_seconds: float | None = None
    stalled: str | None = None
    stalled_since: float | None = None
    silence: str | None = None


def statuses(
    copies: Mapping[TopicPartition, PartitionCopy], stalled: Mapping[TopicPartition, Stall], now: float
) -> dict[TopicPartition, PartitionStatus]:
    """Return the progress of every copied partition, by source partition."""
    return {
        tp: PartitionStatus(
            copy.remote,
            copy.copied,
            copy.records,
            copy.bytes,
            copy.lag_records(),
            copy.lag_seconds(now),
            copy.rpo_seconds(now),
            stalled[tp].reason if tp in stalled else None,
            stalled[tp].since if tp in stalled else None,
            copy.source.silence,
        )
        for tp, copy in sorted(copies.items())
    }


def worst_rpo(seconds: Iterable[float | None]) -> float | None:
    """Return the largest number of seconds, 0 if there is none, or None if one is unknown."""
    every = list(seconds)
    return None if None in every else max(filter(None, every), default=0.0)


def lag_line(partitions: Iterable[PartitionStatus]) -> str:
    """Return the lag of all partitions together. It is unknown if the lag of one of them is."""
    every = list(partitions)
    records = [status.lag_records for status in every]
    seconds = [status.lag_seconds for status in every]
    if None in records:
        return "lag unknown, the source does not answer"
    age = "seconds unknown" if None in seconds else f"{max(filter(None, seconds), default=0.0):,.1f} s"
    return f"lag {sum(filter(None, records)):,} records, {age}"
