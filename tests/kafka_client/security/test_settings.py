"""Kafka's security keys: what they mean, and what is said of those that cannot be used."""

from __future__ import annotations

import logging
import pickle
import ssl
from pathlib import Path

import pytest

from kafka_client.errors import ConfigError
from kafka_client.security.allowed_urls import FILES, URLS, refusal
from kafka_client.security.client_credentials import ClientCredentials
from kafka_client.security.secret import Secret
from kafka_client.security.settings import SecuritySettings
from kafka_client.security.token_file import TokenFile
from kafka_client.security.unsecured_token import UnsecuredTokens

SECRET = "hunter2"
SCRAM = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="{SECRET}";'
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SASL = {"security.protocol": "SASL_SSL"}


def parse(**properties: str) -> SecuritySettings:
    return SecuritySettings.from_properties(
        {key.replace("_", "."): value for key, value in properties.items()}
    )


def refused(properties: dict[str, object]) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        SecuritySettings.from_properties(properties)
    assert SECRET not in str(caught.value) + repr(caught.value)
    return caught.value


def test_plaintext_is_the_default_and_other_keys_are_somebody_elses() -> None:
    settings = SecuritySettings.from_properties({"acks": "all", "bootstrap.servers": "h:1"})
    assert settings == SecuritySettings()
    assert not settings.uses_tls and not settings.uses_sasl


def test_scram_over_tls_by_jaas() -> None:
    settings = parse(security_protocol="sasl_ssl", sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=SCRAM)
    assert settings.uses_tls and settings.uses_sasl
    assert settings.tls.check_hostname
    assert settings.sasl is not None
    assert (settings.sasl.username, settings.sasl.password) == ("u", Secret(SECRET))
    assert settings.sasl.new_mechanism().name == "SCRAM-SHA-512"


def test_librdkafkas_short_form() -> None:
    settings = SecuritySettings.from_properties(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "u",
            "sasl.password": SECRET,
        }
    )
    assert settings.sasl is not None
    assert (settings.sasl.mechanism, settings.sasl.username) == ("PLAIN", "u")


def test_client_credentials_by_jaas_and_by_keys() -> None:
    url = {
        "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
        "sasl.mechanism": "OAUTHBEARER",
        **SASL,
    }
    jaas = f'{OAUTH} clientId="me" clientSecret="{SECRET}" scope="logs" extension_tenant="t";'
    by_jaas = SecuritySettings.from_properties({**url, "sasl.jaas.config": jaas})
    by_keys = SecuritySettings.from_properties(
        {
            **url,
            "sasl.jaas.config": f"{OAUTH} extension_tenant=t;",
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
            "sasl.oauthbearer.scope": "logs",
        }
    )
    assert by_jaas == by_keys
    assert by_jaas.sasl is not None
    assert by_jaas.sasl.token == ClientCredentials(
        url="https://idp/token",
        client_id="me",
        client_secret=Secret(SECRET),
        scope="logs",
        extensions=(("tenant", "t"),),
    )


def source_of(url: str, options: str = "") -> object:
    keys = {**SASL, "sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{OAUTH} {options};"}
    settings = SecuritySettings.from_properties({**keys, "sasl.oauthbearer.token.endpoint.url": url})
    assert settings.sasl is not None
    return settings.sasl.token


def test_tokens_from_a_file_and_unsecured_ones() -> None:
    source = source_of("file:///run/token%201", "extension_tenant=t")
    assert source == TokenFile(Path("/run/token 1"), (("tenant", "t"),))
    options = (
        'unsecuredLoginStringClaim_sub=a unsecuredLoginListClaim_scope="|r|w" unsecuredLoginExtension_x=y'
    )
    assert source_of("", f"{options} unsecuredLoginLifetimeSeconds=60 unsecuredLoginNumberClaim_n=1.5") == (
        UnsecuredTokens(
            claims={"sub": "a", "scope": ["r", "w"], "n": 1.5}, lifetime_s=60, extensions=(("x", "y"),)
        )
    )


@pytest.mark.parametrize(
    ("url", "variable", "allowed", "is_own_allowed"),
    [
        ("https://idp/token", URLS, None, True),
        ("https://idp/token", URLS, "", False),
        ("https://idp/token", URLS, "https://idp", False),
        ("https://idp/token", URLS, "https://else, https://idp/token", True),
        ("file:///run/token", FILES, None, True),
        ("file:///run/token", FILES, "/run", False),
        ("file:///run/token", FILES, "/x,/run/token", True),
    ],
)
def test_allowed_urls(
    monkeypatch: pytest.MonkeyPatch, url: str, variable: str, allowed: str | None, is_own_allowed: bool
) -> None:
    monkeypatch.delenv(variable, raising=False)
    if allowed is not None:
        monkeypatch.setenv(variable, allowed)
    assert (refusal(url, is_own=True) == "") is is_own_allowed
    is_listed = allowed is not None and is_own_allowed
    assert (refusal(url, is_own=False) == "") is is_listed
    if is_own_allowed:
        assert source_of(url, "clientId=me clientSecret=x") is not None
    else:
        with pytest.raises(ConfigError, match=variable):
            source_of(url, "clientId=me clientSecret=x")


def test_tls_versions() -> None:
    def versions(**properties: str) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
        tls = parse(security_protocol="SSL", **properties).tls
        return tls.minimum_version, tls.maximum_version

    old, new = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    assert versions() == (old, new)
    assert versions(ssl_enabled_protocols="TLSv1.2") == (old, old)
    assert versions(ssl_enabled_protocols="TLSv1.3, TLSv1.2", ssl_protocol="TLSv1.2") == (old, old)
    assert versions(ssl_enabled_protocols="TLSv1.3") == (new, new)


