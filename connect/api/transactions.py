"""TransactionContext: where a source task puts the ends of its transactions (KIP-618).

A task gets one as `self.context.transactions` if its connector has `transaction.boundary=connector` and the
worker runs exactly-once sources; otherwise that is None.
"""

from __future__ import annotations

from typing import Protocol

from connect.api.raw_batch import RawBatch
from connect.api.records import SourceRecord


class TransactionContext(Protocol):
    """The task's requests to end its open transaction. Call the methods in `poll`; they are thread-safe.

    A `BatchSourceTask` gives a `RawBatch` for `record`: the very object that `poll` returns.
    """

    def commit_transaction(self, record: SourceRecord | RawBatch | None = None) -> None:
        """Commit after `record`, one that a later or this `poll` returns; None: after this poll's records.

        The record's source offset is committed with the transaction.
        """
        ...

    def abort_transaction(self, record: SourceRecord | RawBatch | None = None) -> None:
        """Abort after `record`, which is the last one that is dropped; None: after this poll's records.

        The source offsets of dropped records are committed all the same: the task does not read them again.
        Raises ConnectError, or fails the task, if the same transaction is to be committed as well.
        """
        ...
