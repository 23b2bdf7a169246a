"""Replication of one partition, decided without I/O: what its leader commits, what its followers cut off.

`Leader` keeps the high watermark and the ISR, `Follower` says from where to fetch and where to truncate,
`find_divergence` where the histories of the two part. Time, the log and the image of the cluster are handed
in; connections, disks and timers are `logd.broker`'s, elections the controller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.first_use import at_first_use

if TYPE_CHECKING:
    from logd.replication.divergence import Divergence, EpochTable, find_divergence
    from logd.replication.follower import Fetch, Follower, Next, ReplicaLog, Standby, Truncate
    from logd.replication.isr import InSync, Proposal
    from logd.replication.leader import Leader, LeaderSettings, PartitionState
    from logd.replication.progress import Progress

__all__ = [
    "Divergence",
    "EpochTable",
    "Fetch",
    "Follower",
    "InSync",
    "Leader",
    "LeaderSettings",
    "Next",
    "PartitionState",
    "Progress",
    "Proposal",
    "ReplicaLog",
    "Standby",
    "Truncate",
    "find_divergence",
]

_MODULES = {
    "logd.replication.divergence": (
        "Divergence",
        "EpochTable",
        "find_divergence",
    ),
    "logd.replication.follower": (
        "Fetch",
        "Follower",
        "Next",
        "ReplicaLog",
        "Standby",
        "Truncate",
    ),
    "logd.replication.isr": (
        "InSync",
        "Proposal",
    ),
    "logd.replication.leader": (
        "Leader",
        "LeaderSettings",
        "PartitionState",
    ),
    "logd.replication.progress": ("Progress",),
}
__getattr__ = at_first_use(__name__, _MODULES)
