"""ACLs over the wire: what is created, described and deleted, what is refused, and what a restart leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client.acl import Operation, PatternType, Permission, ResourceType
from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.create_acls import AclCreation, CreateAclsRequest
from kafka_client.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafka_client.wire.messages.describe_acls import DescribeAclsRequest
from tests.support.logd_process import LogdProcess
from tests.support.logged_in import ROOT, LoggedInClient, settings_with_acls

TOPIC = ResourceType.TOPIC


def creation(**fields: object) -> AclCreation:
    values = {
        "resource_type": TOPIC,
        "resource_name": "t",
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }
    return AclCreation(**{**values, **fields})


def described(client: LoggedInClient, **fields: object) -> set[tuple[object, ...]]:
    every = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    answer = client.request(DescribeAclsRequest(**{**every, **fields}), 3)
    assert answer.error_code == 0, answer.error_message
    return {
        (resource.resource_name, acl.principal, acl.host, acl.operation, acl.permission_type)
        for resource in answer.resources
        for acl in resource.acls
    }


def test_a_life(root: LoggedInClient) -> None:
    allowed = ("t", "User:alice", "*", Operation.READ, Permission.ALLOW)
    denied = ("t", "User:alice", "10.0.0.0/8", Operation.ALL, Permission.DENY)
    new = [creation(), creation(), creation(host="10.0.0.0/8", operation=2, permission_type=2)]
    for _ in range(2):  # what exists is no error
        assert [each.error_code for each in root.request(CreateAclsRequest(creations=new), 3).results] == [
            0
        ] * 3
    assert described(root) == {allowed, denied}
    assert described(root, permission_type=Permission.DENY) == {denied}
    assert described(root, resource_name_filter="absent", pattern_type_filter=PatternType.MATCH) == set()
    selection = DeleteAclsFilter(
        resource_type_filter=1, pattern_type_filter=1, operation=Operation.READ, permission_type=1
    )
    (result,) = root.request(DeleteAclsRequest(filters=[selection]), 3).filter_results
    assert [each.resource_name for each in result.matching_acls] == ["t"]
    assert described(root) == {denied}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resource_type": ResourceType.ANY}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"operation": Operation.ANY}, "Invalid operation ANY"),
        ({"permission_type": Permission.ANY}, "Invalid permissionType ANY"),
        ({"resource_name": ""}, "Resource name should not be empty"),
        (
            {"resource_type": ResourceType.CLUSTER},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"principal": "alice"}, "Could not parse principal from `alice`"),
        ({"host": ""}, "Host pattern cannot be null or empty"),
        ({"host": "10.0.0.0/99"}, "Invalid CIDR notation '10.0.0.0/99'"),
    ],
)
def test_an_acl_that_is_none(root: LoggedInClient, fields: dict[str, object], message: str) -> None:
    request = CreateAclsRequest(creations=[creation(**fields), creation()])
    wrong, right = root.request(request, 3).results
    assert (wrong.error_code, right.error_code) == (ErrorCode.INVALID_REQUEST, 0)
    assert message in wrong.error_message


def test_filters_that_are_none(root: LoggedInClient) -> None:
    answer = root.request(DescribeAclsRequest(resource_type_filter=99), 3)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    selection = DeleteAclsFilter(resource_type_filter=1, operation=99, permission_type=1)
    (result,) = root.request(DeleteAclsRequest(filters=[selection]), 3).filter_results
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")


def test_a_refusal_is_written_to_the_log(root: LoggedInClient, broker: LogdProcess) -> None:
    with LoggedInClient(broker.port, "bob") as bob:
        assert bob.fetch("audited\nforged").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    broker.wait_for_log(
        "Principal = User:bob is Denied operation = READ from host = 127.0.0.1 on resource = "
        r"TOPIC:LITERAL:'audited\nforged' for request = Fetch"
    )


def test_acls_survive_a_crash(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, settings_with_acls()) as logd:
        with LoggedInClient(logd.port, ROOT) as client:
            client.allow(TOPIC, "t", Operation.READ)
            client.allow(TOPIC, "gone", Operation.READ, user="bob")
            client.forget("bob")
        logd.kill()
        logd.start()
        with LoggedInClient(logd.port, ROOT) as client:
            assert described(client) == {("t", "User:alice", "*", Operation.READ, Permission.ALLOW)}
        with LoggedInClient(logd.port, "alice") as client:
            assert client.fetch("t").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert client.fetch("u").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_everyone_where_no_acl_is(tmp_path: Path) -> None:
    settings = {**settings_with_acls(), "allow.everyone.if.no.acl.found": "true"}
    with LogdProcess(tmp_path, settings) as logd:
        with LoggedInClient(logd.port, ROOT) as client:
            client.allow(TOPIC, "t", Operation.READ, user="bob")
        with LoggedInClient(logd.port, "alice") as client:
            assert client.fetch("t").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert client.fetch("u").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
