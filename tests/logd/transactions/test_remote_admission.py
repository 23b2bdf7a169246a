"""Batches of transactions coordinated elsewhere: consent is asked for, waited for, and used once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, RequestTimedOut
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.message import Message
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from logd.api.handlers import add_partitions_to_txn
from logd.api.request.context import RequestContext
from logd.api.transaction_codes import produce_code
from logd.broker.coordinators.peers import NO_LEADER, Cluster
from logd.broker.partition.admission import NotYetAdmitted
from logd.broker.transactions import remote_admission
from logd.broker.transactions.remote_admission import RemoteAdmission
from logd.transactions import ProducerIdentity
from tests.logd.transactions.test_leadership import Stage as TransactionsStage
from tests.support import depth

HERE, THERE = 1, 2
HOME = TopicPartition("__transaction_state", 3)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
FIRST = ProducerIdentity(1000, 0)


class PaperCoordinator:
    """Broker THERE. `codes` by partition, NONE for others; `failure` is raised instead of an answer."""

    broker_id = HERE

    def __init__(self) -> None:
        self.home: int | None = THERE
        self.requests: list[AddPartitionsToTxnRequest] = []
        self.codes: dict[TopicPartition, ErrorCode] = {}
        self.code = ErrorCode.NONE
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    def leader_of(self, where: TopicPartition) -> int | None:
        assert where == HOME
        return self.home

    async def request(self, broker_id: int, message: Message) -> Message:
        assert broker_id == THERE and isinstance(message, AddPartitionsToTxnRequest)
        ids = [transaction.transactional_id for transaction in message.transactions]
        assert len(set(ids)) == len(ids), "the answer could not tell them apart"
        self.requests.append(message)
        answer = self.answer(message)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return answer

    def answer(self, message: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(
            error_code=self.code,
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id,
                    topic_results=[
                        AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(
                                    partition_index=index,
                                    partition_error_code=self.codes.get(
                                        TopicPartition(topic.name, index), ErrorCode.NONE
                                    ),
                                )
                                for index in topic.partitions
                            ],
                        )
                        for topic in transaction.topics
                    ],
                )
                for transaction in reversed(message.transactions)
            ],
        )


class Stage:
    """The broker that leads the partitions written to."""

    def __init__(self) -> None:
        self.coordinator = PaperCoordinator()
        self.admission = RemoteAdmission(Cluster(self.coordinator, self.coordinator))

    def admit(
        self,
        where: TopicPartition = T0,
        identity: ProducerIdentity = FIRST,
        name: str = "x",
        *,
        implicit: bool = True,
    ) -> None:
        self.admission.admit(HOME, name, identity, where, implicit=implicit)

    async def write(self, *arguments: Any, **facts: Any) -> ErrorCode:
        """Admit as the handler of Produce does, and return the error code that the producer gets."""
        while True:
            try:
                self.admit(*arguments, **facts)
                return ErrorCode.NONE
            except KafkaError as error:
                return error.code
            except NotYetAdmitted as not_yet:
                await not_yet.flushed


def run(story: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        stage = Stage()
        await story(stage)
        await stage.admission.stop()

    asyncio.run(asyncio.wait_for(whole(), 100))


@pytest.mark.parametrize("implicit", [True, False])
def test_a_consent_is_asked_for_each_batch_that_begins_a_transaction(implicit: bool) -> None:
    async def story(stage: Stage) -> None:
        for _ in range(2):
            assert await stage.write(implicit=implicit) is ErrorCode.NONE
        assert len(stage.coordinator.requests) == 2
        (transaction,) = stage.coordinator.requests[0].transactions
        assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == (
            "x",
            *FIRST,
        )
        assert transaction.verify_only is not implicit
        assert [(topic.name, topic.partitions) for topic in transaction.topics] == [("t", [0])]
        assert stage.admission.statistics()["admissions"] == 0

    run(story)


def test_producers_that_come_together_share_a_request() -> None:
    async def story(stage: Stage) -> None:
        second = ProducerIdentity(1001, 0)
        writes = [stage.write(T0), stage.write(T1), stage.write(T0, second, "y", implicit=False)]
        assert await asyncio.gather(*writes) == [ErrorCode.NONE] * 3
        (request,) = stage.coordinator.requests
        assert [
            (transaction.transactional_id, transaction.verify_only) for transaction in request.transactions
        ] == [
            ("x", False),
            ("y", True),
        ]

    run(story)


def test_one_id_under_two_identities_is_asked_for_one_after_the_other() -> None:
    async def story(stage: Stage) -> None:
        writes = [stage.write(T0), stage.write(T1, ProducerIdentity(1000, 1))]
        assert await asyncio.gather(*writes) == [ErrorCode.NONE] * 2
        assert [len(request.transactions) for request in stage.coordinator.requests] == [1, 1]

    run(story)


@pytest.mark.parametrize(
    ("code", "expected", "produced"),
    [
        ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_ENOUGH_REPLICAS"),
        ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_ENOUGH_REPLICAS"),
        ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_ENOUGH_REPLICAS"),
        ("OPERATION_NOT_ATTEMPTED", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_ENOUGH_REPLICAS"),
        ("CONCURRENT_TRANSACTIONS", "CONCURRENT_TRANSACTIONS", "CONCURRENT_TRANSACTIONS"),
        ("TRANSACTION_ABORTABLE", "TRANSACTION_ABORTABLE", "TRANSACTION_ABORTABLE"),
        ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_EPOCH"),
        ("INVALID_PRODUCER_ID_MAPPING", "INVALID_PRODUCER_ID_MAPPING", "INVALID_PRODUCER_ID_MAPPING"),
    ],
)
def test_what_a_producer_is_told(code: str, expected: str, produced: str) -> None:
    async def story(stage: Stage) -> None:
        stage.coordinator.codes[T0] = ErrorCode[code]
        writes = asyncio.gather(stage.write(T0), stage.write(T1))
        assert await writes == [ErrorCode[expected], ErrorCode.NONE]
        assert produce_code(KafkaError(ErrorCode[expected]), 12).name == produced
        stage.coordinator.codes.clear()
        assert await stage.write(T0) is ErrorCode.NONE, "a refusal is told once"

    run(story)


@pytest.mark.parametrize(
    "failure", [ConnectionClosed("gone"), RequestTimedOut("late"), RuntimeError("mistake")]
)
def test_a_coordinator_that_does_not_answer(failure: Exception) -> None:
    async def story(stage: Stage) -> None:
        stage.coordinator.failure = failure
        assert await stage.write() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        stage.coordinator.failure = None
        assert await stage.write() is ErrorCode.NONE

    run(story)


def test_a_coordinator_that_never_answers_is_not_waited_for_once_another_is() -> None:
    async def story(stage: Stage) -> None:
        stage.coordinator.gate.clear()
        writing = asyncio.ensure_future(stage.write())
        for _ in range(10):
            await asyncio.sleep(0)
        stage.admission.leaders_changed()
        await asyncio.sleep(0)
        assert not writing.done(), "it has not moved"
        stage.coordinator.home = NO_LEADER
        stage.admission.leaders_changed()
        assert await writing is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    run(story)


def test_an_error_for_all() -> None:
    async def story(stage: Stage) -> None:
        stage.coordinator.code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await stage.write() is ErrorCode.INVALID_TXN_STATE

    run(story)


@pytest.mark.parametrize("home", [None, NO_LEADER, HERE])
def test_without_a_coordinator_nobody_is_asked(home: int | None) -> None:
    """HERE: the metadata says so already, and the coordinator has not been told yet."""

    async def story(stage: Stage) -> None:
        stage.coordinator.home = home
        assert await stage.write() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert stage.coordinator.requests == []

    run(story)


@pytest.mark.parametrize("how", ["ended", "moved"])
@pytest.mark.parametrize("when", ["while it is asked", "after the answer"])
def test_a_consent_does_not_outlive_its_transaction(how: str, when: str) -> None:
    """Admissions end with their transaction. The coordinator admits, aborts and writes its marker here before
    the batch reaches the log. The batch would begin a transaction that nobody ends.
    """

    async def story(stage: Stage) -> None:
        if when == "while it is asked":
            stage.coordinator.gate.clear()
        with pytest.raises(NotYetAdmitted) as not_yet:
            stage.admit(implicit=False)
        for _ in range(10):
            await asyncio.sleep(0)
        if how == "ended":
            stage.admission.ended(T0, FIRST.producer_id)
        else:
            stage.admission.moved(T0)
        stage.coordinator.gate.set()
        await not_yet.value.flushed
        stage.coordinator.codes[T0] = ErrorCode.TRANSACTION_ABORTABLE
        assert await stage.write(implicit=False) is ErrorCode.TRANSACTION_ABORTABLE
        assert len(stage.coordinator.requests) == 2

    run(story)


def test_a_consent_is_of_one_epoch() -> None:
    async def story(stage: Stage) -> None:
        with pytest.raises(NotYetAdmitted) as not_yet:
            stage.admit()
        await not_yet.value.flushed
        with pytest.raises(NotYetAdmitted):
            stage.admit(identity=ProducerIdentity(1000, 1))

    run(story)


def test_an_answer_that_nobody_takes_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_admission, "ANSWER_HOLDS_S", -1.0)
    monkeypatch.setattr(remote_admission, "ADMISSIONS_MAX", 1)

    async def story(stage: Stage) -> None:
        with pytest.raises(NotYetAdmitted) as not_yet:
            stage.admit(T0)
        with pytest.raises(KafkaError, match="1 transactional batches wait"):
            stage.admit(T1)
        await not_yet.value.flushed
        with pytest.raises(NotYetAdmitted):
            stage.admit(T1)

    run(story)


def test_a_client_that_goes_away_takes_nobody_with_it() -> None:
    async def story(stage: Stage) -> None:
        stage.coordinator.gate.clear()
        cancelled, waiting = asyncio.ensure_future(stage.write()), asyncio.ensure_future(stage.write())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.sleep(0)
        stage.coordinator.gate.set()
        assert await waiting is ErrorCode.NONE

    run(story)


class RealCoordinator(PaperCoordinator):
    """Broker THERE with its own transactions, asked by the handler of version 5."""

    def __init__(self, there: TransactionsStage) -> None:
        super().__init__()
        topic = SimpleNamespace(partitions=[None, None])
        catalog = SimpleNamespace(topics={"t": topic})
        broker = SimpleNamespace(transactions=there.transactions, catalog=catalog)
        self.context = cast(RequestContext, SimpleNamespace(broker=broker, version=5, is_broker=True))

    async def request(self, broker_id: int, message: Message) -> Message:
        assert isinstance(message, AddPartitionsToTxnRequest)
        return await add_partitions_to_txn.handle(message, self.context)


def test_the_coordinator_there_answers_once_its_record_is_committed() -> None:
    async def story(stage: Stage) -> None:
        there = TransactionsStage()
        coordinator = RealCoordinator(there)
        stage.admission = RemoteAdmission(Cluster(coordinator, coordinator))
        assert await stage.write() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "it does not lead yet"
        await there.elected(1)
        identity = await there.transactions.init_producer("x", 60_000, None)
        assert await stage.write(T0, identity, implicit=False) is ErrorCode.TRANSACTION_ABORTABLE
        there.partition.lags = True
        adding = asyncio.ensure_future(stage.write(T0, identity))
        looking = asyncio.ensure_future(stage.write(T1, identity, implicit=False))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not adding.done() and not looking.done()
        there.partition.replicate()
        there.partition.lags = False
        assert await adding is ErrorCode.NONE
        assert await looking is ErrorCode.TRANSACTION_ABORTABLE
        assert await stage.write(T0, identity, implicit=False) is ErrorCode.NONE
        nowhere = TopicPartition("t", 2)
        codes = await asyncio.gather(stage.write(T0, identity), stage.write(nowhere, identity))
        assert codes == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        fenced = ProducerIdentity(identity.producer_id, 5)
        assert await stage.write(T0, fenced) is ErrorCode.INVALID_PRODUCER_EPOCH
        await there.transactions.stop()
        await there.blocks.stop()

    run(story)


Event = st.sampled_from(["write 0", "write 1", "end 0", "end 1", "begin", "turn", "turn", "block", "go"])


@settings(max_examples=depth.times(100), deadline=None)
@given(st.lists(Event, max_size=30))
def test_histories_of_verified_batches(events: list[str]) -> None:
    """Transaction version 1, whose epoch stays: a batch is written only into a transaction that is open then,
    as far as markers have told.
    """

    async def story(stage: Stage) -> None:
        coordinator, open_here = stage.coordinator, {T0: False, T1: False}
        places = [T0, T1]
        for place in places:
            coordinator.codes[place] = ErrorCode.TRANSACTION_ABORTABLE
        writes: list[asyncio.Task[ErrorCode]] = []

        async def write(place: TopicPartition) -> ErrorCode:
            code = await stage.write(place, implicit=False)
            if code is ErrorCode.NONE:
                assert open_here[place], "a transaction that nobody ends"
            return code

        for event in events:
            kind, *which = event.split()
            if kind == "write":
                writes.append(asyncio.ensure_future(write(places[int(which[0])])))
            elif kind == "end":
                place = places[int(which[0])]
                coordinator.codes[place] = ErrorCode.TRANSACTION_ABORTABLE
                stage.admission.ended(place, FIRST.producer_id)
                open_here[place] = False
            elif kind == "begin":
                for place in places:
                    coordinator.codes.pop(place, None)
                    open_here[place] = True
            elif kind == "block":
                coordinator.gate.clear()
            elif kind == "go":
                coordinator.gate.set()
            await asyncio.sleep(0)
        coordinator.gate.set()
        assert set(await asyncio.gather(*writes)) <= {ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE}

    run(story)
