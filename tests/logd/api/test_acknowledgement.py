"""Produce requests whose batches become durable, fail, or do not become durable in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.produce import PartitionProduced
from logd.api.produce.acknowledgement import Acknowledgement, PendingAck
from logd.broker.partition.uncommitted import Commit
from logd.broker.work.timeouts import Timeouts

LONG = 1000.0


class Stage:
    """`count` batches of partitions 0… that wait, for these `futures` if they are given. `alone` are without
    other replicas.
    """

    def __init__(
        self,
        count: int,
        timeout_s: float = LONG,
        *,
        alone: tuple[int, ...] = (),
        futures: Sequence[Any] | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.timeouts = Timeouts()
        self.futures = [loop.create_future() for _ in range(count)] if futures is None else futures
        self.produced = [PartitionProduced(index, 0, 10 * index) for index in range(count)]
        partitions: list[Any] = [
            SimpleNamespace(index=index, role=None if index in alone else object()) for index in range(count)
        ]
        self.answer = Acknowledgement(
            [
                PendingAck(self.produced, place, partitions[place], durable)
                for place, durable in enumerate(self.futures)
            ],
            timeout_s,
            self.timeouts,
            failed=lambda index, error: PartitionProduced(index, error.code),
            encode=self.encode,
        ).answer

    def encode(self) -> bytes:
        return repr([(each.partition, int(each.error_code)) for each in self.produced]).encode()


def played(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 100))


def test_the_answer_comes_with_the_last() -> None:
    async def story() -> None:
        stage = Stage(2)
        stage.futures[1].set_result(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not stage.answer.done()
        stage.futures[0].set_result(None)
        assert await stage.answer == b"[(0, 0), (1, 0)]"

    played(story)


def test_what_is_lost_is_said_where_it_stands() -> None:
    async def story() -> None:
        stage = Stage(3)
        stage.futures[1].set_exception(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        stage.futures[0].set_result(None)
        stage.futures[2].set_result(None)
        assert await stage.answer == f"[(0, 0), (1, {ErrorCode.NOT_LEADER_OR_FOLLOWER:d}), (2, 0)]".encode()

    played(story)


def test_other_replicas_have_so_much_time_and_the_own_disk_as_long_as_it_takes() -> None:
    async def story() -> None:
        stage = Stage(2, 0.0, alone=(1,))
        await asyncio.wait([stage.futures[0]])
        assert stage.futures[0].cancelled() and not stage.futures[1].done() and not stage.answer.done()
        stage.futures[1].set_result(None)
        assert await stage.answer == f"[(0, {ErrorCode.REQUEST_TIMED_OUT:d}), (1, 0)]".encode()

    played(story)


def test_what_nobody_wants_is_not_waited_for() -> None:
    async def story() -> None:
        stage = Stage(2)
        stage.futures[0].set_result(None)
        stage.answer.cancel()
        await asyncio.wait([stage.futures[1]])
        assert stage.futures[1].cancelled()

    played(story)


def test_what_was_given_up_inside_gives_the_answer_up() -> None:
    async def story() -> None:
        stage = Stage(2)
        stage.futures[0].cancel()
        await asyncio.wait([stage.answer, stage.futures[1]])
        assert stage.answer.cancelled() and stage.futures[1].cancelled()

    played(story)


@pytest.mark.parametrize("done_before", [(), (0,), (1,), (0, 1)])
def test_batches_may_be_committed_before_the_last_is_appended(done_before: tuple[int, ...]) -> None:
    async def story() -> None:
        commits = [Commit(), Commit()]
        for place in done_before:
            commits[place].end()
        stage = Stage(2, futures=commits)
        for commit in commits:
            commit.end()
        assert await stage.answer == b"[(0, 0), (1, 0)]"
        assert len(stage.timeouts) == 0

    played(story)


def test_a_batch_may_be_lost_before_the_last_is_appended() -> None:
    async def story() -> None:
        commits = [Commit(), Commit()]
        commits[0].end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        stage = Stage(2, futures=commits)
        commits[1].end()
        assert await stage.answer == f"[(0, {ErrorCode.NOT_LEADER_OR_FOLLOWER:d}), (1, 0)]".encode()

    played(story)


def test_other_replicas_may_be_late_with_some() -> None:
    async def story() -> None:
        commits = [Commit(), Commit()]
        commits[0].end()
        stage = Stage(2, 0.0, futures=commits)
        assert await stage.answer == f"[(0, 0), (1, {ErrorCode.REQUEST_TIMED_OUT:d})]".encode()
        commits[1].end()  # too late: nobody is told any more

    played(story)


@pytest.mark.parametrize("where", ["waiting", "encoding"])
def test_a_mistake_is_the_answers(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        if where == "encoding":
            monkeypatch.setattr(Stage, "encode", lambda self: 1 / 0)
        stage = Stage(2)
        stage.futures[0].set_result(None)
        if where == "encoding":
            stage.futures[1].set_result(None)
        else:
            stage.futures[1].set_exception(ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            await stage.answer

    played(story)
