"""A coordinator's partitions come and go with their leaders: updates in any order, and during loads.

The tests use groups as the example of both coordinators. The log is replicated: records are committed when
the test says so, or never.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch
from kafka_client.wire.messages.describe_groups import DescribedGroup
from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_client.wire.messages.list_groups import ListGroupsRequest
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequestGroup
from logd.broker.groups.groups import Groups
from logd.broker.topics.leadership import Leadership
from logd.broker.topics.topic import GROUP_OFFSETS
from logd.config.broker import BrokerConfig
from logd.groups import CoordinatorRecord, encode_record
from logd.groups.records import OffsetCommitKey, OffsetCommitValue, OffsetRecord
from tests.logd.broker.replicated_partition import ReplicatedPartition
from tests.support import depth


class Stage:
    """Groups over one such partition.

    A load waits for `reading` before it reads. A new group waits `rebalance_delay_ms` for further members, in
    the loop's time.
    """

    def __init__(self, rebalance_delay_ms: int = 0) -> None:
        self.partition = ReplicatedPartition(GROUP_OFFSETS)
        self.reading: asyncio.Event = asyncio.Event()
        self.reading.set()
        topic = SimpleNamespace(partitions=[self.partition])
        catalog: Any = SimpleNamespace(
            topics={GROUP_OFFSETS: topic}, partitions={(GROUP_OFFSETS, 0): self.partition}
        )
        config = BrokerConfig.of({"group.initial.rebalance.delay.ms": str(rebalance_delay_ms)})

        async def create_topic(name: str) -> Any:
            raise AssertionError

        async def read_in(log: Any) -> None:
            await self.reading.wait()

        self.groups = Groups(
            config, catalog, now_ms=lambda: 1_000_000, create_topic=create_topic, read_in=read_in
        )

    def elected(self, epoch: int) -> None:
        self.partition.is_leader = True
        self.partition.leader_epoch = epoch
        self.groups.elected(0, epoch)

    def store(self, *values: int) -> None:
        """Store offsets of `g`, as an earlier coordinator's commits."""
        for value in values:
            self.partition.append(build_batch([(0, *encode_record(offset(value)), ())]), 0)

    def commit(self, value: int) -> None:
        request = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=value)],
                )
            ],
        )
        response = self.groups.partition("g").shard.commit(request, 9, 0)
        code = response.topics[0].partitions[0].error_code
        if code:
            raise KafkaError(code)

    async def committed(self, value: int) -> None:
        self.commit(value)
        await self.groups.partition("g").flushed()

    async def fetched(self) -> int:
        """Return the offset that OffsetFetch answers, or -1."""
        partition = self.groups.partition("g")
        answer = partition.shard.fetch(OffsetFetchRequestGroup(group_id="g", topics=None))
        await partition.flushed()
        return answer.topics[0].partitions[0].committed_offset if answer.topics else -1

    async def described(self) -> DescribedGroup:
        partition = self.groups.partition("g")
        group = partition.shard.describe("g", 6)
        await partition.flushed()
        return group


def offset(value: int) -> CoordinatorRecord:
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    return OffsetRecord(key, OffsetCommitValue(offset=value, commit_timestamp=1_000_000))


