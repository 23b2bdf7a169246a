"""Sources written as plain generator functions.

    class NumbersConfig(Config):
        topic: str = setting("Where the numbers go.")
        limit: int = setting("How many.", default=100)

    @source(name="numbers", config=NumbersConfig)
    def numbers(config, state):
        for n in range(state.get("next", 0), config.limit):
            state["next"] = n + 1          # before the yield that this state covers
            yield SourceRecord(config.topic, {"n": n})

`state` is a dict of JSON values. The worker stores it once everything yielded so far is acknowledged, and
hands it back after a restart. `yield None` says that nothing more is there now: what was yielded is sent.
When the function returns, the source has ended. When it raises RetriableError, it is called again after a
backoff with the state of the last batch. Async generators work as well.
"""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from connect.api.records import SourceRecord
from connect.api.source import SourceConnector, SourceTask
from connect.config import Config
from connect.errors import RetriableError

Generator = Callable[
    [Any, dict[str, Any]], Iterator[SourceRecord | None] | AsyncIterator[SourceRecord | None]
]


def source(
    *, name: str, config: type[Config] = Config, version: str = "0", batch_size: int = 1000
) -> Callable[[Generator], type[SourceConnector]]:
    """Turn a generator function into a connector class with one task, to be named in `connector.class`.

    A batch ends after `batch_size` records, at `yield None`, or when the generator ends.
    """

    def decorate(function: Generator) -> type[SourceConnector]:
        base = _AsyncGeneratorTask if inspect.isasyncgenfunction(function) else _GeneratorTask
        attributes = {
            "source_name": name,
            "function": staticmethod(function),
            "declaration": config,
            "batch_size": batch_size,
        }
        task = type(f"{function.__name__}Task", (base,), attributes)
        return type(
            function.__name__,
            (SourceConnector,),
            {
                "__doc__": function.__doc__,
                "__module__": function.__module__,
                "CONFIG": config,
                "VERSION": version,
                "task_class": task,
            },
        )

    return decorate


class _Generated(SourceTask):
    """What the sync and the async form share."""

    source_name: ClassVar[str]
    function: ClassVar[Any]
    declaration: ClassVar[type[Config]]
    batch_size: ClassVar[int]

    def start(self, config: Mapping[str, str]) -> None:
        self._partition = {"source": self.source_name}
        self._config = self.declaration.parse(config)
        self._handed: dict[str, Any] = self.context.offsets.offset(self._partition) or {}
        self._begin()

    def _begin(self) -> None:
        """Call the function with the state of the last batch. A generator that has raised is at its end."""
        self._state = copy.deepcopy(self._handed)
        self._generator: Any = self.function(self._config, self._state)

    def _batch(self, records: list[SourceRecord]) -> list[SourceRecord]:
        """Only the last record carries the state: it stands for the whole batch."""
        self._handed = copy.deepcopy(self._state)
        if records:
            records[-1].source_partition = self._partition
            records[-1].source_offset = self._handed
        return records


class _GeneratorTask(_Generated):
    def poll(self) -> Sequence[SourceRecord]:
        records: list[SourceRecord] = []
        try:
            for record in itertools.islice(self._generator, self.batch_size):
                if record is None:
                    break
                records.append(record)
            else:
                if len(records) < self.batch_size:
                    self.context.finished()
        except RetriableError:
            self._begin()
            raise
        return self._batch(records)

    def stop(self) -> None:
        if hasattr(self, "_generator"):
            self._generator.close()


class _AsyncGeneratorTask(_Generated):
    async def poll(self) -> Sequence[SourceRecord]:
        records: list[SourceRecord] = []
        while len(records) < self.batch_size:
            try:
                record = await anext(self._generator)
            except StopAsyncIteration:
                self.context.finished()
                break
            except RetriableError:
                self._begin()
                raise
            if record is None:
                break
            records.append(record)
        return self._batch(records)

    async def stop(self) -> None:
        if hasattr(self, "_generator"):
            await self._generator.aclose()
