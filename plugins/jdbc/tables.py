"""The tables that a source reads: those of a schema that the lists of the config name."""

from __future__ import annotations

import fnmatch
import re
from typing import NamedTuple

import sqlalchemy as sa

from plugins.jdbc.source_config import JdbcSourceConfig

_PART = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^."`]+')
"""A part of a name: in quotes, or up to the next dot."""


class TableName(NamedTuple):
    """A table's or view's name; its schema is None for the user's default one."""

    schema: str | None
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}" if self.schema else self.table

    @classmethod
    def parsed(cls, text: str) -> TableName:
        """Return the name of `schema.table` or `table`, either part in double quotes or backquotes or not.

        A dot inside quotes is the name's, and a doubled quote is one.
        """
        *before, table = [_unquoted(part) for part in _PART.findall(text) if part] or [text]
        return cls(before[-1] if before else None, table)


def _unquoted(part: str) -> str:
    quote = part[0]
    return part[1:-1].replace(quote * 2, quote) if quote in '"`' and len(part) > 1 else part


def list_tables(engine: sa.Engine, config: JdbcSourceConfig) -> list[TableName]:
    """Return the tables to read, sorted. Raises SQLAlchemyError if the database does not answer."""
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        kinds = {kind.upper() for kind in config.table_types}
        names: set[TableName] = set()
        for schema in _schemas(inspector, config):
            if "TABLE" in kinds:
                names |= {TableName(schema, name) for name in inspector.get_table_names(schema)}
            if "VIEW" in kinds:
                names |= {TableName(schema, name) for name in inspector.get_view_names(schema)}
        default = inspector.default_schema_name
    return sorted((name for name in names if _is_chosen(name, config, default)), key=str)


def _schemas(inspector: sa.Inspector, config: JdbcSourceConfig) -> list[str | None]:
    """Return the schemas to look in. A list that names other schemas than the default one widens them."""
    if config.schema_pattern:
        pattern = config.schema_pattern.replace("%", "*").replace("_", "?")
        return [name for name in inspector.get_schema_names() if fnmatch.fnmatchcase(name, pattern)]
    named = {TableName.parsed(text).schema for text in config.table_whitelist}
    return sorted({None, *named} & {None, *inspector.get_schema_names()}, key=lambda name: name or "")


def _is_chosen(name: TableName, config: JdbcSourceConfig, default: str | None) -> bool:
    full = f"{name.schema or default}.{name.table}"

    def is_listed(texts: list[str]) -> bool:
        return any(
            text in (name.table, full)
            or TableName.parsed(text) in ((None, name.table), (name.schema or default, name.table))
            for text in texts
        )

    def matches(patterns: list[str]) -> bool:
        return any(re.fullmatch(pattern, text) for pattern in patterns for text in (name.table, full))

    if config.table_whitelist and not is_listed(config.table_whitelist):
        return False
    if config.table_include_list and not matches(config.table_include_list):
        return False
    return not is_listed(config.table_blacklist) and not matches(config.table_exclude_list)
