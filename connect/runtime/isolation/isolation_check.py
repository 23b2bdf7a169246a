"""The choice of `task.isolation`: whether a connector's tasks run in processes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connect.runtime.worker_config import WorkerConfig

ISOLATION = "task.isolation"


def is_isolated(worker: WorkerConfig, config: Mapping[str, Any]) -> bool:
    """Return True if the tasks of a connector are to run in processes of their own."""
    return str(config.get(ISOLATION) or worker.task_isolation) == "process"
