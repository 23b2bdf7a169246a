"""A partition of `__consumer_offsets`, as the coordinator core writes and reads it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

from logd.broker.partition import Partition
from logd.errors import ErrorCode, KafkaError, MalformedMessage
from logd.groups import CoordinatorRecord, decode_record, encode_record
from logd.records import COMMIT, Codec, Record, build_batch, decode_records, iter_batches, parse_control

log = logging.getLogger("logd.broker")


class GroupLog:
    """`logd.groups.RecordLog` over a partition."""

    def __init__(self, partition: Partition, codec: Codec, now_ms: Callable[[], int]) -> None:
        self._partition = partition
        self._codec = codec
        self._now_ms = now_ms

    def append(self, records: Sequence[CoordinatorRecord]) -> None:
        """Append all of them as one batch. KafkaError: RECORD_LIST_TOO_LARGE, or what the log says."""
        now_ms = self._now_ms()
        try:
            written = [(now_ms, *encode_record(record), ()) for record in records]
        except ValueError as error:
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, str(error)) from None
        batch = build_batch(written, codec=self._codec)
        limit = self._partition.max_message_bytes
        if len(batch) > limit:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE, f"{len(batch)} bytes for {self._partition}, at most {limit}"
            )
        self._partition.append(batch, now_ms)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to recover."""
        return self._partition.log_start_offset == self._partition.high_watermark

    def read(self) -> Iterator[CoordinatorRecord]:
        """Everything that counts, in order: of transactions only what was committed, when it was.

        A record that cannot be read is reported and left out: the other groups have to go on.
        """
        open_transactions: dict[int, list[Record]] = {}
        for chunk in self._partition.read_all():
            for position, header in iter_batches(chunk):
                records = decode_records(chunk, position)
                if header.is_control:
                    ended = open_transactions.pop(header.producer_id, [])
                    committed = bool(records) and parse_control(records[0][2])[1] == COMMIT
                    records = ended if committed else []
                elif header.is_transactional:
                    open_transactions.setdefault(header.producer_id, []).extend(records)
                    continue
                yield from self._decode(records)

    def _decode(self, records: Sequence[Record]) -> Iterator[CoordinatorRecord]:
        for offset, _, key, value, _ in records:
            try:
                decoded = None if key is None else decode_record(key, value)
            except MalformedMessage as error:
                log.warning("%s, offset %d cannot be read: %s", self._partition, offset, error)
                continue
            if decoded is not None:
                yield decoded
