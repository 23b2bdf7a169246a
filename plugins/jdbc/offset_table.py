"""The sink's offsets beside the data: `millstream_offsets`, for delivery=exactly_once.

A partition's row has the next offset to write, and an epoch. `claim` raises the epoch, so that an earlier
owner of the partition is fenced: its next transaction finds another epoch, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from connect.api import PartitionsFenced, TopicPartition

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


class OffsetTable:
    """The rows of one connector in the table of offsets."""

    def __init__(self, engine: sa.Engine, connector: str) -> None:
        """Create the table if it does not exist. Raises SQLAlchemyError if that is not allowed."""
        self._connector = connector
        self._epochs: dict[TopicPartition, int] = {}
        with engine.begin() as connection:
            connection.execute(sa.schema.CreateTable(_offsets, if_not_exists=True))

    def claim(
        self, connection: sa.Connection, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Take the partitions over in the connection's transaction. Return the next offsets that are stored.

        Raises IntegrityError if another task claims a partition for the first time at the same moment.
        """
        stored: dict[TopicPartition, int] = {}
        for tp in sorted(partitions):
            row = self._locked(connection, tp)
            if row is None:
                epoch = 1
                values = {"connector": self._connector, "topic": tp.topic, "partition": tp.partition}
                connection.execute(_offsets.insert().values(**values, epoch=epoch))
            else:
                offset, epoch = row[0], row[1] + 1
                connection.execute(_offsets.update().where(*self._is(tp)).values(epoch=epoch))
                if offset is not None:
                    stored[tp] = offset
            self._epochs[tp] = epoch
        return stored

    def check(
        self, connection: sa.Connection, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Lock the partitions' rows until the transaction ends. Return the next offsets that are stored.

        Raises PartitionsFenced if another task has claimed one of them.
        """
        stored: dict[TopicPartition, int] = {}
        for tp in sorted(partitions):
            row = self._locked(connection, tp)
            if row is None or row[1] != self._epochs.get(tp):
                raise PartitionsFenced(f"{tp} has been claimed by another task in the table {TABLE}")
            if row[0] is not None:
                stored[tp] = row[0]
        return stored

    def store(self, connection: sa.Connection, offsets: Mapping[TopicPartition, int]) -> None:
        """Store the next offsets in the transaction of the rows before them."""
        for tp, offset in offsets.items():
            connection.execute(_offsets.update().where(*self._is(tp)).values(offset=offset))

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the claims of the partitions."""
        for tp in partitions:
            self._epochs.pop(tp, None)

    def _locked(self, connection: sa.Connection, tp: TopicPartition) -> tuple[int | None, int] | None:
        query = sa.select(_offsets.c.offset, _offsets.c.epoch).where(*self._is(tp)).with_for_update()
        row = connection.execute(query).first()
        return None if row is None else (row[0], row[1])

    def _is(self, tp: TopicPartition) -> list[sa.ColumnElement[bool]]:
        return [
            _offsets.c.connector == self._connector,
            _offsets.c.topic == tp.topic,
            _offsets.c.partition == tp.partition,
        ]
