"""Tokens: kept while fresh, asked for at a URL, sent as RFC 7628 has it."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any

import pytest

from kafka_client.errors import AuthenticationFailed, ConnectionClosed
from kafka_client.security import web_request
from kafka_client.security.client_credentials import ClientCredentials
from kafka_client.security.oauthbearer import OAuthBearer
from kafka_client.security.secret import Secret
from kafka_client.security.token import Token, TokenCache
from kafka_client.security.token_file import TokenFile
from kafka_client.security.unsecured_token import UnsecuredTokens

SECRET = "s3cret/+"


def jwt(**claims: Any) -> str:
    def part(value: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}."


class Server(HTTPServer):
    server_bind = TCPServer.server_bind
    """HTTPServer's asks for the host's name, which may take seconds."""


class Endpoint:
    """A token endpoint that answers as told."""

    def __init__(self) -> None:
        self.status, self.answer, self.headers = 200, b"", {"Content-Type": "application/json"}
        self.requests: list[tuple[str, str]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                endpoint.requests.append((self.headers["Authorization"], body))
                self.send_response(endpoint.status)
                for name, value in endpoint.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(endpoint.answer)

            do_GET = do_POST

            def log_message(self, *args: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/token"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


def credentials(endpoint: Endpoint, **more: Any) -> ClientCredentials:
    defaults = {"client_id": "me", "client_secret": Secret(SECRET), "clock": lambda: 1000.0}
    return ClientCredentials(url=endpoint.url, **{**defaults, **more})


def test_client_credentials_are_exchanged_for_a_token(endpoint: Endpoint) -> None:
    endpoint.answer = b'{"access_token": "abc", "expires_in": 60, "token_type": "Bearer"}'
    token = credentials(endpoint, scope="a b", extensions=(("tenant", "t"),))()
    assert token == Token(value=Secret("abc"), expires_at=1060.0, extensions={"tenant": "t"})
    ((authorization, form),) = endpoint.requests
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"me:s3cret%2F%2B"
    assert form == "grant_type=client_credentials&scope=a+b"


def test_a_jwt_says_when_it_expires_where_the_endpoint_does_not(endpoint: Endpoint) -> None:
    endpoint.answer = json.dumps({"access_token": jwt(exp=1234)}).encode()
    assert credentials(endpoint)().expires_at == 1234


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (401, b'{"error": "invalid_client", "error_description": "no such"}', "401, invalid_client: no such"),
        (400, b"<html>", "HTTP 400"),
        (200, b"<html>", "not JSON"),
        (200, b"[]", "no access_token"),
        (200, b'{"access_token": "abc", "expires_in": "soon"}', "no access_token"),
    ],
)
def test_an_endpoint_that_refuses(endpoint: Endpoint, status: int, answer: bytes, why: str) -> None:
    endpoint.status, endpoint.answer = status, answer
    with pytest.raises(AuthenticationFailed, match=why) as caught:
        credentials(endpoint)()
    assert caught.value.user == "me"
    assert SECRET not in str(caught.value)


def test_an_endpoint_that_is_away_is_worth_another_try(endpoint: Endpoint) -> None:
    endpoint.status = 503
    with pytest.raises(ConnectionClosed, match="HTTP 503"):
        credentials(endpoint)()
    nowhere = ClientCredentials(url="http://127.0.0.1:1/", client_id="me", client_secret=Secret(SECRET))
    with pytest.raises(ConnectionClosed, match=r"127\.0\.0\.1:1"):
        nowhere()


def test_a_redirect_does_not_take_the_secret_elsewhere(endpoint: Endpoint) -> None:
    other = Endpoint()
    try:
        endpoint.status, endpoint.headers["Location"] = 302, other.url
        with pytest.raises(AuthenticationFailed, match="302"):
            credentials(endpoint)()
        assert not other.requests
    finally:
        other.close()


def test_names_are_sent_as_they_are_if_asked_for(endpoint: Endpoint) -> None:
    endpoint.answer = b'{"access_token": "abc"}'
    credentials(endpoint, encodes_names=False)()
    ((authorization, _),) = endpoint.requests
    assert base64.b64decode(authorization.removeprefix("Basic ")) == f"me:{SECRET}".encode()


def test_an_answer_that_comes_too_slowly(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint.answer = b'{"access_token": "abc"}'
    monkeypatch.setattr(web_request.time, "monotonic", iter(range(0, 1000, 11)).__next__)
    with pytest.raises(ConnectionClosed, match="takes more than 10 s"):
        credentials(endpoint)()


def test_a_file_with_a_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    source = TokenFile(path, (("tenant", "t"),))
    with pytest.raises(AuthenticationFailed, match="No such file"):
        source()
    for text, reason in ((b"\n", "it is empty"), (b"\xff", "other characters")):
        path.write_bytes(text)
        with pytest.raises(AuthenticationFailed, match=reason):
            source()
    path.write_text(jwt(exp=1234) + "\n")
    assert source() == Token(value=Secret(jwt(exp=1234)), expires_at=1234, extensions={"tenant": "t"})


def test_an_unsecured_token() -> None:
    token = UnsecuredTokens(claims={"sub": "alice"}, lifetime_s=60, clock=lambda: 1000.0)()
    assert token == Token(value=Secret(jwt(iat=1000.0, exp=1060.0, sub="alice")), expires_at=1060)


async def test_a_token_is_kept_until_shortly_before_it_expires() -> None:
    now, made = [0.0], iter(range(9))

    def source() -> Token:
        return Token(value=Secret(str(next(made))), expires_at=now[0] + 100)

    cache = TokenCache(source, clock=lambda: now[0])
    first = await asyncio.gather(cache.get(), cache.get())
    now[0] = 79
    assert {token.value.reveal() for token in (*first, await cache.get())} == {"0"}
    now[0] = 80
    assert (await cache.get()).value.reveal() == "1"
    cache.forget()
    assert (await cache.get()).value.reveal() == "2"


async def test_a_source_may_be_a_coroutine_and_give_text() -> None:
    texts = iter([jwt(exp=100), "opaque", "opaque2"])

    async def source() -> str:
        return next(texts)

    now = [0.0]
    cache = TokenCache(source, clock=lambda: now[0])
    assert (await cache.get()).expires_at == 100
    assert (await cache.get()).expires_at == 100
    now[0] = 99
    assert (await cache.get()).value == Secret("opaque")
    assert (await cache.get()).value == Secret("opaque2")  # nobody knows how long the first was good


async def test_the_messages_of_oauthbearer() -> None:
    calls = []

    def source() -> Token:
        calls.append(1)
        return Token(value=Secret("abc"), expires_at=9e9, extensions={"tenant": "t"})

    mechanism = OAuthBearer(TokenCache(source))
    login = await mechanism.begin()
    assert login.first() == b"n,,\x01auth=Bearer abc\x01tenant=t\x01\x01"
    assert await login.respond(b"") is None
    assert await login.respond(b'{"status":"invalid_token"}') == b"\x01"
    await mechanism.begin()
    assert len(calls) == 2  # the refused token is not shown again


async def test_a_token_that_would_change_the_message_is_not_sent() -> None:
    with pytest.raises(AuthenticationFailed, match="RFC 6750"):
        await OAuthBearer(TokenCache(lambda: "abc\x01auth=Bearer other")).begin()
