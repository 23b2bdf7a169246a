"""CreateAcls, 1 to 3: each ACL is created or refused by itself; one that exists already is no error.

Without an authorizer each is refused with SECURITY_DISABLED, as by Apache Kafka.
"""

from __future__ import annotations

from ipaddress import ip_network

from kafka_client.acl import (
    CLUSTER_NAME,
    AclBinding,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from logd.api.acl_messages import (
    NO_AUTHORIZER,
    operation_of,
    pattern_type_of,
    permission_of,
    resource_type_of,
)
from logd.api.request.context import RequestContext
from logd.metadata.controller.acls import create_acls as decide_creation

REQUEST = CreateAclsRequest


async def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    """Answer one by one. All valid ACLs are created together."""
    if context.broker.authorizer is None:
        return _refused(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    results: list[AclCreationResult] = []
    bindings: list[AclBinding] = []
    for creation in request.creations:
        try:
            binding = _binding(creation)
            if not context.broker.cluster.is_standalone:
                _check_znode(binding.pattern.name)
            bindings.append(binding)
            results.append(AclCreationResult())
        except KafkaError as error:
            results.append(AclCreationResult(error_code=error.code, error_message=error.message))
    try:
        await context.broker.catalog.decide(
            lambda controller: decide_creation(controller.image.acls, bindings)
        )
    except KafkaError as error:
        return _refused(request, error.code, error.message)
    return CreateAclsResponse(results=results)


def refused(request: CreateAclsRequest, code: ErrorCode) -> CreateAclsResponse:
    """Return the response for when the controller cannot be reached, or the peer may not create ACLs."""
    return _refused(request, code, None)


def _refused(request: CreateAclsRequest, code: ErrorCode | int, message: str | None) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=code, error_message=message) for _ in request.creations]
    )


def _binding(creation: AclCreation) -> AclBinding:
    """Return the ACL to create. Raises KafkaError(INVALID_REQUEST) with Kafka's messages."""
    pattern = ResourcePattern(
        resource_type_of(creation.resource_type),
        pattern_type_of(creation.resource_pattern_type),
        creation.resource_name,
    )
    entry = AclEntry(
        creation.principal,
        creation.host,
        operation_of(creation.operation),
        permission_of(creation.permission_type),
    )
    _check_pattern(pattern)
    _check_entry(entry)
    return AclBinding(pattern, entry)


def _check_pattern(pattern: ResourcePattern) -> None:
    if pattern.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
        raise _invalid(f"Invalid resourceType {pattern.resource_type.name}")
    if pattern.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise _invalid(f"Invalid patternType {pattern.pattern_type.name}")
    if not pattern.name:
        raise _invalid("Resource name should not be empty")
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")


def _check_znode(name: str) -> None:
    """Raise KafkaError unless ZooKeeper can have a znode of this name."""
    from logd.metadata.zookeeper.znodes.acl_znodes import is_name

    if not is_name(name):
        raise _invalid(f"Resource name {name!r} cannot be a znode's: no / and no control characters")


def _check_entry(entry: AclEntry) -> None:
    if entry.operation in (Operation.UNKNOWN, Operation.ANY):
        raise _invalid(f"Invalid operation {entry.operation.name}")
    if entry.permission not in (Permission.ALLOW, Permission.DENY):
        raise _invalid(f"Invalid permissionType {entry.permission.name}")
    if ":" not in entry.principal:
        raise _invalid(
            f"Could not parse principal from `{entry.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )
    if not entry.host:
        raise _invalid("Host pattern cannot be null or empty")
    if "/" in entry.host:
        try:
            ip_network(entry.host, strict=False)
        except ValueError as error:
            raise _invalid(f"Invalid CIDR notation '{entry.host}': {error}") from None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
