"""The hosts of the application's state according to the last assignment, for queries across instances.

During a rebalance other instances may be a generation ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from kafka_client import TopicPartition, partition_for_key
from streams.errors import InvalidStateStore, UnknownStateStore
from streams.queries.hosts import HostInfo, KeyQueryMetadata, StreamsMetadata
from streams.runtime.assignment.protocol import HostTasks
from streams.runtime.task_id import TaskId
from streams.runtime.topics import TopicNames
from streams.topology import Topology

Partitioner: TypeAlias = Callable[[Any, int], int]
"""Returns the partition for a key and a number of partitions."""


class Hosts:
    """The hosts of all tasks. ``own``: this instance's ``application.server``, or None."""

    def __init__(self, topology: Topology, names: TopicNames, application_server: str) -> None:
        self.own = HostInfo.parse(application_server) if application_server else None
        self._topology = topology
        self._names = names
        self._hosts: Mapping[HostInfo, HostTasks] = {}
        self._partitions: Mapping[int, int] = {}

    def assign(self, hosts: Mapping[HostInfo, HostTasks], partitions: Mapping[int, int]) -> None:
        """Replace the hosts by those of a new assignment."""
        self._hosts, self._partitions = hosts, partitions

    def assign_own(self) -> None:
        """Make this instance the only host, of global tables alone: it is in no group."""
        self._hosts = {} if self.own is None else {self.own: HostTasks(frozenset())}

    def all(self) -> list[StreamsMetadata]:
        """Return the tasks and stores of each instance with an ``application.server``."""
        return [self._metadata(host, tasks) for host, tasks in sorted(self._hosts.items())]

    def of_store(self, name: str) -> list[StreamsMetadata]:
        """Return the instances with a part of the store. Every instance has all of a global table."""
        self._check(name)
        if name in self._topology.global_stores:
            return self.all()
        return [
            each
            for each in self.all()
            if name in each.state_store_names or name in each.standby_state_store_names
        ]

    def of_key(self, store: str, key: Any, partitioner: Partitioner | None = None) -> KeyQueryMetadata:
        """Return the host of a key of the store; for a global table, this instance."""
        self._check(store)
        if store in self._topology.global_stores:
            return KeyQueryMetadata(partition=0, active_host=self.own)
        partition = self._partition(store, key, partitioner)
        task = TaskId(self._subtopology(store), partition)
        return KeyQueryMetadata(
            partition=partition,
            active_host=next((host for host, has in sorted(self._hosts.items()) if task in has.active), None),
            standby_hosts=tuple(host for host, has in sorted(self._hosts.items()) if task in has.standby),
        )

    def partitions_of(self, store: str) -> int:
        """Return the store's number of partitions. Raises InvalidStateStore before the first assignment."""
        self._check(store)
        if store in self._topology.global_stores:
            return 1
        count = self._partitions.get(self._subtopology(store), 0)
        if not count:
            raise InvalidStateStore(
                f"it is not known yet where store {store} is: ask again after the first assignment; "
                "application.server has to be set, and the group's leader of a release that passes it on"
            )
        return count

    def of_partition(self, store: str, partition: int) -> KeyQueryMetadata:
        """Return the host of one partition of a store."""
        return self.of_key(store, None, lambda key, count: partition)

    def _partition(self, store: str, key: Any, partitioner: Partitioner | None) -> int:
        count = self.partitions_of(store)
        if partitioner is not None:
            return partitioner(key, count)
        serde = self._topology.stores[store].key_serde
        try:
            raw: bytes = serde.serialize(key)
        except Exception as error:
            raise InvalidStateStore(
                f"{key!r} is no key of store {store}, whose keys are of {type(serde).__name__}: {error}"
            ) from error
        return partition_for_key(raw, count)

    def _subtopology(self, store: str) -> int:
        return next(each.id for each in self._topology.with_tasks if store in each.stores)

    def _check(self, store: str) -> None:
        if store not in self._topology.stores:
            raise UnknownStateStore(store, self._topology.stores)

    def _metadata(self, host: HostInfo, has: HostTasks) -> StreamsMetadata:
        return StreamsMetadata(
            host=host,
            tasks=frozenset(map(str, has.active)),
            standby_tasks=frozenset(map(str, has.standby)),
            state_store_names=self._stores(has.active) | frozenset(self._topology.global_stores),
            standby_state_store_names=self._stores(has.standby),
            topic_partitions=self._inputs(has.active),
            standby_topic_partitions=self._inputs(has.standby),
        )

    def _stores(self, tasks: Iterable[TaskId]) -> frozenset[str]:
        parts = {task.subtopology for task in tasks}
        return frozenset(store for part in parts for store in self._topology.subtopologies[part].stores)

    def _inputs(self, tasks: Iterable[TaskId]) -> frozenset[TopicPartition]:
        return frozenset(
            TopicPartition(self._names.topic(topic), task.partition)
            for task in tasks
            for topic in self._topology.subtopologies[task.subtopology].topics
        )
