"""A running sink task: put, flush, commit; rebalances and failures in between."""

import asyncio
import threading

import pytest

from connect.api import PartitionsFenced, RetriableError, SinkTask, TopicPartition
from connect.runtime.sink_task import WorkerSinkTask
from connect.runtime.states import State
from kafka_client.errors import ConnectionClosed, ErrorCode, error_for

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Target(SinkTask):
    """Remembers what it was told; `durable` is what it holds for sure."""

    def start(self, config):
        self.events = []
        self.unflushed = {}
        self.durable = {}

    def open(self, partitions):
        self.events.append(("open", list(partitions)))

    def put(self, records):
        for record in records:
            self.unflushed.setdefault((record.topic, record.partition), []).append(record.value)

    def flush(self, offsets):
        for tp, values in self.unflushed.items():
            self.durable.setdefault(tp, []).extend(values)
        self.unflushed = {}

    def close(self, partitions):
        self.events.append(("close", list(partitions)))
        for tp in partitions:
            self.unflushed.pop(tp, None)

    def stop(self):
        self.events.append("stop")


async def started(harness, plugin, **config):
    task = WorkerSinkTask(harness.setting(topics="t", **config), plugin)
    task.launch()
    await harness.in_state(task, State.RUNNING)
    (consumer,) = harness.client.consumers
    return task, consumer


async def test_records_are_flushed_before_their_offsets_are_committed(harness, fake_consumer):
    plugin = Target()
    task, consumer = await started(harness, plugin)
    consumer.write(A, *(b"%d" % i for i in range(10)))
    consumer.write(B, b"true")
    await consumer.assign(A, B)
    await harness.until(lambda: consumer.committed_offsets == {A: 10, B: 1})
    assert plugin.durable == {A: list(range(10)), B: [True]}
    assert task.delivered == 11
    assert consumer.group_id == "connect-c"
    assert consumer.arguments == {"auto_offset_reset": "earliest"}
    await task.stop()
    assert plugin.events == [("open", [A, B]), ("close", [A, B]), "stop"]
    assert task.status.state is State.UNASSIGNED


async def test_stop_commits_what_was_put(harness, fake_consumer):
    harness.worker["offset.flush.interval.ms"] = "60000"
    plugin = Target()
    task, consumer = await started(harness, plugin)
    await consumer.assign(A)
    consumer.write(A, b"1", b"2")
    await harness.until(lambda: task.delivered == 2)
    assert consumer.commits == []
    await task.stop()
    assert consumer.committed_offsets == {A: 2}
    assert plugin.durable == {A: [1, 2]}


async def test_put_again_when_the_target_says_later(harness, fake_consumer):
    class Busy(Target):
        refusals = 2

        def put(self, records):
            if self.refusals:
                self.refusals -= 1
                raise RetriableError("busy")
            super().put(records)

    plugin = Busy()
    task, consumer = await started(harness, plugin)
    await consumer.assign(A)
    consumer.write(A, b"1", b"2", b"3", b"4")
    await harness.until(lambda: consumer.committed_offsets == {A: 4})
    assert plugin.durable == {A: [1, 2, 3, 4]}
    await task.stop()


async def test_a_flush_that_fails_goes_back_to_the_committed_offsets(harness, fake_consumer):
    """Records are delivered again after a flush that failed and lost them."""

    class Forgetful(Target):
        failures = 3

        def flush(self, offsets):
            if self.failures and any(self.unflushed.values()):
                self.failures -= 1
                self.unflushed = {}
                raise RetriableError("lost it")
            super().flush(offsets)

    plugin = Forgetful()
    task, consumer = await started(harness, plugin)
    await consumer.assign(A)
    consumer.write(A, *(b"%d" % i for i in range(20)))
    await harness.until(lambda: consumer.committed_offsets == {A: 20})
    assert plugin.durable == {A: list(range(20))}
    await task.stop()


