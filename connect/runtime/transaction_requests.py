"""TransactionRequests: the ends of transactions that a source task has asked for; its TransactionContext."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeVar

from connect.api.raw_batch import RawBatch
from connect.api.records import SourceRecord
from connect.errors import ConnectError

T = TypeVar("T")


class End(Enum):
    """The two ends of a transaction."""

    COMMIT = "commit"
    ABORT = "abort"


class TransactionRequests:
    """Requests from the plugin's thread. Those after records or batches wait until a poll returns these."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._after_batch: End | None = None
        self._after: dict[int, tuple[SourceRecord | RawBatch, End]] = {}
        """By the record's id; the record is kept, so that its id stays its own."""

    def commit_transaction(self, record: SourceRecord | RawBatch | None = None) -> None:
        """Note that the transaction is to be committed after `record`, or after this poll's records."""
        self._note(record, End.COMMIT)

    def abort_transaction(self, record: SourceRecord | RawBatch | None = None) -> None:
        """Note that the transaction is to be aborted after `record`, or after this poll's records."""
        self._note(record, End.ABORT)

    def take_batch(self) -> End | None:
        """Return what is to follow the last poll's records, and forget it."""
        with self._lock:
            end, self._after_batch = self._after_batch, None
        return end

    def split(self, records: Sequence[T]) -> Iterator[tuple[Sequence[T], End | None]]:
        """Yield the parts of a poll with the end that follows each; the last part may have none."""
        with self._lock:
            if not self._after:
                ends: dict[int, End] = {}
            else:
                pairs = ((index, self._after.pop(id(record), None)) for index, record in enumerate(records))
                ends = {index: pair[1] for index, pair in pairs if pair is not None}
        begin = 0
        for index, end in ends.items():
            yield records[begin : index + 1], end
            begin = index + 1
        if begin < len(records):
            yield (records[begin:] if begin else records), None

    def _note(self, record: SourceRecord | RawBatch | None, end: End) -> None:
        with self._lock:
            before = self._after_batch if record is None else self._after.get(id(record), (record, None))[1]
            if before not in (None, end):
                raise ConnectError("Connector requested both commit and abort of same transaction")
            if record is None:
                self._after_batch = end
            else:
                self._after[id(record)] = (record, end)
