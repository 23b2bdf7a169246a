"""Asking the brokers where idle inputs end, before windows are closed for want of records.

Of a task behind a repartition topic it is asked first whether the group has committed all that there is to
read above it: then nothing more is on its way. Tasks go on while it is asked. If nobody answers, or there is
more to come, the inputs count as idle from then on only, and it is asked again when the time is over once
more.
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
    """Topics that are read above a sub-topology; those of `from_latest` are not read from their start."""

    topics: frozenset[str] = frozenset()
    from_latest: frozenset[str] = frozenset()


def upstream_of(topology: Topology, names: TopicNames, config: StreamsConfig) -> dict[int, Upstream]:
    """By sub-topology, the topics that are read above it."""
    found: dict[int, Upstream] = {}
    for part, sources in sources_upstream(topology).items():
        latest = {
            names.topic(topic)
            for topic, source in sources.items()
            if (source.reset or config.auto_offset_reset) == "latest"
        }
        found[part] = Upstream(frozenset(map(names.topic, sources)), frozenset(latest))
    return found


class IdleEnds:
    """Asks for all tasks that are due, with one question under way. ``upstream()``: by sub-topology, now."""

    def __init__(self, client: Client, group_id: str, upstream: Callable[[], Mapping[int, Upstream]]) -> None:
        self._client = client
        self._group_id = group_id
        self._upstream = upstream
        self._asking: asyncio.Task[None] | None = None
        self._wants_commit = False

    @property
    def is_asking(self) -> bool:
        """Whether a question is under way."""
        return self._asking is not None and not self._asking.done()

    def take_wants_commit(self) -> bool:
        """Whether, since this was asked last, something was not committed that tasks here may have read."""
        wanted, self._wants_commit = self._wants_commit, False
        return wanted

    def ask(self, watches: Iterable[tuple[int, IdleWatch]]) -> None:
        """Ask for those that are due, each with its sub-topology, unless there is a question under way."""
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
            wanted = {tp: "latest" for part, watch in watches if part in ready for tp in watch.inputs}
            found = await Admin(self._client).list_offsets(wanted) if wanted else {}
            ends = {tp: each.offset for tp, each in found.items()}
        except MillstreamError as error:
            log.warning("windows on idle inputs stay open, since nobody says where the inputs end: %s", error)
        for part, watch in watches:
            watch.heard(ends if part in ready else {})

    async def _is_read(self, upstream: Upstream) -> bool:
        """Whether the group has committed these topics to their ends."""
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
        """Break off a question that is under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
