"""Leader: what a group's leader does in a rebalance: it divides connectors and tasks among the workers."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Protocol

from connect.distributed.placement_facts import PlacementFacts, rules_of
from connect.errors import MillstreamError
from connect.group import Assignment, CooperativeAssignor, Unit, WorkerState, assign_eagerly
from connect.group.load_assignor import LoadAssignor
from connect.group.messages import CONFIG_MISMATCH
from connect.group.units import CONNECTOR
from connect.herder import Herder

_log = logging.getLogger(__name__)


class Configs(Protocol):
    """The group's config topic."""

    offset: int

    async def read_to_end(self) -> int:
        """Read what the topic holds, and return the offset."""
        ...


class Leader:
    """The leader's part of a member. `url` is the address of its worker's REST interface."""

    def __init__(self, herder: Herder, url: str, max_delay_ms: int, *, by_load: bool = False) -> None:
        """Make a leader; `by_load` if it places tasks by their load instead of their number."""
        self._herder = herder
        self._url = url
        kind = LoadAssignor if by_load else CooperativeAssignor
        self._assignor = kind(max_delay_ms, lambda: int(time.monotonic() * 1000))
        self._facts = PlacementFacts()
        self._owners: dict[Unit, str] = {}

    def owner_url(self, unit: Unit) -> str | None:
        """Return the address of the worker that has a unit, by the last division made here."""
        return self._owners.get(unit)

    def forget_owners(self) -> None:
        """Forget the owners, because another rebalance begins."""
        self._owners = {}

    def unplaced(self) -> Mapping[Unit, str]:
        """Return the tasks that no worker may have, with the reasons, by the last division made here."""
        return self._assignor.unplaced if isinstance(self._assignor, LoadAssignor) else {}

    def needs_division(self) -> bool:
        """Return True if connectors' pins or spreads have changed since the last division."""
        if not isinstance(self._assignor, LoadAssignor):
            return False
        return rules_of(self._herder.config.connectors) != self._assignor.facts.rules

    async def divide(
        self,
        version: int,
        leader_id: str,
        members: Mapping[str, bytes],
        configs: Configs,
        *,
        last_generation: int,
        generation: int,
    ) -> dict[str, bytes]:
        """Return each member's encoded assignment.

        A member whose state cannot be read gets the error CONFIG_MISMATCH, and no unit; all get it if this
        worker cannot read the newest configs that some member has read.
        """
        states = {member: _state(member, data) for member, data in sorted(members.items())}
        readable = {member: state for member, state in states.items() if state is not None}
        newest = max((state.config_offset for state in readable.values()), default=-1)
        if configs.offset < newest and await configs.read_to_end() < newest:
            readable = {}
        base = Assignment(
            version=version, leader=leader_id, leader_url=self._url, config_offset=max(newest, configs.offset)
        )
        failed = replace(base, error=CONFIG_MISMATCH)
        assignments = {member: failed for member in states if member not in readable}
        if readable:
            assignments |= self._divided(base, readable, last_generation, generation)
        return {member: assignment.encode() for member, assignment in assignments.items()}

    def _divided(
        self, base: Assignment, states: Mapping[str, WorkerState], last_generation: int, generation: int
    ) -> dict[str, Assignment]:
        units = [
            Unit(name, task)
            for name, tasks in self._herder.units().items()
            for task in range(CONNECTOR, tasks)
        ]
        if isinstance(self._assignor, LoadAssignor):
            connectors = self._herder.config.connectors
            self._assignor.facts = self._facts.update(states, units, connectors)
        if base.version == 0:
            loads = assign_eagerly(units, states)
            owners = {unit: member for member, load in loads.items() for unit in load}
            assignments = {member: replace(base, units=tuple(load)) for member, load in loads.items()}
        else:
            division = self._assignor.assign(
                units,
                {m: s.assignment.units if s.assignment is not None else () for m, s in states.items()},
                last_generation=last_generation,
                generation=generation,
            )
            owners = dict(division.owners)
            assignments = {
                member: replace(
                    base,
                    units=tuple(division.assigned.get(member, ())),
                    revoked=tuple(division.revoked.get(member, ())),
                    delay_ms=division.delay_ms,
                )
                for member in states
            }
        self._owners = {unit: states[member].url for unit, member in owners.items()}
        return assignments


class ConnectProtocol:
    """A protocol that a worker offers its group."""

    def __init__(
        self,
        name: str,
        version: int,
        state: Callable[[], Awaitable[WorkerState]],
        divide: Callable[[int, Mapping[str, bytes]], Awaitable[Mapping[str, bytes]]],
    ) -> None:
        self.name = name
        self._version = version
        self._state = state
        self._divide = divide

    async def metadata(self) -> bytes:
        """Return the worker's state, once it has stopped what it should not run."""
        return (await self._state()).encode(self._version)

    async def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return each member's assignment."""
        return await self._divide(self._version, members)


def _state(member: str, data: bytes) -> WorkerState | None:
    try:
        return WorkerState.decode(data)
    except MillstreamError as e:
        _log.error("the state of worker %s cannot be read, it gets nothing: %s", member, e)
        return None
