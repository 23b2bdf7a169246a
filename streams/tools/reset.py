"""The reset of an application: it moves input offsets and deletes internal topics, as Kafka's tool does.

The output is close to that of Kafka's tool. Local state may stay: its changelogs are deleted, so the next
start discards and restores it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kafka_client import Admin, Client, TopicPartition
from kafka_client.errors import ConfigError, KafkaError
from streams.errors import StreamsError
from streams.tools.targets import Target

_INTERNAL = re.compile(
    r"-changelog$|-repartition$|-subscription-registration-topic$|-subscription-response-topic$"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic$"
)
INACTIVE = ("Empty", "Dead")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """A request to reset an application."""

    application_id: str
    inputs: Sequence[str] = ()
    """The input topics whose offsets are moved to `target`."""
    intermediates: Sequence[str] = ()
    """The topics whose offsets are moved to their ends."""
    internal: Sequence[str] = ()
    """The internal topics to delete; all of them if empty."""
    target: Target = field(default_factory=Target)
    dry_run: bool = False
    """True: only print the actions."""
    force: bool = False
    """True: remove remaining members from the group."""


async def reset(client: Client, request: Reset, say: Say, warn: Say) -> bool:
    """Reset an application, and print the actions. Return False if topics were not found or not deleted.

    Raises StreamsError while the application has members, unless they are removed by force.
    """
    admin = Admin(client)
    await _check_stopped(admin, request, say)
    if request.dry_run:
        say("----Dry run displays the actions which will be performed when running Streams Reset Tool----")
    if request.intermediates:
        say("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    topics = await admin.list_topics()
    internal = _internal(request, topics)
    well = await _move_inputs(
        admin, request, {name: each.partition_count for name, each in topics.items()}, say, warn
    )
    return await _delete(admin, request, internal, say, warn) and well


async def _check_stopped(admin: Admin, request: Reset, say: Say) -> None:
    group = request.application_id
    description = (await admin.describe_groups([group]))[group]
    if not description.members and description.state in INACTIVE:
        return
    if not request.force or request.dry_run:
        members = ", ".join(f"{each.client_id} ({each.client_host})" for each in description.members)
        raise StreamsError(
            f"Consumer group '{group}' is still active and has following members: {members}. Make sure to "
            "stop all running application instances before running the reset tool. You can use option "
            "'--force' to remove active members from the group."
        )
    say(f"Force deleting all active members in the group: {group}")
    await admin.remove_members(group, "the application is reset")


def _internal(request: Reset, topics: Iterable[str]) -> list[str]:
    """Return the internal topics to delete. Raises ConfigError for a topic that is not one of them."""
    prefix = f"{request.application_id}-"
    existing = sorted(each for each in topics if each.startswith(prefix) and _INTERNAL.search(each))
    if not request.internal:
        return existing
    if foreign := sorted(set(request.internal) - set(existing)):
        allowed = f"internal topics of the application: {', '.join(existing) or 'it has none'}"
        raise ConfigError("--internal-topics", ", ".join(foreign), allowed)
    return sorted(request.internal)


async def _move_inputs(admin: Admin, request: Reset, partitions: dict[str, int], say: Say, warn: Say) -> bool:
    group, inputs, intermediates = request.application_id, request.inputs, request.intermediates
    if not inputs and not intermediates:
        say("No input or intermediate topics specified. Skipping seek.")
        return True
    if inputs:
        say(f"Reset-offsets for input topics {_listed(inputs)}")
    if intermediates:
        say(f"Seek-to-end for intermediate topics {_listed(intermediates)}")
    missing = [
        *_missing("input", inputs, partitions, say),
        *_missing("intermediate", intermediates, partitions, say),
    ]
    to_end = _partitions(set(intermediates) - set(missing), partitions)
    to_target = _partitions(set(inputs) - set(missing) - set(intermediates), partitions)
    planned: dict[TopicPartition, int] = {}
    if to_target:
        moved = await request.target.offsets(admin, to_target, group, warn)
        say(f"Following input topics offsets will be reset to (for consumer group {group})")
        for tp, offset in sorted(moved.items()):
            say(f"Topic: {tp.topic} Partition: {tp.partition} Offset: {offset}")
        planned |= moved
    if to_end:
        say(f"Following intermediate topics offsets will be reset to end (for consumer group {group})")
        for topic in sorted({tp.topic for tp in to_end}):
            say(f"Topic: {topic}")
        planned |= await Target(to_latest=True).offsets(admin, to_end, group, warn)
    if planned and not request.dry_run:
        await admin.alter_group_offsets(group, planned)
    say("Done.")
    return not missing


def _missing(kind: str, topics: Sequence[str], partitions: dict[str, int], say: Say) -> list[str]:
    missing = [topic for topic in topics if topic not in partitions]
    if missing:
        say(f"Following {kind} topics are not found, skipping them")
        for topic in missing:
            say(f"Topic: {topic}")
    return missing


def _partitions(topics: Iterable[str], partitions: dict[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in sorted(topics) for number in range(partitions[topic])]


async def _delete(admin: Admin, request: Reset, topics: Sequence[str], say: Say, warn: Say) -> bool:
    how = "specified" if request.internal else "inferred"
    say(f"Deleting {how} internal topics {_listed(topics)}")
    well = True
    for topic in () if request.dry_run else topics:
        try:
            await admin.delete_topics([topic], missing_ok=True)
        except KafkaError as error:
            warn(f"ERROR: deleting topic {topic}: {error}")
            well = False
    say("Done.")
    return well


def _listed(topics: Iterable[str]) -> str:
    return f"[{', '.join(topics)}]"
