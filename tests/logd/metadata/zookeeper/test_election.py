"""Elections with a real ZooKeeper: races, losses, candidates stopped and killed, and the fence in it all."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from logd.metadata.zookeeper import election
from logd.metadata.zookeeper.election import Candidate, Controller, Elected, elect, fenced, resign
from logd.metadata.zookeeper.errors import BadVersion, ControllerMoved
from logd.metadata.zookeeper.session.operations import Create, MultiFailed, SetData
from logd.metadata.zookeeper.session.session import Session, State
from logd.metadata.zookeeper.znodes import paths
from millstream.zookeeper.ensemble import Ensemble
from tests.logd.metadata.zookeeper.proxy import MULTI, Proxy
from tests.logd.metadata.zookeeper.sessions import SECONDS, SHORT_MS, come, opened, through, wait_until_gone
from tests.support.depth import deep
from tests.support.waiting import until

NOW_MS = 1_700_000_000_000
PROGRAM = "tests.logd.metadata.zookeeper.candidate"


async def test_an_election_as_kafkas(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        elected = await elect(session, 3, NOW_MS)
        assert elected is not None
        assert (elected.broker_id, elected.epoch, elected.epoch_version) == (3, 1, 1)
        assert elected.lease is session.lease
        data, stat = await session.get(paths.CONTROLLER)
        assert json.loads(data)["brokerid"] == 3
        assert stat.ephemeral_owner == session.session_id
        assert (await session.get(paths.CONTROLLER_EPOCH))[0] == b"1"
        assert await elect(other, 4, NOW_MS) is None
        assert await elect(session, 3, NOW_MS) == elected, "who asks again is still the controller"
        await resign(session, elected)
        newer = await elect(other, 4, NOW_MS)
        assert newer is not None
        assert newer.epoch == 2
        await resign(session, elected)
        assert await other.exists(paths.CONTROLLER) is not None, "an older one has nothing to give back"


async def test_the_fence(connect: str) -> None:
    async with opened(connect) as session, opened(connect) as other:
        first = await elect(session, 1, NOW_MS)
        assert first is not None
        assert await fenced(session, first, [Create("/x", b"1")]) == ["/x"]
        with pytest.raises(MultiFailed) as failed:
            await fenced(session, first, [Create("/y"), SetData("/x", b"2", 7)])
        assert failed.value.index == 1
        assert isinstance(failed.value.error, BadVersion)
        await other.delete(paths.CONTROLLER)
        second = await elect(other, 2, NOW_MS)
        assert second is not None
        with pytest.raises(ControllerMoved, match="newer than epoch 1 has been elected"):
            await fenced(session, first, [SetData("/x", b"3")])
        assert (await other.get("/x"))[0] == b"1"
        await fenced(other, second, [SetData("/x", b"4")])


@pytest.mark.parametrize("candidates", [2, 5])
async def test_of_several_at_the_same_time_one_is_elected(connect: str, candidates: int) -> None:
    async with AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(opened(connect)) for _ in range(candidates)]
        before: Elected | None = None
        for epoch in range(1, 11):
            elections = await asyncio.gather(*(elect(each, n, NOW_MS) for n, each in enumerate(sessions)))
            won = [elected for elected in elections if elected is not None]
            assert [elected.epoch for elected in won] == [epoch]
            if before is not None:
                with pytest.raises(ControllerMoved):
                    await fenced(sessions[before.broker_id], before, [Create("/never")])
            before = won[0]
            await resign(sessions[before.broker_id], before)


@pytest.mark.parametrize("before", [True, False])
async def test_an_election_whose_answer_is_lost(connect: str, ensemble: Ensemble, before: bool) -> None:
    async with Proxy(ensemble.connect_string) as proxy, opened(through(proxy, connect)) as session:
        proxy.lose(MULTI, before=before)
        elected = await elect(session, 1, NOW_MS)
        assert proxy.has_lost
        if before:
            assert elected is None
            elected = await elect(session, 1, NOW_MS)
        assert elected is not None
        assert elected.epoch == 1, "elected once"
        await fenced(session, elected, [Create("/x")])


class Standing:
    """A candidate, and the controllers that it was notified of."""

    def __init__(self, session: Session, broker_id: int) -> None:
        self.session = session
        self.notified: list[Controller] = []
        self.candidate = Candidate(session, broker_id, self.notified.append, lambda: NOW_MS)

    @property
    def last(self) -> Controller:
        return self.candidate.controller


@asynccontextmanager
async def standing(connect: str, broker_id: int, **settings: object) -> AsyncIterator[Standing]:
    async with opened(connect, **settings) as session:
        each = Standing(session, broker_id)
        each.candidate.start()
        try:
            yield each
        finally:
            await each.candidate.stop()


async def test_candidates_follow_one_another(connect: str) -> None:
    async with AsyncExitStack() as stack:
        all_of = [await stack.enter_async_context(standing(connect, n)) for n in range(5)]

        async def controller(epoch: int) -> Standing:
            await until(lambda: all(each.last.epoch == epoch for each in all_of))
            (one,) = (each for each in all_of if each.last.elected is not None)
            assert {each.last.broker_id for each in all_of} == {one.last.broker_id}
            return one

        first = await controller(1)
        await first.candidate.resign()
        second = await controller(2)
        # An operator's way to have another one elected.
        await second.session.delete(paths.CONTROLLER)
        third = await controller(3)
        all_of.remove(third)
        await third.candidate.stop()
        assert third.notified[-1] == Controller()
        await controller(4)


def test_a_mistake_does_not_end_a_candidate(
    connect: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mistakes = [RuntimeError("a mistake")]

    async def mistaken(session: Session, broker_id: int, now_ms: int) -> Elected | None:
        if mistakes:
            raise mistakes.pop()
        return await elect(session, broker_id, now_ms)

    monkeypatch.setattr(election, "elect", mistaken)
    monkeypatch.setattr(election, "AGAIN_S", 0)

    async def main() -> None:
        async with standing(connect, 1) as one:
            await until(lambda: one.last.elected is not None)

    asyncio.run(main())
    assert "unexpected RuntimeError('a mistake')" in caplog.text


async def test_who_gives_the_role_back_without_a_connection_is_elected_anew(
    connect: str, ensemble: Ensemble
) -> None:
    """Candidates that resign without a connection are elected again with a new epoch. Their session and
    `/controller` remain. A controller that starts again would send brokers another state than they have of
    the old epoch.
    """
    async with (
        Proxy(ensemble.connect_string) as proxy,
        standing(through(proxy, connect), 1, session_timeout_ms=10_000) as first,
    ):
        await until(lambda: first.last.elected is not None)
        session_id = first.session.session_id
        proxy.is_open = False
        proxy.cut()
        await until(lambda: first.session.state is not State.CONNECTED)
        await first.candidate.resign()
        assert first.notified[-1] == Controller()
        proxy.is_open = True
        await until(lambda: first.last.elected is not None)
        assert first.session.session_id == session_id
        assert first.last.epoch == 2


@deep
async def test_a_controller_whose_session_expires_hears_of_it_and_stands_again(
    connect: str, ensemble: Ensemble
) -> None:
    async with (
        Proxy(ensemble.connect_string) as proxy,
        standing(through(proxy, connect), 1, session_timeout_ms=SHORT_MS) as first,
    ):
        await until(lambda: first.last.elected is not None)
        elected = first.last.elected
        assert elected is not None
        async with standing(connect, 2) as second:
            await until(lambda: second.last == Controller(1, 1))
            proxy.is_open = False
            proxy.cut()
            await until(lambda: second.last.elected is not None)
            assert not elected.lease.is_held(first.session.clock())
            assert first.last.elected is elected, "it cannot know yet: the lease and the fence do"
            proxy.is_open = True
            await until(lambda: first.last == Controller(2, 2))
            assert first.notified[-2:] == [Controller(), Controller(2, 2)]
            with pytest.raises(ControllerMoved):
                await fenced(first.session, elected, [Create("/never")])


async def test_an_election_that_is_lost_is_held_again(connect: str, ensemble: Ensemble) -> None:
    async with Proxy(ensemble.connect_string) as proxy:
        proxy.lose(MULTI, before=True)
        async with standing(through(proxy, connect), 1) as only:
            await until(lambda: only.last.elected is not None)
            assert proxy.has_lost


class Process:
    """A candidate in a process of its own."""

    def __init__(self, connect: str, broker_id: int) -> None:
        self.broker_id = broker_id
        self.process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, connect, str(broker_id), str(SHORT_MS)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[4],
        )

    def wait_until_it_stands(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "standing\n"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=SECONDS)


@contextmanager
def processes(connect: str, count: int) -> Iterator[dict[int, Process]]:
    with ExitStack() as stack:
        started = {}
        for broker_id in range(count):
            started[broker_id] = Process(connect, broker_id)
            stack.callback(started[broker_id].end)
        for each in started.values():
            each.wait_until_it_stands()
        yield started


@deep
@pytest.mark.parametrize("count", [2, 5])
async def test_processes_that_are_stopped_and_killed(connect: str, count: int) -> None:
    """Epochs that are written never go back, although stopped controllers still believe in theirs."""

    async def controller(session: Session, other_than: int = -1) -> tuple[int, int]:
        """Return the broker that has written last, and its epoch. The broker may lose the role between the
        reads.
        """
        async with asyncio.timeout(SECONDS):
            while True:
                controller_znode = await session.find(paths.CONTROLLER)
                epoch = await session.find(paths.CONTROLLER_EPOCH)
                written = await session.find_children("/written")
                same = await session.find(paths.CONTROLLER) == controller_znode
                if controller_znode is not None and epoch is not None and written and same:
                    last = await session.find(f"/written/{written[-1]}")
                    broker_id = json.loads(controller_znode[0])["brokerid"]
                    if last is not None and last[0] == epoch[0] and broker_id != other_than:
                        return broker_id, int(epoch[0])

    async with opened(connect) as session:
        await session.ensure(["/written", "/moved"])
        with processes(connect, count) as running:
            first, epoch = await controller(session)
            running[first].process.send_signal(signal.SIGSTOP)
            second, epoch_2 = await controller(session, other_than=first)
            assert epoch_2 > epoch
            running[first].process.send_signal(signal.SIGCONT)
            await come(session, f"/moved/{epoch}")
            running[second].end()
            _, epoch_3 = await controller(session, other_than=second)
            assert epoch_3 > epoch_2
            written = await session.children("/written")
        values = await session.find_all([f"/written/{name}" for name in written])
        epochs = [int(each[0]) for each in values if each is not None]
        assert epochs == sorted(epochs)
        assert {epoch, epoch_2, epoch_3} <= set(epochs)
        await wait_until_gone(session, paths.CONTROLLER)
