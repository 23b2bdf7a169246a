"""Between a session and its server: connections that end at a chosen request, in the test's own loop.

async with Proxy(ensemble.connect_string) as proxy:
    session = Session(ZooKeeperSettings.of(proxy.address + chroot))
    proxy.lose(MULTI, before=True)      # the next multi does not reach the server, and the connection ends
    proxy.lose(MULTI, before=False)     # it is carried out; the connection ends instead of its answer
    proxy.cut()                         # all connections end
    proxy.is_open = False               # and no new one comes about
    proxy.hangs = True                  # connections stay, and nothing is answered
"""

from __future__ import annotations

import asyncio
import struct
from types import TracebackType
from typing import Self

CREATE, DELETE, SET, MULTI = 1, 2, 5, 14
NOTHING_BYTES = 64
"""A multi shorter than this is the one that renews the lease."""
_HEAD = struct.Struct(">iii")


class Proxy:
    """A proxy of one server, on a port of its own."""

    def __init__(self, server: str) -> None:
        host, _, port = server.partition(":")
        self._server = host, int(port)
        self._listening: asyncio.Server | None = None
        self._lost: tuple[int, bool] | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.is_open = True
        self.hangs = False
        self.address = ""

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listening is not None
        self._listening.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def lose(self, kind: int, *, before: bool) -> None:
        """End the connection at the next request of this kind, or instead of its answer."""
        self._lost = kind, before

    @property
    def has_lost(self) -> bool:
        """True if the loss that `lose` asked for has happened, or none was asked for."""
        return self._lost is None

    def cut(self) -> None:
        """End all connections."""
        for writer in list(self._writers):
            writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:
            writer.close()
            return
        server_reader, server_writer = await asyncio.open_connection(*self._server)
        self._writers |= {writer, server_writer}
        waited: set[int] = set()
        both = [
            asyncio.create_task(self._requests(reader, server_writer, waited)),
            asyncio.create_task(self._answers(server_reader, writer, waited)),
        ]
        self._tasks |= set(both)
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for each in (writer, server_writer):
            self._writers.discard(each)
            each.close()
        for task in both:
            task.cancel()
            self._tasks.discard(task)
        await asyncio.gather(*both, return_exceptions=True)

    async def _requests(
        self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, waited: set[int]
    ) -> None:
        is_first = True
        while frame := await _frame(reader):
            if not is_first and self._lost is not None:
                kind, before = self._lost
                _, xid, type_ = _HEAD.unpack_from(frame)
                if type_ == kind and len(frame) >= NOTHING_BYTES:
                    self._lost = None
                    if before:
                        return
                    waited.add(xid)
            is_first = False
            server.write(frame)

    async def _answers(
        self, reader: asyncio.StreamReader, client: asyncio.StreamWriter, waited: set[int]
    ) -> None:
        while frame := await _frame(reader):
            if waited and _HEAD.unpack_from(frame)[1] in waited:
                return
            if not self.hangs:
                client.write(frame)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """Return the next frame with its length, or nothing at the end of the stream."""
    try:
        length = await reader.readexactly(4)
        return length + await reader.readexactly(int.from_bytes(length, "big"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
