"""`StateRestoreListener`, and the notification of an application's listeners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_client import TopicPartition
from streams.runtime.restore.restore import StoreRestore


class StateRestoreListener:
    """A listener to the restores of tasks that are about to run here, as in Kafka Streams.

    Override the methods you need. They are called in the event loop; an error that they raise ends the
    application. They are also called for a store that has nothing to restore.
    """

    def on_restore_start(
        self, tp: TopicPartition, store: str, starting_offset: int, ending_offset: int
    ) -> None:
        """Handle the start of a restore from ``starting_offset`` of changelog ``tp`` to ``ending_offset``."""

    def on_batch_restored(
        self, tp: TopicPartition, store: str, batch_end_offset: int, num_restored: int
    ) -> None:
        """Handle ``num_restored`` applied records; ``batch_end_offset`` is the next offset to read."""

    def on_restore_end(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        """Handle a restored store, which has the state of its task's last commit."""

    def on_restore_suspended(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        """Handle an interrupted restore: the task moved away, the application ends, or an error occurred.

        The records restored so far stay on the disk.
        """


class RestoreListeners:
    """The listeners of an application. `total` counts the records restored by all tasks."""

    def __init__(self) -> None:
        self.listeners: list[StateRestoreListener] = []
        self.total = 0

    def started(self, restores: Mapping[TopicPartition, StoreRestore]) -> None:
        """Report the start of a task's restores."""
        for tp, each in restores.items():
            for listener in self.listeners:
                listener.on_restore_start(tp, each.store.name, each.position, each.end)

    def applied(self, tp: TopicPartition, restore: StoreRestore, records: int) -> None:
        """Report an applied batch."""
        self.total += records
        for listener in self.listeners:
            listener.on_batch_restored(tp, restore.store.name, min(restore.position, restore.end), records)

    def ended(self, restores: Mapping[TopicPartition, StoreRestore]) -> None:
        """Report the end of a task's restores."""
        for tp, each in restores.items():
            for listener in self.listeners:
                listener.on_restore_end(tp, each.store.name, each.restored)

    def suspended(self, restores: Mapping[TopicPartition, StoreRestore]) -> None:
        """Report the interruption of a task's restores."""
        for tp, each in restores.items():
            for listener in self.listeners:
                listener.on_restore_suspended(tp, each.store.name, each.restored)


def progress(restores: Iterable[StoreRestore]) -> dict[str, int]:
    """Return the progress of a task: records ``restored``, and changelog offsets ``remaining``."""
    each = list(restores)
    return {
        "restored": sum(restore.restored for restore in each),
        "remaining": sum(restore.remaining for restore in each),
    }
