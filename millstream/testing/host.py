"""The place where a test's broker runs, as seen by the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

SECONDS_MAX = 100.0
"""The timeout of a start or command, which only a hang reaches, even on a busy machine."""


class Host(Protocol):
    """A host of a broker: `process.ProcessHost` or `in_process.ThreadHost`.

    Every method may raise BrokerError.
    """

    port: int
    folder: Path

    @property
    def in_process(self) -> bool:
        """True if the broker is a thread of this process."""

    @property
    def is_running(self) -> bool:
        """True if the broker runs."""

    @property
    def log(self) -> str:
        """The broker's output, if the host keeps it."""

    def start(self) -> None:
        """Start the broker and wait until it serves."""

    def stop(self) -> None:
        """Stop the broker; a second call does nothing."""

    def kill(self) -> None:
        """End the broker without a shutdown."""

    def pause(self) -> None:
        """Pause the broker."""

    def resume(self) -> None:
        """End a pause."""

    def ask(self, command: str, **arguments: object) -> Any:
        """Carry out a command of `Served` and return the result."""
