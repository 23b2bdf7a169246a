"""kafka-reassign-partitions moves replicas between log directories (KIP-113) of a broker with two."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.millstream.invoking import On
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for


@pytest.fixture
def logd(tmp_path: Path) -> Iterator[LogdProcess]:
    folders = ",".join(str(tmp_path / name) for name in ("one", "two"))
    with LogdProcess(tmp_path / "logd", {"log.dirs": folders}) as logd:
        yield logd


def moves(tmp_path: Path, folders: list[Path]) -> Path:
    file = tmp_path / "moves.json"
    partitions = [
        {"topic": "t", "partition": number, "replicas": [1], "log_dirs": [str(folder)]}
        for number, folder in enumerate(folders)
    ]
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return file


def where(tmp_path: Path) -> list[Path]:
    """Return the log directory of each partition. A broker creates the files after its response."""
    wait_for(lambda: len(list(tmp_path.glob("*/t-[01]"))) == 2)
    return [next(tmp_path.glob(f"*/t-{number}")).parent for number in range(2)]


def test_replicas_are_where_they_were_sent(tmp_path: Path, logd: LogdProcess) -> None:
    on = On(logd.bootstrap)
    on.done("kafka-topics", "--create", "--topic", "t", "--partitions", 2)
    with RawClient(logd.port) as client:
        assert client.produce("t", [(0, None, b"value", ())]).error_code == 0
    before = where(tmp_path)
    targets = before[::-1] if before[0] != before[1] else [tmp_path / "one", tmp_path / "two"]
    file = moves(tmp_path, targets)

    started = on("kafka-reassign-partitions", "--execute", "--reassignment-json-file", file).stdout
    on_it = (
        "kafka-reassign-partitions",
        "--verify",
        "--preserve-throttles",
        "--reassignment-json-file",
        file,
    )
    wait_for(lambda: on(*on_it).stdout.count("completed successfully.") == 2)

    for number, target in enumerate(targets):
        assert f"Successfully started moving log directory to {target} for replica t-{number}" in started
    assert where(tmp_path) == targets


def test_a_folder_that_the_broker_has_not_is_named(tmp_path: Path, logd: LogdProcess) -> None:
    on = On(logd.bootstrap)
    on.done("kafka-topics", "--create", "--topic", "t", "--partitions", 1)
    file = moves(tmp_path, [tmp_path / "three"])

    ended = on("kafka-reassign-partitions", "--execute", "--reassignment-json-file", file)

    assert ended.exit_code == 1
    assert ended.stdout.endswith("Error: Failed to alter dir for t-0-1\n")
    assert f"note: {tmp_path / 'three'}: " in ended.stderr
