"""The sends that are tracked until a commit: those not yet acknowledged, and those that were refused."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from streams.errors import SerializationError, StreamsError
from streams.handlers import DeadLetter, ErrorContext, ErrorResponse, log_and_continue
from streams.runtime.commit.output import SENDS_MAX, SETTLED_AT, Output
from tests.support.depth import deep
from tests.support.waiting import until

Ack = asyncio.Future[int | None]
TOO_LARGE = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
NOT_LEADER = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Producer:
    """Acknowledges when told. ``refuses`` a record at once."""

    def __init__(self, refuses: Callable[[Any], bool] = lambda record: False) -> None:
        self.acks: list[Ack] = []
        self.sent: list[tuple[str, int, list[Any]]] = []
        self._refuses = refuses

    def partitioned(self, topic: str, records: list[Any], count: int) -> dict[int, list[Any]]:
        return {count - 1: records}

    async def send(self, topic: str, partition: int, records: list[Any]) -> Ack:
        if any(map(self._refuses, records)):
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
        self.sent.append((topic, partition, records))
        self.acks.append(asyncio.get_running_loop().create_future())
        return self.acks[-1]


class Application:
    """An output with a producer, and a task that has written a record, or ``rows``, for each `send`."""

    def __init__(
        self,
        handler: Callable[[SerializationError], Any] = lambda _: "continue",
        *,
        producer: Producer | None = None,
        rows: list[Any] | None = None,
        dead_letter_topic: str | None = None,
    ) -> None:
        self.producer = producer or Producer()
        self.errors: list[str] = []
        self.contexts: list[ErrorContext] = []

        def note(error: Exception, context: ErrorContext) -> Any:
            self.errors.append(str(error))
            self.contexts.append(context)
            return log_and_continue(error, context) if dead_letter_topic else handler(error)  # type: ignore[arg-type]

        self.output = Output(
            self.producer,  # type: ignore[arg-type]
            SimpleNamespace(topic=lambda topic: f"app-{topic}" if topic == "internal" else topic),  # type: ignore[arg-type]
            {"t": 1, "dead": 3},
            note,
            find_count=self._find,
            dead_letter_topic=dead_letter_topic,
        )
        task = SimpleNamespace(
            take_output=lambda: {"t": rows or [(0, b"k", b"v", ())]},
            take_placed_output=dict,
            id="0_1",
            writers_of={"t": "sink"}.get,
        )
        self.produced = Counter[str]()
        self._task = SimpleNamespace(task=task, produced=self.produced)

    async def _find(self, topic: str) -> int:
        if topic != "late":
            raise StreamsError(f"topic {topic!r} does not exist")
        return 2

    async def send(self, count: int = 1) -> list[Ack]:
        before = len(self.producer.acks)
        for _ in range(count):
            await self.output.send(self._task)  # type: ignore[arg-type]
        return self.producer.acks[before:]

    async def settle(self) -> None:
        """Settle the sends, as a commit does."""
        await self.output.settle(self.output.take_sent())


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


async def test_acknowledged_sends_are_let_go_as_they_come() -> None:
    """Acknowledged sends are released at once. They were kept until the next commit, which may be an hour
    later.
    """
    application = Application()
    for offset in range(20 * SETTLED_AT):
        (ack,) = await application.send()
        ack.set_result(offset)
        assert application.output.sends < SETTLED_AT
    await application.settle()
    assert application.output.sends == 0


async def test_those_on_their_way_are_kept_and_looked_at_no_more_often_than_they_double() -> None:
    application = Application()
    first, *others = await application.send(5 * SETTLED_AT)
    assert application.output.sends == 5 * SETTLED_AT
    for ack in others:
        ack.set_result(0)
    while application.output.sends > SETTLED_AT:
        (ack,) = await application.send()
        ack.set_result(0)
    committing = asyncio.create_task(application.settle())
    await asyncio.sleep(0)
    assert not committing.done(), "the first one is still on its way"
    first.set_result(0)
    await committing


@deep
async def test_a_commit_is_due_where_too_many_are_not_settled() -> None:
    application = Application()
    acks = await application.send(SENDS_MAX - 1)
    assert not application.output.is_full
    acks += await application.send()
    assert application.output.is_full
    for ack in acks:
        ack.set_result(0)
    await application.settle()
    assert not application.output.is_full


@pytest.mark.parametrize("seed", range(20))
def test_what_became_of_them_is_the_same_for_the_commit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit has the same result in whatever order sends are acknowledged and refused, with other sends
    between.
    """
    chance = random.Random(seed)
    outcomes: list[Any] = chance.choices([1, TOO_LARGE], [9, 1], k=100)
    if seed % 2:
        outcomes[chance.randrange(50, 100)] = NOT_LEADER

    async def outcome(settled_at: int) -> tuple[str, list[str], int]:
        monkeypatch.setattr("streams.runtime.commit.output.SETTLED_AT", settled_at)
        application, order = Application(), random.Random(seed)
        left: dict[Ack, Any] = {}
        for result in outcomes:
            (ack,) = await application.send()
            left[ack] = result
            for each in order.sample(list(left), order.randrange(len(left) + 1)):
                end(each, left.pop(each))
        for each in left:
            end(each, left[each])
        try:
            await application.settle()
        except KafkaError as error:
            return error.code.name, application.errors, application.output.dropped
        return "committed", application.errors, application.output.dropped

    async def test() -> None:
        outcome_without_limit, handled, dropped = await outcome(10**9)
        assert await outcome(2) == (outcome_without_limit, handled, dropped)
        assert (outcome_without_limit, len(handled)) == (
            "NOT_LEADER_OR_FOLLOWER" if seed % 2 else "committed",
            sum(one is TOO_LARGE for one in itertools.takewhile(lambda one: one is not NOT_LEADER, outcomes)),
        )

    def end(ack: Ack, result: Any) -> None:
        if isinstance(result, KafkaError):
            ack.set_exception(KafkaError(result.code))
        else:
            ack.set_result(result)

    run(test)


