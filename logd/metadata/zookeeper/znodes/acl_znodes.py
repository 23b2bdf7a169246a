"""The znodes of access control lists: all entries of a pattern of resources in one, as Kafka's AclAuthorizer.

/kafka-acl/TYPE/NAME                        entries for the resource of that name; * is any
/kafka-acl-extended/prefixed/TYPE/NAME      entries for the resources whose names begin so
/kafka-acl-changes/acl_changes_N            notifications about the first
/kafka-acl-extended-changes/acl_changes_N   notifications about the second
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, TypeVar

import msgspec

from kafka_client.acl import AclEntry, Operation, PatternType, Permission, ResourcePattern, ResourceType
from logd.metadata.zookeeper.errors import BadZnode
from logd.metadata.zookeeper.znodes.znodes import REWRITE, decoded

_E = TypeVar("_E", bound=IntEnum)
_LITERAL: Final = PatternType.LITERAL
ROOTS: Final = {_LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
CHANGES: Final = {_LITERAL: "/kafka-acl-changes", PatternType.PREFIXED: "/kafka-acl-extended-changes"}
_NO_NAME: Final = re.compile(r"\.{1,2}|.*[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff].*", re.DOTALL)
"""Names that ZooKeeper does not allow as a part of a path."""


def _camel(member: IntEnum) -> str:
    """Return Kafka's name of a member in a znode: `TransactionalId` of TRANSACTIONAL_ID."""
    return "".join(part.capitalize() for part in member.name.split("_"))


def _names(members: Iterable[_E]) -> Mapping[str, _E]:
    return {_camel(member): member for member in members if member.name not in ("UNKNOWN", "ANY")}


TYPES: Final = _names(ResourceType)
"""Resource types by their names in paths."""
_OPERATIONS: Final = _names(Operation)
_PERMISSIONS: Final = _names(Permission)
PERSISTENT: Final = (
    *(f"{root}/{name}" for root in ROOTS.values() for name in TYPES),
    *CHANGES.values(),
)
"""Paths that each of Kafka's brokers with an authorizer creates at its start if they are missing."""


def is_name(name: str) -> bool:
    """Return True if a znode may have this name."""
    return _NO_NAME.fullmatch(name) is None


def path_of(pattern: ResourcePattern) -> str:
    """Return the path of a pattern's entries."""
    return f"{ROOTS[pattern.pattern_type]}/{_camel(pattern.resource_type)}/{pattern.name}"


def change_path_of(pattern: ResourcePattern) -> str:
    """Return the path of notifications about a pattern, to which ZooKeeper appends a number."""
    return f"{CHANGES[pattern.pattern_type]}/acl_changes_"


def encode_entries(entries: Iterable[AclEntry]) -> bytes:
    """Encode the entries of a pattern."""
    acls = [
        {
            "principal": entry.principal,
            "permissionType": _camel(entry.permission),
            "operation": _camel(entry.operation),
            "host": entry.host,
        }
        for entry in sorted(entries)
    ]
    return msgspec.json.encode({"version": 1, "acls": acls})


def decode_entries(path: str, data: bytes) -> tuple[AclEntry, ...]:
    """Decode the entries of a pattern, sorted. Raises BadZnode."""
    document = decoded(path, data, _Entries, REWRITE)
    try:
        return tuple(
            sorted(
                AclEntry(
                    each.principal,
                    each.host,
                    _OPERATIONS[each.operation],
                    _PERMISSIONS[each.permission],
                )
                for each in document.acls
            )
        )
    except KeyError as error:
        raise BadZnode(path, data, f"{error} is no operation or permission", REWRITE) from None


def encode_change(pattern: ResourcePattern) -> bytes:
    """Encode the sequential znode that makes Kafka's brokers read a pattern's entries again."""
    if pattern.pattern_type is _LITERAL:
        return f"{pattern.resource_type.name}:{pattern.name}".encode()
    document = {
        "version": 1,
        "resourceType": pattern.resource_type.name,
        "name": pattern.name,
        "patternType": pattern.pattern_type.name,
    }
    return msgspec.json.encode(document)


def decode_change(path: str, data: bytes) -> ResourcePattern:
    """Return the pattern that a notification names. Raises BadZnode."""
    try:
        if path.startswith(CHANGES[_LITERAL] + "/"):
            kind, _, name = data.decode().partition(":")
            return ResourcePattern(ResourceType[kind.upper()], _LITERAL, name)
        document = msgspec.json.decode(data, type=_Change)
        pattern_type = PatternType[document.pattern_type.upper()]
        if pattern_type in ROOTS:
            return ResourcePattern(ResourceType[document.resource_type.upper()], pattern_type, document.name)
    except (KeyError, UnicodeDecodeError, msgspec.DecodeError):
        pass
    raise BadZnode(path, data, "it names no pattern of resources", "delete it")


class _Change(msgspec.Struct, rename="camel"):
    resource_type: str
    name: str
    pattern_type: str


class _Entry(msgspec.Struct, rename={"permission": "permissionType"}):
    principal: str
    permission: str
    operation: str
    host: str


class _Entries(msgspec.Struct):
    acls: list[_Entry]
