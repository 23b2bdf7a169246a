"""Fetching whole record batches from several partitions, ahead of the one who processes them.

The `Director` finds leaders, looks offsets up and validates them; one `NodeFetch` per broker long-polls and
fills the `FetchBuffer`.
State is plain and changed between awaits only, so the user's calls take effect at once.
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
"""Bytes, as they came, that one `fetch` hands out unless told otherwise."""
FETCH_RECORDS = 10_000
"""Records that one `fetch` hands out unless told otherwise: bytes do not say what they decompress to."""

RESET_OFFSETS: Mapping[str, int | None] = {"none": None, "earliest": EARLIEST, "latest": LATEST}


class BatchFetcher:
    """Long-polls the leaders of the assigned partitions and buffers what comes, within `buffer_max_bytes`.

    Methods that change the assignment are plain calls, made in the client's event loop, and take effect at
    once: a response to a request sent before a `seek` or `remove` is never handed out for the partition
    concerned. The buffer may pass its bound by one batch per broker (a batch is never cut).

    `fetch_min_bytes`, `fetch_max_wait_ms`: the broker answers once so much is there, or after so long.
    `fetch_max_bytes`, `max_partition_fetch_bytes`: bounds of one answer.
    `auto_offset_reset`: where to go on when a position is outside the log; "none" raises OffsetOutOfRange.
    `client_rack`: the reader's rack, by which a broker may name a replica nearby to fetch from (KIP-392).
    `fetch_sessions`: have brokers remember what is fetched, so that requests say only what changed (KIP-227);
    what is idle costs nothing then. Do without for a reader that lives for a few requests.

    Positions know the leader epoch of the record before them, so that a log that was truncated and written
    again is noticed (KIP-320): "none" raises LogTruncated, else reading goes on where the logs part, with a
    warning. Give the committed epoch with a committed offset; it is validated before anything is fetched.
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
        self._told = ExitStack()
        """Ends what metrics tell of this fetcher."""
        name, metrics = f"{client.client_id}-{self._director.lane}", client.metrics
        self._told.callback(
            metrics.add_each("kafka.consumer", "consumer-fetch-manager-metrics", self._values, client_id=name)
        )
        self._told.callback(metrics.add("millstream", "fetch-buffer", self.statistics, client_id=name))

    # --- assignment ---

    def assign(self, positions: Mapping[TopicPartition, int | OffsetAndMetadata]) -> None:
        """Fetch exactly these partitions; those kept at their present position lose nothing buffered."""
        for tp in [tp for tp in self._partitions if tp not in positions]:
            self.remove(tp)
        for tp, position in positions.items():
            wanted = OffsetAndMetadata.of(position)
            if tp not in self._partitions or self._partitions[tp].position != wanted.offset:
                self.add(tp, wanted.offset, wanted.leader_epoch)

    def add(self, tp: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Fetch this partition too, from `offset` (-2 earliest, -1 latest), before which there is a record of
        `leader_epoch`.
        """
        assert not self._closed, "add to a closed fetcher"
        self._buffer.add(tp, offset, leader_epoch)
        self._director.look_up()

    def remove(self, tp: TopicPartition) -> None:
        """Stop fetching the partition and drop what is buffered of it."""
        self._buffer.remove(tp)

    def seek(self, tp: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Go on from `offset` as `add` does; what is buffered of the partition is dropped."""
        self._buffer.seek(tp, offset, leader_epoch)
        self._director.look_up()

    def pause(self, tps: Iterable[TopicPartition]) -> None:
        """Hand out nothing of these partitions until `resume`; what is buffered is kept while there is
        room.
        """
        for tp in tps:
            self._partitions[tp].pause()

    def resume(self, tps: Iterable[TopicPartition]) -> None:
        """End a pause."""
        for tp in tps:
            self._partitions[tp].resume()
        self._ready.set()

    def paused(self) -> set[TopicPartition]:
        """The partitions paused now."""
        return {tp for tp, held in self._partitions.items() if held.paused}

    def failures(self) -> dict[TopicPartition, MillstreamError]:
        """The errors `fetch` has raised of partitions that wait for a `seek`."""
        return {tp: held.raised for tp, held in self._partitions.items() if held.raised is not None}

    def position(self, tp: TopicPartition) -> int:
        """The next offset `fetch` will hand out (-2/-1 while it is still looked up)."""
        return self._partitions[tp].position

    def leader_epoch(self, tp: TopicPartition, offset: int) -> int:
        """The leader epoch of the record before `offset`, to be committed with it; -1 if it was not read."""
        held = self._partitions.get(tp)
        return NO_EPOCH if held is None else held.epochs.before(offset)

    def lag(self, tp: TopicPartition) -> int | None:
        """Records of the log that `fetch` has not handed out yet, as of the last answer: up to the last
        stable offset with read_committed, else up to the high watermark. None: not known yet.
        """
        held = self._partitions[tp]
        end = held.last_stable_offset if self._is_committed else held.high_watermark
        return None if end < 0 or held.position < 0 else max(end - held.position, 0)

    def high_watermark(self, tp: TopicPartition) -> int:
        """Where the log ends for read_uncommitted, as a broker told last, with records or without; -1: not
        known yet.
        """
        return self._partitions[tp].high_watermark

    def last_stable_offset(self, tp: TopicPartition) -> int:
        """Where the log ends for read_committed; as `high_watermark`."""
        return self._partitions[tp].last_stable_offset

    def log_start_offset(self, tp: TopicPartition) -> int:
        """Where the log begins; as `high_watermark`. -1 always before Fetch v5."""
        return self._partitions[tp].log_start_offset

    @property
    def assignment(self) -> set[TopicPartition]:
        """The partitions fetched now, paused ones included."""
        return set(self._partitions)

    # --- fetching ---

    async def fetch(
        self,
        *,
        timeout_ms: int | None = None,
        max_bytes: int = FETCH_BYTES,
        max_records: int = FETCH_RECORDS,
    ) -> list[Fetched]:
        """What is buffered, up to about `max_bytes` as they came and `max_records`, but at least one batch;
        an empty list once `timeout_ms` is over.

        Raises, once for each time it happens: OffsetOutOfRange or LogTruncated with `auto_offset_reset`
        none, and KafkaError for what retrying does not mend, a topic that stays unknown among it. The
        partition then waits for a `seek`; others go on.
        """
        self._raise_error()
        if taken := self._take(max_bytes, max_records):
            return taken
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                while True:
                    self._ready.clear()
                    await self._ready.wait()
                    self._raise_error()
                    if taken := self._take(max_bytes, max_records):
                        return taken
        except TimeoutError:
            return []

    def fail(self, error: BaseException) -> None:
        """Let every `fetch` from now on raise `error`."""
        self._director.fail(error)

    async def close(self) -> None:
        """Stop fetching and drop the buffer."""
        self._closed = True
        self._told.close()
        self._buffer.clear()
        await self._director.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def statistics(self) -> dict[str, int]:
        """buffered_bytes and their bound, reserved_bytes (asked for and not yet there, within the same
        bound), partitions, requests_sent.
        """
        return {
            "buffered_bytes": self._buffer.buffered_bytes,
            "buffered_bytes_max": self._buffer.max_bytes,
            "reserved_bytes": self._buffer.reserved_bytes,
            "partitions": len(self._partitions),
            "requests_sent": self._director.metrics.requests_sent,
        }

    def _values(self) -> Iterator[tuple[Mapping[str, str], Values]]:
        """The fetcher's own, then each partition's."""
        lags = {tp: self.lag(tp) for tp in self._partitions}
        yield {}, self._director.metrics.values(lag_max=max((lag or 0 for lag in lags.values()), default=0))
        for tp, lag in lags.items():
            if lag is not None:
                yield {"topic": tp.topic, "partition": str(tp.partition)}, {"records-lag": lag}

    def _take(self, max_bytes: int, max_records: int) -> list[Fetched]:
        taken = self._buffer.take(max_bytes, max_records)
        for fetched in taken:
            self._director.metrics.came(fetched.record_count, len(fetched.buffer))
        return taken

    def _raise_error(self) -> None:
        if (error := self._director.failure or self._buffer.take_error()) is not None:
            raise error
