"""A member of a group by the classic protocol, for any protocol type.

    joining ──JoinGroup, SyncGroup──▶ stable ──rebalance signalled, or `request_rejoin`──▶ joining
       ▲                                │
       └──────── membership lost ───────┘        a fatal error, or a callback's exception, ends it

One task goes round this circle and runs the callbacks; another sends heartbeats meanwhile. `membership` sends
the requests.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol, Self, TypeVar

from kafka_client.cluster.cluster import Client, is_retriable
from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.errors import ErrorCode, Fenced, MillstreamError, RebalanceNeeded
from kafka_client.group.coordinator import commit_offsets, fetch_offsets
from kafka_client.group.membership import NO_GENERATION, Joined, Membership
from kafka_client.metrics.windowed import Windowed
from kafka_client.producer.group_metadata import GroupMetadata
from kafka_client.topic_partition import TopicPartition

T = TypeVar("T")

LEAVE_SECONDS = 3.0
"""Seconds that `close` waits for the coordinator. Without LeaveGroup the session times out."""

AssignmentCallback = Callable[[bytes, int], Awaitable[None] | None]


class GroupProtocol(Protocol):
    """A protocol that divides the group's work; the coordinator picks one that all members support."""

    @property
    def name(self) -> str:
        """The protocol's name, as in JoinGroup."""
        ...

    def metadata(self) -> bytes | Awaitable[bytes]:
        """Return this member's data for the leader; called before every join."""
        ...

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes] | Awaitable[Mapping[str, bytes]]:
        """Return each member id's assignment by the members' metadata; called on the leader."""
        ...


