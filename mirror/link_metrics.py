"""Metrics of a flow under the names of MirrorMaker's, read when they are requested.

MirrorMaker measures each record; here only the newest record of each batch is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from kafka_client.metrics.metrics import Metrics, Values
from kafka_client.metrics.windowed import Windowed
from mirror.quarantine import Quarantine
from mirror.source import MirrorSource


class LinkMetrics:
    """Metrics of one open link."""

    def __init__(self, mirror: MirrorSource, quarantine: Quarantine, placings: Callable[[], Values]) -> None:
        self._mirror = mirror
        self._quarantine = quarantine
        self._placings = placings

    def add_to(self, metrics: Metrics, *, source: str, target: str) -> Callable[[], None]:
        """Register all metrics, tagged with the clusters' aliases.

        Return a function that removes them again.
        """
        registrations = ExitStack()
        each, add, aliases = metrics.add_each, metrics.add, {"source": source, "target": target}
        registrations.callback(each("kafka.connect.mirror", "MirrorSourceConnector", self._copied, **aliases))
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
                    "byte-count": copy.bytes,
                    **_all_of("record-age-ms", copy.age_ms),
                    **_all_of("replication-latency-ms", copy.latency_ms),
                },
            )

    def _lags(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        for copy in list(self._mirror.copies.values()):
            tags = {"topic": copy.remote.topic, "partition": str(copy.remote.partition)}
            yield tags, {"records-lag": copy.lag_records()}

    def _link(self) -> Values:
        return {**self._mirror.statistics(), "quarantined_partitions": len(self._quarantine.partitions)}


def _all_of(name: str, values: Windowed) -> Values:
    return {
        name: values.last,
        f"{name}-min": values.smallest,
        f"{name}-max": values.largest,
        f"{name}-avg": values.average,
    }
