"""Transactions whose coordinator moves, over a log that replicates: nothing is told, and no marker written,
that a new leader may not know of; and the new one finishes what was decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.coordinators.producer_id_blocks import BlocksAhead
from logd.broker.coordinators.producer_ids import ProducerIds
from logd.broker.topics.topic import TRANSACTION_STATE
from logd.broker.transactions import partition as txn_partition
from logd.broker.transactions.transactions import Transactions
from logd.config.broker import BrokerConfig
from logd.transactions import ProducerIdentity, TransactionState
from tests.logd.broker.replicated_partition import ReplicatedPartition
from tests.logd.transactions.test_partition import PaperMarkers
from tests.support import depth
from tests.support.waiting import until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Controller:
    """Producer ids from 1000 on."""

    def __init__(self) -> None:
        self.first = 0

    async def next_block(self) -> tuple[int, int]:
        self.first += 1000
        return self.first, self.first + 999


class Stage:
    """A broker of a cluster, and its partition of `__transaction_state`."""

    def __init__(self) -> None:
        self.partition = ReplicatedPartition(TRANSACTION_STATE)
        self.blocks = BlocksAhead(Controller())
        topic = SimpleNamespace(partitions=[self.partition])
        catalog: Any = SimpleNamespace(
            topics={TRANSACTION_STATE: topic}, partitions={(TRANSACTION_STATE, 0): self.partition}
        )

        async def read_in(log: Any) -> None:
            await asyncio.sleep(0)

        self.transactions = Transactions(
            BrokerConfig.of({}),
            catalog,
            None,  # type: ignore[arg-type]
            ProducerIds.of_cluster(self.blocks),
            now_ms=lambda: 0,
            create_topic=None,  # type: ignore[arg-type]
            read_in=read_in,
        )
        self.markers = Marks()
        self.transactions.markers = self.markers  # type: ignore[assignment]
        self.transactions.only_elected()

    async def elected(self, epoch: int, **facts: Any) -> None:
        self.partition.is_leader = True
        self.partition.leader_epoch = epoch
        self.transactions.elected(0, epoch, **facts)
        await turns()

    async def begin(self, *places: TopicPartition) -> ProducerIdentity:
        identity = await self.transactions.init_producer("x", 60_000, None)
        await self.transactions.add_partitions("x", identity, places, client_version=2)
        return identity

    async def commit(self, identity: ProducerIdentity) -> ProducerIdentity:
        """Commit as the handler of EndTxn does, and return the producer's identity after it."""
        after = self.transactions.end_at_once("x", identity, commit=True, client_version=2)
        assert after is not None
        return after if isinstance(after, ProducerIdentity) else await after

    @property
    def state(self) -> TransactionState:
        return self.transactions.describe("x").state


class Marks(PaperMarkers):
    """The markers of `test_partition`, with the interface that all markers of a broker have."""

    def statistics(self) -> dict[str, int]:
        return {}

    async def stop(self) -> None:
        pass


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(txn_partition, "RETRY_FIRST_S", 0.001)
    monkeypatch.setattr(txn_partition, "RETRY_LAST_S", 0.001)


