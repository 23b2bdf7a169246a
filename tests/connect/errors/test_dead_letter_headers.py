"""The context headers of dead letters, beside those that Kafka's DeadLetterQueueReporter writes."""

from connect.runtime.errors.failed_row import failed_sink_row
from connect.runtime.errors.stages import Stage, StageError
from kafka_client import TopicPartition
from tests.support.java import needs_jar, run_program

PREFIX = "__connect.errors."
OF_LANGUAGE = {"class.name", "exception.class.name", "exception.stacktrace"}
"""Headers whose values name classes, which are Java's there and Python's here."""


@needs_jar("connect-runtime")
def test_headers_and_stages_are_those_of_kafka_connect():
    lines = [line.split("=", 1) for line in run_program("DeadLetterHeaders").splitlines()]
    stages = [value for name, value in lines if name == "stage"]
    of_kafka = [(name, value) for name, value in lines if name != "stage"]
    error = StageError(Stage.VALUE_CONVERTER, "value", "x.StringConverter", ValueError("bad é"))
    row = failed_sink_row(TopicPartition("t", 2), (7, 0, b"k", b"{", (("h", b"v"),)), error)
    ours = [(name, value.decode()) for name, value in (*row.headers, *row.context_headers("c", 3))]
    assert [name for name, _ in ours] == [name for name, _ in of_kafka]
    for (name, value), (_, kafkas) in zip(ours, of_kafka, strict=True):
        if name.removeprefix(PREFIX) not in OF_LANGUAGE:
            assert value == kafkas, name
    assert {stage.value for stage in Stage} == set(stages)
