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
    """Of each logged store, by name: `changelogs` its partition, `cuts` the offset of the last commit (see
    `positions.Cut`), `ends` the partition's log end.

    The next record is expected at the log end. That lies beyond the cut while the changelog has records of a
    commit that broke off.
    """

    task: Task
    changelogs: dict[str, TopicPartition]
    cuts: dict[str, int]
    ends: dict[str, int]
    released: Callable[[Mapping[str, int]], None] = lambda checkpoints: None
    """Called once the task is closed, with the changelog offset that each store on the disk is as of."""
    restored: int = 0
    """Records of changelogs that its stores were restored from."""
    source_stores: Mapping[str, TopicPartition] = field(default_factory=dict)
    """Stores that are restored from an input, by name: what is committed of it says how far they are."""
    has_sent: bool = False
    """Whether something was sent for it since its last commit was begun, be it by a schedule."""
    process: Windowed = field(default_factory=Windowed)
    """How long its turns took that had records, s."""
    produced: Counter[str] = field(default_factory=Counter)
    """Records of its sinks that were acknowledged, by the cluster's names of the topics (KIP-846)."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """What kind of store each of the logged ones is."""
        return {name: self.task.stores[name].spec.kind for name in self.changelogs}

    @property
    def needed_from(self) -> Mapping[TopicPartition, int]:
        """Of changelogs whose stores know it, the offset before which they need nothing. Between commits."""
        stores = self.task.stores
        found = {tp: stores[name].needed_from for name, tp in self.changelogs.items()}
        return {tp: offset for tp, offset in found.items() if offset is not None}

    @property
    def needs_commit(self) -> bool:
        """Whether anything happened since its last commit."""
        return self.has_sent or self.task.needs_commit

    def checkpoints(self, positions: Mapping[TopicPartition, int]) -> dict[str, int]:
        """How far each store is with a commit of these positions."""
        return {**self.ends, **{name: positions[tp] for name, tp in self.source_stores.items()}}

    def close(self, *, clean: bool) -> None:
        """Close the task (see there), which is to run here no longer."""
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
