"""docs/cluster.md: its commands in their order, up to a broker that is killed."""

from __future__ import annotations

import json
import shutil
import signal
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.docs.page_commands import Page
from tests.docs.pages import ROOT
from tests.support.depth import deep
from tests.support.ports import free_port
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

PAGE = ROOT / "docs" / "cluster.md"
ZOOKEEPER = "127.0.0.1:21811,127.0.0.1:21812,127.0.0.1:21813"
PORTS = ("9092", "9093", "9094")
FOLDERS = "/var/lib/logd-"
RECORDS = 10_000


@deep
@pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None,
    reason="ZooKeeper needs Java and PySpark's jars",
)
def test_a_cluster_is_made_and_loses_a_broker(tmp_path: Path) -> None:
    places = {f"127.0.0.1:{port}": f"127.0.0.1:{free_port()}" for port in PORTS}
    page = Page(PAGE, tmp_path, {FOLDERS: f"{tmp_path}/logd-", **places})
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
