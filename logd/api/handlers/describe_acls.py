"""DescribeAcls, 1 to 3: the ACLs that a filter selects, pattern by pattern.

Without an authorizer it is refused with SECURITY_DISABLED, as by Apache Kafka.
"""

from __future__ import annotations

from kafka_client.acl import AclEntry
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from logd.api.acl_messages import filter_of
from logd.api.request.context import RequestContext

REQUEST = DescribeAclsRequest


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    """Answer from the metadata that this broker has."""
    if context.broker.authorizer is None:
        return DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED,
            error_message="No Authorizer is configured on the broker",
        )
    try:
        selection = filter_of(request)
    except KafkaError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    resources = []
    for pattern, entries in sorted(context.broker.image.acls.items()):
        if not selection.matches_pattern(pattern):
            continue
        acls = [_described(entry) for entry in entries if selection.matches_entry(entry)]
        if acls:
            resources.append(
                DescribeAclsResource(
                    resource_type=pattern.resource_type,
                    resource_name=pattern.name,
                    pattern_type=pattern.pattern_type,
                    acls=acls,
                )
            )
    return DescribeAclsResponse(resources=resources)


def _described(entry: AclEntry) -> AclDescription:
    return AclDescription(
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
