"""The way of polled record batches to the producer: checked, and as they are where a broker takes them so."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from connect.api.raw_batch import RawBatch
from connect.errors import DataError
from connect.runtime.source_rows import Polled
from kafka_client.errors import CorruptRecordBatch
from kafka_client.records import build_batch, check_crc, decode_records, read_header


class Passed(NamedTuple):
    """The bytes of a polled batch that go to the producer; empty if the batch has no records."""

    data: bytes | memoryview
    records: int


@dataclass(slots=True)
class PolledBatches(Polled):
    """The batches of one `poll`, and what is sent of each."""

    batches: Sequence[RawBatch] = ()
    passed: list[Passed] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of records."""
        return sum(each.records for each in self.passed)

    def sizes(self) -> Iterator[int]:
        """Yield the bytes of each batch."""
        return (len(each.data) for each in self.passed)

    def __bool__(self) -> bool:
        return bool(self.batches)


def prepared(batches: Sequence[RawBatch] | None) -> PolledBatches:
    """Return polled batches, checked for the producer; for the task's thread. Raises DataError."""
    polled = PolledBatches(polled_at=time.monotonic(), batches=batches or ())
    polled.passed = [passed(batch) for batch in polled.batches]
    return polled


def passed(batch: RawBatch) -> Passed:
    """Return what is sent of a batch.

    Raises DataError if it is no whole batch, if its CRC is wrong, or for a control batch.
    """
    target = f"{batch.topic}-{batch.partition}"
    if not batch.topic or batch.partition < 0:
        raise DataError(f"poll returned a batch for {target}: it needs a topic and a partition from 0 on")
    data = memoryview(batch.data)
    try:
        header = read_header(data)
        if header.size != len(data):
            raise DataError(
                f"poll returned {len(data)} bytes for {target}, its batch has {header.size}: "
                "return each batch as one RawBatch"
            )
        # The producer writes a new CRC, which would make a damaged batch look sound.
        check_crc(data, 0, header)
        codec = header.codec
        if header.is_control:
            raise DataError(f"poll returned a control batch for {target}: leave transaction markers out")
        if header.count == header.last_offset_delta + 1 and header.timestamp_type == 0:
            return Passed(data, header.count)
        records = decode_records(data)
    except CorruptRecordBatch as e:
        raise DataError(f"poll returned a batch for {target} that cannot be read: {e}") from e
    if not records:
        return Passed(b"", 0)
    return Passed(build_batch([record[1:] for record in records], codec=codec), len(records))