@pytest.mark.parametrize(
    ("properties", "key", "remedy"),
    [
        (
            {"security.protocol": "TLS"},
            "security.protocol",
            "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (SASL, "sasl.mechanism", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "sasl.mechanism", "PLAIN, SCRAM-SHA-256"),
        ({**SASL, "sasl.mechanism": "PLAIN"}, "sasl.username", "sasl.jaas.config"),
        ({**SASL, "sasl.mechanism": "PLAIN", "sasl.username": "u"}, "sasl.password", "is needed"),
        (
            {**SASL, "sasl.mechanism": "PLAIN", "sasl.jaas.config": SCRAM},
            "sasl.jaas.config",
            "PlainLoginModule",
        ),
        (
            {**SASL, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": SCRAM[:-1]},
            "sasl.jaas.config",
            "semicolon",
        ),
        (
            {**SASL, "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": SCRAM.replace(";", ' user="x";')},
            "sasl.jaas.config",
            "does not take: user",
        ),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.token.endpoint.url", "URL"),
        (
            {
                **SASL,
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "ftp://idp/token",
            },
            "sasl.oauthbearer.token.endpoint.url",
            "http",
        ),
        *(
            (
                {
                    **SASL,
                    "sasl.mechanism": "OAUTHBEARER",
                    "sasl.oauthbearer.token.endpoint.url": url,
                    "sasl.jaas.config": f"{OAUTH} {options};",
                    **more,
                },
                key,
                remedy,
            )
            for url, options, more, key, remedy in (
                ("http://[", "", {}, "sasl.oauthbearer.token.endpoint.url", "or a file URL"),
                ("file://host/x", "", {}, "sasl.oauthbearer.token.endpoint.url", "or a file URL"),
                ("file:///x", "", {RETRIEVER: "x.ClientCredentialsJwtRetriever"}, RETRIEVER, "that suits"),
                ("https://idp/", "", {RETRIEVER: "com.example.Mine"}, RETRIEVER, "DefaultJwtRetriever"),
                ("https://idp/", "unsecuredLoginStringClaim_sub=a", {}, "sasl.jaas.config", "leave them out"),
                ("", "unsecuredLoginStringClaim_name=a", {}, "sasl.jaas.config", "StringClaim_sub is needed"),
                ("", "unsecuredLoginStringClaim_exp=1", {}, "sasl.jaas.config", "LifetimeSeconds"),
                ("", "unsecuredLoginScope=a", {}, "sasl.jaas.config", "unsecuredLoginScope is no option"),
                ("", "unsecuredLoginNumberClaim_n=a", {}, "sasl.jaas.config", "must be a number"),
            )
        ),
        (
            {
                **SASL,
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "https://idp",
                "sasl.jaas.config": f'{OAUTH} clientSecret="{SECRET}";',
            },
            "sasl.oauthbearer.client.credentials.client.id",
            "clientId",
        ),
        ({"sasl.pasword": SECRET}, "sasl.pasword", "sasl.password?"),
        ({"ssl.cipher.suites": "x"}, "ssl.cipher.suites", "not supported"),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldap"},
            "ssl.endpoint.identification.algorithm",
            "https",
        ),
        (
            {"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.1"},
            "ssl.enabled.protocols",
            "TLSv1.2",
        ),
        (
            {"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.3", "ssl.protocol": "TLSv1.2"},
            "ssl.protocol",
            "ssl.enabled.protocols",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.type": "BKS"}, "ssl.keystore.type", "PEM, PKCS12, JKS"),
        (
            {
                "security.protocol": "SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": "/k",
                "ssl.keystore.password": SECRET,
            },
            "ssl.keystore.password",
            "ssl.key.password",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.password": SECRET}, "ssl.keystore.location", "is needed"),
        (
            {"security.protocol": "SSL", "ssl.keystore.key": SECRET},
            "ssl.keystore.certificate.chain",
            "go together",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.certificates": SECRET},
            "ssl.truststore.certificates",
            "PEM",
        ),
    ],
)
def test_what_cannot_be_used(properties: dict[str, object], key: str, remedy: str) -> None:
    error = refused(properties)
    assert error.key == key
    assert remedy in error.allowed


def test_the_prefix_a_user_wrote_stands_in_the_error() -> None:
    with pytest.raises(ConfigError) as caught:
        SecuritySettings.from_properties({"security.protocol": "x"}, prefix="dc1.")
    assert caught.value.key == "dc1.security.protocol"


def test_keys_that_mean_nothing_here_are_named_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        parse(ssl_provider="SunJSSE", sasl_login_class="x")
    assert [record.getMessage() for record in caplog.records if record.name.startswith("kafka_client.")] == [
        "without effect here: sasl.login.class, ssl.provider"
    ]


def test_no_secret_shows_and_all_can_be_sent_to_another_process() -> None:
    settings = SecuritySettings.from_properties(
        {
            **SASL,
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": SCRAM,
            "ssl.keystore.location": "/k",
            "ssl.keystore.password": SECRET,
            "ssl.key.password": SECRET,
        }
    )
    assert settings.tls.keystore is not None
    assert settings.tls.keystore.location == Path("/k")
    assert SECRET not in f"{settings!r} {settings} {settings.sasl} {settings.tls}"
    assert "[hidden]" in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings
