"""Records of what clients were told and brokers wrote, and the broken promises, in Kafka's vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tests.faults.replication.memory_log import Batch, MemoryLog


class Kind(Enum):
    """Kind of a broken promise."""

    LOST_WRITE = "lost write"
    """Acknowledged to an acks=all producer, and not in the log."""
    UNSEEN = "unseen"
    """A consumer was handed what lies behind a record, and not the record."""
    DUPLICATE = "duplicate"
    """Sent once, or by an idempotent producer, and in the log twice."""
    INCONSISTENT_OFFSET = "inconsistent offset"
    """Told to be at an offset where another record is."""
    DIRTY_READ = "dirty read"
    """A consumer was handed what is not in the log."""
    NON_MONOTONIC_POLL = "non-monotonic poll"
    """A consumer was handed an offset again."""
    DIVERGED_REPLICAS = "diverged replicas"
    """Two replicas have different records of one leader epoch at one offset, or are different in the end."""
    OUT_OF_SYNC = "out of sync"
    """A broker of the ISR lacks what a leader has committed: whether a client notices is a matter of luck."""
    STALE_ACKNOWLEDGEMENT = "stale acknowledgement"
    """Acknowledged by a broker whose session had ended: others may have been elected since."""
    STUCK = "stuck"
    """All faults are over, and the replicas do not get in sync, or a client is not served."""


class Violation(NamedTuple):
    """A broken promise, as it is told."""

    kind: Kind
    what: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.what}"


class Sent(NamedTuple):
    """A batch that a producer has finished: how often it was sent, and whether with idempotence."""

    times: int
    is_idempotent: bool


@dataclass
class Checker:
    """Checker of a history: it gets every event, and `audit` compares the replicas in the end.

    With `is_unclean` a replica out of sync was elected: what is committed may be lost then. Histories must
    still not diverge, and no record may stand twice.
    """

    is_unclean: bool = False
    violations: list[Violation] = field(default_factory=list)
    acknowledged: dict[object, tuple[int, bool]] = field(default_factory=dict)
    """By value: the offset told, and whether to an acks=all producer."""
    sent: dict[object, Sent] = field(default_factory=dict)
    read: dict[int, object] = field(default_factory=dict)
    """By offset: what consumers were handed."""
    written: dict[tuple[int, int], tuple[object, ...]] = field(default_factory=dict)
    """By offset and leader epoch: batches, wherever they were written."""
    deleted_before: int = 0
    """How far DeleteRecords was asked for."""
    committed: tuple[int, int] = (0, -1)
    """The largest high watermark of any leader, and the leader epoch of the record before it."""

    def broken(self, kind: Kind, what: str) -> None:
        self.violations.append(Violation(kind, what))

    # While it happens

    def wrote(self, broker_id: int, batch: Batch) -> None:
        """Note that a leader or a follower has a batch in its log."""
        place = batch.base_offset, batch.epoch
        before = self.written.setdefault(place, batch.values)
        if before is not batch.values and before != batch.values:
            self.broken(
                Kind.DIVERGED_REPLICAS,
                f"broker {broker_id} wrote {batch.values} at offset {place[0]} in leader epoch {place[1]}, "
                f"another one {before}",
            )

    def acknowledge(
        self, values: tuple[object, ...], base_offset: int, *, acks_all: bool, broker_id: int, is_stale: bool
    ) -> None:
        """Note that a broker has acknowledged a batch."""
        if is_stale:
            self.broken(
                Kind.STALE_ACKNOWLEDGEMENT,
                f"broker {broker_id} acknowledged {values} at offset {base_offset} after its session",
            )
        for offset, value in enumerate(values, base_offset):
            self.acknowledged[value] = offset, acks_all

    def poll(self, consumer: str, position: int, batches: Iterable[Batch]) -> int:
        """Note that a consumer at `position` got batches, and return its next position."""
        for batch in batches:
            if batch.base_offset > position:
                self.broken(
                    Kind.UNSEEN,
                    f"{consumer} at {position} was handed {batch.base_offset} next",
                )
            if batch.end_offset <= position:
                self.broken(Kind.NON_MONOTONIC_POLL, f"{consumer} at {position} was handed {batch}")
            for offset, value in enumerate(batch.values, batch.base_offset):
                before = self.read.setdefault(offset, value)
                if before != value and not self.is_unclean:
                    self.broken(
                        Kind.INCONSISTENT_OFFSET,
                        f"{consumer} was handed {value} at offset {offset}, {before} was there",
                    )
            position = batch.end_offset
        return position

    def went_back(self, consumer: str, position: int, to: int) -> None:
        """Note that a consumer was told that the log has lost what it read."""
        if not self.is_unclean:
            self.broken(Kind.DIRTY_READ, f"{consumer} has read up to {position}, the leader only to {to}")

    def commit(self, high_watermark: int, log: MemoryLog) -> bool:
        """Note a leader's high watermark, and return True if it is the largest so far."""
        if high_watermark <= self.committed[0]:
            return False
        self.committed = high_watermark, log.epoch_of(high_watermark - 1)
        return True

    def in_sync(self, broker_id: int, log: MemoryLog) -> None:
        """Check that a broker of the ISR has what is committed.

        A record's offset and leader epoch identify all before.
        """
        high_watermark, epoch = self.committed
        if self.is_unclean or high_watermark <= log.log_start_offset:
            return
        if log.log_end_offset < high_watermark or log.epoch_of(high_watermark - 1) != epoch:
            self.broken(
                Kind.OUT_OF_SYNC,
                f"broker {broker_id} ends at {log.log_end_offset}, leader epochs {log.epochs.entries}; "
                f"committed is up to {high_watermark} in leader epoch {epoch}",
            )

    def truncated(self, broker_id: int, *, takes_committed: bool) -> None:
        """Note that a follower has truncated its log."""
        if takes_committed and not self.is_unclean:
            self.broken(Kind.OUT_OF_SYNC, f"broker {broker_id} truncated what it knew to be committed")

    # In the end

    def audit(self, logs: dict[int, MemoryLog]) -> None:
        """Check that all replicas are the same and match the acknowledgements, after all faults are over."""
        first = next(iter(logs))
        log = {offset: value for offset, _, value in logs[first].records()}
        for broker_id, other in logs.items():
            self._compare(first, logs[first], broker_id, other)
        self._audit_duplicates(log)
        if not self.is_unclean:
            self._audit_acknowledged(log)
            self._audit_read(log)

    def _compare(self, one: int, a: MemoryLog, other: int, b: MemoryLog) -> None:
        start = max(a.log_start_offset, b.log_start_offset)
        for left, right in zip(_from(a, start), _from(b, start), strict=False):
            if left != right:
                self.broken(
                    Kind.DIVERGED_REPLICAS,
                    f"(offset, epoch, value) {left} on broker {one}, {right} on {other}",
                )
                return
        if a.log_end_offset != b.log_end_offset:
            self.broken(
                Kind.DIVERGED_REPLICAS,
                f"broker {one} ends at {a.log_end_offset}, {other} at {b.log_end_offset}",
            )

    def _audit_duplicates(self, log: dict[int, object]) -> None:
        places: dict[object, int] = {}
        for offset, value in log.items():
            if value in places:
                sent = self.sent.get(value, Sent(1, is_idempotent=False))
                if sent.is_idempotent or sent.times == 1:
                    self.broken(Kind.DUPLICATE, f"{value} is at offsets {places[value]} and {offset}")
            places[value] = offset

    def _audit_acknowledged(self, log: dict[int, object]) -> None:
        for value, (offset, acks_all) in self.acknowledged.items():
            if not acks_all or offset < self.deleted_before:
                continue
            if offset not in log:
                self.broken(Kind.LOST_WRITE, f"{value}, acknowledged at offset {offset}: the log is shorter")
            elif log[offset] != value:
                there = value in log.values()
                kind = Kind.INCONSISTENT_OFFSET if there else Kind.LOST_WRITE
                self.broken(kind, f"{value}, acknowledged at offset {offset}: {log[offset]} is there")

    def _audit_read(self, log: dict[int, object]) -> None:
        for offset, value in self.read.items():
            if offset >= self.deleted_before and log.get(offset) != value:
                self.broken(Kind.DIRTY_READ, f"{value} was read at {offset}, there is {log.get(offset)}")


def _from(log: MemoryLog, start: int) -> Iterable[tuple[int, int, object]]:
    return (record for record in log.records() if record[0] >= start)
