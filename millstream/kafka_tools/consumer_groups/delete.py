"""Deletion of groups and of their offsets: `kafka-consumer-groups --delete` and `--delete-offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafka_client import TopicPartition
from kafka_client.errors import ErrorCode, KafkaError, error_for
from kafka_client.fetcher.offsets import by_topic
from kafka_client.group.coordinator import ask_coordinator
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from millstream.kafka_tools.consumer_groups.groups import list_names
from millstream.kafka_tools.consumer_groups.terms import print_error
from millstream.kafka_tools.consumer_groups.topics import parse_topic_partitions
from millstream.kafka_tools.java.java_errors import JavaError, of_answer
from millstream.kafka_tools.options.arguments import OptionValues
from millstream.terminal.session import Session

OF_THE_GROUP = (
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NON_EMPTY_GROUP,
)
OF_PARTITIONS = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
NOT_DESCRIBED = -1
"""The partition number that means every partition of a topic that does not exist."""


async def delete_groups(session: Session, values: OptionValues) -> None:
    """Delete groups, and print which were deleted."""
    names = await list_names(session) if values.has("all-groups") else values.texts("group")
    failed: dict[str, JavaError] = {}
    for name in dict.fromkeys(names):
        try:
            await session.admin.delete_groups([name])
        except KafkaError as error:
            failed[name] = of_answer(error)
    _print_groups(names, failed)


def tell_unreachable(values: OptionValues, error: JavaError) -> None:
    """Print the error for each group, as Java does if no broker can be reached."""
    names = values.texts("group")
    _print_groups(names, dict.fromkeys(names, error))


def _print_groups(names: Iterable[str], failed: Mapping[str, JavaError]) -> None:
    deleted = ", ".join(f"'{name}'" for name in sorted({*names} - failed.keys()))
    if not failed:
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print_error("Deletion of some consumer groups failed:")
    for name in sorted(failed):
        print(f"* Group '{name}' could not be deleted due to: {failed[name].full_text}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")


async def delete_offsets(session: Session, values: OptionValues) -> None:
    """Delete a group's offsets of topics, and print what became of each partition."""
    group, topics = values.text("group") or "", values.texts("topic")
    outcomes: dict[TopicPartition, KafkaError | None] = {}
    tps = [tp for topic in topics if ":" in topic for tp in parse_topic_partitions(topic)]
    for topic in (topic for topic in topics if ":" not in topic):
        try:
            described = await session.admin.describe_topics([topic])
            tps += [TopicPartition(topic, partition) for partition in described[topic].partitions]
        except KafkaError as error:
            outcomes[TopicPartition(topic, NOT_DESCRIBED)] = error
    deleted, top = await _delete(session, group, tps)
    _print_outcome(group, top)
    _print_partitions(outcomes | deleted)


async def _delete(
    session: Session, group: str, tps: Sequence[TopicPartition]
) -> tuple[dict[TopicPartition, KafkaError | None], KafkaError | None]:
    """Delete offsets. Return the error or None of each partition, and the first error or None."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=p) for p in partitions]
            )
            for name, partitions in by_topic(tps).items()
        ],
    )

    async def ask() -> OffsetDeleteResponse:
        response: OffsetDeleteResponse = await ask_coordinator(session.client, group, request)
        error = error_for(response.error_code) if response.error_code else None
        if error is not None and error.retriable and error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
        return response

    response = await session.client.retrying(ask)
    if response.error_code:
        error = error_for(response.error_code)
        return dict.fromkeys(tps, error), error
    outcomes = {
        TopicPartition(topic.name, p.partition_index): error_for(p.error_code) if p.error_code else None
        for topic in response.topics
        for p in topic.partitions
    }
    return outcomes, next((error for error in outcomes.values() if error is not None), None)


def _print_outcome(group: str, error: KafkaError | None) -> None:
    if error is None:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif error.code in OF_THE_GROUP:
        print_error(str(of_answer(error)))
    elif error.code in OF_PARTITIONS:
        print_error("Encountered some partition-level error, see the follow-up details.")
    else:
        print_error(f"Encountered some unknown error: {error.code.name}")


def _print_partitions(outcomes: dict[TopicPartition, KafkaError | None]) -> None:
    width = max([15, *(len(tp.topic) for tp in outcomes)])
    rows: Iterable[tuple[str, str, str]] = (
        (
            tp.topic,
            str(tp.partition) if tp.partition >= 0 else "-",
            "Successful" if error is None else f"Error: {of_answer(error).full_text}",
        )
        for tp, error in sorted(outcomes.items(), key=lambda each: f"{each[0].topic}{each[0].partition}")
    )
    for topic, partition, status in (("TOPIC", "PARTITION", "STATUS"), *rows):
        print(f"\n{topic:<{width}} {partition:<10} {status:<15}", end="")
    print()
