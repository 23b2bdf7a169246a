"""VerifiableSource: numbers, and a line of JSON for each that is made and for each that is acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.api import Config, SourceConnector, SourceRecord, schema, setting
from plugins.verifiable.lines import now_ms, write_line
from plugins.verifiable.numbers import NumbersTask

_COMPLETE = schema.struct(
    {
        "name": schema.string(),
        "task": schema.int32(),
        "topic": schema.string(),
        "time_ms": schema.int64(),
        "seqno": schema.int64(),
    }
)


class VerifiableSourceConfig(Config):
    """Writes rising numbers, and prints a line of JSON per record, for system tests.

    The key is the task's number, the value the record's. The line of a record has name, task, topic, time_ms
    and seqno; once its offset is committed, another has `committed`. Kafka's kafkatest reads these lines.
    """

    topic: str = setting("The topic to write to.", importance="HIGH")
    throughput: int = setting(
        "Records per second of each task; 0 or less: no bound.", default=-1, kind="LONG"
    )
    complete_record_data: bool = setting(
        "Whether the value is what the line has, instead of the number.", default=False
    )


class VerifiableSourceTask(NumbersTask):
    """A task that counts upwards."""

    def start(self, config: Mapping[str, str]) -> None:
        """Go to the number after the last acknowledged one."""
        self._config = VerifiableSourceConfig.parse(config)
        self.begin(int(config.get("id", 0)), self._config.throughput)
        self._unconfirmed: dict[int, Any] = {}
        """Values by number, of the records whose offsets are not committed yet."""

    def poll(self) -> list[SourceRecord] | None:
        """Return the next record, or None if none is due yet."""
        if self.waits():
            return None
        record = self.record(self._seqno)
        self._seqno += 1
        return [record]

    def record(self, seqno: int) -> SourceRecord:
        """Return the record of a number, and print its line."""
        data = {**self._place(), "time_ms": now_ms(), "seqno": seqno}
        write_line(data)
        complete = self._config.complete_record_data
        value: Any = data if complete else seqno
        self._unconfirmed[seqno] = value
        return SourceRecord(
            self._config.topic,
            value,
            self._id,
            source_partition=self._partition,
            source_offset={"seqno": seqno},
            key_schema=schema.int32(),
            value_schema=_COMPLETE if complete else schema.int64(),
        )

    def commit(self) -> None:
        """Print a line for each record whose offset is committed since the last call."""
        committed = (self.context.offsets.offset(self._partition) or {}).get("seqno", -1)
        for seqno in [each for each in self._unconfirmed if each <= committed]:
            value = self._unconfirmed.pop(seqno)
            write_line({**self._place(), "time_ms": now_ms(), "seqno": value, "committed": True})

    def statistics(self) -> dict[str, float]:
        """Return the count of records whose offsets are not committed yet."""
        return {"unconfirmed": len(self._unconfirmed)}

    def _place(self) -> dict[str, Any]:
        return {"name": self.context.connector, "task": self._id, "topic": self._config.topic}


class VerifiableSource(SourceConnector):
    """The connector of the verifiable source; every task counts by itself."""

    CONFIG = VerifiableSourceConfig
    VERSION = "1"
    task_class = VerifiableSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return a config per task, with its number in `id`."""
        return [{**self.config, "id": str(i)} for i in range(max_tasks)]

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """Return True: each record has its number as its offset."""
        return True
