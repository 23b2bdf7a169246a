"""The parts of a cluster's image that a standalone broker lacks: brokers, and states of partitions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PartitionImage:
    """The state of a partition: its replicas, its in-sync replicas, its leader.

    ``replicas`` are broker ids, the preferred leader first; they include those of ``adding`` and ``removing``
    (KIP-455). ``isr`` is never empty: a partition without a leader (``NO_LEADER``) keeps the last one.
    ``leader_epoch`` grows when the leader changes or restarts, and when a replica is removed.
    ``partition_epoch`` starts at 0 and grows by one with every change. It is the version of Kafka's ``state``
    znode: a store creates a znode for 0, and writes any other epoch over the version that is one less.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        """True if replicas are being added or removed."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment; the current replicas if there is no reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas after a cancelled reassignment; the current replicas if there is no reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    def as_change(self, tp: TopicPartition) -> dict[str, Any]:
        """Return the change that gives a partition this state."""
        return {
            "type": "partition",
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(self.replicas),
            "isr": list(self.isr),
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "partition_epoch": self.partition_epoch,
            "adding": list(self.adding),
            "removing": list(self.removing),
        }


class Endpoint(NamedTuple):
    """The address of a broker's listener; ``listener`` is the listener's name."""

    listener: str
    host: str
    port: int
    security_protocol: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BrokerImage:
    """A broker that is alive; ``epoch`` is that of its registration (in ZooKeeper the czxid of its znode).

    ``offline_log_dirs`` are the broker's failed log directories, as its ``log.dirs`` names them.
    """

    id: int
    epoch: int
    rack: str | None = None
    endpoints: tuple[Endpoint, ...] = ()
    is_shutting_down: bool = False
    offline_log_dirs: tuple[str, ...] = ()

    def as_change(self) -> dict[str, Any]:
        """Return the change that adds the broker with this state."""
        return {
            "type": "broker",
            "id": self.id,
            "epoch": self.epoch,
            "rack": self.rack,
            "endpoints": [list(endpoint) for endpoint in self.endpoints],
            "is_shutting_down": self.is_shutting_down,
            "offline_log_dirs": list(self.offline_log_dirs),
        }
