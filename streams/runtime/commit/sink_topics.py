"""`SinkTopics`: how many partitions the topics have that an application writes."""

from __future__ import annotations

import asyncio

from kafka_client import Client
from kafka_client.errors import ErrorCode, KafkaError
from streams.errors import StreamsError, TopologyError
from streams.runtime.topics import TopicNames
from streams.topology import Topology

LOOKUP_SECONDS_MAX = 60
"""How long a record waits for brokers to tell of a topic that was chosen for it, before its task fails."""


class SinkTopics:
    """`counts`: partitions by the cluster's topic names; topics chosen for a record come to it late."""

    def __init__(self, client: Client, names: TopicNames, counts: dict[str, int]) -> None:
        self.counts = counts
        self._client = client
        self._names = names
        self._loop = asyncio.get_running_loop()

    def count(self, topic: str) -> int:
        """Partitions of a topic by the topology's name. Called in the worker, which waits for the answer.

        Raises StreamsError if there is no such topic.
        """
        name = self._names.topic(topic)
        found = self.counts.get(name)
        return found if found is not None else self._ask(name)

    async def find_count(self, topic: str) -> int:
        """As `count`, in the event loop."""
        name = self._names.topic(topic)
        found = self.counts.get(name)
        return found if found is not None else await self._look_up(name)

    def _ask(self, name: str) -> int:
        asked = asyncio.run_coroutine_threadsafe(self._look_up(name), self._loop)
        try:
            return asked.result(LOOKUP_SECONDS_MAX)
        except TimeoutError:
            asked.cancel()
            raise StreamsError(
                f"no broker told within {LOOKUP_SECONDS_MAX} s how many partitions topic {name!r} has"
            ) from None

    async def _look_up(self, name: str) -> int:
        metadata = await self._client.metadata([name], refresh=True, allow_missing=True)
        if name not in metadata.topics:
            raise StreamsError(f"topic {name!r}, chosen for a record, does not exist; create it")
        self.counts[name] = metadata.topics[name].partition_count
        return self.counts[name]


async def find_sinks(client: Client, topology: Topology, dead_letters: str | None) -> dict[str, int]:
    """Partitions of the topics that are written, and of that for dead letters; TopologyError if one is
    missing.
    """
    wanted = topology.sink_topics + ([] if dead_letters is None else [dead_letters])
    try:
        found = await client.metadata(wanted)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise TopologyError(
            f"an output topic does not exist ({error.message}); create it before the application starts"
        ) from error
    return {name: topic.partition_count for name, topic in found.topics.items()}
