"""Logins by OAUTHBEARER: our client, librdkafka's and Java's, with keys from a file and from a web server."""

from __future__ import annotations

import asyncio
import logging
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kafka_client import Client
from kafka_client.errors import AuthenticationFailed, ConfigError
from kafka_client.security.settings import SecuritySettings
from kafka_client.security.token import TokenSource
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.security.oauthbearer import source
from logd.security.oauthbearer.settings import SIGNED_HANDLER, UNSECURED_HANDLER
from tests.support import java
from tests.support.certificates import Authority
from tests.support.token_issuer import AUDIENCE, ISSUER, IssuerServer, TokenIssuer, unsigned
from tests.support.waiting import until, wait_for

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
INVALID = r'\{"status":"invalid_token"\}'
ALLOWED_URLS = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
LISTENER = "listener.name.out."
OAUTH = f"{LISTENER}oauthbearer."


def settings(folder: Path, **more: str) -> dict[str, str]:
    return {
        "listeners": "OUT://127.0.0.1:0",
        "listener.security.protocol.map": "OUT:SASL_PLAINTEXT",
        "log.dirs": str(folder / "logs"),
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "connection.failed.authentication.delay.ms": "1",
        **more,
    }


def signed(url: str) -> dict[str, str]:
    return {
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.audience": f"other, {AUDIENCE}",
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }


UNSECURED = {f"{OAUTH}sasl.server.callback.handler.class": UNSECURED_HANDLER}


@asynccontextmanager
async def running(folder: Path, keys: dict[str, str]) -> AsyncIterator[str]:
    server = BrokerServer(from_properties(settings(folder) | keys).config)
    await server.start()
    try:
        yield str(server.broker.endpoint)
    finally:
        await server.stop()


def file_of(folder: Path, issuer: TokenIssuer) -> str:
    path = folder / "keys.json"
    path.write_bytes(issuer.key_set())
    return path.as_uri()


async def log_in(address: str, token: TokenSource) -> None:
    security = SecuritySettings.from_properties(dict(LOGIN), token=token)
    async with Client(address, security=security) as client:
        await client.metadata()


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    return [message.partition(": ")[2] for message in messages if "login failed" in message]


async def test_tokens_by_keys_in_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    issuer, foreign = TokenIssuer("first"), TokenIssuer("foreign")
    refused = {
        issuer.token(aud="nobody"): 'its claim "aud" has none of the expected audiences',
        issuer.token(seconds=-90): "it expired ",
        issuer.token(iss="https://else.example"): 'its claim "iss" is not the expected issuer',
        foreign.token(): "none of the issuer's keys has its key id",
        unsigned(issuer.claims()): "its algorithm is not one of",
    }
    async with running(tmp_path, signed(file_of(tmp_path, issuer))) as address:
        await log_in(address, issuer.token)
        for token, reason in refused.items():
            caplog.clear()
            with pytest.raises(AuthenticationFailed, match=INVALID):
                await log_in(address, lambda token=token: token)  # type: ignore[misc]
            (line,) = warnings_of(caplog)
            assert line.startswith(f"login failed: the token is not valid: {reason}")
            assert token not in caplog.text and token.split(".")[1] not in caplog.text


async def test_keys_change_while_the_broker_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "EXPEDITED_SECONDS_MIN", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    authority = Authority("test CA")
    certificate = authority.issue("issuer", ["127.0.0.1"]).write_pem(tmp_path / "issuer.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    trust = f'{MODULE} ssl.truststore.type="PEM" ssl.truststore.location="{{}}";'.format(
        authority.write_pem(tmp_path / "ca.pem")
    )
    old, new = TokenIssuer("old"), TokenIssuer("new")
    with IssuerServer(old, context) as issuer:
        keys = signed(f"{issuer.url}/jwks") | {f"{OAUTH}sasl.jaas.config": trust}
        async with running(tmp_path, keys) as address:
            await log_in(address, old.token)
            issuer.issuer = new
            await log_in(address, new.token)
            with pytest.raises(AuthenticationFailed, match=INVALID):
                await log_in(address, old.token)
    assert set(issuer.requests) == {"/jwks"}


