"""A sink that is handed offset ranges instead of records (Spark, and any engine that reads the log itself).

The runtime watches the topics' ends and calls `run_once`; the task plans, has its engine read the log and
commits in the target system, and answers with the positions that are durable there. The group's committed
offsets follow the answer, for lag tools only: the truth about the position stays in the target's table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from connect.api.calls import MaybeAwaitable
from kafka_client import TopicPartition


class OffsetRange(NamedTuple):
    """What a partition holds now: offsets from `start` (its log start) up to, without, `end`.

    `end` is the last stable offset, so that open transactions are not read.
    `topic_id` is the topic's uuid (16 bytes): a topic made again under the same name has another.
    """

    start: int
    end: int
    topic_id: bytes = bytes(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeSinkContext:
    """What the runtime tells a range sink task before `start`."""

    connector: str
    task_id: int
    group_id: str
    bootstrap_servers: str
    topics: tuple[str, ...]
    client_settings: Mapping[str, Any] = field(default_factory=dict)
    """Kafka consumer keys (`isolation.level`, `max.partition.fetch.bytes` ...) from worker and connector."""


class RangeSinkTask:
    """One coordinator per connector: subclass it and return it from `SinkConnector.task_class`.

    Calls come one at a time: `start(config)`, then `run_once(...)` again and again, then `stop()`.
    Methods may be plain or async; plain ones run in a thread of the task's own.
    """

    context: RangeSinkContext

    def start(self, config: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Open the target; `self.context` is set. `config` is the connector's, unparsed."""

    def run_once(
        self, ends: Mapping[TopicPartition, OffsetRange]
    ) -> MaybeAwaitable[Mapping[TopicPartition, int]]:
        """Bring the target towards `ends`, as far as it likes; return its durable next offset per partition.

        Called every `poll.interval.ms` (connector key, default 1000) with all partitions of all topics, also
        when nothing is new. The position to start from is the target's, never remembered from the last call.
        Raise RetriableError to be called again after a backoff; anything else fails the task.
        """
        raise NotImplementedError

    def statistics(self) -> Mapping[str, float]:
        """See `SourceTask.statistics`."""
        return {}

    def stop(self) -> MaybeAwaitable[None]:
        """Release what `start` opened; also called after a failure."""
