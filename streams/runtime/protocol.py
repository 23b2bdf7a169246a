"""How an application's instances share out its tasks: the group protocol ``stream``.

Metadata and assignment travel as the consumer protocol's, so that group tools can read them; what is ours is
JSON in their user data. The leader counts partitions, makes the internal topics and assigns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from logd.client import Admin, Client
from logd.wire import decode_versioned, encode_versioned
from logd.wire.messages import consumer_protocol_assignment as message
from logd.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from logd.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from streams.errors import TopologyError
from streams.runtime.assignment import MemberState, assign_tasks
from streams.runtime.task import TaskId
from streams.runtime.topics import TopicNames, internal_topics
from streams.topology import Topology, partition_counts

PROTOCOL_NAME = "stream"
PROTOCOL_VERSION = 1
"""Of the consumer protocol's messages."""


class _Said(msgspec.Struct):
    running: list[str] = []
    stored: list[str] = []


class _Told(msgspec.Struct):
    tasks: list[str] = []


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
        state: Callable[[], MemberState],
    ) -> None:
        self._client = client
        self.topology = topology
        self._names = names
        self._replication_factor = replication_factor
        self._state = state
        self.counts: dict[str, int] = {}
        """Partitions of every source topic at this leader's last assignment."""

    def metadata(self) -> bytes:
        """This instance's tasks and stored state, and the topics it reads."""
        state = self._state()
        said = _Said([str(each) for each in state.running], [str(each) for each in state.stored])
        topics = [*self.topology.external_topics, *map(self._names.topic, self.topology.repartition_topics)]
        subscription = ConsumerProtocolSubscription(
            topics=sorted(topics), user_data=msgspec.json.encode(said)
        )
        return encode_versioned(subscription, PROTOCOL_VERSION)

    def assign(self, members: Mapping[str, bytes]) -> Awaitable[Mapping[str, bytes]]:
        """The leader's work."""
        return self._assign({member: _read_state(data) for member, data in members.items()})

    async def _assign(self, members: Mapping[str, MemberState]) -> Mapping[str, bytes]:
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
            for partition in range(max(counts[topic] for topic in subtopology.topics))
        ]
        assigned = assign_tasks(tasks, members)
        return {member: self._assignment(held, counts) for member, held in assigned.items()}

    def _assignment(self, tasks: list[TaskId], counts: Mapping[str, int]) -> bytes:
        partitions: dict[str, list[int]] = {}
        for task in tasks:
            for topic in self.topology.subtopologies[task.subtopology].topics:
                if task.partition < counts[topic]:
                    partitions.setdefault(self._names.topic(topic), []).append(task.partition)
        told = _Told([str(task) for task in tasks])
        assignment = ConsumerProtocolAssignment(
            assigned_partitions=[
                message.TopicPartition(topic=topic, partitions=sorted(numbers))
                for topic, numbers in sorted(partitions.items())
            ],
            user_data=msgspec.json.encode(told),
        )
        return encode_versioned(assignment, PROTOCOL_VERSION)

    def read_assignment(self, data: bytes) -> list[TaskId]:
        """The tasks this instance was given; TopologyError if the leader means others by these ids."""
        assignment = decode_versioned(ConsumerProtocolAssignment, data)
        told = msgspec.json.decode(assignment.user_data or b"{}", type=_Told)
        ids = [TaskId.parse(task) for task in told.tasks]
        mine = {
            (self._names.topic(topic), id.partition)
            for id in ids
            if id.subtopology < len(self.topology.subtopologies)
            for topic in self.topology.subtopologies[id.subtopology].topics
        }
        for each in assignment.assigned_partitions:
            for partition in each.partitions:
                if (each.topic, partition) not in mine:
                    raise TopologyError(
                        f"given {each.topic}-{partition}, which none of its tasks reads here: another "
                        f"instance of application {self._names.application_id!r} runs another topology"
                    )
        return ids


async def count_partitions(client: Client, topology: Topology, *, refresh: bool = False) -> dict[str, int]:
    """Partitions of every source topic, by the topology's names; TopologyError for those that do not fit."""
    metadata = await client.metadata(topology.external_topics, refresh=refresh, allow_missing=True)
    found = {name: topic.partition_count for name, topic in metadata.topics.items()}
    return partition_counts(topology, found)


def _read_state(data: bytes) -> MemberState:
    subscription = decode_versioned(ConsumerProtocolSubscription, data)
    said = msgspec.json.decode(subscription.user_data or b"{}", type=_Said)
    return MemberState(
        frozenset(TaskId.parse(each) for each in said.running),
        frozenset(TaskId.parse(each) for each in said.stored),
    )
