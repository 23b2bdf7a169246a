"""The `zookeeper.*` keys of a broker are read and checked, with their key stores."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from kafka_client.errors import ConfigError
from logd.broker.cluster.zookeeper_settings import zookeeper_settings
from logd.broker_server import membership_of
from logd.config.load import from_properties
from logd.config.zookeeper import ZooKeeperConfig
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from tests.support.certificates import Authority

CONNECT = {"zookeeper.connect": "a:1,b:2/kafka"}
PREVIEW = "millstream.cluster.preview"


def settings(**overrides: str) -> ZooKeeperSettings:
    keys = {"zookeeper." + key.replace("_", "."): value for key, value in overrides.items()}
    return zookeeper_settings(ZooKeeperConfig.of(CONNECT | keys))


def test_defaults_are_kafkas() -> None:
    assert settings() == ZooKeeperSettings.of("a:1,b:2/kafka")
    assert ZooKeeperConfig.of({"num.partitions": "3"}) == ZooKeeperConfig()
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        zookeeper_settings(ZooKeeperConfig())


def test_what_is_given() -> None:
    properties = CONNECT | {
        "zookeeper.session.timeout.ms": "6000",
        "zookeeper.max.in.flight.requests": "50",
        "zookeeper.set.acl": "true",
        "millstream.zookeeper.digest": "u:p",
    }
    assert zookeeper_settings(ZooKeeperConfig.of(properties)) == ZooKeeperSettings.of(
        "a:1,b:2/kafka", session_timeout_ms=6000, max_in_flight_requests=50, set_acl=True, digest="u:p"
    )


def test_tls(tmp_path: Path) -> None:
    authority = Authority("CA")
    authority.write_pem(tmp_path / "trust.pem")
    authority.issue("broker").write_pkcs12(tmp_path / "key.p12", "secret")
    made = settings(
        ssl_client_enable="true",
        ssl_truststore_location=str(tmp_path / "trust.pem"),
        ssl_truststore_type="PEM",
        ssl_keystore_location=str(tmp_path / "key.p12"),
        ssl_keystore_password="secret",
        ssl_enabled_protocols="TLSv1.3",
    ).tls
    assert made is not None
    assert made.check_hostname
    assert made.minimum_version is ssl.TLSVersion.TLSv1_3
    assert [each["subject"] for each in made.get_ca_certs()] == [((("commonName", "CA"),),)]
    unnamed = settings(ssl_client_enable="true", ssl_endpoint_identification_algorithm="").tls
    assert unnamed is not None
    assert not unnamed.check_hostname


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl_truststore_location", "/nowhere/trust.p12"),
        ("ssl_protocol", "SSLv3"),
        ("ssl_keystore_type", "BKS"),
    ],
)
def test_tls_that_cannot_be(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"zookeeper\.{key.replace('_', '.')}={value}"):
        settings(ssl_client_enable="true", **{key: value})


def test_a_broker_by_itself_says_that_it_has_no_use_for_them() -> None:
    others = {"millstream.zookeeper.digest": "u:secret", "zookeeper.sync.time.ms": "2"}
    loaded = from_properties(others | {"zookeeper.connect": " "})
    assert not loaded.config.is_clustered
    assert loaded.warnings == []
    digest = (
        "millstream.zookeeper.digest: no effect without zookeeper.connect, this broker coordinates itself"
    )
    assert loaded.notes == [digest, "zookeeper.sync.time.ms: no effect in logd"]
    assert "secret" not in str(loaded.notes)
    among_others = from_properties(others | CONNECT)
    assert among_others.notes == ["zookeeper.sync.time.ms: no effect in logd"]
    with pytest.raises(ConfigError, match=r"zookeeper\.session\.timeout\.ms=soon"):
        from_properties({"zookeeper.session.timeout.ms": "soon"})


def test_zookeeper_connect_alone_has_a_broker_join_a_cluster() -> None:
    config = from_properties(CONNECT | {"default.replication.factor": "3"}).config
    assert config.is_clustered
    assert membership_of(config, lambda error: None) is not None
    assert membership_of(from_properties({}).config, lambda error: None) is None
    with pytest.raises(ConfigError, match=r"default\.replication\.factor=3: .*without zookeeper\.connect"):
        from_properties({"default.replication.factor": "3"})


def test_the_old_key_of_a_preview_may_say_the_same() -> None:
    note = "millstream.cluster.preview: no effect: zookeeper.connect alone has a broker join a cluster today"
    among_others = from_properties(CONNECT | {PREVIEW: "true"})
    assert (among_others.config.is_clustered, among_others.notes) == (True, [note])
    by_itself = from_properties({PREVIEW: "False"})
    assert (by_itself.config.is_clustered, by_itself.notes) == (False, [note])


@pytest.mark.parametrize(
    ("properties", "value", "remedy"),
    [
        (CONNECT, "false", "take this key out, or zookeeper.connect for a broker by itself"),
        (CONNECT, "perhaps", "take this key out, or zookeeper.connect for a broker by itself"),
        ({}, "true", "give zookeeper.connect, or take this key out for a broker by itself"),
    ],
)
def test_the_old_key_of_a_preview_may_not_contradict(
    properties: dict[str, str], value: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        from_properties(properties | {PREVIEW: value})
    assert str(raised.value).startswith(f"millstream.cluster.preview={value}: ")
    assert str(raised.value).endswith(remedy)
