"""The SELECT of a table or query: its columns with their types, and the parts that position it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from connect.api import ConnectError
from plugins.jdbc.columns import Column, column, is_whole_number
from plugins.jdbc.identifiers import read_backquotes
from plugins.jdbc.source_config import JdbcSourceConfig
from plugins.jdbc.tables import TableName

_QUERY = "millstream_query"
_MYSQL_TYPES: dict[int, sa.types.TypeEngine[Any]] = {
    0: sa.Numeric(), 1: mysql.TINYINT(), 2: sa.SmallInteger(), 3: sa.Integer(), 4: mysql.FLOAT(),
    5: sa.Double(), 7: mysql.TIMESTAMP(fsp=6), 8: sa.BigInteger(), 9: sa.Integer(), 10: sa.Date(),
    11: mysql.TIME(fsp=6), 12: mysql.DATETIME(fsp=6), 13: mysql.YEAR(), 16: mysql.BIT(64),
}  # fmt: skip
"""The protocol's numbers of types; all others are text or bytes."""
_MYSQL_BINARY = 63
"""The number of the character set `binary`."""


@dataclass(slots=True)
class Selection:
    """The FROM part of a SELECT and its columns."""

    source: sa.FromClause
    columns: list[Column]
    signature: tuple[Any, ...]
    """The driver's description of the columns, by which a change of the table is noticed."""
    elements: dict[str, sa.ColumnElement[Any]] = field(default_factory=dict)
    """The SQL columns by name."""
    tells_null: bool = False
    """True if the database says which columns may be null: it does not for views and queries."""
    increments: list[str] = field(default_factory=list)
    """Names of columns that the database numbers."""

    def select(self) -> sa.Select[Any]:
        """Return the SELECT of all columns, whose values are the driver's.

        SQLAlchemy would convert the values of many rows at once, and fail for all of them.
        """
        expressions: list[Any] = [
            sa.type_coerce(each.expression, sa.types.NullType()) for each in self.columns
        ]
        return sa.select(*expressions).select_from(self.source)

    def element(self, name: str, key: str) -> sa.ColumnElement[Any]:
        """Return the SQL column `name`, if need be ignoring case.

        Raises ConnectError, naming the setting `key`, if there is none.
        """
        exact = self.elements.get(name)
        if exact is not None:
            return exact
        for other, element in self.elements.items():
            if other.lower() == name.lower():
                return element
        raise ConnectError(f"{key}={name}: there is no such column among {', '.join(self.elements)}")

    def index(self, element: sa.ColumnElement[Any]) -> int:
        """Return the position of an SQL column."""
        return next(i for i, each in enumerate(self.elements.values()) if each is element)

    def column_of(self, element: sa.ColumnElement[Any]) -> Column:
        """Return the column of an SQL column."""
        return self.columns[self.index(element)]


def signature(connection: sa.Connection, source: sa.FromClause) -> tuple[Any, ...]:
    """Return the driver's description of all columns now."""
    result: Any = connection.execute(sa.select(sa.literal_column("*")).select_from(source).where(sa.false()))
    try:
        return tuple(tuple(each) for each in result.cursor.description)
    finally:
        result.close()


def select_table(connection: sa.Connection, name: TableName, config: JdbcSourceConfig) -> Selection:
    """Return the selection of a table or view. Raises SQLAlchemyError if it does not exist."""
    schema = None if name.schema is None else config.name(name.schema)
    reflected = sa.Table(
        config.name(name.table),
        sa.MetaData(),
        schema=schema,
        autoload_with=connection,
        resolve_fks=False,
        listeners=[("column_reflect", read_backquotes)],
    )
    described = signature(connection, reflected)
    # In the driver's order and by its names, as views and reflection may differ.
    elements = {each[0]: reflected.c[each[0]] for each in described}
    for element in elements.values():
        element.name = config.name(element.name)
        if connection.dialect.name == "sqlite":
            element.type = _sqlite_type(element.type)
    return Selection(
        reflected,
        [
            _column(element, name, config, bool(element.nullable) and not element.primary_key)
            for name, element in elements.items()
        ],
        described,
        dict(elements),
        not sa.inspect(connection).get_view_names(name.schema).count(name.table),
        [str(each.name) for each in reflected.c if _is_numbered(each, connection.dialect.name)],
    )


def _sqlite_type(kind: sa.types.TypeEngine[Any]) -> sa.types.TypeEngine[Any]:
    """Return the type of what a column holds: its integers have 64 bits, its floats are doubles."""
    if isinstance(kind, sa.Integer):
        return sa.BigInteger()
    return sa.Double() if isinstance(kind, sa.Float) else kind


def _is_numbered(each: sa.Column[Any], backend: str) -> bool:
    if backend == "sqlite":
        return each.primary_key and isinstance(each.type, sa.Integer) and len(each.table.primary_key) == 1
    return (
        each.autoincrement is True
        or each.identity is not None
        or "nextval(" in str(getattr(each.server_default, "arg", ""))
    )


