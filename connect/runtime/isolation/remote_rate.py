"""RemoteRate: the rate limits of a task in a process of its own, as its worker sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from connect.runtime.isolation.messages import RateLimits
from connect.runtime.task_rate import TaskRate
from kafka_client.metrics.metrics import Values


class RemoteRate(TaskRate):
    """Limits that are passed to the process, which keeps them. `send` passes a message, if there is one."""

    def __init__(self, send: Callable[[RateLimits], None]) -> None:
        super().__init__()
        self._send = send
        self.limits: RateLimits | None = None
        """The last limits, for a process that starts later; None before the first."""
        self.reported: Values = {}

    def _apply(self, texts: Mapping[str, str], tasks: int) -> None:
        self.limits = RateLimits(dict(texts), tasks)
        self._send(self.limits)

    def values(self) -> Values:
        """Return the limits and waiting times that the process has reported."""
        return self.reported or super().values()
