"""Quotas of users, clients and IP addresses (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from kafka_client.errors import KafkaError
from kafka_client.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from kafka_client.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from millstream.kafka_tools.configs.entities import CLIENT, DEFAULT, IP, USER
from millstream.kafka_tools.java.java_errors import COMMON, JavaError, illegal_argument
from millstream.kafka_tools.java.java_numbers import shown_double
from millstream.terminal.session import Session

QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_QUOTAS = ("connection_creation_rate",)
ENTITIES = {USER: "user", CLIENT: "client-id", IP: "ip"}
"""The entity types by the names that brokers use."""
SHOWN = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
EXACT, OF_DEFAULT, ANY = 0, 1, 2
"""Match types of a component of the filter."""

Entity = tuple[tuple[str, str | None], ...]
"""Types and names, None for the default."""


def invalid_configuration(message: str) -> JavaError:
    """Return Kafka's InvalidConfigurationException with this message."""
    return JavaError(f"{COMMON}.errors.InvalidConfigurationException", message)


async def describe_quotas(session: Session, types: Sequence[str], names: Sequence[str]) -> None:
    """Print quotas, a line for each entity."""
    quotas = await _read(session, types, names)
    for entity in sorted(quotas, key=_key):
        by_type = dict(entity)
        parts = [
            f"the default {shown}" if by_type[type] is None else f"{shown} '{by_type[type]}'"
            for type, shown in SHOWN.items()
            if type in by_type
        ]
        limits = quotas[entity]
        pairs = [f"{key}={shown_double(limits[key])}" for key in sorted(limits)]
        print(f"Quota configs for {', '.join(parts)} are {', '.join(pairs)}")


def _key(entity: Entity) -> list[tuple[str, str]]:
    """Return what entities are sorted by. A default entity comes before those with names."""
    return [(type, name or "") for type, name in entity]


async def _read(
    session: Session, types: Sequence[str], names: Sequence[str]
) -> dict[Entity, dict[str, float]]:
    request = DescribeClientQuotasRequest(
        components=[_component(type, name) for type, name in zip_longest(types, names)], strict=True
    )

    async def ask() -> dict[Entity, dict[str, float]]:
        response: DescribeClientQuotasResponse = await session.client.request(request)
        if response.error_code:
            raise _refusal(response.error_code, response.error_message)
        return {
            tuple((each.entity_type, each.entity_name) for each in entry.entity): {
                value.key: value.value for value in entry.values
            }
            for entry in response.entries or ()
        }

    return await session.client.retrying(ask)


def _component(type: str | None, name: str | None) -> ComponentData:
    if type is None:
        raise illegal_argument("More entity names specified than entity types")
    if name is None:
        return ComponentData(entity_type=ENTITIES[type], match_type=ANY)
    if name == DEFAULT:
        return ComponentData(entity_type=ENTITIES[type], match_type=OF_DEFAULT)
    return ComponentData(entity_type=ENTITIES[type], match_type=EXACT, match=name)


async def alter_quotas(
    session: Session,
    types: Sequence[str],
    names: Sequence[str],
    added: Mapping[str, str],
    deleted: Sequence[str],
) -> None:
    """Set the quotas in `added`, and delete those in `deleted`.

    Raises JavaError if a quota in `deleted` is not set.
    """
    there = next(iter((await _read(session, types, names)).values()), {})
    if missing := [key for key in deleted if key not in there]:
        raise invalid_configuration(f"Invalid config(s): {','.join(missing)}")
    ops = [OpData(key=key, value=_quota(key, text)) for key, text in added.items()]
    ops += [OpData(key=key, remove=True) for key in deleted]
    entity = [
        EntityData(entity_type=ENTITIES[type], entity_name=name or None)
        for type, name in zip(types, names, strict=True)
    ]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=ops)])
    response: AlterClientQuotasResponse = await session.client.request(request)
    for entry in response.entries:
        if entry.error_code:
            raise _refusal(entry.error_code, entry.error_message)


def _quota(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise illegal_argument(f"Cannot parse quota configuration value for {key}: {text}") from None


def _refusal(code: int, message: str | None) -> KafkaError:
    error = KafkaError(code)
    error.broker_message = message
    return error
