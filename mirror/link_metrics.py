"""What a flow tells of itself by the names of MirrorMaker's metrics, read from it when somebody asks.

MirrorMaker measures each record; here a batch's newest record stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from kafka_client.metrics.metrics import Metrics, Values
from kafka_client.metrics.windowed import Windowed
from mirror.quarantine import Quarantine
from mirror.source import MirrorSource


class LinkMetrics:
    """Reads one link that is open."""

    def __init__(self, mirror: MirrorSource, quarantine: Quarantine, placings: Callable[[], Values]) -> None:
        self._mirror = mirror
        self._quarantine = quarantine
        self._placings = placings

    def add_to(self, metrics: Metrics, *, source: str, target: str) -> Callable[[], None]:
        """Register everything under the clusters' aliases; returns how to end that."""
        told = ExitStack()
        each, add, aliases = metrics.add_each, metrics.add, {"source": source, "target": target}
        told.callback(each("kafka.connect.mirror", "MirrorSourceConnector", self._copied, **aliases))
        told.callback(each("millstream", "mirror-partition", self._lags, **aliases))
        told.callback(add("millstream", "mirror-link", self._link, **aliases))
        told.callback(add("millstream", "mirror-placing", self._placings, **aliases))
        return told.close

    def _copied(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        """By the remote topics' names, as MirrorMaker."""
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
        return {**self._mirror.statistics(), "quarantined_partitions": len(self._quarantine.held)}


def _all_of(name: str, values: Windowed) -> Values:
    return {
        name: values.last,
        f"{name}-min": values.smallest,
        f"{name}-max": values.largest,
        f"{name}-avg": values.average,
    }
