"""`millstream acl`: ACLs are added by Kafka's short forms, listed and removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from millstream.terminal.status import Status
from tests.millstream.invoking import invoke
from tests.support.logd_process import LogdProcess
from tests.support.logged_in import ROOT, password_of, settings_with_acls


def test_acls_come_and_go(tmp_path: Path) -> None:
    file = tmp_path / "root.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.username={ROOT}\nsasl.password={password_of(ROOT)}\n"
    )
    with LogdProcess(tmp_path / "data", settings_with_acls()) as logd:

        def acl(*arguments: str) -> list[dict[str, Any]]:
            options = ("-b", logd.bootstrap, "--command-config", file, "-o", "json")
            result = invoke("acl", *arguments, *options)
            assert result.exit_code == Status.OK, result.output
            rows: list[dict[str, Any]] = json.loads(result.stdout)
            return rows

        assert acl("list") == []
        writer = ("--principal", "User:alice", "--producer", "--topic", "orders")
        reader = ("--principal", "User:bob", "--consumer", "--topic", "or", "--group", "g", "--prefixed")
        added = acl("add", *writer)
        assert {row["operation"] for row in added} == {"WRITE", "DESCRIBE", "CREATE"}
        assert {(row["name"], row["operation"]) for row in acl("add", *reader)} == {
            ("or", "READ"),
            ("or", "DESCRIBE"),
            ("g", "READ"),
        }
        acl(
            "add",
            "--principal",
            "User:eve",
            "--operation",
            "all",
            "--cluster",
            "--deny",
            "--host",
            "10.0.0.7",
        )
        assert len(acl("list")) == 7
        (refusal,) = acl("list", "--cluster")
        assert refusal == {
            "resource_type": "CLUSTER",
            "pattern_type": "LITERAL",
            "name": "kafka-cluster",
            "principal": "User:eve",
            "host": "10.0.0.7",
            "operation": "ALL",
            "permission": "DENY",
        }
        assert len(acl("list", "--principal", "User:alice", "--principal", "User:eve")) == 4
        assert len(acl("remove", *writer, "--yes")) == 3
        assert acl("remove", *writer, "--yes") == []
        assert {row["principal"] for row in acl("list")} == {"User:bob", "User:eve"}


def test_what_names_no_acl() -> None:
    alice = ("--principal", "User:alice", "--topic", "orders", "-b", "127.0.0.1:1")
    result = invoke("acl", "add", *alice)
    assert result.exit_code == Status.USAGE
    assert "names no ACL" in result.output
    wrong = invoke("acl", "remove", *alice, "--operation", "fly")
    assert wrong.exit_code == Status.USAGE
    assert "--operation fly is no operation: all, read, write" in wrong.output
