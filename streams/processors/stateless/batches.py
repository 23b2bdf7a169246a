"""Batch operators: a function processes many records of a task at once, as models and vectorised code need.

A batch ends at its bound, at the end of the input records of a turn of the loop, or at a commit. Batches in
Arrow's format are in `arrow`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from streams.errors import ProcessingError, StreamsError
from streams.processors.record import Headers, Process, Record
from streams.processors.wiring import Operator, Place, Wiring

Results = Sequence[Record[Any, Any]]
Function = Callable[[list[Record[Any, Any]]], Results]
"""Returns as many records as it takes; raises BatchMismatch if there is another number of results."""


class BatchMismatch(Exception):
    """A function's result does not fit its batch."""


class Batch:
    """The records of a node of a task that wait for a full batch."""

    room = sys.maxsize

    def __init__(self, wiring: Wiring, function: Function, max_records: int) -> None:
        self._node = wiring.node
        self._task = wiring.task
        self._forward = wiring.forward
        self._dropped = wiring.metrics.dropped
        self._function = function
        self._max_records = max_records
        self._records: list[Record[Any, Any]] = []
        self._places: list[Place] = []

    @property
    def record_count(self) -> int:
        """The number of records that wait."""
        return len(self._records)

    def take(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Add a record; process the batch if it is full."""
        self._records.append(Record(key, value, timestamp, headers))
        self._places.append(self._task.place)
        if len(self._records) >= self._max_records:
            self.end_turn()

    def collect(self) -> None:
        """Do nothing: the turn may have more records for the batch."""

    def end_turn(self) -> None:
        """Call the function with the waiting records, and forward its results.

        An error leaves the task at the place of the record over which it was raised.
        """
        if not self._records:
            return
        records, places = self._records, self._places
        self._records, self._places = [], []
        before = self._task.place
        self._task.place = places[0]
        try:
            results = self._function(records)
        except Exception as error:
            self._check_form(error)
            if len(records) > 1:
                self._one_by_one(records, places)
            else:
                self._fail(error, records[0])
        else:
            self._deliver(results, places)
        self._task.place = before

    drain = end_turn

    def give_up(self) -> None:
        """Discard the waiting records."""
        self._records, self._places = [], []

    def _check_form(self, error: Exception) -> None:
        """Raise errors that do not concern a record: results that do not fit, and those of this library.

        The processing handler does not decide about them.
        """
        if isinstance(error, StreamsError):
            raise error
        if isinstance(error, BatchMismatch):
            task = self._task
            raise ProcessingError(
                task.task_id,
                self._node,
                topic=task.topic,
                partition=task.partition,
                offset=task.offset,
                during=task.during,
            ) from error

    def _one_by_one(self, records: Sequence[Record[Any, Any]], places: Sequence[Place]) -> None:
        """Call the function for each record: the processing handler decides about those that fail."""
        for record, place in zip(records, places, strict=True):
            self._task.place = place
            try:
                results = self._function([record])
            except Exception as error:
                self._check_form(error)
                self._fail(error, record)
            else:
                self._deliver(results, [place])

    def _fail(self, error: Exception, record: Record[Any, Any]) -> None:
        self._task.fail(self._node, error, record)
        self._dropped()

    def _deliver(self, results: Results, places: Sequence[Place]) -> None:
        task, forward = self._task, self._forward
        for record, place in zip(results, places, strict=True):
            task.place = place
            task.timestamp = record.timestamp
            forward(record.key, record.value, record.timestamp, record.headers)


def in_batches(function: Function, max_records: int) -> Operator:
    """Return the operator that replaces batches of up to ``max_records`` records by a function's results."""

    def build(wiring: Wiring) -> Process:
        batch = Batch(wiring, function, max_records)
        wiring.task.holding.append(batch)
        take = batch.take

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            take(key, value, timestamp, headers)

        return process

    return build


def of_records(function: Callable[[list[Record[Any, Any]]], Any]) -> Function:
    """Wrap a function of records that returns a record for each, or only its new value."""

    def call(records: list[Record[Any, Any]]) -> Results:
        results = as_list(function, function(list(records)), len(records))
        return [
            each if isinstance(each, Record) else record.with_value(each)
            for record, each in zip(records, results, strict=True)
        ]

    return call


def of_values(function: Callable[..., Any], *, with_keys: bool) -> Function:
    """Wrap a function of the values, or of keys and values, that returns a value for each."""

    def call(records: list[Record[Any, Any]]) -> Results:
        values = [record.value for record in records]
        result = function([record.key for record in records], values) if with_keys else function(values)
        return with_values(records, as_list(function, result, len(records)))

    return call


def with_values(records: Sequence[Record[Any, Any]], values: Sequence[Any]) -> Results:
    """Return the records with other values."""
    return [
        Record(record.key, value, record.timestamp, record.headers)
        for record, value in zip(records, values, strict=True)
    ]


def as_list(function: object, result: Any, count: int) -> list[Any]:
    """Return a function's result for ``count`` records as a list; it may be a NumPy array or a pandas series.

    Raises BatchMismatch if it has another length.
    """
    name = getattr(function, "__qualname__", repr(function))
    if isinstance(result, str | bytes | dict) or not hasattr(result, "__iter__"):
        raise BatchMismatch(
            f"{name} gave a {type(result).__name__} for {count} records: it has to return a list of as many"
        )
    results = result.tolist() if hasattr(result, "tolist") else list(result)
    if len(results) != count:
        raise BatchMismatch(
            f"{name} gave {len(results)} results for {count} records: it has to return one for each, in "
            "order (None is a value)"
        )
    return results
