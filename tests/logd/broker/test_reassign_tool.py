"""Kafka's kafka-reassign-partitions moves partitions between log directories.

KAFKA_LIBS is the folder of Kafka's jars.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kafka_client.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.logd.broker.log_dirs import fill, home, logd_in, read, wait_until_in
from tests.support.java import needs_kafka, run_tool
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

RATE = 10_000_000
RATES = ("leader.replication.throttled.rate", "replica.alter.log.dirs.io.max.bytes.per.second")
BROKER = 4
"""Resource type of a broker."""

CHANGED = 2
"""Config source of a value that was set while this broker ran."""


def reassign(logd: LogdProcess, *arguments: str) -> list[str]:
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    done = run_tool(tool, "--bootstrap-server", logd.bootstrap, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.strip() for line in done.stdout.splitlines()]


def rates(client: RawClient) -> list[int | None]:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=[*RATES])
    (result,) = client.request(DescribeConfigsRequest(resources=[resource]), 4).results
    values = {row.name: int(row.value) for row in result.configs if row.config_source == CHANGED}
    return [values.get(key) for key in RATES]


@needs_kafka
def test_kafka_reassign_partitions(tmp_path: Path) -> None:
    with logd_in(tmp_path, "a", "b") as logd, RawClient(logd.port) as client:
        create_topic(logd, "t", partitions=2)
        fill(client, "t", range(20), size=100)
        assert home(tmp_path, "t-0") == "a"

        topics = tmp_path / "topics.json"
        topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "t"}]}))
        output = reassign(logd, "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1")
        plan: dict[str, Any] = json.loads(
            output[output.index("Proposed partition reassignment configuration") + 1]
        )
        anywhere = {"topic": "t", "replicas": [1], "log_dirs": ["any"]}
        assert plan["partitions"] == [{**anywhere, "partition": 0}, {**anywhere, "partition": 1}]

        plan["partitions"][0]["log_dirs"] = [str(tmp_path / "b")]
        plan_file = tmp_path / "plan.json"
        plan_file.write_text(json.dumps(plan))
        execute = ["--execute", "--throttle", str(RATE), "--replica-alter-log-dirs-throttle", str(RATE)]
        output = reassign(logd, *execute, "--reassignment-json-file", str(plan_file))
        assert "Successfully started partition reassignments for t-0,t-1" in output
        moving = (
            f"Successfully started moving log directory to {tmp_path / 'b'} for replica t-0 with broker 1"
        )
        assert moving in output
        assert rates(client) == [RATE, RATE]
        wait_until_in(client, "b", "t")

        output = reassign(logd, "--verify", "--reassignment-json-file", str(plan_file))
        assert "Reassignment of partition t-0 is completed." in output
        assert "Reassignment of partition t-1 is completed." in output
        assert "Reassignment of replica t-0-1 completed successfully." in output
        assert rates(client) == [None, None]
        assert read(client, "t") == list(range(20))
