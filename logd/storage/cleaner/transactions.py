"""The transaction of each batch, while a log is read from start to end.

As Kafka's CleanedTransactionMetadata: records of aborted transactions are removed. A marker may be removed
once a whole pass has met no batch of its transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka_client.records.control import ABORT, COMMIT, parse_control
from kafka_client.records.header import BatchHeader
from kafka_client.records.reader import decode_records
from logd.storage.cleaner.messages import AbortedEntry


class Transactions:
    """The transactions of a log's batches, which must be passed in the order of their offsets.

    `index_entries` are those of aborted transactions whose records were met before their marker.
    """

    def __init__(self, aborted: Iterable[AbortedEntry]) -> None:
        self.index_entries: list[AbortedEntry] = []
        self._coming = sorted(aborted, key=lambda entry: entry[1], reverse=True)
        self._aborted: dict[int, AbortedEntry] = {}
        self._met: set[int] = set()
        self._committed: set[int] = set()

    def data(self, header: BatchHeader) -> bool:
        """Record a data batch; return True if its transaction was aborted."""
        self._advance(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._met.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def control(self, header: BatchHeader, batch: memoryview) -> bool:
        """Record a control batch; return True if no batch of its transaction is left, so that it may be
        removed in time.
        """
        self._advance(header.last_offset)
        if not header.count:
            return True
        kind = parse_control(decode_records(batch)[0][2])[1]
        producer_id = header.producer_id
        if kind == ABORT:
            entry = self._aborted.pop(producer_id, None)
            if entry is None or producer_id not in self._met:
                return True
            self._met.discard(producer_id)
            self.index_entries.append(entry)
            return False
        if kind == COMMIT:
            if producer_id not in self._committed:
                return True
            self._committed.discard(producer_id)
        return False

    def _advance(self, offset: int) -> None:
        """Move the aborted transactions that start at or before `offset` to the open ones."""
        coming = self._coming
        while coming and coming[-1][1] <= offset:
            entry = coming.pop()
            self._aborted.setdefault(entry[0], entry)
