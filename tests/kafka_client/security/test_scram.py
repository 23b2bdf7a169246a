"""SCRAM against the vectors of the RFCs and against a server's side of our own."""

from __future__ import annotations

import pytest

from kafka_client.errors import AuthenticationFailed
from kafka_client.security.scram import Scram, ScramExchange
from kafka_client.security.secret import Secret
from tests.kafka_client.security.scram_server import ScramServer

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    f"c=biws,r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
"""RFC 7677, section 3."""


def exchange(name: str = "SCRAM-SHA-256", user: str = "user", password: str = "pencil") -> ScramExchange:
    return ScramExchange(Scram(name, user, Secret(password), nonce=lambda: NONCE))


async def test_the_vectors_of_rfc_7677() -> None:
    login = exchange()
    assert login.first() == f"n,,n=user,r={NONCE}".encode()
    assert await login.respond(SERVER_FIRST.encode()) == CLIENT_FINAL.encode()
    assert await login.respond(SERVER_FINAL.encode()) is None


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_server_and_this_client_know_each_other(name: str) -> None:
    server, login = ScramServer(name, "größe,=", iterations=8192), exchange(name, "a,b=c", "größe,=")
    assert login.first().startswith(b"n,,n=a=2Cb=3Dc,r=")
    final = await login.respond(server.respond(login.first()))
    assert final is not None
    assert await login.respond(server.respond(final)) is None


async def test_a_server_that_does_not_know_the_password_is_not_logged_in_to() -> None:
    login = exchange()
    await login.respond(SERVER_FIRST.encode())
    for signature in ("v=" + "A" * 43 + "=", "v=", "", "v=!!"):
        with pytest.raises(AuthenticationFailed, match="signature"):
            await login.respond(signature.encode())
    with pytest.raises(AuthenticationFailed, match="unknown-user"):
        await login.respond(b"e=unknown-user")


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (SERVER_FIRST.replace("i=4096", "i=4095"), "4095 iterations"),
        (SERVER_FIRST.replace("i=4096", "i=99999999999"), "iterations"),
        (SERVER_FIRST.replace(NONCE, "somebodyelses"), "nonce"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        ("m=new," + SERVER_FIRST, "extension"),
        ("s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "cannot be read"),
        (SERVER_FIRST.replace("W22", "*"), "cannot be read"),
        ("", "cannot be read"),
        ("\udcff", "cannot be read"),
    ],
)
async def test_a_challenge_not_to_be_answered(challenge: str, why: str) -> None:
    with pytest.raises(AuthenticationFailed, match=why) as caught:
        await exchange().respond(challenge.encode("utf-8", "surrogateescape"))
    assert caught.value.user == "user"


async def test_two_logins_have_two_nonces() -> None:
    scram = Scram("SCRAM-SHA-512", "user", Secret("pencil"))
    assert (await scram.begin()).first() != (await scram.begin()).first()


def test_a_delegation_token_says_so() -> None:
    login = ScramExchange(Scram("SCRAM-SHA-256", "id", Secret("hmac"), True, nonce=lambda: NONCE))
    assert login.first() == f"n,,n=id,r={NONCE},tokenauth=true".encode()
