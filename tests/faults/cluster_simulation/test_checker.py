"""Each kind of broken promise that is seen in the end, by itself."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kafka_client.records import ABORT, COMMIT, build_batch, build_end_marker
from kafka_client.topic_partition import TopicPartition
from tests.faults.cluster_simulation.checker import Checker, Kind, Outcome, Reader, Transaction, written_in

TP = TopicPartition("t", 0)
PRODUCER = 7


def batch(offset: int, *values: bytes, transactional: bool = False) -> bytes:
    return build_batch(
        [(0, None, value, ()) for value in values],
        base_offset=offset,
        producer_id=PRODUCER if transactional else -1,
        producer_epoch=0 if transactional else -1,
        base_sequence=0 if transactional else -1,
        transactional=transactional,
    )


def marker(offset: int, *, commit: bool) -> bytes:
    return build_end_marker(
        COMMIT if commit else ABORT,
        base_offset=offset,
        producer_id=PRODUCER,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=0,
    )


LOG = b"".join(
    (
        batch(0, b"a", b"b"),
        batch(2, b"c", transactional=True),
        marker(3, commit=True),
        batch(4, b"d", transactional=True),
        marker(5, commit=False),
        batch(6, b"e", transactional=True),
    )
)


def kinds(checker: Checker, *logs: bytes) -> list[Kind]:
    """Return the kinds of broken promises if replicas have these logs; all values in them were sent."""
    for log in logs:
        for record in written_in(log):
            checker.sent.setdefault(record.value, (TP, True))
    checker.audit({TP: dict(enumerate(logs))})
    return [violation.kind for violation in checker.violations]


def test_fates_are_by_markers() -> None:
    fates = [(record.offset, record.value, record.fate) for record in written_in(LOG)]
    assert fates == [
        (0, b"a", "committed"),
        (1, b"b", "committed"),
        (2, b"c", "committed"),
        (4, b"d", "aborted"),
        (6, b"e", "open"),
    ]


def test_all_is_well() -> None:
    checker = Checker()
    checker.acknowledge(TP, [b"a", b"b"], 0)
    checker.acknowledge(TP, [b"d"], None)
    checker.transactions = [
        Transaction("1", Outcome.COMMITTED, is_commit_asked=True, values=[(TP, b"c")]),
        Transaction("2", Outcome.ABORTED, values=[(TP, b"d")]),
    ]
    for reader in (Reader("all", committed_only=False), Reader("committed", committed_only=True)):
        checker.readers[reader.name, TP] = reader
    checker.poll(checker.readers["all", TP], TP, [(0, b"a"), (1, b"b"), (2, b"c"), (4, b"d")], 6)
    checker.poll(checker.readers["committed", TP], TP, [(0, b"a"), (1, b"b"), (2, b"c")], 6)
    assert kinds(checker, LOG, LOG) == []


def test_records() -> None:
    checker = Checker()
    checker.acknowledge(TP, [b"x"], 9)
    checker.acknowledge(TP, [b"a"], 1)
    twice = LOG + batch(7, b"b")
    assert kinds(checker, twice, LOG) == [
        Kind.DIVERGED_REPLICAS,
        Kind.DUPLICATE,
        Kind.LOST_WRITE,
        Kind.INCONSISTENT_OFFSET,
    ]


@pytest.mark.parametrize(
    ("committed_only", "records", "end", "kind"),
    [
        (True, [(0, b"a"), (1, b"b"), (2, b"c"), (4, b"d")], 6, Kind.ABORTED_READ),
        (True, [(0, b"a"), (2, b"c")], 6, Kind.UNSEEN),
        (False, [(0, b"a"), (1, b"z")], 2, Kind.DIRTY_READ),
    ],
)
def test_readers(committed_only: bool, records: Iterable[tuple[int, bytes]], end: int, kind: Kind) -> None:
    checker = Checker()
    reader = checker.readers["r", TP] = Reader("r", committed_only)
    checker.poll(reader, TP, records, end)
    assert kinds(checker, LOG) == [kind]


def test_read_again() -> None:
    checker = Checker()
    reader = checker.readers["r", TP] = Reader("r", committed_only=False)
    checker.poll(reader, TP, [(0, b"a"), (1, b"b")], 2)
    checker.poll(reader, TP, [(1, b"b")], 2)
    assert kinds(checker, LOG) == [Kind.NON_MONOTONIC_POLL]


@pytest.mark.parametrize(
    ("transaction", "kind"),
    [
        (Transaction("lost", Outcome.COMMITTED, True, [(TP, b"d")]), Kind.LOST_WRITE),
        (Transaction("kept", Outcome.ABORTED, True, [(TP, b"c")]), Kind.TORN_TRANSACTION),
        (Transaction("unasked", Outcome.UNKNOWN, False, [(TP, b"c")]), Kind.TORN_TRANSACTION),
        (Transaction("half", Outcome.UNKNOWN, True, [(TP, b"c"), (TP, b"d")]), Kind.TORN_TRANSACTION),
    ],
)
def test_transactions(transaction: Transaction, kind: Kind) -> None:
    checker = Checker()
    checker.transactions.append(transaction)
    assert kinds(checker, LOG) == [kind]


def test_offsets() -> None:
    checker = Checker()
    checker.requested["g", TP], checker.committed["g", TP] = [3, 5, 8], 5
    for offset in (5, 8):
        checker.audit_offset("g", TP, offset)
    assert not checker.violations
    for offset in (3, 7, -1):
        checker.audit_offset("g", TP, offset)
    assert [violation.kind for violation in checker.violations] == [Kind.LOST_OFFSET] * 3


def test_offsets_of_transactions() -> None:
    checker = Checker()
    for offset, outcome, is_requested in (
        (1, Outcome.COMMITTED, True),
        (2, Outcome.ABORTED, False),
        (3, Outcome.UNKNOWN, True),
    ):
        checker.transactions.append(Transaction(str(offset), outcome, is_requested, group="g", offset=offset))
    for committed in (1, 3):
        checker.audit_transactional_offset("g", committed)
    assert not checker.violations
    for committed in (-1, 2):
        checker.audit_transactional_offset("g", committed)
    assert [violation.kind for violation in checker.violations] == [Kind.LOST_OFFSET] * 2
