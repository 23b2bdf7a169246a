"""The interface by which asynchronous nodes run coroutines, in an event loop outside the task's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

Context = Callable[[], AbstractAsyncContextManager[Any]]
"""Makes an object that calls share, such as a session: ``async with context() as session``."""


@dataclass(slots=True, eq=False)
class Call:
    """A coroutine that a node wants to run; once ``is_over``, it has a ``result`` or an ``error``."""

    node: str
    work: Callable[[], Coroutine[Any, Any, Any]]
    result: Any = None
    error: Exception | None = None
    is_over: bool = False


class Coroutines(Protocol):
    """Runs calls. The task's thread calls the first three methods, running calls the others."""

    def start(self, call: Call, over: deque[Call]) -> None:
        """Run a call, and add it to ``over`` at its end, which may be before this method returns."""

    def wait(self, over: deque[Call]) -> None:
        """Block until ``over`` has a call."""

    def give_up(self, calls: Iterable[Call]) -> None:
        """Cancel calls: nobody waits for them any more."""

    async def entered(self, node: str, context: Context) -> Any:
        """Return the object of the node's context, entered once and left when the application ends."""

    async def sleep(self, seconds: float) -> None:
        """Wait before the next attempt."""
