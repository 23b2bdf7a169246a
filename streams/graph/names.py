"""Names of nodes, stores and repartition topics, counted as Kafka's StreamsBuilder counts them.

One counter serves all kinds, so the numbers tell the order in which a program said things, and
``Topology.describe()`` reads like Kafka's for the same program.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from streams.errors import TopologyError

NAME_LENGTH_MAX = 249
"""As of a topic's name: the longest that is still a file's name with what Kafka puts behind it."""


def checked(name: str) -> str:
    """Return a name that Kafka allows for nodes, stores and topics; it may become a folder's name.

    Raises TopologyError otherwise, with the text of Kafka's Named.validate.
    """
    if not name:
        raise TopologyError("Name is illegal, it can't be empty")
    if name in (".", ".."):
        raise TopologyError('Name cannot be "." or ".."')
    if len(name) > NAME_LENGTH_MAX:
        raise TopologyError(
            f"Name is illegal, it can't be longer than {NAME_LENGTH_MAX} characters, name: {name}"
        )
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
        raise TopologyError(
            f'Name "{name}" is illegal, it contains a character other than ASCII alphanumerics, '
            "'.', '_' and '-'"
        )
    return name


_GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")


class Names:
    """The counter of one builder."""

    def __init__(self) -> None:
        self._next = 0
        self.generated: set[str] = set()
        """Names of nodes and stores that have a number."""

    def node(self, prefix: str, given: str | None = None, suffix: str = "") -> str:
        """``<prefix>0000000007``, or what the user gave, with ``suffix`` behind it.

        A given name costs a number too, so that naming a node later renames nothing else. Raises
        TopologyError if it is not allowed.
        """
        number = self.take()
        return self._numbered(prefix, number) if given is None else checked(checked(given) + suffix)

    def store(self, prefix: str) -> str:
        """``<prefix>STATE-STORE-0000000007``."""
        return self._numbered(f"{prefix}STATE-STORE-", self.take())

    def repartition(self, prefix: str) -> RepartitionNames:
        """Names of the topic ``<prefix>-repartition`` and the nodes around it.

        The nodes are named after the topic unless its prefix was generated; their numbers are taken always.
        """
        topic = prefix if prefix.endswith("-repartition") else f"{prefix}-repartition"
        sink, keep, source = (self.node(f"KSTREAM-{what}-") for what in ("SINK", "FILTER", "SOURCE"))
        if not _GENERATED.fullmatch(prefix):
            sink, keep, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
        return RepartitionNames(checked(topic), sink, keep, source)

    def _numbered(self, prefix: str, number: int) -> str:
        name = f"{prefix}{number:010d}"
        self.generated.add(name)
        return name

    def take(self) -> int:
        """The next number. Kafka also spends numbers on names it then does not use; so do we."""
        number = self._next
        self._next += 1
        return number


class RepartitionNames(NamedTuple):
    """A repartition topic, the sink and the filter before it, and the source behind it."""

    topic: str
    sink: str
    filter: str
    source: str
