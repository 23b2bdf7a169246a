"""Connectors for the worker's scripts: each notes what happens to it in a file that the test reads.

They do what MonitorableSourceConnector, MonitorableSinkConnector, ErrantRecordSinkConnector and the blocking
connectors of Kafka's integration tests do. They run in the worker's process, so a file is the handle here.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from connect.api import (
    Config,
    RetriableError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
    Transform,
    setting,
)
from tests.support.waiting import wait_for

_lock = threading.Lock()


def note(config: Mapping[str, str], *events: Mapping[str, Any]) -> None:
    """Append events to the file that a connector's config names."""
    with _lock, Path(config["events"]).open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def release_file(events: Path) -> Path:
    """Return the file whose creation ends the hanging calls of a connector with this file for events."""
    return events.with_suffix(".released")


def block(config: Mapping[str, str], point: str) -> None:
    """Note that a call hangs here, if the config names this point, and return once it is released."""
    if config.get("block") == point:
        note(config, {"event": "block", "at": point})
        wait_for(release_file(Path(config["events"])).exists, math.inf)


class ScriptConfig(Config):
    """Settings of all connectors here."""

    events: str = setting("The file for events.")
    block: str | None = setting("The point at which a call hangs.", default=None)


class SourceScriptConfig(ScriptConfig):
    """Settings of the monitorable source."""

    topic: str = setting("The topic to write to.")
    throughput: int = setting("Records per second; 0 or less: no bound.", default=-1)
    messages_per_poll: int = setting("Records per poll.", default=10)
    max_messages: int = setting("The number after which no record comes; -1: no end.", default=-1)
    num_tasks: int = setting("How many tasks are planned; -1: as many as allowed.", default=-1)
    connector_start_inject_error: bool = setting("Whether the connector fails to start.", default=False)
    tasks_start_inject_error: str = setting("The numbers of the tasks that fail to start.", default="")
    connector_stop_inject_error: bool = setting("Whether the connector fails to stop.", default=False)


class MonitorableSourceTask(SourceTask):
    """Numbers from 1, each with a header of its own."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config, self._id = config, int(config["id"])
        self._parsed = SourceScriptConfig.parse(config)
        self._partition = {"task.id": f"{self.context.connector}-{self._id}"}
        stored = self.context.offsets.offset(self._partition) or {}
        self._number = int(stored.get("saved", 0))
        self._stopping = threading.Event()
        note(config, {"event": "start", "task": self._id, "from": self._number})
        block(config, "Task::start")
        if str(self._id) in self._parsed.tasks_start_inject_error.split(","):
            raise RuntimeError("Injecting errors during task start")

    def poll(self) -> list[SourceRecord] | None:
        block(self._config, "Task::poll")
        count = self._parsed.messages_per_poll
        if self._parsed.max_messages >= 0:
            count = min(count, self._parsed.max_messages - self._number)
        if count <= 0 or self._parsed.throughput > 0:
            self._stopping.wait(self._parsed.messages_per_poll / max(1, self._parsed.throughput))
        return [self._record() for _ in range(count)]

    def _record(self) -> SourceRecord:
        self._number += 1
        return SourceRecord(
            self._parsed.topic,
            f"value-{self._id}-{self._number}",
            f"key-{self._id}-{self._number}",
            headers=((f"header-{self._number}", None, self._number),),
            source_partition=self._partition,
            source_offset={"saved": self._number},
        )

    def commit(self) -> None:
        stored = self.context.offsets.offset(self._partition) or {}
        note(self._config, {"event": "commit", "task": self._id, "saved": stored.get("saved", 0)})

    def stop(self) -> None:
        block(self._config, "Task::stop")
        self._stopping.set()
        note(self._config, {"event": "stop", "task": self._id})


class MonitorableSource(SourceConnector):
    """A source of numbers."""

    CONFIG = SourceScriptConfig
    VERSION = "1"
    task_class = MonitorableSourceTask

    def validate(self, config: Mapping[str, str]) -> None:
        block(config, "Connector::validate")

    def start(self, config: Mapping[str, str]) -> None:
        self.config = dict(config)
        self._parsed = SourceScriptConfig.parse(config)
        note(config, {"event": "start", "task": None})
        block(config, "Connector::start")
        if self._parsed.connector_start_inject_error:
            raise RuntimeError("Injecting errors during connector start")

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        block(self.config, "Connector::taskConfigs")
        count = self._parsed.num_tasks if self._parsed.num_tasks >= 0 else max_tasks
        return [{**self.config, "id": str(number)} for number in range(count)]

    def stop(self) -> None:
        block(self.config, "Connector::stop")
        note(self.config, {"event": "stop", "task": None})
        if self._parsed.connector_stop_inject_error:
            raise RuntimeError("Injecting errors during connector stop")


class MonitorableSinkTask(SinkTask):
    """Notes every record, partition and commit."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = config
        note(config, {"event": "start", "task": self.context.task_id})
        block(config, "Task::start")

    def open(self, partitions: Collection[TopicPartition]) -> None:
        note(self._config, *({"event": "open", "tp": str(tp)} for tp in partitions))

    def put(self, records: Sequence[SinkRecord]) -> None:
        block(self._config, "Task::put")
        note(self._config, *(_described(record) for record in records))

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        note(self._config, *({"event": "flush", "tp": str(tp), "to": offsets[tp]} for tp in offsets))

    def close(self, partitions: Collection[TopicPartition]) -> None:
        note(self._config, *({"event": "close", "tp": str(tp)} for tp in partitions))

    def stop(self) -> None:
        block(self._config, "Task::stop")
        note(self._config, {"event": "stop", "task": self.context.task_id})


