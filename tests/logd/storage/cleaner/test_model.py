"""Any history, compacted at any time, reads as a plain list of its records says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kafka_client.records import Codec
from logd.storage.log.compaction import CleanerLimits
from tests.support import depth

KEYS = st.sampled_from("abcdef")
PUTS = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.text("xyz", max_size=3))), min_size=1, max_size=5)
STEP = st.one_of(
    st.tuples(st.just("put"), PUTS, st.sampled_from(Codec)),
    st.tuples(st.just("produce"), st.integers(0, 1), PUTS),
    st.tuples(st.just("transact"), st.integers(2, 3), PUTS),
    st.tuples(st.just("end"), st.integers(2, 3), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(st.just("wait"), st.integers(1, 1500)),
    st.tuples(st.just("compact"), st.integers(1, 8)),
    st.tuples(st.just("reopen"), st.booleans()),
    st.tuples(st.just("trim"), st.integers(1, 5)),
)
RETENTION_MS = 1000
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]
"""Explaining a failure would trace every line, which takes minutes here."""


class Noted(NamedTuple):
    """A record as it was written; `transaction` is its number, -1 without one."""

    key: str
    value: str | None
    transaction: int


class Model:
    """A log under test and a list of what was written to it."""

    def __init__(self, keyed: Any) -> None:
        self.keyed = keyed
        self.written: dict[int, Noted] = {}
        self.sequences: dict[int, int] = {}
        self.open: dict[int, int] = {}
        self.aborted: set[int] = set()
        self.transactions = 0
        self.start = 0
        self.first_cleaned: dict[int, int] = {}

    # Steps

    def put(self, puts: list[tuple[str, str | None]], codec: Codec) -> None:
        self._note(self.keyed.append(*puts, codec=codec), puts, -1)

    def produce(self, producer: int, puts: list[tuple[str, str | None]]) -> None:
        self._sequenced(producer, puts, False)

    def transact(self, producer: int, puts: list[tuple[str, str | None]]) -> None:
        if producer not in self.open:
            self.transactions += 1
            self.open[producer] = self.transactions
        self._sequenced(producer, puts, True)

    def _sequenced(self, producer: int, puts: list[tuple[str, str | None]], transactional: bool) -> None:
        sequence = self.sequences.get(producer, 0)
        offset = self.keyed.append(
            *puts,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
        )
        self.sequences[producer] = sequence + len(puts)
        self._note(offset, puts, self.open.get(producer, -1) if transactional else -1)

    def _note(self, offset: int, puts: list[tuple[str, str | None]], transaction: int) -> None:
        for number, (key, value) in enumerate(puts):
            self.written[offset + number] = Noted(key, value, transaction)

    def end(self, producer: int, commit: bool) -> None:
        transaction = self.open.pop(producer, None)
        if transaction is None:
            return
        if not commit:
            self.aborted.add(transaction)
        self.keyed.log.writer.append_marker(
            commit=commit,
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
            leader_epoch=0,
            now_ms=self.keyed.now,
        )

    def roll(self) -> None:
        self.keyed.roll()

    def wait(self, ms: int) -> None:
        self.keyed.now += ms

    def compact(self, keys: int) -> None:
        self.keyed.limits = CleanerLimits(map_bytes=24 * keys, map_load_factor=0.99)
        self.keyed.compact()
        for offset in self.written:
            if offset < self.keyed.first_dirty:
                self.first_cleaned.setdefault(offset, self.keyed.now)
        self.check()

    def reopen(self, clean: bool) -> None:
        self.keyed.log.flusher.flush()
        if not clean:
            for path in self.keyed.log_path.glob("*.snapshot"):
                path.unlink()
        self.keyed.reopen(clean=clean)
        self.check()
        producers = self.keyed.log.producers.producers
        for producer, sequence in self.sequences.items():
            state = producers.get(producer)
            # One whose records were all deleted may be forgotten.
            assert state is None or state.next_sequence in (sequence, 0)
            if self.start == 0:
                assert state is not None and state.next_sequence == sequence

    def trim(self, count: int) -> None:
        stable = self.keyed.log.first_unstable_offset
        end = self.keyed.log.log_end_offset if stable is None else stable
        self.start = max(self.start, min(self.start + count, end))
        for deletion in self.keyed.log.shortening.delete_records_before(self.start):
            deletion.run()

    # What has to hold

    def check(self) -> None:
        rows = [row for row in self.keyed.records() if row[0] >= self.start]
        offsets = [offset for offset, *_ in rows]
        assert offsets == sorted(set(offsets))
        for offset, key, value in rows:
            assert (key, value) == self.written[offset][:2], f"offset {offset}"
        self._check_committed(set(offsets))

    def _check_committed(self, there: set[int]) -> None:
        last: dict[str, int] = {}
        for offset, noted in self.written.items():
            if noted.transaction not in self.aborted:
                last[noted.key] = offset
        for offset in last.values():
            if offset in there or offset < self.start:
                continue
            assert self.written[offset].value is None, f"the value at {offset} is gone"
            assert self.keyed.now - self.first_cleaned[offset] >= RETENTION_MS, (
                f"deletion {offset} went early"
            )
            older = [
                other for other in there
                if other < offset and self.written[other].key == self.written[offset].key
                and self.written[other].transaction not in self.aborted
            ]  # fmt: skip
            assert not older, f"{older} came to life again without {offset}"
        self._check_aborted(there)

    def _check_aborted(self, there: set[int]) -> None:
        """Check that readers of committed records get every aborted transaction of which a record remains."""
        listed = self.keyed.log.reader.aborted(self.start, self.keyed.log.log_end_offset)
        for header, records in self.keyed.batches():
            for offset, *_ in records:
                noted = self.written.get(offset)
                if noted is None or noted.transaction < 0:
                    continue
                is_listed = any(
                    entry.producer_id == header.producer_id
                    and entry.first_offset <= offset < entry.last_offset
                    for entry in listed
                )
                assert is_listed == (noted.transaction in self.aborted), f"offset {offset}"

    def finish(self) -> None:
        """End all transactions, clean everything and let all deletions expire. Check that one record of each
        key remains.
        """
        for producer in tuple(self.open):
            self.end(producer, True)
        self.roll()
        for _ in range(3):
            self.keyed.limits = CleanerLimits(map_bytes=2400)
            self.keyed.first_dirty = -1
            self.keyed.compact_all()
            for offset in self.written:
                self.first_cleaned.setdefault(offset, self.keyed.now)
            self.check()
            self.keyed.now += RETENTION_MS
        rows = [row for row in self.keyed.records() if row[0] >= self.start]
        assert len({key for _, key, _ in rows}) == len(rows)
        assert all(value is not None for *_, value in rows)


@settings(max_examples=depth.times(60), suppress_health_check=[HealthCheck.too_slow], phases=PHASES)
@given(history=st.lists(STEP, min_size=3, max_size=40))
def test_histories(make_keyed: Callable[[Path], Any], history: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        keyed = make_keyed(Path(name) / "data")
        keyed.configure(delete_retention_ms=RETENTION_MS, segment_bytes=2000)
        keyed.open()
        try:
            model = Model(keyed)
            for step, *facts in history:
                getattr(model, step)(*facts)
            model.finish()
        finally:
            keyed.kill()