def select_query(connection: sa.Connection, config: JdbcSourceConfig) -> Selection:
    """Return the selection of the config's query, as a table in FROM."""
    query = (config.query or "").strip().rstrip(";").replace(":", r"\:")
    source = sa.text(f"({query}) AS {_QUERY}")
    result: Any = connection.execute(sa.text(f"SELECT * FROM ({query}) AS {_QUERY} WHERE 1 = 0"))
    description, is_binary = result.cursor.description, _binary_columns(result.cursor)
    result.close()
    elements: dict[str, sa.ColumnElement[Any]] = {
        each[0]: sa.column(config.name(each[0]), _described_type(connection, each, binary))
        for each, binary in zip(description, is_binary, strict=True)
    }
    return Selection(
        source,  # type: ignore[arg-type]
        [_column(element, name, config, True) for name, element in elements.items()],
        tuple(tuple(each) for each in description),
        elements,
    )


def _column(element: sa.ColumnElement[Any], name: str, config: JdbcSourceConfig, optional: bool) -> Column:
    return column(element, name, optional=optional, mapping=config.numeric_mapping, zone=config.zone)


def _binary_columns(cursor: Any) -> list[bool]:
    """Return for each column if PyMySQL has it as bytes: the protocol has one type for text and bytes."""
    fields = getattr(getattr(cursor, "_result", None), "fields", None) or [None] * len(cursor.description)
    return [getattr(each, "charsetnr", None) == _MYSQL_BINARY for each in fields]


def _described_type(
    connection: sa.Connection, description: Sequence[Any], is_binary: bool
) -> sa.types.TypeEngine[Any]:
    """Return the type of a query's column as the driver describes it."""
    backend, code, precision, scale = connection.dialect.name, description[1], description[4], description[5]
    if backend == "sqlite":
        return sa.types.NullType()
    if backend == "postgresql":
        return _postgres_type(connection, code, precision, scale)
    if code == 246:  # a decimal: its precision counts the sign and the point
        return sa.Numeric(max(1, precision - 1 - bool(scale)), scale)
    return _MYSQL_TYPES.get(code) or (sa.LargeBinary() if is_binary else sa.Text())


def _postgres_type(
    connection: sa.Connection, oid: int, precision: int | None, scale: int | None
) -> sa.types.TypeEngine[Any]:
    name = connection.scalar(sa.text("SELECT format_type(:oid, NULL)"), {"oid": oid})
    is_array = str(name).endswith("[]")
    kind = postgresql.base.ischema_names.get(re.sub(r"\[\]$", "", str(name)))
    if kind is None or kind is postgresql.ARRAY:
        return postgresql.TSVECTOR()  # as all types without a schema, it is read as text
    made: sa.types.TypeEngine[Any]
    if kind is sa.NUMERIC:
        made = sa.NUMERIC(precision, scale)
    elif "with time zone" in str(name):
        made = kind(timezone=True)
    else:
        made = kind()
    return postgresql.ARRAY(made) if is_array else made


def check_position(selection: Selection, config: JdbcSourceConfig, name: str) -> list[sa.ColumnElement[Any]]:
    """Return the timestamp columns, then the incrementing one, as the mode needs them.

    Raises ConnectError if one does not exist, may be null, or has a type that cannot order rows.
    """
    chosen: list[sa.ColumnElement[Any]] = []
    if config.has_time:
        for text in config.timestamp_column_name:
            element = selection.element(text, "timestamp.column.name")
            if not isinstance(element.type, (sa.DateTime, sa.types.NullType)):
                raise ConnectError(f"{name}: timestamp.column.name={text} is {element.type}, no timestamp")
            chosen.append(element)
    if config.has_time and config.validate_non_null and selection.tells_null:
        fields = [selection.column_of(element).schema for element in chosen]
        if all(each is not None and each.optional for each in fields):
            raise ConnectError(
                f"{name}: all of timestamp.column.name={','.join(config.timestamp_column_name)} may be null, "
                "so rows would be left out; declare one NOT NULL, or set validate.non.null=false"
            )
    if config.has_id:
        chosen.append(_incrementing(selection, config, name))
    return chosen


def _incrementing(selection: Selection, config: JdbcSourceConfig, name: str) -> sa.ColumnElement[Any]:
    wish = config.incrementing_column_name
    if not wish:
        if len(selection.increments) != 1:
            raise ConnectError(
                f"{name} has {len(selection.increments)} auto-increment columns: set incrementing.column.name"
            )
        wish = selection.increments[0]
    element = selection.element(wish, "incrementing.column.name")
    field = selection.column_of(element).schema
    if field is None:
        return element
    if not is_whole_number(field):
        raise ConnectError(f"{name}: incrementing.column.name={wish} is {element.type}, no whole number")
    if config.validate_non_null and field.optional and selection.tells_null:
        raise ConnectError(
            f"{name}: incrementing.column.name={wish} may be null, so rows would be left out; declare it "
            "NOT NULL, or set validate.non.null=false"
        )
    return element
