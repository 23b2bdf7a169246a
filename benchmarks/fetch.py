"""Broker CPU for fetching from the page cache, against two bare loops: `sendfile` alone, and read and send.

python -m benchmarks.fetch [--bootstrap-server HOST:PORT] [--runs N]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import raw
from benchmarks.broker import Broker, arguments, broker_for
from benchmarks.cpu import cpu_seconds
from benchmarks.produce import batch_frame
from benchmarks.report import Report
from kafka_client.wire.framing import encode_request
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

TOPIC = "bench-fetch"
PIECE = 1 << 20
PIECES = 1024
"""Pieces of a counted run, about 1 GB."""
STORED = 128
"""Batches in the topic; they are read round and round, so that all comes from the page cache."""


def fetch_frame(offset: int) -> bytes:
    """Return a Fetch frame (version 11) for one piece from `offset`."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=PIECE)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=PIECE,
        topics=[FetchTopic(topic=TOPIC, partitions=[partition])],
    )
    return encode_request(request, 11, 1, "bench")


def cpu_of_fetching(broker: Broker, records: int) -> float:
    """Return the broker's CPU seconds per GB of responses."""
    frames = [fetch_frame(offset) for offset in range(0, records, records // STORED)]
    with raw.connect(broker.host, broker.port) as connection:
        drain = raw.Drain(connection)
        before, received = cpu_seconds(broker.pid), 0
        for number in range(PIECES):
            connection.sendall(frames[number % len(frames)])
            received += drain.frame()
        return (cpu_seconds(broker.pid) - before) / (received / 1e9)


def cpu_of_bare_loop(kind: str, file: Path) -> float:
    """Return the CPU seconds per GB of a bare loop, `sendfile` or `copy`."""
    command = [sys.executable, "-m", "benchmarks.bare", kind, str(file), str(PIECE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bare:
        assert bare.stdout is not None
        port = int(bare.stdout.readline())
        with raw.connect("127.0.0.1", port) as connection:
            drain = raw.Drain(connection)
            before = cpu_seconds(bare.pid)
            for _ in range(PIECES):
                connection.sendall(b"\0")
                drain.exactly(PIECE)
            used = cpu_seconds(bare.pid) - before
    return used / (PIECES * PIECE / 1e9)


def fill(broker: Broker) -> int:
    """Create the topic and fill it. Return the number of its records."""
    present = raw.create_topic(broker.bootstrap, TOPIC)
    if not present:
        frame, _ = batch_frame(TOPIC)
        with raw.connect(broker.host, broker.port) as connection:
            raw.stream(connection, frame, STORED, in_flight=5)
    return raw.topic_end(broker.bootstrap, TOPIC)


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__ or "").parse_args()
    report = Report("fetch: CPU of the broker per GB, 1 MB pieces from the page cache over loopback")
    with tempfile.TemporaryDirectory() as name, broker_for(options) as broker:
        file = Path(name) / "pieces"
        file.write_bytes(b"v" * (STORED * PIECE))
        records = fill(broker)
        ours, sendfile, copy, ratio = [], [], [], []
        for run in range(options.runs + 1):
            figures = (
                cpu_of_fetching(broker, records),
                cpu_of_bare_loop("sendfile", file),
                cpu_of_bare_loop("copy", file),
            )
            if run:
                ours.append(figures[0])
                sendfile.append(figures[1])
                copy.append(figures[2])
                ratio.append(figures[0] / min(figures[1:]))
    report.add("fetch: CPU s per GB", ours)
    report.add("  a bare loop, sendfile only: CPU s per GB", sendfile)
    report.add("  a bare loop, read and send: CPU s per GB", copy)
    report.add("  ratio to the better", ratio, "≤ 1.3")
    report.show()


if __name__ == "__main__":
    main()
