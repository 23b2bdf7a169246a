"""Several flows in one process: one that is down is no matter of the others, and shows in the exit status."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from mirror.config import parse_links
from mirror.links import SupervisedLink
from tests.mirror.pair import Pair, numbered, produce
from tests.mirror.test_kill import target_ends
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port
from tests.support.waiting import until, wait_for

NewName = Callable[[], str]


def with_third(pair: Pair, topic: str, port: int) -> dict[str, str]:
    """Flows dc0->dc2 and dc1->dc2; dc0 is at `port`."""
    return {
        **pair.properties(topic),
        "clusters": "dc0, dc1, dc2",
        "dc0.bootstrap.servers": f"127.0.0.1:{port}",
        "dc0->dc2.enabled": "true",
        "dc0->dc2.topics": topic,
    }


def start(tmp_path: Path, properties: dict[str, str], *options: str) -> subprocess.Popen[str]:
    config = tmp_path / "mm2.properties"
    config.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
    return subprocess.Popen(
        [sys.executable, "-c", "from mirror.cli import app; app()", "run", str(config), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@deep
def test_a_cluster_that_is_away_ends_only_its_own_flow(pair: Pair, new_name: NewName, tmp_path: Path) -> None:
    """Other flows go on, where once flows were opened in a row and the first failure ended the process."""
    topic = new_name()
    asyncio.run(pair.create(topic))
    asyncio.run(produce(pair.dc1, topic, {0: [numbered(10)]}))
    process = start(tmp_path, with_third(pair, topic, free_port()), "--until-caught-up")
    output, _ = process.communicate(timeout=100)
    assert process.returncode == 1, output
    assert "dc0->dc2: down" in output
    assert "dc1->dc2: 10 records" in output
    assert asyncio.run(pair.verify(topic)).equal


@deep
async def test_a_flow_that_is_down_comes_up_when_its_cluster_does(
    pair: Pair, new_name: NewName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror.links.RETRY_MAX_SECONDS", 0.05)
    topic = new_name()
    dc0 = LogdProcess(tmp_path / "dc0")
    dc0.port = free_port()
    (settings, _) = parse_links(with_third(pair, topic, dc0.port))
    await pair.create(topic)
    flow = SupervisedLink(settings)
    running = asyncio.create_task(flow.run())
    async with asyncio.timeout(90):
        await until(lambda: flow.failure is not None, 60)
        assert flow.exit_status == 1
        with dc0:
            await until(lambda: flow.link is not None, 60)
            flow.stop()
            await running
    assert flow.exit_status == 0


@deep
def test_a_stop_with_a_flow_down_says_so_by_its_status(pair: Pair, new_name: NewName, tmp_path: Path) -> None:
    topic = new_name()
    asyncio.run(pair.create(topic))
    asyncio.run(produce(pair.dc1, topic, {0: [numbered(10)]}))
    process = start(tmp_path, with_third(pair, topic, free_port()))
    try:
        while asyncio.run(target_ends(pair, topic)).get(0, 0) < 10:
            assert process.poll() is None
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    assert "dc0->dc2: down" in output


def test_metrics_and_health_of_a_process_with_a_flow_down(
    pair: Pair, new_name: NewName, tmp_path: Path
) -> None:
    topic, url = new_name(), f"http://127.0.0.1:{free_port()}"
    asyncio.run(pair.create(topic))
    process = start(tmp_path, with_third(pair, topic, free_port()), "--http", url.removeprefix("http://"))

    def answer(path: str) -> httpx.Response:
        assert process.poll() is None
        try:
            return httpx.get(url + path, trust_env=False, timeout=20)
        except httpx.ConnectError:
            return httpx.Response(0, text="")

    try:
        # Both flows are not open at first. Then only one is.
        wait_for(lambda: answer("/readyz").text.count("->") == 1, 60)
        assert (answer("/readyz").status_code, answer("/livez").status_code) == (503, 200)
        assert "dc0->dc2 is" in answer("/readyz").json()["message"]
        assert 'millstream_mirror_link_quarantined_partitions{source="dc1"' in answer("/metrics").text
    finally:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output


@deep
def test_a_partition_in_quarantine_is_in_the_last_lines(
    pair: Pair, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    asyncio.run(pair.create(topic))
    asyncio.run(foreign(pair, topic))
    process = start(tmp_path, pair.properties(topic), "--until-caught-up")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    assert "0 partitions, lag 0 records, 0.0 s, 1 quarantined" in output
    assert f"  {topic}-0 quarantined, 1 attempts, TargetNotEmpty: the target has 1 records" in output


async def foreign(pair: Pair, topic: str) -> None:
    """Write a record into the remote topic that is no copy of a source's record."""
    await Pair(pair.dc2, pair.dc1).create(f"dc1.{topic}")
    await produce(pair.dc2, f"dc1.{topic}", {0: [numbered(1)]})
