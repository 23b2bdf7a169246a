"""A broker that has not received the metadata yet, and a controller that has not loaded it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire import Message
from kafka_client.wire.messages.api_versions import ApiVersionsRequest
from kafka_client.wire.messages.metadata import MetadataRequest
from logd.broker.cluster.controller.controller_role import ControllerRole
from logd.metadata.controller.core import ControllerSettings
from logd.metadata.zookeeper.election import Elected
from tests.logd.broker.cluster.brokers import Brokers
from tests.support.raw_client import RawClient


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def ask(port: int, message: Message, version: int) -> Any:
    with RawClient(port) as client:
        return client.request(message, version)


async def versions(port: int) -> Any:
    """Return a broker's ApiVersions as soon as it listens."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await asyncio.to_thread(ask, port, ApiVersionsRequest(), 0)
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)


async def test_clients_are_not_told_that_there_is_nothing(zookeeper: str, tmp_path: Path) -> None:
    """Brokers that wait for the old session of their id answer ApiVersions, but drop Metadata requests."""
    async with Brokers(zookeeper, tmp_path / "first", count=1):
        joining = Brokers(zookeeper, tmp_path / "second").create_broker(1)
        starting = asyncio.ensure_future(joining.start())
        await asyncio.sleep(0)  # its addresses are taken first
        port = joining.broker.endpoint.port
        assert (await versions(port)).api_keys
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(ask, port, MetadataRequest(topics=[]), 12)
        assert not starting.done()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting


async def test_who_waits_for_a_controller_that_ends_before_it_has_loaded_hears_of_it() -> None:
    elected = Elected(1, 5, 5, cast("Any", None))
    controlling = ControllerRole(
        cast("Any", None), elected, cast("Any", None), ControllerSettings(), lambda: None
    )
    waiting = asyncio.ensure_future(controlling.do(cast("Any", None)))
    await asyncio.sleep(0)
    await controlling.stop()
    with pytest.raises(KafkaError) as raised:
        await waiting
    assert raised.value.code is ErrorCode.NOT_CONTROLLER
