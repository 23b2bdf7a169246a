"""Two instances share the tasks, and have copies of each other's: either answers for every key.

In one event loop, and once with one of them a process that is killed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from kafka_client import partition_for_key
from streams import KafkaStreams
from streams.errors import InvalidStateStore
from streams.http import forwarding, queries
from streams.http.forwarding import HOP
from streams.queries import FailureReason, HostInfo, KeyQuery, Position, PositionBound
from tests.streams.http.test_http import client
from tests.streams.queries.test_queries import send
from tests.streams.support import querying
from tests.streams.support.querying import PARTITIONS, application
from tests.streams.support.running import NewName, make_topics
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

GUARANTEES = depth.first(1, ["at_least_once", "exactly_once_v2"])
KEYS = [f"key-{number}" for number in range(10)]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow more time for answers: a busy machine is slow, and an instance that is gone refuses at once."""
    monkeypatch.setattr(forwarding, "FORWARD_SECONDS", 30.0)
    monkeypatch.setattr(queries, "LOCAL_SECONDS", 20.0)


def partition_of(key: str) -> int:
    return partition_for_key(key.encode(), PARTITIONS)


async def send_keys(bootstrap: str, name: str) -> None:
    """Send each key once, to its partition."""
    for partition in range(PARTITIONS):
        rows = [(key, 7) for key in KEYS if partition_of(key) == partition]
        await send(bootstrap, f"{name}-in", *rows, partition=partition)


async def counts(http: httpx.AsyncClient) -> dict[str, Any]:
    """Return the counts in the answers for all keys, None for each that was refused."""
    answers = {key: await http.get(f"/stores/counts/{key}") for key in KEYS}
    return {key: answer.json().get("value") for key, answer in answers.items()}


@asynccontextmanager
async def two(
    logd: LogdProcess, name: str, folder: Path, **settings: Any
) -> AsyncIterator[tuple[KafkaStreams, KafkaStreams]]:
    """Yield two instances that each run two tasks, have standbys of the other two, and have counted each key
    once.
    """
    await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS})
    await send_keys(logd.bootstrap, name)
    async with AsyncExitStack() as stack:
        one = application(logd.bootstrap, name, str(folder / "first"), **settings)
        first = await stack.enter_async_context(one)
        await first.wait_until_caught_up()
        other = application(logd.bootstrap, name, str(folder / "second"), **settings)
        second = await stack.enter_async_context(other)
        await until(lambda: all(len(each.tasks) == len(each.standby_tasks) == 2 for each in (first, second)))
        await until(lambda: all(are_known(each) for each in (first, second)))
        yield first, second


def are_known(app: KafkaStreams) -> bool:
    hosts = app.metadata_for_all_streams_clients()
    return [len(each.tasks) for each in hosts] == [len(each.standby_tasks) for each in hosts] == [2, 2]


