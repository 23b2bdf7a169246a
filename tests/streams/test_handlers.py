"""Handlers of bad records: what they are told and may answer, and dead letters (KIP-1033, KIP-1034)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

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
from streams.testing import TopologyTestDriver
from streams.topology import Handlers

HEADERS = (("h", b"1"),)


def recording(seen: list[ErrorContext], answer: Any = "continue") -> Callable[[Exception, ErrorContext], Any]:
    def handler(error: Exception, context: ErrorContext) -> Any:
        assert context.error is error
        seen.append(context)
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
    seen: list[ErrorContext] = []
    handlers = Handlers(deserialization=recording(seen))
    with TopologyTestDriver(doubling(), handlers=handlers) as driver:
        assert pipe(driver, long(12), b"bad", long(4)) == [("k", 1), ("k", 3)]
    (context,) = seen
    assert isinstance(context.error, SerializationError)
    told = (context.node, context.task_id, context.topic, context.partition, context.offset)
    assert told == ("source", "0_0", "in", 0, 1)
    assert (context.key, context.value, context.timestamp, context.headers) == (b"k", b"bad", 11, HEADERS)
    assert context.record is None


def test_of_a_record_over_which_a_node_raises() -> None:
    seen: list[ErrorContext] = []
    with TopologyTestDriver(doubling(), handlers=Handlers(processing=recording(seen))) as driver:
        assert pipe(driver, long(0), long(4)) == [("k", 3)]
        assert driver.metrics()["divide"].dropped_records_total == 1
    (context,) = seen
    assert isinstance(context.error, ZeroDivisionError)
    told = (context.node, context.task_id, context.topic, context.partition, context.offset)
    assert told == ("divide", "0_0", "in", 0, 0)
    assert (context.key, context.value, context.timestamp, context.headers) == (b"k", long(0), 10, HEADERS)
    assert context.record == Record("k", 0, 10, HEADERS)


def test_of_a_record_that_cannot_be_written() -> None:
    seen: list[ErrorContext] = []
    with TopologyTestDriver(doubling(), handlers=Handlers(production=recording(seen))) as driver:
        assert pipe(driver, long(2), long(4)) == [("k", 3)]
    (context,) = seen
    assert isinstance(context.error, SerializationError)
    assert (context.node, context.value, context.record.value) == ("sink", long(2), "six")


def test_the_nodes_above_the_one_that_raised_go_on() -> None:
    """As in Kafka: what is left out is the record the node was given, not the one that was read."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    words = builder.stream("in").flat_map_values(str.split)
    words.map_values(lambda word: 12 // int(word)).to("out", value_serde=int)
    with TopologyTestDriver(builder, handlers=Handlers(processing=log_and_continue)) as driver:
        driver.input_topic("in").pipe_input("k", "3 0 x 4")
        assert driver.output_topic("out").read_key_values() == [("k", 4), ("k", 3)]


def test_a_handler_of_one_argument_is_given_the_error() -> None:
    seen: list[Exception] = []

    def handler(error: Exception) -> Any:
        seen.append(error)
        return "continue"

    with TopologyTestDriver(doubling(), handlers=Handlers(processing=handler)) as driver:
        assert pipe(driver, long(0), long(4)) == [("k", 3)]
    assert isinstance(seen[0], ZeroDivisionError)


def test_fail_raises_what_names_the_record() -> None:
    seen: list[ErrorContext] = []
    with TopologyTestDriver(doubling(), handlers=Handlers(processing=recording(seen, "fail"))) as driver:
        with pytest.raises(ProcessingError, match="record in-0 offset 0, node divide: ZeroDivisionError"):
            pipe(driver, long(0))
        assert len(seen) == 1


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
    seen: list[ErrorContext] = []
    with TopologyTestDriver(builder, handlers=Handlers(processing=recording(seen))) as driver:
        driver.input_topic("in").pipe_input("k", 1)
        driver.advance_wall_clock(10)
    assert (seen[0].topic, seen[0].offset, seen[0].key, seen[0].record) == ("", -1, None, None)


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
