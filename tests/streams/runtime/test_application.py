"""`KafkaStreams` against a broker: the life of an application, rebalances, restores, and what stops it."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client, NewTopic, TopicPartition
from kafka_client.errors import ConfigError, KafkaError
from streams import (
    ErrorContext,
    ErrorResponse,
    KafkaStreams,
    Processor,
    Record,
    State,
    StreamsBuilder,
    StreamsConfig,
    StreamsError,
    TopologyError,
    log_and_continue,
)
from streams.errors import StateError, StateFolderLocked
from tests.streams.support import counting
from tests.streams.support.counting import application, contents, expected, make_events, prepare
from tests.streams.support.running import copy, make_topics, produce, run
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until


def test_states_and_counters(logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]) -> None:
    name = new_name("life")
    states: list[State] = []

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)), (None, bytes(8)))
        app = copy(logd.bootstrap, name, tmp_path)
        app.add_state_listener(lambda new, old: states.append(new))
        assert app.state is State.CREATED
        async with app:
            await app.wait_until_caught_up()
            assert await app.lag() == 0
            assert app.summary() == {
                "tasks": ["0_0"],
                "standby_tasks": [],
                "restoring": {},
                "records_in": 2,
                "records_out": 2,
                "dropped_records": 0,
                "late_records": 0,
            }
            await produce(logd.bootstrap, f"{name}-in", (b"b", bytes(8)))
            await app.wait_until_caught_up()
            assert app.metrics()["sink"].process_total == 3

    run(case)
    assert states == [
        State.REBALANCING,
        State.RUNNING,
        *states[2:-2],
        State.PENDING_SHUTDOWN,
        State.NOT_RUNNING,
    ]


@deep
async def test_two_instances_share_the_tasks(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """Counts move with the tasks: one instance starts, another joins, the first leaves."""
    prefix = new_name("share")
    events = make_events(2000)
    await prepare(logd.bootstrap, prefix, events[:1000])
    first = application(logd.bootstrap, prefix, str(tmp_path / "1"), group_instance_id=None)
    second = application(logd.bootstrap, prefix, str(tmp_path / "2"), group_instance_id=None)
    async with second:
        async with first:
            await until(lambda: len(first.tasks) == len(second.tasks) == 1)
            await asyncio.gather(first.wait_until_caught_up(), second.wait_until_caught_up())
            hours = Counter(contents(first)[0])
            hours.update(contents(second)[0])
            assert hours == expected(events[:1000])[0]
        await until(lambda: len(second.tasks) == 2)
        await second.wait_until_caught_up()
        assert contents(second)[0] == dict(expected(events[:1000])[0])


async def test_state_is_restored_where_there_is_none(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    prefix = new_name("restore")
    events = make_events(2000)
    await prepare(logd.bootstrap, prefix, events)
    async with application(logd.bootstrap, prefix, str(tmp_path)) as app:
        await app.wait_until_caught_up()
    shutil.rmtree(tmp_path)
    async with application(logd.bootstrap, prefix, str(tmp_path)) as app:
        await app.wait_until_caught_up()
        assert app.summary()["records_in"] == 0
        assert contents(app) == (dict(expected(events)[0]), expected(events)[1])


@deep
async def test_a_changelog_that_lost_its_start_is_restored_from_what_is_there(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    prefix = new_name("truncated")
    events = make_events(500)
    await prepare(logd.bootstrap, prefix, events)
    async with application(logd.bootstrap, prefix, str(tmp_path)) as app:
        await app.wait_until_caught_up()
    shutil.rmtree(tmp_path)
    changelog = f"{prefix}-app-totals-changelog"
    async with Client(logd.bootstrap) as client:
        # Brokers refuse to delete records of a compacted topic.
        deletable = {"cleanup.policy": "delete"}
        await Admin(client).incremental_alter_configs(changelog, deletable)
        await Admin(client).delete_records({TopicPartition(changelog, p): 50 for p in range(2)})
    async with application(logd.bootstrap, prefix, str(tmp_path)) as app:
        await app.wait_until_caught_up()
        totals = contents(app)[1]
        assert totals.items() < expected(events)[1].items()
        assert contents(app)[0] == dict(expected(events)[0])


async def test_a_changelog_that_lost_its_end_says_what_to_do(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    prefix = new_name("anew")
    changelog = f"{prefix}-app-totals-changelog"
    await prepare(logd.bootstrap, prefix, make_events(100))
    async with application(logd.bootstrap, prefix, str(tmp_path)) as app:
        await app.wait_until_caught_up()
    async with Client(logd.bootstrap) as client:
        await Admin(client).delete_topics([changelog])
        await Admin(client).create_topics([NewTopic(changelog, counting.PARTITIONS, 1)])
    app = application(logd.bootstrap, prefix, str(tmp_path))
    with pytest.raises(StreamsError, match="reset the application") as caught:
        async with app:
            await app.wait_until_caught_up()
    assert isinstance(caught.value.__cause__, StateError)
    assert app.state is State.ERROR


async def test_the_state_folder_is_locked(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    name = new_name("lock")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    async with copy(logd.bootstrap, name, tmp_path):
        with pytest.raises(StateFolderLocked, match=f"another process, {os.getpid()}: end that one, or"):
            await copy(logd.bootstrap, name, tmp_path).start()
    async with copy(logd.bootstrap, name, tmp_path):
        pass


@deep
@pytest.mark.parametrize("missing", ["in", "out"])
async def test_a_missing_topic_stops_the_start(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str], missing: str
) -> None:
    name = new_name("missing")
    await make_topics(logd.bootstrap, **{f"{name}-{each}": 1 for each in ("in", "out") if each != missing})
    with pytest.raises((TopologyError, KafkaError), match=f"{name}-{missing}"):
        await copy(logd.bootstrap, name, tmp_path).start()


async def test_a_bad_record_ends_the_application_unless_it_may_go_on(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    name = new_name("bad")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    await produce(logd.bootstrap, f"{name}-in", (b"a", b"bad"), (b"b", bytes(8)))
    app = copy(logd.bootstrap, name, tmp_path)
    with pytest.raises(StreamsError, match="expected 8 bytes"):
        async with app:
            await app.wait_until_caught_up()
    assert app.state is State.ERROR
    handler = {"deserialization_exception_handler": log_and_continue}
    async with copy(logd.bootstrap, name, tmp_path, **handler) as app:
        await app.wait_until_caught_up()
        assert app.summary()["records_in"] == 1
        assert app.summary()["dropped_records"] == 1


@deep
async def test_topics_chosen_for_records(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """Chosen topics are looked up at their first record; a missing one ends the application."""
    name = new_name("chosen")
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream(f"{name}-in").to(
        lambda key, value, context: f"{name}-{value}", partitioner=lambda *args: args[3] - 1
    )
    settings: dict[str, Any] = {
        "application_id": name,
        "bootstrap_servers": logd.bootstrap,
        "state_dir": str(tmp_path),
        "errors_dead_letter_queue_topic_name": f"{name}-dead",
        "processing_exception_handler": log_and_continue,
    }
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-a": 1, f"{name}-b": 3})
    await produce(logd.bootstrap, f"{name}-in", (b"1", b"a"), (b"2", b"b"))
    with pytest.raises(TopologyError, match="an output topic does not exist"):
        async with KafkaStreams(builder.build(), **settings):
            pass
    await make_topics(logd.bootstrap, **{f"{name}-dead": 1})
    async with KafkaStreams(builder.build(), **settings) as app:
        await app.wait_until_caught_up()
    assert set(await counting.read_last(logd.bootstrap, f"{name}-a", partitions=1)) == {b"1"}
    assert set(await counting.read_last(logd.bootstrap, f"{name}-b", partitions=3)) == {b"2"}
    await produce(logd.bootstrap, f"{name}-in", (b"3", b"gone"))
    with pytest.raises(StreamsError, match=f"topic '{name}-gone', chosen for a record, does not exist"):
        async with KafkaStreams(builder.build(), **settings) as app:
            await app.wait_until_caught_up()


async def test_dead_letters(logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]) -> None:
    name = new_name("dead")
    settings: dict[str, Any] = {
        "deserialization_exception_handler": log_and_continue,
        "errors_dead_letter_queue_topic_name": f"{name}-dead",
    }
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1, f"{name}-dead": 2})
    await produce(logd.bootstrap, f"{name}-in", (b"a", b"bad"), (b"b", bytes(8)))
    async with copy(logd.bootstrap, name, tmp_path, **settings) as app:
        await app.wait_until_caught_up()
        assert app.summary()["dropped_records"] == 1
    assert await counting.read_last(logd.bootstrap, f"{name}-dead", partitions=2) == {b"a": b"bad"}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
async def test_a_record_too_large_to_send(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str], guarantee: str
) -> None:
    name = new_name("large")
    builder = StreamsBuilder(key_serde=str, value_serde=bytes)
    builder.stream(f"{name}-in").map_values(lambda value: value * 1000).to(f"{name}-out", value_serde=bytes)
    settings: dict[str, Any] = {
        "application_id": name,
        "bootstrap_servers": logd.bootstrap,
        "state_dir": str(tmp_path),
        "max_request_size": 10_000,
        "processing_guarantee": guarantee,
    }
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1, f"{name}-dead": 1})
    await produce(logd.bootstrap, f"{name}-in", (b"a", b"x"), (b"b", b"far too large"), (b"c", b"y"))
    with pytest.raises(StreamsError, match="not accepted"):
        async with KafkaStreams(builder.build(), **settings) as app:
            await app.wait_until_caught_up()
    settings["production_exception_handler"] = set_aside
    async with KafkaStreams(builder.build(), **settings) as app:
        await app.wait_until_caught_up()
        assert app.summary()["dropped_records"] == 1
    assert set(await counting.read_last(logd.bootstrap, f"{name}-out", partitions=1)) == {b"a", b"c"}
    assert await counting.read_all(logd.bootstrap, f"{name}-dead", partitions=1) == [(b"b", b"13000")]


def set_aside(error: Exception, context: ErrorContext) -> ErrorResponse:
    """Send the key of a refused record, and its value's length, to ``<name>-dead``."""
    assert (context.node, context.task_id) == ("KSTREAM-SINK-0000000002", "0_0")
    letter = context.dead_letter(context.topic.replace("-out", "-dead"))
    assert letter.value is not None
    letter = dataclasses.replace(letter, value=b"%d" % len(letter.value))
    return ErrorResponse(answer="continue", dead_letters=(letter,))


