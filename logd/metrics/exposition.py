"""Metrics as Prometheus reads them, by the names that its JMX exporter gives Kafka's.

`kafka.producer:type=producer-metrics,client-id=c1` `record-send-total` becomes
`kafka_producer_producer_metrics_record_send_total{client_id="c1"}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from logd.metrics.metrics import MetricName, Metrics

TOTAL = "-total"
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9_]")


class MetricsCollector(Collector):
    """A registry's metrics for prometheus-client: `CollectorRegistry.register` takes it."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Nothing: there are other metrics each time."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """The metrics as they are now, one family per name."""
        families: dict[tuple[str, tuple[str, ...]], Metric] = {}
        for name, value in self._metrics.read():
            labels = tuple(_label(key) for key, _ in name.tags)
            family = families.get((full_name(name), labels))
            if family is None:
                family = families[full_name(name), labels] = _family(name, labels)
            family.add_metric([value for _, value in name.tags], value)  # type: ignore[attr-defined]
        return _merged(families)


def exposition(metrics: Metrics) -> bytes:
    """What an HTTP view answers: Prometheus' text format, version 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(MetricsCollector(metrics))
    return generate_latest(registry)


def full_name(name: MetricName) -> str:
    """The metric's name in Prometheus, with `_total` where it only grows."""
    return _label(f"{name.domain}_{name.type}_{name.name}")


def _label(text: str) -> str:
    return _NOT_IN_A_NAME.sub("_", text.lower())


def _family(name: MetricName, labels: tuple[str, ...]) -> Metric:
    made = CounterMetricFamily if name.name.endswith(TOTAL) else GaugeMetricFamily
    return made(full_name(name), f"{name.domain}:type={name.type} {name.name}", labels=labels)


def _merged(families: dict[tuple[str, tuple[str, ...]], Metric]) -> Iterable[Metric]:
    """One family per name: those of other labels are samples of the same."""
    merged: dict[str, Metric] = {}
    for (name, _), family in families.items():
        if name in merged:
            merged[name].samples += family.samples
        else:
            merged[name] = family
    return merged.values()
