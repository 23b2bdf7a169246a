"""The reading benchmark: records are fetched, checked and decoded, as a client hands them out."""

from __future__ import annotations

import time
from dataclasses import dataclass

from kafka_client import Consumer
from millstream.terminal.progress import Progress


@dataclass(slots=True)
class ConsumeBench:
    """The counts and times of a run. Times are seconds since 1970; a group is joined at `assigned_at`."""

    began_at: float = 0.0
    assigned_at: float = 0.0
    ended_at: float = 0.0
    records: int = 0
    bytes_read: int = 0

    async def run(self, consumer: Consumer, count: int, idle_ms: int, progress: Progress) -> None:
        """Read whole batches until `count` records are read, or until none arrives for `idle_ms`."""
        while self.records < count:
            batches = await consumer.fetch(timeout_ms=idle_ms)
            if not batches:
                break
            before = self.records
            for fetched in batches:
                for part in fetched.parts():
                    self.records += len(part.records)
                    self.bytes_read += sum(
                        len(key or b"") + len(value or b"") for _, _, key, value, _ in part.records
                    )
            self.ended_at = time.time()
            progress.advance(self.records - before)
        self.ended_at = self.ended_at or time.time()
