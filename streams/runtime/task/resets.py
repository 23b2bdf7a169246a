"""The reset of an input whose next records are no longer in its log."""

from __future__ import annotations

import logging

from kafka_client.errors import LogTruncated, OffsetOutOfRange
from kafka_client.fetcher.offsets import EARLIEST, LATEST
from streams.errors import StreamsError
from streams.runtime.task.queue import InputQueue

log = logging.getLogger(__name__)


def position_after_loss(queue: InputQueue, lost: OffsetOutOfRange, default: str) -> int:
    """Move the queue to the offset that its source's ``reset``, or else the ``default``, says. Return it.

    A truncated log (KIP-320) is read on from the first offset at which it differs from the records read, as
    by Kafka's consumer. Raises StreamsError if the policy is none.
    """
    policy = queue.source.reset or default
    if policy == "none":
        raise StreamsError(
            f"{lost.message}; auto.offset.reset is none: set it to earliest or latest, "
            "or move the group's committed offset"
        ) from lost
    if isinstance(lost, LogTruncated) and lost.diverging_offset >= 0:
        processed = queue.position
        position = queue.truncate(lost.diverging_offset, lost.end)
        log.warning(
            "%s; going on at %d%s",
            lost.message,
            position,
            f", what was made of records {position} to {processed - 1} stays" if position < processed else "",
        )
        return position
    position = lost.start if policy == "earliest" else lost.end
    if position < 0:  # The broker did not answer in time.
        return EARLIEST if policy == "earliest" else LATEST
    log.warning("%s; going on at %d (%s)", lost.message, position, policy)
    queue.reset(position, lost.end)
    return position
