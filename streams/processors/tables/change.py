"""A table's update as it flows between nodes: what a key has now, and what it had before.

It stands in the place of a record's value from the table's node down to `KTable.to_stream`, or to what makes
another table of it. As Kafka Streams' Change.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from streams.processors.record import Headers, Process
from streams.processors.wiring import Operator, Wiring

Change: TypeAlias = tuple[Any, Any]
"""The new value (None: deleted) and the one before; that one is None also where nobody below asked for it."""


def new_values() -> Operator:
    """The table's updates as records: new values only."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            forward(key, value[0], timestamp, headers)

        return process

    return build
