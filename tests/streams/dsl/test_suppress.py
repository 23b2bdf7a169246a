"""Suppressed updates survive a restart, have bounds, and are stored in the same bytes as Kafka's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streams import StreamsBuilder, Suppressed, TimeWindows, TopologyError
from streams.errors import SuppressBufferFull
from streams.processors.tables.suppress import Buffer, SuppressedView
from streams.serdes import Json, Long, Serde, SessionWindowed, String, TimeWindowed
from streams.serdes.buffered import Buffered, BufferedSerde
from streams.serdes.change import ChangeSerde
from streams.state import StoreSpec, open_store
from streams.testing import TopologyTestDriver
from tests.support import depth

SPEC = StoreSpec(name="held", kind="key_value", key_serde=String(), value_serde=BufferedSerde(), cached=False)

values = st.none() | st.binary(max_size=9)
buffered = st.builds(
    Buffered,
    st.integers(0, 2**60),
    values,
    values,
    values,
    st.integers(-1, 2**60),
    st.integers(-1, 2**60),
    st.text(max_size=5),
    st.integers(-1, 99),
    st.lists(st.tuples(st.text(max_size=3), values), max_size=3).map(tuple),
)


def update(time: int, new: bytes | None, prior: bytes | None = None) -> Buffered:
    return Buffered(time, prior, prior, new, time, 0, "in", 0, ())


def test_what_is_held_back_is_there_after_a_restart(tmp_path: Path) -> None:
    store = open_store(SPEC, tmp_path)
    buffer = Buffer(store)
    for key, update_of_key in [
        (b"a", update(5, b"1")),
        (b"b", update(3, b"2")),
        (b"c", update(4, None, b"3")),
    ]:
        buffer.put(key, key.decode(), update_of_key)
    buffer.drop_first(3)
    buffer.put(b"a", "a", update(9, b"4"))
    store.drain()
    store.written(1)
    store.close()
    again = open_store(SPEC, tmp_path)
    reopened = Buffer(again)
    assert (len(reopened), reopened.bytes, reopened.lowest_time) == (2, buffer.bytes, 4)
    reopened.drop_first(4)
    assert reopened.first() == ("a", update(9, b"4")._replace(time=5)), "it has kept its place in the queue"
    again.close()


STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from([b"a", b"b", b"c"]), st.integers(0, 9)),
    st.sampled_from([("drop",), ("drain",), ("written",), ("shrink",), ("look",)]),
)


PUT, COMMIT = ("put", b"a", 1), [("drain",), ("written",)]


@example(steps=[PUT, *COMMIT, PUT, ("drop",)])
@example(steps=[PUT, *COMMIT, ("drop",), ("drain",), PUT, ("drop",), ("look",)])
@settings(max_examples=depth.times(200))
@given(steps=st.lists(STEPS, max_size=40))
def test_what_goes_before_a_commit_is_nowhere_and_all_else_as_it_was(steps: list[tuple[Any, ...]]) -> None:
    """The buffer agrees with a dictionary. The drained changes add up to the dictionary, without deletions of
    keys that were never drained.
    """
    store = open_store(SPEC, None)
    buffer, model, drained = Buffer(store), dict[bytes, tuple[int, int]](), dict[bytes, Any]()
    for number, step in enumerate([*steps, ("drain",)]):
        match step:
            case ("put", key, time):
                model[key] = model[key][0] if key in model else time, number
                buffer.put(key, key.decode(), update(time, b"%d" % number))
            case ("drop",) if model:
                name, update_of_key = buffer.first()
                assert (update_of_key.time, int(update_of_key.new or b"")) == model.pop(name.encode())
                assert update_of_key.time <= min(
                    (time for time, _ in model.values()), default=update_of_key.time
                )
                buffer.drop_first(update_of_key.timestamp)
            case ("drain",):
                store.written(None)
                if store.needs_drain:
                    store.drain()
                for key, (data, _) in store.pending.items():
                    assert data is not None or key in drained, "deleted, and never told of"
                    drained[key] = data
                drained = {key: data for key, data in drained.items() if data is not None}
                assert drained.keys() == model.keys()
            case ("written",):
                store.written(None)
            case ("shrink",) if not store.pending:
                store.shrink()
            case ("look",):
                for key in (b"a", b"b", b"c"):
                    looked = buffer.find(key)
                    numbered = None if looked is None else int(looked.new or b"")
                    assert numbered == (model[key][1] if key in model else None)
    stored = {
        key: (update_of_key.time, int(update_of_key.new or b"")) for key, update_of_key, _ in store.scan()
    }
    assert stored == model and len(buffer) == len(model)
    assert buffer.bytes == sum(8 + len(key) + update_of_key.size for key, update_of_key, _ in store.scan())


def test_nobody_changes_a_key_that_is_held_back() -> None:
    store = open_store(replace(SPEC, key_serde=Json()), None)
    buffer, key = Buffer(store), {"id": [1]}
    buffer.put(store.encode_key(key), key, update(1, b"new"))
    key["id"].append(2)
    assert buffer.first() == ({"id": [1]}, update(1, b"new"))


@pytest.mark.parametrize("serde", [TimeWindowed(String(), 5), SessionWindowed(String())])
def test_windowed_keys_cannot_be_changed_if_their_keys_cannot(serde: Serde[Any]) -> None:
    assert serde.immutable and not type(serde)(Json(), *[5] * isinstance(serde, TimeWindowed)).immutable


def test_others_know_what_a_key_was_before_it_was_held_back_until_it_goes() -> None:
    store, parent = open_store(SPEC, None), {"a": (9, 5), "b": (8, 5)}
    wiring: Any = SimpleNamespace(store=lambda name: store)
    parents: Any = SimpleNamespace(bind=lambda wiring: parent.get)
    get = SuppressedView(parents, "held", Long()).bind(wiring)
    assert (get("a"), get("c")) == ((9, 5), None)
    buffer = Buffer(store)
    buffer.put(b"a", "a", update(1, b"new", (3).to_bytes(8, "big")))
    buffer.put(b"b", "b", update(2, b"new"))
    for commit in (lambda: None, store.drain, lambda: store.written(1)):
        commit()
        assert (get("a"), get("b"), get("c")) == ((3, -1), None, None)
    buffer.drop_first(6)
    assert (get("a"), get("b")) == ((9, 5), None)


def test_a_full_buffer_ends_the_application_and_says_what_to_do() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    counts = builder.stream("in").group_by_key().windowed_by(TimeWindows(10)).count()
    counts.suppress(Suppressed.until_window_closes(max_records=2, name="last"))
    with TopologyTestDriver(builder) as driver:
        topic = driver.input_topic("in")
        topic.pipe_all([("a", "x"), ("b", "x")])
        with pytest.raises(SuppressBufferFull) as raised:
            topic.pipe_input("c", "x")
    assert str(raised.value) == (
        "last holds back 3 of 2 records and 141 of any number bytes: raise max_records or max_bytes, or use "
        "until_time_limit with when_full='emit_early'"
    )


def test_only_windows_close() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    table = builder.stream("in").group_by_key().count()
    with pytest.raises(TopologyError, match="until_window_closes is for tables of windows"):
        table.suppress(Suppressed.until_window_closes())
    with pytest.raises(TopologyError, match="max_bytes is -1, it must not be negative"):
        Suppressed.until_time_limit(5, max_bytes=-1)


@given(buffered)
def test_updates_held_back_are_read_as_they_were_written(update_of_key: Buffered) -> None:
    serde = BufferedSerde()
    assert serde.deserialize(serde.serialize(update_of_key)) == update_of_key


def test_bytes_that_are_no_such_update_are_refused() -> None:
    data = BufferedSerde().serialize(update(1, b"new"))
    with pytest.raises(ValueError, match="a length of 9999 where"):
        BufferedSerde().deserialize(data[:16] + (9999).to_bytes(4, "big") + data[20:])


@given(st.tuples(st.none() | st.text(), st.none() | st.text()).filter(any))
def test_changes_are_read_as_they_were_written(change: tuple[str | None, str | None]) -> None:
    serde = ChangeSerde(String())
    assert serde.deserialize(serde.serialize(change)) == change


def test_changes_are_laid_out_as_kafkas() -> None:
    serialize = ChangeSerde(String()).serialize
    assert serialize(("n", None)) == b"n\x01"
    assert serialize((None, "old")) == b"old\x00"
    assert serialize(("new", "o")) == b"\x06newo\x02"
    with pytest.raises(ValueError, match="a change ends with 0, 1 or 2, not with 7"):
        ChangeSerde(String()).deserialize(b"x\x07")
