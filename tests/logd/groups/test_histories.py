"""Random histories of one group: diligent clients, careless clients, failing appends and restarts.

Diligent clients heartbeat every second, join as soon as a response tells them to and sync as soon as they
may. Whatever the other clients do, these invariants hold for diligent ones:

- No living client is told that it is unknown, fenced, or in a wrong generation. The exception is a restart or
  a failed append, after which its generation may not have been stored.
- In a generation there is one leader and one protocol. Each member gets one assignment, its leader's.
- Every request that waits is answered once.
- After faults and changes end, all clients settle in one generation.

A shard recovered from the log has the same offsets, and the same group if that is stable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.message import Message
from kafka_client.wire.messages.heartbeat import HeartbeatRequest
from kafka_client.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafka_client.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequestGroup
from kafka_client.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from logd.groups import (
    Answer,
    CoordinatorRecord,
    GroupSettings,
    GroupShard,
    GroupState,
    Joining,
    LogEntry,
    Producing,
    Stored,
)
from tests.support import depth

GROUP = "g"
OF_THE_LOG = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_COORDINATOR}
OF_A_RESTART = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}


class FailingLog:
    """A log in memory whose appends fail while `failures` lasts."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.failures: list[ErrorCode] = []

    def append(self, records: Sequence[CoordinatorRecord]) -> int:
        if self.failures:
            raise KafkaError(self.failures.pop())
        first = len(self.entries)
        self.entries += [Stored(first + at, record) for at, record in enumerate(records)]
        return first

    def append_in_transaction(self, records: Sequence[CoordinatorRecord], producing: Producing) -> int:
        raise NotImplementedError


@dataclass
class Client:
    """A client process, diligent or not, with its own view of the group."""

    name: str
    diligent: bool
    instance: str | None = None
    session_ms: int = 10_000
    rebalance_ms: int = 30_000
    protocols: tuple[str, ...] = ("range",)
    member_id: str = ""
    generation: int = -1
    protocol: str | None = None
    doing: str = "join"  # what it does next: join, sync, heartbeat; or joining, syncing: it waits
    members: list[str] = field(default_factory=list)
    assignment: bytes | None = None
    forgiven: bool = False


