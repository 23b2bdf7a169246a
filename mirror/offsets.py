"""The offset-syncs topic: pairs of a source offset and the target offset of the same record.

    mm2-offset-syncs.<other cluster>.internal     one partition, compacted, MirrorMaker 2's format:
    key      topic STRING │ partition INT32       of the source (STRING: int16 length, UTF-8)
    value    upstream INT64 │ downstream INT64
    headers  topic-id │ remote-topic-id │ next │ producer │ leader-epoch     MirrorMaker ignores them
    producer       producer id INT64 │ epoch INT16 │ sequence INT32
    leader-epoch   INT32                of the source's record before `next`

A sync (U, D) says that the source's record at offset U has, or will get, offset D in the target. `next` is
such a pair for the first record that is not copied yet. The target's records from there on are the source's
from there on, in order. A sync by MirrorMaker has no `next`: its value is used instead. The ids, 16 bytes
each, show whether a topic was deleted and created again, which makes the sync invalid. `producer` is the
producer id and epoch of the first record that is not copied yet, and its sequence number (see `position`).
The leader epoch shows if the source has lost copied records (KIP-320).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import astuple
from typing import NamedTuple

from kafka_client import (
    NO_TIMEOUT_MS,
    Admin,
    BatchFetcher,
    BatchProducer,
    Client,
    Identity,
    NewTopic,
    TopicPartition,
)
from kafka_client.errors import KafkaError
from kafka_client.records import Headers, NewRecord, Record
from mirror.errors import with_setting

TOPIC_ID_HEADER = "topic-id"
REMOTE_TOPIC_ID_HEADER = "remote-topic-id"
NEXT_HEADER = "next"
PRODUCER_HEADER = "producer"
LEADER_EPOCH_HEADER = "leader-epoch"
CLOSE_MS = 5_000
NO_ID = bytes(16)
NO_EPOCH = -1
SEQUENCE_MASK = 0x7FFF_FFFF

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
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
    except struct.error as e:
        raise ValueError(f"no offset sync: {e}") from None
    topic_id, remote_id = (
        dict(headers).get(name) or NO_ID for name in (TOPIC_ID_HEADER, REMOTE_TOPIC_ID_HEADER)
    )
    tp = TopicPartition(key[2 : 2 + size].decode(), partition)
    return OffsetSync(
        tp, upstream, downstream, next_upstream, next_downstream, topic_id, remote_id, producer, leader_epoch
    )


class OffsetSyncs:
    """The syncs of one link, read once at the start and written during the copy.

    `client` is connected to the cluster of the offset-syncs topic. Call `open` first, `close` at the end.
    """

    def __init__(self, client: Client, topic: str, replication_factor: int) -> None:
        self._client = client
        self.topic = topic
        self.read_until = 0
        """The topic's end when `open` read it."""
        self._replication_factor = replication_factor
        self._producer = BatchProducer(client, delivery_timeout_ms=NO_TIMEOUT_MS)
        self._failure: BaseException | None = None
        self._latest: dict[TopicPartition, OffsetSync] = {}

    async def open(self) -> Mapping[TopicPartition, OffsetSync]:
        """Create the topic if it is missing and read it to its end. Return each partition's latest sync."""
        new = NewTopic(self.topic, 1, self._replication_factor, {"cleanup.policy": "compact"})
        try:
            await Admin(self._client).create_topics([new], exist_ok=True)
        except KafkaError as e:
            raise with_setting(e, "offset-syncs.topic.replication.factor", self._replication_factor) from None
        self.read_until = await read_syncs(self._client, self.topic, lambda _, sync: self.adopt(sync))
        await self._producer.start()
        return self._latest

    def latest(self, tp: TopicPartition) -> OffsetSync | None:
        """Return the partition's last sync, by this process or an earlier one, or None."""
        return self._latest.get(tp)

    def adopt(self, sync: OffsetSync) -> None:
        """Use a sync of the topic as the partition's last one."""
        self._latest[sync.tp] = sync

    async def write(self, sync: OffsetSync, timestamp_ms: int) -> asyncio.Future[int | None]:
        """Send a sync. Return a future that ends when the sync is acknowledged; wait only for buffer space.

        Raises the error of an earlier sync, because a restart needs every sync to compute its position.
        """
        self._check()
        self._latest[sync.tp] = sync
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

    Return the topic's end.
    """
    tp, admin = TopicPartition(topic, 0), Admin(client)
    end = (await admin.list_offsets({tp: "latest"}))[tp].offset
    if position is None:
        position = (await admin.list_offsets({tp: "earliest"}))[tp].offset
    if position >= end:
        return end
    async with BatchFetcher(client, auto_offset_reset="earliest") as fetcher:
        fetcher.add(tp, position)
        while position < end:
            for fetched in await fetcher.fetch():
                for part in fetched.parts():
                    for offset, sync in _syncs_in(part.records):
                        take(offset, sync)
                position = fetched.next_offset
    return position


def _syncs_in(records: Iterable[Record]) -> Iterator[tuple[int, OffsetSync]]:
    for offset, _, key, value, headers in records:
        if key is not None and value is not None:
            yield offset, decode_sync(key, value, headers)
