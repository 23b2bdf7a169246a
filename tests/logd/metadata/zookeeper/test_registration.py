"""Brokers that register, again after their session, and not under another's id."""

from __future__ import annotations

import asyncio
import json

import pytest

from logd.metadata.zookeeper.errors import DuplicateBrokerId, ZooKeeperError
from logd.metadata.zookeeper.registration import Registered, Registrar, register
from logd.metadata.zookeeper.znodes import paths
from logd.metadata.zookeeper.znodes.znodes import Endpoint, Registration
from millstream.zookeeper.ensemble import Ensemble
from tests.logd.metadata.zookeeper.proxy import CREATE, Proxy
from tests.logd.metadata.zookeeper.sessions import SHORT_MS, opened, through
from tests.support.depth import deep
from tests.support.waiting import until

NOW_MS = 1_700_000_000_000
BROKER = Registration(endpoints=(Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),), rack="r")


async def test_a_registration_as_kafkas(connect: str) -> None:
    async with opened(connect) as session:
        await session.ensure([paths.BROKER_IDS])
        registered = await register(session, 3, BROKER, NOW_MS)
        data, stat = await session.get(paths.broker(3))
        assert json.loads(data)["endpoints"] == ["PLAINTEXT://h:9092"]
        assert stat.ephemeral_owner == session.session_id
        assert registered == Registered(3, stat.czxid, session.lease)
        assert await register(session, 3, BROKER, NOW_MS) == registered, "again in the same session"


async def test_another_broker_of_the_same_id(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        await session.ensure([paths.BROKER_IDS])
        await register(session, 3, BROKER, NOW_MS)
        with pytest.raises(DuplicateBrokerId) as caught:
            await register(other, 3, BROKER, NOW_MS, wait_s=0.05)
        assert str(caught.value).startswith(
            "broker.id=3: a broker with this id is registered already (PLAINTEXT://h:9092); give this one"
        )


@deep
async def test_while_zookeeper_is_away_nothing_is_waited_out(connect: str, ensemble: Ensemble) -> None:
    async with (
        Proxy(ensemble.connect_string) as proxy,
        opened(connect) as before,
        opened(through(proxy, connect), session_timeout_ms=10_000) as session,
    ):
        await session.ensure([paths.BROKER_IDS])
        await register(before, 3, BROKER, NOW_MS)
        registering = asyncio.ensure_future(register(session, 3, BROKER, NOW_MS, wait_s=2))
        proxy.is_open = False
        proxy.cut()
        await asyncio.wait([registering], timeout=2.5)
        proxy.is_open = True
        await session.connected()
        await asyncio.wait([registering], timeout=0.5)
        await before.close()
        registered = await registering
        assert (await session.get(paths.broker(3)))[1].czxid == registered.epoch


@deep
async def test_what_the_last_run_has_left_is_waited_for(connect: str, ensemble: Ensemble) -> None:
    async with Proxy(ensemble.connect_string) as proxy, opened(connect) as session:
        await session.ensure([paths.BROKER_IDS])
        async with opened(through(proxy, connect), session_timeout_ms=SHORT_MS) as killed:
            before = await register(killed, 3, BROKER, NOW_MS)
            proxy.is_open = False
            proxy.cut()
            registered = await register(session, 3, BROKER, NOW_MS)
        assert registered.epoch > before.epoch
        assert not before.lease.is_held(session.clock())


@pytest.mark.parametrize("before", [True, False])
async def test_a_registration_whose_answer_is_lost(connect: str, ensemble: Ensemble, before: bool) -> None:
    async with Proxy(ensemble.connect_string) as proxy, opened(through(proxy, connect)) as session:
        await session.ensure([paths.BROKER_IDS])
        proxy.lose(CREATE, before=before)
        registered = await register(session, 3, BROKER, NOW_MS)
        assert proxy.has_lost
        assert (await session.get(paths.broker(3)))[1].czxid == registered.epoch


@deep
async def test_a_registrar_registers_in_each_session(connect: str, ensemble: Ensemble) -> None:
    registrations: list[Registered] = []
    failed: list[ZooKeeperError] = []
    async with (
        opened(connect) as other,
        Proxy(ensemble.connect_string) as proxy,
        opened(through(proxy, connect), session_timeout_ms=SHORT_MS) as session,
    ):
        await other.ensure([paths.BROKER_IDS])
        registrar = Registrar(session, 3, lambda: BROKER, lambda: NOW_MS, registrations.append, failed.append)
        first = await registrar.start()
        assert registrations == [first]
        proxy.cut()
        await until(lambda: int(session.statistics()["disconnects"]) == 1)
        await session.connected()
        proxy.is_open = False
        proxy.cut()
        await until(lambda: not first.lease.is_held(session.clock()))
        while await other.exists(paths.broker(3)) is not None:
            assert len(registrations) == 1, "a connection that is found again needs no new registration"
        proxy.is_open = True
        await until(lambda: len(registrations) == 2)
        assert registrations[1].epoch > first.epoch
        assert registrations[1].lease is session.lease
        await other.delete(paths.broker(3))
        await until(lambda: len(registrations) == 3)
        await registrar.stop()
        assert await other.exists(paths.broker(3)) is None
        assert failed == []


@deep
async def test_a_registrar_whose_id_was_taken_says_so(connect: str, ensemble: Ensemble) -> None:
    failed: list[ZooKeeperError] = []
    async with (
        opened(connect) as other,
        Proxy(ensemble.connect_string) as proxy,
        opened(through(proxy, connect), session_timeout_ms=SHORT_MS) as session,
    ):
        await other.ensure([paths.BROKER_IDS])
        registrar = Registrar(session, 3, lambda: BROKER, lambda: NOW_MS, lambda _: None, failed.append)
        await registrar.start()
        proxy.is_open = False
        proxy.cut()
        await register(other, 3, BROKER, NOW_MS)
        proxy.is_open = True
        await until(lambda: bool(failed))
        assert isinstance(failed[0], DuplicateBrokerId)
        await registrar.stop()
        assert await other.exists(paths.broker(3)) is not None, "it is the other's"
