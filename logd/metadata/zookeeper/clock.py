"""The clock that leases are asked by."""

from __future__ import annotations

import time


def boottime() -> float:
    """Seconds on a clock that counts also while the process is stopped and the machine suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
