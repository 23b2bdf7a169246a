"""All benchmarks, one after the other: `python -m benchmarks [OPTIONS]`."""

from __future__ import annotations

import subprocess
import sys

ALL = (
    "records",
    "produce",
    "copying",
    "fetch",
    "sessions",
    "assigned",
    "startup",
    "in_process",
    "recovery",
    "partitions",
    "compaction",
    "transactions",
    "client_transactions",
    "streams",
)

if __name__ == "__main__":
    sys.exit(
        max(subprocess.call([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]]) for name in ALL)
    )
