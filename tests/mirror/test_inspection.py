"""`millstream mirror checkpoints`, `translate-offset` and `lag`, between two brokers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client, TopicPartition
from tests.millstream.invoking import invoke
from tests.mirror.pair import Pair, numbered, produce

CHECKPOINTS = {"emit_checkpoints_enabled": "true", "checkpoints_topic_replication_factor": "1"}


@pytest.fixture
def topic(pair: Pair, new_name: Callable[[], str]) -> str:
    """A topic whose first ten records are copied, with a group at 7, and whose last two are not."""
    name = new_name()
    asyncio.run(copy(pair, name))
    return name


async def copy(pair: Pair, topic: str) -> None:
    await pair.create(topic, partitions=2)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Client(pair.dc1) as client:
        await Admin(client).alter_group_offsets(f"group-{topic}", {TopicPartition(topic, 0): 7})
    await pair.copy(topic, **CHECKPOINTS)
    await produce(pair.dc1, topic, {0: [numbered(2, 10)]})


def properties(pair: Pair, topic: str, folder: Path, **others: str) -> Path:
    file = folder / "mm2.properties"
    lines = pair.properties(topic, **CHECKPOINTS) | others
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return file


def rows(*arguments: object, status: int = 0) -> list[dict[str, Any]]:
    result = invoke("mirror", *arguments, "-o", "json")
    assert result.exit_code == status, result.output
    parsed: list[dict[str, Any]] = json.loads(result.stdout)
    return parsed


def test_checkpoints_offsets_and_lag(pair: Pair, topic: str, tmp_path: Path) -> None:
    config, remote, group = properties(pair, topic, tmp_path), f"dc1.{topic}", f"group-{topic}"
    place = {"topic": remote, "partition": 0, "source_offset": 7, "offset": 7}
    assert rows("checkpoints", config, "--group", group) == [{"group": group, **place, "metadata": ""}]
    assert rows("checkpoints", config, "--group", "nobody") == []
    assert rows("translate-offset", config, f"{topic}-0@7") == [{"source_topic": topic, **place}]
    none = rows("translate-offset", config, f"{topic}-0@7", f"{topic}-1@0", status=3)
    assert [row["offset"] for row in none] == [7, None]
    copied, never = rows("lag", config, status=7)
    assert copied == {"topic": topic, "partition": 0, "end": 12, "copied": 10, "lag": 2}
    assert never == {"topic": topic, "partition": 1, "end": 0, "copied": None, "lag": None}


def test_errors_name_their_remedy(pair: Pair, topic: str, tmp_path: Path) -> None:
    config = properties(pair, topic, tmp_path, **{"dc2->dc1.enabled": "true"})
    result = invoke("mirror", "lag", config)
    assert result.exit_code == 2
    assert "enables dc1->dc2, dc2->dc1" in result.output
    result = invoke("mirror", "translate-offset", config, "flights", "--flow", "dc1->dc2")
    assert result.exit_code == 2
    assert "TOPIC-PARTITION@OFFSET" in result.output
    config = properties(pair, topic, tmp_path, **{"dc1.bootstrap.servers": "127.0.0.1:1"})
    result = invoke("mirror", "lag", config)
    assert result.exit_code not in (0, 7)
    assert "127.0.0.1:1" in result.output
