"""Pacing of TCP sends, switched off where both ends of a connection are on one host.

The congestion control BBR paces what it sends by a timer for every 64 KB. Within one host there is no network
to spare, and the timers cost a sender up to twice the CPU of the bytes themselves. Between hosts the system's
choice stands.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Protocol

_CONGESTION: int | None = getattr(socket, "TCP_CONGESTION", None)  # Linux alone has it
_NAME_BYTES = 16
"""Length of a congestion control's name, TCP_CA_NAME_MAX."""
_PACES = b"bbr"
"""Every version's name begins so."""
_PLAIN = b"reno"
"""Every Linux has it, and lets every process choose it."""


class TcpSocket(Protocol):
    """The part of a socket's interface used here; asyncio's and uvloop's transports offer it."""

    def getsockname(self) -> Any: ...

    def getpeername(self) -> Any: ...

    def getsockopt(self, level: int, optname: int, buflen: int, /) -> Any: ...

    def setsockopt(self, level: int, optname: int, value: bytes, /) -> None: ...


def send_unpaced_within_host(connected: TcpSocket) -> None:
    """Take a connection within this host off a congestion control that paces; leave any other as it is.

    A failure changes nothing but CPU, so none is raised.
    """
    if _CONGESTION is None:
        return
    with contextlib.suppress(OSError):
        # A host that talks to itself has one address at both ends, whichever of its addresses it is.
        if connected.getsockname()[0] != connected.getpeername()[0]:
            return
        if connected.getsockopt(socket.IPPROTO_TCP, _CONGESTION, _NAME_BYTES).startswith(_PACES):
            connected.setsockopt(socket.IPPROTO_TCP, _CONGESTION, _PLAIN)
