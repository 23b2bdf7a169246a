"""The coordinator's log in memory, in the bytes it has on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafka_client.errors import ErrorCode, KafkaError
from logd.transactions import TransactionRecord, decode_record, encode_record


class ListLog:
    """The next append fails with `failure` if there is one."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.failure: ErrorCode | None = None

    def append(self, records: Sequence[TransactionRecord]) -> int:
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise KafkaError(failure)
        self.records += map(encode_record, records)
        return len(self.records) - len(records)

    def read(self) -> Iterator[tuple[int, TransactionRecord]]:
        for offset, (key, value) in enumerate(self.records):
            record = decode_record(key, value)
            assert record is not None
            yield offset, record
