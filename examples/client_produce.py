"""Send one record for each line of standard input, keyed by the line's first word.

    python examples/client_produce.py localhost:9092 lines < FILE

Prints the offset of the last record.
"""

from __future__ import annotations

import asyncio
import sys

from kafka_client import Client, Producer


async def produce(servers: str, topic: str, lines: list[str]) -> None:
    async with Client(servers) as client, Producer(client, value_serializer=str.encode) as producer:
        sent = [await producer.send(topic, line, key=line.split(" ")[0].encode()) for line in lines]
        for pending in sent:
            record = await pending  # raises if the record was not written
        print(f"{len(sent)} records, the last in {record.topic}-{record.partition} at {record.offset}")


if __name__ == "__main__":
    asyncio.run(produce(sys.argv[1], sys.argv[2], sys.stdin.read().splitlines()))
