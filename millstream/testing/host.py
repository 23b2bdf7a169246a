"""Where a test's broker runs, as the test sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

SECONDS_MAX = 100.0
"""How long a start or a command may take; on a busy machine too only a hang comes so far."""


class Host(Protocol):
    """`process.ProcessHost` or `in_process.ThreadHost`. Every method may raise BrokerError."""

    port: int
    folder: Path

    @property
    def in_process(self) -> bool:
        """Whether it is a thread of this process."""

    @property
    def is_running(self) -> bool:
        """Whether there is a broker to ask."""

    @property
    def log(self) -> str:
        """What the broker has said, where that is kept here."""

    def start(self) -> None:
        """Start and wait until it serves."""

    def stop(self) -> None:
        """End it; once more does nothing."""

    def kill(self) -> None:
        """End it without a word."""

    def pause(self) -> None:
        """Have it stand still."""

    def resume(self) -> None:
        """Let it go on."""

    def ask(self, command: str, **arguments: object) -> Any:
        """Give it a command of `Served`, and wait for the result."""
