"""Who gets which task, as the group's leader decides it: balanced first, then sticky. Pure.

`balance` says where each task is to run in the end, `replicas` where copies of its state are kept, and then:

- A task does not go to a member whose state is more than the acceptable recovery lag behind while another
  has a better one: it stays there, and the state is warmed up where it is to run (KIP-441).
- A task that another member still runs is given to nobody yet: that one gives it up first, joins again, and
  the rebalance after that assigns it (KIP-429).
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
    """What the leader knows of a member: the tasks it runs or is about to, the standby tasks it has, and of
    tasks whose state it has, in use or on its disk, how many offsets of the changelogs that is behind.
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
    """What a member gets. `active`, `standby`: the tasks it is to run, and to keep the state of.

    `warmup`: the standby tasks that are to run here once their state is near enough. `revoked`: tasks it has
    to give up before others get them; it joins again then. `pending`: it will be given tasks that another
    gives up first.
    """

    active: list[TaskId] = field(default_factory=list)
    standby: list[TaskId] = field(default_factory=list)
    warmup: list[TaskId] = field(default_factory=list)
    revoked: list[TaskId] = field(default_factory=list)
    pending: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Each member's share. `probing`: some tasks run elsewhere than they are to run, until their state is
    warmed up there.
    """

    shares: Mapping[str, Share]
    probing: bool


def assign_tasks(
    tasks: Iterable[TaskId], sizes: Mapping[TaskId, int], members: Mapping[str, Member], rules: Rules
) -> Plan:
    """The plan. ``sizes``: of tasks with state, how many offsets their changelogs hold."""
    shares = {name: Share() for name in sorted(members)}
    if not shares:
        return Plan(shares, False)
    wanted = balance(tasks, sizes, members)
    standbys = place_standbys(wanted, sizes, members, rules.standbys)
    now = _stay_until_warmed_up(wanted, standbys, shares, sizes, members, rules)
    for task, name in now.items():
        _give(task, name, shares, members)
    for task, names in standbys.items():
        for name in names:
            if task not in shares[name].standby:
                shares[name].standby.append(task)
    for share in shares.values():
        for held in (share.active, share.standby, share.warmup, share.revoked):
            held.sort()
    return Plan(shares, now != wanted)


def _give(task: TaskId, name: str, shares: Mapping[str, Share], members: Mapping[str, Member]) -> None:
    """Have the member run the task, if no other one does at present."""
    holders = [other for other, member in sorted(members.items()) if task in member.active and other != name]
    for other in holders:
        shares[other].revoked.append(task)
    if not holders or task in members[name].active:
        shares[name].active.append(task)
        return
    shares[name].pending = True
    if task in members[name].standby:
        shares[name].standby.append(task)  # goes on while the other gives it up


def _stay_until_warmed_up(
    wanted: Mapping[TaskId, str],
    standbys: Mapping[TaskId, list[str]],
    shares: Mapping[str, Share],
    sizes: Mapping[TaskId, int],
    members: Mapping[str, Member],
    rules: Rules,
) -> dict[TaskId, str]:
    """Where each task is to run for now; those that will move get their warm-ups, as far as these go."""
    now = dict(wanted)
    room = rules.warmups
    # Those that are being warmed up go on, before others begin.
    for task in sorted(sizes, key=lambda task: (task not in members[wanted[task]].standby, task)):
        target = wanted[task]
        best = _best_state(task, target, sizes[task], members, rules.acceptable_lag)
        if best == target:
            continue
        now[task] = best
        if best in standbys[task]:
            # They change places: the number of replicas stays.
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
    """The member to run the task: ``target``, unless its state is too far behind and another's is less so."""

    def behind(name: str) -> int:
        lag = members[name].lags.get(task, size)
        return 0 if lag <= acceptable_lag else lag

    return min(
        members, key=lambda name: (behind(name), name != target, task not in members[name].active, name)
    )
