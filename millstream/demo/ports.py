"""Free ports on loopback: the preferred one, or any."""

from __future__ import annotations

import socket


def free_port(preferred: int) -> int:
    """Return `preferred` if it can be bound on 127.0.0.1 now, or else a port that the kernel chooses."""
    for port in (preferred, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")
