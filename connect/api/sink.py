"""Sinks: a connector that plans tasks, tasks that receive records.

    task.start(config) -> open(partitions) -> put(records) ... flush(offsets) ... close(partitions) -> stop()

Delivery is at least once: records put but not covered by a commit come again. A sink that writes under
names derived from topic, partition and offset makes it exactly once.

A task may be suspended (SIGSTOP, a suspended machine) while its partitions go to another task. When
resumed, it goes on in the middle of a call. The worker asks the group before each `flush` and after each
`open`. Where a late write would do harm, the target has to tell the two tasks apart: by a claim in `open`, as
FilesSink does, or by the position it keeps. A task that finds another one in its place raises
PartitionsFenced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from connect.api.calls import MaybeAwaitable
from connect.api.errant_records import ErrantRecordReporter
from connect.api.range_sink import RangeSinkTask
from connect.api.records import SinkRecord
from connect.api.source import ConnectorContext
from connect.config import Config
from kafka_client import TopicPartition


@dataclass(slots=True, kw_only=True)
class SinkTaskContext:
    """The context that the runtime sets on a sink task before `start`; any of its methods may use it."""

    connector: str
    task_id: int
    request_commit: Callable[[], None] = lambda: None
    """Commit after this `put` rather than at the next interval."""
    rewinds: dict[TopicPartition, int] = field(default_factory=dict)
    reporter: ErrantRecordReporter | None = None
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    """The id (16 bytes) of each topic of which records were put, set before the `put`.

    A topic that is deleted and made again has another one. A broker before Kafka 2.8 gives zeros.
    """
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    """The offset from which the records of this `put` were read, by partition.

    It is the committed one in `open`, if there is one, and later the one after the last put. Compaction may
    have removed the record there.
    """

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Go on from these offsets (from the target's own record of what it holds) instead of the group's."""
        self.rewinds.update(offsets)

    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """Return the reporter of records that cannot be written (KIP-610).

        None if the connector has neither a dead letter queue nor `errors.log.enable`, as in Kafka.
        """
        return self.reporter


class SinkTask:
    """Writes records to the target. Subclass it."""

    context: SinkTaskContext

    def start(self, config: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Open the target."""

    def open(self, partitions: Collection[TopicPartition]) -> MaybeAwaitable[None]:
        """Prepare for partitions assigned to this task. They may be taken away before the first `put`.

        Called again for the partitions that the task still owns after it raised PartitionsFenced.
        """

    def put(self, records: Sequence[SinkRecord]) -> MaybeAwaitable[None]:
        """Take records, in offset order per partition. RetriableError: the worker retries after a backoff."""
        raise NotImplementedError

    def flush(self, offsets: Mapping[TopicPartition, int]) -> MaybeAwaitable[None]:
        """Make everything put so far durable.

        `offsets` is the next offset per partition; before a revocation, only of the revoked partitions.
        """

    def pre_commit(
        self, offsets: Mapping[TopicPartition, int]
    ) -> MaybeAwaitable[Mapping[TopicPartition, int] | None]:
        """Return the offsets that may be committed. None, the default, flushes and commits `offsets`.

        Before a revocation, `offsets` has only the revoked partitions.
        """
        return None

    def close(self, partitions: Collection[TopicPartition]) -> MaybeAwaitable[None]:
        """Release partitions. Before an ordinary revocation the worker flushes and commits.

        No commit comes first after PartitionsFenced, for lost partitions, or if the last flush fails.
        """

    def statistics(self) -> Mapping[str, float]:
        """See `SourceTask.statistics`."""
        return {}

    def stop(self) -> MaybeAwaitable[None]:
        """Release what `start` opened; called once, also after a failure."""


class SinkConnector:
    """Plans how a sink is split over tasks. Subclass it and set `task_class` and `CONFIG`."""

    CONFIG: ClassVar[type[Config]] = Config
    VERSION: ClassVar[str] = "0"
    task_class: ClassVar[type[SinkTask] | type[RangeSinkTask]]
    context: ConnectorContext

    def validate(self, config: Mapping[str, str]) -> MaybeAwaitable[Mapping[str, Sequence[str]] | None]:
        """Return the errors of each key that only the connector can find, as that a database refuses a user.

        Called on an object of its own before a config is accepted, once the declared settings are valid.
        `start` is not called before. It may block. None or no keys: the config is valid.
        """
        return None

    def start(self, config: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Take the connector's config; raise ConfigError or ConnectError if it cannot work."""
        self.config = dict(config)
        return None

    def task_configs(self, max_tasks: int) -> MaybeAwaitable[list[dict[str, str]]]:
        """Return one config per task; the group divides the topics' partitions among the tasks.

        A connector of a RangeSinkTask has one task.
        """
        if issubclass(self.task_class, RangeSinkTask):
            return [self.config]
        return [dict(self.config) for _ in range(max_tasks)]

    def check_target(self, config: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Reach the other system with this config, check credentials and permissions, and write nothing.

        `millstream connect dry-run` calls this method on a connector that is not started. Raise ConnectError
        for what would fail; return when a start would succeed. The default raises NotImplementedError: the
        command reports that the system was not checked.
        """
        raise NotImplementedError

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> MaybeAwaitable[bool | None]:
        """Check the offsets that a user wants to set, before the group's are altered (KIP-875).

        `offsets` has the next record's offset per partition, None for one to be deleted. Called on an object
        that was not started, while the connector is stopped. Raise ConnectError, and nothing is changed;
        raise NotImplementedError if offsets of this sink cannot be altered. Return True if the group's
        offsets are all that there is, or if this method altered those that the target keeps.
        """
        return None

    def stop(self) -> MaybeAwaitable[None]:
        """Release what `start` opened."""
