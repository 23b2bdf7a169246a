"""Unit: what is assigned to a worker, a connector or one of its tasks."""

from __future__ import annotations

from typing import NamedTuple

CONNECTOR = -1
"""The task number of the connector itself (KIP-415)."""


class Unit(NamedTuple):
    """A connector, if `task` is CONNECTOR, or one of its tasks."""

    connector: str
    task: int = CONNECTOR

    @property
    def is_connector(self) -> bool:
        """True if the unit is the connector itself."""
        return self.task == CONNECTOR
