"""Copy a topic to another one in capital letters, each record exactly once, also through a kill.

    python examples/client_exactly_once.py localhost:9092 lines capitals

The records and the offsets of what they were made from are committed in one transaction. Readers of
`capitals` with isolation level read_committed see each line once. Runs until Ctrl-C.
"""

from __future__ import annotations

import asyncio
import sys

from kafka_client import Client, Consumer, Producer
from kafka_client.errors import AbortableTransactionError


async def copy(servers: str, source: str, target: str) -> None:
    async with (
        Client(servers) as client,
        Producer(client, transactional_id=f"{source}-{target}") as producer,
        Consumer(
            client, f"{source}-{target}", auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer,
    ):
        await consumer.subscribe([source])
        while True:
            records = await consumer.records(max_records=100)
            try:
                async with producer.transaction():
                    for record in records:
                        await producer.send(target, record.value.upper(), key=record.key)
                    await producer.send_offsets(consumer)
            except AbortableTransactionError:
                await consumer.seek_to_committed()  # nothing was written: do it again


if __name__ == "__main__":
    try:
        asyncio.run(copy(*sys.argv[1:4]))
    except KeyboardInterrupt:
        pass
