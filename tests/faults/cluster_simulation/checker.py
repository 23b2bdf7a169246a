"""Records of what clients were told and replicas' logs hold in the end, and the broken promises.

The vocabulary is Kafka's, and where it is the same that of `tests.faults.replication.checker`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kafka_client.records import ABORT, decode_records, iter_batches, parse_control
from kafka_client.topic_partition import TopicPartition


class Kind(Enum):
    """Kind of a broken promise."""

    LOST_WRITE = "lost write"
    """Acknowledged with acks=all, or of a committed transaction, and not in the log."""
    UNSEEN = "unseen"
    """A consumer has gone past a record that it should have been handed, and was not."""
    DUPLICATE = "duplicate"
    """Sent by an idempotent producer, and in the log twice."""
    INCONSISTENT_OFFSET = "inconsistent offset"
    """Told to be at an offset where another record is."""
    ABORTED_READ = "aborted read"
    """A read_committed consumer was handed a record of a transaction that is not committed."""
    DIRTY_READ = "dirty read"
    """A consumer was handed what is not in the log."""
    NON_MONOTONIC_POLL = "non-monotonic poll"
    """A consumer was handed an offset again, or an earlier one."""
    TORN_TRANSACTION = "torn transaction"
    """A part of a transaction is committed, or other than its producer was told."""
    LOST_OFFSET = "lost offset"
    """A group's committed offset was acknowledged, and is another one."""
    FENCED = "fenced"
    """A producer was fenced although nobody else has its transactional id, and it was not too late."""
    STALE_LEASE = "stale lease"
    """A broker would acknowledge although its session is over: others may be elected in its place."""
    STALE_CONTROLLER = "stale controller"
    """A broker has written as the controller after another one was elected."""
    DIVERGED_REPLICAS = "diverged replicas"
    """Two replicas are different in the end."""
    STRAY_ADOPTED = "stray adopted"
    """Records of a deleted topic are in the one that has its name now."""
    INTERNAL_ERROR = "internal error"
    """A broker has logged an error nobody expects."""
    STUCK = "stuck"
    """All faults are over, and the replicas do not get in sync, or a client is not served."""


class Violation(NamedTuple):
    """A broken promise, as it is told."""

    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.what}"


class Outcome(Enum):
    """Outcome of a transaction, as far as its producer knows."""

    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(eq=False)
class Transaction:
    """`offset` is what it commits for its group, if anything."""

    name: str
    outcome: Outcome = Outcome.UNKNOWN
    is_commit_asked: bool = False
    values: list[tuple[TopicPartition, bytes]] = field(default_factory=list)
    group: str = ""
    offset: int = -1


class Written(NamedTuple):
    """A record in the log in the end; `fate` is its transaction's: committed also where it is in none."""

    offset: int
    value: bytes
    fate: str


COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"


@dataclass(eq=False)
class Reader:
    """A consumer of one partition from its beginning: where it is, and what it was handed."""

    name: str
    committed_only: bool
    position: int = 0
    handed: dict[int, bytes] = field(default_factory=dict)


