"""VerifiableSink: a line of JSON for each record that arrives, and for each that is flushed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from connect.api import Config, SinkConnector, SinkRecord, SinkTask, TopicPartition
from plugins.verifiable.lines import now_ms, write_line


class VerifiableSinkConfig(Config):
    """Prints a line of JSON per record, for system tests.

    A line has name, task (the record's key), sinkTask, topic, time_ms, seqno (the record's value) and offset;
    the line at the flush has `flushed` besides. Kafka's kafkatest reads these lines.
    """


class VerifiableSinkTask(SinkTask):
    """A task that prints what it is given."""

    def start(self, config: Mapping[str, str]) -> None:
        """Take the task's number."""
        self._id = int(config.get("id", 0))
        self._unflushed: dict[TopicPartition, list[dict[str, Any]]] = {}

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Print a line for each record."""
        time_ms = now_ms()
        for record in records:
            data = {
                "name": self.context.connector,
                "task": record.key,
                "sinkTask": self._id,
                "topic": record.topic,
                "time_ms": time_ms,
                "seqno": record.value,
                "offset": record.offset,
            }
            write_line(data)
            self._unflushed.setdefault(TopicPartition(record.topic, record.partition), []).append(data)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Print a line for each record that was put since the last flush."""
        time_ms = now_ms()
        for tp in offsets:
            for data in self._unflushed.pop(tp, ()):
                write_line({**data, "time_ms": time_ms, "flushed": True})

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the records that were not flushed: their partitions' next owner reads them again."""
        for tp in partitions:
            self._unflushed.pop(tp, None)

    def statistics(self) -> dict[str, float]:
        """Return the count of records that are not flushed yet."""
        return {"unflushed": sum(map(len, list(self._unflushed.values())))}


class VerifiableSink(SinkConnector):
    """The connector of the verifiable sink."""

    CONFIG = VerifiableSinkConfig
    VERSION = "1"
    task_class = VerifiableSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return a config per task, with its number in `id`."""
        return [{**self.config, "id": str(i)} for i in range(max_tasks)]
