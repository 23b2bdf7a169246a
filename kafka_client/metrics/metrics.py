"""The registry every part may write to: groups of metrics by Kafka's names, read when somebody asks.

Nothing is counted on the way of a record for the metrics' sake: who has numbers hands in how to read them,
and keeps them anyway, per batch or per request. So a registry that nobody reads costs nothing.

A metric is named as Kafka names it: a domain and a type with tags (JMX's `kafka.producer:type=
producer-metrics,client-id=c1`), and within them a name such as `record-send-total`. A name that ends with
`-total` only grows, but for those in `FALLING`; any other is a value that goes up and down.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

Values: TypeAlias = Mapping[str, float]
"""Metrics by name, in the units of their names."""
Read: TypeAlias = Callable[[], Iterable[tuple[Mapping[str, str], Values]]]
"""Returns a group's current metrics, with tags that distinguish partitions or nodes.

It is called in the owner's event loop, and must not block.
"""

TOTAL = "-total"
FALLING = frozenset(("input-buffer-bytes-total", "cache-size-bytes-total", "restore-remaining-records-total"))
"""Metrics that Kafka calls a total although they also fall."""


class MetricName(NamedTuple):
    """A metric's name: its domain and type, its name in them, and its tags, sorted by key."""

    domain: str
    type: str
    name: str
    tags: tuple[tuple[str, str], ...]

    @property
    def only_grows(self) -> bool:
        """True if the metric counts, rather than measures."""
        return self.name.endswith(TOTAL) and self.name not in FALLING

    def __str__(self) -> str:
        tags = "".join(f",{key}={value}" for key, value in self.tags)
        return f"{self.domain}:type={self.type}{tags}:{self.name}"


class Group(NamedTuple):
    """A source of metrics of one domain and type; see the module."""

    domain: str
    type: str
    tags: Mapping[str, str]
    read: Read


class Metrics:
    """The groups of metrics. All methods are called in one event loop."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        """Numbers for the names of metrics' owners, unique in the registry."""
        self._groups: dict[int, Group] = {}
        self._number = 0
        self._alike: dict[object, set[int]] = {}
        """The numbers of groups with the same domain, type and tags."""

    def add(self, domain: str, type: str, read: Callable[[], Values], **tags: str) -> Callable[[], None]:
        """Add metrics that all have these tags (`client_id` for Kafka's `client-id`); see `add_each`."""
        return self.add_each(domain, type, lambda: [({}, read())], **tags)

    def add_each(self, domain: str, type: str, read: Read, **tags: str) -> Callable[[], None]:
        """Add metrics with further tags from `read`, such as a partition or a node.

        Returns a function that removes them when their owner ends; more than one call does no harm. A second
        group with the same tags, such as of two workers in one process, also gets the tag `number`. So no
        metric exists twice.
        """
        self._number += 1
        number = self._number
        named = {key.replace("_", "-"): value for key, value in tags.items()}
        alike = domain, type, frozenset(named.items())
        place = self._take_place(alike)
        if place > 1:
            named["number"] = str(place)
        self._groups[number] = Group(domain, type, named, read)

        def remove() -> None:
            if self._groups.pop(number, None) is not None:
                self._give_place_back(alike, place)

        return remove

    def _take_place(self, alike: object) -> int:
        """Return the first number that no group with the same key has."""
        used = self._alike.setdefault(alike, set())
        place = next(number for number in itertools.count(1) if number not in used)
        used.add(place)
        return place

    def _give_place_back(self, alike: object, place: int) -> None:
        self._alike[alike].discard(place)
        if not self._alike[alike]:
            del self._alike[alike]

    def read(self) -> Iterator[tuple[MetricName, float]]:
        """Yield every metric with its current value."""
        for group in list(self._groups.values()):
            for tags, values in group.read():
                own = tuple(sorted({**group.tags, **tags}.items()))
                for name, value in values.items():
                    yield MetricName(group.domain, group.type, name, own), value

    def values(self, type: str, **tags: str) -> dict[str, float]:
        """Return the metrics of a type by name, from groups with at least these tags; equal names are
        added up.
        """
        required = {(key.replace("_", "-"), value) for key, value in tags.items()}
        sums: dict[str, float] = {}
        for metric, value in self.read():
            if metric.type == type and required.issubset(metric.tags):
                sums[metric.name] = sums.get(metric.name, 0) + value
        return sums
