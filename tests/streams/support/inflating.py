"""Records that decompress to a hundred times their size; and, as a program, an application that reads them.

    python inflating.py BOOTSTRAP TOPIC STATE_DIR SETTINGS

counts them, with ``SETTINGS`` as JSON, and prints how many there were, and its peak memory in bytes before it
began and at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from kafka_client import BatchProducer, Client
from kafka_client.records import Codec, build_batch
from streams import KafkaStreams, StreamsBuilder

VALUE = 64 * 1024
RATIO = 100
RECORDS_PER_BATCH = 256
DECODED_PER_BATCH = RECORDS_PER_BATCH * VALUE


def inflating_batch() -> bytes:
    """16 MB of records in about 160 KB."""
    values = [os.urandom(VALUE // RATIO) * (RATIO + 1) for _ in range(RECORDS_PER_BATCH)]
    return build_batch([(7, b"k", value[:VALUE], ()) for value in values], codec=Codec.ZSTD)


async def produce(bootstrap: str, topic: str, *, partitions: int, batches: int) -> int:
    """Send the same batch repeatedly to each partition, and return the bytes sent."""
    batch = inflating_batch()
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        for partition in range(partitions):
            for _ in range(batches):
                await producer.send_batch(topic, partition, batch)
        await producer.flush()
    return len(batch) * partitions * batches


def peak_memory() -> int:
    """Return this process's peak memory, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


async def main(bootstrap: str, topic: str, state_dir: str, settings: str) -> None:
    """Count all there is."""
    records = 0

    def count(key: bytes, value: bytes) -> None:
        nonlocal records
        records += len(value) == VALUE

    builder = StreamsBuilder(key_serde=bytes, value_serde=bytes)
    builder.stream(topic).foreach(count)
    before = peak_memory()
    async with KafkaStreams(
        builder.build(),
        application_id=topic,
        bootstrap_servers=bootstrap,
        state_dir=state_dir,
        **json.loads(settings),
    ) as app:
        await app.wait_until_caught_up()
    print(json.dumps([records, before, peak_memory()]))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
