"""Connections from this broker to the others.

They go to the listener of `inter.broker.listener.name`, and are made at the first request. Requests to one
broker go in lanes: a connection's requests are answered one after the other, so a request that waits long
takes a lane of its own. Nothing is retried here, and error codes of responses are not checked.
"""

from __future__ import annotations

import random
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kafka_client.backoff import Backoff
from kafka_client.cluster.connection import Connection
from kafka_client.cluster.opening import ConnectionOpener
from kafka_client.cluster.pool import Address, ConnectionPool
from kafka_client.cluster.versions import highest_common
from kafka_client.errors import AuthenticationFailed, ConnectionClosed
from kafka_client.security.settings import SecuritySettings
from kafka_client.wire import Message, decode, decode_response_header, encode_request, response_class
from logd.broker.cluster.broker_login import BrokerLogin
from logd.metadata.image import BrokerImage

CONNECT_TIMEOUT_MS: Final = 10_000
RECONNECT_BACKOFF_S: Final = (0.05, 1.0)
MAX_IN_FLIGHT: Final = 64
"""Requests sent to a broker in one lane and not answered; more wait."""
RESPONSE_BYTES_MAX: Final = 256 * 1024 * 1024


class _Peer(NamedTuple):
    """Where a broker was asked last, the registration it had then, and if this broker logs in to it."""

    epoch: int
    address: Address
    logs_in: bool


class PeerConnections:
    """`brokers` are the brokers alive, read at each request; `listener`: the name of the one they talk by.

    Without a `login` no broker is logged in to.
    """

    def __init__(
        self,
        node_id: int,
        brokers: Callable[[], Mapping[int, BrokerImage]],
        listener: str,
        login: BrokerLogin | None = None,
        *,
        request_timeout_ms: int = 30_000,
    ) -> None:
        self._brokers = brokers
        self._listener = listener
        self._login = login
        self._client_id = f"broker-{node_id}"
        self._request_timeout_ms = request_timeout_ms
        self._plain = self._opener(SecuritySettings())
        self._with_login = self._plain if login is None else self._opener(login.client_settings())
        self._pool = ConnectionPool(self._open, lambda: Backoff(*RECONNECT_BACKOFF_S), resets=True)
        self._peers: dict[int, _Peer] = {}

    def _opener(self, security: SecuritySettings) -> ConnectionOpener:
        return ConnectionOpener(
            security,
            client_id=self._client_id,
            timeout=CONNECT_TIMEOUT_MS / 1000,
            max_response_bytes=RESPONSE_BYTES_MAX,
            max_in_flight=MAX_IN_FLIGHT,
            random=random.random,
        )

    async def _open(self, address: Address) -> Connection:
        is_older = any(each.address == address and not each.logs_in for each in self._peers.values())
        try:
            return await (self._plain if is_older else self._with_login).open(address)
        except AuthenticationFailed:
            if self._login is not None:
                self._login.refresh()  # the broker may be of an older release since then
            raise

    def use_tls(self, context: ssl.SSLContext) -> None:
        """Use this context for further connections, since certificates have changed."""
        self._with_login.use_tls(context)

    async def request(
        self, broker: int, message: Message, *, lane: str = "", timeout_ms: int | None = None
    ) -> Any:
        """Ask a broker; its answer, decoded.

        ConnectionClosed (also where the broker is not alive, or has no such listener), RequestTimedOut,
        MalformedMessage, AuthenticationFailed, KafkaError(UNSUPPORTED_VERSION).
        """
        connection = await self.connection(broker, lane)
        request = type(message)
        version = version_of(request, connection)
        payload = await connection.call(
            lambda correlation_id: encode_request(message, version, correlation_id, self._client_id),
            timeout=(self._request_timeout_ms if timeout_ms is None else timeout_ms) / 1000,
        )
        _, pos = decode_response_header(request.API_KEY, version, payload)
        return decode(response_class(request.API_KEY), version, payload, pos)

    async def connection(self, broker: int, lane: str = "") -> Connection:
        """Return a connection to a broker, for requests encoded by the caller. Raises ConnectionClosed."""
        image = self._brokers().get(broker)
        if image is None:
            raise ConnectionClosed(f"broker {broker} is not alive")
        logs_in = self._login is None or self._login.logs_in(broker)
        peer = _Peer(image.epoch, self._address(image), logs_in)
        if self._peers.get(broker) != peer:
            self._forget(broker)
            self._peers[broker] = peer
        return await self._pool.get(peer.address, lane)

    def _address(self, broker: BrokerImage) -> Address:
        for endpoint in broker.endpoints:
            if endpoint.listener == self._listener:
                return endpoint.host, endpoint.port
        raise ConnectionClosed(
            f"broker {broker.id} has no listener {self._listener} (inter.broker.listener.name), only "
            + ", ".join(endpoint.listener for endpoint in broker.endpoints)
        )

    def brokers_changed(self) -> None:
        """End requests to brokers that are gone or have registered again; call it after brokers changed."""
        alive = self._brokers()
        for id_, peer in tuple(self._peers.items()):
            image = alive.get(id_)
            if image is None or image.epoch != peer.epoch:
                self._forget(id_)

    def _forget(self, broker: int) -> None:
        if (peer := self._peers.pop(broker, None)) is not None:
            self._pool.drop(peer.address, f"broker {broker}, epoch {peer.epoch}, is gone")

    async def close_lane(self, lane: str) -> None:
        """Close a lane's connections."""
        await self._pool.close_lane(lane)

    async def close(self) -> None:
        """Close all; who waits for an answer gets ConnectionClosed."""
        await self._pool.close()

    def statistics(self) -> dict[str, int]:
        """Return the counts of connections and of their requests in flight and waiting, with one's bound."""
        return {**self._pool.statistics(), "connection_in_flight_requests_max": MAX_IN_FLIGHT}


def version_of(request: type[Message], connection: Connection) -> int:
    """Return the version to send a request in.

    APIs between brokers are not listed by ApiVersions: they use the last version.
    """
    if request.API_KEY not in connection.versions:
        return request.VERSIONS[1]
    return highest_common(request.API_KEY, request.VERSIONS, connection.versions, connection.name)
