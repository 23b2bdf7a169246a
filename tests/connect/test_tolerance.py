"""`errors.tolerance=all`: a sink goes on without what does not convert and batches that cannot be read."""

import asyncio

import pytest

from connect.runtime.states import State
from tests.connect.test_sink_task import Target, started
from tests.kafka_client.test_fetched import TP, data, fetched
from tests.kafka_client.test_parts import broken, unreadable

BATCHES = (data(0, b"0", b"1"), broken(data(2, b"2", b"3")), data(4, b"4", b"no JSON", b"6"), data(7, b"7"))


@pytest.fixture
def fake_fetched(fake_consumer, monkeypatch):
    """Have the consumer give real batches, in place of the values it was given."""

    def give(*batches: bytes) -> None:
        async def fetch(self, *, timeout_ms):
            if self.positions.get(TP, 8) < 8:
                self.positions[TP] = 8
                return [fetched(*batches)]
            await asyncio.sleep(0.001)
            return []

        monkeypatch.setattr(fake_consumer, "fetch", fetch)

    return give


async def delivered(harness, **config):
    plugin = Target()
    task, consumer = await started(harness, plugin, **config)
    await consumer.assign(TP)
    return plugin, task, consumer


def test_what_cannot_be_used_is_left_out_and_counted(harness, fake_fetched, caplog):
    fake_fetched(*BATCHES)

    async def run():
        plugin, task, consumer = await delivered(
            harness, errors_tolerance="all", errors_log_enable="true", errors_log_include_messages="true"
        )
        await harness.until(lambda: consumer.committed_offsets == {TP: 8})
        await task.stop()
        assert plugin.durable == {TP: [0, 1, 4, 6, 7]}
        assert task.statistics() == {"records_delivered": 5, "records_skipped": 3}
        errors = task.values()["task-error-metrics"]
        assert errors["total-record-errors"] == 2
        assert errors["total-records-skipped"] == 3
        assert errors["total-errors-logged"] == 2

    asyncio.run(run())
    batch, record = (r.getMessage() for r in caplog.records if r.name == "connect.runtime.tolerance")
    assert "t-0: the batch of offsets 2 to 3 cannot be read: batch CRC" in batch
    assert "t-0, offset 5, value: " in record and "value b'no JSON'" in record


def test_nothing_is_logged_unless_that_is_asked_for(harness, fake_fetched, caplog):
    fake_fetched(*BATCHES)

    async def run():
        _, task, consumer = await delivered(harness, errors_tolerance="all")
        await harness.until(lambda: consumer.committed_offsets == {TP: 8})
        await task.stop()
        assert task.values()["task-error-metrics"]["total-records-skipped"] == 3

    asyncio.run(run())
    assert "leaves out" not in caplog.text


async def test_a_fetch_that_holds_nothing_else_is_passed_over(harness, fake_fetched):
    fake_fetched(unreadable(data(0, *(b"%d" % n for n in range(8)))))
    plugin, task, consumer = await delivered(harness, errors_tolerance="all")
    await harness.until(lambda: consumer.committed_offsets == {TP: 8})
    await task.stop()
    assert plugin.durable == {} and task.metrics.records_skipped == 8


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (BATCHES, "t-0: the batch of offsets 2 to 3 cannot be read: batch CRC"),
        (BATCHES[:1] + BATCHES[2:], "t-0, offset 5, value: "),
    ],
)
async def test_without_tolerance_the_task_fails_and_says_where(harness, fake_fetched, batches, message):
    fake_fetched(*batches)
    plugin, task, _ = await delivered(harness, errors_tolerance="none")
    await harness.in_state(task, State.FAILED)
    assert message in task.status.report("w", "1")["trace"]
    await task.stop()
    assert "records_skipped" not in task.statistics()
    assert plugin.unflushed in ({}, {TP: [0, 1]})
