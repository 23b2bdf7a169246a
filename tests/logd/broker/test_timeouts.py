"""Requests that wait for so long: answered when their time is over, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from logd.broker.work.timeouts import Timeouts


class Waiting:
    """A request that records when it expires."""

    def __init__(self, name: str, ended: list[str]) -> None:
        self.name = name
        self.ended = ended

    def expire(self) -> None:
        self.ended.append(self.name)


class Failing(Waiting):
    def expire(self) -> None:
        super().expire()
        raise ZeroDivisionError


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock the test sets forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


def played(story: Callable[[Loop], Awaitable[None]]) -> None:
    loop = Loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:

        async def run_story() -> None:
            await story(loop)

        runner.run(run_story())


async def later(loop: Loop, seconds: float) -> None:
    """Let so many seconds pass on the loop's clock."""
    loop.ahead += seconds
    for _ in range(3):
        await asyncio.sleep(0)


def test_each_expires_in_its_time_but_for_those_that_were_removed() -> None:
    async def story(loop: Loop) -> None:
        timeouts, ended = Timeouts(), list[str]()
        removed = Waiting("removed", ended)
        timeouts.add(Waiting("first", ended), 100)
        timeouts.add(removed, 100)
        timeouts.add(Waiting("sooner", ended), 50)
        await later(loop, 60)
        assert ended == ["sooner"]
        timeouts.add(Waiting("second", ended), 100)
        timeouts.remove(removed, 100)
        await later(loop, 60)
        assert ended == ["sooner", "first"]
        assert len(timeouts) == 1
        await later(loop, 60)
        assert ended == ["sooner", "first", "second"]
        assert len(timeouts) == 0
        timeouts.remove(removed, 100)

    played(story)


def test_those_without_time_expire_in_the_next_turn() -> None:
    async def story(loop: Loop) -> None:
        timeouts, ended = Timeouts(), list[str]()
        timeouts.add(Waiting("late", ended), -1)
        assert ended == []
        await later(loop, 0)
        assert ended == ["late"]

    played(story)


def test_the_last_one_that_goes_takes_its_timer_along() -> None:
    async def story(loop: Loop) -> None:
        timeouts, ended, timers = Timeouts(), list[str](), list[asyncio.TimerHandle]()
        call_later = loop.call_later

        def noted(*arguments: Any) -> asyncio.TimerHandle:
            timers.append(call_later(*arguments))
            return timers[-1]

        loop.call_later = noted  # type: ignore[assignment]
        for timeout_s in (1, 1, 2):
            who = Waiting("nobody", ended)
            timeouts.add(who, timeout_s)
            timeouts.remove(who, timeout_s)
        assert [timer.cancelled() for timer in timers] == [True, True, True]

    played(story)


def test_one_that_fails_keeps_nobody_from_expiring(caplog: pytest.LogCaptureFixture) -> None:
    async def story(loop: Loop) -> None:
        timeouts, ended = Timeouts(), list[str]()
        timeouts.add(Failing("failing", ended), 1)
        timeouts.add(Waiting("other", ended), 1)
        await later(loop, 2)
        assert ended == ["failing", "other"]

    played(story)
    assert "failed when its time was over" in caplog.text
