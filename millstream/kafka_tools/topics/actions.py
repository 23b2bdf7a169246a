"""The actions of `kafka-topics` except `--describe`: list, create, alter and delete topics."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_client import NewTopic
from kafka_client.errors import ErrorCode, KafkaError
from millstream.kafka_tools.java.java_errors import illegal_argument
from millstream.kafka_tools.options.arguments import OptionValues
from millstream.kafka_tools.options.assignments import parse_replica_assignment
from millstream.kafka_tools.options.topic_config import parse_topic_config
from millstream.kafka_tools.options.topic_filter import chosen
from millstream.terminal.session import Session

COLLISION = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could "
    "collide. To avoid issues it is best to use either, but not both."
)


def _new_topic(values: OptionValues) -> NewTopic:
    """Return the topic that the options describe. They are checked in Java's order."""
    name = values.text("topic") or ""
    partitions, factor = values.integer("partitions"), values.integer("replication-factor")
    assignments = parse_replica_assignment(values.text("replica-assignment") or "")
    config = parse_topic_config(values.texts("config"))
    return NewTopic(
        name,
        -1 if partitions is None else partitions,
        -1 if factor is None else factor,
        config,
        dict(enumerate(assignments)),
    )


async def create_topic(session: Session, values: OptionValues) -> None:
    """Create a topic."""
    topic = _new_topic(values)
    if "." in topic.name or "_" in topic.name:
        print(COLLISION)
    if values.has("replication-factor") and not 1 <= topic.replication_factor <= 32767:
        raise illegal_argument("The replication factor must be between 1 and 32767 inclusive")
    if values.has("partitions") and topic.num_partitions < 1:
        raise illegal_argument("The partitions must be greater than 0")
    try:
        await session.admin.create_topics([topic])
    except KafkaError as error:
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and values.has("if-not-exists"):
            return
        raise
    print(f"Created topic {topic.name}.")


async def list_topics(session: Session, values: OptionValues) -> None:
    """Print topics' names."""
    print("\n".join(await find_topics(session, values)))


async def alter_topics(session: Session, values: OptionValues) -> None:
    """Give topics more partitions."""
    new = _new_topic(values)
    names = await _existing(session, values)
    described = await session.admin.describe_topics(names) if names else {}
    assignments = {
        name: [list(brokers) for _, brokers in sorted(new.assignments.items())][topic.partition_count :]
        for name, topic in described.items()
        if new.assignments
    }
    if names:
        counts = dict.fromkeys(names, new.num_partitions)
        await session.admin.create_partitions(counts, assignments=assignments)


async def delete_topics(session: Session, values: OptionValues) -> None:
    """Delete topics."""
    await session.admin.delete_topics(await _existing(session, values))


async def find_topics(session: Session, values: OptionValues) -> list[str]:
    """Return the names of the topics that `--topic` matches, or all without it."""
    names = await session.admin.list_topics()
    return chosen(names, values.text("topic"), exclude_internal=values.has("exclude-internal"))


async def _existing(session: Session, values: OptionValues) -> Sequence[str]:
    names = await find_topics(session, values)
    check_exists(values, names)
    return names


def check_exists(values: OptionValues, names: Sequence[str]) -> None:
    """Raise JavaError if no topic matches `--topic`, unless `--if-exists` is present."""
    if values.text("topic") and not values.has("if-exists") and not names:
        raise illegal_argument(f"Topic '{values.text('topic')}' does not exist as expected")
