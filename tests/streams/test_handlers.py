"""Handlers of bad records: what they are told and may answer, and dead letters (KIP-1033, KIP-1034)."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest

from kafka_client import Fetched, TopicPartition
from kafka_client.errors import UnreadableBatch
from kafka_client.records import Codec, build_batch
from kafka_client.records.header import compute_crc
from streams import (
    DeadLetter,
    ErrorContext,
    ErrorResponse,
    Processor,
    ProcessorContext,
    Record,
    StreamsBuilder,
    StreamsError,
    log_and_continue,
    log_and_fail,
)
from streams.errors import ProcessingError, SerializationError
from streams.handlers import answering
from streams.processors.wiring import TaskState
from streams.runtime.task import queue as queue_module
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.settings import TaskSettings
from streams.runtime.task.task import Task
from streams.runtime.task_id import TaskId
from streams.testing import TopologyTestDriver
from streams.topology import Handlers

HEADERS = (("h", b"1"),)


def recording(
    contexts: list[ErrorContext], answer: Any = "continue"
) -> Callable[[Exception, ErrorContext], Any]:
    def handler(error: Exception, context: ErrorContext) -> Any:
        assert context.error is error
        contexts.append(context)
        return answer

    return handler


def doubling() -> StreamsBuilder:
    """Divides by each value; the node that does is `divide`, the sink `sink`."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    stream = builder.stream("in", name="source").map_values(lambda v: 12 // v, name="divide")
    stream.map_values(lambda v: "six" if v == 6 else v, name="spell").to("out", value_serde=int, name="sink")
    return builder


def pipe(driver: TopologyTestDriver, *values: bytes) -> list[tuple[Any, Any]]:
    for n, value in enumerate(values):
        driver.pipe("in", b"k", value, 10 + n, HEADERS)
    return driver.output_topic("out").read_key_values()


