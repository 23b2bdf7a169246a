"""Requests to a schema registry: TLS, credentials, failover, and answers that are none."""

from __future__ import annotations

import json

import pytest

from connect.converters import make_converter
from connect.converters.registry import RegistryClient, RegistryConfig
from connect.converters.registry.requests import ANSWER_MAX
from connect.errors import ConfigError, ConnectError, DataError, RetriableError
from tests.connect.converters.schema_registry import served
from tests.support.certificates import Authority


@pytest.fixture
def registry():
    with served() as registry:
        registry.add("s", '"string"')
        yield registry


def client(url, pauses=None, **settings):
    raw = {"schema.registry.url": url, **{k.replace("_", "."): v for k, v in settings.items()}}
    return RegistryClient(RegistryConfig.parse(raw), pause=[].append if pauses is None else pauses.append)


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "texts"])
def test_tls_with_a_client_certificate(tmp_path, kind):
    authority = Authority("test CA")
    mine = authority.issue("me")
    server = authority.issue("registry", hosts=["127.0.0.1"])
    settings = {"ssl.truststore.type": kind, "ssl.keystore.type": kind}
    if kind == "PEM":
        settings["ssl.truststore.location"] = authority.write_pem(tmp_path / "ca.pem")
        settings["ssl.keystore.location"] = mine.write_pem(tmp_path / "me.pem")
    elif kind == "PKCS12":
        settings["ssl.truststore.location"] = authority.write_pkcs12(tmp_path / "ca.p12", "secret")
        settings["ssl.keystore.location"] = mine.write_pkcs12(tmp_path / "me.p12", "secret")
        settings |= {"ssl.truststore.password": "secret", "ssl.keystore.password": "secret"}
    else:
        settings = {
            "ssl.truststore.certificates": authority.pem,
            "ssl.keystore.key": mine.key_pem("locked"),
            "ssl.keystore.certificate.chain": mine.chain,
            "ssl.key.password": "locked",
        }
    with served(server.server_context(tmp_path, authority.pem)) as registry:
        keys = {f"schema.registry.{key}": str(value) for key, value in settings.items()}
        assert client(registry.url, **keys).register("s", "AVRO", '"int"') == 1


def test_a_certificate_that_is_not_trusted_fails_the_task(tmp_path):
    server = Authority("other CA").issue("registry", hosts=["127.0.0.1"])
    pauses: list[float] = []
    with served(server.server_context(tmp_path)) as registry:
        with pytest.raises(ConnectError, match=r"the certificate of https://127.* is not trusted") as caught:
            client(registry.url, pauses).by_id(1)
    assert not isinstance(caught.value, DataError | RetriableError) and not pauses


def test_stores_that_cannot_be_used_are_named_by_the_converters_keys(tmp_path):
    settings = {"schema.registry.url": "https://x", "schema.registry.ssl.truststore.location": "/nowhere"}
    key = r"value\.converter\.schema\.registry\.ssl\.truststore\.location"
    with pytest.raises(ConfigError, match=rf"{key}=/nowhere: cannot be read"):
        make_converter("value.converter", "json-schema", settings)


def test_a_bearer_token(registry):
    settings = {"bearer_auth_credentials_source": "STATIC_TOKEN", "bearer_auth_token": "abc.def"}
    client(registry.url, **settings).by_id(1)
    assert registry.authorizations == ["Bearer abc.def"]


def test_the_user_of_sasl(registry):
    registry.user = "me:p@ss"
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="p@ss";'
    settings = {"basic_auth_credentials_source": "SASL_INHERIT", "sasl_jaas_config": jaas}
    assert client(registry.url, **settings).by_id(1).id == 1


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"basic_auth_credentials_source": "USER_INFO", "basic_auth_user_info": "geheim"}, "basic.auth.user"),
        ({"basic_auth_credentials_source": "SASL_INHERIT", "sasl_jaas_config": "geheim"}, "sasl.jaas.config"),
        ({"bearer_auth_credentials_source": "STATIC_TOKEN"}, "bearer.auth.token"),
        (
            {"bearer_auth_credentials_source": "STATIC_TOKEN", "bearer_auth_token": "geheim\n"},
            "bearer.auth.token",
        ),
    ],
)
def test_credentials_that_cannot_be_used(settings, key):
    with pytest.raises(ConfigError, match=key) as caught:
        client("http://x", **settings)
    assert "geheim" not in str(caught.value)


