"""What is read again when it changes, and after a loss, so that nothing is missed."""

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
from tests.logd.metadata.zookeeper.sessions import SECONDS, SHORT_MS, gone, heard, opened, through
from tests.support.depth import deep
from tests.support.waiting import until

T = TypeVar("T")


async def next_of(told: AsyncIterator[T], expected: T) -> None:
    """What is told next but for what was told already: a change may be told twice, and never too late."""
    async with asyncio.timeout(SECONDS):
        async for found in told:
            if found == expected:
                return
    raise AssertionError(f"{expected} is never told")


async def test_values(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        told = (found and found[0] async for found in each_value(session, "/x"))
        await next_of(told, None)
        await other.create("/x", b"1")
        await next_of(told, b"1")
        await other.set("/x", b"2")
        await next_of(told, b"2")
        await other.delete("/x")
        await next_of(told, None)
        await other.create("/x", b"3")
        await next_of(told, b"3")


async def test_children(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        told = each_children(session, "/x")
        await next_of(told, [])
        await other.ensure(["/x/a", "/x/b"])
        await next_of(told, ["a", "b"])
        await other.delete("/x/a")
        await next_of(told, ["b"])
        await other.delete("/x/b")
        await other.delete("/x")
        await next_of(told, [])
        await other.ensure(["/x/c"])
        await next_of(told, ["c"])


async def test_what_changes_while_the_connection_is_lost(connect: str, ensemble: Ensemble) -> None:
    async with (
        opened(connect) as other,
        Proxy(ensemble.connect_string) as proxy,
        opened(through(proxy, connect)) as session,
    ):
        told = each_children(session, "/")
        await next_of(told, [])
        proxy.is_open = False
        proxy.cut()
        await until(lambda: int(session.statistics()["disconnects"]) == 1)
        await other.create("/a")
        proxy.is_open = True
        await next_of(told, ["a"])
        await other.create("/b")
        await next_of(told, ["a", "b"])


@deep
async def test_what_changes_between_two_sessions(connect: str, ensemble: Ensemble) -> None:
    async with (
        opened(connect) as other,
        Proxy(ensemble.connect_string) as proxy,
        opened(through(proxy, connect), session_timeout_ms=SHORT_MS) as session,
    ):
        events = heard(session)
        await session.create("/mine", ephemeral=True)
        told = each_children(session, "/")
        await next_of(told, ["mine"])
        proxy.is_open = False
        proxy.cut()
        await gone(other, "/mine")
        await other.create("/a")
        proxy.is_open = True
        await next_of(told, ["a"])
        assert events[-1] is Event.ESTABLISHED
        await other.create("/b")
        await next_of(told, ["a", "b"])


async def test_brokers(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        told = each_brokers(session)
        await next_of(told, {})
        await other.ensure([paths.BROKER_IDS])
        broker = Registration(endpoints=(Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),))
        first = await register(other, 1, broker, 0)
        await next_of(told, {1: LiveBroker(broker, first.epoch)})
        # Gone and back before anybody looks: the epoch tells.
        await other.delete(paths.broker(1))
        second = await register(other, 1, broker, 0)
        await next_of(told, {1: LiveBroker(broker, second.epoch)})
        await other.delete(paths.broker(1))
        await next_of(told, {})


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
