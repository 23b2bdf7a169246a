"""Admin calls about access control lists (ACLs)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka_client.acl import (
    AclBinding,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from kafka_client.acl_filter import AclFilter
from kafka_client.admin.base import AdminBase
from kafka_client.errors import error_for
from kafka_client.wire.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kafka_client.wire.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from kafka_client.wire.messages.describe_acls import (
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


class AclAdmin(AdminBase):
    """ACLs; see `admin.Admin`. KafkaError(SECURITY_DISABLED): the brokers have no authorizer."""

    async def describe_acls(self, selection: AclFilter = AclFilter()) -> list[AclBinding]:  # noqa: B008 - immutable
        """Return the ACLs that the filter selects, all by default, in order."""
        request = DescribeAclsRequest(
            resource_type_filter=selection.resource_type,
            resource_name_filter=selection.name,
            pattern_type_filter=selection.pattern_type,
            principal_filter=selection.principal,
            host_filter=selection.host,
            operation=selection.operation,
            permission_type=selection.permission,
        )
        response: DescribeAclsResponse = await self._ask_controller(request)
        if response.error_code:
            raise error_for(response.error_code, response.error_message or "describing ACLs")
        return sorted(binding for resource in response.resources for binding in _bindings(resource))

    async def create_acls(self, bindings: Sequence[AclBinding]) -> None:
        """Create ACLs; one that exists already is no error. Raises the first error, after all were tried."""
        creations = [
            AclCreation(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                resource_pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for pattern, entry in bindings
        ]
        response: CreateAclsResponse = await self._ask_controller(CreateAclsRequest(creations=creations))
        for (pattern, _), result in zip(bindings, response.results, strict=True):
            if result.error_code:
                what = f"an ACL of {pattern.resource_type.name} {pattern.name}"
                raise error_for(result.error_code, f"{what}: {result.error_message or 'refused'}")

    async def delete_acls(self, selections: Iterable[AclFilter]) -> list[AclBinding]:
        """Delete the ACLs that any of the filters selects, and return them in order."""
        filters = [
            DeleteAclsFilter(
                resource_type_filter=each.resource_type,
                resource_name_filter=each.name,
                pattern_type_filter=each.pattern_type,
                principal_filter=each.principal,
                host_filter=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in selections
        ]
        response: DeleteAclsResponse = await self._ask_controller(DeleteAclsRequest(filters=filters))
        deleted: set[AclBinding] = set()
        for result in response.filter_results:
            if result.error_code:
                raise error_for(result.error_code, result.error_message or "deleting ACLs")
            deleted.update(map(_binding, result.matching_acls))
        return sorted(deleted)


def _bindings(resource: DescribeAclsResource) -> Iterable[AclBinding]:
    pattern = ResourcePattern(
        ResourceType(resource.resource_type), PatternType(resource.pattern_type), resource.resource_name
    )
    for acl in resource.acls:
        entry = AclEntry(acl.principal, acl.host, Operation(acl.operation), Permission(acl.permission_type))
        yield AclBinding(pattern, entry)


def _binding(acl: DeleteAclsMatchingAcl) -> AclBinding:
    pattern = ResourcePattern(
        ResourceType(acl.resource_type), PatternType(acl.pattern_type), acl.resource_name
    )
    entry = AclEntry(acl.principal, acl.host, Operation(acl.operation), Permission(acl.permission_type))
    return AclBinding(pattern, entry)
