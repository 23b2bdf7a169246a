"""Assignment of partitions to a group's consumers: range, roundrobin, cooperative-sticky.

The assignors are pure functions of the members' subscriptions and the topics' partition counts. They sort
members and topics by name, so that every leader computes the same assignment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_client.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's topics, the partitions it owns, and the generation that assigned them (KIP-429, KIP-792)."""

    topics: Sequence[str]
    owned: Sequence[TopicPartition] = ()
    generation: int = -1


Members = Mapping[str, Subscription]
PartitionCounts = Mapping[str, int]
Assignment = dict[str, list[TopicPartition]]
Assignor = Callable[[Members, PartitionCounts], Assignment]


def assign_range(members: Members, counts: PartitionCounts) -> Assignment:
    """Assign each topic's partitions to its subscribers, in consecutive runs.

    Topics with the same partition count and the same subscribers are divided alike. Partition n of each goes
    to the same member, as joins of co-partitioned topics need.
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
    """Assign all partitions one by one in turn, skipping members that did not subscribe to the topic."""
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
    """Assign as evenly as possible with as few moves as possible, each over two rebalances (KIP-429).

    The first rebalance leaves a partition that moves out of every assignment: its owner revokes the partition
    and joins again. The second rebalance assigns the partition to the new owner.
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
"""The assignors whose members keep their partitions during a rebalance."""


def _subscribers(members: Members, counts: PartitionCounts) -> dict[str, list[str]]:
    """Return the subscribers of each topic that exists, sorted by topic and by member id."""
    subscribers: dict[str, list[str]] = defaultdict(list)
    for member in sorted(members):
        for topic in set(members[member].topics):
            subscribers[topic].append(member)
    return {topic: subscribers[topic] for topic in sorted(subscribers) if counts.get(topic)}


def _owners(members: Members, counts: PartitionCounts) -> dict[TopicPartition, str]:
    """Return the owner of each partition that members claim.

    The claim of the latest generation wins. A partition that two members claim in that generation has no
    owner.
    """
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
    """Return an even assignment that keeps partitions with their owners as far as possible.

    Members keep the partitions they own, and those with the fewest partitions get the rest. Then single
    partitions are moved until no move makes the assignment more even.
    """
    subscribers = _subscribers(members, counts)
    assignment: Assignment = {member: [] for member in sorted(members)}
    for tp, member in sorted(owners.items()):
        assignment[member].append(tp)
    # Partitions with few subscribers first, before those members are full of partitions of other topics.
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
    """Move one partition to a member that has at least two fewer; return False if no move is possible."""
    for giver in sorted(assignment, key=lambda member: len(assignment[member]), reverse=True):
        for tp in reversed(assignment[giver]):
            taker = _least(assignment, subscribers[tp.topic])
            if len(assignment[giver]) - len(taker) >= 2:
                assignment[giver].remove(tp)
                taker.append(tp)
                return True
    return False
