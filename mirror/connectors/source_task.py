"""MirrorSourceTask: copies whole batches of its partitions, and writes the offset syncs of what was written.

A batch's source offset is that of its last record. A task without a stored offset of a partition begins where
`auto.offset.reset` says. An offset that the source does not have fails the task: records were lost, or the
topic was created again, and only an operator can say where to go on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from connect.api import BatchSourceTask, RawBatch
from kafka_client import BatchFetcher, Fetched, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError, LogTruncated, OffsetOutOfRange, UnreadableBatch
from kafka_client.fetcher.parts import reading
from mirror.connectors.assignment import ASSIGNED_PARTITIONS, parse_partitions
from mirror.connectors.clients import FlowClients
from mirror.connectors.settings import MirrorSourceConfig, flow_of
from mirror.connectors.source_offsets import OFFSET, last_copied, source_partition
from mirror.connectors.sync_writer import SyncWriter
from mirror.errors import NotFetched, RecordsLost, SourceRecreated, SourceTruncated
from mirror.forward_batch import Passed, pass_on
from mirror.unreadable import UnreadableSkips, explain_unreadable

log = logging.getLogger(__name__)

POLL_BYTES = 4 << 20
BUFFER_BYTES = 16 << 20
_STARTS = {"earliest": -2, "latest": -1}
_DELETED = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class CopiedBatch(RawBatch):
    """A polled batch, with its place in the source for the offset sync."""

    tp: TopicPartition
    passed: Passed


class MirrorSourceTask(BatchSourceTask):
    """Copies the partitions in `task.assigned.partitions`."""

    async def start(self, config: Mapping[str, str]) -> None:
        """Connect, and begin after the stored offsets. Raises MillstreamError if a cluster fails."""
        settings = self._settings = flow_of(config, MirrorSourceConfig)
        self._poll_ms = MirrorSourceConfig.parse(config).consumer_poll_timeout_ms
        self._skips = UnreadableSkips(settings.skip_unreadable)
        self._clients = FlowClients(settings, f"{self.context.connector}-{self.context.task_id}")
        self._syncs: SyncWriter | None = None
        self._topic_ids: dict[str, bytes] = {}
        self._skipped: dict[TopicPartition, int] = {}
        """Last offset of a partition whose last batches were left out, such as markers of transactions."""
        await self._clients.open()
        defer = self._clients.exits.push_async_callback
        self._fetcher = BatchFetcher(
            self._clients.source, isolation_level="read_committed", buffer_max_bytes=BUFFER_BYTES
        )
        defer(self._fetcher.close)
        if settings.emit_offset_syncs:
            self._syncs = SyncWriter(
                self._clients.of_syncs, settings.offset_syncs_topic, settings.offset_lag_max
            )
            await self._syncs.open()
            defer(self._syncs.close)
        for tp in parse_partitions(config[ASSIGNED_PARTITIONS]):
            last = last_copied(self.context.offsets.offset(self._source_partition(tp)))
            begin = _STARTS[settings.auto_offset_reset] if last is None else last + 1
            self._fetcher.add(tp, begin)

    async def poll(self) -> list[CopiedBatch]:
        """Return the next batches. Raises MirrorError for a partition that cannot go on."""
        batches: list[CopiedBatch] = []
        skipped: dict[TopicPartition, int | None] = {}
        for fetched in await self._fetch():
            self._check_topic(fetched)
            try:
                batches += self._batches(fetched, skipped)
            except UnreadableBatch as e:
                raise NotFetched(fetched.tp, explain_unreadable(e)) from e
        # Not before the last partition is read: offsets of a failed poll would cover batches never written.
        for tp, last in skipped.items():
            self._skipped.pop(tp, None)
            if last is not None:
                self._skipped[tp] = last
        return batches

    async def commit_batch(self, batch: RawBatch, offset: int | None) -> None:
        """Take note of the offsets for a sync. `offset` is None if the batch is not in the target."""
        if self._syncs is None or offset is None:
            return
        assert isinstance(batch, CopiedBatch)
        passed = batch.passed
        last = (passed.next_offset - 1, offset + passed.records - 1)
        self._syncs.copied(batch.tp, (passed.first_offset, offset), last)
        await self._syncs.fire()

    def update_offsets(self) -> Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Return the offsets after batches that were left out."""
        skipped, self._skipped = self._skipped, {}
        return [(self._source_partition(tp), {OFFSET: last}) for tp, last in skipped.items()]

    async def commit(self) -> None:
        """Write a sync of the last record of each partition."""
        if self._syncs is not None:
            self._syncs.promote_delayed()
            await self._syncs.fire()

    def statistics(self) -> Mapping[str, float]:
        """Return the bytes that were fetched and not polled, their bound, and skipped batches."""
        fetcher = getattr(self, "_fetcher", None)
        fetched = {} if fetcher is None else fetcher.statistics()
        syncs = 0 if fetcher is None or self._syncs is None else self._syncs.in_flight
        return {
            "partitions": fetched.get("partitions", 0),
            "buffered_bytes": fetched.get("buffered_bytes", 0),
            "buffered_bytes_max": BUFFER_BYTES,
            "syncs_in_flight": syncs,
        }

    async def stop(self) -> None:
        """Disconnect."""
        clients = getattr(self, "_clients", None)
        if clients is not None:
            await clients.close()

    def _source_partition(self, tp: TopicPartition) -> dict[str, Any]:
        return source_partition(self._settings.source.alias, tp)

    async def _fetch(self) -> list[Fetched]:
        try:
            return await self._fetcher.fetch(timeout_ms=self._poll_ms, max_bytes=POLL_BYTES)
        except OffsetOutOfRange as e:
            raise self._out_of_range(e) from e
        except KafkaError as e:
            deleted = [tp for tp, error in self._fetcher.failures().items() if error is e]
            if e.code not in _DELETED or not deleted:
                raise
            for tp in deleted:
                log.warning("%s: %s was deleted in the source", self.context.connector, tp)
                self._fetcher.remove(tp)
            return []

    def _out_of_range(self, error: OffsetOutOfRange) -> RecordsLost | SourceRecreated | SourceTruncated:
        tp = TopicPartition(error.topic, error.partition)
        if isinstance(error, LogTruncated):
            return SourceTruncated(tp, str(error))
        way_on = "To go on all the same, stop the connector and alter its offsets"
        what = f"offset {error.offset} is wanted, the source has {error.start} to {error.end}. {way_on}"
        return SourceRecreated(tp, what) if error.offset > error.end >= 0 else RecordsLost(tp, what)

    def _check_topic(self, fetched: Fetched) -> None:
        """Raise SourceRecreated if the topic was deleted and created again while the task runs."""
        if any(fetched.topic_id):
            previous = self._topic_ids.setdefault(fetched.tp.topic, fetched.topic_id)
            if previous != fetched.topic_id:
                raise SourceRecreated(
                    fetched.tp, f"topic id {fetched.topic_id.hex()}, it was {previous.hex()}"
                )

    def _batches(self, fetched: Fetched, skipped: dict[TopicPartition, int | None]) -> Iterable[CopiedBatch]:
        """Yield the batches to write. Note the last offset of those left out after them in `skipped`."""
        tp, position = fetched.tp, fetched.position
        partition = self._source_partition(tp)
        topic = self._settings.remote_topic(tp.topic)
        last = position - 1
        for header, data in fetched.batches(on_unreadable=self._skips.skip):
            if unreadable := self._skips.named_and_unreadable(tp, header, data):
                self._skips.skip(unreadable)
                continue
            with reading(tp, header):
                passed = pass_on(header, data, position)
            if passed is None:
                continue
            last = passed.next_offset - 1
            batch = CopiedBatch(topic, tp.partition, passed.batch, partition, {OFFSET: last})
            batch.tp, batch.passed = tp, passed
            yield batch
        skipped[tp] = fetched.next_offset - 1 if fetched.next_offset - 1 > last else None
