"""The state of a ZooKeeper server, as it answers the four-letter command `srvr`."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from typing import NamedTuple

PATIENCE_SECONDS = 5.0
_CHUNKS_MAX = 16
"""The limit of an answer, which has a few hundred bytes, for services of other protocols."""


class State(NamedTuple):
    """The state of a server that serves: `mode` is leader, follower, observer or standalone."""

    mode: str
    version: str


class NotServing(Exception):
    """A service answers there, but does not serve as ZooKeeper. The text is the first line of its answer."""


def state(host: str, port: int, seconds: float = PATIENCE_SECONDS) -> State:
    """Return the state of the server. Raises NotServing, or OSError if nobody answers."""
    with socket.create_connection((host, port), seconds) as connection:
        connection.sendall(b"srvr")
        answer = b"".join(_received(connection)).decode("utf-8", "replace")
    mode = re.search(r"^Mode: (\w+)", answer, re.MULTILINE)
    if mode is None:
        raise NotServing(answer.strip().partition("\n")[0] or "it closed the connection")
    version = re.search(r"version: ([^-,\s]+)", answer)
    return State(mode[1], version[1] if version else "of an unknown version")


def _received(connection: socket.socket) -> Iterator[bytes]:
    for _ in range(_CHUNKS_MAX):
        chunk = connection.recv(4096)
        if not chunk:
            return
        yield chunk
