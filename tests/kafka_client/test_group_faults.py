from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafka_client import Client, GroupMember, TopicPartition
from kafka_client.errors import ErrorCode, Fenced, KafkaError, RebalanceNeeded
from kafka_client.wire import ApiKey
from kafka_client.wire.messages.heartbeat import HeartbeatResponse
from kafka_client.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from kafka_client.wire.messages.leave_group import LeaveGroupResponse
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_client.wire.messages.sync_group import SyncGroupResponse
from tests.kafka_client.fake_broker import CUT, SILENCE, FakeBroker, ReceivedRequest
from tests.kafka_client.running import QUICK, run
from tests.support.waiting import until

TP = TopicPartition("t", 0)


class Everything:
    """A protocol that gives all the work to everybody."""

    name = "everything"

    def metadata(self) -> bytes:
        return b"me"

    async def assign(self, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return dict.fromkeys(members, b"all")


class Coordinator:
    """A coordinator with one member, scripted where a test says so; and the member's diary."""

    def __init__(self, broker: FakeBroker, client: Client) -> None:
        self.broker = broker
        self.client = client
        self.generation = 0
        self.diary: list[str] = []
        broker.on(ApiKey.JOIN_GROUP, self.join)
        broker.on(ApiKey.SYNC_GROUP, self.sync)
        broker.on(ApiKey.HEARTBEAT, lambda _: HeartbeatResponse())
        broker.on(ApiKey.LEAVE_GROUP, lambda _: LeaveGroupResponse())
        broker.on(ApiKey.OFFSET_COMMIT, lambda _: self.committed(0))

    def join(self, request: ReceivedRequest) -> JoinGroupResponse:
        if not request.message.member_id:
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m1")
        self.generation += 1
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name="everything",
            leader="m1",
            member_id="m1",
            members=[JoinGroupResponseMember(member_id="m1", metadata=b"me")],
        )

    def sync(self, request: ReceivedRequest) -> SyncGroupResponse:
        return SyncGroupResponse(assignment=request.message.assignments[0].assignment)

    def committed(self, code: int) -> OffsetCommitResponse:
        partitions = [OffsetCommitResponsePartition(partition_index=0, error_code=code)]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=partitions)])

    def beat(self, *codes: int) -> None:
        """Answer the next heartbeats so, and all after them with success."""
        answers = [*codes, 0]
        self.broker.on(
            ApiKey.HEARTBEAT, *(lambda _, code=code: HeartbeatResponse(error_code=code) for code in answers)
        )

    def member(self, **settings: Any) -> GroupMember:
        def write(what: str) -> Any:
            return lambda assignment, generation: self.diary.append(f"{what} {generation}")

        options = {
            "on_assigned": write("assigned"),
            "on_revoked": write("revoked"),
            "on_lost": write("lost"),
            "heartbeat_interval_ms": 5,
            **settings,
        }
        return GroupMember(self.client, "g", protocols=[Everything()], **options)


@asynccontextmanager
async def coordinator() -> AsyncIterator[Coordinator]:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        yield Coordinator(broker, client)


async def test_a_member_gets_an_id_joins_leads_and_leaves() -> None:
    async with coordinator() as at:
        async with at.member() as member:
            await member.wait_joined()
            assert (member.member_id, member.generation, member.assignment) == ("m1", 1, b"all")
            assert member.is_leader
            assert member.protocol == "everything"
        assert at.diary == ["assigned 1", "revoked 1"]
        assert at.broker.count(ApiKey.LEAVE_GROUP) == 1


