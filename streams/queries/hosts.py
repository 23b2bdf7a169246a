"""Where state is, by instance: what `application.server` is for (Kafka's HostInfo, StreamsMetadata)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_client import TopicPartition


class HostInfo(NamedTuple):
    """An instance's address, as its ``application.server`` says."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> HostInfo:
        """The inverse of str(); ValueError for what is no host:port."""
        host, colon, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise ValueError(f"{text!r} is not host:port")
        return cls(host, int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMetadata:
    """What one instance has, at the group's last assignment. Tasks are named as in `0_1`: of sub-topology 0,
    partition 1.
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
    """Where a key is. ``active_host``: None while nobody is known to run its task."""

    partition: int
    active_host: HostInfo | None
    standby_hosts: tuple[HostInfo, ...] = ()
