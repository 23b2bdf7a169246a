"""The offset-syncs topic: pairs of a source offset and the target offset of the same record.

    mm2-offset-syncs.<other cluster>.internal     one partition, compacted, MirrorMaker 2's format:
    key      topic STRING │ partition INT32       of the source (STRING: int16 length, UTF-8)
    value    upstream INT64 │ downstream INT64
    headers  topic-id │ remote-topic-id │ next │ producer │ leader-epoch │ run     MirrorMaker ignores them
    producer       producer id INT64 │ epoch INT16 │ sequence INT32
    leader-epoch   INT32                of the source's record before `next`
    run            INT64                first upstream offset of the run that ends before `next`

A sync (U, D) says that the source's record at offset U has, or will get, offset D in the target. `next` is
such a pair for the first record that is not copied yet. The target's records from there on are the source's
from there on, in order. A sync by MirrorMaker has no `next`: its value is used instead. The ids, 16 bytes
each, show whether a topic was deleted and created again, which makes the sync invalid. `producer` is the
producer id and epoch of the first record that is not copied yet, and its sequence number (see `position`).
The leader epoch shows if the source has lost copied records (KIP-320). A run is a range of offsets in which
downstream - upstream is the same for every offset, and each is a copied record's.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import NamedTuple

from kafka_client import NO_TIMEOUT_MS, BatchProducer, Client, Identity, TopicPartition
from kafka_client.records import Headers, NewRecord
from mirror.internal_topics import create_internal_topic, read_internal_topic

TOPIC_ID_HEADER = "topic-id"
REMOTE_TOPIC_ID_HEADER = "remote-topic-id"
NEXT_HEADER = "next"
PRODUCER_HEADER = "producer"
LEADER_EPOCH_HEADER = "leader-epoch"
RUN_HEADER = "run"
CLOSE_MS = 5_000
NO_ID = bytes(16)
NO_EPOCH = -1
NO_RUN = -1
SEQUENCE_MASK = 0x7FFF_FFFF

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_VALUE = struct.Struct(">qq")
_PRODUCER = struct.Struct(">qhi")


class ProducerPosition(NamedTuple):
    """The producer id, epoch and sequence number of the next record to produce."""

    identity: Identity
    sequence: int

    def after(self, records: int) -> ProducerPosition:
        """Return the position `records` later; sequence numbers wrap at 2^31."""
        return ProducerPosition(self.identity, (self.sequence + records) & SEQUENCE_MASK)


class OffsetSync(NamedTuple):
    """Corresponding offsets of a source partition and its remote partition.

    `upstream` and `downstream` are one record's offsets, the `next_` pair those of the first record not
    copied yet. `topic_id` is the source topic's id, `remote_topic_id` the remote topic's, zeros if unknown.
    """

    tp: TopicPartition
    upstream: int
    downstream: int
    next_upstream: int
    next_downstream: int
    topic_id: bytes = NO_ID
    remote_topic_id: bytes = NO_ID
    producer: ProducerPosition | None = None
    leader_epoch: int = NO_EPOCH
    run_start: int = NO_RUN
    """First upstream offset of the run that ends before `next_upstream`, -1 if unknown."""

    @property
    def first_translated(self) -> int:
        """The first upstream offset that `translate` accepts."""
        return self.upstream if self.run_start == NO_RUN else min(self.upstream, self.run_start)

    def translate(self, upstream: int) -> int:
        """Return the downstream offset at which a consumer goes on that goes on at `upstream`.

        In the run and at its end the offset is exact. Otherwise it may be too low: Kafka's rule is one more
        than the sync's offset, since how many of the records in between were copied is unknown.
        """
        if self.run_start != NO_RUN and upstream >= self.run_start:
            return self.next_downstream + min(upstream - self.next_upstream, 0)
        return self.downstream + (upstream > self.upstream)


def encode_sync(sync: OffsetSync, timestamp_ms: int) -> NewRecord:
    """Return the sync as a record of the topic."""
    name = sync.tp.topic.encode()
    key = _INT16.pack(len(name)) + name + _INT32.pack(sync.tp.partition)
    headers: Headers = (
        (TOPIC_ID_HEADER, sync.topic_id),
        (REMOTE_TOPIC_ID_HEADER, sync.remote_topic_id),
        (NEXT_HEADER, _VALUE.pack(sync.next_upstream, sync.next_downstream)),
    )
    if sync.producer is not None:
        (producer_id, epoch), sequence = (astuple(sync.producer.identity), sync.producer.sequence)
        headers += ((PRODUCER_HEADER, _PRODUCER.pack(producer_id, epoch, sequence)),)
    if sync.leader_epoch != NO_EPOCH:
        headers += ((LEADER_EPOCH_HEADER, _INT32.pack(sync.leader_epoch)),)
    if sync.run_start != NO_RUN:
        headers += ((RUN_HEADER, _INT64.pack(sync.run_start)),)
    return timestamp_ms, key, _VALUE.pack(sync.upstream, sync.downstream), headers


def decode_sync(key: bytes, value: bytes, headers: Headers = ()) -> OffsetSync:
    """Return the sync in a record. Raises ValueError if the record is no sync."""
    try:
        (size,) = _INT16.unpack_from(key)
        (partition,) = _INT32.unpack_from(key, 2 + size)
        upstream, downstream = _VALUE.unpack(value)
        next_upstream, next_downstream = _VALUE.unpack(dict(headers).get(NEXT_HEADER) or value)
        producer = None
        if packed := dict(headers).get(PRODUCER_HEADER):
            producer_id, epoch, sequence = _PRODUCER.unpack(packed)
            producer = ProducerPosition(Identity(producer_id, epoch), sequence)
        packed = dict(headers).get(LEADER_EPOCH_HEADER)
        leader_epoch = _INT32.unpack(packed)[0] if packed else NO_EPOCH
        packed = dict(headers).get(RUN_HEADER)
        run_start = _INT64.unpack(packed)[0] if packed else NO_RUN
    except struct.error as e:
        raise ValueError(f"no offset sync: {e}") from None
    topic_id, remote_id = (
        dict(headers).get(name) or NO_ID for name in (TOPIC_ID_HEADER, REMOTE_TOPIC_ID_HEADER)
    )
    tp = TopicPartition(key[2 : 2 + size].decode(), partition)
    following = (next_upstream, next_downstream)
    return OffsetSync(
        tp, upstream, downstream, *following, topic_id, remote_id, producer, leader_epoch, run_start
    )


def run_start_at(upstream: int, downstream: int, latest: OffsetSync | None) -> int:
    """Return the start of the run of a copy that begins at these offsets, after the `latest` sync.

    The run of the sync goes on if there is no gap between its end and the offsets.
    """
    if latest is None or latest.run_start == NO_RUN:
        return upstream
    has_gap = upstream - downstream != latest.next_upstream - latest.next_downstream
    return upstream if has_gap else latest.run_start


class OffsetSyncs:
    """The syncs of one link, read once at the start and written during the copy.

    `client` is connected to the cluster of the offset-syncs topic. Call `open` first, `close` at the end.
    `on_sync` is called with each sync, in the order of the topic.
    """

    def __init__(
        self,
        client: Client,
        topic: str,
        replication_factor: int,
        on_sync: Callable[[OffsetSync], None] | None = None,
    ) -> None:
        self._client = client
        self.topic = topic
        self.read_until = 0
        """The topic's end when `open` read it."""
        self._replication_factor = replication_factor
        self._producer = BatchProducer(client, delivery_timeout_ms=NO_TIMEOUT_MS)
        self._failure: BaseException | None = None
        self._latest: dict[TopicPartition, OffsetSync] = {}
        self._on_sync = on_sync

    async def open(self) -> Mapping[TopicPartition, OffsetSync]:
        """Create the topic if it is missing and read it to its end. Return each partition's latest sync."""
        key = "offset-syncs.topic.replication.factor"
        await create_internal_topic(self._client, self.topic, self._replication_factor, key)
        self.read_until = await read_syncs(self._client, self.topic, lambda _, sync: self.adopt(sync))
        await self._producer.start()
        return self._latest

    def latest(self, tp: TopicPartition) -> OffsetSync | None:
        """Return the partition's last sync, by this process or an earlier one, or None."""
        return self._latest.get(tp)

    def adopt(self, sync: OffsetSync) -> None:
        """Use a sync of the topic as the partition's last one."""
        self._latest[sync.tp] = sync
        if self._on_sync is not None:
            self._on_sync(sync)

    async def write(self, sync: OffsetSync, timestamp_ms: int) -> asyncio.Future[int | None]:
        """Send a sync. Return a future that ends when the sync is acknowledged; wait only for buffer space.

        Raises the error of an earlier sync, because a restart needs every sync to compute its position.
        """
        self._check()
        self.adopt(sync)
        future = await self._producer.send(self.topic, 0, [encode_sync(sync, timestamp_ms)])
        future.add_done_callback(self._note_end)
        return future

    def trouble(self) -> str:
        """Return why the topic acknowledges no sync at the moment, or an empty string."""
        error = self._producer.trouble(TopicPartition(self.topic, 0))
        return "" if error is None else f"{self.topic} takes no offset sync: {error}"

    async def flush(self) -> None:
        """Wait until the syncs written so far are acknowledged. Raises the first error of any sync."""
        await self._producer.flush()
        self._check()

    async def close(self) -> None:
        """Flush (for at most `CLOSE_MS`) and stop."""
        await self._producer.close(timeout_ms=CLOSE_MS)

    def _note_end(self, future: asyncio.Future[int | None]) -> None:
        if not future.cancelled():
            self._failure = self._failure or future.exception()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure


async def read_syncs(
    client: Client, topic: str, take: Callable[[int, OffsetSync], None], position: int | None = None
) -> int:
    """Call `take` with the offset of each sync from `position` (default: the topic's start) on.

    Return the offset after the last one.
    """
    next_offset = position or 0
    async for offset, _, key, value, headers in read_internal_topic(client, topic, position):
        if key is not None and value is not None:
            take(offset, decode_sync(key, value, headers))
        next_offset = offset + 1
    return next_offset
