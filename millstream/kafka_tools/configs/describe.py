"""The settings, quotas and credentials that `kafka-configs --describe` prints."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_client import ResourceType
from millstream.kafka_tools.configs.entities import (
    BROKER,
    CLIENT,
    DEFAULT,
    GROUP,
    IP,
    LOGGER,
    METRICS,
    TOPIC,
    USER,
    entity_names,
    entity_types,
)
from millstream.kafka_tools.configs.quotas import describe_quotas
from millstream.kafka_tools.configs.resources import check_topic_name, list_resources, read_entries
from millstream.kafka_tools.configs.scram import describe_credentials
from millstream.kafka_tools.options.arguments import OptionValues
from millstream.terminal.session import Session


async def describe(session: Session, values: OptionValues) -> None:
    """Print the settings of an entity, or of all of its type."""
    types, names = entity_types(values), entity_names(values)
    if types[0] in (USER, CLIENT, IP):
        await describe_quotas(session, types, names)
        # Credentials are a user's, neither a client's nor everybody's.
        if types[0] != IP and CLIENT not in types and DEFAULT not in names:
            await describe_credentials(session, names)
    else:
        await _describe_resources(session, types[0], names[:1], everything=values.has("all"))


async def _describe_resources(session: Session, type: str, names: Sequence[str], *, everything: bool) -> None:
    if names and not everything and not await _is_there(session, type, names[0]):
        print(f"The {type[:-1]} '{names[0]}' doesn't exist and doesn't have dynamic config.")
        return
    for name in names or await _all(session, type):
        if name == DEFAULT:
            print(f"Default configs for {type} in the cluster are:")
        else:
            print(f"{'All' if everything else 'Dynamic'} configs for {type[:-1]} {name} are:")
        for entry in await read_entries(session, type, name, everything=everything):
            print(f"  {entry}")


async def _is_there(session: Session, type: str, name: str) -> bool:
    if type == TOPIC:
        check_topic_name(name)
    return name in await _all(session, type)


async def _all(session: Session, type: str) -> list[str]:
    if type == TOPIC:
        return sorted(await session.admin.list_topics())
    if type in (BROKER, LOGGER):
        return [*map(str, (await session.client.metadata((), refresh=True)).brokers), DEFAULT]
    if type == METRICS:
        return await list_resources(session, ResourceType.CLIENT_METRICS)
    assert type == GROUP
    groups = sorted(group.group_id for group in await session.admin.list_groups())
    return list(dict.fromkeys([*groups, *await list_resources(session, ResourceType.GROUP)]))
