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
    """Abandoned calls are bounded, where once any number waited in the thread's queue."""
    started, go_on = threading.Event(), threading.Event()

    def hang():
        started.set()
        go_on.wait()

    calls = PluginCalls("p")
    for number in range(CALLS_MAX):
        waiting = asyncio.create_task(calls.call(hang))
        await harness.until(lambda number=number: calls.statistics()["calls"] == number + 1)
        await harness.until(started.is_set)
        waiting.cancel()
    with pytest.raises(ConnectError, match="p: 8 calls of the plugin have not returned"):
        await calls.call(go_on.wait)
    go_on.set()
    await harness.until(lambda: calls.statistics()["calls"] == 0)
    assert await calls.call(lambda: 7) == 7
    calls.close()


@pytest.mark.parametrize("raised", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit])
async def test_what_would_end_the_caller_is_an_error_of_the_plugin(raised):
    async def method():
        await asyncio.sleep(0)
        raise raised

    def plain():
        raise raised

    calls = PluginCalls("p")
    for each in (method, plain):
        with pytest.raises(RuntimeError, match=f"plugin raised {raised.__name__}"):
            await calls.call(each)
    calls.close()


async def test_a_call_that_the_worker_cancels_is_cancelled(harness):
    entered = asyncio.Event()

    async def method():
        entered.set()
        await asyncio.sleep(3600)

    calls = PluginCalls("p")
    calling = asyncio.create_task(calls.call(method))
    await entered.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await calls.call(method)
    calls.close()


@pytest.mark.parametrize("kind", ["plain", "async", "plain that returns an awaitable"])
async def test_what_goes_with_a_call_runs_in_the_thread(kind):
    """Use one job of the thread for a plain method and for what goes with it."""
    threads, jobs = [], []

    def helper(value):
        threads.append(threading.current_thread())
        return value + 1

    def plain(value=1):
        threads.append(threading.current_thread())
        return value * 10

    async def asynchronous(value=1):
        return value * 10

    method = {"plain": plain, "async": asynchronous}.get(kind, lambda value=1: asynchronous(value))
    calls = PluginCalls("p")
    submit = calls._submit
    calls._submit = lambda job: jobs.append(job) or submit(job)
    assert await calls.call_then(method, helper) == 11
    assert len(jobs) == (2 if "awaitable" in kind else 1)
    jobs.clear()
    await calls.call_prepared(method, lambda: helper(1))
    assert len(jobs) == 1
    jobs.clear()
    calls_before = len(threads)
    await calls.call_prepared(method, lambda: helper(-1))  # nothing to call with
    assert len(threads) == calls_before + 1
    assert {thread is threading.main_thread() for thread in threads} == {False}
    calls.close()


async def test_a_generator_is_named_where_something_goes_with_its_call():
    def yields():
        yield 1

    calls = PluginCalls("p")
    with pytest.raises(TypeError, match=r"yields yields, or returns a generator"):
        await calls.call_then(yields, list)
    calls.close()
