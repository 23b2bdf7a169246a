"""Sessions through TLS, with a server that asks for a certificate."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from logd.metadata.zookeeper.errors import NotAllowed, Unreachable
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from tests.logd.metadata.zookeeper.secured import Secured, secured_zookeeper
from tests.logd.metadata.zookeeper.sessions import opened
from tests.support.certificates import Authority
from tests.support.depth import deep

pytestmark = deep


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_zookeeper(tmp_path_factory.mktemp("tls")) as running:
        yield running


async def test_through_tls(secured: Secured) -> None:
    # The longest session that the server grants: 10 MB of answers take a busy machine some seconds.
    settings = {"session_timeout_ms": 40_000, "max_in_flight_requests": 100}
    async with opened(secured.secure + "/k", tls=secured.context(), **settings) as session:
        await session.create("/x", b"1" * 5000)
        # Many answers in one record of TLS: none may wait for the next thing that comes.
        async with asyncio.timeout(session.settings.session_timeout_ms / 1000 / 3):
            answers = await session.find_all(["/x"] * 2000)
        assert all(each is not None and len(each[0]) == 5000 for each in answers)


async def test_a_certificate_is_an_identity(secured: Secured) -> None:
    async with (
        opened(secured.secure + "/acl", tls=secured.context(), set_acl=True) as ours,
        opened(secured.plain + "/acl") as other,
    ):
        await ours.ensure(["/config/users/u", "/brokers"])
        assert await other.get("/brokers")
        with pytest.raises(NotAllowed):
            await other.set("/brokers", b"x")
        with pytest.raises(NotAllowed):
            await other.get("/config/users")


async def test_a_server_that_is_not_trusted(secured: Secured) -> None:
    other = secured.context(authority=Authority("another CA"))
    # It is tried again until then; a handshake takes a busy machine longer than a second.
    settings = ZooKeeperSettings.of(secured.secure, tls=other, connection_timeout_ms=10_000)
    with pytest.raises(Unreachable, match="certificate verify failed"):
        await Session(settings).open()
