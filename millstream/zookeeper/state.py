"""What a ZooKeeper server says of itself when it is asked by the four letters `srvr`."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import NamedTuple

PATIENCE_SECONDS = 5.0
_CHUNKS_MAX = 16
"""An answer has a few hundred bytes; what speaks another protocol may have more to say."""


class State(NamedTuple):
    """A server that serves: as "leader", "follower", "observer" or "standalone"."""

    mode: str
    version: str


class NotServing(Exception):
    """Something listens there and does not serve: the text is the first line of what it said."""


def state(host: str, port: int, seconds: float = PATIENCE_SECONDS) -> State:
    """The state of the server there; NotServing, or OSError where nobody answers."""
    with socket.create_connection((host, port), seconds) as connection:
        connection.sendall(b"srvr")
        told = b"".join(_received(connection)).decode("utf-8", "replace")
    mode = re.search(r"^Mode: (\w+)", told, re.MULTILINE)
    if mode is None:
        raise NotServing(told.strip().partition("\n")[0] or "it closed the connection")
    version = re.search(r"version: ([^-,\s]+)", told)
    return State(mode[1], version[1] if version else "of an unknown version")


def _received(connection: socket.socket) -> Iterator[bytes]:
    for _ in range(_CHUNKS_MAX):
        chunk = connection.recv(4096)
        if not chunk:
            return
        yield chunk
