"""The connections that a broker has, by the kernel's table of sockets, and a client's way to end one."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

ESTABLISHED, CLOSE_WAIT = 0x01, 0x08
"""In the latter the peer is gone, and what it had sent may not be read yet."""


def has_connections(port: int) -> bool:
    """Return True if a server on this local port has connections that it has not closed."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        if int(local.rpartition(":")[2], 16) == port and int(state, 16) in (ESTABLISHED, CLOSE_WAIT):
            return True
    return False


def hang_up(sock: socket.socket) -> None:
    """Say that nothing more comes. Where the other side has reset the connection already there is nothing to
    say: that is no ConnectionError, but ENOTCONN.
    """
    try:
        sock.shutdown(socket.SHUT_WR)
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise
