"""A task's policy for records that fail: fail with them, or leave them out (KIP-298)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from connect.config import ErrorsConfig
from connect.runtime.errors.dead_letters import DeadLetters
from connect.runtime.errors.failed_row import FailedRow
from connect.runtime.errors.retries import RetryPolicy
from connect.runtime.errors.unwritten import Unwritten
from connect.runtime.task_metrics import TaskMetrics
from kafka_client.errors import UnreadableBatch
from kafka_client.fetcher.parts import OnUnreadable

_log = logging.getLogger(__name__)
UNWRITTEN_MAX = 1000
"""Dead letters without an acknowledgement with which a task takes no further records."""


@dataclass(slots=True)
class Skipped:
    """Unreadable batches that were skipped in a part that is not delivered yet."""

    batches: list[UnreadableBatch] = field(default_factory=list)


class Tolerance:
    """`errors.tolerance`, `errors.log.*` and the dead letter queue of one task.

    Kafka Connect tolerates records that fail. Here batches that cannot be read are tolerated, too; they are
    no dead letters, as nobody can tell their records.
    """

    def __init__(
        self,
        task: str,
        config: ErrorsConfig,
        metrics: TaskMetrics,
        dead_letters: DeadLetters | None = None,
        on_failure: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """Create the policy; `on_failure` gets the error of a dead letter that could not be written."""
        self._task = task
        self._tolerates_all = config.tolerates_all
        self._logs = config.errors_log_enable
        self._logs_records = config.errors_log_include_messages
        self._metrics = metrics
        self._dead_letters = dead_letters
        self._on_failure = on_failure
        self._writing: set[asyncio.Future[None]] = set()
        self.retries = RetryPolicy.of(config)
        self.unwritten = Unwritten()
        """The places in the log of records that are left out and not written yet."""

    @property
    def tolerates_all(self) -> bool:
        """True if records that cannot be used are left out, False if they fail the task."""
        return self._tolerates_all

    @property
    def has_reporter(self) -> bool:
        """True if tasks may report records: there is a dead letter queue or a log, as in Kafka."""
        return self._dead_letters is not None or self._logs

    @property
    def is_full(self) -> bool:
        """True if so many dead letters wait for their acknowledgement that no further records are taken."""
        return max(len(self._writing), len(self.unwritten)) >= UNWRITTEN_MAX

    def on_unreadable(self, skipped: Skipped) -> OnUnreadable | None:
        """Return a function that adds unreadable batches to `skipped`, or None if they fail the task."""
        return skipped.batches.append if self._tolerates_all else None

    def count(self, skipped: Skipped) -> None:
        """Count the skipped batches, log them with `errors.log.enable`, and clear `skipped`."""
        for unreadable in skipped.batches:
            self._metrics.skipped(unreadable.record_count)
            self._log(str(unreadable))
        skipped.batches.clear()

    async def leave_out(self, row: FailedRow) -> asyncio.Future[None] | None:
        """Count a record, log it, and send it to the dead letter queue.

        Waits only for room in the producer. The future is done once the record is acknowledged; None without
        a queue.
        """
        self._metrics.skipped(1)
        self._log_row(row)
        if self._dead_letters is None:
            return None
        if row.tp is not None:
            self.unwritten.add(row.tp, row.offset)
        writing = asyncio.ensure_future(self._written(row, self._dead_letters))
        self._writing.add(writing)
        writing.add_done_callback(self._ended)
        return writing

    def _ended(self, writing: asyncio.Future[None]) -> None:
        self._writing.discard(writing)
        if not writing.cancelled() and (error := writing.exception()) is not None:
            self._on_failure(error)

    def refuse(self, row: FailedRow) -> NoReturn:
        """Count and log a record without tolerance. Raises the ConnectError that fails the task."""
        self._metrics.refused()
        self._log_row(row)
        raise row.failure()

    async def settled(self, seconds: float | None) -> None:
        """Wait at most so long, or without a limit, until all dead letters so far are acknowledged."""
        if self._writing:
            await asyncio.wait(set(self._writing), timeout=seconds)

    async def close(self) -> None:
        """Stop the dead letter queue."""
        if self._dead_letters is not None:
            await self._dead_letters.close()

    async def _written(self, row: FailedRow, dead_letters: DeadLetters) -> None:
        """Write a dead letter. One that fails stays among the unwritten, and no offset passes it."""
        await (await dead_letters.write(row))
        if row.tp is not None:
            self.unwritten.remove(row.tp, row.offset)

    def _log_row(self, row: FailedRow) -> None:
        self._log(f"{row}; {row.shown()}" if self._logs_records else str(row))

    def _log(self, text: str) -> None:
        if self._logs:
            self._metrics.logged += 1
            words = "leaves out what it cannot use" if self._tolerates_all else "fails"
            _log.error("%s %s: %s", self._task, words, text)
