"""A sink that gets offset ranges instead of records (Spark, and any engine that reads the log itself).

The runtime watches the topics' ends and calls `run_once`. The task plans, has its engine read the log,
commits in the target system and returns the positions that are durable there. The group's committed offsets
follow these positions, for lag tools only: the target's table has the position that counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from connect.api.calls import MaybeAwaitable
from kafka_client import TopicPartition


class OffsetRange(NamedTuple):
    """A partition's current offsets, from `start` (its log start) up to, but not including, `end`.

    `end` is the last stable offset, so that open transactions are not read.
    `topic_id` is the topic's uuid (16 bytes): a topic that was deleted and created again has another id.
    """

    start: int
    end: int
    topic_id: bytes = bytes(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeSinkContext:
    """The facts about its connector and worker that a range sink task gets before `start`."""

    connector: str
    task_id: int
    group_id: str
    bootstrap_servers: str
    topics: tuple[str, ...]
    client_settings: Mapping[str, Any] = field(default_factory=dict)
    """Kafka consumer keys (`isolation.level`, `max.partition.fetch.bytes` ...) from worker and connector."""


class RangeSinkTask:
    """The only task of a range sink connector: subclass it and set it as `SinkConnector.task_class`.

    Calls come one at a time: `start(config)`, then `run_once(...)` again and again, then `stop()`.
    Methods may be plain or async; plain ones run in a thread of the task's own.
    """

    context: RangeSinkContext

    def start(self, config: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Open the target; `self.context` is set. `config` is the connector's, unparsed."""

    def run_once(
        self, ends: Mapping[TopicPartition, OffsetRange]
    ) -> MaybeAwaitable[Mapping[TopicPartition, int]]:
        """Copy records towards `ends`, any number of them. Return the target's durable next offset per
        partition.

        Called every `poll.interval.ms` (connector key, default 1000) with all partitions of all topics, also
        when there are no new records. Read the start position from the target at each call.
        Raise RetriableError to be called again after a backoff; anything else fails the task.
        """
        raise NotImplementedError

    def statistics(self) -> Mapping[str, float]:
        """See `SourceTask.statistics`."""
        return {}

    def stop(self) -> MaybeAwaitable[None]:
        """Release what `start` opened; also called after a failure."""
