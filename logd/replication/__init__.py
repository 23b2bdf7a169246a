"""Replication of one partition, decided without I/O: what its leader commits, what its followers cut off.

`Leader` keeps the high watermark and the ISR, `Follower` says from where to fetch and where to truncate,
`find_divergence` where the histories of the two part. Time, the log and the image of the cluster are handed
in; connections, disks and timers are `logd.broker`'s, elections the controller's.
"""

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
