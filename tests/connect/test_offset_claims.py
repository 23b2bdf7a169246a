"""Offsets beside the data, with an SQLite database as the target."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.api import (
    OffsetClaims,
    PartitionsFenced,
    SinkRecord,
    SinkTask,
    SinkTaskContext,
    StoredClaim,
    TopicPartition,
    ends_of,
    unwritten,
)

TP = TopicPartition("t", 0)
COUNT = 12


class Claims(OffsetClaims[sqlite3.Connection]):
    """Claims in the table `claims`; the transactions of SQLite lock the database as a whole."""

    def locked(self, transaction: sqlite3.Connection, tp: TopicPartition) -> StoredClaim | None:
        query = "SELECT next, epoch FROM claims WHERE topic = ? AND partition = ?"
        row = transaction.execute(query, (tp.topic, tp.partition)).fetchone()
        return None if row is None else StoredClaim(*row)

    def write_epoch(self, transaction: sqlite3.Connection, tp: TopicPartition, epoch: int) -> None:
        if epoch == 1:
            transaction.execute("INSERT INTO claims VALUES (?, ?, NULL, 1)", (tp.topic, tp.partition))
        else:
            update = "UPDATE claims SET epoch = ? WHERE topic = ? AND partition = ?"
            transaction.execute(update, (epoch, tp.topic, tp.partition))

    def write_offset(self, transaction: sqlite3.Connection, tp: TopicPartition, offset: int) -> None:
        update = "UPDATE claims SET next = ? WHERE topic = ? AND partition = ?"
        transaction.execute(update, (offset, tp.topic, tp.partition))


class Rows(SinkTask):
    """Writes values into the table `rows`, each once."""

    def start(self, config: Mapping[str, str]) -> None:
        self.database = sqlite3.connect(config["file"], isolation_level=None)
        self.claims = Claims(config["file"])

    def open(self, partitions: Collection[TopicPartition]) -> None:
        with self.transaction() as database:
            self.context.offset(self.claims.claim(database, partitions))

    def put(self, records: Sequence[SinkRecord]) -> None:
        with self.transaction() as database:
            ends = ends_of(records)
            stored = self.claims.check(database, ends)
            rows = [(record.value,) for record in unwritten(records, stored)]
            database.executemany("INSERT INTO rows VALUES (?)", rows)
            self.claims.store(database, {tp: max(end, stored.get(tp, 0)) for tp, end in ends.items()})

    def close(self, partitions: Collection[TopicPartition]) -> None:
        self.claims.release(partitions)

    def stop(self) -> None:
        self.database.close()

    def transaction(self) -> sqlite3.Connection:
        self.database.execute("BEGIN IMMEDIATE")
        return self.database


@pytest.fixture
def file(tmp_path: Path) -> str:
    return new_database(tmp_path / "rows.db")


def new_database(path: Path) -> str:
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE claims (topic, partition, next, epoch, PRIMARY KEY (topic, partition))"
        )
        database.execute("CREATE TABLE rows (value)")
    return str(path)


def task(file: str) -> Rows:
    rows = Rows()
    rows.context = SinkTaskContext(connector="c", task_id=0)
    rows.start({"file": file})
    rows.open([TP])
    return rows


def records(first: int, end: int) -> list[SinkRecord]:
    return [
        SinkRecord(topic="t", partition=0, offset=n, timestamp=0, key=None, value=n)
        for n in range(first, end)
    ]


def written(file: str) -> list[int]:
    with closing(sqlite3.connect(file)) as database:
        return [value for (value,) in database.execute("SELECT value FROM rows ORDER BY rowid")]


def test_a_new_owner_goes_on_where_the_target_is(file: str) -> None:
    first = task(file)
    assert first.context.rewinds == {}
    first.put(records(0, 5))
    first.stop()
    second = task(file)
    assert second.context.rewinds == {TP: 5}
    second.put(records(3, 8))  # the group's offsets may be older
    assert written(file) == list(range(8))
    second.stop()


def test_an_owner_of_before_writes_nothing(file: str) -> None:
    zombie, owner = task(file), task(file)
    with pytest.raises(PartitionsFenced, match=r"t-0 has been claimed by another task in .*rows\.db"):
        zombie.put(records(0, 3))
    owner.put(records(0, 3))
    zombie.open([TP])  # as the worker has it, if the group says that the partition is still its own
    assert zombie.context.rewinds == {TP: 3}
    with pytest.raises(PartitionsFenced):
        owner.put(records(3, 4))
    assert written(file) == [0, 1, 2]
    for each in (zombie, owner):
        each.stop()


def test_a_released_claim_writes_nothing(file: str) -> None:
    rows = task(file)
    rows.close([TP])
    with pytest.raises(PartitionsFenced):
        rows.put(records(0, 1))
    rows.stop()


@given(steps=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), max_size=30))
def test_each_record_is_written_once_in_order(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, bool]]
) -> None:
    """Three tasks put records, each from its own idea of where it is, and open the partition again."""
    file = new_database(tmp_path_factory.mktemp("claims") / "rows.db")
    tasks = [task(file) for _ in range(3)]
    positions = [each.context.rewinds.get(TP, 0) for each in tasks]
    for index, count, opens in steps:
        rows = tasks[index]
        if opens:
            rows.open([TP])
            positions[index] = rows.context.rewinds.get(TP, 0)
        first = max(positions[index] - 1, 0)  # what was not committed comes again
        try:
            if batch := records(first, min(first + count, COUNT)):
                rows.put(batch)
                positions[index] = first + len(batch)
        except PartitionsFenced:
            pass
    assert written(file) == list(range(len(written(file))))
    for each in tasks:
        each.stop()
