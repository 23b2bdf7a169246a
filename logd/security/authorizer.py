"""The authorizer: it decides by ACLs whether a principal may do something, as Kafka's StandardAuthorizer.

A super user may do everything. Else one matching ACL that denies is enough to refuse, and one that allows is
needed. Where no ACL is about a resource, `allows_without_acl` decides. This module does no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple

from kafka_client.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

CACHE_MAX: Final = 10_000
"""The most decisions that are remembered; after that many the cache is emptied."""
_IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        (Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)),
}
"""By operation, the operations whose permission includes it. A refusal includes no other operation."""
_UNLIKELY_NAME: Final = "hardcode"
"""The name that Kafka asks for when any name will do: only wildcards and super users match it."""


class Peer(NamedTuple):
    """Who sends a request: the principal, as Type:name, and the address."""

    principal: str
    host: str

    @classmethod
    def of(cls, principal: str, host: str) -> Peer:
        """Return the peer with its address in the form that addresses of ACLs are compared in."""
        return cls(principal, _canonical(host))


class Authorizer:
    """The decisions by the current ACLs; `super_users` are principals, as Type:name."""

    def __init__(
        self, *, super_users: Collection[str] = frozenset(), allows_without_acl: bool = False
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allows_without_acl = allows_without_acl
        self._literal: dict[ResourceType, dict[str, Collection[AclEntry]]] = {}
        self._prefixed: dict[ResourceType, dict[str, Collection[AclEntry]]] = {}
        self._cache: dict[tuple[Peer, Operation, ResourceType, str], bool] = {}

    # Changing

    def set_entries(self, pattern: ResourcePattern, entries: Collection[AclEntry]) -> None:
        """Replace the entries of a pattern. Without entries the pattern is forgotten."""
        self._cache.clear()
        tables = self._literal if pattern.pattern_type is PatternType.LITERAL else self._prefixed
        table = tables.setdefault(pattern.resource_type, {})
        if entries:
            table[pattern.name] = tuple(entries)
        else:
            table.pop(pattern.name, None)

    # Asking

    def allows(self, peer: Peer, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Return True if the peer may do this with the resource of that name."""
        key = peer, operation, resource_type, name
        allowed = self._cache.get(key)
        if allowed is None:
            if len(self._cache) >= CACHE_MAX:
                self._cache.clear()
            allowed = self._cache[key] = self._decide(peer, operation, resource_type, name)
        return allowed

    def allows_some(self, peer: Peer, operation: Operation, resource_type: ResourceType) -> bool:
        """Return True if there may be a resource of this type with which the peer may do this.

        As in Kafka, implied operations do not count here.
        """
        if self.allows(peer, operation, resource_type, _UNLIKELY_NAME):
            return True
        denied: set[tuple[PatternType, str]] = set()
        allowed: set[tuple[PatternType, str]] = set()
        for pattern, entry in self._of_type(resource_type):
            if entry.operation in (operation, Operation.ALL) and _is_about(entry, peer):
                side = denied if entry.permission is Permission.DENY else allowed
                side.add((pattern.pattern_type, pattern.name))
        wildcard = PatternType.LITERAL, WILDCARD
        if wildcard in denied:
            return False
        return wildcard in allowed or any(_survives(kind, name, denied) for kind, name in allowed)

    def bindings(self) -> Iterator[AclBinding]:
        """Yield all ACLs."""
        for resource_type in {**self._literal, **self._prefixed}:
            yield from self._of_type(resource_type)

    def _of_type(self, resource_type: ResourceType) -> Iterator[AclBinding]:
        for pattern_type, tables in (
            (PatternType.LITERAL, self._literal),
            (PatternType.PREFIXED, self._prefixed),
        ):
            for name, entries in tables.get(resource_type, {}).items():
                pattern = ResourcePattern(resource_type, pattern_type, name)
                for entry in entries:
                    yield AclBinding(pattern, entry)

    def _decide(self, peer: Peer, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        if peer.principal in self._super_users:
            return True
        has_acl = is_allowed = False
        for entry in self._applicable(resource_type, name):
            has_acl = True
            if not _is_about(entry, peer) or not _covers(entry, operation):
                continue
            if entry.permission is Permission.DENY:
                return False
            is_allowed = True
        return is_allowed or (self._allows_without_acl and not has_acl)

    def _applicable(self, resource_type: ResourceType, name: str) -> Iterator[AclEntry]:
        """Yield the entries of all patterns that include this resource."""
        literal = self._literal.get(resource_type, {})
        yield from literal.get(name, ())
        if name != WILDCARD:
            yield from literal.get(WILDCARD, ())
        prefixed = self._prefixed.get(resource_type)
        if prefixed:
            for end in range(len(name) + 1):
                yield from prefixed.get(name[:end], ())


def _is_about(entry: AclEntry, peer: Peer) -> bool:
    """Return True if the entry is about this peer."""
    if entry.principal not in (peer.principal, WILDCARD_PRINCIPAL):
        return False
    if entry.host in (WILDCARD, peer.host):
        return True
    return _canonical(entry.host) == peer.host or _is_in_network(peer.host, entry.host)


@lru_cache(maxsize=1024)
def _canonical(host: str) -> str:
    """Return the short form of an address; an IPv4 address that travels in an IPv6 one is the former.

    A listener for all addresses sees IPv4 clients so. An ACL that denies must not miss them.
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    return str(getattr(address, "ipv4_mapped", None) or address)


def _is_in_network(host: str, network: str) -> bool:
    if "/" not in network:
        return False
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


def _covers(entry: AclEntry, operation: Operation) -> bool:
    if entry.operation in (Operation.ALL, operation):
        return True
    implied_by: Iterable[Operation] = _IMPLIED_BY.get(operation, ())
    return entry.permission is Permission.ALLOW and entry.operation in implied_by


def _survives(pattern_type: PatternType, name: str, denied: Collection[tuple[PatternType, str]]) -> bool:
    """Return True if no refusal includes all that is allowed by this pattern."""
    if pattern_type is PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
        return False
    return not any((PatternType.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1))
