"""Tests of sessions with a real ZooKeeper: requests, lost, resumed and expired sessions, and leases."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from logd.metadata.zookeeper.errors import (
    BadVersion,
    ConnectionLost,
    NodeExists,
    NoNode,
    NotAllowed,
    NotEmpty,
    Refused,
    SessionExpired,
    Unreachable,
    ZooKeeperError,
)
from logd.metadata.zookeeper.session import pipeline
from logd.metadata.zookeeper.session.client import Client
from logd.metadata.zookeeper.session.operations import Check, Create, Delete, MultiFailed, Operation, SetData
from logd.metadata.zookeeper.session.session import Event, Session, State
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings, parse_connect
from millstream.zookeeper.ensemble import Ensemble
from tests.logd.metadata.zookeeper.proxy import CREATE, Proxy
from tests.logd.metadata.zookeeper.sessions import (
    SECONDS,
    SHORT_MS,
    events_of,
    opened,
    through,
    wait_until_gone,
)
from tests.support.depth import deep
from tests.support.ports import free_port
from tests.support.waiting import until


async def test_what_can_be_asked(connect: str) -> None:
    async with opened(connect) as session:
        assert await session.children("/") == []
        assert await session.create("/a", b"1") == "/a"
        assert await session.create("/a/s_", sequential=True) == "/a/s_0000000000"
        value, stat = await session.get("/a")
        assert (value, stat.version, stat.children) == (b"1", 0, 1)
        assert (await session.set("/a", b"2", 0)).version == 1
        assert await session.exists("/b") is None
        assert await session.find("/b") is None
        with pytest.raises(NoNode, match="ZooKeeper has no /b"):
            await session.get("/b")
        with pytest.raises(NodeExists):
            await session.create("/a")
        with pytest.raises(BadVersion):
            await session.set("/a", b"3", 0)
        with pytest.raises(NotEmpty):
            await session.delete("/a")
        with pytest.raises(NoNode):
            await session.create("/b/c")
        await session.ensure(["/b/c/d", "/b/c/e"])
        assert await session.children("/b/c") == ["d", "e"]
        await session.delete("/b/c/d")
        assert await session.find_all(["/a", "/b/c/d", "/b/c/e"]) == [
            await session.get("/a"),
            None,
            await session.get("/b/c/e"),
        ]
        assert await session.children_of_all(["/b", "/none"]) == [["c"], []]
        await session.sync()


async def test_a_multi_is_all_or_none(connect: str) -> None:
    async with opened(connect) as session:
        await session.create("/v")
        answers = await session.multi(
            [
                Check("/v", 0),
                Create("/x", b"1"),
                SetData("/v", b"2"),
                Delete("/x"),
                Create("/y_", sequential=True),
            ]
        )
        assert answers[1] == "/x"
        assert answers[2].version == 1
        assert answers[4] == "/y_0000000002"
        with pytest.raises(MultiFailed) as caught:
            await session.multi([Create("/z"), Check("/v", 0), Create("/w")])
        assert caught.value.index == 1
        assert isinstance(caught.value.error, BadVersion)
        assert caught.value.error.path == "/v"
        assert await session.exists("/z") is None


def test_many_requests_are_on_their_way_at_once_and_no_more_than_may_be(connect: str) -> None:
    async def main() -> None:
        async with opened(connect, max_in_flight_requests=7) as session:
            await session.create("/x", b"1")
            most = 0

            async def watch() -> None:
                nonlocal most
                while True:
                    most = max(most, int(session.statistics()["in_flight"]))
                    await asyncio.sleep(0)

            watching = asyncio.create_task(watch())
            answers = await asyncio.gather(*(session.get("/x") for _ in range(500)))
            watching.cancel()
            assert {value for value, _ in answers} == {b"1"}
            # One more is the write that renews the lease.
            assert 7 <= most <= 8

    asyncio.run(main())


async def test_no_more_than_so_many_wait_for_their_turn(
    connect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "WAITING_MAX", 20)
    async with opened(connect, max_in_flight_requests=2) as session:
        await session.create("/x")
        answers = await asyncio.gather(*(session.get("/x") for _ in range(50)), return_exceptions=True)
        refused = [each for each in answers if isinstance(each, ZooKeeperError)]
        assert len(refused) == 28
        assert "20 requests wait for ZooKeeper already" in str(refused[0])
        assert session.statistics()["waiting"] == 0
        await session.get("/x")


async def test_no_ensemble() -> None:
    port = free_port()
    settings = ZooKeeperSettings.of(f"127.0.0.1:{port}/k", connection_timeout_ms=300)
    session = Session(settings)
    with pytest.raises(Unreachable) as caught:
        await session.open()
    assert f"no ZooKeeper at 127.0.0.1:{port}/k within 0.3 s (127.0.0.1:{port}: " in str(caught.value)
    assert "zookeeper.connection.timeout.ms" in str(caught.value)
    assert session.state is State.CLOSED


async def test_an_ensemble_that_comes_up_late(connect: str, ensemble: Ensemble) -> None:
    async with Proxy(ensemble.connect_string) as proxy:
        proxy.is_open = False
        session = Session(ZooKeeperSettings.of(through(proxy, connect), connection_timeout_ms=100_000))
        opening = asyncio.create_task(session.open())
        await until(lambda: session.state is State.CONNECTING)
        proxy.is_open = True
        await opening
        assert session.lease.is_held(session.clock())
        await session.close()


@deep
def test_a_renewal_that_is_refused_is_not_the_last(connect: str) -> None:
    """Renewals go on after one that is refused, for example by a server that has too much to do."""

    async def main() -> None:
        async with opened(connect, session_timeout_ms=SHORT_MS) as session:
            requests = session._connection._pipeline
            ask, refusals = requests.ask_at_once, 0

            async def refuse_once(client: Client, operation: Operation) -> Any:
                nonlocal refusals
                if refusals == 0:
                    refusals += 1
                    raise Refused("too much to do")
                return await ask(client, operation)

            requests.ask_at_once = refuse_once  # type: ignore[method-assign]
            await until(lambda: refusals == 1)
            until_then = session.lease.until
            async with asyncio.timeout(20):
                await until(lambda: session.lease.until > until_then)

    asyncio.run(main())


async def test_a_connection_that_is_lost_and_found(connect: str, ensemble: Ensemble) -> None:
    async with Proxy(ensemble.connect_string) as proxy, opened(through(proxy, connect)) as session:
        events, before = events_of(session), session.session_id
        await session.create("/mine", ephemeral=True)
        proxy.is_open = False
        proxy.cut()
        await until(lambda: Event.SUSPENDED in events)
        with pytest.raises(ConnectionLost, match="there is no connection"):
            await session.create("/other")
        reading = asyncio.create_task(session.get("/mine"))
        await asyncio.sleep(0)
        proxy.is_open = True
        assert (await reading)[1].ephemeral_owner == before, "a read waits for the connection"
        assert events == [Event.SUSPENDED, Event.RESUMED]
        assert session.session_id == before
        assert session.lease.is_held(session.clock())
        assert session.statistics()["disconnects"] == 1


@pytest.mark.parametrize("before", [True, False])
async def test_a_write_without_an_answer_is_not_repeated(
    connect: str, ensemble: Ensemble, before: bool
) -> None:
    async with Proxy(ensemble.connect_string) as proxy, opened(through(proxy, connect)) as session:
        await session.create("/parent")
        proxy.lose(CREATE, before=before)
        with pytest.raises(ConnectionLost, match="before it answered for /parent/x"):
            await session.create("/parent/x" + "x" * 60)
        assert proxy.has_lost
        assert len(await session.children("/parent")) == (0 if before else 1)


async def test_what_is_ensured_is_there_whatever_is_lost(connect: str, ensemble: Ensemble) -> None:
    async with Proxy(ensemble.connect_string) as proxy, opened(through(proxy, connect)) as session:
        for before in (True, False):
            proxy.lose(CREATE, before=before)
            path = f"/{before}{'x' * 60}/y"
            await session.ensure([path])
            assert await session.exists(path) is not None


@deep
async def test_a_session_that_expires_is_followed_by_another(connect: str, ensemble: Ensemble) -> None:
    async with (
        opened(connect) as other,
        Proxy(ensemble.connect_string) as proxy,
        opened(through(proxy, connect), session_timeout_ms=SHORT_MS) as session,
    ):
        events, lease, before = events_of(session), session.lease, session.session_id
        await session.create("/mine", ephemeral=True)
        proxy.is_open = False
        proxy.cut()
        await wait_until_gone(other, "/mine")
        assert not lease.is_held(session.clock()), "the lease ends before the session does"
        proxy.is_open = True
        await until(lambda: session.state is State.CONNECTED)
        assert events[0] is Event.SUSPENDED
        assert events[-2:] == [Event.EXPIRED, Event.ESTABLISHED]
        assert session.session_id != before
        assert session.lease is not lease
        assert not lease.is_held(0.0), "a lease that is over is over for any time"
        assert session.lease.is_held(session.clock())
        await session.create("/mine", ephemeral=True)
        assert session.statistics()["expires"] == 1


@deep
async def test_a_request_of_an_expired_session_is_not_carried_out_in_the_next(
    connect: str, ensemble: Ensemble
) -> None:
    """Requests of an expired session fail. The client of kazoo begins a new session by itself, and sends in
    it what was queued for the old one.
    """
    async with (
        opened(connect) as other,
        Proxy(ensemble.connect_string) as proxy,
        opened(through(proxy, connect), session_timeout_ms=SHORT_MS) as session,
    ):
        events, client = events_of(session), session._connection.client
        assert client is not None
        await session.create("/mine", ephemeral=True)
        proxy.is_open = False
        proxy.cut()
        await wait_until_gone(other, "/mine")
        errors: list[Exception | None] = []
        client.submit(Create("/late", ephemeral=True), lambda answer, error: errors.append(error))
        proxy.is_open = True
        await until(lambda: Event.ESTABLISHED in events)
        await until(lambda: bool(errors))
        assert isinstance(errors[0], SessionExpired)
        assert await session.exists("/late") is None


async def test_the_timeout_that_counts_is_the_servers(connect: str) -> None:
    async with opened(connect, session_timeout_ms=60_000) as session:
        # 20 ticks of 500 ms.
        assert session.lease.until - session.clock() < 10


@deep
async def test_a_stopped_process_knows_that_its_lease_is_over_before_it_does_anything(
    connect: str, tmp_path: Path
) -> None:
    """Processes that are stopped for longer than their session check their lease before anything else."""
    program = Path(__file__).parent / "acknowledging.py"
    async with opened(connect) as other:
        process = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-m", "tests.logd.metadata.zookeeper.acknowledging", connect, str(SHORT_MS)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=program.parents[4],
        )
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "registered\n"
            os.kill(process.pid, signal.SIGSTOP)
            await wait_until_gone(other, "/leader")
            await other.create("/over")
            os.kill(process.pid, signal.SIGCONT)
            output = await asyncio.to_thread(process.communicate, timeout=SECONDS)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        assert output[0].splitlines()[-1] == "established again"
        owner = (await other.get("/acknowledged"))[0]
        assert owner == b"0", "acknowledged behind the end of its session"


async def test_acls(connect: str) -> None:
    async with (
        opened(connect, set_acl=True, digest="logd:secret") as ours,
        opened(connect) as other,
        opened(connect, digest="logd:wrong") as wrong,
    ):
        await ours.ensure(["/config/users", "/brokers", "/consumers"])
        assert await other.get("/brokers")
        for stranger in (other, wrong):
            with pytest.raises(NotAllowed, match="/brokers keeps this broker out"):
                await stranger.set("/brokers", b"x")
            with pytest.raises(NotAllowed):
                await stranger.get("/config/users")
        await other.create("/consumers/g")
        await ours.set("/brokers", b"x")


async def test_who_has_no_identity_keeps_nothing_for_himself(connect: str) -> None:
    """Connections without an identity cannot set ACLs, for example through TLS to a server that asks for no
    certificate.
    """
    hosts, chroot = parse_connect(connect)
    session = Session(ZooKeeperSettings(hosts=hosts, chroot=chroot, set_acl=True))
    with pytest.raises(NotAllowed, match=r"no identity of this broker .* \(zookeeper.set.acl\): give it"):
        await session.open()


def test_a_session_that_is_closed_leaves_nothing(connect: str) -> None:
    async def main() -> None:
        async with opened(connect) as other:
            async with opened(connect) as session:
                await session.create("/mine", ephemeral=True)
                lease = session.lease
                assert lease.is_held(session.clock())
            assert not lease.is_held(session.clock())
            assert await other.exists("/mine") is None
            with pytest.raises(ConnectionLost):
                await session.create("/late")

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < SECONDS
