"""Fixtures for the storage tests: batches, and a log directory that can be closed, killed and reopened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_client.records import Record, build_batch, decode_records, iter_batches
from logd.config.topic import TopicConfig
from logd.storage import Log, LogDirectory
from logd.storage.disk import Disk, read_slice

NOW = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


class Store:
    """A log directory in a temporary place; `log` is partition 0 of topic `t`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = NOW
        self.config = TopicConfig()
        self.disk: Disk | None = None
        self.folder: LogDirectory | None = None
        self.offline: list[str] = []

    @property
    def log(self) -> Log:
        assert self.folder is not None
        return self.folder.logs["t", 0]

    @property
    def log_path(self) -> Path:
        return self.path / "t-0"

    def configure(self, **changes: Any) -> None:
        self.config = self.config.replaced(**changes)
        if self.folder is not None and ("t", 0) in self.folder.logs:
            self.log.config = self.config

    def open(self) -> Log:
        """Open the folder, and make the log if it is new."""
        self.folder = LogDirectory.open(
            self.path,
            node_id=1,
            cluster_id="cluster",
            config_for=lambda topic: self.config,
            now_ms=self.now,
            on_offline=self.offline.append,
            disk=self.disk,
        )
        if ("t", 0) not in self.folder.logs:
            self.folder.create_log("t", 0, topic_id=TOPIC_ID, config=self.config, now_ms=self.now)
        return self.log

    def kill(self) -> None:
        """Stop as SIGKILL does: the files stay as they are, nothing is written."""
        if self.folder is not None:
            for log in self.folder.logs.values():
                log.release()
            self.folder._lock.release()
            self.folder = None

    def close(self) -> None:
        """Stop cleanly."""
        if self.folder is not None:
            self.folder.close()
            self.folder = None

    def reopen(self, *, clean: bool) -> Log:
        if clean:
            self.close()
        else:
            self.kill()
        return self.open()

    def append(self, *values: str, **facts: Any) -> int:
        """Append one batch; returns its base offset. `timestamps` default to now, now + 1, …"""
        return self.log.writer.append(
            make_batch(*values, **{"now": self.now, **facts}), 0, self.now
        ).base_offset

    def records(self, start: int | None = None) -> list[Record]:
        """Everything that can be read."""
        records: list[Record] = []
        for chunk in self.log.reader.batches(self.log.log_start_offset if start is None else start):
            for position, _ in iter_batches(chunk):
                records += decode_records(chunk, position)
        return records

    def values(self) -> list[str]:
        return [(record[3] or b"").decode() for record in self.records()]

    def offsets_in(self, offset: int, max_bytes: int, **facts: Any) -> list[int]:
        """Return the base offsets of the batches that one read returns."""
        piece = self.log.reader.read(offset, max_bytes, **facts)
        if piece is None:
            return []
        data = read_slice(piece)
        batches = list(iter_batches(data))
        assert sum(header.size for _, header in batches) == len(data), "a batch is cut"
        return [header.base_offset for _, header in batches]

    def files(self) -> set[str]:
        return {path.name for path in self.log_path.iterdir()}


def make_batch(*values: str, now: int = NOW, timestamps: list[int] | None = None, **facts: Any) -> bytes:
    times = timestamps or [now + index for index in range(len(values))]
    return build_batch(
        [(time, None, value.encode(), ()) for time, value in zip(times, values, strict=True)], **facts
    )


@pytest.fixture
def batch() -> Callable[..., bytes]:
    """Builds a batch of these values."""
    return make_batch


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An open log directory with an empty log."""
    store = Store(tmp_path / "data")
    store.open()
    yield store
    store.kill()


@pytest.fixture
def new_store(tmp_path: Path) -> Iterator[Store]:
    """A store not opened yet, to be given another disk or config first."""
    store = Store(tmp_path / "data")
    yield store
    store.kill()


@pytest.fixture(scope="session")
def make_store() -> type[Store]:
    """For tests that need many."""
    return Store
