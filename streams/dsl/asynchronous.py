"""Asynchronous nodes of a stream, and the checks of the options of `KStream.map_values_async` and others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Unpack, get_args

from streams.dsl.arity import coroutine_takes_key
from streams.dsl.keywords import AsyncOptions
from streams.dsl.stream import Stream
from streams.errors import TopologyError
from streams.processors.stateless.asynchronous import (
    Arguments,
    Calling,
    call_for_many_values,
    call_for_records,
    call_for_values,
)
from streams.processors.stateless.in_flight import Ordered
from streams.processors.windowing.windows import milliseconds

PREFIX = "KSTREAM-ASYNC-"


def mapped_values(
    stream: Stream, mapper: Callable[..., Awaitable[Any]], **how: Unpack[AsyncOptions]
) -> Stream:
    """Add a node that replaces values by the results of coroutines."""
    calling = _calling(mapper, _of_value(mapper, "map_values_async", how), how)
    return stream.then(PREFIX, how["name"], call_for_values(calling)).with_new_values()


def flat_mapped_values(
    stream: Stream, mapper: Callable[..., Awaitable[Any]], **how: Unpack[AsyncOptions]
) -> Stream:
    """Add a node that replaces a value by those that a coroutine returns."""
    calling = _calling(mapper, _of_value(mapper, "flat_map_values_async", how), how)
    return stream.then(PREFIX, how["name"], call_for_many_values(calling)).with_new_values()


def mapped(stream: Stream, mapper: Callable[..., Awaitable[Any]], **how: Unpack[AsyncOptions]) -> Stream:
    """Add a node that replaces keys and values by the results of coroutines."""
    if not callable(mapper):
        raise TopologyError(f"map_async() takes an async function of (key, value), not {mapper!r}")
    calling = _calling(mapper, _key_and_value, how)
    return stream.then(PREFIX, how["name"], call_for_records(calling)).with_new_keys().with_new_values()


def _calling(mapper: Callable[..., Awaitable[Any]], arguments: Arguments, how: AsyncOptions) -> Calling:
    """Return the checked settings of a node's calls; raises TopologyError if an option is out of range."""
    max_in_flight, ordered, timeout = how["max_in_flight"], how["ordered"], how["timeout"]
    retries, retry_backoff, context = how["retries"], how["retry_backoff"], how["context"]
    timeout_ms = None if timeout is None else milliseconds(timeout)
    for wrong, problem in (
        (max_in_flight < 1, f"max_in_flight is {max_in_flight}, it must be 1 or more"),
        (ordered not in get_args(Ordered), f"ordered is {ordered!r}, it may be one of {get_args(Ordered)}"),
        (timeout_ms is not None and timeout_ms <= 0, f"timeout is {timeout}, it must be longer than 0"),
        (retries < 0, f"retries is {retries}, it must be 0 or more"),
        (milliseconds(retry_backoff) < 0, f"retry_backoff is {retry_backoff}, it must not be negative"),
        (
            context is not None and not callable(context),
            f"context is {context!r}, not a function that makes one",
        ),
    ):
        if wrong:
            raise TopologyError(f"an asynchronous node: {problem}")
    return Calling(
        function=mapper,
        arguments=arguments,
        max_in_flight=max_in_flight,
        ordered=ordered,
        timeout_ms=timeout_ms,
        retries=retries,
        retry_backoff_ms=milliseconds(retry_backoff),
        context=context,
    )


def _of_value(mapper: Callable[..., Any], operator: str, how: AsyncOptions) -> Arguments:
    with_key = coroutine_takes_key(mapper, operator, has_context=how["context"] is not None)
    return _key_and_value if with_key else _value


def _value(key: Any, value: Any) -> tuple[Any, ...]:
    return (value,)


def _key_and_value(key: Any, value: Any) -> tuple[Any, ...]:
    return (key, value)