@pytest.mark.parametrize("eager", [True, False])
async def test_a_rebalance_is_followed(eager: bool) -> None:
    async with coordinator() as at, at.member(eager=eager) as member:
        await member.wait_joined()
        at.beat(ErrorCode.REBALANCE_IN_PROGRESS)
        await until(lambda: member.generation == 2 and member.is_stable)
        expected = ["assigned 1", "revoked 1", "assigned 2"] if eager else ["assigned 1", "assigned 2"]
        assert at.diary == expected


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
@pytest.mark.parametrize("eager", [True, False])
async def test_lost_membership_is_told_and_regained(code: ErrorCode, eager: bool) -> None:
    async with coordinator() as at, at.member(eager=eager) as member:
        await member.wait_joined()
        at.beat(code)
        await until(lambda: member.generation == 2 and member.is_stable)
        assert at.diary == ["assigned 1", "lost 1", "assigned 2"]
        ids = [a.message.member_id for a in at.broker.requests if a.api_key == ApiKey.JOIN_GROUP]
        again = ["", "m1"] if code == ErrorCode.UNKNOWN_MEMBER_ID else ["m1"]
        assert ids == ["", "m1", *again]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REBALANCE_IN_PROGRESS,
    ],
)
async def test_joining_goes_on_until_the_coordinator_is_ready(code: ErrorCode) -> None:
    async with coordinator() as at:
        at.broker.on(ApiKey.JOIN_GROUP, lambda _: JoinGroupResponse(error_code=code), at.join)
        at.broker.on(ApiKey.SYNC_GROUP, lambda _: SyncGroupResponse(error_code=code), at.sync)
        async with at.member() as member:
            await member.wait_joined()
            assert member.generation == 2
            assert at.diary == ["assigned 2"]
        moved = code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert at.broker.count(ApiKey.FIND_COORDINATOR) == (3 if moved else 1)


async def test_a_coordinator_that_moves_is_followed() -> None:
    async with FakeBroker(1) as old, FakeBroker(2, old.nodes) as new:
        async with Client(old.bootstrap, **QUICK) as client:
            at = Coordinator(old, client)
            async with at.member() as member:
                await member.wait_joined()
                elsewhere = new._by_itself
                old.on(ApiKey.FIND_COORDINATOR, elsewhere)
                new.on(ApiKey.FIND_COORDINATOR, elsewhere)
                new.on(ApiKey.HEARTBEAT, lambda _: HeartbeatResponse())
                new.on(ApiKey.LEAVE_GROUP, lambda _: LeaveGroupResponse())
                moved = HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
                old.on(ApiKey.HEARTBEAT, lambda _: moved)
                await until(lambda: new.count(ApiKey.HEARTBEAT) >= 2)
                assert at.diary == ["assigned 1"]
            assert new.count(ApiKey.LEAVE_GROUP) == 1


@pytest.mark.parametrize("api", [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT])
async def test_a_connection_cut_costs_nothing_but_time(api: ApiKey) -> None:
    async with coordinator() as at:
        usual = at.broker._scripts[api][0]
        at.broker.on(api, lambda _: CUT, usual)
        async with at.member() as member:
            await member.wait_joined()
            await until(lambda: at.broker.count(ApiKey.HEARTBEAT) >= 3)
        assert "lost" not in " ".join(at.diary)


def test_heartbeats_go_on_while_a_callback_runs() -> None:
    async def test() -> None:
        async with coordinator() as at:
            beats_before = 0

            async def slow(assignment: bytes, generation: int) -> None:
                nonlocal beats_before
                beats_before = at.broker.count(ApiKey.HEARTBEAT)
                await until(lambda: at.broker.count(ApiKey.HEARTBEAT) >= beats_before + 5)

            async with at.member(on_assigned=slow, on_revoked=slow) as member:
                await member.wait_joined()
            assert at.broker.count(ApiKey.HEARTBEAT) >= 10

    run(test())


async def test_a_rebalance_signalled_during_on_revoked_makes_no_second_one() -> None:
    async with coordinator() as at:
        going = ErrorCode.REBALANCE_IN_PROGRESS

        async def slow(assignment: bytes, generation: int) -> None:
            heartbeats = at.broker.count(ApiKey.HEARTBEAT)
            await until(lambda: at.broker.count(ApiKey.HEARTBEAT) >= heartbeats + 3)

        async with at.member(on_revoked=slow) as member:
            await member.wait_joined()
            at.broker.on(
                ApiKey.HEARTBEAT,
                lambda request: HeartbeatResponse(
                    error_code=going if request.message.generation_id == 1 else 0
                ),
            )
            await until(lambda: member.generation == 2 and member.is_stable)
            count_before = at.broker.count(ApiKey.HEARTBEAT)
            await until(lambda: at.broker.count(ApiKey.HEARTBEAT) >= count_before + 3)
            assert member.generation == 2


