"""The rows of one query, streamed from the database and given out in batches."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa


class Reading:
    """A running query. One row is fetched ahead, so that its batch knows what follows."""

    def __init__(self, connection: sa.Connection, statement: sa.Select[Any]) -> None:
        self._connection = connection
        self._result = connection.execution_options(stream_results=True).execute(statement)
        self.following: Any | None = None
        """The first row behind the last batch, or None if there is none."""

    def batch(self, count: int) -> list[Any]:
        """Return the next rows, at most `count`; fewer only at the end."""
        ahead = [] if self.following is None else [self.following]
        rows = [*ahead, *self._result.fetchmany(count + 1 - len(ahead))]
        self.following = rows.pop() if len(rows) > count else None
        return rows

    def close(self) -> None:
        """End the query and its transaction."""
        self._result.close()
        self._connection.rollback()
