"""A task's share of its connector's rate limits, and tasks that are held up by one."""

import asyncio
from dataclasses import replace

import pytest

from connect.api import SourceConnector, SourceRecord, SourceTask
from connect.config.rate_limit import without_live_keys
from connect.errors import ConfigError
from connect.runtime import State
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.task_rate import TaskRate, sizes
from kafka_client.fetcher.parts import Part
from tests.connect.test_connector import Standalone
from tests.connect.test_sink_task import A, Target, started
from tests.support.waiting import until

RECORDS, BYTES = "rate.limit.records.per.second", "rate.limit.bytes.per.second"


def limited(tasks=1, **limits):
    rate = TaskRate()
    rate.follow({f"rate.limit.{key}.per.second": value for key, value in limits.items()}, tasks, dict)
    return rate


def part(count, size=10):
    return Part([(n, 0, None, b"v" * size, []) for n in range(count)], count, 0)


def test_a_task_has_an_equal_share():
    values = limited(4, records="100", bytes="1000").values()
    assert (values["records_per_second_max"], values["bytes_per_second_max"]) == (25, 250)


def test_a_part_is_cut_into_pieces_of_one_second():
    pieces = list(limited(records="40", bytes="250").pieces(part(100)))
    assert [len(each.records) for each in pieces] == [25, 15, 25, 15, 20]
    assert [each.next_offset for each in pieces] == [25, 40, 65, 80, 100]
    assert [len(each.records) for each in limited(records="0.1").pieces(part(3))] == [1, 1, 1]


def test_without_limits_nothing_is_cut_measured_or_awaited():
    rate, whole = TaskRate(), part(100)
    (piece,) = rate.pieces(whole)
    assert piece is whole
    rate.take(1 << 40, iter(lambda: pytest.fail("sizes are read"), None))
    assert rate.delay() == 0


def test_keys_and_values_are_counted():
    assert list(sizes([(0, b"k", b"val", [("h", b"header")]), (0, None, None, [])], 1)) == [4, 0]


def test_a_limit_that_is_not_valid_leaves_the_former_one():
    rate = limited(records="7")
    rate.follow({RECORDS: "many"}, 1, dict)
    assert rate.values()["records_per_second_max"] == 7

    def missing(config):
        raise ConfigError(RECORDS, "${env:X}", "is not set")

    rate.follow({RECORDS: "${env:X}"}, 1, missing)
    assert rate.values()["records_per_second_max"] == 7
    rate.follow({}, 1, dict)
    assert rate.values()["records_per_second_max"] == 0


async def test_a_change_ends_the_wait():
    rate = limited(records="1")
    rate.take(10_000, ())
    waiting = asyncio.create_task(rate.wait())
    await until(lambda: rate.values()["throttled"] == 1)
    rate.follow({}, 1, dict)
    async with asyncio.timeout(60):
        await waiting
    assert rate.delay() == 0
    assert rate.values()["throttle-time-ms-total"] > 0
    assert rate.values()["throttled"] == 0


def test_live_keys_are_left_out_of_comparisons():
    config = {"a": "1"}
    assert without_live_keys(config) is config
    assert without_live_keys({**config, RECORDS: "1", BYTES: "2"}) == config


class Endless(SourceTask):
    """A batch of ten at each poll."""

    polls = 0

    def poll(self):
        self.polls += 1
        return [SourceRecord("t", n) for n in range(10)]


async def test_a_throttled_source_pauses_stops_and_goes_on_at_once(harness, fake_producer):
    task = Endless()
    running = WorkerSourceTask(harness.setting(), task, harness.store)
    running.rate.follow({RECORDS: "0.001"}, 1, dict)
    running.launch()
    await until(lambda: running.rate.values()["throttled"] == 1)
    assert task.polls == 1
    running.pause()
    await harness.in_state(running, State.PAUSED)
    running.resume()
    await harness.in_state(running, State.RUNNING)
    assert task.polls == 1
    running.rate.follow({}, 1, dict)
    await until(lambda: task.polls > 3)
    running.rate.follow({RECORDS: "0.001"}, 1, dict)
    await until(lambda: running.rate.values()["throttled"] == 1)
    async with asyncio.timeout(60):
        await running.stop()
    assert running.status.state is State.UNASSIGNED
    assert running.acked == task.polls * 10, "what was polled is sent"


async def test_a_throttled_sink_commits_pauses_and_stops(harness, fake_consumer):
    plugin = Target()
    task, consumer = await started(harness, plugin)
    task.rate.follow({RECORDS: "0.001"}, 1, dict)
    consumer.write(A, b"0", b"1", b"2")
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 1})
    await harness.until(lambda: task.rate.values()["throttled"])
    task.pause()
    await harness.in_state(task, State.PAUSED)
    task.resume()
    await harness.in_state(task, State.RUNNING)
    assert plugin.durable == {A: [0]}
    task.rate.follow({}, 1, dict)
    await harness.until(lambda: consumer.committed_offsets == {A: 3})
    async with asyncio.timeout(60):
        await task.stop()


class Fast(SourceConnector):
    """Two endless tasks, planned from the whole config."""

    task_class = Endless
    starts = plans = 0

    def start(self, config):
        super().start(config)
        Fast.starts += 1

    def task_configs(self, max_tasks):
        Fast.plans += 1
        return [{**self.config}] * max_tasks


async def test_a_new_limit_of_a_connector_restarts_nothing(harness, fake_producer, monkeypatch):
    alone = Standalone(harness, Fast, monkeypatch, **{"tasks.max": "2", RECORDS: "0.001"})
    await alone.start()
    tasks = alone.connector.tasks
    await harness.until(lambda: all(each.rate.values()["throttled"] for each in tasks))
    assert tasks[0].rate.values()["records_per_second_max"] == 0.0005

    changed = {**alone.checked.config, RECORDS: "1000000"}
    alone.checked = replace(alone.checked, config=changed)
    alone.write(alone.herder.put_connector("c", changed))
    await alone.connector.settled()
    assert alone.connector.tasks == tasks
    assert (Fast.starts, Fast.plans) == (1, 2)
    assert tasks[0].rate.values()["records_per_second_max"] == 500_000
    await harness.until(lambda: all(each.polled > 20 for each in tasks))
    # The tasks are committed behind the new config: compaction keeps no commit without its connector.
    assert alone.herder.config.planned_with("c") == changed

    alone.checked = replace(alone.checked, config={**changed, "other": "1"})
    alone.write(alone.herder.put_connector("c", alone.checked.config))
    await harness.until(lambda: Fast.starts == 2)
    await alone.connector.settled()
    assert not set(alone.connector.tasks) & set(tasks), "any other key restarts them"
    await alone.connector.close()
