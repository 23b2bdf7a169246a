"""Clients that share no code with the tested Python ones: franz-go, sarama and kafkajs, a program for each.

The programs in ``go``, ``sarama`` and ``node`` produce, consume, run transactions and a group, administer,
and print what they saw.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.other_languages import NODE, PROBE_SECONDS, seen_by

pytestmark = [depth.deep, pytest.mark.timeout(PROBE_SECONDS)]

SENT = ['0 "k" "v" h="1"', '1 null ""', '2 "" null', "3 null 900000-bytes"]
"""The records of every codec: offset, key, value, headers."""

COMMITTED = ['0 null "0"', '4 null "2"', '8 null "second"']
"""Between them are an aborted record and three markers each."""


def test_franz_go(franz_go: Path, logd: LogdProcess, new_name: Callable[..., str]) -> None:
    facts = seen_by([franz_go, logd.bootstrap, new_name("franz-go")])
    with_null_header = [SENT[0] + " n=null", *SENT[1:]]
    assert facts == {
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
    facts = seen_by([sarama, logd.bootstrap, new_name("sarama")])
    assert facts == {
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


def test_kafkajs(installed: Path, logd: LogdProcess, new_name: Callable[..., str]) -> None:
    probe = NODE / "probe.js"
    facts = seen_by(["node", probe, logd.bootstrap, new_name("kafkajs")], NODE_PATH=str(installed))
    assert facts == {
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
