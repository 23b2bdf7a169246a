"""Computes where partitions start or resume: requests offsets from both clusters, and `position` decides.

Many partitions are placed at a time. A partition that cannot be placed, or whose cluster does not respond,
does not delay the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from kafka_client import Admin, Client, OffsetSpec, TopicMetadata, TopicPartition
from kafka_client.errors import LogTruncated, MillstreamError
from mirror.config import LinkSettings
from mirror.discontinuities import Discontinuities
from mirror.errors import MirrorError, NotPlaced, PositionUnprovable, SourceTruncated
from mirror.offsets import OffsetSyncs
from mirror.position import LogEnds, Position, check_sync, producer_at_end, resume
from mirror.unreadable import UnreadableSkips

log = logging.getLogger(__name__)
T = TypeVar("T")

AT_A_TIME = 16
"""Partitions whose batches are counted at the same time."""
REQUESTS_AT_A_TIME = 1000
"""Concurrent requests for the offsets of single partitions; a request times out after `REQUEST_TIMEOUT_MS`.
"""
REQUEST_TIMEOUT_MS = 10_000
PLACE_SECONDS = 60.0
NO_LEADER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The start position of a partition's copy; `end` is the source's last stable offset."""

    tp: TopicPartition
    remote: TopicPartition
    topic_id: bytes
    remote_topic_id: bytes
    position: Position
    end: int


