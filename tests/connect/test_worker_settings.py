"""Settings of the worker that hold for its connectors: each changes what it says."""

import asyncio

import pytest

from connect.api import SourceRecord, SourceTask
from connect.converters import SimpleHeaderConverter
from connect.runtime.source_task import WorkerSourceTask

CREATION = {"topic.creation.default.partitions": "3", "topic.creation.default.replication.factor": "1"}


class Once(SourceTask):
    """Source of one record with a header, for a topic that does not exist yet."""

    async def start(self, config):
        self.records = [SourceRecord("new", 1, headers=[("h", None, "v")])]

    async def poll(self):
        records, self.records = self.records, None
        if records is None:
            self.context.finished()
        return records


def run(harness, **config):
    topic = harness.client.topic

    async def made_by_the_broker(name):
        harness.client.topics.setdefault(name, 1)
        return await topic(name)

    async def main():
        harness.client.topic = made_by_the_broker
        task = WorkerSourceTask(harness.setting(**config), Once(), harness.store)
        task.launch()
        await harness.until(lambda: task.is_done)
        await task.stop()

    asyncio.run(main())


@pytest.mark.parametrize(("enabled", "partitions"), [("true", [3]), ("false", [])])
def test_topic_creation_enable(harness, fake_producer, enabled, partitions):
    """Creating topics is left to the broker if the worker's setting is off, whatever a connector sets."""
    harness.worker |= {"topic.creation.enable": enabled}
    run(harness, **CREATION)
    assert [topic.num_partitions for topic in harness.admin.created] == partitions


class Shouting(SimpleHeaderConverter):
    """A header converter of one's own, with a setting."""

    def __init__(self, config):
        self.mark = config["mark"]

    def from_connect_header(self, topic, name, schema, value):
        return f"{value}{self.mark}".encode()


OWN = {"header.converter": f"{__name__}:Shouting", "header.converter.mark": "!"}
SIMPLE = {"header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter"}


@pytest.mark.parametrize(
    ("worker", "connector", "header"),
    [({}, {}, b"v"), (OWN, {}, b"v!"), (OWN, SIMPLE, b"v"), ({}, OWN, b"v!")],
)
def test_header_converter(harness, fake_producer, worker, connector, header):
    """Connectors without a header converter use the worker's, with the worker's settings for it."""
    harness.worker |= worker
    run(harness, **connector)
    (producer,) = harness.client.producers
    assert [record[3] for _, _, records in producer.sent for record in records] == [(("h", header),)]
