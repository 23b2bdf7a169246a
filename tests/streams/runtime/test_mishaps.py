"""An application in trouble: topics that change, signals at bad moments, brokers that stay away."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, BatchProducer, Client
from kafka_client.errors import ConnectionClosed
from kafka_client.group.membership import Membership
from streams import Materialized, State, StreamsBuilder, StreamsError, Topology
from streams.errors import StateError
from streams.runtime.commit.output import Output
from streams.runtime.folder import StateFolder
from streams.runtime.opener import TaskOpener
from streams.runtime.threads.worker import Worker
from tests.streams.support.counting import read_last
from tests.streams.support.running import NewName, copy, make_topics, produce, run, start
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

# -- inputs that change


async def test_an_input_made_anew_is_read_from_its_start(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Its committed position lies beyond its end; once the application runs meanwhile, once it does not."""
    name = new_name("again")

    async def remake(*keys: bytes) -> None:
        async with Client(logd.bootstrap) as client:
            await Admin(client).delete_topics([f"{name}-in"])
        await make_topics(logd.bootstrap, **{f"{name}-in": 1})
        await produce(logd.bootstrap, f"{name}-in", *((key, bytes(8)) for key in keys))

    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    await produce(logd.bootstrap, f"{name}-in", *((b"%d" % n, bytes(8)) for n in range(9)))
    async with copy(logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
        await remake(b"a", b"b", b"c")
        await until(lambda: app.metrics()["sink"].process_total == 12)
        await app.wait_until_caught_up()
    await remake(b"d")
    async with copy(logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
        assert app.summary()["records_in"] == 1
    assert set(b"abcd") <= {key[0] for key in await read_last(logd.bootstrap, f"{name}-out", partitions=1)}


async def test_state_outlives_its_inputs(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    """State is kept when an input is created again, and when another topology sends the store's records
    another way.
    """
    name = new_name("outlives")

    def counts(*, mapped: bool) -> Topology:
        builder = StreamsBuilder(key_serde=str, value_serde=int)
        stream = builder.stream(f"{name}-in")
        if mapped:
            stream = stream.map(lambda key, value: (key, value))
        stream.group_by_key().count(store="counts")
        return builder.build()

    async def counted(folder: str, *, mapped: bool = False) -> list[Any]:
        await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)), (b"b", bytes(8)))
        async with start(counts(mapped=mapped), logd.bootstrap, name, tmp_path / folder) as app:
            await app.wait_until_caught_up()
            return [dict(store.all()) for store in app.stores("counts")]

    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    assert await counted("1") == [{"a": 1, "b": 1}]
    async with Client(logd.bootstrap) as client:
        await Admin(client).delete_topics([f"{name}-in"])
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    assert await counted("1") == [{"a": 2, "b": 2}]
    assert await counted("lost", mapped=True) == [{"a": 3, "b": 3}]


