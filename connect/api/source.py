"""Sources: a connector that plans tasks, tasks that poll.

    connector.start(config) -> connector.task_configs(n) -> one task per returned dict
    task.start(config) -> task.poll() ... -> task.stop()

Methods may be plain or async. Plain ones run in a thread of the task's own, one call at a time, so they may
block; async ones run on the worker's loop and must not. A task's `stop` alone comes from another thread while
a plain `poll` (or `start`) blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from connect.api.batch_source import BatchSourceTask
from connect.api.calls import MaybeAwaitable
from connect.api.records import SourceRecord
from connect.api.source_context import OffsetReader as OffsetReader
from connect.api.source_context import SourceTaskContext as SourceTaskContext
from connect.config import Config
from kafka_client import RecordMetadata


@dataclass(slots=True, kw_only=True)
class ConnectorContext:
    """The context that the runtime sets on a connector (source or sink) before `start`."""

    connector: str
    request_task_reconfiguration: Callable[[], None] = lambda: None
    """Have `task_configs` called again soon; tasks restart if its result differs. Thread-safe."""


class SourceTask:
    """Reads a part of the source. Subclass it."""

    context: SourceTaskContext

    def start(self, config: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Open the source and go to the position in `self.context.offsets`."""

    def poll(self) -> MaybeAwaitable[Sequence[SourceRecord] | None]:
        """Return the next records; None or empty if there are none now (the worker polls again soon).

        A `SourceBatch` is cheaper than a list where all records share a topic and a source partition.
        Order matters: offsets are committed in the order records were returned.
        """
        raise NotImplementedError

    def update_offsets(self) -> MaybeAwaitable[Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]] | None]:
        """Return source partitions with their offsets after skipped input, for sources that skip some.

        Called between two polls once every `offset.flush.interval.ms`, and at the end. An offset counts when
        everything returned so far from its partition is acknowledged. The name is that of KIP-910's
        updateOffsets, which no Kafka up to 4.4 has.
        """
        return None

    def commit(self) -> MaybeAwaitable[None]:
        """Acknowledge to the source, if it needs that; called after source offsets were committed."""

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> MaybeAwaitable[None]:
        """Take note that a polled record is in the log, or is left out (KIP-416).

        Called between polls, for each record of a poll in order, once all of them are acknowledged.
        `metadata` is the place of the record in the log; None if a transform dropped it, or if it failed and
        `errors.tolerance=all` left it out (KIP-779). A task that overrides this method is slower: the worker
        then follows single records instead of batches.
        """

    def statistics(self) -> Mapping[str, float]:
        """Return the task's open resources, queue sizes and bounds, by name.

        They are metrics of `kafka.connect:type=plugins`. The worker's loop calls this when metrics are
        requested, possibly while another method runs in its thread: return values from memory, and wait for
        nothing.
        """
        return {}

    def stop(self) -> MaybeAwaitable[None]:
        """Release what `start` opened; called once, also after a failure. No call follows.

        If a plain `poll` does not return soon, this method is called from another thread to interrupt it, as
        Kafka's SourceTask.stop documents (though Kafka 4.1 waits for `poll`). An error that `poll` raises
        then is ignored; records that it returns are sent. An async `poll` is cancelled at its `await`, and
        `stop` is called after it has ended.
        """


class SourceConnector:
    """Plans how a source is split over tasks. Subclass it and set `task_class` and `CONFIG`."""

    CONFIG: ClassVar[type[Config]] = Config
    """The typed declaration of the connector's settings: parsing, validation and docs come from it."""
    VERSION: ClassVar[str] = "0"
    task_class: ClassVar[type[SourceTask] | type[BatchSourceTask]]
    context: ConnectorContext

    def validate(self, config: Mapping[str, str]) -> MaybeAwaitable[Mapping[str, Sequence[str]] | None]:
        """Return the errors of each key that only the connector can find, as that a database refuses a user.

        Called on an object of its own before a config is accepted, once the declared settings are valid.
        `start` is not called before. It may block. None or no keys: the config is valid.
        """
        return None

    def start(self, config: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Take the connector's config; raise ConfigError or ConnectError if it cannot work.

        Called once on each object: a restart or a resume starts a new one.
        """
        self.config = dict(config)
        return None

    def task_configs(self, max_tasks: int) -> MaybeAwaitable[list[dict[str, str]]]:
        """Return at most `max_tasks` configs, one per task.

        By default one task gets the connector's config.
        """
        return [self.config]

    def check_target(self, config: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Reach the other system with this config, check credentials and permissions, and write nothing.

        `millstream connect dry-run` calls this method on a connector that is not started. Raise ConnectError
        for what would fail; return when a start would succeed. The default raises NotImplementedError: the
        command reports that the system was not checked.
        """
        raise NotImplementedError

    def exactly_once_support(self, config: Mapping[str, str]) -> bool | None:
        """Return True if tasks with this config give each row once after a restart from any stored offset.

        Called on an object that was not started, for `exactly.once.support=required` (KIP-618). No record may
        come before its offset covers it. False or None, for a connector that does not say, refuses the
        config.
        """
        return None

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        """Return True if tasks with this config use `SourceTaskContext.transactions` (KIP-618).

        Called on an object that was not started. False refuses `transaction.boundary=connector`.
        """
        return False

    def alter_offsets(
        self,
        config: Mapping[str, str],
        offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]],
    ) -> MaybeAwaitable[bool | None]:
        """Check the offsets that a user wants to set, before they are stored (KIP-875).

        `offsets` has source partitions with their new offsets, None for one to be deleted. Called on an
        object that was not started, while the connector is stopped. Raise ConnectError, and nothing is
        changed; raise NotImplementedError if offsets of this source cannot be altered. Return True if the
        worker's offsets are all that there is, or if this method altered those that the source keeps.
        """
        return None

    def stop(self) -> MaybeAwaitable[None]:
        """Release what `start` opened. Called also when the connector is paused, while its tasks wait."""
