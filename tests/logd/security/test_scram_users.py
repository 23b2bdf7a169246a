"""Users of SCRAM and decoys: an unknown user's login looks like one with a wrong password."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest

from kafka_client.security.scram import Scram
from kafka_client.security.secret import Secret
from logd.api.request.answer import NotYet
from logd.security.errors import LoginFailed
from logd.security.scram import ScramServerExchange
from logd.security.scram_credential import ScramCredential, ScramMechanism
from logd.security.scram_users import ScramUsers

MECHANISM = ScramMechanism.SHA_256


def users_of(
    configs: Mapping[str, Mapping[str, str]],
    key: bytes = b"key",
    check_ready: Callable[[], None] = lambda: None,
) -> ScramUsers:
    return ScramUsers(lambda user: configs.get(user, {}), lambda: key, check_ready)


def exchange_of(users: ScramUsers) -> ScramServerExchange:
    return ScramServerExchange(
        MECHANISM,
        partial(users.find, MECHANISM),
        decoy=partial(users.decoy, MECHANISM),
        nonce=lambda: "srv",
    )


async def server_messages(users: ScramUsers, user: str, password: str) -> tuple[bytes, str]:
    """Return the server's first message, and the reason of the failure after it."""
    client = await Scram(MECHANISM.label, user, Secret(password), nonce=lambda: "cli").begin()
    server = exchange_of(users)
    first = server.respond(client.first())
    final = await client.respond(first)
    assert final is not None
    with pytest.raises(LoginFailed) as failure:
        server.respond(final)
    assert not server.is_complete and server.user == ""
    return first, str(failure.value)


async def test_an_unknown_user_fails_where_a_wrong_password_does() -> None:
    alice = ScramCredential.of_password(MECHANISM, "pencil")
    users = users_of({"alice": {MECHANISM.label: alice.to_text()}})
    right_user, wrong = await server_messages(users, "alice", "pen")
    decoy, unknown = await server_messages(users, "bob", "pen")
    assert (wrong, unknown) == (
        "Invalid client credentials of user 'alice'",
        "no SCRAM-SHA-256 credential of user 'bob'",
    )
    assert right_user.startswith(b"r=clisrv,s=") and decoy.startswith(b"r=clisrv,s=")
    assert right_user.endswith(b",i=4096") and decoy.endswith(b",i=4096")
    assert abs(len(right_user) - len(decoy)) <= 8


async def test_a_decoy_is_the_same_at_each_login_and_on_each_broker() -> None:
    first, _ = await server_messages(users_of({}), "bob", "a")
    again, _ = await server_messages(users_of({}), "bob", "b")
    other_user, _ = await server_messages(users_of({}), "bo", "a")
    other_cluster, _ = await server_messages(users_of({}, b"other"), "bob", "a")
    assert first == again
    assert len({first, other_user, other_cluster}) == 3


def test_a_damaged_credential_fails_without_a_quote() -> None:
    users = users_of({"alice": {MECHANISM.label: "salt=c2VjcmV0"}})
    with pytest.raises(LoginFailed, match="stored credential of user 'alice' is damaged") as failure:
        exchange_of(users).respond(b"n,,n=alice,r=abc")
    assert "c2VjcmV0" not in str(failure.value)


def test_no_user_is_refused_before_the_users_are_known() -> None:
    def check_ready() -> None:
        raise NotYet("not joined")

    with pytest.raises(NotYet):
        exchange_of(users_of({}, check_ready=check_ready)).respond(b"n,,n=alice,r=abc")
