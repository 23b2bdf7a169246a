"""A source of record batches against logd: records as they were, on after a restart, each once."""

import asyncio

from connect.runtime import Worker
from kafka_client import BatchFetcher, Client, TopicPartition
from kafka_client.records import Codec, decode_records
from tests.support.batch_files import write_batches


async def written(bootstrap, tp):
    """Return the batches of a partition that has 12 records, each with its header."""
    batches = []
    async with Client(bootstrap) as client, BatchFetcher(client, auto_offset_reset="earliest") as fetcher:
        fetcher.assign({tp: 0})
        while fetcher.position(tp) < 12:
            for fetched in await fetcher.fetch(timeout_ms=1000):
                batches += fetched.batches()
    return batches


def test_batches_travel_to_a_broker_as_they_are(kit, topic, tmp_path):
    folder = tmp_path / "batches"
    folder.mkdir()
    config = {
        "name": "batches",
        "connector.class": "tests.support.batch_files:BatchFiles",
        "folder": str(folder),
        "topic": topic,
        "stop": "true",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
    }

    async def run():
        async with Worker(kit.config()) as worker:
            await worker.start_connector(config)
            await worker.wait_done()
            assert not worker.failed, worker.status()

    for numbers in (range(8), range(8, 12)):
        write_batches(folder, numbers, codec=Codec.ZSTD)
        asyncio.run(run())
    batches = asyncio.run(written(kit.bootstrap, TopicPartition(topic, 1)))
    assert [header.codec for header, _ in batches] == [Codec.ZSTD] * 6
    assert [header.base_offset for header, _ in batches] == [0, 2, 4, 6, 8, 10]
    assert [record for _, batch in batches for record in decode_records(batch)] == [
        (n, 1000 + n, b"k%d" % n, b"%d" % n, (("h", b"x"),)) for n in range(12)
    ]
