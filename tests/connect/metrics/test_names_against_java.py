"""The names and tags of Connect's metrics, beside those that Kafka's own registry prints."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.documented_metrics import documented
from tests.support.java import needs_jar, run_program

GOLDEN = Path(__file__).parent / "kafka_connect_metrics.txt"
"""The output of `ConnectMetricNames.java`, sorted. REWRITE=1 writes it again."""

TEXTS_OF = {
    "connector-metrics": "connector-info",
    "connector-task-metrics": "connector-task-info",
    "connector-transform-metrics": "connector-transform-info",
    "connector-predicate-metrics": "connector-predicate-info",
    "connect-worker-rebalance-metrics": "connect-worker-rebalance-info",
}
"""The types of ours whose tags are the texts of Kafka's types."""

LEFT_OUT = {
    ("connect-worker-metrics", "connector-destroyed-task-count"): "there is no such state here",
    ("sink-task-metrics", "sink-record-lag-max"): "Kafka declares it and never gives it a value",
    ("connector-task-metrics", "key-converter-version"): "converters have no versions here",
    ("connector-task-metrics", "value-converter-version"): "converters have no versions here",
    ("connector-task-metrics", "header-converter-version"): "converters have no versions here",
    ("connector-transform-metrics", "transform-version"): "transforms have no versions here",
    ("connector-predicate-metrics", "predicate-version"): "predicates have no versions here",
}
"""Metrics that Kafka has and ours have not, with the reason; rates are left to readers of the totals."""


def kafkas() -> set[tuple[str, str, frozenset[str]]]:
    lines = [line.split(" ") for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    return {(type, name, frozenset(filter(None, tags.split(",")))) for type, name, tags in lines}


def test_every_metric_of_kafkas_is_there_or_left_out_by_name():
    listed = {type: parts for (domain, type), parts in documented().items() if domain == "kafka.connect"}
    missing = set()
    for type, name, tags in kafkas():
        names, own_tags = listed.get(type, (set(), set()))
        _, texts = listed.get(TEXTS_OF.get(type, ""), (set(), set()))
        if name in names:
            assert tags <= own_tags, (type, name)
        elif name in texts:
            assert tags <= texts, (type, name)
        elif not name.endswith("-rate"):
            missing.add((type, name))
    assert missing == LEFT_OUT.keys()


def test_a_rate_has_a_total():
    names = {(type, name) for type, name, _ in kafkas()}
    rates = {(type, name) for type, name in names if name.endswith("-rate")}
    assert rates
    assert {(type, name.replace("-rate", "-total")) for type, name in rates} <= names - LEFT_OUT.keys()


@needs_jar("connect-runtime")
def test_the_list_is_kafkas():
    lines = sorted(run_program("ConnectMetricNames", "").splitlines())
    if os.environ.get("REWRITE"):
        GOLDEN.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert GOLDEN.read_text(encoding="utf-8").splitlines() == lines