class Checker:
    """Checker of a history: it gets every event, and `audit` compares the logs in the end."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.sent: dict[bytes, tuple[TopicPartition, bool]] = {}
        """By value: where to, and whether by an idempotent producer."""
        self.acknowledged: dict[bytes, tuple[TopicPartition, int]] = {}
        self.deleted: set[bytes] = set()
        """Acknowledged in a topic that was deleted since."""
        self.transactions: list[Transaction] = []
        self.readers: dict[tuple[str, TopicPartition], Reader] = {}
        self.requested: dict[tuple[str, TopicPartition], list[int]] = defaultdict(list)
        self.committed: dict[tuple[str, TopicPartition], int] = {}
        """By group: the last offset whose commit was acknowledged; `requested` are all that were sent."""

    def broken(self, kind: Kind, what: str) -> None:
        self.violations.append(Violation(kind, what))

    # While it happens

    def acknowledge(self, tp: TopicPartition, values: Iterable[bytes], base_offset: int | None) -> None:
        """Note the offset of a producer's records. If it is None, only that they are there."""
        for index, value in enumerate(values):
            self.acknowledged[value] = tp, -1 if base_offset is None else base_offset + index

    def poll(
        self, reader: Reader, tp: TopicPartition, records: Iterable[tuple[int, bytes]], end: int
    ) -> None:
        """Note that a consumer got records, and is at `end` then."""
        for offset, value in records:
            if offset < reader.position:
                self.broken(
                    Kind.NON_MONOTONIC_POLL,
                    f"{reader.name} of {tp}, at {reader.position}, was handed offset {offset}",
                )
            before = reader.handed.setdefault(offset, value)
            if before != value:
                self.broken(
                    Kind.INCONSISTENT_OFFSET,
                    f"{reader.name} was handed {value!r} at {tp} {offset}, {before!r} was there",
                )
        reader.position = max(reader.position, end)

    def went_back(self, reader: Reader, tp: TopicPartition, why: str) -> None:
        """Note that a consumer was told that the log has lost what it read."""
        self.broken(Kind.DIRTY_READ, f"{reader.name} has read {tp} up to {reader.position}: {why}")
        reader.handed.clear()

    # In the end

    def audit(self, logs: Mapping[TopicPartition, Mapping[int, bytes]]) -> None:
        """Check the logs of all replicas, by broker, when all faults are over and all replicas in sync."""
        written_by_partition: dict[TopicPartition, list[Written]] = {}
        for tp, replicas in logs.items():
            first = min(replicas)
            for broker, log in replicas.items():
                if log != replicas[first]:
                    self.broken(
                        Kind.DIVERGED_REPLICAS, f"{tp} is another one on broker {broker} than on {first}"
                    )
            written_by_partition[tp] = written_in(replicas[first])
        for tp, records in written_by_partition.items():
            if not tp.topic.startswith("__"):
                self._audit_duplicates(tp, records)
                self._audit_acknowledged(tp, records)
        for transaction in self.transactions:
            self._audit_transaction(transaction, written_by_partition)
        for (_, tp), reader in self.readers.items():
            self._audit_reader(reader, tp, written_by_partition.get(tp, []))

    def _audit_duplicates(self, tp: TopicPartition, records: list[Written]) -> None:
        places: dict[bytes, int] = {}
        for offset, value, fate in records:
            sent = self.sent.get(value)
            if sent is None or sent[0] != tp or value in self.deleted:
                self.broken(Kind.STRAY_ADOPTED, f"{value!r} at {tp} {offset} was never sent to this topic")
            elif value in places and sent[1]:
                self.broken(Kind.DUPLICATE, f"{value!r} is at {tp} {places[value]} and {offset} ({fate})")
            places[value] = offset

    def _audit_acknowledged(self, tp: TopicPartition, records: list[Written]) -> None:
        log = {offset: value for offset, value, _ in records}
        values = set(log.values())
        for value, (where, offset) in self.acknowledged.items():
            if where != tp:
                continue
            if value not in values:
                self.broken(Kind.LOST_WRITE, f"{value!r}, acknowledged at {tp} {offset}, is nowhere")
            elif offset >= 0 and log.get(offset) != value:
                self.broken(
                    Kind.INCONSISTENT_OFFSET,
                    f"{value!r}, acknowledged at {tp} {offset}: {log.get(offset)!r} is there",
                )

    def _audit_transaction(
        self, transaction: Transaction, written_by_partition: Mapping[TopicPartition, list[Written]]
    ) -> None:
        values = set(transaction.values)
        fates = {
            (tp, written.value): written.fate
            for tp in {tp for tp, _ in values}
            for written in written_by_partition.get(tp, ())
            if (tp, written.value) in values
        }
        committed = [each for each in transaction.values if fates.get(each) == COMMITTED]
        if transaction.outcome is Outcome.COMMITTED and len(committed) < len(values):
            lost = sorted(values - set(committed))
            self.broken(Kind.LOST_WRITE, f"{transaction.name} is committed, and {lost} {fates.get(lost[0])}")
        elif committed and transaction.outcome is Outcome.ABORTED:
            self.broken(Kind.TORN_TRANSACTION, f"{transaction.name} is aborted, and {committed} is committed")
        elif committed and not transaction.is_commit_asked:
            self.broken(Kind.TORN_TRANSACTION, f"{transaction.name} was never committed, and {committed} is")
        elif committed and len(committed) < len(values):
            self.broken(Kind.TORN_TRANSACTION, f"of {transaction.name} only {committed} is committed")

    def _audit_reader(self, reader: Reader, tp: TopicPartition, records: list[Written]) -> None:
        there = {offset: (value, fate) for offset, value, fate in records}
        for offset, value in reader.handed.items():
            logged, fate = there.get(offset, (None, OPEN))
            if logged != value:
                self.broken(
                    Kind.DIRTY_READ, f"{reader.name} read {value!r} at {tp} {offset}, there is {logged!r}"
                )
            elif reader.committed_only and fate != COMMITTED:
                self.broken(Kind.ABORTED_READ, f"{reader.name} read {value!r} at {tp} {offset}: {fate}")
        for offset, value, fate in records:
            is_for_it = fate == COMMITTED or not reader.committed_only
            if offset < reader.position and is_for_it and offset not in reader.handed:
                self.broken(
                    Kind.UNSEEN,
                    f"{reader.name} is at {reader.position} of {tp} and has not read {value!r} at {offset}",
                )

    def audit_offset(self, group: str, tp: TopicPartition, offset: int) -> None:
        """Check the offset that the group's coordinator has in the end; it is -1 for none."""
        committed = self.committed.get((group, tp), -1)
        if offset < committed:
            self.broken(Kind.LOST_OFFSET, f"group {group} has committed {tp} {committed}, there is {offset}")
        elif offset != committed and offset not in self.requested[group, tp]:
            self.broken(Kind.LOST_OFFSET, f"group {group} has never committed {tp} {offset}, but {committed}")

    def audit_transactional_offset(self, group: str, offset: int) -> None:
        """Check a group's offset from transactions: the last committed one's, or that of a later transaction
        whose outcome its producer does not know.
        """
        committed = -1
        possible = {-1}
        for transaction in self.transactions:
            if transaction.group != group:
                continue
            if transaction.outcome is Outcome.COMMITTED:
                committed, possible = transaction.offset, {transaction.offset}
            elif transaction.outcome is Outcome.UNKNOWN and transaction.is_commit_asked:
                possible.add(transaction.offset)
        if offset not in possible:
            self.broken(
                Kind.LOST_OFFSET, f"group {group}: transactions have committed {committed}, there is {offset}"
            )


def written_in(log: bytes) -> list[Written]:
    """Return the records of a log, with their transactions' outcomes by the log's markers."""
    written: list[Written] = []
    open_by_producer: dict[int, list[int]] = defaultdict(list)
    for pos, header in iter_batches(log):
        records = decode_records(log, pos)
        if header.is_control:
            is_abort = parse_control(records[0][2] or b"")[1] == ABORT
            for index in open_by_producer.pop(header.producer_id, ()):
                written[index] = written[index]._replace(fate=ABORTED if is_abort else COMMITTED)
            continue
        for offset, _, _, value, _ in records:
            if header.is_transactional:
                open_by_producer[header.producer_id].append(len(written))
            written.append(Written(offset, value or b"", OPEN if header.is_transactional else COMMITTED))
    return written
