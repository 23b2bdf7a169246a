"""The versioned store against a model that only knows what was put, over commits and restarts; what is
forgotten, what is in the changelog, and errors of wrong use. Kafka's own results are in
test_versioned.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams import (
    Joined,
    JoinWindows,
    KTable,
    Materialized,
    Processor,
    ProcessorContext,
    Record,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    TopologyError,
    VersionedRecord,
)
from streams.errors import StateError
from streams.runtime.restore.restore import StoreRestore
from streams.runtime.topics import TopicNames, internal_topics
from streams.state import PUT_RETURN_CODE_NOT_PUT, StoreSpec, VersionedStore, open_store
from streams.state.cache import join
from streams.state.versions import segment_ms_for, version_key
from streams.testing import TopologyTestDriver
from tests.support import depth

RETENTION, SEGMENT = 10, 3


def new_store(folder: Path | None = None, **changes: Any) -> VersionedStore[str, str]:
    options: dict[str, Any] = {"history_retention_ms": RETENTION, "segment_interval_ms": SEGMENT, **changes}
    spec = StoreSpec(name="s", kind="versioned_key_value", key_serde=str, value_serde=str, **options)
    store = open_store(spec, folder)
    assert isinstance(store, VersionedStore)
    return store


class Log:
    """A changelog, as it is when it is compacted, and the time that goes with the positions."""

    def __init__(self) -> None:
        self.rows: dict[bytes, tuple[bytes, int]] = {}
        self.times: dict[str, int] = {}
        self.end = 0

    def commit(self, store: VersionedStore[str, str]) -> None:
        self.begin(store)
        store.written(self.end)

    def begin(self, store: VersionedStore[str, str]) -> None:
        """Begin a commit, which ends with `written`."""
        store.written(self.end)
        store.drain()
        for key, (value, timestamp) in store.pending.items():
            self.rows.pop(key, None)
            if value is not None:
                self.rows[key] = value, timestamp
        self.end += len(store.pending)
        self.times = dict(store.clocks())

    def restored(self, folder: Path | None = None) -> VersionedStore[str, str]:
        store = new_store(folder)
        store.backend.write([(key, join(*row)) for key, row in self.rows.items()], self.end)
        store.set_clocks(self.times)
        return store


class Model:
    """Versions by key and time."""

    def __init__(self) -> None:
        self.time = -1
        self.versions: dict[str, dict[int, str | None]] = {"a": {}, "ab": {}}

    def put(self, key: str, value: str | None, time: int) -> int:
        if time < self.time - RETENTION:
            return PUT_RETURN_CODE_NOT_PUT
        self.time = max(self.time, time)
        self.versions[key][time] = value
        return min((each for each in self.versions[key] if each > time), default=-1)

    def all(self, key: str) -> list[VersionedRecord[str | None]]:
        times = sorted(self.versions[key])
        ends: list[int | None] = [*times[1:], None][: len(times)]
        return [
            VersionedRecord(self.versions[key][each], each, to) for each, to in zip(times, ends, strict=True)
        ]

    def get(self, key: str, as_of: int) -> VersionedRecord[str | None] | None:
        for each in reversed(self.all(key)):
            if each.timestamp <= as_of:
                is_known = each.valid_to is None or as_of >= self.time - RETENTION
                return each if is_known and each.value is not None else None
        return None

    def versions_of(self, key: str) -> list[VersionedRecord[str | None]]:
        live = max(self.time - RETENTION, 0) // SEGMENT
        alive = [each for each in self.all(key) if each.valid_to is None or each.valid_to // SEGMENT >= live]
        return [each for each in alive if each.value is not None]


steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["a", "ab"]), st.sampled_from(["x", "y", None]), st.integers(-14, 6)),
        st.sampled_from(["commit", "shrink", "restore", "jump"]),
    ),
    max_size=40,
)


@settings(max_examples=depth.times(150))
@given(steps)
def test_a_store_is_what_was_put(steps: list[Any]) -> None:
    model, log, now = Model(), Log(), 20
    store = new_store()
    for step in steps:
        if isinstance(step, tuple):
            key, value, offset = step
            now = max(now, now + offset)
            time = max(now - 6 + min(offset, 0), 0)
            times = sorted(model.versions[key])
            if value is None and times and times[-1] == time:
                continue  # what Kafka makes of that depends on the way there: see test_versioned.py
            assert store.put(key, value, time) == model.put(key, value, time)
        elif step == "jump":
            now += 25
        elif step == "shrink":
            store.written(log.end)
            store.shrink()
        else:
            log.begin(store)
            if step == "restore":
                store = log.restored()
        check(store, model, now)


def check(store: VersionedStore[str, str], model: Model, now: int) -> None:
    for key in model.versions:
        versions = model.versions_of(key)
        assert list(store.versions(key, descending=False)) == versions
        assert list(store.versions(key)) == versions[::-1]
        latest = store.get(key)
        assert (latest and latest[:2]) == next((each[:2] for each in versions if each.valid_to is None), None)
        for time in range(max(now - 20, 0), now + 3):
            assert store.get(key, time) == model.get(key, time), time


def test_a_store_on_disk_goes_on_where_it_was_closed(tmp_path: Path) -> None:
    store, log = new_store(tmp_path), Log()
    store.put("a", "1", 5)
    store.put("a", "2", 9)
    store.put("b", None, 7)
    log.commit(store)
    store.put("a", "lost", 10)
    store.close()
    store = new_store(tmp_path)
    store.set_clocks(log.times)
    assert store.backend.checkpoint == 3
    assert store.get("a") == VersionedRecord("2", 9)
    assert store.get("a", 8) == VersionedRecord("1", 5, 9)
    assert store.put("b", "late", 3) == 7
    assert store.delete("a", 8) == VersionedRecord("1", 5, 9)
    assert list(store.versions("a", 5, 8)) == [VersionedRecord("1", 5, 8)]
    store.close()


def test_what_is_old_is_deleted_and_latest_values_stay(tmp_path: Path) -> None:
    store, log = new_store(tmp_path), Log()
    for time in range(300):
        store.put("often", str(time), time)
        store.put(f"once {time}", "v", time)
        store.put(f"gone {time}", "v", time)
        store.put(f"gone {time}", None, time + 1)
        if time % 20 == 0:
            log.commit(store)
            store.shrink()
    log.commit(store)
    rows = [key for key, _ in store.backend.scan()]
    assert len([key for key in rows if key.startswith(b"once")]) == 300
    assert len([key for key in rows if not key.startswith(b"once")]) < 60
    log.commit(store)
    assert {key for key, _ in store.backend.scan()} == log.rows.keys(), "the changelog knows it, too"
    store.close()
    again = new_store(tmp_path)  # looks at all that is old once more
    again.set_clocks(log.times)
    log.commit(again)
    assert {key for key, _ in again.backend.scan()} == log.rows.keys() >= {version_key(b"once 7", 7)}
    again.close()


def test_the_changelog_has_a_record_per_version() -> None:
    store = new_store()
    store.put("a", "1", 5)
    store.put("a", None, 9)
    store.put("a", "0", 3)
    store.drain()
    assert store.pending == {
        b"a" + (5).to_bytes(8, "big"): (b"\x021", 5),
        b"a" + (9).to_bytes(8, "big"): (b"\x00", 9),
        b"a" + (3).to_bytes(8, "big"): (b"\x020", 3),
    }


def test_the_tail_of_a_commit_that_broke_off_is_undone() -> None:
    store, log = new_store(), Log()
    store.put("a", "1", 5)
    log.commit(store)
    store.close()
    store = log.restored()
    restore = StoreRestore(store, 0, 1, 3, {})
    updates: dict[bytes, bytes | None] = {}
    for key in (version_key(b"a", 5), version_key(b"a", 7)):
        restore._undo(key, (), updates)
    store.backend.write([(version_key(b"a", 7), join(b"\x02tail", 7))], 3)
    restore.finish()
    assert list(store.versions("a")) == [VersionedRecord("1", 5)]
    store.drain()
    assert store.pending == {version_key(b"a", 5): (b"\x021", 5), version_key(b"a", 7): (None, 0)}


def test_keys_without_ranges_and_bad_bytes_are_told() -> None:
    store = new_store()
    with pytest.raises(StateError, match="read by key, with get"):
        store.scan()
    with pytest.raises(StateError, match="from 0 on, not of -1"):
        store.put("a", "1", -1)
    with pytest.raises(StateError, match="another kind of store"):
        store.backend.write([(b"short", b"")], 1)
    with pytest.raises(StateError, match="another kind of store"):
        store.backend.write([(b"a-key-of-a-table", join(b"value", 5))], 1)
    with pytest.raises(ValueError, match="begins with a mark"):
        store.spec.value_serde.deserialize(b"")


def test_segments_are_as_long_as_kafkas() -> None:
    minute = 60_000
    lengths = {
        0: 2000,
        minute: 20_000,
        5 * minute: minute,
        60 * minute: 5 * minute,
        24 * 60 * minute: 60 * minute,
    }
    assert {each: segment_ms_for(each) for each in lengths} == lengths


class Past(Processor[str, str]):
    """A processor that forwards a key's value of five milliseconds ago."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self.store: Any = context.store("s")

    def process(self, record: Record[str, str]) -> None:
        self.store.put(record.key, record.value, record.timestamp)
        version = self.store.get(record.key, record.timestamp - 5)
        self.context.forward(Record(record.key, None if version is None else version.value, record.timestamp))


