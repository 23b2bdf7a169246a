"""Errors of databases as Connect's: retry, a bad row, or the task's failure."""

from __future__ import annotations

import sqlalchemy as sa

from connect.api import ConnectError, DataError, RetriableError

_POSTGRES_AGAIN = ("08", "40", "53", "55006", "55P03", "57")
"""SQLSTATE of connection, rollback (deadlock), resources, object in use, lock not available, operator."""
_POSTGRES_ROW = ("21", "22", "23", "42804", "42846")
"""SQLSTATE of rows with equal keys, data errors, constraints, and values of a wrong type."""
_MARIADB_AGAIN = frozenset(
    (1021, 1040, 1041, 1053, 1114, 1205, 1213, 1317, 1927, 2002, 2003, 2006, 2013, 2014, 2055)
)
"""Full disk or table, too many connections, no memory, shutdown, lock timeout, deadlock,
interruption, and lost connections."""
_MARIADB_ROW = frozenset((1292,))
"""Values of a wrong form, which PyMySQL does not tell from errors of the server."""


def is_row_error(error: sa.exc.SQLAlchemyError) -> bool:
    """Return True if a row, not the database or the statement, is at fault."""
    if isinstance(error, (sa.exc.DataError, sa.exc.IntegrityError)):
        return True
    if not isinstance(error, sa.exc.DBAPIError):
        return isinstance(error, sa.exc.StatementError)  # a driver cannot take a value
    state = getattr(error.orig, "sqlstate", None)
    if isinstance(state, str):
        return state.startswith(_POSTGRES_ROW)
    return _is_row_error_of_pymysql(error.orig)


def _is_row_error_of_pymysql(cause: BaseException | None) -> bool:
    if cause is None or not cause.args or not type(cause).__module__.startswith("pymysql"):
        return False
    is_of_driver = isinstance(cause.args[0], str)  # it cannot write a value, such as NaN
    return cause.args[0] in _MARIADB_ROW or (is_of_driver and "can not be used" in cause.args[0])


def is_transient(error: sa.exc.SQLAlchemyError) -> bool:
    """Return True if the same call may succeed later."""
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None)
    if isinstance(state, str):
        return state.startswith(_POSTGRES_AGAIN)
    code = error.orig.args[0] if error.orig is not None and error.orig.args else None
    if isinstance(code, int):
        return code in _MARIADB_AGAIN
    if not isinstance(error, (sa.exc.OperationalError, sa.exc.InterfaceError)):
        return False
    text = str(error.orig).lower()
    if "sqlite" in type(error.orig).__module__:
        return any(word in text for word in ("locked", "busy", "interrupted", "is full"))
    return True


def connect_error(error: sa.exc.SQLAlchemyError, what: str) -> ConnectError:
    """Return Connect's error for a database's: `what` names the table or query that was used."""
    cause = str(getattr(error, "orig", None) or error).strip()
    if is_transient(error):
        return RetriableError(f"{what}: the database does not answer now: {cause}")
    if is_row_error(error):
        return DataError(f"{what}: {cause}")
    return ConnectError(f"{what}: {cause}")
