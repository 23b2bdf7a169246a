"""Names of nodes, stores and repartition topics, counted as Kafka's StreamsBuilder counts them.

One counter serves all kinds, so the numbers follow the order of a program's calls. ``Topology.describe()`` is
then the same as Kafka's for the same program.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from streams.errors import TopologyError

NAME_LENGTH_MAX = 249
"""The longest name, as for topics: with Kafka's suffixes it must still be a valid file name."""


def checked(name: str) -> str:
    """Return `name` unchanged if it may name a node, a store or a topic.

    A store's name becomes the name of a folder. Raises TopologyError for any other name, with the text of
    Kafka's Named.validate.
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
    """A builder's counter of generated names."""

    def __init__(self) -> None:
        self._next = 0
        self.generated: set[str] = set()
        """Names of nodes and stores that have a number."""

    def node(self, prefix: str, name: str | None = None, suffix: str = "") -> str:
        """Return a node's name: ``<prefix>0000000007``, or the user's ``name`` followed by ``suffix``.

        The user's name takes a number too, so that naming a node later renames no others. Raises
        TopologyError if the name is not allowed.
        """
        number = self.take()
        return self._numbered(prefix, number) if name is None else checked(checked(name) + suffix)

    def store(self, prefix: str) -> str:
        """Return a store's name, ``<prefix>STATE-STORE-0000000007``."""
        return self._numbered(f"{prefix}STATE-STORE-", self.take())

    def repartition(self, prefix: str) -> RepartitionNames:
        """Return the names of the topic ``<prefix>-repartition`` and the nodes around it.

        The nodes are named after the topic unless its prefix was generated. They always take numbers.
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
        """Return the next number. Kafka also takes numbers for names it does not use; so do we."""
        number = self._next
        self._next += 1
        return number


class RepartitionNames(NamedTuple):
    """The names of a repartition topic, its sink, the filter before the sink, and its source."""

    topic: str
    sink: str
    filter: str
    source: str
