"""Sets that keep the order in which things came, for whatever the product and asyncio make while a history is
played: the order of built-in ones is that of addresses and of PYTHONHASHSEED, which is not the seed's.
"""

from __future__ import annotations

import asyncio.tasks
from collections.abc import Hashable, Iterable, Iterator, MutableSet
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import kafka_client
import logd

T = TypeVar("T", bound=Hashable)

LEFT_OUT = ("logd.__main__", "logd.cli", "logd.storage.cleaner.__main__", "logd.dump_log.cli")
"""Programs, and what would import their parsers."""


class OrderedSet(MutableSet[T]):
    """A set that keeps the order of its items."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: dict[T, None] = dict.fromkeys(items)

    def __class_getitem__(cls, _: object) -> type[OrderedSet[Any]]:
        return cls

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._items)})"

    def add(self, value: T) -> None:
        """See `set`."""
        self._items[value] = None

    def discard(self, value: T) -> None:
        """See `set`."""
        self._items.pop(value, None)

    def clear(self) -> None:
        """See `set`."""
        self._items.clear()

    def copy(self) -> OrderedSet[T]:
        """See `set`."""
        return type(self)(self)

    def update(self, *others: Iterable[T]) -> None:
        """See `set`."""
        for other in others:
            self._items.update(dict.fromkeys(other))

    def difference_update(self, *others: Iterable[T]) -> None:
        """See `set`."""
        for other in others:
            for item in list(other):
                self.discard(item)

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """See `set`."""
        result = self.copy()
        result.update(*others)
        return result

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        """See `set`."""
        result = self.copy()
        result.difference_update(*others)
        return result

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        """See `set`."""
        members = [dict.fromkeys(other) for other in others]
        return type(self)(item for item in self if all(item in each for each in members))

    def issuperset(self, other: Iterable[T]) -> bool:
        """See `set`."""
        return all(item in self._items for item in other)

    def issubset(self, other: Iterable[T]) -> bool:
        """See `set`."""
        members = dict.fromkeys(other)
        return all(item in members for item in self)

    def __ror__(self, other: AbstractSet[T]) -> OrderedSet[T]:  # type: ignore[override]
        return type(self)((*other, *self))


class FrozenOrderedSet(OrderedSet[T]):
    """A frozenset that keeps the order of its items."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self._items))


def modules() -> list[ModuleType]:
    """Return all modules in which a broker or a client may make a set, and import them."""
    roots = [Path(next(iter(package.__path__))) for package in (kafka_client, logd)]
    paths = ((root, path) for root in roots for path in sorted(root.rglob("*.py")))
    parts = (path.relative_to(root.parent).with_suffix("").parts for root, path in paths)
    names = (".".join(each).removesuffix(".__init__") for each in parts)
    return [asyncio.tasks, *(import_module(name) for name in names if name not in LEFT_OUT)]


_MODULES: list[ModuleType] = []


@contextmanager
def ordered_sets() -> Iterator[None]:
    """Have `set(…)` and `frozenset(…)` in them be ordered. Those that are written `{…}` are as ever: where
    their order counts the product sorts them.
    """
    if not _MODULES:
        _MODULES.extend(modules())
    for module in _MODULES:
        module.__dict__["set"] = OrderedSet
        module.__dict__["frozenset"] = FrozenOrderedSet
    try:
        yield
    finally:
        for module in _MODULES:
            del module.__dict__["set"], module.__dict__["frozenset"]
