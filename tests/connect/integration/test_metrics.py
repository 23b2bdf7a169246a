"""A worker's metrics have Kafka Connect's names and agree with what its connectors and tasks did."""

import asyncio
import threading

import pytest

from connect.api import SinkConnector, SinkTask, SourceConnector, SourceTask
from connect.errors import ConnectError, RetriableError
from connect.runtime import State, Worker
from connect.runtime.states import Status
from kafka_client.metrics.exposition import exposition
from tests.support.documented_metrics import check_documented
from tests.support.waiting import until


class Ends(SourceTask):
    """Fails in a way that may mend, then in one that does not."""

    def start(self, config):
        self.failed = False

    def poll(self):
        if not self.failed:
            self.failed = True
            raise RetriableError("come again")
        raise ValueError("it does not")


class EndsSource(SourceConnector):
    task_class = Ends

    def task_configs(self, max_tasks):
        return [{}]


class Refuses(EndsSource):
    def start(self, config):
        raise ValueError("no")


class Taking(SinkTask):
    def put(self, records):
        pass


class TakingSink(SinkConnector):
    task_class = Taking

    def task_configs(self, max_tasks):
        return [{}] * max_tasks


class Stuck(SourceTask):
    """Its polls return once they are released, and no stop ends them."""

    released = threading.Event()
    waiting = 0

    def poll(self):
        Stuck.waiting += 1
        self.released.wait()

    def statistics(self):
        raise ValueError("it does not know")


class StuckSource(EndsSource):
    task_class = Stuck


def connector(name, plugin, **more):
    return {"name": name, "connector.class": f"{__name__}:{plugin}"} | more


async def test_numbers_are_those_of_what_was_done(kit, rows, topic, tmp_path):
    async with Worker(kit.config()) as worker:
        tell = worker.metrics.values
        # One sink task: a second member would have records read again that the first had not committed.
        source, sink = kit.source(rows(5000), topic), kit.sink(tmp_path / "out", topic)
        await worker.start_connector(source)
        await worker.start_connector(sink)
        await worker.wait_done()

        read = tell("source-task-metrics", connector=source["name"], task="0")
        assert read["source-record-poll-total"] == read["source-record-write-total"] == 5000
        assert read["source-record-active-count"] == 0 < read["source-record-active-count-max"]
        assert read["poll-batch-max-time-ms"] >= read["poll-batch-avg-time-ms"] > 0
        task = tell("connector-task-metrics", connector=source["name"])
        assert task["batch-size-max"] == task["batch-size-avg"] == 100
        assert (task["offset-commit-success-percentage"], task["running-ratio"] > 0) == (1, True)

        written = tell("sink-task-metrics", connector=sink["name"])
        assert (written["sink-record-read-total"], written["sink-record-send-total"]) == (5000, 5000)
        assert written["sink-record-active-count"] == 0
        assert written["partition-count"] == 3
        assert written["offset-commit-seq-no"] >= written["offset-commit-completion-total"] > 0
        assert tell("consumer-coordinator-metrics")["assigned-partitions"] == 3
        assert tell("consumer-fetch-manager-metrics")["records-consumed-total"] == 5000

        assert tell("connect-worker-metrics")["connector-count"] == 2
        assert tell("connect-worker-metrics")["task-count"] == 2
        assert tell("connect-worker-metrics")["task-startup-success-total"] == 2
        assert tell("connect-worker-metrics", connector=sink["name"])["connector-running-task-count"] == 1
        check_documented(
            worker.metrics,
            "connect-worker-metrics",
            "connector-task-metrics",
            "source-task-metrics",
            "sink-task-metrics",
            "task-error-metrics",
            "source-task-queue",
            "plugins",
            "plugin-calls",
            "rate-limits",
            "connector-info",
            "connector-task-info",
        )
        assert tell("plugins", connector=sink["name"])["held_records"] == 0
        assert tell("plugins", connector=sink["name"])["claims"] == 3
        assert tell("plugin-calls", connector=source["name"], task="0")["calls"] == 0
        assert b"kafka_connect_sink_task_metrics_sink_record_send_total{" in exposition(worker.metrics)
    assert not list(worker.metrics.read()), "it is closed"


