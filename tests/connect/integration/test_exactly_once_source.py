"""Exactly-once sources (KIP-618) in a group of worker processes: killed, moved, woken up after their time.

Readers with read_committed see every row once, in order per partition, whatever becomes of the workers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.distributed.fencing import fence_producer
from kafka_client import Admin, BatchFetcher, Client
from tests.support.batch_files import write_batches
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


def test_a_task_process_killed_inside_transactions_repeats_no_row(group, kit, topic, tmp_path):
    path, total = tmp_path / "rows.csv", 6000
    write_rows(path, 0, total)
    url = group.start()
    config = source(kit, path, topic, batch_size="40", task_isolation="process")
    group.do("POST", f"{url}/connectors", {"name": "c", "config": config})
    for at in (100, 1500):
        group.wait_until(lambda at=at: topic_exists(group, topic) and count(group, topic) > at)
        (child,) = children(group.workers[url].pid)
        os.kill(child, signal.SIGKILL)
        (failed,) = group.wait_until(
            lambda: [t for t in group.status(url, "c").get("tasks", []) if t["state"] == "FAILED"]
        )
        assert "SIGKILL" in failed["trace"]
        group.do("POST", f"{url}/connectors/c/restart?includeTasks=true&onlyFailed=true")
    group.wait_until(lambda: count(group, topic) == total)
    assert_each_once(group, topic, total)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    lists = [file.read_text() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(each) for text in lists for each in text.split()]


def test_batches_of_a_worker_killed_inside_transactions_are_there_once(group, topic, tmp_path):
    folder, total = tmp_path / "batches", 1200
    folder.mkdir()
    write_batches(folder, range(total))
    config = {
        "connector.class": "tests.support.batch_files:BatchFiles",
        "folder": str(folder),
        "topic": topic,
        "exactly.once.support": "required",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
    }

    def numbers(isolation: str = "read_committed") -> list[int]:
        read = records(group, topic, isolation)
        return [int(value) for partition in sorted(read) for _, value in read[partition]]

    url = group.start()
    group.do("POST", f"{url}/connectors", {"name": "c", "config": config})
    for at in (20, 300):
        group.wait_until(lambda at=at: topic_exists(group, topic) and len(numbers()) > at)
        group.end(url)
        group.start(url)
    group.wait_until(lambda: len(numbers()) == total)
    assert numbers() == list(range(total))
    assert set(numbers("read_uncommitted")) == set(range(total))


def topic_exists(group: ConnectGroup, topic: str) -> bool:
    async def exists() -> bool:
        async with Client(group.settings["bootstrap.servers"]) as client:
            return topic in await Admin(client).list_topics()

    return asyncio.run(exists())


def test_a_zombie_that_wakes_up_after_its_task_moved_writes_nothing(group, kit, topic, tmp_path):
    path = tmp_path / "rows.csv"
    write_rows(path, 0, 300)
    urls = [group.start() for _ in range(3)]
    group.do(
        "POST", f"{urls[0]}/connectors", {"name": "c", "config": source(kit, path, topic, batch_size="7")}
    )
    (owner,) = group.wait_until(lambda: group.owners(urls[0], "c")["c"])
    stopped = group.workers[f"http://{owner}"]
    others = [url for url in urls if not url.endswith(owner)]
    write_rows(path, 300, 4000)
    group.wait_until(lambda: topic_exists(group, topic) and count(group, topic) > 300)
    stopped.send_signal(signal.SIGSTOP)
    names = [url.partition("://")[2] for url in others]
    group.wait_until(lambda: (got := group.owners(others[0], "c")["c"]) and got[0] in names)
    group.wait_until(lambda: count(group, topic) == 4000)
    write_rows(path, 4000, 4100)
    stopped.send_signal(signal.SIGCONT)
    group.wait_until(lambda: count(group, topic) == 4100)
    group.wait_until(lambda: group.status(f"http://{owner}", "c") == group.status(others[0], "c"))
    assert_each_once(group, topic, 4100)
    uncommitted = [n for part in rows(group, topic, "read_uncommitted") for n in part]
    assert set(uncommitted) == set(range(4100))


def test_a_round_of_fencing_counts_the_tasks_before_those_of_a_new_plan_start(group, kit, topic, tmp_path):
    """Three tasks become two, then one: each plan is counted, and every row of each file is there once."""
    paths = [tmp_path / f"rows-{n}.csv" for n in range(3)]
    for n, path in enumerate(paths):
        path.write_text("n,s\n" + "".join(f"{3 * row + n},row\n" for row in range(400)))
    urls = [group.start(), group.start()]
    config = source(kit, paths[0], topic, tasks_max="3", batch_size="20")
    del config["file"]
    config["files"] = ",".join(map(str, paths))
    for tasks in ("3", "2", "1"):
        group.do("PUT", f"{urls[-1]}/connectors/c/config", {**config, "tasks.max": tasks})
        group.wait_until(lambda tasks=tasks: len(group.owners(urls[0], "c")["c"]) == int(tasks))
    group.wait_until(lambda: count(group, topic) == 1200)
    assert sorted(n for part in rows(group, topic) for n in part) == list(range(1200))
    written = records(group, group.settings["config.storage.topic"])[0]
    counts = [value for key, value in written if key == b"tasks-fencing-c"]
    assert counts == [b'{"task-count":3}', b'{"task-count":2}', b'{"task-count":1}']
    for signature in (
        {},
        {"x-connect-authorization": "AAAA", "x-connect-request-signature-algorithm": "HmacSHA256"},
    ):
        refused = group._client.request("PUT", f"{urls[0]}/connectors/c/fence", b"", signature)
        assert refused.status == (403 if signature else 400)


def test_a_connectors_own_offset_topic_is_in_its_transactions(group, kit, topic, tmp_path):
    path = tmp_path / "rows.csv"
    write_rows(path, 0, 200)
    url = group.start()
    own = f"{topic}-offsets"
    config = source(kit, path, topic, batch_size="50", offsets_storage_topic=own)
    group.do("POST", f"{url}/connectors", {"name": "c", "config": config})
    group.wait_until(lambda: topic_exists(group, topic) and count(group, topic) == 200)
    shared = group.settings["offset.storage.topic"]
    key = b'["c",{"filename":"%s"}]' % str(path).encode()

    def last(of: str) -> Any:
        values = [value for part in records(group, of).values() for k, value in part if k == key]
        return json.loads(values[-1]) if values else None

    group.wait_until(lambda: last(shared) is not None and last(shared) == last(own))
    assert last(own)["line"] == 201
    group.end(url)
    url = group.start()
    write_rows(path, 200, 260)
    group.wait_until(lambda: count(group, topic) == 260)
    assert_each_once(group, topic, 260)
    group.do("PUT", f"{url}/connectors/c/stop")
    group.wait_until(lambda: group.status(url, "c").get("tasks") == [])
    group.do("DELETE", f"{url}/connectors/c/offsets")
    assert group.do("GET", f"{url}/connectors/c/offsets") == {"offsets": []}


def test_a_leader_that_was_fenced_writes_nothing_until_its_group_confirms_it(group, kit, topic, tmp_path):
    """Another producer with the leader's transactional id refuses its next write; then it claims again."""
    path = tmp_path / "rows.csv"
    write_rows(path, 0, 20)
    url = group.start()
    group.do("PUT", f"{url}/connectors/c/config", source(kit, path, topic))
    group.wait_until(lambda: len(group.owners(url, "c")["c"]) == 1)

    async def take_over() -> None:
        async with Client(group.settings["bootstrap.servers"]) as client:
            await fence_producer(client, f"connect-cluster-{group.name}")

    asyncio.run(take_over())
    status, answer = group.ask("PUT", f"{url}/connectors/d/config", source(kit, path, f"{topic}-d"))
    assert (status, "takes no writes now" in answer["message"]) == (409, True)
    assert group.ask("GET", f"{url}/connectors/d")[0] == 404
    group.do("PUT", f"{url}/connectors/d/config", source(kit, path, f"{topic}-d"))
    group.wait_until(lambda: len(group.owners(url, "d")["d"]) == 1)
    group.do("PUT", f"{url}/connectors/c/pause")


def test_a_group_is_switched_on_by_rolling_restarts(group, kit, topic, tmp_path):
    path = tmp_path / "rows.csv"
    write_rows(path, 0, 50)
    group.settings["exactly.once.source.support"] = "disabled"
    urls = [group.start(), group.start()]
    config = source(kit, path, topic) | {"exactly.once.support": "requested"}
    group.do("PUT", f"{urls[0]}/connectors/c/config", config)
    group.wait_until(lambda: topic_exists(group, topic) and count(group, topic) == 50)
    done = 50
    for support in ("preparing", "enabled"):
        group.settings["exactly.once.source.support"] = support
        for url in urls:
            assert group.end(url, signal.SIGTERM) == 0
            group.start(url)
            write_rows(path, done, done + 50)
            done += 50
            group.wait_until(lambda done=done: count(group, topic) == done)
    assert_each_once(group, topic, done)
    written = records(group, group.settings["config.storage.topic"])[0]
    assert (b"tasks-fencing-c", b'{"task-count":1}') in written
