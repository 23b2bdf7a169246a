"""The settings of JdbcSource, by the keys of Confluent's connector."""

from __future__ import annotations

import re
from typing import Literal

from connect.api import ConfigError, at_least, setting
from plugins.jdbc.database import DatabaseConfig

NumericMapping = Literal["none", "precision_only", "best_fit", "best_fit_eager_double"]


def _patterns(values: list[str]) -> None:
    for value in values:
        try:
            re.compile(value)
        except re.error as e:
            raise ValueError(f"{value} is no regular expression: {e}") from None


class JdbcSourceConfig(DatabaseConfig):
    """Reads tables of PostgreSQL, MariaDB or SQLite into topics: new rows by an id, new and changed ones by a
    timestamp, or all rows again and again.

    The source partition is `{"table": name}`, the offset `{"incrementing": id, "timestamp": ms,
    "timestamp_nanos": n}`. Rows whose transactions commit out of order are not lost: see docs/jdbc.md.
    """

    mode: Literal["bulk", "incrementing", "timestamp", "timestamp+incrementing"] = setting(
        "`bulk`: all rows at each poll; `incrementing`: new rows, by an id that grows; `timestamp`: new and "
        "changed rows, by a time; `timestamp+incrementing`: both, exact among rows of equal times.",
        importance="HIGH",
        group="Mode",
    )
    incrementing_column_name: str | None = setting(
        "The column that grows with each new row; empty: the table's only auto-increment column.",
        default=None,
        group="Mode",
    )
    timestamp_column_name: list[str] = setting(
        "The columns of the time of the last change; the first that is not null counts.",
        default=[],
        group="Mode",
    )
    timestamp_delay_interval_ms: int = setting(
        "How long a row waits after its timestamp, for clients whose clocks differ from the database's.",
        default=0,
        group="Mode",
        check=at_least(0),
    )
    timestamp_initial: int | None = setting(
        "Read only rows since this time, ms since the epoch; -1: since now.",
        default=None,
        kind="LONG",
        group="Mode",
    )
    validate_non_null: bool = setting(
        "Refuse incrementing and timestamp columns that may be null.", default=True, group="Mode"
    )
    query: str | None = setting(
        "Read the result of this SELECT in place of tables; its topic is topic.prefix.",
        default=None,
        group="Tables",
    )
    table_whitelist: list[str] = setting("Only these tables, by their names.", default=[], group="Tables")
    table_blacklist: list[str] = setting("All tables but these.", default=[], group="Tables")
    table_include_list: list[str] = setting(
        "Only tables whose name or schema.name matches one of these regular expressions.",
        default=[],
        group="Tables",
        check=_patterns,
    )
    table_exclude_list: list[str] = setting(
        "No tables whose name or schema.name matches one of these regular expressions.",
        default=[],
        group="Tables",
        check=_patterns,
    )
    schema_pattern: str | None = setting(
        "The schema whose tables are read, `%` for any characters; empty: the user's default one.",
        default=None,
        group="Tables",
    )
    table_types: list[str] = setting(
        "Kinds of tables: TABLE, VIEW, or both.", default=["TABLE"], group="Tables"
    )
    table_poll_interval_ms: int = setting(
        "How often new and dropped tables are noticed.",
        default=60_000,
        kind="LONG",
        group="Tables",
        check=at_least(1),
    )
    topic_prefix: str = setting(
        "The topic of a table is this prefix and its name.", importance="HIGH", group="Output"
    )
    poll_interval_ms: int = setting(
        "How often each table is read.", default=5000, group="Output", check=at_least(0)
    )
    batch_max_rows: int = setting("Rows per batch at most.", default=100, group="Output", check=at_least(1))
    numeric_mapping: NumericMapping = setting(
        "NUMERIC columns: `none` keeps exact decimals; `precision_only` and `best_fit` make integers where "
        "they fit, `best_fit` and `best_fit_eager_double` doubles of fractions.",
        default="none",
        group="Output",
    )

    @property
    def has_id(self) -> bool:
        """True if rows are read by an incrementing column."""
        return "incrementing" in self.mode

    @property
    def has_time(self) -> bool:
        """True if rows are read by timestamp columns."""
        return "timestamp" in self.mode

    def check(self) -> None:
        """Raise ConfigError if settings contradict each other."""
        super().check()
        lists = {
            "table.whitelist": self.table_whitelist,
            "table.blacklist": self.table_blacklist,
            "table.include.list": self.table_include_list,
            "table.exclude.list": self.table_exclude_list,
        }
        for key, value in lists.items():
            if self.query and value:
                raise ConfigError(key, ",".join(value), "must be unset with query")
        if self.table_whitelist and self.table_blacklist:
            raise ConfigError(
                "table.blacklist", ",".join(self.table_blacklist), "must be unset with a whitelist"
            )
        if self.has_time and not self.timestamp_column_name:
            raise ConfigError("timestamp.column.name", "", f"is required by mode={self.mode}")
        if self.query and self.has_id and not self.incrementing_column_name:
            raise ConfigError("incrementing.column.name", "", "is required with query")
        if unknown := {kind.upper() for kind in self.table_types} - {"TABLE", "VIEW"}:
            raise ConfigError("table.types", ",".join(sorted(unknown)), "must be of TABLE, VIEW")
