"""What asynchronous nodes need of what runs them: an event loop, somewhere else than the task's thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

Context = Callable[[], AbstractAsyncContextManager[Any]]
"""Makes what calls share, such as a session: ``async with context() as session``."""


@dataclass(slots=True, eq=False)
class Call:
    """A coroutine that a node has to be run. ``result`` or ``error`` is there once it is over."""

    node: str
    work: Callable[[], Coroutine[Any, Any, Any]]
    result: Any = None
    error: Exception | None = None
    is_over: bool = False


class Coroutines(Protocol):
    """Runs calls. The first three are called in the task's thread, the others by the calls."""

    def start(self, call: Call, over: deque[Call]) -> None:
        """Run it; put it into ``over`` when it is. It may be there already when this returns."""

    def wait(self, over: deque[Call]) -> None:
        """Block until there is something in ``over``."""

    def give_up(self, calls: Iterable[Call]) -> None:
        """Cancel them: nobody waits for them any more."""

    async def entered(self, node: str, context: Context) -> Any:
        """What the node's context gives: it is entered once, and left when the application ends."""

    async def sleep(self, seconds: float) -> None:
        """Wait before the next attempt."""
