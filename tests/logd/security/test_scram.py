"""The server side of SCRAM: RFC 7677's example, the house's client, and messages that must not pass."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_client.errors import AuthenticationFailed
from kafka_client.security.scram import Scram
from kafka_client.security.secret import Secret
from logd.security.errors import LoginFailed, LoginRefused
from logd.security.scram import DelegationToken, ScramServerExchange
from logd.security.scram_credential import ScramCredential, ScramMechanism

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512


def server_for(mechanism=SHA_256, users=(("user", "pencil"),), **options):
    credentials = {
        name: ScramCredential.of_password(mechanism, password, salt=b"salt") for name, password in users
    }
    return ScramServerExchange(mechanism, credentials.get, **options)


async def log_in(server, mechanism, user, password, **options):
    exchange = await Scram(mechanism.label, user, Secret(password), **options).begin()
    message = exchange.first()
    while message is not None:
        message = await exchange.respond(server.respond(message))
    return server


def test_rfc_7677_example():
    credential = ScramCredential.of_password(
        SHA_256, "pencil", salt=base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), iterations=4096
    )
    server = ScramServerExchange(
        SHA_256, {"user": credential}.get, nonce=lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    assert server.respond(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert not server.is_complete
    final = server.respond(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.is_complete and server.user == "user" and server.expires_ms is None


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize("user", ["alice", "a=b,c", "=2C"])
async def test_our_client_logs_in(mechanism, user):
    server = await log_in(server_for(mechanism, [(user, "sécret")]), mechanism, user, "sécret")
    assert server.is_complete and server.user == user


async def test_a_client_that_repeats_its_nonce():
    """Kafka looks at the end of the nonce only, and librdkafka 2.0 puts its own in front twice."""
    server = server_for(nonce=lambda: "srv")
    client = await Scram(SHA_256.label, "user", Secret("pencil"), nonce=lambda: "cli").begin()
    first = server.respond(client.first()).decode()
    client_key = hmac.digest(_salted("pencil"), b"Client Key", "sha256")
    unproven = "c=biws,r=cliclisrv"
    signed = f"n=user,r=cli,{first},{unproven}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    server.respond(f"{unproven},p={proof}".encode())
    assert server.is_complete


def _salted(password):
    return hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", 4096)


async def test_wrong_password():
    server = server_for()
    with pytest.raises(LoginFailed, match=r"^Invalid client credentials of user 'user'$") as failure:
        await log_in(server, SHA_256, "user", "pen")
    assert not isinstance(failure.value, LoginRefused)
    assert not server.is_complete and server.user == ""
    with pytest.raises(LoginRefused, match="Unexpected challenge"):
        server.respond(b"n,,n=user,r=abc")


async def test_unknown_user():
    with pytest.raises(LoginFailed, match=r"^no SCRAM-SHA-512 credential of user 'bob'$"):
        await log_in(server_for(SHA_512), SHA_512, "bob", "pencil")


async def test_credential_of_the_other_mechanism_does_not_serve():
    credential = ScramCredential.of_password(SHA_512, "pencil")
    with pytest.raises(LoginFailed, match="Invalid client credentials"):
        await log_in(ScramServerExchange(SHA_256, {"user": credential}.get), SHA_256, "user", "pencil")


async def test_delegation_token_logs_in_as_its_owner():
    token = DelegationToken(
        owner="alice", credential=ScramCredential.of_password(SHA_256, "hmac"), expires_ms=17
    )
    server = server_for(find_token={"token-1": token}.get)
    await log_in(server, SHA_256, "token-1", "hmac", token_auth=True)
    assert (server.user, server.expires_ms) == ("alice", 17)
    with pytest.raises(LoginFailed, match="Invalid tokenId : 'token-2'"):
        await log_in(server_for(), SHA_256, "token-2", "hmac", token_auth=True)
    # Its id is no user's name.
    with pytest.raises(LoginFailed, match="no SCRAM-SHA-256 credential"):
        await log_in(server_for(find_token={"token-1": token}.get), SHA_256, "token-1", "hmac")


def test_server_proves_its_knowledge_to_the_client():
    """A client does not trust a server that has another server key."""

    async def case():
        right = ScramCredential.of_password(SHA_256, "pencil")
        wrong = ScramCredential(
            salt=right.salt, stored_key=right.stored_key, server_key=b"x" * 32, iterations=right.iterations
        )
        await log_in(ScramServerExchange(SHA_256, {"user": wrong}.get), SHA_256, "user", "pencil")

    import asyncio

    with pytest.raises(AuthenticationFailed, match="signature"):
        asyncio.run(case())


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=abc\n",
        b"n,,n=user,r=abc,tokenauth",
        b"n=user,r=abc",
        "n,,n=usér,r=abc".encode(),
        b"n,,n=user,r=" + b"a" * 20_000,
        b"\xff\xfe",
    ],
)
def test_malformed_first_message(message):
    server = server_for()
    with pytest.raises(LoginFailed, match="SCRAM"):
        server.respond(message)
    with pytest.raises(LoginRefused, match="Unexpected challenge"):
        server.respond(b"n,,n=user,r=abc")


@pytest.mark.parametrize(
    ("final", "reason"),
    [
        (b"c=biws,r=abcdef,p=AAAA", "Invalid client credentials"),
        (b"c=biws,r=abcdeg,p=AAAA", "Invalid client nonce"),
        (b"c=biws,r=abc,p=AAAA", "Invalid client nonce"),
        (b"c=eSws,r=abcdef,p=AAAA", "another GS2 header"),
        (b"c=biws,r=abcdef", "Invalid SCRAM client final message"),
        (b"c=biws,r=abcdef,p=?", "Invalid SCRAM client final message"),
        (b"n,,n=user,r=abc", "Invalid SCRAM client final message"),
    ],
)
def test_malformed_final_message(final, reason):
    server = server_for(nonce=lambda: "def")
    assert server.respond(b"n,,n=user,r=abc").startswith(b"r=abcdef,s=c2FsdA==,i=4096")
    with pytest.raises(LoginFailed, match=reason) as failure:
        server.respond(final)
    assert not server.is_complete
    assert "p=" not in str(failure.value)


def test_another_authorization_id_is_refused():
    assert server_for().respond(b"n,a=user,n=user,r=abc")
    with pytest.raises(LoginRefused, match="authorization id that is different from username"):
        server_for().respond(b"n,a=admin,n=user,r=abc")


def test_too_few_iterations():
    weak = ScramCredential.of_password(SHA_256, "pencil", iterations=100)
    with pytest.raises(
        LoginFailed, match=r"^Iterations 100 is less than the minimum 4096 for SCRAM-SHA-256$"
    ):
        ScramServerExchange(SHA_256, {"user": weak}.get).respond(b"n,,n=user,r=abc")


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=80), max_size=3))
def test_no_bytes_log_in(messages):
    server = server_for(users=())
    for message in messages:
        with pytest.raises(LoginFailed):
            server.respond(message)
    assert not server.is_complete
