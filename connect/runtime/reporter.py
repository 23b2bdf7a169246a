"""The reporter that a sink task's context has (KIP-610)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from connect.api.errant_records import Report
from connect.api.records import SinkRecord
from connect.api.sink import SinkTask
from connect.errors import ConnectError
from connect.runtime.errors.failed_row import FailedRow, failed_put_row
from connect.runtime.errors.stages import Stage, StageError, class_name
from connect.runtime.tolerance import Tolerance


class Reporter:
    """Takes records from any thread, and has the event loop leave them out."""

    def __init__(
        self, task: SinkTask, tolerance: Tolerance, on_failure: Callable[[BaseException], None]
    ) -> None:
        self._task = task
        self._tolerance = tolerance
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._reporting: set[asyncio.Task[None]] = set()

    def report(self, record: SinkRecord, error: BaseException) -> Report:
        """See `connect.api.ErrantRecordReporter.report`."""
        row = failed_put_row(record, StageError(Stage.TASK_PUT, "put", class_name(self._task), error))
        if not self._tolerance.tolerates_all:
            try:
                self._tolerance.refuse(row)
            except ConnectError as failure:
                self._loop.call_soon_threadsafe(self._on_failure, failure)  # a task may swallow the error
                raise
        assert row.tp is not None
        report = Report()
        report.set_running_or_notify_cancel()  # a plugin cannot cancel it
        self._tolerance.unwritten.add(row.tp, row.offset)
        self._loop.call_soon_threadsafe(self._begin, row, report)
        return report

    def _begin(self, row: FailedRow, report: Report) -> None:
        reporting = self._loop.create_task(self._leave_out(row, report))
        self._reporting.add(reporting)
        reporting.add_done_callback(self._reporting.discard)

    async def _leave_out(self, row: FailedRow, report: Report) -> None:
        assert row.tp is not None
        try:
            written = await self._tolerance.leave_out(row)
            if written is not None:
                await written
        except Exception as e:
            report.set_exception(e)
            return
        self._tolerance.unwritten.remove(row.tp, row.offset)
        report.set_result(None)
