"""`TopologyTestDriver`: a topology run in memory, record by record, with a clock that only the test moves.

Every topic has one partition and every piped record is committed at once, so cached tables forward each
update. Records pass through the serdes, as they would over a broker.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from logd.client import TopicPartition
from streams.config import StreamsConfig
from streams.dsl import StreamsBuilder
from streams.errors import StreamsError
from streams.graph import SinkNode
from streams.processors.metrics import NodeMetrics
from streams.processors.record import Headers, Record
from streams.processors.windows import Duration, milliseconds
from streams.runtime.global_stores import GlobalStore
from streams.runtime.task import Task, TaskId
from streams.serdes import Serde, SerdeLike, serde_for
from streams.state import CachedStore, KeyValueStore, WindowStore, open_store
from streams.topology import Row, Topology

Time = datetime | int
"""An aware datetime, or ms since the epoch."""


def _ms(time: Time) -> int:
    return time if isinstance(time, int) else int(time.timestamp() * 1000)


class TopologyTestDriver:
    """Runs a topology without a broker. Use it as a context manager, or `close` it."""

    def __init__(
        self,
        topology: Topology | StreamsBuilder,
        *,
        start: Time = 0,
        outer_join_emit_interval_ms: int = 0,
    ) -> None:
        self._outer_join_emit_interval_ms = outer_join_emit_interval_ms
        self.topology = topology.build() if isinstance(topology, StreamsBuilder) else topology
        self._now = _ms(start)
        self._offsets: dict[str, itertools.count[int]] = {}
        self._output: dict[str, deque[Row]] = {}
        self._tasks: list[Task] = []
        self._readers: dict[str, Task] = {}
        config = StreamsConfig(application_id="test", bootstrap_servers="none:0")
        self._globals = {
            source.topics[0]: GlobalStore(open_store(self.topology.stores[name], None), source, config)
            for name, source in self.topology.global_stores.items()
        }
        for subtopology in self.topology.with_tasks:
            self._add_task(subtopology.id)

    def _add_task(self, number: int) -> None:
        subtopology = self.topology.subtopologies[number]
        stores = {name: open_store(self.topology.stores[name], None) for name in subtopology.stores}
        task = Task(
            TaskId(number, 0),
            subtopology,
            stores,
            clock=lambda: self._now,
            max_idle_ms=-1,
            global_stores={each.store.name: each.store for each in self._globals.values()},
            outer_join_emit_interval_ms=self._outer_join_emit_interval_ms,
        )
        for source in subtopology.sources:
            for topic in source.topics:
                task.add_input(TopicPartition(topic, 0), source, position=0, end=0)
                self._readers[topic] = task
        self._tasks.append(task)

    # -- topics

    def input_topic(
        self, topic: str, *, key_serde: SerdeLike | None = None, value_serde: SerdeLike | None = None
    ) -> TestInputTopic:
        """Where to pipe records in; serdes are the topology's own unless given."""
        source = self.topology.source_of(topic)
        return TestInputTopic(
            self,
            topic,
            serde_for(key_serde) or source.key_serde,
            serde_for(value_serde) or source.value_serde,
        )

    def output_topic(
        self, topic: str, *, key_serde: SerdeLike | None = None, value_serde: SerdeLike | None = None
    ) -> TestOutputTopic:
        """Where to read what was written; serdes are the topology's own unless given."""
        for node in self.topology.nodes.values():
            if isinstance(node, SinkNode) and node.topic == topic:
                key = serde_for(key_serde) or node.key_serde
                return TestOutputTopic(self, topic, key, serde_for(value_serde) or node.value_serde)
        raise KeyError(topic)

    def pipe(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers = ()
    ) -> None:
        """Pipe raw bytes in and run everything that follows from them."""
        self._accept(topic, (timestamp, key, value, headers))
        self._run_until_idle()

    def _accept(self, topic: str, row: Row) -> None:
        offset = next(self._offsets.setdefault(topic, itertools.count()))
        timestamp, key, value, headers = row
        record = (offset, timestamp, key, value, headers)
        if topic in self._globals:
            self._globals[topic].apply([record])
            return
        task = self._readers[topic]
        task.add(TopicPartition(topic, 0), [record], offset + 1, offset + 1)

    def _run_until_idle(self) -> None:
        """Process, commit and pass output on to the tasks that read it, until no task has any left."""
        moved = True
        while moved:
            moved = False
            for task in self._tasks:
                if task.process() or task.needs_commit:
                    moved = True
                    task.written(task.flush(), {})
                self._pass_on(task)

    def _pass_on(self, task: Task) -> None:
        for topic, rows in task.take_output().items():
            if topic in self._readers or topic in self._globals:
                for row in rows:
                    self._accept(topic, row)
            if topic in self.topology.sink_topics:
                self._output.setdefault(topic, deque()).extend(rows)

    def take(self, topic: str) -> deque[Row]:
        """Rows written to a topic and not read yet; what is taken off here counts as read."""
        return self._output.setdefault(topic, deque())

    # -- time

    @property
    def now(self) -> int:
        """The driver's wall clock, ms."""
        return self._now

    def advance_wall_clock(self, by: Duration) -> None:
        """Move the wall clock and fire what is due."""
        self._now += milliseconds(by)
        for task in self._tasks:
            task.punctuate()
        self._run_until_idle()

    # -- state

    def store(self, name: str) -> CachedStore:
        """A store by name; KeyError if there is none."""
        for task in self._tasks:
            if name in task.stores:
                return task.stores[name]
        for each in self._globals.values():
            if name == each.store.name:
                return each.store
        raise KeyError(name)

    def key_value_store(self, name: str) -> KeyValueStore[Any, Any]:
        """A key-value store by name."""
        store = self.store(name)
        assert isinstance(store, KeyValueStore)
        return store

    def window_store(self, name: str) -> WindowStore[Any, Any]:
        """A window store by name."""
        store = self.store(name)
        assert isinstance(store, WindowStore)
        return store

    def metrics(self) -> Mapping[str, NodeMetrics]:
        """Counters by node name."""
        return {name: metrics for task in self._tasks for name, metrics in task.metrics.items()}

    def close(self) -> None:
        """Close processors and stores."""
        for task in self._tasks:
            task.close()
        self._tasks.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TestInputTopic:
    """Pipes typed records into one topic."""

    __test__ = False  # not a test case, whatever pytest thinks of its name

    def __init__(
        self, driver: TopologyTestDriver, topic: str, key_serde: Serde[Any], value_serde: Serde[Any]
    ) -> None:
        self._driver = driver
        self._topic = topic
        self._key_serde = key_serde
        self._value_serde = value_serde

    def pipe_input(self, key: Any, value: Any, timestamp: Time | None = None, headers: Headers = ()) -> None:
        """Pipe one record in, at the driver's time unless ``timestamp`` is given."""
        self._driver.pipe(
            self._topic,
            None if key is None else self._key_serde.serialize(key),
            None if value is None else self._value_serde.serialize(value),
            self._driver.now if timestamp is None else _ms(timestamp),
            headers,
        )

    def pipe_all(
        self, records: Iterable[tuple[Any, Any]], *, start: Time | None = None, step: Duration = 0
    ) -> None:
        """Pipe keys and values in, ``step`` apart in time."""
        timestamp = self._driver.now if start is None else _ms(start)
        for key, value in records:
            self.pipe_input(key, value, timestamp)
            timestamp += milliseconds(step)


