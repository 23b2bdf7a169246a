"""The point where a log's history diverges from that of its reader: a follower, or a consumer.

A reader sends its offset and the leader epoch of the record before that offset. Leader epoch and offset
together identify a record for ever. So the two agree on everything before the offset if this log has that
epoch, up to that offset or later (KIP-101, KIP-279). The question is part of the fetch itself, as in KIP-595
and KIP-320.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kafka_client.errors import ErrorCode, OffsetOutOfRange
from kafka_client.topic_partition import TopicPartition


class EpochTable(Protocol):
    """The offsets and leader epochs of a log."""

    @property
    def tp(self) -> TopicPartition: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    def end_offset_for_epoch(self, leader_epoch: int, /) -> tuple[int, int]:
        """Return the largest epoch not above ``leader_epoch`` and its end offset; (-1, -1) if unknown."""


NOTHING_STAYS = -1
"""The epoch of a `Divergence` that tells a follower to drop its log."""


class Divergence(NamedTuple):
    """The answer to a reader that has records which this log lacks: they agree at most on ``epoch``, up to
    ``end_offset``.

    An epoch of `NOTHING_STAYS` tells a follower to drop its log and to start again at ``end_offset``, the
    start of the leader's log: see `Leader.must_copy_again`.
    """

    epoch: int
    end_offset: int


def find_divergence(
    log: EpochTable, leader_epoch: int, last_fetched_epoch: int, offset: int
) -> Divergence | None:
    """Return where the reader's history diverges from this log, or None if it does not.

    The reader is at ``offset``, and its last record is of ``last_fetched_epoch``. ``leader_epoch`` is the
    log's current one. Raises OffsetOutOfRange if this log cannot tell.
    """
    if last_fetched_epoch == leader_epoch:
        epoch, end = leader_epoch, log.log_end_offset
    else:
        epoch, end = log.end_offset_for_epoch(last_fetched_epoch)
    if epoch < 0 or offset < log.log_start_offset:
        raise out_of_range(
            log, offset, f"nothing is known of offset {offset} in leader epoch {last_fetched_epoch}"
        )
    if epoch < last_fetched_epoch or end < offset:
        return Divergence(epoch, end)
    return None


def out_of_range(log: EpochTable, offset: int, why: str) -> OffsetOutOfRange:
    """Return the error for an offset that this log cannot answer for."""
    return OffsetOutOfRange(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"{log.tp}: {why}",
        topic=log.tp.topic,
        partition=log.tp.partition,
        offset=offset,
        start=log.log_start_offset,
        end=log.log_end_offset,
    )
