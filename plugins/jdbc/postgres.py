"""Open transactions of PostgreSQL, as its table of locks (`pg_locks`) shows them to every user.

- Every transaction has a virtual id and holds a lock on it, from before its `now()` until after its commit is
  visible. So a new snapshot sees all rows of a transaction that `pg_locks` no longer shows.
- INSERT and COPY lock the table before they take an id of its sequence; `nextval` locks the sequence. Both
  locks stay until the row's transaction or savepoint has ended. So for ids, only holders of a writer's lock
  matter: on the table, on a table below or above it, or on a sequence of its columns.
- A prepared transaction keeps its locks under another identity, `-1/<xid>`.

A row's own `xmin` is not used. `xmin < pg_snapshot_xmin(pg_current_snapshot())` does not order ids: a
transaction can take its xid first and its id last, and an id is taken before there is a xid at all. Frozen
rows, wrapped xids and subtransactions would need care of their own.

A standby shows no writers of its primary. There the snapshot counts: `pg_snapshot_xmin` has to reach the
`pg_snapshot_xmax` of the mark. A transaction that has an id, but no row yet, is not seen so.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from plugins.jdbc.bounds import Observation
from plugins.jdbc.database import APPLICATION_NAME

_WRITERS = "('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')"
_RELATIONS = sa.text("""
    WITH RECURSIVE up AS (
        SELECT CAST(:table AS regclass)::oid AS oid
        UNION SELECT inhparent FROM pg_inherits JOIN up ON inhrelid = up.oid
    ), family AS (
        SELECT oid FROM up UNION SELECT inhrelid FROM pg_inherits JOIN family ON inhparent = family.oid
    )
    SELECT oid::bigint FROM family
    UNION
    SELECT d.objid::bigint FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S'
     WHERE d.classid = 'pg_class'::regclass AND d.refobjid IN (SELECT oid FROM family)
    UNION
    SELECT d.refobjid::bigint FROM pg_depend d
      JOIN pg_attrdef a ON a.oid = d.objid AND d.classid = 'pg_attrdef'::regclass
      JOIN pg_class c ON c.oid = d.refobjid AND c.relkind = 'S'
     WHERE a.adrelid IN (SELECT oid FROM family)
""")
_LOCKS_OF_TABLE = sa.text(f"""
    SELECT DISTINCT virtualtransaction FROM pg_locks
     WHERE locktype = 'relation' AND relation = ANY(CAST(:relations AS oid[])) AND mode IN {_WRITERS}
       AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
""")
_ALL_OPEN = sa.text(f"""
    SELECT DISTINCT virtualtransaction FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE (l.pid IS NULL AND l.locktype = 'transactionid')
        OR (l.locktype = 'virtualxid' AND l.granted AND l.pid <> pg_backend_pid()
            AND a.datname = current_database() AND a.usesysid IS NOT NULL
            AND coalesce(a.application_name, '') <> '{APPLICATION_NAME}')
""")
_CACHED = sa.text("""
    SELECT c.relname, s.seqcache FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
     WHERE s.seqcache > 1 AND s.seqrelid = ANY(CAST(:relations AS oid[]))
""")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenTransactions:
    """Virtual transaction ids, and `-1/<xid>` of prepared transactions."""

    open: frozenset[Hashable]

    def remaining(self, waiting: frozenset[Hashable], before: Observation) -> frozenset[Hashable]:
        """Return what is still open. A transaction that has ended may have become a prepared one."""
        still = waiting & self.open
        if still == waiting:
            return still
        prepared = frozenset(each for each in self.open - before.open if str(each).startswith("-1/"))
        return still | prepared


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The running transactions of a standby's snapshot, as its two ends: 64-bit transaction ids."""

    xmin: int
    xmax: int

    @property
    def open(self) -> frozenset[Hashable]:
        """The end of the snapshot if a transaction before it runs."""
        return frozenset((self.xmax,)) if self.xmin < self.xmax else frozenset()

    def remaining(self, waiting: frozenset[Hashable], before: Observation) -> frozenset[Hashable]:
        """Return the ends that this snapshot's oldest transaction has not reached."""
        return frozenset(xmax for xmax in waiting if isinstance(xmax, int) and self.xmin < xmax)


class PostgresObserver:
    """Observer of the open transactions that may write ids or timestamps of a table."""

    def __init__(self, connection: sa.Connection, table: str | None, *, by_id: bool) -> None:
        """Create an observer. `table` is a quoted name, or None for a view or query: any writer counts."""
        self._relations: Sequence[int] | None = None
        self._is_standby = bool(connection.scalar(sa.text("SELECT pg_is_in_recovery()")))
        name = table or "query"
        if self._is_standby:
            _log.warning(
                "%s: the database is a standby, which does not show its primary's writers; an id that was "
                "taken long before its row was written may be missed: read from the primary",
                name,
            )
        elif table is not None and by_id:
            self._relations = [int(oid) for oid in connection.scalars(_RELATIONS, {"table": table})]
            for sequence, size in connection.execute(_CACHED, {"relations": self._relations}):
                _log.warning(
                    "%s: the sequence %s caches %d ids per session, so later transactions may write lower "
                    "ids, which are missed: ALTER SEQUENCE %s CACHE 1",
                    name,
                    sequence,
                    size,
                    sequence,
                )

    def observe(self, connection: sa.Connection) -> Observation:
        """Return the transactions that are open now."""
        if self._is_standby:
            snapshot = connection.scalar(sa.text("SELECT pg_current_snapshot()::text"))
            xmin, xmax, _ = str(snapshot).split(":", 2)
            return Snapshot(int(xmin), int(xmax))
        if self._relations is None:
            rows = connection.scalars(_ALL_OPEN)
        else:
            rows = connection.scalars(_LOCKS_OF_TABLE, {"relations": self._relations})
        return OpenTransactions(frozenset(rows))
