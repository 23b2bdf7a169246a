"""Restoring a store to its cut: tails undone, gaps passed, and what compaction may have taken.

The cleaner can only remove the original of a key of the tail if the segment rolled within a broken off
commit. Such a commit took several batches, whose records say what was before.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Fetched, OffsetAndMetadata, TopicPartition
from kafka_client.records import Codec, NewRecord, assign_offset, build_batch, build_marker
from streams.errors import StateError
from streams.runtime.commit.positions import Cut, commit_offsets, equally_long, read_cut
from streams.runtime.restore import restore as restore_module
from streams.runtime.restore.previous_value_header import previous_of, with_previous
from streams.runtime.restore.restore import StoreRestore
from streams.runtime.task.task import StreamTimes
from streams.serdes import Long, String
from streams.state import KeyValueStore, MemoryBackend, StoreSpec
from streams.state.backend import Update
from streams.state.rocks import RocksBackend

TP = TopicPartition("app-s-changelog", 0)
CUT = 10


def long(value: int) -> bytes:
    return value.to_bytes(8, "big")


def record(key: str, value: int | None, headers: object = ()) -> NewRecord:
    return 5, key.encode(), None if value is None else long(value), headers  # type: ignore[return-value]


def fetched(*batches: tuple[int, list[NewRecord]], then: int) -> Fetched:
    data = b"".join(build_batch(records, base_offset=offset) for offset, records in batches)
    count = sum(len(records) for _, records in batches)
    return Fetched(TP, batches[0][0], then, memoryview(data), record_count=count)


def transactional(offset: int, producer: int, only: NewRecord) -> bytes:
    return build_batch([only], base_offset=offset, producer_id=producer, producer_epoch=0, transactional=True)


def marker(offset: int, producer: int, *, commit: bool) -> bytes:
    built = bytearray(
        build_marker(commit, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0)
    )
    assign_offset(built, offset, -1)
    return bytes(built)


def new_store(tmp_path: Path | None = None) -> KeyValueStore[str, int]:
    spec = StoreSpec(name="s", kind="key_value", key_serde=String(), value_serde=Long())
    return KeyValueStore(spec, MemoryBackend() if tmp_path is None else RocksBackend(tmp_path / "s"))


@pytest.fixture
def store() -> KeyValueStore[str, int]:
    return new_store()


def restore(store: KeyValueStore[str, int], *answers: Fetched, end: int) -> None:
    restored = StoreRestore(store, 0, CUT, end, {})
    for each in answers:
        assert not restored.is_done
        restored.apply(each)
    assert restored.is_done
    restored.finish()


def repaired(store: KeyValueStore[str, int]) -> dict[bytes, bytes | None]:
    store.drain()
    return {key: value for key, (value, _) in store.pending.items()}


def test_records_up_to_the_cut(store: KeyValueStore[str, int]) -> None:
    first = fetched((0, [record("a", 1), record("b", 2)]), (6, [record("a", 3), record("b", None)]), then=8)
    restore(store, first, fetched((8, [record("c", 4), record("c", 5)]), then=CUT), end=CUT)
    assert dict(store.all()) == {"a": 3, "c": 5}
    assert store.get_timestamp("a") == 5
    assert store.backend.checkpoint == CUT
    assert repaired(store) == {}


def test_a_tail_is_undone_and_repaired(store: KeyValueStore[str, int]) -> None:
    log = fetched(
        (0, [record("a", 1), record("b", 2), record("b", 3)]),
        (CUT, [record("a", 100), record("b", None), record("new", 7), record("a", 101)]),
        then=14,
    )
    restore(store, log, end=14)
    assert dict(store.all()) == {"a": 1, "b": 3}
    assert store.backend.checkpoint == CUT
    assert repaired(store) == {b"a": long(1), b"b": long(3), b"new": None}


def test_a_batch_may_lie_on_both_sides_of_the_cut(store: KeyValueStore[str, int]) -> None:
    restore(store, fetched((9, [record("a", 1), record("a", 2), record("b", 3)]), then=12), end=12)
    assert dict(store.all()) == {"a": 1}


def test_originals_that_compaction_took_come_from_the_tail(store: KeyValueStore[str, int]) -> None:
    was_a = with_previous(CUT, long(5) + long(1))
    was_nothing = with_previous(CUT, None)
    log = fetched((CUT, [record("a", 100, was_a), record("new", 7, was_nothing)]), then=12)
    restore(store, log, end=12)
    assert dict(store.all()) == {"a": 1}
    assert repaired(store) == {b"a": long(1), b"new": None}


def test_a_previous_value_at_another_cut_is_not_used(store: KeyValueStore[str, int]) -> None:
    stale = with_previous(CUT - 3, long(5) + long(66))
    log = fetched((0, [record("a", 1)]), (CUT, [record("a", 100, stale)]), then=11)
    restore(store, log, end=11)
    assert dict(store.all()) == {"a": 1}


def test_what_was_fetched_is_written_in_parts(
    store: KeyValueStore[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.runtime.restore.restore.PART_RECORDS", 3)
    checkpoints: list[int | None] = []
    write = store.backend.write

    def written(updates: Iterable[Update], checkpoint: int | None, *more: Any) -> None:
        checkpoints.append(checkpoint)
        write(updates, checkpoint, *more)

    monkeypatch.setattr(store.backend, "write", written)
    batches = [(at, [record("a", at), record("b", at), record(f"of {at}", at)]) for at in range(0, 12, 3)]
    restore(store, fetched(*batches, then=12), end=12)
    assert checkpoints == [3, 6, 9, CUT, CUT]
    assert dict(store.all()) == {"a": 9, "b": 6, "of 0": 0, "of 3": 3, "of 6": 6}
    assert repaired(store) == {b"b": long(6), b"of 9": None}


def test_what_was_aborted_is_left_out_of_every_part(
    store: KeyValueStore[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.runtime.restore.restore.PART_RECORDS", 1)
    data = b"".join(
        (
            transactional(0, 1, record("a", 1)),
            transactional(1, 2, record("a", 2)),
            transactional(2, 2, record("b", 3)),
            transactional(3, 1, record("c", 4)),
            marker(4, 1, commit=True),
            marker(5, 2, commit=False),
            transactional(6, 2, record("d", 6)),
        )
    )
    restore(
        store,
        Fetched(TP, 0, 10, memoryview(data), record_count=7, aborted=((2, 1),), committed_only=True),
        end=10,
    )
    assert dict(store.all()) == {"a": 1, "c": 4, "d": 6}


def test_records_before_the_position_are_passed_over(store: KeyValueStore[str, int]) -> None:
    batch = build_batch([record("a", 1), record("b", 2), record("c", 3)], base_offset=2)
    restored = StoreRestore(store, 3, CUT, CUT, {})
    restored.apply(Fetched(TP, 3, CUT, memoryview(batch)))
    assert (dict(store.all()), restored.restored) == ({"b": 2, "c": 3}, 2)


def test_a_batch_of_many_records_is_written_in_parts(
    store: KeyValueStore[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch with more records than may be in memory at once is written in parts."""
    monkeypatch.setattr(restore_module, "PART_RECORDS", 3)
    sizes: list[int] = []
    write = store.backend.write

    def noted(updates: Iterable[tuple[bytes, bytes | None]], *where: Any) -> None:
        updates = list(updates)
        sizes.append(len(updates))
        write(updates, *where)

    monkeypatch.setattr(store.backend, "write", noted)
    batch = build_batch([record(f"k{n}", n) for n in range(8)], codec=Codec.GZIP)
    restored = StoreRestore(store, 0, CUT, CUT, {})
    restored.apply(Fetched(TP, 0, 8, memoryview(batch), record_count=8))
    assert dict(store.all()) == {f"k{n}": n for n in range(8)}
    assert (sizes, restored.restored, restored.position) == ([3, 3, 2], 8, 8)