def test_a_processor_may_use_a_versioned_store() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.add_store(
        StoreSpec(
            name="s",
            kind="versioned_key_value",
            key_serde=str,
            value_serde=str,
            history_retention_ms=10,
            persistent=False,
        )
    )
    builder.stream("in").process(Past, stores=["s"]).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", "1"), ("a", "2"), ("a", "3")], start=10, step=4)
        assert driver.output_topic("out").read_key_values() == [("a", None), ("a", None), ("a", "1")]


def test_the_changelogs_config_is_kafkas() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.table("t", store=Materialized(name="s", history_retention=5000))
    mine = Materialized(name="mine", history_retention=5000, changelog_config={"min.compaction.lag.ms": "7"})
    builder.table("u", store=mine)
    topology = builder.build()
    names = TopicNames("app", topology)
    made = {topic.name: topic.configs for topic in internal_topics(topology, names, {"t": 1, "u": 1}, 1)}
    assert made["app-s-changelog"]["cleanup.policy"] == "compact"
    assert made["app-s-changelog"]["min.compaction.lag.ms"] == str(5000 + 86_400_000)
    assert made["app-mine-changelog"]["min.compaction.lag.ms"] == "7"


def table(b: StreamsBuilder, **changes: Any) -> KTable[Any, Any]:
    return b.table("t", store=Materialized(name="s", **{"history_retention": 10, **changes}))


