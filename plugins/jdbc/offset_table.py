"""The sink's offsets beside the data: `millstream_offsets`, for delivery=exactly_once.

A partition's row has the next offset to write, and an epoch, by which `OffsetClaims` fences earlier owners.
"""

from __future__ import annotations

import sqlalchemy as sa

from connect.api import OffsetClaims, StoredClaim, TopicPartition

TABLE = "millstream_offsets"
_offsets = sa.Table(
    TABLE,
    sa.MetaData(),
    sa.Column("connector", sa.String(200), primary_key=True),
    sa.Column("topic", sa.String(249), primary_key=True),
    sa.Column("partition", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("offset", sa.BigInteger, nullable=True),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    mysql_engine="InnoDB",
    mariadb_engine="InnoDB",
    mysql_charset="utf8mb4",
    mariadb_charset="utf8mb4",
)


class OffsetTable(OffsetClaims[sa.Connection]):
    """The rows of one connector in the table of offsets."""

    def __init__(self, engine: sa.Engine, connector: str) -> None:
        """Create the table if it does not exist. Raises SQLAlchemyError if that is not allowed."""
        super().__init__(f"the table {TABLE}")
        self._connector = connector
        with engine.begin() as connection:
            connection.execute(sa.schema.CreateTable(_offsets, if_not_exists=True))

    def locked(self, transaction: sa.Connection, tp: TopicPartition) -> StoredClaim | None:
        """Return a partition's row, locked until the transaction ends, or None."""
        query = sa.select(_offsets.c.offset, _offsets.c.epoch).where(*self._is(tp)).with_for_update()
        row = transaction.execute(query).first()
        return None if row is None else StoredClaim(row[0], row[1])

    def write_epoch(self, transaction: sa.Connection, tp: TopicPartition, epoch: int) -> None:
        """Write a partition's epoch.

        Raises IntegrityError if another task claims the partition for the first time at the same moment.
        """
        if epoch == 1:
            values = {"connector": self._connector, "topic": tp.topic, "partition": tp.partition}
            transaction.execute(_offsets.insert().values(**values, epoch=epoch))
        else:
            transaction.execute(_offsets.update().where(*self._is(tp)).values(epoch=epoch))

    def write_offset(self, transaction: sa.Connection, tp: TopicPartition, offset: int) -> None:
        """Write a partition's next offset."""
        transaction.execute(_offsets.update().where(*self._is(tp)).values(offset=offset))

    def _is(self, tp: TopicPartition) -> list[sa.ColumnElement[bool]]:
        return [
            _offsets.c.connector == self._connector,
            _offsets.c.topic == tp.topic,
            _offsets.c.partition == tp.partition,
        ]
