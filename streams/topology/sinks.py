"""Sinks as functions. A record is serialized at once, since the program may change its value later.

Both kinds of sinks repeat the serialization: a common function would cost a call for each record.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from streams.errors import SerializationError, StreamsError
from streams.graph import SinkNode
from streams.processors.metrics import NodeMetrics
from streams.processors.record import Headers, Process, Record, RecordContext
from streams.processors.wiring import TaskState
from streams.serdes import Serde
from streams.topology.failures import Failures
from streams.topology.sink_output import Row, Written


def sink(
    node: SinkNode, written: Written, metrics: NodeMetrics, state: TaskState, failures: Failures
) -> Process:
    """Return the function that serializes a sink's records and adds them to ``written``."""
    if node.topic is None or node.partitioner is not None:
        return _choosing_sink(node, written, metrics, state, failures)
    topic, append = node.topic, written.rows_of(node.topic).append
    written_to = state.topic_name(topic)
    key_of: Callable[[Any], bytes] = node.key_serde.of_topic(written_to, is_key=True).serialize
    value_of: Callable[[Any], bytes] = node.value_serde.of_topic(written_to, is_key=False).serialize

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        try:
            row = (
                timestamp,
                None if key is None else key_of(key),
                None if value is None else value_of(value),
                headers,
            )
        except Exception as error:
            _left_out(node, topic, error, Record(key, value, timestamp, headers), metrics, failures)
            return
        append(row)
        metrics.process_total += 1

    return process


def _choosing_sink(
    node: SinkNode, written: Written, metrics: NodeMetrics, state: TaskState, failures: Failures
) -> Process:
    """Return the function of a sink that chooses topic, partition or both for each record."""
    serdes: dict[str, tuple[Serde[Any], Serde[Any]]] = {}
    place = _placing(node, written, metrics)

    def serdes_of(topic: str) -> tuple[Serde[Any], Serde[Any]]:
        name = state.topic_name(topic)
        key, value = node.key_serde.of_topic(name, is_key=True), node.value_serde.of_topic(name, is_key=False)
        serdes[topic] = key, value
        return key, value

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        topic = node.topic
        if node.choose_topic is not None:
            context = RecordContext(state.topic, state.partition, state.offset, timestamp, headers)
            topic = _checked_topic(node, node.choose_topic(key, value, context))
        assert topic is not None, "a sink has a topic, or chooses one"
        partitions = state.partition_count(topic)
        key_serde, value_serde = serdes.get(topic) or serdes_of(topic)
        try:
            row = (
                timestamp,
                None if key is None else key_serde.serialize(key),
                None if value is None else value_serde.serialize(value),
                headers,
            )
        except Exception as error:
            _left_out(node, topic, error, Record(key, value, timestamp, headers), metrics, failures)
            return
        place(topic, partitions, key, value, row)

    return process


def _placing(
    node: SinkNode, written: Written, metrics: NodeMetrics
) -> Callable[[str, int, Any, Any, Row], None]:
    rows_of, rows_at, partitioner = written.rows_of, written.rows_at, node.partitioner

    def place(topic: str, partitions: int, key: Any, value: Any, row: Row) -> None:
        answer = None if partitioner is None else partitioner(topic, key, value, partitions)
        if answer.__class__ is int and 0 <= answer < partitions:
            rows_at(topic, answer).append(row)
            metrics.process_total += 1
            return
        chosen = _checked(node, answer, topic, partitions)
        if chosen is None:
            rows_of(topic).append(row)
        elif not chosen:
            metrics.dropped()
            return
        else:
            for partition in chosen:
                rows_at(topic, partition).append(row)
        metrics.process_total += 1

    return place


def _checked(
    node: SinkNode, answer: int | Collection[int] | None, topic: str, partitions: int
) -> list[int] | None:
    """Return the partitions that a partitioner has chosen, without duplicates; None leaves it to the key.

    Raises StreamsError for a partition that the topic does not have.
    """
    if answer is None:
        return None
    chosen = [answer] if isinstance(answer, int) else list(dict.fromkeys(answer))
    for partition in chosen:
        if not 0 <= partition < partitions:
            raise StreamsError(
                f"{node.name}: its partitioner chose partition {partition} of {topic!r}, "
                f"which has {partitions}"
            )
    return chosen


def _checked_topic(node: SinkNode, topic: object) -> str:
    if not isinstance(topic, str) or not topic:
        raise StreamsError(f"{node.name}: the topic chosen for a record is {topic!r}, not a name")
    return topic


def _left_out(
    node: SinkNode,
    topic: str,
    error: Exception,
    record: Record[Any, Any],
    metrics: NodeMetrics,
    failures: Failures,
) -> None:
    """Have the production handler decide: raise an error, or count the record as dropped."""
    problem = SerializationError(
        f"{node.name} cannot serialize {record.key!r}, {record.value!r}: {error}", topic
    )
    failures.output(node.name, problem, error, record)
    metrics.dropped()
