"""Ports for servers that are stopped and started again: below those the kernel gives away by itself.

A port of the kernel's own range may be given to another server, or to an outgoing connection, while its
server is down, and the next start fails. Workers of pytest-xdist take theirs from different parts, so that
none takes what another has found free.
"""

from __future__ import annotations

import itertools
import os
import socket
from pathlib import Path

FIRST = 12_000
PARTS = 32
"""More workers than that share parts."""


def _candidates() -> itertools.cycle[int]:
    """This process's part of the ports, from a place of its own on; 0 where the kernel gives all away."""
    try:
        kernels = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        return itertools.cycle([0])
    size = (kernels - FIRST) // PARTS
    if size < 100:
        return itertools.cycle([0])
    part = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % PARTS
    place = os.getpid() * 17 % size
    ports = range(FIRST + part * size, FIRST + (part + 1) * size)
    return itertools.cycle([*ports[place:], *ports[:place]])


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
