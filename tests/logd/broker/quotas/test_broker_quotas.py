"""The quotas of one broker: new connections of an address, restarts, metrics, and a broker without any."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from kafka_client.wire.messages.metadata import MetadataRequest
from logd.api.dispatch import throttling
from logd.broker.quotas import client_quotas
from logd.broker.quotas.client_quotas import ClientQuotas
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.metadata.client_quotas import CLIENT_KEYS, configs_change, entity_of
from logd.metadata.image import ClusterImage, user_configs
from tests.support.client_quotas import alter_quotas
from tests.support.documented_metrics import check_documented
from tests.support.raw_client import RawClient

ADDRESS = "127.0.0.1"


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def quotas_of(clock: Clock, *entities: tuple[Mapping[str, str | None], Mapping[str, str]]) -> ClientQuotas:
    changes = [configs_change(entity_of(names), configs) for names, configs in entities]
    return ClientQuotas(ClusterImage.of(changes), clock)


def test_new_connections_of_an_address() -> None:
    clock = Clock()
    quotas = quotas_of(
        clock,
        ({"ip": "::ffff:10.0.0.1"}, {"connection_creation_rate": "1"}),
        ({"ip": None}, {"connection_creation_rate": "3"}),
    )
    assert [quotas.connected("10.0.0.1") for _ in range(12)] == [True] * 10 + [False] * 2
    assert sum(quotas.connected("10.0.0.2") for _ in range(100)) == 30
    clock.now_s += 5
    assert not quotas.connected("10.0.0.1")
    clock.now_s += 6
    assert [quotas.connected("10.0.0.1") for _ in range(12)] == [True] * 10 + [False] * 2


def test_addresses_without_a_quota_are_not_counted() -> None:
    quotas = quotas_of(Clock(), ({"ip": "10.0.0.1"}, {"connection_creation_rate": "1"}))
    assert all(quotas.connected("10.0.0.2") for _ in range(100))


def test_the_memory_of_clients_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "USERS_MAX", 3)
    quotas = quotas_of(
        Clock(),
        ({"client-id": None}, {"producer_byte_rate": "1"}),
        ({"ip": None}, {"connection_creation_rate": "1"}),
    )
    for n in range(10):
        quotas.produced("alice", f"c{n}", 100)
        quotas.connected(f"10.0.0.{n}")
    assert [labels["client-id"] for labels, _ in quotas.metrics("Produce")] == ["c7", "c8", "c9"]
    assert [quotas.connected("10.0.0.9") for _ in range(10)] == [True] * 9 + [False]


def test_a_long_wait_fits_into_the_response() -> None:
    quotas = quotas_of(
        Clock(),
        (
            {"user": "alice"},
            {"producer_byte_rate": "1", "request_percentage": "5e-324", "controller_mutation_rate": "5e-324"},
        ),
    )
    assert quotas.produced("alice", "", 2**62) == 2**31 - 1
    assert quotas.served("alice", "", 100.0) == 1_000
    quotas.mutated("alice", "", 2**40)
    assert quotas.mutation_throttle_ms("alice", "") == 2**31 - 1


async def started(folder: Path) -> BrokerServer:
    settings = {"log.dirs": str(folder), "listeners": f"PLAINTEXT://{ADDRESS}:0"}
    server = BrokerServer(from_properties(settings).config)
    await server.start()
    return server


async def ask(server: BrokerServer, quotas: Mapping[str, float | None] | None = None) -> None:
    """Set quotas of a client, or ask for nothing but an answer, in a thread: the broker has this one."""

    def request() -> None:
        with closing(RawClient(server.broker.endpoint.port)) as client:
            if quotas is None:
                client.request(MetadataRequest(topics=[]), 12)
            else:
                alter_quotas(client, {"client-id": "c"}, quotas)

    await asyncio.to_thread(request)


async def test_nothing_is_counted_without_quotas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await started(tmp_path)
    try:
        assert server.broker.client_quotas is None
        await ask(server, {"producer_byte_rate": 1_000})
        assert server.broker.client_quotas is not None
        await ask(server, {"producer_byte_rate": None})
        assert server.broker.client_quotas is None
        await server.broker.catalog.follow([user_configs("alice", {"SCRAM-SHA-256": "no quota"})])
        monkeypatch.setattr(throttling, "throttling", None)  # a call of it would close the connection
        await ask(server)
        assert server.broker.client_quotas is None
    finally:
        await server.stop()


async def test_a_restart_keeps_quotas(tmp_path: Path) -> None:
    server = await started(tmp_path)
    await ask(server, {"producer_byte_rate": 1_000, "request_percentage": 200.0})
    await server.stop()
    server = await started(tmp_path)
    try:
        assert server.broker.image.entity_configs == {
            "clients/c": {"producer_byte_rate": "1000", "request_percentage": "200.0"}
        }
        assert server.broker.client_quotas is not None
        limit = server.broker.client_quotas.limits.find("producer_byte_rate", "ANONYMOUS", "c")
        assert limit is not None
        assert limit.value == 1_000
    finally:
        await server.stop()


async def test_connections_of_an_address_that_are_too_many(tmp_path: Path) -> None:
    server = await started(tmp_path)

    def connect() -> None:
        port = server.broker.endpoint.port
        with closing(RawClient(port)) as first:
            alter_quotas(first, {"ip": ADDRESS}, {"connection_creation_rate": 1})
            with closing(RawClient(port)) as second:
                assert second.request(MetadataRequest(topics=[]), 12).brokers
            # Ten connections within ten seconds, and more of them than a slow machine lets time pass for.
            others = [RawClient(port) for _ in range(40)]
            assert sum(each.is_closed_by_peer() for each in others[20:]) > 0
            for each in others:
                each.close()
            alter_quotas(first, {"ip": ADDRESS}, {"connection_creation_rate": None})
        with closing(RawClient(port)) as again:
            assert again.request(MetadataRequest(topics=[]), 12).brokers

    try:
        await asyncio.to_thread(connect)
        assert server.broker.client_quotas is None
    finally:
        await server.stop()


async def test_waits_are_in_the_metrics(tmp_path: Path) -> None:
    server = await started(tmp_path)
    try:
        limits = {key: "1" if key == "controller_mutation_rate" else "10" for key in CLIENT_KEYS}
        quotas = server.broker.client_quotas = quotas_of(Clock(), ({"client-id": "c"}, limits))
        wait_ms = quotas.produced("alice", "c", 1_000)
        assert wait_ms == 90_000
        quotas.mutated("alice", "c", 5)
        quotas.fetched("alice", "c", 1)
        quotas.served("alice", "c", 0.1)
        tags = {"user": "", "client-id": "c"}
        metrics = server.broker.metrics
        assert metrics.values("Produce", **tags) == {"byte-rate": 100.0, "throttle-time": wait_ms}
        mutations = metrics.values("ControllerMutation", **tags)
        check_documented(metrics, "Produce", "Fetch", "Request", "ControllerMutation")
        assert mutations == {"tokens": 6, "throttle-time": 0, "mutation-rate": 0.5}
    finally:
        await server.stop()
