"""Compares a topic with its copy: finds how to compare them, reads both sides, and gathers the results.

The committed records of both topics, up to their ends at the start, are read at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from kafka_client import Admin, Client, TopicPartition
from kafka_client.errors import KafkaError
from mirror.verify.comparison import ComparedBy, PartitionComparison, Side, TopicComparison
from mirror.verify.digest import PartitionDigest
from mirror.verify.in_order import compare_in_order
from mirror.verify.latest import compare_latest
from mirror.verify.pace import Pace
from mirror.verify.reading import Bounds, SideReader


async def verify_topic(
    source: Client, target: Client, topic: str, target_topic: str, *, pace: Pace | None = None
) -> TopicComparison:
    """Compare a topic of one cluster with a topic of another (or of the same).

    Partitions that only one side has count as empty on the other. Raises KafkaError if a topic is missing.
    """
    verification = await TopicVerification.open(source, target, topic, target_topic, pace=pace)
    return await verification.compare()


class TopicVerification:
    """The comparison of one topic with its copy. Call `open`, then `compare` once."""

    def __init__(
        self, source: SideReader, target: SideReader, topics: tuple[str, str], by: ComparedBy
    ) -> None:
        self.compared_by = by
        self._source, self._target = source, target
        self._topics = topics
        self._partitions: set[int] = set()
        self._source_bounds: Bounds = {}
        self._target_bounds: Bounds = {}

    @classmethod
    async def open(
        cls,
        source: Client,
        target: Client,
        topic: str,
        target_topic: str,
        *,
        by: ComparedBy | None = None,
        pace: Pace | None = None,
    ) -> Self:
        """Ask both clusters where the topics begin and end.

        Without `by` topics are compared by latest values if one of them is compacted. `pace` bounds what is
        read from both clusters together. Raises KafkaError if a topic is missing.
        """
        pace = pace or Pace()
        readers = SideReader(Side.SOURCE, source, pace), SideReader(Side.TARGET, target, pace)
        ours, theirs = await asyncio.gather(_partitions(source, topic), _partitions(target, target_topic))
        if by is None:
            compacted = await _is_compacted(source, topic) or await _is_compacted(target, target_topic)
            by = ComparedBy.LATEST if compacted else ComparedBy.RECORDS
        verification = cls(*readers, (topic, target_topic), by)
        verification._partitions = ours | theirs
        verification._source_bounds, verification._target_bounds = await asyncio.gather(
            _bounds(readers[0], topic, ours, theirs), _bounds(readers[1], target_topic, theirs, ours)
        )
        return verification

    @property
    def offsets(self) -> int:
        """Number of offsets to read, on both sides together, if no partition has too many keys."""
        bounds = [*self._source_bounds.values(), *self._target_bounds.values()]
        return sum(end - start for start, end in bounds)

    async def compare(self, on_read: Callable[[int], None] | None = None) -> TopicComparison:
        """Read both sides and compare them. `on_read` is called with numbers of offsets that were passed."""
        if on_read is not None:
            self._source.on_read = self._target.on_read = on_read
        if self.compared_by is ComparedBy.RECORDS:
            compared = await compare_in_order(
                self._source, self._target, self._source_bounds, self._target_bounds
            )
        else:
            compared = await self._compare_latest()
        missing = self._partitions - {each.partition for each in compared}
        results = [*compared, *map(self._unknown, missing)]
        return TopicComparison(*self._topics, sorted(results, key=lambda each: each.partition))

    async def _compare_latest(self) -> list[PartitionComparison]:
        results = []
        for partition in sorted(self._partitions):
            ours, theirs = (TopicPartition(topic, partition) for topic in self._topics)
            if ours in self._source_bounds and theirs in self._target_bounds:
                bounds = self._source_bounds[ours], self._target_bounds[theirs]
                results.append(await compare_latest(self._source, self._target, (ours, theirs), bounds))
        return results

    def _unknown(self, partition: int) -> PartitionComparison:
        """Return the result of a partition that one side does not answer for."""
        empty = PartitionDigest().finish()
        unreadable = [
            each for side in (self._source, self._target) for each in side.unreadable.get(partition, [])
        ]
        return PartitionComparison(
            partition=partition,
            compared_by=self.compared_by,
            equal=None,
            source_digest=empty,
            target_digest=empty,
            source_records=0,
            target_records=0,
            equal_records=0,
            unreadable=unreadable,
        )


async def _partitions(client: Client, topic: str) -> set[int]:
    return set((await client.topic(topic, refresh=True)).partitions)


async def _bounds(reader: SideReader, topic: str, own: set[int], others: set[int]) -> Bounds:
    """Return the bounds of the side's partitions, and empty ones for those that only the other side has."""
    bounds = await reader.bounds(TopicPartition(topic, partition) for partition in sorted(own))
    return {**bounds, **{TopicPartition(topic, partition): (0, 0) for partition in others - own}}


async def _is_compacted(client: Client, topic: str) -> bool:
    described = (await Admin(client).describe_topics_configs([topic], keys=["cleanup.policy"]))[topic]
    if isinstance(described, KafkaError):
        raise described
    policy = described.get("cleanup.policy")
    return policy is not None and "compact" in (policy.value or "")
