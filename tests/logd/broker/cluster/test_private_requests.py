"""Requests between brokers, sent by somebody who is no broker, on each listener.

The story: any peer could send the controller's message with an epoch of its own. The refusal told which
broker epoch was needed, and from then on no controller was believed.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafka_client import Admin, Client, NewTopic
from kafka_client.errors import AuthenticationFailed, ErrorCode
from kafka_client.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from kafka_client.wire.messages.sasl_handshake import SaslHandshakeRequest
from kafka_client.wire.private.cluster_update import ClusterUpdateRequest, ClusterUpdateResponse
from logd.api.broker_requests import ADD_PARTITIONS_TO_TXN, BROKER_REQUESTS, BrokerRequest
from logd.broker.cluster.broker_login import USER, BrokerLogin
from logd.broker.cluster.peer_connections import PeerConnections
from tests.logd.broker.cluster.brokers import Brokers
from tests.logd.broker.cluster.forged import CONTROLLER_EPOCH, TOPIC, forged
from tests.support.raw_client import RawClient

LISTENERS = {
    "listeners": "CLIENTS://127.0.0.1:0,INNER://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INNER:PLAINTEXT",
    "inter.broker.listener.name": "INNER",
}


def refused(port: int, row: BrokerRequest) -> bool:
    """Return True if the broker closes the connection, or answers that the request is not allowed."""
    with RawClient(port) as client:
        client.send(forged(row))
        if not row.is_answered:
            return client.is_closed_by_peer()
        if row.key == ADD_PARTITIONS_TO_TXN:
            return bool(client.receive(row.key, 5).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        (marker,) = client.receive(row.key, 1).markers
        code = marker.topics[0].partitions[0].error_code
        return code in (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def handshake(port: int, mechanism: str) -> int:
    with RawClient(port) as client:
        return int(client.request(SaslHandshakeRequest(mechanism=mechanism), 1).error_code)


def login_without_the_secret(port: int) -> int:
    with RawClient(port) as client:
        assert client.request(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
        first = SaslAuthenticateRequest(auth_bytes=f"n,,n={USER},r=abc".encode())
        challenge = client.request(first, 2)
        nonce = challenge.auth_bytes.decode().partition(",")[0]
        final = f"c=biws,{nonce},p={'A' * 43}=".encode()
        answer = client.request(SaslAuthenticateRequest(auth_bytes=final), 2)
        assert client.request(first, 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
    return int(answer.error_code)


async def test_nobody_but_brokers_is_served(zookeeper: str, tmp_path: Path) -> None:
    async with Brokers(zookeeper, tmp_path, count=2, **LISTENERS) as brokers:
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic(TOPIC, 1, 2)])
        controller = brokers.controller.broker
        epoch = brokers.member(controller.node_id).controlling.elected.epoch
        for running in brokers.up.values():
            for endpoint in running.broker.endpoints:
                for row in BROKER_REQUESTS.values():
                    assert await asyncio.to_thread(refused, endpoint.port, row), (endpoint, row)
        for clients, inner in (each.broker.endpoints for each in brokers.up.values()):
            illegal = ErrorCode.ILLEGAL_SASL_STATE
            assert await asyncio.to_thread(handshake, clients.port, "SCRAM-SHA-256") == illegal
            assert await asyncio.to_thread(handshake, inner.port, "PLAIN") == illegal
            failed = await asyncio.to_thread(login_without_the_secret, inner.port)
            assert failed == ErrorCode.SASL_AUTHENTICATION_FAILED
        async with Client(brokers.bootstrap) as client:
            await Admin(client).create_topics([NewTopic("after", 3, 2)])
        await brokers.until(lambda: all("after" in each.topics for each in brokers.up.values()))
        assert brokers.controller.broker is controller
        assert brokers.member(controller.node_id).controlling.elected.epoch == epoch


async def test_a_broker_is_not_believed_about_its_epoch(zookeeper: str, tmp_path: Path) -> None:
    """A peer that knows the secret cannot depose the controller: ZooKeeper says which epoch there is."""
    async with Brokers(zookeeper, tmp_path, count=1, **LISTENERS) as brokers:
        broker, member = brokers.up[1].broker, brokers.member(1)
        assert broker.broker_login is not None
        update = ClusterUpdateRequest(
            controller_id=99,
            controller_epoch=CONTROLLER_EPOCH,
            broker_epoch=member.epoch,
            number=1,
            begins=True,
            is_complete=True,
            changes=b"[]",
        )

        async def send(login: BrokerLogin) -> ClusterUpdateResponse:
            peers = PeerConnections(9, lambda: broker.image.brokers, "INNER", login)
            try:
                answer: ClusterUpdateResponse = await peers.request(1, update)
            finally:
                await peers.close()
            return answer

        answer = await send(broker.broker_login)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert not any(character.isdigit() for character in answer.error_message or "")
        assert member.is_active and member.controlling.elected.epoch < CONTROLLER_EPOCH
        with pytest.raises(AuthenticationFailed):
            await send(BrokerLogin("another secret", "INNER"))
