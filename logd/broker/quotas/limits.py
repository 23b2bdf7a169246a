"""Which quota holds for a client: the most specific one, in the order of Kafka's ClientQuotaManager.

users/alice/clients/c1   users/alice/clients/<default>   users/alice
users/<default>/clients/c1   users/<default>/clients/<default>   users/<default>
clients/c1   clients/<default>
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from logd.config.connection_limits import plain_address
from logd.metadata.client_quotas import CLIENT_ID, CONNECTION_CREATION_RATE, IP, USER, QuotaEntity

_NONE = ""
"""In place of a type that an entity does not have. Neither users nor client ids with quotas are empty."""


class Limit(NamedTuple):
    """A quota for a client. Clients with the same `user` and `client_id` share it; "" means any."""

    value: float
    user: str
    client_id: str


class QuotaLimits:
    """All quotas of the cluster."""

    def __init__(self, quotas: Iterable[tuple[QuotaEntity, dict[str, float]]]) -> None:
        self._by_key: dict[str, dict[tuple[str | None, str | None], float]] = {}
        self._addresses: dict[str | None, float] = {}
        for entity, values in quotas:
            names = dict(entity)
            if IP in names:
                address = names[IP]
                plain = None if address is None else plain_address(address)
                self._addresses[plain] = values[CONNECTION_CREATION_RATE]
                continue
            for key, value in values.items():
                place = names.get(USER, _NONE), names.get(CLIENT_ID, _NONE)
                self._by_key.setdefault(key, {})[place] = value

    def __bool__(self) -> bool:
        return bool(self._by_key or self._addresses)

    def find(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the quota of a key that holds for a user's client, or None."""
        limits = self._by_key.get(key)
        if limits is None:
            return None
        clients = (client_id, None) if client_id else ()
        for user_name in (user, None):
            for client_name in clients:
                if (value := limits.get((user_name, client_name))) is not None:
                    return Limit(value, user, client_id)
            if (value := limits.get((user_name, _NONE))) is not None:
                return Limit(value, user, _NONE)
        for client_name in clients:
            if (value := limits.get((_NONE, client_name))) is not None:
                return Limit(value, _NONE, client_id)
        return None

    def of_address(self, address: str) -> float | None:
        """Return the connections per second that an address may make, or None.

        `address` is in the form of `plain_address`.
        """
        return self._addresses.get(address, self._addresses.get(None))
