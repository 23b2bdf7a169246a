"""The queue of one input partition: records that are fetched and not processed, decoded in parts of batches.

`position` is the next offset to process, which a commit writes; `fetched` is the next offset to fetch. The
queue has the records between them. `end` is the last known log end (-1: unknown): the input is empty when
all records before it are processed.

The queue holds the bytes of batches and a position in the first of them. A few KB of a compressed batch may
hold millions of records, so at most PART_RECORDS of them are objects at the same time.

A batch that cannot be read (its CRC is wrong, or a record is broken) is a bad record over several offsets.
The deserialization handler decides whether the task fails, or goes on after the batch. Kafka Streams 4.4
always fails there, in its consumer.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import index
from typing import NamedTuple

from kafka_client import Fetched, TopicPartition
from kafka_client.errors import CorruptRecordBatch, UnreadableBatch
from kafka_client.fetcher.parts import unreadable_batch
from kafka_client.metrics.windowed import Windowed
from kafka_client.records import (
    BatchHeader,
    Codec,
    Columns,
    Record,
    RecordReader,
    check_crc,
)
from streams.errors import ProcessingError, RegistryUnavailable, SerializationError, StreamsError
from streams.graph import SourceNode, TimestampExtractor
from streams.processors.metrics import NodeMetrics
from streams.processors.record import InputRecord, Process
from streams.processors.wiring import RawRecord, TaskState, no_raw_record
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task.input_start import InputStart
from streams.serdes import Serde
from streams.timestamps import log_and_skip_on_invalid_timestamp

log = logging.getLogger(__name__)

BadInput = Callable[[str, SerializationError, Exception, RawRecord], None]
"""Handles a record that cannot be deserialized: node, problem, cause, record. Returns if it is dropped."""

_MISSING = object()
RECORD_OVERHEAD = 200
"""The approximate memory of a decoded record besides its bytes: tuples, and the objects in them."""
PART_RECORDS = 10_000
"""The limit of records of a batch that are decoded at a time."""
PART_BYTES = 4 << 20
"""The approximate limit of uncompressed bytes that are decoded at a time."""
FIRST_RECORDS = 100
"""The number of records of a compressed batch that are decoded first, to estimate the size of the others."""


class _Chunk(NamedTuple):
    """A part of the queue: a fetched batch, or records (as in tests), or only a change of position.

    `first`: the offset before which records are skipped. `size`: the bytes in memory. `next_offset`: the
    position after the chunk. `unreadable`: the error of a batch whose header cannot be read.
    """

    record_count: int
    size: int
    first: int
    next_offset: int
    records: Sequence[Record] = ()
    header: BatchHeader | None = None
    batch: memoryview = memoryview(b"")
    unreadable: UnreadableBatch | None = None

    def reader(self, first: int) -> RecordReader:
        """Return a reader whose next record is the one at `first` or after it. Raises CorruptRecordBatch."""
        header = self.header
        assert header is not None
        reader = RecordReader(self.batch, 0, header)
        if header.base_offset < first:
            reader.skip_to(first)
        return reader


class _RawRecords:
    """The records of a decoded part as they are in the log, read when an error first asks for one."""

    def __init__(self, chunk: _Chunk, first: int, decoded: Sequence[InputRecord]) -> None:
        self._chunk = chunk
        self._first = first
        self._decoded = decoded
        self._records: dict[int, Record] | None = None

    def __call__(self, offset: int) -> RawRecord | None:
        """Return the record at `offset` with its event time, or None if this part has no such record."""
        if self._records is None:
            chunk, last = self._chunk, self._decoded[-1][4]
            records = chunk.records
            if chunk.header is not None:
                records = chunk.reader(self._first).records(last - self._first + 1)
            self._records = {record[0]: record for record in records}
        if (record := self._records.get(offset)) is None:
            return None
        times = (each[0] for each in self._decoded if each[4] == offset)
        return (next(times, record[1]), *record[2:])


class _Bad(NamedTuple):
    """A record that cannot be deserialized; ``before`` is the next that can, counted within its batch."""

    before: int
    problem: SerializationError
    cause: Exception
    record: Record


_Problems = dict[int, tuple[SerializationError, Exception]]
"""The problem and its cause for each record that cannot be deserialized, by offset."""


class InputQueue:
    """The records of one partition, and the function that processes them."""

    def __init__(
        self,
        tp: TopicPartition,
        source: SourceNode,
        head: Process,
        metrics: NodeMetrics,
        start: InputStart,
        *,
        task_id: str,
        on_bad_record: BadInput,
        buffer: InputBuffer,
    ) -> None:
        position = start.position
        self.tp = tp
        self.source = source
        self.position = position
        self.fetched = position
        self.leader_epoch = start.leader_epoch
        """The leader epoch of the record before ``fetched``, -1 if unknown."""
        self.end = start.end
        self.idle_since: int | None = None
        self._process = head
        self._metrics = metrics
        if metrics.record_e2e_latency is None:
            metrics.record_e2e_latency = Windowed()
        self._e2e_latency = metrics.record_e2e_latency
        self.records_consumed = self.bytes_consumed = 0
        """The processed records and bytes. A batch's bytes count once all of it is processed (KIP-846)."""
        self._task_id = task_id
        self._on_bad_record = on_bad_record
        self._buffer = buffer
        self._chunks: deque[_Chunk] = deque()
        self._waiting = 0
        self._waiting_bytes = 0
        self._chunk: list[InputRecord] = []
        self._next = 0
        self._in_hand: list[InputRecord] = []
        self._decoding = _Chunk(0, 0, position, position)
        self._reader: RecordReader | None = None
        """The position in the batch that is being decoded; None if no batch is partly decoded."""
        self._raw_record: Callable[[int], RawRecord | None] = no_raw_record
        self._part_end = position
        """The position after the decoded records."""
        self._decoded_bytes = self._part_bytes = 0
        self._bad: deque[_Bad] = deque()

    def __len__(self) -> int:
        """Return the number of waiting records."""
        unread = 0 if self._reader is None else self._reader.remaining
        return self._waiting + unread + len(self._chunk) - self._next

    @property
    def memory_bytes(self) -> int:
        """The approximate memory of the waiting records, bytes."""
        return self._waiting_bytes + self._decoded_bytes

    def add(self, records: list[Record], next_offset: int, end: int) -> None:
        """Append records. ``next_offset``: where the next fetch begins; ``end``: the log end."""
        self._append(_Chunk(len(records), 0, self.fetched, next_offset, records))
        self._fed(next_offset, end)

    def add_fetched(self, fetched: Fetched, end: int) -> None:
        """Append fetched batches, which are decoded when they are next. ``end``: the log end."""
        first = fetched.position
        chunks: list[_Chunk] = []

        def add_unreadable(error: UnreadableBatch) -> None:
            chunks.append(_Chunk(0, 0, first, error.last_offset + 1, unreadable=error))

        for header, batch in fetched.batches(on_unreadable=add_unreadable):
            chunks.append(
                _Chunk(header.count, header.size, first, header.next_offset, header=header, batch=batch)
            )
        if not chunks:
            chunks.append(_Chunk(0, 0, first, fetched.next_offset))
        # Batches without records, such as control batches, may follow the last one.
        chunks[-1] = chunks[-1]._replace(next_offset=fetched.next_offset)
        for chunk in chunks:
            self._append(chunk)
        self.leader_epoch = fetched.leader_epoch
        self._fed(fetched.next_offset, end)

    def _append(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        self._count(chunk, 1)

    def _count(self, chunk: _Chunk, sign: int) -> None:
        """Count a chunk that is added to the waiting ones (1) or removed (-1)."""
        self._waiting += sign * chunk.record_count
        self._waiting_bytes += sign * chunk.size
        self._buffer.waiting += sign * chunk.size

    def _fed(self, next_offset: int, end: int) -> None:
        self.fetched = next_offset
        self.end = max(self.end, end)
        self.idle_since = None

    def reset(self, position: int, end: int) -> None:
        """Go on at ``position`` after a deletion of records or of the topic. ``end``: the log end."""
        if not len(self) and not self._chunks:
            self.position = position
        self.fetched, self.end = position, end
        self.leader_epoch = -1

    def truncate(self, position: int, end: int) -> int:
        """Drop waiting records: the log was truncated at ``position``, and ends at ``end``.

        Return the offset to fetch from: ``position``, or the next offset to process if that is lower.
        """
        self.drop()
        self.position = self.fetched = min(position, self.position)
        self.end = end
        self.leader_epoch = -1
        return self.position

    def drop(self) -> None:
        """Drop all waiting records."""
        self._buffer.waiting -= self._waiting_bytes
        self._chunks.clear()
        self._waiting = self._waiting_bytes = 0
        self._forget_decoded()

    @property
    def holds_decoded(self) -> bool:
        """Return True if decoded records wait, or a batch is partly decoded."""
        return bool(self._chunk) or self._reader is not None

    @property
    def has_input(self) -> bool:
        """True if records wait, decoded or not, or a change of position does."""
        return bool(self._chunk or self._chunks) or self._reader is not None

    def put_back(self) -> None:
        """Drop the decoded records of a batch, to decode them again later: other inputs need the room."""
        if self.holds_decoded and self._decoding.header is not None:
            chunk, unread = self._decoding, len(self) - self._waiting
            self._forget_decoded()
            self._chunks.appendleft(chunk := chunk._replace(first=self.position, record_count=unread))
            self._count(chunk, 1)

    def _forget_decoded(self) -> None:
        """Drop the batch that is being decoded."""
        self._chunk, self._next, self._reader = [], 0, None
        self._raw_record = no_raw_record
        self._bad.clear()
        self._set_decoded_bytes(0)

    def _set_decoded_bytes(self, size: int) -> None:
        self._buffer.decoded += size - self._decoded_bytes
        self._decoded_bytes = size

    @property
    def is_caught_up(self) -> bool:
        """True if all records before the last known log end are fetched."""
        return 0 <= self.end <= self.fetched

    def head_timestamp(self) -> int | None:
        """Return the event time of the next record, None if there is none."""
        while not self._chunk:
            if self._reader is None:
                if not self._chunks:
                    return None
                self._decoding = self._chunks.popleft()
                self._count(self._decoding, -1)
            try:
                self._decode_next()
            except CorruptRecordBatch as error:
                self._leave_out_batch(error)
        return self._chunk[self._next][0]

    def _decode_next(self) -> None:
        """Decode the next part of the first batch. The part may have no records."""
        chunk, reader = self._decoding, self._reader
        if chunk.unreadable is not None:
            raise chunk.unreadable
        if chunk.header is None:
            self._take(Columns.of(chunk.records), chunk.next_offset, 0)
            return
        if reader is None:
            check_crc(chunk.batch, 0, chunk.header)
            reader = self._reader = chunk.reader(chunk.first)
        before = reader.bytes_read
        columns = reader.columns(self._part_size(reader, chunk.header))
        end = chunk.next_offset
        if reader.remaining:
            end = columns.offsets[-1] + 1
        else:
            self._reader = None
        self._take(columns, end, reader.bytes_read - before)

    @staticmethod
    def _part_size(reader: RecordReader, header: BatchHeader) -> int:
        """Return how many records to decode: as many as PART_BYTES hold if all are as large as before."""
        read = header.count - reader.remaining
        if header.codec is not Codec.NONE:
            if not read:
                return FIRST_RECORDS
            mean = reader.bytes_read // read
        else:
            mean = header.size // max(header.count, 1)
        return min(PART_RECORDS, PART_BYTES // max(mean, 1) + 1)

    def _take(self, columns: Columns, end: int, size: int) -> None:
        """Decode the next records to process. ``end``: the position after them; ``size``: their bytes."""
        self._part_end, self._part_bytes = end, size
        self._chunk = self._decode(columns) if columns.offsets else []
        self._next = 0
        if self._chunk:
            self._raw_record = _RawRecords(self._decoding, columns.offsets[0], self._chunk)
        if self._bad:
            self._leave_out_before(0)
            if self._chunk:
                self.position = self._chunk[0][4]
        if self._chunk and self._decoding.header is not None:
            # The batch stays here until all its records are processed.
            overhead = RECORD_OVERHEAD * len(columns.offsets)
            self._set_decoded_bytes(self._decoding.size + size + overhead)
        if not self._chunk:
            self._end_part()

    def _end_part(self) -> None:
        """Move the position after the decoded records. The rest of their batch, if any, is next."""
        if self._reader is None:
            self._forget_decoded()
        else:
            self._chunk, self._next = [], 0
            self._raw_record = no_raw_record
            self._set_decoded_bytes(self._decoding.size)
        self.position = self._part_end

    def _leave_out_batch(self, error: CorruptRecordBatch) -> None:
        """Ask the handler about an unreadable batch, and move the position after it.

        Records before the damage may be processed already; they stay processed.
        """
        chunk = self._decoding
        if chunk.header is None:
            assert isinstance(error, UnreadableBatch)
            unreadable, count, timestamp = error, error.record_count, -1
        else:
            unreadable, timestamp = unreadable_batch(self.tp, chunk.header, error), chunk.header.max_timestamp
            first = max(chunk.first, self.position, chunk.header.base_offset)
            count = min(chunk.header.count, chunk.header.last_offset - first + 1)
        self._forget_decoded()
        problem = SerializationError(
            f"the batch of offsets {unreadable.first_offset} to {unreadable.last_offset} cannot be read: "
            f"{unreadable.reason}",
            *self.tp,
            max(unreadable.first_offset, self.position),
        )
        problem.__cause__ = unreadable
        self._on_bad_record(self.source.name, problem, unreadable, (timestamp, None, None, ()))
        self._metrics.dropped(count)
        self.position = chunk.next_offset

    def _leave_out_before(self, index: int) -> None:
        """Ask the handler about the bad records before ``index``, when the position passes them.

        So it is asked once for each record, and in the commit to which the record's offset belongs.
        """
        while self._bad and self._bad[0].before <= index:
            bad = self._bad[0]
            self._on_bad_record(self.source.name, bad.problem, bad.cause, bad.record[1:])
            self._bad.popleft()
            self._metrics.dropped()

    def run(self, state: TaskState, bound: int | None, limit: int) -> int:
        """Process up to ``limit`` records whose time is at most ``bound``. Return their number.

        Call it after `head_timestamp` returned a time; that record is processed whatever the bound. Raises
        the errors of the topology's functions; ``state`` has the record's offset then.
        """
        process, begin = self._process, self._next
        state.topic, state.partition = self.tp
        state.raw_record = self._raw_record
        if self._bad:
            limit = min(limit, self._bad[0].before - begin)
        records = self._chunk[begin : begin + limit]
        done = 0
        try:
            self._in_hand = records
            if state.breaks_off:
                records.clear()
            for timestamp, key, value, headers, offset in records:
                if bound is not None and timestamp > bound and done:
                    break
                if timestamp > state.stream_time:
                    state.stream_time = timestamp
                state.offset = offset
                process(key, value, timestamp, headers)
                done += 1
            if self._bad:
                self._leave_out_before(begin + done)
        finally:
            self._in_hand = []
            self._advance(begin + done, state.wall_clock)
            self._metrics.process_total += done
            self.records_consumed += done
            if not self._chunk:
                state.raw_record = no_raw_record  # This releases the batch.
        return done

    def break_off(self) -> None:
        """End the run under way after its current record. Called by another thread, with `breaks_off` set.

        The run's loop ends because its list is emptied, so there is no cost per record.
        """
        self._in_hand.clear()

    def _advance(self, index: int, wall_clock: int) -> None:
        self._next = index
        if index < len(self._chunk):
            self.position = self._chunk[index][4]
        else:
            self.bytes_consumed += self._part_bytes
            self._e2e_latency.record(wall_clock - self._chunk[-1][0])
            self._end_part()

    # -- decoding

    def _decode(self, columns: Columns) -> list[InputRecord]:
        problems: _Problems = {}
        offsets = columns.offsets
        keys = self._values(self.source.key_serde, offsets, columns.keys, problems)
        values = self._values(self.source.value_serde, offsets, columns.values, problems)
        decoded: list[InputRecord] = list(
            zip(columns.timestamps, keys, values, columns.headers, offsets, strict=True)
        )
        if problems:
            decoded = [each for each in decoded if each[1] is not _MISSING and each[2] is not _MISSING]
            self._bad.extend(_among(columns.records(), problems))
        if (extract := self.source.timestamp_extractor) is not None:
            decoded = [self._extracted(extract, each) for each in decoded]
            if extract is log_and_skip_on_invalid_timestamp:
                decoded = self._with_valid_times(decoded)
        elif min(columns.timestamps) >= 0:
            return decoded
        self._check_times(decoded)
        return decoded

    def _with_valid_times(self, decoded: list[InputRecord]) -> list[InputRecord]:
        valid = [each for each in decoded if each[0] >= 0]
        for timestamp, _, _, _, offset in decoded if len(valid) < len(decoded) else ():
            if timestamp < 0:
                log.warning("%s offset %d: left out, its timestamp is %d", self.tp, offset, timestamp)
                self._metrics.dropped()
        return valid

    def _extracted(self, extract: TimestampExtractor, record: InputRecord) -> InputRecord:
        timestamp, key, value, headers, offset = record
        try:
            return index(extract(key, value, timestamp)), key, value, headers, offset
        except Exception as error:
            topic, partition = self.tp
            raise ProcessingError(
                self._task_id, self.source.name, topic=topic, partition=partition, offset=offset
            ) from error

    def _check_times(self, decoded: list[InputRecord]) -> None:
        if min([each[0] for each in decoded], default=0) >= 0:
            return
        timestamp, _, _, _, offset = next(each for each in decoded if each[0] < 0)
        raise StreamsError(
            f"{self.tp} offset {offset}: timestamp {timestamp} is negative; "
            "give the source a timestamp_extractor that finds one"
        )

    def _values(
        self,
        serde: Serde[object],
        offsets: Sequence[int],
        data: Sequence[bytes | None],
        problems: _Problems,
    ) -> Sequence[object]:
        try:
            return serde.deserialize_many(data)
        except RegistryUnavailable:
            raise  # The registry failed, not a record.
        except Exception:
            # Deserialize one by one, to process all but the bad ones.
            return [
                self._value(serde, offset, each, problems) for offset, each in zip(offsets, data, strict=True)
            ]

    def _value(self, serde: Serde[object], offset: int, data: bytes | None, problems: _Problems) -> object:
        if data is None:
            return None
        try:
            return serde.deserialize(data)
        except Exception as error:
            problem = SerializationError(f"{type(serde).__name__}: {error}", *self.tp, offset)
            # A bad key and a bad value of the same record are one problem.
            problems.setdefault(offset, (problem, error))
            return _MISSING


def _among(records: Iterable[Record], problems: _Problems) -> Iterator[_Bad]:
    """Yield the bad records with the number of good ones before each."""
    good = 0
    for record in records:
        if record[0] in problems:
            problem, cause = problems[record[0]]
            yield _Bad(good, problem, cause, record)
        else:
            good += 1
