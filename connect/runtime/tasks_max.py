"""`tasks.max`, and what becomes of a connector that plans more tasks (KIP-1004)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connect.config import ConnectorConfig
from connect.errors import ConnectError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TasksMax:
    """The most tasks of a connector, and whether more of them fail."""

    count: int
    is_enforced: bool = True

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> TasksMax:
        """Return what a connector's config says. Raises ConfigError for an invalid value."""
        parsed = ConnectorConfig.parse(config)
        return cls(parsed.tasks_max, parsed.tasks_max_enforce)

    def check(self, connector: str, tasks: int) -> None:
        """Return if a connector may have so many tasks, after a warning if that is more than `tasks.max`.

        Raises ConnectError, with Kafka's words, for more tasks where `tasks.max` is enforced.
        """
        if tasks <= self.count:
            return
        text = (
            f"The connector {connector} has generated {tasks} tasks, which is greater than {self.count}, the "
            "maximum number of tasks it is configured to create. "
        )
        if self.is_enforced:
            raise ConnectError(
                text + "This behaviour should be considered a bug and is disallowed. If necessary, it can be "
                "permitted by reconfiguring the connector with 'tasks.max.enforce' set to false."
            )
        _log.warning("%stasks.max.enforce=false permits it", text)
