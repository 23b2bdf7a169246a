"""ACLs in the cluster's metadata: the change that sets the entries of a pattern.

    {"type": "acls", "resource_type": "TOPIC", "pattern_type": "LITERAL", "name": "t",
     "entries": [["User:alice", "*", "READ", "ALLOW"], ...]}

A change has all entries of its pattern, as one of Kafka's znodes has. Without entries the pattern is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kafka_client.acl import (
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)


def acls_change(pattern: ResourcePattern, entries: Iterable[AclEntry]) -> dict[str, Any]:
    """Return the change that sets the entries of a pattern."""
    return {
        "type": "acls",
        "resource_type": pattern.resource_type.name,
        "pattern_type": pattern.pattern_type.name,
        "name": pattern.name,
        "entries": [
            [entry.principal, entry.host, entry.operation.name, entry.permission.name]
            for entry in sorted(entries)
        ],
    }


def changed_acls(change: Mapping[str, Any]) -> tuple[ResourcePattern, tuple[AclEntry, ...]]:
    """Return the pattern and the entries of a change."""
    pattern = ResourcePattern(
        ResourceType[change["resource_type"]], PatternType[change["pattern_type"]], change["name"]
    )
    entries = tuple(
        AclEntry(principal, host, Operation[operation], Permission[permission])
        for principal, host, operation, permission in change["entries"]
    )
    return pattern, entries
