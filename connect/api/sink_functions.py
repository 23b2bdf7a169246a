"""Sinks written as functions.

    class PrintConfig(Config):
        prefix: str = setting("Printed before each value.", default="")

    @sink(name="print", config=PrintConfig)
    def print_values(config: PrintConfig, records: Sequence[SinkRecord]) -> None:
        for record in records:
            print(config.prefix, record.value)

The worker calls the function with each batch, in the order of the offsets per partition. When the function
has returned, its batch counts as written: the offsets are committed at the next interval. So a function
returns once its target has the records. When it raises RetriableError, it is called again with the same
records after a backoff. An async function works as well.

A function that opens its target once takes a third argument, a dict that lives as long as the task. What
has a `close` method in it is closed at the end:

    @sink(name="rows")
    def insert(config: Mapping[str, str], records: Sequence[SinkRecord], resources: dict[str, Any]) -> None:
        database = resources.get("database") or resources.setdefault("database", connect(config["url"]))
        database.insert([record.value for record in records])
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, overload

from connect.api.function_connectors import connector_of, settings_of
from connect.api.records import SinkRecord
from connect.api.sink import SinkConnector, SinkTask
from connect.config import Config

C = TypeVar("C", bound=Config)
_Written = Awaitable[None] | None
_Settings = Mapping[str, str]
SinkFunction = (
    Callable[[C, Sequence[SinkRecord]], _Written]
    | Callable[[C, Sequence[SinkRecord], dict[str, Any]], _Written]
)
"""A function of config and records; one with a third parameter gets the task's resources, too."""
UntypedSinkFunction = (
    Callable[[_Settings, Sequence[SinkRecord]], _Written]
    | Callable[[_Settings, Sequence[SinkRecord], dict[str, Any]], _Written]
)
"""A sink function without a declared config: its first argument are the settings, as texts by key."""


@overload
def sink(
    *, name: str, config: type[C], version: str = "0"
) -> Callable[[SinkFunction[C]], type[SinkConnector]]: ...


@overload
def sink(*, name: str, version: str = "0") -> Callable[[UntypedSinkFunction], type[SinkConnector]]: ...


def sink(
    *, name: str, config: type[Any] | None = None, version: str = "0"
) -> Callable[[Any], type[SinkConnector]]:
    """Turn a function into a connector class, to be named in `connector.class`.

    The function gets an instance of `config`, or without one the settings as a mapping. `name` is the class's
    name, which reports such as a dry run's show.
    """

    def decorate(function: Any) -> type[SinkConnector]:
        attributes = {"takes_resources": len(inspect.signature(function).parameters) > 2}
        task = _AsyncFunctionTask if inspect.iscoroutinefunction(function) else _FunctionTask
        return connector_of(
            SinkConnector, function, task, attributes, name=name, config=config, version=version
        )

    return decorate


class _Functional(SinkTask):
    """The common part of the plain and the async task."""

    function: ClassVar[Any]
    declaration: ClassVar[type[Config] | None]
    takes_resources: ClassVar[bool]

    def start(self, config: Mapping[str, str]) -> None:
        self._resources: dict[str, Any] = {}
        self._config = settings_of(self.declaration, config)

    def _call(self, records: Sequence[SinkRecord]) -> Any:
        resources = (self._resources,) if self.takes_resources else ()
        return self.function(self._config, records, *resources)

    def stop(self) -> None:
        for resource in reversed(self._resources.values()):
            if callable(close := getattr(resource, "close", None)):
                close()


class _FunctionTask(_Functional):
    def put(self, records: Sequence[SinkRecord]) -> None:
        self._call(records)


class _AsyncFunctionTask(_Functional):
    async def put(self, records: Sequence[SinkRecord]) -> None:
        await self._call(records)

    async def stop(self) -> None:  # type: ignore[override]  # a plain `stop` would close in another thread
        for resource in reversed(self._resources.values()):
            close = getattr(resource, "aclose", None) or getattr(resource, "close", None)
            if callable(close) and inspect.isawaitable(closing := close()):
                await closing
