"""Tasks that change hands: those that stay go on, those that move come back with their state.

Instances share an event loop and a broker, each with a state folder of its own. What would take long is held
up by an event: how a restore or a rebalance that lasts looks from outside.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka_client import BatchFetcher, BatchProducer, Client, Fetched, TopicPartition
from kafka_client.wire import encode_versioned
from kafka_client.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from streams import KafkaStreams, State, StateRestoreListener, StreamsBuilder, StreamsError, Topology
from streams.runtime.assignment.assignment import Rules
from streams.runtime.assignment.protocol import MemberState, StreamsProtocol
from streams.runtime.restore import restore
from streams.runtime.standbys import Standbys
from streams.runtime.task_id import TaskId
from streams.runtime.topics import TopicNames
from tests.streams.support.running import NewName, copy, make_topics, run, start
from tests.support import depth, java
from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

PARTITIONS = 4
GUARANTEES = depth.first(1, ["at_least_once", "exactly_once_v2"])
SETTINGS: dict[str, Any] = {"heartbeat_interval_ms": 50, "session_timeout_ms": 20_000}


@pytest.fixture(scope="module", params=["logd", pytest.param("kafka", marks=java.needs_kafka)])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`logd`, and, where it matters who coordinates the group, Apache Kafka too."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp(request.param)
        if request.param == "kafka":
            yield stack.enter_context(ApacheKafka(folder)).bootstrap
        else:
            yield stack.enter_context(LogdProcess(folder)).bootstrap


def counts(name: str, *, hang: threading.Event | None = None) -> Topology:
    """Counts per key; with ``hang``, the key "hang" takes until it is set."""

    def maybe_hang(key: str, value: int) -> None:
        if hang is not None and key == "hang":
            hang.wait(60)

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    events = builder.stream(f"{name}-in").peek(maybe_hang, name="SLOW-ONE")
    events.group_by_key().count(store="counts").to_stream().to(f"{name}-out")
    return builder.build()


async def send(bootstrap: str, name: str, partition: int, *keys: str) -> None:
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        records = [(7, key.encode(), bytes(8), ()) for key in keys]
        await (await producer.send(f"{name}-in", partition, records))


async def send_everywhere(bootstrap: str, name: str, *keys: str) -> None:
    for partition in range(PARTITIONS):
        await send(bootstrap, name, partition, *keys)


def counted(*apps: KafkaStreams) -> dict[tuple[str, TaskId], int]:
    """By key and task."""
    return {
        (key, id): count
        for app in apps
        for id, running in app._instance.loop.tasks.items()
        for key, count in running.task.stores["counts"].all()  # type: ignore[attr-defined]
    }


class Diary(StateRestoreListener):
    """A listener that notes restores by changelog partition."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.totals: dict[int, int] = {}

    def on_restore_start(
        self, tp: TopicPartition, store: str, starting_offset: int, ending_offset: int
    ) -> None:
        self.lines.append(f"{store}-{tp.partition} from {starting_offset} to {ending_offset}")

    def on_batch_restored(
        self, tp: TopicPartition, store: str, batch_end_offset: int, num_restored: int
    ) -> None:
        self.lines.append(f"{store}-{tp.partition} {num_restored} at {batch_end_offset}")

    def on_restore_end(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        self.totals[tp.partition] = total_restored
        self.lines.append(f"{store}-{tp.partition} done with {total_restored}")

    def on_restore_suspended(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        self.lines.append(f"{store}-{tp.partition} suspended at {total_restored}")


def hold_up_restores(monkeypatch: pytest.MonkeyPatch, partition: int) -> asyncio.Event:
    """Changelogs of that partition are not read before the event is set."""
    go_on, original = asyncio.Event(), restore.read_changelogs

    async def read(client: Client, restores: Any, **rest: Any) -> None:
        if any(tp.partition == partition for tp in restores):
            await go_on.wait()
        await original(client, restores, **rest)

    monkeypatch.setattr(restore, "read_changelogs", read)
    return go_on


# -- restores


@depth.deep
async def test_a_task_goes_on_while_another_is_restored(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, diary = new_name("beside"), Diary()
    await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": 1})
    await send(logd.bootstrap, name, 1, *"abc")
    async with start(counts(name), logd.bootstrap, name, tmp_path / "1") as app:
        await app.wait_until_caught_up()
    go_on = hold_up_restores(monkeypatch, 1)
    app = start(counts(name), logd.bootstrap, name, tmp_path / "2")
    app.add_restore_listener(diary)
    async with app:
        await until(lambda: len(app.tasks) == PARTITIONS - 1)  # They have nothing to restore.
        await send(logd.bootstrap, name, 0, *"xyy")
        await until(lambda: app.summary()["records_in"] == 3)
        assert app.state is State.REBALANCING
        assert app.summary()["restoring"] == {"0_1": {"restored": 0, "remaining": 3}}
        assert "counts-1 from 0 to 3" in diary.lines
        assert "counts-0 done with 0" in diary.lines
        go_on.set()
        await app.wait_until_caught_up()
        assert app.summary()["restoring"] == {}
        assert diary.lines[-2:] == ["counts-1 3 at 3", "counts-1 done with 3"]
        assert len(counted(app)) == 5


def let_restores_go_by_batches(monkeypatch: pytest.MonkeyPatch) -> dict[int, asyncio.Event]:
    """Restores read a batch at a time, and wait with each until its event is set; by partition."""
    waiting: dict[int, asyncio.Event] = {}

    class ByBatches(BatchFetcher):
        async def fetch(self, **limits: Any) -> list[Fetched]:
            (fetched,) = await super().fetch(max_records=1)
            go_on = waiting[fetched.tp.partition] = asyncio.Event()
            await go_on.wait()
            return [fetched]

    monkeypatch.setattr(restore, "BatchFetcher", ByBatches)
    return waiting


def test_restores_go_on_side_by_side_while_another_task_works(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restores wait neither for each other nor hold up the running task. Each batch is held until every
    restore has one and the running task has processed a record.
    """
    name, diary, rounds, restored = new_name("side-by-side"), Diary(), range(3), range(1, PARTITIONS)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": 1})
        async with start(counts(name), logd.bootstrap, name, tmp_path / "1") as app:
            for _ in rounds:  # A commit each, which is a batch of each changelog.
                for partition in restored:
                    await send(logd.bootstrap, name, partition, "a", "b")
                await app.wait_until_caught_up()
        waiting = let_restores_go_by_batches(monkeypatch)
        app = start(counts(name), logd.bootstrap, name, tmp_path / "2")
        app.add_restore_listener(diary)
        async with app:
            for done in rounds:
                await until(lambda: waiting.keys() == set(restored))
                await send(logd.bootstrap, name, 0, "x")
                await until(lambda done=done: app.summary()["records_in"] == done + 1)  # type: ignore[misc]
                how_far = {"restored": 2 * done, "remaining": 2 * (len(rounds) - done)}
                assert app.summary()["restoring"] == {f"0_{partition}": how_far for partition in restored}
                for partition in restored:
                    waiting.pop(partition).set()
            await app.wait_until_caught_up()
            assert counted(app)["a", TaskId(0, 1)] == counted(app)["x", TaskId(0, 0)] == len(rounds)
        batches = [line for line in diary.lines if " at " in line]
        for done in rounds:
            round_of_batches = batches[done * len(restored) : (done + 1) * len(restored)]
            assert sorted(round_of_batches) == [
                f"counts-{partition} 2 at {2 * done + 2}" for partition in restored
            ]

    run(case, 30)


async def test_a_restore_that_is_broken_off_is_told_and_gone_on_with(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, diary = new_name("broken"), Diary()
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    await send(logd.bootstrap, name, 0, *"abc")
    async with start(counts(name), logd.bootstrap, name, tmp_path / "1") as app:
        await app.wait_until_caught_up()
    hold_up_restores(monkeypatch, 0)
    app = start(counts(name), logd.bootstrap, name, tmp_path / "2")
    app.add_restore_listener(diary)
    async with app:
        await until(lambda: bool(diary.lines))
    assert diary.lines == ["counts-0 from 0 to 3", "counts-0 suspended at 0"]


# -- rebalances


def hold_up_rebalances(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event; the leader assigns no tasks while it is cleared."""
    go_on, original = asyncio.Event(), StreamsProtocol._assign
    go_on.set()

    async def assign(self: StreamsProtocol, members: Any) -> Any:
        await go_on.wait()
        return await original(self, members)

    monkeypatch.setattr(StreamsProtocol, "_assign", assign)
    return go_on


@pytest.mark.parametrize("guarantee", GUARANTEES)
async def test_tasks_that_stay_go_on_through_a_rebalance(
    bootstrap: str, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    name, go_on = new_name("cooperative"), hold_up_rebalances(monkeypatch)
    settings = SETTINGS | {"processing_guarantee": guarantee}
    await make_topics(bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": 1})
    topology = counts(name)
    async with start(topology, bootstrap, name, tmp_path / "1", **settings) as first:
        await send_everywhere(bootstrap, name, "a")
        await first.wait_until_caught_up()
        before, created = dict(first._instance.loop.tasks), first._instance.loop.thread_metrics.tasks_created
        go_on.clear()
        async with start(topology, bootstrap, name, tmp_path / "2", **settings) as second:
            await until(lambda: first._instance.member.is_joining)
            await send_everywhere(bootstrap, name, "a", "b")
            await until(lambda: first.summary()["records_in"] == 3 * PARTITIONS)
            assert first._instance.member.is_joining, "all of that was during the rebalance"
            assert first.state is State.RUNNING
            go_on.set()
            await until(lambda: len(second.tasks) == 2 and first.state is State.RUNNING)
            assert {id: first._instance.loop.tasks[id] for id in first.tasks}.items() <= before.items()
            assert len(first.tasks) == 2
            assert first._instance.loop.thread_metrics.tasks_created == created
            await send_everywhere(bootstrap, name, "a")
            await first.wait_until_caught_up()
            await second.wait_until_caught_up()
            both = counted(first, second)
        await until(lambda: len(first.tasks) == PARTITIONS)
        assert first._instance.loop.thread_metrics.tasks_created == created + 2
        await first.wait_until_caught_up()
        assert counted(first) == both
        tasks = [TaskId(0, partition) for partition in range(PARTITIONS)]
        assert both == {("a", id): 3 for id in tasks} | {("b", id): 1 for id in tasks}


@depth.deep
async def test_a_static_member_that_is_back_in_time_costs_the_others_nothing(
    bootstrap: str, tmp_path: Path, new_name: NewName
) -> None:
    name, diary = new_name("static"), Diary()

    def instance(number: int) -> KafkaStreams:
        settings = SETTINGS | {"group_instance_id": f"instance-{number}"}
        return start(counts(name), bootstrap, name, tmp_path / str(number), **settings)

    await make_topics(bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": 1})
    await send_everywhere(bootstrap, name, *"abc")
    async with instance(1) as first:
        async with instance(2) as second:
            await until(lambda: len(first.tasks) == len(second.tasks) == 2)
            await second.wait_until_caught_up()
            tasks, generation = second.tasks, second._instance.member.generation
            running = dict(first._instance.loop.tasks)
        again = instance(2)
        again.add_restore_listener(diary)
        async with again:
            await again.wait_until_caught_up()
            assert again.tasks == tasks
            assert set(diary.totals.values()) == {0}, "its own disk has it all"
            assert again._instance.member.generation == first._instance.member.generation == generation
            assert first._instance.loop.tasks == running


# -- standbys and warm-ups


def standbys_are_level(app: KafkaStreams, count: int, records: int) -> bool:
    """Return True if the application has so many standby tasks, which have applied so many records."""
    standbys = app._instance.standbys
    tasks = standbys.tasks.values()
    return len(tasks) == count and standbys.updated >= records and not any(t.remaining for t in tasks)


@depth.deep
@pytest.mark.parametrize("guarantee", GUARANTEES)
async def test_a_standby_takes_over_with_nothing_left_to_restore(
    bootstrap: str, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    name, diary = new_name("standby"), Diary()
    settings = SETTINGS | {"num_standby_replicas": 1, "processing_guarantee": guarantee}
    await make_topics(bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": 1})
    topology = counts(name)
    second = start(topology, bootstrap, name, tmp_path / "2", **settings)
    second.add_restore_listener(diary)
    async with start(topology, bootstrap, name, tmp_path / "1", **settings) as first, second:
        await until(lambda: len(first.tasks) == len(second.tasks) == 2)
        await until(lambda: second.standby_tasks == first.tasks and first.standby_tasks == second.tasks)
        await send_everywhere(bootstrap, name, *"abcdefgh")
        await first.wait_until_caught_up()
        await second.wait_until_caught_up()
        await until(lambda: standbys_are_level(second, 2, 16))
        assert second.summary()["standby_tasks"] == [str(id) for id in first.tasks]
        tasks, before = first.tasks, counted(first)
        diary.totals.clear()
        await first.close()
        await until(lambda: len(second.tasks) == PARTITIONS)
        assert diary.totals == {id.partition: 0 for id in tasks}
        assert before.items() <= counted(second).items()


async def test_a_standby_applies_nothing_that_is_not_committed(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby applies only committed records: those after the last commit may be of a commit that fails."""
    name, settings = new_name("behind"), SETTINGS | {"num_standby_replicas": 1}
    rounds, original = 0, Standbys._extend

    async def extend(self: Standbys) -> None:
        nonlocal rounds
        rounds += 1
        await original(self)

    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    monkeypatch.setattr(Standbys, "_extend", extend)
    topology = counts(name)
    async with (
        start(topology, logd.bootstrap, name, tmp_path / "1", **settings) as first,
        start(topology, logd.bootstrap, name, tmp_path / "2", **settings) as second,
    ):
        await until(lambda: len(first.tasks + second.tasks) == 1)
        keeper = second if first.tasks else first
        await send(logd.bootstrap, name, 0, "a", "b")
        await until(lambda: standbys_are_level(keeper, 1, 2))
        async with Client(logd.bootstrap) as client, BatchProducer(client) as producer:
            record = (7, b"c", bytes(8), ())
            await (await producer.send(f"{name}-counts-changelog", 0, [record]))
        before = rounds
        await until(lambda: rounds > before + 5)
        standby = keeper._instance.standbys.tasks[TaskId(0, 0)]
        assert [key for key, _ in standby.stores["counts"].backend.scan()] == [b"a", b"b"]
        assert standby.checkpoints == {"counts": 2}


@depth.deep
@pytest.mark.parametrize("guarantee", GUARANTEES)
async def test_a_task_runs_on_until_its_state_is_warmed_up_elsewhere(
    bootstrap: str, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    """KIP-441, without waiting for the next probing rebalance: the instance says when it is near."""
    name, diary = new_name("warm"), Diary()
    settings = SETTINGS | {"acceptable_recovery_lag": 4, "processing_guarantee": guarantee}
    await make_topics(bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": 1})
    topology = counts(name)
    async with start(topology, bootstrap, name, tmp_path / "1", **settings) as first:
        await send_everywhere(bootstrap, name, *"abcdefgh")
        await first.wait_until_caught_up()
        second = start(topology, bootstrap, name, tmp_path / "2", **settings)
        second.add_restore_listener(diary)
        second.pause()  # Its standbys rest: as if there were more to read.
        async with second:
            await until(lambda: len(second.standby_tasks) == 2)
            assert (len(first.tasks), second.tasks) == (PARTITIONS, [])
            await send_everywhere(bootstrap, name, "a")
            await first.wait_until_caught_up()
            second.resume()
            await until(lambda: len(second.tasks) == 2 and second.state is State.RUNNING)
            assert len(first.tasks) == 2
            assert max(diary.totals.values()) <= 4, "what was committed while it moved"
            await send_everywhere(bootstrap, name, "a")
            await first.wait_until_caught_up()
            await second.wait_until_caught_up()
            totals = counted(first, second)
    assert sum(totals.values()) == PARTITIONS * 10
    assert {count for (key, _), count in totals.items() if key == "a"} == {3}


@depth.deep
async def test_a_probing_rebalance_finds_state_that_is_near_enough(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Nobody says that it is: an instance that has it on its disk comes back."""
    name = new_name("probing")
    settings = SETTINGS | {"acceptable_recovery_lag": 0, "probing_rebalance_interval_ms": 200}
    await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": 1})
    topology = counts(name)
    async with start(topology, logd.bootstrap, name, tmp_path / "1", **settings) as first:
        await send_everywhere(logd.bootstrap, name, *"abc")
        await first.wait_until_caught_up()
        second = start(topology, logd.bootstrap, name, tmp_path / "2", **settings)
        async with second:
            second._instance.standbys._on_warm = lambda: None
            await until(lambda: len(second.tasks) == 2 and len(first.tasks) == 2)


# -- slow code, and code that hangs


@depth.deep
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_an_instance_whose_code_hangs_leaves_and_says_where(
    bootstrap: str, tmp_path: Path, new_name: NewName, caplog: pytest.LogCaptureFixture, guarantee: str
) -> None:
    name, end = new_name("hangs"), threading.Event()
    settings = SETTINGS | {"max_poll_interval_ms": 1500, "processing_guarantee": guarantee}

    async def case() -> None:
        await make_topics(bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": 1})
        first = start(counts(name, hang=end), bootstrap, name, tmp_path / "1", **settings)
        async with first, start(counts(name), bootstrap, name, tmp_path / "2", **settings) as second:
            try:
                await until(lambda: len(first.tasks) == len(second.tasks) == 2)
                await send_everywhere(bootstrap, name, "a")
                await first.wait_until_caught_up()
                await send(bootstrap, name, first.tasks[0].partition, "b", "hang", "c")
                await until(lambda: len(second.tasks) == PARTITIONS and second.state is State.RUNNING)
                await second.wait_until_caught_up()
                assert sum(counted(second).values()) == PARTITIONS + 3
            finally:
                end.set()
            await until(lambda: len(first.tasks) == len(second.tasks) == 2)
            await send_everywhere(bootstrap, name, "a")
            await first.wait_until_caught_up()
            await second.wait_until_caught_up()
            assert sum(counted(first, second).values()) == 2 * PARTITIONS + 3, "nothing counts twice"

    run(case)
    messages = [each.getMessage() for each in caplog.records if "max.poll.interval.ms" in each.getMessage()]
    assert len(messages) == 1
    assert messages[0].startswith("node SLOW-ONE (")
    assert "in wait) has not come back within max.poll.interval.ms (1500 ms)" in messages[0]


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_revoke_waits_for_the_record_in_hand_and_for_no_other(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    """Code that turned slow had all records of the run still before it: 200 of them, where it was fast."""
    name, started_records, go_on = new_name("in-hand"), threading.Semaphore(0), threading.Semaphore(0)
    settings = SETTINGS | {"processing_guarantee": guarantee}
    values = list[str]()

    def slow(key: str, value: int) -> None:
        values.append(key)
        started_records.release()
        assert go_on.acquire(timeout=30)

    def topology() -> Topology:
        builder = StreamsBuilder(key_serde=str, value_serde=int)
        events = builder.stream(f"{name}-in").peek(slow)
        events.group_by_key().count(store="counts").to_stream().to(f"{name}-out")
        return builder.build()

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await send(logd.bootstrap, name, 0, *"abcdef")
        try:
            async with start(topology(), logd.bootstrap, name, tmp_path / "1", **settings) as app:
                await until(lambda: started_records.acquire(blocking=False))
                revoking = asyncio.create_task(app._instance.loop.revoked())
                await asyncio.sleep(0)
                go_on.release()
                await revoking
                assert values == ["a"]
                task = app._instance.loop.tasks[TaskId(0, 0)].task
                assert task.committed == {TopicPartition(f"{name}-in", 0): 1}
        finally:
            go_on.release(100)
        async with start(topology(), logd.bootstrap, name, tmp_path / "2", **settings) as app:
            await app.wait_until_caught_up()
            assert values == [*"abcdef"], "each was processed once"
            assert counted(app) == {(key, TaskId(0, 0)): 1 for key in "abcdef"}

    run(case, 40)


async def test_a_paused_instance_keeps_its_tasks_and_processes_nothing(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("paused")
    await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": 1})
    await send_everywhere(logd.bootstrap, name, "a")
    async with copy(logd.bootstrap, name, tmp_path, poll_ms=20) as app:
        await app.wait_until_caught_up()
        app.pause()
        await send_everywhere(logd.bootstrap, name, "a")
        inputs = app._instance.loop.inputs
        await until(lambda: sum(map(len, inputs.queues.values())) == PARTITIONS)
        assert app.is_paused
        assert app.state is State.RUNNING
        assert app.summary()["records_in"] == PARTITIONS
        app.resume()
        await app.wait_until_caught_up()
        assert app.summary()["records_in"] == 2 * PARTITIONS


# -- versions


def protocol(name: str) -> StreamsProtocol:
    topology = counts(name)
    unused: Any = None
    return StreamsProtocol(
        unused,
        topology,
        TopicNames(name, topology),
        replication_factor=1,
        rules=Rules(),
        probing_interval_ms=1000,
        state=lambda: MemberState(frozenset({TaskId(0, 1)}), frozenset({TaskId(0, 2)}), {TaskId(0, 2): 7}),
    )


def test_what_a_member_says_of_itself_is_read_by_the_leader() -> None:
    ours = protocol("app")
    assert ours._read_state("m", ours.metadata()) == ours._state()
    assert ours.metadata() != ours.metadata(), "or the coordinator would see no reason for a rebalance"


@pytest.mark.parametrize(
    ("user_data", "error"),
    [
        (b'{"running":["0_0"],"stored":[]}', "shares tasks out by version 1 of the protocol"),
        (b'{"v":3,"active":[]}', "version 3 of the protocol, this one by version 2: stop all instances"),
        (b"\x00\x00\x00\x0b", "is no instance of Millstream"),
    ],
)
def test_an_instance_of_another_release_is_told_apart(user_data: bytes, error: str) -> None:
    ours = protocol("app")
    subscription = encode_versioned(ConsumerProtocolSubscription(topics=["app-in"], user_data=user_data), 1)
    with pytest.raises(StreamsError, match=f"(?s)member m of application 'app'.*{error}"):
        ours.assign({"m": subscription})
