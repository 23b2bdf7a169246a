"""Brokers of a cluster killed by what they lead while streams run on it.

Fault model: SIGKILL of the broker that leads a partition of the application's topics, its changelogs and
repartition topics among them; that coordinates its group, or an instance's transactions; or that is the
controller. It is gone for any time less or more than its session, and its disk keeps what was written. One
is down at a time; who is in sync when the next is killed nobody waits for.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

from streams.runtime.commit.transactions import PROCESS_FILE, transactional_id
from tests.faults.cluster.cluster import GROUP, SESSION_MS, TRANSACTION, Cluster
from tests.faults.streams.story import BROKER_SETTINGS


def brokers_for_streams(folder: Path, zookeeper: str) -> Cluster:
    """Three, with replication factor 3 and min.insync.replicas 2, that are quick about groups."""
    cluster = Cluster(folder, zookeeper)
    for broker in cluster.brokers.values():
        broker.overrides.update(BROKER_SETTINGS)
    return cluster


class Leaders:
    """Call it: each call kills one and starts it again. ``folder`` has the instances' state folders."""

    def __init__(self, cluster: Cluster, folder: Path, prefix: str, seed: int) -> None:
        self._cluster = cluster
        self._folder = folder
        self._prefix = prefix
        self._application = f"{prefix}-app"
        self._random = random.Random(seed)

    def __call__(self) -> str:
        """Kill and restart a broker, and return what was done."""
        name, victim = self._pick()
        self._cluster.kill(victim)
        time.sleep(self._random.random() * 2 * SESSION_MS / 1000)
        self._cluster.start(victim)
        return f"SIGKILL of {name}"

    def _pick(self) -> tuple[str, int]:
        match self._random.choice(
            ["leader", "leader", "group", "transactions", "transactions", "controller"]
        ):
            case "group":
                return "the group's coordinator", self._cluster.coordinator(self._application, GROUP)
            case "transactions" if ids := self._transactional_ids():
                id_ = self._random.choice(ids)
                return "a coordinator of transactions", self._cluster.coordinator(id_, TRANSACTION)
            case "controller":
                return "the controller", self._cluster.controller
            case _:
                return "a partition's leader", self._leader()

    def _transactional_ids(self) -> list[str]:
        """Return the transactional ids of present and past instances."""
        files = sorted(self._folder.glob(f"*/{self._application}/{PROCESS_FILE}"))
        return [transactional_id(self._application, file.parent) for file in files]

    def _leader(self) -> int:
        counts = {topic.name or "": len(topic.partitions) for topic in self._cluster.metadata().topics}
        topic = self._random.choice(sorted(name for name in counts if name.startswith(self._prefix)))
        return self._cluster.leader(topic, self._random.randrange(counts[topic]))
