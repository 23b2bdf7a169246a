"""Describing and changing the settings of one topic, broker, group or logger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_client import ConfigEntry, ConfigOp, ResourceType
from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
from kafka_client.properties import nearest
from millstream.commands.config.keys import SOURCES, read_settings, with_nearest
from millstream.terminal.output import Row
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound, UsageError

if TYPE_CHECKING:
    from millstream.commands.config.kind import Kind

Changes = Mapping[str, str | tuple[ConfigOp, str] | None]

ALL_BROKERS = "default"
_TYPES = {
    "topic": ResourceType.TOPIC,
    "broker": ResourceType.BROKER,
    "group": ResourceType.GROUP,
    "broker-logger": ResourceType.BROKER_LOGGER,
}
_UNSET = 5
"""The DescribeConfigs source of a default value."""


async def described(
    session: Session, kind: Kind, name: str, keys: Sequence[str] | None, *, everything: bool
) -> list[Row]:
    """Return a row for each key in `keys`; without `keys` for all (`everything`) or those with a set value.

    Raises NotFound if the entity has no such key.
    """
    entries = await _entries(session, kind, name)
    for key in keys or ():
        if key not in entries:
            near = nearest(key, entries)
            raise NotFound(f"{kind} {name!r} has no key {key}" + (f"; {near}?" if near else ""))
    return [
        {
            "key": key,
            "value": entry.value,
            "source": SOURCES.get(entry.source, "not known"),
            "default": entry.default,
            "read_only": entry.read_only,
            "sensitive": entry.sensitive,
        }
        for key, entry in sorted(entries.items())
        if (key in keys if keys else everything or entry.source != _UNSET)
    ]


def changes(settings: Sequence[str], append: Sequence[str], subtract: Sequence[str]) -> Changes:
    """Return the changes of the command line by key. Raises UsageError if a key is named twice."""
    requested: dict[str, str | tuple[ConfigOp, str] | None] = {**read_settings(settings, "KEY=VALUE")}
    for texts, what, operation in (
        (append, "--append", ConfigOp.APPEND),
        (subtract, "--subtract", ConfigOp.SUBTRACT),
    ):
        for key, value in read_settings(texts, what).items():
            if key in requested:
                raise UsageError(f"{key} is named twice")
            requested[key] = operation, value
    return requested


async def change(session: Session, kind: Kind, name: str, requested: Changes, *, dry_run: bool) -> None:
    """Change keys, or check the changes with `dry_run`.

    Raises KafkaError if the broker refuses; its message names the nearest known key to an unknown one.
    """
    resource, broker_name = _resource(kind, name)
    if kind == "topic":
        await session.admin.describe_topics([name])
    try:
        await session.admin.incremental_alter_configs(broker_name, requested, resource, validate_only=dry_run)
    except KafkaError as error:
        if error.code not in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST):
            raise
        raise with_nearest(error, requested, await _existing_keys(session, kind, name)) from None
    session.tell(f"{kind} {name}: {', '.join(requested)} {'could be changed' if dry_run else 'changed'}")


async def _existing_keys(session: Session, kind: Kind, name: str) -> Sequence[str]:
    """Return the entity's keys; empty if the broker does not describe them."""
    try:
        return list(await _entries(session, kind, name))
    except MillstreamError:
        return ()


async def _entries(session: Session, kind: Kind, name: str) -> dict[str, ConfigEntry]:
    resource, broker_name = _resource(kind, name)
    return await session.admin.describe_configs(broker_name, resource, defaults=True)


def _resource(kind: Kind, name: str) -> tuple[ResourceType, str]:
    """Return the protocol's resource type and name. Raises UsageError if a broker's id is not a number."""
    if kind == "broker" and name == ALL_BROKERS:
        return ResourceType.BROKER, ""
    if kind in ("broker", "broker-logger") and not name.isdecimal():
        raise UsageError(f"{kind} {name}: a broker's id is a number (millstream cluster brokers)")
    return _TYPES[kind], name
