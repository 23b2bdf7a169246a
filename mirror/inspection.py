"""Answers questions about a flow from its two clusters, whether or not a mirror is running.

They need the flow's settings only. A cluster that does not answer raises its error: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kafka_client import Admin, Client, TopicPartition
from mirror.client import MirrorClient
from mirror.config import Cluster, LinkSettings
from mirror.offsets import OffsetSync, read_syncs
from mirror.places import Places
from mirror.records.checkpoint import Checkpoint
from mirror.syncs.store import OffsetSyncStore
from mirror.topics import RemoteTopics


@dataclass(frozen=True, slots=True)
class Translation:
    """An offset of the source, and where a consumer goes on in the target.

    `downstream` is -1 if the offset is older than the flow's offset syncs, and None if there are none of the
    partition.
    """

    tp: TopicPartition
    upstream: int
    remote: TopicPartition
    downstream: int | None


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """The ends of a source partition and of its copy.

    `copied` is the source offset up to which records are in the target, and None before the first. After
    gaps in the source's offsets it may be lower, but never higher. `lag` counts offsets; None if unknown.
    """

    tp: TopicPartition
    end: int
    """The source's last stable offset."""
    copied: int | None
    lag: int | None


async def checkpoints(settings: LinkSettings, group: str | None = None) -> list[Checkpoint]:
    """Return the latest checkpoints of a flow's groups, or of one, in order.

    Raises KafkaError if the target has no topic of checkpoints.
    """
    async with client_of(settings.target) as target:
        latest = await MirrorClient(target, settings.policy).checkpoints(settings.source.alias)
    return sorted(
        (each for each in latest if group in (None, each.consumer_group_id)),
        key=lambda each: (each.consumer_group_id, each.topic_partition),
    )


async def translate_offsets(settings: LinkSettings, places: Places) -> list[Translation]:
    """Return where consumers that are at `places` in the source go on in the target.

    Raises KafkaError if there is no topic of offset syncs.
    """
    store = OffsetSyncStore()
    await _read_syncs(settings, store.add)
    store.finish_loading()
    return [
        Translation(tp, offset, settings.remote(tp), store.translate(tp, offset)) for tp, offset in places
    ]


async def lags(settings: LinkSettings) -> list[PartitionLag]:
    """Return the lag of every partition that the flow copies, in order. Raises KafkaError."""
    latest: dict[TopicPartition, OffsetSync] = {}

    def take(sync: OffsetSync) -> None:
        latest[sync.tp] = sync

    await _read_syncs(settings, take)
    async with client_of(settings.source) as source, client_of(settings.target) as target:
        admins = Admin(source), Admin(target)
        topics = await RemoteTopics(settings, *admins).chosen()
        tps = [TopicPartition(topic.name, p) for topic in topics for p in topic.partitions]
        ends = await _ends(admins[0], tps)
        remotes = {tp: settings.remote(tp) for tp in tps if tp in latest}
        copies = await _ends(admins[1], list(remotes.values()))
    return [_lag(tp, ends[tp], latest.get(tp), copies.get(settings.remote(tp))) for tp in sorted(tps)]


def client_of(cluster: Cluster) -> Client:
    """Return a client of one of the flow's clusters."""
    return Client(cluster.bootstrap_servers, **cluster.client)


def _lag(tp: TopicPartition, end: int, sync: OffsetSync | None, target_end: int | None) -> PartitionLag:
    if sync is None or target_end is None:
        return PartitionLag(tp, end, None, None)
    copied = min(sync.next_upstream + max(target_end - sync.next_downstream, 0), end)
    return PartitionLag(tp, end, copied, end - copied)


async def _read_syncs(settings: LinkSettings, take: Callable[[OffsetSync], None]) -> None:
    holder = settings.source if settings.offset_syncs_location == "source" else settings.target
    async with client_of(holder) as client:
        await read_syncs(client, settings.offset_syncs_topic, lambda _, sync: take(sync))


async def _ends(admin: Admin, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Return the last stable offsets. Raises KafkaError, also if a partition does not exist."""
    if not tps:
        return {}
    listed = await admin.list_offsets(dict.fromkeys(tps, "latest"), isolation_level="read_committed")
    return {tp: each.offset for tp, each in listed.items()}
