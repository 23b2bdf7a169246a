"""Broker CPU for producing: small records from a C client, one-record requests, and 1 KB records
against a bare loop that only receives, checks the CRC and appends.

    python -m benchmarks.produce [--bootstrap-server HOST:PORT] [--runs N]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import kcat, raw
from benchmarks.broker import Broker, arguments, broker_for
from benchmarks.cpu import cpu_seconds
from benchmarks.report import Report
from kafka_client.records import build_batch
from kafka_client.wire.produce import encode_produce_request

SMALL = 1_000_000
SINGLES = 100_000
FRAMES = 512
"""Batches of about 1 MB in a counted run of the last figure."""
BATCH_RECORDS = 1000


def cpu_of_kcat(broker: Broker, topic: str, lines: Path, **settings: str | int) -> float:
    """Return the broker's CPU seconds while kcat produces the file's lines."""
    before = cpu_seconds(broker.pid)
    kcat.produce(broker.bootstrap, topic, lines, **settings)
    return cpu_seconds(broker.pid) - before


def batch_frame(topic: str) -> tuple[bytes, int]:
    """Return a Produce frame (version 7, acks=1) with one batch of 1 KB records, and the batch's position."""
    batch = build_batch([(1_700_000_000_000, None, b"v" * 1024, ())] * BATCH_RECORDS)
    chunks = encode_produce_request([(topic, [(0, batch)])], 7, 1, "bench", acks=1)
    frame = b"".join(chunks)
    return frame, len(frame) - len(batch) - 4


def cpu_of_frames(host: str, port: int, pid: int, frame: bytes) -> float:
    """Return the server's CPU seconds per GB of frames sent to it."""
    with raw.connect(host, port) as connection:
        before = cpu_seconds(pid)
        raw.stream(connection, frame, FRAMES, in_flight=5)
        used = cpu_seconds(pid) - before
    return used / (FRAMES * len(frame) / 1e9)


def cpu_of_bare_loop(folder: Path, frame: bytes, batch_at: int) -> float:
    """Return the CPU seconds per GB of the bare loop."""
    file = folder / "bare.log"
    command = [sys.executable, "-m", "benchmarks.bare", "receive", str(file), str(batch_at)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bare:
        assert bare.stdout is not None
        port = int(bare.stdout.readline())
        used = cpu_of_frames("127.0.0.1", port, bare.pid, frame)
    file.unlink()
    return used


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__ or "").parse_args()
    kcat.require()
    report = Report("produce: CPU of the broker")
    with tempfile.TemporaryDirectory() as name, broker_for(options) as broker:
        folder = Path(name)
        small, singles = folder / "small", folder / "singles"
        kcat.write_lines(small, SMALL, 100)
        kcat.write_lines(singles, SINGLES, 100)
        per_million, per_second, per_gb, bare, ratio = [], [], [], [], []
        frame, batch_at = batch_frame("bench-large")
        kcat.produce(broker.bootstrap, "bench-large", singles, acks=1)  # creates the topic
        for run in range(options.runs + 1):
            small_cpu = cpu_of_kcat(broker, "bench-small", small, acks=1)
            single_cpu = cpu_of_kcat(
                broker, "bench-singles", singles, acks=1, linger_ms=0, batch_num_messages=1
            )
            large_cpu = cpu_of_frames(broker.host, broker.port, broker.pid, frame)
            bare_cpu = cpu_of_bare_loop(folder, frame, batch_at)
            if run:
                per_million.append(small_cpu * 1e6 / SMALL)
                per_second.append(SINGLES / single_cpu)
                per_gb.append(large_cpu)
                bare.append(bare_cpu)
                ratio.append(large_cpu / bare_cpu)
    report.add("100 B records (kcat, acks=1): CPU s per million", per_million, "≤ 0.35")
    report.add("one-record requests (kcat, acks=1): requests per CPU s", per_second, "≥ 25,000")
    report.add("1 KB records in 1 MB batches: CPU s per GB", per_gb)
    report.add("  a bare loop (receive, CRC, append): CPU s per GB", bare)
    report.add("  ratio", ratio, "≤ 1.5")
    report.show()


if __name__ == "__main__":
    main()
