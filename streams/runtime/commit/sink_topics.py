"""`SinkTopics`: the numbers of partitions of an application's output topics."""

from __future__ import annotations

import asyncio

from kafka_client import Client
from kafka_client.errors import ErrorCode, KafkaError
from streams.errors import StreamsError, TopologyError
from streams.runtime.topics import TopicNames
from streams.topology import Topology

LOOKUP_SECONDS_MAX = 60
"""How long a record waits for the metadata of the topic chosen for it, before its task fails."""


class SinkTopics:
    """The output topics. `counts` has their partitions by cluster name, and grows with chosen topics."""

    def __init__(self, client: Client, names: TopicNames, counts: dict[str, int]) -> None:
        self.counts = counts
        self._client = client
        self._names = names
        self._loop = asyncio.get_running_loop()

    def count(self, topic: str) -> int:
        """Return the number of partitions of a topic of the topology. Blocks: call it in the worker.

        Raises StreamsError if there is no such topic.
        """
        name = self._names.topic(topic)
        count = self.counts.get(name)
        return count if count is not None else self._ask(name)

    async def find_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, in the event loop. Raises as `count` does."""
        name = self._names.topic(topic)
        count = self.counts.get(name)
        return count if count is not None else await self._look_up(name)

    def _ask(self, name: str) -> int:
        lookup = asyncio.run_coroutine_threadsafe(self._look_up(name), self._loop)
        try:
            return lookup.result(LOOKUP_SECONDS_MAX)
        except TimeoutError:
            lookup.cancel()
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
    """Return the partitions of the output topics and of the topic for dead letters.

    Raises TopologyError if one of them is missing.
    """
    topics = topology.sink_topics + ([] if dead_letters is None else [dead_letters])
    try:
        metadata = await client.metadata(topics)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise TopologyError(
            f"an output topic does not exist ({error.message}); create it before the application starts"
        ) from error
    return {name: topic.partition_count for name, topic in metadata.topics.items()}
