"""Fetches the record batches of one range of offsets, and tells lost data from a broker that is slow."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from kafka_client import Admin, BatchFetcher, Client, Fetched
from kafka_client.errors import (
    ErrorCode,
    KafkaError,
    LogTruncated,
    MillstreamError,
    OffsetOutOfRange,
    RequestTimedOut,
)
from plugins.spark.data_loss import LogEndsEarly, PartitionDeleted, RecordsPurged, TopicReplaced, report
from plugins.spark.errors import DataLost
from plugins.spark.log_range import LogRange
from plugins.spark.options import ReadOptions
from plugins.spark.worker_connections import WorkerConnection


async def read_range(
    connection: WorkerConnection, options: ReadOptions, log_range: LogRange
) -> AsyncGenerator[Fetched, None]:
    """Yield the range's batches in order; the first and last may have records outside of it.

    Raises DataLost by its kind, RequestTimedOut and KafkaError; without failOnDataLoss it goes on behind the
    lost records, or ends.
    """
    client, fetcher = await connection.client(), await connection.fetcher()
    reader = _RangeReader(client, fetcher, options, log_range)
    try:
        async for fetched in reader.read():
            yield fetched
    finally:
        fetcher.remove(log_range.tp)


class _RangeReader:
    """The position in a range, and what to do when the log does not have it."""

    def __init__(
        self, client: Client, fetcher: BatchFetcher, options: ReadOptions, log_range: LogRange
    ) -> None:
        self._client = client
        self._fetcher = fetcher
        self._options = options
        self._range = log_range
        self._tp = log_range.tp
        self._position = log_range.start

    async def read(self) -> AsyncGenerator[Fetched, None]:
        if not await self._is_same_topic(refresh=False):
            return
        self._fetcher.add(self._tp, self._position, end=self._range.end)
        while self._position < self._range.end:
            try:
                chunks = await self._fetcher.fetch(timeout_ms=self._options.poll_timeout_ms)
            except LogTruncated as e:
                # Rows before the position were yielded already: continue at the position, or fail.
                available = e.diverging_offset if e.diverging_offset >= 0 else e.start
                self._report(LogEndsEarly(*self._tp, self._position, available), e)
                self._fetcher.seek(self._tp, self._position)
                continue
            except OffsetOutOfRange as e:
                if not await self._continue_in_log(e):
                    return
                continue
            except KafkaError as e:
                if e.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                self._report(PartitionDeleted(*self._tp, self._position), e)
                return
            if not chunks:
                await self._raise_missing()
                return
            for chunk in chunks:
                if self._is_of_other_topic(chunk.topic_id):
                    self._report(self._replaced(chunk.topic_id))
                    return
                self._position = chunk.next_offset
                yield chunk

    async def _continue_in_log(self, error: OffsetOutOfRange) -> bool:
        """Report the loss, and continue at the log's start if that is in the range."""
        if not await self._is_same_topic(refresh=True):
            return False
        if error.start < 0:  # No broker says where the log starts: nothing to continue at.
            raise LogEndsEarly(*self._tp, self._position, error.end) from error
        if self._position >= error.start:
            self._report(LogEndsEarly(*self._tp, self._position, error.end), error)
            return False
        self._report(RecordsPurged(*self._tp, self._position, error.start), error)
        if error.start >= self._range.end:
            return False
        self._position = error.start
        self._fetcher.seek(self._tp, self._position)
        return True

    async def _raise_missing(self) -> None:
        """Raise an error for records that did not come: the log ends before them, or a broker is slow."""
        timeout_ms = self._options.poll_timeout_ms
        slow = RequestTimedOut(f"{self._tp}: no records from {self._position} on for {timeout_ms} ms")
        try:
            end = (await Admin(self._client).list_offsets({self._tp: "latest"}))[self._tp].offset
        except MillstreamError as error:
            raise slow from error
        if end >= self._range.end:
            raise slow
        self._report(LogEndsEarly(*self._tp, self._range.end, end))

    async def _is_same_topic(self, *, refresh: bool) -> bool:
        """Return True if the topic is the planned one; ask a broker if the cache has another."""
        if not any(self._range.topic_id):
            return True
        topic = await self._topic(refresh)
        if topic is not None and self._is_of_other_topic(topic):
            topic = await self._topic(True)
        if topic is None:
            self._report(PartitionDeleted(*self._tp, self._position))
            return False
        if self._is_of_other_topic(topic):
            self._report(self._replaced(topic))
            return False
        return True

    async def _topic(self, refresh: bool) -> bytes | None:
        """Return the topic's id, or None if the cluster has no such topic for some time."""
        try:
            return (await self._client.topic(self._range.topic, refresh=refresh)).topic_id
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None

    def _is_of_other_topic(self, topic_id: bytes) -> bool:
        return any(topic_id) and any(self._range.topic_id) and topic_id != self._range.topic_id

    def _replaced(self, topic_id: bytes) -> TopicReplaced:
        return TopicReplaced(*self._tp, self._position, self._range.topic_id, topic_id)

    def _report(self, loss: DataLost, cause: Exception | None = None) -> None:
        if cause is not None:
            loss.__cause__ = cause
        report(loss, self._options.fail_on_data_loss)
