"""Log directories as foreign admin clients see and change them: kafka-python, and Kafka's own tools.

KAFKA_LIBS is the folder of Kafka's jars.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.logd.broker.log_dirs import fill, logd_in, read
from tests.support.java import needs_kafka, run_tool
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for


def test_kafka_python(tmp_path: Path) -> None:
    kafka = pytest.importorskip("kafka")
    with logd_in(tmp_path, "a", "b") as logd, RawClient(logd.port) as client:
        create_topic(logd, "t", partitions=2)
        fill(client, "t", range(20), size=100)
        admin = kafka.KafkaAdminClient(bootstrap_servers=logd.bootstrap)
        try:

            def locations() -> dict[str, tuple[str, bool]]:
                (answer,) = admin.describe_log_dirs()
                return {
                    f"{topic['name']}-{row['partition_index']}": (result["log_dir"], row["is_future_key"])
                    for result in answer["log_dirs"]
                    for topic in result["topics"]
                    for row in topic["partitions"]
                }

            a, b = str(tmp_path / "a"), str(tmp_path / "b")
            assert locations() == {"t-0": (a, False), "t-1": (b, False)}
            results = admin.alter_replica_log_dirs({("t", 0, 1): b, ("t", 7, 1): b, ("t", 1, 1): "/nowhere"})
            errors = {key.partition: error.__name__ for key, error in results.items()}
            assert errors[0] == "NoError"
            assert errors[7] == "UnknownTopicOrPartitionError"
            assert errors[1].startswith("LogDirNotFound")
            wait_for(lambda: locations() == {"t-0": (b, False), "t-1": (b, False)})
        finally:
            admin.close()
        assert read(client, "t") == list(range(20))


def tool(name: str, *arguments: str) -> str:
    done = run_tool(f"org.apache.kafka.tools.{name}", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_kafka
def test_kafka_log_dirs(tmp_path: Path) -> None:
    with logd_in(tmp_path, "a", "b") as logd, RawClient(logd.port) as client:
        create_topic(logd, "t", partitions=2)
        create_topic(logd, "u")
        fill(client, "t", range(20), size=100)
        output = tool(
            "LogDirsCommand", "--bootstrap-server", logd.bootstrap, "--describe", "--topic-list", "t"
        )
        answer = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        (broker,) = answer["brokers"]
        rows = {
            row["partition"]: (Path(folder["logDir"]).name, row["size"], row["offsetLag"], row["isFuture"])
            for folder in broker["logDirs"]
            for row in folder["partitions"]
        }
        size = (tmp_path / "a" / "t-0" / f"{0:020}.log").stat().st_size
        assert rows == {"t-0": ("a", size, 0, False), "t-1": ("b", 0, 0, False)}
        assert all(folder["error"] is None for folder in broker["logDirs"])
