"""`GlobalKTable`: what is seen of a global table. Its nodes, and the join with it, are in `global_table`."""

from __future__ import annotations

from typing import Generic, TypeVar

from streams.dsl.global_table import GlobalTable

K = TypeVar("K")
V = TypeVar("V")


class GlobalKTable(Generic[K, V]):
    """A table that every instance holds whole: what streams of any partitions, and by any key, are joined
    with.
    """

    def __init__(self, table: GlobalTable) -> None:
        self._table = table

    @property
    def queryable_store_name(self) -> str:
        """The store it can be read from."""
        return self._table.store.name
