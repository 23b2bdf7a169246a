"""NumbersTask: the part that the verifiable source and the schema source have in common."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from connect.api import SourceRecord, SourceTask
from plugins.pacing import Pace

_WAIT_SECONDS_MAX = 0.5


class NumbersTask(SourceTask):
    """A task of records with rising numbers, one a poll, at a bounded rate.

    The source partition is `{"id": task}`, the source offset `{"seqno": number}` of the last record. Both are
    those of Kafka's class, so a task goes on from the offsets of a Java worker.
    """

    def __init__(self) -> None:
        self._stopping = threading.Event()

    def begin(self, task_id: int, throughput: int) -> None:
        """Go to the number after the last acknowledged record's."""
        self._id = task_id
        self._partition: Mapping[str, Any] = {"id": task_id}
        offset = self.context.offsets.offset(self._partition)
        self._seqno = 0 if offset is None else offset["seqno"] + 1
        self._pace = Pace(throughput)

    def waits(self) -> bool:
        """Return False if a record is due. Return True after a short wait if none is."""
        if self._pace.take(1):
            return False
        self._stopping.wait(min(self._pace.seconds_to_next(), _WAIT_SECONDS_MAX))
        return True

    def record(self, seqno: int) -> SourceRecord:
        """Return the record of a number."""
        raise NotImplementedError

    def stop(self) -> None:
        """End a wait for the next record."""
        self._stopping.set()