async def test_a_broker_without_its_issuer_refuses_logins(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    keys = signed("http://127.0.0.1:1/jwks") | {"sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "1"}
    async with running(tmp_path, keys) as address:
        with pytest.raises(AuthenticationFailed, match=INVALID):
            await log_in(address, TokenIssuer().token)
    assert "the keys of its issuer could not be read yet" in warnings_of(caplog)[0]
    assert "http://127.0.0.1:1/jwks: no keys, nobody can log in by OAUTHBEARER" in caplog.text


async def test_a_session_ends_with_its_token_and_is_renewed(tmp_path: Path) -> None:
    issuer = TokenIssuer()
    issued: list[str] = []

    def token() -> str:
        issued.append(issuer.token(seconds=3))
        return issued[-1]

    async with running(tmp_path, signed(file_of(tmp_path, issuer))) as address:
        security = SecuritySettings.from_properties(dict(LOGIN), token=token)
        async with Client(address, security=security) as client:
            await client.metadata()
            await until(lambda: len(issued) > 2)
            await client.metadata()


async def test_our_client_gets_its_tokens_by_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    issuer, file = TokenIssuer(), tmp_path / "token"
    file.write_text(issuer.token())

    async def log_in_by(address: str, options: str, **keys: str) -> None:
        keys = {key.replace("_", "."): value for key, value in keys.items()}
        security = SecuritySettings.from_properties(
            {**LOGIN, "sasl.jaas.config": f"{MODULE} {options};", **keys}
        )
        async with Client(address, security=security) as client:
            await client.metadata()

    with IssuerServer(issuer) as server:
        async with running(tmp_path, signed(file_of(tmp_path, issuer))) as address:
            url = f"{server.url}/token"
            await log_in_by(
                address, 'clientId="me" clientSecret="s3cret"', sasl_oauthbearer_token_endpoint_url=url
            )
            await log_in_by(address, "", sasl_oauthbearer_token_endpoint_url=file.as_uri())
    async with running(tmp_path / "unsecured", UNSECURED) as address:
        await log_in_by(address, 'unsecuredLoginStringClaim_sub="alice"')


async def test_librdkafka_logs_in(tmp_path: Path) -> None:
    issuer = TokenIssuer()

    def admin_with(token: str, errors: list[str]) -> AdminClient:
        keys = {**LOGIN, "bootstrap.servers": address, "log_level": 0}
        callbacks = {"oauth_cb": lambda _: (token, 9e9), "error_cb": lambda error: errors.append(error.str())}
        return AdminClient(keys | callbacks)

    def topics(token: str) -> list[str]:
        admin = admin_with(token, [])
        admin.poll(0)
        return sorted(admin.list_topics(timeout=60).topics)

    def refusals(token: str) -> list[str]:
        errors: list[str] = []
        admin = admin_with(token, errors)
        wait_for(lambda: admin.poll(0.05) >= 0 and any("invalid_token" in error for error in errors))
        return errors

    async with running(tmp_path, signed(file_of(tmp_path, issuer))) as address:
        assert await asyncio.to_thread(topics, issuer.token()) == []
        assert await asyncio.to_thread(refusals, issuer.token(aud="nobody"))


async def java_topics(
    folder: Path, address: str, keys: dict[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    file = folder / "client.properties"
    lines = {**LOGIN, "default.api.timeout.ms": "60000", **keys}.items()
    file.write_text("".join(f"{key}={value}\n" for key, value in lines))
    arguments = ("--bootstrap-server", address, "--command-config", str(file), "--create", "--topic", "made")
    line = java.command("org.apache.kafka.tools.TopicCommand", *arguments, options=options)
    return await asyncio.to_thread(
        subprocess.run, line, capture_output=True, encoding="utf-8", timeout=java.SECONDS
    )


@java.needs_kafka
async def test_javas_client_logs_in_by_client_credentials(tmp_path: Path) -> None:
    issuer = TokenIssuer()
    with IssuerServer(issuer) as server:
        keys = {
            "sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
            "sasl.login.callback.handler.class": SIGNED_HANDLER.replace("Validator", "Login"),
            "sasl.jaas.config": f'{MODULE} clientId="me" clientSecret="s3cret";',
        }
        async with running(tmp_path, signed(file_of(tmp_path, issuer))) as address:
            option = f"{ALLOWED_URLS}{server.url}/token"
            right = await java_topics(tmp_path, address, keys, option)
            assert right.returncode == 0, right.stdout + right.stderr
            server.issuer = TokenIssuer("foreign")
            wrong = await java_topics(tmp_path, address, keys, option)
    assert "Created topic made" in right.stdout
    assert '{"status":"invalid_token"}' in wrong.stdout + wrong.stderr


@java.needs_kafka
async def test_javas_client_logs_in_by_an_unsecured_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = {"sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_sub="alice";'}
    async with running(tmp_path, UNSECURED) as address:
        done = await java_topics(tmp_path, address, keys)
    assert "Created topic made" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("keys", "wrong", "remedy"),
    [
        ({}, "sasl.oauthbearer.jwks.endpoint.url", UNSECURED_HANDLER),
        ({"expected.audience": ""}, "sasl.oauthbearer.expected.audience", "allow.unverified.audience=true"),
        ({"expected.issuer": ""}, "sasl.oauthbearer.expected.issuer", "allow.unverified.issuer=true"),
        ({"clock.skew.seconds": "-1"}, "sasl.oauthbearer.clock.skew.seconds", "a whole number"),
        ({"jwks.endpoint.url": "ftp://x/y"}, "sasl.oauthbearer.jwks.endpoint.url", "file:, https: or http:"),
        ({"jwks.endpoint.url": "https://u:p@x/y"}, "sasl.oauthbearer.jwks.endpoint.url", "without a user"),
        ({"jwks.endpoint.url": "file:///none"}, "sasl.oauthbearer.jwks.endpoint.url", "No such file"),
        ({"jwks.endpoint.url": "file:///etc/hosts"}, "sasl.oauthbearer.jwks.endpoint.url", "is not JSON"),
        (
            {"allow.unverified.issuer": "yes", "expected.issuer": ""},
            "allow.unverified.issuer",
            "true or false",
        ),
    ],
)
async def test_settings_that_are_refused(
    tmp_path: Path, keys: dict[str, str], wrong: str, remedy: str
) -> None:
    defaults = signed("https://issuer.example/jwks") if keys else {}
    changed = {f"sasl.oauthbearer.{key}": value for key, value in keys.items()}
    with pytest.raises(ConfigError) as error:
        async with running(tmp_path, defaults | changed):
            pass
    assert wrong in str(error.value) and remedy in str(error.value)


async def test_other_handlers_and_options_are_refused(tmp_path: Path) -> None:
    for key, value, remedy in (
        ("sasl.server.callback.handler.class", "com.example.Mine", SIGNED_HANDLER),
        ("sasl.jaas.config", f'{MODULE} unsecuredValidatorScope="x";', "unsecuredValidatorRequiredScope"),
        ("sasl.jaas.config", f'{MODULE} unsecuredValidatorAllowableClockSkewMs="x";', "in ms"),
    ):
        with pytest.raises(ConfigError, match=remedy):
            async with running(tmp_path, UNSECURED | {OAUTH + key: value}):
                pass


def test_a_misspelt_key_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.expected\.audience\?"):
        from_properties({"sasl.oauthbearer.expected.audiences": "logs"})
