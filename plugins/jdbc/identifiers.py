"""Names of tables and columns: how each database compares them, how long they may be, and their SQL."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from connect.api import ConnectError

_POSTGRES_BYTES_MAX = 63
_LOWER_ASCII = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def name_as_value(dialect: sa.Dialect, table: sa.FromClause) -> str:
    """Return a table's quoted name as a parameter has it, where `%` is not doubled."""
    name = dialect.identifier_preparer.format_table(table)
    return name.replace("%%", "%") if dialect.identifier_preparer._double_percents else name


def read_backquotes(inspector: sa.Inspector, _table: sa.Table, column: dict[str, Any]) -> None:
    """Correct the name of a reflected column of MariaDB: SQLAlchemy leaves its backquotes doubled."""
    if inspector.dialect.name in ("mysql", "mariadb"):
        column["name"] = column["name"].replace("``", "`")


def folded(name: str, backend: str, is_quoted: bool) -> str:
    """Return the form of a column's name in which two names are equal if they mean the same column.

    MariaDB ignores case, SQLite that of ASCII letters, and PostgreSQL that of names without quotes.
    """
    if backend == "sqlite":
        return name.translate(_LOWER_ASCII)
    return name if backend == "postgresql" and is_quoted else name.lower()


def columns_by_name(
    names: Iterable[str], columns: Mapping[str, sa.Column[Any]], backend: str, is_quoted: bool
) -> dict[str, sa.Column[Any]]:
    """Return the columns that `names` mean; a name without a column is left out.

    Raises ConnectError if two names mean one column.
    """
    by_folded = {folded(key, backend, is_quoted): column for key, column in columns.items()}
    result: dict[str, sa.Column[Any]] = {}
    owners: dict[str, str] = {}
    for name in names:
        key = folded(name, backend, is_quoted)
        other = owners.setdefault(key, name)
        if other != name:
            raise ConnectError(
                f"the fields {other} and {name} are one column in {backend}, which ignores case: rename one "
                "with the transform ReplaceField, or leave it out with fields.whitelist"
            )
        column = columns.get(name)
        if column is None:
            column = by_folded.get(key)
        if column is not None:
            result[name] = column
    return result


def check_length(name: str, what: str, backend: str) -> None:
    """Raise ConnectError if PostgreSQL would cut the name of a new table or column."""
    size = len(name.encode())
    if backend == "postgresql" and size > _POSTGRES_BYTES_MAX:
        raise ConnectError(
            f"the {what} {name} has a name of {size} bytes, of which PostgreSQL keeps {_POSTGRES_BYTES_MAX}: "
            "shorten it with "
            + ("table.name.format" if what == "table" else "the transform ReplaceField (renames)")
        )