async def test_a_record_that_only_the_broker_refuses(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """At least once its dead letter is part of the same commit; exactly once the transaction has failed."""
    name = new_name("refused")
    builder = StreamsBuilder(key_serde=str, value_serde=bytes)
    builder.stream(f"{name}-in").map_values(lambda value: value * 1000).to(f"{name}-out", value_serde=bytes)
    settings: dict[str, Any] = {
        "application_id": name,
        "bootstrap_servers": logd.bootstrap,
        "state_dir": str(tmp_path),
        "production_exception_handler": set_aside,
    }
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-dead": 1})
    async with Client(logd.bootstrap) as client:
        small = {"max.message.bytes": "10000"}
        await Admin(client).create_topics([NewTopic(f"{name}-out", 1, 1, small)])
    await produce(logd.bootstrap, f"{name}-in", (b"b", b"far too large"))
    with pytest.raises(StreamsError, match="MESSAGE_TOO_LARGE"):
        async with KafkaStreams(builder.build(), **settings, processing_guarantee="exactly_once_v2") as app:
            await app.wait_until_caught_up()
    async with KafkaStreams(builder.build(), **settings) as app:
        await app.wait_until_caught_up()
        assert app.summary()["dropped_records"] == 1
    assert await counting.read_all(logd.bootstrap, f"{name}-dead", partitions=1) == [(b"b", b"13000")]


async def test_changes_of_a_store_that_are_more_than_a_topic_takes_at_once(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """Large changes of a store can be sent, though max.request.size is raised for the output topic only."""
    name = new_name("changes")
    builder = StreamsBuilder(key_serde=str, value_serde=bytes)
    builder.stream(f"{name}-in").map_values(lambda value: value * 100_000).to_table(store="large")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1})
    await produce(logd.bootstrap, f"{name}-in", *((b"%d" % n, b"x") for n in range(15)))
    async with KafkaStreams(
        builder.build(),
        application_id=name,
        bootstrap_servers=logd.bootstrap,
        state_dir=str(tmp_path),
        max_request_size=10_000_000,
    ) as app:
        await app.wait_until_caught_up()
    changelog = await counting.read_last(logd.bootstrap, f"{name}-large-changelog", partitions=1)
    assert len(changelog) == 15


