"""Which offsets a batch takes, and whether what was written is what was planned."""

from __future__ import annotations

import pytest

from connect.api import OffsetRange, TopicPartition
from plugins.spark.calls import PlannedRange, WriteResult, WrittenRange
from plugins.spark.errors import DataLost, TopicRecreated, VerificationFailed
from plugins.spark.manifest import DataFile, Manifest, TopicPosition
from plugins.spark.planning import plan_batch
from plugins.spark.sink import verify

ID = b"\1" * 16


def state(**offsets: dict[int, int]) -> Manifest:
    positions = {t: TopicPosition(topic_id=ID.hex(), offsets=offsets_of) for t, offsets_of in offsets.items()}
    return Manifest(number=1, writer="w", committed_at_ms=0, positions=positions)


def ends(**topics: list[tuple[int, int]]) -> dict[TopicPartition, OffsetRange]:
    return {
        TopicPartition(topic, p): OffsetRange(start, end, ID)
        for topic, partitions in topics.items()
        for p, (start, end) in enumerate(partitions)
    }


def planned(topic: str, partition: int, start: int, end: int) -> PlannedRange:
    return PlannedRange(topic=topic, partition=partition, start=start, end=end)


def test_from_the_tables_position_to_the_end_and_new_partitions_from_their_start() -> None:
    plan = plan_batch(state(t={0: 10, 1: 20}), ends(t=[(0, 15), (0, 20), (0, 8)]))
    assert plan.ranges == (planned("t", 0, 10, 15), planned("t", 2, 0, 8))
    assert plan.positions == {("t", 0): 15, ("t", 1): 20, ("t", 2): 8}
    assert plan.pending == 13
    assert plan.topic_ids == {"t": ID.hex()}


@pytest.mark.parametrize("later", [("t", 1), ("u", 0)], ids=["a partition", "a topic"])
def test_what_was_added_later_and_does_not_start_at_0_has_lost_records(later: tuple[str, int]) -> None:
    """Written and removed by retention before the sink looked: its start was taken for its beginning, and
    nobody heard of the records before. Spark's Kafka source: "Added partition … starts from 3 instead of 0".
    """
    log = ends(t=[(0, 15)]) | {TopicPartition(*later): OffsetRange(3, 8, ID)}
    with pytest.raises(DataLost, match=f"{later[0]}-{later[1]}: offset 0 is wanted, the log has 3"):
        plan_batch(state(t={0: 10}), log)
    plan = plan_batch(state(t={0: 10}), log, fail_on_data_loss=False)
    assert plan.ranges == (planned("t", 0, 10, 15), planned(*later, 3, 8))


def test_a_new_table_begins_where_the_log_begins() -> None:
    assert plan_batch(state(), ends(t=[(3, 8)])).ranges == (planned("t", 0, 3, 8),)


@pytest.mark.parametrize("missing", [("t", 1), ("u", 0)], ids=["a partition", "a topic"])
def test_what_the_table_was_fed_from_and_is_gone_has_lost_records(missing: tuple[str, int]) -> None:
    """Deleting a partition or topic loses the records that the table did not have yet, as in Spark."""
    fed = state(**({"t": {0: 10, 1: 4}} if missing[0] == "t" else {"t": {0: 10}, "u": {0: 4}}))
    with pytest.raises(DataLost, match=f"{missing[0]}-{missing[1]} is gone, .* up to offset 4"):
        plan_batch(fed, ends(t=[(0, 15)]))
    plan = plan_batch(fed, ends(t=[(0, 15)]), fail_on_data_loss=False)
    assert plan.ranges == (planned("t", 0, 10, 15),)


def test_a_topic_that_is_not_read_any_more_is_no_loss() -> None:
    plan = plan_batch(state(t={0: 10}, u={0: 4}), ends(t=[(0, 15)]), is_read=lambda topic: topic == "t")
    assert plan.ranges == (planned("t", 0, 10, 15),)


def test_a_large_backlog_is_taken_in_parts_in_proportion() -> None:
    plan = plan_batch(state(), ends(t=[(0, 900), (0, 100), (0, 0)]), max_records=100)
    assert plan.ranges == (planned("t", 0, 0, 90), planned("t", 1, 0, 10))
    assert plan.pending == 1000


@pytest.mark.parametrize("log", [(11, 20), (0, 9)])
def test_a_position_outside_of_the_log_is_lost_data(log: tuple[int, int]) -> None:
    with pytest.raises(DataLost, match="t-0: offset 10") as lost:
        plan_batch(state(t={0: 10}), ends(t=[log]))
    assert "t-0: offset 10" in repr(lost.value)  # what the worker's log shows
    plan = plan_batch(state(t={0: 10}), ends(t=[log]), fail_on_data_loss=False)
    assert plan.ranges == (planned("t", 0, *log),)


def test_a_topic_made_again_is_refused() -> None:
    again = {TopicPartition("t", 0): OffsetRange(0, 20, b"\2" * 16)}
    with pytest.raises(TopicRecreated, match="made again"):
        plan_batch(state(t={0: 10}), again)


def result(rows_read: int, *ranges: tuple[str, int, int, int, int]) -> WriteResult:
    written = tuple(
        WrittenRange(topic=t, partition=p, rows=rows, first_offset=first, last_offset=last)
        for t, p, rows, first, last in ranges
    )
    rows = sum(r.rows for r in written)
    file = DataFile(path="f", rows=rows, size=1)
    return WriteResult(
        rows_read=rows_read, files=(file,), ranges=written, value_schema=None, table_schema="{}"
    )


PLAN = (planned("t", 0, 10, 20), planned("t", 1, 0, 5))


def test_what_was_written_fits_the_plan() -> None:
    verify(result(15, ("t", 0, 10, 10, 19), ("t", 1, 5, 0, 4)), PLAN)
    verify(result(4, ("t", 0, 4, 11, 17)), PLAN)


@pytest.mark.parametrize(
    "written",
    [
        result(15, ("t", 0, 10, 10, 19)),
        result(10, ("t", 0, 10, 9, 18)),
        result(10, ("t", 0, 10, 11, 20)),
        result(11, ("t", 0, 11, 10, 19)),
        result(1, ("u", 0, 1, 10, 10)),
        result(1, ("t", 2, 1, 10, 10)),
    ],
    ids=["rows lost", "before", "behind", "twice", "another topic", "another partition"],
)
def test_what_does_not_fit_is_not_committed(written: WriteResult) -> None:
    with pytest.raises(VerificationFailed):
        verify(written, PLAN)
