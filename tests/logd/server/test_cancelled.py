"""A request whose work is given up from inside: its client hears of it, by the end of its connection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafka_client import Client
from kafka_client.errors import ConnectionClosed
from kafka_client.wire.messages.list_groups import ListGroupsRequest
from logd.api.dispatch.dispatch import Outcome, Serving
from logd.api.request.context import RequestContext
from logd.broker_server import BrokerServer
from logd.config.load import from_properties


def giving_up(serving: Serving) -> Serving:
    async def give_up() -> bytes:
        raise asyncio.CancelledError

    def serve(view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
        is_asked = int.from_bytes(view[pos : pos + 2], "big") == ListGroupsRequest.API_KEY
        return give_up() if is_asked else serving(view, pos, end, context)

    return serve


async def test_its_connection_ends(tmp_path: Path) -> None:
    config = from_properties({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}).config
    broker = BrokerServer(config)
    await broker.start()
    try:
        async with Client(f"127.0.0.1:{broker.broker.endpoint.port}") as client:
            broker.intercept(giving_up)
            with pytest.raises(ConnectionClosed):
                await client.request(ListGroupsRequest())
    finally:
        await broker.stop()