class Committing(Processor[str, int]):
    """Asks for a commit once it has noted the record in the task's folder."""

    def process(self, record: Record[str, int]) -> None:
        with open(self.context.state_dir / "noted", "a") as noted:
            noted.write(f"{self.context.application_id} {record.key}\n")
        self.context.commit()


async def test_a_processor_asks_for_a_commit(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """A processor's request commits, and so flushes a cached table, long before the interval of an hour is
    over.
    """
    name = new_name("asked")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    stream = builder.stream(f"{name}-in")
    stream.group_by_key().count().to_stream().to(f"{name}-out")
    stream.process(Committing)
    settings: dict[str, Any] = {"application_id": name, "bootstrap_servers": logd.bootstrap}
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)))
    async with KafkaStreams(
        builder.build(), **settings, state_dir=str(tmp_path), commit_interval_ms=3_600_000
    ):
        while not await counting.read_all(logd.bootstrap, f"{name}-out", partitions=1):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert (tmp_path / name / "0_0" / "noted").read_text() == f"{name} a\n"


@deep
def test_slow_user_code_keeps_its_place_in_the_group(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    """Heartbeats go on during a record that takes longer than the session timeout."""
    name = new_name("slow")
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream(f"{name}-in").peek(lambda k, v: time.sleep(5)).to(f"{name}-out")
    states: list[State] = []

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)))
        app = KafkaStreams(
            builder.build(),
            application_id=name,
            bootstrap_servers=logd.bootstrap,
            state_dir=str(tmp_path),
            session_timeout_ms=4000,
            heartbeat_interval_ms=100,
        )
        app.add_state_listener(lambda new, old: states.append(new))
        async with app:
            await app.wait_until_caught_up()

    run(case)
    assert states.count(State.RUNNING) == 1


# -- settings


def test_settings_by_kafkas_names() -> None:
    config = StreamsConfig.from_properties(
        {"application.id": "a", "bootstrap.servers": "h:1", "commit.interval.ms": "50", "state.dir": "/tmp/x"}
    )
    assert (config.commit_interval_ms, config.state_dir) == (50, "/tmp/x")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("commit.interval.ms", "soon", "a whole number"),
        ("commit.interval.ms", "-1", "0 or more"),
        ("auto.offset.reset", "sometimes", "one of earliest, latest, none"),
        ("application.id", "a/b", "letters"),
        ("application.id", "a*b", "letters"),
        ("application.id", "grüße", "letters"),
        ("application.id", "..", "letters"),
        ("commit.intervall.ms", "1", "did you mean commit.interval.ms?"),
    ],
)
def test_bad_settings_are_named(key: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        StreamsConfig.from_properties({"application.id": "a", "bootstrap.servers": "h:1", key: value})
    assert caught.value.key == key
