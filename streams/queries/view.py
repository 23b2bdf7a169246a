"""Read-only views of a store over all of its tasks here, as `KafkaStreams.store` gives them.

A view looks for its tasks with each call: they may come and go. Nothing here touches a store itself.
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
    """Who finds the stores and asks them in their threads: one name's, active or stale as was said."""

    def partitions(self) -> Answer[list[int]]:
        """Those that are here; InvalidStateStore if none is."""
        ...

    def each(self, query: Query, partitions: Collection[int] | None = None) -> Answer[list[Any]]:
        """The answer of each partition, in their order."""
        ...

    def count(self) -> Answer[int]:
        """About how many entries there are."""
        ...


class StoreView:
    """What views share."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def approximate_num_entries(self) -> Answer[int]:
        """About how many entries there are: what RocksDB estimates, without what was not committed."""
        return self._stores.count()

    def _rows(self, query: Callable[[bytes | None], Query], use: Callable[[Row], T]) -> Rows[T]:
        def page(partition: int, after: bytes | None) -> Answer[Page]:
            return self._stores.each(query(after), (partition,)).then(_only)

        return Rows(self._stores.partitions, page, use)


class KeyValueView(StoreView):
    """A key-value store."""

    def get(self, key: Any) -> Answer[Any]:
        """The value of ``key``; None if no task here has it."""
        return self.get_with_timestamp(key).then(lambda found: None if found is None else found.value)

    def get_with_timestamp(self, key: Any) -> Answer[ValueAndTimestamp | None]:
        """As `get`, with the time of the record that set it."""
        return self._stores.each(KeyQuery(key)).then(_first)

    def range(self, lower: Any = None, upper: Any = None) -> Rows[tuple[Any, Any]]:
        """Keys and values from ``lower`` to ``upper``, both included, in each task's order of bytes."""
        return self._rows(lambda after: RangeQuery(lower=lower, upper=upper, after=after), _key_and_value)

    def reverse_range(self, lower: Any = None, upper: Any = None) -> Rows[tuple[Any, Any]]:
        """As `range`, each task's from the last key to the first."""
        return self._rows(
            lambda after: RangeQuery(lower=lower, upper=upper, after=after, descending=True), _key_and_value
        )

    def all(self) -> Rows[tuple[Any, Any]]:
        """Every key and value."""
        return self.range()

    def reverse_all(self) -> Rows[tuple[Any, Any]]:
        """As `all`, each task's from the last key to the first."""
        return self.reverse_range()

    def all_with_timestamps(self) -> Rows[Row]:
        """Every key, value and timestamp."""
        return self._rows(lambda after: RangeQuery(after=after), _row)


class WindowView(StoreView):
    """A window store."""

    def get(self, key: Any, start: int) -> Answer[Any]:
        """The value of the window of ``key`` that starts at ``start`` ms; None if there is none."""
        found = self._stores.each(WindowKeyQuery(key, start, start, limit=1))
        return found.then(lambda pages: next((row.value for page in pages for row in page.rows), None))

    def fetch(self, key: Any, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """Windowed keys and values of a key's windows that start from ``time_from`` to ``time_to`` ms."""
        return self._rows(lambda after: WindowKeyQuery(key, time_from, time_to, after=after), _key_and_value)

    def backward_fetch(self, key: Any, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """As `fetch`, the latest window first."""
        return self._rows(
            lambda after: WindowKeyQuery(key, time_from, time_to, after=after, descending=True),
            _key_and_value,
        )

    def fetch_all(self, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """As `fetch`, of all keys."""
        return self._fetch_all(time_from, time_to, descending=False)

    def backward_fetch_all(self, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """As `fetch_all`, each task's from the last to the first."""
        return self._fetch_all(time_from, time_to, descending=True)

    def _fetch_all(self, time_from: int, time_to: int, *, descending: bool) -> Rows[tuple[Any, Any]]:
        def query(after: bytes | None) -> WindowRangeQuery:
            return WindowRangeQuery(time_from=time_from, time_to=time_to, after=after, descending=descending)

        return self._rows(query, _key_and_value)

    def all(self) -> Rows[tuple[Any, Any]]:
        """Every window."""
        return self.fetch_all()

    def backward_all(self) -> Rows[tuple[Any, Any]]:
        """As `all`, each task's from the last to the first."""
        return self.backward_fetch_all()


class SessionView(StoreView):
    """A session store."""

    def fetch(self, key: Any, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """Windowed keys and values of a key's sessions that have some of ``time_from`` to ``time_to`` ms."""
        return self._rows(lambda after: WindowKeyQuery(key, time_from, time_to, after=after), _key_and_value)

    def backward_fetch(self, key: Any, time_from: int = 0, time_to: int = FOREVER) -> Rows[tuple[Any, Any]]:
        """As `fetch`, the latest session first."""
        return self._rows(
            lambda after: WindowKeyQuery(key, time_from, time_to, after=after, descending=True),
            _key_and_value,
        )

    def all(self) -> Rows[tuple[Any, Any]]:
        """Every session."""
        return self._rows(lambda after: WindowRangeQuery(after=after), _key_and_value)


VIEWS: dict[str, type[StoreView]] = {
    "key_value": KeyValueView,
    "window": WindowView,
    "session": SessionView,
}
"""By the kind of the store."""


def _first(answers: list[T]) -> T | None:
    return next((each for each in answers if each is not None), None)


def _only(answers: list[Any]) -> Any:
    (answer,) = answers
    return answer


def _key_and_value(row: Row) -> tuple[Any, Any]:
    return row.key, row.value


def _row(row: Row) -> Row:
    return row
