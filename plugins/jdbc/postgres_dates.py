"""Dates and times of PostgreSQL that Python's types cannot hold: `infinity`, years above 9999 or BC, 24:00.

psycopg fails a whole batch of rows for one of them. With these loaders such a value is read as its text, so
that the row's conversion fails, and no other row's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader

_TYPES = ("date", "time", "timetz", "timestamp", "timestamptz")


def read_any_date(connection: psycopg.Connection[Any], _record: object = None) -> None:
    """Have a connection read dates and times that Python cannot hold as texts."""
    adapters = connection.adapters
    for name in _TYPES:
        oid = adapters.types[name].oid
        driver = adapters.get_loader(oid, psycopg.pq.Format.TEXT)
        assert driver is not None
        adapters.register_loader(oid, _or_text(driver))


def _or_text(driver: Callable[[int, AdaptContext | None], Any]) -> type[Loader]:
    """Return a loader that asks the driver's one, and returns the text of what that refuses."""

    class OrText(Loader):
        """The loader of one type."""

        def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
            super().__init__(oid, context)
            self._load = driver(oid, context).load

        def load(self, data: Buffer) -> Any:
            """Return the value, or its text."""
            try:
                return self._load(data)
            except psycopg.DataError:
                return bytes(data).decode()

    return OrText
