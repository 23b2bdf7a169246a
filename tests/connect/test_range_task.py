"""A running range sink task: ends in, positions out, the group follows."""

from connect.api import OffsetRange, RangeSinkTask, RetriableError, TopicPartition
from connect.runtime.range_task import WorkerRangeTask
from connect.runtime.states import State
from kafka_client.errors import RequestTimedOut

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Engine(RangeSinkTask):
    """Brings its table forward by at most five offsets a run."""

    refuse: Exception | None = None

    def start(self, config):
        self.table = {}
        self.ends = []

    async def run_once(self, ends):
        self.ends.append(dict(ends))
        if self.refuse is not None:
            refuse, self.refuse = self.refuse, None
            raise refuse
        for tp, bounds in ends.items():
            self.table[tp] = min(bounds.end, self.table.get(tp, bounds.start) + 5)
        return self.table

    def stop(self):
        self.stopped = True


async def test_the_engine_is_brought_forward_and_the_group_follows(harness):
    plugin = Engine()
    harness.admin.ends = {A: 12, B: 3}
    config = {
        "topics": "t",
        "poll.interval.ms": "1",
        "consumer.override.isolation.level": "read_committed",
    }
    task = WorkerRangeTask(harness.setting(**config), plugin)
    task.launch()
    await harness.until(lambda: harness.admin.committed == {"connect-c": {A: 12, B: 3}})
    assert plugin.ends[0] == {
        A: OffsetRange(0, 12, b"t".ljust(16, b".")),
        B: OffsetRange(0, 3, b"t".ljust(16, b".")),
    }
    assert plugin.context.topics == ("t",)
    assert plugin.context.bootstrap_servers == "localhost:9092"
    assert plugin.context.client_settings == {"isolation.level": "read_committed"}
    assert task.statistics() == {"positions": {"t-0": 12, "t-1": 3}}
    await task.stop()
    assert plugin.stopped
    assert task.status.state is State.UNASSIGNED


async def test_a_target_or_broker_that_is_away_for_a_moment(harness):
    plugin = Engine()
    plugin.refuse = RetriableError("table is locked")
    harness.admin.refuse = RequestTimedOut()
    harness.admin.ends = {A: 2}
    task = WorkerRangeTask(harness.setting(topics="t", poll_interval_ms="1"), plugin)
    task.launch()
    await harness.until(lambda: harness.admin.committed.get("connect-c", {}).get(A) == 2)
    await task.stop()


async def test_a_failing_engine_fails_the_task(harness):
    plugin = Engine()
    plugin.refuse = ZeroDivisionError("no table")
    task = WorkerRangeTask(harness.setting(**{"topics.regex": "[t]", "poll.interval.ms": "1"}), plugin)
    task.launch()
    await harness.in_state(task, State.FAILED)
    assert "no table" in task.status.trace
    assert plugin.stopped


async def test_internal_topics_match_no_pattern(harness):
    """Patterns of consumers leave them out, too (exclude.internal.topics)."""
    plugin = Engine()
    harness.client.topics = {"t": 1, "__consumer_offsets": 1}
    harness.client.internal = {"__consumer_offsets"}
    task = WorkerRangeTask(harness.setting(**{"topics.regex": ".*", "poll.interval.ms": "1"}), plugin)
    task.launch()
    await harness.until(lambda: getattr(plugin, "ends", None))
    await task.stop()
    assert plugin.context.topics == ("t",)
    assert {tp.topic for tp in plugin.ends[0]} == {"t"}
