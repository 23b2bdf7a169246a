"""Requests to a hanging broker end once another broker is known to be responsible."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client, NewTopic
from kafka_client.errors import ConnectionClosed
from kafka_client.wire import ApiKey
from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.list_offsets import ListOffsetsRequest
from logd.broker.cluster import member as members
from logd.broker.cluster.peer_connections import PeerConnections
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.metadata.image import BrokerImage, Endpoint
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.broker.cluster.hanging import hanging
from tests.support.depth import deep
from tests.support.waiting import until

ENDLESS_MS = 3_600_000
"""A request timeout, in ms, longer than any test."""


@pytest.fixture(autouse=True)
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "FORWARD_TIMEOUT_S", ENDLESS_MS / 1000)


def _patient(brokers: Brokers) -> None:
    """Set the request timeout between brokers to `ENDLESS_MS`."""
    for id_ in brokers.up:
        brokers.member(id_).peers._request_timeout_ms = ENDLESS_MS


async def _soon(work: Coroutine[Any, Any, Any]) -> Any:
    async with asyncio.timeout(60):
        return await work


async def test_what_a_controller_does_not_answer_the_next_one_is_asked(
    zookeeper: str, tmp_path: Path
) -> None:
    async with Brokers(zookeeper, tmp_path) as brokers:
        _patient(brokers)
        controller = brokers.controller
        other = next(id_ for id_, each in brokers.up.items() if each is not controller)
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=2)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
        with hanging(controller) as hangs:
            creating = asyncio.create_task(brokers.member(other).peers.request(other, request))
            await brokers.until(lambda: ApiKey.ENVELOPE in hangs.unanswered)
            await brokers.member(controller.broker.node_id).stand_down()
            answer = await _soon(asyncio.wait_for(creating, None))
            assert [each.error_code for each in answer.topics] == [0]
        assert brokers.controller is not controller


@deep
async def test_a_broker_that_stops_asks_the_next_controller(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, controlled_shutdown_retry_backoff_ms="600000") as brokers:
        _patient(brokers)
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("t", 6, 3)])
        controller = brokers.controller
        stopping = next(id_ for id_, each in brokers.up.items() if each is not controller)
        leading = brokers.up[stopping].broker.leading
        assert leading is not None
        with hanging(controller) as hangs:
            task = asyncio.create_task(brokers.stop(stopping))
            await brokers.until(lambda: ApiKey.BROKER_REPORT in hangs.unanswered)
            await brokers.member(controller.broker.node_id).stand_down()
            await _soon(asyncio.wait_for(task, None))


async def test_nobody_waits_for_a_broker_that_is_gone(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, controlled_shutdown_enable="false") as brokers:
        _patient(brokers)
        controller = brokers.controller.broker.node_id
        goes, asks = (id_ for id_ in brokers.up if id_ != controller)
        with hanging(brokers.up[goes]) as hangs:
            asking = asyncio.create_task(brokers.member(asks).peers.request(goes, ListOffsetsRequest()))
            await brokers.until(lambda: ApiKey.LIST_OFFSETS in hangs.unanswered)
            await brokers.member(goes).unregister()
            with pytest.raises(ConnectionClosed, match=f"broker {goes}, epoch .* is gone"):
                await _soon(asyncio.wait_for(asking, None))


async def test_connections_are_to_one_registration(tmp_path: Path) -> None:
    config = from_properties({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}).config
    broker = BrokerServer(config)
    await broker.start()
    port = broker.broker.endpoint.port
    endpoints = (Endpoint("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT"),)
    brokers = {7: BrokerImage(id=7, epoch=1, endpoints=endpoints)}
    peers = PeerConnections(1, lambda: brokers, "PLAINTEXT", request_timeout_ms=ENDLESS_MS)
    try:
        with hanging(broker) as hangs:
            asking = asyncio.create_task(peers.request(7, ListOffsetsRequest()))
            await until(lambda: hangs.unanswered)
            first = await peers.connection(7)
            brokers[7] = BrokerImage(id=7, epoch=2, endpoints=endpoints)
            second = await peers.connection(7)
            assert second is not first and second.is_open
            with pytest.raises(ConnectionClosed, match="broker 7, epoch 1, is gone"):
                await _soon(asyncio.wait_for(asking, None))
            peers.brokers_changed()
            assert await peers.connection(7) is second
    finally:
        await peers.close()
        await broker.stop()
