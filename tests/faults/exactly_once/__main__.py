"""Exactly once under kills for as long as you like.

    python -m tests.faults.exactly_once [--broker logd|kafka] [--seconds 600] [--seed 1]

For Apache Kafka KAFKA_LIBS names the folder of its jars. Prints what has happened and what the audit found.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.faults.exactly_once.story import SETTINGS, Story
from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess

BROKERS = {"logd": LogdProcess, "kafka": ApacheKafka}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.exactly_once")
    parser.add_argument("--broker", choices=BROKERS, default="logd")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="exactly-once-"))
    print(f"{options.broker}, {options.seconds:g} s, seed {options.seed}; logs in {folder}", flush=True)
    with BROKERS[options.broker](folder / options.broker, SETTINGS) as broker:
        story = Story(broker, folder, options.seed)
        try:
            asyncio.run(story.run(options.seconds))
        finally:
            for name, count in sorted(story.figures.items()):
                print(f"{count:>18,}  {name}")
    print("exactly once: nothing lost, nothing doubled, sums and orders exact")


if __name__ == "__main__":
    sys.exit(main())
