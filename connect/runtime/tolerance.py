"""A sink task's policy for records that cannot be read or converted: fail, or skip them (KIP-298)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from connect.config import SinkConfig
from connect.errors import DataError
from connect.runtime.task_metrics import TaskMetrics
from kafka_client.errors import UnreadableBatch
from kafka_client.fetcher.parts import OnUnreadable
from kafka_client.records import Record

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Skipped:
    """Batches and records skipped in a part that is not delivered yet."""

    batches: list[UnreadableBatch] = field(default_factory=list)
    records: list[tuple[DataError, Record]] = field(default_factory=list)

    def note_record(self, error: DataError, record: Record) -> None:
        """Note a record that does not convert."""
        self.records.append((error, record))


class Tolerance:
    """`errors.tolerance` and `errors.log.*` of one task.

    Kafka Connect tolerates records that do not convert. Here batches that cannot be read are tolerated, too.
    """

    def __init__(self, task: str, config: SinkConfig, metrics: TaskMetrics) -> None:
        self._task = task
        self._tolerates_all = config.errors_tolerance == "all"
        self._logs = config.errors_log_enable
        self._logs_records = config.errors_log_include_messages
        self._metrics = metrics

    @property
    def tolerates_all(self) -> bool:
        """True if records that cannot be used are skipped, False if they fail the task."""
        return self._tolerates_all

    def on_unreadable(self, skipped: Skipped) -> OnUnreadable | None:
        """Return a function that adds unreadable batches to `skipped`, or None if they fail the task."""
        return skipped.batches.append if self._tolerates_all else None

    def count(self, skipped: Skipped) -> None:
        """Count the skipped batches and records, log them with `errors.log.enable`, and clear `skipped`."""
        for unreadable in skipped.batches:
            self._metrics.skipped(unreadable.record_count)
            self._log(str(unreadable))
        for error, record in skipped.records:
            self._metrics.skipped(1)
            self._log(f"{error}; {_shown(record)}" if self._logs_records else str(error))
        skipped.batches.clear()
        skipped.records.clear()

    def _log(self, text: str) -> None:
        if self._logs:
            self._metrics.logged += 1
            _log.error("%s leaves out what it cannot use: %s", self._task, text)


def _shown(record: Record) -> str:
    return f"key {record[2]!r}, value {record[3]!r}, headers {record[4]!r}"
