"""Access control lists (ACLs): who may do what with which resource, in Kafka's words and numbers."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

WILDCARD: Final = "*"
"""The literal name of all resources of a type, and the host of all hosts."""
WILDCARD_PRINCIPAL: Final = "User:*"
BROKER_PRINCIPAL: Final = "Broker:millstream"
"""The principal of the brokers' own requests. Logins only ever make principals of type User."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class ResourceType(IntEnum):
    """The types of resources."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of a pattern is read; MATCH and ANY are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """The operations on resources; a set of them travels as the sum of ``1 << operation``."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """The effects of an ACL on an operation; ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ResourcePattern(NamedTuple):
    """The resources that ACLs are about: one by its name, or all whose names begin with the pattern's."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str


class AclEntry(NamedTuple):
    """The permission or refusal of an operation. The host is an address, a network in CIDR form, or `*`."""

    principal: str
    host: str
    operation: Operation
    permission: Permission


class AclBinding(NamedTuple):
    """An ACL: an entry for a pattern of resources."""

    pattern: ResourcePattern
    entry: AclEntry
