"""The location of state, by instance with an `application.server` (Kafka's HostInfo, StreamsMetadata)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_client import TopicPartition


class HostInfo(NamedTuple):
    """An instance's address, from its ``application.server``."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> HostInfo:
        """Parse the text of ``str(host)``. Raises ValueError for text that is not host:port."""
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise ValueError(f"{text!r} is not host:port")
        return cls(host, int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMetadata:
    """The tasks, stores and partitions of an instance, as of the group's last assignment.

    Tasks have names such as `0_1`: sub-topology 0, partition 1.
    """

    host: HostInfo
    tasks: frozenset[str] = field(default_factory=frozenset)
    standby_tasks: frozenset[str] = field(default_factory=frozenset)
    state_store_names: frozenset[str] = field(default_factory=frozenset)
    standby_state_store_names: frozenset[str] = field(default_factory=frozenset)
    topic_partitions: frozenset[TopicPartition] = field(default_factory=frozenset)
    standby_topic_partitions: frozenset[TopicPartition] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyQueryMetadata:
    """The location of a key. ``active_host`` is None while no instance is known to run its task."""

    partition: int
    active_host: HostInfo | None
    standby_hosts: tuple[HostInfo, ...] = ()
