"""Finding where partitions go on: asks both clusters, many partitions at a time, and lets `position` decide.

A partition that cannot be placed, or whose cluster does not answer, does not hold up the others.
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
from mirror.errors import MirrorError, NotPlaced, PositionUnprovable, SourceTruncated
from mirror.offsets import OffsetSyncs
from mirror.position import LogEnds, Position, check_sync, producer_at_end, resume
from mirror.unreadable import UnreadableSkips

log = logging.getLogger(__name__)
T = TypeVar("T")

AT_A_TIME = 16
"""Partitions whose batches are walked at the same time."""
ASKED_AT_A_TIME = 1000
"""Partitions whose ends are asked for each alone at the same time; who gets no answer waits for `ASK_MS`."""
ASK_MS = 10_000
PLACE_SECONDS = 60.0
NO_LEADER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where the copy of a partition goes on; `end` is the source's."""

    tp: TopicPartition
    remote: TopicPartition
    topic_id: bytes
    remote_topic_id: bytes
    position: Position
    end: int


class Placing:
    """Places the partitions of one flow. `settings` tell their names, `syncs` what is known of them."""

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
        self._source_admin = Admin(source, timeout_ms=ASK_MS)
        self._target_admin = Admin(target, timeout_ms=ASK_MS)
        self._begun: dict[TopicPartition, int] = {}
        """First positions of partitions without a sync: another attempt must not begin later (`latest`)."""
        self._running = 0

    def statistics(self) -> dict[str, int]:
        """running: partitions whose place is being looked for, and their bound."""
        return {"running": self._running, "running_max": AT_A_TIME}

    def forget(self, tp: TopicPartition) -> None:
        """The partition is gone from the source: one of its name would begin anew."""
        self._begun.pop(tp, None)

    def remote_of(self, tp: TopicPartition) -> TopicPartition:
        """What the partition is called in the target."""
        settings = self._settings
        return TopicPartition(settings.policy.remote_topic(settings.source.alias, tp.topic), tp.partition)

    async def source_ends(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Log ends of partitions in the source, committed records only; without those that do not answer."""
        found = await _ends_of_each(self._source_admin, list(tps), "read_committed")
        return {tp: ends.end for tp, ends in found.items() if isinstance(ends, LogEnds)}

    async def place(
        self,
        tps: Sequence[TopicPartition],
        topics: Mapping[str, TopicMetadata],
        remote_topics: Mapping[str, TopicMetadata],
        *,
        on_placed: Callable[[Placed], None],
        on_failure: Callable[[MirrorError], None],
    ) -> None:
        """Place each of the partitions; the topics are those of the source, and of the target."""
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
        copied = check_sync(tp, sync, *ids, source, target)
        if sync is None:
            reset = source.start if self._settings.auto_offset_reset == "earliest" else source.end
            return Position(self._begun.setdefault(tp, reset), target.end)
        self._begun.pop(tp, None)
        try:
            return await resume(
                self._source, self._target, tp, remote, sync, copied, (source, target), self._skips
            )
        except PositionUnprovable as e:
            if not await self._is_compacted(tp.topic):
                raise
            # What was copied and compacted away since cannot be counted. Copied again from the sync on, every
            # key still ends with its last value, which is all a compacted topic promises.
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


def _or_raise(found: LogEnds | MillstreamError) -> LogEnds:
    if isinstance(found, LogEnds):
        return found
    raise found


async def _ends_of_each(
    admin: Admin,
    tps: Sequence[TopicPartition],
    isolation_level: Literal["read_uncommitted", "read_committed"],
) -> dict[TopicPartition, LogEnds | MillstreamError]:
    """Ask for all at once; if that fails for each alone, with an error in place of its offsets."""
    if not tps:
        return {}
    try:
        return dict(await _ends(admin, tps, isolation_level))
    except MillstreamError as e:
        if len(tps) == 1:
            return {tps[0]: e}

    found: dict[TopicPartition, LogEnds | MillstreamError] = {}

    async def ask(tp: TopicPartition) -> None:
        try:
            found[tp] = (await _ends(admin, [tp], isolation_level))[tp]
        except MillstreamError as e:
            found[tp] = e

    await _for_each(tps, ask, at_a_time=ASKED_AT_A_TIME)
    return found


async def _for_each(items: Sequence[T], work: Callable[[T], Awaitable[None]], *, at_a_time: int) -> None:
    """Work on all, so many at a time; those that wait have no task yet."""
    left = iter(items)

    async def work_on() -> None:
        for item in left:
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
