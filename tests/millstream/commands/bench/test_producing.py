"""The writing benchmark: records by keys, and separate counts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from kafka_client.records import NewRecord
from millstream.commands.bench.producing import ProduceBench
from millstream.terminal.progress import Progress


class RecordingProducer:
    """A producer that records what is sent and acknowledges at once; keys are partitions."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, list[tuple[bytes | None, bytes | None]]]] = []

    async def send(
        self, topic: str, partition: int, records: Sequence[NewRecord]
    ) -> asyncio.Future[int | None]:
        self.sent.append((partition, [(key, value) for _, key, value, _ in records]))
        done: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        done.set_result(0)
        return done

    async def flush(self) -> None:
        await asyncio.sleep(0)

    def partition_for(self, topic: str, key: bytes | None, partition_count: int) -> int:
        return 0 if key is None else int(key) % partition_count


def test_keys_decide_the_partitions() -> None:
    producer = RecordingProducer()
    bench = ProduceBench(producer, "t", 2, iter([b"0", b"1", b"2", b"3"]))
    asyncio.run(bench.run(iter([[b"a", b"b", b"c"], [b"d"]]), -1, Progress(None)))
    assert producer.sent == [
        (0, [(b"0", b"a"), (b"2", b"c")]),
        (1, [(b"1", b"b")]),
        (1, [(b"3", b"d")]),
    ]
    assert (bench.latencies.count, bench.bytes_sent) == (4, 4)


def test_what_comes_behind_the_warm_up_counts_apart() -> None:
    bench = ProduceBench(RecordingProducer(), "t", 1)

    def slices() -> Iterator[list[bytes]]:
        yield [b"warm"] * 3
        bench.begin_steady()
        yield [b"up"] * 2

    asyncio.run(bench.run(slices(), -1, Progress(None)))
    assert bench.steady is not None
    assert (bench.steady.count, bench.steady.bytes_sent) == (2, 4)
    assert (bench.latencies.count, bench.bytes_sent) == (5, 16)
    assert 0 < bench.steady_seconds <= bench.seconds
