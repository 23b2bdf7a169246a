"""The `zookeeper.*` keys of a broker: read, checked, and with their key stores."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from logd.broker.zookeeper_settings import zookeeper_settings
from logd.config.load import from_properties
from logd.config.zookeeper import ZooKeeperConfig
from logd.errors import ConfigError
from logd.metadata.zookeeper.settings import ZooKeeperSettings
from tests.support.certificates import Authority

CONNECT = {"zookeeper.connect": "a:1,b:2/kafka"}


def settings(**given: str) -> ZooKeeperSettings:
    keys = {"zookeeper." + key.replace("_", "."): value for key, value in given.items()}
    return zookeeper_settings(ZooKeeperConfig.of(CONNECT | keys))


def test_defaults_are_kafkas() -> None:
    assert settings() == ZooKeeperSettings.of("a:1,b:2/kafka")
    assert ZooKeeperConfig.of({"num.partitions": "3"}) == ZooKeeperConfig()
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        zookeeper_settings(ZooKeeperConfig())


def test_what_is_given() -> None:
    given = CONNECT | {
        "zookeeper.session.timeout.ms": "6000",
        "zookeeper.connection.timeout.ms": "",
        "zookeeper.max.in.flight.requests": "50",
        "zookeeper.set.acl": "true",
        "millstream.zookeeper.digest": "u:p",
    }
    assert zookeeper_settings(ZooKeeperConfig.of(given)) == ZooKeeperSettings.of(
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


def test_a_broker_of_today_says_that_it_has_no_use_for_them() -> None:
    loaded = from_properties(
        CONNECT | {"millstream.zookeeper.digest": "u:secret", "zookeeper.sync.time.ms": "2"}
    )
    assert loaded.warnings == []
    assert "zookeeper.connect: no effect yet, this broker coordinates itself" in loaded.notes
    assert "secret" not in str(loaded.notes)
    with pytest.raises(ConfigError, match=r"zookeeper\.session\.timeout\.ms=soon"):
        from_properties({"zookeeper.session.timeout.ms": "soon"})
