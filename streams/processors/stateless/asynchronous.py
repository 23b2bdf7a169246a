"""Asynchronous operators: a coroutine per record, with a timeout and retries.

`in_flight` bounds the running calls and orders their results.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from kafka_client.backoff import Backoff
from streams.processors.coroutines import Context, Coroutines
from streams.processors.record import Headers, Process, Record
from streams.processors.stateless.in_flight import Deliver, InFlight, Ordered
from streams.processors.wiring import Operator, Wiring

BACKOFF_LIMIT_S = 30.0
"""The longest wait between two attempts."""

Arguments = Callable[[Any, Any], tuple[Any, ...]]
"""Returns the arguments of a function call for a key and a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """The settings of a function's calls, the keywords of `KStream.map_values_async`. Times in ms."""

    function: Callable[..., Awaitable[Any]]
    arguments: Arguments
    max_in_flight: int
    ordered: Ordered
    timeout_ms: int | None
    retries: int
    retry_backoff_ms: int
    context: Context | None

    async def attempts(self, coroutines: Coroutines, node: str, key: Any, value: Any) -> Any:
        """Return the function's result, after retries if need be. Raises the error of the last attempt."""
        backoff = Backoff(self.retry_backoff_ms / 1000, BACKOFF_LIMIT_S)
        while True:
            try:
                return await self._attempt(coroutines, node, key, value)
            except Exception:
                if backoff.failures >= self.retries:
                    raise
            await coroutines.sleep(backoff.next())

    async def _attempt(self, coroutines: Coroutines, node: str, key: Any, value: Any) -> Any:
        arguments = self.arguments(key, value)
        if self.context is not None:
            arguments = *arguments, await coroutines.entered(node, self.context)
        limit = asyncio.timeout(None if self.timeout_ms is None else self.timeout_ms / 1000)
        try:
            async with limit:
                return await self._awaitable(arguments)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise TimeoutError(
                f"{_name(self.function)} gave no result within {self.timeout_ms} ms (timeout=)"
                + (f", in {self.retries + 1} attempts (retries=)" if self.retries else "")
            ) from error

    def _awaitable(self, arguments: tuple[Any, ...]) -> Awaitable[Any]:
        result = self.function(*arguments)
        if not inspect.isawaitable(result):
            raise TypeError(
                f"{_name(self.function)} gave a {type(result).__name__}, not a coroutine: make it an "
                "'async def', or use the operator without 'async' in its name"
            )
        return result


def call_for_values(calling: Calling) -> Operator:
    """Return the operator that replaces each value by a coroutine's result."""

    def deliver(forward: Process, record: Record[Any, Any], value: Any) -> None:
        forward(record.key, value, record.timestamp, record.headers)

    return _calling(calling, deliver)


def call_for_many_values(calling: Calling) -> Operator:
    """Return the operator that replaces each value by the values of a coroutine's result."""

    def deliver(forward: Process, record: Record[Any, Any], values: list[Any]) -> None:
        for value in values:
            forward(record.key, value, record.timestamp, record.headers)

    def checked(values: Any) -> list[Any]:
        if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
            raise TypeError(f"{_name(calling.function)} gave {values!r}, not a list of values")
        return list(values)

    return _calling(calling, deliver, checked)


def call_for_records(calling: Calling) -> Operator:
    """Return the operator that replaces key and value by those of a coroutine's result."""

    def deliver(forward: Process, record: Record[Any, Any], pair: tuple[Any, Any]) -> None:
        forward(*pair, record.timestamp, record.headers)

    def checked(pair: Any) -> Any:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"{_name(calling.function)} gave {pair!r}, not a tuple of key and value")
        return pair

    return _calling(calling, deliver, checked)


def _calling(
    calling: Calling, deliver: Deliver, checked: Callable[[Any], Any] = lambda result: result
) -> Operator:
    def build(wiring: Wiring) -> Process:
        async def work(key: Any, value: Any) -> Any:
            assert wiring.task.coroutines is not None
            return checked(await calling.attempts(wiring.task.coroutines, wiring.node, key, value))

        in_flight = InFlight(wiring, work, deliver, limit=calling.max_in_flight, ordered=calling.ordered)
        wiring.task.holding.append(in_flight)
        take = in_flight.take

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            take(key, value, timestamp, headers)

        return process

    return build


def _name(function: object) -> str:
    return str(getattr(function, "__qualname__", function))
