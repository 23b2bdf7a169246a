"""`GET /status` of a mirror, and `millstream mirror status`, which shows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client.http.operations import OperationsServer
from mirror.config import http_access
from mirror.flow_status import STATUS_PATH, flow_status, flows_status
from mirror.link import Link
from mirror.links import SupervisedLink
from mirror.status import worst_rpo
from tests.millstream.invoking import invoke
from tests.mirror.pair import Pair, numbered, produce
from tests.support.certificates import Authority

NOW = 1_600_000_000.0


def running(pair: Pair, topics: str, link: Link | None) -> SupervisedLink:
    flow = SupervisedLink(pair.link(topics))
    flow.link = link
    return flow


async def answers(flow: SupervisedLink, *arguments: str) -> Any:
    """Return the result of the command, asked of a server with the flow's status."""
    facts = {STATUS_PATH: lambda: flows_status([flow])}
    async with OperationsServer("127.0.0.1:0", flow.metrics, ready=lambda: None, facts=facts) as server:
        address = f"127.0.0.1:{server.port}"
        return await asyncio.to_thread(invoke, "mirror", "status", "--http", address, *arguments)


async def test_a_flow_that_copies_and_one_partition_that_cannot(
    pair: Pair, new_name: Callable[[], str]
) -> None:
    topic, foreign = new_name(), new_name()
    await pair.create(topic)
    await pair.create(foreign)
    await produce(pair.dc1, topic, {0: [numbered(10)]})
    async with Link(pair.link(topic), clock=lambda: NOW) as link:
        await link.run(until_caught_up=True)
        await link.progress.ask_source()
        result = await answers(running(pair, topic, link), "-o", "json")
        assert result.exit_code == 0, result.output
        (flow,) = json.loads(result.stdout)
        assert (flow["flow"], flow["state"], flow["error"], flow["rpo_seconds"]) == (
            "dc1->dc2",
            "running",
            None,
            0.0,
        )
        assert flow["partitions"] == [
            {
                "topic": topic,
                "partition": 0,
                "state": "copying",
                "position": 10,
                "lag_records": 0,
                "lag_seconds": 0.0,
                "rpo_seconds": 0.0,
                "standing_since": None,
                "error": None,
            }
        ]
    await Pair(pair.dc2, pair.dc1).create(f"dc1.{foreign}")
    await produce(pair.dc2, f"dc1.{foreign}", {0: [numbered(1)]})
    async with Link(pair.link(f"{topic}|{foreign}"), clock=lambda: NOW) as link:
        result = await answers(running(pair, topic, link))
        assert result.exit_code == 7
        assert "dc1->dc2: running; a failover now loses at most: unknown" in result.stdout
        assert "TargetNotEmpty: the target has 1 records" in result.stdout
        assert f"dc1->dc2: {foreign}-0 is quarantined" in result.output


async def test_what_the_source_does_not_answer_for_is_unknown(
    pair: Pair, new_name: Callable[[], str]
) -> None:
    topic = new_name()
    await pair.create(topic)
    now = [NOW]
    async with Link(pair.link(topic), clock=lambda: now[0]) as link:
        (copy,) = link._mirror.copies.values()
        copy.source.failed("it is away")
        link.progress.check()
        now[0] += 31
        link.progress.check()
        (facts,) = flow_status(running(pair, topic, link))["partitions"]
        assert (facts["state"], facts["lag_records"], facts["lag_seconds"]) == ("standing still", None, None)
        assert (facts["standing_since"], facts["rpo_seconds"]) == (NOW, 31.0)
        assert facts["error"] == "the source does not answer: it is away"


async def test_flows_that_are_not_open(pair: Pair) -> None:
    flow = running(pair, "t", None)
    result = await answers(flow)
    assert result.exit_code == 7
    assert "dc1->dc2: opening; a failover now loses at most: unknown" in result.stdout
    flow.failure = ConnectionError("dc2 is away")
    result = await answers(flow, "--flow", "dc1->dc2")
    assert "dc1->dc2: down: ConnectionError: dc2 is away" in result.stdout
    result = await answers(flow, "--flow", "dc9->dc2")
    assert (result.exit_code, "the mirror has dc1->dc2" in result.output) == (3, True)


async def test_a_mirror_with_tls_and_users(pair: Pair, tmp_path: Path) -> None:
    authority = Authority("test CA")
    (tmp_path / "users").write_text("admin=s3cret\n")
    properties = {
        **pair.properties("t"),
        "http.ssl.keystore.type": "PEM",
        "http.ssl.keystore.location": str(authority.issue("m", ["127.0.0.1"]).write_pem(tmp_path / "m.pem")),
        "http.ssl.truststore.type": "PEM",
        "http.ssl.truststore.location": str(authority.write_pem(tmp_path / "ca.pem")),
        "http.basic.auth.users.file": str(tmp_path / "users"),
    }
    config, flow = tmp_path / "mm2.properties", running(pair, "t", None)
    config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    access = http_access(properties)
    facts = {STATUS_PATH: lambda: flows_status([flow])}
    async with OperationsServer(
        "127.0.0.1:0", flow.metrics, ready=lambda: None, facts=facts, access=access
    ) as server:
        http = ("--http", f"127.0.0.1:{server.port}")
        result = await asyncio.to_thread(invoke, "mirror", "status", config, *http)
        assert "dc1->dc2: opening" in result.stdout, result.output
        config.write_text(config.read_text().replace("http.basic.", "#"))
        result = await asyncio.to_thread(invoke, "mirror", "status", config, *http)
    assert result.exit_code == 4 and "it serves its users alone" in result.output


def test_no_mirror_and_no_address(pair: Pair, tmp_path: Path) -> None:
    result = invoke("mirror", "status", "--http", "127.0.0.1:1")
    assert result.exit_code == 4
    assert "no mirror answers at http://127.0.0.1:1/status" in result.output
    config = tmp_path / "mm2.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in pair.properties("t").items()))
    result = invoke("mirror", "status", config)
    assert result.exit_code == 2
    assert "http.listener" in result.output


@pytest.mark.parametrize(("seconds", "worst"), [([], 0.0), ([0.5, 2.0], 2.0), ([2.0, None], None)])
def test_the_rpo_of_a_flow_is_that_of_its_worst_partition(
    seconds: list[float | None], worst: float | None
) -> None:
    assert worst_rpo(seconds) == worst
