"""How an application's instances share out its tasks: the group protocol ``stream``.

Metadata and assignment travel as the consumer protocol's, so that group tools can read them; the fields of
Millstream are JSON in their user data. The leader counts partitions, creates the internal topics and assigns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from kafka_client import Admin, Client, TopicPartition
from kafka_client.wire import decode_versioned, encode_versioned
from kafka_client.wire.messages import consumer_protocol_assignment as message
from kafka_client.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_client.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from streams.errors import StreamsError, TopologyError
from streams.queries.hosts import HostInfo
from streams.runtime.assignment.assignment import Member, Rules, Share, assign_tasks
from streams.runtime.task_id import TaskId
from streams.runtime.topics import TopicNames, count_tasks, internal_topics
from streams.topology import (
    Matched,
    Topology,
    match_topics,
    partition_counts,
    pattern_sources,
    read_topics,
)

PROTOCOL_NAME = "stream"
PROTOCOL_VERSION = 1
"""The version of the consumer protocol's messages."""


T = TypeVar("T", "_SubscriptionData", "_AssignmentData")

METADATA_VERSION = 2
"""The version of Millstream's user data. Version 1 had no standbys and revoked all tasks at each rebalance:
the two do not mix.
"""

RUNS_HERE = -1
"""Reported instead of the offsets of a task that runs: its state has no lag."""


class _SubscriptionData(msgspec.Struct):
    """The user data of a subscription.

    `offsets` has the sum of each task's changelog offsets. `joins` differs each time; else the coordinator
    would see no reason for a rebalance (KIP-441).
    """

    v: int = 1
    joins: int = 0
    active: list[str] = []
    standby: list[str] = []
    offsets: dict[str, int] = {}
    host: str = ""
    """The member's `application.server`. Older instances of this version neither send nor read it."""


class _AssignmentData(msgspec.Struct):
    """The user data of an assignment; see `Share`. `probe_ms`: when the leader is to assign again."""

    v: int = 1
    active: list[str] = []
    standby: list[str] = []
    warmup: list[str] = []
    revoked: list[str] = []
    pending: bool = False
    probe_ms: int | None = None
    hosts: dict[str, list[list[str]]] = {}
    partitions: dict[str, int] = {}
    matched: dict[str, Sequence[str]] = {}
    """The topics that match the patterns of sources, by the names of the sources."""


@dataclass(frozen=True, slots=True)
class MemberState:
    """A member's report: the tasks that it runs or opens, its standby tasks, and the state that it has.

    `offsets` has `RUNS_HERE`, or the sum of the changelog offsets, for each task whose state the member has.
    """

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    offsets: Mapping[TaskId, int] = field(default_factory=dict)
    host: HostInfo | None = None


@dataclass(frozen=True, slots=True)
class HostTasks:
    """The tasks of one instance: those that run there, and those of whose state it has a copy."""

    active: frozenset[TaskId]
    standby: frozenset[TaskId] = frozenset()


@dataclass(frozen=True, slots=True)
class Assignment:
    """The assignment of a member; see `Share`.

    `probe_ms`: join again after so long (None: no need). `hosts`: the tasks of all members that answer
    queries; `partitions`: the numbers of partitions, by sub-topology. Both are empty if the leader runs a
    release that does not send them.
    """

    active: frozenset[TaskId]
    standby: frozenset[TaskId] = frozenset()
    warmup: frozenset[TaskId] = frozenset()
    revoked: frozenset[TaskId] = frozenset()
    pending: bool = False
    probe_ms: int | None = None
    hosts: Mapping[HostInfo, HostTasks] = field(default_factory=dict)
    partitions: Mapping[int, int] = field(default_factory=dict)
    inputs: Mapping[TaskId, frozenset[TopicPartition]] = field(default_factory=dict)
    """The inputs of each active task."""


