"""Metrics of tasks, counted per plugin call and per commit, under the names of Kafka Connect's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from connect.runtime.states import State, Status
from kafka_client.metrics.metrics import Values
from kafka_client.metrics.windowed import Windowed


@dataclass(slots=True)
class Startups:
    """Counts of successful and failed starts."""

    succeeded: int = 0
    failed: int = 0

    @contextmanager
    def counted(self, unless: type[Exception]) -> Iterator[None]:
        """Count the start in the body; a start that raises `unless` was cancelled and is not counted."""
        try:
            yield
        except unless:
            raise
        except Exception:
            self.failed += 1
            raise
        self.succeeded += 1

    def values(self, of: str) -> Values:
        """Return the counts by Kafka's names; `of` is "connector" or "task"."""
        attempts = self.succeeded + self.failed
        return {
            f"{of}-startup-attempts-total": attempts,
            f"{of}-startup-success-total": self.succeeded,
            f"{of}-startup-failure-total": self.failed,
            f"{of}-startup-success-percentage": self.succeeded / attempts if attempts else 0.0,
            f"{of}-startup-failure-percentage": self.failed / attempts if attempts else 0.0,
        }


class TaskMetrics:
    """Metrics of any task. Times are in seconds."""

    def __init__(self) -> None:
        self.batch_size = Windowed()
        """Records per poll or put of the plugin."""
        self.commit = Windowed()
        self._commit_outcomes = Windowed()
        self.failures = self.retries = 0
        self._records_skipped = self._errors = 0
        self.logged = 0
        """Errors that were tolerated and logged."""
        self.dead_letters_sent = self.dead_letters_failed = 0
        self._last_error_ms = 0

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Measure and count the commit in the body; it has failed if the body raises."""
        try:
            with self.commit.timed():
                yield
        except BaseException:
            self._commit_outcomes.record(0)
            raise
        self._commit_outcomes.record(1)

    def failed(self, *, again: bool) -> None:
        """Count a failure to read, convert or write records; `again` is True if it is retried."""
        self.failures += 1
        self.retries += again
        self._last_error_ms = time.time_ns() // 1_000_000

    def skipped(self, records: int) -> None:
        """Count records that were skipped for one error."""
        self._records_skipped += records
        self._errors += 1
        self._last_error_ms = time.time_ns() // 1_000_000

    def refused(self) -> None:
        """Count a record that fails the task."""
        self._errors += 1
        self._last_error_ms = time.time_ns() // 1_000_000

    @property
    def records_skipped(self) -> int:
        """Records that were skipped."""
        return self._records_skipped

    def task_values(self, status: Status) -> Values:
        """Return `connector-task-metrics`: times in milliseconds, shares from 0 to 1, as in Kafka."""
        committed = self._commit_outcomes.average
        return {
            "running-ratio": status.share_of_time(State.RUNNING),
            "pause-ratio": status.share_of_time(State.PAUSED),
            "batch-size-avg": self.batch_size.average,
            "batch-size-max": self.batch_size.largest,
            "offset-commit-avg-time-ms": self.commit.average * 1000,
            "offset-commit-max-time-ms": self.commit.largest * 1000,
            "offset-commit-success-percentage": committed,
            "offset-commit-failure-percentage": 1 - committed,
        }

    def error_values(self) -> Values:
        """Return `task-error-metrics`."""
        return {
            "total-record-failures": self.failures,
            "total-record-errors": self._errors,
            "total-records-skipped": self._records_skipped,
            "total-errors-logged": self.logged,
            "total-retries": self.retries,
            "deadletterqueue-produce-requests": self.dead_letters_sent,
            "deadletterqueue-produce-failures": self.dead_letters_failed,
            "last-error-timestamp": self._last_error_ms,
        }


class SourceMetrics(TaskMetrics):
    """Metrics of a source task."""

    def __init__(self) -> None:
        super().__init__()
        self.polled = self.acked = 0
        self.written = 0
        """Records in the log: not those that were left out, all of those that one record has become."""
        self.poll = Windowed()
        """Times of the polls that returned records."""
        self.transactions = Windowed()
        """Records of each committed transaction of an exactly-once task."""
        self._active = Windowed()

    def record_poll(self, records: int, seconds: float | None = None) -> None:
        """Count a poll's records and its time; `seconds` is None for an interrupted poll."""
        self.polled += records
        self.batch_size.record(records)
        self._active.record(self.active)
        if seconds is not None:
            self.poll.record(seconds)

    @property
    def active(self) -> int:
        """Records polled and not acknowledged yet."""
        return self.polled - self.acked

    def values(self) -> Values:
        """Return `source-task-metrics`."""
        return {
            "source-record-poll-total": self.polled,
            "source-record-write-total": self.written,
            "poll-batch-avg-time-ms": self.poll.average * 1000,
            "poll-batch-max-time-ms": self.poll.largest * 1000,
            "source-record-active-count": self.active,
            "source-record-active-count-avg": self._active.average,
            "source-record-active-count-max": self._active.largest,
            "transaction-size-avg": self.transactions.average,
            "transaction-size-max": self.transactions.largest,
            "transaction-size-min": self.transactions.smallest,
        }


class SinkMetrics(TaskMetrics):
    """Metrics of a sink task."""

    def __init__(self) -> None:
        super().__init__()
        self.read = self.delivered = 0
        self.put = Windowed()
        self.commits_begun = self.commits_refused = 0
        self._delivered_at_commit = 0
        self._active = Windowed()

    def record_put(self, records: int) -> None:
        """Count the records of a successful put."""
        self.delivered += records
        self.batch_size.record(records)
        self._active.record(self.active)

    def committed(self) -> None:
        """Count a commit: all records put so far are flushed."""
        self._delivered_at_commit = self.delivered

    @property
    def active(self) -> int:
        """Records put since the last commit."""
        return self.delivered - self._delivered_at_commit

    def values(self, partitions: int) -> Values:
        """Return `sink-task-metrics`; `partitions` is the number of assigned partitions."""
        return {
            "partition-count": partitions,
            "sink-record-read-total": self.read,
            "sink-record-send-total": self.delivered,
            "put-batch-avg-time-ms": self.put.average * 1000,
            "put-batch-max-time-ms": self.put.largest * 1000,
            "sink-record-active-count": self.active,
            "sink-record-active-count-avg": self._active.average,
            "sink-record-active-count-max": self._active.largest,
            "offset-commit-seq-no": self.commits_begun,
            "offset-commit-completion-total": self.commit.count,
            "offset-commit-skip-total": self.commits_refused,
        }
