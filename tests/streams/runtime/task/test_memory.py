"""The records that wait for processing are bounded in bytes, whatever their batches decompress to."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Fetched, TopicPartition
from kafka_client.fetcher.fetched import whole_batches
from kafka_client.records import Codec, build_batch
from streams import StreamsBuilder
from streams.runtime.task import queue as queue_module
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.running import RunningTask
from streams.runtime.task.settings import TaskSettings
from streams.runtime.task.task import Task
from streams.runtime.task.task_scheduler import WAITING_TURNS_MAX, TaskScheduler
from streams.runtime.task_id import TaskId
from tests.streams.support import inflating
from tests.streams.support.running import make_topics, run
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

MEGABYTE = 1 << 20
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


# -- a real process


@deep
@pytest.mark.parametrize(
    ("partitions", "batches", "settings"),
    [
        (1, 100, {}),
        (6, 16, {"input_buffer_max_bytes": 24 * MEGABYTE}),
    ],
    ids=["one input", "several inputs and a low bound"],
)
def test_well_compressed_records_do_not_fill_the_memory(
    logd: LogdProcess,
    tmp_path: Path,
    new_name: Callable[[str], str],
    partitions: int,
    batches: int,
    settings: dict[str, Any],
) -> None:
    """16 MB from the broker were 1.6 GB of records, decoded before anybody looked at a limit."""
    topic = new_name("inflating")

    async def fill() -> None:
        await make_topics(logd.bootstrap, **{topic: partitions})
        sent = await inflating.produce(logd.bootstrap, topic, partitions=partitions, batches=batches)
        assert sent * 80 < partitions * batches * inflating.DECODED_PER_BATCH, "not well compressed"

    run(fill)
    arguments = [logd.bootstrap, topic, str(tmp_path), json.dumps(settings)]
    done = subprocess.run(
        [sys.executable, inflating.__file__, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    count, before, peak = json.loads(done.stdout)
    assert count == partitions * batches * inflating.RECORDS_PER_BATCH
    assert peak - before < 256 * MEGABYTE, f"{peak >> 20} MB, {before >> 20} MB of them before it began"


# -- the queue


def fetched(tp: TopicPartition, *batches: list[int], first: int = 0, position: int = 0) -> Fetched:
    """Batches of records with these times, compressed."""
    data, offset = b"", first
    for times in batches:
        records = [(time, b"k", time.to_bytes(8, "big"), ()) for time in times]
        data += build_batch(records, base_offset=offset, codec=Codec.ZSTD)
        offset += len(times)
    view = memoryview(data)
    batches_of_view = whole_batches(view)
    return Fetched(
        tp,
        position,
        batches_of_view.next_offset,
        view,
        record_count=batches_of_view.record_count,
        leader_epoch=0,
    )


def make_task(values: list[int], number: int = 0, buffer: InputBuffer | None = None) -> Task:
    builder = StreamsBuilder(key_serde=bytes, value_serde=int)
    builder.stream("a").merge(builder.stream("b")).foreach(lambda key, value: values.append(value))
    (subtopology,) = builder.build().subtopologies
    environment = TaskEnvironment(clock=lambda: 0, buffer=buffer or InputBuffer())
    task = Task(TaskId(0, number), subtopology, {}, environment, TaskSettings(max_idle_ms=-1))
    for source in subtopology.sources:
        for topic in source.topics:
            task.add_input(TopicPartition(topic, 0), source, InputStart(position=0, end=0))
    return task


def test_a_batch_is_decoded_at_a_time() -> None:
    buffer, values = InputBuffer(), list[int]()
    task = make_task(values, buffer=buffer)
    queue = task.queues[A]
    queue.add_fetched(fetched(A, [1, 2], [3], [4, 5, 6]), 6)
    assert (len(queue), queue.fetched, buffer.decoded) == (6, 6, 0)
    assert queue.head_timestamp() == 1
    assert buffer.decoded > 0
    assert len(queue) == 6
    waiting = buffer.waiting
    assert task.process() == 6
    assert values == [1, 2, 3, 4, 5, 6]
    assert queue.position == 6
    assert waiting > 0
    assert (buffer.waiting, buffer.decoded) == (0, 0)


def test_what_is_put_back_is_processed_once() -> None:
    values: list[int] = []
    buffer = InputBuffer()
    task = make_task(values, buffer=buffer)
    queue = task.queues[A]
    queue.add_fetched(fetched(A, [1, 2, 3], [4]), 4)
    state = task._state
    queue.head_timestamp()
    queue.run(state, None, 2)
    task.put_back()
    assert (buffer.decoded, queue.position, task.holds_decoded) == (0, 2, False)
    task.process()
    assert values == [1, 2, 3, 4]
    assert (buffer.decoded, buffer.waiting) == (0, 0)


def test_a_batch_is_decoded_in_parts() -> None:
    """A compressed batch of a few KB with many records takes no more memory than a part of them."""
    buffer, count = InputBuffer(), 300_000
    task = make_task([], buffer=buffer)
    queue = task.queues[A]
    few = [(1, None, None, ())] * count
    batch = memoryview(build_batch(few, codec=Codec.GZIP))
    queue.add_fetched(Fetched(A, 0, count, batch, record_count=count, leader_epoch=0), count)
    tracemalloc.start()
    try:
        assert task.process() == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * MEGABYTE
    assert (queue.position, len(queue), buffer.bytes) == (count, 0, 0)


def test_a_batch_in_work_is_put_back_between_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "FIRST_RECORDS", 2)
    values, buffer = list[int](), InputBuffer()
    task = make_task(values, buffer=buffer)
    queue = task.queues[A]
    queue.add_fetched(fetched(A, [1, 2, 3, 4], [5]), 5)
    waiting = buffer.waiting
    assert queue.head_timestamp() == 1
    assert queue.run(task._state, None, 100) == 2
    assert (queue.position, len(queue), task.holds_decoded, task.has_input) == (2, 3, True, True)
    assert buffer.decoded > 0, "the batch is still here"
    task.put_back()
    assert (queue.position, len(queue), buffer.decoded, buffer.waiting) == (2, 3, 0, waiting)
    task.process()
    assert values == [1, 2, 3, 4, 5]
    assert (queue.position, len(queue), buffer.bytes) == (5, 0, 0)


def test_records_before_the_position_are_left_out() -> None:
    values: list[int] = []
    task = make_task(values)
    task.queues[A].add_fetched(fetched(A, [1, 2, 3], position=1), 3)
    task.process()
    assert values == [2, 3]


def test_a_position_moves_on_without_records() -> None:
    task = make_task([])
    task.queues[A].add_fetched(Fetched(A, 0, 7, memoryview(b"")), 7)
    task.process()
    assert task.queues[A].position == 7


def test_a_closed_task_takes_no_room() -> None:
    buffer = InputBuffer()
    task = make_task([], buffer=buffer)
    task.queues[A].add_fetched(fetched(A, [1, 2], [3]), 3)
    task.queues[A].head_timestamp()
    task.close()
    assert buffer.bytes == 0


def test_truncation_drops_what_waits() -> None:
    """Nothing of it was processed, so it is fetched again: what was lost of it never counts."""
    values: list[int] = []
    buffer = InputBuffer()
    task = make_task(values, buffer=buffer)
    queue = task.queues[A]
    queue.add_fetched(fetched(A, [1, 2], [3], [4, 5]), 5)
    assert queue.truncate(4, 9) == 0
    assert (queue.fetched, queue.end, buffer.bytes) == (0, 9, 0)
    queue.add_fetched(fetched(A, [1, 2], [3], [4, 6]), 9)
    task.process()
    assert values == [1, 2, 3, 4, 6]
    assert queue.truncate(2, 9) == 2
    assert queue.position == 2


# -- turns


class Clock:
    """Every look at it takes a millisecond, so that a slice of time is over after one run of records."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