async def test_state_from_before_a_reset_does_not_count(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Reset and run elsewhere, the application has a new changelog that is longer than what this folder's
    state was of the old one: it was taken for the new one's beginning.
    """
    name = new_name("reset")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").group_by_key().count(store="counts")

    async def counted(folder: str) -> list[Any]:
        async with start(builder.build(), logd.bootstrap, name, tmp_path / folder) as app:
            await app.wait_until_caught_up()
            return [dict(store.all()) for store in app.stores("counts")]

    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)))
    assert await counted("stale") == [{"a": 1}]
    await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)), (b"b", bytes(8)))
    async with Client(logd.bootstrap) as client:
        await Admin(client).delete_groups([name])
        await Admin(client).delete_topics([f"{name}-counts-changelog"])
    assert await counted("fresh") == [{"a": 2, "b": 1}]
    assert await counted("stale") == [{"a": 2, "b": 1}]


async def test_new_partitions_of_an_input_are_read(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("more")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    async with (
        copy(logd.bootstrap, name, tmp_path, metadata_max_age_ms=50) as app,
        Client(logd.bootstrap) as client,
        BatchProducer(client) as producer,
    ):
        await app.wait_until_caught_up()
        await Admin(client).create_partitions({f"{name}-in": 3})
        await producer.send(f"{name}-in", 2, [(7, b"late", bytes(8), ())])
        await until(lambda: app.summary()["records_in"] == 1)
        assert len(app.tasks) == 3


async def test_new_partitions_end_an_application_with_state(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Its keys would be in other partitions from now on: it says so, and does not go on without them."""
    name = new_name("keyed")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").group_by_key().count(store="counts")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    with pytest.raises(StreamsError, match=r"counts-changelog' has 1 partitions, the inputs need 2"):
        async with (
            start(builder.build(), logd.bootstrap, name, tmp_path, metadata_max_age_ms=50) as app,
            Client(logd.bootstrap) as client,
        ):
            await app.wait_until_caught_up()
            await Admin(client).create_partitions({f"{name}-in": 2})
            await app.wait_ended()


# -- commits at bad moments


async def test_what_an_exception_leaves_half_done_is_not_committed(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """A record that was counted, and then makes the next node fail during a rebalance, is not committed."""
    name = new_name("half")
    inside, go_on = threading.Event(), threading.Event()

    def topology(fails: bool) -> Topology:
        def fail(key: str, count: int) -> None:
            if fails and count == 3:
                inside.set()
                go_on.wait(30)
                raise RuntimeError("of the user's")

        builder = StreamsBuilder(key_serde=str, value_serde=int)
        counts = builder.stream(f"{name}-in").group_by_key()
        counts.count(store=Materialized(name="counts", caching=False)).to_stream().foreach(fail)
        return builder.build()

    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    await produce(logd.bootstrap, f"{name}-in", *[(b"a", bytes(8))] * 5)
    with pytest.raises(StreamsError, match=r"node KSTREAM-FOREACH-.*RuntimeError: of the user's"):
        async with start(topology(True), logd.bootstrap, name, tmp_path) as app:
            await until(inside.is_set)
            rebalancing = asyncio.create_task(app._instance.loop.revoked())
            await asyncio.sleep(0)
            go_on.set()
            await rebalancing
            await app.wait_ended()
    async with start(topology(False), logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
        assert dict(app.stores("counts")[0].all()) == {"a": 5}  # type: ignore[attr-defined]


@deep
def test_at_least_once_a_revoke_is_over_in_time(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow code has made output that is not acknowledged: it is given up, and its input is read again."""
    name, acknowledged = new_name("in-time"), asyncio.Event()
    started, slow = threading.Event(), threading.Event()
    original = Output.settle

    async def settle(self: Output, sent: Any) -> None:
        await acknowledged.wait()
        await original(self, sent)

    def wait(key: str, value: int) -> None:
        started.set()
        assert slow.wait(30)

    def topology() -> Topology:
        builder = StreamsBuilder(key_serde=str, value_serde=int)
        events = builder.stream(f"{name}-in").peek(wait)
        events.group_by_key().count(store="counts").to_stream().to(f"{name}-out")
        return builder.build()

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)))
        monkeypatch.setattr(Output, "settle", settle)
        app = start(topology(), logd.bootstrap, name, tmp_path, max_poll_interval_ms=700)
        async with app:
            await until(started.is_set)
            revoking = asyncio.create_task(app._instance.loop.revoked())
            await asyncio.sleep(0)
            slow.set()
            try:
                async with asyncio.timeout(20):
                    await revoking
                assert not app.tasks, "given up"
            finally:
                acknowledged.set()
            await until(lambda: bool(app.tasks))
            await app.wait_until_caught_up()
            assert dict(app.stores("counts")[0].all()) == {"a": 1}  # type: ignore[attr-defined]
        assert await read_last(logd.bootstrap, f"{name}-out", partitions=1) == {b"a": (1).to_bytes(8, "big")}

    run(case, 40)


async def test_output_that_waits_for_room_at_the_end_is_not_lost(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Input is not committed without its output if the signal comes while the producer's buffer is full."""
    name = new_name("room")
    original, full, drained = BatchProducer.send, asyncio.Event(), asyncio.Event()

    async def send(self: BatchProducer, topic: str, *rest: Any) -> Any:
        if topic.startswith(name) and topic.endswith("-out"):
            full.set()
            await drained.wait()
        return await original(self, topic, *rest)

    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)), (b"b", bytes(8)))
    monkeypatch.setattr(BatchProducer, "send", send)
    app = copy(logd.bootstrap, name, tmp_path)
    await app.start()
    await full.wait()
    closing = asyncio.create_task(app.close())
    await asyncio.wait([closing], timeout=0.05)
    drained.set()
    await closing
    monkeypatch.undo()
    async with copy(logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    assert set(await read_last(logd.bootstrap, f"{name}-out", partitions=1)) == {b"a", b"b"}


@deep
@pytest.mark.parametrize(("inputs", "others"), [("ab", "a"), ("a", "b")])
async def test_an_instance_with_another_topology_says_so(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, inputs: str, others: str
) -> None:
    """By the tasks' numbers alone it would not be noticed: half of each input would stay unread."""
    name = new_name("other")

    def topology(inputs: str) -> Topology:
        builder = StreamsBuilder(key_serde=str, value_serde=int)
        for each in inputs:
            builder.stream(f"{name}-{each}").foreach(lambda key, value: None)
        return builder.build()

    await make_topics(logd.bootstrap, **{f"{name}-a": 2, f"{name}-b": 2})
    settings: dict[str, Any] = {"heartbeat_interval_ms": 50}
    async with start(topology(inputs), logd.bootstrap, name, tmp_path / "1", **settings) as first:
        await first.wait_until_caught_up()
        with pytest.raises(StreamsError, match=f"application '{name}' runs another topology"):
            async with start(topology(others), logd.bootstrap, name, tmp_path / "2") as second:
                await second.wait_ended()
        await until(lambda: len(first.tasks) == 2 * len(inputs))


# -- restores


async def test_a_restore_that_a_broker_breaks_off_is_begun_again(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, original, errors = new_name("retry"), TaskOpener.open, [ConnectionClosed("gone"), None]

    async def open_(self: TaskOpener, *args: Any) -> Any:
        if errors and (error := errors.pop(0)) is not None:
            raise error
        return await original(self, *args)

    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)))
    monkeypatch.setattr(TaskOpener, "open", open_)
    async with copy(logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
        assert app.summary()["records_in"] == 1


@deep
async def test_a_restore_is_broken_off_by_the_end(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, restoring = new_name("endless"), asyncio.Event()

    async def open_(self: TaskOpener, *args: Any) -> Any:
        restoring.set()
        await asyncio.Event().wait()

    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    monkeypatch.setattr(TaskOpener, "open", open_)
    async with copy(logd.bootstrap, name, tmp_path) as app:
        await restoring.wait()
    assert app.state is State.NOT_RUNNING


async def test_the_worker_is_waited_for_however_often_it_is_cancelled() -> None:
    """The worker's work has ended before `run` returns, however often it is cancelled: stores are closed
    after it.
    """
    inside, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        inside.set()
        go_on.wait(30)
        ended.set()

    worker = Worker()
    running = asyncio.create_task(worker.run(work))
    await until(inside.is_set)
    for _ in range(3):
        running.cancel()
        await asyncio.wait([running], timeout=0.01)
    assert not running.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()
    worker.close()


# -- starts and ends


@deep
async def test_a_state_folder_deleted_under_an_application_costs_a_restore(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("deleted")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").group_by_key().count(store="counts")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    for count in (1, 2):
        await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)))
        async with start(builder.build(), logd.bootstrap, name, tmp_path) as app:
            await app.wait_until_caught_up()
            assert dict(app.stores("counts")[0].all()) == {"a": count}  # type: ignore[attr-defined]
            shutil.rmtree(tmp_path)
    assert app.state is State.NOT_RUNNING


async def test_a_coordinator_that_does_not_answer_holds_no_close_up(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_name("leave")

    async def leave(self: Membership, reason: str) -> None:
        await asyncio.Event().wait()

    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    async with copy(logd.bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
        monkeypatch.setattr(Membership, "leave", leave)
        monkeypatch.setattr("kafka_client.group.group.LEAVE_SECONDS", 0.01)
    assert app.state is State.NOT_RUNNING


async def test_a_start_without_a_broker_is_ended_by_a_signal(tmp_path: Path) -> None:
    """Well before the client's own patience is over."""
    stop = asyncio.Event()
    connections: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        stop.set()

    silent = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    app = copy(f"127.0.0.1:{port}", "early", tmp_path)
    async with asyncio.timeout(10):
        await app.run_until(stop)
    assert app.state is State.CREATED
    for writer in connections:
        writer.close()
        await writer.wait_closed()
    silent.close()


def test_a_state_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match=f"state.dir {tmp_path}/file/x cannot be used: .*Not a directory"):
        StateFolder(str(tmp_path / "file" / "x"), "app")
