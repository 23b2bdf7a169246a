"""The runnable form of a sub-topology for one task: its operators, built from the sinks to the sources."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType

from streams.graph import ProcessorNode, SinkNode, SourceNode
from streams.processors.metrics import NodeMetrics
from streams.processors.record import Process, fan_out
from streams.processors.wiring import TaskState, Wiring
from streams.state import CachedStore, KeyValueStore
from streams.topology.failures import Failures, Handlers
from streams.topology.sink_output import Written
from streams.topology.sinks import sink
from streams.topology.subtopology import Subtopology


@dataclass(slots=True)
class Program:
    """The operators of a task, ready to process records."""

    heads: dict[str, Process]
    """The functions that process source nodes' records, by node name."""
    written: Written
    """The rows of the sinks since they were last taken."""
    metrics: dict[str, NodeMetrics]
    stores: dict[str, CachedStore]
    state: TaskState
    failures: Failures

    def drain(self) -> None:
        """Serialize every store's changes into its `pending`.

        Forwarding a store's changes may change other stores. So this repeats until no store has changes, and
        no node keeps a record that may change one.
        """
        self._drain_nodes()
        while changed := [store for store in self.stores.values() if store.needs_drain]:
            for store in changed:
                store.drain()
            self._drain_nodes()

    def _drain_nodes(self) -> None:
        while any(each.record_count for each in self.state.holding):
            for each in self.state.holding:
                each.drain()

    def node_that_raised(self, error: BaseException) -> str:
        """Return the innermost node in the traceback of an error, "" if there is none."""
        functions = [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]
        return next((name for name in reversed(functions) if name in self.metrics), "")

    def close(self) -> None:
        """Close the processors; nothing may be processed afterwards."""
        for closer in self.state.closers:
            closer()


def wire(
    subtopology: Subtopology,
    stores: Mapping[str, CachedStore],
    *,
    state: TaskState,
    handlers: Handlers,
    written: type[Written] = Written,
) -> Program:
    """Build the closures of a task, from the last node to the first, so that children are built first."""
    rows = written(sink.topic for sink in subtopology.sinks if sink.topic is not None)
    failures = Failures(handlers, state, rows)
    state.fail = failures.processing
    metrics = {node.name: NodeMetrics() for node in subtopology.nodes}
    built: dict[str, Process] = {}
    for node in reversed(subtopology.nodes):
        children = {name: built[name] for name in node.children}
        forward = fan_out([built[name] for name in node.children])
        if isinstance(node, SinkNode):
            built[node.name] = sink(node, rows, metrics[node.name], state, failures)
        elif isinstance(node, ProcessorNode):
            own = {name: stores[name] for name in node.stores}
            process = node.operator(Wiring(node.name, forward, children, own, metrics[node.name], state))
            if process is not forward:
                process = _named(process, node.name)
                if failures.guards:
                    process = failures.guarded(process, node.name, metrics[node.name])
            built[node.name] = process
        else:
            built[node.name] = forward
    _start(state, stores)
    heads = {source.name: built[source.name] for source in subtopology.sources}
    return Program(heads, rows, metrics, dict(stores), state, failures)


def _start(state: TaskState, stores: Mapping[str, CachedStore]) -> None:
    """Initialize the stores' clocks and the user's processors, parents first."""
    for store in stores.values():
        if isinstance(store, KeyValueStore):
            store.now = lambda: state.timestamp
    state.starters.reverse()  # children were built first
    state.closers.reverse()
    state.holding.reverse()
    state.on_idle.reverse()
    for start in state.starters:
        start()


def _named(process: Process, node: str) -> Process:
    """Give the function its node's name in tracebacks, which costs nothing per record."""
    if isinstance(process, FunctionType):
        process.__code__ = process.__code__.replace(co_name=node, co_qualname=node)
    return process


def source_nodes(subtopology: Subtopology) -> dict[str, SourceNode]:
    """Return the source nodes by the topics they read."""
    return {topic: source for source in subtopology.sources for topic in source.topics}
