"""A client that does next to nothing, so that the server is measured: prebuilt frames out, bytes in."""

from __future__ import annotations

import asyncio
import socket
import struct

from kafka_client import Admin, Client, NewTopic, TopicPartition

_LENGTH = struct.Struct(">i")


def connect(host: str, port: int) -> socket.socket:
    """Return a blocking connection without Nagle's delay."""
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Drain:
    """A reader of responses from a socket, into one buffer."""

    def __init__(self, connection: socket.socket, size: int = 1 << 20) -> None:
        self._connection = connection
        self._buffer = bytearray(size)
        self._view = memoryview(self._buffer)

    def exactly(self, count: int) -> memoryview:
        """Read the next `count` bytes; they overwrite each other in the buffer.

        Return its part up to `count`.
        """
        left = count
        while left:
            piece = self._view[: min(left, len(self._buffer))]
            received = self._connection.recv_into(piece, len(piece), socket.MSG_WAITALL)
            if not received:
                raise ConnectionResetError("the broker closed the connection")
            left -= received
        return self._view[:count]

    def frame(self) -> int:
        """Read and discard one frame. Return its length."""
        (length,) = _LENGTH.unpack(self.exactly(4))
        self.exactly(length)
        return int(length)


def stream(connection: socket.socket, frame: bytes, count: int, *, in_flight: int) -> None:
    """Send the same frame `count` times, never more than `in_flight` of them unanswered."""
    drain = Drain(connection)
    sent = answered = 0
    while answered < count:
        while sent < count and sent - answered < in_flight:
            connection.sendall(frame)
            sent += 1
        drain.frame()
        answered += 1


def create_topic(bootstrap: str, topic: str, partitions: int = 1) -> bool:
    """Create the topic. Return True if it existed already."""

    async def ask() -> bool:
        async with Client(bootstrap) as client:
            admin = Admin(client)
            if topic in await admin.list_topics():
                return True
            await admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)])
            return False

    return asyncio.run(ask())


def topic_ends(bootstrap: str, topic: str) -> list[int]:
    """Return the end offsets of the topic's partitions."""

    async def ask() -> list[int]:
        async with Client(bootstrap) as client:
            admin = Admin(client)
            described = (await admin.describe_topics([topic]))[topic]
            partitions = [TopicPartition(topic, partition) for partition in sorted(described.partitions)]
            ends = await admin.list_offsets(dict.fromkeys(partitions, "latest"))
            return [ends[partition].offset for partition in partitions]

    return asyncio.run(ask())


def topic_end(bootstrap: str, topic: str) -> int:
    """Return the number of records in the topic, the sum of its partitions' end offsets."""
    return sum(topic_ends(bootstrap, topic))
