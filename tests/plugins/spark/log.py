"""A log to read from: topics made and filled, their ends as the worker would tell them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from connect.api import OffsetRange, TopicPartition
from kafka_client import Admin, BatchProducer, Client, NewTopic
from kafka_client.records import NewRecord


@dataclass(frozen=True)
class Log:
    bootstrap: str

    def create(self, topic: str, partitions: int = 1) -> None:
        async def main() -> None:
            async with Client(self.bootstrap) as client:
                new = NewTopic(topic, partitions, 1, {"retention.ms": "-1"})
                await Admin(client).create_topics([new])

        asyncio.run(main())

    def delete(self, topic: str) -> None:
        async def main() -> None:
            async with Client(self.bootstrap) as client:
                await Admin(client).delete_topics([topic])

        asyncio.run(main())

    def delete_records(self, topic: str, before: int) -> None:
        async def main() -> None:
            async with Client(self.bootstrap) as client:
                await Admin(client).delete_records({TopicPartition(topic, 0): before})

        asyncio.run(main())

    def produce(self, topic: str, partition: int, *batches: Sequence[NewRecord]) -> None:
        async def main() -> None:
            async with (
                Client(self.bootstrap) as client,
                BatchProducer(client, linger_ms=0, compression_type="lz4") as producer,
            ):
                for records in batches:
                    await (await producer.send(topic, partition, records))

        asyncio.run(main())

    def ends(self, *topics: str) -> dict[TopicPartition, OffsetRange]:
        async def main() -> dict[TopicPartition, OffsetRange]:
            async with Client(self.bootstrap) as client:
                metadata = await client.metadata(topics)
                tps = metadata.partitions(topics)
                starts = await Admin(client).list_offsets(dict.fromkeys(tps, "earliest"))
                ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
                return {
                    tp: OffsetRange(starts[tp].offset, ends[tp].offset, metadata.topics[tp.topic].topic_id)
                    for tp in tps
                }

        return asyncio.run(main())
