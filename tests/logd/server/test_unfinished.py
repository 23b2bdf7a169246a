"""A client that sends a request in pieces, or none at all, has a bounded time."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest

from kafka_client.wire import encode_request
from kafka_client.wire.messages.metadata import MetadataRequest
from logd.broker.broker import Broker
from logd.config.load import from_properties
from logd.server import unfinished
from logd.server.server import Server
from logd.server.unfinished import FINISHED, SECONDS_MAX, SLOWEST_BYTES_PER_S, is_late
from tests.support.waiting import until

REQUEST = encode_request(MetadataRequest(topics=[]), 9, 7, "c")


def test_a_large_request_has_longer() -> None:
    assert not is_late(FINISHED, 1e9, 0)
    assert is_late(0.0, SECONDS_MAX + 0.1, 0) and not is_late(0.0, SECONDS_MAX - 0.1, 0)
    assert not is_late(0.0, SECONDS_MAX + 9, 10 * SLOWEST_BYTES_PER_S)


@pytest.mark.parametrize(
    "sent",
    [b"", REQUEST[:3], REQUEST[:-1], struct.pack(">i", 1000) + b"x", REQUEST + REQUEST[:9]],
    ids=["nothing", "a part of the length", "all but a byte", "a length", "a second one in part"],
)
async def test_who_sends_no_whole_request_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    settings = {
        "log.dirs": str(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "connections.max.idle.ms": "100000",
    }
    broker = Broker(from_properties(settings).config)
    server = Server(broker)
    server.bind()
    await broker.start()
    server.accept()
    writers: list[Any] = []
    try:
        opened = [await asyncio.open_connection("127.0.0.1", broker.endpoint.port) for _ in range(2)]
        writers += [writer for _, writer in opened]
        (slow_reader, slow), (reader, idle) = opened
        idle.write(REQUEST)
        assert await reader.read(4)
        slow.write(sent)
        (listener,) = server._listeners
        counted = len(listener._connections)
        assert counted == 2
        if sent.startswith(REQUEST):
            assert await slow_reader.read(4)
        await until(lambda: all(each._received.filled == _left(sent) for each in _slow(listener)))
        await listener._sweep()
        assert len(listener._connections) == 2
        monkeypatch.setattr(unfinished, "SECONDS_MAX", -1.0)
        await listener._sweep()
        await until(lambda: len(listener._connections) == 1)
        assert "no whole request within" in caplog.text or caplog.text == ""
        idle.write(REQUEST)
        assert await reader.read(4)
    finally:
        for writer in writers:
            writer.close()
        await server.close()
        await broker.stop()


def _left(sent: bytes) -> int:
    return len(sent) - len(REQUEST) if sent.startswith(REQUEST) else len(sent)


def _slow(listener: Any) -> list[Any]:
    """Return the connections whose request is not finished."""
    return [each for each in listener._connections if each._unfinished_since != FINISHED]
