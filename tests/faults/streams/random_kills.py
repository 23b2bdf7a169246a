"""Streams exactly once under kills for as long as you like: three processes, twelve partitions.

    python -m tests.faults.streams.random_kills [--minutes 10] [--kafka | --cluster] [--kill-broker]
        [--per-second 400] [--seed 1]

For Apache Kafka KAFKA_LIBS names the folder of its jars. With --cluster there are three brokers, whose
ZooKeeper comes out of PySpark's jars: leaders and coordinators are killed beside the instances. Prints what
has happened and what the audit found.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millstream.zookeeper.ensemble import Ensemble
from tests.faults.streams.leaders import Leaders, brokers_for_streams
from tests.faults.streams.story import BROKER_SETTINGS, PREFIX, Story
from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess

TICK_MS = 500


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.streams.random_kills")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kafka", action="store_true", help="on Apache Kafka instead of logd")
    parser.add_argument("--cluster", action="store_true", help="on three brokers, which are killed, too")
    parser.add_argument("--kill-broker", action="store_true", help="the broker is killed at times, too")
    parser.add_argument("--per-second", type=int, default=400, help="records of the input")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    if told.cluster and (told.kafka or told.kill_broker):
        parser.error("--cluster is of logd, and kills its brokers by itself")
    folder = Path(tempfile.mkdtemp(prefix="random-kills-"))
    kind = "Cluster" if told.cluster else "ApacheKafka" if told.kafka else "LogdProcess"
    print(f"{kind}, {told.minutes:g} min, seed {told.seed}; logs in {folder}", flush=True)
    with prepared(told, folder) as story:
        try:
            asyncio.run(story.run(60 * told.minutes))
        finally:
            for name, count in sorted(story.figures.items()):
                print(f"{count:>18,}  {name}")
    print("exactly once: sums and orders exact, no duplicates, no gaps")


@contextmanager
def prepared(told: argparse.Namespace, folder: Path) -> Iterator[Story]:
    """A story on brokers that are started, and end with it."""
    if told.cluster:
        with (
            Ensemble(folder / "zookeeper", 1, tick_ms=TICK_MS) as ensemble,
            brokers_for_streams(folder / "brokers", f"{ensemble.connect_string}/streams") as cluster,
        ):
            leaders = Leaders(cluster, folder, PREFIX, told.seed)
            yield Story(cluster, folder, told.seed, per_second=told.per_second, beside=leaders)
            cluster.assert_no_tracebacks()
    else:
        kind = ApacheKafka if told.kafka else LogdProcess
        with kind(folder / "broker", BROKER_SETTINGS) as broker:
            yield Story(broker, folder, told.seed, per_second=told.per_second, kills_broker=told.kill_broker)


if __name__ == "__main__":
    main()
