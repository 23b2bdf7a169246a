"""Ports for servers that are stopped and started again, below the kernel's own range.

While a server is down, the kernel may give a port of its own range to another server or to an outgoing
connection. The server's next start fails then. Each process that runs tests has a part of the ports for
itself, so that no two find the same port free: a worker of pytest-xdist, or a run beside another run. The
process holds a lock on a file as long as it lives.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
import tempfile
from pathlib import Path

FIRST = 12_000
PARTS = 32
"""More processes than that share parts."""


def _candidates() -> itertools.cycle[int]:
    """Return this process's part of the ports, in an order of its own.

    It is only 0 if the kernel's range leaves too few, or cannot be read.
    """
    try:
        kernels = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return itertools.cycle([0])
    size = (kernels - FIRST) // PARTS
    if size < 100:
        return itertools.cycle([0])
    part = _own_part()
    place = os.getpid() * 17 % size
    ports = range(FIRST + part * size, FIRST + (part + 1) * size)
    return itertools.cycle([*ports[place:], *ports[:place]])


def _own_part() -> int:
    """Return the first part that no other process has locked, a shared one if all are locked."""
    for part in range(PARTS):
        path = Path(tempfile.gettempdir()) / f"millstream-tests-ports-{part}"
        try:
            lock = os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
        except OSError:  # another user's
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
        else:
            return part
    return os.getpid() % PARTS


_ports = _candidates()


def free_port() -> int:
    """Return a port of 127.0.0.1 that has no listener at present, another one with every call."""
    for port in itertools.islice(_ports, 1000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise AssertionError("a thousand ports in a row are taken")
