"""The stores of global tables: read to the ends of their topics before tasks begin, and kept up with them.

Every instance reads all partitions of these topics, with a fetcher of its own and outside the group. State is
kept in the folder ``global``, and used again unless it may have missed deletions (see `runtime.restore`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafka_client import Admin, BatchFetcher, Client, TopicPartition
from kafka_client.errors import KafkaError, OffsetOutOfRange, UnreadableBatch
from kafka_client.private_files import DIRECTORY_MODE
from kafka_client.records import Record
from streams.config import StreamsConfig
from streams.errors import RegistryUnavailable, SerializationError, StateError, TopologyError
from streams.graph import SourceNode
from streams.handlers import ErrorContext, ExceptionHandler, answering, log_and_fail
from streams.runtime.restore.global_checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from streams.runtime.restore.restore import (
    DELETE_RETENTION,
    FETCHED_AHEAD_BYTES,
    MAX_FETCH_BYTES,
    USABLE_SHARE,
)
from streams.runtime.task.environment import Clock
from streams.runtime.task.global_processor import GlobalProcessor
from streams.runtime.threads.worker import Worker
from streams.state import CachedStore, RocksMemory, open_store
from streams.topology import Subtopology, Topology

log = logging.getLogger(__name__)

CHECKPOINT = ".checkpoint"


class GlobalStore:
    """The store of a global table or of a global processor, and its topic."""

    def __init__(
        self,
        store: CachedStore,
        source: SourceNode,
        on_bad_record: ExceptionHandler = log_and_fail,
        *,
        cache_max_bytes: int = 0,
        processor: GlobalProcessor | None = None,
    ) -> None:
        self.store = store
        self.topic = source.topics[0]
        self.dropped = 0
        """The number of dropped records: without a key, or not readable."""
        self._source = source
        self._answer = answering(on_bad_record)
        self._cache_max_bytes = cache_max_bytes
        self._processor = processor

    def apply(self, partition: int, records: Sequence[Record]) -> None:
        """Apply records of a partition to the store, and write them to its backend."""
        update, deserialize = self.store.update, self._source.value_serde.deserialize
        deserialize_key, processor = self._source.key_serde.deserialize, self._processor
        timestamp_of = self._source.timestamp_extractor
        wants_key = timestamp_of is not None or processor is not None
        for record in records:
            offset, timestamp, key, value, headers = record
            if key is None:
                self.dropped += 1
                continue
            try:
                decoded = None if value is None else deserialize(value)
                decoded_key = deserialize_key(key) if wants_key else None
                if timestamp_of is not None:
                    timestamp = timestamp_of(decoded_key, decoded, timestamp)
            except Exception as error:
                self._leave_out(partition, record, error)
                continue
            if processor is None:
                update(key, decoded, timestamp)
            else:
                processor.process(partition, offset, decoded_key, decoded, timestamp, headers)
        self.store.drain()
        self.store.written(None)
        if self.store.cache_bytes > self._cache_max_bytes:
            self.store.shrink()

    @property
    def is_repeatable(self) -> bool:
        """True if records may be applied twice; a processor might count them twice."""
        return self._processor is None

    def close(self) -> None:
        """Close the processor and the store."""
        if self._processor is not None:
            self._processor.close()
        self.store.close()

    def leave_out_batch(self, error: UnreadableBatch) -> None:
        """Ask the handler about an unreadable batch. Raises SerializationError if the handler fails."""
        problem = SerializationError(
            f"{self._source.name} cannot read the batch of offsets {error.first_offset} to "
            f"{error.last_offset}: {error.reason}",
            self.topic,
            error.partition,
            error.first_offset,
        )
        problem.__cause__ = error
        context = ErrorContext(
            error=problem,
            node=self._source.name,
            task_id="global",
            topic=self.topic,
            partition=error.partition,
            offset=error.first_offset,
        )
        if self._answer(context).answer == "fail":
            raise problem from error
        log.warning("batch left out: %s", problem)
        self.dropped += error.record_count

    def _leave_out(self, partition: int, record: Record, error: Exception) -> None:
        """Ask the handler about an unreadable record. Raises SerializationError if the handler fails.

        Nothing is committed here, so there are no dead letters.
        """
        if isinstance(error, RegistryUnavailable):
            raise error
        offset, timestamp, key, value, headers = record
        problem = SerializationError(
            f"{self._source.name} cannot read the record: {error}", self.topic, partition, offset
        )
        response = self._answer(
            ErrorContext(
                error=problem,
                node=self._source.name,
                task_id="global",
                topic=self.topic,
                partition=partition,
                offset=offset,
                timestamp=timestamp,
                headers=headers,
                key=key,
                value=value,
            )
        )
        if response.answer == "fail":
            raise problem from error
        log.warning("record left out: %s", problem)
        self.dropped += 1


class GlobalStores:
    """All global tables of one instance: `start` before the group is joined, `run` beside the tasks."""

    def __init__(
        self,
        client: Client,
        topology: Topology,
        config: StreamsConfig,
        folder: Path,
        worker: Worker,
        clock: Clock,
        memory: RocksMemory,
    ) -> None:
        self.stores: dict[str, CachedStore] = {}
        """The stores by name, from `start` on. Tasks read them."""
        self._client = client
        self._topology = topology
        self._config = config
        self._folder = folder
        self._worker = worker
        self._clock = clock
        self._memory = memory
        self._by_topic: dict[str, GlobalStore] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._fetcher: BatchFetcher | None = None

    async def start(self) -> None:
        """Open the stores and read the topics to their current ends.

        Raises TopologyError for a topic that does not exist.
        """
        if not self._topology.global_stores:
            return
        await self._worker.run(self._open)
        partitions, topic_ids = await self._partitions()
        admin, level = Admin(self._client), self._config.isolation_level
        starts = await admin.list_offsets(dict.fromkeys(partitions, "earliest"))
        ends = await admin.list_offsets(dict.fromkeys(partitions, "latest"), isolation_level=level)
        checkpoint = read_checkpoint(self._folder / CHECKPOINT)
        for topic, each in self._by_topic.items():
            spans = {tp: (starts[tp].offset, ends[tp].offset) for tp in partitions if tp.topic == topic}
            self._positions.update(await self._begin(admin, each, spans, topic_ids[topic], checkpoint))
        await self._worker.run(self._forget_unrepeatable, checkpoint)
        self._fetcher = BatchFetcher(
            self._client,
            isolation_level=level,
            max_partition_fetch_bytes=MAX_FETCH_BYTES,
            buffer_max_bytes=FETCHED_AHEAD_BYTES,
            fetch_max_wait_ms=500,
        )
        self._fetcher.assign(self._positions)
        while any(self._positions[tp] < ends[tp].offset for tp in partitions):
            await self._step()
        log.info("global stores %s: read to the end", " ".join(self.stores))

    def _forget_unrepeatable(self, checkpoint: Checkpoint) -> None:
        """Remove from the checkpoint the stores whose records must not be applied twice.

        After a kill such a store is read again from the start.
        """
        left = {tp: at for tp, at in checkpoint.offsets.items() if self._is_repeatable(tp)}
        if left.keys() != checkpoint.offsets.keys():
            write_checkpoint(self._folder / CHECKPOINT, left, checkpoint.written_at)

    def _is_repeatable(self, tp: TopicPartition) -> bool:
        each = self._by_topic.get(tp.topic)
        return each is None or each.is_repeatable

    async def _begin(
        self,
        admin: Admin,
        each: GlobalStore,
        spans: Mapping[TopicPartition, tuple[int, int]],
        topic_id: bytes,
        checkpoint: Checkpoint,
    ) -> dict[TopicPartition, int]:
        """Return the offsets from which to read. Empties a store that cannot be used again."""
        problems = [_why_void(checkpoint.offsets.get(tp), start, end) for tp, (start, end) in spans.items()]
        why = next(filter(None, problems), "") or await self._why_too_old(
            admin, each.topic, checkpoint.written_at
        )
        if each.store.backend.origin != topic_id:
            why = "is of an earlier topic of that name, or there is none"
        if not why:
            return {tp: checkpoint.offsets[tp] for tp in spans}
        log.info("global store %s: reading all of %s, local state %s", each.store.name, each.topic, why)
        await self._worker.run(each.store.backend.wipe, topic_id)
        return {tp: start for tp, (start, _) in spans.items()}

    async def run(self) -> None:
        """Apply the topics' new records until cancelled."""
        while self._fetcher is not None:
            await self._step()

    async def _step(self) -> None:
        assert self._fetcher is not None
        try:
            answers = await self._fetcher.fetch()
        except OffsetOutOfRange as lost:
            raise StateError(
                f"records of {lost.topic}-{lost.partition} were deleted before this instance read them into "
                "a global table; started again it reads all there is"
            ) from lost
        for fetched in answers:
            store = self._by_topic[fetched.tp.topic]
            for part in fetched.parts(on_unreadable=store.leave_out_batch):
                await self._worker.run(store.apply, fetched.tp.partition, part.records)
                self._positions[fetched.tp] = part.next_offset

    def _open(self) -> None:
        for part in (part for part in self._topology.subtopologies if part.is_global):
            (source,), (name,) = part.sources, part.stores
            spec, folder = self._topology.stores[name].of_topic(source.topics[0]), self._folder / "rocksdb"
            store = self.stores[name] = open_store(spec, folder, self._memory, on_damage="restart")
            self._by_topic[source.topics[0]] = GlobalStore(
                store,
                source,
                self._config.deserialization_exception_handler,
                cache_max_bytes=self._config.statestore_cache_max_bytes,
                processor=self._processor(part, store) if source.by_processor else None,
            )

    def _processor(self, part: Subtopology, store: CachedStore) -> GlobalProcessor:
        return GlobalProcessor(
            part,
            store,
            self._clock,
            application_id=self._config.application_id,
            state_dir=self._made_folder,
        )

    def _made_folder(self) -> Path:
        self._folder.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        return self._folder

    async def _partitions(self) -> tuple[list[TopicPartition], dict[str, bytes]]:
        metadata = await self._client.metadata(list(self._by_topic), allow_missing=True)
        for topic in self._by_topic:
            if topic not in metadata.topics:
                raise TopologyError(
                    f"global table's topic {topic!r} does not exist; create it before the application starts"
                )
        partitions = [
            TopicPartition(name, number)
            for name, topic in metadata.topics.items()
            for number in range(topic.partition_count)
        ]
        return partitions, {name: topic.topic_id for name, topic in metadata.topics.items()}

    async def _why_too_old(self, admin: Admin, topic: str, written_at: int) -> str:
        """Return why tombstones after the checkpoint may be deleted; "" if all are there."""
        try:
            configs = await admin.describe_configs(topic, keys=[DELETE_RETENTION])
        except KafkaError as error:
            if error.retriable:
                raise
            return f"has an unknown age: {DELETE_RETENTION} cannot be read ({error})"
        age = self._clock() - written_at
        if 0 <= age <= USABLE_SHARE * int(configs[DELETE_RETENTION].value or 0):
            return ""
        return f"is {age} ms old"

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The next offset of each partition to be read."""
        return self._positions

    def positions_of(self, store: str) -> Mapping[TopicPartition, int]:
        """Return, by partition of the store's topic, the offset of the next record to be read."""
        return {
            tp: offset
            for tp, offset in list(self._positions.items())
            if self._by_topic[tp.topic].store.name == store
        }

    async def close(self) -> None:
        """Close the stores and write their positions; call it when nobody reads them any more."""
        if self._fetcher is not None:
            await self._fetcher.close()
        await self._worker.run(self._close_stores)

    def _close_stores(self) -> None:
        for name in [*self._by_topic]:
            self._by_topic.pop(name).close()
        if self._positions:
            write_checkpoint(self._folder / CHECKPOINT, self._positions)


def _why_void(position: int | None, start: int, end: int) -> str:
    """Return why reading cannot go on from a position; "" if it can."""
    if position is None:
        return "is not complete"
    if position < start:
        return f"at {position} lies before the log start {start}"
    return f"at {position} is ahead of the log end {end}" if position > end else ""
