"""`Consumer`, record by record: positions, what is committed, kills, and batches that cannot be read."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client import Admin, BatchProducer, Client, Consumer, NewTopic, Producer, TopicPartition
from kafka_client.errors import ConfigError, UnreadableBatch
from kafka_client.fetcher.fetched import Fetched
from kafka_client.group.record_buffer import RecordBuffer
from kafka_client.records import build_batch
from tests.kafka_client.running import run
from tests.support.waiting import until

Name = Callable[[str], str]
QUICK_GROUP: dict[str, Any] = {"heartbeat_interval_ms": 100, "auto_offset_reset": "earliest"}


async def numbers(client: Client, topic: str, count: int, partitions: int = 1) -> None:
    """Create a topic with `count` numbered values in each partition."""
    await Admin(client).create_topics([NewTopic(topic, partitions, 1)])
    async with BatchProducer(client, batch_size=300) as producer:
        for partition in range(partitions):
            await producer.send(topic, partition, [(n, b"k", b"%d" % n, ()) for n in range(count)])


async def committed(client: Client, group: str, tp: TopicPartition) -> int | None:
    offsets = await Consumer(client, group).committed([tp])
    return offsets[tp].offset if tp in offsets else None


async def test_records_have_positions_between_them(bootstrap: str, new_name: Name) -> None:
    topic = new_name("topic")
    tp = TopicPartition(topic, 0)
    async with Client(bootstrap) as client:
        await numbers(client, topic, 100)
        async with Consumer(client, value_deserializer=int, key_deserializer=bytes.decode) as consumer:
            await consumer.assign({tp: 0})
            async for record in consumer:
                assert (record.topic_partition, record.offset, record.value, record.key) == (
                    tp,
                    record.timestamp_ms,
                    record.offset,
                    "k",
                )
                assert consumer.position(tp) == record.offset + 1
                assert consumer.lag(tp) == 99 - record.offset
                assert consumer.consumed_offsets()[tp].offset == record.offset + 1
                assert consumer.processed_offsets()[tp].offset == record.offset
                if record.offset == 40:
                    break
            some = await consumer.records(max_records=7)
            assert [record.value for record in some] == list(range(41, 48))
            assert consumer.processed_offsets()[tp].offset == 41
            consumer.pause([tp])
            assert await consumer.records(timeout_ms=50) == []
            assert consumer.processed_offsets()[tp].offset == consumer.position(tp) == 48
            consumer.resume([tp])
            assert (await anext(consumer)).value == 48
            consumer.seek(tp, 5)
            assert consumer.processed_offsets()[tp].offset == 5
            assert (await anext(consumer)).value == 5
            fetched = (await consumer.fetch())[0]
            assert fetched.records()[0][0] == 6
            with pytest.raises(ValueError, match="at least 1"):
                await consumer.records(max_records=0)


async def test_what_commit_commits(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    tp = TopicPartition(topic, 0)
    in_callback: list[int | None] = []
    async with Client(bootstrap) as client:
        await numbers(client, topic, 10)

        async def revoked(partitions: set[TopicPartition]) -> None:
            await consumer.commit()
            in_callback.append(await committed(client, group, tp))

        async with Consumer(client, group, **QUICK_GROUP) as consumer:
            await consumer.subscribe([topic], on_revoked=revoked)
            async for record in consumer:
                if record.offset == 3:
                    await consumer.commit()
                    assert await committed(client, group, tp) == 4
                if record.offset == 6:
                    break
        # The loop may have been at record 6 when the partition was given up.
        assert in_callback == [6]
        async with Consumer(client, group, **QUICK_GROUP) as consumer:
            await consumer.subscribe([topic])
            assert (await anext(consumer)).offset == 6
            await consumer.seek_to_committed()
            assert (await anext(consumer)).offset == 6


async def test_automatic_commits_leave_out_the_record_in_process(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    tp = TopicPartition(topic, 0)
    async with Client(bootstrap) as client:
        await numbers(client, topic, 10)
        settings = {**QUICK_GROUP, "enable_auto_commit": True, "auto_commit_interval_ms": 0}
        async with Consumer(client, group, **settings) as consumer:
            await consumer.subscribe([topic])
            async for record in consumer:
                assert (await committed(client, group, tp) or 0) == record.offset
                if record.offset == 5:
                    break
        assert await committed(client, group, tp) == 5
        settings["auto_commit_interval_ms"] = 10
        async with Consumer(client, group, **settings) as consumer:
            await consumer.subscribe([topic])
            for _ in range(5):
                await anext(consumer)
            # Nothing more comes: what was processed is committed all the same.
            waiting = asyncio.create_task(anext(consumer))  # type: ignore[arg-type]
            await until(lambda: tp in (last := consumer._auto_commit.committed) and last[tp].offset == 10)
            assert await committed(client, group, tp) == 10
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        with pytest.raises(ConfigError, match="group_id"):
            Consumer(client, enable_auto_commit=True)


async def test_a_partition_that_goes_takes_its_buffered_records_along(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    async with Client(bootstrap) as client:
        await numbers(client, topic, 50, 2)
        places: list[tuple[int, int]] = []
        async with Consumer(client, group, **QUICK_GROUP) as first:
            await first.subscribe([topic], on_revoked=lambda partitions: first.commit())
            for _ in range(5):
                record = await anext(first)
                places.append((record.partition, record.offset))
            async with Consumer(client, group, **QUICK_GROUP) as second:
                await second.subscribe([topic])
                await until(lambda: len(first.assignment) == len(second.assignment) == 1)
                for consumer in (first, second):
                    (tp,) = consumer.assignment
                    record = await anext(consumer)
                    while True:
                        assert record.topic_partition == tp
                        places.append((record.partition, record.offset))
                        if record.offset == 49:
                            break
                        record = await anext(consumer)
        assert set(places) == {(partition, offset) for partition in (0, 1) for offset in range(50)}
        assert len(places) <= 101  # the record in process at the rebalance may come twice


KILLED = """
import asyncio, sys
from kafka_client import Client, Consumer

