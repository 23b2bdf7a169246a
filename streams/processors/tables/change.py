"""A table's update between nodes: a key's new value and the previous one. As Kafka Streams' Change.

Nodes below a table's node receive a `Change` in place of a record's value, down to `KTable.to_stream` or to
the node of another table.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from streams.processors.record import Headers, Process
from streams.processors.wiring import Operator, Wiring

Change: TypeAlias = tuple[Any, Any]
"""The new value (None: deleted) and the previous one, which is also None if no node below needs it."""


def new_values() -> Operator:
    """Return the operator that forwards a table's updates as records, with only the new values."""

    def build(wiring: Wiring) -> Process:
        forward = wiring.forward

        def process(key: Any, value: Change, timestamp: int, headers: Headers) -> None:
            forward(key, value[0], timestamp, headers)

        return process

    return build
