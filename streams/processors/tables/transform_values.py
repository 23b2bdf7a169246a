"""Tables whose values are transformed by an object with state: `KTable.transform_values`.

Unlike a mapper, a transformer is called for deleted keys too, and may have stores and schedules. A node that
reads a transformed table without a store has a transformer of its own, over the parent table. As Kafka
Streams' KTableTransformValues.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streams.processors.custom import FixedKeyRecord, ProcessorContext
from streams.processors.record import Headers, Process, Record
from streams.processors.tables.change import Change
from streams.processors.tables.table import AsOf, Getter, OldValues, TableView, keeper, versioned
from streams.processors.tables.versioned import as_late_as
from streams.processors.wiring import Operator, Wiring
from streams.state import Entry

K = TypeVar("K")
V = TypeVar("V")
NewV = TypeVar("NewV")


class ValueTransformer(ABC, Generic[K, V, NewV]):
    """Base of users' transformers; one is made per task, and one for each node that looks values up."""

    context: ProcessorContext

    def init(self, context: ProcessorContext) -> None:
        """Set up the transformer, once before the first value. An override must call this method."""
        self.context = context

    @abstractmethod
    def transform(self, key: K, value: V | None) -> NewV | None:
        """Return a key's new value, None for none; ``value`` is None if the parent table has none."""

    def close(self) -> None:
        """Clean up when the task is closed."""


Supplier = Callable[[], ValueTransformer[Any, Any, Any]]


class _Context(ProcessorContext):
    def forward(self, record: Record[Any, Any] | FixedKeyRecord[Any, Any], child: str | None = None) -> None:
        raise TypeError(f"{self._wiring.node} forwards a record: transform() returns the value instead")


def _transform(wiring: Wiring, supplier: Supplier) -> Callable[[Any, Any], Any]:
    transformer = supplier()
    wiring.task.starters.append(lambda: transformer.init(_Context(wiring)))
    wiring.task.closers.append(transformer.close)
    return transformer.transform


def transform_values(
    supplier: Supplier, old_values: OldValues, store_name: str | None, *, is_versioned: bool = False
) -> Operator:
    """Return the operator of a table with transformed values; its store, if any, is ``store_name``.

    ``is_versioned``: whether the parent table is versioned.
    """

    def build(wiring: Wiring) -> Process:
        transform, forward, tells_old = _transform(wiring, supplier), wiring.forward, old_values.are_told
        keep = None if store_name is None else keeper(wiring, store_name, old_values)

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            new = transform(key, value[0])
            forward(key, (new, transform(key, value[1]) if tells_old else None), timestamp, headers)

        def process_version(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            new, old = transform(key, value[0]), transform(key, value[1]) if tells_old else None
            forward(key, as_late_as(value, new, old), timestamp, headers)

        def process_kept(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            assert keep is not None
            keep(key, transform(key, value[0]), timestamp, headers)

        if keep is not None:
            return process_kept
        return process_version if is_versioned else process

    return build


@dataclass(frozen=True, slots=True)
class TransformedView:
    """A table without a store, whose values are transformed when they are looked up."""

    parent: TableView
    supplier: Supplier
    of_transformer: tuple[str, ...]
    """The stores that the transformer uses."""

    @property
    def stores(self) -> tuple[str, ...]:
        return (*self.parent.stores, *self.of_transformer)

    def bind(self, wiring: Wiring) -> Getter:
        get_parent, transform = self.parent.bind(wiring), _transform(wiring, self.supplier)

        return lambda key: _transformed(transform, key, get_parent(key))

    @property
    def is_versioned(self) -> bool:
        return versioned(self.parent) is not None

    def bind_as_of(self, wiring: Wiring) -> AsOf:
        parent, transform = versioned(self.parent), _transform(wiring, self.supplier)
        assert parent is not None, "callers check is_versioned first"
        get_parent = parent.bind_as_of(wiring)
        return lambda key, time: _transformed(transform, key, get_parent(key, time))


def _transformed(transform: Callable[[Any, Any], Any], key: Any, entry: Entry | None) -> Entry | None:
    value, timestamp = (None, -1) if entry is None else entry
    new = transform(key, value)
    return None if new is None else (new, timestamp)
