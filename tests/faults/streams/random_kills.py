"""Streams exactly once under kills for as long as you like: three processes, twelve partitions.

    python -m tests.faults.streams.random_kills [--minutes 10] [--kafka] [--kill-broker] [--per-second 400]
        [--seed 1]

For Apache Kafka KAFKA_LIBS names the folder of its jars. Prints what has happened and what the audit found.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from tests.faults.streams.story import BROKER_SETTINGS, Story
from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.streams.random_kills")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kafka", action="store_true", help="on Apache Kafka instead of logd")
    parser.add_argument("--kill-broker", action="store_true", help="the broker is killed at times, too")
    parser.add_argument("--per-second", type=int, default=400, help="records of the input")
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    kind = ApacheKafka if told.kafka else LogdProcess
    folder = Path(tempfile.mkdtemp(prefix="random-kills-"))
    print(f"{kind.__name__}, {told.minutes:g} min, seed {told.seed}; logs in {folder}", flush=True)
    with kind(folder / "broker", BROKER_SETTINGS) as broker:
        story = Story(broker, folder, told.seed, per_second=told.per_second, kills_broker=told.kill_broker)
        try:
            asyncio.run(story.run(60 * told.minutes))
        finally:
            for name, count in sorted(story.figures.items()):
                print(f"{count:>18,}  {name}")
    print("exactly once: sums and orders exact, no duplicates, no gaps")


if __name__ == "__main__":
    main()
