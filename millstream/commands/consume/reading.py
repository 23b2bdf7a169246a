"""The loop from a source to stdout: fetched records are filtered, printed and written, once per fetch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, TypeAlias

from kafka_client import Fetched, TopicPartition
from kafka_client.errors import UnreadableBatch
from kafka_client.fetcher.parts import OnUnreadable, Part
from kafka_client.records import Record
from millstream.commands.consume.columns import OFFSET, RecordPrinter
from millstream.commands.consume.source import Source
from millstream.data_types.data_type import WrongData
from millstream.terminal.plural import counted
from millstream.terminal.progress import Progress
from millstream.terminal.status import Partly

RecordFilter: TypeAlias = Callable[[Sequence[Record]], Sequence[Record]]

COMMIT_SECONDS = 5.0
"""How often a group's offsets are committed: Kafka's default `auto.commit.interval.ms`."""
_WRITE_BYTES = 1024 * 1024
"""The size of printed text after which it is written."""
_GRACE_SECONDS = 1.0
"""How long the last write may take when the run is interrupted."""


@dataclass(slots=True)
class Reading:
    """A run of the loop. `limit`: how many records to print at most.

    `idle_ms`: end after so long without a record (None: never). `skip_errors`: report and skip records that
    cannot be decoded instead of ending the run. `counts_skipped`: skipped records count towards the limit.
    """

    source: Source
    render: RecordPrinter
    out: BinaryIO
    tell: Callable[[str], None]
    keep: RecordFilter | None = None
    limit: int | None = None
    idle_ms: int | None = None
    skip_errors: bool = False
    counts_skipped: bool = False
    printed: int = 0
    skipped: int = 0
    _parts: list[bytes] = field(default_factory=list)
    _upto: dict[TopicPartition, int] = field(default_factory=dict)

    async def run(self, progress: Progress) -> None:
        """Print records until the end. Raises Partly if records were skipped.

        The printed records are committed at the end, also when the call is cancelled.
        """
        try:
            await self._loop(progress)
        finally:
            if text := await self.source.commit():
                self.tell(text)
        if self.skipped:
            raise Partly(f"{counted(self.skipped, 'record')} left out, see above; {self.printed:,} printed")

    async def _loop(self, progress: Progress) -> None:
        last_record_at = committed = time.monotonic()
        while not self.source.is_at_end and self._left() != 0:
            fetches = await self.source.fetch(self.idle_ms)
            now = time.monotonic()
            if fetches:
                await self._print(fetches)
                progress.advance(sum(each.record_count for each in fetches))
                last_record_at = time.monotonic()
            elif self.idle_ms is not None and (now - last_record_at) * 1000 >= self.idle_ms:
                return
            if now - committed >= COMMIT_SECONDS:
                committed = now
                if text := await self.source.commit():
                    self.tell(text)

    def _left(self) -> int | None:
        if self.limit is None:
            return None
        return self.limit - self.printed - (self.skipped if self.counts_skipped else 0)

    async def _print(self, fetches: list[Fetched]) -> None:
        """Print the fetched records in a thread, so that heartbeats go on while a pipe is full."""
        printing = asyncio.ensure_future(asyncio.to_thread(self._print_all, fetches))
        try:
            await asyncio.shield(printing)
        except asyncio.CancelledError:
            # Wait for the records being printed, unless nobody reads the output any more.
            await asyncio.wait([printing], timeout=_GRACE_SECONDS)
            raise
        finally:
            if printing.done():
                for tp, offset in self._upto.items():
                    self.source.note_printed(tp, offset)

    def _print_all(self, fetches: list[Fetched]) -> None:
        """Print the fetched records, including those before a record that cannot be decoded."""
        self._parts, self._upto = [], {}
        try:
            for fetched in fetches:
                for part in fetched.parts(on_unreadable=self._on_unreadable):
                    if sum(map(len, self._parts)) >= _WRITE_BYTES:
                        self._write_parts()
                    self._take(fetched.tp, part)
                    if self._left() == 0:
                        return
        finally:
            self._write_parts()

    @property
    def _on_unreadable(self) -> OnUnreadable | None:
        return self._skip_batch if self.skip_errors else None

    def _skip_batch(self, unreadable: UnreadableBatch) -> None:
        self.skipped += unreadable.record_count
        self.tell(
            f"{unreadable.topic}-{unreadable.partition}: offsets {unreadable.first_offset} to "
            f"{unreadable.last_offset} left out: {unreadable.reason}"
        )

    def _write_parts(self) -> None:
        parts, self._parts = self._parts, []
        self._write(b"".join(parts))

    def _write(self, data: bytes) -> None:
        try:
            self.out.write(data)
            self.out.flush()
        except OSError:
            # The output is lost, so none of its offsets may be committed.
            self._upto.clear()
            raise

    def _take(self, tp: TopicPartition, part: Part) -> None:
        records: Sequence[Record] = part.records
        upto = part.next_offset
        ends = self.source.ends
        if ends is not None and tp in ends and upto > ends[tp]:
            upto = ends[tp]
            records = [record for record in records if record[OFFSET] < upto]
        if self.keep is not None:
            records = self.keep(records)
        left = self._left()
        if left is not None and len(records) >= left:
            if len(records) > left:
                upto = records[left][OFFSET]
            records = records[:left]
        try:
            self._parts.append(self.render(tp, records))
            self.printed += len(records)
        except WrongData:
            self._take_each(tp, records)
        self._upto[tp] = upto

    def _take_each(self, tp: TopicPartition, records: Sequence[Record]) -> None:
        """Print records one by one; skip those of a wrong type, or raise WrongData without `skip_errors`."""
        for record in records:
            try:
                self._parts.append(self.render(tp, [record]))
                self.printed += 1
            except WrongData as error:
                text = f"{tp} at offset {record[OFFSET]}: {error}"
                if not self.skip_errors:
                    self._upto[tp] = record[OFFSET]
                    raise WrongData(
                        f"{text}. Printed before it: {counted(self.printed, 'record')}. Give another "
                        "--key-type or --value-type (bytes takes anything), or --skip-errors"
                    ) from error
                self.skipped += 1
                self.tell(text)
