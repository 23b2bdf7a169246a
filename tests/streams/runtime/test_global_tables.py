"""Global tables on a broker: read whole before anything is processed, kept up with, and gone on from."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, BatchProducer, Client, NewTopic, TopicPartition
from streams import KafkaStreams, StreamsBuilder, TopologyError, log_and_continue
from streams.queries import KeyValueView
from streams.runtime.restore import global_stores
from streams.runtime.restore.global_checkpoint import read_checkpoint, write_checkpoint
from tests.streams.support import counting
from tests.streams.support.running import NewName
from tests.support.logd_process import LogdProcess

PARTITIONS = 3


def application(bootstrap: str, name: str, state_dir: Path) -> KafkaStreams:
    """Return an application that joins a stream of one partition with a table of three, by the stream's
    values.
    """
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    countries = builder.global_table(f"{name}-countries", value_serde=int, store="countries")
    joined = builder.stream(f"{name}-in").left_join(
        countries, lambda value, number: f"{value}={number}", key_selector=lambda key, value: value
    )
    joined.to(f"{name}-out")
    return KafkaStreams(
        builder.build(),
        application_id=f"{name}-app",
        bootstrap_servers=bootstrap,
        state_dir=str(state_dir),
        commit_interval_ms=20,
        poll_ms=20,
        session_timeout_ms=6000,
        deserialization_exception_handler=log_and_continue,
    )


async def put(bootstrap: str, topic: str, partition: int, *rows: tuple[str, bytes | None]) -> None:
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        records = [(7, key.encode(), value, ()) for key, value in rows]
        await (await producer.send(topic, partition, records))


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


async def results(bootstrap: str, name: str) -> dict[bytes, bytes | None]:
    return await counting.read_last(bootstrap, f"{name}-out", partitions=1)


async def fill(bootstrap: str, name: str) -> None:
    async with Client(bootstrap) as client:
        topics = [NewTopic(f"{name}-countries", PARTITIONS, 1), NewTopic(f"{name}-in", 1, 1)]
        await Admin(client).create_topics([*topics, NewTopic(f"{name}-out", 1, 1)])
    for partition in range(PARTITIONS):
        rows = [(f"c{partition}-{each}", number(each)) for each in range(50)]
        await put(bootstrap, f"{name}-countries", partition, *rows, ("gone", number(1)), ("gone", None))
    await put(bootstrap, f"{name}-countries", 0, ("bad", b"bytes"), ("c0-7", number(77)))
    await put(bootstrap, f"{name}-in", 0, ("1", b"c0-7"), ("2", b"c2-3"), ("3", b"gone"), ("4", b"bad"))


async def test_a_stream_meets_all_that_the_table_had_at_the_start(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, bootstrap = new_name("global"), logd.bootstrap
    applied: list[int] = []
    original = global_stores.GlobalStore.apply

    def apply(self: global_stores.GlobalStore, partition: int, records: list[Any]) -> None:
        applied.append(len(records))
        original(self, partition, records)

    monkeypatch.setattr(global_stores.GlobalStore, "apply", apply)
    await fill(bootstrap, name)
    async with application(bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
        assert len(list(app.stores("countries")[0].all())) == 150  # type: ignore[attr-defined]
        await put(bootstrap, f"{name}-countries", 1, ("late", number(5)), ("c0-7", None))
        countries = app.store("countries", KeyValueView)
        while await countries.get("late") is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await put(bootstrap, f"{name}-in", 0, ("5", b"late"), ("6", b"c0-7"))
        await app.wait_until_caught_up()
    assert await results(bootstrap, name) == {
        b"1": b"c0-7=77", b"2": b"c2-3=3", b"3": b"gone=None", b"4": b"bad=None",
        b"5": b"late=5", b"6": b"c0-7=None",
    }  # fmt: skip
    checkpoint = tmp_path / f"{name}-app" / "global" / ".checkpoint"
    offsets = {TopicPartition(f"{name}-countries", each): 52 for each in range(PARTITIONS)}
    offsets[TopicPartition(f"{name}-countries", 0)] += 2
    offsets[TopicPartition(f"{name}-countries", 1)] += 2
    assert read_checkpoint(checkpoint).offsets == offsets

    applied.clear()
    await put(bootstrap, f"{name}-countries", 2, ("later", number(6)))
    await put(bootstrap, f"{name}-in", 0, ("7", b"later"), ("8", b"late"), ("9", b"c2-3"))
    async with application(bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    assert sum(applied) == 1, "it went on from where it was"
    output = await results(bootstrap, name)
    assert [output[key] for key in (b"7", b"8", b"9")] == [b"later=6", b"late=5", b"c2-3=3"]

    applied.clear()
    checkpoint.unlink()  # as after a kill at the first start
    await put(bootstrap, f"{name}-in", 0, ("10", b"c0-7"), ("11", b"c1-9"))
    async with application(bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    assert sum(applied) > 150
    output = await results(bootstrap, name)
    assert [output[key] for key in (b"10", b"11")] == [b"c0-7=None", b"c1-9=9"]


async def test_a_table_of_a_topic_that_was_made_anew_begins_anew(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name, bootstrap = new_name("global"), logd.bootstrap
    await fill(bootstrap, name)
    async with application(bootstrap, name, tmp_path) as app:
        await app.wait_until_caught_up()
    async with Client(bootstrap) as client:
        await Admin(client).delete_topics([f"{name}-countries"])
        await Admin(client).create_topics([NewTopic(f"{name}-countries", PARTITIONS, 1)])
    await put(bootstrap, f"{name}-countries", 1, ("c2-3", number(9)))
    async with application(bootstrap, name, tmp_path) as app:
        assert [key for key, _ in app.stores("countries")[0].all()] == ["c2-3"]  # type: ignore[attr-defined]


async def test_its_topic_must_be_there(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    name = new_name("global")
    async with Client(logd.bootstrap) as client:
        await Admin(client).create_topics([NewTopic(f"{name}-in", 1, 1), NewTopic(f"{name}-out", 1, 1)])
    with pytest.raises(TopologyError, match=r"global table's topic 'global-[0-9]+-countries' does not exist"):
        await application(logd.bootstrap, name, tmp_path).start()


def test_a_checkpoint_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / ".checkpoint"
    assert read_checkpoint(path).offsets == {}
    write_checkpoint(path, {TopicPartition("t", 1): 5, TopicPartition("t", 0): 7})
    assert path.read_text() == "0\n2\nt 0 7\nt 1 5\n"
    assert read_checkpoint(path).offsets == {TopicPartition("t", 0): 7, TopicPartition("t", 1): 5}
    path.write_text("0\n2\nt 0 7\n")
    assert read_checkpoint(path).offsets == {}
