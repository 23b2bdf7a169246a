"""Tests of the values that `zookeeper.connect` may have, and of what is refused before any request."""

from __future__ import annotations

import pytest

from kafka_client.errors import ConfigError
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings, parse_connect


@pytest.mark.parametrize(
    ("connect", "hosts", "chroot"),
    [
        ("a:1", (("a", 1),), ""),
        ("a", (("a", 2181),), ""),
        ("a:1,b:2/", (("a", 1), ("b", 2)), ""),
        ("a:1, b:2 /kafka/east/", (("a", 1), ("b", 2)), "/kafka/east"),
        ("[::1]:2182,[::2]/k", (("::1", 2182), ("::2", 2181)), "/k"),
    ],
)
def test_connect(connect: str, hosts: object, chroot: str) -> None:
    assert parse_connect(connect) == (hosts, chroot)


@pytest.mark.parametrize("connect", ["", "/kafka", "a:b", "a:0", "a:70000", "a:1//k", "a:1/../k", ":1"])
def test_connect_that_is_refused(connect: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        parse_connect(connect)


def test_acls_need_an_identity() -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl=true: needs an identity"):
        ZooKeeperSettings.of("a:1", set_acl=True)
    with pytest.raises(ConfigError, match="user:password") as caught:
        ZooKeeperSettings.of("a:1", digest="secret")
    assert "secret" not in str(caught.value)
    settings = ZooKeeperSettings.of("a:1/k", set_acl=True, digest="u:secret")
    assert "secret" not in repr(settings)
    assert settings.connect == "a:1/k"


def test_how_long_a_first_session_is_waited_for() -> None:
    assert ZooKeeperSettings.of("a:1").connection_timeout_s == 18
    assert ZooKeeperSettings.of("a:1", connection_timeout_ms=500).connection_timeout_s == 0.5
