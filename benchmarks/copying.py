"""CPU of a follower's appends against its leader's, for the same batches: both in this process, without a
network. What is compared is the checks, the write, which costs both the same, and what is noted.

    python -m benchmarks.copying [--megabytes N] [--runs N]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.report import Report
from kafka_client.records import build_batch
from kafka_client.records.header import assign_offset
from logd.broker.background.flusher import Flusher
from logd.broker.partition.partition import Partition
from logd.config.topic import TopicConfig
from logd.storage import LogDirectory

NOW = 1_700_000_000_000
RUN_BYTES = 1024 * 1024
"""The default of replica.fetch.max.bytes."""
KINDS = (
    ("100 batches of 10 KB", 10, 100),
    ("3,000 batches of 340 B", 1, 3_000),
    ("1 batch of 1 MB", 1_000, 1),
)


@contextmanager
def partition(folder: Path) -> Iterator[Partition]:
    """Yield a partition with an empty log."""
    config = TopicConfig()
    opened = LogDirectory.open(
        folder, node_id=1, cluster_id="bench", config_for=lambda topic: config, now_ms=NOW
    )
    log = opened.create_log("bench", 0, topic_id=bytes(16), config=config, now_ms=NOW)

    async def nothing(job: object) -> None:
        """Flush nothing."""

    try:
        yield Partition(log, opened, bytes(16), config, Flusher(nothing, 1 << 62))
    finally:
        opened.unlock()


def cpu_of_produce(folder: Path, batch: bytes, batches: int, runs: int) -> float:
    """Return the CPU seconds of appending the batches one by one, as from clients.

    There are `runs` times `batches` batches.
    """
    with partition(folder) as leader:
        view = memoryview(batch)
        began = time.process_time()
        for _ in range(batches * runs):
            leader.produce(view, NOW, 1)
        return time.process_time() - began


def cpu_of_copy(folder: Path, batch: bytes, records: int, batches: int, runs: int) -> float:
    """Return the CPU seconds of appending as many batches as a follower, `batches` of them at a time.

    The time to set the offsets of the batches is not counted.
    """
    with partition(folder) as follower:
        run = bytearray(batch * batches)
        offset, used = 0, 0.0
        for _ in range(runs):
            for number in range(batches):
                assign_offset(run, offset, 0, number * len(batch))
                offset += records
            began = time.process_time()
            follower.copy(memoryview(run), NOW)
            used += time.process_time() - began
        return used


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=400, help="written by each, default 400")
    parser.add_argument("--runs", type=int, default=3, help="counted runs, default 3")
    options, _ = parser.parse_known_args()
    report = Report("a follower's append: CPU against the leader's")
    for kind, records, batches in KINDS:
        size = RUN_BYTES // (records * batches) - (80 if records == 1 else 20)
        batch = build_batch([(NOW, None, b"v" * max(size, 200), ())] * records)
        runs = options.megabytes * RUN_BYTES // (len(batch) * batches)
        produce, copy, ratio = [], [], []
        for _ in range(options.runs):
            with tempfile.TemporaryDirectory() as name:
                produced = cpu_of_produce(Path(name) / "leader", batch, batches, runs)
                copied = cpu_of_copy(Path(name) / "follower", batch, records, batches, runs)
            megabytes = len(batch) * batches * runs / 1e6
            produce.append(produced * 1e6 / megabytes)
            copy.append(copied * 1e6 / megabytes)
            ratio.append(copied / produced)
        report.add(f"{kind}: produce, CPU µs per MB", produce)
        report.add(f"{kind}: copy, CPU µs per MB", copy)
        report.add("  ratio", ratio)
    report.show()


if __name__ == "__main__":
    main()
