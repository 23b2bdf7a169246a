"""A member of a group by the classic protocol, whatever the group is for.

    joining ──JoinGroup, SyncGroup──▶ stable ──rebalance signalled, or `request_rejoin`──▶ joining
       ▲                                │
       └──────── membership lost ───────┘        a fatal answer, or a callback's exception, ends it

One task goes round this circle and runs the callbacks; another sends heartbeats meanwhile. The requests
themselves are `membership`'s.
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
"""How long a close waits for a coordinator that does not answer: leaving is a courtesy."""

AssignmentCallback = Callable[[bytes, int], Awaitable[None] | None]


class GroupProtocol(Protocol):
    """One way to share out the group's work; the group picks one that all members know."""

    @property
    def name(self) -> str:
        """The protocol's name, as in JoinGroup."""
        ...

    def metadata(self) -> bytes | Awaitable[bytes]:
        """What this member tells the leader; asked for anew before every join."""
        ...

    def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes] | Awaitable[Mapping[str, bytes]]:
        """On the leader: from each member id's metadata to each member id's assignment."""
        ...


class GroupMember:
    """Joins a group, keeps its membership alive and reports assignments.

    `on_assigned(assignment, generation)` after each rebalance; `on_revoked(assignment, generation)` before
    joining again, when `eager`, and before leaving (a cooperative protocol compares assignments itself and
    calls `request_rejoin`); `on_lost(assignment, generation)` when membership ended without asking
    (default: `on_revoked`). Callbacks may be async, run one at a time, and heartbeats go on meanwhile. An
    exception in a callback ends the member: `check` and `wait_joined` raise it, `on_failed` hears of it.

    `session_timeout_ms`: without a heartbeat for so long the coordinator gives the place away.
    `rebalance_timeout_ms`: how long the others wait for our callbacks. `group_instance_id`: static
    membership (KIP-345), the place survives a restart within the session timeout.
    `assigned_partitions`: how many are held, for the client's metrics.
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
        self._told = ExitStack()
        """Ends what metrics tell of this member."""
        self._held: tuple[bytes, int] | None = None
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
        """The coordinator's name for this member, "" before the first join."""
        return self._place.member_id

    @property
    def generation(self) -> int:
        """The generation joined last, -1 while there is none."""
        return self._place.generation

    @property
    def is_leader(self) -> bool:
        """Whether this member leads the current generation."""
        return self._joined is not None and self._joined.leader_id == self._place.member_id

    @property
    def leader_id(self) -> str:
        """Member id of the group's leader in the current generation; during `assign` it is this member's."""
        return self._joined.leader_id if self._joined else ""

    @property
    def protocol(self) -> str:
        """Name of the protocol chosen for the current generation."""
        return self._joined.protocol if self._joined else ""

    @property
    def assignment(self) -> bytes:
        """The assignment held, b"" while there is none."""
        return self._held[0] if self._held else b""

    @property
    def is_stable(self) -> bool:
        """Whether an assignment is held, `on_assigned` has returned and no rebalance is under way."""
        return self._stable.is_set() and not self._rejoin.is_set()

    @property
    def is_joining(self) -> bool:
        """Whether a rebalance is between this member's JoinGroup and the assignment, or JoinGroup waits for
        `holding_generation`: what is committed meanwhile may be refused. With a cooperative protocol work
        goes on, and is committed afterwards.
        """
        return self._joining or self._waits_to_join

    @contextmanager
    def holding_generation(self) -> Iterator[None]:
        """Keep the generation while the body runs, for commits of several steps: a rebalance that begins
        meanwhile is joined behind it. Enter it while not `is_joining`, with no await in between.

        The coordinator waits for the join as long as the rebalance timeout, and no longer.
        """
        assert not self.is_joining, "the generation is given up already"
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self._unheld.set()

    # --- life ---

    async def start(self) -> None:
        """Begin: joins in the background; returns at once. `wait_joined` waits for the first assignment."""
        if not self._tasks:
            remove = self._client.metrics.add(
                "kafka.consumer",
                "consumer-coordinator-metrics",
                lambda: self._metrics.values(self._assigned_partitions()),
                client_id=f"{self._client.client_id}-{self._place.lane}",
            )
            self._told.callback(remove)
            self._tasks = [
                asyncio.create_task(self._run(), name=f"group-{self._group_id}"),
                asyncio.create_task(self._beat(), name=f"heartbeat-{self._group_id}"),
            ]

    async def wait_joined(self) -> None:
        """Wait until an assignment is held and `on_assigned` has returned; raises what ended the member."""
        self.check()
        await self._stable.wait()
        self.check()

    async def close(self, *, leave: bool = True) -> None:
        """Revoke, leave the group (not as a static member: its place is kept) and stop. Not from a
        callback.
        """
        if self._closed:
            return
        self._closed = True
        self._told.close()
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
        """Leave the group for now, because the work stands still: the others take it over at once.

        As a static member too: its place is not kept (unlike a close). `confirm` raises from now on. The next
        `request_rejoin` reports the assignment as lost and joins anew.
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
        """Return if the coordinator has heard of this member within the session timeout; else ask it.

        A process that was suspended or starved learns here that its partitions were given to others:
        RebalanceNeeded. Call it before work that must not be done twice; it sends nothing while heartbeats
        are answered.
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
        """Who this member is now, for offsets that a transaction commits (KIP-447).

        RebalanceNeeded while it has no generation: nothing would fence it then.
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
        """Commit offsets (next record to read) under the current generation; from outside if never started.

        RebalanceNeeded: the generation is over, these partitions may be somebody else's already.
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
        """The group's committed offsets; partitions without one are left out.

        `require_stable`: wait for transactions that are about to commit offsets (KIP-447).
        """
        lane = self._place.lane
        return await fetch_offsets(
            self._client, self._group_id, tps, require_stable=require_stable, lane=lane
        )

    # --- the circle ---

    async def _run(self) -> None:
        try:
            while True:
                self._stable.clear()
                if self._eager or self._lost:
                    await self._give_up_assignment()
                with self._metrics.rebalance.timed():
                    assignment = await self._enter_generation()
                    self._held = (assignment, self._place.generation)
                    await self._call(self._on_assigned, self._metrics.assigned)
                self._metrics.rebalanced()
                self._stable.set()
                await self._rejoin.wait()
        except Exception as error:
            await self._end(error)

    async def _enter_generation(self) -> bytes:
        """Join and sync until that succeeds; raises only what trying again cannot mend."""
        backoff = self._client.backoff()
        while True:
            try:
                await self._wait_until_unheld()
                self._joining = True
                self._rejoin.clear()
                data = [(name, await _result(p.metadata())) for name, p in self._protocols.items()]
                before, self._joined = self._joined, await self._place.join(data)
                if before is not None and self._joined.generation > before.generation + 1:
                    # A generation went by without us, as happens to static members that are late. The leader
                    # may have given others what it did not know we have.
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
        """Wait until the generation may be given up. If the coordinator says meanwhile that this member is
        out, the assignment is given up before it joins anew.
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
        """Joining failed: give up the assignment if our membership or its generation is over."""
        if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._place.forget_member()
        elif error.code == ErrorCode.ILLEGAL_GENERATION:
            self._place.forget_generation()
        else:
            return
        self._lost = True
        await self._give_up_assignment()

    def _note_rebalance(self, error: RebalanceNeeded, generation: int) -> None:
        """A heartbeat or commit of `generation` was told that a rebalance is on, or that we are out."""
        if self._joining or generation != self._place.generation:
            return  # Old news: we are joining, or have joined since.
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
        self._held, self._lost = None, False

    async def _call(self, callback: AssignmentCallback | None, duration: Windowed) -> None:
        """Run a callback with the assignment held; `close` waits for it to end."""
        if callback is None or self._held is None:
            return
        async with self._calling:
            with duration.timed():
                result = callback(*self._held)
                if inspect.isawaitable(result):
                    await result

    async def _end(self, error: BaseException) -> None:
        """A fatal answer or a callback's exception: stop, and let the others go on without us."""
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
                pass  # The session timeout does the same, later.

    # --- heartbeats ---

    async def _beat(self) -> None:
        """Heartbeats while there is a generation, also during callbacks; a failed one is repeated sooner."""
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
    """A value given at once or later."""
    return await value if inspect.isawaitable(value) else value
