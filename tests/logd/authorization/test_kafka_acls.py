"""Java's kafka-acls creates, lists and removes ACLs, and its conveniences are enough for a producer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from tests.support import java
from tests.support.logd_process import LogdProcess
from tests.support.logged_in import ROOT, LoggedInClient, password_of


@pytest.fixture
def kafka_acls(broker: LogdProcess, tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs kafka-acls as a super user, and returns its output."""
    settings = tmp_path / "admin.properties"
    login = f'username="{ROOT}" password="{password_of(ROOT)}"'
    settings.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {login};\n"
    )

    def run(*arguments: str) -> str:
        done = java.run_tool(
            "org.apache.kafka.tools.AclCommand",
            "--bootstrap-server",
            broker.bootstrap,
            "--command-config",
            str(settings),
            *arguments,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@java.needs_kafka
def test_javas_kafka_acls(
    root: LoggedInClient, alice: LoggedInClient, kafka_acls: Callable[..., str]
) -> None:
    producer = ("--producer", "--topic", "java-", "--resource-pattern-type", "prefixed")
    kafka_acls("--add", "--allow-principal", "User:alice", *producer)
    record = (0, None, b"v", ())
    assert alice.produce("java-made", [record]).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alice.produce("other", [record]).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    listed = kafka_acls("--list", "--topic", "java-made", "--resource-pattern-type", "match")
    assert "ResourcePattern(resourceType=TOPIC, name=java-, patternType=PREFIXED)" in listed
    for operation in ("WRITE", "DESCRIBE", "CREATE"):
        entry = f"(principal=User:alice, host=*, operation={operation}, permissionType=ALLOW)"
        assert entry in listed
    kafka_acls("--remove", "--force", "--topic", "java-", "--resource-pattern-type", "prefixed")
    assert root.forget() == 0
