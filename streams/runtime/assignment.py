"""Who gets which task: balanced first, then sticky. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streams.runtime.task import TaskId


@dataclass(frozen=True, slots=True)
class MemberState:
    """What a member says of itself: the tasks it runs, and those whose state lies on its disk."""

    running: frozenset[TaskId] = field(default_factory=frozenset)
    stored: frozenset[TaskId] = field(default_factory=frozenset)


def assign_tasks(tasks: Iterable[TaskId], members: Mapping[str, MemberState]) -> dict[str, list[TaskId]]:
    """Give every task to one member; numbers of tasks differ by at most one.

    A task stays where it runs, else goes where its state lies, else to the member with the fewest.
    """
    open_tasks = sorted(set(tasks))
    names = sorted(members)
    assigned: dict[str, list[TaskId]] = {name: [] for name in names}
    if not names:
        return assigned
    floor, extra = divmod(len(open_tasks), len(names))

    def has_room(name: str) -> bool:
        held = len(assigned[name])
        full = sum(len(each) > floor for each in assigned.values())
        return held < floor or (held == floor and full < extra)

    def give(wanted: str) -> None:
        for task in list(open_tasks):
            for name in names:
                if task in getattr(members[name], wanted) and has_room(name):
                    assigned[name].append(task)
                    open_tasks.remove(task)
                    break

    give("running")
    give("stored")
    for task in open_tasks:
        # Tasks of one sub-topology weigh alike: spread each evenly.
        assigned[min(names, key=lambda name: (not has_room(name), _same(assigned[name], task), name))].append(
            task
        )
    return {name: sorted(held) for name, held in assigned.items()}


def _same(held: list[TaskId], task: TaskId) -> tuple[int, int]:
    return len(held), sum(each.subtopology == task.subtopology for each in held)