@depth.deep
async def test_either_instance_answers_for_every_key(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("either")
    async with two(logd, name, tmp_path) as (first, second):
        for one, other in ((first, second), (second, first)):
            async with client(one) as http:
                assert await counts(http) == dict.fromkeys(KEYS, 1)
                there = next(key for key in KEYS if is_at(one, key, other.host))
                answer = await http.get(f"/stores/counts/{there}")
                assert answer.json()["answered_by"] == str(other.host)
                for refused in (
                    await http.get(f"/stores/counts/{there}?local=true"),
                    await http.get(f"/stores/counts/{there}", headers={HOP: "somebody"}),
                ):
                    assert (refused.status_code, refused.json()["reason"]) == (503, "NOT_ACTIVE")
                scan = (await http.get("/stores/counts?limit=1000")).json()
                assert sorted(row["key"] for row in scan["rows"]) == sorted(KEYS)
                assert set(scan["answered_by"]) == {str(first.host), str(second.host)}
                here = (await http.get("/stores/counts?limit=1000&local=true")).json()
                assert {row["key"] for row in here["rows"]} == {k for k in KEYS if is_at(one, k, one.host)}
                assert await pages(http, limit=5) == sorted(KEYS, key=lambda key: (partition_of(key), key))


def is_at(app: KafkaStreams, key: str, host: HostInfo | None) -> bool:
    return app.query_metadata_for_key("counts", key).active_host == host


async def pages(http: httpx.AsyncClient, *, limit: int) -> list[str]:
    keys: list[str] = []
    params: dict[str, Any] = {"limit": limit}
    while True:
        page = (await http.get("/stores/counts", params=params)).json()
        assert len(page["rows"]) <= limit
        keys += [row["key"] for row in page["rows"]]
        if page["next"] is None:
            return keys
        params["next"] = page["next"]


@depth.deep
@pytest.mark.parametrize("guarantee", GUARANTEES)
async def test_copies_answer_where_they_will_do(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    name = new_name("copies")
    async with two(logd, name, tmp_path, processing_guarantee=guarantee) as (first, second):
        key = next(key for key in KEYS if is_at(first, key, second.host))
        tp = (f"{name}-in", partition_of(key))
        last = sum(partition_of(each) == tp[1] for each in KEYS) - 1
        copied = PositionBound.at(Position().with_offset(*tp, last))
        await until_copied(first, key, copied)
        view: Any = first.store("counts", partition=tp[1])
        with pytest.raises(InvalidStateStore, match=r"not in this instance.*stale=True"):
            await view.get(key)
        stale: Any = first.store("counts", partition=tp[1], stale=True)
        assert await stale.get(key) == 1
        refused = (await first.query("counts", KeyQuery(key), require_active=True)).partition_results
        assert refused[tp[1]].failure is FailureReason.NOT_ACTIVE
        beyond = PositionBound.at(Position().with_offset(*tp, last + 1))
        results = (await first.query("counts", KeyQuery(key), position_bound=beyond)).partition_results
        assert results[tp[1]].failure is FailureReason.NOT_UP_TO_BOUND
        assert (results[tp[1]].active, results[tp[1]].position.offset(*tp)) == (False, last)
        await send(logd.bootstrap, tp[0], (key, 9), partition=tp[1])
        await until_copied(first, key, beyond)
        assert await stale.get(key) == 2

        # The other one works on, but nobody reaches it.
        address = str(second.host)
        await second._close_view()
        async with client(first) as http:
            refusal = await http.get(f"/stores/counts/{key}")
            assert refusal.status_code == 503
            assert f"{address} does not answer" in refusal.json()["message"]
            assert "stale=true" in refusal.json()["message"]
            answer = (await http.get(f"/stores/counts/{key}?stale=true")).json()
            assert (answer["value"], answer["active"]) == (2, False)
            assert answer["answered_by"] == str(first.host)
            bound = json.dumps({tp[0]: {tp[1]: last + 9}})
            params = {"stale": "true", "position": bound}
            assert (await http.get(f"/stores/counts/{key}", params=params)).status_code == 503


async def until_copied(app: KafkaStreams, key: str, bound: PositionBound) -> None:
    """Until the copy here is as far."""
    partition = partition_of(key)
    while True:
        answer = await app.query("counts", KeyQuery(key), partitions={partition}, position_bound=bound)
        if answer.partition_results[partition].is_success:
            return
        await asyncio.sleep(0.02)


@contextmanager
def started(bootstrap: str, name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the program in `querying`."""
    command = [sys.executable, "-m", querying.__name__, bootstrap, name, str(folder)]
    root = Path(querying.__file__).parents[3]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


async def address_of(process: subprocess.Popen[bytes]) -> HostInfo:
    """Return the address at which the process answers, once its tasks run."""
    assert process.stdout is not None
    return HostInfo.parse((await asyncio.to_thread(process.stdout.readline)).decode().strip())


@depth.deep
async def test_the_copy_answers_for_one_that_was_killed(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Until the group notices, its tasks run nowhere; then they run here, with all that they had counted."""
    name = new_name("killed")

    async def case(other: subprocess.Popen[bytes], first: KafkaStreams) -> None:
        there = await address_of(other)
        await until(lambda: len(first.tasks) == len(first.standby_tasks) == 2 and are_known(first))
        async with client(first) as http, httpx.AsyncClient(base_url=f"http://{there}") as second:
            assert await counts(http) == await counts(second) == dict.fromkeys(KEYS, 1)
            key = next(key for key in KEYS if is_at(first, key, there))
            last = sum(partition_of(each) == partition_of(key) for each in KEYS) - 1
            position = Position().with_offset(f"{name}-in", partition_of(key), last)
            await until_copied(first, key, PositionBound.at(position))
            other.kill()
            other.wait(60)
            refused = await http.get(f"/stores/counts/{key}")
            assert refused.status_code == 503
            assert f"{there} does not answer" in refused.json()["message"]
            answer = (await http.get(f"/stores/counts/{key}?stale=true")).json()
            assert (answer["value"], answer["active"]) == (1, False)
            await until(lambda: len(first.tasks) == PARTITIONS)
            assert await counts(http) == dict.fromkeys(KEYS, 1)

    await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS})
    await send_keys(logd.bootstrap, name)
    async with application(logd.bootstrap, name, str(tmp_path / "first")) as first:
        await first.wait_until_caught_up()
        with started(logd.bootstrap, name, tmp_path / "second") as other:
            await case(other, first)
