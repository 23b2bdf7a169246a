"""Sources written as generator functions.

    class NumbersConfig(Config):
        topic: str = setting("Where the numbers go.")
        limit: int = setting("How many.", default=100)

    @source(name="numbers", config=NumbersConfig)
    def numbers(config: NumbersConfig, state: dict[str, Any]) -> Iterator[SourceRecord]:
        for n in range(state.get("next", 0), config.limit):
            state["next"] = n + 1          # before the yield that this state covers
            yield SourceRecord(config.topic, {"n": n})

`state` is a dict of JSON values. The worker stores it once everything yielded so far is acknowledged, and
hands it back after a restart. `yield None` says that nothing more is there now: what was yielded is sent.
A function that skips much of its input yields None now and then, so that the state behind it is stored.
When the function returns, the source has ended. When it raises RetriableError, it is called again after a
backoff with the state of the last batch. Async generators work as well.

An async generator is cancelled where it awaits when the task stops. A plain one that waits for its input
takes a third argument, a `threading.Event` that is set then, and returns soon after:

    @source(name="queue")
    def queue(
        config: Mapping[str, str], state: dict[str, Any], stopping: threading.Event
    ) -> Iterator[SourceRecord | None]:
        while not stopping.is_set():
            message = receive(timeout=1)
            yield message and SourceRecord(config["topic"], message)

Without a declared config, `config` is the connector's settings as texts, by their keys.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, overload

from connect.api.function_connectors import connector_of, settings_of
from connect.api.records import SourceRecord
from connect.api.source import SourceConnector, SourceTask
from connect.config import Config
from connect.errors import RetriableError

C = TypeVar("C", bound=Config)
_Records = Iterator[SourceRecord | None] | AsyncIterator[SourceRecord | None]
_State = dict[str, Any]
_Settings = Mapping[str, str]
SourceFunction = Callable[[C, _State], _Records] | Callable[[C, _State, threading.Event], _Records]
"""A generator function of config and state; a plain one with a third parameter gets `stopping`, too."""
UntypedSourceFunction = (
    Callable[[_Settings, _State], _Records] | Callable[[_Settings, _State, threading.Event], _Records]
)
"""A source function without a declared config: its first argument are the settings, as texts by key."""


@overload
def source(
    *, name: str, config: type[C], version: str = "0", batch_size: int = 1000
) -> Callable[[SourceFunction[C]], type[SourceConnector]]: ...


@overload
def source(
    *, name: str, version: str = "0", batch_size: int = 1000
) -> Callable[[UntypedSourceFunction], type[SourceConnector]]: ...


def source(
    *, name: str, config: type[Any] | None = None, version: str = "0", batch_size: int = 1000
) -> Callable[[Any], type[SourceConnector]]:
    """Turn a generator function into a connector class with one task, to be named in `connector.class`.

    The function gets an instance of `config`, or without one the settings as a mapping. `name` is the source
    partition under which the state is stored: do not change it. A batch ends after `batch_size` records, at
    `yield None`, or when the generator ends.
    """

    def decorate(function: Any) -> type[SourceConnector]:
        is_async = inspect.isasyncgenfunction(function)
        takes_stopping = len(inspect.signature(function).parameters) > 2
        if is_async and takes_stopping:
            raise TypeError(
                f"{function.__name__}: an async generator is cancelled, it takes config and state"
            )
        base = _AsyncGeneratorTask if is_async else _GeneratorTask
        attributes = {"source_name": name, "batch_size": batch_size, "takes_stopping": takes_stopping}
        return connector_of(
            SourceConnector,
            function,
            base,
            attributes,
            name=function.__name__,
            config=config,
            version=version,
        )

    return decorate


class _Generated(SourceTask):
    """The common part of the sync and the async task."""

    source_name: ClassVar[str]
    function: ClassVar[Any]
    declaration: ClassVar[type[Config] | None]
    batch_size: ClassVar[int]
    takes_stopping: ClassVar[bool]

    def __init__(self) -> None:
        self._generator: Any = None
        self._stopping = threading.Event()

    def start(self, config: Mapping[str, str]) -> None:
        self._partition = {"source": self.source_name}
        self._config = settings_of(self.declaration, config)
        self._skipped = False
        """True if the state has changed since the last record that has it as its offset."""
        self._batch_state: dict[str, Any] = self.context.offsets.offset(self._partition) or {}
        self._begin()

    def update_offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the state as the source offset if input without records has changed it."""
        skipped, self._skipped = self._skipped, False
        return [(self._partition, self._batch_state)] if skipped else []

    def _begin(self) -> None:
        """Call the function with the state of the last batch; a generator that has raised cannot continue."""
        self._state = copy.deepcopy(self._batch_state)
        stopping = (self._stopping,) if self.takes_stopping else ()
        self._generator = self.function(self._config, self._state, *stopping)

    def _batch(self, records: list[SourceRecord]) -> list[SourceRecord]:
        """Return the records, with the state as the source offset of the last one, which covers the batch."""
        before, self._batch_state = self._batch_state, copy.deepcopy(self._state)
        self._skipped = not records and (self._skipped or self._batch_state != before)
        if records:
            records[-1].source_partition = self._partition
            records[-1].source_offset = self._batch_state
        return records


class _GeneratorTask(_Generated):
    def __init__(self) -> None:
        super().__init__()
        self._polling = threading.Lock()

    def poll(self) -> Sequence[SourceRecord]:
        with self._polling:
            return self._poll()

    def _poll(self) -> Sequence[SourceRecord]:
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
        """Ask a running poll to end, wait for its return, then close the plugin's generator."""
        self._stopping.set()
        with self._polling:
            if self._generator is not None:
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
        if self._generator is not None:
            await self._generator.aclose()
