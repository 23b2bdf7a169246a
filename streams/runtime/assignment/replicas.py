"""The choice of members for standby tasks (`num.standby.replicas`). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from streams.runtime.task_id import TaskId


class Keeper(Protocol):
    """A member: its active and standby tasks, and the lag of each state that it has."""

    @property
    def active(self) -> frozenset[TaskId]: ...

    @property
    def standby(self) -> frozenset[TaskId]: ...

    @property
    def lags(self) -> Mapping[TaskId, int]: ...


def place_standbys(
    runs_at: Mapping[TaskId, str], sizes: Mapping[TaskId, int], members: Mapping[str, Keeper], count: int
) -> dict[TaskId, list[str]]:
    """Return ``count`` members for each task with state, or all others if there are fewer.

    None of them runs the task. A member that already has or runs the task is preferred, then the one with the
    lowest lag, unless it would have more than its share of tasks with state.
    """
    count = min(count, len(members) - 1)
    loads = dict.fromkeys(members, 0)
    for task in sizes:
        loads[runs_at[task]] += 1
    share = -(-len(sizes) * (1 + count) // len(members))
    placed: dict[TaskId, list[str]] = {task: [] for task in sorted(sizes)}
    for _ in range(count):
        for task, names in placed.items():
            others = (name for name in members if name != runs_at[task] and name not in names)
            name = min(
                others,
                key=lambda name: (
                    loads[name] >= share,
                    task not in members[name].standby and task not in members[name].active,
                    members[name].lags.get(task, sizes[task]),
                    loads[name],
                    name,
                ),
            )
            names.append(name)
            loads[name] += 1
    return placed
