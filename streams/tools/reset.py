"""An application begins anew: its inputs are moved and its internal topics deleted, as Kafka's tool does.

What it prints is near to what that prints. Local state may stay: it belongs to changelogs that are gone then,
and is restored anew.
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
    """What to do. Topics of ``internal`` are deleted of those found; all of them if it is empty."""

    application_id: str
    inputs: Sequence[str] = ()
    intermediates: Sequence[str] = ()
    internal: Sequence[str] = ()
    target: Target = field(default_factory=Target)
    dry_run: bool = False
    force: bool = False


async def reset(client: Client, wanted: Reset, say: Say, warn: Say) -> bool:
    """Reset an application; False if topics were not found or not deleted, which is said.

    Raises StreamsError while it has members that run.
    """
    admin = Admin(client)
    await _check_stopped(admin, wanted, say)
    if wanted.dry_run:
        say("----Dry run displays the actions which will be performed when running Streams Reset Tool----")
    if wanted.intermediates:
        say("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    topics = await admin.list_topics()
    internal = _internal(wanted, topics)
    well = await _move_inputs(
        admin, wanted, {name: each.partition_count for name, each in topics.items()}, say, warn
    )
    return await _delete(admin, wanted, internal, say, warn) and well


async def _check_stopped(admin: Admin, wanted: Reset, say: Say) -> None:
    group = wanted.application_id
    description = (await admin.describe_groups([group]))[group]
    if not description.members and description.state in INACTIVE:
        return
    if not wanted.force or wanted.dry_run:
        members = ", ".join(f"{each.client_id} ({each.client_host})" for each in description.members)
        raise StreamsError(
            f"Consumer group '{group}' is still active and has following members: {members}. Make sure to "
            "stop all running application instances before running the reset tool. You can use option "
            "'--force' to remove active members from the group."
        )
    say(f"Force deleting all active members in the group: {group}")
    await admin.remove_members(group, "the application is reset")


def _internal(wanted: Reset, topics: Iterable[str]) -> list[str]:
    """The internal topics to delete."""
    prefix = f"{wanted.application_id}-"
    found = sorted(each for each in topics if each.startswith(prefix) and _INTERNAL.search(each))
    if not wanted.internal:
        return found
    if foreign := sorted(set(wanted.internal) - set(found)):
        allowed = f"internal topics of the application: {', '.join(found) or 'it has none'}"
        raise ConfigError("--internal-topics", ", ".join(foreign), allowed)
    return sorted(wanted.internal)


async def _move_inputs(admin: Admin, wanted: Reset, partitions: dict[str, int], say: Say, warn: Say) -> bool:
    group, inputs, intermediates = wanted.application_id, wanted.inputs, wanted.intermediates
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
        moved = await wanted.target.offsets(admin, to_target, group, warn)
        say(f"Following input topics offsets will be reset to (for consumer group {group})")
        for tp, offset in sorted(moved.items()):
            say(f"Topic: {tp.topic} Partition: {tp.partition} Offset: {offset}")
        planned |= moved
    if to_end:
        say(f"Following intermediate topics offsets will be reset to end (for consumer group {group})")
        for topic in sorted({tp.topic for tp in to_end}):
            say(f"Topic: {topic}")
        planned |= await Target(to_latest=True).offsets(admin, to_end, group, warn)
    if planned and not wanted.dry_run:
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


async def _delete(admin: Admin, wanted: Reset, topics: Sequence[str], say: Say, warn: Say) -> bool:
    how = "specified" if wanted.internal else "inferred"
    say(f"Deleting {how} internal topics {_listed(topics)}")
    well = True
    for topic in () if wanted.dry_run else topics:
        try:
            await admin.delete_topics([topic], missing_ok=True)
        except KafkaError as error:
            warn(f"ERROR: deleting topic {topic}: {error}")
            well = False
    say("Done.")
    return well


def _listed(topics: Iterable[str]) -> str:
    return f"[{', '.join(topics)}]"
