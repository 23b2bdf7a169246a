"""Sharing out partitions among a group's consumers: range, roundrobin, cooperative-sticky.

Pure functions from what members said and how many partitions topics have to who reads what. Members
and topics are taken in order of their names, so that every leader decides alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_client.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants and has: topics, the partitions it owns, and since which generation (KIP-429,
    KIP-792).
    """

    topics: Sequence[str]
    owned: Sequence[TopicPartition] = ()
    generation: int = -1


Members = Mapping[str, Subscription]
PartitionCounts = Mapping[str, int]
Assignment = dict[str, list[TopicPartition]]
Assignor = Callable[[Members, PartitionCounts], Assignment]


def assign_range(members: Members, counts: PartitionCounts) -> Assignment:
    """Each topic's partitions in consecutive runs over its members.

    Topics with the same partition count and members are cut alike: partition n of each goes to the same
    member, which is what joining co-partitioned topics needs.
    """
    assignment: Assignment = {member: [] for member in sorted(members)}
    for topic, subscribers in _subscribers(members, counts).items():
        each, extra = divmod(counts[topic], len(subscribers))
        start = 0
        for place, member in enumerate(subscribers):
            end = start + each + (place < extra)
            assignment[member] += [TopicPartition(topic, partition) for partition in range(start, end)]
            start = end
    return assignment


def assign_roundrobin(members: Members, counts: PartitionCounts) -> Assignment:
    """All partitions dealt out one by one, passing over members that did not subscribe to the topic."""
    assignment: Assignment = {member: [] for member in sorted(members)}
    row = list(assignment)
    place = 0
    for topic, subscribers in _subscribers(members, counts).items():
        willing = set(subscribers)
        for partition in range(counts[topic]):
            while row[place % len(row)] not in willing:
                place += 1
            assignment[row[place % len(row)]].append(TopicPartition(topic, partition))
            place += 1
    return assignment


def assign_cooperative_sticky(members: Members, counts: PartitionCounts) -> Assignment:
    """As even as can be with as few moves as can be; what moves is given up first, handed over next time.

    A partition that is to move is first in no member's assignment: its owner sees that it is gone, gives it
    up and joins again, and that rebalance assigns it (KIP-429).
    """
    owners = _owners(members, counts)
    assignment = _balance(members, counts, owners)
    for member, assigned in assignment.items():
        assigned[:] = sorted(tp for tp in assigned if owners.get(tp, member) == member)
    return assignment


ASSIGNORS: Mapping[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_roundrobin,
    "cooperative-sticky": assign_cooperative_sticky,
}

COOPERATIVE = frozenset({"cooperative-sticky"})
"""Members keep their partitions while a rebalance is on."""


def _subscribers(members: Members, counts: PartitionCounts) -> dict[str, list[str]]:
    """Each existing topic's members, both in order."""
    wanted: dict[str, list[str]] = defaultdict(list)
    for member in sorted(members):
        for topic in set(members[member].topics):
            wanted[topic].append(member)
    return {topic: wanted[topic] for topic in sorted(wanted) if counts.get(topic)}


def _owners(members: Members, counts: PartitionCounts) -> dict[TopicPartition, str]:
    """Who owns what by right: of several claims the one of the latest generation, of two equal ones none."""
    claims: dict[TopicPartition, list[tuple[int, str]]] = defaultdict(list)
    for member, subscription in members.items():
        for tp in subscription.owned:
            if tp.topic in subscription.topics and tp.partition < counts.get(tp.topic, 0):
                claims[tp].append((subscription.generation, member))
    owners = {}
    for tp, claimed in claims.items():
        latest = max(generation for generation, _ in claimed)
        newest = [member for generation, member in claimed if generation == latest]
        if len(newest) == 1:
            owners[tp] = newest[0]
    return owners


def _balance(
    members: Members, counts: PartitionCounts, owners: Mapping[TopicPartition, str]
) -> dict[str, list[TopicPartition]]:
    """Keep what is owned, hand out the rest to whoever has least, then even out by single moves."""
    subscribers = _subscribers(members, counts)
    assignment: Assignment = {member: [] for member in sorted(members)}
    for tp, member in sorted(owners.items()):
        assignment[member].append(tp)
    # Partitions with few subscribed members first, before those members are full of what all subscribe to.
    free = [
        TopicPartition(topic, partition)
        for topic in sorted(subscribers, key=lambda topic: len(subscribers[topic]))
        for partition in range(counts[topic])
        if TopicPartition(topic, partition) not in owners
    ]
    for tp in free:
        _least(assignment, subscribers[tp.topic]).append(tp)
    while _move_one(assignment, subscribers):
        pass
    return assignment


def _least(assignment: Assignment, members: Iterable[str]) -> list[TopicPartition]:
    return assignment[min(members, key=lambda member: len(assignment[member]))]


def _move_one(assignment: Assignment, subscribers: Mapping[str, Sequence[str]]) -> bool:
    """Move one partition from a member to another that has at least two fewer; False if there is none to
    move.
    """
    for giver in sorted(assignment, key=lambda member: len(assignment[member]), reverse=True):
        for tp in reversed(assignment[giver]):
            taker = _least(assignment, subscribers[tp.topic])
            if len(assignment[giver]) - len(taker) >= 2:
                assignment[giver].remove(tp)
                taker.append(tp)
                return True
    return False
