"""Batch operators: a function is given many records of a task at once, as models and vectorised work like it.

A batch ends at its bound, at the end of the records at hand in a turn of the loop, or at a commit. Batches in
Arrow's form are `arrow`'s.
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
"""From records to as many records; raises BatchMismatch for another number of them."""


class BatchMismatch(Exception):
    """What a function returned does not fit the batch it was given."""


class Batch:
    """The records of one node of one task that wait for others."""

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
    def held(self) -> int:
        """How many records wait."""
        return len(self._records)

    def take(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Add a record; a batch that is full goes on at once."""
        self._records.append(Record(key, value, timestamp, headers))
        self._places.append(self._task.place)
        if len(self._records) >= self._max_records:
            self.end_turn()

    def collect(self) -> None:
        """There may be more to come."""

    def end_turn(self) -> None:
        """Call the function with what there is, and forward what it gives. An error leaves the task at the
        place of the record over which it was raised.
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
        """Forget what waits."""
        self._records, self._places = [], []

    def _check_form(self, error: Exception) -> None:
        """Results that do not fit are no matter of a record: the handler is not asked."""
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
        """Find out which of them are bad: the processing handler decides about each, the others go on."""
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
    """Replace records by what the function makes of many."""

    def build(wiring: Wiring) -> Process:
        batch = Batch(wiring, function, max_records)
        wiring.task.holding.append(batch)
        take = batch.take

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            take(key, value, timestamp, headers)

        return process

    return build


def of_records(function: Callable[[list[Record[Any, Any]]], Any]) -> Function:
    """Of a function that returns a record for each, or only its new value."""

    def call(records: list[Record[Any, Any]]) -> Results:
        found = as_list(function, function(list(records)), len(records))
        return [
            each if isinstance(each, Record) else record.with_value(each)
            for record, each in zip(records, found, strict=True)
        ]

    return call


def of_values(function: Callable[..., Any], *, with_keys: bool) -> Function:
    """Of a function of the values, or of the keys and the values, that returns a value for each."""

    def call(records: list[Record[Any, Any]]) -> Results:
        values = [record.value for record in records]
        found = function([record.key for record in records], values) if with_keys else function(values)
        return with_values(records, as_list(function, found, len(records)))

    return call


def with_values(records: Sequence[Record[Any, Any]], values: Sequence[Any]) -> Results:
    """The same records with other values."""
    return [
        Record(record.key, value, record.timestamp, record.headers)
        for record, value in zip(records, values, strict=True)
    ]


def as_list(function: object, found: Any, count: int) -> list[Any]:
    """What a function gave for so many records, as a list: of a list, a NumPy array, a pandas series."""
    name = getattr(function, "__qualname__", repr(function))
    if isinstance(found, str | bytes | dict) or not hasattr(found, "__iter__"):
        raise BatchMismatch(
            f"{name} gave a {type(found).__name__} for {count} records: it has to return a list of as many"
        )
    results = found.tolist() if hasattr(found, "tolist") else list(found)
    if len(results) != count:
        raise BatchMismatch(
            f"{name} gave {len(results)} results for {count} records: it has to return one for each, in "
            "order (None is a value)"
        )
    return results
