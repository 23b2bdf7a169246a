"""Blocks of producer ids from a cluster's controller: one in advance, no id twice, no endless waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError
from logd.broker.coordinators import producer_id_blocks
from logd.broker.coordinators.producer_id_blocks import BlocksAhead
from logd.broker.coordinators.producer_ids import ProducerIds

BLOCK = 10


class PaperController:
    """A controller that raises `failures` first and gives blocks once the `gate` is open."""

    def __init__(self) -> None:
        self.blocks = 0
        self.requests = 0
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def next_block(self) -> tuple[int, int]:
        self.requests += 1
        if self.failures:
            raise self.failures.pop()
        await self.gate.wait()
        first = self.blocks * BLOCK
        self.blocks += 1
        return first, first + BLOCK - 1


def run(story: Callable[[PaperController, ProducerIds], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        controller = PaperController()
        blocks = BlocksAhead(controller)
        await story(controller, ProducerIds.of_cluster(blocks))
        await blocks.stop()

    asyncio.run(asyncio.wait_for(whole(), 100))


def test_the_next_block_is_there_before_the_last_one_is_used_up() -> None:
    async def story(controller: PaperController, ids: ProducerIds) -> None:
        assert [await ids.take() for _ in range(BLOCK - 1)] == list(range(BLOCK - 1))
        assert controller.requests == 1
        assert await ids.take() == BLOCK - 1
        await asyncio.sleep(0)
        assert controller.requests == 2, "before anybody needs it"
        controller.gate.clear()
        assert await ids.take() == BLOCK
        assert controller.requests == 2

    run(story)


def test_ids_found_in_logs_are_of_no_interest() -> None:
    """Ids found in logs do not matter: producers of other brokers write here too, with other blocks."""

    async def story(controller: PaperController, ids: ProducerIds) -> None:
        assert await ids.take() == 0
        ids.met(5)
        ids.unread("a folder")
        assert [await ids.take(), await ids.take()] == [1, 2]

    run(story)


@pytest.mark.parametrize("failure", [ConnectionClosed("gone"), KafkaError(ErrorCode.NOT_CONTROLLER)])
def test_a_controller_that_is_away_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    monkeypatch.setattr(producer_id_blocks, "RETRY_FIRST_S", 0.001)

    async def story(controller: PaperController, ids: ProducerIds) -> None:
        controller.failures = [failure, failure]
        assert await ids.take() == 0
        assert controller.requests == 3

    run(story)


def test_who_cannot_have_one_is_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests without an id have to be sent again; the next one gets the block that came meanwhile."""
    monkeypatch.setattr(producer_id_blocks, "WAIT_S", 0.001)

    async def story(controller: PaperController, ids: ProducerIds) -> None:
        controller.gate.clear()
        for _ in range(3):
            with pytest.raises(KafkaError) as refused:
                await ids.take()
            assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        waiting = asyncio.ensure_future(ids.take())
        await asyncio.sleep(0)
        waiting.cancel()  # its client went away
        controller.gate.set()
        await asyncio.sleep(0)
        assert await ids.take() == 0
        assert controller.requests == 1

    run(story)


def test_many_at_once_get_ids_of_their_own() -> None:
    async def story(controller: PaperController, ids: ProducerIds) -> None:
        ids_taken = await asyncio.gather(*(ids.take() for _ in range(5 * BLOCK)))
        assert sorted(ids_taken) == list(range(5 * BLOCK))

    run(story)
