"""BlackholeSink: counts records and drops them. `BlackholeConfig` declares and documents its settings."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from connect.api import Config, SinkConnector, SinkRecord, SinkTask, at_least, setting


class BlackholeConfig(Config):
    """Counts records and drops them; the counts are in the metrics of `kafka.connect:type=plugins`."""

    put_delay_ms: int = setting(
        "How long each batch takes, to see a slow target's effect; in ms.",
        default=0,
        importance="LOW",
        check=at_least(0),
    )


class BlackholeTask(SinkTask):
    """A task that counts the records, the tombstones among them, and the batches."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._records = self._tombstones = self._batches = 0

    def start(self, config: Mapping[str, str]) -> None:
        """Parse the config."""
        self._delay_seconds = BlackholeConfig.parse(config).put_delay_ms / 1000

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Count the records."""
        if self._delay_seconds:
            self._stopping.wait(self._delay_seconds)
        self._batches += 1
        self._records += len(records)
        self._tombstones += sum(record.value is None for record in records)

    def statistics(self) -> dict[str, float]:
        """Return the counts since the start of the task."""
        return {"records": self._records, "tombstones": self._tombstones, "batches": self._batches}

    def stop(self) -> None:
        """End a delay."""
        self._stopping.set()


class BlackholeSink(SinkConnector):
    """The connector of the blackhole sink."""

    CONFIG = BlackholeConfig
    VERSION = "1"
    task_class = BlackholeTask
