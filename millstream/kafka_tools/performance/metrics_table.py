"""Metrics as `--print-metrics` shows them, by ToolsUtils: our client's, which have Kafka's names."""

from __future__ import annotations

from kafka_client.metrics.metrics import Metrics


def print_metrics(metrics: Metrics) -> None:
    """Print a line `group:name:{tag=value} : value` for each metric."""
    rows = {}
    for name, value in metrics.read():
        tags = ", ".join(f"{key}={tag}" for key, tag in name.tags)
        rows[f"{name.type}:{name.name}:{{{tags}}}"] = value
    width = max(map(len, rows), default=0)
    print(f"\n{'Metric Name':<{width}}   Value")
    for shown, value in sorted(rows.items()):
        print(f"{shown:<{width}} : {value:.3f}")