def run(story: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        stage = Stage()
        await story(stage)
        await stage.transactions.stop()
        await stage.blocks.stop()

    asyncio.run(asyncio.wait_for(whole(), 100))


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def code_of(doing: Awaitable[object]) -> ErrorCode:
    try:
        await doing
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_an_outcome_is_told_and_marked_once_it_is_committed() -> None:
    async def story(stage: Stage) -> None:
        await stage.elected(1)
        identity = await stage.begin(T0)
        stage.partition.lags = True
        ending = asyncio.ensure_future(stage.commit(identity))
        await turns()
        assert not ending.done() and stage.markers.written == []
        stage.partition.replicate()
        stage.partition.lags = False
        assert (await ending).epoch == identity.epoch + 1
        await until(lambda: stage.state is TransactionState.COMPLETE_COMMIT)
        assert stage.markers.written == [(T0, 1, True, 1)]

    run(story)


@pytest.mark.parametrize("how", ["verify", "describe", "list", "admit"])
def test_partitions_are_told_of_once_they_are_committed(how: str) -> None:
    async def story(stage: Stage) -> None:
        await stage.elected(1)
        identity = await stage.transactions.init_producer("x", 60_000, None)
        stage.partition.lags = True
        adding = asyncio.ensure_future(
            stage.transactions.add_partitions("x", identity, [T0], client_version=2)
        )
        await turns()
        telling: asyncio.Future[Any]
        if how == "verify":
            telling = asyncio.ensure_future(stage.transactions.verify_partitions("x", identity, [T0]))
        elif how == "describe":
            telling = asyncio.ensure_future(stage.transactions.describe_committed("x"))
        elif how == "list":
            telling = asyncio.ensure_future(stage.transactions.listed())
        else:
            consent = stage.transactions.admit("x", *identity, *T0, implicit=False)
            assert consent is not None
            telling = asyncio.ensure_future(consent)
        await turns()
        assert not adding.done() and not telling.done()
        stage.partition.replicate()
        await adding
        await telling
        assert stage.transactions.admit("x", *identity, *T0, implicit=False) is None

    run(story)


def test_what_was_loaded_admits_nobody_before_it_is_committed() -> None:
    async def story(stage: Stage) -> None:
        await stage.elected(1)
        stage.partition.lags = True
        identity = ProducerIdentity(1000, 0)
        beginning = asyncio.ensure_future(code_of(stage.begin(T0)))
        await turns()
        stage.transactions.resigned(0, 2)
        assert await beginning is ErrorCode.NOT_COORDINATOR
        await stage.elected(3)
        consent = stage.transactions.admit("x", *identity, *T0, implicit=True)
        assert consent is not None
        stage.partition.replicate()
        await consent
        assert stage.transactions.admit("x", *identity, *T0, implicit=True) is None

    run(story)


def test_the_next_leader_finishes_what_was_decided() -> None:
    async def story(stage: Stage) -> None:
        stage.markers.broken = {T1}
        await stage.elected(1)
        await stage.commit(await stage.begin(T0, T1))
        await until(lambda: T0 in stage.markers.places)
        written = len(stage.partition.batches)
        stage.transactions.resigned(0, 2)
        stage.markers.broken = set()
        await turns(50)
        assert T1 not in stage.markers.places and len(stage.partition.batches) == written
        await stage.elected(3)
        await until(lambda: stage.state is TransactionState.COMPLETE_COMMIT)
        assert {where: epoch for where, *_, epoch in stage.markers.written} == {T0: 3, T1: 3}

    run(story)


def test_no_marker_has_the_epoch_of_a_term_that_did_not_decide_it() -> None:
    """Terms that did not decide a transaction write no marker. The partition is elected again before the
    coordinator hears of it.
    """

    async def story(stage: Stage) -> None:
        await stage.elected(1)
        await stage.commit(await stage.begin(T0))
        stage.partition.leader_epoch = 7  # known, and the coordinator is not told yet
        await turns()
        assert stage.markers.written == []
        await stage.elected(7)
        await until(lambda: stage.state is TransactionState.COMPLETE_COMMIT)
        assert [epoch for *_, epoch in stage.markers.written] == [7]

    run(story)


def test_a_loaded_decision_is_marked_once_it_is_committed() -> None:
    async def story(stage: Stage) -> None:
        await stage.elected(1)
        identity = await stage.begin(T0)
        stage.partition.lags = True
        ending = asyncio.ensure_future(code_of(stage.commit(identity)))
        await turns()
        stage.transactions.resigned(0, 1)
        assert await ending is ErrorCode.NOT_COORDINATOR
        await stage.elected(2)
        assert stage.state is TransactionState.PREPARE_COMMIT
        await turns()
        assert stage.markers.written == []
        stage.partition.replicate()
        stage.partition.lags = False
        await until(lambda: stage.state is TransactionState.COMPLETE_COMMIT)
        assert stage.markers.written == [(T0, 1, True, 2)]

    run(story)


def test_a_decision_that_is_truncated_was_never_made() -> None:
    async def story(stage: Stage) -> None:
        await stage.elected(1)
        identity = await stage.begin(T0)
        end = stage.partition.log_end_offset
        stage.partition.lags = True
        ending = asyncio.ensure_future(code_of(stage.commit(identity)))
        await turns()
        stage.partition.depose()
        assert await ending is ErrorCode.NOT_COORDINATOR
        assert await code_of(stage.transactions.describe_committed("x")) is ErrorCode.NOT_COORDINATOR
        stage.partition.truncate(end)
        await stage.elected(3)
        assert stage.state is TransactionState.ONGOING and stage.markers.written == []

    run(story)


@pytest.mark.parametrize("complete", [True, False])
def test_after_a_clean_election_producers_keep_their_ids(complete: bool) -> None:
    """After an unclean one, epochs may have been given that the log does not know."""

    async def story(stage: Stage) -> None:
        await stage.elected(1)
        first = await stage.transactions.init_producer("x", 60_000, None)
        await stage.elected(2, complete=complete)
        second = await stage.transactions.init_producer("x", 60_000, None)
        assert (second == (first.producer_id, 1)) is complete
        assert (second.producer_id == first.producer_id) is complete

    run(story)


Step = st.one_of(
    st.tuples(st.just("elected")),
    st.tuples(st.just("resigned")),
    st.tuples(st.sampled_from(["begin", "end", "turn", "replicate", "lag", "break", "mend"])),
)


@settings(max_examples=depth.times(100), deadline=None)
@given(st.lists(Step, max_size=30))
def test_histories_of_elections(steps: list[tuple[str]]) -> None:
    """Requests all end, an ended term appends nothing, and an acknowledged commit gets its markers once
    there is a leader.
    """

    async def story(stage: Stage) -> None:
        epoch, leads = 0, False
        requests: list[asyncio.Task[None]] = []
        committed: list[ProducerIdentity] = []
        current: list[ProducerIdentity] = []

        async def begin() -> None:
            try:
                identity = await stage.begin(T0, T1)
            except KafkaError:
                return
            current[:] = [identity]

        async def end(identity: ProducerIdentity) -> None:
            try:
                await stage.commit(identity)
            except KafkaError:
                return
            committed.append(identity)

        for (kind,) in steps:
            appended = len(stage.partition.batches)
            if kind == "elected":
                epoch, leads = epoch + 1, True
                await stage.elected(epoch)
            elif kind == "resigned":
                epoch, leads = epoch + 1, False
                stage.transactions.resigned(0, epoch)
            elif kind == "begin":
                requests.append(asyncio.ensure_future(begin()))
            elif kind == "end" and current:
                requests.append(asyncio.ensure_future(end(current[0])))
            elif kind == "replicate":
                stage.partition.lags = False
                stage.partition.replicate()
            elif kind == "lag":
                stage.partition.lags = True
            elif kind == "break":
                stage.markers.broken = {T1}
            elif kind == "mend":
                stage.markers.broken = set()
            await turns(5)
            if not leads:
                assert len(stage.partition.batches) == appended, "appended though it does not lead"
        stage.transactions.resigned(0, epoch + 1)
        await asyncio.wait_for(asyncio.gather(*requests), 10)
        stage.markers.broken = set()
        stage.partition.lags = False
        stage.partition.replicate()
        await stage.elected(epoch + 2)
        await until(lambda: not stage.transactions.statistics()["finishing"])
        for identity in committed:
            for where in (T0, T1):
                marks = {
                    commit
                    for at, marked, commit, _ in stage.markers.written
                    if at == where and marked == identity.epoch + 1
                }
                assert marks == {True}, f"{identity} in {where}"

    run(story)
