"""The check of a sink's consumer group, which must not be the group of the workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connect.errors import ConfigError, StatedError
from connect.runtime.client_settings import group_id
from connect.runtime.worker_config import WorkerConfig

_OVERRIDE = "consumer.override.group.id"


def consumer_group_errors(worker: WorkerConfig, role: str, raw: Mapping[str, Any]) -> Iterator[ConfigError]:
    """Yield the error, in the words of Kafka's DistributedHerder, of a sink with the workers' group."""
    name, group = raw.get("name"), worker.worker_group
    if role != "sink" or group is None or name is None:
        return
    if group_id(str(name), {}, raw) != group:
        return
    conflict = f"conflicts with Connect worker group {group}"
    if _OVERRIDE in raw:
        yield StatedError(_OVERRIDE, group, f"Consumer group {group} {conflict}")
    else:
        yield StatedError("name", name, f"Consumer group for sink connector named {name} {conflict}")