async def test_a_fenced_static_member_stops_and_does_not_leave() -> None:
    async with coordinator() as at:
        failures: list[BaseException] = []
        member = at.member(group_instance_id="static", on_failed=failures.append)
        await member.start()
        await member.wait_joined()
        at.beat(ErrorCode.FENCED_INSTANCE_ID)
        await until(lambda: failures)
        with pytest.raises(Fenced):
            member.check()
        with pytest.raises(Fenced):
            await member.commit({TP: 1})
        assert at.diary == ["assigned 1", "lost 1"]
        await member.close()
        assert at.broker.count(ApiKey.LEAVE_GROUP) == 0


async def test_a_static_member_keeps_its_place_when_it_closes() -> None:
    async with coordinator() as at:
        async with at.member(group_instance_id="static") as member:
            await member.wait_joined()
        assert at.diary == ["assigned 1", "revoked 1"]
        assert at.broker.count(ApiKey.LEAVE_GROUP) == 0


async def test_what_joining_cannot_mend_is_raised() -> None:
    async with coordinator() as at:
        no = JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        at.broker.on(ApiKey.JOIN_GROUP, lambda _: no)
        async with at.member() as member:
            with pytest.raises(KafkaError, match="INCONSISTENT_GROUP_PROTOCOL"):
                await member.wait_joined()


async def test_an_exception_in_a_callback_ends_the_member_and_frees_its_place() -> None:
    async with coordinator() as at:

        def fail(assignment: bytes, generation: int) -> None:
            raise LookupError("no such thing")

        async with at.member(on_assigned=fail) as member:
            with pytest.raises(LookupError):
                await member.wait_joined()
        assert at.broker.count(ApiKey.LEAVE_GROUP) == 1


@pytest.mark.parametrize(
    "code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REBALANCE_IN_PROGRESS]
)
async def test_a_commit_of_a_generation_that_is_over_says_so_and_rejoins(code: ErrorCode) -> None:
    async with coordinator() as at, at.member(heartbeat_interval_ms=10_000) as member:
        await member.wait_joined()
        await member.commit({TP: 5})
        request = at.broker.requests[-1].message
        assert (request.generation_id_or_member_epoch, request.member_id) == (1, "m1")
        at.broker.on(ApiKey.OFFSET_COMMIT, lambda _: at.committed(code))
        with pytest.raises(RebalanceNeeded):
            await member.commit({TP: 6})
        await until(lambda: member.generation == 2 and member.is_stable)


async def test_a_commit_is_retried_while_the_coordinator_loads() -> None:
    async with coordinator() as at, at.member() as member:
        await member.wait_joined()
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        at.broker.on(ApiKey.OFFSET_COMMIT, lambda _: at.committed(loading), lambda _: at.committed(0))
        await member.commit({TP: 5})
        assert at.broker.count(ApiKey.OFFSET_COMMIT) == 2


async def test_a_commit_of_a_topic_that_is_gone_is_not_retried() -> None:
    async with coordinator() as at, at.member() as member:
        await member.wait_joined()
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        at.broker.on(ApiKey.OFFSET_COMMIT, lambda _: at.committed(code))
        with pytest.raises(KafkaError, match="t-0"):
            await member.commit({TP: 5})
        assert at.broker.count(ApiKey.OFFSET_COMMIT) == 1


async def test_request_rejoin_during_on_assigned_is_not_forgotten() -> None:
    async with coordinator() as at:

        def again(assignment: bytes, generation: int) -> None:
            if generation == 1:
                member.request_rejoin()

        member = at.member(on_assigned=again, eager=False)
        async with member:
            await until(lambda: member.generation == 2 and member.is_stable)


