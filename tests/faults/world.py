"""Promises to a broker's clients, and what the clients may find after the machine has lost its power."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from kafka_client.records import NewRecord

TIMESTAMP = 1_700_000_000_000
"""Timestamp of every record, so that retention deletes none."""


class Broken(AssertionError):
    """A promise is."""


class Where(NamedTuple):
    """A partition of one topic, whose name another topic may have later."""

    topic: Topic
    index: int

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.index} ({self.topic.number})"


@dataclasses.dataclass(eq=False)
class Topic:
    """`partitions` and `configs` are those acknowledged, `asked_*` those on their way; `topic_id` is None
    until the broker has told it. `there` is None while nobody knows.
    """

    number: int
    name: str
    partitions: int
    configs: dict[str, str]
    topic_id: bytes | None = None
    there: bool | None = None
    asked_partitions: int = 0
    asked_configs: dict[str, str] | None = None
    busy: int = 0
    """Requests under way that name it; it is deleted when there are none."""


class Outcome(Enum):
    """State of a transaction; `WANTED` states are for an end that was requested and not acknowledged."""

    OPEN = "open"
    COMMIT_WANTED = "commit wanted"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclasses.dataclass(eq=False)
class Transaction:
    """`records` are those acknowledged, `group` is whose `offsets` it commits."""

    transactional_id: str
    group: str
    outcome: Outcome = Outcome.OPEN
    values: set[bytes] = dataclasses.field(default_factory=set)
    records: dict[Where, dict[int, bytes]] = dataclasses.field(default_factory=dict)
    offsets: dict[Where, int] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return f"a transaction of {self.transactional_id}, {self.outcome.value}"


@dataclasses.dataclass(eq=False)
class Part:
    """A partition's records: `acknowledged` by offset, `sent` all there ever were, `seen` by consumers.

    `start_asked` is the largest offset DeleteRecords was asked for.
    """

    acknowledged: dict[int, bytes | None] = dataclasses.field(default_factory=dict)
    sent: set[bytes] = dataclasses.field(default_factory=set)
    reads: dict[int, bytes | None] = dataclasses.field(default_factory=dict)
    start_asked: int = 0


@dataclasses.dataclass(eq=False)
class Committed:
    """A group's committed offsets of a partition, in order; those from index `promised` on may be read."""

    offsets: list[int] = dataclasses.field(default_factory=list)
    promised: int = -1


class World:
    """`durable` says whether all is flushed before it is acknowledged."""

    def __init__(self, rng: random.Random, *, durable: bool) -> None:
        self.rng = rng
        self.durable = durable
        self.topics: list[Topic] = []
        self.parts: dict[Where, Part] = {}
        self.transactions: list[Transaction] = []
        self.by_value: dict[bytes, Transaction] = {}
        self.committed: dict[tuple[str, Where], Committed] = {}
        self.producers: set[tuple[int, int]] = set()
        self.internal: dict[str, bytes] = {}
        """Ids of the coordinators' topics."""
        self.owners: dict[int, str] = {}
        self.broker_configs: list[str] = [""]
        """Values that `message.max.bytes` was set to; all but the first are still possible."""
        self.unsure: dict[str, tuple[Where, bytes, bytes]] = {}
        """By writer, a batch of an idempotent producer that was not acknowledged, and its value."""
        self.reads: dict[tuple[Where, int, int], bytes | None] = {}
        """Values that were read in any life, by leader epoch and offset."""
        self.values = 0
        self.acknowledgements = 0

    # What there is

    @property
    def known_topics(self) -> list[Topic]:
        """Topics that are there for sure, with nobody at them who would not have others there."""
        return [topic for topic in self.topics if topic.there]

    def any_part(self) -> Where | None:
        """Return a partition of a known topic, None if there is none."""
        topics = self.known_topics
        if not topics:
            return None
        topic = self.rng.choice(topics)
        return Where(topic, self.rng.randrange(topic.partitions))

    def part(self, where: Where) -> Part:
        """Return what is known of a partition."""
        return self.parts.setdefault(where, Part())

    def commits(self, group: str, where: Where) -> Committed:
        """Return what is known of a group's offset."""
        return self.committed.setdefault((group, where), Committed())

    # What is done

    def offset(self, group: str, where: Where) -> int:
        """Return the offset that a group commits next, unlike any that it committed before.

        So the audit can tell it from one of an earlier topic of this name, which the broker forgets some
        time.
        """
        before = [
            offset
            for (of_group, other), committed in self.committed.items()
            if of_group == group and other.topic.name == where.topic.name and other.index == where.index
            for offset in committed.offsets
        ]
        offset = max(before, default=0) + 1
        self.commits(group, where).offsets.append(offset)
        return offset

    def record(self, where: Where, transaction: Transaction | None = None) -> NewRecord:
        """Return a new record for a partition, unlike any other."""
        self.values += 1
        value = b"%d:" % self.values + b"x" * self.rng.randint(0, 400)
        self.part(where).sent.add(value)
        if transaction is not None:
            transaction.values.add(value)
            self.by_value[value] = transaction
        return TIMESTAMP, None, value, ()

    def identified(self, who: str, producer_id: int, epoch: int) -> None:
        """Note that a producer got its id and epoch. Raises Broken if another producer had them before."""
        if not self.durable and who.startswith("tx"):
            return  # what the coordinator knew of it may be lost
        if self.owners.setdefault(producer_id, who) != who or (producer_id, epoch) in self.producers:
            raise Broken(f"producer id {producer_id}, epoch {epoch} given to {who}, not for the first time")
        self.producers.add((producer_id, epoch))

    def read(self, where: Where, epoch: int, values: Mapping[int, bytes | None]) -> None:
        """Records of a leader epoch were read: offset and epoch together name one record for ever."""
        for offset, value in values.items():
            before = self.reads.setdefault((where, epoch, offset), value)
            if before != value:
                raise Broken(
                    f"{where}: offset {offset} of leader epoch {epoch} was {before!r:.20} and changed"
                )

    def open_transactions(self) -> Iterator[Transaction]:
        """Yield the transactions that may still be open."""
        return (one for one in self.transactions if one.outcome in (Outcome.OPEN, Outcome.COMMIT_WANTED))
