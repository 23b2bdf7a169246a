"""Settings of the Spark session and of the sink connector."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from connect.api import ConfigError, SinkConfig, setting

TableFormat = Literal["parquet", "delta"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Settings of a driver process. Connectors with equal settings share one driver."""

    master: str = "local[2]"
    """`local[N]` or `spark://…`."""
    memory: str = "1g"
    """Heap of the driver's JVM; with a local master the executors live in it too."""
    conf: tuple[tuple[str, str], ...] = ()
    """Further `spark.*` settings, which override ours."""
    socket: str | None = None
    """Path of a Unix socket to serve calls on, so that other processes may query; None: a private one."""
    log_file: str | None = None
    """Where Spark's output goes; None: a temporary file that is quoted when the driver dies."""

    @classmethod
    def from_config(cls, raw: Mapping[str, Any]) -> SparkSettings:
        """Create settings from a connector's keys: every `spark.*` key, and the driver's keys."""
        conf = {key: str(value) for key, value in raw.items() if key.startswith("spark.")}
        return cls(
            master=conf.pop("spark.master", "local[2]"),
            memory=conf.pop("spark.driver.memory", "1g"),
            conf=tuple(sorted(conf.items())),
            socket=raw.get("driver.socket") or None,
            log_file=raw.get("driver.log.file") or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """A column that names the table's folders, and the SQL expression it is made of."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowShape:
    """How a record becomes a row: which columns, of what types."""

    key_format: Literal["binary", "string"] = "binary"
    value_format: Literal["json", "string", "binary"] = "json"
    value_schema: str | None = None
    """DDL of the JSON values (`carrier STRING, delay DOUBLE`); None infers it from the first batch."""
    record_prefix: str = ""
    """Put before the record's own columns key, topic, partition, offset, timestamp."""
    partition_by: tuple[PartitionColumn, ...] = field(default=())


_IDENTIFIER = re.compile(r"\w+")


def parse_partition_by(text: str) -> tuple[PartitionColumn, ...]:
    """Parse columns, or names with an expression: `month=date_format(timestamp,'yyyy-MM'); carrier`."""
    columns = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, _, expression = (piece.strip() for piece in part.partition("="))
        if not _IDENTIFIER.fullmatch(name):
            raise ValueError("must be `column` or `name=SQL expression`, separated by semicolons")
        columns.append(PartitionColumn(name=name, expression=expression or name))
    return tuple(columns)


def local_path(location: str) -> Path:
    """Return the local folder of a path or a file: URL. Raises ValueError for any other URL."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file"):
        raise ValueError("must be a path or a file: URL")
    return Path(unquote(parts.path)).absolute()


def file_url(path: Path) -> str:
    """Return the path as Hadoop needs it: a file: URL without escapes, unlike `Path.as_uri`."""
    return f"file://{path}"


def parse_topic_ids(text: str) -> dict[str, str]:
    """Parse topics with their ids, as Kafka's tools print them: `flights:Wq0ySPtkQ2CZTvUXAAAAAA`.

    Return the ids in hex. Raises ValueError for any other form.
    """
    ids = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        topic, _, coded = part.rpartition(":")
        try:
            topic_id = base64.b64decode(coded + "==", altchars="-_", validate=True)
        except ValueError:
            topic_id = b""
        if not topic or len(topic_id) != 16:
            raise ValueError("must be `topic:id`, separated by commas, with ids as Kafka's tools print them")
        ids[topic] = topic_id.hex()
    return ids


def _check_topic_ids(value: str) -> None:
    parse_topic_ids(value)


def _check_path(value: str) -> None:
    local_path(value)


def _check_partition_by(value: str) -> None:
    parse_partition_by(value)


def _check_positive(value: int | None) -> None:
    if value is not None and value < 1:
        raise ValueError("must be at least 1")


class SparkSinkConfig(SinkConfig):
    """Hands offset ranges to Spark, which writes a table; `spark.*` keys go to the session."""

    PREFIXES = ("spark.",)

    path: str = setting("Folder of the table, a path or a file: URL.", importance="HIGH", check=_check_path)
    table_format: TableFormat = setting(
        "parquet: files that manifests name; delta: a table of Delta Lake, which needs deltalake.",
        default="parquet",
    )
    value_format: Literal["json", "string", "binary"] = setting(
        "json: an object whose fields become columns; string, binary: one column `value`.", default="json"
    )
    value_schema: str | None = setting(
        "Columns of the JSON values as Spark DDL, e.g. `carrier STRING, delay DOUBLE`; if not set, "
        "inferred for each topic from its first batch and then kept.",
        default=None,
    )
    schema_evolution: Literal["none", "backward"] = setting(
        "none: fields that later values bring have no column, as the log tells; backward: they get one, null "
        "in earlier rows.",
        default="none",
    )
    key_format: Literal["binary", "string"] = setting("Type of the column `key`.", default="binary")
    record_columns_prefix: str = setting(
        "Put before the names key, topic, partition, offset and timestamp, for values with such fields.",
        default="",
    )
    partition_by: str = setting(
        "Columns, or `name=SQL expression`, that name the table's folders, separated by semicolons; e.g. "
        "`month=date_format(timestamp,'yyyy-MM')`.",
        default="",
        check=_check_partition_by,
    )
    fail_on_data_loss: bool = setting(
        "Fail when records the table still needs are gone from the log.", default=True
    )
    starting_offsets: Literal["earliest", "latest"] = setting(
        "Where a new table begins. `millstream spark backfill` adds earlier records later.",
        default="earliest",
    )
    accept_topic_ids: str = setting(
        "Topics that were deleted and created again and are to be read from their start, as topic:id, "
        "separated by commas; the rows of the deleted topics stay.",
        default="",
        check=_check_topic_ids,
    )
    min_offsets_per_trigger: int = setting(
        "Wait until so many records are there, or max.trigger.delay.ms is over.",
        default=1,
        check=_check_positive,
    )
    max_offsets_per_trigger: int | None = setting(
        "Records in one batch at most, shared out by what each partition has.",
        default=None,
        check=_check_positive,
    )
    max_trigger_delay_ms: int = setting(
        "How long fewer records wait.", default=900_000, check=_check_positive
    )
    spark_master: str = setting("`local[N]` or `spark://…`.", default="local[2]", importance="HIGH")
    driver_socket: str | None = setting(
        "Unix socket on which other processes may query the table through this connector's Spark.",
        default=None,
    )
    driver_log_file: str | None = setting("Where Spark's own output goes.", default=None)

    def check(self) -> None:
        """Check the topics. Raises ConfigError for a partition column with the name of the batch column."""
        super().check()
        if any(column.name == BATCH_COLUMN for column in parse_partition_by(self.partition_by)):
            raise ConfigError("partition.by", self.partition_by, f"{BATCH_COLUMN} is the table's own column")

    def row_shape(self) -> RowShape:
        """Return the settings for converting a record to a row."""
        return RowShape(
            key_format=self.key_format,
            value_format=self.value_format,
            value_schema=self.value_schema,
            record_prefix=self.record_columns_prefix,
            partition_by=parse_partition_by(self.partition_by),
        )


BATCH_COLUMN = "_batch"
"""The files of every batch are in a folder `_batch=…`, which Spark reads as a partition column."""
