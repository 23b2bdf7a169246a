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
    options = parser.parse_args()
    if options.cluster and (options.kafka or options.kill_broker):
        parser.error("--cluster is of logd, and kills its brokers by itself")
    folder = Path(tempfile.mkdtemp(prefix="random-kills-"))
    kind = "Cluster" if options.cluster else "ApacheKafka" if options.kafka else "LogdProcess"
    print(f"{kind}, {options.minutes:g} min, seed {options.seed}; logs in {folder}", flush=True)
    with prepared(options, folder) as story:
        try:
            asyncio.run(story.run(60 * options.minutes))
        finally:
            for name, count in sorted(story.figures.items()):
                print(f"{count:>18,}  {name}")
    print("exactly once: sums and orders exact, no duplicates, no gaps")


@contextmanager
def prepared(options: argparse.Namespace, folder: Path) -> Iterator[Story]:
    """Start brokers and yield a story on them; end them with it."""
    if options.cluster:
        with (
            Ensemble(folder / "zookeeper", 1, tick_ms=TICK_MS) as ensemble,
            brokers_for_streams(folder / "brokers", f"{ensemble.connect_string}/streams") as cluster,
        ):
            leaders = Leaders(cluster, folder, PREFIX, options.seed)
            yield Story(cluster, folder, options.seed, per_second=options.per_second, beside=leaders)
            cluster.assert_no_tracebacks()
    else:
        kind = ApacheKafka if options.kafka else LogdProcess
        with kind(folder / "broker", BROKER_SETTINGS) as broker:
            yield Story(
                broker, folder, options.seed, per_second=options.per_second, kills_broker=options.kill_broker
            )


if __name__ == "__main__":
    main()
