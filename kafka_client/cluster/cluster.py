"""The client of a cluster: connections per node, metadata, coordinators, versions, retries."""

from __future__ import annotations

import asyncio
import random as _random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Self, TypeVar

from kafka_client.backoff import Backoff
from kafka_client.cluster.connection import Connection
from kafka_client.cluster.metadata import NO_NODE, ClusterMetadata, TopicMetadata
from kafka_client.cluster.metadata_cache import MetadataCache
from kafka_client.cluster.opening import ConnectionOpener
from kafka_client.cluster.pool import Address, ConnectionPool, parse_servers
from kafka_client.cluster.versions import highest_common
from kafka_client.errors import (
    ConnectionClosed,
    ErrorCode,
    KafkaError,
    MillstreamError,
    RequestTimedOut,
    RetriableError,
    StaleMetadata,
    error_for,
)
from kafka_client.metrics.metrics import Metrics
from kafka_client.security.settings import SecuritySettings
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message, decode, decode_response_header, encode_request, response_class
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

T = TypeVar("T")

GROUP = 0
TRANSACTION = 1
COORDINATORS_MAX = 10_000
"""Most remembered coordinators of groups and transactional ids; above it, the oldest entry is removed."""

_MAY_APPEAR = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)


class Client:
    """A client of one cluster, shared by fetchers, producers, group members and admin calls of one event
    loop.

    Open it with `async with Client(...) as client` or `await client.connect()`; end with `close()`.

    `bootstrap_servers`: "host:port,host:port" or a sequence of "host:port".
    `request_timeout_ms`: the timeout of one request, and by default of `retrying`.
    `connect_timeout_ms`: the timeout of one connection, and of the first contact with the cluster.
    `missing_topic_wait_ms`: how long requests for an unknown topic are repeated before it is an error.
    `max_response_bytes`: a response that announces more closes the connection.
    `max_in_flight`: most unanswered requests per connection; further ones wait.
    `security`: TLS and SASL; plaintext by default. Key stores are read for the first connection, which raises
    their ConfigError.
    `metrics`: where the client, its producers and its fetchers register their metrics; by default its own.
    `random`: returns floats in [0, 1), for jitter.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        client_id: str = "millstream",
        request_timeout_ms: int = 30_000,
        connect_timeout_ms: int = 10_000,
        metadata_max_age_ms: int = 300_000,
        missing_topic_wait_ms: int = 3_000,
        allow_auto_topic_creation: bool = False,
        reconnect_backoff_ms: int = 50,
        reconnect_backoff_max_ms: int = 1_000,
        retry_backoff_ms: int = 100,
        retry_backoff_max_ms: int = 1_000,
        max_response_bytes: int = 256 * 1024 * 1024,
        max_in_flight: int = 64,
        security: SecuritySettings | None = None,
        metrics: Metrics | None = None,
        random: Callable[[], float] = _random.random,
    ) -> None:
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.random = random
        self.metrics = metrics or Metrics()
        self._bootstrap = parse_servers(bootstrap_servers)
        self._connect_timeout_ms = connect_timeout_ms
        self.missing_topic_wait_ms = missing_topic_wait_ms
        self.metadata_max_age_ms = metadata_max_age_ms
        self._allow_auto_topic_creation = allow_auto_topic_creation
        self._max_in_flight = max_in_flight
        self._retry_backoff = (retry_backoff_ms / 1000, retry_backoff_max_ms / 1000)
        self._opener = ConnectionOpener(
            security or SecuritySettings(),
            client_id=client_id,
            timeout=connect_timeout_ms / 1000,
            max_response_bytes=max_response_bytes,
            max_in_flight=max_in_flight,
            random=random,
        )
        self._pool = ConnectionPool(
            self._opener.open,
            lambda: Backoff(reconnect_backoff_ms / 1000, reconnect_backoff_max_ms / 1000, random),
        )
        self._cache = MetadataCache(self._ask_metadata, max_age=metadata_max_age_ms / 1000, clock=_now)
        self._metadata_source = ""
        """The name of the connection that metadata last came from."""
        self._is_doubted = False
        """True if some of that metadata has turned out to be wrong."""
        self._coordinators: dict[tuple[int, str], int] = {}
        self._coordinator_addresses: dict[int, Address] = {}
        self._registrations = ExitStack()
        """Removes the client's metrics at its close."""
        self._registrations.callback(
            self.metrics.add(
                "millstream",
                "connections",
                self.statistics,
                client_id=f"{client_id}-{self.new_lane('client')}",
            )
        )

    # --- life ---

    async def connect(self) -> Self:
        """Connect to a bootstrap server and learn the brokers.

        Raises ConnectionClosed if none answers within the connect timeout, and AuthenticationFailed at once
        if one refuses the login.
        """
        try:
            await self.retrying(lambda: self._cache.refresh(()), timeout_ms=self._connect_timeout_ms)
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Close every connection; unanswered requests fail with ConnectionClosed. May be called twice."""
        self._registrations.close()
        await self._pool.close()

    def statistics(self) -> dict[str, int]:
        """Return the number of connections, in_flight_requests and waiting_requests, with the bound of one
        connection.

        Also the number of remembered topics, and of remembered coordinators with their bound.
        """
        return {
            **self._pool.statistics(),
            "connection_in_flight_requests_max": self._max_in_flight,
            "remembered_topics": self._cache.remembered,
            "remembered_coordinators": len(self._coordinators),
            "remembered_coordinators_max": COORDINATORS_MAX,
        }

    @property
    def closed(self) -> bool:
        """True once `close` was called: no request can succeed any more."""
        return self._pool.closed

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    # --- asking ---

    async def request(
        self, message: Message, *, node: int | None = None, timeout_ms: int | None = None, lane: str = ""
    ) -> Any:
        """Send one request once, and return its decoded response; `retrying` repeats it.

        `message`: any `*Request` of `kafka_client.wire.messages`, sent at the highest version that both sides
        know. `node`: broker id; None for any broker. `lane`: requests of different lanes use different
        connections. A broker answers the requests of one connection in order, so long polls need a lane of
        their own. Error codes inside the response are for the caller to check.

        Raises ConnectionClosed, RequestTimedOut, MalformedMessage, AuthenticationFailed, or KafkaError
        UNSUPPORTED_VERSION.
        """
        connection = await self.connection(node, lane=lane)
        request = type(message)
        version = highest_common(request.API_KEY, request.VERSIONS, connection.versions, connection.name)
        payload = await connection.call(
            lambda correlation_id: encode_request(message, version, correlation_id, self.client_id),
            timeout=(self.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000,
        )
        _, pos = decode_response_header(request.API_KEY, version, payload)
        response = decode(response_class(request.API_KEY), version, payload, pos)
        if throttle_ms := getattr(response, "throttle_time_ms", 0):
            connection.throttle(throttle_ms)
        return response

    async def retrying(self, attempt: Callable[[], Awaitable[T]], *, timeout_ms: int | None = None) -> T:
        """Call `attempt` until it succeeds, with backoff and jitter between retriable errors.

        Retriable are ConnectionClosed, RequestTimedOut and RetriableError. StaleMetadata and lost connections
        also invalidate the cached metadata. The last error is raised once `timeout_ms` (default: the client's
        request timeout) is over.
        """
        deadline = _now() + (self.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        backoff = self.backoff()
        while True:
            try:
                return await attempt()
            except MillstreamError as error:
                pause = backoff.next()
                if not is_retriable(error) or self.closed or _now() + pause >= deadline:
                    raise
                if isinstance(error, StaleMetadata | ConnectionClosed):
                    self.invalidate_metadata()
            await asyncio.sleep(pause)

    def backoff(self) -> Backoff:
        """Return a new backoff with the client's retry settings."""
        return Backoff(*self._retry_backoff, self.random)

    def new_lane(self, purpose: str) -> str:
        """Return a lane name that no other user of the same `metrics` has; release it with `close_lane`."""
        return f"{purpose}-{next(self.metrics.numbers)}"

    async def close_lane(self, lane: str) -> None:
        """Close the connections of a lane."""
        await self._pool.close_lane(lane)

    async def connection(self, node: int | None = None, *, lane: str = "") -> Connection:
        """Return a connection that is ready for hand-encoded requests. Raises ConnectionClosed if it
        cannot be opened.
        """
        if node is not None:
            return await self._pool.get(self._address(node), lane)
        if not lane and (connection := self._pool.any_open()):
            return connection
        addresses = [(b.host, b.port) for b in self._cache.cluster.brokers.values()]
        addresses.sort(key=lambda _: self.random())
        addresses += [address for address in self._bootstrap if address not in addresses]
        for address in addresses[:-1]:
            try:
                return await self._pool.get(address, lane)
            except ConnectionClosed:
                continue
        return await self._pool.get(addresses[-1], lane)

    def _address(self, node: int) -> Address:
        broker = self._cache.cluster.brokers.get(node)
        if broker is not None:
            return broker.host, broker.port
        if node in self._coordinator_addresses:
            return self._coordinator_addresses[node]
        self.invalidate_metadata()
        raise ConnectionClosed(f"broker {node} is not in the cluster's metadata")

    # --- metadata ---

    async def metadata(
        self, topics: Iterable[str] | None = None, *, refresh: bool = False, allow_missing: bool = False
    ) -> ClusterMetadata:
        """Return brokers and the named topics (None: every topic; empty: brokers only), from the cache while
        fresh.

        A topic that stays unknown for `missing_topic_wait_ms` raises KafkaError UNKNOWN_TOPIC_OR_PARTITION
        with its name. With `allow_missing` it is left out.
        """
        names = None if topics is None else list(topics)
        needed, stale = (True, names) if refresh else self._cache.stale(names)
        if needed:
            await self.retrying(lambda: self._cache.refresh(stale))
        if names is not None and not allow_missing and self._missing(names):
            await self._wait_for_topics(names)
        return self._cache.select(names)

    async def topic(self, name: str, *, refresh: bool = False) -> TopicMetadata:
        """Return one topic's metadata; raises KafkaError UNKNOWN_TOPIC_OR_PARTITION if it does not exist."""
        if not refresh and self._cache.is_fresh(name):
            return self._cache.cluster.topics[name]  # no selection is built: a producer asks for each record
        return (await self.metadata([name], refresh=refresh)).topics[name]

    async def leader(self, tp: TopicPartition) -> int:
        """Return the node id of the partition's leader; wait (up to the request timeout) while it has
        none.
        """
        leader = self.leader_now(tp)
        if leader != NO_NODE:
            return leader

        give_up_at = _now() + self.missing_topic_wait_ms / 1000

        async def ask() -> int:
            topic = await self.topic(tp.topic)
            partition = topic.partitions.get(tp.partition)
            if partition is None:
                message = f"{tp}: the topic has {topic.partition_count} partitions"
                if _now() >= give_up_at:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
                raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
            if partition.leader == NO_NODE:
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{tp} has no leader")
            return partition.leader

        return await self.retrying(ask)

    def leader_now(self, tp: TopicPartition) -> int:
        """Return the partition's leader by fresh cached metadata, NO_NODE if there is none."""
        if not self._cache.is_fresh(tp.topic):
            return NO_NODE
        topic = self._cache.cluster.topics.get(tp.topic)
        partition = topic.partitions.get(tp.partition) if topic else None
        return partition.leader if partition else NO_NODE

    @property
    def cached_metadata(self) -> ClusterMetadata:
        """The cached metadata, fresh or not."""
        return self._cache.cluster

    def invalidate_metadata(self) -> None:
        """Have the next `metadata` call ask a broker again, since something cached was wrong.

        Another broker than last time is preferred: that one may be cut off from its controller, and repeat
        the same answer.
        """
        self._is_doubted = True
        self._cache.invalidate()

    def _whom_to_ask(self) -> int | None:
        """Return the broker to ask for metadata, None for any.

        Only connected brokers are chosen: another one may be gone, and would have to be waited for.
        """
        if not self._is_doubted:
            return None
        connected = self._pool.connected()
        others = [
            node
            for node, broker in self._cache.cluster.brokers.items()
            if (broker.host, broker.port) in connected
            and f"{broker.host}:{broker.port}" != self._metadata_source
        ]
        return others[int(self.random() * len(others))] if others else None

    def _missing(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self._cache.cluster.topics]

    async def _wait_for_topics(self, names: list[str]) -> None:
        """Wait for topics that were just created and that not every broker knows yet."""
        deadline = _now() + self.missing_topic_wait_ms / 1000
        backoff = self.backoff()
        while missing := self._missing(names):
            name = missing[0]
            code = self._cache.errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            pause = backoff.next()
            if code not in _MAY_APPEAR or _now() + pause >= deadline:
                # A final error class: the wait for the topic is over.
                raise KafkaError(code, f"topic {name!r}")
            await asyncio.sleep(pause)
            await self.retrying(lambda topics=missing: self._cache.refresh(topics))  # type: ignore[misc]

    async def _ask_metadata(self, topics: set[str] | None) -> MetadataResponse:
        listed = None if topics is None else [MetadataRequestTopic(name=name) for name in sorted(topics)]
        message = MetadataRequest(topics=listed, allow_auto_topic_creation=self._allow_auto_topic_creation)
        node = self._whom_to_ask()
        self._metadata_source = (await self.connection(node)).name
        response: MetadataResponse = await self.request(message, node=node)
        self._is_doubted = False
        if response.error_code:
            raise error_for(response.error_code, "Metadata")
        return response

    # --- coordinators ---

    async def coordinator(self, key: str, type: int = GROUP) -> int:
        """Return the node id of the coordinator of a group (type 0) or transactional id (type 1), cached."""
        node = self._coordinators.get((type, key))
        return node if node is not None else await self.retrying(lambda: self._find_coordinator(key, type))

    def forget_coordinator(self, key: str, type: int = GROUP) -> None:
        """Remove a coordinator that answered NOT_COORDINATOR or is gone: the next call looks it up again."""
        self._coordinators.pop((type, key), None)

    async def _find_coordinator(self, key: str, type: int) -> int:
        message = FindCoordinatorRequest(key=key, key_type=type, coordinator_keys=[key])
        response: FindCoordinatorResponse = await self.request(message)
        coordinator = response.coordinators[0] if response.coordinators else response
        if coordinator.error_code:
            what = "transactional id" if type == TRANSACTION else "group"
            raise error_for(
                coordinator.error_code, f"coordinator of {what} {key!r}: {coordinator.error_message or ''}"
            )
        if len(self._coordinators) >= COORDINATORS_MAX:
            del self._coordinators[next(iter(self._coordinators))]  # looked up again when needed
        self._coordinators[type, key] = coordinator.node_id
        self._coordinator_addresses[coordinator.node_id] = (coordinator.host, coordinator.port)
        return coordinator.node_id


def is_retriable(error: MillstreamError) -> bool:
    """Return True if a retry may help, by the error's class: a plain KafkaError is final."""
    return isinstance(error, RetriableError | ConnectionClosed | RequestTimedOut)


def _now() -> float:
    return asyncio.get_running_loop().time()
