"""The processor API: a class of your own as a node, with stores, punctuation and choice of child."""

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
    """Where the record being processed came from."""

    topic: str
    partition: int
    offset: int


class ProcessorContext:
    """What a processor may do: forward, use its stores, ask for the time and be called at times."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._task = wiring.task

    @property
    def task_id(self) -> str:
        """``<sub-topology>_<partition>``."""
        return self._task.task_id

    @property
    def application_id(self) -> str:
        """``application.id``."""
        return self._task.application_id

    @property
    def state_dir(self) -> Path:
        """The task's own folder on this machine, which is there when this returns.

        What you put there is deleted when the task has not been here for ``state.cleanup.delay.ms``, and does
        not follow it elsewhere.
        """
        return self._task.state_dir()

    def commit(self) -> None:
        """Ask for a commit as soon as can be: behind the records that are at work now, of all tasks here."""
        self._task.commit_requested = True

    @property
    def stream_time(self) -> int:
        """Highest record timestamp the task has seen, ms; -1 before the first."""
        return self._task.stream_time

    @property
    def wall_clock(self) -> int:
        """The task's clock, ms since the epoch; read this instead of the system's, tests move it."""
        return self._task.wall_clock

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Topic, partition and offset of the record being processed; None in schedules and in `init`."""
        task = self._task
        return RecordMetadata(task.topic, task.partition, task.offset) if task.topic else None

    def store(self, name: str) -> CachedStore:
        """A store named in ``stores=`` where this node was made."""
        return self._wiring.store(name)

    def forward(self, record: Record[Any, Any] | FixedKeyRecord[Any, Any], child: str | None = None) -> None:
        """Send a record to all children, or to the one of that name."""
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
        """Call ``callback(now)`` every interval of stream time or wall clock; returns what cancels it.

        Stream time counts from 0, so the first record fires; wall clock from now. A jump fires once.
        """
        interval_ms = milliseconds(interval)
        if interval_ms <= 0:
            raise ValueError("the interval must be longer than 0")
        return self._task.schedule(interval_ms, callback, on).cancel


class Processor(ABC, Generic[K, V]):
    """Base of processors of your own; one instance is made per task."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Called once before the first record; keep this call when you override it."""
        self.context = context

    @abstractmethod
    def process(self, record: Record[K, V]) -> None:
        """Take one record; forward what should go on."""

    def close(self) -> None:
        """Called when the task goes; nothing can be forwarded any more."""


@dataclass(frozen=True, slots=True)
class FixedKeyRecord(Generic[K, V]):
    """A record whose key stays: what a `FixedKeyProcessor` is given, and forwards (KIP-820)."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def with_value(self, value: Any) -> FixedKeyRecord[K, Any]:
        """The same record with another value."""
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> FixedKeyRecord[K, V]:
        """The same record at another time, ms since the epoch."""
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> FixedKeyRecord[K, V]:
        """The same record with other headers."""
        return replace(self, headers=headers)


class FixedKeyProcessor(ABC, Generic[K, V]):
    """Base of processors that leave keys as they are; one instance is made per task.

    It forwards `FixedKeyRecord`s only: with another key, a record would be in the wrong partition below.
    """

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Called once before the first record; keep this call when you override it."""
        self.context = context

    @abstractmethod
    def process(self, record: FixedKeyRecord[K, V]) -> None:
        """Take one record; forward what should go on."""

    def close(self) -> None:
        """Called when the task goes; nothing can be forwarded any more."""


class _FixedKeyContext(ProcessorContext):
    def forward(self, record: Record[Any, Any] | FixedKeyRecord[Any, Any], child: str | None = None) -> None:
        if not isinstance(record, FixedKeyRecord):
            raise TypeError(
                f"{self._wiring.node} forwards a {type(record).__name__}: process_values() keeps keys, so "
                "forward the record that process() was given, or its with_value()"
            )
        super().forward(record, child)


def run_processor(supplier: Callable[[], Processor[Any, Any]]) -> Operator:
    """A node that runs what the supplier makes."""
    return _running(supplier, ProcessorContext, Record)


def run_fixed_key_processor(supplier: Callable[[], FixedKeyProcessor[Any, Any]]) -> Operator:
    """A node that runs what the supplier makes; keys stay what they are."""
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
            finally:  # the node above may go on after an error
                task.timestamp = before

        return process

    return build
