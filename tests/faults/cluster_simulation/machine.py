"""Lives of processes: each piece of work belongs to the life of the process that began it."""

from __future__ import annotations

import asyncio
import contextvars


class Life:
    """A process of a machine, from its start to its end; `place` is its place in the network.

    Nothing runs in a life that is dead or stands still. Handles that arrive while a life stands still wait in
    `delayed_handles`. `references` keeps what a dead life has begun: otherwise it would run to its `finally`.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.is_dead = False
        self.is_halted = False
        """Dead or standing still."""
        self.delayed_handles: list[asyncio.Handle] = []
        self.references: list[object] = []

    def context(self) -> contextvars.Context:
        """For what begins this life, and so for all that comes of it."""
        context = contextvars.Context()
        context.run(LIFE.set, self)
        return context

    def pause(self) -> None:
        """Stand still, as after SIGSTOP."""
        self.is_halted = True

    def end(self) -> None:
        """End the life, as after SIGKILL."""
        self.is_dead = self.is_halted = True


LIFE: contextvars.ContextVar[Life | None] = contextvars.ContextVar("LIFE", default=None)
NOBODY = contextvars.Context()
"""For what no process does: the network, ZooKeeper, faults."""
