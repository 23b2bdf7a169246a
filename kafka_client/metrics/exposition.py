"""Metrics in Prometheus' format, by the names that its JMX exporter gives Kafka's metrics.

`kafka.producer:type=producer-metrics,client-id=c1` `record-send-total` becomes
`kafka_producer_producer_metrics_record_send_total{client_id="c1"}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from kafka_client.metrics.metrics import MetricName, Metrics

_NOT_IN_A_NAME = re.compile(r"[^a-z0-9_]")


Sample: TypeAlias = tuple[MetricName, float]


class MetricsCollector(Collector):
    """A collector of a registry's metrics for prometheus-client's `CollectorRegistry.register`."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the metrics differ each time."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return the current metrics, one family per name."""
        return _families(self._metrics.read())


class _Samples(Collector):
    """A collector of metrics that have been read before."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        return _families(self._samples)


def exposition(metrics: Metrics) -> bytes:
    """Return the metrics in Prometheus' text format, version 0.0.4, for an HTTP view."""
    return text_of(metrics.read())


def text_of(samples: Iterable[Sample]) -> bytes:
    """Return metrics that have been read in Prometheus' text format. Any thread may call it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Samples(samples))
    return generate_latest(registry)


def _families(samples: Iterable[Sample]) -> Iterable[Metric]:
    """Return the metrics by name, each with its samples."""
    families: dict[str, Metric] = {}
    for name, value in samples:
        sample = full_name(name)
        family = families.get(sample)
        if family is None:
            family = families[sample] = _family(name)
        family.add_sample(sample, {_label(key): tag for key, tag in name.tags}, value)
    return families.values()


def full_name(name: MetricName) -> str:
    """Return the metric's name in Prometheus, with `_total` if it only grows."""
    return _label(f"{name.domain}_{name.type}_{name.name}")


def _label(text: str) -> str:
    return _NOT_IN_A_NAME.sub("_", text.lower())


def _family(name: MetricName) -> Metric:
    documentation = f"{name.domain}:type={name.type} {name.name}"
    if not name.only_grows:
        return Metric(full_name(name), documentation, "gauge")
    # A counter's family has the name without the ending; its samples have it.
    return Metric(full_name(name).removesuffix("_total"), documentation, "counter")
