"""How partitions stand: led or not, in sync or not, by the rules of kafka-topics.sh.

One rule is the brokers' instead: a partition with fewer replicas than `min.insync.replicas` needs all of them
in sync, and no more.

What is read of a cluster is its metadata, `min.insync.replicas` of its topics, and the moves under way: a
replica that is still being added is not missed. What of it is shown is left to the commands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kafka_client import ConfigEntry, OngoingReassignment, PartitionMetadata, TopicMetadata, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError
from millstream.terminal.session import Session

MIN_ISR = "min.insync.replicas"
UNKNOWN_MOVES = (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


@dataclass(frozen=True, slots=True)
class Standing:
    """A partition. `factor`: how many replicas there are to be; `min_isr` None: the topic does not say."""

    tp: TopicPartition
    partition: PartitionMetadata
    factor: int
    min_isr: int | None
    is_led: bool
    """Whether it has a leader, on a broker that is alive."""

    @property
    def is_under_replicated(self) -> bool:
        """Less replicas are in sync than there are to be."""
        return len(self.partition.isr) < self.factor

    @property
    def required_in_sync(self) -> int | None:
        """Return how many in-sync replicas acks=all needs, None if that is unknown.

        Brokers ask for no more than there are replicas (KAFKA-15583).
        """
        return None if self.min_isr is None else min(self.min_isr, len(self.partition.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        """Producers with acks=all are refused."""
        required = self.required_in_sync
        return self.partition.leader < 0 or (required is not None and len(self.partition.isr) < required)

    @property
    def is_at_min_isr(self) -> bool:
        """With one replica less in sync they would be."""
        return len(self.partition.isr) == self.required_in_sync

    @property
    def is_led_as_preferred(self) -> bool:
        """Its first replica leads."""
        return self.partition.leader in self.partition.replicas[:1]


async def read_standings(session: Session, topics: Mapping[str, TopicMetadata]) -> list[Standing]:
    """How each partition of these topics stands, in order."""
    known = [TopicPartition(name, index) for name, topic in topics.items() for index in topic.partitions]
    configs = await session.admin.describe_topics_configs(topics, keys=(MIN_ISR,))
    alive = (await session.client.metadata((), refresh=True)).brokers
    return standings(topics, configs, await _moves(session, known), alive)


async def _moves(
    session: Session, tps: Iterable[TopicPartition]
) -> Mapping[TopicPartition, OngoingReassignment]:
    """None where brokers know of no moves (before Kafka 2.4), or do not tell us."""
    try:
        return await session.admin.list_partition_reassignments(tps)
    except KafkaError as error:
        if error.code in UNKNOWN_MOVES:
            return {}
        raise


def standings(
    topics: Mapping[str, TopicMetadata],
    configs: Mapping[str, Mapping[str, ConfigEntry] | KafkaError],
    moves: Mapping[TopicPartition, OngoingReassignment],
    alive: Collection[int],
) -> list[Standing]:
    """The same, of what was read."""
    found = []
    for name, topic in sorted(topics.items()):
        min_isr = _min_isr(configs.get(name))
        for index, partition in sorted(topic.partitions.items()):
            tp = TopicPartition(name, index)
            factor = _factor(partition, moves.get(tp))
            found.append(Standing(tp, partition, factor, min_isr, partition.leader in alive))
    return found


def _min_isr(configs: Mapping[str, ConfigEntry] | KafkaError | None) -> int | None:
    entry = None if configs is None or isinstance(configs, KafkaError) else configs.get(MIN_ISR)
    return int(entry.value) if entry is not None and entry.value else None


def _factor(partition: PartitionMetadata, move: OngoingReassignment | None) -> int:
    """A move that has ended meanwhile counts no more."""
    if move is None or not {*move.adding, *move.removing} & {*partition.replicas}:
        return len(partition.replicas)
    return len(move.replicas) - len(move.adding)
