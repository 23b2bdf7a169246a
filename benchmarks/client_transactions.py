"""The cost of transactions for our own producer, compared with the idempotent producer.

It writes 1 KB records to 10 partitions, in transactions of 1 s and 0.1 s. The next transaction is filled
while one is closing. Runs of both kinds alternate.

    python -m benchmarks.client_transactions [--bootstrap-server HOST:PORT] [--runs N]
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from statistics import mean

from benchmarks import raw
from benchmarks.broker import arguments, broker_for
from benchmarks.report import Report
from kafka_client import BatchProducer, Client, TransactionalProducer
from kafka_client.records import NewRecord

PARTITIONS = 10
IN_ONE = 50
"""Records of one `send`."""
RECORDS: list[NewRecord] = [(1_700_000_000_000, None, b"v" * 1024, ())] * IN_ONE
SECONDS = 4.0
"""Duration of a run."""
LENGTHS = {1.0: "≥ 0.9", 0.1: "≥ 0.7"}
"""Seconds of a transaction, and the target of its ratio."""
TOPIC = "bench-client-transactions"

Send = Callable[[str, int, list[NewRecord]], Awaitable[object]]


async def write(send: Send, seconds: float) -> int:
    """Write as fast as possible for `seconds`. Return how many records were sent."""
    end = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < end:
        for partition in range(PARTITIONS):
            await send(TOPIC, partition, RECORDS)
        count += PARTITIONS * IN_ONE
    return count


async def idempotent(bootstrap: str) -> float:
    """Return the records per second that are written without transactions."""
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        started = time.perf_counter()
        count = await write(producer.send, SECONDS)
        await producer.flush()
        return count / (time.perf_counter() - started)


async def transactional(bootstrap: str, length: float, commits: list[float]) -> float:
    """Return the records per second that are written in transactions of `length` seconds.

    Add the milliseconds that each transaction took to commit to `commits`.
    """
    async with (
        Client(bootstrap) as client,
        TransactionalProducer(client, f"bench-{uuid.uuid4()}") as producer,
    ):
        started = time.perf_counter()
        count = 0
        for _ in range(round(SECONDS / length)):
            producer.begin()
            count += await write(producer.send, length)
            committed_at = time.perf_counter()
            closing = await producer.commit_soon()
            closing.add_done_callback(
                lambda _, committed_at=committed_at: commits.append(
                    (time.perf_counter() - committed_at) * 1000
                )  # type: ignore[misc]
            )
        await closing
        return count / (time.perf_counter() - started)


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__ or "").parse_args()
    plain: dict[float, list[float]] = {length: [] for length in LENGTHS}
    within: dict[float, list[float]] = {length: [] for length in LENGTHS}
    commits: dict[float, list[float]] = {length: [] for length in LENGTHS}
    with broker_for(options) as broker:
        raw.create_topic(broker.bootstrap, TOPIC, PARTITIONS)
        asyncio.run(idempotent(broker.bootstrap))
        for length in LENGTHS:
            asyncio.run(transactional(broker.bootstrap, length, []))
            plain[length].append(asyncio.run(idempotent(broker.bootstrap)))
            for _ in range(options.runs):
                within[length].append(asyncio.run(transactional(broker.bootstrap, length, commits[length])))
                plain[length].append(asyncio.run(idempotent(broker.bootstrap)))
    report = Report(f"our producer's transactions over {PARTITIONS} partitions (1 KB records)")
    for length, target in LENGTHS.items():
        around = [mean(pair) for pair in zip(plain[length], plain[length][1:], strict=False)]
        report.add("idempotent: records/s", plain[length])
        report.add(f"transactions of {length:g} s: records/s", within[length])
        ratios = [rate / other for rate, other in zip(within[length], around, strict=True)]
        report.add("  ratio to the runs before and after", ratios, target)
        report.add("  closing, with its flush: ms", commits[length])
    report.show()


if __name__ == "__main__":
    main()
