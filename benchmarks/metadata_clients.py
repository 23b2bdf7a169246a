"""Clients that ask for metadata again and again, as those do whose leader is gone (retry.backoff.ms).

    python -m benchmarks.metadata_clients HOST:PORT TOPIC CLIENTS

They ask one broker, until they are killed; each says at its first answer that it is there.
"""

from __future__ import annotations

import asyncio
import sys

from kafka_client import Client
from kafka_client.errors import MillstreamError
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

BACKOFF_S = 0.1


async def ask_on(bootstrap: str, topic: str) -> None:
    """Request the topic's metadata repeatedly, as one client."""
    has_response = False
    while True:
        try:
            async with Client(bootstrap) as client:
                while True:
                    await client.request(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
                    if not has_response:
                        has_response = True
                        print("ready", flush=True)
                    await asyncio.sleep(BACKOFF_S)
        except MillstreamError:
            await asyncio.sleep(BACKOFF_S)


async def main() -> None:
    """Run the benchmark."""
    bootstrap, topic, clients = sys.argv[1:]
    await asyncio.gather(*(ask_on(bootstrap, topic) for _ in range(int(clients))))


if __name__ == "__main__":
    asyncio.run(main())
