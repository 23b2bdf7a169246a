"""How long logd takes to be ready again after kill -9, under the flusher's defaults, and after a clean stop.

    python -m benchmarks.recovery [--partitions N] [--gigabytes N] [--runs N]

Every counted run writes for a while more, kills the broker in the middle of it and starts it again: warm, and
with none of its files in the page cache.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import raw
from benchmarks.broker import Broker, arguments, start_logd
from benchmarks.fill import Filler
from benchmarks.report import Report

TOPIC = "bench-recovery"
WRITE_SECONDS = 8.0
"""Longer than the flusher's interval, so that each kill finds it at work."""


def drop_from_cache(folder: Path) -> None:
    """Have the kernel forget the folder's files, as their owner may; dirty pages are written first."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def write_and_kill(broker: Broker, partitions: int) -> None:
    """Write for `WRITE_SECONDS` and kill the broker meanwhile."""
    filler = Filler(TOPIC, partitions)  # a new producer: the last one does not know what it has written
    killer = threading.Timer(WRITE_SECONDS, os.kill, (broker.pid, signal.SIGKILL))
    killer.start()
    try:
        while True:
            filler.fill(broker, filler.round_bytes)
    except OSError:
        killer.join()


def seconds_to_ready(folder: Path, then: Callable[[Broker], None]) -> float:
    """Start logd, take the time until its ready line, and do something with it."""
    started = time.perf_counter()
    with start_logd(folder, quiet=True) as (broker, line):
        seconds = time.perf_counter() - started
        assert "ready" in line, line
        then(broker)
    return seconds


def main() -> None:
    """Run the benchmark."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--gigabytes", type=float, default=10.0)
    options = parser.parse_args()
    if options.bootstrap_server:
        print("recovery: skipped, it starts a logd of its own and cannot kill a broker that is running")
        return
    partitions, size = options.partitions, options.gigabytes
    kill = partial(write_and_kill, partitions=partitions)
    warm, cold, clean = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with start_logd(folder) as (broker, _):
            raw.create_topic(broker.bootstrap, TOPIC, partitions)
            Filler(TOPIC, partitions).fill(broker, int(size * 1e9))
            kill(broker)
        for _ in range(options.runs):
            warm.append(seconds_to_ready(folder, kill))
            drop_from_cache(folder)
            cold.append(seconds_to_ready(folder, lambda broker: None))
            clean.append(seconds_to_ready(folder, kill))
    report = Report(f"ready again: {partitions:,} partitions, {size:g} GB")
    report.add("after kill -9, warm page cache: s", warm, "≤ 5")
    report.add("after kill -9, cold page cache: s", cold, "≤ 10")
    report.add("after a clean stop: s", clean, "≤ 1.5")
    report.show()


if __name__ == "__main__":
    main()
