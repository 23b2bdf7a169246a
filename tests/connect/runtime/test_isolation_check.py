"""Sources whose tasks cannot run in processes of their own are refused, with the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from connect.api import ConfigError, SourceConnector, SourceTask
from connect.distributed import DistributedConfig
from connect.runtime import WorkerConfig
from connect.runtime.connector_check import check_config

TOPICS = {f"{kind}.storage.topic": kind for kind in ("config", "offset", "status")}


class Source(SourceConnector):
    task_class = SourceTask


def check(worker: WorkerConfig, **settings: str) -> Any:
    config = {"name": "c", "connector.class": f"{__name__}:Source", "task.isolation": "process"}
    return check_config(worker, config | {key.replace("_", "."): value for key, value in settings.items()})


def test_a_source_without_more_may_have_processes() -> None:
    assert check(WorkerConfig.parse({})).plugin is Source


def test_an_exactly_once_source_runs_in_the_workers_process() -> None:
    worker = DistributedConfig.parse({"group.id": "g", "exactly.once.source.support": "enabled", **TOPICS})
    with pytest.raises(ConfigError, match=r"set task\.isolation=thread"):
        check(worker)
    assert check(worker, task_isolation="thread").plugin is Source


def test_the_workers_default_counts() -> None:
    worker = DistributedConfig.parse(
        {"group.id": "g", "exactly.once.source.support": "enabled", "task.isolation": "process", **TOPICS}
    )
    with pytest.raises(ConfigError, match=r"exactly-once sources run in the worker's own process"):
        check_config(worker, {"name": "c", "connector.class": f"{__name__}:Source"})


def test_offsets_in_a_topic_of_its_own_need_a_thread() -> None:
    worker = DistributedConfig.parse({"group.id": "g", **TOPICS})
    with pytest.raises(ConfigError, match=r"keeps its offsets in the worker's topic"):
        check(worker, offsets_storage_topic="own")
