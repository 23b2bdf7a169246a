"""Whether a client and a partition agree on the leader epoch, and on what was written in it (KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logd.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from logd.broker.partition import Partition


class LogDiverged(Exception):
    """A reader has read what is not here: what it fetched last was of a leader epoch that ended before it, or
    that never was here. It goes back to ``end_offset``, where ``epoch`` ends, or further (KIP-320).
    """

    def __init__(self, epoch: int, end_offset: int) -> None:
        super().__init__()
        self.epoch = epoch
        self.end_offset = end_offset


def check_leader_epoch(partition: Partition, known: int) -> None:
    """Fence a client whose metadata is older or newer than ours; -1 means it does not care (KIP-320)."""
    if known < 0 or known == partition.leader_epoch:
        return
    code = ErrorCode.FENCED_LEADER_EPOCH if known < partition.leader_epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    raise KafkaError(code, f"{partition}: leader epoch {known}, it is {partition.leader_epoch} here")


def check_last_fetched(partition: Partition, epoch: int, offset: int) -> None:
    """Whether a reader at ``offset`` that read a record of leader ``epoch`` last has read what is here.

    Raises LogDiverged if not, and KafkaError(OFFSET_OUT_OF_RANGE) where that cannot be known.
    """
    if epoch == partition.leader_epoch:
        found, end = epoch, partition.log.log_end_offset
    else:
        found, end = partition.log.end_offset_for_epoch(epoch)
    if found < 0 or offset < partition.log.log_start_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"{partition}: nothing is known of offset {offset} in leader epoch {epoch}",
        )
    if found < epoch or end < offset:
        raise LogDiverged(found, end)
