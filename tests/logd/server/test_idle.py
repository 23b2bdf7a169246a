"""Idle connections are closed, whatever a look at one of them, or at the buffers, came to.

The sweep called itself again at its end: a mistake in it was its last one, and no idle connection was closed
any more, nor was a buffer given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from logd.broker.broker import Broker
from logd.broker.work import periodic
from logd.config.load import from_properties
from logd.server.connection import Connection
from logd.server.receive_buffers import ReceiveBuffers
from logd.server.server import Server
from tests.support.waiting import until

SECONDS = 100


class Mistake(Exception):
    """An error that no code expects."""


def serving(tmp_path: Path, test: Callable[[int], Awaitable[None]]) -> None:
    """Run `test` with the port of a broker that closes connections which idle for a fifth of a second."""

    async def run() -> None:
        settings = {
            "log.dirs": str(tmp_path),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "connections.max.idle.ms": "200",
        }
        broker = Broker(from_properties(settings).config)
        server = Server(broker)
        server.bind()
        await broker.start()
        try:
            server.accept()
            async with asyncio.timeout(SECONDS):
                await test(broker.endpoint.port)
        finally:
            await server.close()
            await broker.stop()

    asyncio.run(run())


async def closed_by_the_broker(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


def test_a_sweep_that_breaks_off_comes_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(periodic, "PAUSE_AFTER_MISTAKE_S", 0.0)
    real, mistakes = ReceiveBuffers.trim, [Mistake()]

    def trim(buffers: ReceiveBuffers) -> None:
        if mistakes:
            raise mistakes.pop()
        real(buffers)

    async def test(port: int) -> None:
        monkeypatch.setattr(ReceiveBuffers, "trim", trim)
        await until(lambda: not mistakes)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await closed_by_the_broker(reader)
        writer.close()

    serving(tmp_path, test)
    assert any(record.exc_info and record.exc_info[0] is Mistake for record in caplog.records)


def test_a_connection_that_cannot_be_closed_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, stuck = Connection.close_idle, []

    def close_idle(connection: Connection, idle_seconds: float) -> None:
        stuck.append(connection)
        if connection is stuck[0]:
            raise Mistake
        real(connection, idle_seconds)

    async def test(port: int) -> None:
        monkeypatch.setattr(Connection, "close_idle", close_idle)
        opened: list[Any] = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        ends = [asyncio.create_task(closed_by_the_broker(reader)) for reader, _ in opened]
        await until(lambda: sum(end.done() for end in ends) >= len(ends) - 1)
        for _, writer in opened:
            writer.close()
        for end in ends:
            end.cancel()

    serving(tmp_path, test)
    assert any(record.exc_info and record.exc_info[0] is Mistake for record in caplog.records)
