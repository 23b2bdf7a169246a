"""Clients that share no code with the tested Python ones: franz-go, sarama and kafkajs, a program for each.

The programs in ``go``, ``sarama`` and ``node`` produce, consume, run transactions and a group, administer,
and print what they saw. What they need is fetched and built once, below the ignored folder ``build``; without
Go, Node and npm, or without their packages, the tests are skipped. A program that does not compile is a
failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import depth
from tests.support.logd_process import LogdProcess

HERE = Path(__file__).parent
BUILT = HERE.parent.parent / "build" / "interop"
FETCH_SECONDS = 180
RUN_SECONDS = 150

pytestmark = [depth.deep, pytest.mark.timeout(FETCH_SECONDS + RUN_SECONDS + 30)]


def need(*programs: str) -> None:
    """Skip the test unless all of these are installed."""
    if missing := [program for program in programs if shutil.which(program) is None]:
        pytest.skip(f"{' and '.join(missing)} not installed")


def fetch(command: list[str], folder: Path, **environment: str) -> None:
    """Fetch packages; skip the test with the tool's own words where that is not possible."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=FETCH_SECONDS,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{' '.join(command[:2])} took longer than {FETCH_SECONDS} s")
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command[:2])}: {(done.stderr.strip() or 'failed')[-300:]}")


def build(command: list[str], folder: Path, **environment: str) -> None:
    """Compile a program of ours whose packages are there; AssertionError with what the compiler says."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=FETCH_SECONDS,
    )
    assert done.returncode == 0, done.stderr


def seen_by(command: list[str | Path], **environment: str) -> Any:
    """What a probe prints; AssertionError with what it complained of."""
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=RUN_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def go_program(name: str, folder: Path) -> Path:
    """A program, compiled."""
    need("go")
    program = BUILT / name
    local = {"GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    fetch(["go", "mod", "download"], folder, **local)
    build(["go", "build", "-buildvcs=false", "-o", str(program), "."], folder, **local)
    return program


@pytest.fixture(scope="session")
def franz_go() -> Path:
    """The compiled program."""
    return go_program("franz-go", HERE / "go")


@pytest.fixture(scope="session")
def sarama() -> Path:
    """The compiled program."""
    return go_program("sarama", HERE / "sarama")


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder of the installed packages."""
    need("node", "npm")
    wanted, folder = HERE / "node" / "package.json", BUILT / "node"
    installed = folder / "installed.json"
    if not installed.exists() or installed.read_bytes() != wanted.read_bytes():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(wanted, folder)
        options = ["--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
        fetch(["npm", "install", *options], folder)
        shutil.copy(wanted, installed)
    return folder / "node_modules"


SENT = ['0 "k" "v" h="1"', '1 null ""', '2 "" null', "3 null 900000-bytes"]
"""The records of every codec: offset, key, value, headers."""

COMMITTED = ['0 null "0"', '4 null "2"', '8 null "second"']
"""Between them are an aborted record and three markers each."""


def test_franz_go(franz_go: Path, logd: LogdProcess, new_name: Callable[..., str]) -> None:
    seen = seen_by([franz_go, logd.bootstrap, new_name("franz-go")])
    with_null_header = [SENT[0] + " n=null", *SENT[1:]]
    assert seen == {
        "codecs": dict.fromkeys(["none", "gzip", "snappy", "lz4", "zstd"], with_null_header),
        "transactions": {"committed": COMMITTED, "all": 5, "fenced": True},
        "group": {"read": 40, "lag": 0, "protocol": "cooperative-sticky", "members": 2, "after": "Empty"},
        "admin": {
            "again": True,
            "configs": ["max.message.bytes=2000"],
            "large": True,
            "after": 5,
            "start": 4,
            "partitions": 3,
            "brokers": 1,
            "deleted": True,
            "absent": True,
        },
    }


def test_sarama(sarama: Path, logd: LogdProcess, new_name: Callable[..., str]) -> None:
    seen = seen_by([sarama, logd.bootstrap, new_name("sarama")])
    assert seen == {
        "codecs": dict.fromkeys(["none", "gzip", "snappy", "lz4", "zstd"], SENT),
        "transactions": {"committed": COMMITTED, "all": 5, "fenced": True},
        "group": {
            "read": 40,
            "state": "Stable",
            "protocol": "range",
            "members": 2,
            "committed": [10, 10, 10, 10],
        },
        "admin": {
            "again": True,
            "configs": ["max.message.bytes=2000"],
            "large": True,
            "after": 5,
            "start": 4,
            "partitions": 3,
            "brokers": 1,
            "deleted": True,
            "absent": True,
        },
    }


def test_kafkajs(node_modules: Path, logd: LogdProcess, new_name: Callable[..., str]) -> None:
    probe = HERE / "node" / "probe.js"
    seen = seen_by(["node", probe, logd.bootstrap, new_name("kafkajs")], NODE_PATH=str(node_modules))
    assert seen == {
        "codecs": dict.fromkeys(["none", "gzip", "snappy", "zstd"], SENT),
        "transactions": {"committed": COMMITTED, "all": 5, "sent": "2", "fenced": "INVALID_PRODUCER_EPOCH"},
        "group": {
            "read": 40,
            "state": "Stable",
            "protocol": "RoundRobinAssigner",
            "members": 2,
            "committed": [10, 10, 10, 10],
        },
        "admin": {
            "again": True,
            "name": "INVALID_TOPIC_EXCEPTION",
            "configs": ["max.message.bytes=2000"],
            "large": "MESSAGE_TOO_LARGE",
            "after": "5",
            "start": "4",
            "partitions": 3,
            "absent": "GROUP_ID_NOT_FOUND",
            "deleted": True,
            "brokers": 1,
        },
    }