async def test_a_refusal_that_came_long_before_the_commit_fails_it() -> None:
    application = Application(lambda _: "fail")
    for number in range(3 * SETTLED_AT):
        (ack,) = await application.send()
        if number == 5:
            ack.set_exception(TOO_LARGE)
        else:
            ack.set_result(0)
    assert not application.errors
    with pytest.raises(SerializationError, match="not accepted"):
        await application.settle()


# -- what the handler is told, and its dead letters

ROWS = [(5, b"a", b"1", (("h", b"x"),)), (6, b"b", b"far too large", ()), (7, None, b"3", ())]


def summary(context: ErrorContext) -> tuple[Any, ...]:
    return context.key, context.value, context.headers, context.timestamp


async def test_the_handler_is_told_each_record_that_the_broker_refuses() -> None:
    application = Application(rows=ROWS)
    (ack,) = await application.send()
    ack.set_exception(KafkaError(ErrorCode.INVALID_TIMESTAMP))
    await application.settle()
    assert list(map(summary, application.contexts)) == [
        (key, value, headers, timestamp) for timestamp, key, value, headers in ROWS
    ]
    assert {
        (each.node, each.task_id, each.topic, each.partition, each.offset) for each in application.contexts
    } == {("sink", "0_1", "t", 0, -1)}
    assert application.output.dropped == 3


async def test_the_handler_is_told_the_record_that_is_too_large_to_be_sent() -> None:
    producer = Producer(refuses=lambda record: len(record[2]) > 5)
    application = Application(producer=producer, rows=ROWS)
    await application.send()
    assert list(map(summary, application.contexts)) == [(b"b", b"far too large", (), 6)]
    assert [record for _, _, records in producer.sent for record in records] == [ROWS[0], ROWS[2]]


async def test_records_are_let_go_once_they_are_acknowledged() -> None:
    """Records are kept only for the handler, so they are released before the next commit."""
    application = Application()
    acks = await application.send(2)
    sent = application.output.take_sent()
    acks[0].set_result(0)
    acks[1].set_exception(TOO_LARGE)
    await asyncio.sleep(0)
    assert [len(each.records) for each in sent] == [0, 1]
    assert application.produced == {"t": 1}, "the metric counts what the broker has"
    await application.output.settle(sent)


async def test_dead_letters_are_acknowledged_before_the_commit() -> None:
    application = Application(dead_letter_topic="dead")
    (ack,) = await application.send()
    ack.set_exception(KafkaError(ErrorCode.MESSAGE_TOO_LARGE))
    committing = asyncio.create_task(application.settle())
    await until(lambda: len(application.producer.acks) > 1)
    topic, partition, ((_, key, value, headers),) = application.producer.sent[1]
    assert (topic, partition, key, value) == ("dead", 2, b"k", b"v")
    assert dict(headers)["__streams.errors.topic"] == b"t"
    await asyncio.sleep(0)
    assert not committing.done(), "the letter is still on its way"
    application.producer.acks[1].set_result(0)
    await committing


async def test_dead_letters_for_what_is_too_large_to_be_sent_go_with_the_same_commit() -> None:
    letter = DeadLetter(topic="late", key=b"b", value=b"", timestamp=1)
    response = ErrorResponse(answer="continue", dead_letters=(letter,))
    producer = Producer(refuses=lambda record: len(record[2]) > 5)
    application = Application(lambda _: response, producer=producer, rows=ROWS)
    await application.send()
    assert producer.sent[1] == ("late", 1, [(1, b"b", b"", ())])
    sent = application.output.take_sent()
    assert [each.topic for each in sent] == ["t", "late", "t"]


@pytest.mark.parametrize("by_broker", [True, False])
def test_a_dead_letter_that_is_refused_is_not_asked_about_again(
    by_broker: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A refused dead letter is not passed to the handler, whose answer would be another dead letter."""

    async def test() -> None:
        producer = Producer(refuses=lambda record: not by_broker)
        application = Application(producer=producer, dead_letter_topic="dead")
        await application.send()
        committing = asyncio.create_task(application.settle())
        while not committing.done():
            for ack in producer.acks:
                if not ack.done():
                    ack.set_exception(KafkaError(ErrorCode.MESSAGE_TOO_LARGE))
            await asyncio.sleep(0)
        await committing
        assert len(application.errors) == 1

    run(test)
    assert "dead: 1 dead letters are refused themselves, and left out" in caplog.text


async def test_a_dead_letter_for_a_topic_that_does_not_exist_fails_the_commit() -> None:
    letter = DeadLetter(topic="nowhere", key=b"b", value=b"", timestamp=1)
    application = Application(lambda _: ErrorResponse(answer="continue", dead_letters=(letter,)))
    (ack,) = await application.send()
    ack.set_exception(KafkaError(ErrorCode.MESSAGE_TOO_LARGE))
    with pytest.raises(StreamsError, match="'nowhere' does not exist"):
        await application.settle()
