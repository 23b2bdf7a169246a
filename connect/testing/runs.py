"""SourceRun and SinkRun: a connector with its tasks, run from ordinary code without a broker."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from connect.api.batch_source import BatchSourceTask
from connect.api.columnar_sink import ColumnarSinkTask
from connect.api.json_sink import JsonSinkTask
from connect.api.raw_batch import RawBatch
from connect.api.records import SinkRecord, SourceRecord
from connect.api.sink import SinkConnector, SinkTask, SinkTaskContext
from connect.api.source import ConnectorContext, SourceConnector, SourceTask, SourceTaskContext
from connect.runtime.calls import PluginCalls
from connect.runtime.json_records import json_batches
from connect.stores import ConnectorOffsets
from connect.testing.raw_batches import decoded
from kafka_client import TopicPartition

POLLS_MAX = 100_000
_BLOCKING_SECONDS = 0.2
"""How long a call runs before it is interrupted."""


class MemoryOffsetStore:
    """A store of source offsets in a dict."""

    def __init__(self) -> None:
        self.offsets: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the offset stored under `key`, or None."""
        return self.offsets.get(key)

    def keys(self) -> Iterable[bytes]:
        """Return the keys of all stored offsets."""
        return list(self.offsets)

    async def refresh(self) -> None:
        """Return at once: nobody else stores anything."""

    async def put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Store `offsets`; a value of None deletes its key."""
        merged = {**self.offsets, **offsets}
        self.offsets = {k: v for k, v in merged.items() if v is not None}


class Calls:
    """Calls of plugin methods, plain or async, from ordinary code: one event loop and one thread for all.

    As in a worker, a plugin may use in one call the resources that it opened in an earlier call.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._calls = PluginCalls("testing")
        self._finalizer = weakref.finalize(self, _end, self._calls, self._runner)

    def __call__(self, method: Any, *args: Any) -> Any:
        """Call a plugin method and return its result."""
        return self._runner.run(self._calls.call(method, *args))

    def interrupt(self, method: Any, stop: Any, seconds: float) -> bool:
        """Call `method`, and `stop` while it still runs. Return True if both return within `seconds`."""
        return self._runner.run(self._interrupt(method, stop, seconds))

    async def _interrupt(self, method: Any, stop: Any, seconds: float) -> bool:
        calling = asyncio.ensure_future(self._calls.call(method))
        await asyncio.wait({calling}, timeout=_BLOCKING_SECONDS)
        is_plain = self._calls.is_busy
        if not is_plain:
            calling.cancel()  # as the worker does with an async method
        call = self._calls.call_concurrently if is_plain else self._calls.call
        stopping = asyncio.ensure_future(call(stop))
        _, late = await asyncio.wait({calling, stopping}, timeout=seconds)
        for each in late:
            each.cancel()
        if stopping not in late:
            stopping.result()
        if calling not in late and not calling.cancelled():
            calling.exception()  # the worker ignores what an interrupted call raises
        return not late

    @contextmanager
    def closing_after_errors(self) -> Iterator[None]:
        """End the thread and the loop if the body raises: its caller gets no run to stop."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the thread and the loop."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        """True if `close` was called."""
        return not self._finalizer.alive


def _end(calls: PluginCalls, runner: asyncio.Runner) -> None:
    calls.close()
    runner.close()


class SourceRun:
    """A worker for one source connector; its tasks run one after the other."""

    def __init__(
        self,
        connector: type[SourceConnector],
        config: Mapping[str, str],
        *,
        name: str = "test",
        max_tasks: int = 1,
        store: MemoryOffsetStore | None = None,
    ) -> None:
        self._call = Calls()
        self.store = store or MemoryOffsetStore()
        self._arguments: dict[str, Any] = {"name": name, "max_tasks": max_tasks}
        self._connector, self._config = connector, dict(config)
        self._offsets = ConnectorOffsets(self.store, name)
        self._polled: list[SourceRecord] = []
        self.batches: list[RawBatch] = []
        """The batches that a BatchSourceTask has returned."""
        self._unacknowledged: list[tuple[BatchSourceTask, RawBatch]] = []
        with self._call.closing_after_errors():
            connector.CONFIG.parse(config)
            self.connector = connector()
            self.connector.context = ConnectorContext(connector=name)
            self._call(self.connector.start, dict(config))
            self.task_configs: list[dict[str, str]] = self._call(self.connector.task_configs, max_tasks)
            self.tasks = [self._start(i, task_config) for i, task_config in enumerate(self.task_configs)]

    def _start(self, task_id: int, config: Mapping[str, str]) -> SourceTask | BatchSourceTask:
        task = self.connector.task_class()
        task.context = SourceTaskContext(
            connector=self._arguments["name"], task_id=task_id, offsets=self._offsets
        )
        self._call(task.start, config)
        return task

    def poll(self, task_id: int = 0) -> list[SourceRecord]:
        """Poll one task once and return its records; of a BatchSourceTask those in its batches.

        Raises DataError for a batch that a worker would refuse.
        """
        task = self.tasks[task_id]
        polled: Any = self._call(task.poll)
        if isinstance(task, BatchSourceTask):
            self.batches += polled or []
            self._unacknowledged += [(task, batch) for batch in polled or []]
            polled = [record for batch in polled or [] for record in decoded(batch)]
        records: Sequence[SourceRecord] | None = polled
        self._polled += records or []
        return list(records or [])

    def records(self) -> list[SourceRecord]:
        """Poll each task in turn until it has ended or returns nothing, and return all records."""
        records_of_all: list[SourceRecord] = []
        for task_id, task in enumerate(self.tasks):
            for _ in range(POLLS_MAX):
                records = self.poll(task_id)
                records_of_all += records
                if not records or task.context.is_finished:
                    break
        return records_of_all

    def commit(self) -> None:
        """Store the offsets of everything returned so far, and of what was skipped."""
        offsets = {
            self._offsets.key(r.source_partition): self._offsets.encode(r.source_offset)
            for r in self._polled
            if r.source_partition is not None and r.source_offset is not None
        }
        for task in self.tasks:
            updates = self._call(task.update_offsets) or ()
            offsets |= {self._offsets.key(p): self._offsets.encode(offset) for p, offset in updates}
        self._call(self._offsets.commit, offsets)
        for batch_task, batch in self._unacknowledged:
            self._call(batch_task.commit_batch, batch, None)
        self._unacknowledged.clear()
        for task in self.tasks:
            self._call(task.commit)

    def stop(self) -> None:
        """Stop the tasks and the connector. A second call does nothing."""
        if self._call.closed:
            return
        for task in self.tasks:
            self._call(task.stop)
        self._call(self.connector.stop)
        self._call.close()

    def interrupt(self, seconds: float = 30) -> bool:
        """Stop the first task while its `poll` waits, and then the rest.

        Return False if the poll has not returned `seconds` later.
        """
        task = self.tasks.pop(0)
        is_ended = self._call.interrupt(task.poll, task.stop, seconds)
        self.stop()
        return is_ended

    def store_at(self, record: SourceRecord) -> MemoryOffsetStore:
        """Return a store in which this record's source offset is the last that was committed."""
        assert record.source_partition is not None
        assert record.source_offset is not None
        store = MemoryOffsetStore()
        key = self._offsets.key(record.source_partition)
        store.offsets[key] = self._offsets.encode(record.source_offset)
        return store

    def again(self) -> Self:
        """Stop, and return a new run that starts from the committed offsets, as after a restart."""
        self.stop()
        return type(self)(self._connector, self._config, store=self.store, **self._arguments)


