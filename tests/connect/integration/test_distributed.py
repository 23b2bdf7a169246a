"""Workers of a group as processes on a real broker: spread, killed, restarted one after the other."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
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


def source(kit, path: Path, topic: str) -> dict[str, str]:
    config = kit.source(path, topic, batch_size="20")
    del config["name"]
    return config


def rows_file(path: Path, count: int) -> Path:
    path.write_text("n,s\n" + "".join(f"{n},row {n}\n" for n in range(count)))
    return path


@deep
def test_connectors_spread_over_workers_and_move_when_one_is_killed(group, kit, topic, tmp_path):
    first, second = group.start(), group.start()
    names = [f"c{number}" for number in range(4)]
    for name in names:
        path = rows_file(tmp_path / f"{name}.csv", 500)
        config = {**source(kit, path, f"{topic}-{name}"), "stop.at.eof": "false"}
        group.do("PUT", f"{second}/connectors/{name}/config", config)
    workers = {first.partition("://")[2], second.partition("://")[2]}

    def is_spread() -> bool:
        owners = group.owners(first, *names)
        each = [owner for tasks in owners.values() for owner in tasks]
        return len(each) == 4 and set(each) == workers and each.count(each[0]) == 2

    group.wait_until(is_spread)
    group.end(first)
    survivor = second.partition("://")[2]
    group.wait_until(lambda: group.owners(second, *names) == {name: [survivor] for name in names})
    for name in names:
        group.wait_until(lambda name=name: set(kit.numbers(f"{topic}-{name}")) == set(range(500)))
    third = group.start()
    workers = {survivor, third.partition("://")[2]}
    group.wait_until(is_spread_of(group, third, names, workers))
    group.do("DELETE", f"{third}/connectors/c0")
    group.wait_until(lambda: group.ask("GET", f"{second}/connectors/c0/status")[0] == 404)
    assert group.end(second, signal.SIGTERM) == 0
    assert group.end(third, signal.SIGTERM) == 0


def is_spread_of(group: ConnectGroup, url: str, names: list[str], workers: set[str]) -> Callable[[], bool]:
    def holds() -> bool:
        owners = group.owners(url, *names)
        each = [owner for tasks in owners.values() for owner in tasks]
        return len(each) == len(names) and set(each) == workers

    return holds


@deep
def test_no_row_is_lost_in_a_rolling_restart_nor_when_the_leader_is_killed(group, kit, topic, tmp_path):
    """Rows that are added all the time arrive, whichever worker reads the files.

    Rows that a stopped worker had read and not sent would be missing if its source offsets were ahead.
    """
    urls = [group.start() for _ in range(3)]
    names = [f"c{number}" for number in range(3)]
    paths = {name: rows_file(tmp_path / f"{name}.csv", 100) for name in names}
    for name in names:
        config = {**source(kit, paths[name], f"{topic}-{name}"), "stop.at.eof": "false"}
        group.do("POST", f"{urls[0]}/connectors", {"name": name, "config": config})
    group.wait_until(lambda: all(len(tasks) == 1 for tasks in group.owners(urls[0], *names).values()))
    count = 100

    def add_rows() -> None:
        nonlocal count
        for path in paths.values():
            with path.open("a") as file:
                file.writelines(f"{n},row {n}\n" for n in range(count, count + 50))
        count += 50

    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        url = urls.pop(0)
        add_rows()
        group.end(url, number)
        add_rows()
        urls.append(group.start(url))
        alive = {each.partition("://")[2] for each in urls}
        group.wait_until(is_placed(group, urls[0], names, alive))
    add_rows()
    for name in names:
        group.wait_until(lambda name=name: set(kit.numbers(f"{topic}-{name}")) == set(range(count)))


def is_placed(group: ConnectGroup, url: str, names: list[str], workers: set[str]) -> Callable[[], bool]:
    def holds() -> bool:
        owners = group.owners(url, *names)
        return all(len(tasks) == 1 and tasks[0] in workers for tasks in owners.values())

    return holds


def test_any_worker_takes_requests_for_what_another_runs(group, kit, topic, tmp_path):
    urls = [group.start(), group.start()]
    config = {**source(kit, rows_file(tmp_path / "r.csv", 10), topic), "stop.at.eof": "false"}
    for url in urls:
        group.do("GET", f"{url}/connectors")
    group.do("POST", f"{urls[1]}/connectors", {"name": "c", "config": config})

    def is_state(connector: str, *tasks: str) -> None:
        def holds() -> bool:
            statuses = [group.status(url, "c") for url in urls]
            return all(
                status
                and status["connector"]["state"] == connector
                and [task["state"] for task in status["tasks"]] == list(tasks)
                for status in statuses
            )

        group.wait_until(holds)

    is_state("RUNNING", "RUNNING")
    for url in urls:
        group.do("PUT", f"{url}/connectors/c/pause")
        is_state("PAUSED", "PAUSED")
        group.do("PUT", f"{url}/connectors/c/resume")
        is_state("RUNNING", "RUNNING")
        group.do("PUT", f"{url}/connectors/c/stop")
        is_state("STOPPED")
        group.do("PUT", f"{url}/connectors/c/resume")
        is_state("RUNNING", "RUNNING")
        group.do("POST", f"{url}/connectors/c/restart")
        group.do("POST", f"{url}/connectors/c/tasks/0/restart")
        shown = group.do("POST", f"{url}/connectors/c/restart?includeTasks=true&onlyFailed=false")
        assert [shown["connector"]["state"], shown["tasks"][0]["state"]] == ["RESTARTING"] * 2
        is_state("RUNNING", "RUNNING")
        changed = group.do(
            "PUT", f"{url}/connectors/c/config", {**config, "batch.size": url[-2:].lstrip("0")}
        )
        assert changed["config"]["batch.size"] == url[-2:].lstrip("0")
        is_state("RUNNING", "RUNNING")
        status, answer = group.ask("POST", f"{url}/connectors", {"name": "c", "config": config})
        assert (status, "already exists" in answer["message"]) == (409, True)
        for signature, code in (("", 400), ("AAAA", 403)):
            unsigned = {"content-type": "application/json"}
            if signature:
                unsigned |= {
                    "x-connect-authorization": signature,
                    "x-connect-request-signature-algorithm": "HmacSHA256",
                }
            refused = group._client.request("POST", f"{url}/connectors/c/tasks", b"[]", unsigned)
            assert refused.status == code
    group.do("DELETE", f"{urls[0]}/connectors/c")
    for url in urls:
        group.wait_until(lambda url=url: group.ask("GET", f"{url}/connectors") == (200, []))


def test_a_worker_that_does_not_run_for_a_while_works_on_with_nothing_lost(group, kit, topic, tmp_path):
    urls = [group.start(), group.start()]
    path = rows_file(tmp_path / "r.csv", 200)
    config = {**source(kit, path, topic), "stop.at.eof": "false"}
    group.do("POST", f"{urls[0]}/connectors", {"name": "c", "config": config})
    (owner,) = group.wait_until(lambda: group.owners(urls[0], "c")["c"])
    (other,) = [url for url in urls if not url.endswith(owner)]
    stopped = group.workers[f"http://{owner}"]
    stopped.send_signal(signal.SIGSTOP)
    group.wait_until(lambda: group.owners(other, "c")["c"] == [other.partition("://")[2]])
    stopped.send_signal(signal.SIGCONT)
    with path.open("a") as file:
        file.writelines(f"{n},row {n}\n" for n in range(200, 300))
    group.wait_until(lambda: set(kit.numbers(topic)) == set(range(300)))
    group.wait_until(lambda: len(group.owners(f"http://{owner}", "c")["c"]) == 1)
