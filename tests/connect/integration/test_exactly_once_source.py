"""Exactly-once sources (KIP-618) in a group of worker processes: killed, moved, woken up after their time.

Readers with read_committed see every row once, in order per partition, whatever becomes of the workers.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, BatchFetcher, Client
from tests.support.connect_group import ConnectGroup

Rows = list[list[int]]
"""The rows of each partition, in order."""


@pytest.fixture
def group(logd, tmp_path: Path) -> Iterator[ConnectGroup]:
    group = ConnectGroup(logd.bootstrap, tmp_path)
    group.settings["exactly.once.source.support"] = "enabled"
    yield group
    for url in list(group.workers):
        group.end(url)


async def _read(bootstrap: str, topic: str, isolation: Any) -> dict[int, list[tuple[bytes, bytes]]]:
    async with Client(bootstrap) as client:
        tps = (await client.metadata([topic])).partitions([topic])
        ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"), isolation_level=isolation)
        pairs: dict[int, list[tuple[bytes, bytes]]] = {tp.partition: [] for tp in tps}
        async with BatchFetcher(client, auto_offset_reset="earliest", isolation_level=isolation) as fetcher:
            fetcher.assign(dict.fromkeys(tps, 0))
            while any(fetcher.position(tp) < ends[tp].offset for tp in tps):
                for fetched in await fetcher.fetch(timeout_ms=1000):
                    pairs[fetched.tp.partition] += [(r[2], r[3]) for r in fetched.records()]
        return pairs


def records(group: ConnectGroup, topic: str, isolation: str = "read_committed") -> Any:
    return asyncio.run(_read(group.settings["bootstrap.servers"], topic, isolation))


def rows(group: ConnectGroup, topic: str, isolation: str = "read_committed") -> Rows:
    read = records(group, topic, isolation)
    return [[int(json.loads(value)["n"]) for _, value in read[partition]] for partition in sorted(read)]


def count(group: ConnectGroup, topic: str) -> int:
    return sum(map(len, rows(group, topic)))


def assert_each_once(group: ConnectGroup, topic: str, total: int) -> None:
    committed = rows(group, topic)
    assert sorted(n for part in committed for n in part) == list(range(total))
    assert all(part == sorted(part) for part in committed)


def write_rows(path: Path, begin: int, end: int) -> None:
    with path.open("a") as file:
        if begin == 0:
            file.write("n,s\n")
        file.writelines(f"{n},row {n}\n" for n in range(begin, end))


def source(kit, path: Path, topic: str, **more: str) -> dict[str, str]:
    config = {**kit.source(path, topic), "stop.at.eof": "false", "exactly.once.support": "required"}
    del config["name"]
    return config | {key.replace("_", "."): value for key, value in more.items()}


def test_a_worker_killed_inside_transactions_repeats_no_row(group, kit, topic, tmp_path):
    path, total = tmp_path / "rows.csv", 6000
    write_rows(path, 0, total)
    url = group.start()
    config = source(kit, path, topic, batch_size="40", exactly_once_support="required")
    group.do("POST", f"{url}/connectors", {"name": "c", "config": config})
    for at in (100, 1500):
        group.wait_until(lambda at=at: topic_exists(group, topic) and count(group, topic) > at)
        group.end(url)
        group.start(url)
    group.wait_until(lambda: count(group, topic) == total)
    assert_each_once(group, topic, total)
    write_rows(path, total, total + 50)
    group.wait_until(lambda: count(group, topic) == total + 50)
    assert_each_once(group, topic, total + 50)


def topic_exists(group: ConnectGroup, topic: str) -> bool:
    async def exists() -> bool:
        async with Client(group.settings["bootstrap.servers"]) as client:
            return topic in await Admin(client).list_topics()

    return asyncio.run(exists())
