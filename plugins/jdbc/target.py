"""The sink's tables: their columns as the database has them, created and extended as records need them."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from connect.api import ConnectError, Schema, Type, schema
from plugins.jdbc.columns import zone_of
from plugins.jdbc.identifiers import check_length, columns_by_name, name_as_value, read_backquotes
from plugins.jdbc.layout import Layout
from plugins.jdbc.sink_config import JdbcSinkConfig
from plugins.jdbc.tables import TableName

_KEY_TEXT = 255
"""Characters of a text column in a key of MariaDB, which needs a length there."""


@dataclass(slots=True)
class Target:
    """A table to write: its reflection, and for PostgreSQL the names of its columns' types."""

    table: sa.Table
    type_names: dict[str, str] = field(default_factory=dict)
    backend: str = ""
    is_quoted: bool = True
    """False if names stand without quotes in SQL, so that PostgreSQL ignores their case."""
    is_view: bool = False

    def columns(self, names: Iterable[str]) -> dict[str, sa.Column[Any]]:
        """Return the columns that these names of fields mean; a name without a column is left out.

        Raises ConnectError if two names mean one column.
        """
        return columns_by_name(names, dict(self.table.c.items()), self.backend, self.is_quoted)


class Targets:
    """The tables of a sink, by their names in the config's format."""

    def __init__(self, engine: sa.Engine, config: JdbcSinkConfig) -> None:
        self._engine, self._config = engine, config
        self._targets: dict[str, Target] = {}

    def forget(self) -> None:
        """Reflect all tables again: they may have changed."""
        self._targets.clear()

    def ready(self, layout: Layout) -> Target:
        """Return the layout's table with all its columns, created or extended if the config allows it.

        Raises ConnectError if the table or a column does not exist and must not be made, and for an upsert
        into a table without a unique key of the layout's key columns.
        """
        target = self._targets.get(layout.table)
        if target is None:
            target = self._targets[layout.table] = self._open(layout)
        if missing := _missing(layout, target):
            target = self._targets[layout.table] = self._evolve(layout, target, missing)
        if self._config.insert_mode == "upsert" and not layout.is_delete:
            self._check_key(layout, target)
        return target

    def _check_key(self, layout: Layout, target: Target) -> None:
        """Raise ConnectError if the database could not tell by the key which row an upsert updates.

        MariaDB would insert each row once more, and PostgreSQL and SQLite would refuse every batch.
        """
        if target.is_view:
            return  # the keys of the tables below it decide
        key = {column.name for column in target.columns(layout.keys).values()}
        if key not in unique_keys(target.table):
            columns = ", ".join(sorted(key))
            raise ConnectError(
                f"the table {TableName.parsed(layout.table)} has no primary key or unique index of exactly "
                f"{columns}, which insert.mode=upsert needs: create one, or set pk.fields to the columns "
                "of one"
            )

    def _open(self, layout: Layout) -> Target:
        name = TableName.parsed(layout.table)
        with self._engine.connect() as connection:
            target = self._reflect(connection, name)
        if target is not None:
            return target
        if not self._config.auto_create:
            raise ConnectError(f"the table {name} does not exist: create it, or set auto.create=true")
        if layout.is_delete:
            raise ConnectError(f"the table {name} does not exist, and a delete does not create it")
        columns = [self._column(each, layout) for each in layout.columns]
        check_length(name.table, "table", self._engine.dialect.name)
        for each in layout.columns:
            check_length(each, "column", self._engine.dialect.name)
        is_quoted = self._config.quote_sql_identifiers == "always"
        columns_by_name(
            layout.columns, {}, self._engine.dialect.name, is_quoted
        )  # no two fields of one column
        with self._engine.begin() as connection:
            schema_name = None if name.schema is None else self._config.name(name.schema)
            table = sa.Table(self._config.name(name.table), sa.MetaData(), *columns, schema=schema_name)
            connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
        with self._engine.connect() as connection:
            target = self._reflect(connection, name)
        assert target is not None
        return target

    def _evolve(self, layout: Layout, target: Target, missing: list[str]) -> Target:
        name = TableName.parsed(layout.table)
        with self._engine.begin() as connection:
            fresh = self._reflect(connection, name)
            missing = missing if fresh is None else _missing(layout, fresh)
            if missing and not self._config.auto_evolve:
                raise ConnectError(
                    f"the table {name} has no column {', '.join(missing)}: add it, leave the field out with "
                    "fields.whitelist, or set auto.evolve=true"
                )
            for each in missing:
                shape = layout.schemas[each]
                if each in layout.keys or (shape and not shape.optional and shape.default is None):
                    raise ConnectError(
                        f"the table {name} has no column {each}, and its rows would have no value for it: "
                        "make the field optional, or give it a default"
                    )
                check_length(each, "column", connection.dialect.name)
                column = sa.schema.CreateColumn(self._column(each, layout)).compile(
                    dialect=connection.dialect
                )
                full = connection.dialect.identifier_preparer.format_table(target.table)
                connection.exec_driver_sql(f"ALTER TABLE {full} ADD COLUMN {column}")
            extended = self._reflect(connection, name)
        assert extended is not None
        return extended

    def _reflect(self, connection: sa.Connection, name: TableName) -> Target | None:
        schema_name = None if name.schema is None else self._config.name(name.schema)
        kinds = {kind.upper() for kind in self._config.table_types}
        inspector = sa.inspect(connection)
        is_view = name.table in inspector.get_view_names(name.schema)
        if ("VIEW" if is_view else "TABLE") not in kinds:
            raise ConnectError(f"{name} is a {'view' if is_view else 'table'}: add it to table.types")
        try:
            table = sa.Table(
                self._config.name(name.table),
                sa.MetaData(),
                schema=schema_name,
                autoload_with=connection,
                resolve_fks=False,
                listeners=[("column_reflect", read_backquotes)],
            )
        except sa.exc.NoSuchTableError:
            return None
        is_quoted = self._config.quote_sql_identifiers == "always"
        target = Target(table, backend=connection.dialect.name, is_quoted=is_quoted, is_view=is_view)
        if connection.dialect.name == "postgresql":
            full = name_as_value(connection.dialect, table)
            rows = connection.execute(
                sa.text(
                    "SELECT attname, format_type(atttypid, -1) FROM pg_attribute "
                    "WHERE attrelid = CAST(:table AS regclass) AND attnum > 0 AND NOT attisdropped"
                ),
                {"table": full},
            )
            target.type_names = {row[0]: row[1] for row in rows}
        return target

    def _column(self, name: str, layout: Layout) -> sa.Column[Any]:
        shape = layout.schemas[name]
        if shape is None:
            raise ConnectError(
                f"{layout.table}.{name}: the first record has null and no schema, so the column's type is "
                "unknown: create the column, or use a converter with schemas"
            )
        is_key = name in layout.keys
        default = None if shape.default is None else sa.literal(shape.default, _sql_type(shape, is_key))
        return sa.Column(
            self._config.name(name),
            _sql_type(shape, is_key),
            primary_key=is_key,
            nullable=shape.optional and not is_key,
            autoincrement=False,
            server_default=None if default is None else _default(shape.default),
        )


