"""Rows of a source that its plugin reports: `SourceTaskContext.report`."""

import json

import pytest

from connect.api import DataError, SourceRecord, SourceTask
from connect.runtime.source_task import WorkerSourceTask
from connect.runtime.states import State
from tests.connect.errors.support import DEAD, letters

KEY = b'["c",{"s":1}]'


@pytest.fixture(autouse=True)
def dead_producer(fake_producer, monkeypatch):
    monkeypatch.setattr("connect.runtime.errors.dead_letters.BatchProducer", fake_producer)
    return fake_producer


def record(value, n):
    return SourceRecord("t", value, source_partition={"s": 1}, source_offset={"n": n})


class Rows(SourceTask):
    """Reports every row that is no number; its offsets of polls without records come by update_offsets."""

    def __init__(self, *polls):
        self._polls = [list(poll) for poll in polls]
        self._read = 0

    def poll(self):
        if not self._polls:
            self.context.finished()
            return None
        good = []
        for row in self._polls.pop(0):
            self._read += 1
            if row.isdigit():
                good.append(record(int(row), self._read))
            else:
                self.context.report(record(row, self._read), DataError(f"{row!r} is no number"))
        return good

    def update_offsets(self):
        return [({"s": 1}, {"n": self._read})]


async def run(harness, plugin, config=()):
    task = WorkerSourceTask(harness.setting(**dict(config)), plugin, harness.store)
    task.launch()
    await harness.until(lambda: task.is_done or task.status.state is State.FAILED)
    await task.stop()
    return task


def sent(harness):
    return [r[2] for p in harness.client.producers for name, _, rs in p.sent if name == "t" for r in rs]


async def test_a_reported_row_is_a_dead_letter_and_the_others_go_on(harness):
    task = await run(harness, Rows(["1", "x", "3"], ["y"], ["5"]), DEAD)
    assert task.is_done, task.status.trace
    assert sent(harness) == [b"1", b"3", b"5"]
    first, second = letters(harness.client.producers[1])
    assert json.loads(first.value)["value"] == "x" and json.loads(second.value)["value"] == "y"
    assert first.context["stage"] == b"TASK_POLL"
    assert first.context["exception.message"] == b"'x' is no number"
    errors = task.values()["task-error-metrics"]
    assert errors["total-record-errors"] == errors["total-records-skipped"] == 2
    assert harness.store.offsets == {KEY: b'{"n":5}'}


async def test_without_tolerance_the_task_fails_with_the_row(harness):
    task = await run(harness, Rows(["1", "x"]))
    assert task.status.state is State.FAILED
    assert "'x' is no number" in task.status.trace and "stage TASK_POLL" in task.status.trace
    assert harness.store.offsets == {}


async def test_no_offset_passes_a_reported_row_whose_dead_letter_is_not_written(
    harness, dead_producer, monkeypatch
):
    monkeypatch.setattr(dead_producer, "acking", False)
    task = WorkerSourceTask(harness.setting(**dict(DEAD)), Rows(["x"]), harness.store)
    task.launch()
    await harness.until(lambda: len(harness.client.producers) > 1 and harness.client.producers[1].sent)
    await task._note_updates()
    await task._commit()
    assert harness.store.offsets == {}
    await task.stop()
