"""Tests that watched values are read again after a change, and after a loss, so that no change is missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

from logd.metadata.zookeeper.registration import register
from logd.metadata.zookeeper.session.session import Event
from logd.metadata.zookeeper.watches import LiveBroker, Watch, each_brokers, each_children, each_value
from logd.metadata.zookeeper.znodes import paths
from logd.metadata.zookeeper.znodes.znodes import Endpoint, Registration
from millstream.zookeeper.ensemble import Ensemble
from tests.logd.metadata.zookeeper.proxy import Proxy
from tests.logd.metadata.zookeeper.sessions import (
    SECONDS,
    SHORT_MS,
    events_of,
    opened,
    through,
    wait_until_gone,
)
from tests.support.depth import deep
from tests.support.waiting import until

T = TypeVar("T")


async def next_of(values: AsyncIterator[T], expected: T) -> None:
    """Wait until the watch yields `expected`. Earlier values may come again: a change may be reported twice,
    but never too late.
    """
    async with asyncio.timeout(SECONDS):
        async for value in values:
            if value == expected:
                return
    raise AssertionError(f"{expected} is never told")


async def test_values(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        values = (znode and znode[0] async for znode in each_value(session, "/x"))
        await next_of(values, None)
        await other.create("/x", b"1")
        await next_of(values, b"1")
        await other.set("/x", b"2")
        await next_of(values, b"2")
        await other.delete("/x")
        await next_of(values, None)
        await other.create("/x", b"3")
        await next_of(values, b"3")


async def test_children(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        children = each_children(session, "/x")
        await next_of(children, [])
        await other.ensure(["/x/a", "/x/b"])
        await next_of(children, ["a", "b"])
        await other.delete("/x/a")
        await next_of(children, ["b"])
        await other.delete("/x/b")
        await other.delete("/x")
        await next_of(children, [])
        await other.ensure(["/x/c"])
        await next_of(children, ["c"])


async def test_what_changes_while_the_connection_is_lost(connect: str, ensemble: Ensemble) -> None:
    async with (
        opened(connect) as other,
        Proxy(ensemble.connect_string) as proxy,
        opened(through(proxy, connect)) as session,
    ):
        children = each_children(session, "/")
        await next_of(children, [])
        proxy.is_open = False
        proxy.cut()
        await until(lambda: int(session.statistics()["disconnects"]) == 1)
        await other.create("/a")
        proxy.is_open = True
        await next_of(children, ["a"])
        await other.create("/b")
        await next_of(children, ["a", "b"])


@deep
async def test_what_changes_between_two_sessions(connect: str, ensemble: Ensemble) -> None:
    async with (
        opened(connect) as other,
        Proxy(ensemble.connect_string) as proxy,
        opened(through(proxy, connect), session_timeout_ms=SHORT_MS) as session,
    ):
        events = events_of(session)
        await session.create("/mine", ephemeral=True)
        children = each_children(session, "/")
        await next_of(children, ["mine"])
        proxy.is_open = False
        proxy.cut()
        await wait_until_gone(other, "/mine")
        await other.create("/a")
        proxy.is_open = True
        await next_of(children, ["a"])
        assert events[-1] is Event.ESTABLISHED
        await other.create("/b")
        await next_of(children, ["a", "b"])


async def test_brokers(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        brokers = each_brokers(session)
        await next_of(brokers, {})
        await other.ensure([paths.BROKER_IDS])
        broker = Registration(endpoints=(Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),))
        first = await register(other, 1, broker, 0)
        await next_of(brokers, {1: LiveBroker(broker, first.epoch)})
        # Gone and back before anybody looks: the epoch tells.
        await other.delete(paths.broker(1))
        second = await register(other, 1, broker, 0)
        await next_of(brokers, {1: LiveBroker(broker, second.epoch)})
        await other.delete(paths.broker(1))
        await next_of(brokers, {})


async def test_many_reads_leave_one_watch(connect: str) -> None:
    async with opened(connect) as session:
        await session.create("/x")
        with Watch(session) as watch:
            for _ in range(10):
                await watch.find("/x")
            await session.set("/x", b"1")
            await watch.changed()
            changed = asyncio.create_task(watch.changed())
            await session.sync()
            await asyncio.sleep(0)
            assert not changed.done()
            changed.cancel()
