"""The request's context for a handler: everything besides its message."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logd.broker.broker import Broker
    from logd.config.listeners import Endpoint
    from logd.security.exchange import ServerExchange


class RequestContext:
    """A request's context. Each connection has one, changed for each request: requests are served in turn.

    A handler that awaits may keep it: the next request of the connection begins after its answer.
    """

    __slots__ = (
        "broker",
        "broker_exchange",
        "client_host",
        "client_id",
        "endpoint",
        "fetch_bytes_max",
        "is_broker",
        "principal",
        "version",
    )

    def __init__(
        self,
        broker: Broker,
        *,
        version: int = 0,
        client_id: str | None = None,
        client_host: str = "127.0.0.1",
        endpoint: Endpoint | None = None,
        principal: str = "User:ANONYMOUS",
        is_broker: bool = False,
    ) -> None:
        self.broker = broker
        self.version = version
        self.client_id = client_id
        self.client_host = client_host
        self.endpoint = endpoint if endpoint is not None else broker.endpoint
        """The address this broker goes by on the listener the client came in through."""
        self.principal = principal
        self.fetch_bytes_max: float | None = None
        """The most bytes that the client's quota lets a fetch return; None for no limit."""
        self.is_broker = is_broker
        """True once the peer has logged in as a broker of the cluster, by the listener between brokers."""
        self.broker_exchange: ServerExchange | None = None
        """The login as a broker while it is under way."""

    @property
    def user(self) -> str:
        """The principal's name without its type, as quotas name users."""
        return self.principal.partition(":")[2]
