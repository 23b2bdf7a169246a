"""The records of one poll on their way to the log; the poll is acknowledged when all of them are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from connect.api.records import SourceRecord
from connect.runtime.submitted import SubmittedBatch
from kafka_client import RecordMetadata


class PendingPoll:
    """The unacknowledged sends of one poll. `follows` if the place of each record is to be noted."""

    __slots__ = ("_batch", "_is_sealed", "_on_acked", "_waiting", "metadata", "records", "written")

    def __init__(
        self,
        records: Sequence[SourceRecord],
        batch: SubmittedBatch,
        *,
        follows: bool,
        on_acked: Callable[[PendingPoll], None],
    ) -> None:
        self.records = records
        self.metadata: list[RecordMetadata | None] | None = [None] * len(records) if follows else None
        """The place of each polled record; None for one that was left out. None if nobody follows."""
        self.written = 0
        """Records that the log has acknowledged."""
        self._batch = batch
        self._on_acked = on_acked
        self._waiting = 0
        self._is_sealed = False

    def begin(self) -> None:
        """Add a send."""
        self._waiting += 1

    def note(self, index: int, metadata: RecordMetadata) -> None:
        """Note the place of a polled record in the log; of several records from it, the last counts."""
        assert self.metadata is not None
        self.metadata[index] = metadata

    def end(self, *, written: int = 0) -> None:
        """Take note that a send is acknowledged, with so many records."""
        self.written += written
        self._waiting -= 1
        self._end_if_done()

    def seal(self) -> None:
        """Declare that all sends were added."""
        self._is_sealed = True
        self._end_if_done()

    def _end_if_done(self) -> None:
        if self._is_sealed and self._waiting == 0:
            self._on_acked(self)
            self._batch.acked()