@pytest.mark.parametrize("lost", [False, True])
async def test_partitions_that_go_and_come_back_lose_nothing(harness, fake_consumer, lost):
    """Nothing is lost if a rebalance comes while one fetched part is being put and another waits.

    After a revocation the put records are committed; after a loss they are delivered again from the committed
    offset. The waiting part must not be put after the return as if all records before it were durable.
    """
    entered, release = asyncio.Event(), asyncio.Event()

    class Slow(Target):
        async def put(self, records):
            entered.set()
            await release.wait()
            super().put(records)

    harness.worker["offset.flush.interval.ms"] = "60000"
    plugin = Slow()
    task, consumer = await started(harness, plugin)
    consumer.write(A, *(b"%d" % i for i in range(12)))
    await consumer.assign(A)
    await entered.wait()
    rebalance = asyncio.create_task(consumer.revoke(A, lost=lost))
    await asyncio.sleep(0.01)
    assert not rebalance.done()  # it waits for the put
    release.set()
    await rebalance
    await consumer.assign(A)
    await harness.until(lambda: task.delivered >= 12 and consumer.positions[A] == 12)
    await harness.until(lambda: 11 in plugin.unflushed.get(A, []))
    await task.stop()
    assert consumer.committed_offsets == {A: 12}
    assert sorted(set(plugin.durable[A])) == list(range(12))
    assert ("close", [A]) in plugin.events
    assert task.metrics.read == task.delivered  # what was dropped unseen is not counted twice


async def test_what_is_assigned_while_a_fetch_waits_is_not_fetched_twice(harness, fake_consumer):
    harness.worker["offset.flush.interval.ms"] = "60000"
    task, consumer = await started(harness, Target())
    await harness.until(lambda: not consumer._wake.is_set())  # it waits, and has no partitions
    consumer.logs[A] = [b"%d" % i for i in range(12)]
    await consumer.assign(A)
    await harness.until(lambda: task.delivered == 12)
    await task.stop()
    assert consumer.seeks == []
    assert consumer.committed_offsets == {A: 12}


async def test_pre_commit_decides_what_is_safe(harness, fake_consumer):
    class Careful(Target):
        def pre_commit(self, offsets):
            return {tp: offset - 1 for tp, offset in offsets.items()}

    task, consumer = await started(harness, Careful())
    await consumer.assign(A)
    consumer.write(A, b"1", b"2")
    await harness.until(lambda: consumer.committed_offsets == {A: 1})
    await task.stop()
    assert consumer.committed_offsets == {A: 1}


async def test_a_target_that_knows_its_position_says_where_to_begin(harness, fake_consumer):
    class Knowing(Target):
        def open(self, partitions):
            self.context.offset(dict.fromkeys(partitions, 3))

    plugin = Knowing()
    task, consumer = await started(harness, plugin)
    consumer.write(A, *(b"%d" % i for i in range(5)))
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 5})
    assert plugin.durable == {A: [3, 4]}
    await task.stop()


async def test_a_commit_refused_by_a_rebalance_is_tried_again(harness, fake_consumer):
    task, consumer = await started(harness, Target())
    consumer.refuse_commit = error_for(ErrorCode.REBALANCE_IN_PROGRESS)
    await consumer.assign(A)
    consumer.write(A, b"1")
    await harness.until(lambda: task.delivered >= 1)  # refused, it is delivered again
    consumer.refuse_commit = None
    await harness.until(lambda: consumer.committed_offsets == {A: 1})
    await task.stop()


@pytest.mark.parametrize("value", [b"1", b"{"])
async def test_what_cannot_be_taken_fails_the_task_and_commits_nothing(harness, fake_consumer, value):
    class Broken(Target):
        def put(self, records):
            raise ZeroDivisionError("broken here")

    plugin = Broken()
    task, consumer = await started(harness, plugin)
    await consumer.assign(A)
    consumer.write(A, value)
    await harness.in_state(task, State.FAILED)
    assert ("broken here" in task.status.trace) == (value == b"1")
    assert consumer.commits == []
    assert plugin.events[-1] == "stop"


def test_a_commit_waits_for_a_broker_that_is_away(harness, fake_consumer, monkeypatch):
    monkeypatch.setattr("connect.runtime.task.BACKOFF_FIRST_SECONDS", 0.001)

    async def run():
        plugin = Target()
        task, consumer = await started(harness, plugin)
        consumer.refuse_commit = ConnectionClosed("away")
        await consumer.assign(A)
        consumer.write(A, b"1", b"2", b"3")
        await harness.until(lambda: plugin.durable)
        consumer.refuse_commit = None
        await harness.until(lambda: consumer.committed_offsets == {A: 3})
        assert plugin.durable == {A: [1, 2, 3]}
        await task.stop()
        assert task.status.state is State.UNASSIGNED

    asyncio.run(run())


