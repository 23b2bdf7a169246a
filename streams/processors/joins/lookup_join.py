"""The join of a stream with a table under a key that is made of the record: with a global table, or one's own
key.

What looks a table up by the record's own key, for a joiner of values only, is `table.join_table`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.processors.joins.joiner import Joiner
from streams.processors.record import Headers, Process
from streams.processors.tables.table import TableView
from streams.processors.wiring import Operator, Wiring


def record_key(key: Any, value: Any) -> Any:
    """Looks a table up by the record's own key."""
    return key


def join_selected(
    view: TableView, select: Callable[[Any, Any], Any], joiner: Joiner, *, left: bool
) -> Operator:
    """Look ``select(key, value)`` up in the table as it is now; the result has the stream's key and
    timestamp.

    Null values are dropped. An inner join leaves out records that select None, or what the table does not
    have; with ``left`` these are joined with None.
    """

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        get = view.bind(wiring)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            wanted = None if value is None else select(key, value)
            if value is None or (wanted is None and not left):
                dropped()
                return
            found = None if wanted is None else get(wanted)
            if found is not None:
                forward(key, joiner(key, value, found[0]), timestamp, headers)
            elif left:
                forward(key, joiner(key, value, None), timestamp, headers)

        return process

    return build
