"""Asks both clusters of a flow what a failover depends on. Nothing is changed.

The source may be away: then its part is None. An error of the target is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafka_client import Admin, Client, OffsetAndMetadata, TopicPartition
from kafka_client.errors import ConfigError, ErrorCode, KafkaError, MillstreamError
from kafka_client.fetcher.offsets import EARLIEST, LATEST, list_each_offset
from mirror.checkpoints.groups import is_consumer_group
from mirror.config import LinkSettings
from mirror.failover.uncopied import Span, Uncopied, count_uncopied
from mirror.inspection import client_of
from mirror.internal_topics import read_internal_topic
from mirror.offsets import OffsetSync, read_syncs
from mirror.records.checkpoint import Checkpoint, parse_checkpoint
from mirror.records.heartbeat import parse_heartbeat
from mirror.syncs.store import OffsetSyncStore
from mirror.topics import RemoteTopics

ANSWER_SECONDS = 15.0
"""How long the source may take to answer all questions of one kind."""
HEARTBEATS_READ = 100
"""How many of the last records of the copied heartbeats are read."""

Offsets = Mapping[TopicPartition, int]


class Syncs:
    """The offset syncs of a flow: the latest of each partition, and a store that translates."""

    def __init__(self) -> None:
        self.latest: dict[TopicPartition, OffsetSync] = {}
        self.store = OffsetSyncStore()

    def add(self, sync: OffsetSync) -> None:
        """Add the next sync of the topic."""
        self.latest[sync.tp] = sync
        self.store.add(sync)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnds:
    """Where a partition begins and ends. An `end` of None: no answer, for the reason `error`."""

    start: int = 0
    end: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """The answers of the source.

    `committed` has the offsets of each group that the flow takes, or None where they could not be read.
    """

    ends: Mapping[TopicPartition, LogEnds]
    committed: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StampedCheckpoint:
    """A checkpoint and when the mirror wrote it, ms since 1970."""

    checkpoint: Checkpoint
    written_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroup:
    """A group in the target: its state, as "Empty" or "Stable", and its committed offsets."""

    state: str
    committed: Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(kw_only=True)
class Facts:
    """All answers about one flow. `silence` is why the source does not answer, None if it does."""

    settings: LinkSettings
    now: float
    """When they were collected, seconds since 1970."""
    source: SourceFacts | None = None
    silence: str | None = None
    syncs: Syncs | None = None
    """None if the cluster of the offset syncs does not answer."""
    back_syncs: Syncs | None = None
    """The offset syncs of the flow in the other direction, None if there is none."""
    uncopied: Mapping[TopicPartition, Uncopied] = field(default_factory=dict)
    target_ends: Mapping[TopicPartition, LogEnds] = field(default_factory=dict)
    checkpoints: list[StampedCheckpoint] = field(default_factory=list)
    target_groups: Mapping[str, TargetGroup] = field(default_factory=dict)
    heartbeat_ms: int | None = None
    """When the last copied heartbeat was sent, ms since 1970; None if none was copied."""

    def remote(self, tp: TopicPartition) -> TopicPartition:
        """Return the partition in the target of a partition of the source."""
        return self.settings.remote(tp)


async def collect_facts(settings: LinkSettings, back: LinkSettings | None, now: float) -> Facts:
    """Ask both clusters. `back` is the flow in the other direction, if there is one.

    Raises KafkaError if the target does not answer.
    """
    facts = Facts(settings=settings, now=now)
    async with client_of(settings.target) as target:
        await _ask_source(facts)
        facts.syncs = await _syncs(settings, facts)
        facts.back_syncs = None if back is None else await _syncs(back, facts)
        await _ask_target(facts, target)
    if facts.source is not None and facts.syncs is not None:
        await _count_uncopied(facts)
    return facts


async def _ask_source(facts: Facts) -> None:
    try:
        async with asyncio.timeout(ANSWER_SECONDS), client_of(facts.settings.source) as client:
            facts.source = await _source(facts.settings, client)
    except ConfigError:
        raise
    except (MillstreamError, OSError) as e:
        facts.silence = str(e) or f"no answer within {ANSWER_SECONDS:.0f} s"


async def _source(settings: LinkSettings, client: Client) -> SourceFacts:
    admin, policy = Admin(client), settings.policy
    topics = await RemoteTopics(settings, admin, admin).chosen()
    tps = [
        TopicPartition(topic.name, partition)
        for topic in topics
        if not policy.is_heartbeats_topic(topic.name)
        for partition in topic.partitions
    ]
    committed: dict[str, Mapping[TopicPartition, OffsetAndMetadata] | None] = {}
    for group in await admin.list_groups():
        if is_consumer_group(group) and settings.groups.groups.takes(group.group_id):
            try:
                committed[group.group_id] = await admin.list_group_offsets(group.group_id)
            except KafkaError:
                committed[group.group_id] = None
    return SourceFacts(ends=await _ends(client, tps), committed=committed)


async def _ends(client: Client, tps: Iterable[TopicPartition]) -> dict[TopicPartition, LogEnds]:
    timeout_ms = int(ANSWER_SECONDS * 1000 / 3)
    starts = await list_each_offset(client, dict.fromkeys(tps, EARLIEST), timeout_ms=timeout_ms)
    listed = await list_each_offset(
        client, dict.fromkeys(starts, LATEST), isolation_level="read_committed", timeout_ms=timeout_ms
    )
    ends = {}
    for tp, start in starts.items():
        end = listed[tp]
        if isinstance(start, MillstreamError) or isinstance(end, MillstreamError):
            ends[tp] = LogEnds(error=str(start if isinstance(start, MillstreamError) else end))
        else:
            ends[tp] = LogEnds(start=start.offset, end=end.offset)
    return ends


async def _syncs(settings: LinkSettings, facts: Facts) -> Syncs | None:
    """Return the offset syncs of a flow, none if their topic is missing, or None without an answer."""
    holder = settings.source if settings.offset_syncs_location == "source" else settings.target
    if holder.alias == facts.settings.source.alias and facts.source is None:
        return None
    syncs = Syncs()
    try:
        async with asyncio.timeout(ANSWER_SECONDS), client_of(holder) as client:
            await read_syncs(client, settings.offset_syncs_topic, lambda _, sync: syncs.add(sync))
    except (MillstreamError, OSError) as e:
        if not _is_missing(e):
            return None
    syncs.store.finish_loading()
    return syncs


async def _ask_target(facts: Facts, client: Client) -> None:
    facts.checkpoints = await _checkpoints(facts, client)
    facts.heartbeat_ms = await _heartbeat(facts.settings, client)
    facts.target_ends = await _ends(client, sorted(await _remotes(facts, client)))
    admin, groups = Admin(client), {each.checkpoint.consumer_group_id for each in facts.checkpoints}
    groups |= set() if facts.source is None else set(facts.source.committed)
    described = await admin.describe_groups(sorted(groups))
    facts.target_groups = {
        name: TargetGroup(state=group.state, committed=await admin.list_group_offsets(name))
        for name, group in described.items()
    }


async def _remotes(facts: Facts, client: Client) -> set[TopicPartition]:
    """Return the flow's remote partitions. Without the source all topics with such names count."""
    topics = await Admin(client).list_topics()
    if facts.source is not None:
        remotes = {facts.remote(tp) for tp in facts.source.ends}
        return {tp for tp in remotes if tp.topic in topics and tp.partition in topics[tp.topic].partitions}
    return {
        TopicPartition(name, partition)
        for name, topic in topics.items()
        if _is_copy(facts.settings, name) and not topic.is_internal
        for partition in topic.partitions
    }