async def test_a_stop_tells_that_offsets_could_not_be_committed(harness, fake_consumer):
    task, consumer = await started(harness, Target())
    await consumer.assign(A)
    consumer.refuse_commit = ConnectionClosed("away")
    consumer.write(A, b"1")
    await harness.until(lambda: task.delivered == 1)
    await task.stop()
    assert task.status.state is State.FAILED
    assert "ConnectionClosed: away" in task.status.trace


async def test_what_was_flushed_and_not_committed_is_flushed_from_its_beginning_again(harness, fake_consumer):
    """Flushing begins at the committed offset again after a rebalance.

    A flush that began after an uncommitted one would have FilesSink write a second file. The next delivery
    of the records, in one piece, does not overwrite that file.
    """

    class Files(Target):
        begins = ()

        def flush(self, offsets):
            self.begins += tuple(values[0] for values in self.unflushed.values() if values)
            super().flush(offsets)

    plugin = Files()
    task, consumer = await started(harness, plugin)
    consumer.refuse_commit = error_for(ErrorCode.REBALANCE_IN_PROGRESS, "wait")
    await consumer.assign(A)
    consumer.write(A, b"1", b"2", b"3")
    await harness.until(lambda: len(plugin.begins) >= 2)
    consumer.refuse_commit = None
    consumer.write(A, b"4", b"5", b"6")
    await harness.until(lambda: consumer.committed_offsets == {A: 6})
    await task.stop()
    uncommitted = [begin for begin in plugin.begins if begin <= 3]
    assert set(uncommitted) == {1}


async def test_a_task_that_was_thrown_out_flushes_nothing(harness, fake_consumer):
    """Tasks paused beyond their session flush nothing: they would replace the next owner's larger files."""
    harness.worker["offset.flush.interval.ms"] = "60000"
    plugin = Target()
    task, consumer = await started(harness, plugin)
    await consumer.assign(A)
    consumer.write(A, b"1", b"2")
    await harness.until(lambda: task.delivered == 2)
    consumer.thrown_out = error_for(ErrorCode.UNKNOWN_MEMBER_ID)
    before = consumer.confirms
    task.request_commit()
    await harness.until(lambda: consumer.confirms > before)
    await consumer.revoke(A, lost=True)
    assert plugin.durable == {} and consumer.commits == []
    consumer.thrown_out = None
    await consumer.assign(A)
    await harness.until(lambda: task.delivered == 4)
    task.request_commit()
    await harness.until(lambda: consumer.committed_offsets == {A: 2})
    assert plugin.durable == {A: [1, 2]}
    await task.stop()


async def test_a_task_that_was_thrown_out_while_it_opened_puts_nothing(harness, fake_consumer):
    """Tasks paused in `open` beyond their session put nothing: the target may be the next owner's."""
    plugin = Target()
    task, consumer = await started(harness, plugin)
    consumer.thrown_out = error_for(ErrorCode.UNKNOWN_MEMBER_ID)
    consumer.write(A, b"1", b"2")
    await consumer.assign(A)
    assert plugin.events == [("open", [A]), ("close", [A])]
    rounds = task._round
    await harness.until(lambda: task._round > rounds + 2)
    assert (task.delivered, plugin.unflushed, consumer.commits) == (0, {}, [])
    await consumer.revoke(A, lost=True)
    consumer.thrown_out = None
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 2})
    assert plugin.durable == {A: [1, 2]}
    await task.stop()


class Fencing(Target):
    """Another task takes its place, in `put` or in `flush`."""

    def __init__(self, where, times=1):
        self.where, self.times = where, times

    def put(self, records):
        self.reach("put")
        super().put(records)

    def flush(self, offsets):
        if any(self.unflushed.values()):
            self.reach("flush")
        super().flush(offsets)

    def reach(self, where):
        if self.where == where and self.times:
            self.times -= 1
            raise PartitionsFenced("t-0 has been claimed")


@pytest.mark.parametrize("where", ["put", "flush"])
async def test_a_task_whose_place_was_taken_wrongly_begins_anew_at_its_committed_offsets(
    harness, fake_consumer, where
):
    """Records are delivered again if a paused task outside of the group took the place by a late claim."""
    plugin = Fencing(where)
    task, consumer = await started(harness, plugin)
    consumer.write(A, *(b"%d" % n for n in range(9)))
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 9})
    assert plugin.durable == {A: list(range(9))}
    assert plugin.events == [("open", [A]), ("close", [A]), ("open", [A])]
    await task.stop()


