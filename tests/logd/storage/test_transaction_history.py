"""Tests of random histories of producers and their transactions in one log, against a list of what was
written.

Faults: a kill leaves the files as they are. A power loss removes bytes from the end of the last segment, and
all or part of the entries of transaction indexes and snapshots. Nothing below the recovery point on the disk
is lost.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_client.errors import KafkaError
from kafka_client.records import ABORT, build_batch, decode_records, iter_batches, parse_control
from logd.storage.index.transaction import ENTRY_SIZE, AbortedTransaction
from tests.support import depth

PIDS = st.integers(1, 4)
STEPS = st.one_of(
    st.tuples(st.just("write"), PIDS, st.integers(1, 3)),
    st.tuples(st.just("write"), PIDS, st.integers(1, 3)),
    st.tuples(st.just("plain"), PIDS, st.integers(1, 3)),
    st.tuples(st.sampled_from(["commit", "abort", "commit and bump", "abort and bump"]), PIDS, st.just(0)),
    st.tuples(st.just("truncate"), st.integers(0, 10**6), st.just(0)),
    st.tuples(st.just("delete"), st.integers(0, 10**6), st.just(0)),
    st.tuples(st.sampled_from(["flush", "stop", "kill"]), st.just(0), st.just(0)),
    st.tuples(st.just("power loss"), st.integers(0, 10**6), st.just(0)),
)


@dataclass(frozen=True, slots=True)
class Written:
    """A batch that was written: a marker if `ends` says whether it commits."""

    base: int
    count: int
    pid: int
    epoch: int
    sequence: int
    size: int
    transactional: bool = False
    ends: bool | None = None


@dataclass(slots=True)
class Model:
    """A model of the log: the batches it should hold, and what follows from them."""

    written: list[Written] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.written[-1].base + self.written[-1].count if self.written else 0

    def open_transactions(self) -> dict[int, int]:
        """First offset of each producer's open transaction."""
        first_offsets: dict[int, int] = {}
        for batch in self.written:
            if batch.ends is not None:
                first_offsets.pop(batch.pid, None)
            elif batch.transactional:
                first_offsets.setdefault(batch.pid, batch.base)
        return first_offsets

    def aborted(self) -> list[AbortedTransaction]:
        """Return all aborted transactions, in the order of their markers."""
        aborted, open_now = [], {}
        for batch in self.written:
            if batch.ends is None:
                if batch.transactional:
                    open_now.setdefault(batch.pid, batch.base)
            elif (first := open_now.pop(batch.pid, None)) is not None and not batch.ends:
                stable = min(open_now.values(), default=batch.base + 1)
                aborted.append(AbortedTransaction(batch.pid, first, batch.base, stable))
        return aborted

    def visible(self, start: int, end: int) -> list[int]:
        """Offsets of the records a reader of committed records sees."""
        dead = {
            offset
            for aborted in self.aborted()
            for batch in self.written
            if batch.pid == aborted.producer_id
            and batch.transactional
            and aborted.first_offset <= batch.base < aborted.last_offset
            for offset in range(batch.base, batch.base + batch.count)
        }
        return [
            offset
            for batch in self.written
            if batch.ends is None
            for offset in range(batch.base, batch.base + batch.count)
            if start <= offset < end and offset not in dead
        ]

    def identity(self, pid: int) -> tuple[int, int]:
        """Epoch and next sequence of a producer."""
        epoch = sequence = 0
        for batch in self.written:
            if batch.pid == pid:
                if batch.epoch != epoch or batch.ends is None:
                    sequence = 0 if batch.ends is not None else batch.sequence + batch.count
                epoch = batch.epoch
        return epoch, sequence


def read_committed(store: Any, start: int, end: int) -> list[int]:
    """Return the offsets that a client shows after fetching [start, end) with its list of aborted
    transactions.
    """
    aborted = store.log.reader.aborted(start, end)
    assert aborted == sorted(aborted, key=lambda entry: entry.first_offset)
    active: set[int] = set()
    offsets: list[int] = []
    for chunk in store.log.reader.batches(start, end):
        for position, header in iter_batches(chunk):
            while aborted and aborted[0].first_offset <= header.last_offset:
                active.add(aborted.pop(0).producer_id)
            if header.is_control:
                ((_, _, key, _, _),) = decode_records(chunk, position)
                if parse_control(key)[1] == ABORT:
                    active.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in active):
                offsets += range(header.base_offset, header.next_offset)
    return [offset for offset in offsets if start <= offset < end]


