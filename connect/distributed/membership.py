"""WorkerGroup: a worker's membership in its group: what is assigned to it, who leads, when it joins again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from connect.distributed.config import DistributedConfig
from connect.distributed.leader import ConnectProtocol, Leader
from connect.distributed.local_runs import LocalRuns
from connect.distributed.rebalance_metrics import RebalanceMetrics
from connect.errors import MillstreamError, Rebalancing
from connect.group import Assignment, Unit, WorkerState
from connect.group.messages import NO_ERROR, PROTOCOLS
from connect.herder import Herder
from connect.stores import ConfigTopic
from kafka_client import Client
from kafka_client.group.group import GroupMember
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)
_MISMATCH_SECONDS = 0.5
_WATCH_SECONDS = 0.05


class Running(Protocol):
    """The connectors and tasks that run on the worker."""

    def apply(self) -> None:
        """Bring what runs to what should run, in the background."""
        ...

    async def freed(self) -> None:
        """Wait until everything has stopped that should not run, and its statuses are stored."""
        ...

    async def assigned(self, *, is_leader: bool) -> None:
        """Do what follows a new assignment."""
        ...

    def load_report(self) -> bytes:
        """Return what this worker tells a leader that places by load; nothing if it does not."""
        ...


class WorkerGroup:
    """A worker's membership. Call `start`, then `close`."""

    def __init__(
        self,
        client: Client,
        config: DistributedConfig,
        herder: Herder,
        configs: ConfigTopic,
        local: LocalRuns,
        running: Running,
        *,
        url: str,
        on_failed: Callable[[BaseException], None],
    ) -> None:
        self.assignment: Assignment | None = None
        """All that this worker has; None without an assignment."""
        self._config = config
        self._configs = configs
        self._local = local
        self._running = running
        self._url = url
        self._is_by_load = config.placement == "load"
        self._leader = Leader(herder, url, config.scheduled_rebalance_max_delay_ms, by_load=self._is_by_load)
        self.rebalances = RebalanceMetrics()
        self._completed = -1
        """The last generation whose assignment came here."""
        self._moved = asyncio.Event()
        self._rejoining: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[None] | None = None
        self._member = GroupMember(
            client,
            config.group_id,
            protocol_type="connect",
            protocols=[
                ConnectProtocol(name, PROTOCOLS[name], self._state, self._divide) for name in config.protocols
            ],
            on_assigned=self._assigned,
            on_revoked=self._lost,
            on_lost=self._lost,
            on_failed=on_failed,
            eager=config.protocols == ["default"],
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
        )

    # --- state ---

    @property
    def generation(self) -> int:
        """The generation of the last assignment."""
        return self._completed

    @property
    def is_leader(self) -> bool:
        """True if this worker leads its group."""
        return self.assignment is not None and self.assignment.leader == self._member.member_id

    @property
    def is_signed(self) -> bool:
        """True if requests between workers are signed in this group."""
        return self.assignment is not None and self.assignment.version >= PROTOCOLS["sessioned"]

    @property
    def is_rebalancing(self) -> bool:
        """True while a rebalance is under way, or one has to follow what this worker has read."""
        return not self._member.is_stable or self.assignment is None or self._local.needs_rebalance()

    @property
    def is_current(self) -> bool:
        """True if the coordinator has confirmed this membership within the session timeout."""
        return self._member.silent_seconds < self._config.session_timeout_ms / 1000

    def rejoin(self) -> None:
        """Join again, to learn who leads now."""
        self._member.request_rejoin()

    async def stable(self) -> None:
        """Wait until no rebalance is under way."""
        while self.is_rebalancing:
            self._moved.clear()
            await self._moved.wait()

    def leader_url(self) -> str | None:
        """Return the leader's address, None if this worker leads. Raises Rebalancing if there is none now."""
        if self.assignment is None:
            raise Rebalancing("Cannot complete request momentarily: this worker has no assignment now")
        return None if self.is_leader else self.assignment.leader_url

    def unplaced(self) -> Mapping[Unit, str]:
        """Return the tasks that no worker may have, with the reasons; only a leader knows them."""
        return self._leader.unplaced() if self.is_leader else {}

    def owner_url(self, unit: Unit) -> str | None:
        """Return the address of the worker that has a unit; only a leader knows it."""
        return self._leader.owner_url(unit) if self.is_leader else None

    def rebalance_values(self) -> Values:
        """Return the numbers of `connect-worker-rebalance-metrics`."""
        return self.rebalances.values(self._completed)

    def texts(self) -> dict[str, str]:
        """Return what of `connect-worker-rebalance-metrics` is no number."""
        assignment = self.assignment
        names = {version: name for name, version in PROTOCOLS.items()} | {0: "eager"}
        return {
            "leader-name": "" if assignment is None else assignment.leader_url,
            "connect-protocol": "" if assignment is None else names.get(assignment.version, "").upper(),
        }

    # --- life ---

    async def start(self) -> None:
        """Begin to join the group in the background."""
        await self._member.start()
        self._watch = asyncio.create_task(self._watch_session(), name="connect session")

    async def close(self) -> None:
        """Stop what runs, then leave the group."""
        if self._rejoining is not None:
            self._rejoining.cancel()
        if self._watch is not None:
            self._watch.cancel()
        await self._member.close()
        if self.assignment is not None:
            await self._lost(b"", -1)

    def note_configs(self) -> None:
        """Join again if what was read of the config topic needs a rebalance."""
        is_due = self._local.needs_rebalance() or (self.is_leader and self._leader.needs_division())
        if self.assignment is not None and is_due:
            self._member.request_rejoin()
        self._moved.set()

    # --- the group's callbacks ---

    async def _state(self) -> WorkerState:
        self.rebalances.begin()
        if self.assignment is not None and self.assignment.version == PROTOCOLS["default"]:
            self._give_up()
        self._leader.forget_owners()
        self._running.apply()
        await self._running.freed()
        return WorkerState(
            url=self._url,
            config_offset=self._configs.offset,
            assignment=self.assignment,
            report=self._running.load_report(),
        )

    async def _divide(self, version: int, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return await self._leader.divide(
            version,
            self._member.leader_id,
            members,
            self._configs,
            last_generation=self._completed,
            generation=self._member.entered_generation,
        )

    async def _assigned(self, data: bytes, generation: int) -> None:
        assignment = Assignment.decode(data)
        _log.info("generation %d: %s", generation, assignment)
        self.assignment = assignment.following(self.assignment)
        self._completed = generation
        self._local.revoke(assignment.revoked)
        if not await self._has_read(assignment):
            return
        if assignment.error == NO_ERROR:
            self._local.assign(self.assignment.units)
            self.rebalances.end()
        self._running.apply()
        if assignment.revoked:
            self._member.request_rejoin()  # what stops here is assigned to another in the next round
        elif assignment.error != NO_ERROR:
            self._rejoin_in(_MISMATCH_SECONDS)
        elif assignment.delay_ms:
            self._rejoin_in(assignment.delay_ms / 1000)
        elif self._is_by_load and self.is_leader:
            self._rejoin_in(self._config.placement_interval_ms / 1000)
        await self._running.assigned(is_leader=self.is_leader)
        self.note_configs()
        asyncio.get_running_loop().call_soon(self._moved.set)

    async def _has_read(self, assignment: Assignment) -> bool:
        """Read the configs that the assignment is about. If they cannot be read, leave the group for now."""
        if assignment.error == NO_ERROR and self._configs.offset >= assignment.config_offset:
            return True
        try:
            async with asyncio.timeout(self._config.worker_sync_timeout_ms / 1000):
                if await self._configs.read_to_end() >= assignment.config_offset or assignment.error:
                    return True
        except (TimeoutError, MillstreamError) as e:
            _log.warning("the config topic cannot be read up to %d: %r", assignment.config_offset, e)
        self._give_up()
        self._running.apply()
        await self._running.freed()
        await self._member.step_out("the worker lacks the newest configs")
        self._rejoin_in(self._config.worker_unsync_backoff_ms / 1000)
        return False

    async def _lost(self, data: bytes, generation: int) -> None:
        self._give_up()
        self._running.apply()
        await self._running.freed()

    def _give_up(self) -> None:
        self.assignment = None
        self._local.revoke(self._local.units)

    def _rejoin_in(self, seconds: float) -> None:
        if self._rejoining is not None:
            self._rejoining.cancel()
        loop = asyncio.get_running_loop()
        self._rejoining = loop.call_later(seconds, self._member.request_rejoin)

    async def _watch_session(self) -> None:
        """Stop what runs once the coordinator may have given it to others, because it cannot be reached.

        A worker that joins sends no heartbeats: the coordinator waits for it as long as a rebalance may take.
        """
        session, rebalance = self._config.session_timeout_ms / 1000, self._config.rebalance_timeout_ms / 1000
        while True:
            timeout = max(session, rebalance) if self._member.is_joining else session
            silent = self._member.silent_seconds
            if silent < timeout or self.assignment is None:
                await asyncio.sleep(max(_WATCH_SECONDS, min(session, timeout - silent)))
            else:
                _log.warning("the group's coordinator is silent for %g s: everything stops here", silent)
                await self._lost(b"", -1)
                self._member.request_rejoin()
