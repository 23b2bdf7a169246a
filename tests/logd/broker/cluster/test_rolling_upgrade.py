"""A rolling upgrade from a release whose brokers do not log in to each other.

A broker of that release is played: its registration says nothing of a login, it answers no handshake, and it
logs in to nobody.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_client import Admin, Client, NewTopic, Producer
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import ApiKey
from logd.api.broker_requests import BROKER_REQUESTS, FETCH
from logd.api.dispatch.dispatch import Outcome, Serving
from logd.api.request.answer import Refused
from logd.api.request.context import RequestContext
from logd.broker.cluster import membership as memberships
from logd.broker.cluster.host import HostBroker
from logd.broker_server import BrokerServer
from logd.metadata.zookeeper.znodes.znodes import Registration
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.broker.cluster.test_private_requests import refused

_KEY = struct.Struct(">h")


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The ids of brokers that are of the older release when they start."""
    ids: set[int] = set()
    registration_of = memberships.registration_of
    create_parts = memberships.ClusterMembership.create_parts

    def registration(broker: HostBroker) -> Registration:
        return replace(registration_of(broker), logs_in=broker.node_id not in ids)

    def parts(membership: memberships.ClusterMembership, broker: HostBroker) -> None:
        create_parts(membership, broker)
        if broker.node_id in ids:
            membership.member.peers._with_login = membership.member.peers._plain

    monkeypatch.setattr(memberships, "registration_of", registration)
    monkeypatch.setattr(memberships.ClusterMembership, "create_parts", parts)
    return ids


def without_handshakes(serve: Serving) -> Serving:
    def serve_older(view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
        if _KEY.unpack_from(view, pos)[0] in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
            raise Refused("sent a handshake to a broker of the older release")
        return serve(view, pos, end, context)

    return serve_older


async def start(brokers: Brokers, id_: int, older: set[int]) -> BrokerServer:
    await brokers.start(id_)
    if id_ in older:
        brokers.up[id_].intercept(without_handshakes)
    await brokers.until(
        lambda: all(set(each.broker.image.brokers) == set(brokers.up) for each in all_of(brokers))
    )
    return brokers.up[id_]


def all_of(brokers: Brokers) -> list[BrokerServer]:
    return list(brokers.up.values())


async def write(brokers: Brokers, number: int) -> None:
    """Write a record that is acknowledged once all brokers have it, and which only all in sync can store."""
    tp = TopicPartition("t", 0)
    await brokers.until(lambda: (state := brokers.state(tp)) is not None and len(state.isr) == 3)
    async with Client(brokers.bootstrap) as client, Producer(client, acks="all") as producer:
        sent = await producer.send("t", str(number).encode(), partition=0)
        assert (await sent).offset == number


async def is_served(brokers: Brokers, id_: int) -> bool:
    """Return True if the broker serves a follower's fetch from a peer that has not logged in."""
    port = brokers.up[id_].broker.endpoint.port
    return not await asyncio.to_thread(refused, port, BROKER_REQUESTS[FETCH])


async def test_brokers_are_upgraded_one_after_the_other_and_one_goes_back(
    zookeeper: str, tmp_path: Path, older: set[int]
) -> None:
    older.update((1, 2, 3))
    async with Brokers(zookeeper, tmp_path, count=0, min_insync_replicas="3") as brokers:
        for id_ in (1, 2, 3):
            await start(brokers, id_, older)
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("t", 1, 3)])
        await write(brokers, 0)
        # The controller moves from an older broker to a new one and back.
        for number, (id_, is_older) in enumerate(
            ((1, False), (2, False), (3, False), (2, True), (2, False)), 1
        ):
            await brokers.stop(id_)
            (older.add if is_older else older.discard)(id_)
            await start(brokers, id_, older)
            await write(brokers, number)
            assert await is_served(brokers, 1) or not older
        for id_ in (1, 2, 3):
            while await is_served(brokers, id_):  # noqa: ASYNC110 (until ZooKeeper was looked at again)
                await asyncio.sleep(0.05)
        await write(brokers, 6)
