"""Decisions about ACLs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from kafka_client.acl import AclBinding, AclEntry, ResourcePattern
from kafka_client.acl_filter import AclFilter
from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.acls import acls_change
from logd.metadata.controller.decision import Decision
from logd.metadata.image import Change

ENTRIES_BYTES_MAX = 900_000
"""The most bytes of a pattern's ACLs: they are one znode, and ZooKeeper takes 1 MB."""
_ENTRY_BYTES = 100
"""Bytes of an entry besides principal and host, at most."""
Acls: TypeAlias = Mapping[ResourcePattern, tuple[AclEntry, ...]]
"""All ACLs, by pattern."""


def bindings_of(acls: Acls) -> Iterable[AclBinding]:
    """Yield every ACL."""
    for pattern, entries in acls.items():
        for entry in entries:
            yield AclBinding(pattern, entry)


def create_acls(acls: Acls, bindings: Iterable[AclBinding]) -> Decision[None]:
    """Decide to add ACLs. ACLs that exist already change nothing.

    Raises KafkaError(INVALID_REQUEST) if a pattern would have more entries than a znode can have.
    """
    changed: dict[ResourcePattern, set[AclEntry]] = {}
    for pattern, entry in bindings:
        changed.setdefault(pattern, set(acls.get(pattern, ()))).add(entry)
    for pattern, entries in changed.items():
        size = sum(len(each.principal.encode()) + len(each.host) + _ENTRY_BYTES for each in entries)
        if size > ENTRIES_BYTES_MAX:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{pattern.resource_type.name} {pattern.name} would have {len(entries)} ACLs, of more than "
                f"{ENTRIES_BYTES_MAX} bytes: use a principal or a pattern that is about more",
            )
    return Decision(_changes(acls, changed), None)


def delete_acls(acls: Acls, filters: Sequence[AclFilter]) -> Decision[list[list[AclBinding]]]:
    """Decide to delete the ACLs that the filters select. The answer has them filter by filter."""
    selected = [[each for each in bindings_of(acls) if selection.matches(each)] for selection in filters]
    changed: dict[ResourcePattern, set[AclEntry]] = {}
    for matching in selected:
        for pattern, entry in matching:
            changed.setdefault(pattern, set(acls[pattern])).discard(entry)
    return Decision(_changes(acls, changed), selected)


def _changes(acls: Acls, changed: Mapping[ResourcePattern, set[AclEntry]]) -> list[Change]:
    return [
        acls_change(pattern, entries)
        for pattern, entries in changed.items()
        if entries != set(acls.get(pattern, ()))
    ]
