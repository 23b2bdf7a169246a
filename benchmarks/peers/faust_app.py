"""faust-streaming's side of `benchmarks.streams_peers`; runs in an environment of its own."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import faust

WARM = 0.1
"""This part of the records is not counted."""

_, work, bootstrap, application, folder, records = sys.argv
total = int(records)
app = faust.App(
    application,
    broker=f"kafka://{bootstrap}",
    store="rocksdb://",
    datadir=folder,
    key_serializer="raw",
    value_serializer="raw",
    topic_partitions=1,
    topic_replication_factor=1,
    topic_disable_leader=True,
    web_enabled=False,
    producer_linger_ms=5,  # as ours; without, each record is a request
)
source = app.topic("records", key_type=bytes, value_type=bytes)
target = app.topic(f"faust-{work}", key_type=bytes, value_type=bytes)
counts: Any = app.Table("counts", default=int, partitions=1, options={"driver": "rocksdict"})
times: list[tuple[float, float]] = []
done = 0


def note() -> None:
    """Count a record. The last one prints the result and ends the program."""
    global done
    done += 1
    if done in (int(total * WARM), total):
        times.append((time.perf_counter(), time.process_time()))
    if done == total:
        (began, cpu_began), (ended, cpu_ended) = times
        counted = total - int(total * WARM)
        result = {"seconds": ended - began, "cpu": cpu_ended - cpu_began, "records": counted}
        os.write(1, json.dumps(result).encode())  # sys.stdout is Faust's log
        os._exit(0)


async def stateless(stream: Any) -> None:
    """Convert values to upper case and drop half of them."""
    async for key, value in stream.items():
        upper = value.decode().upper()
        if upper[0] < "N":
            await target.send(key=key, value=upper.encode())
        note()


async def count(stream: Any) -> None:
    """Count the records of each key, and send the count at each record."""
    async for key, _ in stream.items():
        name = key.decode()
        counts[name] += 1
        await target.send(key=key, value=counts[name].to_bytes(8, "big"))
        note()


app.agent(source)({"stateless": stateless, "count": count}[work])

if __name__ == "__main__":
    faust.Worker(app, loglevel="ERROR").execute_from_commandline()