def run(story: Any, *, rebalance_delay_ms: int = 0) -> None:
    async def whole() -> None:
        stage = Stage(rebalance_delay_ms)
        await story(stage)
        await stage.groups.stop()

    asyncio.run(asyncio.wait_for(whole(), 100))


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def code_of(doing: Coroutine[Any, Any, object]) -> ErrorCode:
    try:
        await doing
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_broker_of_a_cluster_leads_only_what_it_was_elected_for() -> None:
    async def story(stage: Stage) -> None:
        stage.store(7)
        stage.groups.only_elected()
        stage.groups.start()
        await turns()
        assert await code_of(stage.fetched()) is ErrorCode.NOT_COORDINATOR
        assert await stage.groups.matching(ListGroupsRequest()) == [], "other brokers list theirs"
        stage.elected(3)
        assert await code_of(stage.fetched()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await turns()
        assert await stage.fetched() == 7
        stage.groups.resigned(0, 4)
        assert await code_of(stage.fetched()) is ErrorCode.NOT_COORDINATOR

    run(story)


def test_a_load_under_way_when_it_resigns_ends_without_effect() -> None:
    """Loads under way at a resignation end without effect.

    The load's end marked the partition as loaded, although it had been resigned meanwhile.
    """

    async def story(stage: Stage) -> None:
        stage.store(7)
        stage.reading.clear()
        stage.elected(1)
        await turns()
        loading = stage.groups._partitions[0]
        stage.groups.resigned(0, 1)
        stage.reading.set()
        await turns()
        assert not loading.loaded
        assert stage.groups._partitions == {}

    run(story)


def test_an_election_that_is_not_new_changes_nothing() -> None:
    async def story(stage: Stage) -> None:
        stage.elected(5)
        await stage.committed(1)
        at_work = stage.groups._partitions[0]
        stage.groups.elected(0, 5)
        stage.groups.elected(0, 4)
        stage.groups.resigned(0, 4)
        assert stage.groups._partitions[0] is at_work and at_work.loaded
        stage.groups.resigned(0, 5)
        stage.groups.elected(0, 5)
        assert stage.groups._partitions == {}, "what was resigned does not come to life again"
        stage.elected(6)
        await turns()
        assert await stage.fetched() == 1

    run(story)


def test_a_newer_election_reloads() -> None:
    """Elections in a newer epoch load the partition again: another broker may have led it in between."""

    async def story(stage: Stage) -> None:
        stage.elected(1)
        await stage.committed(1)
        stage.store(2)
        assert await stage.fetched() == 1
        stage.elected(3)
        await turns()
        assert await stage.fetched() == 2

    run(story)


def test_elections_at_once_are_loaded_one_after_the_other_but_for_requests() -> None:
    async def story(stage: Stage) -> None:
        stage.store(7)
        stage.reading.clear()
        stage.elected(1)
        await turns()
        stage.elected(2)
        await turns()
        assert len(stage.groups._elected) == 1
        assert await code_of(stage.fetched()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert not stage.groups._elected, "the request brings it forward"
        stage.reading.set()
        await turns()
        assert await stage.fetched() == 7

    run(story)


def test_who_waits_when_it_resigns_is_sent_elsewhere() -> None:
    async def story(stage: Stage) -> None:
        stage.elected(1)
        stage.partition.lags = True
        committing = asyncio.ensure_future(code_of(stage.committed(1)))
        await turns()
        joining = asyncio.ensure_future(stage.groups.join(join_request(), 1, "c", "h"))
        fetching = asyncio.ensure_future(code_of(stage.fetched()))
        describing = asyncio.ensure_future(code_of(stage.described()))
        await turns()
        assert not any(one.done() for one in (joining, committing, fetching, describing))
        stage.groups.resigned(0, 2)
        stage.partition.replicate()  # too late
        assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
        for task in (committing, fetching, describing):
            assert await task is ErrorCode.NOT_COORDINATOR

    run(story, rebalance_delay_ms=100_000)  # the joining member waits still, however slow the machine


def test_nothing_is_told_that_is_not_committed() -> None:
    async def story(stage: Stage) -> None:
        stage.elected(1)
        stage.partition.lags = True
        committing = asyncio.ensure_future(code_of(stage.committed(1)))
        fetching = asyncio.ensure_future(stage.fetched())
        await turns()
        assert not committing.done() and not fetching.done()
        stage.partition.replicate()
        assert await committing is ErrorCode.NONE
        assert await fetching == 1
        assert await stage.fetched() == 1

    run(story)


def test_what_a_new_leader_has_loaded_is_told_once_it_is_committed() -> None:
    """Responses from a loaded log wait until it is committed.

    The last leader's followers may lack its last records, and one of them may lead next.
    """

    async def story(stage: Stage) -> None:
        stage.partition.lags = True
        stage.store(7)
        stage.elected(1)
        fetching: asyncio.Task[int] | None = None
        await turns()
        fetching = asyncio.ensure_future(stage.fetched())
        await turns()
        assert not fetching.done()
        stage.partition.replicate()
        assert await fetching == 7

    run(story)


def test_offsets_of_a_transaction_count_once_its_marker_is_committed() -> None:
    async def story(stage: Stage) -> None:
        stage.elected(1)
        await stage.committed(1)
        stage.partition.lags = True
        marker = stage.partition.append(build_batch([(0, b"", b"", ())]), 0)
        stage.groups.transaction_ended(0, 1, 0, True, marker)
        fetching = asyncio.ensure_future(stage.fetched())
        await turns()
        assert not fetching.done()
        stage.partition.replicate()
        assert await fetching == 1

    run(story)


def test_what_is_truncated_is_not_shown() -> None:
    """Waits end with NOT_LEADER_OR_FOLLOWER before the new leader is known, and truncated records are not
    shown.
    """

    async def story(stage: Stage) -> None:
        stage.elected(1)
        await stage.committed(1)
        stage.partition.lags = True
        committing = asyncio.ensure_future(code_of(stage.committed(2)))
        await turns()
        stage.partition.depose()
        assert await committing is ErrorCode.NOT_COORDINATOR
        assert await code_of(stage.fetched()) is ErrorCode.NOT_COORDINATOR
        stage.partition.truncate(1)
        stage.groups.resigned(0, 2)
        stage.elected(3)
        await turns()
        assert await stage.fetched() == 1

    run(story)


def test_an_append_that_finds_another_leader_ends_the_term() -> None:
    async def story(stage: Stage) -> None:
        stage.elected(1)
        await stage.committed(1)
        stage.partition.depose()
        assert await code_of(stage.committed(2)) is ErrorCode.NOT_COORDINATOR
        await turns()
        assert stage.groups._partitions == {}

    run(story)


def test_an_old_term_appends_nothing_in_a_new_one() -> None:
    """Terms of an old leader epoch append nothing when the partition is elected again, after another
    broker's term.
    """

    async def story(stage: Stage) -> None:
        stage.elected(1)
        await stage.committed(1)
        stage.store(2)
        stage.partition.leader_epoch = 3
        assert await code_of(stage.committed(3)) is ErrorCode.NOT_COORDINATOR
        assert await code_of(stage.fetched()) is ErrorCode.NOT_COORDINATOR
        stage.elected(3)
        await turns()
        assert await stage.fetched() == 2
        await stage.committed(4)
        assert stage.partition.epochs == [1, 1, 3]

    run(story)


def test_too_few_replicas_are_waited_for_by_the_client() -> None:
    """Commits with too few replicas are kept; the client only has to send the request again."""

    async def story(stage: Stage) -> None:
        stage.elected(1)
        stage.partition.lags = True
        committing = asyncio.ensure_future(code_of(stage.committed(1)))
        await turns()
        stage.partition.depose(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        assert await committing is ErrorCode.COORDINATOR_NOT_AVAILABLE
        stage.partition.replicate()
        assert await stage.fetched() == 1

    run(story)


def test_a_topic_that_is_made_anew_begins_at_its_first_epoch() -> None:
    async def story(stage: Stage) -> None:
        stage.elected(5)
        stage.groups.resigned(0, 6)
        stage.groups.topics_deleted([GROUP_OFFSETS])
        stage.elected(0)
        assert await stage.fetched() == -1

    run(story)


News = st.tuples(st.sampled_from(["elected", "resigned"]), st.integers(0, 6))


@settings(max_examples=depth.times(100))
@given(st.lists(News, max_size=20), st.booleans())
def test_only_the_newest_news_counts(news: list[tuple[str, int]], leads_untold: bool) -> None:
    leadership = Leadership(leads_untold=leads_untold)
    newest, leads = -1, leads_untold
    for kind, epoch in news:
        before = leads
        if kind == "elected":
            is_news = leadership.elected(0, epoch, is_complete=True)
            assert is_news is (epoch > newest)
            leads = is_news or leads
        else:
            is_news = leadership.resigned(0, epoch)
            assert is_news is (epoch >= newest and before)
            leads = leads and epoch < newest
        newest = max(newest, epoch)
        assert leadership.leads(0) is leads and leadership.epoch(0) == newest


Step = st.one_of(
    st.tuples(st.sampled_from(["elected", "resigned"]), st.integers(0, 6)),
    st.tuples(st.sampled_from(["turn", "read", "block", "commit", "join", "replicate", "lag", "fetch"])),
)


@settings(max_examples=depth.times(150), deadline=None)
@given(st.lists(Step, max_size=30))
def test_histories_of_elections(steps: list[tuple[Any, ...]]) -> None:
    """Random histories of elections: no request waits for ever, only leaders append, acknowledged offsets
    are kept.
    """

    async def story(stage: Stage) -> None:
        stage.groups.only_elected()
        stage.groups.start()
        tasks: list[asyncio.Task[Any]] = []
        acknowledged: list[int] = []
        term: tuple[int, bool] = (-1, False)
        value = 0

        async def commit(value: int) -> None:
            if await code_of(stage.committed(value)) is ErrorCode.NONE:
                acknowledged.append(value)

        async def join() -> None:
            await code_of(stage.groups.join(join_request(), 1, "c", "h"))

        for kind, *arguments in steps:
            appended = len(stage.partition.batches)
            if kind == "elected":
                (epoch,) = arguments
                if epoch > term[0]:
                    term = epoch, True
                    stage.elected(epoch)
                else:
                    stage.groups.elected(0, epoch)
            elif kind == "resigned":
                (epoch,) = arguments
                if epoch >= term[0]:
                    term = epoch, False
                stage.groups.resigned(0, epoch)
            elif kind == "commit":
                value += 1
                tasks.append(asyncio.ensure_future(commit(value)))
            elif kind == "join":
                tasks.append(asyncio.ensure_future(join()))
            elif kind == "fetch":
                tasks.append(asyncio.ensure_future(code_of(stage.fetched())))
            elif kind == "read":
                stage.reading.set()
            elif kind == "block":
                stage.reading.clear()
            elif kind == "replicate":
                stage.partition.lags = False
                stage.partition.replicate()
            elif kind == "lag":
                stage.partition.lags = True
            await turns(3)
            if not term[1]:
                assert len(stage.partition.batches) == appended, "appended though it does not lead"
            assert (0 in stage.groups._partitions) is term[1]
        stage.reading.set()
        stage.groups.resigned(0, 7)
        await asyncio.wait_for(asyncio.gather(*tasks), 10)
        assert stage.groups._partitions == {} and not stage.groups._elected
        stage.partition.lags = False
        stage.partition.replicate()
        stage.elected(8)
        await turns(50)
        last = await stage.fetched()
        assert last >= max(acknowledged, default=-1)

    run(story)


def join_request() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="test",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
