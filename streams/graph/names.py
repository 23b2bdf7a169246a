"""Names of nodes, stores and repartition topics, counted as Kafka's StreamsBuilder counts them.

One counter serves all kinds, so the numbers tell the order in which a program said things, and
``Topology.describe()`` reads like Kafka's for the same program.
"""

from __future__ import annotations

import re

from streams.errors import TopologyError


def checked(name: str) -> str:
    """A name that becomes part of a topic's and a folder's; TopologyError for what those do not take."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
        raise TopologyError(f"{name!r} is no name for a store or topic: letters, digits, '.', '_' and '-'")
    return name


class Names:
    """The counter of one builder."""

    def __init__(self) -> None:
        self._next = 0

    def node(self, prefix: str, given: str | None = None) -> str:
        """``given``, which costs no number, or ``<prefix>0000000007``."""
        return given if given is not None else f"{prefix}{self.take():010d}"

    def store(self, prefix: str) -> str:
        """``<prefix>STATE-STORE-0000000007``."""
        return f"{prefix}STATE-STORE-{self.take():010d}"

    def take(self) -> int:
        """The next number. Kafka also spends numbers on names it then does not use; so do we."""
        number = self._next
        self._next += 1
        return number
