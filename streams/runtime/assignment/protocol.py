"""How an application's instances share out its tasks: the group protocol ``stream``.

Metadata and assignment travel as the consumer protocol's, so that group tools can read them; what is ours is
JSON in their user data. The leader counts partitions, makes the internal topics and assigns.
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
"""Of the consumer protocol's messages."""


T = TypeVar("T", "_Said", "_Told")

METADATA_VERSION = 2
"""Of our user data. 1 had no standbys and gave all tasks up at each rebalance: the two do not mix."""

RUNS_HERE = -1
"""Told in place of offsets of a task that runs: its state is not behind."""


class _Said(msgspec.Struct):
    """A member's side. `offsets`: by task, how far its state is, all changelogs' offsets added up. `joins`
    differs each time, or the coordinator would see no reason for a rebalance (KIP-441).
    """

    v: int = 1
    joins: int = 0
    active: list[str] = []
    standby: list[str] = []
    offsets: dict[str, int] = {}
    host: str = ""
    """Its `application.server`. Older instances of this version leave it out, and read past it."""


class _Told(msgspec.Struct):
    """The leader's. As `Share`; `probe_ms`: on the leader, how long to wait before it assigns anew."""

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
    """Of sources that read by a pattern, by their names, the topics that match."""


@dataclass(frozen=True, slots=True)
class MemberState:
    """What a member says of itself: the tasks it runs or opens, its standby tasks, and of every task whose
    state it has how far that is (`RUNS_HERE`, or its changelogs' offsets added up).
    """

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    offsets: Mapping[TaskId, int] = field(default_factory=dict)
    host: HostInfo | None = None


