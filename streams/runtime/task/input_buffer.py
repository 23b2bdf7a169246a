"""The memory of an instance's inputs, over all tasks (Kafka's ``input.buffer.max.bytes``)."""

from __future__ import annotations

import sys


class InputBuffer:
    """The bytes in all `InputQueue`s. While it is full, inputs are paused and no task begins to decode.

    `waiting`: fetched bytes, mostly compressed. `decoded`: the approximate size of decoded records; an input
    decodes a batch at a time, which may exceed the bound by that batch. `contended`: True if a task waits
    until others have processed their decoded records.
    """

    __slots__ = ("contended", "decoded", "max_bytes", "waiting")

    def __init__(self, max_bytes: int = sys.maxsize) -> None:
        self.max_bytes = max_bytes
        self.waiting = 0
        self.decoded = 0
        self.contended = False

    def statistics(self) -> dict[str, int]:
        """Return the fetched bytes, those of decoded records, and the bound of both together."""
        return {
            "waiting_bytes": self.waiting,
            "decoded_bytes": self.decoded,
            "bytes_max": self.max_bytes,
        }

    @property
    def bytes(self) -> int:
        """The fetched and decoded bytes together."""
        return self.waiting + self.decoded

    @property
    def is_full(self) -> bool:
        """True if inputs with waiting records must not be fetched."""
        return self.bytes > self.max_bytes

    @property
    def may_decode(self) -> bool:
        """True if a task without decoded records may begin to decode."""
        return self.decoded < self.max_bytes
