"""Compaction: MB of log per CPU second of the cleaner, and its effect on producers' latency.

    python -m benchmarks.compaction [--runs N]

The first figures clean a log at the broker's default ratio: half of it is clean, half dirty. Records have 1
KB, in batches of 20, with four updates of each key. Megabytes are those of the log's files before the
cleaning; compressed files have more records. The last figures send one-record requests, one after the other,
to a logd process, with and without the compaction of a large topic.
"""

from __future__ import annotations

import asyncio
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

from benchmarks import raw
from benchmarks.broker import Broker, arguments, start_logd
from benchmarks.report import Report
from kafka_client import Admin, Client, NewTopic
from kafka_client.records import Codec, build_batch
from kafka_client.wire.produce import encode_produce_request
from logd.config.topic import TopicConfig
from logd.storage import Log, LogDirectory
from logd.storage.cleaner.cleaning import Cleaning
from logd.storage.cleaner.messages import Cleaned
from logd.storage.disk import PosixDisk
from logd.storage.log.compaction import CleanerLimits

RECORDS = 80_000
"""In each of the two halves of a log that is cleaned."""
BATCH_RECORDS = 20
UPDATES = 4
NOW = 1_700_000_000_000
REQUESTS = 2_000
"""One-record requests in a run; compaction goes on all the while."""
TOPIC_BATCHES = 8_000
CONFIG = TopicConfig(
    cleanup_policy=("compact",), segment_bytes=32 * 1024 * 1024, min_cleanable_dirty_ratio=0.5
)


def values(count: int) -> list[bytes]:
    """Return values of 1 KB that compress about as well as JSON does."""
    chance = random.Random(1)
    texts = []
    for number in range(count):
        fields = [f'"field_{index}": "{chance.getrandbits(96):x}"' for index in range(26)]
        texts.append((f'{{"id": {number}, ' + ", ".join(fields) + "}").encode()[:1024].ljust(1024))
    return texts


