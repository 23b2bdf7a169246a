"""The cases of Kafka's RestForwardingIntegrationTest: a follower forwards to a leader, over http and https.

| Kafka's method                | row of CASES      |
|-------------------------------|-------------------|
| testRestForwardNoSsl          | NoSsl             |
| testRestForwardNoSslDualListener | NoSslDualListener |
| testRestForwardLeaderSsl      | LeaderSsl         |
| testRestForwardFollowerSsl    | FollowerSsl       |
| testRestForwardSslDualListener | SslDualListener  |
| testRestForwardSsl            | Ssl               |
"""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from connect.errors import NotLeader
from tests.connect.rest.conftest import CONFIG
from tests.connect.rest.fake_service import FakeService
from tests.connect.rest.test_server import client_of, served
from tests.support.certificates import Authority

CASES = {
    "NoSsl": (False, False, False),
    "NoSslDualListener": (True, False, False),
    "LeaderSsl": (True, False, True),
    "FollowerSsl": (True, True, False),
    "SslDualListener": (True, True, True),
    "Ssl": (False, True, True),
}
"""Whether workers have both listeners, and whether the follower and the leader advertise https."""


@pytest.mark.parametrize(("is_dual", "follower_tls", "leader_tls"), CASES.values(), ids=CASES)
async def test_a_follower_forwards(
    is_dual: bool, follower_tls: bool, leader_tls: bool, tmp_path: Path
) -> None:
    authority = Authority("test CA")
    issued = authority.issue("worker", hosts=["127.0.0.1"])
    store, trust = issued.write_pem(tmp_path / "worker.pem"), authority.write_pem(tmp_path / "ca.pem")
    tls = {
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": str(store),
        "ssl_truststore_type": "PEM",
        "ssl_truststore_location": str(trust),
    }

    def settings(advertises_tls: bool) -> dict[str, str]:
        scheme = "https" if advertises_tls else "http"
        own = tls if is_dual or advertises_tls else {}
        if not is_dual:
            return {"listeners": f"{scheme}://127.0.0.1:0", **own}
        both = "http://127.0.0.1:0,https://127.0.0.1:0"
        return {"listeners": both, "rest_advertised_listener": scheme, **own}

    leader, follower = FakeService(), FakeService()
    verify = ssl.create_default_context(cafile=str(trust))
    async with (
        served(leader, **settings(leader_tls)) as one,
        served(follower, **settings(follower_tls)) as other,
    ):
        assert one.url.startswith("https:" if leader_tls else "http:")
        assert other.url.startswith("https:" if follower_tls else "http:")
        follower.failure = NotLeader("Not leader", one.url)
        async with client_of(other.url, verify=verify) as client:
            answer = await client.post("/connectors", json={"name": "blah", "config": CONFIG})
        assert answer.status_code == 201
        assert list(leader.configs) == ["blah"]
        assert not follower.configs
