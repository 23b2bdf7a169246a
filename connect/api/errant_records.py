"""The reporter of records that a sink task cannot write (KIP-610).

class Sink(SinkTask):
    def put(self, records):
        reporter = self.context.errant_record_reporter()
        for record in records:
            try:
                self.write(record)
            except ValueError as e:
                if reporter is None:
                    raise
                reporter.report(record, e)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Generator
from typing import Protocol

from connect.api.records import SinkRecord


class Report(concurrent.futures.Future[None]):
    """A reported record. It is done once the dead letter queue has the record, or at once without a queue.

    `result(timeout)` waits in a thread, `await report` in a coroutine. Both raise the error of a write that
    failed, which fails the task as well.
    """

    def __await__(self) -> Generator[object, None, None]:
        """Wait on the running event loop."""
        return asyncio.wrap_future(self).__await__()


class ErrantRecordReporter(Protocol):
    """Takes records that a task cannot write. Its method may be called from any thread and any coroutine."""

    def report(self, record: SinkRecord, error: BaseException) -> Report:
        """Leave a record out: count it, log it and write it to the dead letter queue, as its settings say.

        The record is one that `put` got. No offset at or after it is committed before it is written. Raises
        ConnectError with `errors.tolerance=none`, and the task fails.
        """
        ...
