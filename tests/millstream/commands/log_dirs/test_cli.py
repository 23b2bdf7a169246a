"""`millstream log-dirs` against a broker with two folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client import TopicPartition
from millstream.terminal.status import Status
from tests.millstream.invoking import On, produce
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("folders")
    return [folder / "one", folder / "two"]


@pytest.fixture(scope="module")
def on(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[On]:
    overrides = {"log.dirs": ",".join(map(str, folders)), "log.retention.ms": "-1"}
    with LogdProcess(tmp_path_factory.mktemp("logd"), overrides) as process:
        on = On(process.bootstrap)
        on.done("topic", "create", "t", "--partitions", 4)
        produce(on.bootstrap, TopicPartition("t", 2), 1_000)
        yield on


def test_folders(on: On, folders: list[Path]) -> None:
    rows = on.rows("log-dirs", "describe")
    assert [row["log_dir"] for row in rows] == list(map(str, folders))
    assert sum(row["partitions"] for row in rows) == 4
    assert all(row["usable_bytes"] <= row["total_bytes"] for row in rows)
    table = on.done("log-dirs", "describe", "--broker-list", "1").stdout
    assert [line.split()[:2] for line in table.splitlines()[1:]] == [["1", str(each)] for each in folders]


def test_replicas(on: On) -> None:
    rows = on.rows("log-dirs", "describe", "--topic-list", "t", "--replicas")
    sizes = {row["partition"]: row["size"] for row in rows}
    assert len(sizes) == 4
    assert sizes[2] > 0
    assert sizes[0] == 0


@deep
def test_what_is_not_there(on: On) -> None:
    assert on("log-dirs", "describe", "--broker-list", "7").exit_code == Status.NOT_FOUND
    assert on("log-dirs", "describe", "--broker-list", "a").exit_code == Status.USAGE
    assert on("log-dirs", "describe", "--topic-list", "away").exit_code == Status.NOT_FOUND
