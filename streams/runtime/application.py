"""The application that an instance runs."""

from __future__ import annotations

from dataclasses import dataclass

from streams.config import StreamsConfig
from streams.runtime.task.environment import Clock
from streams.runtime.topics import TopicNames
from streams.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A topology with its settings, the cluster's names of its topics, and the clock."""

    topology: Topology
    config: StreamsConfig
    names: TopicNames
    clock: Clock
