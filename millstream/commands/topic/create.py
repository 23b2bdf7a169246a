"""New topics as the command line describes them, and hints for topics that a broker refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kafka_client import NewTopic
from kafka_client.errors import ErrorCode, KafkaError
from millstream.commands.config.keys import known_topic_keys, read_settings, with_nearest
from millstream.terminal.status import UsageError


def new_topic(
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    config: Sequence[str],
    assignment: str | None,
) -> NewTopic:
    """Return a topic to create. Raises UsageError if a setting or the assignment cannot be read."""
    return NewTopic(
        name,
        -1 if partitions is None else partitions,
        -1 if replication_factor is None else replication_factor,
        read_settings(config, "--config"),
        {} if assignment is None else dict(enumerate(_read_assignment(assignment))),
    )


def _read_assignment(text: str) -> list[list[int]]:
    try:
        partitions = [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError:
        raise UsageError(
            f"--replica-assignment {text}: numbers of brokers with colons, partitions with commas"
        ) from None
    if len({len(brokers) for brokers in partitions}) != 1:
        raise UsageError(f"--replica-assignment {text}: every partition needs as many replicas as the first")
    return partitions


@contextmanager
def refused(topic: NewTopic) -> Iterator[None]:
    """Add the nearest known key to a broker's refusal of the topic's settings."""
    try:
        yield
    except KafkaError as error:
        if error.code is not ErrorCode.INVALID_CONFIG:
            raise
        raise with_nearest(error, topic.configs, known_topic_keys()) from None