async def main(servers, topic, group, auto):
    settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 0} if auto == "auto" else {}
    async with (
        Client(servers) as client,
        Consumer(
            client, group, auto_offset_reset="earliest", group_instance_id=group, **settings
        ) as consumer,
    ):
        await consumer.subscribe([topic])
        async for record in consumer:
            print(record.offset, flush=True)
            sys.stdin.readline()      # it is processed when we are told so
            if auto != "auto":
                await consumer.commit()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("mode", ["auto", "commit"])
def test_a_kill_repeats_the_record_in_process_and_skips_none(
    bootstrap: str, new_name: Name, mode: str
) -> None:
    topic, group = new_name("topic"), new_name("group")

    async def fill() -> None:
        async with Client(bootstrap) as client:
            await numbers(client, topic, 12)

    run(fill())
    starts: list[int] = []
    next_offset = 0
    while next_offset < 9:
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, bootstrap, topic, group, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                offset = int(process.stdout.readline())
                starts.append(offset)
                for _ in range(3):
                    process.stdin.write(b"\n")
                    process.stdin.flush()
                    offset += 1
                    assert int(process.stdout.readline()) == offset
            finally:
                process.send_signal(signal.SIGKILL)
        next_offset = offset
    # Each process was killed at the record that the next one begins with.
    assert starts == [0, 3, 6]


