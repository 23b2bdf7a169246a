"""The clock that leases are asked by."""

from __future__ import annotations

import time
from functools import partial

boottime = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Return seconds on a clock that counts also while the process is stopped and the machine suspended.

A partial, since every produced request asks it twice.
"""
