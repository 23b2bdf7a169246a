"""Kafka's StandardAuthorizer and ours decide the same: random ACLs, peers and filters."""

from __future__ import annotations

import random
from collections.abc import Iterator

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
from logd.security.authorizer import Authorizer, Peer
from tests.support import java

SEED = 32
ROUNDS = 300
NAMES = ("a", "ab", "abc", "b", "*")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:alice")
PEERS = ("User:alice", "User:bob", "User:root", "Group:alice")
HOSTS = (
    "*",
    "10.0.0.1",
    "10.0.0.0/24",
    "10.0.0.9/31",
    "10.1.0.0/16",
    "0.0.0.0/0",
    "::/0",
    "fd00::/8",
    "no/8",
)
ADDRESSES = ("10.0.0.1", "10.0.0.8", "10.1.255.255", "192.168.7.7", "10.0.0.0")
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
OPERATIONS = tuple(
    each for each in Operation if each not in (Operation.UNKNOWN, Operation.ANY, Operation.ALL)
)
PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)
PERMISSIONS = (Permission.ALLOW, Permission.ALLOW, Permission.DENY)


def random_binding(source: random.Random) -> AclBinding:
    return AclBinding(
        ResourcePattern(source.choice(TYPES), source.choice(PATTERNS), source.choice(NAMES)),
        AclEntry(
            source.choice(PRINCIPALS),
            source.choice(HOSTS) if source.random() < 0.5 else "*",
            source.choice((Operation.ALL, *OPERATIONS[:8])),
            source.choice(PERMISSIONS),
        ),
    )


def random_filter(source: random.Random) -> AclFilter:
    return AclFilter(
        source.choice((ResourceType.ANY, *TYPES)),
        source.choice((None, *NAMES)),
        source.choice((PatternType.ANY, PatternType.MATCH, *PATTERNS)),
        source.choice((None, *PRINCIPALS)),
        source.choice((None, None, "*", "10.0.0.1")),
        source.choice((Operation.ANY, Operation.ANY, Operation.ALL, Operation.READ)),
        source.choice((Permission.ANY, Permission.ALLOW, Permission.DENY)),
    )


def filter_line(selection: AclFilter) -> str:
    fields = (
        selection.resource_type.name,
        selection.pattern_type.name,
        selection.name or "-",
        selection.principal or "-",
        selection.host or "-",
        selection.operation.name,
        selection.permission.name,
    )
    return "\t".join(("filter", *fields))


def questions(source: random.Random) -> Iterator[tuple[str, str]]:
    """Yield lines for Java, each with our answer; empty for a line without an answer."""
    superuser, everyone = source.choice(("", "User:root;User:bob")), source.random() < 0.5
    authorizer = Authorizer(super_users=set(superuser.split(";")), allows_without_acl=everyone)
    yield f"new\t{superuser}\t{str(everyone).lower()}", ""
    entries: dict[ResourcePattern, set[AclEntry]] = {}
    for binding in {random_binding(source) for _ in range(source.randrange(7))}:
        (kind, pattern, name), entry = binding
        entries.setdefault(binding.pattern, set()).add(entry)
        words = (kind.name, pattern.name, name, *entry[:2], entry.operation.name, entry.permission.name)
        yield "\t".join(("add", *words)), ""
    for resource, of_resource in entries.items():
        authorizer.set_entries(resource, of_resource)
    for _ in range(30):
        peer = Peer(source.choice(PEERS), source.choice(ADDRESSES))
        operation, kind = source.choice(OPERATIONS[:9]), source.choice(TYPES)
        name = source.choice(("a", "ab", "abcd", "b", "c", "*"))
        allowed = authorizer.allows(peer, operation, kind, name)
        yield "\t".join(("ask", *peer, operation.name, kind.name, name)), str(allowed).lower()
        some = authorizer.allows_some(peer, operation, kind)
        yield "\t".join(("some", *peer, operation.name, kind.name)), str(some).lower()
        selection = random_filter(source)
        yield filter_line(selection), str(sum(map(selection.matches, authorizer.bindings())))


@java.needs_jar("kafka-metadata")
def test_the_same_decisions() -> None:
    source = random.Random(SEED)
    lines = [line for _ in range(ROUNDS) for line in questions(source)]
    expected = [(line, answer) for line, answer in lines if answer]
    answers = java.run_program("AclRules", stdin="\n".join(line for line, _ in lines)).splitlines()
    assert len(answers) == len(expected)
    assert [line for (line, ours), javas in zip(expected, answers, strict=True) if ours != javas] == []
    assert {"true", "false"} <= set(answers)
