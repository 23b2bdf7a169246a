"""A broker's settings of the cluster, by Kafka's keys: replication, controlled shutdown, leadership."""

from __future__ import annotations

from collections.abc import Mapping

from logd.config.setting import Kind, Setting, at_least, one_of, setting, settings_of
from logd.config.settings import Settings

B, S, I, L = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LONG  # noqa: E741
_POSITIVE, _NOT_NEGATIVE = at_least(1), at_least(0)

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The security protocols of listeners."""
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""For `replica.selector.class` (KIP-392)."""
LEADER_ONLY = "org.apache.kafka.common.replica.LeaderSelector"


class ReplicationConfig(Settings):
    """A part of `BrokerConfig`. A standalone broker checks and describes these settings, but ignores them."""

    inter_broker_listener_name: str | None = setting(
        S,
        None,
        "Cluster only: the name of the listener that brokers use to connect to each other, the same on all "
        "brokers. Default: the first listener.",
        nullable=True,
    )
    security_inter_broker_protocol: str | None = setting(
        S,
        None,
        "Cluster only, instead of inter.broker.listener.name: brokers use the listener that has the name of "
        "this security protocol.",
        nullable=True,
        allowed=one_of(*SECURITY_PROTOCOLS),
    )
    sasl_mechanism_inter_broker_protocol: str | None = setting(
        S,
        None,
        "Cluster only: the mechanism of brokers' logins to each other on a listener with SASL. Its "
        "sasl.jaas.config has username and password. Default: SCRAM-SHA-256 with a secret that the cluster "
        "keeps in ZooKeeper.",
        nullable=True,
        allowed=one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    )
    replica_lag_time_max_ms: int = setting(
        L,
        30_000,
        "Cluster only: a follower that has not caught up for this time is out of sync.",
        allowed=_POSITIVE,
    )
    replica_fetch_max_bytes: int = setting(
        I,
        1_048_576,
        "Cluster only: most bytes that a follower fetches of one partition at a time. A larger first batch "
        "is sent whole.",
        allowed=_NOT_NEGATIVE,
    )
    replica_fetch_min_bytes: int = setting(
        I, 1, "Cluster only: a leader answers a follower's fetch at once if it has this many bytes."
    )
    replica_fetch_wait_max_ms: int = setting(
        I,
        500,
        "Cluster only: how long a leader may wait for replica.fetch.min.bytes. Less than "
        "replica.lag.time.max.ms.",
    )
    replica_fetch_response_max_bytes: int = setting(
        I,
        10_485_760,
        "Cluster only: most bytes of one response to a follower's fetch.",
        allowed=_NOT_NEGATIVE,
    )
    replica_fetch_backoff_ms: int = setting(
        I,
        1_000,
        "Cluster only: longest time after which a follower retries a partition whose fetch failed.",
        allowed=_NOT_NEGATIVE,
    )
    replica_socket_timeout_ms: int = setting(
        I,
        30_000,
        "Cluster only: how long a follower waits for a response, in addition to replica.fetch.wait.max.ms.",
    )
    replica_selector_class: str | None = setting(
        S,
        None,
        "Cluster only. RackAwareReplicaSelector: a consumer fetches from an in-sync replica in its own rack "
        "(client.rack, broker.rack). LeaderSelector, the default: it fetches from the leader.",
        nullable=True,
        allowed=one_of(RACK_AWARE, LEADER_ONLY),
    )
    controlled_shutdown_enable: bool = setting(
        B, True, "Cluster only: move leadership to other brokers before this broker stops."
    )
    controlled_shutdown_max_retries: int = setting(
        I,
        3,
        "Cluster only: the controlled shutdown takes at most this many times "
        "controlled.shutdown.retry.backoff.ms. It waits 1.5 zookeeper.session.timeout.ms longer for a "
        "controller that does not answer.",
    )
    controlled_shutdown_retry_backoff_ms: int = setting(
        L, 5_000, "Cluster only: longest pause before the broker asks again for a controlled shutdown."
    )
    auto_leader_rebalance_enable: bool = setting(
        B,
        True,
        "Cluster only: as controller, move leadership back to preferred replicas.",
    )
    leader_imbalance_check_interval_seconds: int = setting(
        L, 300, "Cluster only: how often auto.leader.rebalance.enable checks leaders.", allowed=_POSITIVE
    )
    leader_imbalance_per_broker_percentage: int = setting(
        I,
        10,
        "Cluster only: leaders are moved if other brokers lead more than this percentage of the partitions "
        "whose preferred leader is this broker.",
    )


REPLICATION_SETTINGS: Mapping[str, Setting] = settings_of(ReplicationConfig)
"""By Kafka's key."""
