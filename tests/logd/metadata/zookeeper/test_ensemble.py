"""Tests of three servers, some of which are lost: sessions, leases and writes outlive the loss."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from logd.metadata.zookeeper.election import elect, fenced
from logd.metadata.zookeeper.errors import ConnectionLost
from logd.metadata.zookeeper.session.operations import Create, MultiFailed, SetData
from logd.metadata.zookeeper.session.session import Event
from logd.metadata.zookeeper.znodes import paths
from millstream.zookeeper.ensemble import Ensemble
from millstream.zookeeper.server import Server
from tests.logd.metadata.zookeeper.conftest import TICK_MS
from tests.logd.metadata.zookeeper.sessions import SECONDS, events_of, opened
from tests.support.depth import deep
from tests.support.waiting import until, wait_for

pytestmark = deep


def ensemble_of_three(folder: Path, tick_ms: int = TICK_MS) -> Ensemble:
    if shutil.which("java") is None or find_spec("pyspark") is None:
        pytest.skip("ZooKeeper needs Java and PySpark's jars")
    return Ensemble(folder, 3, tick_ms=tick_ms)


@pytest.fixture
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with ensemble_of_three(tmp_path_factory.mktemp("three")) as running:
        yield running


def leader_of(three: Ensemble) -> Server:
    (leader,) = (each for each in three.servers if (state := each.state()) and state.mode == "leader")
    return leader


async def test_an_ensemble_that_loses_its_leader(three: Ensemble) -> None:
    """Controllers keep their session and epoch while the ensemble elects a leader. What one writes meanwhile
    is written once.
    """
    async with opened(three.connect_string + "/k", session_timeout_ms=10_000) as session:
        events, before = events_of(session), session.session_id
        elected = await elect(session, 1, 0)
        assert elected is not None
        await session.create("/counter", b"0")
        leader = leader_of(three)
        leader.kill()
        for number in range(1, 200):
            while (await session.get("/counter"))[1].version < number:
                try:
                    await fenced(session, elected, [SetData("/counter", str(number).encode(), number - 1)])
                except (ConnectionLost, MultiFailed):
                    await session.sync()
        assert (await session.get("/counter"))[0] == b"199"
        assert session.session_id == before
        assert Event.EXPIRED not in events
        await until(lambda: elected.lease.is_held(session.clock()))
        await asyncio.to_thread(leader.start)
        await asyncio.to_thread(wait_for, lambda: leader.state() is not None)


def test_answers_of_a_server_that_is_cut_off_renew_no_lease(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Responses of a server that is cut off renew no lease. The server serves reads for five ticks, and does
    not know whether the others have ended the session.
    """
    folder = tmp_path_factory.mktemp("cut-off")
    with ensemble_of_three(folder, tick_ms=2000) as three, ExitStack() as stack:
        leader = leader_of(three)
        alone, other = (each for each in three.servers if each is not leader)
        # Without a lease to renew: behind a write that is not answered no read is.
        reader = KazooClient(alone.address, timeout=40.0)
        reader.start(timeout=SECONDS)
        stack.callback(reader.close)
        stack.callback(reader.stop)

        async def main() -> None:
            async with opened(alone.address, session_timeout_ms=4000) as session:
                await session.create("/x", b"1")
                for each in (leader, other):
                    os.kill(each.pid, signal.SIGSTOP)
                try:
                    await until(lambda: not session.lease.is_held(session.clock()))
                    assert (await asyncio.to_thread(reader.get, "/x"))[0] == b"1"
                finally:
                    for each in (leader, other):
                        os.kill(each.pid, signal.SIGCONT)
                await until(lambda: session.lease.is_held(session.clock()))

        asyncio.run(main())


async def test_candidates_of_different_servers(three: Ensemble) -> None:
    """Candidates of different servers win one election each. A server's view may be old, so the epoch's
    version decides.
    """
    one, two, _ = three.servers
    async with opened(one.address) as first, opened(two.address) as second:
        sessions = [first, second]
        for epoch in range(1, 31):
            elections = await asyncio.gather(*(elect(each, n, 0) for n, each in enumerate(sessions)))
            won = [elected for elected in elections if elected is not None]
            while not won:
                won = [each for n, s in enumerate(sessions) if (each := await elect(s, n, 0))]
            assert [each.epoch for each in won] == [epoch]
            await fenced(sessions[won[0].broker_id], won[0], [Create(f"/epoch-{epoch}")])
            await sessions[won[0].broker_id].delete(paths.CONTROLLER)


async def test_a_server_that_hangs(three: Ensemble) -> None:
    """Sessions on a server that hangs move to another server before they expire. The hanging one neither
    answers nor closes connections.
    """
    async with opened(three.connect_string, session_timeout_ms=5000) as session:
        events, before = events_of(session), session.session_id
        await session.create("/mine", ephemeral=True)
        hung = await asyncio.to_thread(serving, three, session.session_id)
        os.kill(hung.pid, signal.SIGSTOP)
        try:
            await until(lambda: Event.RESUMED in events)
            assert (await session.get("/mine"))[1].ephemeral_owner == before
            assert Event.EXPIRED not in events
            await until(lambda: session.lease.is_held(session.clock()))
        finally:
            os.kill(hung.pid, signal.SIGCONT)


def serving(three: Ensemble, session_id: int) -> Server:
    """Return the server that the session is connected to."""
    for each in three.servers:
        with socket.create_connection(("127.0.0.1", each.port)) as connection:
            connection.sendall(b"cons")
            with connection.makefile("rb") as response:
                if f"sid=0x{session_id:x}".encode() in response.read():
                    return each
    raise AssertionError("no server has it")