class History:
    """Plays steps on a log and on the model."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.model = Model()

    def play(self, steps: list[tuple[str, int, int]]) -> None:
        for step, number, count in steps:
            getattr(self, step.split()[0])(step, number, count)
            self.compare()

    def write(self, step: str, pid: int, count: int) -> None:
        self._send(pid, count, transactional=True)

    def plain(self, step: str, pid: int, count: int) -> None:
        if pid not in self.model.open_transactions():
            self._send(pid, count, transactional=False)
        else:
            end = self.store.log.log_end_offset
            with pytest.raises(KafkaError, match="outside of it"):
                self._send(pid, count, transactional=False)
            assert self.store.log.log_end_offset == end

    def _send(self, pid: int, count: int, *, transactional: bool) -> None:
        epoch, sequence = self.model.identity(pid)
        records = build_batch(
            [(self.store.now, None, b"value", ())] * count,
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        base = self.model.end
        assert self.store.log.writer.append(records, 0, self.store.now).base_offset == base
        self.model.written.append(Written(base, count, pid, epoch, sequence, len(records), transactional))
        assert self.store.log.writer.append(records, 0, self.store.now).duplicate

    def commit(self, step: str, pid: int, count: int) -> None:
        epoch = self.model.identity(pid)[0] + ("bump" in step)
        base, commit = self.model.end, step.startswith("commit")
        appended = self.store.log.writer.append_marker(
            producer_id=pid,
            producer_epoch=epoch,
            commit=commit,
            coordinator_epoch=0,
            leader_epoch=0,
            now_ms=self.store.now,
            transaction_version=2 if "bump" in step else 0,
        )
        assert appended.base_offset == base
        self.model.written.append(Written(base, 1, pid, epoch, -1, 78, True, commit))

    abort = commit

    def truncate(self, step: str, number: int, count: int) -> None:
        log = self.store.log
        offset = log.log_start_offset + number % (self.model.end - log.log_start_offset + 1)
        log.shortening.truncate_to(offset, self.store.now)
        self.store.folder.start_checkpoint()()
        self.model.written = [batch for batch in self.model.written if batch.base + batch.count <= offset]

    def delete(self, step: str, number: int, count: int) -> None:
        """Nothing unstable, and nothing that a start could need to know the producers."""
        self.flush(step, 0, 0)
        log = self.store.log
        bound = log.first_unstable_offset
        for deletion in log.shortening.delete_records_before(
            number % ((self.model.end if bound is None else bound) + 1)
        ):
            deletion.run()
        self.store.folder.start_checkpoint()()

    def flush(self, step: str, number: int, count: int) -> None:
        self.store.log.flusher.flush()
        self.store.folder.start_checkpoint()()

    def stop(self, step: str, number: int, count: int) -> None:
        self.store.reopen(clean=True)

    def kill(self, step: str, number: int, count: int) -> None:
        self.store.reopen(clean=False)

    def power(self, step: str, number: int, count: int) -> None:
        """Cut the power: all or part of what was not flushed is lost."""
        dice = random.Random(number)
        safe = self.store.log.recovery_point
        self.store.folder.start_checkpoint()()
        self.store.kill()
        path = sorted(self.store.log_path.glob("*.log"))[-1]
        base, size = int(path.stem), path.stat().st_size
        here = [batch for batch in self.model.written if batch.base >= base]
        size_left = dice.randint(sum(batch.size for batch in here if batch.base < safe), size)
        path.write_bytes(path.read_bytes()[:size_left])
        for batch in reversed(here):
            if sum(other.size for other in here) <= size_left:
                break
            here.remove(batch)
            self.model.written.remove(batch)
        for index in self.store.log_path.glob("*.txnindex"):
            data = index.read_bytes()
            flushed = sum(
                int.from_bytes(data[start + 18 : start + 26]) < safe
                for start in range(0, len(data), ENTRY_SIZE)
            )
            data = data[: dice.randint(flushed * ENTRY_SIZE, len(data))]
            index.write_bytes(data + dice.choice([b"", bytes(40), bytes(34), b"\7" * 5]))
        for snapshot in self.store.log_path.glob("*.snapshot"):
            if int(snapshot.stem) > safe:
                dice.choice([snapshot.unlink, lambda path=snapshot: path.write_bytes(b""), lambda: None])()
        self.store.open()

    def compare(self) -> None:
        log, model = self.store.log, self.model
        start, end = log.log_start_offset, model.end
        assert log.log_end_offset == end or (not model.written and start == log.log_end_offset)
        end = log.log_end_offset
        log.replicated_to(end)
        transactions = model.open_transactions()
        unstable = min(transactions.values(), default=None)
        assert log.first_unstable_offset == (None if unstable is None else max(unstable, start))
        for pid in range(1, 5):
            assert log.producers.has_open_transaction(pid) == (pid in transactions)
        expected = model.aborted()
        for first, last in self._ranges(start, end):
            assert {entry[:1] + entry[2:3] for entry in log.reader.aborted(first, last)} == {
                entry[:1] + entry[2:3]
                for entry in expected
                if entry.last_offset >= first and entry.first_offset < last
            }
        stable = end if log.first_unstable_offset is None else log.first_unstable_offset
        assert read_committed(self.store, start, stable) == model.visible(start, stable)

    @staticmethod
    def _ranges(start: int, end: int) -> Iterator[tuple[int, int]]:
        yield start, end
        for offset in range(start, end, 3):
            yield offset, min(offset + 4, end)


@depth.deep
@settings(max_examples=depth.times(100))
@given(
    steps=st.lists(STEPS, min_size=15, max_size=40),
    segment_bytes=st.sampled_from([200, 500, 1500]),
    index_interval=st.sampled_from([0, 300, 4096]),
)
def test_readers_see_what_was_committed(
    make_store: Any, steps: list[tuple[str, int, int]], segment_bytes: int, index_interval: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = make_store(Path(folder))
        store.configure(segment_bytes=segment_bytes, index_interval_bytes=index_interval)
        store.open()
        try:
            History(store).play(steps)
        finally:
            store.kill()
