"""The table of authorization, row by row, through a broker: each API, in each version, with each permission
missing, and with all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kafka_client.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_client.errors import ErrorCode
from kafka_client.wire import Message
from logd.api.authorization.access import ERRORS
from logd.api.authorization.rule import free
from logd.api.authorization.rules import RULES
from logd.api.table import API_VERSIONS, APIS, BROKER_APIS, OPERATOR_APIS
from tests.support.logged_in import LoggedInClient
from tests.support.sample_requests import sample_frame, served

NAME = "sample"
Need = tuple[ResourceType, str, Operation]
IN_PARSERS = {0, 1, 3}
"""Produce, Fetch and Metadata, which check in their own code."""


def topic(operation: Operation) -> Need:
    return ResourceType.TOPIC, NAME, operation


def group(operation: Operation) -> Need:
    return ResourceType.GROUP, NAME, operation


def transactional_id(operation: Operation) -> Need:
    return ResourceType.TRANSACTIONAL_ID, NAME, operation


def cluster(operation: Operation) -> Need:
    return ResourceType.CLUSTER, CLUSTER_NAME, operation


READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
)
TABLE: dict[int, list[Need]] = {
    0: [topic(WRITE)],
    1: [topic(READ)],
    2: [topic(DESCRIBE)],
    8: [group(READ), topic(READ)],
    9: [group(DESCRIBE), topic(DESCRIBE)],
    11: [group(READ)],
    12: [group(READ)],
    13: [group(READ)],
    14: [group(READ)],
    15: [group(DESCRIBE)],
    19: [topic(CREATE)],
    20: [topic(DELETE)],
    21: [topic(DELETE)],
    22: [transactional_id(WRITE)],
    23: [topic(DESCRIBE)],
    24: [transactional_id(WRITE), topic(WRITE)],
    25: [transactional_id(WRITE), group(READ)],
    26: [transactional_id(WRITE)],
    28: [transactional_id(WRITE), group(READ), topic(READ)],
    29: [cluster(DESCRIBE)],
    30: [cluster(ALTER)],
    31: [cluster(ALTER)],
    32: [cluster(Operation.DESCRIBE_CONFIGS)],
    33: [cluster(Operation.ALTER_CONFIGS)],
    34: [cluster(ALTER)],
    35: [cluster(DESCRIBE)],
    37: [topic(ALTER)],
    42: [group(DELETE)],
    43: [cluster(ALTER)],
    44: [cluster(Operation.ALTER_CONFIGS)],
    45: [cluster(ALTER)],
    46: [cluster(DESCRIBE)],
    47: [group(DELETE), topic(READ)],
    48: [cluster(Operation.DESCRIBE_CONFIGS)],
    49: [cluster(Operation.ALTER_CONFIGS)],
    50: [cluster(DESCRIBE)],
    51: [cluster(ALTER)],
    55: [cluster(DESCRIBE)],
    57: [cluster(ALTER)],
    61: [topic(READ)],
    65: [transactional_id(DESCRIBE)],
    74: [cluster(Operation.DESCRIBE_CONFIGS)],
    75: [topic(DESCRIBE)],
}
END = {0: 13, 1: 7, 8: 10, 9: 10, 20: 6, 24: 4}
"""The versions from which on the samples name a topic id or a fetch session that does not exist, or are for
brokers only.
"""
BEGIN = {35: 3}
"""The version from which on the response has an error code."""
REFUSALS = frozenset(ERRORS.values())


def codes(answer: Any) -> Iterator[int]:
    """Yield every error code in a response."""
    if isinstance(answer, list):
        for each in answer:
            yield from codes(each)
    elif isinstance(answer, Message):
        for field in answer.__struct_fields__:
            value = getattr(answer, field)
            if field in ("error_code", "partition_error_code"):
                yield value
            else:
                yield from codes(value)


def refusals(client: LoggedInClient, key: int, version: int) -> set[int]:
    client.send(sample_frame(key, version))
    return set(codes(client.receive(key, version))) & REFUSALS


def versions(key: int) -> Sequence[int]:
    begin, end = BEGIN.get(key, 0), END.get(key, 1 << 30)
    return [version for each, version in served() if each == key and begin <= version < end]


def test_every_api_has_a_rule() -> None:
    keys = {*APIS, *BROKER_APIS, *OPERATOR_APIS}
    assert set(RULES) == keys - IN_PARSERS
    unchecked = {key for key, rule in RULES.items() if rule is free}
    assert unchecked == {17, 18, 36, *BROKER_APIS}


@pytest.mark.parametrize("key", TABLE, ids=lambda key: APIS[key].module)
def test_a_missing_permission(key: int, root: LoggedInClient, alice: LoggedInClient) -> None:
    needs = TABLE[key]
    assert versions(key)
    for missing in needs:
        root.allow_all(need for need in needs if need != missing)
        for version in versions(key):
            assert refusals(alice, key, version) == {ERRORS[missing[0]]}, version
        root.forget()
    root.allow_all(needs)
    for version in versions(key):
        assert refusals(alice, key, version) == set(), version


def test_what_needs_no_permission(alice: LoggedInClient) -> None:
    alice.send(sample_frame(API_VERSIONS, 3))
    assert alice.receive(API_VERSIONS, 3).error_code == ErrorCode.NONE


def test_an_operators_shutdown(alice: LoggedInClient) -> None:
    from kafka_client.wire.private.broker_shutdown import BrokerShutdownRequest

    answer = alice.request(BrokerShutdownRequest(broker_id=1), 0)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_the_brokers_part_of_an_api(alice: LoggedInClient) -> None:
    assert refusals(alice, 24, 4) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert refusals(alice, 27, 1) == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
