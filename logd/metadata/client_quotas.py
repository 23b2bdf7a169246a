"""Client quotas in the cluster's metadata (KIP-13, KIP-546): entities, paths below `/config`, and values.

    entity                                   path below /config
    user alice                               users/alice
    the default user                         users/<default>
    user alice with client id c1             users/alice/clients/c1
    client id c1                             clients/c1
    address 10.0.0.1                         ips/10.0.0.1

A user's quotas lie beside the user's SCRAM credentials, in `ClusterImage.user_configs`. All others are in
`ClusterImage.entity_configs`, by path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from logd.metadata.image import Change, ClusterImage, entity_configs, user_configs
from logd.metadata.zookeeper.znodes.paths import DEFAULT_ENTITY, desanitized, sanitized

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Types with names, in the order user, client id; the name None is the default entity."""

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"
CLIENT_KEYS: Final = frozenset(
    (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)
)
"""The quotas of users and client ids."""
IP_KEYS: Final = frozenset((CONNECTION_CREATION_RATE,))
_ORDER: Final = (USER, CLIENT_ID, IP)


def entity_of(names: Mapping[str, str | None]) -> QuotaEntity:
    """Return the entity with these names by type."""
    return tuple((type, names[type]) for type in _ORDER if type in names)


def path_of(entity: QuotaEntity) -> str:
    """Return the entity's path below `/config`."""
    names = dict(entity)
    if IP in names:
        return f"ips/{DEFAULT_ENTITY if names[IP] is None else names[IP]}"
    kinds = {USER: "users", CLIENT_ID: "clients"}
    return "/".join(
        f"{kinds[type]}/{DEFAULT_ENTITY if name is None else sanitized(name)}" for type, name in entity
    )


def entity_at(path: str) -> QuotaEntity | None:
    """Return the entity of a path below `/config`, or None if no entity has such a path."""
    match path.split("/"):
        case ["users", user]:
            return ((USER, _name(user)),)
        case ["users", user, "clients", client]:
            return ((USER, _name(user)), (CLIENT_ID, _name(client)))
        case ["clients", client]:
            return ((CLIENT_ID, _name(client)),)
        case ["ips", address]:
            return ((IP, None if address == DEFAULT_ENTITY else address),)
    return None


def _name(text: str) -> str | None:
    return None if text == DEFAULT_ENTITY else desanitized(text)


def _only_user(entity: QuotaEntity) -> str | None:
    """Return the user if the entity is nothing but a user with a name."""
    return entity[0][1] if len(entity) == 1 and entity[0][0] == USER else None


def configs_of(image: ClusterImage, entity: QuotaEntity) -> Mapping[str, str]:
    """Return what is stored of an entity, including a user's credentials."""
    user = _only_user(entity)
    if user is not None:
        return image.user_configs.get(user, {})
    return image.entity_configs.get(path_of(entity), {})


def configs_change(entity: QuotaEntity, configs: Mapping[str, str]) -> Change:
    """Return the change that replaces what is stored of an entity."""
    user = _only_user(entity)
    return entity_configs(path_of(entity), configs) if user is None else user_configs(user, configs)


def quotas_of(image: ClusterImage) -> Iterator[tuple[QuotaEntity, dict[str, float]]]:
    """Yield each entity that has quotas, with its quotas by key. What is not a number is left out."""
    for user, configs in image.user_configs.items():
        if quotas := _quotas(configs, CLIENT_KEYS):
            yield ((USER, user),), quotas
    for path, configs in image.entity_configs.items():
        entity = entity_at(path)
        if entity is None:
            continue
        if quotas := _quotas(configs, IP_KEYS if entity[0][0] == IP else CLIENT_KEYS):
            yield entity, quotas


def _quotas(configs: Mapping[str, str], keys: frozenset[str]) -> dict[str, float]:
    quotas = {}
    for key in configs.keys() & keys:
        try:
            quotas[key] = float(configs[key])
        except ValueError:  # written to ZooKeeper by hand
            continue
    return quotas
