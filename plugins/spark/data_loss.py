"""The kinds of lost data, so that a query's failure says what happened to the records.

DataLost
├── RecordsPurged    retention, compaction or delete-records removed them: the log starts later
├── LogEndsEarly     the log ends before them: it was truncated, or the offset never existed
├── PartitionDeleted the partition, or its topic, is no longer in the cluster
└── TopicReplaced    the topic was deleted and created again: its offsets do not continue

A broker that does not answer in time is no lost data: kafka_client.errors.RequestTimedOut, which names it.
"""

from __future__ import annotations

import logging
from uuid import UUID

from plugins.spark.errors import DataLost

_log = logging.getLogger(__name__)

REMEDY = "failOnDataLoss=false goes on without them"


class RecordsPurged(DataLost):
    """Records before the log's start, `available`, which retention or a request removed."""

    def __str__(self) -> str:
        return f"{super().__str__()}. They were purged, by retention or a request: the log starts later now"


class LogEndsEarly(DataLost):
    """Records after the log's end, `available`."""

    def __str__(self) -> str:
        why = "The log ends before them: it was truncated, or the offset was never written"
        return f"{super().__str__()}. {why}"


class PartitionDeleted(DataLost):
    """A partition that a stream has read up to `offset` and that is no longer in the cluster."""

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        super().__init__(topic, partition, offset, -1)

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition} was deleted; it had been read up to offset {self.offset}, "
            f"and later records are lost ({REMEDY})"
        )


class TopicReplaced(DataLost):
    """A topic that was deleted and created again after the read was planned, with other ids."""

    def __init__(self, topic: str, partition: int, offset: int, planned: bytes, current: bytes) -> None:
        super().__init__(topic, partition, offset, -1)
        self.args = (topic, partition, offset, planned, current)
        self.planned = planned
        self.current = current

    def __str__(self) -> str:
        return (
            f"{self.topic}-{self.partition}: the topic was deleted and created again. The read from offset "
            f"{self.offset} is of topic id {UUID(bytes=self.planned)}, the cluster has "
            f"{UUID(bytes=self.current)}; records of the deleted topic are lost ({REMEDY})"
        )


def report(loss: DataLost, fail: bool) -> None:
    """Raise the loss if `fail`, else log it."""
    if fail:
        raise loss
    _log.warning("%s", loss)
