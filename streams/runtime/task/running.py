"""A task and the offsets of its changelogs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kafka_client import TopicPartition
from kafka_client.metrics.windowed import Windowed
from streams.runtime.task.task import Task


@dataclass(slots=True, eq=False)
class RunningTask:
    """A task that runs, and its changelogs by the names of their stores.

    `changelogs` has the partitions, `cuts` the offsets of the last commit (see `positions.Cut`), and `ends`
    the log ends. The next record is expected at the log end. The log end is after the cut while the changelog
    has records of a failed commit.
    """

    task: Task
    changelogs: dict[str, TopicPartition]
    cuts: dict[str, int]
    ends: dict[str, int]
    released: Callable[[Mapping[str, int]], None] = lambda checkpoints: None
    """Called once the task is closed, with the changelog offset of each store on the disk."""
    restored: int = 0
    """The number of changelog records from which the stores were restored."""
    source_stores: Mapping[str, TopicPartition] = field(default_factory=dict)
    """The inputs of stores that are restored from one, by store: their position is the store's too."""
    has_sent: bool = False
    """True if records were sent for the task, even by a schedule, since its last commit was begun."""
    process: Windowed = field(default_factory=Windowed)
    """The durations of turns that processed records, s."""
    produced: Counter[str] = field(default_factory=Counter)
    """The number of acknowledged records of its sinks, by the cluster's names of the topics (KIP-846)."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kinds of the logged stores, by store."""
        return {name: self.task.stores[name].spec.kind for name in self.changelogs}

    @property
    def needed_from(self) -> Mapping[TopicPartition, int]:
        """The offset before which a store needs no records of its changelog. Read it between commits."""
        stores = self.task.stores
        offsets = {tp: stores[name].needed_from for name, tp in self.changelogs.items()}
        return {tp: offset for tp, offset in offsets.items() if offset is not None}

    @property
    def needs_commit(self) -> bool:
        """True if anything happened since the last commit."""
        return self.has_sent or self.task.needs_commit

    def checkpoints(self, positions: Mapping[TopicPartition, int]) -> dict[str, int]:
        """Return the offset of each store's state after a commit of these positions."""
        return {**self.ends, **{name: positions[tp] for name, tp in self.source_stores.items()}}

    def close(self, *, clean: bool) -> None:
        """Close the task, and pass the offsets of its stores to `released`; see `Task.close`."""
        backends = {name: self.task.stores[name].backend for name in (*self.changelogs, *self.source_stores)}
        try:
            self.task.close(clean=clean)
        finally:
            self.released({name: each.checkpoint or 0 for name, each in backends.items()})


def close_all(tasks: Iterable[RunningTask], *, clean: bool) -> None:
    """Close all of these tasks, then raise the first one's error, if any. Blocks: run it in the worker."""
    failure: Exception | None = None
    for running in tasks:
        try:
            running.close(clean=clean)
        except Exception as error:
            failure = failure or error
    if failure is not None:
        raise failure
