"""Where the history of a log parts from that of somebody who reads it: a follower, or a consumer.

A reader says at which offset it is and of which leader epoch the record before that is. Leader epoch and
offset together name a record for ever, so that the two agree on everything before the offset if that epoch
was here and reached as far (KIP-101, KIP-279; asked with the fetch itself as in KIP-595 and KIP-320).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kafka_client.errors import ErrorCode, OffsetOutOfRange
from kafka_client.topic_partition import TopicPartition


class EpochTable(Protocol):
    """A log, of which only offsets and leader epochs matter here."""

    @property
    def tp(self) -> TopicPartition: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    def end_offset_for_epoch(self, leader_epoch: int, /) -> tuple[int, int]:
        """The largest epoch not above ``leader_epoch`` and where it ends; (-1, -1) if that is unknown."""


NOTHING_STAYS = -1
"""In place of an epoch: see `Divergence`."""


class Divergence(NamedTuple):
    """The reader has what is not here: of what it has, at most ``epoch`` up to ``end_offset`` is.

    An epoch of `NOTHING_STAYS` tells a follower to drop its log and begin anew at ``end_offset``, where the
    leader's log begins: see `Leader.begins_anew`.
    """

    epoch: int
    end_offset: int


def find_divergence(
    log: EpochTable, leader_epoch: int, last_fetched_epoch: int, offset: int
) -> Divergence | None:
    """Whether a reader at ``offset`` that read a record of ``last_fetched_epoch`` last has read what is here.

    None if so. ``leader_epoch`` is the one in which the log is written now. Raises OffsetOutOfRange where it
    cannot be known.
    """
    if last_fetched_epoch == leader_epoch:
        found, end = leader_epoch, log.log_end_offset
    else:
        found, end = log.end_offset_for_epoch(last_fetched_epoch)
    if found < 0 or offset < log.log_start_offset:
        raise out_of_range(
            log, offset, f"nothing is known of offset {offset} in leader epoch {last_fetched_epoch}"
        )
    if found < last_fetched_epoch or end < offset:
        return Divergence(found, end)
    return None


def out_of_range(log: EpochTable, offset: int, why: str) -> OffsetOutOfRange:
    """What to raise for an offset that this log cannot answer for."""
    return OffsetOutOfRange(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"{log.tp}: {why}",
        topic=log.tp.topic,
        partition=log.tp.partition,
        offset=offset,
        start=log.log_start_offset,
        end=log.log_end_offset,
    )
