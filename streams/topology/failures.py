"""`Failures`: the configured handlers' decisions about records that cannot be read, processed or written."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from streams.errors import ProcessingError, RegistryUnavailable, SerializationError, StreamsError
from streams.handlers import (
    Answering,
    ErrorContext,
    ExceptionHandler,
    answering,
    log_and_fail,
)
from streams.processors.metrics import NodeMetrics
from streams.processors.record import Headers, Process, Record
from streams.processors.wiring import TaskState
from streams.topology.sink_output import Written

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """The handlers of an application, and the topic of its dead letters."""

    deserialization: ExceptionHandler = log_and_fail
    processing: ExceptionHandler = log_and_fail
    production: ExceptionHandler = log_and_fail
    dead_letter_topic: str | None = None


class Failures:
    """Decisions about a task's failures: a method returns to drop the record, or raises to end the task."""

    def __init__(self, handlers: Handlers, state: TaskState, written: Written) -> None:
        self._state = state
        self._written = written
        self._dead_letter_topic = handlers.dead_letter_topic
        self._deserialization = answering(handlers.deserialization)
        self._processing = answering(handlers.processing)
        self._production = answering(handlers.production)
        self.guards = handlers.processing is not log_and_fail
        """True if nodes must be guarded; if not, every error ends the task anyway."""

    def input(self, node: str, problem: SerializationError, error: Exception, row: tuple[Any, ...]) -> None:
        """Decide about an input's record that cannot be deserialized, or a batch that cannot be read.

        ``row``: the record's timestamp, key, value and headers; of a batch, at most its largest timestamp.
        """
        timestamp, key, value, headers = row
        context = ErrorContext(
            error=problem,
            node=node,
            task_id=self._state.task_id,
            topic=problem.topic,
            partition=problem.partition,
            offset=problem.offset,
            timestamp=timestamp,
            headers=headers,
            key=key,
            value=value,
            dead_letter_topic=self._dead_letter_topic,
        )
        self._decide(self._deserialization, context, problem, error)

    def output(self, node: str, problem: SerializationError, error: Exception, record: object) -> None:
        """Decide about a record that a sink cannot serialize."""
        self._decide(self._production, self._context(node, problem, record), problem, error)

    def processing(self, node: str, error: Exception, record: object) -> None:
        """Decide about a record over which a node's function raised; ``record`` is None in a schedule."""
        state = self._state
        problem = ProcessingError(
            state.task_id,
            node,
            topic=state.topic,
            partition=state.partition,
            offset=state.offset,
            during=state.during,
        )
        problem.__cause__ = error
        self._decide(self._processing, self._context(node, error, record), problem, error)

    def _context(self, node: str, error: Exception, record: object) -> ErrorContext:
        state = self._state
        common: dict[str, Any] = {
            "error": error,
            "node": node,
            "task_id": state.task_id,
            "record": record,
            "dead_letter_topic": self._dead_letter_topic,
        }
        row = None if state.during else state.raw_record(state.offset)
        if row is None:
            return ErrorContext(**common)
        timestamp, key, value, headers = row
        return ErrorContext(
            topic=state.topic,
            partition=state.partition,
            offset=state.offset,
            timestamp=timestamp,
            headers=headers,
            key=key,
            value=value,
            **common,
        )

    def _decide(
        self, handler: Answering, context: ErrorContext, problem: StreamsError, error: Exception
    ) -> None:
        if isinstance(error, RegistryUnavailable):
            raise problem from error  # The record itself may be valid.
        response = handler(context)
        if response.answer == "fail":
            raise problem from error
        for letter in response.dead_letters:
            self._state.partition_count(letter.topic)  # raises where the topic does not exist
        self._written.add_dead_letters(response.dead_letters)
        log.warning("left out: %s", problem)

    def guarded(self, process: Process, node: str, metrics: NodeMetrics) -> Process:
        """Return a node's function wrapped so that the processing handler decides about its errors."""

        def call(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            try:
                process(key, value, timestamp, headers)
            except StreamsError:  # decided in a child already
                raise
            except Exception as error:
                self.processing(node, error, Record(key, value, timestamp, headers))
                metrics.dropped()

        return call
