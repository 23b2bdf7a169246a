"""Sources may run in processes of their own, with transactions and with offset topics of their own, too."""

from __future__ import annotations

from typing import Any

import pytest

from connect.api import SourceConnector, SourceTask
from connect.distributed import DistributedConfig
from connect.runtime import WorkerConfig
from connect.runtime.connector_check import check_config
from connect.runtime.isolation.isolation_check import is_isolated

TOPICS = {f"{kind}.storage.topic": kind for kind in ("config", "offset", "status")}


class Source(SourceConnector):
    task_class = SourceTask


def check(worker: WorkerConfig, **settings: str) -> Any:
    config = {"name": "c", "connector.class": f"{__name__}:Source", "task.isolation": "process"}
    return check_config(worker, config | {key.replace("_", "."): value for key, value in settings.items()})


@pytest.mark.parametrize("support", ["enabled", "disabled"])
def test_a_source_may_have_processes(support: str) -> None:
    worker = DistributedConfig.parse({"group.id": "g", "exactly.once.source.support": support, **TOPICS})
    assert check(worker).plugin is Source
    assert check(worker, offsets_storage_topic="own").plugin is Source


def test_the_workers_default_counts() -> None:
    worker = WorkerConfig.parse({"task.isolation": "process"})
    assert is_isolated(worker, {})
    assert not is_isolated(worker, {"task.isolation": "thread"})
