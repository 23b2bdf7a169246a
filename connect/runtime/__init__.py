"""The runtime of connectors: the worker, its connectors and their tasks."""

from connect.runtime.plugins import connector_class, connector_type, list_plugins
from connect.runtime.states import State
from connect.runtime.worker import Worker
from connect.runtime.worker_config import WorkerConfig

__all__ = ["State", "Worker", "WorkerConfig", "connector_class", "connector_type", "list_plugins"]
