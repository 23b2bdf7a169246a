"""A sink whose topic was truncated by the broker and written again (KIP-320)."""

from connect.api import SinkTask, TopicPartition
from connect.runtime.sink_task import WorkerSinkTask
from connect.runtime.states import State
from kafka_client.errors import LogTruncated

A = TopicPartition("t", 0)


class Target(SinkTask):
    """Remembers the values it was given."""

    def start(self, config):
        self.values = []

    def put(self, records):
        self.values += [record.value for record in records]


async def started(harness, plugin):
    task = WorkerSinkTask(harness.setting(topics="t"), plugin)
    task.launch()
    await harness.in_state(task, State.RUNNING)
    (consumer,) = harness.client.consumers
    consumer.write(A, b"0", b"1", b"2", b"3")
    await consumer.assign(A)
    await harness.until(lambda: consumer.committed_offsets == {A: 4})
    return task, consumer


async def test_what_was_written_instead_is_put_and_committed(harness, fake_consumer):
    """Going back to where the logs diverge takes the committed offset back, too."""
    plugin = Target()
    task, consumer = await started(harness, plugin)
    consumer.logs[A][2:] = [b"22"]
    consumer.seek(A, 2)
    await harness.until(lambda: consumer.committed_offsets == {A: 3})
    assert plugin.values == [0, 1, 2, 3, 22]
    await task.stop()


async def test_without_a_reset_the_task_fails_and_says_why(harness, fake_consumer, monkeypatch):
    task, consumer = await started(harness, Target())
    error = LogTruncated(message="t-0: the log was truncated, from offset 2 on", diverging_offset=2)

    async def fetch(**_):
        raise error

    monkeypatch.setattr(consumer, "fetch", fetch)
    await harness.in_state(task, State.FAILED)
    assert "t-0: the log was truncated, from offset 2 on" in (task.status.trace or "")
    await task.stop()
