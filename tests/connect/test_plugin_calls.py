"""Calls of a plugin: how many have not returned, since when, and no more than there may be."""

import asyncio
import threading

import pytest

from connect.errors import ConnectError
from connect.runtime.calls import CALLS_MAX, PluginCalls


async def test_calls_are_counted_until_they_return(harness):
    go_on = threading.Event()

    async def also():
        await asyncio.to_thread(go_on.wait)

    calls = PluginCalls("p")
    assert calls.statistics() == {"calls": 0, "calls_max": CALLS_MAX, "oldest_call_seconds": 0}
    waiting = [
        asyncio.create_task(work)
        for work in (calls.call(go_on.wait), calls.call(also), calls.call_concurrently(go_on.wait))
    ]
    await harness.until(lambda: calls.statistics()["calls"] == 3)
    assert calls.statistics()["oldest_call_seconds"] > 0
    go_on.set()
    await asyncio.gather(*waiting)
    assert calls.statistics()["calls"] == 0
    calls.close()


async def test_calls_that_were_given_up_count_and_keep_further_ones_out(harness):
    """They waited in the thread's queue, as many as there were."""
    begun, go_on = threading.Event(), threading.Event()

    def hang():
        begun.set()
        go_on.wait()

    calls = PluginCalls("p")
    for number in range(CALLS_MAX):
        waiting = asyncio.create_task(calls.call(hang))
        await harness.until(lambda number=number: calls.statistics()["calls"] == number + 1)
        await harness.until(begun.is_set)
        waiting.cancel()
    with pytest.raises(ConnectError, match="p: 8 calls of the plugin have not returned"):
        await calls.call(go_on.wait)
    go_on.set()
    await harness.until(lambda: calls.statistics()["calls"] == 0)
    assert await calls.call(lambda: 7) == 7
    calls.close()
