"""Fetch, 4 to 18: batches as they lie in the log, as slices of its files.

The first partition with data gives at least one batch, however small the limits; a position in the middle of
a batch gives the whole batch. Below ``min_bytes`` the request waits up to ``max_wait_ms`` as a delayed
operation of its partitions. There are no fetch sessions: session id 0 tells clients to send every request in
full (KIP-227).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logd.broker.delayed import Delayed
from logd.broker.partition import Partition
from logd.errors import ErrorCode, KafkaError
from logd.records.slice import FileSlice
from logd.wire.fetch import (
    FetchPartition,
    PartitionFetched,
    ReceivedFetch,
    Topic,
    decode_fetch_request,
    encode_fetch_response,
)

if TYPE_CHECKING:
    from logd.api.answer import Answer
    from logd.api.context import RequestContext
    from logd.broker.broker import Broker

READ_COMMITTED = 1
TOPIC_IDS_FROM = 13


def serve(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> Answer | Delayed[Answer]:
    """Answer at once when there is enough, an error, or nothing to wait for; otherwise wait."""
    request = decode_fetch_request(view, version, pos, end)
    if request.session_id != 0:
        return encode_fetch_response(
            [], version, correlation_id, error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        )
    read = FetchRead(context.broker, request, version, correlation_id)
    answer = read(request.max_wait_ms <= 0 or not request.topics)
    if answer is not None:
        return answer
    return Delayed(context.broker.loop, read.partitions, request.max_wait_ms, read)


class FetchRead:
    """One request's reading; called again whenever there is news, until it answers.

    ``partitions`` are those that were found, after the first call.
    """

    __slots__ = ("_broker", "_correlation_id", "_request", "_version", "partitions")

    def __init__(self, broker: Broker, request: ReceivedFetch, version: int, correlation_id: int) -> None:
        self._broker = broker
        self._request = request
        self._version = version
        self._correlation_id = correlation_id
        self.partitions: list[Partition] = []

    def __call__(self, final: bool) -> Answer | None:
        """The response frame; None when there is too little, no error and ``final`` is false."""
        request = self._request
        catalog = self._broker.catalog
        find = catalog.topics.get if self._version < TOPIC_IDS_FROM else catalog.topics_by_id.get
        left = min(request.max_bytes, self._broker.config.fetch_max_bytes)
        found: list[Partition] = []
        size = 0
        answers: list[tuple[Topic, list[PartitionFetched[FileSlice]]]] = []
        for name, wanted in request.topics:
            topic = find(name)  # type: ignore[arg-type]
            fetched: list[PartitionFetched[FileSlice]] = []
            for asked in wanted:
                try:
                    if topic is None:
                        raise _unknown(name)
                    partition = topic.partition(asked.partition)
                    found.append(partition)
                    piece, answer = self._read(partition, asked, left - size, size == 0)
                    size += piece
                except KafkaError as error:
                    answer = PartitionFetched(asked.partition, error.code)
                    final = True
                fetched.append(answer)
            answers.append((name, fetched))
        if not final and size < request.min_bytes:
            self.partitions = found
            return None
        return encode_fetch_response(answers, self._version, self._correlation_id)

    def _read(
        self, partition: Partition, asked: FetchPartition, left: int, first: bool
    ) -> tuple[int, PartitionFetched[FileSlice]]:
        """(bytes read, answer) of one partition; ``left`` is below zero once the limit is passed."""
        partition.check_leader_epoch(asked.current_leader_epoch)
        committed = self._request.isolation_level == READ_COMMITTED
        piece: FileSlice | None = None
        limit = min(asked.max_bytes, left)
        if limit > 0 or first:
            piece = partition.read(
                asked.fetch_offset, max(limit, 0), committed=committed, min_one_batch=first
            )
        end = partition.high_watermark
        answer = PartitionFetched(
            asked.partition,
            0,
            end,
            partition.last_stable_offset,
            partition.log_start_offset,
            piece if piece is not None else b"",
            () if committed else None,
        )
        return (piece.length if piece is not None else 0), answer


def _unknown(name: Topic) -> KafkaError:
    if isinstance(name, bytes):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of id {name.hex()}")
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
