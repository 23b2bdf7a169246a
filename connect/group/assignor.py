"""CooperativeAssignor: divides connectors and tasks among workers, moving as few as it can (KIP-415).

A worker keeps its units until they are revoked. What is revoked in one round is assigned in the next. The
units of a worker that has left wait for it until `scheduled.rebalance.max.delay.ms` is over. Rounds that
revoke one after the other wait longer and longer in between (KAFKA-12495).

The rules are those of Kafka's IncrementalCooperativeAssignor 4.x.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle

from connect.group.loads import Loads, add, of_kind, place, surplus, without
from connect.group.units import Unit

_BACKOFF_MULTIPLIER = 40


@dataclass(frozen=True, slots=True)
class Division:
    """The result of one round."""

    assigned: Mapping[str, Sequence[Unit]]
    """The units that are new for each worker."""
    revoked: Mapping[str, Sequence[Unit]]
    """The units that each worker stops; workers without any are missing."""
    owners: Mapping[Unit, str]
    """The worker of each unit after this round."""
    delay_ms: int
    """The time until the next round is due, 0 if none is scheduled."""


class CooperativeAssignor:
    """The assignor of a group's leader, with what it remembers of earlier rounds."""

    def __init__(self, max_delay_ms: int, clock_ms: Callable[[], int]) -> None:
        """Make an assignor. `clock_ms` returns milliseconds that never go back."""
        self._max_delay_ms = max_delay_ms
        self._clock_ms = clock_ms
        self._assigned: set[Unit] = set()
        """The units that somebody had after the last round, or that wait for a worker that left."""
        self._revoked: set[Unit] = set()
        self._members: set[str] = set()
        self._generation = -1
        self._scheduled_at = 0
        """The time of the next round, 0 if none is scheduled."""
        self._delay_ms = 0
        self._candidates: list[str] = []
        """The workers without units that joined while lost units wait: perhaps the one that had left."""
        self._has_revoked = False
        """True if the last round revoked units for the balance."""
        self._successive_revocations = 0

    def assign(
        self,
        configured: Iterable[Unit],
        members: Mapping[str, Sequence[Unit]],
        *,
        last_generation: int,
        generation: int,
    ) -> Division:
        """Return what each worker starts and stops.

        `configured`: all units that there are. `members`: the units that each worker has.
        `last_generation`: the last one that this leader completed. `generation`: the one that begins.
        """
        if self._generation != last_generation:
            self._assigned = set()  # the assignment of that round may never have reached the workers
        there, active = set(configured), set(chain.from_iterable(members.values()))
        if self._revoked & active:
            self._assigned = set(active)
        self._revoked = set()
        deleted = self._assigned - there
        lost = sorted(self._assigned - active - deleted)
        created = there - self._assigned - active
        current: Loads = {w: [u for u in units if u not in deleted] for w, units in members.items()}

        revoked: Loads = {}
        counts = Counter(chain.from_iterable(members.values()))
        duplicated = {unit for unit, count in counts.items() if count > 1}
        for ending in (deleted, duplicated):
            add(revoked, {w: [u for u in units if u in ending] for w, units in members.items()})
        loads = without(members, revoked)
        due = self._due_of(lost, loads)
        loads = self._balance(there, loads, revoked)
        to_assign = [*sorted(created), *due]
        place(loads, of_kind(to_assign, connectors=True), connectors=True)
        self._place_tasks(loads, of_kind(to_assign, connectors=False))

        ended = set(chain.from_iterable(revoked.values()))
        self._assigned = set(chain.from_iterable(loads.values())) - ended | set(lost)
        self._revoked = ended
        self._generation, self._members = generation, set(members)
        return Division(
            assigned=without(loads, current),
            revoked={worker: units for worker, units in revoked.items() if units},
            owners={unit: worker for worker, units in loads.items() for unit in units},
            delay_ms=self._delay_ms,
        )

    def _balance(self, there: set[Unit], loads: Loads, revoked: Loads) -> Loads:
        """Revoke what exceeds each share, unless a round is scheduled. Return the remaining loads."""
        if self._delay_ms:
            self._has_revoked = False
            return loads
        excess = self._excess(there, loads) if there and any(loads.values()) else {}
        if not excess:
            if self._has_revoked:
                self._has_revoked, self._successive_revocations = False, 0
            return loads
        if self._has_revoked:
            self._successive_revocations += 1
            self._delay_ms = self._revocation_delay_ms()
            if self._delay_ms:
                self._scheduled_at = self._clock_ms() + self._delay_ms
                return loads
        self._has_revoked = True
        add(revoked, excess)
        return without(loads, excess)

    def _excess(self, there: set[Unit], loads: Loads) -> Loads:
        """Return what each worker should give up for the balance."""
        excess: Loads = {}
        for kind in (True, False):
            total = len(of_kind(there, connectors=kind))
            add(excess, surplus(loads, total, connectors=kind))
        return excess

    def _place_tasks(self, loads: Loads, tasks: list[Unit]) -> None:
        """Assign tasks that nobody has."""
        place(loads, tasks, connectors=False)

    def _revocation_delay_ms(self) -> int:
        if self._max_delay_ms == 0:
            return 0
        attempts_max = math.log(self._max_delay_ms) / math.log(_BACKOFF_MULTIPLIER)
        attempts = min(self._successive_revocations, attempts_max)
        return min(int(_BACKOFF_MULTIPLIER**attempts), self._max_delay_ms)

    def _due_of(self, lost: Sequence[Unit], loads: Loads) -> list[Unit]:
        """Return the lost units that are to be assigned like new ones; schedule a round for the others."""
        if not lost and not self._has_revoked:
            self._reset_delay()
            return []
        now = self._clock_ms()
        if self._scheduled_at <= 0 and loads.keys() >= self._members:
            return list(lost)  # nobody left: some worker has not got its assignment
        if self._max_delay_ms == 0:
            return list(lost)
        if 0 < self._scheduled_at <= now:
            candidates = [worker for worker in self._candidates if worker in loads]
            for kind in (True, False):
                for unit, worker in zip(of_kind(lost, connectors=kind), cycle(candidates), strict=False):
                    loads[worker].append(unit)
            self._reset_delay()
            self._has_revoked = False
            return [] if candidates else list(lost)
        idle = sorted(worker for worker, units in loads.items() if not units)
        self._candidates += [worker for worker in idle if worker not in self._candidates]
        if now < self._scheduled_at:
            self._delay_ms = min(self._scheduled_at - now, self._max_delay_ms)
        else:
            self._delay_ms = self._max_delay_ms
        self._scheduled_at = now + self._delay_ms
        return []

    def _reset_delay(self) -> None:
        self._candidates.clear()
        self._scheduled_at = self._delay_ms = 0
