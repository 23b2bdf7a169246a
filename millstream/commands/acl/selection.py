"""The ACLs that the options of `millstream acl` name, with the short forms of Kafka's `kafka-acls`.

A producer needs WRITE, DESCRIBE and CREATE on topics, and WRITE and DESCRIBE on its transactional id. A
consumer needs READ and DESCRIBE on topics, and READ on its group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass

from kafka_client.acl import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from kafka_client.acl_filter import AclFilter
from millstream.terminal.output import Row
from millstream.terminal.status import UsageError

COLUMNS = ("resource_type", "pattern_type", "name", "principal", "host", "operation", "permission")
_OF_PRODUCERS = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_OF_CONSUMERS = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that a command names."""

    topics: Sequence[str] | None
    groups: Sequence[str] | None
    transactional_ids: Sequence[str] | None
    _: KW_ONLY
    cluster: bool
    prefixed: bool
    """True if the names are prefixes."""

    def patterns(self) -> list[ResourcePattern]:
        """Return the patterns, which are few."""
        kind = PatternType.PREFIXED if self.prefixed else PatternType.LITERAL
        named = (
            (ResourceType.TOPIC, self.topics),
            (ResourceType.GROUP, self.groups),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
        )
        patterns = [ResourcePattern(each, kind, name) for each, names in named for name in names or ()]
        if self.cluster:
            patterns.append(ResourcePattern(ResourceType.CLUSTER, PatternType.LITERAL, CLUSTER_NAME))
        return patterns


def bindings(
    resources: Resources,
    principals: Iterable[str],
    hosts: Sequence[str],
    operations: Sequence[str],
    *,
    producer: bool,
    consumer: bool,
    deny: bool,
) -> list[AclBinding]:
    """Return every ACL that the options name, once. Raises UsageError if they name none."""
    permission = Permission.DENY if deny else Permission.ALLOW
    named = [
        AclBinding(pattern, AclEntry(principal, host, operation, permission))
        for pattern in resources.patterns()
        for operation in _operations(pattern, operations, producer=producer, consumer=consumer)
        for principal in principals
        for host in hosts or [WILDCARD]
    ]
    if not named:
        raise UsageError(
            "this names no ACL: give a --principal, a resource such as --topic, and --operation, --producer "
            "or --consumer; a consumer needs a --group, too"
        )
    return list(dict.fromkeys(named))


def filters(resources: Resources, principals: Sequence[str]) -> list[AclFilter]:
    """Return filters for the ACLs of these resources, or of all, and of these principals, or of all."""
    each = [AclFilter(*pattern_filter) for pattern_filter in _pattern_filters(resources)]
    if not principals:
        return each
    return [selection._replace(principal=one) for selection in each for one in principals]


def exact_filter(binding: AclBinding) -> AclFilter:
    """Return the filter that selects this ACL alone."""
    pattern, entry = binding
    return AclFilter(pattern.resource_type, pattern.name, pattern.pattern_type, *entry)


def operation_named(name: str) -> Operation:
    """Return the operation of a name such as `read` or `DescribeConfigs`. Raises UsageError."""
    text = name.replace("_", "").replace("-", "").upper()
    for each in Operation:
        if each not in (Operation.UNKNOWN, Operation.ANY) and each.name.replace("_", "") == text:
            return each
    names = ", ".join(each.name.lower() for each in Operation if each > Operation.ANY)
    raise UsageError(f"--operation {name} is no operation: {names}")


def row(binding: AclBinding) -> Row:
    """Return the row of an ACL."""
    pattern, entry = binding
    return {
        "resource_type": pattern.resource_type.name,
        "pattern_type": pattern.pattern_type.name,
        "name": pattern.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permission": entry.permission.name,
    }


def _operations(
    pattern: ResourcePattern, names: Sequence[str], *, producer: bool, consumer: bool
) -> list[Operation]:
    chosen = [operation_named(name) for name in names]
    if producer:
        chosen += _OF_PRODUCERS.get(pattern.resource_type, ())
    if consumer:
        chosen += _OF_CONSUMERS.get(pattern.resource_type, ())
    return chosen


def _pattern_filters(resources: Resources) -> list[tuple[ResourceType, str | None, PatternType]]:
    patterns = resources.patterns()
    if not patterns:
        return [(ResourceType.ANY, None, PatternType.ANY)]
    return [(each.resource_type, each.name, each.pattern_type) for each in patterns]
