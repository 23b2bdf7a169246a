"""How long a test's first broker in the test's own process takes, in fresh processes, and the second one.

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
from millstream import testing
for _ in range(2):
    began = time.perf_counter()
    broker = testing.Broker(in_process=True).start()
    print((time.perf_counter() - began) * 1000)
    broker.stop()
"""
BESIDE = {
    "": "nothing else imported",
    "import pytest": "pytest imported",
    "import asyncio": "asyncio imported",
}


def main() -> None:
    """Entry point."""
    options = arguments(__doc__ or "").parse_args()
    if options.bootstrap_server:
        print("in_process: skipped, it starts brokers of its own and cannot measure one that is running")
        return
    report = Report("Broker(in_process=True).start(), imports included")
    for before, said in BESIDE.items():
        runs = [_started(before) for _ in range(options.runs + 1)][1:]  # the first may write byte code
        report.add(f"the first in a process, {said}: ms", [first for first, _ in runs], "≤ 50")
        if not before:
            seconds = [second for _, second in runs]
    report.add("the second: ms", seconds, "≤ 50")
    report.show()


def _started(before: str) -> tuple[float, float]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", _STARTS.format(before=before)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = map(float, done.stdout.split())
    return first, second


if __name__ == "__main__":
    main()
