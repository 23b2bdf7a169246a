"""Kafka's client keys of one side of a flow, by MirrorMaker's layers.

MirrorMaker has a consumer, a producer and an admin client on each side; here one client does the work of all
three. Layers of the source's consumer, each before the next:

    a->b.source.consumer.KEY   a.consumer.KEY   a.KEY, KEY (security)   source.consumer.KEY
    a->b.consumer.KEY          a->b.source.cluster.KEY   a.KEY   consumer.KEY   source.cluster.KEY

MirrorMaker ignores `source.consumer.KEY`, `consumer.KEY` and their like without `a->b.`; here they have an
effect, as in the config of a connector, which has no other layers than these three: `source.consumer.KEY`,
`consumer.KEY` and `source.cluster.KEY`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from kafka_client.errors import ConfigError
from kafka_client.properties import CLIENT, CONSUMER, PRODUCER, ClientProperties
from kafka_client.security.keys import SECRETS, is_security_key
from kafka_client.security.secret import HIDDEN

ROLES = ("admin", "consumer", "producer")
SERVERS = "bootstrap.servers"
Side = Literal["source", "target"]
MAIN_ROLES: Mapping[str, str] = {"source": "consumer", "target": "producer"}
"""The role on each side whose timeouts and backoffs the one client has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientKeys:
    """The client keys of the cluster `alias`, which is one `side` of the flow with the prefix `a->b.`."""

    properties: Mapping[str, str]
    flow: str
    side: Side
    alias: str

    def of_role(self, role: str) -> ClientProperties:
        """Return the keys of the side's consumer, producer or admin client, as MirrorMaker layers them."""
        own = f"{self.alias}."
        return self._layered(
            (f"{self.side}.cluster.", is_client_key),
            (f"{role}.", is_client_key),
            (own, is_client_key),
            (f"{self.flow}{self.side}.cluster.", is_client_key),
            (f"{self.flow}{role}.", is_client_key),
            (f"{self.side}.{role}.", is_client_key),
            ("", is_shared_key),
            (own, is_shared_key),
            (f"{own}{role}.", is_client_key),
            (f"{self.flow}{self.side}.{role}.", is_client_key),
        )

    def client(self) -> ClientProperties:
        """Return the keys of the one client.

        Raises ConfigError if two roles differ in TLS, SASL or servers.
        """
        roles = {role: self.of_role(role) for role in ROLES}
        main = roles[MAIN_ROLES[self.side]]
        for key in sorted({key for keys in roles.values() for key in keys.values if is_shared_key(key)}):
            if len({keys.values.get(key) for keys in roles.values()}) > 1:
                raise self._not_shared(key, roles)
        chosen = [key for key in main.values if key in CLIENT or is_shared_key(key)]
        return ClientProperties(
            {key: main.values[key] for key in chosen}, {key: main.written[key] for key in chosen}
        )

    def _not_shared(self, key: str, roles: Mapping[str, ClientProperties]) -> ConfigError:
        role = next(
            role for role, keys in roles.items() if keys.written.get(key, "").endswith(f"{role}.{key}")
        )
        text = HIDDEN if key in SECRETS else roles[role].values[key]
        allowed = f"one client serves all here: set {self.alias}.{key} instead"
        return ConfigError(roles[role].written[key], text, allowed)

    def _layered(self, *layers: tuple[str, Callable[[str], bool]]) -> ClientProperties:
        written: dict[str, str] = {}
        for prefix, takes in layers:
            for name in self.properties:
                key = name[len(prefix) :]
                if name.startswith(prefix) and takes(key):
                    written[key] = name
        return ClientProperties({key: self.properties[name] for key, name in written.items()}, written)


def is_client_key(key: str) -> bool:
    """Return True for keys of Kafka's clients, except those without effect in any client here."""
    return key in CLIENT or key in CONSUMER or key in PRODUCER or is_shared_key(key)


def is_shared_key(key: str) -> bool:
    """Return True for the keys that all of a cluster's clients share in MirrorMaker."""
    return key == SERVERS or is_security_key(key)
