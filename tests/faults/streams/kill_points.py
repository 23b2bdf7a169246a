"""The points of a commit at which a process may be killed, by name: in the order in which they come."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from kafka_client.producer.transaction_coordinator import TransactionCoordinator
from kafka_client.producer.transactional import TransactionalProducer
from streams.runtime.commit.commit import Committer
from streams.runtime.commit.output import Output
from streams.runtime.task.task import Task

Point = tuple[type, str, bool]
"""Class, method, and whether it is after the call."""

POINTS: dict[str, Point] = {
    "records processed": (Task, "process", True),
    "output sent": (Output, "send", True),
    "stores drained": (Task, "flush", True),
    "changelog sent": (TransactionalProducer, "send_batch", True),
    "commit begun": (TransactionalProducer, "commit_soon", True),
    "next transaction begun": (TransactionalProducer, "begin", True),
    "offsets to be sent": (TransactionCoordinator, "commit_offsets", False),
    "offsets sent": (TransactionCoordinator, "commit_offsets", True),
    "transaction ended": (TransactionCoordinator, "end", True),
    "stores to be written": (Task, "written", False),
    "a store written": (Task, "written", True),
    "commit finished": (Committer, "finish", True),
}
"""Class, method, and whether it is after the call that the process is killed."""


def kill_at(point: str, number: int, commits: int = 0, *, kill: Callable[[], None]) -> None:
    """Have ``kill`` called at the ``number``-th time (from 1 on) that the point is reached, once so many
    commits are finished.
    """
    if commits:
        at_call(POINTS["commit finished"], commits, lambda: at_call(POINTS[point], number, kill))
    else:
        at_call(POINTS[point], number, kill)


def at_call(point: Point, number: int, kill: Callable[[], None]) -> None:
    """Call `kill` at the `number`-th call of a point's method; `kill_at` does so for named points."""
    owner, method, after = point
    original, left = getattr(owner, method), number

    def reached() -> None:
        nonlocal left
        left -= 1
        if not left:
            kill()

    @functools.wraps(original)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if not after:
            reached()
        result = original(*arguments, **keywords)
        if after:
            reached()
        return result

    @functools.wraps(original)
    async def call_async(*arguments: Any, **keywords: Any) -> Any:
        if not after:
            reached()
        result = await original(*arguments, **keywords)
        if after:
            reached()
        return result

    setattr(owner, method, call_async if inspect.iscoroutinefunction(original) else call)