async def test_transforms_and_predicates_are_told(kit, rows, topic):
    java = "org.apache.kafka.connect.transforms"
    chain = {
        "transforms": "stamp",
        "transforms.stamp.type": f"{java}.InsertHeader",
        "transforms.stamp.header": "by",
        "transforms.stamp.value.literal": "us",
        "transforms.stamp.predicate": "ours",
        "predicates": "ours",
        "predicates.ours.type": f"{java}.predicates.TopicNameMatches",
        "predicates.ours.pattern": ".*",
    }
    async with Worker(kit.config()) as worker:
        await worker.start_connector({**kit.source(rows(3), topic), **chain})
        await worker.wait_done()
        check_documented(worker.metrics, "connector-transform-info", "connector-predicate-info")


async def test_failures_and_retries_are_told(kit):
    async with Worker(kit.config()) as worker:
        tell = worker.metrics.values
        await worker.start_connector(connector("ends", "EndsSource"))
        await worker.start_connector(connector("never", "Refuses"))
        await until(
            lambda: tell("connect-worker-metrics", connector="ends")["connector-failed-task-count"] == 1
        )
        errors = tell("task-error-metrics", connector="ends")
        assert (errors["total-retries"], errors["total-record-failures"]) == (1, 2)
        assert errors["last-error-timestamp"] > 1_600_000_000_000
        values = tell("connect-worker-metrics")
        assert values["connector-startup-success-total"] == values["connector-startup-failure-total"] == 1
        assert values["connector-startup-attempts-total"] == 2
        assert values["task-startup-success-total"] == 1


def test_a_plugin_that_does_not_return_is_told_of_and_not_called_without_end(kit, monkeypatch, caplog):
    """Restarts show the threads they leave behind, where once no metric or log line did."""
    monkeypatch.setattr("connect.runtime.abandoned.ABANDONED_MAX", 2)
    soon = {"task.shutdown.graceful.timeout.ms": "10", "offset.flush.timeout.ms": "10"}

    async def run():
        async with Worker(kit.config(**soon)) as worker:

            def tell(name):
                return worker.metrics.values("plugin-calls", connector="stuck")[name]

            await worker.start_connector(connector("stuck", "StuckSource"))
            for number in range(3):
                await until(lambda number=number: Stuck.waiting == number + 1)
                assert (tell("calls"), tell("abandoned")) == (1, number)
                assert tell("oldest_call_seconds") > 0
                if number < 2:
                    await worker.restart_task("stuck", 0)
            assert tell("calls_max") >= 8
            with pytest.raises(ConnectError, match="3 earlier runs have not returned"):
                await worker.restart_task("stuck", 0)
            assert (Stuck.waiting, tell("abandoned"), tell("abandoned_max")) == (3, 3, 2)
            Stuck.released.set()
            await until(lambda: tell("abandoned") == tell("calls") == 0)
            await worker.restart_task("stuck", 0)
            await until(lambda: Stuck.waiting > 3)
            assert not worker.metrics.values("plugins", connector="stuck")

    asyncio.run(run())
    assert caplog.text.count("its plugin's statistics() failed: ValueError") == 4, "once each task"


async def test_a_paused_task_says_how_long(kit):
    async with Worker(kit.config()) as worker:
        tell = worker.metrics.values
        await worker.start_connector(connector("takes", "TakingSink", topics="nothing"))
        worker.pause_connector("takes")
        await until(lambda: tell("connector-task-metrics", connector="takes")["pause-ratio"] > 0)
        assert tell("connect-worker-metrics", connector="takes")["connector-paused-task-count"] == 1


def test_a_share_of_time_counts_the_present_state():
    now = [0.0]
    status = Status(clock=lambda: now[0])
    assert status.share_of_time(State.UNASSIGNED) == 1
    now[0] = 1
    status.become(State.RUNNING)
    now[0] = 3
    status.become(State.PAUSED)
    now[0] = 4
    assert [status.share_of_time(each) for each in (State.RUNNING, State.PAUSED, State.FAILED)] == [
        0.5,
        0.25,
        0,
    ]
