"""Open transactions of MariaDB and MySQL, as `information_schema` shows them to users with PROCESS.

What `innodb_trx` can and cannot say:

- It shows transactions from their first access to InnoDB until their commit is visible to new snapshots.
- A statement takes its AUTO_INCREMENT id before its transaction is shown. So statements under way count too,
  from `processlist`, up to the `query_id` of the observation itself.
- It is a copy that the server renews only if nobody has read it for 0.1 s. So the observation looks for
  itself in the copy, by a word of its own in `trx_query`. It tries again until the copy is younger than its
  start.
- Without the PROCESS privilege it shows nothing. Then the observation does not find itself either.
- It knows nothing of other nodes: with Galera, or on a replica, transactions elsewhere are not seen.
"""

from __future__ import annotations

import logging
import random
import secrets
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from plugins.jdbc.bounds import Observation

_COPY_SECONDS = 0.11
"""How long the server keeps its copy of `innodb_trx` after a read."""
_TRIES = 8
_TRANSACTIONS = """
    SELECT /* {word} */ trx_mysql_thread_id, trx_id, CAST(trx_started AS CHAR), trx_query,
           trx_is_read_only OR trx_autocommit_non_locking
      FROM information_schema.innodb_trx
"""
_STATEMENTS = """
    SELECT id, query_id, command FROM information_schema.processlist
     WHERE command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Killed') OR id = connection_id()
"""
_PRIVILEGE = "SELECT count(*) FROM information_schema.user_privileges WHERE privilege_type = 'PROCESS'"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenSessions:
    """Transactions and statements under way, by the thread that they run in."""

    transactions: Mapping[int, str]
    """Thread -> the time of its transaction's start; thread 0 has prepared ones without a session."""
    prepared: frozenset[str]
    statements: Mapping[int, int]
    """Thread -> `query_id`, of threads without a transaction."""
    query_id: int
    """The observation's own: later statements have greater ones."""

    @property
    def open(self) -> frozenset[Hashable]:
        """Identities: (thread, start), (thread, query_id) or ("prepared", transaction id)."""
        return frozenset(
            (
                *self.transactions.items(),
                *((thread, self.query_id) for thread in self.statements),
                *(("prepared", trx_id) for trx_id in self.prepared),
            )
        )

    def remaining(self, waiting: frozenset[Hashable], before: Observation) -> frozenset[Hashable]:
        """Return what may be open still. A statement may have left a transaction open behind it."""
        still: set[Hashable] = set()
        for each in waiting:
            assert isinstance(each, tuple)
            thread, mark = each
            if thread == "prepared":
                if mark in self.prepared:
                    still.add(each)
            elif isinstance(mark, str):
                if self.transactions.get(thread) == mark:
                    still.add(each)
            elif thread in self.transactions:
                still.add((thread, self.transactions[thread]))
            elif self.statements.get(thread, mark + 1) <= mark:
                still.add(each)
        if len(still) < len(waiting):  # a transaction that has ended may have become a prepared one
            new = {
                each for each in self.open - before.open if isinstance(each, tuple) and each[0] == "prepared"
            }
            still |= new
        return frozenset(still)


class MariadbObserver:
    """Observer of the open transactions and statements that may write a table."""

    def __init__(
        self,
        connection: sa.Connection,
        name: str,
        *,
        wait: Callable[[float], Any] = time.sleep,
    ) -> None:
        """Create an observer, and log a warning where it cannot see every writer."""
        self._wait = wait
        # The copy may stay old while others read it; that alone does not make the observer blind.
        self._is_blind = self._observe(connection) is None and not connection.scalar(sa.text(_PRIVILEGE))
        if self._is_blind:
            _log.warning(
                "%s: the user cannot see open transactions, so rows that commit out of order may be missed: "
                "GRANT PROCESS ON *.* TO the user, or set timestamp.delay.interval.ms above the longest "
                "transaction",
                name,
            )
        if connection.scalar(sa.text("SELECT @@global.read_only")) or self._has_cluster(connection):
            _log.warning(
                "%s: transactions on other servers are not seen; rows that commit out of order there may be "
                "missed: read from the server that all clients write to",
                name,
            )

    def observe(self, connection: sa.Connection) -> Observation | None:
        """Return what is open now; None if the server shows an old copy again and again."""
        if self._is_blind:
            return OpenSessions({}, frozenset(), {}, 0)
        return self._observe(connection)

    def _observe(self, connection: sa.Connection) -> OpenSessions | None:
        # A statement that ends between the two reads may leave a transaction open: it is in the second one.
        for attempt in range(_TRIES):
            if attempt:
                self._wait(_COPY_SECONDS * (1 + random.random()))  # observers in step would renew nothing
            connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            try:
                own = connection.scalar(sa.text("SELECT connection_id()"))
                statements = connection.exec_driver_sql(_STATEMENTS).all()
                word = secrets.token_hex(8)
                transactions = connection.exec_driver_sql(_TRANSACTIONS.format(word=word)).all()
            finally:
                connection.exec_driver_sql("ROLLBACK")
            if any(row[0] == own and word in (row[3] or "") for row in transactions):
                return _open_sessions(own, statements, transactions)
        return None

    def _has_cluster(self, connection: sa.Connection) -> bool:
        row = connection.exec_driver_sql("SHOW GLOBAL VARIABLES LIKE 'wsrep_on'").first()
        return row is not None and row[1] in ("ON", "1")


def _open_sessions(own: int, statements: Any, transactions: Any) -> OpenSessions:
    readers = {row[0] for row in transactions if row[4]} | {own}
    query_id = max((row[1] for row in statements if row[0] == own), default=0)
    writers = {row[0]: str(row[2]) for row in transactions if row[0] and row[0] not in readers}
    return OpenSessions(
        writers,
        frozenset(str(row[1]) for row in transactions if not row[0]),
        {row[0]: row[1] for row in statements if row[0] not in readers and row[0] not in writers},
        query_id,
    )