def long(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def test_of_a_record_that_cannot_be_read() -> None:
    contexts: list[ErrorContext] = []
    handlers = Handlers(deserialization=recording(contexts))
    with TopologyTestDriver(doubling(), handlers=handlers) as driver:
        assert pipe(driver, long(12), b"bad", long(4)) == [("k", 1), ("k", 3)]
    (context,) = contexts
    assert isinstance(context.error, SerializationError)
    place = (context.node, context.task_id, context.topic, context.partition, context.offset)
    assert place == ("source", "0_0", "in", 0, 1)
    assert (context.key, context.value, context.timestamp, context.headers) == (b"k", b"bad", 11, HEADERS)
    assert context.record is None


def test_of_a_record_over_which_a_node_raises() -> None:
    contexts: list[ErrorContext] = []
    with TopologyTestDriver(doubling(), handlers=Handlers(processing=recording(contexts))) as driver:
        assert pipe(driver, long(0), long(4)) == [("k", 3)]
        assert driver.metrics()["divide"].dropped_records_total == 1
    (context,) = contexts
    assert isinstance(context.error, ZeroDivisionError)
    place = (context.node, context.task_id, context.topic, context.partition, context.offset)
    assert place == ("divide", "0_0", "in", 0, 0)
    assert (context.key, context.value, context.timestamp, context.headers) == (b"k", long(0), 10, HEADERS)
    assert context.record == Record("k", 0, 10, HEADERS)


def test_of_a_record_that_cannot_be_written() -> None:
    contexts: list[ErrorContext] = []
    with TopologyTestDriver(doubling(), handlers=Handlers(production=recording(contexts))) as driver:
        assert pipe(driver, long(2), long(4)) == [("k", 3)]
    (context,) = contexts
    assert isinstance(context.error, SerializationError)
    assert (context.node, context.value, context.record.value) == ("sink", long(2), "six")


def test_the_nodes_above_the_one_that_raised_go_on() -> None:
    """Only the record that the failing node was given is skipped, not the input record, as in Kafka."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    words = builder.stream("in").flat_map_values(str.split)
    words.map_values(lambda word: 12 // int(word)).to("out", value_serde=int)
    with TopologyTestDriver(builder, handlers=Handlers(processing=log_and_continue)) as driver:
        driver.input_topic("in").pipe_input("k", "3 0 x 4")
        assert driver.output_topic("out").read_key_values() == [("k", 4), ("k", 3)]


def test_a_handler_of_one_argument_is_given_the_error() -> None:
    contexts: list[Exception] = []

    def handler(error: Exception) -> Any:
        contexts.append(error)
        return "continue"

    with TopologyTestDriver(doubling(), handlers=Handlers(processing=handler)) as driver:
        assert pipe(driver, long(0), long(4)) == [("k", 3)]
    assert isinstance(contexts[0], ZeroDivisionError)


def test_fail_raises_what_names_the_record() -> None:
    contexts: list[ErrorContext] = []
    with TopologyTestDriver(doubling(), handlers=Handlers(processing=recording(contexts, "fail"))) as driver:
        with pytest.raises(ProcessingError, match="record in-0 offset 0, node divide: ZeroDivisionError"):
            pipe(driver, long(0))
        assert len(contexts) == 1


def test_records_before_the_bad_one_are_processed_first() -> None:
    with TopologyTestDriver(doubling()) as driver:
        with pytest.raises(SerializationError, match="in-0 offset 1"):
            pipe(driver, long(4), b"bad")
        assert driver.metrics()["sink"].process_total == 1


def test_of_a_schedule_there_is_no_record() -> None:
    class Failing(Processor[str, int]):
        def init(self, context: ProcessorContext) -> None:
            super().init(context)
            context.schedule(10, self.tick, on="wall_clock")

        def tick(self, now: int) -> None:
            raise ValueError("tick")

        def process(self, record: Record[str, int]) -> None:
            pass

    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").process(Failing, name="failing")
    contexts: list[ErrorContext] = []
    with TopologyTestDriver(builder, handlers=Handlers(processing=recording(contexts))) as driver:
        driver.input_topic("in").pipe_input("k", 1)
        driver.advance_wall_clock(10)
    assert (contexts[0].topic, contexts[0].offset, contexts[0].key, contexts[0].record) == (
        "",
        -1,
        None,
        None,
    )


def test_dead_letters_have_the_input_and_tell_the_error() -> None:
    handlers = Handlers(
        deserialization=log_and_continue, processing=log_and_continue, dead_letter_topic="dead"
    )
    with TopologyTestDriver(doubling(), handlers=handlers) as driver:
        assert pipe(driver, long(0), b"bad", long(4)) == [("k", 3)]
        dead = driver.output_topic("dead", key_serde=bytes, value_serde=bytes).read_all()
    assert [(each.key, each.value, each.timestamp) for each in dead] == [
        (b"k", long(0), 10),
        (b"k", b"bad", 11),
    ]
    headers = dict(dead[0].headers)
    assert headers.pop("__streams.errors.stacktrace", b"").startswith(b"Traceback")  # type: ignore[union-attr]
    assert headers == {
        "__streams.errors.exception": b"ZeroDivisionError: integer division or modulo by zero",
        "__streams.errors.message": b"integer division or modulo by zero",
        "__streams.errors.topic": b"in",
        "__streams.errors.partition": b"0",
        "__streams.errors.offset": b"0",
    }


def test_a_handler_sends_dead_letters_where_it_wants() -> None:
    def handler(error: Exception, context: ErrorContext) -> ErrorResponse:
        letter = DeadLetter(topic="mine", key=None, value=str(error).encode(), timestamp=1)
        return ErrorResponse(answer="continue", dead_letters=(letter, context.dead_letter("theirs")))

    with TopologyTestDriver(doubling(), handlers=Handlers(processing=handler)) as driver:
        pipe(driver, long(0))
        mine = driver.output_topic("mine", key_serde=str, value_serde=str).read_output()
        assert (mine.key, mine.value, mine.timestamp) == (None, "integer division or modulo by zero", 1)
        assert driver.output_topic("theirs", key_serde=str, value_serde=int).read_output().value == 0


def test_answers_are_checked() -> None:
    context = ErrorContext(error=ValueError("x"), node="n", task_id="0_0")
    with pytest.raises(
        StreamsError, match=r"handler .*<lambda> answered None: it may answer 'fail', 'continue'"
    ):
        answering(lambda error: None)(context)  # type: ignore[arg-type]
    with pytest.raises(
        StreamsError, match=r"needs a topic: give one, or set errors.dead.letter.queue.topic.name"
    ):
        context.dead_letter()
    assert answering(log_and_fail)(context) == ErrorResponse(answer="fail")
    assert answering(log_and_continue)(context) == ErrorResponse(answer="continue")


def test_a_bad_record_is_asked_about_once_when_the_position_passes_it() -> None:
    """Not when its batch is decoded, which may be well before, and again after it was put back: what the
    handler writes belongs to the commit of the record's offset.
    """
    contexts: list[ErrorContext] = []
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").to("out")
    builder.stream("other").to("else")
    topology = builder.build()
    subtopology = topology.subtopologies[0]
    task = Task(
        TaskId(0, 0),
        subtopology,
        {},
        TaskEnvironment(clock=lambda: 0),
        TaskSettings(
            max_idle_ms=-1,
            handlers=Handlers(deserialization=recording(contexts), dead_letter_topic="dead"),
        ),
    )
    tp = TopicPartition("in", 0)
    task.add_input(tp, subtopology.sources[0], InputStart(position=0, end=0))
    queue = task.queues[tp]
    values = [b"bad", long(1), b"bad", b"worse", long(4), b"bad"]
    batch = build_batch([(n, b"k", value, HEADERS) for n, value in enumerate(values)])
    queue.add_fetched(
        Fetched(tp, 0, len(values), memoryview(batch), record_count=len(values), leader_epoch=0), 6
    )
    assert queue.head_timestamp() == 1
    assert ([each.offset for each in contexts], queue.position) == ([0], 1)
    queue.put_back()
    assert queue.head_timestamp() == 1
    state = TaskState()
    assert queue.run(state, None, 1) == 1
    assert ([each.offset for each in contexts], queue.position) == ([0, 2, 3], 4)
    queue.put_back()
    assert task.process() == 1
    assert ([each.offset for each in contexts], queue.position) == ([0, 2, 3, 5], 6)
    assert task.metrics["KSTREAM-SOURCE-0000000000"].dropped_records_total == 4


def task_reading(contexts: list[ErrorContext], answer: str = "continue") -> Task:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").map_values(lambda value: 1 // value).to("out")
    (subtopology,) = builder.build().subtopologies
    handlers = Handlers(deserialization=recording(contexts, answer), processing=recording(contexts))
    settings = TaskSettings(max_idle_ms=-1, handlers=handlers)
    task = Task(TaskId(0, 0), subtopology, {}, TaskEnvironment(clock=lambda: 0), settings)
    task.add_input(TopicPartition("in", 0), subtopology.sources[0], InputStart(position=0, end=0))
    return task


def three_batches(values: list[int], *, codec: Codec = Codec.NONE) -> bytearray:
    """Batches of two records each; the timestamps are the offsets."""
    data = bytearray()
    for base in range(0, 6, 2):
        records = [(n, b"k", long(values[n]), HEADERS) for n in (base, base + 1)]
        data += build_batch(records, base_offset=base, codec=codec)
    return data


def feed(task: Task, data: bytearray) -> None:
    tp = TopicPartition("in", 0)
    task.queues[tp].add_fetched(Fetched(tp, 0, 6, memoryview(data), record_count=6, leader_epoch=0), 6)


DAMAGE = {"crc": (-1, "CRC"), "magic": (16, "magic")}
"""Where the byte is that is damaged in the second batch, and what the error says of it."""


@pytest.mark.parametrize("damage", DAMAGE)
def test_of_a_batch_that_cannot_be_read(damage: str) -> None:
    """A batch is skipped in its turn, and counted as the records in its header."""
    contexts: list[ErrorContext] = []
    task, data = task_reading(contexts), three_batches([1] * 6)
    at, reason = DAMAGE[damage]
    second = len(data) // 3
    data[second + at if at > 0 else 2 * second + at] ^= 0x7F
    feed(task, data)
    queue = task.queues[TopicPartition("in", 0)]
    assert not contexts, "it is not its turn yet"
    assert task.process() == 4
    (context,) = contexts
    assert (context.topic, context.partition, context.offset) == ("in", 0, 2)
    assert (context.key, context.value) == (None, None)
    assert f"batch of offsets 2 to 3 cannot be read: batch {reason}" in str(context.error)
    assert isinstance(context.error.__cause__, UnreadableBatch)
    assert (queue.position, len(queue)) == (6, 0)
    assert task.metrics["KSTREAM-SOURCE-0000000000"].dropped_records_total == 2


def test_a_batch_that_cannot_be_read_fails_the_task_behind_what_is_before_it() -> None:
    task, data = task_reading([], "fail"), three_batches([1] * 6)
    data[2 * (len(data) // 3) - 1] ^= 1
    feed(task, data)
    with pytest.raises(SerializationError, match=r"offsets 2 to 3 cannot be read: .*in-0 offset 2"):
        task.process()
    assert task.queues[TopicPartition("in", 0)].position == 2


def test_a_broken_record_costs_the_rest_of_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its CRC is right: what was processed before the damage showed stays processed."""
    monkeypatch.setattr(queue_module, "FIRST_RECORDS", 2)
    contexts: list[ErrorContext] = []
    task, count = task_reading(contexts), 6
    records = [(n, b"k", long(1), ()) for n in range(count)]
    whole = build_batch(records)
    body = bytearray(whole[61:])
    body[4 * (len(body) // count)] = 0xFF  # the length of the fifth
    batch = bytearray(whole[:61]) + gzip.compress(bytes(body))
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[21:23] = int(Codec.GZIP).to_bytes(2, "big")
    batch[17:21] = compute_crc(batch, 0, len(batch)).to_bytes(4, "big")
    feed(task, batch)
    assert task.process() == 2
    assert [each.offset for each in contexts] == [2]
    assert task.queues[TopicPartition("in", 0)].position == 6
    assert task.metrics["KSTREAM-SOURCE-0000000000"].dropped_records_total == 4


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_the_raw_records_of_a_later_part(monkeypatch: pytest.MonkeyPatch, codec: Codec) -> None:
    monkeypatch.setattr(queue_module, "FIRST_RECORDS", 1)
    monkeypatch.setattr(queue_module, "PART_RECORDS", 1)
    contexts: list[ErrorContext] = []
    task = task_reading(contexts)
    feed(task, three_batches([1, 0, 1, 1, 0, 0], codec=codec))
    assert task.process() == 6
    assert [(each.offset, each.key, each.value, each.timestamp) for each in contexts] == [
        (offset, b"k", long(0), offset) for offset in (1, 4, 5)
    ]
