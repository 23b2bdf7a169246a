"""Print the records of a topic as a member of a group, and commit each one that was printed.

    python examples/client_consume.py localhost:9092 lines my-group

Runs until Ctrl-C. Started again, it goes on where it stopped; a record in print at that time comes again.
"""

from __future__ import annotations

import asyncio
import sys

from kafka_client import Client, Consumer


async def consume(servers: str, topic: str, group: str) -> None:
    async with (
        Client(servers) as client,
        Consumer(client, group, auto_offset_reset="earliest", value_deserializer=bytes.decode) as consumer,
    ):
        await consumer.subscribe([topic])
        while True:
            records = await consumer.records(max_records=500)
            for record in records:
                print(f"{record.topic}-{record.partition} {record.offset}: {record.value}", flush=True)
            await consumer.commit()  # one request for all that was printed


if __name__ == "__main__":
    try:
        asyncio.run(consume(*sys.argv[1:4]))
    except KeyboardInterrupt:
        pass
