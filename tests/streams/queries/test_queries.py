"""Queries of an instance's own stores: views, positions and their bounds, copies, and what refuses."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from kafka_client import BatchProducer, Client
from streams import KafkaStreams, SessionWindows, StreamsBuilder, TimeWindows, Topology
from streams.errors import (
    InvalidStateStore,
    QueryTimedOut,
    StreamsError,
    StreamsNotRunning,
    TooManyQueries,
    UnknownStateStore,
)
from streams.queries import (
    FailureReason,
    KeyQuery,
    KeyValueView,
    Position,
    PositionBound,
    RangeQuery,
    SessionView,
    ValueAndTimestamp,
    WindowKeyQuery,
    WindowView,
)
from streams.runtime.restore import restore
from streams.runtime.threads.worker import QUERIES_MAX, Worker
from tests.streams.support.running import NewName, make_topics, produce, start
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

NEVER_MS = 3_600_000
"""A commit interval beyond the test: nothing is committed but by the end."""


def counting(name: str) -> Topology:
    """Records per key: ever, by ten milliseconds, and by session."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    groups = builder.stream(f"{name}-in").group_by_key()
    groups.count(store="counts")
    groups.windowed_by(TimeWindows(10, grace=NEVER_MS)).count(store="windows")
    groups.windowed_by(SessionWindows(5, grace=NEVER_MS)).count(store="sessions")
    return builder.build()


async def send(bootstrap: str, topic: str, *rows: tuple[str, int], partition: int = 0) -> None:
    """Keys and times."""
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        records = [(time, key.encode(), bytes(8), ()) for key, time in rows]
        await (await producer.send(topic, partition, records))


async def processed(app: KafkaStreams, records: int) -> None:
    await until(lambda: app.summary()["records_in"] == records)


