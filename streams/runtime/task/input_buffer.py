"""How much memory an instance's inputs take, all tasks together (Kafka's ``input.buffer.max.bytes``)."""

from __future__ import annotations

import sys


class InputBuffer:
    """Counts what `InputQueue`s hold. While it is full no input is fetched on, and no task begins to decode.

    ``waiting``: bytes as they were fetched, mostly compressed. ``decoded``: about what decoded records take;
    an input decodes a batch at a time, which may pass the bound by that batch.
    ``contended``: a task has to wait until others have processed what they decoded.
    """

    __slots__ = ("contended", "decoded", "max_bytes", "waiting")

    def __init__(self, max_bytes: int = sys.maxsize) -> None:
        self.max_bytes = max_bytes
        self.waiting = 0
        self.decoded = 0
        self.contended = False

    def statistics(self) -> dict[str, int]:
        """Bytes that wait as they were fetched, those that decoded records take, and the bound of both."""
        return {
            "waiting_bytes": self.waiting,
            "decoded_bytes": self.decoded,
            "bytes_max": self.max_bytes,
        }

    @property
    def bytes(self) -> int:
        """All of it."""
        return self.waiting + self.decoded

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be fetched for an input that has something."""
        return self.bytes > self.max_bytes

    @property
    def may_decode(self) -> bool:
        """Whether a task that holds nothing decoded may begin."""
        return self.decoded < self.max_bytes