def _is_copy(settings: LinkSettings, remote: str) -> bool:
    policy = settings.policy
    if policy.is_internal_topic(remote) or policy.is_heartbeats_topic(remote):
        return False
    upstream = policy.upstream_topic(remote)
    is_from_source = policy.topic_source(remote) == settings.source.alias
    return is_from_source and upstream is not None and settings.topics.takes(upstream)


async def _checkpoints(facts: Facts, client: Client) -> list[StampedCheckpoint]:
    """Return the latest checkpoints of the flow's groups, by group and partition."""
    topic = facts.settings.policy.checkpoints_topic(facts.settings.source.alias)
    latest: dict[bytes, StampedCheckpoint] = {}
    try:
        async for _, timestamp, key, value, _ in read_internal_topic(client, topic):
            if key is None:
                continue
            latest.pop(key, None)
            try:
                if value is not None:
                    checkpoint = parse_checkpoint(key, value)
                    latest[key] = StampedCheckpoint(checkpoint=checkpoint, written_ms=timestamp)
            except ValueError:
                continue  # a record of a later version, or none of a mirror
    except KafkaError as e:
        if not _is_missing(e):
            raise
    takes = facts.settings.groups.groups.takes
    chosen = [each for each in latest.values() if takes(each.checkpoint.consumer_group_id)]
    return sorted(
        chosen, key=lambda each: (each.checkpoint.consumer_group_id, each.checkpoint.topic_partition)
    )


async def _heartbeat(settings: LinkSettings, client: Client) -> int | None:
    """Return when the last copied heartbeat of the flow was sent, or None."""
    source = settings.source.alias
    topic = settings.remote_topic(settings.policy.heartbeats_topic())
    latest = None
    try:
        tp = TopicPartition(topic, 0)
        end = (await Admin(client).list_offsets({tp: "latest"}))[tp].offset
        start = (await Admin(client).list_offsets({tp: "earliest"}))[tp].offset
        async for _, _, key, value, _ in read_internal_topic(
            client, topic, max(start, end - HEARTBEATS_READ)
        ):
            try:
                beat = parse_heartbeat(key or b"", value or b"")
            except ValueError:
                continue
            if (beat.source_cluster_alias, beat.target_cluster_alias) == (source, settings.target.alias):
                latest = beat.timestamp
    except KafkaError as e:
        if not _is_missing(e):
            raise
    return latest


async def _count_uncopied(facts: Facts) -> None:
    assert facts.source is not None
    spans = {tp: span for tp, ends in facts.source.ends.items() if (span := span_of(facts, tp, ends))}
    try:
        async with asyncio.timeout(ANSWER_SECONDS), client_of(facts.settings.source) as client:
            facts.uncopied = await count_uncopied(client, spans)
    except (MillstreamError, OSError):
        facts.uncopied = {}  # the numbers of offsets are bounds


def span_of(facts: Facts, tp: TopicPartition, ends: LogEnds) -> Span | None:
    """Return the offsets after the last sync, or all without one; None if unknown or if there are none."""
    remote = facts.target_ends.get(facts.remote(tp), LogEnds(end=0))
    if facts.syncs is None or ends.end is None or remote.end is None:
        return None
    sync = facts.syncs.latest.get(tp)
    if sync is None:
        return None if remote.end > remote.start or ends.start >= ends.end else Span(ends.start, ends.end, 0)
    copied = max(remote.end - sync.next_downstream, 0)
    start = sync.next_upstream
    return None if start < ends.start or start >= ends.end else Span(start, ends.end, copied)


def _is_missing(error: Exception) -> bool:
    return isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
