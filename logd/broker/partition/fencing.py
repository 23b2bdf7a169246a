"""True if a client and a partition agree on the leader epoch, and on what was written in it (KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError
from logd.replication import find_divergence

if TYPE_CHECKING:
    from logd.broker.partition.partition import Partition


class LogDiverged(Exception):
    """A reader has read what is not here: what it fetched last was of a leader epoch that ended before it, or
    that never was here. It goes back to ``end_offset``, where ``epoch`` ends, or further (KIP-320).
    """

    def __init__(self, epoch: int, end_offset: int) -> None:
        super().__init__()
        self.epoch = epoch
        self.end_offset = end_offset


def check_leader_epoch(partition: Partition, known_epoch: int) -> None:
    """Fence a client whose metadata is older or newer than ours; -1 means it does not care (KIP-320)."""
    if known_epoch < 0 or known_epoch == partition.leader_epoch:
        return
    code = (
        ErrorCode.FENCED_LEADER_EPOCH
        if known_epoch < partition.leader_epoch
        else ErrorCode.UNKNOWN_LEADER_EPOCH
    )
    raise KafkaError(code, f"{partition}: leader epoch {known_epoch}, it is {partition.leader_epoch} here")


def check_last_fetched(partition: Partition, epoch: int, offset: int) -> None:
    """See `find_divergence`: raises LogDiverged where there is one, and OffsetOutOfRange."""
    divergence = find_divergence(partition.log, partition.leader_epoch, epoch, offset)
    if divergence is not None:
        raise LogDiverged(*divergence)
