"""The serde interface: values to bytes and back, one at a time or a batch at once.

``None`` never reaches a serde: a null key or value stays null on both sides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Serde(ABC, Generic[T]):
    """Conversion of values of one type to bytes and back."""

    immutable: bool = False
    """True if no value can be changed in place, so that stores need no copies of values."""

    @abstractmethod
    def serialize(self, value: T) -> bytes:
        """Return the bytes of ``value``. Raises TypeError or ValueError for a value of another type."""

    @abstractmethod
    def deserialize(self, data: bytes) -> T:
        """Return the value of ``data``. Raises ValueError for bytes that are no such value."""

    def of_topic(self, topic: str, *, is_key: bool) -> Serde[T]:
        """Return the serde for a topic's keys or values: itself, unless the bytes depend on the topic."""
        return self

    def deserialize_many(self, data: Sequence[bytes | None]) -> list[T | None]:
        """Deserialize a batch; ``None`` stays ``None``. Override it if a batch is cheaper than its parts."""
        deserialize = self.deserialize
        return [None if each is None else deserialize(each) for each in data]