def test_a_damaged_batch_is_refused(store: KeyValueStore[str, int]) -> None:
    batch = bytearray(build_batch([record("a", 1)]))
    batch[-2] ^= 1
    with pytest.raises(StateError, match=r"the batch of offsets 0 to 0 cannot be read: .*CRC"):
        StoreRestore(store, 0, CUT, CUT, {}).apply(Fetched(TP, 0, 1, memoryview(batch)))


def test_a_checkpoint_within_the_log_is_gone_on_from(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    store.backend.write([(b"a", long(5) + long(1))], 4)
    restored = StoreRestore(store, 4, CUT, 11, {})
    restored.apply(fetched((7, [record("b", 2)]), (CUT, [record("a", 9)]), then=11))
    restored.finish()
    assert dict(store.all()) == {"a": 1, "b": 2}
    store.close()


def test_headers_round_trip() -> None:
    assert previous_of(with_previous(3, b"12345678v"), 3) == (True, b"12345678v")
    assert previous_of(with_previous(3, None), 3) == (True, None)
    assert previous_of(with_previous(3, None), 4) == (False, None)
    assert previous_of((), 3) == (False, None)


# -- the note that says where the cut is


A, B = TopicPartition("a", 0), TopicPartition("b", 0)
LOGS = {name: TopicPartition(f"{name}-changelog", 0) for name in "rsw"}
KINDS = {"r": "key_value", "s": "key_value", "w": "window"}


def test_positions_and_cut_travel_together() -> None:
    positions = {B: 7, A: 5}
    times = StreamTimes(90, {"w": 80})
    offsets = commit_offsets(positions, {"s": 12, "w": 30}, times, {name: LOGS[name] for name in "sw"}, KINDS)
    assert {tp: offsets[tp].offset for tp in positions} == positions
    assert read_cut(offsets, positions) == Cut(
        positions, {"s": 12, "w": 30}, times, {name: KINDS[name] for name in "sw"}
    )


@pytest.mark.parametrize("text", ["", "by hand"])
def test_offsets_moved_by_hand_take_the_state_as_it_is(text: str) -> None:
    offsets = commit_offsets({A: 5}, {"s": 1}, StreamTimes(), {"s": LOGS["s"]}, KINDS)
    by_hand = {tp: each._replace(metadata=text) for tp, each in offsets.items()}
    assert read_cut(by_hand, [A]).changelogs is None


def test_notes_of_tasks_that_are_one_now_count_together() -> None:
    """The state of two sub-topologies, which a join has made one, is kept."""
    offsets = commit_offsets({A: 5}, {"s": 12}, StreamTimes(90, {"s": 80}), {"s": LOGS["s"]}, KINDS)
    offsets |= commit_offsets({B: 7}, {"r": 3}, StreamTimes(70), {"r": LOGS["r"]}, KINDS)
    times, kinds = StreamTimes(90, {"s": 80}), {name: KINDS[name] for name in "rs"}
    assert read_cut(offsets, [A, B]) == Cut({A: 5, B: 7}, {"s": 12, "r": 3}, times, kinds)


def test_state_outlives_its_inputs() -> None:
    """If the inputs were deleted or replaced, the changelog's own committed offset is used."""
    offsets = commit_offsets({A: 5}, {"w": 12}, StreamTimes(90, {"w": 80}), {"w": LOGS["w"]}, KINDS)
    del offsets[A]
    assert read_cut(offsets, [B]) == Cut({}, {"w": 12}, StreamTimes(), {"w": "window"})


def test_times_do_not_outlive_the_input_they_go_with() -> None:
    """If the first of two inputs was created again, no stream times are kept: none of its new records is
    late.
    """
    offsets = commit_offsets({A: 5, B: 7}, {"w": 12}, StreamTimes(90, {"w": 80}), {"w": LOGS["w"]}, KINDS)
    del offsets[A]
    assert read_cut(offsets, [A, B]).times == StreamTimes()


def test_notes_of_earlier_releases_are_read() -> None:
    """Metadata of earlier releases is read: the first input's had all stores, and a changelog's no times."""
    offsets = {
        A: OffsetAndMetadata(5, '{"v":1,"time":90,"stores":{"s":[12,-1],"w":[30,80],"w newest":[-1,85]}}'),
        B: OffsetAndMetadata(7),
        LOGS["s"]: OffsetAndMetadata(
            12, '{"v":1,"time":-1,"stores":{"s":[12,-1]},"kinds":{"s":"key_value"}}'
        ),
        LOGS["w"]: OffsetAndMetadata(30, '{"v":1,"time":-1,"stores":{"w":[30,-1]},"kinds":{"w":"window"}}'),
    }
    times = StreamTimes(90, {"w": 80, "w newest": 85})
    cut = Cut({A: 5, B: 7}, {"s": 12, "w": 30}, times, {"s": "key_value", "w": "window"})
    assert read_cut(offsets, [A, B]) == cut


@pytest.mark.parametrize("logged", [True, False])
@pytest.mark.parametrize("inputs", [[A], [A, B]])
def test_the_notes_of_hundreds_of_stores_are_short(logged: bool, inputs: list[TopicPartition]) -> None:
    names = [f"page-views-per-user-by-window-of-{number:03}-minutes" for number in range(300)]
    kinds = dict.fromkeys(names, "window")
    ends = dict.fromkeys(names, 2**40) if logged else {}
    logs = {name: TopicPartition(f"{name}-changelog", 0) for name in ends}
    times = {name: 1_700_000_000_000 + number * 7919 for number, name in enumerate(names)}
    times |= {f"{name} newest": times[name] - 1 for name in names[:50]}
    offsets = commit_offsets(dict.fromkeys(inputs, 7), ends, StreamTimes(90, times), logs, kinds)
    assert max(len(each.metadata) for each in offsets.values()) < 4096
    assert max((len(offsets[tp].metadata) for tp in logs.values()), default=0) < 300
    cut = read_cut(equally_long(offsets), inputs)
    assert cut == Cut(dict.fromkeys(inputs, 7), ends, StreamTimes(90, times), kinds if logged else {})


def test_a_changelog_that_was_deleted_is_missed() -> None:
    """A deleted changelog is noticed by the inputs' metadata, since the broker deletes the topic's own
    committed offset.
    """
    offsets = commit_offsets({A: 5}, {"w": 12}, StreamTimes(90, {"w": 80}), {"w": LOGS["w"]}, KINDS)
    del offsets[LOGS["w"]]
    assert read_cut(offsets, [A]).changelogs == {"w": 12}


def test_the_clocks_of_many_streams_that_write_one_store_are_kept_in_its_note() -> None:
    times = {f"w of KSTREAM-AGGREGATE-{number:010}": 1_700_000_000_000 + number for number in range(300)}
    offsets = commit_offsets({A: 5}, {"w": 12}, StreamTimes(90, times), {"w": LOGS["w"]}, KINDS)
    assert max(len(each.metadata) for each in offsets.values()) < 4096
    assert read_cut(offsets, [A]).times.stores == times


def test_notes_outside_of_a_transaction_are_taken_all_or_none() -> None:
    offsets = commit_offsets({A: 5, B: 7}, {"w": 12}, StreamTimes(90, {"w": 80}), {"w": LOGS["w"]}, KINDS)
    assert len({len(each.metadata) for each in offsets.values()}) == 3
    padded = equally_long(offsets)
    assert len({len(each.metadata) for each in padded.values()}) == 1
    assert read_cut(padded, [A, B]) == read_cut(offsets, [A, B])


@pytest.mark.parametrize("packed", ["", "no base 85: \\u00e4", "c-muz", "VPazF"])
def test_a_packed_note_that_is_not_ours_counts_for_nothing(packed: str) -> None:
    note = f'{{"v":1,"time":90,"stores":{{}},"packed":"{packed or "~" * 30}"}}'
    assert read_cut({A: OffsetAndMetadata(5, note)}, [A]) == Cut({A: 5}, None, StreamTimes())


def test_nothing_committed_means_that_nothing_counts() -> None:
    assert read_cut({}, [A]) == Cut({}, {}, StreamTimes())
