"""Millstream's side: an application with one table, started once to fill its changelog, then to restore it.

Arguments: ``fill`` or ``restore``, bootstrap servers, application id, state folder, how many records there
are, then settings, each key=value. ``restore`` prints a line of JSON: ``records``, and what passed in
``seconds`` and in the process's ``cpu`` seconds from the first restore's beginning until the application was
running.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time

from kafka_client import TopicPartition
from streams import KafkaStreams, StateRestoreListener, StreamsBuilder, Topology
from streams.cli import GC_THRESHOLD
from streams.config import StreamsConfig
from streams.runtime.status import State
from streams.runtime.threads.event_loop import run_in_new_loop


def table() -> Topology:
    """Return a topology with all records in a store that has a changelog."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.table("records", store="state")
    return builder.build()


class Stopwatch(StateRestoreListener):
    """A clock of the time from the first restore's beginning until the application runs."""

    def __init__(self, running: asyncio.Event) -> None:
        self._running = running
        self._started_at: tuple[float, float] | None = None
        self.records = 0
        self.seconds = self.cpu = 0.0

    def on_restore_start(
        self, tp: TopicPartition, store: str, starting_offset: int, ending_offset: int
    ) -> None:
        if self._started_at is None:
            self._started_at = time.perf_counter(), time.process_time()

    def on_restore_end(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        self.records += total_restored

    def became(self, new: State, old: State) -> None:
        """Stop the clock when the application runs; a listener of its states."""
        if new is State.RUNNING and self._started_at is not None:
            self.seconds = time.perf_counter() - self._started_at[0]
            self.cpu = time.process_time() - self._started_at[1]
            self._running.set()


async def _run(phase: str, config: StreamsConfig) -> None:
    running = asyncio.Event()
    stopwatch = Stopwatch(running)
    app = KafkaStreams(table(), config)
    if phase == "fill":
        await app.run_until(asyncio.Event(), when_caught_up=True)
        return
    app.add_restore_listener(stopwatch)
    app.add_state_listener(stopwatch.became)
    await app.run_until(running)
    result = {"records": stopwatch.records, "seconds": stopwatch.seconds, "cpu": stopwatch.cpu}
    print(json.dumps(result), flush=True)


def main() -> None:
    """Run the benchmark."""
    phase, bootstrap, application, folder, _, *settings = sys.argv[1:]
    gc.set_threshold(GC_THRESHOLD)
    overrides = dict(each.split("=", 1) for each in settings)
    config = StreamsConfig.from_properties(
        {
            "application.id": application,
            "bootstrap.servers": bootstrap,
            "state.dir": folder,
            "replication.factor": "1",
            **overrides,
        }
    )
    run_in_new_loop(_run(phase, config))


if __name__ == "__main__":
    main()
