"""DeleteAcls, 1 to 3: delete what each filter selects, and return it.

Without an authorizer each filter is refused with SECURITY_DISABLED, as by Apache Kafka.
"""

from __future__ import annotations

from kafka_client.acl import AclBinding
from kafka_client.acl_filter import AclFilter
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from logd.api.acl_messages import NO_AUTHORIZER, filter_of
from logd.api.request.context import RequestContext
from logd.metadata.controller.acls import delete_acls as decide_deletion

REQUEST = DeleteAclsRequest


async def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    """Answer filter by filter. All that is selected is deleted together."""
    if context.broker.authorizer is None:
        return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    results: list[DeleteAclsFilterResult] = []
    filters: list[AclFilter] = []
    valid: list[DeleteAclsFilterResult] = []
    for selection in request.filters:
        result = DeleteAclsFilterResult()
        try:
            filters.append(filter_of(selection))
            valid.append(result)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        results.append(result)
    try:
        selected = await context.broker.catalog.decide(
            lambda controller: decide_deletion(controller.image.acls, filters)
        )
    except KafkaError as error:
        return _refused(request, error.code, error.message)
    for result, bindings in zip(valid, selected, strict=True):
        result.matching_acls = [_matching(binding) for binding in bindings]
    return DeleteAclsResponse(filter_results=results)


def refused(request: DeleteAclsRequest, code: ErrorCode) -> DeleteAclsResponse:
    """Return the response for when the controller cannot be reached, or the peer may not delete ACLs."""
    return _refused(request, code, None)


def _refused(request: DeleteAclsRequest, code: ErrorCode | int, message: str | None) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=code, error_message=message) for _ in request.filters
        ]
    )


def _matching(binding: AclBinding) -> DeleteAclsMatchingAcl:
    pattern, entry = binding
    return DeleteAclsMatchingAcl(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
