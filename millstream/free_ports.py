"""Ports for brokers that are stopped and started again, below the kernel's range of ephemeral ports.

The kernel could give an ephemeral port to an outgoing connection while the broker is down. That may even be a
client's connection to this broker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

FIRST = 12_000
KERNELS_FIRST = 32_768
"""The first ephemeral port of Linux by default; those of macOS and the BSDs are higher."""
TRIED_MAX = 200
SPREAD = 101
"""The distance between the first ports of neighbouring process ids."""


def candidates() -> Iterator[int]:
    """Yield ports to try, beginning elsewhere in each process. The last one is 0: any port."""
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
