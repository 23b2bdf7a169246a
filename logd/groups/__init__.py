"""The group coordinator's core: classic groups and committed offsets, one `GroupShard` per partition of
`__consumer_offsets`.

No sockets, threads, clocks or randomness: the time, new member ids and the log to append to are handed in,
and what comes out are answers to waiting requests and the time of the next deadline. `logd.broker.groups`
is the shell.
"""

from logd.groups.join import Joining
from logd.groups.rebalance import Answer
from logd.groups.records import (
    OFFSETS_TOPIC,
    CoordinatorRecord,
    decode_record,
    encode_record,
)
from logd.groups.settings import GroupSettings
from logd.groups.shard import GroupShard
from logd.groups.states import GroupState
from logd.groups.store import LogEntry, Producing, RecordLog, Stored, TransactionEnd

__all__ = [
    "OFFSETS_TOPIC",
    "Answer",
    "CoordinatorRecord",
    "GroupSettings",
    "GroupShard",
    "GroupState",
    "Joining",
    "LogEntry",
    "Producing",
    "RecordLog",
    "Stored",
    "TransactionEnd",
    "decode_record",
    "encode_record",
]
