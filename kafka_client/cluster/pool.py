"""The connections of one client, by address and lane, opened on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from kafka_client.backoff import Backoff
from kafka_client.cluster.connection import Connection
from kafka_client.errors import ConfigError, ConnectionClosed
from kafka_client.futures import retrieve_failure

Address = tuple[str, int]


def parse_servers(servers: str | Iterable[str]) -> list[Address]:
    """Return the addresses in "host:port,[::1]:port"; raises ConfigError if one has no port."""
    listed = servers.split(",") if isinstance(servers, str) else servers
    addresses = []
    for server in (entry.strip() for entry in listed):
        host, _, port = server.rpartition(":")
        if not (host and port.isdecimal() and 0 < int(port) < 65_536):
            raise ConfigError("bootstrap_servers", server, "host:port, several separated by commas")
        addresses.append((host.strip("[]"), int(port)))
    return addresses


class ConnectionPool:
    """The connections of a client, at most one per address and lane. A failed address waits for a backoff.

    `open_connection` returns a connection ready for use (connected and negotiated). With `resets` connections
    are reset rather than closed, so that unreceived requests do not arrive later.
    """

    def __init__(
        self,
        open_connection: Callable[[Address], Awaitable[Connection]],
        make_backoff: Callable[[], Backoff],
        *,
        resets: bool = False,
    ) -> None:
        self._open = open_connection
        self._end = Connection.reset if resets else Connection.close
        self._make_backoff = make_backoff
        self._connections: dict[tuple[Address, str], Connection] = {}
        self._opening: dict[tuple[Address, str], asyncio.Task[Connection]] = {}
        self._backoffs: dict[Address, Backoff] = {}
        self._not_before: dict[Address, float] = {}
        self.closed = False

    async def get(self, address: Address, lane: str = "") -> Connection:
        """Return the open connection to `address`, opened if necessary; raises ConnectionClosed if that
        fails.
        """
        key = (address, lane)
        connection = self._connections.get(key)
        if connection is not None and connection.is_open:
            return connection
        if self.closed:
            raise ConnectionClosed("the client is closed")
        task = self._opening.get(key)
        if task is None:
            task = self._opening[key] = asyncio.create_task(self._connect(key), name=f"connect-{address}")
            task.add_done_callback(retrieve_failure)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and not _being_cancelled():
                raise ConnectionClosed(
                    f"connection to {address[0]}:{address[1]} closed by this client"
                ) from None
            raise

    def statistics(self) -> dict[str, int]:
        """Return the number of connections, of requests in flight on all of them, and of requests that
        wait for room.
        """
        connections = [each for each in self._connections.values() if each.is_open]
        return {
            "connections": len(connections),
            "in_flight_requests": sum(each.in_flight for each in connections),
            "waiting_requests": sum(each.waiting for each in connections),
        }

    def connected(self) -> set[Address]:
        """Return the addresses with an open connection of any lane."""
        return {address for (address, _), connection in self._connections.items() if connection.is_open}

    def any_open(self) -> Connection | None:
        """Return an open connection of the common lane, None if there is none."""
        return next((c for (_, lane), c in self._connections.items() if not lane and c.is_open), None)

    async def close_lane(self, lane: str) -> None:
        """Close a lane's connections, once its user is done."""
        await self._close([key for key in (*self._connections, *self._opening) if key[1] == lane])

    def drop(self, address: Address, reason: str) -> None:
        """Close the connections to an address at once; they may be opened again.

        Callers that wait for a response or a connection get ConnectionClosed.
        """
        for key in [key for key in self._opening if key[0] == address]:
            self._opening.pop(key).cancel()
        for key in [key for key in self._connections if key[0] == address]:
            self._end(self._connections.pop(key), reason)

    async def close(self) -> None:
        """Close all connections for good."""
        self.closed = True
        await self._close([*self._connections, *self._opening])

    async def _connect(self, key: tuple[Address, str]) -> Connection:
        address, _ = key
        loop = asyncio.get_running_loop()
        try:
            await asyncio.sleep(max(0.0, self._not_before.get(address, 0.0) - loop.time()))
            backoff = self._backoffs.setdefault(address, self._make_backoff())
            try:
                connection = await self._open(address)
            except BaseException:
                self._not_before[address] = loop.time() + backoff.next()
                raise
            backoff.reset()
            self._connections[key] = connection
            return connection
        finally:
            if self._opening.get(key) is asyncio.current_task():  # it is another task if this one was dropped
                del self._opening[key]

    async def _close(self, keys: list[tuple[Address, str]]) -> None:
        opening = [task for key in keys if (task := self._opening.pop(key, None))]
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        closing = [connection for key in keys if (connection := self._connections.pop(key, None))]
        for connection in closing:
            self._end(connection, "closed by this client")
        await asyncio.gather(*(connection.wait_closed() for connection in closing))


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
