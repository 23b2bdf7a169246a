"""The clock of the leases."""

from __future__ import annotations

import time
from functools import partial

boottime = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Return seconds on a clock that also runs while the process is stopped or the machine suspended.

It is a partial for speed, since the broker reads it twice for each Produce request.
"""
