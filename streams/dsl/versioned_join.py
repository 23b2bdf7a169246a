"""The join of a stream with a versioned table as of the records' times, and the buffer of one with a grace
period: `KStream.join(table, joiner, grace=)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streams.dsl.arity import joiner_takes_key
from streams.dsl.options import Joined
from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.processors.joins.joiner import with_key
from streams.processors.joins.versioned_join import join_as_of, join_buffered
from streams.processors.tables.table import AsOfView
from streams.processors.windowing.windows import milliseconds
from streams.processors.wiring import Operator
from streams.state.join_buffer import join_buffer_spec


def join_versioned(
    node: str,
    stream: Stream,
    view: AsOfView | None,
    joiner: Callable[..., Any],
    options: Joined,
    *,
    left: bool,
    is_versioned: bool,
) -> tuple[Operator, tuple[str, ...]]:
    """Return the operator of a node of this name, and its stores; add its buffer if there is a grace period.

    ``view`` shows the table's versions; it is None for a table that keeps none. ``is_versioned`` is True for
    a table that counts as versioned.
    """
    joined = with_key(joiner, takes_key=joiner_takes_key(joiner))
    if options.grace is None:
        assert view is not None, "without a grace period this is for versioned tables"
        return join_as_of(view, joined, left=left), view.stores
    if view is None or not is_versioned:
        raise TopologyError(
            f"{node}: the table must be versioned for a join with grace=: "
            "builder.table(..., store=Materialized(name=..., history_retention=...))"
        )
    grace_ms = milliseconds(options.grace)
    _check_grace(node, stream, view, grace_ms)
    buffer, builder = join_buffer_spec(f"{node}-Buffer"), stream.builder
    builder.graph.add_store(buffer)
    operator = join_buffered(
        view,
        joined,
        buffer.name,
        grace_ms,
        # To these serdes the node is the topic, as it is in Kafka.
        builder.key_serde(node, options.key_serde, stream.key_serde).of_topic(node, is_key=True),
        builder.value_serde(node, options.value_serde, stream.value_serde).of_topic(node, is_key=False),
        left=left,
    )
    return operator, (buffer.name, *view.stores)  # as in Kafka, where both hash alike


def _check_grace(node: str, stream: Stream, view: AsOfView, grace_ms: int) -> None:
    if grace_ms < 0:
        raise TopologyError(f"{node}: grace is {grace_ms} ms, it must not be negative")
    for name in view.stores:
        spec = stream.builder.graph.stores.get(name)  # those of a transformer may come later
        history_ms = None if spec is None else spec.history_retention_ms
        if history_ms is not None and grace_ms > history_ms:
            raise TopologyError(
                f"{node}: grace is {grace_ms} ms, but store {name} keeps its history for "
                f"{history_ms} ms only: "
                "history_retention must be at least grace"
            )