async def test_exactly_once_goes_on_after_an_abort(bootstrap: str, new_name: Name) -> None:
    topic, target, group = new_name("topic"), new_name("target"), new_name("group")
    async with (
        Client(bootstrap) as client,
        Producer(client, transactional_id=new_name("id")) as producer,
        Consumer(client, group, **QUICK_GROUP) as consumer,
    ):
        await numbers(client, topic, 30)
        await numbers(client, target, 0)
        await consumer.subscribe([topic])
        copied, turn = 0, 0
        while copied < 30:
            records = await consumer.records(max_records=10)
            turn += 1
            try:
                async with producer.transaction():
                    for record in records:
                        await producer.send(target, record.value)
                    await producer.send_offsets(consumer)
                    if turn % 2:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                await consumer.seek_to_committed()
            else:
                copied += len(records)
        assert turn == 6
        async with Consumer(client, isolation_level="read_committed") as reader:
            await reader.assign({TopicPartition(target, 0): 0})
            read = [await anext(reader) for _ in range(30)]
            assert [record.value for record in read] == [b"%d" % n for n in range(30)]
            assert await reader.records(timeout_ms=100) == []


# --- without a broker ---

TP = TopicPartition("t", 3)


def batch(first: int, count: int, *, is_damaged: bool = False) -> bytes:
    records = [(0, None, b"%d" % n, ()) for n in range(first, first + count)]
    data = bytearray(build_batch(records, base_offset=first))
    if is_damaged:
        data[-1] ^= 1
    return bytes(data)


def fetched(tp: TopicPartition, position: int, *batches: tuple[int, int, bool]) -> Fetched:
    data = b"".join(batch(first, count, is_damaged=damaged) for first, count, damaged in batches)
    first, count, _ = batches[-1]
    return Fetched(tp, position, first + count, memoryview(data))


def test_a_damaged_batch_is_named_after_the_records_before_it() -> None:
    buffer = RecordBuffer(None, None, None)
    buffer.put([fetched(TP, 2, (0, 5, False), (5, 4, True), (9, 1, False))])
    assert [getattr(buffer.next(), "offset", None) for _ in range(3)] == [2, 3, 4]
    with pytest.raises(UnreadableBatch) as error:
        buffer.next()
    damage = error.value
    assert (damage.topic, damage.partition, damage.first_offset, damage.last_offset) == (*TP, 5, 8)
    assert buffer.position(TP) == 5


def test_a_damaged_batch_is_passed_over_by_who_takes_note() -> None:
    noted: list[UnreadableBatch] = []
    buffer = RecordBuffer(None, None, noted.append)
    buffer.put([fetched(TP, 0, (0, 2, False), (2, 4, True), (6, 1, False))])
    assert [getattr(buffer.next(), "offset", None) for _ in range(4)] == [0, 1, 6, None]
    assert [error.first_offset for error in noted] == [2]


def test_what_cannot_be_deserialized_is_named_and_raised_until_a_seek() -> None:
    buffer = RecordBuffer(None, lambda value: 6 // int(value), None)
    buffer.put([fetched(TP, 0, (0, 3, False))])
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as error:
            buffer.next()
        assert error.value.__notes__ == ["while deserializing the value of t-3 at offset 0"]
    assert buffer.position(TP) == 0


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 5)), max_size=8),
    st.lists(st.sampled_from(["next", "drop 0", "drop 1"]), max_size=40),
)
def test_the_buffer_hands_out_in_order_and_knows_its_positions(
    sizes: list[tuple[int, int]], calls: list[str]
) -> None:
    buffer = RecordBuffer(None, None, None)
    ends = [0, 0]
    left: list[tuple[int, int]] = []
    for partition, count in sizes:
        buffer.put(
            [fetched(TopicPartition("t", partition), ends[partition], (ends[partition], count, False))]
        )
        left += [(partition, ends[partition] + n) for n in range(count)]
        ends[partition] += count
    for call in calls:
        if call == "next":
            record = buffer.next()
            assert (None if record is None else (record.partition, record.offset)) == (
                left.pop(0) if left else None
            )
        else:
            buffer.drop(TopicPartition("t", int(call[-1])))
            left = [place for place in left if place[0] != int(call[-1])]
        for partition in (0, 1):
            position = buffer.position(TopicPartition("t", partition))
            due = next((offset for number, offset in left if number == partition), None)
            if due is not None:
                assert position == due
