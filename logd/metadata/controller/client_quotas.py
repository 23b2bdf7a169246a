"""Client quotas: their changes and their description (KIP-546), with the errors of Kafka's controller."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.client_quotas import (
    CLIENT_ID,
    CLIENT_KEYS,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    IP,
    IP_KEYS,
    PRODUCER_BYTE_RATE,
    USER,
    QuotaEntity,
    configs_change,
    configs_of,
    entity_of,
    quotas_of,
)
from logd.metadata.controller.decision import Decision
from logd.metadata.image import ClusterImage

NAME_LENGTH_MAX: Final = 1_000
"""A bound that Kafka does not have: a write that ZooKeeper cannot take would end the controller's term."""
EXACT, OF_DEFAULT, ANY = 0, 1, 2
"""Match types of a filter's component."""
_LARGEST: Final = {
    PRODUCER_BYTE_RATE: (2**63 - 1, "a LONG"),
    CONSUMER_BYTE_RATE: (2**63 - 1, "a LONG"),
    CONNECTION_CREATION_RATE: (2**31 - 1, "an INT"),
}
"""The keys of whole numbers, with their largest value and its type in Kafka, after its article."""
_EPSILON: Final = 1e-6

Ops = Sequence[tuple[str, float | None]]
"""Keys with new values, None to remove a quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """The changes of one entity, named by (type, name) as in the request."""

    names: tuple[tuple[str, str | None], ...]
    ops: Ops


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part of the filter of a description."""

    type: str
    match_type: int
    match: str | None = None


Altered = list[KafkaError | None]
"""The error of each alteration, or None, in the request's order."""


def alter_quotas(image: ClusterImage, alterations: Sequence[Alteration]) -> Decision[Altered]:
    """Return the changes of entities without an error; an error of one does not affect others."""
    altered: Altered = []
    configs: dict[QuotaEntity, dict[str, str]] = {}
    for each in alterations:
        try:
            entity = _checked_entity(each.names)
            if entity in configs:
                raise _invalid(f"Ignoring duplicate entity {_shown(entity)}")
            configs[entity] = _altered(configs_of(image, entity), entity, each.ops)
        except KafkaError as error:
            altered.append(error)
        else:
            altered.append(None)
    changes = [
        configs_change(entity, after)
        for entity, after in configs.items()
        if after != configs_of(image, entity)
    ]
    return Decision(changes, altered)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _shown(entity: QuotaEntity) -> str:
    names = ", ".join(f"{type}={'<default>' if name is None else name}" for type, name in entity)
    return f"ClientQuotaEntity(entries={{{names}}})"


def _checked_entity(names: Sequence[tuple[str, str | None]]) -> QuotaEntity:
    by_type: dict[str, str | None] = {}
    for type, name in names:
        if type in by_type:
            raise _invalid(f"Invalid client quota entity, duplicate entity entry {type}")
        if type not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {type}")
        if name == "":
            raise _invalid(f"Empty {type} not supported")
        if name is not None and len(name) > NAME_LENGTH_MAX:
            raise _invalid(f"{type} of {len(name)} characters, {NAME_LENGTH_MAX} are allowed")
        by_type[type] = name
    if not by_type:
        raise _invalid("Invalid empty client quota entity")
    if IP in by_type and len(by_type) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        )
    address = by_type.get(IP)
    if address is not None and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")
    return entity_of(by_type)


def _is_address(text: str) -> bool:
    """Return True for an IP address.

    Kafka also takes names of hosts, and asks the system's resolver. That may block for seconds.
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _altered(current: Mapping[str, str], entity: QuotaEntity, ops: Ops) -> dict[str, str]:
    keys = IP_KEYS if entity[0][0] == IP else CLIENT_KEYS
    configs = dict(current)
    altered = set()
    for key, value in ops:
        if key in altered:
            raise _invalid(f"Duplicate quota key {key} not updating quota for this entity {_shown(entity)}")
        altered.add(key)
        if value is None:
            if key in keys:  # a key such as a user's credentials stays; Kafka says no error
                configs.pop(key, None)
        elif key not in keys:
            raise _invalid(f"Invalid configuration key {key}")
        else:
            configs[key] = _text(key, value)
    return configs


def _text(key: str, value: float) -> str:
    """Return a quota as Kafka 3 writes it to ZooKeeper: whole numbers without a fraction."""
    if not value > 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    if key not in _LARGEST and math.isinf(value):  # Kafka takes it for a quota without an effect
        raise _invalid(f"Quota {key} must be finite; remove it for no limit")
    if key not in _LARGEST:
        return repr(float(value))
    largest, type = _LARGEST[key]
    if value > largest:
        raise _invalid(f"Proposed value for {key} is too large for {type}.")
    if abs(value % 1.0) > _EPSILON:
        raise _invalid(f"{key} cannot be a fractional value.")
    return str(int(value))


Described = list[tuple[QuotaEntity, dict[str, float]]]


def describe_quotas(image: ClusterImage, components: Sequence[Component], *, strict: bool) -> Described:
    """Return the entities that match all components; with `strict`, those of no other types.

    Raises KafkaError(INVALID_REQUEST, UNSUPPORTED_VERSION).
    """
    by_type = _checked_filter(components)
    return [
        (entity, quotas)
        for entity, quotas in quotas_of(image)
        if _matches(dict(entity), by_type, strict=strict)
    ]


def _matches(names: Mapping[str, str | None], by_type: Mapping[str, Component], *, strict: bool) -> bool:
    if strict and (names.keys() != by_type.keys()):
        return False
    return all(
        type in names and (component.match_type == ANY or names[type] == component.match)
        for type, component in by_type.items()
    )


def _checked_filter(components: Sequence[Component]) -> dict[str, Component]:
    by_type: dict[str, Component] = {}
    for each in components:
        if not each.type:
            raise _invalid("Invalid empty entity type.")
        if each.type in by_type:
            raise _invalid(f"Entity type {each.type} cannot appear more than once in the filter.")
        if each.type not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {each.type}")
        if each.match_type == EXACT and each.match is None:
            raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        if each.match_type in (OF_DEFAULT, ANY) and each.match is not None:
            name = "DEFAULT" if each.match_type == OF_DEFAULT else "SPECIFIED"
            raise _invalid(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")
        if each.match_type not in (EXACT, OF_DEFAULT, ANY):
            raise _invalid(f"Unknown match type {each.match_type}")
        by_type[each.type] = each
    if IP in by_type and len(by_type) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component."
        )
    return by_type
