"""Ports for brokers that are stopped and started again: below those the kernel gives away by itself.

A port of the kernel's own range could meanwhile be given to an outgoing connection, also to that of a client
which tries to reach the broker that is down.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

FIRST = 12_000
KERNELS_FIRST = 32_768
"""Where Linux begins unless told otherwise; macOS and the BSDs begin above."""
TRIED_MAX = 200
SPREAD = 101
"""Neighbouring process ids begin so many ports apart."""


def candidates() -> Iterator[int]:
    """Ports to try, from a place on that differs from process to process; in the end 0, for any."""
    size = _kernels_first() - FIRST
    if size > TRIED_MAX:
        place = os.getpid() * SPREAD
        yield from (FIRST + (place + step) % size for step in range(TRIED_MAX))
    yield 0


def _kernels_first() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return KERNELS_FIRST
