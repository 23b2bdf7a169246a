"""The leader's rounds of fencing: whom they fence, what they write, and what a plan made meanwhile does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from connect.distributed import fencing
from connect.distributed.config_changes import Decision
from connect.distributed.fencing import ZombieFencing
from connect.errors import ConnectError, Rebalancing
from connect.herder import Herder
from kafka_client.errors import RequestTimedOut


class Rounds:
    """A leader with a herder whose records are read back at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.herder = Herder()
        self.fenced: list[str] = []
        self.written: list[Any] = []
        self.meanwhile: list[Any] = []
        self.error: Exception | None = None
        monkeypatch.setattr(fencing, "fence_producer", self._fence)
        self.fencing = ZombieFencing(
            None,  # type: ignore[arg-type]
            "g",
            self.herder,
            read_to_end=self._read,
            change=self._change,
        )
        self.herder.read([("connector-c", {"properties": {"a": "1"}})])

    def plan(self, tasks: int) -> None:
        self.herder.read(
            [
                *((f"task-c-{n}", {"properties": {"n": str(n)}}) for n in range(tasks)),
                ("commit-c", {"tasks": tasks}),
            ]
        )

    async def round(self) -> tuple[list[str], list[Any]]:
        self.fenced, self.written = [], []
        await self.fencing.fence("c")
        return sorted(self.fenced), self.written

    async def _fence(self, client: Any, transactional_id: str) -> None:
        if self.error is not None:
            raise self.error
        await asyncio.sleep(0)
        self.fenced.append(transactional_id)

    async def _read(self) -> None:
        if self.fenced:
            self.herder.read(self.meanwhile)

    async def _change(self, decide: Decision) -> None:
        records = list(decide())
        self.written.extend(records)
        self.herder.read(records)


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    return Rounds(monkeypatch)


def count(tasks: int) -> list[Any]:
    return [("tasks-fencing-c", {"task-count": tasks})]


async def test_a_round_fences_the_tasks_that_the_last_one_counted(rounds):
    rounds.plan(3)
    assert await rounds.round() == ([], count(3))  # never counted: nobody has written in transactions
    assert await rounds.round() == ([], [])
    rounds.plan(1)
    assert await rounds.round() == (["g-c-0", "g-c-1", "g-c-2"], count(1))
    rounds.plan(1)
    assert await rounds.round() == ([], count(1))  # the only task's producer fences the former one
    rounds.plan(2)
    assert await rounds.round() == (["g-c-0"], count(2))


async def test_all_that_ask_at_one_time_wait_for_one_round(rounds):
    rounds.plan(2)
    await rounds.round()
    rounds.written.clear()
    rounds.plan(3)
    await asyncio.gather(*(rounds.fencing.fence("c") for _ in range(5)))
    assert sorted(rounds.fenced) == ["g-c-0", "g-c-1"]
    assert rounds.written == count(3)


async def test_a_plan_made_during_a_round_is_not_counted(rounds):
    rounds.plan(2)
    await rounds.round()
    rounds.plan(3)
    rounds.meanwhile = [
        *((f"task-c-{n}", {"properties": {"m": str(n)}}) for n in range(4)),
        ("commit-c", {"tasks": 4}),
    ]
    with pytest.raises(Rebalancing, match="new task configurations were generated"):
        await rounds.round()
    assert rounds.written == []
    rounds.meanwhile = []
    assert await rounds.round() == (["g-c-0", "g-c-1"], count(4))


async def test_a_round_that_fails_writes_nothing_and_the_next_tries_again(rounds):
    rounds.plan(2)
    await rounds.round()
    rounds.plan(1)
    rounds.error = RequestTimedOut("no answer")
    with pytest.raises(ConnectError, match="the 2 older tasks of c are not fenced"):
        await rounds.round()
    assert rounds.written == []
    rounds.error = None
    assert await rounds.round() == (["g-c-0", "g-c-1"], count(1))
