"""docs/cluster.md: its commands in their order, up to a broker that is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.docs.pages import ROOT, blocks
from tests.docs.test_commands_run import read_until
from tests.support.depth import deep
from tests.support.ports import free_port
from tests.support.raw_client import RawClient
from tests.support.tracebacks import assert_no_tracebacks
from tests.support.waiting import wait_for

PAGE = ROOT / "docs" / "cluster.md"
ZOOKEEPER = "127.0.0.1:21811,127.0.0.1:21812,127.0.0.1:21813"
PORTS = ("9092", "9093", "9094")
FOLDERS = "/var/lib/logd-"
RECORDS = 10_000
SECONDS = 100.0


class Page:
    """Commands of the page; `places` maps its addresses and folders to those of this run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.places = {FOLDERS: f"{folder}/logd-"}
        self.places.update((f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}") for port in PORTS)
        self.blocks = [
            block.text.replace("\\\n", " ").splitlines() for block in blocks(PAGE, "sh") if block.is_run
        ]

    def here(self, text: str) -> str:
        """Return a page's text with the ports and folders of this run."""
        for name, place in self.places.items():
            text = text.replace(name, place)
        return text

    def port(self, port: str) -> int:
        """Return the port here of a broker that has another one on the page."""
        return int(self.places[f"127.0.0.1:{port}"].rpartition(":")[2])

    def write_properties(self) -> None:
        """Write the properties file that the page shows."""
        (block,) = blocks(PAGE, "properties")
        name = block.text.partition("\n")[0].removeprefix("# ")
        (self.folder / name).write_text(self.here(block.text))

    def start(self, line: str) -> subprocess.Popen[bytes]:
        """Start a command of the page in the folder, and return its process."""
        words = self.here(line).split()
        assert words.pop(0) == "millstream", line
        return subprocess.Popen(
            [sys.executable, "-m", "millstream", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(self.folder)},
            cwd=self.folder,
        )

    def done(self, line: str) -> str:
        """Run a command that ends by itself with status 0, and return what it prints."""
        with self.start(line) as process:
            output, _ = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, f"{line}: {output.decode()}"
        return output.decode()

    @contextmanager
    def running(self, line: str, ready: bytes) -> Iterator[tuple[subprocess.Popen[bytes], bytes]]:
        """Run a command until the block ends; yield its process and its output up to `ready`."""
        with self.start(line) as process:
            try:
                yield process, read_until(process, ready, behind=b"\n")
                process.terminate()
                output, _ = process.communicate(timeout=SECONDS)
                assert_no_tracebacks(output.decode())
            finally:
                process.kill()


@deep
@pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None,
    reason="ZooKeeper needs Java and PySpark's jars",
)
def test_a_cluster_is_made_and_loses_a_broker(tmp_path: Path) -> None:
    page = Page(tmp_path)
    (zookeeper,), brokers, with_all, with_two = page.blocks
    with ExitStack() as stack:
        _, ready = stack.enter_context(page.running(zookeeper, b"ZooKeeper ready at "))
        page.places[ZOOKEEPER] = ready.split()[-1].decode()
        page.write_properties()
        started = [stack.enter_context(page.running(line, b"logd ready at ")) for line in brokers]
        for line in with_all:
            page.done(line)
        described = with_all[-1] + " -o json"
        assert {tuple(sorted(each["isr"])) for each in partitions(page.done(described))} == {(1, 2, 3)}
        first, _ = started[0]
        first.send_signal(signal.SIGKILL)
        behind, consumed = with_two
        second = page.port(PORTS[1])
        wait_for(lambda: is_without_the_first(second))
        assert len(led_by_others(page.done(behind + " -o json"))) == 6
        assert len(page.done(consumed).splitlines()) == RECORDS


def is_without_the_first(port: int) -> bool:
    """Return True if a broker knows that the first one leads no partition, and is in sync nowhere.

    A command that asks in a loop would take a process for each answer.
    """
    with RawClient(port) as client:
        (topic,) = client.request(MetadataRequest(topics=[MetadataRequestTopic(name="flights")]), 12).topics
    return all(each.leader_id > 1 and 1 not in each.isr_nodes for each in topic.partitions)


def partitions(output: str) -> list[dict[str, object]]:
    """Return the partitions of the only topic that a command described."""
    (topic,) = json.loads(output)
    return list(topic["partitions"])


def led_by_others(output: str) -> list[object]:
    """Return the partitions whose leader is another broker than the first."""
    return [each for each in partitions(output) if each["leader"] in (2, 3)]
