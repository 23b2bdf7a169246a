"""The bare loops that broker figures are held against: as little as a server of the same job can do.

`receive`: take frames from a socket, check the CRC of the one batch in each, append it to a file,
answer four bytes. `sendfile` and `copy`: for every byte received, send one piece of a file, by
`os.sendfile` or by `os.pread` and `socket.send`.

    python -m benchmarks.bare receive FILE BATCH_OFFSET
    python -m benchmarks.bare sendfile|copy FILE PIECE_BYTES

Prints the port it listens on, serves one connection, ends with it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import cast

import crc32c
import uvloop

_CRC_AT = 17
_CRC_FROM = 21


class Receiver(asyncio.BufferedProtocol):
    """Frames in, batches to the file, four bytes back for each."""

    def __init__(self, path: str, batch_at: int, done: asyncio.Event) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._batch_at = 4 + batch_at
        self._buffer = bytearray(4 << 20)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self._done = done
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are Transports in all but their class.
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        start, view, filled = 0, self._view, self._filled
        while filled - start >= 4:
            end = start + 4 + int.from_bytes(view[start : start + 4], "big")
            if end > filled:
                break
            batch = view[start + self._batch_at : end]
            stored = int.from_bytes(batch[_CRC_AT:_CRC_FROM], "big")
            if crc32c.crc32c(batch[_CRC_FROM:]) != stored:
                raise ValueError("the client sent a batch with a wrong CRC")
            os.write(self._file, batch)
            assert self._transport is not None
            self._transport.write(b"\0\0\0\0")
            start = end
        if start:
            self._buffer[: filled - start] = self._buffer[start:filled]
            self._filled = filled - start

    def connection_lost(self, exc: Exception | None) -> None:
        os.close(self._file)
        self._done.set()


async def receive(path: str, batch_at: int) -> None:
    """Serve one connection of frames."""
    done = asyncio.Event()
    server = await asyncio.get_running_loop().create_server(
        lambda: Receiver(path, batch_at, done), "127.0.0.1", 0
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await done.wait()
    server.close()


def send(path: str, piece: int, *, copying: bool) -> None:
    """Serve one connection: send the next piece of the file for each byte received.

    After its end the file begins again.
    """
    file = os.open(path, os.O_RDONLY)
    size = os.fstat(file).st_size
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
    position = 0
    with connection:
        while request := connection.recv(64):
            for _ in request:
                if position + piece > size:
                    position = 0
                if copying:
                    connection.sendall(os.pread(file, piece, position))
                else:
                    _send_file(connection, file, position, piece)
                position += piece
    os.close(file)


def _send_file(connection: socket.socket, file: int, position: int, left: int) -> None:
    while left:
        sent = os.sendfile(connection.fileno(), file, position, left)
        position += sent
        left -= sent


def main() -> None:
    """Run the benchmark."""
    kind, path, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind == "receive":
        uvloop.run(receive(path, number))
    else:
        send(path, number, copying=kind == "copy")


if __name__ == "__main__":
    main()