def batches(codec: Codec, seed: int, count: int, codecs: bool) -> Iterator[bytes]:
    """Yield record batches with random keys; with `codecs`, of no codec, lz4 and zstd in turn."""
    chance, pool = random.Random(seed), values(500)
    keys = max(count // UPDATES, 1)
    mixed = (Codec.NONE, Codec.LZ4, Codec.ZSTD)
    for number in range(count // BATCH_RECORDS):
        records = [
            (NOW, b"customer-%09d" % chance.randrange(keys), chance.choice(pool), ())
            for _ in range(BATCH_RECORDS)
        ]
        yield build_batch(records, codec=mixed[number % 3] if codecs else codec)


class Work:
    """A log in a folder, cleaned in this process as the cleaner process does it."""

    def __init__(self, folder: Path) -> None:
        self._folder = LogDirectory.open(
            folder, node_id=1, cluster_id="bench", config_for=lambda topic: CONFIG, now_ms=NOW
        )
        self.log: Log = self._folder.create_log("t", 0, topic_id=None, config=CONFIG, now_ms=NOW)
        self.first_dirty = -1

    def fill(self, codec: Codec, seed: int, codecs: bool) -> None:
        for batch in batches(codec, seed, RECORDS, codecs):
            self.log.writer.append(batch, 0, NOW)
        self.log.config = CONFIG.replaced(segment_bytes=1_000_000)
        for _ in range(60):  # roll: the active segment is not cleaned
            self.log.writer.append(build_batch([(NOW, b"filler", b"x" * 20_000, ())]), 0, NOW)
        self.log.config = CONFIG
        self.log.flusher.flush()

    def compact(self) -> tuple[float, float, float]:
        """Compact once. Return the bytes of log read, CPU seconds and seconds."""
        cleanable = self.log.compaction.cleanable(
            self.first_dirty, upper_bound=self.log.log_end_offset, now_ms=NOW
        )
        compaction = self.log.compaction.start_compaction(cleanable, CleanerLimits(), NOW)
        groups: list[Cleaned] = []
        cpu, started = _cpu(), time.perf_counter()
        done = Cleaning(compaction.task, PosixDisk(), groups.append).run()
        cpu, seconds = _cpu() - cpu, time.perf_counter() - started
        for cleaned in groups:
            swap = self.log.compaction.start_swap(compaction, cleaned)
            swap.prepare()
            deletion = self.log.compaction.finish_swap(swap)
            assert deletion is not None
            deletion.run()
        self.first_dirty = done.first_dirty
        return sum(source.size for source in compaction.task.sources), cpu, seconds

    def close(self) -> None:
        self._folder.close()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rate(codec: Codec, seed: int, *, codecs: bool = False) -> tuple[float, float]:
    """Return MB of log per CPU second and per second of the second compaction."""
    with tempfile.TemporaryDirectory() as name:
        work = Work(Path(name) / "data")
        work.fill(codec, seed, codecs)
        work.compact()
        work.fill(codec, seed + 1, codecs)
        size, cpu, seconds = work.compact()
        work.close()
    return size / 1e6 / cpu, size / 1e6 / seconds


async def _make(broker: Broker, name: str, configs: dict[str, str]) -> None:
    async with Client(broker.bootstrap) as client:
        await Admin(client).create_topics(
            [NewTopic(name, num_partitions=1, replication_factor=1, configs=configs)]
        )


async def _set(broker: Broker, name: str, key: str, value: str) -> None:
    async with Client(broker.bootstrap) as client:
        await Admin(client).incremental_alter_configs(name, {key: value})


def latencies(broker: Broker) -> list[float]:
    """Return the milliseconds of each one-record request."""
    batch = build_batch([(NOW, None, b"v" * 1024, ())])
    frame = b"".join(encode_produce_request([("small", [(0, batch)])], 7, 1, "bench", acks=1))
    milliseconds = []
    with raw.connect(broker.host, broker.port) as connection:
        drain = raw.Drain(connection)
        for _ in range(REQUESTS):
            started = time.perf_counter()
            connection.sendall(frame)
            drain.frame()
            milliseconds.append((time.perf_counter() - started) * 1000)
            time.sleep(0.0005)
    return milliseconds


@contextmanager
def large_topic(folder: Path) -> Iterator[Broker]:
    """Run a broker with a topic that is compacted for a while once its ratio is lowered."""
    overrides = ["log.cleaner.backoff.ms=50", "millstream.flush.interval.ms=200"]
    with start_logd(folder, overrides, quiet=True) as (broker, _):
        policy = {"cleanup.policy": "compact", "segment.bytes": str(CONFIG.segment_bytes)}
        asyncio.run(_make(broker, "large", {**policy, "min.cleanable.dirty.ratio": "1"}))
        asyncio.run(_make(broker, "small", {}))
        with raw.connect(broker.host, broker.port) as connection:
            drain = raw.Drain(connection)
            for batch in batches(Codec.NONE, 1, TOPIC_BATCHES * BATCH_RECORDS, True):
                connection.sendall(
                    b"".join(encode_produce_request([("large", [(0, batch)])], 7, 1, "bench", acks=1))
                )
                drain.frame()
        yield broker


def p99(milliseconds: list[float]) -> float:
    return quantiles(milliseconds, n=100)[98]


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__ or "").parse_args()
    if options.bootstrap_server:
        print("compaction: skipped, it cleans a log of its own and cannot measure a broker that is running")
        return
    report = Report("compaction")
    kinds = [("mixed codecs", Codec.NONE, True, "≥ 40")] + [
        (codec.name.lower(), codec, False, "") for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD)
    ]
    for name, codec, codecs, target in kinds:
        runs = [rate(codec, run, codecs=codecs) for run in range(options.runs + 1)][1:]
        report.add(f"1 KB records, {name}: MB per CPU s", [cpu for cpu, _ in runs], target)
        report.add("  MB per s, with its fsyncs", [seconds for _, seconds in runs])
    quiet, busy, ratio = [], [], []
    for run in range(options.runs + 1):
        with tempfile.TemporaryDirectory() as name, large_topic(Path(name)) as broker:
            without = p99(latencies(broker))
            asyncio.run(_set(broker, "large", "min.cleanable.dirty.ratio", "0.01"))
            during = p99(latencies(broker))
            assert not (Path(name) / "cleaner-offset-checkpoint").exists(), (
                "compacted before the last request"
            )
        if run:
            quiet.append(without)
            busy.append(during)
            ratio.append(during / without)
    report.add("one-record requests, nothing compacted: p99 ms", quiet)
    report.add("  while a topic is compacted: p99 ms", busy)
    report.add("  ratio", ratio, "≤ 2")
    report.show()


if __name__ == "__main__":
    main()