def _described(record: SinkRecord) -> dict[str, Any]:
    place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    return {"event": "put", **place, "key": record.key, "value": record.value}


class MonitorableSink(SinkConnector):
    """A sink that notes what it gets."""

    CONFIG = ScriptConfig
    VERSION = "1"
    task_class = MonitorableSinkTask


class ErrantSinkTask(MonitorableSinkTask):
    """Reports every record: those at even offsets at once, the others later, from a thread of its own."""

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self._threads = ThreadPoolExecutor(1)

    def put(self, records: Sequence[SinkRecord]) -> None:
        reporter = self.context.errant_record_reporter()
        assert reporter is not None
        for record in records:
            if record.original_offset % 2 == 0:
                reporter.report(record, ValueError("errant"))
            else:
                self._threads.submit(self._report_later, record)
        super().put(records)

    def _report_later(self, record: SinkRecord) -> None:
        time.sleep(0)  # has another thread go first, as Thread.yield does there
        reporter = self.context.errant_record_reporter()
        assert reporter is not None
        reporter.report(record, ValueError("errant"))

    def stop(self) -> None:
        self._threads.shutdown()
        super().stop()


class ErrantSink(MonitorableSink):
    """A sink that can use no record."""

    task_class = ErrantSinkTask


class EmptyConfigsSink(MonitorableSink):
    """A sink whose task configs are the same whatever its own config is."""

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{"events": self.config["events"]} for _ in range(max_tasks)]


class FaultyPassthrough(Transform):
    """Fails on value-4 at first, and on value-7 always, with an error that asks for another try."""

    def configure(self, config: Mapping[str, str]) -> None:
        self._is_first = True

    def apply(self, record: Any) -> Any:
        if record.value == "value-4" and self._is_first:
            self._is_first = False
            raise RetriableError("Error when value='value-4'. A reattempt with this record will succeed.")
        if record.value == "value-7":
            raise RetriableError("Error when value='value-7'")
        return record


def reference(kind: type) -> str:
    """Return the name of a class here, as a connector's config has it."""
    return f"{__name__}:{kind.__name__}"
