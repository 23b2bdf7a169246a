"""What a flow tells of itself by MirrorMaker's names, beside what it did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from logd.metrics.exposition import exposition
from logd.metrics.metrics import Metrics
from mirror.link import Link
from tests.mirror.pair import Pair, numbered, produce
from tests.support.documented_metrics import check_documented

NOW = 1_600_000_000.0
"""Seconds; `numbered` begins at 1,357,000,000."""


def test_numbers_are_those_of_what_was_done(pair: Pair, new_name: Callable[[], str]) -> None:
    async def main() -> None:
        topic = new_name()
        await pair.create(topic, 2)
        await produce(pair.dc1, topic, {0: [numbered(50), numbered(30, 1000)], 1: [numbered(5)]})
        metrics = Metrics()
        async with Link(pair.link(topic), clock=lambda: NOW, metrics=metrics) as link:
            await link.run(until_caught_up=True)
            of_flow = {"source": "dc1", "target": "dc2"}
            told = metrics.values("MirrorSourceConnector", topic=f"dc1.{topic}", partition="0", **of_flow)
            assert told["record-count"] == 80
            assert told["byte-count"] == min(link.status().items())[1].bytes > 80
            newest, oldest = (NOW - 1_357_000_000) * 1000 - 1029, (NOW - 1_357_000_000) * 1000 - 49
            assert (told["record-age-ms"], told["record-age-ms-min"]) == (newest, newest)
            assert (told["record-age-ms-max"], told["record-age-ms-avg"]) == (oldest, (oldest + newest) / 2)
            assert told["replication-latency-ms-max"] == oldest
            assert metrics.values("MirrorSourceConnector")["record-count"] == 85
            assert metrics.values("mirror-partition")["records-lag"] == 0
            held = metrics.values("mirror-link", **of_flow)
            assert (held["partitions"], held["quarantined_partitions"], held["in_flight_bytes"]) == (2, 0, 0)
            assert held["partition_in_flight_bytes_max"] * 2 == held["in_flight_bytes_max"]
            assert metrics.values("consumer-fetch-manager-metrics")["records-consumed-total"] >= 85
            check_documented(metrics, "MirrorSourceConnector", "mirror-partition", "mirror-link")
            assert b"kafka_connect_mirror_mirrorsourceconnector_record_count{" in exposition(metrics)
            samples = [name for name, _ in metrics.read()]
            assert len(set(samples)) == len(samples), "those of one client are told from the other's"
        assert not list(metrics.read()), "it is closed"

    asyncio.run(main())
