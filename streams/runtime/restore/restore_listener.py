"""Hearing of restores: `StateRestoreListener`, and who tells the listeners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_client import TopicPartition
from streams.runtime.restore.restore import StoreRestore


class StateRestoreListener:
    """Told how stores of tasks that begin here are restored, as Kafka Streams' listener of that name.

    Override what you want to hear. Called in the event loop; what a method raises ends the application.

    A store that has nothing to be restored is told of too: it starts and ends where it is.
    """

    def on_restore_start(
        self, tp: TopicPartition, store: str, starting_offset: int, ending_offset: int
    ) -> None:
        """The changelog ``tp`` is to be read from ``starting_offset`` to before ``ending_offset``."""

    def on_batch_restored(
        self, tp: TopicPartition, store: str, batch_end_offset: int, num_restored: int
    ) -> None:
        """So many records were applied; the changelog is read up to before ``batch_end_offset``."""

    def on_restore_end(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        """The store is as it was at its task's last commit."""

    def on_restore_suspended(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        """The restore was broken off: the task went elsewhere, or the application ends, or an error came in
        between. What was restored stays on the disk.
        """


class RestoreListeners:
    """The listeners of an application. ``total``: records restored by all tasks so far."""

    def __init__(self) -> None:
        self.listeners: list[StateRestoreListener] = []
        self.total = 0

    def started(self, restores: Mapping[TopicPartition, StoreRestore]) -> None:
        """A task's restore begins."""
        for tp, each in restores.items():
            for listener in self.listeners:
                listener.on_restore_start(tp, each.store.name, each.position, each.end)

    def came(self, tp: TopicPartition, restore: StoreRestore, records: int) -> None:
        """A batch was applied."""
        self.total += records
        for listener in self.listeners:
            listener.on_batch_restored(tp, restore.store.name, min(restore.position, restore.end), records)

    def ended(self, restores: Mapping[TopicPartition, StoreRestore]) -> None:
        """A task's restore is complete."""
        for tp, each in restores.items():
            for listener in self.listeners:
                listener.on_restore_end(tp, each.store.name, each.restored)

    def suspended(self, restores: Mapping[TopicPartition, StoreRestore]) -> None:
        """A task's restore was broken off."""
        for tp, each in restores.items():
            for listener in self.listeners:
                listener.on_restore_suspended(tp, each.store.name, each.restored)


def progress(restores: Iterable[StoreRestore]) -> dict[str, int]:
    """How far a task is: records ``restored``, and offsets ``remaining`` of its changelogs."""
    each = list(restores)
    return {
        "restored": sum(restore.restored for restore in each),
        "remaining": sum(restore.remaining for restore in each),
    }
