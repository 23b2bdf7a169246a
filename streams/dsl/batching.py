"""Batch nodes of a stream: what `KStream.map_values_batch` and `map_batch` were given, checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from streams.dsl.arity import takes_key
from streams.dsl.keywords import BatchForm
from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.processors.stateless import arrow
from streams.processors.stateless.batches import in_batches, of_records, of_values

PREFIX = "KSTREAM-BATCH-"


def mapped_values_in_batches(
    stream: Stream, function: Callable[..., Any], max_records: int, as_: BatchForm, name: str | None
) -> Stream:
    """Add a node that replaces values, many at a time."""
    _check("map_values_batch", function, max_records, as_)
    if as_ == "arrow":
        call = arrow.of_batches(function, keeps_keys=True)
    else:
        call = of_values(function, with_keys=takes_key(function, "map_values_batch"))
    return stream.then(PREFIX, name, in_batches(call, max_records)).with_new_values()


def mapped_in_batches(
    stream: Stream, function: Callable[..., Any], max_records: int, as_: BatchForm, name: str | None
) -> Stream:
    """Add a node that replaces records, many at a time."""
    _check("map_batch", function, max_records, as_)
    call = arrow.of_batches(function, keeps_keys=False) if as_ == "arrow" else of_records(function)
    node = stream.then(PREFIX, name, in_batches(call, max_records))
    return node.with_new_keys().with_new_values()


def _check(operator: str, function: object, max_records: int, as_: str) -> None:
    if not callable(function):
        raise TopologyError(f"{operator}() takes a function of a batch, not {function!r}")
    if max_records < 1:
        raise TopologyError(f"{operator}(): max_records is {max_records}, it must be 1 or more")
    if as_ not in get_args(BatchForm):
        raise TopologyError(f"{operator}(): as_ is {as_!r}, it may be one of {get_args(BatchForm)}")
    if as_ == "arrow":
        arrow.check_installed(operator)
