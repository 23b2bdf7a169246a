"""Numbers and filters of ACLs as requests have them. Numbers that Kafka does not have are UNKNOWN."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeVar

from kafka_client.acl import Operation, PatternType, Permission, ResourceType
from kafka_client.acl_filter import AclFilter
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.delete_acls import DeleteAclsFilter
from kafka_client.wire.messages.describe_acls import DescribeAclsRequest

NO_AUTHORIZER: Final = "No Authorizer is configured."
Word = TypeVar("Word", bound=IntEnum)


def _word(words: type[Word], number: int) -> Word:
    try:
        return words(number)
    except ValueError:
        return words(0)


def resource_type_of(number: int) -> ResourceType:
    """Return the resource type of this number."""
    return _word(ResourceType, number)


def pattern_type_of(number: int) -> PatternType:
    """Return the pattern type of this number."""
    return _word(PatternType, number)


def operation_of(number: int) -> Operation:
    """Return the operation of this number."""
    return _word(Operation, number)


def permission_of(number: int) -> Permission:
    """Return the permission of this number."""
    return _word(Permission, number)


def filter_of(selection: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Return the filter of a request. Raises KafkaError(INVALID_REQUEST) if it has an unknown number."""
    selected = AclFilter(
        resource_type_of(selection.resource_type_filter),
        selection.resource_name_filter,
        pattern_type_of(selection.pattern_type_filter),
        selection.principal_filter,
        selection.host_filter,
        operation_of(selection.operation),
        permission_of(selection.permission_type),
    )
    if ResourceType.UNKNOWN is selected.resource_type or PatternType.UNKNOWN is selected.pattern_type:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if Operation.UNKNOWN is selected.operation or Permission.UNKNOWN is selected.permission:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return selected
