"""Reading the log ends of idle inputs from the brokers, before windows are closed on idle inputs.

For a task after a repartition topic the first question is whether the group has committed all upstream
records: then no more are on their way. Tasks go on meanwhile. If no broker answers, or more records will
come, the idle time restarts, and the question is repeated after another timeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kafka_client import Admin, Client
from kafka_client.errors import MillstreamError
from kafka_client.topic_partition import TopicPartition
from streams.config import StreamsConfig
from streams.runtime.task.idle import IdleWatch
from streams.runtime.topics import TopicNames
from streams.topology import Topology
from streams.topology.upstream import sources_upstream

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Upstream:
    """The topics upstream of a sub-topology. Those in `from_latest` are not read from their start."""

    topics: frozenset[str] = frozenset()
    from_latest: frozenset[str] = frozenset()


def upstream_of(topology: Topology, names: TopicNames, config: StreamsConfig) -> dict[int, Upstream]:
    """Return the upstream topics of each sub-topology."""
    upstream: dict[int, Upstream] = {}
    for part, sources in sources_upstream(topology).items():
        latest = {
            names.topic(topic)
            for topic, source in sources.items()
            if (source.reset or config.auto_offset_reset) == "latest"
        }
        upstream[part] = Upstream(frozenset(map(names.topic, sources)), frozenset(latest))
    return upstream


class IdleEnds:
    """The questions about log ends, one at a time for all due tasks. ``upstream``: see `upstream_of`."""

    def __init__(self, client: Client, group_id: str, upstream: Callable[[], Mapping[int, Upstream]]) -> None:
        self._client = client
        self._group_id = group_id
        self._upstream = upstream
        self._asking: asyncio.Task[None] | None = None
        self._wants_commit = False

    @property
    def is_asking(self) -> bool:
        """True if a question is under way."""
        return self._asking is not None and not self._asking.done()

    def take_wants_commit(self) -> bool:
        """Return True, once, if upstream records were uncommitted that tasks here may have read."""
        wants_commit, self._wants_commit = self._wants_commit, False
        return wants_commit

    def ask(self, watches: Iterable[tuple[int, IdleWatch]]) -> None:
        """Ask for the watches that are due, each with its sub-topology, unless a question is under way."""
        due = [(part, watch) for part, watch in watches if watch.is_due and not watch.is_confirmed]
        if due and not self.is_asking:
            self._asking = asyncio.create_task(self._ask(due), name="ends-of-idle-inputs")

    async def _ask(self, watches: list[tuple[int, IdleWatch]]) -> None:
        ends: dict[TopicPartition, int] = {}
        ready: set[int] = set()
        try:
            upstream = self._upstream()
            for part in {part for part, _ in watches}:
                if await self._is_read(upstream.get(part, Upstream())):
                    ready.add(part)
                else:
                    self._wants_commit = True
            specs = {tp: "latest" for part, watch in watches if part in ready for tp in watch.inputs}
            offsets = await Admin(self._client).list_offsets(specs) if specs else {}
            ends = {tp: each.offset for tp, each in offsets.items()}
        except MillstreamError as error:
            log.warning("windows on idle inputs stay open, since nobody says where the inputs end: %s", error)
        for part, watch in watches:
            watch.check_ends(ends if part in ready else {})

    async def _is_read(self, upstream: Upstream) -> bool:
        """Return True if the group has committed these topics up to their ends."""
        if not upstream.topics:
            return True
        metadata = await self._client.metadata(upstream.topics)
        tps = [
            TopicPartition(name, number)
            for name, topic in metadata.topics.items()
            for number in range(topic.partition_count)
        ]
        admin = Admin(self._client)
        committed = await admin.list_group_offsets(self._group_id, tps)
        ends = await admin.list_offsets(dict.fromkeys(tps, "latest"))
        unread = [tp for tp in tps if tp not in committed and tp.topic not in upstream.from_latest]
        begins = await admin.list_offsets(dict.fromkeys(unread, "earliest")) if unread else {}
        return all(committed[tp].offset == ends[tp].offset for tp in tps if tp in committed) and all(
            begins[tp].offset == ends[tp].offset for tp in unread
        )

    async def close(self) -> None:
        """Cancel the question under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
