"""The open transaction of SQLite: a database has one writer at a time, and its ids grow with its commits.

Only timestamps need care: a writer may have taken its time before a poll and commit after it. The observer
takes the writer's lock for a moment; if it gets the lock, no writer is open.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import sqlalchemy as sa

from plugins.jdbc.bounds import Observation


@dataclass(frozen=True, slots=True)
class Writer:
    """The answer whether a writer is open."""

    is_open: bool

    @property
    def open(self) -> frozenset[Hashable]:
        """The identity of any writer: a mark waits for a moment without a writer."""
        return frozenset(("writer",)) if self.is_open else frozenset()

    def remaining(self, waiting: frozenset[Hashable], before: Observation) -> frozenset[Hashable]:
        """Return the writer if one is open."""
        return waiting & self.open


class SqliteObserver:
    """Observer of the only writer."""

    def __init__(self, *, by_id: bool) -> None:
        """Create an observer; ids need none, as they are taken under the writer's lock."""
        self._by_id = by_id

    def observe(self, connection: sa.Connection) -> Observation:
        """Return whether a writer is open. A database that cannot be written has none of ours to wait for."""
        if self._by_id:
            return Writer(False)
        try:
            connection.exec_driver_sql("PRAGMA busy_timeout = 0")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            connection.exec_driver_sql("ROLLBACK")
        except sa.exc.OperationalError as e:
            return Writer("locked" in str(e.orig) or "busy" in str(e.orig))
        finally:
            connection.exec_driver_sql("PRAGMA busy_timeout = 10000")
        return Writer(False)