def test_no_secret_is_in_an_error(registry):
    registry.user = "other:one"
    with pytest.raises(ConnectError, match="answers 401") as caught:
        client(registry.url.replace("//", "//me:geheim@")).by_id(1)
    assert "geheim" not in repr(caught.value)
    with pytest.raises(RetriableError) as away:
        client("http://me:geheim@127.0.0.1:9").by_id(1)
    assert "geheim" not in repr(away.value)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, DataError),
        (409, DataError),
        (422, DataError),
        (401, ConnectError),
        (403, ConnectError),
        (400, ConnectError),
        (405, ConnectError),
        (408, RetriableError),
        (429, RetriableError),
        (500, RetriableError),
        (503, RetriableError),
    ],
)
def test_failures_told_apart(registry, status, error):
    registry.failures = [status] * 3
    with pytest.raises(ConnectError, match=rf"answers {status} .*out of order") as caught:
        client(registry.url).by_id(1)
    assert type(caught.value) is error
    assert len(registry.requests) == (3 if error is RetriableError else 1)


def test_retries_wait_twice_as_long_each_up_to_a_bound(registry):
    registry.failures = [503] * 5
    pauses: list[float] = []
    settings = {"max_retries": "5", "retries_wait_ms": "100", "retries_max_wait_ms": "300"}
    assert client(registry.url, pauses, **settings).by_id(1).id == 1
    assert pauses == [0.1, 0.2, 0.3, 0.3, 0.3]


def test_a_url_that_does_not_answer_is_asked_last_from_then_on(registry):
    with served() as other:
        other.add("s", "string")
        other.failures = [500]
        both = client(f"{other.url},{registry.url}")
        both.by_id(1)
        both.by_id(1)
        assert (len(other.requests), len(registry.requests)) == (1, 2)


def test_an_outage_does_not_make_a_record_bad_and_passes(registry):
    avro = make_converter(
        "value.converter", "avro", {"schema.registry.url": registry.url, "max.retries": "0"}
    )
    registry.failures = [503]
    data = b"\0\0\0\0\1\x02x"
    with pytest.raises(RetriableError):
        avro.to_connect("t", data)
    assert avro.to_connect("t", data).value == "x"


def test_a_redirect_does_not_take_the_credentials_elsewhere(registry):
    with served() as thief:
        thief.add("s", "string")
        registry.redirect = f"{thief.url}/schemas/ids/1"
        with pytest.raises(ConnectError, match="answers 302"):
            client(registry.url.replace("//", "//me:secret@")).by_id(1)
        assert thief.requests == []


@pytest.mark.parametrize(
    "raw",
    [
        b"<html>",
        b"",
        b"[" * 100_000,
        b'{"schema":' + b"[" * 100_000,
        b"null",
        b'{"schema": "x", "references": 5}',
        b'{"schema": "x", "references": [{"name": "n"}]}',
        b'{"schema": "x", "references": [[]]}',
        b'{"error": 1}',
        b" " * (ANSWER_MAX + 1),
    ],
    ids=lambda raw: repr(raw[:40]),
)
def test_answers_that_are_none_of_a_registry(registry, raw):
    registry.raw = raw
    with pytest.raises(ConnectError, match="answer") as caught:
        client(registry.url).by_id(1)
    assert type(caught.value) is ConnectError


@pytest.mark.parametrize("number", ["5", -1, 1 << 31, None, 1.5, [1]])
def test_an_id_that_is_none(registry, number):
    registry.raw = json.dumps({"id": number}).encode()
    with pytest.raises(ConnectError, match="no id of a schema"):
        client(registry.url).register("s", "AVRO", '"int"')
