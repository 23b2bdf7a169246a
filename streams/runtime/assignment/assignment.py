"""The assignment of tasks to members by the group's leader: balanced first, then sticky. Pure.

`balance` decides where each task is to run in the end, `replicas` where copies of its state are kept. Then:

- A task does not move to a member whose state lags by more than the acceptable recovery lag while another
  member has a better state. The task stays there, and its new member warms the state up (KIP-441).
- A task that another member still runs is not assigned yet. That member revokes it first and joins again;
  the rebalance after that assigns the task (KIP-429).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from streams.runtime.assignment.balance import balance
from streams.runtime.assignment.replicas import place_standbys
from streams.runtime.task_id import TaskId

ACCEPTABLE_RECOVERY_LAG = 10_000
MAX_WARMUP_REPLICAS = 2


@dataclass(frozen=True, slots=True)
class Member:
    """A member as its subscription reports it: the tasks that it runs or opens, and its standby tasks.

    `lags` has the lag, in changelog offsets, of each task whose state the member has in use or on its disk.
    """

    active: frozenset[TaskId] = field(default_factory=frozenset)
    standby: frozenset[TaskId] = field(default_factory=frozenset)
    lags: Mapping[TaskId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Kafka's `num.standby.replicas`, `acceptable.recovery.lag` and `max.warmup.replicas`."""

    standbys: int = 0
    acceptable_lag: int = ACCEPTABLE_RECOVERY_LAG
    warmups: int = MAX_WARMUP_REPLICAS


@dataclass(slots=True)
class Share:
    """The tasks of one member: `active` tasks run there, and the member keeps the state of `standby` tasks.

    `warmup`: the standby tasks that are to run there once their lag is acceptable. `revoked`: tasks that the
    member must close before others get them; it joins again then. `pending`: True if the member will get
    tasks that another member revokes first.
    """

    active: list[TaskId] = field(default_factory=list)
    standby: list[TaskId] = field(default_factory=list)
    warmup: list[TaskId] = field(default_factory=list)
    revoked: list[TaskId] = field(default_factory=list)
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Each member's share. `probing` is True if tasks wait for their state to be warmed up elsewhere."""

    shares: Mapping[str, Share]
    probing: bool


def assign_tasks(
    tasks: Iterable[TaskId], sizes: Mapping[TaskId, int], members: Mapping[str, Member], rules: Rules
) -> Plan:
    """Return the plan. ``sizes``: the changelog offsets of each task with state."""
    shares = {name: Share() for name in sorted(members)}
    if not shares:
        return Plan(shares, False)
    targets = balance(tasks, sizes, members)
    standbys = place_standbys(targets, sizes, members, rules.standbys)
    now = _stay_until_warmed_up(targets, standbys, shares, sizes, members, rules)
    for task, name in now.items():
        _give(task, name, shares, members)
    for task, names in standbys.items():
        for name in names:
            if task not in shares[name].standby:
                shares[name].standby.append(task)
    for share in shares.values():
        for ids in (share.active, share.standby, share.warmup, share.revoked):
            ids.sort()
    return Plan(shares, now != targets)


def _give(task: TaskId, name: str, shares: Mapping[str, Share], members: Mapping[str, Member]) -> None:
    """Assign the task to the member, unless another member runs it now."""
    holders = [other for other, member in sorted(members.items()) if task in member.active and other != name]
    for other in holders:
        shares[other].revoked.append(task)
    if not holders or task in members[name].active:
        shares[name].active.append(task)
        return
    shares[name].pending = True
    if task in members[name].standby:
        shares[name].standby.append(task)  # The standby goes on until the other member has revoked the task.


def _stay_until_warmed_up(
    targets: Mapping[TaskId, str],
    standbys: Mapping[TaskId, list[str]],
    shares: Mapping[str, Share],
    sizes: Mapping[TaskId, int],
    members: Mapping[str, Member],
    rules: Rules,
) -> dict[TaskId, str]:
    """Return where each task runs for now. Adds warm-ups for tasks that will move, up to the limit."""
    now = dict(targets)
    room = rules.warmups
    # Warm-ups under way come first.
    for task in sorted(sizes, key=lambda task: (task not in members[targets[task]].standby, task)):
        target = targets[task]
        best = _best_state(task, target, sizes[task], members, rules.acceptable_lag)
        if best == target:
            continue
        now[task] = best
        if best in standbys[task]:
            # The standby becomes the active task, so the number of replicas stays the same.
            standbys[task].remove(best)
        elif room > 0:
            room -= 1
        else:
            continue
        shares[target].warmup.append(task)
        shares[target].standby.append(task)
    return now


def _best_state(
    task: TaskId, target: str, size: int, members: Mapping[str, Member], acceptable_lag: int
) -> str:
    """Return the member to run the task: ``target``, unless its lag is too high and another's is lower."""

    def lag_of(name: str) -> int:
        lag = members[name].lags.get(task, size)
        return 0 if lag <= acceptable_lag else lag

    return min(
        members, key=lambda name: (lag_of(name), name != target, task not in members[name].active, name)
    )
