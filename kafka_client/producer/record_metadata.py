"""The place of a produced record in its partition's log."""

from __future__ import annotations

from typing import NamedTuple


class RecordMetadata(NamedTuple):
    """The place of an acknowledged record. Kafka's RecordMetadata.

    `offset`: None with `acks=0`. Also None if a retry found the record in the log, and the broker no longer
    knew its offset.
    `timestamp_ms`: create time that was sent with the record, in ms since 1970. A topic with
    `message.timestamp.type=LogAppendTime` stores another time, which a consumer sees.
    """

    topic: str
    partition: int
    offset: int | None
    timestamp_ms: int