async def test_closing_while_joining_does_not_wait_for_the_group() -> None:
    async with coordinator() as at:
        at.broker.on(ApiKey.JOIN_GROUP, at.join, lambda _: SILENCE)
        member = at.member()
        await member.start()
        await until(lambda: at.broker.count(ApiKey.JOIN_GROUP) == 2)
        await member.close()
        assert at.broker.count(ApiKey.LEAVE_GROUP) == 1


async def test_heartbeats_and_commits_do_not_wait_behind_a_join() -> None:
    async with coordinator() as at, at.member(eager=False) as member:
        await member.wait_joined()
        joined = asyncio.Event()

        async def slow(request: ReceivedRequest) -> JoinGroupResponse:
            await joined.wait()
            return at.join(request)

        at.broker.on(ApiKey.JOIN_GROUP, slow)
        before = at.broker.count(ApiKey.JOIN_GROUP)
        member.request_rejoin()
        await until(lambda: at.broker.count(ApiKey.JOIN_GROUP) > before)
        await member.commit({TP: 7})
        joined.set()
        await until(lambda: member.generation == 2)


# -- cooperative members


async def test_a_join_waits_until_the_generation_is_not_held() -> None:
    """For a commit of several steps: it would be refused in the middle."""
    async with coordinator() as at, at.member(eager=False) as member:
        await member.wait_joined()
        at.broker.on(
            ApiKey.HEARTBEAT,
            lambda request: HeartbeatResponse(
                error_code=ErrorCode.REBALANCE_IN_PROGRESS if request.message.generation_id == 1 else 0
            ),
        )
        joins = at.broker.count(ApiKey.JOIN_GROUP)
        with member.holding_generation():
            heartbeats = at.broker.count(ApiKey.HEARTBEAT)
            await until(lambda: at.broker.count(ApiKey.HEARTBEAT) >= heartbeats + 3)
            assert not member.is_stable
            assert member.is_joining, "or one hold after the other would keep it waiting"
            await member.commit({TP: 1})
            assert at.broker.count(ApiKey.JOIN_GROUP) == joins
        await until(lambda: member.generation == 2 and member.is_stable)


async def test_a_member_that_is_out_while_its_join_waits_has_lost_its_work() -> None:
    """Joining again, the member must not claim the partitions of its old generation."""
    async with coordinator() as at, at.member(eager=False) as member:
        await member.wait_joined()
        at.beat(ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID)
        with member.holding_generation():
            await until(lambda: member.generation == -1)
        await until(lambda: member.generation == 2 and member.is_stable)
        assert at.diary == ["assigned 1", "lost 1", "assigned 2"]


async def test_work_is_lost_over_a_generation_without_this_member() -> None:
    async with coordinator() as at, at.member(eager=False, group_instance_id="static") as member:
        await member.wait_joined()
        member.request_rejoin()
        await until(lambda: member.generation == 2 and member.is_stable)
        at.generation += 1
        member.request_rejoin()
        await until(lambda: member.generation == 4 and member.is_stable)
        assert at.diary == ["assigned 1", "assigned 2", "lost 2", "assigned 4"]


@pytest.mark.parametrize("instance", [None, "static"])
async def test_a_member_that_steps_out_is_one_again_when_it_asks(instance: str | None) -> None:
    async with coordinator() as at, at.member(eager=False, group_instance_id=instance) as member:
        await member.wait_joined()
        await member.step_out("the work stands still")
        assert at.broker.count(ApiKey.LEAVE_GROUP) == 1
        with pytest.raises(RebalanceNeeded):
            await member.confirm()
        with pytest.raises(RebalanceNeeded):
            await member.commit({TP: 1})
        assert at.diary == ["assigned 1"]
        member.request_rejoin()
        await until(lambda: member.generation == 2 and member.is_stable)
        assert at.diary == ["assigned 1", "lost 1", "assigned 2"]
        await member.confirm()
