"""The states of a login, played with PLAIN and an exchange whose credential expires."""

import pytest

from kafka_client.security.secret import Secret
from logd.security.errors import LoginFailed, LoginRefused
from logd.security.login import Login, State
from logd.security.plain import PlainServerExchange


class Expiring(PlainServerExchange):
    """A login by PLAIN whose credential expires at 5000 ms of the wall clock."""

    def respond(self, message):
        self.expires_ms = 5000
        return super().respond(message)


def login(max_reauth_ms=0):
    users = {"alice": Secret("a"), "bob": Secret("b")}
    return Login(
        {"PLAIN": lambda: PlainServerExchange(users), "EXPIRING": lambda: Expiring(users)},
        max_reauth_ms=max_reauth_ms,
    )


def enter(each, mechanism="PLAIN", message=b"\0alice\0a", now_ms=0.0, wall_ms=1000):
    assert each.shake_hands(mechanism)
    assert each.state is State.EXCHANGE
    return each.authenticate(message, now_ms=now_ms, wall_ms=wall_ms)


def test_session_without_an_end():
    each = login()
    assert each.state is State.HANDSHAKE and each.session is None
    assert enter(each) == b""
    assert each.state is State.SESSION
    assert each.session.user == "alice" and each.session.lifetime_ms == 0
    assert not each.session.is_expired(1e12)
    assert not each.may_renew(1e12)


def test_mechanism_that_is_not_enabled():
    each = login()
    assert not each.shake_hands("GSSAPI")
    assert each.state is State.FAILED and each.mechanisms == ["PLAIN", "EXPIRING"]


def test_wrong_password_is_told_without_a_secret():
    each = login()
    with pytest.raises(LoginRefused) as failure:
        enter(each, message=b"\0alice\0wrong")
    assert each.state is State.FAILED and each.session is None
    assert each.failure_text(failure.value) == "Authentication failed: Invalid username or password"


def test_what_may_tell_about_users_is_not_told():
    each = login()
    with pytest.raises(LoginFailed) as failure:
        enter(each, message=b"alice")
    assert each.failure_text(failure.value) == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN"
    )


def test_session_expires_and_is_renewed():
    each = login(max_reauth_ms=10_000)
    enter(each)
    assert each.session.lifetime_ms == 10_000
    assert not each.session.is_expired(10_000) and each.session.is_expired(10_001)
    assert not each.may_renew(1000) and each.may_renew(1001)
    enter(each, now_ms=9000)
    assert not each.session.is_expired(19_000) and each.session.is_expired(19_001)


def test_session_ends_with_its_credential():
    each = login()
    enter(each, "EXPIRING", wall_ms=1000)
    assert each.session.lifetime_ms == 4000
    shorter = login(max_reauth_ms=3000)
    enter(shorter, "EXPIRING", wall_ms=1000)
    assert shorter.session.lifetime_ms == 3000
    late = login()
    with pytest.raises(LoginFailed, match="expired"):
        enter(late, "EXPIRING", wall_ms=5000)
    assert late.state is State.FAILED and late.session is None


def test_renewal_keeps_user_and_mechanism():
    each = login(max_reauth_ms=10_000)
    enter(each)
    with pytest.raises(LoginRefused, match=r"Cannot change principals .* from User\.alice: User\.bob"):
        enter(each, message=b"\0bob\0b", now_ms=2000)
    assert each.state is State.FAILED
    other = login(max_reauth_ms=10_000)
    enter(other)
    with pytest.raises(LoginRefused, match="'EXPIRING' requested by client is not that of the session"):
        other.shake_hands("EXPIRING")
    failing = login(max_reauth_ms=10_000)
    enter(failing)
    with pytest.raises(LoginFailed) as failure:
        enter(failing, message=b"x", now_ms=2000)
    assert "during re-authentication" in failing.failure_text(failure.value)
