"""A network between servers that a test can silence or break in any direction; it is never slow.

    with Network() as network:
        port = network.gate(("127.0.0.1", 9092), target=1)           # its first request says who connects
        port = network.gate(zookeeper, source=1, target="zookeeper") # only broker 1 has this address
        network.silence((1, 2), (2, 1))     # nothing travels between the two; what is sent waits, as in TCP
        network.cut((1, 2), (2, 1))         # connections break, and none comes about
        network.heal()

A gate is a port in front of a server. Pairs are directions: (1, 2) is what travels from 1 to 2, requests
and responses alike. The client id of a connection's first request says which broker connects.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, Self, TypeAlias

from tests.support.ports import free_port

End: TypeAlias = int | str
"""A broker by its id, anything else by a name."""
Direction: TypeAlias = tuple[End, End]

CHUNK: Final = 1 << 16
ANYBODY: Final = "anybody"
_CLIENT_ID_AT: Final = 14
"""Behind the request's length, key, version and correlation id, and its own length."""
_BROKER: Final = re.compile(rb"broker-(\d+)")


class Network:
    """Gates in front of servers, as a context manager.

    Disturbances take effect on return, also for open connections.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)
        self._silent: set[Direction] = set()
        self._cut: set[Direction] = set()
        self._healed = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def gate(self, server: tuple[str, int], *, target: End, source: End | None = None) -> int:
        """Open a port that leads to `server`, and return it. `source` is its only user, if it is named."""

        async def opened() -> None:
            self._servers.append(await asyncio.start_server(serve, "127.0.0.1", port))

        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = self._loop.create_task(self._serve(reader, writer, server, source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        port = free_port()
        asyncio.run_coroutine_threadsafe(opened(), self._loop).result()
        return port

    # Disturbing

    def silence(self, *directions: Direction) -> None:
        """Nothing comes through from now on, and nobody is told; it waits for `heal`."""
        self._do(lambda: self._silent.update(directions))

    def cut(self, *directions: Direction) -> None:
        """Connections that need one of these directions break, and new ones are refused, until `heal`."""

        def cut() -> None:
            self._cut.update(directions)
            for link in tuple(self._links):
                if not self._cut.isdisjoint(link.directions):
                    link.abort()

        self._do(cut)

    def heal(self) -> None:
        """Remove all disturbances; held-back data and connections go through."""

        def heal() -> None:
            self._silent.clear()
            self._cut.clear()
            self._healed.set()
            self._healed.clear()

        self._do(heal)

    def _do(self, work: Callable[[], object]) -> None:
        async def do() -> None:
            work()

        asyncio.run_coroutine_threadsafe(do(), self._loop).result()

    # Connections

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server: tuple[str, int],
        source: End | None,
        target: End,
    ) -> None:
        link: _Link | None = None
        try:
            first = b""
            if source is None:
                first = await _frame(reader)
                source = _client(first)
            link = _Link(source, target, writer)
            self._links.add(link)
            if not self._cut.isdisjoint(link.directions):
                return
            for direction in link.directions:
                await self._open(direction)
            there, link.there = await asyncio.open_connection(*server)
            await self._open(link.directions[0])
            link.there.write(first)
            await asyncio.gather(
                self._carry(reader, link.there, link.directions[0]),
                self._carry(there, writer, link.directions[1]),
            )
        except (OSError, asyncio.IncompleteReadError):
            pass  # the peer notices the end of its connection
        finally:
            if link is not None:
                link.abort()
                self._links.discard(link)
            writer.transport.abort()

    async def _open(self, direction: Direction) -> None:
        while direction in self._silent:
            await self._healed.wait()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction
    ) -> None:
        """Copy one direction's data, and its end, which the peer gets only when the network is healthy."""
        data = b"?"
        while data:
            try:
                data = await reader.read(CHUNK)
            except OSError:
                data = b""
            await self._open(direction)
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                return  # the other direction ends with an error
        writer.close()


def both_ways(one: End, others: Iterable[End]) -> list[Direction]:
    """Return the directions between one end and each of the others, there and back."""
    return [pair for other in others for pair in ((one, other), (other, one))]


class _Link:
    """A connection through a gate."""

    def __init__(self, source: End, target: End, here: asyncio.StreamWriter) -> None:
        self.directions = (source, target), (target, source)
        self._here = here
        self.there: asyncio.StreamWriter | None = None

    def abort(self) -> None:
        """End it on both sides."""
        for writer in (self._here, self.there):
            if writer is not None:
                writer.transport.abort()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """Read a whole request, with its length in front."""
    length = await reader.readexactly(4)
    return length + await reader.readexactly(int.from_bytes(length, "big"))


def _client(request: bytes) -> End:
    """Return the broker that sent a request, by its client id."""
    match = _BROKER.match(request, _CLIENT_ID_AT)
    return ANYBODY if match is None else int(match[1])