def unique_keys(table: sa.Table) -> list[set[str]]:
    """Return the columns of each unique key of a reflected table, the primary key's first.

    An index of some rows only, of an expression, or of the beginnings of texts is no key of the table.
    """
    keys = [{column.name for column in table.primary_key.columns}]
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            keys.append({column.name for column in constraint.columns})
    for index in table.indexes:
        is_whole = not any(option.endswith(("_where", "_length")) for option in index.dialect_kwargs)
        if index.unique and is_whole and len(index.expressions) == len(index.columns):
            keys.append({column.name for column in index.columns})
    return keys


def _missing(layout: Layout, target: Target) -> list[str]:
    columns = target.columns(layout.columns)
    return [name for name in layout.columns if name not in columns]


def _default(value: Any) -> Any:
    if isinstance(value, bool):
        return sa.true() if value else sa.false()
    return sa.text(str(value)) if isinstance(value, (int, float)) else str(value)


_TYPES: dict[Type, sa.types.TypeEngine[Any]] = {
    Type.INT8: sa.SmallInteger().with_variant(mysql.TINYINT(), "mysql", "mariadb"),
    Type.INT16: sa.SmallInteger(),
    Type.INT32: sa.Integer(),
    Type.INT64: sa.BigInteger(),
    Type.FLOAT32: sa.REAL().with_variant(mysql.FLOAT(), "mysql", "mariadb"),
    Type.FLOAT64: sa.Double(),
    Type.BOOLEAN: sa.Boolean(),
    Type.BYTES: sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb"),
}


def _sql_type(shape: Schema, is_key: bool) -> sa.types.TypeEngine[Any]:
    """Return the type of a new column."""
    match shape.name:
        case schema.DECIMAL:
            scale = int(shape.parameters.get("scale", 0))
            limited = mysql.DECIMAL(65, min(scale, 30))
            return sa.Numeric().with_variant(limited, "mysql", "mariadb")
        case schema.DATE:
            return sa.Date()
        case schema.TIME:
            return sa.Time().with_variant(mysql.TIME(fsp=6), "mysql", "mariadb")
        case schema.TIMESTAMP:
            return sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
    if shape.type in _TYPES:
        kind = _TYPES[shape.type]
        if is_key and shape.type is Type.BYTES:
            return sa.LargeBinary().with_variant(mysql.VARBINARY(_KEY_TEXT), "mysql", "mariadb")
        return kind
    text = mysql.VARCHAR(_KEY_TEXT) if is_key else mysql.LONGTEXT()
    return sa.Text().with_variant(text, "mysql", "mariadb")


_PLAIN = {int, float, str, bytes, bool, type(None)}
_PLAIN_ON_SERVERS = _PLAIN | {decimal.Decimal, dt.date, dt.time}


def conversion(
    kind: sa.types.TypeEngine[Any], config: JdbcSinkConfig, backend: str
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return the conversion of a column of Connect values to what the driver takes."""
    zone = None
    if isinstance(kind, sa.DateTime) and not getattr(kind, "timezone", False):
        zone = zone_of(kind, config.zone)
    is_utc = zone is not None and zone.key == "UTC"
    is_sqlite = backend == "sqlite"
    plain = _PLAIN if is_sqlite else _PLAIN_ON_SERVERS

    def convert(value: Any) -> Any:
        if isinstance(value, dt.datetime):
            if zone is not None:
                if not (is_utc and value.tzinfo is dt.UTC):  # as converters' values nearly always are
                    value = value.astimezone(zone)
                value = value.replace(tzinfo=None)
            return value.isoformat(sep=" ", timespec="microseconds") if is_sqlite else value
        if isinstance(value, (dict, list, tuple)):
            return msgspec.json.encode(value).decode()
        return str(value) if is_sqlite and type(value) not in plain else value

    def convert_all(values: Sequence[Any]) -> Sequence[Any]:
        return values if plain.issuperset(map(type, values)) else [convert(value) for value in values]

    return convert_all
