"""Messages between brokers: no definition of Kafka's to compare them with, so their bytes are held."""

from __future__ import annotations

import pytest

from kafka_client.wire import ApiKey, Message, decode, encode, request_class, response_class
from kafka_client.wire.api_keys import PRIVATE_FROM
from kafka_client.wire.private.broker_report import BrokerReportRequest, BrokerReportResponse, ReportedTopic
from kafka_client.wire.private.broker_shutdown import BrokerShutdownRequest, BrokerShutdownResponse
from kafka_client.wire.private.cluster_update import ClusterUpdateRequest, ClusterUpdateResponse
from logd.api.table import APIS

RELEASED = [
    (
        ClusterUpdateRequest(
            controller_id=1,
            controller_epoch=2,
            broker_epoch=3,
            number=4,
            begins=True,
            is_complete=False,
            changes=b"[{}]",
        ),
        0,
        "0000000100000002000000000000000300000000000000040100055b7b7d5d00",
    ),
    (ClusterUpdateResponse(error_code=11, error_message="old"), 0, "000b046f6c6400"),
    (
        BrokerReportRequest(
            broker_id=1,
            broker_epoch=2,
            is_shutting_down=True,
            offline_log_dirs=["/d"],
            offline=[ReportedTopic(name="t", partitions=[3])],
        ),
        0,
        "0000000100000000000000020102032f6402027402000000030000",
    ),
    (
        BrokerReportResponse(remaining=[ReportedTopic(name="t", partitions=[3])]),
        0,
        "00000002027402000000030000",
    ),
    (BrokerShutdownRequest(broker_id=7), 0, "0000000700"),
    (BrokerShutdownResponse(error_code=44, error_message="no"), 0, "002c036e6f00"),
]


@pytest.mark.parametrize(("message", "version", "expected"), RELEASED, ids=lambda each: type(each).__name__)
def test_what_was_released_stays_readable(message: Message, version: int, expected: str) -> None:
    assert encode(message, version).hex() == expected
    assert decode(type(message), version, bytes.fromhex(expected)) == message


@pytest.mark.parametrize("key", [key for key in ApiKey if key >= PRIVATE_FROM])
def test_they_are_found_by_their_keys_and_not_told_to_clients(key: ApiKey) -> None:
    types = {type(message) for message, _, _ in RELEASED}
    assert {request_class(key), response_class(key)} <= types
    assert key not in APIS