class GroupMember:
    """A member of a group, which keeps its membership alive and reports assignments.

    `on_assigned(assignment, generation)` is called after each rebalance. `on_revoked(assignment, generation)`
    is called before leaving and, if `eager`, before joining again. A cooperative protocol compares
    assignments itself and calls `request_rejoin`. `on_lost(assignment, generation)` is called when the
    coordinator ended the membership (default: `on_revoked`). Callbacks may be async and run one at a time;
    heartbeats go on meanwhile. An exception in a callback ends the member: `check` and `wait_joined` raise
    it, and `on_failed` gets it.

    `session_timeout_ms`: time without a heartbeat after which the coordinator removes the member.
    `rebalance_timeout_ms`: how long the other members wait for this one's callbacks. `group_instance_id`:
    static membership (KIP-345), which survives a restart within the session timeout.
    `assigned_partitions`: returns the number of assigned partitions, for the client's metrics.
    """

    def __init__(
        self,
        client: Client,
        group_id: str,
        *,
        protocol_type: str = "consumer",
        protocols: Sequence[GroupProtocol],
        on_assigned: AssignmentCallback,
        on_revoked: AssignmentCallback | None = None,
        on_lost: AssignmentCallback | None = None,
        on_failed: Callable[[BaseException], None] | None = None,
        eager: bool = True,
        session_timeout_ms: int = 45_000,
        heartbeat_interval_ms: int = 3_000,
        rebalance_timeout_ms: int = 300_000,
        group_instance_id: str | None = None,
        assigned_partitions: Callable[[], int] = lambda: 0,
    ) -> None:
        self._client = client
        self._group_id = group_id
        self._protocols = {protocol.name: protocol for protocol in protocols}
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        self._on_lost = on_lost or on_revoked
        self._on_failed = on_failed
        self._eager = eager
        self._heartbeat_interval = heartbeat_interval_ms / 1000
        self._group_instance_id = group_instance_id
        self._place = Membership(
            client,
            group_id,
            protocol_type=protocol_type,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            group_instance_id=group_instance_id,
        )
        self._metrics = self._place.metrics
        self._assigned_partitions = assigned_partitions
        self._reported = ExitStack()
        """The context that removes this member's metrics when it is closed."""
        self._current: tuple[bytes, int] | None = None
        """The assignment and its generation, until it is revoked or lost."""
        self._joined: Joined | None = None
        self._session_timeout = session_timeout_ms / 1000
        self._heard_at = 0.0
        self._lost = False
        self._joining = False
        self._waits_to_join = False
        self._holds = 0
        self._unheld = asyncio.Event()
        self._rejoin = asyncio.Event()
        self._stable = asyncio.Event()
        self._calling = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None
        self._closed = False

    # --- state ---

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave this member, "" before the first join."""
        return self._place.member_id

    @property
    def generation(self) -> int:
        """The current generation, -1 if there is none."""
        return self._place.generation

    @property
    def is_leader(self) -> bool:
        """True if this member leads the current generation."""
        return self._joined is not None and self._joined.leader_id == self._place.member_id

    @property
    def leader_id(self) -> str:
        """The member id of the leader in the current generation; "" before the first one.

        While `assign` runs it is this member's own id.
        """
        return self._joined.leader_id if self._joined else ""

    @property
    def protocol(self) -> str:
        """The name of the protocol chosen for the current generation; "" before the first one."""
        return self._joined.protocol if self._joined else ""

    @property
    def entered_generation(self) -> int:
        """The generation of the last JoinGroup, -1 before; during `assign` it is the one that begins."""
        return self._joined.generation if self._joined else NO_GENERATION

    @property
    def silent_seconds(self) -> float:
        """Seconds since the coordinator last answered this member; 0 before the first assignment."""
        return self._now() - self._heard_at if self._heard_at else 0.0

    @property
    def assignment(self) -> bytes:
        """The current assignment, b"" if there is none."""
        return self._current[0] if self._current else b""

    @property
    def is_stable(self) -> bool:
        """True if `on_assigned` has returned for the current assignment and no rebalance is under way."""
        return self._stable.is_set() and not self._rejoin.is_set()

    @property
    def is_joining(self) -> bool:
        """True from this member's JoinGroup to the assignment, or while it waits for `holding_generation`.

        The coordinator may refuse commits meanwhile. With a cooperative protocol the member continues to
        work, and commits afterwards.
        """
        return self._joining or self._waits_to_join

    @contextmanager
    def holding_generation(self) -> Iterator[None]:
        """Keep the generation while the body runs, for commits of several steps.

        If a rebalance begins meanwhile, the member joins it after the body. Enter the context while not
        `is_joining`, with no await in between. The coordinator waits for the member for the rebalance
        timeout, and no longer.
        """
        assert not self.is_joining, "the generation is given up already"
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self._unheld.set()

    # --- start, stop and rejoin ---

    async def start(self) -> None:
        """Begin to join in the background. `wait_joined` waits for the first assignment."""
        if not self._tasks:
            remove = self._client.metrics.add(
                "kafka.consumer",
                "consumer-coordinator-metrics",
                lambda: self._metrics.values(self._assigned_partitions()),
                client_id=f"{self._client.client_id}-{self._place.lane}",
            )
            self._reported.callback(remove)
            self._tasks = [
                asyncio.create_task(self._run(), name=f"group-{self._group_id}"),
                asyncio.create_task(self._beat(), name=f"heartbeat-{self._group_id}"),
            ]

    async def wait_joined(self) -> None:
        """Wait until `on_assigned` has returned for an assignment. Raises the error that ended the member."""
        self.check()
        await self._stable.wait()
        self.check()

    async def close(self, *, leave: bool = True) -> None:
        """Revoke the assignment, leave the group and stop. Do not call it from a callback.

        A static member does not leave: the coordinator keeps its membership until the session times out.
        """
        if self._closed:
            return
        self._closed = True
        self._reported.close()
        async with self._calling:
            for task in self._tasks[:1]:
                task.cancel()
        await asyncio.gather(*self._tasks[:1], return_exceptions=True)
        try:
            if self._failure is None:
                await self._give_up_assignment()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._leave(leave and self._group_instance_id is None)
            await self._place.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def request_rejoin(self) -> None:
        """Join again soon, e.g. because this member's metadata changed."""
        self._rejoin.set()

    async def step_out(self, reason: str) -> None:
        """Leave the group for now, because this member's work has stopped.

        Other members take over the work at once. A static member leaves as well, unlike at `close`. `confirm`
        raises RebalanceNeeded from now on. The next `request_rejoin` reports the assignment as lost and joins
        again.
        """
        if not self._place.member_id:
            return
        self._lost = True
        self._stable.clear()
        await self._leave(True, reason)
        self._place.forget_member()

    def check(self) -> None:
        """Raise the error that ended this member, if one did."""
        if self._failure is not None:
            raise self._failure

    async def confirm(self) -> None:
        """Return if a heartbeat was answered within the session timeout; otherwise send one.

        Call it before work that must not be done twice. Raises RebalanceNeeded if the partitions may belong
        to other members, as after the process was suspended.
        """
        generation = self._place.generation
        if generation != NO_GENERATION and self._now() - self._heard_at < self._session_timeout:
            return
        if generation == NO_GENERATION:
            raise RebalanceNeeded(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self._group_id!r}: not a member now")
        try:
            await self._client.retrying(self._heartbeat)
        except RebalanceNeeded as error:
            self._note_rebalance(error, generation)
            if error.code != ErrorCode.REBALANCE_IN_PROGRESS:
                raise

    # --- offsets ---

    def group_metadata(self) -> GroupMetadata:
        """Return this member's identity and generation, for offsets that a transaction commits (KIP-447).

        Raises RebalanceNeeded if there is no generation, since nothing would fence the member then.
        """
        if self._place.generation == NO_GENERATION:
            raise RebalanceNeeded(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self._group_id!r}: not a member now")
        return GroupMetadata(
            group_id=self._group_id,
            generation=self._place.generation,
            member_id=self._place.member_id,
            group_instance_id=self._group_instance_id,
        )

    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]) -> None:
        """Commit offsets (of the next records to read) under the current generation.

        A member that was never started commits without a generation. Raises RebalanceNeeded if the generation
        is over: the partitions may belong to another member.
        """
        self.check()
        if self._tasks and self._place.generation == NO_GENERATION:
            raise RebalanceNeeded(ErrorCode.UNKNOWN_MEMBER_ID, f"group {self._group_id!r}: not a member now")
        generation = self._place.generation
        try:
            with self._metrics.commit.timed():
                await commit_offsets(
                    self._client,
                    self._group_id,
                    offsets,
                    generation=generation,
                    member_id=self._place.member_id,
                    group_instance_id=self._group_instance_id if self._tasks else None,
                    lane=self._place.lane,
                )
        except RebalanceNeeded as error:
            self._note_rebalance(error, generation)
            raise

    async def committed(
        self, tps: Iterable[TopicPartition], *, require_stable: bool = True
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets, without partitions that have none.

        `require_stable`: wait for transactions that are about to commit offsets (KIP-447).
        """
        lane = self._place.lane
        return await fetch_offsets(
            self._client, self._group_id, tps, require_stable=require_stable, lane=lane
        )

    # --- joining, again and again ---

    async def _run(self) -> None:
        try:
            while True:
                self._stable.clear()
                if self._eager or self._lost:
                    await self._give_up_assignment()
                with self._metrics.rebalance.timed():
                    assignment = await self._enter_generation()
                    self._current = (assignment, self._place.generation)
                    await self._call(self._on_assigned, self._metrics.assigned)
                self._metrics.rebalanced()
                self._stable.set()
                await self._rejoin.wait()
        except Exception as error:
            await self._end(error)

    async def _enter_generation(self) -> bytes:
        """Join and sync until both succeed; return the assignment. Raises errors that are not retriable."""
        backoff = self._client.backoff()
        while True:
            try:
                await self._wait_until_unheld()
                self._joining = True
                self._rejoin.clear()
                data = [(name, await _result(p.metadata())) for name, p in self._protocols.items()]
                before, self._joined = self._joined, await self._place.join(data)
                if before is not None and self._joined.generation > before.generation + 1:
                    # The group had a generation without this member, as happens to late static members. The
                    # leader may have assigned this member's partitions to others.
                    self._lost = True
                    await self._give_up_assignment()
                assignment = await self._place.sync(self._joined, await self._assign(self._joined))
                self._heard_at = self._now()
                return assignment
            except MillstreamError as error:
                if isinstance(error, RebalanceNeeded):
                    await self._turned_away(error)
                elif not is_retriable(error) or self._client.closed:
                    raise
                if not (isinstance(error, RebalanceNeeded) and error.code == ErrorCode.MEMBER_ID_REQUIRED):
                    self._metrics.failed_rebalances += 1
                    await asyncio.sleep(backoff.next())
            finally:
                self._joining = False

    async def _wait_until_unheld(self) -> None:
        """Wait until no caller is within `holding_generation`, so that the next generation may begin.

        If the membership is lost meanwhile, give up the assignment and continue to wait.
        """
        self._waits_to_join = True
        try:
            while self._holds or self._lost:
                if self._lost:
                    await self._give_up_assignment()
                else:
                    self._unheld.clear()
                    await self._unheld.wait()
        finally:
            self._waits_to_join = False

    async def _turned_away(self, error: RebalanceNeeded) -> None:
        """Handle a refused join: give up the assignment if the membership or its generation is over."""
        if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._place.forget_member()
        elif error.code == ErrorCode.ILLEGAL_GENERATION:
            self._place.forget_generation()
        else:
            return
        self._lost = True
        await self._give_up_assignment()

    def _note_rebalance(self, error: RebalanceNeeded, generation: int) -> None:
        """Note a rebalance, or the loss of the membership, that a heartbeat or commit has reported."""
        if self._joining or generation != self._place.generation:
            return  # outdated: this member is joining, or has joined since
        if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._place.forget_member()
            self._lost = True
        elif error.code == ErrorCode.ILLEGAL_GENERATION:
            self._place.forget_generation()
            self._lost = True
        self._rejoin.set()

    async def _assign(self, joined: Joined) -> Mapping[str, bytes]:
        if not joined.must_assign:
            return {}
        return await _result(self._protocols[joined.protocol].assign(joined.members))

    async def _give_up_assignment(self) -> None:
        if self._lost:
            await self._call(self._on_lost, self._metrics.lost)
        else:
            await self._call(self._on_revoked, self._metrics.revoked)
        self._current, self._lost = None, False

    async def _call(self, callback: AssignmentCallback | None, duration: Windowed) -> None:
        """Run a callback with the current assignment, if there is one; `close` waits for it to end."""
        if callback is None or self._current is None:
            return
        async with self._calling:
            with duration.timed():
                result = callback(*self._current)
                if inspect.isawaitable(result):
                    await result

    async def _end(self, error: BaseException) -> None:
        """Stop after a fatal error or a callback's exception, and leave the group."""
        self._failure = error
        fenced = isinstance(error, Fenced)
        if fenced:
            self._lost = True
            await self._give_up_assignment()
        self._stable.set()
        await self._leave(not fenced and self._group_instance_id is None)
        self._place.forget_member()
        if self._on_failed is not None:
            self._on_failed(error)

    async def _leave(self, leave: bool, reason: str = "the member is closing") -> None:
        if leave and self._place.member_id:
            try:
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self._place.leave(reason)
            except (MillstreamError, TimeoutError):
                pass  # The coordinator removes the member after the session timeout.

    # --- heartbeats ---

    async def _beat(self) -> None:
        """Send heartbeats while there is a generation, also during callbacks; retry a failed one sooner."""
        backoff = self._client.backoff()
        pause = self._heartbeat_interval
        while True:
            await asyncio.sleep(pause)
            pause = self._heartbeat_interval
            generation = self._place.generation
            if generation == NO_GENERATION or self._joining:
                continue
            try:
                await self._heartbeat()
                backoff.reset()
            except RebalanceNeeded as error:
                self._note_rebalance(error, generation)
            except MillstreamError as error:
                if is_retriable(error):
                    pause = min(pause, backoff.next())
                elif self._place.generation == generation:
                    self._tasks[0].cancel()
                    await asyncio.gather(self._tasks[0], return_exceptions=True)
                    await self._end(error)
                    return

    async def _heartbeat(self) -> None:
        sent_at = self._now()
        try:
            await self._place.heartbeat()
        except RebalanceNeeded as error:
            if error.code == ErrorCode.REBALANCE_IN_PROGRESS:
                self._heard_at = sent_at  # still a member
            raise
        self._heard_at = sent_at

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


async def _result(value: T | Awaitable[T]) -> T:
    """Return a value, awaiting it if needed."""
    return await value if inspect.isawaitable(value) else value
