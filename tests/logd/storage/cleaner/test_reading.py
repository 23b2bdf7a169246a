"""Tests of consuming a log from which compaction has removed records.

Many producers that had each written one record left a row of batches without records. A consumer was answered
with empty batches only, which librdkafka took for a record too large to send.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client.records.header import HEADER_SIZE, BatchHeader, iter_batches
from logd.storage import NotResident
from logd.storage import segments as segments_module
from logd.storage.disk import CACHED_ONLY, read_slice
from logd.storage.empty_runs import KNOWN_MAX, LOOK_BYTES
from logd.storage.log.rolling import roll

MANY = LOOK_BYTES // HEADER_SIZE * 2
"""More batches without records than are looked over on the event loop."""


def producers(keyed: Any, numbers: range) -> None:
    """Append the same key once for each producer. Their batches have to stay, without the record."""
    for number in numbers:
        keyed.append(("same", "x"), producer_id=number, producer_epoch=0, base_sequence=0)


def headers(piece: Any) -> list[BatchHeader]:
    return [header for _, header in iter_batches(memoryview(read_slice(piece)))]


def read(keyed: Any, offset: int, max_bytes: int = 1, **facts: Any) -> list[BatchHeader]:
    piece = keyed.log.reader.read(offset, max_bytes, wants_records=True, **facts)
    return [] if piece is None else headers(piece)


def read_on_the_loop(keyed: Any, offset: int, jobs_max: int, **facts: Any) -> list[BatchHeader]:
    """Return the headers of a read as the broker does it: reads that would block the event loop run as jobs.
    AssertionError after more than `jobs_max` jobs.
    """
    for _ in range(jobs_max + 1):
        try:
            with CACHED_ONLY:
                return read(keyed, offset, **facts)
        except NotResident as need:
            need.job()
    raise AssertionError(f"not after {jobs_max} jobs")


def test_a_read_goes_on_to_the_first_record(keyed: Any) -> None:
    producers(keyed, range(100))
    keyed.append(("same", "y"))
    keyed.append(("other", "y"))
    keyed.roll()
    keyed.compact()
    assert sum(not header.count for header, _ in keyed.batches()) == 100
    for offset in (0, 1, 99, 100):
        (header,) = read(keyed, offset)
        assert (header.base_offset, header.count) == (100, 1)
    first, second, *_ = read(keyed, 50, max_bytes=10**6)
    assert (first.base_offset, second.base_offset) == (100, 101)
    piece = keyed.log.reader.read(50, 10**6)
    assert headers(piece)[0].base_offset == 50, "whoever copies the log wants all of it"


def test_the_byte_limit_holds_for_what_is_returned(keyed: Any) -> None:
    producers(keyed, range(10))
    keyed.append(("same", "y" * 1000))
    keyed.roll()
    keyed.compact()
    assert [header.base_offset for header in read(keyed, 0, 100)] == [10], "the first batch, as ever"
    assert read(keyed, 0, 100, min_one_batch=False) == []
    assert [header.base_offset for header in read(keyed, 0, 1100, min_one_batch=False)] == [10]


def test_a_read_goes_on_across_segments(keyed: Any) -> None:
    keyed.configure(segment_bytes=1000)
    producers(keyed, range(40))
    keyed.append(("same", "y"))
    keyed.roll()
    keyed.compact()
    assert len(keyed.bases()) > 3
    assert [header.base_offset for header in read(keyed, 0)] == [40]


def test_a_read_is_not_shown_what_may_not_be_read_yet(keyed: Any) -> None:
    """Nothing but batches without records below the high watermark: the last of them leads there."""
    producers(keyed, range(40))
    keyed.append(("same", "y"))
    keyed.roll()
    keyed.compact()
    (header,) = read(keyed, 0, upper_bound=20)
    assert (header.count, header.next_offset) == (0, 20)
    assert read(keyed, 20, upper_bound=20) == []
    (header,) = read(keyed, 20, upper_bound=41)
    assert header.base_offset == 40


def test_a_log_without_a_record_leads_to_its_end(keyed: Any) -> None:
    producers(keyed, range(40))
    keyed.append(("same", None))
    keyed.append(("filler", None))
    roll(keyed.log, keyed.log.flusher, keyed.now)
    keyed.log.flusher.flush()
    keyed.configure(delete_retention_ms=0)
    cleanable = keyed.log.compaction.cleanable(-1, upper_bound=keyed.log.log_end_offset, now_ms=keyed.now)
    assert cleanable.end == 0, "the end of the log is the active segment's"
    keyed.roll()
    for _ in range(2):
        keyed.first_dirty = -1
        keyed.compact()
        keyed.now += 1
    (header,) = read(keyed, 0, upper_bound=42)
    assert (header.count, header.next_offset) == (0, 40)


def test_the_loop_looks_over_a_part_and_a_thread_the_rest(keyed: Any) -> None:
    producers(keyed, range(MANY))
    keyed.append(("same", "y"))
    keyed.roll()
    keyed.compact()
    with pytest.raises(NotResident), CACHED_ONLY:
        read(keyed, 0)
    assert [header.base_offset for header in read_on_the_loop(keyed, 0, 1)] == [MANY]
    with CACHED_ONLY:
        (header,) = read(keyed, 0)
        assert header.base_offset == MANY, "it is known now"
        (header,) = read(keyed, 0, upper_bound=100)
        assert header.next_offset == 100, "but not shown before it may be"
        (header,) = read(keyed, MANY - 5)
        assert header.base_offset == MANY, "near enough"
    for offset in range(1, KNOWN_MAX + 2):
        assert [header.base_offset for header in read_on_the_loop(keyed, offset, 1)] == [MANY]
    keyed.log.release()
    with pytest.raises(NotResident), CACHED_ONLY:
        read(keyed, 0)


def test_a_run_looked_over_up_to_the_high_watermark_goes_on_behind_it(keyed: Any) -> None:
    """Searches by a thread for the end of a run stop at the high watermark. The read after it goes on from
    there: that stop was taken for the end of the run.
    """
    producers(keyed, range(MANY))
    keyed.append(("same", "y"))
    keyed.roll()
    keyed.compact()
    bound = MANY - 10
    (header,) = read_on_the_loop(keyed, 0, 1, upper_bound=bound)
    assert (header.count, header.next_offset) == (0, bound)
    assert [header.base_offset for header in read_on_the_loop(keyed, 0, 1)] == [MANY]


def test_one_read_passes_over_so_many_segments(keyed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads pass over at most EMPTY_SEGMENTS_MAX empty segments. Passing over a segment costs a few reads of
    the file, so the answer moves the reader on without a record.
    """
    monkeypatch.setattr(segments_module, "EMPTY_SEGMENTS_MAX", 2)
    keyed.configure(segment_bytes=1000)
    producers(keyed, range(80))
    keyed.append(("same", "y"))
    keyed.roll()
    keyed.compact()
    position, answers = 0, 0
    while (headers := read(keyed, position)) and not headers[0].count:
        (header,) = headers
        assert header.next_offset > position
        position, answers = header.next_offset, answers + 1
    assert headers[0].base_offset == 80
    assert 1 <= answers <= len(keyed.bases()) / 2


def test_a_cut_is_noticed(keyed: Any) -> None:
    producers(keyed, range(MANY))
    keyed.append(("same", "y"))
    keyed.roll()
    keyed.compact()
    read_on_the_loop(keyed, 0, 1)
    for deletion in keyed.log.shortening.truncate_to(MANY - 50, keyed.now):
        deletion.run()
    keyed.append(("other", "z"))
    (header,) = read_on_the_loop(keyed, 0, 1)
    assert (header.base_offset, header.count) == (MANY - 50, 1)