def test_a_versioned_table_is_restored_from_a_changelog_of_its_own() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    table(builder)
    builder.table("u", store="latest")
    topology = builder.build(topology_optimization="all")
    assert {name: (spec.logged, spec.source_topic) for name, spec in topology.stores.items()} == {
        "s": (True, None),
        "latest": (False, "u"),
    }


def concat(value: str, other: str) -> str:
    return value + other


WRONG: dict[str, tuple[Callable[[StreamsBuilder], object], str]] = {
    "no name": (lambda b: Materialized(history_retention=10), "needs a name="),
    "no history": (lambda b: Materialized(name="s", segment_interval=10), "say history_retention="),
    "no segment": (lambda b: table(b, segment_interval=0), "less than 1 ms"),
    "negative": (lambda b: table(b, history_retention=-1), "must not be negative"),
    "spec": (
        lambda b: StoreSpec(name="s", kind="versioned_key_value", key_serde=str, value_serde=str),
        "say how far back",
    ),
    "windows": (
        lambda b: (
            b.stream("in")
            .group_by_key()
            .windowed_by(TimeWindows(5))
            .count(store=Materialized(name="s", history_retention=10))
        ),
        "without windows",
    ),
    "global": (
        lambda b: b.global_table("t", store=Materialized(name="s", history_retention=10)),
        "a global table cannot be versioned",
    ),
    "suppress": (
        lambda b: table(b).filter(lambda k, v: True).suppress(Suppressed.until_time_limit(5)),
        "only for tables that are not versioned",
    ),
    "grace, not versioned": (
        lambda b: b.stream("in").join(b.table("t"), concat, grace=5),
        "KSTREAM-JOIN-0000000004: the table must be versioned",
    ),
    "grace, joined": (
        lambda b: b.stream("in").join(table(b).join(b.table("u"), concat), concat, grace=5),
        "must be versioned",
    ),
    "grace, too long": (
        lambda b: b.stream("in").join(table(b), concat, Joined(grace=11)),
        "grace is 11 ms, but store s keeps its history for 10 ms only",
    ),
    "grace, negative": (lambda b: b.stream("in").join(table(b), concat, grace=-1), "must not be negative"),
    "grace, of streams": (
        lambda b: b.stream("in").join(b.stream("u"), concat, windows=JoinWindows.of(5), grace=5),
        "grace= is for the join with a versioned table",
    ),
    "grace, global": (
        lambda b: b.stream("in").join(b.global_table("t"), concat, key_selector=concat, grace=5),
        "a global one never is",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_told(name: str) -> None:
    build, message = WRONG[name]
    with pytest.raises(TopologyError, match=message):
        build(StreamsBuilder(key_serde=str, value_serde=str))


def test_a_null_key_is_joined_at_once() -> None:
    """Kafka Streams ends with an error there."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream("in").left_join(table(builder), lambda v, o: f"{v}{o}", grace=5).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("in").pipe_all([("a", "1"), (None, "2")], start=3)
        assert driver.output_topic("out").read_key_values() == [(None, "2None")]
        (key,) = [row[1] for row in driver.take("KSTREAM-LEFTJOIN-0000000003-Buffer-changelog")]
        assert key == b"\x00" + (3).to_bytes(8, "big") + b"a" + (1).to_bytes(4, "big")
