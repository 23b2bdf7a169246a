"""Replication of one partition, decided without I/O: what its leader commits, and where its followers
truncate.

`Leader` keeps the high watermark and the ISR. `Follower` decides from where to fetch and where to truncate.
`find_divergence` finds where the histories of leader and follower diverge. Time, the log and the image of the
cluster are arguments. `logd.broker` does connections, disks and timers; the controller does elections.
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
