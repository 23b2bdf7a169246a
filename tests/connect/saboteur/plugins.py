"""Plugins that do harm: in one method each, in the way that the test chooses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from connect.api import SinkTask, SourceRecord, SourceTask


class Odd(BaseException):
    """An exception that `except Exception` does not catch."""


RAISED: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError("sabotage"),
    "SystemExit": lambda: SystemExit("sabotage"),
    "KeyboardInterrupt": lambda: KeyboardInterrupt("sabotage"),
    "GeneratorExit": lambda: GeneratorExit("sabotage"),
    "CancelledError": lambda: asyncio.CancelledError("sabotage"),
    "StopIteration": lambda: StopIteration("sabotage"),
    "BaseException": lambda: Odd("sabotage"),
}
SOURCE_METHODS = ("start", "poll", "commit", "commit_record", "update_offsets", "stop")
SINK_METHODS = ("start", "open", "put", "flush", "pre_commit", "close", "stop")


class Numbers(SourceTask):
    """A source of one record per poll, which says when its harm is done."""

    def __init__(self) -> None:
        self.harmed = threading.Event()
        self._number = 0

    def poll(self) -> Any:
        self._number += 1
        return [SourceRecord("t", self._number, source_partition={"p": 1}, source_offset={"n": self._number})]


class Taker(SinkTask):
    """A sink that takes everything, and says when its harm is done."""

    def __init__(self) -> None:
        self.harmed = threading.Event()
        self.values: list[Any] = []

    def put(self, records: Any) -> None:
        self.values += [record.value for record in records]


def sabotaged(base: type, method: str, harm: Callable[[], Any], *, is_async: bool = False) -> Any:
    """Return a task of a class derived from `base` whose `method` does harm."""

    def plain(self: Any, *arguments: Any) -> Any:
        self.harmed.set()
        return harm()

    async def on_loop(self: Any, *arguments: Any) -> Any:
        self.harmed.set()
        return harm()

    return type("Sabotaged", (base,), {method: on_loop if is_async else plain})()


def raising(kind: str) -> Callable[[], Any]:
    """Return what raises an exception of this kind."""

    def harm() -> Any:
        raise RAISED[kind]()

    return harm
