from __future__ import annotations

import socket

import pytest

from kafka_client.errors import ConfigError
from logd.config.broker import BrokerConfig
from logd.config.listeners import Endpoint, advertised_endpoints, bound_endpoints


def endpoints(**settings: str) -> tuple[list[Endpoint], list[Endpoint]]:
    config = BrokerConfig.of({key.replace("_", "."): value for key, value in settings.items()})
    bound = bound_endpoints(config)
    return bound, advertised_endpoints(config, bound)


def test_a_listener_is_advertised_as_it_is_bound() -> None:
    bound, advertised = endpoints(listeners="PLAINTEXT://127.0.0.1:9092")
    assert bound == advertised == [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]


def test_an_empty_host_is_advertised_by_the_machines_name() -> None:
    bound, advertised = endpoints(listeners="PLAINTEXT://:9092")
    assert bound == [Endpoint("PLAINTEXT", "", 9092)]
    assert advertised == [Endpoint("PLAINTEXT", socket.gethostname(), 9092)]


def test_several_listeners_each_with_its_own_address() -> None:
    bound, advertised = endpoints(
        listeners="PLAINTEXT://[::1]:9092,outside://0.0.0.0:9093",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
        advertised_listeners="PLAINTEXT://localhost:1,OUTSIDE://example.org:2",
    )
    assert bound == [Endpoint("PLAINTEXT", "::1", 9092), Endpoint("OUTSIDE", "0.0.0.0", 9093)]
    assert advertised == [Endpoint("PLAINTEXT", "localhost", 1), Endpoint("OUTSIDE", "example.org", 2)]
    assert str(bound[0]) == "[::1]:9092"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listeners": "127.0.0.1:9092"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://h:99999"}, "NAME://host:port"),
        ({"listeners": "X://h:1", "listener_security_protocol_map": "X:TLS"}, "SASL_SSL"),
        ({"listeners": "OTHER://h:1"}, "listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://h:1,PLAINTEXT://h:2"}, "once"),
        (
            {"listeners": "PLAINTEXT://h:1", "advertised_listeners": "OTHER://h:1"},
            "a name that listeners has",
        ),
        ({"listeners": "PLAINTEXT://h:1", "advertised_listeners": "PLAINTEXT://0.0.0.0:1"}, "reach"),
    ],
)
def test_what_cannot_be_served_is_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        endpoints(**settings)
