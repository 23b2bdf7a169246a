"""What is remembered of sends until a commit: those on their way, and those that were refused."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from logd.errors import ErrorCode, KafkaError
from streams.errors import SerializationError
from streams.runtime.output import SENDS_MAX, SETTLED_AT, Output
from tests.support.depth import deep

Ack = asyncio.Future[int | None]
TOO_LARGE = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
NOT_LEADER = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Producer:
    """Acknowledges when told."""

    def __init__(self) -> None:
        self.acks: list[Ack] = []

    def partitioned(self, topic: str, records: list[Any], count: int) -> dict[int, list[Any]]:
        return {0: records}

    async def send(self, topic: str, partition: int, records: list[Any]) -> Ack:
        self.acks.append(asyncio.get_running_loop().create_future())
        return self.acks[-1]


class Application:
    """An output with a producer, and a task that has written a record for each call of `send`."""

    def __init__(self, handler: Callable[[SerializationError], Any] = lambda _: "continue") -> None:
        self.producer = Producer()
        self.told: list[str] = []

        def note(error: SerializationError) -> Any:
            self.told.append(str(error))
            return handler(error)

        names = SimpleNamespace(topic=lambda topic: topic)
        self.output = Output(self.producer, names, {"t": 1}, note)  # type: ignore[arg-type]
        task = SimpleNamespace(take_output=lambda: {"t": [(0, b"k", b"v", ())]}, take_placed_output=dict)
        self._task = SimpleNamespace(task=task)

    async def send(self, count: int = 1) -> list[Ack]:
        before = len(self.producer.acks)
        for _ in range(count):
            await self.output.send(self._task)  # type: ignore[arg-type]
        return self.producer.acks[before:]

    async def settle(self) -> None:
        """What a commit does."""
        await self.output.settle(self.output.take_sent())


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_acknowledged_sends_are_let_go_as_they_come() -> None:
    """Each was kept until the next commit, which may be half a minute or an hour away."""

    async def test() -> None:
        application = Application()
        for offset in range(20 * SETTLED_AT):
            (ack,) = await application.send()
            ack.set_result(offset)
            assert application.output.sends < SETTLED_AT
        await application.settle()
        assert application.output.sends == 0

    run(test)


def test_those_on_their_way_are_kept_and_looked_at_no_more_often_than_they_double() -> None:
    async def test() -> None:
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

    run(test)


@deep
def test_a_commit_is_due_where_too_many_are_not_settled() -> None:
    async def test() -> None:
        application = Application()
        acks = await application.send(SENDS_MAX - 1)
        assert not application.output.is_full
        acks += await application.send()
        assert application.output.is_full
        for ack in acks:
            ack.set_result(0)
        await application.settle()
        assert not application.output.is_full

    run(test)


@pytest.mark.parametrize("seed", range(20))
def test_what_became_of_them_is_the_same_for_the_commit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever order they are acknowledged and refused, with sends between."""
    chance = random.Random(seed)
    outcomes: list[Any] = chance.choices([1, TOO_LARGE], [9, 1], k=100)
    if seed % 2:
        outcomes[chance.randrange(50, 100)] = NOT_LEADER

    async def outcome(settled_at: int) -> tuple[str, list[str], int]:
        monkeypatch.setattr("streams.runtime.output.SETTLED_AT", settled_at)
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
            return error.code.name, application.told, application.output.dropped
        return "committed", application.told, application.output.dropped

    async def test() -> None:
        kept, told, dropped = await outcome(10**9)
        assert await outcome(2) == (kept, told, dropped)
        assert (kept, len(told)) == (
            "NOT_LEADER_OR_FOLLOWER" if seed % 2 else "committed",
            sum(one is TOO_LARGE for one in itertools.takewhile(lambda one: one is not NOT_LEADER, outcomes)),
        )

    def end(ack: Ack, result: Any) -> None:
        if isinstance(result, KafkaError):
            ack.set_exception(KafkaError(result.code))
        else:
            ack.set_result(result)

    run(test)


def test_a_refusal_that_came_long_before_the_commit_fails_it() -> None:
    async def test() -> None:
        application = Application(lambda _: "fail")
        for number in range(3 * SETTLED_AT):
            (ack,) = await application.send()
            if number == 5:
                ack.set_exception(TOO_LARGE)
            else:
                ack.set_result(0)
        assert not application.told
        with pytest.raises(SerializationError, match="not accepted"):
            await application.settle()

    run(test)
