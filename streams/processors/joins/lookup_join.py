"""The join of a stream with a table by a key that is selected from the record, as with global tables.

The join by the record's own key, with a joiner of values only, is `table.join_table`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.processors.joins.joiner import Joiner
from streams.processors.record import Headers, Process
from streams.processors.tables.table import TableView
from streams.processors.wiring import Operator, Wiring


def record_key(key: Any, value: Any) -> Any:
    """Return the record's own key as the key to look up."""
    return key


def join_selected(
    view: TableView, select: Callable[[Any, Any], Any], joiner: Joiner, *, left: bool
) -> Operator:
    """Return the operator that joins each record with the table's current value of ``select(key, value)``.

    The result has the record's key and timestamp. Null values are dropped. An inner join drops records that
    select None, and ignores keys that the table does not have; with ``left`` these are joined with None.
    """

    def build(wiring: Wiring) -> Process:
        forward, dropped = wiring.forward, wiring.metrics.dropped
        get = view.bind(wiring)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            selected = None if value is None else select(key, value)
            if value is None or (selected is None and not left):
                dropped()
                return
            entry = None if selected is None else get(selected)
            if entry is not None:
                forward(key, joiner(key, value, entry[0]), timestamp, headers)
            elif left:
                forward(key, joiner(key, value, None), timestamp, headers)

        return process

    return build
