"""The limits on connections, of all listeners of a broker together.

As in Apache Kafka, the listener between brokers is spared if there are several listeners: brokers go on, and
an operator can take a limit back there. Kafka lets further connections wait, where these are closed at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from logd.config.connection_limits import limits_by_address, plain_address
from logd.config.listeners import inter_broker_listener

if TYPE_CHECKING:
    from collections.abc import Mapping

    from logd.config.broker import BrokerConfig
    from logd.config.listeners import Endpoint

BURST_S = 1.0
"""Connections may come at once that max.connection.creation.rate allows within this time, in seconds."""


class CountedConnection(Protocol):
    """A connection, as the quotas see it. `last_active` is in seconds of the event loop's clock."""

    host: str
    last_active: float

    def give_way(self) -> None:
        """Close the connection, to make room for one of a broker."""


def spared_listener(config: BrokerConfig, bound: list[Endpoint]) -> str | None:
    """Return the name of the listener between brokers if there are several listeners, else None."""
    if len(bound) < 2:
        return None
    return inter_broker_listener(config, [endpoint.listener for endpoint in bound])


class ConnectionQuotas:
    """The connections of a broker, counted together and by address.

    `config` returns the current settings, `spared` is the name of the listener without limits, and `clock`
    returns the time in seconds.
    """

    def __init__(
        self, config: Callable[[], BrokerConfig], spared: str | None, clock: Callable[[], float]
    ) -> None:
        self._config = config
        self._spared = spared
        self._clock = clock
        self._limited: set[CountedConnection] = set()
        self._brokers: set[CountedConnection] = set()
        """The connections of the listener that is spared."""
        self._per_host: Counter[str] = Counter()
        self._overrides: tuple[tuple[str, ...], Mapping[str, int]] = ((), {})
        self._allowance, self._counted_at = 0.0, clock() - BURST_S

    def admit(self, connection: CountedConnection, listener: str) -> str | None:
        """Count a connection in. Return the limit that it exceeds, or None. Call `forget` in either case."""
        config = self._config()
        host = plain_address(connection.host)
        self._per_host[host] += 1
        if listener == self._spared:
            self._brokers.add(connection)
            self._make_room(config.max_connections)
            return None
        self._limited.add(connection)
        if self._count > config.max_connections:
            return f"more than max.connections={config.max_connections}"
        overrides = self._overrides_of(config.max_connections_per_ip_overrides)
        if host in overrides:
            limit, key = overrides[host], "max.connections.per.ip.overrides"
        else:
            limit, key = config.max_connections_per_ip, "max.connections.per.ip"
        if self._per_host[host] > limit:
            return f"more than {key}={limit}"
        return None

    def forget(self, connection: CountedConnection) -> None:
        """Count a connection out."""
        host = plain_address(connection.host)
        self._limited.discard(connection)
        self._brokers.discard(connection)
        self._per_host[host] -= 1
        if self._per_host[host] <= 0:
            del self._per_host[host]

    def pause_s(self, listener: str) -> float:
        """Count a new connection by max.connection.creation.rate. Return the seconds until the next one."""
        rate = self._config().max_connection_creation_rate
        now = self._clock()
        burst = rate * BURST_S
        self._allowance = min(burst, self._allowance + (now - self._counted_at) * rate) - 1
        self._counted_at = now
        if listener == self._spared or self._allowance >= 1:
            return 0.0
        return (1 - self._allowance) / rate

    @property
    def _count(self) -> int:
        return len(self._limited) + len(self._brokers)

    def _make_room(self, most: int) -> None:
        """Close the most silent connection of a client if a broker's connection is one too many."""
        if self._count > most and self._limited:
            silent = min(self._limited, key=lambda each: each.last_active)
            self._limited.discard(silent)
            silent.give_way()

    def _overrides_of(self, texts: tuple[str, ...]) -> Mapping[str, int]:
        if texts != self._overrides[0]:
            self._overrides = texts, limits_by_address(texts)
        return self._overrides[1]
