"""A task with its place in the cluster: the changelogs its stores have, and where those end."""

from __future__ import annotations

from dataclasses import dataclass

from logd.client import TopicPartition
from streams.runtime.task import Task


@dataclass(slots=True, eq=False)
class RunningTask:
    """By store, logged ones only: its changelog, how far that counts (the last commit), where it ends.

    Our next record must land at the end; the end is beyond the cut after a commit that broke off.
    """

    task: Task
    changelogs: dict[str, TopicPartition]
    cuts: dict[str, int]
    ends: dict[str, int]
