"""The choice of a member for each task: even loads, with as few moves as possible. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from streams.runtime.task_id import TaskId


class Holder(Protocol):
    """A member: its active tasks, and the lag of each state that it has."""

    @property
    def active(self) -> frozenset[TaskId]: ...

    @property
    def lags(self) -> Mapping[TaskId, int]: ...


def balance(
    tasks: Iterable[TaskId], sizes: Mapping[TaskId, int], members: Mapping[str, Holder]
) -> dict[TaskId, str]:
    """Return the member of every task. Members' numbers of tasks differ by at most one.

    The same holds for their numbers of tasks with state, which are the keys of ``sizes``. A task stays where
    it runs, else goes to the member with the lowest lag, else to the member with the fewest tasks. Each
    sub-topology is spread over the members as far as that needs no moves, because its tasks have equal loads.
    """
    loads = _Loads(sorted(members))
    placed: dict[TaskId, str] = {}
    every = sorted(set(tasks))
    for part in ([task for task in every if task in sizes], [task for task in every if task not in sizes]):
        loads.make_room(part)
        for even in (True, False):  # Members with too many tasks lose those of their largest sub-topology.
            for task in part:
                if task not in placed:
                    runs_at = [name for name in loads.names if task in members[name].active]
                    may_keep = [name for name in runs_at if not even or loads.is_below_share(name, task)]
                    _give_first(task, may_keep, loads, placed)
        for task in part:
            if task not in placed:
                has_state = [name for name in loads.names if task in members[name].lags]
                has_state.sort(key=lambda name: members[name].lags[task])
                _give_first(task, has_state, loads, placed)
        for task in part:
            if task not in placed:
                loads.give(task, loads.least(task), placed)
    return placed


def _give_first(task: TaskId, names: Iterable[str], loads: _Loads, placed: dict[TaskId, str]) -> None:
    """Assign the task to the first of these members that has room, if any."""
    name = next((name for name in names if loads.has_room(name)), None)
    if name is not None:
        loads.give(task, name, placed)


class _Loads:
    """The number of tasks of each member, and its limit."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._counts = dict.fromkeys(names, 0)
        self._of_subtopology: dict[tuple[str, int], int] = {}
        self._shares: dict[int, int] = {}
        self._total = 0

    def make_room(self, tasks: Collection[TaskId]) -> None:
        """Raise the limits for these tasks, which are placed next."""
        self._total += len(tasks)
        sizes = Counter(task.subtopology for task in tasks)
        self._shares = {subtopology: -(-size // len(self.names)) for subtopology, size in sizes.items()}
        self._least, self._extra = divmod(self._total, len(self.names))
        self._above = sum(count > self._least for count in self._counts.values())

    def has_room(self, name: str) -> bool:
        count = self._counts[name]
        return count < self._least or (count == self._least and self._above < self._extra)

    def is_below_share(self, name: str, task: TaskId) -> bool:
        """Return True if the member has less than its share of the task's sub-topology."""
        return self._of_subtopology.get((name, task.subtopology), 0) < self._shares[task.subtopology]

    def least(self, task: TaskId) -> str:
        """Return the member with room that has the fewest tasks."""
        return min(
            (name for name in self.names if self.has_room(name)),
            key=lambda name: (
                self._counts[name],
                self._of_subtopology.get((name, task.subtopology), 0),
                name,
            ),
        )

    def give(self, task: TaskId, name: str, placed: dict[TaskId, str]) -> None:
        placed[task] = name
        self._above += self._counts[name] == self._least
        self._counts[name] += 1
        part = name, task.subtopology
        self._of_subtopology[part] = self._of_subtopology.get(part, 0) + 1
