"""Whose work a piece of work is: each process has a life, and whatever it begins belongs to that."""

from __future__ import annotations

import asyncio
import contextvars


class Life:
    """One process of a machine, from its start to its end; `place` is where it is in the network.

    Nothing of a life that is dead or stands still is run. What comes meanwhile to one that stands still waits
    in `held`. What a dead one has begun is kept there as well: thrown away it would run to its `finally`.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.is_dead = False
        self.is_halted = False
        """Dead or standing still."""
        self.held: list[asyncio.Handle] = []
        self.kept: list[object] = []

    def context(self) -> contextvars.Context:
        """For what begins this life, and so for all that comes of it."""
        context = contextvars.Context()
        context.run(LIFE.set, self)
        return context

    def pause(self) -> None:
        """Stand still, as after SIGSTOP."""
        self.is_halted = True

    def end(self) -> None:
        """As after SIGKILL."""
        self.is_dead = self.is_halted = True


LIFE: contextvars.ContextVar[Life | None] = contextvars.ContextVar("LIFE", default=None)
NOBODY = contextvars.Context()
"""For what no process does: the network, ZooKeeper, faults."""
