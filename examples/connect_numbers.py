"""A source written as a generator, and a sink written as a class.

numbers.properties: name=numbers
                    connector.class=examples.connect_numbers:numbers
                    topic=numbers
totals.properties:  name=totals
                    connector.class=examples.connect_numbers:Totals
                    topics=numbers
                    file=totals.json

    PYTHONPATH=. millstream connect standalone worker.properties numbers.properties totals.properties

The first counts into a topic. The second adds up what comes back out of it, per key, in a JSON file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from connect.api import (
    Config,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceRecord,
    TopicPartition,
    setting,
    source,
)


class NumbersConfig(Config):
    """Counts upwards."""

    topic: str = setting("Where the numbers go.", importance="HIGH")
    limit: int = setting("How many.", default=1000)


@source(name="numbers", config=NumbersConfig, version="1")
def numbers(config: NumbersConfig, state: dict[str, Any]) -> Iterator[SourceRecord]:
    for n in range(state.get("next", 0), config.limit):
        state["next"] = n + 1  # before the yield: where to go on once this record is in the log
        yield SourceRecord(config.topic, n, key="odd" if n % 2 else "even")


class TotalsConfig(Config):
    """Adds up a topic's numbers, per key."""

    file: str = setting("Where the totals are kept, as JSON.", importance="HIGH")


class TotalsTask(SinkTask):
    """A task that stores totals and offsets in one file, so that a redelivered record counts once."""

    def start(self, config: Mapping[str, str]) -> None:
        self._path = Path(TotalsConfig.parse(config).file)
        stored = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._totals: dict[str, int] = stored.get("totals", {})
        self._next: dict[str, int] = stored.get("next", {})

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            partition = f"{record.topic}-{record.partition}"
            if record.offset >= self._next.get(partition, 0):
                self._totals[record.key] = self._totals.get(record.key, 0) + record.value
                self._next[partition] = record.offset + 1

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        aside = self._path.with_suffix(".tmp")
        aside.write_text(json.dumps({"totals": self._totals, "next": self._next}))
        aside.replace(self._path)


class Totals(SinkConnector):
    CONFIG = TotalsConfig
    VERSION = "1"
    task_class = TotalsTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return one config, whatever `tasks.max` is, as there is one file."""
        return [self.config]
