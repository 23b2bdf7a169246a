"""A kit for connector authors: run a task without a broker.

run = SourceRun(FilesSource, {"file": "flights.csv", "topic": "flights"})
records = run.records()          # until the source has ended or has nothing more
run.commit()                     # as if all were acknowledged
run.again().records()            # a restart from the committed offsets

with SinkRun(MySink, {"path": "out"}) as sink:
    sink.put([SinkRecord("t", 0, 0, value={"a": 1})])
    sink.flush()
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from connect.api.calls import MaybeAwaitable
from connect.api.records import SinkRecord, SourceRecord
from connect.api.sink import SinkConnector, SinkTask, SinkTaskContext
from connect.api.source import ConnectorContext, SourceConnector, SourceTask, SourceTaskContext
from connect.runtime.calls import PluginCalls
from connect.stores import ConnectorOffsets
from logd.client import TopicPartition

POLLS_MAX = 100_000


class MemoryOffsetStore:
    """Offsets in a dict."""

    def __init__(self) -> None:
        self.offsets: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        """The stored offset."""
        return self.offsets.get(key)

    async def put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Store them."""
        merged = {**self.offsets, **offsets}
        self.offsets = {k: v for k, v in merged.items() if v is not None}


def call(method: Any, *args: Any) -> Any:
    """A plugin method's result, plain or async, from ordinary code."""

    async def run() -> Any:
        calls = PluginCalls("testing")
        try:
            return await calls.call(method, *args)
        finally:
            calls.close()

    return asyncio.run(run())


class SourceRun:
    """Plays the worker for one source connector and its tasks, one task after the other."""

    def __init__(
        self,
        connector: type[SourceConnector],
        config: Mapping[str, str],
        *,
        name: str = "test",
        max_tasks: int = 1,
        store: MemoryOffsetStore | None = None,
    ) -> None:
        self.store = store or MemoryOffsetStore()
        self._arguments: dict[str, Any] = {"name": name, "max_tasks": max_tasks}
        self._connector, self._config = connector, dict(config)
        self._offsets = ConnectorOffsets(self.store, name)
        self._seen: list[SourceRecord] = []
        connector.CONFIG.parse(config)
        self.connector = connector()
        self.connector.context = ConnectorContext(connector=name)
        call(self.connector.start, dict(config))
        self.task_configs: list[dict[str, str]] = call(self.connector.task_configs, max_tasks)
        self.tasks = [self._start(i, task_config) for i, task_config in enumerate(self.task_configs)]

    def _start(self, task_id: int, config: Mapping[str, str]) -> SourceTask:
        task = self.connector.task_class()
        task.context = SourceTaskContext(
            connector=self._arguments["name"], task_id=task_id, offsets=self._offsets
        )
        call(task.start, config)
        return task

    def poll(self, task_id: int = 0) -> list[SourceRecord]:
        """One poll of one task."""
        records: Sequence[SourceRecord] | None = call(self.tasks[task_id].poll)
        self._seen += records or []
        return list(records or [])

    def records(self) -> list[SourceRecord]:
        """What all tasks return until each has ended or returned nothing."""
        found: list[SourceRecord] = []
        for task_id, task in enumerate(self.tasks):
            for _ in range(POLLS_MAX):
                records = self.poll(task_id)
                found += records
                if not records or task.context.is_finished:
                    break
        return found

    def commit(self) -> None:
        """Store the offsets of everything returned so far."""
        offsets = {
            self._offsets.key(r.source_partition): r.source_offset
            for r in self._seen
            if r.source_partition is not None and r.source_offset is not None
        }
        asyncio.run(self._offsets.commit(offsets))
        for task in self.tasks:
            call(task.commit)

    def stop(self) -> None:
        """Stop tasks and connector."""
        for task in self.tasks:
            call(task.stop)
        call(self.connector.stop)

    def again(self) -> SourceRun:
        """Stop, and start anew from what was committed: what a crash or a restart does."""
        self.stop()
        return SourceRun(self._connector, self._config, store=self.store, **self._arguments)


class SinkRun:
    """Plays the worker for one sink task. Partitions are opened as records of them are put."""

    def __init__(
        self, connector: type[SinkConnector], config: Mapping[str, str], *, name: str = "test"
    ) -> None:
        connector.CONFIG.parse(config)
        self.connector = connector()
        self.connector.context = ConnectorContext(connector=name)
        call(self.connector.start, dict(config))
        task = connector.task_class()
        assert isinstance(task, SinkTask), "SinkRun is for sinks of records"
        self.task = task
        self.task.context = SinkTaskContext(connector=name, task_id=0)
        call(self.task.start, call(self.connector.task_configs, 1)[0])
        self._next: dict[TopicPartition, int] = {}

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Deliver records."""
        partitions = {TopicPartition(r.topic, r.partition) for r in records}
        new = sorted(partitions - self._next.keys())
        if new:
            call(self.task.open, new)
        call(self.task.put, records)
        for record in records:
            self._next[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def flush(self) -> dict[TopicPartition, int]:
        """Flush, and return the offsets a worker would commit."""
        allowed: Mapping[TopicPartition, int] | None = call(self.task.pre_commit, dict(self._next))
        if allowed is None:
            call(self.task.flush, dict(self._next))
            allowed = self._next
        return dict(allowed)

    def stop(self) -> None:
        """Close partitions and stop."""
        call(self.task.close, sorted(self._next))
        call(self.task.stop)
        call(self.connector.stop)

    def __enter__(self) -> SinkRun:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()


__all__ = ["MaybeAwaitable", "MemoryOffsetStore", "SinkRun", "SourceRun", "call"]
