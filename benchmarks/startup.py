"""How long a logd with 100 partitions takes from its start to its ready line, and its memory when idle.

python -m benchmarks.startup [--runs N]
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks import raw
from benchmarks.broker import arguments, start_logd
from benchmarks.cpu import resident_bytes
from benchmarks.report import Report

PARTITIONS = 100


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__ or "").parse_args()
    if options.bootstrap_server:
        print("startup: skipped, it starts a logd of its own and cannot measure a broker that is running")
        return
    seconds, megabytes = [], []
    with tempfile.TemporaryDirectory() as name:
        with start_logd(Path(name)) as (broker, _):
            raw.create_topic(broker.bootstrap, "bench", PARTITIONS)
        for run in range(options.runs + 1):
            started = time.perf_counter()
            with start_logd(Path(name)) as (broker, _):
                ready = time.perf_counter() - started
                resident = resident_bytes(broker.pid) / 1e6
            if run:
                seconds.append(ready)
                megabytes.append(resident)
    report = Report(f"start of logd with {PARTITIONS} partitions, after a clean stop")
    report.add("process start to ready line: s", seconds, "≤ 0.5")
    report.add("resident memory when ready: MB", megabytes, "≤ 60")
    report.show()


if __name__ == "__main__":
    main()
