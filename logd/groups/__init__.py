"""The core of the group coordinator: classic groups and committed offsets.

There is one `GroupShard` per partition of `__consumer_offsets`, without sockets, threads, clocks or
randomness. The time, new member ids and the log are arguments. Results are responses to waiting requests, and
the time of the next deadline. `logd.broker.groups` connects it to the broker.
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
