"""Random histories of one log against a list of its records."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import depth

STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 300)),
    st.tuples(st.just("read"), st.integers(0, 10**6), st.integers(0, 2000)),
    st.tuples(st.just("truncate"), st.integers(0, 10**6), st.just(0)),
    st.tuples(st.just("delete"), st.integers(0, 10**6), st.just(0)),
    st.tuples(st.sampled_from(["flush", "stop", "kill"]), st.just(0), st.just(0)),
)


@settings(max_examples=depth.times(60))
@given(
    steps=st.lists(STEPS, max_size=40),
    segment_bytes=st.integers(2000, 5000),
    index_interval=st.sampled_from([0, 300, 4096]),
)
def test_a_log_is_its_records_in_order(
    make_store: Any, steps: list[tuple[str, int, int]], segment_bytes: int, index_interval: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = make_store(Path(folder))
        store.configure(segment_bytes=segment_bytes, index_interval_bytes=index_interval)
        store.open()
        try:
            play(store, steps)
        finally:
            store.kill()


def play(store: Any, steps: list[tuple[str, int, int]]) -> None:
    """Play the steps, and compare the log with `batches` after each: the base offset and the values of each
    batch.
    """
    batches: list[tuple[int, list[str]]] = []
    end = count = 0
    for step, number, size in steps:
        if step == "append":
            values = [f"{count + index}:".ljust(size, "x") for index in range(number)]
            count += number
            assert store.append(*values) == end
            batches.append((end, values))
            end += number
        elif step == "read":
            offset = store.log.log_start_offset + number % (end - store.log.log_start_offset + 1)
            expected = [base for base, values in batches if base + len(values) > offset]
            bases = store.offsets_in(offset, size)
            assert bases == expected[: len(bases)] and bool(bases) == (offset < end)
        elif step == "truncate":
            offset = store.log.log_start_offset + number % (end - store.log.log_start_offset + 1)
            batches = [batch for batch in batches if batch[0] + len(batch[1]) <= offset]
            store.log.shortening.truncate_to(offset, store.now)
            store.folder.start_checkpoint()()
            end = batches[-1][0] + len(batches[-1][1]) if batches else store.log.log_end_offset
        elif step == "delete":
            for deletion in store.log.shortening.delete_records_before(number % (end + 1)):
                deletion.run()
            store.folder.start_checkpoint()()
        elif step == "flush":
            store.log.flusher.flush()
            store.folder.start_checkpoint()()
        else:
            store.reopen(clean=step == "stop")
        start = store.log.log_start_offset
        assert store.log.log_end_offset == end
        assert [(record[0], record[3].decode()) for record in store.records() if record[0] >= start] == [
            (base + index, value)
            for base, values in batches
            for index, value in enumerate(values)
            if base + index >= start
        ]