async def test_views_see_what_is_processed_before_it_is_committed(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("views")
    await make_topics(logd.bootstrap, **{f"{name}-in": 2})
    await send(logd.bootstrap, f"{name}-in", ("a", 1), ("b", 2), ("a", 12), ("a", 13))
    await send(logd.bootstrap, f"{name}-in", ("c", 30), partition=1)
    settings = {"commit_interval_ms": NEVER_MS, "poll_ms": 20}
    async with start(counting(name), logd.bootstrap, name, tmp_path, **settings) as app:
        await processed(app, 5)
        counts = app.store("counts", KeyValueView)
        windows, sessions = app.store("windows", WindowView), app.store("sessions", SessionView)
        assert await counts.get("a") == 3
        assert await counts.get("nobody") is None
        assert await counts.get_with_timestamp("a") == ValueAndTimestamp(3, 13)
        assert await counts.all().to_list() == [("a", 3), ("b", 1), ("c", 1)]
        assert await counts.range("b", "c").to_list() == [("b", 1), ("c", 1)]
        assert await counts.reverse_range("a", "b").to_list() == [("b", 1), ("a", 3)]
        assert await counts.reverse_all().to_list() == [("b", 1), ("a", 3), ("c", 1)], "by partition"
        backwards = await windows.backward_fetch("a").to_list()
        assert [key.window.start for key, _ in backwards] == [10, 0]
        assert [key.key for key, _ in await windows.backward_all().to_list()] == ["b", "a", "a", "c"]
        assert [count for _, count in await sessions.backward_fetch("a").to_list()] == [2, 1]
        assert await windows.get("a", 10) == 2
        rows = await windows.fetch("a", 0, 10).to_list()
        assert [(*key.window, count) for key, count in rows] == [(0, 10, 1), (10, 20, 2)]
        assert [key.key for key, _ in await windows.all().to_list()] == ["a", "a", "b", "c"]
        assert [(*key.window, count) for key, count in await sessions.fetch("a").to_list()] == [
            (1, 1, 1),
            (12, 13, 2),
        ]
        assert await app.store("counts", KeyValueView, partition=1).all().to_list() == [("c", 1)]
        assert [each.get(b) for each in app.stores("counts") for b in "ab"] == [3, 1, None, None]  # type: ignore[attr-defined]


async def test_a_thread_of_its_own_waits_for_results_and_the_loop_may_not(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("threads")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    await send(logd.bootstrap, f"{name}-in", *((f"k{n}", n) for n in range(2500)))
    async with start(counting(name), logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
        view: Any = app.store("counts")

        def ask() -> tuple[int, int]:
            return view.get("k7").result(60), len(list(view.all()))

        assert await asyncio.to_thread(ask) == (1, 2500), "in three pages"
        assert await view.approximate_num_entries() == 2500
        with pytest.raises(StreamsError, match="awaited"):
            view.get("k7").result()


async def test_a_query_sees_no_record_halfway_and_may_be_given_up(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """A query waits while a function of the topology blocks the thread between two writes of one record."""
    name = new_name("halfway")
    started, go_on = threading.Event(), threading.Event()

    def add(key: str, value: int, total: dict[str, int]) -> dict[str, int]:
        total["first"] = 1
        started.set()
        assert go_on.wait(60)
        total["second"] = 1
        return total

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").group_by_key().aggregate(dict, add, value_serde=dict, store="totals")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    async with start(builder.build(), logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
        await send(logd.bootstrap, f"{name}-in", ("a", 1))
        await asyncio.to_thread(started.wait, 60)
        view: Any = app.store("totals")
        answer = asyncio.ensure_future(view.get("a"))
        with pytest.raises(QueryTimedOut, match=r"within 0\.01 s.*ask again"):
            await asyncio.to_thread(lambda: view.get("a").result(0.01))
        assert not answer.done()
        go_on.set()
        assert await answer == {"first": 1, "second": 1}


async def test_an_answer_says_its_position_and_a_bound_refuses(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("bound")
    topic = f"{name}-in"
    await make_topics(logd.bootstrap, **{topic: 2})
    await send(logd.bootstrap, topic, ("a", 1), ("a", 2))
    async with start(counting(name), logd.bootstrap, name, tmp_path, commit_interval_ms=NEVER_MS) as app:
        await processed(app, 2)
        await until(lambda: len(app.tasks) == 2)  # the other partition's may still be on its way
        result = await app.query("counts", KeyQuery("a"))
        assert result.position == Position({topic: {0: 1}})
        partition_result = result.only_partition_result
        assert partition_result is not None
        assert partition_result.get() == ValueAndTimestamp(2, 2)
        assert await app.query("counts", KeyQuery("a"), position_bound=PositionBound.at(result.position))
        beyond = PositionBound.at(result.position.with_offset(topic, 0, 2))
        refused = (await app.query("counts", KeyQuery("a"), position_bound=beyond)).partition_results
        assert refused[0].failure is FailureReason.NOT_UP_TO_BOUND
        assert f"at offset 1 of {topic}-0, and 2 is asked for" in refused[0].message
        assert refused[1].is_success, "the bound says nothing of its partition"
        with pytest.raises(InvalidStateStore, match="is asked for"):
            refused[0].get()
        await send(logd.bootstrap, topic, ("a", 3))
        await processed(app, 3)
        answered = (await app.query("counts", KeyQuery("a"), position_bound=beyond)).partition_results
        assert answered[0].get().value == 3


async def test_a_store_below_a_cached_table_is_as_far_as_the_last_commit(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Updates that the cached table has not flushed yet are not in the store below it."""
    name = new_name("below")
    topic = f"{name}-in"
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    counts = builder.stream(topic).group_by_key().count(store="counts")
    counts.map_values(lambda count: count * 10, store="tens")
    await make_topics(logd.bootstrap, **{topic: 1})
    await send(logd.bootstrap, topic, ("a", 1))
    settings = {"commit_interval_ms": NEVER_MS}
    async with start(builder.build(), logd.bootstrap, name, tmp_path, **settings) as app:
        await processed(app, 1)
        bound = PositionBound.at((await app.query("counts", KeyQuery("a"))).position)
        assert bound.position == Position({topic: {0: 0}})
        result = (await app.query("tens", KeyQuery("a"), position_bound=bound)).partition_results[0]
        assert result.failure is FailureReason.NOT_UP_TO_BOUND
        await app.wait_until_caught_up()
        result = (await app.query("tens", KeyQuery("a"), position_bound=bound)).partition_results[0]
        assert result.get().value == 10


async def test_what_cannot_be_answered_says_why(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    name = new_name("refused")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    app = start(counting(name), logd.bootstrap, name, tmp_path)
    with pytest.raises(StreamsNotRunning, match=r"is CREATED.*start it first"):
        app.store("counts")
    async with app:
        await app.wait_until_caught_up()
        with pytest.raises(UnknownStateStore, match=r"no store is named 'count'.*has counts, sessions"):
            app.store("count")
        with pytest.raises(InvalidStateStore, match="counts is seen as a KeyValueView, not a WindowView"):
            app.store("counts", WindowView)
        elsewhere: Any = app.store("counts", partition=3)
        with pytest.raises(InvalidStateStore, match="partition 3 of store counts is not in this instance"):
            await elsewhere.get("a")
        result = (await app.query("counts", KeyQuery("a"), partitions={3})).partition_results[3]
        assert result.failure is FailureReason.NOT_PRESENT
        result = (await app.query("counts", WindowKeyQuery("a"))).partition_results[0]
        assert result.failure is FailureReason.UNKNOWN_QUERY_TYPE
        assert "ask for a KeyQuery or RangeQuery" in result.message
        result = (await app.query("counts", KeyQuery(7))).partition_results[0]
        assert result.failure is FailureReason.STORE_EXCEPTION
        assert "7 is no key of store counts, whose keys are of String" in result.message
        view: Any = app.store("counts")
    with pytest.raises(StreamsNotRunning, match=r"is NOT_RUNNING.*ask an instance that runs"):
        view.get("a")


@deep
async def test_what_is_being_restored_is_read_where_a_copy_will_do(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_name("restored")
    go_on, original = asyncio.Event(), restore.read_changelogs

    async def held_up(client: Client, restores: Any, **rest: Any) -> None:
        await go_on.wait()
        await original(client, restores, **rest)

    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    await send(logd.bootstrap, f"{name}-in", ("a", 1))
    async with start(counting(name), logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    monkeypatch.setattr(restore, "read_changelogs", held_up)
    async with start(counting(name), logd.bootstrap, name, tmp_path / "elsewhere") as app:
        await until(lambda: any(each["remaining"] for each in app.task_facts()))
        with pytest.raises(InvalidStateStore, match="not in this instance"):
            await app.store("counts", KeyValueView).get("a")
        copy = app.store("counts", KeyValueView, stale=True)
        assert await copy.get("a") is None, "nothing of it is read yet"
        bound = PositionBound.at(Position({f"{name}-in": {0: 0}}))
        results = (await app.query("counts", KeyQuery("a"), position_bound=bound)).partition_results
        assert results[0].failure is FailureReason.NOT_UP_TO_BOUND, "its position is not known"
        go_on.set()
        await app.wait_until_caught_up()
        assert await copy.get("a") == 1


@deep
async def test_a_global_table_is_read_whole(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    name = new_name("global")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.global_table(f"{name}-all", store="all")
    builder.stream(f"{name}-in").to(f"{name}-out")
    await make_topics(logd.bootstrap, **{f"{name}-{each}": 2 for each in ("all", "in", "out")})
    await produce(logd.bootstrap, f"{name}-all", (b"a", bytes(8)), partition=1)
    async with start(builder.build(), logd.bootstrap, name, tmp_path) as app:
        result = await app.query("all", RangeQuery())
        assert [row.key for row in result.partition_results[0].get().rows] == ["a"]
        assert result.position == Position({f"{name}-all": {1: 0}})


async def test_queries_are_answered_where_a_job_lets_them_and_have_a_bound() -> None:
    worker, started, go_on = Worker(), threading.Event(), threading.Event()

    def job(answered: list[bool]) -> None:
        started.set()
        assert go_on.wait(60)
        worker.answer()
        answered.append(first.done())
        with pytest.raises(InvalidStateStore, match="would wait for itself"):
            worker.ask(threading.get_ident)

    answered: list[bool] = []
    working = asyncio.create_task(worker.run(job, answered))
    await asyncio.to_thread(started.wait, 60)
    first, given_up = worker.ask(threading.get_ident), worker.ask(lambda: 1 / 0)
    others = [worker.ask(lambda: 1 / 0) for _ in range(QUERIES_MAX - 2)]
    assert worker.statistics()["worker_queries"] == QUERIES_MAX
    with pytest.raises(TooManyQueries, match="1000 queries wait already"):
        worker.ask(lambda: None)
    given_up.cancel()
    go_on.set()
    await working
    assert answered == [True], "while the job went on"
    assert first.result() == worker.thread_id
    assert {type(each.exception()) for each in others} == {ZeroDivisionError}
    worker.close()
    for _ in range(2):
        with pytest.raises(StreamsNotRunning):
            worker.ask(lambda: None)


def test_positions_merge_to_the_later() -> None:
    first, second = Position({"t": {0: 5, 1: 1}}), Position({"t": {0: 3, 2: 2}, "u": {0: 0}})
    assert first.merge(second) == Position({"t": {0: 5, 1: 1, 2: 2}, "u": {0: 0}})
    assert list(PositionBound.at(second).missing(first, 0)) == [("u", 0, None)]
    assert list(PositionBound.unbounded().missing(Position(), 0)) == []