class GroupHistories(RuleBasedStateMachine):
    """A state machine of one group and its clients."""

    @initialize(delay_ms=st.sampled_from([0, 3_000]))
    def create(self, delay_ms: int) -> None:
        self.settings = GroupSettings(
            group_initial_rebalance_delay_ms=delay_ms, group_min_session_timeout_ms=1
        )
        self.log = FailingLog()
        self.now_ms = 1_000_000
        self.clients: list[Client] = []
        self.ids = 0
        self.waiting: dict[int, tuple[Client, str]] = {}
        self.waiters = 0
        self.incarnation = 0
        self.assigned: dict[tuple[int, int], dict[str, bytes]] = {}
        self.generations: dict[tuple[int, int], tuple[str, str | None]] = {}
        self.mailbox: deque[tuple[Client, str, Message]] = deque()
        self.shard = GroupShard(self.log, self.settings)

    # Requests

    def wait(self, client: Client, what: str) -> int:
        self.waiters += 1
        self.waiting[self.waiters] = (client, what)
        return self.waiters

    def deliver(self, answers: list[Answer]) -> None:
        for waiter, response in answers:
            assert isinstance(waiter, int)
            client, what = self.waiting.pop(waiter)  # KeyError: answered twice
            self.mailbox.append((client, what, response))

    def join(self, client: Client, version: int = 9) -> None:
        self.ids += 1
        client.doing = "joining"
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=client.session_ms,
            rebalance_timeout_ms=client.rebalance_ms,
            member_id=client.member_id,
            group_instance_id=client.instance,
            protocol_type="test",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=client.name.encode())
                for name in client.protocols
            ],
        )
        joining = Joining(
            request=request,
            version=version,
            client_id=client.name,
            client_host="/host",
            new_member_id=f"{client.name}-{self.ids}",
            waiter=self.wait(client, "join"),
        )
        self.deliver(self.shard.join(joining, self.now_ms))

    def sync(self, client: Client) -> None:
        """Send SyncGroup; a leader assigns to each member a text that no other member gets."""
        client.doing = "syncing"
        assignments = [(member, f"{client.generation} {member}".encode()) for member in client.members]
        if client.members:
            self.assigned.setdefault((self.incarnation, client.generation), dict(assignments))
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance,
            protocol_name=client.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=what) for member, what in assignments
            ],
        )
        self.deliver(self.shard.sync(request, self.wait(client, "sync"), self.now_ms))

    def heartbeat(self, client: Client) -> None:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance,
        )
        self.hear(client, "heartbeat", self.shard.heartbeat(request, self.now_ms))

    def leave(self, client: Client) -> None:
        identity = MemberIdentity(member_id=client.member_id, group_instance_id=client.instance)
        request = LeaveGroupRequest(group_id=GROUP, members=[identity])
        self.deliver(self.shard.leave(request, self.wait(client, "leave"), self.now_ms))

    def commit(self, client: Client, offset: int) -> ErrorCode:
        partition = OffsetCommitRequestPartition(partition_index=offset % 3, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=client.generation,
            member_id=client.member_id,
            group_instance_id=client.instance,
            topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        response = self.shard.commit(request, 9, self.now_ms)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    # Answers

    def settle(self) -> None:
        """Deliver all responses; diligent clients act on them at once."""
        while self.mailbox:
            client, what, response = self.mailbox.popleft()
            self.hear(client, what, response)

    def hear(self, client: Client, what: str, response: Message) -> None:
        if isinstance(response, LeaveGroupResponse):
            client.doing, client.member_id = "join", ""
            return
        error = ErrorCode(response.error_code)  # type: ignore[attr-defined]
        if client.diligent:
            self.check_error(client, error)
        if isinstance(response, JoinGroupResponse):
            self.hear_join(client, response, error)
        elif isinstance(response, SyncGroupResponse):
            self.hear_sync(client, response, error)
        elif error:
            client.doing = "join"
        if error in OF_A_RESTART or error is ErrorCode.FENCED_INSTANCE_ID:
            client.member_id = ""
        if client.diligent and client.doing in ("join", "sync") and error not in OF_THE_LOG:
            self.act(client)

    def check_error(self, client: Client, error: ErrorCode) -> None:
        allowed = {ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS} | OF_THE_LOG
        if client.forgiven:
            allowed |= OF_A_RESTART
        assert error in allowed, f"{client}: {error.name}"

    def hear_join(self, client: Client, response: JoinGroupResponse, error: ErrorCode) -> None:
        client.doing = "join"
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = response.member_id
        if error:
            return
        client.forgiven = False
        client.member_id, client.generation = response.member_id, response.generation_id
        client.protocol = response.protocol_name
        client.members = [] if response.skip_assignment else [member.member_id for member in response.members]
        client.doing = "sync"
        self.check_generation(client, response)

    def check_generation(self, client: Client, response: JoinGroupResponse) -> None:
        group = self.shard.store.groups[GROUP]
        assert response.generation_id <= group.generation
        first = self.generations.setdefault(
            (self.incarnation, response.generation_id),
            (
                response.leader.split("-")[0],
                response.protocol_name,
            ),
        )
        assert first[1] == response.protocol_name
        if client.instance is None and not self.has_static():
            assert first[0] == response.leader.split("-")[0]

    def has_static(self) -> bool:
        return any(client.instance is not None for client in self.clients)

    def hear_sync(self, client: Client, response: SyncGroupResponse, error: ErrorCode) -> None:
        client.doing = "join" if error else "heartbeat"
        if error:
            return
        client.assignment = response.assignment
        group = self.shard.store.groups[GROUP]
        assert (
            group.state is GroupState.STABLE
            or client.generation < group.generation
            or not client.diligent
            or (group.state is GroupState.PREPARING_REBALANCE)
        )
        meant = self.assigned.get((self.incarnation, client.generation))
        if meant is not None and client.member_id in meant:
            assert response.assignment == meant[client.member_id]

    def act(self, client: Client) -> None:
        if client.doing == "join":
            self.join(client)
        elif client.doing == "sync":
            self.sync(client)
        elif client.doing == "heartbeat":
            self.heartbeat(client)

    # Rules

    @precondition(lambda self: sum(client.diligent for client in self.clients) < 4)
    @rule(static=st.booleans(), protocols=st.sampled_from([("range",), ("range", "sticky")]))
    def somebody_behaved_comes(self, static: bool, protocols: tuple[str, ...]) -> None:
        self.ids += 1
        name = f"good{self.ids}"
        client = Client(name, True, instance=name if static else None, protocols=protocols)
        self.clients.append(client)
        self.act(client)
        self.settle()

    @precondition(lambda self: sum(not client.diligent for client in self.clients) < 4)
    @rule(
        instance=st.sampled_from([None, "i1", "i2"]),
        session_s=st.integers(6, 30),
        rebalance_s=st.integers(0, 60),
        version=st.sampled_from([3, 9]),
    )
    def somebody_comes(self, instance: str | None, session_s: int, rebalance_s: int, version: int) -> None:
        self.ids += 1
        client = Client(
            f"bad{self.ids}",
            False,
            instance=instance,
            session_ms=session_s * 1000,
            rebalance_ms=rebalance_s * 1000,
        )
        self.clients.append(client)
        self.join(client, version)
        self.settle()

    def erratic(self, number: int) -> Client | None:
        some = [client for client in self.clients if not client.diligent]
        return some[number % len(some)] if some else None

    @rule(
        number=st.integers(0, 3),
        what=st.sampled_from(["join", "join anew", "join changed", "sync", "heartbeat", "commit", "leave"]),
        version=st.sampled_from([3, 8, 9]),
    )
    def somebody_does_something(self, number: int, what: str, version: int) -> None:
        client = self.erratic(number)
        if client is None:
            return
        if what == "join anew":
            client.member_id = ""
        if what == "join changed":
            client.protocols = ("range", "other") if client.protocols == ("range",) else ("range",)
        if what.startswith("join"):
            self.join(client, version)
        elif what == "commit":
            self.commit(client, 999)
        else:
            getattr(self, what)(client)
        self.settle()

    @rule(number=st.integers(0, 3), offset=st.integers(0, 100))
    def somebody_commits(self, number: int, offset: int) -> None:
        some = [client for client in self.clients if client.diligent and client.doing == "heartbeat"]
        if some and not some[number % len(some)].forgiven and not self.log.failures:
            assert self.commit(some[number % len(some)], offset) is ErrorCode.NONE

    @rule(number=st.integers(0, 3))
    def somebody_behaved_leaves(self, number: int) -> None:
        some = [client for client in self.clients if client.diligent and client.doing == "heartbeat"]
        if some:
            client = some[number % len(some)]
            self.clients.remove(client)
            client.diligent = False
            self.leave(client)
            self.settle()

    @rule(seconds=st.integers(1, 20))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_ms += 1_000
            self.deliver(self.shard.tick(self.now_ms))
            self.settle()
            for client in self.clients:
                if client.diligent:
                    self.act(client)
                    self.settle()

    @rule(code=st.sampled_from(sorted(OF_THE_LOG)))
    def the_next_append_fails(self, code: ErrorCode) -> None:
        self.log.failures = [code]

    @rule()
    def the_broker_restarts(self) -> None:
        before, offsets = self.stable_group(), self.offsets(self.shard)
        self.mailbox.clear()
        self.waiting.clear()
        self.log.failures = []
        self.shard = self.recovered()
        self.incarnation += 1
        for client in self.clients:
            client.forgiven = True
            client.doing = {"joining": "join", "syncing": "join"}.get(client.doing, client.doing)
        assert self.offsets(self.shard) == offsets
        if before is not None:
            assert self.stable_group() == before

    # What always holds

    @invariant()
    def the_group_is_consistent(self) -> None:
        group = self.shard.store.groups.get(GROUP) if hasattr(self, "shard") else None
        if group is None:
            return
        assert group.joining_count == sum(member.joining is not None for member in group.members.values())
        assert not group.pending_joins & group.members.keys()
        assert group.pending_syncs <= group.members.keys()
        assert (group.leader in group.members) if group.members else group.leader is None
        statics = {
            member.instance_id: member.member_id for member in group.members.values() if member.is_static
        }
        assert group.static_members == statics
        waiting = {member.joining for member in group.members.values() if member.joining is not None}
        waiting |= {member.syncing for member in group.members.values() if member.syncing is not None}
        assert waiting == self.waiting.keys()
        if group.state is GroupState.STABLE or group.state is GroupState.EMPTY:
            assert not waiting
        if group.state is GroupState.EMPTY:
            assert not group.members

    @invariant()
    def recovered_offsets_are_the_same(self) -> None:
        if hasattr(self, "shard"):
            assert self.offsets(self.recovered()) == self.offsets(self.shard)

    def teardown(self) -> None:
        """Check that diligent clients settle in one generation when nothing disturbs them."""
        if not hasattr(self, "shard"):
            return
        self.log.failures = []
        self.time_passes(420)
        good = [client for client in self.clients if client.diligent]
        assert {client.doing for client in good} <= {"heartbeat"}
        assert len({client.generation for client in good}) <= 1
        assert len({client.assignment for client in good}) == len(good)
        group = self.shard.store.groups.get(GROUP)
        assert {client.member_id for client in good} == set(group.members if group is not None else ())

    def recovered(self) -> GroupShard:
        shard = GroupShard(self.log, self.settings)
        for entry in self.log.entries:
            shard.load(entry)
        shard.loaded(self.now_ms)
        return shard

    def offsets(self, shard: GroupShard) -> dict[tuple[str, int], int]:
        response = shard.fetch(OffsetFetchRequestGroup(group_id=GROUP, topics=None))
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in response.topics
            for partition in topic.partitions
        }

    def stable_group(self) -> dict[str, Any] | None:
        group = self.shard.store.groups.get(GROUP)
        if group is None or group.state is not GroupState.STABLE:
            return None
        members = {member.member_id: member.assignment for member in group.members.values()}
        return {"generation": group.generation, "leader": group.leader, "members": members}


TestGroupHistories = GroupHistories.TestCase
TestGroupHistories.settings = settings(max_examples=depth.times(200), stateful_step_count=30)
