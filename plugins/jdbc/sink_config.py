"""The settings of JdbcSink, by the keys of Confluent's connector."""

from __future__ import annotations

from typing import Literal

from connect.api import ConfigError, at_least, setting
from plugins.jdbc.database import DatabaseConfig


class JdbcSinkConfig(DatabaseConfig):
    """Writes records into tables of PostgreSQL, MariaDB or SQLite.

    A record's value, and if `pk.mode` says so its key, are rows: objects with a field per column.
    """

    insert_mode: Literal["insert", "upsert", "update"] = setting(
        "`insert`; `upsert`: insert, or update the row with the same key; `update`: only update.",
        default="insert",
        importance="HIGH",
        group="Writes",
    )
    delete_enabled: bool = setting(
        "Delete a key's row for a record without a value; needs pk.mode=record_key.",
        default=False,
        group="Writes",
    )
    batch_size: int = setting("Rows per statement at most.", default=3000, group="Writes", check=at_least(1))
    delivery: Literal["at_least_once", "exactly_once"] = setting(
        "`exactly_once`: keep the offsets in the table millstream_offsets, in the transaction of the rows.",
        default="at_least_once",
        group="Writes",
    )
    table_name_format: str = setting(
        "The table of a topic; `${topic}` is the topic's name. `schema.table` is possible.",
        default="${topic}",
        group="Tables",
    )
    table_types: list[str] = setting(
        "Kinds of tables that may be written: TABLE, VIEW, or both.", default=["TABLE"], group="Tables"
    )
    pk_mode: Literal["none", "kafka", "record_key", "record_value"] = setting(
        "Where the primary key comes from: topic, partition and offset (`kafka`), key, or value.",
        default="none",
        importance="HIGH",
        group="Columns",
    )
    pk_fields: list[str] = setting(
        "The key's columns; empty: all fields of key or value, or __connect_topic, __connect_partition and "
        "__connect_offset.",
        default=[],
        group="Columns",
    )
    fields_whitelist: list[str] = setting(
        "Only these fields of the value, besides the key's; empty: all.", default=[], group="Columns"
    )
    auto_create: bool = setting("Create a table that does not exist.", default=False, group="Tables")
    auto_evolve: bool = setting("Add columns that a table lacks.", default=False, group="Tables")
    max_retries: int = setting(
        "How often a batch is tried again while the database does not answer.",
        default=10,
        group="Retries",
        check=at_least(0),
    )
    retry_backoff_ms: int = setting(
        "How long to wait before it is tried again.", default=3000, group="Retries", check=at_least(0)
    )

    def check(self) -> None:
        """Raise ConfigError if settings contradict each other."""
        super().check()
        if self.delete_enabled and self.pk_mode != "record_key":
            raise ConfigError("delete.enabled", "true", "needs pk.mode=record_key")
        if self.insert_mode != "insert" and self.pk_mode == "none":
            raise ConfigError("insert.mode", self.insert_mode, "needs a pk.mode other than none")
        if self.pk_mode == "kafka" and len(self.pk_fields) not in (0, 3):
            raise ConfigError("pk.fields", ",".join(self.pk_fields), "must be three names with pk.mode=kafka")
        if unknown := {kind.upper() for kind in self.table_types} - {"TABLE", "VIEW"}:
            raise ConfigError("table.types", ",".join(sorted(unknown)), "must be of TABLE, VIEW")
