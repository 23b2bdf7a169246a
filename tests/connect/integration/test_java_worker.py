"""Apache Kafka's own Connect worker and ours in one group, on the same internal topics."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from tests.support.connect_group import ConnectGroup
from tests.support.java import LIBS, QUICK, needs_jar
from tests.support.java_programs import classes_of
from tests.support.ports import free_port

pytestmark = needs_jar("connect-runtime")


def start_java(group: ConnectGroup, plugin: str = "CountingSource") -> str:
    """Start Kafka's worker in a group, with a plugin of tests/java, and return its address."""
    url = f"http://127.0.0.1:{free_port()}"
    file = group.write_settings(url)
    class_path = f"{LIBS}/*:{classes_of(plugin, LIBS)}"
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    with group.log(url).open("ab") as log:
        group.workers[url] = subprocess.Popen(
            ["java", *QUICK, "-cp", class_path, main, str(file)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    return url


def test_a_java_workers_connectors_move_to_ours(logd, kit, topic, tmp_path: Path):
    """Ours joins the Java leader's group, forwards to it, and goes on with its connectors afterwards.

    A record, message or assignment with other bytes than Java's would fail one side or the other.
    """
    group = ConnectGroup(logd.bootstrap, tmp_path)
    try:
        java = start_java(group)
        group.wait_until(lambda: answers(group, java))
        config = {"connector.class": "CountingSource", "topic": "t", "tasks.max": "1"}
        group.do("PUT", f"{java}/connectors/a/config", config)
        group.wait_until(lambda: len(group.owners(java, "a")["a"]) == 1)
        ours = group.start()
        group.wait_until(lambda: group.owners(ours, "a") == {"a": [java.partition("://")[2]]})
        assert group.do("GET", f"{ours}/connectors/a")["config"] == {**config, "name": "a"}
        group.do("PUT", f"{ours}/connectors/a/pause")
        group.wait_until(lambda: states(group, java) == ["PAUSED", "PAUSED"] == states(group, ours))
        group.do("PUT", f"{ours}/connectors/a/stop")  # forwarded to the leader
        group.wait_until(lambda: states(group, java) == ["STOPPED"] == states(group, ours))
        group.end(java, signal.SIGTERM)
        path = tmp_path / "rows.csv"
        path.write_text("n,s\n" + "".join(f"{n},row\n" for n in range(20)))
        rows = {**kit.source(path, topic), "stop.at.eof": "false"}
        del rows["name"]
        group.do("PUT", f"{ours}/connectors/rows/config", rows)
        group.wait_until(lambda: set(kit.numbers(topic)) == set(range(20)))
        assert group.do("GET", f"{ours}/connectors") == ["a", "rows"]
    finally:
        for url in list(group.workers):
            group.end(url)


def answers(group: ConnectGroup, url: str) -> bool:
    try:
        return group.ask("GET", f"{url}/connectors") == (200, [])
    except (OSError, ValueError):  # its pages are no JSON while it starts
        return False


def states(group: ConnectGroup, url: str) -> list[str]:
    status = group.status(url, "a")
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])] if status else []
