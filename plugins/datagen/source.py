"""DatagenSource: made-up records. `DatagenConfig` declares and documents its settings.

A record depends on the seed, the task and its number alone. Records are made in blocks with a generator of
random numbers each. So a restart makes at most one block's records again to find its place.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from random import Random
from typing import Any

from connect.api import SourceConnector, SourceRecord, SourceTask
from plugins.datagen.config import DatagenConfig
from plugins.datagen.fields import record_of
from plugins.pacing import Pace

_TASK = "datagen.task"
_BLOCK = 1000
"""Records that share a generator of random numbers."""
_WAIT_SECONDS_MAX = 0.5


class DatagenTask(SourceTask):
    """A task that makes up records."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._number = 0
        """The number of the next record."""

    def start(self, config: Mapping[str, str]) -> None:
        """Go to the record after the last acknowledged one."""
        self._config = DatagenConfig.parse(config)
        self._topics = self._config.topics or [self._config.topic or ""]
        self._task = int(config.get(_TASK, 0))
        self._partition = {"task": self._task}
        self._schema, self._make = record_of(self._config.rules(), self._config.quickstart)
        self._key_schema = self._schema.fields[self._config.key] if self._config.key else None
        self._pace = Pace(self._config.rate)
        self._pauses = Random()
        self._go_to((self.context.offsets.offset(self._partition) or {}).get("iteration", 0))

    def poll(self) -> list[SourceRecord] | None:
        """Return the records that are due, or None if none is."""
        count = self._pace.take(min(self._config.batch_size, self._left()))
        if count == 0 and self._left():
            self._stopping.wait(min(self._pace.seconds_to_next(), _WAIT_SECONDS_MAX))
            return None
        if self._config.max_interval and count:
            count = 1
            self._stopping.wait(self._pauses.uniform(0, self._config.max_interval / 1000))
        records = [self._next() for _ in range(count)]
        if not self._left():
            self.context.finished()
        return records

    def statistics(self) -> dict[str, float]:
        """Return the number of the next record."""
        return {"iteration": self._number}

    def stop(self) -> None:
        """End a wait between two records."""
        self._stopping.set()

    def _left(self) -> int:
        iterations = self._config.iterations
        return self._config.batch_size if iterations < 0 else max(0, iterations - self._number)

    def _next(self) -> SourceRecord:
        number = self._number
        value = self._value()
        key = self._config.key
        return SourceRecord(
            self._topics[number % len(self._topics)],
            value,
            value[key] if key else None,
            source_partition=self._partition,
            source_offset={"iteration": number + 1},
            key_schema=self._key_schema,
            value_schema=self._schema,
        )

    def _value(self) -> Any:
        if self._number % _BLOCK == 0:
            self._random = self._generator(self._number // _BLOCK)
        value = self._make(self._random, self._number)
        self._number += 1
        return value

    def _go_to(self, number: int) -> None:
        self._number = number - number % _BLOCK
        self._random = self._generator(self._number // _BLOCK)
        while self._number < number:
            self._value()

    def _generator(self, block: int) -> Random:
        return Random(f"{self._config.random_seed} {self._task} {block}")


class DatagenSource(SourceConnector):
    """The connector of the datagen source; every task makes records of its own."""

    CONFIG = DatagenConfig
    VERSION = "1"
    task_class = DatagenTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return a config per task, with its number."""
        return [{**self.config, _TASK: str(i)} for i in range(max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """Return True: each record has its number as its offset."""
        return True
