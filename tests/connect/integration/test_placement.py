"""Workers that place by load keep a connector's pin, and say where it cannot be kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.connect_group import ConnectGroup
from tests.support.depth import deep


@pytest.fixture
def group(logd, tmp_path: Path) -> Iterator[ConnectGroup]:
    group = ConnectGroup(logd.bootstrap, tmp_path)
    yield group
    for url in list(group.workers):
        group.end(url)


@deep
def test_a_pinned_connector_moves_to_its_worker_and_waits_for_one(group, topic):
    group.settings["placement"] = "load"
    group.settings["placement.labels"] = "zone=a"
    first = group.start()
    group.settings["placement.labels"] = "zone=b"
    second = group.start()
    config = {
        "connector.class": "DatagenSource",
        "topic": topic,
        "rate": "10",
        "quickstart": "users",
        "placement.pin": "zone=b",
    }
    group.do("PUT", f"{first}/connectors/c/config", config)
    there = second.partition("://")[2]
    group.wait_until(lambda: group.owners(first, "c") == {"c": [there]})

    pinned = {**config, "placement.pin": "zone=x"}
    group.do("PUT", f"{first}/connectors/c/config", pinned)

    def is_told() -> bool:
        (task,) = group.status(first, "c")["tasks"]
        reason = "placement.pin=zone=x: no worker of the group matches"
        return (task["state"], task.get("trace")) == ("UNASSIGNED", reason)

    group.wait_until(is_told)
    here = first.partition("://")[2]
    group.do("PUT", f"{second}/connectors/c/config", {**config, "placement.pin": "zone=a"})
    group.wait_until(lambda: group.owners(second, "c") == {"c": [here]})