def several(count: int, buffer: InputBuffer, values: list[int], batches: int = 3) -> list[RunningTask]:
    """Tasks with ``batches`` batches of 400 records each, of which a slice processes 200."""
    tasks = []
    for number in range(count):
        task = make_task(values, number, buffer)
        task.queues[A].add_fetched(fetched(A, *[[number] * 400] * batches), 400 * batches)
        tasks.append(RunningTask(task, {}, {}, {}))
    return tasks


def test_tasks_wait_for_room_and_all_get_their_turn() -> None:
    buffer, values = InputBuffer(1), list[int]()
    tasks = several(4, buffer, values)
    turns = TaskScheduler(buffer, turn_ms=1, clock=Clock())
    one = fetched(A, [0] * 400)
    task = make_task([], 9, probe := InputBuffer())
    task.queues[A].add_fetched(one, 400)
    task.queues[A].head_timestamp()
    order: list[int] = []
    while len(values) < 4 * 3 * 400:
        before = len(values)
        turns.work(tasks)
        assert buffer.decoded <= probe.decoded, "one batch fills it, so there is only one at a time"
        order += sorted(set(values[before:]))
    assert set(order[:8]) == {0, 1, 2, 3}, "nobody has everything before the last one begins"


def test_a_task_that_cannot_go_on_gives_its_room_up() -> None:
    """A task that waits for another input, maybe for ever, releases its share of the buffer."""
    buffer, values = InputBuffer(1), list[int]()
    tasks = several(2, buffer, values, batches=1)
    stuck = tasks[0].task
    stuck._max_idle_ms = 0
    stuck.queues[B].end = 1  # the broker has a record, which has not come
    turns = TaskScheduler(buffer, turn_ms=1000, clock=Clock())
    for _ in range(4):
        turns.work(tasks)
    assert values == [1] * 400
    stuck.queues[B].add_fetched(fetched(B, [0]), 1)
    turns.work(tasks)
    turns.work(tasks)
    assert len(values) == 801


def test_a_turn_ends_soon_however_many_tasks_are_slow() -> None:
    """Tasks change hands between turns; whose turn it was not comes first next time."""
    clock, values = Clock(), list[int]()

    class Slow(list[int]):
        def append(self, value: int) -> None:
            clock.now += 1000
            values.append(value)

    tasks = several(4, InputBuffer(), Slow())
    for running in tasks:
        running.task._clock = clock
        running.task._run_limit = 1
    turns = TaskScheduler(InputBuffer(), turn_ms=100, clock=clock)
    for _ in range(8):
        assert turns.work(tasks) == 1
    assert sorted(values) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_task_that_never_ends_gives_its_room_up() -> None:
    """A task that always has records, since it merges two inputs, releases its share of the buffer."""
    buffer, values = InputBuffer(1), list[int]()
    tasks = several(2, buffer, values, batches=1)
    busy = tasks[0].task
    busy.queues[B].add_fetched(fetched(B, *[[5]] * 100 * WAITING_TURNS_MAX), 100 * WAITING_TURNS_MAX)
    busy.queues[A].add_fetched(fetched(A, [9], first=400, position=400), 401)
    turns = TaskScheduler(buffer, turn_ms=1, clock=Clock())
    for _ in range(3 * WAITING_TURNS_MAX):
        turns.work(tasks)
        if 1 in values:
            return
    raise AssertionError("the other one never got its turn")
