"""Fetches whole record batches from several partitions, ahead of their processing.

The `Director` finds leaders, looks up offsets and validates them. One `NodeFetch` per broker long-polls and
fills the `FetchBuffer`. State only changes between awaits, so the user's calls take effect at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Literal, Self

from kafka_client.cluster.cluster import Client
from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.errors import MillstreamError
from kafka_client.fetcher.buffer import FetchBuffer
from kafka_client.fetcher.director import Director
from kafka_client.fetcher.epochs import NO_EPOCH
from kafka_client.fetcher.fetched import Fetched
from kafka_client.fetcher.node import FetchSettings
from kafka_client.fetcher.offsets import EARLIEST, LATEST, IsolationLevel
from kafka_client.metrics.metrics import Values
from kafka_client.topic_partition import TopicPartition

OffsetReset = Literal["none", "earliest", "latest"]

FETCH_BYTES = 1_048_576
"""Default bytes that one `fetch` returns, in their compressed size."""
FETCH_RECORDS = 10_000
"""Default records that one `fetch` returns, since bytes do not show how much they decompress to."""

RESET_OFFSETS: Mapping[str, int | None] = {"none": None, "earliest": EARLIEST, "latest": LATEST}


class BatchFetcher:
    """Long-polls the leaders of the assigned partitions and buffers their batches, within `buffer_max_bytes`.

    Methods that change the assignment are plain calls in the client's event loop, and take effect at once. A
    response to a request from before a `seek` or `remove` is never returned for that partition. The buffer
    may exceed its bound by one batch per broker (a batch is never cut).

    `fetch_min_bytes`, `fetch_max_wait_ms`: the broker answers once it has this many bytes, or after this
    time.
    `fetch_max_bytes`, `max_partition_fetch_bytes`: bounds of one response.
    `auto_offset_reset`: where to continue if a position is outside the log; "none" raises OffsetOutOfRange.
    `client_rack`: the reader's rack; a broker may name a nearby replica to fetch from (KIP-392).
    `fetch_sessions`: have brokers remember the partitions, so that requests only name changes (KIP-227). Idle
    partitions cost nothing then. Do without for a reader that only makes a few requests.

    Positions include the leader epoch of the record before them, so that a truncated and rewritten log is
    noticed (KIP-320). Then "none" raises LogTruncated; otherwise reading continues where the logs diverge,
    with a warning. Pass the committed epoch with a committed offset; it is validated before anything is
    fetched.
    """

    def __init__(
        self,
        client: Client,
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        fetch_min_bytes: int = 1,
        fetch_max_wait_ms: int = 500,
        fetch_max_bytes: int = 52_428_800,
        max_partition_fetch_bytes: int = 1_048_576,
        buffer_max_bytes: int = 67_108_864,
        auto_offset_reset: OffsetReset = "none",
        client_rack: str = "",
        fetch_sessions: bool = True,
    ) -> None:
        self.client = client
        settings = FetchSettings(
            isolation_level=isolation_level,
            fetch_min_bytes=fetch_min_bytes,
            fetch_max_wait_ms=fetch_max_wait_ms,
            fetch_max_bytes=fetch_max_bytes,
            max_partition_fetch_bytes=max_partition_fetch_bytes,
            client_rack=client_rack,
            fetch_sessions=fetch_sessions,
        )
        self._buffer = FetchBuffer(buffer_max_bytes)
        self._partitions = self._buffer.partitions
        self._director = Director(client, self._buffer, settings, RESET_OFFSETS[auto_offset_reset])
        self._ready = self._director.ready
        self._is_committed = isolation_level == "read_committed"
        self._closed = False
        self._registrations = ExitStack()
        """Removes the fetcher's metrics at its close."""
        name, metrics = f"{client.client_id}-{self._director.lane}", client.metrics
        self._registrations.callback(
            metrics.add_each("kafka.consumer", "consumer-fetch-manager-metrics", self._values, client_id=name)
        )
        self._registrations.callback(
            metrics.add("millstream", "fetch-buffer", self.statistics, client_id=name)
        )

    # --- assignment ---

    def assign(self, positions: Mapping[TopicPartition, int | OffsetAndMetadata]) -> None:
        """Fetch exactly these partitions; those at an unchanged position keep their buffered batches."""
        for tp in [tp for tp in self._partitions if tp not in positions]:
            self.remove(tp)
        for tp, position in positions.items():
            target = OffsetAndMetadata.of(position)
            if tp not in self._partitions or self._partitions[tp].position != target.offset:
                self.add(tp, target.offset, target.leader_epoch)

    def add(
        self, tp: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH, *, end: int | None = None
    ) -> None:
        """Fetch this partition too, from `offset` (-2 earliest, -1 latest) on.

        The record before `offset` is of `leader_epoch`. Nothing is requested from `end` on; the last batch
        may have later records.
        """
        assert not self._closed, "add to a closed fetcher"
        self._buffer.add(tp, offset, leader_epoch, end)
        self._director.look_up()

    def remove(self, tp: TopicPartition) -> None:
        """Stop fetching the partition and drop its buffered batches."""
        self._buffer.remove(tp)

    def seek(self, tp: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Continue at `offset` as `add` does, and drop the partition's buffered batches."""
        self._buffer.seek(tp, offset, leader_epoch)
        self._director.look_up()

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Return nothing of these partitions until `resume`; buffered batches stay while there is room."""
        for tp in tps:
            self._partitions[tp].pause()

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """End a pause."""
        for tp in tps:
            self._partitions[tp].resume()
        self._ready.set()

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused now."""
        return {tp for tp, position in self._partitions.items() if position.paused}

    def failures(self) -> dict[TopicPartition, MillstreamError]:
        """Return the errors that `fetch` has raised for partitions that wait for a `seek`."""
        return {
            tp: position.raised for tp, position in self._partitions.items() if position.raised is not None
        }

    def position(self, tp: TopicPartition) -> int:
        """Return the next offset that `fetch` will return (-2 or -1 while it is being looked up)."""
        return self._partitions[tp].position

    def leader_epoch(self, tp: TopicPartition, offset: int) -> int:
        """Return the leader epoch of the record before `offset`, to be committed with it; -1 if it was not
        read.
        """
        position = self._partitions.get(tp)
        return NO_EPOCH if position is None else position.epochs.before(offset)

    def lag(self, tp: TopicPartition) -> int | None:
        """Return how many records `fetch` has not returned yet, as of the last response; None if unknown.

        They are counted up to the last stable offset with read_committed, else up to the high watermark.
        """
        position = self._partitions[tp]
        end = position.last_stable_offset if self._is_committed else position.high_watermark
        return None if end < 0 or position.position < 0 else max(end - position.position, 0)

    def high_watermark(self, tp: TopicPartition) -> int:
        """Return the log's end for read_uncommitted, as of a broker's last response; -1 if unknown."""
        return self._partitions[tp].high_watermark

    def last_stable_offset(self, tp: TopicPartition) -> int:
        """Return the log's end for read_committed; see `high_watermark`."""
        return self._partitions[tp].last_stable_offset

    def log_start_offset(self, tp: TopicPartition) -> int:
        """Return the log's start; see `high_watermark`. Always -1 before Fetch v5."""
        return self._partitions[tp].log_start_offset

    @property
    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions, including paused ones."""
        return set(self._partitions)

    # --- fetching ---

    async def fetch(
        self,
        *,
        timeout_ms: int | None = None,
        max_bytes: int = FETCH_BYTES,
        max_records: int = FETCH_RECORDS,
    ) -> list[Fetched]:
        """Return buffered batches, at least one, up to about `max_bytes` (compressed) and `max_records`.

        Returns an empty list once `timeout_ms` is over. Raises OffsetOutOfRange or LogTruncated with
        `auto_offset_reset` none. Raises KafkaError if a retry does not help, such as for a topic that stays
        unknown. Each error is raised once. Its partition then waits for a `seek`; others continue.
        """
        self._raise_error()
        if batches := self._take(max_bytes, max_records):
            return batches
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                while True:
                    self._ready.clear()
                    await self._ready.wait()
                    self._raise_error()
                    if batches := self._take(max_bytes, max_records):
                        return batches
        except TimeoutError:
            return []

    def fail(self, error: BaseException) -> None:
        """Have every `fetch` raise `error` from now on."""
        self._director.fail(error)

    async def close(self) -> None:
        """Stop fetching and drop the buffer."""
        self._closed = True
        self._registrations.close()
        self._buffer.clear()
        await self._director.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def statistics(self) -> dict[str, int]:
        """Return buffered_bytes with their bound, reserved_bytes, partitions and requests_sent.

        Reserved bytes have been requested and have not arrived; they count for the same bound.
        """
        return {
            "buffered_bytes": self._buffer.buffered_bytes,
            "buffered_bytes_max": self._buffer.max_bytes,
            "reserved_bytes": self._buffer.reserved_bytes,
            "partitions": len(self._partitions),
            "requests_sent": self._director.metrics.requests_sent,
        }

    def _values(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        """Yield the fetcher's own values, then each partition's."""
        lags = {tp: self.lag(tp) for tp in self._partitions}
        yield {}, self._director.metrics.values(lag_max=max((lag or 0 for lag in lags.values()), default=0))
        for tp, lag in lags.items():
            if lag is not None:
                yield {"topic": tp.topic, "partition": str(tp.partition)}, {"records-lag": lag}

    def _take(self, max_bytes: int, max_records: int) -> list[Fetched]:
        batches = self._buffer.take(max_bytes, max_records)
        for fetched in batches:
            self._director.metrics.record(fetched.record_count, len(fetched.buffer))
        return batches

    def _raise_error(self) -> None:
        if (error := self._director.failure or self._buffer.take_error()) is not None:
            raise error
