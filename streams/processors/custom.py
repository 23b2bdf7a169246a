"""The processor API: a user's class as a node, with stores, schedules and choice of child."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from streams.errors import TopologyError
from streams.processors.punctuation import PunctuationType
from streams.processors.record import Headers, Process, Record
from streams.processors.windowing.windows import Duration, milliseconds
from streams.processors.wiring import Operator, Wiring
from streams.state import CachedStore

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """The origin of the record being processed."""

    topic: str
    partition: int
    offset: int


class ProcessorContext:
    """A processor's access to its task: forwarding, stores, clocks and schedules."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._task = wiring.task

    @property
    def task_id(self) -> str:
        """The task's id, ``<sub-topology>_<partition>``."""
        return self._task.task_id

    @property
    def application_id(self) -> str:
        """The application's ``application.id``."""
        return self._task.application_id

    @property
    def state_dir(self) -> Path:
        """The task's own folder on this machine; it is created if need be.

        Its files are deleted when the task has not been here for ``state.cleanup.delay.ms``. They do not move
        with the task to another machine.
        """
        return self._task.state_dir()

    def commit(self) -> None:
        """Request a commit as soon as possible: after the records now being processed, of all tasks here."""
        self._task.commit_requested = True

    @property
    def stream_time(self) -> int:
        """Highest record timestamp the task has seen, ms; -1 before the first."""
        return self._task.stream_time

    @property
    def wall_clock(self) -> int:
        """The task's clock, ms since the epoch; read it instead of the system's, so that tests can set it."""
        return self._task.wall_clock

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Topic, partition and offset of the record being processed; None in schedules and in `init`."""
        task = self._task
        return RecordMetadata(task.topic, task.partition, task.offset) if task.topic else None

    def store(self, name: str) -> CachedStore:
        """Return a store named in the node's ``stores=``."""
        return self._wiring.store(name)

    def forward(self, record: Record[Any, Any] | FixedKeyRecord[Any, Any], child: str | None = None) -> None:
        """Send a record to all children, or to the child with this name."""
        if child is None:
            target = self._wiring.forward
        elif child in self._wiring.children:
            target = self._wiring.children[child]
        else:
            raise TopologyError(f"{self._wiring.node} has no child {child!r}")
        target(record.key, record.value, record.timestamp, record.headers)

    def schedule(
        self, interval: Duration, callback: Callable[[int], None], *, on: PunctuationType = "stream_time"
    ) -> Callable[[], None]:
        """Call ``callback(now)`` every interval of stream time or wall clock. Return a function to cancel it.

        Stream time counts from 0, so the first record fires; wall clock counts from now. A jump of time over
        several intervals fires once.
        """
        interval_ms = milliseconds(interval)
        if interval_ms <= 0:
            raise ValueError("the interval must be longer than 0")
        return self._task.schedule(interval_ms, callback, on).cancel


class Processor(ABC, Generic[K, V]):
    """Base of users' processors; one instance is made per task."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Set up the processor, once before the first record. An override must call this method."""
        self.context = context

    @abstractmethod
    def process(self, record: Record[K, V]) -> None:
        """Process one record; forward any results."""

    def close(self) -> None:
        """Clean up when the task is closed; nothing can be forwarded any more."""


@dataclass(frozen=True, slots=True)
class FixedKeyRecord(Generic[K, V]):
    """A record with a fixed key, as a `FixedKeyProcessor` receives and forwards it (KIP-820)."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def with_value(self, value: Any) -> FixedKeyRecord[K, Any]:
        """Return a copy of the record with another value."""
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> FixedKeyRecord[K, V]:
        """Return a copy of the record with another timestamp, ms since the epoch."""
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> FixedKeyRecord[K, V]:
        """Return a copy of the record with other headers."""
        return replace(self, headers=headers)


class FixedKeyProcessor(ABC, Generic[K, V]):
    """Base of users' processors that do not change keys; one instance is made per task.

    It forwards only `FixedKeyRecord`s: with another key, a record could belong to another partition.
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Set up the processor, once before the first record. An override must call this method."""
        self.context = context

    @abstractmethod
    def process(self, record: FixedKeyRecord[K, V]) -> None:
        """Process one record; forward any results."""

    def close(self) -> None:
        """Clean up when the task is closed; nothing can be forwarded any more."""


class _FixedKeyContext(ProcessorContext):
    def forward(self, record: Record[Any, Any] | FixedKeyRecord[Any, Any], child: str | None = None) -> None:
        if not isinstance(record, FixedKeyRecord):
            raise TypeError(
                f"{self._wiring.node} forwards a {type(record).__name__}: process_values() keeps keys, so "
                "forward the record that process() was given, or its with_value()"
            )
        super().forward(record, child)


def run_processor(supplier: Callable[[], Processor[Any, Any]]) -> Operator:
    """Return the operator of a user's processor; ``supplier`` makes one for each task."""
    return _running(supplier, ProcessorContext, Record)


def run_fixed_key_processor(supplier: Callable[[], FixedKeyProcessor[Any, Any]]) -> Operator:
    """Return the operator of a user's processor that does not change keys."""
    return _running(supplier, _FixedKeyContext, FixedKeyRecord)


def _running(
    supplier: Callable[[], Any],
    make_context: Callable[[Wiring], ProcessorContext],
    make_record: Callable[[Any, Any, int, Headers], Any],
) -> Operator:
    def build(wiring: Wiring) -> Process:
        processor, task = supplier(), wiring.task
        task.starters.append(lambda: processor.init(make_context(wiring)))
        task.closers.append(processor.close)
        process_record = processor.process

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            before, task.timestamp = task.timestamp, timestamp
            try:
                process_record(make_record(key, value, timestamp, headers))
            finally:  # the parent node may continue after an error
                task.timestamp = before

        return process

    return build
