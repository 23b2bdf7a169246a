"""Records between nodes: four arguments per record, or a `Record` for processors written by users.

Operators are composed closures; a record passes them as plain arguments, which costs no allocation.
Forwarding lists of records instead was tried, and was not faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Process: TypeAlias = Callable[[Any, Any, int, Headers], None]
"""Takes key, value, timestamp (ms) and headers of one record."""
InputRecord: TypeAlias = tuple[int, Any, Any, Headers, int]
"""Event time (ms), key, value, headers and offset of an input's record."""


@dataclass(frozen=True, slots=True)
class Record(Generic[K, V]):
    """A record as a user's processor receives it. ``timestamp`` is in ms since the epoch."""

    key: K
    value: V
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Any) -> Record[Any, V]:
        """Return a copy of the record with another key."""
        return replace(self, key=key)

    def with_value(self, value: Any) -> Record[K, Any]:
        """Return a copy of the record with another value."""
        return replace(self, value=value)

    def with_timestamp(self, timestamp: int) -> Record[K, V]:
        """Return a copy of the record with another timestamp, ms since the epoch."""
        return replace(self, timestamp=timestamp)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        """Return a copy of the record with other headers."""
        return replace(self, headers=headers)


class RecordContext(NamedTuple):
    """A record's origin, timestamp (ms) and headers; "" and -1 if it did not come from a topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    headers: Headers


def discard(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
    """Ignore a record: the `Process` to which a node without children forwards."""


def fan_out(children: list[Process]) -> Process:
    """Return one function that calls all children, in order."""
    if not children:
        return discard
    if len(children) == 1:
        return children[0]
    branches = tuple(children)

    def forward(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        for branch in branches:
            branch(key, value, timestamp, headers)

    return forward
