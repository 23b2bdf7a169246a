"""`millstream mirror failover` of a flow: while the flow runs, after it stopped, with a dead source."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client, TopicPartition, TransactionalProducer
from millstream.testing import Broker
from mirror.failover import facts
from mirror.link import Link
from tests.millstream.invoking import invoke
from tests.mirror.pair import Pair, numbered, produce

SETTINGS = {
    "emit_checkpoints_enabled": "true",
    "checkpoints_topic_replication_factor": "1",
    "emit_heartbeats_enabled": "true",
    "heartbeats_topic_replication_factor": "1",
}
TP, REMOTE = TopicPartition("flights", 0), TopicPartition("dc1.flights", 0)


@pytest.fixture
def brokers() -> Iterator[tuple[Broker, Broker]]:
    with Broker(in_process=True) as dc1, Broker(in_process=True) as dc2:
        yield dc1, dc2


class Case:
    """Two clusters, and the command asked about the flow between them."""

    def __init__(self, brokers: tuple[Broker, Broker], folder: Path) -> None:
        self.dc1, self.dc2 = brokers
        self.pair = Pair(self.dc1.bootstrap_servers, self.dc2.bootstrap_servers)
        self.config = folder / "mm2.properties"
        properties = self.pair.properties("flights", **SETTINGS)
        self.config.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))

    async def ask(self, verb: str, *options: str, status: int) -> Any:
        result = await asyncio.to_thread(
            invoke, "mirror", "failover", verb, self.config, *options, "-o", "json"
        )
        assert result.exit_code == status, result.output
        return json.loads(result.stdout)

    async def text(self) -> str:
        return (await asyncio.to_thread(invoke, "mirror", "failover", "plan", self.config)).stdout

    async def commit(self, group: str, offset: int) -> None:
        async with Client(self.pair.dc1) as client:
            await Admin(client).alter_group_offsets(group, {TP: offset})

    async def transaction(self, count: int, start: int) -> None:
        async with Client(self.pair.dc1) as client, TransactionalProducer(client, "writer") as producer:
            producer.begin()
            await producer.send("flights", 0, numbered(count, start))
            await producer.commit()


async def test_a_flow_that_runs_then_stands_then_loses_its_source(
    brokers: tuple[Broker, Broker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(brokers, tmp_path)
    await case.pair.create("flights", partitions=2)
    await produce(case.pair.dc1, "flights", {0: [numbered(5), numbered(5, 5)]})
    await case.transaction(2, 10)  # its marker has offset 12, and no record to lose
    await case.commit("billing", 7)
    settings = case.pair.link("flights|heartbeats", **SETTINGS)
    often = replace(settings.groups, emit_checkpoints_interval_seconds=0.05, refresh_interval_seconds=0.05)
    # The flow creates the topic of heartbeats, and finds it when it looks for topics again.
    async with Link(replace(settings, groups=often, refresh_topics_interval_seconds=0.1)) as link:
        running = asyncio.create_task(link.run())
        plan: dict[str, Any] = {"groups": [], "verdict": None, "heartbeat_seconds": None}
        async with asyncio.timeout(60):
            while (
                plan["verdict"] != "safe"
                or plan["heartbeat_seconds"] is None
                or [group["offset"] for group in plan["groups"]] != [7]
            ):
                result = await asyncio.to_thread(
                    invoke, "mirror", "failover", "plan", case.config, "-o", "json"
                )
                plan = json.loads(result.stdout)
        link.stop()
        await running
    await safe(case)
    await loses_records(case)
    case.dc1.stop()
    monkeypatch.setattr(facts, "ANSWER_SECONDS", 1.0)
    await source_is_dead(case)


async def safe(case: Case) -> None:
    plan = await case.ask("plan", status=0)
    assert (plan["verdict"], plan["records_lost"], plan["seconds_lost"]) == ("safe", 0, 0.0)
    assert [(p["target_topic"], p["partition"], p["records_lost"]) for p in plan["partitions"]] == [
        ("dc1.flights", 0, 0),
        ("dc1.flights", 1, 0),
    ]
    (group,) = plan["groups"]
    assert (group["group"], group["target_topic"], group["source_offset"]) == ("billing", "dc1.flights", 7)
    assert (group["offset"], group["rereads_max"], group["state"]) == (7, 0, "current")
    commands = [step["command"] for step in plan["steps"] if step["command"]]
    assert commands[0] == f"millstream mirror run {case.config} --clusters dc2 --until-caught-up"
    assert "--topic flights:dc1.flights" in commands[1]
    assert "dc1->dc2: safe; a failover now loses 0 records, of the last 0.0 s" in await case.text()


async def loses_records(case: Case) -> None:
    """Plan after the mirror was stopped. Four records in two transactions follow, which take six offsets."""
    await case.transaction(1, 12)
    await case.transaction(3, 13)
    await case.commit("billing", 12)
    await case.commit("reports", 3)
    plan = await case.ask("plan", status=7)
    assert (plan["verdict"], plan["records_lost"], plan["seconds_lost"]) == ("loses records", 4, None)
    first, _ = plan["partitions"]
    assert (first["source_end"], first["records_lost"], first["exact"]) == (19, 4, True)
    billing, reports = plan["groups"]
    assert (billing["offset"], billing["rereads_max"], billing["state"]) == (7, 5, "stale")
    assert (reports["offset"], reports["rereads_max"], reports["state"]) == (None, None, "no checkpoint")
    await case.commit("billing", 2)
    billing, _ = (await case.ask("plan", status=7))["groups"]
    assert (billing["offset"], billing["state"]) == (7, "ahead")


async def source_is_dead(case: Case) -> None:
    plan = await case.ask("plan", status=6)
    assert (plan["verdict"], plan["records_lost"], plan["seconds_lost"]) == ("unknown", None, None)
    assert plan["source_error"] and plan["heartbeat_seconds"] is not None
    assert [p["records_lost"] for p in plan["partitions"]] == [None, None]
    (group,) = plan["groups"]
    assert (group["source_offset"], group["state"]) == (None, "unknown")
    assert (group["offset"], group["rereads_max"], group["committed"]) == (7, 5, None)
    assert "dc1->dc2: unknown; a failover now loses an unknown number of records, of unknown age" in (
        await case.text()
    )
    row = {"group": "billing", "topic": "dc1.flights", "partition": 0, "offset": 7, "error": None}
    assert await case.ask("offsets", status=0) == [{**row, "replaces": None}]
    assert await case.ask("offsets", "--group", "nobody", status=0) == []
    assert await case.ask("offsets", "--execute", status=0) == [{**row, "replaces": None}]
    async with Client(case.pair.dc2) as client:
        committed = await Admin(client).list_group_offsets("billing")
    assert {tp: each.offset for tp, each in committed.items()} == {REMOTE: 7}
    assert await case.ask("offsets", "--execute", status=0) == [], "it is there already"