@dataclass(frozen=True, slots=True)
class HostTasks:
    """What an instance has: the tasks that run there, and those whose state it keeps a copy of."""

    active: frozenset[TaskId]
    standby: frozenset[TaskId] = frozenset()


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member was given; see `Share`. `probe_ms`: join again after so long (None: no need).

    `hosts`: what all members have that tell where they answer queries; `partitions`: by sub-topology. Both
    are empty where the leader is of a release that does not tell.
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
    """One instance's side of it; the leader's too."""

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
        """Partitions of every source topic at this leader's last assignment."""
        self.matched: Matched = {}
        """What the patterns matched then."""

    def metadata(self) -> bytes:
        """This instance's tasks and state, and the topics it reads."""
        state = self._state()
        self._joins += 1
        said = _Said(
            METADATA_VERSION,
            self._joins,
            _texts(state.active),
            _texts(state.standby),
            {str(task): offset for task, offset in state.offsets.items()},
            str(self._host() or ""),
        )
        topics = [*self.topology.external_topics, *map(self._names.topic, self.topology.repartition_topics)]
        subscription = ConsumerProtocolSubscription(
            topics=sorted(topics), user_data=msgspec.json.encode(said)
        )
        return encode_versioned(subscription, PROTOCOL_VERSION)

    def assign(self, members: Mapping[str, bytes]) -> Awaitable[Mapping[str, bytes]]:
        """The leader's work; StreamsError for a member of another version."""
        return self._assign({member: self._read_state(member, data) for member, data in members.items()})

    async def _assign(self, members: Mapping[str, MemberState]) -> Mapping[str, bytes]:
        matched = self.matched = await self.match()
        read_topics(self.topology, matched)
        counts = self.counts = await count_partitions(self._client, self.topology, refresh=True)
        wanted = internal_topics(self.topology, self._names, counts, self._replication_factor)
        admin = Admin(self._client)
        await admin.create_topics(wanted, exist_ok=True)
        metadata = await self._client.metadata([topic.name for topic in wanted])
        for topic in wanted:
            found = metadata.topics[topic.name].partition_count
            if found != topic.num_partitions:
                raise TopologyError(
                    f"internal topic {topic.name!r} has {found} partitions, the inputs need "
                    f"{topic.num_partitions}; reset the application after a change of partitions"
                )
        tasks = [
            TaskId(subtopology.id, partition)
            for subtopology in self.topology.with_tasks
            for partition in range(count_tasks(subtopology, counts))
        ]
        sizes = await self._sizes(admin, tasks, counts)
        known = {
            name: Member(each.active, each.standby, _lags(each, sizes)) for name, each in members.items()
        }
        plan = assign_tasks(tasks, sizes, known, self._rules)
        probe_ms = self._probing_interval_ms if plan.probing else None
        hosts = hosts_of(members, plan.shares)
        return {name: self._assignment(each, counts, probe_ms, hosts) for name, each in plan.shares.items()}

    async def match(self) -> Matched:
        """Ask which topics the patterns match; TopologyError for one that two match."""
        if not pattern_sources(self.topology):
            return {}
        topics = (await self._client.metadata(refresh=True)).topics.values()
        names = (each.name for each in topics if not each.is_internal)
        return match_topics(self.topology, (each for each in names if not self._names.is_internal(each)))

    async def _sizes(
        self, admin: Admin, tasks: Iterable[TaskId], counts: Mapping[str, int]
    ) -> dict[TaskId, int]:
        """Of tasks with state: the ends of changelogs, or what is committed of tables, added up."""
        changelogs = {
            task: found
            for task in tasks
            if (found := changelogs_of(task, self.topology, self._names, counts))
        }
        listed = await admin.list_offsets(
            {tp: "latest" for found in changelogs.values() for tp in found.values()}
        )
        ends = {tp: each.offset for tp, each in listed.items()}
        if topics := {spec.source_topic for spec in self.topology.stores.values()} - {None}:
            committed = await admin.list_group_offsets(self._names.application_id)
            for tp in ends:
                if tp.topic in topics:
                    ends[tp] = committed[tp].offset if tp in committed else 0
        return {task: sum(ends[tp] for tp in found.values()) for task, found in changelogs.items()}

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
        told = _Told(
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
            user_data=msgspec.json.encode(told),
        )
        return encode_versioned(assignment, PROTOCOL_VERSION)

    def read_assignment(self, data: bytes) -> Assignment:
        """What this instance was given; TopologyError if the leader means other tasks by these ids,
        StreamsError if it is of another version.
        """
        assignment = decode_versioned(ConsumerProtocolAssignment, data)
        told = self._read(assignment.user_data, _Told, "the group's leader")
        active = _parse_all(told.active)
        read_topics(self.topology, told.matched)
        return Assignment(
            active,
            _parse_all(told.standby),
            _parse_all(told.warmup),
            _parse_all(told.revoked),
            told.pending,
            told.probe_ms,
            {
                HostInfo.parse(host): HostTasks(_parse_all(active), _parse_all(standby))
                for host, (active, standby) in told.hosts.items()
            },
            {int(subtopology): count for subtopology, count in told.partitions.items()},
            self._inputs(active, assignment),
        )

    def _inputs(
        self, active: Iterable[TaskId], assignment: ConsumerProtocolAssignment
    ) -> dict[TaskId, frozenset[TopicPartition]]:
        """What each task reads; TopologyError for a partition that none of them reads here."""
        given = {
            TopicPartition(each.topic, partition)
            for each in assignment.assigned_partitions
            for partition in each.partitions
        }
        inputs = {
            id: frozenset(
                tp
                for topic in self.topology.subtopologies[id.subtopology].topics
                if (tp := TopicPartition(self._names.topic(topic), id.partition)) in given
            )
            for id in active
            if id.subtopology < len(self.topology.subtopologies)
        }
        for tp in sorted(given.difference(*inputs.values())):
            raise TopologyError(
                f"given {tp}, which none of its tasks reads here: another instance of application "
                f"{self._names.application_id!r} runs another topology"
            )
        return inputs

    def _read_state(self, member: str, data: bytes) -> MemberState:
        subscription = decode_versioned(ConsumerProtocolSubscription, data)
        said = self._read(subscription.user_data, _Said, f"member {member}")
        offsets = {TaskId.parse(task): offset for task, offset in said.offsets.items()}
        return MemberState(_parse_all(said.active), _parse_all(said.standby), offsets, _host_of(said.host))

    def _read(self, data: bytes | None, type: type[T], who: str) -> T:
        application = f"application {self._names.application_id!r}"
        try:
            found = msgspec.json.decode(data or b"{}", type=type)
        except msgspec.DecodeError as error:
            raise StreamsError(
                f"{who} of {application} is no instance of Millstream ({error}): "
                "give this application an id of its own"
            ) from error
        if found.v != METADATA_VERSION:
            raise StreamsError(
                f"{who} of {application} shares tasks out by version {found.v} of the protocol, this one by "
                f"version {METADATA_VERSION}: stop all instances of the other release of Millstream first"
            )
        return found


def changelogs_of(
    task: TaskId, topology: Topology, names: TopicNames, counts: Mapping[str, int]
) -> dict[str, TopicPartition]:
    """The partition that each store of a task is restored from, by store: of its changelog or its table.

    ``counts``: of the source topics; a table's topic may have fewer partitions than there are tasks.
    """
    stores = (topology.stores[name] for name in topology.subtopologies[task.subtopology].stores)
    return {
        spec.name: TopicPartition(names.changelog(spec), task.partition)
        for spec in stores
        if spec.logged or (spec.source_topic is not None and task.partition < counts[spec.source_topic])
    }


def _lags(state: MemberState, sizes: Mapping[TaskId, int]) -> dict[TaskId, int]:
    """How many offsets the state is behind, by task."""
    return {
        task: 0 if offset == RUNS_HERE else max(sizes[task] - offset, 0)
        for task, offset in state.offsets.items()
        if task in sizes
    }


def hosts_of(members: Mapping[str, MemberState], shares: Mapping[str, Share]) -> dict[str, list[list[str]]]:
    """By host, the tasks it is given to run, and those it keeps copies of."""
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
    """Partitions of every source topic, by the topology's names; TopologyError for those that do not fit."""
    metadata = await client.metadata(topology.external_topics, refresh=refresh, allow_missing=True)
    found = {name: topic.partition_count for name, topic in metadata.topics.items()}
    return partition_counts(topology, found)
