"""Fetching from several brokers: who is asked for what, and when."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from typing import Any

import pytest

from kafka_client import BatchFetcher, Client
from kafka_client.errors import ErrorCode
from tests.kafka_client.fake_broker import FakeBroker
from tests.kafka_client.running import QUICK
from tests.kafka_client.session_broker import SessionBroker, read, tp, with_sessions
from tests.support.depth import seeds
from tests.support.waiting import until


async def test_brokers_share_what_room_there_is() -> None:
    """Brokers share the buffer: long polls of two once reserved all of it, and the third was never asked."""
    async with FakeBroker(1) as one, FakeBroker(2, one.nodes) as two, FakeBroker(3, one.nodes) as three:
        brokers = [one, two, three]
        logs = [SessionBroker(broker) for broker in brokers]
        leaders = {p: p % 3 + 1 for p in range(30)}
        for broker in brokers:
            broker.topics["t"] = leaders
        async with Client(one.bootstrap, **QUICK) as client:
            settings: dict[str, Any] = {"buffer_max_bytes": 9_000, "max_partition_fetch_bytes": 1_000}
            async with BatchFetcher(client, **settings) as fetcher:
                fetcher.assign({tp(p): 0 for p in leaders})
                for sessions in logs:
                    await until(lambda now=sessions: now.incremental)  # type: ignore[misc]
                assert fetcher.statistics()["reserved_bytes"] <= 9_000
                for p in leaders:
                    logs[leaders[p] - 1].append(p, b"v")
                assert len(await read(fetcher, 30)) == 30


async def test_a_moved_partition_leaves_one_session_and_enters_another() -> None:
    async with FakeBroker(1) as old, FakeBroker(2, old.nodes) as new:
        before, after = SessionBroker(old), SessionBroker(new)
        old.topics["t"] = new.topics["t"] = leaders = {0: 1, 1: 1, 2: 2}
        async with Client(old.bootstrap, **QUICK) as client:
            async with BatchFetcher(client) as fetcher:
                fetcher.assign({tp(p): 0 for p in leaders})
                before.append(0, b"a")
                assert await read(fetcher, 1) == [(0, 0, b"a")]
                await until(lambda: before.incremental and after.incremental)
                leaders[0] = 2
                after.logs[0] = [b"a", b"b"]
                before.errors[0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
                before.news()
                assert await read(fetcher, 1) == [(0, 1, b"b")]
                assert any(0 in request.fetch_offsets for request in after.incremental)
                await until(lambda: any(request.forgotten == [0] for request in before.incremental))
                assert len(before.full) == len(after.full) == 1


@pytest.mark.parametrize("seed", seeds(5))
async def test_partitions_that_move_to_and_fro_are_read_alike_with_sessions_and_without(seed: int) -> None:
    at = random.Random(seed)
    async with FakeBroker(1) as one, FakeBroker(2, one.nodes) as two:
        brokers = {1: SessionBroker(one), 2: SessionBroker(two)}
        one.topics["t"] = two.topics["t"] = leaders = dict.fromkeys(range(6), 1)
        brokers[2].logs = brokers[1].logs
        values: dict[bool, dict[int, list[bytes | None]]] = {}

        def move(p: int, leader: int) -> None:
            leaders[p] = leader
            brokers[leader].errors.pop(p, None)
            brokers[3 - leader].errors[p] = ErrorCode.NOT_LEADER_OR_FOLLOWER

        async def collect(fetcher: BatchFetcher, into: dict[int, list[bytes | None]]) -> None:
            while True:
                for p, offset, value in await read(fetcher, 1):
                    assert offset == len(into[p])
                    into[p].append(value)

        for p in leaders:
            move(p, 1)
        async with Client(one.bootstrap, **QUICK) as client, AsyncExitStack() as stack:
            reading = []
            for with_sessions in (True, False):
                values[with_sessions] = {p: [] for p in leaders}
                fetcher = BatchFetcher(client, fetch_sessions=with_sessions)
                await stack.enter_async_context(fetcher)
                fetcher.assign({tp(p): 0 for p in leaders})
                reading.append(asyncio.create_task(collect(fetcher, values[with_sessions])))
            for number in range(60):
                p = at.randrange(6)
                brokers[leaders[p]].append(p, b"%d" % number)
                if at.random() < 0.3:
                    move(at.randrange(6), at.choice([1, 2]))
                await asyncio.sleep(at.choice([0, 0, 0.003]))
            logs = {p: brokers[1].logs.get(p, []) for p in leaders}
            await until(lambda: values[True] == values[False] == logs or any(t.done() for t in reading))
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
            assert values[True] == values[False] == logs


async def test_a_replica_the_broker_prefers_is_read_from_until_it_fails() -> None:
    async with FakeBroker(1) as leader, FakeBroker(2, leader.nodes) as replica:
        led, near = SessionBroker(leader), SessionBroker(replica)
        leader.topics["t"] = replica.topics["t"] = {0: 1}
        near.append(0, b"a", b"b")
        led.append(0, b"a", b"b", b"c")
        led.replicas[0] = 2
        async with Client(leader.bootstrap, **QUICK) as client:
            async with BatchFetcher(client, client_rack="r1") as fetcher:
                fetcher.add(tp(0), 0)
                assert await read(fetcher, 2) == [(0, 0, b"a"), (0, 1, b"b")]
                assert {request.rack_id for request in led.requests + near.requests} == {"r1"}
                requests = len(led.requests)
                near.append(0, b"c")
                assert await read(fetcher, 1) == [(0, 2, b"c")]
                assert len(led.requests) == requests, "nothing of it is asked of the leader meanwhile"
                led.append(0, b"d")
                led.replicas.clear()
                near.errors[0] = ErrorCode.OFFSET_OUT_OF_RANGE
                near.news()
                assert await read(fetcher, 1) == [(0, 3, b"d")]


async def test_the_leader_is_asked_again_when_the_replica_s_time_is_over() -> None:
    async with FakeBroker(1) as leader, FakeBroker(2, leader.nodes) as replica:
        led, near = SessionBroker(leader), SessionBroker(replica)
        leader.topics["t"] = replica.topics["t"] = {0: 1}
        led.append(0, b"a")
        near.append(0, b"a")
        led.replicas[0] = 2
        async with Client(leader.bootstrap, **QUICK, metadata_max_age_ms=50) as client:
            async with BatchFetcher(client) as fetcher:
                fetcher.add(tp(0), 0)
                assert await read(fetcher, 1) == [(0, 0, b"a")]
                led.replicas.clear()
                led.append(0, b"b")
                assert await read(fetcher, 1) == [(0, 1, b"b")]


def test_a_replica_nobody_knows_is_not_asked() -> None:
    async def case(sessions: SessionBroker, client: Client) -> None:
        sessions.append(0, b"a")
        sessions.replicas[0] = 9
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            await until(lambda: len(sessions.requests) > 3)
            sessions.replicas.clear()
            sessions.news()
            assert await read(fetcher, 1) == [(0, 0, b"a")]

    with_sessions(case)


def test_a_seek_while_the_connection_is_made_is_not_asked_for_as_an_offset() -> None:
    """-1 went to the broker as the offset to fetch, and came back as out of range."""

    async def case(sessions: SessionBroker, client: Client) -> None:
        sessions.append(0, b"a", b"b")
        async with BatchFetcher(client) as fetcher:
            fetcher.add(tp(0), 0)
            connect = client.connection

            async def slow(*where: Any, **lane: Any) -> Any:
                connection = await connect(*where, **lane)
                if lane.get("lane") and fetcher.position(tp(0)) == 0:
                    fetcher.seek(tp(0), -1)
                return connection

            client.connection = slow  # type: ignore[method-assign]
            await until(lambda: fetcher.position(tp(0)) == 2)
            sessions.append(0, b"c")
            assert await read(fetcher, 1) == [(0, 2, b"c")]
            assert all(
                offset >= 0 for request in sessions.requests for offset in request.fetch_offsets.values()
            )

    with_sessions(case)
