"""The distributed worker: workers in a group share connectors and tasks, and keep all state in topics."""

from connect.distributed.config import DistributedConfig
from connect.distributed.service import DistributedService
from connect.distributed.worker import DistributedWorker

__all__ = ["DistributedConfig", "DistributedService", "DistributedWorker"]
