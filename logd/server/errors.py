"""Why a server cannot listen.

MillstreamError
└── CannotListen   a listener's address is not to be had: change `listeners`, or what is in the way
"""

from __future__ import annotations

import errno
import socket

from kafka_client.errors import MillstreamError
from logd.config.listeners import Endpoint

_REMEDIES = {
    errno.EADDRINUSE: "stop the process that listens there (`ss -ltnp` names it), or set another port",
    errno.EADDRNOTAVAIL: "this machine has no such address: set one it has, or none at all for every address",
    errno.EACCES: "ports below 1024 take privileges: set a higher one",
}
_UNKNOWN_HOST = "the name is not known here: set an address of this machine"


class CannotListen(MillstreamError):
    """The address of ``endpoint`` could not be taken; ``error`` is the system's reason."""

    def __init__(self, endpoint: Endpoint, error: OSError) -> None:
        super().__init__(endpoint, error)
        self.endpoint = endpoint
        self.error = error

    def __str__(self) -> str:
        unknown = isinstance(self.error, socket.gaierror)
        remedy = _UNKNOWN_HOST if unknown else _REMEDIES.get(self.error.errno or 0, "set another address")
        return (
            f"cannot listen on {self.endpoint} ({self.endpoint.listener}): {self.error.strerror}; "
            f"{remedy} in listeners"
        )
