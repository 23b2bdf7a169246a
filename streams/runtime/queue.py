"""One input partition of a task: what was fetched and not yet processed, decoded a part of a batch at a time.

`position` is the next offset to process, what a commit writes; `fetched` the next offset to fetch. Between
them lies what waits here. `end` is the broker's log end as last heard of (-1: never): the input is known to
be empty when everything up to it was fetched and processed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import index, itemgetter
from typing import NamedTuple

from logd.client import Fetched, TopicPartition
from logd.client.fetcher.parts import reading
from logd.errors import UnreadableBatch
from logd.metrics.windowed import Windowed
from logd.records import (
    BatchHeader,
    Columns,
    Record,
    RecordReader,
    check_crc,
)
from streams.errors import ProcessingError, RegistryUnavailable, SerializationError, StreamsError
from streams.graph import SourceNode, TimestampExtractor
from streams.processors.metrics import NodeMetrics
from streams.processors.record import InputRecord, Process, run_of
from streams.processors.wiring import RawRecord, TaskState, no_raw_record
from streams.runtime.input_buffer import InputBuffer
from streams.serdes import Serde
from streams.timestamps import log_and_skip_on_invalid_timestamp

log = logging.getLogger(__name__)

BadInput = Callable[[str, SerializationError, Exception, RawRecord], None]
"""Takes node, problem, its cause and the record that cannot be deserialized; raises unless it is left out."""

_MISSING = object()
_TIME_OF = itemgetter(0)
RECORD_OVERHEAD = 200
"""About what a decoded record takes besides its bytes: the tuples, and the objects in them."""
PART_RECORDS = 5000
"""Records that are decoded at a time: a few KB of a compressed batch may hold millions."""


class _Chunk(NamedTuple):
    """What waits: a batch as it was fetched, or records (as in tests), or neither, only a position.

    ``first``: records before it are left out. ``size``: bytes it takes here. ``next_offset``: where the
    position is behind it.
    """

    record_count: int
    size: int
    first: int
    next_offset: int
    records: Sequence[Record] = ()
    header: BatchHeader | None = None
    batch: memoryview = memoryview(b"")

    def reader(self) -> RecordReader:
        """Return a reader at the first record that is wanted. Raises CorruptRecordBatch."""
        header = self.header
        assert header is not None
        check_crc(self.batch, 0, header)
        reader = RecordReader(self.batch, 0, header)
        if header.base_offset < self.first:
            reader.skip_to(self.first)
        return reader

    def record(self, offset: int) -> Record | None:
        """Return the record at an offset, None if it is not here. Raises CorruptRecordBatch."""
        records = self.records
        if self.header is not None:
            reader = RecordReader(self.batch, 0, self.header)
            reader.skip_to(offset)
            records = reader.records(1)
        return next((record for record in records if record[0] == offset), None)


class _Bad(NamedTuple):
    """A record that cannot be deserialized; ``before`` is the next that can, counted within its batch."""

    before: int
    problem: SerializationError
    cause: Exception
    record: Record


_Problems = dict[int, tuple[SerializationError, Exception]]
"""What is wrong with records that cannot be deserialized, by offset."""


class InputQueue:
    """Records of one partition, and the function that takes them."""

    def __init__(
        self,
        tp: TopicPartition,
        source: SourceNode,
        head: Process,
        metrics: NodeMetrics,
        *,
        position: int,
        end: int,
        task_id: str,
        on_bad_record: BadInput,
        buffer: InputBuffer,
        leader_epoch: int = -1,
    ) -> None:
        self.tp = tp
        self.source = source
        self.position = position
        self.fetched = position
        self.leader_epoch = leader_epoch
        """That of the record before ``fetched``, -1 if it is not known."""
        self.end = end
        self.idle_since: int | None = None
        self._process = head
        self._process_run = run_of(head)
        self._metrics = metrics
        if metrics.record_e2e_latency is None:
            metrics.record_e2e_latency = Windowed()
        self._e2e_latency = metrics.record_e2e_latency
        self.records_consumed = self.bytes_consumed = 0
        """What was processed; a batch's bytes count once all of it was (KIP-846)."""
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
        """Where in the batch in work the records begin that are not decoded yet; None if all are."""
        self._after = position
        """The position once the records that are decoded were processed."""
        self._decoded_bytes = self._body_bytes = 0
        self._bad: deque[_Bad] = deque()

    def __len__(self) -> int:
        """How many records wait."""
        undecoded = 0 if self._reader is None else self._reader.remaining
        return self._waiting + undecoded + len(self._chunk) - self._next

    @property
    def memory_bytes(self) -> int:
        """About how much memory they take."""
        return self._waiting_bytes + self._decoded_bytes

    def add(self, records: list[Record], next_offset: int, end: int) -> None:
        """Take records by offset, where the next fetch begins, and the log end then."""
        self._append(_Chunk(len(records), 0, self.fetched, next_offset, records))
        self._fed(next_offset, end)

    def add_fetched(self, fetched: Fetched, end: int) -> None:
        """Take what was fetched as it is; it is decoded when its turn comes. ``end``: the log end then."""
        chunk: _Chunk | None = None
        for header, batch in fetched.batches():
            if chunk is not None:
                self._append(chunk)
            chunk = _Chunk(
                header.count, header.size, fetched.position, header.next_offset, header=header, batch=batch
            )
        chunk = chunk or _Chunk(0, 0, fetched.position, fetched.next_offset)
        # Behind the last batch there may be some without records for us.
        self._append(chunk._replace(next_offset=fetched.next_offset))
        self.leader_epoch = fetched.leader_epoch
        self._fed(fetched.next_offset, end)

    def _append(self, chunk: _Chunk) -> None:
        self._chunks.append(chunk)
        self._count(chunk, 1)

    def _count(self, chunk: _Chunk, sign: int) -> None:
        """It comes to those that wait (1), or goes (-1)."""
        self._waiting += sign * chunk.record_count
        self._waiting_bytes += sign * chunk.size
        self._buffer.waiting += sign * chunk.size

    def _fed(self, next_offset: int, end: int) -> None:
        self.fetched = next_offset
        self.end = max(self.end, end)
        self.idle_since = None

    def reset(self, position: int, end: int) -> None:
        """Go on at ``position``: what was next is gone, or the topic was made anew and ends at ``end``."""
        if not len(self) and not self._chunks:
            self.position = position
        self.fetched, self.end = position, end
        self.leader_epoch = -1

    def truncate(self, position: int, end: int) -> int:
        """The log has other records from ``position`` on, and ends at ``end``. What waits here is dropped;
        returns the offset to fetch from, which is lower only if nothing behind it was processed.
        """
        self.drop()
        self.position = self.fetched = min(position, self.position)
        self.end = end
        self.leader_epoch = -1
        return self.position

    def drop(self) -> None:
        """Forget what waits here."""
        self._buffer.waiting -= self._waiting_bytes
        self._chunks.clear()
        self._waiting = self._waiting_bytes = 0
        self._forget_decoded()
        self._reader = None

    @property
    def holds_decoded(self) -> bool:
        """Whether there are records to be processed at once."""
        return bool(self._chunk)

    @property
    def has_input(self) -> bool:
        """Whether anything waits here, decoded or not."""
        return bool(self._chunk or self._chunks) or self._reader is not None

    def put_back(self) -> None:
        """Give up what is decoded of a batch, to decode it again later: others need the room."""
        if self._chunk and self._decoding.header is not None:
            left = len(self) - self._waiting
            self._append_first(self._decoding._replace(first=self.position, record_count=left))
            self._forget_decoded()
            self._reader = None

    def _append_first(self, chunk: _Chunk) -> None:
        self._chunks.appendleft(chunk)
        self._count(chunk, 1)

    def _forget_decoded(self) -> None:
        self._chunk, self._next = [], 0
        self._bad.clear()
        self._buffer.decoded -= self._decoded_bytes
        self._decoded_bytes = 0

    @property
    def is_caught_up(self) -> bool:
        """Whether everything up to the last known log end was fetched."""
        return 0 <= self.end <= self.fetched

    def head_timestamp(self) -> int | None:
        """Event time of the next record, None if there is none."""
        while not self._chunk:
            if self._reader is not None:
                self._decode_part(self._reader)
            elif self._chunks:
                self._begin_next()
            else:
                return None
        return self._chunk[self._next][0]

    def _begin_next(self) -> None:
        """Begin with the next batch: its first part is decoded when it is asked for."""
        chunk = self._decoding = self._chunks.popleft()
        self._count(chunk, -1)
        if chunk.header is None:
            self._take(Columns.of(chunk.records), 0)
            return
        try:
            with reading(self.tp, chunk.header):
                self._reader = chunk.reader()
        except UnreadableBatch as error:
            self._pass_over(error, error.record_count)
            return
        if not self._reader.remaining:
            self._reader, self.position = None, chunk.next_offset

    def _decode_part(self, reader: RecordReader) -> None:
        header = self._decoding.header
        assert header is not None
        begin = reader.bytes_read
        try:
            with reading(self.tp, header):
                columns = reader.columns(PART_RECORDS)
        except UnreadableBatch as error:
            self._pass_over(error, reader.remaining)
            return
        if not reader.remaining:
            self._reader = None
        self._take(columns, reader.bytes_read - begin)

    def _pass_over(self, error: UnreadableBatch, count: int) -> None:
        """Have the handler decide about a batch that cannot be read; here it is to go on without it."""
        self._reader = None
        header = self._decoding.header
        assert header is not None
        what = f"offsets {error.first_offset} to {error.last_offset} cannot be read: {error.reason}"
        problem = SerializationError(what, *self.tp, error.first_offset)
        self._on_bad_record(self.source.name, problem, error, (header.max_timestamp, None, None, ()))
        log.warning("%s: %s; left out", self.tp, what)
        self._metrics.dropped(count)
        self.position = self._decoding.next_offset

    def _take(self, columns: Columns, size: int) -> None:
        """Have records processed next; ``size``: their bytes in the log, uncompressed."""
        chunk, self._body_bytes = self._decoding, size
        self._after = chunk.next_offset if self._reader is None else columns.offsets[-1] + 1
        self._chunk = self._decode(columns) if columns.offsets else []
        if self._bad:
            self._leave_out_before(0)
            self.position = self._chunk[0][4] if self._chunk else self._after
        if self._chunk:
            overhead = 0 if chunk.header is None else RECORD_OVERHEAD * len(columns.offsets)
            self._decoded_bytes = self._body_bytes + overhead
            self._buffer.decoded += self._decoded_bytes
        else:
            self.position = self._after

    def _leave_out_before(self, index: int) -> None:
        """Ask about records that cannot be deserialized once the position passes them, so that each is asked
        about once, and in the commit that its offset belongs to.
        """
        while self._bad and self._bad[0].before <= index:
            bad = self._bad[0]
            self._on_bad_record(self.source.name, bad.problem, bad.cause, bad.record[1:])
            self._bad.popleft()
            self._metrics.dropped()

    def run(self, state: TaskState, bound: int | None, limit: int) -> int:
        """Process up to ``limit`` records, as long as their time is not above ``bound``; returns how many.

        Raises what the topology's functions raise; ``state`` says at which record.
        Call after `head_timestamp` said there is one; that one is processed whatever the bound.
        """
        process, begin = self._process, self._next
        state.topic, state.partition = self.tp
        state.raw_record = partial(_raw_record, self._decoding, self._chunk)
        if self._bad:
            limit = min(limit, self._bad[0].before - begin)
        records = self._chunk[begin : begin + limit]
        done = 0
        try:
            if self._process_run is not None:
                records = _up_to(bound, records)
                state.stream_time = max(state.stream_time, max(map(_TIME_OF, records)))
                try:
                    self._process_run(records)
                except Exception:
                    done = sum(record[4] < state.offset for record in records)
                    raise
                done, records = len(records), []
            else:
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
                state.raw_record = no_raw_record  # lets the batch go
        return done

    def break_off(self) -> None:
        """Have the run under way end behind the record in hand; from another thread, with `breaks_off` set.

        A loop over a list ends with the list, so that no record pays for this.
        """
        self._in_hand.clear()

    def _advance(self, index: int, wall_clock: int) -> None:
        self._next = index
        if index < len(self._chunk):
            self.position = self._chunk[index][4]
        else:
            self.bytes_consumed += self._body_bytes
            self._e2e_latency.record(wall_clock - self._chunk[-1][0])
            self._forget_decoded()
            self.position = self._after

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
            raise  # No record is bad for that.
        except Exception:
            # One of them is bad: find out which, the others are processed.
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
            problems.setdefault(offset, (problem, error))  # a key and its value are one bad record
            return _MISSING


def _up_to(bound: int | None, records: list[InputRecord]) -> list[InputRecord]:
    """The first one, and those behind it up to the first one above the bound."""
    if bound is None:
        return records
    beyond = (n for n, record in enumerate(records) if record[0] > bound and n)
    return records[: next(beyond, len(records))]


def _among(records: Iterable[Record], problems: _Problems) -> Iterator[_Bad]:
    """The bad records, by their place among the others."""
    good = 0
    for record in records:
        if record[0] in problems:
            problem, cause = problems[record[0]]
            yield _Bad(good, problem, cause, record)
        else:
            good += 1


def _raw_record(batch: _Chunk, decoded: Sequence[InputRecord], offset: int) -> RawRecord | None:
    """A record of a batch, at its event time; read again, since only errors ask for it."""
    if (found := batch.record(offset)) is None:
        return None
    times = (record[0] for record in decoded if record[4] == offset)
    return (next(times, found[1]), *found[2:])
