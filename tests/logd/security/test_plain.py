"""The server side of PLAIN."""

import pytest

from kafka_client.security.secret import Secret
from logd.security.errors import LoginFailed, LoginRefused
from logd.security.plain import PlainServerExchange


def server() -> PlainServerExchange:
    return PlainServerExchange({"alice": Secret("sécret"), "bob": Secret("b")})


@pytest.mark.parametrize("message", ["\0alice\0sécret", "alice\0alice\0sécret"])
def test_right_password(message):
    exchange = server()
    assert exchange.respond(message.encode()) == b""
    assert exchange.is_complete and exchange.user == "alice" and exchange.expires_ms is None


@pytest.mark.parametrize(
    ("message", "reason", "is_told"),
    [
        (b"\0alice\0wrong", "Invalid username or password", True),
        (b"\0carol\0b", "Invalid username or password", True),
        (b"\0carol\0\0", "expected 3 tokens, got 4", False),
        (b"bob\0alice\0" + "sécret".encode(), "different from username", True),
        (b"\0\0b", "username not specified", False),
        (b"\0bob\0", "password not specified", False),
        (b"bob", "expected 3 tokens, got 1", False),
        (b"\xff", "not UTF-8", False),
    ],
)
def test_refused(message, reason, is_told):
    exchange = server()
    with pytest.raises(LoginFailed, match=reason) as failure:
        exchange.respond(message)
    assert isinstance(failure.value, LoginRefused) is is_told
    assert not exchange.is_complete and exchange.user == ""
    assert "wrong" not in str(failure.value)
