"""`Suppressed`: how long a table's updates are held back; and the node that does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from streams.dsl.table import Table
from streams.dsl.windowing import check_idle_timeout
from streams.errors import TopologyError
from streams.graph import Graph, ProcessorNode
from streams.processors.tables.suppress import Holding, SuppressedView, suppress
from streams.processors.windowing.windows import Duration, milliseconds
from streams.serdes.buffered import BufferedSerde
from streams.state import StoreSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A rule for holding back a table's updates; make it by `until_window_closes` or `until_time_limit`."""

    wait: Duration | None
    max_records: int | None = None
    max_bytes: int | None = None
    when_full: Literal["emit_early", "shut_down"] = "shut_down"
    logging: bool = True
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    idle_timeout: Duration | None = None

    def __post_init__(self) -> None:
        for what, bound in (("max_records", self.max_records), ("max_bytes", self.max_bytes)):
            if bound is not None and bound < 0:
                raise TopologyError(f"Suppressed: {what} is {bound}, it must not be negative")
        if self.wait is not None and milliseconds(self.wait) < 0:
            raise TopologyError(f"Suppressed: wait is {self.wait}, it must not be negative")
        if self.idle_timeout is not None:
            if self.wait is not None:
                raise TopologyError("Suppressed: idle_timeout= is for until_window_closes")
            check_idle_timeout(self.idle_timeout)

    @classmethod
    def until_window_closes(
        cls,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        logging: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        name: str | None = None,
        idle_timeout: Duration | None = None,
    ) -> Self:
        """Return a rule that forwards only the last result of each window, once window and grace are over.

        Stream time decides. With ``idle_timeout`` a window also ends once the task's inputs brought no record
        for so long by wall clock. A buffer that outgrows a bound ends the application: no result is forwarded
        early.
        """
        return cls(
            wait=None,
            max_records=max_records,
            max_bytes=max_bytes,
            logging=logging,
            changelog_config=changelog_config or {},
            name=name,
            idle_timeout=idle_timeout,
        )

    @classmethod
    def until_time_limit(
        cls,
        wait: Duration,
        *,
        max_records: int | None = None,
        max_bytes: int | None = None,
        when_full: Literal["emit_early", "shut_down"] = "emit_early",
        logging: bool = True,
        changelog_config: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> Self:
        """Return a rule that forwards the last of a key's updates within ``wait`` of stream time.

        If the buffer is full, it forwards updates sooner, or ends the application: see ``when_full``.
        """
        return cls(
            wait=wait,
            max_records=max_records,
            max_bytes=max_bytes,
            when_full=when_full,
            logging=logging,
            changelog_config=changelog_config or {},
            name=name,
        )


def suppressed(table: Table, options: Suppressed) -> Table:
    """Add a node that holds a table's updates back; the table that leaves it."""
    stream, builder = table.stream, table.stream.builder
    if table.is_versioned:
        raise TopologyError(
            "suppress() is only for tables that are not versioned, by their store or one above"
        )
    wait, idle_timeout = options.wait, options.idle_timeout
    aggregations = windows_above(builder.graph, stream.node) if wait is None else {}
    holding = Holding(
        wait_ms=max(aggregations.values()) if wait is None else milliseconds(wait),
        until_window_closes=wait is None,
        max_records=options.max_records,
        max_bytes=options.max_bytes,
        when_full=options.when_full,
        idle_ms=None if idle_timeout is None else milliseconds(idle_timeout),
        aggregations=tuple(aggregations),
    )
    # Of all names only this one costs no number where it is given, as in Kafka.
    node = options.name or builder.names.node("KTABLE-SUPPRESS-")
    store = f"{options.name}-store" if options.name else builder.names.store("KTABLE-SUPPRESS-")
    value_serde = builder.value_serde(node, stream.value_serde)
    spec = StoreSpec(
        name=store,
        kind="key_value",
        key_serde=builder.key_serde(node, stream.key_serde),
        value_serde=BufferedSerde(),
        cached=False,
        logged=options.logging,
        changelog_config=options.changelog_config,
    )
    builder.graph.add_store(spec)
    table.old_values.ask(force=True)
    builder.add_processor(node, (stream.node,), suppress(store, holding, value_serde), (store,))
    return Table(
        stream=replace(stream, node=node),
        old_values=table.old_values,
        read=lambda: SuppressedView(table.read(), store, value_serde),
    )


def windows_above(graph: Graph, node: str) -> dict[str, int]:
    """Return the windowed aggregations above a node, each with its grace period in ms.

    A window may still change for the grace period after its end. Raises TopologyError if there is no windowed
    aggregation.
    """
    graph_node = graph.nodes[node]
    if isinstance(graph_node, ProcessorNode) and graph_node.grace_ms is not None:
        return {node: graph_node.grace_ms}
    if not graph_node.parents:
        raise TopologyError(
            "until_window_closes is for tables of windows (windowed_by); this one comes from "
            f"{node}: say until_time_limit"
        )
    return {name: ms for parent in graph_node.parents for name, ms in windows_above(graph, parent).items()}
