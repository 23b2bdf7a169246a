"""The loop's counters of polls, turns and commits, with the names of Kafka's `stream-thread-metrics`."""

from __future__ import annotations

from kafka_client.metrics.metrics import Values
from kafka_client.metrics.windowed import Windowed, in_ms


class ThreadMetrics:
    """The counters of one instance. Times are in seconds; `started_at` in ms since the epoch."""

    __slots__ = (
        "commit",
        "poll",
        "poll_records",
        "process",
        "process_records",
        "started_at",
        "tasks_closed",
        "tasks_created",
    )

    def __init__(self, started_at: int, commit: Windowed) -> None:
        self.started_at = started_at
        self.poll, self.poll_records = Windowed(), Windowed()
        """Durations of fetches, including the wait for records, and their numbers of records."""
        self.process, self.process_records = Windowed(), Windowed()
        """Durations of turns of all tasks, and their numbers of records."""
        self.commit = commit
        self.tasks_created = self.tasks_closed = 0

    def values(self, processed: int) -> Values:
        """Return the values by Kafka's names, times in ms. `processed`: the records of all sources."""
        return {
            "thread-start-time": self.started_at,
            "poll-total": self.poll.count,
            "poll-ratio": self.poll.ratio,
            **in_ms("poll-latency", self.poll),
            "poll-records-avg": self.poll_records.average,
            "poll-records-max": self.poll_records.largest,
            "process-total": processed,
            "process-ratio": self.process.ratio,
            **in_ms("process-latency", self.process),
            "process-records-avg": self.process_records.average,
            "process-records-max": self.process_records.largest,
            "commit-total": self.commit.count,
            "commit-ratio": self.commit.ratio,
            **in_ms("commit-latency", self.commit),
            "task-created-total": self.tasks_created,
            "task-closed-total": self.tasks_closed,
        }
