"""A marker that several wait for: one of them gives up, and the partition is led elsewhere afterwards."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from kafka_client.errors import ErrorCode, KafkaError
from logd.broker.transactions import markers


async def test_a_failure_that_nobody_waits_for_is_not_logged() -> None:
    unhandled: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: unhandled.append(context))
    flushed: asyncio.Future[None] = loop.create_future()

    async def flushing() -> None:
        await flushed

    waiting = markers._shared(flushing())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    flushed.set_exception(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "led elsewhere"))
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert unhandled == []
