"""The settings of brokers for tests: Kafka's keys, with values that avoid waits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from millstream.testing.errors import BrokerError

DAY_MS = 24 * 3600 * 1000

DEFAULTS: Mapping[str, str] = {
    "node.id": "1",
    # Groups form at once, and internal topics are made in a moment.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    # Records with timestamps of long ago are common in tests; retention comes with an advance of the clock.
    "log.retention.check.interval.ms": str(DAY_MS),
    "log.segment.delete.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # Advancing the clock should not close idle connections.
    "connections.max.idle.ms": "-1",
}
OWN = ("log.dir", "log.dirs", "metadata.log.dir")
REPLICAS_MAX = 3
OF_EACH = ("node.id", "broker.id", "listeners", "advertised.listeners", "zookeeper.connect")
"""The settings that `Cluster` sets for each broker itself."""


def cluster_settings(config: Mapping[str, object], nodes: int) -> dict[str, object]:
    """Return the settings that all `nodes` brokers of a test cluster share; `config` overrides them.

    ZooKeeper sessions end after two seconds, so that the others soon miss a killed broker. Topics get three
    replicas, or `nodes` if there are fewer brokers. Raises BrokerError for a key that is set per broker.
    """
    for key in config:
        if key in OF_EACH:
            raise BrokerError(f"{key}={config[key]} is not for a test to say: each broker is given its own")
    replicas = str(min(REPLICAS_MAX, nodes))
    return {
        "zookeeper.session.timeout.ms": "2000",
        # A start in a cluster should not fail on a busy machine.
        "zookeeper.connection.timeout.ms": "60000",
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        # As with Kafka's 2 of 3, one broker may be away.
        "transaction.state.log.min.isr": str(max(1, int(replicas) - 1)),
        # Each broker has coordinators.
        "offsets.topic.num.partitions": str(nodes),
        "transaction.state.log.num.partitions": str(nodes),
        "replica.fetch.wait.max.ms": "100",
        "replica.fetch.backoff.ms": "50",
        **config,
    }


def broker_settings(config: Mapping[str, object], data: Path, port: int) -> dict[str, str]:
    """Return the settings of a broker: the defaults with `config` on top.

    The listener is on `port` unless `config` sets one. Raises BrokerError for keys of directories, which
    `Broker` chooses and cleans.
    """
    for key in config:
        if key in OWN:
            raise BrokerError(f"{key}={config[key]} is not for a test to say: use Broker(folder=...)")
    return {
        **DEFAULTS,
        "log.dirs": str(data),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        **{key: _text(value) for key, value in config.items()},
    }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