class SinkRun:
    """A stand-in for a worker that runs one task of a sink connector.

    A partition is opened in the task when its first record is put.
    """

    def __init__(
        self, connector: type[SinkConnector], config: Mapping[str, str], *, name: str = "test"
    ) -> None:
        self._call = Calls()
        with self._call.closing_after_errors():
            connector.CONFIG.parse(config)
            self.connector = connector()
            self.connector.context = ConnectorContext(connector=name)
            self._call(self.connector.start, dict(config))
            task = connector.task_class()
            assert isinstance(task, SinkTask), "SinkRun is for sinks of records"
            self.task = task
            self.task.context = SinkTaskContext(connector=name, task_id=0)
            self._call(self.task.start, self._call(self.connector.task_configs, 1)[0])
        self._next: dict[TopicPartition, int] = {}

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Deliver records, without those before the offsets that the task has set by `context.offset`."""
        partitions = {TopicPartition(r.topic, r.partition) for r in records}
        new = sorted(partitions - self._next.keys())
        if new:
            self._call(self.task.open, new)
        rewinds = self.task.context.rewinds
        records = [
            r for r in records if r.offset >= rewinds.get(TopicPartition(r.topic, r.partition), r.offset)
        ]
        if records:
            self._call(*self._put_call(records))
        for record in records:
            self._next[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def _put_call(self, records: Sequence[SinkRecord]) -> tuple[Any, Any]:
        if isinstance(self.task, ColumnarSinkTask) and self.task.takes_columns:
            from connect.runtime.columnar.from_records import column_batches

            return self.task.put_columns, column_batches(records)
        if isinstance(self.task, JsonSinkTask) and self.task.takes_json:
            return self.task.put_json, json_batches(records)
        return self.task.put, records

    def flush(self) -> dict[TopicPartition, int]:
        """Flush, and return the offsets a worker would commit."""
        allowed: Mapping[TopicPartition, int] | None = self._call(self.task.pre_commit, dict(self._next))
        if allowed is None:
            self._call(self.task.flush, dict(self._next))
            allowed = self._next
        return dict(allowed)

    def close(self, partition: int) -> None:
        """Commit and close this partition of each topic, as when the group gives it to another task."""
        self.flush()
        closing = sorted(tp for tp in self._next if tp.partition == partition)
        for tp in closing:
            del self._next[tp]
        self._call(self.task.close, closing)

    def crash(self) -> None:
        """End as a killed worker does: no method of the plugin is called any more."""
        self._call.close()

    def stop(self) -> None:
        """Close the partitions and stop. A second call does nothing."""
        if self._call.closed:
            return
        self._call(self.task.close, sorted(self._next))
        self._call(self.task.stop)
        self._call(self.connector.stop)
        self._call.close()

    def __enter__(self) -> SinkRun:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
