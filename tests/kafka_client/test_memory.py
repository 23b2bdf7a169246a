from __future__ import annotations

import asyncio

import pytest

from kafka_client.errors import ConnectionClosed
from kafka_client.producer.memory import Memory


async def test_room_is_given_first_come_first_served() -> None:
    memory = Memory(10)
    await memory.take(8)
    order: list[int] = []

    async def take(size: int) -> None:
        await memory.take(size)
        order.append(size)

    waiting = [asyncio.create_task(take(size)) for size in (9, 1)]
    await asyncio.sleep(0)
    assert not memory.try_take(1)
    memory.free(8)
    await asyncio.gather(*waiting)
    assert order == [9, 1]
    assert memory.used == 10


async def test_more_than_all_is_given_to_one_alone() -> None:
    memory = Memory(10)
    assert memory.try_take(50)
    memory.free(50)
    assert memory.used == 0


async def test_whoever_stops_waiting_lets_the_next_go_on() -> None:
    memory = Memory(10)
    await memory.take(5)
    big, small = asyncio.create_task(memory.take(8)), asyncio.create_task(memory.take(2))
    await asyncio.sleep(0)
    big.cancel()
    await small
    assert memory.used == 7


async def test_room_given_to_one_cancelled_at_that_moment_comes_back() -> None:
    memory = Memory(10)
    await memory.take(10)
    waiting = asyncio.create_task(memory.take(10))
    await asyncio.sleep(0)
    memory.free(10)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert memory.used == 0


async def test_failing_ends_all_waiting() -> None:
    memory = Memory(1)
    await memory.take(1)
    waiting = asyncio.create_task(memory.take(1))
    await asyncio.sleep(0)
    memory.fail(ConnectionClosed("over"))
    with pytest.raises(ConnectionClosed):
        await waiting
