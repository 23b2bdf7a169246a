"""A stream's micro-batches, planned without Spark: where they begin and end, and what is lost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from kafka_client import Admin, Client, TopicPartition
from kafka_client.errors import ConfigError
from plugins.spark.admission import TriggerDelay, limit_offsets
from plugins.spark.data_loss import LogEndsEarly, PartitionDeleted, RecordsPurged, TopicReplaced
from plugins.spark.stream_offsets import StreamOffsets
from plugins.spark.stream_options import parse_stream_options
from plugins.spark.stream_planner import StreamPlanner
from tests.plugins.spark.log import Log
from tests.support.logd_process import LogdProcess

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with LogdProcess(tmp_path_factory.mktemp("planner-logd")) as logd:
        yield Log(logd.bootstrap)


def fill(log: Log, topic: str, count: int, partition: int = 0) -> None:
    log.produce(topic, partition, *([(0, None, b"%d" % i, ())] for i in range(count)))


class Plans:
    """A planner, asked by plain calls; its clock moves by a second before each."""

    def __init__(self, log: Log, topic: str, **options: str) -> None:
        self.log = log
        self.options = parse_stream_options(
            {"kafka.bootstrap.servers": log.bootstrap, "subscribe": topic, **options}
        )
        self.runner = asyncio.Runner()
        self.now = 0.0
        self.client: Client | None = None

    def __enter__(self) -> Plans:
        async def connect() -> StreamPlanner:
            self.client = await Client(self.log.bootstrap).connect()
            return StreamPlanner(self.client, self.options, clock=lambda: self.now)

        self.planner = self.runner.run(connect())
        return self

    def __exit__(self, *exc_info: object) -> None:
        assert self.client is not None
        self.runner.run(self.client.close())
        self.runner.close()

    def first(self) -> StreamOffsets:
        return self.runner.run(self.planner.initial_offsets())

    def end(self, start: StreamOffsets, *, is_limited: bool = True) -> StreamOffsets:
        self.now += 1
        end = self.runner.run(self.planner.plan_end(start, is_limited=is_limited))
        return start if end is start else StreamOffsets.parse(json.loads(json.dumps(end.to_json())))

    def ranges(self, start: StreamOffsets, end: StreamOffsets) -> list[tuple[int, int, int]]:
        planned = self.runner.run(self.planner.plan_ranges(start, end))
        return [(r.partition, r.start, r.end) for r in planned]


def test_a_first_batch_that_is_played_again_begins_where_it_began(log: Log) -> None:
    """Spark asks for the first offsets again at a restart, and "latest" has moved: records were lost."""
    log.create("first")
    fill(log, "first", 2)
    with Plans(log, "first") as plans:
        first = plans.first()
        fill(log, "first", 3)
        assert plans.first() is first
        end = plans.end(first)
        assert plans.ranges(first, end) == [(0, 2, 5)]
    with Plans(log, "first") as again:
        moved = again.first()
        assert moved.offsets == {TopicPartition("first", 0): 5}
        assert again.ranges(moved, end) == [(0, 2, 5)]
        assert again.end(end) is end


def test_a_batch_takes_as_much_as_it_may_and_available_now_ends(log: Log) -> None:
    log.create("limited", 2)
    fill(log, "limited", 9, 0)
    fill(log, "limited", 1, 1)
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "5"}
    with Plans(log, "limited", **options) as plans:
        start = plans.first()
        assert sum(plans.end(start, is_limited=False).offsets.values()) == 10
        plans.planner.stop_at_present_end()
        first = plans.end(start)
        assert plans.ranges(start, first) == [(0, 0, 4), (1, 0, 1)]
        fill(log, "limited", 4, 1)
        second = plans.end(first)
        third = plans.end(second)
        assert sum(third.offsets.values()) == 10
        assert plans.end(third) is third


def test_the_kinds_of_lost_data(log: Log) -> None:
    log.create("kinds")
    fill(log, "kinds", 3)
    tp = TopicPartition("kinds", 0)
    with Plans(log, "kinds", **{"startingOffsets": "earliest", "fetchOffset.numRetries": "1"}) as plans:
        end = plans.end(plans.first())
        ids = end.ids
        with pytest.raises(LogEndsEarly):
            plans.ranges(StreamOffsets(offsets={tp: 7}, ids=ids), end)
        with pytest.raises(PartitionDeleted):
            plans.ranges(StreamOffsets(offsets={tp: 0, TopicPartition("kinds", 5): 1}, ids=ids), end)
        with pytest.raises(TopicReplaced):
            plans.ranges(StreamOffsets(offsets={tp: 0}, ids={"kinds": b"\1" * 16}), end)
        log.delete_records("kinds", 2)
        with pytest.raises(RecordsPurged):
            plans.ranges(StreamOffsets(offsets={}, ids=ids), end)
    with Plans(log, "kinds", failOnDataLoss="false") as plans:
        assert plans.ranges(StreamOffsets(offsets={tp: 7}, ids={"kinds": b"\1" * 16}), end) == [(0, 2, 3)]


def test_progress_is_committed_for_the_group(log: Log) -> None:
    """A stream's lag was unknown to Kafka's tools (SPARK-27549)."""
    log.create("lag")
    fill(log, "lag", 3)
    with Plans(log, "lag", startingOffsets="earliest", groupId="readers") as plans:
        end = plans.end(plans.first())
        plans.end(end)

        async def committed() -> dict[TopicPartition, int]:
            assert plans.client is not None
            listed = await Admin(plans.client).list_group_offsets("readers")
            return {tp: position.offset for tp, position in listed.items()}

        assert plans.runner.run(committed()) == {TopicPartition("lag", 0): 3}


def test_offsets_of_sparks_kafka_source_are_continued() -> None:
    stored = {"t": {"0": 23, "1": 5}}
    offsets = StreamOffsets.parse(stored)
    assert offsets.offsets == {A: 23, B: 5}
    assert offsets.to_json() == stored


def test_a_limit_is_shared_out_by_size_and_starves_nobody() -> None:
    assert limit_offsets(10, {A: 0, B: 5}, {A: 1000, B: 6}) == {A: 9, B: 6}
    assert limit_offsets(10, {A: 0, B: 5}, {A: 3, B: 5}) == {A: 3, B: 5}


def test_few_records_wait_for_the_delay() -> None:
    now = 0.0
    delay = TriggerDelay(10, 5000, lambda: now)
    assert not delay.delays({A: 0}, {A: 1})
    assert delay.delays({A: 0}, {A: 9})
    assert not delay.delays({A: 0}, {A: 10})
    now = 4.9
    assert delay.delays({A: 0}, {A: 9})
    now = 5.0
    assert not delay.delays({A: 0}, {A: 9})


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets"),
        ({"minOffsetsPerTrigger": "6", "maxOffsetsPerTrigger": "5"}, "minOffsetsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay"),
        ({"startingOffsets": "group"}, "startingOffsets"),
    ],
)
def test_a_bad_option_of_a_stream_is_named(changes: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_stream_options({"kafka.bootstrap.servers": "x:1", "subscribe": "t", **changes})
    assert caught.value.key == key
