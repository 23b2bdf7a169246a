"""Metrics of a flow under the names of MirrorMaker's, read when they are requested.

MirrorMaker measures each record; here only the newest record of each batch is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from kafka_client.metrics.metrics import Metrics, Values
from kafka_client.metrics.windowed import Windowed
from mirror.checkpoints.latency import CheckpointLatency
from mirror.progress import ProgressWatch
from mirror.quarantine import Quarantine
from mirror.source import MirrorSource


class LinkMetrics:
    """Metrics of one open link."""

    def __init__(
        self,
        mirror: MirrorSource,
        quarantine: Quarantine,
        placings: Callable[[], Values],
        progress: ProgressWatch,
        checkpoint_latency: CheckpointLatency,
        rpo_seconds: Callable[[], float | None],
        clock: Callable[[], float],
    ) -> None:
        self._mirror = mirror
        self._quarantine = quarantine
        self._placings = placings
        self._progress = progress
        self._checkpoint_latency = checkpoint_latency
        self._rpo_seconds = rpo_seconds
        self._clock = clock

    def add_to(self, metrics: Metrics, *, source: str, target: str) -> Callable[[], None]:
        """Register all metrics, tagged with the clusters' aliases.

        Return a function that removes them again.
        """
        registrations = ExitStack()
        each, add, aliases = metrics.add_each, metrics.add, {"source": source, "target": target}
        registrations.callback(each("kafka.connect.mirror", "MirrorSourceConnector", self._copied, **aliases))
        registrations.callback(
            each("kafka.connect.mirror", "MirrorCheckpointConnector", self._checkpoints, **aliases)
        )
        registrations.callback(each("millstream", "mirror-partition", self._lags, **aliases))
        registrations.callback(add("millstream", "mirror-link", self._link, **aliases))
        registrations.callback(add("millstream", "mirror-placing", self._placings, **aliases))
        return registrations.close

    def _copied(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        """Yield the metrics of each partition, tagged with the remote topic's name as in MirrorMaker."""
        for copy in list(self._mirror.copies.values()):
            yield (
                {"topic": copy.remote.topic, "partition": str(copy.remote.partition)},
                {
                    "record-count": copy.records,
                    "record-rate": copy.recent_records.rate,
                    "byte-count": copy.bytes,
                    "byte-rate": copy.recent_bytes.rate,
                    **_all_of("record-age-ms", copy.age_ms),
                    **_all_of("replication-latency-ms", copy.latency_ms),
                },
            )

    def _checkpoints(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for group, remote, latency in self._checkpoint_latency.read():
            tags = {"group": group, "topic": remote.topic, "partition": str(remote.partition)}
            yield tags, _all_of("checkpoint-latency-ms", latency)

    def _lags(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        now = self._clock()
        for copy in list(self._mirror.copies.values()):
            tags = {"topic": copy.remote.topic, "partition": str(copy.remote.partition)}
            yield (
                tags,
                {
                    "records-lag": _or_nan(copy.lag_records()),
                    "seconds-lag": _or_nan(copy.lag_seconds(now)),
                    "rpo-seconds": _or_nan(copy.rpo_seconds(now)),
                },
            )

    def _link(self) -> Values:
        return {
            **self._mirror.statistics(),
            "quarantined_partitions": len(self._quarantine.partitions),
            "stalled_partitions": len(self._progress.stalls.stalled),
            "silent_partitions": len(self._progress.silent),
            "rpo-seconds": _or_nan(self._rpo_seconds()),
        }


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _all_of(name: str, values: Windowed) -> Values:
    return {
        name: values.last,
        f"{name}-min": values.smallest,
        f"{name}-max": values.largest,
        f"{name}-avg": values.average,
    }
