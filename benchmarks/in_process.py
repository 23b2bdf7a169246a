"""How long a test's first broker in the test's own process takes, in fresh processes, and the second one.

All imports that are not done yet are in the first one's time, that of `millstream.testing` as well; what is
imported later shows in the time until a record was written and read.

python -m benchmarks.in_process [--runs N]
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.broker import arguments
from benchmarks.report import Report

_STARTS = """
import time
{before}
for _ in range(2):
    began = time.perf_counter()
    from millstream.testing import Broker
    broker = Broker(in_process=True).start()
    print((time.perf_counter() - began) * 1000)
    broker.produce("orders", ["a"])
    assert broker.records("orders")
    print((time.perf_counter() - began) * 1000)
    broker.stop()
"""
BESIDE = {
    "": "nothing else imported",
    "import pytest": "pytest imported",
    "import asyncio": "asyncio imported",
}


def main() -> None:
    """Run the benchmark."""
    options = arguments(__doc__ or "").parse_args()
    if options.bootstrap_server:
        print("in_process: skipped, it starts brokers of its own and cannot measure one that is running")
        return
    report = Report("Broker(in_process=True).start(), imports included")
    for before, condition in BESIDE.items():
        runs = [_started(before) for _ in range(options.runs + 1)][1:]  # the first may write byte code
        ready, used, *_ = zip(*runs, strict=True)
        report.add(f"the first in a process, {condition}: ms", ready, "≤ 50")
        report.add("... until a record was written and read: ms", used)
        if not before:
            _, _, second, second_used = zip(*runs, strict=True)
    report.add("the second: ms", second, "≤ 50")
    report.add("... until a record was written and read: ms", second_used)
    report.show()


def _started(before: str) -> tuple[float, ...]:
    """Start two brokers in turn in a new process. Return the ms after which each was ready and used.

    The result is (ready, used) of the first broker and then of the second. A broker is used once a record was
    written and read.
    """
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", _STARTS.format(before=before)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(map(float, done.stdout.split()))


if __name__ == "__main__":
    main()
