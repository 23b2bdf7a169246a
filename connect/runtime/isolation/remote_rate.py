"""RemoteRate: the rate limits of a task in a process of its own, as its worker sees them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from connect.config.rate_limit import LIVE_KEYS
from connect.errors import ConfigError
from connect.runtime.isolation.messages import RateLimits
from connect.runtime.task_rate import TaskRate
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)


class RemoteRate(TaskRate):
    """Limits that are passed to the process, which keeps them. `send` passes a message, if there is one."""

    def __init__(self, send: Callable[[RateLimits], None]) -> None:
        super().__init__()
        self._send = send
        self.limits: RateLimits | None = None
        """The last limits, for a process that starts later; None before the first."""
        self.reported: Values = {}

    def follow(
        self,
        connector_config: Mapping[str, str],
        tasks: int,
        resolve: Callable[[Mapping[str, str]], Mapping[str, str]],
    ) -> None:
        """Pass on the limits of a connector with this number of tasks, if they have changed."""
        texts = {key: connector_config[key] for key in sorted(LIVE_KEYS & connector_config.keys())}
        try:
            limits = RateLimits(dict(resolve(texts)), tasks)
        except ConfigError as e:
            _log.error("the former rate limits stay: %s", e)
            return
        if limits != self.limits:
            self.limits = limits
            self._send(limits)

    def values(self) -> Values:
        """Return the limits and waiting times that the process has reported."""
        return self.reported or super().values()
