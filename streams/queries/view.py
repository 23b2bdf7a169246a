"""Read-only views of a store over all of its tasks in this instance, as returned by `KafkaStreams.store`.

A view looks up the tasks with each call, because they may move. A store is read only in its own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol, TypeVar

from streams.queries.answer import Answer, Rows
from streams.queries.query import (
    KeyQuery,
    Page,
    Query,
    RangeQuery,
    Row,
    ValueAndTimestamp,
    WindowKeyQuery,
    WindowRangeQuery,
)
from streams.serdes.windowed import FOREVER

T = TypeVar("T")


class Stores(Protocol):
    """The stores of one name in this instance, which are queried in their own threads."""

    def partitions(self) -> Answer[list[int]]:
        """Return the partitions in this instance. Raises InvalidStateStore if there are none."""
        ...

    def each(self, query: Query, partitions: Collection[int] | None = None) -> Answer[list[Any]]:
        """Return the answer of each partition, or of these ``partitions``, in their order."""
        ...

    def count(self) -> Answer[int]:
        """Return the approximate number of entries."""
        ...


class StoreView:
    """The base of views."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def approximate_num_entries(self) -> Answer[int]:
        """Return the approximate number of committed entries, as RocksDB estimates it."""
        return self._stores.count()

    def _rows(self, query: Callable[[bytes | None], Query], use: Callable[[Row], T]) -> Rows[T]:
        def page(partition: int, after: bytes | None) -> Answer[Page]:
            return self._stores.each(query(after), (partition,)).then(_only)

        return Rows(self._stores.partitions, page, use)


class KeyValueView(StoreView):
    """A view of a key-value store. Rows are in each task's byte order of keys."""

    def get(self, key: Any) -> Answer[Any]:
        """Return the value of ``key``, None if no task in this instance has it."""
        return self.get_with_timestamp(key).then(lambda entry: None if entry is None else entry.value)

    def get_with_timestamp(self, key: Any) -> Answer[ValueAndTimestamp | None]:
        """Return the value of ``key`` with its timestamp, None if no task in this instance has it."""
        return self._stores.each(KeyQuery(key)).then(_first)

    def range(self, lower: Any = None, upper: Any = None) -> Rows[tuple[Any, Any]]:
        """Return the keys and values from ``lower`` to ``upper``, both included; None is no bound."""
        return self._rows(lambda after: RangeQuery(lower=lower, upper=upper, after=after), _key_and_value)

    def reverse_range(self, lower: Any = None, upper: Any = None) -> Rows[tuple[Any, Any]]:
        """Return the rows of `range`, each task's from the last key to the first."""
        return self._rows(
            lambda after: RangeQuery(lower=lower, upper=upper, after=after, descending=True), _key_and_value
        )

    def all(self) -> Rows[tuple[Any, Any]]:
        """Return all keys and values."""
        return self.range()

    def reverse_all(self) -> Rows[tuple[Any, Any]]:
        """Return the rows of `all`, each task's from the last key to the first."""
        return self.reverse_range()

    def all_with_timestamps(self) -> Rows[Row]:
        """Return all keys, values and timestamps."""
        return self._rows(lambda after: RangeQuery(after=after), _row)


class WindowView(StoreView):
    """A view of a window store."""

    def get(self, key: Any, start: int) -> Answer[Any]:
        """Return the value of the window of ``key`` that starts at ``start`` ms, None if there is none."""
        answer = self._stores.each(WindowKeyQuery(key, start, start, limit=1))
        return answer.then(lambda pages: next((row.value for page in pages for row in page.rows), None))

    def fetch(self, key: Any, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """Return the windowed keys and values of a key's windows that start within a range of times.

        It is from ``time_from`` to ``time_to`` ms, both included.
        """
        return self._rows(lambda after: WindowKeyQuery(key, time_from, time_to, after=after), _key_and_value)

    def backward_fetch(self, key: Any, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """Return the rows of `fetch`, the latest window first."""
        return self._rows(
            lambda after: WindowKeyQuery(key, time_from, time_to, after=after, descending=True),
            _key_and_value,
        )

    def fetch_all(self, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """Return the windowed keys and values of all windows that start within a range of times."""
        return self._fetch_all(time_from, time_to, descending=False)

    def backward_fetch_all(self, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """Return the rows of `fetch_all`, each task's from the last to the first."""
        return self._fetch_all(time_from, time_to, descending=True)

    def _fetch_all(self, time_from: int, time_to: int, *, descending: bool) -> Rows[tuple[Any, Any]]:
        def query(after: bytes | None) -> WindowRangeQuery:
            return WindowRangeQuery(time_from=time_from, time_to=time_to, after=after, descending=descending)

        return self._rows(query, _key_and_value)

    def all(self) -> Rows[tuple[Any, Any]]:
        """Return all windows."""
        return self.fetch_all()

    def backward_all(self) -> Rows[tuple[Any, Any]]:
        """Return the rows of `all`, each task's from the last to the first."""
        return self.backward_fetch_all()


class SessionView(StoreView):
    """A view of a session store."""

    def fetch(self, key: Any, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """Return the windowed keys and values of a key's sessions that overlap a range of times.

        It is from ``time_from`` to ``time_to`` ms, both included.
        """
        return self._rows(lambda after: WindowKeyQuery(key, time_from, time_to, after=after), _key_and_value)

    def backward_fetch(self, key: Any, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """Return the rows of `fetch`, the latest session first."""
        return self._rows(
            lambda after: WindowKeyQuery(key, time_from, time_to, after=after, descending=True),
            _key_and_value,
        )

    def all(self) -> Rows[tuple[Any, Any]]:
        """Return all sessions."""
        return self._rows(lambda after: WindowRangeQuery(after=after), _key_and_value)


VIEWS: dict[str, type[StoreView]] = {
    "key_value": KeyValueView,
    "window": WindowView,
    "session": SessionView,
}
"""The classes of views by the kind of store."""


def _first(answers: list[T]) -> T | None:
    return next((each for each in answers if each is not None), None)


def _only(answers: list[Any]) -> Any:
    (answer,) = answers
    return answer


def _key_and_value(row: Row) -> tuple[Any, Any]:
    return row.key, row.value


def _row(row: Row) -> Row:
    return row
