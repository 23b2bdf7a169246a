"""`Branches`: a node that sends each record to the first branch whose predicate takes it (KIP-418).

A `BranchedKStream` (`nouns.branched_kstream`) holds one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.processors.stateless import stateless

Predicate = Callable[[Any, Any], bool]


class Branches:
    """The node that splits a stream, and its branches so far; a task that starts sees all of them."""

    def __init__(self, stream: Stream, name: str | None) -> None:
        self._predicates: list[Predicate] = []
        self._children: list[str] = []
        self._closed = False
        operator = stateless.split(self._predicates, self._children)
        self._stream = stream.then("KSTREAM-BRANCH-", name, operator)

    def add(self, predicate: Predicate, name: str | None) -> Stream:
        """Add a branch; the stream that takes it. Unnamed ones are numbered, from 1."""
        if not callable(predicate):
            raise TopologyError(f"branch() takes a predicate of (key, value), not {predicate!r}")
        self._check_open()
        self._predicates.append(predicate)
        return self._child(str(len(self._predicates)) if name is None else name)

    def add_default(self, name: str | None) -> Stream:
        """Add the last branch, for the records that no predicate takes, and return its stream."""
        self._check_open()
        self._closed = True
        return self._child("0" if name is None else name)

    def close(self) -> None:
        """End the branches without a default: records that no predicate takes are dropped."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise TopologyError(
                f"{self._stream.node}: default_branch() and no_default_branch() come last, and once"
            )

    def _child(self, suffix: str) -> Stream:
        builder, node = self._stream.builder, self._stream.node + suffix
        builder.names.take()  # as Kafka does, whose names below would differ otherwise
        child = replace(
            self._stream, node=builder.add_processor(node, (self._stream.node,), stateless.pass_through())
        )
        self._children.append(node)
        return child
