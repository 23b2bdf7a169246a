"""Limits on connections: of all listeners together, sparing the one between brokers.

The story: max.connections counted by listener and spared none. Any peer could set it to 0, and nobody could
connect any more to take it back, not even after a restart.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafka_client.wire.messages.metadata import MetadataRequest
from logd.config.broker import BrokerConfig
from logd.config.connection_limits import limits_by_address, plain_address
from logd.config.listeners import Endpoint
from logd.server.connection_quotas import ConnectionQuotas, spared_listener
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port
from tests.support.raw_client import RawClient

CLIENTS, INNER = "CLIENTS", "INNER"
BROKER = 4


class Peer:
    """A connection that only counts."""

    def __init__(self, host: str = "10.0.0.1", last_active: float = 0.0) -> None:
        self.host = host
        self.last_active = last_active
        self.has_given_way = False

    def give_way(self) -> None:
        self.has_given_way = True


class Quotas:
    """Quotas with a clock of their own; settings are Kafka's keys with underscores."""

    def __init__(self, spared: str | None = INNER, **settings: str) -> None:
        self.now = 100.0
        config = BrokerConfig.of({key.replace("_", "."): value for key, value in settings.items()})
        self.quotas = ConnectionQuotas(lambda: config, spared, lambda: self.now)

    def admit(self, peer: Peer, listener: str = CLIENTS) -> str | None:
        return self.quotas.admit(peer, listener)


def test_all_listeners_count_together_and_brokers_are_spared() -> None:
    quotas = Quotas(max_connections="3")
    silent, busy = Peer(last_active=1), Peer(last_active=2)
    assert quotas.admit(silent) is quotas.admit(busy) is quotas.admit(Peer(), INNER) is None
    refused = Peer()
    assert quotas.admit(refused) == "more than max.connections=3"
    quotas.quotas.forget(refused)
    assert quotas.admit(Peer(), INNER) is None
    assert (silent.has_given_way, busy.has_given_way) == (True, False)
    quotas.quotas.forget(silent)
    brokers = [Peer() for _ in range(5)]
    assert [quotas.admit(peer, INNER) for peer in brokers] == [None] * 5
    assert busy.has_given_way


def test_a_place_is_given_again() -> None:
    quotas = Quotas(max_connections="1", max_connections_per_ip="1")
    for _ in range(3):
        peer = Peer()
        assert quotas.admit(peer) is None
        other = Peer("10.0.0.2")
        assert quotas.admit(other) == "more than max.connections=1"
        quotas.quotas.forget(other)
        quotas.quotas.forget(peer)


def test_an_address_has_a_limit_of_its_own() -> None:
    quotas = Quotas(max_connections_per_ip="1", max_connections_per_ip_overrides="10.0.0.2:2,[::1]:0")
    assert quotas.admit(Peer()) is None
    assert quotas.admit(Peer("::ffff:10.0.0.1")) == "more than max.connections.per.ip=1"
    assert [quotas.admit(Peer("10.0.0.2")) for _ in range(3)] == [
        None,
        None,
        "more than max.connections.per.ip.overrides=2",
    ]
    assert quotas.admit(Peer("::1")) == "more than max.connections.per.ip.overrides=0"
    assert quotas.admit(Peer("::1"), INNER) is None


def test_new_connections_wait_for_their_second() -> None:
    quotas = Quotas(max_connection_creation_rate="10")
    pauses = [quotas.quotas.pause_s(CLIENTS) for _ in range(12)]
    assert pauses[:9] == [0.0] * 9
    assert [round(pause, 3) for pause in pauses[9:]] == [0.1, 0.2, 0.3]
    assert quotas.quotas.pause_s(INNER) == 0.0
    quotas.now += 60
    assert quotas.quotas.pause_s(CLIENTS) == 0.0


def test_by_default_nobody_waits() -> None:
    quotas = Quotas()
    assert {quotas.quotas.pause_s(CLIENTS) for _ in range(10_000)} == {0.0}
    assert {quotas.admit(Peer()) for _ in range(1_000)} == {None}


@pytest.mark.parametrize(
    ("names", "named", "spared"),
    [
        ([CLIENTS], None, None),
        ([CLIENTS], CLIENTS, None),
        ([CLIENTS, INNER], None, CLIENTS),
        ([CLIENTS, INNER], "inner", INNER),
    ],
)
def test_which_listener_is_spared(names: list[str], named: str | None, spared: str | None) -> None:
    config = BrokerConfig.of({} if named is None else {"inter.broker.listener.name": named})
    assert spared_listener(config, [Endpoint(name, "", 0) for name in names]) == spared


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:", "host:5", "10.0.0.1:-1", "10.0.0.1:99999999999"])
def test_what_is_no_limit_of_an_address(text: str) -> None:
    with pytest.raises(ValueError):
        limits_by_address([text])


def test_forms_of_an_address() -> None:
    assert [plain_address(host) for host in ("::ffff:1.2.3.4", "fe80::1%eth0", "?")] == [
        "1.2.3.4",
        "fe80::1",
        "?",
    ]


def altered(port: int, key: str, value: str) -> int:
    """Set a broker's setting while it runs, and return the error code."""
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[config])
    with RawClient(port) as client:
        answer = client.request(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return int(answer.responses[0].error_code)


def test_nobody_can_lock_everybody_out(tmp_path: Path) -> None:
    clients, inner = free_port(), free_port()
    settings = {
        "listeners": f"CLIENTS://127.0.0.1:{clients},INNER://127.0.0.1:{inner}",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INNER:PLAINTEXT",
        "inter.broker.listener.name": "INNER",
    }
    with LogdProcess(tmp_path, settings):
        for key in ("max.connections", "max.connections.per.ip", "max.connection.creation.rate"):
            assert altered(clients, key, "0") == ErrorCode.INVALID_REQUEST
        assert altered(clients, "max.connections", "1") == ErrorCode.NONE
        with RawClient(clients) as first, RawClient(inner) as second:
            assert first.is_closed_by_peer()
            assert second.request(MetadataRequest(topics=[]), 9).brokers
            with RawClient(clients) as third:
                assert third.is_closed_by_peer()
        assert altered(inner, "max.connections", "100") == ErrorCode.NONE
        with RawClient(clients) as again:
            assert again.request(MetadataRequest(topics=[]), 9).brokers