class TestOutputTopic:
    """Reads typed records of one topic, each once."""

    __test__ = False

    def __init__(
        self, driver: TopologyTestDriver, topic: str, key_serde: Serde[Any], value_serde: Serde[Any]
    ) -> None:
        self._driver = driver
        self._topic = topic
        self._key_serde = key_serde
        self._value_serde = value_serde

    @property
    def is_empty(self) -> bool:
        """Whether everything was read."""
        return not self._driver.take(self._topic)

    def read_output(self) -> Record[Any, Any]:
        """The next record; raises StreamsError when there is none."""
        rows = self._driver.take(self._topic)
        if not rows:
            raise StreamsError(f"nothing (more) was written to {self._topic!r}")
        timestamp, key, value, headers = rows.popleft()
        return Record(
            None if key is None else self._key_serde.deserialize(key),
            None if value is None else self._value_serde.deserialize(value),
            timestamp,
            headers,
        )

    def read_all(self) -> list[Record[Any, Any]]:
        """All records not read yet."""
        records = []
        while not self.is_empty:
            records.append(self.read_output())
        return records

    def read_key_values(self) -> list[tuple[Any, Any]]:
        """Keys and values of all records not read yet."""
        return [(record.key, record.value) for record in self.read_all()]

    def read_table(self) -> dict[Any, Any]:
        """The last value per key of all records not read yet; null values delete."""
        table: dict[Any, Any] = {}
        for record in self.read_all():
            if record.value is None:
                table.pop(record.key, None)
            else:
                table[record.key] = record.value
        return table


__all__ = ["TestInputTopic", "TestOutputTopic", "TopologyTestDriver"]
