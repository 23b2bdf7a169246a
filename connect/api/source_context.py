"""The context of source tasks: their connector's name, and the stored source offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from connect.api.records import SourceRecord
from connect.api.transactions import TransactionContext


class OffsetReader(Protocol):
    """Reader of the source offsets that the worker has stored for this connector."""

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the last committed source offset of a source partition, or None."""
        ...


@dataclass(slots=True, kw_only=True)
class SourceTaskContext:
    """The context that the runtime sets on a source task before `start`."""

    connector: str
    task_id: int
    offsets: OffsetReader
    is_finished: bool = field(default=False)
    transactions: TransactionContext | None = None
    """The way to end transactions, if the connector has `transaction.boundary=connector` (KIP-618)."""

    reported: list[tuple[SourceRecord, BaseException]] = field(default_factory=list)
    """Records that were reported during the present `poll`; the worker takes them."""

    def report(self, record: SourceRecord, error: BaseException) -> None:
        """Leave out a row of the source that cannot become a record, such as a line that is no JSON.

        For use in `poll`, which returns the good rows. With `errors.tolerance=all` the worker counts the row,
        logs it and writes it to the dead letter queue, as its settings say. Offsets that are returned with or
        after the row wait for that. With `errors.tolerance=none` the task fails with `error`. The value of
        `record` is the row as it was read. Sinks have KIP-610; Kafka has nothing like it for sources.
        """
        self.reported.append((record, error))

    def finished(self) -> None:
        """Declare the end of the source: the records that this `poll` returns are the task's last."""
        self.is_finished = True
