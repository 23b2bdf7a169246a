"""Faults in any order under producers, for any time: brokers and ZooKeeper's servers are processes.

    python -m tests.faults.cluster [--minutes 10] [--brokers 3] [--seed 1] [--parted]

It goes in rounds of five minutes at most. Each round is a new cluster on the same three servers of ZooKeeper,
and its seed is one more than the last round's. Two idempotent producers, librdkafka's and our own, write with
acks=all and min.insync.replicas=2. Brokers are killed, held up and restarted. Networks part in one or in both
directions. Servers of ZooKeeper are killed, held up and cut off. Disks are full. Wall clocks are set hours
ahead and back. After each round all replicas are read. Every record that was acknowledged has to be there
once, in order, at the acknowledged offset. The replicas have to be the same, byte for byte.

With --parted the only faults are networks that part brokers from each other, in one or in both directions,
for 5 to 60 s: connections stay, requests time out, and what was sent arrives in the end. Partitions are led
by one broker after the other meanwhile. Two transactional producers write as well: librdkafka's by
transaction version 1, our own by version 2. Readers of committed records have to get exactly what was
committed; no transaction stays open, and no producer is fenced.

Prints how long it took, faults by kind, what was acknowledged and checked, what was lost or is there twice.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.audit import assert_written, settle, tally
from tests.faults.cluster.chaos import Chaos
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.transactors import (
    CommittedReader,
    ConfluentTransactor,
    OwnTransactor,
    Transactor,
    assert_transactions,
)
from tests.faults.cluster.writers import ConfluentWriter, OwnWriter, Writer
from tests.support.network import Network
from tests.support.wall_clock import WallClock

ROUND_MINUTES = 5.0
"""So that what is acknowledged fits in memory, and logs on the disk."""
LAST_ROUND_S = 30.0
"""With less time left none begins."""
ZOOKEEPERS = 3
TICK_MS = 500
SETTINGS: dict[str, object] = {
    "replica.lag.time.max.ms": 3000,
    # A broker's clock may lie hours behind that of producers.
    "log.message.timestamp.after.max.ms": 24 * 3_600_000,
}


class Story:
    """`play` rounds; `figures` says what has happened in all of them, `faults` by kind."""

    def __init__(self, folder: Path, ensemble: Ensemble, brokers: int, *, parted: bool = False) -> None:
        self.figures: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self._folder = folder
        self._ensemble = ensemble
        self._brokers = brokers
        self._parted = parted

    def play(self, seed: int, minutes: float) -> None:
        """Play a round. Its folder is left if anything is wrong."""
        folder = self._folder / f"seed-{seed}"
        with Network() as network:
            cluster = Cluster(
                folder,
                f"{self._ensemble.connect_string}/seed-{seed}",
                self._brokers,
                network=network,
                **SETTINGS,
            )
            clocks = {id_: WallClock(folder / f"clock-{id_}") for id_ in cluster.brokers}
            for id_, broker in cluster.brokers.items():
                broker.environment = clocks[id_].environment
            with cluster:
                if self._parted:
                    self._part(cluster, seed, minutes, network)
                else:
                    self._disturb(cluster, seed, minutes, network, clocks)
        self.figures["rounds"] += 1
        shutil.rmtree(folder)

    def _disturb(
        self, cluster: Cluster, seed: int, minutes: float, network: Network, clocks: dict[int, WallClock]
    ) -> None:
        kinds: dict[str, type[Writer]] = {"confluent": ConfluentWriter, "own": OwnWriter}
        for topic in kinds:
            cluster.create_topic(topic)
        with ExitStack() as stack:
            writers = [stack.enter_context(kind(cluster.bootstrap, topic)) for topic, kind in kinds.items()]
            chaos = Chaos(cluster, self._ensemble, writers, seed, network, clocks=clocks, fills_disks=True)
            try:
                chaos.run_for(60 * minutes)
            finally:
                self.faults.update(chaos.done)
            settle(cluster, *writers)
            cluster.stop()
            cluster.assert_no_tracebacks()
            for writer in writers:
                self.figures.update(tally(cluster, writer))
            for writer in writers:
                assert_written(cluster, writer)

    def _part(self, cluster: Cluster, seed: int, minutes: float, network: Network) -> None:
        writers: list[Writer] = [
            kind(cluster.bootstrap, cluster.create_topic(topic))
            for topic, kind in {"confluent": ConfluentWriter, "own": OwnWriter}.items()
        ]
        transactors: list[Transactor] = [
            kind(cluster.bootstrap, cluster.create_topic(topic), seed)
            for topic, kind in {"version-1": ConfluentTransactor, "version-2": OwnTransactor}.items()
        ]
        with ExitStack() as stack:
            reader = stack.enter_context(CommittedReader(cluster.bootstrap, transactors))
            everybody = [stack.enter_context(each) for each in (*writers, *transactors)]
            chaos = Chaos(cluster, self._ensemble, everybody, seed, network, parts_brokers=True)
            try:
                chaos.run_for(60 * minutes)
            finally:
                self.faults.update(chaos.done)
            for transactor in transactors:
                transactor.finish()
            self.figures.update(assert_transactions(cluster.bootstrap, reader, *transactors))
            settle(cluster, *writers)
            cluster.stop()
            cluster.assert_no_tracebacks()
            for writer in writers:
                self.figures.update(tally(cluster, writer))
                assert_written(cluster, writer)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.cluster")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--brokers", type=int, choices=(3, 5), default=3)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--parted", action="store_true", help="only part brokers, under transactions too")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="cluster-"))
    print(
        f"{options.brokers} brokers, {options.minutes:g} min, seed {options.seed}; logs in {folder}",
        flush=True,
    )
    began, deadline, seed = time.monotonic(), time.monotonic() + 60 * options.minutes, options.seed
    with Ensemble(folder / "zookeeper", ZOOKEEPERS, tick_ms=TICK_MS) as ensemble:
        story = Story(folder, ensemble, options.brokers, parted=options.parted)
        try:
            while not story.figures or deadline - time.monotonic() > LAST_ROUND_S:
                story.play(seed, min((deadline - time.monotonic()) / 60, ROUND_MINUTES))
                print(f"seed {seed} is well", flush=True)
                seed += 1
        except BaseException:
            print(f"seed {seed} is not")
            raise
        finally:
            passed = timedelta(seconds=round(time.monotonic() - began))
            print(f"{passed!s:>18}  hours, minutes and seconds")
            for count in ({"faults": story.faults.total()}, story.faults, story.figures):
                for name, number in sorted(count.items()):
                    print(f"{number:>18,}  {name.replace('_', ' ')}")
    shutil.rmtree(folder)
    print("nothing lost, nothing doubled, all replicas the same")


if __name__ == "__main__":
    sys.exit(main())
