"""The exchange of OAUTHBEARER: what the client is told, and what the log says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logd.security.errors import LoginFailed, LoginRefused
from logd.security.login import Login, State
from logd.security.oauthbearer.exchange import MESSAGE_BYTES_MAX, OAuthBearerExchange
from logd.security.oauthbearer.validators import UnsecuredTokens
from tests.support.token_issuer import unsigned

NOW_S = 1000
INVALID = '{"status":"invalid_token"}'


def server(**rules: object) -> OAuthBearerExchange:
    return OAuthBearerExchange(UnsecuredTokens(**rules), lambda: NOW_S * 1000)  # type: ignore[arg-type]


def message(token: str, authzid: str = "", **extensions: str) -> bytes:
    pairs = "".join(
        f"{name}={value}\x01" for name, value in {"auth": f"Bearer {token}", **extensions}.items()
    )
    return f"n,{authzid},\x01{pairs}\x01".encode()


def token(**claims: object) -> str:
    return unsigned({"sub": "alice", "exp": NOW_S + 60, **claims})


@pytest.mark.parametrize(
    "sent",
    [
        message(token()),
        message(token(), "a=alice"),
        message(token(), tenant="t"),
        message(token(sub="a,b"), "a=a=2Cb"),
        message(token(iat=NOW_S, scope="read write")),
        message(token(scope=["write"])),
    ],
)
def test_valid_tokens(sent: bytes) -> None:
    exchange = server()
    assert exchange.preparation(sent) is None
    assert exchange.respond(sent) == b""
    assert exchange.is_complete and exchange.user in ("alice", "a,b")
    assert exchange.expires_ms == (NOW_S + 60) * 1000


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": NOW_S}, "it expired 0 s ago"),
        ({"exp": None}, 'its claim "exp" is no time'),
        ({"iat": NOW_S + 1}, 'its claim "iat" is in the future'),
        ({"iat": NOW_S + 60, "exp": NOW_S}, "is in the future"),
        ({"sub": ""}, 'its claim "sub" has no user name'),
        ({"sub": "alice\nroot"}, "cannot be printed"),
        ({"sub": "\ud800"}, "cannot be printed"),
        ({"exp": 1e400}, "is no time"),
    ],
)
def test_a_refused_token(claims: dict[str, object], reason: str) -> None:
    exchange, text = server(), token(**claims)
    assert exchange.respond(message(text)) == INVALID.encode()
    assert reason in exchange.refusal and not exchange.is_complete
    with pytest.raises(LoginRefused) as failure:
        exchange.respond(b"\x01")
    assert failure.value.reason == INVALID
    assert reason in str(failure.value) and text not in str(failure.value)
    assert exchange.refusal == "" and exchange.user == ""


def test_a_missing_scope_is_named() -> None:
    exchange = server(required_scopes=("read", "write"))
    answer = exchange.respond(message(token(scope="read")))
    assert answer == b'{"status":"insufficient_scope", "scope":"read write"}'
    assert exchange.refusal == "the token is not valid: it lacks the scope 'write'"


def test_signed_tokens_are_no_unsecured_ones() -> None:
    for each in (unsigned({"sub": "alice"}, {"alg": "RS256"}), token() + "c2ln"):
        exchange = server()
        assert exchange.respond(message(each)) == INVALID.encode()
        assert "it is signed" in exchange.refusal


def test_only_one_token_is_tried() -> None:
    exchange = server()
    exchange.respond(message(token(exp=1)))
    with pytest.raises(LoginRefused):
        exchange.respond(message(token()))


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"n,,\x01user=x\x01\x01", "'auth' not specified"),
        (b"n,,\x01auth=Bearer\x01\x01", "invalid 'auth' format"),
        (b"n,,\x01auth=Basic s3cret\x01\x01", "Invalid scheme"),
        (b"\xff", "client first message"),
        (b"n,,\x01auth=Bearer " + b"x" * MESSAGE_BYTES_MAX, "bytes; .* are allowed"),
        (message(token(), "a=bob"), r"authorization id \(bob\)"),
    ],
)
def test_messages_that_end_the_login(sent: bytes, reason: str) -> None:
    exchange = server()
    with pytest.raises(LoginFailed, match=reason) as failure:
        exchange.respond(sent)
    assert "s3cret" not in str(failure.value) and not exchange.is_complete


def test_a_token_that_is_too_long_or_too_deep() -> None:
    for each, reason in (
        ("x" * 70_000, "it has 70000 bytes"),
        ("W1tb" * 2000 + "." * 2, "no JSON Web Token"),
    ):
        exchange = server()
        assert exchange.respond(message(each)) == INVALID.encode()
        assert reason in exchange.refusal


def test_the_session_ends_with_the_token() -> None:
    new: Callable[[], OAuthBearerExchange] = server
    login = Login({"OAUTHBEARER": new}, max_reauth_ms=3_600_000)
    assert login.shake_hands("OAUTHBEARER")
    assert login.authenticate(message(token()), now_ms=0.0, wall_ms=NOW_S * 1000) == b""
    assert login.state is State.SESSION and login.session is not None
    assert login.session.lifetime_ms == 60_000


def test_a_renewal_as_another_user_is_refused() -> None:
    login = Login({"OAUTHBEARER": server})
    login.shake_hands("OAUTHBEARER")
    login.authenticate(message(token()), now_ms=0.0, wall_ms=NOW_S * 1000)
    assert login.may_renew(2000.0) and login.shake_hands("OAUTHBEARER")
    with pytest.raises(LoginRefused, match="Cannot change principals"):
        login.authenticate(message(token(sub="bob")), now_ms=2000.0, wall_ms=NOW_S * 1000)
