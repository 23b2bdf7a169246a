"""A client that speaks one request at a time over a plain socket, and can misbehave."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from kafka_client.records import NewRecord, build_batch
from kafka_client.wire import Message, decode, decode_response_header, encode_request, response_class
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_client.wire.produce import encode_produce_request

TIMEOUT_SECONDS = 60.0
"""Only a hang takes so long, whatever else the machine does."""


class RawClient:
    """Blocking; every wait ends after ``TIMEOUT_SECONDS``."""

    def __init__(self, port: int, host: str = "127.0.0.1", *, client_id: str = "raw") -> None:
        self.client_id = client_id
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_SECONDS)

    def request(self, message: Message, version: int) -> Any:
        """Send a request and decode its response."""
        self.send(encode_request(message, version, 7, self.client_id))
        return self.receive(message.API_KEY, version)

    def receive(self, api_key: int, version: int) -> Any:
        """Decode the next response; ConnectionError when the broker closed the connection."""
        frame = self.receive_frame()
        if frame is None:
            raise ConnectionError("the broker closed the connection")
        correlation_id, pos = decode_response_header(api_key, version, frame)
        assert correlation_id == 7
        return decode(response_class(api_key), version, frame, pos)

    def produce(
        self,
        topic: str | bytes,
        batch: bytes | Sequence[NewRecord],
        *,
        partition: int = 0,
        acks: int = -1,
        version: int = 9,
    ) -> Any:
        """Produce one batch; the answer for its partition."""
        self.send_produce(topic, batch, partition=partition, acks=acks, version=version)
        return self.receive(0, version).responses[0].partition_responses[0]

    def send_produce(
        self,
        topic: str | bytes,
        batch: bytes | Sequence[NewRecord],
        *,
        partition: int = 0,
        acks: int = -1,
        version: int = 9,
    ) -> None:
        """Produce without reading the answer."""
        data = batch if isinstance(batch, bytes) else build_batch(batch)
        chunks = encode_produce_request([(topic, [(partition, data)])], version, 7, self.client_id, acks=acks)
        self.send(b"".join(bytes(chunk) for chunk in chunks))

    def fetch(
        self, topic: str | bytes, offset: int = 0, *, partition: int = 0, version: int = 12, **limits: int
    ) -> Any:
        """Fetch one partition; the answer for it. ``limits`` are fields of the request."""
        self.send_fetch(topic, offset, partition=partition, version=version, **limits)
        return self.receive(1, version).responses[0].partitions[0]

    def send_fetch(
        self, topic: str | bytes, offset: int = 0, *, partition: int = 0, version: int = 12, **limits: int
    ) -> None:
        """Ask without reading the answer."""
        partition_bytes = limits.pop("partition_max_bytes", 1 << 20)
        partition_request = FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=partition_bytes
        )
        named = FetchTopic(topic_id=topic) if isinstance(topic, bytes) else FetchTopic(topic=topic)
        named.partitions = [partition_request]
        request = FetchRequest(**{"min_bytes": 1, "max_bytes": 1 << 26, **limits}, topics=[named])
        self.send(encode_request(request, version, 7, self.client_id))

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def receive_frame(self) -> bytes | None:
        """Return the next response without its length, None if the broker closed the connection."""
        length = self._receive_exactly(4)
        if length is None:
            return None
        return self._receive_exactly(struct.unpack(">i", length)[0])

    def is_closed_by_peer(self) -> bool:
        """Wait for the broker to close the connection; False when it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _receive_exactly(self, size: int) -> bytes | None:
        received = bytearray()
        while len(received) < size:
            try:
                data = self.socket.recv(size - len(received))
            except ConnectionError:
                return None
            if not data:
                return None
            received += data
        return bytes(received)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
