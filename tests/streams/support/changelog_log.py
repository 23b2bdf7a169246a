"""A changelog under a test's control: batches, markers, what compaction and deletion take; and who reads it.

`Log` is the broker and `Cluster` the client to it. `Log.install` makes `runtime.restore` use both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client import Fetched, TopicPartition
from kafka_client.records import Headers, build_batch
from streams.runtime.restore import restore

TP = TopicPartition("app-s-changelog", 0)
TOPIC_ID = b"0123456789abcdef"
RETENTION_MS = 86_400_000


@dataclass(slots=True)
class Row:
    """A record. ``aborted``: of a transaction that was, or will be."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    headers: Headers
    aborted: bool = False


class Log:
    """``stable``: where an open transaction begins; ``active``: of the segment that is not cleaned."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.start = self.end = self.active = 0
        self.stable: int | None = None

    def append(self, batch: bytes) -> int:
        """Append a batch and return its first offset. Each batch begins a segment, so that most can be
        cleaned.
        """
        first = self.active = self.end
        for offset, timestamp, key, value, headers in Fetched(TP, 0, 0, memoryview(batch)).records():
            assert key is not None
            self.rows.append(Row(first + offset, timestamp, key, value, headers))
            self.end = first + offset + 1
        return first

    def mark(self) -> None:
        """Append a transaction's marker."""
        self.end += 1
        self.stable = None

    def compact(self, *, tombstones: bool = False) -> None:
        """Remove what later records before the active segment supersede, and ``tombstones`` at their time."""
        last = {row.key: row.offset for row in self.rows if row.offset < self.active and not row.aborted}
        self.rows = [
            row
            for row in self.rows
            if row.offset >= self.active
            or (not row.aborted and last[row.key] == row.offset and not (tombstones and row.value is None))
        ]

    def truncate_start(self, start: int) -> None:
        """Delete what lies before."""
        self.start = max(self.start, start)
        self.rows = [row for row in self.rows if row.offset >= self.start]

    def keys(self, until: int) -> set[bytes]:
        """Return the keys that have a record that counts before that offset."""
        return {row.key for row in self.rows if row.offset < until and not row.aborted}

    def fetched(self, position: int, steps: int) -> Fetched:
        """Return some records from a position on, without aborted ones."""
        until = min(self.end if self.stable is None else self.stable, position + steps)
        rows = [row for row in self.rows if position <= row.offset < until and not row.aborted]
        batches = (
            build_batch([(row.timestamp, row.key, row.value, row.headers)], base_offset=row.offset)
            for row in rows
        )
        return Fetched(TP, position, until, memoryview(b"".join(batches)))

    def install(self, patch: pytest.MonkeyPatch, steps: int) -> None:
        """Have restores read this log, so many offsets at one time."""
        patch.setattr(restore, "Admin", lambda client: self)
        patch.setattr(restore, "BatchFetcher", lambda client, **settings: Reader(self, steps))

    # -- what a restore asks the brokers

    async def list_offsets(
        self, specs: Mapping[TopicPartition, str], *, isolation_level: str = "read_uncommitted"
    ) -> dict[TopicPartition, Any]:
        """Return offsets as `Admin.list_offsets` does."""
        end = self.stable if isolation_level == "read_committed" and self.stable is not None else self.end
        offsets = {"earliest": self.start, "latest": end}
        return {tp: SimpleNamespace(offset=offsets[spec]) for tp, spec in specs.items()}

    async def describe_configs(self, topic: str, *, keys: Iterable[str]) -> dict[str, Any]:
        """Return configs as `Admin.describe_configs` does."""
        return {key: SimpleNamespace(value=str(RETENTION_MS)) for key in keys}

    async def metadata(self, topics: Iterable[str]) -> Any:
        """Return metadata as `Client.metadata` does."""
        return SimpleNamespace(topics={topic: SimpleNamespace(topic_id=TOPIC_ID) for topic in topics})


class Reader:
    """A fetcher of one log, in place of `BatchFetcher`."""

    def __init__(self, log: Log, steps: int) -> None:
        self._log, self._steps = log, steps
        self._position: int | None = None

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read from there on."""
        (self._position,) = positions.values()

    async def fetch(self) -> list[Fetched]:
        """Return the records of the next offsets."""
        assert self._position is not None, "nothing is read any more"
        fetched = self._log.fetched(self._position, self._steps)
        assert fetched.next_offset > self._position, "a restore waits for what will not come"
        self._position = fetched.next_offset
        return [fetched]

    def remove(self, tp: TopicPartition) -> None:
        """Read no more of it."""
        self._position = None

    async def close(self) -> None:
        """There is nothing to close."""
