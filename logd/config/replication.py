"""The settings of a broker among others, under Kafka's keys: replication, controlled shutdown, who leads."""

from __future__ import annotations

from collections.abc import Mapping

from logd.config.setting import Kind, Setting, at_least, one_of, setting, settings_of
from logd.config.settings import Settings

B, S, I, L = Kind.BOOLEAN, Kind.STRING, Kind.INT, Kind.LONG  # noqa: E741
_POSITIVE, _NOT_NEGATIVE = at_least(1), at_least(0)

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""For `replica.selector.class` (KIP-392)."""
LEADER_ONLY = "org.apache.kafka.common.replica.LeaderSelector"


class ReplicationConfig(Settings):
    """A part of `BrokerConfig`. A broker by itself checks and describes them, and goes by none."""

    inter_broker_listener_name: str | None = setting(
        S,
        None,
        "For a broker among others: the listener by which brokers talk to each other, of the same name on "
        "all of them. The first one unless given.",
        nullable=True,
    )
    replica_lag_time_max_ms: int = setting(
        L,
        30_000,
        "For a broker among others: a follower that has not caught up for so long is not in sync.",
        allowed=_POSITIVE,
    )
    replica_fetch_max_bytes: int = setting(
        I,
        1_048_576,
        "For a broker among others: bytes a follower fetches of one partition at a time; a larger batch "
        "comes all the same.",
        allowed=_NOT_NEGATIVE,
    )
    replica_fetch_min_bytes: int = setting(
        I, 1, "For a broker among others: bytes for which a leader answers a follower's fetch at once."
    )
    replica_fetch_wait_max_ms: int = setting(
        I,
        500,
        "For a broker among others: how long a leader may wait for them. Less than replica.lag.time.max.ms.",
    )
    replica_fetch_response_max_bytes: int = setting(
        I,
        10_485_760,
        "For a broker among others: bytes of one answer to a follower's fetch.",
        allowed=_NOT_NEGATIVE,
    )
    replica_fetch_backoff_ms: int = setting(
        I,
        1_000,
        "For a broker among others: how long a follower leaves a partition alone at most whose fetch "
        "has failed.",
        allowed=_NOT_NEGATIVE,
    )
    replica_socket_timeout_ms: int = setting(
        I,
        30_000,
        "For a broker among others: how long a follower waits for an answer, beyond "
        "replica.fetch.wait.max.ms.",
    )
    replica_selector_class: str | None = setting(
        S,
        None,
        "For a broker among others: RackAwareReplicaSelector has a consumer fetch from an in-sync replica in "
        "its own rack (client.rack, broker.rack), LeaderSelector, as without it, from the leader.",
        nullable=True,
        allowed=one_of(RACK_AWARE, LEADER_ONLY),
    )
    controlled_shutdown_enable: bool = setting(
        B, True, "For a broker among others: hand over what it leads before it stops."
    )
    controlled_shutdown_max_retries: int = setting(
        I,
        3,
        "For a broker among others: it hands over for at most so many times "
        "controlled.shutdown.retry.backoff.ms, and waits 1.5 zookeeper.session.timeout.ms longer for a "
        "controller that hangs.",
    )
    controlled_shutdown_retry_backoff_ms: int = setting(
        L, 5_000, "For a broker among others: how long it waits at most before it asks to be relieved again."
    )
    auto_leader_rebalance_enable: bool = setting(
        B,
        True,
        "For a broker among others: give leadership back to preferred replicas, where this is the "
        "controller.",
    )
    leader_imbalance_check_interval_seconds: int = setting(
        L, 300, "For a broker among others: how often auto.leader.rebalance.enable looks.", allowed=_POSITIVE
    )
    leader_imbalance_per_broker_percentage: int = setting(
        I,
        10,
        "For a broker among others: how many percent of the partitions it is preferred for may be led by "
        "others before that is changed.",
    )


REPLICATION_SETTINGS: Mapping[str, Setting] = settings_of(ReplicationConfig)
"""By Kafka's key."""
