"""Which member each task is to run on: even loads, with as few moves as that allows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from streams.runtime.task_id import TaskId


class Holder(Protocol):
    """What counts of a member."""

    @property
    def active(self) -> frozenset[TaskId]: ...

    @property
    def lags(self) -> Mapping[TaskId, int]: ...


def balance(
    tasks: Iterable[TaskId], sizes: Mapping[TaskId, int], members: Mapping[str, Holder]
) -> dict[TaskId, str]:
    """The member of every task. Numbers of tasks differ by at most one, and so do those of tasks with state
    (``sizes`` has these).

    A task stays where it runs, else goes where its state is least behind, else to the member with the fewest.
    Tasks of one sub-topology weigh alike, so each is spread, as far as that moves nothing more.
    """
    loads = _Loads(sorted(members))
    given: dict[TaskId, str] = {}
    every = sorted(set(tasks))
    for part in ([task for task in every if task in sizes], [task for task in every if task not in sizes]):
        loads.make_room(part)
        for even in (True, False):  # Of members that have too many, those of which they have most go.
            for task in part:
                if task not in given:
                    runs_at = [name for name in loads.names if task in members[name].active]
                    may_keep = [name for name in runs_at if not even or loads.is_below_share(name, task)]
                    _give_first(task, may_keep, loads, given)
        for task in part:
            if task not in given:
                has_state = [name for name in loads.names if task in members[name].lags]
                has_state.sort(key=lambda name: members[name].lags[task])
                _give_first(task, has_state, loads, given)
        for task in part:
            if task not in given:
                loads.give(task, loads.least(task), given)
    return given


def _give_first(task: TaskId, names: Iterable[str], loads: _Loads, given: dict[TaskId, str]) -> None:
    """Give the task to the first of these that has room, if any has."""
    name = next((name for name in names if loads.has_room(name)), None)
    if name is not None:
        loads.give(task, name, given)


class _Loads:
    """How many tasks each member has, and how many it may have."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._counts = dict.fromkeys(names, 0)
        self._of_subtopology: dict[tuple[str, int], int] = {}
        self._shares: dict[int, int] = {}
        self._total = 0

    def make_room(self, tasks: Collection[TaskId]) -> None:
        """These tasks are about to be given."""
        self._total += len(tasks)
        sizes = Counter(task.subtopology for task in tasks)
        self._shares = {subtopology: -(-size // len(self.names)) for subtopology, size in sizes.items()}
        self._least, self._extra = divmod(self._total, len(self.names))
        self._above = sum(count > self._least for count in self._counts.values())

    def has_room(self, name: str) -> bool:
        held = self._counts[name]
        return held < self._least or (held == self._least and self._above < self._extra)

    def is_below_share(self, name: str, task: TaskId) -> bool:
        """Whether the member has less than its share of the task's sub-topology."""
        return self._of_subtopology.get((name, task.subtopology), 0) < self._shares[task.subtopology]

    def least(self, task: TaskId) -> str:
        """A member with room that has the fewest."""
        return min(
            (name for name in self.names if self.has_room(name)),
            key=lambda name: (
                self._counts[name],
                self._of_subtopology.get((name, task.subtopology), 0),
                name,
            ),
        )

    def give(self, task: TaskId, name: str, given: dict[TaskId, str]) -> None:
        given[task] = name
        self._above += self._counts[name] == self._least
        self._counts[name] += 1
        part = name, task.subtopology
        self._of_subtopology[part] = self._of_subtopology.get(part, 0) + 1
