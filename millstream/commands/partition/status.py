"""The status of partitions: with a leader or not, in sync or not, by the rules of kafka-topics.sh.

One rule is the brokers' instead: a partition with fewer replicas than `min.insync.replicas` needs only all of
them in sync.

The status is computed from the cluster's metadata, the topics' `min.insync.replicas` and the moves under way:
a replica that is still being added is not missed. The commands choose what to show.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_client import ConfigEntry, OngoingReassignment, PartitionMetadata, TopicMetadata, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError
from millstream.terminal.session import Session

MIN_ISR = "min.insync.replicas"
UNKNOWN_MOVES = (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


@dataclass(frozen=True, slots=True)
class Standing:
    """The status of a partition. `factor`: its replication factor; `min_isr`: None if unknown."""

    tp: TopicPartition
    partition: PartitionMetadata
    factor: int
    min_isr: int | None
    is_led: bool
    """True if the partition has a leader on a live broker."""

    @property
    def is_under_replicated(self) -> bool:
        """True if fewer replicas are in sync than the replication factor."""
        return len(self.partition.isr) < self.factor

    @property
    def required_in_sync(self) -> int | None:
        """The number of in-sync replicas that acks=all needs, None if unknown.

        Brokers never require more than the number of replicas (KAFKA-15583).
        """
        return None if self.min_isr is None else min(self.min_isr, len(self.partition.replicas))

    @property
    def is_under_min_isr(self) -> bool:
        """True if producers with acks=all are refused."""
        required = self.required_in_sync
        return self.partition.leader < 0 or (required is not None and len(self.partition.isr) < required)

    @property
    def is_at_min_isr(self) -> bool:
        """True if producers with acks=all would be refused with one in-sync replica less."""
        return len(self.partition.isr) == self.required_in_sync

    @property
    def is_led_as_preferred(self) -> bool:
        """True if the first replica leads."""
        return self.partition.leader in self.partition.replicas[:1]


async def read_standings(session: Session, topics: Mapping[str, TopicMetadata]) -> list[Standing]:
    """Return the status of each partition of these topics, ordered by topic and index."""
    tps = [TopicPartition(name, index) for name, topic in topics.items() for index in topic.partitions]
    configs = await session.admin.describe_topics_configs(topics, keys=(MIN_ISR,))
    alive = (await session.client.metadata((), refresh=True)).brokers
    return standings(topics, configs, await moves_under_way(session, tps), alive)


async def moves_under_way(
    session: Session, tps: Iterable[TopicPartition]
) -> Mapping[TopicPartition, OngoingReassignment]:
    """Return the moves under way; none if brokers are older than Kafka 2.4 or refuse to list them."""
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
    """Compute the status of each partition from metadata, settings and moves, ordered by topic and index."""
    result = []
    for name, topic in sorted(topics.items()):
        min_isr = _min_isr(configs.get(name))
        for index, partition in sorted(topic.partitions.items()):
            tp = TopicPartition(name, index)
            factor = replication_factor(partition.replicas, moves.get(tp))
            result.append(Standing(tp, partition, factor, min_isr, partition.leader in alive))
    return result


def _min_isr(configs: Mapping[str, ConfigEntry] | KafkaError | None) -> int | None:
    entry = None if configs is None or isinstance(configs, KafkaError) else configs.get(MIN_ISR)
    return int(entry.value) if entry is not None and entry.value else None


def replication_factor(replicas: Sequence[int], move: OngoingReassignment | None) -> int:
    """Return the number of replicas without those that a move is adding. A move that has ended is ignored."""
    if move is None or not {*move.adding, *move.removing} & {*replicas}:
        return len(replicas)
    return len(move.replicas) - len(move.adding)
