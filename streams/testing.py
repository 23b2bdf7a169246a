"""`TopologyTestDriver`: runs a topology in memory, record by record, with a clock that only the test moves.

Every topic has one partition, and every record has a commit of its own, also after a repartition topic. So
cached tables forward each update. Records pass through the serdes, as with a broker. As in Kafka's driver,
all sub-topologies are one task with one stream time, and records of equal times are in the same order.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from kafka_client import TopicPartition
from streams.dsl import StreamsBuilder
from streams.errors import StreamsError
from streams.graph import SinkNode, SourceNode
from streams.handlers import ExceptionHandler, log_and_fail
from streams.processors.metrics import NodeMetrics
from streams.processors.record import Headers, Record
from streams.processors.windowing.windows import Duration, milliseconds
from streams.runtime.restore.global_stores import GlobalStore
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.global_processor import GlobalProcessor
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.settings import TaskSettings
from streams.runtime.task.task import Task
from streams.runtime.task_id import TaskId
from streams.runtime.threads.coroutine_thread import CoroutineThread
from streams.runtime.topics import TopicNames
from streams.serdes import Serde, SerdeLike, serde_for
from streams.state import (
    CachedStore,
    KeyValueStore,
    SessionStore,
    VersionedStore,
    WindowStore,
    open_store,
)
from streams.topology import (
    Handlers,
    Row,
    Subtopology,
    Topology,
    WrittenInOrder,
    match_topics,
    pattern_sources,
)
from streams.topology.java_order import PriorityQueue

Time = datetime | int
"""An aware datetime, or ms since the epoch."""


def _ms(time: Time) -> int:
    return time if isinstance(time, int) else int(time.timestamp() * 1000)


class TopologyTestDriver:
    """A driver that runs a topology without a broker. Use it as a context manager, or `close` it.

    ``start``: the wall clock. ``windowed_emit_interval_ms``: the interval of wall clock at which closed
    windows are emitted; by default with each record. ``application_id``: the id that processors see, also in
    front of the names of internal topics.
    """

    def __init__(
        self,
        topology: Topology | StreamsBuilder,
        *,
        start: Time = 0,
        handlers: Handlers | None = None,
        outer_join_emit_interval_ms: int = 0,
        windowed_emit_interval_ms: int = 0,
        application_id: str = "topology-test-driver",
    ) -> None:
        self.topology = topology.build() if isinstance(topology, StreamsBuilder) else topology
        self._now = _ms(start)
        self._application_id = application_id
        self._folder: TemporaryDirectory[str] | None = None
        self._coroutines = CoroutineThread()
        self._offsets: dict[str, itertools.count[int]] = {}
        self._output: dict[str, deque[Row]] = {}
        self._waiting: dict[str, deque[Row]] = {}
        self._inputs: dict[str, TopicPartition] = {}
        self._heads = PriorityQueue[str](lambda topic: self._waiting[topic][0][0])
        kept_in = {name: source.topics[0] for name, source in self.topology.global_stores.items()}
        stores = {
            name: open_store(spec.of_topic(kept_in.get(name) or spec.source_topic or spec.changelog), None)
            for name, spec in self.topology.stores.items()
        }
        on_bad_record = log_and_fail if handlers is None else handlers.deserialization
        self._globals = {
            part.topics[0]: self._global_store(part, stores, on_bad_record)
            for part in self.topology.subtopologies
            if part.is_global
        }
        nodes = (node for subtopology in self.topology.with_tasks for node in subtopology.nodes)
        everything = Subtopology(0, tuple(nodes))
        self._task = Task(
            TaskId(0, 0),
            everything,
            stores,
            TaskEnvironment(
                clock=lambda: self._now,
                global_stores={each.store.name: each.store for each in self._globals.values()},
                coroutines=self._coroutines,
                state_dir=lambda id: self._state_dir(),
            ),
            TaskSettings(
                application_id=application_id,
                max_idle_ms=-1,
                windowed_emit_interval_ms=windowed_emit_interval_ms,
                outer_join_emit_interval_ms=outer_join_emit_interval_ms,
                handlers=handlers or Handlers(),
            ),
            written=WrittenInOrder,
        )
        self._task.idle.step_max_ms = None
        self._names = TopicNames(application_id, self.topology)
        for source in everything.sources:
            for topic in source.topics:
                self._add_input(topic, source)
        self._task.idle.look(self._now)

    def _add_input(self, topic: str, source: SourceNode) -> None:
        # The cluster's name of the topic is used: records' contexts have it, and suppress counts its bytes.
        self._inputs[topic] = TopicPartition(self._names.topic(topic), 0)
        self._task.add_input(self._inputs[topic], source, InputStart(position=0, end=0))
        self._waiting[topic] = deque()

    def _source_of(self, topic: str) -> SourceNode | None:
        """Return the source node whose pattern matches the topic, or None."""
        matched = match_topics(self.topology, [topic])
        return next((each for each in pattern_sources(self.topology) if matched[each.name]), None)

    def _is_input(self, topic: str) -> bool:
        """Return True if tasks read the topic. Adds a topic that matches a pattern to the inputs."""
        if topic not in self._inputs and (source := self._source_of(topic)) is not None:
            self._add_input(topic, source)
        return topic in self._inputs

    def _state_dir(self) -> Path:
        """Return the state directory for processors: a temporary folder, made at the first call."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="topology-test-driver-")
        return Path(self._folder.name)

    def _global_store(
        self, part: Subtopology, stores: dict[str, CachedStore], on_bad_record: ExceptionHandler
    ) -> GlobalStore:
        (source,), (name,) = part.sources, part.stores
        store = stores.pop(name)
        processor = None
        if source.by_processor:
            processor = GlobalProcessor(
                part,
                store,
                lambda: self._now,
                application_id=self._application_id,
                state_dir=self._state_dir,
            )
        return GlobalStore(store, source, on_bad_record, processor=processor)

    # -- topics

    def input_topic(
        self, topic: str, *, key_serde: SerdeLike | None = None, value_serde: SerdeLike | None = None
    ) -> TestInputTopic:
        """Return the topic to pipe records into; serdes are the topology's own unless given."""
        source = self._source_of(topic) or self.topology.source_of(topic)
        return TestInputTopic(
            self,
            topic,
            (serde_for(key_serde) or source.key_serde).of_topic(topic, is_key=True),
            (serde_for(value_serde) or source.value_serde).of_topic(topic, is_key=False),
        )

    def output_topic(
        self, topic: str, *, key_serde: SerdeLike | None = None, value_serde: SerdeLike | None = None
    ) -> TestOutputTopic:
        """Return the topic to read output from; serdes are the topology's own unless given."""
        for node in self.topology.nodes.values():
            if isinstance(node, SinkNode) and node.topic == topic:
                key = serde_for(key_serde) or node.key_serde
                return TestOutputTopic(self, topic, key, serde_for(value_serde) or node.value_serde)
        # A topic that a sink chooses, or of dead letters: nothing in the topology names its serdes.
        keys, values = serde_for(key_serde), serde_for(value_serde)
        if keys is None or values is None:
            raise KeyError(f"no sink names topic {topic!r}: give key_serde= and value_serde=")
        return TestOutputTopic(self, topic, keys, values)

    def pipe(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers = ()
    ) -> None:
        """Pipe a record of raw bytes in, and process everything that follows from it."""
        self._accept(topic, (timestamp, key, value, headers))
        self._run_until_idle()

    def pipe_many(self, topic: str, rows: Iterable[Row]) -> None:
        """Pipe rows in (timestamp, key, value, headers), and process them in one turn with one commit.

        So a batch node receives them together.
        """
        if topic in self._globals:
            for row in rows:
                self._accept(topic, row)
            return
        self._is_input(topic)
        offsets = self._offsets.setdefault(topic, itertools.count())
        records = [(next(offsets), *row) for row in rows]
        if records:
            end = records[-1][0] + 1
            self._task.add(self._inputs[topic], records, end, end)
            self._task.process()
            self._commit()
        self._run_until_idle()

    def _accept(self, topic: str, row: Row) -> None:
        if topic in self._globals:
            timestamp, key, value, headers = row
            offset = next(self._offsets.setdefault(topic, itertools.count()))
            self._globals[topic].apply(0, [(offset, timestamp, key, value, headers)])
            return
        self._is_input(topic)
        waiting = self._waiting[topic]
        waiting.append(row)
        if len(waiting) == 1:
            self._heads.offer(topic)

    def _run_until_idle(self) -> None:
        """Process record by record, the lowest time first, each with a commit, until none is left."""
        self._pass_on()
        while self._heads:
            topic = self._heads.poll()
            waiting = self._waiting[topic]
            timestamp, key, value, headers = waiting.popleft()
            if waiting:
                self._heads.offer(topic)
            offset = next(self._offsets.setdefault(topic, itertools.count()))
            record = (offset, timestamp, key, value, headers)
            self._task.add(self._inputs[topic], [record], offset + 1, offset + 1)
            self._task.process()
            self._commit()
            self._pass_on()
        self._task.idle.look(self._now)

    def _commit(self) -> None:
        flush = self._task.flush()
        for name, pending in flush.changes.items():
            if (spec := self.topology.stores[name]).logged:
                rows = [(timestamp, key, value, ()) for key, (value, timestamp) in pending.items()]
                self._output.setdefault(spec.changelog, deque()).extend(rows)
        self._task.written(flush, {})

    def _pass_on(self) -> None:
        for topic, row in self._task.take_output_in_order():
            self._output.setdefault(topic, deque()).append(row)
            if topic in self._globals or self._is_input(topic):
                self._accept(topic, row)

    def take(self, topic: str) -> deque[Row]:
        """Return the rows written to a topic and not read yet; a row removed from the result counts as read.

        Repartition topics and changelogs have names without an application id: ``counts-changelog``.
        """
        return self._output.setdefault(topic, deque())

    # -- time

    @property
    def now(self) -> int:
        """The driver's wall clock, ms."""
        return self._now

    def advance_wall_clock(self, by: Duration) -> None:
        """Move the wall clock, and fire the schedules that are due."""
        self._now += milliseconds(by)
        self._task.punctuate()
        if self._task.idle.is_due:
            self._task.idle.check_ends({tp: queue.end for tp, queue in self._task.queues.items()})
            self._task.punctuate()
        self._commit()
        self._run_until_idle()

    # -- state

    def store(self, name: str) -> CachedStore:
        """Return the store of this name. Raises KeyError if there is none."""
        for each in self._globals.values():
            if each.store.name == name:
                return each.store
        return self._task.stores[name]

    def key_value_store(self, name: str) -> KeyValueStore[Any, Any]:
        """Return the key-value store of this name."""
        store = self.store(name)
        assert isinstance(store, KeyValueStore)
        return store

    def window_store(self, name: str) -> WindowStore[Any, Any]:
        """Return the window store of this name."""
        store = self.store(name)
        assert isinstance(store, WindowStore)
        return store

    def session_store(self, name: str) -> SessionStore[Any, Any]:
        """Return the session store of this name."""
        store = self.store(name)
        assert isinstance(store, SessionStore)
        return store

    def versioned_store(self, name: str) -> VersionedStore[Any, Any]:
        """Return the versioned store of this name."""
        store = self.store(name)
        assert isinstance(store, VersionedStore)
        return store

    def metrics(self) -> Mapping[str, NodeMetrics]:
        """Return the counters by node name."""
        return self._task.metrics

    def close(self) -> None:
        """Close processors, stores, and the contexts of coroutines."""
        try:
            self._task.close()
            for each in self._globals.values():
                each.close()
        finally:
            self._coroutines.close()
            if self._folder is not None:
                self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class TestInputTopic:
    """A topic to pipe typed records into."""

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
        time, *row = self._row(key, value, self._driver.now if timestamp is None else _ms(timestamp))
        self._driver.pipe(self._topic, row[0], row[1], time, headers)

    def _row(self, key: Any, value: Any, timestamp: int) -> tuple[int, bytes | None, bytes | None]:
        return (
            timestamp,
            None if key is None else self._key_serde.serialize(key),
            None if value is None else self._value_serde.serialize(value),
        )

    def pipe_many(
        self, records: Iterable[tuple[Any, Any]], *, start: Time | None = None, step: Duration = 0
    ) -> None:
        """Pipe records as `pipe_all` does, with one commit after all: batch nodes receive them together."""
        first, step_ms = self._driver.now if start is None else _ms(start), milliseconds(step)
        rows = [(*self._row(key, value, first + n * step_ms), ()) for n, (key, value) in enumerate(records)]
        self._driver.pipe_many(self._topic, rows)

    def pipe_all(
        self, records: Iterable[tuple[Any, Any]], *, start: Time | None = None, step: Duration = 0
    ) -> None:
        """Pipe keys and values in, with timestamps ``step`` apart."""
        timestamp = self._driver.now if start is None else _ms(start)
        for key, value in records:
            self.pipe_input(key, value, timestamp)
            timestamp += milliseconds(step)


class TestOutputTopic:
    """A topic to read typed records from, each once."""

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
        """True if all records were read."""
        return not self._driver.take(self._topic)

    def read_output(self) -> Record[Any, Any]:
        """Return the next record. Raises StreamsError if there is none."""
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
        """Return all records not read yet."""
        records = []
        while not self.is_empty:
            records.append(self.read_output())
        return records

    def read_key_values(self) -> list[tuple[Any, Any]]:
        """Return keys and values of all records not read yet."""
        return [(record.key, record.value) for record in self.read_all()]

    def read_table(self) -> dict[Any, Any]:
        """Return the last value per key of all records not read yet; null values delete."""
        table: dict[Any, Any] = {}
        for record in self.read_all():
            if record.value is None:
                table.pop(record.key, None)
            else:
                table[record.key] = record.value
        return table


__all__ = ["TestInputTopic", "TestOutputTopic", "TopologyTestDriver"]
