"""A sub-topology made runnable for one task: its operators wired up, from the sinks to the sources."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from streams.config import ExceptionHandler
from streams.errors import SerializationError
from streams.graph import ProcessorNode, SinkNode, SourceNode
from streams.processors.metrics import NodeMetrics
from streams.processors.record import Headers, Process, fan_out
from streams.processors.wiring import TaskState, Wiring
from streams.state import CachedStore, KeyValueStore
from streams.topology.subtopology import Subtopology

log = logging.getLogger(__name__)

Row = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp (ms), key, value, headers: what goes to a topic."""
Rows = list[Row]


@dataclass(slots=True)
class Program:
    """One task's wired operators.

    `heads`: what takes a source node's records, by node name. `output`: rows written since they were last
    taken, by sink topic.
    """

    heads: dict[str, Process]
    output: dict[str, Rows]
    metrics: dict[str, NodeMetrics]
    stores: dict[str, CachedStore]
    state: TaskState

    def drain(self) -> None:
        """Bring every store's changes to its `pending`.

        Forwarding one store's changes may change others, so this repeats until no store has any.
        """
        while changed := [store for store in self.stores.values() if store.needs_drain]:
            for store in changed:
                store.drain()

    def node_that_raised(self, error: BaseException) -> str:
        """The innermost node on the way to where the error was raised; "" if it was none."""
        functions = [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]
        return next((name for name in reversed(functions) if name in self.metrics), "")

    def close(self) -> None:
        """Tell the processors; nothing may be processed afterwards."""
        for closer in self.state.closers:
            closer()


def wire(
    subtopology: Subtopology,
    stores: Mapping[str, CachedStore],
    *,
    state: TaskState,
    on_bad_record: ExceptionHandler,
) -> Program:
    """Build the closures of a task. Nodes come in the order they were made, so children follow parents."""
    output: dict[str, Rows] = {sink.topic: [] for sink in subtopology.sinks}
    metrics = {node.name: NodeMetrics() for node in subtopology.nodes}
    built: dict[str, Process] = {}
    for node in reversed(subtopology.nodes):
        children = {name: built[name] for name in node.children}
        forward = fan_out([built[name] for name in node.children])
        if isinstance(node, SinkNode):
            built[node.name] = _sink(node, output[node.topic], metrics[node.name], on_bad_record)
        elif isinstance(node, ProcessorNode):
            own = {name: stores[name] for name in node.stores}
            process = node.operator(Wiring(node.name, forward, children, own, metrics[node.name], state))
            built[node.name] = process if process is forward else _named(process, node.name)
        else:
            built[node.name] = forward
    _start(state, stores)
    heads = {source.name: built[source.name] for source in subtopology.sources}
    return Program(heads, output, metrics, dict(stores), state)


def _start(state: TaskState, stores: Mapping[str, CachedStore]) -> None:
    """Let the processors of the user's begin, parents first: what one sends then is taken below."""
    for store in stores.values():
        if isinstance(store, KeyValueStore):
            store.now = lambda: state.timestamp
    state.starters.reverse()  # children were built first
    state.closers.reverse()
    for start in state.starters:
        start()


def _named(process: Process, node: str) -> Process:
    """Let tracebacks call the function by its node's name; records pay nothing for it."""
    if isinstance(process, FunctionType):
        process.__code__ = process.__code__.replace(co_name=node, co_qualname=node)
    return process


def _sink(node: SinkNode, rows: Rows, metrics: NodeMetrics, on_bad_record: ExceptionHandler) -> Process:
    key_of: Callable[[Any], bytes] = node.key_serde.serialize
    value_of: Callable[[Any], bytes] = node.value_serde.serialize
    append, topic = rows.append, node.topic

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        # Serialized at once: the program may go on changing the value.
        try:
            row = (
                timestamp,
                None if key is None else key_of(key),
                None if value is None else value_of(value),
                headers,
            )
        except Exception as error:
            problem = SerializationError(f"{node.name} cannot serialize {key!r}, {value!r}: {error}", topic)
            if on_bad_record(problem) == "fail":
                raise problem from error
            log.warning("record left out: %s", problem)
            metrics.dropped()
            return
        append(row)
        metrics.process_total += 1

    return process


def source_nodes(subtopology: Subtopology) -> dict[str, SourceNode]:
    """Source nodes by the topics they read."""
    return {topic: source for source in subtopology.sources for topic in source.topics}
