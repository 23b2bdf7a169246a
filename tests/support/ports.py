"""Ports for servers that are stopped and started again: below those the kernel gives away by itself.

A port of the kernel's own range may be given to another server, or to an outgoing connection, while its
server is down, and the next start fails. Each process that runs tests, a worker of pytest-xdist or one of
several runs at the same time, has a part of the ports for itself, so that none takes what another has found
free: it holds a lock on a file as long as it lives.
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
    """This process's part of the ports, from a place of its own on; 0 where the kernel gives all away."""
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
    """The first that no other process has."""
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
    """A port of 127.0.0.1 that nobody listens on just now, and another one with every call."""
    for port in itertools.islice(_ports, 1000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise AssertionError("a thousand ports in a row are taken")
