"""A table's source and updates that are older than what it has: applied, with a warning; not if versioned."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from streams import Materialized, StreamsBuilder
from streams.state import CachedStore
from streams.testing import TopologyTestDriver
from tests.support.depth import deep

KINDS = {
    "cached": Materialized(name="kept"),
    "uncached": Materialized(name="kept", caching=False),
    "in memory": Materialized(name="kept", persistent=False),
}


def driver_of(store: Materialized | None, value_serde: Any = int) -> TopologyTestDriver:
    builder = StreamsBuilder(key_serde=str, value_serde=value_serde)
    builder.table("in", store=store).to_stream().to("out")
    return TopologyTestDriver(builder)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "out-of-order" in record.getMessage()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("serde", "old", "new"), [(int, 1, 2), (dict, {"n": 1}, {"n": 2})], ids=["int", "dict"]
)
def test_an_update_out_of_order_is_applied_with_a_warning(
    kind: str, serde: type, old: Any, new: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with driver_of(KINDS[kind], serde) as driver, caplog.at_level(logging.WARNING):
        topic = driver.input_topic("in")
        topic.pipe_input("a", old, 100)
        topic.pipe_input("b", old, 50)  # late, but not for its key
        assert not warnings_of(caplog)
        topic.pipe_input("a", new, 70)
        assert driver.key_value_store("kept").get("a") == new
        assert driver.output_topic("out").read_key_values() == [("a", old), ("b", old), ("a", new)]
    assert warnings_of(caplog) == [
        "Detected out-of-order KTable update for kept, old timestamp=[100] new timestamp=[70]. "
        "topic=[in] partition=[0] offset=[2]."
    ]


def test_what_the_commit_under_way_has_counts_too(caplog: pytest.LogCaptureFixture) -> None:
    """Between two commits the store's last word is in the cache alone."""
    with driver_of(KINDS["cached"]) as driver, caplog.at_level(logging.WARNING):
        driver.input_topic("in").pipe_many([("a", 1), ("a", 2)], start=20, step=-5)
    assert len(warnings_of(caplog)) == 1


def test_to_table_warns_as_well(caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.stream("in").to_table(store="kept")
    with TopologyTestDriver(builder) as driver, caplog.at_level(logging.WARNING):
        driver.input_topic("in").pipe_input("a", 1, 100)
        driver.input_topic("in").pipe_input("a", 2, 99)
    assert len(warnings_of(caplog)) == 1


def test_there_is_a_line_a_second_that_says_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with driver_of(KINDS["cached"]) as driver, caplog.at_level(logging.WARNING):
        topic = driver.input_topic("in")
        for timestamp in (100, 90, 80, 70, 60):
            topic.pipe_input("a", 1, timestamp)
        assert len(warnings_of(caplog)) == 1
        driver.advance_wall_clock(999)
        topic.pipe_input("a", 1, 50)
        assert len(warnings_of(caplog)) == 1
        driver.advance_wall_clock(1)
        topic.pipe_input("a", 1, 40)
        assert warnings_of(caplog)[1].endswith("offset=[6]. And 4 more since the last such line.")
        driver.advance_wall_clock(1000)
        topic.pipe_input("a", 1, 30)
        assert warnings_of(caplog)[2].endswith("offset=[7].")


@pytest.mark.parametrize(
    "store", [Materialized(name="kept", history_retention=1000), None], ids=["versioned", "without a store"]
)
def test_nothing_is_said_of_what_is_versioned_or_not_kept(
    store: Materialized | None, caplog: pytest.LogCaptureFixture
) -> None:
    with driver_of(store) as driver, caplog.at_level(logging.WARNING):
        driver.input_topic("in").pipe_input("a", 1, 100)
        driver.input_topic("in").pipe_input("a", 2, 70)
    assert not warnings_of(caplog)


def test_nor_of_keys_that_are_deleted_or_of_equal_times(caplog: pytest.LogCaptureFixture) -> None:
    with driver_of(KINDS["cached"]) as driver, caplog.at_level(logging.WARNING):
        topic = driver.input_topic("in")
        topic.pipe_input("a", 1, 100)
        topic.pipe_input("a", None, 100)
        topic.pipe_input("a", 2, 70)
        topic.pipe_input("a", 3, 70)
        topic.pipe_input(None, 3, 10)
    assert not warnings_of(caplog)


@deep
def test_a_table_in_order_asks_its_store_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records in order cost a comparison each, and no read of the store."""
    reads: list[bytes] = []
    monkeypatch.setattr(CachedStore, "timestamp", lambda self, key: reads.append(key))
    with driver_of(KINDS["cached"]) as driver:
        for timestamp in (10, 10, 20, 20, 30):
            driver.input_topic("in").pipe_input("a", 1, timestamp)
        assert not reads
        driver.input_topic("in").pipe_input("a", 1, 5)
        assert reads == [b"a"]
