"""Requests that only brokers may send: a standalone broker refuses them to everybody."""

from __future__ import annotations

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.metadata import MetadataRequest
from kafka_client.wire.messages.sasl_handshake import SaslHandshakeRequest
from logd.api.broker_requests import BROKER_REQUESTS, FETCH, WHOLE_APIS, BrokerRequest
from logd.api.table import APIS, BROKER_APIS
from tests.logd.broker.cluster.forged import forged
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

ROWS = [
    pytest.param(row, id=row.name)
    for row in BROKER_REQUESTS.values()
    if not row.is_answered and row.key != FETCH  # its partitions are NOT_LEADER_OR_FOLLOWER
]


@pytest.mark.parametrize("row", ROWS)
def test_it_closes_the_connection_with_one_line(logd: LogdProcess, row: BrokerRequest) -> None:
    start = len(logd.log)
    with RawClient(logd.port) as client:
        client.send(forged(row))
        assert client.is_closed_by_peer()
    logd.wait_for_log(f"sent {row.name}")
    (line,) = [line for line in logd.log[start:].splitlines() if row.name in line]
    assert "which only a broker of the cluster may send" in line
    with RawClient(logd.port) as client:
        assert client.request(MetadataRequest(topics=[]), 9).brokers


def test_there_is_no_login(logd: LogdProcess) -> None:
    with RawClient(logd.port) as client:
        answer = client.request(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_the_table_has_every_api_between_brokers() -> None:
    assert set(BROKER_APIS) <= WHOLE_APIS
    assert not set(APIS) & WHOLE_APIS
    assert {key for key, row in BROKER_REQUESTS.items() if row.part} <= set(APIS)