class Placing:
    """Computation of the start positions of one flow's partitions, from `syncs` and both logs' ends."""

    def __init__(
        self,
        settings: LinkSettings,
        source: Client,
        target: Client,
        syncs: OffsetSyncs,
        skips: UnreadableSkips,
    ) -> None:
        self._settings = settings
        self._source = source
        self._target = target
        self._syncs = syncs
        self._skips = skips
        self._discontinuities = Discontinuities(settings.accept_discontinuities)
        self._source_admin = Admin(source, timeout_ms=REQUEST_TIMEOUT_MS)
        self._target_admin = Admin(target, timeout_ms=REQUEST_TIMEOUT_MS)
        self._first_positions: dict[TopicPartition, int] = {}
        """First positions of partitions without a sync: a retry must not start later (`latest`)."""
        self._running = 0

    def statistics(self) -> dict[str, int]:
        """Return running, the partitions whose position is being computed, and its bound running_max."""
        return {"running": self._running, "running_max": AT_A_TIME}

    def forget(self, tp: TopicPartition) -> None:
        """Forget a partition that was deleted in the source: a new one of this name starts afresh."""
        self._first_positions.pop(tp, None)

    def remote_of(self, tp: TopicPartition) -> TopicPartition:
        """Return the remote partition of `tp`."""
        return self._settings.remote(tp)

    def check_remotes(
        self, topics: Iterable[TopicMetadata], remote_topics: Mapping[str, TopicMetadata]
    ) -> dict[str, MirrorError]:
        """Return the errors of source topics whose remote topic was deleted after records were copied."""
        lost: dict[str, MirrorError] = {}
        for topic in topics:
            if self._settings.remote_topic(topic.name) in remote_topics:
                continue
            try:
                self._discontinuities.check_exist(topic.name, self._syncs, topic.partitions)
            except MirrorError as e:
                lost[topic.name] = e
        return lost

    async def source_ends(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the last stable offsets of source partitions, without partitions whose request failed."""
        results = await _ends_of_each(self._source_admin, list(tps), "read_committed")
        return {tp: ends.end for tp, ends in results.items() if isinstance(ends, LogEnds)}

    async def place(
        self,
        tps: Sequence[TopicPartition],
        topics: Mapping[str, TopicMetadata],
        remote_topics: Mapping[str, TopicMetadata],
        *,
        on_placed: Callable[[Placed], None],
        on_failure: Callable[[MirrorError], None],
    ) -> None:
        """Compute the position of each partition; call `on_placed` or `on_failure` for each.

        `topics` are the source's topics, `remote_topics` the target's.
        """
        ready = []
        for tp in tps:
            missing = _without_leader("source", topics, tp)
            missing = missing or _without_leader("target", remote_topics, self.remote_of(tp))
            if missing:
                on_failure(NotPlaced(tp, missing))
            else:
                ready.append(tp)
        sources, targets = await asyncio.gather(
            _ends_of_each(self._source_admin, ready, "read_committed"),
            _ends_of_each(self._target_admin, list(map(self.remote_of, ready)), "read_uncommitted"),
        )

        async def place_one(tp: TopicPartition) -> None:
            remote = self.remote_of(tp)
            topic_id, remote_id = topics[tp.topic].topic_id, remote_topics[remote.topic].topic_id
            self._running += 1
            try:
                async with asyncio.timeout(PLACE_SECONDS):
                    source, target = _or_raise(sources[tp]), _or_raise(targets[remote])
                    position = await self._position(tp, remote, (topic_id, remote_id), source, target)
            except MirrorError as e:
                on_failure(e)
            except LogTruncated as e:
                on_failure(SourceTruncated(tp, str(e)))
            except MillstreamError as e:
                on_failure(NotPlaced(tp, str(e)))
            except TimeoutError:
                on_failure(NotPlaced(tp, f"its place was not found within {PLACE_SECONDS:.0f} s"))
            else:
                on_placed(
                    Placed(
                        tp=tp,
                        remote=remote,
                        topic_id=topic_id,
                        remote_topic_id=remote_id,
                        position=position,
                        end=source.end,
                    )
                )
            finally:
                self._running -= 1

        await _for_each(ready, place_one, at_a_time=AT_A_TIME)

    async def _position(
        self,
        tp: TopicPartition,
        remote: TopicPartition,
        ids: tuple[bytes, bytes],
        source: LogEnds,
        target: LogEnds,
    ) -> Position:
        sync = self._syncs.latest(tp)
        try:
            copied = check_sync(tp, sync, *ids, source, target)
            if sync is not None:
                self._discontinuities.check_start(sync, source)
        except MirrorError as e:
            if sync is None:
                raise
            position = self._discontinuities.resume(e, sync, source, target)
            log.warning("%s: going on at source offset %d: %s", self._settings.name, position.upstream, e)
            return position
        if sync is None:
            reset = source.start if self._settings.auto_offset_reset == "earliest" else source.end
            return Position(self._first_positions.setdefault(tp, reset), target.end)
        self._first_positions.pop(tp, None)
        try:
            return await resume(
                self._source, self._target, tp, remote, sync, copied, (source, target), self._skips
            )
        except PositionUnprovable as e:
            if not await self._is_compacted(tp.topic):
                raise
            # Records that were copied and compacted away since cannot be counted. The copy from the sync on
            # is repeated: every key still ends with its last value, which is all a compacted topic promises.
            log.warning("%s: copied again from %d on: %s", self._settings.name, sync.next_upstream, e)
            producer = await producer_at_end(self._target, remote, target)
            return Position(sync.next_upstream, target.end, producer, sync.leader_epoch)

    async def _is_compacted(self, topic: str) -> bool:
        configs = await self._source_admin.describe_configs(topic, keys=["cleanup.policy"])
        return "compact" in (configs["cleanup.policy"].value or "")


def _without_leader(where: str, topics: Mapping[str, TopicMetadata], tp: TopicPartition) -> str | None:
    topic = topics.get(tp.topic)
    partition = None if topic is None else topic.partitions.get(tp.partition)
    if partition is None:
        return f"{tp} is not in the {where}"
    return f"{tp} has no leader in the {where}" if partition.leader == NO_LEADER else None


def _or_raise(result: LogEnds | MillstreamError) -> LogEnds:
    if isinstance(result, LogEnds):
        return result
    raise result


async def _ends_of_each(
    admin: Admin,
    tps: Sequence[TopicPartition],
    isolation_level: Literal["read_uncommitted", "read_committed"],
) -> dict[TopicPartition, LogEnds | MillstreamError]:
    """Return the log start and end of each partition, or the error of its request.

    All are requested at once. If that fails, each partition is requested by itself.
    """
    if not tps:
        return {}
    try:
        return dict(await _ends(admin, tps, isolation_level))
    except MillstreamError as e:
        if len(tps) == 1:
            return {tps[0]: e}

    results: dict[TopicPartition, LogEnds | MillstreamError] = {}

    async def ask(tp: TopicPartition) -> None:
        try:
            results[tp] = (await _ends(admin, [tp], isolation_level))[tp]
        except MillstreamError as e:
            results[tp] = e

    await _for_each(tps, ask, at_a_time=REQUESTS_AT_A_TIME)
    return results


async def _for_each(items: Sequence[T], work: Callable[[T], Awaitable[None]], *, at_a_time: int) -> None:
    """Call `work` for each item, `at_a_time` concurrently. Waiting items have no task yet."""
    remaining = iter(items)

    async def work_on() -> None:
        for item in remaining:
            await work(item)

    await asyncio.gather(*(work_on() for _ in range(min(at_a_time, len(items)))))


async def _ends(
    admin: Admin,
    tps: Sequence[TopicPartition],
    isolation_level: Literal["read_uncommitted", "read_committed"],
) -> dict[TopicPartition, LogEnds]:
    earliest: dict[TopicPartition, OffsetSpec] = dict.fromkeys(tps, "earliest")
    latest: dict[TopicPartition, OffsetSpec] = dict.fromkeys(tps, "latest")
    starts = await admin.list_offsets(earliest)
    ends = await admin.list_offsets(latest, isolation_level=isolation_level)
    return {tp: LogEnds(starts[tp].offset, ends[tp].offset) for tp in tps}
