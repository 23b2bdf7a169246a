"""SchemaSource: structs, of one schema or of two in turn, for system tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.api import Config, SourceConnector, SourceRecord, schema, setting
from plugins.verifiable.lines import write_line
from plugins.verifiable.numbers import NumbersTask

_FIRST = {
    "boolean": schema.boolean(),
    "int": schema.int32(),
    "long": schema.int64(),
    "float": schema.float32(),
    "double": schema.float64(),
    "partitioning": schema.int32(),
}
_LAST = {"id": schema.int32(), "seqno": schema.int64()}
_SCHEMA_1 = schema.struct({**_FIRST, **_LAST}, name="record", version=1)
_SCHEMA_2 = schema.struct(
    {**_FIRST, "string": schema.string(default="abc"), **_LAST}, name="record", version=2
)


class SchemaSourceConfig(Config):
    """Writes structs with rising numbers, and prints a line of JSON per record, for system tests.

    Task n writes to the topic's partition n.
    """

    topic: str = setting("The topic to write to.", importance="HIGH")
    num_messages: int = setting("Records of each task in each of its lives.", importance="HIGH", kind="LONG")
    throughput: int = setting(
        "Records per second of each task; 0 or less: no bound.", default=-1, kind="LONG"
    )
    multiple_schema: bool = setting("Whether every second record has a second schema.", default=False)
    partition_count: int = setting("The field `partitioning` is the number modulo this.", default=1)

    def check(self) -> None:
        """Make a partition count below 1 into 1, as there is no such remainder."""
        self.partition_count = max(1, self.partition_count)


class SchemaSourceTask(NumbersTask):
    """A task that makes structs."""

    def start(self, config: Mapping[str, str]) -> None:
        """Go to the number after the last acknowledged one."""
        self._config = SchemaSourceConfig.parse(config)
        self.begin(int(config.get("id", 0)), self._config.throughput)
        self._count = 0

    def poll(self) -> list[SourceRecord] | None:
        """Return the next record, or None if none is due or all were made."""
        if self._count >= self._config.num_messages:
            self._stopping.wait(0.1)
            return None
        if self.waits():
            return None
        record = self.record(self._seqno)
        self._seqno += 1
        self._count += 1
        return [record]

    def record(self, seqno: int) -> SourceRecord:
        """Return the record of a number, and print its line."""
        is_second = self._config.multiple_schema and self._count % 2 == 1
        value: dict[str, Any] = {
            "boolean": True,
            "int": 12,
            "long": 12,
            "float": 12.2,
            "double": 12.2,
            "partitioning": seqno % self._config.partition_count,
            **({"string": "def"} if is_second else {}),
            "id": self._id,
            "seqno": seqno,
        }
        write_line({"task": self._id, "seqno": seqno})
        return SourceRecord(
            self._config.topic,
            value,
            "key",
            partition=self._id,
            source_partition=self._partition,
            source_offset={"seqno": seqno},
            key_schema=schema.string(),
            value_schema=_SCHEMA_2 if is_second else _SCHEMA_1,
        )


class SchemaSource(SourceConnector):
    """The connector of the schema source; every task counts by itself."""

    CONFIG = SchemaSourceConfig
    VERSION = "1"
    task_class = SchemaSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Return a config per task, with its number in `id`."""
        return [{**self.config, "id": str(i)} for i in range(max_tasks)]