class StreamsProtocol:
    """The group protocol of one instance, which may be the leader."""

    name = PROTOCOL_NAME

    def __init__(
        self,
        client: Client,
        topology: Topology,
        names: TopicNames,
        *,
        replication_factor: int,
        rules: Rules,
        probing_interval_ms: int,
        state: Callable[[], MemberState],
        host: Callable[[], HostInfo | None] = lambda: None,
    ) -> None:
        self._client = client
        self.topology = topology
        self._names = names
        self._replication_factor = replication_factor
        self._rules = rules
        self._probing_interval_ms = probing_interval_ms
        self._state = state
        self._host = host
        self._joins = 0
        self.counts: dict[str, int] = {}
        """The number of partitions of every source topic at this leader's last assignment."""
        self.matched: Matched = {}
        """The topics that matched the patterns at this leader's last assignment."""

    def metadata(self) -> bytes:
        """Return the subscription: this instance's tasks and state, and the topics it reads."""
        state = self._state()
        self._joins += 1
        user_data = _SubscriptionData(
            METADATA_VERSION,
            self._joins,
            _texts(state.active),
            _texts(state.standby),
            {str(task): offset for task, offset in state.offsets.items()},
            str(self._host() or ""),
        )
        topics = [*self.topology.external_topics, *map(self._names.topic, self.topology.repartition_topics)]
        subscription = ConsumerProtocolSubscription(
            topics=sorted(topics), user_data=msgspec.json.encode(user_data)
        )
        return encode_versioned(subscription, PROTOCOL_VERSION)

    def assign(self, members: Mapping[str, bytes]) -> Awaitable[Mapping[str, bytes]]:
        """Assign all tasks to the members, as the leader.

        Raises StreamsError for a member of another version; TopologyError if partitions do not fit.
        """
        return self._assign({member: self._read_state(member, data) for member, data in members.items()})

    async def _assign(self, members: Mapping[str, MemberState]) -> Mapping[str, bytes]:
        matched = self.matched = await self.match()
        read_topics(self.topology, matched)
        counts = self.counts = await count_partitions(self._client, self.topology, refresh=True)
        internal = internal_topics(self.topology, self._names, counts, self._replication_factor)
        admin = Admin(self._client)
        await admin.create_topics(internal, exist_ok=True)
        metadata = await self._client.metadata([topic.name for topic in internal])
        for topic in internal:
            count = metadata.topics[topic.name].partition_count
            if count != topic.num_partitions:
                raise TopologyError(
                    f"internal topic {topic.name!r} has {count} partitions, the inputs need "
                    f"{topic.num_partitions}; reset the application after a change of partitions"
                )
        tasks = [
            TaskId(subtopology.id, partition)
            for subtopology in self.topology.with_tasks
            for partition in range(count_tasks(subtopology, counts))
        ]
        sizes = await self._sizes(admin, tasks, counts)
        reported = {
            name: Member(each.active, each.standby, _lags(each, sizes)) for name, each in members.items()
        }
        plan = assign_tasks(tasks, sizes, reported, self._rules)
        probe_ms = self._probing_interval_ms if plan.probing else None
        hosts = hosts_of(members, plan.shares)
        return {name: self._assignment(each, counts, probe_ms, hosts) for name, each in plan.shares.items()}

    async def match(self) -> Matched:
        """Return the topics of the cluster that the patterns match.

        Raises TopologyError for a topic that two patterns match.
        """
        if not pattern_sources(self.topology):
            return {}
        topics = (await self._client.metadata(refresh=True)).topics.values()
        names = (each.name for each in topics if not each.is_internal)
        return match_topics(self.topology, (each for each in names if not self._names.is_internal(each)))

    async def _sizes(
        self, admin: Admin, tasks: Iterable[TaskId], counts: Mapping[str, int]
    ) -> dict[TaskId, int]:
        """Return the size of each task with state: the sum of the ends of its changelogs.

        For a table that is restored from its topic, the committed offset counts instead of the end.
        """
        changelogs = {
            task: partitions
            for task in tasks
            if (partitions := changelogs_of(task, self.topology, self._names, counts))
        }
        listed = await admin.list_offsets(
            {tp: "latest" for partitions in changelogs.values() for tp in partitions.values()}
        )
        ends = {tp: each.offset for tp, each in listed.items()}
        if topics := {spec.source_topic for spec in self.topology.stores.values()} - {None}:
            committed = await admin.list_group_offsets(self._names.application_id)
            for tp in ends:
                if tp.topic in topics:
                    ends[tp] = committed[tp].offset if tp in committed else 0
        return {task: sum(ends[tp] for tp in partitions.values()) for task, partitions in changelogs.items()}

    def _assignment(
        self,
        share: Share,
        counts: Mapping[str, int],
        probe_ms: int | None,
        hosts: dict[str, list[list[str]]],
    ) -> bytes:
        partitions: dict[str, list[int]] = {}
        for task in share.active:
            for topic in self.topology.subtopologies[task.subtopology].topics:
                if task.partition < counts[topic]:
                    partitions.setdefault(self._names.topic(topic), []).append(task.partition)
        user_data = _AssignmentData(
            METADATA_VERSION,
            _texts(share.active),
            _texts(share.standby),
            _texts(share.warmup),
            _texts(share.revoked),
            share.pending,
            probe_ms,
            hosts,
            {str(each.id): count_tasks(each, counts) for each in self.topology.with_tasks} if hosts else {},
            dict(self.matched),
        )
        assignment = ConsumerProtocolAssignment(
            assigned_partitions=[
                message.TopicPartition(topic=topic, partitions=sorted(numbers))
                for topic, numbers in sorted(partitions.items())
            ],
            user_data=msgspec.json.encode(user_data),
        )
        return encode_versioned(assignment, PROTOCOL_VERSION)

    def read_assignment(self, data: bytes) -> Assignment:
        """Decode this instance's assignment.

        Raises TopologyError if the leader runs another topology, StreamsError if the leader's protocol has
        another version.
        """
        assignment = decode_versioned(ConsumerProtocolAssignment, data)
        decoded = self._read(assignment.user_data, _AssignmentData, "the group's leader")
        active = _parse_all(decoded.active)
        read_topics(self.topology, decoded.matched)
        return Assignment(
            active,
            _parse_all(decoded.standby),
            _parse_all(decoded.warmup),
            _parse_all(decoded.revoked),
            decoded.pending,
            decoded.probe_ms,
            {
                HostInfo.parse(host): HostTasks(_parse_all(active), _parse_all(standby))
                for host, (active, standby) in decoded.hosts.items()
            },
            {int(subtopology): count for subtopology, count in decoded.partitions.items()},
            self._inputs(active, assignment),
        )

    def _inputs(
        self, active: Iterable[TaskId], assignment: ConsumerProtocolAssignment
    ) -> dict[TaskId, frozenset[TopicPartition]]:
        """Return the partitions that each task reads.

        Raises TopologyError for an assigned partition that none of the tasks reads.
        """
        assigned = {
            TopicPartition(each.topic, partition)
            for each in assignment.assigned_partitions
            for partition in each.partitions
        }
        inputs = {
            id: frozenset(
                tp
                for topic in self.topology.subtopologies[id.subtopology].topics
                if (tp := TopicPartition(self._names.topic(topic), id.partition)) in assigned
            )
            for id in active
            if id.subtopology < len(self.topology.subtopologies)
        }
        for tp in sorted(assigned.difference(*inputs.values())):
            raise TopologyError(
                f"given {tp}, which none of its tasks reads here: another instance of application "
                f"{self._names.application_id!r} runs another topology"
            )
        return inputs

    def _read_state(self, member: str, data: bytes) -> MemberState:
        subscription = decode_versioned(ConsumerProtocolSubscription, data)
        decoded = self._read(subscription.user_data, _SubscriptionData, f"member {member}")
        offsets = {TaskId.parse(task): offset for task, offset in decoded.offsets.items()}
        return MemberState(
            _parse_all(decoded.active), _parse_all(decoded.standby), offsets, _host_of(decoded.host)
        )

    def _read(self, data: bytes | None, type: type[T], who: str) -> T:
        application = f"application {self._names.application_id!r}"
        try:
            decoded = msgspec.json.decode(data or b"{}", type=type)
        except msgspec.DecodeError as error:
            raise StreamsError(
                f"{who} of {application} is no instance of Millstream ({error}): "
                "give this application an id of its own"
            ) from error
        if decoded.v != METADATA_VERSION:
            raise StreamsError(
                f"{who} of {application} shares tasks out by version {decoded.v} of the protocol, this one "
                f"by version {METADATA_VERSION}: stop all instances of the other release of Millstream first"
            )
        return decoded


