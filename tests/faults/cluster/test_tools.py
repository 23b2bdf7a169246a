"""What the commands and Kafka's own tools show of a cluster while brokers are down."""

from __future__ import annotations

import json
from pathlib import Path

from millstream.terminal.status import Status
from tests.faults.cluster.cluster import Cluster
from tests.millstream.invoking import On
from tests.millstream.kafka_tools.players import JavaTools, OurTools
from tests.support import java
from tests.support.waiting import wait_for

FILTERS = (
    "--under-replicated-partitions",
    "--under-min-isr-partitions",
    "--at-min-isr-partitions",
    "--unavailable-partitions",
)
PLACED = {"alone": "{a}", "pair": "{a}:{b}", "other": "{b}:{c}:{a}"}
"""Topics of one partition each, and the brokers that have it."""


def test_what_tools_show_while_brokers_are_down(tmp_path: Path, zookeeper: str) -> None:
    """min.insync.replicas is 2."""
    settings = {"auto_leader_rebalance_enable": "false", "zookeeper_session_timeout_ms": 3000}
    with Cluster(tmp_path, zookeeper, **settings) as cluster:
        a, b, c = sorted(cluster.brokers)
        on = On(cluster.bootstrap)
        for name, brokers in PLACED.items():
            on.done("topic", "create", name, "--replica-assignment", brokers.format(a=a, b=b, c=c))
        wait_for(lambda: all(map(cluster.is_in_sync, ("pair", "other"))))
        assert _health(on, Status.OK) == {"under-min-isr-partitions": []} or _health(on, Status.UNHEALTHY)