@pytest.mark.parametrize("where", ["put", "flush"])
async def test_a_task_whose_place_was_taken_by_right_lets_go_and_goes_on_with_what_it_gets(
    harness, fake_consumer, where
):
    plugin = Fencing(where)
    task, consumer = await started(harness, plugin)
    await consumer.assign(A)
    original = consumer.confirm

    async def confirm():
        if not plugin.times:  # it is fenced
            raise error_for(ErrorCode.UNKNOWN_MEMBER_ID)
        await original()

    consumer.confirm = confirm
    consumer.write(A, b"1", b"2")
    await harness.until(lambda: plugin.events == [("open", [A]), ("close", [A])])
    await consumer.revoke(A, lost=True)
    consumer.confirm = original
    assert (plugin.durable, consumer.commits) == ({}, [])
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 2})
    assert task.status.state is State.RUNNING
    await task.stop()


async def test_two_connectors_that_write_to_one_place_do_not_go_on_for_ever(harness, fake_consumer):
    task, consumer = await started(harness, Fencing("flush", times=1 << 60))
    consumer.write(A, b"1")
    await consumer.assign(A)
    await harness.in_state(task, State.FAILED)
    assert "does another connector write to the same place?" in task.status.trace
    assert consumer.commits == []


async def test_a_record_that_cannot_be_converted_is_named(harness, fake_consumer):
    task, consumer = await started(harness, Target())
    await consumer.assign(A)
    consumer.write(A, b"1", b"2", b"{", b"4")
    await harness.in_state(task, State.FAILED)
    assert "t-0, offset 2, value: record of topic t is not JSON" in task.status.trace


async def test_a_task_that_has_no_partitions_yet_has_nothing_to_flush_or_lose(harness, fake_consumer, caplog):
    """Nothing is logged before the first rebalance is over: until then the task is no member of the group."""
    plugin = Target()
    task, consumer = await started(harness, plugin)
    consumer.thrown_out = error_for(ErrorCode.UNKNOWN_MEMBER_ID)
    rounds = task._round
    await harness.until(lambda: task._round > rounds + 3)
    logged = [record for record in caplog.records if record.name.startswith("connect.")]
    assert (consumer.confirms, logged) == (0, [])
    consumer.thrown_out = None
    await task.stop()


async def test_a_put_that_yields_is_refused(harness, fake_consumer):
    """Python runs nothing of it: its records would be committed unread."""

    class Yielding(Target):
        def put(self, records):
            yield from records

    task, consumer = await started(harness, Yielding())
    await consumer.assign(A)
    consumer.write(A, b"1")
    await harness.in_state(task, State.FAILED)
    assert "Yielding.put yields" in task.status.trace
    assert consumer.commits == []


def test_a_sink_that_hangs_is_abandoned(harness, fake_consumer):
    """Stopping does not wait for a `put` that never returns."""
    hanging, over = threading.Event(), threading.Event()

    class Hanging(Target):
        def put(self, records):
            hanging.set()
            over.wait()

    async def run():
        harness.worker |= {"task.shutdown.graceful.timeout.ms": "5", "offset.flush.timeout.ms": "5"}
        task, consumer = await started(harness, Hanging())
        await consumer.assign(A)
        consumer.write(A, b"1")
        await harness.until(hanging.is_set)
        await task.stop()
        assert task.status.state is State.FAILED
        assert "abandoned" in task.status.trace
        assert consumer.commits == []

    try:
        asyncio.run(asyncio.wait_for(run(), 60))
    finally:
        over.set()


async def test_a_put_knows_the_topics_id_and_the_position_that_was_read_from(harness, fake_consumer):
    """Tell the committed offset at first, although the record there may be gone."""

    class Places(Target):
        def put(self, records):
            places.append((self.context.positions[A], [r.offset for r in records]))
            super().put(records)

    places: list = []
    task, consumer = await started(harness, plugin := Places())
    consumer.committed_offsets[A] = 1
    consumer.write(A, b"0", b"1", b"2", b"3", b"4")
    await consumer.assign(A)
    await harness.until(lambda: task.delivered == 4)
    await task.stop()
    assert places == [(1, [1, 2, 3]), (4, [4])]
    assert plugin.context.topic_ids == {A.topic: bytes(range(16))}