def changelogs_of(
    task: TaskId, topology: Topology, names: TopicNames, counts: Mapping[str, int]
) -> dict[str, TopicPartition]:
    """Return the partition from which each store is restored: of its changelog or its table's topic.

    ``counts`` has the partitions of the source topics: a table's topic may have fewer than there are tasks.
    """
    stores = (topology.stores[name] for name in topology.subtopologies[task.subtopology].stores)
    return {
        spec.name: TopicPartition(names.changelog(spec), task.partition)
        for spec in stores
        if spec.logged or (spec.source_topic is not None and task.partition < counts[spec.source_topic])
    }


def _lags(state: MemberState, sizes: Mapping[TaskId, int]) -> dict[TaskId, int]:
    """Return the lag of a member's state, by task, in changelog offsets."""
    return {
        task: 0 if offset == RUNS_HERE else max(sizes[task] - offset, 0)
        for task, offset in state.offsets.items()
        if task in sizes
    }


def hosts_of(members: Mapping[str, MemberState], shares: Mapping[str, Share]) -> dict[str, list[list[str]]]:
    """Return the tasks that each host runs, and those of whose state it has copies."""
    hosts: dict[str, list[list[str]]] = {}
    for name, share in shares.items():
        if (host := members[name].host) is not None:
            active, standby = hosts.setdefault(str(host), [[], []])
            active += _texts(share.active)
            standby += _texts(share.standby)
    return hosts


def _host_of(text: str) -> HostInfo | None:
    try:
        return HostInfo.parse(text)
    except ValueError:
        return None


def _texts(tasks: Iterable[TaskId]) -> list[str]:
    return [str(task) for task in sorted(tasks)]


def _parse_all(tasks: Iterable[str]) -> frozenset[TaskId]:
    return frozenset(map(TaskId.parse, tasks))


async def count_partitions(client: Client, topology: Topology, *, refresh: bool = False) -> dict[str, int]:
    """Return the number of partitions of every source topic, by the topology's names.

    Raises TopologyError if the numbers do not fit the topology.
    """
    metadata = await client.metadata(topology.external_topics, refresh=refresh, allow_missing=True)
    counts = {name: topic.partition_count for name, topic in metadata.topics.items()}
    return partition_counts(topology, counts)
